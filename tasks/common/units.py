"""Dense columns in units of their own: training sees each with mean 0 and variance 1.

Dual solvers and the regulariser treat all columns alike: one in large units drowns the others, one in small units is
drowned, and means far from 0 cost passes. So rows that are dense (see `structsvm.features.dense`) are standardised,
whatever units they come in. Sparse rows, whose zeros say something, are left as they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from structsvm.features.dense import DenseRows
from structsvm.stored_values import Array, checked_arrays
from structsvm.tasks.common.selection import LEAST

ARRAYS = {
    "units.shift": Array("f8", ("n_columns",)),
    "units.factor": Array("f8", ("n_columns",), within=(0.0, None)),
}
# A column whose deviation is less than this share of its mean is constant but for rounding.
CONSTANT, SMALLEST = 1e-6, 1e-30


class Units(NamedTuple):
    """What is subtracted from columns, and what they are then multiplied by.

    Attributes
    ----------
    shift, factor : ndarray of shape (n_columns,), float64
    """

    shift: NDArray[np.float64]
    factor: NDArray[np.float64]

    @classmethod
    def fit(cls, rows: Any) -> Self | None:
        """Of rows, each of which counts once; None for sparse rows, and for too few.

        Without an intercept no column is shifted. One that is constant keeps its unit.
        """
        if not isinstance(rows, DenseRows) or len(rows) < LEAST:
            return None
        mean = np.asarray(rows.values.mean(axis=0, dtype=np.float64))
        spread = np.asarray(rows.values.std(axis=0, dtype=np.float64))
        varies = (spread > CONSTANT * np.abs(mean)) & (spread > SMALLEST)
        return cls(
            np.asarray(mean * rows.has_intercept), np.divide(1.0, spread, out=np.ones_like(spread), where=varies)
        )

    def applied(self, rows: DenseRows) -> DenseRows:
        """The rows in these units."""
        kind = rows.values.dtype
        return replace(rows, values=(rows.values - self.shift.astype(kind)) * self.factor.astype(kind))

    def undone(self, table: Any) -> Any:
        """Weights of columns in units of the data, from those in these; rows are columns, that of an intercept last."""
        n = len(self.factor)
        own = table.astype(np.float64)
        own[:n] *= self.factor[:, None]
        own[n:] -= self.shift @ own[:n]
        return own.astype(table.dtype)

    def to_arrays(self) -> dict[str, NDArray[np.float64]]:
        return {"units.shift": self.shift, "units.factor": self.factor}


def units_from(arrays: dict[str, NDArray[Any]], n_columns: int) -> Units | None:
    """The inverse of `Units.to_arrays`; None where a file has none."""
    if "units.factor" not in arrays:
        return None
    stored = checked_arrays(arrays, ARRAYS, n_columns=n_columns)
    return Units(stored["units.shift"], stored["units.factor"])
