"""Kernels of objects that are no rows of numbers, for every kernel classifier."""

import pickle

import numpy as np
import pytest
from kernel_kinds import KINDS, machine
from sklearn.model_selection import cross_val_score

from structsvm.tasks import LaRankClassifier
from structsvm.tasks.kernel.objects import are_objects

TEXTS = ["abab", "babb", "aaaa", "aab", "cdcd", "dcdc", "ccc", "ccdd"] * 6
LABELS = np.repeat([0, 1], 4).tolist() * 6


def shared(A, B):
    """Letters that two texts have in common, weighed by how often they occur."""
    counts = [np.array([[text.count(letter) for letter in "abcd"] for text in texts], dtype=float) for texts in (A, B)]
    return counts[0] @ counts[1].T


@pytest.mark.parametrize("kind", KINDS)
def test_texts(kind, tmp_path):
    model = machine(kind, kernel=shared).fit(TEXTS, LABELS)
    values = machine(kind, kernel="precomputed").fit(shared(TEXTS, TEXTS), LABELS)
    new = ["abba", "cccd", "ab"]
    np.testing.assert_array_equal(model.decision_function(new), values.decision_function(shared(new, TEXTS)))
    assert model.predict(new).tolist() == [0, 1, 0] and model.score(TEXTS, LABELS) == 1.0
    assert set(model.support_vectors_) <= set(TEXTS) and len(model.support_vectors_) == len(model.support_)
    assert pickle.loads(pickle.dumps(model)).predict(new).tolist() == [0, 1, 0]
    assert machine(kind, kernel=shared).fit(np.array(TEXTS, dtype=object), LABELS).predict(new).tolist() == [0, 1, 0]
    with pytest.raises(TypeError, match="function"):
        model.save(tmp_path / "m")
    assert cross_val_score(machine(kind, kernel=shared), TEXTS, LABELS, cv=3).mean() == 1.0


def test_objects_come_all_at_once():
    model = LaRankClassifier(C=1.0, kernel=shared, warm_start=True, random_state=0).fit(TEXTS, LABELS)
    for train in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match="no partial_fit, no warm_start"):
            train(TEXTS, LABELS)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (lambda A, _: [1.0] * len(A), r"must have shape \(48, 48\), got \(48,\); a function k of two objects"),
        (lambda A, B: [["x"] * len(B)] * len(A), "could not convert"),
        (lambda A, B: [[{}] * len(B)] * len(A), "returned no numbers"),
    ],
)
def test_kernels_that_are_none(kernel, message):
    with pytest.raises(ValueError, match=message):
        LaRankClassifier(C=1.0, kernel=kernel).fit(TEXTS, LABELS)


def test_objects_and_rows():
    assert all(map(are_objects, (TEXTS, [{"a": 1}], [[1, 2], [3]], [np.eye(2), np.eye(2)], [["a", "b"]], [object()])))
    assert not any(map(are_objects, ([[1, 2], [3, 4]], np.eye(2), np.eye(2).tolist(), [], [[1.0, "x"], [1.0, 2.0]])))
