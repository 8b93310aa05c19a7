"""The training of the network as a solver: passes over the sentences in random order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from structsvm.checkpoint import STATES, checked_state, counters
from structsvm.dual._schedules import SubgradientSchedule
from structsvm.parameters import COUNT, NONE, POSITIVE, Checkpoints, Options, Seed, declared, parameter, seed_from
from structsvm.solvers.base import Solver
from structsvm.solvers.run import Run
from structsvm.stored_values import Array, optional
from structsvm.tasks.concepts._network import STRATEGIES, ConceptState
from structsvm.tasks.concepts.worlds import ConceptProblem

if TYPE_CHECKING:
    from structsvm.arrays import State, Weights


class NetworkRun(Run):
    """A run that is solved by a pass without a wrong label."""

    updates_before = 0

    def start_pass(self) -> None:
        self.updates_before = self.state.n_updates
        super().start_pass()

    @property
    def is_solved(self) -> bool:
        return bool(self.state.n_updates == self.updates_before)


LAYERS = {
    "words": Array("f4", ("n_words+2", "whole_dimension")),
    "names": Array("f4", ("n_names+1", "whole_dimension")),
    "g_words": Array("f4", ("width", "dimension", "whole_hidden")),
    "g_names": Array("f4", ("width", "of_relations", "whole_hidden")),
    "g_bias": Array("f4", ("whole_hidden",)),
    "h": Array("f4", ("of_relations+1", "whole_hidden")),
}
# A model file has the layers beside the state.
STATES["concepts"] = counters(3) | optional({f"layers.{name}": array for name, array in LAYERS.items()})


@declared
class ConceptTraining(Seed, Checkpoints, Solver):
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
    checkpoint
        As for `LaRank`.
    """

    learning_rate: float = parameter(POSITIVE, default=0.02, kw_only=False)
    strategy: str = parameter(Options(*STRATEGIES), default="order_free")
    max_iter: int | None = parameter(COUNT, NONE, default=None)

    needs = frozenset({"concepts"})
    usual_passes = 10

    def formulation(self) -> dict[str, str | None]:
        return ConceptProblem.formulation

    def start(self, problem: ConceptProblem, *, sample_weight: Weights | None = None, base: State | None = None) -> Run:
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
            state.restart(checked_state(base, {state.kind}))
        return NetworkRun(self, problem, state, SubgradientSchedule(state), C=weight)
