"""CuttingPlane and FrankWolfe: the optimum in every formulation, bounds on the work, rounds in parallel."""

import threading
import warnings

import numpy as np
import pytest
from dual_reference import primal, solve_dual
from hypothesis import example, given, settings
from hypothesis import strategies as st
from joblib import parallel_config
from python_oracles import Data

from structsvm import ConvergenceWarning, CuttingPlane, FrankWolfe, LaRank
from structsvm.dual._rounds import collect, violations
from structsvm.dual.parallel import Rounds, cut_points
from structsvm.execution._stop import look_every
from structsvm.oracles.greedy import GreedyOracle
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.result import relative_gap

FORMULATIONS = [(rescaling, penalty) for rescaling in ("margin", "slack") for penalty in ("linear", "quadratic", None)]
TIGHT = {"tol": 1e-8, "qp_tol": 1e-3, "max_sweeps": 300, "max_iter": 500, "random_state": 0}


def chains(n=40, seed=0, K=3, F=5, longest=6, kind=ViterbiOracle):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, n)
    return kind(K, F), [rng.normal(size=(t, F)) for t in lengths], [rng.integers(0, K, t) for t in lengths]


# --- the optimum ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("rescaling", "penalty"), FORMULATIONS)
@pytest.mark.parametrize("optimize", ["round", "constraint"])
@given(seed=st.integers(0, 10**6), C=st.sampled_from([0.05, 1.0, 20.0]))
@example(seed=1822, C=0.05)  # a margin near 0 on the way: the gap is 200,000 times the dual
@settings(max_examples=20)
def test_n_slack_reaches_the_optimum_of_an_independent_solver(rescaling, penalty, optimize, seed, C):
    data = Data(seed, n=6, n_inputs=6, penalty=penalty, separable=penalty is None)
    constraints = data.oracle.constraints(data.X, data.Y, rescaling)
    solver = CuttingPlane(C=C, rescaling=rescaling, penalty=penalty, optimize=optimize, **TIGHT)
    run = solver.solve(data.bind(rescaling))
    assert run.status == "converged"
    expected = solve_dual(constraints, np.full(6, C), penalty)
    assert run.dual == pytest.approx(expected, rel=1e-7)
    if penalty is not None:
        assert primal(run.weights, constraints, np.full(6, C), penalty) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@given(seed=st.integers(0, 10**6), C=st.sampled_from([0.05, 1.0]))
@settings(max_examples=20)
def test_one_slack_has_the_same_optimum(rescaling, seed, C):
    data = Data(seed, n=6, n_inputs=6, penalty="linear")
    constraints = data.oracle.constraints(data.X, data.Y, rescaling)
    run = CuttingPlane(C=C, form="one_slack", rescaling=rescaling, **TIGHT).solve(data.bind(rescaling))
    assert run.status == "converged"
    assert run.dual == pytest.approx(solve_dual(constraints, np.full(6, C), "linear"), rel=1e-7)


@pytest.mark.parametrize("sampling", ["gap", "uniform"])
@pytest.mark.parametrize("n_cached", [0, 5])
@given(seed=st.integers(0, 10**6))
@settings(max_examples=5)
def test_frank_wolfe_nears_the_optimum(sampling, n_cached, seed):
    data = Data(seed, n=6, n_inputs=6, penalty="linear")
    constraints = data.oracle.constraints(data.X, data.Y, "margin")
    solver = FrankWolfe(C=0.3, sampling=sampling, n_cached=n_cached, tol=1e-3, max_iter=5000, random_state=0)
    run = solver.solve(data.bind("margin"))
    assert run.status == "converged"
    expected = solve_dual(constraints, np.full(6, 0.3), "linear")
    assert run.dual <= expected * (1 + 1e-9)
    assert run.primal >= expected * (1 - 1e-9)
    assert run.primal == pytest.approx(primal(run.weights, constraints, np.full(6, 0.3), "linear"), rel=1e-9)


def test_all_solvers_agree_on_chains():
    oracle, X, Y = chains(n=60)
    solvers = [
        LaRank(C=0.5, tol=1e-5, max_iter=1000, random_state=0),
        CuttingPlane(C=0.5, tol=1e-5, random_state=0),
        CuttingPlane(C=0.5, tol=1e-4, form="one_slack", random_state=0),
        FrankWolfe(C=0.5, tol=1e-2, random_state=0),
    ]
    runs = [solver.solve(oracle.bind(X, Y)) for solver in solvers]
    assert all(run.status == "converged" for run in runs)
    for one in runs:
        assert 0.0 <= relative_gap(one.primal, one.dual) <= one.solver.tol
        for other in runs:
            assert one.dual <= other.primal * (1 + 1e-6)


@pytest.mark.parametrize("solver", [FrankWolfe(C=0.5, max_iter=1, tol=None, random_state=1), CuttingPlane(C=0.5)])
def test_the_dual_that_is_kept_is_the_dual_recomputed(solver):
    oracle, X, Y = chains()
    run = solver.start(oracle.bind(X, Y))
    for _ in range(5):
        while not run.schedule.run(1e9):
            pass
        kept = run.state.dual
        assert run.state.settle() == pytest.approx(kept, rel=1e-5)
        run.schedule.start_pass()


def test_sample_weight_counts_examples():
    data = Data(5, n=6, n_inputs=8, penalty="linear")
    weight = np.array([0.0, 1.0, 2.0, 1.0, 0.0, 1.0])
    twice = Data(5, n=6, n_inputs=8, penalty="linear")
    keep = [1, 2, 2, 3, 5]
    twice.X, twice.Y = [twice.X[i] for i in keep], [twice.Y[i] for i in keep]
    for solver in (CuttingPlane(C=0.4, **TIGHT), CuttingPlane(C=0.4, form="one_slack", **TIGHT)):
        one, other = solver.solve(data.bind(), sample_weight=weight), solver.solve(twice.bind())
        assert one.dual == pytest.approx(other.dual, rel=1e-7)


# --- what algorithm 1 promises ---------------------------------------------------------------------


class Rows:
    """The joint features and losses that theorem 1 speaks of, counted over all outputs."""

    def __init__(self, data):
        psi = [constraint for of_one in data.oracle.constraints(data.X, data.Y, "margin") for constraint in of_one]
        self.radius = max(np.linalg.norm(row) for _, row in psi)
        self.loss = max(b for b, _ in psi)


@pytest.mark.parametrize("epsilon", [0.5, 0.1, 0.02])
@given(seed=st.integers(0, 10**6))
@settings(max_examples=10)
def test_theorem_1_bounds_the_constraints(epsilon, seed):
    """At most (C D^2 R^2 + n D) / epsilon^2 constraints join (the paper's C is n times ours)."""
    data, C, joined = Data(seed, n=6, n_inputs=6, penalty="quadratic"), 0.5, 0
    rows = Rows(Data(seed, n=6, n_inputs=6, penalty="linear"))
    solver = CuttingPlane(
        C=C,
        rescaling="slack",
        penalty="quadratic",
        optimize="constraint",
        epsilon=epsilon,
        tol=None,
        qp_tol=1e-9,
        max_sweeps=1000,
        random_state=0,
    )
    run = solver.start(data.bind("slack"))
    for _ in range(1000):
        run.advance()
        joined += run.schedule.joined
        if run.is_solved:
            break
    assert run.is_solved
    assert joined <= (C * 6 * rows.loss**2 * rows.radius**2 + 6 * rows.loss) / epsilon**2


@pytest.mark.parametrize(("rescaling", "penalty"), [f for f in FORMULATIONS if f[1] is not None])
@given(seed=st.integers(0, 10**6), C=st.sampled_from([0.05, 1.0]))
@settings(max_examples=5)
def test_proposition_1_slacks_bound_the_empirical_risk(rescaling, penalty, seed, C):
    """The mean of the slacks, or of their squares, is no less than the mean loss of what is predicted."""
    data = Data(seed, n=6, n_inputs=6, penalty=penalty)
    problem = data.bind(rescaling)
    run = CuttingPlane(C=C, rescaling=rescaling, penalty=penalty, **TIGHT).solve(problem)
    slacks = np.maximum(violations(problem, run.weights), 0.0)
    predicted = [data.oracle.argmax(x, run.weights) for x in data.X]
    risk = np.mean([data.oracle.loss(y, z) for y, z in zip(data.Y, predicted, strict=True)])
    assert risk <= np.mean(slacks if penalty == "linear" else slacks**2) + 1e-9


@pytest.mark.parametrize("epsilon", [0.5, 0.1])
@given(seed=st.integers(0, 10**6))
@settings(max_examples=5)
def test_proposition_2_gain_of_a_constraint(epsilon, seed):
    """Each that joins raises the dual by at least epsilon^2 / (2 (D R^2 + 1 / C)) (the paper's C is n times ours)."""
    data, C, joined = Data(seed, n=6, n_inputs=6, penalty="quadratic"), 0.5, 0
    rows = Rows(Data(seed, n=6, n_inputs=6, penalty="linear"))
    least = 0.5 * epsilon**2 / (rows.loss * rows.radius**2 + 1.0 / C)
    solver = CuttingPlane(
        C=C, rescaling="slack", penalty="quadratic", optimize="constraint", epsilon=epsilon, tol=None, random_state=0
    )
    run = solver.start(data.bind("slack"))
    for _ in range(20):
        before = run.state.dual
        run.advance()
        joined += run.schedule.joined
        assert run.state.dual - before >= run.schedule.joined * least
    assert joined > 0


def test_epsilon_ends_training_and_bounds_the_objective():
    data = Data(2, n=6, n_inputs=6, penalty="linear")
    run = CuttingPlane(C=1.0, epsilon=0.1, tol=None, qp_tol=1e-9, max_sweeps=1000, random_state=0).solve(data.bind())
    assert run.status == "converged"
    # Each slack may grow by epsilon (section 4.3 of the paper), and the QP is solved to its own tolerance.
    assert run.primal - run.dual <= 6 * 1.0 * 0.1 + 1e-6


@pytest.mark.parametrize("form", ["n_slack", "one_slack"])
@pytest.mark.parametrize("epsilon", [0.0, 0.01])
def test_without_a_tolerance_the_working_sets_are_solved(form, epsilon):
    """Where no constraint joins but the dual over those that have may rise: with C = 100 by a third."""
    data, C = Data(1, n=8, n_classes=5), 100.0
    solver = CuttingPlane(C, form=form, epsilon=epsilon, tol=None, max_iter=100_000, random_state=0)
    run = solver.solve(data.bind())
    expected = solve_dual(data.oracle.constraints(data.X, data.Y, "margin"), np.full(8, C), "linear")
    assert run.status == "converged"
    allowed = 2e-4 * expected + 8 * C * epsilon
    assert run.dual == pytest.approx(expected, abs=allowed) and run.primal == pytest.approx(expected, abs=allowed)


def test_the_number_of_oracle_calls_is_true():
    data = Data(3, n=8, n_inputs=6)
    for solver in (
        CuttingPlane(random_state=0),
        CuttingPlane(form="one_slack", tol=1e-2, random_state=0),
        CuttingPlane(optimize="constraint", random_state=0),
        FrankWolfe(random_state=0),
    ):
        problem = data.bind()
        run = solver.solve(problem)
        assert run.result().n_argmax == len(data.oracle.calls)


# --- what cannot be ---------------------------------------------------------------------------------


def test_a_hard_margin_on_data_that_cannot_be_separated():
    data = Data(3, n=8, n_inputs=12, penalty=None, separable=True)
    data.X[1], data.Y[1] = data.X[0], (data.Y[0] + 1) % 3
    with pytest.raises(ValueError, match=r"the data cannot be separated: no weights keep the \d+ constraints of \d"):
        CuttingPlane(penalty=None, random_state=0).solve(data.bind())
    with pytest.raises(ValueError, match="the data cannot be separated"):
        CuttingPlane(penalty=None, tol=None, optimize="constraint", random_state=0).solve(data.bind())


def test_parameters_that_do_not_go_together():
    data = Data(0, penalty="quadratic")
    with pytest.raises(ValueError, match="form='one_slack' needs penalty='linear'"):
        CuttingPlane(form="one_slack", penalty="quadratic").solve(data.bind())
    with pytest.raises(ValueError, match="leave optimize='round'"):
        CuttingPlane(form="one_slack", optimize="constraint").solve(data.bind())
    with pytest.raises(ValueError, match="The 'epsilon' parameter of CuttingPlane must be a float in the range"):
        CuttingPlane(epsilon=-1.0).solve(data.bind())
    with pytest.raises(ValueError, match="The 'n_jobs' parameter of CuttingPlane must be"):
        CuttingPlane(n_jobs=0).solve(data.bind())


def test_approximate_inference_trains_without_a_claim():
    data = Data(1, n=8, n_inputs=6)
    data.oracle.inference = "approximate"
    for solver, status in [
        (CuttingPlane(tol=None, max_iter=1, random_state=0), "max_iter"),
        (CuttingPlane(random_state=0), "settled"),
        (CuttingPlane(form="one_slack", random_state=0), "settled"),
    ]:
        run = solver.solve(data.bind())
        assert run.status == status
        assert run.dual > 0.0 and np.isnan(run.primal)
        assert run.primal_found >= run.dual
        if status == "settled":
            assert run.remaining == pytest.approx((run.primal_found - run.dual) / run.primal_found)
            assert run.remaining <= 1e-3


def test_not_converged_is_said():
    oracle, X, Y = chains()
    with pytest.warns(ConvergenceWarning, match="CuttingPlane stopped after 2 passes at a relative gap"):
        CuttingPlane(max_iter=2, tol=1e-9).solve(oracle.bind(X, Y))


# --- rounds in parallel -------------------------------------------------------------------------------


@given(st.integers(0, 200), st.integers(1, 40))
def test_shards_cover_everything_once(n, shards):
    bounds = cut_points(n, None, shards)
    assert bounds[0] == 0
    assert bounds[-1] == n
    assert np.all(np.diff(bounds) > 0) or n == 0
    assert len(bounds) - 1 <= shards


def test_shards_do_not_cut_through_groups():
    oracle, X, Y = chains(n=50, kind=GreedyOracle)
    problem = oracle.bind(X, Y)
    rounds = Rounds(problem)
    assert set(rounds.bounds) <= set(problem.groups.tolist())
    w = np.random.default_rng(0).normal(size=problem.n_features)
    np.testing.assert_array_equal(
        np.concatenate([violations(shard, w) for shard in rounds.shards]), violations(problem, w)
    )


@pytest.mark.parametrize("kind", ["viterbi", "greedy", "python"])
def test_a_round_is_the_same_in_parts(kind):
    if kind == "python":
        problem = Data(0, n=21, n_inputs=7).bind()
    else:
        oracle, X, Y = chains(n=21, kind=ViterbiOracle if kind == "viterbi" else GreedyOracle)
        problem = oracle.bind(X, Y)
    w = np.random.default_rng(0).normal(size=problem.n_features)
    whole = collect(problem, w, 0, problem.n_samples)
    parts = [part for _, part in Rounds(problem, 2).collect(w)]
    for k in (0, 1, 3):
        np.testing.assert_array_equal(np.concatenate([part[k] for part in parts]), whole[k])
    np.testing.assert_array_equal(np.concatenate([np.diff(part[2]) for part in parts]), np.diff(whole[2]))


@pytest.mark.parametrize("form", ["n_slack", "one_slack"])
@pytest.mark.parametrize("backend", ["sequential", "threading", "loky"])
def test_jobs_and_backends_change_no_bit(form, backend):
    oracle, X, Y = chains(n=30)
    solver = CuttingPlane(C=0.5, form=form, tol=1e-2, random_state=0)
    alone = solver.solve(oracle.bind(X, Y))
    with parallel_config(backend=backend, n_jobs=2):
        run = solver.solve(oracle.bind(X, Y))
    np.testing.assert_array_equal(run.weights, alone.weights)
    assert run.result().to_dict() | {"seconds": 0} == alone.result().to_dict() | {"seconds": 0}


def test_threads_of_a_round_that_failed_have_stopped():
    oracle, X, Y = chains(n=50)
    problem = oracle.bind(X, Y)
    look_every(10)
    rounds, w = Rounds(problem, 2), np.zeros(problem.n_features)
    at_work, ended = threading.Event(), threading.Event()

    def work(problem, w, start, stop):
        if start == 0:
            at_work.wait()
            raise KeyboardInterrupt("a key")
        try:
            while True:
                violations(problem, w, start, stop)
                at_work.set()
        except KeyboardInterrupt as error:
            if str(error) == "the job was stopped":
                ended.set()
            raise

    with pytest.raises(KeyboardInterrupt, match="a key"):
        rounds._map(work, w, [(0, 1)] * (len(rounds.bounds) - 1))
    assert ended.is_set()
    look_every()
    np.testing.assert_array_equal(rounds.violations(w), violations(problem, w))


def test_an_exception_in_a_thread_names_the_example_and_leaves_a_whole_state():
    data = Data(0, n=40, n_inputs=7)
    problem = data.bind()
    run = CuttingPlane(n_jobs=2, random_state=0).start(problem)
    run.advance()
    before = run.get_state()
    original = data.oracle.argmax

    def argmax(x, w, y_true=None, rescaling=None):
        if np.array_equal(x, data.X[33]):
            raise ZeroDivisionError("in the middle")
        return original(x, w, y_true, rescaling)

    data.oracle.argmax = argmax
    with pytest.raises(ZeroDivisionError, match="in the middle") as caught:
        run.certify()
    assert "while Multiclass was asked about example 33" in caught.value.__notes__
    data.oracle.argmax = original
    after = run.get_state()
    assert all(np.array_equal(before[name], after[name], equal_nan=True) for name in before)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert np.isfinite(run.solver.solve(problem, run=run, passes=3).primal)
