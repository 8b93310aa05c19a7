r"""The machine of Weston and Watkins with biases (Guermeur 2023): its dual, working sets, certificates.

Problem 1 of the paper, with a C for each example:

    min_{h, b, xi >= 0}  1/2 sum_k |h_k|^2 + sum_i C_i sum_{k != y_i} xi_ik,
    h_{y_i}(x_i) + b_{y_i} - h_k(x_i) - b_k >= 1 - xi_ik.

Its dual in LaRank's coordinates (beta_ki = -alpha_ik for k != y_i, beta_{y_i i} = sum_k alpha_ik; h_k = sum_i beta_ki
phi(x_i), which is equation 1):

    max_beta  sum_i beta_{y_i i} - 1/2 sum_k beta_k' K beta_k,   -C_i <= beta_ki <= 0 for k != y_i,
    sum_k beta_ki = 0 for each i,   sum_i beta_ki = 0 for each k.

Decomposition (section 5.3). A round chooses a working set of examples, takes their rows of the kernel matrix and
improves the dual over them alone, with what each class gets from them in all (sum_i beta_ki over the set) held fixed;
then all scores follow, F += (change of beta) K_rows. Two ways to improve it: Frank-Wolfe (sections 5.1 and 5.2), and
steps along cycles of classes (`structsvm._cycles`). After each round the linear programme of Frank-Wolfe over all
examples gives the best biases and with them the exact duality gap (`structsvm._circulation`).
"""

from __future__ import annotations

import time
import warnings

import numpy as np

from structsvm._circulation import Circulation
from structsvm._cycles import Arcs, CycleSteps
from structsvm.progress import Monitor
from structsvm.result import ConvergenceWarning, History, Result, relative_gap

# Examples in a working set of cycle steps. A working set is worked on until its steepest cycle (for Frank-Wolfe: its
# gap) has only this share of the slope that there was.
WORKING_SET = 1024
SHARE = 0.1

# Steps in a round at most: of cycles n Q times this for n examples; of Frank-Wolfe so many.
CYCLE_STEPS = 10
FRANK_WOLFE_STEPS = 20

# Examples times classes: the solver keeps several such matrices.
LARGEST_MATRIX = 2**26

# Columns of the kernel matrix that are converted to float64 at a time.
STRIP = 4096


class Rounds:
    """How a working set is chosen and improved.

    Attributes
    ----------
    by_gain : bool
        What examples are chosen by: slopes times the room that there is, or slopes alone.
    least : int
        Examples that a working set has to have room for, for each class.
    """

    by_gain = False
    least = 1

    @staticmethod
    def size(rows):
        """Examples in a working set."""
        raise NotImplementedError

    @staticmethod
    def improve(start, C, beta, F, K, biases, slope):
        """Change `beta` and `F` of a working set, in place.

        `biases` are optimal for all examples, and `slope` is that of their steepest cycle.
        """
        raise NotImplementedError


class CycleRounds(Rounds):
    """Steps along cycles of classes."""

    @staticmethod
    def size(rows):
        return min(WORKING_SET, rows.capacity)

    @staticmethod
    def improve(start, C, beta, F, K, biases, slope):
        CycleSteps(start, C, beta, F, K).run(SHARE * slope, CYCLE_STEPS * F.size)


class FrankWolfeRounds(Rounds):
    """Frank-Wolfe; all examples are in the working set, if the cache has room for their rows.

    Steps towards corners leave coefficients that shrink and never vanish; their slopes say nothing without their size.
    """

    by_gain = True
    least = 4

    @staticmethod
    def size(rows):
        return rows.capacity

    @staticmethod
    def improve(start, C, beta, F, K, biases, slope):
        programme = Circulation(start, C, beta.sum(axis=1))
        programme.biases[:] = biases
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


SOLVERS: dict[str, type[Rounds]] = {"cycles": CycleRounds, "frank_wolfe": FrankWolfeRounds}


class WestonWatkinsRun:
    """A training run: the dual point over all examples, which stand class by class.

    Parameters
    ----------
    rows : GramRows
        In that order.
    start : ndarray of shape (n_classes + 1,), int64
        Where the examples of each class begin; no class is empty.
    C : ndarray of shape (n_samples,), float64
        Weight of each example's slacks, > 0.
    solver : {"cycles", "frank_wolfe"}

    Attributes
    ----------
    beta : ndarray of shape (n_classes, n_samples)
        The dual point.
    owner : ndarray of shape (n_samples,)
        The examples' classes; `own` is the index of their entries in `beta`.
    biases : ndarray of shape (n_classes,)
        Optimal for the dual point; after `solve` the middle of those that are.
    primal, dual : float
    n_iter : int
        Rounds.
    status : str
        As in `Result`.
    """

    has_dual = True

    def __init__(self, rows, start, C, solver="cycles"):
        n, Q = len(C), len(start) - 1
        if n * Q > LARGEST_MATRIX:
            raise ValueError(
                f"{n} examples times {Q} classes are more than the {LARGEST_MATRIX} coefficients that a batch solver "
                "keeps here; LaRankClassifier keeps those of support vectors alone"
            )
        least = SOLVERS[solver].least * Q
        if rows.capacity < min(n, least):
            raise ValueError(
                f"cache_size has room for {rows.capacity} rows of {n} kernel values; solver={solver!r} needs "
                f"{least} for {Q} classes: raise it to {4e-6 * n * (least + 1):.3g} MB at least"
            )
        self.rows, self.start, self.C, self.solver = rows, start, C, SOLVERS[solver]
        self.owner = np.repeat(np.arange(Q), np.diff(start))
        self.own = self.owner, np.arange(n)
        self.beta, self.F = np.zeros((Q, n)), np.zeros((Q, n))
        self.programme = Circulation(start, C, np.zeros(Q))
        self.kept = np.empty(0, dtype=np.int64)
        self.history = History()
        self.n_iter, self.seconds, self.status = 0, 0.0, "running"
        self.primal = self.dual = np.nan

    def solve(self, tol, max_iter, monitor=None):
        """Do rounds until the relative duality gap is at most `tol`, or `max_iter` of them; returns self.

        Ctrl-C ends training with the status "interrupted" and a usable state.
        """
        monitor = Monitor() if monitor is None else monitor
        self.begin = time.perf_counter()
        try:
            self.certify()
            while self.status == "running":
                monitor.begin_pass(self)
                self.round()
                self.n_iter += 1
                self.certify()
                monitor.tick(self)
                if relative_gap(self.primal, self.dual) <= tol:
                    self.status = "converged"
                elif self.n_iter == max_iter:
                    self.status = "max_iter"
                if monitor.end_pass(self) and self.status == "running":
                    self.status = "stopped"
        except KeyboardInterrupt:
            self.status = "interrupted"
        finally:
            monitor.close()
        self.recompute()
        if self.status == "max_iter":
            warnings.warn(
                f"training stopped after {max_iter} rounds at a relative gap of "
                f"{relative_gap(self.primal, self.dual):.3g}, above tol={tol:g}: raise max_iter, or loosen tol",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    # ---- certificates ---------------------------------------------------------------------------

    def certify(self):
        """Compute both objectives; the primal at the biases that are best for the present h."""
        half_norm = 0.5 * float(np.vdot(self.beta, self.F))
        self.dual = float(self.beta[self.own].sum()) - half_norm
        self.primal = half_norm + self.programme.solve(self.F)
        self.half_norm = half_norm
        self.seconds = time.perf_counter() - self.begin
        self.history.add(
            seconds=self.seconds,
            n_iter=self.n_iter,
            primal=self.primal,
            dual=self.dual,
            gap=self.primal - self.dual,
            n_support=self.n_support,
        )

    def recompute(self):
        """Compute scores and certificate afresh from beta alone, and take the middle of the optimal biases."""
        self.beta[self.own] = 0.0
        self.beta[self.own] = -self.beta.sum(axis=0)
        self.F[:] = 0.0
        support = np.flatnonzero(self.beta.any(axis=0))
        for first in range(0, len(support), self.rows.capacity):
            part = support[first : first + self.rows.capacity]
            self.add_scores(part, self.beta[:, part])
        self.certify()
        self.programme.centre(self.F)

    @property
    def biases(self):
        return self.programme.biases

    @property
    def n_support(self):
        """Coefficients alpha that are not zero."""
        return int(np.count_nonzero(self.beta < 0.0))

    @property
    def progress(self):
        """Rounds done."""
        return self.n_iter

    @property
    def state(self):
        """Where a progress bar finds the dual."""
        return self

    def result(self):
        """Return the `Result` as of now."""
        return Result(
            primal=self.primal,
            dual=self.dual,
            gap=self.primal - self.dual,
            n_iter=self.n_iter,
            n_argmax=0,
            n_support=self.n_support,
            seconds=self.seconds,
            status=self.status,
            primal_norm=self.half_norm,
            dual_norm=self.half_norm,
            history=self.history.arrays(),
        )

    # ---- rounds ---------------------------------------------------------------------------------

    def round(self):
        """Improve the dual on a working set."""
        chosen, slope = self.working_set(self.solver.size(self.rows))
        start = np.searchsorted(self.owner[chosen], np.arange(len(self.start)))
        K = self.rows.table[np.ix_(self.rows.fetch(chosen), chosen)].astype(np.float64)
        beta, F = self.beta.take(chosen, axis=1), self.F.take(chosen, axis=1)
        self.solver.improve(start, self.C[chosen], beta, F, K, self.biases, slope)
        change = beta - self.beta[:, chosen]
        moved = np.flatnonzero(change.any(axis=0))
        self.beta[:, chosen] = beta
        self.add_scores(chosen[moved], change[:, moved])

    def add_scores(self, numbers, change):
        """F += change K for the rows of some examples."""
        places = self.rows.fetch(numbers)
        for first in range(0, self.F.shape[1], STRIP):
            self.F[:, first : first + STRIP] += change @ self.rows.table[places, first : first + STRIP].astype(
                np.float64
            )

    def working_set(self, size):
        """Return up to `size` examples in ascending order, and the slope of the steepest cycle of all examples.

        Those on that cycle are among them, so every round improves the dual. Half of the others are new: from each
        class as many that want to rise most, and as many that want to fall most, whether they violate anything or
        not, since what rises must find what falls. (Relative to the optimal biases, the slope of alpha_ik is d_ik =
        g_ik - (b_{y_i} - b_k).) The rest are those that were chosen last before.
        """
        n, Q = len(self.owner), len(self.start) - 1
        cycle, slope = Arcs(self.start, self.C, self.beta, self.F).steepest_cycle()
        if size >= n:
            return np.arange(n), slope
        d = 1.0 - self.F[self.own] + self.F - (self.biases[self.owner] - self.biases[:, None])
        above, below = self.C + self.beta, -self.beta
        above[self.own] = 0.0
        rise = np.where(above > 0.0, d * above if self.solver.by_gain else d, -np.inf)
        fall = np.where(below > 0.0, -d * below if self.solver.by_gain else -d, -np.inf)
        quota = max(size // (4 * Q) if len(self.kept) else size // (2 * Q), 1)
        new = [cycle]
        for end in (rise.max(axis=0), fall.max(axis=0)):
            for first, last in zip(self.start[:-1], self.start[1:]):
                new.append(first + np.argpartition(-end[first:last], min(quota, last - first) - 1)[:quota])
        chosen, places = np.unique(np.concatenate([*new, self.kept]), return_index=True)
        self.kept = chosen[np.argsort(places)][:size]
        return np.sort(self.kept), slope
