"""A substitution matrix."""

from __future__ import annotations

import numpy as np

from structsvm.plotting._drawing import attribute, heat_map, matrix_axes

__all__ = ["SubstitutionDisplay"]


class SubstitutionDisplay:
    """Heat map of a substitution matrix.

    Parameters
    ----------
    matrix : SubstitutionMatrix

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure
    """

    def __init__(self, matrix):
        self.matrix = matrix

    @classmethod
    def from_estimator(cls, estimator, *, ax=None, **kw):
        """Draw ``substitution_matrix_`` of a fitted `SequenceAligner`."""
        return cls(attribute(estimator, "substitution_matrix_")).plot(ax=ax, **kw)

    def plot(self, ax=None, *, cmap="PuOr"):
        """Draw, on new axes by default; `cmap` has its middle at 0. Returns self."""
        letters = self.matrix.alphabet
        self.ax_ = matrix_axes(len(letters)) if ax is None else ax
        self.figure_ = self.ax_.figure
        limit = float(np.abs(self.matrix.values).max()) or 1.0
        heat_map(self.ax_, self.matrix.values, letters, ".2f", "score", cmap=cmap, vmin=-limit, vmax=limit)
        self.ax_.set(xlabel="letter of z", ylabel="letter of x")
        return self
