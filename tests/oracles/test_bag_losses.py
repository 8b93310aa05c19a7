"""The losses of bags beside the pairwise one: against their formulas, finite differences, and one another."""

import bag_reference as reference
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from structsvm import CuttingPlane, FrankWolfe, LaRank, UnsupportedFormulation
from structsvm.dual._rounds import completions
from structsvm.features.dense import DenseRows
from structsvm.oracles.ambiguous import AmbiguousOracle, as_bags
from structsvm.solvers import ConditionalLikelihood

LOSSES = ("mean", "max", "log")


def data(seed, n=5, K=4, d=3, *, weighted=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    bags = [rng.choice(K, m, replace=False).tolist() for m in rng.integers(1, K + 1, n)]
    bags = [{y: float(rng.integers(1, 4)) if weighted else 1.0 for y in bag} for bag in bags]
    return rng, X, bags


def bound(X, bags, loss, K=4, *, form=np.asarray):
    rows = DenseRows(X) if form is DenseRows else form(X)
    rescaling = None if loss == "log" else "margin"
    return AmbiguousOracle(K, X.shape[1], loss).bind(rows, bags, rescaling=rescaling)


def completed_by(problem, w):
    """A problem of "max" whose bags are completed under weights; others as they are."""
    return problem if problem.labels is None else problem.with_targets(completions(problem, problem.from_oracle(w)))


def target_of(problem, bags, i):
    """The shares of the candidates; None: those of least loss."""
    if problem.labels is not None:
        return {y: float(y == problem.labels[i]) for y in bags[i]}
    total = sum(bags[i].values())
    return None if "expectations" in problem.offers else {y: v / total for y, v in bags[i].items()}


def value_and_gradient(problem, i, w):
    """Value and gradient of the loss, in the oracle's order of weights."""
    if "expectations" in problem.offers:
        value, _, gradient = problem.expect(i, problem.from_oracle(w))
        return value, problem.to_oracle(np.asarray(gradient, dtype=np.float64))
    b, psi = problem.separate(i, problem.from_oracle(w))
    return b - psi @ problem.from_oracle(w), -problem.to_oracle(psi)


def weighted_of(loss, weighted):
    return weighted and loss != "max"


def says_nothing(bag, K):
    return len(bag) == K and len(set(bag.values())) == 1


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, DenseRows], ids=["array", "sparse", "dense"])
@pytest.mark.parametrize("loss", LOSSES)
@given(seed=st.integers(0, 2**32 - 1), weighted=st.booleans(), K=st.integers(2, 11))
@settings(max_examples=25)
def test_losses_and_gradients(loss, form, seed, weighted, K):
    rng, X, bags = data(seed, K=K, weighted=weighted_of(loss, weighted))
    w = rng.normal(size=3 * K)
    problem = completed_by(bound(X, bags, loss, K, form=form), rng.normal(size=3 * K))

    def loss_at(w, i):
        bag = {y: v / max(bags[i].values()) for y, v in bags[i].items()}
        return reference.other_loss_of(loss, w.reshape(3, K).T @ X[i], bag, target_of(problem, bags, i))

    for i in range(len(X)):
        value, gradient = value_and_gradient(problem, i, w)
        if says_nothing(bags[i], K):
            assert value == 0.0 and not gradient.any()
            continue
        assert value == pytest.approx(loss_at(w, i), rel=1e-5, abs=1e-5)
        for k in rng.choice(3 * K, 4):
            step = np.zeros(3 * K)
            step[k] = 1e-5
            ends = [loss_at(w + sign * step, i) for sign in (1.0, -1.0)]
            middle = loss_at(w, i)
            if abs(ends[0] + ends[1] - 2.0 * middle) < 1e-8:  # no kink between
                assert gradient[k] == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=2e-3)


@given(seed=st.integers(0, 2**32 - 1), weighted=st.booleans(), K=st.integers(2, 11))
@settings(max_examples=25)
def test_the_entropies_of_the_log_loss(seed, weighted, K):
    """loss = <w, gradient> + entropy, at the weights of the expectation: what the dual rests on."""
    rng, X, bags = data(seed, K=K, weighted=weighted)
    problem, w = bound(X, bags, "log", K), rng.normal(size=3 * K)
    for i in range(len(X)):
        value, entropy, gradient = problem.expect(i, w)
        assert value == pytest.approx(w @ gradient + entropy, abs=1e-5)


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=25)
def test_completions_are_the_best_candidates(seed):
    """At their own weights the bound is the loss itself; anywhere, no less."""
    rng, X, bags = data(seed)
    w, other = rng.normal(size=(2, 12))
    problem = bound(X, bags, "max")
    completed = completed_by(problem, w)
    assert completed.offers == {"completions", "constraints"}
    for i, bag in enumerate(bags):
        if says_nothing(bag, 4):
            continue
        assert completed.labels[i] == problem.oracle.complete(X[i], bag, w) == problem.complete(i, w)[0]
        for weights, equal in ((w, True), (other, False)):
            scores = weights.reshape(3, 4).T @ X[i]
            q = target_of(completed, bags, i)
            least, found = (reference.other_loss_of("max", scores, bag, target) for target in (None, q))
            assert found == pytest.approx(least, abs=1e-9) if equal else found >= least - 1e-9
    if any(len(bag) > 1 for bag in bags):
        assert problem.offers == {"completions", "expectations", "marginals"}
        with pytest.raises(ValueError, match=r"the label of example \d is known in part: train with LatentSVM"):
            [problem.separate(i, w) for i in range(len(bags))]
        with pytest.raises(ValueError, match="its outputs are known in part, which LatentSVM trains on"):
            LaRank().solve(problem)


@pytest.mark.parametrize(
    "solver",
    [
        LaRank(tol=1e-7, max_iter=5000, random_state=0),
        CuttingPlane(tol=1e-7, max_iter=5000, random_state=0),
        FrankWolfe(tol=1e-4, max_iter=20_000, random_state=0),
    ],
    ids=["LaRank", "CuttingPlane", "FrankWolfe"],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_solvers_reach_one_optimum_of_the_mean(solver, weighted):
    _, X, bags = data(3, n=12, weighted=weighted)
    run = solver.set_params(C=0.5).solve(bound(X, bags, "mean"))
    best = LaRank(C=0.5, tol=1e-9, max_iter=20_000, random_state=1).solve(bound(X, bags, "mean"))
    assert run.primal == pytest.approx(best.primal, rel=2e-4) and run.dual <= best.primal * (1 + 1e-9)
    scores = X @ run.weights.reshape(3, 4)
    losses = [reference.other_loss_of("mean", s, bag) for s, bag in zip(scores, bags, strict=True)]
    assert run.primal == pytest.approx(0.5 * run.weights @ run.weights + 0.5 * sum(losses), rel=1e-9)


def test_one_candidate_is_the_conditional_likelihood():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3)), rng.integers(0, 4, 20)
    run = ConditionalLikelihood(C=0.7, tol=1e-6, random_state=0).solve(bound(X, [{k} for k in y.tolist()], "log"))
    W = run.weights.reshape(3, 4)
    scores = X @ W
    p = np.exp(scores - np.logaddexp.reduce(scores, axis=1)[:, None])
    np.testing.assert_allclose(W, 0.7 * X.T @ (np.eye(4)[y] - p), atol=1e-2)  # where the gradient is 0


@pytest.mark.parametrize("loss", ["log", "max"])
def test_shards_and_copies(loss):
    import pickle

    rng, X, bags = data(5, n=7, weighted=loss == "log")
    w = rng.normal(size=12)
    problem = completed_by(bound(X, bags, loss), w)
    for part, first in ((problem.shard(2, 6), 2), (pickle.loads(pickle.dumps(problem)), 0)):
        for i in range(part.n_samples):
            value, gradient = value_and_gradient(part, i, -w)
            assert value == value_and_gradient(problem, first + i, -w)[0]
            np.testing.assert_array_equal(gradient, value_and_gradient(problem, first + i, -w)[1])


def test_weights_of_candidates():
    indptr, labels, prior = as_bags([{2: 4.0, 0: 1.0}, {1, 2}], 3)
    assert indptr.tolist() == [0, 2, 4] and labels.tolist() == [0, 2, 1, 2] and prior.tolist() == [0.25, 1.0, 1.0, 1.0]
    for weight in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="weights of the candidates of example 1 must be finite and > 0"):
            as_bags([{0}, {0: weight, 1: 1.0}], 3)
    with pytest.raises(ValueError, match="'max' loss does not weight candidates; 'mean' and 'log' do"):
        bound(np.ones((1, 2)), [{0: 1.0, 1: 2.0}], "max")


def test_formulations_and_names():
    with pytest.raises(ValueError, match="'bag_loss' parameter of AmbiguousOracle must be 'pairwise' or"):
        AmbiguousOracle(3, 2, "hinge")
    with pytest.raises(UnsupportedFormulation, match="no margin to rescale"):
        AmbiguousOracle(3, 2, "log").bind(np.ones((1, 2)), [{0}])
    with pytest.raises(ValueError, match="does not offer expectations"):
        ConditionalLikelihood().solve(bound(np.ones((2, 2)), [{0}, {1}], "mean"))


@pytest.mark.parametrize("words", [[2, 3], [0], [1, 4], [1, 3, 2], [1, 0]])
def test_damaged_cuts_are_refused(words):
    X, bags = np.eye(3)[:2], [{0, 1}, {2}]
    run = LaRank(C=1.0, max_iter=2, random_state=0).solve(bound(X, bags, "mean"))
    state = run.get_state()
    at = int(np.flatnonzero(state["cut_example"] == 0)[0])
    a, b = state["cut_bounds"][at : at + 2]
    changed = np.concatenate([state["cut_words"][:a], words, state["cut_words"][b:]]).astype(np.int32)
    bounds = state["cut_bounds"].copy()
    bounds[at + 1 :] += len(words) - (b - a)
    fresh = LaRank(C=1.0, max_iter=2, random_state=0).start(bound(X, bags, "mean"))
    with pytest.raises(ValueError, match="is none of example"):
        fresh.set_state(state | {"cut_words": changed, "cut_bounds": bounds})
