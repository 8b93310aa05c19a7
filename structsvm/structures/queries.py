"""Rows by query: consecutive runs, given by their sizes or by an id per row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def query_bounds(n_rows: int, group: Any = None, qid: Any = None) -> NDArray[np.int64]:
    """Where each query's rows begin, and the number of rows: array (n_queries + 1,).

    Parameters
    ----------
    n_rows : int
    group : array-like of int, optional
        Rows of each query.
    qid : array-like of shape (n_rows,), optional
        Id of each row's query; without either, all rows are one query's.

    Raises
    ------
    ValueError
        For both at once, sizes that are no positive integers or do not add up to `n_rows`, and ids of other rows or
        that come back after another one.
    """
    if group is not None and qid is not None:
        raise ValueError("group and qid say the same: give one of them")
    if group is not None:
        sizes = np.asarray(group)
        if sizes.ndim != 1 or (sizes.size and sizes.dtype.kind not in "iu") or (sizes < 1).any():
            raise ValueError(f"group must hold the number of rows of each query, integers >= 1, got {group!r:.80}")
        if sizes.sum() != n_rows:
            raise ValueError(f"group adds up to {sizes.sum()} rows, X has {n_rows}")
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    if qid is None:
        return np.array([0, n_rows], dtype=np.int64)
    ids = np.asarray(qid)
    if ids.shape != (n_rows,):
        raise ValueError(f"qid has shape {ids.shape}, expected ({n_rows},)")
    starts = np.concatenate([[0], np.flatnonzero(ids[1:] != ids[:-1]) + 1])[: max(n_rows, 0) or 0]
    first: dict[Any, int] = {}
    for start, name in zip(starts.tolist(), ids[starts].tolist(), strict=True):
        if name in first:
            raise ValueError(
                f"the rows of a query must follow one another: query {name!r:.80} begins in row {first[name]} and "
                f"again in row {start}"
            )
        first[name] = start
    return np.append(starts, n_rows).astype(np.int64)
