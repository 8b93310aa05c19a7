"""Encoded graphs with what is known of their nodes' labels."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order

from structsvm.structures.graphs.data import Graphs
from structsvm.tasks.common.examples import SHARED, Examples
from structsvm.tasks.common.selection.search import LEAST_EXAMPLES
from structsvm.tasks.graph.hidden import clustered
from structsvm.tasks.graph.labels import may_have

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence
    from typing import TypeAlias

    import networkx as nx
    from numpy.typing import ArrayLike

    from structsvm.arrays import AnyArray, LabelArray, MatrixLike, Numbers
    from structsvm.oracles._graph import GraphProblem
    from structsvm.oracles.graph import GraphOracle
    from structsvm.protocol import Penalty, Rescaling

    # A graph as users give it: of networkx, (nodes, edges), (nodes, edges, edge_features), or a grid.
    NodesLike: TypeAlias = MatrixLike | Sequence[object]
    GraphLike: TypeAlias = (
        nx.Graph | tuple[NodesLike, ArrayLike] | tuple[NodesLike, ArrayLike, MatrixLike | None] | AnyArray
    )
    GraphsLike: TypeAlias = Iterable[GraphLike] | nx.Graph
    # The labels of one graph's nodes, in order or by node; and those of graphs, or the name of networkx's attribute.
    NodeLabels: TypeAlias = LabelArray | Sequence[object] | Mapping[Any, object]
    GraphLabels: TypeAlias = Iterable[NodeLabels] | NodeLabels | str
    # A graph's constraints, (kind, pairs of a node and a label); and those of graphs.
    GraphConstraints: TypeAlias = Iterable[tuple[str, Iterable[tuple[Hashable, Hashable]]]]
    Constraints: TypeAlias = Sequence[GraphConstraints | None] | GraphConstraints

# Parts that few graphs are divided into where C is chosen.
BLOCKS = 60


@dataclass(frozen=True, eq=False)
class LabeledGraphs(Examples):
    """Graphs with the labels of their nodes.

    Attributes
    ----------
    graphs : Graphs
    label_ids : ndarray of shape (n_nodes,), int32
        Below 0 where a label is not known; see `encode_labels`.
    sets : ndarray of bool
        What labels such nodes may have.
    """

    graphs: Graphs
    label_ids: NDArray[np.int32]
    sets: NDArray[np.bool_] = field(metadata=SHARED)

    def take(self, chosen: NDArray[np.intp]) -> Self:
        graphs, nodes = self.graphs.take(chosen)
        weight = None if self.weight is None else self.weight[chosen]
        return replace(self, graphs=graphs, label_ids=self.label_ids[nodes], weight=weight)

    @property
    def has_unknown(self) -> bool:
        return bool((self.label_ids < 0).any())

    @property
    def output_ids(self) -> NDArray[np.int32]:
        return self.label_ids

    @property
    def n_unknown(self) -> int:
        return int(np.count_nonzero(self.label_ids == -1))

    def fully_known(self) -> Self:
        """The parts of graphs between nodes that are known; of few graphs, several of each."""
        n = len(self)
        if n >= LEAST_EXAMPLES and not self.has_unknown:
            return self
        return self.guessed().known_parts(-(-BLOCKS // n) if n < LEAST_EXAMPLES else 1)

    def guessed(self) -> Self:
        """The graphs with a guess for labels that no node is known to have."""
        features = self.graphs.edge_features
        return replace(self, label_ids=clustered(global_edges(self.graphs), features, self.label_ids, self.sets))

    def known_parts(self, n_parts: int) -> Self:
        """The parts of graphs between nodes that are known, up to so many of each."""
        graphs, label_ids, origin = fragments(self.graphs, self.label_ids, n_parts)
        weight = None if self.weight is None else self.weight[origin]
        return replace(self, graphs=graphs, label_ids=label_ids, weight=weight)

    def bound(
        self, oracle: GraphOracle, *, rescaling: Rescaling | None = "margin", penalty: Penalty | None = "linear"
    ) -> GraphProblem:
        """A problem of the graphs."""
        label_ids: Any = self.label_ids
        if len(self.sets) > 1:
            label_ids = np.split(may_have(label_ids, self.sets), self.graphs.node_bounds[1:-1])
        return oracle.bind(self.graphs, label_ids, rescaling=rescaling, penalty=penalty)


def global_edges(graphs: Graphs) -> NDArray[np.int64]:
    """Edges by the numbers of nodes among those of all graphs."""
    first = np.repeat(graphs.node_bounds[:-1], np.diff(graphs.edge_bounds))
    found: NDArray[np.int64] = graphs.edges.astype(np.int64) + first[:, np.newaxis]
    return found


def sums_before(counts: Sequence[int] | Numbers) -> NDArray[np.int64]:
    """The sum of what comes before each entry, and at the end of all."""
    found = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=found[1:])
    return found


def fragments(
    graphs: Graphs, label_ids: NDArray[np.int32], n_parts: int
) -> tuple[Graphs, NDArray[np.int32], NDArray[np.int64]]:
    """Return ``(graphs, label_ids, origin)``: the nodes whose labels are known and the edges between them.

    Each graph in up to so many parts of neighbouring nodes; `origin` is the graph of each part.
    """
    n, ends = graphs.n_nodes, global_edges(graphs)
    graph_of = np.repeat(np.arange(len(graphs)), np.diff(graphs.node_bounds))
    known = np.flatnonzero(label_ids >= 0)
    order = known
    if n_parts > 1:
        adjacency = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n)).tocsr()
        place, reached = np.full(n, -1), 0
        for start in range(n):
            if place[start] < 0:
                found = breadth_first_order(adjacency, start, directed=False, return_predecessors=False)
                place[found] = np.arange(reached, reached + len(found))
                reached += len(found)
        order = known[np.lexsort((place[known], graph_of[known]))]
    counts = np.bincount(graph_of[known], minlength=len(graphs))
    rank = np.arange(len(order)) - np.repeat(sums_before(counts)[:-1], counts)
    part = graph_of[order] * n_parts + rank * n_parts // np.maximum(counts[graph_of[order]], 1)
    used, part = np.unique(part, return_inverse=True)
    bounds = sums_before(np.bincount(part, minlength=len(used)))
    at, part_of = np.full(n, -1, dtype=np.int64), np.full(n, -1)
    at[order], part_of[order] = np.arange(len(order)) - bounds[part], part
    inside = (part_of[ends[:, 0]] == part_of[ends[:, 1]]) & (part_of[ends[:, 0]] >= 0)
    chosen = np.flatnonzero(inside)
    chosen = chosen[np.argsort(part_of[ends[chosen, 0]], kind="stable")]
    taken = Graphs(
        graphs.nodes.take(order),
        bounds,
        at[ends[chosen]].astype(np.int32),
        sums_before(np.bincount(part_of[ends[chosen, 0]], minlength=len(used))),
        graphs.edge_features[chosen],
        rules=None
        if graphs.rules is None
        else tuple(
            graphs.rules[graph].within(order[a:b] - graphs.node_bounds[graph])
            for graph, (a, b) in zip((used // n_parts).tolist(), pairwise(bounds.tolist()), strict=True)
        ),
    )
    return taken, label_ids[order], used // n_parts
