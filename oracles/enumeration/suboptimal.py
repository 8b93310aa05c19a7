"""All alignments of two strings in the order of their scores: recursive enumeration on the forward scores.

Jimenez and Marzal (1999): the r-th best way into a cell is one of a few candidates, the best way through each cell
before it, and the next best way through those that gave the ways found so far. Ranks are computed as they are needed,
on an explicit stack, so each alignment takes time in proportion to the lengths, whatever the scores are: a best-first
search takes exponential time where scores differ by less than rounding.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import count, groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structsvm.structures.alignments import FREE, PAIR, SKIP_X, SKIP_Z, Alignment

Cell = tuple[int, int, int]  # (state, i, j)
Way = tuple[float, Cell | None, int]  # score; the cell before and the rank of the way into that, None at the start


class _Ways:
    """The ways into a cell found so far, best first, and the candidates for the next one."""

    def __init__(self, own: float, before: list[tuple[float, Cell | None, float]]) -> None:
        self.own = own  # the cell's own score
        self.found: list[Way] = []
        self.steps = {cell: step for _, cell, step in before}
        self.heap: list[Any] = []
        self.due: Way | None = None  # found, the next way through its cell not yet a candidate
        self.tickets = count()  # breaks ties among equal scores
        for score, cell, step in before:
            self.add(score + step, cell, 0)

    def add(self, score: float, cell: Cell | None, rank: int) -> None:
        """Add a candidate by the score that it comes with."""
        if score + self.own > -np.inf:
            heapq.heappush(self.heap, (-(score + self.own), next(self.tickets), cell, rank))

    def is_exhausted(self) -> bool:
        return not self.heap and self.due is None


class _AlignmentSearch:
    def __init__(self, table: Any, pair: Any, gap_x: Any, gap_z: Any, mode: str) -> None:
        self.table, self.pair, self.gap_x, self.gap_z, self.mode = table, pair, gap_x, gap_z, mode
        self.ways: dict[Cell, _Ways] = {}

    def into(self, cell: Cell) -> _Ways:
        if cell not in self.ways:
            self.ways[cell] = _Ways(*self.before(cell))
        return self.ways[cell]

    def before(self, cell: Cell) -> tuple[float, list[tuple[float, Cell | None, float]]]:
        """Score of a cell itself, and the cells before it: the best score there, and the score of the step from it."""
        state, i, j = cell
        if state == PAIR and (i == 0 or j == 0):
            return 0.0, [(float(self.table[cell]), None, 0.0)]
        own = 0.0
        steps: list[tuple[int, float]]
        if state == PAIR:
            i, j = i - 1, j - 1
            own, steps = float(self.pair[i, j]), [(PAIR, 0.0), (SKIP_X, 0.0), (SKIP_Z, 0.0)]
        elif state == SKIP_X:
            i -= 1
            steps = [(PAIR, float(self.gap_x[0, i, j])), (SKIP_X, float(self.gap_x[1, i, j]))]
        else:
            j -= 1
            first, further = float(self.gap_z[0, i, j]), float(self.gap_z[1, i, j])
            steps = [(PAIR, first), (SKIP_X, first), (SKIP_Z, further)]
        found: list[tuple[float, Cell | None, float]] = [
            (float(self.table[other, i, j]), (other, i, j), step) for other, step in steps
        ]
        if state == PAIR and self.mode == "local":
            found.append((0.0, None, 0.0))
        return own, found

    def ask(self, cell: Cell, rank: int) -> bool:
        """Compute the way of this rank into a cell; returns False if there is none."""
        stack = [(cell, rank)]
        while stack:
            at, wanted = stack[-1]
            ways = self.into(at)
            if len(ways.found) > wanted or ways.is_exhausted():
                stack.pop()
            elif ways.due is None:
                score, _, before, below = heapq.heappop(ways.heap)
                ways.found.append((-score, before, below))
                ways.due = ways.found[-1] if before is not None else None
            else:
                _, before, below = ways.due
                others = self.into(before)  # type: ignore[arg-type]
                if len(others.found) > below + 1:
                    ways.add(others.found[below + 1][0] + ways.steps[before], before, below + 1)
                    ways.due = None
                elif others.is_exhausted():
                    ways.due = None
                else:
                    stack.append((before, below + 1))  # type: ignore[arg-type]
        return len(self.into(cell).found) > rank

    def alignment(self, cell: Cell, rank: int) -> Alignment:
        """The alignment that ends with a way into a cell."""
        codes = []
        while True:
            state, i, j = cell
            if self.mode != "local" and state == PAIR and (i == 0 or j == 0):
                break
            codes.append(state)
            self.ask(cell, rank)
            _, before, rank = self.ways[cell].found[rank]
            if before is None:
                i, j = i - 1, j - 1
                break
            cell = before
        return Alignment.from_codes(i, j, np.array(codes[::-1], dtype=np.uint8))


def alignments_by_score(
    table: NDArray[np.float64],
    pair: NDArray[np.float64],
    gap_x: NDArray[np.float64],
    gap_z: NDArray[np.float64],
    mode: str,
) -> Iterator[tuple[float, Alignment]]:
    """Yield ``(score, Alignment)``, best first; see `Aligner.table` for the arguments."""
    search, tickets = _AlignmentSearch(table, pair, gap_x, gap_z, mode), count()
    ends = _ends(table, mode)
    heap: list[Any] = []
    _push_end(heap, ends, tickets)
    while heap:
        score, _, end, rank = heapq.heappop(heap)
        if rank == 0:
            _push_end(heap, ends, tickets)
        if end is None:
            yield 0.0, Alignment.from_codes(0, 0, np.empty(0, dtype=np.uint8))
            continue
        search.ask(end, rank)
        yield -score, search.alignment(end, rank)
        if search.ask(end, rank + 1):
            heapq.heappush(heap, (-search.ways[end].found[rank + 1][0], next(tickets), end, rank + 1))


def log_sum_of_rows(
    codes: NDArray[np.uint8],
    pair: NDArray[np.float64],
    gap_x: NDArray[np.float64],
    gap_z: NDArray[np.float64],
    band: tuple[float, float],
) -> float:
    """The log of the sum of exp(score) over the semi-global alignments with the same rows.

    They begin anywhere in the gap before the first operation of another kind, and end anywhere in the last such gap.

    Parameters
    ----------
    codes : ndarray of uint8
        The operations of both strings, whole.
    pair, gap_x, gap_z
        See `Aligner.table`.
    band : (float, float)
        The least and the greatest j - i.
    """
    steps = codes.tolist()
    runs = [(kind, len(list(run))) for kind, run in groupby(steps)]
    first, last = (count if kind != PAIR else 0 for kind, count in (runs[0], runs[-1]))
    i = j = 0
    # Alignments that have ended; alignments that have begun, and the operation before is theirs.
    total = ways = -np.inf
    for k, (before, step) in enumerate(zip([PAIR, *steps], [*steps, PAIR], strict=True)):
        new = 0.0 if k <= first and band[0] <= j - i <= band[1] else -np.inf
        if k >= len(steps) - last:
            total = np.logaddexp(total, np.logaddexp(ways, new))
        if k == len(steps):
            break
        if step == PAIR:
            ways = np.logaddexp(ways, new) + pair[i, j]
        else:
            opening, extending = gap_x[:, i, j] if step == SKIP_X else gap_z[:, i, j]
            if (before, step) == (SKIP_Z, SKIP_X):
                ways = -np.inf  # where gaps meet, X comes before Z
            ways = np.logaddexp(ways + (extending if before == step else opening), new + opening)
        i, j = i + (step != SKIP_Z), j + (step != SKIP_X)
        if not band[0] <= j - i <= band[1]:
            ways = -np.inf
    return float(total)


def pair_to_keep(
    table: NDArray[np.float64],
    pair: NDArray[np.float64],
    gap_x: NDArray[np.float64],
    gap_z: NDArray[np.float64],
    mode: str,
) -> NDArray[np.uint8]:
    """The last pair of the best alignment that has one, as what is known: see `Aligner.complete`.

    Parameters are those of `alignments_by_score`.
    """
    m, n = pair.shape
    scores = table[PAIR, 1:, 1:]
    if mode != "local":  # the letters behind it are paid for, of both strings or at least of one
        of_z, last = gap_z.transpose(0, 2, 1), np.full((n + 1, m + 1), -np.inf)
        last[n] = 0.0
        all_z = _gaps_behind(of_z, last).T
        after_x = all_z if mode == "semi_global" else np.full((m + 1, n + 1), -np.inf)
        after_x[m] = _gaps_behind(of_z, np.zeros((n + 1, m + 1)))[:, m] if mode == "semi_global" else all_z[m]
        behind = _gaps_behind(gap_x, after_x)
        scores = scores + behind[1:, 1:]
    i, j = (int(at) for at in np.unravel_index(scores.argmax(), scores.shape))
    free = np.repeat([SKIP_X, SKIP_Z, SKIP_X, SKIP_Z], [i, j, m - i - 1, n - j - 1]) + FREE
    return np.insert(free, i + j, PAIR).astype(np.uint8)


def _gaps_behind(gap: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.float64]:
    """The best score of a gap behind each letter, with what follows its last letter: array (n_letters + 1, n_places).

    Parameters
    ----------
    gap : ndarray of shape (2, n_letters, n_places)
    after : ndarray of shape (n_letters + 1, n_places)
        Scores of what follows behind so many letters; -inf: the gap does not end there.
    """
    found, further = after.copy(), after[-1]
    for k in range(gap.shape[1] - 1, -1, -1):
        found[k] = np.maximum(after[k], gap[0, k] + further)
        further = np.maximum(after[k], gap[1, k] + further)
    return found


def _ends(table: NDArray[np.float64], mode: str) -> Iterator[tuple[float, Cell | None]]:
    """Yield ``(score, cell)`` of the possible ends of an alignment, best first; None is the empty one's."""
    m, n = table.shape[1] - 1, table.shape[2] - 1
    flat, empty = table.ravel(), mode == "local"
    for place in _by_score(flat, _end_lines(m, n, mode)):
        if empty and flat[place] <= 0.0:
            empty = False
            yield 0.0, None
        state, i, j = (int(c) for c in np.unravel_index(place, table.shape))
        yield float(flat[place]), (state, i, j)
    if empty:
        yield 0.0, None


def _end_lines(m: int, n: int, mode: str) -> Iterator[NDArray[np.int64]]:
    """The cells where an alignment may end, as places in the flat table; many come a row at a time."""
    cells = (m + 1) * (n + 1)
    if mode == "local":
        for i in range(m + 1):
            yield PAIR * cells + i * (n + 1) + np.arange(n + 1)
    elif mode == "semi_global":
        column = np.arange(m) * (n + 1) + n
        for state in range(3):
            yield state * cells + np.concatenate([column, m * (n + 1) + np.arange(n + 1)])
    else:
        yield (np.arange(3) + 1) * cells - 1


def _by_score(flat: NDArray[np.float64], lines: Iterator[NDArray[np.int64]]) -> Iterator[int]:
    """Yield the places of all lines, highest score first, the earlier of equal ones first; -inf not at all.

    A line is sorted when its best is due: the whole table never is.
    """
    heap: list[Any] = []
    for number, line in enumerate(lines):
        best = flat[line].max(initial=-np.inf)
        if best > -np.inf:
            heapq.heappush(heap, (-best, number, -1, line))
    while heap:
        _, number, rank, line = heapq.heappop(heap)
        if rank < 0:
            line = line[np.argsort(-flat[line], kind="stable")]
        else:
            yield int(line[rank])
        rank += 1
        if rank < len(line) and flat[line[rank]] > -np.inf:
            heapq.heappush(heap, (-flat[line[rank]], number, rank, line))


def _push_end(heap: list[Any], ends: Iterator[tuple[float, Cell | None]], tickets: Iterator[int]) -> None:
    end = next(ends, None)
    if end is not None:
        heapq.heappush(heap, (-end[0], next(tickets), end[1], 0))
