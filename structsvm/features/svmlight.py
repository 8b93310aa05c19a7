"""Files in svmlight format: a label and ``index:value`` pairs per line."""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from structsvm.features.sources import load_text, numbered_lines
from structsvm.files.new_file import new_file

if TYPE_CHECKING:
    from structsvm.arrays import AnyArray

__all__ = ["SvmlightFileError", "read_svmlight", "write_svmlight"]


class SvmlightFileError(ValueError):
    r"""A file in svmlight format that cannot be read; the message names file and line.

    Examples
    --------
    >>> import io
    >>> from structsvm.features.svmlight import SvmlightFileError, read_svmlight
    >>> try:
    ...     read_svmlight(io.BytesIO(b"1 2:0.5\n1 2\n"))
    ... except SvmlightFileError as error:
    ...     print("line 2" in str(error))
    True
    """


# A feature, or the id of a query, where a label could stand.
NO_LABEL = re.compile(r"(?:[0-9]+|qid):")


def read_svmlight(
    source: str | os.PathLike[str] | BinaryIO, *, first_index: int | None = None
) -> tuple[Any, AnyArray | None]:
    r"""Read examples.

    Parameters
    ----------
    source : path or binary file
        May be compressed with gzip, xz, bzip2 or zip. Each line is an example: its label, perhaps ``qid:ID``, and
        ``index:value`` pairs separated by blanks; empty lines, ids of queries and anything after ``#`` are ignored.
    first_index : {0, 1}, optional
        The index of the first feature. None: 0 if an index of the file is 0, as scikit-learn writes by default, else 1.

    Returns
    -------
    X : csr_array of shape (n_samples, n_features), float32
    labels : ndarray of shape (n_samples,), or None
        int64 where all are whole numbers (``+1`` and ``1.0`` are 1), str otherwise. None: no line has one.

    Raises
    ------
    SvmlightFileError
        For a malformed line, a line without a label among others, a value that is not finite, an index that is less
        than the first or repeated, no examples.

    Examples
    --------
    >>> import io
    >>> from structsvm.features.svmlight import read_svmlight
    >>> X, labels = read_svmlight(io.BytesIO(b"1 1:0.5 3:2\n-1 2:1\n"))
    >>> X.toarray().tolist(), labels.tolist()
    ([[0.5, 0.0, 2.0], [0.0, 1.0, 0.0]], [1, -1])
    """
    rows = read_rows(source, first_index)
    return rows.X, None if rows.labels is None else label_values(rows.labels)


class Rows(NamedTuple):
    """Rows of a file in svmlight format.

    Attributes
    ----------
    X : csr_array of shape (n_rows, n_features), float32
    labels : list of str, or None
        None: no line has one.
    first_index : int
        The index of the first feature, 0 or 1.
    lines : sequence of int
        The number of each row's line.
    """

    X: Any
    labels: list[str] | None
    first_index: int
    lines: Sequence[int]


def read_rows(source: Any, first_index: int | None = None, *, may_lack: bool = False) -> Rows:
    """The rows of a file, as `parse_svmlight` has them; SvmlightFileError if there are none."""
    text, name = load_text(source, SvmlightFileError, "{}, line {}")
    rows = parse_svmlight(numbered_lines(text), name, first_index, may_lack=may_lack)
    if not rows.lines:
        raise SvmlightFileError(f"{name}: contains no examples")
    return rows


def label_values(labels: list[str]) -> AnyArray:
    """Labels as integers, if all are whole numbers, or as strings."""
    try:
        numbers = [float(label) for label in labels]
        if all(map(is_plain, {*labels})) and all(number.is_integer() and abs(number) < 2**53 for number in numbers):
            return np.array(numbers, dtype=np.int64)
    except ValueError:
        pass
    return np.array(labels)


def is_plain(text: str) -> bool:
    """Whether a text has none of the characters that are digits for Python alone."""
    return text.isascii() and "_" not in text


def parse_svmlight(
    rows: Iterable[tuple[int, str]], name: str, first_index: int | None = None, *, may_lack: bool = False
) -> Rows:
    """Return the rows of the lines of a file, pairs of line number and line.

    `first_index` is that of earlier lines, None: as these lines have it. With `may_lack` a label may be missing, and
    is ``""`` then.
    """
    from scipy.sparse import csr_array

    labels: list[str] = []
    seen: dict[str, str] = {}  # equal labels are one string
    places, counts, indices, values = array("q"), array("q", [0]), array("i"), array("d")
    least, bare = 1 if first_index is None else first_index, 0
    for k, line in rows:
        fields = line.partition("#")[0].split()
        if not fields:
            continue
        has_label = NO_LABEL.match(fields[0]) is None
        label, pairs = (fields[0], fields[1:]) if has_label else ("", fields)
        if pairs and pairs[0].startswith("qid:"):
            pairs = pairs[1:]
        bare += not has_label
        if 0 < bare <= len(labels) and not may_lack:
            found = "a" if has_label else "no"
            raise SvmlightFileError(f"{name}, line {k}: has {found} label, unlike the lines before: {line!r:.40}")
        new, own = numbers_of(pairs, line, name, k)
        if new and (min(new) < least or max(new) >= 2**31):
            if min(new) != 0 or max(new) >= 2**31:
                raise SvmlightFileError(f"{name}, line {k}: an index that is not in {least} .. 2**31 - 1")
            if first_index is not None:
                raise SvmlightFileError(
                    f"{name}, line {k}: has the index 0, and the indices of the data before begin with 1: write both "
                    "with the same first index"
                )
            least = 0
        indices.extend(new)
        values.extend(own)
        places.append(k)
        labels.append(seen.setdefault(label, label))
        counts.append(len(indices))
    with np.errstate(over="ignore"):  # infinite values are reported below, with their lines
        numbers = np.array(values, dtype=np.float32)
    for bad in np.flatnonzero(~np.isfinite(numbers))[:1].tolist():
        k = places[int(np.searchsorted(counts, bad, side="right")) - 1]
        raise SvmlightFileError(f"{name}, line {k}: a value that is not a finite float32 number")
    columns = np.array(indices, dtype=np.int32) - np.int32(least)
    shape = (len(labels), int(columns.max(initial=-1)) + 1)
    X = csr_array((numbers, columns, np.array(counts, dtype=np.int32)), shape)
    X.sort_indices()
    return Rows(X, None if bare and not may_lack else labels, least, places)


def numbers_of(pairs: list[str], line: str, name: str, k: int) -> tuple[list[int], list[float]]:
    """Indices and values of the texts ``index:value`` in line k of a file; no index stands twice."""
    try:
        split = [pair.split(":") for pair in pairs]
        if not is_plain(line) and not all(map(is_plain, pairs)):
            raise ValueError
        indices, values = [int(index) for index, _ in split], [float(value) for _, value in split]
    except ValueError:
        raise SvmlightFileError(
            f"{name}, line {k}: expected a label and index:value pairs, found {line!r:.80}"
        ) from None
    if len(set(indices)) != len(indices):
        raise SvmlightFileError(f"{name}, line {k}: a repeated index")
    return indices, values


def without_qid(rows: Iterable[tuple[int, str]], name: str, ids: list[int]) -> Iterator[tuple[int, str]]:
    """The lines of a file, as pairs of line number and line, without the ``qid:ID`` behind the label.

    Appends the ids to `ids`, which stays empty where no line has one.

    Raises
    ------
    SvmlightFileError
        If only some lines have a qid, or one is not an integer or less than the one before.
    """
    has_ids = None
    for k, line in rows:
        fields = line.partition("#")[0].split()
        if not fields:
            continue
        place = next((j for j, field in enumerate(fields[:2]) if field.startswith("qid:")), None)
        qid = None if place is None else fields.pop(place)
        if any(field.startswith("qid:") for field in fields[:2]):
            raise SvmlightFileError(f"{name}, line {k}: expected a label and index:value pairs, found {line!r:.80}")
        has_ids = qid is not None if has_ids is None else has_ids
        if (qid is not None) != has_ids:
            raise SvmlightFileError(f"{name}, line {k}: has {'no' if has_ids else 'a'} qid, unlike the lines before")
        if qid is not None:
            if not re.fullmatch(r"qid:[+-]?[0-9]{1,18}", qid):
                raise SvmlightFileError(f"{name}, line {k}: a qid is an integer, found {qid!r:.40}")
            ids.append(int(qid[4:]))
            if len(ids) > 1 and ids[-1] < ids[-2]:
                raise SvmlightFileError(f"{name}, line {k}: qid {ids[-1]} after {ids[-2]}: lines are sorted by qid")
        yield k, " ".join(fields)


def write_svmlight(
    path: str | os.PathLike[str], X: Any, labels: Iterable[Any], *, qid: ArrayLike | None = None
) -> None:
    """Write examples; values as short as float32 allows, zeros omitted; `qid` is the query of each.

    Raises
    ------
    ValueError
        If X, labels and qid differ in length, or one of them (the message names its row) could not be read back.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from structsvm.features.svmlight import write_svmlight
    >>> path = Path(tempfile.mkdtemp()) / "rows.svm"
    >>> write_svmlight(path, np.array([[0.5, 0.0], [0.0, 2.0]]), [1, -1])
    >>> path.read_text().splitlines()
    ['1 1:0.5', '-1 2:2.0']
    """
    from scipy.sparse import csr_array

    with np.errstate(over="ignore"):  # infinite values are reported below
        rows = csr_array(X, dtype=np.float32)
    rows.eliminate_zeros()
    names = [str(label) for label in labels]
    if len(names) != rows.shape[0]:
        raise ValueError(f"X has {rows.shape[0]} rows and there are {len(names)} labels")
    ids = None if qid is None else np.asarray(qid)
    if ids is not None:
        if ids.shape != (len(names),) or ids.dtype.kind not in "iu":
            raise ValueError(f"qid must hold an integer for each of the {len(names)} rows, got {qid!r:.40}")
        for k in np.flatnonzero(ids[1:] < ids[:-1])[:1].tolist():
            raise ValueError(f"row {k + 1}: qid {ids[k + 1]} after {ids[k]}: rows must be sorted by qid")
    with new_file(path, "w", encoding="utf-8", newline="\n") as file:
        for k, (label, (first, last)) in enumerate(zip(names, pairwise(rows.indptr), strict=True)):
            if label.split() != [label] or "#" in label or NO_LABEL.match(label):
                raise ValueError(f"row {k}: the label {label!r:.40} is empty, a feature, or holds a blank or #")
            pairs = list(zip(rows.indices[first:last].tolist(), rows.data[first:last], strict=True))
            for j, value in pairs:
                if not np.isfinite(value):
                    raise ValueError(f"row {k}, column {j}: {value} is not a finite float32 number")
            fields = [label] if ids is None else [label, f"qid:{ids[k]}"]
            file.write(" ".join([*fields, *(f"{j + 1}:{value}" for j, value in pairs)]) + "\n")
