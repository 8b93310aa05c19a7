"""What templates see of a word's form: codes of strings, and the shape of a word."""

from __future__ import annotations

from zlib import crc32

LONGEST_SHAPE = 6


def code(text: str) -> int:
    """The code of a string, from 2 up: the same in every process."""
    return (crc32(text.encode("utf-8", "surrogatepass")) & 0x3FFFFFFF) + 2


def shape(form: str) -> str:
    """The kinds of a word's letters, runs of one kind as one: ``Xx-d`` of *Boeing-747*."""
    found: list[str] = []
    for letter in form:
        kind = "X" if letter.isupper() else "x" if letter.isalpha() else "d" if letter.isdigit() else letter
        if not found or found[-1] != kind:
            found.append(kind)
            if len(found) == LONGEST_SHAPE:
                break
    return "".join(found)
