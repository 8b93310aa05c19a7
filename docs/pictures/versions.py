"""The kept results of the versions: scores beside the best other program, and its training time beside ours."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from pictures.ink import Ink, axes, picture

KEPT = Path(__file__).parents[2] / "benchmarks" / "results" / "history.json"
VERSIONS = ("0.1", "0.2", "0.3")


@cache
def kept() -> list[Any]:
    """The tables that `benchmarks/history.py` has stored."""
    tables: list[Any] = json.loads(KEPT.read_text(encoding="utf-8"))["versions"]["tables"]
    return tables


@picture
def versions(ink: Ink) -> None:
    """A line per data set: scores less those of the best other program, and its time as a multiple of ours."""
    scores, times = kept()
    left, right = axes(height=3.4, columns=2)
    for row in scores["rows"]:
        draw(left, ink, [row[v] - row["best"] if v in row else None for v in VERSIONS])
    for row in times["rows"]:
        draw(right, ink, [row.get(v) for v in VERSIONS])
    right.set_yscale("log")
    right.set_yticks([0.5, 1, 2, 5, 10, 20, 50], ["0.5", "1", "2", "5", "10", "20", "50"])
    right.minorticks_off()
    for ax, level, title in ((left, 0, "our score less the best other's"), (right, 1, "the other's time / ours")):
        ax.axhline(level, color=ink.faint, linewidth=1.0, linestyle="--")
        ax.set_title(title, fontsize=10.5)
        ax.set_xlabel("version")


def draw(ax: Any, ink: Ink, values: list[float | None]) -> None:
    """One data set, where it was measured: blue if ours is the better one now, orange if not."""
    shown = [(version, value) for version, value in zip(VERSIONS, values, strict=True) if value is not None]
    better = shown[-1][1] >= (1.0 if ax.get_subplotspec().colspan.start else 0.0)
    ax.plot(*zip(*shown, strict=True), "-o", markersize=3.5, color=ink.blue if better else ink.orange, alpha=0.75)
