"""Feature indices by descending frequency, so that the weights used most often are close together in memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from structsvm.features._tokens import descending_order
from structsvm.features.tokens import MAX_FEATURES


def number_features(
    counts: NDArray[np.int64], min_count: int, firsts: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Assign indices to the features that occur `min_count` times or more.

    Parameters
    ----------
    counts : int64 array of shape (n,)
        Number of occurrences of each feature.
    min_count : int
    firsts : int64 array of shape (n,), optional
        Position of each feature's first occurrence, which breaks ties of counts. None: features are in that order.

    Returns
    -------
    kept : int64 array of shape (n_features,)
        ``kept[k]`` is the feature with index k.
    index_of : int32 array of shape (n,)
        The inverse: the index of each feature, -1 for those that are dropped.
    """
    kept = np.flatnonzero(counts >= min_count)
    kept = kept[descending_order(counts[kept], None if firsts is None else firsts[kept])]
    if len(kept) > MAX_FEATURES:
        raise OverflowError("more than 2**31 - 1 features")
    index_of = np.full(len(counts), -1, dtype=np.int32)
    index_of[kept] = np.arange(len(kept), dtype=np.int32)
    return kept, index_of
