"""Methods of inference on graphs: what each of them guarantees, and the fractional outputs of relaxations."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from structsvm.structures.graphs.elimination import Elimination

# Guarantees of the methods. The oracle gives the weakest one over all graphs.
INFERENCE = {"tree": "exact", "junction": "exact", "cut": "exact", "relaxed": "relaxed", "expansion": "approximate"}
WEAKEST = ("exact", "relaxed", "approximate")


class Marginals(NamedTuple):
    """A point of the local marginal polytope: an output that may be fractional.

    Attributes
    ----------
    nodes : float64 array of shape (n_nodes, n_labels)
    pairs : float64 array of shape (n_edges, n_labels, n_labels)

    Examples
    --------
    >>> from structsvm.oracles.graph import GraphOracle
    >>> triangle = [[0.0], [0.0], [0.0]], [(0, 1), (1, 2), (2, 0)]
    >>> oracle = GraphOracle(2, 1, method="relaxed")
    >>> oracle.argmax(triangle, [0.0, 0.0, -1.0]).nodes.tolist()  # no two of three nodes can agree
    [[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]]
    """

    nodes: NDArray[np.float64]
    pairs: NDArray[np.float64]


def names_of(plans: list[Elimination | str]) -> list[str]:
    """The names of methods."""
    return [plan if isinstance(plan, str) else "tree" if plan.width <= 1 else "junction" for plan in plans]


def weakest(methods: list[str]) -> str:
    """The joint guarantee of these methods: "exact", "relaxed" or "approximate"."""
    return max((INFERENCE[name] for name in set(methods)), key=WEAKEST.index, default="exact")


def obey(decoder: Any, i: int, whole: bool, is_open: bool, allowed: Any) -> bool | None:
    """Replace the labelling found for graph i by the best under its rules; returns whether it is fractional, None if
    kept.

    A best labelling that satisfies the rules is kept; `is_open`: the labelling found may not be the best.
    """
    oracle, one, method = decoder.oracle, decoder.graphs[i : i + 1], decoder.methods[i]
    n, K, P, (rules,) = one.n_nodes, oracle.n_labels, oracle.n_pairs, one.rules
    unary, theta, labels, *point = decoder.scratch
    if not (is_open or method == "expansion" or rules.broken(labels[:n])):
        return None
    scores, edges, has = unary[: n * K].reshape(n, K), one.edges if P else one.edges[:0], oracle.pair_index >= 0
    tables = np.zeros((len(edges), K, K))
    if len(edges):  # one row for all edges where their features are the same
        rows = theta[: len(edges) * P if len(theta) > P else P].reshape(-1, P)
        tables[:, has] = rows[:, oracle.pair_index[has]]
    may = None if allowed is None else allowed[slice(*decoder.graphs.node_bounds[i : i + 2])]
    whole = whole or method != "relaxed"
    nodes, pairs = rules.best(scores if may is None else np.where(may, scores, 0.0), edges, tables, may, whole=whole)
    labels[:n] = nodes.argmax(axis=1)
    if whole or nodes.max(axis=1).min() > 1.0 - 1e-7:
        return False
    point[0][: n * K], point[1][: pairs.size] = nodes.ravel(), pairs.ravel()
    return True
