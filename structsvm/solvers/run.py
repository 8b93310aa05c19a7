"""A run of a solver: passes, history, certificates, its state, and how it ends."""

from __future__ import annotations

import math
import time
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm.adapter import OracleError
from structsvm.checkpoint import (
    COST,
    EXAMPLES,
    STATES,
    as_array,
    check_formulation,
    checked_state,
    counters,
    formulation_array,
)
from structsvm.dual._threads import costs
from structsvm.dual._weights import copied, half_norm
from structsvm.dual.exchanges import LostError
from structsvm.dual.members import SharedWeights
from structsvm.result import History, Result, relative_gap
from structsvm.stored_values import Array, Table, optional

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from structsvm.arrays import AnyArray, CheckedArray

# Seconds between checks of the clock, signals and the monitor: often enough for Ctrl-C and a progress bar.
SLICE_SECONDS = 0.05

# Without `max_iter` and `tol`: the gap, as a share of the primal, at which a dual that is not LaRank's has been raised
# enough. From there on held-out scores move no more than by chance.
LEAST_GAP = 0.05

# Rounding may put a dual above its primal by this fraction of the larger of them; more is an error.
ROUNDING = 1e-6

# From so many examples on, a certificate compares the last weights and their average by growing shares of them, and
# drops the worse one once they differ by that many standard deviations (examples may be decisions, a few of which go
# together).
MANY_EXAMPLES, SHARES, CERTAINTY = 2048, (0.0, 0.125, 0.25, 0.5, 1.0), 5.0


class Run:
    """A training run that can be left between any two examples and resumed.

    Attributes
    ----------
    problem : BoundProblem
    state : State
    schedule : Schedule
    C : ndarray of shape (n_samples,) or None
        Weight of each example's slack, if there is one.
    has_dual : bool
        Whether the run maximises a dual objective.
    n_iter : int
        Complete passes.
    status : str
        As in `Result`; "running" before the end.
    dual_before : float
        The dual objective at the beginning of the last pass.
    causes : str
        Faults of an oracle that lead to a dual above the primal.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm import LaRank
    >>> from structsvm.oracles.viterbi import ViterbiOracle
    >>> run = LaRank(C=0.1).start(ViterbiOracle(2, 1).bind([np.array([[1.0], [-1.0]])], [[0, 1]]))
    >>> run.advance(), run.result().dual > 0.0
    (True, True)
    """

    causes = (
        "argmax misses the most violated output (then set inference = 'approximate'), the loss of the true output "
        "itself is not 0, or loss or joint_feature return something else for the same input and output at another time"
    )
    has_dual = False
    dual_before = 0.0
    primal_found = np.nan  # with approximate inference: the primal objective of the constraints found alone
    least_passes = 0  # over each C on the path to one
    needs_rounds = False  # whether passes alone do not end near the optimum, nor tell
    goal: float | None = None  # relative gap at which rounds end on the path to a C; None: the solver's
    warns_of_gap = False  # whether a wide gap after the usual passes is worth a warning
    farthest = 0.5  # the `distance` from which on it is wide
    near = 0.5  # and to which passes beyond the usual ones lead then
    is_trial = False  # whether it was to choose C, on a part of the examples
    carries = True  # whether a run with another C starts from this one on that path

    def __init__(self, solver: Any, problem: Any, state: Any, schedule: Any, *, C: Any = None) -> None:
        self.solver, self.problem, self.state, self.schedule, self.C = solver, problem, state, schedule, C
        self.history = History()
        self.n_iter = 0
        self.seconds = 0.0
        self.status = "running"
        self.primal = self.dual = np.nan

    @property
    def last_solver(self) -> Any:
        """The solver that the state comes from: of rounds of completions that of the last round."""
        return self.solver

    @property
    def progress(self) -> float:
        """Passes done, the current one as a fraction."""
        n = self.schedule.n_samples
        return self.n_iter + (self.schedule.next / n if 0 < self.schedule.next < n else 0.0)

    def advance(self, seconds: float = SLICE_SECONDS) -> bool:
        """Work for about `seconds`; return whether a pass has just been completed."""
        if self.schedule.next >= self.schedule.n_samples:
            self.start_pass()
        begin = time.perf_counter()
        try:
            done = self.schedule.run(seconds)
            if done:
                self.n_iter += 1
                if self.has_dual:
                    self.dual = self.end_pass()
        finally:
            self.seconds += time.perf_counter() - begin
        return done

    def start_pass(self) -> None:
        """Begin a pass; `advance` goes through it."""
        if self.has_dual:
            self.dual_before = self.state.dual
        self.schedule.start_pass(self.n_iter)

    def end_pass(self) -> float:
        """Remove the rounding of a pass from the weights and the dual objective, which is returned."""
        return float(self.state.settle())

    def certify(self) -> None:
        """After a pass: compute the objectives that the run claims; none here."""

    def checked_certify(self) -> None:
        """`certify`; raises the error of `contradiction` if the dual is above the primal by more than rounding."""
        self.certify()
        excess = self.dual - self.primal - ROUNDING * max(abs(self.primal), abs(self.dual))
        if excess > 0.0 and excess > self.slack_rounding:
            raise self.contradiction(f"the dual objective {self.dual:.6g} is above the primal {self.primal:.6g}")

    @property
    def slack_rounding(self) -> float:
        """The largest rounding error of the slacks, if examples that are nearly solved leave nothing larger."""
        return 0.0

    def contradiction(self, what: str) -> Exception:
        """The error for two objectives that cannot both be true, with the likely causes."""
        return OracleError(
            f"{self.problem.owner}: {what}, which no oracle that keeps the protocol leads to. Likely causes: "
            f"{self.causes}. structsvm.testing.check_oracle finds which. Or training went on from a checkpoint or "
            "model file that was changed"
        )

    @property
    def remaining(self) -> float:
        """The relative duality gap, after `certify`; with approximate inference, that of the constraints found."""
        return relative_gap(self.primal if self.problem.has_primal else self.primal_found, self.dual)

    @property
    def distance(self) -> float:
        """The duality gap, after `certify`, as a share of what there is to gain; here of the primal objective."""
        return relative_gap(self.primal, self.dual)

    @property
    def remark(self) -> str:
        """Text beside objectives in the progress line: for a cluster, what exchanges take and how many there are."""
        return str(getattr(self.schedule, "remark", ""))

    @property
    def is_solved(self) -> bool:
        """Whether the solver has nothing more to do, whatever the gap."""
        return False

    @property
    def gain(self) -> float:
        """The increase of the dual objective in the last pass, as a share of it."""
        return (self.dual - self.dual_before) / self.dual if self.dual > 0.0 else 0.0

    def get_point(self) -> dict[str, AnyArray]:
        """The arrays of the state that `start_from` takes."""
        return self.get_state()

    def follow(self, before: Run) -> None:
        """Start from the point of a run with another C."""
        self.set_state(before.get_state(), adapt=True)

    def resume(self) -> None:
        """Start or resume."""
        self.status = "running"

    def close(self) -> None:
        """Release what workers of a cluster hold; a run that is resumed sends it again."""

    def interrupt(self) -> None:
        """End the run at Ctrl-C: no primal is claimed, and the dual is the sum of the steps' gains."""
        self.status, self.primal, self.primal_found = "interrupted", np.nan, np.nan
        if self.has_dual:
            self.dual = self.state.dual
        self.record()

    def record(self) -> None:
        """Add a row to the history: of objectives claimed, those claimed."""
        dual = self.state.dual if self.has_dual and np.isnan(self.primal) else self.dual
        self.history.add(
            seconds=self.seconds,
            n_iter=self.progress,
            primal=self.primal,
            dual=dual,
            gap=self.primal - dual,
            n_support=self.n_support,
            n_argmax=self.state.n_argmax,
        )

    @property
    def n_support(self) -> int:
        """Support vectors; 0 where there are none."""
        return 0

    @property
    def kinds(self) -> set[str]:
        """The kinds of states that the run can resume from."""
        return {self.state.kind}

    def result(self) -> Result:
        """Return the `Result` as of now."""
        primal_norm, dual_norm = (np.nan, np.nan) if self.status == "interrupted" else self.norms()
        return Result(
            primal=self.primal,
            dual=self.dual,
            gap=self.primal - self.dual,
            n_iter=self.n_iter,
            n_argmax=self.state.n_argmax,
            n_support=self.n_support,
            seconds=self.seconds,
            status=self.status,
            primal_norm=primal_norm,
            dual_norm=dual_norm,
            inference=self.problem.inference,
            primal_found=self.primal_found,
            history=self.history.arrays(),
        )

    def norms(self) -> tuple[float, float]:
        """1/2 |w|^2 at the weights returned and at the dual point; NaN if unknown."""
        return np.nan, np.nan

    def schedule_arrays(self) -> dict[str, AnyArray]:
        """The arrays of the schedule in `get_state`."""
        return {"schedule": self.schedule.get_state()}

    def get_state(self) -> dict[str, AnyArray]:
        """Return the run between two passes as a dict of arrays; resuming from it gives bit-identical results."""
        arrays = dict(self.state.get_state()) | self.schedule_arrays()
        arrays["kind"] = as_array(self.state.kind)
        arrays["run"] = np.array([self.n_iter, self.seconds, self.primal, self.dual], dtype=np.float64)
        arrays["formulation"] = formulation_array(self.problem)
        arrays["structure"] = np.array([self.problem.structure_fingerprint()], dtype=np.int64)
        arrays.update({f"history_{k}": v for k, v in self.history.arrays().items()})
        return arrays

    def batch_state(self) -> dict[str, AnyArray]:
        """Return what other data can continue from, without schedule and history: the state after a batch."""
        return dict(self.state.get_state()) | {"kind": as_array(self.state.kind)}

    def set_state(self, arrays: dict[str, AnyArray], *, adapt: bool = False) -> None:
        """Restore the arrays returned by `get_state`.

        Parameters
        ----------
        arrays : dict of ndarray
        adapt : bool
            Whether they may come from a run with other parameters: a smaller C, another schedule.

        Raises
        ------
        ValueError
            If they belong to another problem or kind of solver; the run is unchanged.
        """
        if "run" not in arrays:
            raise ValueError("training state: array 'run' is missing")
        arrays = checked_state(arrays, self.kinds, **self.state_sizes())
        check_formulation(arrays, self.problem)
        self.restore(arrays, adapt=adapt)

    def state_sizes(self) -> dict[str, int]:
        """Sizes of the problem, by their names in the tables of training states."""
        problem = self.problem
        return {"n_features": problem.n_features, "n_samples": problem.n_samples, "examples": problem.n_samples}

    def restore(self, arrays: dict[str, CheckedArray], *, adapt: bool) -> None:
        """`set_state`, of arrays that have been checked by their table."""
        run = arrays["run"]
        if not (0.0 <= run[0] < 2.0**53 and run[0] == int(run[0]) and 0.0 <= run[1] < np.inf):
            raise ValueError(f"array 'run' of the training state has {run[0]:g} passes and {run[1]:g} seconds")
        history = History.from_arrays({k[8:]: v for k, v in arrays.items() if k.startswith("history_")})
        before = self.schedule.get_state()
        try:
            self.schedule.set_state(arrays["schedule"])
        except ValueError:
            if not adapt:  # another schedule starts with nothing due
                raise
        try:
            self.state.set_state(arrays, adapt=adapt)
        except ValueError:
            self.schedule.set_state(before)
            raise
        self.n_iter, self.seconds = int(run[0]), float(run[1])
        self.primal, self.dual = run[2:].tolist()
        if adapt and self.has_dual:
            self.primal, self.dual = np.nan, self.state.dual
        self.history = history


STATES["weights"] = counters(4) | {
    "weights": Array("f4 f8", ("n_features",)),
    "average_sum": Array("f4 f8", ("n_features",), needed=False),
}


class WeightRun(Run):
    """A run on explicit weights."""

    shares_weights = False  # whether `weights` are those of the state, which the next pass changes

    def __init__(self, solver: Any, problem: Any, state: Any, schedule: Any, *, C: Any = None) -> None:
        super().__init__(solver, problem, state, schedule, C=C)
        self.use_average = solver.average

    @property
    def weights(self) -> Any:
        """The weights that the solver returns: array (n_features,).

        The weights of an interrupted run are not copied, unless it is resumed: allocating could delay Ctrl-C too long.
        """
        if self.use_average:
            return self.state.averaged()
        return self.state.weights if self.shares_weights or self.status == "interrupted" else copied(self.state.weights)

    def resume(self) -> None:
        if self.status == "interrupted":
            self.state.renew()
        super().resume()

    def norms(self) -> tuple[float, float]:
        return half_norm(self.state.averaged() if self.use_average else self.state.weights), np.nan


# The centre of the regulariser: weights whose distance from w is penalised.
AROUND: Table = optional({"base": Array("f8", ("n_features",))})
CUTS: Table = counters(4) | AROUND | COST | {
    "cut_bounds": Array("i8", ("n_cuts+1",), rises_to="words of cuts"),
    "cut_words": Array("i4", ("words of cuts",)),
    "cut_example": Array("i8", ("n_cuts",), within=EXAMPLES),
    "cut_numbers": Array("f8", ("n_cuts", 3), within=(0.0, None)),
}  # fmt: skip
STATES["dual"] = CUTS
# The arrays of a point of the dual, beside the example of each cut.
POINT = ("cut_bounds", "cut_words", "cut_numbers")


class DualRun(WeightRun):
    """A run on the dual with explicit weights; `rounds` calls the oracle on all examples."""

    has_dual = True
    shares_state = True  # whether it may go on with the state of a run with another C, not with a copy

    @property
    def warns_of_gap(self) -> bool:  # type: ignore[override]
        return self.has_dual

    def __init__(self, solver: Any, problem: Any, state: Any, schedule: Any, rounds: Any, *, C: Any) -> None:
        super().__init__(solver, problem, state, schedule, C=C)
        self.rounds = rounds

    def follow(self, before: Any) -> None:
        if not (self.shares_state and self.goes_on_from(before)):
            super().follow(before)

    def goes_on_from(self, before: Any) -> bool:
        """Go on with the state of a run on the same problem, as `follow` would with a copy; False if it cannot."""
        state = before.state
        if type(state) is not type(self.state) or state.problem is not self.state.problem:
            return False
        if not (self.solver.deterministic and state.reweigh(self.C)):
            return False
        self.state, self.schedule = state, self.solver.schedule_of(state, self.rounds, self.C)
        with suppress(ValueError):  # another schedule starts with nothing due
            self.schedule.set_state(before.schedule.get_state())
        self.n_iter, self.seconds, self.history = before.n_iter, before.seconds, before.history
        self.primal, self.dual = np.nan, state.dual
        return True

    def state_sizes(self) -> dict[str, int]:
        return super().state_sizes() | {"examples": self.state.problem.n_samples}  # 1 of one_slack

    @property
    def slack_rounding(self) -> float:
        # A slack is a loss and a difference of scores, in the precision of weights. Scores are sums of some `cost`
        # weights, of the size of |w| sqrt(cost) at most, whose errors are independent: around weights that were learnt
        # before (`partial_fit`), one example's may be larger than all that is left of the objective.
        scores = math.sqrt(2.0 * half_norm(self.state.weights)) * np.sqrt(costs(self.problem))
        rounding = np.sum(self.C) + np.linalg.norm(self.C * scores)
        return float(rounding * np.finfo(self.problem.weight_dtype).eps)

    def start_pass(self) -> None:
        self.state.restart_average()
        super().start_pass()

    def certify(self) -> None:
        """After a pass: compute the primal objective by a pass of the oracle.

        Of the last weights and their average, the run returns those with the lower primal objective. With approximate
        inference it is unknown, except that of the constraints found.
        """
        begin = time.perf_counter()
        weights = self.candidates()
        if not self.problem.has_primal:
            self.primal_found = self.primal_found_at(weights[-1] if self.use_average else weights[0])
        else:
            primals = self.primals_at(weights)
            self.primal = min(primals)
            self.use_average = primals[-1] < primals[0]
        self.seconds += time.perf_counter() - begin

    def candidates(self) -> list[Any]:
        """The last weights and, if it is another vector, their average."""
        if not self.state.averages:
            return [self.state.weights]
        if self.schedule.next >= self.schedule.n_samples:
            self.state.end_average()
        return [self.state.weights, self.state.averaged()]

    def primals_at(self, weights: Any) -> list[Any]:
        """The primal objective at one or two vectors of weights; inf at that which some examples clearly say is worse.

        The other one's is exact: a certificate of many examples takes little more than one round of the oracle.
        """
        n, left = self.problem.n_samples, list(range(len(weights)))
        if len(left) == 1 or n < MANY_EXAMPLES or self.solver.formulation()["penalty"] != "linear":
            return [self.primal_at(w) for w in weights]
        norms = [self.state.primal(w, np.zeros(n)) for w in weights]
        found, primals = np.zeros((2, n)), [np.inf, np.inf]
        for start, stop in pairwise(SHARES):
            part = self.rounds.part(start, stop)
            for k in left:
                found[k, part] = self.rounds.violations(weights[k], start, stop)
                self.state.count_argmax(len(part))
            if len(left) == 2 and stop < 1.0:
                seen = self.rounds.part(0.0, stop)
                first, second = self.C[seen] * np.maximum(found[:, seen], 0.0)
                more = norms[0] - norms[1] + n * (first - second).mean()
                if abs(more) > CERTAINTY * n * (first - second).std() / math.sqrt(len(seen)):
                    left = [int(more > 0.0)]
        for k in left:
            primals[k] = self.state.primal(weights[k], found[k])
        return primals

    def primal_at(self, w: Any) -> Any:
        """The primal objective at weights `w`, by one round of the oracle."""
        self.state.count_argmax(self.problem.n_samples)
        return self.state.primal(w, self.rounds.violations(w))

    def primal_found_at(self, w: Any) -> Any:
        """The primal objective at weights `w` of the known constraints, including those of one more round.

        It bounds the primal objective from below, and is itself not below the dual.
        """
        self.state.count_argmax(self.problem.n_samples)
        return self.state.primal(w, np.maximum(self.rounds.violations(w), self.state.known_violations(w)))

    def get_point(self) -> dict[str, AnyArray]:
        arrays = self.state.get_state()
        return {name: arrays[name] for name in ("cut_example", *POINT)}

    def start_from(self, point: dict[str, AnyArray], rows: NDArray[np.intp]) -> None:
        """Start from the `get_point` of a run with the same C, on these rows of the examples.

        Raises
        ------
        ValueError
            If the rows do not ascend, are not of this problem, or the point is not of as many examples.
        """
        check_rows(rows, self.problem.n_samples)
        example = point["cut_example"]
        if not (example.min(initial=0) >= 0 and example.max(initial=-1) < len(rows)):
            raise ValueError(f"array 'cut_example' of a point of {len(rows)} examples has others")
        cuts = {name: point[name] for name in POINT} | {"cut_example": rows[example]}
        self.set_state(self.get_state() | cuts)

    def close(self) -> None:
        self.rounds.close()

    def interrupt(self) -> None:
        super().interrupt()
        self.use_average = False  # computing its sum could delay Ctrl-C too long

    @property
    def n_support(self) -> Any:
        return self.state.n_cuts + self.state.n_patterns

    def norms(self) -> tuple[float, float]:
        dual_norm = half_norm(self.state.weights)
        return super().norms()[0] if self.use_average else dual_norm, dual_norm


class SharedRun(DualRun):
    """A run on weights that workers hold: they answer what certificates ask, and are read when training ends."""

    shares_state = False
    returned: Any = None  # the weights that were read

    @property
    def weights(self) -> Any:
        """The weights that the solver returns: array (n_features,), the same one until training is resumed."""
        return self.state.read(self.candidates()[self.use_average]) if self.returned is None else self.returned

    def candidates(self) -> list[Any]:
        return [SharedWeights(), self.state.held_average()] if self.solver.average else [SharedWeights()]

    def certify(self) -> None:
        while True:
            begin = time.perf_counter()
            self.dual = self.state.recompute()
            self.seconds += time.perf_counter() - begin
            try:
                return super().certify()
            except LostError:  # between two answers: once more, of what is left
                continue

    def resume(self) -> None:
        self.returned = None
        super().resume()

    def close(self) -> None:
        if self.state.cluster is not None and not self.state.cluster.is_lost:
            self.returned = self.weights
        super().close()

    def norms(self) -> tuple[float, float]:
        return half_norm(self.weights), self.state.norm


def check_rows(rows: NDArray[np.intp], n_samples: int) -> None:
    """Raise ValueError unless the rows of a point ascend and are those of examples."""
    if not (np.diff(rows, prepend=-1) > 0).all() or rows.max(initial=-1) >= n_samples:
        raise ValueError(f"the rows of a point must be ascending numbers of {n_samples} examples")
