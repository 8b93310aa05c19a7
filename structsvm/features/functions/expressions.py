r"""Regular expressions of Wapiti: a small dialect over bytes, and what the program takes of a string for a match.

Wapiti counts characters twice where it tries ``x?`` with the character, then without it, and takes so many more of the
string: of "123" by ``\d?\d\d\d`` six. If there are fewer, its observation ends with the string.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple, Self

_CLASSES = {
    b"a": rb"A-Za-z",
    b"d": rb"0-9",
    b"l": rb"a-z",
    b"p": rb"!-/:-@\[-`{-~",
    b"s": rb"\t-\r ",
    b"u": rb"A-Z",
    b"w": rb"0-9A-Za-z",
}
_ATOM = re.compile(rb"(?:\\(?P<escaped>.)|(?P<plain>[^\\*?]))(?P<repeat>[*?]?)", re.DOTALL)
ONCE, ANY, MAYBE = b"", b"*", b"?"
_REPEATS = {ONCE: b"", ANY: b"*?", MAYBE: b"?"}
END = b"\0"


@cache
def _letters(source: bytes) -> frozenset[int]:
    its = re.compile(source, re.DOTALL)
    return frozenset(code for code in range(1, 256) if its.match(bytes([code])))


class Atom(NamedTuple):
    """Characters of which one stands at a place, as `re` has them, and how often: `ONCE`, `ANY` or `MAYBE`."""

    source: bytes
    repeat: bytes

    @property
    def letters(self) -> frozenset[int]:
        """The characters."""
        return _letters(self.source)


@dataclass(frozen=True)
class Expression:
    """A regular expression.

    Attributes
    ----------
    atoms : tuple of Atom
    begins, ends : bool
        Whether a match begins with the string, and whether it ends with it.
    """

    atoms: tuple[Atom, ...]
    begins: bool
    ends: bool

    @classmethod
    def parsed(cls, text: bytes) -> Self:
        r"""Parse an expression; ValueError for a ``*`` or ``?`` after nothing, or a ``\`` at the end."""
        begins, ends, atoms = text.startswith(b"^"), False, list[Atom]()
        at = int(begins)
        while at < len(text) and not ends:
            match = _ATOM.match(text, at)
            if match is None:
                what = "ends with '\\'" if text[at:] == b"\\" else f"has a '{chr(text[at])}' that repeats nothing"
                raise ValueError(f"regular expression {text.decode('utf-8', 'replace')!r} {what}: write '\\' before it")
            ends = text[at:] == b"$"
            atoms += [] if ends else [Atom(_source(match), match["repeat"])]
            at = match.end()
        return cls(tuple(atoms), begins, ends)

    @cached_property
    def compiled(self) -> re.Pattern[bytes]:
        """The expression as one of `re`."""
        parts = [atom.source + _REPEATS[atom.repeat] for atom in self.atoms]
        return re.compile(b"".join([rb"\A" * self.begins, *parts, rb"\Z" * self.ends]), re.DOTALL)

    @cached_property
    def overruns(self) -> bool:
        """Whether Wapiti may take more of a string than matches.

        It does where the character of an ``x?`` can also be the first of what follows, which may fail behind it.
        """
        first, may_fail = frozenset[int](), False  # characters that the rest may begin with; whether it may fail
        for atom in reversed(self.atoms):
            if atom.repeat == MAYBE and may_fail and atom.letters & first:
                return True
            first = atom.letters if atom.repeat == ONCE else atom.letters | first
            may_fail |= atom.repeat != MAYBE
        return False

    def taken(self, string: bytes) -> bytes | None:
        """Take of a string what Wapiti does, with `END` where its observation ends; None where nothing matches."""
        if not self.overruns:
            match = self.compiled.search(string)
            return None if match is None else match[0]
        counts = [(not self.ends or at == len(string), 0) for at in range(len(string) + 1)]
        for atom in reversed(self.atoms):
            counts = _counts(atom, string, counts)
        for start, (found, size) in enumerate(counts[:1] if self.begins else counts):
            if found:
                return string[start : start + size] + END * (start + size > len(string))
        return None


def _counts(atom: Atom, string: bytes, rest: list[tuple[bool, int]]) -> list[tuple[bool, int]]:
    """Whether an atom and those behind it match at each place, and the program's count of their characters.

    `rest` contains the same for those behind it alone.
    """
    letters, repeat = atom.letters, atom.repeat
    counts = rest.copy()
    for at in reversed(range(len(counts))):
        found, size = rest[at]
        is_here = at < len(string) and string[at] in letters
        if repeat == MAYBE:
            behind, more = rest[at + 1] if is_here else (False, 0)
            counts[at] = (True, more + 1) if behind else (found, size + more)
        elif repeat == ONCE or not found:
            behind, more = (rest if repeat == ONCE else counts)[at + 1] if is_here else (False, 0)
            counts[at] = behind, more + 1
    return counts


def _source(match: re.Match[bytes]) -> bytes:
    escaped, plain = match["escaped"], match["plain"]
    if escaped is None:
        return b"." if plain == b"." else re.escape(plain)
    if escaped.lower() in _CLASSES:
        complement = b"" if escaped.islower() else b"^"
        return b"[" + complement + _CLASSES[escaped.lower()] + b"]"
    return re.escape(escaped)
