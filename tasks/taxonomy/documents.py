"""Files of labelled documents: texts, one per line after its label, and svmlight."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, TypeAlias

from structsvm.features.sources import (
    BLOCK,
    DamagedFileError,
    load_text,
    name_of,
    numbered_lines,
    stream_bytes,
    unfolds_to_more,
)
from structsvm.features.svmlight import SvmlightFileError, parse_svmlight
from structsvm.features.text.encodings import not_utf8, without_marks
from structsvm.tasks.taxonomy.tables import DocumentTable, TableError, document_table, table_documents

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    Source: TypeAlias = str | os.PathLike[str] | BinaryIO

_SVMLIGHT = re.compile(r"\S+(\s+qid:\S+)?(\s+\d+:\S+)*\s*(#.*)?")


LOOK = 20  # lines that decide the form of a file


class DocumentFileError(ValueError):
    """A file of documents that cannot be read; the message names file and line."""


def read_documents(
    source: Source, *, texts: bool | None = None, first_index: int | None = None
) -> tuple[list[str] | csr_array, list[str] | None]:
    """Read documents.

    Parameters
    ----------
    source : path or binary file
        UTF-8, compressed with gzip, xz or bzip2 or not. Each line holds a document: a label, a tab, and a text; or a
        text alone; or, in svmlight format, ``index:value`` pairs between blanks, perhaps after a label (what follows
        ``#`` is left out). Or the first line has the names of columns between commas, semicolons or tabs, one of texts
        (title, text) and one of labels (category, label). The first lines decide which. Empty lines are left out.
    texts : bool, optional
        Whether they are texts, where that is known.
    first_index : {0, 1}, optional
        See `read_svmlight`.

    Returns
    -------
    X : list of str, or scipy CSR array of shape (n_documents, largest index), float32
    labels : list of str, or None
        None: there are none.

    Raises
    ------
    DocumentFileError
        A line of another form than the first, a value that is no finite number, an index below 1 or twice, no
        documents.
    """
    return document_rows(source, texts, first_index)[:2]


class DocumentRows(NamedTuple):
    """Documents as `read_documents` has them, the index of the first feature (None: texts), and the line of each.

    `remark` says which column of a table is which.
    """

    X: list[str] | csr_array
    labels: list[str] | None
    first_index: int | None
    lines: Sequence[int]
    remark: str = ""


def document_rows(source: Source, texts: bool | None = None, first_index: int | None = None) -> DocumentRows:
    """The documents of a file; see `read_documents`."""
    text, name = load_text(source, DocumentFileError, "{}, line {}")
    begins = list(islice(numbered_lines(text), LOOK))
    first = [line.rstrip("\r") for _, line in begins]
    if not first:
        raise DocumentFileError(f"{name}: holds no documents")
    rows = ((k, _stripped(line, name, k)) for k, line in numbered_lines(text))
    if texts is None:
        texts = _are_texts(first)
    if not texts:
        return _svmlight(rows, name, first_index)
    table = _table_of(first[0], name, begins[0][0])
    if table is not None:
        return _of_table(text, table, name)
    texts_of = list(rows)
    lines = [k for k, _ in texts_of]
    if "\t" in first[0]:
        return DocumentRows(*_labelled_texts(texts_of, name), None, lines)
    found = []
    for k, line in texts_of:
        if "\t" in line:
            raise DocumentFileError(f"{name}, line {k}: has a tab, and the first line has none: a label there or not?")
        found.append(line)
    return DocumentRows(found, None, None, lines)


def _table_of(header: str, name: str, line: int) -> DocumentTable | None:
    try:
        return document_table(header, name, line)
    except TableError as error:
        raise DocumentFileError(f"{name}, {error}") from None


def _of_table(text: str, table: DocumentTable, name: str) -> DocumentRows:
    """The documents of a table; DocumentFileError if there are none."""
    try:
        X, labels, lines = table_documents(text, table)
    except TableError as error:
        raise DocumentFileError(f"{name}, {error}") from None
    if not X:
        raise DocumentFileError(f"{name}: holds no documents, but the names of columns alone")
    return DocumentRows(X, labels, None, lines, table.describe())


def document_pieces(
    source: Source, first_index: int | None = None
) -> Iterator[tuple[list[str] | csr_array, list[str], int | None]]:
    """The labelled documents of a path or binary file of any size, about a megabyte at a time, and the index of the
    first feature: as `document_rows`.
    """
    name, line, texts = name_of(source), 1, None
    for data in _whole_lines(source, name):
        try:
            text = without_marks(data).decode("utf-8")
        except UnicodeDecodeError as wrong:
            place = line + data.count(b"\n", 0, wrong.start)
            raise DocumentFileError(f"{name}, line {place}: {not_utf8(data)}") from None
        rows = [(line + k - 1, _stripped(row, name, line + k - 1)) for k, row in numbered_lines(text)]
        line += data.count(b"\n")
        if rows:
            if texts is None:
                texts = _are_texts([row for _, row in rows[:LOOK]])
                if texts and _table_of(rows[0][1], name, rows[0][0]) is not None:
                    raise DocumentFileError(f"{name}: a table is not read in parts: write label<TAB>text, or Parquet")
            if texts:
                yield *_labelled_texts(rows, name), None
                continue
            X, labels, first_index = _svmlight(rows, name, first_index)[:3]
            if labels is None:
                raise DocumentFileError(f"{name}, line {rows[0][0]}: has no label, but features alone")
            yield X, labels, first_index
    if texts is None:
        raise DocumentFileError(f"{name}: holds no documents")


def _stripped(line: str, name: str, k: int) -> str:
    """A line without the carriage return of its end; DocumentFileError if there are others."""
    line = line.rstrip("\r")
    if "\r" in line:
        raise DocumentFileError(f"{name}, line {k}: a carriage return within a line")
    return line


def _whole_lines(source: Source, name: str) -> Iterator[bytes]:
    """The bytes of a source in pieces that end with lines."""
    held = bytearray()
    for block, most in stream_bytes(source):
        held += block
        if len(held) > most:
            raise DamagedFileError(unfolds_to_more(f"{name}: a line unfolds", most))
        end = block.rfind(b"\n") + 1
        if end and len(held) >= BLOCK:
            end += len(held) - len(block)
            yield bytes(held[:end])
            del held[:end]
    yield bytes(held)


def _are_texts(first: list[str]) -> bool:
    """Whether documents that begin with these lines are texts."""
    return not (all(map(_SVMLIGHT.fullmatch, first)) and any(":" in line for line in first))


def _svmlight(rows: Iterable[tuple[int, str]], name: str, first_index: int | None) -> DocumentRows:
    """Documents of lines in svmlight format."""
    try:
        return DocumentRows(*parse_svmlight(rows, name, first_index))
    except SvmlightFileError as error:
        raise DocumentFileError(str(error)) from None


def _labelled_texts(rows: Iterable[tuple[int, str]], name: str) -> tuple[list[str], list[str]]:
    labels, texts = [], []
    seen: dict[str, str] = {}  # equal labels are one string
    for k, line in rows:
        label, tab, text = line.partition("\t")
        if not tab or not label.strip():
            raise DocumentFileError(f"{name}, line {k}: expected label<TAB>text, found {line!r:.80}")
        labels.append(seen.setdefault(label, label))
        texts.append(text)
    return texts, labels
