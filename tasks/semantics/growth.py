"""Hybrid trees that meet more sentences: new units and words get features, the weights of the old ones go along."""

from __future__ import annotations

from collections.abc import Sequence

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
    words, borders = name_places(old.attributes, new.attributes), name_places(old.borders, new.borders)
    present = words[0][words[0] < before.n_present], words[1][words[0] < before.n_present]
    fillers = (np.append(slots[0] + 1, 0), np.append(slots[1] + 1, 0))  # whole meanings fill no unit's slot

    def move(name: str, rows: Places, columns: Places, widths: tuple[int, int]) -> None:
        first, second = getattr(before, name), getattr(after, name)
        to = second + rows[1][:, None] * widths[1] + columns[1]
        out[to] = weights[first + rows[0][:, None] * widths[0] + columns[0]]

    one, two = places([0], [0]), places([0, 1], [0, 1])
    move("word", units, words, (before.n_attributes, after.n_attributes))
    for name, rows in (("begin", kinds), ("end", kinds), ("slot_begin", slots), ("slot_end", slots)):
        move(name, rows, borders, (before.n_borders, after.n_borders))
    for name in ("wordless", "empty"):
        move(name, kinds, one, (1, 1))
    move("order", slots, two, (2, 2))
    move("pair", fillers, kinds, (before.n_units, after.n_units))
    move("present", kinds, present, (before.n_present, after.n_present))
    if before.n_inside:
        of_words = np.append(present[0], before.n_present), np.append(present[1], after.n_present)
        move("inside", kinds, of_words, (before.n_inside, after.n_inside))
    return out


def places(old: list[int], new: list[int]) -> Places:
    """Places from two lists of equal length."""
    return np.array(old, dtype=np.int64), np.array(new, dtype=np.int64)


def unit_places(old: HybridTrees, new: HybridTrees) -> Places:
    """Places of units, and of kinds that are no unit: the rows of features of words."""
    found = {u: new.units.number[unit] for u, unit in enumerate(old.units.units) if unit in new.units.number}
    for u, v in [*found.items()]:
        if old.units.kinds[u] != u and new.units.kinds[v] != v:
            found[old.units.kinds[u]] = new.units.kinds[v]
    return places([*found], [*found.values()])


def kind_places(old: HybridTrees, new: HybridTrees) -> Places:
    """Places of kinds: the rows of all other features."""
    number = new.units.number
    pairs = {
        old.units.kinds[u]: new.units.kinds[number[unit]] for u, unit in enumerate(old.units.units) if unit in number
    }
    return places([*pairs], [*pairs.values()])


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
        (old.units.units, old.units.kinds, old.units.fillers) == (new.units.units, new.units.kinds, new.units.fillers)
        and (list(old.attributes), list(old.borders)) == (list(new.attributes), list(new.borders))
        and (old.lexicon.calls, old.lexicon.always, old.lexicon.new, old.lexicon.looks)
        == (new.lexicon.calls, new.lexicon.always, new.lexicon.new, new.lexicon.looks)
    )
