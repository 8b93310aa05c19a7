"""A schedule on every core: parts of the examples in threads that keep one another's weights up to date.

The order in which the threads' steps reach each copy of the weights depends on the machine: equal seeds lead to the
same optimum, not to the same bits. After each pass w and the dual objective are computed from the alphas, as they are
after a pass of one thread, so certificates are exact as ever. The average over a pass is of weights at times that
threads know only roughly; it is returned where its primal objective, an exact one, is the lower. Threads that step at
the same time correct the same thing twice: two may need more passes than one to a tight gap.

The examples are dealt out in short runs. With halves of data that are sorted, by label say, each thread would know some
labels alone, and a pass end with those of the slower one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm.dual._dual import DualState
from structsvm.dual._threads import Exchange, ThreadPart, costs, gather
from structsvm.dual.parallel import parallel_map

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from structsvm.arrays import Floats, Integers

# The shortest slice: at its end the threads wait for each other.
LEAST_SECONDS = 0.5
# Runs of examples that a thread gets, if there are enough.
RUNS = 256


class ThreadedSchedule:
    """The counterpart of `structsvm.dual._schedules.Schedule` for several threads.

    Parameters
    ----------
    state : WeightState
    C : ndarray of shape (n_samples,)
    n_threads : int
        At most as many as there are examples (groups of them).
    schedule_on : callable
        Makes the schedule of a state; each thread's is made by it.
    """

    def __init__(self, state: Any, C: Any, n_threads: int, schedule_on: Callable[[Any], Any]) -> None:
        self.state, self.alone = state, schedule_on(state)
        problem = state.problem
        cost = costs(problem)
        ends = np.array(equal_shares(cost, problem.groups, RUNS * n_threads))
        runs, work = np.column_stack([ends[:-1], ends[1:]]), np.add.reduceat(cost, ends[:-1])
        bounds = runs if problem.groups is None else np.searchsorted(problem.groups, runs)
        visited = [np.arange(start, stop) for start, stop in bounds]
        n = min(n_threads, len(runs))
        self.exchange = Exchange(n)
        words = state.random_words()
        self.problems = [problem] + [problem.shard(0, problem.n_samples) for _ in range(1, n)]
        self.parts = [
            ThreadPart(
                *(own, C, state, self.exchange, k),
                runs[k::n].copy(),
                np.concatenate(visited[k::n]),
                work[k::n].sum(),
                seed=int(words[0]) ^ k,
            )
            for k, own in enumerate(self.problems)
        ]
        self.schedules = [schedule_on(part) for part in self.parts]

    @property
    def n_samples(self) -> int:
        return sum(schedule.n_samples for schedule in self.schedules)

    @property
    def next(self) -> int:
        return sum(schedule.next for schedule in self.schedules)

    def start_pass(self, n_before: int = 0) -> None:
        """Shuffle; the pass begins with the next `run`. `n_before` passes have been done."""
        self._together(lambda k: self.parts[k].begin())
        for schedule in self.schedules:
            schedule.start_pass(n_before)

    def run(self, seconds: float) -> bool:
        """Visit examples for about `seconds`; return whether the pass is complete."""
        try:
            found = self._together(lambda k: self._work(k, max(seconds, LEAST_SECONDS)))
            done = None not in found
            sums = [part for part in found if part] if done else []
            self._together(lambda k: self._meet(k, [part[0] for part in sums]))
        except BaseException:
            gather(self.state, self.parts)
            if isinstance(self.state, DualState):
                self.state.settle()
            raise
        gather(self.state, self.parts, sums)
        return done

    def _work(self, k: int, seconds: float) -> Any:
        """A thread's part of `run`; after a pass its part of the sums that weights and dual are made of, else None.

        Weights that belong to others are not made of them.
        """
        complete = self.schedules[k].run(seconds)
        self.parts[k].rest()
        if not complete:
            return None
        return () if self.state.is_lent else self.parts[k].total()

    def _meet(self, k: int, vectors: Any) -> None:
        """A thread's part of what follows: its weights are up to date, and its piece of all vectors in the first."""
        self.parts[k].meet()
        for vector in vectors[1:]:
            piece = slice(len(vector) * k // len(vectors), len(vector) * (k + 1) // len(vectors))
            np.add(vectors[0][piece], vector[piece], out=vectors[0][piece])

    def _together(self, function: Callable[[int], Any]) -> Any:
        return parallel_map(function, range(len(self.parts)), len(self.parts), wait=True)

    def get_state(self) -> NDArray[np.float64]:
        """The initial state of one thread's schedule: nothing worth storing."""
        return self.alone.get_state()

    def set_state(self, numbers: ArrayLike) -> None:
        """Restore the state of a schedule of this kind. Raises ValueError for anything else."""
        self.alone.set_state(numbers)


def equal_shares(cost: Floats, groups: Integers | None, n_parts: int) -> list[int]:
    """Bounds of consecutive examples of about equal cost, never through a group; fewer parts if examples are few."""
    ends = np.concatenate([[0.0], np.cumsum(cost)])
    bounds = np.arange(len(ends)) if groups is None else np.asarray(groups)
    wanted = ends[-1] * np.arange(1, n_parts) / n_parts
    inner = bounds[np.searchsorted(ends[bounds], wanted).clip(0, len(bounds) - 1)]
    return np.unique([bounds[0], *inner, bounds[-1]]).astype(int).tolist()
