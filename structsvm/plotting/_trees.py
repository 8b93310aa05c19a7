"""Constituency trees, and the errors of a predicted one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from structsvm.metrics import EVALB_DELETED, EVALB_EQUAL
from structsvm.metrics._trees import Brackets
from structsvm.plotting._drawing import GREEN, GREY, ORANGE, shortened, subplots
from structsvm.structures.trees import as_tree, places_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from structsvm.structures.trees import Tree

_WIDTH, _HEIGHT = 0.62, 0.45  # inches per word and per level
_SIDE_BY_SIDE = 10  # words; trees of longer sentences are drawn one above the other


class TreeDisplay:
    """A tree, or a true and a predicted one, with the spans marked that only one of the two has.

    Parameters
    ----------
    tree : Tree
    predicted : Tree, optional
        Another tree of the same words.
    deleted, equal
        Labels to exclude, and groups of labels that count as equal; see :func:`structsvm.metrics.bracket_scores`.

    Attributes
    ----------
    missed, wrong : list of (str, int, int)
        Labelled spans (label, begin, end) of nodes above the tags, in preorder: those that only the true tree has, and
        those that only the predicted one has. As in `bracket_scores`, words with a deleted true tag do not count. Empty
        for a single tree.
    ax_ : matplotlib.axes.Axes, or tuple of two
    figure_ : matplotlib.figure.Figure

    Raises
    ------
    ValueError
        The trees have different words.

    Examples
    --------
    >>> from structsvm.plotting import TreeDisplay
    >>> from structsvm.structures.trees import parse_tree
    >>> true = parse_tree("(S (NP (DT a) (NN cat)) (VP (VBZ is)))")
    >>> TreeDisplay.from_predictions(true, parse_tree("(S (DT a) (NN cat) (VP (VBZ is)))")).missed
    [('NP', 0, 2)]
    """

    def __init__(
        self,
        tree: Tree,
        predicted: Tree | None = None,
        *,
        deleted: Collection[str] = EVALB_DELETED,
        equal: Iterable[Collection[str]] = EVALB_EQUAL,
    ) -> None:
        tree, predicted = as_tree(tree), None if predicted is None else as_tree(predicted)
        if predicted is not None and tree.leaves() != predicted.leaves():
            raise ValueError("the trees have different words")
        self.tree, self.predicted = tree, predicted
        self._marked: tuple[set[int], set[int]] = (set(), set())
        self.missed: list[tuple[str, int, int]] = []
        self.wrong: list[tuple[str, int, int]] = []
        if predicted is None:
            return
        brackets = Brackets(deleted, equal)
        true, found = (list(brackets(t, brackets.stays(tree))) for t in (tree, predicted))
        self._marked = (_only(true, found), _only(found, true))
        self.missed, self.wrong = (
            [spans[k] for k in sorted(marked)]
            for spans, marked in zip((tree.spans(), predicted.spans()), self._marked, strict=True)
        )

    @classmethod
    def from_predictions(
        cls, y_true: Tree, y_pred: Tree, *, ax: Sequence[Axes] | None = None, **kw: Any
    ) -> TreeDisplay:
        """Draw a true tree and a predicted one."""
        return cls(y_true, y_pred, **kw).plot(ax=ax)

    @classmethod
    def from_estimator(cls, estimator: Any, tree: Tree, *, ax: Sequence[Axes] | None = None, **kw: Any) -> TreeDisplay:
        """Draw a true tree and the one that ``estimator`` predicts for its sentence."""
        return cls(tree, estimator.predict([as_tree(tree).tokens()])[0], **kw).plot(ax=ax)

    def plot(self, ax: Axes | Sequence[Axes] | None = None) -> TreeDisplay:
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
        axes: tuple[Any, ...] = (ax,) if self.predicted is None else tuple(ax)  # type: ignore[arg-type]
        for tree, marked, color, axis in zip(trees, self._marked, (GREEN, ORANGE), axes, strict=False):
            _draw(axis, tree, marked, color)
        if len(trees) == 2:
            axes[0].set_title(f"true, {_spans(len(self.missed))} missed", fontsize=10)
            axes[1].set_title(f"predicted, {_spans(len(self.wrong))} wrong", fontsize=10)
        self.ax_: Any = axes[0] if len(trees) == 1 else axes
        self.figure_ = axes[0].figure
        return self

    @staticmethod
    def _new_axes(trees: list[Tree]) -> Any:
        n_words = len(trees[0].leaves())
        levels = max(places_of(tree)[0][1] for tree in trees)
        width, height = min(max(_WIDTH * n_words, 3.0), 40.0), min(_HEIGHT * (levels + 2), 40.0)
        n_rows, n_columns = (len(trees), 1) if n_words > _SIDE_BY_SIDE else (1, len(trees))
        size = (width * n_columns, height * n_rows)
        return subplots(nrows=n_rows, ncols=n_columns, figsize=size, layout="constrained")


Spans = list[tuple[int, tuple[str, int, int]]]


def _only(spans: Spans, others: Spans) -> set[int]:
    """Return the indices of the spans that the others do not contain, or contain less often."""
    left = Counter(span for _, span in others)
    marked = set()
    for k, span in spans:
        left[span] -= 1
        if left[span] < 0:
            marked.add(k)
    return marked


def _spans(n: int) -> str:
    return f"{n} span" if n == 1 else f"{n} spans"


def _draw(ax: Axes, tree: Tree, marked: set[int], color: str) -> None:
    """Draw a tree; `marked` are preorder indices of nodes."""
    from matplotlib.collections import LineCollection

    places = places_of(tree)
    lines = []
    for x, y, parent, _, _ in places[1:]:
        above, level = places[parent][:2]
        lines.append([(above, level), (above, level - 0.5), (x, level - 0.5), (x, y)])
    ax.add_collection(LineCollection(lines, colors=GREY, linewidths=0.8, zorder=1))
    k = -1
    for x, y, _, text, is_node in places:
        k += is_node
        is_marked = is_node and k in marked
        box = {"facecolor": "white", "edgecolor": color if is_marked else "none", "pad": 1.5}
        weight = "bold" if is_marked else "normal"
        shown = shortened(text, 14)
        ax.text(x, y, shown, ha="center", va="center", fontsize=8, weight=weight, bbox=box, clip_on=True,
                color=color if is_marked else "black", style="normal" if is_node else "italic")  # fmt: skip
    ax.set(xlim=(-0.6, max(x for x, *_ in places) + 0.6), ylim=(-0.5, places[0][1] + 0.5))
    ax.set_axis_off()
