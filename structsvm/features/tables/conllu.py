"""Named columns of CoNLL-U and CoNLL-U Plus files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from structsvm.features.sources import ColumnFileError, load_text, name_of, no_tokens

NAMES = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
_GLOBAL = "# global.columns ="
_WORD, _OTHER = re.compile(r"[1-9][0-9]*"), re.compile(r"[0-9]+[-.][0-9]+")


def plus_names(line: str) -> list[str] | None:
    """Names of columns that the first line of a CoNLL-U Plus file gives; None for another line."""
    return line.removeprefix(_GLOBAL).lower().split() if line.startswith(_GLOBAL) else None


def conllu_columns(source: Any, columns: Sequence[str]) -> tuple[list[list[tuple[str, ...]]], str]:
    """The sequences of these columns, and the name of the source; see `Columns.from_conllu`."""
    if isinstance(columns, str):
        raise TypeError(f"columns must be a list of names, got {columns!r}")
    text, name = load_text(source, ColumnFileError)
    names = plus_names(text.partition("\n")[0]) or NAMES
    unknown = [column for column in columns if column.lower() not in names]
    if unknown:
        raise ColumnFileError(f"{name}: no column {unknown[0]!r}; there are {', '.join(names)}")
    places = [names.index(column.lower()) for column in columns]
    sequences = [[tuple(row[j] for j in places) for row in rows] for rows in conllu_rows(text, name, names)]
    if not sequences:
        raise no_tokens(name_of(source), is_blank=bool(text))
    return sequences, name


def conllu_rows(text: str, name: str, names: Sequence[str], first: int = 1) -> list[list[list[str]]]:
    """The words of each sentence, all their columns; `first` is the number of the text's first line.

    Comments, multiword ranges and empty nodes are left out.
    """
    id_place = names.index("id") if "id" in names else None
    sequences: list[list[list[str]]] = [[]]
    for k, line in enumerate(text.split("\n"), start=first):
        line = line.rstrip("\r")
        if not line.strip():
            if sequences[-1]:
                sequences.append([])
            continue
        if line.startswith("#") and not sequences[-1]:
            continue
        fields = line.split("\t")
        if len(fields) != len(names):
            raise ColumnFileError(f"{name}:{k}: expected {len(names)} columns between tabs, found {len(fields)}")
        if id_place is not None and not _WORD.fullmatch(fields[id_place]):
            if _OTHER.fullmatch(fields[id_place]):  # a multiword token, an empty node
                continue
            raise ColumnFileError(f"{name}:{k}: {fields[id_place]!r:.40} is not the number of a word")
        if id_place is not None and fields[id_place] == "1" and sequences[-1]:
            last = sequences[-1][-1][id_place]
            raise ColumnFileError(f"{name}:{k}: word 1 after word {last}: a blank line is missing before it")
        sequences[-1].append(fields)
    if not sequences[-1]:
        sequences.pop()
    return sequences
