"""Workers that train one model: each owns the alphas of its examples, and only changes of w travel (CoCoA+).

Each worker solves its part of the dual as `structsvm.dual.members` says; sigma starts at the number of workers and
follows the line search along the sum of their changes.

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
from functools import partial
from itertools import islice, pairwise
from typing import Any

import numpy as np

from structsvm.dual._dual import DualState
from structsvm.dual._rounds import violations
from structsvm.dual._threads import costs
from structsvm.dual.cuts import CUTS, by_example, cuts_at, cuts_of, joined
from structsvm.dual.members import Member, Shard, SharedWeights
from structsvm.dual.parallel import Rounds
from structsvm.dual.threads import equal_shares
from structsvm.features.ranges import take_ranges
from structsvm.shards.spread import is_ray
from structsvm.shards.storage import in_file

N_PARTS = 8  # parts of a worker's examples, if there are other workers: exchanges per pass
FACTOR = 2.0  # largest change of sigma after an exchange: it goes to where the line search would take the whole sum
# Rounds need fewer calls of the oracle than exchanges between many workers, and more of everything else: they are
# chosen if a call, the mean over some groups of examples, takes longer than this.
DEAR_SECONDS, N_TIMED = 1e-3, 5
READ = 1 << 22  # weights that the client reads at a time


class LostError(Exception):
    """A member was lost: its copy has neither its last alphas nor w."""


class SharedState(DualState):
    """A dual state whose alphas and w are with members: here, and on the workers of a cluster from `send` to `close`.

    Parameters
    ----------
    problem, C, seed, base : see `DualState`.
    averaging : see `DualState`; the average is over exchanges.
    solver : DualSolver
    n_threads : sequence of int
        One per worker.
    connect : callable
        Gives the members workers of their own, with `map`, `all_to_all` and `close` of
        `structsvm.shards.cluster.Cluster`.

    Attributes
    ----------
    order : ndarray of int, or None
        The examples in the order in which members own them. None: their own. Problems with `examples_at` have brought
        them into an order themselves, such as that of labels, and members whose examples differ hinder each other.
    places : ndarray of int, or None
        The inverse.
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
        self.order = self.places = None
        if n_parts > 1 and problem.sections.bounds is None and hasattr(problem, "examples_at"):
            self.order = np.random.default_rng(0).permutation(problem.n_samples)
            self.places = np.argsort(self.order)
        spans = list(pairwise(equal_shares(self._in_order(costs(problem)), problem.groups, n_parts)))
        solver = copy.copy(solver)
        solver.checkpoint = None
        seed = int(self.random_words()[0] >> np.uint64(1))
        self.spans = [np.array(part).tolist() for part in np.array_split(spans, min(len(n_threads), len(spans)))]
        origin = None if base is None else np.asarray(base, dtype=np.float64)
        of_members, self.members = self._in_order(C), []
        for k, (part, n) in enumerate(zip(self.spans, n_threads)):
            shards = [Shard(problem, a, b, self.order) for a, b in part]
            own = [of_members[a:b] for a, b in part]
            self.members.append(Member(shards, own, origin, solver, n, seed + 100 * k))
        self.n_parts = max(map(len, self.spans))
        self.sigma = float(len(self.members))
        self.is_averaged = averaging is not None
        self.number = 0  # the next exchange
        self.is_torn = False  # whether an exchange was cut short: some members may have taken its sum
        self.n_exchanged = self.n_lost = 0
        self.counts = [0, 0]
        self.costs: list[tuple[float, float, int]] = []  # by exchange: seconds of a part, of the rest; bytes
        self.objective = self.norm = 0.0  # the dual; 1/2 |w|^2 when it was last recomputed
        self._deal(super().get_state())

    # Counts of steps on own working sets.
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

    def _in_order(self, of_examples: Any) -> Any:
        """Numbers of the examples, in the order in which members own them."""
        return of_examples if self.order is None else of_examples[self.order]

    def in_places(self, of_members: Any) -> Any:
        """The inverse."""
        return of_members if self.places is None else of_members[self.places]

    def map(self, function: Any, shared: Any, arguments: Any) -> Any:
        """``[function(member, shared, *rest) for ...]``, each where its member is."""
        if self.cluster is not None:
            return self.cluster.map(function, shared, arguments)
        return [function(member, shared, *rest) for member, rest in zip(self.members, arguments, strict=True)]

    def _map(self, function: Any, shared: Any = None, *rest: Any) -> Any:
        return self.map(function, shared, [rest] * len(self.members))

    def _all_to_all(self, first: Any, then: Any, *arguments: Any) -> Any:
        """Call `first` on all members, then `then` with the results of all. LostError unless each answers."""
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
            self.number += 2  # a number that no member has
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
        return self.read(SharedWeights())

    def averaged(self) -> Any:
        return self.read(self.held_average())

    def held_average(self) -> SharedWeights:
        """The average as members have it."""
        return SharedWeights(self.n_exchanged if self.is_averaged else 0)

    def read(self, w: SharedWeights) -> Any:
        """Weights that members have, some from each. LostError if none of them is left."""
        if self.cluster is None:
            self.recompute()
        n, found = len(self.members), np.empty(self.problem.n_features, dtype=self.problem.weight_dtype)
        for start in range(0, len(found), READ):
            spans = list(pairwise(np.linspace(start, min(start + READ, len(found)), n + 1).astype(int).tolist()))
            left = set(range(n))
            for turn in range(n):  # the next member has the parts of a lost one, too
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
        if isinstance(w, SharedWeights):
            return whole(self._map(Member.half_norm, w))[0]
        return super().half_norm(w)

    def primal(self, w: Any = None, violation: Any = None) -> Any:
        return super().primal(self.weights if w is None else w, violation)

    def known_violations(self, w: Any) -> Any:
        return self.in_places(np.concatenate(whole(self._map(Member.known_violations, w))))

    def restart_average(self) -> None:
        self.n_exchanged = 0

    def end_average(self) -> None:
        pass  # members have it

    def renew(self) -> None:
        pass  # each owner keeps its copies

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
            member.cuts = [
                cuts_of(arrays, a, b) if self.order is None else cuts_at(arrays, self.order[a:b]) for a, b in part
            ]

    def get_state(self) -> Any:
        self._collect()
        cuts = [cuts for member in self.members for cuts in member.cuts]
        order = np.arange(self.problem.n_samples) if self.order is None else self.order
        found = joined(zip((order[a:b] for part in self.spans for a, b in part), cuts, strict=True))
        return super().get_state() | (found if self.order is None else by_example(found))

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
    """Rounds of the oracle whose shards are the members' parts; weights may be `SharedWeights` by them."""

    def __init__(self, state: SharedState) -> None:
        super().__init__(state.problem)
        self.state = state
        self.bounds = [0, *(stop for part in state.spans for _, stop in part)]

    def part(self, start: float, stop: float) -> Any:
        found = super().part(start, stop)
        return found if self.state.order is None else self.state.order[found]

    def _of_all(self, function: Any, w: Any) -> Any:
        return self.state.in_places(super()._of_all(function, w))

    def completions(self, w: Any, turn: int = 0, turns: int = 1) -> Any:
        bounds, words = super().completions(w, turn, turns)
        if self.state.places is None:
            return bounds, words
        bounds, chosen = take_ranges(bounds, self.state.places)
        return bounds, words[chosen]

    def close(self) -> None:
        self.state.close()

    def _alone(self) -> bool:
        return False

    def _map(self, function: Any, w: Any, arguments: Any) -> Any:
        rest = iter(arguments)
        asked = [(function, *islice(rest, len(part))) for part in self.state.spans]
        return [answer for found in whole(self.state.map(Member.answers, w, asked)) for answer in found]


class ExchangeSchedule:
    """The counterpart of `structsvm.dual._schedules.Schedule` for several members.

    Parameters
    ----------
    state : SharedState
    alone : Schedule
        The schedule of one thread.

    Attributes
    ----------
    remark : str
        The cost of exchanges, and how many there are therefore.
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
