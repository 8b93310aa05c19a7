"""Base of the online solvers of the dual: training on the workers of a cluster."""

from __future__ import annotations

from typing import Any

from structsvm._warnings import AdviceWarning, warn
from structsvm.dual.exchanges import ExchangeSchedule, MemberRounds, SharedState, on_workers, why_rounds
from structsvm.shards.spread import cluster_client
from structsvm.solvers.base import DualSolver
from structsvm.solvers.cutting_plane import CuttingPlane
from structsvm.solvers.run import SharedRun


class OnlineSolver(DualSolver):
    """Base of the solvers of the dual that step from example to example.

    Without `deterministic`, and on a Dask cluster, the workers train, each on its own examples, and exchange weights; a
    problem that cannot be trained so is solved by the rounds of `CuttingPlane`.
    """

    def start(self, problem: Any, *, sample_weight: Any = None, base: Any = None) -> Any:
        client = None if self.deterministic else cluster_client()
        if client is None:
            return super().start(problem, sample_weight=sample_weight, base=base)
        why = why_rounds(problem, client)
        if why is not None:
            return self._in_rounds(why).start(problem, sample_weight=sample_weight, base=base)
        C = self.costs(problem, sample_weight)
        state = SharedState(problem, C, self, **on_workers(client), **self._state_options(base))
        rounds: Any = MemberRounds(state)
        schedule = ExchangeSchedule(state, self.schedule_on(state, rounds, C))
        return SharedRun(self, problem, state, schedule, rounds, C=C)

    def _in_rounds(self, why: str) -> CuttingPlane:
        """The solver in rounds of the same problem; says so."""
        warn(
            f"{type(self).__name__} trains by the rounds of CuttingPlane on this cluster: {why}. The optimum is the "
            "same; solver=CuttingPlane(...) does so everywhere",
            AdviceWarning,
        )
        shared = {name: getattr(self, name) for name in ("C", "rescaling", "penalty", "tol", "random_state", "n_jobs")}
        return CuttingPlane(**shared)
