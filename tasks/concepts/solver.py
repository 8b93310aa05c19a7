"""The training of the network as a solver: passes over the sentences in random order."""

from __future__ import annotations

import os
from numbers import Integral
from typing import Any

import numpy as np

from structsvm.checkpoint import STATES, counters
from structsvm.dual._schedules import SubgradientSchedule
from structsvm.parameters import POSITIVE, Interval, Options, seed_from
from structsvm.solvers.base import Solver
from structsvm.solvers.run import Run
from structsvm.tasks.concepts._network import STRATEGIES, ConceptState
from structsvm.tasks.concepts.worlds import ConceptProblem


class NetworkRun(Run):
    """A run that is solved by a pass without a wrong label."""

    updates_before = 0

    def start_pass(self) -> None:
        self.updates_before = self.state.n_updates
        super().start_pass()

    @property
    def is_solved(self) -> bool:
        return bool(self.state.n_updates == self.updates_before)


STATES["concepts"] = counters(3)


class ConceptTraining(Solver):
    """Steps against the first wrong label of each sentence; it claims no objective.

    Parameters
    ----------
    learning_rate : float
        Length of a step.
    strategy : {"order_free", "left_right", "independent"}
        Which word is labelled next.
    max_iter : int, optional
        Passes at most; `ConceptModel` sets it by the number of sentences if it is None.
    random_state : int, RandomState or None
        Seeds the layers at the start, and the order of the sentences.
    checkpoint, checkpoint_every
        As for `LaRank`.
    """

    needs = frozenset({"concepts"})
    usual_passes = 10

    _constraints = Solver._constraints | {
        "learning_rate": POSITIVE,
        "strategy": Options(*STRATEGIES),
        "max_iter": (Interval(Integral, 1), Options(None)),
    }

    def __init__(
        self,
        learning_rate: float = 0.02,
        *,
        strategy: str = "order_free",
        max_iter: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 1,
    ) -> None:
        self.learning_rate = learning_rate
        self.strategy = strategy
        self.max_iter = max_iter
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every

    def formulation(self) -> Any:
        return ConceptProblem.formulation

    def start(self, problem: Any, *, sample_weight: Any = None, base: Any = None) -> Any:
        """Return a fresh `NetworkRun`; `base` has the random generator and counters of a training to resume."""
        weight = np.ones(problem.n_samples) if sample_weight is None else sample_weight
        state = ConceptState(
            problem.scenes,
            problem.layers,
            weight,
            dimension=problem.settings.dimension,
            strategy=self.strategy,
            learning_rate=self.learning_rate,
            seed=seed_from(self.random_state),
        )
        if base is not None:
            state.restart(base)
        return NetworkRun(self, problem, state, SubgradientSchedule(state), C=weight)
