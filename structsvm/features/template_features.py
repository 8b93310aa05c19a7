"""Features that templates generate from columns: their indices, or the indices that they are hashed to.

A feature is a space of its layout and one code per source of the space: codes below
left + right are the boundaries of a sequence, the others are strings of the source.

Encoding has two steps: the codes of each distinct string under all functions, which are remembered, and all templates
at all tokens, from these codes (:class:`~structsvm.features._templates.TemplateReader`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, pairwise
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from structsvm.features._strings import Interner, hash_strings
from structsvm.features._templates import TemplateReader, TemplateTable, merge_templates
from structsvm.features._tokens import are_within
from structsvm.features.columns import Columns, Vocabulary
from structsvm.features.functions.kinds import Kinds, codes_of_sequences, equal_sequences, kinds_of, neighbours
from structsvm.features.functions.strings import KIND
from structsvm.features.numbering import number_features
from structsvm.features.templates import TemplateLayout, function_of
from structsvm.features.tokens import Tokens
from structsvm.stored_values import INTEGERS, Array, checked_arrays, least

if TYPE_CHECKING:
    from structsvm.arrays import AnyArray, Integers

REMEMBERED, REMEMBERED_CODES = 2**15, 2**22  # strings of a column whose codes are kept, and codes of all of them

# From sources, and what the function of each makes of some strings (None: nothing), to a row of codes for each source;
# -1: no feature.
Coder = Callable[[list[int], list[Sequence[str | None]]], NDArray[np.int64]]


class CodesOfStrings:
    """The codes of a column's strings under each function of the templates, remembered by string.

    Parameters
    ----------
    layout : TemplateLayout
    column : int
    coder : Coder
    """

    def __init__(self, layout: TemplateLayout, column: int, coder: Coder) -> None:
        self._column = column
        self._sources = [(i, function) for i, (function, j) in enumerate(layout.sources) if j == column]
        self._room = max(min(REMEMBERED, REMEMBERED_CODES // len(self._sources)), 1)
        self._coder, self._lock = coder, Lock()
        self._forget()

    def _forget(self) -> None:
        # A new array: readers may have the one before.
        self._last: tuple[Vocabulary, NDArray[np.int32]] | None = None
        self._known, self._codes = Interner(), np.empty((self._room, len(self._sources)), dtype=np.int64)

    def __call__(self, X: Columns) -> tuple[int, NDArray[np.int32], NDArray[np.int64]]:
        """The column, the row of each of its strings, and codes by row."""
        vocabulary = X.vocabularies[self._column]
        with self._lock:
            if len(vocabulary) > self._room:
                return self._column, np.arange(len(vocabulary), dtype=np.int32), self._code(vocabulary.tolist())
            if self._last is not None and self._last[0] is vocabulary:
                return self._column, self._last[1], self._codes
            rows = self._known.lookup_arrays(vocabulary.data, vocabulary.starts)
            if not are_within(rows, self._room):
                new = vocabulary.tolist(i for i, row in enumerate(rows.tolist()) if row < 0)
                if len(self._known) + len(new) > self._room:
                    self._forget()
                    new = vocabulary.tolist()
                new = list(dict.fromkeys(new))
                first = len(self._known)
                self._codes[first : first + len(new)] = self._code(new)
                self._known.intern(new)
                rows = self._known.lookup_arrays(vocabulary.data, vocabulary.starts)
            self._last = vocabulary, rows
            return self._column, rows, self._codes

    def _code(self, words: list[str]) -> NDArray[np.int64]:
        made: list[Sequence[str | None]] = [
            words if function == "x" else function_of(function)(words) for _, function in self._sources
        ]
        return np.ascontiguousarray(self._coder([i for i, _ in self._sources], made).T)


class TemplateEncoder:
    """Finds the features of columns by what it knows of templates: base of those with a vocabulary and of hashed ones.

    It is made ready at its first use, and again after pickling.
    """

    n_features: int
    counts_once = False  # a feature that several templates find in a token

    def __init__(self, layout: TemplateLayout) -> None:
        self._layout = layout
        self._ready: tuple[TemplateReader, list[CodesOfStrings], NDArray[np.int32]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_ready": None}

    @property
    def layout(self) -> TemplateLayout:
        """The templates."""
        return self._layout

    @property
    def names(self) -> list[str]:
        """The features, by index."""
        return [f"hash:{j}" for j in range(self.n_features)]

    def to_arrays(self) -> dict[str, AnyArray]:
        """Named arrays, for model files."""
        return {}

    def make_ready(self) -> tuple[TemplateReader, Coder, NDArray[np.int32]]:
        """A reader of features, a coder of strings, and the order in which features of a token nearly ascend."""
        raise NotImplementedError

    def prepare(self) -> tuple[TemplateReader, list[CodesOfStrings], NDArray[np.int32]]:
        """Make it ready."""
        reader, coder, order = self.make_ready()
        codes = [CodesOfStrings(self._layout, j, coder) for j in self._layout.columns]
        self._ready = reader, codes, order
        return self._ready

    def transform(self, X: Columns) -> Tokens:
        """Encode columns; features that are not known are dropped."""
        order = (self._ready or self.prepare())[2]
        X = self._layout.widened(X)
        arrays = merge_templates(self.found(X), X.n_tokens, order, once=self.counts_once)
        return Tokens(X.offsets, *arrays, self.n_features)

    def found(self, X: Columns) -> NDArray[np.int32]:
        """The feature of each template at each token of widened columns, -1 for an unknown one."""
        reader, codes_of, _ = self._ready or self.prepare()
        return reader.read(X.ids, X.offsets, [codes(X) for codes in codes_of])


class HashedTemplates(TemplateEncoder):
    """Templates whose features are hashed to 2**bits indices: a chained hash of template text and strings.

    Two features of a token that are hashed to one index count once: then all values are one, and none are stored. Where
    templates share features, which may well be found twice, they are added up.
    """

    def __init__(self, layout: TemplateLayout, bits: int) -> None:
        super().__init__(layout)
        self._bits, self.n_features = bits, 2**bits
        self.counts_once = len(layout.keys) == len(layout.template_space)

    def make_ready(self) -> tuple[TemplateReader, Coder, NDArray[np.int32]]:
        layout = self._layout
        seeds = _hashes([repr(layout.keys[space]) for space in layout.template_space])
        strings = layout.strings_outside or [layout.boundaries] * len(layout.sources)
        reader = layout.reader([], seeds, [_hashes(some).view(np.int64) for some in strings], self._bits)
        return reader, self._code, np.arange(len(seeds), dtype=np.int32)

    @staticmethod
    def _code(sources: list[int], made: list[Sequence[str | None]]) -> NDArray[np.int64]:
        strings = list(chain.from_iterable(made))
        known = [s for s in strings if s is not None]
        codes = _hashes(known).view(np.int64)
        if len(known) < len(strings):
            known_codes, codes = codes, np.full(len(strings), -1, dtype=np.int64)
            codes[[s is not None for s in strings]] = known_codes
        return codes.reshape(len(sources), -1)


def _hashes(strings: list[str]) -> NDArray[np.uint64]:
    coded = Vocabulary.from_strings(strings)
    return hash_strings(coded.data, coded.starts)


NO_CODES = np.zeros(0, dtype=np.uint32)


class KindsOfWords(NamedTuple):
    """Kinds that were learnt, see `structsvm.features.functions.kinds`.

    Attributes
    ----------
    labels : dict of int32 arrays
        By space of kinds, the label of each of its words.
    sequences : uint32 array
        Codes of the sequences that they were learnt from.
    """

    labels: dict[int, NDArray[np.int32]]
    sequences: NDArray[np.uint32]


class TemplateVocabulary(TemplateEncoder):
    """The features of templates, as codes.

    Parameters
    ----------
    layout : TemplateLayout
    strings : list of Vocabulary
        The strings of each source that occur in a feature.
    ids : list of int32 arrays
        The indices of the features of each space.
    codes : list of int32 arrays of shape (features, sources)
        The codes of these features. All words of a kind have one feature, which stands there once for each.
    kinds : KindsOfWords, optional
    """

    def __init__(
        self,
        layout: TemplateLayout,
        strings: list[Vocabulary],
        ids: list[NDArray[np.int32]],
        codes: list[NDArray[np.int32]],
        kinds: KindsOfWords | None = None,
    ) -> None:
        super().__init__(layout)
        self._strings, self._ids, self._codes, self._kinds = strings, ids, codes, kinds or KindsOfWords({}, NO_CODES)
        self.n_features = max((int(its.max()) + 1 for its in ids if len(its)), default=0)

    @property
    def tables(self) -> tuple[list[Vocabulary], list[NDArray[np.int32]], list[NDArray[np.int32]]]:
        """The strings of each source; by space the features, and their codes."""
        return self._strings, self._ids, self._codes

    @property
    def names(self) -> list[str]:
        """The features as CRF++ and Wapiti write them, by index."""
        return self.named(self._layout.boundaries)

    def named(self, boundaries: list[str]) -> list[str]:
        """The features with these strings outside a sequence, by index."""
        layout = self._layout
        names = [""] * self.n_features
        words = [[*boundaries, *v.tolist()] for v in self._strings]
        for (literals, _), space, ids, codes in zip(layout.keys, layout.spaces, self._ids, self._codes, strict=True):
            columns = [
                [words[source][c] + literal for c in codes[:, k].tolist()]
                for k, (source, literal) in enumerate(zip(space, literals[1:], strict=True))
            ]
            for place, i in enumerate(ids.tolist()):
                names[i] = literals[0] + "".join([column[place] for column in columns])
        return names if layout.strings_outside is None else list(map(_whole, names))

    def words_of_kinds(self) -> dict[str, int]:
        """The name that a feature of a kind has for each of its words, and the feature's index."""
        found: dict[str, int] = {}
        for (literals, _), space, ids, codes in zip(
            self._layout.keys, self._layout.spaces, self._ids, self._codes, strict=True
        ):
            if len(space) == 1 and self._layout.sources[space[0]][0] == KIND:
                words = self._strings[space[0]].tolist()
                margin = self._layout.left + self._layout.right
                names = [literals[0] + words[code - margin] + literals[1] for code in codes[:, 0].tolist()]
                found |= dict(zip(names, ids.tolist(), strict=True))
        return found

    @classmethod
    def fit(cls, layout: TemplateLayout, X: Columns, min_count: int) -> tuple[TemplateVocabulary, Tokens]:
        """Assign indices to the features that occur `min_count` times or more, and encode them."""
        X = layout.widened(X)
        met = _Met(layout, X.vocabularies)
        found = met.add(X)
        vocabulary, maps = met.numbered(min_count)
        arrays = merge_templates(
            found, X.n_tokens, vocabulary.order(), [maps[space] for space in layout.template_space]
        )
        return vocabulary, Tokens(X.offsets, *arrays, vocabulary.n_features)

    def with_kinds(
        self, layout: TemplateLayout, X: Columns, tokens: Tokens, labelled: Labelled, min_count: int
    ) -> tuple[TemplateVocabulary, Tokens]:
        """The vocabulary with features of kinds behind its own, and the tokens of training with these.

        `layout` has templates of kinds behind those of this vocabulary.
        """
        margin, n = layout.left + layout.right, self.n_features
        strings, ids = [*self._strings], [*self._ids]
        codes = [_moved(one, self._layout, layout) for one in self._codes]
        (kinds, met), of_spaces = _kinds_in(layout, X, labelled), dict[int, NDArray[np.int32]]()
        told = np.add.reduceat(labelled.counted, X.offsets[:-1]) > 0
        strings += [kinds[j][0] for _, j in layout.sources[len(strings) :]]
        added = np.empty((X.n_tokens, len(layout.spaces) - len(ids)), dtype=np.int32)
        for k, template in enumerate(layout.templates[len(self._layout.templates) :]):
            (item,) = template.items
            its = kinds[item.column][1]
            found = neighbours(its.of_tokens, X.offsets, item.row)
            index_of = _numbered_kinds(found, its, min_count, n)
            added[:, k] = np.where(found >= 0, index_of[found], -1)
            words = np.argsort(its.counts, kind="stable")  # the most frequent one last, which names the feature
            words = words[index_of[its.of_patterns[words]] >= 0]
            of_words = its.of_patterns[words]
            of_spaces[len(ids)] = of_words.astype(np.int32)
            codes.append((words[:, None] + margin).astype(np.int32))
            ids.append(index_of[of_words])
            n += int(np.count_nonzero(index_of >= 0))
        strings, codes = _without_unused(layout, strings, codes)
        known = KindsOfWords(of_spaces, np.unique(met[told]))
        return TemplateVocabulary(layout, strings, ids, codes, known), tokens.widened(added, n)

    def relabelled(self, places: Integers) -> TemplateVocabulary:
        """The vocabulary with other numbers of labels: `places[k]` for k."""
        if not self._kinds.labels:
            return self
        kinds = {space: places[own].astype(np.int32) for space, own in self._kinds.labels.items()}
        return TemplateVocabulary(
            self._layout, self._strings, self._ids, self._codes, self._kinds._replace(labels=kinds)
        )

    def transform_labelled(self, X: Columns, labelled: Labelled) -> Tokens:
        """Encode labelled columns to train on, without empty sequences: no word has a kind by its own label.

        Words of new sequences have their kinds, those of known ones what the other sequences of X give them.
        """
        layout, wide = self._layout, self._layout.widened(X)
        found = self.found(wide)
        table = found.reshape(X.n_tokens, len(layout.templates))
        kinds, met = _kinds_in(layout, X, labelled)
        are_new = np.repeat(~np.isin(met, self._kinds.sequences), X.lengths)
        for k, (template, space) in enumerate(zip(layout.templates, layout.template_space, strict=True)):
            if space in self._kinds.labels:
                (item,) = template.items
                others = neighbours(kinds[item.column][1].of_tokens, X.offsets, item.row)
                table[:, k] = np.where(are_new, table[:, k], self._features_of_labels(space, others))
        order = (self._ready or self.prepare())[2]
        return Tokens(X.offsets, *merge_templates(found, X.n_tokens, order), self.n_features)

    def _features_of_labels(self, space: int, label_ids: Integers) -> Integers:
        """The feature of the kind of each label in a space of kinds, -1 for none."""
        labels, first = np.unique(self._kinds.labels[space], return_index=True)
        if not len(labels):
            return np.full(len(label_ids), -1)
        places = np.minimum(np.searchsorted(labels, label_ids), len(labels) - 1)
        return np.where(labels[places] == label_ids, self._ids[space][first[places]], -1)

    @property
    def n_labels_of_kinds(self) -> int:
        """One above the last label that is a kind."""
        return 1 + max((int(own.max(initial=-1)) for own in self._kinds.labels.values()), default=-1)

    @classmethod
    def of_counts(cls, layout: TemplateLayout, parts: Sequence[Counts], min_count: int) -> TemplateVocabulary:
        """The same vocabulary, of columns that were counted in parts; see `count`."""
        return _numbered(layout, merged(layout, parts), min_count)[0]

    def narrowed(self, kept: NDArray[np.bool_]) -> TemplateVocabulary:
        """The vocabulary of some features alone, renumbered."""
        index_of = (np.cumsum(kept) - 1).astype(np.int32)
        chosen = [kept[ids] for ids in self._ids]
        ids = [index_of[ids[own]] for ids, own in zip(self._ids, chosen, strict=True)]
        codes = [codes[own] for codes, own in zip(self._codes, chosen, strict=True)]
        kinds = self._kinds._replace(labels={i: own[chosen[i]] for i, own in self._kinds.labels.items()})
        strings, codes = _without_unused(self._layout, self._strings, codes)
        return TemplateVocabulary(self._layout, strings, ids, codes, kinds)

    def by_space(self) -> tuple[TemplateVocabulary, NDArray[np.intp]]:
        """The vocabulary with the features of a space one after the other, and the index here of each."""
        spaces = np.zeros(self.n_features, dtype=np.int64)
        for k, own in enumerate(self._ids):
            spaces[own] = k
        order = np.argsort(spaces, kind="stable")
        place = np.empty(len(order), dtype=np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        ids = [place[own] for own in self._ids]
        return TemplateVocabulary(self._layout, self._strings, ids, self._codes, self._kinds), order

    def positions(self, other: TemplateVocabulary, X: Columns) -> NDArray[np.int64]:
        """The index here of each feature of another vocabulary that X has, -1 for the others."""
        X = self._layout.widened(X)
        own, its = (one.found(X).reshape(X.n_tokens, len(one.layout.templates)) for one in (self, other))
        own = own[:, : its.shape[1]]  # the other one may have no kinds
        index = np.full(other.n_features, -1, dtype=np.int64)
        index[its[its >= 0]] = own[its >= 0]
        return index

    def grown(self, X: Columns) -> TemplateVocabulary:
        """The vocabulary with the features of more columns, which come last; itself if all are known.

        Words get no kinds: these are learnt from labels.
        """
        every, _ = TemplateVocabulary.fit(self._layout.without_kinds(), X, 1)
        is_new = self.positions(every, X) < 0
        if not is_new.any():
            return self
        margin = self._layout.left + self._layout.right
        new_strings, new_ids, new_codes = every.narrowed(is_new).tables
        strings, codes_of = [], []
        for own, its in zip(self._strings, new_strings, strict=False):
            found = Interner.from_arrays(own.data, own.starts).lookup_arrays(its.data, its.starts)
            found[found < 0] = len(own) + np.arange(np.count_nonzero(found < 0), dtype=np.int32)
            new = its.take(np.flatnonzero(found >= len(own)))
            data, starts = np.concatenate([own.data, new.data]), own.starts[-1] + new.starts[1:]
            strings.append(Vocabulary(data, np.concatenate([own.starts, starts])))
            codes_of.append(np.concatenate([np.arange(margin, dtype=np.int32), found + np.int32(margin)]))
        added = [
            np.stack([codes_of[source][codes[:, k]] for k, source in enumerate(space)], axis=1).reshape(codes.shape)
            if space
            else codes
            for space, codes in zip(self._layout.spaces, new_codes, strict=False)
        ]
        ids = [np.append(own, its + np.int32(self.n_features)) for own, its in zip(self._ids, new_ids, strict=False)]
        every_code = [np.concatenate([own, its]) for own, its in zip(self._codes, added, strict=False)]
        strings += self._strings[len(new_strings) :]  # kinds come last
        ids, every_code = ids + self._ids[len(new_ids) :], every_code + self._codes[len(new_codes) :]
        return TemplateVocabulary(self._layout, strings, ids, every_code, self._kinds)

    def with_plain(self, X: Columns) -> TemplateVocabulary:
        """The vocabulary of all features of other columns, with the kinds of this one behind them."""
        every, _ = TemplateVocabulary.fit(self._layout.without_kinds(), X, 1)
        strings, ids, codes = every.tables
        first = min((int(self._ids[space].min(initial=self.n_features)) for space in self._kinds.labels), default=0)
        ids = ids + [own - np.int32(first - every.n_features) for own in self._ids[len(ids) :]]
        more = self._strings[len(strings) :], self._codes[len(codes) :]
        return TemplateVocabulary(self._layout, strings + more[0], ids, codes + more[1], self._kinds)

    def order(self) -> NDArray[np.int32]:
        """The templates by the typical index of their features, which fall in frequency as 1 / (index + 1)."""
        typical = [len(ids) / (1.0 / (ids + 1.0)).sum() if len(ids) else 0.0 for ids in self._ids]
        return np.argsort(np.array(typical)[self._layout.template_space], kind="stable").astype(np.int32)

    def make_ready(self) -> tuple[TemplateReader, Coder, NDArray[np.int32]]:
        interners = [Interner.from_arrays(v.data, v.starts) for v in self._strings]
        margin = self._layout.left + self._layout.right
        tables = []
        for space, codes, ids in zip(self._layout.spaces, self._codes, self._ids, strict=True):
            # No array is much larger than its features need.
            table = TemplateTable([len(interners[i]) + margin for i in space], 64 + 64 * len(ids))
            table.insert(codes, ids)
            tables.append(table)

        def code(sources: list[int], made: list[Sequence[str | None]]) -> NDArray[np.int64]:
            return _after(margin, np.stack([interners[i].lookup(strings) for i, strings in zip(sources, made)]))

        outside = self._layout.strings_outside
        if outside is None:
            return self._layout.reader(tables), code, self.order()
        places = [
            _after(margin, interner.lookup(strings)) for interner, strings in zip(interners, outside, strict=True)
        ]
        return self._layout.reader(tables, boundaries=places), code, self.order()

    def to_arrays(self) -> dict[str, AnyArray]:
        """Named arrays, for model files: the space of each feature, and by space the codes of its features."""
        arrays: dict[str, AnyArray] = {}
        for i, vocabulary in enumerate(self._strings):
            arrays |= vocabulary.to_arrays(f"strings_{i}")
        spaces = np.zeros(self.n_features, dtype=np.int64)
        for i, (ids, codes) in enumerate(zip(self._ids, self._codes, strict=True)):
            spaces[ids] = i
            arrays[f"feature_codes_{i}"] = least(codes[np.argsort(ids, kind="stable")])
            if len(np.unique(ids)) < len(ids):
                arrays[f"feature_ids_{i}"] = np.sort(ids)
            if i in self._kinds.labels:
                arrays[f"feature_kinds_{i}"] = least(self._kinds.labels[i][np.argsort(ids, kind="stable")])
        if self._kinds.labels:
            arrays["kinds_of_sequences"] = self._kinds.sequences.view(np.int32)
        return arrays | {"feature_spaces": least(spaces)}

    @classmethod
    def from_arrays(cls, layout: TemplateLayout, arrays: dict[str, AnyArray], n_features: int) -> TemplateVocabulary:
        """The inverse of :meth:`to_arrays`; raises ValueError or KeyError for anything else."""
        words = [
            Vocabulary.from_arrays(arrays, f"strings_{i}", f"string_starts_{i}", f"n_strings_{i}")
            for i in range(len(layout.sources))
        ]
        for vocabulary in words:
            vocabulary.tolist()  # UTF-8, or UnicodeDecodeError, a ValueError
        all_ids = _ids_of(layout, arrays, n_features)
        margin, all_codes = layout.left + layout.right, []
        for i, (space, ids) in enumerate(zip(layout.spaces, all_ids, strict=True)):
            n_codes = max((len(words[source]) for source in space), default=0) + margin
            name = f"feature_codes_{i}"
            table = {name: Array(INTEGERS, (len(ids), len(space)), within=(0, n_codes))}
            all_codes.append(checked_arrays(arrays, table)[name].astype(np.int32))
        kinds = KindsOfWords({}, NO_CODES)
        if layout.has_kinds:
            table = {"kinds_of_sequences": Array("i4", ("n_sequences",))}
            kinds = KindsOfWords({}, checked_arrays(arrays, table)["kinds_of_sequences"].view(np.uint32))
        for i in layout.spaces_of_kinds:
            name = f"feature_kinds_{i}"
            table = {name: Array(INTEGERS, (len(all_ids[i]),), within=(0, 2**31))}
            kinds.labels[i] = checked_arrays(arrays, table)[name].astype(np.int32)
        self = cls(layout, words, all_ids, all_codes, kinds)
        self.prepare()  # checks every code
        return self


def _ids_of(layout: TemplateLayout, arrays: dict[str, AnyArray], n_features: int) -> list[NDArray[np.int32]]:
    """The features of each space; earlier files have a list of them for each."""
    n_spaces = len(layout.spaces)
    if "feature_spaces" in arrays:
        table = {"feature_spaces": Array(INTEGERS, (n_features,), within=(0, n_spaces))}
        spaces = checked_arrays(arrays, table)["feature_spaces"]
        return [_ids_of_space(arrays, i, np.flatnonzero(spaces == i), n_features) for i in range(n_spaces)]
    names = [f"feature_ids_{i}" for i in range(n_spaces)]
    found = checked_arrays(arrays, {name: Array("i4", (f"n of {name}",), within=(0, n_features)) for name in names})
    everything = np.concatenate([*found.values(), np.zeros(0, np.int32)])
    if len(everything) != n_features or len(np.unique(everything)) != n_features:
        raise ValueError(f"arrays 'feature_ids_...' are not each of the {n_features} features once")
    return [found[name] for name in names]


def _ids_of_space(arrays: dict[str, AnyArray], i: int, own: Integers, n_features: int) -> NDArray[np.int32]:
    """The features of a space, each once, or as the file lists those that several words share."""
    name = f"feature_ids_{i}"
    if name not in arrays:
        return own.astype(np.int32)
    ids = checked_arrays(arrays, {name: Array("i4", (f"n of {name}",), within=(0, n_features))})[name]
    if not np.array_equal(np.unique(ids), own):
        raise ValueError(f"array {name!r} must list the features whose 'feature_spaces' is {i}")
    return ids


class Labelled(NamedTuple):
    """Labels of the tokens of columns, and which of these count."""

    label_ids: Integers
    counted: NDArray[np.bool_]


def _kinds_in(
    layout: TemplateLayout, X: Columns, labelled: Labelled
) -> tuple[dict[int, tuple[Vocabulary, Kinds]], NDArray[np.uint32]]:
    """By column whose kinds are asked for: the patterns of its words, and their kinds. And a code of each sequence."""
    patterns, of_tokens = list[Vocabulary](), np.empty(X.ids.shape, dtype=np.int64)
    hashes = np.empty(X.ids.shape, dtype=np.uint64)
    for j, vocabulary in enumerate(X.vocabularies):
        interner = Interner()
        of_tokens[:, j] = interner.intern(function_of(KIND)(vocabulary.tolist()))[X.ids[:, j]]
        patterns.append(Vocabulary(*interner.to_arrays()))
        hashes[:, j] = hash_strings(patterns[j].data, patterns[j].starts)[of_tokens[:, j]]
    sequences = equal_sequences(of_tokens, X.offsets)
    kinds = {
        j: (patterns[j], kinds_of(of_tokens[:, j], len(patterns[j]), sequences, *labelled))
        for function, j in layout.sources
        if function == KIND
    }
    return kinds, codes_of_sequences(hashes, X.offsets)


def _moved(codes: NDArray[np.int32], old: TemplateLayout, new: TemplateLayout) -> NDArray[np.int32]:
    """Codes of a layout in one that reaches further to the left or right."""
    after = codes + np.int32(new.left - old.left)
    strings = codes + np.int32(new.left + new.right - old.left - old.right)
    return np.where(codes < old.left, codes, np.where(codes < old.left + old.right, after, strings))


def _numbered_kinds(found: Integers, kinds: Kinds, min_count: int, first: int) -> NDArray[np.int32]:
    """The feature of each kind, from `first` on, of those that enough tokens and some words have; -1: none.

    The last one is that of no kind.
    """
    n = int(max(found.max(initial=-1), kinds.of_patterns.max(initial=-1))) + 1
    met, known = (np.bincount(own[own >= 0], minlength=n) for own in (found, kinds.of_patterns))
    kept = (met >= min_count) & (known > 0)
    return np.append(np.where(kept, first + np.cumsum(kept) - 1, -1), -1).astype(np.int32)


def _after(margin: int, ids: NDArray[np.int32]) -> NDArray[np.int64]:
    """The codes of strings with these ids, behind those of boundaries; -1 stays."""
    return np.where(ids < 0, -1, ids.astype(np.int64) + margin)


def _whole(name: str) -> str:
    """A name whose bytes may have come one by one from several strings."""
    return name if name.isascii() else name.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")


class _Met:
    """The features of templates that are met in columns, and how often.

    Parameters
    ----------
    layout : TemplateLayout
    vocabularies : sequence of Vocabulary
        Vocabularies of the columns.

    Attributes
    ----------
    strings : list of Vocabulary
        The strings of each source.
    n_tokens : int
    """

    def __init__(self, layout: TemplateLayout, vocabularies: Sequence[Vocabulary]) -> None:
        self.layout, self.n_tokens = layout, 0
        self.strings: list[Vocabulary] = []
        margin = layout.left + layout.right
        widths = Counter(j for _, j in layout.sources)
        codes_of = {j: np.empty((len(vocabularies[j]), width), dtype=np.int64) for j, width in widths.items()}
        self._codes = [(j, np.arange(len(codes), dtype=np.int32), codes) for j, codes in codes_of.items()]
        words: dict[int, list[str]] = {}
        outside, places = layout.strings_outside, []
        for i, ((function, j), (_, place)) in enumerate(zip(layout.sources, layout.places, strict=True)):
            vocabulary = vocabularies[j]
            ids = np.arange(len(vocabulary), dtype=np.int32)
            if function != "x" or outside is not None:
                if j not in words:
                    words[j] = vocabulary.tolist()
                interner = Interner()
                ids = interner.intern(words[j] if function == "x" else function_of(function)(words[j]))
                if outside is not None:
                    places.append(_after(margin, interner.intern(outside[i])))
                vocabulary = Vocabulary(*interner.to_arrays())
            self.strings.append(vocabulary)
            codes_of[j][:, place] = _after(margin, ids)
        sizes = [len(v) + margin for v in self.strings]
        self._tables = [TemplateTable([sizes[i] for i in space]) for space in layout.spaces]
        self._reader = layout.reader(self._tables, boundaries=None if outside is None else places)

    def add(self, X: Columns) -> NDArray[np.int32]:
        """The feature of each template at each token."""
        found = self._reader.read(X.ids, X.offsets, self._codes, True, self.n_tokens)
        self.n_tokens += X.n_tokens
        return found

    def counts(self) -> Counts:
        return Counts(self.strings, [table.statistics() for table in self._tables], self.n_tokens)

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
    for X in map(layout.widened, pieces):
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
        number = np.zeros(len(all_codes), dtype=np.int64)  # numbers of the codes so far: at most as many as features
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
