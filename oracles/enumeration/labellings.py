"""The k best labellings, by the best one of each part of what is left (Lawler 1972).

Labellings other than the best one of a set agree with it up to some place, and not there: each place has a part of its
own, and the next best is the best of one of the parts.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Allowed = NDArray[np.bool_]


def best_labellings(
    best: Callable[[Allowed], tuple[float, NDArray[np.int32]]], allowed: Allowed, k: int
) -> list[tuple[NDArray[np.int32], float]]:
    """Up to k pairs ``(labels, score)``, best first.

    Parameters
    ----------
    best : callable
        Takes which labels each place may have, at least one, and returns the best labelling as ``(score, labels)``; a
        score of -inf if there is none. Exact.
    allowed : bool array of shape (n, n_labels)
    k : int
    """
    queue: list[Any] = []
    found: list[tuple[NDArray[np.int32], float]] = []
    n_parts = 0

    def add(part: Allowed, fixed: int) -> None:
        nonlocal n_parts
        score, labels = best(part)
        n_parts += 1
        if score > -np.inf:
            heapq.heappush(queue, (-score, n_parts, labels, part, fixed))

    add(allowed, 0)
    while queue:
        score, _, labels, part, fixed = heapq.heappop(queue)
        found.append((labels, -score))
        if len(found) == k:
            break
        for t in range(fixed, len(labels)):
            other = part.copy()
            other[:t] = False
            other[np.arange(t), labels[:t]] = True
            other[t, labels[t]] = False
            if other[t].any():
                add(other, t)
    return found
