"""Units of the features of edges, and what grids have for them."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from structsvm.features.dense import DenseRows, check_squares
from structsvm.features.inputs.outliers import TINY, cut_columns, limits_of_columns, without_outliers
from structsvm.features.ranges import pieces
from structsvm.stored_values import Array, Record
from structsvm.tasks.common.units import moments

EDGE_UNITS = Record(
    {
        "shift": Array("f8", ("m",)),
        "scale": Array("f8", ("m",), within=(TINY, None)),
        "low": Array("f8", ("m",), needed=False),
        "high": Array("f8", ("m",), needed=False),
    },
    of="edge_units",
)


class EdgeUnits(NamedTuple):
    """The columns that the features z of edges become.

    1 and ``u = (z - shift) / scale``; or, where weights are kept nonnegative, 1, u and 1 - u with u cut to 0 .. 1. Sums
    of these with weights >= 0 are the affine functions that are >= 0 wherever u lies between 0 and 1.

    Attributes
    ----------
    shift, scale : float64 array of shape (n_features,)
        Mean and deviation (times the root of their number); or least value and range.
    both : bool
        Whether there are columns 1 - u.
    low, high : float64 array of shape (n_features,), or None
        Values beyond them are taken as them; None: there are no outliers.
    """

    shift: NDArray[np.float64]
    scale: NDArray[np.float64]
    both: bool
    low: NDArray[np.float64] | None = None
    high: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, features: NDArray[np.float64], both: bool) -> Self:
        """The units of training data; ValueError for features whose squares overflow."""
        m = features.shape[1]
        if not len(features):
            return cls(np.zeros(m), np.ones(m), both)
        if not both:
            check_squares(features)
        limits = limits_of_columns(features)
        features = cut_columns(features, limits)
        if both:
            low = features.min(axis=0)
            size = features.max(axis=0) - low
            return cls(low, np.where(size > TINY, size, 1.0), both, *limits or ())
        mean, size = moments(features)
        length = math.sqrt(max(int(np.count_nonzero(size)), 1))
        return cls(mean, np.maximum(np.where(size > 0.0, size, 1.0) * length, TINY), both, *limits or ())

    @property
    def n_columns(self) -> int:
        return 1 + len(self.shift) * (1 + self.both)

    def later(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """The features of a later batch without outliers."""
        return without_outliers(features, self.scale, self.shift)

    def applied(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """The columns of edges."""
        limits = None if self.low is None or self.high is None else (self.low, self.high)
        u = (cut_columns(features, limits) - self.shift) / self.scale
        if self.both:
            u = np.clip(u, 0.0, 1.0)
        return np.column_stack([np.ones(len(u)), u, *([1.0 - u] if self.both else [])])

    def undone(self, tables: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """``(of features, constant)``: tables of weights (n_columns, K, K) for features as given."""
        m = len(self.shift)
        constant, slopes = tables[0].copy(), tables[1 : m + 1].copy()
        if self.both:
            constant += tables[m + 1 :].sum(axis=0)
            slopes -= tables[m + 1 :]
        slopes /= self.scale[:, None, None]
        return slopes, constant - np.tensordot(self.shift, slopes, axes=(0, 0))


def distances(rows: DenseRows, edges: NDArray[np.int64]) -> NDArray[np.float64]:
    """Squared distances between the rows of the nodes of edges."""
    found = np.empty(len(edges))
    for piece in pieces(len(edges), rows.values.shape[1]):
        found[piece] = ((rows.values[edges[piece, 0]] - rows.values[edges[piece, 1]]) ** 2).sum(axis=1)
    return found
