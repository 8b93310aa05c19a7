"""The log loss with the 1-norm: its optimum, zeros and certificate, and a run that is resumed and moved."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from python_oracles import Logistic
from sparse_reference import bound, chain_data, objective, optimum, spaces_of

from structsvm import ConvergenceWarning, StructuredSVM
from structsvm.datasets import make_sequences
from structsvm.features.tokens import Tokens
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.solvers import ConditionalLikelihood, CuttingPlane, LaRank, PassiveAggressive, SparseLikelihood
from structsvm.tasks import SequenceLabeler, TokenFeatures


@pytest.mark.parametrize("options", [{}, {"order": 2}, {"end": True}], ids=str)
@given(
    seed=st.integers(0, 10**6), C=st.sampled_from([0.05, 0.5, 3.0, 20.0]), ratio=st.sampled_from([1.0, 0.9, 0.5, 0.01])
)
@settings(max_examples=8)
def test_the_optimum_of_an_independent_solver(options, seed, C, ratio):
    data = chain_data(seed, **options)
    weight = np.random.default_rng(seed).choice([0.0, 0.5, 1.0, 2.0], 8)
    run = SparseLikelihood(C, l1_ratio=ratio, tol=2e-3).solve(bound(data), sample_weight=weight)
    assert run.status == "converged"
    spaces = spaces_of(data)
    expected = optimum(data[0].n_features, spaces, C * weight, ratio)
    assert run.dual <= expected * (1 + 1e-5) + 1e-9
    assert expected <= run.primal * (1 + 1e-5) + 1e-9
    assert run.primal == pytest.approx(expected, rel=2.1e-3)
    assert run.primal == pytest.approx(objective(run.weights.astype(float), spaces, C * weight, ratio)[0], rel=1e-5)


def test_the_dual_is_that_of_the_mixture():
    """At any weights the dual is the objective of distributions that are enumerated."""
    data = chain_data(3)
    run = SparseLikelihood(0.7).start(bound(data))
    w = np.random.default_rng(0).normal(size=data[0].n_features).astype(np.float32).astype(float)
    point = run.objective.at(w.astype(np.float32))
    expected, u, shares = 0.0, np.zeros(len(w)), []
    for psi in spaces_of(data):
        p = np.exp(psi @ w - (psi @ w).max())
        shares.append(p / p.sum())
        u += 0.7 * (shares[-1] @ psi - psi[0])
    s = min(1.0, 1.0 / np.abs(u).max())
    for p in shares:
        mixed = s * p
        mixed[0] += 1.0 - s
        expected -= 0.7 * mixed @ np.log(mixed)
    assert s < 1.0
    assert point.dual == pytest.approx(expected, rel=1e-5)


def test_weights_are_zeros_up_to_the_largest_gradient_and_leave_zero_beyond():
    problem = bound(chain_data(1))
    largest = np.abs(
        SparseLikelihood(1.0).start(problem).objective.at(np.zeros(problem.n_features, dtype=np.float32)).gradient
    ).max()
    below = SparseLikelihood(0.99 / largest, tol=1e-3).solve(problem)
    assert below.status == "converged" and below.state.n_argmax == problem.n_samples and not below.weights.any()
    above = SparseLikelihood(1.05 / largest, tol=1e-5).solve(problem)
    assert 0 < np.count_nonzero(above.weights) < problem.n_features / 2


def test_the_C_at_which_weights_leave_0():
    problem, weight = bound(chain_data(1)), np.arange(8.0)
    for ratio in (1.0, 0.5):
        idle = SparseLikelihood(7.0, l1_ratio=ratio).idle_C(problem, sample_weight=weight)
        below, above = (
            SparseLikelihood(factor * idle, l1_ratio=ratio, tol=1e-5).solve(problem, sample_weight=weight)
            for factor in (0.99, 1.1)
        )
        assert not below.weights.any() and above.weights.any()
    assert ConditionalLikelihood(7.0).idle_C(problem) == 0.0


def test_more_of_the_norm_leaves_more_zeros_and_jobs_change_nothing():
    data = chain_data(2, n=30, K=3, F=20)
    counts = []
    for ratio in (0.01, 0.5, 1.0):
        runs = [SparseLikelihood(1.0, l1_ratio=ratio, tol=1e-3, n_jobs=n).solve(bound(data)) for n in (1, 2)]
        assert np.array_equal(runs[0].weights, runs[1].weights)
        counts.append(np.count_nonzero(runs[0].weights))
    assert counts == sorted(counts, reverse=True) and counts[-1] < counts[0]


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_jobs_change_no_bit_where_C_is_chosen(n_jobs):
    X, y = make_sequences(40, n_labels=5, n_words=100, mean_length=6.0, random_state=0)
    models = [SequenceLabeler(solver="sparse_likelihood", random_state=0, n_jobs=n).fit(X, y) for n in (1, n_jobs)]
    assert models[0].C_ == models[1].C_
    assert np.array_equal(models[0]._fitted().weights, models[1]._fitted().weights)


def test_memory_is_that_of_a_few_vectors_however_many_steps_are_remembered():
    rng, n_features = np.random.default_rng(0), 100_000
    indices = np.sort(rng.choice(n_features, (200, 6)).astype(np.int32), axis=1)
    indices[:, 0] = rng.integers(0, 10, 200)
    indices[:, 1:] = 10 + np.arange(5) * (n_features // 6) + indices[:, 1:] % (n_features // 6)
    tokens = Tokens(np.arange(0, 201, 5), np.arange(0, 1201, 6), indices.ravel(), None, n_features)
    problem = ViterbiOracle(3, n_features, loss="log").bind(
        tokens, (indices[:, 0] % 3).astype(np.int32), **SparseLikelihood().formulation()
    )
    tracemalloc.start()
    run = SparseLikelihood(5.0, tol=1e-4).solve(problem)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert run.state.n_argmax > 20 * problem.n_samples and 0 < np.count_nonzero(run.weights) < 100
    # Bytes per weight: 4 of each of two states and two points, 8 of two gradients, and some masks of 1. Ten pairs
    # of steps and changes would be 160 more.
    assert peak < 42 * problem.n_features


def test_the_number_of_rounds_is_true():
    calls = []

    class Counting(Logistic):
        def expect(self, x, w):
            calls.append(1)
            return super().expect(x, w)

    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(12, 4)), rng.integers(0, 3, 12).tolist()
    problem = Counting(3, 4).bind(X, Y, **SparseLikelihood().formulation())
    run = SparseLikelihood(2.0, tol=1e-3).solve(problem)
    assert run.result().n_argmax == len(calls) == 12 * (len(calls) // 12)
    assert 5 < len(calls) // 12 < 60
    calls.clear()
    run = SparseLikelihood(2.0).start(problem)
    assert run.minimise(1e-3, 100)
    assert run.state.n_argmax == len(calls)


def test_a_run_between_two_passes_is_resumed_bit_for_bit():
    data = chain_data(5, n=12, F=8)
    whole = SparseLikelihood(50.0, max_iter=3).solve(bound(data))
    first = SparseLikelihood(50.0, max_iter=2).solve(bound(data))
    again = SparseLikelihood(50.0, max_iter=1).start(bound(data))
    again.set_state(first.get_state())
    again = SparseLikelihood(50.0, max_iter=1).solve(bound(data), run=again)
    assert np.array_equal(whole.weights, again.weights)
    assert (whole.n_iter, whole.primal) == (again.n_iter, again.primal)


def test_a_larger_C_follows_in_fewer_rounds():
    problem = bound(chain_data(4, n=30, K=3, F=20))
    before = SparseLikelihood(1.0, tol=1e-3).solve(problem)
    fresh = SparseLikelihood(1.3, tol=1e-3).solve(problem)
    run = SparseLikelihood(1.3, tol=1e-3).start(problem)
    run.follow(before)
    n_before = run.state.n_argmax
    run = SparseLikelihood(1.3, tol=1e-3).solve(problem, run=run)
    assert run.primal == pytest.approx(fresh.primal, rel=2e-3) and run.dual <= run.primal
    assert run.state.n_argmax - n_before < fresh.state.n_argmax


def test_what_it_cannot_do_is_refused_or_said():
    oracle, X, Y = chain_data()
    model = StructuredSVM(oracle, SparseLikelihood()).fit(X, Y)
    with pytest.raises(ValueError, match="SparseLikelihood begins at weights of 0, and has no partial_fit"):
        model.partial_fit(X, Y)
    with pytest.raises(ValueError, match="'l1_ratio' parameter of SparseLikelihood"):
        SparseLikelihood(l1_ratio=0.0).solve(bound((oracle, X, Y)))
    with pytest.warns(ConvergenceWarning, match=r"relative gap of .*, above tol=1e-12"):
        SparseLikelihood(20.0, tol=1e-12, max_iter=2).solve(bound((oracle, X, Y)))


@pytest.mark.parametrize("kind", [LaRank, CuttingPlane, PassiveAggressive], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("penalty", ["l1", "L1", "elasticnet"])
def test_a_margin_with_the_1_norm_is_refused_with_the_remedy(kind, penalty):
    oracle, X, Y = chain_data()
    wanted = rf"The 'penalty' parameter of {kind.__name__} must be .* Got '{penalty}' instead. .*SparseLikelihood"
    with pytest.raises(ValueError, match=wanted):
        StructuredSVM(oracle, kind(penalty=penalty)).fit(X, Y)
    with pytest.raises(ValueError, match=r"Got 'other' instead\.$"):
        StructuredSVM(oracle, kind(penalty="other")).fit(X, Y)


@pytest.mark.parametrize("solver", ["sparse_likelihood", SparseLikelihood(1.0)], ids=["name", "object"])
@pytest.mark.parametrize("loss", ["hamming", "zero_one"])
def test_margins_of_sequences_are_refused(solver, loss):
    with pytest.raises(ValueError, match="minimises the log loss; use it with loss='log'"):
        SequenceLabeler(solver=solver, loss=loss).fit([["a", "b"]], [["A", "B"]])


@pytest.mark.parametrize("features", [{}, {"bigrams": "w"}, {"end": True}], ids=str)
def test_weights_that_training_has_not_seen_stay_0(features):
    X, y = make_sequences(30, n_labels=5, n_words=60, mean_length=6.0, random_state=0)
    X = [[f"w={word} t={tag}".split() for word, tag in x] for x in X]
    seen = {
        (name, label) for x, labels in zip(X, y, strict=True) for a, label in zip(x, labels, strict=True) for name in a
    }
    for wanted in (False, True):
        group = TokenFeatures(possible_states=wanted, **features)
        labeler = SequenceLabeler(solver="sparse_likelihood", C=1.0, features=group).fit(X, y)
        emission = labeler.emission_
        has = {(labeler.feature_names_[j], labeler.classes_[k]) for j, k in zip(*np.nonzero(emission), strict=True)}
        assert has and (has <= seen) is not wanted and labeler.transition_.any()
        assert labeler.result_.gap >= 0.0 and labeler.result_.status == "settled"


@pytest.mark.parametrize("ratio", [1.0, 0.5])
def test_the_optimum_of_some_weights(ratio):
    oracle, X, Y = chain_data(6, F=12)
    X = [np.where(np.random.default_rng(i).random(x.shape) < 0.2, x, 0.0).astype(np.float32) for i, x in enumerate(X)]
    data = (oracle.of_seen(), X, Y)
    problem = bound(data)
    may = problem.possible
    run = SparseLikelihood(3.0, l1_ratio=ratio, tol=2e-3).solve(problem)
    spaces = [psi * may for psi in spaces_of(data)]
    expected = optimum(oracle.n_features, spaces, np.full(len(Y), 3.0), ratio)
    own = may.reshape(-1, oracle.stride)[:12, :2]
    assert 6 < own.sum() < own.size and not run.weights[~may].any() and run.status == "converged"
    assert run.dual <= expected * (1 + 1e-5) and run.primal == pytest.approx(expected, rel=2.1e-3)


def test_other_solvers_refuse_weights_that_stay_0():
    oracle, X, Y = chain_data()
    for solver in (LaRank(), ConditionalLikelihood()):
        with pytest.raises(ValueError, match=f"{type(solver).__name__} trains all weights, .*use SparseLikelihood"):
            StructuredSVM(oracle.of_seen(), solver).fit(X, Y)
        labeler = SequenceLabeler(features=TokenFeatures(possible_states=False), solver=solver)
        with pytest.raises(ValueError, match=r"possible_states=False needs .* got"):
            labeler.fit([["a", "b"]], [["A", "B"]])
    labeler = SequenceLabeler(solver="sparse_likelihood", C=1.0, warm_start=True).fit([["a", "b"]], [["A", "B"]])
    labeler.set_params(features=TokenFeatures(possible_states=False))
    with pytest.raises(ValueError, match="possible_states"):
        labeler.fit([["a", "b"]], [["A", "B"]])


def test_outputs_known_in_part_are_refused():
    X, y = [["a", "b"], ["b", "a"]], [["A", "B"], ["B", -1]]
    with pytest.raises(ValueError, match=r"SparseLikelihood needs .*fully known"):
        SequenceLabeler(solver="sparse_likelihood", loss="log", C=1.0, unknown=-1).fit(X, y)


def test_a_labeler_by_name_chooses_its_C_and_stores_its_solver(tmp_path):
    X, y = make_sequences(40, random_state=0)
    labeler = SequenceLabeler(solver="sparse_likelihood", random_state=0).fit(X, y)
    assert labeler.loss_ == "log" and len(labeler.validation_["C"]) > 2
    weights = labeler._fitted().weights
    assert 0 < np.count_nonzero(weights) < weights.size / 20
    assert np.allclose(labeler.predict_marginals(X[:1])[0].sum(axis=1), 1.0, atol=1e-5)
    own = SequenceLabeler(loss="log", solver=SparseLikelihood(labeler.C_)).fit(X, y)
    own.save(tmp_path / "model")
    again = SequenceLabeler.load(tmp_path / "model")
    assert repr(again.solver) == repr(own.solver)
    assert again.predict(X) == own.predict(X)
    with pytest.raises(ValueError, match="minimises the log loss"):
        SequenceLabeler(solver="sparse_likelihood", loss="hamming").fit(X, y)
