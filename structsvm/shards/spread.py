"""Functions of files, computed here or on the workers of a Dask cluster."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Sequence
from typing import Any

from structsvm.shards.storage import dumps_references


def cluster_client() -> Any:
    """The client of the cluster that `joblib.parallel_config` names, whose workers are no threads; else None."""
    if "joblib" not in sys.modules:
        return None
    from joblib.parallel import get_active_backend

    return getattr(get_active_backend()[0], "client", None)


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
    from structsvm.shards.cluster import Cluster

    cluster = Cluster(client, items)
    try:
        found = cluster.map(_asked, dumps_references(shared), [(function,)] * len(items))
    finally:
        cluster.close()
    return [pickle.loads(text) for text in found]


def _asked(item: Any, shared: bytes, function: Callable[..., Any]) -> bytes:
    return dumps_references(function(item, *pickle.loads(shared)))
