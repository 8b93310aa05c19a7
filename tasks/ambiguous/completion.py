"""Losses that are minima over shares, "max" and "log": a convex problem solved, its shares moved, and so on.

With shares q, which say how much each candidate counts, the loss of an example is convex in w, and no less than the
loss that is meant, which is that of the best q: J(w) = min_q P(w; q). Each pass lowers P(w; q); as soon as it is below
the last J, the shares become those of w, and J(w) <= P(w; q) is the new value: it never rises. (Soft shares: EM; hard
ones: the concave-convex procedure, Yu and Joachims 2009. The first shares are the weights of the candidates, and with
them the first problem is convex: no start has to be guessed.)

What a run reports: `primal` is J(w) of the weights that it returns, `dual` a lower bound on P(.; q) for the shares of
these weights: no other weights lower *this* convex problem by more than the gap, and where the gap is 0, w is a point
where J is stationary. It bounds no distance to the least J of all.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structsvm.dual._weights import checked_array, copied
from structsvm.dual.parallel import Rounds
from structsvm.result import relative_gap
from structsvm.solvers.base import SLICE_SECONDS, DualRun
from structsvm.solvers.conditional_likelihood import LikelihoodRun

# Relative gap at which the problem of the present shares counts as solved, where no `tol` is given.
SOLVED = 1e-4
TINY = 1e-300


class Completing(DualRun):
    """A run whose problem's shares follow the weights.

    Attributes
    ----------
    completed : ndarray of shape (n_features,) or None
        The weights of the last shares, which the run returns; None before the end of the first pass.
    value : float
        J there.
    """

    completed: Any = None
    value = math.inf
    _gain = math.inf

    def __init__(self, solver: Any, problem: Any, state: Any, schedule: Any, rounds: Any, *, C: Any) -> None:
        super().__init__(solver, problem, state, schedule, rounds, C=C)
        if state.weights.any():  # those to start from tell more than none
            self._complete(copied(state.weights))

    def advance(self, seconds: float = SLICE_SECONDS) -> bool:
        done = super().advance(seconds)
        if done:
            begin = time.perf_counter()
            self._end_pass()
            self.seconds += time.perf_counter() - begin
        return done

    def _end_pass(self) -> None:
        self._gain, before = super().gain, self.value
        super().certify()
        if self.primal <= before:
            self._complete(super().weights)
            self.rest()
            if before < math.inf:
                self._gain = max(self._gain, (before - self.value) / max(self.value, TINY))

    def _complete(self, w: Any) -> None:
        """Make the shares those of weights w."""
        self.completed = w
        self.problem.share_out(w)
        self.rounds = Rounds(self.problem, self.solver.n_jobs)  # other jobs hold the old shares
        self._follow()
        self.value, self.dual = self.primal_at(w), self.state.dual

    def rest(self) -> None:
        """Forget what the schedule knows of examples with other shares."""

    def _follow(self) -> None:
        """Let the state follow the shares."""
        raise NotImplementedError

    def certify(self) -> None:
        self.primal = self.value

    @property
    def gain(self) -> float:
        """What the last pass has added to the dual of its problem or taken from J, as a share."""
        return self._gain

    @property
    def is_solved(self) -> bool:
        return self.solver.tol is None and relative_gap(self.value, self.dual) <= SOLVED

    @property
    def weights(self) -> Any:
        return super().weights if self.completed is None else copied(self.completed)

    def get_state(self) -> dict[str, NDArray[Any]]:
        arrays = super().get_state() | {"C": self.C.copy()}
        return arrays if self.completed is None else arrays | {"completed": self.completed}

    def set_state(self, arrays: dict[str, NDArray[Any]], *, adapt: bool = False) -> None:
        completed = None
        if "completed" in arrays:
            completed = checked_array(arrays, "completed", np.float64, (self.problem.n_features,)).copy()
        super().set_state(arrays, adapt=adapt)
        if completed is not None:
            self._complete(completed)
            self.state.count_argmax(-self.problem.n_samples)  # which the run that was stored has counted
            if adapt and not np.array_equal(np.asarray(arrays.get("C")), self.C):
                # Another J, and perhaps without examples that these weights have learnt from.
                self.completed, self.value = None, math.inf


class CompletingMargin(Completing):
    """With hinges, whose constraints change with the shares: their products are computed anew."""

    def _follow(self) -> None:
        self.state.set_state(self.state.get_state(), adapt=True)


class CompletingLikelihood(Completing, LikelihoodRun):
    """With likelihoods."""

    least_passes = 100  # of each C on the path to one, unless its problem is solved before

    def _follow(self) -> None:
        self.state.constant = float(np.dot(self.C, self.problem.constants))
        self.state.settle()

    def rest(self) -> None:
        # What examples added to the gap says little: the next pass visits each once.
        self.schedule.set_state(np.zeros(self.schedule.n_samples))


RUNS = {"max": CompletingMargin, "log": CompletingLikelihood}
