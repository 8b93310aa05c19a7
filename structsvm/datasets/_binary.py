"""Simulators of points in two classes."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from numpy.typing import NDArray

from structsvm.datasets._draws import RandomState
from structsvm.parameters import COUNT, POSITIVE, Interval, check_arguments


def make_banana(
    n_samples: int = 1000, *, noise: float = 0.35, random_state: RandomState = None
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Draw points of two interlocking crescents.

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

    Examples
    --------
    >>> from structsvm.datasets import make_banana
    >>> X, y = make_banana(100, random_state=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((100, 2), [0, 1])
    """
    check_arguments("make_banana", locals(), n_samples=COUNT, noise=POSITIVE)
    rng = np.random.default_rng(random_state)
    y = rng.integers(0, 2, n_samples)
    t = rng.uniform(0.0, np.pi, n_samples)
    X = np.column_stack([np.where(y, np.cos(t), 1.0 - np.cos(t)), np.where(y, np.sin(t), 0.5 - np.sin(t))])
    return X + rng.normal(scale=noise, size=X.shape), y


def make_waveform(
    n_samples: int = 1000, *, random_state: RandomState = None
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Draw noisy mixtures of triangular waves (Breiman and others 1984), one pair of waves against the two others.

    With the waves ``h_m(k) = max(6 - |k - m|, 0)`` at m = 7, 15, 11, an example is ``u h_a + (1 - u) h_b``, u uniform
    in [0, 1], plus standard Gaussian noise at k = 1 .. 21. Each pair of waves has a third of the examples; class 1 is
    the pair of the first two.

    Parameters
    ----------
    n_samples : int
    random_state : int, numpy.random.Generator or None

    Returns
    -------
    X : ndarray of shape (n_samples, 21), float64
    y : ndarray of shape (n_samples,), int64

    Examples
    --------
    >>> from structsvm.datasets import make_waveform
    >>> X, y = make_waveform(100, random_state=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((100, 21), [0, 1])
    """
    check_arguments("make_waveform", locals(), n_samples=COUNT)
    rng = np.random.default_rng(random_state)
    k = np.arange(1, 22)
    waves = np.array([np.maximum(6 - np.abs(k - centre), 0) for centre in (7, 15, 11)], dtype=np.float64)
    pair = rng.integers(0, 3, n_samples)
    u = rng.uniform(size=(n_samples, 1))
    first, second = np.array([0, 0, 1])[pair], np.array([1, 2, 2])[pair]
    X = u * waves[first] + (1.0 - u) * waves[second] + rng.normal(size=(n_samples, 21))
    return X, (pair == 0).astype(np.int64)


def make_ill_conditioned(
    n_samples: int = 1000,
    n_features: int = 500,
    *,
    condition: float = 1e4,
    correlation: float = 0.0,
    flip: float = 0.1,
    dtype: type[np.float32 | np.float64] = np.float32,
    random_state: RandomState = None,
) -> tuple[NDArray[np.float32] | NDArray[np.float64], NDArray[np.int64]]:
    """Draw Gaussian rows with an ill-conditioned covariance, labelled by a hyperplane that depends on all directions.

    The features have the variances ``condition^(-k / (d - 1)) / d``, k = 0 .. d - 1, times a constant that makes
    |x|^2 about 1, shuffled; any two have the correlation `correlation`. Without correlation these variances are the
    eigenvalues of the covariance, whose condition number is then `condition`. The label is the sign of <w, x>, to which
    all features contribute equally (w_k is normal, divided by the feature's standard deviation); a share `flip` of the
    labels is reversed. The hyperplane depends on `n_features` and `condition` only, so two draws can serve as training
    and test set.

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

    Examples
    --------
    >>> from structsvm.datasets import make_ill_conditioned
    >>> X, y = make_ill_conditioned(100, 20, random_state=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((100, 20), [-1, 1])
    """
    check_arguments(
        "make_ill_conditioned",
        locals(),
        n_samples=COUNT,
        n_features=Interval(Integral, 2),
        condition=Interval(Real, 1.0),
        correlation=Interval(Real, 0.0, 1.0),
        flip=Interval(Real, 0.0, 0.5, closed="both"),
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
