"""Vectors of words and of documents' tokens, from objects of other programs, which are known by their methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Protocol, TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

from structsvm.arrays import AnyArray

Rows = NDArray[np.float32]


class _FastText(Protocol):
    def get_word_vector(self, word: str) -> object: ...


class _Encoder(Protocol):
    def encode(self, words: list[str]) -> object: ...


class _Vocabulary(Protocol):
    def get_vector(self, word: str) -> object: ...


class _Token(Protocol):
    @property
    def vector(self) -> object: ...


class _Document(Protocol):
    """A document of spaCy."""

    @property
    def tensor(self) -> object: ...

    def __len__(self) -> int: ...

    def __getitem__(self, place: int) -> _Token: ...


class LookedUp:
    """Vectors of words from a table or a model of another program: called with words, it returns a row for each.

    A sentence's rows are an input of `SequenceLabeler`; the object itself is a `columns=` of `ArcFeatures` and
    `SpanFeatures`. Each word is looked up once.

    Parameters
    ----------
    source : object
        One of these, by the methods that it has:

        - a mapping of words to vectors, gensim's ``KeyedVectors`` included: unknown words have zeros, after their lower
          case has been tried;
        - ``get_word_vector(word)``: fastText's models, which make vectors of unknown words from their parts;
        - ``encode(words)``: model2vec's ``StaticModel``, or a sentence encoder that sees one word at a time;
        - ``get_vector(word)``: the ``vocab`` of a pipeline of spaCy with vectors.

    Attributes
    ----------
    unknown : set of str
        Words that the source had no vector for, or one of zeros.

    Raises
    ------
    TypeError
        The source is none of these.
    ValueError
        A table is empty; vectors are not finite, or not of one length.

    Examples
    --------
    >>> from structsvm.features.vectors import LookedUp
    >>> vectors = LookedUp({"cat": [3.0, 4.0], "of": [0.0, 5.0]})
    >>> vectors(["Cat", "zebra"])
    array([[3., 4.],
           [0., 0.]], dtype=float32)
    >>> vectors.unknown
    {'zebra'}
    """

    def __init__(self, source: object) -> None:
        if isinstance(source, (str, bytes)) or not (
            _is_table(source) or any(hasattr(source, verb) for verb in ("get_word_vector", "encode", "get_vector"))
        ):
            raise TypeError(
                "source must be a mapping of words to vectors, or have get_word_vector (fastText), encode (model2vec) "
                f"or get_vector (spaCy's vocab). Got {type(source).__name__}."
            )
        if _is_table(source) and not len(source):
            raise ValueError("source must have vectors. Got none.")
        self.source, self.unknown = source, set[str]()
        self._known: dict[str, Rows] = {}

    def __call__(self, words: Sequence[str]) -> Rows:
        new = [word for word in dict.fromkeys(words) if word not in self._known]
        if new:
            for word, row in zip(new, self._vectors(new), strict=True):
                self._known[word] = row
                if not row.any():
                    self.unknown.add(word)
        if not len(words):
            size = len(next(iter(self._known.values()))) if self._known else 0
            return np.zeros((0, size), np.float32)
        return np.stack([self._known[word] for word in words])

    def _vectors(self, words: list[str]) -> Rows:
        """Vectors of words that have not been looked up yet."""
        rows = [np.asarray(row, dtype=np.float32) for row in self._found(words)]
        sizes = {row.shape for row in (*rows, *islice(self._known.values(), 1))}
        if len(sizes) > 1 or len(rows[0].shape) != 1 or not rows[0].size:
            raise ValueError(f"source must have vectors of one length. Got shapes {sorted(sizes)}.")
        table = np.stack(rows)
        bad = np.flatnonzero(~np.isfinite(table).all(axis=1))
        if len(bad):
            raise ValueError(f"source must have finite vectors, and has not for {words[bad[0]]!r:.80}.")
        return table

    def _found(self, words: list[str]) -> Sequence[object]:
        source = self.source
        if _is_table(source):
            return self._in_table(source, words)
        if hasattr(source, "get_word_vector"):
            return [cast(_FastText, source).get_word_vector(word) for word in words]
        if hasattr(source, "encode"):
            rows: AnyArray = np.asarray(cast(_Encoder, source).encode(words))
            if rows.ndim != 2 or len(rows) != len(words):
                raise ValueError(f"source.encode must return {len(words)} rows, one per word. Got shape {rows.shape}.")
            return list(rows)
        return [cast(_Vocabulary, source).get_vector(word) for word in words]

    def _in_table(self, table: Mapping[str, object], words: list[str]) -> list[object]:
        rows = [_row(table, word) for word in words]
        zeros = np.zeros(_width(table), np.float32)
        return [zeros if row is None else row for row in rows]


def _row(table: Mapping[str, object], word: str) -> object:
    """A word's vector, or its lower case's."""
    for key in (word, word.lower()):
        if key in table:
            return table[key]
    return None


def _width(table: Mapping[str, object]) -> int:
    """How long the vectors of a table are."""
    size = getattr(table, "vector_size", None)  # gensim's
    return int(size) if size else np.size(np.asarray(next(iter(table.values()))))


def _is_table(source: object) -> TypeGuard[Mapping[str, object]]:
    """Whether words are looked up by brackets: a mapping, or gensim's vectors."""
    return isinstance(source, Mapping) or hasattr(source, "key_to_index")


def document_rows(document: object, *, vectors: bool = False) -> Rows:
    """Return a row per token of a document of spaCy: its ``tensor``, or its tokens' vectors.

    Parameters
    ----------
    document : spacy.tokens.Doc
        Or an object with its `tensor`, its length, and tokens with a `vector`.
    vectors : bool, default=False
        Take static vectors even where the pipeline has left a tensor, which knows the context.

    Returns
    -------
    float32 array of shape (n_tokens, n_dimensions)

    Raises
    ------
    ValueError
        The document has neither, as those of a pipeline without a model have; or a row is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from types import SimpleNamespace
    >>> from structsvm.features.vectors import document_rows
    >>> class Doc(list):
    ...     tensor = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> document_rows(Doc([SimpleNamespace(vector=[0.5]), SimpleNamespace(vector=[0.25])]))
    array([[1., 2.],
           [3., 4.]], dtype=float32)
    >>> document_rows(Doc([SimpleNamespace(vector=[0.5]), SimpleNamespace(vector=[0.25])]), vectors=True)
    array([[0.5 ],
           [0.25]], dtype=float32)
    """
    doc = cast(_Document, document)
    tensor: Rows = np.asarray(doc.tensor, dtype=np.float32)
    has_tensor = tensor.ndim == 2 and len(tensor) == len(doc) > 0
    if vectors or not has_tensor:
        rows = [np.asarray(doc[k].vector, dtype=np.float32) for k in range(len(doc))]
        tensor = np.stack(rows) if rows else np.zeros((0, 0), np.float32)
    if len(doc) and (tensor.ndim != 2 or tensor.shape[1] == 0):
        raise ValueError(
            "document must have a tensor, or tokens with vectors. Take a pipeline that has a model of them."
        )
    if not np.isfinite(tensor).all():
        raise ValueError("document must have finite vectors.")
    return tensor


def with_vectors(
    sentences: Sequence[Sequence[str | Mapping[str, object]]], rows: Sequence[AnyArray], *, name: str = "vector"
) -> list[list[dict[str, object]]]:
    """Return sentences whose words have a vector beside their other features: both in one model.

    Parameters
    ----------
    sentences : sequence of sequences of str or mapping
        Words, or features of words; a word becomes the feature `word`.
    rows : sequence of arrays of shape (n_words, n_dimensions)
        A sentence each.
    name : str, default="vector"
        The feature that the vector becomes.

    Raises
    ------
    ValueError
        There are not as many arrays as sentences, or rows as words, or a word has a feature of that name.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.features.vectors import with_vectors
    >>> with_vectors([["Graz"]], [np.array([[0.5, 1.0]])])
    [[{'word': 'Graz', 'vector': [0.5, 1.0]}]]
    """
    if len(sentences) != len(rows):
        raise ValueError(f"rows must have one array per sentence, {len(sentences)}. Got {len(rows)}.")
    made = []
    for s, (sentence, own) in enumerate(zip(sentences, rows, strict=True)):
        if np.ndim(own) != 2 or len(own) != len(sentence):
            raise ValueError(
                f"rows of sentence {s} must have shape ({len(sentence)}, n_dimensions). Got {np.shape(own)}."
            )
        features = [{"word": word} if isinstance(word, str) else dict(word) for word in sentence]
        if any(name in one for one in features):
            raise ValueError(f"name must be new, and a word of sentence {s} has a feature {name!r}.")
        made.append([one | {name: row.tolist()} for one, row in zip(features, own, strict=True)])
    return made
