"""Encoded token features: the :class:`Tokens` container and the :class:`FeatureEncoder`.

Users' data come in four forms: columns of a file under templates, attribute strings or
feature dicts, dense rows, and CSR rows. All end as one CSR layout over all tokens, with
features numbered by falling frequency, so that the weights which are read most lie close
together.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from structsvm._attributes import AttributeBuffer
from structsvm._strings import Interner, hash_strings
from structsvm._templates import TemplateTable, gather_templates
from structsvm._tokens import TokenBuffer, descending_order
from structsvm.columns import Columns, Vocabulary, take_ranges
from structsvm.matrices import is_numeric, is_sparse, numeric_rows, split_rows
from structsvm.model_file import checksum
from structsvm.templates import FUNCTIONS, TemplateLayout, template_source

__all__ = ["FeatureEncoder", "Tokens"]

MAX_FEATURES = 2**31 - 1
NEED_COLUMNS = "templates need columns: a Columns object, or tokens that are tuples of strings"


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """Sequences of sparse tokens, in one CSR layout.

    Attributes
    ----------
    offsets : int64 array of shape (n_sequences + 1,)
        Sequence s is tokens ``offsets[s]:offsets[s + 1]``.
    indptr : int64 array of shape (n_tokens + 1,)
        Token t has entries ``indptr[t]:indptr[t + 1]``.
    indices : int32 array of shape (n_entries,)
        Feature numbers, strictly ascending within a token.
    values : float32 array of shape (n_entries,), or None
        None: all ones.
    n_features : int
    """

    offsets: NDArray[np.int64]
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[np.float32] | None
    n_features: int

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_tokens(self) -> int:
        return len(self.indptr) - 1

    @property
    def n_entries(self) -> int:
        return len(self.indices)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each sequence."""
        return np.diff(self.offsets)

    def __getitem__(self, sequences: slice) -> Tokens:
        """Some sequences, ``tokens[10:20]``; a slice of step 1 copies no entries."""
        if not isinstance(sequences, slice):
            raise TypeError("tokens are sliced by sequences, tokens[i:j]; see take()")
        i, j, step = sequences.indices(len(self))
        if step != 1:
            return self.take(np.arange(i, j, step))
        j = max(i, j)
        a, b = self.offsets[i], self.offsets[j]
        first, last = self.indptr[a], self.indptr[b]
        return Tokens(
            self.offsets[i : j + 1] - a,
            self.indptr[a : b + 1] - first,
            self.indices[first:last],
            None if self.values is None else self.values[first:last],
            self.n_features,
        )

    def fingerprint(self, labels: NDArray[np.int32]) -> int:
        """A checksum of the entries, and of the labels of all tokens."""
        arrays = (labels, self.offsets, self.indices, self.values)
        return checksum(array for array in arrays if array is not None)

    def take(self, sequences: Any) -> Tokens:
        """The sequences of an array of indices (or a boolean mask), in its order."""
        offsets, rows = take_ranges(self.offsets, sequences)
        indptr, entries = take_ranges(self.indptr, rows)
        return Tokens(
            offsets,
            indptr,
            self.indices[entries],
            None if self.values is None else self.values[entries],
            self.n_features,
        )


class FeatureEncoder:
    """Numbers the features of users' data.

    Parameters
    ----------
    templates : str, path, or None
        For :class:`~structsvm.columns.Columns`: the name of a built-in set (``"rich"``,
        ``"crf++"``, ``"attributes"``), the text of a template file, or its path. None is
        ``"rich"`` for Columns; for other data, no templates.
    min_count : int
        Features that occur fewer times in the training data are dropped. Numeric columns
        are kept as they are.
    hash_bits : int or None
        k: no vocabulary; names of features are hashed to 2**k numbers, 1 <= k <= 30, and
        features that meet in one are added up. For streams without a bound.

    Attributes
    ----------
    kind : {"columns", "attributes", "numeric"} or None
        What it was fitted on.
    n_features : int
    template_bigram : bool
        Whether neighbouring labels have weights of their own: what a line ``B`` of the
        templates says; True for all other data.

    Notes
    -----
    Forms of X, in :meth:`fit_transform` and :meth:`transform`:

    columns
        A ``Columns`` object without the label column. Where `templates` are given, or the
        encoder was fitted on columns: sequences of tokens that are tuples of strings, too.
    attributes
        An iterable of sequences (a generator is encoded as it comes), a sequence a list
        of tokens, a token either a list, tuple or set of strings, or a dict as
        python-crfsuite has it: a string v under key k is the feature ``"k:v"`` of value 1,
        a number or bool is the value of feature ``"k"``, and a dict, list or set under k
        is taken apart with ``"k:"`` put in front. Zeros are left out, repetitions added up.
        Without `templates` a tuple ``("dog", "NN")`` is just the attributes "dog" and "NN"
        of its token; for features of its columns and neighbours, give ``templates="rich"``.
    numeric
        A list of 2-D arrays or sparse matrices with one row a token, or one such matrix
        with ``lengths``. Feature j is column j.
    """

    def __init__(
        self,
        templates: str | os.PathLike[str] | None = None,
        min_count: int = 1,
        hash_bits: int | None = None,
    ) -> None:
        if isinstance(min_count, bool) or not isinstance(min_count, (int, np.integer)):
            raise TypeError(f"min_count must be an int, got {min_count!r}")
        if min_count < 1:
            raise ValueError(f"min_count must be at least 1, got {min_count}")
        if hash_bits is not None:
            if isinstance(hash_bits, bool) or not isinstance(hash_bits, (int, np.integer)):
                raise TypeError(f"hash_bits must be an int or None, got {hash_bits!r}")
            if not 1 <= hash_bits <= 30:
                raise ValueError(f"hash_bits must be between 1 and 30, got {hash_bits}")
            if min_count != 1:
                raise ValueError("hash_bits keeps no counts; it needs min_count=1")
        self.min_count = int(min_count)
        self.hash_bits = None if hash_bits is None else int(hash_bits)
        self.templates = template_source(templates)
        self._reset()

    def _reset(self) -> None:
        self.kind: str | None = None
        self.n_features = 0
        self.template_bigram = True
        self._layout: TemplateLayout | None = None
        self._space_ids: list[NDArray[np.int32]] = []
        self._space_codes: list[NDArray[np.int32]] = []
        self._vocabularies: list[Vocabulary] = []
        self._names: list[str] = []
        self._forget_caches()

    def _forget_caches(self) -> None:
        self._lookup: tuple[list[Interner], list[TemplateTable]] | None = None
        self._index: tuple[dict[str, int], dict[str, dict[str, int]]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lookup": None, "_index": None}

    # ---------------------------------------------------------------- public verbs

    def fit(self, X: Any, lengths: Any = None) -> FeatureEncoder:
        """Learn the vocabulary; see :meth:`fit_transform`."""
        self.fit_transform(X, lengths)
        return self

    def fit_transform(self, X: Any, lengths: Any = None) -> Tokens:
        """Learn the vocabulary of training data, and encode them.

        Parameters
        ----------
        X : Columns, or iterable of sequences, or matrix with `lengths`
            See the notes of the class.
        lengths : sequence of int, optional
            Rows of each sequence, when X is one matrix.

        Returns
        -------
        Tokens

        Raises
        ------
        ValueError
            An empty sequence, a value that is not finite, no sequences at all, templates
            for tokens without columns; the message names sequence, token and feature.
        TypeError
            A token or feature of a type with no meaning.
        """
        fresh = FeatureEncoder(None, self.min_count, self.hash_bits)
        fresh.templates = self.templates
        tokens = fresh._encode(X, lengths, True)
        if len(tokens) == 0:
            raise ValueError("X holds no sequences")
        self.__dict__.update(fresh.__dict__)  # only now, so that an error changes nothing
        return tokens

    def transform(self, X: Any, lengths: Any = None) -> Tokens:
        """Encode data of the kind it was fitted on; unknown features are left out."""
        if self.kind is None:
            if self.hash_bits is not None:
                return self.fit_transform(X, lengths)
            raise ValueError("this FeatureEncoder is not fitted yet; call fit_transform first")
        return self._encode(X, lengths, False)

    @property
    def n_columns(self) -> int | None:
        """Columns that the features are made of, without the label; None unless fitted on columns."""
        return None if self._layout is None else self._layout.n_columns

    @property
    def feature_names(self) -> list[str]:
        """Names of all features, in the order of their numbers (made on each call)."""
        if self.kind == "numeric":
            return [str(j) for j in range(self.n_features)]
        if self.hash_bits is not None:
            return [f"hash:{j}" for j in range(self.n_features)]
        if self.kind == "attributes":
            return list(self._names)
        return self._template_names()

    # ------------------------------------------------------------------- dispatch

    def _encode(self, X: Any, lengths: Any, fit: bool) -> Tokens:
        if isinstance(X, Columns):
            self._become("columns", fit)
            X = X.compact()
            return self._fit_columns(X) if fit else self._transform_columns(X)
        if hasattr(X, "__array__") and not hasattr(X, "__iter__"):
            X = np.asarray(X)
        if not is_sparse(X) and (isinstance(X, (str, bytes, dict)) or not hasattr(X, "__iter__")):
            raise TypeError(f"X must hold sequences of tokens, got {type(X).__name__}")
        if lengths is not None:
            return self._encode_numeric(split_rows(X, lengths), fit)
        if is_sparse(X) or (isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "fiub"):
            raise ValueError("X is one matrix: lengths= must give the rows of each sequence")
        iterator = iter(X)
        first = next(iterator, None)
        if first is None:
            if fit:
                raise ValueError("X holds no sequences")
            return self._nothing()
        sequences = _chain(first, iterator)
        if is_numeric(first):
            return self._encode_numeric(sequences, fit)
        if self._wants_columns(fit):
            return self._encode(_columns_of(sequences), None, fit)
        return self._encode_attributes(sequences, fit)

    def _wants_columns(self, fit: bool) -> bool:
        return self.templates is not None if fit else self.kind == "columns"

    def _become(self, kind: str, fit: bool) -> None:
        if kind != "columns" and self._wants_columns(fit):
            raise ValueError(f"{NEED_COLUMNS}; X holds {kind} tokens")
        if fit:
            self.kind = kind
        elif self.kind != kind:
            raise ValueError(f"this FeatureEncoder was fitted on {self.kind}, X holds {kind}")

    def _nothing(self) -> Tokens:
        zero = np.zeros(1, dtype=np.int64)
        return Tokens(zero, zero, np.zeros(0, dtype=np.int32), None, self.n_features)

    # ----------------------------------------------------------------- attributes

    def _encode_attributes(self, sequences: Iterable[Any], fit: bool) -> Tokens:
        self._become("attributes", fit)
        hash_bits = self.hash_bits or 0
        if hash_bits:
            self.n_features = 2**hash_bits
            names: dict[str, int] = {}
            buffer = AttributeBuffer(names, {}, False, hash_bits)
        elif fit:
            names = {}
            buffer = AttributeBuffer(names, {}, True)
        else:
            if self._index is None:
                self._index = {name: i for i, name in enumerate(self._names)}, {}
            buffer = AttributeBuffer(*self._index, False)
        for sequence in sequences:
            if isinstance(sequence, np.ndarray):
                sequence = sequence.tolist()
            buffer.add(sequence)
        remap = None
        if fit and not hash_bits:
            counts = buffer.counted()
            kept = np.flatnonzero(counts >= self.min_count)
            kept = kept[descending_order(counts[kept])]
            remap = _inverse(kept, len(counts))
            by_arrival = list(names)
            self._names = [by_arrival[i] for i in kept.tolist()]
            self.n_features = len(kept)
        return Tokens(*buffer.finish(remap), self.n_features)

    # -------------------------------------------------------------------- numeric

    def _encode_numeric(self, sequences: Iterable[Any], fit: bool) -> Tokens:
        self._become("numeric", fit)
        buffer = TokenBuffer()
        width = None if fit else self.n_features
        for s, sequence in enumerate(sequences):
            shape, add = numeric_rows(sequence, s)
            if width is None:
                width = shape[1]
            if shape[1] != width:
                raise ValueError(f"sequence {s} has {shape[1]} columns, expected {width}")
            if shape[0] == 0:
                raise ValueError(f"sequence {s} is empty")
            add(buffer)
        if fit:
            if width is not None and width > MAX_FEATURES:
                raise OverflowError("more than 2**31 - 1 features")
            self.n_features = width or 0
        return Tokens(*buffer.finish(), self.n_features)

    # -------------------------------------------------------------------- columns

    def _fit_columns(self, X: Columns) -> Tokens:
        layout = TemplateLayout.resolve(self.templates, X.n_columns)
        margin = layout.left + layout.right
        vocabularies, padded = [], []
        strings: dict[int, list[str]] = {}
        for function, j in layout.sources:
            vocabulary = X.vocabularies[j]
            ids = np.arange(len(vocabulary), dtype=np.int32)
            if function != "x":
                if j not in strings:
                    strings[j] = vocabulary.tolist()
                interner = Interner()
                ids = interner.intern(FUNCTIONS[function](strings[j]))
                vocabulary = Vocabulary(*interner.to_arrays())
            vocabularies.append(vocabulary)
            padded.append(layout.pad(X, j, ids))
        sizes = [len(v) + margin for v in vocabularies]
        tables = [TemplateTable([sizes[i] for i in space]) for space in layout.spaces]
        found = layout.expand(X, padded, tables, True)
        statistics = [table.statistics() for table in tables]
        if self.hash_bits is not None:
            maps = self._hash_spaces(layout, vocabularies, statistics)
        else:
            maps = self._number_spaces(layout, vocabularies, statistics)
        self._layout = layout
        self.template_bigram = layout.bigram
        arrays = gather_templates(found, [maps[i] for i in layout.template_space], X.n_tokens)
        return Tokens(X.offsets, *arrays, self.n_features)

    def _number_spaces(
        self, layout: TemplateLayout, vocabularies: list[Vocabulary], statistics: list[Any]
    ) -> list[NDArray[np.int32]]:
        """Number the kept features; keep their codes and the strings that these need."""
        counts = np.concatenate([c for c, _, _ in statistics] or [np.zeros(0, np.int64)])
        firsts = np.concatenate([f for _, f, _ in statistics] or [np.zeros(0, np.int64)])
        kept = np.flatnonzero(counts >= self.min_count)
        order = descending_order(counts[kept], firsts[kept])
        if len(order) > MAX_FEATURES:
            raise OverflowError("more than 2**31 - 1 features")
        ids = _inverse(kept[order], len(counts))
        self.n_features = len(order)
        ends = np.cumsum([0, *(len(c) for c, _, _ in statistics)]).tolist()
        maps = [ids[a:b] for a, b in pairwise(ends)]
        # Strings of no kept feature are dropped; boundary codes stay what they are.
        margin = layout.left + layout.right
        used = [np.zeros(len(v) + margin, dtype=bool) for v in vocabularies]
        codes = [c[m >= 0] for (_, _, c), m in zip(statistics, maps, strict=True)]
        for space, table_codes in zip(layout.spaces, codes, strict=True):
            for k, source in enumerate(space):
                used[source][table_codes[:, k]] = True
        self._vocabularies = []
        renumber = []
        for vocabulary, mask in zip(vocabularies, used, strict=True):
            mask[:margin] = True
            renumber.append((np.cumsum(mask) - 1).astype(np.int32))
            self._vocabularies.append(vocabulary.take(np.flatnonzero(mask[margin:])))
        self._space_ids, self._space_codes = [], []
        for space, table_codes, m in zip(layout.spaces, codes, maps, strict=True):
            new = np.empty_like(table_codes)
            for k, source in enumerate(space):
                new[:, k] = renumber[source][table_codes[:, k]]
            self._space_ids.append(np.ascontiguousarray(m[m >= 0]))
            self._space_codes.append(new)
        return maps

    def _hash_spaces(
        self, layout: TemplateLayout, vocabularies: list[Vocabulary], statistics: list[Any]
    ) -> list[NDArray[np.int32]]:
        """Buckets of the features met: a chained hash of template text and strings."""
        bits = cast(int, self.hash_bits)
        self.n_features = 2**bits
        ends = Vocabulary.from_strings(layout.boundaries)
        hashes = [
            np.concatenate([hash_strings(v.data, v.starts) for v in (ends, vocabulary)]) for vocabulary in vocabularies
        ]
        texts = Vocabulary.from_strings([repr(key) for key in layout.keys])
        maps = []
        for start, space, (_, _, codes) in zip(
            hash_strings(texts.data, texts.starts), layout.spaces, statistics, strict=True
        ):
            h = np.full(len(codes), start, dtype=np.uint64)
            for k, source in enumerate(space):
                h = (h ^ hashes[source][codes[:, k]]) * np.uint64(0x9E3779B97F4A7C15)
                h ^= h >> np.uint64(29)
            maps.append((h >> np.uint64(64 - bits)).astype(np.int32))
        return maps

    def _transform_columns(self, X: Columns) -> Tokens:
        layout = cast(TemplateLayout, self._layout)
        if X.n_columns != layout.n_columns:
            raise ValueError(f"{X.name}: expected {layout.n_columns} columns without the label, found {X.n_columns}")
        if self.hash_bits is not None:
            other = FeatureEncoder(None, 1, self.hash_bits)
            other.templates = layout.text
            return other._fit_columns(X)
        if self._lookup is None:
            self._lookup = self._build_lookup(layout)
        interners, tables = self._lookup
        strings: dict[int, list[str]] = {}
        padded = []
        for (function, j), interner in zip(layout.sources, interners, strict=True):
            vocabulary = X.vocabularies[j]
            if function == "x":
                ids = interner.lookup_arrays(vocabulary.data, vocabulary.starts)
            else:
                if j not in strings:
                    strings[j] = vocabulary.tolist()
                ids = interner.lookup(FUNCTIONS[function](strings[j]))
            padded.append(layout.pad(X, j, ids))
        found = layout.expand(X, padded, tables, False)
        arrays = gather_templates(found, [None] * len(found), X.n_tokens)
        return Tokens(X.offsets, *arrays, self.n_features)

    def _build_lookup(self, layout: TemplateLayout) -> tuple[list[Interner], list[TemplateTable]]:
        interners = [Interner.from_arrays(v.data, v.starts) for v in self._vocabularies]
        margin = layout.left + layout.right
        tables = []
        for space, codes, ids in zip(layout.spaces, self._space_codes, self._space_ids, strict=True):
            # No array much larger than the features it serves.
            table = TemplateTable([len(interners[i]) + margin for i in space], 64 + 64 * len(ids))
            table.insert(codes, ids)
            tables.append(table)
        return interners, tables

    def _template_names(self) -> list[str]:
        names = [""] * self.n_features
        if self._layout is None:
            return names
        words = [[*self._layout.boundaries, *v.tolist()] for v in self._vocabularies]
        for (literals, _), space, ids, codes in zip(
            self._layout.keys, self._layout.spaces, self._space_ids, self._space_codes, strict=True
        ):
            columns = [
                [words[source][c] + literal for c in codes[:, k].tolist()]
                for k, (source, literal) in enumerate(zip(space, literals[1:], strict=True))
            ]
            for place, i in enumerate(ids.tolist()):
                names[i] = literals[0] + "".join([column[place] for column in columns])
        return names

    # -------------------------------------------------------------- serialisation

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The whole state, as a dict for JSON and named arrays."""
        meta: dict[str, Any] = {
            "templates": self.templates,
            "min_count": self.min_count,
            "hash_bits": self.hash_bits,
            "kind": self.kind,
            "n_features": self.n_features,
        }
        arrays: dict[str, NDArray[Any]] = {}
        if self.kind == "attributes" and self.hash_bits is None:
            names = Vocabulary.from_strings(self._names)
            arrays = {"names": names.data, "name_starts": names.starts}
        if self._layout is not None:
            meta["template_text"] = self._layout.text
            meta["n_columns"] = self._layout.n_columns
            if self.hash_bits is None:
                for i, vocabulary in enumerate(self._vocabularies):
                    arrays[f"strings_{i}"] = vocabulary.data
                    arrays[f"string_starts_{i}"] = vocabulary.starts
                for i, (ids, codes) in enumerate(zip(self._space_ids, self._space_codes, strict=True)):
                    arrays[f"feature_ids_{i}"] = ids
                    arrays[f"feature_codes_{i}"] = codes
        return meta, arrays

    @classmethod
    def from_arrays(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> FeatureEncoder:
        """Rebuild from :meth:`to_arrays`.

        Raises
        ------
        ValueError
            Anything that :meth:`to_arrays` cannot have written.
        """
        try:
            return cls._from_arrays(meta, arrays)
        except (KeyError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(f"not a feature encoder: {error!r}") from error

    @classmethod
    def _from_arrays(cls, meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> FeatureEncoder:
        templates = meta["templates"]
        if not (templates is None or isinstance(templates, str)):
            raise ValueError("not a feature encoder: templates must be text")
        self = cls(None, meta["min_count"], meta["hash_bits"])
        self.templates = templates
        n_features, kind = meta["n_features"], meta["kind"]
        if type(n_features) is not int or not 0 <= n_features <= MAX_FEATURES:
            raise ValueError("not a feature encoder: n_features is out of range")
        if kind not in (None, "columns", "attributes", "numeric"):
            raise ValueError(f"not a feature encoder: kind {kind!r}")
        self.kind, self.n_features = kind, n_features
        hashed = self.hash_bits is not None and kind in ("attributes", "columns")
        if hashed and n_features != 2 ** (self.hash_bits or 0):
            raise ValueError("not a feature encoder: n_features does not fit hash_bits")
        if kind == "attributes" and not hashed:
            self._names = _strings(arrays, "names", "name_starts").tolist()
            if not len(set(self._names)) == len(self._names) == n_features:
                raise ValueError("not a feature encoder: names are missing or repeated")
        if kind == "columns":
            n_columns = meta["n_columns"]
            if type(n_columns) is not int or n_columns < 0:
                raise ValueError("not a feature encoder: n_columns is out of range")
            self._layout = TemplateLayout.build(meta["template_text"], "<model>", n_columns)
            self.template_bigram = self._layout.bigram
            if not hashed:
                self._load_spaces(self._layout, arrays)
        return self

    def _load_spaces(self, layout: TemplateLayout, arrays: dict[str, NDArray[Any]]) -> None:
        for i in range(len(layout.sources)):
            vocabulary = _strings(arrays, f"strings_{i}", f"string_starts_{i}")
            vocabulary.tolist()  # UTF-8, or UnicodeDecodeError, a ValueError
            self._vocabularies.append(vocabulary)
        for i, space in enumerate(layout.spaces):
            ids = _array(arrays, f"feature_ids_{i}", np.int32, 1)
            codes = _array(arrays, f"feature_codes_{i}", np.int32, 2)
            if codes.shape != (len(ids), len(space)):
                raise ValueError(f"not a feature encoder: shape of feature_codes_{i}")
            self._space_ids.append(ids)
            self._space_codes.append(codes)
        everything = np.concatenate([*self._space_ids, np.zeros(0, np.int32)])
        if len(everything) != self.n_features:
            raise ValueError("not a feature encoder: n_features does not fit the features")
        if len(everything) and not 0 <= everything.min() <= everything.max() < self.n_features:
            raise ValueError("not a feature encoder: feature_ids are out of range")
        if not np.bincount(everything, minlength=self.n_features).all():
            raise ValueError("not a feature encoder: feature_ids are repeated")
        self._lookup = self._build_lookup(layout)  # checks every code


# ------------------------------------------------------------------------ helpers


def _columns_of(sequences: Iterable[Any]) -> Columns:
    """Sequences of tuples of strings as the columns that templates read."""

    def checked() -> Iterator[list[tuple[str, ...]]]:
        for s, sequence in enumerate(sequences):
            if isinstance(sequence, (str, bytes, dict)) or not hasattr(sequence, "__iter__"):
                raise TypeError(f"sequence {s} must be a list of tokens, got {type(sequence).__name__}")
            tokens = list(sequence)
            for t, token in enumerate(tokens):
                if not isinstance(token, tuple) or not all(isinstance(x, str) for x in token):
                    raise ValueError(
                        f"sequence {s}, token {t}: {NEED_COLUMNS}; got {token!r:.40} of type {type(token).__name__}"
                    )
            yield tokens

    return Columns.from_sequences(checked(), "X")


def _inverse(order: NDArray[np.int64], n: int) -> NDArray[np.int32]:
    """int32 array of n with out[order[i]] = i, and -1 elsewhere."""
    out = np.full(n, -1, dtype=np.int32)
    out[order] = np.arange(len(order), dtype=np.int32)
    return out


def _array(arrays: dict[str, NDArray[Any]], name: str, dtype: Any, ndim: int) -> NDArray[Any]:
    array = np.asarray(arrays[name])
    if array.dtype != dtype or array.ndim != ndim:
        raise ValueError(f"not a feature encoder: {name} has the wrong type or shape")
    return np.ascontiguousarray(array)


def _strings(arrays: dict[str, NDArray[Any]], data: str, starts: str) -> Vocabulary:
    vocabulary = Vocabulary(_array(arrays, data, np.uint8, 1), _array(arrays, starts, np.int64, 1))
    ends = vocabulary.starts
    if len(ends) == 0 or ends[0] != 0 or ends[-1] != len(vocabulary.data):
        raise ValueError(f"not a feature encoder: {starts} does not fit {data}")
    if (ends[1:] < ends[:-1]).any():
        raise ValueError(f"not a feature encoder: {starts} does not rise")
    return vocabulary


def _chain(first: Any, rest: Iterable[Any]) -> Iterable[Any]:
    yield first
    yield from rest
