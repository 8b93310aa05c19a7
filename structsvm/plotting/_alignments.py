"""Alignments as paths in a dot plot."""

from __future__ import annotations

import numpy as np

from structsvm.plotting._drawing import BLUE, GREEN, GREY, ORANGE, subplots
from structsvm.structures.gapped import split_rows

__all__ = ["AlignmentDisplay"]


class AlignmentDisplay:
    """Dot plot of two sequences with the paths of their alignments.

    Parameters
    ----------
    alignments : dict of str to (str, str)
        Names and gapped rows, all of the same two sequences; the first is drawn widest.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure

    Raises
    ------
    ValueError
        The rows are no alignments, or not of the same sequences.
    """

    def __init__(self, alignments):
        parts = {name: split_rows(*rows) for name, rows in alignments.items()}
        if len({(x, z) for x, z, _ in parts.values()}) != 1:
            raise ValueError("the alignments must be at least one, and all of the same two sequences")
        self.x, self.z, _ = next(iter(parts.values()))
        self.paths = {}
        for name, (_, _, operations) in parts.items():
            steps = np.array([[o in b"MmX", o in b"MmZ"] for o in operations])
            self.paths[name] = np.concatenate([[[0, 0]], np.cumsum(steps, axis=0)])

    @classmethod
    def from_predictions(cls, y_true, y_pred, *, ax=None):
        """Draw a reference alignment and a predicted one, each a pair of gapped rows."""
        return cls({"reference": y_true, "predicted": y_pred}).plot(ax=ax)

    def plot(self, ax=None):
        """Draw, on new axes by default: dots for equal letters, a line for each alignment. Returns self."""
        self.ax_ = subplots(figsize=(7.0, 6.4), layout="constrained") if ax is None else ax
        self.figure_ = self.ax_.figure
        i, j = np.nonzero(np.array(list(self.x))[:, None] == np.array(list(self.z)))
        self.ax_.scatter(j + 0.5, i + 0.5, s=3, color=GREY, linewidths=0, label="equal letters")
        colors = [ORANGE, BLUE, GREEN]
        for k, (name, path) in enumerate(self.paths.items()):
            self.ax_.plot(path[:, 1], path[:, 0], color=colors[k % 3], linewidth=max(4.0 - 2.0 * k, 1.2), label=name)
        self.ax_.set(xlim=(0, len(self.z)), ylim=(len(self.x), 0), xlabel="z", ylabel="x")
        self.ax_.legend(frameon=False, loc="upper right")
        return self
