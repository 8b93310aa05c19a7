"""Rounds of the oracle over all examples, in parallel: threads, or any backend of joblib.

The examples are split into shards, whose number follows from theirs, not from that of jobs; the shards' results are
combined in their order. So a model is bit-identical for every `n_jobs` and backend.

Threads share the data. Other backends get the shards by pickle with each round; on a cluster of Dask or Ray
(``joblib.parallel_config(backend="dask")``, ``"ray"``) they stay with the workers, and only weights and constraints
travel.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import contextmanager
from functools import cached_property, wraps
from itertools import chain, pairwise
from threading import Condition, Event, get_ident
from typing import Any, ParamSpec, TypeVar

import numpy as np

from structsvm.dual._rounds import collect, completions, losses, violations
from structsvm.execution._stop import Job
from structsvm.execution.products import product_threads
from structsvm.parameters import N_JOBS
from structsvm.shards.spread import cluster_client, connect

P = ParamSpec("P")
T = TypeVar("T")

# Shards: so many at least and at most, and between them as many as have so many examples each.
LEAST_SHARDS, MOST_SHARDS, SHARD_EXAMPLES = 16, 256, 512


def cut_points(n_samples: int, groups: Any, n_shards: int | None = None) -> Any:
    """Bounds of the shards: about equal, never empty, and never through a group (see `Problem.groups`)."""
    if n_shards is None:
        n_shards = min(max(LEAST_SHARDS, n_samples // SHARD_EXAMPLES), MOST_SHARDS)
    bounds = np.unique(np.linspace(0, n_samples, min(n_shards, max(n_samples, 1)) + 1).astype(np.int64))
    if groups is not None:
        bounds = np.unique(np.asarray(groups)[np.searchsorted(groups, bounds)])
    return bounds.tolist()


@contextmanager
def _workers(n_threads: int, *, wait: bool = False) -> Any:
    """``submit(function, part)`` of a pool of threads, whose matrix products have one thread each.

    At the end, on Ctrl-C, and if a part fails, parts that have not started are dropped and running ones are stopped,
    without waiting for them unless `wait` is set.
    """
    job, pool, running, change = Job(), ThreadPoolExecutor(n_threads), set[int](), Condition()

    def run(function: Any, part: Any) -> Any:
        with change:
            if job.stopped:
                raise KeyboardInterrupt("the job was stopped")
            running.add(get_ident())
        try:
            return job.run(function, part)
        finally:
            with change:
                running.remove(get_ident())
                change.notify_all()

    try:
        with product_threads(1):
            yield lambda function, part: pool.submit(run, function, part)
    finally:
        job.stop()
        pool.shutdown(wait=wait, cancel_futures=True)
        if wait:  # also for a thread in whose start Ctrl-C came, so that the pool does not know of it
            with change:
                change.wait_for(lambda: not running)


def parallel_map(function: Any, parts: Any, n_threads: int, *, wait: bool = False) -> Any:
    """Return ``[function(part) for part in parts]``, computed by threads; see `_workers`.

    Without joblib, whose threads take milliseconds per call.
    """
    if n_threads == 1 or len(parts) < 2:
        return [function(part) for part in parts]
    begin = Event()  # all at once: one at work would keep the others from starting for milliseconds

    def work(part: Any) -> Any:
        begin.wait()
        return function(part)

    with _workers(n_threads, wait=wait) as submit:
        try:
            at_work = [submit(work, part) for part in parts]
        finally:
            begin.set()
        wait_for(at_work, return_when=FIRST_EXCEPTION)
        for future in at_work:
            if future.done():  # the error of a part that has failed, while others are at work
                future.result()
        return [future.result() for future in at_work]


@contextmanager
def beside(call: Callable[[], T], n_threads: int) -> Iterator[Callable[[], T]]:
    """Yield a function that waits for the result of `call`, which one thread makes beside the body.

    A call that the body does not wait for is stopped at its end. With one thread it is made once the body waits.
    """
    if n_threads == 1:
        yield call
        return
    with _workers(1, wait=True) as submit:
        yield submit(lambda _: call(), None).result


def parallel_stream(function: Any, parts: Any, n_threads: int) -> Any:
    """Yield ``function(part)`` in the order of the parts, computed as needed; else as `parallel_map`."""
    if n_threads == 1:
        yield from map(function, parts)
        return
    at_work: deque[Any] = deque()
    with _workers(n_threads) as submit:
        for part in parts:
            at_work.append(submit(function, part))
            if len(at_work) > n_threads:
                yield at_work.popleft().result()
        while at_work:
            yield at_work.popleft().result()


def parallel_parts(function: Any, n: int, n_threads: int) -> Any:
    """Return ``function(0, n)``, a list or an array, joined from parts: one per thread, or one if n is small."""
    bounds = np.linspace(0, n, (n_threads if n >= 2 * n_threads else 1) + 1).astype(int).tolist()
    found = parallel_map(lambda ends: function(*ends), list(pairwise(bounds)), n_threads)
    return np.concatenate(found) if isinstance(found[0], np.ndarray) else list(chain.from_iterable(found))


def renumbered_parts(function: Any, n: int, n_threads: int) -> Any:
    """As `parallel_parts`, for a function whose errors number the examples of a part from 0."""
    if n_threads == 1:
        return function(0, n)
    try:
        return parallel_parts(function, n, n_threads)
    except (ValueError, TypeError):
        return function(0, n)  # the same error, with the user's numbers


def n_threads(n_jobs: int | None) -> int:
    """The number of threads for `n_jobs`; None means 1 unless `joblib.parallel_config` says otherwise."""
    # joblib takes as long to import as a small job to train; if it was not imported, nothing is configured.
    if n_jobs in (None, 1) and "joblib" not in sys.modules:
        return 1
    from joblib import effective_n_jobs

    return 1 if cluster_client() is not None else effective_n_jobs(n_jobs)


def in_own_threads(method: Callable[P, T]) -> Callable[P, T]:
    """Decorate a method: its matrix products take `n_jobs` threads, as the object or its solver says.

    An object may say by `_multiplies` that a method of this name makes none: to limit their threads takes longer than
    to label a sentence.
    """

    @wraps(method)
    def limited(*args: P.args, **kwargs: P.kwargs) -> T:
        multiplies = getattr(args[0], "_multiplies", None)
        if multiplies is not None and not multiplies(method.__name__):
            return method(*args, **kwargs)
        n_jobs = getattr(args[0], "n_jobs", None) or getattr(getattr(args[0], "solver", None), "n_jobs", None)
        is_valid = any(constraint.accepts(n_jobs) for constraint in N_JOBS)
        with product_threads(n_threads(n_jobs) if is_valid else 1):
            return method(*args, **kwargs)

    return limited


def noted(problem: Any, w: Any, function: Any, *span: Any) -> Any:
    """``function(problem, w, *span)``, and what a copy of a problem in another process has to tell: `Problem.notes`."""
    return function(problem, w, *span), problem.notes


class Rounds:
    """All examples of a problem, decoded at the same weights.

    Parameters
    ----------
    problem : Problem
    n_jobs : int or None
        As in joblib; None means 1 unless `joblib.parallel_config` says otherwise.
    """

    def __init__(self, problem: Any, n_jobs: int | None = None) -> None:
        self.problem, self.n_jobs = problem, n_jobs
        self.copies = [problem]  # copies of the whole problem, each with scratch memory of its own: one per thread
        self._client: Any = None
        self._cluster: Any = None
        self._is_alone: bool | None = None

    @cached_property
    def bounds(self) -> Any:
        """Bounds of the shards."""
        return cut_points(self.problem.n_samples, self.problem.groups)

    @cached_property
    def shards(self) -> Any:
        """The problem in parts, each with its own examples and scratch memory."""
        return [self.problem.shard(a, b) for a, b in pairwise(self.bounds)]

    def violations(self, w: Any, start: float = 0.0, stop: float = 1.0) -> Any:
        """As `structsvm.dual._rounds.violations`, of all examples or of those that `part` returns."""
        if (start, stop) == (0.0, 1.0):
            return self._of_all(violations, w)
        return np.concatenate(self._map(violations, w, self._spans(start, stop)))

    def part(self, start: float, stop: float) -> Any:
        """The indices of the examples between two fractions of each shard."""
        return np.concatenate([np.arange(a + i, a + j) for a, (i, j) in zip(self.bounds, self._spans(start, stop))])

    def _spans(self, start: float, stop: float) -> Any:
        return [(int(start * (b - a)), int(stop * (b - a))) for a, b in pairwise(self.bounds)]

    def losses(self, w: Any) -> Any:
        """As `structsvm.dual._rounds.losses`, of all examples."""
        return self._of_all(losses, w)

    def completions(self, w: Any, turn: int = 0, turns: int = 1) -> Any:
        """As `structsvm.dual._rounds.completions`, of all examples."""
        if self._alone():
            return completions(self.problem, w, turn=turn, turns=turns)
        parts = self._map(completions, w, [(*span, turn, turns) for span in self._spans(0.0, 1.0)])
        sizes = np.concatenate([np.diff(bounds) for bounds, _ in parts])
        return np.concatenate([[0], np.cumsum(sizes)]), np.concatenate([words for _, words in parts])

    def _of_all(self, function: Any, w: Any) -> Any:
        if self._alone():
            return function(self.problem, w)
        return np.concatenate(self._map(function, w, self._spans(0.0, 1.0)))

    def collect(self, w: Any, start: float = 0.0, stop: float = 1.0) -> Any:
        """The most violated constraints of a part of each shard, as a list of ``(first example, outcome of collect)``.

        The part lies between two fractions, so a portion of the examples has a part of every shard.
        """
        spans = self._spans(start, stop)
        firsts = [a + span[0] for a, span in zip(self.bounds, spans)]
        return list(zip(firsts, self._map(collect, w, spans)))

    def close(self) -> None:
        """Release the shards that workers of a cluster hold; the next round sends them again."""
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None
        self._is_alone = None

    def _alone(self) -> bool:
        """Whether this thread does all; asked once per training, as it takes as long as a short sentence."""
        if self._is_alone is None:
            self._is_alone = cluster_client() is None and n_threads(self.n_jobs) == 1
        return self._is_alone

    def _map(self, function: Any, w: Any, arguments: Any) -> Any:
        """``[function(problem, w, start, stop, *rest) for start, stop, *rest in arguments]``, one span per shard.

        The spans are those of examples of a shard. Threads go through the whole problem, for which each has a copy
        with scratch memory of its own; others get the shards.
        """
        spans = [(a + i, a + j, *rest) for a, (i, j, *rest) in zip(self.bounds, arguments)]
        if self._alone():
            return [function(self.problem, w, *span) for span in spans]
        from joblib import Parallel, delayed, effective_n_jobs
        from joblib.parallel import get_active_backend

        backend = get_active_backend(prefer="threads")[0]
        client = cluster_client()
        if client is not None:
            if self._cluster is None or self._client is not client:
                self.close()
                self._client, self._cluster = client, connect(client, self.shards)
            return self._noted(self._cluster.map(noted, w, [(function, *rest) for rest in arguments]))
        if getattr(backend, "supports_sharedmem", False):  # not every backend of joblib has it
            return self._in_threads(function, w, spans, min(effective_n_jobs(self.n_jobs), len(spans)))
        return self._noted(
            Parallel(n_jobs=self.n_jobs)(
                delayed(noted)(shard, w, function, *rest) for shard, rest in zip(self.shards, arguments)
            )
        )

    def _noted(self, found: Any) -> Any:
        """The results of `noted`, whose notes the problem takes."""
        for start, (_, notes) in zip(self.bounds, found):
            if notes is not None:
                self.problem.note(start, notes)
        return [result for result, _ in found]

    def _in_threads(self, function: Any, w: Any, spans: Any, n: int) -> Any:
        while len(self.copies) < n:
            self.copies.append(self.problem.shard(0, self.problem.n_samples))
        left, found = deque(enumerate(spans)), [None] * len(spans)

        def work(problem: Any) -> None:
            while left:
                try:
                    k, span = left.popleft()
                except IndexError:  # another thread was faster
                    return
                found[k] = function(problem, w, *span)

        parallel_map(work, self.copies[:n], n, wait=True)
        return found
