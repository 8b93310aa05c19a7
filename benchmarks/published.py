"""The tables of README and docs, made from the kept results, so that a number stands in one place.

A page marks where a table goes, and which columns of which kept table it shows; all rows are shown::

    <!-- results sequence/peers: CoNLL-2000, crf++ | who, cpu, f1 -->
    <!-- results end -->

The title is given by its beginning. ``<!-- results defaults: summary -->`` is a row per table of `defaults.py`, and
``<!-- results runs -->`` a row per kept part of which the page shows something: command, date and processor;
``<!-- results runs: all -->`` of all of them.

A decimal fraction in the text counts as measured, and so does a number of milliseconds or the like: it must be a number
of the tables that its page shows, or, on a line that names tables (`sequence/peers: CoNLL-2000`), of those. What is
none (a parameter, a number of others) stands in backquotes, as a reference (section 5.3), in brackets as what the paper
or the thesis has, or in a row's first cell.

Run it: ``python benchmarks/published.py`` writes the pages again; with ``--check`` it names those that differ. It names
numbers that no table has in any case, and then fails. ``--check`` names kept parts as well that are older than the
code that they measure (`common/code.py`), with the last change of its files; these are no failure: run them again, or
``python benchmarks/NAME.py --part PART --confirm``.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from common.code import stale as stale_parts
from common.report import Results, Table

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
APART = {"benchmarks", "gallery", "project", "reference", "theory"}  # made by the site's build, or formulas
WRITTEN = (page for page in sorted(DOCS.rglob("*.md")) if page.relative_to(DOCS).parts[0] not in APART)
PAGES = [ROOT / "README.md", *WRITTEN]
RUNS, ALL_RUNS = "runs", "runs: all"
BLOCK = re.compile(r"^<!-- results (.+?) -->\n.*?^<!-- results end -->$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"`(\w+)/([\w-]+): ([^`]+)`")
NUMBERS = r"\d+\.\d+(?:(?:,| and| to) \d+\.\d+)*"
REFERENCE = rf"(?i:sections?|equations?|tables?|figures?|python|version) {NUMBERS}"
NOT_MEASURED = re.compile(rf"`[^`]*`|^\|[^|]*\||\([^()]*\b(?:thesis|papers?)\b[^()]*\)|{REFERENCE}")
TIME = r"ns|µs|us|ms|nanoseconds|microseconds|milliseconds|CPU s\b|CPU seconds"
FRACTION = re.compile(rf"(?<![\w.])(?:\d+\.\d+(?![\w.]*\d)|\d+(?= (?:{TIME})\b))")


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--check", action="store_true", help="write nothing; fail if a page differs from the results")
    check = options.parse_args().check
    stale = [page for page in PAGES if renewed(page.read_text(encoding="utf-8")) != page.read_text(encoding="utf-8")]
    for page in stale:
        print(f"{page.relative_to(ROOT)} differs from the kept results" + ("" if check else ": written again"))
        if not check:
            page.write_text(renewed(page.read_text(encoding="utf-8")), encoding="utf-8")
    for sentence in stale_parts(ROOT, dates()) if check else ():
        print(sentence)
    strays = [(page, fraction) for page in PAGES for fraction in unsupported(page.read_text(encoding="utf-8"))]
    for page, fraction in strays:
        print(f"{page.relative_to(ROOT)}: {fraction} is in no kept result that it names")
    return 1 if strays or (check and stale) else 0


def dates():
    """The dates of all kept parts, by the names of benchmark and part."""
    results = [Results(path.parent, path.stem) for path in sorted((ROOT / "benchmarks" / "results").glob("*.md"))]
    return {(kept.json.stem, part): about["date"] for kept in results for part, about in kept.parts.items()}


def unsupported(text):
    """The measured numbers in a page's text that none of the tables behind it has."""
    shown = [table for mark in BLOCK.findall(text) for table in tables_behind(mark)]
    found = []
    for line in CODE.sub("", BLOCK.sub("", text)).splitlines():
        fractions = FRACTION.findall(NOT_MEASURED.sub("", line))
        named = [table for name, part, title in NAMED.findall(line) for table in kept(name, part, title)]
        known = values_of(named or shown) if fractions else []
        for fraction in fractions:
            half = 0.5001 * 10.0 ** -len(fraction.partition(".")[2])
            if not any(abs(value - float(fraction)) <= half for value in known):
                found.append(fraction)
    return found


def tables_behind(mark):
    """The kept tables of which a mark shows something."""
    if mark in (RUNS, ALL_RUNS):
        return []
    source, _, rest = mark.partition(": ")
    name, _, part = source.partition("/")
    return kept(name, part, "" if rest == "summary" else rest.partition(" | ")[0])


def kept(name, part, title):
    """The kept tables of a part, or of all, whose titles begin so."""
    results = Results(ROOT / "benchmarks" / "results", name)
    return [t for p in ([part] if part else results.parts) for t in results.tables(p) if t.title.startswith(title)]


def values_of(tables):
    """All numbers of tables, those in their texts too."""
    cells = [cell for table in tables for row in table.rows for cell in row.values()]
    texts = " ".join([*(cell for cell in cells if isinstance(cell, str)), *(note for t in tables for note in t.notes)])
    numbers = [cell for cell in cells if isinstance(cell, (int, float))]
    return [abs(number) for number in numbers] + [float(number) for number in re.findall(r"\d+\.\d+", texts)]


def renewed(text):
    """A page with its tables as the kept results have them now."""

    def block(found):
        if found[1] == ALL_RUNS:
            table = all_runs()
        else:
            table = runs(BLOCK.findall(text)) if found[1] == RUNS else table_of(found[1])
        return f"<!-- results {found[1]} -->\n{table}\n<!-- results end -->"

    return BLOCK.sub(block, text)


def all_runs():
    """The markdown of a table of all kept parts."""
    columns = {"name": ("benchmark", ""), "part": ("part", ""), "date": ("run on", ""), "cpu": ("processor", "")}
    rows = []
    for name, part in dates():
        about = Results(ROOT / "benchmarks" / "results", name).parts[part]
        rows.append({"name": name, "part": part, "date": about["date"], "cpu": about["machine"]["cpu"]})
    return Table("", columns, [row for row in rows if row["name"] != "history"]).grid()


def runs(marks):
    """The markdown of a table of the kept parts behind the marks of a page."""
    columns = {"command": ("command", ""), "date": ("run on", ""), "cpu": ("processor", "")}
    rows = []
    for source in dict.fromkeys(mark.partition(": ")[0] for mark in marks if mark != RUNS):
        name, _, part = source.partition("/")
        about = Results(ROOT / "benchmarks" / "results", name).parts[part]
        command = f"`python benchmarks/{name}.py --part {part}`"
        rows.append({"command": command, "date": about["date"], "cpu": about["machine"]["cpu"]})
    return Table("", columns, rows).grid()


def table_of(mark):
    """The markdown of the table that a mark asks for. Raises ValueError if there is none, or no such column."""
    source, _, rest = mark.partition(": ")
    if rest == "summary":
        return summary(Results(ROOT / "benchmarks" / "results", source)).grid()
    fitting = tables_behind(mark)
    if len(fitting) != 1:
        titles = [table.title for table in tables_behind(source)]
        raise ValueError(f"{mark!r} fits {len(fitting)} tables of {source}; its titles are {titles}")
    table = fitting[0]
    columns = rest.partition(" | ")[2].split(", ")
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise ValueError(
            f"{mark!r}: the table has no column {', '.join(missing)}; its columns are {list(table.columns)}"
        )
    return Table(table.title, {column: table.columns[column] for column in columns}, table.rows).grid()


def summary(results):
    """Estimators as they come, each beside the best of the others: a row per table."""
    columns = {
        "task": ["as it comes", ""],
        "score": ["score %", ".2f"],
        "spread": ["±", ".2f"],
        "cpu": ["CPU s", ".2f"],
        "total": ["with the choice", ".2f"],
        "peer": ["the best of the others", ""],
        "peer_score": ["score %", ".2f"],
        "peer_spread": ["±", ".2f"],
        "peer_cpu": ["CPU s", ".2f"],
        "peer_total": ["with the grid", ".2f"],
    }
    rows = []
    tables = [table for part in results.parts for table in results.tables(part)]
    for table in (table for table in tables if {"method", "score"} <= table.columns.keys()):
        ours = [row for row in table.rows if row["method"] == "structsvm"]
        others = [row for row in table.rows if not row["method"].startswith("structsvm")]
        if ours and others:
            best = max(others, key=lambda row: row["score"])
            row = {"task": table.title, "peer": best["method"]}
            for key in ("score", "spread", "cpu", "total"):
                row |= {key: ours[0].get(key), f"peer_{key}": best.get(key)}
            rows.append(row)
    return Table("", columns, rows)


if __name__ == "__main__":
    sys.exit(main())
