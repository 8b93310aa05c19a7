"""Kept results and the code that they measure: what makes a table stale, and how it is said to be true still."""

import datetime as dt
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[1]
FILES = {
    "structsvm/__init__.py": "from structsvm.solvers import Solver\n",
    "structsvm/solvers/__init__.py": "from structsvm.solvers.one import Solver\n",
    "structsvm/solvers/one.py": '''"""A solver."""

from typing import TYPE_CHECKING

from structsvm.dual._steps import step
from structsvm.features.text import words

if TYPE_CHECKING:
    from structsvm.oracles.other import Oracle

LEAST: int = 3  # at least


class Solver:
    """Solve."""

    def solve(self, n: int, oracle: "Oracle") -> int:
        if n < 0:
            raise ValueError("n is negative")
        return step(n) + LEAST
''',
    "structsvm/dual/_steps.pyx": '''"""Steps."""
cdef extern from "steps.h":
    int up(int n)

def step(n):
    return up(n)  # one
''',
    "structsvm/dual/steps.h": "/* Steps. */\nstatic int up(int n) { return n + 1; } // one\n",
    "structsvm/dual/other.py": "OTHER = 1\n",
    "structsvm/features/text.py": "def words(text):\n    return text.split()\n",
    "oracles/other.py": "class Oracle:\n    pass\n",
    "benchmarks/thing/part.py": "from structsvm import Solver, oracles\n\nORACLE = oracles.Oracle\n",
    "oracles/__init__.py": "from structsvm.oracles.other import Oracle\n",
}


@pytest.fixture
def code(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    from common import code

    return code


@pytest.fixture
def repository(tmp_path):
    """A repository with a part that measures a solver and an oracle."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "benchmarks" / "results").mkdir()
    return tmp_path


def keep(code, root, date="2026-01-01", **entry):
    record = code.Record(root / "benchmarks" / "results")
    record.keep("thing/part", code.Code(root).measured("thing", "part-2"), **entry)
    return code.stale(root, {("thing", "part"): date})


def test_what_a_part_measures(code, repository):
    found = code.Code(repository).measured("thing", "part")
    assert list(found) == [
        "benchmarks/thing/part.py",
        "oracles/other.py",
        "structsvm/dual/_steps.pyx",
        "structsvm/dual/steps.h",
        "structsvm/solvers/one.py",
    ]


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("structsvm/solvers/one.py", "A solver.", "The solver."),
        ("structsvm/solvers/one.py", "    from structsvm.oracles.other", "    from structsvm.oracles.another"),
        ("structsvm/solvers/one.py", "  # at least", ""),
        ("structsvm/solvers/one.py", "LEAST: int = 3", "LEAST = 3"),
        ("structsvm/solvers/one.py", 'oracle: "Oracle") -> int', "oracle)"),
        ("structsvm/solvers/one.py", "n is negative", "n must be >= 0"),
        ("structsvm/solvers/one.py", "step(n) + LEAST", "(\n            step(n) + LEAST\n        )"),
        ("structsvm/dual/_steps.pyx", '"""Steps."""', '"""One\nstep."""'),
        ("structsvm/dual/_steps.pyx", "  # one", "  # one step"),
        ("structsvm/dual/steps.h", "/* Steps. */", "// Some steps."),
        ("structsvm/features/text.py", "split()", "split(' ')"),
        ("structsvm/dual/other.py", "OTHER = 1", "OTHER = 2"),
    ],
)
def test_a_mechanical_change_leaves_a_table_true(code, repository, path, old, new):
    keep(code, repository)
    changed(repository, path, old, new)
    assert list(code.stale(repository, {("thing", "part"): "2026-01-01"})) == []


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("structsvm/solvers/one.py", "LEAST: int = 3", "LEAST: int = 4"),
        ("structsvm/solvers/one.py", "n < 0", "n < 1"),
        ("structsvm/dual/_steps.pyx", "up(n)  #", "up(n) + 1  #"),
        ("structsvm/dual/steps.h", "n + 1", "n + 2"),
        ("oracles/other.py", "pass", "exact = True"),
        ("benchmarks/thing/part.py", "\n\n", "\n\nC = 1.0\n"),
    ],
)
def test_a_change_of_what_is_measured_is_named(code, repository, path, old, new):
    keep(code, repository)
    changed(repository, path, old, new)
    assert list(code.stale(repository, {("thing", "part"): "2026-01-01"})) == [
        f"thing/part of 2026-01-01 is older than the code that it measures: {path}"
    ]


def changed(repository, path, old, new):
    text = (repository / path).read_text(encoding="utf-8")
    assert old in text
    (repository / path).write_text(text.replace(old, new, 1), encoding="utf-8")


def test_the_last_change_is_dated(code, repository):
    keep(code, repository)
    changed(repository, "structsvm/dual/steps.h", "n + 1", "n + 2")
    git = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@b"]
    dates = {f"GIT_{who}_DATE": "2026-02-03T04:05" for who in ("AUTHOR", "COMMITTER")}
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "All"]):
        subprocess.run([*git, *command], env=os.environ | dates, check=True)
    assert list(code.stale(repository, {("thing", "part"): "2026-01-01"})) == [
        "thing/part of 2026-01-01 is older than the code that it measures: structsvm/dual/steps.h (2026-02-03)"
    ]


def test_results_newer_than_the_record_of_their_code(code, repository):
    keep(code, repository)
    tomorrow = (dt.date.today() + dt.timedelta(days=1)).isoformat()
    (sentence,) = code.stale(repository, {("thing", "part"): tomorrow})
    assert sentence.endswith("benchmarks/thing/part.py, oracles/other.py, structsvm/dual/_steps.pyx and 2 more")


class Part:
    """A part that measures an error and seconds."""

    def __init__(self, error=1.25, seconds=3.0):
        from common.report import Table

        columns = {"who": ("method", ""), "error": ("error %", ".2f"), "cpu": ("CPU s", ".1f")}
        self.table = Table("Errors", columns, [{"who": "ours", "error": error, "cpu": seconds}])

    def run(self, options):
        yield self.table


@pytest.fixture
def confirmed(code, repository, monkeypatch):
    """Whether `--confirm` finds figures as they are kept."""
    from common import parts, report

    monkeypatch.setattr(parts, "BENCHMARKS", repository / "benchmarks")
    folder = repository / "benchmarks" / "results"
    results = report.Results(folder, "thing")
    machine = {"cpu": "a", "cores": 1, "memory_gb": 1, "system": "b", "python": "3", "versions": {}}
    results.keep("part", [Part().table], date="2026-01-01", machine=machine)
    keep(code, repository)

    def confirm(part, **options):
        return parts.confirm_part(part, SimpleNamespace(kept=results, part="part", output=folder, **options))

    return confirm


def test_runs_side_by_side_store_what_they_find(code, repository):
    first, second = (code.Record(repository / "benchmarks" / "results") for _ in range(2))
    first.keep("thing/part", {"a": "0"})
    second.keep("thing/other", {"b": "1"})
    assert set(code.Record(repository / "benchmarks" / "results").parts) == {"thing/part", "thing/other"}


def test_equal_figures_confirm_a_table(code, repository, confirmed):
    changed(repository, "structsvm/dual/steps.h", "n + 1", "1 + n")
    kept = {("thing", "part"): "2026-01-01"}
    assert confirmed(Part(error=1.27), quick=False) == ["thing/part: other figures than kept in 'Errors'"]
    assert len(list(code.stale(repository, kept))) == 1
    assert confirmed(Part(error=1.251, seconds=5.0), quick=False) == []
    assert list(code.stale(repository, kept)) == []


def test_a_trial_confirms_a_table(code, repository, confirmed):
    kept = {("thing", "part"): "2026-01-01"}
    assert confirmed(Part(error=7.0), quick=True) == []
    changed(repository, "structsvm/dual/steps.h", "n + 1", "1 + n")
    assert confirmed(Part(error=7.1), quick=True) == ["thing/part: other figures than kept in 'Errors'"]
    assert len(list(code.stale(repository, kept))) == 1
    assert confirmed(Part(error=7.0, seconds=5.0), quick=True) == []
    assert list(code.stale(repository, kept)) == []


def test_a_trial_of_changed_code_confirms_nothing(code, repository, confirmed):
    changed(repository, "structsvm/dual/steps.h", "n + 1", "n + 2")
    assert confirmed(Part(), quick=True) == [
        "thing/part: its code has changed and no trial is kept; run it without --quick"
    ]
    assert len(list(code.stale(repository, {("thing", "part"): "2026-01-01"}))) == 1
