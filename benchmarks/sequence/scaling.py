"""Training time against the size of the data, and the speed-up of prediction by a second thread."""

from __future__ import annotations

import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from common.measure import Repeats, repeat
from common.report import Table, notes
from sequence.attributes import attribute_lists
from sequence.data import FETCH, SEED, C, Task, default_solver, text_task, train
from structsvm import LaRank
from structsvm.datasets import make_sequences
from structsvm.features.columns import Columns, read_columns
from structsvm.features.encoder import FeatureEncoder
from structsvm.features.ranges import take_ranges
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.tasks.common import training
from structsvm.tasks.sequence.examples import LabeledSequences
from structsvm.tasks.sequence.labels import encode_labels
from structsvm.tasks.sequence.model import SequenceModel

SIZES = (1 / 16, 1 / 4, 1, 4, 16)
QUICK_SIZES = (1 / 256, 1 / 64, 1 / 16)
EXPONENTS = {"wall": ("exponent", ".3f"), "cpu": ("of CPU seconds", ".3f"), "calls": ("of arg max calls", ".3f")}
THREADED_COPIES = 20
THREAD_RATIO_WANTED = 1.8
THREAD_COLUMNS = {
    "what": ("from", ""),
    "one": ("1 thread, tokens/s", ",.0f"),
    "two": ("2 threads, tokens/s", ",.0f"),
    "ratio": ("ratio", ".2f"),
    "decode_ratio": ("ratio, decoding alone", ".2f"),
    "machine_ratio": ("ratio, the machine", ".2f"),
    "verdict": (f"target: {THREAD_RATIO_WANTED}", ""),
}


def run(options):
    """Training time on repeated and on simulated data, then the threads."""
    sizes = QUICK_SIZES if options.quick else SIZES
    yield scaling_table("CoNLL-2000, subsampled and repeated", repeated(max(sizes)), sizes, options.repeat)
    yield scaling_table("simulated chunks", simulated(max(sizes)), sizes, options.repeat)
    yield thread_table(2 if options.quick else THREADED_COPIES, options.repeat)


# ---- training ----------------------------------------------------------------------------------


def repeated(size):
    """CoNLL-2000 repeated `size` times, in random order."""
    task = text_task("CoNLL-2000", "crf++", 3)
    order = np.random.default_rng(SEED).permutation(len(task.train))
    chosen = np.tile(order, int(np.ceil(size)))[: int(size * len(order))]
    _, rows = take_ranges(task.train.offsets, chosen)
    return replace(task, train=task.train.take(chosen), label_ids=task.label_ids[rows])


def simulated(size):
    """`size` times as many simulated sentences as CoNLL-2000 has."""
    n = len(read_columns(FETCH["CoNLL-2000"]().train_path))
    X, y = make_sequences(int(size * n), random_state=SEED)
    encoder = FeatureEncoder("crf++", 3)
    tokens = encoder.fit_transform(Columns.from_sequences(X))
    labels, label_ids = encode_labels(y, tokens)
    return Task("simulated", encoder, labels, tokens, label_ids, None, None, chunks=True)


def scaling_table(name, task, sizes, times):
    """Seconds of one epoch by size, and the exponent of the best power law."""
    larank = LaRank(C=C, schedule="fixed", n_reprocess=1, average=False, max_iter=1, random_state=SEED)
    runs = {
        "default, exact": ("exact", default_solver(C=C, max_iter=1)),
        "LaRankExact, n_R = 1": ("exact", larank),
        "LaRankGreedy, n_R = 1": ("greedy", larank),
    }
    columns = {"what": ("one epoch, seconds", "")} | {f"x{size:g}": (f"{size:g} x", ".3f") for size in sizes}
    rows = []
    for what, (inference, solver) in runs.items():
        oracle = task.oracle(inference)
        done = [epoch(oracle, part(task, s / max(sizes)), solver, times if s <= 1 else 1) for s in sizes]
        row = {"what": what} | {f"x{size:g}": run["wall"] for size, run in zip(sizes, done, strict=True)}
        rows.append(row | {name: exponent(sizes, [run[name] for run in done]) for name in EXPONENTS})
    return Table(
        f"Scaling: {name} (1 x: {task.train.n_tokens / max(sizes):.0f} tokens)",
        columns | EXPONENTS,
        rows,
        notes(f"""
        best of {times} up to 1 x, one run above; without the certificate

        exponents: slope of the logarithm over log size, by least squares (1: linear); that of the arg max
        calls does not depend on the machine, those of the seconds also have its caches in them
        """),
    )


def exponent(sizes, values):
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def part(task, share):
    """The first sentences, as a share of all."""
    tokens = task.train[: int(share * len(task.train))]
    return replace(task, train=tokens, label_ids=task.label_ids[: tokens.n_tokens])


def epoch(oracle, task, solver, times):
    """Best wall and CPU seconds of one epoch, and its arg max calls."""
    runs = [train(oracle, task.train, task.label_ids, solver) for _ in range(times)]
    repeats = Repeats.of(runs)
    return {"wall": repeats.best, "cpu": repeats.cpu, "calls": runs[0].run.result().n_argmax}


# ---- threads -----------------------------------------------------------------------------------


def thread_table(copies, times):
    """Repeated prediction of the test sentences, with one thread and with two."""
    data = FETCH["CoNLL-2000"]()
    train_columns, test_columns = read_columns(data.train_path), read_columns(data.test_path).drop_last()
    X = train_columns.drop_last()
    encoder = FeatureEncoder("crf++", 3)
    lists = attribute_lists(encoder, encoder.fit_transform(X))
    test_lists = attribute_lists(encoder, encoder.transform(test_columns)) * copies
    test_columns = test_columns.take(np.tile(np.arange(len(test_columns)), copies))
    y = train_columns.select([-1])
    rows = [
        thread_row("columns of a file", trained(FeatureEncoder("crf++", 3), X, y), test_columns, times),
        thread_row("lists of attributes", trained(FeatureEncoder(), lists, y), test_lists, times),
    ]
    return Table(
        f"Threads: prediction of {copies} times the test sentences of CoNLL-2000 ({test_columns.n_tokens} tokens)",
        THREAD_COLUMNS,
        rows,
        notes(f"""
        predict(X, n_jobs=...) as it is, from input to label lists; best of {times}

        decoding alone: features given, half of the sentences in each thread; the machine: the same with
        checksums of two buffers, that is, what a second thread can bring here at all
        """),
    )


def trained(encoder, X, y):
    """A `SequenceModel` after one pass."""
    tokens = encoder.fit_transform(X)
    labels, label_ids = encode_labels(y, tokens)
    model = SequenceModel(encoder, labels, ViterbiOracle(len(labels), encoder.n_features))
    training.train(
        training.Job(
            model,
            LabeledSequences(tokens, label_ids, np.zeros((0, len(model.labels)), dtype=bool)),
            default_solver(C=C, max_iter=1),
        )
    )
    return model


def thread_row(what, model, X, times):
    tokens = model.encode(X)
    chains = [model.oracle.chain(part) for part in (tokens[: len(tokens) // 2], tokens[len(tokens) // 2 :])]
    buffers = [bytes(100_000_000)] * 2
    whole = [repeat(lambda n=n: model.predict(X, n_jobs=n), times)[1].best for n in (1, 2)]
    ratio = whole[0] / whole[1]
    return {
        "what": what,
        "one": tokens.n_tokens / whole[0],
        "two": tokens.n_tokens / whole[1],
        "ratio": ratio,
        "decode_ratio": gain(lambda chain: chain.decode(model.weights), chains, times),
        "machine_ratio": gain(zlib.crc32, buffers, times),
        "verdict": "met" if ratio >= THREAD_RATIO_WANTED else "MISSED",
    }


def gain(work, items, times):
    """Speed-up of two threads against one on two items."""

    def run(n_threads):
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(work, items))

    one, two = (repeat(lambda n=n: run(n), times)[1].best for n in (1, 2))
    return one / two
