"""Forms of column files: CoNLL-U, tables, columns between blanks or tabs, comments; and which of the columns are meant.

Lines that are no tokens are made blank, so that the lines of messages stay those of the file.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structsvm.features._columns import BadUTF8Error, RaggedLineError, intern_rows, parse_columns, width
from structsvm.features.sources import ColumnFileError
from structsvm.features.tables.conllu import NAMES, conllu_rows, plus_names
from structsvm.features.tables.csv_rows import (
    LABEL_NAMES,
    WORD_NAMES,
    Table,
    check_words,
    filled,
    line_of,
    names_sequences,
    sequence_places,
    table_of,
    table_rows,
)
from structsvm.features.text.encodings import not_utf8

Column: TypeAlias = str | int
# Offsets of sequences, ids of tokens, and the strings of each column.
Parsed: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int32], list[Any]]

TABLES = b"PAR1\x15", b"ARROW1\0", b"\xff\xff\xff\xff"  # how Parquet and Arrow files begin
BARE_RETURN = re.compile(rb"\r(?!\n|\Z)")
# Lines that may be no tokens; among them those that are none wherever they stand.
ASIDE = re.compile(rb"^(?:#+[ \t]|-DOCSTART-(?=\s|\Z))[^\n]*", re.MULTILINE)
NO_TOKENS = re.compile(rb"-DOCSTART-|#[ \t]+(?:(?:id|sent_id|newdoc|newpar)(?=\s|\Z)|[^\s=]+[ \t]+=(?=\s|\Z))")
LINE = re.compile(rb"[^\n]+")
JSON_OBJECT = re.compile(rb'[\s[]*\{\s*"[^"\\]+"\s*:\s*["[{\d]')  # a name and how its value begins
JSON_OPENING = re.compile(rb"[\s\[{]*[\[{]\s*")  # brackets alone begin JSON that is spread over lines
JSON_INNER = re.compile(rb'"[^"\\]+"\s*(?::.*|,)', re.DOTALL)  # a name and its value, or a text of a list
JSON_ENDS = b"}", b"]", b"},", b"],", b"{", b"["
# The first word of a CoNLL-U file, or a multiword token, or an empty node before it.
# Columns of the forms of treebanks, and a word's head in them.
CONLLU_WIDTH, CONLL_2009_WIDTH, HEAD = 10, 14, re.compile(rb"[0-9]+|_")
CONLLU_ROW = re.compile(rb"(?:0\.1|1(?:-[1-9][0-9]*)?)\t(?:[^\t]+\t){8}[^\t]+\Z")
# Brackets of trees with their labels; "(" is a word, and "(S*" a label of columns.
BRACKETS = re.compile(rb"\(\s*\(?[^\s()*]+\s+\([^\s()*]+\s+\S|\(\s+\([^\s()*]+\s*\Z")
# A word with its tag, and a line on which brackets open alone.
LEAF, OPENINGS = re.compile(rb"\([^\s()]+\s+[^\s()]+\s*\)"), re.compile(rb"(?:\(\s*(?:[^\s()]+\s*)?)+")
LOOK = 1000  # words whose tags tell whether a column has any
ASIDES = "id", ""  # names of columns that are no tokens' unless they are chosen; data frames write their index without
TAGS = ("upos", "xpos")  # labels of CoNLL-U by default: the first that has values


@dataclass(frozen=True)
class Reading:
    """Choice of a file's columns, and of the ends of its sequences.

    A column is a name, an index from 0 (int), or a number from 1 as text.

    Attributes
    ----------
    columns : tuple, optional
        Those of tokens, in this order. None: all others (of tables without ``id`` and those without a name); of
        CoNLL-U the words.
    label : str or int, optional
        None: the last one; of CoNLL-U the universal tag, or, where there are none, the other one; of tables the last
        whose name means labels (``label``, ``tag``, ``ner``, ...).
    sequence : str or int, optional
        The column whose value names the sequence of a token: a run of equal values is one. None: none; of tables the
        one called ``sentence`` or ``sequence``, else the first one, if its values come in runs.
    sentence_end : tuple of str
        Tokens, in the first of `columns`, after which a sequence ends.
    left_out : tuple of str
        Names of a table's columns that are none of these: another table's column of such a name names no sequences.
    """

    columns: tuple[Column, ...] | None = None
    label: Column | None = None
    sequence: Column | None = None
    sentence_end: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    @classmethod
    def of(cls, value: Any) -> Reading:
        """The inverse of `to_json`; ValueError or TypeError for what it cannot have returned."""
        given = cls(**value)
        columns = () if given.columns is None else given.columns
        ends, left_out = given.sentence_end, given.left_out
        single = [column for column in (given.label, given.sequence) if column is not None]
        if not all(type(column) in (str, int) for column in [*columns, *single]) or isinstance(columns, str):
            raise ValueError(f"columns {value!r:.80}")
        if isinstance(ends, str) or not all(type(word) is str for word in ends):
            raise ValueError(f"ends of sentences {ends!r:.80}")
        if isinstance(left_out, str) or not all(type(name) is str for name in left_out):
            raise ValueError(f"columns that are left out {left_out!r:.80}")
        words = None if given.columns is None else tuple(columns)
        return replace(given, columns=words, sentence_end=tuple(ends), left_out=tuple(left_out))

    def to_json(self) -> dict[str, Any]:
        columns = None if self.columns is None else list(self.columns)
        stored = vars(self) | {"columns": columns, "sentence_end": list(self.sentence_end)}
        del stored["left_out"]
        return stored | ({"left_out": list(self.left_out)} if self.left_out else {})


class Form:
    """The form of a column file.

    Parameters
    ----------
    head : bytes
        How the file begins: a token's line at least.
    name : str
    reading : Reading
    n_features : int, optional
        Columns of tokens that are wanted. With it a file may have no labels.

    Attributes
    ----------
    names : list of str or None
        Names of the columns, None: they have none.
    table : Table or None
        How a table of comma-separated values is written.
    width : int
        Number of the columns in the file; 0: there is no token.
    places : list of int
        The columns that are meant.
    has_label : bool
        Whether the last of these is the label.
    is_tabbed : bool
        Whether columns stand between tabs alone, and may hold blanks.
    is_doubtful : bool
        Whether the rows of a table tell if its first column names sequences.
    above : dict of int to str
        By the first line of a part of a table: the name of the sequence above it, if its first row has none.
    """

    def __init__(self, head: bytes, name: str, reading: Reading, n_features: int | None = None) -> None:
        if head.startswith(TABLES):
            raise ColumnFileError(
                f"{name}: is a Parquet or Arrow file, no text; "
                "training takes its path, with --shards FOLDER (SequenceShards)"
            )
        row = first_row(head)
        self.reading, self.name = reading, name
        self.table = table_of(row, name, _named_columns(reading), head)
        self.names = names_of(head, row, name) if self.table is None else self.table.names
        if self.names is None and reading.label is None and reading.columns is None and n_features is None:
            check_no_treebank(row, name)
            check_no_brackets(row, head, name)
        if self.names is None:
            check_no_header(row, name)
            check_no_json(row, head, name)
        self.width = width(row) if self.names is None else len(self.names) * bool(row)
        n_tabs = 0 if self.names is not None else row.count(b"\t")
        self.is_tabbed = n_tabs > 0 and self.width != n_tabs + 1 and _is_ragged(head, self.width)
        if self.is_tabbed:
            self.width = n_tabs + 1
        self.may_lack, self.is_doubtful = n_features is not None, False
        self.places: list[int] = []
        self.above, self._last = dict[int, str](), ""
        if self.width:
            self._settle(head, n_features)

    def _settle(self, head: bytes, n_features: int | None) -> None:
        """Find the columns that are meant; ColumnFileError for one that is not there."""
        reading = self.reading
        if self.names is None and n_features is not None and _named_columns(reading):
            reading = replace(reading, columns=None, label=None, sequence=None)
        named = reading.sequence if isinstance(reading.sequence, str) and not reading.sequence.isdecimal() else None
        if self.table is not None and self.may_lack and named is not None and named.lower() not in self.table.names:
            reading = replace(reading, sequence=None)
        self.sequence = None if reading.sequence is None else self.place(reading.sequence)
        if self.table is not None and (free := self._free_for_sequences(self.table, reading)):
            self.is_doubtful = True
            table, name = self.table, self.name
            self.sequence = next((j for j in free if names_sequences(head, table, name, j)), None)
        own = [
            j for j in range(self.width) if j != self.sequence and (self.names is None or self.names[j] not in ASIDES)
        ]
        is_plain = self.names is None or self.table is not None
        is_bare = is_plain and reading.columns is None and len(own) == n_features
        label = None if is_bare else self._label(head, own, reading)
        if reading.columns is not None:
            places = [self.place(column) for column in reading.columns]
        elif self.names is not None and "form" in self.names:
            places = [self.names.index("form")]
        else:
            places = [j for j in own if j != label]
        if label in places and label is not None:
            raise ColumnFileError(
                f"{self.name}: the column {self.called(label)} is the label, and among the columns of tokens"
            )
        if label is None and not places:
            raise self._nothing_left()
        self.has_label = label is not None
        self.places = places if label is None else [*places, label]
        self.ends = {word.encode("utf-8", "surrogatepass") for word in reading.sentence_end}

    def _free_for_sequences(self, table: Table, reading: Reading) -> list[int]:
        """Columns that may name sequences: no other is said to, and they are said to be nothing else."""
        if reading.sequence is not None:
            return []
        label = [] if reading.label is None or self.may_lack else [reading.label]
        given = {self.place(column) for column in (*(reading.columns or ()), *label)}
        return [j for j in sequence_places(table) if j not in given and table.names[j] not in reading.left_out]

    def _nothing_left(self) -> ColumnFileError:
        why = "has no column of words" if self.sequence is None else "its only column names sequences"
        return ColumnFileError(f"{self.name}: {why}")

    def _label(self, head: bytes, own: list[int], reading: Reading) -> int | None:
        """The column of labels; None: there is none, if that may be."""
        if reading.label is not None:
            try:
                return self.place(reading.label)
            except ColumnFileError:
                if self.may_lack:
                    return None
                raise
        if not own:
            raise self._nothing_left()
        if self.table is not None:
            return max((j for j in own if self.table.names[j] in LABEL_NAMES), default=own[-1])
        tags = [tag for tag in TAGS if self.names is not None and tag in self.names]
        if self.names is None or not tags:
            return own[-1]
        tag = next((tag for tag in tags if self._holds(head, self.names.index(tag))), None)
        if tag is None and not self.may_lack:
            raise ColumnFileError(
                f"{self.name}: its columns {' and '.join(tags)} are empty; label= (--label) names the one to learn, of "
                f"{', '.join(self.names)}"
            )
        return None if tag is None else self.names.index(tag)

    def _holds(self, head: bytes, place: int) -> bool:
        """Whether a column has a value in one of the first words."""
        rows = (line[0].rstrip(b"\r").split(b"\t") for line in LINE.finditer(head) if line[0][:1] != b"#")
        return any(len(row) > place and row[place] not in (b"_", b"") for row in islice(rows, LOOK))

    def place(self, column: Column) -> int:
        """The index of a column; ColumnFileError if there is none."""
        if isinstance(column, int):
            if -self.width <= column < self.width:
                return column % self.width
            raise ColumnFileError(f"{self.name}: no column of index {column}; there are {self.width}")
        if self.names is not None and column.lower() in self.names:
            return self.names.index(column.lower())
        if column.isdecimal() and 1 <= int(column) <= self.width:
            return int(column) - 1
        known = f"of the names {', '.join(self.names)}" if self.names is not None else "of a name: they have numbers"
        if self.may_lack and column in (self.reading.columns or ()):
            known += "; columns= (--columns) names those that stand for the ones of training"
        raise ColumnFileError(f"{self.name}: no column {column!r:.40}; there are {self.width}, {known}")

    def called(self, place: int) -> str:
        """A column in messages: its number from 1, and its name."""
        return str(place + 1) if self.names is None else f"{place + 1} ({self.names[place]})"

    def describe(self) -> str:
        """A sentence about columns that the file's form has chosen; empty where it has not."""
        if self.names is None or self.reading.label is not None:
            return ""
        if self.table is not None:
            return self._describe_table(self.names)
        words = ", ".join(self.names[j] for j in (self.places[:-1] if self.has_label else self.places))
        label = f"; its column {self.names[self.places[-1]]} is the label (--label names another)" * self.has_label
        return f"{self.name}: CoNLL-U, read by its column {words}{label}"

    def _describe_table(self, names: list[str]) -> str:
        label = [f"{names[self.places[-1]]} is the label"] * self.has_label
        sequence = [] if self.sequence is None else [f"{names[self.sequence]} names the sequence"]
        words = ", ".join(names[j] for j in (self.places[:-1] if self.has_label else self.places))
        return "; ".join([f"{self.name}: a table, read by its columns {words}", *label, *sequence])

    def settled(self) -> Reading:
        """The reading with the names of a table's columns, to read other tables by; that of other files as it is."""
        if self.table is None:
            return self.reading
        names = self.table.names
        words = self.places[:-1] if self.has_label else self.places
        used = {self.sequence, *self.places}
        return replace(
            self.reading,
            columns=tuple(names[j] for j in words),
            label=names[self.places[-1]] if self.has_label else None,
            sequence=None if self.sequence is None else names[self.sequence],
            left_out=tuple(name for j, name in enumerate(names) if name and j not in used),
        )

    def follow(self, data: bytes, line: int) -> None:
        """Remember the value above a part whose first line has this number, for empty names of sequences.

        Of a file that is read in parts, each in its order, and before it is parsed.
        """
        if self.table is None or self.sequence is None:
            return
        try:
            sequences = table_rows(data.decode("utf-8"), self.table, self.name, line)
        except (UnicodeDecodeError, ColumnFileError):
            return  # `parse` names its place
        values = [row[self.sequence] for rows in sequences for row in rows]
        if self._last and values and not values[0]:
            self.above[line] = self._last
        self._last = next((value for value in reversed(values) if value), self._last)

    def has_tokens(self, data: bytes) -> bool:
        """Whether a part of the file has tokens."""
        if self.table is not None:
            return any(line[0].strip(b" \t\r,;") and line[0] != self.table.header for line in LINE.finditer(data))
        if self.names is None:
            return width(without_asides(data, self.width)) > 0
        return any(not found[0].startswith(b"#") for found in LINE.finditer(data) if width(found[0]))

    def parse(self, data: bytes, line: int = 1, *, is_text: bool = False) -> Parsed:
        """The columns that are meant, of a part of the file whose first line has this number.

        Raises
        ------
        ColumnFileError
            For lines that are none of the form (names file and line).
        """
        try:
            if self.names is not None:
                offsets, ids, strings = self._named(data, line)
            else:
                offsets, ids, strings = self._plain(without_asides(data, self.width), line)
        except BadUTF8Error as error:
            what = "lone surrogates" if is_text else not_utf8(data)
            raise ColumnFileError(f"{self.name}:{line - 1 + error.args[0]}: {what}") from None
        if not len(ids):
            return offsets, ids[:, :0], []
        offsets = self._ends(offsets, ids, strings)
        run = slice(self.places[0], self.places[-1] + 1)
        is_run = self.places == list(range(self.width))[run]
        return offsets, ids[:, run] if is_run else ids[:, self.places], [strings[j] for j in self.places]

    def _plain(self, data: bytes, line: int) -> Parsed:
        """All columns of a part without names: between blanks; between tabs, if only they are as many in each line."""
        bare = BARE_RETURN.search(data) if b"\r" in data else None
        if bare is not None:
            self._plain(data[: data.rfind(b"\n", 0, bare.start()) + 1], line)  # an error before it comes first
            line += data.count(b"\n", 0, bare.start())
            raise ColumnFileError(f"{self.name}:{line}: a carriage return within a line; lines end in LF or CRLF")
        if self.is_tabbed:
            return by_tabs(data, self.width, f"{self.name}:{{}}", line)
        try:
            return parse_columns(data, self.width)
        except RaggedLineError as error:
            ragged, wanted, n = error.args
            wrong = ColumnFileError(f"{self.name}:{line - 1 + ragged}: expected {wanted} columns, found {n}")
        if self.width == 1:
            raise wrong
        try:  # the first values with a blank, or the first empty ones
            return by_tabs(data, self.width, f"{self.name}:{{}}", line)
        except ColumnFileError:
            raise wrong from None

    def _named(self, data: bytes, line: int) -> Parsed:
        """All columns of a part of a CoNLL-U file, or of a table."""
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as wrong:
            raise BadUTF8Error(data.count(b"\n", 0, wrong.start) + 1) from None
        if self.table is None:
            sequences = conllu_rows(text, self.name, self.names or (), line)
        else:
            sequences = self._rows(self.table, text, line)
        ids, interners = intern_rows([row for rows in sequences for row in rows])
        return np.cumsum([0, *map(len, sequences)], dtype=np.int64), ids, interners

    def _rows(self, table: Table, text: str, line: int) -> list[list[list[str]]]:
        """The sequences of a table; ColumnFileError for a word that is missing, and in training for a label."""
        sequences = table_rows(text, table, self.name, line)
        if self.sequence is not None:
            sequences = filled(sequences, self.sequence, self.name, self.above.get(line, ""))
        check_words(sequences, self.places[0], table.names[self.places[0]], self.name)
        wanted = self.places[:-1] if self.may_lack and self.has_label else self.places
        for s, rows in enumerate(sequences):
            for t, row in enumerate(rows):
                empty = next((j for j in wanted if not row[j]), None)
                if empty is not None:
                    place = line_of(text, table, sum(map(len, sequences[:s])) + t, line)
                    raise ColumnFileError(f"{self.name}:{place}: the column {self.called(empty)} is empty")
        return sequences

    def _ends(self, offsets: NDArray[np.int64], ids: NDArray[np.int32], strings: list[Any]) -> NDArray[np.int64]:
        """The offsets, with more where another sequence is named, and after tokens that end one."""
        cuts = [offsets]
        if self.sequence is not None:
            named = ids[:, self.sequence]
            cuts.append(np.flatnonzero(named[1:] != named[:-1]) + 1)
        if self.ends:
            j = self.places[0]
            ending = strings[j].lookup(sorted(self.ends))
            cuts.append(np.flatnonzero(np.isin(ids[:, j], ending[ending >= 0])) + 1)
        return offsets if len(cuts) == 1 else np.unique(np.concatenate(cuts)).astype(np.int64)


def _named_columns(reading: Reading) -> list[str]:
    """Columns that are given by names."""
    given = [*(reading.columns or ()), reading.label, reading.sequence]
    return [column for column in given if isinstance(column, str) and not column.isdecimal()]


def names_of(head: bytes, row: bytes, name: str) -> list[str] | None:
    """Names of the columns of CoNLL-U and CoNLL-U Plus, None for other files."""
    plus = plus_names(head[: head.find(b"\n") + 1 or len(head)].decode("utf-8", "replace"))
    if plus is not None:
        return plus
    is_named = re.search(r"\.conllu(\.\w+)?\Z", name) is not None and row.count(b"\t") > 1
    return list(NAMES) if is_named or CONLLU_ROW.fullmatch(row.rstrip(b"\r")) else None


def check_no_treebank(row: bytes, name: str) -> None:
    """Raise ColumnFileError for a word of CoNLL-U between blanks, or of CoNLL-2009: its last column is no label."""
    fields = row.split()
    heads = fields[6:7] if len(fields) == CONLLU_WIDTH else fields[8:10] if len(fields) >= CONLL_2009_WIDTH else []
    if fields[:1] != [b"1"] or not heads or not all(HEAD.fullmatch(head) for head in heads):
        return
    tag = 4 if len(fields) == CONLLU_WIDTH else 5
    what = "CoNLL-U whose columns stand between blanks" if tag == 4 else "CoNLL-2009"
    raise ColumnFileError(
        f'{name}: looks like {what}: columns=["2"], label="{tag}" of read_columns (--columns 2 --label {tag}) are its '
        "words and tags"
    )


def check_no_brackets(row: bytes, head: bytes, name: str) -> None:
    """Raise ColumnFileError for a tree in brackets, or the line on which one begins: its last word is no label."""
    if BRACKETS.match(row) and _is_tree(row, head):
        raise ColumnFileError(f"{name}:1: begins a tree in brackets, and no columns: trees are for train grammar")


def _is_tree(row: bytes, head: bytes) -> bool:
    """Whether the brackets of the first line close in it, or the lines below go on as a tree does."""
    if row.count(b"(") == row.count(b")"):
        return LEAF.search(row) is not None
    lines = head.split(b"\n")
    below = (line.strip() for line in lines[lines.index(row) + 1 :])
    line = next((line for line in below if not OPENINGS.fullmatch(line)), b"")
    return line.startswith(b"(") and LEAF.search(line) is not None


def check_no_header(row: bytes, name: str) -> None:
    """Raise ColumnFileError for a first line that names columns: it would be a token, and its label one more."""
    fields = row.decode("utf-8", "replace").lower().split()
    if len(fields) > 1 and WORD_NAMES.intersection(fields[:-1]) and fields[-1] in LABEL_NAMES:
        raise ColumnFileError(
            f"{name}:1: its first line, {row.decode('utf-8', 'replace')!r:.60}, names columns, as column files do not: "
            "leave it out, or write a table with commas, semicolons or tabs between values"
        )


def check_no_json(row: bytes, head: bytes, name: str) -> None:
    """Raise ColumnFileError for a first line that is JSON, or begins it; a first word of JSON is a word."""
    if _is_json(row) or (JSON_OPENING.fullmatch(row) and _goes_on(row, head)):
        raise ColumnFileError(
            f"{name}:1: is JSON, and no file of columns: in Python, SequenceLabeler.fit takes lists of words and of "
            "labels, and structsvm.datasets.write_columns makes a column file of them"
        )


def _is_json(row: bytes) -> bool:
    """Whether a line is an object or a list of JSON, or begins a list of them."""
    row = row.strip()
    if JSON_OBJECT.match(row) and row.endswith(JSON_ENDS):
        return True
    return any(map(_parses, (row, row.removesuffix(b","), row[1:].removesuffix(b",") if row[:1] == b"[" else b"")))


def _parses(text: bytes) -> bool:
    """Whether a text is an object or a list of JSON with a text in it: "[1]" is a word."""
    try:
        return b'"' in text and isinstance(json.loads(text), (dict, list))
    except (ValueError, RecursionError):
        return False


def _goes_on(row: bytes, head: bytes) -> bool:
    """Whether the first line below an opening bracket that is no bracket goes on as JSON does."""
    lines = head.split(b"\n")
    below = (line.strip() for line in lines[lines.index(row) + 1 :])
    line = next((line for line in below if line and not JSON_OPENING.fullmatch(line)), b"")
    return JSON_INNER.fullmatch(line) is not None or _is_json(line)


def first_row(data: bytes) -> bytes:
    """The first line of a token; of lines that may be comments, the first that need not be one."""
    doubtful = b""
    for found in LINE.finditer(data):
        line = found[0]
        if not width(line):
            continue
        if not ASIDE.match(line):
            return line
        if not doubtful and not NO_TOKENS.match(line):
            doubtful = line
    return doubtful


def without_asides(data: bytes, n_columns: int) -> bytes:
    """Data in which comments and document marks are blank lines.

    A line that begins with ``#`` and a blank, at the start of a sequence, is a comment unless it has as many columns as
    tokens have, and tabs if they do; ``# id`` and ``# key = value`` are comments anywhere.
    """
    if not data.startswith(b"#") and b"\n#" not in data and b"-DOCSTART-" not in data:
        return data
    parts, done, has_tabs = list[bytes](), 0, b"\t" in first_row(data)
    for found in ASIDE.finditer(data):
        start = found.start()
        before = data[data.rfind(b"\n", 0, max(start - 1, 0)) + 1 : start]
        begins = not width(before) or start == done + 1
        is_other = width(found[0]) != n_columns or (has_tabs and b"\t" not in found[0])
        if NO_TOKENS.match(found[0]) or (begins and is_other):
            parts.append(data[done:start])
            done = found.end()
    return b"".join([*parts, data[done:]])


def _is_ragged(data: bytes, n_columns: int) -> bool:
    """Whether lines have other numbers of columns between blanks."""
    try:
        parse_columns(without_asides(data, n_columns), n_columns)
    except RaggedLineError:
        return True
    except BadUTF8Error:
        return False
    return False


def by_tabs(data: bytes, n_columns: int, place: str, first: int) -> Parsed:
    """Columns between single tabs, whose values may hold blanks or be empty.

    `place` makes of a line's number the beginning of messages; `first` is the number of the first line.
    """
    ends, rows = [0], list[tuple[str, ...]]()
    for k, line in enumerate(data.split(b"\n"), start=first):
        if width(line):
            fields = line.rstrip(b"\r").split(b"\t")
            if len(fields) != n_columns:
                found = f"expected {n_columns} columns between tabs, found {len(fields)}"
                raise ColumnFileError(f"{place.format(k)}: {found}")
            try:
                rows.append(tuple(field.decode("utf-8").strip() for field in fields))
            except UnicodeDecodeError:
                raise BadUTF8Error(k - first + 1) from None
        elif len(rows) > ends[-1]:
            ends.append(len(rows))
    if len(rows) > ends[-1]:
        ends.append(len(rows))
    return np.array(ends, dtype=np.int64), *intern_rows(rows)
