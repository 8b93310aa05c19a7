"""Kernels of objects that are no rows of numbers, for every estimator with a kernel."""

import pickle

import numpy as np
import pytest
from kernel_kinds import KINDS, WITH_FUNCTIONS, machine
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import cross_val_score

from structsvm.kernel.objects import are_objects
from structsvm.tasks import LaRankClassifier, TaxonomyClassifier

TEXTS = ["abab", "babb", "aaaa", "aab", "cdcd", "dcdc", "ccc", "ccdd"] * 6
LABELS = np.repeat([0, 1], 4).tolist() * 6


def shared(A, B):
    """Letters that two texts have in common, weighed by how often they occur."""
    counts = [np.array([[text.count(letter) for letter in "abcd"] for text in texts], dtype=float) for texts in (A, B)]
    return counts[0] @ counts[1].T


def of_rows(texts):
    """The same kernel of rows of numbers, the indices of these texts."""
    return lambda A, B: shared(*([texts[k] for k in rows[:, 0].astype(int).tolist()] for rows in (A, B)))


def test_all_estimators_with_a_kernel_are_tried():
    assert set(WITH_FUNCTIONS) == {*KINDS, TaxonomyClassifier}


@pytest.mark.parametrize("kind", WITH_FUNCTIONS)
def test_texts(kind, tmp_path):
    model = machine(kind, kernel=shared).fit(TEXTS, LABELS)
    new = ["abba", "cccd", "ab"]
    rows = np.arange(len(TEXTS) + len(new), dtype=float)[:, None]
    same = machine(kind, kernel=of_rows([*TEXTS, *new])).fit(rows[: len(TEXTS)], LABELS)
    np.testing.assert_allclose(model.decision_function(new), same.decision_function(rows[len(TEXTS) :]), rtol=1e-6)
    assert model.predict(new).tolist() == [0, 1, 0] and model.score(TEXTS, LABELS) == 1.0
    assert set(model.support_vectors_) <= set(TEXTS) and len(model.support_vectors_) == len(model.support_)
    assert pickle.loads(pickle.dumps(model)).predict(new).tolist() == [0, 1, 0]
    assert machine(kind, kernel=shared).fit(np.array(TEXTS, dtype=object), LABELS).predict(new).tolist() == [0, 1, 0]
    with pytest.raises(TypeError, match="function"):
        model.save(tmp_path / "m")
    assert cross_val_score(machine(kind, kernel=shared), TEXTS, LABELS, cv=3).mean() == 1.0


def test_texts_in_a_taxonomy():
    """Each node is found, probabilities, best labels and levels too, with C chosen; and a vectorizer comes first."""
    labels = [
        name for _ in range(6) for name in ("x > a", "x > a", "x > b", "x > b", "y > c", "y > d", "y > e", "y > c")
    ]
    goods = TaxonomyClassifier(" > ", kernel=shared, random_state=0).fit(TEXTS, labels)
    assert goods.C_ > 0.0 and goods.predict(["aaaaa", "abab"]).tolist() == ["x > b", "x > a"]
    proba = goods.predict_proba(["aaaaa", "cccc"])
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert (
        goods.predict_levels(["aaaaa"]).tolist() == [["x", "b"]]
        and goods.predict_kbest(["cccc"], 1)[0][0][0] == "y > e"
    )
    assert goods.node_scores(["aaaaa"]).shape == (1, 8)
    words = TaxonomyClassifier(" > ", kernel=lambda A, B: A @ B.T, vectorizer=CountVectorizer(analyzer="char"))
    assert words.fit(TEXTS, labels).predict(["aaaaa"]).tolist() == ["x > b"]
    with pytest.raises(ValueError, match=r"texts need a vectorizer: .* or a function of two"):
        TaxonomyClassifier(" > ", kernel="linear").fit(TEXTS, labels)


@pytest.mark.parametrize("kind", [LaRankClassifier, TaxonomyClassifier])
def test_objects_come_all_at_once(kind):
    model = machine(kind, kernel=shared, warm_start=True).fit(TEXTS, LABELS)
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
@pytest.mark.parametrize("kind", WITH_FUNCTIONS)
def test_kernels_that_are_none(kind, kernel, message):
    with pytest.raises(ValueError, match=message):
        machine(kind, kernel=kernel).fit(TEXTS, LABELS)


def test_objects_and_rows():
    assert all(map(are_objects, (TEXTS, [{"a": 1}], [[1, 2], [3]], [np.eye(2), np.eye(2)], [["a", "b"]], [object()])))
    assert not any(map(are_objects, ([[1, 2], [3, 4]], np.eye(2), np.eye(2).tolist(), [], [[1.0, "x"], [1.0, 2.0]])))
