"""Graphs as users have them: networkx graphs, rows of nodes with pairs of them, grids."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from structsvm.features.matrices import is_sparse
from structsvm.structures.graphs.edges import FEATURES, WEIGHT

if TYPE_CHECKING:
    from collections.abc import Hashable

    import networkx as nx

    from structsvm.arrays import Floats, Integers


class Form(NamedTuple):
    """How the nodes of a graph were given.

    Attributes
    ----------
    n_nodes : int
    shape : (height, width), optional
        That of a grid, whose nodes are its cells row by row.
    nodes : list, optional
        Those of a networkx graph, in its order.
    attributes : list of dict, optional
        Of these nodes.
    """

    n_nodes: int
    shape: tuple[int, int] | None = None
    nodes: list[Hashable] | None = None
    attributes: list[dict[Hashable, object]] | None = None


class Inputs(NamedTuple):
    """Graphs in parts.

    Attributes
    ----------
    rows : list
        Per graph the features of its nodes, as `FeatureEncoder` takes those of the tokens of a sequence.
    edges : list of int32 array of shape (n_edges, 2)
    features : list of float64 array of shape (n_edges, n_edge_features)
    forms : list of Form
    is_ordered : bool
        Whether it says something which node of an edge stands first.
    """

    rows: list[object]
    edges: list[NDArray[np.int32]]
    features: list[NDArray[np.float64]]
    forms: list[Form]
    is_ordered: bool

    @property
    def n_edge_features(self) -> int:
        return self.features[0].shape[1] if self.features else 0

    @property
    def has_grids(self) -> bool:
        return bool(self.forms) and self.forms[0].shape is not None


def is_networkx(x: object) -> bool:
    """Whether x is a networkx graph, by its attributes (networkx is slow to import)."""
    return hasattr(x, "is_multigraph") and hasattr(x, "adj")


def as_list(X: object) -> tuple[list[Any], bool]:
    """Return ``(graphs, is_one)``: X as a list of graphs, and whether it is one graph of networkx itself."""
    if is_networkx(X):
        return [X], True
    if isinstance(X, (str, bytes, dict)) or is_sparse(X) or not isinstance(X, Iterable):
        raise TypeError(f"X must be a list of graphs, got {type(X).__name__}")
    if isinstance(X, tuple) and len(X) in (2, 3) and _looks_like_one(X):
        raise TypeError("X must be a list of graphs, and is a tuple (nodes, edges): for one graph [(nodes, edges)]")
    return list(X), False


def _looks_like_one(X: tuple[Floats, list[tuple[int, int]]]) -> bool:
    """Whether a tuple is a graph, and not graphs: its second part has two columns of integers."""
    if is_networkx(X[1]) or isinstance(X[1], tuple):
        return False
    try:
        pairs = np.asarray(X[1])
    except ValueError:
        return False
    return pairs.dtype.kind in "iu" and pairs.ndim == 2 and pairs.shape[1] == 2


def collect(X: list[Any], neighbours: int, label: str) -> Inputs:
    """The parts of graphs.

    Parameters
    ----------
    X : list of graphs
        See `GraphLabeler`.
    neighbours : {4, 8}
        Of the cells of grids.
    label : str
        The attribute of networkx's nodes that is no feature.

    Raises
    ------
    ValueError, TypeError
        For what is not a graph; the message names its index.
    """
    found = Inputs([], [], [], [], not any(is_networkx(x) and not x.is_directed() for x in X))
    first: Any = None  # the graph whose edges say how many features edges have; a graph without edges says nothing
    for i, x in enumerate(X):
        if is_networkx(x):
            rows, edges, features, form = _of_networkx(x, i, label)
        elif isinstance(x, tuple) and len(x) in (2, 3):
            rows, edges, features, form = _of_parts(x, i)
        else:
            rows, edges, features, form = _of_grid(x, i, neighbours)
        if (form.shape is None) != (found.forms[0].shape is None if i else form.shape is None):
            raise ValueError(f"graph {i}: some graphs are grids, and some are not")
        if len(edges) and first is None:
            first = i
        elif len(edges) and features.shape[1] != found.features[first].shape[1]:
            raise ValueError(
                f"graph {i}: its edges have {features.shape[1]} features, those of graph {first} have "
                f"{found.features[first].shape[1]}"
            )
        found.rows.append(rows)
        found.edges.append(edges)
        found.features.append(features)
        found.forms.append(form)
    width = found.features[first or 0].shape[1] if found.features else 0
    found.features[:] = [of if len(of) else np.zeros((0, width)) for of in found.features]
    return found


def _of_parts(x: tuple[Any, ...], i: int) -> tuple[Any, NDArray[np.int32], NDArray[np.float64], Form]:
    """A graph ``(nodes, edges)`` or ``(nodes, edges, edge_features)``."""
    rows = _rows(x[0], i)
    n = int(rows.shape[0]) if hasattr(rows, "shape") else len(rows)
    edges = _pairs(x[1], i)
    if len(x) == 2 or x[2] is None:
        return rows, edges, np.zeros((len(edges), 0)), Form(n)
    return rows, edges, _features(x[2], len(edges), i), Form(n)


def _rows(nodes: Any, i: int) -> Any:
    """Features of nodes: a matrix, or a list of what `FeatureEncoder` takes for a token."""
    if is_sparse(nodes):
        return nodes
    if isinstance(nodes, np.ndarray) or (isinstance(nodes, (list, tuple)) and nodes and _is_row(nodes[0])):
        rows = numbers(nodes, f"graph {i}: the features of its nodes")
        if rows.ndim != 2:
            raise ValueError(f"graph {i}: the features of its nodes have {rows.ndim} dimensions, expected 2")
        return rows
    if isinstance(nodes, (list, tuple)):
        return list(nodes)
    raise TypeError(
        f"graph {i}: its nodes must be a 2-D array, a sparse matrix, or a list of dicts, got {type(nodes).__name__}"
    )


def _is_row(x: object) -> bool:
    """Whether a node's features are numbers in a row, not names."""
    if isinstance(x, np.ndarray):
        return x.dtype.kind not in "OUS"
    return isinstance(x, (list, tuple)) and all(isinstance(v, (int, float, np.number)) for v in x) and bool(x)


def numbers(values: object, what: str) -> NDArray[np.float64]:
    """Values as float64 array; ValueError, which begins with what they are, for anything but numbers."""
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biufO":
            raise TypeError
        return np.asarray(array, dtype=np.float64)
    except (ValueError, TypeError):
        raise ValueError(f"{what} must be numbers, as many for each") from None


def _pairs(edges: Iterable[Iterable[int]] | Integers, i: int) -> NDArray[np.int32]:
    try:
        pairs = np.asarray(edges if hasattr(edges, "__array__") else list(edges))
    except (ValueError, TypeError):
        pairs = np.array(edges, dtype=object)
    if pairs.size == 0:
        return np.zeros((0, 2), dtype=np.int32)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ValueError(f"graph {i}: its edges must be pairs of node indices, got {pairs.dtype} of {pairs.shape}")
    if pairs.min() < 0 or pairs.max() >= 2**31:
        e = int(np.flatnonzero((pairs < 0).any(axis=1) | (pairs >= 2**31).any(axis=1))[0])
        raise ValueError(f"graph {i}: edge {e} joins nodes {pairs[e, 0]} and {pairs[e, 1]}")
    return np.ascontiguousarray(pairs, dtype=np.int32)


def _features(values: object, n_edges: int, i: int) -> NDArray[np.float64]:
    """Features of edges as an array (n_edges, n_features)."""
    if is_sparse(values):
        values = values.toarray()
    features = numbers(values, f"graph {i}: the features of its edges")
    if features.size == 0 and n_edges == 0:
        features = features.reshape(0, features.shape[1] if features.ndim == 2 else 0)
    features = features[:, np.newaxis] if features.ndim == 1 else features
    if features.ndim != 2 or len(features) != n_edges:
        raise ValueError(f"graph {i}: {n_edges} edges have features of shape {features.shape}")
    return features


def _of_networkx(graph: nx.Graph, i: int, label: str) -> tuple[Any, NDArray[np.int32], NDArray[np.float64], Form]:
    if graph.is_multigraph():
        raise ValueError(f"graph {i} may have several edges between two nodes ({type(graph).__name__})")
    nodes = list(graph.nodes)
    place = {node: k for k, node in enumerate(nodes)}
    attributes = [graph.nodes[node] for node in nodes]
    has = [FEATURES in own for own in attributes]
    if all(has):
        rows = _rows([own[FEATURES] for own in attributes], i)
    elif any(has):
        raise ValueError(f"graph {i}: node {nodes[has.index(False)]!r} has no attribute {FEATURES!r}, others have")
    else:
        rows = [{str(name): value for name, value in own.items() if name != label} for own in attributes]
    edges = np.array([(place[a], place[b]) for a, b in graph.edges], dtype=np.int32).reshape(-1, 2)
    for e in np.flatnonzero(edges[:, 0] == edges[:, 1])[:1].tolist():
        raise ValueError(f"graph {i}: edge {e} joins node {nodes[edges[e, 0]]!r:.80} with itself")
    own = [data for _, _, data in graph.edges(data=True)]
    features = np.zeros((len(own), 0))
    for name in (FEATURES, WEIGHT):
        lacks = [name not in data for data in own]
        if own and not all(lacks):
            if any(lacks):
                a, b = list(graph.edges)[lacks.index(True)]
                raise ValueError(f"graph {i}: the edge between {a!r} and {b!r} has no attribute {name!r}, others have")
            features = _features([data[name] for data in own], len(own), i)
            break
    return rows, edges, features, Form(len(nodes), nodes=nodes, attributes=attributes)


def _of_grid(x: object, i: int, neighbours: int) -> tuple[Any, NDArray[np.int32], NDArray[np.float64], Form]:
    if not isinstance(x, np.ndarray) or x.ndim not in (2, 3) or x.dtype.kind not in "biuf":
        raise TypeError(
            f"graph {i} must be (nodes, edges), (nodes, edges, edge_features), a networkx graph, or a grid, which is "
            f"an array (height, width, n_features); got {type(x).__name__}"
            + (f" with {x.ndim} dimensions" if isinstance(x, np.ndarray) else f" {x!r:.60}")
        )
    height, width = x.shape[:2]
    edges, features = grid_edges(height, width, neighbours)
    return x.reshape(height * width, x.shape[2] if x.ndim == 3 else 1), edges, features, Form(
        height * width, shape=(height, width)
    )  # fmt: skip


def grid_edges(height: int, width: int, neighbours: int = 4) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Pairs of neighbouring cells, and for each a 1 in the column of its direction: right, down, and the diagonals."""
    cells = np.arange(height * width, dtype=np.int32).reshape(height, width)
    pairs = [(cells[:, :-1], cells[:, 1:]), (cells[:-1], cells[1:])]
    if neighbours == 8:
        pairs += [(cells[:-1, :-1], cells[1:, 1:]), (cells[:-1, 1:], cells[1:, :-1])]
    edges = np.concatenate([np.column_stack([a.ravel(), b.ravel()]) for a, b in pairs])
    direction = np.repeat(np.arange(len(pairs)), [a.size for a, _ in pairs])
    return edges, np.eye(len(pairs))[direction]
