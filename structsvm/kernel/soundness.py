"""Signs that a matrix or a function is no kernel, where training would run long and predict by chance."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from structsvm._warnings import LEAST_INPUTS, AdviceWarning, warn
from structsvm.features.inputs.outliers import warn_of_outliers, without_outliers
from structsvm.kernel._kernels import Kernel, Rows

if TYPE_CHECKING:
    from structsvm.arrays import Floats, Integers, Matrix

# Differences of this share of the largest value are rounding, of values in single precision too.
ROUNDING = 1e-4
# Rows on which a function is tried, and rows of a matrix that are looked at together.
TRIED, BLOCK = 64, 256

REMEDY = "distances D become a kernel as np.exp(-gamma * D**2), other similarities S as S @ S.T"


SEEN = "the kernel sees them as they are"


def check_inputs(kernel: Kernel, X: Matrix, sizes: Floats | None = None) -> None:
    """Raise ValueError if a precomputed kernel, whose rows X are, or a callable is none; see `check_matrix`.

    Warns of outliers in rows, to which kernels, that have no units, are exposed: of a later batch beside `sizes`, those
    of columns in training.
    """
    if kernel.name == "precomputed":
        check_matrix(np.asarray(X))
        return
    if callable(kernel.name):
        check_function(kernel, X)
    if sizes is None:
        warn_of_outliers(X, SEEN)
    else:
        without_outliers(X, sizes, outcome=SEEN)


def check_matrix(K: Floats) -> None:
    """Raise ValueError for a square matrix that no positive semi-definite kernel has.

    Such a matrix is symmetric, with ``k(x, x) >= 0`` and ``k(x, z)**2 <= k(x, x) k(z, z)``. Whether it is positive
    semi-definite takes as long as training, and is not asked.
    """
    _check(K, "the precomputed kernel", np.arange(len(K)))
    if len(K) > 1 and np.ptp(K) == 0.0:
        warn(
            f"the precomputed kernel is {K.flat[0]:.6g} for all pairs of rows, which are alike to it: it tells nothing",
            AdviceWarning,
        )


def check_function(kernel: Kernel, X: Matrix) -> None:
    """Raise ValueError if the values of a callable on some rows of X are none of a kernel; see `check_matrix`."""
    rows, some = Rows(X), np.unique(np.linspace(0, X.shape[0] - 1, TRIED).astype(np.int64))
    name = getattr(kernel.name, "__name__", type(kernel.name).__name__)
    _check(kernel.block(rows, some, rows, some), f"the kernel {name}", some)


def warn_of_equal(kernel: Kernel, X: Matrix) -> None:
    """Warn of a kernel with one value for all pairs of different rows: they are alike to the machine."""
    rows, some = Rows(X), np.unique(np.linspace(0, X.shape[0] - 1, TRIED).astype(np.int64))
    K = kernel.block(rows, some, rows, some)
    if len(some) > 1 and np.ptp(K) == 0.0 and (abs(X[some[:1]] - X[some[-1:]])).max() > 0.0:
        warn(
            f"the kernel {kernel.name} is {K.flat[0]:.6g} for all rows tried with each other, so that all are alike to "
            "it: scale the features up, or leave gamma='auto'",
            AdviceWarning,
        )


class Values(NamedTuple):
    """The values that a precomputed kernel with some examples, its columns, had in training.

    Attributes
    ----------
    own, largest : ndarray of shape (n,)
        By column: the example's value with itself, and the largest with another one.
    least : ndarray of shape (1,)
        The least value of each row, of the row where it is greatest.
    """

    own: Floats
    largest: Floats
    least: Floats

    @classmethod
    def of(cls, K: Floats, columns: Integers) -> Self:
        """The values of some columns of the matrix of training."""
        chosen = K[:, columns].astype(np.float64)
        least = chosen.min(axis=1, initial=np.finfo(np.float64).max).max()
        own = chosen[columns, np.arange(len(columns))]
        chosen[columns, np.arange(len(columns))] = np.finfo(np.float64).min
        return cls(own, chosen.max(axis=0), np.array([least]))

    def warn_of_others(self, K: Floats, columns: Integers) -> None:
        """Warn of values of other rows with the examples that no rows like those of training have.

        Where all of training have one value with themselves, as rows of one length have, none is larger. Else a row of
        the same kind is rarely above all of training, and not most of ten or more are; nor is their matrix symmetric
        with 0 on the diagonal.
        """
        n, values = len(K), K[:, columns]
        if not values.size:
            return
        most, top = float(np.abs(values).max()), float(self.own.max())
        rounding = ROUNDING * most
        above = np.mean(values > self.largest, axis=1) > 0.5
        are_many = n >= LEAST_INPUTS
        if np.ptp(self.own) <= ROUNDING * top < top * (1.0 + 10.0 * ROUNDING) < most:
            why = f"are up to {most:.6g}, where each row of training has {top:.6g} with itself, and no other one more"
        elif are_many and np.mean(above | (values.min(axis=1) > self.least + rounding)) > 0.5:
            why = "are mostly above those of training"
        elif are_many and n == K.shape[1] and max(abs(K.diagonal()).max(), abs(K - K.T).max()) <= rounding < most:
            why = "are 0 for each row with itself"
        else:
            return
        warn(
            f"the values of the precomputed kernel {why}: are they distances, or not scaled as in training? {REMEDY}",
            AdviceWarning,
        )


def _check(K: Floats, what: str, rows: Integers) -> None:
    diagonal = K.diagonal().astype(np.float64)
    largest = max((float(np.abs(K[a : a + BLOCK]).max()) for a in range(0, len(K), BLOCK)), default=0.0)
    rounding = ROUNDING * largest
    for a in range(0, len(K), BLOCK):
        part = K[a : a + BLOCK]
        different = np.abs(part - K[:, a : a + BLOCK].T) > rounding
        if different.any():
            i, j = (int(k) for k in np.argwhere(different)[0])
            raise ValueError(
                f"{what} is not symmetric: {part[i, j]:.6g} of rows {rows[a + i]} and {rows[j]}, {K[j, a + i]:.6g} of "
                f"rows {rows[j]} and {rows[a + i]}; if the order says nothing, (K + K.T) / 2 is"
            )
    if largest > 0.0 and np.abs(diagonal).max() <= rounding:
        raise ValueError(f"{what} is 0 for each row with itself, as distances are: {REMEDY}")
    if diagonal.min(initial=0.0) < -rounding:
        i = int(diagonal.argmin())
        raise ValueError(f"{what} is {diagonal[i]:.6g} for row {rows[i]} with itself, where none is below 0: {REMEDY}")
    size = np.sqrt(np.maximum(diagonal, 0.0))
    for a in range(0, len(K), BLOCK):
        excess = np.abs(K[a : a + BLOCK]) - np.outer(size[a : a + BLOCK], size)
        if excess.max() > 10.0 * rounding:
            i, j = divmod(int(excess.argmax()), len(K))
            raise ValueError(
                f"{what} is {K[a + i, j]:.6g} of rows {rows[a + i]} and {rows[j]}, which have {diagonal[a + i]:.6g} "
                f"and {diagonal[j]:.6g} with themselves; a kernel is at most the root of their product there: {REMEDY}"
            )
