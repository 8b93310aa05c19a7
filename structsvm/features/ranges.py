"""Concatenated ranges of rows: the layout of sequences, tokens and strings."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def take_ranges(offsets: NDArray[np.int64], chosen: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Offsets of the chosen ranges when concatenated, and their rows."""
    index = np.asarray(chosen)
    if index.ndim != 1:
        raise IndexError(f"expected a vector of indices or a mask, got {index.ndim} dimensions")
    if index.size == 0:
        index = np.zeros(0, dtype=np.int64)
    elif index.dtype == bool:
        if index.shape != (len(offsets) - 1,):
            raise IndexError(f"a mask of {index.size} entries for {len(offsets) - 1} sequences")
        index = np.flatnonzero(index)
    index = np.arange(len(offsets) - 1)[index.astype(np.int64, casting="same_kind")]
    lengths = np.diff(offsets)[index]
    new = np.zeros(len(index) + 1, dtype=np.int64)
    np.cumsum(lengths, out=new[1:])
    rows = np.arange(new[-1]) + np.repeat(offsets[:-1][index] - new[:-1], lengths)
    return new, rows
