"""Labelled sequences in shards: what `SequenceLabeler.fit` takes where data do not fit into memory."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np

from structsvm.arrays import checksum
from structsvm.features._strings import Interner
from structsvm.features.columns import ColumnFileError, Columns, Vocabulary
from structsvm.features.encoder import FeatureEncoder
from structsvm.features.template_features import Counts, count
from structsvm.features.templates import TemplateLayout
from structsvm.model_file import ModelFile
from structsvm.shards.base import DEFAULT_MEMORY, TOKEN_BYTES, EncodedPart, Shards, checked_memory, write_part
from structsvm.shards.pieces import arrow_batches, column_pieces, paths_of
from structsvm.shards.spread import here, spread
from structsvm.shards.storage import Vector, Writer, new_folder, scratch_folder, stored
from structsvm.shards.tokens import StoredTokens, shard_bounds
from structsvm.stored_values import Names

ROWS = 1000  # sequences that are read at once


class SequenceShards(Shards):
    r"""Labelled sequences, encoded once into a folder of files that are mapped into memory.

    ``SequenceLabeler.fit(shards)`` trains on them: each pass goes from shard to shard and visits the sequences of
    each in random order, with at most one shard in memory. The model is bit-identical to that of the same
    shards in memory (``mmap=False``); with one shard, to that of plain data. Made by `make`, opened by `open`.

    Attributes
    ----------
    folder : Path
    tokens : StoredTokens
    label_ids : int32 array of shape (n_tokens,)
        Indices into `labels`.
    labels : list of str
    encoder : FeatureEncoder
    n_shards, n_tokens : int

    Examples
    --------
    >>> import io, tempfile
    >>> from structsvm import SequenceShards
    >>> from structsvm.tasks import SequenceLabeler
    >>> source = io.BytesIO(b"the DT\ncat NN\n\na DT\ndog NN\n\n")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     shards = SequenceShards.make(source, folder)
    ...     labeler = SequenceLabeler(C=0.1, loss="hamming", random_state=0).fit(shards)
    >>> len(shards), labeler.predict([["the", "dog"]])
    (2, [['DT', 'NN']])
    """

    kind = "sequence shards"

    def __init__(self, folder: Path, tokens: StoredTokens, label_ids: Any, labels: list[str], encoder: Any) -> None:
        super().__init__(folder, tokens, label_ids, labels)
        self.encoder = encoder

    def __repr__(self) -> str:
        return f"<SequenceShards {self.folder}: {len(self)} sequences, {self.n_tokens} tokens, {self.n_shards} shards>"

    @property
    def n_tokens(self) -> int:
        return self.tokens.n_tokens

    @classmethod
    def make(
        cls,
        source: Any,
        folder: str | os.PathLike[str],
        *,
        columns: Sequence[str | int] | None = None,
        label: str | int | None = None,
        sequence: str | int | None = None,
        sentence_end: Sequence[str] = (),
        names: Mapping[str, Sequence[str]] | None = None,
        templates: str | os.PathLike[str] | None = None,
        min_count: int = 1,
        hash_bits: int | None = None,
        max_memory: int = DEFAULT_MEMORY,
    ) -> Self:
        """Encode a training set, piece by piece.

        Parameters
        ----------
        source : path, list of paths, binary file, or Arrow table, record batch reader or data set
            A CoNLL column file, compressed or not; or a Parquet or Arrow file (extra ``structured-svm[data]``). Several
            files are one after the other, a sequence in one of them. Under ``joblib.parallel_config(backend="dask")``
            the workers read, count and encode them, a file each at a time, to the same shards; they must find files
            and folder under the same paths.
        folder : path
            Where the files go: a new folder, or an empty one. It appears whole, or not at all.
        columns : list of str or int, optional
            Of a column file, the columns of tokens, see `read_columns`. For a table, the columns of tokens, the
            labels' last unless `label` names it; by default all but `sequence`.
        label : str or int, optional
            The column of labels.
        sequence : str or int, optional
            The column that names the sequence of a token. None: blank lines end them; in a table a row is a sequence
            with lists as cells.
        sentence_end : list of str
            Of column files: tokens after which a sequence ends.
        names
            For a table, names of ids: see `Columns.from_dataframe`.
        templates, min_count, hash_bits
            As for `SequenceLabeler`, which must have the same ones. Hashed features need no vocabulary in memory.
        max_memory : int, default=2**28
            Bytes of encoded data in memory at once, while encoding and in training: the size of a shard.
            A larger sequence is a shard by itself. Also in memory are strings and features of the vocabulary, and in
            training the weights, a few numbers per sequence, and the constraints found.

        Returns
        -------
        SequenceShards

        Raises
        ------
        FileExistsError
            If the folder is not empty.
        ValueError
            For data that are malformed (names file and line, or row), one column only, templates that name attributes
            of pairs of labels.
        """
        max_memory = checked_memory(max_memory)
        most = max(max_memory // TOKEN_BYTES, 1)
        encoder = FeatureEncoder(templates, min_count, hash_bits)
        several = isinstance(source, (list, tuple))
        sources, each = (paths_of(source), spread) if several else ([source], here)
        with new_folder(folder) as target, scratch_folder(target) as scratch:
            if several and columns is None:
                found = each(_column_names, sources)
                others = {sequence, label}
                columns = next(([c for c in of_one if c not in others] for of_one in found if of_one is not None), None)
            read = each(_read, sources, scratch, columns, sequence, names, label, tuple(sentence_end))
            texts = [text for text in read if text.n_columns]  # the others are tables without rows
            if not texts:
                where = f"{sources[0]}: " if isinstance(sources[0], (str, os.PathLike)) else ""
                raise ValueError(f"{where}there are no sequences")
            for text, path in zip(read, sources, strict=True):
                if text.n_columns not in (0, texts[0].n_columns):
                    raise ColumnFileError(f"{path}: expected {texts[0].n_columns} columns, found {text.n_columns}")
            labels = sorted({label for text in texts for label in text.vocabularies[-1].tolist()})
            encoder.fit_columns(texts[0].n_columns - 1, lambda layout: each(_count, texts, layout, most))
            parts = each(_encode, texts, scratch, encoder, labels, most)
            header, arrays = encoder.to_arrays()
            arrays = {f"encoder.{name}": array for name, array in arrays.items()}
            cls._join(target, parts, {"labels": labels, "encoder": header}, arrays, max_memory, each)
        return cls.open(folder)

    @classmethod
    def _opened(cls, folder: Path, file: ModelFile, mmap: bool, **options: Any) -> Self:
        encoder = FeatureEncoder.from_arrays(file.meta["encoder"], file.under("encoder."))
        if encoder.kind != "columns":
            raise ValueError("an encoder of no columns")
        labels = Names().get("labels", file.meta)
        return cls(folder, *cls._stored(folder, file, mmap, encoder.n_features), labels, encoder)

    def fingerprint(self) -> int:
        """A checksum of features and labels, the same for data encoded in the same way."""
        return features_fingerprint(self.encoder, self.labels)


def features_fingerprint(encoder: Any, labels: Any) -> int:
    """A checksum of the features of an encoder of columns, and of labels."""
    meta, arrays = encoder.to_arrays()
    text = repr((sorted(meta.items()), list(labels))).encode()
    return checksum([np.frombuffer(text, dtype=np.uint8), *(arrays[name] for name in sorted(arrays))])


class _Text:
    """Columns of a source in files of a new folder, as ids of one set of strings.

    Attributes
    ----------
    offsets : int64 array
    vocabularies : tuple of Vocabulary
        One per column.
    """

    def __init__(self, folder: Path, pieces: Iterator[Columns]) -> None:
        interners: list[Interner] = []
        lengths = [np.zeros(1, dtype=np.int64)]
        self.folder = folder
        with Writer(folder, ids="<i4") as writer:
            for piece in pieces:
                if not interners:
                    if piece.n_columns < 2:
                        raise ColumnFileError(
                            f"{piece.name}: has one column; training needs at least a word and, last, its label"
                        )
                    interners = [Interner() for _ in range(piece.n_columns)]
                ids = np.empty(piece.ids.shape, dtype=np.int32)
                for j, (interner, vocabulary) in enumerate(zip(interners, piece.vocabularies, strict=True)):
                    ids[:, j] = interner.intern(vocabulary.tolist())[piece.ids[:, j]]
                writer.append("ids", ids)
                lengths.append(np.diff(piece.offsets))
        # All of it is in files: what travels are references.
        self.offsets = stored(folder / "offsets", np.cumsum(np.concatenate(lengths)))
        self.vocabularies: tuple[Vocabulary, ...] = ()
        for j, interner in enumerate(interners):
            data, starts = interner.to_arrays()
            self.vocabularies += (Vocabulary(stored(folder / f"data{j}", data), stored(folder / f"starts{j}", starts)),)

    @property
    def n_columns(self) -> int:
        return len(self.vocabularies)

    def pieces(self, n_tokens: int) -> Iterator[Columns]:
        """All of it, about `n_tokens` at a time."""
        width = len(self.vocabularies)
        ids = Vector(self.folder / "ids", "<i4", int(self.offsets[-1]) * width, is_mapped=True)
        rows = ids.array.reshape(-1, width)
        for i, j in pairwise(shard_bounds(np.diff(self.offsets), n_tokens).tolist()):
            a, b = self.offsets[[i, j]].tolist()
            yield Columns(self.offsets[i : j + 1] - a, np.array(rows[a:b]), self.vocabularies)
            ids.release(a * width, b * width)


# Steps for each source, here or on a worker.


def _column_names(source: Any) -> list[str] | None:
    """Column names of a table; None for other sources, and for a table without rows."""
    first = next(arrow_batches(source, 1) or iter(()), None)
    return None if first is None else list(first.schema.names)


def _read(source: Any, scratch: Path, *choice: Any) -> _Text:
    """The columns of a source; `choice` is for `column_pieces`."""
    return _Text(Path(tempfile.mkdtemp(dir=scratch)), column_pieces(source, ROWS, *choice))


def _count(text: _Text, layout: TemplateLayout, most: int) -> Counts:
    return count(layout, (piece.drop_last() for piece in text.pieces(most)))


def _encode(text: _Text, scratch: Path, encoder: FeatureEncoder, labels: list[str], most: int) -> EncodedPart:
    place = {label: k for k, label in enumerate(labels)}
    label_id = np.array([place[label] for label in text.vocabularies[-1].tolist()], dtype=np.int32)
    pieces = (
        (encoder.transform(piece.drop_last().compact()), label_id[piece.ids[:, -1]]) for piece in text.pieces(most)
    )
    return write_part(scratch, pieces)
