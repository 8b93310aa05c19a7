"""Functions of a string, computed once per distinct string: ``%shape[0,0]``, ``%prefix3[-1,0]``.

Each maps the strings of a vocabulary to strings, or to None for no feature. Marks are what is neither letter nor digit.
Combining characters (accents, the vowel signs of Tamil or Thai) belong to the character before them: they are no marks
at the end of a word, and shapes leave them out.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache

Function = Callable[[list[str]], list["str | None"]]

KIND = "kind"


def _prefix(k: int) -> Function:
    return lambda words: [w[:k] if len(w) >= k else None for w in words]


def _suffix(k: int) -> Function:
    return lambda words: [w[-k:] if len(w) >= k else None for w in words]


def is_combining(character: str) -> bool:
    """Whether a character belongs to the one before it, as an accent or a vowel sign does."""
    return unicodedata.category(character)[0] == "M"


class _ShapeTable(dict[int, str]):
    """str.translate table: X upper case, x other letters, d digits, no combining ones, the rest unchanged."""

    def __missing__(self, code: int) -> str:
        c = chr(code)
        if c.isdigit():
            kind = "d"
        elif c.isalpha():
            kind = "X" if c.isupper() or c.istitle() else "x"
        else:
            kind = "" if is_combining(c) else c
        self[code] = kind
        return kind


_RUN = re.compile(r"(.)\1+", re.DOTALL)


def _shape(words: list[str]) -> list[str | None]:
    table = _ShapeTable()
    short: dict[str, str] = {}  # many words have one long shape
    shapes: list[str | None] = []
    for word in words:
        long = word.translate(table)
        shape = short.get(long)
        if shape is None:
            shape = short[long] = _RUN.sub(r"\1", long)
        shapes.append(shape)
    return shapes


def _digit(words: list[str]) -> list[str | None]:
    some = re.compile(r"\d").search
    return ["all" if w.isdigit() else "some" if some(w) else None for w in words]


def _capital(words: list[str]) -> list[str | None]:
    kinds: list[str | None] = []
    for w in words:
        if w == w.lower():
            kinds.append(None)
        elif w.isupper() and len(w) > 1:
            kinds.append("all")
        else:
            kinds.append("first" if w[0].isupper() else "inside")
    return kinds


REMEMBERED = 1 << 14  # words whose forms need not be made anew
_DIGIT = re.compile(r"\d")
# Marks before the first letter or digit, and at the end; see `_PartTable`.
_OPENING = re.compile("(?:-m*)+(?=a)")
_LONGEST, _LONGEST_RUN = 10, 6  # lengths from these on are one


def _form(words: list[str]) -> list[str | None]:
    """The shape with the lengths of runs: "Xx4" of "Main", "d5" of "60611"."""
    table = _ShapeTable()

    def counted(run: re.Match[str]) -> str:
        return f"{run[1]}{min(len(run[0]), _LONGEST_RUN)}"

    return [_RUN.sub(counted, word.translate(table)) for word in words]


class _PartTable(dict[int, str]):
    """str.translate table: a letters and digits, m combining characters, - marks."""

    def __missing__(self, code: int) -> str:
        c = chr(code)
        part = self[code] = "a" if c.isalnum() else "m" if is_combining(c) else "-"
        return part


_PARTS = _PartTable()


@lru_cache(REMEMBERED)
def _bounds(word: str) -> tuple[int, int]:
    """Where the marks before a word end, and where those at its end begin; in a word of marks alone both at 0."""
    parts = word.translate(_PARTS)
    before, behind = _OPENING.match(parts), parts.find("-", parts.rfind("a") + 1)
    return before.end() if before else 0, behind if behind >= 0 else len(word)


def _opening(words: list[str]) -> list[str | None]:
    """The marks before the first letter or digit."""
    return [word[: _bounds(word)[0]] or None for word in words]


def _closing(words: list[str]) -> list[str | None]:
    """The marks at the end, which may be all of it."""
    return [word[_bounds(word)[1] :] or None for word in words]


def _bare(word: str) -> str:
    """The word without marks at its ends; a word of marks alone as it is."""
    start, stop = _bounds(word)
    return word[start:stop] or word


def _pattern(words: list[str]) -> list[str | None]:
    """The word without marks at its ends, in lower case, its digits 0: "0th" of "(5th)"."""
    return list(map(_pattern_of, words))


@lru_cache(REMEMBERED)
def _pattern_of(word: str) -> str:
    return _DIGIT.sub("0", _bare(word).lower())


def _vowels(words: list[str]) -> list[str | None]:
    """Whether a word of letters has a, e, i, o or u behind the first one, with or without accents."""
    plain = [unicodedata.normalize("NFD", _bare(word).lower()) for word in words]
    return [("none" if {*"aeiou"}.isdisjoint(w[1:]) else "some") if w[:1].isalpha() else None for w in plain]


FUNCTIONS: dict[str, Function] = {
    "lower": lambda words: [w.lower() for w in words],
    "shape": _shape,
    **{f"prefix{k}": _prefix(k) for k in (1, 2, 3, 4, 5, 6)},
    **{f"suffix{k}": _suffix(k) for k in (1, 2, 3, 4, 5, 6)},
    "digit": _digit,
    "capital": _capital,
    "hyphen": lambda words: ["some" if "-" in w else None for w in words],
    "form": _form,
    "length": lambda words: [str(len(w)) if len(w) < _LONGEST else f"{_LONGEST}+" for w in words],
    "opening": _opening,
    "closing": _closing,
    "pattern": _pattern,
    "vowels": _vowels,
    # Grouped by the labels of training, see `structsvm.features.functions.kinds`.
    KIND: _pattern,
}
