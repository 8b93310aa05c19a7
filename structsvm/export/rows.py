"""Checks of the arrays that a tagger is made of."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["finite", "rows_below", "rows_of", "text_of"]

Rows = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]


def rows_of(
    starts: ArrayLike, targets: ArrayLike, weights: ArrayLike, n_rows: int, n_targets: int, prefix: str
) -> Rows:
    """Check sparse rows and return them as arrays; messages name them with `prefix`."""
    begin = np.ascontiguousarray(starts, np.int64)
    columns = np.ascontiguousarray(targets, np.int32)
    values = np.ascontiguousarray(weights, np.float64)
    if begin.shape != (n_rows + 1,) or columns.ndim != 1 or columns.shape != values.shape:
        raise ValueError(
            f"{prefix}starts must have {n_rows + 1} entries, {prefix}targets and {prefix}weights equally many; "
            f"got shapes {begin.shape}, {columns.shape}, {values.shape}"
        )
    if begin[0] != 0 or begin[-1] != len(columns) or (np.diff(begin) < 0).any():
        raise ValueError(f"{prefix}starts must rise from 0 to the number of weights, {len(columns)}")
    if len(columns) and (columns.min() < 0 or columns.max() >= n_targets):
        raise ValueError(f"{prefix}targets must be between 0 and {n_targets - 1}")
    return begin, columns, finite(values, f"{prefix}weights")


def finite(array: NDArray[np.float64], name: str) -> NDArray[Any]:
    """Return the array. Raises ValueError if a value is infinite or NaN."""
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite")
    return array


def text_of(t: int, name: object) -> str:
    """Return the text that bytes are in UTF-8. Raises TypeError, naming the token, for anything else."""
    if isinstance(name, bytes):
        return name.decode("utf-8", "surrogateescape")
    raise TypeError(f"token {t}: attributes must be str, got {name!r}")


def rows_below(ordered: list[str], rows: dict[str, int], name: str) -> dict[str, int]:
    """Rows of the names that begin with ``name:``, by what follows; `ordered` are all names, sorted."""
    prefix, size = f"{name}:", len(name) + 1
    first, last = bisect_left(ordered, prefix), bisect_left(ordered, f"{name};")  # ";" is the character after ":"
    return {whole[size:]: rows[whole] for whole in ordered[first:last]}
