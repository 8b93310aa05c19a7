"""A benchmark in parts: its options, and tables printed and stored as they are produced."""

from __future__ import annotations

import argparse
import datetime as dt
import os
import re
import sys
from hashlib import sha256
from importlib import import_module
from pathlib import Path

from common.code import Code, Record
from common.measure import BENCHMARKS, ENVIRONMENT, machine
from common.report import Results, Table, describe

ELSEWHERE = "measured on another machine:"
# Headings of columns of time or memory, and of their ratios: what another run on the same code may change.
COST = re.compile(
    r"\b(CPU|QP|trainings|ns|us|ms|s|seconds|microseconds|time|times|faster|fast|speed-up|overhead|exponent|floor|ratio|memory|MB)"
    r"\b|[/x] (s|SVC|ours|V|floor|best|1 thread)\b|/s\b|tok/s|requests"
)


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
    differ = []
    for part in parts if options.part == "all" else [options.part]:
        options.part = part
        module = import_module(f"{name}.{part.partition('-')[0]}")
        if options.confirm:
            differ += confirm_part(module, options)
        else:
            run_part(module, options)
    sys.exit("\n".join(differ) or None)


def parser(description, parts, flags):
    """The options that all benchmarks have, and the flags of one."""
    options = argparse.ArgumentParser(description=description.split("\n")[0])
    options.add_argument("--part", choices=[*parts, "all"], default="all")
    options.add_argument("--quick", action="store_true", help="a trial on little data; nothing is stored")
    options.add_argument(
        "--confirm",
        action="store_true",
        help="store no tables: what is kept is true of today's code if figures, seconds aside, are equal; with --quick "
        "those of the trial that was kept by the first --quick --confirm after a run",
    )
    options.add_argument("--repeat", type=int, metavar="N", help="runs per timing, best of N (5; with --quick 1)")
    options.add_argument(
        "--output", type=Path, default=BENCHMARKS / "results", metavar="DIR", help="where results are stored"
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
    about = {"machine": options.machine, "date": dt.date.today().isoformat(), "load_before": os.getloadavg()[0]}
    for table in printed(module.run(options)):
        kept[table.title] = made[table.title] = table
        if not options.quick:
            options.kept.keep(part, list(kept.values()), **about)
    if not options.quick:
        whole = kept if getattr(options, "only", "") else made
        options.kept.keep(part, list(whole.values()), **about, load_after=os.getloadavg()[0])
        if whole is made:
            name = options.kept.json.stem
            Record(options.output).keep(f"{name}/{part}", Code(BENCHMARKS.parent).measured(name, part))


def printed(tables):
    for table in tables:
        print(table.text(), flush=True)
        yield table


def confirm_part(module, options):
    """Compare a run's figures with the kept ones; store that these are true of today's code, or return what differs.

    With `--quick` they are a trial's; the first, if the code is still the one of the kept tables, is stored.
    """
    name, part, record = options.kept.json.stem, options.part, Record(options.output)
    if part not in options.kept.parts:
        return [f"{name}/{part}: nothing is kept; run it without --confirm"]
    measured, entry = Code(BENCHMARKS.parent).measured(name, part), dict(record.parts.get(f"{name}/{part}", {}))
    before = entry.pop("trial", None) if options.quick else figures(options.kept.tables(part))
    if before is None and record.changed(f"{name}/{part}", options.kept.parts[part]["date"], measured):
        return [f"{name}/{part}: its code has changed and no trial is kept; run it without --quick"]
    now = figures(printed(module.run(options)))
    differ = [title for title in now if before is not None and now[title] != before.get(title)]
    if differ:
        return [f"{name}/{part}: other figures than kept in {title!r}" for title in differ]
    trial = now if options.quick else entry.get("trial")
    record.keep(f"{name}/{part}", measured, **({} if trial is None else {"trial": trial}))
    return []


def figures(tables):
    """Digests of the cells of tables by title, columns of time and memory aside."""
    found = {}
    for table in tables:
        rest = {key: column for key, column in table.columns.items() if not COST.search(column[0])}
        cells = Table(table.title, rest, table.rows).cells()
        found[table.title] = sha256(repr(cells).encode()).hexdigest()[:8]
    return found


def elsewhere(table, about, machine):
    """A kept table, with a note if another machine has made it."""
    if about["machine"]["cpu"] != machine["cpu"] and not any(note.startswith(ELSEWHERE) for note in table.notes):
        table.notes.append(f"{ELSEWHERE} {describe(about['machine'])} Run on {about['date']}.")
    return table
