"""Templates of the features of dependency arcs, as text: what they see of a head, a word below it, and in between."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["ArcTemplates"]

LANES = 8
MOST_BETWEEN, MOST_JOINT = 8, 16
_PART = re.compile(r"([hmb])([+-][1-9])?\.(\w+)")
_DISTANCE = {"dir": 1, "dist": 2}


class Template(NamedTuple):
    """What one template sees: (offset, column) of the head and of the word below, a distance, a column in between."""

    head: tuple[tuple[int, int], ...]
    below: tuple[tuple[int, int], ...]
    distance: int
    between: int


class ArcTemplates:
    """Templates of a parser's features.

    A template is one line of text, such as ``h.upos h+1.upos m.form dist``: parts side by side, conjoined.

    =============  =================================================================================
    part           sees
    =============  =================================================================================
    ``h.COLUMN``   that column of the head; ``h-1.COLUMN`` and ``h+2.COLUMN`` of words beside it
    ``m.COLUMN``   the same of the word below it
    ``b.COLUMN``   each distinct value between the two, as a feature of its own (arcs only)
    ``dir``        whether the head stands to the left or to the right, or is the root
    ``dist``       that, and how far away: 1, 2, 3, 4, 5, 6 to 10, more
    =============  =================================================================================

    Parameters
    ----------
    columns : sequence of str
        Names of the columns of words.
    arcs, labels : sequences of str
        Templates of the score of an arc whatever its label, and of the scores of labels. Those of labels that see one
        side only, and no ``dist``, are summed per word, not per arc: they cost next to nothing.

    Attributes
    ----------
    sizes : tuple of int
        Numbers of templates: of arcs; of labels that see the word below alone, the head alone, both.
    width : int
        Their sum, as a multiple of 8.
    arrays : dict of ndarray
        The templates as `structsvm.oracles._dependency` has them.

    Raises
    ------
    ValueError
        For a malformed part, an unknown column, or too many of a kind; the message has the template.
    """

    def __init__(self, columns: Sequence[str], arcs: Sequence[str], labels: Sequence[str]) -> None:
        self.columns, self.arcs, self.labels = (tuple(dict.fromkeys(texts)) for texts in (columns, arcs, labels))
        of_arcs = sorted((self._read(text) for text in self.arcs), key=lambda t: t.between >= 0)
        kinds: tuple[list[Template], list[Template], list[Template]] = ([], [], [])
        for text in self.labels:
            one = self._read(text)
            if one.between >= 0:
                raise ValueError(f"template {text!r}: labels have no templates of what is between")
            both = (one.head and one.below) or one.distance == 2
            kinds[2 if both else 1 if one.head else 0].append(one)
        n_between = sum(one.between >= 0 for one in of_arcs)
        if n_between > MOST_BETWEEN or len(kinds[2]) > MOST_JOINT:
            raise ValueError(
                f"{n_between} templates of what is between and {len(kinds[2])} of labels that see both sides; there "
                f"may be {MOST_BETWEEN} and {MOST_JOINT}"
            )
        every = [*of_arcs, *kinds[0], *kinds[1], *kinds[2]]
        self.sizes = (len(of_arcs), *map(len, kinds))
        self.width = -(-max(len(every), 1) // LANES) * LANES
        every += [Template((), (), 0, -1)] * (self.width - len(every))
        self.arrays: dict[str, NDArray[np.int32]] = {
            "distance": np.array([one.distance for one in every], dtype=np.int32),
            "between": np.array([one.between for one in every], dtype=np.int32),
        }
        for name in ("head", "below"):
            parts = [getattr(one, name) for one in every]
            self.arrays[f"{name}_ptr"] = np.cumsum([0, *map(len, parts)]).astype(np.int32)
            flat = [number for seen in parts for part in seen for number in part]
            self.arrays[f"{name}_parts"] = np.array(flat or [0], dtype=np.int32)

    def _read(self, text: str) -> Template:
        head: list[tuple[int, int]] = []
        below: list[tuple[int, int]] = []
        distance, between = 0, -1
        for part in text.split():
            found = _PART.fullmatch(part)
            if part in _DISTANCE:
                distance = max(distance, _DISTANCE[part])
                continue
            if found is None or (found[1] == "b" and (found[2] or between >= 0)):
                raise ValueError(f"template {text!r}: {part!r} is no part of one")
            if found[3] not in self.columns:
                raise ValueError(f"template {text!r}: no column {found[3]!r}; there are {', '.join(self.columns)}")
            seen = int(found[2] or 0), self.columns.index(found[3])
            if found[1] == "b":
                between = seen[1]
            else:
                (head if found[1] == "h" else below).append(seen)
        if not head and not below and between < 0 and not distance:
            raise ValueError(f"template {text!r}: it sees nothing")
        return Template(tuple(head), tuple(below), distance, between)
