"""Streams: the time of a batch by the number of features, constant memory, and commands on texts of growing length."""

from __future__ import annotations

import gzip
import sys
import tempfile
from pathlib import Path

from common.measure import run_command, run_module
from common.report import Table, notes, verdict
from structsvm.datasets import fetch_conll2000

HASH_BITS = (12, 16, 18, 20, 22)
SENTENCES = 1000
COPIES = {"train": (1, 4), "predict": (4, 16)}
MS_WANTED, GROWN_WANTED, RATIO_WANTED = 1.0, 1.0, 1.6
STREAM, COMMANDS = "A stream of sentences", "Commands on long texts"
BATCH_COLUMNS = {
    "hash_bits": ("hash_bits", "d"),
    "weights": ("weights, MB", ".1f"),
    "n": ("batches", "d"),
    "median": ("a batch: median CPU ms", ".2f"),
    "first": ("mean of the first tenth", ".2f"),
    "last": ("of the last tenth", ".2f"),
    "peak": ("peak MB", ".0f"),
    "grown": ("more than after a tenth, MB", ".1f"),
}
COMMAND_COLUMNS = {
    "command": ("", ""),
    "copies": ("times the text", "d"),
    "mb": ("MB", ".0f"),
    "cpu": ("CPU s", ".2f"),
    "one": ("s", ".2f"),
    "two": ("two threads: s", ".2f"),
    "ratio": ("speed-up", ".2f"),
    "peak": ("peak MB", ".0f"),
}


def run(options):
    """Yield both tables, again with each row."""
    rows = []
    for bits in HASH_BITS if options.only in STREAM else ():
        rows.append({"hash_bits": bits} | run_module("scale.streaming", bits, 200 if options.quick else SENTENCES, 1))
        yield batch_table(rows)
    if options.only not in COMMANDS:
        return
    with tempfile.TemporaryDirectory() as scratch:
        rows = []
        for row in commands(Path(scratch), 1 if options.quick else options.repeat):
            rows.append(row)
            yield command_table(rows)


def batch_table(rows):
    text = """
    partial_fit of one sentence of CoNLL-2000 after the other, templates of CRF++, hashed; each row in a process of its
    own, without garbage collection; peak: largest resident set
    """
    large = next((row for row in rows if row["hash_bits"] == 20), None)
    targets = []
    if large is not None:
        ratio = large["last"] / large["first"]
        targets = [
            verdict(
                f"one sentence with 2^20 features in under {MS_WANTED:.0f} ms",
                f"{large['median']:.2f} ms",
                large["median"] < MS_WANTED,
            ),
            verdict(
                "constant time and memory",
                f"the last tenth {ratio:.2f} times the first, {large['grown']:.1f} MB more",
                ratio < 1.2 and large["grown"] < GROWN_WANTED,
            ),
        ]
    return Table(STREAM, BATCH_COLUMNS, rows, notes(text) + targets)


def commands(folder, times):
    """Yield a row per command and length of the text."""
    data, model = fetch_conll2000(), folder / "model"
    text = gzip.decompress(Path(data.train_path).read_bytes())
    labels = ",".join(sorted({label for labels in data.y_train for label in labels}))
    structsvm = f"{sys.executable} -m structsvm"
    files = {copies: folder / f"text{copies}" for several in COPIES.values() for copies in several}
    for copies, file in files.items():
        file.write_bytes(text * copies)
    about = {copies: {"copies": copies, "mb": len(text) * copies / 1e6} for copies in files}
    for copies in COPIES["train"]:
        file, row = files[copies], about[copies]
        options = f"--stream --hash-bits 16 --labels {labels} --quiet"
        done = shell(f"cat {file} | {structsvm} train sequence - {options} --model {model}")
        yield row | {"command": "train sequence - --stream", "one": done.wall, "cpu": done.cpu, "peak": done.peak}
    for copies in COPIES["predict"]:
        file, row = files[copies], about[copies]
        found = {n: [] for n in (1, 2)}
        for _ in range(times):
            for n, runs in found.items():
                runs.append(shell(f"{structsvm} predict {model} {file} --jobs {n} -o {folder / 'out'}"))
        one, two = (min(run.wall for run in runs) for runs in found.values())
        yield row | {
            "command": "predict",
            "cpu": min(run.cpu for run in found[1]),
            "one": one,
            "two": two,
            "ratio": one / two,
            "peak": max(run.peak for runs in found.values() for run in runs),
        }


def shell(command):
    return run_command(["/bin/sh", "-c", command])


def command_table(rows):
    text = """
    the training text of CoNLL-2000 so many times, from a pipe to a model, and from a file to a file of labels; s: wall
    time, the best of some runs by turns with one thread and with two, start and imports included
    """
    targets = []
    if len(rows) == 4:
        peaks = [row["peak"] for row in rows]
        grown = max(peaks[1] / peaks[0], peaks[3] / peaks[2])
        targets = [
            verdict("constant memory", f"4 times the text takes {grown:.2f} times the memory at most", grown < 1.1),
            verdict(
                f"two threads {RATIO_WANTED} times one from text to text",
                f"{rows[-1]['ratio']:.2f}",
                rows[-1]["ratio"] >= RATIO_WANTED,
            ),
        ]
    return Table(COMMANDS, COMMAND_COLUMNS, rows, notes(text) + targets)
