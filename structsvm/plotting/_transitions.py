"""The weights of label pairs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from structsvm.plotting._drawing import attribute, matrix_axes, signed_map, square

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap


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

    Examples
    --------
    >>> from structsvm.plotting import TransitionDisplay
    >>> TransitionDisplay([[0.5, -1.0], [-0.2, 0.1]], ["DT", "NN"]).plot().ax_.get_xlabel()
    'label'
    """

    def __init__(self, transition: ArrayLike, labels: Sequence[Hashable]) -> None:
        self.transition = square(transition, labels, "transition")
        self.labels = list(labels)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None, **kw: Any) -> TransitionDisplay:
        """Draw ``transition_`` of a fitted estimator, with the names in ``classes_``."""
        transition, labels = (attribute(estimator, name) for name in ("transition_", "classes_"))
        return cls(transition, labels).plot(ax=ax, **kw)

    def plot(self, ax: Axes | None = None, *, cmap: str | Colormap = "PuOr") -> TransitionDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            By default those of a new figure.
        cmap : str or Colormap
            Diverging colours, with their middle at weight 0; forbidden pairs are grey.

        Returns
        -------
        self : TransitionDisplay
        """
        self.ax_: Axes = matrix_axes(len(self.labels)) if ax is None else ax
        self.figure_ = self.ax_.figure
        signed_map(self.ax_, self.transition, self.labels, "weight", cmap)
        self.ax_.set(xlabel="label", ylabel="label before")
        return self
