"""Constituency trees, and where a predicted one errs."""

from __future__ import annotations

from collections import Counter
from itertools import accumulate
from typing import Any

from structsvm.metrics import EVALB_DELETED, EVALB_EQUAL
from structsvm.plotting._drawing import GREEN, GREY, ORANGE, shortened, subplots

__all__ = ["TreeDisplay"]

_WIDTH, _HEIGHT = 0.62, 0.45  # inches a word and a level
_SIDE_BY_SIDE = 10  # words; trees of longer sentences stand one above the other


class TreeDisplay:
    """A tree; or a true and a predicted one side by side, with the spans marked that only one of them has.

    Parameters
    ----------
    tree : Tree
    predicted : Tree, optional
        Another tree of the same words.
    deleted, equal
        Labels that are not compared, and labels that are taken for one another; see
        :func:`structsvm.metrics.bracket_scores`.

    Attributes
    ----------
    missed, wrong : list of (str, int, int)
        Labelled spans (label, begin, end) of nodes above the tags: those that only the true tree has, and those that
        only the predicted one has, in preorder, compared without the words whose true tag is deleted, as
        `bracket_scores` does. Empty for a single tree.
    ax_ : matplotlib.axes.Axes, or tuple of two
    figure_ : matplotlib.figure.Figure

    Raises
    ------
    ValueError
        The trees have different words.
    """

    def __init__(self, tree, predicted=None, *, deleted=EVALB_DELETED, equal=EVALB_EQUAL):
        if predicted is not None and tree.leaves() != predicted.leaves():
            raise ValueError("the trees have different words")
        self.tree, self.predicted = tree, predicted
        self._deleted = frozenset(deleted)
        self._name = {label: min(group) for group in equal for label in group}
        self._marked: tuple[set[int], set[int]] = (set(), set())
        # Of each word, its place among those whose true tag is not deleted: where brackets begin and end.
        self._place = [0, *accumulate(tag not in self._deleted for _, tag in tree.tokens())]
        if predicted is not None:
            self._marked = (self._only(tree, predicted), self._only(predicted, tree))
        trees = (tree, tree if predicted is None else predicted)
        self.missed, self.wrong = (
            [spans[k] for k in sorted(marked)]
            for spans, marked in zip((t.spans() for t in trees), self._marked, strict=True)
        )

    @classmethod
    def from_predictions(cls, y_true, y_pred, *, ax=None, **kw):
        """Draw a true tree and a predicted one."""
        return cls(y_true, y_pred, **kw).plot(ax=ax)

    @classmethod
    def from_estimator(cls, estimator, tree, *, ax=None, **kw):
        """Draw a true tree beside what ``estimator.predict`` makes of its sentence."""
        return cls(tree, estimator.predict([tree.tokens()])[0], **kw).plot(ax=ax)

    def _only(self, tree, other):
        """Numbers in preorder of the nodes whose labelled span the other tree has not (or less often)."""
        left = Counter(span for _, span in self._compared(other))
        marked = set()
        for number, span in self._compared(tree):
            left[span] -= 1
            if left[span] < 0:
                marked.add(number)
        return marked

    def _compared(self, tree):
        for number, (node, (label, i, j)) in enumerate(zip(tree.preorder(), tree.spans(), strict=True)):
            begin, end = self._place[i], self._place[j]
            if not node.is_preterminal and label not in self._deleted and begin < end:
                yield number, (self._name.get(label, label), begin, end)

    def plot(self, ax=None):
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, or sequence of two for a true and a predicted tree, optional
            By default those of a new figure.

        Returns
        -------
        self : TreeDisplay
        """
        trees = [tree for tree in (self.tree, self.predicted) if tree is not None]
        if ax is None:
            ax = self._new_axes(trees)
        axes = (ax,) if len(trees) == 1 else tuple(ax)
        for tree, marked, color, axis in zip(trees, self._marked, (GREEN, ORANGE), axes, strict=False):
            _draw(axis, tree, marked, color)
        if len(trees) == 2:
            axes[0].set_title(f"true, {_spans(len(self.missed))} missed", fontsize=10)
            axes[1].set_title(f"predicted, {_spans(len(self.wrong))} wrong", fontsize=10)
        self.ax_ = axes[0] if len(trees) == 1 else axes
        self.figure_ = axes[0].figure
        return self

    @staticmethod
    def _new_axes(trees):
        n_words = len(trees[0].leaves())
        levels = max(_places(tree)[0][1] for tree in trees)
        width, height = min(max(_WIDTH * n_words, 3.0), 40.0), min(_HEIGHT * (levels + 2), 40.0)
        n_rows, n_columns = (len(trees), 1) if n_words > _SIDE_BY_SIDE else (1, len(trees))
        size = (width * n_columns, height * n_rows)
        return subplots(nrows=n_rows, ncols=n_columns, figsize=size, layout="constrained")


def _spans(n):
    return f"{n} span" if n == 1 else f"{n} spans"


def _places(tree):
    """``(x, y, parent's number, label or word, whether it is a node)`` of nodes and words in preorder.

    Words stand side by side at y = 0, a node in the middle above its children.
    """
    items: list[tuple[Any, int]] = []
    stack = [(tree, -1)]
    while stack:
        item, parent = stack.pop()
        if not isinstance(item, str):
            stack.extend((child, len(items)) for child in reversed(item.children))
        items.append((item, parent))
    x, y = [0.0] * len(items), [0] * len(items)
    first, last = list(x), [0.0] * len(items)
    n_words = sum(isinstance(item, str) for item, _ in items)
    for number in reversed(range(len(items))):  # from the right: children before their parents
        item, parent = items[number]
        if isinstance(item, str):
            x[number] = n_words = n_words - 1
        else:
            x[number] = 0.5 * (first[number] + last[number])
        if parent >= 0:
            last[parent] = last[parent] if y[parent] else x[number]
            first[parent] = x[number]
            y[parent] = max(y[parent], y[number] + 1)
    return [
        (x[number], y[number], parent, item if isinstance(item, str) else item.label, not isinstance(item, str))
        for number, (item, parent) in enumerate(items)
    ]


def _draw(ax, tree, marked, color):
    """Draw a tree; `marked` are numbers of nodes in preorder."""
    from matplotlib.collections import LineCollection

    places = _places(tree)
    lines = []
    for x, y, parent, _, _ in places[1:]:
        above, level = places[parent][:2]
        lines.append([(above, level), (above, level - 0.5), (x, level - 0.5), (x, y)])
    ax.add_collection(LineCollection(lines, colors=GREY, linewidths=0.8, zorder=1))
    number = -1
    for x, y, _, text, is_node in places:
        number += is_node
        is_marked = is_node and number in marked
        box = {"facecolor": "white", "edgecolor": color if is_marked else "none", "pad": 1.5}
        weight = "bold" if is_marked else "normal"
        shown = shortened(text, 14)
        ax.text(x, y, shown, ha="center", va="center", fontsize=8, weight=weight, bbox=box, clip_on=True,
                color=color if is_marked else "black", style="normal" if is_node else "italic")  # fmt: skip
    ax.set(xlim=(-0.6, max(x for x, *_ in places) + 0.6), ylim=(-0.5, places[0][1] + 0.5))
    ax.set_axis_off()
