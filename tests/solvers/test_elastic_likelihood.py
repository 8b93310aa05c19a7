"""The log loss with both norms: its optimum by an independent minimiser, zeros, bounds, and what it refuses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sparse_reference import bound, chain_data, optimum, spaces_of

from structsvm import ConvergenceWarning, StructuredSVM
from structsvm.solvers import ConditionalLikelihood, ElasticLikelihood
from structsvm.tasks import SequenceLabeler
from structsvm.tasks.common.selection import sparse


def least(problem, data, C, l1, may=None):
    """The least objective by scipy's L-BFGS on the enumerated outputs, in this solver's scale."""
    spaces = [psi if may is None else psi * may for psi in spaces_of(data)]
    share = l1 / (1.0 + l1)
    return optimum(problem.n_features, spaces, np.asarray(C) * (1.0 - share), share) / (1.0 - share)


@given(st.integers(0, 2**31), st.sampled_from([0.01, 1.0, 30.0]), st.sampled_from([0.1, 2.0, 20.0]))
@settings(deadline=None, max_examples=25)
def test_bounds_enclose_the_optimum(seed, C, l1):
    data = chain_data(seed)
    problem = bound(data)
    weight = np.random.default_rng(seed).uniform(0.0, 2.0, len(data[1]))
    run = ElasticLikelihood(C, l1=l1, tol=2e-3, random_state=0).solve(problem, sample_weight=weight)
    expected = least(problem, data, C * weight, l1)
    assert run.status == "converged" and run.remaining <= 2e-3
    assert run.dual <= expected * (1.0 + 1e-5) and expected <= run.primal * (1.0 + 1e-5)


def test_the_dual_rises_from_pass_to_pass_and_zeros_are_exact():
    data = chain_data(3, n=20, F=12)
    problem = bound(data)
    run = ElasticLikelihood(3.0, l1=2.0, sampling="uniform", random_state=0).start(problem)
    duals = []
    for _ in range(60):
        while not run.advance():
            pass
        duals.append(run.state.dual)
    assert np.diff(duals).min() >= -1e-6 * duals[-1]


def test_zeros_are_exact_and_the_optimum_is_one():
    """Where a weight is 0 the losses' gradient is at most l1; elsewhere it is balanced by both norms."""
    data = chain_data(3, n=20, F=12)
    problem = bound(data)
    run = ElasticLikelihood(3.0, l1=2.0, tol=1e-6, random_state=0).solve(problem)
    w = np.asarray(run.weights, dtype=np.float64)
    _, gradient = run.state.losses(run.weights)
    assert 0 < np.count_nonzero(w) < w.size / 2
    assert np.abs(gradient[w == 0.0]).max() <= 2.0 + 0.02
    assert np.allclose((gradient + w + 2.0 * np.sign(w))[w != 0.0], 0.0, atol=0.02)


@pytest.mark.parametrize("C", [0.9, 1.1])
def test_below_the_idle_C_nothing_is_learnt(C):
    data = chain_data(2)
    problem = bound(data)
    weight = np.linspace(0.5, 2.0, len(data[1]))
    idle = ElasticLikelihood(7.0, l1=3.0).idle_C(problem, sample_weight=weight)
    run = ElasticLikelihood(C * idle, l1=3.0, tol=1e-6, random_state=0).solve(problem, sample_weight=weight)
    assert run.weights.any() == (C > 1.0)


def test_weights_that_are_not_possible_stay_0():
    oracle, X, Y = chain_data(6, F=12)
    X = [np.where(np.random.default_rng(i).random(x.shape) < 0.2, x, 0.0).astype(np.float32) for i, x in enumerate(X)]
    data = (oracle.of_seen(), X, Y)
    problem = bound(data)
    run = ElasticLikelihood(3.0, l1=0.5, tol=2e-3, random_state=0).solve(problem)
    expected = least(problem, data, np.full(len(Y), 3.0), 0.5, problem.possible)
    assert not run.weights[~problem.possible].any() and run.weights.any()
    assert run.dual <= expected * (1.0 + 1e-5) and run.primal == pytest.approx(expected, rel=2.1e-3)


def test_a_run_that_is_resumed_is_the_whole_one_and_another_C_begins_near():
    data = chain_data(5, n=30)
    solver = ElasticLikelihood(50.0, max_iter=6, random_state=0)
    whole = solver.solve(bound(data))
    first = ElasticLikelihood(50.0, max_iter=4, random_state=0).solve(bound(data))
    again = ElasticLikelihood(50.0, max_iter=2, random_state=0).start(bound(data))
    again.set_state(first.get_state())
    again = ElasticLikelihood(50.0, max_iter=2, random_state=0).solve(bound(data), run=again)
    assert np.array_equal(again.weights, whole.weights)
    moved = ElasticLikelihood(60.0, random_state=0, tol=0.01).start(bound(data))
    moved.follow(whole)
    assert moved.state.dual > 0.0 or moved.gap_seen <= 1.0
    run = ElasticLikelihood(60.0, tol=0.01, random_state=0).solve(bound(data), run=moved)
    fresh = ElasticLikelihood(60.0, tol=0.01, random_state=0).solve(bound(data))
    assert run.status == "converged" and run.primal == pytest.approx(fresh.primal, rel=0.02)


def between_two_visits():
    """A run in the middle of its third pass."""
    run = ElasticLikelihood(1.0, l1=1.0, random_state=0).start(bound(chain_data(1, n=4000, T=6)))
    for _ in range(2):
        while not run.advance():
            pass
    assert not run.advance(1e-4) and run.state.drifts
    return run


def test_a_run_that_is_left_in_a_pass_is_resumed_at_the_weights_of_its_moments():
    run = between_two_visits()
    state = run.get_state()
    weights, dual = run.state.exact()
    again = ElasticLikelihood(1.0, l1=1.0, random_state=0).start(run.problem)
    again.set_state(state)
    assert "weights" not in state and not again.state.drifts
    assert np.array_equal(again.state.weights, weights) and again.state.dual == dual


def test_looking_at_the_exact_weights_changes_no_run():
    run, other = between_two_visits(), between_two_visits()
    run.state.exact()
    for one in (run, other):
        while not one.advance(1e-4):
            if one is run:
                one.state.exact()
    assert np.array_equal(run.get_state()["moments"], other.get_state()["moments"])


def test_what_it_refuses_and_warns_of():
    oracle, X, Y = chain_data()
    model = StructuredSVM(oracle, ElasticLikelihood()).fit(X, Y)
    with pytest.raises(ValueError, match="ElasticLikelihood begins at weights of 0, and has no partial_fit"):
        model.partial_fit(X, Y)
    with pytest.raises(ValueError, match="'l1' parameter of ElasticLikelihood"):
        ElasticLikelihood(l1=0.0).solve(bound((oracle, X, Y)))
    with pytest.warns(ConvergenceWarning):
        ElasticLikelihood(500.0, l1=5.0, tol=1e-9, max_iter=1, random_state=0).solve(bound((oracle, X, Y)))
    with pytest.raises(ValueError, match=r"ElasticLikelihood needs .*fully known"):
        SequenceLabeler(solver="elastic_likelihood", loss="log", C=1.0).fit(
            [["a", "b", "c"]] * 3, [["A", None, "B"]] * 3
        )


def test_without_the_norm_it_would_be_the_likelihood():
    data = chain_data(4)
    tiny = ElasticLikelihood(2.0, l1=1e-9, tol=1e-3, random_state=0).solve(bound(data))
    plain = ConditionalLikelihood(2.0, tol=1e-3, random_state=0).solve(bound(data))
    assert tiny.primal == pytest.approx(plain.primal, rel=2e-3)


def alike(n, seed=0):
    """Records whose tokens have many attributes, most of them noise, as dicts."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        kinds = ["TITLE", "GIVEN", "SURNAME"][rng.integers(0, 2) :]
        words = [f"{kind[0]}{rng.integers(0, 40)}" for kind in kinds]
        X.append(
            [{f"a{k}": word[: 1 + k % 3] for k in range(12)} | {f"n{rng.integers(0, 30)}": True} for word in words]
        )
        y.append(kinds)
    return X, y


@pytest.mark.parametrize("chosen", [None, "elastic_likelihood"])
def test_it_is_tried_by_default_for_records_of_attributes(chosen, monkeypatch):
    """A batch or an answer then moves what was learnt by the usual solver."""
    X, y = alike(400)
    tried = SequenceLabeler(random_state=0).fit(X, y).validation_
    assert set(tried["solvers"]) == {"larank", "elastic_likelihood"}
    for options in ({"loss": "log"}, {"C": 1.0}, {"solver": "cutting_plane"}):
        alone = SequenceLabeler(random_state=0, **options).fit(X, y)
        assert "solvers" not in (getattr(alone, "validation_", None) or {})
    if chosen is not None:
        monkeypatch.setattr(sparse, "gained", lambda usual, rival: (1.0, 0.0))
    model = SequenceLabeler(random_state=0).fit(X, y)
    assert model.validation_["solver"] == (chosen or tried["solver"])
    model.partial_fit(X[:9], y[:9]).teach(X[0], y[0])
    model.set_params(warm_start=True).fit(X[:200], y[:200])
    assert model.score(X, y) > 0.9
    words = [[token["a2"] for token in x] for x in X]
    assert "solvers" not in SequenceLabeler(random_state=0).fit(words, y).validation_
