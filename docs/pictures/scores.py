"""Scores of outputs: one output, the best, the most dangerous, and the slack."""

from typing import Any

from pictures.address import KEPT, TRUE, WORDS, address, total, wrong
from pictures.ink import Ink, axes, picture


def lattice(ax: Any, ink: Ink, cost: bool = False, faint: bool = False) -> None:
    """Words from left to right, a box per label with its score; with `cost`, wrong labels score one more."""
    scored = address()
    for t, word in enumerate(WORDS):
        ax.text(t, 4.0, word, ha="center", va="center", fontsize=12, fontweight="bold")
        for row, label in enumerate(KEPT[::-1]):
            extra = float(cost and label != TRUE[t])
            value = scored.emissions[t, scored.labels.index(label)] + extra
            color = ink.orange if extra else ink.faint if faint else ink.text
            box = {"boxstyle": "round,pad=0.32", "facecolor": ink.ground, "edgecolor": ink.faint, "linewidth": 0.6}
            ax.text(
                t, row * 0.9, f"{value:+.1f}", ha="center", va="center", fontsize=9.5, color=color, bbox=box, zorder=3
            )
    for row, label in enumerate(KEPT[::-1]):
        ax.text(-0.5, row * 0.9, label, ha="right", va="center")
    ax.set(xlim=(-1.1, 4.6), ylim=(-0.6, 4.4))
    ax.set_axis_off()


def path(ax: Any, found: Any, color: str, style: str = "-", width: float = 3.0, numbers: bool = False) -> None:
    """A labelling as a line through its boxes, with the scores of pairs of neighbours."""
    rows = [0.9 * KEPT[::-1].index(label) for label in found]
    ax.plot(range(len(rows)), rows, style, color=color, linewidth=width, zorder=2, solid_capstyle="round")
    scored = address()
    for t in range(len(rows) - 1 if numbers else 0):
        value = scored.transitions[scored.labels.index(found[t]), scored.labels.index(found[t + 1])]
        ax.text(t + 0.5, (rows[t] + rows[t + 1]) / 2 + 0.28, f"{value:+.1f}", ha="center", color=color, fontsize=9)


def best(cost: bool = False) -> Any:
    """The labelling of the highest score, or of the highest score plus number of wrong labels."""
    return max(address().labellings, key=lambda pair: pair[1] + cost * wrong(pair[0]))


@picture
def score(ink: Ink) -> None:
    """One labelling and the numbers that are added."""
    ax = axes(height=3.0)
    lattice(ax, ink, faint=True)
    path(ax, TRUE, ink.blue, numbers=True)
    scored = address()
    value = total(scored.labels, scored.emissions, scored.transitions, TRUE)
    ax.set_title(f"score of this labelling: {value:.1f}, the sum of nine numbers", fontsize=10.5)


@picture
def arg_max(ink: Ink) -> None:
    """The best labelling, and the second."""
    ax = axes(height=3.0)
    lattice(ax, ink, faint=True)
    (first, high), (second, low) = address().labellings[:2]
    path(ax, second, ink.faint, "--", 2.0)
    path(ax, first, ink.blue)
    ax.set_title(f"best of {len(address().labellings)}: {high:.1f}    second, dashed: {low:.1f}", fontsize=10.5)


@picture
def loss_augmented(ink: Ink) -> None:
    """The same boxes when each wrong label scores one more."""
    ax = axes(height=3.0)
    lattice(ax, ink, cost=True)
    found, value = best(cost=True)
    path(ax, TRUE, ink.blue, "--", 2.0)
    path(ax, found, ink.orange)
    n = wrong(found)
    ax.set_title(
        f"most dangerous: score {value:.1f} + {n} wrong labels = {value + n:.1f}    true, dashed", fontsize=10.5
    )


@picture
def slack(ink: Ink) -> None:
    """All labellings by loss and score, and the line that none may cross."""
    ax = axes(height=3.6)
    scored = address()
    right = next(value for found, value in scored.labellings if wrong(found) == 0)
    points = sorted({(wrong(found), round(value, 1)) for found, value in scored.labellings})
    ax.scatter(*zip(*points, strict=True), s=12, color=ink.faint, linewidths=0)
    ax.plot([0, 5], [right, right - 5], color=ink.text, linewidth=1.2)
    ax.text(5.05, right - 5.0, "allowed: on or\nbelow this line", va="center")
    ax.scatter([0], [right], s=60, color=ink.blue, zorder=3)
    ax.text(-0.2, right - 0.8, "the true\nlabelling", color=ink.blue, va="top")
    found, value = best(cost=True)
    n = wrong(found)
    ax.scatter([n], [value], s=60, color=ink.orange, zorder=3)
    ax.plot([n, n], [right - n, value], color=ink.orange, linewidth=3, zorder=2)
    ax.text(n + 0.1, value, f"the most dangerous one\nslack {value + n - right:.1f}", color=ink.orange, va="center")
    ax.set(xlabel="loss: number of wrong labels", ylabel="score", xlim=(-0.3, 6.2))
