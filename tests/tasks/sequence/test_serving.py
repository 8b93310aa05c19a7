"""One sequence after the other through one model: what is computed once, and streams."""

import copy
import pickle
import sys
from itertools import islice

import numpy as np
import pytest
from cases import CASES

from structsvm.datasets import make_sequences
from structsvm.execution import products
from structsvm.metrics._schemes import Scheme
from structsvm.tasks import SequenceLabeler
from structsvm.tasks.common.likelihood import probable_weights
from structsvm.tasks.common.training import Job, train
from structsvm.tasks.sequence import estimator, phrases

X, Y = make_sequences(60, n_labels=3, n_words=50, mean_length=6.0, random_state=0)
MARGIN = {"C": 0.1, "loss": "hamming", "random_state": 0, "max_iter": 3}
CALIBRATED = {
    name: case
    for name, case in CASES.items()
    if case.kind.__name__ in ("SequenceLabeler", "GraphLabeler", "GrammarParser", "DependencyParser", "ItemOrderer")
}


@pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")
@pytest.mark.parametrize("case", CALIBRATED.values(), ids=CALIBRATED)
def test_weights_are_divided_by_the_temperature_once(case):
    model = case.fit(**case.passes(2)).model_
    if not model.can_sum or model.temperature is None:
        return
    first = probable_weights(model, "this test")
    assert probable_weights(model, "this test") is first
    np.testing.assert_array_equal(first, model.weights / model.weights.dtype.type(model.temperature))
    assert (first is model.weights) == (model.temperature == 1.0)
    assert pickle.loads(pickle.dumps(model)).scaled is copy.copy(model).scaled is None


def test_other_temperatures_and_weights_are_divided_anew():
    labeler = SequenceLabeler(**MARGIN).fit(X, Y)
    chances = labeler.predict_marginals(X[:2])
    labeler.calibrate(X[:20], [["O"] * len(labels) for labels in Y[:20]])
    assert not np.allclose(labeler.predict_marginals(X[:2])[0], chances[0])
    before = labeler.predict_marginals(X[:2])
    labeler.partial_fit(X[:20], Y[:20])
    model = labeler.model_
    assert not np.allclose(labeler.predict_marginals(X[:2])[0], before[0])
    np.testing.assert_array_equal(probable_weights(model, "this test"), model.weights / np.float32(model.temperature))


def test_a_model_that_is_changed_in_place_divides_anew():
    labeler = SequenceLabeler(**MARGIN).fit(X, Y)
    model = labeler.model_
    first = probable_weights(model, "this test")
    model.temperature *= 2.0
    np.testing.assert_allclose(probable_weights(model, "this test"), first / 2.0)
    examples = labeler._prepare(X[:20], Y[:20], None, model)[1]
    train(Job(model, examples, labeler._make_solver(), passes=1))
    wanted = model.weights / np.float32(model.temperature)
    assert not np.array_equal(wanted, first / 2.0)
    np.testing.assert_array_equal(probable_weights(model, "this test"), wanted)


def test_tables_of_segments_are_made_once(monkeypatch):
    labeler = SequenceLabeler(segments=True, **MARGIN).fit(X, Y)
    spans = labeler.predict_spans(X[:5], probabilities=True)
    labels = labeler.predict(X[:5])
    numbers = labeler.model_.segments.phrases.numbers

    def refuse(*given):
        raise AssertionError("the role of a tag is looked up anew")

    monkeypatch.setattr(Scheme, "part", refuse)
    assert labeler.predict_spans(X[:5], probabilities=True) == spans
    assert [span[:3] for span in spans[0]] == labeler.predict_spans(X[:1])[0]
    assert labeler.predict(X[:5]) == labels
    assert labeler.model_.segments.phrases.numbers is numbers
    assert phrases.Phrases.numbers.attrname == "numbers"


def test_probabilities_of_spans_are_those_of_their_labellings():
    labeler = SequenceLabeler(segments=True, **MARGIN).fit(X, Y)
    for x, spans in zip(X[:5], labeler.predict_spans(X[:5], probabilities=True), strict=True):
        ranked = labeler.predict_kbest([x], 200, probabilities=True)[0]
        for *span, chance in spans:
            having = [p for labels, p in ranked if tuple(span) in labeler.model_.segments.scheme.chunks(labels)]
            assert chance >= sum(having) - 1e-4
            assert chance <= 1.0 - sum(p for _, p in ranked) + sum(having) + 1e-4


@pytest.mark.parametrize("params", [{}, {"segments": True}, {"n_jobs": 2}], ids=["tokens", "segments", "threads"])
def test_predictions_of_a_stream_are_a_stream(params, monkeypatch):
    labeler = SequenceLabeler(**MARGIN, **params).fit(X, Y)
    monkeypatch.setattr(estimator, "BATCH", 7)
    read = []

    def stream():
        for k, x in enumerate(X):
            read.append(k)
            yield x

    for predict in (labeler.predict, labeler.predict_iter):
        read.clear()
        found = predict(stream())
        assert not read
        assert list(islice(found, 8)) == labeler.predict(X)[:8]
        assert read == list(range(14))
        assert list(found) == labeler.predict(X)[8:]
    assert list(labeler.predict(iter([]))) == []
    assert list(labeler.predict_iter(X[:9])) == labeler.predict(X[:9])
    assert labeler.score(iter(X), Y) == labeler.score(X, Y)


def test_an_error_of_a_stream_comes_where_it_is():
    labeler = SequenceLabeler(**MARGIN).fit(X, Y)
    with pytest.raises(Exception, match="not fitted"):
        SequenceLabeler().predict(iter(X))
    found = labeler.predict(iter([*X[:3], 3]))
    with pytest.raises((TypeError, ValueError)):
        list(found)


# ---- one sequence costs few calls ---------------------------------------------------------------

NAMED = [[{"w": str(word), "next": {"w": str(word)[::-1], "is_last": False}} for word in words] for words in X]
FEW_CALLS = 90


def n_calls(call):
    """Functions of Python that a call enters."""
    found = []
    sys.setprofile(lambda frame, event, _: found.append(frame.f_code.co_name) if event == "call" else None)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len(found)


@pytest.fixture(scope="module")
def named():
    return SequenceLabeler(C=0.1, loss="log", random_state=0).fit(NAMED, Y)


@pytest.mark.parametrize("verb", ["predict", "predict_marginals"])
def test_one_sequence_enters_few_functions_and_gives_what_the_batch_gives(named, verb):
    ask = getattr(named, verb)
    found = [ask([x])[0] for x in NAMED]
    for one, wanted in zip(found, ask(NAMED), strict=True):
        np.testing.assert_array_equal(one, wanted)
    assert n_calls(lambda: ask([NAMED[0]])) <= FEW_CALLS


def test_threads_of_products_are_limited_where_there_are_products(named, monkeypatch):
    blocks = []
    add = products._limits.add
    monkeypatch.setattr(products._limits, "add", lambda block, n: (blocks.append(n), add(block, n)))
    named.predict(NAMED[:1])
    assert blocks == []
    rows = [np.random.default_rng(len(words)).normal(size=(len(words), 3)) + 5.0 for words in X]
    of_rows = SequenceLabeler(C=0.1, loss="hamming", random_state=0).fit(rows, Y)
    blocks.clear()
    of_rows.predict(rows[:1])
    assert blocks == [1]
