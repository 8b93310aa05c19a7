"""C chosen on held-out examples for the log loss with the 1-norm.

With a small C all weights are 0, and then few are not: the path begins where the first ones leave 0, and goes on as
long as scores are those of its first value. Beyond, scores hardly change over two decades of C. So of the values that
score as the best one does, as far as the same held-out examples can tell, the one with the least log loss on them is
chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from structsvm.dual._expectations import ExpectationState
from structsvm.dual.parallel import beside, n_threads
from structsvm.progress import Monitor
from structsvm.solvers.choosing import Row, is_loss
from structsvm.tasks.common.selection.choice import Choice, ChosenLoss, ChosenSolver
from structsvm.tasks.common.selection.search import (
    LONGEST,
    LOWEST_OF_LOG,
    Held,
    LossSearch,
    Part,
    Point,
    Search,
    difference,
    first_run,
    joined,
    ratio,
)

if TYPE_CHECKING:
    from structsvm.solvers import Solver
    from structsvm.tasks.common.examples import Examples

# Standard errors of the paired difference by which the 1-norm must be better to be taken. If it is better by less, more
# parts are held out, with the values that the first one has chosen.
SURELY = 2.0
# Relative gap to which values are tried: what is predicted hardly changes below.
GAP = 0.3
# Where the path begins at least, in units of the C at which the first weight leaves 0: the next round value.
ABOVE = 3.5


class Trial(NamedTuple):
    """How held-out examples are predicted with a C, and the sum of their log losses."""

    held: Held
    loss: float


class SparseSearch(Search):
    """The choice of C for solvers that leave weights at 0, see the head of this file.

    Attributes
    ----------
    trials : dict of Trial
        By value.
    """

    lowest, longest, gap = LOWEST_OF_LOG, LONGEST, GAP

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


class RivalSearch:
    """A choice beside which a training with the 1-norm is tried: it is taken where held-out examples surely say so.

    Parameters
    ----------
    usual : Search or LossSearch
    rival : SparseSearch
        On the same examples.
    names : (str, str)
        The names of their solvers.
    n_jobs : int or None
        With more than one, the rival is searched beside the usual choice.
    """

    def __init__(
        self, usual: Search | LossSearch, rival: SparseSearch, names: tuple[str, str], n_jobs: int | None = None
    ) -> None:
        self.usual, self.rival, self.names, self.n_threads = usual, rival, names, n_threads(n_jobs)
        self.search: Search | LossSearch = usual
        if isinstance(usual, LossSearch) and self.n_threads == 2:
            usual.n_threads = 1  # the rival takes longer than all losses

    @property
    def part(self) -> Part | None:
        return first_run(self.search, self.usual)

    @property
    def held_out(self) -> list[tuple[Any, Examples]]:
        """See `Search.held_out`."""
        return self.search.held_out

    def points(self, examples: Examples) -> dict[str, Point]:
        """See `Search.points`."""
        return self.search.points(examples)

    def choose(self, monitor: Monitor) -> Choice | None:
        """The usual choice, or the rival's if its score is better by more than `SURELY` standard errors."""
        first = self.usual.first_search
        held_out = list(first.divisions())
        if not held_out:
            return None
        rival = partial(self.rival.choose_on, held_out, monitor if self.n_threads == 1 else Monitor())
        with beside(rival, self.n_threads) as wait:
            choice = self.usual.choose(monitor)
            if choice is None:
                return None
            self.search = self.rival
            other = wait()
        helds = [self.usual.held, self.rival.held]
        gain, error = gained(*helds)
        if 0.0 < gain <= SURELY * error and len(first.parts) == 1:
            helds = [joined([search.held, search.more(monitor)]) for search in (self.usual, self.rival)]
            gain, error = gained(*helds)
        is_better = gain > SURELY * error
        scores = [ratio(*held[1:]) for held in helds]
        solvers = dict(zip(self.names, scores, strict=True))
        chosen = ChosenSolver(self.names[is_better], solvers, (gain, error))
        if not is_better:
            self.search = self.usual
            return replace(choice, others=(*choice.others, chosen))
        loss = ChosenLoss(self.rival.loss, {self.rival.loss: (other.C, *scores[1])})
        return replace(other, others=(loss, chosen))


def gained(usual: Held, rival: Held) -> tuple[float, float]:
    """By how much the rival predicts the same examples better, and the standard error of that."""
    change, error = difference(usual, rival)
    return (-change if is_loss(usual.metric) else change), error


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
