"""Rows of numbers that are mostly not zero, embeddings say: kept as they are, and multiplied as matrices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from structsvm._warnings import AdviceWarning, warn
from structsvm.features.ranges import pieces, repeated
from structsvm.features.tokens import Tokens

if TYPE_CHECKING:
    from structsvm.arrays import Floats

LANES = 8  # rows are padded to whole vectors
# From this share of numbers that are not zero on, products with whole rows are faster than sums over their entries.
FILLED = 0.25
LOOK = 64  # rows that decide
# Float32 keeps too few digits of a column whose deviation is less than this share of its mean; of one that has become
# constant, if the mean is so great that other numbers may have.
FEW_DIGITS, GREAT = 1e-5, 1e5


def is_filled(X: Any) -> bool:
    """Whether X is an array and not a sparse matrix, of which more than `FILLED` is not zero."""
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.size == 0:
        return False
    some = X[:: -(-len(X) // LOOK)]
    return bool(np.count_nonzero(some) > FILLED * some.size)


def padded(n: int) -> int:
    """n rounded up to whole vectors."""
    return -(-n // LANES) * LANES


@dataclass(frozen=True, slots=True, eq=False)
class DenseRows:
    """Rows of a matrix, one per document.

    Attributes
    ----------
    values : array of shape (n_rows, n_columns), float32 or float64
    has_intercept : bool
        Whether one more feature, of value 1, stands behind the columns.
    """

    values: Floats
    has_intercept: bool = False

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: slice) -> Self:
        """Some rows, ``rows[10:20]``, which are not copied."""
        return replace(self, values=self.values[rows])

    def take(self, rows: Any) -> Self:
        """The rows of an array of indices."""
        return replace(self, values=self.values[rows])

    @property
    def n_features(self) -> int:
        return self.values.shape[1] + self.has_intercept

    def padded(self) -> Floats:
        """The rows with the intercept, in whole vectors."""
        n, d = self.values.shape
        rows = np.zeros((n, padded(self.n_features)), dtype=self.values.dtype)
        rows[:, :d] = self.values
        rows[:, d : self.n_features] = 1.0
        return rows

    def tokens(self) -> Tokens:
        """The same rows without their zeros, one token per document."""
        rows, n = self.padded()[:, : self.n_features], len(self)
        there = rows != 0.0
        indptr = np.concatenate([[0], np.cumsum(np.count_nonzero(there, axis=1))]).astype(np.int64)
        indices, values = repeated(np.arange(self.n_features, dtype=np.int32), n), rows.ravel()
        if indptr[-1] < len(values):
            indices, values = indices[there.ravel()], values[there.ravel()]
        ones = bool((values == 1.0).all())
        return Tokens(np.arange(n + 1), indptr, indices, None if ones else values, self.n_features)

    def fingerprint(self, labels: NDArray[np.int32]) -> int:
        """The fingerprint of `tokens`."""
        return self.tokens().fingerprint(labels)


def check_squares(values: Floats) -> None:
    """Raise ValueError unless numbers of X, and the sum of their squares, are finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares = float(np.vdot(values, values)) if values.dtype == np.float64 else 0.0  # float32's fit in float64
    if not np.isfinite(values).all():
        raise ValueError("X holds NaN or infinity")
    if not np.isfinite(squares):
        raise ValueError("the squares of X overflow; scale the features down")


def column_moments(values: Floats) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Means and variances of columns."""
    n, d = values.shape
    mean, variance = np.zeros(d), np.zeros(d)
    for piece in pieces(n, d):
        mean += values[piece].sum(axis=0, dtype=np.float64)
    mean /= n
    for piece in pieces(n, d):
        centred = values[piece] - mean
        variance += np.multiply(centred, centred, out=centred).sum(axis=0)
    return mean, variance / n


def warn_of_few_digits(values: NDArray[np.float32], names: Callable[[int], str]) -> None:
    """Warn of columns far from 0, whose values differ by little more than float32 can tell apart."""
    some = values[:: -(-len(values) // LOOK)].astype(np.float64)
    near = np.flatnonzero(np.ptp(some, axis=0) < 100.0 * FEW_DIGITS * np.abs(some[0]))  # few, mostly none
    mean, variance = column_moments(values[:, near])
    constant = (values[:, near] == values[0, near]).all(axis=0)
    size = np.where(constant, 0.0, np.sqrt(variance))
    found = np.flatnonzero(np.where(constant, FEW_DIGITS * GREAT, size) < FEW_DIGITS * np.abs(mean)).tolist()
    if found:
        k, likewise = found[0], ", others likewise" * (len(found) > 1)
        warn(
            f"column {names(int(near[k]))!r:.80} has values that differ by {size[k]:.2g} around {mean[k]:.7g}{likewise}"
            ": float32, as which they are read, keeps too few digits of that. Subtract its mean from it",
            AdviceWarning,
        )


def sum_of_products(coefs: Any, left: Any, right: Any) -> NDArray[np.float64]:
    """``sum_i coefs[i] left[i] (x) right[i]`` over rows of two matrices."""
    total = np.zeros((left.shape[1], right.shape[1]))
    for piece in pieces(len(coefs), total.size // 8):
        total += (coefs[piece, None] * left[piece]).T @ right[piece].astype(np.float64, copy=False)
    return total


def by_attributes(w: Any, n_features: int, n_outputs: int) -> Any:
    """Weights that lie feature by feature, rows of `n_outputs` or more, as the problems of `DenseRows` have them.

    Those are rows of features, in whole vectors, as many as whole vectors of outputs.
    """
    table = w.reshape(n_features, -1)
    rows = np.zeros((padded(n_outputs), padded(n_features)), dtype=w.dtype)
    rows[:n_outputs, :n_features] = table[:, :n_outputs].T
    return rows.ravel()


def by_features(w: Any, n_features: int, n_outputs: int, stride: int) -> Any:
    """The inverse: rows of `stride` weights, one per feature."""
    rows = w.reshape(padded(n_outputs), -1)
    table = np.zeros((n_features, stride), dtype=w.dtype)
    table[:, :n_outputs] = rows[:n_outputs, :n_features].T
    return table.ravel()


# A ratio of sizes of columns that is worth a word.
UNEVEN = 100.0


def are_uneven(inputs: Any) -> bool:
    """Whether the columns of tokens or rows are of very different sizes; False for other inputs."""
    values = getattr(inputs, "values", None)
    if not isinstance(values, np.ndarray) or not values.size:
        return False
    if values.ndim == 2:
        mean, variance = column_moments(values)
        squares = variance + mean**2
    else:
        n = np.bincount(inputs.indices)
        squares = np.bincount(inputs.indices, weights=values.astype(np.float64) ** 2) / np.maximum(n, 1)
    there = squares[squares > 0.0]
    return bool(len(there) and there.max() > UNEVEN**2 * there.min())
