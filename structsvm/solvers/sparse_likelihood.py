"""The log loss with the 1-norm: conditional random fields most of whose weights are exactly 0.

    P(w) = l1 |w|_1 + l2 / 2 |w|^2 + sum_i C_i loss_i(w)
    D(p) = sum_i C_i H(p_i) - sum_j max(0, |u_j| - l1)^2 / (2 l2),      u = sum_i C_i F_i(p_i),

where p_i is a distribution over the outputs of example i, F_i(p_i) the expectation of Psi less Psi of the true output,
and with l2 = 0 every |u_j| is at most l1. At w, u(p_w) is the gradient of the sum of losses. Mixed with true outputs,

    p_i = s p_w + (1 - s) [y_i],    u = s u(p_w),

is feasible for s = l1 / max_j |u_j|, and its entropy follows from p_w(y_i) = exp(-loss_i) and H(p_w) alone:

    H(p_i) = h(1 - s (1 - p_w(y_i))) + (1 - p_w(y_i)) h(s) + s (H(p_w) - h(p_w(y_i))),      h(q) = -q log q.

So every round of expectations has a certificate of its own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from structsvm._warnings import warn
from structsvm.dual._expectations import ExpectationState
from structsvm.dual._weights import WeightState, half_norm
from structsvm.parameters import COUNT, NONE, POSITIVE, Checkpoints, Interval, Jobs, Seed, declared, parameter
from structsvm.result import ConvergenceWarning
from structsvm.solvers.base import FromZero
from structsvm.solvers.quasi_newton import Memory, steepest, within
from structsvm.solvers.run import SLICE_SECONDS, Run

if TYPE_CHECKING:
    from structsvm.arrays import Floats, Integers

# Without `max_iter` and `tol`: training ends once the gap is at most SPARSE_GAP, as weights reach 0 later than outputs
# settle, or after so many passes.
SPARSE_GAP, USUAL_PASSES = 0.01, 20
# Iterations of a pass, at whose end the memory is empty, and halvings of a step.
ITERATIONS, HALVINGS = 100, 20
# Weights at 0 take part in a pass if the gradient is above this share of l1.
NEAR = 0.9


class Point(NamedTuple):
    """Weights in the problem's precision, the objectives there, and the gradient of all but the 1-norm.

    The arrays have an entry per weight. All else that grows with steps has one per weight of the active set.
    """

    weights: Floats
    primal: float
    dual: float
    gradient: Floats


def beyond(values: Floats, bound: float) -> NDArray[np.bool_]:
    """Whether each value is larger in size than a bound."""
    return (values > bound) | (values < -bound)


class SparseObjective:
    """Both objectives of a problem, by one round of expectations."""

    def __init__(self, problem: Any, C: NDArray[np.float64], l1: float, l2: float) -> None:
        self.state = ExpectationState(problem, C, stores=False)
        self.C, self.l1, self.l2 = C, l1, l2
        self.fixed = None if problem.possible is None else ~problem.possible

    def at(self, weights: Floats) -> Point:
        """The point of weights, by one round of expectations."""
        losses, gradient = self.state.losses(weights)
        if self.fixed is not None:
            gradient[self.fixed] = 0.0
        inside = np.flatnonzero(weights)
        w = weights[inside].astype(np.float64)
        total = float(self.C @ losses)
        dual = self.dual(losses, gradient, total - float(w @ gradient[inside]))
        primal = self.l1 * float(np.abs(w).sum()) + total + self.state.constant
        if self.l2 > 0.0:
            primal += self.l2 * half_norm(w)
            gradient[inside] += self.l2 * w
        return Point(weights, primal, dual, gradient)

    def dual(self, losses: Floats, u: Floats, entropy: float) -> float:
        """The dual at the best mixture of p_w, of this entropy, and the true outputs."""
        from scipy.optimize import minimize_scalar  # the command line imports solvers
        from scipy.special import entr

        true = np.exp(-losses)
        others, rest = float(self.C @ (1.0 - true)), entropy - float(self.C @ entr(true))
        sizes = np.abs(u[beyond(u, self.l1)])
        largest = float(sizes.max(initial=self.l1))

        def value(s: float) -> float:
            excess = np.maximum(s * sizes - self.l1, 0.0)
            penalty = float(excess @ excess) / (2.0 * self.l2) if self.l2 > 0.0 else 0.0
            mixed = float(self.C @ entr(1.0 - s * (1.0 - true)))
            return mixed + others * float(entr(s)) + s * rest - penalty + self.state.constant

        feasible = self.l1 / largest if self.l1 > 0.0 else 0.0
        tried = [feasible]
        if self.l2 > 0.0 and feasible < 1.0:
            found = minimize_scalar(lambda s: -value(s), bounds=(feasible, 1.0), method="bounded")
            tried += [1.0, float(found.x)]
        return max(self.state.constant, *map(value, tried))


def largest(values: Floats, where: NDArray[np.bool_]) -> float:
    """The largest size of the values at some places."""
    return float(max(values.max(initial=0.0, where=where), -values.min(initial=0.0, where=where)))


class SparseState(WeightState):
    """The weights, and the best dual objective found."""

    dual = 0.0


class Passes:
    """The schedule of passes that visit all examples at once."""

    def __init__(self, n_samples: int) -> None:
        self.n_samples = self.next = n_samples

    def get_state(self) -> Floats:
        return np.empty(0)

    def set_state(self, numbers: Floats) -> None:
        self.next = self.n_samples


class SparseLikelihoodRun(Run):
    """A run whose passes are some iterations of OWL-QN each, on the weights that may leave 0."""

    causes = "expect returns a sum over some of the outputs only, or an expectation that is not the log-sum's gradient"
    has_dual = True
    needs_rounds = True
    warns_of_gap = True
    state: SparseState
    objective: SparseObjective

    def __init__(self, solver: Any, problem: Any, state: SparseState, objective: SparseObjective) -> None:
        super().__init__(solver, problem, state, Passes(problem.n_samples), C=objective.C)
        self.objective = objective
        self.point: Point | None = None
        self.stuck = False  # whether rounding hides what any step would gain
        self.steps: Iterator[None] | None = None

    @property
    def weights(self) -> Any:
        return self.state.weights.copy()

    @property
    def gap_seen(self) -> float:
        """The relative gap of the last point."""
        self.certify()
        return self.remaining

    @property
    def slack_rounding(self) -> float:
        return float(np.sum(self.C) * np.finfo(self.problem.weight_dtype).eps)

    def advance(self, seconds: float = SLICE_SECONDS) -> bool:
        begin = time.perf_counter()
        if self.steps is None:
            self.dual_before = self.state.dual
            self.steps = self._pass()
        try:
            for _ in self.steps:
                if time.perf_counter() - begin > seconds:
                    return False
        finally:
            self.seconds += time.perf_counter() - begin
        self.steps = None
        self.n_iter += 1
        self.certify()
        return True

    def certify(self) -> None:
        point = self._here()
        self.primal, self.dual = point.primal, self.state.dual

    def minimise(self, tol: float, most: int, tick: Any = bool) -> bool:
        """Make passes until the relative gap is at most `tol`, or `most` iterations; return whether it is."""
        self.goal = tol
        for _ in range(0, most, ITERATIONS):
            if self.gap_seen <= tol or self.stuck:
                break
            while not self.advance():
                tick()
        return self.gap_seen <= tol

    def resume(self) -> None:
        self.steps = None
        super().resume()

    def restore(self, arrays: Any, *, adapt: bool) -> None:
        super().restore(arrays, adapt=adapt)
        self.point, self.stuck, self.steps = None, False, None
        self.state.dual = 0.0 if adapt else max(float(arrays["run"][3]), 0.0)

    def norms(self) -> tuple[float, float]:
        return half_norm(self.state.weights), np.nan

    def _at(self, weights: Floats) -> Point:
        """The point of weights, counted."""
        point = self.objective.at(weights)
        self.state.count_argmax(self.problem.n_samples)
        self.state.dual = max(self.state.dual, point.dual)
        return point

    def _here(self) -> Point:
        if self.point is None:
            self.point = self._at(self.weights)
        return self.point

    def _pass(self) -> Iterator[None]:
        """Iterations on the weights that are not 0 or may leave it, until others would gain more."""
        objective, point = self.objective, self._here()
        yield
        is_chosen = (point.weights != 0.0) | beyond(point.gradient, NEAR * objective.l1)
        chosen, others = np.flatnonzero(is_chosen), ~is_chosen
        memory, goal = Memory(), self.goal or self.solver.tol or SPARSE_GAP
        for _ in range(ITERATIONS):
            if point.primal - self.state.dual <= goal * point.primal:
                return
            w, gradient = point.weights[chosen].astype(np.float64), point.gradient[chosen]
            slope = steepest(w, gradient, objective.l1)
            if np.abs(slope).max(initial=0.0) < largest(point.gradient, others) - objective.l1:
                return
            found = self._step(point, chosen, slope, memory.direction(slope))
            if found is None:
                self.stuck = not memory.pairs
                return
            memory.add(found.weights[chosen] - w, found.gradient[chosen] - gradient)
            self.point = point = found
            self.state.weights[:] = point.weights
            yield

    def _step(self, point: Point, chosen: Integers, slope: Floats, direction: Floats) -> Point | None:
        """The first point along the direction that gains enough, each half as far as the last; None: there is none."""
        w = point.weights[chosen].astype(np.float64)
        orthant, length = np.where(w == 0.0, -slope, w), 1.0
        for _ in range(HALVINGS):
            found = self._gaining(point, chosen, slope, within(w + length * direction, orthant))
            if found is not None:
                return found
            length *= 0.5
        return None

    def _gaining(self, point: Point, chosen: Integers, slope: Floats, values: Floats) -> Point | None:
        """The point with these values of the chosen weights, if it gains enough.

        Gains below what rounding of the objective hides are enough: the gradient is more precise.
        """
        moved = point.weights.copy()
        moved[chosen] = values
        found = self._at(moved)
        step = moved[chosen].astype(np.float64) - point.weights[chosen]
        rounding = float(np.finfo(self.problem.weight_dtype).eps) * abs(point.primal)
        is_enough = step.any() and found.primal <= point.primal + 1e-4 * float(slope @ step) + rounding
        return found if is_enough else None


@declared
class SparseLikelihood(Seed, Jobs, Checkpoints, FromZero):
    """Conditional random fields with few weights: the log loss and the 1-norm, on any oracle that has `expect`.

    Minimises ``l1_ratio |w|_1 + (1 - l1_ratio) / 2 |w|^2 + C sum_i (log sum_y exp <w, Psi(x_i, y)> - <w, Psi(x_i,
    y_i)>)``.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the sum of losses. CRFsuite's ``c1`` is l1_ratio / C, its ``c2`` (1 - l1_ratio) / (2 C).
    l1_ratio : float, default=1.0
        Share of the 1-norm in the penalty, above 0 (`ConditionalLikelihood` minimises without it) and at most 1.
    max_iter : int, optional
        Passes, of up to 100 iterations of OWL-QN each. None: until the gap is at most 1 % of the objective, up to 20;
        with `tol`, up to 1000.
    tol : float, optional
        Relative duality gap, (primal - dual) / primal, to stop at. None: no such test.
    random_state, n_jobs
        As for other solvers; nothing is random here, and the rounds run in one thread.
    checkpoint
        As for `LaRank`.

    Notes
    -----
    OWL-QN (Andrew and Gao 2007), on the weights that are not 0 or whose gradient is near or above the 1-norm's. Other
    weights cost nothing but their gradient. The certificate mixes the distributions under w with the true outputs until
    no gradient is above the norm's. With a small C all weights are 0. Outputs must be fully known, and training begins
    at weights of 0: there is no `partial_fit`.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm import StructuredSVM
    >>> from structsvm.oracles.viterbi import ViterbiOracle
    >>> from structsvm.solvers import SparseLikelihood
    >>> X, Y = [np.array([[1.0], [-1.0]]), np.array([[2.0]])], [[1, 0], [1]]
    >>> model = StructuredSVM(ViterbiOracle(2, 1, loss="log"), SparseLikelihood(C=2.0, tol=0.01)).fit(X, Y)
    >>> model.result_.status, int((model.coef_ != 0).sum()), model.coef_.size
    ('converged', 2, 40)
    """

    C: float = parameter(POSITIVE, default=1.0, kw_only=False)
    l1_ratio: float = parameter(Interval(Real, 0.0, 1.0, closed="right"), default=1.0)
    max_iter: int | None = parameter(COUNT, NONE, default=None)
    tol: float | None = parameter(POSITIVE, NONE, default=None)

    average = False
    is_likelihood = True
    rescaling = None
    penalty = "linear"
    needs = frozenset({"expectations"})
    keeps_signs = False
    takes_approximate = False
    state_kind = "weights"
    usual_passes = USUAL_PASSES

    @property
    def norm_weight(self) -> float:
        return self.l1_ratio

    def is_settled(self, run: Any) -> bool:
        return run.stuck or (self.max_iter is None and self.tol is None and run.gap_seen <= SPARSE_GAP)

    def finish(self, run: Any, monitor: Any) -> None:
        if run.stuck and self.tol is not None and run.gap_seen > self.tol:
            warn(
                f"SparseLikelihood stopped at a relative gap of {run.remaining:.3g}, above tol={self.tol:g}: the "
                f"precision of {run.problem.weight_dtype} hides what more passes would gain; loosen tol",
                ConvergenceWarning,
            )

    def start_at_zero(self, problem: Any, sample_weight: Any) -> SparseLikelihoodRun:
        objective = SparseObjective(problem, self.costs(problem, sample_weight), self.l1_ratio, 1.0 - self.l1_ratio)
        return SparseLikelihoodRun(self, problem, SparseState(problem), objective)

    def schedule_on(self, state: Any, rounds: Any, C: Any) -> Passes:
        return Passes(state.n_samples)
