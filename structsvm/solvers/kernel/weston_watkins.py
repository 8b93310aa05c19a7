"""The machine of Weston and Watkins with biases (Guermeur 2023): its dual, working sets, certificates.

Problem 1 of the paper, with one C per example:

    min_{h, b, xi >= 0}  1/2 sum_k |h_k|^2 + sum_i C_i sum_{k != y_i} xi_ik,
    h_{y_i}(x_i) + b_{y_i} - h_k(x_i) - b_k >= 1 - xi_ik.

Its dual in LaRank's coordinates (beta_ki = -alpha_ik for k != y_i, beta_{y_i i} = sum_k alpha_ik; h_k = sum_i beta_ki
phi(x_i), which is equation 1):

    max_beta  sum_i beta_{y_i i} - 1/2 sum_k beta_k' K beta_k,   -C_i <= beta_ki <= 0 for k != y_i,
    sum_k beta_ki = 0 for each i,   sum_i beta_ki = 0 for each k.

Decomposition (section 5.3). A round chooses a working set of examples, takes their rows of the kernel matrix and
improves the dual over them alone, with each class's total over them (sum_i beta_ki over the set) held fixed;
then all scores are updated, F += (change of beta) K_rows. Two ways to improve it: Frank-Wolfe (sections 5.1 and 5.2),
and steps along cycles of classes (`structsvm.kernel._cycles`). After each round the linear programme of Frank-Wolfe
over all examples gives the best biases and with them the exact duality gap (`structsvm.kernel._circulation`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from structsvm.checkpoint import COUNTS, EXAMPLES, STATES
from structsvm.kernel._circulation import Circulation
from structsvm.kernel._cycles import Arcs, CycleSteps
from structsvm.kernel._row_cache import RowCache
from structsvm.parameters import COUNT, POSITIVE, Checkpoints, Options, declared, parameter
from structsvm.solvers.kernel.base import KernelDualRun, KernelSolver, class_by_class
from structsvm.stored_values import Array

# Examples in a working set of cycle steps. A working set is worked on until its steepest cycle (for Frank-Wolfe: its
# gap) has only this share of the slope that there was.
WORKING_SET = 1024
SHARE = 0.1

# Steps in a round at most: of cycles n Q times this for n examples; of Frank-Wolfe so many.
CYCLE_STEPS = 10
FRANK_WOLFE_STEPS = 20

# Columns of the kernel matrix that are converted to float64 at a time.
STRIP = 4096


STATES["weston_watkins"] = {
    "counters": Array("i8", (3,), within=COUNTS),
    "support": Array("i8", ("n_support",), within=EXAMPLES, once=True),
    "beta": Array("f8", ("n_labels", "n_support")),
    "scores": Array("f8", ("n_labels", "n_support")),
    "biases": Array("f8", ("n_labels",)),
}


class WestonWatkinsRun(KernelDualRun):
    """A run whose model has biases."""

    @property
    def intercept(self) -> Any:
        return self.state.programme.biases.copy()


# How the dual is solved.
METHODS = ("cycles", "frank_wolfe")


@declared
class WestonWatkinsParameters:
    """The parameters that `WestonWatkins` and its classifier share."""

    tol: float = parameter(POSITIVE, default=1e-3)
    max_iter: int = parameter(COUNT, default=1000)
    cache_size: float = parameter(POSITIVE, default=200)


@declared
class WestonWatkins(WestonWatkinsParameters, Checkpoints, KernelSolver):
    """The dual of Weston and Watkins' machine, to a certified gap.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the sum of slacks; one per example and wrong class.
    method : {"cycles", "frank_wolfe"}, default="cycles"
        How a working set is improved.
    tol : float, default=1e-3
        Relative duality gap to stop at. It is known after each round without further kernel values.
    max_iter : int, default=1000
        Maximum number of rounds.
    cache_size : float, default=200
        Memory for rows of the kernel matrix, in units of 2**20 bytes; it bounds the working sets.
    checkpoint
        As for `LaRank`.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.kernel._kernels import Gram, Kernel, Rows
    >>> from structsvm.kernel.problem import KernelProblem
    >>> from structsvm.solvers import WestonWatkins
    >>> gram = Gram(Kernel("rbf", gamma=1.0), Rows(np.array([[0.0], [1.0], [2.0]])))
    >>> problem = KernelProblem(gram, [0, 1, 2], 3)
    >>> WestonWatkins(C=1.0).solve(problem).status
    'converged'
    """

    C: float = parameter(POSITIVE, default=1.0, kw_only=False)
    method: str = parameter(Options(*METHODS), default="cycles")

    takes_base = False
    run_type = WestonWatkinsRun
    needs = frozenset({"kernel", "zero-one loss", "independent labels"})

    def start(self, problem: Any, *, sample_weight: Any = None, base: Any = None) -> Any:
        if base is not None:
            raise ValueError("WestonWatkins takes no base: it starts from 0")
        return super().start(problem, sample_weight=sample_weight)

    def state_on(self, problem: Any, C: Any, first: Any, seed: Any) -> Any:
        return WestonWatkinsState(problem.gram, problem.y, C, problem.n_labels, cache_size=self.cache_size)

    def schedule_on(self, state: Any) -> Any:
        return (FrankWolfeDecomposition if self.method == "frank_wolfe" else CycleDecomposition)(state)

    def solve(self, problem: Any, **options: Any) -> Any:
        run = super().solve(problem, **options)
        if run.status != "interrupted":
            run.state.recompute()
        run.certify()
        return run


class WestonWatkinsState:
    """The dual point over all examples of positive weight, which stand class by class, and its scores.

    Parameters
    ----------
    gram : Gram
    y : ndarray of shape (n_samples,), int32
    C : ndarray of shape (n_samples,), float64
        Weight of each example's slacks; examples of weight 0 take no part.
    n_classes : int
        Each has an example that takes part.
    cache_size : float

    Attributes
    ----------
    order : ndarray of int64
        The examples that take part.
    start : ndarray of shape (n_classes + 1,), int64
        Where in it those of each class begin.
    owner : ndarray of int64
        Their classes; `own` is the index of their entries in the matrices below.
    beta, F : ndarray of shape (n_classes, len(order))
        The dual point, and the scores without biases.
    programme : Circulation
        Its `biases` are optimal after `certify`.
    """

    kind = "weston_watkins"
    n_argmax = 0

    def __init__(self, gram: Any, y: Any, C: Any, n_classes: Any, *, cache_size: float = 200.0) -> None:
        self.order, self.owner, self.start = class_by_class(y, C, n_classes)
        n = len(self.order)
        self.own = self.owner, np.arange(n)
        if (np.diff(self.start) == 0).any():
            raise ValueError(f"class {np.argmin(np.diff(self.start))} has no example of positive weight")
        self.C = np.ascontiguousarray(C[self.order])
        self.cache = RowCache(gram, cache_size)
        self.cache.restart(self.order)
        self.beta, self.F = np.zeros((n_classes, n)), np.zeros((n_classes, n))
        self.programme = Circulation(self.start, self.C, np.zeros(n_classes))
        self.programme.solve(self.F)
        self.dual = 0.0

    @property
    def n_vectors(self) -> int:
        """Coefficients alpha that are not zero."""
        return int(np.count_nonzero(self.beta < 0.0))

    def settle(self) -> Any:
        """Compute the dual objective."""
        self.half_norm = 0.5 * float(np.vdot(self.beta, self.F))
        self.dual = float(self.beta[self.own].sum()) - self.half_norm
        return self.dual

    def certify(self) -> tuple[Any, Any, Any]:
        """``(primal, dual, 1/2 sum |h_k|^2)``, the primal at the best biases for the current h."""
        self.settle()
        return self.half_norm + self.programme.solve(self.F), self.dual, self.half_norm

    def recompute(self) -> None:
        """Recompute the scores from the alpha, and use the middle of the optimal biases."""
        self.beta[self.own] = 0.0
        self.beta[self.own] = -self.beta.sum(axis=0)
        self.F[:] = 0.0
        support = np.flatnonzero(self.beta.any(axis=0))
        for first in range(0, len(support), WORKING_SET):
            part = support[first : first + WORKING_SET]
            self.add_scores(self.cache.rows(part), self.beta[:, part])
        self.programme.solve(self.F)
        self.programme.centre(self.F)

    def add_scores(self, rows: Any, change: Any) -> None:
        """F += change K, for some rows of K and the change of beta there, in strips; Ctrl-C is checked between them."""
        moved = np.flatnonzero(change.any(axis=0))
        change = change[:, moved]
        for first in range(0, self.F.shape[1], STRIP):
            self.F[:, first : first + STRIP] += change @ rows[moved, first : first + STRIP].astype(np.float64)

    def get_state(self) -> dict[str, Any]:
        """Return the state as a dict of arrays; training that resumes from it gives bit-identical results."""
        return {
            "support": self.order.copy(),
            "beta": self.beta.copy(),
            "scores": self.F.copy(),
            "biases": self.programme.biases.copy(),
            "counters": np.array(self.cache.get_counters(), dtype=np.int64),
        }

    def set_state(self, state: Any, *, adapt: bool = False) -> None:
        """Restore the arrays returned by `get_state`; see `WeightState.set_state`.

        The constraints of the classes couple all examples: if one does not fit its box, all are scaled alike.
        """
        order, beta = state["support"], state["beta"]
        same = np.array_equal(order, self.order)
        if not same:
            if not adapt:
                raise ValueError("array 'support' of the training state is of other examples")
            whole = np.zeros((len(beta), self.cache.gram.n_rows))
            whole[:, order] = beta
            beta = whole[:, self.order]
            if np.count_nonzero(beta) < np.count_nonzero(whole):  # an example whose weight is 0 now
                beta[:] = 0.0
        alpha = -beta
        alpha[self.own] = 0.0
        room = np.divide(self.C, alpha, out=np.full_like(alpha, np.inf), where=alpha > 0.0).min(initial=np.inf)
        if room < 1.0 - 1e-9 and adapt:
            beta, same = beta * room, False
        elif room < 1.0 - 1e-9 or (alpha < 0.0).any() or (np.abs(beta.sum(axis=0)) > 1e-6 * self.C).any():
            raise ValueError("array 'beta' of the training state is not feasible")
        if (np.abs(beta.sum(axis=1)) > 1e-6 * self.C.sum()).any():
            raise ValueError("array 'beta' of the training state is not feasible")
        self.beta[:] = beta
        self.programme.biases[:] = state["biases"]
        self.cache.set_counters(state["counters"])
        if same:
            self.F[:] = state["scores"]
        else:
            self.recompute()
        self.settle()

    def coefficients(self) -> tuple[Any, Any, Any, Any]:
        """The support vectors, as `KernelDual.coefficients` lists them."""
        support = np.flatnonzero(self.beta.any(axis=0))
        slots, labels = np.nonzero(self.beta[:, support].T)
        return self.order[support], slots, labels.astype(np.int32), self.beta[labels, support[slots]]


class Decomposition(ABC):
    """Working sets, one per round, with the interface of `structsvm.dual._schedules.Schedule`.

    A subclass improves them.

    Attributes
    ----------
    by_gain : bool
        Whether examples are chosen by slopes times the room in their boxes, or by slopes alone.
    least : int
        Examples per class that a working set must have room for.
    """

    by_gain = False
    least = 1

    def __init__(self, state: Any) -> None:
        self.state = state
        self.n_samples = self.next = len(state.order)
        self.kept = np.empty(0, dtype=np.int64)
        n_classes = len(state.beta)
        if state.cache.capacity < min(self.n_samples, self.least * n_classes):
            raise ValueError(
                f"cache_size has room for {state.cache.capacity} rows of {self.n_samples} kernel values; "
                f"{self.least * n_classes} are needed for {n_classes} classes: raise it to "
                f"{4e-6 * self.n_samples * (self.least * n_classes + 1):.3g} MB at least"
            )

    @property
    @abstractmethod
    def size(self) -> Any:
        """Maximum number of examples in a working set."""

    @abstractmethod
    def improve(self, start: Any, C: Any, beta: Any, F: Any, K: Any, slope: Any) -> Any:
        """Change `beta` and `F` of a working set, in place; `slope` is that of the steepest cycle of all examples."""

    def get_state(self) -> Any:
        """The examples of the last working set, those chosen last before the others, as float64 array."""
        return self.kept.astype(np.float64)

    def set_state(self, numbers: Any) -> None:
        """Restore the array returned by `get_state`. Raises ValueError if it belongs to another problem."""
        if not np.isin(numbers, np.arange(self.n_samples)).all():
            raise ValueError(f"the schedule of the training state must be examples from 0 to {self.n_samples - 1}")
        if len(np.unique(numbers)) != len(numbers):
            raise ValueError("the schedule of the training state has an example twice")
        self.kept = numbers.astype(np.int64)

    def start_pass(self, n_before: int = 0) -> None:
        self.next = 0

    def run(self, seconds: Any) -> bool:
        """One round, whatever the time."""
        state = self.state
        chosen, slope = self.working_set(self.size)
        rows = state.cache.rows(chosen)
        start = np.searchsorted(state.owner[chosen], np.arange(len(state.start)))
        beta, F = state.beta.take(chosen, axis=1), state.F.take(chosen, axis=1)
        self.improve(start, state.C[chosen], beta, F, rows.take(chosen, axis=1).astype(np.float64), slope)
        change = beta - state.beta.take(chosen, axis=1)
        state.beta[:, chosen] = beta
        state.add_scores(rows, change)
        self.next = self.n_samples
        return True

    def working_set(self, size: Any) -> tuple[Any, Any]:
        """Return up to `size` examples in ascending order, and the slope of the steepest cycle of all examples.

        Those on that cycle are among them, so every round improves the dual. Half of the others are new: from each
        class as many that want to rise most, and as many that want to fall most, whether they violate anything or
        not, since what rises must find what falls. (Relative to the optimal biases, the slope of alpha_ik is d_ik =
        g_ik - (b_{y_i} - b_k).) The rest are those that were chosen last before.
        """
        state, b = self.state, self.state.programme.biases
        cycle, slope = Arcs(state.start, state.C, state.beta, state.F).steepest_cycle()
        if size >= self.n_samples:
            return np.arange(self.n_samples), slope
        d = 1.0 - state.F[state.own] + state.F - (b[state.owner] - b[:, None])
        above, below = state.C + state.beta, -state.beta
        above[state.own] = 0.0
        rise = np.where(above > 0.0, d * above if self.by_gain else d, -np.inf)
        fall = np.where(below > 0.0, -d * below if self.by_gain else -d, -np.inf)
        quota = max(size // ((4 if len(self.kept) else 2) * len(b)), 1)
        new = [cycle]
        for end in (rise.max(axis=0), fall.max(axis=0)):
            for first, last in zip(state.start[:-1], state.start[1:]):
                new.append(first + np.argpartition(-end[first:last], min(quota, last - first) - 1)[:quota])
        chosen, places = np.unique(np.concatenate([*new, self.kept]), return_index=True)
        self.kept = chosen[np.argsort(places)][:size]
        return np.sort(self.kept), slope


class CycleDecomposition(Decomposition):
    """Steps along cycles of classes."""

    @property
    def size(self) -> Any:
        return min(WORKING_SET, self.state.cache.capacity)

    def improve(self, start: Any, C: Any, beta: Any, F: Any, K: Any, slope: Any) -> None:
        CycleSteps(start, C, beta, F, K).run(SHARE * slope, CYCLE_STEPS * F.size)


class FrankWolfeDecomposition(Decomposition):
    """Frank-Wolfe; all examples are in the working set, if the cache has room for their rows.

    Steps towards corners leave coefficients that shrink and never vanish; their slopes say nothing without their size.
    """

    by_gain = True
    least = 4

    @property
    def size(self) -> Any:
        return self.state.cache.capacity

    def improve(self, start: Any, C: Any, beta: Any, F: Any, K: Any, slope: Any) -> None:
        programme = Circulation(start, C, beta.sum(axis=1))
        programme.biases[:] = self.state.programme.biases
        corner = np.empty_like(beta)
        own = np.repeat(np.arange(len(beta)), np.diff(start)), np.arange(len(C))
        enough = None
        for _ in range(FRANK_WOLFE_STEPS):
            programme.solve(F, corner)
            direction = corner - beta
            gap = direction[own].sum() - np.vdot(direction, F)
            if enough is None:
                enough = SHARE * gap
            elif gap <= enough:
                break
            change = direction @ K
            # The dual along t is t gap - t^2 / 2 curvature.
            curvature = np.vdot(direction, change)
            t = 1.0 if gap >= curvature else gap / curvature
            beta += t * direction
            F += t * change
