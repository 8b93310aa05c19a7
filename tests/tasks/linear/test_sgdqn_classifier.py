"""SGDQNClassifier: scikit-learn's contract, several classes, streams, files."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.datasets import load_digits
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import structsvm
from structsvm import ModelFileError
from structsvm.dual.parallel import parallel_map
from structsvm.solvers import SGDQN
from structsvm.tasks import LaSVMClassifier, SGDQNClassifier
from structsvm.tasks.common.estimator import CallbackMonitor

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = X[:1200] / 16.0, X[1200:] / 16.0, y[:1200], y[1200:]

# Checks that scikit-learn's SVC does not pass either, nor its SGDClassifier.
COPIES = "copies are visited one after the other, in another order: not equal to the last digit"
EXEMPT = {
    "check_sample_weight_equivalence_on_dense_data": COPIES,
    "check_sample_weight_equivalence_on_sparse_data": COPIES,
}
CHECKS = parametrize_with_checks(
    [SGDQNClassifier(method="svmsgd2", loss="hinge", average=True, random_state=0)],
    expected_failed_checks=lambda estimator: EXEMPT,
)


@pytest.mark.parametrize(CHECKS.args[0], list(CHECKS.args[1]), **CHECKS.kwargs)
def test_checks_of_scikit_learn(estimator, check):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=sklearn.exceptions.SkipTestWarning)
        check(estimator)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_several_classes(make, dtype):
    model = SGDQNClassifier(1 / 2400, max_iter=20, average=True, random_state=0).fit(make(X.astype(dtype)), y)
    assert model.coef_.shape == (10, 64) and model.coef_.dtype == dtype and model.intercept_.shape == (10,)
    wanted = LinearSVC().fit(X, y).score(X_test, y_test)
    assert model.score(make(X_test.astype(dtype)), y_test) > wanted - 0.02
    assert model.result_.n_iter == 20 and model.result_.primal > 0.0


def test_weights_count_as_copies_do_at_the_optimum():
    some, labels = X[:200], y[:200] > 4
    weight = np.random.default_rng(0).integers(0, 3, 200)
    params = {"max_iter": 300, "average": True, "random_state": 0}
    by_copies = SGDQNClassifier(0.1, **params).fit(np.repeat(some, weight, axis=0), np.repeat(labels, weight))
    # The objective is a mean over examples of weight above 0: copies make more of them.
    by_weight = SGDQNClassifier(0.1 * weight.sum() / np.count_nonzero(weight), **params).fit(
        some, labels, sample_weight=weight
    )
    scores = by_copies.decision_function(X_test)
    np.testing.assert_allclose(by_weight.decision_function(X_test), scores, atol=0.05 * np.abs(scores).max())
    by_class = SGDQNClassifier(class_weight={True: 3.0}, random_state=0).fit(some, labels)
    same = SGDQNClassifier(random_state=0).fit(some, labels, sample_weight=np.where(labels, 3.0, 1.0))
    np.testing.assert_array_equal(by_class.coef_, same.coef_)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_rows_of_weight_0_do_not_count(make):
    """The objective is a mean over the others."""
    weight = 1.0 * (np.arange(400) % 4 > 0)
    model = SGDQNClassifier(1e-2, random_state=0).fit(make(X[:400]), y[:400], sample_weight=weight)
    wanted = SGDQNClassifier(1e-2, random_state=0).fit(make(X[:400][weight > 0]), y[:400][weight > 0])
    np.testing.assert_array_equal(model.coef_, wanted.coef_)
    assert model.result_.primal == wanted.result_.primal


def test_a_stream_goes_on(tmp_path):
    model = SGDQNClassifier(t0=3e5, random_state=0)
    for first in range(0, 1200, 300):
        model.partial_fit(X[first : first + 300], y[first : first + 300], classes=range(10))
        assert model.n_iter_ == 1 and model.t0_ == 3e5
    assert model.score(X_test, y_test) > 0.85
    with pytest.raises(ValueError, match="none of the classes"):
        model.partial_fit(X[:2], [3, 11])
    one = SGDQNClassifier(random_state=0).partial_fit(X[:50], [1] * 50, classes=[0, 1])
    assert (one.predict(X[:50]) == 1).all()
    model.save(tmp_path / "it.model")
    copies = [structsvm.load(tmp_path / "it.model"), pickle.loads(pickle.dumps(model))]
    model.partial_fit(X[:100], y[:100])
    for copy in copies:
        assert copy.t0_ == 3e5
        np.testing.assert_array_equal(copy.partial_fit(X[:100], y[:100]).coef_, model.coef_)
    model.model_.state["numbers"][1] = -1.0
    model.save(tmp_path / "it.model")
    with pytest.raises(ValueError, match="training state: array 'numbers' has values from -1"):
        structsvm.load(tmp_path / "it.model").partial_fit(X[:2], y[:2])
    model.model_.state["numbers"][1] = 1.0
    del model.model_.state["curvature"]
    with pytest.raises(ValueError, match="array 'curvature' is missing"):
        model.partial_fit(X[:2], y[:2])


def test_files_and_pickles_hold_it_all(tmp_path):
    for labels in (y, y > 4):
        model = SGDQNClassifier(class_weight="balanced", random_state=0).fit(X, labels)
        model.save(tmp_path / "it.model")
        for copy in (structsvm.load(tmp_path / "it.model"), pickle.loads(pickle.dumps(model))):
            assert type(copy) is SGDQNClassifier and copy.get_params() == model.get_params()
            np.testing.assert_array_equal(copy.decision_function(X_test), model.decision_function(X_test))
    with pytest.raises(ModelFileError):
        LaSVMClassifier.load(tmp_path / "it.model")


def test_bad_input():
    with pytest.raises(ValueError, match="only one class: 1"):
        SGDQNClassifier().fit(X[:5], [1] * 5)
    with pytest.raises(ValueError, match="NaN"):
        SGDQNClassifier().fit([[np.nan], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="'alpha' parameter of SGDQNClassifier must be"):
        SGDQNClassifier(alpha=-1.0).fit(X, y)
    with pytest.raises(ValueError, match="overflowed"):
        SGDQNClassifier(1e-12, t0=1e-3, standardize=False, random_state=0).fit(1e30 * X.astype(np.float32), y)
    for large in (1e25 * X.astype(np.float32), 1e200 * X, sp.csr_array(1e200 * X)):
        with pytest.raises(ValueError, match=r"squares of X(, which)? overflow"):
            SGDQNClassifier(standardize=False).fit(large, y)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_threads_predict_the_same_bits(make, dtype, monkeypatch):
    model = SGDQNClassifier(random_state=0).fit(X, y)
    rows, used = make(np.tile(X, (3, 1))[:3001].astype(dtype)), []

    def watched(function, parts, n_threads):
        used.append((len(parts), n_threads))
        return parallel_map(function, parts, n_threads)

    monkeypatch.setattr("structsvm.tasks.common.classifier.parallel_map", watched)
    scores, labels = model.decision_function(rows), model.predict(rows)
    for n_jobs in (1, 2, 5):
        model.set_params(n_jobs=n_jobs)
        np.testing.assert_array_equal(model.decision_function(rows), scores)
        np.testing.assert_array_equal(model.predict(rows), labels)
    assert used == [(6, n) for n in (1, 1, 1, 1, 2, 2, 5, 5)]


def test_t0_is_chosen_once(tmp_path, monkeypatch):
    """A warm start and a checkpoint bring theirs along; another alpha asks for another one."""
    chosen_t0, calls = SGDQN.chosen_t0, []

    def counted(self, *args):
        calls.append(self)
        return chosen_t0(self, *args)

    monkeypatch.setattr(SGDQN, "chosen_t0", counted)
    whole = SGDQNClassifier(max_iter=3, random_state=0).fit(X, y)
    assert len(calls) == 1
    model = SGDQNClassifier(max_iter=1, warm_start=True, random_state=0).fit(X, y)
    assert len(calls) == 2
    model.set_params(max_iter=2).fit(X, y)
    assert len(calls) == 2 and model.t0_ == whole.t0_
    np.testing.assert_array_equal(model.coef_, whole.coef_)
    model.set_params(alpha=1e-2).fit(X, y)
    assert len(calls) == 3 and model.t0_ != whole.t0_
    model.fit(X[:300], y[:300])
    assert len(calls) == 3

    path, end_pass = tmp_path / "c", CallbackMonitor.end_pass
    model = SGDQNClassifier(max_iter=3, random_state=0, checkpoint=path)

    def kill(self, run):
        end_pass(self, run)
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(CallbackMonitor, "end_pass", kill)
        with pytest.raises(SystemExit):
            model.fit(X, y)
    assert len(calls) == 4
    np.testing.assert_array_equal(model.fit(X, y).coef_, whole.coef_)
    assert len(calls) == 4


def test_ctrl_c_before_t0_is_chosen(monkeypatch):
    def interrupt(*_args):
        raise KeyboardInterrupt

    model = SGDQNClassifier(random_state=0)
    with monkeypatch.context() as patch:
        patch.setattr(SGDQN, "chosen_t0", interrupt)
        with pytest.raises(KeyboardInterrupt, match="holds the model as it was then"):
            model.fit(X, y)
    assert not model.coef_.any() and model.t0_ == 0.0
    assert model.partial_fit(X, y).t0_ > 0.0
    assert model.score(X, y) > 0.8


def test_equal_examples_and_constant_features():
    model = SGDQNClassifier(random_state=0).fit(np.ones((6, 2)), list("aabbab"))
    assert np.isfinite(model.decision_function([[1.0, 1.0], [0.0, 5.0]])).all()
    constant = SGDQNClassifier(random_state=0).fit(np.column_stack([X, np.full(1200, 7.0), np.zeros(1200)]), y)
    assert np.isfinite(constant.coef_).all() and (constant.coef_[:, -1] == 0.0).all()
