"""Hybrid trees that meet more sentences: new units and words get features, the weights of the old ones go along."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from structsvm.oracles.hybrid import HybridTrees

# Places in an old array, and those in a new one.
Places = tuple[NDArray[np.int64], NDArray[np.int64]]


def carried(
    old: HybridTrees, weights: NDArray[np.float64], new: HybridTrees, base: NDArray[np.float64]
) -> NDArray[np.float64]:
    """`base`, the weights that the features of `new` begin with, but for those that `old` has, too."""
    out = base.copy()
    before, after = old.layout, new.layout
    units, kinds, slots = unit_places(old, new), kind_places(old, new), slot_places(old, new)
    slots = np.array(old.slot_rows, dtype=np.int64)[slots[0]], np.array(new.slot_rows, dtype=np.int64)[slots[1]]
    rows = before.rows[kinds[0]].astype(np.int64), after.rows[kinds[1]].astype(np.int64)
    words, borders = name_places(old.attributes, new.attributes), name_places(old.borders, new.borders)
    present = words[0][words[0] < before.n_present], words[1][words[0] < before.n_present]
    fillers = (np.append(slots[0] + 1, 0), np.append(slots[1] + 1, 0))  # whole meanings fill no unit's slot

    def move(name: str, rows: Places, columns: Places, widths: tuple[int, int]) -> None:
        first, second = getattr(before, name), getattr(after, name)
        to = second + rows[1][:, None] * widths[1] + columns[1]
        out[to] = weights[first + rows[0][:, None] * widths[0] + columns[0]]

    # Words of which a name has no feature weighed nothing.
    of_units, own = owned(new, units[1])
    column = np.full(after.n_attributes, -1)
    column[words[1]] = words[0]
    of_units, own = of_units[column[own] >= 0], own[column[own] >= 0]
    of_old = old.word_features(units[0][of_units], column[own])
    out[new.word_features(units[1][of_units], own)] = np.where(of_old < 0, 0.0, weights[of_old])
    one, two = places([0], [0]), places([0, 1], [0, 1])
    for name, of_block in (("begin", rows), ("end", rows), ("slot_begin", slots), ("slot_end", slots)):
        move(name, of_block, borders, (before.n_borders, after.n_borders))
    for name in ("wordless", "empty"):
        move(name, rows, one, (1, 1))
    move("order", slots, two, (2, 2))
    move("pair", fillers, rows, (before.n_rows, after.n_rows))
    move("present", rows, present, (before.n_present, after.n_present))
    if before.n_inside:
        of_words = np.append(present[0], before.n_present), np.append(present[1], after.n_present)
        move("inside", rows, of_words, (before.n_inside, after.n_inside))
    return out


def owned(hybrid: HybridTrees, units: NDArray[np.int64]) -> Places:
    """All pairs of one of some units, by its place among them, and an attribute that it has features of."""
    n = hybrid.layout.n_attributes
    columns = [hybrid.columns.get(u, range(n)) for u in units.tolist()]
    ends = np.cumsum([0, *map(len, columns)])
    return np.repeat(np.arange(len(units)), np.diff(ends)), np.array([*chain.from_iterable(columns)], dtype=np.int64)


def places(old: list[int], new: list[int]) -> Places:
    """Places from two lists of equal length."""
    return np.array(old, dtype=np.int64), np.array(new, dtype=np.int64)


def unit_places(old: HybridTrees, new: HybridTrees) -> Places:
    """Ids of units, and of kinds that are no unit: those with features of their own words."""
    found = {u: new.units.number[unit] for u, unit in enumerate(old.units.units) if unit in new.units.number}
    for u, v in [*found.items()]:
        if old.units.kinds[u] != u and new.units.kinds[v] != v:
            found[old.units.kinds[u]] = new.units.kinds[v]
    return places([*found], [*found.values()])


def kind_places(old: HybridTrees, new: HybridTrees) -> Places:
    """Ids of kinds: those with all other features. Kinds that were one have its features, each."""
    number = new.units.number
    pairs = {
        new.units.kinds[number[unit]]: old.units.kinds[u] for u, unit in enumerate(old.units.units) if unit in number
    }
    return places([*pairs.values()], [*pairs])


def slot_places(old: HybridTrees, new: HybridTrees) -> Places:
    """Places of slots."""
    found = {}
    for slot, (u, s) in enumerate(old.units.slots):
        v = new.units.number.get(old.units.units[u])
        if v is not None:
            found[slot] = new.units.first_slot[v] + s
    return places([*found], [*found.values()])


def name_places(old: dict[str, int], new: dict[str, int]) -> Places:
    """Places of attributes."""
    shared: Sequence[str] = [name for name in old if name in new]
    return places([old[name] for name in shared], [new[name] for name in shared])


def same(old: HybridTrees, new: HybridTrees) -> bool:
    """Whether units, features and lexicons are the same."""
    return (
        (old.units.units, old.units.kinds, old.units.fillers, old.units.typed, old.lists)
        == (new.units.units, new.units.kinds, new.units.fillers, new.units.typed, new.lists)
        and (list(old.attributes), list(old.borders)) == (list(new.attributes), list(new.borders))
        and old.columns == new.columns
        and (old.lexicon.calls, old.lexicon.always, old.lexicon.new, old.lexicon.looks, old.lexicon.readings)
        == (new.lexicon.calls, new.lexicon.always, new.lexicon.new, new.lexicon.looks, new.lexicon.readings)
    )
