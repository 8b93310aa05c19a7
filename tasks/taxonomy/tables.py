"""Tables of documents: a row per document, the names of the columns in the first line."""

from __future__ import annotations

import csv
import re
from typing import NamedTuple

from structsvm.features.tables.csv_rows import IS_CSV, rows_of

IS_TABLE = re.compile(r"\.[ct]sv(\.\w+)?\Z", re.IGNORECASE)
# Names of columns of texts, and of labels; in files .csv and .tsv also words in such names.
TEXT_NAMES = frozenset({"text", "title", "name", "description", "document", "content"})
LABEL_NAMES = frozenset({"label", "category", "categories", "class", "path", "node", "taxonomy"})


class TableError(ValueError):
    """A table that cannot be read; the message ends with line and reason."""


class DocumentTable(NamedTuple):
    """How a table of documents is written: its names, the separator, the columns of texts and of labels (-1: none)."""

    names: list[str]
    separator: str
    texts: list[int]
    label: int

    def describe(self) -> str:
        """Say which columns hold the texts, and which one the labels."""
        read = ", ".join(self.names[k] for k in self.texts)
        label = f"; {self.names[self.label]} is the label" if self.label >= 0 else ""
        return f"a table, read by its columns {read}{label}"


class TableRows(NamedTuple):
    """Documents of a table, their labels (None: there are none), and the line that each begins in."""

    texts: list[str]
    labels: list[str] | None
    lines: list[int]


def document_table(header: str, name: str, line: int = 1) -> DocumentTable | None:
    """The table that a file's first line begins, its number `line`; None for a file without names of columns.

    A table has names between commas, semicolons or tabs, one of them of texts and one of labels; or, without tabs, it
    is a file ``.csv`` with one of texts. Two values between tabs are also a label and a text: as names they have to be
    exact. Raises TableError for a file ``.csv`` with several values and no such name.
    """
    separator = "\t" if "\t" in header else ";" if header.count(";") > header.count(",") else ","
    is_csv = IS_CSV.search(name) is not None and separator != "\t"
    try:
        names = next(rows_of(header, separator, strict=True), ([], 0))[0]
    except csv.Error as error:
        if is_csv:
            raise _no_row(error, line) from None
        return None
    by_words = IS_TABLE.search(name) is not None and (separator != "\t" or len(names) > 2)
    labels = _columns(names, LABEL_NAMES, by_words=by_words)
    texts = [k for k in _columns(names, TEXT_NAMES, by_words=by_words) if k not in labels]
    if not texts or not (labels or is_csv) or any(value.isdecimal() for value in names):
        if is_csv and len(names) > 1:
            raise TableError(
                f"line {line}: a table begins with the names of its columns, one of them title or text, and one "
                f"category or label; found {', '.join(names):.100}"
            )
        return None
    if len(labels) > 1:
        several = " and ".join(repr(names[k]) for k in labels)
        raise TableError(f"line {line}: the columns {several} may be the label: give one of them the name label")
    return DocumentTable(names, separator, texts, labels[0] if labels else -1)


def table_documents(text: str, table: DocumentTable) -> TableRows:
    """The rows of a table, without the names of its columns. Several columns of texts are joined by blanks.

    Raises TableError for rows of another number of values, for quotation marks that are not closed, and for a label
    that is missing where others are there.
    """
    found, line, has_header = TableRows([], [], []), 1, True
    labels: dict[str, str] = {}  # equal labels are one string
    try:
        for values, end in rows_of(text, table.separator, strict=True):
            line, begin = end + 1, line
            if not any(values):
                continue
            if has_header:
                has_header = False
                continue
            if len(values) != len(table.names):
                wanted = f"{len(table.names)} values ({', '.join(table.names)})"
                raise TableError(f"line {begin}: expected {wanted:.200}, found {len(values)}")
            found.texts.append(" ".join(values[k] for k in table.texts))
            found.lines.append(begin)
            if table.label >= 0 and found.labels is not None:
                found.labels.append(labels.setdefault(values[table.label], values[table.label]))
    except csv.Error as error:
        raise _no_row(error, line) from None
    if not labels or labels.keys() == {""}:
        return found._replace(labels=None)
    if "" in labels and found.labels is not None:
        place = found.lines[found.labels.index("")]
        raise TableError(f"line {place}: the column {table.names[table.label]} is empty")
    return found


def _no_row(error: csv.Error, line: int) -> TableError:
    """The error of a row that begins in a line and is none."""
    if "field limit" in str(error):
        return TableError(
            f"line {line}: a value of more than {csv.field_size_limit():,} characters: is a quotation mark opened and "
            "not closed? Texts as long are read from lines of label<TAB>text"
        )
    return TableError(
        f"line {line}: a quotation mark is opened and not closed, or has text behind the closing one ({error}); within "
        'a value between quotation marks it is written ""'
    )


def _columns(names: list[str], known: frozenset[str], *, by_words: bool) -> list[int]:
    """The columns with one of the known names; if there is none and `by_words`, with one of them among their words."""
    low = [name.lower() for name in names]
    exact = [k for k, name in enumerate(low) if name in known]
    return exact or by_words * [k for k, name in enumerate(low) if known.intersection(re.split(r"[\W_]+", name))]
