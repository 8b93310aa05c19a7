"""Rows of numbers that are mostly zero, in float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from structsvm.features.dense import check_squares
from structsvm.features.matrices import is_sparse
from structsvm.features.ranges import take_ranges

if TYPE_CHECKING:
    from structsvm.arrays import AnyArray


@dataclass(frozen=True, slots=True, eq=False)
class SparseRows:
    """Sparse inputs in CSR layout.

    Attributes
    ----------
    indptr : int64 array of shape (n_rows + 1,)
    indices : int32 array of shape (n_entries,)
    values : float64 array of shape (n_entries,)
    n_features : int
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[np.float64]
    n_features: int

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __getitem__(self, rows: slice) -> SparseRows:
        """Some rows, ``rows[10:20]``, without copying their entries."""
        start, stop, step = rows.indices(len(self))
        if step != 1:
            raise ValueError("rows are sliced with step 1")
        a, b = self.indptr[start], self.indptr[max(start, stop)]
        return SparseRows(self.indptr[start : stop + 1] - a, self.indices[a:b], self.values[a:b], self.n_features)

    def take(self, rows: Any) -> SparseRows:
        """The rows of an array of indices."""
        indptr, entries = take_ranges(self.indptr, rows)
        return SparseRows(indptr, self.indices[entries], self.values[entries], self.n_features)

    @property
    def arrays(self) -> tuple[AnyArray, ...]:
        return self.indptr, self.indices, self.values


def as_rows(X: Any, n_features: int) -> SparseRows:
    """Rows of a 2-D array or a CSR matrix; ValueError unless finite and `n_features` wide.

    Entries of one place are added up, so that each column stands once in a row.
    """
    if isinstance(X, SparseRows):
        if X.n_features != n_features:
            raise ValueError(f"X has {X.n_features} columns, expected {n_features}")
        return X
    if is_sparse(X):
        X = X.tocsr() if getattr(X, "format", "csr") != "csr" else X
        shape = X.shape
        rows = SparseRows(
            np.ascontiguousarray(X.indptr, dtype=np.int64),
            np.ascontiguousarray(X.indices, dtype=np.int32),
            np.ascontiguousarray(X.data, dtype=np.float64),
            n_features,
        )
        if (rows.indptr[1:] < rows.indptr[:-1]).any() or rows.indptr[0] != 0 or rows.indptr[-1] > len(rows.indices):
            raise ValueError("X is a sparse matrix with a wrong indptr")
        if len(rows.indices) and not 0 <= rows.indices.min() <= rows.indices.max() < n_features:
            raise ValueError(f"X has a column {rows.indices.max()}, expected 0 .. {n_features - 1}")
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
            return as_rows(X, n_features)
    else:
        X = np.asarray(X, dtype=np.float64)
        shape = X.shape
        if X.ndim != 2:
            raise ValueError(f"X must be 2-D, one row per example, got {X.ndim} dimensions")
        there = X != 0.0
        indptr = np.concatenate([[0], np.cumsum(np.count_nonzero(there, axis=1))]).astype(np.int64)
        rows = SparseRows(indptr, np.nonzero(there)[1].astype(np.int32), X[there], n_features)
    if len(shape) != 2 or shape[1] != n_features:
        raise ValueError(f"X has shape {shape}, expected {n_features} columns")
    check_squares(rows.values)
    return rows
