"""Parts of many outputs by column: what is counted along thresholds is counted for all outputs at once.

A part is three numbers: two for its place (begin and end, word and head, node) and one for its label. Tuples and names
are made of those parts alone that are given out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from structsvm.arrays import Floats, Integers

# The label of a true part that the model does not know: no output has it.
UNSEEN = -1
# Parts as users have them, from their columns.
Form: TypeAlias = "Callable[[list[int], list[int], list[Hashable]], list[Hashable]]"


def spans(first: list[int], second: list[int], names: list[Hashable]) -> list[Hashable]:
    """Parts ``(start, stop, label)``."""
    return list(zip(first, second, names, strict=True))


def arcs(first: list[int], second: list[int], names: list[Hashable]) -> list[Hashable]:
    """Parts ``(word, head)``."""
    return list(zip(first, second, strict=True))


def nodes(first: list[int], second: list[int], names: list[Hashable]) -> list[Hashable]:
    """Parts ``(node, label)``."""
    return list(zip(first, names, strict=True))


def names_alone(first: list[int], second: list[int], names: list[Hashable]) -> list[Hashable]:
    """Parts that are labels."""
    return names


@dataclass(frozen=True, eq=False)
class PartTable:
    """Parts of outputs, each once; iterating gives a dict of parts and probabilities per output.

    Attributes
    ----------
    offsets : int64 array (n_outputs + 1,)
        The parts of output i are those from ``offsets[i]`` to ``offsets[i + 1]``.
    first, second, label : int64 arrays (n_parts,)
        The place, from 0 on, and the number of the label, or `UNSEEN`.
    chance : float64 array (n_parts,)
        The probability; 1 for true parts.
    labels : list
    form : callable
        Makes parts of columns.
    """

    offsets: NDArray[np.int64]
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    label: NDArray[np.int64]
    chance: NDArray[np.float64]
    labels: Sequence[Hashable]
    form: Form

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[dict[Hashable, float]]:
        flat = list(zip(self.parts(np.arange(len(self.first))), self.chance.tolist(), strict=True))
        return (dict(flat[a:b]) for a, b in pairwise(self.offsets.tolist()))

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of parts of each output."""
        return np.diff(self.offsets)

    @property
    def output(self) -> NDArray[np.int64]:
        """The number of each part's output."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def parts(self, chosen: Integers) -> list[Hashable]:
        """Some parts as users have them."""
        names = [self.labels[k] if k != UNSEEN else (UNSEEN,) for k in self.label[chosen].tolist()]
        return self.form(self.first[chosen].tolist(), self.second[chosen].tolist(), names)

    def chosen(self, is_chosen: NDArray[np.bool_]) -> list[list[Hashable]]:
        """The chosen parts of each output, in their order."""
        ends = np.append(0, np.cumsum(is_chosen))[self.offsets]
        flat = self.parts(np.flatnonzero(is_chosen))
        return [flat[a:b] for a, b in pairwise(ends.tolist())]

    def at(self, places: NDArray[np.bool_] | Integers, offsets: NDArray[np.int64]) -> PartTable:
        """Other parts of the columns."""
        columns = {name: getattr(self, name)[places] for name in ("first", "second", "label", "chance")}
        return replace(self, offsets=offsets, **columns)

    def keep(self, is_kept: NDArray[np.bool_]) -> PartTable:
        """Some of the parts, of all outputs."""
        return self.at(is_kept, np.append(0, np.cumsum(is_kept))[self.offsets])

    def between(self, first: int, last: int) -> PartTable:
        """The parts of outputs that follow one another, from `first` to before `last`."""
        ends = self.offsets[first : last + 1]
        return self.at(np.arange(ends[0], ends[-1]), ends - ends[0])

    def by_chance(self) -> PartTable:
        """The parts of each output from the most probable one on."""
        return self.at(np.lexsort((-self.chance, self.output)), self.offsets)

    def take(self, outputs: NDArray[np.bool_]) -> PartTable:
        """Some of the outputs, with all their parts."""
        if outputs.all():
            return self
        return self.at(np.repeat(outputs, self.sizes), np.append(0, np.cumsum(self.sizes[outputs])))

    def frozen(self) -> list[frozenset[Hashable]]:
        """The parts of each output as sets."""
        return list(map(frozenset, self))


def table_of(
    offsets: Integers,
    first: Integers,
    second: Integers | None,
    label: Integers | None,
    labels: Sequence[Hashable],
    form: Form,
    chance: Floats | None = None,
) -> PartTable:
    """A table; columns that are None are 0, and probabilities 1."""
    n = len(first)
    first, second, label = (
        np.zeros(n, dtype=np.int64) if own is None else np.asarray(own, dtype=np.int64)
        for own in (first, second, label)
    )
    p = np.ones(n) if chance is None else np.asarray(chance, dtype=np.float64)
    return PartTable(np.asarray(offsets, dtype=np.int64), first, second, label, p, labels, form)


def places_in(likely: PartTable, true: PartTable) -> NDArray[np.int64]:
    """The place of each true part among the likely ones, -1 where it is none of them."""
    pairs = (
        (likely.output, true.output),
        (likely.first, true.first),
        (likely.second, true.second),
        (likely.label + 1, renumbered(true, likely.labels) + 1),
    )
    keys = joined([np.concatenate(pair) for pair in pairs])
    keys, asked = np.split(keys, [len(likely.first)])
    found = np.full(len(asked), -1, dtype=np.int64)
    if len(asked):
        # Spans come in the order of their keys.
        order = np.arange(len(asked)) if (asked[1:] >= asked[:-1]).all() else np.argsort(asked)
        at = order[np.searchsorted(asked, keys, sorter=order).clip(max=len(order) - 1)]
        same = np.flatnonzero(asked[at] == keys)
        found[at[same]] = same
    return found


def is_among(likely: PartTable, true: PartTable) -> NDArray[np.bool_]:
    """Whether each likely part is true."""
    found, places = np.zeros(len(likely.first), dtype=bool), places_in(likely, true)
    found[places[places >= 0]] = True
    return found


def renumbered(table: PartTable, labels: Sequence[Hashable]) -> NDArray[np.int64]:
    """The labels of a table as numbers of other labels; one that is none of these is `UNSEEN`."""
    at = {label: k for k, label in enumerate(labels)}
    return np.array([*(at.get(label, UNSEEN) for label in table.labels), UNSEEN], dtype=np.int64)[table.label]


def joined(columns: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """One number for each row of columns of numbers from 0 on, the same for equal rows alone."""
    keys = columns[0]
    for own in columns[1:]:
        size = int(own.max(initial=0)) + 1
        if int(keys.max(initial=0)) >= np.iinfo(np.int64).max // size:
            keys = np.unique(keys, return_inverse=True)[1]
        keys = keys * size + own
    return keys
