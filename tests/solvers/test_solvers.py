"""Solvers: one optimum, plain reference implementations, certificates, saving and going on, interruption."""

import os
import signal
import threading
import time
import warnings
from contextlib import suppress

import numpy as np
import pytest
from chain_reference import ReferenceChain
from dual_reference import PlainPerceptron, constraint, dual, primal, solve_dual
from hypothesis import given, settings
from hypothesis import strategies as st
from python_oracles import Data, alphas_of

from structsvm import ConvergenceWarning, CuttingPlane, FrankWolfe, LaRank, PassiveAggressive, Perceptron
from structsvm.adapter import OracleError
from structsvm.dual import parallel
from structsvm.oracles.greedy import GreedyOracle
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.progress import Monitor
from structsvm.result import relative_gap
from structsvm.solvers import run as runs

SCHEDULES = ["decode-once", "fixed", "adaptive"]
FORMULATIONS = [(rescaling, penalty) for rescaling in ("margin", "slack") for penalty in ("linear", "quadratic", None)]


def chain_data(kind=ViterbiOracle, n=10, seed=0, K=3, F=4, T=4, **options):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, T + 1, n)
    X = [rng.normal(size=(t, F)).astype(np.float32) for t in lengths]
    return kind(K, F, **options), X, [rng.integers(0, K, t) for t in lengths]


def larank(schedule, **options):
    return LaRank(**{"schedule": schedule, "n_reprocess": 2, "random_state": 0, "average": False} | options)


@pytest.mark.parametrize("C", [1e-4, 0.1])
def test_a_dual_above_the_primal_by_rounding_of_the_slacks(monkeypatch, C):
    """Examples that are all but solved leave objectives that are smaller than what their slacks lose by rounding."""
    oracle, X, Y = chain_data()
    run = LaRank(C=C, max_iter=1, random_state=0).solve(oracle.bind(X, Y))
    monkeypatch.setattr(run, "certify", lambda: None)
    losses = C * len(X)
    scores = C * np.linalg.norm(run.state.weights) * np.sqrt(sum(x.size + len(x) * 6 for x in X))
    rounding = np.finfo(np.float32).eps * (losses + scores)
    assert scores > losses if C > 0.01 else scores < 0.01 * losses
    run.primal, run.dual = 1e-12, 1e-12 + 0.9 * rounding
    run.checked_certify()
    run.dual = 1e-12 + 1.1 * rounding
    with pytest.raises(OracleError, match="is above the primal"):
        run.checked_certify()


# --- the optimum ----------------------------------------------------------------------------------


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("rescaling", "penalty"), FORMULATIONS)
@given(seed=st.integers(0, 10**6), C=st.sampled_from([0.05, 1.0]))
@settings(max_examples=3)
def test_the_optimum_of_an_independent_solver(schedule, rescaling, penalty, seed, C):
    data = Data(seed, n=6, n_inputs=6, penalty=penalty, separable=penalty is None)
    constraints = data.oracle.constraints(data.X, data.Y, rescaling)
    run = larank(schedule, C=C, rescaling=rescaling, penalty=penalty, tol=1e-8, max_iter=3000).solve(
        data.bind(rescaling)
    )
    assert run.status == "converged"
    expected = solve_dual(constraints, np.full(6, C), penalty)
    assert run.dual == pytest.approx(expected, rel=1e-7)
    if penalty is not None:
        assert primal(run.weights, constraints, np.full(6, C), penalty) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("rescaling", "penalty"), [f for f in FORMULATIONS if f[1]])
@pytest.mark.parametrize("order", [1, 2])
def test_the_optimum_of_small_chains(schedule, rescaling, penalty, order):
    oracle, X, Y = chain_data(n=3, K=2, F=3, T=3, seed=order, order=order, end=True)
    constraints = []
    for x, gold in zip(X, Y, strict=True):
        reference = ReferenceChain(x, 2, order=order, end=True)
        true = reference.joint_feature(gold)
        constraints.append(
            [
                constraint(true - reference.joint_feature(y), reference.loss(gold, y), rescaling, penalty)
                for y in reference.labellings()
                if y != tuple(gold)
            ]
        )
    C = np.full(3, 0.4)
    run = larank(schedule, C=0.4, rescaling=rescaling, penalty=penalty, tol=3e-6, max_iter=3000).solve(
        oracle.bind(X, Y, rescaling=rescaling, penalty=penalty)
    )
    assert run.status == "converged"
    expected = solve_dual(constraints, C, penalty)
    assert run.dual == pytest.approx(expected, rel=1e-5)
    assert run.primal == pytest.approx(expected, rel=1e-5)
    assert primal(run.weights.astype(float), constraints, C, penalty) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("kind", [ViterbiOracle, GreedyOracle])
def test_schedules_agree_and_the_gap_is_true(kind):
    oracle, X, Y = chain_data(kind, n=30)
    results = []
    for schedule in SCHEDULES:
        run = larank(schedule, C=0.2, tol=1e-4, max_iter=2000, average=schedule == "fixed").solve(oracle.bind(X, Y))
        assert run.status == "converged"
        assert 0.0 <= relative_gap(run.primal, run.dual) <= 1e-4
        # Another problem, another state: the exact pass gives the same.
        other = larank(schedule, C=0.2).start(oracle.bind(X, Y)).state
        assert other.primal(run.weights) == pytest.approx(run.primal, rel=1e-6)
        results.append(run)
    for run in results[1:]:
        assert run.dual <= results[0].primal * (1 + 1e-6) and results[0].dual <= run.primal * (1 + 1e-6)


def test_a_hard_margin_is_certified_at_feasible_weights():
    data = Data(3, n=8, n_inputs=12, penalty=None, separable=True)
    run = larank("decode-once", penalty=None, tol=1e-4, max_iter=500).solve(data.bind())
    assert run.status == "converged"
    psi = np.array([psi for of_one in data.oracle.constraints(data.X, data.Y, "margin") for _, psi in of_one])
    least = min(1.0, (psi @ run.weights).min())
    assert run.primal == pytest.approx(0.5 * run.weights @ run.weights / least**2, rel=1e-9)
    # Nothing separates an example from itself with another label.
    data.X[1], data.Y[1] = data.X[0], (data.Y[0] + 1) % 3
    run = larank("decode-once", penalty=None, max_iter=5).solve(data.bind())
    assert run.primal == np.inf
    assert run.status == "max_iter"


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("penalty", ["linear", "quadratic", None])
def test_sample_weight(schedule, penalty):
    """Weight 0: the example is not there; weight 2: it is there twice."""
    data = Data(5, n=6, n_inputs=8, penalty=penalty, separable=penalty is None)
    solver = larank(schedule, C=0.4, penalty=penalty, tol=1e-9, max_iter=3000)
    weight = np.array([0.0, 1.0, 2.0, 1.0, 0.0, 1.0])
    run = solver.solve(data.bind(), sample_weight=weight)
    assert not set(run.state.get_state()["cut_example"]) & {0, 4}
    keep = [1, 2, 2, 3, 5]
    twice = Data(5, n=6, n_inputs=8, penalty=penalty, separable=penalty is None)
    twice.X, twice.Y = [twice.X[i] for i in keep], [twice.Y[i] for i in keep]
    other = solver.solve(twice.bind())
    assert run.status == other.status == "converged"
    assert run.dual == pytest.approx(other.dual, rel=1e-8)
    assert np.allclose(run.weights, other.weights, atol=1e-4)


@pytest.mark.parametrize("weight", [[1.0], [1.0] * 6 + [-1.0], [1.0] * 6 + [np.nan], 1.0])
def test_sample_weights_that_do_not_fit(weight):
    with pytest.raises(ValueError, match="sample_weight must be 7 finite numbers >= 0, one per example"):
        LaRank().solve(Data().bind(), sample_weight=weight)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("penalty", ["linear", "quadratic"])
def test_base_weights(schedule, penalty):
    data = Data(6, n=6, penalty=penalty)
    base = np.random.default_rng(6).normal(size=data.oracle.n_features)
    constraints = data.oracle.constraints(data.X, data.Y, "margin")
    C = np.full(6, 0.4)
    run = larank(schedule, C=0.4, penalty=penalty, tol=1e-9, max_iter=3000).solve(data.bind(), base=base)
    assert run.status == "converged"
    assert run.dual == pytest.approx(solve_dual(constraints, C, penalty, base), rel=1e-7)
    assert run.primal == pytest.approx(primal(run.weights, constraints, C, penalty, base), rel=1e-9)
    alpha, cuts = alphas_of(run.state.get_state(), 6, data.oracle.n_features)
    assert run.dual == pytest.approx(dual(alpha, cuts, C, penalty, base), rel=1e-9)


def test_base_weights_of_chains():
    oracle, X, Y = chain_data(n=10)
    base = np.random.default_rng(0).normal(size=oracle.n_features)
    base.reshape(-1, oracle.stride)[:, 3:] = 0.0
    run = larank("decode-once", C=0.4, tol=1e-4, max_iter=1000).solve(oracle.bind(X, Y), base=base)
    assert run.status == "converged"
    assert -1e-6 <= run.primal - run.dual <= 1e-4 * run.primal


# --- counts, histories, seeds ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "solver",
    [
        *[LaRank(schedule=s, max_iter=3, random_state=0) for s in SCHEDULES],
        LaRank(max_iter=3, tol=1e-12, average=False, random_state=0),
        PassiveAggressive(max_iter=2, random_state=0),
        Perceptron(max_iter=3, random_state=0),
    ],
    ids=str,
)
def test_n_argmax_counts_every_call(solver):
    data = Data(7, n=9)
    problem = data.perceptron() if isinstance(solver, Perceptron) else data.bind()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        run = solver.solve(problem)
    result = run.result()
    assert result.n_argmax == len(data.oracle.calls) == result.history["n_argmax"][-1]
    assert result.n_iter == solver.max_iter
    for column in ("seconds", "n_iter", "n_argmax"):
        assert (np.diff(result.history[column]) >= 0).all()
    if run.has_dual:
        state = run.state.get_state()
        assert result.n_support == len(state["cut_example"]) + len(set(state["cut_example"]))
        assert (np.diff(result.history["dual"]) >= -1e-9).all()
        assert result.gap == result.primal - result.dual >= 0.0


@pytest.mark.parametrize("kind", [ViterbiOracle, GreedyOracle])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_equal_seeds_give_equal_models(kind, schedule):
    oracle, X, Y = chain_data(kind, n=20)
    runs = [larank(schedule, random_state=seed, max_iter=3).solve(oracle.bind(X, Y)) for seed in (1, 1, 2)]
    assert np.array_equal(runs[0].weights, runs[1].weights)
    assert not np.array_equal(runs[0].weights, runs[2].weights)
    assert runs[0].result().n_argmax == runs[1].result().n_argmax


def test_a_random_state_is_drawn_from():
    data = Data(8, n=9)
    rng = np.random.RandomState(0)
    runs = [larank("fixed", random_state=rng, max_iter=1).solve(data.bind()).weights for _ in range(2)]
    assert not np.array_equal(*runs)
    again = larank("fixed", random_state=np.random.RandomState(0), max_iter=1).solve(data.bind()).weights
    assert np.array_equal(runs[0], again)
    larank("fixed", random_state=None, max_iter=1).solve(data.bind())


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("max_iter", [1, 3])
def test_passive_aggressive_is_larank_without_old_examples(average, max_iter):
    oracle, X, Y = chain_data(n=20)
    options = {"C": 0.3, "average": average, "max_iter": max_iter, "random_state": 3}
    a = PassiveAggressive(**options).solve(oracle.bind(X, Y))
    b = LaRank(schedule="fixed", n_reprocess=0, **options).solve(oracle.bind(X, Y))
    assert np.array_equal(a.weights, b.weights)
    assert (a.primal, a.dual, a.state.n_argmax) == (b.primal, b.dual, b.state.n_argmax)


# --- averages and the perceptron ------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_certificates_of_many_examples_drop_the_worse_weights(n_jobs, monkeypatch):
    oracle, X, Y = chain_data(n=400, T=3)

    def trained(most, certainty, **options):
        monkeypatch.setattr(runs, "MANY_EXAMPLES", most)
        monkeypatch.setattr(runs, "CERTAINTY", certainty)
        monkeypatch.setattr(parallel, "SHARD_EXAMPLES", 30)
        solver = LaRank(**{"C": 0.01, "max_iter": 2, "random_state": 0} | options)
        problem, sizes = oracle.bind(X, Y, **solver.formulation()), []
        run = solver.start(problem)
        violations, run.rounds.n_jobs = run.rounds.violations, n_jobs

        def counted(w, *part):
            found = violations(w, *part)
            sizes.append(len(found))
            return found

        run.rounds.violations = counted
        return solver.solve(problem, run=run), sizes

    whole, asked = trained(500, 0.0)
    assert asked == [400, 400]
    for certainty in (np.inf, 0.0):
        run, asked = trained(400, certainty)
        assert run.use_average == whole.use_average and np.array_equal(run.weights, whole.weights)
        assert run.primal == pytest.approx(whole.primal, rel=1e-14) and run.dual == whole.dual
        saved = 800 - sum(asked)
        assert whole.state.n_argmax - run.state.n_argmax == saved
        assert saved == 0 if certainty else saved > 340
    assert trained(400, 0.0, penalty="quadratic")[1] == [400, 400]
    assert trained(400, 0.0, average=False)[1] == [400]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_average_in_the_place_of_its_sum(n_jobs):
    oracle, X, Y = chain_data(n=60)
    solver = LaRank(max_iter=3, n_jobs=n_jobs, deterministic=False, random_state=0)
    run, plain = (solver.start(oracle.bind(X, Y)) for _ in range(2))
    taken = []
    for _ in range(3):
        for one in (run, plain):
            while not one.advance(np.inf):
                pass
        run.certify()
        average = run.state.averaged()
        assert average is run.state.averaged()
        if n_jobs == 1:  # threads add up in another order each time
            assert np.array_equal(average, plain.state.averaged())
        taken.append((average, average.copy()))
    assert all(np.array_equal(average, then) for average, then in taken)
    assert not np.array_equal(taken[0][0], taken[1][0])


def test_ctrl_c_in_the_average(monkeypatch):
    """Half of a sum is no average: without one, the last weights stand for it."""
    oracle, X, Y = chain_data(n=20)
    run = LaRank(max_iter=2, random_state=0).start(oracle.bind(X, Y))
    while not run.advance(np.inf):
        pass

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "divide", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run.state.end_average()
    monkeypatch.undo()
    assert np.array_equal(run.state.averaged(), run.state.weights)


@pytest.mark.parametrize(
    "solver",
    [
        LaRank(schedule="decode-once", max_iter=3, random_state=0),
        LaRank(schedule="fixed", n_reprocess=2, max_iter=2, random_state=0),
        LaRank(schedule="adaptive", max_iter=2, random_state=0),
        PassiveAggressive(average=True, max_iter=1, random_state=0),
    ],
    ids=str,
)
def test_the_average_over_the_last_pass(solver):
    """Weights after visit t of the last pass count t times: sum_t t w_t / sum_t t."""
    data = Data(9, n=12)
    run = solver.start(data.bind())
    for _ in range(solver.max_iter):
        data.oracle.calls.clear()
        while not run.advance(np.inf):
            pass
    after = np.array([*data.oracle.calls[1:], run.state.weights])
    t = np.arange(1, len(after) + 1)
    assert np.allclose(run.state.averaged(), t @ after / t.sum(), rtol=1e-9, atol=1e-12)
    run.certify()
    constraints, C = data.oracle.constraints(data.X, data.Y, "margin"), np.ones(12)
    both = [primal(w, constraints, C, "linear") for w in (run.state.weights, t @ after / t.sum())]
    assert run.primal == pytest.approx(min(both), rel=1e-9)
    assert primal(run.weights, constraints, C, "linear") == pytest.approx(min(both), rel=1e-9)


@pytest.mark.parametrize("max_iter", [1, 4])
def test_perceptron(max_iter):
    """Against the plain algorithm, in the same order of visits."""
    data = Data(10, n=15)
    order, plain = [], data.oracle.argmax

    def argmax(x, w, y_true=None, rescaling=None):
        assert y_true is None and rescaling is None
        order.append(next(i for i in range(15) if data.X[i] is x or np.array_equal(data.X[i], x)))
        return plain(x, w)

    data.oracle.argmax = argmax
    averaged = Perceptron(max_iter=max_iter, random_state=0).solve(data.perceptron())
    assert averaged.status == "max_iter" and np.isnan(averaged.result().gap) and np.isnan(averaged.result().dual)
    visits = list(order)
    assert [sorted(visits[k : k + 15]) for k in range(0, len(visits), 15)] == [list(range(15))] * max_iter
    last = Perceptron(average=False, max_iter=max_iter, random_state=0).solve(data.perceptron())
    assert order[len(visits) :] == visits
    reference = PlainPerceptron(data.oracle.n_features)
    for i in visits:
        y = int(np.argmax(reference.w.reshape(3, -1) @ data.X[i]))
        reference.visit(data.oracle.dense(data.X[i], data.Y[i]), data.oracle.dense(data.X[i], y))
    assert np.allclose(last.weights, reference.w, rtol=1e-9, atol=1e-12)
    assert np.allclose(averaged.weights, reference.average, rtol=1e-9, atol=1e-12)


def test_perceptron_of_chains():
    oracle, X, Y = chain_data(n=15, order=2)
    problem = oracle.bind(X, Y, rescaling=None)
    seen = []

    class Order(Monitor):
        def end_pass(self, run):
            seen.append(run.weights)

    run = Perceptron(average=False, max_iter=3, random_state=0).solve(problem, monitor=Order())
    assert len(seen) == 3 and np.array_equal(seen[-1], run.weights)
    # Whole numbers times features: the update of a mistake is Psi(true) - Psi(predicted), or nothing.
    _, psi = problem.separate(0, run.weights)
    y = oracle.argmax(X[0], run.weights)
    assert np.allclose(psi, oracle.joint_feature(X[0], Y[0]) - oracle.joint_feature(X[0], y), atol=1e-6)
    with pytest.raises(ValueError, match="Perceptron takes no sample_weight"):
        Perceptron().solve(problem, sample_weight=np.ones(15))


# --- stopping -------------------------------------------------------------------------------------


def test_convergence_warning():
    data = Data(11, n=9)
    with pytest.warns(
        ConvergenceWarning,
        match=(r"LaRank stopped after 2 passes at a relative gap of \d.*, above tol=1e-12: raise max_iter"),
    ):
        run = larank("fixed", C=5.0, max_iter=2, tol=1e-12, n_reprocess=0).solve(data.bind())
    assert run.status == "max_iter"
    assert np.isfinite(run.primal)


def test_a_monitor_stops_after_a_pass():
    class Third(Monitor):
        passes = closed = 0

        def end_pass(self, run):
            self.passes += 1
            return self.passes == 3

        def close(self):
            self.closed += 1

    data, monitor = Data(12), Third()
    run = larank("fixed", max_iter=50).solve(data.bind(), monitor=monitor)
    assert (run.status, run.n_iter, monitor.closed) == ("stopped", 3, 1)
    assert np.isfinite(run.primal)


def test_approximate_inference_has_no_gap():
    data = Data()
    data.oracle.inference = "approximate"
    result = LaRank(max_iter=2, random_state=0).solve(data.bind()).result()
    assert np.isnan(result.primal) and np.isnan(result.gap) and result.primal_found >= result.dual > 0
    assert f"primal at least {result.primal_found:.6g}, no duality gap claimed" in result.certificate()
    with pytest.warns(ConvergenceWarning, match="a relative gap of the constraints found of"):
        LaRank(max_iter=1, tol=1e-9, random_state=0).solve(data.bind())


def test_the_problem_must_be_bound_as_the_solver_needs_it():
    data = Data()
    for solver, problem in [
        (LaRank(penalty="quadratic"), data.bind()),
        (LaRank(rescaling="slack"), data.bind()),
        (LaRank(), data.perceptron()),
        (Perceptron(), data.bind()),
    ]:
        with pytest.raises(ValueError, match=rf"{type(solver).__name__} solves .* but Multiclass was bound with"):
            solver.solve(problem)
    with pytest.raises(ValueError, match="there are no examples to train on"):
        LaRank().solve(data.oracle.bind([], []))
    oracle, _, _ = chain_data()
    with pytest.raises(ValueError, match="there are no examples to train on"):
        LaRank().solve(
            oracle.bind([np.ones((1, 4))], [[0]]).chain.structure.bind(oracle.chain([np.ones((1, 4))]).tokens[:0], [])
        )


# --- saving and going on --------------------------------------------------------------------------

SAVED = [
    *[
        LaRank(C=0.3, schedule=s, n_reprocess=r, average=a, random_state=4)
        for s, r in (("decode-once", 0.3), ("fixed", 1), ("adaptive", 2))
        for a in (False, True)
    ],
    PassiveAggressive(C=0.3, average=True, random_state=4),
    Perceptron(random_state=4),
    Perceptron(average=False, random_state=4),
]


def problem_for(solver, kind):
    if kind == "python":
        return Data(13, n=12).bind() if solver.formulation()["rescaling"] else Data(13, n=12).perceptron()
    oracle, X, Y = chain_data(ViterbiOracle if kind == "viterbi" else GreedyOracle, n=12)
    return oracle.bind(X, Y, **solver.formulation())


def finish(run):
    return (run.weights, run.state.weights, run.state.n_argmax, run.state.n_updates, run.primal, run.dual, run.n_iter)


@pytest.mark.parametrize("kind", ["python", "viterbi", "greedy"])
@pytest.mark.parametrize("solver", SAVED, ids=str)
@pytest.mark.parametrize("k", [1, 3])
def test_saving_and_going_on_is_one_run(solver, kind, k):
    whole = solver.solve(problem_for(solver, kind), passes=k + 2)
    first = solver.start(problem_for(solver, kind))
    for _ in range(k):
        while not first.advance():
            pass
    saved = first.get_state()
    kept = {name: array.copy() for name, array in saved.items()}
    # Saved arrays do not change when the first run goes on.
    while not first.advance():
        pass
    assert all(np.array_equal(saved[name], kept[name], equal_nan=True) for name in kept)
    second = solver.start(problem_for(solver, kind))
    second.set_state(saved)
    again = second.get_state()
    assert set(again) == set(saved)
    assert all(np.array_equal(again[name], saved[name], equal_nan=True) for name in saved)
    second = solver.solve(second.problem, run=second, passes=2)
    for a, b in zip(finish(whole), finish(second), strict=True):
        assert np.array_equal(a, b, equal_nan=True)


def damaged(state, rng):
    """A copy with something wrong in it."""
    state = {name: np.array(array) for name, array in state.items()}
    name = str(rng.choice(list(state)))
    array = state[name]
    match rng.integers(0, 6):
        case 0:
            del state[name]
        case 1:
            state[name] = array[: rng.integers(0, len(array) + 1)]
        case 2:
            state[name] = array.astype(rng.choice([np.int64, np.float64, np.int32, np.float32, np.int8]))
        case 3 if array.size:
            flat = array.reshape(-1)
            info = None if array.dtype.kind == "f" else np.iinfo(array.dtype)
            values = [np.nan, np.inf, -1.0, 1e300, 0.0] if info is None else [info.min, info.max, -1, 0, 7, 10**6]
            flat[rng.integers(0, flat.size, rng.integers(1, 4))] = np.array(
                rng.choice([v for v in values if info is None or info.min <= v <= info.max])
            ).astype(array.dtype)
        case 4 if array.size:
            bits = array.reshape(-1).view(np.uint8)
            bits[rng.integers(0, bits.size, 8)] = rng.integers(0, 256, 8)
        case 5:
            state[name] = array[None] if rng.random() < 0.5 else np.concatenate([array, array])
    return state


@pytest.mark.parametrize("kind", ["python", "viterbi", "greedy"])
@pytest.mark.parametrize("solver", SAVED[::2] + SAVED[-1:], ids=str)
def test_hostile_states(solver, kind):
    """Each damaged state is refused with a ValueError, or is a sound state that trains on."""
    rng = np.random.default_rng(0)
    run = solver.solve(problem_for(solver, kind), passes=2)
    saved = run.get_state()
    problem = problem_for(solver, kind)
    refused = 0
    for _ in range(150):
        run = solver.start(problem)
        with np.errstate(all="ignore"):
            try:
                run.set_state(damaged(saved, rng))
            except ValueError:
                refused += 1
                # A refused state leaves the run as it was.
                assert run.n_iter == 0 and run.state.n_visits == 0 and not run.state.weights.any()
            with suppress(ValueError):  # weights near the largest number overflow
                run.advance()
    assert refused > 30


# --- errors and Ctrl-C in the middle --------------------------------------------------------------


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("method", ["argmax", "joint_feature", "loss"])
def test_exceptions_of_user_code_come_out_and_training_goes_on(schedule, method):
    class Trouble(Exception):
        pass

    data = Data(14, n=12)
    plain, calls, error = getattr(data.oracle, method), [], Trouble("from the user")

    def broken(*args, **kwargs):
        calls.append(None)
        if len(calls) == 20:
            raise error
        return plain(*args, **kwargs)

    setattr(data.oracle, method, broken)
    solver = larank(schedule, tol=1e-6, max_iter=1000)
    problem = data.bind()
    run = solver.start(problem)
    with pytest.raises(Trouble) as caught:
        solver.solve(problem, run=run)
    assert caught.value is error
    run = solver.solve(problem, run=run)
    assert run.status == "converged"
    expected = solve_dual(data.oracle.constraints(data.X, data.Y, "margin"), np.ones(12), "linear")
    assert run.dual == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    "solver",
    [
        *[larank(s) for s in SCHEDULES],
        larank("fixed", average=True),
        larank("fixed", tol=1e-12),
        CuttingPlane(tol=1e-12, random_state=0),
        CuttingPlane(tol=None, optimize="constraint", max_iter=50, random_state=0),
        FrankWolfe(tol=1e-12, random_state=0),
    ],
    ids=str,
)
@pytest.mark.parametrize("call", [1, 9, 20])
def test_keyboard_interrupt_from_the_oracle(solver, call):
    data = Data(15, n=12)
    plain, calls = data.oracle.argmax, []

    def argmax(*args, **kwargs):
        calls.append(None)
        if len(calls) == call:
            raise KeyboardInterrupt
        return plain(*args, **kwargs)

    data.oracle.argmax = argmax
    problem = data.bind()
    run = solver.solve(problem)
    assert run.status == "interrupted"
    result = run.result()
    assert np.isfinite(run.weights).all() and np.isfinite(result.dual) and np.isnan(result.primal)
    alpha, cuts = alphas_of(run.get_state(), 12, data.oracle.n_features)
    assert result.dual == pytest.approx(dual(alpha, cuts, np.ones(12), "linear"), rel=1e-9, abs=1e-12)
    run = type(solver)(**solver.get_params() | {"tol": None}).solve(problem, run=run, passes=2)
    assert run.status in ("max_iter", "converged") and run.dual >= result.dual - 1e-9
    solver.start(data.bind()).set_state(run.get_state())


@pytest.mark.skipif(os.name != "posix", reason="sends a signal to itself")
@pytest.mark.parametrize("kind", ["short", "long", "python"])
@pytest.mark.parametrize("schedule", [*SCHEDULES, "cutting plane", "two threads", "Frank-Wolfe"])
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_ctrl_c(kind, schedule, rescaling):
    """A real SIGINT ends training soon, whatever the schedule is doing."""
    rng = np.random.default_rng(0)
    if kind == "python":
        data = Data(16, n=200)
        problem = data.bind(rescaling)
    else:
        T, n = (5, 200) if kind == "short" else (300, 20)
        oracle = ViterbiOracle(6, 10)
        problem = oracle.bind(
            [rng.normal(size=(T, 10)) for _ in range(n)], [rng.integers(0, 6, T) for _ in range(n)], rescaling=rescaling
        )
    endless = {"rescaling": rescaling, "max_iter": 10**6, "random_state": 0}
    if schedule in ("cutting plane", "two threads"):
        n_jobs = 2 if schedule == "two threads" else None
        solver = CuttingPlane(tol=1e-300, n_jobs=n_jobs, **endless)
    elif schedule == "Frank-Wolfe":
        solver = FrankWolfe(tol=1e-300, **endless)
    else:
        solver = larank(schedule, n_reprocess=10, **endless)
    sent = []

    def fire():
        time.sleep(0.15)
        sent.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=fire)
    thread.start()
    run = solver.solve(problem)
    seconds = time.process_time() - sent[0]
    thread.join()
    assert run.status == "interrupted"
    assert seconds < 2.0  # about 0.02 on a quiet machine; 0.2 is what is promised
    assert np.isfinite(run.weights).all()
    settled = run.state.settle()
    assert run.result().dual == pytest.approx(settled, rel=1e-5)  # weights are of single precision
    assert run.state.primal() >= settled * (1 - 1e-5)


def test_larank_ends_with_a_pass_that_gains_little():
    oracle, X, Y = chain_data(n=60)
    problem = oracle.bind(X, Y)
    solver = LaRank(random_state=0)
    run = solver.solve(problem)
    duals = [LaRank(max_iter=k, random_state=0).solve(problem).dual for k in range(1, run.n_iter + 1)]
    gains = np.diff(duals, prepend=0.0) / duals
    assert run.status == "settled" and run.result().status == "settled"
    assert gains[-1] <= 0.02 < gains[:-1].min() and run.gain == pytest.approx(gains[-1])
    assert LaRank(max_iter=run.n_iter + 2, random_state=0).solve(problem).status == "max_iter"
    assert solver.solve(problem, passes=run.n_iter + 1).n_iter == run.n_iter + 1
