"""`SequenceLabeler` under rules, expressions and automata: validity, training, files, errors."""

import io
import itertools
import pickle
import re
import warnings

import numpy as np
import pytest

import structsvm
from structsvm import AdviceWarning
from structsvm.datasets import make_sequences
from structsvm.model_file import ModelFileError, read_model, write_model
from structsvm.risk import ConformalSpans, LossController
from structsvm.structures.languages import Automaton, at_most_once, automaton, before, exactly_one, max_length
from structsvm.structures.languages.automaton import MOST_STATES
from structsvm.tasks import SequenceLabeler
from structsvm.tasks.sequence import model as sequence_model

ONCE = {"C": 0.1, "max_iter": 3, "probability": False, "random_state": 0}
X, Y = make_sequences(60, n_labels=5, n_words=50, mean_length=6.0, random_state=0)
LABELS = sorted({label for y in Y for label in y})
MANY = [str(k) for k in range(20)]


def chunks(y):
    return structsvm.metrics.Scheme("bio").chunks(y)


def types(y):
    return [kind for _, _, kind in chunks(y)]


def kept(holds):
    """The sequences whose labels meet a condition."""
    pairs = [(x, y) for x, y in zip(X, Y, strict=True) if holds(y)]
    return [x for x, _ in pairs], [y for _, y in pairs]


def is_bio(y):
    return structsvm.metrics.Scheme("bio").repaired(y) == y


KIND = types(next(y for y in Y if types(y)))[0]
RULES = {
    "a rule": (at_most_once(KIND), lambda y: types(y).count(KIND) <= 1),
    "a rule as text": (f"at_most_once({KIND})", lambda y: types(y).count(KIND) <= 1),
    "an expression": (f"[^B-{KIND}]* (B-{KIND} [^B-{KIND}]*)?", lambda y: y.count(f"B-{KIND}") <= 1),
    "several": (["bio", max_length(KIND, 1)], lambda y: is_bio(y) and f"I-{KIND}" not in y),
}


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("loss", ["hamming", "zero_one", "log"])
@pytest.mark.parametrize("kind", RULES)
def test_predictions_are_valid(kind, loss, order):
    constraints, holds = RULES[kind]
    free = SequenceLabeler(loss=loss, order=order, **ONCE).fit(X[:20], Y[:20])
    assert not all(map(holds, free.predict(X)))
    model = SequenceLabeler(constraints=constraints, loss=loss, order=order, **ONCE).fit(*kept(holds))
    found = model.predict(X)
    assert all(map(holds, found))
    alone = free.predict(X, constraints=constraints)
    assert all(map(holds, alone))
    for mine, its in zip(alone, free.predict(X), strict=True):
        assert mine == its or not holds(its)
    assert all(holds(y) for ranked in model.predict_kbest(X[:5], 4) for y, _ in ranked)
    assert all(holds(y) for ranked in free.predict_kbest(X[:5], 4, constraints=constraints) for y, _ in ranked)
    for again in (pickle.loads(pickle.dumps(model)), structsvm.load(saved(model))):
        assert again.predict(X) == found
    assert structsvm.load(saved(model), predictor=True).predict(X) == found


def saved(model):
    file = io.BytesIO()
    model.save(file)
    return file.getvalue()


def test_marginals_are_those_of_valid_labellings():
    model = SequenceLabeler(loss="log", **ONCE).fit(X, Y)
    x, n = X[:1], 3
    x = [x[0][:n]]
    rule = at_most_once(KIND)
    ranked = model.predict_kbest(x, 10**5, constraints=rule)[0]
    assert len(ranked) == sum(types(y).count(KIND) <= 1 for y in all_labellings(n))
    p = np.exp([score for _, score in ranked])
    p /= p.sum()
    expected = [
        [sum(q for q, (y, _) in zip(p, ranked, strict=True) if y[t] == label) for label in model.classes_]
        for t in range(n)
    ]
    assert model.predict_marginals(x, constraints=rule)[0] == pytest.approx(np.array(expected), abs=1e-5)


def all_labellings(n):
    return itertools.product(LABELS, repeat=n)


@pytest.mark.parametrize("constraints", ["bio", ["bio"], [["masks"], "bio"]])
def test_local_rules_are_masks(constraints):
    """Masks are used where they suffice, with the same bits."""
    if isinstance(constraints, list) and isinstance(constraints[0], list):
        ones = np.ones((len(LABELS),) * 2, dtype=bool)
        constraints = [(ones, None, None), "bio"]
    by_name = SequenceLabeler(constraints="bio", **ONCE).fit(X, Y)
    model = SequenceLabeler(constraints=constraints, **ONCE).fit(X, Y)
    assert model.model_.oracle.language is None
    np.testing.assert_array_equal(model.model_.weights, by_name.model_.weights)
    for mine, its in zip(model.model_.oracle.allowed, by_name.model_.oracle.allowed, strict=True):
        np.testing.assert_array_equal(mine, its)


def test_own_constraints_hold_beside_those_of_a_prediction():
    model = SequenceLabeler(constraints="bio", **ONCE).fit(X, Y)
    for y in model.predict(X, constraints=exactly_one(KIND)):
        assert types(y).count(KIND) == 1
        assert is_bio(y)


def test_tables():
    model = SequenceLabeler(**ONCE).fit(X, Y)
    k = len(LABELS)
    even = Automaton([[1] * k, [0] * k], [True, False])
    assert len(model.predict([X[0][:2]], constraints=even)[0]) == 2
    pairs = [x[:2] for x in X if len(x) > 1], [y[:2] for y in Y if len(y) > 1]
    ruled = SequenceLabeler(constraints=even, **ONCE).fit(*pairs)
    again = structsvm.load(saved(ruled))
    assert again.get_params()["constraints"] == even
    for one in (ruled, again):
        with pytest.raises(ValueError, match=r"sequence 1: the constraints allow no labelling of length 3, .* 2 and 4"):
            one.predict([X[0][:2], (X[0] * 3)[:3]])
    ruled.set_params(warm_start=True).fit(*pairs)
    with pytest.raises(ValueError, match="trained with another 'constraints'"):
        ruled.set_params(constraints=None).fit(*pairs)


def test_labels_of_a_scheme_among_others():
    X = [["red", "onion", ",", "sea", "salt"], ["salt"]]
    y = [["B-NAME", "I-NAME", "SEP", "B-NAME", "I-NAME"], ["B-NAME"]]
    rules = [before("B-NAME", "I-NAME", since="SEP"), max_length("NAME", 2), at_most_once("NAME", since="SEP")]
    model = SequenceLabeler(constraints=rules, **ONCE).fit(X, y)
    for row, _ in model.predict_kbest([["red", "onion", "salt"]], 100)[0]:
        for part in " ".join(row).split("SEP"):
            assert part.split() in ([], ["B-NAME"], ["B-NAME", "I-NAME"])
    assert (
        len(model.predict_kbest([["red", "onion", "salt"]], 100)[0]) == 7
    )  # one of BI S, S BI, B S B, with one B three, none


# ---- rules that are too many for one automaton ----------------------------------------------------


def numbers():
    """Sequences of numbers, which are their labels, noisy, some of them twice."""
    rng = np.random.default_rng(0)
    y = [rng.choice(MANY, 8).tolist() for _ in range(80)]
    return [[[f"w{label}", f"v{rng.integers(3)}"] if rng.random() < 0.8 else ["?"] for label in row] for row in y], y


def test_lazily():
    X, y = numbers()
    rule = at_most_once(*MANY)
    model = SequenceLabeler(constraints=rule, broken="predict", loss="log", **ONCE).fit(X, y)
    free = SequenceLabeler(loss="log", **ONCE).fit(X, y)
    np.testing.assert_array_equal(model.model_.weights, free.model_.weights)
    found = model.predict(X)
    assert found == free.predict(X, constraints=rule)
    assert all(is_once(row) for row in found)
    # The best of all, by the first valid one of the k best.
    for x, row in zip(X[:20], found[:20], strict=True):
        assert row == next(one for one, _ in free.predict_kbest([x], 2000)[0] if is_once(one))
    assert model.predict([*X[:3], [], X[3]]) == [*found[:3], [], found[3]]
    allowed = [[MANY[:3], *[None] * 7]]
    assert model.predict(X[:1], allowed=allowed)[0][0] in MANY[:3]
    for again in (structsvm.load(saved(model)), structsvm.load(saved(model), predictor=True)):
        assert again.predict(X) == found
    for verb in (model.predict_marginals, model.decision_function, lambda X: model.predict_kbest(X, 2)):
        with pytest.raises(ValueError, match=f"are 20 rules whose automaton has more than {MOST_STATES} states"):
            verb(X)


def test_tables_that_are_too_many_come_back_from_files():
    """As rules do: a model that is trained anew has all of them."""
    X, y = numbers()
    labels = sorted({label for row in y for label in row})
    tables = [Automaton(*table_of_once(k, len(labels))) for k in range(len(labels))]
    model = SequenceLabeler(constraints=tables, broken="predict", loss="hamming", **ONCE).fit(X, y)
    again = structsvm.load(saved(model))
    assert len(again.constraints) == len(tables) + 1
    found = again.fit(X, y).predict(X)
    assert found == model.predict(X) and all(map(is_once, found))


def table_of_once(label, n):
    """The automaton of sequences in which one run at most has a label."""
    others = np.arange(n) != label
    return np.stack([np.where(others, 0, 1), np.where(others, 2, 1), np.where(others, 2, -1)]), np.ones(3, dtype=bool)


@pytest.mark.parametrize(
    "name", ['it\'s "both"', "at_most_once"], ids=["quotation marks of both kinds", "a rule's name"]
)
def test_labels_that_no_text_of_a_rule_names(name):
    """The file has the automaton of the rule."""
    X = [[f"w{k % 3}", "x", f"w{k % 2}"] for k in range(12)]
    y = [[name, "O", "O"] if k % 2 else ["O", "O", name] for k in range(12)]
    model = SequenceLabeler(constraints=at_most_once(name), **ONCE).fit(X, y)
    again = structsvm.load(saved(model))
    assert again.predict(X) == model.predict(X) and isinstance(again.constraints, Automaton)
    assert all(row.count(name) <= 1 for row in again.fit(X, y).predict([["w1"] * 5]))


def is_once(row):
    return all(len(list(runs)) == 1 for _, runs in itertools.groupby(sorted(k for k, _ in itertools.groupby(row))))


def test_rules_that_are_too_many():
    """Training compares with valid labellings alone; what needs sums is refused, and no log loss is tried."""
    X, y = numbers()
    valid = [k for k, row in enumerate(y) if is_once(row)]
    own = [X[k] for k in valid], [y[k] for k in valid]
    rule = at_most_once(*MANY)
    with pytest.raises(ValueError, match=r"20 rules .* too many for the log loss.*the first 9 together have 2816"):
        SequenceLabeler(constraints=rule, loss="log", **ONCE).fit(*own)
    with pytest.raises(ValueError, match=r"20 rules .* too many for labels that are known in part"):
        SequenceLabeler(constraints=rule, **ONCE).fit(own[0], [[None, *own[1][0][1:]], *own[1][1:]])
    ruled = SequenceLabeler(constraints=rule, **ONCE).fit(*own)
    later = SequenceLabeler(constraints=rule, broken="predict", loss="hamming", **ONCE).fit(*own)
    assert ruled.result_.primal < later.result_.primal and ruled.result_.gap <= later.result_.primal
    assert all(map(is_once, ruled.predict(X))) and ruled.temperature_ is None
    assert structsvm.load(saved(ruled)).predict(X) == ruled.predict(X)
    for asked in (ruled.predict_marginals, lambda X: ruled.predict_kbest(X, 2), lambda _: ruled.calibrate(*own)):
        with pytest.raises(ValueError, match=f"are 20 rules whose automaton has more than {MOST_STATES} states"):
            asked(X)
    chosen = SequenceLabeler(constraints=rule, C="auto", random_state=0).fit(*own)
    assert chosen.model_.loss == "hamming" and all(map(is_once, chosen.predict(X)))
    first = next(k for k, row in enumerate(y) if not is_once(row))
    with pytest.raises(ValueError, match=rf"sequence {first}: the rule at_most_once\(\d+\) does not allow its label"):
        SequenceLabeler(constraints=rule, **ONCE).fit(X, y)


@pytest.mark.parametrize("options", [{"C": "auto"}, {"C": 1.0, "solver": "cutting_plane", "order": 2}], ids=str)
def test_records_that_break_too_many_rules_at_once(options, monkeypatch):
    """They are trained with a warning, and a certificate that says so; predictions keep all rules."""
    monkeypatch.setattr(automaton, "MOST_STATES", 64)
    rng = np.random.default_rng(0)
    runs = [[f"L{k}" for k in rng.permutation(8).repeat(2)] for _ in range(24)]
    tokens = [[[f"w{k}"] for k in rng.permutation(np.arange(8).repeat(2))] for _ in runs]
    rule = at_most_once(*[f"L{k}" for k in range(8)])
    labeler = SequenceLabeler(constraints=rule, random_state=0, **options)
    with pytest.warns(AdviceWarning) as said:
        labeler.fit(tokens, runs)
    words = (
        r"of 24 sequences \(the first: sequence \d+, of length 16\) break so many of the 8 rules .* the first 4 rules"
    )
    assert any(re.search(words, str(own.message)) for own in said)
    assert "of the relaxed problem" in labeler.result_.certificate() and labeler.result_.gap >= 0.0
    found = []
    for model in (labeler, structsvm.load(saved(labeler)), structsvm.load(saved(labeler), predictor=True)):
        with pytest.warns(AdviceWarning, match=r"of 24 sequences break so many of the 8 rules"):
            found.append(model.predict(tokens))
    assert all(map(is_once, found[0])) and found[0] == found[1] == found[2]


def test_long_records_under_rules_for_predictions(monkeypatch):
    """Whole segments, too, and rows of numbers."""
    monkeypatch.setattr(automaton, "MOST_STATES", 64)
    rng = np.random.default_rng(0)
    y = [[f"L{k}" for k in rng.integers(8, size=12)] for _ in range(20)]
    rows = [np.eye(8)[[int(label[1]) for label in row]] + rng.normal(size=(12, 8)) / 9.0 for row in y]
    rule = at_most_once(*[f"L{k}" for k in range(8)])
    for model in (
        SequenceLabeler(C=1.0, random_state=0).fit(rows, y),
        SequenceLabeler(C=1.0, segments=True, random_state=0).fit([[[label] for label in row] for row in y], y),
    ):
        X = rows if model.model_.segments is None else [[[label] for label in row] for row in y]
        with pytest.warns(AdviceWarning, match=r"of 20 sequences break so many of the 8 rules"):
            found = model.predict(X, constraints=rule)
        assert all(map(is_once, found))


def runs_of_eight(n):
    """Records with one run of each of eight labels, whose words are out of order."""
    rng = np.random.default_rng(0)
    runs = [[f"L{k}" for k in rng.permutation(8).repeat(2)] for _ in range(n)]
    return [[[f"w{k}"] for k in rng.permutation(np.arange(8).repeat(2))] for _ in runs], runs


OF_EIGHT = at_most_once(*[f"L{k}" for k in range(8)])


@pytest.mark.parametrize("threads_read", [False, True])
def test_one_warning_however_many_threads(threads_read, monkeypatch):
    """With the numbers of all sequences; and none before an error."""
    monkeypatch.setattr(automaton, "MOST_STATES", 64)
    monkeypatch.setattr(sequence_model, "LEAST_SHARED", 0)
    if threads_read:
        monkeypatch.setattr(sequence_model, "LEAST_READ", 0)
    X, _ = runs_of_eight(24)
    model = SequenceLabeler(C=1.0, random_state=0).fit(
        [[word] for x in X for word in x], [[f"L{w[0][1]}"] for x in X for w in x]
    )
    X = [*X, [], *X]
    found, said = [], []
    for n_jobs in (1, 3):
        with warnings.catch_warnings(record=True) as own:
            warnings.simplefilter("always")
            found.append(model.set_params(n_jobs=n_jobs).predict(X, constraints=OF_EIGHT))
        said.append([str(one.message) for one in own])
    assert found[0] == found[1] and said[0] == said[1] and len(said[0]) == 1
    assert "of 48 sequences break so many" in said[0][0]
    bad = [None] * 48 + [[["L0"], *[None] * 14, ["L1"]]]
    bad[48] = [["L0"], ["L1"], ["L0"], *[None] * 13]
    with pytest.raises(ValueError, match=r"^sequence 48: "):
        model.predict(X, allowed=bad, constraints=OF_EIGHT)


@pytest.mark.parametrize("segments", [False, True])
def test_rules_that_are_given_twice_count_once(segments, monkeypatch):
    monkeypatch.setattr(automaton, "MOST_STATES", 64)
    X, y = runs_of_eight(6)
    X, y = [[[f"w{label[1]}"] for label in row[::2]] for row in y], [row[::2] for row in y]
    model = SequenceLabeler(C=1.0, constraints=OF_EIGHT, broken="predict", segments=segments, random_state=0).fit(X, y)
    bad = [[[f"w{k}"] for k in [*range(8), *range(8)]]]
    said = []
    for constraints in (None, OF_EIGHT, at_most_once(*[f"L{k}" for k in range(7)])):
        with pytest.warns(AdviceWarning, match="break so many of the 8 rules") as own:
            assert is_once(model.predict(bad, constraints=constraints)[0])
        said.append(len(own))
    assert said == [1, 1, 1]


def test_choosing_C_under_too_many_rules_warns_once(monkeypatch):
    monkeypatch.setattr(automaton, "MOST_STATES", 64)
    with pytest.warns(AdviceWarning) as said:
        SequenceLabeler(constraints=OF_EIGHT, random_state=0, max_iter=3).fit(*runs_of_eight(24))
    words = [str(own.message) for own in said if "break so many" in str(own.message)]
    assert len(words) == 1 and "training has compared these sequences" in words[0]


def test_spans_with_probabilities_are_refused_before_they_are_searched(monkeypatch):
    X, y = numbers()
    model = SequenceLabeler(constraints=at_most_once(*MANY), broken="predict", loss="log", **ONCE).fit(X, y)
    monkeypatch.setattr(sequence_model, "decoded", lambda *_, **__: pytest.fail("labels were searched"))
    for least in (None, 0.5):
        with pytest.raises(ValueError, match=f"are 20 rules whose automaton has more than {MOST_STATES} states"):
            model.predict_spans(X, probabilities=True, least=least)


def test_probabilities_under_rules_that_are_too_many():
    """`probability=True` trains without; predictors and promises about parts name the rules as the reason."""
    X, y = numbers()
    X, y = ([own[k] for k, row in enumerate(y) if is_once(row)] for own in (X, y))
    rule, says = at_most_once(*MANY), f"are 20 rules whose automaton has more than {MOST_STATES} states"
    margin = SequenceLabeler(constraints=rule, loss="hamming", **ONCE | {"probability": True}).fit(X, y)
    log = SequenceLabeler(constraints=rule, broken="predict", loss="log", **ONCE).fit(X, y)
    assert margin.temperature_ is None and log.temperature_ == 1.0
    for model in (margin, log):
        only = structsvm.load(saved(model), predictor=True)
        assert not only.has_probabilities and only.predict(X) == model.predict(X)
        for found in (model, structsvm.load(saved(model)), only):
            with pytest.raises(ValueError, match=says):
                found.predict_marginals(X)
        for promise in (LossController(model, alpha=0.3), ConformalSpans(model, alpha=0.3)):
            with pytest.raises((TypeError, ValueError), match=says):
                promise.calibrate(X, y)


# ---- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("constraints", "wanted"),
    [
        ("nope", "'nope' is no scheme .* and none of the labels"),
        (f"B-{KIND} (O", r"the expression .* at character \d+: expected a \)"),
        ("O B-NOPE", "at character 3: 'B-NOPE' is none of the labels"),
        (at_most_once("NOPE"), r"at_most_once\(NOPE\): 'NOPE' is none of the labels"),
        ([], "is an empty list"),
        ([3], "a constraint is a scheme, a rule, an expression, an Automaton or three masks, got int"),
        (Automaton([[0]], [True]), r"the automaton has 1 labels, the model \d"),
        ("(.* O .{20})", r"the expression '\(\.\* O \.\{20\}\)': its automaton has more than 4096 states"),
        ("O{9999}", r"the expression 'O\{9999\}': it has more than 4096 labels"),
        (["O", exactly_one(KIND)], "no sequence of the labels meets the rule exactly_one"),
        ("O{0}", "no sequence of the labels meets the expression"),
        ([(np.ones(2, dtype=bool), None, None)], "a mask must be a bool array"),
        ([("a", "b")], "three masks"),
        (3, "The 'constraints' parameter of SequenceLabeler must be"),
    ],
)
def test_constraints_that_are_none(constraints, wanted):
    with pytest.raises(ValueError, match=wanted):
        SequenceLabeler(constraints=constraints, **ONCE).fit(X, Y)


def test_data_that_break_a_rule():
    broken = next(k for k, y in enumerate(Y) if types(y).count(KIND) > 1)
    rules = [before(f"B-{KIND}", f"I-{KIND}"), at_most_once(KIND)]
    with pytest.raises(
        ValueError, match=rf"sequence {broken}: the rule at_most_once\({KIND}\) does not allow its label 'B-{KIND}' at"
    ):
        SequenceLabeler(constraints=rules, **ONCE).fit(X, Y)
    model = SequenceLabeler(constraints=rules, broken="predict", **ONCE).fit(X, Y)
    assert all(types(y).count(KIND) <= 1 for y in model.predict(X))
    with pytest.raises(ValueError, match="broken='repair' needs constraints='bio'"):
        SequenceLabeler(constraints=rules, broken="repair", **ONCE).fit(X, Y)


def test_inference_that_takes_no_rules():
    with pytest.raises(ValueError, match="inference='greedy' takes constraints that speak of neighbouring"):
        SequenceLabeler(constraints=at_most_once(KIND), inference="greedy", **ONCE).fit(X, Y)
    greedy = SequenceLabeler(inference="greedy", **ONCE).fit(X, Y)
    with pytest.raises(ValueError, match="a model with inference='greedy'"):
        greedy.predict(X, constraints=at_most_once(KIND))
    assert all(map(is_bio, greedy.predict(X, constraints="bio")))
    words, numbered = numbers()
    greedy = SequenceLabeler(inference="greedy", **ONCE).fit(words, numbered)
    with pytest.raises(ValueError, match="a model with inference='greedy'"):
        greedy.predict(words, constraints=at_most_once(*MANY))


def test_labels_known_in_part():
    rule = at_most_once(KIND)
    X, y = kept(lambda y: types(y).count(KIND) <= 1)
    some = [[None if t % 2 else label for t, label in enumerate(row)] for row in y]
    for loss in ("log", "hamming"):
        model = SequenceLabeler(constraints=rule, loss=loss, **ONCE).fit(X, some)
        assert all(types(row).count(KIND) <= 1 for row in model.predict(X))
    twice = [f"B-{KIND}", None, f"B-{KIND}"]
    with pytest.raises(ValueError, match="sequence 0: what y tells contradicts the constraints"):
        SequenceLabeler(constraints=at_most_once(KIND), loss="log", **ONCE).fit([X[0][:1] * 3, *X], [twice, *y])


def test_forged_files(tmp_path):
    X, y = numbers()
    few, many = at_most_once("0", "1"), at_most_once(*MANY)
    for rules, part in ((few, "language"), (many, "rules")):
        SequenceLabeler(constraints=rules, broken="predict", **ONCE).fit(X, y).save(tmp_path / "m")
        file = read_model(tmp_path / "m")
        table, ends = (file.arrays[f"oracle.{part}.{name}"] for name in ("following", "accepting"))
        for name, forged in [
            ("following", np.where(table == table.max(), len(table), table)),
            ("following", np.where(table == 0, -2, table)),
            ("following", table[:, 1:]),
            ("following", table[1:]),
            ("accepting", ends[1:]),
            *([("accepting", np.zeros_like(ends))] if part == "language" else []),
            *([("starts", file.arrays["oracle.rules.starts"][1:])] if part == "rules" else []),
        ]:
            write_model(tmp_path / "n", file.kind, file.meta, file.arrays | {f"oracle.{part}.{name}": forged})
            for options in ({}, {"predictor": True}):
                with pytest.raises(ModelFileError, match="n: not a sound sequence model"):
                    structsvm.load(tmp_path / "n", **options)


@pytest.mark.parametrize("language", ["(s | t) c", "t{2} | c s c s"], ids=["masks", "an automaton"])
def test_lengths_that_are_impossible_are_said_of_the_right_sequence(language):
    """Sequences without tokens count; whether the constraints are masks makes no difference."""
    x, y = [["a", "b", "c"], ["b", "c"]] * 4, [["s", "t", "c"], ["t", "c"]] * 4
    model = SequenceLabeler(C=1.0, random_state=0).fit(x, y)
    asked = [[], ["a", "b"], [], ["a", "b", "c"], ["a", "b"]]
    one = r"sequence 3: the constraints allow no labelling of length 3, the number of its tokens \(the nearest: 2"
    rows = SequenceLabeler(C=1.0, constraints=None, random_state=0).fit([np.eye(3), np.eye(3)[:2]] * 4, y)
    for verb in (
        model.predict,
        lambda X, **given: model.predict_kbest(X, 2, **given),
        model.predict_marginals,
        lambda X, **given: rows.predict([np.eye(3)[: len(own)] for own in X], **given),
        model.set_params(n_jobs=2).predict,
    ):
        with pytest.raises(ValueError, match=one):
            verb(asked, constraints=language)
    kept = SequenceLabeler(C=1.0, constraints="(s | t)* c", random_state=0).fit(x, y)
    for own in (kept, structsvm.load(saved(kept)), structsvm.load(saved(kept), predictor=True)):
        assert own.predict([[], ["a"]])[0] == []
    with pytest.raises(ValueError, match=r"sequence 1: the masks leave no labelling"):
        kept.predict([[], ["a"]], allowed=[None, [["s"]]])


def test_rules_of_too_many_repetitions_are_named():
    with pytest.raises(ValueError, match=r"constraints: the rule max_length\(\S+, 100000\): it has more than"):
        SequenceLabeler(constraints=max_length(KIND, 100000), **ONCE).fit(X, Y)


@pytest.mark.parametrize("is_list", [False, True])
def test_files_of_before_have_rules_that_are_called_as_labels_are(is_list, tmp_path, monkeypatch):
    """Their texts were rules alone, so that such a model goes on learning; a text that one gives is refused."""
    X, y = [["a", "b", "c"]] * 4, [["before", "N", "O"]] * 4
    rule = before("before", "N")
    first = SequenceLabeler(C=1.0, constraints=[rule] if is_list else rule).fit(X, y)
    monkeypatch.setattr(sequence_model, "stored_constraints", lambda *_: [str(rule)] if is_list else str(rule))
    first.save(tmp_path / "old")
    monkeypatch.undo()
    model = structsvm.load(tmp_path / "old")
    assert model.teach(X[0], y[0]).constraints == first.constraints
    with pytest.raises(ValueError, match="may be the rule"):
        SequenceLabeler(C=1.0, constraints=str(rule)).fit(X, y)
    model.save(tmp_path / "new")
    assert structsvm.load(tmp_path / "new").partial_fit(X, y).predict(X) == y
