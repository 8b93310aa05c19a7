"""Block-coordinate Frank-Wolfe (Lacoste-Julien, Jaggi, Schmidt and Pletscher 2013)."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from structsvm.dual._schedules import FrankWolfeSchedule
from structsvm.parameters import (
    COUNT,
    FLAG,
    NONE,
    POSITIVE,
    Checkpoints,
    Interval,
    Jobs,
    Options,
    Seed,
    declared,
    parameter,
)
from structsvm.solvers.base import RESCALING, Deterministic
from structsvm.solvers.online import OnlineSolver


@declared
class FrankWolfe(Seed, Jobs, Deterministic, Checkpoints, OnlineSolver):
    """Frank-Wolfe on one example at a time, with the optimal step length and an exact gap after each pass.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the sum of slacks.
    rescaling : {"margin", "slack"}, default="margin"
    sampling : {"uniform", "gap"}, default="uniform"
        The examples that a pass visits: each once, in random order; or each with odds proportional to its share of the
        duality gap at its last visit (Osokin and others 2016).
    n_cached : int, default=10
        Maximum number of steps after each decode towards stored corners (the cache of that paper).
    average : bool, default=True
        Return the average of the weights over the last pass, with larger weights for later ones, if its primal
        objective is lower than that of the last weights.
    max_iter : int or None, default=1000
        Passes over the data (n_samples visits each). None: with `tol`, as many as needed, up to 1000; without, until a
        pass raises the dual objective by at most 2 %, up to 20, as `LaRank` does.
    tol : float or None, default=1e-2
        Relative duality gap, (primal - dual) / primal, to stop at. Passes after the twentieth are then corrective:
        they solve each decoded example's dual, and those of old examples, over all stored corners, where
        steps to one corner at a time zigzag. None: no such test, and steps as in the paper throughout.
    random_state : int, RandomState or None
        Seeds the choice of examples.
    n_jobs : int, optional
        Jobs for the certificate (see `structsvm.dual.parallel`) and, without `deterministic`, for training; -1: all
        cores.
    deterministic, checkpoint
        As for `LaRank`.

    Notes
    -----
    The slack penalty is linear: a quadratic one has no corners to go to. For the same dual point, LaRank's pair steps
    gain more (they move mass between two constraints, while these shrink all of them alike).

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm import FrankWolfe, StructuredSVM
    >>> from structsvm.oracles.viterbi import ViterbiOracle
    >>> X, Y = [np.array([[1.0], [-1.0]]), np.array([[2.0]])], [[1, 0], [1]]
    >>> model = StructuredSVM(ViterbiOracle(2, 1), FrankWolfe(C=1.0, tol=0.05, random_state=0)).fit(X, Y)
    >>> model.result_.status
    'converged'
    """

    C: float = parameter(POSITIVE, default=1.0, kw_only=False)
    rescaling: str = parameter(*RESCALING, default="margin")
    sampling: str = parameter(Options("uniform", "gap"), default="uniform")
    n_cached: int = parameter(Interval(Integral, 0, 2**31 - 1, closed="both"), default=10)
    average: bool = parameter(FLAG, default=True)
    max_iter: int | None = parameter(COUNT, NONE, default=1000)
    tol: float | None = parameter(POSITIVE, NONE, default=1e-2)

    penalty = "linear"
    usual_passes = 20  # then, with `tol`, steps are corrective
    takes_back = True

    def schedule_on(self, state: Any, rounds: Any, C: Any) -> Any:
        return FrankWolfeSchedule(
            state,
            n_cached=self.n_cached,
            gap_sampling=self.sampling == "gap",
            usual_passes=0 if self.tol is None else self.usual_passes,
        )
