"""What the arrays of files may contain: tables of them, and the check of arrays by a table.

A file may contain anything, and compiled code relies on what its arrays contain. The table of a model kind has an entry
per array::

    ARRAYS = {
        "support": Array("i8", ("n",), within=(-1, None)),
        "support_labels": Array("i4", ("n",), within=(0, "n_labels")),
        **csr("coef", "n_labels", "n"),
    }

Sizes are numbers or names. A name that `checked_arrays` was not given takes the first size met; all later
arrays must have the same. ``"n+1"`` is one more than n, ``"n+2"`` two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Table", "checked_arrays", "csr", "optional", "strings"]


@dataclass(frozen=True, slots=True)
class Array:
    """What an array may contain.

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
    or_shape : tuple of int or str, optional
        Another shape that it may have, of another number of dimensions.
    of : str or callable, optional
        In a `Record`: where the array comes from; see `structsvm.record.Field`.
    name : str, optional
        In a `Record`: the array's name, where a field of the header has it too.
    """

    dtype: str
    shape: tuple[int | str, ...]
    within: tuple[float | str | None, float | str | None] = (None, None)
    rises_to: str | None = None
    ascends_by: str | None = None
    once: bool = False
    needed: bool = True
    finite: bool = True
    or_shape: tuple[int | str, ...] | None = None
    of: str | Callable[[Any], Any] | None = None
    name: str | None = None


Table = dict[str, Array]


def csr(
    name: str,
    n_rows: int | str,
    n_columns: int | str,
    *,
    dtype: str = "f4 f8",
    ascends: bool = False,
    of: str | None = None,
) -> Table:
    """The entries of a sparse matrix: ``NAME.data``, ``NAME.indices``, ``NAME.indptr``; `of`: its attribute."""
    entries, of = f"entries of {name}", of or name
    by = f"{name}.indptr" if ascends else None
    return {
        f"{name}.data": Array(dtype, (entries,), of=f"{of}.data"),
        f"{name}.indices": Array("i4 i8", (entries,), within=(0, n_columns), ascends_by=by, of=f"{of}.indices"),
        f"{name}.indptr": Array("i4 i8", (f"{n_rows}+1",), rises_to=entries, of=f"{of}.indptr"),
    }


def strings(data: str, starts: str, count: int | str) -> Table:
    """The entries of strings: all their bytes, and where each begins."""
    size = f"bytes of {data}"
    return {starts: Array("i8", (f"{count}+1",), rises_to=size), data: Array("u1", (size,))}


def optional(table: Table) -> Table:
    """A table whose arrays may be missing."""
    return {name: replace(array, needed=False) for name, array in table.items()}


def checked_arrays(
    arrays: Mapping[str, NDArray[Any]], table: Table, prefix: str = "", /, **sizes: int
) -> dict[str, NDArray[Any]]:
    """Return the arrays of a table, in C order; raises ValueError, naming the array, for the first invalid one.

    Arrays that the table does not name are left out. `sizes` are those known from the header. `prefix` is what all
    names begin with in `arrays`.
    """
    checked: dict[str, NDArray[Any]] = {}
    known = dict(sizes)
    for name, wanted in table.items():
        array = arrays.get(prefix + name)
        if array is None:
            if wanted.needed:
                raise ValueError(f"array {prefix + name!r} is missing")
            continue
        checked[name] = np.ascontiguousarray(array) if array.ndim else array
        problem = _problem(checked[name], wanted, known)
        if problem is not None:
            raise ValueError(f"array {prefix + name!r} {problem}")
    for name, array in checked.items():
        by = table[name].ascends_by
        if by is not None and not _ascends(array, checked[by]):
            raise ValueError(f"array {prefix + name!r} must ascend within each row")
    return checked


def _ascends(array: Any, offsets: Any) -> bool:
    """Whether values strictly ascend between offsets."""
    steps = array[1:] > array[:-1]
    steps[offsets[(offsets > 0) & (offsets < len(array))] - 1] = True
    return bool(steps.all())


def _problem(array: Any, wanted: Array, sizes: dict[str, int]) -> str | None:
    """What is wrong with an array, or None; `sizes` get the names that it defines."""
    if array.dtype not in [np.dtype(code) for code in wanted.dtype.split()]:
        return f"has dtype {array.dtype}, expected {' or '.join(wanted.dtype.split())}"
    shape = wanted.or_shape if wanted.or_shape and array.ndim == len(wanted.or_shape) else wanted.shape
    if array.ndim != len(shape):
        return f"has {array.ndim} dimensions, expected {len(shape)}"
    for length, size in zip(array.shape, shape, strict=True):
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
    return _problem_of_values(array, wanted, sizes) if array.size else None


def _problem_of_values(array: Any, wanted: Array, sizes: dict[str, int]) -> str | None:
    low, high = (sizes[bound] if isinstance(bound, str) else bound for bound in wanted.within)
    if (low is not None and array.min() < low) or (high is not None and array.max() >= high):
        return f"has values from {array.min()} to {array.max()}, expected from {low} up to, not including, {high}"
    if wanted.once and len(np.unique(array)) != array.size:
        return "has a value twice"
    return None


def _size(size: int | str, sizes: dict[str, int], length: int) -> int:
    """The size of a name; a new name takes the current `length`."""
    if isinstance(size, int):
        return size
    name, _, more = size.partition("+")
    return sizes.setdefault(name, max(0, length - int(more or 0))) + int(more or 0)
