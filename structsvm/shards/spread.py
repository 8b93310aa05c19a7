"""The cluster that `joblib.parallel_config` names, and functions of files, computed here or on its workers."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Sequence
from typing import Any

from structsvm.shards.storage import dumps_references


def cluster_client() -> Any:
    """The cluster that `joblib.parallel_config` names, whose workers are no threads: a Dask client, or Ray's backend.

    None if it names neither.
    """
    if "joblib" not in sys.modules:
        return None
    from joblib.parallel import get_active_backend

    backend = get_active_backend()[0]
    return backend if is_ray(backend) else getattr(backend, "client", None)


def is_ray(client: Any) -> bool:
    """Whether this is the backend that `ray.util.joblib.register_ray` registers."""
    ray = sys.modules.get("ray.util.joblib.ray_backend")
    return ray is not None and isinstance(client, ray.RayBackend)


def connect(client: Any, shards: Any) -> Any:
    """The shards on a cluster's workers: their `map` asks all of them, `close` releases them."""
    if is_ray(client):
        from structsvm.shards.ray_cluster import RayCluster

        return RayCluster(shards)
    from structsvm.shards.cluster import Cluster

    return Cluster(client, shards)


def here(function: Callable[..., Any], items: Sequence[Any], *shared: Any) -> list[Any]:
    """``[function(item, *shared) for item in items]``."""
    return [function(item, *shared) for item in items]


def spread(function: Callable[..., Any], items: Sequence[Any], *shared: Any) -> list[Any]:
    """As `here`, on the workers of the cluster that `joblib.parallel_config` names, if there is one.

    Arrays in mapped files travel as references. What a lost worker was asked is asked again elsewhere: so a function
    depends on its arguments alone, and writes only to files under names that it has made up.
    """
    client = cluster_client()
    if client is None:
        return here(function, items, *shared)
    cluster = connect(client, items)
    try:
        found = cluster.map(_asked, dumps_references(shared), [(function,)] * len(items))
    finally:
        cluster.close()
    return [pickle.loads(text) for text in found]


def _asked(item: Any, shared: bytes, function: Callable[..., Any]) -> bytes:
    return dumps_references(function(item, *pickle.loads(shared)))
