"""Stochastic gradient descent on linear machines: SGD-QN, SVMSGD2, and averaged weights."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np

from structsvm.checkpoint import STATES, checked_state, counters
from structsvm.dual._schedules import SubgradientSchedule
from structsvm.dual.parallel import n_threads, parallel_map
from structsvm.linear._gradient_descent import LOSSES, METHODS, GradientDescent
from structsvm.linear.machines import MachineSchedule, parts_of
from structsvm.linear.problem import LinearProblem
from structsvm.parameters import (
    COUNT,
    FLAG,
    NONE,
    POSITIVE,
    Checkpoints,
    Jobs,
    Options,
    Seed,
    declared,
    parameter,
    seed_from,
)
from structsvm.solvers.base import Solver
from structsvm.solvers.run import Run
from structsvm.stored_values import Array

# The share of the examples on which t0 is chosen, their least number, and the factor from one t0 to the next.
SHARE, FEWEST_EXAMPLES, FACTOR, MOST_TRIALS = 0.1, 1000, 4.0, 20


STATES["descent"] = counters(3) | {
    "weights": Array("f4 f8", ("n_machines", "n_columns")),
    "curvature": Array("f4 f8", ("n_machines", "n_columns"), within=(0.0, None)),
    "rescaling": Array("f4 f8", ("n_machines", "n_columns"), within=(0.0, None)),
    "numbers": Array("f8", (4,), within=(0.0, None)),
    "descent": Array("f8", (2,), within=(0.0, None)),
}


class GradientRun(Run):
    """A run on the weights of linear machines."""

    seed: int

    @property
    def weights(self) -> Any:
        """Array (n_machines, n_features + 1), the last column the intercepts."""
        return self.state.weights(self.solver.average)

    def start_pass(self) -> None:
        if self.state.t0 == 0.0:
            self.state.set_t0(self.solver.chosen_t0(self.problem, self.C, self.seed))
        super().start_pass()
        self.state.restart_average()

    def certify(self) -> None:
        """The primal objective; there is no dual."""
        begin = time.perf_counter()
        self.primal = self.state.primal(averaged=self.solver.average)
        self.seconds += time.perf_counter() - begin

    def norms(self) -> tuple[Any, Any]:
        with np.errstate(over="ignore", invalid="ignore"):
            return 0.5 * float(np.sum(self.weights.astype(np.float64) ** 2)), np.nan


@declared
class SGDQNParameters:
    """The parameters that `SGDQN` and its classifier share."""

    alpha: float = parameter(POSITIVE, default=1e-4, kw_only=False)
    loss: str = parameter(Options(*LOSSES), default="squared_hinge")
    method: str = parameter(Options(*METHODS), default="sgdqn")
    t0: float | None = parameter(POSITIVE, NONE, default=None)
    average: bool = parameter(FLAG, default=False)
    fit_intercept: bool = parameter(FLAG, default=True)
    max_iter: int = parameter(COUNT, default=5)


@declared
class SGDQN(SGDQNParameters, Seed, Jobs, Checkpoints, Solver):
    """Stochastic gradient descent with a diagonal rescaling (thesis, chapter 3; Bordes, Bottou and Gallinari 2009).

    The rescaling is not the one printed there, which has a flaw that the authors' erratum reports (Bordes, Bottou,
    Gallinari, Chang and Smith, JMLR 11:2229-2240, 2010): see `method`.

    Minimises ``alpha / 2 |w|^2 + 1/n sum_i l(y_i <w, x_i>)``, for each label against the rest; of two labels, once.

    Parameters
    ----------
    alpha : float, default=1e-4
        The regularisation, lambda of the thesis; ``1 / (n C)`` in terms of C.
    loss : {"squared_hinge", "hinge", "smooth_hinge", "smooth_squared_hinge"}, default="squared_hinge"
        With u = max(0, 1 - s): ``u^2 / 2``, ``u``, and both made smooth over 0 < u < 1: ``u^2 / 2`` (beyond,
        ``u - 1/2``), ``u^3 / 6`` (beyond, ``u^2 / 2 - u / 2 + 1/6``).
    method : {"sgdqn", "svmsgd2", "sgdqn-2009"}, default="sgdqn"
        Whether the features are rescaled by the estimated diagonal of the Hessian, or all alike. "sgdqn-2009" averages
        the ratios of equation 3.7, as printed, which also rescales all features of dense data alike.
    t0 : float, optional
        The gain of visit t is ``1 / (t + t0)``, times 1 / alpha without rescaling. None: the one with which a pass over
        a tenth of the examples decreases the objective most.
    average : bool, default=False
        Return the average of the weights over the last pass, with gains that fall as ``t^(-3/4)`` (ASGD).
    fit_intercept : bool, default=True
        Give every example one more feature of value 1, whose weight is regularised like the others.
    max_iter : int, default=5
        Passes over the data.
    random_state : int, RandomState or None
    n_jobs : int, optional
        Threads that train, each some of the machines of three labels or more, with the same weights bit for bit; -1:
        all cores. Two labels have one machine, and one thread trains it.
    checkpoint
        As for `LaRank`.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.kernel._kernels import Rows
    >>> from structsvm.linear.problem import LinearProblem
    >>> from structsvm.solvers import SGDQN
    >>> problem = LinearProblem(Rows(np.array([[0.0, 1.0], [1.0, 0.0]])), [0, 1], 2)
    >>> SGDQN(alpha=0.01, max_iter=2, random_state=0).solve(problem).n_iter
    2
    """

    needs = frozenset({"feature rows"})
    tol = None

    @property
    def has_intercept(self) -> bool:
        return self.fit_intercept

    def formulation(self) -> Any:
        return LinearProblem.formulation

    def start(self, problem: Any, *, sample_weight: Any = None, base: Any = None) -> Any:
        """Return a fresh `GradientRun`; `base` holds the arrays of `GradientDescent.get_state` to start from."""
        weight = np.ones(problem.n_samples) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        seed = seed_from(self.random_state)
        state = self._state(problem, weight, seed, 0.0 if self.t0 is None else float(self.t0))
        if base is not None:
            state.restart(checked_state(base, {state.kind}))
        make = partial(self._state, problem, weight, seed, state.t0)
        parts = parts_of(state, n_threads(self.n_jobs), state.n_samples, make)
        schedule = SubgradientSchedule(state) if len(parts) < 2 else MachineSchedule(state, parts)
        run = GradientRun(self, problem, state, schedule, C=weight)
        run.seed = seed
        return run

    def _state(self, problem: Any, weight: Any, seed: Any, t0: Any, **part: Any) -> Any:
        return GradientDescent(
            problem.rows,
            problem.y,
            problem.n_labels,
            weight,
            ridge=float(self.alpha),
            t0=t0,
            loss=self.loss,
            method=self.method,
            intercept=self.fit_intercept,
            average=self.average,
            seed=seed,
            **part,
        )

    def chosen_t0(self, problem: Any, weight: Any, seed: Any) -> Any:
        """The t0 of section 3.2.3: the first value gives an example of mean length a step of length one; smaller
        values, or else larger ones, follow as long as they are better.
        """
        n = problem.n_samples
        rng = np.random.default_rng(seed)
        order = rng.permutation(n)[: max(min(n, FEWEST_EXAMPLES), int(SHARE * n))]
        data: Any = problem.rows.data[order]
        squares = data.multiply(data).sum() if problem.rows.is_sparse else np.einsum("ij,ij->", data, data)
        first = max(float(squares) / len(order), 1e-6) / self.alpha
        if not np.isfinite(first):
            raise ValueError("t0 is chosen by the squares of X, which overflow: scale the features down")

        def cost(t0: Any) -> Any:
            state = self._state(problem, weight, seed, t0)
            make = partial(self._state, problem, weight, seed, t0)
            parts = parts_of(state, n_threads(self.n_jobs), len(order), make)
            parallel_map(lambda part: part.run(order), parts, len(parts))
            # Averaged weights too: too long steps show first in the last weights.
            primal = state.primal(order)
            return primal if np.isfinite(primal) else np.inf

        best, least = first, cost(first)
        for factor in (1.0 / FACTOR, FACTOR):
            for k in range(1, MOST_TRIALS):
                found = cost(first * factor**k)
                if not found < least and np.isfinite(least):
                    break
                best, least = (first * factor**k, found) if found < least else (best, least)
            if best != first:
                break
        return best
