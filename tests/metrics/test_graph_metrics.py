"""Scores of labelled nodes, against scikit-learn's."""

import numpy as np
import pytest
from sklearn.metrics import jaccard_score
from sklearn.model_selection import cross_val_score

from structsvm import AdviceWarning
from structsvm.datasets import make_noisy_grids
from structsvm.metrics import graph_scores, mean_jaccard, mean_jaccard_scorer, node_accuracy, node_accuracy_scorer
from structsvm.tasks import GraphLabeler


def test_against_scikit_learn():
    rng = np.random.default_rng(0)
    true = [rng.integers(0, 4, (5, 6)), rng.integers(0, 4, 20)]
    found = [np.where(rng.random(y.shape) < 0.3, rng.integers(0, 4, y.shape), y) for y in true]
    scores = graph_scores(true, found)
    a, b = (np.concatenate([y.ravel() for y in of]) for of in (true, found))
    assert scores.accuracy == pytest.approx((a == b).mean()) and scores.hamming == (a != b).sum()
    wanted = jaccard_score(a, b, average=None, labels=range(4))
    assert list(scores.jaccard) == [0, 1, 2, 3]
    np.testing.assert_allclose(list(scores.jaccard.values()), wanted)
    assert scores.mean_jaccard == mean_jaccard(true, found) == pytest.approx(wanted.mean())
    assert (scores.n_graphs, scores.n_nodes) == (2, 50) and "2 graphs, 50 nodes" in scores.report()


def test_nodes_that_are_not_known_do_not_count():
    assert node_accuracy([["a", None, "b"]], [["a", "a", "a"]]) == 0.5
    assert node_accuracy([{"u": 1}], [{"u": 1, "v": 2}]) == 1.0
    assert graph_scores([["a", 1]], [["a", "a"]]).jaccard == {"a": 0.5, 1: 0.0}


def test_marks_of_unknown_labels():
    true, found = [np.array([0, -1, 1]), np.array([[-1, 0]])], [np.array([0, 1, 0]), np.array([[1, 0]])]
    scores = graph_scores(true, found, unknown=-1)
    assert (scores.n_nodes, scores.hamming, scores.jaccard) == (3, 1, {0: 2 / 3, 1: 0.0})
    with pytest.warns(AdviceWarning, match="y is -1 at 2 nodes that do not count"):
        assert graph_scores(true, found) == scores
    with pytest.warns(AdviceWarning, match="y is -100 at 1 nodes that do not count"):
        assert node_accuracy([[-100, 1]], [[1, 1]]) == 1.0
    assert node_accuracy([["?", "a"]], [["a", "a"]], unknown="?") == 1.0
    for y in ([-1, 1], [-1, 1, -2], [-1, "a", "b"]):  # whatever the other labels are
        assert graph_scores([y], [[y[1]] * len(y)], unknown=-1).n_nodes == len(y) - 1
        assert graph_scores([y], [[y[1]] * len(y)], unknown=None).n_nodes == len(y)
    # A label that the model has.
    assert graph_scores([[-1, 1, 0]], [[-1, 1, 0]]).n_nodes == graph_scores([[-1, 1, 0]], [[1] * 3], [-1]).n_nodes == 3
    rng = np.random.default_rng(0)
    X = [(rng.normal(size=(5, 2)), [(0, 1), (1, 2)]) for _ in range(30)]
    y = [np.where(np.arange(5) == 4, -1, nodes[:, 0] > 0) for nodes, _ in X]
    model = GraphLabeler(C=1.0, random_state=0, unknown=-1).fit(X, y)
    assert model.score(X, y) == node_accuracy_scorer(model, X, y) > 0.9
    assert set(graph_scores(y, model.predict(X), unknown=-1).jaccard) == {0, 1}
    assert mean_jaccard_scorer(model, X, y) > 0.9
    one = [np.where(labels == 0, -1, labels) for labels in y]  # one label beside -1
    assert model.score(X, one) == node_accuracy_scorer(model, X, one)


@pytest.mark.parametrize(
    ("true", "found", "message"),
    [
        ([[1]], [], "1 graphs and y_pred has 0"),
        ([[1], [1, 2]], [[1], [1]], "graph 1: y_true has 2 labels and y_pred has 1"),
        ([{"u": 1}], [{"v": 1}], "graph 0: y_pred has no label for node 'u'"),
        ([[None]], [[1]], "no nodes to score"),
    ],
)
def test_refusals(true, found, message):
    with pytest.raises(ValueError, match=message):
        graph_scores(true, found)
    with pytest.raises(TypeError, match="labels of a graph"):
        graph_scores(["ab"], ["ab"])


def test_scorers():
    X, y = make_noisy_grids(6, size=8, scale=1.0, random_state=0)
    model = GraphLabeler(C=0.1, max_iter=2, random_state=0)
    for scorer, metric in ((node_accuracy_scorer, node_accuracy), (mean_jaccard_scorer, mean_jaccard)):
        found = cross_val_score(model, X, y, scoring=scorer, cv=2)
        by_hand = metric(y[3:], model.fit(X[:3], y[:3]).predict(X[3:]))
        assert by_hand in found.tolist()
