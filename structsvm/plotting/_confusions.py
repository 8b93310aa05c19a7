"""Confusions of labels."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import chain, count
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from structsvm.plotting._drawing import confusion_matrix, fraction_map, heat_map, matrix_axes, square

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

    from structsvm.metrics._labels import LabelSequences


class ConfusionDisplay:
    """Confusion matrix of labels.

    Parameters
    ----------
    matrix : array of shape (n_labels, n_labels)
        Number of tokens per true label (row) and predicted label (column).
    labels : sequence of length n_labels

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure

    Raises
    ------
    ValueError
        The shapes do not agree.

    Examples
    --------
    >>> from structsvm.plotting import ConfusionDisplay
    >>> ConfusionDisplay.from_predictions([["DT", "NN"], ["NN"]], [["DT", "NN"], ["DT"]]).matrix.tolist()
    [[1, 1], [0, 1]]
    """

    def __init__(self, matrix: ArrayLike, labels: Sequence[Hashable]) -> None:
        self.matrix = square(matrix, labels, "matrix")
        self.labels = list(labels)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: LabelSequences | Sequence[Hashable],
        *,
        labels: Sequence[Hashable] | None = None,
        ax: Axes | None = None,
        **kw: Any,
    ) -> ConfusionDisplay:
        """Draw the confusions of ``estimator.predict(X)`` with y; see from_predictions."""
        return cls.from_predictions(y, estimator.predict(X), labels=labels, ax=ax, **kw)

    @classmethod
    def from_predictions(
        cls,
        y_true: LabelSequences | Sequence[Hashable],
        y_pred: LabelSequences | Sequence[Hashable],
        *,
        labels: Sequence[Hashable] | None = None,
        ax: Axes | None = None,
        **kw: Any,
    ) -> ConfusionDisplay:
        """Draw the confusions of label sequences, of labels of graphs, or of classes.

        Parameters
        ----------
        y_true, y_pred : list of (list, array of any shape, or dict by node, of labels); or list of label
            Both of one length.
        labels : sequence of labels, optional
            Rows and columns to show, in this order; by default all labels, the most frequent in ``y_true`` first.
            Tokens with another label are left out.
        ax : matplotlib.axes.Axes, optional
        **kw
            Arguments of :meth:`plot`.

        Returns
        -------
        ConfusionDisplay

        Raises
        ------
        ValueError, TypeError
            As in :func:`structsvm.metrics.label_report`.
        """
        from structsvm.metrics import label_report
        from structsvm.metrics._graphs import by_node, of_nodes

        a: Any = list(y_true)
        b: Any = list(y_pred)
        if a and all(isinstance(label, (str, bytes)) or not hasattr(label, "__len__") for label in a):
            a, b = [a], [b]
        if len(a) == len(b) and any(map(of_nodes, a)):
            a, b = zip(*map(by_node, a, b, count()), strict=True)
        report = label_report(a, b)
        if labels is None:
            labels = sorted(report, key=lambda label: -report[label].support)
        labels = list(dict.fromkeys(labels))
        true, pred = (list(chain.from_iterable(y)) for y in (a, b))
        return cls(confusion_matrix(true, pred, labels), labels).plot(ax=ax, **kw)

    def plot(
        self, ax: Axes | None = None, *, normalize: bool = True, cmap: str | Colormap = "Blues"
    ) -> ConfusionDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            By default those of a new figure.
        normalize : bool
            Show fractions of the true label (rows), else counts. The colour scale is not linear, so that rare errors
            are visible beside a full diagonal: fractions to the power 0.4, counts by log.
        cmap : str or Colormap

        Returns
        -------
        self : ConfusionDisplay
        """
        self.ax_: Axes = matrix_axes(len(self.labels)) if ax is None else ax
        self.figure_ = self.ax_.figure
        if normalize:
            fraction_map(self.ax_, self.matrix, self.labels, cmap)
            return self
        from matplotlib.colors import SymLogNorm

        norm = SymLogNorm(1.0, vmin=0.0, vmax=max(float(self.matrix.max()), 1.0))
        heat_map(self.ax_, self.matrix, self.labels, ".0f", "tokens", cmap=cmap, norm=norm)
        self.ax_.set(xlabel="predicted label", ylabel="true label")
        return self
