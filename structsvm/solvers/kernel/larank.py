"""LaRank on the kernel dual: multiclass machines with non-linear kernels."""

from __future__ import annotations

from typing import Any

from structsvm.checkpoint import COST, COUNTS, RANDOM, STATES
from structsvm.dual._schedules import AdaptiveSchedule, FixedSchedule, SolveSchedule
from structsvm.kernel._kernel_dual import KernelDual
from structsvm.parameters import (
    COUNT,
    N_REPROCESS,
    NONE,
    POSITIVE,
    Checkpoints,
    Kind,
    Options,
    Seed,
    declared,
    parameter,
)
from structsvm.solvers.kernel.base import VECTORS, KernelSolver
from structsvm.stored_values import Array

# The least slope that is worth a step: in the first pass, its factor per pass, and the final one. Steps on nearly
# optimal pairs cost as much as others and gain next to nothing while so much else has changed.
FIRST_TAU, SHRINK, LAST_TAU = 0.2, 0.3, 1e-9

# Optimize for each ProcessOld of the fixed schedule. On the papers' data the adaptive one had 10 to 50 (GaLa, table 1).
N_OPTIMIZE = 50


STATES["kernel_dual"] = RANDOM | COST | VECTORS | {
    "counters": Array("i8", (8,), within=(-1, COUNTS[1])),
    "dual": Array("f8", (1,)),
}  # fmt: skip


@declared
class KernelLaRankParameters:
    """The parameters that `KernelLaRank` and its classifier share."""

    schedule: str | tuple[float, float] = parameter(
        Options("decode-once", "fixed", "adaptive"), Kind((tuple, list), "a pair of floats"), default="fixed"
    )
    n_reprocess: float = parameter(N_REPROCESS, default=1)
    selection: str = parameter(Options("random", "gain"), default="random")
    max_iter: int | None = parameter(COUNT, NONE, default=None)
    tol: float | None = parameter(POSITIVE, NONE, default=None)
    cache_size: float = parameter(POSITIVE, default=200)


@declared
class KernelLaRank(KernelLaRankParameters, Seed, Checkpoints, KernelSolver):
    """LaRank for kernels (Bordes and others 2007).

    Maximises the dual of ``1/2 |w|^2 + C sum_i xi_i`` with the joint kernel ``k(x, x') <L(y), L(y')>``.

    Parameters
    ----------
    C : float, default=1.0
    schedule : {"fixed", "adaptive", "decode-once"} or pair of float, default="fixed"
        The steps after the ProcessNew of a new example: "fixed" `n_reprocess` times one ProcessOld and 50 Optimize
        (`LaRank` has ten: compared with an argmax they are cheaper here); "adaptive" the steps that gain most for their
        cost (algorithm 5), by a deterministic count of kernel values and updates of derivatives in place of seconds.
        "decode-once" solves the whole row of an example with its scores, then `n_reprocess` rows of random support
        patterns over their own labels. A pair is the average number of ProcessOld and of Optimize: ``(0, 0)`` gives
        passive-aggressive steps (MIRA), ``(n, 50 * n)`` is "fixed".
    n_reprocess : float, default=1
    selection : {"random", "gain"}, default="random"
        The support pattern of a step on old examples: a random one, or the one with the most promising step among a
        few that the last step has visited (GaLa; Tuma and Igel 2011); one in ten is random, as otherwise it can stop
        short of the optimum.
    max_iter : int, optional
        Passes over the data. None: 2; with `tol`, as many as needed, up to 1000.
    tol : float, optional
        Relative duality gap to stop at, computed after every pass. None: no such test.
    cache_size : float, default=200
        Memory for rows of the kernel matrix, in units of 2**20 bytes.
    random_state : int, RandomState or None
    checkpoint
        As for `LaRank`.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.kernel._kernels import Gram, Kernel, Rows
    >>> from structsvm.kernel.problem import KernelProblem
    >>> from structsvm.solvers import KernelLaRank
    >>> gram = Gram(Kernel("rbf", gamma=1.0), Rows(np.array([[0.0], [1.0], [2.0]])))
    >>> problem = KernelProblem(gram, [0, 1, 2], 3)
    >>> KernelLaRank(C=1.0, random_state=0).solve(problem).n_iter
    2
    """

    C: float = parameter(POSITIVE, default=1.0, kw_only=False)

    usual_passes = 2
    most_passes = 20

    def validate(self) -> None:
        super().validate()
        if isinstance(self.schedule, (tuple, list)) and not (
            len(self.schedule) == 2 and all(N_REPROCESS.accepts(n) for n in self.schedule)
        ):
            raise ValueError(
                f"The 'schedule' parameter of {type(self).__name__}, if it is a pair, must be two floats in the range "
                f"[0.0, 1e6]. Got {self.schedule!r} instead."
            )

    def state_on(self, problem: Any, C: Any, first: Any, seed: Any) -> Any:
        return KernelDual(
            problem.gram,
            problem.y,
            C,
            problem.n_labels,
            cache_size=self.cache_size,
            selection=self.selection,
            loss=problem.loss,
            similarity=problem.similarity,
            first=first,
            seed=seed,
        )

    def schedule_on(self, state: Any) -> Any:
        if isinstance(self.schedule, (tuple, list)):
            return FixedSchedule(state, *self.schedule)
        if self.schedule == "decode-once":
            return SolveSchedule(state, self.n_reprocess)
        if self.schedule == "fixed":
            return FixedSchedule(state, self.n_reprocess, N_OPTIMIZE * self.n_reprocess)
        return AdaptiveSchedule(state)

    def prepare_pass(self, run: Any) -> None:
        run.state.tau = max(FIRST_TAU * SHRINK**run.n_iter, LAST_TAU)
