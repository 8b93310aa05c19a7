"""A machine with a bias for each pair of classes, each solved to its optimum, as one problem.

For classes k < l, on the examples of these two alone, with y_i = -1 for k and 1 for l:

    min  1/2 |w|^2 + sum_i C_i max(0, 1 - y_i (<w, phi(x_i)> + b)),

the machine of LIBSVM's C-SVC. Its dual variables 0 <= alpha_i <= C_i, sum_i y_i alpha_i = 0, stand in one matrix for
all pairs: beta_li for an example i of class k is its alpha in the machine of k and l. There, of the examples of l,

    f_kl(x) = sum_{i in l} beta_ki k(x_i, x) - sum_{i in k} beta_li k(x_i, x) + b_kl,   b_lk = -b_kl,

is for l and against k. G_li = 1 - y_i sum_j y_j alpha_j k(x_i, x_j) are the derivatives, and primal and dual objective
are sums over all pairs. A pass solves all machines to a tolerance tau, and tau falls from pass to pass. Kernel values
among the examples of a class serve all of its machines; those of two classes serve one, in all passes.
"""

from __future__ import annotations

import time
from itertools import combinations
from typing import Any

import numpy as np

from structsvm.checkpoint import COUNTS, EXAMPLES, STATES
from structsvm.kernel._kernels import Gram, Kernel, Rows
from structsvm.kernel._lasvm import LaSVMState
from structsvm.parameters import COUNT, POSITIVE, Checkpoints, declared, parameter
from structsvm.result import relative_gap
from structsvm.solvers.kernel.base import KernelDualRun, KernelSolver, class_by_class
from structsvm.stored_values import Array

# The tolerance of the first pass, LIBSVM's, and its factor from pass to pass.
FIRST_TAU, SHRINK = 1e-3, 0.1

# Steps of a machine in a pass at most: so many, or so many per example. Only what is no kernel takes more.
LEAST_STEPS, STEPS = 1_000_000, 1000


STATES["pairwise"] = {
    "counters": Array("i8", (3,), within=COUNTS),
    "support": Array("i8", ("n_support",), within=EXAMPLES, once=True),
    "beta": Array("f8", ("n_labels", "n_support"), within=(0.0, None)),
    "gradient": Array("f8", ("n_labels", "n_support")),
    "biases": Array("f8", ("n_labels", "n_labels")),
    "tau": Array("f8", (1,)),
}


class PairwiseRun(KernelDualRun):
    """A run over all pairs of classes."""

    @property
    def intercept(self) -> Any:
        """b: array (n_labels, n_labels)."""
        return self.state.biases.copy()

    def certify(self) -> None:
        super().certify()
        if relative_gap(self.primal, self.dual) > self.solver.tol:
            self.state.tau *= SHRINK


@declared
class PairwiseParameters:
    """The parameters that `Pairwise` and its classifier share."""

    tol: float = parameter(POSITIVE, default=1e-2)
    max_iter: int = parameter(COUNT, default=10)
    cache_size: float = parameter(POSITIVE, default=200)


@declared
class Pairwise(PairwiseParameters, Checkpoints, KernelSolver):
    """Machines of all pairs of classes, to a certified gap.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the sum of slacks of each machine.
    tol : float, default=1e-2
        Relative duality gap to stop at, of the sum of all machines. It is known without further kernel values.
    max_iter : int, default=10
        Passes over all pairs at most.
    cache_size : float, default=200
        Memory for kernel values that pairs share, in units of 2**20 bytes.
    checkpoint
        As for `LaRank`.

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.kernel._kernels import Gram, Kernel, Rows
    >>> from structsvm.kernel.problem import KernelProblem
    >>> from structsvm.solvers import Pairwise
    >>> gram = Gram(Kernel("rbf", gamma=1.0), Rows(np.array([[0.0], [1.0], [2.0]])))
    >>> problem = KernelProblem(gram, [0, 1, 2], 3)
    >>> Pairwise(C=1.0).solve(problem).status
    'converged'
    """

    C: float = parameter(POSITIVE, default=1.0, kw_only=False)

    takes_base = False
    needs = frozenset({"kernel", "zero-one loss", "independent labels"})
    run_type = PairwiseRun

    def state_on(self, problem: Any, C: Any, first: Any, seed: Any) -> Any:
        if first:
            raise ValueError("Pairwise takes no base: it starts from 0")
        return PairwiseState(problem.gram, problem.y, C, problem.n_labels, cache_size=self.cache_size)

    def schedule_on(self, state: Any) -> Any:
        return PairSchedule(state)


class ClassBlocks:
    """Kernel values of the examples of two classes; blocks are kept while there is room.

    Attributes
    ----------
    n_asked, n_missed : int
        Requested blocks, and those of them that were computed.
    """

    def __init__(self, gram: Gram, order: Any, start: Any, cache_size: float) -> None:
        self.gram, self.order, self.start = gram, order, start
        self.room = int(cache_size * 2**18)  # values
        self.size = self.room
        self.kept: dict[tuple[int, int], Any] = {}
        self.n_asked = self.n_missed = 0

    @property
    def hit_rate(self) -> float:
        return 1.0 - self.n_missed / self.n_asked if self.n_asked else 1.0

    def gram_of(self, k: int, l: int) -> Gram:
        """The `Gram` of a pair: all of its values, or its rows if the cache has no room for these."""
        first, second = (self.order[self.start[c] : self.start[c + 1]] for c in (k, l))
        n = len(first) + len(second)
        if n * n > self.size:
            at, kernel, data = np.concatenate([first, second]), self.gram.kernel, self.gram.rows.data
            return Gram(kernel, Rows(data[np.ix_(at, at)] if kernel.name == "precomputed" else data[at]))
        values, m = np.empty((n, n), dtype=np.float32), len(first)
        values[:m, :m], values[m:, m:] = self.block(k, k), self.block(l, l)
        values[:m, m:] = self.block(k, l)
        values[m:, :m] = values[:m, m:].T
        return Gram(Kernel("precomputed"), Rows(values))

    def block(self, k: int, l: int) -> Any:
        self.n_asked += 1
        if (k, l) in self.kept:
            return self.kept[k, l]
        self.n_missed += 1
        values = self.gram.block(*(self.order[self.start[c] : self.start[c + 1]] for c in (k, l)))
        if values.size <= self.room:
            self.room -= values.size
            self.kept[k, l] = values
        return values


class PairwiseState:
    """The dual point over all examples of positive weight, which stand class by class, and its derivatives.

    Parameters
    ----------
    gram : Gram
    y : ndarray of shape (n_samples,), int32
    C : ndarray of shape (n_samples,), float64
        Weight of each example's slacks; examples of weight 0 take no part.
    n_labels : int
    cache_size : float

    Attributes
    ----------
    order : ndarray of int64
        The examples that take part; those of class k begin at `start` [k], and `owner` are their classes.
    beta, G : ndarray of shape (n_labels, len(order))
        The dual point, 0 at the example's own class, and the derivatives, there 0 too.
    biases : ndarray of shape (n_labels, n_labels)
    tau : float
        Tolerance of the next pass.
    """

    kind = "pairwise"
    n_argmax = 0

    def __init__(self, gram: Gram, y: Any, C: Any, n_labels: int, *, cache_size: float = 200.0) -> None:
        self.order, self.owner, start = class_by_class(y, C, n_labels)
        self.own, self.start = (self.owner, np.arange(len(self.order))), start.tolist()
        self.C = np.ascontiguousarray(C[self.order])
        self.cache, self.cache_size = ClassBlocks(gram, self.order, self.start, cache_size), cache_size
        self.biases = np.zeros((n_labels, n_labels))
        self.pairs = list(combinations(range(n_labels), 2))
        self.restart()

    def restart(self) -> None:
        """Go to 0."""
        self.beta, self.G = np.zeros((len(self.biases), len(self.order))), np.ones((len(self.biases), len(self.order)))
        self.G[self.own] = 0.0
        self.tau, self.dual = FIRST_TAU, 0.0

    @property
    def n_vectors(self) -> int:
        """Coefficients that are not zero."""
        return int(np.count_nonzero(self.beta))

    def solve(self, k: int, l: int) -> None:
        """Solve the machine of two classes, from its current point."""
        first, second = (slice(self.start[c], self.start[c + 1]) for c in (k, l))
        m, n = first.stop - first.start, first.stop - first.start + second.stop - second.start
        if n == 0:
            return
        sign = np.repeat([-1.0, 1.0], [m, n - m])
        gram = self.cache.gram_of(k, l)
        C = np.concatenate([self.C[first], self.C[second]])
        machine = LaSVMState(gram, sign > 0.0, C, tau=self.tau, cache_size=max(self.cache_size, n * 4e-6))
        beta, G = (np.concatenate([of[l, first], of[k, second]]) for of in (self.beta, self.G))
        machine.lay_out(np.arange(n), sign * beta, sign * G)
        machine.finish(max(LEAST_STEPS, STEPS * n), leave=False)
        _, _, _, alpha, g = machine.coefficients()
        for of, found in ((self.beta, np.abs(alpha)), (self.G, sign * g)):
            of[l, first], of[k, second] = found[:m], found[m:]
        self.biases[k, l], self.biases[l, k] = machine.bias, -machine.bias
        if gram.kernel.name != "precomputed":
            self.cache.gram.n_values += gram.n_values

    def settle(self) -> float:
        """Compute the dual objective, 1/2 sum beta (1 + G)."""
        self.dual = 0.5 * float(self.beta.sum() + np.vdot(self.beta, self.G))
        return self.dual

    def certify(self) -> tuple[float, float, float]:
        """``(primal, dual, 1/2 sum |w|^2)`` of all machines; slacks are G - b, with b for the example's class."""
        self.settle()
        half_norm = 0.5 * float(self.beta.sum() - np.vdot(self.beta, self.G))
        slacks = np.maximum(self.G - self.biases[:, self.owner], 0.0)
        return half_norm + float(slacks.sum(axis=0) @ self.C), self.dual, half_norm

    def get_state(self) -> dict[str, Any]:
        """Return the state as a dict of arrays; training that resumes from it gives bit-identical results."""
        return {
            "support": self.order.copy(),
            "beta": self.beta.copy(),
            "gradient": self.G.copy(),
            "biases": self.biases.copy(),
            "tau": np.array([self.tau]),
            "counters": np.array([self.cache.gram.n_values, self.cache.n_asked, self.cache.n_missed], dtype=np.int64),
        }

    def set_state(self, state: Any, *, adapt: bool = False) -> None:
        """Restore the arrays returned by `get_state`; see `WeightState.set_state`.

        With `adapt`, arrays of another problem that do not fit this one are ignored, and the machines start from 0.
        """
        beta, tau = state["beta"], float(state["tau"][0])
        if not 0.0 < tau <= FIRST_TAU:
            raise ValueError(f"array 'tau' of the training state is {tau:g}, which must be in (0, {FIRST_TAU:g}]")
        fits = np.array_equal(state["support"], self.order)
        if not fits and not adapt:
            raise ValueError("array 'support' of the training state is of other examples")
        fits = fits and self.is_feasible(beta)
        if not fits and not adapt:
            raise ValueError("array 'beta' of the training state is not feasible")
        self.cache.gram.n_values, self.cache.n_asked, self.cache.n_missed = state["counters"].tolist()
        if not fits:
            self.restart()
            return
        self.beta, self.G, self.biases = (state[name].copy() for name in ("beta", "gradient", "biases"))
        self.tau = tau
        self.settle()

    def is_feasible(self, beta: Any) -> bool:
        """Whether all coefficients are in their boxes and balance in each machine."""
        if (beta > self.C).any() or beta[self.own].any():
            return False
        given = np.add.reduceat(np.pad(beta, ((0, 0), (0, 1))), self.start[:-1], axis=1)
        given[:, np.diff(self.start) == 0] = 0.0
        return bool((np.abs(given - given.T) <= 1e-6 * (1.0 + given)).all())

    def coefficients(self) -> tuple[Any, Any, Any, Any]:
        """The support vectors, as `KernelDual.coefficients` lists them: beta."""
        support = np.flatnonzero(self.beta.any(axis=0))
        slots, labels = np.nonzero(self.beta[:, support].T)
        return self.order[support], slots, labels.astype(np.int32), self.beta[labels, support[slots]]


class PairSchedule:
    """One machine after the other, with the interface of `structsvm.dual._schedules.Schedule`."""

    def __init__(self, state: PairwiseState) -> None:
        self.state = state
        self.n_samples = self.next = len(state.pairs)

    def get_state(self) -> Any:
        return np.empty(0)

    def set_state(self, numbers: Any) -> None:
        """Raise ValueError unless the array is that of `get_state`."""
        if len(numbers):
            raise ValueError(f"the schedule of the training state must be empty, got {len(numbers)} numbers")

    def start_pass(self, n_before: int = 0) -> None:
        self.next = 0

    def run(self, seconds: float) -> bool:
        """Solve machines for about `seconds`; return whether all have been solved."""
        end = time.perf_counter() + seconds
        while self.next < self.n_samples:
            self.state.solve(*self.state.pairs[self.next])
            self.next += 1
            if time.perf_counter() > end:
                break
        return self.next == self.n_samples
