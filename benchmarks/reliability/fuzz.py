"""Mutants of every kind of file that the project reads."""

from __future__ import annotations

import re
import subprocess
import sys

from common.measure import BENCHMARKS
from common.report import Table, notes

MODELS = {"model": 1_000_000, "resume": 30_000, "checkpoint": 30_000}
SLOW_TEXTS = dict.fromkeys(
    ["grammar", "trees", "columns", "conllu", "partial", "questions", "queries", "graphs"], 200_000
)
TEXTS = dict.fromkeys(
    [
        "matrix",
        "alignments",
        "meanings",
        "documents",
        "bags",
        "svmlight",
        "taxonomy",
        "templates",
        "pieces",
        "many",
        "sizes",
    ],
    700_000,
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
    runs, rows = [(kind, SEED, count, "") for kind, count in (MODELS | TEXTS | SLOW_TEXTS).items()], []
    if options.only:
        runs = [(*one.split(":"), "")[:4] for one in options.only.split(",")]
        rows = [row for table in options.kept.tables(options.part) for row in table.rows]
    for kind, seed, count, of in runs:
        command = [sys.executable, "-P", str(BENCHMARKS.parent / "tests" / "fuzz"), "--of", of]
        command += ["--kind", kind, "--seed", str(seed), "--count", str(QUICK if options.quick else count)]
        printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout
        print(*(line for line in printed.splitlines() if line.startswith("  ")), sep="\n", flush=True)
        rows += [row | {"kind": f"{row['kind']}, {of}" if of else row["kind"]} for row in rows_of(printed)]
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
    texts = sum(row["mutants"] for row in rows if row["kind"].split(",")[0] not in MODELS)
    total = notes(f"{texts:,} mutants of texts, {sum(row['mutants'] for row in rows) - texts:,} of model files.")
    return Table("Mutants of files", COLUMNS, rows, total + ABOUT)


ABOUT = notes("""A fault is a crash, more than 10 CPU seconds, more than 4 GB, or an exception that is not documented.
Model files have right checksums, but for those whose damage is the mutation. "model" is loaded and predicts, "resume"
goes on training from the state in the file, "checkpoint" is resumed.

Seeds 1600 and 1700: before the log loss and C="auto" came in; 1 and 2100: commit f8b9cd8 or before. The three of seed
1600 are errors of the mutator itself, on a header that it had emptied, mended since. Those of checkpoints are an
OracleError at the next certificate, where a multiplier that was changed to another possible one brings the dual above
the primal: found, and laid to the oracle alone; the text now names the file, too, and docs say so.

Seed 2401: the code after commit 5f11f86, with models and checkpoints of labels known in part, weighted labels, sums of
losses, dependency and hybrid trees. Its two faults: a sentence of 2,003 words, which hybrid trees now refuse, and the
ValueError of scores that overflow, documented, which a checkpoint of huge weights led to.

Seed 2500: commit 155ce84 and, from the first fifth on, the mends up to dd1f646: with machines of pairs of classes,
lexicons, parsers of words and tags, trees known in part, LatentSVM, the best candidate of a bag, and files of columns
read by pieces (each must be read, or refused in the same words, as the whole is). Before it, the new kind found that
pieces took other white space for blank than the whole; mended, not counted.

Seed 3100: model files of the structures that have come in since then (segments, graphs, sets of labels, concepts,
rankings, losses of a sample; after the comma, what was mutated alone), rankings, graphs and alignments of many
sequences, and some of each other kind. Its three faults: two alignments of 2,000 sequences, all of whose pairs were
read, which now have a bound; and the ValueError of a network that overflows, documented, which a checkpoint of huge
weights led to. Before it, the new kinds found what was mended, and is not counted: a Clustal file of a mere header,
read for ever; what else Biopython raises; a temperature in the file of a model without probabilities. Seed 3101: after
those mends.""")
