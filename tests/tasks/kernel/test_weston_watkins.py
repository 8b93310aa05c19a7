"""The machine of Weston and Watkins: against an independent QP solver, SVC, scikit-learn's contract, bad input."""

import pickle
import signal
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
import weston_watkins_reference as reference
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import structsvm
from structsvm.kernel._kernels import Gram, Kernel, Rows
from structsvm.kernel.problem import KernelProblem
from structsvm.progress import Monitor
from structsvm.solvers import WestonWatkins
from structsvm.solvers.kernel import weston_watkins
from structsvm.tasks import WestonWatkinsClassifier


def standard(load):
    X, y = load(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


METHODS = ("cycles", "frank_wolfe")
IRIS = standard(load_iris)
WINE = standard(load_wine)
CANCER = standard(load_breast_cancer)


def scores(model, K):
    """Scores without biases, for the kernel matrix of all training examples."""
    return model.dual_coef_ @ K[model.support_]


def coefficients(model, n):
    beta = np.zeros((len(model.classes_), n))
    beta[:, model.support_] = model.dual_coef_.toarray()
    return beta


# ---- the optimum ---------------------------------------------------------------------------------


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_classes = draw(st.integers(2, 4))
    n = n_classes + draw(st.integers(0, 6))
    y = rng.permutation(np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)]))
    X = rng.integers(-1, 2, (n, 2)).astype(float) if draw(st.booleans()) else rng.normal(size=(n, 3))
    kernel = draw(
        st.sampled_from([{"kernel": "rbf", "gamma": 0.7}, {"kernel": "linear"}, {"kernel": "poly", "coef0": 1.0}])
    )
    weight = rng.uniform(0.2, 2.0, n) if draw(st.booleans()) else np.ones(n)
    return X, y, kernel, 10.0 ** draw(st.integers(-2, 1)), weight


@pytest.mark.parametrize("solver", ["cycles", "frank_wolfe"])
@given(problem=problems())
@settings(max_examples=150)
def test_the_optimum_is_that_of_an_independent_solver(solver, problem):
    X, y, kernel, C, weight = problem
    model = WestonWatkinsClassifier(C=C, solver=solver, tol=1e-6 if solver == "cycles" else 0.02, **kernel)
    if solver == "frank_wolfe":
        model.max_iter = 50
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", structsvm.ConvergenceWarning)
        model.fit(X, y, weight)
    K = Gram(Kernel(model.kernel, gamma=model.model_.kernel.gamma, coef0=float(model.coef0)), Rows(X)).block(
        *2 * [np.arange(len(y))]
    )
    K = K.astype(np.float64)
    best = reference.solve_dual(K, y, C * weight, len(model.classes_))
    result = model.result_
    here = 1e-6 * max(1.0, abs(best))
    # Weak duality on both sides; and both objectives are what the estimator says they are.
    assert result.dual <= best + here
    assert result.primal >= best - here
    beta = coefficients(model, len(y))
    assert reference.primal(K, y, C * weight, beta, model.model_.intercept) == pytest.approx(result.primal, rel=1e-9)
    alpha = np.array([-beta[k, i] for i, k in reference.arcs(y, len(beta))])
    assert reference.dual(K, alpha, y, len(beta)) == pytest.approx(result.dual, rel=1e-9, abs=1e-12)
    assert (alpha >= 0.0).all()
    np.testing.assert_allclose(reference.divergence(y, len(beta)) @ alpha, 0.0, atol=1e-12 * C * len(y))
    if solver == "cycles":
        assert result.dual == pytest.approx(best, abs=here)
        assert result.primal == pytest.approx(best, abs=5 * here)


@pytest.mark.parametrize(
    ("solver", "n_rows"), [*((s, n) for s in METHODS for n in (12, 20, 60, 1000)), ("cycles", 3), ("cycles", 5)]
)
def test_both_solvers_reach_the_optimum_with_a_cache_of_any_size(solver, n_rows):
    X, y = WINE
    best = WestonWatkinsClassifier(1.0, gamma="scale", tol=1e-6).fit(X, y).result_
    size = (n_rows + 0.5) * 4 * len(y) / 2**20
    model = WestonWatkinsClassifier(1.0, gamma="scale", solver=solver, tol=1e-2, cache_size=size).fit(X, y)
    assert model.result_.status == "converged"
    assert model.result_.relative_gap <= 1e-2
    assert model.result_.dual <= best.primal and best.dual <= model.result_.primal
    assert model.result_.dual == pytest.approx(best.dual, rel=1e-2)


def test_the_dual_never_falls():
    for solver in METHODS:
        history = WestonWatkinsClassifier(solver=solver, tol=1e-2, cache_size=0.02).fit(*WINE).result_.history
        assert len(history["dual"]) > 3
        assert (np.diff(history["dual"][:-1]) >= -1e-12).all()


@pytest.mark.parametrize("data", [IRIS, WINE])
def test_the_gap_recomputed(data):
    X, y = data
    model = WestonWatkinsClassifier(C=3.0, gamma=0.1).fit(X, y)
    K = rbf_kernel(X, gamma=0.1)
    result, beta = model.result_, coefficients(model, len(y))
    primal = reference.primal(K, y, np.full(len(y), 3.0), beta, model.intercept_)
    dual = beta[y, np.arange(len(y))].sum() - 0.5 * np.vdot(beta, scores(model, K))
    # scikit-learn's kernel is not rounded to float32.
    assert (result.primal, result.dual) == pytest.approx((primal, dual), rel=1e-6)
    assert result.gap == result.primal - result.dual
    assert 0.0 <= result.relative_gap <= 1e-3
    # No other biases give a smaller primal.
    for direction in np.random.default_rng(0).normal(size=(20, 3)):
        moved = reference.primal(K, y, np.full(len(y), 3.0), beta, model.intercept_ + 0.01 * direction)
        assert moved >= primal - 1e-9


@pytest.mark.parametrize("C", [0.05, 1.0, 20.0])
def test_two_classes_are_SVC_with_twice_the_C(C):
    # h_0 = -h_1, and w = 2 h: |h_0|^2 / 2 + |h_1|^2 / 2 = |w|^2 / 4, so the primal is half of SVC's for 2 C.
    X, y = CANCER
    model = WestonWatkinsClassifier(C=C, gamma=0.03, tol=1e-7).fit(X, y)
    peer = SVC(C=2.0 * C, gamma=0.03, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), peer.decision_function(X), atol=1e-4)
    np.testing.assert_array_equal(model.predict(X), peer.predict(X))
    margins = np.where(y == 1, 1.0, -1.0) * peer.decision_function(X)
    w2 = peer.dual_coef_ @ rbf_kernel(peer.support_vectors_, gamma=0.03) @ peer.dual_coef_.T
    assert 2.0 * model.result_.primal == pytest.approx(
        0.5 * w2.item() + 2.0 * C * np.maximum(0.0, 1.0 - margins).sum(), rel=1e-5
    )
    beta = model.dual_coef_.toarray()
    np.testing.assert_allclose(beta[1], -beta[0])


def test_with_tiny_C_biases_stay_in_the_middle():
    X, y = IRIS
    model = WestonWatkinsClassifier(C=1e-6).fit(X, y)
    assert model.score(X, y) > 0.8
    assert abs(model.intercept_.sum()) < 1e-12


def test_duplicates_with_different_labels():
    X = np.array([[0.0], [0.0], [0.0], [1.0]])
    model = WestonWatkinsClassifier(C=10.0, gamma=1.0, tol=1e-6).fit(X, ["a", "b", "c", "a"])
    assert model.result_.status == "converged"
    assert model.predict([[1.0]]) == ["a"]


def test_slopes_are_the_gradient_of_the_dual():
    # Equation 3 by finite differences, against g_ik = 1 - F_{y_i i} + F_ki, which both solvers follow.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(7, 2)), np.array([0, 0, 1, 1, 2, 2, 2])
    K = rbf_kernel(X, gamma=0.5)
    pairs = reference.arcs(y, 3)
    alpha = rng.uniform(size=len(pairs))
    beta = np.zeros((3, 7))
    for a, (i, k) in zip(alpha, pairs):
        beta[k, i] -= a
        beta[y[i], i] += a
    F = beta @ K
    for direction, (i, k) in zip(np.eye(len(pairs)), pairs):
        step = 1e-4 * direction
        slope = (reference.dual(K, alpha + step, y, 3) - reference.dual(K, alpha - step, y, 3)) / 2e-4
        assert slope == pytest.approx(1.0 - F[y[i], i] + F[k, i], abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_steps_of_frank_wolfe_are_those_of_section_5_2(monkeypatch, seed):
    """Problem 3 and the printed theta, from alpha = 0, one step per round on all examples."""
    monkeypatch.setattr(weston_watkins, "FRANK_WOLFE_STEPS", 1)
    rng, C = np.random.default_rng(seed), 0.7
    y = np.repeat(np.arange(3), 3).astype(np.int32)
    gram = Gram(Kernel("rbf", gamma=0.5), Rows(rng.normal(size=(9, 2))))
    K = gram.block(np.arange(9), np.arange(9)).astype(np.float64)
    H, pairs = reference.hessian(K, y, 3), reference.arcs(y, 3)
    alpha = np.zeros(len(pairs))
    for n in range(1, 6):
        solver = WestonWatkins(C, method="frank_wolfe", max_iter=n, tol=1e-9)
        with pytest.warns(structsvm.ConvergenceWarning):
            run = solver.solve(KernelProblem(gram, y, 3))
        found = np.array([-run.state.beta[k, i] for i, k in pairs])
        slope = H @ alpha - 1.0
        # At 0 many corners are optimal; the step shows which was taken: its coefficients are 0 or C.
        corner = C * (found > 0.0) if n == 1 else reference.corner(slope, y, C, 3)
        np.testing.assert_allclose(reference.divergence(y, 3) @ corner, 0.0, atol=1e-12)
        assert slope @ corner == pytest.approx(slope @ reference.corner(slope, y, C, 3), rel=1e-9)
        direction = corner - alpha
        theta = min(-(slope @ direction) / (direction @ H @ direction), 1.0)
        alpha = (1.0 - theta) * alpha + theta * corner
        np.testing.assert_allclose(found, alpha, atol=1e-6)


# ---- what goes in --------------------------------------------------------------------------------


def test_weights_are_factors_on_C():
    X, y = WINE
    copies = np.arange(len(y)) % 3
    repeated = np.repeat(np.arange(len(y)), copies)
    weighted = WestonWatkinsClassifier(1.0, gamma="scale", tol=1e-6).fit(X, y, copies.astype(float))
    plain = WestonWatkinsClassifier(1.0, gamma=weighted.model_.kernel.gamma, tol=1e-6).fit(X[repeated], y[repeated])
    assert weighted.result_.dual == pytest.approx(plain.result_.dual, rel=2e-6)
    np.testing.assert_allclose(weighted.decision_function(X), plain.decision_function(X), atol=5e-3)
    assert not np.isin(weighted.support_, np.flatnonzero(copies == 0)).any()
    by_class = WestonWatkinsClassifier(1.0, gamma="scale", tol=1e-6, class_weight={1: 2.0}).fit(X, y)
    by_example = WestonWatkinsClassifier(1.0, gamma="scale", tol=1e-6).fit(X, y, np.where(y == 1, 2.0, 1.0))
    np.testing.assert_array_equal(by_class.dual_coef_.toarray(), by_example.dual_coef_.toarray())


def test_every_kind_of_matrix_and_kernel_gives_one_machine():
    X, y = WINE
    dense = WestonWatkinsClassifier(1.0, gamma=0.05).fit(X, y)
    expected = dense.decision_function(X)
    for index in (np.int32, np.int64):
        sparse = sp.csr_array(X)
        sparse.indices, sparse.indptr = sparse.indices.astype(index), sparse.indptr.astype(index)
        model = clone(dense).fit(sparse, y)
        assert model.support_vectors_.format == "csr"
        for test in (X, sparse):
            np.testing.assert_allclose(model.decision_function(test), expected, atol=1e-4)
            np.testing.assert_allclose(dense.decision_function(test), expected, atol=1e-4)
    by_function = WestonWatkinsClassifier(1.0, kernel=lambda a, b: rbf_kernel(a, b, gamma=0.05)).fit(X, y)
    np.testing.assert_allclose(by_function.decision_function(X), expected, atol=1e-4)
    K = rbf_kernel(X, gamma=0.05)
    precomputed = WestonWatkinsClassifier(1.0, kernel="precomputed").fit(K, y)
    np.testing.assert_allclose(precomputed.decision_function(K[:50]), expected[:50], atol=1e-4)
    single = clone(dense).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(single.decision_function(X), expected, atol=1e-3)


def bad_kernel(a, b):
    return np.zeros((len(a), len(b) + 1))


BAD = [
    ({"C": -1.0}, {}, "The 'C' parameter of WestonWatkinsClassifier must be a float in the range"),
    ({"gamma": 0}, {}, "The 'gamma' parameter"),
    ({"kernel": "cosine"}, {}, "The 'kernel' parameter"),
    ({"solver": "newton"}, {}, "The 'solver' parameter"),
    ({"tol": 0.0}, {}, "The 'tol' parameter"),
    ({"max_iter": 0}, {}, "The 'max_iter' parameter"),
    ({"coef0": np.nan}, {}, "The 'coef0' parameter"),
    ({"class_weight": {1: -1.0}}, {}, "class_weight must be positive"),
    ({"cache_size": 1e-5}, {}, "less than one row of the kernel matrix"),
    ({"cache_size": 1e-3}, {}, "3 are needed for 3 classes"),
    ({}, {"y": np.zeros(150)}, "one class"),
    ({}, {"y": np.linspace(0.0, 1.0, 150)}, "Unknown label type"),
    ({}, {"X": np.where(np.arange(4) == 2, np.nan, IRIS[0])}, "NaN"),
    ({}, {"X": 1e200 * IRIS[0]}, "overflows; scale the features down"),
    ({"kernel": "precomputed"}, {}, "square matrix"),
    ({"kernel": bad_kernel}, {}, "must return an array of real numbers of shape"),
    ({}, {"sample_weight": -np.ones(150)}, "sample_weight must be finite and not negative"),
    ({}, {"sample_weight": np.ones(3)}, "sample_weight has shape"),
    ({}, {"sample_weight": (IRIS[1] == 0).astype(float)}, "zero for all examples of the class 1"),
]


@pytest.mark.parametrize(("params", "data", "message"), BAD)
def test_bad_input(params, data, message):
    model = WestonWatkinsClassifier(**params)
    with pytest.raises(ValueError, match=message):
        model.fit(**{"X": IRIS[0], "y": IRIS[1]} | data)
    assert not hasattr(model, "dual_coef_")


def test_more_coefficients_than_a_batch_solver_keeps():
    X, y = np.zeros((20000, 1)), np.arange(20000) // 2
    with pytest.raises(ValueError, match="20000 examples times 10000 classes"):
        WestonWatkinsClassifier().fit(X, y)


def test_as_many_classes_as_pairs_of_examples():
    X = np.random.default_rng(0).normal(size=(120, 5))
    y = np.arange(120) // 2
    model = WestonWatkinsClassifier(tol=0.1, gamma=3.0).fit(X, y)
    assert model.result_.relative_gap <= 0.1
    assert model.dual_coef_.shape == (60, 120)


# ---- what comes out ------------------------------------------------------------------------------


def test_attributes_describe_the_machine():
    X, y = IRIS
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = WestonWatkinsClassifier(C=0.5).fit(X, names)
    np.testing.assert_array_equal(model.classes_, ["setosa", "versicolor", "virginica"])
    np.testing.assert_array_equal(X[model.support_], model.support_vectors_)
    np.testing.assert_array_equal(np.bincount(y[model.support_]), model.n_support_)
    assert model.n_support_.sum() == len(model.support_) < len(X)
    by_hand = (
        rbf_kernel(X, model.support_vectors_, gamma=model.model_.kernel.gamma) @ model.dual_coef_.T + model.intercept_
    )
    np.testing.assert_allclose(model.decision_function(X), by_hand, atol=1e-5)
    np.testing.assert_array_equal(model.predict(X), model.classes_[by_hand.argmax(axis=1)])
    np.testing.assert_allclose(model.dual_coef_.toarray().sum(axis=1), 0.0, atol=1e-12)
    assert model.n_iter_ == model.result_.n_iter == model.result_.history["n_iter"][-1]
    assert 0 < model.n_kernel_ <= len(X) ** 2 + len(X)
    assert model.result_.n_support == (model.dual_coef_.toarray() < 0.0).sum()


def test_not_converged_is_a_warning_with_the_gap():
    model = WestonWatkinsClassifier(max_iter=2, cache_size=0.02)
    with pytest.warns(
        structsvm.ConvergenceWarning, match=r"after 2 passes at a relative gap of 0\.\d+, above tol=0\.001"
    ):
        model.fit(*WINE)
    assert (model.result_.status, model.n_iter_) == ("max_iter", 2)


def test_equal_runs_give_equal_bits():
    models = [WestonWatkinsClassifier().fit(*WINE) for _ in range(2)]
    np.testing.assert_array_equal(models[0].dual_coef_.toarray(), models[1].dual_coef_.toarray())
    np.testing.assert_array_equal(models[0].intercept_, models[1].intercept_)


class Interrupting(Monitor):
    """Sends Ctrl-C in the third round."""

    def begin_pass(self, run):
        if run.n_iter == 2:
            signal.raise_signal(signal.SIGINT)


def test_ctrl_c_leaves_a_whole_machine():
    X, y = WINE
    gram = Gram(Kernel("rbf", gamma=0.1), Rows(X))
    solver = WestonWatkins(cache_size=0.02, tol=1e-6)
    run = solver.solve(KernelProblem(gram, y, 3), monitor=Interrupting())
    assert (run.status, run.n_iter) == ("interrupted", 2)
    K, order = gram.block(*2 * [run.state.order]).astype(np.float64), run.state.order
    found = reference.primal(K, y[order], np.ones(len(y)), run.state.beta, run.intercept)
    assert run.primal == pytest.approx(found)
    assert run.dual < run.primal < np.inf


# ---- files, copies -------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", METHODS)
def test_model_files_keep_biases_and_solver(tmp_path, solver):
    X, y = IRIS
    model = WestonWatkinsClassifier(solver=solver, tol=0.01, class_weight={1: 2.0}).fit(X, y)
    model.save(tmp_path / "m")
    copy = structsvm.load(tmp_path / "m")
    assert type(copy) is WestonWatkinsClassifier
    assert copy.get_params() == model.get_params()
    assert copy.result_.to_dict() == model.result_.to_dict()
    np.testing.assert_array_equal(copy.intercept_, model.intercept_)
    np.testing.assert_array_equal(copy.decision_function(X), model.decision_function(X))


def test_pickles_and_clones():
    model = WestonWatkinsClassifier(C=2.0, class_weight="balanced").fit(*IRIS)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.decision_function(IRIS[0]), model.decision_function(IRIS[0]))
    assert clone(model).get_params() == model.get_params()


def test_probabilities_where_a_class_has_one_example():
    X, y = np.random.default_rng(0).normal(size=(30, 3)), ["a"] * 15 + ["b"] * 14 + ["c"]
    model = WestonWatkinsClassifier(C=1.0, gamma=0.5, probability=True).fit(X, y)
    assert model.temperature_ > 0.0 and np.allclose(model.predict_proba(X).sum(axis=1), 1.0)


# ---- scikit-learn's contract ---------------------------------------------------------------------

# SVC's own exemptions, and no others.
WEIGHTS = "the optimum is the same, and training stops before its last digit (test_weights_are_factors_on_C)"
EXEMPT = {
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
}
NO_KERNEL = "the check hands over rows, which are no kernel matrix"
NO_KERNELS = dict.fromkeys(
    ("check_positive_only_tag_during_fit", "check_estimators_dtypes", "check_classifiers_one_label_sample_weights"),
    NO_KERNEL,
)
CHECKS = parametrize_with_checks(
    [
        WestonWatkinsClassifier(kernel="precomputed"),
        WestonWatkinsClassifier(1.0, gamma="scale", solver="frank_wolfe", tol=0.01),
    ],
    expected_failed_checks=lambda estimator: NO_KERNELS if estimator.kernel == "precomputed" else EXEMPT,
)


# As a list: of the generator that scikit-learn may give, pytest warns.
@pytest.mark.parametrize(CHECKS.args[0], list(CHECKS.args[1]), **CHECKS.kwargs)
def test_checks_of_scikit_learn(estimator, check):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=sklearn.exceptions.SkipTestWarning)
        check(estimator)
