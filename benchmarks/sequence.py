"""Label sequences: the thesis's tables, other programs, the targets, and scaling.

    python benchmarks/sequence.py [--part tables|peers|targets|scaling|all] [--quick] [--repeat N] [--fresh]

Prints tables and keeps them in benchmarks/results/sequence.json and sequence.md. The data come from
`structsvm.datasets`; the environment variable STRUCTSVM_DATA names their folder.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
from pathlib import Path

from _measure import ENVIRONMENT, machine
from _report import Results, describe

os.environ.update(ENVIRONMENT)  # before numpy is imported

import _sequence_peers
import _sequence_scaling
import _sequence_tables
import _sequence_targets

PARTS = {
    "tables": _sequence_tables,
    "peers": _sequence_peers,
    "targets": _sequence_targets,
    "scaling": _sequence_scaling,
}


def main():
    options = arguments()
    options.machine = machine()
    print(describe(options.machine), "\n", flush=True)
    options.kept = Results(options.output, "sequence")
    for part in PARTS if options.part == "all" else [options.part]:
        run(part, options)


def run(part, options):
    """Print the tables of a part as they come, and keep them; until the last one has come, old ones stay."""
    old, tables = options.kept.tables(part), []
    about = {
        "machine": options.machine,
        "date": dt.date.today().isoformat(),
        "load_before": os.getloadavg()[0],
    }
    for table in PARTS[part].run(options):
        print(table.text(), flush=True)
        tables.append(table)
        if not options.quick:
            titles = {t.title for t in tables}
            options.kept.keep(part, tables + [t for t in old if t.title not in titles], **about)
    if not options.quick:
        options.kept.keep(part, tables, **about, load_after=os.getloadavg()[0])


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--part", choices=[*PARTS, "all"], default="all")
    parser.add_argument("--quick", action="store_true", help="a trial on little data; nothing is kept")
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="runs of what is timed as best of N (5)")
    parser.add_argument("--fresh", action="store_true", help="run the other programs again, do not reuse their results")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent / "results",
        metavar="DIR",
        help="where results are kept",
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
