"""OSPAS as a solver: passes over the sentences in their order, and refinement."""

from __future__ import annotations

import time
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm.checkpoint import COUNTS, STATES, counters
from structsvm.dual._schedules import FixedSchedule
from structsvm.model_file import under
from structsvm.parameters import (
    COUNT,
    FLAG,
    POSITIVE,
    Checkpoints,
    Interval,
    Options,
    Seed,
    declared,
    parameter,
    seed_from,
)
from structsvm.solvers.base import Solver
from structsvm.solvers.run import WeightRun
from structsvm.stored_values import Array, Table, checked_arrays, strings
from structsvm.tasks.common.solver import AUTO
from structsvm.tasks.semantics._ospas import STRATEGIES, OspasState
from structsvm.tasks.semantics.parameters import method_of
from structsvm.tasks.semantics.problem import SemanticProblem

if TYPE_CHECKING:
    from structsvm._problem import BoundProblem
    from structsvm.arrays import State, Weights
    from structsvm.solvers.run import Run
    from structsvm.tasks.semantics.parameters import Params


def tagger(part: str = "") -> Table:
    """The arrays of a tagger, whose names begin with `part`: weights, and what training resumes from."""
    shape = f"{part}n_features", f"{part}n_labels"
    sums = Array("f8", shape, needed=False)
    arrays = {"weights": Array("f8", shape), "average_sum": sums} | counters(2)
    return {part + name: array for name, array in arrays.items()}


def taggers(part: str = "") -> Table:
    """The arrays of `OspasState.to_arrays`, whose names begin with `part`."""
    names = strings(f"{part}roles.names", f"{part}roles.name_starts", f"{part}roles.n_features")
    return {f"{part}seed": Array("u8", (1,))} | tagger(f"{part}symbols.") | tagger(f"{part}roles.") | names


STATES["ospas"] = taggers() | {"counters": Array("i8", (2,), within=COUNTS), "turn": Array("i8", (1,), within=COUNTS)}
# A state after the first turn has these, too.
TURN = taggers("whole.") | {"chosen": Array("i8", ("n_samples",), within=COUNTS)}


class OspasRun(WeightRun):
    """A run that begins anew every `max_iter` passes, as often as `refine` says, on the meanings that fit best.

    Attributes
    ----------
    turn : int
        Times that it has begun anew.
    chosen : ndarray of shape (n_samples,) or None
        The meaning of each bag from which this turn learns; None: all of them.
    whole : dict of ndarray or None
        What the turn before has learnt.
    """

    def __init__(self, solver: Solver, problem: SemanticProblem, state: OspasState, C: Weights) -> None:
        super().__init__(solver, problem, state, FixedSchedule(state, 0, 0), C=C)
        self.turn = 0
        self.chosen: Any = None
        self.whole: Any = None

    @property
    def turn_end(self) -> int:
        """Passes after which this turn has had all of its own."""
        return (self.turn + 1) * self.solver.max_iter

    def start_pass(self) -> None:
        if self.turn < self.solver.refine and self.n_iter >= self.turn_end:
            begin = time.perf_counter()
            self.chosen, self.whole = self.problem.best_meanings(self.state.symbols.averaged), self.state.to_arrays()
            self.turn += 1
            self.state.restart(self.problem.with_meanings(self.chosen))
            self.seconds += time.perf_counter() - begin
        super().start_pass()

    def drop_unfinished(self) -> None:
        """Let what the turn before has learnt stand for a turn that was ended early."""
        if self.whole is not None and self.n_iter < self.turn_end:
            self.state.resume(self.whole)
            self.schedule = FixedSchedule(self.state, 0, 0)
            self.n_iter = self.turn_end - self.solver.max_iter

    def get_state(self) -> State:
        arrays = super().get_state() | {"turn": np.array([self.turn])}
        if self.turn > 0:
            arrays["chosen"] = self.chosen
            arrays.update({f"whole.{name}": array for name, array in self.whole.items()})
        return arrays

    def restore(self, arrays: State, *, adapt: bool) -> None:
        turn = int(arrays["turn"][0])
        chosen = whole = None
        before = self.state.get_state()
        if turn > 0:
            arrays |= checked_arrays(arrays, TURN, n_samples=self.problem.n_samples)
            chosen = arrays["chosen"]
            if not all(k < len(trees) for k, trees in zip(chosen, self.problem.bags, strict=True)):
                raise ValueError("array 'chosen' of the training state has a meaning that the bags do not hold")
            whole = under(arrays, "whole.")
            self.state.resume(whole)  # raises ValueError if it is not sound
        try:
            super().restore(arrays, adapt=adapt)
        except ValueError:
            self.state.set_state(before)
            raise
        self.turn, self.chosen, self.whole = turn, chosen, whole
        if turn > 0:
            self.state.rebind(self.problem.with_meanings(chosen))


@declared
class OspasSolver(Seed, Checkpoints, Solver):
    """OSPAS (thesis, algorithm 24): symbols for words and roles for symbols, from bags; it claims no objective.

    Parameters
    ----------
    C : float, default=0.1
        Upper bound of a step.
    strategy : {"order_free", "random", "left_right"}, default="order_free"
        Which word is labelled next.
    average : bool, default=False
        Return the average of the weights over all words tried.
    refine : int, default=0
        Times that, after `max_iter` passes, the meaning that fits best is chosen in each bag, and training begins anew
        with these alone.
    max_iter : int, default=1
        Passes over the sentences, in their order; so many again for each refinement.
    random_state : int, RandomState or None
        Seeds the strategy "random".
    checkpoint
        As for `LaRank`.
    """

    C: float = parameter(POSITIVE, default=0.1, kw_only=False)
    strategy: str = parameter(Options(*STRATEGIES), default="order_free")
    average: bool = parameter(FLAG, default=False)
    refine: int = parameter(Interval(Integral, 0), default=0)
    max_iter: int = parameter(COUNT, default=1)

    needs = frozenset({"words in bags"})

    @property
    def n_passes(self) -> int:
        return self.max_iter * (self.refine + 1)

    def formulation(self) -> dict[str, str | None]:
        return SemanticProblem.formulation

    def start(
        self, problem: SemanticProblem, *, sample_weight: Weights | None = None, base: State | None = None
    ) -> Run:
        """Return a fresh `OspasRun`; `base` is what `OspasState.to_arrays` returned of the taggers to resume."""
        C = float(self.C) * (np.ones(problem.n_samples) if sample_weight is None else sample_weight)
        seed = seed_from(self.random_state) if base is None else 0
        state = OspasState(problem, C, strategy=self.strategy, average=self.average, seed=seed)
        if base is not None:
            state.resume(base)
        return OspasRun(self, problem, state, C)

    def solve(self, problem: BoundProblem, **options: Any) -> Any:
        run = super().solve(problem, **options)
        run.drop_unfinished()
        return run


def make_ospas(params: Params) -> Solver:
    """The solver that parameters, read as attributes, ask for."""
    method = method_of(params.method)
    own = {name: getattr(method, name) for name in ("strategy", "average", "refine")}
    given = {name: getattr(params, name) for name in ("C", "max_iter", "random_state", "checkpoint")}
    return OspasSolver(**own, **{name: value for name, value in given.items() if value not in (AUTO, None)})
