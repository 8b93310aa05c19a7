"""Mutants of every kind of file that the project reads."""

from __future__ import annotations

import re
import subprocess
import sys

from common.measure import BENCHMARKS
from common.report import Table, notes

# Mutants of each kind, in proportion to how fast they are read: some 70 CPU minutes.
FAST = ["matrix", "sizes", "bags", "meanings", "documents", "svmlight", "taxonomy"]
SLOW = ["trees", "templates", "pieces", "alignments", "queries", "many"]
SLOW += ["grammar", "conllu", "graphs", "questions", "columns"]
MODELS = {"model": 900_000, "resume": 55_000, "checkpoint": 55_000}
TEXTS = dict.fromkeys(FAST, 570_000) | dict.fromkeys(SLOW, 100_000) | {"partial": 30_000}
FOLDERS = {"tables": 30_000, "shards": 20_000}
PIECE = 150_000  # mutants of a process: what is lost where a campaign ends early
QUICK, SEED = 20, 5000

COLUMNS = {
    "kind": ("file", ""),
    "seed": ("seed", "d"),
    "commit": ("commit", ""),
    "mutants": ("mutants", ",d"),
    "accepted": ("read and used", ",d"),
    "refused": ("refused, as documented", ",d"),
    "faults": ("faults", "d"),
}


def run(options):
    """One campaign of one commit; what the kept rows have of it is not done again."""
    runs, rows, commit = [(kind, SEED, count, "") for kind, count in (TEXTS | MODELS | FOLDERS).items()], [], head()
    if not options.quick:
        rows = [row for table in options.kept.tables(options.part) for row in table.rows]
    if options.only:
        runs = [(*one.split(":"), "")[:4] for one in options.only.split(",")]
    else:
        rows = [row for row in rows if (row["seed"], row.get("commit")) == (SEED, commit)]
    for kind, seed, count, of in runs:
        name = {"kind": f"{kind}, {of}" if of else kind, "seed": int(seed), "commit": commit}
        found = next((row for row in rows if row.items() >= name.items()), None)
        if found is None:
            rows.append(found := name | dict.fromkeys(("mutants", "accepted", "refused", "faults"), 0))
        while found["mutants"] < (wanted := QUICK if options.quick else int(count)):
            first = found["mutants"]
            command = [sys.executable, "-P", str(BENCHMARKS.parent / "tests" / "fuzz"), "--kind", kind, "--of", of]
            command += ["--seed", str(seed), "--first", str(first), "--count", str(min(PIECE, wanted - first))]
            printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout
            print(*(line for line in printed.splitlines() if line.startswith("  ")), sep="\n", flush=True)
            for key, number in counts(printed).items():
                found[key] += number
            yield table(rows)


def head():
    """The commit that is checked out."""
    command = ["git", "-C", str(BENCHMARKS), "rev-parse", "--short=7", "HEAD"]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def counts(printed):
    """The numbers of what `tests/fuzz` printed of a kind."""
    found = re.search(r"^\w+: (\d+) mutants of seed \d+, \d+ per second: (.*)", printed, re.MULTILINE)
    if found is None:
        raise RuntimeError(f"the fuzzer has ended early: {printed!r}")
    outcomes = {name: int(count) for count, name in re.findall(r"(\d+) ([^,]+)", found[2])}
    refused = sum(count for name, count in outcomes.items() if "Error" in name)
    return {
        "mutants": int(found[1]),
        "accepted": sum(outcomes.values()) - refused,
        "refused": refused,
        "faults": int(found[1]) - sum(outcomes.values()),
    }


def table(rows):
    sums = notes(
        "\n\n".join(told(*one, rows) for one in dict.fromkeys((row["seed"], row.get("commit")) for row in rows))
    )
    return Table("Mutants of files", COLUMNS, rows, sums + ABOUT)


def told(seed, commit, rows):
    """The outcome of one campaign."""
    rows = [row for row in rows if (row["seed"], row.get("commit")) == (seed, commit)]
    kinds = [row["kind"].split(",")[0] for row in rows]
    texts, models, folders = (
        sum(row["mutants"] for row, kind in zip(rows, kinds, strict=True) if kind in some)
        for some in (TEXTS, MODELS, FOLDERS)
    )
    found = f"{texts:,} mutants of texts, {models:,} of model files, {folders:,} of tables and shards"
    return f"Seed {seed}, commit {commit}: {found}; {sum(row['faults'] for row in rows)} faults."


ABOUT = notes("""A fault is a crash, more than 10 CPU seconds, more than 4 GB, or an exception that is not documented.
Model files have right checksums, but for those whose damage is the mutation. "model" is loaded and predicts, "resume"
goes on training from the state in the file, "checkpoint" is resumed; "tables" are Parquet and Arrow files, "shards"
folders of encoded data that are trained on; the others are texts.

Each mutant is a function of seed, kind and its index, and can be repeated alone: `python tests/fuzz --kind KIND --seed
SEED --only INDEX`.""")
