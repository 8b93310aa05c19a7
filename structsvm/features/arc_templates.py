"""Templates of the features of dependency arcs and of pairs of arcs, as text: what they see of the words they join."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from structsvm.features.dense import LANES, padded

__all__ = ["ArcTemplates", "PairTemplates"]

MOST_BETWEEN, MOST_JOINT = 8, 16
_PART = re.compile(r"([hmb])([+-][1-9])?\.(\w+)")
_DISTANCE = {"dir": 1, "dist": 2}


class ArcTemplate(NamedTuple):
    """A template: (offset, column) of the head and of the word below, a distance, a column in between."""

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

    A column may have vectors instead of values. A template of one, ``h.COLUMN`` or ``m+1.COLUMN``, stands alone or
    beside ``dir``, among those of labels: it has a row of weights per number of the vector, and the scores are their
    sum, each times its number; the root, and what is beyond the sentence, have zeros.

    Parameters
    ----------
    columns : sequence of str
        Names of the columns of words.
    arcs, labels : sequences of str
        Templates of the score of an arc whatever its label, and of the scores of labels. Those of labels that see one
        side only, and no ``dist``, are summed per word, not per arc: they cost next to nothing.
    vectors : mapping of str to int, optional
        The columns that have vectors, and how many numbers. They stand after the others.

    Attributes
    ----------
    n_codes : int
        How wide the codes of words are.
    n_number_rows : int
        Rows of weights of numbers.
    sizes : tuple of int
        Numbers of templates: of arcs; of labels that see the word below alone, the head alone, both.
    width : int
        Their sum, as a multiple of 8.
    arrays : dict of ndarray
        The templates as `structsvm.oracles.dependency._dependency` has them.

    Raises
    ------
    ValueError
        For a malformed part, an unknown column, or too many of a kind; the message has the template.

    Examples
    --------
    >>> from structsvm.features.arc_templates import ArcTemplates
    >>> templates = ArcTemplates(["form", "upos"], ["h.upos m.upos dist"], ["m.form", "h.upos m.upos"])
    >>> templates.sizes
    (1, 1, 0, 1)
    """

    def __init__(
        self,
        columns: Sequence[str],
        arcs: Sequence[str],
        labels: Sequence[str],
        vectors: Mapping[str, int] | None = None,
    ) -> None:
        for text in (*arcs, *labels):
            if not isinstance(text, str):
                raise ValueError(f"a template must be a str, got {text!r:.80}")
        self.columns, self.arcs, self.labels = (tuple(dict.fromkeys(texts)) for texts in (columns, arcs, labels))
        self.vectors, self.n_number_rows = dict(vectors or {}), 0
        self.n_codes = len(self.columns) + sum(self.vectors.values())
        of_vectors: list[tuple[int, ...]] = []
        of_arcs = sorted((self._read(text) for text in self.arcs), key=lambda t: t.between >= 0)
        kinds: tuple[list[ArcTemplate], list[ArcTemplate], list[ArcTemplate]] = ([], [], [])
        for text in self.labels:
            seen = self._read_vector(text)
            if seen is not None:
                of_vectors.append((*seen, self.n_number_rows))
                self.n_number_rows += seen[3] * (1 + seen[4])
                continue
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
        self.width = padded(max(len(every), 1))
        every += [ArcTemplate((), (), 0, -1)] * (self.width - len(every))
        self.arrays: dict[str, NDArray[np.int32]] = {
            "distance": np.array([one.distance for one in every], dtype=np.int32),
            "between": np.array([one.between for one in every], dtype=np.int32),
        }
        for name in ("head", "below"):
            _add_parts(self.arrays, name, [getattr(one, name) for one in every])
        if of_vectors:
            self.arrays["vectors"] = np.array(of_vectors, dtype=np.int32)

    def _read_vector(self, text: str) -> tuple[int, ...] | None:
        """Parse a template of vectors; None if `text` is another one.

        Returns whether it sees the head, the offset, the first number among the codes, how many, and whether each
        direction has rows.
        """
        parts = text.split()
        found = [part for part in map(_PART.fullmatch, parts) if part and part[3] in self.vectors]
        if not found:
            return None
        side, offset, name = found[0].groups()
        if side == "b" or len(found) > 1 or not {*parts} <= {found[0][0], "dir"}:
            raise ValueError(f"template {text!r}: a vector stands alone or beside 'dir', and {name!r} has vectors")
        before = list(self.vectors).index(name)
        first = len(self.columns) + sum(list(self.vectors.values())[:before])
        return side == "h", int(offset or 0), first, self.vectors[name], "dir" in parts

    def _read(self, text: str) -> ArcTemplate:
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
            if found[3] in self.vectors:
                raise ValueError(f"template {text!r}: {found[3]!r} has vectors, which labels alone have templates of")
            if found[3] not in self.columns:
                raise ValueError(f"template {text!r}: no column {found[3]!r}; there are {', '.join(self.columns)}")
            seen = int(found[2] or 0), self.columns.index(found[3])
            if found[1] == "b":
                between = seen[1]
            else:
                (head if found[1] == "h" else below).append(seen)
        if not head and not below and between < 0 and not distance:
            raise ValueError(f"template {text!r}: it sees nothing")
        return ArcTemplate(tuple(head), tuple(below), distance, between)


class PairTemplate(NamedTuple):
    """A template of pairs: (offset, column) of each of its words; bits for labels and sides."""

    words: tuple[tuple[tuple[int, int], ...], ...]
    sees: int


# The words that templates of pairs of arcs see; the bit of one that sees the sides of its arcs.
ROLES = "ghtsm"
SEES_SIDES = 1 << len(ROLES)
_PAIR_PART = re.compile(r"([ghtsm])([+-][1-9])?\.(\w+)")


class PairTemplates:
    """Templates of the features of pairs of arcs, in the language of `ArcTemplates`.

    A template may see five words: a word ``m``, its head ``h``, the words ``s`` and ``t`` before it among those below
    the same head on its side (``s`` next to it, both nearer to the head), and the head ``g`` of its head. Where there
    is no such word, and where ``m`` is the end of a side, columns and labels have a value of their own.

    =============  ==================================================================================
    part           sees
    =============  ==================================================================================
    ``s.COLUMN``   that column of the word ``s``; ``s-1.COLUMN`` and ``s+2.COLUMN`` of words beside it
    ``s.label``    its label; not of ``g``
    ``dir``        on which side of ``h`` the words stand, and ``h`` of ``g``
    =============  ==================================================================================

    Parameters
    ----------
    columns : sequence of str
        Names of the columns of words.
    texts : sequence of str
        The templates.
    vectors : mapping of str to int, optional
        Columns that have vectors, of so many numbers. They stand after the others, and no template sees them.

    Attributes
    ----------
    n_codes : int
        How wide the codes of words are.
    size : int
        Number of templates.
    arrays : dict of ndarray
        The templates as `structsvm.oracles.dependency._dependency` has them.

    Raises
    ------
    ValueError
        For a malformed part or an unknown column; the message has the template.

    Examples
    --------
    >>> from structsvm.features.arc_templates import PairTemplates
    >>> PairTemplates(["form", "upos"], ["h.upos s.upos m.upos dir", "g.upos h.upos m.upos"]).size
    2
    """

    def __init__(self, columns: Sequence[str], texts: Sequence[str], vectors: Mapping[str, int] | None = None) -> None:
        self.n_codes = len(columns) + sum((vectors or {}).values())
        self.columns, self.texts = tuple(dict.fromkeys(columns)), tuple(dict.fromkeys(texts))
        every = [self._read(text) for text in self.texts]
        self.size = len(every)
        every += [PairTemplate(((),) * len(ROLES), 0)] * (-len(every) % LANES)
        self.arrays: dict[str, NDArray[np.int32]] = {"sees": np.array([one.sees for one in every], dtype=np.int32)}
        _add_parts(self.arrays, "words", [one.words[role] for role in range(len(ROLES)) for one in every])

    def _read(self, text: str) -> PairTemplate:
        words: tuple[list[tuple[int, int]], ...] = ([], [], [], [], [])
        sees = 0
        for part in text.split():
            if part == "dir":
                sees |= SEES_SIDES
                continue
            found = _PAIR_PART.fullmatch(part)
            role = ROLES.find(found[1]) if found else -1
            if found is None or role < 0 or (found[3] == "label" and (found[1] == "g" or found[2])):
                raise ValueError(f"template {text!r}: {part!r} is no part of one of pairs")
            if found[3] == "label":
                sees |= 1 << role
            elif found[3] not in self.columns:
                raise ValueError(f"template {text!r}: no column {found[3]!r}; there are {', '.join(self.columns)}")
            else:
                words[role].append((int(found[2] or 0), self.columns.index(found[3])))
        if not sees and not any(words):
            raise ValueError(f"template {text!r}: it sees nothing")
        return PairTemplate(tuple(map(tuple, words)), sees)


def _add_parts(arrays: dict[str, NDArray[np.int32]], name: str, parts: list[Any]) -> None:
    """Add lists of (offset, column) to the arrays, one after the other, and where each begins."""
    arrays[f"{name}_ptr"] = np.cumsum([0, *map(len, parts)]).astype(np.int32)
    flat = [number for seen in parts for part in seen for number in part]
    arrays[f"{name}_parts"] = np.array(flat or [0], dtype=np.int32)
