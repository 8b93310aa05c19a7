"""A taxonomy with what was found in it."""

from __future__ import annotations

import numpy as np

from structsvm.plotting._drawing import GREY, attribute, heat_map, shortened, square, subplots

__all__ = ["TaxonomyDisplay"]


class TaxonomyDisplay:
    """A taxonomy with the recall of every node, beside the confusion matrix of its labels in the order of the tree.

    Parameters
    ----------
    taxonomy : Taxonomy
    matrix : array of shape (n_labels, n_labels)
        Number of documents of a true label (row) that were given a label (column).
    labels : sequence of length n_labels
        Names of nodes.

    Attributes
    ----------
    labels : list
        In the order of the tree, like rows and columns of `matrix`.
    recall : dict
        For each node above the labels that occur: of the documents that belong to it or below it, the share that
        was put there. A node of several parents is drawn below the one on the way that `Taxonomy.path` takes, and
        counts for all of them.
    ax_ : tuple of matplotlib.axes.Axes
        The axes of the tree and of the matrix.
    figure_ : matplotlib.figure.Figure

    Raises
    ------
    ValueError
        The shapes do not agree, or a label is no node.
    """

    def __init__(self, taxonomy, matrix, labels):
        matrix = square(matrix, labels, "matrix")
        ways = {label: tuple(taxonomy.number(node) for node in taxonomy.path(label)) for label in labels}
        order = sorted(range(len(labels)), key=lambda k: ways[labels[k]])
        self.taxonomy = taxonomy
        self.labels = [labels[k] for k in order]
        self.matrix = matrix[np.ix_(order, order)]
        self._ways = [ways[label] for label in self.labels]
        below: dict = {}
        for k, label in enumerate(self.labels):
            for node in taxonomy.ancestors(label):
                below.setdefault(node, []).append(k)
        self.recall = {
            node: float(self.matrix[np.ix_(rows, rows)].sum() / self.matrix[rows].sum())
            for node, rows in below.items()
            if self.matrix[rows].any()
        }

    @classmethod
    def from_estimator(cls, estimator, X, y, *, ax=None, **kw):
        """Draw how `estimator.predict(X)` compares with y in ``estimator.taxonomy_``."""
        return cls.from_predictions(y, estimator.predict(X), attribute(estimator, "taxonomy_"), ax=ax, **kw)

    @classmethod
    def from_predictions(cls, y_true, y_pred, taxonomy, *, ax=None, **kw):
        """Draw the confusions of labels, each the name of a node, one a document."""
        from structsvm.structures.taxonomy import as_taxonomy

        y_true, y_pred = (np.asarray(y).tolist() for y in (y_true, y_pred))
        if len(y_true) != len(y_pred) or not y_true:
            raise ValueError(f"y_true has {len(y_true)} labels and y_pred has {len(y_pred)}; at least one is needed.")
        number = {label: k for k, label in enumerate(dict.fromkeys([*y_true, *y_pred]))}
        matrix = np.zeros((len(number), len(number)), dtype=np.int64)
        np.add.at(matrix, ([number[label] for label in y_true], [number[label] for label in y_pred]), 1)
        return cls(as_taxonomy(taxonomy), matrix, list(number)).plot(ax=ax, **kw)

    def plot(self, ax=None, *, cmap="Blues", tree_cmap="viridis"):
        """Draw.

        Parameters
        ----------
        ax : sequence of two matplotlib.axes.Axes, optional
            Axes for the tree and for the matrix; by default two in a new figure.
        cmap, tree_cmap : str or Colormap
            For shares of a true label, and for recalls; nodes without documents are grey.

        Returns
        -------
        self : TaxonomyDisplay
        """
        if ax is None:
            side = min(max(0.2 * len(self.labels), 4.5), 11.0)
            ax = subplots(ncols=2, figsize=(2.0 * side + 1.0, side), layout="constrained")
        self.ax_ = tuple(ax)
        self.figure_ = self.ax_[0].figure
        self._plot_tree(self.ax_[0], tree_cmap)
        self._plot_matrix(self.ax_[1], cmap)
        return self

    def _spans(self):
        """Level, first and last label of each node on the ways."""
        spans: dict = {}
        for k, way in enumerate(self._ways):
            for end in range(1, len(way) + 1):
                spans[way[:end]] = (spans.get(way[:end], (k, k))[0], k)
        return [(len(way) - 1, *span, self.taxonomy.nodes[way[-1]]) for way, span in spans.items()]

    def _plot_tree(self, ax, cmap):
        from matplotlib import colormaps
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import Normalize, to_rgba

        shade = colormaps.get_cmap(cmap)
        room = 60.0 / len(self.labels)  # a row in lines of small text
        for level, first, last, node in self._spans():
            recall = self.recall.get(node)
            face = to_rgba(GREY) if recall is None else shade(recall)
            ax.barh(0.5 * (first + last), 0.98, last - first + 1, level, color=face, edgecolor="white", linewidth=0.5)
            if (last - first + 1) * room >= 1.0:
                dark = 0.299 * face[0] + 0.587 * face[1] + 0.114 * face[2] < 0.5
                text = shortened(node, 22) if recall is None else f"{shortened(node, 18)} {recall:.2f}"
                color = "white" if dark else "black"
                ax.text(level + 0.03, 0.5 * (first + last), text, va="center", fontsize=7, color=color, clip_on=True)
        levels = max(map(len, self._ways))
        ax.set(xlim=(0, max(levels, 1)), ylim=(len(self.labels) - 0.5, -0.5), xlabel="depth", yticks=[])
        ax.set_xticks(np.arange(levels) + 0.5, range(1, levels + 1))
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        ax.figure.colorbar(ScalarMappable(Normalize(0.0, 1.0), shade), ax=ax, label="recall", fraction=0.046, pad=0.03)

    def _plot_matrix(self, ax, cmap):
        from matplotlib.colors import PowerNorm

        values = self.matrix / np.maximum(self.matrix.sum(axis=1, keepdims=True), 1)
        text = (".2f", "fraction of the true label")
        heat_map(ax, values, self.labels, *text, cmap=cmap, norm=PowerNorm(0.4, 0.0, 1.0))
        for k in range(1, len(self._ways)):
            if self._ways[k][:1] != self._ways[k - 1][:1]:  # another child of the root begins
                ax.axhline(k - 0.5, color=GREY, linewidth=0.6)
                ax.axvline(k - 0.5, color=GREY, linewidth=0.6)
        ax.set(xlabel="predicted label", ylabel="true label")
