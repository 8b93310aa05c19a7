"""Slack rescaling by a search over margin-rescaled answers: never better than the truth, never above its bound."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from python_oracles import Data

from structsvm import CuttingPlane, SlackSearch, UnsupportedFormulation
from structsvm.solvers.slack_search import Corner, most_between
from structsvm.testing import check_oracle


def margin_only(seed, n_classes=8):
    data = Data(seed, n=6, n_classes=n_classes)
    data.oracle.rescalings = ("margin",)
    return data


def values(data, x, w, y_true):
    scores = w.reshape(data.oracle.n_classes, -1) @ x
    return data.oracle.costs[y_true] * (1.0 + scores - scores[y_true])


@given(st.integers(0, 10**6), st.sampled_from([0.1, 1.0, 10.0]))
def test_value_and_bound_enclose_the_best(seed, scale):
    data = margin_only(seed)
    w = scale * np.random.default_rng(seed).normal(size=data.oracle.n_features)
    for x, y_true in zip(data.X, data.Y, strict=True):
        for max_calls in (2, 5, 100):
            y, value, bound = SlackSearch(data.oracle, max_calls=max_calls).search(x, w, y_true)
            best = values(data, x, w, y_true)
            assert value == pytest.approx(max(best[y], 0.0), abs=1e-9)
            assert value <= max(best.max(), 0.0) + 1e-9
            assert bound >= best.max() - 1e-9


@given(st.integers(0, 10**6))
def test_the_best_corner_is_found(seed):
    """Every corner of the convex hull of (m, D) is reached: the best of them is what comes back."""
    data = margin_only(seed)
    w = np.random.default_rng(seed).normal(size=data.oracle.n_features)
    for x, y_true in zip(data.X, data.Y, strict=True):
        scores = w.reshape(data.oracle.n_classes, -1) @ x
        m, D = scores - scores[y_true], data.oracle.costs[y_true]
        angles = np.linspace(1e-6, np.pi / 2 - 1e-6, 2001)[:, None]
        corners = np.unique(np.argmax(np.cos(angles) * m + np.sin(angles) * D, axis=1))
        expected = max(np.max(D[corners] * (1.0 + m[corners])), 0.0)
        assert SlackSearch(data.oracle, max_calls=1000).search(x, w, y_true)[1] >= expected - 1e-6 * (1 + expected)


def test_it_trains_and_claims_nothing():
    data = margin_only(3)
    oracle = SlackSearch(data.oracle)
    solver = CuttingPlane(C=1.0, rescaling="slack", tol=None, epsilon=1e-3, random_state=0)
    with pytest.raises(UnsupportedFormulation):
        data.oracle.bind(data.X, data.Y, rescaling="slack")
    run = solver.solve(oracle.bind(data.X, data.Y, rescaling="slack"))
    exact = Data(3, n=6, n_classes=8)
    best = CuttingPlane(C=1.0, rescaling="slack", tol=1e-8, qp_tol=1e-3, max_sweeps=100, random_state=0)
    optimum = best.solve(exact.bind("slack")).dual
    assert np.isnan(run.primal)
    assert 0.5 * optimum < run.dual <= optimum * (1 + 1e-9)
    run = CuttingPlane(rescaling="slack", random_state=0).solve(oracle.bind(data.X, data.Y, rescaling="slack"))
    assert run.status == "settled" and run.dual <= optimum * (1 + 1e-9)
    check_oracle(oracle, data.X, data.Y)


def test_what_it_needs():
    with pytest.raises(ValueError, match="SlackSearch needs an Oracle with margin rescaling, got 3"):
        SlackSearch(3)
    with pytest.raises(ValueError, match="max_calls must be at least 2, got 1"):
        SlackSearch(margin_only(0).oracle, max_calls=1)


def test_most_between_is_the_corner_of_a_rectangle():
    left, right = Corner(0.5, 1.0, None), Corner(-0.2, 3.0, None)
    inside = [Corner(m, D, None).value for m in np.linspace(-0.2, 0.5, 8) for D in np.linspace(1.0, 3.0, 5)]
    assert most_between(left, right) == pytest.approx(max(inside))
    assert most_between(Corner(-2.0, 1.0, None), Corner(-3.0, 2.0, None)) == 0.0
