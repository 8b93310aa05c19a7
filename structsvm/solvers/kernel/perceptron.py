"""The multiclass kernel perceptron."""

from __future__ import annotations

from numbers import Real
from typing import Any

from structsvm.checkpoint import STATES, counters
from structsvm.dual._schedules import SubgradientSchedule
from structsvm.kernel._kernel_perceptron import KernelPerceptronState
from structsvm.kernel.problem import KernelProblem
from structsvm.kernel.support_vectors import SupportVectors
from structsvm.parameters import (
    COUNT,
    FLAG,
    NONE,
    POSITIVE,
    Checkpoints,
    Interval,
    Seed,
    declared,
    parameter,
    seed_from,
)
from structsvm.solvers.base import Solver
from structsvm.solvers.kernel.base import VECTORS, KernelRun

STATES["kernel_perceptron"] = counters(5) | VECTORS


class KernelPerceptronRun(KernelRun):
    """A run whose expansion may be an average."""

    @property
    def support_vectors(self) -> Any:
        return SupportVectors(*self.state.coefficients(self.solver.average))

    def start_pass(self) -> None:
        self.state.settle()
        super().start_pass()


@declared
class KernelPerceptronParameters:
    """The parameters that `KernelPerceptron` and its classifier share."""

    average: bool = parameter(FLAG, default=True)
    budget: int | None = parameter(COUNT, NONE, default=None)
    margin: float = parameter(Interval(Real, 0.0), default=0.0)
    max_iter: int = parameter(COUNT, default=10)
    cache_size: float = parameter(POSITIVE, default=200)


@declared
class KernelPerceptron(KernelPerceptronParameters, Seed, Checkpoints, Solver):
    """The kernel perceptron: no loss, no margin, no dual; a baseline.

    Parameters
    ----------
    average : bool, default=True
        Return the average of the expansions after each visit, which generalises better.
    budget : int, optional
        Maximum number of support patterns. Beyond it, the one whose class would be farthest ahead without it is removed
        (thesis, algorithm 4). Needs ``average=False``: an average contains all patterns that ever were.
    margin : float, default=0
        An example makes a step unless the score of its class is ahead of all others by more than this (with two
        classes twice the beta of algorithm 4).
    max_iter : int, default=10
        Passes over the data.
    cache_size, random_state, checkpoint
        As for `KernelLaRank`.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.kernel._kernels import Gram, Kernel, Rows
    >>> from structsvm.kernel.problem import KernelProblem
    >>> from structsvm.solvers import KernelPerceptron
    >>> gram = Gram(Kernel("rbf", gamma=1.0), Rows(np.array([[0.0], [1.0], [2.0]])))
    >>> problem = KernelProblem(gram, [0, 1, 2], 3)
    >>> KernelPerceptron(max_iter=2, random_state=0).solve(problem).n_iter
    2
    """

    needs = frozenset({"kernel", "independent labels"})
    tol = None
    C = 1.0  # sample weights are the lengths of steps

    def validate(self) -> None:
        super().validate()
        if self.budget is not None and self.average:
            raise ValueError(
                f"budget={self.budget} needs average=False: an average has all that ever were support vectors"
            )

    def formulation(self) -> Any:
        return KernelProblem.formulation

    def start(self, problem: Any, *, sample_weight: Any = None, base: Any = None) -> Any:
        """Return a fresh `KernelPerceptronRun`; `sample_weight` is the length of each example's steps."""
        state = KernelPerceptronState(
            problem.gram,
            problem.y,
            problem.n_labels,
            sample_weight,
            margin=self.margin,
            budget=self.budget or 0,
            cache_size=self.cache_size,
            seed=seed_from(self.random_state),
        )
        if base is not None:
            state.restart(*base)
        return KernelPerceptronRun(self, problem, state, SubgradientSchedule(state), C=sample_weight)
