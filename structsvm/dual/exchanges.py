"""Workers that train one model: each owns the alphas of its examples, and only changes of w travel (CoCoA+).

From the same w each of K workers solves its part of the dual as if the others would step likewise: for the change
A d of w that a change d of its alphas makes, it maximises

    sum_i d_i b_i - <w, A d> - sigma / 2 |A d|^2     (less what a ridge adds).

Times sigma this is the dual of alphas sigma alpha and of sigma C, started from w: the solver's own steps maximise it.
With sigma = K the sum of all changes never lowers the dual (Ma and others 2015). A smaller sigma takes longer steps.
The sum is taken as far as an exact line search says, and sigma follows it.

Dual and w are recomputed from all alphas for each certificate, which is exact as ever; in between the dual is the sum
of what exchanges have gained. The alphas of a worker that is lost are those of the last checkpoint, or 0; training goes
on from there.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, islice, pairwise
from typing import Any

import numpy as np

from structsvm._problem import rebuild
from structsvm.dual._dual import DualState
from structsvm.dual._rounds import violations
from structsvm.dual._threads import costs, gather
from structsvm.dual._weights import copied
from structsvm.dual.parallel import Rounds, parallel_map
from structsvm.dual.threads import equal_shares
from structsvm.shards.storage import in_file

N_PARTS = 8  # of a worker's examples, if there are others: exchanges per pass
FACTOR = 2.0  # of sigma, at most, after an exchange: it goes to where the line search would take the whole sum
CUTS = ("cut_example", "cut_bounds", "cut_numbers", "cut_words")  # of `DualState.get_state`
# Rounds need fewer calls of the oracle than exchanges between many workers, and more of everything else: they are
# chosen if a call, the mean over some groups of examples, takes longer than this.
DEAR_SECONDS, N_TIMED = 1e-3, 5
UNCHANGED = np.zeros(0, dtype=np.uint8), np.zeros(0)


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
    cuts : list of dict of ndarray
        Their constraints and alphas, see `CUTS`.
    solver : DualSolver
    n_threads, seed : int
    """

    def __init__(self, parts: Any, C: Any, cuts: Any, solver: Any, n_threads: int, seed: int) -> None:
        self.shards, self.C, self.cuts, self.solver, self.n_threads = parts, C, cuts, solver, n_threads
        self.seed = seed
        self.w: Any = None
        self.number: Any = None  # of the exchange that comes next; None: w is not known
        self.undo: Any = None  # number of the last exchange, and by part the cuts before it

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"w": None, "number": None, "undo": None}

    @property
    def parts(self) -> list[Any]:
        """The problems of its examples."""
        self.shards = [shard.made() if isinstance(shard, Shard) else shard for shard in self.shards]
        return self.shards

    def state_of(self, part: int, sigma: float = 1.0, seed: int = 0) -> DualState:
        """The state of the dual over a part, of alphas and C times sigma."""
        state = DualState(self.parts[part], sigma * self.C[part], seed=seed)
        state.set_state(state.get_state() | scaled(self.cuts[part], sigma))
        return state

    def exchange(self, message: Any) -> Any:
        """Apply the last change of w, and train on some parts.

        Returns
        -------
        None if this is a copy that does not have the present w; else the change of w (indices, values), the slope of
        the dual along it, what a ridge adds to |A d|^2, calls of the oracle, and seconds.
        """
        number, accepted, indices, values, start, stop, sigma, n_before = message
        if number != self.number:
            return None
        begin = time.perf_counter()
        self._decide(*accepted)
        self.number += 1
        self.w[indices] += values
        parts = range(start, min(stop, len(self.parts)))
        self.undo = number, {part: self.cuts[part] for part in parts}
        weights, slope, ridge, n_argmax = self.w, 0.0, 0.0, 0
        for part in parts:
            state = self.state_of(part, sigma, (self.seed + 1000 * n_before + part) % 2**64)
            state.weights[:] = weights
            schedule = self.solver.schedule_of(state, None, sigma * self.C[part], self.n_threads)
            schedule.start_pass(n_before)
            while not schedule.run(math.inf):
                pass
            weights, n_argmax, arrays = state.weights, n_argmax + state.n_argmax, state.get_state()
            (linear_before, total_before) = self._sums(part, self.cuts[part])
            self.cuts[part] = scaled({name: arrays[name] for name in CUTS}, 1.0 / sigma)
            linear, total = self._sums(part, self.cuts[part])
            slope += linear - linear_before
            if self.parts[part].formulation["penalty"] == "quadratic":
                total -= total_before
                r = np.divide(1.0, self.C[part], out=np.zeros(len(total)), where=self.C[part] > 0.0)
                slope, ridge = slope - float(r @ (total_before * total)), ridge + float(r @ total**2)
        moved = weights - self.w
        indices = nonzeros(moved)
        values = moved[indices] / self.w.dtype.type(sigma)
        slope -= float(self.w[indices].astype(float) @ values)
        return indices, values, slope, ridge, n_argmax, time.perf_counter() - begin

    def _sums(self, part: int, cuts: Any) -> Any:
        """Of a part: the sum of alpha b, and that of alpha by example."""
        alpha, total = cuts["cut_numbers"][:, 0], np.zeros(len(self.C[part]))
        np.add.at(total, cuts["cut_example"], alpha)
        return float(alpha @ cuts["cut_numbers"][:, 1]), total

    def _decide(self, accepted: int, share: float) -> None:
        """Keep this share of the last exchange if it was accepted, else nothing."""
        if self.undo is None:
            return
        (number, parts), self.undo = self.undo, None
        for part, before in parts.items():
            if number != accepted:
                self.cuts[part] = before
            elif share < 1.0:
                self.cuts[part] = mixed(before, self.cuts[part], share)

    def totals(self, _: Any, number: int, accepted: int, share: float) -> Any:
        """Exactly, of all alphas: the sum of alpha psi (indices, values), of alpha b, of r t^2; counts of both."""
        self._decide(accepted, share)
        self.number, self.w = number, None
        sums, rows = np.zeros(self.parts[0].n_features), []
        for part in range(len(self.parts)):
            state = self.state_of(part)
            more, linear, ridge = state.all_sums()
            sums += more
            rows.append((linear, ridge, state.n_cuts, state.n_patterns))
        indices = nonzeros(sums)
        return indices, sums[indices], np.sum(rows, axis=0)

    def begin(self, w: Any, number: int) -> bool:
        """Take the weights made of all `totals`; False if this is a copy that these are without."""
        if number == self.number:
            self.w = np.array(w)
        return number == self.number

    def answers(self, w: Any, function: Any, *arguments: Any) -> Any:
        """``[function(part, w, *rest) for ...]``."""
        asked = list(zip(self.parts, arguments, strict=True))
        return parallel_map(lambda part: function(part[0], w, *part[1]), asked, self.n_threads)

    def known_violations(self, w: Any) -> Any:
        """As `DualState.known_violations`, of all its examples."""
        return np.concatenate([self.state_of(part).known_violations(w) for part in range(len(self.parts))])

    def collect(self, _: Any, part: int, accepted: int, share: float) -> Any:
        """The cuts of a part, if there is one."""
        self._decide(accepted, share)
        return [self.cuts[part][name] for name in CUTS] if part < len(self.cuts) else None


class SharedState(DualState):
    """A dual state whose alphas are with members: here, and on the workers of a cluster from `send` to `close`.

    Parameters
    ----------
    problem, C, seed, averaging, base : see `DualState`; the average is over exchanges.
    solver : DualSolver
    n_threads : sequence of int
        Of each worker.
    connect : callable
        Gives the members workers of their own, with `map` and `close` of `structsvm.shards.cluster.Cluster`.
    """

    def __init__(
        self, problem: Any, C: Any, solver: Any, n_threads: Sequence[int], connect: Callable[[Any], Any], **options: Any
    ) -> None:
        super().__init__(problem, C, **options)
        self.C, self.connect, self.cluster = C, connect, None
        n_parts = 1 if len(n_threads) == 1 else N_PARTS * len(n_threads)
        spans = list(pairwise(equal_shares(costs(problem), problem.groups, n_parts)))
        solver = copy.copy(solver)
        solver.checkpoint = None
        seed = int(self.random_words()[0] >> np.uint64(1))
        self.spans = [np.array(part).tolist() for part in np.array_split(spans, min(len(n_threads), len(spans)))]
        self.members = [
            Member([Shard(problem, a, b) for a, b in part], [C[a:b] for a, b in part], [], solver, n, seed + 100 * k)
            for k, (part, n) in enumerate(zip(self.spans, n_threads))
        ]
        self.n_parts = max(map(len, self.spans))
        self.sigma = float(len(self.members))
        self.number = 0  # of the next exchange
        self.accepted = 0, 1.0  # number of the last one that counts, and the share of it that does
        self.change: Any = UNCHANGED  # of w, which the members do not know yet
        self.step = np.zeros_like(self.weights)
        self.n_exchanged = self.n_lost = 0
        self.counts = [0, 0]
        self.costs: list[tuple[float, float, int]] = []  # by exchange: seconds of a part, of the rest; bytes
        self.objective = 0.0
        self._deal(super().get_state())
        self.objective = super().settle()

    # What steps on own working sets would count.
    dual = property(lambda self: self.objective)
    n_cuts = property(lambda self: self.counts[0])
    n_patterns = property(lambda self: self.counts[1])

    def map(self, function: Any, shared: Any, arguments: Any) -> Any:
        """``[function(member, shared, *rest) for ...]``, each where its member is."""
        if self.cluster is not None:
            return self.cluster.map(function, shared, arguments)
        return [function(member, shared, *rest) for member, rest in zip(self.members, arguments, strict=True)]

    def _map(self, function: Any, shared: Any = None, *rest: Any) -> Any:
        return self.map(function, shared, [rest] * len(self.members))

    def send(self) -> None:
        """Send the members to workers, unless they are there."""
        if self.cluster is None:
            self.cluster = self.connect(self.members)
            self.recompute()

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
        """Let all members train on a part each, or parts start .. stop - 1, and sum their changes of w."""
        number, begin, stop = self.number, time.perf_counter(), start + 1 if stop is None else stop
        message = number, self.accepted, *self.change, start, stop, self.sigma, n_before
        answers = self._map(Member.exchange, message)
        if any(answer is None for answer in answers):  # copies of lost ones: all start again from what they have
            self.n_lost += sum(answer is None for answer in answers)
            self.recompute()
            return
        self.number, self.change = number + 1, UNCHANGED
        indices = np.unique(np.concatenate([answer[0] for answer in answers]))
        slope = curvature = 0.0
        n_bytes = len(answers) * sum(array.nbytes for array in message[2:4])
        for where, values, more, ridge, n_argmax, _ in answers:
            n_bytes += where.nbytes + values.nbytes
            self.step[where] += values
            slope, curvature = slope + more, curvature + ridge
            self.count_argmax(n_argmax)
        values = self.step[indices]
        self.step[indices] = 0.0
        curvature += float(np.square(values, dtype=float).sum())
        best = slope / curvature if curvature > 0.0 else 1.0
        share = min(best, 1.0)
        if share > 0.0:
            values *= values.dtype.type(share)
            self.accepted, self.change = (number, share), (indices, values)
            self.weights[indices] += values
            self.objective += share * (slope - 0.5 * share * curvature)
            if self.average_sum is not None:
                t = self.n_exchanged
                self.average_sum[indices] += self.weights.dtype.type(0.5 * t * (t + 1.0)) * values
        self.n_exchanged += 1
        work = max(answer[-1] for answer in answers)
        self.costs.append((work / (stop - start), max(time.perf_counter() - begin - work, 0.0), n_bytes))
        self.sigma = min(max(self.sigma / min(max(best, 1.0 / FACTOR), FACTOR), 1.0), float(len(self.members)))

    def restart_average(self) -> None:
        super().restart_average()
        if self.average_sum is not None:  # what it sums are exchanges, not visits
            self.average_sum[:] = 0.0
        self.n_exchanged = 0

    def end_average(self) -> None:
        pass  # members have the visits

    def averaged(self) -> Any:
        T = self.n_exchanged
        if self.average_sum is None or T == 0:
            return copied(self.weights)
        return self.weights - self.average_sum / self.weights.dtype.type(0.5 * T * (T + 1.0))

    def settle(self) -> float:
        """The dual objective, as far as exchanges have told."""
        return self.objective

    def recompute(self) -> float:
        """Recompute w and the dual objective from all alphas, and let the members have w."""
        while True:
            self.number += 2  # which no member has
            sums = np.zeros(self.problem.n_features)
            found = self._map(Member.totals, None, self.number, *self.accepted)
            for indices, values, _ in found:
                sums[indices] += values
            linear, ridge, *counts = sum(row for *_, row in found).tolist()
            gather(self, (), [(sums, linear, ridge)])
            self.objective = super().settle()
            self.counts, self.change = list(map(int, counts)), UNCHANGED
            if all(self._map(Member.begin, self.weights, self.number)):
                return self.objective

    def known_violations(self, w: Any) -> Any:
        return np.concatenate(self._map(Member.known_violations, w))

    def _collect(self) -> None:
        """Let the members here have the cuts of those on workers, in files: copies start from them."""
        if self.cluster is None:
            return
        for part in range(self.n_parts):
            found = self._map(Member.collect, None, part, *self.accepted)
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
        self.recompute()


class MemberRounds(Rounds):
    """Rounds of the oracle whose shards are the members' parts."""

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
        return [answer for found in self.state.map(Member.answers, w, asked) for answer in found]


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
        self.state.send()
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


def nonzeros(vector: Any) -> Any:
    """Where a vector is not 0, in the shortest integers."""
    return np.flatnonzero(vector).astype(np.min_scalar_type(len(vector)))


def scaled(cuts: Any, sigma: float) -> Any:
    """The same cuts, their alphas times sigma."""
    return cuts | {"cut_numbers": cuts["cut_numbers"] * [sigma, 1.0, 1.0]}


def mixed(before: Any, after: Any, share: float) -> Any:
    """The cuts of an exchange of which a share is kept: those of both ends."""
    numbers: dict[tuple[int, bytes], Any] = {}
    for cuts, part in ((before, 1.0 - share), (after, share)):
        words = np.split(cuts["cut_words"], cuts["cut_bounds"][1:-1]) if len(cuts["cut_example"]) else []
        for i, row, cut in zip(cuts["cut_example"].tolist(), cuts["cut_numbers"].tolist(), words, strict=True):
            alpha = numbers.get((i, cut.tobytes()), (0.0,))[0]
            numbers[i, cut.tobytes()] = alpha + part * row[0], *row[1:]
    keys = sorted(numbers, key=lambda key: key[0])
    return {
        "cut_example": np.array([i for i, _ in keys], dtype=np.int64),
        "cut_bounds": np.cumsum([0, *(len(text) // 4 for _, text in keys)], dtype=np.int64),
        "cut_numbers": np.array([numbers[key] for key in keys]).reshape(-1, 3),
        "cut_words": np.frombuffer(b"".join(text for _, text in keys), dtype=np.int32),
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


def why_rounds(problem: Any) -> str | None:
    """Why rounds of the oracle serve a cluster better than exchanges; None if they do not."""
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
