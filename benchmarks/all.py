"""Everything that is measured, part by part: all tables and figures that README and docs are made from.

    python benchmarks/all.py [--quick] [--only TEXT] [--list]

Each part runs in a process of its own, as ``python benchmarks/NAME.py --part PART``, and stores its results; README and
docs are then written again (`published.py`). With --quick every part runs on little data, which takes under 20 minutes
of one processor, nothing is stored, and docs are only checked. The last table has the seconds of each part and what
failed; a part that needs a program or data that are not here fails, and the others go on. Exits with 1 if any failed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from runpy import run_path

from common.report import Table

HERE = Path(__file__).parent
COLUMNS = {"part": ("part", ""), "seconds": ("seconds", ".1f"), "cpu": ("CPU s", ".1f"), "status": ("", "")}


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--quick", action="store_true", help="little data; nothing is stored")
    options.add_argument("--only", default="", metavar="TEXT", help="only parts with this text in NAME/PART")
    options.add_argument("--list", action="store_true", help="print the parts, run none")
    options = options.parse_args()
    names = sorted(script.stem for script in HERE.glob("*.py") if (HERE / script.stem).is_dir())
    parts = [(name, part) for name in names for part in run_path(HERE / f"{name}.py")["PARTS"]]
    parts = [(name, part) for name, part in parts if options.only in f"{name}/{part}"]
    if options.list:
        print("\n".join(f"{name}/{part}" for name, part in parts))
        return 0
    quick = ["--quick"] if options.quick else []
    commands = {f"{name}/{part}": [f"{name}.py", "--part", part, *quick] for name, part in parts}
    commands["README and docs"] = ["published.py", *(["--check"] if options.quick else [])]
    table = Table("Parts", COLUMNS)
    for part, command in commands.items():
        print(f"== {part}", flush=True)
        table.rows.append({"part": part, **measured(command)})
    whole = {key: sum(row[key] for row in table.rows) for key in ("seconds", "cpu")}
    failed = sum(row["status"] != "" for row in table.rows)
    table.rows.append({"part": "all", **whole, "status": f"{failed} failed" if failed else ""})
    print(table.text())
    return 1 if failed else 0


def measured(command):
    """Run a script of this folder; return the seconds that it took, and how it failed, or ""."""
    begin, cpu = time.perf_counter(), children()
    done = subprocess.run(
        [sys.executable, HERE / command[0], *command[1:]], stderr=subprocess.PIPE, text=True, check=False
    )
    sys.stderr.write(done.stderr)
    last = (done.stderr.strip().splitlines() or ["no message"])[-1]
    status = f"failed ({done.returncode}): {last[:120]}" if done.returncode else ""
    return {"seconds": time.perf_counter() - begin, "cpu": children() - cpu, "status": status}


def children():
    """CPU seconds of the processes that have ended so far."""
    now = os.times()
    return now.children_user + now.children_system


if __name__ == "__main__":
    sys.exit(main())
