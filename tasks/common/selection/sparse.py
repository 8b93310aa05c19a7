"""C chosen on held-out examples for the log loss with the 1-norm.

With a small C all weights are 0, and then few are not: the path begins where the first ones leave 0, and goes on as
long as scores are those of its first value. Beyond, scores hardly change over two decades of C. So of the values that
score as the best one does, as far as the same held-out examples can tell, the one with the least log loss on them is
chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from structsvm.dual._expectations import ExpectationState
from structsvm.tasks.common.selection.search import LONGEST_OF_LOG, LOWEST_OF_LOG, Held, Part, Search, difference

if TYPE_CHECKING:
    from structsvm.progress import Monitor
    from structsvm.solvers import Solver
    from structsvm.solvers.choosing import Row
    from structsvm.tasks.common.selection.choice import Choice

# Where the path begins at least, in units of the C at which the first weight leaves 0: the next round value.
ABOVE = 3.5


class Trial(NamedTuple):
    """How held-out examples are predicted with a C, and the sum of their log losses."""

    held: Held
    loss: float


class SparseSearch(Search):
    """The choice of C for `SparseLikelihood`, see the head of this file.

    Attributes
    ----------
    trials : dict of Trial
        By value.
    """

    lowest, longest = LOWEST_OF_LOG, LONGEST_OF_LOG

    def _explore(self, monitor: Monitor) -> None:
        self.trials: dict[float, Trial] = {}
        super()._explore(monitor)

    def _first(self) -> float:
        idle = max(self.solver.idle_C(part.problem, sample_weight=part.weight) for part in self.parts)
        return max(super()._first(), ABOVE * idle)

    def _is_blank(self, row: Row) -> bool:
        return row.score == self.table[0].score

    def tried(self, parts: Sequence[Part], C: float, monitor: Monitor) -> Row:
        row = super().tried(parts, C, monitor)
        self.trials[C] = Trial(self.last, sum(held_out_loss(part, self.solver) for part in parts))
        return row

    def choice_of(self, C: float) -> Choice:
        near = [value for value, trial in self.trials.items() if are_near(self.trials[C].held, trial.held)]
        chosen = min(near, key=lambda value: (self.trials[value].loss, value))
        self.held = self.trials[chosen].held
        return super().choice_of(chosen)


def are_near(one: Held, other: Held) -> bool:
    """Whether scores of the same examples differ by no more than the standard error of their difference."""
    change, error = difference(one, other)
    return abs(change) <= error


def held_out_loss(part: Part, solver: Solver) -> float:
    """The log loss of a part's held-out examples."""
    problem, weight = part.model.bind(part.others, solver)
    weight = np.ones(problem.n_samples) if weight is None else weight
    losses, _ = ExpectationState(problem, weight, stores=False).losses(problem.from_oracle(part.model.weights))
    return float(weight @ losses)
