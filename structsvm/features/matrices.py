"""Tokens that are numeric vectors: the accepted matrices, how they are split and encoded."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from structsvm.features._tokens import TokenBuffer
from structsvm.features.ranges import pieces, repeated
from structsvm.features.tokens import MAX_FEATURES, Tokens

if TYPE_CHECKING:
    from scipy.sparse import sparray, spmatrix

# Columns are brought to units down to deviations of 1e-30. Without units, squares are to be numbers of float32.
LEAST_SIZE, LEAST_OF_SPARSE = 1e-29, 1e-19


def is_sparse(x: object) -> TypeGuard[sparray | spmatrix]:
    """Whether x is a scipy sparse matrix or array, by its attributes (scipy is slow to import)."""
    return hasattr(x, "tocsr") or all(hasattr(x, a) for a in ("indptr", "indices", "data"))


def is_numeric(sequence: Any) -> bool:
    """Whether the tokens of a sequence are numeric vectors."""
    if isinstance(sequence, np.ndarray):
        return sequence.dtype.kind not in "OUS"
    if isinstance(sequence, (list, tuple)):
        return bool(sequence) and isinstance(sequence[0], np.ndarray) and is_numeric(sequence[0])
    return is_sparse(sequence)


def encode_rows(sequences: Iterable[Any], width: int | None = None) -> Tokens:
    """Sequences of rows of `width` columns (None: as many as the first has); feature j is column j.

    Raises ValueError for the first data, of no width yet, if all of their values are below `LEAST_SIZE`, and not 0.
    """
    buffer, lost, kept = TokenBuffer(), False, width is not None
    whole: list[NDArray[np.float32]] = []  # while there are no zeros: the rows themselves are the values
    for s, sequence in enumerate(sequences):
        if isinstance(sequence, (list, tuple)) and not sequence:  # its width is unknown
            sequence = np.zeros((0, width or 0))
        (_, d), rows, add = _numeric_rows(sequence, s)
        if width is None:
            width = d
        if d != width:
            raise ValueError(f"sequence {s} has {d} columns, expected {width}")
        if not kept:
            given = sequence.tocsr() if hasattr(sequence, "tocsr") else sequence
            given = given.data if is_sparse(given) else np.asarray(given)
            kept = bool((np.abs(_float32(given)) >= LEAST_SIZE).any())
            lost = lost or (not kept and bool(given.any()))
        if buffer.n_sequences == 0 and rows is not None and rows.size and rows.all() and np.isfinite(rows).all():
            whole.append(rows)
            continue
        for before in whole:
            buffer.add_dense(before)
        whole.clear()
        add(buffer)
    if lost and not kept:
        raise ValueError("the values of X underflow float32; scale the features up")
    if width is not None and width > MAX_FEATURES:
        raise OverflowError("more than 2**31 - 1 features")
    return of_whole_rows(whole) if whole else Tokens(*buffer.finish(), width or 0)


def of_whole_rows(sequences: list[NDArray[np.float32]]) -> Tokens:
    """Sequences of rows without a zero."""
    n, d = sum(map(len, sequences)), sequences[0].shape[1]
    values = np.empty((n, d), dtype=np.float32)
    offsets = np.cumsum([0, *map(len, sequences)], dtype=np.int64)
    for rows, start in zip(sequences, offsets.tolist(), strict=False):
        for piece in pieces(len(rows), d):
            values[start + piece.start : start + piece.stop] = rows[piece]
    indices = repeated(np.arange(d, dtype=np.int32), n)
    ones = all(bool((values[piece] == 1.0).all()) for piece in pieces(n, d))
    return Tokens(offsets, np.arange(0, n * d + 1, d, dtype=np.int64), indices, None if ones else values.ravel(), d)


def _numeric_rows(sequence: Any, s: int) -> tuple[tuple[int, int], NDArray[np.float32] | None, Any]:
    """The shape of a sequence of rows, these if they are dense, and how to add them to a TokenBuffer."""
    if is_sparse(sequence):
        indptr, indices, values, shape = _csr_arrays(sequence)
        n, d = shape
        if len(indptr) != n + 1:
            raise ValueError(f"sequence {s}: a sparse matrix with a wrong indptr")
        return (n, d), None, lambda buffer: buffer.add_csr(indptr, indices, values, d, 0, n)
    try:
        rows = np.asarray(sequence)
    except ValueError:
        raise ValueError(f"sequence {s} has rows of different lengths") from None
    if rows.dtype.kind not in "fiub" or rows.ndim != 2:
        raise TypeError(
            f"sequence {s} must be a 2-D array of numbers, one row per token, got an array of "
            f"{rows.dtype} with {rows.ndim} dimensions"
        )
    narrow = _float32(rows)
    return (rows.shape[0], rows.shape[1]), narrow, lambda buffer: buffer.add_dense(narrow)


def _float32(x: Any) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):  # infinite values are reported later, with their position
        return np.ascontiguousarray(x, dtype=np.float32)


def _csr_arrays(x: Any) -> tuple[Any, Any, Any, tuple[int, int]]:
    if getattr(x, "format", "csr") != "csr" and hasattr(x, "tocsr"):
        x = x.tocsr()
    if np.asarray(x.data).dtype.kind not in "fiub" or len(x.shape) != 2:
        raise TypeError("a sparse matrix must be 2-D with real numbers")
    indptr = np.ascontiguousarray(x.indptr, dtype=np.int64)
    indices = np.ascontiguousarray(x.indices, dtype=np.int64)
    return indptr, indices, _float32(x.data), (int(x.shape[0]), int(x.shape[1]))


def split_rows(x: Any, lengths: Any) -> Iterable[Any]:
    """The rows of one matrix, as one matrix per sequence."""
    sizes = np.asarray(lengths)
    if sizes.ndim != 1 or (sizes.size and sizes.dtype.kind not in "iu"):
        raise TypeError("lengths must be a list of int")
    sparse = is_sparse(x)
    if sparse and getattr(x, "format", "csr") != "csr":
        x = x.tocsr()
    n_rows = x.shape[0] if sparse else len(x)
    for s in np.flatnonzero(sizes < 0)[:1]:
        raise ValueError(f"lengths[{s}] is {sizes[s]}")
    if sizes.sum() != n_rows:
        raise ValueError(f"lengths add up to {sizes.sum()}, X has {n_rows} rows")
    ends = np.cumsum(sizes).tolist()
    if not sparse:
        x = np.asarray(x)
        return [x[a:b] for a, b in pairwise([0, *ends])]
    return [_Rows(x, a, b) for a, b in pairwise([0, *ends])]


class _Rows:
    """Rows begin:end of a CSR matrix, without copying its entries."""

    def __init__(self, x: Any, begin: int, end: int) -> None:
        if len(x.indptr) != x.shape[0] + 1:
            raise ValueError("a sparse matrix with a wrong indptr")
        first, last = int(x.indptr[begin]), int(x.indptr[end])
        if not 0 <= first <= last <= len(x.indices):
            raise ValueError("indptr of a sparse matrix must rise and stay in range")
        self.indptr = np.asarray(x.indptr[begin : end + 1], dtype=np.int64) - first
        self.indices = x.indices[first:last]
        self.data = x.data[first:last]
        self.shape = (end - begin, x.shape[1])
