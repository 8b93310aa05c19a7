"""Outputs of any estimator: how sure it is of each, and whether each is right.

Estimators of `structsvm.tasks` say the one themselves, and a table by the kinds of their models the other; an estimator
of another kind is a classifier in scikit-learn's form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Sized
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np
from sklearn.pipeline import Pipeline

from structsvm.metrics._counts import AUTO, mark_for
from structsvm.metrics._graphs import by_node
from structsvm.structures.meanings import as_meaning, in_one_order
from structsvm.structures.taxonomy import joined_levels, rows_of_levels
from structsvm.tasks.ambiguous.model import as_bags
from structsvm.tasks.common.inspection.confidence import of_class
from structsvm.tasks.common.labels import agreement, check_labelled
from structsvm.tasks.dependency.arcs import known_arcs_of
from structsvm.tasks.dependency.words import words_of
from structsvm.tasks.grammar.trees import trees_of
from structsvm.tasks.multilabel.sets import read_sets, without_unseen

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable

    from numpy.typing import NDArray

    from structsvm.arrays import AnyArray, Floats, LabelArray
    from structsvm.risk.wrapped import Estimator, Inputs, Outputs
    from structsvm.structures.meanings import Meaning
    from structsvm.tasks.dependency.examples import ArcsLike
    from structsvm.tasks.dependency.words import SentenceLike
    from structsvm.tasks.grammar.parameters import GrammarParserParameters

SETS = (set, frozenset)


def unwrapped(estimator: Estimator, X: Inputs) -> tuple[Estimator, Inputs]:
    """The last estimator of pipelines, searches and taggers with a parser, and the inputs that it is given for X."""
    while (inner := inner_of(estimator)) is not None:
        if isinstance(estimator, Pipeline) and len(estimator.steps) > 1:
            X = estimator[:-1].transform(X)
        elif hasattr(estimator, "tagged"):
            X = estimator.tagged(X)
        estimator = inner
    return estimator, X


def inner_of(estimator: object) -> Estimator | None:
    """The estimator that a pipeline, a search or a tagger with a parser predicts with; None for others."""
    if isinstance(estimator, Pipeline):
        return cast("Estimator", estimator[-1])
    found = getattr(estimator, "best_estimator_", getattr(estimator, "parser_", None))
    return cast("Estimator | None", found)


def kind_of(estimator: object) -> str | None:
    """The kind of an estimator's model, as model files have it; None for an estimator of another library."""
    found: str | None = getattr(getattr(estimator, "model_", None), "kind", None)
    return found


def predicts_classes(estimator: object) -> bool:
    """Whether each output is one class with a score, as those of scikit-learn's classifiers are."""
    return kind_of(estimator) is None or (hasattr(estimator, "classes_") and hasattr(estimator, "decision_function"))


def n_inputs(X: Inputs) -> int:
    """The number of inputs."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def each(outputs: Outputs) -> list[object]:
    """Outputs as a list: values of a column, rows of a table."""
    if hasattr(outputs, "to_numpy"):
        outputs = outputs.to_numpy()
    if isinstance(outputs, np.ndarray) and outputs.ndim == 1:
        return cast("list[object]", outputs.tolist())
    return list(outputs)


# ---- whether its outputs are right ----------------------------------------------------------------


def whole(says: NDArray[np.bool_], what: str) -> None:
    """Raise ValueError for the first output of y that is not known, or not whole."""
    if not says.all():
        raise ValueError(f"y: {what} {int(np.argmin(says))} is not known, or in part: leave it out")


def of_units(
    y: Sequence[Sequence[object]], predicted: Sequence[Sequence[object]], estimator: Estimator, what: str
) -> NDArray[np.bool_]:
    """Whether all labels of each output are right; y has a list of labels for each."""
    for i, (true, found) in enumerate(zip(y, predicted, strict=True)):
        if len(true) != len(found):
            raise ValueError(f"y: {what} {i} has {len(true)} labels, X has {len(found)}")
    lengths = [len(own) for own in predicted]
    if not sum(lengths):
        return np.ones(len(lengths), dtype=bool)
    labels = estimator.model_.labels
    seen = {*labels, *getattr(estimator.model_, "shown", ())}
    if are_among(seen, y):  # all are known
        return np.array([true == found for true, found in zip(y, predicted, strict=True)], dtype=bool)
    unknown = mark_for(getattr(estimator, "unknown", AUTO), labels)
    right, says = agreement(
        chain.from_iterable(y), chain.from_iterable(predicted), unknown, (set, frozenset, list, tuple), seen=seen
    )
    at = np.repeat(np.arange(len(lengths)), lengths)
    whole(np.bincount(at[~says], minlength=len(lengths)) == 0, what)
    right_of_all: NDArray[np.bool_] = np.bincount(at[~right], minlength=len(lengths)) == 0
    return right_of_all


def are_among(labels: set[Hashable], y: Iterable[Iterable[object]]) -> bool:
    """Whether all labels are some of those given; collections of labels are none."""
    try:
        return set(chain.from_iterable(y)) <= labels
    except TypeError:
        return False


def right_labellings(estimator: Estimator, X: Inputs, y: Outputs, predicted: Outputs) -> NDArray[np.bool_]:
    """Whether all labels of each sequence are right, or all spans."""
    if estimator.model_.has_spans:
        pairs = zip(map(tuples, y), map(tuples, predicted), strict=True)
        return np.array([{*true} == {*found} for true, found in pairs], dtype=bool)
    labels = [list(cast("Iterable[object]", own.tolist() if isinstance(own, np.ndarray) else own)) for own in y]
    return of_units(labels, cast("Sequence[Sequence[object]]", predicted), estimator, "sequence")


def tuples(output: object) -> list[tuple[object, ...]]:
    """The spans, or arcs, of an output as tuples."""
    return [tuple(part) for part in cast("Iterable[Iterable[object]]", output)]


def by_each_node(true: object, found: object, i: int) -> tuple[list[object], list[object]]:
    """Both labellings of graph i in the order of its nodes; None for those that a dict of true labels leaves out."""
    own, other = by_node(true, found, i)
    if isinstance(true, dict) and isinstance(found, dict):
        return [true.get(node) for node in found], list(found.values())
    return own, other


def right_graphs(estimator: Estimator, X: Inputs, y: Outputs, predicted: Outputs) -> NDArray[np.bool_]:
    """Whether the labels of all nodes are right, per graph."""
    pairs = [by_each_node(true, found, i) for i, (true, found) in enumerate(zip(y, predicted, strict=True))]
    return of_units([true for true, _ in pairs], [found for _, found in pairs], estimator, "graph")


def right_trees(estimator: Estimator, X: Inputs, y: Outputs, predicted: Outputs) -> NDArray[np.bool_]:
    """Whether each whole tree is right."""
    trees = trees_of(X, y, cast("GrammarParserParameters", estimator))
    return np.array([str(a) == str(b) for a, b in zip(trees, predicted, strict=True)], dtype=bool)


def known_arcs(X: Inputs, y: Outputs | None) -> list[list[tuple[int, str]]]:
    """The head and the relation of all words of true trees; ValueError for one that is not known."""
    return known_arcs_of(cast("Collection[SentenceLike]", X), cast("Collection[ArcsLike] | None", y))


def right_arcs(estimator: Estimator, X: Inputs, y: Outputs, predicted: Outputs) -> NDArray[np.bool_]:
    """Whether head and relation of all words are right, per dependency tree."""
    pairs = zip(known_arcs(X, y), predicted, strict=True)
    return np.array([tuples(true) == tuples(found) for true, found in pairs])


def right_lists(estimator: Estimator, X: Inputs, y: Outputs, predicted: Outputs) -> NDArray[np.bool_]:
    """Whether all entries are right, per alignment or other list."""
    whole(np.array([own is not None for own in y]), "output")
    return np.array([listed(a) == listed(b) for a, b in zip(y, predicted, strict=True)], dtype=bool)


def right_orders(estimator: Estimator, X: Inputs, y: Outputs, predicted: Outputs) -> NDArray[np.bool_]:
    """Whether each whole order is right."""
    pairs = zip(cast("Sequence[AnyArray | None]", y), cast("Sequence[Sized]", predicted), strict=True)
    known = [own is not None and np.ndim(own) == 1 and len(own) == len(found) for own, found in pairs]
    whole(np.array(known), "order")
    return right_lists(estimator, X, y, predicted)


def listed(output: object) -> object:
    """An output with lists in the place of arrays and tuples."""
    if isinstance(output, np.ndarray):
        return cast("list[object]", output.tolist())
    return [listed(own) for own in output] if isinstance(output, (list, tuple)) else output


def right_meanings(estimator: Estimator, X: Inputs, y: Outputs, predicted: Outputs) -> NDArray[np.bool_]:
    """Whether each meaning is one of its sentence's bag."""
    grammar = estimator.model_.grammar
    any_order = set() if grammar is None else grammar.any_order

    def ordered(meanings: Iterable[Meaning]) -> list[Meaning]:
        return [in_one_order(as_meaning(meaning), any_order) for meaning in meanings]

    bags = [[bag] if isinstance(bag, (str, tuple)) else cast("Iterable[Meaning]", bag) for bag in y]
    best = [ordered(found[:1]) for found in cast("Sequence[Sequence[Meaning]]", predicted)]
    pairs = zip(best, map(ordered, bags), strict=True)
    return np.array([bool(found) and found[0] in own for found, own in pairs], dtype=bool)


def right_sets(estimator: Estimator, X: Inputs, y: Outputs, predicted: Outputs) -> NDArray[np.bool_]:
    """Whether each whole set of labels is right."""
    labels = list(estimator.model_.labels)
    y, is_unseen = without_unseen(y, labels)
    true, found = (read_sets(sets, labels, unknown=estimator.unknown)[2] for sets in (y, predicted))
    whole((true >= 0).all(axis=1), "row")
    right: NDArray[np.bool_] = (true == found).all(axis=1) & ~is_unseen
    return right


def right_candidates(estimator: Estimator, X: Inputs, y: Outputs, predicted: Outputs) -> NDArray[np.bool_]:
    """Whether each label is one of its bag."""
    _, bags = as_bags(y, mark_for(estimator.unknown, estimator.model_.labels))
    whole(np.array([bag is not None for bag in bags]), "row")
    pairs = zip(bags, cast("LabelArray", predicted).tolist(), strict=True)
    return np.array([label in (bag or ()) for bag, label in pairs], dtype=bool)


def known_classes(estimator: Estimator, y: Outputs) -> Outputs:
    """True classes, of a taxonomy as nodes where they are rows of levels; ValueError for one that is not known."""
    taxonomy = getattr(estimator, "taxonomy_", None)
    if taxonomy is not None and (rows := rows_of_levels(y)) is not None:
        y = joined_levels(rows, taxonomy.separator or " > ")
    check_labelled(y)
    return y


def right_classes(estimator: Estimator, X: Inputs, y: Outputs, predicted: Outputs) -> NDArray[np.bool_]:
    """Whether classes, nodes of a taxonomy, or outputs of another library are equal."""
    true, found = (
        cast("list[Hashable]", own.tolist() if hasattr(own, "tolist") else list(own))
        for own in (known_classes(estimator, y), predicted)
    )
    return np.array([label in own if isinstance(own, SETS) else own == label for own, label in zip(true, found)])


def confidence(estimator: Estimator, X: Inputs, predicted: Outputs) -> Floats:
    """How sure an estimator is of each of its outputs."""
    own = getattr(estimator, "predict_confidence", None)
    found: Floats = of_class(estimator, X, predicted) if own is None else own(X, predicted)
    return found


Right: TypeAlias = "Callable[[Estimator, Inputs, Outputs, Outputs], NDArray[np.bool_]]"
# By kind ``right(estimator, X, y, predicted)``; all others have classes.
KINDS: dict[str, Right] = {
    "sequence": right_labellings,
    "grammar": right_trees,
    "dependency": right_arcs,
    "alignment": right_lists,
    "semantics": right_meanings,
    "concepts": right_lists,
    "graph": right_graphs,
    "ordering": right_orders,
    "multilabel": right_sets,
    "ambiguous": right_candidates,
    "structured": right_lists,
}


def right_of(estimator: object) -> Right:
    """The test whether an estimator's outputs are right; TypeError for one that ranks."""
    kind = kind_of(estimator)
    if kind == "ranking":
        raise TypeError(f"{type(estimator).__name__} predicts scores to sort by, and none of them is right or wrong")
    return right_classes if kind is None else KINDS.get(kind, right_classes)


def sentences_of(estimator: Estimator, X: Inputs, y: Outputs | None) -> tuple[Inputs, Outputs]:
    """Inputs and true outputs; of parsers, trees alone are both."""
    if y is not None:
        return X, y
    last = estimator
    while (inner := inner_of(last)) is not None:
        last = inner
    if kind_of(last) == "grammar":
        trees = trees_of(X, None, cast("GrammarParserParameters", last))
        return [tree.leaves() if last.terminals == "words" else tree.tokens() for tree in trees], trees
    if kind_of(last) == "dependency":
        return [words_of(tree) for tree in cast("Collection[SentenceLike]", X)], known_arcs(X, None)
    raise ValueError(f"{type(estimator).__name__} needs the true outputs y, and the target y is None")
