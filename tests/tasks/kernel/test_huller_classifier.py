"""HullerClassifier: the hard-margin machine of SVC, streams, files."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.svm import SVC

import structsvm
from structsvm import ConvergenceWarning
from structsvm.tasks import HullerClassifier

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = X[:600] / 16.0, X[900:] / 16.0, y[:600] == 8, y[900:] == 8


def test_two_passes_are_nearly_the_hard_margin_machine():
    model = HullerClassifier(gamma=0.05, random_state=0).fit(X, y)
    svc = SVC(C=1e6, gamma=0.05).fit(X, y)
    assert model.score(X_test, y_test) >= svc.score(X_test, y_test) - 0.01
    assert len(model.support_) <= 1.5 * len(svc.support_)
    long = HullerClassifier(gamma=0.05, max_iter=200, random_state=0).fit(X, y)
    np.testing.assert_allclose(long.decision_function(X_test), svc.decision_function(X_test), atol=0.1)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_a_stream(make):
    model = HullerClassifier(gamma=0.05, random_state=0)
    model.partial_fit(make(X[~y][:20]), y[~y][:20], classes=[False, True])
    assert not model.predict(make(X_test)).any()
    for first in range(0, 600, 100):
        model.partial_fit(make(X[first : first + 100]), y[first : first + 100])
    assert model.score(make(X_test), y_test) > 0.93


def test_hulls_that_meet_are_said():
    rng = np.random.default_rng(0)
    data = rng.normal(size=(500, 2))
    with pytest.warns(ConvergenceWarning, match="hulls of the two classes meet"):
        HullerClassifier(kernel="linear", random_state=0).fit(data, data[:, 0] + rng.normal(size=500) > 0.0)


@pytest.mark.parametrize("seed", range(5))
def test_a_batch_outside_the_margin_moves_nothing(seed):
    """The points have few support vectors by then; what comes later is no seed."""
    line = np.arange(1.0, 21.0)
    data = np.concatenate([line, -line])[:, None]
    model = HullerClassifier(kernel="linear", max_iter=50, random_state=seed).fit(data, data[:, 0] > 0.0)
    before = model.decision_function(data)
    model.partial_fit(np.full((3, 1), 30.0), [True] * 3)
    np.testing.assert_allclose(model.decision_function(data), before)


def test_files_and_pickles_hold_it_all(tmp_path):
    model = HullerClassifier(random_state=0).fit(X, y)
    model.save(tmp_path / "it.model")
    for copy in (structsvm.load(tmp_path / "it.model"), pickle.loads(pickle.dumps(model))):
        assert type(copy) is HullerClassifier and copy.get_params() == model.get_params()
        np.testing.assert_array_equal(copy.decision_function(X_test), model.decision_function(X_test))


def test_odd_input():
    with pytest.warns(ConvergenceWarning, match="hulls of the two classes meet"):
        equal = HullerClassifier(random_state=0).fit(np.ones((6, 2)), list("aabbab"))
    assert np.isfinite(equal.decision_function([[1.0, 1.0], [0.0, 5.0]])).all()
    with pytest.raises(ValueError, match="only one class"):
        HullerClassifier().fit(X[:5], [1] * 5)
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        HullerClassifier().fit(X[:3], [0, 1, 2])
    weight = np.ones(600)
    weight[100:] = 0.0
    some = HullerClassifier(random_state=0).fit(X, y, sample_weight=weight)
    assert some.support_.max() < 100
