"""Outputs of any estimator: how sure it is of each, and whether each is right.

A table by the kinds of models says both; an estimator of another kind is a classifier in scikit-learn's form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.pipeline import Pipeline

from structsvm.metrics._counts import AUTO, mark_for
from structsvm.metrics._graphs import by_node
from structsvm.structures.meanings import as_meaning, in_one_order
from structsvm.structures.taxonomy import joined_levels, rows_of_levels
from structsvm.tasks.ambiguous.model import as_bags
from structsvm.tasks.common.labels import agreement, check_labelled
from structsvm.tasks.dependency.model import known_arcs_of
from structsvm.tasks.dependency.words import words_of
from structsvm.tasks.grammar.trees import trees_of
from structsvm.tasks.multilabel.model import read_sets, without_unseen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from structsvm.arrays import Floats

SETS = (set, frozenset)


def unwrapped(estimator: Any, X: Any) -> tuple[Any, Any]:
    """The last estimator of pipelines, searches and taggers with a parser, and the inputs that it is given for X."""
    while (inner := inner_of(estimator)) is not None:
        if isinstance(estimator, Pipeline) and len(estimator.steps) > 1:
            X = estimator[:-1].transform(X)
        elif hasattr(estimator, "tagged"):
            X = estimator.tagged(X)
        estimator = inner
    return estimator, X


def inner_of(estimator: Any) -> Any:
    """The estimator that a pipeline, a search or a tagger with a parser predicts with; None for others."""
    if isinstance(estimator, Pipeline):
        return estimator[-1]
    return getattr(estimator, "best_estimator_", getattr(estimator, "parser_", None))


def kind_of(estimator: Any) -> str | None:
    """The kind of an estimator's model, as model files have it; None for an estimator of another library."""
    found: str | None = getattr(getattr(estimator, "model_", None), "kind", None)
    return found


def n_inputs(X: Any) -> int:
    """The number of inputs."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


# ---- how sure an estimator is ---------------------------------------------------------------------


def has_probabilities(estimator: Any) -> bool:
    """Whether an estimator's scores can become probabilities; those of another library say so by their methods."""
    return getattr(estimator, "temperature_", 1.0) is not None


def of_class(estimator: Any, X: Any, predicted: Any) -> Floats:
    """The probability of each predicted class, or how far its score is above the next one."""
    if hasattr(estimator, "predict_proba") and has_probabilities(estimator):
        at = {label: k for k, label in enumerate(np.asarray(estimator.classes_).tolist())}
        rows = np.asarray(estimator.predict_proba(X))
        sure: Floats = rows[np.arange(len(rows)), [at[label] for label in np.asarray(predicted).tolist()]]
        return sure
    if not hasattr(estimator, "decision_function"):
        raise TypeError(
            f"{type(estimator).__name__} has neither probabilities nor scores of its outputs: give confidence=, a "
            "function of it and X"
        )
    scores = np.asarray(estimator.decision_function(X), dtype=np.float64)
    if scores.ndim == 1:
        return np.abs(scores)
    best = np.partition(scores, -2, axis=1)[:, -2:]
    return best[:, 1] - best[:, 0]


def of_set(estimator: Any, X: Any, predicted: Any) -> Floats:
    """The least certain label of each predicted set: its probability to be as predicted, or its margin."""
    if has_probabilities(estimator):
        p = estimator.predict_proba(X)
        worst: Floats = np.maximum(p, 1.0 - p).min(axis=1)
        return worst
    margins: Floats = np.abs(estimator.decision_function(X)).min(axis=1)
    return margins


def of_structure(estimator: Any, X: Any, predicted: Any) -> Floats:
    """The probability of each best output, or how far its score is above the next one's."""
    if has_probabilities(estimator):
        ranked = estimator.predict_kbest(X, 1, probabilities=True)
        return np.array([found[0][1] if len(found) else 1.0 for found in ranked], dtype=np.float64)
    ranked = estimator.predict_kbest(X, 2)
    margins = [found[0][1] - found[1][1] if len(found) > 1 else np.inf for found in ranked]
    return np.array([-np.inf if np.isnan(margin) else margin for margin in margins], dtype=np.float64)


def of_labelling(estimator: Any, X: Any, predicted: Any) -> Floats:
    """As `of_structure`; of greedy inference the least margin of a token."""
    if not estimator.model_.is_greedy:
        return of_structure(estimator, X, predicted)
    scores = estimator.decision_function(X)
    return np.array([-np.partition(own, -2, axis=1)[:, -2].max() if len(own) else np.inf for own in scores])


def of_meaning(estimator: Any, X: Any, predicted: Any) -> Floats:
    """The probability of each best meaning; 0 where there is none."""
    if estimator.model_.method == "ospas":
        return without(estimator, X, predicted)
    return np.array([found[0][1] if found else 0.0 for found in estimator.predict_kbest(X, 1)], dtype=np.float64)


def without(estimator: Any, X: Any, predicted: Any) -> Floats:
    """Raise TypeError: outputs have no confidence."""
    raise TypeError(
        f"{type(estimator).__name__} has no probability or score of a whole output: give confidence=, a function of "
        "the estimator and X"
    )


# ---- whether its outputs are right ----------------------------------------------------------------


def whole(says: NDArray[np.bool_], what: str) -> None:
    """Raise ValueError for the first output of y that is not known, or not whole."""
    if not says.all():
        raise ValueError(f"y: {what} {int(np.argmin(says))} is not known, or in part: leave it out")


def of_units(y: Sequence[Any], predicted: Sequence[Any], estimator: Any, what: str) -> NDArray[np.bool_]:
    """Whether all labels of each output are right; y has a list of labels for each."""
    for i, (true, found) in enumerate(zip(y, predicted, strict=True)):
        if len(true) != len(found):
            raise ValueError(f"y: {what} {i} has {len(true)} labels, X has {len(found)}")
    lengths = [len(own) for own in predicted]
    if not sum(lengths):
        return np.ones(len(lengths), dtype=bool)
    labels = estimator.model_.labels
    unknown = mark_for(getattr(estimator, "unknown", AUTO), labels)
    seen = {*labels, *getattr(estimator.model_, "shown", ())}
    right, says = agreement(
        chain.from_iterable(y), chain.from_iterable(predicted), unknown, (set, frozenset, list, tuple), seen=seen
    )
    at = np.repeat(np.arange(len(lengths)), lengths)
    whole(np.bincount(at[~says], minlength=len(lengths)) == 0, what)
    right_of_all: NDArray[np.bool_] = np.bincount(at[~right], minlength=len(lengths)) == 0
    return right_of_all


def right_labellings(estimator: Any, X: Any, y: Any, predicted: Any) -> NDArray[np.bool_]:
    """Whether all labels of each sequence are right, or all spans."""
    y = [list(own.tolist() if isinstance(own, np.ndarray) else own) for own in y]
    if estimator.model_.has_spans:
        return np.array([{*map(tuple, a)} == {*map(tuple, b)} for a, b in zip(y, predicted, strict=True)], dtype=bool)
    return of_units(y, predicted, estimator, "sequence")


def right_graphs(estimator: Any, X: Any, y: Any, predicted: Any) -> NDArray[np.bool_]:
    """Whether the labels of all nodes are right, per graph."""
    pairs = [by_node(true, found, i) for i, (true, found) in enumerate(zip(y, predicted, strict=True))]
    return of_units([true for true, _ in pairs], [found for _, found in pairs], estimator, "graph")


def right_trees(estimator: Any, X: Any, y: Any, predicted: Any) -> NDArray[np.bool_]:
    """Whether each whole tree is right."""
    trees = trees_of(X, y, estimator)
    return np.array([str(a) == str(b) for a, b in zip(trees, predicted, strict=True)], dtype=bool)


def right_arcs(estimator: Any, X: Any, y: Any, predicted: Any) -> NDArray[np.bool_]:
    """Whether head and relation of all words are right, per dependency tree."""
    arcs = known_arcs_of(X, y)
    return np.array([list(map(tuple, a)) == list(map(tuple, b)) for a, b in zip(arcs, predicted, strict=True)])


def right_lists(estimator: Any, X: Any, y: Any, predicted: Any) -> NDArray[np.bool_]:
    """Whether all entries are right, per alignment or other list."""
    whole(np.array([own is not None for own in y]), "output")
    return np.array([listed(a) == listed(b) for a, b in zip(y, predicted, strict=True)], dtype=bool)


def right_orders(estimator: Any, X: Any, y: Any, predicted: Any) -> NDArray[np.bool_]:
    """Whether each whole order is right."""
    known = [own is not None and np.ndim(own) == 1 and len(own) == len(a) for own, a in zip(y, predicted, strict=True)]
    whole(np.array(known), "order")
    return right_lists(estimator, X, y, predicted)


def listed(output: Any) -> Any:
    """An output with lists in the place of arrays and tuples."""
    if isinstance(output, np.ndarray):
        return output.tolist()
    return [listed(own) for own in output] if isinstance(output, (list, tuple)) else output


def right_meanings(estimator: Any, X: Any, y: Any, predicted: Any) -> NDArray[np.bool_]:
    """Whether each meaning is one of its sentence's bag."""
    grammar = estimator.model_.grammar
    any_order = set() if grammar is None else grammar.any_order
    bags = [[bag] if isinstance(bag, (str, tuple)) else list(bag) for bag in y]
    return np.array(
        [
            bool(found) and in_one_order(as_meaning(found[0]), any_order) in own
            for found, bag in zip(predicted, bags, strict=True)
            for own in [[in_one_order(as_meaning(meaning), any_order) for meaning in bag]]
        ],
        dtype=bool,
    )


def right_sets(estimator: Any, X: Any, y: Any, predicted: Any) -> NDArray[np.bool_]:
    """Whether each whole set of labels is right."""
    labels = estimator.model_.labels
    y, is_unseen = without_unseen(y, labels)
    true, found = (read_sets(sets, labels, unknown=estimator.unknown)[2] for sets in (y, predicted))
    whole((true >= 0).all(axis=1), "row")
    right: NDArray[np.bool_] = (true == found).all(axis=1) & ~is_unseen
    return right


def right_candidates(estimator: Any, X: Any, y: Any, predicted: Any) -> NDArray[np.bool_]:
    """Whether each label is one of its bag."""
    _, bags = as_bags(y, mark_for(estimator.unknown, estimator.model_.labels))
    whole(np.array([bag is not None for bag in bags]), "row")
    return np.array([label in (bag or ()) for bag, label in zip(bags, predicted.tolist(), strict=True)], dtype=bool)


def known_classes(estimator: Any, y: Any) -> Any:
    """True classes, of a taxonomy as nodes where they are rows of levels; ValueError for one that is not known."""
    taxonomy = getattr(estimator, "taxonomy_", None)
    if taxonomy is not None and (rows := rows_of_levels(y)) is not None:
        y = joined_levels(rows, taxonomy.separator or " > ")
    check_labelled(y)
    return y


def right_classes(estimator: Any, X: Any, y: Any, predicted: Any) -> NDArray[np.bool_]:
    """Whether classes, nodes of a taxonomy, or outputs of another library are equal."""
    y = known_classes(estimator, y)
    true, found = (own.tolist() if hasattr(own, "tolist") else list(own) for own in (y, predicted))
    return np.array([label in own if isinstance(own, SETS) else own == label for own, label in zip(true, found)])


@dataclass(frozen=True)
class Kind:
    """Outputs of one kind: ``confidence(estimator, X, predicted)`` and ``right(estimator, X, y, predicted)``."""

    confidence: Callable[[Any, Any, Any], Floats]
    right: Callable[[Any, Any, Any, Any], NDArray[np.bool_]]


CLASSES = Kind(of_class, right_classes)
KINDS = {
    "sequence": Kind(of_labelling, right_labellings),
    "grammar": Kind(of_structure, right_trees),
    "dependency": Kind(of_structure, right_arcs),
    "alignment": Kind(of_structure, right_lists),
    "semantics": Kind(of_meaning, right_meanings),
    "concepts": Kind(without, right_lists),
    "graph": Kind(of_structure, right_graphs),
    "ordering": Kind(of_structure, right_orders),
    "multilabel": Kind(of_set, right_sets),
    "ambiguous": Kind(of_class, right_candidates),
    "structured": Kind(without, right_lists),
}


def outputs_of(estimator: Any) -> Kind:
    """The outputs of an estimator; TypeError for one that ranks."""
    kind = kind_of(estimator)
    if kind == "ranking":
        raise TypeError(f"{type(estimator).__name__} predicts scores to sort by, and none of them is right or wrong")
    return CLASSES if kind is None else KINDS.get(kind, CLASSES)


def sentences_of(estimator: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """Inputs and true outputs; of parsers, trees alone are both."""
    if y is not None:
        return X, y
    last = estimator
    while (inner := inner_of(last)) is not None:
        last = inner
    if kind_of(last) == "grammar":
        trees = trees_of(X, None, last)
        return [tree.leaves() if last.terminals == "words" else tree.tokens() for tree in trees], trees
    if kind_of(last) == "dependency":
        return [words_of(tree) for tree in X], known_arcs_of(X, None)
    raise ValueError(f"{type(estimator).__name__} needs the true outputs y, and the target y is None")
