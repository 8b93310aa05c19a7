"""Mutants of every kind of file that the project reads."""

from __future__ import annotations

import re
import subprocess
import sys

from common.measure import BENCHMARKS
from common.report import Table, notes

MODELS = {"model": 1_000_000, "resume": 30_000, "checkpoint": 30_000}
SLOW_TEXTS = dict.fromkeys(["grammar", "trees", "columns", "conllu", "partial", "questions"], 200_000)
TEXTS = dict.fromkeys(
    ["matrix", "alignments", "meanings", "documents", "bags", "svmlight", "taxonomy", "templates", "pieces"], 700_000
)
QUICK, SEED = 200, 1

COLUMNS = {
    "kind": ("file", ""),
    "seed": ("seed", "d"),
    "mutants": ("mutants", ",d"),
    "accepted": ("read and used", ",d"),
    "refused": ("refused, as documented", ",d"),
    "faults": ("faults", "d"),
}


def run(options):
    rows = []
    for kind, count in (MODELS | TEXTS | SLOW_TEXTS).items():
        command = [sys.executable, "-P", str(BENCHMARKS.parent / "tests" / "fuzz")]
        command += ["--kind", kind, "--seed", str(SEED), "--count", str(QUICK if options.quick else count)]
        rows += rows_of(subprocess.run(command, capture_output=True, text=True, check=False).stdout)
    yield table(rows)


def rows_of(printed):
    """Rows of what `tests/fuzz` printed."""
    rows = []
    for line in printed.splitlines():
        if found := re.match(r"(\w+): (\d+) mutants of seed (\d+), \d+ per second: (.*)", line):
            outcomes = {name: int(count) for count, name in re.findall(r"(\d+) ([^,]+)", found[4])}
            refused = sum(count for name, count in outcomes.items() if name.endswith("Error"))
            rows.append({
                "kind": found[1], "seed": int(found[3]), "mutants": int(found[2]), "refused": refused,
                "accepted": sum(outcomes.values()) - refused, "faults": int(found[2]) - sum(outcomes.values()),
            })  # fmt: skip
    return rows


def table(rows):
    texts = sum(row["mutants"] for row in rows if row["kind"] not in MODELS)
    total = notes(f"{texts:,} mutants of texts, {sum(row['mutants'] for row in rows) - texts:,} of model files.")
    return Table("Mutants of files", COLUMNS, rows, total + ABOUT)


ABOUT = notes("""A fault is a crash, more than 10 CPU seconds, more than 4 GB, or an exception that is not documented.
Model files have right checksums, but for those whose damage is the mutation. "model" is loaded and predicts, "resume"
goes on training from the state in the file, "checkpoint" is resumed.""")
