"""LaSVMClassifier: scikit-learn's contract, the machine of SVC, streams and pools."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.datasets import load_digits, make_classification
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import structsvm
from structsvm import ConvergenceWarning, ModelFileError
from structsvm.datasets import make_banana
from structsvm.tasks import LaRankClassifier, LaSVMClassifier, LaSVMSteps

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = X[:900] / 16.0, X[900:] / 16.0, y[:900] >= 5, y[900:] >= 5

# Checks that scikit-learn's SVC does not pass either, for the same reason.
COPIES = "sample_weight is not equivalent to copies, to the last digit (test_weights_count_copies: the optimum is)"
EXEMPT = {
    "check_sample_weight_equivalence_on_dense_data": COPIES,
    "check_sample_weight_equivalence_on_sparse_data": COPIES,
}
CHECKS = parametrize_with_checks(
    [
        LaSVMClassifier(
            C=1.0,
            kernel="poly",
            gamma="scale",
            coef0=1.0,
            selection="active",
            steps=LaSVMSteps(finishing=False),
            max_iter=2,
            random_state=0,
        )
    ],
    expected_failed_checks=lambda estimator: EXEMPT,
)


@pytest.mark.parametrize(CHECKS.args[0], list(CHECKS.args[1]), **CHECKS.kwargs)
def test_checks_of_scikit_learn(estimator, check):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=sklearn.exceptions.SkipTestWarning)
        check(estimator)


# ---- what is learnt ----------------------------------------------------------------------------


@pytest.mark.parametrize("params", [{"C": 0.5, "gamma": 0.05}, {"C": 20.0, "kernel": "linear"}])
def test_the_optimum_is_that_of_svc(params):
    some = slice(0, 300)
    ours = LaSVMClassifier(**params, tol=1e-6, tau=1e-6, random_state=0).fit(X[some], y[some])
    theirs = SVC(**{"kernel": "rbf"} | params, tol=1e-6).fit(X[some], y[some])
    np.testing.assert_allclose(ours.decision_function(X_test), theirs.decision_function(X_test), atol=2e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-3)
    full, wanted = np.zeros(300), np.zeros(300)
    full[ours.support_], wanted[theirs.support_] = ours.dual_coef_[0], theirs.dual_coef_[0]
    np.testing.assert_allclose(full, wanted, atol=2e-2 * params["C"])
    assert ours.result_.relative_gap <= 1e-6 and ours.result_.status == "converged"
    assert np.array_equal(ours.n_support_, theirs.n_support_)


def test_one_pass_is_nearly_as_good():
    one = LaSVMClassifier(C=10.0, random_state=0).fit(X, y)
    svc = SVC(C=10.0).fit(X, y)
    assert one.score(X_test, y_test) >= svc.score(X_test, y_test) - 0.01
    assert one.n_iter_ == 1 and np.isnan(one.result_.gap)
    np.testing.assert_allclose(
        one.decision_function(X_test),
        one.dual_coef_[0] @ np.exp(-one.model_.kernel.gamma * distances(one.support_vectors_, X_test)) + one.intercept_,
        atol=1e-4,
    )


def distances(A, B):
    return ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2)


def test_weights_count_copies():
    weight = np.random.default_rng(0).integers(0, 3, 120)
    some, labels = X[:120], y[:120]
    params = {"C": 0.5, "gamma": 0.1, "tol": 1e-7, "tau": 1e-7, "random_state": 0}
    by_weight = LaSVMClassifier(**params).fit(some, labels, sample_weight=weight)
    by_copies = LaSVMClassifier(**params).fit(np.repeat(some, weight, axis=0), np.repeat(labels, weight))
    np.testing.assert_allclose(
        by_weight.decision_function(X_test), by_copies.decision_function(X_test), rtol=0, atol=1e-4
    )
    by_class = LaSVMClassifier(**params, class_weight={True: 2.0}).fit(some, labels)
    same = LaSVMClassifier(**params).fit(some, labels, sample_weight=np.where(labels, 2.0, 1.0))
    np.testing.assert_array_equal(by_class.dual_coef_, same.dual_coef_)


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "sigmoid"])
def test_dense_sparse_and_precomputed_are_one(kernel):
    params = {"kernel": kernel, "gamma": 0.05, "coef0": 0.1, "random_state": 0}
    some = X[:200]
    dense = LaSVMClassifier(**params).fit(some, y[:200])
    sparse = LaSVMClassifier(**params).fit(sp.csr_array(some), y[:200])
    np.testing.assert_allclose(
        dense.decision_function(X_test), sparse.decision_function(sp.csr_array(X_test)), atol=1e-3
    )
    if kernel == "linear":
        given = LaSVMClassifier(kernel="precomputed", random_state=0).fit(some @ some.T, y[:200])
        called = LaSVMClassifier(kernel=lambda A, B: A @ B.T, random_state=0).fit(some, y[:200])
        np.testing.assert_allclose(given.decision_function(X_test @ some.T), dense.decision_function(X_test), atol=1e-3)
        np.testing.assert_allclose(called.decision_function(X_test), dense.decision_function(X_test), atol=1e-3)


def test_files_and_pickles_hold_it_all(tmp_path):
    model = LaSVMClassifier(C=2.0, selection="active", max_visits=200, random_state=0).fit(X, y)
    model.save(tmp_path / "it.model")
    for copy in (structsvm.load(tmp_path / "it.model"), pickle.loads(pickle.dumps(model))):
        assert type(copy) is LaSVMClassifier and copy.get_params() == model.get_params()
        np.testing.assert_array_equal(copy.decision_function(X_test), model.decision_function(X_test))
    with pytest.raises(ModelFileError):
        LaRankClassifier.load(tmp_path / "it.model")


# ---- streams -----------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_a_stream(make):
    model = LaSVMClassifier(C=10.0, random_state=0)
    for first in range(0, 900, 100):
        model.partial_fit(make(X[first : first + 100]), y[first : first + 100])
    assert model.score(make(X_test), y_test) > 0.9
    before = model.result_
    model.finish()
    assert model.score(make(X_test), y_test) > 0.93
    assert before.n_iter == 1 and (model.dual_coef_ != 0.0).all()
    assert abs(model.dual_coef_.sum()) < 1e-9
    assert -1 in model.support_ and len(model.support_) == model.support_vectors_.shape[0]
    last = model.support_ >= 0
    assert abs(make(X)[800:][model.support_[last]] - model.support_vectors_[last]).max() == 0.0
    one = LaSVMClassifier(C=10.0, random_state=0).fit(X, y)
    one.finish()
    np.testing.assert_array_equal(one.support_vectors_, X[one.support_])
    with pytest.raises(ValueError, match="'precomputed' does not keep"):
        LaSVMClassifier(C=1.0, kernel="precomputed", random_state=0).fit(X @ X.T, y).finish()


def test_a_stream_whose_first_block_has_one_class():
    model = LaSVMClassifier(random_state=0).partial_fit(X[y][:50], y[y][:50], classes=[False, True])
    assert len(model.support_) == 5 and model.n_support_.sum() == 0
    assert (model.decision_function(X_test) == 1.0).all()
    model.partial_fit(X[:300], y[:300])
    assert model.score(X_test, y_test) > 0.85
    with pytest.raises(ValueError, match="only one class"):
        LaSVMClassifier().partial_fit(X[y][:50], y[y][:50])
    with pytest.raises(ValueError, match="none of the classes"):
        model.partial_fit(X[:3], [True, False, 7])


# ---- pools -------------------------------------------------------------------------------------


def test_a_pool_is_asked_about_what_is_in_doubt():
    """200 labels that were asked for are worth more than 200 at random."""
    data, labels = make_classification(3000, n_features=10, n_informative=6, flip_y=0.0, class_sep=1.2, random_state=1)
    test, truth, data, labels = data[2000:], labels[2000:], data[:2000], labels[:2000]
    scores = dict.fromkeys(("random", "active", "autoactive"), 0.0)
    for selection in scores:
        for seed in range(3):
            model = LaSVMClassifier(C=10.0, gamma=0.1, selection=selection, random_state=seed)
            numbers = model.query(data, classes=[0, 1])
            for _ in range(200):
                assert len(numbers) == 1
                model.teach(numbers, labels[numbers])
                numbers = model.query()
            scores[selection] += model.finish().score(test, truth) / 3
            assert set(model.support_) <= set(range(2000))
    assert scores["active"] > scores["random"] + 0.005
    assert scores["autoactive"] > scores["random"] - 0.005


def test_a_pool_runs_dry():
    model = LaSVMClassifier(random_state=0)
    numbers = model.query(X[:10], n_queries=7, classes=[False, True])
    assert len(set(numbers.tolist())) == 7
    model.teach(numbers, y[:10][numbers])
    rest = model.query(n_queries=7)
    assert sorted([*numbers, *rest]) == list(range(10))
    model.teach(rest, y[:10][rest], sample_weight=[1.0, 0.0, 2.0])
    with pytest.raises(ValueError, match="run dry: all of its 10 rows"):
        model.query()
    model.query(X[10:20])
    with pytest.raises(ValueError, match="row 10 is not one of the pool's 10 rows"):
        model.teach([10], [True])
    with pytest.raises(ValueError, match="taught twice"):
        model.teach([1, 1], [True, True])
    with pytest.raises(ValueError, match="as many rows as labels"):
        model.teach([1, 2], [True])
    assert pickle.loads(pickle.dumps(model)).score(X[:10], y[:10]) == model.score(X[:10], y[:10])


def test_a_pool_goes_on_from_a_stream():
    """A pool teaches what a stream of the same examples teaches."""
    start = LaSVMClassifier(C=5.0, gamma=0.05, tau=1e-6, random_state=0).partial_fit(X[:100], y[:100])
    kept = len(start.support_)
    start.query(X[100:130])
    start.teach(np.arange(30), y[100:130])
    assert (start.result_.n_argmax, start.result_.status) == (30, "running")
    assert (start.support_ < 30).all() and (start.support_ >= 0).sum() > 0 and (start.support_ == -1).sum() <= kept
    start.finish()
    alpha = start.dual_coef_[0]
    f = start.decision_function(start.support_vectors_)
    free = (np.abs(alpha) > 1e-9) & (np.abs(alpha) < 5.0 - 1e-9)
    np.testing.assert_allclose(f[free] * np.sign(alpha[free]), 1.0, atol=1e-4)


def test_queries_that_cannot_be():
    with pytest.raises(ValueError, match="no pool"):
        LaSVMClassifier().query()
    with pytest.raises(ValueError, match="no pool"):
        LaSVMClassifier().teach([0], [1])
    with pytest.raises(ValueError, match="classes="):
        LaSVMClassifier().query(X[:5])
    with pytest.raises(ValueError, match="selection='gradient' looks at labels"):
        LaSVMClassifier(selection="gradient").query(X[:5], classes=[0, 1])
    with pytest.raises(ValueError, match="n_queries must be"):
        LaSVMClassifier().query(X[:5], 0, classes=[0, 1])
    model = LaSVMClassifier(random_state=0)
    numbers = model.query(X[:5], classes=[0, 1])
    with pytest.raises(ValueError, match="none of the classes"):
        model.teach(numbers, [2])


# ---- bad and odd input -------------------------------------------------------------------------


def test_bad_input():
    with pytest.raises(ValueError, match="only one class: 1"):
        LaSVMClassifier().fit(X[:5], [1] * 5)
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        LaSVMClassifier().fit(X[:3], [0, 1, 2])
    with pytest.raises(ValueError, match="NaN"):
        LaSVMClassifier().fit([[np.nan], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="'tau' parameter of LaSVMClassifier must be"):
        LaSVMClassifier(tau=-1.0).fit(X, y)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_examples_that_are_all_equal(kernel):
    model = LaSVMClassifier(kernel=kernel, gamma=1.0, tol=1e-6, random_state=0).fit(np.ones((6, 2)), list("aabbab"))
    assert np.isfinite(model.decision_function([[1.0, 1.0], [0.0, 5.0]])).all()


def test_labels_and_constant_features():
    data, labels = make_banana(400, random_state=0)
    constant = np.column_stack([data, np.full(400, 3.0)])
    plain = LaSVMClassifier(gamma=1.0, random_state=0).fit(data, labels)
    named = LaSVMClassifier(gamma=1.0, random_state=0).fit(constant, np.where(labels, "yes", "no"))
    assert named.classes_.tolist() == ["no", "yes"]
    assert np.mean((named.predict(constant) == "yes") == plain.predict(data)) > 0.97


def test_not_converged_is_a_warning():
    with pytest.warns(ConvergenceWarning, match="stopped after 1 passes"):
        LaSVMClassifier(C=100.0, max_iter=1, tol=1e-9, random_state=0).fit(X, y)
