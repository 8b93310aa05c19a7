"""Tables of values between commas, semicolons or tabs: a row per token, the names of columns in the first line."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from itertools import islice, pairwise
from typing import NamedTuple

from structsvm.features.sources import ColumnFileError

# Names of columns of words, and of labels, in the first line of a table.
WORD_NAMES = frozenset({"word", "words", "token", "tokens", "form", "text"})
LABEL_NAMES = frozenset(
    {"label", "labels", "tag", "tags", "ner", "ner_tag", "ner_tags", "pos", "pos_tag", "upos", "iob"}
)
# Names of a column that names sequences; without one the first may do so.
SEQUENCE_NAMES = frozenset({"sentence", "sentence #", "sentence_id", "sent", "sent_id", "sequence", "sequence_id"})
# Rows that tell whether a column names sequences, and the bytes in which they are searched.
LOOK, HEAD = 1000, 1 << 20
QUOTED = re.compile(r'"(?:[^"]|"")+"')  # as spreadsheets write a value with a quotation mark in it
BARE_RETURN = re.compile(r"\r(?!\n|\Z)")
IS_CSV = re.compile(r"\.csv(\.\w+)?\Z", re.IGNORECASE)


class Table(NamedTuple):
    """How a table is written: the names of its columns in small letters, the separator, and its first line."""

    names: list[str]
    separator: str
    header: bytes


def table_of(row: bytes, name: str, wanted: Iterable[str] = (), head: bytes = b"") -> Table | None:
    """The table that a file's first line begins; None for files of columns between blanks or tabs.

    A table has commas or semicolons between names, of which one means words or labels, or is among `wanted`; and, but
    for a file ``.csv``, in the line after it in `head`. Names between tabs are those of a table if one means words and
    one labels, or one is among `wanted`. Raises ColumnFileError for a first line of a file ``.csv`` with separators and
    without such a name, and for a name that stands twice.
    """
    header = row.rstrip(b"\r")
    text = header.decode("utf-8", "replace")
    if not text or "\r" in text:
        return None
    if "\t" in text:
        return _table_by_tabs(header, text, name, {column.lower() for column in wanted}, _line_after(row, head, b"\t"))
    separator = ";" if text.count(";") > text.count(",") else ","
    is_csv = IS_CSV.search(name) is not None
    try:
        names = [field.strip().lower() for field in next(csv.reader([text], delimiter=separator), [])]
    except csv.Error as error:  # such as a very long value
        if not is_csv:
            return None
        raise ColumnFileError(f"{name}:1: {error}") from None
    if not is_csv and (len(names) < 2 or separator.encode() not in _line_after(row, head, separator.encode())):
        return None
    found, asked = (WORD_NAMES | LABEL_NAMES).intersection(names), {column.lower() for column in wanted}
    if not is_csv and not asked.intersection(names) and not (found & WORD_NAMES and found & LABEL_NAMES):
        return None
    if not found and not asked.intersection(names):
        if separator not in text:  # a column file by another name
            return None
        raise ColumnFileError(
            f"{name}:1: a table of comma-separated values begins with the names of its columns, one of them word, "
            f"token, label or tag; found {text!r:.60}; columns= and label= (--columns, --label) name others"
        )
    return _named_once(Table(names, separator, header), name)


def _named_once(table: Table, name: str) -> Table:
    """The table; ColumnFileError for a name that stands twice."""
    twice = next((column for k, column in enumerate(table.names) if column and column in table.names[:k]), None)
    if twice is not None:
        raise ColumnFileError(f"{name}:1: two columns have the name {twice!r}")
    return table


def _table_by_tabs(header: bytes, text: str, name: str, asked: set[str], after: bytes) -> Table | None:
    """The table whose names stand between tabs; None for a token of a column file, which may have a number."""
    names = [field.lower() for field in _between_tabs(text)]
    is_meant = asked.intersection(names) or (WORD_NAMES.intersection(names) and LABEL_NAMES.intersection(names))
    if not is_meant or any(field.isdecimal() for field in names) or b"\t" not in after:
        return None
    return _named_once(Table(names, "\t", header), name)


def _between_tabs(line: str) -> list[str]:
    """The values of a line; quotation marks around a value count only if all others in it are doubled."""
    values = [value.strip() for value in line.split("\t")]
    return [value[1:-1].replace('""', '"') if QUOTED.fullmatch(value) else value for value in values]


def rows_of(text: str, separator: str, *, strict: bool = False) -> Iterator[tuple[list[str], int]]:
    """The values of each row, without blanks around them, and the number of its last line from 1.

    Raises csv.Error for what is no row; with `strict` also for a quotation mark that is not closed, or is followed by
    more than a separator.
    """
    if separator == "\t":
        for number, line in enumerate(text.split("\n"), start=1):
            yield _between_tabs(line), number
        return
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=strict)
    for fields in lines:
        yield [field.strip() for field in fields], lines.line_num


def _line_after(row: bytes, head: bytes, default: bytes) -> bytes:
    """The next line that is not blank; `default` if there is none."""
    return next((line for line in head[head.find(row) + len(row) :].splitlines() if line.strip()), default)


def table_rows(text: str, table: Table, name: str, first: int = 1) -> list[list[list[str]]]:
    """The rows of each sequence, without the first line; rows without a value end a sequence.

    `first` is the number of the text's first line. Raises ColumnFileError for rows of another number of values, for a
    quotation mark that stays open over several lines, and for a carriage return within a line.
    """
    if "\r" in text and (bare := BARE_RETURN.search(text)):
        table_rows(text[: text.rfind("\n", 0, bare.start()) + 1], table, name, first)  # an error before it comes first
        line = first + text.count("\n", 0, bare.start())
        raise ColumnFileError(f"{name}:{line}: a carriage return within a line; lines end in LF or CRLF")
    sequences: list[list[list[str]]] = [[]]
    lines = rows_of(text, table.separator)
    number, begins, has_header = 0, first, first == 1
    try:
        for values, number in lines:
            line, begins = begins, first + number
            if not any(values):
                sequences += [[]] * bool(sequences[-1])
                continue
            if begins - line > 1:
                raise ColumnFileError(
                    f"{name}:{line}: a quotation mark is opened and not closed in its line; as a word it is written "
                    '"""" in such a table'
                )
            if len(values) != len(table.names):
                wanted = f"{len(table.names)} values ({', '.join(table.names)})"
                raise ColumnFileError(f"{name}:{line}: expected {wanted}, found {len(values)}")
            if has_header:
                has_header = False
                continue
            sequences[-1].append(values)
    except csv.Error as error:
        raise ColumnFileError(f"{name}:{first + number}: {error}") from None
    return [rows for rows in sequences if rows]


def line_of(text: str, table: Table, row: int, first: int = 1) -> int:
    """The line of a row of `table_rows`, by its number from 0 in all sequences."""
    ends = (number for values, number in rows_of(text, table.separator) if any(values))
    return first - 1 + next(islice(ends, row + (first == 1), None))


def filled(sequences: list[list[list[str]]], place: int, name: str, last: str = "") -> list[list[list[str]]]:
    """The rows with each empty cell of a column replaced by the value above it; ColumnFileError if there is none.

    `last` is the value above the first row.
    """
    for row in (row for rows in sequences for row in rows):
        row[place] = last = row[place] or last
        if not last:
            raise ColumnFileError(f"{name}: the column that names sequences is empty in the first row")
    return sequences


def check_words(sequences: list[list[list[str]]], place: int, column: str, name: str) -> None:
    """Raise ColumnFileError for a column whose cells hold whole sentences."""
    rows = [row for rows in sequences for row in rows]
    if sum(" " in row[place] for row in rows) > len(rows) / 2:
        raise ColumnFileError(
            f"{name}: most cells of its column {column} hold several words; a table of labels has one word in a row"
        )


def sequence_places(table: Table) -> list[int]:
    """Columns of several that may name sequences; the first of them whose values come in runs does.

    Those called so win over the first column of the table, which may have any name but one of words or labels: in
    ``doc,sentence,word,label`` sentences are the sequences, and not documents.
    """
    if len(table.names) == 1:
        return []
    named = [j for j, name in enumerate(table.names) if name in SEQUENCE_NAMES]
    return named + [0] * (0 not in named and table.names[0] not in WORD_NAMES | LABEL_NAMES)


def names_sequences(head: bytes, table: Table, name: str, place: int) -> bool:
    """Whether a column names sequences: its values come in runs, and none comes again after another."""
    text = head[:HEAD].decode("utf-8", "replace")
    rows = [row for rows in table_rows(text[: text.rfind("\n") + 1], table, name) for row in rows]
    values = [row[place] for row in islice(rows, LOOK)]
    runs = [value for before, value in pairwise(["", *values]) if value not in ("", before)]
    return len(set(runs)) == len(runs) < len(values)
