"""Feature templates: which strings of which neighbours form a feature.

Template files have CRF++'s format, or Wapiti's (`structsvm.features.functions.patterns`). In addition to CRF++'s
``%x[row,column]`` there are functions of the string at that position, such as ``%lower[0,0]``, and of its place in the
sequence, such as ``%start[0,0]`` (:mod:`structsvm.features.functions`). The latter are columns of their own, behind
those of the data. All functions of strings, and Wapiti's commands, are computed once per *distinct* string.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

import numpy as np

from structsvm.features._templates import TemplateReader, TemplateTable
from structsvm.features.columns import Columns, Vocabulary
from structsvm.features.functions.patterns import (
    Pattern,
    PatternError,
    parse_wapiti,
    read_wapiti_patterns,
    wapiti_boundary,
    wapiti_lines,
)
from structsvm.features.functions.places import PLACES, Placed
from structsvm.features.functions.strings import FUNCTIONS, KIND, Function

__all__ = ["Item", "Template", "TemplateError", "built_in_templates", "parse_templates", "read_templates"]

MAX_ROW = 100
MAX_TEMPLATES = 1024


class TemplateError(ValueError):
    """A template that cannot be used; the message names file and line.

    Examples
    --------
    >>> from structsvm.features.templates import parse_templates
    >>> parse_templates("U00:%x[0]")
    Traceback (most recent call last):
        ...
    structsvm.features.templates.TemplateError: templates:1: 'U00:%x[0]': wanted %x[row,column] after '%'
    """


@dataclass(frozen=True, slots=True)
class Item:
    """One ``%function[row,column]``; function "x" is the string itself, ``t,"^a"`` a command of Wapiti.

    Examples
    --------
    >>> from structsvm.features.templates import parse_templates
    >>> parse_templates("U00:%x[-1,0]")[0][0].items
    (Item(function='x', row=-1, column=0),)
    """

    function: str
    row: int
    column: int


@dataclass(frozen=True, slots=True)
class Template:
    """One template, literals and items in turn.

    ``literals[0] item[0] literals[1] item[1] ... literals[-1]``

    Examples
    --------
    >>> from structsvm.features.templates import parse_templates
    >>> parse_templates("U05:%x[-1,0]/%x[0,0]")[0][0].literals
    ('U05:', '/', '')
    """

    literals: tuple[str, ...]
    items: tuple[Item, ...]
    line: int = 0

    @property
    def is_bigram(self) -> bool:
        """Whether its features are conjoined with the labels of the token before and of this one."""
        return self.literals[0][:1] in ("B", "b", "*")

    @property
    def is_unigram(self) -> bool:
        """Whether its features are conjoined with the label of the token; Wapiti's ``*`` does both."""
        return self.literals[0][:1] not in ("B", "b")

    @property
    def space(self) -> tuple[Any, ...]:
        """The parts that the feature's name depends on. Templates of one space share features."""
        return self.literals, tuple((item.function, item.column) for item in self.items)

    def __str__(self) -> str:
        parts = [self.literals[0]]
        for item, literal in zip(self.items, self.literals[1:], strict=True):
            function, comma, regex = item.function.partition(",")
            parts.append(f"%{function}[{item.row},{item.column}{comma}{regex}]{literal}")
        return "".join(parts)


# Not in CRF++'s templates.
_OF_WAPITI = re.compile(r"[ub*]|.*%(?:[XtTmM]\[|x\[\s*@)")


def is_of_wapiti(text: str) -> bool:
    """Whether templates are Wapiti's patterns: lines of ``u``, ``b``, ``*``, or with ``%X``, ``%t``, ``%m``, ``@``."""
    return any(_OF_WAPITI.match(line) for _, line in wapiti_lines(text))


_ITEM = re.compile(r"%([a-z]+[0-9]*)\[(-?[0-9]{1,9}),([0-9]{1,9})\]")


def parse_templates(text: str, name: str = "templates") -> tuple[list[Template], bool]:
    r"""Parse the text of a CRF++ template file, or of a pattern file of Wapiti.

    Parameters
    ----------
    text : str
        Lines of Wapiti (`is_of_wapiti`), which form its observations, or of CRF++: ``U00:%x[-2,0]``,
        ``U05:%x[-1,0]/%x[0,0]``, ``B01:%x[0,0]``, or ``B`` alone; ``#`` starts a comment line. As in CRF++,
        templates with the same text around the same columns share their features: ``U:%x[-1,0]`` and
        ``U:%x[1,0]`` form a bag of words.
    name : str
        For messages.

    Returns
    -------
    templates : list of Template
        Templates of features: a ``B`` without ``%x`` is not among them.
    bigram : bool
        Whether a line begins with ``B``: pairs of neighbouring labels have weights.

    Raises
    ------
    TemplateError
        For an invalid line; names file and line.

    Examples
    --------
    >>> from structsvm.features.templates import parse_templates
    >>> templates, bigram = parse_templates("U00:%x[-1,0]\nU01:%x[0,0]\nB")
    >>> len(templates), bigram
    (2, True)
    """
    if is_of_wapiti(text):
        return _parse_patterns(text, name)
    templates: list[Template] = []
    bigram = False
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip()
        where = f"{name}:{number}"
        if not line or line.startswith("#"):
            continue
        if not line.startswith(("U", "B")):
            raise TemplateError(f"{where}: {line!r}: a template starts with 'U' or 'B'")
        template = _parse_template(line, number, where)
        bigram |= template.is_bigram
        if template.items or not template.is_bigram:
            templates.append(template)
    if len(templates) > MAX_TEMPLATES:
        raise TemplateError(f"{name}: more than {MAX_TEMPLATES} templates")
    return templates, bigram


def _parse_patterns(text: str, name: str) -> tuple[list[Template], bool]:
    """As `parse_templates`, of Wapiti."""
    found: list[Template] = []
    try:
        found = [_of_pattern(parse_wapiti(line, f"{name}:{k}"), k, f"{name}:{k}") for k, line in wapiti_lines(text)]
    except PatternError as error:
        raise TemplateError(str(error)) from None
    templates = [template for template in found if template.items or template.is_unigram]
    if len(templates) > MAX_TEMPLATES:
        raise TemplateError(f"{name}: more than {MAX_TEMPLATES} patterns")
    return templates, any(template.is_bigram for template in found)


def _of_pattern(pattern: Pattern, number: int, where: str) -> Template:
    for command in pattern.commands:
        if command.absolute:
            raise TemplateError(f"{where}: {pattern.source!r}: offsets with '@' are for models of Wapiti, not to train")
        if abs(command.offset) > MAX_ROW:
            raise TemplateError(f"{where}: {pattern.source!r}: offset {command.offset} is not within +-{MAX_ROW}")
    literals = tuple(literal.decode("utf-8", "surrogateescape") for literal in pattern.literals)
    items = tuple(Item(command.name, command.offset, command.column) for command in pattern.commands)
    return Template(literals, items, number)


def _parse_template(line: str, number: int, where: str) -> Template:
    literals: list[str] = []
    items: list[Item] = []
    end = 0
    for match in _ITEM.finditer(line):
        literals.append(line[end : match.start()])
        end = match.end()
        item = Item(match[1], int(match[2]), int(match[3]))
        if item.function != "x" and item.function not in (FUNCTIONS | PLACES):
            known = ", ".join(["x", *FUNCTIONS, *PLACES])
            raise TemplateError(f"{where}: {line!r}: no function {item.function!r} (there are {known})")
        if abs(item.row) > MAX_ROW:
            raise TemplateError(f"{where}: {line!r}: row {item.row} is not within +-{MAX_ROW}")
        items.append(item)
    literals.append(line[end:])
    if any(item.function == KIND for item in items) and (len(items) > 1 or not line.startswith("U")):
        raise TemplateError(f"{where}: {line!r}: %{KIND} stands alone in a template that begins with 'U'")
    if any("%" in literal for literal in literals):
        raise TemplateError(f"{where}: {line!r}: wanted %x[row,column] after '%'")
    return Template(tuple(literals), tuple(items), number)


def text_of(path: str | os.PathLike[str]) -> str:
    """The text of a file of templates."""
    with open(path, encoding="utf-8-sig") as file:
        return file.read()


def read_templates(path: str | os.PathLike[str]) -> tuple[list[Template], bool]:
    r"""Read a template file, see :func:`parse_templates`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from structsvm.features.templates import read_templates
    >>> path = Path(tempfile.mkdtemp()) / "template"
    >>> _ = path.write_text("U00:%x[0,0]\nB\n")
    >>> len(read_templates(path)[0])
    1
    """
    try:
        text = text_of(path)
    except UnicodeDecodeError as error:
        raise TemplateError(f"{os.fspath(path)}: bytes that are not UTF-8 ({error})") from None
    return parse_templates(text, os.fspath(path))


def is_template_text(templates: Any) -> bool:
    """Whether templates are a built-in name or text, not a path."""
    if not isinstance(templates, str):
        return False
    return templates in (*BUILT_IN_TEMPLATES, "B") or "\n" in templates or "%" in templates


def template_source(templates: Any) -> str | None:
    """A built-in name or the text of templates; a path is read."""
    if templates is None:
        return None
    if is_template_text(templates):
        if templates not in BUILT_IN_TEMPLATES:
            parse_templates(templates)
        return templates
    if isinstance(templates, str) and templates == "auto":
        known = ", ".join(BUILT_IN_TEMPLATES)
        raise TemplateError(
            f"templates='auto' is a choice by labels, which SequenceLabeler makes on sequences in memory: name a set "
            f"({known})"
        )
    if isinstance(templates, (str, os.PathLike)):
        if not os.path.exists(templates):
            known = ", ".join(BUILT_IN_TEMPLATES)
            raise TemplateError(
                f"templates {os.fspath(templates)!r} are neither built in ({known}), nor the "
                "text of templates, nor a file"
            )
        parsed, bigram = read_templates(templates)
        text = text_of(templates)
        if is_of_wapiti(text):
            return "".join(f"{pattern.source}\n" for pattern in read_wapiti_patterns(text))
        lines = [str(template) for template in parsed] + ["B"] * bigram
        return "\n".join(lines) + "\n"
    raise TypeError(f"templates must be a str, a path or None, got {type(templates).__name__}")


# ------------------------------------------------------------------ built-in sets

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
# The spelling of a word: at most 16 features, as a function may return no feature.
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
# A record: the word as a pattern, shape and marks in a window of +-2, the place in the record; then pairs of labels.
_RECORD = """
U:word=%x[0,0]
U:pattern[-2]=%pattern[-2,0]
U:pattern[-1]=%pattern[-1,0]
U:pattern=%pattern[0,0]
U:pattern[1]=%pattern[1,0]
U:pattern[2]=%pattern[2,0]
U:pattern[-1]/pattern=%pattern[-1,0]/%pattern[0,0]
U:pattern/pattern[1]=%pattern[0,0]/%pattern[1,0]
U:prefix1=%prefix1[0,0]
U:prefix2=%prefix2[0,0]
U:prefix3=%prefix3[0,0]
U:suffix1=%suffix1[0,0]
U:suffix2=%suffix2[0,0]
U:suffix3=%suffix3[0,0]
U:suffix4=%suffix4[0,0]
U:shape[-1]=%shape[-1,0]
U:shape=%shape[0,0]
U:shape[1]=%shape[1,0]
U:shape[-1]/shape/shape[1]=%shape[-1,0]/%shape[0,0]/%shape[1,0]
U:form=%form[0,0]
U:form[-1]/form=%form[-1,0]/%form[0,0]
U:form/form[1]=%form[0,0]/%form[1,0]
U:length=%length[0,0]
U:vowels=%vowels[0,0]
U:opening=%opening[0,0]
U:opening[1]=%opening[1,0]
U:closing[-1]=%closing[-1,0]
U:closing=%closing[0,0]
U:closing[1]=%closing[1,0]
U:closing[-1]/closing=%closing[-1,0]/%closing[0,0]
U:closing[-1]/pattern=%closing[-1,0]/%pattern[0,0]
U:closing/shape=%closing[0,0]/%shape[0,0]
U:end=%end[0,0]
U:start/shape=%start[0,0]/%shape[0,0]
U:end/shape=%end[0,0]/%shape[0,0]
U:start/pattern=%start[0,0]/%pattern[0,0]
U:end/pattern=%end[0,0]/%pattern[0,0]
U:tenth/shape=%tenth[0,0]/%shape[0,0]
U:numbers/shape=%numbers[0,0]/%shape[0,0]
U:fields/shape=%fields[0,0]/%shape[0,0]
U:before/behind=%before[0,0]/%behind[0,0]
U:again/shape=%again[0,0]/%shape[0,0]
"""
# Kinds of the word and its neighbours: words met once or twice tell what they are by their labels in training.
_RECORD_KINDS = "".join(f"U:kind[{row}]=%kind[{row},0]\n" for row in (-2, -1, 0, 1, 2))
_RECORD_PAIRS = """B:closing[-1]=%closing[-1,0]
B:closing=%closing[0,0]
B:shape[-1]=%shape[-1,0]
B:shape=%shape[0,0]
B:start=%start[0,0]
B:end=%end[0,0]
"""
BUILT_IN_TEMPLATES = ("rich", "crf++", "attributes", "records", "record-kinds", "record-tokens")


def built_in_templates(name: str, n_columns: int) -> str:
    """The text of a built-in template set for data with `n_columns` columns.

    ``"rich"``
        Words in a window of +-2 with bigrams, the spelling of the current word and shapes
        of its neighbours; if there is a second column, tags in a window of +-2 with
        bigrams and trigrams; of further columns a window of +-1.
    ``"crf++"``
        CRF++'s chunking example, for a word and a tag column (words alone: the word part).
    ``"records"``
        For short strings whose labels go by position, shape and marks, such as addresses, names, references: functions
        of the first column and of places (`structsvm.features.functions`), some with pairs of labels; further columns
        as in ``"rich"``.
    ``"record-kinds"``
        The same with the kinds of words around, which `SequenceLabeler` learns from labels
        (`structsvm.features.functions.kinds`).
    ``"record-tokens"``
        ``"records"`` without attributes of pairs of labels: for segments and shards.
    ``"attributes"``
        Every column of the current token.

    Examples
    --------
    >>> from structsvm.features.templates import built_in_templates
    >>> built_in_templates("attributes", 2).split()
    ['U00:%x[0,0]', 'U01:%x[0,1]', 'B']
    """
    if name == "attributes":
        return "\n".join(f"U{j:02d}:%x[0,{j}]" for j in range(n_columns)) + "\nB\n"
    if name not in BUILT_IN_TEMPLATES:
        raise TemplateError(f"no templates {name!r} (there are {', '.join(BUILT_IN_TEMPLATES)})")
    is_record = name.startswith("record")
    text = (_RECORD if is_record else _WORDS) + (_TAGS if n_columns > 1 else "")
    if name == "rich":
        text += _SPELLING
    if name != "crf++":
        for j in range(2, n_columns):
            text += "".join(f"U5{row + 1}c{j}:%x[{row},{j}]\n" for row in (-1, 0, 1))
    text += _RECORD_KINDS * (name == "record-kinds")
    return text + _RECORD_PAIRS * (name in ("records", "record-kinds")) + "B\n"


def split_kinds(text: str) -> tuple[str, str]:
    """The lines of templates that can be used without labels, and those that ask for kinds of words."""
    lines = [line for line in text.split("\n") if line.strip()]
    kinds = [line for line in lines if f"%{KIND}[" in line and not line.lstrip().startswith("#")]
    return "\n".join(line for line in lines if line not in kinds) + "\n" if kinds else text, "\n".join(kinds)


def function_of(name: str) -> Function:
    """The function of an item, if it is not "x": one of `FUNCTIONS`, or a command of Wapiti."""
    return FUNCTIONS[name] if name in FUNCTIONS else _command_of(name)


@lru_cache(maxsize=MAX_TEMPLATES)
def _command_of(name: str) -> Function:
    """A command of Wapiti, which sees the bytes of a string."""
    letter, comma, regex = name.partition(",")
    value = parse_wapiti(f"u%{letter}[0,0{comma}{regex}]").commands[0].value
    return lambda words: [
        value(word.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape") for word in words
    ]


# -------------------------------------------------------------------------- layout


@dataclass(frozen=True, slots=True)
class TemplateLayout:
    """Templates in the form that the tables need: the unigram ones, or with ``of_bigrams`` the others.

    ``sources`` are the (function, column) pairs that are read; a space is a list of
    sources, one per item of its templates; ``keys`` identify spaces. ``placed`` are the
    functions of places and their columns, of all templates of the text, so that unigrams and
    bigrams read the same columns: function k is a source as column n_columns + k.
    """

    text: str
    n_columns: int
    bigram: bool
    templates: list[Template]
    template_space: list[int]
    keys: list[tuple[Any, ...]]
    spaces: list[list[int]]
    sources: list[tuple[str, int]]
    left: int
    right: int
    of_bigrams: bool
    placed: list[tuple[str, int]]

    @classmethod
    def resolve(cls, templates: str | None, n_columns: int) -> TemplateLayout:
        if templates is None or templates in BUILT_IN_TEMPLATES:
            name = templates or "rich"
            return cls.build(built_in_templates(name, n_columns), name, n_columns)
        return cls.build(templates, "templates", n_columns)

    @classmethod
    def build(cls, text: str, name: str, n_columns: int, of_bigrams: bool = False) -> TemplateLayout:
        templates, bigram = parse_templates(text, name)
        wanted = ((item.function, item.column) for template in templates for item in template.items)
        placed = {source: k for k, source in enumerate(dict.fromkeys(one for one in wanted if one[0] in PLACES))}
        templates = [
            template
            for template in templates
            if (template.is_bigram and template.items if of_bigrams else template.is_unigram)
        ]
        keys: dict[tuple[Any, ...], int] = {}
        sources: dict[tuple[str, int], int] = {}
        spaces: list[list[int]] = []
        template_space = []
        for template in templates:
            its = []
            for item in template.items:
                if item.column >= n_columns:
                    raise TemplateError(
                        f"{name}:{template.line}: {str(template)!r}: column {item.column} of "
                        f"data with {n_columns} columns (counted from 0, without the label)"
                    )
                source = item.function, item.column
                if item.function in PLACES:
                    source = "x", n_columns + placed[source]
                its.append(sources.setdefault(source, len(sources)))
            if template.space not in keys:
                keys[template.space] = len(keys)
                spaces.append(its)
            template_space.append(keys[template.space])
        _check_names_of_kinds(templates, name)
        rows = [item.row for template in templates for item in template.items]
        return cls(
            text,
            n_columns,
            bigram,
            templates,
            template_space,
            list(keys),
            spaces,
            list(sources),
            max([0, *(-row for row in rows)]),
            max([0, *rows]),
            of_bigrams,
            list(placed),
        )

    def widened(self, X: Columns) -> Columns:
        """The columns that the templates read: those of X, and behind them what functions of places return.

        Columns that were widened already are returned unchanged.
        """
        if not self.placed or X.n_columns > self.n_columns:
            return X
        columns = {j for _, j in self.placed}
        for j in columns:
            if len(X.ids) and not 0 <= X.ids[:, j].min() <= X.ids[:, j].max() < len(X.vocabularies[j]):
                raise ValueError(f"{X.name}: column {j} has an id outside its vocabulary")
        of_column = {j: Placed(X.ids[:, j], X.offsets, X.vocabularies[j].tolist()) for j in columns}
        ids = np.empty((X.n_tokens, self.n_columns + len(self.placed)), dtype=np.int32)
        ids[:, : self.n_columns] = X.ids
        vocabularies = [*X.vocabularies]
        made: dict[int, Vocabulary] = {}
        for k, (function, j) in enumerate(self.placed, self.n_columns):
            ids[:, k], strings = PLACES[function](of_column[j])
            if isinstance(strings, tuple):
                vocabularies.append(vocabulary_of(strings))
                continue
            if id(strings) not in made:
                made[id(strings)] = Vocabulary.from_strings(strings)
            vocabularies.append(made[id(strings)])
        return Columns(X.offsets, ids, tuple(vocabularies), X.name)

    @property
    def has_kinds(self) -> bool:
        """Whether templates ask for kinds of words, which are learnt from labels."""
        return any(function == KIND for function, _ in self.sources)

    @property
    def spaces_of_kinds(self) -> list[int]:
        """The spaces of templates of kinds."""
        return [i for i, space in enumerate(self.spaces) if space and self.sources[space[0]][0] == KIND]

    def with_kinds(self, lines: str) -> TemplateLayout:
        """The layout with templates of kinds behind its own, each a space of its own; it may reach further."""
        return TemplateLayout.build(f"{self.text}\n{lines}", "templates", self.n_columns)

    def without_kinds(self) -> TemplateLayout:
        """The layout without templates of kinds; it reaches as far."""
        if not self.has_kinds:
            return self
        plain = TemplateLayout.build(split_kinds(self.text)[0], "templates", self.n_columns)
        return replace(plain, left=self.left, right=self.right)

    def for_bigrams(self, name: str) -> TemplateLayout | None:
        """The layout of the same text's bigram templates; None if it has none."""
        layout = TemplateLayout.build(self.text, name, self.n_columns, True)
        return layout if layout.templates else None

    @property
    def boundaries(self) -> list[str]:
        """Strings of the places outside a sequence: `left` before it, from the nearest on, and `right` after it."""
        if is_of_wapiti(self.text):
            places = [(-d - 1, 0) for d in range(self.left)] + [(d, 0) for d in range(self.right)]
            return [wapiti_boundary(at, n).decode() for at, n in places]
        return self.outside("_B-", "_B+")

    def outside(self, before: str, after: str) -> list[str]:
        """Such strings: `before` or `after` with the distance."""
        return [f"{before}{d + 1}" for d in range(self.left)] + [f"{after}{d + 1}" for d in range(self.right)]

    @property
    def strings_outside(self) -> list[list[str]] | None:
        """Strings that Wapiti's commands make of `boundaries`, per source. None: CRF++'s boundaries are no strings."""
        if not is_of_wapiti(self.text):
            return None
        names = self.boundaries
        return [names if function == "x" else _known(function_of(function)(names)) for function, _ in self.sources]

    def reader(
        self, tables: list[TemplateTable], seeds: Any = None, boundaries: Any = None, bits: int = 0
    ) -> TemplateReader:
        """The reader of features: from a table per space; or hashed, from the hashes of templates.

        `boundaries` are codes of the places outside a sequence, a row per source.
        """
        n, margin = len(self.templates), self.left + self.right
        if boundaries is None:
            boundaries = np.tile(np.arange(margin, dtype=np.int64), (len(self.sources), 1))
        starts = np.cumsum([0, *(len(template.items) for template in self.templates)], dtype=np.int32)
        items = [
            (source, item.row)
            for template, space in zip(self.templates, self.template_space, strict=True)
            for source, item in zip(self.spaces[space], template.items, strict=True)
        ]
        return TemplateReader(
            [tables[space] for space in self.template_space] if tables else [],
            np.zeros(n, dtype=np.uint64) if seeds is None else seeds,
            starts,
            np.array(items, dtype=np.int32).reshape(-1, 2),
            np.array(self.places, dtype=np.int32).reshape(-1, 2),
            np.ascontiguousarray(boundaries, dtype=np.int64).reshape(len(self.sources), margin),
            self.left,
            self.of_bigrams,
            bits,
        )

    @property
    def columns(self) -> list[int]:
        """The columns that are read, ascending."""
        return sorted({j for _, j in self.sources})

    @property
    def places(self) -> list[tuple[int, int]]:
        """The column of each source, and its place among the sources of this column."""
        met: Counter[int] = Counter()
        places = []
        for _, j in self.sources:
            places.append((j, met[j]))
            met[j] += 1
        return places


def _check_names_of_kinds(templates: list[Template], name: str) -> None:
    """Raise TemplateError, naming the line, for a template of kinds whose features have the names of other ones."""
    for template in templates:
        if any(item.function == KIND for item in template.items):
            for other in templates:
                if other is not template and other.literals == template.literals:
                    line = max(template.line, other.line)
                    raise TemplateError(
                        f"{name}:{line}: {str(other if other.line == line else template)!r}: a template of %{KIND} "
                        f"needs a text of its own, and line {min(template.line, other.line)} has the same one"
                    )


@cache
def vocabulary_of(strings: tuple[str, ...]) -> Vocabulary:
    """The strings of a function of places that are the same for all columns."""
    return Vocabulary.from_strings(strings)


def _known(strings: list[str | None]) -> list[str]:
    """The strings; Wapiti's commands always make one."""
    return [string for string in strings if string is not None]
