"""The constraints of one_slack: sums over the examples, fresh from the oracle or out of the cache."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from python_oracles import Data

from structsvm import CuttingPlane
from structsvm.dual import cutting_plane_schedules
from structsvm.dual._cutting_plane import ConstraintCache
from structsvm.dual._rounds import collect
from structsvm.oracles.viterbi import ViterbiOracle


def bound(kind, seed=0, n=12):
    if kind == "python":
        return Data(seed, n=n, n_inputs=7).bind()
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 6, n)
    X, Y = [rng.normal(size=(t, 4)) for t in lengths], [rng.integers(0, 3, t) for t in lengths]
    return ViterbiOracle(3, 4).bind(X, Y)


def in_parts(problem, w):
    return [collect(problem, w, a, b) for a, b in ((0, 5), (5, problem.n_samples))]


def dense(problem, answer):
    """(b, psi) of an answer of `most_violated`."""
    (terms,), _, words = answer
    size = len(words) // 3
    psi = np.zeros(problem.n_features)
    psi[words[2 * size :]] = words[: 2 * size].view(np.float64)
    return terms[0], psi * terms[1]


@pytest.mark.parametrize("kind", ["python", "chains"])
@given(seed=st.integers(0, 10**6), n_rounds=st.integers(1, 4))
@settings(max_examples=15)
def test_the_best_choice_out_of_the_last_rounds(kind, seed, n_rounds):
    problem = bound(kind, seed)
    rng = np.random.default_rng(seed)
    C = rng.uniform(0.0, 1.0, problem.n_samples) * (rng.random(problem.n_samples) > 0.2)
    cache = ConstraintCache(problem, C, n_rounds)
    kept = []
    for _ in range(5):
        w = rng.normal(size=problem.n_features)
        cache.put(in_parts(problem, w))
        kept = [*kept, [problem.separate(i, w) for i in range(problem.n_samples)]][-n_rounds:]
        b, psi = dense(problem, cache.most_violated(w))
        fresh = [sum(c * one[k] for c, one in zip(C, kept[-1])) for k in (0, 1)]
        assert b - psi @ w == pytest.approx(fresh[0] - fresh[1] @ w, abs=1e-5)
        other = rng.normal(size=problem.n_features)
        best = [
            max(
                [(0.0, 0.0, 0.0 * other)] + [(one[i][0] - one[i][1] @ other, *one[i]) for one in kept],
                key=lambda t: t[0],
            )
            for i in range(problem.n_samples)
        ]
        b, psi = dense(problem, cache.most_violated(other))
        assert b == pytest.approx(sum(c * t[1] for c, t in zip(C, best)), abs=1e-9)
        np.testing.assert_allclose(psi, sum(c * t[2] for c, t in zip(C, best)), atol=1e-9)


def test_an_empty_cache_and_examples_without_weight_give_a_zero_constraint():
    problem = bound("chains")
    w = np.zeros(problem.n_features)
    for C, rounds_put in ((1.0, 0), (0.0, 2)):
        cache = ConstraintCache(problem, np.full(problem.n_samples, C), 3)
        for _ in range(rounds_put):
            cache.put(in_parts(problem, w))
        b, psi = dense(problem, cache.most_violated(w))
        assert b == 0.0
        assert not psi.any()


@pytest.mark.parametrize("kind", ["python", "chains"])
def test_the_state_goes_around(kind):
    problem = bound(kind)
    rng = np.random.default_rng(0)
    cache, other = (ConstraintCache(problem, np.ones(problem.n_samples), 3) for _ in range(2))
    for _ in range(5):
        cache.put(in_parts(problem, rng.normal(size=problem.n_features)))
    other.set_state(cache.get_state())
    w = rng.normal(size=problem.n_features)
    for one in (cache, other):
        one.put(in_parts(problem, w))
    for mine, its in zip(cache.most_violated(0.5 * w), other.most_violated(0.5 * w)):
        np.testing.assert_array_equal(mine, its)


def damage(name, change):
    def apply(state):
        return state | {name: change(state[name].copy())}

    return apply


def at(index, value):
    def change(array):
        array[index] = value
        return array

    return change


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (damage("cache_terms", lambda a: np.concatenate([a, a, a])), "up to 3 rounds"),
        (damage("cache_terms", at((0, slice(None)), -1.0)), "does not fit example"),
        (damage("cache_bounds", at((0, 1), 10**9)), "does not fit 'cache_words'"),
        (damage("cache_bounds", at((0, 1), -4)), "does not fit 'cache_words'"),
        (damage("cache_words", at(slice(None), 10**6)), "does not fit example"),
    ],
)
def test_a_state_that_does_not_fit(harm, message):
    problem = bound("chains")
    cache, other = (ConstraintCache(problem, np.ones(problem.n_samples), 3) for _ in range(2))
    for seed in range(2):
        cache.put(in_parts(problem, np.random.default_rng(seed).normal(size=problem.n_features)))
    with pytest.raises(ValueError, match=message):
        other.set_state(harm(cache.get_state()))
    assert dense(problem, other.most_violated(np.zeros(problem.n_features)))[0] == 0.0


def test_an_idle_constraint_stays_for_fifty_solutions():
    """A constraint without alpha leaves when the dual has been optimised so often without it, and not before."""
    problem = bound("chains", n=60)
    run = CuttingPlane(C=1.0, form="one_slack", tol=1e-9, random_state=0).start(problem)
    most = 0
    for _ in range(60):
        while not run.advance():
            pass
        state = run.get_state()
        most = max(most, int(state["cut_idle"].max()))
        assert not (state["cut_idle"] * state["cut_numbers"][:, 0]).any()
    assert most == 50


def test_the_cache_saves_calls_of_the_oracle(monkeypatch):
    solver = CuttingPlane(C=1.0, form="one_slack", tol=1e-3, random_state=0)
    with_cache = solver.solve(bound("chains", n=60))
    monkeypatch.setattr(cutting_plane_schedules, "CACHED_STEPS", 0)
    without = solver.solve(bound("chains", n=60))
    assert with_cache.status == without.status == "converged"
    assert with_cache.result().n_argmax < 0.5 * without.result().n_argmax
