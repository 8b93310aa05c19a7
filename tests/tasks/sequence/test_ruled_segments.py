"""``SequenceLabeler(segments=True, constraints=...)``: validity in every form of labels, training, files, errors."""

import io
import itertools
import pickle

import numpy as np
import pytest

import structsvm
from structsvm.datasets import make_sequences
from structsvm.metrics import Scheme
from structsvm.model_file import ModelFileError, read_model, write_model
from structsvm.structures.languages import Automaton, at_most_once, before, exactly_one, max_length
from structsvm.tasks import SequenceLabeler

ONCE = {"segments": True, "C": 0.1, "max_iter": 3, "probability": False, "random_state": 0}
X, Y = make_sequences(60, n_labels=5, n_words=50, mean_length=6.0, random_state=0)
BIO = Scheme("bio")
SPANS = list(map(BIO.chunks, Y))
KINDS = sorted({kind for spans in SPANS for _, _, kind in spans})
KIND = SPANS[next(i for i, spans in enumerate(SPANS) if spans)][0][2]


def types(spans):
    return [kind for _, _, kind in spans]


def once(spans):
    return types(spans).count(KIND) <= 1


def in_runs(labels):
    """Labels without tags; chunks that touch another of their type are one then."""
    return ["O" if label == "O" else label[2:] for label in labels]


FORMS = {
    "bio": (Y, BIO.chunks),
    "bioes": (list(map(Scheme("bioes").labels, SPANS, map(len, Y))), Scheme("bioes").chunks),
    "iob1": (list(map(Scheme("iob1").labels, SPANS, map(len, Y))), Scheme("iob1").chunks),
    "spans": (SPANS, lambda spans: spans),
    "runs": (list(map(in_runs, Y)), lambda labels: runs(labels)),
}


def runs(labels):
    found, start = [], 0
    for kind, own in itertools.groupby(labels):
        stop = start + len(list(own))
        if kind != "O":
            found.append((start, stop, kind))
        start = stop
    return found


@pytest.mark.parametrize("loss", ["hamming", "log"])
@pytest.mark.parametrize("form", FORMS)
def test_predictions_are_valid(form, loss):
    y, read = FORMS[form]
    rows = [k for k in range(60) if once(read(y[k]))]
    named = "iob1" if form == "iob1" else None
    free = SequenceLabeler(constraints=named, loss=loss, **ONCE).fit(X[:20], y[:20])
    assert not all(once(read(labels)) for labels in free.predict(X))
    rule = at_most_once(KIND)
    constraints = rule if named is None else [named, rule]
    model = SequenceLabeler(constraints=constraints, loss=loss, **ONCE).fit([X[k] for k in rows], [y[k] for k in rows])
    found = model.predict(X)
    assert all(once(read(labels)) for labels in found)
    alone = free.predict(X, constraints=rule)
    assert all(once(read(labels)) for labels in alone)
    for mine, its in zip(alone, free.predict(X), strict=True):
        assert mine == its or not once(read(its))
    assert all(once(read(labels)) for ranked in model.predict_kbest(X[:5], 4) for labels, _ in ranked)
    for again in (pickle.loads(pickle.dumps(model)), structsvm.load(saved(model))):
        assert again.predict(X) == found
        assert again.predict_kbest(X[:2], 3) == model.predict_kbest(X[:2], 3)


def saved(model):
    file = io.BytesIO()
    model.save(file)
    return file.getvalue()


@pytest.mark.parametrize(
    ("form", "constraints", "holds"),
    [
        ("bio", f"[^B-{KIND}]* (B-{KIND} [^B-{KIND}]*)?", lambda y: y.count(f"B-{KIND}") <= 1),
        ("bio", ["bio", max_length(KIND, 1)], lambda y: f"I-{KIND}" not in y),
        ("bio", before(f"B-{KINDS[0]}", f"B-{KINDS[1]}"), lambda y: stands_before(y, *(f"B-{k}" for k in KINDS[:2]))),
        ("bioes", f"[^S-{KIND}]*", lambda y: f"S-{KIND}" not in y),
        ("spans", f"before({KINDS[0]}, {KINDS[1]})", lambda spans: stands_before(types(spans), *KINDS[:2])),
        ("runs", f"[^{KINDS[0]}]* ({KINDS[0]}+ [^{KINDS[0]}]*)?", lambda y: types(runs(y)).count(KINDS[0]) <= 1),
    ],
    ids=["expression", "scheme and rule", "labels", "tags", "spans", "runs"],
)
def test_constraints_by_the_users_labels(form, constraints, holds):
    y = FORMS[form][0]
    free = SequenceLabeler(loss="log", **ONCE).fit(X, y)
    assert not all(map(holds, free.predict(X)))
    found = free.predict(X, constraints=constraints)
    assert all(map(holds, found))
    model = SequenceLabeler(constraints=constraints, broken="predict", loss="log", **ONCE).fit(X, y)
    np.testing.assert_array_equal(model.model_.weights, free.model_.weights)
    assert model.predict(X) == found
    assert structsvm.load(saved(model)).predict(X) == found


def stands_before(labels, first, then):
    return then not in labels or first in labels[: labels.index(then)]


def test_marginals_are_those_of_valid_segments():
    model = SequenceLabeler(loss="log", **ONCE).fit(X, SPANS)
    x, rule = [X[0][:3]], at_most_once(KIND)
    ranked = model.predict_kbest(x, 10**5, constraints=rule)[0]
    every = model.predict_kbest(x, 10**5)[0]
    assert [spans for spans, _ in ranked] == [spans for spans, _ in every if once(spans)]
    assert 1 < len(ranked) < len(every)
    p = np.exp([score for _, score in ranked])
    p /= p.sum()
    found = model.predict_marginals(x, constraints=rule)[0]
    single = list(model.classes_).index(f"S-{KIND}")
    for t in range(3):
        share = sum(q for q, (spans, _) in zip(p, ranked, strict=True) if (t, t + 1, KIND) in spans)
        assert found[t, single] == pytest.approx(share, abs=1e-5)
    for span in model.predict_spans(x, probabilities=True)[0]:
        assert 0.0 < span[3] <= 1.0


def test_tables_are_about_classes():
    model = SequenceLabeler(**ONCE).fit(X, Y)
    k = len(model.classes_)
    even = Automaton([[1] * k, [0] * k], [True, False])
    assert len(model.predict([X[0][:2]], constraints=even)[0]) == 2
    pairs = [x[:2] for x in X if len(x) > 1], [y[:2] for y in Y if len(y) > 1]
    ruled = SequenceLabeler(constraints=even, **ONCE).fit(*pairs)
    again = structsvm.load(saved(ruled))
    for one in (ruled, again):
        with pytest.raises(ValueError, match=r"sequence 1: the constraints allow no labelling of length 3, .* 2 and 4"):
            one.predict([X[0][:2], (X[0] * 3)[:3]])
    ruled.set_params(warm_start=True).fit(*pairs)
    with pytest.raises(ValueError, match="trained with another 'constraints'"):
        ruled.set_params(constraints=None).fit(*pairs)


def test_own_constraints_hold_beside_those_of_a_prediction():
    model = SequenceLabeler(constraints=max_length(KIND, 2), broken="predict", **ONCE).fit(X, SPANS)
    for spans in model.predict(X, constraints=exactly_one(KIND)):
        assert types(spans).count(KIND) == 1
        assert all(stop - start <= 2 for start, stop, kind in spans if kind == KIND)
    assert model.predict(X, constraints="bio") == model.predict(X)


def test_labels_known_in_part():
    rows = [k for k in range(60) if once(SPANS[k])]
    some = [[None if t % 2 else label for t, label in enumerate(Y[k])] for k in rows]
    for loss in ("log", "hamming"):
        model = SequenceLabeler(constraints=at_most_once(KIND), loss=loss, **ONCE).fit([X[k] for k in rows], some)
        assert all(once(BIO.chunks(labels)) for labels in model.predict(X))
    twice = [f"B-{KIND}", None, f"B-{KIND}"]
    both = [f"B-{KIND}", f"B-{KIND}", None]
    for labels, t in ((twice, 2), (both, 1)):  # a label of the data, named once
        told = rf"sequence 0: what y tells contradicts the constraints: .* up to token {t} \('B-{KIND}'\)"
        with pytest.raises(ValueError, match=told):
            SequenceLabeler(constraints=at_most_once(KIND), loss="log", **ONCE).fit([X[0][:1] * 3, *X], [labels, *Y])


def test_rules_that_are_too_large_together():
    rng = np.random.default_rng(0)
    kinds = [f"K{k}" for k in range(16)]
    y = [[(t, t + 1, kind) for t, kind in enumerate(rng.choice(kinds, 6).tolist())] for _ in range(80)]
    words = [[[kind if rng.random() < 0.7 else "?"] for _, _, kind in spans] for spans in y]
    rule = at_most_once(*kinds)
    model = SequenceLabeler(constraints=rule, broken="predict", **ONCE).fit(words, y)
    found = model.predict(words)
    assert any(len({*types(spans)}) < len(spans) for spans in SequenceLabeler(**ONCE).fit(words, y).predict(words))
    assert all(len({*types(spans)}) == len(spans) for spans in found)
    assert structsvm.load(saved(model)).predict(words) == found
    with pytest.raises(ValueError, match=r"16 rules whose automaton .* only the best labelling can be found"):
        model.predict_kbest(words, 2)
    valid = [pair for pair in zip(words, y, strict=True) if len({*types(pair[1])}) == 6]
    with pytest.raises(ValueError, match=r"16 rules .* too many for training with whole segments: broken='pre"):
        SequenceLabeler(constraints=rule, **ONCE).fit(*zip(*valid, strict=True))


# ---- errors --------------------------------------------------------------------------------------


def test_data_that_break_a_rule():
    broken = next(k for k, spans in enumerate(SPANS) if not once(spans))
    with pytest.raises(
        ValueError, match=rf"sequence {broken}: the rule at_most_once\({KIND}\) does not allow its label 'B-{KIND}' at"
    ):
        SequenceLabeler(constraints=at_most_once(KIND), **ONCE).fit(X, Y)


@pytest.mark.parametrize(
    ("form", "constraints", "wanted"),
    [
        ("bio", f"E-{KIND}*", "is none of the labels"),
        ("bio", at_most_once("NOPE"), r"at_most_once\(NOPE\): 'NOPE' is none of the labels"),
        ("bio", Automaton([[0]], [True]), r"the automaton has 1 labels, the model \d+"),
        ("bio", ["O", exactly_one(KIND)], "no sequence of the labels meets the rule exactly_one"),
        ("bio", "nope", "'nope' is no scheme"),
        ("bio", (None, None, None), "segments=True has masks of its own: .*, or a list of these and of masks"),
        ("iob1", ["iob1", f"[^B-{KIND}]*"], "labels of IOB1 depend on the segments beside their own"),
        ("iob1", ["iob1", before(f"I-{KIND}", f"B-{KIND}")], "use rules about the types"),
    ],
)
def test_constraints_that_are_none(form, constraints, wanted):
    with pytest.raises(ValueError, match=wanted):
        SequenceLabeler(constraints=constraints, broken="predict", **ONCE).fit(X, FORMS[form][0])


def test_forged_files(tmp_path):
    SequenceLabeler(constraints=at_most_once(KIND), broken="predict", **ONCE).fit(X, Y).save(tmp_path / "m")
    file = read_model(tmp_path / "m")
    table, ends = (file.arrays[f"oracle.language.{name}"] for name in ("following", "accepting"))
    for name, forged in [
        ("following", np.where(table == table.max(), len(table), table)),
        ("following", np.where(table == 0, -2, table)),
        ("following", table[:, 1:]),
        ("following", table[1:]),
        ("accepting", ends[1:]),
        ("accepting", np.zeros_like(ends)),
    ]:
        arrays = file.arrays | {f"oracle.language.{name}": forged}
        write_model(tmp_path / "n", file.kind, file.meta, arrays)
        with pytest.raises(ModelFileError, match="n: not a sound sequence model"):
            structsvm.load(tmp_path / "n")
