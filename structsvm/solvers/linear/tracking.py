"""Tracking the optimum of a stream by averaged dual coordinate ascent."""

from __future__ import annotations

import time
from numbers import Integral
from typing import Any

import numpy as np

from structsvm.checkpoint import COUNTS, RANDOM, STATES, checked_state
from structsvm.dual._schedules import FixedSchedule
from structsvm.dual._weights import half_norm
from structsvm.linear._tracking import TrackingState
from structsvm.linear.problem import LinearProblem
from structsvm.parameters import COUNT, FLAG, POSITIVE, Checkpoints, Interval, Seed, declared, parameter, seed_from
from structsvm.solvers.base import Solver
from structsvm.solvers.run import Run
from structsvm.stored_values import Array

STATES["tracking"] = RANDOM | {
    "numbers": Array("f8", (3, "n_seen"), within=(0.0, None)),
    "weights": Array("f8", (2, "n_columns")),
    "steps": Array("i8", (2,), within=COUNTS),
    "gains": Array("f8", (2,)),
}


class TrackingRun(Run):
    """A run that visits examples in order, and claims primal and dual over all that it has seen."""

    has_dual = True

    def state_sizes(self) -> dict[str, int]:
        return super().state_sizes() | {"n_columns": len(self.state.weights)}

    @property
    def weights(self) -> Any:
        """Array (1, n_features + 1); the last column is the intercept."""
        w = self.state.weights
        return (w if self.solver.fit_intercept else np.append(w, 0.0))[None, :]

    @property
    def n_support(self) -> int:
        return int(np.count_nonzero(self.state.dual_coef))

    def certify(self) -> None:
        begin = time.perf_counter()
        self.primal = self.state.primal()
        self.seconds += time.perf_counter() - begin

    def norms(self) -> tuple[Any, Any]:
        return half_norm(self.state.weights), half_norm(self.state.last)


@declared
class TrackingParameters:
    """The parameters that `Tracking` and its classifier share."""

    C: float = parameter(POSITIVE, default=1.0, kw_only=False)
    n_reprocess: int = parameter(Interval(Integral, 1, 2**31), default=10)
    process: bool = parameter(FLAG, default=True)
    fit_intercept: bool = parameter(FLAG, default=True)
    max_iter: int = parameter(COUNT, default=1)


@declared
class Tracking(TrackingParameters, Seed, Checkpoints, Solver):
    """Coordinate ascents on the dual that keep an averaged classifier near the optimum of a stream (thesis, section
    4.4, algorithms 15 and 16).

    Minimises ``1/2 |w|^2 + C sum_i max(0, 1 - y_i <w, x_i>)``; examples are visited in their order.

    Parameters
    ----------
    C : float, default=1.0
    n_reprocess : int, default=10
        K: ascents on random examples so far, over which the classifier is averaged.
    process : bool, default=True
        Whether an example's own coefficient is moved first (algorithm 16, not 15).
    fit_intercept : bool, default=True
        Give every example one more feature of value 1, whose weight is regularised like the others.
    max_iter : int, default=1
        Passes over the data.
    random_state : int, RandomState or None
    checkpoint
        As for `LaRank`.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.kernel._kernels import Rows
    >>> from structsvm.linear.problem import LinearProblem
    >>> from structsvm.solvers import Tracking
    >>> problem = LinearProblem(Rows(np.array([[0.0, 1.0], [1.0, 0.0]])), [0, 1], 2)
    >>> Tracking(C=1.0, random_state=0).solve(problem).n_iter
    1
    """

    needs = frozenset({"dense rows", "two classes"})
    tol = None

    @property
    def has_intercept(self) -> bool:
        return self.fit_intercept

    def formulation(self) -> Any:
        return LinearProblem.formulation

    def start(self, problem: Any, *, sample_weight: Any = None, base: Any = None) -> Any:
        """Return a fresh `TrackingRun`.

        `base` has the arrays of `TrackingState.get_state` to start from: its examples are the first
        ones of the problem, which passes do not visit and whose C stays.
        """
        X = problem.rows.data
        if self.fit_intercept:
            X = np.column_stack([X, np.ones(len(X))])
        C = np.full(problem.n_samples, float(self.C))
        if sample_weight is not None:
            C *= sample_weight
        first = 0
        if base is not None:
            base = checked_state(base, {"tracking"}, n_columns=X.shape[1])
            box = base["numbers"][2]
            first = len(box)
            C[:first] = box[: len(C)]
        state = TrackingState(X, problem.y, C, first=first, process=self.process, seed=seed_from(self.random_state))
        if base is not None:
            state.set_state(base)
        return TrackingRun(self, problem, state, FixedSchedule(state, 1.0 * self.n_reprocess, 0.0), C=C)
