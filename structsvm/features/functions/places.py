"""Functions of a token's place in its sequence: ``%start[0,0]``, ``%numbers[0,0]``.

Each maps tokens to codes, and codes to strings: a list depends on the vocabulary of the column, so that pieces of a
file that share it have the same one; a tuple is the same for all columns. A number is a string with a digit; marks are
those that a string ends in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from structsvm.features._columns import counts_around, marks_around, places_of, recurring
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
REACHED, LENGTHS = np.array(SIZES, dtype=np.int64), tuple(map(str, SIZES))
TENTHS = tuple(map(str, range(10)))
DIGIT = re.compile(r"\d")
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
    """

    def __init__(self, ids: Integers, offsets: NDArray[np.int64], words: list[str]) -> None:
        self.ids, self.offsets, self.words = ids, offsets, words

    def coded(self, values: list[str]) -> Coded:
        """Codes of tokens for a value per string of the column; the first code is "none", whether met or not."""
        code_of = {value: k for k, value in enumerate(dict.fromkeys([NONE, *values]))}
        return np.array([code_of[value] for value in values], dtype=np.int64)[self.ids], list(code_of)

    @cached_property
    def places(self) -> NDArray[np.int32]:
        """Codes of the tokens before and behind each one, of its tenth, and of the length of its sequence."""
        return places_of(self.offsets, MOST_POSITIONS, REACHED)

    @cached_property
    def marks(self) -> Coded:
        """The marks that each token ends in."""
        return self.coded([mark or NONE for mark in FUNCTIONS["closing"](self.words)])

    @cached_property
    def marks_around(self) -> Integers:
        """The last marks before each token, and the next from it on."""
        return marks_around(self.offsets, self.marks[0])

    @property
    def numbers(self) -> NDArray[np.bool_]:
        """Whether each token has a digit."""
        return np.array([DIGIT.search(word) is not None for word in self.words], dtype=bool)[self.ids]

    def around(self, counted: NDArray[np.bool_]) -> Integers:
        """How many tokens are counted before each one in its sequence, and behind it."""
        return counts_around(self.offsets, counted.view(np.uint8))


@cache
def limited(most: int) -> tuple[str, ...]:
    """The strings of counts, from `most` on one."""
    return (*map(str, range(most)), f"{most}+")


@cache
def paired(most: int) -> tuple[str, ...]:
    """The strings of two counts, with a dash between them."""
    return tuple(map("-".join, product(limited(most), repeat=2)))


def both(counts: Integers, most: int) -> Coded:
    """Two rows of counts as one code."""
    before, behind = np.minimum(counts, most)
    return before * (most + 1) + behind, paired(most)


def _start(placed: Placed) -> Coded:
    """Tokens before it."""
    return placed.places[0], limited(MOST_POSITIONS)


def _end(placed: Placed) -> Coded:
    """Tokens behind it."""
    return placed.places[1], limited(MOST_POSITIONS)


def _tenth(placed: Placed) -> Coded:
    """The tenth of the sequence that it stands in."""
    return placed.places[2], TENTHS


def _size(placed: Placed) -> Coded:
    """The length of the sequence."""
    return placed.places[3], LENGTHS


def _numbers(placed: Placed) -> Coded:
    """Numbers before it and behind it: "1-0" behind the only one."""
    return both(placed.around(placed.numbers), MOST_NUMBERS)


def _fields(placed: Placed) -> Coded:
    """Tokens that end in marks other than a full stop, before it and from it on."""
    marks, names = placed.marks
    separates = np.array([name not in (NONE, ".") for name in names])[marks]
    counts = placed.around(separates)
    counts[1] += separates
    return both(counts, MOST_FIELDS)


def _again(placed: Placed) -> Coded:
    """Whether strings of its pattern stand in the sequence once, or it is the first of them, or comes again."""
    patterns, names = placed.coded([pattern or NONE for pattern in FUNCTIONS["pattern"](placed.words)])
    return recurring(placed.offsets, patterns, len(names)), ("once", "first", "again")


def _before(placed: Placed) -> Coded:
    """The last marks before it."""
    return placed.marks_around[0], placed.marks[1]


def _behind(placed: Placed) -> Coded:
    """The next marks, its own among them."""
    return placed.marks_around[1], placed.marks[1]


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
