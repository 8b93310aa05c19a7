"""Texts to label: lines, a column of a table, column files (CoNLL) or JSON lines."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from pathlib import Path
from typing import ParamSpec, TypeVar

from structsvm.annotate.answers import OUTSIDE, Answer, EachWord, answer_of, checked_span_label, scheme_of_tags
from structsvm.annotate.foreign import own_form
from structsvm.features.columns import read_columns
from structsvm.features.sources import load_bytes
from structsvm.features.tables.csv_rows import rows_of
from structsvm.features.text.encodings import Encoded, NotTextError, not_utf8
from structsvm.features.text.words import word_spans
from structsvm.files.strict_json import parse_json
from structsvm.metrics._schemes import Scheme
from structsvm.serve.values import HALVES, Object

TASKS = ("sequence", "taxonomy", "pairs")
ENDINGS = {
    "csv": (".csv", ".tsv"),
    "jsonl": (".jsonl", ".ndjson", ".json", ".json1"),
    "conll": (".conll", ".conllu", ".bio", ".iob", ".iob2", ".col"),
}
FORMATS = ("text", *ENDINGS)
# Files of other programs that no format here reads, and no line of which is a text.
FOREIGN = {
    ".ann": "brat's annotations, whose texts are in the .txt beside it",
    ".xmi": "UIMA's XMI, as INCEpTION exports",
    ".xml": "XML",
    ".spacy": "spaCy's documents",
    ".parquet": "a Parquet table",
    ".zip": "an archive: unpack it",
}
WEBANNO = "#FORMAT=WebAnno"
ARRAY = re.compile(r"\s*\[\s*[{\]]")
# A number of a word in its sentence, of a range of words, or of a word that is left out, as CoNLL-U counts.
COUNT = re.compile(r"[0-9]+([-.][0-9]+)?")
# A word with its tag, as in spaCy's files of a sentence per line.
SPACY_WORD = re.compile(r"\S+\|([BI]-.+|O)")
P = ParamSpec("P")
Read = TypeVar("Read")
# Texts longer than this are refused: no page shows them.
MAX_CHARACTERS = 1_000_000


@dataclass(frozen=True)
class Item:
    """One text to label.

    Attributes
    ----------
    text : str
    other : str or None
        The second text of a pair.
    given : tuple of str, optional
        Words that the file has already; None: they are read off the text.
    known : Answer or None
        The answer that the file has, to be confirmed.
    """

    text: str
    other: str | None = None
    given: tuple[str, ...] | None = None
    known: Answer | None = field(default=None, compare=False)

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Where the words begin and end in the text."""
        if self.given is None:
            return word_spans(self.text)
        spans, place = [], 0
        for word in self.given:
            start = self.text.index(word, place)
            place = start + len(word)
            spans.append((start, place))
        return spans

    @property
    def words(self) -> list[str]:
        """The words of the text."""
        return [self.text[start:stop] for start, stop in self.spans]

    @property
    def digest(self) -> str:
        """A short hash of what is labelled."""
        content = json.dumps([self.text, self.other, self.given], ensure_ascii=False)
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True)
class Inputs:
    """The texts of a file.

    Attributes
    ----------
    path : str
    items : list of Item
    lines : list of int
        The line of the file on which each begins, from 1.
    labels : list of str
        The labels that the file has, sorted.
    stamp : tuple of int
        Size and time of change of the file when it was read.
    """

    path: str
    items: Sequence[Item]
    lines: Sequence[int]
    labels: Sequence[str]
    stamp: tuple[int, int]

    @property
    def has_changed(self) -> bool:
        """Whether the file is no longer as it was read, or gone."""
        try:
            return stamp_of(self.path) != self.stamp
        except OSError:
            return True


def stamp_of(path: str) -> tuple[int, int]:
    """Size and time of change of a file."""
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns


def read_inputs(
    path: str,
    task: str = "sequence",
    *,
    format: str | None = None,  # noqa: A002 (the option's name)
    columns: Sequence[str] = (),
    encoding: str | None = None,
) -> Inputs:
    """Read the texts of a file; blank lines are left out.

    Parameters
    ----------
    path : str
    task : {"sequence", "taxonomy", "pairs"}
    format : {"text", "csv", "jsonl", "conll"}, optional
        None: by the end of the file's name, else "text": a text per line, or two with a tab between.
    columns : sequence of str
        Of a table: the column of the texts, for pairs both; names of the first row, or numbers from 1.
    encoding : str, optional
        None: UTF-8, or what a byte-order mark says.

    Raises
    ------
    ValueError
        For a file without texts, or with a line that cannot be read; the message names file and line.
    """
    if format is None:
        ending = Path(path).suffix.lower()
        if ending in FOREIGN:
            raise ValueError(f"{path} is not read: {FOREIGN[ending]}. Give it as JSON lines, CoNLL or plain text")
        format = next((kind for kind, endings in ENDINGS.items() if ending in endings), "text")  # noqa: A001
    if columns and format != "csv":
        raise ValueError(f"--column is for tables, and {path} is read as {format}")
    if format == "conll" and task != "sequence":
        raise ValueError(f"{path}: a column file has words with labels, which is the task sequence, not {task}")
    stamp = stamp_of(path)
    if format == "conll":
        found = list(_column_items(path, encoding))
    else:
        text = _text_of(path, encoding)
        readers: dict[str, Callable[[], Iterator[tuple[int, Item]]]] = {
            "csv": lambda: _table_items(text, path, task, columns),
            "jsonl": lambda: _json_items(text, path, task),
            "text": lambda: _line_items(text, path, task),
        }
        found = list(readers[format]())
    if not found:
        raise ValueError(f"{path}: has no text to label")
    for line, item in found:
        if half := HALVES.search(f"{item.text} {item.other or ''}"):
            raise ValueError(f"{path}:{line}: half a character of UTF-16, {half[0]!r}, which no page can show")
        if len(item.text) + len(item.other or "") > MAX_CHARACTERS:
            raise ValueError(f"{path}:{line}: a text of more than {MAX_CHARACTERS} characters; split it")
    labels = sorted({label for _, item in found if item.known is not None for label in item.known.labels})
    return Inputs(path, [item for _, item in found], [line for line, _ in found], labels, stamp)


def _text_of(path: str, encoding: str | None) -> str:
    data, name, _ = load_bytes(path if encoding is None else Encoded(path, encoding))
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise NotTextError(f"{name}:{line}: {not_utf8(data)}") from None


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines that are not blank, with their numbers; they may end as on any system."""
    for number, line in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1):
        if line.strip():
            yield number, line


def _line_items(text: str, path: str, task: str) -> Iterator[tuple[int, Item]]:
    for number, line in _lines(text):
        if task != "pairs":
            yield number, Item(line.strip())
            continue
        parts = [part.strip() for part in line.split("\t")]
        if len(parts) != 2:
            raise ValueError(f"{path}:{number}: a pair is two texts with one tab between, found {len(parts)} parts")
        if not all(parts):
            raise ValueError(f"{path}:{number}: a pair is two texts, and one of them is blank")
        yield number, Item(parts[0], parts[1])


def _rows(text: str, path: str) -> Iterator[tuple[int, list[str]]]:
    """The rows of a table, with the line on which each begins."""
    begins = 1
    try:
        for values, last in rows_of(text, "\t" if path.lower().endswith(".tsv") else ",", strict=True):
            yield begins, values
            begins = last + 1
    except csv.Error as error:
        raise ValueError(f"{path}:{begins}: {error}") from None


def _table_items(text: str, path: str, task: str, columns: Sequence[str]) -> Iterator[tuple[int, Item]]:
    if text.startswith(WEBANNO):
        raise ValueError(f"{path}: WebAnno's TSV, as INCEpTION exports, is no table: export CoNLL 2002")
    rows = _rows(text, path)
    first = next(rows, (1, list[str]()))
    head, wanted = first[1], 2 if task == "pairs" else 1
    if len(columns) != wanted:
        raise ValueError(
            f"--column names {'two columns' if wanted == 2 else 'one column'} of {path}: {', '.join(head)}"
        )
    places = [_place_of(name, head, path) for name in columns]
    if any(name.isdigit() and name not in head for name in columns):
        rows = chain([first], rows)
    for number, row in rows:
        if not any(row):
            continue
        if len(row) <= max(places):
            raise ValueError(f"{path}:{number}: {len(row)} columns, and column {max(places) + 1} is the text")
        cells = [row[k] for k in places]
        if all(cells):
            yield number, Item(cells[0], cells[1] if task == "pairs" else None)


def _place_of(name: str, head: Sequence[str], path: str) -> int:
    """The index of a column, by its name in the first row, or its number from 1 in a table without one."""
    if head.count(name) > 1:
        raise ValueError(f"--column {name}: {path} has {head.count(name)} columns of this name")
    if name in head:
        return head.index(name)
    if name.isdigit() and 1 <= int(name) <= len(head):
        return int(name) - 1
    raise ValueError(f"--column {name}: {path} has the columns {', '.join(head):.300}")


def _json_items(text: str, path: str, task: str) -> Iterator[tuple[int, Item]]:
    values: list[tuple[int, object]] = []
    if ARRAY.match(text):
        raise ValueError(f"{path}: a JSON array, as Label Studio exports; an object per line is read: jq -c '.[]' FILE")
    for number, line in _lines(text):
        try:
            values.append((number, parse_json(line.encode("utf-8"))))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path}:{number}: no JSON: {error}") from None
    found = [(number, _at(path, number, _own_line, value, task)) for number, value in values]
    tags = (value.get("labels") for _, value in found)
    scheme = scheme_of_tags(tag for own in tags if isinstance(own, list) for tag in own if isinstance(tag, str))
    for number, own_line in found:
        yield number, _at(path, number, _json_item, own_line, task, scheme)


def _at(path: str, number: int, read: Callable[P, Read], *args: P.args, **kwargs: P.kwargs) -> Read:
    """The value of a function of a line, whose errors name the place."""
    try:
        return read(*args, **kwargs)
    except ValueError as error:
        raise ValueError(f"{path}:{number}: {error}") from None


def _own_line(value: object, task: str) -> Object:
    if isinstance(value, str):
        return {"text": value}
    if not isinstance(value, Mapping):
        raise ValueError("a line is an object with a text")
    return own_form(value, task)


def _json_item(value: Object, task: str, scheme: Scheme) -> Item:
    """The item of a JSON object with ``text`` (and ``other``) or ``words``, and ``label``, ``spans`` or ``labels``."""
    given = value.get("words")
    if given is not None:
        if not (isinstance(given, list) and given and all(isinstance(word, str) and word.split() for word in given)):
            raise ValueError("words must be a list of texts that are not blank")
        item = Item(" ".join(given), given=tuple(given))
    else:
        item = Item(_stripped(value, "text"), _stripped(value, "other") if task == "pairs" else None)
    return Item(item.text, item.other, item.given, _known(value, item, task, scheme))


def _stripped(value: Object, name: str) -> str:
    text = value.get(name)
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"{name} must be a text that is not blank")
    return text.strip()


def _known(value: Object, item: Item, task: str, scheme: Scheme) -> Answer | None:
    """The answer that the file has for an item, if any."""
    if task != "sequence":
        is_there = value.get("label") is not None or value.get("wrong")
        return answer_of(value, 0, is_sequence=False) if is_there else None
    labels, words = value.get("labels"), item.words
    if labels is not None:
        if not isinstance(labels, list) or len(labels) != len(words) or not all(isinstance(t, str) for t in labels):
            raise ValueError(f"labels must be a list of {len(words)} texts, one per word")
        return Answer(_chunks(scheme, labels))
    spans, wrong, text = value.get("spans"), value.get("wrong"), value.get("text")
    if spans is None:
        return None
    has_characters = any(isinstance(span, Mapping) for own in (spans, wrong) if isinstance(own, list) for span in own)
    places = _places_in(text, words) if isinstance(text, str) and has_characters else item.spans
    found = {"spans": _spans_in_words(spans, places), "wrong": _spans_in_words(wrong, places)}
    return answer_of({**value, **found}, len(words), is_sequence=True)


def _chunks(scheme: Scheme, tags: Sequence[str]) -> tuple[tuple[int, int, str], ...]:
    """The spans that tags tell. Raises ValueError for a label that no span can have, and names the word."""
    found = []
    for start, stop, kind in scheme.chunks(tags):
        try:
            found.append((start, stop, checked_span_label(kind)))
        except ValueError as error:
            raise ValueError(f"word {start + 1} has the tag {tags[start]!r:.80}: {error}") from None
    return tuple(found)


def _places_in(text: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """Where words begin and end in a text, which may have blanks around them. Raises ValueError for other words."""
    places, end = [], 0
    for word in words:
        start = text.find(word, end)
        if start < 0 or text[end:start].strip():
            raise ValueError(f"words: {word!r:.80} is not what stands next in text, at character {end}")
        end = start + len(word)
        places.append((start, end))
    if text[end:].strip():
        raise ValueError(f"words: they end before {text[end:].strip()!r:.80} in text")
    return places


def _spans_in_words(spans: object, words: Sequence[tuple[int, int]]) -> object:
    """Spans of characters as spans of words, which are given by their places; others as they are."""
    if not (isinstance(spans, list) and all(isinstance(span, Mapping) for span in spans)):
        return spans
    starts, stops = ({place: k for k, place in enumerate(places)} for places in zip(*words, strict=True))
    return [_in_words(span, starts, stops) for span in spans]


def _in_words(span: Mapping[str, object], starts: Mapping[int, int], stops: Mapping[int, int]) -> list[object]:
    """A span of characters, ``{"start", "end", "label"}``, as one of words. Raises ValueError if it cuts a word."""
    start, end = span.get("start"), span.get("end")
    if type(start) is not int or type(end) is not int or start not in starts or end not in stops:
        raise ValueError(f"spans: characters {start!r:.20} to {end!r:.20} are not where words begin and end")
    return [starts[start], stops[end] + 1, span.get("label")]


def _column_items(path: str, encoding: str | None) -> Iterator[tuple[int, Item]]:
    if any(all(map(SPACY_WORD.fullmatch, line.split())) for _, line in _lines(_text_of(path, encoding))):
        raise ValueError(f"{path}: words with | and a tag, as in spaCy's .iob, are not read: give a word per line")
    columns = read_columns(path, encoding)
    words = columns.column(0)
    if _are_counts(words):
        raise ValueError(f"{path}: the first column counts words; leave it out, or name a CoNLL-U file .conllu")
    tags = None if columns.n_columns == 1 else columns.column(columns.n_columns - 1)
    is_tagged = path.lower().endswith(".conllu")
    open_words = [is_tagged and "_" in own for own in tags or ()]  # CoNLL-U leaves them open
    if is_tagged and tags is not None:
        tags = [[OUTSIDE if tag == "_" else tag for tag in own] for own in tags]
    scheme = EachWord() if is_tagged else None if tags is None else scheme_of_tags(tag for own in tags for tag in own)
    line = 1
    for k, own in enumerate(words):
        known = None
        if scheme is not None and tags is not None and any(tag != OUTSIDE for tag in tags[k]):
            try:
                known = Answer(_chunks(scheme, tags[k]), complete=not open_words[k])
            except ValueError as error:
                place = columns.place_of(k, 0) or f"{path}, sequence {k + 1}"
                raise ValueError(f"{place}: {error}") from None
        yield line, Item(" ".join(own), given=tuple(own), known=known)
        line += len(own) + 1


def _are_counts(words: Sequence[Sequence[str]]) -> bool:
    """Whether words are numbers that rise within each sentence, and some has several."""
    if not all(COUNT.fullmatch(word) for own in words for word in own):
        return False
    counts = [[int(word) for word in own if word.isdigit()] for own in words]
    return any(len(own) > 1 for own in counts) and all(a < b for own in counts for a, b in pairwise(own))
