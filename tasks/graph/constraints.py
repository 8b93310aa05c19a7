"""Rules that labels must obey: the best labelling that does, by an integer programme."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from structsvm.tasks.common.labels import is_hashable
from structsvm.tasks.graph.inputs import Form

# What a rule says of its pairs (node, label), x of each 1 if the node has the label: a sum, from and to how much.
SUMS = {"at_most_one": (0, 1), "exactly_one": (1, 1), "or": (1, np.inf)}
KINDS = (*SUMS, "implies")

Rule = tuple[NDArray[np.int64], NDArray[np.int64], float, float]


def rules_of(rules: Any, form: Form, labels: list[Any], i: int) -> list[Rule]:
    """``(cells, signs, least, most)`` of each rule of graph i: ``least <= sum signs x[cells] <= most``.

    A cell is ``node * n_labels + label``. Raises ValueError for what is no rule, and for unknown nodes and labels.
    """
    id_of = {label: k for k, label in enumerate(labels)}
    found: list[Rule] = []
    for r, rule in enumerate(() if rules is None else rules):
        where = f"graph {i}, constraint {r}"
        if not isinstance(rule, (tuple, list)) or len(rule) != 2 or rule[0] not in KINDS:
            raise ValueError(f"{where}: expected (kind, pairs), kind one of {', '.join(KINDS)}; got {rule!r:.80}")
        kind, pairs = rule
        cells = []
        for pair in pairs:
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise ValueError(f"{where}: expected pairs (node, label), got {pair!r:.80}")
            node, label = pair
            if not is_hashable(label) or label not in id_of:
                raise ValueError(f"{where}: {label!r:.80} is not one of the model's labels: {labels}")
            cells.append(_place(node, form, where) * len(labels) + id_of[label])
        if len(set(cells)) < len(cells) or len(cells) < (2 if kind == "implies" else 1):
            raise ValueError(f"{where}: {kind!r} needs {'two' if kind == 'implies' else 'some'} pairs, all different")
        whole = np.array(cells, dtype=np.int64)
        if kind == "implies":  # x of the first is not above that of any other
            found += [(whole[[0, j]], np.array([1, -1]), -1.0, 0.0) for j in range(1, len(whole))]
        else:
            found.append((whole, np.ones(len(whole), dtype=np.int64), *SUMS[kind]))
    return found


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


def obeys(labels: NDArray[np.int32], rules: list[Rule], n_labels: int) -> bool:
    """Whether a labelling obeys the rules."""
    cells = np.arange(len(labels)) * n_labels + labels
    return all(least <= signs @ np.isin(own, cells) <= most for own, signs, least, most in rules)


def best_under(
    rules: list[Rule],
    scores: NDArray[np.float64],
    edges: NDArray[np.int32],
    tables: NDArray[np.float64],
    allowed: NDArray[np.bool_] | None,
) -> NDArray[np.int32] | None:
    """The best labelling that obeys the rules, by HiGHS; None if none does.

    The linear relaxation over the local polytope, with nodes' labels that are whole: x of (node, label), then m of
    (edge, label, label), whose sums over one label are x of the other end.

    Parameters
    ----------
    rules : as `rules_of` returns them
    scores : array of shape (n, K)
    edges : array of shape (n_edges, 2)
    tables : array of shape (n_edges, K, K)
    allowed : boolean array of shape (n, K), optional
    """
    (n, K), E = scores.shape, len(edges)
    node, pair = np.arange(n * K), n * K + np.arange(E * K * K).reshape(E, K, K)
    end = np.arange(2 * E * K).reshape(E, 2, K)
    x = edges[:, :, np.newaxis] * K + np.arange(K)
    rows = [
        node // K,
        n + np.broadcast_to(end[:, 0, :, None], (E, K, K)),
        n + np.broadcast_to(end[:, 1, None], (E, K, K)),
    ]
    columns = [node, pair, pair]
    entries = [(rows[k].ravel(), columns[k].ravel(), np.ones(columns[k].size)) for k in range(3)]
    entries.append(((n + end).ravel(), x.ravel(), -np.ones(end.size)))
    first = n + end.size
    for r, (cells, signs, _, _) in enumerate(rules):
        entries.append((np.full(len(cells), first + r), cells, signs.astype(np.float64)))
    row, column, value = (np.concatenate(parts) for parts in zip(*entries, strict=True))
    matrix = csr_array((value, (row, column)), shape=(first + len(rules), n * K + pair.size))
    sides = np.concatenate([np.ones(n), np.zeros(end.size)])
    least = np.concatenate([sides, [rule[2] for rule in rules]])
    most = np.concatenate([sides, [rule[3] for rule in rules]])
    upper = np.ones(n * K + pair.size)
    if allowed is not None:
        upper[: n * K] = allowed.ravel()
    outcome = milp(
        -np.concatenate([scores.ravel(), tables.ravel()]),
        integrality=(np.arange(len(upper)) < n * K).astype(np.int64),
        bounds=Bounds(0.0, upper),
        constraints=LinearConstraint(matrix, least, most),
        options={"mip_rel_gap": 1e-9},
    )
    if outcome.status == 2:  # infeasible
        return None
    if outcome.x is None:
        raise RuntimeError(f"the integer programme was not solved: {outcome.message}")
    found: NDArray[np.int32] = outcome.x[: n * K].reshape(n, K).argmax(axis=1).astype(np.int32)
    return found
