"""Scores for the labels of the nodes of graphs, counted over nodes: accuracy, and intersection over union by label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from structsvm.metrics._counts import AUTO, check_no_nan, is_unknown, mark_for, paired, say_unknown


@dataclass(frozen=True)
class GraphScores:
    """Scores of labelled nodes, as fractions.

    Attributes
    ----------
    accuracy : float
        Nodes with the right label.
    hamming : int
        Nodes with a wrong label.
    jaccard : dict of label to float
        Per label, the nodes that have it in both labellings over those that have it in at least one.
    mean_jaccard : float
        Its mean over labels.
    n_graphs, n_nodes : int
        Nodes whose true label is known.

    Examples
    --------
    >>> from structsvm.metrics import graph_scores
    >>> graph_scores([["sky", "sky", "grass"]], [["sky", "grass", "grass"]]).jaccard
    {'grass': 0.5, 'sky': 0.5}
    """

    accuracy: float
    hamming: int
    jaccard: dict[Any, float]
    mean_jaccard: float
    n_graphs: int
    n_nodes: int

    def report(self) -> str:
        """The scores as text."""
        sizes = f"{self.n_graphs} graphs, {self.n_nodes} nodes"
        union = f"mean intersection over union {100 * self.mean_jaccard:.2f} %"
        lines = [f"{sizes}; accuracy {100 * self.accuracy:.2f} %, {union}"]
        lines += [f"{label}: {100 * value:.2f} %" for label, value in self.jaccard.items()]
        return "\n".join(lines)


def graph_scores(
    y_true: Iterable[Any], y_pred: Iterable[Any], labels: Iterable[Any] | None = None, unknown: object = AUTO
) -> GraphScores:
    """Compare labels of the nodes of graphs.

    Parameters
    ----------
    y_true, y_pred : lists of arrays, lists, or dicts by node
        Per graph the labels of its nodes, of a grid in its shape. Nodes of true label None or a set,
        and those that a dict of true labels leaves out, do not count; nor do those of -100 and of the mark `unknown`.
    labels : iterable, optional
        All labels, by default those in `y_pred`: a mark that is one of them is no mark.
    unknown : object, default="auto"
        The mark of unknown labels; "auto": -1.

    Raises
    ------
    ValueError
        For another number of graphs or nodes (the message names the graph), or if no node counts.

    Examples
    --------
    >>> from structsvm.metrics import graph_scores
    >>> scores = graph_scores([[1, 1, 0, None]], [[1, 0, 0, 0]])
    >>> scores.hamming, scores.n_nodes
    (1, 3)
    """
    pairs: Counter[tuple[Any, Any]] = Counter()
    graphs = paired(y_true, y_pred, "graphs")
    for i, (true, found) in enumerate(zip(*graphs, strict=True)):
        own = list(zip(*by_node(true, found, i), strict=True))
        check_no_nan((label for label, _ in own), f"graph {i}, node {{}}".format)
        pairs.update(pair for pair in own if pair[0] is not None and not isinstance(pair[0], set))
    if isinstance(labels, np.ndarray):
        labels = labels.tolist()
    known = {b for _, b in pairs}.union(() if labels is None else labels)
    unknown = mark_for(unknown, known)
    say_unknown((a for (a, _), count in pairs.items() for _ in range(count)), unknown, None, "nodes that do not count")
    pairs = Counter({pair: count for pair, count in pairs.items() if not is_unknown(pair[0], unknown)})
    n = sum(pairs.values())
    if not n:
        raise ValueError("y_true and y_pred have no nodes to score.")
    either: Counter[Any] = Counter()
    both: Counter[Any] = Counter()
    for (a, b), count in pairs.items():
        either[a] += count
        if a == b:
            both[a] += count
        else:
            either[b] += count
    order = list(either)
    try:
        order.sort()
    except TypeError:  # values of several types
        order.sort(key=repr)
    jaccard = {label: both[label] / either[label] for label in order}
    right = sum(both.values())
    return GraphScores(right / n, n - right, jaccard, sum(jaccard.values()) / len(jaccard), len(graphs[0]), n)


def by_node(true: Any, found: Any, i: int) -> tuple[list[Any], list[Any]]:
    """Both labellings of graph i as lists, of the nodes that a dict of true labels has; ValueError if nodes differ."""
    if isinstance(true, dict):
        lost = [node for node in true if not isinstance(found, dict) or node not in found]
        if lost:
            raise ValueError(f"graph {i}: y_pred has no label for node {lost[0]!r:.80}.")
        true, found = list(true.values()), [found[node] for node in true]
    a, b = _flat(true), _flat(found)
    if len(a) != len(b):
        raise ValueError(f"graph {i}: y_true has {len(a)} labels and y_pred has {len(b)}.")
    return a, b


def of_nodes(labels: Any) -> bool:
    """Whether labels are those of a graph by node, or of a grid in its shape."""
    own = isinstance(labels, (list, tuple, np.ndarray)) and len(labels) and isinstance(labels[0], (list, np.ndarray))
    return isinstance(labels, dict) or bool(own)


def _flat(labels: Any) -> list[Any]:
    """Labels of one graph as a list of Python objects."""
    if isinstance(labels, (str, bytes)) or not hasattr(labels, "__len__"):
        raise TypeError(f"labels of a graph must be an array, a list or a dict. Got {labels!r:.80}.")
    if isinstance(labels, np.ndarray) or (len(labels) and isinstance(labels[0], (list, np.ndarray))):
        flat: list[Any] = np.asarray(labels).ravel().tolist()
        return flat
    return [label.item() if isinstance(label, np.generic) else label for label in labels]


def node_accuracy(
    y_true: Iterable[Any], y_pred: Iterable[Any], labels: Iterable[Any] | None = None, unknown: object = AUTO
) -> float:
    """Fraction of nodes whose label is right; see `graph_scores`.

    Examples
    --------
    >>> from structsvm.metrics import node_accuracy
    >>> node_accuracy([{"a": 1, "b": 0}], [{"a": 1, "b": 1}])
    0.5
    """
    return graph_scores(y_true, y_pred, labels, unknown).accuracy


def mean_jaccard(
    y_true: Iterable[Any], y_pred: Iterable[Any], labels: Iterable[Any] | None = None, unknown: object = AUTO
) -> float:
    """Intersection over union of the nodes of a label, its mean over labels; see `graph_scores`.

    Examples
    --------
    >>> from structsvm.metrics import mean_jaccard
    >>> mean_jaccard([[1, 1, 0]], [[1, 0, 0]])
    0.5
    """
    return graph_scores(y_true, y_pred, labels, unknown).mean_jaccard
