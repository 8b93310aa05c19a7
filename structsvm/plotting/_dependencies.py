"""Dependency trees as arcs above the words, and the errors of a predicted one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from structsvm.plotting._drawing import GREEN, GREY, ORANGE, shortened, subplots

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from structsvm.structures.dependencies import DependencyTree

_WIDTH, _HEIGHT = 0.9, 0.5  # inches per word and per level of arcs


class DependencyDisplay:
    """A tree, drawn as arcs above its words; with a predicted one, its wrong arcs below them.

    Parameters
    ----------
    tree : DependencyTree
    predicted : DependencyTree, optional
        Another tree of the same words.

    Attributes
    ----------
    missed : list of int
        The words, from 1, whose predicted head or relation is not the true one; empty for a single tree.
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure

    Raises
    ------
    ValueError
        The trees have different words.

    Examples
    --------
    >>> from structsvm.datasets import make_dependency_trees
    >>> from structsvm.plotting import DependencyDisplay
    >>> tree = make_dependency_trees(1, random_state=0)[0]
    >>> DependencyDisplay.from_predictions(tree, tree).missed
    []
    """

    def __init__(self, tree: DependencyTree, predicted: DependencyTree | None = None) -> None:
        if predicted is not None and [w.form for w in tree.words] != [w.form for w in predicted.words]:
            raise ValueError("the trees have different words")
        self.tree, self.predicted = tree, predicted
        pairs = [] if predicted is None else list(zip(tree.arcs, predicted.arcs, strict=True))
        self.missed = [m for m, (true, found) in enumerate(pairs, start=1) if true != found]

    @classmethod
    def from_predictions(
        cls, y_true: DependencyTree, y_pred: DependencyTree, *, ax: Axes | None = None
    ) -> DependencyDisplay:
        """Draw a true tree and a predicted one."""
        return cls(y_true, y_pred).plot(ax=ax)

    @classmethod
    def from_estimator(cls, estimator: Any, tree: DependencyTree, *, ax: Axes | None = None) -> DependencyDisplay:
        """Draw a true tree and the one that ``estimator`` predicts for its sentence."""
        return cls(tree, tree.with_arcs(estimator.predict([tree])[0])).plot(ax=ax)

    def plot(self, ax: Axes | None = None) -> DependencyDisplay:
        """Draw, by default on the axes of a new figure.

        Returns
        -------
        self : DependencyDisplay
        """
        levels = _levels(self.tree.heads)
        low = 0
        if ax is None:
            height = _HEIGHT * (max(levels, default=0) * (2 if self.missed else 1) + 3)
            size = min(max(_WIDTH * len(self.tree), 3.0), 40.0), min(height, 40.0)
            ax = subplots(figsize=size, layout="constrained")
        for m, word in enumerate(self.tree.words, start=1):
            ax.text(m, 0, shortened(word.form, 14), ha="center", va="center", fontsize=9)
            _arc(ax, m, word.head, word.deprel, levels[m - 1], GREEN if m in self.missed else GREY)
        if self.predicted is not None:
            below = _levels(self.predicted.heads)
            low = max((below[m - 1] for m in self.missed), default=0)
            for m in self.missed:
                word = self.predicted.words[m - 1]
                _arc(ax, m, word.head, word.deprel, -below[m - 1], ORANGE)
            n = len(self.missed)
            ax.set_title(
                f"true above, {n} wrong {'arc' if n == 1 else 'arcs'} of the predicted tree below", fontsize=10
            )
        ax.set(xlim=(0.3, len(self.tree) + 0.7), ylim=(-low - 1.0, max(levels, default=0) + 1.2))
        ax.set_axis_off()
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _levels(heads: list[int]) -> list[int]:
    """The height of each word's arc: above all arcs that stand within it; that of the root above all."""
    spans = {m: (min(h, m), max(h, m)) for m, h in enumerate(heads, start=1) if h > 0}
    found = [1] * len(heads)
    for m in sorted(spans, key=lambda m: spans[m][1] - spans[m][0]):
        a, b = spans[m]
        inner = (found[k - 1] for k, (c, d) in spans.items() if k != m and a <= c and d <= b and d - c < b - a)
        found[m - 1] = 1 + max(inner, default=0)
    top = max((found[m - 1] for m in spans), default=0)
    return [top + 1 if h == 0 else level for h, level in zip(heads, found, strict=True)]


def _arc(ax: Axes, m: int, head: int, label: str, level: int, color: str) -> None:
    """Draw the arc of a word from its head, `level` high (below the words if that is negative)."""
    if head < 0:
        return
    sign = 1 if level > 0 else -1
    foot, top = 0.35 * sign, level + 0.2 * sign
    arrow = {"arrowstyle": "-|>", "color": color, "shrinkA": 0, "shrinkB": 0, "linewidth": 1.0}
    if head > 0:
        shift = 0.12 if head < m else -0.12
        ax.plot([head + shift, head + shift, m - shift, m - shift], [foot, top, top, foot], color=color, linewidth=1.0)
        middle, end = 0.5 * (head + m), m - shift
    else:
        middle = end = float(m)
    ax.annotate("", (end, foot), (end, top), arrowprops=arrow)
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
    ax.text(middle, top, shortened(label, 14), ha="center", va="center", fontsize=7, color=color, bbox=box)
