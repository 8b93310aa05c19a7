"""Training on a Dask cluster on this machine, in a process of its own, by exact rounds or by exchanges of changes,
undisturbed or with a worker killed: python -m scale.cluster WAY FOLDER N_WORKERS N_PASSES whole|killed; prints JSON.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
import warnings
import zlib
from functools import partial
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster
from joblib import parallel_config

from common.measure import peak
from scale.logical import C
from structsvm import CuttingPlane, LaRank, SequenceShards
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.progress import Monitor

SOLVERS = {"rounds": CuttingPlane, "exchanges": partial(LaRank, deterministic=False)}


def main(way, folder, n_workers, n_passes, fate):
    settings = {"threads_per_worker": 1, "processes": True, "dashboard_address": None, "silence_logs": logging.CRITICAL}
    with LocalCluster(n_workers=n_workers, **settings) as cluster, Client(cluster) as client:
        warnings.simplefilter("ignore")  # dask warns of the size of what travels
        client.run(import_all)
        imports, begin = peak(), usage(client)
        found = train(SOLVERS[way], folder, client, n_passes, fate == "killed")
        used = usage(client) - begin
        peaks = client.run(peak).values()
        print(json.dumps(found | {
            "client": used[0], "worker": used[3], "workers": used[2], "bytes": used[1], "imports": imports,
            "client_peak": peak(), "worker_peak": max(peaks),
        }))  # fmt: skip


def import_all():
    import scale.logical  # noqa: F401
    import structsvm.shards.cluster  # noqa: F401


def usage(client):
    """CPU seconds of this process, bytes over the loopback device, CPU seconds of all workers, of the busiest."""
    lines = Path("/proc/net/dev").read_text().splitlines()
    loopback = next(int(line.split()[1]) for line in lines if line.strip().startswith("lo:"))
    seconds = list(client.run(time.process_time).values())
    return np.array([time.process_time(), loopback, sum(seconds), max(seconds)])


def train(solver, folder, client, n_passes, kill):
    """Train on mapped shards; of `CuttingPlane`, the client has the dual."""
    shards = SequenceShards.open(folder)
    oracle = ViterbiOracle(len(shards.labels), shards.tokens.n_features)
    problem = oracle.bind(shards.tokens, shards.label_ids)
    watch, begin = Watch(client if kill else None), time.perf_counter()
    with parallel_config(backend="dask"):
        run = solver(C, max_iter=n_passes, tol=None, random_state=0).solve(problem, monitor=watch)
    return {"wall": (watch.ends[-1] - begin) / n_passes, "dual": run.dual, "weights": zlib.crc32(run.weights.tobytes())}


class Watch(Monitor):
    """The times at which passes end; kills a worker after the second one."""

    def __init__(self, client):
        self.client, self.ends = client, []

    def end_pass(self, run):
        self.ends.append(time.perf_counter())
        if self.client is not None and len(self.ends) == 2:
            address = min(self.client.scheduler_info(n_workers=-1)["workers"])
            threading.Timer(0.02, self.client.run, (os._exit, 1), {"workers": [address], "on_error": "ignore"}).start()
        return False


if __name__ == "__main__":
    main(*sys.argv[1:3], *map(int, sys.argv[3:5]), sys.argv[5])
