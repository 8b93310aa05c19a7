"""Matrices and functions that are no kernels, and trainings that end far from the optimum."""

import warnings
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
from kernel_kinds import WITH_FUNCTIONS
from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_score

from structsvm import AdviceWarning, ConvergenceWarning
from structsvm.kernel._kernels import Gram, Kernel, Rows
from structsvm.kernel.problem import KernelProblem
from structsvm.solvers import CrammerSinger, KernelLaRank, Pairwise, WestonWatkins
from structsvm.tasks import (
    CrammerSingerClassifier,
    LaRankClassifier,
    LaSVMClassifier,
    PairwiseClassifier,
    WestonWatkinsClassifier,
    registry,
)
from structsvm.tasks.kernel.classifier import KernelClassifier

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 5))
y = np.where(X[:, 0] > 0.0, "b", "a")
PRODUCTS, SKEW = X @ X.T, rng.normal(size=(5, 5))
DISTANCES = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
SHIFTED = PRODUCTS - 5.0 * np.eye(len(X))

NO_KERNELS = [
    (X @ SKEW @ X.T, r"is not symmetric: .* of rows 0 and \d+, .* of rows \d+ and 0; .*K\.T"),
    (np.triu(PRODUCTS), "is not symmetric"),
    (DISTANCES, r"is 0 for each row with itself, as distances are: .* np.exp\(-gamma \* D\*\*2\)"),
    (-DISTANCES, "is 0 for each row with itself, as distances are"),
    (SHIFTED, r"is -\d.* for row \d+ with itself, where none is below 0"),
    (1.0 + DISTANCES, r"is .* with themselves; a kernel is at most the root of their product"),
]

MACHINES = [
    getattr(__import__("structsvm.tasks", fromlist=["tasks"]), entry.name)
    for entry in registry.ESTIMATORS
    if entry.module.startswith("kernel.")
]
machines = pytest.mark.parametrize("kind", MACHINES, ids=lambda kind: kind.__name__)


@machines
@pytest.mark.parametrize(("K", "message"), NO_KERNELS, ids=range(len(NO_KERNELS)))
def test_matrices_that_are_no_kernels(kind, K, message):
    assert issubclass(kind, KernelClassifier)
    with pytest.raises(ValueError, match=f"the precomputed kernel {message}"):
        kind(kernel="precomputed").fit(K, y)


@pytest.mark.parametrize("kind", WITH_FUNCTIONS, ids=lambda kind: kind.__name__)
@pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")
def test_functions_that_are_no_kernels(kind):
    """They are tried on some rows; and what kernels are is trained on, with the rounding of single precision."""
    index = np.arange(len(X), dtype=float)[:, None]
    for K, message in NO_KERNELS:

        def looked_up(A, B, K=K):
            return K[np.ix_(A[:, 0].astype(int), B[:, 0].astype(int))]

        with pytest.raises(ValueError, match=f"the kernel looked_up {message}"):
            kind(kernel=looked_up).fit(index, y)
    if not issubclass(kind, KernelClassifier):  # others take no matrix of values
        return
    for K in (
        PRODUCTS,
        PRODUCTS.astype(np.float32),
        np.exp(-(DISTANCES**2)),
        PRODUCTS + 1e-7 * rng.normal(size=(300, 300)),
    ):
        assert kind(kernel="precomputed").fit(K, y).score(K, y) > 0.9
    few = X * (index % 2)  # rows of zeros, whose kernel is 0
    kind(kernel="precomputed").fit(few @ few.T, y)


def test_solvers_end_on_what_is_no_kernel():
    """A machine of two classes once took ten million steps a pass."""
    for K in (np.triu(PRODUCTS), rng.random((60, 60))):
        K = np.ascontiguousarray(K[:60, :60])
        problem = KernelProblem(Gram(Kernel("precomputed"), Rows(K)), np.arange(60) % 2, 2)
        for solver in (
            KernelLaRank(max_iter=3),
            CrammerSinger(max_iter=3),
            WestonWatkins(max_iter=3),
            Pairwise(max_iter=2),
        ):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with suppress(ValueError):  # a dual above its primal
                    assert solver.solve(problem).n_iter <= 3


def spectrum(A, B):
    """How many pairs of letters two strings share, each as often as in both."""
    pairs = [f"{a}{b}" for a in "abcd" for b in "abcd"]
    left, right = (np.array([[s.count(pair) for pair in pairs] for s in strings], dtype=float) for strings in (A, B))
    return left @ right.T


def strings(n, seed):
    own = np.random.default_rng(seed)
    return ["".join(own.choice(list("abcd"), size=own.integers(4, 12))) for _ in range(n)]


def distances(A, B):
    return np.sqrt(((A[:, None] - B) ** 2).sum(axis=2))


HONEST = {
    "rbf": lambda A, B: np.exp(-0.1 * distances(A, B) ** 2),
    "narrow": lambda A, B: np.exp(-5.0 * distances(A, B) ** 2),
    "linear": lambda A, B: A @ B.T,
    "polynomial": lambda A, B: (0.5 * A @ B.T + 1.0) ** 3,
    "cosine": lambda A, B: (A @ B.T) / np.outer(np.linalg.norm(A, axis=1), np.linalg.norm(B, axis=1)),
    "single": lambda A, B: (A @ B.T).astype(np.float32),
}
DRAWS = {
    "normal": lambda own, n: own.normal(size=(n, 4)),
    "skew": lambda own, n: own.lognormal(size=(n, 4)),
    "counts": lambda own, n: own.poisson(1.0, size=(n, 8)).astype(float) + 0.1,
    "clusters": lambda own, n: np.sign(own.normal(size=(n, 1))) * 4.0 + own.normal(size=(n, 3)),
}


def said_of_values(model, K):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.predict(K)
    return [str(one.message) for one in said if "values of the precomputed kernel" in str(one.message)]


@pytest.mark.parametrize("draw", DRAWS)
@pytest.mark.parametrize("kernel", HONEST)
def test_values_of_other_rows_are_no_distances(kernel, draw):
    """Kernel values never are said to be none: of rows like those of training, of training's own, of one cluster."""
    k = HONEST[kernel]
    for seed in range(6):
        own = np.random.default_rng(seed)
        A, B = DRAWS[draw](own, 60), DRAWS[draw](own, 40)
        model = LaSVMClassifier(kernel="precomputed", C=1.0, random_state=0).fit(k(A, A), np.arange(60) % 2)
        for rows in (B, A, B[:1], B[B[:, 0] > np.median(B[:, 0])]):
            assert not said_of_values(model, k(rows, A))
        if kernel not in ("linear", "single", "polynomial") or draw in ("normal", "clusters"):
            assert said_of_values(model, 1e4 * distances(B, A) ** 2)
        assert said_of_values(model, distances(A, A))


def test_values_of_other_strings():
    for seed in range(5):
        A, B = strings(50, seed), strings(40, 100 + seed)
        model = LaSVMClassifier(kernel="precomputed", C=1.0).fit(spectrum(A, A), np.arange(50) % 2)
        for rows in (A, B, B[:3]):
            assert not said_of_values(model, spectrum(rows, A))


@machines
def test_distances_in_a_prediction(kind, tmp_path):
    model = kind(kernel="precomputed").fit(np.exp(-(DISTANCES[:200, :200] ** 2)), y[:200])
    assert not said_of_values(model, np.exp(-(DISTANCES[200:, :200] ** 2)))
    model.save(tmp_path / "m")
    for one in (model, kind.load(tmp_path / "m")):
        assert "are up to" in said_of_values(one, DISTANCES[200:, :200])[0]
        assert said_of_values(one, DISTANCES[200:203, :200])
    assert kind(kernel="rbf").fit(X[:60], y[:60]).model_.kernel_values is None


@machines
@pytest.mark.parametrize("value", [0.0, 1.0])
@pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")
def test_a_kernel_to_which_all_are_alike(kind, value):
    with pytest.warns(AdviceWarning, match="for all pairs of rows, which are alike to it: it tells nothing"):
        kind(kernel="precomputed").fit(np.full((40, 40), value), np.arange(40) % 2)


WINE, KINDS = load_wine(return_X_y=True)


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
@pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")
def test_columns_of_any_units(kernel, tmp_path):
    """Where C is chosen, so are the units: unscaled, proline drowns the other twelve columns, and 0.6 are right."""
    model = LaRankClassifier(kernel=kernel, random_state=0)
    assert cross_val_score(model, WINE, KINDS, cv=3).mean() > 0.87
    model.fit(WINE, KINDS).save(tmp_path / "m")
    assert model.model_.column_scale is not None
    np.testing.assert_array_equal(LaRankClassifier.load(tmp_path / "m").predict(WINE), model.predict(WINE))
    assert LaSVMClassifier(kernel=kernel, random_state=0).fit(WINE, KINDS > 0).model_.column_scale is not None
    assert LaRankClassifier(C=1.0, gamma=0.1, kernel=kernel).fit(WINE, KINDS).model_.column_scale is None


@pytest.mark.parametrize("kind", [CrammerSingerClassifier, WestonWatkinsClassifier, PairwiseClassifier])
def test_columns_are_named_where_a_tolerance_is_missed(kind):
    with pytest.warns(ConvergenceWarning) as caught:
        kind(C=100.0, kernel="linear", max_iter=1).fit(WINE, KINDS)
    assert [str(one.message).partition(",")[0] for one in caught][-1].startswith("columns vary 10 times")


def test_a_wide_gap_is_said_and_the_columns_are_named():
    frame = pd.DataFrame(WINE, columns=load_wine().feature_names)
    with pytest.warns(ConvergenceWarning, match=r"relative gap of .*'proline', .*: scale them") as caught:
        LaRankClassifier(C=1.0, kernel="linear", random_state=0).fit(frame, KINDS)
    assert [warning.filename for warning in caught] == [__file__]
    with pytest.warns(ConvergenceWarning, match="'feature 12'"):
        LaRankClassifier(C=1.0, kernel="linear", random_state=0).fit(WINE, KINDS)
    scaled = WINE / WINE.std(axis=0)
    with pytest.warns(ConvergenceWarning, match="or give a smaller C than"):
        LaRankClassifier(C=1e6, kernel="linear", random_state=0).fit(scaled, rng.integers(0, 3, len(WINE)))


@pytest.mark.filterwarnings("ignore::structsvm.ConvergenceWarning")
def test_passes_go_on_while_the_gap_is_wide():
    """Two are the usual number; a large C alone leaves a gap that is wide beside the primal, not beside the gain."""
    options = {"kernel": "linear", "random_state": 0}
    assert 2 < LaRankClassifier(C=1.0, **options).fit(WINE, KINDS).n_iter_ <= 20
    assert LaRankClassifier(C=1.0, max_iter=2, **options).fit(WINE, KINDS).n_iter_ == 2
    for C in (1.0, 100.0):
        model = LaRankClassifier(C=C, **options).fit(WINE / WINE.std(axis=0), KINDS)
        assert model.n_iter_ == 2 and model.result_.relative_gap > 0.5
