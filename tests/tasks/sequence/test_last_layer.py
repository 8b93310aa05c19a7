"""A labeler of rows of numbers as the last layer of a network: its weights are the parts of a `layers.Chain`."""

import numpy as np
import pytest

from structsvm.layers import Chain
from structsvm.tasks import SequenceLabeler


def sequences(rng, n=80, d=5, K=3):
    """Rows whose columns differ in place and scale, and labels that depend on the place as well."""
    scores, sizes = rng.normal(size=(d, K)), rng.integers(1, 9, n)
    rows = [rng.normal(size=(size, d)) for size in sizes]
    y = []
    for x in rows:
        own = x @ scores
        own[0, 0] += 2
        y.append([f"label {k}" for k in own.argmax(axis=1)])
    return [(100 + x * [1, 10, 0.1, 1, 1]).astype(np.float32) for x in rows], y


@pytest.mark.parametrize("loss", ["log", "hamming", "auto"])
def test_weights_are_the_parts_of_a_chain(loss):
    X, y = sequences(np.random.default_rng(0))
    model = SequenceLabeler(loss=loss, probability=True, random_state=0).fit(X, y)
    assert model.start_.shape == model.end_.shape == (3,) and model.start_.any()
    longest, T = max(map(len, X)), model.temperature_
    emissions = np.zeros((len(X), longest, 3))
    for row, x in zip(emissions, X, strict=True):
        row[: len(x)] = x @ model.emission_.astype(np.float64) + model.intercept_
    parts, lengths = (emissions, model.transition_, model.start_, model.end_), [len(x) for x in X]
    best = Chain().argmax(*parts, lengths=lengths)
    assert [model.classes_[row[row >= 0]].tolist() for row in best] == model.predict(X)
    chances = Chain().marginals(*(part / T for part in parts), lengths=lengths)[0]
    for row, x, own in zip(chances, X, model.predict_marginals(X), strict=True):
        np.testing.assert_allclose(row[: len(x)], own, atol=2e-3)


def test_greedy_inference_has_no_ends():
    X, y = sequences(np.random.default_rng(0), 30)
    model = SequenceLabeler(inference="greedy", C=1.0, random_state=0).fit(X, y)
    with pytest.raises(AttributeError, match="greedy inference has no weights of the first"):
        _ = model.start_
