"""Axes, colours, names along axes and heat maps, for all displays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from structsvm.parameters import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#999999"
_MAX_PRINTED = 12  # cells of larger matrices are too small for text
_MAX_TICKS = 60  # names along an axis; beyond, every second, third ... is shown


def subplots(**kw: Any) -> Any:
    """Return the axes of a new figure. Raises ImportError, naming the extra, if matplotlib is missing."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plotting needs matplotlib: pip install 'structured-svm[plot]'") from None
    return plt.subplots(**kw)[1]


def attribute(estimator: Any, name: str) -> Any:
    """Return a fitted attribute. Raises TypeError, naming estimator and attribute, if there is none."""
    try:
        return getattr(estimator, name)
    except AttributeError:
        raise TypeError(
            f"{type(estimator).__name__} has no attribute {name!r}: it is not fitted, or is another kind of model."
        ) from None


def matrix_axes(n_labels: int) -> Axes:
    side = min(max(0.32 * n_labels, 4.0), 12.0)
    return subplots(figsize=(side + 2.0, side + 0.8), layout="compressed")


def shortened(name: object, limit: int) -> str:
    """Return a name as one line of limited length, with dollars escaped: they would start matplotlib's mathematics."""
    text = printable(name)
    text = text if len(text) <= limit else text[: limit - 1] + "…"
    return text.replace("$", r"\$")


def name_ticks(ax: Axes, axis: Literal["x", "y"], names: Sequence[object]) -> None:
    """Write names along an axis, every k-th if there are too many, in a size that fits."""
    ticks = range(0, len(names), -(-len(names) // _MAX_TICKS))
    shown = len(ticks)
    size = 10 if shown <= 15 else 9 if shown <= 30 else 8
    texts = [shortened(names[k], 20) for k in ticks]
    if axis == "y":
        ax.set_yticks(ticks, texts, fontsize=size)
        return
    upright = max(map(len, texts)) <= 2
    ax.set_xticks(ticks, texts, fontsize=size, rotation=0 if upright else 90)


def text_color(face: Sequence[float] | np.ndarray) -> str:
    """Return the colour of text on a face, given as red, green, blue (and alpha)."""
    return "white" if 0.299 * face[0] + 0.587 * face[1] + 0.114 * face[2] < 0.5 else "black"


def heat_map(
    ax: Axes, matrix: np.ndarray, labels: Sequence[object], text_format: str, colorbar_label: str, **image_kw: Any
) -> None:
    """Draw a square matrix with named rows and columns, and its values in the cells if they fit."""
    image = ax.imshow(matrix, interpolation="nearest", **image_kw)
    ax.figure.colorbar(image, ax=ax, label=colorbar_label, fraction=0.046, pad=0.03)
    name_ticks(ax, "x", labels)
    name_ticks(ax, "y", labels)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    if len(labels) > _MAX_PRINTED:
        return
    for (row, column), value in np.ma.ndenumerate(matrix):
        color = text_color(image.cmap(image.norm(value)))
        ax.text(column, row, format(value, text_format), ha="center", va="center", fontsize=8, color=color)


def signed_map(
    ax: Axes, values: ArrayLike, labels: Sequence[object], colorbar_label: str, cmap: str | Colormap
) -> None:
    """Draw a heat map of signed values, the middle of the colours at 0; infinite values are grey."""
    finite = np.ma.masked_invalid(values)
    limit = float(np.abs(finite).max()) if finite.count() else 0.0
    limit = limit or 1.0
    ax.set_facecolor(GREY)
    heat_map(ax, finite, labels, ".2f", colorbar_label, cmap=cmap, vmin=-limit, vmax=limit)


def fraction_map(ax: Axes, counts: np.ndarray, labels: Sequence[object], cmap: str | Colormap) -> None:
    """Draw a confusion matrix as fractions of the true label; their 0.4th power makes rare errors visible."""
    from matplotlib.colors import PowerNorm

    values = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    heat_map(ax, values, labels, ".2f", "fraction of the true label", cmap=cmap, norm=PowerNorm(0.4, 0.0, 1.0))
    ax.set(xlabel="predicted label", ylabel="true label")


def confusion_matrix(y_true: Sequence[Any], y_pred: Sequence[Any], labels: Sequence[Any]) -> np.ndarray:
    """Count the pairs of true and predicted label (any hashable); those with a label not in `labels` are left out."""
    label_ids = {label: k for k, label in enumerate(labels)}
    true, pred = (np.array([label_ids.get(label, -1) for label in y], dtype=np.intp) for y in (y_true, y_pred))
    shown = (true >= 0) & (pred >= 0)
    matrix = np.zeros((len(label_ids), len(label_ids)), dtype=np.int64)
    np.add.at(matrix, (true[shown], pred[shown]), 1)
    return matrix


def square(matrix: ArrayLike, labels: Sequence[object], name: str) -> np.ndarray:
    """Return the matrix as an array. Raises ValueError unless it has a row and a column per label."""
    array, n_labels = np.asarray(matrix), len(labels)
    if array.shape != (n_labels, n_labels) or n_labels == 0:
        raise ValueError(
            f"{name} must have shape (n_labels, n_labels) for {n_labels} labels, and at least one label. "
            f"Got {array.shape}."
        )
    return array
