"""LaSVM: one pass over the examples, then the dual over the kept ones."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm._warnings import warn
from structsvm.checkpoint import COST, EXAMPLES, STATES, counters
from structsvm.kernel._lasvm import SELECTIONS, LaSVMState, OnlineSchedule
from structsvm.parameters import (
    COUNT,
    FLAG,
    N_REPROCESS,
    NONE,
    POSITIVE,
    Checkpoints,
    Options,
    ParameterGroup,
    Seed,
    declared,
    parameter,
)
from structsvm.result import ConvergenceWarning, relative_gap
from structsvm.solvers.kernel.base import TWO_CLASSES, KernelDualRun, KernelSolver
from structsvm.stored_values import Array

if TYPE_CHECKING:
    from structsvm.arrays import CheckedArray

STATES["lasvm"] = (
    counters(6)
    | COST
    | {
        "support": Array("i8", ("n_support",), within=EXAMPLES, once=True),
        "alpha": Array("f8", ("n_support",)),
        "gradient": Array("f8", ("n_support",)),
        "numbers": Array("f8", (3,)),
    }
)


class LaSVMRun(KernelDualRun):
    """A run of LaSVM; the support vectors and the bias are those of the second class."""

    n_steps = 0

    @property
    def intercept(self) -> Any:
        return np.array([0.0, self.state.bias])

    def restore(self, arrays: dict[str, CheckedArray], *, adapt: bool) -> None:
        super().restore(arrays, adapt=adapt)
        self.n_steps = self.state.n_steps

    def certify(self) -> None:
        """The finishing step; and with `tol` both objectives, by one pass over all examples.

        If a pass has moved nothing and the gap is not yet small, tau is too large.
        """
        begin = time.perf_counter()
        try:
            is_solved = not self.solver.finishing or self.state.finish()
            if not is_solved and self.solver.tol is None:  # with `tol`, the gap says how far from the optimum that is
                warn(
                    "the finishing step of LaSVM left a violating pair: scale the features, or raise tau",
                    ConvergenceWarning,
                )
            self.dual = self.state.settle()
            if self.solver.tol is not None:
                self.primal, self.dual, self.norm = self.state.certify()
                if self.state.n_steps == self.n_steps and relative_gap(self.primal, self.dual) > self.solver.tol:
                    self.state.tau *= 0.1
                self.n_steps = self.state.n_steps
        finally:
            self.seconds += time.perf_counter() - begin


@declared
class StepParameters:
    """The parameters of LaSVM's steps."""

    n_reprocess: float = parameter(N_REPROCESS, default=1)
    delta_max: float | None = parameter(POSITIVE, NONE, default=None)
    finishing: bool = parameter(FLAG, default=True)


@declared
class LaSVMSteps(StepParameters, ParameterGroup):
    """The steps of `LaSVMClassifier` beside one per example.

    Parameters
    ----------
    n_reprocess, delta_max, finishing
        As for `structsvm.solvers.LaSVM`.

    Examples
    --------
    >>> from structsvm.datasets import make_banana
    >>> from structsvm.tasks import LaSVMClassifier, LaSVMSteps
    >>> X, y = make_banana(300, random_state=0)
    >>> plain = LaSVMClassifier(C=1.0, gamma=1.0, steps=LaSVMSteps(finishing=False), random_state=0).fit(X, y)
    >>> plain.score(X, y) > 0.8
    True
    """


@declared
class LaSVMParameters:
    """The parameters that `LaSVM` and its classifier share."""

    selection: str = parameter(Options(*SELECTIONS), default="random")
    max_visits: int | None = parameter(COUNT, NONE, default=None)
    max_iter: int | None = parameter(COUNT, NONE, default=None)
    tol: float | None = parameter(POSITIVE, NONE, default=None)
    tau: float = parameter(POSITIVE, default=1e-3)
    cache_size: float = parameter(POSITIVE, default=200)


@declared
class LaSVM(StepParameters, LaSVMParameters, Seed, Checkpoints, KernelSolver):
    """LaSVM (thesis, algorithms 11 to 14; Bordes and others 2005).

    Maximises the dual of ``1/2 |w|^2 + C sum_i max(0, 1 - y_i (<w, Phi(x_i)> + b))``, the machine of LIBSVM's C-SVC.

    Parameters
    ----------
    C : float, default=1.0
    n_reprocess : float, default=1
        Reprocess steps after each Process, on average.
    delta_max : float, optional
        Reprocess until the uncertainty about b is at most this (section 4.2.5).
    selection : {"random", "gradient", "active", "autoactive"}, default="random"
        The next example: a random one, or of 50 drawn the one with the smallest ``y f(x)``, or the smallest
        ``|f(x)|``; "autoactive" draws up to 100, until 5 are within ``1 + delta / 2`` of the boundary.
    max_visits : int, optional
        Maximum number of examples that a pass visits; None: all.
    finishing : bool, default=True
        Whether training ends with the finishing step, which solves the dual over the kept examples.
    max_iter : int, optional
        Passes. None: 1; with `tol`, as many as needed, up to 1000.
    tol : float, optional
        Relative duality gap to stop at, computed after every pass, which then ends with the finishing step. None: no
        gap is claimed, as it would take as many kernel values as the pass. Both objectives are those of the problem
        with kernel values rounded to float32, of which those in exact arithmetic differ more the larger C is.
    tau : float, default=1e-3
        Tolerance of the optimality conditions, in units of f(x). With `tol` it is reduced if it is too coarse.
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
    >>> from structsvm.solvers import LaSVM
    >>> gram = Gram(Kernel("rbf", gamma=1.0), Rows(np.array([[0.0], [1.0]])))
    >>> problem = KernelProblem(gram, [0, 1], 2)
    >>> LaSVM(C=1.0, random_state=0).solve(problem).n_support
    2
    """

    C: float = parameter(POSITIVE, default=1.0, kw_only=False)

    usual_passes = 1

    needs = TWO_CLASSES
    run_type = LaSVMRun

    def state_on(self, problem: Any, C: Any, first: Any, seed: Any) -> Any:
        return LaSVMState(
            problem.gram,
            problem.y,
            C,
            tau=self.tau,
            selection=self.selection,
            cache_size=self.cache_size,
            first=first,
            seed=seed,
        )

    def schedule_on(self, state: Any) -> Any:
        return OnlineSchedule(
            state,
            n_reprocess=self.n_reprocess,
            delta_max=np.inf if self.delta_max is None else self.delta_max,
            max_visits=self.max_visits,
        )
