"""Pairs of strings as users give them, and encoded."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from structsvm.features.inputs.places import PlacedList
from structsvm.structures.alignments import Strings
from structsvm.structures.gapped import as_rows, as_string, is_row_of_words, strip_gaps
from structsvm.tasks.alignment.letters import LetterEncoder
from structsvm.tasks.alignment.words import WordEncoder

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from structsvm.arrays import Integers
    from structsvm.tasks.alignment.examples import String, StringPair


Pair = TypeVar("Pair")
Rows = TypeVar("Rows")
Decoys = TypeVar("Decoys")


def listed(
    X: Iterable[Pair], y: Iterable[Rows] | None, decoys: Iterable[Decoys] | None = None
) -> tuple[list[Pair], list[Rows] | None, list[Decoys] | None]:
    """Pairs, alignments and decoys as lists: what has an index of its own is read by place. None stays None."""
    X = X if isinstance(X, PlacedList) else list(X)
    return X, None if y is None else list(y), None if decoys is None else list(decoys)


def as_pair(pair: StringPair, k: int) -> tuple[String, ...]:
    """The two strings of example k; ValueError if it is no pair. Of an alignment of Biopython, those that it aligns."""
    if not isinstance(pair, (tuple, list)):
        try:
            rows = as_rows(pair)
        except ValueError as error:
            raise ValueError(f"X, example {k}: {error}") from None
        if rows is not pair:
            return tuple(map(strip_gaps, rows))
    if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
        raise ValueError(f"X, example {k}: expected a pair of strings, got {pair!r:.80}")
    return tuple(map(as_string, pair))


class StringPool:
    """Encoded strings, each kept once."""

    def __init__(self, encoder: LetterEncoder | WordEncoder) -> None:
        self.encoder = encoder
        self.ids: dict[Hashable, int] = {}
        self.arrays: list[Integers] = []
        self.sources: dict[Hashable, int] = {}
        self.source: list[int] = []

    def add_all(self, strings: Sequence[String], k: int, *, candidates: bool = False) -> list[int]:
        """The ids of the strings of example k: x, then z and decoys, or candidates.

        ValueError, beginning with the string's name, if one cannot be encoded.
        """
        strings = [as_string(string) for string in strings]
        if isinstance(self.encoder, LetterEncoder):
            return [self.add(string, name_of(n, k, candidates=candidates)) for n, string in enumerate(strings)]
        for n, string in enumerate(strings):
            try:
                self.encoder.encode_all([string])
            except ValueError as error:
                raise ValueError(f"{name_of(n, k, candidates=candidates)}: {error}") from None
        keys = [tuple(self.encoder.letters_of(words)) for words in strings]
        arrays = self.encoder.encode_all(strings)
        return [self._keep((key, array.tobytes()), array, key) for key, array in zip(keys, arrays, strict=True)]

    def add(self, string: String, what: str) -> int:
        """The id of a string of letters; ValueError, beginning with `what`, if it cannot be encoded."""
        key = tuple(string) if isinstance(string, (tuple, list)) else string
        if key in self.ids:
            return self.ids[key]
        try:
            (values,) = self.encoder.encode_all([key])
        except ValueError as error:
            raise ValueError(f"{what}: {error}") from None
        return self._keep(key, np.ravel_multi_index(tuple(values.T), self.encoder.sizes), key)

    def _keep(self, key: Hashable, array: Integers, source: Hashable) -> int:
        if key not in self.ids:
            self.ids[key] = len(self.arrays)
            self.arrays.append(array)
            self.source.append(self.sources.setdefault(source, len(self.sources)))
        return self.ids[key]

    def strings(self) -> Strings:
        return Strings.of(self.arrays, np.array(self.source, dtype=np.int64))


def name_of(n: int, k: int, *, candidates: bool) -> str:
    """The name of the n-th string of example k in errors."""
    if candidates:
        return f"candidate {n - 1} of example {k}" if n else f"x of example {k}"
    return f"decoy {n - 2} of example {k}" if n > 1 else f"{'xz'[n]} of example {k}"


def lists_of_words(X: Sequence[StringPair], decoys: Iterable[Iterable[String]] | None) -> Iterator[String] | None:
    """The sequences of all examples, if those of the first one are lists of words, else None."""
    if not X or not isinstance(X[0], (tuple, list)) or not all(map(is_row_of_words, X[0])):
        return None
    return chain(chain.from_iterable(as_pair(pair, k) for k, pair in enumerate(X)), *(decoys or ()))
