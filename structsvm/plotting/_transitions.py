"""The weights of label pairs."""

from __future__ import annotations

import numpy as np

from structsvm.plotting._drawing import GREY, attribute, heat_map, matrix_axes, square

__all__ = ["TransitionDisplay"]


class TransitionDisplay:
    """Heat map of the weights of label pairs.

    Parameters
    ----------
    transition : array of shape (n_labels, n_labels)
        Weight of a label (row) followed by a label (column); infinite where forbidden.
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

    def __init__(self, transition, labels):
        self.transition = square(transition, labels, "transition")
        self.labels = list(labels)

    @classmethod
    def from_estimator(cls, estimator, *, ax=None, **kw):
        """Draw ``transition_`` of a fitted estimator, with the names in ``classes_``."""
        transition, labels = (attribute(estimator, name) for name in ("transition_", "classes_"))
        return cls(transition, labels).plot(ax=ax, **kw)

    def plot(self, ax=None, *, cmap="PuOr"):
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            By default those of a new figure.
        cmap : str or Colormap
            Diverging colours, their middle at weight 0; forbidden pairs are grey.

        Returns
        -------
        self : TransitionDisplay
        """
        self.ax_ = matrix_axes(len(self.labels)) if ax is None else ax
        self.figure_ = self.ax_.figure
        weights = np.ma.masked_invalid(self.transition)
        limit = float(np.abs(weights).max()) if weights.count() else 0.0
        limit = limit or 1.0
        self.ax_.set_facecolor(GREY)
        heat_map(self.ax_, weights, self.labels, ".2f", "weight", cmap=cmap, vmin=-limit, vmax=limit)
        self.ax_.set(xlabel="label", ylabel="label before")
        return self
