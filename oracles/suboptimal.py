"""All alignments of two strings in the order of their scores: best-first search on the backward pass.

The forward scores of all cells give the exact score of the best completion of a suffix, so the search goes straight
to the next alignment.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structsvm.oracles.alignment import PAIR, SKIP_X, SKIP_Z, Alignment

START = 3

End = tuple[float, tuple[int, ...]]  # score and (state, i, j)


def alignments_by_score(
    table: NDArray[np.float64],
    pair: NDArray[np.float64],
    gap_x: NDArray[np.float64],
    gap_z: NDArray[np.float64],
    mode: str,
) -> Iterator[tuple[float, Alignment]]:
    """Yield ``(score, Alignment)``, best first; see `Aligner.table` for the arguments."""
    tickets = count()  # breaks ties among equal scores
    ends = _ends(table, mode)
    heap: list[Any] = []
    _push_end(heap, ends, tickets)
    while heap:
        score, _, (state, i, j), suffix, tail, is_end = heapq.heappop(heap)
        if is_end:
            _push_end(heap, ends, tickets)
        if state == START or (mode != "local" and state == PAIR and (i == 0 or j == 0)):
            yield -score, _alignment(i, j, suffix)
            continue
        suffix = (state, suffix)
        if state == PAIR:
            tail += pair[i - 1, j - 1]
            i, j = i - 1, j - 1
            steps = [(PAIR, 0.0), (SKIP_X, 0.0), (SKIP_Z, 0.0)]
            if mode == "local":
                heapq.heappush(heap, (-tail, next(tickets), (START, i, j), suffix, tail, False))
        elif state == SKIP_X:
            i -= 1
            steps = [(PAIR, gap_x[0, i]), (SKIP_X, gap_x[1, i])]
        else:
            j -= 1
            steps = [(PAIR, gap_z[0, j]), (SKIP_X, gap_z[0, j]), (SKIP_Z, gap_z[1, j])]
        for before, cost in steps:
            best = table[before, i, j] + (cost + tail)
            if best > -np.inf:
                heapq.heappush(heap, (-best, next(tickets), (before, i, j), suffix, tail + cost, False))


def _ends(table: NDArray[np.float64], mode: str) -> Iterator[End]:
    """Yield ``(score, (state, i, j))`` of the possible ends of an alignment, best first."""
    m, n = table.shape[1] - 1, table.shape[2] - 1
    mask = np.zeros(table.shape, dtype=bool)
    if mode == "local":
        mask[PAIR] = True
    elif mode == "semi_global":
        mask[:, m, :] = mask[:, :, n] = True
    else:
        mask[:, m, n] = True
    places = np.flatnonzero(mask & (table > -np.inf))
    scores = table.ravel()[places]
    order = np.argsort(-scores, kind="stable")
    empty = mode == "local"
    for k in order:
        if empty and scores[k] <= 0.0:
            empty = False
            yield 0.0, (START, 0, 0)
        yield float(scores[k]), tuple(int(c) for c in np.unravel_index(places[k], table.shape))
    if empty:
        yield 0.0, (START, 0, 0)


def _push_end(heap: list[Any], ends: Iterator[End], tickets: Iterator[int]) -> None:
    end = next(ends, None)
    if end is not None:
        heapq.heappush(heap, (-end[0], next(tickets), end[1], None, 0.0, True))


def _alignment(i: int, j: int, suffix: Any) -> Alignment:
    codes = []
    while suffix is not None:
        code, suffix = suffix
        codes.append(code)
    return Alignment.from_codes(i, j, np.array(codes, dtype=np.uint8))
