"""Labels of documents as y gives them: a label, or labels of which the document has one.

A set holds these, or a dict with their weights. With leaf_only=True an inner node does: any leaf below it, which share
its weight. None is any label, and so are -100 and the mark that the parameter `unknown` names, by default -1. A
document's id is that of its label, or the number of labels and that of its set.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm._adapter import as_objects
from structsvm.metrics._counts import AUTO, is_nan, is_unknown, mark_for, say_unknown
from structsvm.parameters import did_you_mean
from structsvm.tasks.common.labels import distinct, is_hashable, label_ids_of, listed, weights_of

if TYPE_CHECKING:
    from types import SimpleNamespace

    from structsvm.arrays import Integers, LabelArray
    from structsvm.structures.taxonomy import Taxonomy
    from structsvm.tasks.taxonomy.examples import IdSet

SETS = (set, frozenset, dict)


def predicts_leaves(
    leaf_only: bool | str,
    taxonomy: Taxonomy | None,
    y: LabelArray,
    classes: Iterable[Hashable] | None,
    before: bool | None,
) -> bool:
    """Whether labels are leaves alone. "auto": unless a label by itself, outside of sets, is an inner node.

    `before` is the answer of an earlier fit, None if there is none: ValueError for an inner node where labels have been
    leaves.
    """
    if isinstance(leaf_only, bool | np.bool_):
        return bool(leaf_only)
    if before is False:
        return False
    leaves = set[Hashable]() if taxonomy is None else set(taxonomy.leaves)
    inner = [label for label in (y.tolist() if hasattr(y, "tolist") else y) if is_inner(label, taxonomy, leaves)]
    named = () if classes is None else listed(classes)
    if before and inner:
        raise ValueError(
            f"y has {len(inner)} documents at inner nodes such as {inner[0]!r:.80}, and the first call has settled "
            "that labels are leaves: name inner nodes in its classes=, or read them as unknown leaves by leaf_only=True"
        )
    return bool(before) or not (inner or any(is_inner(label, taxonomy, leaves) for label in named))


def is_inner(label: object, taxonomy: Taxonomy | None, leaves: set[Hashable]) -> bool:
    """Whether a label is an inner node of a taxonomy with these leaves."""
    return taxonomy is not None and is_hashable(label) and label not in leaves and label in taxonomy


def known_labels(
    params: SimpleNamespace, y: LabelArray, classes: Iterable[Hashable] | None = None
) -> tuple[list[Hashable], Integers, list[IdSet]]:
    """Return ``(labels, ids, sets)``: the labels, sorted; of each document the id; the ids of the labels of each set.

    A set is an array, or a dict from ids to weights. The labels are `classes`, or the leaves that y names, alone or in
    sets (with leaf_only=False: the nodes).

    Raises
    ------
    ValueError
        For a label that is none of `classes`, a set that is empty or has a label that is not a node, an inner node none
        of whose leaves is a label, weights that are not finite or negative, documents about which nothing is known.
    """
    taxonomy = params.taxonomy if params.leaf_only else None
    leaves = set[Hashable]() if taxonomy is None else set(taxonomy.leaves)

    def set_of(label: object) -> Any:
        if isinstance(label, SETS):
            return label
        if is_unknown(label, unknown):
            return {None}
        return {label} if is_inner(label, taxonomy, leaves) else None

    classes = None if classes is None else listed(classes)
    unknown = _mark(params, y, classes)
    is_mixed = y.dtype == object or any(
        is_unknown(label, unknown) or is_inner(label, taxonomy, leaves) for label in set(y.tolist())
    )
    found = list(map(set_of, y.tolist())) if is_mixed else []
    is_open = np.array([labels is not None for labels in found], dtype=bool)
    if not is_open.any():
        labels = distinct(y, "y") if classes is None else distinct(classes, "classes")
        return labels.tolist(), label_ids_of(y, labels), []
    alone = y[~is_open]
    if classes is None:
        named = (member for labels in found if labels is not None for member in labels)
        members = [member for member in named if member is not None and not is_inner(member, taxonomy, leaves)]
        labels = distinct(np.concatenate([alone, as_objects(members)]) if members else alone, "y")
        if not len(labels) and all(member is None for labels in found for member in labels):
            raise ValueError("y tells nothing of any document")
    else:
        labels = distinct(classes, "classes")
    names = labels.tolist()
    below = {} if taxonomy is None else _below(taxonomy, names)
    ids, numbers, sets = np.empty(len(y), dtype=np.int32), dict[Hashable, int](), list[Any]()
    ids[~is_open] = label_ids_of(alone, labels)
    place = {name: k for k, name in enumerate(names)}
    for i in np.flatnonzero(is_open).tolist():
        weights = _weights(found[i])
        key = frozenset(weights.items())
        if key not in numbers:
            numbers[key] = len(names) + len(sets)
            sets.append(_ids_of(weights, place, below, params.taxonomy))
        ids[i] = numbers[key]
    # A set with one label is that label.
    whole = {len(names) + k: next(iter(members)) for k, members in enumerate(sets) if len(members) == 1}
    return names, np.array([whole.get(k, k) for k in ids.tolist()], dtype=np.int32), sets


def _below(taxonomy: Taxonomy, labels: list[Hashable]) -> dict[Hashable, list[int]]:
    """The ids of the labels below each node."""
    found: dict[Hashable, list[int]] = {taxonomy.root: list(range(len(labels)))}
    for k, label in enumerate(labels):
        for node in taxonomy.ancestors(label) if label in taxonomy else ():
            found.setdefault(node, []).append(k)
    return found


def _mark(params: SimpleNamespace, y: LabelArray, classes: list[Hashable] | None) -> object:
    """The mark of unknown labels; says how many numbers mean them unasked, ValueError if these are nodes."""
    unknown = getattr(params, "unknown", AUTO)
    unknown = unknown if classes is None else mark_for(unknown, classes)
    flat = y.tolist()
    alone = {label for label in flat if is_hashable(label) and not isinstance(label, SETS)}
    members = {member for label in flat if isinstance(label, SETS) for member in label}
    marks = {label for label in alone if label is not None and is_unknown(label, unknown)}
    if None in members or any(map(is_nan, members)):
        missing = None if None in members else next(filter(is_nan, members))
        raise ValueError(f"y holds a set of labels with {missing} in it; None alone: it may be any")
    inside = next((member for member in members if is_unknown(member, unknown)), None)
    if inside is not None:
        raise ValueError(f"y holds a set with {inside!r}, which alone means: not known; unknown=None makes -1 a label")
    if marks:
        if params.taxonomy is not None and any(mark in params.taxonomy for mark in marks):
            raise ValueError(
                f"y has {min(marks, key=str)!r}, which is a node of the taxonomy, and means a label that is not known; "
                "unknown=None makes -1 a label"
            )
        known = None if classes is not None else (alone | members) - marks - {None}
        say_unknown((label for label in flat if not isinstance(label, SETS)), unknown, known, "documents")
    return unknown


def _weights(known: Iterable[Hashable]) -> dict[Hashable, float]:
    """The weights of a set, none of them 0."""
    try:
        return weights_of(known)
    except ValueError as error:
        raise ValueError(f"y holds {known!r:.80}, whose weights {error}") from None


def _ids_of(
    weights: Mapping[Hashable, float], place: dict[Hashable, int], below: dict[Hashable, list[int]], taxonomy: Taxonomy
) -> IdSet:
    """The ids of the labels that a set stands for: an array, or a dict of their weights."""
    if not weights:
        raise ValueError("y holds an empty set, and a document has one label")
    found: dict[int, float] = {}
    for member, weight in weights.items():
        if member in place:
            ids = [place[member]]
        elif member is None:
            ids = list(place.values())
        elif below and member in taxonomy:
            ids = below.get(member, [])
        else:
            what = "no node of the taxonomy" if below else "none of the classes"
            near = did_you_mean(member, taxonomy.nodes if below else place)
            raise ValueError(f"y has a set with the label {member!r:.80}, which is {what}{near}")
        for k in ids:
            found[k] = found.get(k, 0.0) + weight / len(ids)
    if not found:
        nodes = ", ".join(sorted(map(repr, weights)))
        raise ValueError(f"y has the inner node {nodes}, and none of the leaves below is the label of a document")
    is_weighted = len(set(weights.values())) > 1 and len(set(found.values())) > 1
    return found if is_weighted else np.array(sorted(found))
