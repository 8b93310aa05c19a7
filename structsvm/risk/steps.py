"""Thresholds of parts in an order, and the losses of outputs along it.

A *step* is one threshold, or one for each label; step after step more parts are found, from none to all that have the
least probability. The steps are settled before the outputs that test them are looked at: one grid for all, or a path
that other outputs have shown.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from structsvm.risk.losses import Counts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from structsvm.arrays import Floats
    from structsvm.risk.parts import Likely, Truth

# A user's loss of the true and the found parts.
OwnLoss: TypeAlias = "Callable[[frozenset[Hashable], frozenset[Hashable]], float]"
# Thresholds from none to all, evenly in their log-odds: probabilities of good models are mostly close to 1.
GRID = np.append(np.inf, 1.0 / (1.0 + np.exp(-np.linspace(14.0, -7.0, 421))))
# Prices of a false part, in true ones, along which a path by labels goes.
PRICES = np.logspace(4.0, -4.0, 81)


@dataclass(frozen=True, eq=False)
class Steps:
    """Thresholds, an entry per step.

    Attributes
    ----------
    thresholds : ndarray of shape (n_steps, n_labels + 1)
        By label; the last column is for all others, and without labels the only one.
    labels : list
    label : callable
        The label of a part.
    """

    thresholds: Floats
    labels: Sequence[Hashable] = ()
    label: Callable[[Hashable], Hashable] | None = None

    def __len__(self) -> int:
        return len(self.thresholds)

    def only(self, step: int) -> Steps:
        """One step alone."""
        return Steps(self.thresholds[step][None], self.labels, self.label)

    def columns(self, parts: Sequence[Hashable]) -> NDArray[np.int64]:
        """The column of each part."""
        if self.label is None or not self.labels:
            return np.full(len(parts), len(self.labels), dtype=np.int64)
        at = {label: k for k, label in enumerate(self.labels)}
        return np.array([at.get(self.label(part), len(at)) for part in parts], dtype=np.int64)

    def found(self, likely: dict[Hashable, float]) -> NDArray[np.bool_]:
        """Whether each part of an output is found at each step: bool array (n_steps, n_parts)."""
        own = np.fromiter(likely.values(), dtype=np.float64, count=len(likely))
        found: NDArray[np.bool_] = own >= self.thresholds[:, self.columns(list(likely))]
        return found


def grid() -> Steps:
    """One threshold for all parts, from none to all."""
    return Steps(GRID[:, None])


def counts_of(steps: Steps, likely: dict[Hashable, float], true: frozenset[Hashable], most: int) -> Counts:
    """Numbers of an output's parts along the steps."""
    found = steps.found(likely)
    is_true = np.array([part in true for part in likely], dtype=np.int64)
    return Counts(found @ is_true, found.sum(axis=1), len(true), most)


def losses_along(
    steps: Steps, likely: Likely, true: Truth, loss: Callable[[Counts], Floats], most: int = 0
) -> NDArray[np.float64]:
    """Losses of outputs: array (n_outputs, n_steps)."""
    pairs = zip(likely, true, strict=True)
    return np.array([loss(counts_of(steps, own, truth, most)) for own, truth in pairs], dtype=np.float64)


def own_losses_along(steps: Steps, likely: Likely, true: Truth, loss: OwnLoss) -> NDArray[np.float64]:
    """The same of a user's function, which is called once for each set of parts; ValueError unless from 0 to 1."""
    found = np.empty((len(likely), len(steps)))
    for i, (own, truth) in enumerate(zip(likely, true, strict=True)):
        parts = list(own)
        sets, which = np.unique(steps.found(own), axis=0, return_inverse=True)
        each = [frozenset(parts[k] for k in np.flatnonzero(one).tolist()) for one in sets]
        values = np.array([loss(truth, one) for one in each], dtype=np.float64)
        if (bad := ~((values >= 0.0) & (values <= 1.0))).any():
            raise ValueError(f"loss must return a number from 0 to 1, got {values[bad][0]:g} for output {i}")
        found[i] = values[which.reshape(-1)]
    return found


def path_by_label(
    likely: Likely, true: Truth, label: Callable[[Hashable], Hashable], *, others: float, weight: Floats | None = None
) -> Steps:
    """Thresholds by label, along which true parts are worth more and more false ones.

    At a price c of a false part, a label's threshold is the one with the most ``true - c * false`` parts: the lower c,
    the lower are all of them. Thus steps that find most true parts for the false ones that they find, in all labels
    together.

    Parameters
    ----------
    likely, true : parts of outputs that show the path
    label : callable
    others : float
        The threshold of labels that no output has, between the ends.
    weight : array (n_outputs,), optional
    """
    labels = list(dict.fromkeys(label(part) for own in likely for part in own))
    own_weight = np.ones(len(likely)) if weight is None else weight
    rows = [
        (label(part), p, w * (part in truth), w * (part not in truth))
        for own, truth, w in zip(likely, true, own_weight.tolist(), strict=True)
        for part, p in own.items()
    ]
    columns = [np.full(len(PRICES), others)]
    for name in reversed(labels):
        own = np.array([row[1:] for row in rows if row[0] == name], dtype=np.float64)
        place = np.searchsorted(-GRID, -own[:, 0])  # the first step that finds it
        hits, misses = (np.cumsum(np.bincount(place, own[:, k], len(GRID) + 1))[: len(GRID)] for k in (1, 2))
        columns.insert(0, GRID[(hits - PRICES[:, None] * misses).argmax(axis=1)])
    path = np.stack(columns, axis=1)
    ends = np.full((1, path.shape[1]), np.inf), np.full((1, path.shape[1]), GRID[-1])
    path = np.concatenate([ends[0], path, ends[1]])
    return Steps(path[np.append(True, (path[1:] != path[:-1]).any(axis=1))], labels, label)
