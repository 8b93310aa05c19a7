"""Clusters that are not here: time and memory of 10^8 tokens on 8 to 64 workers, by constants measured on this machine.

Two ways: rounds of `CuttingPlane` on Dask, whose client has data and dual; and workers that exchange changes of w
(`scale.exchange`), which is a prototype. How many passes the latter need is measured with logical workers, one after
the other in one process; what the engine costs, with one worker of a LocalCluster; two and four check the predictions.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

from common.measure import Clock, run_module
from common.report import Table, notes, verdict
from scale.cluster import N_PARTS, equal_parts
from scale.exchange import C, Exchanges, Member
from sequence.data import FETCH, SEED, StopAtF1, Stopwatch, Task
from sequence.scaling import exponent
from structsvm import CuttingPlane, SequenceShards
from structsvm.dual.cutting_plane_schedules import FIRST_PORTIONS
from structsvm.dual.parallel import Rounds
from structsvm.features.columns import read_columns

WORKERS, CHECKED = (1, 2, 4, 8, 16, 32, 64), (1, 2, 4)
PASSES, MOST_PASSES = 4, 24
WITHIN = 0.1  # points of F1
OWN_PARTS = (2, 32)
N_VECTORS = 6  # of float32 that a worker has at once: w, its state's, what it starts from, moved, and one of float64
CLUSTER_PASSES = 4
LOGICAL, CLUSTER = "Logical workers that exchange changes of w", "A cluster on this machine"
# The cluster to plan for.
TOKENS, FEATURES, PLANNED = 1e8, 5e6, (8, 16, 32, 64)
PER_HOST, NETWORK, LATENCY = 8, 1.25e9, 1e-3  # cores; bytes and seconds of 10 Gbit/s
SECONDS_WANTED, MB_WANTED = 120.0, 1000.0


def run(options):
    """Yield the tables: logical workers, a LocalCluster, the plan."""
    workers = (1, 2, 4, 8) if options.quick else WORKERS
    with tempfile.TemporaryDirectory() as scratch:
        corpus = Corpus(Path(scratch), 0.1 if options.quick else 1.0)
        kept = {table.title: table.rows for table in options.kept.tables("plan")}
        rows = kept[LOGICAL] if options.only and options.only not in LOGICAL else []
        for n in workers[len(rows) :]:
            rows.append(corpus.logical(n, rows[0]["wanted"] if rows else None))
            yield logical_table(corpus, rows)
        logical = {row["workers"]: row for row in rows}
        clusters = kept[CLUSTER] if options.only and options.only not in CLUSTER else []
        for row in [] if clusters else cluster_rows(corpus, logical):
            clusters.append(row)
            yield cluster_table(clusters)
        yield plan_table(corpus, clusters, logical, [n for n in PLANNED if n in logical])


class Corpus:
    """CoNLL-2000 in random order as shards, once with hashed features and once with its own."""

    def __init__(self, folder, share):
        data = FETCH["CoNLL-2000"]()
        columns, test = read_columns(data.train_path), read_columns(data.test_path)
        columns = columns.take(np.random.default_rng(SEED).permutation(len(columns))[: int(share * len(columns))])
        rows = pa.table({name: columns.column(j) for j, name in enumerate(("word", "tag", "chunk"))})
        self.folder, own = folder / "hashed", folder / "own"
        SequenceShards.make(rows, self.folder, templates="crf++", hash_bits=14)
        SequenceShards.make(rows, own, templates="crf++", min_count=1)
        shards, self.own = SequenceShards.open(self.folder), own
        encoder, self.n_tokens, self.n = shards.encoder, shards.n_tokens, len(shards)
        self.bytes_per_token = sum(path.stat().st_size for path in self.folder.iterdir()) / shards.n_tokens
        self.task = Task(
            "chunking", encoder, shards.labels, shards.tokens, shards.label_ids, encoder.transform(test.drop_last()),
            test.column(-1), chunks=True,
        )  # fmt: skip
        self.oracle = self.task.oracle("exact")
        self.stride = self.oracle.stride
        self.n_own = Member(own, [0, 1]).w.size
        self.sizes = {self.folder: self.oracle.n_features, own: self.n_own}

    def members(self, folder, n):
        return [Member(folder, bounds) for bounds in equal_parts(self.n, n)]

    def f1(self, weights):
        return 100.0 * self.task.score(self.oracle, weights)["f1"]

    def logical(self, n, wanted):
        """Passes that n workers take to the F1 that one has after four, and what they send meanwhile."""
        members = self.members(self.folder, n)
        training, f1, duals = Exchanges(members, self.oracle.n_features, N_PARTS), [], []
        while len(f1) < (PASSES if wanted is None else MOST_PASSES) and (wanted is None or max(f1, default=0) < wanted):
            members[0].average()
            training.run_pass()
            training.apply()
            f1.append(self.f1(members[0].average()))
            duals.append(training.dual)
        exact, n_bytes, _ = training.certificate()
        log = training.log[N_PARTS:] or training.log
        mean = means(log)
        return mean | {
            "workers": n,
            "passes": len(f1) if wanted is None or f1[-1] >= wanted else None,
            "f1": f1[-1],
            "wanted": wanted or f1[-1] - WITHIN,
            "dual": exact,
            "drift": abs(1.0 - training.dual / exact),
            "dual_two": duals[min(1, len(duals) - 1)],
            "token": N_PARTS * mean["workers"] / self.n_tokens,
            "constraints": n_bytes / self.n,
        }

    def rounds(self, wanted):
        """Rounds of `CuttingPlane` to an F1; per token and round, seconds of the oracle and of the rest, and bytes."""
        problem = self.oracle.bind(self.task.train, self.task.label_ids)
        watch = Stopwatch(StopAtF1(self.task, self.oracle, wanted / 100.0))
        run = CuttingPlane(C, max_iter=MOST_PASSES, random_state=SEED).solve(problem, monitor=watch)
        with Clock() as clock:
            answers = Rounds(problem).collect(run.weights)
        size = sum(array.nbytes for _, arrays in answers for array in arrays)
        kept = sum(array.nbytes for array in run.state.get_state().values())
        return {
            "rounds": len(watch.laps),
            "asking": clock.cpu / self.n_tokens,
            "rest": (watch.laps[-1][1] / len(watch.laps) - clock.cpu) / self.n_tokens,
            "answers": size / self.n_tokens,
            "kept": kept / self.n_tokens,
        }

    def dense(self):
        """What an exchange takes for its weights, and the law of how many of them change.

        Of a worker the seconds with the hashed features here and the seconds per weight; of the client per weight.
        """
        n_hashed = self.oracle.n_features
        few = [turns([Member(folder, list(range(N_PARTS + 1)))], n) for folder, n in self.sizes.items()]
        found = [turns(self.members(self.own, 1), self.n_own)]
        changed = [found[0]["up"] / 8]
        sizes = [self.n / N_PARTS]
        for n_parts in OWN_PARTS:
            member = Member(self.own, np.linspace(0, self.n, n_parts + 1).astype(int).tolist())
            changed.append(turns([member], self.n_own, n_parts)["up"] / 8)
            sizes.append(self.n / n_parts)
        power = exponent(sizes, changed)
        scale = float(np.exp(np.mean(np.log(changed)) - power * np.mean(np.log(sizes))))
        return {
            "here": few[0]["worker"],
            "worker": (few[1]["worker"] - few[0]["worker"]) / (self.n_own - n_hashed),
            "client": found[0]["summing"] / self.n_own,
            "law": lambda n: scale * n**power,
            "power": power,
        }


def turns(members, n_features, n_parts=N_PARTS):
    """Means over the exchanges of a second pass."""
    training = Exchanges(members, n_features, n_parts)
    for _ in range(2):
        training.run_pass()
    return means(training.log[n_parts:])


def means(log):
    return {key: float(np.mean([row[key] for row in log])) for key in log[0]}


# ---- logical workers -----------------------------------------------------------------------------

LOGICAL_COLUMNS = {
    "workers": ("workers", "d"),
    "needed": ("passes", "d"),
    "f1": ("F1 %", ".2f"),
    "dual_two": ("dual after 2 passes", ".1f"),
    "dual": ("dual at the end", ".1f"),
    "sigma": ("sigma", ".1f"),
    "token_us": ("CPU us a token and pass", ".2f"),
    "up_mb": ("MB an exchange, from workers", ".2f"),
    "down_mb": ("to workers", ".2f"),
    "constraints": ("bytes of constraints a sentence", ".0f"),
}


def logical_table(corpus, rows):
    for row in rows:
        row["needed"] = row["passes"] or f"> {MOST_PASSES}"
        row |= {"token_us": 1e6 * row["token"], "up_mb": row["up"] / 1e6, "down_mb": row["down"] / 1e6}
    text = f"""
    CoNLL-2000 ({corpus.n_tokens} tokens), features hashed to 2^14, C = {C}; {N_PARTS} exchanges a pass of changes of w
    (indices and float32), with an adaptive sigma, scaled by an exact line search; all workers in one process, one after
    the other

    passes: to an F1 on the test part of {rows[0]["wanted"]:.2f} %, that is {WITHIN} below that of one worker after
    {PASSES}, of w averaged over a pass

    the dual is computed exactly from all alphas at the end; the sum of what line searches said is off by
    {max(row["drift"] for row in rows):.0e} at most
    """
    return Table(LOGICAL, LOGICAL_COLUMNS, rows, notes(text))


# ---- a cluster on this machine -------------------------------------------------------------------

CLUSTER_COLUMNS = {
    "way": ("", ""),
    "workers": ("workers", "d"),
    "dual": ("dual", ".1f"),
    "wall": ("s a pass", ".2f"),
    "wall_planned": ("predicted", ".2f"),
    "worker": ("busiest worker: CPU s", ".2f"),
    "worker_planned": ("predicted", ".2f"),
    "client": ("client: CPU s", ".2f"),
    "client_planned": ("predicted", ".2f"),
    "sent": ("MB sent", ".0f"),
    "sent_planned": ("predicted", ".0f"),
    "client_peak": ("client: peak MB", ".0f"),
    "worker_peak": ("worker: peak MB", ".0f"),
    "bits": ("weights", ""),
}
NAMES = {"wall": "seconds", "worker": "the busiest worker's CPU", "client": "the client's CPU", "sent": "bytes"}


def cluster_rows(corpus, logical):
    """Yield a row per way and number of workers; at last, one of two workers is killed in training."""
    for way in ("rounds", "exchanges"):
        one = None
        for n in CHECKED:
            row = cluster_row(corpus, way, n)
            one = one or row
            planned = predicted(way, n, one, logical, corpus.oracle.n_features)
            yield row | {f"{key}_planned": planned[key] for key in NAMES} | same_bits(row, one)
        if way == "rounds":
            killed = cluster_row(corpus, "killed", 2)
            yield killed | {"way": "rounds, one of 2 workers killed"} | same_bits(killed, one)


def cluster_row(corpus, way, n):
    row = run_module("scale.cluster", way, corpus.folder, n, CLUSTER_PASSES)
    for peak in ("client_peak", "worker_peak"):
        row[peak] -= row["imports"]
    return row | {"way": way, "workers": n, "sent": row.pop("bytes") / 1e6}


def same_bits(row, one):
    return {"bits": "equal, bit for bit" if row["weights"] == one["weights"] else "DIFFER"} if "weights" in row else {}


def predicted(way, n, one, logical, n_weights):
    """What n workers of a LocalCluster take, by what one takes and, for exchanges, by logical workers."""
    if way == "rounds":
        broadcasts = FIRST_PORTIONS + CLUSTER_PASSES
        worker, client = one["worker"] / n, one["client"]
        sent = one["sent"] + (n - 1) * broadcasts * 4e-6 * n_weights
    else:
        turns = CLUSTER_PASSES * N_PARTS
        here, alone = logical[n], logical[1]
        worker = one["worker"] * here["worker"] / alone["worker"]
        payload = (here["up"] + here["down"]) / (alone["up"] + alone["down"])
        client = turns * here["summing"] + payload * (one["client"] - turns * alone["summing"])
        sent = payload * one["sent"]
    waiting = max(one["wall"] - (one["worker"] + one["client"]) / CLUSTER_PASSES, 0.0)
    wall = waiting + (worker * max(1.0, n / (os.cpu_count() or 1)) + client) / CLUSTER_PASSES
    return {"wall": wall, "worker": worker, "client": client, "sent": sent}


def cluster_table(rows):
    text = f"""
    rounds: CuttingPlane, {CLUSTER_PASSES} rounds on Dask as it is, whose client has data, constraints and dual;
    exchanges: a prototype (benchmarks/scale/exchange.py) whose workers map their part of the data and own its alphas,
    {CLUSTER_PASSES} passes with {N_PARTS} exchanges each. A LocalCluster of processes with one thread; CPU of all
    passes, with what Dask takes; MB over the loopback device; peaks beyond imports

    predicted: from the row of one worker; of exchanges with the CPU time and bytes of logical workers. {max(CHECKED)}
    workers share {os.cpu_count()} cores. Wall times have the other work of the machine in them
    """
    worst = {
        key: max(max(r[key] / p, p / r[key]) for r in rows if (p := r.get(f"{key}_planned")) and r["workers"] > 1)
        for key in NAMES
        if any(r["workers"] > 1 for r in rows)
    }
    factors = ", ".join(f"{NAMES[key]} {factor:.2f}" for key, factor in worst.items())
    checks = [f"measured by predicted or the other way round, of more than one worker, at most: {factors}"]
    return Table(CLUSTER, CLUSTER_COLUMNS, rows, notes(text) + (checks if worst else []))


# ---- the plan --------------------------------------------------------------------------------------

PLAN_COLUMNS = {
    "way": ("", ""),
    "workers": ("workers", "d"),
    "passes": ("passes", "d"),
    "computing": ("workers: s", ".0f"),
    "client": ("client: s", ".0f"),
    "network": ("network: s", ".0f"),
    "total": ("together: s", ".0f"),
    "client_mb": ("client: MB", ",.0f"),
    "worker_mb": ("a worker: MB", ",.0f"),
}


def plan_table(corpus, clusters, logical, workers):
    rounds, dense = corpus.rounds(logical[1]["wanted"]), corpus.dense()
    n_weights = FEATURES * corpus.stride
    sentences = TOKENS * corpus.n / corpus.n_tokens
    alone = {row["way"]: row for row in clusters if row["workers"] == 1}
    # CPU seconds of Dask's client per byte that it sends or receives.
    byte = {way: row["client"] / (1e6 * row["sent"]) for way, row in alone.items()}
    rows = [
        {
            "way": ORDER[0],
            "workers": 1,
            "passes": PASSES,
            "computing": PASSES * TOKENS * logical[1]["token"],
            "total": PASSES * TOKENS * logical[1]["token"],
            "client_mb": (N_VECTORS * 4 * n_weights + sentences * logical[1]["constraints"]) / 1e6,
        }
    ]
    for n in workers:
        n_turns = rounds["rounds"] + FIRST_PORTIONS
        size = n_turns * n * 4 * n_weights + rounds["rounds"] * TOKENS * rounds["answers"]
        rows.append({
            "way": ORDER[1],
            "workers": n,
            "passes": rounds["rounds"],
            "computing": rounds["rounds"] * TOKENS * rounds["asking"] / n,
            "client": rounds["rounds"] * TOKENS * rounds["rest"] + byte["rounds"] * size,
            "network": size / NETWORK + n_turns * LATENCY,
            "client_mb": (TOKENS * (corpus.bytes_per_token + rounds["kept"]) + 12 * n_weights) / 1e6,
            "worker_mb": (TOKENS / n * corpus.bytes_per_token + 4 * n_weights) / 1e6,
        })  # fmt: skip
    for n in workers:
        here, most = logical[n], 8 * n_weights
        n_turns = (here["passes"] or MOST_PASSES) * N_PARTS
        token = here["token"] - n * N_PARTS * dense["here"] / corpus.n_tokens
        up = min(8 * dense["law"](sentences / n / N_PARTS), most)
        down = min(8 * dense["law"](sentences / N_PARTS), most)
        row = {
            "workers": n,
            "passes": here["passes"] or f"> {MOST_PASSES}",
            "computing": n_turns * (TOKENS / n / N_PARTS * token + dense["worker"] * n_weights),
            "worker_mb": (N_VECTORS * 4 * n_weights + sentences / n * here["constraints"]
                          + TOKENS / n / N_PARTS * corpus.bytes_per_token) / 1e6,
        }  # fmt: skip
        size = n * (up + down)
        star = {
            "way": ORDER[2],
            "client": n_turns * (dense["client"] * n_weights + byte["exchanges"] * size),
            "network": n_turns * (size / NETWORK + LATENCY),
            "client_mb": (4 * n_weights + n * up + down) / 1e6,
        }
        ring = {
            "way": ORDER[3],
            "client": 0.0,
            "network": n_turns * (2 * down / NETWORK + LATENCY * n / PER_HOST),
            "client_mb": 0.0,
        }
        lean = {"way": ORDER[4], "computing": n_turns * TOKENS / n / N_PARTS * token}
        rows += [row | star, row | ring, row | ring | lean]
    for row in rows[1:]:
        row["total"] = row["computing"] + row["client"] + row["network"]
    rows.sort(key=lambda row: ORDER.index(row["way"]))
    return Table("The plan", PLAN_COLUMNS, rows, plan_notes(rows, dense))


ORDER = (
    "one core, no cluster",
    "rounds",
    "exchanges through the client",
    "exchanges, summed from host to host",
    "the same, a turn costs what it touches",
)


def plan_notes(rows, dense):
    text = f"""
    predicted for {TOKENS:.0e} tokens of chunking with {FEATURES:.0e} features, to the F1 of {PASSES} sequential passes
    less {WITHIN} points; hosts of {PER_HOST} cores, a worker per core, {NETWORK / 1.25e8:.0f} Gbit/s and
    {1e3 * LATENCY:.0f} ms a message. Passes, seconds per token, bytes per token and constraints as measured above,
    however many tokens there are; per weight and exchange {1e9 * dense["worker"]:.1f} ns of a worker and
    {1e9 * dense["client"]:.1f} ns of the client; the weights that change grow with the sentences to the power of
    {dense["power"]:.2f}

    workers: seconds of the busiest; client, network: what is beside that; a worker: without what its host shares;
    "through the client": as the prototype does; "from host to host": a ring that passes parts of the sum twice, and a
    turn that takes no time for weights that it leaves as they are: neither is built
    """
    best = [min((row for row in rows if row["way"] == way), key=lambda row: row["total"]) for way in ORDER[1:]]
    return [*notes(text)] + [
        verdict(
            f"{TOKENS:.0e} tokens in under {SECONDS_WANTED:.0f} s with a client below {MB_WANTED:.0f} MB",
            f"{row['total']:.0f} s, {row['client_mb']:.0f} MB ({row['way']}, {row['workers']} workers)",
            row["total"] < SECONDS_WANTED and row["client_mb"] < MB_WANTED,
        )
        for row in best
    ]
