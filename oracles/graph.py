"""Labels of the nodes of graphs: pairwise scores on any graph, with exact inference where possible."""

from __future__ import annotations

from hashlib import blake2b
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.features.dense import DenseRows, is_filled
from structsvm.features.matrices import is_sparse
from structsvm.features.sparse import as_rows
from structsvm.oracles._graph import GraphDecoder, GraphProblem
from structsvm.parameters import COUNT, Interval, Options, check_arguments
from structsvm.protocol import Oracle, Penalty, Rescaling, checked_weights
from structsvm.structures.graphs.data import Graphs
from structsvm.structures.graphs.elimination import Elimination, eliminate, is_forest
from structsvm.structures.graphs.methods import Marginals, names_of

__all__ = ["GraphOracle", "Marginals"]

INTERACTIONS = ("none", "potts", "associative", "symmetric", "full")
METHODS = ("auto", "junction", "cut", "relaxed", "expansion")

# Larger graphs that are not forests are only eliminated if the method is "junction".
MANY_NODES = 20_000

MOST_LABELS = 4096  # for a table of all pairs
WIDEST = 60  # nodes of a separator that the kernels have room for


class GraphOracle(Oracle):
    """Labellings of the nodes of graphs.

    The score of a labelling y of a graph with nodes v, features x_v, and edges e = (a, b), features z_e, is

        sum_v <W[:, y_v], x_v> + sum_e <V[:, y_a, y_b], z_e>.

    Parameters
    ----------
    n_labels : int
        Number of labels K, at most 4096; a labelling is an integer array with values 0 .. K - 1.
    n_node_features, n_edge_features : int
    interactions : {"potts", "associative", "symmetric", "full", "none"}, default="potts"
        The form of V. "potts": whether the labels agree, one weight per edge feature. "associative": on which
        label they agree, 0 where they do not (Taskar, Chatalbashev and Koller 2004). "symmetric": pairs of labels.
        "full": ordered pairs, the label of the edge's first node first. "none": there is no V.
    method : {"auto", "junction", "cut", "relaxed", "expansion"}, default="auto"
        "junction": dynamic programming over a junction tree, exact. For forests it is that of trees; for other graphs
        its tables, found by eliminating the node that adds the fewest edges, must fit `max_table`.

        "cut": a minimum cut, exact, for two labels if V favours equal ones.

        "relaxed": the linear programme over the local marginal polytope, whose value bounds that of the best labelling,
        and which may be fractional. For two labels it is solved by a maximum flow (roof duality), for more by
        sequential messages (TRW-S; Kolmogorov 2006), a descent on its dual: a labelling and a bound. If these
        differ, and the graph is small (some 5000 pairs of labels), a primal-dual method continues to a relative gap of
        1e-5. The dual value is claimed.

        "expansion": expansion moves (Boykov, Veksler and Zabih 2001), approximate.

        "auto": per graph the first applicable of trees, "cut" with `nonnegative`, "junction", and "relaxed".
    nonnegative : bool, optional
        Whether V must stay >= 0, for "potts" and "associative"; solvers see the attribute `nonnegative`. Edge
        features must be >= 0 then. Default: for ``method="cut"``.
    loss : {"hamming", "log"}, default="hamming"
        The sum of the wrong nodes' weights. "log": as "hamming" where a loss is needed, but only for solvers of the log
        loss, which needs junction trees: `rescalings` is empty.
    label_costs : array-like of shape (n_labels,), optional
        Factor of a wrong node's loss, by the true label. Default: 1.
    max_table : int, default=2**16
        Entries of the largest table of a junction tree, K^(1 + nodes of a separator).

    Attributes
    ----------
    nonnegative : int64 array, optional
        Indices of the weights that must stay >= 0.
    n_features : int
        Length of w: W as (n_node_features, K), then V as (n_edge_features, n_pairs), pairs of "symmetric" with the
        lower label first, in the order of the upper triangle.

    Examples
    --------
    >>> from structsvm.oracles.graph import GraphOracle
    >>> oracle = GraphOracle(n_labels=2, n_node_features=1)
    >>> path = [[1.0], [-0.2], [0.4]], [(0, 1), (1, 2)]
    >>> oracle.argmax(path, [-1.0, 1.0, 0.5]).tolist()
    [1, 1, 1]
    """

    def __init__(
        self,
        n_labels: int,
        n_node_features: int,
        n_edge_features: int = 1,
        *,
        interactions: str = "potts",
        method: str = "auto",
        nonnegative: bool | None = None,
        loss: str = "hamming",
        label_costs: ArrayLike | None = None,
        max_table: int = 2**16,
    ) -> None:
        check_arguments(
            "GraphOracle",
            locals(),
            n_labels=Interval(Integral, 1, MOST_LABELS, closed="both"),
            n_node_features=COUNT,
            n_edge_features=COUNT,
            interactions=Options(*INTERACTIONS),
            method=Options(*METHODS),
            loss=Options("hamming", "log"),
            max_table=COUNT,
        )
        K = int(n_labels)
        self.n_labels, self.n_node_features, self.n_edge_features = K, int(n_node_features), int(n_edge_features)
        self.interactions, self.method, self.loss_name, self.max_table = interactions, method, loss, int(max_table)
        associates = interactions in ("potts", "associative")
        if method == "cut" and (K > 2 or not (associates or interactions == "none") or nonnegative is False):
            raise ValueError(
                "method='cut' needs two labels, interactions 'potts' or 'associative', and nonnegative weights of "
                f"edges. Got n_labels={K}, interactions={interactions!r}"
                + (", nonnegative=False" if nonnegative is False else "")
            )
        if nonnegative and not associates:
            raise ValueError(f"nonnegative=True needs interactions 'potts' or 'associative'. Got {interactions!r}")
        self.keeps_sign = associates and (method == "cut" if nonnegative is None else bool(nonnegative))
        self.label_costs = None
        if label_costs is not None:
            self.label_costs = np.array(label_costs, dtype=np.float64)
            good = self.label_costs.shape == (K,) and (self.label_costs > 0.0).all()
            if not good or not np.isfinite(self.label_costs).all():
                raise ValueError(
                    f"The 'label_costs' parameter of GraphOracle must be {K} positive finite numbers. "
                    f"Got {label_costs!r:.80} instead."
                )
        self.n_pairs = {"none": 0, "potts": 1, "associative": K, "symmetric": K * (K + 1) // 2, "full": K * K}[
            interactions
        ]
        self.first_edge_weight = self.n_node_features * K
        self.n_features = self.first_edge_weight + self.n_edge_features * self.n_pairs
        if self.n_features >= 2**31:
            raise ValueError(
                f"{n_node_features} features of nodes and {n_edge_features} of edges with {K} labels need "
                f"{self.n_features} weights, more than 2**31"
            )
        if loss == "log":
            self.rescalings = ()
        if self.keeps_sign:
            self.nonnegative = np.arange(self.first_edge_weight, self.n_features)
        # The weight of each pair of labels among those of an edge feature; -1: none.
        a, b = np.arange(K)[:, np.newaxis], np.arange(K)
        if interactions == "full":
            pair = a * K + b
        elif interactions == "symmetric":
            low = np.minimum(a, b)
            pair = low * K - low * (low - 1) // 2 + np.abs(a - b)
        else:
            pair = np.full((K, K), -1)
            np.fill_diagonal(pair, {"none": -1, "potts": 0, "associative": np.arange(K)}[interactions])
        self.pair_index = np.ascontiguousarray(pair, dtype=np.int32)

    @property
    def has_expect(self) -> bool:
        """Whether bound problems offer expectations, of graphs that have a junction tree."""
        return self.method in ("auto", "junction") and not self.keeps_sign

    def split(self, w: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """``(W, V)`` of shapes (n_node_features, K) and (n_edge_features, K, K)."""
        weights = checked_weights(w, self.n_features, np.float64)
        pairs = weights[self.first_edge_weight :].reshape(self.n_edge_features, self.n_pairs)
        tables = np.zeros((self.n_edge_features, self.n_labels, self.n_labels))
        has = self.pair_index >= 0
        tables[:, has] = pairs[:, self.pair_index[has]]
        return weights[: self.first_edge_weight].reshape(self.n_node_features, self.n_labels), tables

    # ---- graphs -----------------------------------------------------------------------------------------

    def plan(self, graphs: Graphs, method: str | None = None) -> list[Elimination | str]:
        """Per graph its junction tree, or the name of another method; ValueError if there is none."""
        method = method or ("junction" if self.loss_name == "log" and self.method == "auto" else self.method)
        if self.interactions == "none":
            method = "auto"
        elif method in ("cut", "relaxed", "expansion"):
            return [method] * len(graphs)
        plans: dict[Any, Elimination | str | None] = {}
        found = []
        for i in range(len(graphs)):
            n = int(graphs.node_bounds[i + 1] - graphs.node_bounds[i])
            edges = graphs.edges[graphs.edge_bounds[i] : graphs.edge_bounds[i + 1]]
            if self.interactions == "none":
                edges = edges[:0]
            key = n, blake2b(edges.tobytes()).digest()
            if key not in plans:
                plans[key] = self._plan_of(n, edges, method)
            plan = plans[key]
            if plan is None:
                raise ValueError(
                    f"graph {i} of {n} nodes and {len(edges)} edges has no junction tree whose tables have at most "
                    f"max_table = {self.max_table} entries; method 'relaxed' or 'expansion' takes any graph, "
                    "but has no sums over all labellings"
                )
            found.append(plan)
        return found

    def _plan_of(self, n: int, edges: NDArray[np.int32], method: str) -> Elimination | str | None:
        K, forest = self.n_labels, is_forest(n, edges)
        cuts = K == 2 and self.keeps_sign
        if method == "auto" and not forest and (cuts or n > MANY_NODES):
            return "cut" if cuts else "relaxed"
        fits = int(np.log(self.max_table) / np.log(K) + 1e-9) - 1 if K > 1 else WIDEST
        plan = eliminate(n, edges, 1 if forest else min(max(fits, 0), WIDEST))
        return "relaxed" if plan is None and method == "auto" else plan

    def methods(self, graphs: Any) -> list[str]:
        """The method used for each graph: "tree", "junction", "cut", "relaxed" or "expansion"."""
        return names_of(self.plan(self.as_graphs(graphs)))

    def as_graphs(self, X: Any) -> Graphs:
        """`as_graphs` with the oracle's numbers of features; ValueError for edge features < 0 where V is >= 0."""
        graphs = as_graphs(X, self.n_node_features, self.n_edge_features)
        if self.keeps_sign:
            for edge in np.flatnonzero((graphs.edge_features < 0.0).any(axis=1))[:1].tolist():
                graph, e = graphs.place_of_edge(edge)
                raise ValueError(
                    f"graph {graph}: edge {e} has a feature {graphs.edge_features[edge].min():g}; with nonnegative "
                    "weights of edges their features must be >= 0"
                )
        return graphs

    def bind(
        self, X: Any, Y: Any, *, rescaling: Rescaling | None = "margin", penalty: Penalty | None = "linear"
    ) -> GraphProblem:
        """Bind graphs and their labels (see `Oracle.bind`).

        X is a `Graphs`, or a list of (rows, edges) or (rows, edges, edge_features); Y one flat array of the labels of
        all nodes, or a list of arrays. A label -1 is unknown; the labels of a graph may also be a boolean array
        (n_nodes, n_labels) of the allowed labels. Wrong labels of unknown nodes cost nothing.
        """
        self.check_formulation(rescaling, penalty)
        graphs = self.as_graphs(X)
        labels, allowed = self.known(graphs, Y)
        for own, (a, b) in zip(graphs.rules or (), pairwise(graphs.node_bounds.tolist()), strict=False):
            rule = None if (labels[a:b] < 0).any() else own.broken(labels[a:b])
            if rule is not None:
                raise ValueError(f"graph {own.graph}: its labels do not obey constraint {rule.number}")
        return GraphProblem(self, graphs, labels, allowed, rescaling=rescaling, penalty=penalty)

    def known(self, graphs: Graphs, Y: Any) -> tuple[NDArray[np.int32], NDArray[np.bool_] | None]:
        """``(labels, allowed)``: -1 for an unknown label, and the allowed labels, if given."""
        K, n, allowed = self.n_labels, graphs.n_nodes, None
        if not (isinstance(Y, np.ndarray) and Y.dtype != object and Y.ndim == 1):
            Y, allowed = self._known_by_graph(graphs, Y)
        if Y.shape != (n,):
            raise ValueError(f"the graphs have {n} nodes, y has {Y.shape} labels")
        if Y.dtype.kind not in "iu":
            raise ValueError(f"labels are of type {Y.dtype}, expected integers")
        for node in np.flatnonzero((Y < -1) | (Y >= K))[:1].tolist():
            graph, v = graphs.place_of_node(node)
            raise ValueError(
                f"graph {graph}: node {v} has the label {Y[node]}, expected 0 .. {K - 1}, or -1: not known"
            )
        labels = np.ascontiguousarray(Y, dtype=np.int32)
        there = labels >= 0
        if allowed is None and not there.all():
            allowed = np.ones((n, K), dtype=bool)
        if allowed is not None:
            allowed[there] = np.eye(K, dtype=bool)[labels[there]]
        return labels, allowed

    def _known_by_graph(self, graphs: Graphs, Y: Any) -> tuple[Any, NDArray[np.bool_] | None]:
        """Labels of all nodes, of arrays per graph; what is allowed, if some of these say it."""
        K, bounds, allowed = self.n_labels, graphs.node_bounds, None
        if len(Y) != len(graphs):
            raise ValueError(f"X has {len(graphs)} graphs, y has {len(Y)}")
        parts = [np.asarray(y) for y in Y]
        for i, (y, size) in enumerate(zip(parts, np.diff(bounds).tolist(), strict=True)):
            is_set = y.ndim == 2 and y.dtype == bool
            if len(y) != size or (is_set and y.shape[1] != K) or (y.ndim != 1 and not is_set):
                raise ValueError(f"graph {i} has {size} nodes, and labels of shape {y.shape}")
            if not is_set:
                parts[i] = y if len(y) else y.astype(np.int32)
                continue
            if not y.any(axis=1).all():
                raise ValueError(f"graph {i}, node {int(y.any(axis=1).argmin())}: no label may stand there")
            allowed = np.ones((graphs.n_nodes, K), dtype=bool) if allowed is None else allowed
            allowed[bounds[i] : bounds[i + 1]] = y
            parts[i] = np.where(y.sum(axis=1) == 1, y.argmax(axis=1), -1)
        return np.concatenate([np.zeros(0, dtype=np.int32), *parts]), allowed

    def decoder(self, X: Any) -> GraphDecoder:
        """Inference for graphs without labels."""
        return GraphDecoder(self, self.as_graphs(X))

    # ---- the protocol on single objects -----------------------------------------------------------------

    def joint_feature(self, x: Any, y: Any) -> NDArray[np.float64]:
        graphs = self._single(x)
        ends = graphs.edges
        if isinstance(y, Marginals):
            nodes, pairs = y
        else:
            labels, partly = self.known(graphs, [np.asarray(y)])
            if partly is not None:
                raise ValueError("the joint feature is of a labelling whose labels are all known")
            nodes = np.eye(self.n_labels)[labels]
            pairs = nodes[ends[:, 0], :, None] * nodes[ends[:, 1], None, :]
        by_pair = np.tensordot(graphs.edge_features, pairs, axes=(0, 0))
        has = self.pair_index >= 0
        edges = np.zeros((self.n_pairs, self.n_edge_features))
        np.add.at(edges, self.pair_index[has], by_pair[:, has].T)
        return np.concatenate([(dense_rows(graphs.nodes).T @ nodes).ravel(), edges.T.ravel()])

    def _single(self, x: Any) -> Graphs:
        graphs = self.as_graphs(x if isinstance(x, Graphs) else [x])
        if len(graphs) != 1:
            raise ValueError(f"expected one graph, got {len(graphs)}")
        return graphs

    def argmax(self, x: Any, w: ArrayLike, y_true: Any = None, rescaling: Rescaling | None = None) -> Any:
        """See `Oracle.argmax`. A fractional solution of a relaxation is `Marginals`."""
        graphs = self._single(x)
        y = np.zeros(graphs.n_nodes, dtype=np.int32) if y_true is None else np.asarray(y_true)
        return self.bind(graphs, [y], rescaling=None if y_true is None else rescaling).most_violated(0, w)

    def loss(self, y_true: ArrayLike, y: Any) -> float:
        """The sum of the costs of wrong labels; weights of nodes belong to graphs, and are not known here."""
        true = np.asarray(y_true, dtype=np.int64)
        costs = (np.ones(self.n_labels) if self.label_costs is None else self.label_costs)[true]
        if isinstance(y, Marginals):
            return float(costs @ (1.0 - y.nodes[np.arange(len(true)), true]))
        return float(costs[true != np.asarray(y)].sum())

    def complete(self, x: Any, known: Any, w: ArrayLike) -> NDArray[np.int32]:
        graphs = self._single(x)
        labels, allowed = self.known(graphs, [known])
        return labels if allowed is None else self.decoder(graphs).decode(w, allowed)

    def expect(self, x: Any, w: ArrayLike) -> tuple[float, NDArray[np.float64]]:
        graphs = self._single(x)
        plans = self.plan(graphs, "junction")
        return GraphProblem(self, graphs, None, None, plans, rescaling=None).moments(0, w)

    def expect_known(self, x: Any, known: Any, w: ArrayLike) -> tuple[float, NDArray[np.float64]]:
        graphs = self._single(x)
        labels, allowed = self.known(graphs, [known])
        if allowed is None:
            allowed = np.eye(self.n_labels, dtype=bool)[labels]
        plans = self.plan(graphs, "junction")
        return GraphProblem(self, graphs, None, allowed, plans, rescaling=None).moments(0, w, known=True)


def dense_rows(rows: Any) -> Any:
    """The rows as a matrix."""
    if isinstance(rows, DenseRows):
        return rows.padded()[:, : rows.n_features]
    from scipy.sparse import csr_array

    return csr_array((rows.values, rows.indices, rows.indptr), shape=(len(rows), rows.n_features))


def as_graphs(X: Any, n_node_features: int, n_edge_features: int = 1) -> Graphs:
    """Graphs from a `Graphs`, or a list of (rows, edges) or (rows, edges, edge_features); ValueError unless they fit.

    Rows of nodes are 2-D arrays or CSR matrices; without features, edges have one, 1.
    """
    if not isinstance(X, Graphs):
        X = _joined(list(X), n_node_features)
    if X.nodes.n_features != n_node_features:
        raise ValueError(f"the nodes have {X.nodes.n_features} features, expected {n_node_features}")
    X.check()
    if X.edge_features.shape[1] != n_edge_features:
        raise ValueError(f"the edges have {X.edge_features.shape[1]} features, expected {n_edge_features}")
    if isinstance(X.nodes, DenseRows):
        with np.errstate(over="ignore"):
            if not np.isfinite(np.vdot(X.nodes.values, X.nodes.values)):
                raise ValueError("the nodes' features hold NaN or infinity, or their squares overflow")
    return X


def _node_rows(i: int, rows: Any, n_features: int) -> Any:
    """The features of the nodes of graph i."""
    rows = rows if is_sparse(rows) else np.asarray(rows, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != n_features:
        raise ValueError(f"graph {i}: nodes have features of shape {rows.shape}, expected {n_features} columns")
    return rows


def _pairs(i: int, edges: Any) -> NDArray[np.int32]:
    """The nodes that each edge of graph i joins."""
    pairs = np.asarray(edges)
    pairs = pairs.reshape(0, 2) if pairs.size == 0 else pairs
    if pairs.ndim != 2 or pairs.shape[1] != 2 or (pairs.size and pairs.dtype.kind not in "iu"):
        raise ValueError(f"graph {i}: edges must be pairs of node indices, got {pairs.dtype} {pairs.shape}")
    if pairs.size and not 0 <= pairs.min() <= pairs.max() < 2**31:
        raise ValueError(f"graph {i}: edges join nodes {pairs.min()} to {pairs.max()}")
    return pairs.astype(np.int32)


def _joined(X: list[Any], n_node_features: int) -> Graphs:
    for i, x in enumerate(X):
        if not isinstance(x, tuple) or len(x) not in (2, 3):
            raise ValueError(
                f"graph {i}: expected (rows, edges) or (rows, edges, edge_features), got {type(x).__name__}"
            )
    rows = [_node_rows(i, x[0], n_node_features) for i, x in enumerate(X)]
    edges = [_pairs(i, x[1]) for i, x in enumerate(X)]
    features = [np.ones((len(pairs), 1)) if len(x) == 2 else x[2] for x, pairs in zip(X, edges, strict=True)]
    features = [np.asarray(own, dtype=np.float64) for own in features]
    for i, (own, pairs) in enumerate(zip(features, edges, strict=True)):
        if own.ndim != 2 or len(own) != len(pairs):
            raise ValueError(f"graph {i}: {len(pairs)} edges have features of shape {own.shape}")
        if own.shape[1] != features[0].shape[1]:
            raise ValueError(f"graph {i}: edges have {own.shape[1]} features, those of graph 0 {features[0].shape[1]}")
    if not X:
        joined: Any = np.zeros((0, n_node_features))
    elif all(isinstance(r, np.ndarray) for r in rows):
        joined = np.vstack(rows)
    else:
        from scipy.sparse import vstack

        joined = vstack(rows, format="csr")
    nodes = DenseRows(joined) if is_filled(joined) else as_rows(joined, n_node_features)
    return Graphs(
        nodes,
        np.cumsum([0, *(own.shape[0] for own in rows)], dtype=np.int64),
        np.concatenate([np.zeros((0, 2), dtype=np.int32), *edges]),
        np.cumsum([0, *map(len, edges)], dtype=np.int64),
        np.ascontiguousarray(np.concatenate(features)) if features else np.zeros((0, 1)),
    )
