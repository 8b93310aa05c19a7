"""Functions of a token's place in its sequence: ``%start[0,0]``, ``%numbers[0,0]``.

Each maps tokens to codes, and codes to strings: a list depends on the vocabulary of the column, so that pieces of a
file that share it have the same one; a tuple is the same for all columns. A number is a string with a digit; marks are
those that a string ends in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from structsvm.features.functions.strings import FUNCTIONS

if TYPE_CHECKING:
    from typing import TypeAlias

    from structsvm.arrays import Integers

    # The code of each token, and the string of each code.
    Coded: TypeAlias = tuple[Integers, Sequence[str]]

# Positions and counts from these on share a string, such as "8+".
MOST_POSITIONS, MOST_NUMBERS, MOST_FIELDS = 8, 2, 4
# Lengths of sequences at which another string begins.
SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 25, 32, 40, 50, 65)
TENTHS = tuple(map(str, range(10)))
NONE = "none"


class Placed:
    """Tokens of one column in their sequences.

    Parameters
    ----------
    ids : ndarray of shape (n_tokens,), int32
        The string of each token.
    offsets : ndarray of shape (n_sequences + 1,), int64
    words : list of str
        The strings of the column.

    Attributes
    ----------
    first, size, start : ndarray of shape (n_tokens,)
        Of each token: the first token of its sequence, the length of that, and how many tokens stand before it.
    """

    def __init__(self, ids: Integers, offsets: NDArray[np.int64], words: list[str]) -> None:
        self.ids, self.words = ids, words
        lengths = np.diff(offsets)
        self.first, self.size = np.repeat(offsets[:-1], lengths), np.repeat(lengths, lengths)
        self.start = np.arange(len(ids)) - self.first

    def coded(self, values: list[str]) -> Coded:
        """Codes of tokens for a value per string of the column; the first code is "none", whether met or not."""
        code_of = {value: k for k, value in enumerate(dict.fromkeys([NONE, *values]))}
        return np.array([code_of[value] for value in values], dtype=np.int64)[self.ids], list(code_of)

    @cached_property
    def marks(self) -> Coded:
        """The marks that each token ends in."""
        return self.coded([mark or NONE for mark in FUNCTIONS["closing"](self.words)])

    @property
    def numbers(self) -> NDArray[np.bool_]:
        """Whether each token has a digit."""
        return np.array([re.search(r"\d", word) is not None for word in self.words], dtype=bool)[self.ids]

    def around(self, counted: NDArray[np.bool_]) -> tuple[Integers, Integers]:
        """How many tokens are counted before each one in its sequence, and behind it."""
        running = np.cumsum(np.append(0, counted))
        return running[:-1] - running[self.first], running[self.first + self.size] - running[1:]


def limited(counts: Integers, most: int) -> Coded:
    """Counts as strings, from `most` on one string."""
    return np.minimum(counts, most), (*map(str, range(most)), f"{most}+")


def paired(one: Coded, other: Coded) -> Coded:
    """Two codes as one, with a dash between their strings."""
    (a, names), (b, more) = one, other
    return a * len(more) + b, tuple(map("-".join, product(names, more)))


def _start(placed: Placed) -> Coded:
    """Tokens before it."""
    return limited(placed.start, MOST_POSITIONS)


def _end(placed: Placed) -> Coded:
    """Tokens behind it."""
    return limited(placed.size - 1 - placed.start, MOST_POSITIONS)


def _tenth(placed: Placed) -> Coded:
    """The tenth of the sequence that it stands in."""
    return 10 * placed.start // placed.size, TENTHS


def _size(placed: Placed) -> Coded:
    """The length of the sequence."""
    return np.searchsorted(SIZES, placed.size, side="right") - 1, tuple(map(str, SIZES))


def _numbers(placed: Placed) -> Coded:
    """Numbers before it and behind it: "1-0" behind the only one."""
    before, behind = placed.around(placed.numbers)
    return paired(limited(before, MOST_NUMBERS), limited(behind, MOST_NUMBERS))


def _fields(placed: Placed) -> Coded:
    """Tokens that end in marks other than a full stop, before it and from it on."""
    marks, names = placed.marks
    separates = np.array([name not in (NONE, ".") for name in names])[marks]
    before, behind = placed.around(separates)
    return paired(limited(before, MOST_FIELDS), limited(behind + separates, MOST_FIELDS))


def _again(placed: Placed) -> Coded:
    """Whether strings of its pattern stand in the sequence once, or it is the first of them, or comes again."""
    patterns, names = placed.coded([pattern or NONE for pattern in FUNCTIONS["pattern"](placed.words)])
    keys = placed.first * len(names) + patterns
    _, first, which, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    is_first = first[which] == np.arange(len(keys))
    return np.where(counts[which] == 1, 0, 2 - is_first), ("once", "first", "again")


def _before(placed: Placed) -> Coded:
    """The last marks before it."""
    marks, names = placed.marks
    places = np.where(marks > 0, np.arange(len(marks)), -1)
    last = np.maximum.accumulate(np.append(-1, places))[:-1]
    return np.where(last >= placed.first, marks[last], 0), names


def _behind(placed: Placed) -> Coded:
    """The next marks, its own among them."""
    marks, names = placed.marks
    places = np.where(marks > 0, np.arange(len(marks)), len(marks))
    coming = np.minimum.accumulate(places[::-1])[::-1]
    is_within = coming < placed.first + placed.size
    return np.where(is_within, np.append(marks, 0)[coming], 0), names


PLACES: dict[str, Callable[[Placed], Coded]] = {
    "start": _start,
    "end": _end,
    "tenth": _tenth,
    "size": _size,
    "numbers": _numbers,
    "fields": _fields,
    "again": _again,
    "before": _before,
    "behind": _behind,
}
