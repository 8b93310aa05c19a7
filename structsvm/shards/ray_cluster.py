"""Shards of a problem on a Ray cluster: actors hold them, and questions and answers travel.

As `structsvm.shards.cluster`, for rounds alone. Ray places the actors and passes errors on. It holds one copy of the
weights per host, which the actors there read where it lies.
"""

from __future__ import annotations

import pickle
from typing import Any

from structsvm.shards.storage import dumps_references

try:
    import ray
    from ray.exceptions import RayActorError, RayTaskError
except ImportError as error:
    raise ImportError("rounds on a Ray cluster need ray: pip install 'structured-svm[ray]'") from error

ATTEMPTS = 10


class RayCluster:
    """The shards of a problem on as many actors as the Ray cluster has cores.

    Parameters
    ----------
    shards : list of Problem
    """

    def __init__(self, shards: Any) -> None:
        n = min(max(1, int(ray.cluster_resources().get("CPU", 1))), len(shards))
        self.parts = [dumps_references(shards[k::n]) for k in range(n)]
        self.actors = [start(part) for part in self.parts]

    def map(self, function: Any, w: Any, arguments: Any) -> list[Any]:
        """``[function(shard, w, *rest) for ...]``, each where its shard is.

        The shards of an actor that is lost are sent to a new one, ten times at most; then RayActorError.
        """
        n, weights, found = len(self.actors), ray.put(w), [None] * len(arguments)
        missing = list(range(n))
        for attempt in range(ATTEMPTS):
            asked = {k: self.actors[k].answer.remote(function, weights, arguments[k::n]) for k in missing}
            for k, answer in asked.items():
                try:
                    found[k::n] = ray.get(answer)
                    missing.remove(k)
                except RayTaskError as error:
                    raise error.cause from error
                except RayActorError:
                    if attempt == ATTEMPTS - 1:
                        raise
                    self.actors[k] = start(self.parts[k])
            if not missing:
                break
        return found

    def close(self) -> None:
        """Release the actors: Ray ends those that nobody knows."""
        self.actors.clear()


class Holder:
    """An actor: some of the shards, unpickled when they are first asked, so that an error of that comes out."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.shards: Any = None

    def answer(self, function: Any, w: Any, arguments: Any) -> list[Any]:
        if self.shards is None:
            self.shards, self.data = pickle.loads(self.data), b""
        return [function(shard, w, *rest) for shard, rest in zip(self.shards, arguments, strict=True)]


def start(data: bytes) -> Any:
    """A new actor, on the next host in turn."""
    return ray.remote(scheduling_strategy="SPREAD")(Holder).remote(data)
