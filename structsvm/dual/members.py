"""The examples, their alphas and the copy of w that one of several workers owns while they train one model.

From the same w each of K workers solves its part of the dual as if the others would step likewise: for the change
A d of w that a change d of its alphas makes, it maximises

    sum_i d_i b_i - <w, A d> - sigma / 2 |A d|^2     (less what a ridge adds).

Times sigma this is the dual of alphas sigma alpha and of sigma C, started from w: the solver's own steps maximise it.
With sigma = K the sum of all changes never lowers the dual (Ma and others 2015). A smaller sigma takes longer steps.
The sum is taken about as far as an exact line search says.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from structsvm._problem import rebuild
from structsvm.dual._dual import DualState
from structsvm.dual._weights import add_sparse, half_norm, sum_up
from structsvm.dual.cuts import CUTS, mixed, scaled
from structsvm.dual.parallel import parallel_map

# The rise along a sum that is highest at b is, at its end, (2 b - 1) / b^2 of it: 0.99, and alphas need not be mixed.
NEARLY = 0.9
PIECE = 1 << 16  # weights that stay in the cache


@dataclass(frozen=True)
class SharedWeights:
    """Weights that all members have: the last ones or, of the last `over` exchanges, the average."""

    over: int = 0


class Shard:
    """A part of a problem that is made where it is used: it pickles as that part.

    With an `order`, the indices of all examples, it has those that come from `start` to `stop` in it.
    """

    def __init__(self, problem: Any, start: int, stop: int, order: Any = None) -> None:
        self.problem, self.start, self.stop = problem, start, stop
        self.chosen = None if order is None else order[start:stop]

    def made(self) -> Any:
        if self.chosen is None:
            return self.problem.shard(self.start, self.stop)
        make, arguments = self.__reduce__()
        return make(*arguments)

    def __reduce__(self) -> Any:
        problem, chosen = self.problem, self.chosen
        arguments = problem.examples(self.start, self.stop) if chosen is None else problem.examples_at(chosen)
        return rebuild, (type(problem), arguments, problem.formulation, problem.first + self.start)


class Member:
    """The share of a worker in the training of one model.

    Parameters
    ----------
    parts : list of Shard
        Its examples.
    C : list of ndarray
        Weights of their slacks.
    base : ndarray of float64, or None
        Weights that training started from.
    solver : DualSolver
    n_threads, seed : int

    Attributes
    ----------
    cuts : list of dict of ndarray
        Constraints and alphas of its examples, see `CUTS`.
    w, work : ndarray, or None
        The weights as all members have them, and those that it trains on: the same between exchanges.
    average_sum : ndarray, or None
        As that of `WeightState`, of exchanges.
    states : dict
        By part, the last state of `state_of`, its sigma, and the cuts that it has.
    """

    OF_A_WORKER = ("w", "work", "average_sum", "average", "number", "before")

    def __init__(self, parts: Any, C: Any, base: Any, solver: Any, n_threads: int, seed: int) -> None:
        self.shards, self.C, self.base, self.solver, self.n_threads = parts, C, base, solver, n_threads
        self.seed = seed
        self.cuts: list[Any] = []
        self.w: Any = None
        self.work: Any = None
        self.average_sum: Any = None
        self.average: Any = None  # the average made by `held`
        self.number: Any = None  # the exchange that comes next; None: w is not known
        self.before: Any = None  # by part, the cuts before an exchange whose sum has not been taken
        self.states: dict[int, tuple[DualState, float, Any]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | dict.fromkeys(self.OF_A_WORKER) | {"states": {}}

    @property
    def parts(self) -> list[Any]:
        """The problems of its examples."""
        self.shards = [shard.made() if isinstance(shard, Shard) else shard for shard in self.shards]
        return self.shards

    def state_of(self, part: int, sigma: float = 1.0) -> DualState:
        """The state of the dual over a part, of alphas and C times sigma, that steps on `work`."""
        state, last, cuts = self.states.pop(part, (None, 1.0, None))
        if state is None or cuts is not self.cuts[part]:
            state, last = DualState(self.parts[part], self.C[part], seed=self.seed + part, on=self.work), 1.0
            state.set_state(state.get_state() | self.cuts[part])
        state.scale(sigma / last)
        self.states[part] = state, sigma, self.cuts[part]
        return state

    def keep(self, part: int, state: DualState, sigma: float = 1.0) -> None:
        """Let a part have the alphas of a state, which are times sigma."""
        arrays = state.get_state()
        self.cuts[part] = scaled({name: arrays[name] for name in CUTS}, 1.0 / sigma)
        self.states[part] = state, sigma, self.cuts[part]

    # ---- an exchange -----------------------------------------------------------------------------

    def train(self, _: Any, number: int, n_exchanged: int, start: int, stop: int, sigma: float, n_before: int) -> Any:
        """Train on parts start .. stop - 1.

        Returns
        -------
        None if this is a copy that does not have the present w; else the change of w (indices, values), the slope of
        the dual along it, what a ridge adds to |A d|^2, calls of the oracle, and seconds.
        """
        if number != self.number or self.before is not None:
            return None
        begin = time.perf_counter()
        parts, slope, ridge, n_argmax = range(start, min(stop, len(self.parts))), 0.0, 0.0, 0
        self.before, self.average = {part: self.cuts[part] for part in parts}, None
        for part in parts:
            state = self.state_of(part, sigma)
            del self.states[part]  # its alphas are about to change
            n_argmax -= state.n_argmax
            schedule = self.solver.schedule_of(state, None, sigma * self.C[part], self.n_threads)
            schedule.start_pass(n_before)
            while not schedule.run(math.inf):
                pass
            n_argmax += state.n_argmax
            (linear_before, total_before) = self._sums(part, self.cuts[part])
            self.keep(part, state, sigma)
            linear, total = self._sums(part, self.cuts[part])
            slope += linear - linear_before
            if self.parts[part].formulation["penalty"] == "quadratic":
                total -= total_before
                r = np.divide(1.0, self.C[part], out=np.zeros(len(total)), where=self.C[part] > 0.0)
                slope, ridge = slope - float(r @ (total_before * total)), ridge + float(r @ total**2)
        where = differences(self.work, self.w)
        values = (self.work[where] - self.w[where]) / self.w.dtype.type(sigma)
        slope -= float(self.w[where].astype(float) @ values)
        return shortest(where, len(self.w)), values, slope, ridge, n_argmax, time.perf_counter() - begin

    def take(self, changes: Any, number: int, n_exchanged: int, *_: Any) -> Any:
        """Sum the changes of all members, and go along the sum as far as the dual rises.

        Returns
        -------
        None if a member has no change, or this one has taken the sum already; else where the dual is highest along
        the sum (1: at its end), what it has risen, calls of the oracle, seconds of the busiest, and bytes.
        """
        if number != self.number or self.before is None or any(change is None for change in changes):
            return None
        indices, vectors, slopes, ridges, calls, seconds = zip(*changes, strict=True)
        where, values = np.concatenate(indices, dtype=np.int64), np.concatenate(vectors)
        bounds = np.cumsum([0, *map(len, indices)])
        slope, curvature = sum(slopes), sum(ridges) + sum_up(where, values, bounds, len(self.w))
        best = slope / curvature if curvature > 0.0 else 1.0
        share = 1.0 if best > NEARLY else max(best, 0.0)
        if self.solver.average and self.average_sum is None:
            self.average_sum = np.zeros(len(self.w), dtype=self.w.dtype)
        elif n_exchanged == 0 and self.average_sum is not None:
            self.average_sum[:] = 0.0
        values *= values.dtype.type(share)
        tick = 0.5 * n_exchanged * (n_exchanged + 1.0)
        add_sparse(where, values, self.w, self.work, self.average_sum, tick)
        for part, before in self.before.items() if share < 1.0 else ():
            self.cuts[part] = mixed(before, self.cuts[part], share)
            if share > 0.0:
                self.keep(part, self.state_of(part))  # in which those that are the same are one
        self.number, self.before = number + 1, None
        n_bytes = (len(changes) - 1) * sum(array.nbytes for array in (*indices, *vectors))
        return best, share * (slope - 0.5 * share * curvature), sum(calls), max(seconds), n_bytes

    def _sums(self, part: int, cuts: Any) -> Any:
        """The sum of alpha b of a part, and the sum of alpha per example."""
        alpha = cuts["cut_numbers"][:, 0]
        total = np.bincount(cuts["cut_example"], alpha, len(self.C[part]))
        return float(alpha @ cuts["cut_numbers"][:, 1]), total

    def _undo(self) -> None:
        """Drop what was learnt in an exchange that did not come to its end."""
        for part, before in (self.before or {}).items():
            self.cuts[part] = before
        self.before = None

    # ---- exactly, of all alphas --------------------------------------------------------------------

    def totals(self, _: Any, number: int) -> Any:
        """The sum of alpha psi (indices, values); those of alpha b and r t^2, counts of both; whether w is not known.

        The exchange that comes next has this number.
        """
        self._undo()
        is_new, self.number, self.w = self.number is None, number, None
        sums, rows = np.zeros(self.parts[0].n_features), []
        if self.work is None:
            self.work = np.zeros(len(sums), dtype=self.parts[0].weight_dtype)
        for part in range(len(self.parts)):
            state = self.state_of(part)
            rows.append((*state.add_sums(sums), state.n_cuts, state.n_patterns))
        where = differences(sums, None)
        return shortest(where, len(sums)), sums[where], np.sum(rows, axis=0), is_new

    def begin(self, totals: Any, number: int) -> Any:
        """Make w of what all members have returned; None if this is a copy that is without it.

        Returns
        -------
        Sums of alpha b and r t^2, counts of constraints and patterns, of members that did not know w;
        1/2 |w - base|^2, <base, w - base>, 1/2 |w|^2.
        """
        if number != self.number:
            return None
        exact = np.zeros(self.parts[0].n_features)
        for where, values, *_ in totals:
            exact[where] += values
        half, product = half_norm(exact), 0.0
        if self.base is not None:
            product = float(np.sum(self.base * exact))
            exact += self.base
        self.work[:] = exact
        del exact  # before there is another vector
        self.w, self.average = self.work.copy(), None
        rows = np.sum([row for *_, row, _ in totals], axis=0)
        return *rows.tolist(), sum(is_new for *_, is_new in totals), half, product, half_norm(self.w)

    # ---- questions -----------------------------------------------------------------------------------

    def held(self, w: Any) -> Any:
        """The weights that are meant, or given; None if this is a copy without them."""
        if not isinstance(w, SharedWeights) or self.w is None or not w.over or self.average_sum is None:
            return self.w if isinstance(w, SharedWeights) else w
        if self.average is None:
            self.average = self.average_sum / self.w.dtype.type(-0.5 * w.over * (w.over + 1.0))
            self.average += self.w
        return self.average

    def answers(self, w: Any, function: Any, *arguments: Any) -> Any:
        """``[function(part, w, *rest) for ...]``."""
        if (weights := self.held(w)) is None:
            return None
        asked = list(zip(self.parts, arguments, strict=True))
        return parallel_map(lambda part: function(part[0], weights, *part[1]), asked, self.n_threads)

    def known_violations(self, w: Any) -> Any:
        """As `DualState.known_violations`, of all its examples."""
        if (weights := self.held(w)) is None:
            return None
        return np.concatenate([self.state_of(part).known_violations(weights) for part in range(len(self.parts))])

    def half_norm(self, w: Any) -> Any:
        """As `DualState.half_norm`."""
        return None if (weights := self.held(w)) is None else half_norm(weights, self.base)

    def piece(self, w: Any, start: int, stop: int) -> Any:
        """Some of the weights."""
        return None if (weights := self.held(w)) is None else weights[start:stop]

    def collect(self, _: Any, part: int) -> Any:
        """The cuts of a part, if there is one."""
        self._undo()
        return [self.cuts[part][name] for name in CUTS] if part < len(self.cuts) else None


def differences(a: Any, b: Any) -> Any:
    """Where two long vectors differ (None: 0), in one pass over them."""
    found = [np.zeros(0, dtype=np.intp)]
    for start in range(0, len(a), PIECE):
        piece = slice(start, start + PIECE)
        found.append(start + np.flatnonzero(a[piece] != (0.0 if b is None else b[piece])))
    return np.concatenate(found)


def shortest(indices: Any, n: int) -> Any:
    """Indices below n in the shortest integers."""
    return indices.astype(np.min_scalar_type(n))
