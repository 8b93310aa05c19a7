"""Labelled documents in shards: what `TaxonomyClassifier.fit` takes where data do not fit into memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import pairwise
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structsvm.features._strings import Interner
from structsvm.features.columns import Vocabulary
from structsvm.features.matrices import is_sparse
from structsvm.features.tokens import MAX_FEATURES
from structsvm.model_file import ModelFile, ModelFileError
from structsvm.oracles.taxonomy import as_documents
from structsvm.shards.base import DEFAULT_MEMORY, TOKEN_BYTES, Shards, checked_memory, write_part
from structsvm.shards.pieces import arrow_batches
from structsvm.shards.storage import Vector, Writer, new_folder, scratch_folder
from structsvm.shards.tokens import StoredTokens, shard_bounds
from structsvm.stored_values import Count, Flag
from structsvm.tasks.common.labels import is_hashable, sort_labels
from structsvm.tasks.common.stored_labels import Labels
from structsvm.tasks.common.units import rows_in
from structsvm.tasks.taxonomy.documents import document_pieces
from structsvm.tasks.taxonomy.vectorizer import (
    checked_documents,
    params_to_file,
    suspicion,
    vectorizer_from_file,
    vectorizer_to_file,
    with_terms,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_array
    from sklearn.base import BaseEstimator
    from sklearn.feature_extraction.text import CountVectorizer

    from structsvm.arrays import Integers, LabelArray, MatrixLike

    # Texts or rows of numbers, their labels, and in svmlight files the index of the first feature.
    Batch: TypeAlias = tuple[MatrixLike, LabelArray | Iterable[Hashable], int | None]

ROWS = 1000  # documents of a table that are read at once


class DocumentShards(Shards):
    r"""Labelled documents, encoded once into a folder of files that are mapped into memory.

    ``TaxonomyClassifier.fit(shards)`` trains on them: each pass goes from shard to shard and visits the documents of
    each in random order, with at most one shard in memory. The model is bit-identical to that of the same shards in
    memory (``mmap=False``). Made by `make`, opened by `open`.

    Attributes
    ----------
    folder : Path
    tokens : StoredTokens
        A token per document.
    label_ids : int32 array of shape (n_documents,)
        Indices into `labels`.
    labels : list
        Sorted.
    vectorizer : vectorizer or None
        The fitted one; None: the documents were rows of numbers.
    has_intercept : bool
        Whether the last feature is 1 in every document.
    first_index : int or None
        The index of the first feature in files in svmlight format, 0 or 1.
    n_shards, n_features : int

    Examples
    --------
    >>> import io, tempfile
    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> from structsvm import DocumentShards
    >>> from structsvm.tasks import TaxonomyClassifier
    >>> source = io.BytesIO(b"Toys > Chess\tking and queen\nToys > Dice\tsix sides\nBooks\tpages\n")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     shards = DocumentShards.make(source, folder, vectorizer=TfidfVectorizer())
    ...     goods = TaxonomyClassifier(" > ", C=10.0, random_state=0).fit(shards)
    >>> len(shards), goods.predict(["a queen"]).tolist()
    (3, ['Toys > Chess'])
    """

    kind = "document shards"

    def __init__(
        self,
        folder: Path,
        tokens: StoredTokens,
        label_ids: NDArray[np.int32],
        labels: Sequence[Hashable],
        vectorizer: CountVectorizer | None,
        has_intercept: bool,
        first_index: int | None = None,
    ) -> None:
        super().__init__(folder, tokens, label_ids, labels)
        self.first_index = first_index
        self.vectorizer, self.has_intercept = vectorizer, has_intercept

    def __repr__(self) -> str:
        sizes = f"{len(self)} documents, {self.n_features} features, {self.n_shards} shards"
        return f"<DocumentShards {self.folder}: {sizes}>"

    @property
    def n_features(self) -> int:
        return self.tokens.n_features - self.has_intercept

    @classmethod
    def make(
        cls,
        source: Any,
        folder: str | os.PathLike[str],
        *,
        vectorizer: BaseEstimator | None = None,
        columns: Sequence[str] | None = None,
        fit_intercept: bool = True,
        first_index: int | None = None,
        max_memory: int = DEFAULT_MEMORY,
    ) -> Self:
        """Encode a training set, piece by piece.

        Parameters
        ----------
        source : path, list of paths, binary file, iterable of batches, or Arrow table, record batch reader or data set
            A file of texts after their labels, or in svmlight format, compressed or not (see `read_documents`); a
            Parquet or Arrow file of texts (extra ``structured-svm[data]``); or pairs ``(X, y)`` of some documents each,
            as for `TaxonomyClassifier.fit`: texts, or rows of a matrix. It is read once. Several files are one after
            the other.
        folder : path
            Where the files go: a new folder, or an empty one. It appears whole, or not at all.
        vectorizer : CountVectorizer or TfidfVectorizer, optional
            Makes the features of texts; a copy is fitted to all of them.
        columns : (str, str), optional
            Of a table: the columns of texts and of labels; by default its only two.
        fit_intercept : bool, default=True
            As for `TaxonomyClassifier`, which must have the same.
        first_index : {0, 1}, optional
            Of files in svmlight format, see `read_svmlight`; a model's files of predictions are read alike.
        max_memory : int, default=2**28
            Bytes of encoded data in memory at once, while encoding and in training: the size of a shard.
            A larger document is a shard by itself. Also in memory are one batch, the terms of all texts while encoding,
            and in training the weights, some 100 bytes per document, and the constraints found.

        Returns
        -------
        DocumentShards

        Raises
        ------
        FileExistsError
            If the folder is not empty.
        ValueError
            For data that are malformed (names file and line), labels of another kind than strings, numbers and tuples.
        TypeError
            For a vectorizer that files cannot hold, texts without one.
        """
        from scipy.sparse import csr_array

        max_memory = checked_memory(max_memory)
        if vectorizer is not None:
            params_to_file(vectorizer)
        with new_folder(folder) as target, scratch_folder(target) as scratch:
            rows = _DocumentRows(
                scratch,
                _pieces(source, columns, first_index),
                vectorizer,
                may_grow=_is_file(source) or _are_paths(source),
            )
            most = max(max_memory // TOKEN_BYTES, 1)
            width: int = rows.width
            transform: Callable[[csr_array], csr_array] = csr_array
            if vectorizer is not None:
                vectorizer, width, transform = _fitted(vectorizer, rows, most)
            if not 0 < width < MAX_FEATURES:
                raise ValueError(f"the documents have {width} features")
            labels = sort_labels(rows.labels)
            place = {label: k for k, label in enumerate(labels)}
            label_id = np.array([place[label] for label in rows.labels], dtype=np.int32)
            parts = (
                (rows_in(None, transform(X).astype(np.float32), fit_intercept, as_documents), label_id[ids])
                for X, ids in rows.pieces(most)
            )
            header, arrays = (None, {}) if vectorizer is None else vectorizer_to_file(vectorizer)
            arrays = {f"vectorizer.{name}": array for name, array in arrays.items()}
            meta = {
                "labels": Labels().to_json(labels),
                "vectorizer": header,
                "n_features": width,
                "has_intercept": bool(fit_intercept),
                "first_index": rows.first_index,
            }
            cls._join(target, [write_part(scratch, parts)], meta, arrays, max_memory)
        return cls.open(folder, trusted=True)

    @classmethod
    def open(cls, folder: str | os.PathLike[str], *, mmap: bool = True, trusted: bool = False) -> Self:  # type: ignore[override]
        """As `SequenceShards.open`; `trusted`: see `structsvm.load`."""
        return super().open(folder, mmap=mmap, trusted=trusted)

    @classmethod
    def _opened(cls, folder: Path, file: ModelFile, mmap: bool, **options: Any) -> Self:
        header, vectorizer = file.meta["vectorizer"], None
        n_features = Count(1, MAX_FEATURES - 1).get("n_features", file.meta)
        if header is not None:
            if not options["trusted"] and (doubt := suspicion(header)) is not None:
                raise ModelFileError(
                    f"{folder}: {doubt}; if you trust who made the shards, open them with trusted=True"
                )
            vectorizer = vectorizer_from_file(header, file.under("vectorizer."))
            if len(vectorizer.vocabulary_) != n_features:
                raise ValueError(f"a vectorizer of {len(vectorizer.vocabulary_)} terms, and {n_features} features")
        has_intercept = Flag().get("has_intercept", file.meta)
        labels = Labels(1).get("labels", file.meta)
        first_index = Count(0, 1, null=True, needed=False).get("first_index", file.meta)
        stored = cls._stored(folder, file, mmap, n_features + has_intercept)
        return cls(folder, *stored, labels, vectorizer, has_intercept, first_index)


class _DocumentRows:
    """Documents in files: sparse rows of numbers, of texts the counts of all their terms; and ids of labels.

    Attributes
    ----------
    labels : list
        In the order of their ids.
    terms : Interner
        Of texts.
    width : int
        Columns.
    first_index : int or None
        The index of the first feature in files in svmlight format.
    """

    def __init__(
        self, folder: Path, pieces: Iterator[Batch], vectorizer: CountVectorizer | None, *, may_grow: bool
    ) -> None:
        self.terms, self.width = Interner(), 0
        self.first_index: int | None = None
        ids: dict[Hashable, int] = {}
        sizes = [np.zeros(1, dtype=np.int64)]
        analyze = None if vectorizer is None else vectorizer.build_analyzer()
        with Writer(folder, indices="<i4", values="<f4", label_ids="<i4") as writer:
            for X, y, self.first_index in pieces:
                rows = _matrix(X) if analyze is None else _counts(checked_documents(vectorizer, X), analyze, self.terms)
                y = y.tolist() if isinstance(y, np.ndarray) else list(y)
                if len(y) != rows.shape[0]:
                    raise ValueError(f"a batch of {rows.shape[0]} documents has {len(y)} labels")
                for k, label in enumerate(y):
                    if not is_hashable(label) or label is None or (isinstance(label, float) and label != label):
                        raise ValueError(f"document {k} of its batch has no label, but {label!r:.80}")
                Labels().to_json(dict.fromkeys(y))
                if analyze is None and not may_grow and self.width not in (0, rows.shape[1]):
                    raise ValueError(f"a batch of documents has {rows.shape[1]} columns, and those before {self.width}")
                self.width = max(self.width, rows.shape[1])
                sizes.append(np.diff(rows.indptr).astype(np.int64))
                writer.append("indices", rows.indices)
                writer.append("values", rows.data)
                writer.append("label_ids", np.array([ids.setdefault(label, len(ids)) for label in y]))
            written = writer.sizes
        if not ids:
            raise ValueError("there are no documents")
        self.labels, self.indptr = list(ids), np.cumsum(np.concatenate(sizes))
        self._indices, self._values = (
            Vector(folder / name, dtype, written[name], is_mapped=True)
            for name, dtype in (("indices", "<i4"), ("values", "<f4"))
        )
        self._label_ids = np.fromfile(folder / "label_ids", dtype="<i4")

    def pieces(self, n_entries: int) -> Iterator[tuple[csr_array, NDArray[np.int32]]]:
        """All of it as CSR arrays with their ids of labels, about `n_entries` at a time."""
        from scipy.sparse import csr_array

        for i, j in pairwise(shard_bounds(np.diff(self.indptr), n_entries).tolist()):
            a, b = self.indptr[[i, j]].tolist()
            indices, values = np.array(self._indices.array[a:b]), np.array(self._values.array[a:b])
            yield csr_array((values, indices, self.indptr[i : j + 1] - a), (j - i, self.width)), self._label_ids[i:j]
            self._indices.release(a, b)
            self._values.release(a, b)


def _pieces(source: Any, columns: Sequence[str] | None, first_index: int | None = None) -> Iterator[Batch]:
    """The documents of a source with their labels, some at a time."""
    if isinstance(columns, str):
        raise ValueError(f"The 'columns' parameter must be two names, got {columns!r:.80}")
    for one in source if _are_paths(source) else [source]:
        batches = arrow_batches(one, ROWS)
        if batches is None:
            if columns is not None:
                raise ValueError(f"The 'columns' parameter is for tables, and {one!r:.80} is none")
            if not _is_file(one):
                yield from ((X, y, None) for X, y in one)
                continue
            for X, y, first_index in document_pieces(one, first_index):  # noqa: B020
                yield X, y, first_index
        for batch in batches or ():
            columns = batch.schema.names if columns is None else list(columns)  # as in the first of several tables
            if len(columns) != 2 or any(batch.schema.names.count(name) != 1 for name in columns):
                raise ValueError(
                    f"a table of documents has two columns, texts and labels (columns=); it has {batch.schema.names}"
                )
            texts, labels = (batch.column(name).to_pylist() for name in columns)
            yield texts, labels, None


def holds_texts(path: str | os.PathLike[str]) -> bool:
    """Whether the documents of a file are texts; ValueError for a pipe, which can be read once."""
    if isinstance(path, (str, os.PathLike)) and os.path.exists(path) and not os.path.isfile(path):
        raise ValueError(f"{path}: shards of documents are made of a file, which is read twice, and this is none")
    X, *_ = next(_pieces(path, None))
    return isinstance(X, list)


def _is_file(source: object) -> bool:
    return isinstance(source, (str, os.PathLike)) or hasattr(source, "read")


def _are_paths(source: object) -> bool:
    return isinstance(source, (list, tuple)) and all(isinstance(path, (str, os.PathLike)) for path in source)


def _matrix(X: MatrixLike) -> csr_array:
    """Rows of numbers as a CSR array."""
    from scipy.sparse import csr_array

    if isinstance(X, (list, tuple)) and len(X) and isinstance(X[0], str):
        raise TypeError("texts need a vectorizer")
    tokens = as_documents(X if is_sparse(X) else np.asarray(X))
    values = np.ones(tokens.n_entries, np.float32) if tokens.values is None else tokens.values
    return csr_array((values, tokens.indices, tokens.indptr), (len(tokens), tokens.n_features))


def _counts(texts: Any, analyze: Callable[[str], list[str]], terms: Interner) -> csr_array:
    """How often each text has each term, numbered by `terms`: CSR array."""
    from scipy.sparse import csr_array

    found: list[str] = []
    ends = [0]
    for text in texts:
        found += analyze(text)
        ends.append(len(found))
    ids = terms.intern(found)
    counts = csr_array((np.ones(len(ids), dtype=np.float32), ids, ends), (len(ends) - 1, max(terms.n, 1)))
    counts.sum_duplicates()
    return counts


def _fitted(
    vectorizer: CountVectorizer, rows: _DocumentRows, most: int
) -> tuple[CountVectorizer, int, Callable[[csr_array], csr_array]]:
    """A copy of the vectorizer, fitted as its own `fit` would; its columns; and what makes rows of these of counts."""
    from scipy.sparse import csr_array
    from sklearn.base import clone
    from sklearn.feature_extraction.text import TfidfTransformer

    given, vectorizer = vectorizer, clone(vectorizer)
    terms = Vocabulary(*rows.terms.to_arrays()).tolist()
    df, tf = np.zeros(rows.width, dtype=np.int64), np.zeros(rows.width, dtype=vectorizer.dtype)
    for X, _ in rows.pieces(most):
        df += np.bincount(X.indices, minlength=rows.width)
        tf += np.bincount(X.indices, None if vectorizer.binary else X.data, rows.width).astype(tf.dtype)
    n = len(rows.indptr) - 1
    if vectorizer.vocabulary is None:
        order = np.array(sorted(range(len(terms)), key=terms.__getitem__), dtype=np.intp)
        names = [terms[k] for k in order[_frequent(vectorizer, df[order], tf[order], n)]]
    else:
        fixed = vectorizer.fit([""]).vocabulary_
        names = sorted(fixed, key=fixed.get)
    column_of = {name: k for k, name in enumerate(names)}
    column = np.array([column_of.get(term, -1) for term in terms], dtype=np.int32)
    weigh, idf = None, None
    if hasattr(vectorizer, "use_idf"):
        weigh = TfidfTransformer(**{name: getattr(vectorizer, name) for name in TfidfTransformer().get_params()})
        with np.errstate(divide="ignore"):
            weigh.fit(csr_array((1, len(names)), dtype=vectorizer.dtype))
        if weigh.use_idf:  # as scikit-learn computes it
            kept, smooth = column >= 0, int(weigh.smooth_idf)
            idf = np.full(len(names), smooth, dtype=vectorizer.dtype)
            idf[column[kept]] += df[: len(terms)][kept].astype(vectorizer.dtype)
            with np.errstate(divide="ignore"):  # fixed terms that no text has
                idf = np.log(vectorizer.dtype(n + smooth) / idf) + vectorizer.dtype(1.0)
            weigh.idf_ = idf

    def transform(X: csr_array) -> csr_array:
        columns = column[X.indices]
        kept = columns >= 0
        ends = np.concatenate([[0], np.cumsum(kept)])[X.indptr]
        counts = np.ones(ends[-1]) if vectorizer.binary else X.data[kept]
        found = csr_array((counts, columns[kept], ends), (X.shape[0], len(names)), dtype=vectorizer.dtype)
        found.sort_indices()
        return found if weigh is None else weigh.transform(found, copy=False)

    return with_terms(vectorizer, names, idf).set_params(vocabulary=given.vocabulary), len(names), transform


def _frequent(vectorizer: CountVectorizer, df: Any, tf: Any, n: int) -> Integers:
    """Select the terms that a vectorizer keeps by their frequencies, as `CountVectorizer._limit_features` does."""
    high, low = (
        limit if isinstance(limit, Integral) else limit * n for limit in (vectorizer.max_df, vectorizer.min_df)
    )
    if high < low:
        raise ValueError("max_df corresponds to < documents than min_df")
    kept = np.flatnonzero((df <= high) & (df >= low))
    most = vectorizer.max_features
    if most is not None and len(kept) > most:
        kept = np.sort(kept[(-tf[kept]).argsort()[:most]])
    if not len(kept):
        raise ValueError("no terms remain: fewer stop words, a lower min_df or a higher max_df may help")
    return kept
