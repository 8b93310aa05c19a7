"""Scores for classes in a taxonomy: losses along it, and precision and recall over ancestors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from itertools import compress
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from structsvm.features.inputs.masks import without_masks
from structsvm.metrics._counts import (
    AUTO,
    check_no_nan,
    is_unknown,
    mark_for,
    paired,
    precision_recall_f1,
    say_unknown,
    say_unseen,
)
from structsvm.structures.taxonomy import Taxonomy, as_taxonomy, joined_levels, rows_of_levels

if TYPE_CHECKING:
    from structsvm.arrays import LabelArray

Nodes: TypeAlias = "Iterable[Hashable] | LabelArray"
PairCounts = Counter[tuple[Hashable, Hashable]]


class HierarchicalScores(NamedTuple):
    """Precision, recall and F1 over ancestors, as fractions; a ratio with denominator 0 is 0.

    Examples
    --------
    >>> from structsvm.metrics import hierarchical_scores
    >>> hierarchical_scores(["mac"], ["pc"], [("all", "comp"), ("comp", "mac"), ("comp", "pc")])
    HierarchicalScores(precision=0.5, recall=0.5, f1=0.5)
    """

    precision: float
    recall: float
    f1: float


def _names(y: Nodes, taxonomy: Taxonomy) -> Iterable[Hashable]:
    if taxonomy.separator is not None and (rows := rows_of_levels(y)) is not None:
        return joined_levels(rows, taxonomy.separator)
    return y.tolist() if isinstance(y, np.ndarray) else y


def _pairs(
    y_true: Nodes, y_pred: Nodes, taxonomy: object, sample_weight: ArrayLike | None
) -> tuple[PairCounts, Taxonomy]:
    """Return the weights of the pairs of a known node and a predicted one that occur, and the taxonomy."""
    taxonomy = as_taxonomy(taxonomy)
    true, pred = paired(_names(without_masks(y_true), taxonomy), _names(y_pred, taxonomy), "labels")
    check_no_nan(true, "y_true, number {}".format)
    unknown = mark_for(AUTO, taxonomy.nodes)
    known = [not is_unknown(name, unknown) for name in true]
    if not any(known):
        raise ValueError("y_true names no node of any document")
    say_unknown(true, unknown, None, "documents that the scores leave out")
    say_unseen(compress(true, known), taxonomy, "documents")
    if sample_weight is None:
        return Counter(compress(zip(true, pred), known)), taxonomy
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (len(true),) or not (weight >= 0.0).all() or not 0.0 < weight.sum() < np.inf:
        raise ValueError(f"sample_weight must be {len(true)} finite numbers >= 0, not all of them 0")
    pairs: PairCounts = Counter()
    for pair, w in compress(zip(zip(true, pred), weight.tolist()), known):
        pairs[pair] += w
    if not sum(pairs.values()) > 0.0:
        raise ValueError("sample_weight is 0 where y_true names a node")
    return pairs, taxonomy


def nearest(name: Hashable, taxonomy: Taxonomy) -> tuple[Hashable, int]:
    """The node, and the number of levels below it, where a label stands that may be none of the taxonomy.

    A path that training never saw stands below the longest part of it that is a node; another label below the root.
    """
    if name in taxonomy:
        return name, 0
    if taxonomy.separator is not None and isinstance(name, str):
        levels = name.split(taxonomy.separator)
        for k in range(len(levels) - 1, 0, -1):
            above = taxonomy.separator.join(levels[:k])
            if above in taxonomy:
                return above, len(levels) - k
        return taxonomy.root, len(levels)
    return taxonomy.root, 1


def _mean_loss(kind: str, pairs: PairCounts, taxonomy: Taxonomy) -> float:
    places = {true: nearest(true, taxonomy) for true, _ in pairs}
    rows = {node: taxonomy.lattice.losses(kind, taxonomy.number(node)) for node, _ in places.values()}

    def loss(true: Hashable, pred: Hashable) -> float:
        node, below = places[true]
        found = float(rows[node][taxonomy.number(pred)])
        if not below or kind == "path":
            return found + below
        return max(found, 1.0, float(taxonomy.height[taxonomy.number(node)]))

    return sum(w * loss(true, pred) for (true, pred), w in pairs.items()) / sum(pairs.values())


def tree_loss(y_true: Nodes, y_pred: Nodes, taxonomy: object, *, sample_weight: ArrayLike | None = None) -> float:
    """Mean height of the first common ancestor of true and predicted node; 0 where they are the same.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        Names of nodes; where these are whole paths, also rows of levels (n_samples, n_levels). True labels that are no
        nodes count as wrong: a path stands below the longest part of it that is a node, another label below the root.
        Documents without a label (None, -100, -1 unless it is a node) are left out.
    taxonomy : Taxonomy, or anything that `structsvm.structures.taxonomy.as_taxonomy` accepts
    sample_weight : array-like of shape (n_samples,), optional

    Returns
    -------
    float

    Raises
    ------
    ValueError
        The lengths differ, no label is known, one is NaN, or a predicted one is not a node.

    References
    ----------
    Tsochantaridis and others 2004, section 5.2.

    Examples
    --------
    >>> from structsvm.metrics import tree_loss
    >>> tree_loss(["mac", "mac"], ["mac", "pc"], [["comp", "mac"], ["comp", "pc"], ["rec", "autos"]])
    0.5

    In model selection: ``scoring=tree_loss_scorer``, with the taxonomy of the estimator.
    """
    return _mean_loss("tree", *_pairs(y_true, y_pred, taxonomy, sample_weight))


def path_loss(y_true: Nodes, y_pred: Nodes, taxonomy: object, *, sample_weight: ArrayLike | None = None) -> float:
    """Mean number of edges up from the true node to a common ancestor and down to the predicted one.

    Parameters and errors are those of :func:`tree_loss`.

    Examples
    --------
    >>> from structsvm.metrics import path_loss
    >>> path_loss(["mac", "mac"], ["mac", "pc"], [["comp", "mac"], ["comp", "pc"], ["rec", "autos"]])
    1.0
    """
    return _mean_loss("path", *_pairs(y_true, y_pred, taxonomy, sample_weight))


def hierarchical_scores(
    y_true: Nodes, y_pred: Nodes, taxonomy: object, *, sample_weight: ArrayLike | None = None
) -> HierarchicalScores:
    """Precision and recall of the nodes on the paths to the root, micro-averaged.

    With A(y) the set of y and its ancestors except the root: the sum over documents of ``|A(true) & A(pred)|``,
    divided by that of ``|A(pred)|`` (precision) or ``|A(true)|`` (recall); 0 where that is 0, as for the root alone.

    Parameters and errors are those of :func:`tree_loss`.

    References
    ----------
    S. Kiritchenko, S. Matwin, R. Nock and A. F. Famili, Learning and evaluation in the presence of class hierarchies:
    application to text categorization, 2006.

    Examples
    --------
    >>> from structsvm.metrics import hierarchical_scores
    >>> edges = [("all", "comp"), ("comp", "mac"), ("comp", "pc"), ("all", "autos")]
    >>> round(hierarchical_scores(["mac", "mac"], ["mac", "autos"], edges).f1, 3)
    0.571
    """
    pairs, taxonomy = _pairs(y_true, y_pred, taxonomy, sample_weight)
    above = {name: taxonomy.ancestors(name) for _, name in pairs}
    for name, _ in pairs:
        node, below = nearest(name, taxonomy)
        above[name] = taxonomy.ancestors(node) | {(name, level) for level in range(below)}
    common = sum(w * len(above[true] & above[pred]) for (true, pred), w in pairs.items())
    n_true = sum(w * len(above[true]) for (true, _), w in pairs.items())
    n_predicted = sum(w * len(above[pred]) for (_, pred), w in pairs.items())
    return HierarchicalScores(*precision_recall_f1(common, n_true, n_predicted))
