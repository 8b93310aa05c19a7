"""Workers that train one model: each owns the alphas of its examples, and only changes of w travel (CoCoA+).

From the same w each of K workers solves its part of the dual as if the others would step likewise: for the change
A d of w that a change d of its alphas makes, it maximises

    sum_i d_i b_i - <w, A d> - sigma / 2 |A d|^2     (less what a ridge adds).

Times sigma this is the dual of alphas sigma alpha and of sigma C, started from w: the solver's own steps maximise it.
With sigma = K the sum of all changes never lowers the dual (Ma and others 2015). A smaller sigma takes longer steps.
The sum is taken about as far as an exact line search says, and sigma follows it.

Changes go from worker to worker. Each sums all of them, in their order, and searches along the sum: all come to the
same w, bit for bit, and the client gets a few numbers. A sum by ranges of features, which a ring passes twice, would
send less only between more than some eight workers, and take a task for each pair of them.

Dual and w are recomputed from all alphas for each certificate, which is exact as ever; in between the dual is the sum
of what exchanges have gained. The alphas of a worker that is lost are those of the last checkpoint, or 0; training goes
on from there.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice, pairwise
from typing import Any

import numpy as np

from structsvm._problem import rebuild
from structsvm.dual._dual import DualState
from structsvm.dual._rounds import violations
from structsvm.dual._threads import costs
from structsvm.dual._weights import add_sparse, half_norm, sum_up
from structsvm.dual.parallel import Rounds, parallel_map
from structsvm.dual.threads import equal_shares
from structsvm.shards.spread import is_ray
from structsvm.shards.storage import in_file

N_PARTS = 8  # of a worker's examples, if there are others: exchanges per pass
FACTOR = 2.0  # of sigma, at most, after an exchange: it goes to where the line search would take the whole sum
# Of the rise along a sum its end has 2 b - 1 over b^2 if it is highest at b: 0.99, and alphas need not be mixed.
NEARLY = 0.9
CUTS = ("cut_example", "cut_bounds", "cut_numbers", "cut_words")  # of `DualState.get_state`
# Rounds need fewer calls of the oracle than exchanges between many workers, and more of everything else: they are
# chosen if a call, the mean over some groups of examples, takes longer than this.
DEAR_SECONDS, N_TIMED = 1e-3, 5
PIECE = 1 << 16  # weights that stay in the cache
READ = 1 << 22  # weights that the client reads at a time


class LostError(Exception):
    """A member was lost: its copy has neither its last alphas nor w."""


@dataclass(frozen=True)
class Held:
    """Weights that all members have: the last ones or, of the last `over` exchanges, the average."""

    over: int = 0


class Shard:
    """A part of a problem that is made where it is used: it pickles as that part."""

    def __init__(self, problem: Any, start: int, stop: int) -> None:
        self.problem, self.start, self.stop = problem, start, stop

    def made(self) -> Any:
        return self.problem.shard(self.start, self.stop)

    def __reduce__(self) -> Any:
        problem = self.problem
        arguments = problem.examples(self.start, self.stop)
        return rebuild, (type(problem), arguments, problem.formulation, problem.first + self.start)


class Member:
    """What a worker owns.

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
        self.average: Any = None  # what `held` has made of it
        self.number: Any = None  # of the exchange that comes next; None: w is not known
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
            del self.states[part]  # which has other alphas soon
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
        """Of a part: the sum of alpha b, and that of alpha by example."""
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
        if not isinstance(w, Held) or self.w is None or not w.over or self.average_sum is None:
            return self.w if isinstance(w, Held) else w
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


class SharedState(DualState):
    """A dual state whose alphas and w are with members: here, and on the workers of a cluster from `send` to `close`.

    Parameters
    ----------
    problem, C, seed, base : see `DualState`.
    averaging : see `DualState`; the average is over exchanges.
    solver : DualSolver
    n_threads : sequence of int
        Of each worker.
    connect : callable
        Gives the members workers of their own, with `map`, `all_to_all` and `close` of
        `structsvm.shards.cluster.Cluster`.
    """

    def __init__(
        self,
        problem: Any,
        C: Any,
        solver: Any,
        n_threads: Sequence[int],
        connect: Callable[[Any], Any],
        *,
        averaging: str | None = None,
        base: Any = None,
        seed: int = 0,
    ) -> None:
        super().__init__(problem, C, base=base, seed=seed)
        self.C, self.connect, self.cluster = C, connect, None
        n_parts = 1 if len(n_threads) == 1 else N_PARTS * len(n_threads)
        spans = list(pairwise(equal_shares(costs(problem), problem.groups, n_parts)))
        solver = copy.copy(solver)
        solver.checkpoint = None
        seed = int(self.random_words()[0] >> np.uint64(1))
        self.spans = [np.array(part).tolist() for part in np.array_split(spans, min(len(n_threads), len(spans)))]
        self.members = [
            Member([Shard(problem, a, b) for a, b in part], [C[a:b] for a, b in part], base, solver, n, seed + 100 * k)
            for k, (part, n) in enumerate(zip(self.spans, n_threads))
        ]
        self.n_parts = max(map(len, self.spans))
        self.sigma = float(len(self.members))
        self.is_averaged = averaging is not None
        self.number = 0  # of the next exchange
        self.is_torn = False  # whether an exchange was cut short: some members may have taken its sum
        self.n_exchanged = self.n_lost = 0
        self.counts = [0, 0]
        self.costs: list[tuple[float, float, int]] = []  # by exchange: seconds of a part, of the rest; bytes
        self.objective = self.norm = 0.0  # the dual; 1/2 |w|^2 when it was last recomputed
        self._deal(super().get_state())

    # What steps on own working sets would count.
    n_cuts = property(lambda self: self.counts[0])
    n_patterns = property(lambda self: self.counts[1])

    @property
    def dual(self) -> float:
        """The dual objective, as far as exchanges have told."""
        if self.is_torn:
            self.recompute()
        return self.objective

    def settle(self) -> float:
        return self.dual

    # ---- members -----------------------------------------------------------------------------------

    def map(self, function: Any, shared: Any, arguments: Any) -> Any:
        """``[function(member, shared, *rest) for ...]``, each where its member is."""
        if self.cluster is not None:
            return self.cluster.map(function, shared, arguments)
        return [function(member, shared, *rest) for member, rest in zip(self.members, arguments, strict=True)]

    def _map(self, function: Any, shared: Any = None, *rest: Any) -> Any:
        return self.map(function, shared, [rest] * len(self.members))

    def _all_to_all(self, first: Any, then: Any, *arguments: Any) -> Any:
        """What `then` returns of what all members' `first` has returned. LostError unless each answers."""
        if self.cluster is not None:
            return whole(self.cluster.all_to_all(first, then, arguments))
        return whole(self._map(then, self._map(first, None, *arguments), *arguments))

    def send(self) -> None:
        """Send the members to workers, unless they are there."""
        if self.cluster is None:
            self.cluster, n_lost = self.connect(self.members), self.n_lost
            self.recompute()
            self.n_lost = n_lost  # all were new

    def close(self) -> None:
        """Bring the alphas back, and release what workers hold."""
        cluster = self.cluster
        if cluster is None:
            return
        try:
            if not cluster.is_lost:
                self._collect()
        finally:
            self.cluster = None
            cluster.close()

    def exchange(self, start: int, n_before: int, stop: int | None = None) -> None:
        """Let all members train on a part each, or parts start .. stop - 1, and take the sum of their changes of w."""
        self.send()
        begin, stop, self.is_torn = time.perf_counter(), start + 1 if stop is None else stop, True
        message = self.number, self.n_exchanged, start, stop, self.sigma, n_before
        try:
            best, gain, n_argmax, work, n_bytes = self._all_to_all(Member.train, Member.take, *message)[0]
        except LostError:
            self.recompute()
            return
        self.number, self.objective, self.n_exchanged = self.number + 1, self.objective + gain, self.n_exchanged + 1
        self.is_torn = False
        self.count_argmax(n_argmax)
        self.costs.append((work / (stop - start), max(time.perf_counter() - begin - work, 0.0), n_bytes))
        self.sigma = min(max(self.sigma / min(max(best, 1.0 / FACTOR), FACTOR), 1.0), float(len(self.members)))

    def recompute(self) -> float:
        """Recompute w and the dual objective from all alphas, and let the members have w."""
        while True:
            self.number += 2  # which no member has
            try:
                found = self._all_to_all(Member.totals, Member.begin, self.number)[0]
            except LostError:
                continue
            linear, ridge, n_cuts, n_patterns, n_new, half, product, self.norm = found
            self.objective = linear - half - 0.5 * ridge - product
            self.counts, self.is_torn = [int(n_cuts), int(n_patterns)], False
            if n_new:  # who have no average
                self.n_lost, self.n_exchanged = self.n_lost + n_new, 0
            return self.objective

    # ---- weights -------------------------------------------------------------------------------------

    @property
    def weights(self) -> Any:
        """The last weights, read from the members: array (n_features,)."""
        return self.read(Held())

    def averaged(self) -> Any:
        return self.read(self.held_average())

    def held_average(self) -> Held:
        """The average as members have it."""
        return Held(self.n_exchanged if self.is_averaged else 0)

    def read(self, w: Held) -> Any:
        """Weights that members have, some from each. LostError if none of them is left."""
        if self.cluster is None:
            self.recompute()
        n, found = len(self.members), np.empty(self.problem.n_features, dtype=self.problem.weight_dtype)
        for start in range(0, len(found), READ):
            spans = list(pairwise(np.linspace(start, min(start + READ, len(found)), n + 1).astype(int).tolist()))
            left = set(range(n))
            for turn in range(n):  # what a lost one had the next one has, too
                asked = [(k + turn) % n for k in range(n)]
                for k, piece in zip(asked, self.map(Member.piece, w, [spans[k] for k in asked]), strict=True):
                    if piece is not None:
                        found[slice(*spans[k])] = piece
                        left.discard(k)
                if not left:
                    break
            else:
                raise LostError("no member has the weights")
        return found

    def half_norm(self, w: Any) -> Any:
        if isinstance(w, Held):
            return whole(self._map(Member.half_norm, w))[0]
        return super().half_norm(w)

    def primal(self, w: Any = None, violation: Any = None) -> Any:
        return super().primal(self.weights if w is None else w, violation)

    def known_violations(self, w: Any) -> Any:
        return np.concatenate(whole(self._map(Member.known_violations, w)))

    def restart_average(self) -> None:
        self.n_exchanged = 0

    def end_average(self) -> None:
        pass  # members have it

    def renew(self) -> None:
        pass  # what was read belongs to who has it

    # ---- alphas --------------------------------------------------------------------------------------

    def _collect(self) -> None:
        """Let the members here have the cuts of those on workers, in files: copies start from them."""
        if self.cluster is None:
            return
        for part in range(self.n_parts):
            found = self._map(Member.collect, None, part)
            members = [member for member, cuts in zip(self.members, found) if cuts is not None]
            arrays = zip(*(cuts for cuts in found if cuts is not None), strict=True)
            for name, of_members in zip(CUTS, arrays, strict=True):
                ends = np.cumsum([len(array) for array in of_members])[:-1]
                for member, array in zip(members, np.split(in_file(of_members), ends), strict=True):
                    member.cuts[part] = member.cuts[part] | {name: array}

    def _deal(self, arrays: Any) -> None:
        """Give the members here their part of all cuts."""
        for member, part in zip(self.members, self.spans, strict=True):
            member.cuts = [cuts_of(arrays, a, b) for a, b in part]

    def get_state(self) -> Any:
        self._collect()
        cuts = [cuts for member in self.members for cuts in member.cuts]
        spans = [np.arange(a, b) for part in self.spans for a, b in part]
        return super().get_state() | joined(zip(spans, cuts, strict=True))

    def set_state(self, state: Any, *, adapt: bool = False) -> None:
        checked = DualState(self.problem, self.C)
        checked.set_state(state, adapt=adapt)
        found = checked.get_state()
        self.close()
        self._deal(found)
        super().set_state(state | cuts_of(found, 0, 0), adapt=adapt)
        self.objective, self.counts = checked.settle(), [checked.n_cuts, checked.n_patterns]
        self.is_torn = False
        self.restart_average()


class MemberRounds(Rounds):
    """Rounds of the oracle whose shards are the members' parts; weights may be `Held` by them."""

    def __init__(self, state: SharedState) -> None:
        super().__init__(state.problem)
        self.state = state
        self.bounds = [0, *(stop for part in state.spans for _, stop in part)]

    def close(self) -> None:
        self.state.close()

    def _alone(self) -> bool:
        return False

    def _map(self, function: Any, w: Any, arguments: Any) -> Any:
        rest = iter(arguments)
        asked = [(function, *islice(rest, len(part))) for part in self.state.spans]
        return [answer for found in whole(self.state.map(Member.answers, w, asked)) for answer in found]


class ExchangeSchedule:
    """What `structsvm.dual._schedules.Schedule` is to one thread.

    Parameters
    ----------
    state : SharedState
    alone : Schedule
        That of one thread.

    Attributes
    ----------
    remark : str
        What exchanges take, and how many there are therefore.
    """

    def __init__(self, state: SharedState, alone: Any) -> None:
        self.state, self.alone = state, alone
        self.n_samples = alone.n_samples
        self.part, self.n_before = state.n_parts, 0
        self.stride = 1  # parts that workers go through between exchanges
        self.remark = ""

    @property
    def next(self) -> int:
        return self.n_samples * self.part // self.state.n_parts

    def start_pass(self, n_before: int = 0) -> None:
        """The pass begins with the next `run`. `n_before` passes have been done."""
        self.part, self.n_before = 0, n_before
        if self.state.costs:
            work, rest, n_bytes = np.median(self.state.costs, axis=0).tolist()
            self.stride = stride_for(work, rest, self.state.n_parts)
            self.remark = (
                f"exchanges of {n_bytes / 1e6:.3g} MB and {rest:.2g} s after {self.stride * work:.2g} s of training, "
                f"{self.stride} of {self.state.n_parts} parts"
            )
            self.state.costs.clear()

    def run(self, seconds: float) -> bool:
        """Exchange for about `seconds`; return whether the pass is complete."""
        deadline = time.monotonic() + seconds
        while self.part < self.state.n_parts:
            stop = min(self.part + self.stride, self.state.n_parts)
            self.state.exchange(self.part, self.n_before, stop)
            self.part = stop
            if time.monotonic() >= deadline:
                break
        return self.part == self.state.n_parts

    def get_state(self) -> Any:
        """The initial state of one thread's schedule: nothing worth storing."""
        return self.alone.get_state()

    def set_state(self, numbers: Any) -> None:
        """Restore the state of a schedule of this kind. Raises ValueError for anything else."""
        self.alone.set_state(numbers)


def stride_for(work: float, rest: float, n_parts: int) -> int:
    """How many parts to go through between exchanges, so that these take half of the time at most, or one a pass.

    After the first passes the dual rises by nearly the same per pass whether there are 16 exchanges in it or one.
    """
    return min(max(math.ceil(rest / work), 1) if work > 0.0 else 1, n_parts)


def whole(answers: Any) -> Any:
    """The answers of all members. LostError if one is that of a copy, or none came."""
    if any(answer is None for answer in answers):
        raise LostError
    return answers


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


def scaled(cuts: Any, sigma: float) -> Any:
    """The same cuts, their alphas times sigma."""
    return cuts | {"cut_numbers": cuts["cut_numbers"] * [sigma, 1.0, 1.0]}


def mixed(before: Any, after: Any, share: float) -> Any:
    """The cuts of an exchange of which a share is kept: those of both ends, one after the other for each example."""
    if share in (0.0, 1.0):
        return after if share else before
    ends = scaled(before, 1.0 - share), scaled(after, share)
    example = np.concatenate([cuts["cut_example"] for cuts in ends])
    order = np.argsort(example, kind="stable")
    sizes = np.concatenate([np.diff(cuts["cut_bounds"]) for cuts in ends])
    starts = np.concatenate([[0], np.cumsum(sizes)])[order]
    bounds = np.concatenate([[0], np.cumsum(sizes[order])])
    words = np.concatenate([cuts["cut_words"] for cuts in ends])
    return {
        "cut_example": example[order],
        "cut_bounds": bounds,
        "cut_numbers": np.concatenate([cuts["cut_numbers"] for cuts in ends])[order],
        "cut_words": words[np.arange(bounds[-1]) + np.repeat(starts - bounds[:-1], sizes[order])],
    }


def joined(parts: Any) -> Any:
    """The cuts of parts of the examples, each given as their indices among all, and its cuts: mapped from files."""
    examples, cuts = zip(*parts, strict=True)
    n_words = np.cumsum([0, *(part["cut_bounds"][-1] for part in cuts)])[:-1].tolist()
    found = {name: in_file(part[name] for part in cuts) for name in ("cut_numbers", "cut_words")}
    found["cut_example"] = in_file(where[part["cut_example"]] for where, part in zip(examples, cuts, strict=True))
    bounds = (part["cut_bounds"][1:] + n for part, n in zip(cuts, n_words, strict=True))
    found["cut_bounds"] = in_file(chain([np.zeros(1, dtype=np.int64)], bounds))
    return found


def cuts_of(arrays: Any, start: int, stop: int) -> Any:
    """The cuts of examples start .. stop - 1, of the arrays of a state."""
    first, last = np.searchsorted(arrays["cut_example"], [start, stop])
    bounds = arrays["cut_bounds"][first : last + 1]
    return {
        "cut_example": arrays["cut_example"][first:last] - start,
        "cut_bounds": bounds - bounds[0],
        "cut_numbers": arrays["cut_numbers"][first:last],
        "cut_words": arrays["cut_words"][bounds[0] : bounds[-1]],
    }


def on_workers(client: Any) -> dict[str, Any]:
    """`n_threads` and `connect` of `SharedState` for the workers of a Dask client."""
    from structsvm.shards.cluster import Cluster, workers

    return {"n_threads": list(workers(client).values()), "connect": partial(Cluster, client)}


def why_rounds(problem: Any, client: Any) -> str | None:
    """Why rounds of the oracle serve a cluster better than exchanges; None if they do not."""
    if is_ray(client):
        return "changes of w are exchanged on Dask clusters only"
    if problem.nonnegative is not None:
        return "some weights must be >= 0, which exchanges do not keep"
    bounds = np.arange(problem.n_samples + 1) if problem.groups is None else np.asarray(problem.groups)
    chosen = np.unique(np.linspace(0, len(bounds) - 2, N_TIMED).astype(int))
    shards = [problem.shard(int(bounds[k]), int(bounds[k + 1])) for k in chosen]
    w = np.zeros(problem.n_features, dtype=problem.weight_dtype)
    begin = time.thread_time()
    for shard in shards:
        violations(shard, w)
    seconds = (time.thread_time() - begin) / sum(shard.n_samples for shard in shards)
    return f"a call of the oracle takes {1e3 * seconds:.1f} ms" if seconds > DEAR_SECONDS else None
