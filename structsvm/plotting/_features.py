"""The features with the largest weights for a label."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from structsvm.plotting._drawing import BLUE, GREY, ORANGE, attribute, shortened, subplots
from structsvm.tasks.common.inspection.weights import WeightTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class FeatureDisplay:
    """Bars of the features with the largest weights for a label.

    Parameters
    ----------
    names : sequence of str of length n_shown
    weights : array of shape (n_shown,)
    label : hashable, optional

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure

    Raises
    ------
    ValueError
        The lengths differ.

    Examples
    --------
    >>> from structsvm.plotting import FeatureDisplay
    >>> from structsvm.tasks import SequenceLabeler
    >>> model = SequenceLabeler(C=1.0, random_state=0).fit([["the", "cat"], ["a", "dog"]], [["DT", "NN"]] * 2)
    >>> FeatureDisplay.from_estimator(model, "DT", k=2).label
    'DT'
    """

    def __init__(self, names: Sequence[object], weights: ArrayLike, label: Hashable = None) -> None:
        self.names = [str(name) for name in names]
        self.weights = np.asarray(weights, dtype=np.float64)
        self.label = label
        if self.weights.shape != (len(self.names),):
            raise ValueError(f"{len(self.names)} names and weights of {self.weights.shape}.")

    @classmethod
    def from_estimator(
        cls, estimator: Any, label: Hashable = None, *, k: int = 15, ax: Axes | None = None
    ) -> FeatureDisplay:
        """Draw the k features with the largest absolute weight for a label, or for any of them.

        Parameters
        ----------
        estimator : estimator with weights of named features (``top_features``)
            Or with ``emission_`` (n_features, n_labels), ``classes_`` and, if they have names, ``feature_names_``.
        label : hashable, optional
            One of those with weights. None: the heaviest pairs of feature and label.
        k : int
            Number of features to show.
        ax : matplotlib.axes.Axes, optional

        Returns
        -------
        FeatureDisplay

        Raises
        ------
        ValueError
            The label is not one of those with weights.
        TypeError
            The estimator is not fitted, or has no weights of named features.
        """
        table = _table(estimator)
        if label is None:
            rows, columns, weights = table.entries()
            order = np.argsort(-np.abs(weights), kind="stable")[:k]
            shown = [
                f"{table.features[i]}" if table.labels[j] is None else f"{table.features[i]} → {table.labels[j]}"
                for i, j in zip(rows[order].tolist(), columns[order].tolist())
            ]
        else:
            weights = table.column(label)
            order = np.argsort(-np.abs(weights), kind="stable")[:k]
            shown = [table.features[i] for i in order.tolist()]
        by_sign = np.argsort(-weights[order], kind="stable")
        return cls([shown[i] for i in by_sign.tolist()], weights[order][by_sign], label).plot(ax=ax)

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
        self.ax_.set(xlabel="weight" if self.label is None else f"weight for {shortened(self.label, 40)}")
        return self


def _table(estimator: Any) -> WeightTable:
    """The weights of one of our estimators, or of another one with these attributes."""
    model = getattr(estimator, "model_", None)
    if model is not None:
        found: WeightTable = model.weight_table()
        return found
    emission, classes = (attribute(estimator, name) for name in ("emission_", "classes_"))
    names = getattr(estimator, "feature_names_", None)
    names = [f"feature {j}" for j in range(len(emission))] if names is None else [str(name) for name in names]
    return WeightTable(names, list(classes), emission)
