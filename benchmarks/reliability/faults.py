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
    rows = []
    for seed in SEEDS:
        command = [sys.executable, str(BENCHMARKS.parent / "tests" / "faults" / "campaign.py"), "--seed", str(seed)]
        command += ["--count", str(QUICK if options.quick else COUNT)]
        printed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        rows.append(row_of(printed.splitlines()[-1]) | {"seed": seed})
    yield Table("Kills and write faults", COLUMNS, rows, ABOUT)


def row_of(line):
    """A row of the last line that the campaign printed."""
    trials, kills, writes, failures = (
        int(re.search(rf"(\d+) {what}", line)[1]) for what in ("trials", "kills", "trainings with write", "failures")
    )
    return {"trials": trials, "kills": kills, "writes": writes, "failures": failures, "counts": line.split("; ")[1]}


ABOUT = notes("""Each trial trains in processes of its own, of which the first ones meet a fault and the last one none.
A failure is a model that is not, bit for bit, that of a training without faults, a file that is not whole, an older
checkpoint than before, or a temporary file that is left but by a kill.""")
