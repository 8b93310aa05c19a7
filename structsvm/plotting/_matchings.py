"""Matchings in the table of their pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm.plotting._drawing import BLUE, ORANGE, name_ticks, subplots

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class MatchingDisplay:
    """The table of pairs of one example, with a true matching and a predicted one.

    Parameters
    ----------
    y_true, y_pred : int array of shape (n_left,)
        The right node of each left one, -1 if it is unmatched.
    left, right : list of str
        Names of the nodes.
    scores : array of shape (n_left, n_right), optional
        Drawn as shades of grey; pairs that are not finite stay white.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure

    Raises
    ------
    ValueError
        The shapes do not fit.

    Examples
    --------
    >>> from structsvm.plotting import MatchingDisplay
    >>> MatchingDisplay.from_predictions([0, 1], [0, -1], ["the", "cat"], ["le", "chat"]).y_pred.tolist()
    [0, -1]
    """

    def __init__(
        self, y_true: Any, y_pred: Any, left: Sequence[object], right: Sequence[object], scores: Any = None
    ) -> None:
        self.y_true, self.y_pred = np.asarray(y_true), np.asarray(y_pred)
        self.left, self.right = list(left), list(right)
        shape = len(self.left), len(self.right)
        self.scores = np.zeros(shape) if scores is None else np.asarray(scores, dtype=np.float64)
        for name, y in (("y_true", self.y_true), ("y_pred", self.y_pred)):
            if y.shape != shape[:1] or not -1 <= y.min(initial=-1) <= y.max(initial=-1) < shape[1]:
                raise ValueError(f"{name} must be {shape[0]} integers from -1 to {shape[1] - 1}, got {y!r:.80}")
        if self.scores.shape != shape or 0 in shape:
            raise ValueError(f"scores must have shape {shape}, and at least one pair; got {self.scores.shape}")

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_pred: Any,
        left: Sequence[object],
        right: Sequence[object],
        *,
        scores: Any = None,
        ax: Axes | None = None,
    ) -> MatchingDisplay:
        """Draw the matchings of one example."""
        return cls(y_true, y_pred, left, right, scores).plot(ax=ax)

    def plot(self, ax: Axes | None = None) -> MatchingDisplay:
        """Draw, on new axes by default: a square per true pair, a dot per predicted one. Returns self."""
        n, m = self.scores.shape
        size = (min(max(0.35 * m, 3.5), 12.0) + 1.5, min(max(0.35 * n, 3.0), 12.0) + 0.5)
        self.ax_: Axes = subplots(figsize=size, layout="compressed") if ax is None else ax
        self.figure_ = self.ax_.figure
        shades = np.ma.masked_invalid(self.scores)
        self.ax_.imshow(shades, cmap="Greys", interpolation="nearest", alpha=0.6, aspect="auto")
        for name, y, style in (
            ("true", self.y_true, {"marker": "s", "s": 130, "facecolors": "none", "edgecolors": BLUE}),
            ("predicted", self.y_pred, {"marker": "o", "s": 40, "color": ORANGE}),
        ):
            matched = np.flatnonzero(y >= 0)
            self.ax_.scatter(y[matched], matched, label=name, **style)  # type: ignore[arg-type]
        name_ticks(self.ax_, "x", self.right)
        name_ticks(self.ax_, "y", self.left)
        self.ax_.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        return self
