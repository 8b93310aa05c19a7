"""Losses of outputs along the steps of a threshold, by the steps at which they change.

An output's loss changes where one of its parts is found: at a few of hundreds of steps.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from structsvm.risk.losses import Counts, checked
from structsvm.risk.tables import is_among

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from structsvm.arrays import Floats
    from structsvm.risk.bounds import Sums
    from structsvm.risk.steps import Steps
    from structsvm.risk.tables import PartTable

# Outputs that are counted at a time: their table of steps takes 1.7 MB.
BLOCK = 512
# A user's loss of the true and the found parts.
OwnLoss: TypeAlias = "Callable[[frozenset[Hashable], frozenset[Hashable]], float]"


@dataclass(frozen=True, eq=False)
class LossCurves:
    """Losses of outputs, each a step function of the steps.

    Attributes
    ----------
    offsets : int64 array (n_outputs + 1,)
        The changes of output i are those from ``offsets[i]`` to ``offsets[i + 1]``, of which the first is at step 0.
    step : int64 array (n_changes,)
        Rising within an output.
    loss : float64 array (n_changes,)
        The loss from this step to before that of the next change.
    n_steps : int
    """

    offsets: NDArray[np.int64]
    step: NDArray[np.int64]
    loss: NDArray[np.float64]
    n_steps: int

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of changes of each output."""
        return np.diff(self.offsets)

    def rises(self, values: Floats) -> Floats:
        """By how much values, such as the losses, rise at each change; at the first, from 0."""
        rises = np.diff(values, prepend=0.0)
        rises[self.offsets[:-1]] = values[self.offsets[:-1]]
        return rises

    @property
    def are_binary(self) -> bool:
        """Whether all losses are 0 or 1."""
        return bool(np.isin(self.loss, (0.0, 1.0)).all())

    def at(self, step: int) -> NDArray[np.float64]:
        """The loss of each output at a step."""
        reached = np.append(0, np.cumsum(self.step <= step))[self.offsets]
        return self.loss[self.offsets[:-1] + np.diff(reached) - 1]

    def sums(self, weight: Floats) -> Floats:
        """The sum over outputs of weight times loss, at each step."""
        return self._totals(self.rises(self.loss) * np.repeat(weight, self.sizes)).clip(0.0)

    def _totals(self, rises: Floats) -> Floats:
        """The sum over outputs of what rises so at each change, at each step."""
        return np.cumsum(np.bincount(self.step, rises, self.n_steps))

    def excess(self, weight: Floats, alpha: float) -> Sums:
        """The sums of functions of ``weight (loss - alpha)``, an entry per step, as `says_below` takes them."""
        excess = np.repeat(weight, self.sizes) * (self.loss - alpha)
        return lambda of: self._totals(self.rises(of(excess)))

    def means(self, weight: Floats | None = None) -> Floats:
        """The mean loss at each step, under weights of outputs."""
        own = np.ones(len(self)) if weight is None else weight
        return self.sums(own) / own.sum()

    def raised(self, *, from_last: bool) -> LossCurves:
        """Raise each loss to the greatest one at the steps before; with `from_last`, at those after."""
        rises = self.rises(self.loss)
        rises[self.offsets[:-1]] = 0.0
        if not ((rises > 0.0) if from_last else (rises < 0.0)).any():
            return self
        order = slice(None, None, -1 if from_last else 1)
        first = self.offsets[1:] - 1 if from_last else self.offsets[:-1]
        place = np.abs(np.arange(len(self.step)) - np.repeat(first, self.sizes))
        return replace(self, loss=greatest_so_far(self.loss[order], place[order])[order])


def greatest_so_far(values: NDArray[np.float64], place: NDArray[np.int64]) -> NDArray[np.float64]:
    """Per entry the greatest value of its output up to it; `place` counts the entries of each output from 0."""
    found, reach = values.copy(), 1
    while reach <= place.max(initial=0):  # found is the greatest of the last `reach` entries
        later = np.flatnonzero(place >= reach)
        found[later] = np.maximum(found[later], found[later - reach])
        reach *= 2
    return found


def curves_of(
    steps: Steps, likely: PartTable, true: PartTable, loss: Callable[[Counts], Floats], most: int = 0
) -> LossCurves:
    """Losses of outputs along steps, by the numbers of their parts that are found."""
    found = [LossCurves(np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0), len(steps))]
    for first in range(0, len(likely), BLOCK):
        last = min(first + BLOCK, len(likely))
        found.append(curves_of_some(steps, likely.between(first, last), true.between(first, last), loss, most))
    sizes, step, values = (
        np.concatenate(column) for column in zip(*((own.sizes, own.step, own.loss) for own in found), strict=True)
    )
    return LossCurves(np.append(0, np.cumsum(sizes)), step, values, len(steps))


def curves_of_some(
    steps: Steps, likely: PartTable, true: PartTable, loss: Callable[[Counts], Floats], most: int
) -> LossCurves:
    """The same, by counts in a table of outputs and steps, which stays in the cache of a processor."""
    n, place = len(steps), steps.first(likely)
    at, is_true = likely.output * n + place, is_among(likely, true)
    found, right = (np.bincount(at[own & (place < n)], minlength=len(likely) * n) for own in (True, is_true))
    changes = np.flatnonzero((found > 0) | (np.arange(len(found)) % n == 0))
    offsets = np.searchsorted(changes, np.arange(len(likely) + 1) * n)
    right, found = (up_to(own[changes], offsets) for own in (right, found))
    counts = Counts(right, found, np.repeat(true.sizes, np.diff(offsets)), most)
    return LossCurves(offsets, changes % n, np.asarray(loss(counts), dtype=np.float64), n)


def up_to(counts: NDArray[np.int64], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Per change, the sum of the counts of its output up to it."""
    sums = np.append(0, np.cumsum(counts))
    return sums[1:] - np.repeat(sums[offsets[:-1]], np.diff(offsets))


def own_curves_of(steps: Steps, likely: PartTable, true: PartTable, loss: OwnLoss) -> LossCurves:
    """The same of a user's function, which is called once for each set of parts; ValueError unless from 0 to 1."""
    n, losses = len(steps), list[object]()
    changes: list[NDArray[np.int64]] = []
    places = np.split(steps.first(likely), likely.offsets[1:-1])
    for own, truth, place in zip(likely, true.frozen(), places, strict=True):
        changes.append(np.unique(np.append(0, place[place < n])))
        pairs = list(zip(own, place.tolist(), strict=True))
        each = (frozenset(part for part, at in pairs if at <= step) for step in changes[-1].tolist())
        losses += [loss(truth, found) for found in each]
    sizes = np.array(list(map(len, changes)), dtype=np.int64)
    values = checked(losses, np.repeat(np.arange(len(sizes)), sizes).tolist())
    return LossCurves(np.append(0, np.cumsum(sizes)), np.concatenate(changes), values, n)
