"""Concatenated ranges of rows: the layout of sequences, tokens and strings; and work on many rows, in pieces.

Within a call numpy hears no signal: what may take longer than Ctrl-C may wait is done in `pieces`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from structsvm.arrays import Integers, Scalar

PIECE = 1 << 20  # numbers: some milliseconds


def pieces(n: int, width: int = 1) -> Iterator[slice]:
    """Slices of n rows of `width` numbers, some milliseconds of work each."""
    size = max(PIECE // max(width, 1), 1)
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def taken(array: NDArray[Scalar], index: Integers) -> NDArray[Scalar]:
    """The entries of a vector at an array of indices."""
    out = np.empty(len(index), dtype=array.dtype)
    for piece in pieces(len(index)):
        out[piece] = array[index[piece]]
    return out


def repeated(row: NDArray[Scalar], n: int) -> NDArray[Scalar]:
    """A row n times, as one vector."""
    out = np.empty((n, len(row)), dtype=row.dtype)
    for piece in pieces(n, len(row)):
        out[piece] = row
    return out.ravel()


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
    index, n = index.astype(np.int64, casting="same_kind"), len(offsets) - 1
    if index.size and not -n <= index.min() <= index.max() < n:
        raise IndexError(f"indices {index.min()}..{index.max()} are out of bounds for {n}")
    index[index < 0] += n
    starts = offsets[index]
    lengths = offsets[index + 1] - starts
    new = np.zeros(len(index) + 1, dtype=np.int64)
    np.cumsum(lengths, out=new[1:])
    rows, shift, first = np.empty(new[-1], dtype=np.int64), starts - new[:-1], 0
    while first < len(index):
        last = max(int(np.searchsorted(new, new[first] + PIECE, side="right")) - 1, first + 1)
        a, b = new[first], new[last]
        np.add(np.arange(a, b), np.repeat(shift[first:last], lengths[first:last]), out=rows[a:b])
        first = last
    return new, rows
