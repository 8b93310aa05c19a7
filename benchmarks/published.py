"""The tables of README and docs, made from the kept results, so that a number stands in one place.

A page marks where a table goes, and which columns of which kept table it shows; all rows are shown::

    <!-- results sequence/peers: CoNLL-2000, crf++ | who, cpu, f1 -->
    <!-- results end -->

The title is given by its beginning. ``<!-- results defaults: summary -->`` is a row per table of `defaults.py`.

Run it: ``python benchmarks/published.py`` writes the pages again; with ``--check`` it names those that differ.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from common.report import Results, Table

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^<!-- results (.+?) -->\n.*?^<!-- results end -->$", re.MULTILINE | re.DOTALL)


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--check", action="store_true", help="write nothing; fail if a page differs from the results")
    check = options.parse_args().check
    stale = [page for page in PAGES if renewed(page.read_text(encoding="utf-8")) != page.read_text(encoding="utf-8")]
    for page in stale:
        print(f"{page.relative_to(ROOT)} differs from the kept results" + ("" if check else ": written again"))
        if not check:
            page.write_text(renewed(page.read_text(encoding="utf-8")), encoding="utf-8")
    return 1 if check and stale else 0


def renewed(text):
    """A page with its tables as the kept results have them now."""
    return BLOCK.sub(lambda found: f"<!-- results {found[1]} -->\n{table_of(found[1])}\n<!-- results end -->", text)


def table_of(mark):
    """The markdown of the table that a mark asks for. Raises ValueError if there is none, or no such column."""
    source, _, rest = mark.partition(": ")
    if rest == "summary":
        return summary(Results(ROOT / "benchmarks" / "results", source)).grid()
    name, _, part = source.partition("/")
    title, _, columns = rest.partition(" | ")
    tables = Results(ROOT / "benchmarks" / "results", name).tables(part)
    fitting = [table for table in tables if table.title.startswith(title)]
    if len(fitting) != 1:
        raise ValueError(f"{mark!r} fits {len(fitting)} tables of {source}; its titles are {[t.title for t in tables]}")
    table = fitting[0]
    columns = columns.split(", ")
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
