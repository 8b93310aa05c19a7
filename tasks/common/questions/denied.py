"""Answers that say what is wrong without saying what is right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm.tasks.common.labels import is_hashable, sort_labels

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable


@dataclass(frozen=True, init=False, repr=False)
class Not:
    """A mark in y: the label is none of these.

    In training it stands for the set of all other labels, those that y names and those of the model (Ishida and others
    2017, "Learning from complementary labels"). `teach` keeps the mark: once there are more labels, `consolidate` has
    these among the others.

    Parameters
    ----------
    *labels : hashable
        One or more. In a taxonomy whose labels are leaves, an inner node stands for all labels below it.

    Raises
    ------
    ValueError
        Without a label.
    TypeError
        For a set, a list or None.

    Examples
    --------
    >>> from structsvm.tasks import Not, TaxonomyClassifier
    >>> X, y = [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]] * 3, ["a", "b", "c"] * 3
    >>> model = TaxonomyClassifier(C=1.0, loss="log", random_state=0).fit(X + [[0.0, 2.0]], y + [Not("c")])
    >>> model.predict([[0.0, 2.0]]).tolist()
    ['a']
    """

    labels: frozenset[Hashable]

    def __init__(self, *labels: Hashable) -> None:
        if not labels:
            raise ValueError("Not takes the labels that are wrong, one at least")
        for label in labels:
            if label is None or not is_hashable(label):
                raise TypeError(f"Not takes labels, each as an argument of its own, got {label!r:.80}")
        object.__setattr__(self, "labels", frozenset(labels))

    __hash__ = None  # type: ignore[assignment]  # it is no label

    def __repr__(self) -> str:
        return f"Not({', '.join(map(repr, sort_labels(list(self.labels))))})"


def as_answers(Y: object) -> list[Any] | None:
    """The answers of a y that may have marks: a list, or an array of objects; None for any other."""
    if isinstance(Y, np.ndarray) and Y.dtype == object:
        return list(Y)
    return list(Y) if isinstance(Y, (list, tuple)) else None


def marks_in(Y: Iterable[Any]) -> list[Not]:
    """The marks of answers, of rows or of the tokens of sequences."""
    found = []
    for y in Y:
        found += [one for one in (y if isinstance(y, (list, tuple)) else (y,)) if isinstance(one, Not)]
    return found


def with_marks(Y: Iterable[Any], told: Callable[[Not], object]) -> list[Any]:
    """Answers with something else in the places of their marks."""

    def plain(one: Any) -> Any:
        return told(one) if isinstance(one, Not) else one

    return [[*map(plain, y)] if isinstance(y, (list, tuple)) else plain(y) for y in Y]


def others(mark: Not, labels: set[Hashable], below: Callable[[Hashable], set[Hashable]]) -> set[Hashable] | None:
    """All labels but those that a mark denies; None if it denies none of them.

    Parameters
    ----------
    below : callable
        The labels that are wrong if a label or node is.

    Raises
    ------
    ValueError
        If none is left.
    """
    denied: set[Hashable] = set().union(*map(below, mark.labels))
    left = labels - denied
    if labels and not left:
        names = ", ".join(map(repr, sort_labels(list(labels))))
        raise ValueError(f"y holds {mark!r:.80}, which leaves none of the labels {names:.200}")
    return None if left == labels else left
