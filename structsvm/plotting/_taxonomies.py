"""Recalls and confusions in a taxonomy."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from structsvm.metrics._counts import paired
from structsvm.plotting._drawing import (
    GREY,
    attribute,
    confusion_matrix,
    fraction_map,
    shortened,
    square,
    subplots,
    text_color,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

    from structsvm.structures.taxonomy import Taxonomy


class TaxonomyDisplay:
    """A taxonomy with the recall of every node, beside the confusion matrix of its labels in the order of the tree.

    Parameters
    ----------
    taxonomy : Taxonomy
    matrix : array of shape (n_labels, n_labels)
        Number of documents per true label (row) and predicted label (column).
    labels : sequence of length n_labels
        Names of nodes.

    Attributes
    ----------
    labels : list
        In the order of the tree, like rows and columns of `matrix`.
    recall : dict
        For each label that occurs and each node above it: the fraction of the documents at or below the node that were
        predicted to be there. A node of several parents is drawn below the one on `Taxonomy.path`, and counts for all
        of them.
    ax_ : tuple of matplotlib.axes.Axes
        The axes of the tree and of the matrix.
    figure_ : matplotlib.figure.Figure

    Raises
    ------
    ValueError
        The shapes do not agree, or a label is not a node.

    Examples
    --------
    >>> from structsvm.plotting import TaxonomyDisplay
    >>> edges = [("all", "comp"), ("all", "autos"), ("comp", "mac"), ("comp", "pc")]
    >>> TaxonomyDisplay.from_predictions(["mac", "pc", "autos"], ["mac", "mac", "autos"], edges).recall["comp"]
    1.0
    """

    def __init__(self, taxonomy: Taxonomy, matrix: ArrayLike, labels: Sequence[Hashable]) -> None:
        counts = square(matrix, labels, "matrix")
        paths = {label: tuple(taxonomy.number(node) for node in taxonomy.path(label)) for label in labels}
        order = sorted(range(len(labels)), key=lambda k: paths[labels[k]])
        self.taxonomy = taxonomy
        self.labels = [labels[k] for k in order]
        self.matrix = counts[np.ix_(order, order)]
        self._paths = [paths[label] for label in self.labels]
        below: dict[Hashable, list[int]] = {}
        for k, label in enumerate(self.labels):
            for node in taxonomy.ancestors(label):
                below.setdefault(node, []).append(k)
        self.recall = {
            node: float(self.matrix[np.ix_(rows, rows)].sum() / self.matrix[rows].sum())
            for node, rows in below.items()
            if self.matrix[rows].any()
        }

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Sequence[Hashable] | np.ndarray, *, ax: Sequence[Axes] | None = None, **kw: Any
    ) -> TaxonomyDisplay:
        """Draw how `estimator.predict(X)` compares with y in ``estimator.taxonomy_``."""
        return cls.from_predictions(y, estimator.predict(X), attribute(estimator, "taxonomy_"), ax=ax, **kw)

    @classmethod
    def from_predictions(
        cls,
        y_true: Sequence[Hashable] | np.ndarray,
        y_pred: Sequence[Hashable] | np.ndarray,
        taxonomy: Any,
        *,
        ax: Sequence[Axes] | None = None,
        **kw: Any,
    ) -> TaxonomyDisplay:
        """Draw the confusions of labels, one node name per document."""
        from structsvm.structures.taxonomy import as_taxonomy

        true, pred = paired(np.asarray(y_true).tolist(), np.asarray(y_pred).tolist(), "labels")
        labels = list(dict.fromkeys([*true, *pred]))
        return cls(as_taxonomy(taxonomy), confusion_matrix(true, pred, labels), labels).plot(ax=ax, **kw)

    def plot(
        self, ax: Sequence[Axes] | None = None, *, cmap: str | Colormap = "Blues", tree_cmap: str | Colormap = "viridis"
    ) -> TaxonomyDisplay:
        """Draw.

        Parameters
        ----------
        ax : sequence of two matplotlib.axes.Axes, optional
            Axes for the tree and for the matrix; by default two in a new figure.
        cmap, tree_cmap : str or Colormap
            For fractions of a true label, and for recalls; nodes without documents are grey.

        Returns
        -------
        self : TaxonomyDisplay
        """
        if ax is None:
            side = min(max(0.2 * len(self.labels), 4.5), 11.0)
            ax = subplots(ncols=2, figsize=(2.0 * side + 1.0, side), layout="constrained")
        tree, matrix = ax
        self.ax_ = (tree, matrix)
        self.figure_ = tree.figure
        self._plot_tree(tree, tree_cmap)
        self._plot_matrix(matrix, cmap)
        return self

    def _spans(self) -> list[tuple[int, int, int, Hashable, Hashable]]:
        """Level, first and last label, and name of each node on the paths, and the name above it or None."""
        spans: dict[tuple[int, ...], tuple[int, int]] = {}
        for k, path in enumerate(self._paths):
            for end in range(1, len(path) + 1):
                spans[path[:end]] = (spans.get(path[:end], (k, k))[0], k)
        names = self.taxonomy.nodes
        return [
            (len(path) - 1, *span, names[path[-1]], names[path[-2]] if len(path) > 1 else None)
            for path, span in spans.items()
        ]

    def _plot_tree(self, ax: Axes, cmap: str | Colormap) -> None:
        from matplotlib import colormaps
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import Normalize, to_rgba

        shade = colormaps.get_cmap(cmap)
        room = 60.0 / len(self.labels)  # height of a row, in lines of small text
        for level, first, last, node, above in self._spans():
            recall = self.recall.get(node)
            face = to_rgba(GREY) if recall is None else shade(recall)
            ax.barh(0.5 * (first + last), 0.98, last - first + 1, level, color=face, edgecolor="white", linewidth=0.5)
            if (last - first + 1) * room >= 1.0:
                name = own_part(node, above)
                text = shortened(name, 22) if recall is None else f"{shortened(name, 18)} {recall:.2f}"
                color = text_color(face)
                ax.text(level + 0.03, 0.5 * (first + last), text, va="center", fontsize=7, color=color, clip_on=True)
        levels = max(map(len, self._paths))
        ax.set(xlim=(0, max(levels, 1)), ylim=(len(self.labels) - 0.5, -0.5), xlabel="depth", yticks=[])
        ax.set_xticks(np.arange(levels) + 0.5, map(str, range(1, levels + 1)))
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        ax.figure.colorbar(ScalarMappable(Normalize(0.0, 1.0), shade), ax=ax, label="recall", fraction=0.046, pad=0.03)

    def _plot_matrix(self, ax: Axes, cmap: str | Colormap) -> None:
        fraction_map(ax, self.matrix, self.labels, cmap)
        for k in range(1, len(self._paths)):
            if self._paths[k][:1] != self._paths[k - 1][:1]:  # another child of the root begins
                ax.axhline(k - 0.5, color=GREY, linewidth=0.6)
                ax.axvline(k - 0.5, color=GREY, linewidth=0.6)


def own_part(node: Hashable, above: Hashable) -> Hashable:
    """Return the name of a node without the name above it, where it is the whole path down to it."""
    if not (isinstance(node, str) and isinstance(above, str) and node.startswith(above)):
        return node
    rest = node[len(above) :]
    own = rest.lstrip(" /.>|:\\")
    return own if own and own != rest else node
