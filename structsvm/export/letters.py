"""Properties of letters, as Python has them: what the runtime in C needs of Unicode, for functions of strings.

A model has them in a table, so that labels do not depend on the version of Unicode of the machine that predicts.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from structsvm.export.binary import RuntimeFile

__all__ = ["LetterTable"]

PAGE, N_LETTERS = 128, 0x110000
VOWELS = frozenset("aeiou")
DOTTED_LOWER = "i\u0307"
DIGIT, DECIMAL, ALPHA, ALNUM, UPPER, LOWER, TITLE, CASED, IGNORABLE = (1 << k for k in range(9))
BASE_ALPHA, BASE_VOWEL, MORE_VOWELS, DOTTED, SPACE, COMBINING = (1 << k for k in range(9, 15))


def properties_of(letter: str) -> tuple[int, int]:
    """Return ``(flags, shift)``: the properties of a letter, and what its lower case adds to its number."""
    decomposed, lower = unicodedata.normalize("NFD", letter), letter.lower()
    flags = [
        (DIGIT, letter.isdigit()),
        (DECIMAL, letter.isdecimal()),
        (ALPHA, letter.isalpha()),
        (ALNUM, letter.isalnum()),
        (UPPER, letter.isupper()),
        (LOWER, letter.islower()),
        (TITLE, letter.istitle() and not letter.isupper()),
        (CASED, _ends_word(letter)),
        (IGNORABLE, not _ends_word(letter) and _ends_word(f"A{letter}") and not _ends_word(f"1{letter}")),
        (BASE_ALPHA, decomposed[0].isalpha()),
        (BASE_VOWEL, decomposed[0] in VOWELS),
        (MORE_VOWELS, not VOWELS.isdisjoint(decomposed[1:])),
        (DOTTED, lower == DOTTED_LOWER),
        (SPACE, letter.isspace()),
        (COMBINING, unicodedata.category(letter)[0] == "M"),
    ]
    if len(lower) > 1 and lower != DOTTED_LOWER:
        raise ValueError(f"the lower case of {letter!r} has {len(lower)} letters, which the runtime does not support")
    shift = ord(lower) - ord(letter) if len(lower) == 1 else 0
    return sum(flag for flag, holds in flags if holds), shift


def _ends_word(before: str) -> bool:
    """Whether a capital sigma behind a text becomes the small one at the end of a word."""
    return f"{before}\u03a3".lower()[-1] == "\u03c2"


class LetterTable(NamedTuple):
    """Kinds of letters in pages.

    Attributes
    ----------
    pages : ndarray of shape (n_pages,)
        Row of `kinds` of each page of letters; letters beyond the last have kind 0.
    kinds : ndarray of shape (n, 128)
    flags, shifts : ndarray of shape (n_kinds,)
    """

    pages: NDArray[np.int64]
    kinds: NDArray[np.int64]
    flags: NDArray[np.int64]
    shifts: NDArray[np.int64]

    @classmethod
    @cache
    def of_python(cls) -> LetterTable:
        """The table of this Python's Unicode."""
        numbers = {(0, 0): 0}
        kinds = [numbers.setdefault(properties_of(chr(c)), len(numbers)) for c in range(N_LETTERS)]
        rows, pages = np.unique(np.array(kinds).reshape(-1, PAGE), axis=0, return_inverse=True)
        pages = pages.reshape(-1)
        last = int(np.flatnonzero(rows[pages].any(axis=1))[-1]) + 1
        flags, shifts = np.array(list(numbers)).T
        return cls(pages[:last], rows, flags, shifts)

    @classmethod
    def empty(cls) -> LetterTable:
        """A table for models that need no properties."""
        none = np.zeros(0, dtype=np.int64)
        return cls(none, none, np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))

    def add_to(self, file: RuntimeFile) -> None:
        file.add("<u2", self.pages)
        file.add("u1", self.kinds)
        file.add("<u4", self.flags)
        file.add("<i4", self.shifts)
