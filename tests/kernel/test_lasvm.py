"""LaSVM's state: invariants of its steps, its optimum, its selections, its finishing step."""

import numpy as np
import pytest
from binary_reference import BinaryMachine
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from structsvm.kernel._kernels import Gram, Kernel, Rows
from structsvm.kernel._lasvm import SELECTIONS, OnlineSchedule
from structsvm.kernel._lasvm import LaSVMState as State
from structsvm.kernel.problem import KernelProblem
from structsvm.result import ConvergenceWarning
from structsvm.solvers import LaSVM

STEPS = {"once": {}, "often": {"n_reprocess": 2.5}, "until": {"delta_max": 0.5}, "few": {"max_visits": 7}}


def problem(seed, n=None, kernel="rbf"):
    """A random problem, and its kernel matrix as the state sees it."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 60)) if n is None else n
    X, y = rng.normal(size=(n, 3)), rng.integers(0, 2, n).astype(np.int32)
    X[n // 2] = X[0]  # the same example, perhaps with another label
    C = rng.choice([0.0, 0.1, 1.0, 10.0], n)
    C[0] = 1.0
    gram = Gram(Kernel(kernel, gamma=0.5, coef0=1.0, degree=2), Rows(X))
    K = gram.kernel.block(gram.rows, range(n), gram.rows, range(n)).astype(np.float64)
    return KernelProblem(gram, y, 2), BinaryMachine(K, 2 * y - 1, C)


def check(state, machine):
    """The point is feasible, and what is tracked is what is true; returns the point."""
    members, slots, _, beta, g = state.coefficients()
    alpha = machine.dense((members, slots, None, beta))
    assert machine.feasible(alpha)
    scale = max(1.0, np.abs(machine.K @ alpha).max())
    np.testing.assert_allclose(g, machine.gradient(alpha)[members], rtol=0, atol=1e-10 * scale)
    assert state.dual == pytest.approx(machine.dual(alpha), rel=1e-9, abs=1e-10)
    assert state.n_vectors == np.count_nonzero(alpha)
    return alpha


def epoch(plan):
    plan.start_pass()
    while not plan.run(np.inf):
        pass


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("steps", STEPS)
@given(seed=st.integers(0, 10**6), cache=st.sampled_from([1.0, 0.0005]))
@settings(max_examples=5)
def test_invariants(steps, selection, seed, cache):
    """Every step keeps the point feasible and lets the dual rise; the finishing step leaves no violating pair."""
    found, machine = problem(seed)
    state = State(found.gram, found.y, machine.C, selection=selection, cache_size=cache, seed=seed)
    plan, value = OnlineSchedule(state, **STEPS[steps]), 0.0
    for _ in range(2):
        before = state.n_visits
        plan.start_pass()
        done = False
        while not done:
            done = plan.run(0.0)
            assert state.dual >= value - 1e-12 * max(1.0, value)
            value = state.dual
            check(state, machine)
        assert state.n_visits - before <= STEPS[steps].get("max_visits", len(found.y))
    kept = state.cache.members
    assert state.finish()
    alpha = check(state, machine)
    assert state.dual >= value - 1e-12 * max(1.0, value)
    inside = BinaryMachine(machine.K[np.ix_(kept, kept)], machine.y[kept], machine.C[kept])
    assert inside.violation(alpha[kept]) <= state.tau + 1e-9
    primal, dual, norm = state.certify()
    assert primal == pytest.approx(machine.primal(alpha, state.bias), rel=1e-9, abs=1e-9)
    assert dual == pytest.approx(machine.dual(alpha), rel=1e-9, abs=1e-9)
    assert norm == pytest.approx(0.5 * alpha @ machine.K @ alpha, rel=1e-9, abs=1e-9)
    assert dual <= primal + 1e-9 * max(1.0, primal)


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "sigmoid"])
@given(seed=st.integers(0, 10**6), selection=st.sampled_from(["random", "gradient", "active"]))
@settings(max_examples=5)
def test_the_optimum_is_that_of_a_general_solver(kernel, seed, selection):
    """The sigmoid kernel has a concave dual on few examples only."""
    found, machine = problem(seed, n=3 if kernel == "sigmoid" else 12, kernel=kernel)
    if kernel == "sigmoid":
        found.gram = Gram(Kernel("sigmoid", gamma=0.3), found.gram.rows)
        machine.K = found.gram.block(range(3), range(3)).astype(np.float64)
        assume(np.linalg.eigvalsh(machine.K).min() > -1e-9)
    solver = LaSVM(C=1.0, tau=1e-9, tol=1e-7, selection=selection, random_state=seed)
    run = solver.solve(found, sample_weight=machine.C)
    assert run.status == "converged"
    alpha = machine.dense(run.state.coefficients())
    wanted = machine.optimum()
    assert run.dual == pytest.approx(machine.dual(alpha), rel=1e-8, abs=1e-9)
    assert run.dual == pytest.approx(wanted, rel=1e-6, abs=1e-6)
    assert run.primal == pytest.approx(machine.primal(alpha, run.intercept[1]), rel=1e-8, abs=1e-8)
    assert run.primal == pytest.approx(wanted, rel=1e-5, abs=1e-5)


def test_a_finishing_step_that_ends_at_its_limit():
    """Three dimensions for twelve examples, and single precision: below 1e-8 it takes tens of millions of steps."""
    found, machine = problem(483, n=12, kernel="linear")
    options = {"tau": 1e-12, "max_iter": 2, "random_state": 483}
    with pytest.warns(ConvergenceWarning, match="the finishing step of LaSVM left a violating pair"):
        LaSVM(**options).solve(found, sample_weight=machine.C)
    run = LaSVM(**options, tol=1e-5).solve(found, sample_weight=machine.C)
    assert run.status == "converged"
    assert run.dual == pytest.approx(machine.optimum(), rel=1e-5)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=10)
def test_shrinking_changes_the_way_and_not_the_end(seed):
    """Many more steps than there are between two looks at what can be left out."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 2))
    y = (X[:, 0] + rng.normal(size=150) > 0).astype(np.int32)
    gram = Gram(Kernel("rbf", gamma=0.2), Rows(X))
    state = State(gram, y, np.full(150, 100.0), tau=1e-6, cache_size=0.02, seed=seed)
    epoch(OnlineSchedule(state))
    kept = state.cache.members
    assert state.finish()
    assume(state.n_steps > 1000)  # it shrinks every 1000 steps
    K = gram.block(range(150), range(150)).astype(np.float64)
    machine = BinaryMachine(K, 2 * y - 1, np.full(150, 100.0))
    alpha = machine.dense(state.coefficients())
    inside = BinaryMachine(K[np.ix_(kept, kept)], machine.y[kept], machine.C[kept])
    assert inside.violation(alpha[kept]) <= 1e-6 + 1e-7


def test_a_finishing_step_that_has_left_out_all_members_brings_them_back():
    """With so small a C each pair moves to its bounds at once, and after 1002 steps no member is worth a look."""
    rng = np.random.default_rng(0)
    n, y = 2004, (np.arange(2004) % 2).astype(np.int32)
    gram = Gram(Kernel("rbf", gamma=0.5), Rows(rng.normal(size=(n, 2))))
    machine = BinaryMachine(gram.block(range(n), range(n)).astype(np.float64), 2 * y - 1, np.full(n, 1e-4))
    state = State(gram, y, machine.C)
    state.restart(np.arange(n), np.arange(n), np.ones(n, dtype=np.int64), np.zeros(n))
    state.finish(max_steps=n // 2)
    check(state, machine)


def test_a_finishing_step_that_is_cut_short_leaves_a_whole_state():
    found, machine = problem(3, n=60)
    state = State(found.gram, found.y, machine.C, tau=1e-9, seed=0)
    epoch(OnlineSchedule(state))
    assert not state.finish(max_steps=3)
    check(state, machine)
    assert state.finish()
    check(state, machine)


def test_process_and_reprocess_are_one_pass():
    """Each example is looked at once, and takes the kernel values with the members and with its block."""
    found, _ = problem(0, n=50)
    run = LaSVM(C=1.0, random_state=0).solve(found)
    assert run.state.n_visits == run.state.n_argmax == 50
    assert run.n_iter == 1 and run.status == "max_iter"
    assert np.isnan(run.primal) and run.dual > 0.0
    assert run.result().certificate().startswith("dual ")


@pytest.mark.parametrize("n_reprocess", [0, 0.5, 1])
def test_delta_max_bounds_delta(n_reprocess):
    found, _ = problem(0, n=59)
    state = State(found.gram, found.y, np.full(59, 10.0), seed=0)
    epoch(OnlineSchedule(state, n_reprocess=n_reprocess, delta_max=0.5))
    state.settle()
    assert state.delta <= 0.5


def test_the_cache_changes_nothing():
    found, machine = problem(8, n=59)
    runs = [
        LaSVM(C=1.0, tol=1e-6, cache_size=size, random_state=1).solve(found, sample_weight=machine.C)
        for size in (200, 0.0003)
    ]
    assert runs[0].state.cache.hit_rate == 1.0 > runs[1].state.cache.hit_rate
    for one, other in zip(*(run.state.coefficients() for run in runs), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("selection", ["gradient", "active"])
def test_selection_takes_the_best_candidate(selection):
    """With fewer rows than are drawn, all of them are candidates."""
    found, machine = problem(5, n=40)
    machine.C[:] = 1.0
    state = State(found.gram, found.y, machine.C, selection=selection, seed=0)
    plan = OnlineSchedule(state, max_visits=12)
    epoch(plan)
    alpha, pool = check(state, machine), np.setdiff1d(np.arange(40), state.cache.members)
    score = machine.K @ alpha + state.bias
    value = score * machine.y if selection == "gradient" else np.abs(score)
    assert pool[np.argmin(value[pool])] == (lambda copy: copy[state.query(copy)])(pool.copy())


def test_autoactive_stops_when_enough_candidates_are_near():
    """At the beginning all are near: ten are drawn, and as many kernel values with the members computed."""
    rng = np.random.default_rng(0)
    gram = Gram(Kernel("rbf"), Rows(rng.normal(size=(500, 2))))
    counts = {}
    for selection in ("active", "autoactive"):
        state = State(gram, rng.integers(0, 2, 500), np.ones(500), selection=selection, seed=0)
        before = gram.n_values
        state.query(np.arange(500))
        counts[selection] = gram.n_values - before
    assert counts == {"active": 50 * 50, "autoactive": 10 * 10}


def test_one_class_alone_keeps_a_few_seeds():
    gram = Gram(Kernel("rbf"), Rows(np.random.default_rng(0).normal(size=(100, 2))))
    y = np.ones(100, dtype=np.int32)
    y[90:] = 0
    state = State(gram, y, np.ones(100), first=0, seed=0)
    for i in range(90):
        state.teach(i, 1, 1.0)
    assert len(state.cache.members) == 5 and state.n_vectors == 0
    assert (state.bias, state.delta) == (0.0, 2.0)
    for i in range(90, 100):
        state.teach(i, 0, 1.0)
    assert state.n_vectors > 0


@pytest.mark.parametrize(
    ("beta", "members"), [([0.5, -0.4], [0, 1]), ([-0.5, 0.5], [0, 1]), ([2.0, -2.0], [0, 1]), ([np.nan, 0.0], [0, 1])]
)
def test_a_point_that_is_not_feasible_is_refused(beta, members):
    gram = Gram(Kernel("rbf"), Rows(np.eye(2)))
    state = State(gram, [1, 0], np.ones(2))
    with pytest.raises(ValueError, match="not feasible"):
        state.restart(members, [0, 1], [1, 1], beta)


@pytest.mark.parametrize(
    ("y", "C", "message"),
    [([0, 2], [1, 1], "classes 0 and 1"), ([0, 1], [1, -1], "C must be"), ([0, 1], [1, np.inf], "C must be")],
)
def test_bad_problems(y, C, message):
    with pytest.raises(ValueError, match=message):
        State(Gram(Kernel("rbf"), Rows(np.eye(2))), y, C)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tau", 0.0),
        ("delta_max", -1.0),
        ("selection", "best"),
        ("max_visits", 0),
        ("n_reprocess", -1),
        ("finishing", 2),
    ],
)
def test_bad_parameters_are_named(name, value):
    with pytest.raises(ValueError, match=f"'{name}' parameter of LaSVM must be"):
        LaSVM(**{name: value}).solve(problem(0)[0])


def test_three_classes_are_refused():
    gram = Gram(Kernel("rbf"), Rows(np.eye(3)))
    with pytest.raises(ValueError, match="two classes"):
        LaSVM().solve(KernelProblem(gram, [0, 1, 2], 3))
