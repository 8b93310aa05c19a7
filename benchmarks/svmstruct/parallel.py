"""Rounds of the oracle in parallel: two threads against one, two Dask workers against one, and the overhead."""

from __future__ import annotations

import logging
import time
import warnings
import zlib
from contextlib import contextmanager
from dataclasses import dataclass

from common.measure import no_gc
from common.report import Table, notes
from sequence.data import SEED, C, text_task, train
from sequence.scaling import gain
from sequence.tables import ocr_letters
from structsvm import CuttingPlane
from structsvm.dual.parallel import Rounds
from svmstruct.slow import SlowOracle, examples, loops_in_a_millisecond

ROUNDS = 6
N_SLOW, QUICK_SLOW = 400, 40
COLUMNS = {
    "how": ("", ""),
    "first": ("first s", ".4f"),
    "wall": ("asking: s a round", ".4f"),
    "cpu": ("CPU s", ".4f"),
    "speed_up": ("speed-up", ".2f"),
    "whole_speed_up": ("x 1 thread", ".2f"),
    "overhead": ("overhead s", ".4f"),
    "train_first": ("training: first round s", ".4f"),
    "train_wall": ("s a round", ".4f"),
    "train_cpu": ("CPU s", ".4f"),
    "train_speed_up": ("speed-up", ".2f"),
    "equal": ("weights", ""),
}


def run(options):
    """Yield one table per oracle."""
    for case in cases(options.quick):
        rows = []
        for how, (context, n) in HOW.items():
            with context(n) as cpu_seconds:
                rows.append({"how": how} | measure(case, n, cpu_seconds, options.repeat))
        yield table(case, rows, gain(zlib.crc32, [bytes(100_000_000)] * 2, options.repeat))


@dataclass(frozen=True)
class Case:
    """An oracle with its training examples."""

    name: str
    oracle: object
    X: object
    Y: object


def cases(quick):
    """Yield the cases one by one: they are large."""
    chunking = text_task("CoNLL-2000", "crf++", 3, share=0.05 if quick else 1.0)
    for task in (ocr_letters(), chunking):
        yield Case(f"{task.name}, {len(task.train)} sequences", task.oracle("exact"), task.train, task.label_ids)
    n = QUICK_SLOW if quick else N_SLOW
    X, y = examples(n)
    yield Case(f"an oracle that sleeps for 1 ms, {n} examples", SlowOracle(), X, y)
    loops = loops_in_a_millisecond()
    yield Case(f"an oracle that works in Python for 1 ms, {n} examples", SlowOracle(loops), X, y)


# ---- who does the work ---------------------------------------------------------------------------


@contextmanager
def threads(n):
    """Yield the clock of CPU seconds."""
    yield time.process_time


@contextmanager
def workers(n):
    """Start a Dask cluster of n processes; yield the clock of its and our CPU seconds."""
    from distributed import Client, LocalCluster
    from joblib import parallel_config

    settings = {"threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with (
        LocalCluster(n_workers=n, silence_logs=logging.ERROR, **settings) as cluster,
        Client(cluster) as client,
        parallel_config(backend="dask"),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # dask warns of the size of what travels
        yield lambda: time.process_time() + sum(client.run(time.process_time).values())


HOW = {
    "1 thread": (threads, 1),
    "2 threads": (threads, 2),
    "1 Dask worker": (workers, 1),
    "2 Dask workers": (workers, 2),
}


# ---- measurements --------------------------------------------------------------------------------


def measure(case, n_jobs, cpu_seconds, times):
    """Train for some rounds; then compute all most violated constraints at the final weights."""
    solver = CuttingPlane(C, tol=None, max_iter=ROUNDS, random_state=SEED, n_jobs=n_jobs)
    begin = cpu_seconds()
    done = train(case.oracle, case.X, case.Y, solver)
    train_cpu = (cpu_seconds() - begin) / (len(done.laps) + 1)  # the certificate is one more round
    rounds = Rounds(case.oracle.bind(case.X, case.Y, **solver.formulation()), n_jobs)
    weights = done.run.state.weights
    walls = []
    with no_gc():
        for k in range(times + 1):
            if k == 1:
                begin = cpu_seconds()
            start = time.perf_counter()
            rounds.collect(weights)
            walls.append(time.perf_counter() - start)
        cpu = (cpu_seconds() - begin) / times
    return {
        "first": walls[0],
        "wall": min(walls[1:]),
        "cpu": cpu,
        "train_first": float(done.laps[0, 0]),
        "train_wall": float(done.laps[-1, 0] - done.laps[0, 0]) / (len(done.laps) - 1),
        "train_cpu": train_cpu,
        "weights": done.run.weights.tobytes(),
    }


def table(case, rows, machine_ratio):
    alone = rows[0]
    weights = [row.pop("weights") for row in rows]
    for (how, (_, n)), row, found in zip(HOW.items(), rows, weights, strict=True):
        one = alone if "thread" in how else rows[2]
        if n > 1:
            row["speed_up"] = one["wall"] / row["wall"]
            row["train_speed_up"] = one["train_wall"] / row["train_wall"]
        if row is not alone:
            row["whole_speed_up"] = alone["wall"] / row["wall"]
            row["overhead"] = row["wall"] - alone["wall"] / n
            row["equal"] = "equal, bit for bit" if found == weights[0] else "DIFFER"
    text = f"""
    asking: all examples for their most violated constraints at trained weights, best wall time and mean CPU
    time of equal rounds, all processes together; first: with what has to be set up or sent once; overhead:
    beyond the time of 1 thread divided by threads or workers

    training: CuttingPlane(form="n_slack", C={C}, max_iter={ROUNDS}); its first round asks in 32 portions, the mean of
    the others stands beside it, and CPU seconds are a mean of all; optimising the dual is one thread's work always

    speed-up: of two threads against one, of two workers against one; x 1 thread: against one thread without
    Dask; a second thread brought {machine_ratio:.2f} to checksums of two buffers just then (others use the machine too)
    """
    return Table(f"Parallel rounds: {case.name}", COLUMNS, rows, notes(text))
