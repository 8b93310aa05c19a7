"""The Huller: hard-margin machines of two classes, online."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from structsvm._warnings import warn
from structsvm.checkpoint import COST, EXAMPLES, STATES, counters
from structsvm.dual._schedules import FixedSchedule
from structsvm.kernel._huller import HullerState
from structsvm.parameters import COUNT, POSITIVE, Checkpoints, Seed, declared, parameter
from structsvm.result import ConvergenceWarning
from structsvm.solvers.kernel.base import TWO_CLASSES, KernelRun, KernelSolver
from structsvm.stored_values import Array

# More drift of the recursive norms than this is a warning, and so is a smaller squared distance of the hulls: kernel
# values have single precision.
DRIFT = FLAT = 1e-6


STATES["huller"] = (
    counters(7)
    | COST
    | {
        "support": Array("i8", ("n_support",), within=EXAMPLES, once=True),
        "part": Array("f8", ("n_support",), within=(0.0, None)),
        "numbers": Array("f8", (6,)),
    }
)


class HullerRun(KernelRun):
    """A run of the Huller, which claims neither objective; the support vectors are those of the second class."""

    @property
    def intercept(self) -> Any:
        return np.array([0.0, self.state.bias])

    def start_pass(self) -> None:
        self.settle()
        super().start_pass()

    def certify(self) -> None:
        self.settle()
        if self.state.distance < FLAT:
            warn(
                "the convex hulls of the two classes meet, so that there is no hard margin, and the machine is made of "
                "rounding errors: take another kernel, or LaSVMClassifier",
                ConvergenceWarning,
            )

    def settle(self) -> None:
        """Recompute the norms, and warn if they had drifted."""
        begin = time.perf_counter()
        drift = self.state.settle()
        self.seconds += time.perf_counter() - begin
        if drift > DRIFT:
            warn(
                f"the norms that the Huller keeps by recursion had drifted by {drift:.2g} of their size, and have been "
                "recomputed: scale the features",
                ConvergenceWarning,
            )


@declared
class HullerParameters:
    """The parameters that `Huller` and its classifier share."""

    max_iter: int = parameter(COUNT, default=2)
    cache_size: float = parameter(POSITIVE, default=200)


@declared
class Huller(HullerParameters, Seed, Checkpoints, KernelSolver):
    """The Huller (thesis, algorithms 9 and 10; Bordes and Bottou 2005).

    Brings the nearest points of the two classes' convex hulls together: the hard-margin machine, if there is one.

    Parameters
    ----------
    max_iter : int, default=2
        Passes over the data.
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
    >>> from structsvm.solvers import Huller
    >>> gram = Gram(Kernel("rbf", gamma=1.0), Rows(np.array([[0.0], [1.0]])))
    >>> problem = KernelProblem(gram, [0, 1], 2)
    >>> Huller(random_state=0).solve(problem).n_iter
    2
    """

    C = 1.0
    tol = None

    needs = TWO_CLASSES
    run_type = HullerRun

    def state_on(self, problem: Any, C: Any, first: Any, seed: Any) -> Any:
        return HullerState(problem.gram, problem.y, C, cache_size=self.cache_size, first=first, seed=seed)

    def schedule_on(self, state: Any) -> Any:
        return FixedSchedule(state, 1, 0)
