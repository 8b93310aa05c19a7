"""The features with the largest weights for a label."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from structsvm.plotting._drawing import BLUE, GREY, ORANGE, attribute, shortened, subplots

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class FeatureDisplay:
    """Bars of the features with the largest weights for a label.

    Parameters
    ----------
    names : sequence of str of length n_shown
    weights : array of shape (n_shown,)
    label : hashable

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure

    Raises
    ------
    ValueError
        The lengths differ.
    """

    def __init__(self, names: Sequence[object], weights: ArrayLike, label: Hashable) -> None:
        self.names = [str(name) for name in names]
        self.weights = np.asarray(weights, dtype=np.float64)
        self.label = label
        if self.weights.shape != (len(self.names),):
            raise ValueError(f"{len(self.names)} names and weights of {self.weights.shape}.")

    @classmethod
    def from_estimator(cls, estimator: Any, label: Hashable, *, k: int = 15, ax: Axes | None = None) -> FeatureDisplay:
        """Draw the k features with the largest absolute ``emission_`` weight for a label.

        Parameters
        ----------
        estimator : estimator with ``emission_`` (n_features, n_labels), ``classes_``
            Names come from ``feature_names_``, if it has them.
        label : hashable
            One of ``classes_``.
        k : int
            Number of features to show.
        ax : matplotlib.axes.Axes, optional

        Returns
        -------
        FeatureDisplay

        Raises
        ------
        ValueError
            The label is not one of ``classes_``.
        """
        emission, classes = (attribute(estimator, name) for name in ("emission_", "classes_"))
        classes = list(classes)
        if label not in classes:
            raise ValueError(f"label must be one of {classes}. Got {label!r}.")
        weights = np.asarray(emission[:, classes.index(label)], dtype=np.float64)
        names = getattr(estimator, "feature_names_", None)
        order = np.argsort(-np.abs(weights), kind="stable")[:k]
        order = order[np.argsort(-weights[order], kind="stable")]
        shown = [f"feature {i}" if names is None else names[i] for i in order]
        return cls(shown, weights[order], label).plot(ax=ax)

    def plot(self, ax: Axes | None = None) -> FeatureDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            By default those of a new figure.

        Returns
        -------
        self : FeatureDisplay
        """
        n_shown = len(self.names)
        if ax is None:
            height = max(0.28 * n_shown + 1.0, 2.0)
            ax = subplots(figsize=(6.4, height), layout="constrained")
        self.ax_: Axes = ax
        self.figure_ = self.ax_.figure
        colors = np.where(self.weights >= 0, BLUE, ORANGE)
        self.ax_.barh(range(n_shown), self.weights, color=colors, height=0.7)
        self.ax_.set_yticks(range(n_shown), [shortened(name, 40) for name in self.names])
        self.ax_.invert_yaxis()
        self.ax_.axvline(0, color="black", linewidth=0.8)
        self.ax_.grid(axis="x", color=GREY, alpha=0.3, linewidth=0.6)
        self.ax_.set_axisbelow(True)
        self.ax_.tick_params(axis="y", length=0)
        self.ax_.spines[["top", "right", "left"]].set_visible(False)
        self.ax_.set(xlabel=f"weight for {shortened(self.label, 40)}")
        return self
