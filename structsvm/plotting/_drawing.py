"""What the displays share: axes, colours, names along axes, heat maps."""

from __future__ import annotations

import numpy as np

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#999999"
_MAX_NUMBERED = 12  # cells of larger matrices are too small for numbers
_MAX_TICKS = 60  # of labels along an axis; beyond, every second, third ... is named


def subplots(**kw):
    """Axes of a new figure; an ImportError that names the extra if matplotlib is missing."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plotting needs matplotlib, which is not installed: pip install 'structsvm[plot]'") from None
    return plt.subplots(**kw)[1]


def attribute(estimator, name):
    """A fitted attribute; a TypeError that names estimator and attribute if there is none."""
    try:
        return getattr(estimator, name)
    except AttributeError:
        raise TypeError(
            f"{type(estimator).__name__} has no attribute {name!r}: it is not fitted, or it is "
            "no model of label sequences."
        ) from None


def matrix_axes(n_labels):
    side = min(max(0.32 * n_labels, 4.0), 12.0)
    return subplots(figsize=(side + 2.0, side + 0.8), layout="compressed")


def shortened(name, limit):
    """A name as text of limited length; a dollar would start matplotlib's mathematics."""
    name = str(name)
    name = name if len(name) <= limit else name[: limit - 1] + "…"
    return name.replace("$", r"\$")


def name_ticks(ax, axis, names):
    """Names along an axis, every k-th if there are too many, in a size that fits."""
    step = -(-len(names) // _MAX_TICKS)
    ticks = range(0, len(names), step)
    shown = len(ticks)
    size = 10 if shown <= 15 else 9 if shown <= 30 else 8
    texts = [shortened(names[k], 20) for k in ticks]
    if axis == "y":
        ax.set_yticks(ticks, texts, fontsize=size)
        return
    upright = max(map(len, texts)) <= 2
    ax.set_xticks(ticks, texts, fontsize=size, rotation=0 if upright else 90)


def heat_map(ax, matrix, labels, text_format, colorbar_label, **image_kw):
    """Square matrix with named rows and columns, and numbers in the cells if they fit."""
    image = ax.imshow(matrix, interpolation="nearest", **image_kw)
    ax.figure.colorbar(image, ax=ax, label=colorbar_label, fraction=0.046, pad=0.03)
    for axis in "xy":
        name_ticks(ax, axis, labels)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    if len(labels) > _MAX_NUMBERED:
        return
    for (row, column), value in np.ma.ndenumerate(matrix):
        red, green, blue, _ = image.cmap(image.norm(value))
        is_dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
        ax.text(
            column,
            row,
            format(value, text_format),
            ha="center",
            va="center",
            fontsize=8,
            color="white" if is_dark else "black",
        )


def square(matrix, labels, name):
    matrix, n_labels = np.asarray(matrix), len(labels)
    if matrix.shape != (n_labels, n_labels) or n_labels == 0:
        raise ValueError(
            f"{name} must have shape (n_labels, n_labels) for {n_labels} labels, and at least one "
            f"label. Got {matrix.shape}."
        )
    return matrix
