"""Kills and write errors while models are trained with checkpoints and saved."""

from __future__ import annotations

import re
import subprocess
import sys

from common.measure import BENCHMARKS
from common.report import Table, notes

SEEDS, COUNT, QUICK = (1, 2), 700, 16

COLUMNS = {
    "seed": ("seed", "d"),
    "trials": ("trials", "d"),
    "kills": ("kills", "d"),
    "writes": ("write faults", "d"),
    "failures": ("failures", "d"),
    "counts": ("by kind", ""),
}


def run(options):
    runs, rows = [(seed, COUNT, "") for seed in SEEDS], []
    if options.only:
        runs = [(*options.only.split(":", 2), "")[:3]]
        rows = [row for table in options.kept.tables(options.part) for row in table.rows]
    for seed, count, trainees in runs:
        command = [sys.executable, str(BENCHMARKS.parent / "tests" / "faults" / "campaign.py"), "--seed", str(seed)]
        command += ["--count", str(QUICK if options.quick else count)]
        command += [word for name in filter(None, trainees.split(";")) for word in ("--only", name)]
        printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout
        rows.append(row_of(printed.splitlines()[-1]) | {"seed": int(seed)})
        yield Table("Kills and write faults", COLUMNS, rows, ABOUT)


def row_of(line):
    """A row of the last line that the campaign printed."""
    trials, kills, writes, failures = (
        int(re.search(rf"(\d+) {what}", line)[1]) for what in ("trials", "kills", "trainings with write", "failures")
    )
    return {"trials": trials, "kills": kills, "writes": writes, "failures": failures, "counts": line.split("; ")[1]}


ABOUT = notes("""Each trial trains in processes of its own, of which the first ones meet a fault and the last one none.
A failure is a model that is not, bit for bit, that of a training without faults, a file that is not whole, an older
checkpoint than before, or a temporary file that is left but by a kill.

Seed 3: with LatentSVM's rounds, a sum of two losses, dependency trees and hybrid trees.

Seed 4: with machines of pairs of classes.

Seed 5: segments, graphs (junction trees, cuts, the relaxation, expansion), sets of labels, concepts, rankings and
losses of a sample.""")
