"""Primal, dual and gap of a training run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from structsvm.plotting._drawing import BLUE, GREEN, GREY, ORANGE, attribute, subplots

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class HistoryDisplay:
    """Primal, dual and their gap against training time.

    Parameters
    ----------
    history : dict of str to array of shape (n_records,), float64
        ``result_.history``: "seconds", "primal", "dual" and "gap" of each record; NaN if not computed.

    Attributes
    ----------
    ax_ : tuple of matplotlib.axes.Axes
        The axes of primal and dual (linear scale) and of the gap (log scale).
    figure_ : matplotlib.figure.Figure

    Raises
    ------
    ValueError
        A key is missing, or the arrays differ in length.
    """

    def __init__(self, history: Mapping[str, ArrayLike]) -> None:
        keys = ("seconds", "primal", "dual", "gap")
        missing = [key for key in keys if key not in history]
        if missing:
            raise ValueError(f"history has no {', '.join(map(repr, missing))}.")
        self.history = {key: np.asarray(history[key], dtype=np.float64) for key in keys}
        if len({values.shape for values in self.history.values()}) != 1:
            raise ValueError("the arrays of history must have one length.")

    @classmethod
    def from_result(cls, result: Any, *, ax: Sequence[Axes] | None = None) -> HistoryDisplay:
        """Draw the history of a solver's result (its attribute ``history``)."""
        return cls(result.history).plot(ax=ax)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Sequence[Axes] | None = None) -> HistoryDisplay:
        """Draw the history of a fitted estimator (its attribute ``result_``)."""
        return cls.from_result(attribute(estimator, "result_"), ax=ax)

    def plot(self, ax: Sequence[Axes] | None = None) -> HistoryDisplay:
        """Draw.

        Parameters
        ----------
        ax : sequence of two matplotlib.axes.Axes, optional
            Axes for the objectives and for the gap; by default two in a new figure.

        Returns
        -------
        self : HistoryDisplay
        """
        if ax is None:
            shape = {"nrows": 2, "sharex": True, "height_ratios": (3, 2)}
            ax = subplots(figsize=(6.4, 5.4), layout="constrained", **shape)
        objectives, gaps = ax
        self.ax_ = (objectives, gaps)
        self.figure_ = objectives.figure
        self._line(objectives, "primal", color=ORANGE)
        self._line(objectives, "dual", color=BLUE)
        objectives.set(ylabel="objective")
        self._limit_objectives(objectives)
        if objectives.lines:
            objectives.legend(frameon=False, loc="best")

        self._line(gaps, "gap", only_positive=True, color=GREEN)
        gaps.set(xlabel="training time (seconds)", ylabel="duality gap")
        if gaps.lines:
            gaps.set_yscale("log")
        else:
            gaps.text(0.5, 0.5, "no gap recorded", ha="center", va="center", transform=gaps.transAxes)
        for axes in self.ax_:
            axes.grid(color=GREY, alpha=0.3, linewidth=0.6)
            axes.spines[["top", "right"]].set_visible(False)
        self.figure_.align_ylabels(self.ax_)
        return self

    def _line(self, ax: Axes, key: str, only_positive: bool = False, **kw: Any) -> None:
        values = self.history[key]
        known = np.isfinite(values) & (values > 0 if only_positive else True)
        if known.any():
            marker = "o" if np.count_nonzero(known) <= 40 else None
            seconds = self.history["seconds"][known]
            ax.plot(seconds, values[known], label=key, marker=marker, markersize=3.5, **kw)

    def _limit_objectives(self, ax: Axes) -> None:
        """Clip the first primal values, often hundreds of times the optimum."""
        primal, dual = (self.history[key] for key in ("primal", "dual"))
        primal, dual = primal[np.isfinite(primal)], dual[np.isfinite(dual)]
        if not len(primal) or not len(dual) or dual.max() <= 0:
            return
        best, low = primal.min(), min(dual.min(), 0.0)
        top = best + max(best - low, 0.0)
        if primal.max() > top > low:
            margin = 0.05 * (top - low)
            ax.set_ylim(low - margin, top + margin)
