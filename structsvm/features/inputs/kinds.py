"""Columns that are no numbers, although they could be turned into some: dates, durations, periods, records."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

REMEDY = (
    "numbers are wanted: of dates and durations, those in a unit, (x - x.min()) / np.timedelta64(1, 'D'), or their "
    "parts, such as the month; of categories, columns of 0 and 1, as pandas.get_dummies makes them"
)
# Types of columns of pandas, polars and NumPy, by their names.
_NO_NUMBERS = re.compile(r"(datetime|timedelta|timestamp|period|interval|date|duration|time)(32|64)?\b", re.IGNORECASE)
# How scikit-learn and NumPy begin, where an entry cannot be made a number.
_NO_FLOAT = ("float() argument must be", "could not convert string to float", "setting an array element")


@contextmanager
def numbers_wanted(X: Any) -> Iterator[None]:
    """Add the remedy to errors of entries of X that are no numbers; ValueError for columns of dates and the like."""
    check_kinds(X)
    try:
        yield
    except (TypeError, ValueError) as error:
        if str(error).startswith(_NO_FLOAT) and len(error.args) == 1:
            error.args = (f"{str(error).rstrip('.')}{_place_of_text(X)}; {REMEDY}",)
        raise


def check_kinds(X: Any) -> None:
    """Raise ValueError for an array or a data frame with dates, durations, periods or records."""
    kind = getattr(getattr(X, "dtype", None), "kind", "")
    if kind in ("m", "M"):
        raise ValueError(f"X holds {X.dtype}; {REMEDY}")
    if kind == "V":
        raise ValueError(
            f"X is an array of records with the fields {', '.join(X.dtype.names or ()):.80}; "
            "numpy.lib.recfunctions.structured_to_unstructured makes a matrix of it"
        )
    for name, dtype in _columns(X):
        if getattr(dtype, "kind", "") in ("m", "M") or _NO_NUMBERS.match(str(dtype)):
            raise ValueError(f"the column {name!r:.60} of X holds {dtype!s:.60}; {REMEDY}")


def _columns(X: Any) -> Iterator[tuple[Any, Any]]:
    """The names and types of the columns of a data frame, or of a table of Arrow."""
    schema = getattr(X, "schema", None)
    if hasattr(X, "dtypes") and hasattr(X, "columns"):
        yield from zip(X.columns, X.dtypes, strict=True)
    elif schema is not None and hasattr(schema, "types"):
        yield from zip(schema.names, schema.types, strict=True)


def _place_of_text(X: Any) -> str:
    """The columns of a data frame that hold text or categories."""
    names = [
        name
        for name, dtype in _columns(X)
        if re.match(r"(object|str|string|category|categorical|enum)", str(dtype), re.IGNORECASE)
    ]
    return f", in {', '.join(map(repr, names)):.100} of X" if names else ""
