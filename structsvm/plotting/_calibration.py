"""Reliability diagrams."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.plotting._drawing import GREY, subplots

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

    from structsvm.metrics import CalibrationScores

PERFECT = "as sure as right"


class CalibrationDisplay:
    """Reliability diagram: how often predictions are right, against the probability that they were given.

    Parameters
    ----------
    scores : CalibrationScores
        As `structsvm.metrics.calibration_scores` returns them.
    name : str, optional
        For the legend.

    Attributes
    ----------
    line_ : matplotlib.lines.Line2D
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure

    Examples
    --------
    >>> from structsvm.plotting import CalibrationDisplay
    >>> CalibrationDisplay.from_predictions([0.5, 0.9], [False, True], n_bins=2).scores.accuracy.tolist()
    [0.0, 1.0]
    """

    def __init__(self, scores: CalibrationScores, name: str | None = None) -> None:
        self.scores, self.name = scores, name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        n_bins: int = 15,
        name: str | None = None,
        ax: Axes | None = None,
        **kw: Any,
    ) -> CalibrationDisplay:
        """Draw the diagram of an estimator's predictions: of classes, or of labels of tokens or nodes.

        Classifiers have `predict_proba`, labelers of sequences and graphs `predict_marginals`; of these what y says
        nothing of is left out. See from_predictions; by default the name is the estimator's.
        """
        from structsvm.metrics._counts import AUTO, mark_for, paired
        from structsvm.metrics._graphs import by_node
        from structsvm.tasks.common.labels import agreement

        predicted = estimator.predict(X)
        at = {label: k for k, label in enumerate(np.asarray(estimator.classes_).tolist())}
        says: NDArray[np.bool_] | slice
        if hasattr(estimator, "predict_marginals"):
            rows = np.concatenate([np.reshape(own, (-1, len(at))) for own in estimator.predict_marginals(X)])
            pairs = zip(*paired(y, predicted, "lists of labels"), strict=True)
            true = [{v: own.get(v) for v in of} if isinstance(own, dict) else own for own, of in pairs]
            lists = zip(*map(by_node, true, predicted, count()), strict=True)
            y, predicted = ([label for labels in own for label in labels] for own in lists)
            unknown = mark_for(getattr(estimator, "unknown", AUTO), at)
            right, says = agreement(y, predicted, unknown, (set, frozenset), seen=at)
        else:
            rows, says = estimator.predict_proba(X), slice(None)
            right = np.asarray(predicted) == np.asarray(y)
        sure = rows[np.arange(len(rows)), [at[label] for label in np.asarray(predicted).tolist()]]
        name = type(estimator).__name__ if name is None else name
        return cls.from_predictions(sure[says], right[says], n_bins=n_bins, name=name, ax=ax, **kw)

    @classmethod
    def from_predictions(
        cls,
        confidence: ArrayLike,
        right: ArrayLike,
        *,
        n_bins: int = 15,
        name: str | None = None,
        ax: Axes | None = None,
        **kw: Any,
    ) -> CalibrationDisplay:
        """Draw the diagram of predictions.

        Parameters
        ----------
        confidence, right, n_bins : as for `structsvm.metrics.calibration_scores`
        name : str, optional
        ax : matplotlib.axes.Axes, optional
            The axes of another display put both curves into one diagram.
        **kw
            Arguments of matplotlib's ``plot``.

        Returns
        -------
        CalibrationDisplay
        """
        from structsvm.metrics import calibration_scores

        return cls(calibration_scores(confidence, right, n_bins=n_bins), name).plot(ax=ax, **kw)

    def plot(self, ax: Axes | None = None, **kw: Any) -> CalibrationDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            By default those of a new figure.
        **kw
            Arguments of matplotlib's ``plot``.

        Returns
        -------
        self : CalibrationDisplay
        """
        self.ax_: Axes = subplots(figsize=(5.0, 4.6), layout="constrained") if ax is None else ax
        self.figure_ = self.ax_.figure
        if PERFECT not in [line.get_label() for line in self.ax_.lines]:
            self.ax_.plot([0.0, 1.0], [0.0, 1.0], color=GREY, linewidth=0.8, linestyle="--", label=PERFECT)
            self.ax_.set(xlabel="mean probability of the predictions", ylabel="share of them that is right")
            self.ax_.spines[["top", "right"]].set_visible(False)
        text = f"error {100.0 * self.scores.error:.1f} %"
        style: dict[str, Any] = {
            "marker": "o",
            "markersize": 3.5,
            "label": text if self.name is None else f"{self.name}: {text}",
        }
        self.line_: Line2D = self.ax_.plot(self.scores.confidence, self.scores.accuracy, **style | kw)[0]
        self.ax_.legend(frameon=False, loc="best")
        return self
