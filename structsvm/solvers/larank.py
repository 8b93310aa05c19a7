"""LaRank: online optimisation of the dual by SMO steps on fresh and on old examples."""

from __future__ import annotations

from typing import Any

from structsvm.dual._schedules import AdaptiveSchedule, FixedSchedule, SolveSchedule
from structsvm.parameters import (
    COUNT,
    FLAG,
    N_REPROCESS,
    NONE,
    POSITIVE,
    Checkpoints,
    Jobs,
    Options,
    Seed,
    declared,
    parameter,
)
from structsvm.solvers.base import PENALTY, RESCALING, Deterministic
from structsvm.solvers.online import OnlineSolver


@declared
class LaRank(Seed, Jobs, Deterministic, Checkpoints, OnlineSolver):
    """LaRank (Bordes and others 2007; thesis, chapter 5).

    Minimises ``1/2 |w|^2 + C sum_i xi_i`` (or ``C/2 sum_i xi_i^2``) subject to the constraints of the chosen
    formulation, in the dual. One pass nearly reaches the accuracy of the optimum; more passes reach it.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the sum of slacks. SVMstruct divides by the number of examples: its C is n times this one.
    rescaling : {"margin", "slack"}, default="margin"
    penalty : {"linear", "quadratic", None}, default="linear"
        Slack penalty; None means a hard margin.
    schedule : {"decode-once", "fixed", "adaptive"}, default="decode-once"
        "decode-once" decodes an example and solves its whole working set with these scores, then does the same without
        decoding for `n_reprocess` random old ones. "fixed" is algorithm 21: ProcessNew, then `n_reprocess` times one
        ProcessOld and ten Optimize. "adaptive" is algorithm 22 with a deterministic count of work in place of seconds.
    n_reprocess : float, default=2
        Work on old examples per new one (may be fractional for "decode-once"; n_R of the thesis for "fixed"; not used
        by "adaptive"). 0 gives passive-aggressive steps.
    average : bool, default=True
        Return the average of the weights over the last pass, with larger weights for later ones, if its primal
        objective is lower than that of the last weights; after few passes it usually is, and predicts better.
    max_iter : int, optional
        Passes over the data. None: until a pass raises the dual objective by at most 2 %, up to 20; with `tol`, as
        many as needed, up to 1000.
    tol : float, optional
        Relative duality gap, (primal - dual) / primal, to stop at; it is computed after every pass
        (LaRankGap in the thesis). "decode-once" then works on `n_reprocess` more old examples per new one after every
        20 passes. None: no such test.
    random_state : int, RandomState or None
        Seeds the order of examples and the choice of old ones.
    n_jobs : int, optional
        Jobs for the certificate (see `structsvm.dual.parallel`) and, without `deterministic`, for training; -1: all
        cores.
    deterministic : bool, default=True
        Whether the model is bit-identical for every `n_jobs`. Training itself then uses one thread.
        False: `n_jobs` threads train (see `structsvm.dual.threads`), or the workers of a Dask cluster (see
        `structsvm.dual.exchanges`), to the same optimum with other bits.
    checkpoint : path-like, optional
        File that stores the state of training. If it exists, training resumes from it and ends with a model that is
        bit-identical to that of an undisturbed run; a crash or a kill at any moment leaves it whole.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm import LaRank, StructuredSVM
    >>> from structsvm.oracles.viterbi import ViterbiOracle
    >>> X, Y = [np.array([[1.0], [-1.0]]), np.array([[2.0]])], [[1, 0], [1]]
    >>> model = StructuredSVM(ViterbiOracle(2, 1), LaRank(C=1.0, tol=0.01, random_state=0)).fit(X, Y)
    >>> model.result_.status, model.result_.relative_gap <= 0.01
    ('converged', True)
    """

    C: float = parameter(POSITIVE, default=1.0, kw_only=False)
    rescaling: str = parameter(*RESCALING, default="margin")
    penalty: str | None = parameter(*PENALTY, default="linear")
    schedule: str = parameter(Options("decode-once", "fixed", "adaptive"), default="decode-once")
    n_reprocess: float = parameter(N_REPROCESS, default=2)
    average: bool = parameter(FLAG, default=True)
    max_iter: int | None = parameter(COUNT, NONE, default=None)
    tol: float | None = parameter(POSITIVE, NONE, default=None)

    usual_passes = 20
    takes_back = True

    def validate(self) -> None:
        super().validate()
        if self.schedule == "fixed" and self.n_reprocess != int(self.n_reprocess):
            raise ValueError(
                "The 'n_reprocess' parameter of LaRank must be a whole number for schedule='fixed'. "
                f"Got {self.n_reprocess!r} instead."
            )

    def schedule_on(self, state: Any, rounds: Any, C: Any) -> Any:
        if self.schedule == "decode-once":
            return SolveSchedule(state, self.n_reprocess, usual_passes=0 if self.tol is None else self.usual_passes)
        if self.schedule == "fixed":
            return FixedSchedule(state, self.n_reprocess, 10 * self.n_reprocess)
        return AdaptiveSchedule(state)
