"""`SequenceLabeler` on labels in all schemes: constraints, segments, the choice of C, and files."""

from itertools import pairwise

import pytest

import structsvm
from structsvm.datasets import make_sequences
from structsvm.metrics import Scheme, chunk_f1, chunk_f1_scorer, token_accuracy
from structsvm.metrics._schemes import Runs
from structsvm.tasks import SequenceLabeler

ROWS, IN_BIO = make_sequences(60, n_words=60, random_state=0)
X = [[{"word": word, "pos": tag} for word, tag in sentence] for sentence in ROWS]
CHUNKS = [Scheme("bio").chunks(labels) for labels in IN_BIO]
FORMS = {
    "iob1": Scheme("iob1"),
    "ioe1": Scheme("ioe1"),
    "ioe2": Scheme("ioe2"),
    "IOBES": Scheme("bioes", "_"),
    "BILUO": Scheme("bilou", "-", is_suffix=True),
    "bmeos": Scheme("bmes", "_", is_suffix=True),
    "BMEWO": Scheme("bmewo"),
}
EVERY = pytest.mark.parametrize("name", FORMS)
ONCE = {"C": 0.05, "random_state": 0, "max_iter": 2}


def written(name, chunks=CHUNKS):
    return [FORMS[name].labels(its, len(x)) for its, x in zip(chunks, X, strict=True)]


@EVERY
@pytest.mark.parametrize("inference", ["exact", "greedy"])
def test_constraints_are_never_broken(name, inference):
    scheme, y = FORMS[name], written(name)
    model = SequenceLabeler(constraints=name, inference=inference, **ONCE).fit(X, y)
    found = model.predict([x[::-1] for x in X])
    for labels in found:
        parts = list(map(scheme.part, labels))
        assert all(scheme.allows(a, b) for a, b in pairwise(parts))
        assert inference == "greedy" or scheme.repaired(labels) == labels
    assert model.model_.scheme == scheme


@EVERY
def test_repairs(name):
    y = written(name)
    k = next(k for k, its in enumerate(CHUNKS) if any(b - a > 2 for a, b, _ in its))
    kind, last = CHUNKS[k][0][2], FORMS[name].rules.roles[-1]
    broken = [list(labels) for labels in y]
    broken[k] = [FORMS[name].label(last, kind)] * len(y[k])
    repaired = [list(labels) for labels in y]
    repaired[k] = FORMS[name].repaired(broken[k])
    params = {"constraints": name, **ONCE}
    model = SequenceLabeler(broken="repair", **params).fit(X, broken)
    assert model.predict(X) == SequenceLabeler(**params).fit(X, repaired).predict(X)
    if repaired[k] != broken[k]:
        with pytest.raises(ValueError, match=f"sequence {k}: the constraints do not allow its label"):
            SequenceLabeler(**params).fit(X, broken)


@EVERY
def test_segments_are_those_of_spans(name, tmp_path):
    spans = SequenceLabeler(segments=True, **ONCE).fit(X, CHUNKS)
    constraints = name if name in ("iob1", "ioe1") else None  # the labels of the others tell the scheme
    model = SequenceLabeler(segments=True, constraints=constraints, **ONCE).fit(X, written(name))
    assert model.model_.weights.tobytes() == spans.model_.weights.tobytes()
    assert model.predict_spans(X) == spans.predict(X)
    assert model.predict(X) == written(name, spans.predict(X))
    assert model.score(X, written(name)) == token_accuracy(written(name), model.predict(X))
    model.save(tmp_path / "m")
    assert structsvm.load(tmp_path / "m").predict(X) == model.predict(X)
    assert model.model_.scheme == FORMS[name]
    some = [[label if t else None for t, label in enumerate(labels)] for labels in written(name)]
    assert SequenceLabeler(segments=True, constraints=constraints, **ONCE).fit(X, some).score(X, written(name)) > 0.5
    classes = sorted({label for labels in written(name) for label in labels})
    stream = SequenceLabeler(segments=True, constraints=constraints, random_state=0)
    assert stream.partial_fit(X, written(name), classes=classes).model_.scheme == FORMS[name]


@EVERY
@pytest.mark.filterwarnings("ignore:C = :structsvm.AdviceWarning")
def test_C_is_chosen_by_chunks(name):
    model = SequenceLabeler(max_iter=2, random_state=0, loss="hamming").fit(X, written(name))
    assert model.validation_["metric"] == "F1" and model.validation_["score"].max() > 0.3


@pytest.mark.parametrize("labels", [["NN", "VB"], ["B", "O"], ["B-1", "I-95"], ["PER", "O"]])
def test_labels_without_a_scheme_have_no_chunks(labels):
    X, y = [["a", "b"]] * 30, [labels] * 30
    model = SequenceLabeler(max_iter=2, random_state=0).fit(X, y)
    assert model.validation_["metric"] == "accuracy" and model.model_.scheme is None
    with pytest.raises(ValueError, match="no scheme of chunks"):
        chunk_f1_scorer(model, X, y)
    if labels in (["NN", "VB"], ["PER", "O"]):  # no tags: runs of labels
        assert SequenceLabeler(segments=True, max_iter=1).fit(X, y).model_.scheme == Runs()
        return
    with pytest.raises(ValueError, match="sequence 0, token 0: segments need labels of a scheme"):
        SequenceLabeler(segments=True).fit(X, y)


def test_folds_with_few_labels_have_the_scheme_of_all():
    X, y = [["a", "b"], ["b", "b"]] * 4, [["B", "I"], ["O", "O"]] * 4
    model = SequenceLabeler(C=1.0, random_state=0).fit(X, y)
    assert chunk_f1_scorer(model, [["a"]], [["B"]]) == chunk_f1([["B"]], model.predict([["a"]]), "bio") == 1.0
    assert chunk_f1_scorer(model, [["b"]], [["O"]]) == 0.0
