"""A substitution matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from structsvm.plotting._drawing import attribute, matrix_axes, signed_map

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

    from structsvm.structures.substitution_matrix import SubstitutionMatrix


class SubstitutionDisplay:
    """Heat map of a substitution matrix.

    Parameters
    ----------
    matrix : SubstitutionMatrix

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure

    Examples
    --------
    >>> from structsvm.plotting import SubstitutionDisplay
    >>> from structsvm.structures.substitution_matrix import SubstitutionMatrix
    >>> SubstitutionDisplay(SubstitutionMatrix("AC", [[2, -1], [-1, 3]])).plot().matrix.alphabet
    'AC'
    """

    def __init__(self, matrix: SubstitutionMatrix) -> None:
        self.matrix = matrix

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None, **kw: Any) -> SubstitutionDisplay:
        """Draw ``substitution_matrix_`` of a fitted `SequenceAligner`."""
        return cls(attribute(estimator, "substitution_matrix_")).plot(ax=ax, **kw)

    def plot(self, ax: Axes | None = None, *, cmap: str | Colormap = "PuOr") -> SubstitutionDisplay:
        """Draw, on new axes by default; `cmap` has its middle at 0. Returns self."""
        letters = self.matrix.alphabet
        self.ax_: Axes = matrix_axes(len(letters)) if ax is None else ax
        self.figure_ = self.ax_.figure
        signed_map(self.ax_, self.matrix.values, letters, "score", cmap)
        self.ax_.set(xlabel="letter of z", ylabel="letter of x")
        return self
