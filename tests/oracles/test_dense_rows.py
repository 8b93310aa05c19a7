"""Dense rows against the same rows without their zeros: other sums in another order, of the same numbers."""

import numpy as np
import pytest
from structures_table import Taxonomies, single

from structsvm import CuttingPlane, LaRank, Perceptron
from structsvm._problem import Problem
from structsvm.features.dense import DenseRows, by_attributes, by_features, is_filled, padded
from structsvm.oracles.ambiguous import AmbiguousOracle
from structsvm.oracles.taxonomy import TaxonomyOracle
from structsvm.structures.taxonomy import Taxonomy

CLOSE = {"rtol": 1e-5, "atol": 2e-5}


def rows(X, dtype=np.float32, **options):
    return DenseRows(np.ascontiguousarray(X, dtype=dtype), **options)


def flat(n_classes, n_columns, n=7, seed=0, **options):
    """An oracle of classes without relations, rows, labels, weights."""
    rng = np.random.default_rng(seed)
    oracle = TaxonomyOracle(Taxonomy.flat(range(n_classes)), n_columns, attributes="flat", **options)
    w = np.zeros((n_columns, oracle.stride), dtype=np.float32)
    w[:, :n_classes] = rng.normal(size=(n_columns, n_classes))
    return oracle, single(rng.normal(size=(n, n_columns))), rng.integers(0, n_classes, n), w.ravel()


def case_weights(case):
    """Weights of a case, 0 in the padding."""
    w = case.weights(0).astype(np.float32).reshape(case.F, -1)
    w[:, case.oracle.attributes.n_attributes :] = 0.0
    return w.ravel()


# --- taxonomies ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(30))
def test_scores_and_decisions_of_all_attributes(seed):
    size = {"n_nodes": 2 + seed % 9, "n_samples": 1 + 37 * (seed % 8)}
    case = Taxonomies(seed, **size, tree=seed % 2 == 0, leaves=seed % 3 > 0)
    w = case_weights(case)
    dense, sparse = case.oracle.decoder(rows(case.X)), case.oracle.decoder(case.X)
    scores = sparse.scores(w)
    np.testing.assert_allclose(dense.scores(w), scores, **CLOSE)
    outputs = case.oracle.attributes.arrays[5]
    np.testing.assert_array_equal(dense.decode(w), dense.scores(w)[:, outputs].argmax(axis=1))


@pytest.mark.parametrize("n_classes", [2, 7, 8, 9, 31, 33, 100])
@pytest.mark.parametrize("n_columns", [1, 7, 8, 9, 33])
def test_widths(n_classes, n_columns):
    oracle, X, y, w = flat(n_classes, n_columns, n=130)
    wanted = X @ w.reshape(n_columns, -1)[:, :n_classes]
    np.testing.assert_allclose(oracle.decoder(rows(X)).scores(w), wanted, **CLOSE)
    problem = oracle.bind(rows(X), y)
    own = problem.from_oracle(w)
    assert own.shape == (problem.n_features,)
    np.testing.assert_array_equal(problem.to_oracle(own), w)
    for i in range(5):
        b, psi = problem.separate(i, own)
        b_wanted, psi_wanted = oracle.bind(X, y).separate(i, w)
        assert b == b_wanted
        np.testing.assert_allclose(problem.to_oracle(psi), psi_wanted, **CLOSE)


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("penalty", ["linear", "quadratic"])
@pytest.mark.parametrize("seed", range(8))
def test_the_problem_is_the_same(seed, rescaling, penalty):
    case = Taxonomies(seed, n_nodes=8, n_samples=12, tree=seed % 2 == 0)
    formulation = {"rescaling": rescaling, "penalty": penalty}
    dense = case.oracle.bind(rows(case.X), case.Y, **formulation)
    sparse = case.oracle.bind(case.X, case.Y, **formulation)
    w = case_weights(case)
    for i in range(len(case.X)):
        (b, psi), (b_wanted, psi_wanted) = dense.separate(i, dense.from_oracle(w)), sparse.separate(i, w)
        assert b - dense.to_oracle(psi) @ w == pytest.approx(b_wanted - psi_wanted @ w, rel=1e-4, abs=1e-4)
    solver = LaRank(C=0.5, tol=1e-3, random_state=0, **formulation)
    ours, theirs = solver.solve(dense), solver.solve(sparse)
    assert ours.dual == pytest.approx(theirs.dual, rel=3e-3, abs=1e-6)
    assert ours.primal >= ours.dual - 1e-6 * abs(ours.primal)
    np.testing.assert_allclose(
        dense.to_oracle(ours.weights), theirs.weights, atol=0.1 * max(np.abs(theirs.weights).max(), 1e-3)
    )


def test_rounds_do_not_depend_on_jobs():
    oracle, X, y, _ = flat(11, 9, n=200)
    options = {"C": 1.0, "max_iter": 5, "tol": 0.9, "random_state": 0}
    one, two = (CuttingPlane(**options, n_jobs=n).solve(oracle.bind(rows(X), y)).weights for n in (1, 2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("structure", ["classes", "tree", "bags"])
def test_sums_of_moments(structure):
    """One product of matrices, and the sum over examples that it stands for; a coefficient may be 0."""
    rng = np.random.default_rng(0)
    if structure == "bags":
        problem = AmbiguousOracle(5, 6).bind(
            rows(rng.normal(size=(12, 6)), np.float64), [{0, 1 + i % 4} for i in range(12)]
        )
        n, size = 5, 5
    elif structure == "tree":
        case = Taxonomies(3, n_nodes=8, n_samples=12, tree=True)
        problem, n = case.oracle.bind(rows(case.X), case.Y), case.oracle.attributes.n_attributes
        size = padded(n)
    else:
        oracle, X, y, _ = flat(11, 9, n=12)
        problem, n, size = oracle.bind(rows(X), y), 11, 16
    moments, coefs = np.zeros((12, size), dtype=np.float32), rng.normal(size=12)
    moments[:, :n] = rng.normal(size=(12, n))
    coefs[3] = 0.0
    offsets, moments = size * np.arange(13), moments.ravel()
    found = problem.sum_of_moments(coefs, offsets, moments)
    assert found.shape == (problem.n_features,) and found.dtype == np.float64
    np.testing.assert_allclose(found, Problem.sum_of_moments(problem, coefs, offsets, moments), rtol=1e-12, atol=1e-12)


def test_the_perceptron_learns_the_same():
    """Its weights are whole sums of the rows, here exact in any order."""
    oracle, X, y, _ = flat(5, 6, n=60)
    X = np.round(X)
    solver = Perceptron(random_state=0, average=False)
    runs = [solver.solve(oracle.bind(form, y, **solver.formulation())) for form in (X, rows(X))]
    np.testing.assert_array_equal(runs[1].problem.to_oracle(runs[1].weights), runs[0].weights)


def test_fingerprints_are_of_the_numbers():
    oracle, X, y, _ = flat(5, 6)
    assert oracle.bind(X, y).fingerprint() == oracle.bind(rows(X), y).fingerprint()
    X[0, 0] += 1.0
    assert oracle.bind(X, y).fingerprint() != oracle.bind(rows(X[::-1]), y).fingerprint()


def test_an_intercept_is_a_column_of_ones():
    oracle, X, _, w = flat(9, 6)
    longer = np.column_stack([X[:, :5], np.ones(len(X))])
    dense = rows(X[:, :5], has_intercept=True)
    np.testing.assert_array_equal(dense.padded(), rows(longer).padded())
    np.testing.assert_allclose(oracle.decoder(dense).scores(w), oracle.decoder(longer).scores(w), **CLOSE)
    tokens = dense[2:4].tokens()
    assert len(tokens) == 2 and tokens.n_features == 6 == dense.n_features
    np.testing.assert_array_equal(tokens.indices.reshape(2, 6)[0], np.arange(6))
    np.testing.assert_array_equal(dense.take([3, 1]).values, X[[3, 1], :5].astype(np.float32))


def test_bad_rows():
    oracle, X, y, _ = flat(5, 6)
    lists = TaxonomyOracle(Taxonomy.flat("abc"), 6, lists=([0, 1], [0]))
    for message, call in (
        ("the documents have 5 features, the oracle 6", lambda: oracle.decoder(rows(X[:, :5]))),
        ("a weight for each feature", lambda: lists.decoder(rows(X))),
        ("float32", lambda: oracle.bind(rows(X, np.float64), y)),
        ("float32", lambda: oracle.bind(rows(np.full_like(X, np.nan)), y)),
        (r"w has shape \(3,\)", lambda: oracle.decoder(rows(X)).decode(np.zeros(3))),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_what_is_filled():
    X = np.ones((10, 4))
    assert is_filled(X) and not is_filled(X.tolist()) and not is_filled(np.zeros((0, 4))) and not is_filled(X[0])
    X[:, 1:] = 0.0
    assert not is_filled(X)


def test_the_order_of_weights():
    w = np.arange(3 * 8.0)
    other = by_attributes(w, 3, 5)
    assert other.reshape(8, 8)[4, :3].tolist() == [4.0, 12.0, 20.0] and not other.reshape(8, 8)[5:].any()
    table = by_features(other, 3, 5, 8).reshape(3, 8)
    np.testing.assert_array_equal(table[:, :5], w.reshape(3, 8)[:, :5])
    assert not table[:, 5:].any()


# --- bags of candidates ------------------------------------------------------------------------------


@pytest.mark.parametrize("K", [2, 3, 4, 5, 9, 40])
@pytest.mark.parametrize("d", [1, 8, 13])
def test_bags(K, d):
    rng = np.random.default_rng([K, d])
    X = rng.normal(size=(20, d))
    bags = [set(rng.choice(K, m, replace=False).tolist()) for m in rng.integers(1, K, 20)]
    oracle = AmbiguousOracle(K, d)
    dense, sparse = oracle.bind(rows(X, np.float64), bags), oracle.bind(X, bags)
    w = rng.normal(size=d * K)
    own = dense.from_oracle(w)
    np.testing.assert_array_equal(dense.to_oracle(own), w)
    for i in range(20):
        (b, psi), (b_wanted, psi_wanted) = dense.separate(i, own), sparse.separate(i, w)
        assert b == pytest.approx(b_wanted)
        np.testing.assert_allclose(dense.to_oracle(psi), psi_wanted, atol=1e-12)
    np.testing.assert_allclose(oracle.scores(rows(X, np.float64), w), oracle.scores(X, w), rtol=1e-12, atol=1e-12)
    assert dense.fingerprint() == sparse.fingerprint()
    solver = LaRank(C=0.3, tol=1e-6, random_state=0, max_iter=3000)
    ours, theirs = solver.solve(dense), solver.solve(sparse)
    assert ours.dual == pytest.approx(theirs.dual, rel=1e-5)
    np.testing.assert_allclose(dense.to_oracle(ours.weights), theirs.weights, atol=2e-3)


def test_bad_bags_of_dense_rows():
    oracle, X = AmbiguousOracle(3, 2), np.ones((1, 2))
    for message, values in (
        ("X has 3 columns, expected 2", np.ones((1, 3))),
        ("float64", X.astype(np.float32)),
        ("NaN or infinity", X * np.nan),
        ("the squares of X overflow", X * 1e200),
    ):
        with pytest.raises(ValueError, match=message):
            oracle.bind(DenseRows(values), [{0}])
