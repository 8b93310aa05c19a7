"""Bags of candidate labels against the enumeration of all corners."""

import itertools
import math

import bag_reference as reference
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st

from structsvm import (
    CuttingPlane,
    FrankWolfe,
    LaRank,
    PassiveAggressive,
    Perceptron,
    StructuredSVM,
    UnsupportedFormulation,
)
from structsvm.dual._rounds import violations
from structsvm.oracles.ambiguous import AmbiguousOracle


def data(seed, n=6, K=4, d=3, *, whole=False, sizes=None):
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (n, d)).astype(float) if whole else rng.normal(size=(n, d))
    bags = [set(rng.choice(K, m, replace=False).tolist()) for m in rng.integers(1, K, n)]
    if sizes is not None:
        bags = [set(rng.choice(K, m, replace=False).tolist()) for m in sizes]
    return rng, X, bags


# --- the corner -----------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.integers(2, 90))
@settings(max_examples=40)
def test_loss_of_many_labels(seed, K):
    rng, X, bags = data(seed, n=3, K=K)
    w = np.round(rng.normal(size=3 * K), int(rng.integers(0, 4)))
    problem = AmbiguousOracle(K, 3).bind(X, bags)
    for i, bag in enumerate(bags):
        b, psi = problem.separate(i, w)
        assert b - psi @ w == pytest.approx(reference.loss_of(w.reshape(3, K).T @ X[i], bag), rel=1e-9, abs=1e-12)


def test_a_bag_of_all_labels_says_nothing():
    problem = AmbiguousOracle(3, 2).bind(np.ones((1, 2)), [{0, 1, 2}])
    b, psi = problem.separate(0, np.arange(6.0))
    assert b == 0.0 and not psi.any()
    run = LaRank(random_state=0).solve(problem)
    assert run.dual == run.primal == 0.0


def test_one_candidate_of_two_is_the_binary_hinge():
    b, psi = AmbiguousOracle(2, 1).bind(np.array([[2.0]]), [{1}]).separate(0, np.zeros(2))
    assert b == 1.0
    assert psi.tolist() == [-2.0, 2.0]


def test_rows_without_entries():
    problem = AmbiguousOracle(3, 2).bind(sp.csr_array((2, 2)), [{0}, {1, 2}])
    b, psi = problem.separate(1, np.ones(6))
    assert b == 1.0 and not psi.any()
    run = LaRank(C=0.5, random_state=0).solve(problem)
    assert run.dual == run.primal == 1.0 and not run.weights.any()


def test_dense_and_sparse_rows_are_one_problem():
    rng, X, bags = data(0, n=8)
    X[rng.random(X.shape) < 0.5] = 0.0
    oracle, w = AmbiguousOracle(4, 3), rng.normal(size=12)
    dense = oracle.bind(X, bags)
    for form in (sp.csr_array, sp.csr_matrix, sp.coo_array, sp.csc_matrix):
        other = oracle.bind(form(X), bags)
        for i in range(8):
            b, psi = other.separate(i, w)
            assert b == dense.separate(i, w)[0]
            np.testing.assert_array_equal(psi, dense.separate(i, w)[1])
        np.testing.assert_array_equal(oracle.scores(form(X), w), oracle.scores(X, w))
    np.testing.assert_allclose(oracle.scores(X, w), X @ w.reshape(3, 4), atol=1e-12)
    for i in range(8):
        assert oracle.argmax(X[i], w) == (X @ w.reshape(3, 4))[i].argmax()
        assert oracle.joint_feature(X[i], 2) @ w == pytest.approx(oracle.scores(X, w)[i, 2])


# --- solvers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "solver",
    [
        LaRank(tol=1e-8, max_iter=5000, random_state=0),
        LaRank(schedule="fixed", tol=1e-8, max_iter=5000, random_state=0),
        LaRank(schedule="adaptive", tol=1e-8, max_iter=5000, random_state=0),
        CuttingPlane(tol=1e-8, max_iter=5000, random_state=0),
        FrankWolfe(tol=1e-4, max_iter=20_000, random_state=0),  # its gap falls as the inverse of passes
    ],
    ids=str,
)
@given(seed=st.integers(0, 10**6), C=st.sampled_from([0.1, 2.0]))
@example(seed=8200, C=2.0)
@settings(max_examples=5)
def test_the_optimum_of_an_independent_solver(solver, seed, C):
    _, X, bags = data(seed)
    solver.set_params(C=C)
    run = solver.solve(AmbiguousOracle(4, 3).bind(X, bags))
    assert run.status == "converged"
    expected, w = reference.solve(X, bags, 4, np.full(6, C))
    assert run.dual == pytest.approx(expected, rel=2 * solver.tol, abs=1e-9)
    assert run.primal == pytest.approx(expected, rel=2 * solver.tol, abs=1e-9)
    assert reference.primal(run.weights, X, bags, 4, np.full(6, C)) == pytest.approx(run.primal, rel=1e-9)
    assert np.abs(run.weights - w).max() < max(2.0 * np.sqrt(solver.tol * expected), 1e-3)


@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-3, 0.1, 10.0]))
@settings(max_examples=20)
def test_the_step_of_algorithm_23(seed, C):
    """alpha = clip(L / |psi|^2, 0, C), from any weights."""
    rng, X, bags = data(seed, n=1)
    problem, base = AmbiguousOracle(4, 3).bind(X, bags), rng.normal(size=12)
    b, psi = problem.separate(0, base)
    run = PassiveAggressive(C=C, random_state=0).solve(problem, base=base)
    step = 0.0 if not psi.any() else np.clip((b - psi @ base) / (psi @ psi), 0.0, C)
    np.testing.assert_allclose(run.weights, base + step * psi, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_the_regret_of_proposition_13(seed):
    """regret(n, w) <= |w|^2 / (2 n C) + rho C / 2 for every w, after every n."""
    rng, X, bags = data(seed, n=150, K=5, d=4)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    rho = 2.0  # |Phi(x, y) - Phi(x, z)|^2 with |x| = 1
    oracle = AmbiguousOracle(5, 4)
    best = LaRank(C=100.0, tol=1e-2, max_iter=2000, random_state=0).solve(oracle.bind(X, bags)).weights
    rivals = [np.zeros(20), best, 0.5 * best, *rng.normal(size=(5, 20))]
    for C in (0.01, 0.1, np.sqrt(best @ best / (150 * rho)), 3.0):
        model, suffered = StructuredSVM(oracle, PassiveAggressive(C=C, random_state=0)), []
        for x, bag in zip(X, bags, strict=True):
            w = getattr(model, "coef_", np.zeros(20)).reshape(4, 5)
            suffered.append(reference.loss_of(x @ w, bag))
            model.partial_fit(x[None, :], [bag])
        n = np.arange(1, 151)
        mean = np.cumsum(suffered) / n
        for w in rivals:
            losses = np.array([reference.loss_of(x @ w.reshape(4, 5), bag) for x, bag in zip(X, bags, strict=True)])
            regret = mean - np.cumsum(losses) / n
            assert (regret <= w @ w / (2 * n * C) + rho * C / 2 + 1e-9).all()


def pairwise_error(scores, bag):
    """errp of section 6.1: pairs of a candidate and another label in the wrong order, ties half."""
    others = [z for z in range(len(scores)) if z not in bag]
    return np.mean([(scores[y] < scores[z]) + 0.5 * (scores[y] == scores[z]) for y in bag for z in others])


@pytest.mark.parametrize("right", [1.0, 0.7])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_theorem_12_the_pairwise_error_bounds_the_true_one(size, right):
    """err* <= 2 l (K - l) / gamma E[errp(f) - errp(y*)], where wrong labels come alike and the right one is missing in
    some bags; and the hinge that is trained is no less than errp."""
    K, (rng, X, _) = 5, data(size, n=40, K=5, d=4)
    true = X @ rng.normal(size=(4, K))
    correct = true.argmax(axis=1)
    bags = [set(bag) for bag in itertools.combinations(range(K), size)]
    with_it, without = math.comb(K - 1, size - 1), math.comb(K - 1, size)
    odds = np.array([[right / with_it if y in bag else (1.0 - right) / without for bag in bags] for y in correct])
    wrong = right * (size - 1) / (K - 1) + (1.0 - right) * size / (K - 1)
    gamma = right - wrong
    problem = AmbiguousOracle(K, 4).bind(np.repeat(X, len(bags), axis=0), bags * len(X))
    trained = LaRank(C=0.1, max_iter=10, random_state=0).solve(problem, sample_weight=odds.ravel()).weights
    for w in (trained, *rng.normal(size=(5, 4 * K))):
        hinge = violations(problem, w).reshape(odds.shape)
        scores = X @ w.reshape(4, K)
        errors = np.array([[pairwise_error(s, bag) for bag in bags] for s in scores])
        least = np.array([[pairwise_error(s, bag) for bag in bags] for s in true])
        assert (errors <= hinge + 1e-9).all()
        excess = np.mean(np.sum(odds * (errors - least), axis=1))
        wrongly = np.mean(scores.argmax(axis=1) != correct)
        assert wrongly <= 2 * size * (K - size) / gamma * excess + 1e-9
        assert w is not trained or wrongly < 0.5


def test_one_pass_learns_what_the_bags_have_in_common():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 6, 600)
    X = np.eye(6)[truth] + 0.3 * rng.normal(size=(600, 6))
    bags = [{int(y), *rng.choice(6, 2).tolist()} for y in truth]
    run = PassiveAggressive(C=0.1, random_state=0).solve(AmbiguousOracle(6, 6).bind(X[:500], bags[:500]))
    assert run.state.n_argmax == 1000  # the pass, and its certificate
    assert np.mean(AmbiguousOracle(6, 6).scores(X[500:], run.weights).argmax(axis=1) == truth[500:]) > 0.94


@pytest.mark.parametrize(("word", "value"), [(0, 9), (0, -1), (1, 0), (1, 50), (1, -50), (2, 0)])
def test_states_that_do_not_fit(word, value):
    _, X, bags = data(3, n=4, sizes=[1, 2, 2, 1])
    solver, problem = LaRank(C=0.5, max_iter=1, random_state=0), AmbiguousOracle(4, 3).bind(X, bags)
    state = solver.solve(problem).state.get_state()
    words = state["cut_words"].copy()
    words[word] = value
    with pytest.raises(ValueError, match="array 'cut_words' of the training state: cut 0 is none of example 0"):
        solver.start(problem).state.set_state(state | {"cut_words": words})


@pytest.mark.parametrize(
    ("words", "fits"),
    [
        ([0, 3, 1, -1, 2, -1, 3, -1], True),
        ([0, 2, 1, -1, 2, -1, 3, -1], False),  # they do not cancel
        ([0, 3, 1, -2, 2, -1, 3, -1], False),
        ([0, 3, 1, -2, 2, -1], False),  # more than the bag has labels
        ([0, 2, 1, -1, 3, -1], True),
        ([0, 2, 3, -1, 1, -1], False),  # not in order
        ([1, 1, 2, -1], False),  # label 1 is no candidate
    ],
)
def test_counts_of_a_stored_corner(words, fits):
    """How many of the pairs that the labels stand in are on: for a bag of one of four labels."""
    problem = AmbiguousOracle(4, 1).bind(np.ones((1, 1)), [{0}])
    solver = LaRank(C=0.5, max_iter=1, random_state=0)
    state = solver.solve(problem).state.get_state()
    assert state["cut_words"].tolist() == [0, 3, 1, -1, 2, -1, 3, -1]
    state |= {"cut_words": np.array(words, dtype=np.int32), "cut_bounds": np.array([0, len(words)])}
    other = solver.start(problem).state
    if fits:
        other.set_state(state)
        assert other.n_cuts == 1
    else:
        with pytest.raises(ValueError, match="cut 0 is none of example 0"):
            other.set_state(state)


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        (np.ones((2, 3)), [{0}, set()], "the bag of example 1 is empty"),
        (np.ones((2, 3)), [{0}, {4}], "example 1 has the label 4 of 4"),
        (np.ones((2, 3)), [{0}, {-1, 2}], "example 1 has the label -1 of 4"),
        (np.ones((2, 3)), [{0}], "X has 2 rows, y has 1 bags"),
        (np.ones((2, 2)), [{0}, {1}], r"X has shape \(2, 2\), expected 3 columns"),
        (np.ones(3), [{0}], "X must be 2-D"),
        (np.full((1, 3), np.nan), [{0}], "NaN or infinity"),
        (sp.csr_array(np.full((1, 3), np.inf)), [{0}], "NaN or infinity"),
        (sp.csr_array(np.ones((1, 4))), [{0}], "column 3, expected 0 .. 2"),
    ],
)
def test_data_that_do_not_fit(X, Y, message):
    with pytest.raises(ValueError, match=message):
        AmbiguousOracle(4, 3).bind(X, Y)


def test_formulations():
    oracle = AmbiguousOracle(4, 3)
    X, Y = np.ones((1, 3)), [{0}]
    for solver in (LaRank(rescaling="slack"), LaRank(penalty="quadratic"), LaRank(penalty=None), Perceptron()):
        with pytest.raises(UnsupportedFormulation):
            oracle.bind(X, Y, **solver.formulation())
    for x in (X[0], sp.csr_array(X)):
        for rescaling in ("margin", "slack", None):
            with pytest.raises(NotImplementedError, match=r"is no label: AmbiguousOracle has it in bind\(\)"):
                oracle.argmax(x, np.zeros(12), y_true={0}, rescaling=rescaling)
        assert oracle.argmax(x, np.eye(12)[5]) == oracle.complete(x, {1, 3}, np.eye(12)[5]) == 1
    for arguments, name in (((1, 3), "n_labels"), ((4, 0), "n_input_features"), ((2.5, 3), "n_labels")):
        with pytest.raises(ValueError, match=f"The '{name}' parameter of AmbiguousOracle must be an int in the range"):
            AmbiguousOracle(*arguments)
    with pytest.raises(ValueError, match="more than 2"):
        AmbiguousOracle(2**16, 2**16)


def test_scores_that_overflow():
    problem = AmbiguousOracle(3, 1).bind(np.array([[1e150]]), [{0}])
    with pytest.raises(ValueError, match="example 0: its scores overflow"):
        PassiveAggressive().solve(problem, base=np.full(3, 1e200))
