"""Which labels are taken for which."""

from __future__ import annotations

from itertools import chain

import numpy as np

from structsvm.plotting._drawing import heat_map, matrix_axes, square

__all__ = ["ConfusionDisplay"]


class ConfusionDisplay:
    """Confusion matrix of labels.

    Parameters
    ----------
    matrix : array of shape (n_labels, n_labels)
        Number of tokens of a true label (row) that were given a label (column).
    labels : sequence of length n_labels

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure

    Raises
    ------
    ValueError
        The shapes do not agree.
    """

    def __init__(self, matrix, labels):
        self.matrix = square(matrix, labels, "matrix")
        self.labels = list(labels)

    @classmethod
    def from_estimator(cls, estimator, X, y, *, labels=None, ax=None, **kw):
        """Draw the confusions of ``estimator.predict(X)`` with y; see from_predictions."""
        return cls.from_predictions(y, estimator.predict(X), labels=labels, ax=ax, **kw)

    @classmethod
    def from_predictions(cls, y_true, y_pred, *, labels=None, ax=None, **kw):
        """Draw the confusions of label sequences.

        Parameters
        ----------
        y_true, y_pred : list of (list of label)
            Label sequences of equal lengths.
        labels : sequence of labels, optional
            Rows and columns to show, in this order; by default all labels, the most frequent in
            ``y_true`` first. Tokens with another label are left out.
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

        report = label_report(y_true, y_pred)
        if labels is None:
            labels = sorted(report, key=lambda label: -report[label].support)
        number = {label: k for k, label in enumerate(labels)}
        matrix = np.zeros((len(number), len(number)), dtype=np.int64)
        true, pred = (
            np.array([number.get(label, -1) for label in chain.from_iterable(y)], dtype=np.intp)
            for y in (y_true, y_pred)
        )
        shown = (true >= 0) & (pred >= 0)
        np.add.at(matrix, (true[shown], pred[shown]), 1)
        return cls(matrix, list(number)).plot(ax=ax, **kw)

    def plot(self, ax=None, *, normalize=True, cmap="Blues"):
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            By default those of a new figure.
        normalize : bool
            Show fractions of the true label (rows), else counts. The colour scale is bent, so that
            rare errors are seen beside a full diagonal: fractions to the power 0.4, counts by log.
        cmap : str or Colormap

        Returns
        -------
        self : ConfusionDisplay
        """
        self.ax_ = matrix_axes(len(self.labels)) if ax is None else ax
        self.figure_ = self.ax_.figure
        from matplotlib.colors import PowerNorm, SymLogNorm

        if normalize:
            values = self.matrix / np.maximum(self.matrix.sum(axis=1, keepdims=True), 1)
            text = (".2f", "fraction of the true label")
            heat_map(self.ax_, values, self.labels, *text, cmap=cmap, norm=PowerNorm(0.4, 0.0, 1.0))
        else:
            norm = SymLogNorm(1.0, vmin=0.0, vmax=max(float(self.matrix.max()), 1.0))
            heat_map(self.ax_, self.matrix, self.labels, ".0f", "tokens", cmap=cmap, norm=norm)
        self.ax_.set(xlabel="predicted label", ylabel="true label")
        return self
