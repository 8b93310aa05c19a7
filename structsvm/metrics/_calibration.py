"""Whether predictions are right as often as their probabilities say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.features.inputs.masks import check_no_masks


@dataclass(frozen=True)
class CalibrationScores:
    """Predictions in bins of equal numbers, by their probability.

    Attributes
    ----------
    error : float
        Expected calibration error: the mean over predictions of the distance between `confidence` and `accuracy` in
        their bin.
    confidence, accuracy : ndarray of shape (n_bins,), float64
        Mean probability of the predictions of a bin, and the share of them that is right.
    counts : ndarray of shape (n_bins,), int64

    Examples
    --------
    >>> from structsvm.metrics import calibration_scores
    >>> calibration_scores([0.2, 0.9], [False, True], n_bins=2).accuracy
    array([0., 1.])
    """

    error: float
    confidence: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    counts: NDArray[np.int64]


def calibration_scores(confidence: ArrayLike, right: ArrayLike, *, n_bins: int = 15) -> CalibrationScores:
    """Compare probabilities of predictions with how often these are right.

    Parameters
    ----------
    confidence : array of shape (n_predictions,)
        The probability that each prediction was given, of a class or of a token's label.
    right : bool array of shape (n_predictions,)
    n_bins : int, default=15
        Fewer if there are fewer predictions.

    Returns
    -------
    CalibrationScores

    Raises
    ------
    ValueError
        There are no predictions, the shapes differ, or a probability is not in [0, 1].

    Examples
    --------
    >>> from structsvm.metrics import calibration_scores
    >>> round(calibration_scores([0.5, 0.5, 0.9, 0.9], [True, False, True, True], n_bins=2).error, 3)
    0.05
    """
    for name, values in (("confidence", confidence), ("right", right)):
        check_no_masks(values, name)
    p, hits = np.asarray(confidence, dtype=np.float64), np.asarray(right, dtype=np.float64)
    if p.ndim != 1 or p.shape != hits.shape or len(p) == 0:
        raise ValueError(f"confidence and right must be arrays of one length, got shapes {p.shape} and {hits.shape}")
    if not ((p >= 0.0) & (p <= 1.0 + 1e-9)).all():
        raise ValueError("confidence must hold probabilities, from 0 to 1")
    if n_bins < 1:
        raise ValueError(f"n_bins must be at least 1, got {n_bins!r}")
    bins = np.array_split(np.argsort(p, kind="stable"), min(n_bins, len(p)))
    counts = np.array([len(ids) for ids in bins])
    means, shares = (np.array([values[ids].mean() for ids in bins]) for values in (p, hits))
    return CalibrationScores(float(counts @ np.abs(means - shares)) / len(p), means, shares, counts)
