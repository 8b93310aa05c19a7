"""Labels of nodes as users give them, and their ids for the oracle."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from structsvm.metrics._counts import AUTO, is_unknown, mark_for, say_unknown
from structsvm.tasks.common.labels import ids_by_label, is_hashable, label_array, sort_labels
from structsvm.tasks.graph.inputs import Form

if TYPE_CHECKING:
    from structsvm.arrays import LabelArray


def by_node(y: Any, forms: list[Form]) -> tuple[list[Any], bool]:
    """Return ``(labels, is_named)``: per graph a list or an array of the labels of its nodes, None where not known.

    Parameters
    ----------
    y : list of arrays, lists or dicts; or the name of an attribute of networkx's nodes
    forms : list of Form
        Of the graphs.

    `is_named` says whether labels came by nodes, and not in their order.
    """
    if isinstance(y, str):
        if any(form.attributes is None for form in forms):
            raise ValueError(f"y = {y!r} names an attribute of nodes, and only networkx graphs have them")
        found = [[own.get(y) for own in form.attributes or ()] for form in forms]
        if all(label is None for label in chain.from_iterable(found)):
            raise ValueError(f"no node has the attribute {y!r}")
        return found, True
    if y is None or not hasattr(y, "__len__") or not hasattr(y, "__iter__"):
        raise ValueError(f"y must hold the labels of each graph's nodes, got {y!r:.80}")
    y = list(y)
    if len(y) != len(forms):
        raise ValueError(f"X has {len(forms)} graphs, y has {len(y)}")
    is_named = any(isinstance(labels, dict) for labels in y)
    return [_of_graph(labels, form, i) for i, (labels, form) in enumerate(zip(y, forms, strict=True))], is_named


def _of_graph(labels: Any, form: Form, i: int) -> Any:
    if isinstance(labels, dict):
        if form.nodes is None:
            raise ValueError(f"graph {i}: y has labels by node, and only networkx graphs have names of nodes")
        unknown = labels.keys() - set(form.nodes)
        if unknown:
            raise ValueError(f"graph {i}: y has a label for {next(iter(unknown))!r:.80}, which is no node")
        return [labels.get(node) for node in form.nodes]
    if isinstance(labels, (str, bytes)) or not hasattr(labels, "__len__"):
        raise TypeError(f"graph {i}: y must hold a list of labels, one per node, got {labels!r:.80}")
    if form.shape is not None and (np.ndim(labels) != 1 or form.n_nodes == 0):
        labels = np.asarray(labels)
        if labels.shape != form.shape:
            raise ValueError(f"graph {i} is a grid of shape {form.shape}, its labels have shape {labels.shape}")
        labels = labels.ravel()
    if isinstance(labels, np.ndarray) and labels.ndim != 1:
        raise ValueError(f"graph {i} has {form.n_nodes} nodes, and labels of shape {labels.shape}")
    if len(labels) != form.n_nodes:
        raise ValueError(f"graph {i} has {form.n_nodes} nodes and {len(labels)} labels")
    return labels


def encode_labels(
    y: list[Any], labels: Sequence[Hashable] | None = None, unknown: object = AUTO, *, least: int = 2
) -> tuple[Sequence[Hashable], NDArray[np.int32], NDArray[np.bool_]]:
    """Return ``(labels, label_ids, sets)``: the distinct labels, sorted where they can be, and int32 ids of all nodes.

    A label that is not known has -1 - s, where row s of `sets`, booleans (n_sets, n_labels), says what it may be:
    row 0, any, where it is None or another mark of unknown labels; the others where it is a set of labels.

    Parameters
    ----------
    y : list of lists or arrays
        See `by_node`.
    labels : list, optional
        The labels known already; ValueError for another one.
    unknown : object
        The mark of unknown labels (`is_unknown`).
    least : int
        Fewest known labels beside -1.
    """
    if labels is not None:
        unknown = mark_for(unknown, labels)
    distinct, inverse, some = _distinct(y)
    named = list(dict.fromkeys(chain((label for label in distinct if label is not None), *some)))
    if any(is_unknown(member, unknown) for members in some for member in members):
        raise ValueError("y holds a set with -1, or another mark of labels that are not known; None: it may be any")
    named = [label for label in named if not is_unknown(label, unknown)]
    if any(label is not None and is_unknown(label, unknown) for label in distinct):
        others = named if labels is None and least > 1 else None
        say_unknown((distinct[k] for k in inverse.tolist() if k >= 0), unknown, others, "nodes")
    if labels is None:
        labels = sort_labels(named)
    try:
        id_of = ids_by_label(labels, named)
    except ValueError as error:
        raise ValueError(f"{_first_other(y, labels, unknown)}: {error}") from None
    table = [-1 if is_unknown(label, unknown) else id_of[label] for label in distinct]
    sets = np.ones((1 + len(some), len(labels)), dtype=bool)
    for members, s in some.items():
        sets[s] = [label in members for label in labels]
    label_ids = np.array([*table, *range(-1 - len(some), 0)], dtype=np.int32)[inverse]
    return labels, label_ids, sets


def _distinct(y: list[Any]) -> tuple[list[Any], NDArray[np.int64], dict[frozenset[Hashable], int]]:
    """The distinct labels; of each node the place of its label, or -1 - s for set s; the sets with their s, from 1."""
    if y and all(isinstance(own, np.ndarray) and own.dtype.kind in "biuU" for own in y):
        used, inverse = np.unique(np.concatenate(y), return_inverse=True)
        return used.tolist(), inverse, {}
    some: dict[frozenset[Hashable], int] = {}
    places: dict[Hashable, int] = {}
    ids = []
    for i, own in enumerate(y):
        for v, label in enumerate(own.tolist() if isinstance(own, np.ndarray) else own):
            label = label.item() if isinstance(label, np.generic) else label
            if isinstance(label, set):
                members = frozenset(_checked(member, i, v) for member in label)
                if not members or None in members:
                    raise ValueError(f"graph {i}, node {v}: {label!r:.80} is no set of labels; None: it may be any")
                if len(members) > 1:
                    ids.append(-1 - some.setdefault(members, 1 + len(some)))
                    continue
                (label,) = members
            ids.append(places.setdefault(_checked(label, i, v), len(places)))
    return list(places), np.array(ids, dtype=np.int64), some


def _first_other(y: list[Any], labels: Sequence[Hashable], unknown: object) -> str:
    """The place of the first label that is none of `labels`."""
    known = {*labels}
    for i, own in enumerate(y):
        for v, label in enumerate(own):
            members = label if isinstance(label, set) else {label}
            if any(member not in known and not is_unknown(member, unknown) for member in members):
                return f"graph {i}, node {v}"
    return "y"


def _checked(label: Any, i: int, v: int) -> Hashable:
    """A label of node v of graph i; an error for what is none."""
    if not is_hashable(label):
        raise TypeError(f"graph {i}, node {v}: {label!r:.80} is no label (strings, numbers, tuples)")
    try:
        equal = bool(label == label)
    except TypeError:  # NA of pandas
        equal = False
    if not equal:
        raise ValueError(f"graph {i}, node {v}: the label is {str(label).replace('nan', 'NaN')}; None: it is not known")
    return label


def may_have(label_ids: NDArray[np.int32], sets: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The labels that each node may have, of `encode_labels`: a boolean array (n_nodes, n_labels)."""
    found: NDArray[np.bool_] = np.concatenate([np.eye(sets.shape[1], dtype=bool), sets[::-1]])[label_ids]
    return found


def in_form(
    label_ids: NDArray[np.int32], labels: Sequence[Hashable], form: Form, is_named: bool
) -> LabelArray | dict[Hashable, Hashable]:
    """The labels of a graph's nodes as an array, that of a grid in its shape, or as a dict by nodes."""
    found = label_array(labels)[label_ids]
    if form.shape is not None:
        return found.reshape(form.shape)
    return dict(zip(form.nodes, found.tolist(), strict=True)) if is_named and form.nodes is not None else found
