"""The Huller's state: the hulls it stays in, its recursive norms, and the hard-margin machine it comes to."""

import numpy as np
import pytest
from binary_reference import BinaryMachine
from hypothesis import given, settings
from hypothesis import strategies as st

from structsvm import ConvergenceWarning
from structsvm.dual._schedules import FixedSchedule
from structsvm.kernel._huller import HullerState as State
from structsvm.kernel._kernels import Gram, Kernel, Rows
from structsvm.kernel.problem import KernelProblem
from structsvm.solvers import Huller


def problem(seed, n=None):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 60)) if n is None else n
    X, y = rng.normal(size=(n, 3)), rng.integers(0, 2, n).astype(np.int32)
    X[n // 2] = X[0]
    gram = Gram(Kernel("rbf", gamma=0.5), Rows(X))
    return gram, y, gram.block(range(n), range(n)).astype(np.float64)


def points(state, y):
    """Coefficients of X_P and X_N over all examples, from those of the machine."""
    members, slots, _, beta = state.coefficients()
    alpha = np.zeros(len(y))
    alpha[members[slots]] = beta / state.scale
    return np.where(y == 1, alpha, 0.0), np.where(y == 0, -alpha, 0.0)


@given(seed=st.integers(0, 10**6), cache=st.sampled_from([1.0, 0.0005]))
@settings(max_examples=30)
def test_invariants(seed, cache):
    """The points stay in their hulls, their distance never grows once both are there, and norms are what they are."""
    gram, y, K = problem(seed)
    weight = np.random.default_rng(seed).choice([0.0, 1.0], len(y), p=[0.1, 0.9])
    state = State(gram, y, weight, cache_size=cache, seed=seed)
    plan, distance = FixedSchedule(state, 1, 0), np.inf
    for k in range(3):
        plan.start_pass()
        done = False
        while not done:
            done = plan.run(0.0)
            P, N = points(state, y)
            for point, c in ((P, 1), (N, 0)):
                assert (point >= 0.0).all() and (point[weight == 0.0] == 0.0).all()
                assert point.sum() == pytest.approx(1.0) or not point.any()
                assert (point > 0.0).sum() <= state.n_vectors
                assert c in y or not point.any()
            np.testing.assert_allclose(state.norms, [P @ K @ P, N @ K @ N, P @ K @ N], atol=1e-10)
        if k > 0 and P.any() and N.any():
            found = (P - N) @ K @ (P - N)
            assert found <= distance + 1e-10
            distance = found
        assert state.settle() < 1e-10
        np.testing.assert_allclose(state.norms, [P @ K @ P, N @ K @ N, P @ K @ N], atol=1e-10)
    assert state.drift < 1e-10


@given(seed=st.integers(0, 10**6))
@settings(max_examples=10)
def test_the_end_is_the_hard_margin_machine(seed):
    gram, y, K = problem(seed, n=10)
    signs = 2 * y - 1
    K = K + 0.1 * np.eye(10)  # separable, whatever the labels
    gram = Gram(Kernel("precomputed"), Rows(K))
    K = K.astype(np.float32).astype(np.float64)
    if abs(signs.sum()) == 10:
        return
    run = Huller(max_iter=4000, random_state=seed).solve(KernelProblem(gram, y, 2))
    machine = BinaryMachine(K, signs, np.full(10, 1e6))
    alpha = machine.dense(run.state.coefficients())
    assert abs(alpha.sum()) < 1e-9
    assert machine.dual(alpha) == pytest.approx(machine.optimum(), rel=1e-3)
    f = K @ alpha + run.intercept[1]
    assert (signs * f >= 1.0 - 0.05).all()
    assert run.n_iter == 4000 and np.isnan(run.dual)


def test_drift_is_found_and_said(monkeypatch):
    """Norms that do not belong to the coefficients, as rounding would leave them."""
    gram, y, _ = problem(1, n=30)
    run = Huller(max_iter=1, random_state=0).solve(KernelProblem(gram, y, 2))
    members = run.state.coefficients()[0]
    gram.rows.data[members[0]] *= 3.0
    gram.rows.square_norms()[members[0]] *= 9.0
    run.state.cache.restart(members)
    with pytest.warns(ConvergenceWarning, match="had drifted"):
        run.settle()
    assert run.state.drift > 1e-6
    assert run.state.settle() < 1e-12


@pytest.mark.parametrize(("members", "beta"), [([0, 1], [-0.5, 0.5]), ([0, 1], [0.0, -1.0]), ([0, 1], [np.inf, -1.0])])
def test_points_that_are_not_in_the_hulls_are_refused(members, beta):
    state = State(Gram(Kernel("rbf"), Rows(np.eye(2))), [1, 0], np.ones(2))
    with pytest.raises(ValueError, match=r"not feasible|add up to 0"):
        state.restart(members, [0, 1], [1, 1], beta)


def test_bad_problems():
    gram = Gram(Kernel("rbf"), Rows(np.eye(3)))
    with pytest.raises(ValueError, match="classes 0 and 1"):
        State(gram, [0, 1, 2], np.ones(3))
    with pytest.raises(ValueError, match="two classes"):
        Huller().solve(KernelProblem(gram, [0, 1, 2], 3))
    with pytest.raises(ValueError, match="'max_iter' parameter of Huller must be"):
        Huller(max_iter=0).solve(KernelProblem(gram, [0, 1, 1], 2))
