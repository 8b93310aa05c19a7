"""Machines, one against the rest, that threads train: each thread some of them, on all examples in the same order.

No machine sees another, so the weights are bit for bit those of one thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

from structsvm.dual._schedules import SubgradientSchedule
from structsvm.dual.parallel import parallel_map
from structsvm.dual.threads import LEAST_SECONDS
from structsvm.linear._gradient_descent import GradientDescent

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray


class MakesState(Protocol):
    """Makes a `GradientDescent` of some of the machines of another one."""

    def __call__(self, *, whole: GradientDescent, machines: tuple[int, int]) -> GradientDescent: ...


# Work of some visits, about a tenth of a nanosecond each, below which threads would hardly pay.
LEAST_WORK = 3e7


def parts_of(state: GradientDescent, n: int, n_visits: int, make: MakesState) -> list[GradientDescent]:
    """Up to `n` states of some of the machines each, which do in threads what `state` does in `n_visits` visits; this
    itself where threads do not pay. `make`: as `GradientDescent`, for the arguments `whole` and `machines`.
    """
    n = min(n, state.n_machines)
    if n < 2 or n_visits * state.work < LEAST_WORK:
        return [state]
    bounds = [state.n_machines * k // n for k in range(n + 1)]
    parts = [make(whole=state, machines=ends) for ends in pairwise(bounds)]
    for part in parts:
        part.follow(state)
    return parts


class MachineSchedule:
    """The counterpart of `SubgradientSchedule` for several threads.

    Parameters
    ----------
    state : GradientDescent
    parts : sequence of GradientDescent
        Those of `parts_of`.
    """

    def __init__(self, state: GradientDescent, parts: Sequence[GradientDescent]) -> None:
        self.state, self.parts = state, parts
        self.schedules = [SubgradientSchedule(part) for part in parts]

    @property
    def n_samples(self) -> int:
        return self.schedules[0].n_samples

    @property
    def next(self) -> int:
        """Examples that all threads have visited."""
        return min(schedule.next for schedule in self.schedules)

    def start_pass(self, n_before: int = 0) -> None:
        for part, schedule in zip(self.parts, self.schedules, strict=True):
            part.follow(self.state)
            part.restart_average()
            schedule.start_pass(n_before)

    def run(self, seconds: float) -> bool:
        """Visit examples for about `seconds`; return whether the pass is complete."""
        most = max(seconds, LEAST_SECONDS)
        try:
            return all(parallel_map(lambda schedule: schedule.run(most), self.schedules, len(self.parts), wait=True))
        finally:
            self.state.follow(self.parts[0], self.parts)

    def get_state(self) -> NDArray[np.float64]:
        return self.schedules[0].get_state()

    def set_state(self, numbers: ArrayLike) -> None:
        self.schedules[0].set_state(numbers)
