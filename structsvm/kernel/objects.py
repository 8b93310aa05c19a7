"""Kernels of anything: inputs that are no rows of numbers, compared by the user's function of two lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm.features.matrices import is_sparse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import ArrayLike, NDArray


def are_objects(X: Any) -> bool:
    """Whether X is a list, or an array of one dimension, of anything but rows of numbers of one length."""
    if is_sparse(X):
        return False
    if hasattr(X, "shape"):
        return len(X.shape) == 1 and getattr(X.dtype, "kind", "O") in "OUS"
    if not isinstance(X, (list, tuple)) or not X:
        return False
    try:
        return np.asarray(X, dtype=np.float64).ndim != 2
    except (TypeError, ValueError):
        return not isinstance(X[0], (list, tuple, np.ndarray)) or not _has_numbers(X)


def _has_numbers(rows: Sequence[Any]) -> bool:
    """Whether rows are of one length and have numbers in them: of which some are wrong, which is told elsewhere."""
    return len({len(row) for row in rows}) == 1 and any(isinstance(value, (int, float)) for value in rows[0])


def values_of(kernel: Callable[..., ArrayLike], objects: list[Any], *, is_new: bool) -> NDArray[np.float64]:
    """The kernel matrix of the objects of a new model; ValueError for a model that is to go on."""
    if not is_new:
        raise ValueError("a kernel of objects needs all of them at once: no partial_fit, no warm_start")
    return kernel_values(kernel, objects, objects)


def values_for(
    kernel: Callable[..., ArrayLike], X: Iterable[Any], objects: list[Any], support: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Rows of a kernel matrix for new objects, a column per object of training: 0 if it is no support pattern."""
    X, support = list(X), np.unique(support)
    values = np.zeros((len(X), len(objects)))
    values[:, support] = kernel_values(kernel, X, [objects[k] for k in support.tolist()])
    return values


def kernel_values(kernel: Callable[..., ArrayLike], A: Sequence[Any], B: Sequence[Any]) -> NDArray[np.float64]:
    """The kernel's values of two lists of objects, float64 (len(A), len(B)); ValueError for any other answer."""
    try:
        values = np.asarray(kernel(A, B), dtype=np.float64)
    except TypeError as error:
        raise ValueError(f"the kernel of two lists of objects returned no numbers: {error}") from error
    if values.shape != (len(A), len(B)):
        raise ValueError(
            f"the kernel of {len(A)} and {len(B)} objects must have shape {(len(A), len(B))}, got {values.shape}; a "
            "function k of two objects becomes one of lists by lambda A, B: [[k(a, b) for b in B] for a in A]"
        )
    return values
