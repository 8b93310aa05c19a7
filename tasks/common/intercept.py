"""An intercept: one more feature, of value 1."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from structsvm.features.dense import DenseRows


def with_intercept(rows: Any) -> Any:
    """Rows, `Tokens`, `SparseRows` or `DenseRows`, with one more feature of value 1 behind the others."""
    if isinstance(rows, DenseRows):
        return replace(rows, has_intercept=True)
    ends, values = rows.indptr[1:], rows.values
    return replace(
        rows,
        indptr=rows.indptr + np.arange(len(rows.indptr)),
        indices=np.insert(rows.indices, ends, rows.n_features),
        values=None if values is None else np.insert(values, ends, 1.0),
        n_features=rows.n_features + 1,
    )
