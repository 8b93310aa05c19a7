"""The multiclass kernel perceptron."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from structsvm.dual._schedules import PerceptronSchedule
from structsvm.kernel._kernel_perceptron import KernelPerceptron as PerceptronState
from structsvm.kernel.problem import KernelProblem
from structsvm.parameters import FLAG, POSITIVE, Interval, seed_from
from structsvm.solvers.base import Run, Solver


class KernelPerceptronRun(Run):
    """A run without a dual; its weights are the coefficients of an expansion."""

    @property
    def weights(self):
        return self.state.coefficients(self.use_average)

    def start_pass(self):
        self.state.settle()
        super().start_pass()

    @property
    def n_support(self):
        return self.state.n_vectors

    @property
    def intercept(self):
        return np.zeros(self.problem.n_labels)

    def norms(self):
        return np.nan, np.nan


class KernelPerceptron(Solver):
    """The kernel perceptron: no loss, no margin, no dual; a baseline.

    Parameters
    ----------
    average : bool, default=True
        Return the average of the expansions after each visit, which generalises better.
    max_iter : int, default=10
        Passes over the data.
    cache_size, random_state, checkpoint, checkpoint_every : see `KernelLaRank`
    """

    tol = None

    _constraints = Solver._constraints | {
        "average": FLAG,
        "cache_size": POSITIVE,
        "max_iter": Interval(Integral, 1),
    }

    def __init__(
        self,
        *,
        average=True,
        max_iter=10,
        cache_size=200,
        random_state=None,
        checkpoint=None,
        checkpoint_every=1,
    ):
        self.average = average
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every

    def formulation(self):
        return KernelProblem.formulation

    def start(self, problem, *, sample_weight=None, base=None):
        if sample_weight is not None or base is not None:
            raise ValueError("KernelPerceptron takes no sample_weight: its steps have no weight to scale")
        state = PerceptronState(
            problem.gram,
            problem.y,
            problem.n_labels,
            cache_size=self.cache_size,
            seed=seed_from(self.random_state),
        )
        return KernelPerceptronRun(self, problem, state, PerceptronSchedule(state))
