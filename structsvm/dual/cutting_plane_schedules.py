"""A round of SVMstruct: oracle calls, constraints that join, and the dual over all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm.dual._cutting_plane import ConstraintCache, WorkingSets
from structsvm.dual._rounds import collect

if TYPE_CHECKING:
    from structsvm.arrays import AnyArray

# While nothing is known, every example's answer is the same kind of nonsense: portions of the first round.
FIRST_PORTIONS = 32

# Where no constraint joins: the share of the dual that its distance to the optimum over the working sets may be; it may
# be what `epsilon` admits, too.
SOLVED = 1e-5

# one_slack: rounds of the oracle that its cache keeps, and steps out of the cache after each round, as long as a
# constraint is violated by this share of the duality gap.
CACHED_ROUNDS = 10
CACHED_STEPS = 10
CACHED_SHARE = 0.2


class RoundSchedule(ABC):
    """Rounds, with the interface of `structsvm.dual._schedules.Schedule`; a subclass says what one is."""

    def __init__(self, solver: Any, state: Any, rounds: Any, box: float) -> None:
        self.solver, self.state, self.rounds = solver, state, rounds
        self.box = box  # the sum of what each working set's alphas may add up to
        self.sets = WorkingSets(state)
        self.n_samples = self.next = rounds.problem.n_samples
        self.answers: Any = None  # the most violated constraints at the current weights, once computed
        self.asked = False  # whether they have been, and were counted
        self.primal = np.nan  # the primal objective at the current weights, once computed
        self.gap = 0.0  # the duality gap there; 0: not known
        self.joined: int | None = None  # constraints that joined in the last round
        self.is_optimal = False  # whether the dual over the working sets was then solved, see `SOLVED`

    def get_state(self) -> Any:
        return np.array([self.asked], dtype=np.float64)

    def set_state(self, numbers: Any) -> None:
        if len(numbers) != 1 or numbers[0] not in (0.0, 1.0):
            raise ValueError("the schedule of the training state must be one number, 0.0 or 1.0")
        self.asked = bool(numbers[0])

    def get_arrays(self) -> dict[str, Any]:
        """Arrays that the schedule carries from round to round."""
        return {}

    def set_arrays(self, arrays: dict[str, AnyArray], adapt: bool) -> Any:
        """Restore the arrays returned by `get_arrays`; return those for the state, which another C may change."""
        return arrays

    def start_pass(self, n_before: int = 0) -> None:
        self.next = 0
        self.rounds.problem.sections.enter()

    def run(self, seconds: Any) -> bool:
        """One round, whatever the time (Ctrl-C works, and leaves a consistent state)."""
        self.joined = self.round()
        self.answers, self.asked, self.gap = None, False, 0.0
        self.next = self.n_samples
        return True

    @abstractmethod
    def question(self) -> Any:
        """The violations at the current weights, and the constraints as `round` takes them."""

    @abstractmethod
    def round(self) -> Any:
        """Do a round; returns how many constraints joined."""

    def ask(self) -> None:
        """Call the oracle for a round, once: afterwards `primal` and `gap` are known.

        With approximate inference, of the constraints found: those of earlier rounds may be violated more.
        """
        if self.answers is not None:
            return
        violation, self.answers = self.question()
        if not self.asked:
            self.state.count_argmax(self.n_samples)
        self.asked = True
        if not self.rounds.problem.has_primal:
            violation = np.maximum(violation, self.state.known_violations(self.state.weights))
        self.primal = self.state.primal(violation=violation)
        self.gap = max(self.primal - self.state.dual, 0.0) if np.isfinite(self.primal) else 0.0

    def optimize(self) -> None:
        gap, dual, solved = self.gap, self.state.dual, SOLVED * self.state.dual
        enough = self.solver.qp_tol * (gap or dual)
        if self.solver.penalty is None:
            # The gap says little while a constraint is violated by nearly its b = 1, which `enough` bounds as well.
            enough = self.solver.qp_tol * min(dual, 1.0) * (min(gap / dual, 1.0) if gap and dual else 1.0)
            solved = SOLVED * min(dual, 1.0)
        elif self.solver.penalty == "linear":
            solved = max(solved, self.solver.epsilon * self.box)
        if self.solver.tol is None:
            enough = max(enough, solved)
        self.is_optimal = self.sets.optimize(enough, self.solver.max_sweeps) <= solved

    def join(self, answers: Any) -> Any:
        epsilon = self.solver.epsilon
        return sum(self.sets.join(i, terms, bounds, words, epsilon) for i, (_, terms, bounds, words) in answers)


class NSlackSchedule(RoundSchedule):
    """Algorithm 1 of the paper."""

    def question(self) -> tuple[Any, Any]:
        answers = self.rounds.collect(self.state.weights)
        return np.concatenate([violation for _, (violation, *_) in answers]), answers

    def round(self) -> Any:
        if self.solver.optimize == "constraint":
            return self.by_constraint()
        if self.answers is None and self.state.n_patterns == 0:
            return self.first_round()
        self.ask()
        joined = self.join(self.answers)
        self.optimize()
        return joined

    def first_round(self) -> Any:
        """In portions, between which the weights change: at w = 0 all answers are the same kind of nonsense."""
        joined = 0
        for start, stop in pairwise(np.linspace(0.0, 1.0, FIRST_PORTIONS + 1)):
            joined += self.join(self.rounds.collect(self.state.weights, start, stop))
        self.state.count_argmax(self.n_samples)
        self.optimize()
        return joined

    def by_constraint(self) -> Any:
        """As in the paper: one example after the other, the whole dual after each constraint."""
        joined = 0
        for i in range(self.n_samples):
            answer = collect(self.state.problem, self.state.weights, i, i + 1)
            self.state.count_argmax(1)
            if self.join([(i, answer)]):
                joined += 1
                self.optimize()
        if joined == 0:
            self.optimize()
        return joined


class OneSlackSchedule(RoundSchedule):
    """Algorithm 3 of Joachims, Finley and Yu: constraints on the sum of the slacks; idle ones go after a while.

    After the oracle's constraint come some out of the cache, as long as they are violated by a good part of what
    the oracle's was.
    """

    def __init__(self, solver: Any, state: Any, rounds: Any, C: Any) -> None:
        super().__init__(solver, state, rounds, 1.0)
        self.C = C
        self.cache = ConstraintCache(rounds.problem, C, CACHED_ROUNDS)

    def get_arrays(self) -> Any:
        return self.cache.get_state() | {"cache_C": np.array(self.C)}

    def set_arrays(self, arrays: dict[str, AnyArray], adapt: bool) -> Any:
        if adapt:
            arrays = self.with_present_weights(arrays)
        self.cache.set_state(arrays)
        return arrays

    def with_present_weights(self, arrays: dict[str, AnyArray]) -> Any:
        """The arrays as they are with the present C.

        The cuts are sums over examples, each times its C. A common factor scales them, and alpha makes up for it, so
        that w stays; with other weights they say nothing, and only the cached constraints are kept.
        """
        before = arrays["cache_C"]
        factor = self.C.max() / max(before.max(), np.finfo(np.float64).tiny)
        if factor > 0.0 and np.allclose(factor * before, self.C, rtol=1e-12, atol=0.0):
            return arrays | {"cut_numbers": arrays["cut_numbers"] * [1.0 / factor, factor, factor]}
        none = {"cut_example": 0, "cut_idle": 0, "cut_numbers": 0, "cut_words": 0, "cut_bounds": 1}
        return arrays | {name: 0 * arrays[name][:n] for name, n in none.items()}

    def question(self) -> tuple[Any, Any]:
        answers = self.rounds.collect(self.state.weights)
        violation = np.concatenate([violation for _, (violation, *_) in answers])
        return np.array([self.C @ np.maximum(violation, 0.0)]), [outcome for _, outcome in answers]

    def round(self) -> Any:
        self.ask()
        self.cache.put(self.answers)
        joined = self.join_sum(self.solver.epsilon)
        self.optimize()
        for _ in range(CACHED_STEPS):
            if not self.join_sum(max(self.solver.epsilon, CACHED_SHARE * self.gap)):
                break
            self.optimize()
        return joined

    def join_sum(self, epsilon: float) -> Any:
        return self.sets.join(0, *self.cache.most_violated(self.state.weights), epsilon)
