"""Values of C tried one after another, and the best of them: what all searches for C share.

A search says which values come next, and how one is tried: by training that starts from where the last one ended.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from structsvm.result import Result


class Row(NamedTuple):
    """A trial of a task: the standard error of its score, and the passes over the part that was trained on."""

    C: float
    score: float
    error: float
    passes: int


class PathPoint(NamedTuple):
    """A model of a `PathSearch`.

    Attributes
    ----------
    C : float
    reach : float
        Up to this C, its relative gap is at most the path's `tol`.
    score : float
        On the held-out examples.
    result : Result
    """

    C: float
    reach: float
    score: float
    result: Result


T = TypeVar("T", Row, PathPoint)


def is_loss(metric: str) -> bool:
    """Whether less is better."""
    return metric.endswith(("loss", "error"))


def rank(trial: Row | PathPoint, metric: str = "score") -> tuple[float, float]:
    """The key that sorts trials, the best first; of equal ones that of the smallest C."""
    return (trial.score if is_loss(metric) else -trial.score), trial.C


def walk(
    values: Iterable[float],
    try_value: Callable[[float], T],
    trials: list[T],
    key: Callable[[T], tuple[float, float]] = rank,
    patience: float = math.inf,
    is_blank: Callable[[T], bool] = lambda trial: False,
) -> Iterator[T]:
    """Add trials of values until `patience` of them follow the best; yield the best one after each.

    Trials with which nothing is learnt yet, the first ones that are blank, are not counted.
    """
    for C in values:
        trials.append(try_value(C))
        best = min(trials, key=key)
        yield best
        n_blank = sum(1 for _ in takewhile(is_blank, trials))
        if len(trials) - max(trials.index(best) + 1, n_blank) >= patience:
            break
