"""Numbers of features in model files: as if each unit and kind had all features, whatever names have of their own."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from structsvm.oracles.hybrid import rows_of_kinds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from structsvm.oracles.hybrid import HybridTrees
    from structsvm.structures.meaning_units import MeaningUnits


def blocks(n_kinds: int, n_slots: int, n_attributes: int, n_present: int, n_borders: int, n_inside: int) -> list[int]:
    """Sizes of the blocks of a file, in the order of a `Layout`."""
    of_kinds, of_slots = n_kinds * n_borders, n_slots * n_borders
    sizes = [n_kinds * n_attributes, of_kinds, of_kinds, of_slots, of_slots, n_kinds, n_kinds, 2 * n_slots]
    return [*sizes, (n_slots + 1) * n_kinds, n_kinds * n_present, n_kinds * n_inside]


def size_in_files(units: MeaningUnits, attributes: Sequence[str], n_borders: int, *, inside: bool) -> int:
    """Number of features that a file may name."""
    n_present = sum(name.startswith("w:") for name in attributes)
    n_inside = n_present + 1 if inside else 0
    return sum(blocks(units.n_kinds, len(units.slots), len(attributes), n_present, n_borders, n_inside))


def numbers_in_files(hybrid: HybridTrees) -> NDArray[np.int64]:
    """The number of each feature in a file."""
    lay, n_kinds = hybrid.layout, hybrid.units.n_kinds
    n_slots = len(hybrid.slot_rows)
    sizes = blocks(n_kinds, n_slots, lay.n_attributes, lay.n_present, lay.n_borders, lay.n_inside)
    kinds = np.flatnonzero(lay.rows >= 0)
    slots = np.unique(hybrid.slot_rows, return_index=True)[1]  # the first of those that share a row
    fillings = n_kinds * np.append(0, slots + 1)[:, None] + kinds
    rows_and_widths = [
        *((kinds, width) for width in (lay.n_attributes, lay.n_borders, lay.n_borders)),
        *((slots, width) for width in (lay.n_borders, lay.n_borders)),
        *((kinds, width) for width in (1, 1)),
        (slots, 2),
        (fillings.ravel(), 1),
        *((kinds, width) for width in (lay.n_present, lay.n_inside)),
    ]
    found = [
        (first + rows[:, None] * width + np.arange(width)).ravel()
        for first, (rows, width) in zip(accumulate([0, *sizes[:-1]]), rows_and_widths, strict=True)
    ]
    names = np.repeat(np.flatnonzero(lay.rows < 0), np.diff(lay.name_ptr))
    return np.concatenate([*found, names * lay.n_attributes + lay.name_columns])


def stored_columns(units: MeaningUnits, n_attributes: int, numbers: NDArray[np.int64]) -> dict[int, list[int]]:
    """The attributes of each name's own features among those that a file has."""
    rows, names = rows_of_kinds(units)
    unit, attribute = np.divmod(numbers[numbers < len(rows) * n_attributes], n_attributes)
    found: dict[int, list[int]] = {u: [] for u in names}
    for u, k in sorted(zip(unit[rows[unit] < 0].tolist(), attribute[rows[unit] < 0].tolist(), strict=True)):
        found[u].append(k)
    return found


def from_file(hybrid: HybridTrees, numbers: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights of all features from those that a file has; what no feature has is left out."""
    known = numbers_in_files(hybrid)
    order = np.argsort(known)
    place = order[np.minimum(np.searchsorted(known, numbers, sorter=order), len(known) - 1)]
    weights = np.zeros(len(known))
    is_known = known[place] == numbers
    weights[place[is_known]] = values[is_known]
    return weights


def to_file(hybrid: HybridTrees, weights: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Numbers, ascending, and values of the weights that are not 0, and of all of names' own features."""
    is_stored = weights != 0.0
    is_stored[hybrid.layout.name :] = True
    numbers = numbers_in_files(hybrid)[is_stored]
    order = np.argsort(numbers)
    return numbers[order], weights[is_stored][order]
