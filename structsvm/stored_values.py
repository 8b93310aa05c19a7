"""Permitted contents of files: each field of a header and each array in one table, which writes, reads and checks it.

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
object of the header; the names of its arrays begin with its name and a dot. A file may contain anything, and compiled
code relies on what its arrays contain: `Record.read` checks the header, and `Stored.arrays` the arrays, whose sizes
often come from what the header describes.

Sizes are numbers or names. A count of the header is a size by its name; the length of a list is one, as ``n_labels``
for "labels". A name that is not known takes the first size met; all later arrays must have the same. ``"n+1"`` is one
more than n, ``"n+2"`` two. Training states have arrays alone: a `Table` of them, and `checked_arrays`.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm.arrays import MAX_COUNT
from structsvm.model_file import under

if TYPE_CHECKING:
    from structsvm.arrays import AnyArray, Arrays, CheckedArray

__all__ = [
    "INTEGERS",
    "Array",
    "Count",
    "Field",
    "Flag",
    "Group",
    "Matrix",
    "Names",
    "Number",
    "OneOf",
    "Part",
    "Record",
    "Stored",
    "Table",
    "Text",
    "TextOr",
    "Value",
    "checked_arrays",
    "csr",
    "exponents_of",
    "least",
    "matrix_of",
    "multiples",
    "optional",
    "short_strings",
    "strings",
]

# ---- arrays ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False, slots=True)
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
    some : bool
        Whether a value must differ from 0.
    or_shape : tuple of int or str, optional
        Another shape that it may have, of another number of dimensions.
    of : str or callable, optional
        In a `Record`: where the array comes from; see `Field`.
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
    some: bool = False
    or_shape: tuple[int | str, ...] | None = None
    of: str | Callable[[Any], Any] | None = None
    name: str | None = None


Table = dict[str, Array]


def csr(name: str, n_rows: int | str, n_columns: int | str, *, ascends: bool = False, of: str | None = None) -> Table:
    """The entries of a sparse matrix: ``NAME.data``, ``NAME.indices``, ``NAME.indptr``; `of`: its attribute."""
    entries, of = f"entries of {name}", of or name
    by = f"{name}.indptr" if ascends else None
    return {
        f"{name}.data": Array("f4 f8", (entries,), of=f"{of}.data"),
        f"{name}.indices": Array("i4 i8", (entries,), within=(0, n_columns), ascends_by=by, of=f"{of}.indices"),
        f"{name}.indptr": Array("i4 i8", (f"{n_rows}+1",), rises_to=entries, of=f"{of}.indptr"),
    }


def strings(data: str, starts: str, count: int | str) -> Table:
    """The entries of strings: all their bytes, and where each begins."""
    size = f"bytes of {data}"
    return {starts: Array("i8", (f"{count}+1",), rises_to=size), data: Array("u1", (size,))}


INTEGERS = "u1 u2 i4 i8"


def least(values: Any) -> Any:
    """Counts or indices in the first of the types u1, u2, i4 and i8 that holds them."""
    top = int(values.max(initial=0))
    return values.astype(next(code for code in INTEGERS.split() if top <= np.iinfo(code).max))


def short_strings(data: str, lengths: str, count: int | str) -> Table:
    """The entries of strings: all their bytes, and the length of each, which `least` returned."""
    return {lengths: Array(INTEGERS, (count,), within=(0, None)), data: Array("u1", (f"bytes of {data}",))}


def optional(table: Table) -> Table:
    """A table whose arrays may be missing."""
    return {name: replace(array, needed=False) for name, array in table.items()}


def checked_arrays(
    arrays: Mapping[str, AnyArray], table: Table, prefix: str = "", /, **sizes: int
) -> dict[str, CheckedArray]:
    """Return the arrays of a table, in C order; raises ValueError, naming the array, for the first invalid one.

    Arrays that the table does not name are left out. `sizes` are those known from the header. `prefix` is what all
    names begin with in `arrays`.
    """
    checked: dict[str, CheckedArray] = {}
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
        if by is not None and by not in checked:
            raise ValueError(f"array {prefix + by!r} is missing")
        if by is not None and not _ascends(array, checked[by]):
            raise ValueError(f"array {prefix + name!r} must ascend within each row")
    return checked


def _ascends(array: Any, offsets: Any) -> bool:
    """Whether values strictly ascend between offsets."""
    steps = array[1:] > array[:-1]
    steps[offsets[(offsets > 0) & (offsets < len(array))] - 1] = True
    return bool(steps.all())


def _problem(array: Any, wanted: Array, sizes: dict[str, int]) -> str | None:
    """Describe what is wrong with an array, or return None; `sizes` get the names that it defines."""
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
    if wanted.some and not array.any():
        return "is all 0"
    return None


def _size(size: int | str, sizes: dict[str, int], length: int) -> int:
    """The size of a name; a new name takes the current `length`."""
    if isinstance(size, int):
        return size
    name, _, more = size.partition("+")
    return sizes.setdefault(name, max(0, length - int(more or 0))) + int(more or 0)


# ---- headers --------------------------------------------------------------------------------------

LEAST_POSITIVE, FLOAT_MAX = 5e-324, sys.float_info.max


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
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

    def table_of(self, name: str) -> Table:
        """Arrays that it has in a table; others are read where the field is."""
        return {}

    def put(self, name: str, value: Any, header: dict[str, Any], arrays: dict[str, AnyArray]) -> None:
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


@dataclass(frozen=True, eq=False, repr=False)
class Count(Field):
    """An integer from `low` to `high`."""

    low: int = 0
    high: int = MAX_COUNT

    @property
    def wanted(self) -> str:  # type: ignore[override]
        return f"an integer from {self.low} to {self.high}"

    def accepts(self, value: Any) -> bool:
        return type(value) is int and self.low <= value <= self.high


@dataclass(frozen=True, eq=False, repr=False)
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


@dataclass(frozen=True, eq=False, repr=False)
class Flag(Field):
    """A bool."""

    wanted = "true or false"

    def to_json(self, value: Any) -> bool:
        return bool(value)

    def accepts(self, value: Any) -> bool:
        return type(value) is bool


@dataclass(frozen=True, eq=False, repr=False)
class Text(Field):
    """A string."""

    wanted = "text"

    def accepts(self, value: Any) -> bool:
        return type(value) is str


@dataclass(frozen=True, eq=False, repr=False)
class OneOf(Field):
    """One of some values."""

    values: tuple[Any, ...]

    @property
    def wanted(self) -> str:  # type: ignore[override]
        return f"one of {', '.join(map(repr, self.values))}"

    def accepts(self, value: Any) -> bool:
        return any(type(value) is type(one) and value == one for one in self.values)


@dataclass(frozen=True, eq=False, repr=False)
class Names(Field):
    """A list of distinct strings."""

    wanted = "a list of distinct strings"

    def to_json(self, value: Any) -> list[str]:
        return list(value)

    def accepts(self, value: Any) -> bool:
        return isinstance(value, list) and all(type(item) is str for item in value) and len({*value}) == len(value)


@dataclass(frozen=True, eq=False, repr=False)
class Value(Field):
    """A value that one function converts to JSON and another one back.

    `read` raises TypeError, KeyError or ValueError for what `write` cannot have returned.
    """

    read: Callable[[Any], Any]
    write: Callable[[Any], Any] = lambda value: value

    def to_json(self, value: Any) -> Any:
        return self.write(value)

    def from_json(self, value: Any) -> Any:
        return self.read(value)


@dataclass(frozen=True, eq=False, repr=False)
class Part(Field):
    """An object that one function converts to a header and arrays of its own, and another one back."""

    read: Callable[[Any, Arrays], Any]
    write: Callable[[Any], tuple[Any, dict[str, AnyArray]]]

    def put(self, name: str, value: Any, header: dict[str, Any], arrays: dict[str, AnyArray]) -> None:
        super().put(name, value, header, arrays)
        if value is not None:
            header[name], own = self.write(value)
            arrays |= {f"{name}.{key}": array for key, array in own.items()}

    def get(self, name: str, header: Mapping[str, Any], arrays: Arrays | None = None, prefix: str = "") -> Any:
        value = super().get(name, header, arrays, prefix)
        return None if value is None else self.read(value, under(arrays or {}, f"{prefix}{name}."))


@dataclass(frozen=True, eq=False, repr=False)
class Group(Field):
    """Arrays whose number depends on the data, by name; a file's are read as they are, for others to check.

    `bare`: their names do not begin with the field's; all arrays are read.
    """

    bare: bool = False

    def put(self, name: str, value: Any, header: dict[str, Any], arrays: dict[str, AnyArray]) -> None:
        arrays |= {key if self.bare else f"{name}.{key}": array for key, array in (value or {}).items()}

    def get(self, name: str, header: Mapping[str, Any], arrays: Arrays | None = None, prefix: str = "") -> Any:
        return under(arrays or {}, prefix if self.bare else f"{prefix}{name}.")


@dataclass(frozen=True, eq=False, repr=False)
class TextOr(Text):
    """A string, or None in the header and an array of the same name."""

    array: Array
    null: bool = dataclasses.field(default=True, kw_only=True)

    def put(self, name: str, value: Any, header: dict[str, Any], arrays: dict[str, AnyArray]) -> None:
        super().put(name, value if isinstance(value, str) else None, header, arrays)
        if not isinstance(value, str):
            arrays[name] = value if isinstance(value, np.ndarray) else value.toarray()


# A matrix of 32 bits is stored by its entries if they take no more than this share of its bytes.
SPARSE = 0.5
# The least exponent of the units of a row, and the greatest: float32 has 127 times 2 to its power.
EXPONENTS = (-126, 121)


@dataclass(frozen=True, eq=False, repr=False)
class Matrix(Field):
    """A matrix of float32, whole or by its entries other than 0; see `matrix_of`.

    Entries that are small multiples of a power of 2, one for each row, are stored as these integers (see `multiples`).

    Attributes
    ----------
    rows, columns : str
        Names of its sizes.
    of : callable
        Returns the matrix, and whether it is stored in the form of fewest bytes whichever that is.
    """

    rows: str
    columns: str

    def table_of(self, name: str) -> Table:
        """Its arrays: itself; or its entries, the column of each, their number in each row and its unit."""
        entries = f"entries of {name}"
        return optional({
            name: Array("f4", (self.rows, self.columns)),
            f"{name}.data": Array("f4 i1 i2", (entries,)),
            f"{name}.indices": Array(INTEGERS, (entries,), within=(0, self.columns)),
            f"{name}.counts": Array(INTEGERS, (self.rows,), within=(0, None)),
            f"{name}.exponents": Array("i1", (self.rows,), within=(EXPONENTS[0], EXPONENTS[1] + 1)),
        })  # fmt: skip

    def put(self, name: str, value: Any, header: dict[str, Any], arrays: dict[str, AnyArray]) -> None:
        value, is_compact = value
        n_rows, n_columns = value.shape
        parts: dict[str, Any] = {}
        bits, exponents = next(
            ((bits, exponents) for bits in (8, 16) if (exponents := units_of_rows(value, bits)) is not None), (32, None)
        )
        rows, columns = np.nonzero(value)
        parts[f"{name}.data"] = value[rows, columns]
        if exponents is not None:
            parts[f"{name}.data"] = np.ldexp(parts[f"{name}.data"], -exponents[rows].astype(np.int16)).astype(
                f"i{bits // 8}"
            )
            parts[f"{name}.exponents"] = exponents
        parts[f"{name}.indices"] = columns.astype(least(np.array([n_columns - 1])).dtype)
        parts[f"{name}.counts"] = least(np.bincount(rows, minlength=n_rows))
        most = value.nbytes if is_compact or exponents is not None else SPARSE * value.nbytes
        arrays |= parts if sum(array.nbytes for array in parts.values()) <= most else {name: value}

    def get(self, name: str, header: Mapping[str, Any], arrays: Arrays | None = None, prefix: str = "") -> Any:
        return None  # its arrays are read with all others of the record


def multiples(values: Any, exponents: Any, bits: int) -> Any:
    """Values in units of a power of 2, rounded to whole numbers that have so many bits: of the dtype of the values."""
    most = 2 ** (bits - 1) - 1
    return np.clip(np.rint(np.ldexp(values, -exponents.astype(np.int16))), -most, most)


def units_of_rows(matrix: Any, bits: int) -> Any:
    """The exponent of each row's power of 2 if all entries are multiples of it in so many bits; None otherwise."""
    exponents = exponents_of(np.abs(matrix).max(axis=1, initial=0.0), bits)
    units = exponents[:, None].astype(np.int16)
    return exponents if np.array_equal(np.ldexp(multiples(matrix, units, bits), units), matrix) else None


def exponents_of(largest: Any, bits: int) -> Any:
    """The least e of each row for which its largest entry is at most 2^(bits - 1) - 1 times 2^e."""
    top = largest / np.float64(2 ** (bits - 1) - 1)
    exponents = np.ceil(np.log2(np.maximum(top, 2.0 ** EXPONENTS[0])))
    return np.minimum(exponents, EXPONENTS[1]).astype(np.int8)


def matrix_of(arrays: Mapping[str, Any], name: str, shape: tuple[int, int]) -> Any:
    """The matrix that `Matrix` wrote, of the arrays that `Stored.arrays` returns; ValueError if it is missing."""
    if arrays[name] is not None:
        return arrays[name]
    data, columns, counts, exponents = (arrays[f"{name}.{part}"] for part in ("data", "indices", "counts", "exponents"))
    if data is None or columns is None or counts is None:
        raise ValueError(f"array {name!r} is missing")
    if (exponents is None) != (data.dtype == np.float32):
        raise ValueError(
            f"array {name + '.exponents'!r} belongs to integers, and array {name + '.data'!r} has {data.dtype}"
        )
    ends = np.cumsum(counts, dtype=np.int64)
    if (ends[-1:] != len(data)).any() or not _ascends(columns, ends):
        raise ValueError(f"array {name + '.indices'!r} must ascend within rows of the sizes in {name + '.counts'!r}")
    rows = np.repeat(np.arange(shape[0]), counts)
    matrix = np.zeros(shape, dtype=np.float32)
    with np.errstate(over="ignore"):
        matrix[rows, columns] = data if exponents is None else np.ldexp(data.astype(np.float32), exponents[rows])
    if exponents is not None and not np.isfinite(matrix).all():
        raise ValueError(f"array {name + '.exponents'!r} is too large for its integers")
    return matrix


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


@dataclass(frozen=True, eq=False, repr=False)
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
        return Record({**self.fields, **fields})

    @property
    def table(self) -> dict[str, Array]:
        """Its arrays, but for those of records within."""
        found: dict[str, Array] = {}
        for name, field in self.fields.items():
            array = getattr(field, "array", field)
            if isinstance(array, Array):
                found[array.name or name] = array
            elif isinstance(field, Field):
                found |= field.table_of(name)
        return found

    @property
    def has_header(self) -> bool:
        return not all(isinstance(field, Array) for field in self.fields.values())

    def write(self, source: Any) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """Return ``(header, arrays)`` of an object."""
        header: dict[str, Any] = {}
        arrays: dict[str, AnyArray] = {}
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

    def put(self, name: str, value: Any, header: dict[str, Any], arrays: dict[str, AnyArray]) -> None:
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
