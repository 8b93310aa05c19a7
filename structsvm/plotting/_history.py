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

    Examples
    --------
    >>> from structsvm.plotting import HistoryDisplay
    >>> from structsvm.tasks import SequenceLabeler
    >>> model = SequenceLabeler(C=1.0, tol=0.01, random_state=0).fit([["the", "cat"]], [["DT", "NN"]])
    >>> HistoryDisplay.from_estimator(model).ax_[1].get_yscale()
    'log'
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
        return cls.from_result(_result(estimator), ax=ax)

    @staticmethod
    def from_results(
        results: Mapping[str, Any],
        *,
        x: str = "seconds",
        colors: Mapping[str, Any] | None = None,
        ax: Axes | None = None,
        **line: Any,
    ) -> HistoryComparison:
        """Draw the relative gaps of several results, by name, on one axes.

        Parameters
        ----------
        results : dict of str to Result, or to fitted estimator
            Names are the labels of the lines.
        x : {"seconds", "n_argmax", "n_iter"}
            The horizontal axis: training time, calls of the oracle, passes.
        colors : dict of str to color, optional
            Colours of some lines or all.
        ax : matplotlib.axes.Axes, optional
        line : dict
            Further arguments of each ``ax.plot``.
        """
        histories = {
            name: getattr(result, "history", None) or _result(result).history for name, result in results.items()
        }
        return HistoryComparison(histories, x).plot(ax=ax, colors=colors, **line)

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


def _result(estimator: Any) -> Any:
    """The `result_` of an estimator; ValueError if it was not trained."""
    result = attribute(estimator, "result_")
    if result is None:
        raise ValueError(f"{type(estimator).__name__} has no history: it was not trained.")
    return result


X_LABELS = {"seconds": "training time (seconds)", "n_argmax": "calls of the oracle", "n_iter": "passes"}


class HistoryComparison:
    """Relative gaps of several runs, on a logarithmic axis.

    Parameters
    ----------
    histories : dict of str to dict
        ``result_.history`` by name.
    x : {"seconds", "n_argmax", "n_iter"}

    Attributes
    ----------
    gaps : dict of str to (array, array)
        x and the relative gap of the records that have one above 0.
    lines_ : dict of str to matplotlib.lines.Line2D
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure

    Raises
    ------
    ValueError
        No such x, no results, or none with a gap.

    Examples
    --------
    >>> from structsvm.plotting import HistoryDisplay
    >>> from structsvm.tasks import SequenceLabeler
    >>> model = SequenceLabeler(C=1.0, tol=0.01, random_state=0).fit([["the", "cat"]], [["DT", "NN"]])
    >>> list(HistoryDisplay.from_results({"larank": model.result_}, x="n_argmax").lines_)
    ['larank']
    """

    def __init__(self, histories: Mapping[str, Mapping[str, ArrayLike]], x: str = "seconds") -> None:
        if x not in X_LABELS:
            raise ValueError(f"x must be one of {', '.join(map(repr, X_LABELS))}. Got {x!r}.")
        self.x = x
        self.gaps: dict[str, tuple[Any, Any]] = {}
        for name, history in histories.items():
            missing = [key for key in (x, "primal", "gap") if key not in history]
            if missing:
                raise ValueError(f"the history of {name!r} has no {', '.join(map(repr, missing))}.")
            places, primal, gap = (np.asarray(history[key], dtype=np.float64) for key in (x, "primal", "gap"))
            with np.errstate(divide="ignore", invalid="ignore"):
                relative = np.where(np.isinf(primal), 1.0, gap / np.abs(primal))
            known = np.isfinite(relative) & (relative > 0.0)
            self.gaps[name] = places[known], relative[known]
        if not any(len(relative) for _, relative in self.gaps.values()):
            raise ValueError("none of the results has a gap: solvers record one with tol, and at the end of training.")

    def plot(
        self, ax: Axes | None = None, *, colors: Mapping[str, Any] | None = None, **line: Any
    ) -> HistoryComparison:
        """Draw, on new axes by default; see `HistoryDisplay.from_results`. Returns self."""
        unknown = set(colors or {}) - set(self.gaps)
        if unknown:
            raise ValueError(f"colors has {min(unknown)!r}, which is none of the results.")
        self.ax_ = subplots(figsize=(6.4, 4.2), layout="constrained") if ax is None else ax
        self.figure_ = self.ax_.figure
        self.lines_ = {}
        for name, (places, relative) in self.gaps.items():
            own = {} if colors is None or name not in colors else {"color": colors[name]}
            shape = {"label": name, "marker": "o" if len(relative) <= 40 else None, "markersize": 3.5}
            (self.lines_[name],) = self.ax_.plot(places, relative, **shape | line | own)
        self.ax_.set_yscale("log")
        self.ax_.set(xlabel=X_LABELS[self.x], ylabel="relative duality gap")
        self.ax_.grid(color=GREY, alpha=0.3, linewidth=0.6)
        self.ax_.spines[["top", "right"]].set_visible(False)
        self.ax_.legend(frameon=False)
        return self
