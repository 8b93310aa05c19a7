"""Orders in which the nodes of a graph are eliminated, and the cliques that this makes."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

# Up to here a node is chosen by the edges that its elimination adds; beyond, by its degree, which is known at once.
MANY_NODES = 2000


class Elimination(NamedTuple):
    """The cliques of an order of elimination: a junction tree.

    A node v is eliminated with the neighbours that it has then, its *separator* S(v). The clique of v is v and S(v); it
    passes a table over S(v) on to the clique of the first node of S(v) to be eliminated, which contains all of S(v).

    Attributes
    ----------
    order : int32 array of shape (n_nodes,)
        The nodes as they are eliminated.
    bounds : int64 array of shape (n_nodes + 1,)
        Where the separator of each node begins, by its place in the order.
    separators : int32 array
        Separator of each place, by their places in the order, ascending.
    edges : int32 array
        For each entry of `separators` which edge joins the two: 1 + its number, negative if the eliminated node stands
        second; 0 where elimination has joined them.
    slots : int32 array
        For each entry of `separators` where it stands in the clique of the first one: 0 for that one itself, 1 + its
        place in that one's separator for the others.
    """

    order: NDArray[np.int32]
    bounds: NDArray[np.int64]
    separators: NDArray[np.int32]
    edges: NDArray[np.int32]
    slots: NDArray[np.int32]

    @property
    def width(self) -> int:
        """The largest separator: 1 for forests, a bound on the tree-width."""
        return int(np.diff(self.bounds).max(initial=0))


class JunctionTrees(NamedTuple):
    """The distinct junction trees of a set of graphs, one after the other.

    Attributes
    ----------
    of_graph : int32 array of shape (n_graphs,)
        The tree of each graph; -1: it has none.
    nodes, entries : int64 arrays of shape (n_trees + 1,)
        Where the nodes, and the entries of separators, of each tree begin.
    order, bounds, separators, edges, slots : arrays
        See `Elimination`. All but `bounds` end with a 0, so that each has a place in memory.
    """

    of_graph: NDArray[np.int32]
    nodes: NDArray[np.int64]
    entries: NDArray[np.int64]
    order: NDArray[np.int32]
    bounds: NDArray[np.int64]
    separators: NDArray[np.int32]
    edges: NDArray[np.int32]
    slots: NDArray[np.int32]

    @classmethod
    def of(cls, plans: Sequence[Elimination | str]) -> Self:
        """The trees of graphs by their plans; those of one object are one tree."""
        distinct = {id(plan): plan for plan in plans if isinstance(plan, Elimination)}
        index, trees = {key: k for k, key in enumerate(distinct)}, list(distinct.values())

        def joined(name: str) -> NDArray[np.int32]:
            return np.concatenate([*(getattr(tree, name) for tree in trees), np.zeros(1, dtype=np.int32)])

        return cls(
            np.array([index.get(id(plan), -1) for plan in plans], dtype=np.int32),
            np.cumsum([0, *(len(tree.order) for tree in trees)], dtype=np.int64),
            np.cumsum([0, *(len(tree.separators) for tree in trees)], dtype=np.int64),
            joined("order"),
            np.concatenate([np.zeros(0, dtype=np.int64), *(tree.bounds for tree in trees)]),
            joined("separators"),
            joined("edges"),
            joined("slots"),
        )

    def sizes(self, n_labels: int, most: int) -> tuple[int, int, int]:
        """Most nodes of a tree, entries of its messages, and entries of a clique's table; ValueError if they are more
        than `most` bytes.
        """
        n_nodes = message_size = table = 0
        for k, (first, last) in enumerate(pairwise(self.nodes.tolist())):
            widths = np.diff(self.bounds[first + k : last + k + 1]).astype(np.float64)
            size, widest = float((float(n_labels) ** widths).sum()), int(widths.max(initial=0))
            if (2 * size + float(n_labels) ** (widest + 1)) * 8 > most:
                raise ValueError(f"the tables of a graph of {len(widths)} nodes take more than {most} bytes")
            n_nodes, message_size = max(n_nodes, last - first), max(message_size, int(size))
            table = max(table, n_labels ** (widest + 1))
        return n_nodes, message_size, table


def eliminate(n_nodes: int, edges: NDArray[np.int32], widest: int) -> Elimination | None:
    """Eliminate the node that adds the fewest edges, again and again; None once separators exceed `widest`.

    Parameters
    ----------
    n_nodes : int
    edges : int32 array of shape (n_edges, 2)
    widest : int
        Nodes of a separator at most.
    """
    adjacent: list[set[int]] = [set() for _ in range(n_nodes)]
    for a, b in edges.tolist():
        adjacent[a].add(b)
        adjacent[b].add(a)

    def price(v: int) -> int:
        around = adjacent[v]
        degree = len(around)
        if n_nodes > MANY_NODES or degree <= 1:
            return degree - 1
        if degree > widest:
            return degree * degree
        return sum(degree - 1 - len(around & adjacent[u]) for u in around) // 2

    prices = [price(v) for v in range(n_nodes)]
    heap = [(prices[v], v) for v in range(n_nodes)]
    heapq.heapify(heap)
    order: list[int] = []
    separators: list[list[int]] = []
    gone = [False] * n_nodes
    while heap:
        cost, v = heapq.heappop(heap)
        if gone[v] or cost != prices[v]:
            continue
        around = adjacent[v]
        if len(around) > widest:  # and so have all others, or one of them were cheaper
            return None
        gone[v] = True
        order.append(v)
        separators.append(list(around))
        changed = set(around)
        for u in around:
            adjacent[u].discard(v)
        if len(around) > 1:
            for u in around:
                new = around - adjacent[u] - {u}
                if new:
                    adjacent[u] |= new
                    if n_nodes <= MANY_NODES:
                        changed |= adjacent[u]
        for u in changed:
            if not gone[u]:
                prices[u] = price(u)
                heapq.heappush(heap, (prices[u], u))
    return _cliques(n_nodes, edges, order, separators)


def _cliques(n_nodes: int, edges: Any, order: list[int], separators: list[list[int]]) -> Elimination:
    """Number nodes by their places in the order."""
    place = [0] * n_nodes
    for p, v in enumerate(order):
        place[v] = p
    signed_edges = {}
    for e, (a, b) in enumerate(edges.tolist()):
        signed_edges[place[a], place[b]] = e + 1
        signed_edges[place[b], place[a]] = -e - 1
    bounds = np.zeros(n_nodes + 1, dtype=np.int64)
    np.cumsum([len(s) for s in separators], out=bounds[1:])
    flat: list[int] = []
    which: list[int] = []
    slots: list[int] = []
    sorted_separators = [sorted(place[u] for u in s) for s in separators]
    for p, s in enumerate(sorted_separators):
        flat += s
        which += [signed_edges.get((p, q), 0) for q in s]
        if s:
            above = sorted_separators[s[0]]
            slots += [0, *(1 + above.index(q) for q in s[1:])]
    return Elimination(
        np.array(order, dtype=np.int32),
        bounds,
        np.array(flat, dtype=np.int32),
        np.array(which, dtype=np.int32),
        np.array(slots, dtype=np.int32),
    )


def is_forest(n_nodes: int, edges: NDArray[np.int32]) -> bool:
    """Whether a graph has no cycle."""
    if len(edges) >= max(n_nodes, 1):
        return False
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    if not len(edges):
        return True
    graph = coo_array((np.ones(len(edges), dtype=np.int8), (edges[:, 0], edges[:, 1])), shape=(n_nodes, n_nodes))
    return n_nodes - int(connected_components(graph, directed=False)[0]) == len(edges)
