"""Learning from outputs that are known in part: complete them, solve the convex problem, complete them again.

If only some h_i of the true output of example i is known, the constraints are those of the best output that agrees
with it (Yu and Joachims 2009):

    L(w) = 1/2 |w|^2 + C sum_i [max_y (Delta(c_i, y) + <w, Psi(x_i, y)>) - max_{c agrees with h_i} <w, Psi(x_i, c)>],

a difference of convex functions. With fixed completions c_i it is an ordinary problem and a bound on
L, which the solvers of the dual train on and certify. The best completions under the weights found then lower it again;
if the loss depends on them they may not, and are used only if they do. So the objective never rises.

Or the steps complete: before the step of example i the best completion under the current weights becomes c_i,
and the multipliers of its old constraints, which no longer hold, return to 0. The objective may rise; rounds follow.
"""

from __future__ import annotations

import copy
import dataclasses
import time
from contextlib import closing
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from structsvm._problem import BoundProblem
from structsvm.arrays import checksum
from structsvm.checkpoint import LATENT, kind_of
from structsvm.dual.parallel import Rounds
from structsvm.parameters import (
    COUNT,
    FLAG,
    NONE,
    Interval,
    Kind,
    Options,
    check_arguments,
    declared,
    parameter,
    seed_from,
)
from structsvm.progress import Monitor
from structsvm.result import Result
from structsvm.solvers.base import DualSolver, Solver
from structsvm.solvers.conditional_likelihood import ConditionalLikelihood
from structsvm.solvers.larank import LaRank
from structsvm.solvers.online import OnlineSolver
from structsvm.solvers.run import SLICE_SECONDS, DualRun

if TYPE_CHECKING:
    from structsvm.arrays import AnyArray, CheckedArray

# Number of random weight vectors for the first completions, each for its share of the examples.
DRAWS = 8

# Before all examples take part: the least share of them in a round, except the first, and the factor by which it
# grows. So there are at most GROWING rounds of this kind.
LEAST_SHARE, GROWTH, GROWING = 0.125, 2, 4

# Maximum number of passes whose steps complete, and the share of the completions that the last one changes.
ONLINE, STEADY = 20, 0.01

Targets: TypeAlias = "tuple[NDArray[np.int64], AnyArray]"


def of_inner(name: str) -> Any:
    """An attribute that is the inner run's."""
    return property(lambda run: getattr(run.inner, name), lambda run, value: setattr(run.inner, name, value))


class LatentRun(DualRun):
    """Rounds of completion, each a run of the wrapped solver.

    Attributes
    ----------
    known : Problem
        The problem with what is known of the true outputs.
    inner : DualRun
        The run of the round, on the completed problem.
    round, joined : int
        Finished rounds; how many of them there were when all examples took part.
    under : ndarray of shape (n_features,), or None
        The weights of the last round, under which the completions were found; None in the first.
    objective : float
        Their objective on the completed problem; infinite in the first round.
    chosen : ndarray of bool, or None
        The examples that take part; None: all.
    is_soft : bool
        Whether this round is that of the likelihood of what is known, whose weights complete all examples.
    online : int
        Remaining passes, each a round, whose steps complete their examples; they begin when all take part.
    found : int
        A checksum of the completions that the round began with.
    """

    shares_state = False
    least_passes = 30  # over each C on the path to one, unless the rounds end before

    problem: Any = of_inner("problem")
    state: Any = of_inner("state")
    schedule: Any = of_inner("schedule")
    rounds: Any = of_inner("rounds")
    C: Any = of_inner("C")
    history: Any = of_inner("history")
    status: Any = of_inner("status")
    n_iter: Any = of_inner("n_iter")
    seconds: Any = of_inner("seconds")
    primal: Any = of_inner("primal")
    primal_found: Any = of_inner("primal_found")
    dual: Any = of_inner("dual")
    dual_before: Any = of_inner("dual_before")
    use_average: Any = of_inner("use_average")
    found: Any = of_inner("found")
    has_dual: Any = of_inner("has_dual")

    def __init__(self, solver: Any, known: Any, sample_weight: Any, base: Any) -> None:
        self.solver, self.known, self.sample_weight, self.base = solver, known, sample_weight, base
        self.seed = seed_from(copy.deepcopy(solver.random_state))
        self.round, self.joined, self.first, self.objective = 0, 0, 0, np.inf
        self.under: Any = None
        self.chosen: Any = None
        self.stays = False  # whether `under` is better than what the round has found
        self.is_final = False  # whether completions stay
        self.online = ONLINE if solver.online else 0
        begin = time.perf_counter()
        self.is_soft = base is None and solver.is_soft_on(known)
        if self.is_soft:
            self.inner = self._soft()
        else:
            problem, self.chosen = self._first_problem()
            self.inner = self._inner(problem)
        self.seconds = time.perf_counter() - begin

    # ---- the first completions ------------------------------------------------------------------

    def _first_problem(self) -> tuple[Any, Any]:
        """Return ``(problem, chosen)``: the first completions, and the examples that take part in the first round.

        A fully known output has the same completion under any weights and under their negatives.
        """
        with closing(Rounds(self.known, self.solver.n_jobs)) as rounds:
            return self._first_of(rounds)

    def _first_of(self, rounds: Rounds) -> tuple[Any, Any]:
        if self.base is not None:
            return self.known.with_targets(rounds.completions(self.base)), None
        rng = np.random.default_rng(self.seed)
        n_draws = 1 if self.solver.start_from == "random" else DRAWS
        best, worst = list[Targets](), list[Targets]()
        for turn in range(min(n_draws, self.known.n_samples)):
            w = rng.standard_normal(self.known.n_features, dtype=np.float32).astype(self.known.weight_dtype)
            opposite = -w
            if self.known.nonnegative is not None:
                w[self.known.nonnegative] = np.abs(w[self.known.nonnegative])
                opposite[self.known.nonnegative] = 0.0
            best.append(rounds.completions(w, turn, n_draws))
            if n_draws > 1:
                worst.append(rounds.completions(opposite, turn, n_draws))
        problem = self.known.with_targets(interleaved(best))
        if n_draws == 1:
            return problem, None
        whole = ~problem.differ(interleaved(worst)) & self._weighty()
        if not whole.any():
            whole = self._grown(whole, rng.random(len(whole)))
        return problem, None if whole is None or whole.sum() == self._weighty().sum() else whole

    def _weighty(self) -> Any:
        """The examples of nonzero weight."""
        weight = self.sample_weight
        return np.ones(self.known.n_samples, dtype=bool) if weight is None else np.asarray(weight) > 0.0

    def _grown(self, chosen: Any, order: Any) -> Any:
        """More examples than those chosen, the first in this order; None: all."""
        n_all, n_chosen = int(self._weighty().sum()), int(chosen.sum())
        n = max(GROWTH * n_chosen, int(np.ceil(LEAST_SHARE * n_all)))
        if n >= n_all:
            return None
        order = np.where(chosen, -np.inf, np.where(self._weighty(), order, np.inf))
        grown = np.zeros(len(order), dtype=bool)
        grown[np.argsort(order, kind="stable")[:n]] = True
        return grown

    def _soft(self) -> Any:
        """A run on the likelihood of what is known."""
        inner = self.solver.inner
        solver = ConditionalLikelihood(inner.C, random_state=self.seed, n_jobs=inner.n_jobs)
        run = solver.start(self.known, sample_weight=self.sample_weight, base=self.base)
        run.status, run.found = "running", summary(self.known.targets)
        return run

    # ---- rounds ---------------------------------------------------------------------------------

    def _inner(self, problem: Any) -> Any:
        """A fresh run of the wrapped solver on a completed problem."""
        solver, weight = self.solver.inner, self.sample_weight
        solver.check(problem)
        if self.chosen is not None:
            weight = self.chosen * (1.0 if weight is None else weight)
        run = solver.start(problem, sample_weight=weight, base=self.base)
        run.status = "running"
        run.found = summary(problem.targets)
        if self.online and self.chosen is None:
            run.state.complete_in_steps(True)
        return run

    @property
    def last_solver(self) -> Any:
        return self.inner.solver

    @property
    def completes(self) -> bool:
        """Whether the steps complete their examples."""
        return self.online > 0 and not self.is_soft and self.chosen is None

    def advance(self, seconds: float = SLICE_SECONDS) -> bool:
        if self.schedule.next >= self.schedule.n_samples:
            self.stays = False
        done = self.inner.advance(seconds)
        if done and self.completes and not self.state.changed.any():
            self.online = 0
            self.state.complete_in_steps(False)
        if done and (self.completes or self._is_solved()):
            self._end_round()
        return done

    def _is_solved(self) -> bool:
        """Whether the solver of the round would have ended here."""
        return self._convex_status() != "max_iter" or self.n_iter - self.first >= self.inner.solver.n_passes

    def _convex_status(self) -> str:
        """The status with which the solver of the round would end here."""
        solver = self.inner.solver
        if solver.tol is not None:
            self.checked_certify()
            if self.remaining <= solver.tol:
                return "converged"
        if self.inner.is_solved:
            return "converged"
        primal = self.primal
        if solver.is_settled(self.inner):
            return "settled"
        self.primal = primal  # it may have been looked at; within a round it may rise
        return "max_iter"

    def certify(self) -> None:
        """Compute the primal objective of the completed problem, unless that has been done since the last pass.

        Of the weights found and those at the start of the round, the run returns those with the lower one.
        """
        if np.isnan(self.primal):
            self.stays = False
            if self.completes:  # shards know nothing of completions
                self.inner.rounds = Rounds(self.problem.with_targets(self.problem.targets), self.solver.n_jobs)
            self.inner.certify()
        if self.objective < self.primal:  # also of a primal that the inner solver looked at to see whether it settles
            self.primal, self.stays = self.objective, True

    def _end_round(self) -> None:
        """Find the completions under the weights of this round, and start the next one with them, or set the status."""
        is_online = self.completes
        if not is_online:
            self.checked_certify()
        begin = time.perf_counter()
        self.round += 1
        is_growing = self.is_soft or self.chosen is not None or is_online
        if not is_growing and self.round - self.joined >= self.solver.rounds:
            self.status = "max_iter"
            return
        w = self.state.weights.copy() if is_online else self.weights
        targets = self.rounds.completions(w)
        others: Any = None if self.is_soft else self.problem.differ(targets)  # from no outputs, then
        if not is_growing and not others.any():
            self._end()
            return
        problem = self.problem.with_targets(targets)
        if is_online:
            self.online = self.online - 1 if others.mean() > STEADY else 0
        elif is_growing:
            self.chosen = None if self.is_soft else self._grown(self.chosen, self._order(problem, w))
        if is_growing:
            self.joined = self.round
        inner = self._inner(problem)
        is_comparable = problem.has_primal and not (is_online and self.online)
        objective = inner.primal_at(w) if is_comparable else np.nan
        if not is_growing and self._is_steady(objective):
            self.state.count_argmax(problem.n_samples)
            self._end()
            return
        self.record()
        self.seconds += time.perf_counter() - begin
        self._hand_over(inner, others)
        self.under, self.objective, self.stays = w, objective, is_comparable

    def _is_steady(self, objective: float) -> bool:
        """Whether new completions have not lowered the objective, or the rounds have by no more than `tol`."""
        fall = self.objective - objective
        is_small = np.isfinite(fall) and fall <= self.solver.tol * abs(self.objective)
        return bool(objective > self.primal or is_small)

    def _hand_over(self, inner: Any, others: Any) -> None:
        """Continue with the run of the next round: from this one's state, but for examples with other completions."""
        if self.is_soft:
            inner.n_iter, inner.seconds, inner.history = self.n_iter, self.seconds, self.history
            inner.state.count_argmax(self.state.n_argmax)
            self.is_soft = False
        else:
            arrays = self.inner.get_state() | self.state.without(others) | inner.schedule_arrays()
            inner.set_state(arrays, adapt=True)
        inner.state.count_argmax(inner.problem.n_samples)
        self.inner.close()
        self.inner, self.first = inner, inner.n_iter

    def _end(self) -> None:
        """Set the status once the completions stay: that of the convex problem, which passes may have left unsolved."""
        self.is_final = True
        self.status = self._convex_status()

    def _order(self, problem: Any, w: Any) -> Any:
        """The order in which examples join the round: by their loss under the weights, or any."""
        if self.solver.start_from != "easiest":
            return np.random.default_rng([self.seed, self.round]).random(problem.n_samples)
        self.state.count_argmax(problem.n_samples)
        with closing(Rounds(problem, self.solver.n_jobs)) as rounds:
            return rounds.losses(w) if self.solver.inner.rescaling is None else rounds.violations(w)

    # ---- what is returned -----------------------------------------------------------------------

    @property
    def is_solved(self) -> bool:
        return self.is_final

    @property
    def carries(self) -> bool:  # type: ignore[override]
        return not self.is_soft  # completions under a small C are poor

    @property
    def kinds(self) -> set[str]:
        return {self.state.kind, self.solver.inner.state_kind}

    @property
    def weights(self) -> Any:
        return self.under.copy() if self.stays else self.inner.weights

    @property
    def n_support(self) -> Any:
        return self.inner.n_support

    def contradiction(self, what: str) -> Exception:
        return self.inner.contradiction(what)

    def primal_at(self, w: Any) -> Any:
        return self.inner.primal_at(w)

    def result(self) -> Result:
        return dataclasses.replace(super().result(), n_rounds=max(self.round, 1))

    # ---- state ----------------------------------------------------------------------------------

    def close(self) -> None:
        self.inner.close()

    def get_state(self) -> dict[str, AnyArray]:
        """The state of the inner run, and what determines the completions: weights, or the seed of the first ones."""
        under = np.empty(0, self.known.weight_dtype) if self.under is None else self.under
        chosen = np.empty(0, bool) if self.chosen is None else self.chosen
        arrays = self.inner.get_state()
        if self.completes and self.state.changed.any():  # within a pass: multipliers of old completions are dropped
            arrays |= self.state.without(self.state.changed)
        return arrays | {
            "latent": np.array([self.round, self.joined, self.first, self.objective]),
            "latent_seed": np.array([self.seed], dtype=np.uint64),
            "latent_under": under,
            "latent_chosen": chosen.astype(np.uint8),
            "latent_targets": np.array([self.found], dtype=np.int64),
            "latent_online": np.array([self.online], dtype=np.int64),
        }

    def restore(self, arrays: dict[str, CheckedArray], *, adapt: bool) -> None:
        """`set_state`, also of arrays that another solver returned if all was known."""
        before = self.__dict__.copy()
        try:
            self.base = arrays.get("base")
            if "latent" in arrays:
                self._restore(arrays)
            if adapt:
                self.online = ONLINE if self.solver.online else 0
            self.is_soft = "latent" in arrays and kind_of(arrays) == "expectations" != self.solver.inner.state_kind
            inner = self._soft() if self.is_soft else self._inner(self._problem_found())
            if "latent" in arrays and inner.found != int(arrays["latent_targets"][0]):
                raise ValueError("the completions of the training state are not found again: it is of another problem")
            inner.set_state(arrays, adapt=adapt)
            self.inner = inner
        except BaseException:
            self.__dict__.update(before)
            raise
        if adapt:
            self.round, self.joined, self.first = 0, 0, inner.n_iter
            self.objective, self.stays = np.inf, False

    def _problem_found(self) -> Any:
        """The completed problem that a training state belongs to."""
        if self.under is None:
            return self._first_problem()[0]
        with closing(Rounds(self.known, self.solver.n_jobs)) as rounds:
            return self.known.with_targets(rounds.completions(self.under))

    def _restore(self, arrays: dict[str, CheckedArray]) -> None:
        if missing := next((name for name in LATENT if name not in arrays), None):
            raise ValueError(f"training state: array {missing!r} is missing")
        n_features, n_samples = self.known.n_features, self.known.n_samples
        numbers, under, chosen = (arrays[name] for name in ("latent", "latent_under", "latent_chosen"))
        if len(under) not in (0, n_features) or under.dtype != self.known.weight_dtype:
            raise ValueError(f"array 'latent_under' of the training state must be {n_features} numbers, or none")
        if len(chosen) not in (0, n_samples):
            raise ValueError(f"array 'latent_chosen' of the training state must be {n_samples} flags, or none")
        counts = numbers[:3]
        if not np.isfinite(counts).all() or (counts < 0.0).any() or (counts != np.floor(counts)).any():
            raise ValueError("array 'latent' of the training state holds numbers that are no counts")
        online = int(arrays["latent_online"][0])
        if not 0 <= online <= ONLINE:
            raise ValueError(f"array 'latent_online' of the training state has {online} of {ONLINE} passes left")
        self.online = online if self.solver.online else 0
        self.round, self.joined, self.first = counts.astype(int).tolist()
        self.objective = float(numbers[3])
        self.seed = int(arrays["latent_seed"][0])
        self.under = under.copy() if len(under) else None
        self.chosen = chosen.astype(bool) if len(chosen) else None


@declared
class LatentSVM(Solver):
    """Training on outputs that are known in part, around any solver of the dual (Yu and Joachims 2009).

    In rounds: each example's best output that agrees with what is known (the oracle's `complete`) becomes its true
    one, and the wrapped solver continues on the resulting convex problem. The objective, `result_.primal` at the
    end of each round, never rises; it is not convex, and training ends in a local minimum. Primal, dual and gap certify
    only the convex problem with the completions of the last round.

    Parameters
    ----------
    solver : LaRank, CuttingPlane, FrankWolfe, PassiveAggressive or ConditionalLikelihood, optional
        With a linear or quadratic penalty. Default: ``LaRank()``. C, formulation, passes per round, `tol` of a round,
        `n_jobs` (also for completing), `random_state`, `checkpoint` are those of this solver.
    rounds : int, default=20
        Maximum number of rounds once all examples take part.
    tol : float, default=1e-3
        Training ends once the completions no longer change, or a round lowers the objective by at most this share
        of it.
    start : {"uniform", "easiest", "random", "soft"}, default="uniform"
        How training begins without weights to start from. "uniform": with the fully known examples, or, if there are
        none, with an eighth of all, completed under random weights; each further round has twice as many, completed
        under the current weights, until all take part. "easiest": the same, but those of least slack join first
        (self-paced: Kumar, Packer and Koller 2010). "random": with all of them at once, completed under random weights.
        "soft": with the likelihood of what is known (`ConditionalLikelihood` with the same C), whose weights complete
        all examples. Its sum over the outputs that agree has no best output while the weights are 0, and concentrates
        on one as they grow: an annealing. It needs an oracle with these sums, and is better if hardly any example is
        fully known but little of each is open. The objective can only be compared once all examples take part.
    online : bool, default=False
        Whether, once all examples take part, each step completes its example first, under the current weights,
        as OSPAS does: in passes until one changes at most a hundredth of the completions, or in 20. The multipliers
        of an example are dropped with its completion. Rounds follow, so the certificate is the same. It
        usually ends in a lower minimum, at about the same cost. For LaRank, FrankWolfe and PassiveAggressive with
        ``deterministic=True``.

    Notes
    -----
    A fully known example is its own completion: if all are, training is that of the wrapped solver, bit for
    bit. If completions stay, `result_.status` is how the wrapped solver ended on the convex problem: "converged" within
    its `tol`, "settled", or "max_iter" if passes have ended before. Multipliers of examples whose completions stay are
    kept from round to round (with `form="one_slack"` only the weights are). With inexact oracles, no objective is
    known, and training ends after `rounds` or with unchanged completions.

    If the solver has `max_iter=1`, completions are found after each pass; by `partial_fit` with batches of one
    example, in each step, under the current weights.

    Examples
    --------
    >>> from structsvm import LaRank, LatentSVM
    >>> from structsvm.tasks import SequenceLabeler
    >>> X, y = [["the", "cat", "eats"], ["the", "dog"]], [["DT", None, "VB"], ["DT", "NN"]]
    >>> labeler = SequenceLabeler(C=None, solver=LatentSVM(LaRank(C=1.0, random_state=0))).fit(X, y)
    >>> labeler.predict(X[:1])
    [['DT', 'NN', 'VB']]
    """

    solver: DualSolver | None = parameter(Kind(DualSolver, "a solver of the dual"), NONE, default=None, kw_only=False)
    rounds: int = parameter(COUNT, default=20)
    tol: float = parameter(Interval(Real, 0.0), default=1e-3)
    start_from: str = parameter(Options("uniform", "random", "easiest", "soft"), default="uniform", alias="start")
    online: bool = parameter(FLAG, default=False)

    needs = frozenset({"completions"})
    completes = maximises_dual = True
    gap_tol = None
    keeps_signs = True

    # ---- parameters: `start` is also the name of a method; those not here are the solver's ----------------------

    @property
    def inner(self) -> Any:
        """The wrapped solver."""
        return LaRank() if self.solver is None else self.solver

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "solver" or name not in self.inner.parameter_names():
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.inner, name)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        params = {"solver": self.solver, "rounds": self.rounds, "tol": self.tol, "start": self.start_from}
        params["online"] = self.online
        if deep and self.solver is not None:
            params |= {f"solver__{name}": value for name, value in self.solver.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Any:
        """Set parameters by name, the solver's as ``solver__name`` or by their own, and return self.

        The solver's are set last, and on a copy of it, as others may have it too.
        """
        own = {name: params.pop(name) for name in self.parameter_names() if name in params}
        self.start_from = own.pop("start", self.start_from)
        super().set_params(**own)
        for name in params:
            if name.removeprefix("solver__") not in self.inner.parameter_names():
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(self.get_params())}"
                )
        if params:
            given = {name.removeprefix("solver__"): value for name, value in params.items()}
            self.solver = copy.copy(self.inner).set_params(**given)
        return self

    def validate(self) -> None:
        """Raise ValueError, naming the parameter, unless every value is acceptable, the wrapped solver's too."""
        check_arguments(type(self).__name__, self.get_params(deep=False), **self._constraints)
        self.inner.validate()
        if self.inner.penalty is None:
            raise ValueError(
                "The 'solver' parameter of LatentSVM must have a linear or a quadratic penalty: under a hard margin no "
                f"completion is better than another. Got {self.inner!r}."
            )
        steps = isinstance(self.inner, OnlineSolver) and self.inner.deterministic
        if self.online and not steps:
            raise ValueError(
                "LatentSVM with online=True needs LaRank, FrankWolfe or PassiveAggressive with deterministic=True, "
                f"whose steps can complete. Got {self.inner!r}."
            )

    # ---- what a solver declares --------------------------------------------------------------------

    def is_soft_on(self, problem: Any) -> bool:
        """Whether training begins with a likelihood: requested, and something is unknown and can be summed over."""
        is_open = "marginals" in problem.offers and "constraints" not in problem.offers
        return self.start_from == "soft" and is_open and self.inner.rescaling is not None

    @property
    def n_passes(self) -> Any:
        of_start = ConditionalLikelihood.usual_passes if self.start_from == "soft" else 0
        return of_start + ONLINE * self.online + (GROWING + 1 + self.rounds) * self.inner.n_passes

    def formulation(self) -> dict[str, Any]:
        return self.inner.formulation()

    def check(self, problem: BoundProblem) -> None:
        """As `Solver.check`; NotImplementedError, naming oracle and method, if the problem offers no completions."""
        if isinstance(problem, BoundProblem) and "completions" not in problem.offers:
            raise NotImplementedError(
                f"{problem.owner} does not implement complete, the verb for outputs that are known in part, which "
                "LatentSVM needs"
            )
        super().check(problem)
        if self.start_from == "soft" and not self.is_soft_on(problem) and "constraints" not in problem.offers:
            raise ValueError(
                "LatentSVM with start='soft' needs a margin and a problem with sums over what agrees. "
                f"Got {self.inner!r} and {type(problem).__name__}."
            )

    def start(self, problem: Any, *, sample_weight: Any = None, base: Any = None) -> LatentRun:
        return LatentRun(self, problem, sample_weight, base)

    def finish(self, run: Any, monitor: Monitor) -> None:
        """Finish the convex problem of the last round."""
        if not run.stays:
            run.inner.solver.finish(run.inner, monitor)


def interleaved(parts: list[Targets]) -> Targets:
    """Targets, merged from parts that each have the words of some of the examples."""
    sizes = np.sum([np.diff(bounds) for bounds, _ in parts], axis=0)
    examples = np.concatenate([np.repeat(np.arange(len(sizes)), np.diff(bounds)) for bounds, _ in parts])
    words = np.concatenate([words for _, words in parts])
    return np.concatenate([[0], np.cumsum(sizes)]), words[np.argsort(examples, kind="stable")]


def summary(targets: Targets) -> int:
    """A checksum of targets; 0 for those that are objects."""
    bounds, words = targets
    return 0 if words.dtype == object else checksum([np.asarray(bounds, dtype=np.int64), words])
