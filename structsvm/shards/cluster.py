"""Shards of a problem on a Dask cluster: they stay with the workers, questions and answers travel.

The shards of a lost worker are sent to the others, and its work is repeated. A round of the oracle depends on shard and
weights alone, so the result is the same as without the loss; see `structsvm.dual.exchanges` for shards that learn.
"""

from __future__ import annotations

import pickle
import threading
import time
import uuid
from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from structsvm._problem import Problem
from structsvm.shards.storage import dumps_references

try:
    from distributed import CancelledError, KilledWorker
    from distributed.client import FutureCancelledError
except ImportError as error:
    raise ImportError("rounds on a Dask cluster need distributed: pip install 'structured-svm[cluster]'") from error

# Errors that mean a lost worker or connection, not a fault of the task itself.
LOST = (KilledWorker, CancelledError, FutureCancelledError, OSError)  # OSError: connections, time-outs

WAIT_SECONDS = 30.0
ATTEMPTS = 10


class ClusterError(RuntimeError):
    """The cluster is lost. Training up to the last pass is not; `checkpoint` stores it on disk."""


@dataclass(frozen=True)
class FileFault:
    """The outcome of work that failed at a file: no sign of a lost worker."""

    error: OSError


class Cluster:
    """The shards of a problem on the workers of a Dask client.

    Parameters
    ----------
    client : distributed.Client
    shards : list of Problem
    """

    def __init__(self, client: Any, shards: Any) -> None:
        self.client, self.shards = client, shards
        self.name = uuid.uuid4().hex
        self.last: BaseException | None = None  # the most recent loss of a worker
        self.places: dict[int, Any] = {}  # number of a shard -> address of its worker, future of its pickled data
        self.is_lost = False
        self.n_failed = 0  # times in a row that `all_to_all` was left without an answer

    def map(self, function: Any, w: Any, arguments: Any) -> list[Any]:
        """``[function(shard, w, *rest) for ...]``, each where its shard is; w may be None, or a tuple with arrays."""
        outcome: dict[int, Any] = {}
        missing = list(range(len(self.shards)))
        for _ in range(ATTEMPTS):
            outcome |= self._ask(function, w, {k: arguments[k] for k in missing})
            missing = [k for k in range(len(self.shards)) if k not in outcome]
            if not missing:
                return [outcome[k] for k in range(len(self.shards))]
            for k in missing:
                self.places.pop(k, None)
        return self._give_up(len(missing))

    def all_to_all(self, first: Any, then: Any, arguments: Any) -> list[Any]:
        """``[then(shard, found, *arguments) for ...]`` of ``found = [first(shard, None, *arguments) for ...]``.

        What `first` has returned goes from worker to worker. None for what lost workers leave without an answer.
        """
        futures: dict[int, Any] = {}
        try:
            self._send(range(len(self.shards)))
            found = [self._submit(k, first, None, *arguments) for k in range(len(self.shards))]
            futures = {k: self._submit(k, then, found, *arguments) for k in range(len(self.shards))}
        except LOST as error:
            self.last = error
        outcome = self._outcome(futures)
        missing = [k for k in range(len(self.shards)) if k not in outcome]
        for k in missing:  # whose workers may be well, and wait for what was lost
            if k in self.places and self.places[k][1].status != "finished":
                self.places.pop(k)
        self.n_failed = self.n_failed + 1 if missing else 0
        if self.n_failed == ATTEMPTS:
            self._give_up(len(missing))
        return [outcome.get(k) for k in range(len(self.shards))]

    def _give_up(self, n_missing: int) -> Any:
        self.is_lost = True
        raise ClusterError(
            f"{n_missing} of {len(self.shards)} shards were lost {ATTEMPTS} times in a row, the last by "
            f"{self.last!r:.200}"
        ) from self.last

    def close(self) -> None:
        """Release what the workers hold."""
        self.places.clear()
        if self.client.status == "running" and not self.is_lost:
            self.client.run(release, self.name, on_error="ignore")

    def _ask(self, function: Any, w: Any, arguments: Any) -> Any:
        """The outcomes that arrive; those of lost workers are left out."""
        try:
            self._send(arguments)
            # To one worker, from which the others fetch it: where one dies, a broadcast may stop all later ones.
            weights = None if w is None else self._scatter(w)
            futures = {k: self._submit(k, function, weights, *rest) for k, rest in arguments.items()}
        except LOST as error:
            self.last = error
            return {}
        return self._outcome(futures)

    def _submit(self, k: int, *what: Any) -> Any:
        """A future of a shard's `answer`."""
        home, data = self.places[k]
        return self.client.submit(answer, f"{self.name}-{k}", data, *what, pure=False, workers=[home])

    def _outcome(self, futures: Any) -> Any:
        """The outcomes that arrive."""
        outcome: dict[int, Any] = {}
        for k, future in futures.items():
            try:
                outcome[k] = found = aligned(future.result())
            except LOST as error:
                self.last = error
                continue
            if isinstance(found, FileFault):
                raise found.error
        return outcome

    def _send(self, numbers: Any) -> None:
        """Assign the shards without a worker to workers, in turn."""
        try:
            homes = list(workers(self.client))
        except ClusterError:
            self.is_lost = True
            raise
        for k in numbers:
            if k not in self.places or self.places[k][0] not in homes:
                home = homes[k % len(homes)]
                self.places[k] = home, self._scatter(dumps_references(self.shards[k]), workers=[home])

    def _scatter(self, data: Any, **where: Any) -> Any:
        """A future of data on workers. TimeoutError if one dies meanwhile, for which Dask would wait forever."""
        try:
            return self.client.sync(
                lambda: self.client.scatter(data, hash=False, asynchronous=True, **where), callback_timeout=WAIT_SECONDS
            )
        except KeyError as error:  # the scheduler has already forgotten it
            raise TimeoutError(f"worker {error} is gone") from error


def workers(client: Any) -> dict[str, int]:
    """Addresses of the workers, in order, and their threads; waits for one if there is none."""
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            found = client.scheduler_info(n_workers=-1)["workers"]
        except LOST:
            found = {}
        if found:
            return {address: found[address]["nthreads"] for address in sorted(found)}
        if time.monotonic() > deadline:
            raise ClusterError(f"the Dask cluster has had no worker for {WAIT_SECONDS:.0f} seconds")
        time.sleep(0.2)


# On a worker: the shards in use, unpickled, each with a lock (its scratch memory serves one thread at a time).
HELD: OrderedDict[str, tuple[threading.Lock, Problem]] = OrderedDict()
MOST_HELD = 1024
# And the clusters that were closed: what was asked before, as by a round that Ctrl-C ended, may be answered after.
RELEASED: deque[str] = deque(maxlen=MOST_HELD)


def answer(name: Any, data: Any, function: Any, w: Any, *rest: Any) -> Any:
    """On a worker: a shard's answer. The shard is unpickled when it is first asked."""
    held = HELD.get(name)
    if held is None:
        held = HELD[name] = threading.Lock(), pickle.loads(data)
        while len(HELD) > MOST_HELD:
            HELD.popitem(last=False)
        if name.rpartition("-")[0] in RELEASED:
            HELD.pop(name, None)
    lock, shard = held  # another thread may have let go of the shard by now
    if isinstance(w, list) and any(isinstance(item, FileFault) for item in w):
        return next(item for item in w if isinstance(item, FileFault))
    with lock:
        try:
            return function(shard, *(aligned(item) for item in (w, *rest)))
        except OSError as error:
            return FileFault(error)


def release(name: str) -> None:
    """On a worker: let go of the shards of a `Cluster`."""
    RELEASED.append(name)
    for key in [key for key in HELD if key.startswith(name)]:
        HELD.pop(key, None)


def aligned(item: Any) -> Any:
    """Received data, with arrays aligned for compiled code: they arrive at any address."""
    if isinstance(item, tuple | list):
        return type(item)(aligned(part) for part in item)
    return np.require(item, requirements=["C", "A"]) if isinstance(item, np.ndarray) else item
