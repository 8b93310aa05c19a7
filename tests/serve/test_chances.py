"""Probabilities of the spans of long texts."""

import pytest

from structsvm.datasets import make_addresses
from structsvm.serve import chances
from structsvm.serve.chances import span_chances
from structsvm.tasks import SequenceLabeler

X, Y = make_addresses(60, random_state=0)


@pytest.fixture(scope="module")
def fitted():
    return SequenceLabeler(C=1.0, loss="log", random_state=0).fit(X, Y)


def test_long_texts_have_a_bound_of_the_probability(monkeypatch):
    """Chains of order 2 take a pass over the text per span."""
    estimator = SequenceLabeler(C=1.0, loss="log", order=2, random_state=0).fit(X, Y)
    few = [X[0], X[1] * 3, X[2]]
    exact = estimator.predict_spans(few, probabilities=True)
    assert span_chances(estimator, few) == exact
    monkeypatch.setattr(chances, "LONG", len(few[1]))
    bounded = span_chances(estimator, few)
    assert bounded[0] == exact[0] and bounded[2] == exact[2]
    assert [span[:3] for span in bounded[1]] == [span[:3] for span in exact[1]]
    assert all(bound >= p - 1e-9 for (*_, bound), (*_, p) in zip(bounded[1], exact[1]))
    assert bounded[1] != exact[1]


def test_long_texts_have_the_probability_where_it_is_quick(fitted, monkeypatch):
    few = [X[0], X[1] * 3, X[2]]
    exact = fitted.predict_spans(few, probabilities=True)
    monkeypatch.setattr(chances, "LONG", 1)
    assert span_chances(fitted, few) == exact
    long = X[0] * 20_000
    assert not fitted.model_.has_quick_chances(len(long))
    (bounded,) = span_chances(fitted, [long])
    assert len(bounded) > 20_000 and all(0.0 <= p <= 1.0 for *_, p in bounded)


def test_one_pass_over_a_long_text(fitted, monkeypatch):
    """Spans are not scored one by one."""
    monkeypatch.setattr(type(fitted.model_), "with_chances", None)
    (spans,) = span_chances(fitted, [X[0] * 1000])
    assert len(spans) > 1000
