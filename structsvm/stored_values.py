"""Permitted contents of model files: tables of their arrays, and the counts and names of their headers.

A file may contain anything, and compiled code relies on what its arrays contain. The table of a model kind has an entry
per array::

    ARRAYS = {
        "support": Array("i8", ("n",), within=(-1, None)),
        "support_labels": Array("i4", ("n",), within=(0, "n_labels")),
        **csr("coef", "n_labels", "n"),
    }

Sizes are numbers or names. A name that `checked_arrays` was not given takes the first size met; all later
arrays must have the same. ``"n+1"`` is one more than n.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structsvm.parameters import MAX_COUNT

__all__ = ["Array", "checked_arrays", "csr", "optional", "stored_count", "stored_flag", "stored_names", "strings"]


@dataclass(frozen=True, slots=True)
class Array:
    """Permitted values of an array.

    Attributes
    ----------
    dtype : str
        Codes between blanks: ``"f4 f8"``.
    shape : tuple of int or str
    within : (low, high)
        Bounds of the values: ``low <= value < high``, numbers, names of sizes, or None for none.
    rises_to : str, optional
        Offsets: from 0, never falling, up to this size, which may be a new name.
    ascends_by : str, optional
        Name of the array of offsets between which values strictly ascend.
    once : bool
        Whether no value occurs twice.
    needed : bool
        Whether the array must be there.
    finite : bool
        Whether floats must be.
    """

    dtype: str
    shape: tuple[int | str, ...]
    within: tuple[float | str | None, float | str | None] = (None, None)
    rises_to: str | None = None
    ascends_by: str | None = None
    once: bool = False
    needed: bool = True
    finite: bool = True


Table = dict[str, Array]


def csr(name: str, n_rows: int | str, n_columns: int | str, *, dtype: str = "f4 f8", ascends: bool = False) -> Table:
    """The entries of a sparse matrix: ``NAME.indptr``, ``NAME.indices``, ``NAME.data``."""
    entries = f"entries of {name}"
    by = f"{name}.indptr" if ascends else None
    return {
        f"{name}.indptr": Array("i4 i8", (f"{n_rows}+1",), rises_to=entries),
        f"{name}.indices": Array("i4 i8", (entries,), within=(0, n_columns), ascends_by=by),
        f"{name}.data": Array(dtype, (entries,)),
    }


def strings(data: str, starts: str, count: int | str) -> Table:
    """The entries of strings: all their bytes, and where each begins."""
    size = f"bytes of {data}"
    return {starts: Array("i8", (f"{count}+1",), rises_to=size), data: Array("u1", (size,))}


def optional(table: Table) -> Table:
    """A table whose arrays may be missing."""
    return {name: replace(array, needed=False) for name, array in table.items()}


def checked_arrays(arrays: Mapping[str, NDArray[Any]], table: Table, **sizes: int) -> dict[str, NDArray[Any]]:
    """Return the arrays of a table, in C order; raises ValueError, naming the array, for the first invalid one.

    Arrays that the table does not name are left out. `sizes` are those known from the header.
    """
    checked: dict[str, NDArray[Any]] = {}
    known = dict(sizes)
    for name, wanted in table.items():
        if name not in arrays:
            if wanted.needed:
                raise ValueError(f"array {name!r} is missing")
            continue
        array = np.ascontiguousarray(arrays[name]) if arrays[name].ndim else arrays[name]
        problem = _problem(array, wanted, known, checked)
        if problem is not None:
            raise ValueError(f"array {name!r} {problem}")
        checked[name] = array
    return checked


def _problem(array: Any, wanted: Array, sizes: dict[str, int], others: Mapping[str, Any]) -> str | None:
    """Describe what is wrong with an array, or return None; `sizes` get the names that it defines."""
    if array.dtype not in [np.dtype(code) for code in wanted.dtype.split()]:
        return f"has dtype {array.dtype}, expected {' or '.join(wanted.dtype.split())}"
    if array.ndim != len(wanted.shape):
        return f"has {array.ndim} dimensions, expected {len(wanted.shape)}"
    for length, size in zip(array.shape, wanted.shape, strict=True):
        expected = _size(size, sizes, length)
        if length != expected:
            return f"has shape {array.shape}, expected {length} to be {expected} ({size})"
    if wanted.finite and array.dtype.kind in "fc" and not np.isfinite(array).all():
        return "has values that are not finite"
    if wanted.rises_to is not None:
        if array[0] != 0 or (array[1:] < array[:-1]).any():
            return "must begin with 0 and never fall"
        expected = sizes.setdefault(wanted.rises_to, int(array[-1]))
        if array[-1] != expected:
            return f"must end with {expected} ({wanted.rises_to}), not {array[-1]}"
    return _problem_of_values(array, wanted, sizes, others) if array.size else None


def _problem_of_values(array: Any, wanted: Array, sizes: dict[str, int], others: Mapping[str, Any]) -> str | None:
    low, high = (sizes[bound] if isinstance(bound, str) else bound for bound in wanted.within)
    if (low is not None and array.min() < low) or (high is not None and array.max() >= high):
        return f"has values from {array.min()} to {array.max()}, expected from {low} up to, not including, {high}"
    if wanted.ascends_by is not None:
        offsets = others[wanted.ascends_by]
        steps = array[1:] > array[:-1]
        steps[offsets[(offsets > 0) & (offsets < len(array))] - 1] = True
        if not steps.all():
            return "must ascend within each row"
    if wanted.once and len(np.unique(array)) != array.size:
        return "has a value twice"
    return None


def _size(size: int | str, sizes: dict[str, int], length: int) -> int:
    """The size of a name; a new name takes the current `length`."""
    if isinstance(size, int):
        return size
    name, plus, _ = size.partition("+")
    more = 1 if plus else 0
    return sizes.setdefault(name, max(0, length - more)) + more


# ---- headers ------------------------------------------------------------------------------------


def stored_count(header: Mapping[str, Any], name: str, low: int = 0, high: int = MAX_COUNT) -> int:
    """An integer of a header; raises ValueError unless it is one from `low` to `high`."""
    value = header[name]
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"{name!r} must be an integer from {low} to {high}, got {value!r:.80}")
    return value


def stored_positive(header: Mapping[str, Any], name: str, *kinds: type) -> float | None:
    """A positive number of a header, of such types, or None, also where it is missing; raises ValueError otherwise."""
    value = header.get(name)
    if value is not None and not (type(value) in kinds and 0.0 < value <= sys.float_info.max):
        raise ValueError(f"a {name} of {value!r:.80}, expected a positive number")
    return None if value is None else float(value)


def stored_flag(header: Mapping[str, Any], name: str) -> bool:
    """A bool of a header; raises ValueError for anything else."""
    value = header[name]
    if type(value) is not bool:
        raise ValueError(f"{name!r} must be true or false, got {value!r:.80}")
    return value


def stored_names(header: Mapping[str, Any], name: str) -> list[str]:
    """The strings of a header, none of them twice; raises ValueError for anything else."""
    value = header[name]
    if not isinstance(value, list) or not all(type(item) is str for item in value) or len(set(value)) != len(value):
        raise ValueError(f"{name!r} must be a list of distinct strings, got {value!r:.80}")
    return value
