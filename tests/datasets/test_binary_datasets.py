"""Data of two classes: the real files where STRUCTSVM_DATA has them, and the simulators."""

import os

import numpy as np
import pytest

from structsvm import datasets
from structsvm.datasets import DatasetUnavailableError

real_data = pytest.mark.skipif("STRUCTSVM_DATA" not in os.environ, reason="STRUCTSVM_DATA does not name a data folder")


@real_data
@pytest.mark.parametrize(
    ("name", "shapes", "positive"),
    [("adult", ((32561, 123), (16281, 123)), (7841, 3846)), ("w8a", ((40561, 300), (9188, 300)), (1207, 272))],
)
def test_files(name, shapes, positive):
    data = getattr(datasets, f"fetch_{name}")()
    assert (data.X_train.shape, data.X_test.shape) == shapes
    assert data.X_train.dtype == np.float32 and data.X_train.format == "csr" and set(data.X_train.data) == {1.0}
    assert (np.sum(data.y_train == 1), np.sum(data.y_test == 1)) == positive
    assert set(data.y_train) == set(data.y_test) == {-1, 1}


def test_files_that_are_not_there(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pooch", None)
    for fetch in (datasets.fetch_adult, datasets.fetch_w8a):
        with pytest.raises(DatasetUnavailableError, match="linear_"):
            fetch(tmp_path)


def test_crescents():
    """About a tenth of the points are nearer to the other crescent; without noise none is."""
    t = np.linspace(0.0, np.pi, 500)
    arcs = [np.column_stack([1.0 - np.cos(t), 0.5 - np.sin(t)]), np.column_stack([np.cos(t), np.sin(t)])]

    def share_wrong(X, y):
        distance = np.stack([((X[:, None] - arc[None]) ** 2).sum(axis=2).min(axis=1) for arc in arcs])
        return np.mean(distance.argmin(axis=0) != y)

    X, y = datasets.make_banana(2000, random_state=0)
    assert X.shape == (2000, 2) and 0.45 < y.mean() < 0.55
    assert 0.05 < share_wrong(X, y) < 0.15
    assert share_wrong(*datasets.make_banana(500, noise=1e-6, random_state=0)) == 0.0
    np.testing.assert_array_equal(X, datasets.make_banana(2000, random_state=0)[0])


def test_waveform():
    """The mean of class 1 is that of its two waves."""
    X, y = datasets.make_waveform(6000, random_state=0)
    k = np.arange(1, 22)
    waves = [np.maximum(6 - np.abs(k - centre), 0) for centre in (7, 15, 11)]
    assert X.shape == (6000, 21) and y.mean() == pytest.approx(1 / 3, abs=0.02)
    np.testing.assert_allclose(X[y == 1].mean(axis=0), (waves[0] + waves[1]) / 2, atol=0.12)
    np.testing.assert_allclose(X[y == 0].mean(axis=0), (waves[0] + waves[1] + 2 * waves[2]) / 4, atol=0.12)


def test_ill_conditioned():
    X, y = datasets.make_ill_conditioned(20000, 10, condition=1e3, dtype=np.float64, random_state=1)
    spectrum = np.sort(np.linalg.eigvalsh(np.cov(X.T)))[::-1]
    wanted = 1e3 ** (-np.arange(10) / 9)
    np.testing.assert_allclose(spectrum, wanted / wanted.sum(), rtol=0.1)
    assert np.mean((X**2).sum(axis=1)) == pytest.approx(1.0, rel=0.05)
    # Two draws share their hyperplane; a share of the labels is turned round.
    other, truth = datasets.make_ill_conditioned(5000, 10, condition=1e3, flip=0.0, dtype=np.float64, random_state=2)
    w = np.linalg.lstsq(X, y, rcond=None)[0]
    assert np.mean(np.sign(other @ w) == truth) > 0.97
    assert 0.85 < np.mean(np.sign(X @ w) == y) < 0.93
    correlated, _ = datasets.make_ill_conditioned(20000, 10, correlation=0.5, random_state=1)
    off = np.corrcoef(correlated.T)[np.triu_indices(10, 1)]
    np.testing.assert_allclose(off, 0.5, atol=0.05)
    assert correlated.dtype == np.float32


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("banana", {"n_samples": 0}, "n_samples"),
        ("banana", {"noise": -1.0}, "noise"),
        ("waveform", {"n_samples": 0}, "n_samples"),
        ("ill_conditioned", {"n_features": 1}, "n_features"),
        ("ill_conditioned", {"condition": 0.5}, "condition"),
        ("ill_conditioned", {"correlation": 1.0}, "correlation"),
        ("ill_conditioned", {"flip": 0.9}, "flip"),
    ],
)
def test_bad_parameters_are_named(name, params, message):
    with pytest.raises(ValueError, match=f"The '{message}' parameter of make_{name} must be"):
        getattr(datasets, f"make_{name}")(**params)
