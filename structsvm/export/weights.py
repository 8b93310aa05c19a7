"""Weights in the forms that the runtime reads: rows, dense or sparse, and numbers, in float32, int8 or int16."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from structsvm.files.weight_rows import BLOCK, units_of_blocks
from structsvm.stored_values import units_of_rows

if TYPE_CHECKING:
    from structsvm.arrays import AnyArray, Floats, Integers
    from structsvm.export.binary import RuntimeFile

__all__ = ["Form", "add_numbers", "form_of"]

FLOATS = 1  # the number of float32 among forms; behind it those of integers of these bits and dtypes:
INTEGERS = ((2, 8, "i1"), (3, 16, "<i2"))
LARGEST_EXPONENT = 111
MOST_LABELS = 1 << 16  # as in structsvm_core.h
MOST_ROWS = (1 << 31) // 12  # sparse ones: MOST_ROOM bytes of extents there


class Form(NamedTuple):
    """Weights as one of the runtime's forms has them."""

    number: int
    arrays: list[tuple[str, AnyArray]]


def form_of(weights: Floats, n_labels: int) -> Form:
    """The smallest form of rows of weights.

    Raises
    ------
    ValueError
        For more labels or more sparse rows than the runtime has.
    """
    if n_labels > MOST_LABELS:
        raise ValueError(
            f"a model of {n_labels:,} labels cannot be exported: the runtime supports no more than {MOST_LABELS:,}"
        )
    form = smallest(weights, n_labels)
    if form.number > 0 and len(weights) > MOST_ROWS:
        raise ValueError(
            f"a model of {len(weights):,} rows of weights cannot be exported: the runtime supports no more than "
            f"{MOST_ROWS:,}; a DependencyParser has 2**row_bits of them"
        )
    return form


def smallest(weights: Floats, n_labels: int) -> Form:
    """The form of the fewest bytes."""
    rows, columns = np.nonzero(weights)
    sizes = np.bincount(rows, minlength=len(weights))
    entries = ("u1" if n_labels <= 256 else "<u2", columns)
    for number, bits, dtype in INTEGERS:
        exponents = units_of_rows(weights, bits)
        heads = None if exponents is None else heads_of(sizes, exponents)
        if exponents is not None and heads is not None:
            small = np.ldexp(weights[rows, columns], -exponents[rows].astype(np.int16))
            return Form(number, [*heads, entries, (dtype, small.astype(dtype))])
    heads = heads_of(sizes, np.zeros(len(weights), dtype=np.int8))
    of_weight = 4 + np.dtype(entries[0]).itemsize
    if heads is None or 4 * weights.size <= heads[-1][1].nbytes + of_weight * len(rows):
        return Form(0, [("<f4", weights)])
    return Form(FLOATS, [*heads, entries, ("<f4", weights[rows, columns])])


def heads_of(sizes: Integers, exponents: Integers) -> list[tuple[str, AnyArray]] | None:
    """The arrays of rows, of which the last has their sizes, and above them the exponents of their units.

    They take 8 or 16 bits; None if they need more.
    """
    some = exponents[sizes > 0].astype(np.int64)
    base, size_bits = int(some.min(initial=LARGEST_EXPONENT)), int(sizes.max(initial=0)).bit_length()
    n_bits = size_bits + int(some.max(initial=base) - base).bit_length()
    if n_bits > 16 or some.max(initial=base) > LARGEST_EXPONENT:
        return None
    heads = sizes | np.where(sizes > 0, exponents.astype(np.int64) - base, 0) << size_bits
    layout = np.array([size_bits, base % (1 << 32)], dtype=np.uint32)
    dtype = "u1" if n_bits <= 8 else "<u2"
    return [("<u4", layout), (dtype, heads.astype(dtype))]


def add_numbers(file: RuntimeFile, numbers: Floats) -> None:
    """Numbers; or those that are not 0, and a bit for each, whichever has fewer bytes."""
    form, values, exponents = values_of(numbers)
    at = np.flatnonzero(numbers)
    bits: Integers = np.zeros(-(-len(numbers) // 32) * 32, dtype=np.uint32)
    bits[at] = 1
    is_sparse = values.itemsize * len(at) + len(bits) // 8 < values.nbytes
    file.add("<u4", [form, len(at) if is_sparse else len(numbers)])
    file.add(values.dtype.str.replace("|", ""), values[at] if is_sparse else values)
    file.add("i1", exponents)
    words = (bits.reshape(-1, 32) << np.arange(32, dtype=np.uint32)).sum(axis=1)
    file.add("<u4", words if is_sparse else [])


def values_of(numbers: Floats) -> tuple[int, AnyArray, Integers]:
    """Numbers in the fewest bits that hold them: the number of the form, their values and the exponents of blocks."""
    for form, bits, dtype in INTEGERS:
        exponents = units_of_blocks(numbers, bits)
        if exponents is not None and exponents.max(initial=0) <= LARGEST_EXPONENT:
            units = np.repeat(exponents, BLOCK)[: len(numbers)].astype(np.int16)
            return form, np.ldexp(numbers, -units).astype(dtype), exponents
    return FLOATS, numbers.astype("<f4"), np.zeros(0, dtype=np.int8)
