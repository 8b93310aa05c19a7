"""Labelled graphs: the real files where STRUCTSVM_DATA has them, and the simulators."""

import os

import numpy as np
import pytest

from structsvm import datasets

real_data = pytest.mark.skipif("STRUCTSVM_DATA" not in os.environ, reason="STRUCTSVM_DATA does not name a data folder")


@real_data
def test_horses():
    data, grids = datasets.fetch_graph_horses(), datasets.fetch_grid_horses64()
    assert repr(data) == "LabelledGraphs(n_train=200, n_test=128)" == repr(grids)
    for X, y, sizes, n_nodes, n_edges, horse, best in (
        (data.X_train, data.y_train, data.sizes_train, 24567, 64789, 24.1, 96.2),
        (data.X_test, data.y_test, data.sizes_test, 15916, 41968, 23.4, 96.4),
    ):
        nodes, edges, marks = (np.concatenate(part) for part in zip(*X, strict=True))
        assert nodes.shape == (n_nodes, 19) and edges.shape == (n_edges, 2) and marks.shape == (n_edges, 5)
        labels, of = np.concatenate(y), np.concatenate(sizes)
        assert round(100.0 * labels.mean(), 1) == horse
        np.testing.assert_array_equal(labels, 2 * of[:, 1] > of[:, 0])
        assert round(100.0 * np.maximum(of[:, 1], of[:, 0] - of[:, 1]).sum() / of[:, 0].sum(), 1) == best
        assert all((e < len(x)).all() and (e[:, 0] < e[:, 1]).all() for x, e, _ in X)
    for X, y, horse in ((grids.X_train, grids.y_train, 25.7), (grids.X_test, grids.y_test, 25.0)):
        assert X[0].shape == (64, 64, 3) and 0.0 <= np.min(X) < 0.01 and 0.99 < np.max(X) <= 1.0
        assert y[0].shape == (64, 64) and round(100.0 * np.mean(y), 1) == horse


def test_snakes():
    X, y = datasets.make_snakes(20, length=6, size=5, random_state=0)
    steps = [(-1, 0), (0, 1), (1, 0), (0, -1)]
    for (nodes, edges, marks), labels in zip(X, y, strict=True):
        assert nodes.shape == (25, 45) and edges.shape == (40, 2) and marks.shape == (40, 20)
        colours, grid = nodes[:, 20:25].argmax(axis=1).reshape(5, 5), labels.reshape(5, 5)
        cells = [tuple(np.argwhere(grid == k)[0]) for k in range(1, 7)]
        assert (colours[grid == 0] == 4).all() and np.bincount(labels).tolist() == [19, 1, 1, 1, 1, 1, 1]
        for cell, after in zip(cells, [*cells[1:], None], strict=True):
            step = steps[colours[cell]]
            ahead = (cell[0] + step[0], cell[1] + step[1])
            assert ahead == after if after else ahead not in cells
        # A cell's window holds its neighbours' colours, zeros beyond the border; an edge those of its ends.
        table = np.eye(5)[np.pad(colours, 1, constant_values=4)]
        table[[0, -1]] = table[:, [0, -1]] = 0.0
        window = [table[r : r + 3, c : c + 3].reshape(-1) for r in range(5) for c in range(5)]
        np.testing.assert_array_equal(nodes, window)
        for (a, b), own in zip(edges.tolist(), marks.reshape(-1, 4, 5), strict=True):
            down = int(b - a == 5)
            assert b - a in (1, 5) and not own[2 - 2 * down : 4 - 2 * down].any()
            assert own[2 * down : 2 * down + 2].argmax(axis=1).tolist() == [colours.flat[a], colours.flat[b]]


def test_noisy_grids():
    X, y = datasets.make_noisy_grids(30, size=16, n_labels=3, noise=0.5, random_state=0)
    features, labels = np.array(X), np.array(y)
    assert features.shape == (30, 16, 16, 3) and labels.shape == (30, 16, 16)
    np.testing.assert_allclose([features[labels == k].mean(axis=0) for k in range(3)], np.eye(3), atol=0.05)
    assert (features - np.eye(3)[labels]).std() == pytest.approx(0.5, rel=0.02)
    assert (labels[:, 1:] == labels[:, :-1]).mean() > 0.8
    _, board = datasets.make_noisy_grids(1, size=7, n_labels=3, pattern="checkerboard", scale=2.0)
    assert board[0][0].tolist() == [0, 0, 1, 1, 2, 2, 0] and board[0][:, 0].tolist() == [0, 0, 1, 1, 2, 2, 0]
    for ours, again in zip((X, y), datasets.make_noisy_grids(30, size=16, n_labels=3, noise=0.5, random_state=0),
                           strict=True):  # fmt: skip
        np.testing.assert_array_equal(ours, again)


@pytest.mark.parametrize(
    ("maker", "params"),
    [("make_snakes", {"n_snakes": 0}), ("make_snakes", {"length": 1}), ("make_snakes", {"size": 3}),
     ("make_noisy_grids", {"n_grids": 0}), ("make_noisy_grids", {"size": 1}), ("make_noisy_grids", {"n_labels": 1}),
     ("make_noisy_grids", {"scale": 0.0}), ("make_noisy_grids", {"noise": -1.0})],
    ids=str,
)  # fmt: skip
def test_bad_parameters_are_named(maker, params):
    with pytest.raises(ValueError, match=f"The '{next(iter(params))}' parameter of {maker} must be"):
        getattr(datasets, maker)(**params)
    with pytest.raises(ValueError, match="too small for a snake of length 9"):
        datasets.make_snakes(1, length=9, size=5)
    with pytest.raises(ValueError, match="The 'pattern' parameter of make_noisy_grids must be"):
        datasets.make_noisy_grids(pattern="stripes")
