"""Alignments as paths in a dot plot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm.plotting._drawing import BLUE, GREEN, GREY, ORANGE, shortened, subplots
from structsvm.structures.gapped import as_rows, split_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class AlignmentDisplay:
    """Dot plot of two sequences with the paths of their alignments.

    Parameters
    ----------
    alignments : dict of str to (str, str)
        Gapped rows, or alignments of Biopython, by name, all of the same two sequences; the first is drawn widest.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure

    Raises
    ------
    ValueError
        The rows are not alignments, or have different sequences.

    Examples
    --------
    >>> from structsvm.plotting import AlignmentDisplay
    >>> AlignmentDisplay.from_predictions(("AC-GT", "ACTGA"), ("ACG-T", "ACTGA")).ax_.get_xlabel()
    'z'
    """

    def __init__(self, alignments: Mapping[str, tuple[str, str]]) -> None:
        parts = {name: split_rows(*as_rows(rows)) for name, rows in alignments.items()}
        if not parts or any(part[:2] != next(iter(parts.values()))[:2] for part in parts.values()):
            raise ValueError("there must be at least one alignment, and all of the same two sequences")
        self.x, self.z, _ = next(iter(parts.values()))
        self.paths = {}
        for name, (_, _, operations) in parts.items():
            steps = np.array([[o in b"MmX", o in b"MmZ"] for o in operations])
            self.paths[name] = np.concatenate([[[0, 0]], np.cumsum(steps, axis=0)])

    @classmethod
    def from_predictions(
        cls, y_true: tuple[str, str], y_pred: tuple[str, str], *, ax: Axes | None = None
    ) -> AlignmentDisplay:
        """Draw a reference alignment and a predicted one, each a pair of gapped rows."""
        return cls({"reference": y_true, "predicted": y_pred}).plot(ax=ax)

    def plot(self, ax: Axes | None = None) -> AlignmentDisplay:
        """Draw, on new axes by default: dots for equal letters, a line per alignment. Returns self."""
        self.ax_: Axes = subplots(figsize=(7.0, 6.4), layout="constrained") if ax is None else ax
        self.figure_ = self.ax_.figure
        i, j = np.nonzero(np.array(list(self.x))[:, None] == np.array(list(self.z)))
        self.ax_.scatter(j + 0.5, i + 0.5, s=3, color=GREY, linewidths=0, label="equal letters")
        colors = [ORANGE, BLUE, GREEN]
        for k, (name, path) in enumerate(self.paths.items()):
            style: dict[str, Any] = {
                "color": colors[k % 3],
                "linewidth": max(4.0 - 2.0 * k, 1.2),
                "label": shortened(name, 40),
            }
            self.ax_.plot(path[:, 1], path[:, 0], **style)
        self.ax_.set(xlim=(0, len(self.z)), ylim=(len(self.x), 0), xlabel="z", ylabel="x")
        self.ax_.legend(frameon=False, loc="upper right")
        return self
