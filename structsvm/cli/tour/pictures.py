"""Outputs as structures: a labelled sentence, an alignment, a path, a meaning; and all of them on one page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#999999"
KINDS = (BLUE, GREEN, ORANGE, "#CC79A7", "#E69F00", "#56B4E9")


def page(families: Sequence[Any], figure: Any) -> Any:
    """A panel per family that has structures, with its certificate below."""
    shown = [family for family in families if family.draw is not None]
    figure.get_layout_engine().set(w_pad=0.2, h_pad=0.2)
    axes = figure.subplots(-(-len(shown) // 2), 2).ravel()
    for ax in axes[len(shown) :]:
        ax.remove()
    for family, ax in zip(shown, axes, strict=False):
        ax.set_axis_off()
        family.draw(ax)
        ax.set_title(f"{family.name}: {family.score}", fontsize=11, loc="left")
        text = family.result.certificate().replace("; ", "\n", 1)
        ax.text(0.0, -0.02, text, transform=ax.transAxes, fontsize=7, color=GREY, va="top")
    return figure


def grids(ax: Any, given: Any, found: Any, true: Any) -> None:
    """Grids of two labels side by side: what was given, what was found, what is right."""
    size = len(given)
    for k, values in enumerate(((given > 0.0) * 0.5 + 0.25, found, true)):
        left = k * (size + 2)
        ax.imshow(values, cmap="cividis", vmin=0, vmax=1, extent=(left, left + size, 0, size), interpolation="nearest")
    ax.set_xlim(0, 3 * (size + 2))
    ax.set_ylim(0, size)


def sentence(ax: Any, words: Sequence[str], labels: Sequence[str], true: Sequence[str]) -> None:
    """Words over their labels, each label in its colour; wrong ones are underlined by the true ones."""
    kinds = list(dict.fromkeys(labels))
    for k, (word, label, right) in enumerate(zip(words, labels, true, strict=True)):
        color = KINDS[kinds.index(label) % len(KINDS)]
        ax.text(k, 1.0, word, ha="center", va="center", fontsize=9)
        box = {"facecolor": color, "edgecolor": "none", "boxstyle": "round,pad=0.3"}
        ax.text(k, 0.55, label.replace("_", "\n"), ha="center", va="center", fontsize=7, color="white", bbox=box)
        if label != right:
            ax.text(k, 0.2, f"not {right}", ha="center", va="center", fontsize=7, color=ORANGE)
    ax.set(xlim=(-0.7, len(words) - 0.3), ylim=(0.0, 1.3))


def alignment(ax: Any, row_x: str, row_z: str) -> None:
    """Two rows, equal letters joined and on blue ground."""
    for k, (a, b) in enumerate(zip(row_x, row_z, strict=True)):
        for y, letter in ((1.0, a), (0.0, b)):
            ground = {"facecolor": "#cfe3f1" if a == b else "white", "edgecolor": "none", "pad": 1.0}
            color = GREY if letter == "-" else "black"
            ax.text(k, y, letter, ha="center", va="center", fontsize=8, family="monospace", color=color, bbox=ground)
        if a == b:
            ax.plot([k, k], [0.3, 0.7], color=BLUE, linewidth=1.0)
    ax.set(xlim=(-1.0, len(row_x)), ylim=(-1.0, 2.0))


def path(ax: Any, nodes: Sequence[str], text: str) -> None:
    """The nodes on the way from the root to a text's class, and the text."""
    for k, node in enumerate(nodes):
        if k:
            arrow = {"arrowstyle": "->", "color": GREY}
            ax.annotate("", (k - 0.32, 1.0), (k - 0.68, 1.0), arrowprops=arrow)
        box = {"facecolor": "white", "edgecolor": GREEN if k == len(nodes) - 1 else GREY, "boxstyle": "round,pad=0.4"}
        ax.text(k, 1.0, node, ha="center", va="center", fontsize=9, bbox=box)
    ax.text(len(nodes) - 1, 0.45, text, ha="right", va="center", fontsize=8, style="italic")
    ax.set(xlim=(-0.5, len(nodes) - 0.4), ylim=(0.0, 1.5))


def matching(ax: Any, before: Any, after: Any, found: Any, true: Any) -> None:
    """Points and where they are seen again, a line for each that was matched; wrong ones in orange."""
    for k, partner in enumerate(found):
        if partner >= 0:
            ends = np.stack([before[k], after[partner]]).T
            ax.plot(*ends, color=GREEN if partner == true[k] else ORANGE, linewidth=1.5)
    ax.scatter(*before.T, color=BLUE, s=20)
    ax.scatter(*after.T, color=GREY, s=20)


def label_sets(ax: Any, found: Any, true: Any) -> None:
    """A column per row of data, a line per label: what is there, and what was found wrongly, in orange."""
    for wrong, color in ((False, GREEN), (True, ORANGE)):
        rows, labels = np.nonzero(((found != true) == wrong) & (wrong | (true == 1)))
        ax.scatter(rows, labels, color=color, marker="s", s=40)
    ax.set(xlim=(-1, len(true)), ylim=(-0.7, true.shape[1] - 0.3))


def meaning(ax: Any, text: str, meaning: str) -> None:
    """A sentence and what it says."""
    ax.text(0.5, 0.75, f"“{text}”", ha="center", va="center", fontsize=9, style="italic")
    ax.annotate("", (0.5, 0.42), (0.5, 0.62), arrowprops={"arrowstyle": "->", "color": GREY})
    box = {"facecolor": "#e6f4ef", "edgecolor": GREEN, "boxstyle": "round,pad=0.4"}
    ax.text(0.5, 0.28, meaning, ha="center", va="center", fontsize=10, family="monospace", bbox=box)
    ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0))


def table(families: Sequence[Any]) -> str:
    """A line per family: data, score, gap, passes, seconds."""
    rows = [("structure", "trained on", "on fresh data", "primal", "dual", "gap", "seconds")]
    for family in families:
        result = family.result
        primal, dual = (f"{value:.5g}" if np.isfinite(value) else "" for value in (result.primal, result.dual))
        gap = f"{100 * result.relative_gap:.2g} %" if primal and dual else "none claimed"
        rows.append((family.name, family.data, family.score, primal, dual, gap, f"{result.seconds:.2f}"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    aligned = (
        [f"{cell:<{w}}" if k < 3 else f"{cell:>{w}}" for k, (cell, w) in enumerate(zip(row, widths, strict=True))]
        for row in rows
    )
    return "\n".join("  ".join(cells).rstrip() for cells in aligned)
