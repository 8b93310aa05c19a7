"""The log loss: its optimum, its certificate, and a run that is resumed, interrupted, weighted and moved."""

import numpy as np
import pytest
from chain_reference import ReferenceChain
from hypothesis import given, settings
from hypothesis import strategies as st
from python_oracles import Logistic, Multiclass
from scipy.optimize import minimize

from structsvm import ConvergenceWarning, OracleError, StructuredSVM
from structsvm.features.tokens import Tokens
from structsvm.oracles.greedy import GreedyOracle
from structsvm.oracles.taxonomy import TaxonomyOracle
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.progress import Monitor
from structsvm.solvers import ConditionalLikelihood, Perceptron
from structsvm.solvers.conditional_likelihood import ROUNDED_PASSES
from structsvm.structures.taxonomy import Taxonomy


def logistic_data(seed=0, n=12, n_classes=3, n_inputs=4):
    rng = np.random.default_rng(seed)
    return Logistic(n_classes, n_inputs), rng.normal(size=(n, n_inputs)), rng.integers(0, n_classes, n).tolist()


def chain_data(seed=0, n=10, K=3, F=4, T=4, **options):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, T + 1, n)
    X = [rng.normal(size=(t, F)).astype(np.float32) for t in lengths]
    return ViterbiOracle(K, F, **options), X, [rng.integers(0, K, t) for t in lengths]


def bound(data):
    oracle, X, Y = data
    return oracle.bind(X, Y, **ConditionalLikelihood().formulation())


def advance(run):
    """Make a pass."""
    while not run.advance():
        pass


TIGHT = {"ftol": 1e-15, "gtol": 1e-9}


def optimum(n_features, spaces, C, base=0.0):
    """The least ``1/2 |w - base|^2 + sum_i C_i loss_i`` by scipy; `spaces`: psi of all outputs, the true one first."""

    def objective(w):
        value, gradient = 0.5 * ((w - base) ** 2).sum(), w - base
        for weight, psi in zip(C, spaces, strict=True):
            scores = psi @ w
            best = scores.max()
            total = np.exp(scores - best).sum()
            value += weight * (best + np.log(total) - scores[0])
            gradient = gradient + weight * (np.exp(scores - best) / total @ psi - psi[0])
        return value, gradient

    found = minimize(objective, np.zeros(n_features), jac=True, method="L-BFGS-B", options=TIGHT)
    return found.fun, found.x


def spaces_of(data):
    oracle, X, Y = data
    if isinstance(oracle, Logistic):
        return [
            np.array([oracle.dense(x, z) for z in sorted(range(oracle.n_classes), key=lambda z: z != y)])
            for x, y in zip(X, Y, strict=True)
        ]
    references = [ReferenceChain(x, oracle.n_labels, order=oracle.order, end=oracle.end) for x in X]
    return [
        np.array([r.joint_feature(z) for z in sorted(r.labellings(), key=lambda z: z != tuple(y))])
        for r, y in zip(references, Y, strict=True)
    ]


@pytest.mark.parametrize("sampling", ["uniform", "gap"])
@given(seed=st.integers(0, 10**6), C=st.sampled_from([0.05, 1.0, 10.0]))
@settings(max_examples=5)
def test_the_optimum_of_an_independent_solver(sampling, seed, C):
    data = logistic_data(seed)
    run = ConditionalLikelihood(C, sampling=sampling, tol=1e-6, max_iter=5000, random_state=0).solve(bound(data))
    assert run.status == "converged"
    expected, w = optimum(12, spaces_of(data), np.full(12, C))
    assert run.dual <= expected * (1 + 1e-9) <= run.primal * (1 + 2e-9)
    assert run.primal == pytest.approx(expected, rel=2e-6)
    assert run.weights == pytest.approx(w, abs=3e-3 * np.abs(w).max())


@pytest.mark.parametrize("options", [{}, {"order": 2}, {"end": True}, {"order": 2, "end": True}], ids=str)
def test_the_optimum_of_small_chains(options):
    data = chain_data(n=5, K=2, F=3, T=3, **options)
    weight = np.array([1.0, 2.0, 0.0, 0.5, 1.0])
    expected, _ = optimum(data[0].n_features, spaces_of(data), 0.7 * weight)
    run = ConditionalLikelihood(0.7, tol=1e-4, random_state=0).solve(bound(data), sample_weight=weight)
    assert run.status == "converged"
    assert run.dual <= expected * (1 + 1e-5) and expected <= run.primal * (1 + 1e-5)
    assert run.primal == pytest.approx(expected, rel=1e-4)
    # The weights of the padding stay 0.
    assert not run.weights.reshape(data[0].n_rows, -1)[:, 2:].any()


def test_around_other_weights():
    data = logistic_data(3)
    base = np.random.default_rng(1).normal(size=12)
    run = ConditionalLikelihood(0.5, tol=1e-6, random_state=0).solve(bound(data), base=base)
    expected, _ = optimum(12, spaces_of(data), np.full(12, 0.5), base)
    assert run.primal == pytest.approx(expected, rel=2e-6)


def test_the_gap_of_the_marginals_is_half_the_squared_gradient():
    """At p_w the dual point is u = w - grad P, and P - D = |grad P|^2 / 2."""
    problem, C = bound(chain_data(n=6)), 0.3
    w = np.random.default_rng(0).normal(size=problem.n_features).astype(np.float32).astype(float)
    outcomes = [problem.expect(i, w) for i in range(6)]
    primal = 0.5 * w @ w + C * sum(loss for loss, _, _ in outcomes)
    gradient = w + C * sum(g for _, _, g in outcomes)
    u = w - gradient
    dual = C * sum(entropy for _, entropy, _ in outcomes) - 0.5 * u @ u
    assert primal - dual == pytest.approx(0.5 * gradient @ gradient, rel=1e-4)


class Watch(Monitor):
    def __init__(self):
        self.duals = []

    def tick(self, run):
        self.duals.append(run.state.dual)


def test_the_dual_never_falls_and_is_the_dual_recomputed():
    data = chain_data(n=600)
    for sampling in ("uniform", "gap"):
        watch = Watch()
        run = ConditionalLikelihood(2.0, sampling=sampling, random_state=0).start(bound(data))
        for _ in range(4):
            while not run.advance(1e-9):
                watch.tick(run)
            before = run.state.dual
            assert run.state.settle() == pytest.approx(before, rel=1e-5)
        assert all(b >= a - 1e-5 * abs(a) for a, b in zip(watch.duals, watch.duals[1:]))
        assert len(watch.duals) > 30


def test_the_number_of_oracle_calls_is_true():
    oracle, X, Y = logistic_data()
    calls = []

    class Counting(Logistic):
        def expect(self, x, w):
            calls.append(1)
            assert not w.flags.writeable
            return super().expect(x, w)

    run = ConditionalLikelihood(max_iter=3, random_state=0).solve(bound((Counting(3, 4), X, Y)))
    assert run.state.n_argmax == len(calls) == 4 * len(X)
    with pytest.warns(ConvergenceWarning):
        run = ConditionalLikelihood(max_iter=3, tol=1e-12, random_state=0).solve(bound((oracle, X, Y)))
    assert run.result().n_argmax == 6 * len(X)
    assert "support vectors" not in run.result().certificate()


def test_no_point_of_the_rounds_is_evaluated_twice():
    _, X, Y = logistic_data()
    seen = []

    class Watching(Logistic):
        def expect(self, x, w):
            seen.append(w.tobytes())
            return super().expect(x, w)

    run = ConditionalLikelihood(10.0, random_state=0).start(bound((Watching(3, 4), X, Y)))
    while not run.advance():
        pass
    seen.clear()
    assert run.minimise(1e-4, 100)
    assert len(seen) == len(X) * len(set(seen)) > 10 * len(X)


def test_lbfgs_takes_no_more_memory_than_there_is_room(monkeypatch):
    from structsvm.solvers import conditional_likelihood as module

    for n in (1, 10**6, 8_400_000, 12_000_000, 16_000_000, 91_000_000):
        steps = module.remembered(n)
        assert steps in (0, *range(module.LEAST_MEMORY, module.MEMORY + 1))
        assert steps in (0, module.MEMORY) or 8 * n * (module.VECTORS + 2 * steps) <= module.ROOM
    assert [module.remembered(n) for n in (1, 8_400_000, 91_000_000)] == [10, 10, 0]
    run = ConditionalLikelihood(10.0, random_state=0).start(bound(chain_data(n=10)))
    run.advance()
    before = run.weights.tobytes()
    monkeypatch.setattr(module, "ROOM", 0)
    assert not run.minimise(1e-4, 100)
    assert run.polished is None and run.weights.tobytes() == before


@pytest.mark.parametrize("scale", [1.0, 30.0])
@pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
def test_passes_over_bags_on_dense_columns_are_stable(C, scale):
    """However large C |x|^2 is, the steps of what is known in part do not overshoot."""
    rng = np.random.default_rng(0)
    y = rng.integers(8, size=300)
    X = scale * (rng.normal(size=(300, 40)) + 1.5 * rng.normal(size=(8, 40))[y])
    bags = [{int(k), *rng.integers(8, size=2).tolist()} for k in y]
    oracle = TaxonomyOracle(Taxonomy.flat([*"abcdefgh"]), 40)
    run = ConditionalLikelihood(C, random_state=0).start(bound((oracle, X, bags)))
    at_zero = run.state.gradient(run.weights)[0]
    while not run.is_near:
        run.advance()
    after_passes = run.state.gradient(run.weights)[0]
    assert run.minimise(0.01, 200)
    assert after_passes < 0.2 * at_zero and run.primal < after_passes


@pytest.mark.parametrize("data", [chain_data(n=30), logistic_data()], ids=["chains", "python"])
def test_resumed_runs_and_jobs_change_no_bit(data, tmp_path):
    whole = ConditionalLikelihood(0.5, max_iter=6, random_state=3).solve(bound(data))
    first = ConditionalLikelihood(0.5, max_iter=3, random_state=3).solve(bound(data))
    second = ConditionalLikelihood(0.5, max_iter=3, random_state=9).start(bound(data))
    second.set_state(first.get_state())
    second = second.solver.solve(second.problem, run=second)
    path = tmp_path / "checkpoint"
    options = {"random_state": 3, "checkpoint": path}
    ConditionalLikelihood(0.5, max_iter=4, **options).solve(bound(data))
    third = ConditionalLikelihood(0.5, max_iter=6, n_jobs=3, **options).solve(bound(data))
    for run in (second, third):
        assert np.array_equal(run.weights, whole.weights)
        assert (run.primal, run.dual) == (whole.primal, whole.dual)


@pytest.mark.parametrize("base", [None, 0.3])
@pytest.mark.parametrize("factor", [0.2, 1.5, 3.0, 100.0])
def test_another_C_starts_where_the_dual_is_greatest(factor, base):
    data, rows = chain_data(n=30), np.random.default_rng(0).uniform(0.5, 2.0, 30)
    problem = bound(data)
    base = None if base is None else np.full(problem.n_features, base)
    before = ConditionalLikelihood(0.1, tol=1e-4, random_state=0).solve(problem, sample_weight=rows, base=base)
    run = ConditionalLikelihood(0.1 * factor, random_state=0).start(problem, sample_weight=rows, base=base)
    run.set_state(before.get_state(), adapt=True)
    w0 = np.zeros(problem.n_features) if base is None else base
    u, moved = before.state.weights - w0, run.state.weights - w0
    linear = before.dual + 0.5 * u @ u  # sum_i C_i h_i - <w0, u>
    s = np.clip(linear / (u @ u), min(factor, 1.0), max(factor, 1.0)) if factor >= 1.0 else factor
    np.testing.assert_allclose(moved, s * u, rtol=1e-3, atol=1e-6)
    if factor >= 1.0:
        assert run.state.dual >= max(s * linear - 0.5 * s * s * (u @ u), before.dual) - 1e-5 * abs(before.dual)


def test_rounding_of_steps_is_removed_before_a_claim():
    run, again = (ConditionalLikelihood(3.0, random_state=0).start(bound(chain_data(n=30))) for _ in range(2))
    for n in range(1, 18):
        advance(run)
        assert run.state.drifts == (n % ROUNDED_PASSES != 0)
        assert ("weights" in run.get_state()) == run.state.drifts
    again.set_state(run.get_state())
    for one in (run, again):
        advance(one)
    assert np.array_equal(run.weights, again.weights) and run.dual == again.dual
    before = run.dual
    run.certify()
    assert run.state.drifts and run.dual == pytest.approx(before, rel=1e-5)
    assert again.state.settle() == run.dual and np.array_equal(again.state.weights, run.weights)
    advance(run)  # goes on from where the last step has led, whether a certificate was asked for or not
    assert not np.array_equal(run.weights, again.weights)


@pytest.mark.parametrize("base", [False, True])
@pytest.mark.parametrize("C", [1.0, 9.0])
def test_another_C_scales_the_weights_or_computes_them_anew(C, base):
    problem = bound(chain_data(n=30))
    base = np.random.default_rng(0).normal(size=problem.n_features) if base else None
    before = ConditionalLikelihood(3.0, random_state=0).start(problem, base=base)
    advance(before)
    drifting = before.get_state()
    exact = {name: array for name, array in drifting.items() if name not in ("weights", "objective")}
    runs = []
    for state in (drifting, exact):
        runs.append(ConditionalLikelihood(C, random_state=0).start(problem, base=base))
        runs[-1].set_state(state, adapt=True)
    scaled, computed = runs
    assert scaled.state.drifts
    assert scaled.dual == pytest.approx(computed.dual, rel=1e-5)
    assert scaled.weights == pytest.approx(computed.weights, abs=1e-5)


@pytest.mark.parametrize(("C", "options"), [(1.0, {"max_iter": 11}), (1000.0, {"tol": 1e-4}), (1000.0, {})])
def test_the_last_row_of_the_history_is_the_result(C, options):
    run = ConditionalLikelihood(C, random_state=0, **options).solve(bound(chain_data(n=60, K=3, F=3, T=6)))
    result = run.result()
    for name in ("primal", "dual", "gap"):
        assert result.history[name][-1] == getattr(result, name)


@pytest.mark.parametrize(("C", "other"), [(1e-300, 1e300), (1.0, 1e300), (1.0, 1e40), (1e300, 1e-300), (1.0, 1e-300)])
def test_another_C_so_different_that_shares_underflow(C, other):
    problem = bound(chain_data(n=30))
    before = ConditionalLikelihood(C, random_state=0).start(problem)
    advance(before)
    run = ConditionalLikelihood(other, random_state=0).start(problem)
    run.set_state(before.get_state(), adapt=True)
    assert not run.state.drifts and np.isfinite(run.weights).all()
    weights, dual = run.weights, run.state.dual
    assert run.state.settle() == dual and np.array_equal(run.state.weights, weights)


def test_a_run_starts_from_that_of_some_examples():
    oracle, X, Y = chain_data(n=30)
    rows = np.array([1, 4, 5, 20, 29])
    part = ConditionalLikelihood(0.5, tol=1e-5, random_state=0).solve(
        bound((oracle, [X[i] for i in rows], [Y[i] for i in rows]))
    )
    run = ConditionalLikelihood(0.5, tol=1e-3, random_state=0).start(bound((oracle, X, Y)))
    run.start_from(part.get_state(), rows)
    np.testing.assert_allclose(run.state.weights, part.weights, rtol=1e-5, atol=1e-7)
    assert run.state.dual == pytest.approx(part.dual, rel=1e-6)
    moments, others = run.state.get_state()["moments"], np.setdiff1d(np.arange(30), rows)
    bounds = np.cumsum(
        [0] + [(len(x) + oracle.n_labels + 2) * 8 for x in X]
    )  # rows of labels: tokens, edges, both ends
    assert len(moments) == bounds[-1]
    assert all((moments[bounds[i] : bounds[i + 1]] == 0.0).all() for i in others)
    fresh = ConditionalLikelihood(0.5, tol=1e-3, random_state=0).solve(bound((oracle, X, Y)))
    warm = run.solver.solve(run.problem, run=run)
    assert max(warm.dual, fresh.dual) <= min(warm.primal, fresh.primal)


def test_another_C_goes_on_from_the_same_distributions():
    data = chain_data(n=30)
    before = ConditionalLikelihood(0.1, tol=1e-4, random_state=0).solve(bound(data))
    run = ConditionalLikelihood(0.2, tol=1e-4, random_state=0).start(bound(data))
    run.set_state(before.get_state(), adapt=True)
    run.n_iter = 0
    fresh = ConditionalLikelihood(0.2, tol=1e-4, random_state=0).solve(bound(data))
    warm = run.solver.solve(run.problem, run=run)
    assert warm.primal == pytest.approx(fresh.primal, rel=2e-4)
    assert warm.n_iter < fresh.n_iter


def test_damaged_states_are_refused():
    data = chain_data(n=4)
    run = ConditionalLikelihood(max_iter=1, random_state=0).solve(bound(data))
    state = run.get_state()
    for name, array, message in (
        ("moments", state["moments"][:-1], "'moments' of the training state has 255 numbers, expected 256"),
        ("moments", state["moments"] * np.nan, "'moments' .* not finite"),
        ("entropy", state["entropy"] - 100.0, "'entropy' .* below 0"),
        ("kind", Perceptron(max_iter=1).solve(bound(data)).get_state()["kind"], "is of kind 'weights'"),
    ):
        with pytest.raises(ValueError, match=message):
            run.set_state(state | {name: array})
        assert np.array_equal(run.get_state()["moments"], state["moments"])


def test_what_it_needs_is_asked_for_before_the_run():
    oracle, X, Y = chain_data()
    with pytest.raises(
        ValueError, match="ConditionalLikelihood needs a problem with expectations; this GreedyProblem does not offer"
    ):
        ConditionalLikelihood().solve(bound((GreedyOracle(3, 4), X, Y)))
    with pytest.raises(ValueError, match="this Multiclass does not offer expectations"):
        StructuredSVM(Multiclass(3, 4), ConditionalLikelihood()).fit(*logistic_data()[1:])
    with pytest.raises(ValueError, match=r"solves .*'rescaling': None.*bound with"):
        ConditionalLikelihood().solve(oracle.bind(X, Y))


def test_an_expectation_that_is_no_gradient_is_found_by_the_certificate():
    class Wrong(Logistic):
        def expect(self, x, w):
            log_sum, expectation = super().expect(x, w)
            return log_sum + 5.0, expectation

    data = logistic_data()
    run = ConditionalLikelihood(tol=1e-3, random_state=0).start(bound((Wrong(3, 4), *data[1:])))
    while not run.advance():  # a busy machine may take more than a slice for a pass
        pass
    run.problem.oracle.__class__ = Logistic
    with pytest.raises(OracleError, match=r"above the primal.*expect returns a sum over some"):
        run.checked_certify()


def test_a_state_that_was_taken_stays_as_it_is():
    """Its moments are not copied until the run goes on."""
    problem = bound(chain_data())
    run = ConditionalLikelihood(C=1.0, max_iter=2, tol=None, random_state=0).solve(problem)
    state, again = run.get_state(), run.get_state()
    assert np.shares_memory(state["moments"], again["moments"])
    moments = state["moments"].copy()
    none = run.state.without(np.ones(problem.n_samples, dtype=bool))
    assert not none["moments"].any() and np.array_equal(state["moments"], moments) and moments.any()
    run.advance()
    assert np.array_equal(state["moments"], moments)
    assert not np.array_equal(run.get_state()["moments"], moments)
    run.set_state(state)
    run.advance()
    assert np.array_equal(state["moments"], moments)


@pytest.mark.parametrize("sampling", ["uniform", "gap"])
def test_training_ends_when_the_gap_that_visits_have_seen_is_small(sampling):
    problem = bound(logistic_data(3, n=60))
    open_run, full = (
        ConditionalLikelihood(0.03, sampling=sampling, max_iter=passes, random_state=0).solve(problem)
        for passes in (None, 16)
    )
    assert (open_run.status, full.status, full.n_iter) == ("settled", "max_iter", 16)
    assert 2 <= open_run.n_iter < 16
    assert open_run.gap_seen <= 0.05 and open_run.remaining <= 0.05
    before = ConditionalLikelihood(0.03, sampling=sampling, max_iter=open_run.n_iter - 1, random_state=0).solve(problem)
    assert before.gap_seen > 0.05


@pytest.mark.parametrize("is_known", [True, False])
def test_training_goes_on_where_sixteen_passes_are_far_too_few(is_known):
    """Few features, many tokens, a large C: then the gap closes slowly."""
    oracle, X, Y = chain_data(5, n=150, K=3, F=2, T=20)
    rng = np.random.default_rng(0)
    if not is_known:
        Y = [np.eye(3, dtype=bool)[y] | (rng.random((len(y), 1)) < 0.3) for y in Y]
    problem = oracle.bind(X, Y, **ConditionalLikelihood().formulation())
    few, run, best = (
        ConditionalLikelihood(10.0, random_state=0, **given).solve(problem)
        for given in ({"max_iter": 16}, {}, {"max_iter": 1000})
    )
    assert few.gap_seen > 0.1 and few.primal > 1.02 * best.primal
    assert run.status == "settled" and run.n_iter == (64 if is_known else 16)
    gap, excess = (0.05, 1.01) if is_known else (0.01, 1.001)
    assert run.remaining <= gap and run.primal <= excess * best.primal
    assert run.result().n_argmax < (run.n_iter + 60) * problem.n_samples


def test_the_gap_seen_is_that_of_each_examples_last_visit():
    problem = bound(logistic_data(4, n=50))
    run = ConditionalLikelihood(0.1, max_iter=3, random_state=0).solve(problem)
    visits = run.schedule.get_state()
    assert len(visits) == 50 and run.gap_seen == pytest.approx(visits.sum() / (run.dual + visits.sum()))
    assert run.gap_seen > 0.5 * run.remaining


def noted_problem(n_long, n_labels, *, has_values):
    """A long sequence and two short ones, whose tokens share some features and have others for themselves."""
    rng, n_features, offsets = np.random.default_rng(0), 70_000, np.cumsum([0, n_long, 1, 7])
    n = offsets[-1]
    indices = np.stack([rng.integers(0, 5, n), 5 + np.arange(n) % 66_000], axis=1).ravel().astype(np.int32)
    indptr = 2 * np.arange(n + 1)
    values = rng.normal(size=len(indices)).astype(np.float32) if has_values else None
    tokens = Tokens(offsets, indptr, indices, values, n_features)
    labels = rng.integers(0, n_labels, n).astype(np.int32)
    oracle = ViterbiOracle(n_labels, n_features, loss="log")
    return oracle.bind(tokens, labels, **ConditionalLikelihood().formulation())


@pytest.mark.parametrize("has_values", [False, True])
@pytest.mark.parametrize("n_labels", [2, 9, 20, 30])
@pytest.mark.parametrize("n_long", [40, 66_000], ids=["short", "long"])
def test_later_visits_of_a_sequence_move_the_weights_as_its_moments_say(n_long, n_labels, has_values):
    """The rows that its tokens share are noted at the first visit."""
    problem = noted_problem(n_long, n_labels, has_values=has_values)
    run = ConditionalLikelihood(0.01, sampling="uniform", random_state=0).start(problem)
    for _ in range(3):
        advance(run)
    weights = run.weights.copy()
    assert run.state.drifts and weights.any()
    rounding = 1e-4 if n_long < 1000 else 1e-2  # sums of many floats
    np.testing.assert_allclose(weights, run.state.exact()[0], atol=rounding * np.abs(weights).max())


@pytest.mark.parametrize("has_values", [False, True])
@pytest.mark.parametrize("n_labels", [2, 9, 20, 30, 60])
def test_later_visits_of_a_sequence_make_the_steps_of_first_visits(n_labels, has_values):
    """To the bit, however the rows that its tokens share are noted: a resumed run has noted nothing."""
    solver, runs = ConditionalLikelihood(0.01, random_state=0), []
    for is_anew in (False, True):
        run = solver.start(noted_problem(40, n_labels, has_values=has_values))
        for _ in range(4):
            advance(run)
            if is_anew:  # another problem has noted nothing
                state, run = run.get_state(), solver.start(noted_problem(40, n_labels, has_values=has_values))
                run.set_state(state)
        runs.append(run)
    np.testing.assert_array_equal(runs[0].weights, runs[1].weights)
    assert runs[0].state.dual == runs[1].state.dual and runs[0].weights.any()
