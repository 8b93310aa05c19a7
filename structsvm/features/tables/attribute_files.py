r"""Files of attributes, the text that CRFsuite reads: a token per line, its label, then its attributes between tabs.

``B-NP<TAB>w=the<TAB>length:3``: after a colon stands an attribute's value, without one it is 1. Names have ``\:`` for
a colon and ``\\`` for a backslash. Blank lines end a sequence.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice, pairwise
from typing import Any, TypeAlias

from structsvm.features.attributes import AttributeVocabulary
from structsvm.features.inputs.places import PlacedList
from structsvm.features.sources import (
    ColumnFileError,
    DamagedFileError,
    load_text,
    name_of,
    no_tokens,
    stream_bytes,
    unfolds_to_more,
)
from structsvm.features.text.encodings import NotTextError, not_utf8, without_marks
from structsvm.files.new_file import new_file

__all__ = ["is_of_attributes", "read_attributes", "stream_attributes", "write_attributes"]

_FIELD = re.compile(r"((?:[^\\:]|\\.)*)(?::(.*))?", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_EQUAL = re.compile(r"(?:[^\\:=]|\\.)+=")
_KEY = re.compile(r"(?:[^\\:=]|\\[^:])+(?:=|\\:)|(?=[^:]*[^\W\d_])(?:[^\s\\:=]|\\[^:])+:(?=[-+]?\.?\d)")
LOOK = 1000  # lines that tell whether a file is of attributes

Token: TypeAlias = list[str] | dict[str, float]
Pairs: TypeAlias = list[tuple[str, float]]


def read_attributes(source: Any) -> tuple[PlacedList, list[list[str]]]:
    r"""Read a file of attributes.

    Parameters
    ----------
    source : path, file or lines of text
        May be compressed with gzip, xz or bzip2.

    Returns
    -------
    X : list of sequences
        Tokens are lists of attributes; where a value of the file is not 1, dicts of attributes and values.
    y : list of list of str
        Labels.

    Raises
    ------
    ColumnFileError
        For a line that is none of the format; names file and line.

    Examples
    --------
    >>> import io
    >>> from structsvm.features.tables.attribute_files import read_attributes
    >>> read_attributes(io.StringIO("D\tw=the\tthe\\:D\nN\tw=dog\n"))
    ([[['w=the', 'the:D'], ['w=dog']]], [['D', 'N']])
    """
    text, name = load_text(source, ColumnFileError)
    tokens: list[dict[str, float] | list[str]] = []
    labels, ends, places, has_values = list[str](), [0], list[str](), False
    for number, line in enumerate(text.split("\n"), 1):
        where = f"{name}:{number}"
        found = _token(line, where)
        if found is None:
            ends += [len(labels)] if len(labels) > ends[-1] else []
            continue
        if len(labels) == ends[-1]:
            places.append(where)
        label, pairs = found
        labels.append(label)
        has_values |= any(value != 1.0 for _, value in pairs)
        tokens.append(_added_up(pairs) if has_values else [attribute for attribute, _ in pairs])
    ends += [len(labels)] if len(labels) > ends[-1] else []
    if not labels:
        raise no_tokens(name, is_blank=bool(text))
    if not any(tokens):
        raise _no_attributes(name)
    if has_values:
        tokens = [token if isinstance(token, dict) else _added_up([(of, 1.0) for of in token]) for token in tokens]
    X = PlacedList([tokens[a:b] for a, b in pairwise(ends)], places)
    return X, [labels[a:b] for a, b in pairwise(ends)]


def stream_attributes(source: Any) -> Iterator[list[Token]]:
    r"""Yield the tokens of each sequence of a file of attributes as soon as it ends; labels are left out.

    Parameters
    ----------
    source : path or binary file
        May be compressed. Of a pipe what it has is read; but nothing is yielded before a token with attributes.

    Raises
    ------
    ColumnFileError
        As `read_attributes`.

    Examples
    --------
    >>> import io
    >>> from structsvm.features.tables.attribute_files import stream_attributes
    >>> list(stream_attributes(io.BytesIO(b"D\tw=the\n\nN\tw=dog\tlength:3\n")))
    [[['w=the']], [{'w=dog': 1.0, 'length': 3.0}]]
    """
    name, number, held, is_told, pairs = name_of(source), 0, list[list[Token]](), False, list[Pairs]()
    for number, line in enumerate(chain(_lines_of(source, name), [""]), 1):
        found = _token(line, f"{name}:{number}")
        if found is not None:
            pairs.append(found[1])
            is_told |= bool(found[1])
        elif pairs:
            held.append(_tokens(pairs))
            pairs = []
            if is_told:
                yield from held
                held = []
    if held:
        raise _no_attributes(name)
    if not is_told:
        raise no_tokens(name, is_blank=number > 1)


def _tokens(pairs: list[Pairs]) -> list[Token]:
    """Tokens of a sequence: lists of attributes; dicts if a value is not 1."""
    if any(value != 1.0 for token in pairs for _, value in token):
        return [_added_up(token) for token in pairs]
    return [[attribute for attribute, _ in token] for token in pairs]


def _lines_of(source: Any, name: str) -> Iterator[str]:
    """The lines of a path or binary file as they come."""
    held, number = b"", 0
    try:
        for block, most in stream_bytes(source):
            *lines, held = (held + block).split(b"\n")
            if len(held) > most:
                raise DamagedFileError(unfolds_to_more(f"{name}: a line unfolds", most))
            for line in lines:
                number += 1
                yield _text(line, name, number)
    except NotTextError as error:
        raise ColumnFileError(str(error)) from error
    if held:
        yield _text(held, name, number + 1)


def _text(line: bytes, name: str, number: int) -> str:
    try:
        return without_marks(line).decode()
    except UnicodeDecodeError:
        raise ColumnFileError(f"{name}:{number}: {not_utf8(line)}") from None


def _no_attributes(name: str) -> ColumnFileError:
    return ColumnFileError(f"{name}: no line has attributes: wanted a label, then attributes, between tabs")


def _token(line: str, where: str) -> tuple[str, Pairs] | None:
    """The label of a line, and its attributes with their values; None for a line of blanks."""
    fields = line.rstrip("\r").split("\t")
    if not any(fields):
        return None
    return _label(fields[0], where), [_attribute(field, where) for field in fields[1:] if field]


def _added_up(pairs: Pairs) -> dict[str, float]:
    total: dict[str, float] = {}
    for name, value in pairs:
        total[name] = total.get(name, 0.0) + value
    return total


def _label(field: str, where: str) -> str:
    if field.startswith("@weight"):
        raise ColumnFileError(f"{where}: {field!r:.40}: weights of sequences are not read; give sample_weight to fit")
    name, value = _parted(field)
    if value is not None or not name:
        raise ColumnFileError(f"{where}: wanted a label first, got {field!r:.40}; a colon in a label is written '\\:'")
    return name


def _attribute(field: str, where: str) -> tuple[str, float]:
    name, value = _parted(field)
    if not value:
        return name, 1.0
    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    if not abs(number) < float("inf"):
        raise ColumnFileError(
            f"{where}: wanted a finite number behind the colon of {field!r:.40}; a colon in a name is written '\\:'"
        )
    return name, number


def _parted(field: str) -> tuple[str, str | None]:
    """Name and value of a field; a backslash at its end is one."""
    if ":" not in field and "\\" not in field:
        return field, None
    match = _FIELD.fullmatch(field)
    if match is None:
        return field, None
    return _ESCAPED.sub(r"\1", match[1]), match[2]


def write_attributes(path: str | os.PathLike[str], X: Sequence[Any], y: Sequence[Sequence[str]]) -> None:
    r"""Write sequences as a file of attributes, which ``crfsuite learn`` and `read_attributes` read.

    Parameters
    ----------
    path : str or path
    X : list of sequences
        Tokens are lists of attributes or dicts of features, which are taken apart as in training.
    y : list of list of str

    Raises
    ------
    ValueError
        For a name with a tab or a line break, and lengths that do not match.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from structsvm.features.tables.attribute_files import write_attributes
    >>> path = Path(tempfile.mkdtemp()) / "train.txt"
    >>> write_attributes(path, [[{"w": "the", "length": 3}, {"w": "a"}]], [["D", "D"]])
    >>> path.read_text()
    'D\tw\\:the\tlength:3.0\nD\tw\\:a\n\n'
    """
    vocabulary, tokens, _ = AttributeVocabulary.fit(X, 1)
    names = [_escaped(name, "X: attribute") for name in vocabulary.names]
    if len(y) != len(tokens) or any(len(labels) != n for labels, n in zip(y, tokens.lengths.tolist())):
        raise ValueError("X and y must have as many sequences, and these as many tokens")
    values = None if tokens.values is None else tokens.values
    flat = [_escaped(str(label), "y: label") for labels in y for label in labels]
    ends = set(tokens.offsets[1:].tolist())
    with new_file(path, "w", encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        for t, (label, (a, b)) in enumerate(zip(flat, pairwise(tokens.indptr.tolist()), strict=True), 1):
            fields = [names[j] for j in tokens.indices[a:b].tolist()]
            if values is not None:
                fields = [f if v == 1.0 else f"{f}:{v}" for f, v in zip(fields, values[a:b], strict=True)]
            file.write("\t".join([label, *fields]) + "\n" + "\n" * (t in ends))


def _escaped(name: str, what: str) -> str:
    if not name or re.search(r"[\t\r\n]", name):
        raise ValueError(f"{what} {name!r:.40} is empty or has a tab or a line break, which the format cannot hold")
    return name.replace("\\", "\\\\").replace(":", "\\:")


def is_of_attributes(text: str) -> bool:
    r"""Whether a file is told to be of attributes by its first lines.

    Its lines have tabs, in different numbers, and most fields but the first are ``key=value``, ``key\:value`` or
    ``key:number``; or in equal numbers of two and more, and all fields but the first have the same keys in all lines.
    Columns have neither. Keys before numbers have a letter and no space; as hosts and references have the form, too,
    they tell nothing where no field has a key of the other kinds.

    Examples
    --------
    >>> from structsvm.features.tables.attribute_files import is_of_attributes
    >>> is_of_attributes("D\tw=the\tfirst\nN\tw=cat\n"), is_of_attributes("the\tDT\tD\ncat\tNN\tN\n")
    (True, False)
    """
    lines = (line.rstrip("\r").split("\t") for line in text.split("\n") if line.strip())
    rows = list(islice(lines, LOOK))
    if not rows or min(map(len, rows)) < 2 or any(_EQUAL.match(row[0]) for row in rows):
        return False
    keys = [[match and match[0] for match in map(_KEY.match, row[1:])] for row in rows]
    found = [key for some in keys for key in some if key]
    if not any(key.endswith(("=", "\\:")) for key in found):
        return False
    if len({len(row) for row in rows}) > 1:
        return 2 * len(found) > sum(map(len, keys))
    return len(keys[0]) > 1 and None not in keys[0] and all(some == keys[0] for some in keys)
