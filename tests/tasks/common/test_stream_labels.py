"""Labels that are none, or that do not go together, are a ValueError of every classifier, and change nothing."""

from dataclasses import replace

import numpy as np
import pytest
from cases import CASES

from structsvm import Taxonomy, tasks

POINTS = np.random.default_rng(0).normal(size=(8, 3))
LABELS = ["a", "b"] * 4
OTHERS = (tasks.SequenceLabeler, tasks.AmbiguousClassifier)  # whose outputs are lists, and sets
TREE = {"taxonomy": Taxonomy([("r", "a"), ("r", "b")]), "random_state": 0}


def small(case):
    """The case with few examples of the labels a and b; None where an output is no label."""
    if case.kind is tasks.SequenceLabeler:
        return replace(case, X=[[["x"], ["y"]]] * 4, y=[["a", "b"]] * 4)
    is_flat = isinstance(case.y, np.ndarray) and case.y.dtype.kind == "U" and case.y.ndim == 1
    return replace(case, X=POINTS, y=LABELS) if is_flat or case.kind is tasks.AmbiguousClassifier else None


KINDS = CASES | {"tree": replace(CASES["taxonomy"], params=TREE)}
OF_OTHER_LABELS = ("segments", "sequence under rules")  # about the labels of their own data
LABELLED = {name: small(case) for name, case in KINDS.items() if name not in OF_OTHER_LABELS and small(case)}
ONLINE = {name: case for name, case in LABELLED.items() if case.is_stream}
FLAT = {name: case for name, case in LABELLED.items() if case.kind not in OTHERS}


def each(cases):
    return pytest.mark.parametrize("case", cases.values(), ids=cases.keys())


@each(ONLINE)
@pytest.mark.parametrize("classes", [3, "ab", len, [["a"], ["b"]], [{"a"}, "b"], np.array([["a", "b"]])], ids=repr)
def test_classes_that_are_none(case, classes):
    X, y, fresh = case.X, case.y, case.make()
    with pytest.raises(ValueError, match="classes must be a list of labels, got"):
        fresh.partial_fit(X, y, classes=classes)
    assert not hasattr(fresh, "model_")
    fresh.partial_fit(X, y)
    before = fresh.model_
    with pytest.raises(ValueError, match="classes must be a list of labels, got"):
        fresh.partial_fit(X, y, classes=classes)
    assert fresh.model_ is before


@each(ONLINE)
def test_classes_may_be_any_collection(case):
    found = []
    for classes in (["b", "a"], {"a", "b"}, ("a", "b"), {"b": 1, "a": 2}, np.array(["a", "b"]), iter("ba")):
        fresh = case.make().partial_fit(case.X, case.y, classes=classes)
        found.append(fresh.predict(case.X))
        assert list(fresh.classes_) == ["a", "b"]
    assert all(np.array_equal(found[0], other) for other in found)


@each(FLAT)
@pytest.mark.parametrize(
    "y",
    [np.array(["a", 1] * 4, dtype=object), [b"a", b"b"] * 4, [{"a"}, {"b"}] * 4, [["a"], ["b", "c"]] * 4],
    ids=["mixed", "bytes", "sets", "ragged"],
)
def test_labels_that_are_none(case, y):
    fresh = case.make()
    is_node = isinstance(fresh, tasks.TaxonomyClassifier)
    if is_node and fresh.kernel is None and isinstance(y[0], set):  # sets of nodes, each of one: it is the label
        np.testing.assert_array_equal(fresh.fit(POINTS, y).coef_, case.fit().coef_)
        return
    if is_node and fresh.taxonomy is None and isinstance(y[0], list):  # rows of levels, of several lengths
        assert set(fresh.fit(POINTS, y).predict_levels(POINTS)[:, 0]) <= {"a", "b"}
        return
    with pytest.raises(ValueError):
        fresh.fit(POINTS, y)
    assert not hasattr(fresh, "model_")
    if not hasattr(fresh, "partial_fit"):
        return
    fresh.partial_fit(case.X, case.y)
    before = fresh.model_
    with pytest.raises(ValueError):
        fresh.partial_fit(POINTS, y)
    assert fresh.model_ is before


@pytest.mark.parametrize("name", ["ambiguous", "sequence"])
def test_no_labels_at_all(name):
    with pytest.raises((ValueError, TypeError), match="y must hold"):
        LABELLED[name].make().fit(LABELLED[name].X, 3)
