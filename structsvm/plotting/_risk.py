"""Risk against coverage: how many answers are wrong, by how many are given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from structsvm.plotting._drawing import GREY, attribute, subplots

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

    from structsvm.risk import RiskCurve


class RiskCoverageDisplay:
    """Risk of the surest outputs, against the share of outputs that these are, on held-out ones.

    Parameters
    ----------
    curve : RiskCurve
        As ``RiskController.curve_`` has it.
    alpha : float, optional
        The risk that is promised, as a line.
    coverage : float, optional
        The share of outputs that is answered for it, as a point.
    name : str, optional
        For the legend.

    Attributes
    ----------
    line_ : matplotlib.lines.Line2D
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure

    Examples
    --------
    >>> import numpy as np
    >>> from structsvm.plotting import RiskCoverageDisplay
    >>> from structsvm.risk import RiskCurve
    >>> RiskCoverageDisplay(RiskCurve.of(np.array([0.9, 0.5]), np.array([0.0, 1.0]))).curve.risk.tolist()
    [0.0, 0.5]
    """

    def __init__(
        self, curve: RiskCurve, alpha: float | None = None, coverage: float | None = None, name: str | None = None
    ) -> None:
        self.curve, self.alpha, self.coverage, self.name = curve, alpha, coverage, name

    @classmethod
    def from_estimator(
        cls, controller: Any, *, name: str | None = None, ax: Axes | None = None, **kw: Any
    ) -> RiskCoverageDisplay:
        """Draw the curve of a calibrated `RiskController`; TypeError for another estimator."""
        curve = attribute(controller, "curve_")
        return cls(curve, controller.alpha, controller.coverage_, name).plot(ax=ax, **kw)

    def plot(self, ax: Axes | None = None, **kw: Any) -> RiskCoverageDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            By default those of a new figure; those of another display put both curves into one picture.
        **kw
            Arguments of matplotlib's ``plot``.

        Returns
        -------
        self : RiskCoverageDisplay
        """
        self.ax_: Axes = subplots(figsize=(5.6, 4.2), layout="constrained") if ax is None else ax
        self.figure_ = self.ax_.figure
        style: dict[str, Any] = {"drawstyle": "steps-pre", "label": self.name}
        self.line_: Line2D = self.ax_.plot(self.curve.coverage, self.curve.risk, **style | kw)[0]
        if self.alpha is not None:
            self.ax_.axhline(self.alpha, color=GREY, linewidth=0.8, linestyle="--")
        if self.coverage:
            at = int(abs(self.curve.coverage - self.coverage).argmin())
            self.ax_.plot(self.curve.coverage[at], self.curve.risk[at], "o", color=self.line_.get_color())
        self.ax_.set(xlabel="share of outputs that is answered", ylabel="risk of these", xlim=(0.0, 1.0))
        self.ax_.set_ylim(bottom=0.0)
        self.ax_.spines[["top", "right"]].set_visible(False)
        if self.name is not None:
            self.ax_.legend(frameon=False, loc="best")
        return self
