"""How training time grows with the data, and what a second thread brings to prediction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from _measure import repeat
from _report import Table
from _sequence_data import FETCH, SEED, C, Task, default_solver, text_task, train

from structsvm import LaRank
from structsvm.columns import Columns, read_columns, take_ranges
from structsvm.datasets import make_sequences
from structsvm.features import FeatureEncoder
from structsvm.tasks.sequence_model import encode_labels

SIZES = (1 / 16, 1 / 4, 1, 4, 16)
QUICK_SIZES = (1 / 64, 1 / 16, 1 / 4)
THREADED_COPIES = 20


def run(options):
    """Training time on repeated and on simulated data, then the threads."""
    sizes = QUICK_SIZES if options.quick else SIZES
    yield scaling_table("CoNLL-2000, subsampled and repeated", repeated(max(sizes)), sizes, options.repeat)
    yield scaling_table("simulated chunks", simulated(max(sizes)), sizes, options.repeat)
    yield thread_table(2 if options.quick else THREADED_COPIES, options.repeat)


# ---- training ----------------------------------------------------------------------------------


def repeated(size):
    """CoNLL-2000 in a size of `size` times its own: the sentences in random order, over and over."""
    task = text_task("CoNLL-2000", "crf++", 3)
    order = np.random.default_rng(SEED).permutation(len(task.train))
    chosen = np.tile(order, int(np.ceil(size)))[: int(size * len(order))]
    _, rows = take_ranges(task.train.offsets, chosen)
    return replace(task, train=task.train.take(chosen), numbers=task.numbers[rows])


def simulated(size):
    """`size` times as many simulated sentences as CoNLL-2000 has."""
    n = len(read_columns(FETCH["CoNLL-2000"]().train_path))
    X, y = make_sequences(int(size * n), random_state=SEED)
    encoder = FeatureEncoder("crf++", 3)
    tokens = encoder.fit_transform(Columns.from_sequences(X))
    labels, numbers = encode_labels(y, tokens)
    return Task("simulated", encoder, labels, tokens, numbers, None, None, chunks=True)


def scaling_table(name, task, sizes, times):
    """Seconds of one epoch by size, and the exponent of the best power law."""
    larank = LaRank(C=C, schedule="fixed", n_reprocess=1, max_iter=1, random_state=SEED)
    runs = {"default, exact": ("exact", default_solver(C=C, max_iter=1)), "LaRankExact, n_R = 1": ("exact", larank),
            "LaRankGreedy, n_R = 1": ("greedy", larank)}
    columns = {"what": ("one epoch, seconds", "")}
    columns |= {f"x{size:g}": (f"{size:g} x", ".3f") for size in sizes} | {"exponent": ("exponent", ".3f")}
    rows = []
    for what, (inference, solver) in runs.items():
        oracle = task.oracle(inference)
        seconds = [epoch_seconds(oracle, part(task, size / max(sizes)), solver, times if size <= 1 else 1)
                   for size in sizes]
        exponent = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
        rows.append({"what": what, "exponent": exponent} | dict(zip(list(columns)[1:], seconds, strict=False)))
    tokens = part(task, 1 / max(sizes)).train.n_tokens if max(sizes) > 1 else task.train.n_tokens / max(sizes)
    return Table(f"Scaling: {name} (1 x: {tokens:.0f} tokens)", columns, rows,
                 [f"best of {times} up to 1 x, one run above; without the certificate; "
                  "exponent: slope of log seconds over log size, by least squares (1: linear)"])


def part(task, share):
    """The first sentences, a share of them."""
    tokens = task.train[: int(share * len(task.train))]
    return replace(task, train=tokens, numbers=task.numbers[: tokens.n_tokens])


def epoch_seconds(oracle, task, solver, times):
    return min(train(oracle, task.train, task.numbers, solver).passes for _ in range(times))


# ---- threads -----------------------------------------------------------------------------------


def thread_table(copies, times):
    """Prediction of the test sentences, over and over, with one thread and with two."""
    task = text_task("CoNLL-2000", "crf++", 3)
    oracle = task.oracle("exact")
    solver = default_solver(C=C, max_iter=1)
    model = task.model(oracle, train(oracle, task.train, task.numbers, solver).run.weights)
    columns = read_columns(FETCH["CoNLL-2000"]().test_path).drop_last()
    rows = [thread_row(model, name, X, columns.n_tokens * copies, times)
            for name, X in (("columns of a file", columns.take(np.tile(np.arange(len(columns)), copies))),
                            ("lists of attributes", attributes(columns) * copies))]
    return Table(
        f"Threads: prediction of {copies} x {columns.n_tokens} tokens",
        {"what": ("from", ""), "one": ("1 thread, tokens/s", ",.0f"), "two": ("2 threads, tokens/s", ",.0f"),
         "ratio": ("ratio", ".2f"), "target": ("target", ""), "verdict": ("", "")}, rows,
        [f"predict(X, n_jobs=...) as it is, from input to label lists; best of {times}"])
