"""Rows of weights in the forms that the runtime reads: dense, or sparse of float32, int8 or int16."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from structsvm.stored_values import units_of_rows

if TYPE_CHECKING:
    from structsvm.arrays import AnyArray, Floats

__all__ = ["Form", "form_of"]

LARGEST_EXPONENT = 111
ROWS, MOST_OF_A_ROW = 32, 255  # rows of sparse weights whose start is stored, and weights of a row


class Form(NamedTuple):
    """Weights as one of the runtime's forms has them."""

    number: int
    arrays: list[tuple[str, AnyArray]]


def form_of(weights: Floats, n_labels: int) -> Form:
    """The smallest form of rows of weights."""
    rows, columns = np.nonzero(weights)
    sizes = np.bincount(rows, minlength=len(weights))
    if sizes.max(initial=0) > MOST_OF_A_ROW:
        return Form(0, [("<f4", weights)])
    column_type = "u1" if n_labels <= 256 else "<u2"
    sparse = [("<u4", (np.cumsum(sizes) - sizes)[::ROWS]), ("u1", sizes), (column_type, columns)]
    for number, bits, dtype in ((2, 8, "i1"), (3, 16, "<i2")):
        exponents = units_of_rows(weights, bits)
        if exponents is not None and exponents.max(initial=0) <= LARGEST_EXPONENT:
            small = np.ldexp(weights[rows, columns], -exponents[rows].astype(np.int16))
            return Form(number, [*sparse, (dtype, small.astype(dtype)), ("i1", exponents)])
    size_of_column = 1 if n_labels <= 256 else 2
    if 4 * weights.size <= len(sizes) + len(rows) * (4 + size_of_column):
        return Form(0, [("<f4", weights)])
    return Form(1, [*sparse, ("<f4", weights[rows, columns])])
