"""Orders of items on scores of pairs: the oracle's dynamic programme over sets of items.

The oracle scores a pair by half of the difference of its two orders; half of their sum, which all orders score, is
added here. A mask is a known precedence.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import replace
from itertools import count, pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.features.sparse import SparseRows
from structsvm.layers.structure import (
    Generators,
    Labels,
    NoOutput,
    Parts,
    Scores,
    Structure,
    Values,
    as_outputs,
    as_parts,
    check_lengths,
    check_values,
    drawn,
)
from structsvm.oracles._ordering import MOST_EXACT, OrderingProblem
from structsvm.oracles.ordering import ItemSets, OrderingOracle, is_order, square
from structsvm.parameters import checked_k


class Ordering(Structure):
    """Orders (permutations) of up to 10 items.

    The part is ``pairs`` (B, n, n): the score if the item of the row comes before that of the column; the diagonal does
    not matter. An output is an integer array (B, n), the items in their order, with -1 beyond the lengths. A truth that
    is known in part (-1 for the rest) says in which order the listed items come, whatever stands between them. The
    default cost of losses counts pairs in the wrong order.

    Raises
    ------
    ValueError
        There are more than 10 items. With more, the best order is NP-hard to find, and sums are harder:
        `structsvm.oracles.ordering.OrderingOracle` relaxes and searches. If the scores are differences of scores of
        items, sort these.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.layers import Ordering
    >>> pairs = np.zeros((1, 3, 3))
    >>> pairs[0, 2, 0] = pairs[0, 0, 1] = 1.0
    >>> Ordering().argmax(pairs).tolist()
    [[2, 0, 1]]
    >>> Ordering().marginals(pairs)[0][0].round(2).tolist()
    [[0.0, 0.67, 0.33], [0.33, 0.0, 0.33], [0.67, 0.67, 0.0]]
    """

    part_names: ClassVar[tuple[str, ...]] = ("pairs",)

    def check(self, parts: Sequence[object], lengths: ArrayLike | None) -> Scores:
        present, shapes = as_parts(Ordering, parts, 1)
        pairs = present["pairs"]
        if pairs.ndim != 3 or pairs.shape[1] != pairs.shape[2]:
            raise ValueError(f"pairs must have shape (B, n, n). Got {pairs.shape}.")
        n = pairs.shape[1]
        sizes = check_lengths(lengths, len(pairs), n)
        for entry in np.flatnonzero(sizes > MOST_EXACT)[:1].tolist():
            raise ValueError(
                f"Ordering is for up to {MOST_EXACT} items. Batch entry {entry} has {sizes[entry]}: "
                "structsvm.oracles.ordering.OrderingOracle relaxes and searches; scores of items can be sorted."
            )
        inside = np.arange(n) < sizes[:, None]
        check_values("pairs", pairs, lambda: inside[:, :, None] & inside[:, None] & ~np.eye(n, dtype=bool))
        return Scores((pairs,), shapes, sizes)

    def check_output(self, y: ArrayLike, scores: Scores, *, partly: bool = False) -> Labels:
        found, wanted = as_outputs(y), scores.parts[0].shape[:2]
        if found.shape != wanted or found.dtype.kind not in "iu":
            raise ValueError(f"y must be an array of integers of shape {wanted}. Got {found.dtype} {found.shape}.")
        inside = np.arange(wanted[1]) < scores.lengths[:, None]
        bad = inside & ((found < (-1 if partly else 0)) | (found >= scores.lengths[:, None]))
        if bad.any():
            entry, place = np.argwhere(bad)[0].tolist()
            unknown = ", or -1 for an unknown one" if partly else ""
            raise ValueError(
                f"y must contain items from 0 to {scores.lengths[entry] - 1}{unknown}. Got {found[entry, place]} at "
                f"batch entry {entry}, place {place}."
            )
        orders: Labels = np.where(inside, found, -1).astype(np.int32)
        for entry, row in enumerate(orders):
            items, counts = np.unique(row[row >= 0], return_counts=True)
            if (counts > 1).any():
                raise ValueError(f"y lists item {items[counts.argmax()]} of batch entry {entry} {counts.max()} times.")
        return orders

    def indicators(self, y: Labels, scores: Scores) -> Parts:
        return (_precedences(y).astype(scores.parts[0].dtype),)

    def restrict(self, scores: Scores, y: Labels) -> Scores:
        return _masked(scores, _precedences(y).transpose(0, 2, 1))

    def best(self, scores: Scores) -> Labels:
        orders, values = _find(scores)
        for entry in np.flatnonzero(np.isneginf(values))[:1].tolist():
            raise NoOutput(entry)
        return orders

    def sums(self, scores: Scores, *, marginals: bool = True) -> tuple[Values, Parts]:
        problem, shifts = _bound(scores)
        log_z, counts = np.zeros(len(shifts)), np.zeros_like(scores.parts[0])
        for entry, size in enumerate(scores.lengths.tolist()):
            log_sum, before = problem.moments(entry, np.ones(1))
            log_z[entry] = log_sum + shifts[entry]
            if marginals and np.isneginf(log_z[entry]):
                raise NoOutput(entry)
            counts[entry, :size, :size] = square(before, size)
        counts[np.isneginf(scores.parts[0])] = 0  # not their rounding
        return log_z, (counts,) if marginals else ()

    def kbest(self, *parts: object, k: int, lengths: ArrayLike | None = None) -> tuple[Labels, Values]:
        k, scores = checked_k(k), self.check(parts, lengths)
        labels = np.full((len(scores.lengths), k, scores.parts[0].shape[1]), -1, np.int32)
        values = np.full(labels.shape[:2], -np.inf)
        for entry in range(len(labels)):
            for j, (order, value) in enumerate(_kbest(scores.take([entry]), k)):
                labels[entry, j], values[entry, j] = order, value
        return labels, values

    def max_marginals(self, *parts: object, lengths: ArrayLike | None = None) -> Values:
        scores = self.check(parts, lengths)
        table = np.full(scores.parts[0].shape, -np.inf)
        for entry, size in enumerate(scores.lengths.tolist()):
            rows, columns = np.nonzero(~np.eye(size, dtype=bool))
            several = scores.take([entry] * len(rows))
            masks = np.zeros(several.parts[0].shape, bool)
            masks[np.arange(len(rows)), columns, rows] = True
            table[entry, rows, columns] = _find(_masked(several, masks))[1]
        return table

    def samples(self, scores: Scores, n_samples: int, generators: Generators) -> Labels:
        self.sums(scores)  # refuses entries without outputs
        outputs = np.full((len(scores.lengths), n_samples, scores.parts[0].shape[1]), -1, np.int32)
        for entry, size in enumerate(scores.lengths.tolist()):
            uniforms = generators[entry].random((size, n_samples))
            pairs = scores.parts[0][entry, :size, :size].astype(np.float64)
            left = np.ones((n_samples, size), bool)
            for place in range(size if n_samples else 0):
                sets, which = np.unique(left, axis=0, return_inverse=True)
                chances = np.stack([self._next(pairs, one) for one in sets])
                item = drawn(chances[which.ravel()], uniforms[place])
                outputs[entry, :, place], left[np.arange(n_samples), item] = item, False
        return outputs

    def _next(self, pairs: Values, left: NDArray[np.bool_]) -> Values:
        """Weights of the items to be the next one, by which ones are left."""
        logs = np.full(len(left), -np.inf)
        for item in np.flatnonzero(left).tolist():
            others = np.flatnonzero(left & (np.arange(len(left)) != item))
            rest = self.log_partition(pairs[None][:, others[:, None], others])[0]
            logs[item] = pairs[item, others].sum() + rest
        return np.exp(logs - logs.max())


def _precedences(y: Labels) -> NDArray[np.bool_]:
    """Return which of the listed items come before which: (B, n, n)."""
    n, size = y.shape
    places = np.full((n, size + 1), -1)
    entries, order = np.nonzero(y >= 0)
    places[entries, y[entries, order]] = order
    known = places[:, :size] >= 0
    before: NDArray[np.bool_] = places[:, :size, None] < places[:, None, :size]
    return before & known[:, :, None] & known[:, None]


def _masked(scores: Scores, masks: NDArray[np.bool_]) -> Scores:
    pairs = scores.parts[0]
    return replace(scores, parts=(np.where(masks, pairs.dtype.type(-np.inf), pairs),), truth=None)


def _bound(scores: Scores) -> tuple[OrderingProblem, Values]:
    """The oracle's problem of a batch, and what all orders of an entry score beside it."""
    tables, known, shifts = [], [], np.zeros(len(scores.lengths))
    for entry, size in enumerate(scores.lengths.tolist()):
        pairs = scores.parts[0][entry, :size, :size].astype(np.float64)
        masked = np.isneginf(pairs) & ~np.eye(size, dtype=bool)
        known.append(np.argwhere(masked.T))
        pairs = np.where(masked, np.where(masked.T, 0.0, pairs.T), pairs)
        rows, columns = np.triu_indices(size, 1)
        tables.append(pairs[rows, columns] - pairs[columns, rows])
        shifts[entry] = (pairs[rows, columns] + pairs[columns, rows]).sum() / 2
    bounds = np.cumsum([0, *scores.lengths], dtype=np.int64)
    rows_of_items = SparseRows(np.zeros(bounds[-1] + 1, np.int64), np.zeros(0, np.int32), np.zeros(0), 0)
    data = ItemSets(rows_of_items, bounds, np.concatenate([np.zeros(0), *tables])[:, None])
    known_bounds = np.cumsum([0, *map(len, known)], dtype=np.int64)
    precedences = np.ascontiguousarray(np.concatenate([np.zeros((0, 2), np.int64), *known]), np.int32)
    orders = np.full(bounds[-1], -1, np.int32)
    problem = OrderingProblem(OrderingOracle(0, 1), data, orders, (known_bounds, precedences), rescaling=None)
    return problem, shifts


def _find(scores: Scores) -> tuple[Labels, Values]:
    """The best orders and their scores, -inf where there is none."""
    if not len(scores.lengths):
        return np.full(scores.parts[0].shape[:2], -1, np.int32), np.zeros(0)
    found = _bound(scores)[0].decoded(np.ones(1))[0]
    orders, values = np.full(scores.parts[0].shape[:2], -1, np.int32), np.full(len(scores.lengths), -np.inf)
    bounds = np.cumsum([0, *scores.lengths.tolist()])
    for entry, (start, stop) in enumerate(pairwise(bounds.tolist())):
        order = found[start:stop]
        masked = np.isneginf(scores.parts[0][entry, : stop - start, : stop - start])
        np.fill_diagonal(masked, False)
        if is_order(np.argwhere(masked.T), stop - start):
            orders[entry, : stop - start] = order
            table = scores.parts[0][entry][np.ix_(order, order)].astype(np.float64)
            values[entry] = table[np.triu_indices(len(order), 1)].sum()
    return orders, values


def _kbest(scores: Scores, k: int) -> list[tuple[Labels, float]]:
    """The k best orders of an entry: each one parts the others by their first pair of its neighbours in reverse."""
    size, ties = int(scores.lengths[0]), count()
    queue: list[tuple[float, int, Labels, Scores]] = []

    def add(part: Scores) -> None:
        (order,), (value,) = _find(part)
        if value > -np.inf:
            heapq.heappush(queue, (-float(value), next(ties), order, part))

    found: list[tuple[Labels, float]] = []
    add(scores)
    while queue and len(found) < k:
        value, _, order, part = heapq.heappop(queue)
        found.append((order, -value))
        for first, second in pairwise(order[:size].tolist() if len(found) < k else []):
            masks = np.zeros(part.parts[0].shape, bool)
            masks[0, first, second] = True
            add(_masked(part, masks))
            part = _masked(part, masks.transpose(0, 2, 1))
    return found
