"""CoNLL column files and CRF++ templates.

A column file holds one token a line, as columns between spaces or tabs; blank lines end
a sequence. :func:`read_columns` reads one into a :class:`Columns`: one int32 id per token
and column, and one vocabulary per column. Everything later works on the ids.

A template file, as CRF++ has it, says which columns of which neighbours make up a
feature. Beside CRF++'s ``%x[row,column]`` there are functions of the string in that place,
``%lower[0,0]`` say (:data:`FUNCTIONS`). They are computed once per *distinct* string.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from structsvm._features import BadUTF8Error, Interner, RaggedLineError, parse_columns

__all__ = [
    "BUILT_IN_TEMPLATES",
    "FUNCTIONS",
    "ColumnFileError",
    "Columns",
    "Item",
    "Template",
    "TemplateError",
    "Vocabulary",
    "built_in_templates",
    "parse_templates",
    "read_columns",
    "read_templates",
]

MAX_ROW = 100
MAX_TEMPLATES = 1024


class ColumnFileError(ValueError):
    """A column file that cannot be used; the message names file and line."""


class TemplateError(ValueError):
    """A template that cannot be used; the message names file and line."""


# ------------------------------------------------------------------------ columns


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """The different strings of one column, as UTF-8.

    String i is ``data[starts[i]:starts[i + 1]]``.

    Attributes
    ----------
    data : uint8 array
    starts : int64 array of shape (n_strings + 1,)
    """

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def tolist(self) -> list[str]:
        """All strings, in the order of their ids."""
        blob = self.data.tobytes()
        ends = self.starts.tolist()
        return [blob[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(ends)]

    @classmethod
    def from_strings(cls, strings: Iterable[str]) -> Vocabulary:
        """From different strings, in the order of their ids."""
        coded = [s.encode("utf-8", "surrogatepass") for s in strings]
        starts = np.zeros(len(coded) + 1, dtype=np.int64)
        np.cumsum([len(s) for s in coded], out=starts[1:])
        return cls(np.frombuffer(b"".join(coded), dtype=np.uint8), starts)

    def take(self, ids: NDArray[Any]) -> Vocabulary:
        """The vocabulary of the strings `ids`, in that order."""
        blob = self.data.tobytes()
        starts = self.starts
        parts = [blob[starts[i] : starts[i + 1]] for i in ids]
        new = np.zeros(len(parts) + 1, dtype=np.int64)
        np.cumsum([len(s) for s in parts], out=new[1:])
        return Vocabulary(np.frombuffer(b"".join(parts), dtype=np.uint8), new)


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Sequences of tokens, a token a row of strings given by their ids.

    Attributes
    ----------
    offsets : int64 array of shape (n_sequences + 1,)
        Sequence s is rows ``offsets[s]:offsets[s + 1]``.
    ids : int32 array of shape (n_tokens, n_columns)
    vocabularies : tuple of Vocabulary
        One a column.
    name : str
        Where they come from, for messages.
    """

    offsets: NDArray[np.int64]
    ids: NDArray[np.int32]
    vocabularies: tuple[Vocabulary, ...]
    name: str = "<columns>"

    def __post_init__(self) -> None:
        if self.ids.ndim != 2 or self.ids.shape[1] != len(self.vocabularies):
            raise ValueError("ids must have one column for each vocabulary")
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

    def column(self, j: int) -> list[list[str]]:
        """Column j (negative: from the right) as one list of strings per sequence."""
        words = self.vocabularies[j].tolist()
        flat = [words[i] for i in self.ids[:, j].tolist()]
        ends = self.offsets.tolist()
        return [flat[a:b] for a, b in pairwise(ends)]

    def select(self, columns: Sequence[int]) -> Columns:
        """Some of the columns; nothing is copied for a run of them."""
        chosen = [range(self.n_columns)[j] for j in columns]
        step = slice(chosen[0], chosen[-1] + 1) if chosen else slice(0, 0)
        is_run = chosen == list(range(self.n_columns))[step]
        ids = self.ids[:, step] if is_run else self.ids[:, chosen]
        return Columns(self.offsets, ids, tuple(self.vocabularies[j] for j in chosen), self.name)

    def drop_last(self) -> Columns:
        """All columns but the last one, which by convention is the label."""
        return self.select(range(self.n_columns - 1))

    def __getitem__(self, sequences: slice) -> Columns:
        """Some sequences, ``columns[10:20]``; a slice of step 1 copies nothing."""
        if not isinstance(sequences, slice):
            raise TypeError("columns are sliced by sequences, columns[i:j]; see take()")
        i, j, step = sequences.indices(len(self))
        if step != 1:
            return self.take(np.arange(i, j, step))
        j = max(i, j)
        a, b = self.offsets[i], self.offsets[j]
        offsets = self.offsets[i : j + 1] - a
        return Columns(offsets, self.ids[a:b], self.vocabularies, self.name)

    def take(self, sequences: Any) -> Columns:
        """The sequences of an array of indices, in its order."""
        offsets, rows = take_ranges(self.offsets, sequences)
        return Columns(offsets, self.ids[rows], self.vocabularies, self.name)

    def compact(self) -> Columns:
        """The same sequences, with vocabularies of the strings that occur in them.

        A slice of a large file shares the vocabularies of the file. Columns of fewer
        tokens than strings are made anew; others are returned as they are.
        """
        if self.n_tokens >= max([0, *map(len, self.vocabularies)]):
            return self
        ids = np.empty(self.ids.shape, dtype=np.int32)
        vocabularies = []
        for j, vocabulary in enumerate(self.vocabularies):
            used, places = np.unique(self.ids[:, j], return_inverse=True)
            if len(used) and not 0 <= used[0] <= used[-1] < len(vocabulary):
                raise ValueError(f"{self.name}: column {j} has an id outside its vocabulary")
            ids[:, j] = places
            vocabularies.append(vocabulary.take(used))
        return Columns(self.offsets, ids, tuple(vocabularies), self.name)

    @classmethod
    def from_sequences(
        cls, sequences: Iterable[Iterable[Sequence[str]]], name: str = "<columns>"
    ) -> Columns:
        """From sequences of rows of strings, ``[[("The", "DT"), ("dog", "NN")], ...]``.

        Raises
        ------
        ColumnFileError
            For an empty sequence, or rows of different lengths (names both).
        """
        rows: list[Sequence[str]] = []
        ends = [0]
        for s, sequence in enumerate(sequences):
            for t, row in enumerate(sequence):
                if isinstance(row, str) or not all(isinstance(x, str) for x in row):
                    raise TypeError(f"{name}: sequence {s}, token {t} must be a row of strings")
                if rows and len(row) != len(rows[0]):
                    raise ColumnFileError(
                        f"{name}: sequence {s}, token {t}: expected {len(rows[0])} columns, "
                        f"found {len(row)}"
                    )
                rows.append(row)
            if len(rows) == ends[-1]:
                raise ColumnFileError(f"{name}: sequence {s} is empty")
            ends.append(len(rows))
        n_columns = len(rows[0]) if rows else 0
        ids = np.empty((len(rows), n_columns), dtype=np.int32)
        vocabularies = []
        for j in range(n_columns):
            interner = Interner()
            ids[:, j] = interner.intern([row[j] for row in rows])
            vocabularies.append(Vocabulary(*interner.to_arrays()))
        return cls(np.array(ends, dtype=np.int64), ids, tuple(vocabularies), name)


def take_ranges(
    offsets: NDArray[np.int64], chosen: Any
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Offsets of the chosen ranges, set one after the other, and the rows they hold."""
    index = np.asarray(chosen)
    if index.size == 0:
        index = np.zeros(0, dtype=np.int64)
    elif index.dtype == bool:
        if index.shape != (len(offsets) - 1,):
            raise IndexError(f"a mask of {index.size} entries for {len(offsets) - 1} sequences")
        index = np.flatnonzero(index)
    index = np.arange(len(offsets) - 1)[index.astype(np.int64, casting="same_kind")]
    lengths = np.diff(offsets)[index]
    new = np.zeros(len(index) + 1, dtype=np.int64)
    np.cumsum(lengths, out=new[1:])
    rows = np.arange(new[-1]) + np.repeat(offsets[:-1][index] - new[:-1], lengths)
    return new, rows


def read_columns(
    source: str | os.PathLike[str] | BinaryIO | Iterable[str], encoding: str = "utf-8"
) -> Columns:
    """Read a column file.

    Parameters
    ----------
    source : path, binary file or lines of text
        A path is read as it is when it is compressed with gzip, xz or bzip2; so is a
        binary file. Lines may be a text file, or any iterable of str.
    encoding : str
        Of the bytes. A byte order mark is skipped.

    Returns
    -------
    Columns

    Raises
    ------
    ColumnFileError
        Ragged lines, bytes that are not of the encoding, damaged compression, no tokens.
    OSError
        The file cannot be opened.
    """
    data, name, lines = _load(source)
    if encoding.lower().replace("_", "-") not in ("utf-8", "utf8", "utf-8-sig"):
        try:
            data = data.decode(encoding).encode("utf-8")
        except UnicodeError as error:
            start = getattr(error, "start", 0)
            line = data.count(b"\n", 0, start) + 1
            raise ColumnFileError(f"{name}:{line}: bytes that are not {encoding}") from None
    if data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
    try:
        offsets, ids, interners = parse_columns(data)
    except RaggedLineError as error:
        line, wanted, found = error.args
        raise ColumnFileError(f"{name}:{line}: expected {wanted} columns, found {found}") from None
    except BadUTF8Error as error:
        what = "lone surrogates" if lines else "bytes that are not UTF-8"
        raise ColumnFileError(f"{name}:{error.args[0]}: {what}") from None
    if len(ids) == 0:
        what = "only blank lines" if data else "the file is empty"
        raise ColumnFileError(f"{name}: no tokens ({what})")
    vocabularies = tuple(Vocabulary(*interner.to_arrays()) for interner in interners)
    return Columns(offsets, ids, vocabularies, name)


def _load(source: Any) -> tuple[bytes, str, bool]:
    """Bytes of a source, its name, and whether it was text."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        raise TypeError("source must be a path, a file or lines; wrap bytes into io.BytesIO")
    if isinstance(source, (str, os.PathLike)):
        name = os.fspath(source)
        return _decompress(Path(source).read_bytes(), name), name, False
    name = str(getattr(source, "name", "<lines>"))
    if hasattr(source, "read"):
        content = source.read()
        if isinstance(content, bytes):
            return _decompress(content, name), name, False
        return content.encode("utf-8", "surrogatepass"), name, True
    lines = []
    for k, line in enumerate(source):
        if not isinstance(line, str):
            raise TypeError(f"line {k + 1} must be a str, got {type(line).__name__}")
        lines.append(line if line.endswith("\n") else line + "\n")
    return "".join(lines).encode("utf-8", "surrogatepass"), name, True


# Kind by suffix, and by the first bytes (which no text in UTF-8 has, or hardly).
_COMPRESSION = {
    "gzip": (".gz", re.compile(rb"\x1f\x8b")),
    "xz": (".xz", re.compile(rb"\xfd7zXZ\x00")),
    "bzip2": (".bz2", re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)")),
}


def _decompress(data: bytes, name: str) -> bytes:
    for kind, (suffix, magic) in _COMPRESSION.items():
        if not (name.lower().endswith(suffix) or magic.match(data)):
            continue
        try:
            if kind == "gzip":
                import gzip

                return gzip.decompress(data)
            if kind == "xz":
                import lzma

                return lzma.decompress(data)
            import bz2

            return bz2.decompress(data)
        except (ImportError, MemoryError):
            raise
        except Exception as error:  # EOFError, OSError, zlib.error, LZMAError, ValueError
            raise ColumnFileError(f"{name}: damaged {kind} data ({error})") from error
    return data


# ---------------------------------------------------------------------- templates


@dataclass(frozen=True, slots=True)
class Item:
    """One ``%function[row,column]``; function "x" is the string itself."""

    function: str
    row: int
    column: int


@dataclass(frozen=True, slots=True)
class Template:
    """One unigram template: ``literals[0] item[0] literals[1] item[1] ... literals[-1]``."""

    literals: tuple[str, ...]
    items: tuple[Item, ...]
    line: int = 0

    @property
    def space(self) -> tuple[Any, ...]:
        """What the feature's name depends on. Templates of one space share features."""
        return self.literals, tuple((item.function, item.column) for item in self.items)

    def __str__(self) -> str:
        parts = [self.literals[0]]
        for item, literal in zip(self.items, self.literals[1:], strict=True):
            parts.append(f"%{item.function}[{item.row},{item.column}]{literal}")
        return "".join(parts)


_ITEM = re.compile(r"%([a-z]+[0-9]*)\[(-?[0-9]{1,9}),([0-9]{1,9})\]")


def parse_templates(text: str, name: str = "templates") -> tuple[list[Template], bool]:
    """Parse the text of a CRF++ template file.

    Parameters
    ----------
    text : str
        Lines ``U00:%x[-2,0]``, ``U05:%x[-1,0]/%x[0,0]``, or ``B`` alone; ``#`` starts a
        comment line. As in CRF++, templates with the same text around the same columns
        share their features, so that ``U:%x[-1,0]`` and ``U:%x[1,0]`` make a bag of words.
    name : str
        For messages.

    Returns
    -------
    templates : list of Template
    bigram : bool
        Whether there is a line ``B``: a weight for each pair of neighbouring labels.

    Raises
    ------
    TemplateError
        Names file and line.
    """
    templates: list[Template] = []
    bigram = False
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip()
        where = f"{name}:{number}"
        if not line or line.startswith("#"):
            continue
        if line.startswith("B"):
            if line != "B":
                raise TemplateError(
                    f"{where}: {line!r}: of the bigram templates only 'B' alone is supported"
                )
            bigram = True
            continue
        if not line.startswith("U"):
            raise TemplateError(f"{where}: {line!r}: a template starts with 'U' or is 'B'")
        templates.append(_parse_unigram(line, number, where))
    if len(templates) > MAX_TEMPLATES:
        raise TemplateError(f"{name}: more than {MAX_TEMPLATES} templates")
    return templates, bigram


def _parse_unigram(line: str, number: int, where: str) -> Template:
    literals: list[str] = []
    items: list[Item] = []
    end = 0
    for match in _ITEM.finditer(line):
        literals.append(line[end : match.start()])
        end = match.end()
        item = Item(match[1], int(match[2]), int(match[3]))
        if item.function != "x" and item.function not in FUNCTIONS:
            known = ", ".join(["x", *FUNCTIONS])
            raise TemplateError(
                f"{where}: {line!r}: no function {item.function!r} (there are {known})"
            )
        if abs(item.row) > MAX_ROW:
            raise TemplateError(f"{where}: {line!r}: row {item.row} is not within +-{MAX_ROW}")
        items.append(item)
    literals.append(line[end:])
    if any("%" in literal for literal in literals):
        raise TemplateError(f"{where}: {line!r}: wanted %x[row,column] after '%'")
    return Template(tuple(literals), tuple(items), number)


def read_templates(path: str | os.PathLike[str]) -> tuple[list[Template], bool]:
    """Read a template file, see :func:`parse_templates`."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise TemplateError(f"{os.fspath(path)}: bytes that are not UTF-8 ({error})") from None
    return parse_templates(text, os.fspath(path))


# CRF++'s chunking example: word and tag windows with bigrams, and tag trigrams.
_WORDS = """
U00:%x[-2,0]
U01:%x[-1,0]
U02:%x[0,0]
U03:%x[1,0]
U04:%x[2,0]
U05:%x[-1,0]/%x[0,0]
U06:%x[0,0]/%x[1,0]
"""
_TAGS = """
U10:%x[-2,1]
U11:%x[-1,1]
U12:%x[0,1]
U13:%x[1,1]
U14:%x[2,1]
U15:%x[-2,1]/%x[-1,1]
U16:%x[-1,1]/%x[0,1]
U17:%x[0,1]/%x[1,1]
U18:%x[1,1]/%x[2,1]
U20:%x[-2,1]/%x[-1,1]/%x[0,1]
U21:%x[-1,1]/%x[0,1]/%x[1,1]
U22:%x[0,1]/%x[1,1]/%x[2,1]
"""
# What a word looks like: at most 16 features, as a function that finds nothing gives none.
_SPELLING = """
U30:%lower[0,0]
U31:%prefix1[0,0]
U32:%prefix2[0,0]
U33:%prefix3[0,0]
U34:%prefix4[0,0]
U35:%suffix1[0,0]
U36:%suffix2[0,0]
U37:%suffix3[0,0]
U38:%suffix4[0,0]
U39:%shape[0,0]
U40:%shape[-1,0]
U41:%shape[1,0]
U42:%shape[-1,0]/%shape[0,0]
U43:%digit[0,0]
U44:%capital[0,0]
U45:%hyphen[0,0]
"""
BUILT_IN_TEMPLATES = ("rich", "crf++", "attributes")


def built_in_templates(name: str, n_columns: int) -> str:
    """The text of a built-in template set for data with `n_columns` columns.

    ``"rich"``
        Words in a window of +-2 with bigrams, the spelling of the current word and shapes
        of its neighbours; if there is a second column, tags in a window of +-2 with
        bigrams and trigrams; of further columns a window of +-1.
    ``"crf++"``
        CRF++'s chunking example, for a word and a tag column (words alone: the word part).
    ``"attributes"``
        Every column of the current token.
    """
    if name == "attributes":
        return "\n".join(f"U{j:02d}:%x[0,{j}]" for j in range(n_columns)) + "\nB\n"
    if name not in BUILT_IN_TEMPLATES:
        raise TemplateError(f"no templates {name!r} (there are {', '.join(BUILT_IN_TEMPLATES)})")
    text = _WORDS + (_TAGS if n_columns > 1 else "")
    if name == "rich":
        text += _SPELLING
        for j in range(2, n_columns):
            text += "".join(f"U5{row + 1}c{j}:%x[{row},{j}]\n" for row in (-1, 0, 1))
    return text + "B\n"


# ----------------------------------------------------- functions of a string
# Each maps the strings of a vocabulary to strings, or to None for "no feature".

Function = Callable[[list[str]], list["str | None"]]


def _prefix(k: int) -> Function:
    return lambda words: [w[:k] if len(w) >= k else None for w in words]


def _suffix(k: int) -> Function:
    return lambda words: [w[-k:] if len(w) >= k else None for w in words]


class _ShapeTable(dict[int, str]):
    """str.translate table: X upper case, x other letters, d digits, the rest as it is."""

    def __missing__(self, code: int) -> str:
        c = chr(code)
        if c.isdigit():
            kind = "d"
        elif c.isalpha():
            kind = "X" if c.isupper() or c.istitle() else "x"
        else:
            kind = c
        self[code] = kind
        return kind


_RUN = re.compile(r"(.)\1+", re.DOTALL)


def _shape(words: list[str]) -> list[str | None]:
    table = _ShapeTable()
    short: dict[str, str] = {}  # many words have one long shape
    shapes: list[str | None] = []
    for word in words:
        long = word.translate(table)
        shape = short.get(long)
        if shape is None:
            shape = short[long] = _RUN.sub(r"\1", long)
        shapes.append(shape)
    return shapes


def _digit(words: list[str]) -> list[str | None]:
    some = re.compile(r"\d").search
    return ["all" if w.isdigit() else "some" if some(w) else None for w in words]


def _capital(words: list[str]) -> list[str | None]:
    kinds: list[str | None] = []
    for w in words:
        if w == w.lower():
            kinds.append(None)
        elif w.isupper() and len(w) > 1:
            kinds.append("all")
        else:
            kinds.append("first" if w[0].isupper() else "inside")
    return kinds


FUNCTIONS: dict[str, Function] = {
    "lower": lambda words: [w.lower() for w in words],
    "shape": _shape,
    **{f"prefix{k}": _prefix(k) for k in (1, 2, 3, 4, 5, 6)},
    **{f"suffix{k}": _suffix(k) for k in (1, 2, 3, 4, 5, 6)},
    "digit": _digit,
    "capital": _capital,
    "hyphen": lambda words: ["some" if "-" in w else None for w in words],
}
