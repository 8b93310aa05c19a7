"""Pictures of training runs, models and errors, as scikit-learn style display objects.

Each display keeps its data, draws with ``plot(ax=None)``, and then has the axes as ``ax_`` and the
figure as ``figure_``. Matplotlib (the extra ``structsvm[plot]``) is imported when something is
drawn. Colours are safe for colour-blind eyes: Okabe and Ito's for lines and bars, one hue of falling
lightness for quantities, ``PuOr`` for signed weights.
"""

from __future__ import annotations

from itertools import chain

import numpy as np

from structsvm.gapped import split_rows

__all__ = [
    "AlignmentDisplay",
    "ConfusionDisplay",
    "FeatureDisplay",
    "HistoryDisplay",
    "SubstitutionDisplay",
    "TaxonomyDisplay",
    "TransitionDisplay",
]

_BLUE, _ORANGE, _GREEN, _GREY = "#0072B2", "#D55E00", "#009E73", "#999999"
_MAX_NUMBERED = 12  # cells of larger matrices are too small for numbers
_MAX_TICKS = 60  # of labels along an axis; beyond, every second, third ... is named


def _subplots(**kw):
    """Axes of a new figure; an ImportError that names the extra if matplotlib is missing."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plotting needs matplotlib, which is not installed: pip install 'structsvm[plot]'") from None
    return plt.subplots(**kw)[1]


def _attribute(estimator, name):
    """A fitted attribute; a TypeError that names estimator and attribute if there is none."""
    try:
        return getattr(estimator, name)
    except AttributeError:
        raise TypeError(
            f"{type(estimator).__name__} has no attribute {name!r}: it is not fitted, or it is "
            "no model of label sequences."
        ) from None


def _matrix_axes(n_labels):
    side = min(max(0.32 * n_labels, 4.0), 12.0)
    return _subplots(figsize=(side + 2.0, side + 0.8), layout="compressed")


def _text(name, limit):
    """A name as text of limited length; a dollar would start matplotlib's mathematics."""
    name = str(name)
    name = name if len(name) <= limit else name[: limit - 1] + "…"
    return name.replace("$", r"\$")


def _name_ticks(ax, axis, names):
    """Names along an axis, every k-th if there are too many, in a size that fits."""
    step = -(-len(names) // _MAX_TICKS)
    ticks = range(0, len(names), step)
    shown = len(ticks)
    size = 10 if shown <= 15 else 9 if shown <= 30 else 8
    texts = [_text(names[k], 20) for k in ticks]
    if axis == "y":
        ax.set_yticks(ticks, texts, fontsize=size)
        return
    upright = max(map(len, texts)) <= 2
    ax.set_xticks(ticks, texts, fontsize=size, rotation=0 if upright else 90)


def _heat_map(ax, matrix, labels, text_format, colorbar_label, **image_kw):
    """Square matrix with named rows and columns, and numbers in the cells if they fit."""
    image = ax.imshow(matrix, interpolation="nearest", **image_kw)
    ax.figure.colorbar(image, ax=ax, label=colorbar_label, fraction=0.046, pad=0.03)
    for axis in "xy":
        _name_ticks(ax, axis, labels)
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


class HistoryDisplay:
    """Primal, dual and their gap against training time.

    Parameters
    ----------
    history : dict of str to array of shape (n_records,), float64
        ``result_.history``: "seconds", "primal", "dual" and "gap" of each record; NaN where a
        value was not computed.

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

    def __init__(self, history):
        keys = ("seconds", "primal", "dual", "gap")
        missing = [key for key in keys if key not in history]
        if missing:
            raise ValueError(f"history has no {', '.join(map(repr, missing))}.")
        self.history = {key: np.asarray(history[key], dtype=np.float64) for key in keys}
        if len({values.shape for values in self.history.values()}) != 1:
            raise ValueError("the arrays of history must have one length.")

    @classmethod
    def from_result(cls, result, *, ax=None):
        """Draw the history of a solver's result (its attribute ``history``)."""
        return cls(result.history).plot(ax=ax)

    @classmethod
    def from_estimator(cls, estimator, *, ax=None):
        """Draw the history of a fitted estimator (its attribute ``result_``)."""
        return cls.from_result(_attribute(estimator, "result_"), ax=ax)

    def plot(self, ax=None):
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
            ax = _subplots(figsize=(6.4, 5.4), layout="constrained", **shape)
        self.ax_ = tuple(ax)
        objectives, gaps = self.ax_
        self.figure_ = objectives.figure
        self._line(objectives, "primal", color=_ORANGE)
        self._line(objectives, "dual", color=_BLUE)
        objectives.set(ylabel="objective")
        self._limit_objectives(objectives)
        if objectives.lines:
            objectives.legend(frameon=False, loc="best")

        self._line(gaps, "gap", only_positive=True, color=_GREEN)
        gaps.set(xlabel="training time (seconds)", ylabel="duality gap")
        if gaps.lines:
            gaps.set_yscale("log")
        else:
            gaps.text(0.5, 0.5, "no gap recorded", ha="center", va="center", transform=gaps.transAxes)
        for axes in self.ax_:
            axes.grid(color=_GREY, alpha=0.3, linewidth=0.6)
            axes.spines[["top", "right"]].set_visible(False)
        self.figure_.align_ylabels(self.ax_)
        return self

    def _line(self, ax, key, only_positive=False, **kw):
        values = self.history[key]
        known = np.isfinite(values) & (values > 0 if only_positive else True)
        if known.any():
            marker = "o" if np.count_nonzero(known) <= 40 else None
            seconds = self.history["seconds"][known]
            ax.plot(seconds, values[known], label=key, marker=marker, markersize=3.5, **kw)

    def _limit_objectives(self, ax):
        """Cut off the first primal values, often hundreds of times the optimum."""
        primal, dual = (self.history[key] for key in ("primal", "dual"))
        primal, dual = primal[np.isfinite(primal)], dual[np.isfinite(dual)]
        if not len(primal) or not len(dual) or dual.max() <= 0:
            return
        best, low = primal.min(), min(dual.min(), 0.0)
        top = best + max(best - low, 0.0)
        if primal.max() > top > low:
            margin = 0.05 * (top - low)
            ax.set_ylim(low - margin, top + margin)


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
    """

    def __init__(self, transition, labels):
        self.transition = _square(transition, labels, "transition")
        self.labels = list(labels)

    @classmethod
    def from_estimator(cls, estimator, *, ax=None, **kw):
        """Draw ``transition_`` of a fitted estimator, with the names in ``classes_``."""
        transition, labels = (_attribute(estimator, name) for name in ("transition_", "classes_"))
        return cls(transition, labels).plot(ax=ax, **kw)

    def plot(self, ax=None, *, cmap="PuOr"):
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            By default those of a new figure.
        cmap : str or Colormap
            Diverging colours, their middle at weight 0; forbidden pairs are grey.

        Returns
        -------
        self : TransitionDisplay
        """
        self.ax_ = _matrix_axes(len(self.labels)) if ax is None else ax
        self.figure_ = self.ax_.figure
        weights = np.ma.masked_invalid(self.transition)
        limit = float(np.abs(weights).max()) if weights.count() else 0.0
        limit = limit or 1.0
        self.ax_.set_facecolor(_GREY)
        _heat_map(self.ax_, weights, self.labels, ".2f", "weight", cmap=cmap, vmin=-limit, vmax=limit)
        self.ax_.set(xlabel="label", ylabel="label before")
        return self


class ConfusionDisplay:
    """Confusion matrix of labels.

    Parameters
    ----------
    matrix : array of shape (n_labels, n_labels)
        Number of tokens of a true label (row) that were given a label (column).
    labels : sequence of length n_labels

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure

    Raises
    ------
    ValueError
        The shapes do not agree.
    """

    def __init__(self, matrix, labels):
        self.matrix = _square(matrix, labels, "matrix")
        self.labels = list(labels)

    @classmethod
    def from_estimator(cls, estimator, X, y, *, labels=None, ax=None, **kw):
        """Draw the confusions of ``estimator.predict(X)`` with y; see from_predictions."""
        return cls.from_predictions(y, estimator.predict(X), labels=labels, ax=ax, **kw)

    @classmethod
    def from_predictions(cls, y_true, y_pred, *, labels=None, ax=None, **kw):
        """Draw the confusions of label sequences.

        Parameters
        ----------
        y_true, y_pred : list of (list of label)
            Label sequences of equal lengths.
        labels : sequence of labels, optional
            Rows and columns to show, in this order; by default all labels, the most frequent in
            ``y_true`` first. Tokens with another label are left out.
        ax : matplotlib.axes.Axes, optional
        **kw
            Arguments of :meth:`plot`.

        Returns
        -------
        ConfusionDisplay

        Raises
        ------
        ValueError, TypeError
            As in :func:`structsvm.metrics.label_report`.
        """
        from structsvm.metrics import label_report

        report = label_report(y_true, y_pred)
        if labels is None:
            labels = sorted(report, key=lambda label: -report[label].support)
        number = {label: k for k, label in enumerate(labels)}
        matrix = np.zeros((len(number), len(number)), dtype=np.int64)
        true, pred = (
            np.array([number.get(label, -1) for label in chain.from_iterable(y)], dtype=np.intp)
            for y in (y_true, y_pred)
        )
        shown = (true >= 0) & (pred >= 0)
        np.add.at(matrix, (true[shown], pred[shown]), 1)
        return cls(matrix, list(number)).plot(ax=ax, **kw)

    def plot(self, ax=None, *, normalize=True, cmap="Blues"):
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            By default those of a new figure.
        normalize : bool
            Show fractions of the true label (rows), else counts. The colour scale is bent, so that
            rare errors are seen beside a full diagonal: fractions to the power 0.4, counts by log.
        cmap : str or Colormap

        Returns
        -------
        self : ConfusionDisplay
        """
        self.ax_ = _matrix_axes(len(self.labels)) if ax is None else ax
        self.figure_ = self.ax_.figure
        from matplotlib.colors import PowerNorm, SymLogNorm

        if normalize:
            values = self.matrix / np.maximum(self.matrix.sum(axis=1, keepdims=True), 1)
            text = (".2f", "fraction of the true label")
            _heat_map(self.ax_, values, self.labels, *text, cmap=cmap, norm=PowerNorm(0.4, 0.0, 1.0))
        else:
            norm = SymLogNorm(1.0, vmin=0.0, vmax=max(float(self.matrix.max()), 1.0))
            _heat_map(self.ax_, self.matrix, self.labels, ".0f", "tokens", cmap=cmap, norm=norm)
        self.ax_.set(xlabel="predicted label", ylabel="true label")
        return self


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

    def __init__(self, names, weights, label):
        self.names = [str(name) for name in names]
        self.weights = np.asarray(weights, dtype=np.float64)
        self.label = label
        if self.weights.shape != (len(self.names),):
            raise ValueError(f"{len(self.names)} names and weights of {self.weights.shape}.")

    @classmethod
    def from_estimator(cls, estimator, label, *, k=15, ax=None):
        """Draw the k features of largest absolute ``emission_`` weight for a label.

        Parameters
        ----------
        estimator : estimator with ``emission_`` (n_features, n_labels), ``classes_``
            Names come from ``feature_names_``, where it has them.
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
        emission, classes = (_attribute(estimator, name) for name in ("emission_", "classes_"))
        classes = list(classes)
        if label not in classes:
            raise ValueError(f"label must be one of {classes}. Got {label!r}.")
        weights = np.asarray(emission[:, classes.index(label)], dtype=np.float64)
        names = getattr(estimator, "feature_names_", None)
        order = np.argsort(-np.abs(weights), kind="stable")[:k]
        order = order[np.argsort(-weights[order], kind="stable")]
        shown = [f"feature {i}" if names is None else names[i] for i in order]
        return cls(shown, weights[order], label).plot(ax=ax)

    def plot(self, ax=None):
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
            ax = _subplots(figsize=(6.4, height), layout="constrained")
        self.ax_ = ax
        self.figure_ = self.ax_.figure
        colors = np.where(self.weights >= 0, _BLUE, _ORANGE)
        self.ax_.barh(range(n_shown), self.weights, color=colors, height=0.7)
        self.ax_.set_yticks(range(n_shown), [_text(name, 40) for name in self.names])
        self.ax_.invert_yaxis()
        self.ax_.axvline(0, color="black", linewidth=0.8)
        self.ax_.grid(axis="x", color=_GREY, alpha=0.3, linewidth=0.6)
        self.ax_.set_axisbelow(True)
        self.ax_.tick_params(axis="y", length=0)
        self.ax_.spines[["top", "right", "left"]].set_visible(False)
        self.ax_.set(xlabel=f"weight for {_text(self.label, 40)}")
        return self


class SubstitutionDisplay:
    """Heat map of a substitution matrix.

    Parameters
    ----------
    matrix : SubstitutionMatrix

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure
    """

    def __init__(self, matrix):
        self.matrix = matrix

    @classmethod
    def from_estimator(cls, estimator, *, ax=None, **kw):
        """Draw ``substitution_matrix_`` of a fitted `SequenceAligner`."""
        return cls(_attribute(estimator, "substitution_matrix_")).plot(ax=ax, **kw)

    def plot(self, ax=None, *, cmap="PuOr"):
        """Draw, on new axes by default; `cmap` has its middle at 0. Returns self."""
        letters = self.matrix.alphabet
        self.ax_ = _matrix_axes(len(letters)) if ax is None else ax
        self.figure_ = self.ax_.figure
        limit = float(np.abs(self.matrix.values).max()) or 1.0
        _heat_map(self.ax_, self.matrix.values, letters, ".2f", "score", cmap=cmap, vmin=-limit, vmax=limit)
        self.ax_.set(xlabel="letter of z", ylabel="letter of x")
        return self


class AlignmentDisplay:
    """Dot plot of two sequences with the paths of their alignments.

    Parameters
    ----------
    alignments : dict of str to (str, str)
        Names and gapped rows, all of the same two sequences; the first is drawn widest.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure

    Raises
    ------
    ValueError
        The rows are no alignments, or not of the same sequences.
    """

    def __init__(self, alignments):
        parts = {name: split_rows(*rows) for name, rows in alignments.items()}
        if len({(x, z) for x, z, _ in parts.values()}) != 1:
            raise ValueError("the alignments must be at least one, and all of the same two sequences")
        self.x, self.z, _ = next(iter(parts.values()))
        self.paths = {}
        for name, (_, _, operations) in parts.items():
            steps = np.array([[o in b"MmX", o in b"MmZ"] for o in operations])
            self.paths[name] = np.concatenate([[[0, 0]], np.cumsum(steps, axis=0)])

    @classmethod
    def from_predictions(cls, y_true, y_pred, *, ax=None):
        """Draw a reference alignment and a predicted one, each a pair of gapped rows."""
        return cls({"reference": y_true, "predicted": y_pred}).plot(ax=ax)

    def plot(self, ax=None):
        """Draw, on new axes by default: dots for equal letters, a line for each alignment. Returns self."""
        self.ax_ = _subplots(figsize=(7.0, 6.4), layout="constrained") if ax is None else ax
        self.figure_ = self.ax_.figure
        i, j = np.nonzero(np.array(list(self.x))[:, None] == np.array(list(self.z)))
        self.ax_.scatter(j + 0.5, i + 0.5, s=3, color=_GREY, linewidths=0, label="equal letters")
        colors = [_ORANGE, _BLUE, _GREEN]
        for k, (name, path) in enumerate(self.paths.items()):
            self.ax_.plot(path[:, 1], path[:, 0], color=colors[k % 3], linewidth=max(4.0 - 2.0 * k, 1.2), label=name)
        self.ax_.set(xlim=(0, len(self.z)), ylim=(len(self.x), 0), xlabel="z", ylabel="x")
        self.ax_.legend(frameon=False, loc="upper right")
        return self


class TaxonomyDisplay:
    """A taxonomy with the recall of every node, beside the confusion matrix of its labels in the order of the tree.

    Parameters
    ----------
    taxonomy : Taxonomy
    matrix : array of shape (n_labels, n_labels)
        Number of documents of a true label (row) that were given a label (column).
    labels : sequence of length n_labels
        Names of nodes.

    Attributes
    ----------
    labels : list
        In the order of the tree, like rows and columns of `matrix`.
    recall : dict
        For each node above the labels that occur: of the documents that belong to it or below it, the share that
        was put there. A node of several parents is drawn below the one on the way that `Taxonomy.path` takes, and
        counts for all of them.
    ax_ : tuple of matplotlib.axes.Axes
        The axes of the tree and of the matrix.
    figure_ : matplotlib.figure.Figure

    Raises
    ------
    ValueError
        The shapes do not agree, or a label is no node.
    """

    def __init__(self, taxonomy, matrix, labels):
        matrix = _square(matrix, labels, "matrix")
        ways = {label: tuple(taxonomy.number(node) for node in taxonomy.path(label)) for label in labels}
        order = sorted(range(len(labels)), key=lambda k: ways[labels[k]])
        self.taxonomy = taxonomy
        self.labels = [labels[k] for k in order]
        self.matrix = matrix[np.ix_(order, order)]
        self._ways = [ways[label] for label in self.labels]
        below: dict = {}
        for k, label in enumerate(self.labels):
            for node in taxonomy.ancestors(label):
                below.setdefault(node, []).append(k)
        self.recall = {
            node: float(self.matrix[np.ix_(rows, rows)].sum() / self.matrix[rows].sum())
            for node, rows in below.items()
            if self.matrix[rows].any()
        }

    @classmethod
    def from_estimator(cls, estimator, X, y, *, ax=None, **kw):
        """Draw how `estimator.predict(X)` compares with y in ``estimator.taxonomy_``."""
        return cls.from_predictions(y, estimator.predict(X), _attribute(estimator, "taxonomy_"), ax=ax, **kw)

    @classmethod
    def from_predictions(cls, y_true, y_pred, taxonomy, *, ax=None, **kw):
        """Draw the confusions of labels, each the name of a node, one a document."""
        from structsvm.taxonomy import as_taxonomy

        y_true, y_pred = (np.asarray(y).tolist() for y in (y_true, y_pred))
        if len(y_true) != len(y_pred) or not y_true:
            raise ValueError(f"y_true has {len(y_true)} labels and y_pred has {len(y_pred)}; at least one is needed.")
        number = {label: k for k, label in enumerate(dict.fromkeys([*y_true, *y_pred]))}
        matrix = np.zeros((len(number), len(number)), dtype=np.int64)
        np.add.at(matrix, ([number[label] for label in y_true], [number[label] for label in y_pred]), 1)
        return cls(as_taxonomy(taxonomy), matrix, list(number)).plot(ax=ax, **kw)

    def plot(self, ax=None, *, cmap="Blues", tree_cmap="viridis"):
        """Draw.

        Parameters
        ----------
        ax : sequence of two matplotlib.axes.Axes, optional
            Axes for the tree and for the matrix; by default two in a new figure.
        cmap, tree_cmap : str or Colormap
            For shares of a true label, and for recalls; nodes without documents are grey.

        Returns
        -------
        self : TaxonomyDisplay
        """
        if ax is None:
            side = min(max(0.2 * len(self.labels), 4.5), 11.0)
            ax = _subplots(ncols=2, figsize=(2.0 * side + 1.0, side), layout="constrained")
        self.ax_ = tuple(ax)
        self.figure_ = self.ax_[0].figure
        self._plot_tree(self.ax_[0], tree_cmap)
        self._plot_matrix(self.ax_[1], cmap)
        return self

    def _spans(self):
        """Level, first and last label of each node on the ways."""
        spans: dict = {}
        for k, way in enumerate(self._ways):
            for end in range(1, len(way) + 1):
                spans[way[:end]] = (spans.get(way[:end], (k, k))[0], k)
        return [(len(way) - 1, *span, self.taxonomy.nodes[way[-1]]) for way, span in spans.items()]

    def _plot_tree(self, ax, cmap):
        from matplotlib import colormaps
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import Normalize, to_rgba

        shade = colormaps.get_cmap(cmap)
        room = 60.0 / len(self.labels)  # a row in lines of small text
        for level, first, last, node in self._spans():
            recall = self.recall.get(node)
            face = to_rgba(_GREY) if recall is None else shade(recall)
            ax.barh(0.5 * (first + last), 0.98, last - first + 1, level, color=face, edgecolor="white", linewidth=0.5)
            if (last - first + 1) * room >= 1.0:
                dark = 0.299 * face[0] + 0.587 * face[1] + 0.114 * face[2] < 0.5
                text = _text(node, 22) if recall is None else f"{_text(node, 18)} {recall:.2f}"
                color = "white" if dark else "black"
                ax.text(level + 0.03, 0.5 * (first + last), text, va="center", fontsize=7, color=color, clip_on=True)
        levels = max(map(len, self._ways))
        ax.set(xlim=(0, max(levels, 1)), ylim=(len(self.labels) - 0.5, -0.5), xlabel="depth", yticks=[])
        ax.set_xticks(np.arange(levels) + 0.5, range(1, levels + 1))
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        ax.figure.colorbar(ScalarMappable(Normalize(0.0, 1.0), shade), ax=ax, label="recall", fraction=0.046, pad=0.03)

    def _plot_matrix(self, ax, cmap):
        from matplotlib.colors import PowerNorm

        values = self.matrix / np.maximum(self.matrix.sum(axis=1, keepdims=True), 1)
        text = (".2f", "fraction of the true label")
        _heat_map(ax, values, self.labels, *text, cmap=cmap, norm=PowerNorm(0.4, 0.0, 1.0))
        for k in range(1, len(self._ways)):
            if self._ways[k][:1] != self._ways[k - 1][:1]:  # another child of the root begins
                ax.axhline(k - 0.5, color=_GREY, linewidth=0.6)
                ax.axvline(k - 0.5, color=_GREY, linewidth=0.6)
        ax.set(xlabel="predicted label", ylabel="true label")


def _square(matrix, labels, name):
    matrix, n_labels = np.asarray(matrix), len(labels)
    if matrix.shape != (n_labels, n_labels) or n_labels == 0:
        raise ValueError(
            f"{name} must have shape (n_labels, n_labels) for {n_labels} labels, and at least one "
            f"label. Got {matrix.shape}."
        )
    return matrix
