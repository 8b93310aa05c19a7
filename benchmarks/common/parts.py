"""A benchmark in parts: its options, and tables printed and stored as they are produced."""

from __future__ import annotations

import argparse
import datetime as dt
import os
from importlib import import_module
from pathlib import Path

from common.measure import BENCHMARKS, ENVIRONMENT, machine
from common.report import Results, describe

ELSEWHERE = "measured on another machine:"


def main(name, parts, description, **flags):
    """Run the benchmark `name` with the options of the command line.

    A part is a module of the room `name`, or several that share one: ``table5-10`` is in ``table5``. Its
    ``run(options)`` yields tables, an unfinished one again when it has more rows; `options.part` is its name.
    `flags` are further options, with their help; `only`, the text in the titles of what is run, takes a value.
    """
    os.environ.update(ENVIRONMENT)  # before the part imports numpy
    options = parser(description, parts, flags).parse_args()
    if options.repeat is None:
        options.repeat = 1 if options.quick else 5
    options.machine = machine()
    print(describe(options.machine), "\n", flush=True)
    options.kept = Results(options.output, name)
    for part in parts if options.part == "all" else [options.part]:
        options.part = part
        run_part(import_module(f"{name}.{part.partition('-')[0]}"), options)


def parser(description, parts, flags):
    """The options that all benchmarks have, and the flags of one."""
    options = argparse.ArgumentParser(description=description.split("\n")[0])
    options.add_argument("--part", choices=[*parts, "all"], default="all")
    options.add_argument("--quick", action="store_true", help="a trial on little data; nothing is stored")
    options.add_argument("--repeat", type=int, metavar="N", help="runs per timing, best of N (5; with --quick 1)")
    options.add_argument(
        "--output",
        type=Path,
        default=BENCHMARKS / "results",
        metavar="DIR",
        help="where results are stored",
    )
    for flag, text in flags.items():
        takes = {"default": "", "metavar": "TEXT"} if flag == "only" else {"action": "store_true"}
        options.add_argument(f"--{flag}", **takes, help=text)
    return options


def run_part(module, options):
    """Print and store the tables of a part as they are produced; old ones are removed after the last of a whole run."""
    part = options.part
    before = options.kept.parts.get(part)
    kept = {table.title: elsewhere(table, before, options.machine) for table in options.kept.tables(part)}
    made = {}
    about = {
        "machine": options.machine,
        "date": dt.date.today().isoformat(),
        "load_before": os.getloadavg()[0],
    }
    for table in module.run(options):
        print(table.text(), flush=True)
        kept[table.title] = made[table.title] = table
        if not options.quick:
            options.kept.keep(part, list(kept.values()), **about)
    if not options.quick:
        whole = kept if getattr(options, "only", "") else made
        options.kept.keep(part, list(whole.values()), **about, load_after=os.getloadavg()[0])


def elsewhere(table, about, machine):
    """A kept table, with a note if another machine has made it."""
    if about["machine"]["cpu"] != machine["cpu"] and not any(note.startswith(ELSEWHERE) for note in table.notes):
        table.notes.append(f"{ELSEWHERE} {describe(about['machine'])} Run on {about['date']}.")
    return table
