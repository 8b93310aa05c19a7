"""How strange an estimator finds each label of each unit of an output, and which labels are the true ones.

A unit is a token, a node, a word (whose label is its head) or a row. A label's strangeness is 1 less its probability,
or how far the best output with it falls short of the best of all.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from structsvm.metrics._counts import AUTO, is_unknown, mark_for
from structsvm.risk.outputs import by_each_node, kind_of, known_arcs, known_classes, predicts_classes
from structsvm.risk.tables import UNSEEN
from structsvm.tasks.common.inspection.confidence import has_probabilities
from structsvm.tasks.multilabel.sets import read_sets, without_unseen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from structsvm.arrays import Floats, LabelArray
    from structsvm.risk.wrapped import Estimator, Inputs, Outputs
    from structsvm.structures.taxonomy import Taxonomy

# Per input, an array (n_units, n_labels); and per output, the labels that its set has to have: arrays of (unit, label).
Strange: TypeAlias = "list[NDArray[np.float64]]"
Pairs: TypeAlias = "list[NDArray[np.int64]]"


def of_rows(estimator: Estimator, X: Inputs) -> Strange:
    """Classes of rows."""
    if hasattr(estimator, "predict_proba") and has_probabilities(estimator):
        return list(1.0 - sound(estimator, "predict_proba", X)[:, None])
    scores = sound(estimator, "decision_function", X)
    if scores.ndim == 1:
        scores = np.stack([np.zeros_like(scores), scores], axis=1)
    return list((scores.max(axis=1, keepdims=True) - scores)[:, None])


def of_members(estimator: Estimator, X: Inputs) -> Strange:
    """Labels of sets: a set has to have all that are true."""
    if has_probabilities(estimator):
        return list(1.0 - estimator.predict_proba(X)[:, None])
    return list(-np.asarray(estimator.decision_function(X), dtype=np.float64)[:, None])


def sound(estimator: Estimator, verb: str, X: Inputs) -> Floats:
    """Numbers of rows that an estimator returns; ValueError for nan, inf, and -inf for all classes: none is best."""
    found = np.asarray(getattr(estimator, verb)(X), dtype=np.float64)
    rows = found if found.ndim > 1 else found[:, None]
    no_best = np.isneginf(rows).all(axis=1) & (found.ndim > 1)
    for wrong, bad in (
        ("nan", np.isnan(rows).any(axis=1)),
        ("inf", np.isposinf(rows).any(axis=1)),
        ("-inf alone", no_best),
    ):
        if bad.any():
            raise ValueError(f"{verb} of {type(estimator).__name__} returns {wrong} for input {int(np.argmax(bad))}")
    return found


def of_tokens(estimator: Estimator, X: Inputs) -> Strange:
    """Labels of tokens or nodes."""
    n_labels = len(estimator.model_.labels)
    if has_probabilities(estimator) and not getattr(estimator.model_, "is_greedy", False):
        return [1.0 - own.reshape(-1, n_labels) for own in estimator.predict_marginals(X)]
    costs = (np.asarray(own, dtype=np.float64).reshape(-1, n_labels) for own in estimator.decision_function(X))
    return [own.max(axis=1, keepdims=True, initial=-np.inf) - own for own in costs]


def of_heads(estimator: Estimator, X: Inputs) -> Strange:
    """Heads of words, 0 the root."""
    if not has_probabilities(estimator):
        raise TypeError(
            f"{type(estimator).__name__} has no probabilities of heads: train with probability=True or loss='log', or "
            "take ConformalOutputs, sets of whole trees"
        )
    return [1.0 - own for own in estimator.predict_proba(X)]


def of_subtrees(estimator: Estimator, X: Inputs) -> Strange:
    """Nodes of a taxonomy, so that the labels below a threshold are those of a subtree around the predicted node.

    A label's strangeness is the probability of the largest subtree on the path from the predicted node to the root that
    does not have the label: 0 for the predicted node itself and what is below it.
    """
    taxonomy = estimator.taxonomy_
    above = [taxonomy.ancestors(label) | {taxonomy.root} for label in classes(estimator)]
    proba, column = estimator.node_proba(X), {node: k for k, node in enumerate(taxonomy.nodes)}
    paths: dict[Hashable, tuple[list[int], NDArray[np.int64]]] = {}
    found = []
    for own, node in zip(proba, cast("LabelArray", estimator.predict(X)).tolist(), strict=True):
        if node not in paths:
            path = path_of(taxonomy, node)
            first = np.array([next(k for k, one in enumerate(path) if one in around) for around in above])
            paths[node] = [column[one] for one in path], first
        columns, first = paths[node]
        found.append(np.append(0.0, own[columns])[first][None])
    return found


def path_of(taxonomy: Taxonomy, node: Hashable) -> list[Hashable]:
    """The nodes from a node up to the root, both included."""
    return [*reversed(taxonomy.path(node)), taxonomy.root]


# ---- what is true ---------------------------------------------------------------------------------


def in_order(ids: Sequence[int]) -> NDArray[np.int64]:
    """A label per unit."""
    return np.stack([np.arange(len(ids)), np.asarray(ids, dtype=np.int64)], axis=1)


def numbers(known: Sequence[Hashable], of_each: Iterable[Sequence[Hashable]], unknown: object, what: str) -> Pairs:
    """Pairs of the label of each unit; ValueError for one that is unknown."""
    at, found = {label: k for k, label in enumerate(known)}, []
    for i, own in enumerate(of_each):
        if any(is_unknown(label, unknown) or isinstance(label, (set, frozenset, list, dict)) for label in own):
            raise ValueError(f"y: {what} {i} is not known, or in part: leave it out")
        found.append(in_order([at.get(label, UNSEEN) for label in own]))
    return found


def true_rows(estimator: Estimator, X: Inputs, y: Outputs) -> Pairs:
    """The class of each row."""
    y = known_classes(estimator, y)
    values = y.tolist() if hasattr(y, "tolist") else list(y)
    return numbers(classes(estimator), ([label] for label in values), None, "row")


def true_members(estimator: Estimator, X: Inputs, y: Outputs) -> Pairs:
    """The labels of each row's set; what the model does not know is one more."""
    y, is_unseen = without_unseen(y, estimator.model_.labels)
    truth = read_sets(y, list(estimator.model_.labels), unknown=estimator.unknown)[2]
    if (truth < 0).any():
        raise ValueError(f"y: row {int(np.argmax((truth < 0).any(axis=1)))} is not known, or in part: leave it out")
    members = [np.stack([np.zeros_like(own), own], axis=1) for own in map(np.flatnonzero, truth)]
    more = np.broadcast_to(is_unseen, len(members)).tolist()
    return [np.append(own, [[0, UNSEEN]], axis=0) if unseen else own for own, unseen in zip(members, more, strict=True)]


def true_tokens(estimator: Estimator, X: Inputs, y: Outputs) -> Pairs:
    """The label of each token; of segments, the tags that they have."""
    model = estimator.model_
    if model.segments is not None:
        return numbers(model.labels, model.true_tags(y, X, None), None, "sequence")
    of_each = (list(cast("Iterable[Hashable]", own)) for own in y)
    return numbers(model.labels, of_each, mark_for(getattr(estimator, "unknown", AUTO), model.labels), "sequence")


def true_nodes(estimator: Estimator, X: Inputs, y: Outputs) -> Pairs:
    """The label of each node, in the order of the graph's nodes."""
    known = labels(estimator)
    pairs = zip(y, estimator.predict(X), strict=True)
    of_each = (by_each_node(true, found, i)[0] for i, (true, found) in enumerate(pairs))
    return numbers(known, of_each, mark_for(getattr(estimator, "unknown", AUTO), known), "graph")


def true_heads(estimator: Estimator, X: Inputs, y: Outputs) -> Pairs:
    """The head of each word."""
    return [in_order([head for head, _ in arcs]) for arcs in known_arcs(X, y)]


def classes(estimator: Estimator) -> list[Hashable]:
    """The classes of an estimator."""
    return list(np.asarray(estimator.classes_).tolist())


def labels(estimator: Estimator) -> list[Hashable]:
    """The labels of a model; tags, of one of segments."""
    return list(estimator.model_.labels)


@dataclass(frozen=True)
class Units:
    """Sets of labels of one kind of units.

    Attributes
    ----------
    strange : callable
        ``strange(estimator, X)``: per input, an array (n_units, n_labels).
    true : callable
        ``true(estimator, X, y)``: per output, pairs of a unit and a true label.
    names : callable, optional
        ``names(estimator)``: the labels; None: they are numbers.
    is_row : bool
        Whether each output is one unit.
    many : bool
        Whether a unit has several true labels, or none.
    """

    strange: Callable[[Estimator, Inputs], Strange]
    true: Callable[[Estimator, Inputs, Outputs], Pairs]
    names: Callable[[Estimator], list[Hashable]] | None
    is_row: bool = False
    many: bool = False


ROWS = Units(of_rows, true_rows, classes, is_row=True)
SUBTREES = Units(of_subtrees, true_rows, classes, is_row=True)
KINDS = {
    "sequence": Units(of_tokens, true_tokens, labels),
    "graph": Units(of_tokens, true_nodes, labels),
    "dependency": Units(of_heads, true_heads, None),
    "multilabel": Units(of_members, true_members, labels, is_row=True, many=True),
}


def units_of(estimator: Estimator) -> Units:
    """The units of an estimator's outputs; TypeError where these have none."""
    units = KINDS.get(kind_of(estimator) or "", ROWS)
    if units is ROWS and not predicts_classes(estimator):
        raise TypeError(
            f"{type(estimator).__name__} has no scores of labels to take sets of: ConformalOutputs takes whole outputs"
        )
    return units


def check_units(units: Units, strange: Strange, true: Pairs) -> None:
    """Raise ValueError for the first output whose number of labels is not its number of units."""
    if units.is_row:
        return
    for i, (table, own) in enumerate(zip(strange, true, strict=True)):
        if len(table) != len(own):
            raise ValueError(f"y: output {i} has {len(own)} labels, X has {len(table)}")


def values_at(strange: NDArray[np.float64], true: NDArray[np.int64]) -> Floats:
    """The strangeness of the true labels of one output; infinity for unseen ones."""
    found = np.full(len(true), np.inf)
    is_seen = true[:, 1] != UNSEEN
    found[is_seen] = strange[true[is_seen, 0], true[is_seen, 1]]
    return found
