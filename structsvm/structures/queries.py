"""Rows by query: consecutive runs, given by their sizes or by an id per row; their files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from structsvm.features.sources import load_text, numbered_lines
from structsvm.features.svmlight import SvmlightFileError, parse_svmlight, without_qid

if TYPE_CHECKING:
    from structsvm.arrays import LabelArray

__all__ = ["read_queries"]

HIGHEST_GRADE = 50.0  # gains are 2^grade - 1


def query_bounds(n_rows: int, group: Any = None, qid: Any = None) -> NDArray[np.int64]:
    """Where each query's rows begin, and the number of rows: array (n_queries + 1,).

    Parameters
    ----------
    n_rows : int
    group : array-like of int, optional
        Rows of each query.
    qid : array-like of shape (n_rows,), optional
        Id of each row's query.

    Raises
    ------
    ValueError
        For both or neither, sizes that are no positive integers or do not add up to `n_rows`, and ids of other rows or
        that come back after another one.
    """
    if group is not None and qid is not None:
        raise ValueError("group and qid say the same: give one of them")
    if group is not None:
        sizes = column(group)
        if sizes.ndim != 1 or (sizes.size and sizes.dtype.kind not in "iu") or (sizes < 1).any():
            raise ValueError(f"group must hold the number of rows of each query, integers >= 1, got {group!r:.80}")
        if (total := sum(sizes.tolist())) != n_rows:
            raise ValueError(f"group adds up to {total} rows, X has {n_rows}")
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    if qid is None:
        raise ValueError(
            "the rows' queries are not known: give group= (the number of rows of each query) or qid= (each row's "
            f"query); group=[{n_rows}] says that all rows are of one query. groups= of a search or a cross-validation "
            "splits rows and reaches no ranker: set_fit_request(qid=True) passes qid on"
        )
    ids = column(qid)
    if ids.shape != (n_rows,):
        raise ValueError(f"qid has shape {ids.shape}, expected ({n_rows},)")
    starts = np.concatenate([[0], np.flatnonzero(ids[1:] != ids[:-1]) + 1])[:n_rows]
    first: dict[Any, int] = {}
    for start, name in zip(starts.tolist(), ids[starts].tolist(), strict=True):
        if name is None or (isinstance(name, float) and name != name):
            raise ValueError(f"qid of row {start} is {name!r}, which is no id")
        try:
            known = name in first
        except TypeError:
            raise ValueError(f"qid of row {start} is {name!r:.80}, which is no id") from None
        if known:
            raise ValueError(
                f"the rows of a query must follow one another: query {name!r:.80} begins in row {first[name]} and "
                f"again in row {start}"
            )
        first[name] = start
    return np.append(starts, n_rows).astype(np.int64)


def column(values: object) -> LabelArray:
    """Values as an array, of objects where they are no numbers or texts of one kind."""
    try:
        return np.asarray(values)
    except ValueError:  # lists of several lengths
        return np.asarray(values, dtype=object)


def read_queries(
    source: str | os.PathLike[str] | BinaryIO,
    query: str | os.PathLike[str] | None = None,
    *,
    first_index: int | None = None,
    graded: bool = True,
) -> tuple[Any, NDArray[np.float64], NDArray[np.int64] | None]:
    r"""Read rows of queries, in svmlight format.

    Parameters
    ----------
    source : path or binary file
        A line is a row: its grade, ``qid:ID`` and ``index:value`` pairs, as `read_svmlight` has it. Lines are sorted
        by qid; all of them have one, or none.
    query : path, optional
        For a source without qid: a file with the number of rows of each query, one per line, as LightGBM has it.

    first_index : {0, 1}, optional
        See `read_svmlight`.
    graded : bool, default=True
        Whether rows must have a grade.

    Returns
    -------
    X : csr_array of shape (n_rows, n_features), float32
    grades : ndarray of shape (n_rows,), float64
        NaN where rows have none.
    qid : ndarray of shape (n_rows,), int64, or None
        The query of each row: its ID, or its number from 0 on in the file of sizes. None: neither is known.

    Raises
    ------
    SvmlightFileError, ValueError
        For a malformed line, a grade that is not in 0 .. 50, a missing or decreasing qid, sizes that are not positive
        or do not add up; the message names file and line.

    Examples
    --------
    >>> import io
    >>> from structsvm.structures.queries import read_queries
    >>> X, grades, qid = read_queries(io.BytesIO(b"2 qid:1 1:0.5\n0 qid:1 2:1\n1 qid:2 1:3\n"))
    >>> X.shape, grades.tolist(), qid.tolist()
    ((3, 2), [2.0, 0.0, 1.0], [1, 1, 2])
    """
    return query_rows(source, query, first_index, graded=graded)[:3]


def query_rows(
    source: Any, query: Any, first_index: int | None, *, graded: bool
) -> tuple[Any, NDArray[np.float64], NDArray[np.int64] | None, int]:
    """``(X, grades, qid)`` of `read_queries`, and the index of the first feature."""
    text, name = load_text(source, SvmlightFileError, "{}, line {}")
    ids: list[int] = []
    lines: list[int] = []

    def rows() -> Iterator[tuple[int, str]]:
        for k, line in without_qid(numbered_lines(text), name, ids):
            lines.append(k)
            yield k, line

    X, labels, first_index, _ = parse_svmlight(rows(), name, first_index)
    if not lines:
        raise SvmlightFileError(f"{name}: contains no rows")
    if labels is None:
        if graded:
            raise SvmlightFileError(f"{name}, line {lines[0]}: has no grade, but features alone")
        labels = []
    grades = np.full(len(lines), np.nan)
    for i, label in enumerate(labels):
        with suppress(ValueError):
            grades[i] = float(label)
    for i in np.flatnonzero(~((grades[: len(labels)] >= 0.0) & (grades[: len(labels)] <= HIGHEST_GRADE)))[:1].tolist():
        wanted = f"a grade is a number from 0 to {HIGHEST_GRADE:g}"
        raise SvmlightFileError(f"{name}, line {lines[i]}: {wanted}, found {labels[i]!r:.40}")
    if query is None:
        return X, grades, np.array(ids, dtype=np.int64) if ids else None, first_index
    if ids:
        raise ValueError(f"{name}: its lines have a qid; leave out the sizes of queries, {os.fspath(query)}")
    return X, grades, read_sizes(query, len(grades), name), first_index


def read_sizes(source: str | os.PathLike[str] | BinaryIO, n_rows: int, of: str) -> NDArray[np.int64]:
    """Read the number of rows of each query, one per line; returns the number of each row's query, from 0 on.

    Raises ValueError, which names file and line, unless they are positive and add up to `n_rows`, those of the file
    called `of`.
    """
    text, name = load_text(source, ValueError, "{}, line {}")
    sizes: list[int] = []
    for k, line in numbered_lines(text):
        if not re.fullmatch(r"0*[1-9][0-9]{0,9}", line.strip()):
            raise ValueError(f"{name}, line {k}: expected the number of rows of a query, found {line.strip()!r:.40}")
        sizes.append(int(line))
    if sum(sizes) != n_rows:
        raise ValueError(f"{name}: the sizes add up to {sum(sizes)} rows, {of} has {n_rows}")
    return np.repeat(np.arange(len(sizes)), sizes)
