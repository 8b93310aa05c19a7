"""Reliability diagrams, and the bins that they show."""

from types import SimpleNamespace

import matplotlib as mpl
import networkx as nx
import numpy as np
import pytest

from structsvm.metrics import calibration_scores
from structsvm.plotting import CalibrationDisplay, ConfusionDisplay
from structsvm.tasks import GraphLabeler

mpl.use("Agg")


@pytest.fixture(autouse=True)
def pyplot():
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def test_bins_of_equal_numbers():
    found = calibration_scores([0.9, 0.5, 0.8, 0.6], [True, False, True, True], n_bins=2)
    np.testing.assert_allclose(found.confidence, [0.55, 0.85])
    np.testing.assert_allclose(found.accuracy, [0.5, 1.0])
    assert found.counts.tolist() == [2, 2]
    assert found.error == pytest.approx((2 * 0.05 + 2 * 0.15) / 4)
    assert calibration_scores([0.3], [True]).counts.tolist() == [1]
    uneven = calibration_scores(np.linspace(0.0, 1.0, 7), np.ones(7), n_bins=3)
    assert uneven.counts.tolist() == [3, 2, 2] and uneven.error == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("p", "right", "n_bins", "message"),
    [
        ([0.5], [True, False], 15, r"one length, got shapes \(1,\) and \(2,\)"),
        ([], [], 15, "one length"),
        ([1.1], [True], 15, "probabilities, from 0 to 1"),
        ([np.nan], [True], 15, "probabilities, from 0 to 1"),
        ([0.5], [True], 0, "n_bins must be at least 1, got 0"),
    ],
)
def test_what_is_no_prediction(p, right, n_bins, message):
    with pytest.raises(ValueError, match=message):
        calibration_scores(p, right, n_bins=n_bins)


def test_curves_in_one_diagram():
    one = CalibrationDisplay.from_predictions([0.9, 0.5], [True, False], n_bins=2, name="one")
    other = CalibrationDisplay.from_predictions([0.6, 0.7], [True, False], n_bins=1, ax=one.ax_, color="red")
    assert other.ax_ is one.ax_ and other.figure_ is one.figure_ and other.line_.get_color() == "red"
    labels = [line.get_label() for line in one.ax_.lines]
    assert labels == ["as sure as right", "one: error 30.0 %", "error 15.0 %"]
    np.testing.assert_allclose(one.line_.get_xydata(), [[0.5, 0.0], [0.9, 1.0]])


def test_classes_and_tokens():
    p = np.array([[0.7, 0.3], [0.2, 0.8], [0.4, 0.6]])
    classes = SimpleNamespace(
        classes_=np.array(["a", "b"]), predict=lambda X: np.array(["a", "b", "b"]), predict_proba=lambda X: p
    )
    of_classes = CalibrationDisplay.from_estimator(classes, None, np.array(["a", "b", "a"]), n_bins=3)
    np.testing.assert_allclose(of_classes.line_.get_xydata(), [[0.6, 0.0], [0.7, 1.0], [0.8, 1.0]])
    tokens = SimpleNamespace(
        classes_=np.array(["a", "b"]), predict=lambda X: [["a"], ["b", "b"]], predict_marginals=lambda X: [p[:1], p[1:]]
    )
    of_tokens = CalibrationDisplay.from_estimator(tokens, None, [["a"], ["b", "a"]], n_bins=3, name="tokens")
    np.testing.assert_array_equal(of_tokens.line_.get_xydata(), of_classes.line_.get_xydata())
    assert of_tokens.line_.get_label().startswith("tokens: error")


def test_labels_of_graphs():
    rng = np.random.default_rng(0)
    grids = [rng.normal(size=(3, 4, 2)) for _ in range(4)]
    y = [grid[..., 0] > 0.0 for grid in grids]
    model = GraphLabeler(C=1.0, loss="log", random_state=0).fit(grids, y)
    sure = np.concatenate([own.reshape(-1, 2) for own in model.predict_marginals(grids)]).max(axis=1)
    right = np.concatenate([(a == b).ravel() for a, b in zip(model.predict(grids), y, strict=True)])
    wanted = CalibrationDisplay.from_predictions(sure, right, n_bins=3)
    for given in (y, [own.tolist() for own in y]):
        found = CalibrationDisplay.from_estimator(model, grids, given, n_bins=3)
        np.testing.assert_allclose(found.line_.get_xydata(), wanted.line_.get_xydata())
        assert ConfusionDisplay.from_estimator(model, grids, given).matrix.sum() == 48
    graphs = [nx.path_graph(4) for _ in range(4)]
    for graph, grid in zip(graphs, grids, strict=True):
        nx.set_node_attributes(graph, dict(enumerate(grid[0])), "features")
    named = [dict(enumerate(own[0].tolist())) for own in y]
    del named[0][2]
    model = GraphLabeler(C=1.0, loss="log", random_state=0).fit(graphs, named)
    assert CalibrationDisplay.from_estimator(model, graphs, named, n_bins=3).scores.counts.sum() == 15
    found = ConfusionDisplay.from_estimator(model, graphs, named, labels=[False, True])
    assert found.matrix.sum() == 15 and found.matrix.trace() == round(15 * model.score(graphs, named))


def test_confusions_of_classes():
    found = ConfusionDisplay.from_predictions(["a", "b", "b"], np.array(["a", "a", "b"]))
    assert found.labels == ["b", "a"] and found.matrix.tolist() == [[1, 1], [0, 1]]
    assert ConfusionDisplay.from_predictions([0, 1], [1, 1], labels=[0, 1]).matrix.tolist() == [[0, 1], [0, 1]]
