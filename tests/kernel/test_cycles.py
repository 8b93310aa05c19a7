"""Steps along cycles of classes: what they keep, where they end."""

from itertools import pairwise

import numpy as np
import pytest
import weston_watkins_reference as reference
from hypothesis import given, settings
from hypothesis import strategies as st

from structsvm.kernel._circulation import Circulation
from structsvm.kernel._cycles import Arcs, CycleSteps


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_classes = draw(st.integers(2, 4))
    y = np.sort(np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, draw(st.integers(0, 7)))]))
    X = rng.normal(size=(len(y), 3))
    if draw(st.booleans()):
        X[rng.integers(len(y))] = X[rng.integers(len(y))]  # the same input, perhaps with two labels
    K = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2))
    C = 10.0 ** rng.uniform(-1, 2, len(y)) if draw(st.booleans()) else np.full(len(y), 10.0 ** rng.integers(-2, 3))
    return K, y, np.searchsorted(y, np.arange(n_classes + 1)), C


def objective(K, y, beta):
    return beta[y, np.arange(len(y))].sum() - 0.5 * np.vdot(beta, beta @ K)


@given(problems(), st.integers(1, 40))
@settings(max_examples=80)
def test_every_step_stays_feasible_and_the_dual_rises(problem, n_steps):
    K, y, start, C = problem
    beta, F = np.zeros((len(start) - 1, len(y))), np.zeros((len(start) - 1, len(y)))
    steps = CycleSteps(start, C, beta, F, K)
    before = 0.0
    for _ in range(n_steps):
        if steps.run(1e-9, 1) == 0:
            break
        now = objective(K, y, beta)
        assert now >= before - 1e-14 * C.sum()
        before = now
        np.testing.assert_allclose(beta.sum(axis=0), 0.0, atol=1e-12 * C.max())
        np.testing.assert_allclose(beta.sum(axis=1), 0.0, atol=1e-12 * C.max())
        alpha = -beta
        alpha[y, np.arange(len(y))] = 0.0
        assert (alpha >= 0.0).all() and (alpha <= C).all()
        np.testing.assert_allclose(F, beta @ K, atol=1e-11 * C.max())


@given(problems())
@settings(max_examples=100)
def test_they_end_where_the_duality_gap_is_closed(problem):
    K, y, start, C = problem
    n_classes = len(start) - 1
    beta, F = np.zeros((n_classes, len(y))), np.zeros((n_classes, len(y)))
    eps = 1e-9
    assert CycleSteps(start, C, beta, F, K).run(eps, 10**5) < 10**5
    primal = 0.5 * np.vdot(beta, F) + Circulation(start, C, np.zeros(n_classes)).solve(F)
    # No arc's reduced slope is above eps / 2: the gap is at most that times all capacities.
    assert -1e-11 * C.sum() <= primal - objective(K, y, beta) <= eps * C.sum() * n_classes
    assert objective(K, y, beta) > 0.0
    assert Arcs(start, C, beta, F).steepest_cycle()[1] <= eps


def test_a_cycle_of_three_classes_where_no_pair_goes_up():
    # One example a class, which may go up to the next class only: 0 -> 1 -> 2 -> 0.
    start, C = np.arange(4), np.ones(3)
    F = np.array([[0.0, 0.0, 3.0], [3.0, 0.0, 0.0], [0.0, 3.0, 0.0]]) - 3.0
    F[np.arange(3), np.arange(3)] = 0.0
    F[(np.arange(3) + 1) % 3, np.arange(3)] = -0.5
    beta = np.zeros((3, 3))
    examples, slope = Arcs(start, C, beta, F).steepest_cycle()
    assert sorted(examples) == [0, 1, 2]
    assert slope == pytest.approx(1.0)
    scores = F.copy()
    assert CycleSteps(start, C, beta, scores, np.zeros((3, 3))).run(1e-6, 10) == 1
    np.testing.assert_array_equal(-beta[(np.arange(3) + 1) % 3, np.arange(3)], C)


def enumerate_cycles(slope, n_classes):
    """The greatest mean slope of a simple cycle."""
    best = -np.inf
    paths = [[c] for c in range(n_classes)]
    while paths:
        path = paths.pop()
        if len(path) > 1:
            closed = [*path, path[0]]
            best = max(best, np.mean([slope[u, v] for u, v in pairwise(closed)]))
        paths += [[*path, c] for c in range(path[0] + 1, n_classes) if c not in path]
    return best


@given(st.integers(0, 2**32 - 1), st.integers(2, 5))
@settings(max_examples=60)
def test_the_steepest_cycle_is_the_steepest(seed, n_classes):
    rng = np.random.default_rng(seed)
    y = np.sort(np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, 3)]))
    start, C = np.searchsorted(y, np.arange(n_classes + 1)), np.ones(len(y))
    F = rng.normal(size=(n_classes, len(y))) * 2
    beta = -rng.choice([0.0, 0.5, 1.0], size=F.shape)
    beta[y, np.arange(len(y))] = 0.0
    slope = np.full((n_classes, n_classes), -np.inf)
    for i, k in reference.arcs(y, n_classes):
        g = 1.0 - F[y[i], i] + F[k, i]
        if -beta[k, i] < 1.0:
            slope[y[i], k] = max(slope[y[i], k], g)
        if beta[k, i] < 0.0:
            slope[k, y[i]] = max(slope[k, y[i]], -g)
    beta[y, np.arange(len(y))] = -beta.sum(axis=0)
    examples, found = Arcs(start, C, beta, F).steepest_cycle()
    best = 2.0 * enumerate_cycles(slope, n_classes)
    assert found == pytest.approx(max(best, 0.0), rel=1e-6)
    assert (len(examples) == 0) == (best <= 0.0)


def test_shapes_are_checked():
    start, C, table = np.array([0, 1, 2]), np.ones(2), np.zeros((2, 2))
    with pytest.raises(ValueError, match="start must rise"):
        Arcs(np.array([0, 1, 3]), C, table, table)
    with pytest.raises(ValueError, match="beta and F must be of shape"):
        Arcs(start, C, table, np.zeros((2, 3)))
    with pytest.raises(ValueError, match="K must be of shape"):
        CycleSteps(start, C, table, table, np.zeros((3, 3)))
