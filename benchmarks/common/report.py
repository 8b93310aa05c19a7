"""Tables of measurements: printed as text, stored as JSON, shown as markdown."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field


@dataclass
class Table:
    """Rows of measurements.

    Attributes
    ----------
    title : str
    columns : dict of str to (str, str)
        Key in the rows -> heading and format ("" for text, else as in ``format(value, spec)``).
    rows : list of dict
        They may have keys without a column, and lack some that have one.
    notes : list of str
        What a reader needs to know.
    """

    title: str
    columns: dict
    rows: list = field(default_factory=list)
    notes: list = field(default_factory=list)

    def cells(self):
        """Headings and rows as strings."""
        body = [[show(row.get(key), spec) for key, (_, spec) in self.columns.items()] for row in self.rows]
        return [heading for heading, _ in self.columns.values()], body

    def text(self):
        head, body = self.cells()
        widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
        left = [spec == "" for _, spec in self.columns.values()]

        def line(cells):
            padded = [c.ljust(w) if is_left else c.rjust(w) for c, w, is_left in zip(cells, widths, left, strict=True)]
            return "  ".join(padded).rstrip()

        rule = "  ".join("-" * w for w in widths)
        return "\n".join([self.title, "", line(head), rule, *map(line, body), *[f"* {n}" for n in self.notes], ""])

    def grid(self):
        """The rows as a table of markdown."""
        head, body = self.cells()
        align = [":--" if spec == "" else "--:" for _, spec in self.columns.values()]
        return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, align, *body))

    def markdown(self):
        return "\n".join([f"### {self.title}", "", self.grid(), "", *[f"- {note}" for note in self.notes], ""])


def notes(text):
    """Notes for a table from a text: one per paragraph."""
    return [" ".join(paragraph.split()) for paragraph in text.strip().split("\n\n")]


def show(value, spec):
    """A value as text, empty for None and NaN. Text is unchanged, in a column of numbers too."""
    if value is None or value != value:
        return ""
    return str(value) if spec == "" or isinstance(value, str) else format(value, spec)


def verdict(what, found, is_met):
    """A note on a target: what it demands, what was found, and whether that meets it."""
    return f"target: {what}: {found}: {'met' if is_met else 'MISSED'}"


class Results:
    """The stored results: a JSON file, and a markdown page made from it."""

    def __init__(self, folder, name):
        self.json, self.page = folder / f"{name}.json", folder / f"{name}.md"
        self.parts = {}
        self.load()

    def load(self):
        if self.json.exists():
            self.parts = json.loads(self.json.read_text(encoding="utf-8"))

    def tables(self, part):
        """The stored tables of a part, none if it never ran."""
        return [Table(**table) for table in self.parts.get(part, {}).get("tables", [])]

    def keep(self, part, tables, **about):
        """Store the tables of a part, with the facts about the run, beside those that other runs have stored since."""
        self.load()
        self.parts[part] = about | {"tables": [asdict(table) for table in tables]}
        self.json.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.parts, indent=1, default=lambda value: value.tolist())
        self.json.write_text(text + "\n", encoding="utf-8")
        self.page.write_text(self.markdown(), encoding="utf-8")

    def markdown(self):
        lines = [f"# {self.json.stem}: measured", "", f"Made by `benchmarks/{self.json.stem}.py`; do not edit.", ""]
        for part, kept in self.parts.items():
            lines += [f"## {part}", "", describe(kept["machine"]) + f" Run on {kept['date']}.", ""]
            lines += [table.markdown() for table in self.tables(part)]
        return "\n".join(lines)


def describe(machine):
    """A machine in one sentence."""
    versions = ", ".join(f"{name} {v}" for name, v in machine["versions"].items() if v is not None)
    kernels = f", kernels for {machine['kernels']}" if "kernels" in machine else ""
    return (
        f"{machine['cpu']}, {machine['cores']} cores{kernels}, {machine['memory_gb']} GB, {machine['system']}; "
        f"Python {machine['python']}, {versions}."
    )
