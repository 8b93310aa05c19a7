"""Training on a Dask cluster on this machine, in a process of its own, by exact rounds or by exchanges of changes:
python -m scale.cluster rounds|exchanges|killed FOLDER N_WORKERS N_PASSES; prints JSON.
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
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster
from joblib import parallel_config

from common.measure import peak
from scale.exchange import C, Exchanges, Member
from structsvm import CuttingPlane, SequenceShards
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.progress import Monitor

N_PARTS = 8


def main(way, folder, n_workers, n_passes):
    settings = {"threads_per_worker": 1, "processes": True, "dashboard_address": None, "silence_logs": logging.CRITICAL}
    with LocalCluster(n_workers=n_workers, **settings) as cluster, Client(cluster) as client:
        warnings.simplefilter("ignore")  # of dask, about the size of what travels
        client.run(import_all)
        imports, begin = peak(), usage(client)
        found = (exchanges if way == "exchanges" else rounds)(folder, client, n_passes, way == "killed")
        used = usage(client) - begin
        peaks = client.run(peak).values()
        print(json.dumps(found | {
            "client": used[0], "worker": used[3], "workers": used[2], "bytes": used[1], "imports": imports,
            "client_peak": peak(), "worker_peak": max(peaks),
        }))  # fmt: skip


def import_all():
    import scale.exchange  # noqa: F401


def usage(client):
    """CPU seconds of this process, bytes over the loopback device, CPU seconds of all workers, of the busiest."""
    lines = Path("/proc/net/dev").read_text().splitlines()
    loopback = next(int(line.split()[1]) for line in lines if line.strip().startswith("lo:"))
    seconds = list(client.run(time.process_time).values())
    return np.array([time.process_time(), loopback, sum(seconds), max(seconds)])


def rounds(folder, client, n_passes, kill):
    """Rounds of `CuttingPlane`: the client has the data and the dual."""
    shards = SequenceShards.open(folder, mmap=False)
    oracle = ViterbiOracle(len(shards.labels), shards.tokens.n_features)
    problem = oracle.bind(shards.tokens, shards.label_ids)
    watch, begin = Watch(client if kill else None), time.perf_counter()
    with parallel_config(backend="dask"):
        run = CuttingPlane(C, max_iter=n_passes, random_state=0).solve(problem, monitor=watch)
    return {
        "wall": (watch.ends[-1] - begin) / n_passes,
        "dual": run.dual,
        "weights": zlib.crc32(run.weights.tobytes()),
    }


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


def exchanges(folder, client, n_passes, kill):
    """Exchanges between workers that have mapped the data."""
    shards = SequenceShards.open(folder)
    n_features = ViterbiOracle(len(shards.labels), shards.tokens.n_features).n_features
    places = sorted(client.scheduler_info(n_workers=-1)["workers"])
    made = [
        client.submit(Member, folder, bounds, actor=True, workers=[place], pure=False)
        for place, bounds in zip(places, equal_parts(len(shards), len(places)), strict=True)
    ]
    training = Exchanges([future.result() for future in made], n_features, N_PARTS, results)
    begin = time.perf_counter()
    for _ in range(n_passes):
        training.run_pass()
    wall = (time.perf_counter() - begin) / n_passes
    dual, n_bytes, _ = training.certificate()
    return {"wall": wall, "dual": dual, "constraints": n_bytes}


def equal_parts(n, n_members):
    """Ends of the parts of each member."""
    ends = np.linspace(0, n, n_members * N_PARTS + 1).astype(int).tolist()
    return [ends[k : k + N_PARTS + 1] for k in range(0, len(ends) - 1, N_PARTS)]


def results(futures):
    return [future.result() for future in futures]


if __name__ == "__main__":
    main(*sys.argv[1:3], *map(int, sys.argv[3:5]))
