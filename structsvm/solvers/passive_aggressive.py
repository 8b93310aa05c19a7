"""Passive-aggressive training: LaRank without steps on old examples."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from structsvm.dual._schedules import FixedSchedule
from structsvm.parameters import FLAG
from structsvm.solvers.online import OnlineSolver


class PassiveAggressive(OnlineSolver):
    """The structured passive-aggressive algorithm (Crammer and others 2006; thesis, section 5.1.3).

    One ProcessNew per example: LaRank with n_R = 0. As there, only examples without support vectors are visited from
    the second pass on.

    Parameters
    ----------
    C, rescaling, penalty, average, max_iter, tol, random_state, n_jobs, deterministic, checkpoint, checkpoint_every
        As for `LaRank`, with the defaults ``average=False`` and ``max_iter=1``.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm import PassiveAggressive, StructuredSVM
    >>> from structsvm.oracles.viterbi import ViterbiOracle
    >>> X, Y = [np.array([[1.0], [-1.0]]), np.array([[2.0]])], [[1, 0], [1]]
    >>> model = StructuredSVM(ViterbiOracle(2, 1), PassiveAggressive(C=1.0, random_state=0)).fit(X, Y)
    >>> model.result_.n_iter
    1
    """

    _constraints = OnlineSolver._constraints | {"deterministic": FLAG}

    def __init__(
        self,
        C: float = 1.0,
        *,
        rescaling: str = "margin",
        penalty: str | None = "linear",
        average: bool = False,
        max_iter: int = 1,
        tol: float | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        deterministic: bool = True,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 1,
    ) -> None:
        self.C = C
        self.rescaling = rescaling
        self.penalty = penalty
        self.average = average
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.deterministic = deterministic
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every

    def schedule_on(self, state: Any, rounds: Any, C: Any) -> Any:
        return FixedSchedule(state, 0, 0)
