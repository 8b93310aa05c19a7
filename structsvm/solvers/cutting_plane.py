"""SVMstruct (Tsochantaridis and others 2004): cutting planes, one slack per example or one for all of them."""

from __future__ import annotations

import time
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm.checkpoint import COUNTS, STATES
from structsvm.dual._cutting_plane import OneSlackProblem
from structsvm.dual._dual import DualState
from structsvm.dual.cutting_plane_schedules import NSlackSchedule, OneSlackSchedule
from structsvm.parameters import (
    COUNT,
    NONE,
    POSITIVE,
    Checkpoints,
    Interval,
    Jobs,
    Options,
    Seed,
    declared,
    parameter,
    seed_from,
)
from structsvm.result import relative_gap
from structsvm.solvers.base import PENALTY, RESCALING, DualSolver
from structsvm.solvers.run import CUTS, LEAST_GAP, DualRun
from structsvm.stored_values import Array

if TYPE_CHECKING:
    from structsvm.arrays import AnyArray, CheckedArray

# With a hard margin: rounds after which to check whether any weights are feasible, the largest rows times columns of
# that linear programme, and scipy's status for infeasible.
HARD_CHECKS = (5, 10, 20, 50, 100, 200, 500)
LARGEST_PROGRAMME = 10**8
INFEASIBLE = 2

# Number of times that one_slack optimises with an inactive constraint before dropping it.
IDLE_ROUNDS = 50


STATES["one_slack"] = CUTS | {
    "cut_idle": Array("i8", ("n_cuts",), within=COUNTS),
    "cache_terms": Array("f8", ("n_rounds", "n_samples", 2)),
    "cache_bounds": Array("i8", ("n_rounds", "n_samples+1")),
    "cache_words": Array("i4", ("words of cache",)),
    "cache_C": Array("f8", ("n_samples",), within=(0.0, None)),
}


class CuttingPlaneRun(DualRun):
    """A run whose certificate is also the oracle call of the next round."""

    shares_state = False

    def advance(self, *seconds: Any) -> Any:
        done = super().advance(*seconds)
        if done and self.solver.penalty is None and self.n_iter in HARD_CHECKS and self.schedule.joined:
            refuse_inseparable(self.state)
        return done

    def certify(self) -> None:
        begin = time.perf_counter()
        self.schedule.ask()
        if self.problem.has_primal:
            self.primal = self.schedule.primal
        else:
            self.primal_found = self.schedule.primal
        self.seconds += time.perf_counter() - begin

    def primal_at(self, w: Any) -> Any:
        if self.solver.form == "n_slack":
            return super().primal_at(w)
        self.state.count_argmax(self.rounds.problem.n_samples)
        return self.state.primal(w, np.array([self.C @ np.maximum(self.rounds.violations(w), 0.0)]))

    def schedule_arrays(self) -> dict[str, AnyArray]:
        return super().schedule_arrays() | self.schedule.get_arrays()

    def restore(self, arrays: dict[str, CheckedArray], *, adapt: bool) -> None:
        before = self.schedule.get_arrays()
        arrays = self.schedule.set_arrays(arrays, adapt)
        try:
            super().restore(arrays, adapt=adapt)
        except ValueError:
            self.schedule.set_arrays(before, False)
            raise

    @property
    def is_solved(self) -> Any:
        """Without a `tol`: no constraint joined in the last round, and the working sets are solved."""
        return self.solver.tol is None and self.schedule.joined == 0 and self.schedule.is_optimal


@declared
class CuttingPlane(Seed, Jobs, Checkpoints, DualSolver):
    """Batch training by cutting planes, to a certified optimum.

    In rounds: the oracle returns the most violated constraint of every example at the current weights, which also
    gives the exact primal objective; those violated by more than the example's slack plus `epsilon`
    join its working set; then the dual is optimised over all working sets.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the sum of slacks. SVMstruct divides by the number of examples: its C is n times this one.
    form : {"n_slack", "one_slack"}, default="n_slack"
        One slack per example (algorithm 1 of the paper), or one for all of them, whose constraints are sums over the
        examples (Joachims, Finley and Yu 2009; linear penalty only). Both have the same optimum. n_slack needs fewer
        rounds; one_slack stores few constraints for any number of examples.
    rescaling : {"margin", "slack"}, default="margin"
    penalty : {"linear", "quadratic", None}, default="linear"
        Slack penalty; None means a hard margin.
    epsilon : float, default=0.0
        Violations up to the slack plus epsilon are tolerated (in units of the loss); without a `tol` training ends when
        no constraint has more, and the dual over the working sets is solved to 1e-5, or to what epsilon admits.
    optimize : {"round", "constraint"}, default="round"
        When the dual is optimised over all working sets: after each round (an example's own set is optimised as soon
        as a constraint joins it), or, as in algorithm 1, after each constraint.
    qp_tol : float, default=0.05
        The dual is optimised over the working sets until the gap of that smaller problem is `qp_tol` times the whole
        gap (times the dual, if the gap is unknown) ...
    max_sweeps : int, default=6
        ... or for this many sweeps over them.
    max_iter : int or None, default=1000
        Maximum number of rounds. None: with `tol`, 1000; without, until a round raises the dual objective by at most
        2 % and the gap seen in it, which costs no call of the oracle, is at most 5 %, up to 100.
    tol : float or None, default=1e-3
        Relative duality gap, (primal - dual) / primal, to stop at. None: no such test.
    random_state : int, RandomState or None
        Seeds the order within sweeps.
    n_jobs : int or None
        Jobs that ask the oracle; see `structsvm.dual.parallel`. The model does not depend on it.
    checkpoint
        As for `LaRank`.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm import CuttingPlane, StructuredSVM
    >>> from structsvm.oracles.viterbi import ViterbiOracle
    >>> X, Y = [np.array([[1.0], [-1.0]]), np.array([[2.0]])], [[1, 0], [1]]
    >>> model = StructuredSVM(ViterbiOracle(2, 1), CuttingPlane(C=1.0, form="one_slack")).fit(X, Y)
    >>> model.result_.status
    'converged'
    """

    C: float = parameter(POSITIVE, default=1.0, kw_only=False)
    form: str = parameter(Options("n_slack", "one_slack"), default="n_slack")
    rescaling: str = parameter(*RESCALING, default="margin")
    penalty: str | None = parameter(*PENALTY, default="linear")
    epsilon: float = parameter(Interval(Real, 0.0), default=0.0)
    optimize: str = parameter(Options("round", "constraint"), default="round")
    qp_tol: float = parameter(POSITIVE, default=0.05)
    max_sweeps: int = parameter(COUNT, default=6)
    max_iter: int | None = parameter(COUNT, NONE, default=1000)
    tol: float | None = parameter(POSITIVE, NONE, default=1e-3)

    average = False
    run_type = CuttingPlaneRun

    takes_back = True
    usual_passes = 100  # five times LaRank's

    def is_settled(self, run: Any) -> bool:
        # The first rounds raise the dual by little, too, while it is far from the primal; with a small C, whose primal
        # hardly falls, it is near there while it rises.
        return super().is_settled(run) and relative_gap(run.schedule.primal, run.dual) <= LEAST_GAP

    def validate(self) -> None:
        super().validate()
        if self.form == "one_slack" and self.penalty != "linear":
            raise ValueError(
                "form='one_slack' needs penalty='linear': only a sum of slacks is a slack of sums. "
                f"Got penalty={self.penalty!r}; use form='n_slack'"
            )
        if self.form == "one_slack" and self.optimize != "round":
            raise ValueError("form='one_slack' has one constraint per round: leave optimize='round'")

    @property
    def state_kind(self) -> str:  # type: ignore[override]
        return "dual" if self.form == "n_slack" else "one_slack"

    def state_on(self, problem: Any, C: Any, base: Any) -> Any:
        if self.form == "n_slack":
            return super().state_on(problem, C, base)
        whole = OneSlackProblem(problem)
        return DualState(whole, np.ones(1), seed=seed_from(self.random_state), base=base, patience=IDLE_ROUNDS)

    def schedule_on(self, state: Any, rounds: Any, C: Any) -> Any:
        if self.form == "n_slack":
            return NSlackSchedule(self, state, rounds, float(np.sum(C)))
        return OneSlackSchedule(self, state, rounds, C)


def refuse_inseparable(state: Any) -> None:
    """Raise ValueError if no weights satisfy the constraints found so far, by a linear programme."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    if state.n_cuts * state.problem.n_features > LARGEST_PROGRAMME:
        return
    examples, b, rows = state.constraints()
    psi = csr_array(
        (
            np.concatenate([values for _, values in rows]),
            np.concatenate([indices for indices, _ in rows]),
            np.cumsum([0, *(len(values) for _, values in rows)]),
        ),
        shape=(len(rows), state.problem.n_features),
    )
    lowest = np.full(psi.shape[1], -np.inf)
    if state.problem.nonnegative is not None:
        lowest[state.problem.nonnegative] = 0.0
    bounds = np.column_stack([lowest, np.full(psi.shape[1], np.inf)])
    outcome = linprog(np.zeros(psi.shape[1]), A_ub=-psi, b_ub=-b, bounds=bounds, method="highs")
    if outcome.status == INFEASIBLE:
        raise ValueError(
            f"the data cannot be separated: no weights keep the {len(b)} constraints of "
            f"{len(np.unique(examples))} examples found so far, so penalty=None (a hard margin) has no solution; "
            "use penalty='linear' or 'quadratic'"
        )
