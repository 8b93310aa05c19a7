"""Data of two classes: loaders, and simulators of rows of numbers."""

from __future__ import annotations

import io

import numpy as np

from structsvm.datasets._classes import LabelledRows
from structsvm.datasets._fetch import fetch
from structsvm.features.svmlight import read_svmlight

__all__ = ["fetch_adult", "fetch_w8a", "make_banana", "make_ill_conditioned", "make_waveform"]


def _sparse_rows(name, data_home, train, test, n_features):
    """Training and test part in svmlight's form, as CSR matrices of so many columns."""
    from scipy.sparse import csr_array

    files = fetch(name, data_home)

    def part(file):
        X, y = read_svmlight(io.BytesIO(files[file][1]))
        return csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features)), y

    (X, y), (X_test, y_test) = part(train), part(test)
    return LabelledRows(X, y, X_test, y_test, files[train][0])


def fetch_adult(data_home=None) -> LabelledRows:
    """Incomes of adults in a census (a9a): 32,561 and 16,281 examples of 123 binary features; 24 % have y = 1.

    Parameters
    ----------
    data_home : path-like, optional
        The data folder (``linear_adult/``); see :func:`fetch_conll2000`.

    Returns
    -------
    LabelledRows
        X are CSR matrices; y is 1 or -1.

    Raises
    ------
    DatasetUnavailableError
        The file is missing, or it is not the right one.

    References
    ----------
    B. Becker and R. Kohavi, Adult, 1996; J. Platt, Sequential Minimal Optimization, 1998.
    """
    return _sparse_rows("adult", data_home, "a9a.train.svm.gz", "a9a.test.svm.gz", 123)


def fetch_w8a(data_home=None) -> LabelledRows:
    """Categories of web pages (w8a): 40,561 and 9188 examples of 300 binary features; 3 % have y = 1.

    Parameters
    ----------
    data_home : path-like, optional
        The data folder (``linear_w8a/``); see :func:`fetch_conll2000`.

    Returns
    -------
    LabelledRows
        X are CSR matrices; y is 1 or -1.

    Raises
    ------
    DatasetUnavailableError
        The file is missing, or it is not the right one.

    References
    ----------
    J. Platt, Fast Training of Support Vector Machines using Sequential Minimal Optimization, 1999.
    """
    return _sparse_rows("w8a", data_home, "w8a.train.svm.gz", "w8a.test.svm.gz", 300)


# ---- simulators ---------------------------------------------------------------------------------


def _positive(name, value):
    if not value > 0.0 or not np.isfinite(value):
        raise ValueError(f"{name} must be a positive number, got {value!r}")


def _count(name, value, least=1):
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value!r}")


def make_banana(n_samples=1000, *, noise=0.35, random_state=None):
    """Draw points of two crescents that embrace each other.

    Class 1 has ``(cos t, sin t)``, class 0 ``(1 - cos t, 1/2 - sin t)``, t uniform in [0, pi], with Gaussian noise.

    Parameters
    ----------
    n_samples : int
    noise : float
        Standard deviation in both coordinates; 0.35 leaves about a tenth of the points on the wrong side.
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    X : ndarray of shape (n_samples, 2), float64
    y : ndarray of shape (n_samples,), int64
    """
    _count("n_samples", n_samples)
    _positive("noise", noise)
    rng = np.random.default_rng(random_state)
    y = rng.integers(0, 2, n_samples)
    t = rng.uniform(0.0, np.pi, n_samples)
    X = np.column_stack([np.where(y, np.cos(t), 1.0 - np.cos(t)), np.where(y, np.sin(t), 0.5 - np.sin(t))])
    return X + rng.normal(scale=noise, size=X.shape), y


def make_waveform(n_samples=1000, *, random_state=None):
    """Draw noisy mixtures of triangular waves (Breiman and others 1984), one kind against the two others.

    With the waves ``h_m(k) = max(6 - |k - m|, 0)`` at m = 7, 15, 11 an example is ``u h_a + (1 - u) h_b``, u uniform in
    [0, 1], plus standard Gaussian noise at k = 1 .. 21. Each pair of waves has a third of the examples; class 1 is the
    pair of the first two.

    Parameters
    ----------
    n_samples : int
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    X : ndarray of shape (n_samples, 21), float64
    y : ndarray of shape (n_samples,), int64
    """
    _count("n_samples", n_samples)
    rng = np.random.default_rng(random_state)
    k = np.arange(1, 22)
    waves = np.array([np.maximum(6 - np.abs(k - centre), 0) for centre in (7, 15, 11)], dtype=np.float64)
    pair = rng.integers(0, 3, n_samples)
    u = rng.uniform(size=(n_samples, 1))
    first, second = np.array([0, 0, 1])[pair], np.array([1, 2, 2])[pair]
    X = u * waves[first] + (1.0 - u) * waves[second] + rng.normal(size=(n_samples, 21))
    return X, (pair == 0).astype(np.int64)


def make_ill_conditioned(
    n_samples=1000, n_features=500, *, condition=1e4, correlation=0.0, flip=0.1, dtype=np.float32, random_state=None
):
    """Draw Gaussian rows with an ill-conditioned covariance, and labels by a hyperplane that all directions bend.

    The features have the variances ``condition^(-k / (d - 1)) / d``, k = 0 .. d - 1, times a constant that makes
    |x|^2 about 1, shuffled; any two have the correlation `correlation`. So the covariance without correlation has
    just these eigenvalues, from the first to the last a factor of `condition`. The label is the sign of <w, x>, where
    each feature contributes alike (w_k is normal over the feature's standard deviation), with a share `flip` turned
    round. The hyperplane is that of ``n_features``, `condition` and the seed 0: two draws are training and test set.

    Parameters
    ----------
    n_samples, n_features : int
    condition : float
        Largest over smallest variance, at least 1.
    correlation : float
        From 0 to below 1.
    flip : float
        From 0 to 0.5.
    dtype : float32 or float64
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,), int64
        1 or -1.
    """
    _count("n_samples", n_samples)
    _count("n_features", n_features, 2)
    if not 1.0 <= condition < np.inf or not 0.0 <= correlation < 1.0 or not 0.0 <= flip <= 0.5:
        raise ValueError(
            "condition must be at least 1, correlation in [0, 1) and flip in [0, 0.5], "
            f"got {condition!r}, {correlation!r} and {flip!r}"
        )
    fixed = np.random.default_rng(0)
    variance = float(condition) ** (-np.arange(n_features) / (n_features - 1))
    scale = np.sqrt(fixed.permutation(variance / variance.sum()))
    w = (fixed.normal(size=n_features) / scale).astype(dtype)
    rng = np.random.default_rng(random_state)
    X = rng.standard_normal((n_samples, n_features), dtype=dtype)
    if correlation > 0.0:
        common = rng.standard_normal((n_samples, 1), dtype=dtype)
        X *= dtype(np.sqrt(1.0 - correlation))
        X += dtype(np.sqrt(correlation)) * common
    X *= scale.astype(dtype)
    y = np.where(X @ w > 0.0, 1, -1)
    y[rng.uniform(size=n_samples) < flip] *= -1
    return X, y
