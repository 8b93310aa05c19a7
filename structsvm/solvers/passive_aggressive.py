"""Passive-aggressive training: LaRank without steps on old examples."""

from __future__ import annotations

from typing import Any

from structsvm.dual._schedules import FixedSchedule
from structsvm.parameters import COUNT, FLAG, NONE, POSITIVE, Checkpoints, Jobs, Seed, declared, parameter
from structsvm.solvers.base import PENALTY, RESCALING, Deterministic
from structsvm.solvers.online import OnlineSolver


@declared
class PassiveAggressive(Seed, Jobs, Deterministic, Checkpoints, OnlineSolver):
    """The structured passive-aggressive algorithm (Crammer and others 2006; thesis, section 5.1.3).

    One ProcessNew per example: LaRank with n_R = 0. As there, only examples without support vectors are visited from
    the second pass on.

    Parameters
    ----------
    C, rescaling, penalty, average, max_iter, tol, random_state, n_jobs, deterministic, checkpoint
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

    C: float = parameter(POSITIVE, default=1.0, kw_only=False)
    rescaling: str = parameter(*RESCALING, default="margin")
    penalty: str | None = parameter(*PENALTY, default="linear")
    average: bool = parameter(FLAG, default=False)
    max_iter: int = parameter(COUNT, default=1)
    tol: float | None = parameter(POSITIVE, NONE, default=None)

    def schedule_on(self, state: Any, rounds: Any, C: Any) -> Any:
        return FixedSchedule(state, 0, 0)
