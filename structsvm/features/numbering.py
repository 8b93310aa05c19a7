"""Features numbered by falling frequency, so that the weights which are read most lie close together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from structsvm.features._tokens import descending_order
from structsvm.features.tokens import MAX_FEATURES

__all__ = ["number_features"]


def number_features(
    counts: NDArray[np.int64], min_count: int, firsts: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Number the features that occur `min_count` times or more.

    Parameters
    ----------
    counts : int64 array of shape (n,)
        How often each feature occurs.
    min_count : int
    firsts : int64 array of shape (n,), optional
        Where each feature occurs first, which decides between equal counts. None: features stand in that order.

    Returns
    -------
    kept : int64 array of shape (n_features,)
        ``kept[number]`` is the feature of that number.
    numbers : int32 array of shape (n,)
        The inverse: the number of each feature, -1 for those that are dropped.
    """
    kept = np.flatnonzero(counts >= min_count)
    kept = kept[descending_order(counts[kept], None if firsts is None else firsts[kept])]
    if len(kept) > MAX_FEATURES:
        raise OverflowError("more than 2**31 - 1 features")
    numbers = np.full(len(counts), -1, dtype=np.int32)
    numbers[kept] = np.arange(len(kept), dtype=np.int32)
    return kept, numbers
