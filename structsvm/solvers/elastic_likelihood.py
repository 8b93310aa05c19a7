"""The log loss with both norms: the elastic net of conditional random fields, most of whose weights are exactly 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from structsvm.dual._expectations import ExpectationState
from structsvm.parameters import POSITIVE, declared, parameter, seed_from
from structsvm.progress import Monitor
from structsvm.solvers.base import FromZero
from structsvm.solvers.conditional_likelihood import ConditionalLikelihood, LikelihoodRun

# Passes without `max_iter` and `tol`: thresholds slow the ascent down, and no L-BFGS ends it.
USUAL_PASSES = 200


class ElasticRun(LikelihoodRun):
    """A run whose weights are those of the moments with soft thresholds."""

    needs_rounds = True
    rounded_passes = 1  # thresholds follow the moments

    def minimise(self, tol: float, most: int, tick: Callable[[], object] = bool) -> bool:
        """Make up to `most` passes, until the relative gap is at most `tol`; return whether it is."""
        for _ in range(most):
            if self.gap_seen <= tol:
                break
            while not self.advance():
                tick()
        return self.gap_seen <= tol


@declared
class ElasticLikelihood(FromZero, ConditionalLikelihood):
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

    run_type = ElasticRun
    usual_passes = USUAL_PASSES

    @property
    def norm_weight(self) -> float:
        return self.l1

    def finish(self, run: Any, monitor: Monitor) -> None:
        """Do nothing: passes are all there is."""

    def state_on(self, problem: Any, C: Any, base: Any) -> Any:
        return ExpectationState(problem, C, seed=seed_from(self.random_state), l1=self.l1)
