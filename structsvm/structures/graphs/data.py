"""Graphs with features of nodes and edges, stored one behind the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from structsvm.features.ranges import take_ranges
from structsvm.structures.graphs.rules import Rules

if TYPE_CHECKING:
    from structsvm.arrays import AnyArray


@dataclass(frozen=True, slots=True, eq=False)
class Graphs:
    """Graphs whose nodes, and whose edges, are consecutive.

    Attributes
    ----------
    nodes : SparseRows or DenseRows
        Features of the nodes: ``len``, slices, `take`, `n_features`.
    node_bounds : int64 array of shape (n_graphs + 1,)
        Where the nodes of each graph begin.
    edges : int32 array of shape (n_edges, 2)
        Node indices within their graph. Which one stands first says nothing but to label pairs that are ordered.
    edge_bounds : int64 array of shape (n_graphs + 1,)
    edge_features : float64 array of shape (n_edges, n_edge_features)
        A column of ones, where edges have none of their own.
    node_weights : float64 array of shape (n_nodes,), optional
        Cost of a wrong label of each node, >= 0. Default: 1.
    rules : tuple of Rules, optional
        Rules that the labels of each graph must obey.
    """

    nodes: Any
    node_bounds: NDArray[np.int64]
    edges: NDArray[np.int32]
    edge_bounds: NDArray[np.int64]
    edge_features: NDArray[np.float64]
    node_weights: NDArray[np.float64] | None = None
    rules: tuple[Rules, ...] | None = None

    def __len__(self) -> int:
        return len(self.node_bounds) - 1

    @property
    def n_nodes(self) -> int:
        return len(self.nodes)

    @property
    def n_edges(self) -> int:
        return len(self.edges)

    def __getitem__(self, graphs: slice) -> Graphs:
        """Some graphs, ``graphs[10:20]``, whose numbers are not copied."""
        start, stop, step = graphs.indices(len(self))
        if step != 1:
            raise ValueError("graphs are sliced with step 1")
        stop = max(start, stop)
        nodes, edges = self.node_bounds[start : stop + 1], self.edge_bounds[start : stop + 1]
        at, between = slice(int(nodes[0]), int(nodes[-1])), slice(int(edges[0]), int(edges[-1]))
        return Graphs(
            self.nodes[at],
            nodes - nodes[0],
            self.edges[between],
            edges - edges[0],
            self.edge_features[between],
            None if self.node_weights is None else self.node_weights[at],
            None if self.rules is None else self.rules[start:stop],
        )

    def take(self, graphs: Any) -> tuple[Graphs, NDArray[np.int64]]:
        """``(graphs, nodes)``: some graphs, and the indices of their nodes."""
        node_bounds, nodes = take_ranges(self.node_bounds, graphs)
        edge_bounds, edges = take_ranges(self.edge_bounds, graphs)
        weights = None if self.node_weights is None else self.node_weights[nodes]
        rules = None if self.rules is None else tuple(self.rules[i] for i in np.arange(len(self))[graphs].tolist())
        features = self.edge_features[edges]
        return Graphs(
            self.nodes.take(nodes), node_bounds, self.edges[edges], edge_bounds, features, weights, rules
        ), nodes

    @property
    def arrays(self) -> tuple[AnyArray, ...]:
        """The arrays, for checksums."""
        rows = self.nodes
        own = rows.arrays if hasattr(rows, "arrays") else (rows.values, np.array([rows.has_intercept]))
        weights = np.zeros(0) if self.node_weights is None else self.node_weights
        rules = [array for own in self.rules or () for array in own.arrays]
        return *own, self.node_bounds, self.edges, self.edge_bounds, self.edge_features, weights, *rules

    @property
    def has_rules(self) -> NDArray[np.uint8]:
        """Whether there are rules for each graph."""
        return np.array([bool(own.sums) for own in self.rules or [Rules(0, [])] * len(self)], dtype=np.uint8)

    def place_of_edge(self, edge: int) -> tuple[int, int]:
        """The graph of an edge of all, and its number there."""
        graph = int(np.searchsorted(self.edge_bounds, edge, side="right")) - 1
        return graph, edge - int(self.edge_bounds[graph])

    def place_of_node(self, node: int) -> tuple[int, int]:
        """The graph of a node of all, and its number there."""
        graph = int(np.searchsorted(self.node_bounds, node, side="right")) - 1
        return graph, node - int(self.node_bounds[graph])

    def check(self) -> None:
        """Raise ValueError, naming graph and edge, unless the arrays fit one another and the graphs are simple."""
        self._check_arrays()
        self._check_edges()
        self._check_weights()

    def _check_arrays(self) -> None:
        n_nodes, n_edges = self.n_nodes, self.n_edges
        kinds = (
            ("node_bounds", self.node_bounds, np.int64, 1),
            ("edges", self.edges, np.int32, 2),
            ("edge_bounds", self.edge_bounds, np.int64, 1),
            ("edge_features", self.edge_features, np.float64, 2),
        )
        for name, array, kind, n_dims in kinds:
            if not isinstance(array, np.ndarray) or array.dtype != kind or array.ndim != n_dims:
                raise ValueError(f"the graphs' {name} must be an array of {np.dtype(kind)} with {n_dims} dimensions")
        for name, bounds, size in (
            ("node_bounds", self.node_bounds, n_nodes),
            ("edge_bounds", self.edge_bounds, n_edges),
        ):
            if not len(bounds) or bounds[0] != 0 or bounds[-1] != size or (bounds[1:] < bounds[:-1]).any():
                raise ValueError(f"the graphs' {name} must ascend from 0 to {size}")
        if len(self.node_bounds) != len(self.edge_bounds):
            raise ValueError(f"there are {len(self)} graphs by nodes, {len(self.edge_bounds) - 1} by edges")
        sizes = np.diff(self.node_bounds)
        if sizes.max(initial=0) >= 2**31 or np.diff(self.edge_bounds).max(initial=0) >= 2**30:
            raise ValueError("a graph has 2**31 nodes or 2**30 edges or more")
        if self.edges.shape[1] != 2:
            raise ValueError(f"the graphs' edges have {self.edges.shape[1]} columns, expected 2")
        if len(self.edge_features) != n_edges or self.edge_features.shape[1] < 1:
            raise ValueError(
                f"the graphs' edge_features have shape {self.edge_features.shape}, expected ({n_edges}, at least 1)"
            )

    def _check_edges(self) -> None:
        of, sizes = np.repeat(np.arange(len(self)), np.diff(self.edge_bounds)), np.diff(self.node_bounds)
        low, high = self.edges.min(axis=1), self.edges.max(axis=1)
        for edge in np.flatnonzero((low < 0) | (high >= sizes[of]))[:1].tolist():
            graph, e = self.place_of_edge(edge)
            a, b = self.edges[edge].tolist()
            raise ValueError(f"graph {graph}: edge {e} joins nodes {a} and {b}, expected 0 .. {sizes[graph] - 1}")
        for edge in np.flatnonzero(low == high)[:1].tolist():
            graph, e = self.place_of_edge(edge)
            raise ValueError(f"graph {graph}: edge {e} joins node {low[edge]} with itself")
        for edge in np.flatnonzero(~np.isfinite(self.edge_features).all(axis=1))[:1].tolist():
            graph, e = self.place_of_edge(edge)
            raise ValueError(f"graph {graph}: the features of edge {e} hold NaN or infinity")
        first = self.node_bounds[of]
        key = (first + low) * (self.n_nodes + 1) + high
        order = np.argsort(key, kind="stable")
        again = np.flatnonzero(key[order][1:] == key[order][:-1]) + 1
        if len(again):
            edge = int(order[again].min())
            graph, e = self.place_of_edge(edge)
            before = self.place_of_edge(int(order[np.searchsorted(key[order], key[edge])]))[1]
            raise ValueError(f"graph {graph}: edge {e} joins nodes {low[edge]} and {high[edge]}, as edge {before} does")

    def _check_weights(self) -> None:
        weights = self.node_weights
        if weights is None:
            return
        if weights.shape != (self.n_nodes,) or weights.dtype != np.float64:
            raise ValueError(f"the graphs' node_weights must be {self.n_nodes} numbers, float64")
        for node in np.flatnonzero(~((weights >= 0.0) & (weights < np.inf)))[:1].tolist():
            graph, v = self.place_of_node(node)
            raise ValueError(f"graph {graph}: the weight of node {v} must be finite and >= 0, got {weights[node]}")
