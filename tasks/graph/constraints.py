"""Constraints on labels as users have them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm.structures.graphs.rules import BoundedSum, Rules
from structsvm.tasks.common.labels import is_hashable
from structsvm.tasks.graph.inputs import Form

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence


# Bounds of a rule's sum of x over its pairs (node, label), where x is 1 if the node has the label.
SUMS = {"at_most_one": (0, 1), "exactly_one": (1, 1), "or": (1, np.inf)}
KINDS = (*SUMS, "implies")


def all_rules(constraints: Any, forms: list[Form], labels: Sequence[Hashable]) -> tuple[Rules, ...]:
    """The rules of each graph; ValueError for invalid rules, and for unknown nodes and labels."""
    if not hasattr(constraints, "__len__") or len(constraints) != len(forms):
        raise ValueError(f"constraints must hold a list of constraints per graph, of {len(forms)}")
    return tuple(rules_of(own, form, labels, i) for i, (own, form) in enumerate(zip(constraints, forms, strict=True)))


def rules_of(rules: object, form: Form, labels: Sequence[Hashable], i: int) -> Rules:
    """The rules of graph i."""
    id_of = {label: k for k, label in enumerate(labels)}
    found: list[BoundedSum] = []
    if not (rules is None or isinstance(rules, Iterable)):
        raise ValueError(f"graph {i}: expected a list of constraints, got {rules!r:.80}")
    for r, rule in enumerate(() if rules is None else rules):
        where = f"graph {i}, constraint {r}"
        if not isinstance(rule, (tuple, list)) or len(rule) != 2 or rule[0] not in KINDS:
            raise ValueError(f"{where}: expected (kind, pairs), kind one of {', '.join(KINDS)}; got {rule!r:.80}")
        kind, pairs = rule
        if not isinstance(pairs, Iterable):
            raise ValueError(f"{where}: expected pairs (node, label), got {pairs!r:.80}")
        cells = []
        for pair in pairs:
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise ValueError(f"{where}: expected pairs (node, label), got {pair!r:.80}")
            node, label = pair
            if not is_hashable(label) or label not in id_of:
                raise ValueError(f"{where}: {label!r:.80} is not one of the model's labels: {labels}")
            cells.append((_place(node, form, where), id_of[label]))
        if len(set(cells)) < len(cells) or len(cells) < (2 if kind == "implies" else 1):
            raise ValueError(f"{where}: {kind!r} needs {'two' if kind == 'implies' else 'some'} pairs, all different")
        nodes, own = np.array(cells, dtype=np.int64).T
        if kind == "implies":  # x of the first is not above that of any other
            found += [
                BoundedSum(r, nodes[[0, j]], own[[0, j]], np.array([1, -1]), -1.0, 0.0) for j in range(1, len(own))
            ]
        else:
            found.append(BoundedSum(r, nodes, own, np.ones(len(own), dtype=np.int64), *SUMS[kind]))
    return Rules(i, found)


def _place(node: Any, form: Form, where: str) -> int:
    """The number of a node: of a grid's cell (row, column), of a networkx graph's node by its name."""
    if form.nodes is not None:
        if node not in form.nodes:
            raise ValueError(f"{where}: {node!r:.80} is no node")
        return form.nodes.index(node)
    try:
        if form.shape is not None:
            return int(np.ravel_multi_index(tuple(node), form.shape))
        if 0 <= node < form.n_nodes and int(node) == node:
            return int(node)
    except (TypeError, ValueError):
        pass
    raise ValueError(f"{where}: {node!r:.80} is no node of {form.shape or form.n_nodes}")
