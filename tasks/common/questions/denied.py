"""Answers that say what is wrong without saying what is right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from structsvm.tasks.common.labels import Not, sort_labels

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable


def as_answers(Y: object) -> list[Any] | None:
    """The answers of a y that may have marks: a list, or an array or Series of objects; None for any other."""
    answers = listed(Y)
    return list(answers) if isinstance(answers, (list, tuple)) else None


def listed(y: Any) -> Any:
    """A list for an array or Series of objects; anything else as it is."""
    return list(y) if str(getattr(y, "dtype", "")) == "object" and getattr(y, "ndim", False) else y


def marks_in(Y: Iterable[Any]) -> list[Not]:
    """The marks of answers, of rows or of the tokens of sequences."""
    found = []
    for y in map(listed, Y):
        found += [one for one in (y if isinstance(y, (list, tuple)) else (y,)) if isinstance(one, Not)]
    return found


def with_marks(Y: Iterable[Any], told: Callable[[Not], object]) -> list[Any]:
    """Answers with something else in the places of their marks."""

    def plain(one: Any) -> Any:
        return told(one) if isinstance(one, Not) else one

    return [[*map(plain, y)] if isinstance(y, (list, tuple)) else plain(y) for y in map(listed, Y)]


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
