"""Clusters that are not here: time and memory of 10^8 tokens on 8 to 64 workers, by constants measured on this machine.

Two ways: rounds of `CuttingPlane` on Dask, whose client has the dual; and workers that exchange changes of w
(`structsvm.dual.exchanges`). How many passes the latter need is measured with logical workers, one after the other in
one process; what the engine costs, with few workers of a LocalCluster; more of them check the predictions.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

from common.measure import Clock, run_module
from common.report import Table, notes, verdict
from scale.logical import C, Logical
from sequence.data import FETCH, SEED, StopAtF1, Stopwatch, Task
from sequence.scaling import exponent
from structsvm import CuttingPlane, SequenceShards
from structsvm.dual.cutting_plane_schedules import FIRST_PORTIONS
from structsvm.dual.exchanges import N_PARTS, READ
from structsvm.dual.parallel import Rounds
from structsvm.features.columns import read_columns
from structsvm.oracles.viterbi import ViterbiOracle

CREWS = (*((n, 1) for n in (1, 2, 4, 8, 16, 32, 64)), (8, 2), (16, 2))  # workers, threads of each
CHECKED = 1, 2, 4
PASSES, LONGEST = 4, 24
WITHIN = 0.1  # points of F1
SHARES, TURNS, WIDE_BITS = (1, 4, 16), 5, 22
N_VECTORS = 4  # float32 vectors that a worker has at once: w, what it trains on, the average and its sum
TAKEN = 2.5  # bytes per byte of changes while they are summed: indices in 64 bits, and the values once more
STATES = 3  # bytes of training states per byte of their constraints in arrays: measured with 8,936 sentences
CLUSTER_PASSES = 4
LOGICAL, CLUSTER = "Logical workers that exchange changes of w", "A cluster on this machine"
SENTENCE_BYTES = 72  # the client's: measured with 17,872 and 142,976 sentences in shards, alphas in mapped files
# The cluster to plan for.
TOKENS, FEATURES, LEAST_PLANNED = 1e8, 5e6, 8
HOSTS, NETWORK, LATENCY = 8, 1.25e9, 1e-3  # bytes and seconds of 10 Gbit/s
SECONDS_WANTED, MB_WANTED = 120.0, 1000.0


def run(options):
    """Yield the tables: logical workers, a LocalCluster, the plan."""
    crews = [(n, t) for n, t in CREWS if n <= LEAST_PLANNED or not options.quick]
    with tempfile.TemporaryDirectory() as scratch:
        corpus = Corpus(Path(scratch), 0.1 if options.quick else 1.0)
        kept = {table.title: table.rows for table in options.kept.tables("plan")}
        rows = kept[LOGICAL] if options.only and options.only not in LOGICAL else []
        for crew in crews[len(rows) :]:
            rows.append(corpus.logical(*crew, rows[0]["wanted"] if rows else None))
            yield logical_table(corpus, rows)
        logical = {(row["workers"], row["threads"]): row for row in rows}
        clusters = kept[CLUSTER] if options.only and options.only not in CLUSTER else []
        for row in [] if clusters else cluster_rows(corpus, logical):
            clusters.append(row)
            yield cluster_table(clusters)
        yield plan_table(corpus, clusters, logical)


class Corpus:
    """CoNLL-2000 in random order as shards: with features hashed to 2^14, to nearly as many as planned, and its own."""

    def __init__(self, folder, share):
        data = FETCH["CoNLL-2000"]()
        columns, test = read_columns(data.train_path), read_columns(data.test_path)
        columns = columns.take(np.random.default_rng(SEED).permutation(len(columns))[: int(share * len(columns))])
        rows = pa.table({name: columns.column(j) for j, name in enumerate(("word", "tag", "chunk"))})
        self.folder = folder / "hashed"
        SequenceShards.make(rows, self.folder, templates="crf++", hash_bits=14)
        SequenceShards.make(rows, folder / "wide", templates="crf++", hash_bits=WIDE_BITS)
        SequenceShards.make(rows, folder / "own", templates="crf++", min_count=1)
        shards = SequenceShards.open(self.folder)
        encoder, self.n_tokens, self.n = shards.encoder, shards.n_tokens, len(shards)
        self.bytes_per_token = sum(path.stat().st_size for path in self.folder.iterdir()) / shards.n_tokens
        self.task = Task(
            "chunking", encoder, shards.labels, shards.tokens, shards.label_ids, encoder.transform(test.drop_last()),
            test.column(-1), chunks=True,
        )  # fmt: skip
        self.oracle = self.task.oracle("exact")
        self.stride = self.oracle.stride
        self.problem = self.oracle.bind(self.task.train, self.task.label_ids)
        self.wide, self.own = problem_of(folder / "wide"), problem_of(folder / "own")

    def f1(self, weights):
        return 100.0 * self.task.score(self.oracle, weights)["f1"]

    def logical(self, n, n_threads, wanted):
        """Passes that n workers take to the F1 that one has after four, and what they send meanwhile."""
        training, f1, duals = Logical(self.problem, n, n_threads), [], []
        while len(f1) < (PASSES if wanted is None else LONGEST) and (wanted is None or max(f1, default=0) < wanted):
            training.run_pass()
            f1.append(self.f1(training.run.state.averaged()))
            duals.append(training.run.dual)
        exact, mean = training.run.state.recompute(), training.means(len(f1))
        return mean | {
            "workers": n,
            "threads": n_threads,
            "passes": len(f1) if wanted is None or f1[-1] >= wanted else None,
            "f1": f1[-1],
            "wanted": wanted or f1[-1] - WITHIN,
            "dual": exact,
            "drift": abs(1.0 - duals[-1] / exact),
            "sigma": training.run.state.sigma,
            "turns": training.n_turns,
            "dual_two": duals[min(1, len(duals) - 1)],
            "token": training.n_turns * mean["workers"] / self.n_tokens,
            "constraints": training.cut_bytes() / self.n,
        }

    def rounds(self, wanted):
        """Rounds of `CuttingPlane` to an F1; per token and round, seconds of the oracle and of the rest, and bytes."""
        watch = Stopwatch(StopAtF1(self.task, self.oracle, wanted / 100.0))
        run = CuttingPlane(C, max_iter=LONGEST, random_state=SEED).solve(self.problem, monitor=watch)
        with Clock() as clock:
            answers = Rounds(self.problem).collect(run.weights)
        size = sum(array.nbytes for _, arrays in answers for array in arrays)
        kept = sum(array.nbytes for array in run.state.get_state().values())
        return {
            "rounds": len(watch.laps),
            "asking": clock.cpu / self.n_tokens,
            "rest": (watch.laps[-1][1] / len(watch.laps) - clock.cpu) / self.n_tokens,
            "answers": size / self.n_tokens,
            "kept": kept / self.n_tokens,
        }

    def turns(self):
        """Time of a turn of one worker, an exchange, with as many weights as planned, by threads: seconds per token,
        and per weight that stays as it is. With one thread and 2^14 features: seconds per token, and of a turn on next
        to nothing. And the law of how many weights change.
        """
        found = {n: self.turn_on(self.wide, n) for n in sorted({n for _, n in CREWS})}
        sizes = [self.n // share for share in SHARES]
        changed = [turn(self.own, size)["bytes"] / 8 for size in sizes]
        power = exponent(sizes, changed)
        scale = float(np.exp(np.mean(np.log(changed)) - power * np.mean(np.log(sizes))))
        return found | {"here": self.turn_on(self.problem, 1), "law": lambda n: scale * n**power, "power": power}

    def turn_on(self, problem, n_threads):
        whole, least = (turn(problem, n, n_threads)["worker"] for n in (self.n, n_threads))
        if whole <= least:
            raise RuntimeError(f"{n_threads} threads: {self.n} examples took {whole:.3g} s, next to none {least:.3g} s")
        return {"token": (whole - least) / self.n_tokens, "least": least, "weight": least / problem.n_features}


def problem_of(folder):
    shards = SequenceShards.open(folder)
    return ViterbiOracle(len(shards.labels), shards.tokens.n_features).bind(shards.tokens, shards.label_ids)


def turn(problem, n, n_threads=1):
    """Medians over the exchanges of one worker on n examples, one a pass, but for the first: pages are new there."""
    training, n_first = Logical(problem.shard(0, n), 1, n_threads), 1 + n_threads
    for _ in range(n_first + TURNS):
        training.run_pass()
    return {key: float(np.median([row[key] for row in training.log[n_first:]])) for key in training.log[0]}


# ---- logical workers -----------------------------------------------------------------------------

LOGICAL_COLUMNS = {
    "workers": ("workers", "d"),
    "threads": ("threads", "d"),
    "needed": ("passes", "d"),
    "f1": ("F1 %", ".2f"),
    "dual_two": ("dual after 2 passes", ".1f"),
    "dual": ("dual at the end", ".1f"),
    "sigma": ("sigma", ".1f"),
    "token_us": ("us a token and pass", ".2f"),
    "mb": ("MB of changes an exchange", ".2f"),
    "taking_ms": ("ms to sum them", ".1f"),
    "constraints": ("bytes of constraints a sentence", ".0f"),
}


def logical_table(corpus, rows):
    for row in rows:
        row["needed"] = row["passes"] or f"> {LONGEST}"
        row |= {"token_us": 1e6 * row["token"], "mb": row["bytes"] / 1e6, "taking_ms": 1e3 * row["taking"]}
    text = f"""
    CoNLL-2000 ({corpus.n_tokens} tokens), features hashed to 2^14, C = {C}; {N_PARTS} exchanges a pass (one worker:
    one) of changes of w (indices and float32), whose sigma follows an exact line search; all workers in one process,
    one after the other, so that times are as on a machine each: CPU of one thread, wall time of two, with what an
    exchange takes however few tokens there are

    passes: to an F1 on the test part of {rows[0]["wanted"]:.2f} %, that is {WITHIN} below that of one worker after
    {PASSES}, of w averaged over a pass

    the dual is computed exactly from all alphas at the end; the sum of what exchanges gained is off by
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
FEWEST = {"rounds": 1, "exchanges": 2}  # workers, of those that tell what more take: one alone exchanges once a pass
NAMES = {"wall": "seconds", "worker": "the busiest worker's CPU", "client": "the client's CPU", "sent": "bytes"}


def cluster_rows(corpus, logical):
    """Yield a row per way and number of workers; then, one of two workers is killed in training."""
    for way, least in FEWEST.items():
        base = None
        for n in CHECKED:
            row = cluster_row(corpus, way, n, "whole")
            if n >= least:
                base = base or row
                planned = predicted(way, n, base, logical, corpus.oracle.n_features)
                row |= {f"{key}_planned": planned[key] for key in NAMES}
            yield row | same_bits(way, row, base)
        killed = cluster_row(corpus, way, 2, "killed")
        yield killed | {"way": f"{way}, one of 2 workers killed"} | same_bits(way, killed, base)


def cluster_row(corpus, way, n, fate):
    row = run_module("scale.cluster", way, corpus.folder, n, CLUSTER_PASSES, fate)
    for peak in ("client_peak", "worker_peak"):
        row[peak] -= row["imports"]
    return row | {"way": way, "workers": n, "sent": row.pop("bytes") / 1e6}


def same_bits(way, row, one):
    if way != "rounds":
        return {}
    return {"bits": "equal, bit for bit" if row["weights"] == one["weights"] else "DIFFER"}


def predicted(way, n, one, logical, n_weights):
    """Costs of n workers of a LocalCluster, by those of fewer and, for exchanges, by logical workers."""
    if way == "rounds":
        broadcasts = FIRST_PORTIONS + CLUSTER_PASSES
        worker, client = one["worker"] / n, one["client"]
        sent = one["sent"] + (n - 1) * broadcasts * 4e-6 * n_weights
    else:
        here, there = logical[n, 1], logical[one["workers"], 1]
        worker = one["worker"] * here["worker"] / there["worker"]
        client = one["client"] * n / one["workers"]  # questions
        sent = one["sent"] * (n - 1) * here["bytes"] / ((one["workers"] - 1) * there["bytes"])
    before, after = (
        busy * max(1.0, k / (os.cpu_count() or 1)) + more
        for k, busy, more in ((one["workers"], one["worker"], one["client"]), (n, worker, client))
    )
    wall = one["wall"] * after / before
    return {"wall": wall, "worker": worker, "client": client, "sent": sent}


def cluster_table(rows):
    text = f"""
    rounds: CuttingPlane, {CLUSTER_PASSES} rounds, whose client has constraints and dual; exchanges: LaRank with
    deterministic=False, whose workers own the alphas of their part, {CLUSTER_PASSES} passes with {N_PARTS} exchanges
    each (one worker: one). The data are mapped shards, which workers map themselves. A LocalCluster of processes with
    one thread; CPU of all passes and the certificate, with what Dask takes; MB over the loopback device; peaks beyond
    imports

    predicted: from the row of one worker, of exchanges from that of two with the CPU time and bytes of logical workers.
    {max(CHECKED)} workers share {os.cpu_count()} cores. Wall times have the other work of the machine in them
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
    "threads": ("threads", "d"),
    "passes": ("passes", "d"),
    "computing": ("workers: s", ".0f"),
    "client": ("client: s", ".0f"),
    "network": ("network: s", ".0f"),
    "total": ("together: s", ".0f"),
    "client_mb": ("client: MB", ",.0f"),
    "worker_mb": ("a worker: MB", ",.0f"),
}


def plan_table(corpus, clusters, logical):
    rounds, turns = corpus.rounds(logical[1, 1]["wanted"]), corpus.turns()
    crews = [crew for crew in logical if crew[0] >= LEAST_PLANNED]
    n_weights = FEATURES * corpus.stride
    sentences = TOKENS * corpus.n / corpus.n_tokens
    base = next(row for row in clusters if row["way"] == "rounds")
    byte = base["client"] / (1e6 * base["sent"])  # CPU seconds of the client per byte that it sends or receives
    rows = [
        {
            "way": ORDER[0],
            "workers": 1,
            "threads": 1,
            "passes": PASSES,
            "computing": PASSES * TOKENS * turns[1]["token"],
            "total": PASSES * TOKENS * turns[1]["token"],
            "client_mb": (N_VECTORS * 4 * n_weights + sentences * STATES * logical[1, 1]["constraints"]) / 1e6,
        }
    ]
    for n in [n for n, threads in crews if threads == 1]:
        n_turns = rounds["rounds"] + FIRST_PORTIONS
        size = n_turns * n * 4 * n_weights + rounds["rounds"] * TOKENS * rounds["answers"]
        rows.append({
            "way": ORDER[1],
            "workers": n,
            "threads": 1,
            "passes": rounds["rounds"],
            "computing": rounds["rounds"] * TOKENS * rounds["asking"] / n,
            "client": rounds["rounds"] * TOKENS * rounds["rest"] + byte * size,
            "network": size / NETWORK + n_turns * LATENCY,
            "client_mb": (TOKENS * (corpus.bytes_per_token + rounds["kept"]) + 12 * n_weights) / 1e6,
            "worker_mb": (TOKENS / n * corpus.bytes_per_token + 4 * n_weights) / 1e6,
        })  # fmt: skip
    two = next(row for row in clusters if row["way"] == "exchanges" and row["workers"] == 2)
    asking = two["client"] / (CLUSTER_PASSES * N_PARTS * 2)  # the client's time, per worker and exchange
    for n, threads in crews:
        here, one = logical[n, threads], logical[n, 1]
        n_turns = (here["passes"] or LONGEST) * N_PARTS
        token = one["token"] - n * N_PARTS * (turns["here"]["least"] + one["taking"]) / corpus.n_tokens
        token *= turns[threads]["token"] / turns["here"]["token"]
        change = min(8 * turns["law"](sentences / n / N_PARTS), 8 * n_weights)
        taking = n * change * one["taking"] / one["bytes"]
        rows.append({
            "way": ORDER[2],
            "workers": n,
            "threads": threads,
            "passes": here["passes"] or f"> {LONGEST}",
            "computing": n_turns * (TOKENS / n / N_PARTS * token + taking + turns[threads]["weight"] * n_weights),
            "client": n_turns * n * asking,
            "network": n_turns * (n / HOSTS * (n - n / HOSTS) * change / NETWORK + 2 * LATENCY),
            "client_mb": (4 * (n_weights + 2 * READ) + SENTENCE_BYTES * sentences) / 1e6,
            "worker_mb": ((N_VECTORS + threads - 1) * 4 * n_weights + TAKEN * n * change
                          + sentences / n * (1 + STATES) * here["constraints"]
                          + TOKENS / n / N_PARTS * corpus.bytes_per_token) / 1e6,
        })  # fmt: skip
    for row in rows[1:]:
        row["total"] = row["computing"] + row["client"] + row["network"]
    return Table("The plan", PLAN_COLUMNS, rows, plan_notes(rows, turns))


ORDER = "one core, no cluster", "rounds", "exchanges"


def plan_notes(rows, turns):
    slower, threads = turns[1]["token"] / turns["here"]["token"], max(n for _, n in CREWS)
    text = f"""
    predicted for {TOKENS:.0e} tokens of chunking with {FEATURES:.0e} features, to the F1 of {PASSES} sequential passes
    less {WITHIN} points; {HOSTS} hosts of 8 cores that share the workers, {NETWORK / 1.25e8:.0f} Gbit/s and
    {1e3 * LATENCY:.0f} ms a message. Passes, bytes per token, constraints and, of exchanges, what a worker takes per
    byte of changes as measured above, however many tokens there are; the weights that change grow with the sentences to
    the power of {turns["power"]:.2f}; of the client, per worker, what two workers took

    seconds per token as above, but of one core and of exchanges {slower:.2f} times that, which one worker took with
    features hashed to 2^{WIDE_BITS}, and with {threads} threads, in wall time on this machine,
    {turns[threads]["token"] / turns[1]["token"]:.2f} times what one thread took there. So were measured
    {", ".join(f"{1e9 * turns[n]['weight']:.1f} ns with {n} thread{'s' * (n > 1)}" for n in range(1, threads + 1))} per
    exchange and weight that stays as it is. No more threads than could be measured are planned with: other cores idle

    workers: seconds of the busiest; client (with Dask's scheduler), network: what is beside that; a worker: without
    what its host shares. Without certificates, each of which takes about a pass, and of a worker 12 bytes per weight
    of all workers' that is not 0. The client's memory: w in float32, which it reads at the end, and
    {SENTENCE_BYTES} bytes per sentence
    """
    best = [min((row for row in rows if row["way"] == way), key=lambda row: row["total"]) for way in ORDER[1:]]
    return [*notes(text)] + [
        verdict(
            f"{TOKENS:.0e} tokens in under {SECONDS_WANTED:.0f} s with a client below {MB_WANTED:.0f} MB",
            f"{row['total']:.0f} s, {row['client_mb']:.0f} MB ({row['way']}, {row['workers']} workers of "
            f"{row['threads']} thread{'s' * (row['threads'] > 1)})",
            row["total"] < SECONDS_WANTED and row["client_mb"] < MB_WANTED,
        )
        for row in best
    ]
