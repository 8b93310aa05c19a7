"""Milliseconds per batch of each program, with one thread and with two."""

from __future__ import annotations

import json
import os
import sys

from common.measure import run_command
from common.report import Table, notes, verdict
from structsvm import layers

# Milliseconds from which on what Python does before and after a batch hardly counts.
LONG = 0.1
# Programs that have chains alone, and the one that has other structures.
CHAINS, PEERS = {"pytorch-crf": "crf", "scan": "scan"}, {"torch-struct": "struct"}
COLUMNS = {
    "what": ("structure", ""),
    "batch": ("batch", "d"),
    "action": ("", ""),
    "ours1": ("structsvm, ms", ".3f"),
    "ours2": ("2 threads, ms", ".3f"),
    "ours11": ("2 processes, ms", ".3f"),
    "crf1": ("pytorch-crf, ms", ".2f"),
    "crf2": ("2 threads, ms", ".2f"),
    "struct1": ("torch-struct, ms", ".2f"),
    "struct2": ("2 threads, ms", ".2f"),
    "scan1": ("lax.scan, ms", ".2f"),
    "scan2": ("2 threads, ms", ".2f"),
    "of_crf": ("times pytorch-crf", ".1f"),
    "of_struct": ("times torch-struct", ".1f"),
    "of_scan": ("times lax.scan", ".1f"),
    "of_threads": ("times with 2 threads", ".2f"),
    "of_processes": ("with 2 processes", ".2f"),
    "share": ("share of these", ".2f"),
}
NOTES = """
wall milliseconds, the best of the repeats, of a batch in float32; the programs one after the other, bound to one or two
processors

loss: the log loss and its gradients by all scores; decode: the best outputs; sample: 10 outputs per entry

torch-struct: potentials are made of the same scores, and by autograd the gradients are of these; its chains of 50
labels in batches and of 100 labels are left out, since its scan needs gigabytes and minutes; its trees have no argmax
where arcs may cross; its alignments need an extension for GPUs, its segmentations a label before the first one

lax.scan: the forward recursion in JAX, jit and value_and_grad, without compilation

2 processes: each does batches of its own while the other does the same, on a processor of its own; no threads could do
more in that time on this machine, and the share is what 2 threads do of it
"""


def cases(part, quick):
    """Return the cases of a part: structure, size, labels, batch, action."""
    batches = (1, 2) if quick else (1, 32)
    sizes = {"heads-chains": 12, "heads-trees": 6, "heads-others": 6}[part] if quick else None
    rows = {
        "heads-chains": [("Chain", sizes or 128, K, 1) for K in ((3, 5) if quick else (9, 20, 50, 100))],
        "heads-trees": [("Projective", sizes or 40, 1, 1), ("Arborescence", sizes or 40, 1, 1)],
        "heads-others": [
            ("SemiMarkov", sizes or 40, 10, 8),
            ("Spans", sizes or 40, 10, 1),
            ("Alignment", sizes or 40, 1, 1),
        ],
    }[part]
    names = ("structure", "size", "labels", "longest")
    return [
        dict(zip(names, row, strict=True), batch=batch, action=action, samples=10)
        for row in rows
        if hasattr(layers, row[0])
        for batch in batches
        for action in ("loss", "decode", "sample")
    ]


def run(options):
    """Yield the table of the part."""
    asked = cases(options.part, options.quick)
    old = [] if options.fresh else options.kept.tables(options.part)
    kept = {row["key"]: row for table in old for row in table.rows}
    rows = [described(case) for case in asked]
    table = Table(f"milliseconds per batch, {options.part.partition('-')[2]}", COLUMNS, rows, notes(NOTES))
    request = {"cases": asked, "repeat": options.repeat}
    for threads in (1, 2):
        command = [sys.executable, "-P", "-m", "layers.ours", json.dumps(request | {"threads": threads})]
        fill(rows, f"ours{threads}", json.loads(run_command(command).stdout))
    if options.machine["cores"] > 1:
        command = [sys.executable, "-P", "-m", "layers.ours", json.dumps(request | {"threads": 1, "at_once": True})]
        fill(rows, "ours11", json.loads(run_command(command).stdout))
    yield finished(table)
    for name, column in ((CHAINS if options.part == "heads-chains" else {}) | PEERS).items():
        release = versions_of(name)
        for threads in (1, 2) if release else ():
            about = [name, release, threads, *(options.machine[fact] for fact in ("cpu", "cores"))]
            keys = [json.dumps([row["key"], *about]) for row in rows]
            found = [kept.get(row["key"], {}).get("of_peers", {}).get(key) for row, key in zip(rows, keys, strict=True)]
            if None in found:
                print(f"  {options.part}: {name}, {threads} threads", file=sys.stderr, flush=True)
                found = measured_elsewhere(name, request | {"threads": threads})
            fill(rows, f"{column}{threads}", [one["ms"] for one in found])
            table.notes = [*(note for note in table.notes if note != release), release]
            for row, key, one in zip(rows, keys, found, strict=True):
                row["of_peers"][key] = one
            yield finished(table)


def measured_elsewhere(name, request):
    """The milliseconds of another program, by its interpreter."""
    done = run_command([os.environ["LAYERS_PEERS"], "-P", "-m", "layers.peers", name, json.dumps(request)])
    print(done.stderr, file=sys.stderr, end="")
    return [{"ms": found} for found in json.loads(done.stdout)]


def versions_of(name):
    """The versions of another program and of what it needs, None where it is not found."""
    if "LAYERS_PEERS" not in os.environ:
        return None
    try:
        done = run_command([os.environ["LAYERS_PEERS"], "-P", "-m", "layers.peers", name, "versions"])
    except RuntimeError as error:
        print(f"  {name} is left out: {error}", file=sys.stderr)
        return None
    return json.loads(done.stdout)


def described(case):
    size = f"{case['size']} tokens" if case["structure"] != "Alignment" else f"{case['size']} x {case['size']} letters"
    more = f", {case['labels']} labels" if case["labels"] > 1 else ""
    more += f" of up to {case['longest']} tokens" if case["longest"] > 1 else ""
    what = f"{case['structure']}, {size}{more}"
    key = json.dumps(case, sort_keys=True)
    return {"what": what, "batch": case["batch"], "action": case["action"], "key": key, "of_peers": {}}


def fill(rows, column, values):
    for row, value in zip(rows, values, strict=True):
        row[column] = value


def finished(table):
    """The table with ratios, the columns that it has, and the verdicts on what was aimed at."""
    for row in table.rows:
        for column, other in (("of_crf", "crf1"), ("of_struct", "struct1"), ("of_scan", "scan1")):
            if row.get(other) is not None:
                row[column] = row[other] / row["ours1"]
        if row["ours2"] is not None:
            row["of_threads"] = row["ours1"] / row["ours2"]
            if row.get("ours11") is not None and row["batch"] > 1:  # one entry has one thread
                row["of_processes"] = 2 * row["ours1"] / row["ours11"]
                row["share"] = row["of_threads"] / row["of_processes"]
    table.columns = {
        name: column for name, column in COLUMNS.items() if any(row.get(name) is not None for row in table.rows)
    }
    table.notes = [note for note in table.notes if not note.startswith("target:")] + targets(table.rows)
    return table


def targets(rows):
    losses, found = [row for row in rows if row["action"] == "loss"], []
    batches = [row for row in losses if row["batch"] > 1]
    aims = [
        ("of_crf", losses, "loss and gradient at least 30 times as fast as pytorch-crf", 30.0),
        ("of_struct", losses, "loss and gradient at least 20 times as fast as torch-struct", 20.0),
        ("of_threads", batches, "batches 1.8 times as fast with two threads", 1.8),
        ("of_threads", [row for row in batches if row["ours1"] >= LONG], f"those that take {LONG} ms or more", 1.8),
        ("share", batches, "batches with two threads at least 0.9 of what two processes do", 0.9),
    ]
    for column, measured, what, least in aims:
        times = [row[column] for row in measured if column in row]
        if times:
            found.append(verdict(what, f"{min(times):.2f} to {max(times):.2f} times", min(times) >= least))
    return found
