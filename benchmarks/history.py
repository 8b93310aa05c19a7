"""Results over the versions: what `defaults.py` had measured when each version was made, from the repository's history.

Seconds of different processors cannot be compared, so times are multiples of ours that were measured beside the others.

Run it in a checkout with its history: ``python benchmarks/history.py``. It stores `results/history.json`.
"""

import datetime as dt
import json
import subprocess
from pathlib import Path

from common.measure import machine
from common.report import Results, Table
from published import summary

ROOT = Path(__file__).parents[1]
KEPT = "benchmarks/results/defaults.json"
# The last kept results before a version was made.
VERSIONS = {"0.1": "8ada8168~", "0.2": "61a9a4eb", "0.3": "HEAD"}


class Past:
    """The results of a revision, as `Results` has those of now."""

    def __init__(self, revision):
        command = ["git", "-C", str(ROOT), "show", f"{revision}:{KEPT}"]
        self.parts = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)

    def tables(self, part):
        return [Table(**table) for table in self.parts[part]["tables"]]


def main():
    rows = {
        version: {row["task"]: row for row in summary(Past(revision)).rows} for version, revision in VERSIONS.items()
    }
    tables = [scores(rows), times(rows)]
    Results(ROOT / "benchmarks" / "results", "history").keep(
        "versions", tables, machine=machine(), date=dt.date.today().isoformat()
    )
    for table in tables:
        print(table.text())


def scores(rows):
    """The scores of estimators as they come, and of the best other program beside the last of them."""
    versions = {version: [version, ".2f"] for version in VERSIONS}
    columns = {"task": ["as it comes", ""], **versions, "best": ["the best of the others", ".2f"], "who": ["who", ""]}
    found = [
        {"task": task, "best": last["peer_score"], "who": last["peer"]}
        | {version: of_version[task]["score"] for version, of_version in rows.items() if task in of_version}
        for task, last in rows["0.3"].items()
    ]
    return Table("Scores in percent, by version", columns, found)


def times(rows):
    """CPU seconds of the best other program of a run, as a multiple of ours in that run."""
    columns = {"task": ["as it comes", ""]} | {version: [version, ".1f"] for version in VERSIONS}
    found = [
        {"task": task}
        | {
            version: of_version[task]["peer_cpu"] / of_version[task]["cpu"]
            for version, of_version in rows.items()
            if task in of_version and of_version[task]["cpu"] and of_version[task]["peer_cpu"]
        }
        for task in rows["0.3"]
    ]
    return Table(
        "Training time of the best of the others, as a multiple of ours", columns, [r for r in found if len(r) > 1]
    )


if __name__ == "__main__":
    main()
