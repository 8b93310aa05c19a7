"""Entries that an array marks as missing beside its data: masks of NumPy, nulls of polars and of Arrow.

`np.asarray` gives what stands behind a mask, a label like the others. In y such an entry is None, not known; elsewhere
it is an error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from inspect import unwrap
from typing import ParamSpec, TypeGuard, TypeVar, cast

import numpy as np

P = ParamSpec("P")
T = TypeVar("T")

PLAIN = frozenset({str, int, float, bool, list, dict, type(None)})  # types of entries that no mask hides


def without_masks(y: T) -> T:
    """Outputs with None in the place of masked entries and nulls, of an array or of the arrays in a list."""
    if is_masked(y):
        mask, values = np.ma.getmaskarray(y), np.ma.getdata(y)
        if mask.any():
            values = values.astype(object)
            values[mask] = None
        return cast("T", values[()])
    if hasattr(y, "null_count"):
        return _without_nulls(y)
    if type(y) in (list, tuple) and any(_marks_missing(kind) for kind in set(map(type, cast("list[object]", y)))):
        return type(y)(map(without_masks, cast("list[object]", y)))  # type: ignore[call-arg]
    return y


def is_masked(values: object) -> TypeGuard[np.ma.MaskedArray[tuple[int, ...], np.dtype[np.generic]]]:
    """Whether an object is a masked array, or the constant `numpy.ma.masked` that stands for an entry of one."""
    return _is_class_of_masks(type(values))


def _is_class_of_masks(kind: type) -> bool:
    masks = sys.modules.get("numpy.ma")  # nothing is masked before it is imported
    return masks is not None and issubclass(kind, masks.MaskedArray)


def _marks_missing(kind: type) -> bool:
    """Whether a type is one of arrays that mark missing entries."""
    return _is_class_of_masks(kind) or hasattr(kind, "null_count")


def _without_nulls(y: T) -> T:
    """A series of polars or an array of Arrow, of objects if it has nulls; a table as it is."""
    values = getattr(y, "to_list", None) or getattr(y, "to_pylist", None)
    if values is None:
        return y
    entries = values()
    if None not in entries:
        return y
    array = np.empty(len(entries), dtype=object)
    array[:] = entries
    return cast("T", array)


def check_no_masks(values: object, name: str) -> None:
    """Raise ValueError, which names the argument, if entries of an array, or of one in a list, are masked."""
    n = _n_masked(values)
    if n:
        raise ValueError(
            f"{name} has masked entries, {n} of them, where none may be missing: fill them (numpy.ma.filled), "
            "or leave these examples out"
        )


def _n_masked(values: object) -> int:
    """The number of masked entries of an array, or of those in a list and in its tuples."""
    if is_masked(values):
        return int(np.ma.count_masked(values))
    if type(values) not in (list, tuple) or PLAIN.issuperset(map(type, cast("list[object]", values))):
        return 0
    return sum(_n_masked(own) for own in cast("list[object]", values) if is_masked(own) or type(own) is tuple)


def reads_masks(method: Callable[P, T]) -> Callable[P, T]:
    """Decorate a method of an estimator: masked entries of y are None there, and an error in other arguments."""
    code = unwrap(method).__code__
    names = code.co_varnames[1 : code.co_argcount]  # behind self

    @wraps(method)
    def unmasked(*args: P.args, **kwargs: P.kwargs) -> T:
        own, *others = args
        if "y" in names[: len(others)]:
            place = names.index("y")
            others[place] = without_masks(others[place])
        elif "y" in kwargs:
            kwargs["y"] = without_masks(kwargs["y"])
        for name, value in (*zip(names, others, strict=False), *kwargs.items()):
            check_no_masks(value, name)
        return method(own, *others, **kwargs)  # type: ignore[arg-type]

    return unmasked
