"""The batch solver of Crammer and Singer (2001): the whole gradient, and example by example the exact optimum."""

from __future__ import annotations

from typing import Any

from structsvm.checkpoint import STATES, counters
from structsvm.dual._schedules import SolveSchedule
from structsvm.kernel._full_gradient import FullGradient
from structsvm.parameters import COUNT, POSITIVE, Checkpoints, Seed, declared, parameter
from structsvm.solvers.kernel.base import KernelSolver, check_size
from structsvm.stored_values import Array

# A pass visits examples that are violated by at least this share of the largest violation: the worst first, as there.
SHARE = 0.1


STATES["full_gradient"] = counters(5) | {
    "beta": Array("f8", ("n_labels", "n_samples")),
    "gradient": Array("f8", ("n_labels", "n_samples")),
}


@declared
class CrammerSingerParameters:
    """The parameters that `CrammerSinger` and its classifier share."""

    tol: float = parameter(POSITIVE, default=1e-3)
    max_iter: int = parameter(COUNT, default=10000)
    cache_size: float = parameter(POSITIVE, default=200)


@declared
class CrammerSinger(CrammerSingerParameters, Seed, Checkpoints, KernelSolver):
    """MCSVM: the same dual as that of `KernelLaRank`, with all its derivatives stored.

    A pass goes through the examples that are violated by at least a share of the largest violation at its beginning,
    and solves the dual restricted to the coefficients of each.

    Parameters
    ----------
    C : float, default=1.0
    tol : float, default=1e-3
        Relative duality gap to stop at. It is known without further kernel values.
    max_iter : int, default=10000
        Maximum number of passes; most of them visit few examples.
    cache_size : float, default=200
        Memory for rows of the kernel matrix, of one value per example, in units of 2**20 bytes.
    random_state : int, RandomState or None
        Seeds the order of examples.
    checkpoint
        As for `LaRank`.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.kernel._kernels import Gram, Kernel, Rows
    >>> from structsvm.kernel.problem import KernelProblem
    >>> from structsvm.solvers import CrammerSinger
    >>> gram = Gram(Kernel("rbf", gamma=1.0), Rows(np.array([[0.0], [1.0], [2.0]])))
    >>> problem = KernelProblem(gram, [0, 1, 2], 3)
    >>> CrammerSinger(C=1.0, random_state=0).solve(problem).status
    'converged'
    """

    C: float = parameter(POSITIVE, default=1.0, kw_only=False)

    takes_base = False
    needs = frozenset({"kernel", "zero-one loss", "independent labels"})

    def state_on(self, problem: Any, C: Any, first: Any, seed: Any) -> Any:
        if first:
            raise ValueError("CrammerSinger takes no base: it starts from 0")
        check_size(problem.n_samples, problem.n_labels)
        return FullGradient(problem.gram, problem.y, C, problem.n_labels, cache_size=self.cache_size, seed=seed)

    def schedule_on(self, state: Any) -> Any:
        return SolveSchedule(state, 0)

    def prepare_pass(self, run: Any) -> None:
        run.state.tau = SHARE * run.state.worst()
