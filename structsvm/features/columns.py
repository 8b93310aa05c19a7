"""CoNLL column files.

A column file has one token per line, as columns separated by spaces or tabs; blank lines end
a sequence. :func:`read_columns` reads it into a :class:`Columns`: one int32 id per token
and column, and one vocabulary per column. All later steps work on the ids.
"""

from __future__ import annotations

import math
import os
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, BinaryIO, overload

import numpy as np
from numpy.typing import NDArray

from structsvm.features._columns import RaggedLineError, intern_rows
from structsvm.features._strings import Interner, take_strings
from structsvm.features._tokens import distinct
from structsvm.features.ranges import take_ranges
from structsvm.features.sources import (
    ColumnFileError,
    DamagedFileError,
    load_bytes,
    name_of,
    no_tokens,
    stream_bytes,
    unfolds_to_more,
)
from structsvm.features.tables.conllu import conllu_columns
from structsvm.features.tables.csv_rows import HEAD, LOOK
from structsvm.features.tables.forms import Form, Reading, first_row
from structsvm.features.tables.frames import frame_columns
from structsvm.features.text.encodings import Encoded, NotTextError, without_marks
from structsvm.stored_values import checked_arrays, least, short_strings, strings

if TYPE_CHECKING:
    from structsvm.arrays import AnyArray

__all__ = ["ColumnFileError", "ColumnPieces", "Columns", "Vocabulary", "read_columns"]

BLANK_LINE = re.compile(rb"\n[ \t]*\r?\n")
SEPARATORS = frozenset(b",;")  # between the values of a table
LINE = re.compile(rb"[^\n]+")
NO_VALUES = b" \t\r,;"  # a row of these alone has no value


# ------------------------------------------------------------------------ columns


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """The distinct strings of one column, as UTF-8.

    String i is ``data[starts[i]:starts[i + 1]]``.

    Attributes
    ----------
    data : uint8 array
    starts : int64 array of shape (n_strings + 1,)

    Examples
    --------
    >>> from structsvm.features.columns import Columns
    >>> Columns.from_sequences([[("the", "DT"), ("cat", "NN")]]).vocabularies[0].tolist()
    ['the', 'cat']
    """

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def tolist(self, ids: Iterable[int] | None = None) -> list[str]:
        """All strings, in the order of their ids; or those of some ids."""
        blob = self.data.tobytes()
        ends = self.starts.tolist()
        spans = pairwise(ends) if ids is None else ((ends[i], ends[i + 1]) for i in ids)
        return [blob[a:b].decode("utf-8", "surrogatepass") for a, b in spans]

    @classmethod
    def from_strings(cls, strings: Iterable[str]) -> Vocabulary:
        """From distinct strings, in the order of their ids."""
        coded = [s.encode("utf-8", "surrogatepass") for s in strings]
        starts = np.zeros(len(coded) + 1, dtype=np.int64)
        np.cumsum([len(s) for s in coded], out=starts[1:])
        return cls(np.frombuffer(b"".join(coded), dtype=np.uint8), starts)

    def to_arrays(self, name: str) -> dict[str, AnyArray]:
        """Named arrays, for model files: the bytes, and the length of each string."""
        return {name: self.data, f"{name}.lengths": least(np.diff(self.starts))}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, AnyArray], name: str, starts: str, count: int | str) -> Vocabulary:
        """The inverse of :meth:`to_arrays`; earlier files have `starts` in place of lengths.

        Raises ValueError for anything else, but for bytes that are not UTF-8.
        """
        if starts in arrays:
            stored = checked_arrays(arrays, strings(name, starts, count))
            return cls(stored[name], stored[starts])
        lengths = f"{name}.lengths"
        stored = checked_arrays(arrays, short_strings(name, lengths, count))
        ends = np.concatenate([[0], np.cumsum(stored[lengths], dtype=np.int64)])
        if ends[-1] != len(stored[name]) or (ends < 0).any():
            raise ValueError(f"array {lengths!r} does not add up to the {len(stored[name])} bytes of {name!r}")
        return cls(stored[name], ends)

    def take(self, ids: AnyArray) -> Vocabulary:
        """The vocabulary of the strings `ids`, in that order."""
        return Vocabulary(*take_strings(self.data, self.starts, np.asarray(ids, dtype=np.int64)))


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Sequences of tokens; a token is a row of strings given by their ids.

    It can be used as a list of sequences, and as an array of them: ``len(columns)``,
    ``columns[3]`` and iteration give sequences, lists of tokens; a token is a tuple of
    strings, or, if there is one column only, a string. ``columns[10:20]``, ``columns[[7, 3]]``
    and ``columns[mask]`` are Columns again, which is what scikit-learn's splitters need.

    Attributes
    ----------
    offsets : int64 array of shape (n_sequences + 1,)
        Sequence s is rows ``offsets[s]:offsets[s + 1]``.
    ids : int32 array of shape (n_tokens, n_columns)
    vocabularies : tuple of Vocabulary
        One per column.
    name : str
        Their source, for messages.
    is_whole : bool
        Whether they have all sequences of the file `name`, in its order.

    Examples
    --------
    >>> from structsvm.features.columns import Columns
    >>> columns = Columns.from_sequences([[("the", "DT"), ("cat", "NN")], [("dogs", "NN")]])
    >>> columns.n_tokens, columns.n_columns, columns[1]
    (3, 2, [('dogs', 'NN')])
    """

    offsets: NDArray[np.int64]
    ids: NDArray[np.int32]
    vocabularies: tuple[Vocabulary, ...]
    name: str = "<columns>"
    is_whole: bool = False

    def __post_init__(self) -> None:
        if self.ids.ndim != 2 or self.ids.shape[1] != len(self.vocabularies):
            raise ValueError("ids must have one column per vocabulary")
        if self.ids.dtype != np.int32 or self.offsets.dtype != np.int64 or self.offsets.ndim != 1:
            raise ValueError("ids must be int32 and offsets a vector of int64")
        if len(self.offsets) == 0 or self.offsets[0] != 0 or self.offsets[-1] != len(self.ids):
            raise ValueError("offsets must go from 0 to the number of tokens")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_tokens(self) -> int:
        return len(self.ids)

    @property
    def n_columns(self) -> int:
        return len(self.vocabularies)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of tokens of each sequence."""
        return np.diff(self.offsets)

    @property
    def shape(self) -> tuple[int]:
        """``(n_sequences,)``; with it scikit-learn slices folds as Columns, not as lists."""
        return (len(self),)

    def __iter__(self) -> Iterator[list[Any]]:
        """The sequences, each a list of strings (one column) or of tuples of strings."""
        flat: list[list[str]] = []
        for vocabulary, ids in zip(self.vocabularies, self.ids.T, strict=True):
            words = vocabulary.tolist()
            flat.append([words[i] for i in ids.tolist()])
        tokens: list[Any]
        if self.n_columns == 0:
            tokens = [()] * self.n_tokens
        else:
            tokens = flat[0] if self.n_columns == 1 else list(zip(*flat, strict=True))
        return (tokens[a:b] for a, b in pairwise(self.offsets.tolist()))

    def column(self, j: int) -> list[list[str]]:
        """Column j (negative: from the right) as one list of strings per sequence."""
        return list(self.select([j]))

    def select(self, columns: Sequence[int]) -> Columns:
        """Some of the columns; a contiguous range is not copied."""
        chosen = [range(self.n_columns)[j] for j in columns]
        step = slice(chosen[0], chosen[-1] + 1) if chosen else slice(0, 0)
        is_run = chosen == list(range(self.n_columns))[step]
        ids = self.ids[:, step] if is_run else self.ids[:, chosen]
        return Columns(self.offsets, ids, tuple(self.vocabularies[j] for j in chosen), self.name, self.is_whole)

    def place_of(self, sequence: int, token: int) -> str | None:
        """File and line of a token; None if they are not those of a file, or it no longer has them."""
        if not self.is_whole or not os.path.isfile(self.name):
            return None
        wanted, found, was_blank = self[sequence][token], -1, True
        for number, line in enumerate(load_bytes(self.name)[0].decode("utf-8", "replace").split("\n"), 1):
            strings = line.removeprefix("\ufeff").split()
            found += bool(strings) and was_blank
            was_blank = not strings
            if found == sequence and strings and token == 0:
                there = {wanted} if isinstance(wanted, str) else {*wanted}
                return f"{self.name}:{number}" if there <= {*strings} else None
            token -= found == sequence and bool(strings)
        return None

    def drop_last(self) -> Columns:
        """All columns except the last one, which by convention is the label."""
        return self.select(range(self.n_columns - 1))

    @overload
    def __getitem__(self, sequences: int) -> list[Any]: ...
    @overload
    def __getitem__(self, sequences: Any) -> Columns: ...
    def __getitem__(self, sequences: Any) -> Any:
        """One sequence (int), or some as Columns; a slice of step 1 copies nothing."""
        if isinstance(sequences, tuple):  # scikit-learn indexes columns[indices, ...]
            if len(sequences) != 2 or sequences[1] is not Ellipsis:
                raise TypeError("columns are indexed by sequences only; see select() and column()")
            sequences = sequences[0]
        if isinstance(sequences, (int, np.integer)):
            if not -len(self) <= sequences < len(self):
                raise IndexError(f"sequence {sequences} of {len(self)}")
            i = int(sequences) % len(self)
            return next(iter(self[i : i + 1].compact()))
        if not isinstance(sequences, slice):
            return self.take(sequences)
        i, j, step = sequences.indices(len(self))
        if step != 1:
            return self.take(np.arange(i, j, step))
        j = max(i, j)
        a, b = self.offsets[i], self.offsets[j]
        offsets = self.offsets[i : j + 1] - a
        return Columns(offsets, self.ids[a:b], self.vocabularies, self.name)

    def take(self, sequences: Any) -> Columns:
        """The sequences of an array of indices or a boolean mask, in that order."""
        offsets, rows = take_ranges(self.offsets, sequences)
        return Columns(offsets, self.ids[rows], self.vocabularies, self.name)

    def without_empty(self) -> Columns:
        """The sequences that have tokens; nothing is copied but offsets."""
        return replace(self, offsets=self.offsets[np.append(True, np.diff(self.offsets) > 0)])

    def compact(self) -> Columns:
        """The same sequences, with vocabularies of the strings that occur in them.

        A slice of a large file shares the vocabularies of the file. Columns with fewer
        tokens than strings are rebuilt; others are returned unchanged.
        """
        if self.n_tokens >= max([0, *map(len, self.vocabularies)]):
            return self
        ids = np.empty(self.ids.shape, dtype=np.int32)
        vocabularies = []
        for j, vocabulary in enumerate(self.vocabularies):
            used, ids[:, j] = distinct(self.ids[:, j])
            if len(used) and not 0 <= used[0] <= used[-1] < len(vocabulary):
                raise ValueError(f"{self.name}: column {j} has an id outside its vocabulary")
            vocabularies.append(vocabulary.take(used))
        return Columns(self.offsets, ids, tuple(vocabularies), self.name)

    def counts(self) -> dict[str, dict[str, int]]:
        """How many tokens have each string of a column, by the name of the column: "column 1", ..."""
        return {
            f"column {j}": dict(zip(strings.tolist(), np.bincount(ids, minlength=len(strings)).tolist(), strict=True))
            for j, (strings, ids) in enumerate(zip(self.vocabularies, self.ids.T, strict=True), start=1)
        }

    def with_column(self, ids: NDArray[np.int32], strings: Vocabulary) -> Columns:
        """The same with one more column, behind the others."""
        return Columns(self.offsets, np.column_stack([self.ids, ids]), (*self.vocabularies, strings), self.name)

    def to_bytes(self) -> bytes:
        """The text of a column file: a line per token, its columns between tabs, and a blank line per sequence."""
        shared = Vocabulary.from_strings(["\t", "\n", "\n\n"])
        parts = (*self.vocabularies, shared)
        first = np.cumsum([0, *map(len, parts)])
        shifts = np.cumsum([0, *(part.starts[-1] for part in parts)])
        starts = np.concatenate([*(part.starts[:-1] + shift for part, shift in zip(parts, shifts)), shifts[-1:]])
        pieces = np.full((self.n_tokens, 2 * self.n_columns), first[-2], dtype=np.int64)
        pieces[:, ::2] = self.ids + first[: self.n_columns]
        pieces[:, -1] += 1
        pieces[self.offsets[1:][np.diff(self.offsets) > 0] - 1, -1] += 1
        data = np.concatenate([part.data for part in parts])
        return take_strings(data, starts, pieces.ravel())[0].tobytes()

    @classmethod
    def from_sequences(
        cls, sequences: Iterable[Iterable[Sequence[str]]], name: str = "<columns>", *, allow_empty: bool = False
    ) -> Columns:
        """From sequences of rows of strings, ``[[("The", "DT"), ("dog", "NN")], ...]``; a string is a row of its own.

        Raises
        ------
        ColumnFileError
            For an empty sequence (unless `allow_empty`), or rows of different lengths (names both).
        """
        rows: list[Sequence[str]] = []
        ends = [0]
        for s, sequence in enumerate(sequences):
            if isinstance(sequence, str):
                raise TypeError(f"{name}: sequence {s} must be a list of tokens, got the string {sequence!r:.40}")
            rows.extend(sequence)
            if len(rows) == ends[-1] and not allow_empty:
                raise ColumnFileError(f"{name}: sequence {s} is empty")
            ends.append(len(rows))
        try:
            ids, interners = intern_rows(rows)
        except RaggedLineError as error:
            t, wanted, found = error.args
            s = bisect_right(ends, t) - 1
            where = f"{name}: sequence {s}, token {t - ends[s]}"
            if found < 0:
                raise TypeError(f"{where} must be a string or a row of strings") from None
            raise ColumnFileError(f"{where}: expected {wanted} columns, found {found}") from None
        return cls(np.array(ends, dtype=np.int64), ids, _vocabularies(interners), name)

    @classmethod
    def from_dataframe(
        cls,
        frame: Any,
        columns: Sequence[str] | None = None,
        *,
        label: str | None = None,
        sequence: str | None = None,
        names: Mapping[str, Sequence[str]] | None = None,
    ) -> Columns:
        """From a data frame (pandas, polars, any that narwhals knows), an Arrow table or a Hugging Face data set.

        Parameters
        ----------
        frame : data frame, pyarrow.Table or datasets.Dataset
        columns : list of str, optional
            The columns of tokens, in this order; by default all but `sequence`.
        label : str, optional
            The column that comes last.
        sequence : str, optional
            Frames with a row per token: the column that names the sequence, in runs of equal values (missing ones are
            that of the row before). None: a row per sequence, its cells lists of strings.
        names : dict of str to list of str, optional
            Names of ids from 0 on, by column: ``{"ner_tags": ["O", "B-PER", ...]}``. Arrow tables and data sets of
            Hugging Face know those of their ClassLabel columns.

        Raises
        ------
        ValueError
            For a column that is not there, values that are not strings (names sequence, token and column), lists of
            different lengths, a sequence in two runs.
        """
        offsets, ids, strings = frame_columns(frame, columns, sequence, names or {}, label)
        return cls(offsets, ids, tuple(Vocabulary(*arrays) for arrays in strings), "<frame>")

    @classmethod
    def from_conllu(cls, source: Any, columns: Sequence[str] = ("form", "upos")) -> Columns:
        """From a CoNLL-U or CoNLL-U Plus file: its words, without comments, multiword ranges and empty nodes.

        Parameters
        ----------
        source : path, binary file or lines of text
            As for `read_columns`.
        columns : list of str
            Of id, form, lemma, upos, xpos, feats, head, deprel, deps, misc; or of those that the line
            ``# global.columns = ...`` names.

        Raises
        ------
        ColumnFileError
            For a column that is not there and lines that are not CoNLL-U (names file and line).
        """
        return cls.from_sequences(*conllu_columns(source, columns))


def read_columns(
    source: str | os.PathLike[str] | BinaryIO | Iterable[str],
    encoding: str | None = None,
    *,
    columns: Sequence[str | int] | None = None,
    label: str | int | None = None,
    sequence: str | int | None = None,
    sentence_end: str | Iterable[str] = (),
) -> Columns:
    """Read a column file: tokens of columns between blanks or tabs, the label last; or a table of a row per token.

    CoNLL-U and CoNLL-U Plus are recognised: their words, with the universal tag as the label, or, where it is empty,
    the other tag. Comments (``# id ...``, ``# key = value``, and at the start of a sequence lines after ``#`` with
    another number of columns) and ``-DOCSTART-`` lines are left out. Columns stand between tabs alone where lines have
    the same number of tabs and different numbers of words.

    Tables of comma-separated values begin with a line of names, such as ``sentence,word,label``: between commas or
    semicolons, one of words and one of labels, or one that is chosen here; in files ``.csv`` one of these is enough.
    The last name that means labels is the label. A column called ``sentence`` or ``sequence``, else the first one,
    names the sequence where its values come in runs; an empty cell repeats the value above it, and rows without a value
    end a sequence too. A column ``id`` or without a name is left out.

    Parameters
    ----------
    source : path, binary file or lines of text
        A path or binary file may be compressed with gzip, xz or bzip2. Lines may be a
        text file, or any iterable of str.
    encoding : str, optional
        Encoding of the bytes. None: UTF-8, or what a byte-order mark says.
    columns : list of str or int, optional
        The columns of tokens, in this order: indices from 0, names (of CoNLL-U and tables), or numbers from 1 as
        text. None: all but the label; of CoNLL-U the words; of tables all but the label and `sequence`.
    label : str or int, optional
        The column that comes last in the result. None: the last one; of CoNLL-U the tag; of tables the last that is
        called so.
    sequence : str or int, optional
        The column whose value names the sequence of a token, where no blank lines end sequences. None: none; of tables
        one called ``sentence`` or ``sequence``, else the first one, if its values come in runs.
    sentence_end : str or list of str
        Tokens (between blanks) after which a sequence ends.

    Returns
    -------
    Columns

    Raises
    ------
    ColumnFileError
        For ragged lines, carriage returns within a line, bytes that are not valid in the encoding, damaged
        compression, no tokens.
    OSError
        If the file cannot be opened.

    Examples
    --------
    >>> from structsvm.features.columns import read_columns
    >>> read_columns(["the DT B-NP", "cat NN I-NP", "", "dogs NN B-NP"])[0]
    [('the', 'DT', 'B-NP'), ('cat', 'NN', 'I-NP')]
    """
    reading = Reading(None if columns is None else tuple(columns), label, sequence, words_of(sentence_end))
    return read_form(source if encoding is None else Encoded(source, encoding), reading)[0]


def words_of(sentence_end: str | Iterable[str]) -> tuple[str, ...]:
    """The words of a collection, or of a text between blanks."""
    return tuple(sentence_end.split() if isinstance(sentence_end, str) else sentence_end)


def read_form(source: Any, reading: Reading, n_features: int | None = None) -> tuple[Columns, Form]:
    """The columns of a file that are meant, and its form; raises as `read_columns`."""
    try:
        data, name, is_text = load_bytes(source)
    except NotTextError as error:
        raise ColumnFileError(str(error)) from error
    form = Form(data, name, reading, n_features)
    columns = replace(_as_columns(form, data, is_text=is_text), is_whole=not is_text)
    if not columns.n_tokens:
        raise no_tokens(name, is_blank=bool(data), has_names=has_names(form))
    return columns, form


def has_names(form: Form | None) -> bool:
    """Whether a file is a table, which has a line of names."""
    return form is not None and form.table is not None


def settled_reading(source: str | os.PathLike[str] | BinaryIO, reading: Reading) -> Reading:
    """The reading with the columns of a table, as its first rows settle them; raises as `read_columns`."""
    head = ColumnPieces(source, 1, reading).head()
    return Form(without_marks(head), name_of(source), reading).settled()


class ColumnPieces:
    r"""A column file of any size, piece by piece: iteration yields bytes of whole sequences, `parse` their Columns.

    Parameters
    ----------
    source : path or binary file
        As for `read_columns`.
    n_sequences : int, optional
        Sequences of each piece but the last, by its blank lines. None: as many as there are at once, from a pipe what
        it has.
    reading : Reading, optional
        Which columns are meant.
    n_features : int, optional
        Columns of tokens that are wanted; a file may then have no labels.

    Attributes
    ----------
    form : Form or None
        Once the first piece is read.

    Notes
    -----
    At most a piece, one read and the sequence that continues beyond it are in memory. Pieces may be parsed in
    any order, and by several threads. Where the rows of a table tell what its columns are, the first piece comes
    after its first thousand rows, or its end: so it does not matter how a pipe hands them over.

    Examples
    --------
    >>> import io
    >>> from structsvm.features.columns import ColumnPieces
    >>> pieces = ColumnPieces(io.BytesIO(b"the DT\ncat NN\n\ndogs NN\n"), 1)
    >>> [pieces.parse(piece)[0] for piece in pieces]
    [[('the', 'DT'), ('cat', 'NN')], [('dogs', 'NN')]]
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | BinaryIO,
        n_sequences: int | None = None,
        reading: Reading | None = None,
        n_features: int | None = None,
    ) -> None:
        self.source, self.n_sequences = source, n_sequences
        self.reading, self.n_features = reading or Reading(), n_features
        self.form: Any = None

    def __iter__(self) -> Iterator[tuple[bytes, int, str]]:
        """Pieces ``(data, line, name)``: `line` is the number of their first one. ColumnFileError as `read_columns`."""
        held, line, looked, name = bytearray(), 1, 0, name_of(self.source)
        is_empty = True
        blank, ends = 0, list[int]()  # in what is held: the end of the last blank line, and those of sequences
        try:
            for block, most in self._blocks():
                held += block
                if len(held) > most:
                    raise DamagedFileError(unfolds_to_more(f"{name}: a sequence unfolds", most))
                # Each byte is looked at once: a blank line begins where the last line ended, and ends in this block.
                if b"\n" not in block:
                    continue
                for found in BLANK_LINE.finditer(held, looked):
                    begin, blank = blank, found.end()
                    if self._has_tokens(bytes(held[begin:blank]), name, held):
                        ends.append(blank)
                size = self.n_sequences or max(len(ends), 1)
                cuts = [0, *ends[size - 1 :: size]]
                if len(ends) % size == 0:
                    cuts.append(blank)
                for begin, end in pairwise(cuts):
                    for piece in self._piece(bytes(held[begin:end]), line, name):
                        is_empty = False
                        yield piece
                    line += held.count(b"\n", begin, end)
                done = cuts[-1]
                del held[:done]
                blank, ends = blank - done, [end - done for end in ends if end > done]
                looked = max(held.rfind(b"\n"), 0)
        except NotTextError as error:
            raise ColumnFileError(str(error)) from error
        for piece in self._piece(bytes(held), line, name):
            is_empty = False
            yield piece
        if is_empty:
            raise no_tokens(name, is_blank=line > 1 or bool(held), has_names=has_names(self.form))

    def head(self) -> bytes:
        """The first of what is read, with the rows that tell what the columns of a table are."""
        try:
            return next(self._blocks(), (b"", 0))[0]
        except NotTextError as error:
            raise ColumnFileError(str(error)) from error

    def _blocks(self) -> Iterator[tuple[bytes, float]]:
        """The source's blocks; the first has all rows that tell what the columns of a table are, however they come."""
        blocks, head, most = stream_bytes(self.source), bytearray(), math.inf
        n_rows, done, needs_rows = -1, 0, None  # the first row has the names
        for block, allowed in blocks:
            head += block
            most, end = allowed, head.rfind(b"\n") + 1
            n_rows += sum(bool(line[0].strip(NO_VALUES)) for line in LINE.finditer(head, done, end))
            done = end
            if needs_rows is None and n_rows >= 0:
                needs_rows = self._needs_rows(without_marks(bytes(head[:end])))
            if needs_rows is False or n_rows >= LOOK or len(head) >= HEAD:
                break
        if head:
            yield bytes(head), most
        yield from blocks

    def _needs_rows(self, head: bytes) -> bool | None:
        """Whether a file is a table whose columns its rows tell; None if there is no row yet."""
        row = first_row(head)
        if not row:
            return None
        if b"\t" not in row and (self.n_features is None or not SEPARATORS.intersection(row)):
            return bool(SEPARATORS.intersection(row))
        return Form(head, name_of(self.source), self.reading, self.n_features).is_doubtful

    def _has_tokens(self, data: bytes, name: str, held: bytes | bytearray) -> bool:
        """Whether a part has tokens; the form is settled by all that is held from the first one on."""
        if self.form is None:
            form = Form(without_marks(bytes(held)), name, self.reading, self.n_features)
            self.form = form if form.width else None
        return self.form is not None and self.form.has_tokens(without_marks(data))

    def _piece(self, data: bytes, line: int, name: str) -> Iterator[tuple[bytes, int, str]]:
        """A piece, if it has tokens."""
        if self._has_tokens(data, name, data):
            data = without_marks(data)
            self.form.follow(data, line)
            yield data, line, name

    def parse(self, piece: tuple[bytes, int, str]) -> Columns:
        data, line, _ = piece
        return _as_columns(self.form, data, line)


def _as_columns(form: Form, data: bytes, line: int = 1, *, is_text: bool = False) -> Columns:
    """The columns of a part of a file whose first line has this number."""
    offsets, ids, interners = form.parse(data, line, is_text=is_text)
    return Columns(offsets, ids, _vocabularies(interners), form.name)


def _vocabularies(interners: list[Interner]) -> tuple[Vocabulary, ...]:
    return tuple(Vocabulary(*interner.to_arrays()) for interner in interners)
