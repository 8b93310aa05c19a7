"""Rows with an intercept: one more feature, of value 1."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from structsvm.features.dense import DenseRows, is_filled
from structsvm.features.ranges import pieces
from structsvm.features.sparse import as_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from structsvm.arrays import Matrix
    from structsvm.features.sparse import SparseRows
    from structsvm.features.tokens import Tokens

    R = TypeVar("R", DenseRows, SparseRows, Tokens)


def rows_of(X: Matrix, has_intercept: bool, sparse: Callable[[Matrix], Tokens | SparseRows] | None = None) -> Any:
    """The rows of a matrix, `DenseRows` if most of it is not zero, with an intercept if there is one.

    `sparse` makes rows of other matrices; None: `SparseRows`.
    """
    if is_filled(X):
        rows: Any = DenseRows(np.ascontiguousarray(X))
    else:
        rows = as_rows(X, X.shape[1]) if sparse is None else sparse(X)
    return with_intercept(rows) if has_intercept else rows


def with_intercept(rows: R) -> R:
    """Rows, `Tokens`, `SparseRows` or `DenseRows`, with one more feature of value 1 behind the others."""
    if isinstance(rows, DenseRows):
        return replace(rows, has_intercept=True)
    n = len(rows.indptr) - 1

    def inserted(entries: Any, value: float) -> Any:
        out = np.empty(len(entries) + n, dtype=entries.dtype)
        for piece in pieces(n, len(entries) // max(n, 1)):
            start, *ends = rows.indptr[piece.start : piece.stop + 1]
            place = slice(start + piece.start, ends[-1] + piece.stop)
            out[place] = np.insert(entries[start : ends[-1]], np.subtract(ends, start), value)
        return out

    return replace(
        rows,
        indptr=rows.indptr + np.arange(n + 1),
        indices=inserted(rows.indices, rows.n_features),
        values=None if rows.values is None else inserted(rows.values, 1.0),
        n_features=rows.n_features + 1,
    )
