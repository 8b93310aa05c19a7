"""Thresholds of parts in an order: one for all, or one for each label.

A *step* is one threshold, or one for each label; step after step more parts are found, from none to all that have the
least probability. The steps are settled before the outputs that test them are looked at: one grid for all, or a path
that other outputs have shown.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from structsvm.risk.tables import is_among, renumbered

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from structsvm.arrays import Floats
    from structsvm.risk.tables import PartTable

# Thresholds from none to all, evenly in their log-odds: probabilities of good models are mostly close to 1.
HIGHEST, LOWEST, PER_UNIT = 14.0, -7.0, 20
GRID = np.append(np.inf, 1.0 / (1.0 + np.exp(-np.linspace(HIGHEST, LOWEST, int(HIGHEST - LOWEST) * PER_UNIT + 1))))
# Prices of a false part, in true ones, along which a path by labels goes.
PRICES = np.logspace(4.0, -4.0, 81)


@dataclass(frozen=True, eq=False)
class Steps:
    """Thresholds, an entry per step.

    Attributes
    ----------
    thresholds : ndarray of shape (n_steps, n_labels + 1)
        By label; the last column is for all others, and without labels the only one. No column rises.
    labels : list
    """

    thresholds: Floats
    labels: Sequence[Hashable] = ()

    def __len__(self) -> int:
        return len(self.thresholds)

    def only(self, step: int) -> Steps:
        """One step alone."""
        return Steps(self.thresholds[step][None], self.labels)

    def first(self, likely: PartTable) -> NDArray[np.int64]:
        """The first step that finds each part, the number of steps if none does."""
        if np.array_equal(self.thresholds[:, -1], GRID) and not self.labels:
            return first_of_grid(likely.chance)
        if not self.labels:
            return np.searchsorted(-self.thresholds[:, 0], -likely.chance)
        column, found = renumbered(likely, self.labels), np.empty(len(likely.first), dtype=np.int64)
        for k in np.unique(column).tolist():
            own = column == k
            found[own] = np.searchsorted(-self.thresholds[:, k], -likely.chance[own])
        return found


def first_of_grid(chance: Floats) -> NDArray[np.int64]:
    """The first step of the grid that finds each part, by its log-odds: rounding puts that off by one at most."""
    chance = np.where(np.isnan(chance), 0.0, chance)  # never
    p = np.clip(chance, np.finfo(np.float64).tiny, GRID[1])
    place = np.ceil((HIGHEST - np.log(p / (1.0 - p))) * PER_UNIT).clip(0, len(GRID) - 2).astype(np.int64) + 1
    place -= chance >= GRID[place - 1]
    place += chance < GRID[place]
    return place


def grid() -> Steps:
    """One threshold for all parts, from none to all."""
    return Steps(GRID[:, None])


def path_by_label(likely: PartTable, true: PartTable, *, others: float, weight: Floats | None = None) -> Steps:
    """Thresholds by label, along which true parts are worth more and more false ones.

    At a price c of a false part, a label's threshold is the one with the most ``true - c * false`` parts: the lower c,
    the lower are all of them. Thus steps that find most true parts for the false ones that they find, in all labels
    together.

    Parameters
    ----------
    likely, true : parts of outputs that show the path
    others : float
        The threshold of labels that no output has, between the ends.
    weight : array (n_outputs,), optional
    """
    ids, at = np.unique(likely.label, return_index=True)
    ids = ids[np.argsort(at)]
    own_weight = (np.ones(len(likely)) if weight is None else weight)[likely.output]
    is_true = is_among(likely, true)
    place = np.searchsorted(-GRID, -likely.chance)  # the first step that finds it
    columns = []
    for k in ids.tolist():
        own = likely.label == k
        hits, misses = (
            np.cumsum(np.bincount(place[own], (own_weight * part)[own], len(GRID) + 1))[: len(GRID)]
            for part in (is_true, ~is_true)
        )
        columns.append(GRID[(hits - PRICES[:, None] * misses).argmax(axis=1)])
    path = np.stack([*columns, np.full(len(PRICES), others)], axis=1)
    path = np.minimum.accumulate(path, axis=0)  # where sums of weights are rounded
    ends = np.full((1, path.shape[1]), np.inf), np.full((1, path.shape[1]), GRID[-1])
    path = np.concatenate([ends[0], path, ends[1]])
    return Steps(path[np.append(True, (path[1:] != path[:-1]).any(axis=1))], [likely.labels[k] for k in ids.tolist()])
