"""What y tells of documents: a label, or labels of which the document has one.

A set holds these. With leaf_only an inner node does: any leaf below it. A document's id is that of its label, or the
number of labels and that of its set.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from structsvm._adapter import as_objects
from structsvm.tasks.common.labels import distinct, is_hashable, label_ids_of, listed


def known_labels(params: Any, y: Any, classes: Any = None) -> tuple[Any, Any, list[Any]]:
    """Return ``(labels, ids, sets)``: the labels, sorted; of each document the id; the ids of the labels of each set.

    The labels are `classes`, or the leaves that y names, alone or in sets (with leaf_only=False: the nodes).

    Raises
    ------
    ValueError
        For a label that is none of `classes`, a set that is empty or has a label that is no node, an inner node none of
        whose leaves is a label.
    """
    leaves = None if params.taxonomy is None or not params.leaf_only else set(params.taxonomy.leaves)

    def is_inner(label: Any) -> bool:
        return leaves is not None and is_hashable(label) and label not in leaves and label in params.taxonomy

    def set_of(label: Any) -> Any:
        return label if isinstance(label, (set, frozenset)) else {label} if is_inner(label) else None

    is_mixed = y.dtype == object or any(map(is_inner, set(y.tolist())))
    found = list(map(set_of, y.tolist())) if is_mixed else []
    is_open = np.array([labels is not None for labels in found], dtype=bool)
    if not is_open.any():
        labels = distinct(y, "y") if classes is None else distinct(listed(classes), "classes")
        return labels.tolist(), label_ids_of(y, labels), []
    alone = y[~is_open]
    if classes is None:
        members = [member for labels in found if labels is not None for member in labels if not is_inner(member)]
        labels = distinct(np.concatenate([alone, as_objects(members)]) if members else alone, "y")
    else:
        labels = distinct(listed(classes), "classes")
    names = labels.tolist()
    below = _below(params.taxonomy, names) if leaves is not None else {}
    ids, numbers, sets = np.empty(len(y), dtype=np.int32), dict[Any, int](), list[Any]()
    ids[~is_open] = label_ids_of(alone, labels)
    place = {name: k for k, name in enumerate(names)}
    for i in np.flatnonzero(is_open).tolist():
        key = frozenset(found[i])
        if key not in numbers:
            numbers[key] = len(names) + len(sets)
            sets.append(_ids_of(key, place, below, params.taxonomy))
        ids[i] = numbers[key]
    # Of a set with one label all is known.
    whole = {len(names) + k: members[0] for k, members in enumerate(sets) if len(members) == 1}
    return names, np.array([whole.get(k, k) for k in ids.tolist()], dtype=np.int32), sets


def _below(taxonomy: Any, labels: list[Any]) -> dict[Any, list[int]]:
    """The ids of the labels below each node."""
    found: dict[Any, list[int]] = {taxonomy.root: list(range(len(labels)))}
    for k, label in enumerate(labels):
        for node in taxonomy.ancestors(label) if label in taxonomy else ():
            found.setdefault(node, []).append(k)
    return found


def _ids_of(members: Any, place: dict[Any, int], below: dict[Any, list[int]], taxonomy: Any) -> Any:
    """The ids of the labels that a set stands for."""
    if not members:
        raise ValueError("y holds an empty set, and a document has one label")
    found: set[int] = set()
    for member in members:
        if member in place:
            found.add(place[member])
        elif below and member in taxonomy:
            found.update(below.get(member, ()))
        else:
            what = "no node of the taxonomy" if below else "none of the classes"
            raise ValueError(f"y has a set with the label {member!r}, which is {what}")
    if not found:
        nodes = ", ".join(sorted(map(repr, members)))
        raise ValueError(f"y has the inner node {nodes}, and none of the leaves below is the label of a document")
    return np.array(sorted(found))
