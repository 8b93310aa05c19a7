"""Weights as a page of tables: text, or HTML for notebooks, in the manner of eli5."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from structsvm.parameters import printable
from structsvm.tasks.common.inspection.weights import WeightTable

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence


@dataclass(frozen=True)
class WeightReport:
    """The heaviest features of each label, with the model's certificate.

    Attributes
    ----------
    table : WeightTable
    labels : list
        Those that are shown.
    k : int
        Features per label.
    heading : str
    """

    table: WeightTable
    labels: Sequence[Hashable]
    k: int
    heading: str

    def __str__(self) -> str:
        lines = [self.heading] if self.heading else []
        for label in self.labels:
            lines.append(f"\n{'' if label is None else printable(label)}".rstrip(" "))
            lines += [f"  {weight:+9.4f}  {printable(feature)}" for feature, weight in self.table.top(label, self.k)]
        lines += [f"\n{printable(a)} then {printable(b)}: {weight:+.4f}" for a, b, weight in self.top_transitions()]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def top_transitions(self) -> list[tuple[Hashable, Hashable, float]]:
        """The k heaviest transitions between labels that are shown: (before, after, weight)."""
        if self.table.transitions is None:
            return []
        places = [(k, label) for k, label in enumerate(self.table.labels) if label in self.labels]
        found = [(a, b, float(self.table.transitions[i, j])) for i, a in places for j, b in places]
        found.sort(key=lambda entry: -abs(entry[2]))
        return [entry for entry in found if entry[2] != 0.0][: self.k]

    def _repr_html_(self) -> str:
        """Tables side by side; green speaks for the label, red against it, the deeper the heavier."""
        tops = [("weight" if label is None else str(label), self.table.top(label, self.k)) for label in self.labels]
        moves = [(f"{a} then {b}", weight) for a, b, weight in self.top_transitions()]
        tops += [("transitions", moves)] if moves else []
        return (
            f"<div><p>{escape(self.heading)}</p>" + "".join(_html_table(name, rows) for name, rows in tops) + "</div>"
        )


def _html_table(name: str, rows: list[tuple[str, float]]) -> str:
    """A table of names and weights with coloured rows."""
    heaviest = max((abs(weight) for _, weight in rows), default=1.0)
    cells = "".join(
        f'<tr style="background-color: rgba({"0, 158, 115" if weight > 0.0 else "213, 94, 0"}, '
        f'{0.45 * abs(weight) / heaviest:.2f})"><td style="text-align: right">{weight:+.4f}</td>'
        f'<td style="text-align: left">{escape(printable(feature))}</td></tr>'
        for feature, weight in rows
    )
    head = f'<tr><th colspan="2" style="text-align: center">{escape(printable(name))}</th></tr>'
    return f'<table style="display: inline-table; margin-right: 1em; vertical-align: top">{head}{cells}</table>'
