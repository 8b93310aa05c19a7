"""Arguments and results of oracles written in Python, checked and brought into one form."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.arrays import checksum

if TYPE_CHECKING:
    from structsvm.arrays import AnyArray

Inference = Literal["exact", "relaxed", "approximate"]

INFERENCES: tuple[Inference, ...] = ("exact", "relaxed", "approximate")


def offers_of(is_open: bool, has_sums: bool = True) -> frozenset[str]:
    """The offers of a problem with completions and, with `has_sums`, sums over outputs; `is_open`: some are unknown."""
    sums = ["marginals", "expectations"] if is_open else ["expectations"]
    return frozenset(["completions", *(sums if has_sums else []), *([] if is_open else ["constraints"])])


class OracleError(ValueError):
    """An oracle returned something that breaks the protocol; the message names class, method and example.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.oracles.assignment import AssignmentOracle
    >>> AssignmentOracle(1).joint_feature(np.array([[[1.0]]]), [None])
    Traceback (most recent call last):
        ...
    structsvm.adapter.OracleError: an output is one right node, or -1, per left node; one that is known in ...
    """


def sign_constrained(nonnegative: ArrayLike | None, n_features: int, owner: str) -> NDArray[np.int64] | None:
    """Return the ascending indices of the weights that must be >= 0, or None if there are none.

    Raises `OracleError` that names the class `owner` unless `nonnegative` is None, a mask or indices in range.
    """
    if nonnegative is None:
        return None
    array = np.asarray(nonnegative)
    if array.dtype == np.bool_ and array.shape == (n_features,):
        array = np.flatnonzero(array)
    elif array.ndim == 1 and array.dtype.kind in "iu":
        if array.size and not 0 <= int(array.min()) <= int(array.max()) < n_features:
            raise OracleError(
                f"{owner}.nonnegative has indices in {array.min()}..{array.max()}, expected 0..{n_features - 1} "
                f"(n_features is {n_features})"
            )
    elif array.size:
        raise OracleError(
            f"{owner}.nonnegative must be None, a bool mask of shape ({n_features},), or integer indices of features; "
            f"got {array.dtype} of shape {array.shape}"
        )
    return np.unique(array).astype(np.int64) if array.size else None


def by_place(examples: Any) -> Any:
    """Examples that [k] gives by their place: of data frames, series and Arrow's arrays, rows of an array."""
    if hasattr(examples, "tocsr"):
        raise ValueError("a sparse matrix is no list of examples: give a list of its rows")
    of_table = any(hasattr(examples, name) for name in ("iloc", "__arrow_c_array__", "__arrow_c_stream__"))
    return np.asarray(examples) if of_table else examples


def feature_arrays(
    psi: Any, n_features: int, where: Callable[[], str]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return a joint feature as ``(indices int64, values float64)``, contiguous, in the order it came.

    Raises `OracleError`, beginning with `where` (a callable that returns text), unless it has one of the three
    forms of the protocol. Whether it is finite and in range is checked when it is read.
    """
    if psi is None:
        raise OracleError(f"{where()} returned None, expected an array of {n_features} numbers; is a return missing?")
    if isinstance(psi, tuple):
        if len(psi) != 2:
            raise OracleError(f"{where()} returned a tuple of {len(psi)}, expected (indices, values)")
        indices, values = np.asarray(psi[0]), _numbers(psi[1], where)
        if indices.size and indices.dtype.kind not in "iu":
            raise OracleError(f"{where()} returned indices of type {indices.dtype}, expected integers")
        if indices.shape != values.shape or indices.ndim != 1:
            raise OracleError(f"{where()} returned {indices.shape} indices with {values.shape} values")
    elif hasattr(psi, "tocoo"):
        coo = psi.tocoo()
        if coo.shape != (1, n_features) and coo.shape != (n_features,):
            raise OracleError(f"{where()} returned a sparse array of shape {coo.shape}, expected (1, {n_features})")
        indices, values = coo.col, _numbers(coo.data, where)
    else:
        values = _numbers(psi, where)
        if values.shape != (n_features,):
            raise OracleError(f"{where()} returned an array of shape {values.shape}, expected ({n_features},)")
        indices = np.flatnonzero(values)
        values = values[indices]
    if indices.dtype == np.uint64:
        check_numbers(indices, values, n_features, where())  # while they are what they were
    return np.ascontiguousarray(indices, dtype=np.int64), np.ascontiguousarray(values)


def sparse_feature(psi: Any, n_features: int, where: str) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return a joint feature as ``(indices int32, values float64)``, ascending, summed and without zeros.

    Raises `OracleError`, beginning with the text `where`, unless it keeps the protocol.
    """
    indices, values = feature_arrays(psi, n_features, lambda: where)
    check_numbers(indices, values, n_features, where)
    unique, inverse = np.unique(indices, return_inverse=True)
    sums = np.bincount(inverse, weights=values, minlength=len(unique))
    keep = sums != 0.0
    return unique[keep].astype(np.int32), sums[keep]


def check_numbers(indices: AnyArray, values: AnyArray, n_features: int, where: str) -> None:
    """Raise `OracleError`, beginning with the text `where`, unless values are finite and indices in range."""
    if not np.isfinite(values).all():
        raise OracleError(f"{where} returned a value that is not finite")
    if indices.size and not 0 <= indices.min() <= indices.max() < n_features:
        raise OracleError(
            f"{where} returned indices in {indices.min()}..{indices.max()}, "
            f"expected 0..{n_features - 1} (n_features is {n_features})"
        )


def checked_expect(answer: Any, n_features: int, where: Callable[[], str]) -> tuple[float, tuple[Any, Any]]:
    """Return what `expect` returned as ``(log_sum, (indices int32, values float64))``; see `sparse_feature`.

    Raises `OracleError`, beginning with `where` (a callable that returns text), unless it keeps the protocol.
    """
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise OracleError(f"{where()} returned {answer!r:.80}, expected (log_sum, expectation)")
    try:
        log_sum = float(answer[0])
    except (TypeError, ValueError):
        log_sum = math.nan
    if not math.isfinite(log_sum):
        raise OracleError(f"{where()} returned the log-sum {answer[0]!r:.80}, expected a finite number")
    return log_sum, sparse_feature(answer[1], n_features, where())


def _numbers(values: Any, where: Callable[[], str]) -> NDArray[np.float64]:
    try:
        array = np.asarray(values)
        if array.dtype.kind == "c":
            raise TypeError
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        raise OracleError(f"{where()} returned values that are not real numbers: {values!r:.80}") from None


def fingerprint(oracle: Any, X: Any, Y: Any, known: Any, is_open: bool, where: Callable[[str, int], str]) -> int:
    """A checksum of the true outputs' joint features: completed under no weights if the oracle completes.

    For outputs known in part (`is_open`), without a completion, a checksum of what is expected of them.
    """
    value, n, w = len(X), oracle.n_features, np.zeros(oracle.n_features)
    for i, (x, y) in enumerate(zip(X, Y, strict=True)):
        if oracle.has_complete:
            y = oracle.complete(x, y if known is None else known[i], w)
        if is_open and not oracle.has_complete:
            pair = checked_expect(oracle.expect_known(x, y, w), n, partial(where, "expect_known", i))[1]
        else:
            pair = sparse_feature(oracle.joint_feature(x, y), n, where("joint_feature", i))
        value = checksum([np.array([value]), *pair])
    return value
