"""Labels that are paths: strings such as "A > B > C", and rows of levels, as HiClass has them."""

from __future__ import annotations

import os
from collections.abc import Collection
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm._warnings import AdviceWarning, warn
from structsvm.metrics._counts import AUTO, is_unknown
from structsvm.structures.taxonomy import PATH_SEPARATOR, Taxonomy, as_taxonomy, joined_levels, rows_of_levels
from structsvm.tasks.common.labels import listed
from structsvm.tasks.taxonomy.known import SETS

if TYPE_CHECKING:
    from structsvm.tasks.taxonomy.examples import KnownLabels

LISTING = "|;,"  # between the paths of a label that is several


def settled(
    taxonomy: object, y: Any, classes: Any = None, before: Taxonomy | None = None, unknown: object = AUTO
) -> tuple[Taxonomy | None, Any, Any]:
    """Return ``(taxonomy, y, classes)`` with labels that are names of nodes, and a `Taxonomy` or None.

    A taxonomy that is a separator, or None beside rows of levels, is that of the labels' own paths; `before`, if given,
    is the one that an earlier fit has made of them. `unknown` is the mark of labels that are none.
    """
    if not isinstance(taxonomy, str):
        rows = rows_of_levels(y)
        taxonomy = None if taxonomy is None else as_taxonomy(taxonomy)
        separator = PATH_SEPARATOR if taxonomy is None else taxonomy.separator
        if rows is None:
            return taxonomy, y, classes
        if taxonomy is None and before is None and _are_one_hot(rows):
            warn(
                "y is a matrix of 0 and 1 with one 1 per row, and is read as rows of levels: of an indicator matrix, "
                "y.argmax(axis=1) are the labels",
                AdviceWarning,
            )
        if separator is None:
            raise ValueError(
                "y has rows of levels: its taxonomy must be None, or one of paths with a separator (nodes that are "
                "tuples: give y as a 1-D array of objects)"
            )
    else:
        separator, taxonomy = taxonomy, None
        if not separator:
            raise ValueError("The 'taxonomy' parameter must not be the empty string.")
    y, classes = (of if (rows := rows_of_levels(of)) is None else joined_levels(rows, separator) for of in (y, classes))
    if taxonomy is None:
        classes = None if classes is None else listed(classes)
        taxonomy = before if before is not None else _of_paths(y, classes, separator, unknown)
    return taxonomy, y, classes


def _are_one_hot(rows: list[Any]) -> bool:
    """Whether rows of levels are those of an indicator matrix of classes."""
    values = [None if row is None else list(row) for row in rows]
    if any(row is None or not all(isinstance(x, (int, float, np.number, np.bool_)) for x in row) for row in values):
        return False
    return all(sorted(row) == [0] * (len(row) - 1) + [1] for row in values if row is not None)


def _of_paths(y: KnownLabels, classes: list[Any] | None, separator: str, unknown: object) -> Taxonomy:
    """The taxonomy of labels, known in part or not: of all classes if these are given, or of those of y."""
    y = y if classes is None else classes
    y = [None, *y] if isinstance(y, (list, tuple)) else [None, *np.asarray(y, dtype=object)]
    labels = chain.from_iterable(label if isinstance(label, SETS) else [label] for label in y)
    named = dict.fromkeys(label for label in labels if not is_unknown(label, unknown))
    for label in named:
        if not isinstance(label, str):
            rows = (own if isinstance(own, SETS) else [own] for own in y[1:])
            row = next(i for i, own in enumerate(rows) if any(one is label for one in own))
            place = f"row {row} of y" if classes is None else "classes"
            raise ValueError(f"{place}: labels must be paths of levels between {separator!r}, got {label!r:.80}")
    if named and not any(separator in label for label in named):
        advice = ": a file's taxonomy is read_taxonomy(...)" if os.path.isfile(separator) else ""
        warn(f"taxonomy={separator!r} stands in no label, so no node lies above the labels{advice}", AdviceWarning)
    _check_one_path(named, separator)
    paths = [label.split(separator) for label in named]
    for label, level in ((label, level) for label, path in zip(named, paths, strict=True) for level in path):
        if level != level.strip():
            raise ValueError(
                f"the level {level!r:.80} of the label {label!r:.80} has a blank at its end: is the separator "
                f"{f' {separator.strip()} '!r}, in place of {separator!r}?"
            )
    return Taxonomy.from_paths(paths, separator=separator)


def _check_one_path(labels: Collection[str], separator: str) -> None:
    """Raise ValueError for a label that lists paths between bars, semicolons or commas, one of them a label too.

    A comma before a blank may belong to a level ("Cars, Trucks"): there each other path must begin as some label does.
    """
    marked = [(label, mark) for label in labels for mark in LISTING if mark in label and mark not in separator]
    tops = {label.split(separator)[0] for label in labels if separator in label} if marked else set()
    for label, mark in marked:
        paths = [path.strip() for path in label.split(mark) if path.strip()]
        known = {path for path in paths if path in labels and separator in path}
        others = [path for path in paths if path not in known]
        is_prose = mark == "," and ", " in label and separator != " "
        if known and all(separator in path and (not is_prose or path.split(separator)[0] in tops) for path in others):
            first = next(path for path in paths if path in known)
            raise ValueError(
                f"the label {label!r:.80} lists {first!r:.80}, which is a label, beside {mark!r}, and a label is "
                "one path: keep one, or give each a row of its own; where it is one of several and not known which, y "
                "has a set of paths (on the command line --partial, with bars between them)"
            )
