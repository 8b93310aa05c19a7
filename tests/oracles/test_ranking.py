"""Groups of rows: the most violated output of each loss against enumeration, and of larger groups against sums."""

import numpy as np
import pytest
import ranking_reference as reference
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, f1_score, ndcg_score, roc_auc_score

from structsvm import UnsupportedFormulation
from structsvm.dual._rounds import violations
from structsvm.features.dense import DenseRows
from structsvm.features.sparse import as_rows
from structsvm.oracles.ranking import Groups, RankingOracle
from structsvm.tasks.common.intercept import with_intercept

LOSSES = ["error", "f1", "prec_at_k", "prbep", "pairs", "map", "ndcg"]
GRADED = ["pairs", "ndcg"]


def draw(seed, n=4, d=2, grades=2):
    """Rows and weights of small whole numbers, so that scores tie, or any numbers."""
    rng = np.random.default_rng(seed)
    X, w = (rng.integers(-2, 3, size).astype(float) if seed % 2 else rng.normal(size=size) for size in ((n, d), d))
    return rng, X, rng.integers(0, grades, n), w


def worst(X, y, w, loss, k=None, rescaling="margin"):
    rows = ((D, psi @ w) for D, psi in reference.outputs(X, y, loss, k))
    return max([0.0] + [D * (1.0 - m) if rescaling == "slack" else D - m for D, m in rows])


@pytest.mark.parametrize("loss", LOSSES)
@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 5))
def test_the_most_violated_output(loss, seed, n):
    _, X, y, w = draw(seed, n, grades=2 if loss not in GRADED else 2 + seed % 3)
    k = 1 + seed % n if loss in ("prec_at_k", "ndcg") else None
    oracle = RankingOracle(2, loss, k)
    for rescaling in oracle.rescalings:
        problem = oracle.bind([X], [y], rescaling=rescaling)
        assert violations(problem, w)[0] == pytest.approx(worst(X, y, w, loss, k, rescaling), abs=1e-12)
        b, psi = problem.separate(0, w)
        assert b - psi @ w == pytest.approx(violations(problem, w)[0], abs=1e-12)


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), P=st.integers(1, 12), N=st.integers(1, 12))
def test_f1_is_best_of_all_counts(seed, P, N):
    """The a positives and b negatives found are those of the highest scores."""
    _, X, _, w = draw(seed, P + N)
    y = np.arange(P + N) < P
    p, q = np.sort(X[y] @ w)[::-1] / (P + N), np.sort(X[~y] @ w)[::-1] / (P + N)
    values = [1.0 - 2.0 * a / (P + a + b) - p[a:].sum() + q[:b].sum() for a in range(P + 1) for b in range(N + 1)]
    found = violations(RankingOracle(2, "f1").bind([X], [y]), w)[0]
    assert found == pytest.approx(max(0.0, *values), abs=1e-12)


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), P=st.integers(1, 12), N=st.integers(1, 12))
def test_average_precision_places_each_negative_best(seed, P, N):
    """Each negative by itself below r positives, all r tried."""
    _, X, _, w = draw(seed, P + N)
    y = np.arange(P + N) < P
    p, q = np.sort(X[y] @ w)[::-1], np.sort(X[~y] @ w)[::-1]
    t, total = np.arange(1, P + 1), 0.0
    for j in range(1, N + 1):
        gain = t / (P * (t + j) * (t + j - 1.0)) - (p - q[j - 1]) / (P * N)
        total += max(gain[r:].sum() for r in range(P + 1))
    assert violations(RankingOracle(2, "map").bind([X], [y]), w)[0] == pytest.approx(total, abs=1e-12)


def test_large_groups():
    """Sums of hinges, and rankings, of more rows than there are between two polls."""
    rng = np.random.default_rng(0)
    n = 40000
    X, y, w = rng.normal(size=(n, 3)).round(2), rng.integers(0, 3, n), rng.normal(size=3)
    s = X @ w
    problem = RankingOracle(3, "error").bind([X], [y > 1])
    assert violations(problem, w)[0] == pytest.approx(np.maximum(1.0 - np.where(y > 1, s, -s), 0.0).mean())
    below = [np.sort(s[y < grade]) for grade in range(3)]
    swapped = total = 0.0
    for grade in (1, 2):
        sums = np.append(0.0, np.cumsum(below[grade][::-1]))
        above = s[y == grade]
        counts = len(below[grade]) - np.searchsorted(below[grade], above - 1.0)
        swapped += counts.sum()
        total += (counts * (1.0 - above) + sums[counts]).sum()
    n_pairs = sum((y < grade).sum() * (y == grade).sum() for grade in (1, 2))
    b, psi = RankingOracle(3, "pairs").bind([X], [y]).separate(0, w)
    assert b == pytest.approx(swapped / n_pairs)
    assert b - psi @ w == pytest.approx(total / n_pairs)
    # At weights in which one ranking is far better than all others, plain inference finds it.
    truth = RankingOracle(3, "map").bind([X], [y > 1], rescaling=None)
    assert truth.separate(0, w)[0] == pytest.approx(1.0 - average_precision_score(y > 1, s), abs=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_rows_of_all_forms(loss):
    rng, X, y, w = draw(2, 40, d=5)
    X *= rng.random(X.shape) < 0.6
    w = np.append(w, 0.3)
    oracle = RankingOracle(6, loss, k=5 if loss == "prec_at_k" else None)
    bounds = np.array([0, 10, 11, 40])
    rows = [with_intercept(as_rows(sp.csr_array(X), 5)), with_intercept(DenseRows(X)), DenseRows(np.c_[X, np.ones(40)])]
    if loss == "prec_at_k":
        bounds = np.array([0, 10, 40])
    cuts = []
    for form in rows:
        problem = oracle.bind(Groups(form, bounds), y)
        cuts.append([problem.separate(i, w) for i in range(problem.n_samples)])
    single = oracle.bind(Groups(DenseRows(X.astype(np.float32), has_intercept=True), bounds), y)
    cuts.append([single.separate(i, w) for i in range(single.n_samples)])
    for found in cuts[1:]:
        for (b, psi), (b_y, psi_y) in zip(found, cuts[0], strict=True):
            assert b == pytest.approx(b_y)
            np.testing.assert_allclose(psi, psi_y, atol=1e-6)


def test_losses_are_those_of_scikit_learn():
    rng = np.random.default_rng(1)
    y, s, grades = rng.integers(0, 2, 30), rng.normal(size=30), rng.integers(0, 4, 30)

    def loss(name, true=y, k=None):
        return RankingOracle(1, name, k).loss(true, s)

    assert loss("error") == pytest.approx(((s > 0.0) != y).mean())
    assert loss("f1") == pytest.approx(1.0 - f1_score(y, s > 0.0))
    assert loss("roc_area") == pytest.approx(1.0 - roc_auc_score(y, s))
    assert loss("map") == pytest.approx(1.0 - average_precision_score(y, s))
    for k in (None, 1, 5, 100):
        assert loss("ndcg", grades, k) == pytest.approx(1.0 - ndcg_score([2.0**grades - 1.0], [s], k=k))
    best = y[np.argsort(-s)]
    assert loss("prec_at_k", k=7) == pytest.approx(1.0 - best[:7].mean())
    assert loss("prbep") == pytest.approx(1.0 - best[: y.sum()].mean())
    assert RankingOracle(1, "map").loss(np.zeros(3), s[:3]) == 0.0


@pytest.mark.parametrize("loss", ["f1", "prbep", "roc_area", "map", "ndcg"])
def test_grades_that_say_nothing(loss):
    """One grade alone: no output is better than another, and the group has no constraint."""
    X = np.arange(6.0).reshape(3, 2)
    for x, y in ((X, [0, 0, 0]), (X[:1], [0]), (X[:0], [])):
        problem = RankingOracle(2, loss).bind([x, X], [y, [1, 0, 0]])
        b, psi = problem.separate(0, np.array([5.0, -3.0]))
        assert b == 0.0 and not psi.any()
        assert problem.separate(1, np.array([5.0, -3.0]))[0] > 0.0


def test_rows_without_features_cost_their_loss():
    """A cut of zeros is no zero constraint: its slack is the loss."""
    oracle = RankingOracle(2, "error")
    empty = sp.csr_array((4, 2))
    assert violations(oracle.bind([empty], [[1, 0, 0, 1]]), np.ones(2))[0] == 1.0


def test_bad_input():
    X = np.ones((3, 2))
    for params, words in (
        ((2, "auc"), "'loss' parameter of RankingOracle must be 'error' or 'f1'"),
        ((0, "f1"), "'n_input_features' .* Got 0"),
        ((2, "prec_at_k"), r"'k' .* an int in the range \[1, .* for loss='prec_at_k'\. Got None"),
        ((2, "prec_at_k", 0), "'k' .* Got 0"),
        ((2, "ndcg", 1.5), "'k' .* Got 1.5"),
    ):
        with pytest.raises(ValueError, match=words):
            RankingOracle(*params)
    with pytest.raises(ValueError, match=r"k = 4 rows are to be found of the 3 of example 1"):
        RankingOracle(2, "prec_at_k", 4).bind([np.ones((4, 2)), X], [[1, 0, 0, 0], [1, 0, 0]])
    with pytest.raises(ValueError, match="example 0 has 3 rows and 2 grades"):
        RankingOracle(2).bind([X], [[1, 0]])
    with pytest.raises(ValueError, match="2 columns, expected 3"):
        RankingOracle(3).bind(Groups(DenseRows(X), np.array([0, 3])), [1, 0, 0])
    for grades, words in (
        ([1, 0, np.nan], "finite"),
        ([1, 0, -1], "0 to 50 .* got -1 to 1"),
        ([1, 0, 51], "got 0 to 51"),
    ):
        with pytest.raises(ValueError, match=words):
            RankingOracle(2, "ndcg").bind([X], [grades])
    with pytest.raises(UnsupportedFormulation, match=r"rescaling='slack' .* RankingOracle"):
        RankingOracle(2, "f1").bind([X], [[1, 0, 0]], rescaling="slack")
    with pytest.raises(UnsupportedFormulation, match="its constraints come through bind"):
        RankingOracle(2).argmax(X, np.ones(2), [1, 0, 0], "margin")
    problem = RankingOracle(2).bind([X], [[1, 0, 0]])
    with pytest.raises(ValueError, match="overflow"):
        violations(problem, np.full(2, 1e308))
