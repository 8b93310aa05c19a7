"""A warning points to the user's line, from whatever depth of the package."""

import inspect
import warnings

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import structsvm
from structsvm._warnings import warn
from structsvm.kernel._kernels import Gram, Kernel, Rows
from structsvm.kernel.problem import KernelProblem
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.solvers import Huller, LaRank
from structsvm.tasks import LaRankClassifier, SequenceLabeler


def lines(call):
    """``(file, line)`` of the warnings of a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [(w.filename, w.lineno) for w in caught]


def here(offset=0):
    return __file__, inspect.currentframe().f_back.f_lineno + offset


def test_directly():
    assert lines(lambda: warn("text", UserWarning)) == [here()]


@pytest.mark.parametrize("depth", [1, 2, 7])
def test_from_inside_the_package(depth):
    """Frames of structsvm and of its subpackages are skipped; those of a package with a longer name are not."""

    def nested(package):
        source = "def call(n):\n    call(n - 1) if n else warn('text', UserWarning)"
        names = {"__name__": package, "warn": warn}
        exec(compile(source, package, "exec"), names)
        return names["call"]

    for package in ("structsvm", "structsvm.tasks.sequence"):
        call = nested(package)
        assert lines(lambda call=call: call(depth)) == [here()]
    assert lines(lambda: nested("structsvm_extras")(depth)) == [("structsvm_extras", 2)]


def two_classes():
    X = np.array([[1.0], [1.0], [1.0], [-1.0]])
    rows = Rows(X)
    return KernelProblem(Gram(Kernel("linear"), rows), np.array([0, 1, 0, 1]), 2)


def test_from_a_search():
    """The line of scikit-learn that calls `fit` would say nothing to a user."""
    X, y = [[{"a": 1}, {"b": 1}]] * 6, [["x", "y"]] * 6
    search = GridSearchCV(SequenceLabeler(C=100.0, max_iter=1, tol=1e-12), {"random_state": [0]}, cv=2)
    assert set(lines(lambda: search.fit(X, y))) == {here()}
    pipeline = make_pipeline("passthrough", LaRankClassifier(C=1.0, kernel="linear", random_state=0))
    rows = np.random.default_rng(0).normal(size=(99, 3)) * [1.0, 1.0, 1e4]
    assert set(lines(lambda: pipeline.fit(rows, rows[:, 0] > 0.0))) == {here()}


def test_of_solvers():
    problem = ViterbiOracle(n_labels=2, n_token_features=1).bind([np.array([[1.0], [2.0]])] * 2, [[0, 1], [1, 0]])
    solver = LaRank(C=100.0, max_iter=1, tol=1e-12, random_state=0)
    assert lines(lambda: solver.solve(problem)) == [here()]
    assert set(lines(lambda: Huller(max_iter=1, random_state=0).solve(two_classes()))) == {here()}


def test_of_estimators():
    model = structsvm.StructuredSVM(
        ViterbiOracle(n_labels=2, n_token_features=1), LaRank(100.0, max_iter=1, tol=1e-12, random_state=0)
    )
    X, Y = [np.array([[1.0], [2.0]])] * 2, [[0, 1], [1, 0]]
    assert lines(lambda: model.fit(X, Y)) == [here()]


def test_of_check_oracle():
    class Local(ViterbiOracle):
        """A class that pickle cannot find."""

    oracle = Local(n_labels=2, n_token_features=1)
    X, Y = [np.array([[1.0], [2.0]])], [[0, 1]]
    assert lines(lambda: structsvm.testing.check_oracle(oracle, X, Y, n_trials=2)) == [here()]
