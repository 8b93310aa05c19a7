"""The log loss with both norms: the elastic net of conditional random fields, most of whose weights are exactly 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from structsvm.dual._expectations import ExpectationState
from structsvm.parameters import POSITIVE, declared, parameter, seed_from
from structsvm.progress import Monitor
from structsvm.solvers.base import DualSolver
from structsvm.solvers.conditional_likelihood import ConditionalLikelihood, LikelihoodRun
from structsvm.solvers.run import DualRun

# Passes without `max_iter` and `tol`: thresholds slow the ascent down, and no L-BFGS ends it.
USUAL_PASSES = 200


class ElasticRun(LikelihoodRun):
    """A run whose weights are those of the moments with soft thresholds."""

    needs_rounds = True

    def minimise(self, tol: float, most: int, tick: Callable[[], object] = bool) -> bool:
        """Make up to `most` passes, until the relative gap is at most `tol`; return whether it is."""
        for _ in range(most):
            if self.gap_seen <= tol:
                break
            while not self.advance():
                tick()
        return self.gap_seen <= tol


@declared
class ElasticLikelihood(ConditionalLikelihood):
    """Conditional random fields with few weights: the log loss and both norms, on any oracle that has `expect`.

    Minimises ``1/2 |w|^2 + l1 |w|_1 + C sum_i (log sum_y exp <w, Psi(x_i, y)> - <w, Psi(x_i, y_i)>)`` in the dual.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the sum of losses. CRFsuite's ``c1`` is l1 / C, its ``c2`` 1 / (2 C).
    sampling, random_state, n_jobs, checkpoint
        As for `ConditionalLikelihood`.
    max_iter : int, optional
        Passes over the data. None: until the gap is at most 5 % of the objective, up to 200; with `tol`, as many as
        needed, up to 1000.
    tol : float, optional
        Relative duality gap, (primal - dual) / primal, to stop at. None: no such test.
    l1 : float, default=2.0
        Weight of the 1-norm, above 0.

    Notes
    -----
    The steps of `ConditionalLikelihood`, with the multipliers of the 1-norm as one more block of the dual: the weights
    are soft thresholds of the sums that the steps move (Shalev-Shwartz and Zhang, Accelerated proximal stochastic dual
    coordinate ascent, ICML 2014). `SparseLikelihood` has the 1-norm alone, which has no such dual. Outputs must be
    fully known, and training begins at weights of 0: there is no `partial_fit`.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm import StructuredSVM
    >>> from structsvm.oracles.viterbi import ViterbiOracle
    >>> from structsvm.solvers import ElasticLikelihood
    >>> X, Y = [np.array([[1.0], [-1.0]]), np.array([[2.0]])], [[1, 0], [1]]
    >>> solver = ElasticLikelihood(C=10.0, l1=2.0, tol=0.01, random_state=0)
    >>> model = StructuredSVM(ViterbiOracle(2, 1, loss="log"), solver).fit(X, Y)
    >>> model.result_.status, int((model.coef_ != 0).sum()), model.coef_.size
    ('converged', 3, 40)
    """

    l1: float = parameter(POSITIVE, default=2.0)

    takes_base = False
    leaves_zeros = True
    run_type = ElasticRun
    usual_passes = USUAL_PASSES

    def check(self, problem: Any) -> None:
        super().check(problem)
        if "marginals" in problem.offers:
            raise ValueError(
                f"{type(self).__name__} needs outputs that are fully known, and some of {problem.owner} are known in "
                "part: use ConditionalLikelihood"
            )

    def start(self, problem: Any, *, sample_weight: Any = None, base: Any = None) -> DualRun:
        if base is not None:
            raise ValueError(
                f"{type(self).__name__} begins at weights of 0, and has no partial_fit: the 1-norm is of the weights, "
                "not of what a batch changes; use ConditionalLikelihood"
            )
        run: DualRun = super().start(problem, sample_weight=sample_weight)
        return run

    def finish(self, run: Any, monitor: Monitor) -> None:
        """Do nothing: passes are all there is."""

    def state_on(self, problem: Any, C: Any, base: Any) -> Any:
        return ExpectationState(problem, C, seed=seed_from(self.random_state), l1=self.l1)

    def idle_C(self, problem: Any, *, sample_weight: Any = None) -> float:  # noqa: N802
        """The greatest C at which all weights stay 0: l1 over the largest derivative of the losses there."""
        return idle_C(self, problem, sample_weight, self.l1)


def idle_C(solver: DualSolver, problem: Any, sample_weight: Any, l1: float) -> float:  # noqa: N802
    """The greatest C at which a 1-norm of weight `l1` keeps all weights at 0."""
    state = ExpectationState(problem, solver.costs(problem, sample_weight) / solver.C, stores=False)
    _, gradient = state.losses(np.zeros(problem.n_features, dtype=problem.weight_dtype))
    if problem.possible is not None:
        gradient = gradient[problem.possible]
    largest = float(np.abs(gradient).max(initial=0.0))
    return l1 / largest if largest > 0.0 else 0.0
