"""The :class:`FeatureEncoder`: encodes users' data as :class:`~structsvm.features.tokens.Tokens`.

Users' data come in four forms: columns of a file under templates, attribute strings or
feature dicts, dense rows, and CSR rows. All end as one CSR layout over all tokens.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from structsvm.features._tokens import steps
from structsvm.features.attributes import AttributeVocabulary, check_no_table, hash_attributes, if_text, unwrapped
from structsvm.features.columns import Columns
from structsvm.features.inputs.number_texts import warn_of_number_texts
from structsvm.features.inputs.places import in_files
from structsvm.features.inputs.seen_columns import SeenColumns, sampled_names
from structsvm.features.matrices import encode_rows, is_numeric, is_sparse, split_rows
from structsvm.features.template_features import Counts, HashedTemplates, Labelled, TemplateEncoder, TemplateVocabulary
from structsvm.features.templates import (
    BUILT_IN_TEMPLATES,
    TemplateError,
    TemplateLayout,
    built_in_templates,
    is_template_text,
    split_kinds,
    template_source,
    text_of,
)
from structsvm.features.tokens import Tokens
from structsvm.model_file import under
from structsvm.stored_values import Array, Count, Group, Names, OneOf, Record, Stored, Text, Value, checked_arrays

if TYPE_CHECKING:
    from structsvm.arrays import AnyArray, Integers

__all__ = ["FeatureEncoder"]

END = object()  # behind the last sequence
BIGRAMS = {"bigrams": Array("i4", ("n_bigrams",), within=(0, "n_features"))}
ENCODER = Record({
    "templates": Text(null=True),
    "min_count": Count(1),
    "hash_bits": Count(1, 30, null=True),
    "kind": OneOf(("columns", "attributes", "numeric"), null=True),
    "n_features": Count(),
    "bigrams": Names(null=True),
    "n_bigrams": Count(),
    "template_text": Text(of="_layout.text", needed=False),
    "n_columns": Count(of="_layout.n_columns", needed=False),
    "seen": Value(SeenColumns.from_json, SeenColumns.to_json, needed=False),
    "vocabularies": Group(bare=True, of="named_arrays"),
})  # fmt: skip

NEED_COLUMNS = "templates need columns: a Columns object, or tokens that are tuples of strings, or strings"


class FeatureEncoder:
    """Assigns indices to the features of users' data.

    Parameters
    ----------
    templates : str, path, or None
        For :class:`~structsvm.features.columns.Columns`: the name of a built-in set (``"rich"``,
        ``"crf++"``, ``"attributes"``), the text of a template file, or its path. None is
        ``"rich"`` for Columns; for other data, no templates.
    min_count : int
        Features that occur fewer times in the training data are dropped. Numeric columns
        are kept as they are.
    hash_bits : int or None
        k: no vocabulary; names of features are hashed to 2**k indices, 1 <= k <= 30, and
        the values of colliding features are added up (those of templates, of which no two share
        features, count once). For unbounded streams.
    bigrams : str, list of str, or None
        Attributes that are conjoined with pairs of neighbouring labels as well: those of these names, and those that go
        on after the name with ":" or "=", as "word:the" (which is ``{"word": "the"}``) and "word=the" do for "word".
        Templates name theirs by lines that begin with ``B``.

    Attributes
    ----------
    kind : {"columns", "attributes", "numeric"} or None
        The kind of data that it was fitted on.
    n_features : int
    numbers : ndarray of int
        Indices of the attributes that had numbers other than 1 in the data that it was fitted on; no file has them.
    n_bigrams : int
        Number of attributes that are conjoined with pairs of labels.
    template_bigram : bool
        Whether neighbouring labels have weights of their own: whether the templates have a
        line that begins with ``B``; True for all other data.

    Notes
    -----
    Forms of X, in :meth:`fit_transform` and :meth:`transform`:

    columns
        A ``Columns`` object without the label column; or sequences of tokens that are strings, which are their
        only column. If `templates` are given, or the encoder was fitted on columns: also tokens that are tuples of
        strings.
    attributes
        An iterable of sequences (a generator is consumed lazily); a sequence is a list
        of tokens, a token a list, tuple or set of strings, or a dict as in
        python-crfsuite: a string v under key k is the feature ``"k:v"`` of value 1,
        a number or bool is the value of feature ``"k"``, and a dict, or a list or set of strings, under k
        is expanded with the prefix ``"k:"``; the numbers of a list or array are features
        ``"k[0]"``, ``"k[1]"``, ... Zeros are dropped, repetitions added up.
        Without `templates` a tuple ``("dog", "NN")`` is the attributes "dog" and "NN"
        of its token; for features of its columns and neighbours, give ``templates="rich"``.
    numeric
        A list of 2-D arrays or sparse matrices with one row per token, or one such matrix
        with ``lengths``. Feature j is column j.

    Examples
    --------
    >>> from structsvm.features.encoder import FeatureEncoder
    >>> encoder = FeatureEncoder()
    >>> tokens = encoder.fit_transform([[{"word": "the"}, {"word": "cat", "short": True}]])
    >>> encoder.feature_names
    ['word:the', 'word:cat', 'short']
    >>> tokens.indptr.tolist(), tokens.indices.tolist()
    ([0, 1, 3], [0, 1, 2])
    """

    def __init__(
        self,
        templates: str | os.PathLike[str] | None = None,
        min_count: int = 1,
        hash_bits: int | None = None,
        bigrams: str | Sequence[str] | None = None,
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
        names = [bigrams] if isinstance(bigrams, str) else None if bigrams is None else list(bigrams)
        if names is not None and not (names and all(isinstance(name, str) and name for name in names)):
            raise ValueError(f"bigrams must be names of attributes, or None; got {bigrams!r:.80}")
        if names is not None and hash_bits is not None:
            raise ValueError("bigrams names attributes, and hash_bits keeps no names: one of them must be None")
        self.bigrams = names
        self.min_count = int(min_count)
        self.hash_bits = None if hash_bits is None else int(hash_bits)
        self.templates = template_source(templates)
        self._file = None if is_template_text(templates) or templates is None else os.fspath(templates)
        self.kind: str | None = None
        self.n_features = self.n_bigrams = 0
        self.numbers = np.zeros(0, dtype=np.intp)
        self.seen: SeenColumns | None = None
        self._layout: TemplateLayout | None = None
        self._vocabulary: AttributeVocabulary | TemplateEncoder | None = None
        self._bigram_layout: TemplateLayout | None = None
        self._bigrams: TemplateEncoder | NDArray[np.int32] | None = None  # or the features that `bigrams` names
        self.growth: tuple[Any, ...] = ()  # data that features were added from, after those of `fit`
        self.lineage = object()

    def __getstate__(self) -> dict[str, Any]:
        """The attributes, for copies and pickles, without the data that features were added from."""
        return {**self.__dict__, "growth": (), "lineage": object()}

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
            Number of rows of each sequence, if X is one matrix.

        Returns
        -------
        Tokens

        Raises
        ------
        ValueError
            For an empty sequence, a value that is not finite, no sequences, templates
            for tokens without columns; the message names sequence, token and feature.
        TypeError
            For a token or feature of an unsupported type.
        """
        fresh = FeatureEncoder(None, self.min_count, self.hash_bits, self.bigrams)
        fresh.templates, fresh._file = self.templates, self._file
        tokens = fresh._encode(X, lengths, True)
        if len(tokens) == 0:
            raise ValueError("X contains no sequences")
        for s in np.flatnonzero(tokens.lengths == 0)[:1]:
            raise ValueError(f"sequence {s} is empty")
        fresh.n_features, fresh.n_bigrams = tokens.n_features, tokens.n_bigrams
        self.__dict__.update(fresh.__dict__)  # last, so that an error changes nothing
        return tokens

    def fit_columns(self, n_columns: int, counted: Callable[[TemplateLayout], Sequence[Counts]]) -> FeatureEncoder:
        """Learn the vocabulary of so many columns from their counts: what `counted` returns for a layout.

        Raises
        ------
        ValueError
            For templates of pairs of labels with attributes: these need all tokens at once.
        """
        fresh = FeatureEncoder(None, self.min_count, self.hash_bits, self.bigrams)
        fresh.templates, fresh._file, fresh.kind = self.templates, self._file, "columns"
        fresh._settle_layout(n_columns)
        if fresh._bigram_layout is not None:
            raise ValueError("templates: lines that begin with B and name an attribute need all tokens in memory")
        if self.hash_bits is not None:
            fresh.n_features = 2**self.hash_bits
        else:
            layout = cast(TemplateLayout, fresh._layout)
            fresh._vocabulary = TemplateVocabulary.of_counts(layout, counted(layout), self.min_count)
            fresh.n_features = fresh._vocabulary.n_features
        self.__dict__.update(fresh.__dict__)
        return self

    def transform(self, X: Any, lengths: Any = None) -> Tokens:
        """Encode data of the kind that it was fitted on; unknown features are dropped, and sequences may be empty.

        Raises
        ------
        ValueError
            For another kind of data, or another number of columns; for a column, or a key of feature dicts, that all
            tokens had in the data that it was fitted on and none has here; for columns in another order.
        """
        if self.kind is None:
            if self.hash_bits is not None:
                return self.fit_transform(X, lengths)
            raise ValueError("this FeatureEncoder is not fitted yet; call fit_transform first")
        return self._encode(X, lengths, False)

    def reader(self, X: Any) -> Callable[[int, int], Tokens] | None:
        """A function that encodes the sequences a .. b of a list, in any thread; None for other data than features.

        Raises
        ------
        ValueError
            As `transform`, for columns that all tokens had in training.
        """
        if self.kind != "attributes" or self.hash_bits is not None or not _begins_with_features(X):
            return None
        self._look_at(X, False)
        vocabulary = cast(AttributeVocabulary, self._vocabulary)
        return lambda a, b: self._conjoin(vocabulary.transform(X[a:b], a))

    @property
    def kinds(self) -> str:
        """The templates that ask for kinds of words, one a line; empty if none does."""
        name = self.templates
        return split_kinds(built_in_templates(name, 1) if name in BUILT_IN_TEMPLATES else name or "")[1]

    @property
    def has_kinds(self) -> bool:
        """Whether there are features of kinds of words: `learn_kinds` has learnt them."""
        return self._layout is not None and self._layout.has_kinds

    def learn_kinds(self, X: Columns, tokens: Tokens, label_ids: Integers, counted: NDArray[np.bool_]) -> Tokens:
        """Add the features of kinds of words that the templates ask for, see `structsvm.features.functions.kinds`.

        Parameters
        ----------
        X : Columns
            The data of the last `fit_transform`.
        tokens : Tokens
            The result.
        label_ids : int array of shape (n_tokens,)
        counted : bool array of shape (n_tokens,)
            Whether a token's label is known and is to count.

        Returns
        -------
        Tokens
            `tokens` with these features, by the labels of the other sequences; itself if there are none to learn.
        """
        layout, vocabulary = self._layout, self._vocabulary
        if layout is None or layout.has_kinds or not self.kinds or not isinstance(vocabulary, TemplateVocabulary):
            return tokens
        layout = layout.with_kinds(self.kinds)
        labelled = Labelled(label_ids, counted)
        self._vocabulary, tokens = vocabulary.with_kinds(layout, X.compact(), tokens, labelled, self.min_count)
        self._layout, self.n_features = layout, tokens.n_features
        return tokens

    def labelled(self, X: Columns, tokens: Tokens, label_ids: Integers, counted: NDArray[np.bool_]) -> Tokens:
        """The tokens of labelled sequences, to train on: no word has a kind by its own label.

        Parameters
        ----------
        X : Columns
        tokens : Tokens
            What `transform` returns for X.
        label_ids, counted : see `learn_kinds`
        """
        vocabulary = self._vocabulary
        if not self.has_kinds or not isinstance(vocabulary, TemplateVocabulary) or not X.n_tokens:
            return tokens
        labelled = vocabulary.transform_labelled(X.without_empty().compact(), Labelled(label_ids, counted))
        return replace(labelled.with_offsets(X.offsets), bigrams=tokens.bigrams)

    @property
    def n_labels_of_kinds(self) -> int:
        """One above the last label that is a kind of words; 0: there are none."""
        return self._vocabulary.n_labels_of_kinds if isinstance(self._vocabulary, TemplateVocabulary) else 0

    def relabelled(self, places: Integers) -> FeatureEncoder:
        """The encoder where label k has become `places[k]`, of which kinds of words have the numbers."""
        if not self.has_kinds or not isinstance(self._vocabulary, TemplateVocabulary):
            return self
        other = copy.copy(self)
        about = {"_vocabulary": self._vocabulary.relabelled(places), "growth": self.growth, "lineage": self.lineage}
        other.__dict__.update(about)
        return other

    def refitted(self, X: Any) -> tuple[FeatureEncoder, Tokens]:
        """An encoder of all features of other data, with the kinds of words of this one, and these data."""
        other = FeatureEncoder(self.templates)
        tokens = other.fit_transform(X)
        vocabulary: Any = self._vocabulary
        if self.has_kinds:
            vocabulary = vocabulary.with_plain(other._widened(X))
            about = {"_layout": self._layout, "_vocabulary": vocabulary, "n_features": vocabulary.n_features}
            other.__dict__.update(about)
            tokens = other.transform(X)
        return other, tokens

    @property
    def words_of_kinds(self) -> dict[str, int]:
        """The feature of a kind by the name that it would have for each of its words."""
        return self._vocabulary.words_of_kinds() if isinstance(self._vocabulary, TemplateVocabulary) else {}

    def columns_of(self, X: Any, lengths: Any = None, *, fit: bool) -> Any:
        """Sequences of tokens, which may be read once, as columns, and a matrix or no sequences as they came."""
        if isinstance(X, Columns) or lengths is not None or is_sparse(X):
            return X
        found = _columns_of(_sequences_of(X, has_lengths=False), fit)
        return found if len(found) else []

    @property
    def template_bigram(self) -> bool:
        return self._layout is None or self._layout.bigram

    @property
    def n_columns(self) -> int | None:
        """Number of columns without the label; None unless fitted on columns."""
        return None if self._layout is None else self._layout.n_columns

    @property
    def feature_names(self) -> list[str]:
        """Names of all features, by index (built on each call)."""
        if self.kind == "numeric":
            return [str(j) for j in range(self.n_features)]
        if self.hash_bits is not None:
            return [f"hash:{j}" for j in range(self.n_features)]
        return [""] * self.n_features if self._vocabulary is None else self._vocabulary.names

    def name_of(self, j: int) -> str:
        """The name of a feature, by its index."""
        return self.feature_names[j]

    @property
    def bigram_names(self) -> list[str]:
        """Names of the attributes that are conjoined with pairs of labels, by index (built on each call)."""
        if isinstance(self._bigrams, TemplateEncoder):
            return self._bigrams.names
        if self.bigram_features is None:
            return []
        names = self.feature_names
        return [names[j] for j in self.bigram_features.tolist()]

    @property
    def template_text(self) -> str:
        """Text of the templates, a built-in set's too; empty without columns."""
        return "" if self._layout is None else self._layout.text

    def names_outside(self, before: str, after: str) -> tuple[list[str], list[str]]:
        """Names of the features of templates, and of their bigrams, with other names of the places outside a sequence.

        Such a place is called `before` or `after`, with the distance.
        """
        made = [self._vocabulary, self._bigrams]
        layouts = [self._layout, self._bigram_layout]
        first, second = (
            vocabulary.named(layout.outside(before, after))
            if isinstance(vocabulary, TemplateVocabulary) and layout is not None
            else []
            for vocabulary, layout in zip(made, layouts, strict=True)
        )
        return first, second

    @property
    def bigram_features(self) -> NDArray[np.int32] | None:
        """The index of the feature that each bigram is; None for templates, and if `bigrams` names none."""
        return None if self._bigrams is None or isinstance(self._bigrams, TemplateEncoder) else self._bigrams

    def narrowed(self, kept: NDArray[np.bool_]) -> FeatureEncoder:
        """The encoder of some features alone, renumbered; of those that `bigrams` names all must be kept.

        ValueError where features have no names of their own: hashed ones, and columns of numbers.
        """
        if not isinstance(self._vocabulary, (AttributeVocabulary, TemplateVocabulary)):
            raise ValueError("features without names cannot be left out")
        other, bigrams = copy.copy(self), self._bigrams
        if self.bigram_features is not None:
            bigrams = (np.cumsum(kept) - 1)[self.bigram_features].astype(np.int32)
        about = {"_vocabulary": self._vocabulary.narrowed(kept), "_bigrams": bigrams}
        other.__dict__.update(about, n_features=int(np.count_nonzero(kept)), growth=(), lineage=object())
        return other

    def by_space(self) -> tuple[FeatureEncoder, NDArray[np.intp] | None]:
        """The encoder whose features are those of one space of templates after the other, and the index here of each.

        Features of other data keep their places: None.
        """
        if not isinstance(self._vocabulary, TemplateVocabulary):
            return self, None
        other, (vocabulary, order) = copy.copy(self), self._vocabulary.by_space()
        other.__dict__.update(_vocabulary=vocabulary, growth=(), lineage=object())
        return other, order

    @property
    def can_grow(self) -> bool:
        """Whether features can be added: all that occur have names, and none is conjoined by its name."""
        return self.can_narrow and self.min_count == 1 and self.bigrams is None

    def grown(self, X: Any) -> FeatureEncoder:
        """The encoder with the features of more data, behind its own; itself if all are known.

        `growth` then ends with X. ValueError where features are not counted by their names (`can_grow`).
        """
        if not self.can_grow:
            raise ValueError("features can be added where all that occur have names: min_count=1, no hash_bits")
        vocabulary: Any = self._vocabulary
        bigrams: Any = self._bigrams
        wide = self._widened(X) if isinstance(vocabulary, TemplateVocabulary) else X
        more = vocabulary.grown(wide)
        pairs = bigrams.grown(wide) if isinstance(bigrams, TemplateVocabulary) else bigrams
        if more is vocabulary and pairs is bigrams:
            return self
        other, n_bigrams = copy.copy(self), 0 if pairs is None else pairs.n_features
        about = {"_vocabulary": more, "_bigrams": pairs, "n_features": more.n_features, "n_bigrams": n_bigrams}
        other.__dict__.update(about, growth=(*self.growth, X), lineage=self.lineage)
        return other

    def _widened(self, X: Any) -> Columns:
        """Sequences, none of them empty, as the columns that templates read."""
        X = X if isinstance(X, Columns) else _columns_of(X, True)
        layout = cast(TemplateLayout, self._layout)
        if X.n_columns != layout.n_columns:
            raise ValueError(f"{X.name}: expected {layout.n_columns} columns without the label, found {X.n_columns}")
        return layout.widened(X.compact())

    def positions(self, other: FeatureEncoder, X: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The index here of each feature, and of each bigram, of another encoder that X has; -1 for unknown ones.

        Both are of one kind, with the same templates.
        """
        nothing = np.zeros(0, dtype=np.int64)
        own, its = self._vocabulary, vars(other)["_vocabulary"]
        if isinstance(own, AttributeVocabulary) and isinstance(its, AttributeVocabulary):
            return own.positions(its), nothing
        if not (isinstance(own, TemplateVocabulary) and isinstance(its, TemplateVocabulary)):
            raise ValueError("features without names have no other places")
        X = self._widened(X)
        pairs, others = self._bigrams, vars(other)["_bigrams"]
        if isinstance(pairs, TemplateVocabulary) and isinstance(others, TemplateVocabulary):
            return own.positions(its, X), pairs.positions(others, X)
        return own.positions(its, X), nothing

    @property
    def layout(self) -> TemplateLayout | None:
        """The templates of tokens, in the form of tables; None for other data than columns."""
        return self._layout

    @property
    def vocabularies(self) -> tuple[AttributeVocabulary | TemplateEncoder | None, TemplateEncoder | None]:
        """The features of tokens, and those of templates for pairs of labels."""
        return self._vocabulary, self._bigrams if isinstance(self._bigrams, TemplateEncoder) else None

    @property
    def can_narrow(self) -> bool:
        """Whether features can be left out; see `narrowed`."""
        return isinstance(self._vocabulary, (AttributeVocabulary, TemplateVocabulary))

    @property
    def has_numbers(self) -> bool:
        """Whether each token of training had a number, which may be 0: one without a feature is not unknown then."""
        return self.kind == "numeric" or (self.seen is not None and self.seen.has_numbers)

    # ------------------------------------------------------------------- dispatch

    def _encode(self, X: Any, lengths: Any, fit: bool) -> Tokens:
        if isinstance(X, Columns):
            return self._encode_columns(X, fit)
        if self.kind == "attributes" and not fit and lengths is None and _begins_with_features(X):
            self._look_at(X, fit)
            return self._encode_attributes(X, fit)
        if type(X) is not list:
            X = _sequences_of(X, has_lengths=lengths is not None)
        if lengths is not None:
            return self._encode_numeric(split_rows(X, lengths), fit)
        if is_sparse(X) or (isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "fiub"):
            raise ValueError("X is one matrix: lengths= must give the rows of each sequence")
        iterator = iter(X)
        first = next(iterator, END)
        if first is END:
            if fit:
                raise ValueError("X contains no sequences")
            return self._nothing()
        first = list(first) if isinstance(first, Iterator) else first
        if fit and isinstance(first, (list, tuple)) and not first:  # an empty list does not say how tokens are given
            raise ValueError("sequence 0 is empty")
        sequences = chain([first], iterator)
        if is_numeric(first) or (self.kind == "numeric" and isinstance(first, (list, tuple)) and not first):
            return self._encode_numeric(sequences, fit)
        if self._wants_columns(fit) or (fit and _is_of_words(first)):
            return self._encode_columns(_columns_of(sequences, fit), fit)
        self._look_at(X, fit)
        return self._encode_attributes(sequences, fit)

    def _wants_columns(self, fit: bool) -> bool:
        return self.templates is not None if fit else self.kind == "columns"

    def _become(self, kind: str, fit: bool) -> None:
        if kind != "columns" and self._wants_columns(fit):
            raise ValueError(f"{NEED_COLUMNS}; X contains {kind} tokens")
        if fit:
            self.kind = kind
        elif self.kind != kind:
            raise ValueError(f"this FeatureEncoder was fitted on {self.kind}, X contains {kind}")

    def _nothing(self) -> Tokens:
        zero = np.zeros(1, dtype=np.int64)
        none = np.zeros(0, dtype=np.int32)
        bigrams = Tokens(zero, zero, none, None, self.n_bigrams) if self.n_bigrams else None
        return Tokens(zero, zero, none, None, self.n_features, bigrams)

    def _look_at(self, X: Any, fit: bool) -> None:
        """Learn which columns all tokens have, named features; or check that the tokens of X have them."""
        if not fit and (self.seen is None or self.seen.are_as_usual(X)):
            return
        if fit:
            warn_of_number_texts(X)
            self.seen = SeenColumns.named(X)
        elif self.seen is not None:
            self.seen.check_names(*sampled_names(X))

    # ----------------------------------------------------------------- three kinds

    def _encode_numeric(self, sequences: Iterable[Any], fit: bool) -> Tokens:
        self._become("numeric", fit)
        tokens = encode_rows(sequences, None if fit else self.n_features)
        return self._conjoin(tokens, [str(j) for j in range(tokens.n_features)] if fit and self.bigrams else None)

    def _encode_attributes(self, sequences: Iterable[Any], fit: bool) -> Tokens:
        self._become("attributes", fit)
        if self.hash_bits is not None:
            tokens, numbers = hash_attributes(sequences, self.hash_bits)
            self.numbers = numbers if fit else self.numbers
            return tokens
        if fit:
            self._vocabulary, tokens, self.numbers = AttributeVocabulary.fit(sequences, self.min_count)
            return self._conjoin(tokens, self._vocabulary.names if self.bigrams else None)
        return self._conjoin(cast(AttributeVocabulary, self._vocabulary).transform(sequences))

    def _conjoin(self, tokens: Tokens, names: list[str] | None = None) -> Tokens:
        """The tokens with the attributes that `bigrams` names; these are chosen from `names`, if given."""
        if self.bigrams is None:
            return tokens
        if names is not None:
            named = np.zeros(len(names), dtype=bool)
            for wanted in self.bigrams:
                its = [name == wanted or name.startswith((f"{wanted}:", f"{wanted}=")) for name in names]
                if not any(its):
                    raise ValueError(
                        f"bigrams: no feature has the name {wanted!r}, nor {wanted!r} and ':' or '=' before it"
                    )
                named |= its
            every = np.arange(len(names), dtype=np.int32)
            counts = np.bincount(tokens.conjoined(every, len(names)).indices, minlength=len(names))
            self._bigrams = every[named & (counts >= self.min_count)]
        return self.conjoined(tokens)

    def conjoined(self, tokens: Tokens) -> Tokens:
        """The tokens with their attributes that `bigrams` names, in the units that the tokens have."""
        chosen = self.bigram_features
        if chosen is None:
            return tokens
        index_of = np.full(tokens.n_features, -1, dtype=np.int32)
        index_of[chosen] = np.arange(len(chosen), dtype=np.int32)
        return replace(tokens, bigrams=tokens.conjoined(index_of, len(chosen)))

    def _encode_columns(self, X: Columns, fit: bool) -> Tokens:
        self._become("columns", fit)
        if not fit and steps(X.offsets)[2]:
            tokens = self._encode_columns(X.without_empty(), fit) if X.n_tokens else self._nothing()
            return tokens.with_offsets(X.offsets)
        X = X.compact()
        if fit:
            self._settle_layout(X.n_columns)
        layout = cast(TemplateLayout, self._layout)
        if X.n_columns != layout.n_columns:
            raise ValueError(f"{X.name}: expected {layout.n_columns} columns without the label, found {X.n_columns}")
        wide = layout.widened(X)
        self._vocabulary, tokens = self._expand(layout, self._vocabulary, wide, fit)
        if fit:
            self.seen = SeenColumns.of(X.counts(), X.n_tokens)
        elif self.seen is not None:
            self.seen.check(X.counts(), X.n_tokens)
        if self._bigram_layout is None:
            return tokens
        self._bigrams, bigrams = self._expand(self._bigram_layout, self._bigrams, wide, fit)
        return replace(tokens, bigrams=bigrams)

    def _settle_layout(self, n_columns: int) -> None:
        if self.bigrams is not None:
            raise ValueError("bigrams names attributes of tokens; templates do so by lines such as B01:%x[0,0]")
        try:
            self._layout = TemplateLayout.resolve(self.templates, n_columns)
            if self._layout.has_kinds:  # until they are learnt
                plain = split_kinds(self._layout.text)[0]
                self._layout = TemplateLayout.build(plain, "templates", n_columns)
            self._bigram_layout = self._layout.for_bigrams("templates")
        except TemplateError:
            if self._file is None or not os.path.isfile(self._file):
                raise
            with in_files({self._file: text_of(self._file)}, r"templates:\d+: "):
                raise
        self._hash_templates()

    def _expand(self, layout: TemplateLayout, vocabulary: Any, X: Columns, fit: bool) -> tuple[Any, Tokens]:
        """A layout's features and the tokens."""
        if fit and self.hash_bits is None:
            return TemplateVocabulary.fit(layout, X, self.min_count)
        return vocabulary, vocabulary.transform(X)

    def _hash_templates(self) -> None:
        """Where names are hashed, no vocabulary is learnt."""
        if self.hash_bits is not None:
            self._vocabulary = HashedTemplates(cast(TemplateLayout, self._layout), self.hash_bits)
            if self._bigram_layout is not None:
                self._bigrams = HashedTemplates(self._bigram_layout, self.hash_bits)

    # -------------------------------------------------------------- serialisation

    @property
    def named_arrays(self) -> dict[str, AnyArray]:
        """The vocabularies as named arrays."""
        arrays = {} if self._vocabulary is None else self._vocabulary.to_arrays()
        if isinstance(self._bigrams, TemplateEncoder):
            return arrays | {f"bigrams.{name}": array for name, array in self._bigrams.to_arrays().items()}
        return arrays if self._bigrams is None else arrays | {"bigrams": self._bigrams}

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """The whole state, as a dict for JSON and named arrays."""
        return ENCODER.write(self)

    @classmethod
    def from_arrays(cls, meta: dict[str, Any], arrays: Mapping[str, AnyArray]) -> FeatureEncoder:
        """Rebuild from :meth:`to_arrays`.

        Raises
        ------
        ValueError
            For anything that :meth:`to_arrays` cannot have written.
        """
        stored = ENCODER.read(meta, arrays)
        if not (stored.templates is None or is_template_text(stored.templates)):
            raise ValueError("not a feature encoder: templates must be text or built in, not a path")
        self, kind = cls(None, stored.min_count, stored.hash_bits, stored.bigrams), stored.kind
        self.templates, self.kind = stored.templates, kind
        self.n_features, self.n_bigrams, self.seen = stored.n_features, stored.n_bigrams, stored.seen
        hashed = self.hash_bits is not None and kind in ("attributes", "columns")
        if hashed and self.n_features != 2 ** (self.hash_bits or 0):
            raise ValueError("not a feature encoder: n_features does not fit hash_bits")
        if kind == "attributes" and not hashed:
            self._vocabulary = AttributeVocabulary.from_arrays(stored.vocabularies, self.n_features)
        if kind == "columns":
            self._restore_columns(stored)
        elif self.bigrams is not None and kind is not None:
            self._bigrams = checked_arrays(arrays, BIGRAMS, **stored.sizes)["bigrams"]
            if (self._bigrams[1:] <= self._bigrams[:-1]).any():
                raise ValueError("array 'bigrams' must ascend")
        elif self.n_bigrams:
            raise ValueError("not a feature encoder: n_bigrams without bigrams")
        return self

    def _restore_columns(self, stored: Stored) -> None:
        if stored.template_text is None or stored.n_columns is None:
            raise ValueError("not a feature encoder: columns without templates")
        self._layout = TemplateLayout.build(stored.template_text, "<model>", stored.n_columns)
        arrays = stored.vocabularies
        self._bigram_layout = self._layout.for_bigrams("<model>")
        if self._bigram_layout is None:
            if self.n_bigrams:
                raise ValueError("not a feature encoder: n_bigrams without bigram templates")
        elif self.hash_bits is not None:
            if self.n_bigrams != self.n_features:
                raise ValueError("not a feature encoder: n_bigrams does not fit hash_bits")
        else:
            self._bigrams = TemplateVocabulary.from_arrays(
                self._bigram_layout, under(arrays, "bigrams."), self.n_bigrams
            )
        self._hash_templates()
        if self.hash_bits is None:
            self._vocabulary = TemplateVocabulary.from_arrays(self._layout, arrays, self.n_features)


def words_as_columns(X: Any) -> Any:
    """Sequences of words as `Columns`; other data unchanged, but an iterator, which can be read only once, copied."""
    if isinstance(X, Columns) or is_sparse(X):
        return X
    X = _sequences_of(X, has_lengths=False)
    iterator = iter(X)
    first = next(iterator, END)
    if first is END:
        return X
    if iterator is X or isinstance(first, Iterator):
        first = list(first) if isinstance(first, Iterator) else first
        X = chain([first], iterator)
    return _columns_of(X, True) if not is_numeric(first) and _is_of_words(first) else X


def _sequences_of(X: Any, *, has_lengths: bool) -> Any:
    """X as something that iterates over sequences of tokens, or a matrix; TypeError if it is neither."""
    if has_lengths and hasattr(X, "columns"):
        X = np.asarray(X)
    check_no_table(X, "X")
    X = unwrapped(X)
    if hasattr(X, "__array__") and not hasattr(X, "__iter__"):
        X = np.asarray(X)
    if not is_sparse(X) and (isinstance(X, (str, bytes, dict)) or not hasattr(X, "__iter__")):
        raise TypeError(f"X must contain sequences of tokens, got {type(X).__name__}")
    return X


def _begins_with_features(X: Any) -> bool:
    """Whether X is a list of lists, whose first token is a dict, or a list of names."""
    if not (type(X) is list and X and type(X[0]) is list and X[0]):
        return False
    token = X[0][0]
    return type(token) is dict or (type(token) is list and bool(token) and type(token[0]) is str)


def _is_of_words(sequence: Any) -> bool:
    """Whether tokens are strings."""
    if isinstance(sequence, (str, bytes, dict, set, frozenset)) or not hasattr(sequence, "__iter__"):
        return False
    return isinstance(next(iter(unwrapped(sequence)), None), str)


def _columns_of(sequences: Iterable[Any], fit: bool) -> Columns:
    """Sequences of strings, or of tuples of strings, as `Columns`."""
    held = []
    for s, sequence in enumerate(sequences):
        if isinstance(sequence, (str, bytes, dict)) or not hasattr(sequence, "__iter__"):
            raise TypeError(f"sequence {s} must be a list of tokens, got {type(sequence).__name__}{if_text(sequence)}")
        check_no_table(sequence, f"sequence {s}")
        tokens = sequence if type(sequence) is list else list(unwrapped(sequence))
        if not ({str}.issuperset(map(type, tokens)) or {tuple}.issuperset(map(type, tokens))):
            for t, token in enumerate(tokens):
                if not isinstance(token, (str, tuple)):
                    raise _not_columns(s, t, token)
        held.append(tokens)
    try:
        return Columns.from_sequences(held, "X", allow_empty=not fit)
    except TypeError:
        for s, tokens in enumerate(held):
            for t, token in enumerate(tokens):
                if not all(isinstance(x, str) for x in token):
                    raise _not_columns(s, t, token) from None
        raise


def _not_columns(s: int, t: int, token: Any) -> ValueError:
    return ValueError(f"sequence {s}, token {t}: {NEED_COLUMNS}; got {token!r:.40} of type {type(token).__name__}")
