"""Parts of outputs: how probable an estimator finds each, and which are true.

A part is an entity or another span of a sequence and a bracket of a tree, as ``(start, stop, label)``; an arc of a
dependency tree, as ``(word, head)`` with words from 1 on and the root 0; a label of a graph's node, ``(node, label)``;
a label of a set; a node of a taxonomy, beside the root, on the path to a document's; a class.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from structsvm.metrics._counts import AUTO, is_unknown, mark_for
from structsvm.risk.losses import Counts, wrong
from structsvm.risk.outputs import kind_of, known_classes, listed, predicts_classes
from structsvm.risk.strangeness import numbers, sound, true_heads, true_members, true_nodes, true_rows
from structsvm.risk.tables import (
    UNSEEN,
    Form,
    PartTable,
    arcs,
    is_among,
    names_alone,
    nodes,
    places_in,
    spans,
    table_of,
)
from structsvm.tasks.common.inspection.confidence import has_probabilities
from structsvm.tasks.grammar.trees import check_whole, trees_of
from structsvm.tasks.sequence.chances import INSIDE, OPEN, parts_by
from structsvm.tasks.sequence.likely import Chunks
from structsvm.tasks.sequence.segments import part_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from structsvm.arrays import Floats
    from structsvm.metrics._schemes import Part
    from structsvm.risk.wrapped import Estimator, Inputs, Outputs
    from structsvm.structures.taxonomy import Taxonomy
    from structsvm.tasks.grammar.parameters import GrammarParserParameters

# Pairs of a unit and a label, per output.
Pairs: TypeAlias = "Iterable[NDArray[np.int64]]"
# The least probability of a part: one less probable is none.
LEAST = 1e-3


# ---- spans ----------------------------------------------------------------------------------------


def likely_chunks(estimator: Estimator, X: Inputs) -> PartTable:
    """Spans of sequences."""
    return table_of_chunks(estimator.model_.likely_chunks(X, LEAST))


def likely_brackets(estimator: Estimator, X: Inputs) -> PartTable:
    """Brackets of trees."""
    return table_of_chunks(Chunks.of_lists(estimator.predict_spans(X, least=LEAST)))


def table_of_chunks(found: Chunks) -> PartTable:
    """Chunks as parts."""
    return table_of(found.offsets, found.start, found.stop, found.kind, found.kinds, spans, found.chance)


def true_chunks(estimator: Estimator, X: Inputs, y: Outputs) -> PartTable:
    """Spans of true labels; ValueError for a sequence that is not known, or in part, or of another length."""
    model = estimator.model_
    labels = [list(cast("Iterable[Hashable]", own)) for own in y]
    mark, part = mark_for(getattr(estimator, "unknown", AUTO), model.labels), parts_of_labels(estimator)
    if model.segments is not None:
        labels, mark = [list(own) for own in model.true_tags(y, X, None)], None
    check_lengths(labels, model.lengths_of(X))
    flat = list(chain.from_iterable(labels))
    try:
        number = {label: k for k, label in enumerate(dict.fromkeys(flat))}
    except TypeError:  # a list or a set
        check_known(labels, mark)
        raise
    if any(map(is_doubtful(mark), number)):
        check_known(labels, mark)
    ids = np.fromiter(map(number.__getitem__, flat), np.int64, len(flat))
    return chunks_of_ids(ids, np.cumsum([0, *map(len, labels)]), [part(label) for label in number])


def parts_of_labels(estimator: Estimator) -> Callable[[Hashable], Part]:
    """The role and the type of a label."""
    if estimator.model_.segments is not None:
        return cast("Callable[[Hashable], Part]", part_of)
    scheme = estimator.model_.scheme
    return lambda label: parts_by(scheme, [label])[0]


def chunks_of_ids(ids: NDArray[np.int64], offsets: NDArray[np.int64], parts: Sequence[Part]) -> PartTable:
    """Chunks of the labels of all sequences, which `structsvm.metrics._schemes.chunks_of` reads one by one."""
    kinds = list(dict.fromkeys(part.kind for part in parts))
    kind = np.array([kinds.index(part.kind) for part in parts], dtype=np.int64)[ids]
    roles, goes_on = np.array([part.role for part in parts], dtype="U1"), np.zeros(len(ids) + 1, dtype=bool)
    is_in, is_open, is_inside = ((roles != "O")[ids], *(np.isin(roles, own)[ids] for own in (OPEN, INSIDE)))
    goes_on[1:-1] = is_open[:-1] & is_inside[1:] & (kind[1:] == kind[:-1])
    goes_on[offsets] = False
    begins, lasts = np.flatnonzero(is_in & ~goes_on[:-1]), np.flatnonzero(is_in & ~goes_on[1:])
    first = offsets[np.searchsorted(offsets, begins, side="right") - 1]
    ends = np.searchsorted(begins, offsets)
    return table_of(ends, begins - first, lasts + 1 - first, kind[begins], kinds, spans)


def check_lengths(y: Sequence[Sequence[object]], lengths: Sequence[int]) -> None:
    """Raise ValueError for the first sequence whose number of labels is not its number of tokens."""
    for i, (own, n) in enumerate(zip(y, lengths, strict=True)):
        if len(own) != n:
            raise ValueError(f"y: sequence {i} has {len(own)} labels, X has {n}")


def is_doubtful(mark: object) -> Callable[[object], bool]:
    """The test whether a label is not known, or in part."""
    return lambda label: is_unknown(label, mark) or isinstance(label, (set, frozenset, list, dict))


def check_known(y: Iterable[Iterable[object]], mark: object) -> None:
    """Raise ValueError for the first sequence with a label that is not known."""
    for i, own in enumerate(y):
        if any(map(is_doubtful(mark), own)):
            raise ValueError(f"y: sequence {i} is not known, or in part: leave it out")


def true_brackets(estimator: Estimator, X: Inputs, y: Outputs) -> PartTable:
    """Brackets of true trees; ValueError for one that is known in part."""
    trees = trees_of(X, y, cast("GrammarParserParameters", estimator))
    check_whole(trees, "a promise")
    found = [sorted(estimator.model_.brackets_of(tree)) for tree in trees]
    return table_of_chunks(Chunks.of_lists([[(*bracket, 1.0) for bracket in own] for own in found]))


# ---- tables of labels -----------------------------------------------------------------------------


def likely_of(rows: Iterable[NDArray[np.float64]], labels: Sequence[Hashable], form: Form) -> PartTable:
    """Parts from a table for each output, a row per unit and a column per label."""
    found = [(*np.nonzero(own >= LEAST), own[own >= LEAST]) for own in rows]
    none = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0)
    first, label, chance = (np.concatenate(column) for column in zip(none, *found, strict=True))
    offsets = np.cumsum([0, *(len(unit) for unit, _, _ in found)])
    return table_of(offsets, first, None, label, labels, form, chance)


def likely_arcs(estimator: Estimator, X: Inputs) -> PartTable:
    """Heads of words."""
    return as_arcs(likely_of(cast("list[NDArray[np.float64]]", estimator.predict_proba(X)), [], arcs))


def as_arcs(found: PartTable) -> PartTable:
    """Parts of words whose labels are their heads."""
    return table_of(found.offsets, found.first + 1, found.label, None, [None], arcs, found.chance)


def likely_nodes(estimator: Estimator, X: Inputs) -> PartTable:
    """Labels of the nodes of graphs."""
    labels = list(estimator.model_.labels)
    return likely_of((own.reshape(-1, len(labels)) for own in estimator.predict_marginals(X)), labels, nodes)


def likely_members(estimator: Estimator, X: Inputs) -> PartTable:
    """Labels of sets, and classes."""
    return likely_of(sound(estimator, "predict_proba", X)[:, None], class_names(estimator), names_alone)


def class_names(estimator: Estimator) -> list[Hashable]:
    """The classes of an estimator."""
    return cast("list[Hashable]", np.asarray(estimator.classes_).tolist())


def likely_paths(estimator: Estimator, X: Inputs) -> PartTable:
    """Nodes of a taxonomy without the root."""
    names = list(estimator.taxonomy_.nodes)
    found = likely_of(estimator.node_proba(X).astype(np.float64)[:, None], names, names_alone)
    return found.keep(found.label != names.index(estimator.taxonomy_.root))


def true_paths(estimator: Estimator, X: Inputs, y: Outputs) -> PartTable:
    """The nodes from below the root to the true one."""
    taxonomy, names = estimator.taxonomy_, list(estimator.taxonomy_.nodes)
    labels = ([label] for label in cast("list[Hashable]", listed(known_classes(estimator, y))))
    ids = [int(own[0, 1]) for own in numbers(names, labels, None, "row")]
    paths = {k: path_ids(taxonomy, names[k]) for k in {*ids} - {UNSEEN}} | {UNSEEN: np.array([UNSEEN])}
    found = [paths[k] for k in ids]
    return named((np.stack([np.zeros_like(own), own], axis=1) for own in found), names, names_alone)


def path_ids(taxonomy: Taxonomy, node: Hashable) -> NDArray[np.int64]:
    """A node and its ancestors without the root, as indices of nodes."""
    return np.array(sorted(map(taxonomy.number, taxonomy.ancestors(node))), dtype=np.int64)


def named(pairs: Pairs, labels: Sequence[Hashable], form: Form) -> PartTable:
    """True parts from pairs of a unit and a label; a label that is not known is a part that no output has."""
    every = list(pairs)
    flat = np.concatenate([np.empty((0, 2), dtype=np.int64), *every])
    return table_of(np.cumsum([0, *map(len, every)]), flat[:, 0], None, flat[:, 1], labels, form)


def true_arcs(estimator: Estimator, X: Inputs, y: Outputs) -> PartTable:
    """Heads of words."""
    return as_arcs(named(true_heads(estimator, X, y), [], arcs))


def true_labels(estimator: Estimator, X: Inputs, y: Outputs) -> PartTable:
    """Labels of the nodes of graphs."""
    return named(true_nodes(estimator, X, y), list(estimator.model_.labels), nodes)


def true_sets(estimator: Estimator, X: Inputs, y: Outputs) -> PartTable:
    """Labels of sets."""
    return named(true_members(estimator, X, y), class_names(estimator), names_alone)


def true_classes(estimator: Estimator, X: Inputs, y: Outputs) -> PartTable:
    """The class of each row."""
    return named(true_rows(estimator, X, y), class_names(estimator), names_alone)


# ---- the table ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Parts:
    """Parts of the outputs of one kind of estimators.

    Attributes
    ----------
    likely : callable
        ``likely(estimator, X)``: the parts of each input's output that have a probability of `LEAST` or more.
    true : callable
        ``true(estimator, X, y)``: the true parts of each output.
    has_labels : bool
        Whether parts have labels.
    are_spans : bool
        Whether they are spans of a sentence.
    """

    likely: Callable[[Estimator, Inputs], PartTable]
    true: Callable[[Estimator, Inputs, Outputs], PartTable]
    has_labels: bool = True
    are_spans: bool = False


CLASSES = Parts(likely_members, true_classes)
KINDS = {
    "sequence": Parts(likely_chunks, true_chunks, are_spans=True),
    "grammar": Parts(likely_brackets, true_brackets, are_spans=True),
    "dependency": Parts(likely_arcs, true_arcs, has_labels=False),
    "graph": Parts(likely_nodes, true_labels),
    "multilabel": Parts(likely_members, true_sets),
    "taxonomy": Parts(likely_paths, true_paths),
}


def known_parts(estimator: Estimator) -> Parts:
    """The parts of an estimator's outputs; TypeError where these have none."""
    parts = KINDS.get(kind_of(estimator) or "", CLASSES)
    if parts is CLASSES and not predicts_classes(estimator):
        raise TypeError(f"outputs of {type(estimator).__name__} have no parts that are right or wrong")
    return parts


def wrong_share(estimator: Estimator, X: Inputs, y: Outputs, predicted: Outputs) -> Floats:
    """Per output, the share of its parts that are not true; 0 for one without parts."""
    parts = known_parts(estimator)
    true, found = (parts.true(estimator, X, own) for own in (y, predicted))
    n_right = np.bincount(found.output[is_among(found, true)], minlength=len(found))
    return wrong(Counts(n_right, found.sizes, true.sizes, 0))


def have_chances(estimator: Estimator, parts: Parts) -> bool:
    """Whether the parts have probabilities."""
    sums = hasattr(estimator, "predict_proba") if parts is CLASSES else estimator.model_.can_sum
    return sums and has_probabilities(estimator)


def mean_chance(estimator: Estimator, X: Inputs, predicted: Outputs) -> Floats:
    """Per output, the mean probability of its parts, which is the expected share of right ones; 1 for one without."""
    parts = parts_of(estimator)
    likely, found = parts.likely(estimator, X), parts.true(estimator, X, predicted)
    chance = np.append(likely.chance, 0.0)[places_in(likely, found)]
    total = np.bincount(found.output, chance, len(found))
    return np.where(found.sizes > 0, total / found.sizes.clip(1), 1.0)


def parts_of(estimator: Estimator) -> Parts:
    """The parts of an estimator's outputs; TypeError where these have none, or no probabilities."""
    parts = known_parts(estimator)
    if parts is not CLASSES and not estimator.model_.can_sum:
        raise TypeError(estimator.model_.no_sums("a promise about parts"))
    if not have_chances(estimator, parts):
        raise TypeError(
            f"{type(estimator).__name__} has scores without probabilities: train with loss='log' or probability=True, "
            "or call its calibrate"
        )
    return parts
