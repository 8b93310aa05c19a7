"""Words of a sentence, how they were written, and what a name made of them looks like."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Self

from structsvm.features.word_codes import shape

# Marks at the end of words that are no part of them.
END_MARKS = ".,;:?!"


class Folded(str):
    """A word in lower case, without marks at its end, that remembers how it was written.

    Examples
    --------
    >>> from structsvm.oracles.meanings.words import Folded
    >>> word = Folded("Paris?")
    >>> word == "paris", word.written
    (True, 'Paris?')
    """

    written: str

    def __new__(cls, written: str) -> Self:
        self = super().__new__(cls, unmarked(written).casefold())
        self.written = written
        return self

    def __getnewargs__(self) -> tuple[str]:
        return (self.written,)


def unmarked(word: str) -> str:
    """A word without the marks at its end, unless it is one."""
    return word.rstrip(END_MARKS) or word


def is_possessive(word: str) -> bool:
    """Whether a word ends with an apostrophe and an s, as *Kim's*."""
    return word.endswith(("'s", "\u2019s"))


def as_written(word: str) -> str:
    """A word as it was written, before its case was folded."""
    return word.written if isinstance(word, Folded) else word


def shape_of(word: str) -> str:
    """The shape of a word as it was written, without marks at its end."""
    return shape(unmarked(as_written(word)))


def look_of(shapes: Iterable[str]) -> str:
    """Shapes of words, equal ones beside each other as one: ``Xx x Xx`` of *Upper Mill on Sea*."""
    return " ".join(one for one, _ in groupby(shapes))
