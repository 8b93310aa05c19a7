"""Block-coordinate Frank-Wolfe (Lacoste-Julien, Jaggi, Schmidt and Pletscher 2013)."""

from __future__ import annotations

import os
from numbers import Integral
from typing import Any

import numpy as np

from structsvm.dual._schedules import FrankWolfeSchedule
from structsvm.parameters import FLAG, Interval, Options
from structsvm.solvers.base import DualSolver


class FrankWolfe(DualSolver):
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
    max_iter : int, default=1000
        Passes over the data (n_samples visits each).
    tol : float or None, default=1e-2
        Relative duality gap, (primal - dual) / primal, to stop at. Passes after the twentieth are then corrective:
        they solve each decoded example's dual, and those of old examples, over all stored corners, where
        steps to one corner at a time zigzag. None: no such test, and `max_iter` passes as in the paper.
    random_state : int, RandomState or None
        Seeds the choice of examples.
    n_jobs : int, optional
        Jobs for the certificate (see `structsvm.dual.parallel`) and, without `deterministic`, for training; -1: all
        cores.
    deterministic, checkpoint, checkpoint_every
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

    penalty = "linear"
    usual_passes = 20  # then, with `tol`, steps are corrective

    _constraints = {name: allowed for name, allowed in DualSolver._constraints.items() if name != "penalty"} | {
        "sampling": Options("uniform", "gap"),
        "n_cached": Interval(Integral, 0, 2**31 - 1, closed="both"),
        "deterministic": FLAG,
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        rescaling: str = "margin",
        sampling: str = "uniform",
        n_cached: int = 10,
        average: bool = True,
        max_iter: int = 1000,
        tol: float | None = 1e-2,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        deterministic: bool = True,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 1,
    ) -> None:
        self.C = C
        self.rescaling = rescaling
        self.sampling = sampling
        self.n_cached = n_cached
        self.average = average
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.deterministic = deterministic
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every

    def schedule_on(self, state: Any, rounds: Any, C: Any) -> Any:
        return FrankWolfeSchedule(
            state,
            n_cached=self.n_cached,
            gap_sampling=self.sampling == "gap",
            usual_passes=0 if self.tol is None else self.usual_passes,
        )
