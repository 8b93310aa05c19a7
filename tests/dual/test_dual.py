"""The dual state and its steps on problems whose constraints can all be written out."""

import gc
import itertools

import numpy as np
import pytest
from dual_reference import dual, primal
from hypothesis import given, settings
from hypothesis import strategies as st
from python_oracles import Data, alphas_of

import structsvm
from structsvm import LaRank, PassiveAggressive
from structsvm.dual._dual import DualState
from structsvm.dual._weights import WeightState
from structsvm.execution._stop import Job, look_every
from structsvm.oracles.greedy import GreedyOracle
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.progress import Monitor

SCHEDULES = ["decode-once", "fixed", "adaptive"]
FORMULATIONS = [(rescaling, penalty) for rescaling in ("margin", "slack") for penalty in ("linear", "quadratic", None)]


def chains(kind=ViterbiOracle, n=12, seed=0, K=3, F=4, T=4):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, T + 1, n)
    X = [rng.normal(size=(t, F)).astype(np.float32) for t in lengths]
    return kind(K, F, order=2), X, [rng.integers(0, K, t) for t in lengths]


def steps(run, n_passes):
    """Run, stopping as often as one can; yields after every stop."""
    for _ in range(n_passes):
        run.schedule.start_pass()
        run.state.restart_average()
        done = False
        while not done:
            done = run.schedule.run(0.0)
            yield run


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("rescaling", "penalty"), FORMULATIONS)
@given(seed=st.integers(0, 10**6), C=st.sampled_from([0.01, 0.3, 5.0]))
@settings(max_examples=6)
def test_invariants(schedule, rescaling, penalty, seed, C):
    """Feasible, never falling, what is tracked is what is true, and never above the primal."""
    data = Data(seed, separable=True, penalty=penalty)
    problem, d = data.bind(rescaling), data.oracle.n_features
    n = problem.n_samples
    solver = LaRank(C=C, rescaling=rescaling, penalty=penalty, schedule=schedule, n_reprocess=1, random_state=seed)
    run, value, C_all = solver.start(problem), 0.0, np.full(n, C)
    constraints = data.oracle.constraints(data.X, data.Y, rescaling)
    for _ in steps(run, 3):
        state = run.state.get_state()
        alpha, cuts = alphas_of(state, n, d)
        assert all(a > 0.0 for of_one in alpha for a in of_one)
        if penalty == "linear":
            assert all(sum(of_one) <= C * (1.0 + 1e-9) for of_one in alpha)
        known = [(i, b, psi) for i, of_one in enumerate(cuts) for b, psi in of_one]
        assert all(
            any(b == pytest.approx(bb) and np.allclose(psi, pp) for bb, pp in constraints[i]) for i, b, psi in known
        )
        exact = dual(alpha, cuts, C_all, penalty)
        assert run.state.dual == pytest.approx(exact, rel=1e-9, abs=1e-12)
        assert run.state.dual >= value - 1e-12 * max(1.0, abs(value))
        value = run.state.dual
        w = sum(
            (a * psi for of_a, of_c in zip(alpha, cuts, strict=True) for a, (_, psi) in zip(of_a, of_c, strict=True)),
            np.zeros(d),
        )
        assert np.allclose(run.state.weights, w, rtol=1e-9, atol=1e-12)
        assert run.state.n_cuts == len(known)
        assert run.state.n_patterns == sum(bool(of_one) for of_one in alpha)
        if penalty is not None:
            above = primal(run.state.weights, constraints, C_all, penalty)
            assert run.state.dual <= above + 1e-9 * max(1.0, above)
            assert run.state.primal() == pytest.approx(above, rel=1e-9)
    tracked = run.state.dual
    assert run.state.settle() == pytest.approx(tracked, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("kind", [ViterbiOracle, GreedyOracle])
@pytest.mark.parametrize(("rescaling", "penalty"), FORMULATIONS)
def test_the_dual_of_chains_never_falls(schedule, kind, rescaling, penalty):
    oracle, X, Y = chains(kind)
    run = LaRank(C=0.3, rescaling=rescaling, penalty=penalty, schedule=schedule, n_reprocess=1, random_state=0).start(
        oracle.bind(X, Y, rescaling=rescaling, penalty=penalty)
    )
    value = 0.0
    for _ in itertools.islice(steps(run, 3), 400):
        assert run.state.dual >= value - 1e-6 * max(1.0, value)
        value = run.state.dual
    assert run.state.settle() == pytest.approx(value, rel=1e-4)
    assert value <= run.state.primal() * (1.0 + 1e-5)


# --- theorems of the thesis, section 5.1.5 --------------------------------------------------------


class Witness:
    """Notes the state's dual at each arg max, so that one knows what each visit gained."""

    def __init__(self, data, solver):
        self.problem = data.bind(solver.rescaling)
        self.oracle, self.duals, self.inputs = data.oracle, [], []
        plain = data.oracle.argmax

        def argmax(x, w, y_true=None, rescaling=None):
            self.duals.append(self.run.state.dual)
            self.inputs.append((x, y_true, np.array(w)))
            return plain(x, w, y_true, rescaling)

        data.oracle.argmax = argmax
        self.run = solver.start(self.problem)
        self.run.schedule.start_pass()
        self.run.schedule.run(np.inf)
        self.gains = np.diff([*self.duals, self.run.state.dual])


def mu(rho, C, x):
    low = min(x, rho * C)
    return low * (x - low / 2) / (rho * C)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("C", [0.02, 0.5, 10.0])
def test_proposition_11_gain_of_process_new(seed, C):
    data = Data(seed, n=20)
    seen = Witness(data, PassiveAggressive(C=C, random_state=seed))
    assert len(seen.gains) == 20
    for (x, y, w), gain in zip(seen.inputs, seen.gains, strict=True):
        values = [data.oracle.value(x, w, y, "margin", z) for z in range(3)]
        worst = int(np.argmax(values))
        psi = data.oracle.dense(x, y) - data.oracle.dense(x, worst)
        expected = C * mu(psi @ psi, C, values[worst]) if worst != y else 0.0
        assert gain == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_theorem_10_regret(seed):
    C, n = 0.3, 30
    data = Data(seed, n=n)
    seen = Witness(data, PassiveAggressive(C=C, random_state=seed))
    constraints = data.oracle.constraints(data.X, data.Y, "margin")
    rho = max(psi @ psi for of_one in constraints for _, psi in of_one)

    def loss(w, of_one):
        return max([0.0] + [b - psi @ w for b, psi in of_one])

    online = np.mean([max(data.oracle.value(x, w, y, "margin", z) for z in range(3)) for x, y, w in seen.inputs])
    best = LaRank(C=C, tol=1e-8, max_iter=500, random_state=0).solve(data.bind()).weights
    for w in (np.zeros_like(best), best, 2 * best, seen.run.weights):
        batch = np.mean([loss(w, of_one) for of_one in constraints])
        assert online - batch <= w @ w / (2 * n * C) + rho * C / 2


@pytest.mark.parametrize("schedule", ["fixed", "adaptive"])
def test_theorem_9_number_of_support_vectors(schedule):
    """Steps of a slope above tau gain at least min(tau^2 / 2 rho, kappa tau / 2): their number is bounded."""
    C, n = 0.3, 30
    data = Data(0, n=n)
    run = LaRank(C=C, schedule=schedule, n_reprocess=1, random_state=0).start(data.bind())
    constraints = data.oracle.constraints(data.X, data.Y, "margin")
    rho = max(psi @ psi for of_one in constraints for _, psi in of_one)
    largest = max(b for of_one in constraints for b, _ in of_one)
    added = 0
    for _ in steps(run, 5):
        added = max(added, run.state.n_updates)
    assert run.state.dual <= n * C * largest
    tau = run.state.tau
    assert added <= max(2 * rho * n * C * largest / tau**2, 2 * n * C * largest / (C * tau))
    # On this run the bound comes to: no more cuts than n times the wrong outputs.
    assert run.state.n_cuts <= n * (data.oracle.n_classes - 1)


# --- special points -------------------------------------------------------------------------------


def test_a_constraint_with_a_zero_joint_feature():
    """x = 0: no weights can tell the classes apart; the slack takes the whole loss."""
    data = Data(1, n=4)
    data.X[2] = 0.0
    run = LaRank(C=0.5, tol=1e-7, max_iter=300, random_state=0).solve(data.bind())
    assert run.status == "converged"
    worst = max(data.oracle.costs[data.Y[2]])
    alpha, cuts = alphas_of(run.state.get_state(), 4, data.oracle.n_features)
    assert sum(alpha[2]) == pytest.approx(0.5)
    assert max(b for b, _ in cuts[2]) == worst
    data = Data(1, n=4, penalty="quadratic", costs=False)
    data.X[2] = 0.0
    run = LaRank(C=0.5, penalty="quadratic", tol=1e-6, max_iter=300, random_state=0).solve(data.bind())
    assert run.status == "converged"
    assert sum(alphas_of(run.state.get_state(), 4, data.oracle.n_features)[0][2]) == pytest.approx(0.5)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_hard_margin_without_bound_leaves_a_sound_state(schedule):
    data = Data(1, n=4, penalty=None)
    data.X[2] = 0.0
    solver = LaRank(penalty=None, schedule=schedule, random_state=0)
    problem = data.bind()
    run = solver.start(problem)
    with pytest.raises(ValueError, match="the dual is unbounded: example 2 has a constraint with a zero joint feature"):
        solver.solve(problem, run=run)
    state = run.state.get_state()
    assert (state["cut_numbers"][:, 0] > 0.0).all() and 2 not in state["cut_example"]
    solver.start(problem).state.set_state(state)


@pytest.mark.parametrize("scale", [1e-7, 1.0, 1e7])
def test_features_of_any_size(scale):
    """The same problem in other units: x times s and C over s^2 leave the margins alone."""
    results = []
    for s in (1.0, scale):
        data = Data(2, n=8, penalty="quadratic", costs=False)
        data.X = data.X * s
        run = LaRank(C=1.0 / s**2, penalty="quadratic", tol=1e-9, max_iter=500, random_state=0).solve(data.bind())
        assert run.status == "converged"
        results.append(run.dual * s**2)
    assert results[1] == pytest.approx(results[0], rel=1e-7)
    data = Data(3, n=8, n_inputs=12, penalty=None, separable=True)
    data.X = data.X * scale
    run = LaRank(penalty=None, tol=1e-6, max_iter=500, random_state=0).solve(data.bind())
    assert run.status == "converged"
    assert (
        min(psi @ run.weights for of_one in data.oracle.constraints(data.X, data.Y, "margin") for _, psi in of_one)
        > 0.999
    )


def test_arguments():
    data = Data(0, n=3)
    problem = data.bind()
    for C, message in [
        ([1.0], "C has 1 entries for 3 examples"),
        ([1.0, -1.0, 1.0], "C must be finite and not negative"),
        ([1.0, np.nan, 1.0], "C must be finite"),
        ([1.0, np.inf, 1.0], "C must be finite"),
    ]:
        with pytest.raises(ValueError, match=message):
            DualState(problem, np.array(C))
    for kind in (WeightState, DualState):
        with pytest.raises(TypeError):
            kind(None, np.ones(3)) if kind is DualState else kind(None)
    C = np.full(3, 2.0)
    C.flags.writeable = False
    DualState(problem, C)


def test_states_in_reference_cycles_are_freed():
    """The collector may clear a state's problem before the state itself goes."""
    for _ in range(5):
        data = Data(0, n=5)
        run = LaRank(max_iter=2, random_state=0).solve(data.bind())
        data.oracle.run = run
        del data, run
        gc.collect()


def test_an_oracle_may_keep_the_weights_it_was_shown():
    kept = []

    class Keeper(type(Data().oracle)):
        def argmax(self, x, w, y_true=None, rescaling=None):
            if not kept or kept[-1] is not w:
                kept.append(w)
            return super().argmax(x, w, y_true, rescaling)

    data = Data(0, n=5)
    data.oracle.__class__ = Keeper
    run = LaRank(max_iter=2, random_state=0).solve(data.bind())
    problem = data.bind()
    for k in range(50):
        problem.separate(0, np.full(problem.n_features, float(k)))
    final = run.state.weights.copy()
    del run
    gc.collect()
    noise = [np.full(problem.n_features, -1.0) for _ in range(200)]
    assert len(noise) == 200
    assert any(np.array_equal(w, final) for w in kept)
    assert all((w == w[0]).all() and w[0] == float(k) for k, w in enumerate(kept[-50:]))


def test_scores_that_overflow():
    oracle, X, Y = chains()
    problem = oracle.bind([x * 1e30 for x in X], Y)
    base = np.full(problem.n_features, 1e30)
    for solver in (LaRank(random_state=0), PassiveAggressive(random_state=0)):
        with pytest.raises(ValueError, match=r"example \d+: its scores overflow; scale the features down"):
            solver.solve(problem, base=base)
    state = solver.start(problem).state
    with pytest.raises(ValueError, match="scores overflow"):
        state.primal(base)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e60])
def test_a_base_that_is_not_finite(value):
    oracle, X, Y = chains()
    problem = oracle.bind(X, Y)
    base = np.zeros(problem.n_features)
    base[1] = value
    with pytest.raises(ValueError, match=r"base must be \d+ finite numbers, one per feature, as float32"):
        WeightState(problem, base=base)


def test_a_base_of_another_shape():
    oracle, X, Y = chains()
    problem = oracle.bind(X, Y)
    for base in (1.0, [1.0], np.zeros(problem.n_features + 1), np.zeros((1, problem.n_features))):
        with pytest.raises(ValueError, match=r"base must be .* got shape \("):
            LaRank(random_state=0).solve(problem, base=base)


def test_sparse_cuts_of_a_user_are_never_misread():
    """Psi with a value that is not a number never gets as far as the state."""

    class Broken(type(Data().oracle)):
        def joint_feature(self, x, y):
            return [0], [np.inf]

    data = Data()
    data.oracle.__class__ = Broken
    with pytest.raises(structsvm.OracleError):
        LaRank().solve(data.bind())


def test_a_state_with_too_many_constraints_of_one_example():
    """Their inner products would take far more memory than the file that asks for them."""
    oracle, X, Y = chains()
    solver = LaRank(C=1.0, max_iter=3, random_state=0)
    state = solver.solve(oracle.bind(X, Y)).get_state()
    n, words = 100_000, int(state["cut_bounds"][1])
    state |= {
        "cut_example": np.full(n, state["cut_example"][0]),
        "cut_bounds": np.arange(n + 1) * words,
        "cut_numbers": np.tile(state["cut_numbers"][:1] * [1e-6, 1.0, 1.0], (n, 1)),
        "cut_words": np.tile(state["cut_words"][:words], n),
    }
    with pytest.raises(ValueError, match="100000 constraints for one example: more than fit in memory"):
        solver.start(oracle.bind(X, Y)).set_state(state)


@pytest.mark.parametrize("form", ["n_slack", "one_slack"])
def test_a_state_that_is_interrupted_while_it_is_restored(form):
    """Nothing of it is left, or none of its constraints; afterwards it is restored as ever."""
    oracle, X, Y = chains()
    solver = structsvm.CuttingPlane(C=1.0, form=form, max_iter=4, tol=None)
    run = solver.solve(oracle.bind(X, Y))
    saved, found = run.get_state(), []

    def stop():
        found.append(0)
        if len(found) == n:
            raise KeyboardInterrupt

    n, again = 0, solver.start(oracle.bind(X, Y))
    look_every(1, stop)
    try:
        again.set_state(saved)
        total, n_cuts = len(found), again.state.n_cuts
        assert total >= 2 * n_cuts > 0  # at each constraint twice: checked, put in
        for n in range(1, total + 1):
            found.clear()
            with pytest.raises(KeyboardInterrupt):
                again.set_state(saved)
            assert again.state.n_cuts in (0, n_cuts) and (n < total or again.state.n_cuts == 0)
            assert again.state.dual == again.state.settle() and np.any(again.state.weights) == (again.state.n_cuts > 0)
    finally:
        look_every()
    again.set_state(saved)
    assert all(np.array_equal(array, saved[name], equal_nan=True) for name, array in again.get_state().items())


class Ring(Exception):
    """Raised by the handler of a signal."""


def rings(call, at=0):
    """``(looks, result)`` of a call, whose look number `at` raises."""
    n = 0

    def ring():
        nonlocal n
        n += 1
        if n == at:
            raise Ring

    look_every(1, ring)
    try:
        result = call()
    except Ring:
        result = Ring
    finally:
        look_every()
    return n, result


@pytest.mark.parametrize("verb", ["averaged", "settle"])
def test_what_comes_after_a_pass_looks_up_at_each_example(verb):
    """Sums of the weights and of their average, interrupted anywhere: nothing is lost, and the next is the same."""
    oracle, X, Y = chains(n=60)

    def passed():
        run = LaRank(C=1.0, random_state=0).start(oracle.bind(X, Y))
        run.start_pass()
        while not run.schedule.run(0.0):
            pass
        return run.state

    state = passed()
    n, expected = rings(getattr(state, verb))
    assert n >= state.n_patterns > 30
    for at in (1, n // 2, n):
        other = passed()
        before, weights, dual = other.get_state(), other.weights.copy(), other.dual
        assert rings(getattr(other, verb), at) == (at, Ring)
        assert np.array_equal(other.weights, weights) and other.dual == dual
        assert all(np.array_equal(array, before[name]) for name, array in other.get_state().items())
        assert np.array_equal(getattr(other, verb)(), expected)
        assert np.array_equal(other.weights, state.weights)


def test_a_schedule_in_a_thread_looks_up_after_each_block():
    """However little work its oracle counts."""
    oracle, X, Y = chains(n=2000)
    run, job = LaRank(C=1.0, random_state=0).start(oracle.bind(X, Y)), Job()
    run.start_pass()
    job.stop()
    with pytest.raises(KeyboardInterrupt, match="the job was stopped"):
        job.run(run.schedule.run, 60.0)
    assert 0 < run.state.n_argmax <= 64


class Interrupting(Monitor):
    def tick(self, run):
        raise KeyboardInterrupt


def test_the_weights_of_an_interrupted_run_are_not_copied_and_stay_as_they_are():
    """No sum and no copy that grows with the model stands between Ctrl-C and its exception."""
    oracle, X, Y = chains()
    problem, solver = oracle.bind(X, Y), LaRank(C=1.0, max_iter=3, tol=None, average=True, random_state=0)
    run = solver.solve(problem, monitor=Interrupting())
    weights, before = run.weights, run.weights.copy()
    assert run.status == "interrupted" and weights is run.state.weights and before.any()
    run = solver.solve(problem, run=run)
    assert np.array_equal(weights, before) and not np.array_equal(run.state.weights, before)
    whole = solver.set_params(max_iter=4).solve(oracle.bind(X, Y))
    assert np.array_equal(run.weights, whole.weights) and run.weights is not run.state.weights


def test_a_state_with_a_constraint_of_no_words():
    oracle, X, Y = chains()
    solver = LaRank(C=1.0, max_iter=1, random_state=0)
    state = solver.solve(oracle.bind(X, Y)).get_state()
    bounds = state["cut_bounds"].copy()
    bounds[1] = 0
    with pytest.raises(ValueError, match="array 'cut_words' of the training state: cut 0 is none of example"):
        solver.start(oracle.bind(X, Y)).set_state(state | {"cut_bounds": bounds})
