"""The base of all solvers: parameters, requirements on a problem, and the loop over passes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structsvm._problem import BoundProblem
from structsvm._warnings import warn
from structsvm.checkpoint import CheckpointWriter
from structsvm.dual._dual import DualState
from structsvm.dual._expectations import ExpectationState
from structsvm.dual.parallel import Rounds, in_own_threads, n_threads
from structsvm.dual.threads import ThreadedSchedule
from structsvm.parameters import FLAG, NONE, Options, Parameters, declared, parameter, seed_from
from structsvm.progress import Monitor, Monitors
from structsvm.result import ConvergenceWarning
from structsvm.solvers.run import DualRun, Run

# Maximum number of passes if only `tol` ends training.
PASSES_TO_TOL = 1000

# Without `max_iter` and `tol`: training in the dual ends with the pass that raises it by at most this share of it, or
# after `usual_passes`.
LEAST_GAIN = 0.02

# Constraints of parameters of the dual.
RESCALING = (Options("margin", "slack"),)
OF_NORM = (
    "It is the penalty of slacks; margins have the squared norm of weights. The 1-norm and both norms go with the log "
    "loss: SparseLikelihood, for sequences solver='sparse_likelihood'; or ElasticLikelihood, 'elastic_likelihood'."
)
PENALTY = (Options("linear", "quadratic", instead=dict.fromkeys(("l1", "elasticnet", "elastic_net"), OF_NORM)), NONE)

# Offers of a problem that are withdrawn if its true outputs are known in part, and not completed.
UNCOMPLETED = frozenset({"constraints"})


@declared
class Deterministic:
    """Whether the model is bit-identical for every `n_jobs`."""

    deterministic: bool = parameter(FLAG, default=True)


class Solver(Parameters, ABC):
    """Base of the solvers.

    A subclass declares its parameters (`structsvm.parameters.declared`), and says what state it works on and which
    schedule drives it (`start`); `solve` does the rest.

    Attributes
    ----------
    needs : frozenset of str
        Offers that a problem must have (see `BoundProblem`), beside the solver's formulation.
    keeps_signs : bool
        Whether it keeps weights >= 0 that a problem declares `nonnegative`.
    most_passes : int
        Number of passes up to which training goes on, one by one, while the gap at which it would end is wide.
    takes_approximate : bool
        Whether `tol` ends training with approximate inference too, when the constraints found promise no more.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm import LaRank
    >>> from structsvm.oracles.viterbi import ViterbiOracle
    >>> problem = ViterbiOracle(2, 1).bind([np.array([[1.0], [-1.0]])], [[1, 0]])
    >>> LaRank(C=1.0, tol=0.01, random_state=0).solve(problem).status
    'converged'
    """

    needs: frozenset[str] = frozenset()
    keeps_signs = False
    takes_approximate = False
    leaves_zeros = False  # whether weights that are not possible stay 0
    completes = False  # whether outputs may be known in part, and are completed
    is_likelihood = False  # whether it minimises the log loss
    maximises_dual = False  # whether it maximises a dual with explicit weights, in which examples have weights
    takes_back = False  # whether steps can lower multipliers that others have raised
    usual_passes: int  # without `max_iter` and `tol`, if these may be None
    least_passes: float = 0  # before it may settle
    most_passes = 0

    max_iter: Any
    tol: Any = None
    takes_base = True  # whether `start` takes a point to start from
    rescaling: str | None = "margin"
    finishing = False  # whether a certificate changes the model
    random_state: Any = 0
    n_jobs: int | None
    deterministic: bool = True
    checkpoint: Any

    @property
    def inner(self) -> Any:
        """The solver itself; of one that wraps another, the wrapped one."""
        return self

    @property
    def gap_tol(self) -> float | None:
        """The relative duality gap to stop at, or None."""
        return self.tol

    @property
    def n_passes(self) -> Any:
        """Maximum number of passes of `solve`."""
        if self.max_iter is not None:
            return self.max_iter
        return self.usual_passes if self.tol is None else PASSES_TO_TOL

    def is_settled(self, run: Run) -> bool:
        """Whether more passes would not help, if nothing else sets their number."""
        return False

    def finish(self, run: Run, monitor: Monitor) -> None:
        """Go on after the last pass by what leads further than more of them would: by nothing, here."""

    @abstractmethod
    def start(self, problem: Any, *, sample_weight: Any = None, base: Any = None) -> Any:
        """Return a fresh `Run` on a bound problem.

        Parameters
        ----------
        problem : Problem
        sample_weight : ndarray of shape (n_samples,), optional
            Factor on each example's C.
        base : ndarray of shape (n_features,), optional
            Weights to start from.
        """

    def idle_C(self, problem: Any, *, sample_weight: Any = None) -> float:  # noqa: N802
        """The greatest C at which all weights stay 0; 0: there is none."""
        return 0.0

    @abstractmethod
    def formulation(self) -> dict[str, Any]:
        """The arguments for `Oracle.bind` that this solver needs."""

    def in_threads(self, state: Any, C: Any, schedule_on: Callable[[Any], Any], threads: int | None = None) -> Any:
        """The schedule of a state in so many threads; None: `n_jobs`, if the solver need not be deterministic."""
        if threads is None:
            threads = 1 if self.deterministic else n_threads(self.n_jobs)
        threads = min(threads, state.n_samples)
        return schedule_on(state) if threads < 2 else ThreadedSchedule(state, C, threads, schedule_on)

    def check(self, problem: BoundProblem) -> None:
        """Raise TypeError or ValueError, naming what is missing, unless the problem offers what the solver needs."""
        solver = type(self).__name__
        if not isinstance(problem, BoundProblem):
            raise TypeError(f"{solver} solves a bound problem, got {type(problem).__name__}; see Oracle.bind")
        name = problem.owner
        missing = self.needs - problem.offers
        if missing:
            raise ValueError(
                f"{solver} needs a problem with {', '.join(sorted(self.needs))}; "
                f"this {name} does not offer {', '.join(sorted(missing))}"
                + ("; its outputs are known in part, which LatentSVM trains on" if missing == UNCOMPLETED else "")
            )
        wanted = self.formulation()
        if wanted["rescaling"] is None:
            wanted["penalty"] = problem.formulation["penalty"]  # constraints are not used
        if problem.formulation != wanted:
            raise ValueError(
                f"{solver} solves {wanted}, but {name} was bound with {problem.formulation}; "
                "bind with **solver.formulation()"
            )
        if problem.nonnegative is not None and not self.keeps_signs:
            raise ValueError(
                f"{solver} cannot keep weights >= 0, and {name} declares {len(problem.nonnegative)} of "
                f"{problem.n_features} nonnegative; LaRank, CuttingPlane, FrankWolfe, PassiveAggressive and Perceptron "
                "can"
            )
        if problem.possible is not None and not self.leaves_zeros:
            raise ValueError(
                f"{solver} trains all weights, and some of {name} stay 0: use SparseLikelihood, which leaves them"
            )
        if self.gap_tol is not None and not problem.has_primal and not self.takes_approximate:
            raise ValueError(
                f"{solver} with tol={self.gap_tol} needs a duality gap, and the inference of {name} is approximate; "
                "set tol=None and choose max_iter"
            )

    @in_own_threads
    def solve(
        self,
        problem: BoundProblem,
        *,
        sample_weight: NDArray[np.float64] | None = None,
        base: Any = None,
        run: Run | None = None,
        monitor: Monitor | None = None,
        passes: int | None = None,
    ) -> Any:
        """Train on a bound problem.

        Parameters
        ----------
        problem : Problem
        sample_weight, base : see `start`
        run : Run, optional
            A run of this problem to resume.
        monitor : Monitor, optional
            Watches the run, and may stop it after a pass.
        passes : int, optional
            Passes to do in this call, after which no warning is raised; default `n_passes`.

        Returns
        -------
        Run
            With `status` set. Ctrl-C ends training with the status "interrupted" and a usable state: call
            `raise_if_interrupted` once the model is stored.
        """
        self.validate()
        self.check(problem)
        if problem.n_samples == 0:
            raise ValueError("there are no examples to train on")
        last = (0 if run is None else run.n_iter) + (self.n_passes if passes is None else passes)
        run = self.start(problem, sample_weight=sample_weight, base=base) if run is None else run
        monitor = Monitor() if monitor is None else monitor
        if self.checkpoint is not None:
            given = self.checkpoint
            writer = given if isinstance(given, CheckpointWriter) else CheckpointWriter(given)
            last = writer.restore(run, last)
            monitor = Monitors(writer, monitor)
        run.resume()
        try:
            while run.status == "running":
                self._one_pass(run, monitor, may_settle=passes is None)
                if run.status == "running" and run.n_iter >= last:
                    run.status = "max_iter"
            if passes is None:
                self.finish(run, monitor)
            if self.gap_tol is None:
                run.checked_certify()
                run.record()
        except KeyboardInterrupt:
            run.interrupt()
        finally:
            monitor.close()
            run.close()
        if run.status == "max_iter" and self.gap_tol is not None and passes is None:
            of_found = "" if run.problem.has_primal else " of the constraints found"
            warn(
                f"{type(self).__name__} stopped after {run.n_iter} passes at a relative gap{of_found} of "
                f"{run.remaining:.3g}, above tol={self.gap_tol:g}: raise max_iter, or loosen tol",
                ConvergenceWarning,
            )
        return run

    def _one_pass(self, run: Run, monitor: Monitor, *, may_settle: bool) -> None:
        """A pass, or the rest of an unfinished one; with `tol`, its certificate."""
        done = False
        run.primal = run.primal_found = np.nan
        monitor.begin_pass(run)
        while not done:
            done = run.advance()
            if done and self.gap_tol is not None:
                run.checked_certify()
                if run.remaining <= self.gap_tol:
                    run.status = "converged" if run.problem.has_primal else "settled"
            if done and run.is_solved and run.status == "running":  # a run may have set its status itself
                run.status = "converged"
            elif done and may_settle and run.status == "running" and self.is_settled(run):
                run.status = "settled"
            run.record()
            monitor.tick(run)
        if monitor.end_pass(run) and run.status == "running":
            run.status = "stopped"


def raise_if_interrupted(run: Run) -> None:
    """Re-raise KeyboardInterrupt after the partial model has been stored."""
    if run.status == "interrupted":
        raise KeyboardInterrupt(
            f"training was interrupted after {run.progress:.1f} passes; the estimator holds the model as it was then, "
            "and warm_start=True, where it has that, resumes from it"
        )


class DualSolver(Solver):
    """Base of the solvers of the dual: what C, rescaling and penalty mean to all of them."""

    C: float
    penalty: str | None
    average: bool

    maximises_dual = True
    needs = frozenset({"constraints"})
    keeps_signs = True
    takes_approximate = True
    state_kind = "dual"  # the kind of `state_on`
    run_type: type[DualRun] = DualRun

    @property
    def most_passes(self) -> int:  # type: ignore[override]
        return self.usual_passes

    def is_settled(self, run: Run) -> bool:
        is_open = self.max_iter is None and self.tol is None and run.n_iter >= self.least_passes
        return is_open and run.gain <= LEAST_GAIN

    def formulation(self) -> dict[str, Any]:
        return {"rescaling": self.rescaling, "penalty": self.penalty}

    def start(self, problem: Any, *, sample_weight: Any = None, base: Any = None) -> Any:
        C = self.costs(problem, sample_weight)
        rounds = Rounds(problem, self.n_jobs)
        state = self.state_on(problem, C, base)
        schedule = self.schedule_of(state, rounds, C)
        if isinstance(schedule, ThreadedSchedule):
            rounds.copies = list(schedule.problems)
        return self.run_type_on(problem)(self, problem, state, schedule, rounds, C=C)

    def costs(self, problem: Any, sample_weight: Any) -> NDArray[np.float64]:
        """Each example's C: array (n_samples,). Raises ValueError unless the weights are finite and >= 0."""
        C = np.full(problem.n_samples, float(self.C))
        if sample_weight is not None:
            weight = np.asarray(sample_weight, dtype=np.float64)
            if weight.shape != C.shape or not (np.isfinite(weight).all() and (weight >= 0.0).all()):
                raise ValueError(
                    f"sample_weight must be {len(C)} finite numbers >= 0, one per example, got shape {weight.shape}"
                )
            C *= weight
        return C

    def run_type_on(self, problem: Any) -> type[DualRun]:
        """The type of runs on a problem."""
        return self.run_type

    def schedule_of(self, state: Any, rounds: Any, C: Any, threads: int | None = None) -> Any:
        """The schedule of `schedule_on`, in threads as `in_threads` has them."""
        return self.in_threads(state, C, lambda part: self.schedule_on(part, rounds, C), threads)

    def state_on(self, problem: Any, C: Any, base: Any) -> Any:
        """The dual state that the solver works on."""
        return DualState(problem, C, **self._state_options(base))

    def _state_options(self, base: Any) -> dict[str, Any]:
        averaging = "linear" if self.average else None
        return {"seed": seed_from(self.random_state), "averaging": averaging, "base": base}

    @abstractmethod
    def schedule_on(self, state: Any, rounds: Any, C: Any) -> Any:
        """The schedule that drives it."""


class FromZero(DualSolver):
    """Base of the solvers of a log loss with the 1-norm, whose weights begin at 0 and mostly stay there."""

    takes_base = False
    leaves_zeros = True

    @property
    @abstractmethod
    def norm_weight(self) -> float:
        """Weight of the 1-norm."""

    def check(self, problem: BoundProblem) -> None:
        super().check(problem)
        if "marginals" in problem.offers:
            raise ValueError(
                f"{type(self).__name__} needs outputs that are fully known, and some of {problem.owner} are known in "
                "part: use ConditionalLikelihood"
            )

    def start(self, problem: Any, *, sample_weight: Any = None, base: Any = None) -> Any:
        if base is not None:
            raise ValueError(
                f"{type(self).__name__} begins at weights of 0, and has no partial_fit: the 1-norm is of the weights, "
                "not of what a batch changes; use ConditionalLikelihood"
            )
        return self.start_at_zero(problem, sample_weight)

    def start_at_zero(self, problem: Any, sample_weight: Any) -> Any:
        """Return a fresh run, see `start`."""
        return super().start(problem, sample_weight=sample_weight)

    def idle_C(self, problem: Any, *, sample_weight: Any = None) -> float:  # noqa: N802
        """The greatest C at which all weights stay 0: the norm's weight over the largest derivative of the losses."""
        state = ExpectationState(problem, self.costs(problem, sample_weight) / self.C, stores=False)
        _, gradient = state.losses(np.zeros(problem.n_features, dtype=problem.weight_dtype))
        if problem.possible is not None:
            gradient = gradient[problem.possible]
        largest = float(np.abs(gradient).max(initial=0.0))
        return self.norm_weight / largest if largest > 0.0 else 0.0
