"""Records of model files: each field of a header and each array in one table, by which it is written, read and checked.

    RECORD = Record({
        "labels": Names(),
        "oracle": Record({
            "order": Count(0, 2),
            "label_costs": Array("f8", ("n_labels",), within=(0.0, None), needed=False),
        }),
        "weights": Array("f8", ("n_features",)),
    })
    header, arrays = RECORD.write(model)
    stored = RECORD.read(header, arrays)
    oracle = Oracle(stored.labels, **stored.oracle, **stored.oracle.arrays())
    weights = stored.arrays(n_features=oracle.n_features)["weights"]

The value of a field is the attribute of its name, unless `of` says where it is. A record within another one is an
object of the header; the names of its arrays begin with its name and a dot. A file may contain anything: `read` checks
the header, and `Stored.arrays` the arrays, whose sizes often come from what the header describes. A count of the header
is a size by its name; the length of a list is one, as ``n_labels`` for "labels".
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structsvm.model_file import under
from structsvm.parameters import MAX_COUNT
from structsvm.stored_values import Array, checked_arrays

__all__ = [
    "Count",
    "Field",
    "Flag",
    "Group",
    "Names",
    "Number",
    "OneOf",
    "Part",
    "Record",
    "Stored",
    "Text",
    "TextOr",
    "Value",
]

Arrays = Mapping[str, NDArray[Any]]
LEAST_POSITIVE, FLOAT_MAX = 5e-324, sys.float_info.max


@dataclass(frozen=True, kw_only=True)
class Field:
    """A field of a header.

    Attributes
    ----------
    of : str or callable, optional
        The attribute, or a dotted path, or the function of the object that the value comes from. Default: its name.
    needed : bool
        Whether the field must be there; otherwise None is left out.
    null : bool
        Whether None is stored.
    """

    of: str | Callable[[Any], Any] | None = None
    needed: bool = True
    null: bool = False

    wanted = "a value"

    def accepts(self, value: Any) -> bool:
        """Whether a value of JSON may stand in a file."""
        return True

    def to_json(self, value: Any) -> Any:
        return value.item() if isinstance(value, np.generic) else value

    def from_json(self, value: Any) -> Any:
        return value

    def put(self, name: str, value: Any, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Add a value to what is written."""
        if value is not None or self.needed:
            header[name] = None if value is None else self.to_json(value)

    def get(self, name: str, header: Mapping[str, Any], arrays: Arrays | None = None, prefix: str = "") -> Any:
        """Return the value of a header; raises ValueError, naming field and value, for one that the field cannot have.

        `prefix`: what the field's name, and its arrays', begin with in the file.
        """
        if name not in header:
            if self.needed:
                raise ValueError(f"{prefix + name!r} is missing")
            return None
        value = header[name]
        if value is None and self.null:
            return None
        if not self.accepts(value):
            raise ValueError(f"{prefix + name!r} must be {self.wanted}, got {value!r:.80}")
        return self.from_json(value)


@dataclass(frozen=True)
class Count(Field):
    """An integer from `low` to `high`."""

    low: int = 0
    high: int = MAX_COUNT

    @property
    def wanted(self) -> str:  # type: ignore[override]
        return f"an integer from {self.low} to {self.high}"

    def accepts(self, value: Any) -> bool:
        return type(value) is int and self.low <= value <= self.high


@dataclass(frozen=True)
class Number(Field):
    """A finite number from `low` to `high`; by default a positive one."""

    low: float = LEAST_POSITIVE
    high: float = FLOAT_MAX

    @property
    def wanted(self) -> str:  # type: ignore[override]
        return f"a number from {self.low:g} to {self.high:g}"

    def accepts(self, value: Any) -> bool:
        return type(value) in (int, float) and self.low <= value <= self.high

    def from_json(self, value: Any) -> float:
        return float(value)


@dataclass(frozen=True)
class Flag(Field):
    """A bool."""

    wanted = "true or false"

    def to_json(self, value: Any) -> bool:
        return bool(value)

    def accepts(self, value: Any) -> bool:
        return type(value) is bool


@dataclass(frozen=True)
class Text(Field):
    """A string."""

    wanted = "text"

    def accepts(self, value: Any) -> bool:
        return type(value) is str


@dataclass(frozen=True)
class OneOf(Field):
    """One of some values."""

    values: tuple[Any, ...]

    @property
    def wanted(self) -> str:  # type: ignore[override]
        return f"one of {', '.join(map(repr, self.values))}"

    def accepts(self, value: Any) -> bool:
        return any(type(value) is type(one) and value == one for one in self.values)


@dataclass(frozen=True)
class Names(Field):
    """A list of distinct strings."""

    wanted = "a list of distinct strings"

    def to_json(self, value: Any) -> list[str]:
        return list(value)

    def accepts(self, value: Any) -> bool:
        return isinstance(value, list) and all(type(item) is str for item in value) and len({*value}) == len(value)


@dataclass(frozen=True)
class Value(Field):
    """What two functions make of a value: JSON, and the value again.

    `read` raises TypeError, KeyError or ValueError for what `write` cannot have returned.
    """

    read: Callable[[Any], Any]
    write: Callable[[Any], Any] = lambda value: value

    def to_json(self, value: Any) -> Any:
        return self.write(value)

    def from_json(self, value: Any) -> Any:
        return self.read(value)


@dataclass(frozen=True)
class Part(Field):
    """What two functions make of an object: a header and arrays of its own, and the object again."""

    read: Callable[[Any, Arrays], Any]
    write: Callable[[Any], tuple[Any, dict[str, NDArray[Any]]]]

    def put(self, name: str, value: Any, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        super().put(name, value, header, arrays)
        if value is not None:
            header[name], own = self.write(value)
            arrays |= {f"{name}.{key}": array for key, array in own.items()}

    def get(self, name: str, header: Mapping[str, Any], arrays: Arrays | None = None, prefix: str = "") -> Any:
        value = super().get(name, header, arrays, prefix)
        return None if value is None else self.read(value, under(arrays or {}, f"{prefix}{name}."))


@dataclass(frozen=True)
class Group(Field):
    """Arrays whose number depends on the data, by name; a file's are read as they are, for others to check.

    `bare`: their names do not begin with the field's; all arrays are read.
    """

    bare: bool = False

    def put(self, name: str, value: Any, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        arrays |= {key if self.bare else f"{name}.{key}": array for key, array in (value or {}).items()}

    def get(self, name: str, header: Mapping[str, Any], arrays: Arrays | None = None, prefix: str = "") -> Any:
        return under(arrays or {}, prefix if self.bare else f"{prefix}{name}.")


@dataclass(frozen=True)
class TextOr(Text):
    """A string, or None in the header and an array of the same name."""

    array: Array
    null: bool = dataclasses.field(default=True, kw_only=True)

    def put(self, name: str, value: Any, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        super().put(name, value if isinstance(value, str) else None, header, arrays)
        if not isinstance(value, str):
            arrays[name] = value if isinstance(value, np.ndarray) else value.toarray()


class Stored(dict[str, Any]):
    """The values of a record's header, by name; they are its attributes too.

    Attributes
    ----------
    sizes : dict of int
        Those that the header gives.
    """

    def __init__(
        self, values: dict[str, Any], table: dict[str, Array], arrays: Arrays, prefix: str, sizes: Any
    ) -> None:
        super().__init__(values)
        self._table, self._arrays, self._prefix, self.sizes = table, arrays, prefix, sizes

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def arrays(self, **sizes: int) -> dict[str, Any]:
        """Return the arrays, None for each that is not there; ValueError, naming it, for an invalid one."""
        found = checked_arrays(self._arrays, self._table, self._prefix, **self.sizes | sizes)
        return dict.fromkeys(self._table) | found


@dataclass(frozen=True)
class Record(Field):
    """A table of fields: see the head of this file.

    Attributes
    ----------
    fields : dict of Field or Array
        In the order in which they are written.
    written : bool
        Whether it is written; otherwise another part of the file contains what is read.
    """

    fields: dict[str, Field | Array]
    written: bool = True

    def __or__(self, fields: Mapping[str, Field | Array]) -> Record:
        """The record with more fields."""
        return Record(self.fields | fields)

    @property
    def table(self) -> dict[str, Array]:
        """Its arrays, but for those of records within."""
        found = {name: getattr(field, "array", field) for name, field in self.fields.items()}
        return {array.name or name: array for name, array in found.items() if isinstance(array, Array)}

    @property
    def has_header(self) -> bool:
        return not all(isinstance(field, Array) for field in self.fields.values())

    def write(self, source: Any) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return ``(header, arrays)`` of an object."""
        header: dict[str, Any] = {}
        arrays: dict[str, NDArray[Any]] = {}
        for name, field in self.fields.items():
            if not isinstance(field, Array):
                if not isinstance(field, Record) or field.written:
                    field.put(name, value_of(source, name, field.of), header, arrays)
            elif (array := value_of(source, name, field.of)) is not None:
                arrays[field.name or name] = array
        return header, arrays

    def read(self, header: Any, arrays: Arrays, prefix: str = "", **sizes: int) -> Stored:
        """The inverse of `write`; raises ValueError, naming the field, for a header that it cannot have returned."""
        if not isinstance(header, dict):
            raise ValueError(f"a header must be an object, got {header!r:.80}")
        values = {}
        # Sizes of arrays are known from the whole header.
        for name, field in sorted(self.fields.items(), key=lambda item: not getattr(item[1], "has_header", True)):
            if isinstance(field, Record):
                values[name] = field.within(name, header, arrays, prefix, sizes)
            elif not isinstance(field, Array):
                value = values[name] = field.get(name, header, arrays, prefix)
                if isinstance(field, Count) and value is not None:
                    sizes[name] = value
                elif isinstance(value, list):
                    sizes[f"n_{name}"] = len(value)
        return Stored(values, self.table, arrays, prefix, sizes)

    def put(self, name: str, value: Any, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        if self.has_header:
            super().put(name, value, header, arrays)
        if value is not None:
            own, its = self.write(value)
            header |= {name: own} if self.has_header else {}
            arrays |= {f"{name}.{key}": array for key, array in its.items()}

    def within(self, name: str, header: Any, arrays: Arrays, prefix: str, sizes: dict[str, int]) -> Stored | None:
        """Read it as a field of another record."""
        inner = f"{prefix}{name}."
        if self.has_header:
            value = self.get(name, header, arrays, prefix)
        else:
            value = {} if self.needed or any(key.startswith(inner) for key in arrays) else None
        return None if value is None else self.read(value, arrays, inner, **sizes)

    wanted = "an object"

    def accepts(self, value: Any) -> bool:
        return isinstance(value, dict)


def value_of(source: Any, name: str, of: str | Callable[[Any], Any] | None) -> Any:
    """The value of a field; None where a part of its path is."""
    if callable(of):
        return of(source)
    for part in (of or name).split("."):
        source = None if source is None else getattr(source, part)
    return source
