"""SparseMAP: the closed form of one token, sparsity, gaps that are left."""

import numpy as np
import pytest

from structsvm import ConvergenceWarning
from structsvm.layers import Assignment, Chain, sparsemap


def sparse_probabilities(scores):
    """The projection on the simplex (Martins and Astudillo 2016)."""
    ordered = np.sort(scores)[::-1]
    sums = np.cumsum(ordered) - 1
    size = np.flatnonzero(ordered * np.arange(1, len(scores) + 1) > sums).max() + 1
    return np.maximum(scores - sums[size - 1] / size, 0.0)


def test_one_token_is_a_sparsemax():
    emissions = np.random.default_rng(0).normal(size=(20, 1, 6))
    y = np.zeros((20, 1), int)
    values, (gradient, _) = sparsemap(Chain(), (emissions, np.zeros((6, 6))), y, tol=1e-12)
    for b in range(20):
        p = sparse_probabilities(emissions[b, 0])
        np.testing.assert_allclose(gradient[b, 0] + np.eye(6)[0], p, atol=1e-9)
        assert values[b] == pytest.approx(p @ emissions[b, 0] - p @ p / 2 - emissions[b, 0, 0] + 0.5, abs=1e-9)


@pytest.mark.parametrize("tol", [1e-2, 1e-5])
def test_the_value_is_within_the_gap_of_the_maximum(tol):
    pairs = np.random.default_rng(1).normal(size=(5, 6, 6))
    y = np.tile(np.arange(6), (5, 1))
    rough, exact = (sparsemap(Assignment(), (pairs,), y, tol=t)[0] for t in (tol, 1e-11))
    assert (rough <= exact + 1e-9).all() and (rough >= exact - tol).all() and (rough < exact).any()


def test_a_truth_that_wins_by_far_costs_nothing():
    pairs = 10 * np.eye(4)[None]
    values, (gradient,) = sparsemap(Assignment(), (pairs,), [[0, 1, 2, 3]])
    assert values.tolist() == [0.0] and (gradient == 0).all()


def test_a_gap_that_is_left_is_a_warning_with_advice():
    emissions = np.random.default_rng(2).normal(size=(2, 8, 5))
    with pytest.warns(ConvergenceWarning, match=r"gap of .* after max_iter=2 maxima.*: raise max_iter"):
        sparsemap(Chain(), (emissions, np.zeros((5, 5))), np.zeros((2, 8), int), max_iter=2)
