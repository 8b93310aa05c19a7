"""Scores for classes in a taxonomy: losses along it, and precision and recall over ancestors."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from structsvm.structures.taxonomy import as_taxonomy

__all__ = ["HierarchicalScores", "hierarchical_scores", "path_loss", "tree_loss"]


class HierarchicalScores(NamedTuple):
    """Precision, recall and F1 over ancestors, as fractions; a ratio with denominator 0 is 0."""

    precision: float
    recall: float
    f1: float


def _pairs(y_true, y_pred, taxonomy, sample_weight):
    """Weights of the pairs of true and predicted node that occur, as a dict from their names; and the taxonomy."""
    y_true, y_pred = (np.asarray(y).tolist() if isinstance(y, np.ndarray) else list(y) for y in (y_true, y_pred))
    if len(y_true) != len(y_pred):
        raise ValueError(f"y_true has {len(y_true)} labels and y_pred has {len(y_pred)}")
    if not y_true:
        raise ValueError("there are no labels to score")
    if sample_weight is None:
        return Counter(zip(y_true, y_pred)), as_taxonomy(taxonomy)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (len(y_true),) or not (weight >= 0.0).all() or not 0.0 < weight.sum() < np.inf:
        raise ValueError(f"sample_weight must be {len(y_true)} finite numbers >= 0, not all of them 0")
    pairs: Counter = Counter()
    for pair, w in zip(zip(y_true, y_pred), weight.tolist()):
        pairs[pair] += w
    return pairs, as_taxonomy(taxonomy)


def _mean_loss(kind, pairs, taxonomy):
    rows: dict = {}
    for true in dict.fromkeys(true for true, _ in pairs):
        rows[true] = taxonomy.lattice.losses(kind, taxonomy.number(true))
    total = sum(w * float(rows[true][taxonomy.number(pred)]) for (true, pred), w in pairs.items())
    return total / sum(pairs.values())


def tree_loss(y_true, y_pred, taxonomy, *, sample_weight=None) -> float:
    """Mean height of the first common ancestor of true and predicted node; 0 where they are the same.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        Names of nodes.
    taxonomy : Taxonomy, or anything that `structsvm.structures.taxonomy.as_taxonomy` takes
    sample_weight : array-like of shape (n_samples,), optional

    Returns
    -------
    float

    Raises
    ------
    ValueError
        The lengths differ, there are no labels, or one of them is no node.

    References
    ----------
    Tsochantaridis and others 2004, section 5.2.

    Examples
    --------
    >>> from structsvm.metrics import tree_loss
    >>> tree_loss(["mac", "mac"], ["mac", "pc"], [["comp", "mac"], ["comp", "pc"], ["rec", "autos"]])
    0.5

    In model selection: ``make_scorer(tree_loss, greater_is_better=False, taxonomy=taxonomy)``.
    """
    return _mean_loss("tree", *_pairs(y_true, y_pred, taxonomy, sample_weight))


def path_loss(y_true, y_pred, taxonomy, *, sample_weight=None) -> float:
    """Mean number of edges up from the true node to a common ancestor and down to the predicted one.

    Parameters and errors are those of :func:`tree_loss`.
    """
    return _mean_loss("path", *_pairs(y_true, y_pred, taxonomy, sample_weight))


def hierarchical_scores(y_true, y_pred, taxonomy, *, sample_weight=None) -> HierarchicalScores:
    """Precision and recall of the nodes on the ways to the root, micro-averaged.

    With A(y) the set of y and its ancestors, the root left out: the sum over documents of ``|A(true) & A(pred)|``,
    divided by that of ``|A(pred)|`` (precision) or ``|A(true)|`` (recall).

    Parameters and errors are those of :func:`tree_loss`.

    References
    ----------
    S. Kiritchenko, S. Matwin, R. Nock and A. F. Famili, Learning and evaluation in the presence of class hierarchies:
    application to text categorization, 2006.
    """
    pairs, taxonomy = _pairs(y_true, y_pred, taxonomy, sample_weight)
    above = {name: taxonomy.ancestors(name) for pair in pairs for name in pair}
    common, true, pred = (
        sum(w * len(part(above[t], above[p])) for (t, p), w in pairs.items())
        for part in (set.intersection, lambda t, p: t, lambda t, p: p)
    )
    precision, recall = common / pred if pred else 0.0, common / true if true else 0.0
    return HierarchicalScores(precision, recall, 2 * common / (true + pred) if common else 0.0)
