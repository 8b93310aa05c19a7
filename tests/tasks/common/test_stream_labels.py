"""Labels that are none, or that do not go together, are a ValueError of every classifier, and change nothing."""

import numpy as np
import pytest

from structsvm import Taxonomy
from structsvm.tasks import (
    AmbiguousClassifier,
    HullerClassifier,
    KernelPerceptronClassifier,
    LaRankClassifier,
    LaSVMClassifier,
    SequenceLabeler,
    SGDQNClassifier,
    TaxonomyClassifier,
    TrackingClassifier,
)

POINTS = np.random.default_rng(0).normal(size=(8, 3))
ONLINE = [
    SequenceLabeler(random_state=0),
    AmbiguousClassifier(random_state=0),
    TaxonomyClassifier(random_state=0),
    TaxonomyClassifier(Taxonomy([("r", "a"), ("r", "b")]), random_state=0),
    TaxonomyClassifier(kernel="rbf", random_state=0),
    LaRankClassifier(random_state=0),
    LaSVMClassifier(random_state=0),
    HullerClassifier(random_state=0),
    SGDQNClassifier(random_state=0),
    TrackingClassifier(random_state=0),
]
FLAT = [e for e in ONLINE if not isinstance(e, (SequenceLabeler, AmbiguousClassifier))]
FLAT += [KernelPerceptronClassifier(random_state=0)]


def data(estimator, names="ab"):
    if isinstance(estimator, SequenceLabeler):
        return [[["x"], ["y"]]] * 4, [list(names)] * 4
    return POINTS, list(names) * 4


@pytest.mark.parametrize("estimator", ONLINE, ids=repr)
@pytest.mark.parametrize("classes", [3, "ab", len, [["a"], ["b"]], [{"a"}, "b"], np.array([["a", "b"]])], ids=repr)
def test_classes_that_are_none(estimator, classes):
    X, y = data(estimator)
    fresh = type(estimator)(**estimator.get_params(deep=False))
    with pytest.raises(ValueError, match="classes must be a list of labels, got"):
        fresh.partial_fit(X, y, classes=classes)
    assert not hasattr(fresh, "model_")
    fresh.partial_fit(X, y)
    before = fresh.model_
    with pytest.raises(ValueError, match="classes must be a list of labels, got"):
        fresh.partial_fit(X, y, classes=classes)
    assert fresh.model_ is before


@pytest.mark.parametrize("estimator", ONLINE, ids=repr)
def test_classes_may_be_any_collection(estimator):
    X, y = data(estimator)
    found = []
    for classes in (["b", "a"], {"a", "b"}, ("a", "b"), {"b": 1, "a": 2}, np.array(["a", "b"]), iter("ba")):
        fresh = type(estimator)(**estimator.get_params(deep=False)).partial_fit(X, y, classes=classes)
        found.append(fresh.predict(X))
        assert list(fresh.classes_) == ["a", "b"]
    assert all(np.array_equal(found[0], other) for other in found)


@pytest.mark.parametrize("estimator", FLAT, ids=repr)
@pytest.mark.parametrize(
    "y",
    [np.array(["a", 1] * 4, dtype=object), [b"a", b"b"] * 4, [{"a"}, {"b"}] * 4, [["a"], ["b", "c"]] * 4],
    ids=["mixed", "bytes", "sets", "ragged"],
)
def test_labels_that_are_none(estimator, y):
    fresh = type(estimator)(**estimator.get_params(deep=False))
    if isinstance(estimator, TaxonomyClassifier) and estimator.kernel is None and isinstance(y[0], set):
        # Sets of nodes, each of one: it is the label.
        plain = type(estimator)(**estimator.get_params(deep=False)).fit(*data(estimator))
        np.testing.assert_array_equal(fresh.fit(POINTS, y).coef_, plain.coef_)
        return
    if (
        isinstance(estimator, TaxonomyClassifier) and estimator.taxonomy is None and isinstance(y[0], list)
    ):  # rows of levels, of several lengths
        assert set(fresh.fit(POINTS, y).predict_levels(POINTS)[:, 0]) <= {"a", "b"}
        return
    with pytest.raises(ValueError):
        fresh.fit(POINTS, y)
    assert not hasattr(fresh, "model_")
    if not hasattr(fresh, "partial_fit"):
        return
    fresh.partial_fit(*data(estimator))
    before = fresh.model_
    with pytest.raises(ValueError):
        fresh.partial_fit(POINTS, y)
    assert fresh.model_ is before


@pytest.mark.parametrize("estimator", [AmbiguousClassifier(), SequenceLabeler()], ids=repr)
def test_no_labels_at_all(estimator):
    X, _ = data(estimator)
    with pytest.raises((ValueError, TypeError), match="y must hold"):
        estimator.fit(X, 3)
