"""Features that templates generate from columns: their indices, or the indices that they are hashed to.

A feature is a space of its layout and one code per source of the space: codes below
left + right are the boundaries of a sequence, the others are strings of the source.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from structsvm.features._strings import Interner, hash_strings
from structsvm.features._templates import TemplateTable, gather_templates
from structsvm.features.columns import Columns, Vocabulary
from structsvm.features.numbering import number_features
from structsvm.features.templates import FUNCTIONS, TemplateLayout
from structsvm.features.tokens import Tokens
from structsvm.stored_values import Array, checked_arrays, strings

FEW = 10_000  # features that are hashed at once: more, space by space, take less memory
FEW_TOKENS = 256  # for which the order of templates does not pay


class TemplateVocabulary:
    """The features of templates, as codes.

    Parameters
    ----------
    layout : TemplateLayout
    strings : list of Vocabulary
        The strings of each source that occur in a feature.
    ids : list of int32 arrays
        The indices of the features of each space.
    codes : list of int32 arrays of shape (features, sources)
        The codes of these features.
    """

    def __init__(
        self,
        layout: TemplateLayout,
        strings: list[Vocabulary],
        ids: list[NDArray[np.int32]],
        codes: list[NDArray[np.int32]],
    ) -> None:
        self._layout, self._strings, self._ids, self._codes = layout, strings, ids, codes
        self._lookup: tuple[list[Interner], list[TemplateTable]] | None = None  # built at the first use

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lookup": None}

    def __len__(self) -> int:
        return sum(map(len, self._ids))

    @property
    def names(self) -> list[str]:
        """The features as CRF++ writes them, by index."""
        layout = self._layout
        names = [""] * len(self)
        words = [[*layout.boundaries, *v.tolist()] for v in self._strings]
        for (literals, _), space, ids, codes in zip(layout.keys, layout.spaces, self._ids, self._codes, strict=True):
            columns = [
                [words[source][c] + literal for c in codes[:, k].tolist()]
                for k, (source, literal) in enumerate(zip(space, literals[1:], strict=True))
            ]
            for place, i in enumerate(ids.tolist()):
                names[i] = literals[0] + "".join([column[place] for column in columns])
        return names

    @classmethod
    def fit(cls, layout: TemplateLayout, X: Columns, min_count: int) -> tuple[TemplateVocabulary, Tokens]:
        """Assign indices to the features that occur `min_count` times or more, and encode them."""
        met = _Met(layout, X.vocabularies)
        found = met.add(X)
        vocabulary, maps = met.numbered(min_count)
        return vocabulary, _gather(layout, X, found, maps, len(vocabulary))

    @classmethod
    def of_counts(cls, layout: TemplateLayout, parts: Sequence[Counts], min_count: int) -> TemplateVocabulary:
        """The same vocabulary, of columns that were counted in parts; see `count`."""
        return _numbered(layout, merged(layout, parts), min_count)[0]

    def transform(self, X: Columns) -> Tokens:
        """Encode columns; unknown features are dropped."""
        if self._lookup is None:
            self._lookup = self._build_lookup()
        interners, tables = self._lookup
        padded = []
        for (j, made), interner in zip(_source_strings(self._layout, X.vocabularies), interners, strict=True):
            vocabulary = X.vocabularies[j]
            if made is None:
                ids = interner.lookup_arrays(vocabulary.data, vocabulary.starts)
            else:
                ids = interner.lookup(made)
            padded.append(self._layout.pad(X, j, ids))
        found = self._layout.expand(X, padded, tables, False)
        return _gather(self._layout, X, found, None, len(self))

    def _build_lookup(self) -> tuple[list[Interner], list[TemplateTable]]:
        interners = [Interner.from_arrays(v.data, v.starts) for v in self._strings]
        margin = self._layout.left + self._layout.right
        tables = []
        for space, codes, ids in zip(self._layout.spaces, self._codes, self._ids, strict=True):
            # No array is much larger than its features need.
            table = TemplateTable([len(interners[i]) + margin for i in space], 64 + 64 * len(ids))
            table.insert(codes, ids)
            tables.append(table)
        return interners, tables

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Named arrays, for model files."""
        arrays: dict[str, NDArray[Any]] = {}
        for i, vocabulary in enumerate(self._strings):
            arrays[f"strings_{i}"] = vocabulary.data
            arrays[f"string_starts_{i}"] = vocabulary.starts
        for i, (ids, codes) in enumerate(zip(self._ids, self._codes, strict=True)):
            arrays[f"feature_ids_{i}"] = ids
            arrays[f"feature_codes_{i}"] = codes
        return arrays

    @classmethod
    def from_arrays(
        cls, layout: TemplateLayout, arrays: dict[str, NDArray[Any]], n_features: int
    ) -> TemplateVocabulary:
        """The inverse of :meth:`to_arrays`; raises ValueError or KeyError for anything else."""
        margin = layout.left + layout.right
        table: dict[str, Array] = {}
        sizes = {"n_features": n_features}
        for i in range(len(layout.sources)):
            table |= strings(f"strings_{i}", f"string_starts_{i}", f"n_strings_{i}")
        found = checked_arrays(arrays, table)
        words = [Vocabulary(found[f"strings_{i}"], found[f"string_starts_{i}"]) for i in range(len(layout.sources))]
        for vocabulary in words:
            vocabulary.tolist()  # UTF-8, or UnicodeDecodeError, a ValueError
        table = {}
        for i, space in enumerate(layout.spaces):
            sizes[f"codes_{i}"] = max((len(words[source]) for source in space), default=0) + margin
            table[f"feature_ids_{i}"] = Array("i4", (f"n_ids_{i}",), within=(0, "n_features"))
            table[f"feature_codes_{i}"] = Array("i4", (f"n_ids_{i}", len(space)), within=(0, f"codes_{i}"))
        found = checked_arrays(arrays, table, **sizes)
        all_ids = [found[f"feature_ids_{i}"] for i in range(len(layout.spaces))]
        all_codes = [found[f"feature_codes_{i}"] for i in range(len(layout.spaces))]
        everything = np.concatenate([*all_ids, np.zeros(0, np.int32)])
        if len(everything) != n_features or len(np.unique(everything)) != n_features:
            raise ValueError(f"arrays 'feature_ids_...' are not each of the {n_features} features once")
        self = cls(layout, words, all_ids, all_codes)
        self._lookup = self._build_lookup()  # checks every code
        return self


def hash_templates(layout: TemplateLayout, X: Columns, bits: int) -> Tokens:
    """Encode columns with features hashed to 2**bits indices: a chained hash of template text and strings."""
    met = _Met(layout, X.vocabularies)
    found, statistics = met.add(X), met.statistics()
    # Of all sources in one array: boundaries and strings of each.
    ends = np.array([_hash_of(text) for text in layout.boundaries], dtype=np.uint64)
    hashes = np.concatenate([part for v in met.strings for part in (ends, hash_strings(v.data, v.starts))])
    first = np.cumsum([0, *(len(ends) + len(v) for v in met.strings)], dtype=np.int32)
    maps: list[Any] = [None] * len(layout.spaces)
    # Small spaces at once, those of more items first: n of them have an item k.
    order = sorted(range(len(maps)), key=lambda i: -len(layout.spaces[i]))
    few = sum(len(codes) for _, _, codes in statistics) < FEW
    for group in [order] if order and few else [[i] for i in order]:
        codes = [statistics[i][2] for i in group]
        ends_of = np.cumsum([0, *map(len, codes)])
        h = np.repeat(np.array([_hash_of(repr(layout.keys[i])) for i in group], dtype=np.uint64), np.diff(ends_of))
        for k in range(len(layout.spaces[group[0]])):
            n = sum(len(layout.spaces[i]) > k for i in group)
            part = h[: ends_of[n]]
            shift = np.repeat([first[layout.spaces[i][k]] for i in group[:n]], np.diff(ends_of[: n + 1]))
            part ^= hashes[np.concatenate([c[:, k] for c in codes[:n]]) + shift]
            part *= np.uint64(0x9E3779B97F4A7C15)
            part ^= part >> np.uint64(29)
        numbers = (h >> np.uint64(64 - bits)).astype(np.int32)
        for i, (a, b) in zip(group, pairwise(ends_of.tolist()), strict=True):
            maps[i] = numbers[a:b]
    return _gather(layout, X, found, maps, 2**bits)


@lru_cache(maxsize=1024)
def _hash_of(text: str) -> np.uint64:
    one = Vocabulary.from_strings([text])
    return np.uint64(hash_strings(one.data, one.starts)[0])


class _Met:
    """The features of templates that are met in columns, and how often.

    Parameters
    ----------
    layout : TemplateLayout
    vocabularies : sequence of Vocabulary
        Those of the columns.

    Attributes
    ----------
    strings : list of Vocabulary
        The strings of each source.
    n_tokens : int
    """

    def __init__(self, layout: TemplateLayout, vocabularies: Sequence[Vocabulary]) -> None:
        self.layout, self.n_tokens = layout, 0
        self.strings: list[Vocabulary] = []
        self._ids: list[tuple[int, NDArray[np.int32]]] = []  # by source: its column, the id of each string there
        for j, made in _source_strings(layout, vocabularies):
            vocabulary = vocabularies[j]
            ids = np.arange(len(vocabulary), dtype=np.int32)
            if made is not None:
                interner = Interner()
                ids = interner.intern(made)
                vocabulary = Vocabulary(*interner.to_arrays())
            self.strings.append(vocabulary)
            self._ids.append((j, ids))
        sizes = [len(v) + layout.left + layout.right for v in self.strings]
        self._tables = [TemplateTable([sizes[i] for i in space]) for space in layout.spaces]
        self._counts: list[Any] = [np.zeros(0, dtype=np.int64)] * len(layout.spaces)  # of bigrams

    def add(self, X: Columns) -> list[NDArray[np.int32]]:
        """The feature of each template at each token."""
        padded = [self.layout.pad(X, j, ids) for j, ids in self._ids]
        found = self.layout.expand(X, padded, self._tables, True, self.n_tokens)
        self.n_tokens += X.n_tokens
        if self.layout.of_bigrams:  # the tables count those of first tokens, too
            for space, ids in zip(self.layout.template_space, found, strict=True):
                counts = np.bincount(ids[ids >= 0], minlength=self._tables[space].n)
                counts[: len(self._counts[space])] += self._counts[space]
                self._counts[space] = counts
        return found

    def statistics(self) -> list[Any]:
        """Counts, first tokens and codes of each space's features."""
        found = [table.statistics() for table in self._tables]
        if self.layout.of_bigrams:
            for (counts, _, _), own in zip(found, self._counts, strict=True):
                counts[:] = 0
                counts[: len(own)] = own
        return found

    def counts(self) -> Counts:
        return Counts(self.strings, self.statistics(), self.n_tokens)

    def numbered(self, min_count: int) -> tuple[TemplateVocabulary, list[NDArray[np.int32]]]:
        """The vocabulary, and the index there of each space's features."""
        return _numbered(self.layout, self.counts(), min_count)


class Counts(NamedTuple):
    """How often features occur in columns.

    Attributes
    ----------
    strings : list of Vocabulary
        The strings of each source.
    statistics : list of tuple
        Of each space's features, in the order in which they first occur: counts, first tokens, codes.
    n_tokens : int
    """

    strings: list[Vocabulary]
    statistics: list[Any]
    n_tokens: int


def count(layout: TemplateLayout, pieces: Iterable[Columns]) -> Counts:
    """Count features in columns in pieces whose ids are of one set of strings."""
    met = None
    for X in pieces:
        met = _Met(layout, X.vocabularies) if met is None else met
        met.add(X)
    if met is None:
        raise ValueError("there are no columns")
    return met.counts()


def merged(layout: TemplateLayout, parts: Sequence[Counts]) -> Counts:
    """The counts of parts, one after the other."""
    if len(parts) == 1:
        return parts[0]
    margin = np.arange(layout.left + layout.right, dtype=np.int32)
    strings, new_codes = [], []
    for source in range(len(layout.sources)):
        interner = Interner()
        ids = [interner.intern(part.strings[source].tolist()) for part in parts]
        new_codes.append([np.concatenate([margin, own + np.int32(len(margin))]) for own in ids])
        strings.append(Vocabulary(*interner.to_arrays()))
    before = np.cumsum([0, *(part.n_tokens for part in parts)])
    statistics = []
    for i, space in enumerate(layout.spaces):
        counts, firsts, own_codes = zip(*(part.statistics[i] for part in parts), strict=True)
        codes = [np.array(own) for own in own_codes]
        for p, own in enumerate(codes):
            for k, source in enumerate(space):
                own[:, k] = new_codes[source][p][own[:, k]]
        all_codes = np.concatenate(codes)
        number = np.zeros(len(all_codes), dtype=np.int64)  # of the codes so far: at most as many as features
        for k, source in enumerate(space):
            number = number * (len(strings[source]) + len(margin)) + all_codes[:, k]
            number = np.unique(number, return_inverse=True)[1]
        _, places, number = np.unique(number, return_index=True, return_inverse=True)
        total = np.zeros(len(places), dtype=np.int64)
        np.add.at(total, number, np.concatenate(counts))
        order = np.argsort(places)
        first = np.concatenate([own + start for own, start in zip(firsts, before.tolist())])
        statistics.append((total[order], first[places[order]], all_codes[places[order]]))
    return Counts(strings, statistics, int(before[-1]))


def _numbered(
    layout: TemplateLayout, counted: Counts, min_count: int
) -> tuple[TemplateVocabulary, list[NDArray[np.int32]]]:
    """The vocabulary of the features that occur `min_count` times, and the index there of each space's features."""
    none, statistics = np.zeros(0, np.int64), counted.statistics
    _, index_of = number_features(
        np.concatenate([none, *(counts for counts, _, _ in statistics)]),
        min_count,
        np.concatenate([none, *(firsts for _, firsts, _ in statistics)]),
    )
    ends = np.cumsum([0, *(len(counts) for counts, _, _ in statistics)]).tolist()
    maps = [index_of[a:b] for a, b in pairwise(ends)]
    ids = [m[m >= 0] for m in maps]
    codes = [codes[m >= 0] for (_, _, codes), m in zip(statistics, maps, strict=True)]
    strings, codes = _without_unused(layout, counted.strings, codes)
    return TemplateVocabulary(layout, strings, ids, codes), maps


def _source_strings(
    layout: TemplateLayout, vocabularies: Sequence[Vocabulary]
) -> Iterator[tuple[int, list[str | None] | None]]:
    """The column of each source, and the strings that its function returns for it (None: unchanged)."""
    words: dict[int, list[str]] = {}
    for function, j in layout.sources:
        if function == "x":
            yield j, None
        else:
            if j not in words:
                words[j] = vocabularies[j].tolist()
            yield j, FUNCTIONS[function](words[j])


def _without_unused(
    layout: TemplateLayout, strings: list[Vocabulary], codes: list[NDArray[np.int32]]
) -> tuple[list[Vocabulary], list[NDArray[np.int32]]]:
    """Drop the strings that occur in no feature; boundary codes stay."""
    margin = layout.left + layout.right
    used = [np.zeros(len(v) + margin, dtype=bool) for v in strings]
    for space, table in zip(layout.spaces, codes, strict=True):
        for k, source in enumerate(space):
            used[source][table[:, k]] = True
    for mask in used:
        mask[:margin] = True
    renumber = [(np.cumsum(mask) - 1).astype(np.int32) for mask in used]
    kept = [v.take(np.flatnonzero(mask[margin:])) for v, mask in zip(strings, used, strict=True)]
    renumbered = []
    for space, table in zip(layout.spaces, codes, strict=True):
        new = np.empty_like(table)
        for k, source in enumerate(space):
            new[:, k] = renumber[source][table[:, k]]
        renumbered.append(new)
    return kept, renumbered


def _gather(
    layout: TemplateLayout, X: Columns, found: list[Any], maps: list[NDArray[np.int32]] | None, n_features: int
) -> Tokens:
    """Tokens of the features found, mapped by space."""
    chosen = [None if maps is None else maps[space] for space in layout.template_space]
    if X.n_tokens > FEW_TOKENS:
        # A token's entries are sorted by insertion, which is quick when they nearly are. Templates of frequent features
        # give low numbers: take them first.
        order = sorted(range(len(found)), key=lambda j: _typical(found[j], chosen[j]))
        found, chosen = [found[j] for j in order], [chosen[j] for j in order]
    return Tokens(X.offsets, *gather_templates(found, chosen, X.n_tokens), n_features)


def _typical(ids: NDArray[np.int32], chosen: NDArray[np.int32] | None) -> float:
    """The mean feature number of a template at the first tokens; order only, never results."""
    ids = ids[:2048]
    if chosen is not None:
        ids = chosen[ids[ids >= 0]]
    ids = ids[ids >= 0]
    return float(ids.mean()) if ids.size else 0.0
