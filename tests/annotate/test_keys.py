"""The table of keys in the documentation is the page's own, and names the keys that the page hears."""

import re
from importlib.resources import files
from pathlib import Path

import pytest

DOCUMENT = Path(__file__).parents[2] / "docs" / "annotate.md"
NAMES = {"← →": "Arrow", "↑ ↓": "Arrow", "Shift Enter": "Enter", "Space": " "}


@pytest.fixture
def script():
    return (files("structsvm.annotate") / "page" / "page.js").read_text(encoding="utf-8")


@pytest.fixture
def rows(script):
    table = re.search(r"const KEY_TABLE = \[\n(.*?)\n\];", script, re.DOTALL)[1]
    found = [tuple(re.findall(r'"([^"]*)"', line)) for line in table.splitlines()]
    assert len(found) > 10 and {len(row) for row in found} == {3}
    return found


def test_the_documented_table_is_that_of_the_page(rows):
    section = DOCUMENT.read_text(encoding="utf-8").split("\n## Keys\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    assert [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines[2:]] == rows


def test_the_page_hears_the_keys_of_its_table(script, rows):
    """Each key stands in the function that hears keys, and each key there stands in the table."""
    heard = re.search(r"\nfunction pressed\(event\) \{\n(.*?)\n\}\n", script, re.DOTALL)[1]
    plain = set(re.findall(r"(\w): ", re.search(r"const plain = \{(.*?)\}", heard)[1]))
    compared = set(re.findall(r'(?:key|name) === "([^"]+)"', heard.split("const plain")[1]))
    compared |= set(re.findall(r'key\.startsWith\("(\w+)"\)', heard))
    assert "key in LEAPS" in heard
    compared |= set(re.findall(r"(\w+): -?\w+", re.search(r"const LEAPS = \{(.*?)\}", script)[1]))
    labels = {"1 to 9, then letters", "Alt label", "Shift with these"}
    keys = [key.replace("Page ", "Page") for row, _, _ in rows if row not in labels for key in row.split(", ")]
    shown = {NAMES.get(key, key) for key in keys}
    # s stands in a comparison as well: after it comes the next text. Delete is another name of Backspace.
    assert (plain | compared) - {"Delete"} == shown
    assert "event.altKey" in heard and "KEYS.includes" in heard
    assert {of for _, _, of in rows} == {"both", "spans", "one label"}
