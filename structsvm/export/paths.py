"""Labellings on a lattice of scores: the score of a given one, and the k best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["best_paths", "path_score"]

Scores: TypeAlias = NDArray[np.float64]
Pairs: TypeAlias = Sequence[Scores | None]  # into each token; None: the transitions


def path_score(
    states: Scores, pairs: Pairs, transitions: Scores, numbers: Mapping[str, int], labels: Sequence[str]
) -> float:
    """Sum of the scores of labels and of neighbouring pairs. Raises ValueError for labels that do not fit."""
    if len(labels) != len(states):
        raise ValueError(f"labels must be as many as tokens, {len(states)}, got {len(labels)}")
    total, before = 0.0, 0
    for t, label in enumerate(labels):
        if label not in numbers:
            raise ValueError(f"labels[{t}] is {label!r}, which the model does not have")
        y, own = numbers[label], pairs[t]
        total += float(states[t, y])
        if t:
            total += float((transitions if own is None else own)[before, y])
        before = y
    return total


def best_paths(
    states: Scores, pairs: Pairs, transitions: Scores, labels: Sequence[str], k: int
) -> list[tuple[float, list[str]]]:
    """The k best labellings, best first: list of (score, labels).

    A way to a label is the r-th best way to a label before it; the k best ways to each are kept.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    if not len(states):
        return [(0.0, [])]
    scores = states[0][:, None]  # (K, ways), best first
    steps = []
    for t in range(1, len(states)):
        own, n_ways = pairs[t], scores.shape[1]
        arcs = scores.reshape(-1, 1) + np.repeat(transitions if own is None else own, n_ways, axis=0)
        order = np.argsort(-arcs, axis=0, kind="stable")[:k].T
        steps.append((order // n_ways, order % n_ways))
        scores = np.take_along_axis(arcs.T, order, axis=1) + states[t][:, None]
    n_ways, flat = scores.shape[1], scores.ravel()
    found = []
    for place in np.argsort(-flat, kind="stable")[:k].tolist():
        y, rank = divmod(place, n_ways)
        path = [y]
        for before, ranks in reversed(steps):
            y, rank = int(before[y, rank]), int(ranks[y, rank])
            path.append(y)
        found.append((float(flat[place]), [labels[y] for y in reversed(path)]))
    return found
