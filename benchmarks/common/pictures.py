"""Pictures of measurements: panels of lines."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from itertools import cycle

COLORS = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#000000", "#999999")
WIDTH, HEIGHT, DPI, N_COLORS = 3.2, 2.5, 80, 64


@dataclass
class Panel:
    """Lines over two axes.

    Attributes
    ----------
    title, x, y : str
        y may be empty: the name of the panel to the left.
    lines : dict of str to (list, list)
    marker : str
        Of the points; a line alone if empty.
    style : str
        Between them; points alone if empty.
    axes : dict
        What else `Axes.set` takes.
    """

    title: str
    x: str
    y: str
    lines: dict
    marker: str = "."
    style: str = "-"
    axes: dict = field(default_factory=dict)


def lines_of(rows, name, x, y):
    """The rows that have x and y, as the lines of a `Panel`, a line per value of `name`."""
    lines: dict = {}
    for row in rows:
        if row.get(x) is not None and row.get(y) is not None:
            xs, ys = lines.setdefault(row[name], ([], []))
            xs.append(row[x])
            ys.append(row[y])
    return lines


def draw(panels, n_columns, where):
    """Draw the panels in rows of `n_columns`, into a small PNG."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter
    from PIL import Image

    n_rows = -(-len(panels) // n_columns)
    figure = Figure(figsize=(WIDTH * n_columns, HEIGHT * n_rows), layout="constrained")
    for ax, panel in zip(figure.subplots(n_rows, n_columns, squeeze=False).flat, panels, strict=False):
        for color, (name, (x, y)) in zip(cycle(COLORS), panel.lines.items()):
            ax.plot(x, y, panel.marker + panel.style, color=color, linewidth=1.1, markersize=5, label=name)
        ax.set_title(panel.title, fontsize=9)
        ax.set(xlabel=panel.x, ylabel=panel.y, **panel.axes)
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_minor_formatter(NullFormatter())
        ax.grid(color="#999999", alpha=0.3, linewidth=0.6)
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, fontsize=6)
    for ax in figure.axes[len(panels) :]:
        ax.set_axis_off()
    picture = io.BytesIO()
    figure.savefig(picture, dpi=DPI, format="png")
    Image.open(picture).convert("RGB").quantize(N_COLORS).save(where, format="PNG", optimize=True)
