"""README and docs say what the kept results say: their tables are made from them."""

import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[1]


def published(root):
    command = [sys.executable, "-P", str(root / "benchmarks" / "published.py"), "--check"]
    return subprocess.run(
        command, env={"PYTHONPATH": str(root / "benchmarks")}, capture_output=True, text=True, check=False
    )


@pytest.fixture
def copy(tmp_path):
    without = shutil.ignore_patterns("*.png", "code.json", "__pycache__")
    for folder in ("benchmarks", "docs"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=without)
    shutil.copy(ROOT / "README.md", tmp_path)
    return tmp_path


def test_pages_have_the_kept_numbers():
    done = published(ROOT)
    said = [line for line in done.stdout.splitlines() if " is older than the code that it measures: " not in line]
    assert (done.returncode, said, done.stderr) == (0, [], "")


def test_a_changed_number_is_found(copy):
    page = copy / "docs" / "measured" / "sequences.md"
    text = page.read_text(encoding="utf-8")
    assert text.count("| LaRank, exact | 93.31 |") == 1
    page.write_text(text.replace("| LaRank, exact | 93.31 |", "| LaRank, exact | 93.99 |"), encoding="utf-8")
    done = published(copy)
    assert done.returncode == 1 and done.stdout == "docs/measured/sequences.md differs from the kept results\n"


@pytest.mark.parametrize(
    ("page", "old", "new", "number"),
    [
        ("papers/thesis-tables", "left to right 6.7 % (5.75)", "left to right 6.8 % (5.75)", "6.8"),
        ("binary", "a step takes less than", "a step takes 1370 ns, less than", "1370"),
    ],
)
def test_a_number_in_the_text_that_no_table_has_is_found(copy, page, old, new, number):
    path = copy / "docs" / f"{page}.md"
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")
    done = published(copy)
    assert done.returncode == 1 and done.stdout == f"docs/{page}.md: {number} is in no kept result that it names\n"


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ("sequence/peers: No such table | who", "fits 0 tables of sequence/peers"),
        ("sequence/peers: CoNLL-2000, crf++ | who, speed", "the table has no column speed"),
    ],
)
def test_a_mark_that_leads_nowhere_is_an_error(copy, mark, said):
    with (copy / "README.md").open("a", encoding="utf-8") as page:
        page.write(f"\n<!-- results {mark} -->\n<!-- results end -->\n")
    done = published(copy)
    assert done.returncode == 1 and said in done.stderr


def test_measured_pages_say_when_and_where(copy):
    """Command, date and processor of each kept part of which they show something."""
    pages = sorted((copy / "docs" / "measured").glob("*.md"))
    assert pages and all("<!-- results runs -->" in page.read_text(encoding="utf-8") for page in pages)
    path = copy / "docs" / "measured" / "sequences.md"
    text = path.read_text(encoding="utf-8")
    part = re.search(r"<!-- results sequence/([\w-]+): ", text)[1]
    assert text.count(f"| `python benchmarks/sequence.py --part {part}` | 20") == 1
    path.write_text(text.replace(f"--part {part}` | 20", f"--part {part}` | 19"), encoding="utf-8")
    assert published(copy).stdout == "docs/measured/sequences.md differs from the kept results\n"


@pytest.mark.parametrize(("quick", "n"), [(True, 42), (False, 2537)])
def test_the_note_on_headers_has_the_number_taken(monkeypatch, quick, n):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    headers, taken = importlib.import_module("scale.headers"), []
    monkeypatch.setattr(headers, "run_module", lambda _, n, __: taken.append(n) or {"cpu": 1.0, "peak": 1.0})
    tables = list(headers.run(SimpleNamespace(quick=quick, only="")))
    assert taken == [n, n] and all(f"simulated: {n} sequences" in table.notes[0] for table in tables)


def test_the_versions_end_with_the_results_of_now(monkeypatch):
    """Until a version is made, its column has the kept results as they stand: `benchmarks/history.py` stores them."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    history, tables = importlib.import_module("history"), importlib.import_module("published")
    folder = ROOT / "benchmarks" / "results"
    version, revision = [*history.VERSIONS.items()][-1]
    now = {row["task"]: row["score"] for row in tables.summary(tables.Results(folder, "defaults")).rows}
    (scores, _) = tables.Results(folder, "history").tables("versions")
    assert revision != "HEAD" or {row["task"]: row.get(version) for row in scores.rows} == now
