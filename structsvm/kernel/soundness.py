"""Signs that a matrix or a function is no kernel, where training would run long and predict by chance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from structsvm._warnings import AdviceWarning, warn
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
