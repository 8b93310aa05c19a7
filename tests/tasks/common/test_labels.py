"""Labels: their order, their costs, their form in files, and those that a stream has settled."""

import numpy as np
import pytest
from cases import CASES

from structsvm.tasks import LaRankClassifier, PairwiseClassifier
from structsvm.tasks.common.labels import (
    check_classes,
    is_hashable,
    label_array,
    label_costs,
    label_ids_of,
    settled_labels,
    sort_labels,
)
from structsvm.tasks.common.stored_labels import Labels, label_from_json, label_to_json


def test_order_and_arrays():
    assert sort_labels([np.int64(3), 1, 2]) == [1, 2, 3]
    assert sort_labels(["b", 1, ("a",), "a", None]) == [None, 1, "a", "b", ("a",)]  # by type, then by text
    with pytest.raises(ValueError, match="NaN"):
        sort_labels([1.0, float("nan")])
    kinds = {"U": ["a", "bc"], "i": [1, 2], "b": [True, False], "f": [0.5, 1.5]}
    assert [label_array(labels).dtype.kind for labels in kinds.values()] == list(kinds)
    for mixed in ([1, "a"], [("a", 1), ("b", 2)]):
        assert label_array(mixed).dtype == object and label_array(mixed).tolist() == mixed


def test_costs():
    labels, label_ids = ["a", "b", "c"], np.array([0, 0, 0, 1])
    assert label_costs(None, labels, label_ids) is None
    np.testing.assert_allclose(label_costs("balanced", labels, label_ids), [4 / 9, 4 / 3, 4 / 3])
    np.testing.assert_array_equal(label_costs({"b": 2, "c": 0.5}, labels, label_ids), [1.0, 2.0, 0.5])
    with pytest.raises(ValueError, match="class_weight names 'd', which is not one of the labels"):
        label_costs({"a": 1.0, "d": 1.0}, labels, label_ids)
    for weight in (0.0, -1.0, np.inf, np.nan, "2", None):
        with pytest.raises(ValueError, match=r"positive and finite, got .* for the label 'b'"):
            label_costs({"a": 1.0, "b": weight}, labels, label_ids)


@pytest.mark.parametrize("label", ["a", "", 3, 0.5, True, None, ("a", 1), ("a", ("b", None)), ()])
def test_labels_go_around_in_json(label):
    assert Labels().get("labels", {"labels": Labels().to_json([label, "other"])}) == [label, "other"]


def test_labels_that_json_cannot_hold():
    for label in (b"a", frozenset("a"), ("a", b"b"), np.int64(1)):
        with pytest.raises(TypeError, match="a model file cannot hold the label"):
            label_to_json(label)
    for values in ({"a": 1}, ["a", "a"], [["a"]], [{"tuple": "ab"}], []):
        with pytest.raises(ValueError, match="label"):
            Labels(1).get("labels", {"labels": values})
    with pytest.raises(KeyError):
        label_from_json({"list": []})
    assert is_hashable(("a",)) and not is_hashable(["a"])


def test_a_stream_keeps_its_labels():
    y = np.array(["b", "a", "b"])
    labels = settled_labels(y, None)
    assert labels.tolist() == ["a", "b"] and settled_labels(y, ["c", "a", "b"]).tolist() == ["a", "b", "c"]
    assert settled_labels(y, ["b", "a"], labels) is labels and settled_labels(y[:1], None, labels) is labels
    for classes in (["a"], ["a", "b", "c"], ["a", "c"]):
        with pytest.raises(ValueError, match="not the same as on the last call"):
            check_classes(classes, labels)
    with pytest.raises(ValueError, match="y has only one class: 'b'"):
        settled_labels(y[:1], None)
    for machine, hint in ((PairwiseClassifier(), r"'b'$"), (LaRankClassifier(), r"'b' \(partial_fit takes")):
        with pytest.raises(ValueError, match=f"only one class: {hint}"):
            machine.fit(np.eye(2), ["b", "b"])
    ids = label_ids_of(y, labels)
    assert ids.tolist() == [1, 0, 1] and ids.dtype == np.int32
    with pytest.raises(ValueError, match="y has the label 'c', none of the classes"):
        label_ids_of(np.array(["a", "c"]), labels)


@pytest.mark.parametrize(
    ("name", "y"),
    [
        ("sequence", [[{"D", None}, "A", "N"]]),
        ("ambiguous", [{"a", None}]),
        ("multilabel, none", [{"a", None}]),
        ("graph", [[{"a", None}, "b", "c"]]),
        ("grids", [[[{"a", None}, "b", "c"], ["a", "b", "c"]]]),
    ],
)
def test_no_set_holds_none(name, y):
    case = CASES[name]
    with pytest.raises(ValueError, match="None"):
        case.make(C=1.0).fit(case.X, [*y, *case.y[1:]])
