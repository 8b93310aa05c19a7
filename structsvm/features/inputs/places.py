"""File and line in the errors of training and scoring, where a reader has read the examples.

Errors name an example by its index, "sentence 3: word 2 ..."; here the place where it stands is put before that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

# The index of an example, and perhaps that of its word from 1 on, or of its token from 0 on.
_NAMED = re.compile(
    r"(?:sentence|tree|sequence|graph|row|[\w ]+?,? (?:of )?example) (\d+)\b(?:.*?\b(word|token) (\d+)\b)?", re.DOTALL
)


class PlacedList(list[Any]):
    """The items that a reader has read, in its order.

    Attributes
    ----------
    places : list of str
        Where each item stands: "trees.mrg:12".
    """

    def __init__(self, items: Any, places: list[str]) -> None:
        super().__init__(items)
        self.places = places


class PlacedRows:
    """Where each row of a file stands, by the numbers of their lines."""

    def __init__(self, path: str, lines: Sequence[int]) -> None:
        self.path, self.lines = path, lines

    def place_of(self, i: int, number: int) -> str | None:
        """File and line of row i."""
        return f"{self.path}, line {self.lines[i]}" if i < len(self.lines) else None


@contextmanager
def located(X: Any) -> Iterator[None]:
    """Put the place of an example of X before the text of a ValueError or TypeError that names its index."""
    try:
        yield
    except (ValueError, TypeError) as error:
        text = str(error)
        found = _NAMED.match(text)
        if found is not None and len(error.args) == 1:
            number = 0 if found[3] is None else int(found[3]) - (found[2] == "word")
            place = place_of(X, int(found[1]), max(number, 0))
            if place is not None:
                error.args = (f"{place}: {text}",)
        raise


def place_of(X: Any, i: int, number: int = 0) -> str | None:
    """The place of example i of X, or of one of its words; None where it was not read from a file."""
    if isinstance(X, PlacedList):
        return X.places[i] if i < len(X.places) == len(X) else None
    found: str | None = None
    if hasattr(X, "place_of"):
        found = X.place_of(i, number)
    elif isinstance(X, (list, tuple)) and i < len(X) and hasattr(X[i], "place_of"):
        found = X[i].place_of(number)
    return found


@contextmanager
def in_files(texts: Mapping[str, str], named: str) -> Iterator[None]:
    """Put file and line before the error of a template, whose text stands in quotes after `named`, a pattern.

    `texts` are those of the files, by their names.
    """
    try:
        yield
    except ValueError as error:
        found = re.match(rf"{named}(['\"].*?['\"]): ", str(error))
        for name, text in texts.items():
            for number, line in enumerate(text.splitlines(), start=1):
                if found is not None and line.split() == found[1][1:-1].split():
                    error.args = (f"{name}:{number}: {str(error)[found.start(1) :]}",)
        raise
