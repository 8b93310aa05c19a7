"""Rows of weights in the forms that the runtime reads: dense, or sparse of float32, int8 or int16."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from structsvm.stored_values import units_of_rows

if TYPE_CHECKING:
    from structsvm.arrays import AnyArray, Floats

__all__ = ["Form", "form_of"]

LARGEST_EXPONENT = 111
ROWS = 32  # rows of sparse weights whose start is stored
NARROW, WIDE = 255, 65535  # weights of a row of forms 1, 2, 3, and of the same with sizes of 16 bits: 4, 5, 6


class Form(NamedTuple):
    """Weights as one of the runtime's forms has them."""

    number: int
    arrays: list[tuple[str, AnyArray]]


def form_of(weights: Floats, n_labels: int) -> Form:
    """The smallest form of rows of weights."""
    rows, columns = np.nonzero(weights)
    sizes = np.bincount(rows, minlength=len(weights))
    longest = sizes.max(initial=0)
    if longest > WIDE:
        return Form(0, [("<f4", weights)])
    wide, size_type = (0, "u1") if longest <= NARROW else (3, "<u2")
    column_type = "u1" if n_labels <= 256 else "<u2"
    sparse = [("<u4", (np.cumsum(sizes) - sizes)[::ROWS]), (size_type, sizes), (column_type, columns)]
    for number, bits, dtype in ((2, 8, "i1"), (3, 16, "<i2")):
        exponents = units_of_rows(weights, bits)
        if exponents is not None and exponents.max(initial=0) <= LARGEST_EXPONENT:
            small = np.ldexp(weights[rows, columns], -exponents[rows].astype(np.int16))
            return Form(number + wide, [*sparse, (dtype, small.astype(dtype)), ("i1", exponents)])
    of_row, of_weight = np.dtype(size_type).itemsize, 4 + np.dtype(column_type).itemsize
    if 4 * weights.size <= of_row * len(sizes) + of_weight * len(rows):
        return Form(0, [("<f4", weights)])
    return Form(1 + wide, [*sparse, ("<f4", weights[rows, columns])])
