"""Parts of outputs: how probable an estimator finds each, and which are true.

A part is an entity or another span of a sequence and a bracket of a tree, as ``(start, stop, label)``; an arc of a
dependency tree, as ``(word, head)`` with words from 1 on and the root 0; a label of a graph's node, ``(node, label)``;
a label of a set; a node of a taxonomy, beside the root, on the path to a document's; a class.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from structsvm.metrics._counts import AUTO, is_unknown, mark_for
from structsvm.metrics._schemes import chunks_of
from structsvm.risk.outputs import kind_of, known_classes, listed, predicts_classes
from structsvm.risk.strangeness import UNSEEN, numbers, true_heads, true_members, true_nodes, true_rows
from structsvm.tasks.common.inspection.confidence import has_probabilities
from structsvm.tasks.grammar.trees import check_whole, trees_of
from structsvm.tasks.multilabel.model import without_unseen
from structsvm.tasks.sequence.chances import parts_by
from structsvm.tasks.sequence.segments import part_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from structsvm.risk.wrapped import Estimator, Inputs, Outputs
    from structsvm.tasks.grammar.parameters import GrammarParserParameters

# Per output, its parts with their probabilities; and its true parts.
Likely: TypeAlias = "list[dict[Hashable, float]]"
Truth: TypeAlias = "list[frozenset[Hashable]]"
# The least probability of a part: one less probable is none.
LEAST = 1e-3


# ---- spans ----------------------------------------------------------------------------------------


def likely_chunks(estimator: Estimator, X: Inputs) -> Likely:
    """Spans of sequences."""
    return by_span(estimator.predict_spans(X, probabilities=True, least=LEAST))


def likely_brackets(estimator: Estimator, X: Inputs) -> Likely:
    """Brackets of trees."""
    return by_span(estimator.predict_spans(X, least=LEAST))


def by_span(found: Iterable[Iterable[tuple[int, int, str, float]]]) -> Likely:
    """Probabilities by span."""
    return [{(start, stop, label): p for start, stop, label, p in own} for own in found]


def true_chunks(estimator: Estimator, X: Inputs, y: Outputs) -> Truth:
    """Spans of true labels; ValueError for a sequence that is not known, or in part."""
    model = estimator.model_
    if model.segments is not None:
        tags = model.as_tags(y, y, X, None)[0]
        check_known(tags, None)
        return [frozenset(chunks_of(map(part_of, own))) for own in tags]
    labels = [list(cast("Iterable[Hashable]", own)) for own in y]
    check_known(labels, mark_for(getattr(estimator, "unknown", AUTO), model.labels))
    return [frozenset(chunks_of(parts_by(model.scheme, own))) for own in labels]


def check_known(y: Iterable[Iterable[object]], mark: object) -> None:
    """Raise ValueError for the first sequence with a label that is not known."""
    for i, own in enumerate(y):
        if any(is_unknown(label, mark) or isinstance(label, (set, frozenset, list, dict)) for label in own):
            raise ValueError(f"y: sequence {i} is not known, or in part: leave it out")


def true_brackets(estimator: Estimator, X: Inputs, y: Outputs) -> Truth:
    """Brackets of true trees; ValueError for one that is known in part."""
    trees = trees_of(X, y, cast("GrammarParserParameters", estimator))
    check_whole(trees, "a promise")
    return [frozenset(estimator.model_.brackets_of(tree)) for tree in trees]


# ---- tables of labels -----------------------------------------------------------------------------


def likely_of(rows: Iterable[NDArray[np.float64]], names: Callable[[int, int], Hashable]) -> Likely:
    """Parts from a table for each output, with the name of the part of each entry."""
    return [
        {names(i, k): float(own[i, k]) for i, k in zip(*map(np.ndarray.tolist, np.nonzero(own >= LEAST)), strict=True)}
        for own in rows
    ]


def likely_arcs(estimator: Estimator, X: Inputs) -> Likely:
    """Heads of words."""
    return likely_of(cast("list[NDArray[np.float64]]", estimator.predict_proba(X)), lambda i, head: (i + 1, head))


def likely_nodes(estimator: Estimator, X: Inputs) -> Likely:
    """Labels of the nodes of graphs."""
    labels = list(estimator.model_.labels)
    flat = [own.reshape(-1, len(labels)) for own in estimator.predict_marginals(X)]
    return likely_of(flat, lambda i, k: (i, labels[k]))


def likely_members(estimator: Estimator, X: Inputs) -> Likely:
    """Labels of sets, and classes."""
    names = cast("list[Hashable]", np.asarray(estimator.classes_).tolist())
    return likely_of(np.asarray(estimator.predict_proba(X), dtype=np.float64)[:, None], lambda _, k: names[k])


def likely_paths(estimator: Estimator, X: Inputs) -> Likely:
    """Nodes of a taxonomy without the root."""
    names, root = estimator.taxonomy_.nodes, estimator.taxonomy_.root
    found = likely_of(estimator.node_proba(X).astype(np.float64)[:, None], lambda _, k: names[k])
    return [{node: p for node, p in own.items() if node != root} for own in found]


def true_paths(estimator: Estimator, X: Inputs, y: Outputs) -> Truth:
    """The nodes from below the root to the true one."""
    taxonomy = estimator.taxonomy_
    pairs = numbers(
        taxonomy.nodes, ([label] for label in cast("list[Hashable]", listed(known_classes(estimator, y)))), None, "row"
    )
    nodes = (int(own[0, 1]) for own in pairs)
    return [frozenset([(UNSEEN,)]) if k == UNSEEN else frozenset(taxonomy.ancestors(taxonomy.nodes[k])) for k in nodes]


def named(pairs: Iterable[NDArray[np.int64]], name: Callable[[int, int], Hashable]) -> Truth:
    """True parts from pairs of a unit and a label; a label that is not known is a part that no output has."""
    return [frozenset(name(i, k) if k != UNSEEN else (i, (UNSEEN,)) for i, k in own.tolist()) for own in pairs]


def true_arcs(estimator: Estimator, X: Inputs, y: Outputs) -> Truth:
    """Heads of words."""
    return named(true_heads(estimator, X, y), lambda i, head: (i + 1, head))


def true_labels(estimator: Estimator, X: Inputs, y: Outputs) -> Truth:
    """Labels of the nodes of graphs."""
    labels = list(estimator.model_.labels)
    return named(true_nodes(estimator, X, y), lambda i, k: (i, labels[k]))


def true_sets(estimator: Estimator, X: Inputs, y: Outputs) -> Truth:
    """Labels of sets; what the model does not know is one more."""
    y, is_unseen = without_unseen(y, estimator.model_.labels)
    names = cast("list[Hashable]", np.asarray(estimator.classes_).tolist())
    found = named(true_members(estimator, X, y), lambda _, k: names[k])
    more = np.broadcast_to(is_unseen, len(found)).tolist()
    return [own | {(UNSEEN,)} if unseen else own for own, unseen in zip(found, more, strict=True)]


def true_classes(estimator: Estimator, X: Inputs, y: Outputs) -> Truth:
    """The class of each row."""
    names = cast("list[Hashable]", np.asarray(estimator.classes_).tolist())
    return named(true_rows(estimator, X, y), lambda _, k: names[k])


# ---- the table ------------------------------------------------------------------------------------


def last(part: Hashable) -> Hashable:
    """The label of a part that is a tuple with it at the end."""
    return cast("tuple[Hashable, ...]", part)[-1]


def itself(part: Hashable) -> Hashable:
    """The label of a part that is a label."""
    return part


@dataclass(frozen=True)
class Parts:
    """Parts of the outputs of one kind of estimators.

    Attributes
    ----------
    likely : callable
        ``likely(estimator, X)``: per input, the parts with a probability of `LEAST` or more, and this.
    true : callable
        ``true(estimator, X, y)``: per output, its true parts.
    label : callable, optional
        The label of a part; None: parts have no labels.
    are_spans : bool
        Whether they are spans of a sentence.
    """

    likely: Callable[[Estimator, Inputs], Likely]
    true: Callable[[Estimator, Inputs, Outputs], Truth]
    label: Callable[[Hashable], Hashable] | None = itself
    are_spans: bool = False


CLASSES = Parts(likely_members, true_classes)
KINDS = {
    "sequence": Parts(likely_chunks, true_chunks, last, are_spans=True),
    "grammar": Parts(likely_brackets, true_brackets, last, are_spans=True),
    "dependency": Parts(likely_arcs, true_arcs, None),
    "graph": Parts(likely_nodes, true_labels, last),
    "multilabel": Parts(likely_members, true_sets),
    "taxonomy": Parts(likely_paths, true_paths),
}


def parts_of(estimator: Estimator) -> Parts:
    """The parts of an estimator's outputs; TypeError where these have none, or no probabilities."""
    parts = KINDS.get(kind_of(estimator) or "", CLASSES)
    if parts is CLASSES and not predicts_classes(estimator):
        raise TypeError(f"outputs of {type(estimator).__name__} have no parts with probabilities")
    if not has_probabilities(estimator) or not (parts is not CLASSES or hasattr(estimator, "predict_proba")):
        raise TypeError(
            f"{type(estimator).__name__} has scores without probabilities: train with loss='log' or probability=True, "
            "or call its calibrate"
        )
    return parts
