"""Data frames, Arrow tables, Hugging Face data sets: a row per token, or per sequence with lists of tokens."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import chain
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structsvm.features._strings import Interner
from structsvm.features.sources import ColumnFileError

METADATA = b"huggingface"  # the key in an Arrow schema under which Hugging Face keeps the types of columns


def frame_columns(
    frame: Any,
    columns: Sequence[str] | None,
    sequence: str | None,
    names: Mapping[str, Sequence[str]],
    label: str | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int32], list[Any]]:
    """Offsets of sequences, ids of tokens, and the strings of each column; see `Columns.from_dataframe`."""
    if isinstance(columns, str):
        raise ValueError(f"The 'columns' parameter must be a list of names, got {columns!r:.80}")
    table, named = _opened(frame)
    chosen = [c for c in table.columns if c != sequence] if columns is None else list(columns)
    if label is not None:
        chosen = [*(column for column in chosen if column != label), label]
    _check_columns(table, [*chosen, *names, *([] if sequence is None else [sequence])])
    if not chosen or not len(table):
        raise ValueError("the frame has no columns of tokens" if not chosen else "the frame has no rows")
    named |= names
    values = {column: _cells(table, column) for column in chosen}
    if sequence is None:
        offsets = _lengths(values)
        values = {column: list(chain.from_iterable(rows)) for column, rows in values.items()}
    else:
        offsets = _runs(_keys(table, sequence), sequence)
    ids = np.empty((int(offsets[-1]), len(chosen)), dtype=np.int32)
    strings = []
    for j, column in enumerate(chosen):
        interner = Interner()
        ids[:, j] = interner.intern(_strings(values[column], column, named.get(column), offsets))
        strings.append(interner.to_arrays())
    return offsets, ids, strings


def frame_keys(frame: Any, sequence: str) -> list[Any]:
    """Values of the column `sequence` of a frame, row by row."""
    table, _ = _opened(frame)
    _check_columns(table, [sequence])
    return _keys(table, sequence)


def _check_columns(table: Any, wanted: Iterable[str]) -> None:
    """ValueError for a column that a frame does not have."""
    for column in wanted:
        if column not in table.columns:
            raise ValueError(f"the frame has no column {column!r}; it has {', '.join(map(repr, table.columns))}")


def _cells(table: Any, column: str) -> list[Any]:
    """The values of a column; ValueError for those that are none of Python's: a day after the year 9999."""
    try:
        values: list[Any] = table[column].to_list()
    except (OverflowError, LookupError, TypeError, NotImplementedError) as error:
        raise ValueError(f"column {column!r} holds values that Python does not have: {error}") from None
    return values


def _keys(table: Any, column: str) -> list[Any]:
    """The values of a column that names sequences; None where one is missing."""
    keys = [None if key != key else key for key in _cells(table, column)]
    bad = next((row for row, key in enumerate(keys) if not isinstance(key, Hashable)), None)
    if bad is not None:
        raise ValueError(f"row {bad}: column {column!r} holds {keys[bad]!r:.40}, which cannot name a sequence")
    return keys


def _opened(frame: Any) -> tuple[Any, dict[str, Sequence[str]]]:
    """A frame as narwhals sees it, and the names of its columns of class ids."""
    try:
        import narwhals.stable.v1 as nw
    except ImportError:
        raise ImportError(
            "data frames need narwhals, which is not installed: pip install 'structured-svm[tables]'"
        ) from None
    if hasattr(frame, "with_format"):  # a Hugging Face data set: its rows, and the types of its columns
        frame = frame.with_format("arrow")[:]
    metadata = getattr(getattr(frame, "schema", None), "metadata", None) or {}
    try:
        features = json.loads(metadata[METADATA])["info"]["features"] if METADATA in metadata else {}
        found = {column: names for column, kind in features.items() if (names := _class_names(kind))}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError("the table's Hugging Face metadata do not describe its columns") from None
    try:
        return nw.from_native(frame, eager_only=True), found
    except TypeError:
        raise TypeError(
            f"expected a data frame, an Arrow table or a Hugging Face data set, got {type(frame).__name__}"
        ) from None


def _class_names(kind: Any) -> Sequence[str]:
    """The names of a ClassLabel, alone or in a list; none for other types."""
    while isinstance(kind, list) or (isinstance(kind, dict) and "feature" in kind):
        kind = kind[0] if isinstance(kind, list) else kind["feature"]
    names: Sequence[str] = kind["names"] if isinstance(kind, dict) and kind.get("_type") == "ClassLabel" else ()
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise ValueError("names that are no strings")
    return names


def _lengths(values: dict[str, list[Any]]) -> NDArray[np.int64]:
    """Offsets of sequences that are lists in the cells of a row."""
    first, *others = values
    for column, cells in values.items():
        bad = next((i for i, cell in enumerate(cells) if isinstance(cell, str) or not hasattr(cell, "__len__")), None)
        if bad is not None:
            raise ValueError(
                f"row {bad}: column {column!r} holds {cells[bad]!r:.40}, not a list of tokens; a frame with a token a "
                "row needs sequence=, the column that says which sequence it belongs to"
            )
    lengths = [len(cell) for cell in values[first]]
    for i, length in enumerate(lengths):
        for column in others:
            if len(values[column][i]) != length:
                raise ColumnFileError(
                    f"row {i}: {length} values in column {first!r}, {len(values[column][i])} in {column!r}"
                )
        if not length:
            raise ColumnFileError(f"row {i}: sequence {i} is empty")
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _runs(keys: Iterable[Any], column: str) -> NDArray[np.int64]:
    """Offsets of runs of one key; a missing key is that of the row before."""
    starts, seen, last, row = list[int](), set[Any](), None, -1
    for row, key in enumerate(keys):
        if key is None or (key == last and starts):
            if not starts:
                raise ValueError(f"row 0: column {column!r} must name the sequence of the first row")
            continue
        if key in seen:
            raise ValueError(
                f"row {row}: sequence {key!r:.40} of column {column!r} goes on after others; sort the frame"
            )
        seen.add(key)
        starts.append(row)
        last = key
    return np.array([*starts, row + 1], dtype=np.int64)


def _strings(values: list[Any], column: str, names: Sequence[str] | None, offsets: NDArray[np.int64]) -> list[str]:
    """Values as strings: of class ids their names."""
    bad, what = None, "a string"
    if names is None:
        bad = next((t for t, value in enumerate(values) if not isinstance(value, str)), None)
        if bad is not None and isinstance(values[bad], Integral):
            what = f"a string; names={{{column!r}: [...]}} gives numbers from 0 on their names"
        elif bad is not None and (values[bad] is None or values[bad] != values[bad]):
            what = "a string; pandas.read_csv takes words such as null and NA for missing ones: keep_default_na=False"
    else:
        what = f"one of 0 to {len(names) - 1}, which have names"
        known = range(len(names))
        bad = next((t for t, v in enumerate(values) if not isinstance(v, Integral) or v not in known), None)
    if bad is not None:
        s = int(np.searchsorted(offsets, bad, side="right")) - 1
        raise ValueError(
            f"sequence {s}, token {bad - int(offsets[s])}: column {column!r} holds {values[bad]!r:.40}, expected {what}"
        )
    return values if names is None else [names[v] for v in values]
