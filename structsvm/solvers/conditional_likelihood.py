"""Maximum conditional likelihood: the log loss of conditional random fields."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from structsvm.checkpoint import STATES, counters
from structsvm.dual._expectations import ExpectationState
from structsvm.dual._schedules import FrankWolfeSchedule
from structsvm.dual._weights import half_norm
from structsvm.parameters import COUNT, NONE, POSITIVE, Checkpoints, Jobs, Options, Seed, declared, parameter, seed_from
from structsvm.progress import Monitor
from structsvm.result import Result, relative_gap
from structsvm.solvers.base import DualSolver
from structsvm.solvers.run import AROUND, LEAST_GAP, SLICE_SECONDS, DualRun, check_rows
from structsvm.stored_values import Array

if TYPE_CHECKING:
    from structsvm.arrays import AnyArray, CheckedArray

# The gap of outputs known in part at which training ends: their objective is not convex, and L-BFGS soon there.
GAP_OF_MARGINAL = 0.01
# Passes get near the optimum in a few turns where C is small or features are many, and crawl where neither holds; steps
# of outputs known in part have no length that surely gains. After so many passes, at most, L-BFGS goes on, which needs
# 10 to 100 rounds.
USUAL_PASSES, PASSES_OF_MARGINAL, MOST_ROUNDS = 64, 16, 200
# Passes from one removal of their rounding to the next.
ROUNDED_PASSES = 8
# Steps that L-BFGS remembers, two vectors of float64 each, fewer where they and the vectors that it needs beside them
# would take more bytes than this; with fewer than `LEAST_MEMORY` it is left out.
MEMORY, LEAST_MEMORY, VECTORS, ROOM = 10, 3, 14, 5 << 29


STATES["expectations"] = counters(4) | AROUND | {
    "moments": Array("f4", ("n_moments",)),
    "entropy": Array("f8", ("n_samples",)),
    "least": Array("f8", ("n_samples",), within=(0.0, math.nextafter(1.0, 2.0)), needed=False),
    "C": Array("f8", ("n_samples",), within=(0.0, None)),
    "weights": Array("f4 f8", ("n_features",), needed=False),
    "objective": Array("f8", (1,), needed=False),
}  # fmt: skip


def remembered(n_features: int) -> int:
    """The number of steps that L-BFGS remembers of so many weights; 0: it would take too much memory."""
    steps = min(MEMORY, (ROOM // (8 * max(n_features, 1)) - VECTORS) // 2)
    return steps if steps >= LEAST_MEMORY else 0


class Point(NamedTuple):
    """A point of L-BFGS, in float64 and as weights, the objectives there, and the gradient of the primal."""

    w: NDArray[np.float64]
    weights: NDArray[Any]
    primal: float
    dual: float
    gradient: NDArray[np.float64]


class LikelihoodRun(DualRun):
    """A run on distributions over the outputs of each example."""

    causes = "expect returns a sum over some of the outputs only, or an expectation that is not the log-sum's gradient"
    n_support = 0  # every output has a part in the weights
    warns_of_gap = True
    least_gap = LEAST_GAP
    rounded_passes = ROUNDED_PASSES
    exact: Any = None  # weights after the last pass without the rounding of its steps, once they were needed
    polished: Any = None  # weights of L-BFGS, after the last pass
    dual_norm: Any = None  # 1/2 |u|^2 of their dual point, if it is the better one
    before: Any = None  # weights of L-BFGS for another C

    @property
    def gap_seen(self) -> float:
        """The relative gap from the examples' last visits: no extra work, and too small where some are long ago."""
        gap, dual = float(self.schedule.get_state().sum()), self.state.dual
        return 0.0 if gap <= 0.0 else gap / (dual + gap) if dual > 0.0 else 1.0

    @property
    def slack_rounding(self) -> float:
        # Both the log-sums and the moments of the dual are in the precision of weights.
        return 2.0 * super().slack_rounding

    def checked_certify(self) -> None:
        """As in `DualRun`; a dual that float32 moments lift above the primal is lowered by what rounding may be."""
        super().checked_certify()
        if self.dual > self.primal:
            self.dual -= max(self.slack_rounding, self.dual - self.primal)

    def primal_found_at(self, w: Any) -> float:
        """Nothing: no constraints are found."""
        return np.nan

    def primal_at(self, w: Any) -> Any:
        """The primal objective at weights `w`, by one round of the oracle."""
        self.state.count_argmax(self.problem.n_samples)
        return self.state.primal(w, self.rounds.losses(w))

    @property
    def is_near(self) -> bool:
        """Whether the gap is at most `least_gap`: the gap seen and, by one round, which renews it, the true one."""
        if self.gap_seen > self.least_gap:
            return False
        if np.isnan(self.primal):
            begin = time.perf_counter()
            self.exact, self.dual = self.state.exact()
            self.primal, shares = self.state.shares(self.exact)
            self.schedule.set_state(shares)
            self.seconds += time.perf_counter() - begin
        return relative_gap(self.primal, self.dual) <= self.least_gap

    def start_pass(self) -> None:
        self.primal, self.exact, self.polished, self.dual_norm = np.nan, None, None, None
        super().start_pass()

    def end_pass(self) -> float:
        return float(self.state.dual) if self.n_iter % self.rounded_passes else super().end_pass()

    def certify(self) -> None:
        """Compute the objectives, unless that has been done since the last pass."""
        if np.isnan(self.primal):
            begin = time.perf_counter()
            self.exact, self.dual = self.state.exact()
            self.primal = self.primal_at(self.exact)
            self.seconds += time.perf_counter() - begin

    @property
    def weights(self) -> Any:
        found = self.exact if self.polished is None else self.polished
        return super().weights if found is None else found

    def follow(self, before: Any) -> None:
        super().follow(before)
        self.before = before.polished

    def goes_on_from(self, before: Any) -> bool:
        goes_on = super().goes_on_from(before)
        if goes_on:  # a copy of the state forgets them when it is restored
            self._forget_shares(before.C)
        return goes_on

    def _forget_shares(self, C: NDArray[np.float64]) -> None:
        """Shares of the gap under another C say nothing: the next pass visits each example once."""
        if not np.array_equal(C, self.C):
            self.schedule.set_state(np.zeros(self.schedule.n_samples))

    def get_point(self) -> dict[str, AnyArray]:
        return self.get_state()

    def start_from(self, point: dict[str, AnyArray], rows: NDArray[np.intp]) -> None:
        check_rows(rows, self.problem.n_samples)
        self.state.start_from(point, rows)

    def minimise(self, tol: float, most: int, tick: Callable[[], object] = bool) -> bool:
        """Find better weights by L-BFGS; return whether the relative gap is at most `tol`, after `most` iterations.

        The point of the run stays as it is, so that passes can go on from there. Models so large that L-BFGS does not
        fit into `ROOM` are left as the passes have made them.
        """
        memory = remembered(self.problem.n_features)
        if not memory:
            return False
        from scipy.optimize import minimize

        state = self.state

        def evaluated(w: NDArray[np.float64]) -> Point:
            begin = time.perf_counter()
            weights = w.astype(self.problem.weight_dtype)
            point = Point(w.copy(), weights, *state.gradient(weights))
            self.seconds += time.perf_counter() - begin
            return point

        w0 = np.zeros(self.problem.n_features) if state.base is None else state.base
        starts = [np.asarray(w, dtype=np.float64) for w in (w0, state.weights, self.before) if w is not None]
        last = min(map(evaluated, starts), key=lambda point: point.primal)

        def objective(w: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            nonlocal last
            if not np.array_equal(w, last.w):
                last = evaluated(w)
            return last.primal, last.gradient

        def end_iteration(intermediate_result: Any) -> None:
            self.polished, self.primal = last.weights, last.primal
            if last.dual > self.dual or not self.has_dual:
                self.dual, self.dual_norm = last.dual, half_norm(last.weights - last.gradient)
            tick()
            if self.remaining <= tol:
                raise StopIteration

        options = {"maxiter": most, "maxfun": 2 * most, "ftol": 0.0, "gtol": 0.0, "maxcor": memory}
        minimize(objective, last.w, jac=True, method="L-BFGS-B", callback=end_iteration, options=options)
        return self.remaining <= tol

    def norms(self) -> tuple[float, float]:
        norm = half_norm(self.state.weights if self.exact is None else self.exact)
        return (
            norm if self.polished is None else half_norm(self.polished),
            norm if self.dual_norm is None else self.dual_norm,
        )

    def restore(self, arrays: dict[str, CheckedArray], *, adapt: bool) -> None:
        super().restore(arrays, adapt=adapt)
        if adapt:
            self._forget_shares(arrays["C"])


class MarginalRun(LikelihoodRun):
    """A run on outputs known in part, which its steps complete: see `structsvm.dual._expectations`.

    `dual` bounds the objective of the convex problem with the final distributions over the outputs that agree.
    """

    has_dual = False
    needs_rounds = True
    least_gap = GAP_OF_MARGINAL

    @property
    def is_near(self) -> bool:
        """Whether passes are done with."""
        return self.n_iter >= PASSES_OF_MARGINAL

    def advance(self, seconds: float = SLICE_SECONDS) -> bool:
        done = super().advance(seconds)
        if done:
            self.state.settle()
        return done

    def certify(self) -> None:
        if np.isnan(self.primal):
            begin = time.perf_counter()
            self.primal, self.dual, _ = self.state.gradient(self.state.weights)
            self.seconds += time.perf_counter() - begin

    def result(self) -> Result:
        return dataclasses.replace(super().result(), n_rounds=max(self.n_iter, 1))


@declared
class ConditionalLikelihood(Seed, Jobs, Checkpoints, DualSolver):
    """Conditional random fields: the log loss on any oracle that has `expect`.

    Minimises ``1/2 |w|^2 + C sum_i (log sum_y exp <w, Psi(x_i, y)> - <w, Psi(x_i, y_i)>)``, minus the log of the
    conditional likelihood of the true outputs and of a normal prior of variance C, in the dual.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the sum of losses. CRFsuite's ``c2`` is 1 / (2 C), the C of CRF++ is this one.
    sampling : {"uniform", "gap"}, default="gap"
        The examples that a pass visits; as for `FrankWolfe`.
    max_iter : int, optional
        Passes over the data. None: until the gap is at most 5 % of the objective, up to 64 (1 % and 16 where outputs
        are known in part); with `tol`, as many as needed, up to 1000. L-BFGS goes on from there, for up to 200
        iterations, which wins where passes crawl; of more than some 16 million weights, where it would take over 2.7
        GB, it is left out.
    tol : float, optional
        Relative duality gap, (primal - dual) / primal, to stop at; it is computed after every pass. None: no such test.
    random_state : int, RandomState or None
        Seeds the order of examples.
    n_jobs : int, optional
        Jobs for the certificate (see `structsvm.dual.parallel`); -1: all cores.
    checkpoint
        As for `LaRank`.

    Notes
    -----
    Block-coordinate Frank-Wolfe (Lacoste-Julien and others 2013, algorithm 4) whose corner is the distribution over all
    outputs under the current weights, not the best output; no step length to choose. The maximised dual counts
    the entropy of a mixture as the mixture of the entropies, which is less than in coordinate ascent (Le Priol
    and others 2018) and needs no marginals of pairs: a lower bound on the dual of the log loss, tight at the optimum.
    Each example's moments are stored: for a chain, one number per label of each token.

    The likelihood of a partly known output is the sum over all outputs that agree with it. The objective is then not
    convex; each step completes its example by the distribution over these outputs under the current weights, and the
    certificate is for the convex problem with the final distributions.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm import StructuredSVM
    >>> from structsvm.oracles.viterbi import ViterbiOracle
    >>> from structsvm.solvers import ConditionalLikelihood
    >>> X, Y = [np.array([[1.0], [-1.0]]), np.array([[2.0]])], [[1, 0], [1]]
    >>> solver = ConditionalLikelihood(C=1.0, tol=0.01, random_state=0)
    >>> StructuredSVM(ViterbiOracle(2, 1, loss="log"), solver).fit(X, Y).result_.status
    'converged'
    """

    C: float = parameter(POSITIVE, default=1.0, kw_only=False)
    sampling: str = parameter(Options("uniform", "gap"), default="gap")
    max_iter: int | None = parameter(COUNT, NONE, default=None)
    tol: float | None = parameter(POSITIVE, NONE, default=None)

    average = False
    is_likelihood = True
    rescaling = None
    penalty = "linear"
    needs = frozenset({"expectations"})
    keeps_signs = False
    takes_approximate = False
    state_kind = "expectations"
    run_type = LikelihoodRun
    marginal_type = MarginalRun
    usual_passes = USUAL_PASSES

    def is_settled(self, run: Any) -> bool:
        return self.max_iter is None and self.tol is None and run.is_near

    def finish(self, run: Any, monitor: Monitor) -> None:
        if self.max_iter is not None or run.status not in ("settled", "max_iter"):
            return
        tol = run.least_gap if self.tol is None else self.tol
        run.checked_certify()
        is_near = run.remaining <= tol or run.minimise(tol, MOST_ROUNDS, lambda: monitor.tick(run))
        run.status = "max_iter" if not is_near else "settled" if self.tol is None else "converged"
        run.record()

    def run_type_on(self, problem: Any) -> type[DualRun]:
        return self.marginal_type if "marginals" in problem.offers else self.run_type

    def state_on(self, problem: Any, C: Any, base: Any) -> Any:
        return ExpectationState(problem, C, seed=seed_from(self.random_state), base=base)

    def schedule_on(self, state: Any, rounds: Any, C: Any) -> Any:
        return FrankWolfeSchedule(state, gap_sampling=self.sampling == "gap")
