"""Words of raw text: what stands between blanks, less the punctuation at its ends."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["word_spans", "words"]

CHUNK = re.compile(r"\S+")


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return where the words of a text begin and end, in characters.

    A word stands between blanks; each mark of punctuation at its ends (Unicode's categories P) is a word of its own.
    Marks within a word stay: ``O'Neil``, ``12-14``, ``a.m``. A script that writes no blanks gives long words: split it
    beforehand.

    Examples
    --------
    >>> from structsvm.features.text.words import word_spans
    >>> word_spans("Oak St., Reno")
    [(0, 3), (4, 6), (6, 7), (7, 8), (9, 13)]
    """
    spans: list[tuple[int, int]] = []
    for chunk in CHUNK.finditer(text):
        start, stop = chunk.span()
        first = next((i for i in range(start, stop) if not _is_mark(text[i])), stop)
        last = next((i for i in range(stop, first, -1) if not _is_mark(text[i - 1])), first)
        spans += [(i, i + 1) for i in range(start, first)]
        if first < last:
            spans.append((first, last))
        spans += [(i, i + 1) for i in range(last, stop)]
    return spans


def words(text: str) -> list[str]:
    """Return the words of a text, see `word_spans`.

    Examples
    --------
    >>> from structsvm.features.text.words import words
    >>> words("Oak St., Reno")
    ['Oak', 'St', '.', ',', 'Reno']
    """
    return [text[start:stop] for start, stop in word_spans(text)]


def _is_mark(character: str) -> bool:
    return not character.isalnum() and unicodedata.category(character)[0] == "P"
