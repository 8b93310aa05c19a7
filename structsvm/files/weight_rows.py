"""Rows of weights of any lengths in files: whole, or by their entries other than 0, in 8, 16 or 32 bits.

In few bits the entries of a row are small integers times a power of 2, the row's unit. `structsvm.stored_values.Matrix`
is the same for rows of one length.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm.stored_values import EXPONENTS, INTEGERS, Array, Field, Table, exponents_of, least, multiples, optional

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from structsvm.arrays import AnyArray, Arrays, Floats, Integers

__all__ = ["RaggedRows", "blocks", "in_few_bits", "n_blocks", "rows_from", "units_of_blocks"]

BLOCK = 256  # weights that share a unit where features have no rows: hashed ones, say


@dataclass(frozen=True, eq=False, repr=False)
class RaggedRows(Field):
    """Weights; `of` returns them with the lengths of their rows, or with None: they are then stored whole.

    Attributes
    ----------
    shape : tuple of str
        Names of the sizes of weights that are stored whole.
    dtype : str
        Of weights that are stored whole.
    name : str, optional
        Of the arrays, where a field of the header has the own one.
    """

    shape: tuple[str, ...]
    dtype: str = "f4"
    name: str | None = None

    def table_of(self, name: str) -> Table:
        """Its arrays: itself; or entries, the place of each in its row, their number per row, units of rows with some.

        A file has the form that takes the fewest bytes. Places are missing where rows have all of their entries;
        `rows_from` asks for the arrays.
        """
        name = self.name or name
        entries = f"entries of {name}"
        return optional({
            name: Array(self.dtype, self.shape),
            f"{name}.data": Array("f4 i1 i2", (entries,)),
            f"{name}.places": Array(INTEGERS, (entries,), within=(0, None)),
            f"{name}.counts": Array(INTEGERS, (f"rows of {name}",), within=(0, None)),
            f"{name}.exponents": Array("i1", (f"units of {name}",), within=(EXPONENTS[0], EXPONENTS[1] + 1)),
        })  # fmt: skip

    def put(self, name: str, value: Any, header: dict[str, Any], arrays: dict[str, AnyArray]) -> None:
        if value is None:
            return
        (vector, lengths), name = value, self.name or name
        if lengths is None:
            arrays[name] = vector
            return
        narrow, at = np.ravel(vector).astype(np.float32), np.flatnonzero(vector)
        rows = np.repeat(np.arange(len(lengths)), lengths)[at]
        counts = np.bincount(rows, minlength=len(lengths))
        some = {"places": least(at - (np.cumsum(lengths) - lengths)[rows]), **_entries(narrow[at], counts)}
        forms: list[dict[str, AnyArray]] = [{name: vector}]
        forms += [
            {f"{name}.{part}": array for part, array in form.items()} for form in (_entries(narrow, lengths), some)
        ]
        least_form: dict[str, AnyArray] = min(forms, key=n_bytes)
        arrays |= least_form

    def get(self, name: str, header: Mapping[str, Any], arrays: Arrays | None = None, prefix: str = "") -> Any:
        return None  # its arrays are read with all others of the record


def rows_from(arrays: Mapping[str, Any], name: str, n_rows: int, lengths_of: Callable[[], Integers]) -> Any:
    """The vector that `RaggedRows` wrote, of the arrays that `Stored.arrays` returns: of float32 unless stored whole.

    `lengths_of` returns the lengths of the rows. It is called once the file is known to have so many rows: a header may
    claim any number.

    Raises ValueError, naming the array, for one that is missing or does not fit rows of these lengths.
    """
    if arrays[name] is not None:
        return np.ravel(arrays[name])
    data, places, counts, units = (arrays[f"{name}.{part}"] for part in ("data", "places", "counts", "exponents"))
    if data is None or counts is None:
        raise ValueError(f"array {name!r} is missing")
    lengths = lengths_of() if len(counts) == n_rows else None
    if lengths is None or (counts > lengths).any() or counts.sum(dtype=np.int64) != len(data):
        raise ValueError(f"array {name + '.counts'!r} does not fit {n_rows} rows and {len(data)} entries")
    if places is None and len(data) != lengths.sum():
        raise ValueError(f"array {name + '.places'!r} is missing")
    rows = np.repeat(np.arange(n_rows), counts)
    same = rows[1:] == rows[:-1]
    if places is None:
        places = np.arange(len(data)) - (np.cumsum(lengths) - lengths)[rows]
    elif (places >= lengths[rows]).any() or (places[1:][same] <= places[:-1][same]).any():
        raise ValueError(f"array {name + '.places'!r} must ascend within rows, below their lengths")
    if (units is None) != (data.dtype == np.float32):
        raise ValueError(
            f"array {name + '.exponents'!r} belongs to integers, and array {name + '.data'!r} has {data.dtype}"
        )
    vector = np.zeros(int(lengths.sum()), dtype=np.float32)
    values = data
    if units is not None:
        own = counts[counts > 0]
        if len(units) != len(own):
            raise ValueError(f"array {name + '.exponents'!r} has {len(units)} units of {len(own)} rows")
        with np.errstate(over="ignore"):
            values = np.ldexp(data.astype(np.float32), np.repeat(units, own).astype(np.int16))
        if not np.isfinite(values).all():
            raise ValueError(f"array {name + '.exponents'!r} is too large for its integers")
    vector[(np.cumsum(lengths) - lengths)[rows] + places] = values
    return vector


def n_blocks(n: int) -> int:
    """How many rows `blocks` returns."""
    return -(-n // BLOCK)


def blocks(n: int) -> Integers:
    """Lengths of rows that n weights without rows are divided into."""
    return np.minimum(n - np.arange(0, n, BLOCK), BLOCK)


def in_few_bits(vector: Floats, lengths: Integers, bits: int) -> Floats:
    """Weights in float32, and those of each row as multiples of a power of 2, the least that leaves `bits` bits."""
    narrow = vector.astype(np.float32)
    if bits != 32:
        some = lengths[lengths > 0]
        units = np.repeat(exponents_of(_largest(narrow, some), bits), some)
        narrow = np.ldexp(multiples(narrow, units, bits), units.astype(np.int16))
    return narrow.astype(vector.dtype)


def units_of_blocks(numbers: Floats, bits: int) -> Integers | None:
    """The exponent of each block's power of 2 if all numbers are multiples of it in so many bits; None otherwise."""
    lengths = blocks(len(numbers))
    exponents: Integers = exponents_of(_largest(numbers, lengths), bits)
    units = np.repeat(exponents, lengths).astype(np.int16)
    return exponents if np.array_equal(np.ldexp(multiples(numbers, units, bits), units), numbers) else None


def n_bytes(form: dict[str, AnyArray]) -> int:
    """The bytes of some arrays."""
    return sum(array.nbytes for array in form.values())


def _entries(values: Floats, counts: Integers) -> dict[str, AnyArray]:
    """Arrays of the entries of rows, by their parts of a name: in the fewest bits that hold them."""
    own = counts[counts > 0]
    for bits in (8, 16):
        units = exponents_of(_largest(values, own), bits)
        small = multiples(values, each := np.repeat(units, own), bits)
        if np.array_equal(np.ldexp(small, each.astype(np.int16)), values):
            return {"data": small.astype(f"i{bits // 8}"), "counts": least(counts), "exponents": units}
    return {"data": values, "counts": least(counts)}


def _largest(values: Floats, lengths: Integers) -> Floats:
    """The largest size in each row; no row is empty."""
    if not len(lengths):
        return np.zeros(0, dtype=np.float32)
    largest: Floats = np.maximum.reduceat(np.abs(values), np.cumsum(lengths) - lengths)
    return largest
