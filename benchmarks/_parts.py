"""A benchmark in parts: its options, and tables printed and kept as they come."""

from __future__ import annotations

import argparse
import datetime as dt
import os
from pathlib import Path

from _measure import machine
from _report import Results, describe


def parser(description, parts):
    """The options that all benchmarks have."""
    options = argparse.ArgumentParser(description=description.split("\n")[0])
    options.add_argument("--part", choices=[*parts, "all"], default="all")
    options.add_argument("--quick", action="store_true", help="a trial on little data; nothing is kept")
    options.add_argument("--repeat", type=int, default=5, metavar="N", help="runs of what is timed as best of N (5)")
    options.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent / "results",
        metavar="DIR",
        help="where results are kept",
    )
    return options


def run(name, parts, options):
    """Run the parts that are asked for; `parts` has a module for each, whose ``run(options)`` yields tables."""
    options.machine = machine()
    print(describe(options.machine), "\n", flush=True)
    options.kept = Results(options.output, name)
    for part in parts if options.part == "all" else [options.part]:
        run_part(part, parts[part], options)


def run_part(part, module, options):
    """Print the tables of a part as they come, and keep them; until the last one has come, old ones stay."""
    old, tables = options.kept.tables(part), []
    about = {
        "machine": options.machine,
        "date": dt.date.today().isoformat(),
        "load_before": os.getloadavg()[0],
    }
    for table in module.run(options):
        print(table.text(), flush=True)
        tables.append(table)
        if not options.quick:
            titles = {t.title for t in tables}
            options.kept.keep(part, tables + [t for t in old if t.title not in titles], **about)
    if not options.quick:
        options.kept.keep(part, tables, **about, load_after=os.getloadavg()[0])
