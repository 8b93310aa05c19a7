"""Probabilities of the spans of long texts."""

import pytest

from structsvm.datasets import make_addresses
from structsvm.serve import chances
from structsvm.serve.chances import span_chances
from structsvm.tasks import SequenceLabeler


@pytest.fixture(scope="module")
def fitted():
    X, y = make_addresses(60, random_state=0)
    return SequenceLabeler(C=1.0, loss="log", random_state=0).fit(X, y), X


def test_long_texts_have_a_bound_of_the_probability(fitted, monkeypatch):
    estimator, X = fitted
    X = [X[0], X[1] * 3, X[2]]
    exact = estimator.predict_spans(X, probabilities=True)
    assert span_chances(estimator, X) == exact
    monkeypatch.setattr(chances, "LONG", len(X[1]))
    bounded = span_chances(estimator, X)
    assert bounded[0] == exact[0] and bounded[2] == exact[2]
    assert [span[:3] for span in bounded[1]] == [span[:3] for span in exact[1]]
    assert all(bound >= p - 1e-9 for (*_, bound), (*_, p) in zip(bounded[1], exact[1]))
    assert bounded[1] != exact[1]


def test_one_pass_over_a_long_text(fitted, monkeypatch):
    """Spans are not scored one by one."""
    estimator, X = fitted
    monkeypatch.setattr(type(estimator.model_), "with_chances", None)
    (spans,) = span_chances(estimator, [X[0] * 1000])
    assert len(spans) > 1000
