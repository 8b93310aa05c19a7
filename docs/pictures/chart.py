"""The map to choose an estimator by: from the output to the input to the estimator, each box a link to its page."""

import textwrap
from collections.abc import Iterable
from html import escape

GROUPS = {
    "labels in an order": ("sequences", "segments", "concepts"),
    "a tree over words": ("grammars", "dependencies"),
    "links of two things": ("alignment", "matching"),
    "a meaning, a place in a taxonomy": ("semantics", "taxonomies"),
    "labels of a net": ("graphs",),
    "several labels, an order": ("multilabel", "ranking", "ordering"),
    "one class": ("multiclass", "binary"),
    "something else": ("oracles",),
}
COLUMNS = ((0, 128), (172, 228), (424, 228), (676, 284))  # left edge and width: group, predicted, from, estimator
CHARACTERS = (8.0, 8.0, 8.0, 9.5)  # width of one, on average; estimators are bold, and cannot be broken anywhere
LINE, PAD, GAP = 19, 9, 10


def chart(rows: Iterable[dict[str, str]]) -> str:
    """The map as SVG in the colours of the page. Raises ValueError if a page stands in no group."""
    rows = list(rows)
    homeless = {row["page"] for row in rows} - {page for pages in GROUPS.values() for page in pages}
    if homeless:
        raise ValueError(f"{', '.join(sorted(homeless))}: in no group of the map (docs/pictures/chart.py)")
    parts: list[str] = [heading(k, text) for k, text in enumerate(("", "I predict", "I have", "I take"))]
    top = 38
    for group, pages in GROUPS.items():
        members = [row for page in pages for row in rows if row["page"] == page]
        begin = top
        middles = []
        for row in members:
            estimators = row["estimators"].replace(", ", ",\n").replace("(oracle,\n", "(oracle, ")
            texts = (row["predicted"], row["from"], estimators)
            lines = [wrapped(text, k + 1) for k, text in enumerate(texts)]
            height = LINE * max(map(len, lines)) + 2 * PAD
            for k, text in enumerate(lines, start=1):
                parts.append(box(k, top, height, text, row["page"]))
                if k > 1:
                    parts.append(
                        line(COLUMNS[k - 1][0] + COLUMNS[k - 1][1], top + height / 2, COLUMNS[k][0], top + height / 2)
                    )
            middles.append(top + height / 2)
            top += height + GAP
        middle = (begin + top - GAP) / 2
        lines = wrapped(group, 0)
        height = LINE * len(lines) + 2 * PAD
        parts += [line(COLUMNS[0][1], middle, COLUMNS[1][0], y) for y in middles]
        parts.append(box(0, middle - height / 2, height, lines, members[0]["page"]))
        top += GAP
    name = "Map from what is predicted, and from what, to the estimator"
    return (
        f'<div class="map"><svg viewBox="-2 0 964 {top:.0f}" role="group" aria-label="{name}">'
        + "".join(parts)
        + "</svg></div>"
    )


def wrapped(text: str, column: int) -> list[str]:
    """Lines that fit the width of a column; calls that do not are broken behind their bracket."""
    width = int((COLUMNS[column][1] - 2 * PAD) / CHARACTERS[column])
    parts = text.replace("`", "").split("\n")
    parts = [piece for part in parts for piece in (part.replace("(", "(\n") if len(part) > width else part).split("\n")]
    return [line for part in parts for line in textwrap.wrap(part, width)]


def heading(column: int, text: str) -> str:
    """The question above a column."""
    left, width = COLUMNS[column]
    return f'<text class="question" x="{left + width / 2}" y="18" text-anchor="middle">{text}</text>'


def box(column: int, top: float, height: float, lines: list[str], page: str) -> str:
    """A box with lines of text, linked to a page."""
    left, width = COLUMNS[column]
    first = top + height / 2 - LINE * (len(lines) - 1) / 2 + 5.5
    spans = "".join(
        f'<tspan x="{left + width / 2}" y="{first + LINE * k:.1f}">{escape(line)}</tspan>'
        for k, line in enumerate(lines)
    )
    shape = f'<rect x="{left}" y="{top:.1f}" width="{width}" height="{height:.1f}" rx="7"/>'
    return f'<a class="column-{column}" href="{page}.html">{shape}<text text-anchor="middle">{spans}</text></a>'


def line(x1: float, y1: float, x2: float, y2: float) -> str:
    """A curve from one box to another."""
    middle = (x1 + x2) / 2
    return f'<path d="M{x1} {y1:.1f} C{middle} {y1:.1f} {middle} {y2:.1f} {x2} {y2:.1f}"/>'
