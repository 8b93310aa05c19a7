"""Taxonomies: classes that are the nodes of a rooted directed acyclic graph.

A class may have several parents. Names are any hashable objects; internally, a node is its index in `Taxonomy.nodes`.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from io import StringIO
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.features.sources import load_text
from structsvm.parameters import did_you_mean
from structsvm.structures._lattice import NODE_LOSSES, Lattice
from structsvm.structures.graphs.forms import by_links, is_gml, is_graph, parsed_gml, parsed_graphml, parsed_json

__all__ = ["Taxonomy", "as_taxonomy", "read_taxonomy"]

PATH_SEPARATOR = " > "  # separates the levels of a row that are joined to a name

Graph = dict[Any, dict[Any, None]]  # from a node to its parents, in the order of the edges


class Taxonomy:
    """A rooted DAG of classes.

    Parameters
    ----------
    edges : iterable of (parent, child)
        Without repetitions; the one node without a parent is the root.

    Attributes
    ----------
    nodes : list
        Names of all nodes, the root first, every parent before its children.
    root : hashable
        Name of the root.
    leaves : list
        Names of the nodes without children, in the order of `nodes`.
    depth : ndarray of shape (n_nodes,), int32
        Edges on the shortest path from the root.
    height : ndarray of shape (n_nodes,), int32
        Edges on the longest path down to a leaf; 0 for leaves.
    separator : str or None
        The string between the levels of names that are whole paths.

    Raises
    ------
    ValueError
        For no edges, a repeated edge, a cycle, several roots; the message names them.

    Notes
    -----
    The *tree loss* of two nodes is the height of their first common ancestor (Tsochantaridis and others 2004,
    section 5.2): of all common ancestors, where a node counts as its own, the one of least height. In a tree that is
    the lowest one; in a DAG the nearest in the sense of height. The *path length* is the least number of edges up
    from one node to a common ancestor and down to the other. Both are 0 for a node and itself, and only then.

    Examples
    --------
    >>> from structsvm import Taxonomy
    >>> taxonomy = Taxonomy([("all", "comp"), ("all", "rec"), ("comp", "mac"), ("comp", "pc"), ("rec", "autos")])
    >>> taxonomy.leaves
    ['mac', 'pc', 'autos']
    >>> taxonomy.loss("tree", "mac", "pc"), taxonomy.loss("tree", "mac", "autos")
    (1.0, 2.0)
    """

    separator: str | None = None

    def __init__(self, edges: Iterable[tuple[Any, Any]]) -> None:
        self._build(_graph_of(edges))

    def _build(self, graph: Graph, height: dict[Any, int] | None = None) -> None:
        """Index the nodes of a graph; raises ValueError unless it is a rooted DAG."""
        try:
            nodes = list(TopologicalSorter(graph).static_order())
        except CycleError as error:
            # The sorter's cycle runs from a node to one that must come after it: from parent to child.
            raise ValueError(f"the taxonomy has a cycle: {' -> '.join(map(repr, error.args[1]))}") from None
        roots = [node for node in nodes if not graph[node]]
        if len(roots) > 1:
            raise ValueError(
                f"the taxonomy has {len(roots)} roots: {_some(roots)}; every node but one needs a parent, as a node of "
                f"another root cannot be reached from {roots[0]!r} (edges go from parent to child)"
            )
        self.nodes: list[Any] = nodes
        self.root: Any = nodes[0]
        self._number = {node: k for k, node in enumerate(nodes)}
        self._parents = [[self._number[p] for p in graph[node]] for node in nodes]
        self.depth: NDArray[np.int32] = np.zeros(len(nodes), dtype=np.int32)
        for k, parents in enumerate(self._parents[1:], start=1):
            self.depth[k] = 1 + min(self.depth[p] for p in parents)
        self.height: NDArray[np.int32] = np.zeros(len(nodes), dtype=np.int32)
        if height is None:
            for k in range(len(nodes) - 1, 0, -1):
                for p in self._parents[k]:
                    self.height[p] = max(self.height[p], self.height[k] + 1)
        else:
            self.height[:] = [height[node] for node in nodes]
        inner = {p for parents in self._parents for p in parents}
        self.leaves = [node for k, node in enumerate(nodes) if k not in inner]
        indptr = np.cumsum([0, *map(len, self._parents)], dtype=np.int32)
        self.lattice = Lattice(indptr, np.array([p for q in self._parents for p in q], dtype=np.int32), self.height)

    @classmethod
    def _of(cls, graph: Graph, height: dict[Any, int] | None = None) -> Self:
        self = cls.__new__(cls)
        self._build(graph, height)
        return self

    # ---- other forms -----------------------------------------------------------------------------

    @classmethod
    def from_parents(cls, parents: ArrayLike, names: Sequence[Any] | None = None) -> Taxonomy:
        """From an array with the index of each node's parent, -1 for the root.

        Parameters
        ----------
        parents : array-like of shape (n_nodes,), int
        names : sequence of length n_nodes, optional
            Default: 0, 1, and so on.
        """
        parents = np.asarray(parents)
        if parents.ndim != 1 or parents.dtype.kind not in "iu" or not len(parents):
            raise ValueError(f"parents must be a 1-D array of integers, got {parents.dtype} of shape {parents.shape}")
        names = list(range(len(parents))) if names is None else [_plain(name) for name in names]
        if len(names) != len(parents):
            raise ValueError(f"{len(parents)} parents and {len(names)} names")
        graph: Graph = {name: {} for name in names}
        if len(graph) != len(names):
            raise ValueError(f"the name {Counter(names).most_common(1)[0][0]!r} is repeated")
        for name, p in zip(names, parents.tolist()):
            if not -1 <= p < len(names):
                raise ValueError(f"the parent of {name!r} is {p}, expected -1 for the root or 0 .. {len(names) - 1}")
            if p >= 0:
                graph[name][names[p]] = None
        return cls._of(graph)

    @classmethod
    def from_paths(
        cls, paths: Iterable[Iterable[Any]], *, separator: str | None = None, root: Any = "ROOT"
    ) -> Taxonomy:
        """From label paths such as ``["comp", "sys", "mac"]``, which begin below the root.

        Parameters
        ----------
        paths : iterable of sequences
            Levels of each label, from the top; empty ones at the end (``""``, None) are ignored. Paths may repeat.
        separator : str, optional
            Name a node by its whole path, joined by this. By default its name is its last level alone, which
            then must not occur below two different nodes.
        root : hashable, default="ROOT"
            Name of the root.
        """
        graph: Graph = {root: {}}
        for path in paths:
            if isinstance(path, (str, bytes)) or not hasattr(path, "__iter__"):
                raise ValueError(f"a label path must be a list of levels, got {path!r:.80}")
            levels = [_plain(level) for level in path]
            while levels and not _level_name(levels[-1]):
                levels.pop()
            if not all(map(_level_name, levels)):
                raise ValueError(f"the label path {path!r:.80} has an empty level before its end")
            above = root
            for k, level in enumerate(levels):
                node = level if separator is None else separator.join(map(str, levels[: k + 1]))
                if node == root:
                    raise ValueError(
                        f"the label path {path!r:.80} names the root, {root!r}; give another name by root="
                    )
                if graph.setdefault(node, {above: None}) != {above: None}:
                    raise ValueError(
                        f"{node!r} stands below both {next(iter(graph[node]))!r} and {above!r}; give a separator to "
                        "call nodes by their whole paths, and edges as tuples (parent, child)"
                    )
                above = node
        if len(graph) == 1:
            raise ValueError("there are no label paths")
        self = cls._of(graph)
        self.separator = separator
        return self

    @classmethod
    def from_networkx(cls, graph: Any) -> Taxonomy:
        """From a `networkx.DiGraph` whose edges go from parent to child."""
        if not graph.is_directed():
            raise ValueError("the graph of a taxonomy must be directed, from parent to child: give a networkx.DiGraph")
        parents: Graph = {_plain(node): {} for node in graph.nodes}
        for parent, child in graph.edges():
            _add_edge(parents, parent, child)
        if not parents:
            raise ValueError("the graph has no nodes")
        return cls._of(parents)

    @classmethod
    def flat(cls, classes: Iterable[Any]) -> Taxonomy:
        """The taxonomy of unrelated classes: all below one root, named None."""
        return cls._of({None: {}} | {name: {None: None} for name in classes})

    def to_networkx(self) -> Any:
        """As a `networkx.DiGraph`."""
        import networkx as nx

        graph = nx.DiGraph()
        graph.add_nodes_from(self.nodes)
        graph.add_edges_from(self.edges)
        return graph

    def restricted(self, labels: Iterable[Any]) -> Taxonomy:
        """The taxonomy of these nodes and all their ancestors. Heights, and hence losses, stay those of the whole."""
        keep = sorted(self._upward(*map(self.number, labels)))
        graph = {self.nodes[k]: dict.fromkeys(self.nodes[p] for p in self._parents[k]) for k in keep}
        return self._of(graph, height=dict(zip(self.nodes, self.height.tolist())))

    # ---- questions --------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.nodes)

    def __contains__(self, name: object) -> bool:
        return name in self._number

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Taxonomy):
            return NotImplemented
        return set(self.edges) == set(other.edges) and self.root == other.root

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Taxonomy({len(self.nodes)} nodes, {len(self.leaves)} leaves, height {self.height[0]})"

    @property
    def edges(self) -> list[tuple[Any, Any]]:
        """The edges as a list of (parent, child)."""
        return [(self.nodes[p], node) for node, parents in zip(self.nodes, self._parents) for p in parents]

    @property
    def is_tree(self) -> bool:
        """Whether every node has at most one parent."""
        return all(len(parents) <= 1 for parents in self._parents)

    def number(self, name: Any) -> int:
        """Index of a node in `nodes`; raises ValueError for an unknown name."""
        try:
            return self._number[name]
        except (KeyError, TypeError):
            near = did_you_mean(name, self.nodes)
            raise ValueError(f"{name!r:.80} is no node of the taxonomy{near}") from None

    def parents(self, name: Any) -> list[Any]:
        """Names of a node's parents, in the order of the edges."""
        return [self.nodes[p] for p in self._parents[self.number(name)]]

    def ancestors(self, name: Any) -> set[Any]:
        """The set of a node and its ancestors without the root (empty for the root itself)."""
        return {self.nodes[k] for k in self._upward(self.number(name)) if k > 0}

    def indicators(self, labels: Sequence[Any], *, normalized: bool = False) -> NDArray[np.float64]:
        """Output attributes L(y) as rows: indicators of each label and its ancestors without the root.

        Parameters
        ----------
        labels : sequence of names
        normalized : bool, default=False
            Divide each row by the square root of its sum, so that it has length 1.

        Returns
        -------
        ndarray of shape (n_labels, n_nodes - 1), float64
            Columns in the order of ``nodes[1:]``. ``<L(y), L(y')>`` counts common ancestors: the output kernel of
            the paper's section 5.2.
        """
        rows = np.zeros((len(labels), len(self.nodes) - 1))
        for row, label in zip(rows, labels):
            row[[self._number[a] - 1 for a in self.ancestors(label)]] = 1.0
        return rows / np.sqrt(np.maximum(rows.sum(axis=1, keepdims=True), 1.0)) if normalized else rows

    def _upward(self, *nodes: int) -> set[int]:
        """Indices of nodes and their ancestors."""
        found, due = set(nodes), list(nodes)
        while due:
            for p in self._parents[due.pop()]:
                if p not in found:
                    found.add(p)
                    due.append(p)
        return found

    def path(self, name: Any) -> list[Any]:
        """Names on the shortest path from the root (excluded) to a node; the first in `nodes` of several."""
        k = self.number(name)
        names: list[Any] = []
        while k > 0:
            names.append(self.nodes[k])
            k = min(self._parents[k], key=lambda p: (self.depth[p], p))
        return names[::-1]

    def levels(self, name: Any) -> list[Any]:
        """The levels of a node's path: where names are whole paths, the last part of each."""
        path = self.path(name)
        if self.separator is None:
            return path
        return [node[len(above) + len(self.separator) :] if above else node for above, node in pairwise(["", *path])]

    def loss(self, kind: str, true: Any, predicted: Any) -> float:
        """Loss of predicting one node where another is true: "zero_one", "tree" or "path" (see Notes)."""
        if kind not in NODE_LOSSES:
            raise ValueError(f"the loss must be one of {', '.join(map(repr, NODE_LOSSES))}, got {kind!r}")
        return float(self.lattice.losses(kind, self.number(true))[self.number(predicted)])


def as_taxonomy(value: Any) -> Taxonomy:
    """Return a `Taxonomy` from any of its forms.

    A `Taxonomy`; a `networkx.DiGraph`, or what its `node_link_data`, `adjacency_data` and `tree_data` return; a list of
    tuples ``(parent, child)``; a list of lists, a 2-D array or a data frame of edges, if some name is parent and child
    (columns called "parent" and "child" are those), or else of label paths from the top, ended by "" (see
    `Taxonomy.from_paths`); a 1-D array or list of the indices of parents (-1: root); a dict from nodes to lists of
    their children, from nodes to their parents, or of dicts within dicts. Several nodes without a parent of a dict get
    the root "ROOT".

    Examples
    --------
    >>> from structsvm.structures.taxonomy import as_taxonomy
    >>> as_taxonomy([["comp", "mac"], ["comp", "pc"], ["autos", ""]]).leaves
    ['autos', 'mac', 'pc']
    >>> as_taxonomy({"comp": {"mac": {}, "pc": {}}, "autos": {}}).leaves
    ['autos', 'mac', 'pc']
    """
    if isinstance(value, Taxonomy):
        return value
    if hasattr(value, "is_directed"):
        return Taxonomy.from_networkx(value)
    if isinstance(value, dict):
        return _of_json(value) if is_graph(value) else Taxonomy(_edges_of_dict(value))
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "iu":
        return Taxonomy.from_parents(value)
    if isinstance(value, (list, tuple)) and value:
        if all(isinstance(item, (int, np.integer)) for item in value):
            return Taxonomy.from_parents(value)
        if all(isinstance(item, tuple) for item in value):
            return Taxonomy(value)
    columns = list(getattr(value, "columns", ()))
    if "parent" in columns and "child" in columns:
        return Taxonomy(zip(value["parent"].to_list(), value["child"].to_list(), strict=True))
    is_mixed = isinstance(value, (list, tuple)) and any(isinstance(item, tuple) for item in value)
    rows = None if is_mixed else rows_of_levels(value)
    if rows is not None and all(row is not None for row in rows):
        pairs = [tuple(row) for row in rows]
        is_edges = all(len(pair) == 2 for pair in pairs) and {a for a, _ in pairs} & {b for _, b in pairs}
        return Taxonomy(pairs) if is_edges else Taxonomy.from_paths(pairs)
    raise ValueError(
        "a taxonomy must be a Taxonomy, a networkx.DiGraph, a list of tuples (parent, child), an array of parents, a "
        "dict of children, of parents or of dicts, or label paths, a list of lists or a 2-D array; got "
        f"{value!r:.80}"
    )


def _edges_of_dict(value: dict[Any, Any]) -> list[tuple[Any, Any]]:
    """The edges of a dict from nodes to their children or parents, or of dicts within dicts.

    Several nodes without a parent are below "ROOT". Raises ValueError, naming the node, for values of several kinds, or
    one name in two places of dicts within dicts.
    """
    if not value:
        raise ValueError("a taxonomy needs at least one edge, and the dict is empty")
    has_parents = [not isinstance(below, _CHILDREN) and below is not None for below in value.values()]
    if any(has_parents):
        wrong = next((node for node, below in value.items() if isinstance(below, _CHILDREN)), None)
        if wrong is not None:
            raise ValueError(f"a dict of parents has a name for each node, got {value[wrong]!r:.60} for {wrong!r:.60}")
        pairs = [(parent, node) for node, parent in value.items() if parent is not None]
    else:
        pairs = list(_edges_below(value))
    names = dict.fromkeys((*value, *(name for pair in pairs for name in pair)))
    below = {child for _, child in pairs}
    tops = [name for name in names if name not in below]
    return pairs if len(tops) < 2 else [*(("ROOT", top) for top in tops), *pairs]


_CHILDREN = (dict, list, tuple, set, frozenset)


def _edges_below(value: dict[Any, Any]) -> Iterator[tuple[Any, Any]]:
    """Yield the edges of a dict of children, or of dicts within dicts; of equal names in several places ValueError."""
    is_nested = any(isinstance(below, dict) and below for below in value.values())
    places: dict[Any, Any] = {}
    due: list[tuple[Any, Any]] = [(None, value)]
    for above, children in due:  # grows
        for child in sorted(children, key=repr) if isinstance(children, (set, frozenset)) else children:
            inner = children[child] if isinstance(children, dict) else None
            if isinstance(child, dict):  # in a list of names and dicts
                due.append((above, child))
                continue
            if is_nested and places.setdefault(child, above) != above:
                raise ValueError(
                    f"{child!r} stands below both {places[child]!r} and {above!r}: for one class with two parents give "
                    "edges (parent, child), for two classes Taxonomy.from_paths(..., separator=)"
                )
            if above is not None:
                yield above, child
            if inner:
                if not isinstance(inner, _CHILDREN):
                    raise ValueError(f"the children of {child!r} must be a dict or a list, got {inner!r:.60}")
                due.append((child, inner))


def _of_json(value: dict[str, Any]) -> Taxonomy:
    """The taxonomy of a graph in one of networkx's forms of JSON."""
    graph = by_links(value, "the taxonomy")
    if graph.get("directed") is False:
        raise ValueError('the graph of a taxonomy must be directed, from parent to child: it says "directed": false')
    edges = graph.get("edges", graph.get("links", []))
    if not isinstance(edges, list) or not all(
        isinstance(edge, dict) and {"source", "target"} <= {*edge} for edge in edges
    ):
        raise ValueError('the edges of a taxonomy in JSON must be objects with "source" and "target"')
    return Taxonomy((edge["source"], edge["target"]) for edge in edges)


def rows_of_levels(y: Any) -> list[Any] | None:
    """Rows of levels that y consists of: several columns, or an array, a series or a list of lists; None if of none.

    A row may be None. In a list, rows may be tuples; in an array or a series a tuple is a name.
    """
    if hasattr(y, "shape"):
        if len(y.shape) == 2 and y.shape[1] > 1:
            return list(y.to_numpy() if hasattr(y, "to_numpy") else y)
        values = y.to_numpy() if hasattr(y, "to_numpy") else y
        rows = values.ravel().tolist() if isinstance(values, np.ndarray) and values.dtype == object else []
        kinds: tuple[type, ...] = (list, np.ndarray)
    else:
        rows = (
            list(y) if isinstance(y, (list, tuple)) else getattr(y, "to_pylist", list)()
        )  # a method of pyarrow's arrays
        kinds = (list, tuple, np.ndarray)
    are_levels = [isinstance(row, kinds) for row in rows]
    if not any(are_levels) or not all(is_row or not _level_name(row) for row, is_row in zip(rows, are_levels)):
        return None
    return [row if is_row else None for row, is_row in zip(rows, are_levels)]


def joined_levels(rows: Iterable[Any], separator: str) -> list[str | None]:
    """`rows_of_levels` as paths; missing levels ("", None, NaN, NA) at a row's end are left out, None stays.

    Whole numbers are names without a point: a missing one makes floats of all in a data frame's column. Raises
    ValueError, naming the row, for a missing level before others, no level, or one with the separator in it.
    """
    paths = list[str | None]()
    for i, row in enumerate(rows):
        if row is None:
            paths.append(None)
            continue
        levels = [_level_name(level) for level in row]
        while levels and not levels[-1]:
            levels.pop()
        if not levels or "" in levels:
            raise ValueError(f"y, row {i}: {'no level at all' if not levels else 'a missing level before others'}")
        for level in levels:
            if separator in level:
                raise ValueError(f"y, row {i}: the level {level!r:.80} contains {separator!r}; give another taxonomy=")
        paths.append(separator.join(levels))
    return paths


def _level_name(level: Any) -> str:
    try:
        if level is None or level != level:
            return ""
    except TypeError:  # NA of pandas is neither equal to itself nor not
        return ""
    return str(int(level) if isinstance(level, (float, np.floating)) and float(level).is_integer() else level)


def read_taxonomy(path: str | os.PathLike[str]) -> Taxonomy:
    r"""Read a taxonomy from a file of lines ``child<TAB>parent``, of JSON, GML or GraphML; names become strings.

    Of lines, empty ones and those that begin with ``#`` are skipped. JSON is any form that `as_taxonomy` takes. GML's
    nodes are named by their labels, without these by their ids. ValueError names the file and, if possible, the line.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from structsvm.structures.taxonomy import read_taxonomy
    >>> path = Path(tempfile.mkdtemp()) / "taxonomy.txt"
    >>> _ = path.write_text("mac\tcomp\npc\tcomp\n")
    >>> read_taxonomy(path).leaves
    ['mac', 'pc']
    """
    text, name = load_text(path, ValueError, "{}, line {}")
    found = _of_other_formats(text, name)
    if found is not None:
        return found
    graph: Graph = {}
    for number, line in enumerate(StringIO(text, newline=None), start=1):
        line = line.rstrip("\n")
        if not line.strip() or line.startswith("#"):
            continue
        fields = line.split("\t")
        if len(fields) != 2 or not all(field.strip() for field in fields):
            raise ValueError(f"{name}, line {number}: expected child<TAB>parent, found {line!r:.80}")
        child, parent = fields
        try:
            _add_edge(graph, parent, child)
        except ValueError as error:
            raise ValueError(f"{name}, line {number}: {error}") from None
    if not graph:
        raise ValueError(f"{name}: contains no edges")
    try:
        return Taxonomy._of(graph)  # noqa: SLF001 (of this module)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _of_other_formats(text: str, name: str) -> Taxonomy | None:
    """The taxonomy of a file of JSON, GML or GraphML; None for lines."""
    first = text.lstrip()[:1]
    if "\t" in text.strip().partition("\n")[0] or not (first in ("{", "[", "<") or is_gml(text)):
        return None
    if first in ("{", "["):
        found = parsed_json(text.encode(), name)
    elif first == "<":
        found = parsed_graphml(text, name)
    else:
        found = parsed_gml(text, name, "label" if _HAS_LABELS.search(text) else "id")
    try:
        taxonomy = as_taxonomy(found)
        return Taxonomy((str(parent), str(child)) for parent, child in taxonomy.edges)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


_HAS_LABELS = re.compile(r"^\s*label\s", re.MULTILINE | re.IGNORECASE)


def _graph_of(edges: Iterable[Any]) -> Graph:
    """A dict from each node to its parents."""
    graph: Graph = {}
    for edge in edges:
        if isinstance(edge, (str, bytes)) or not hasattr(edge, "__len__") or len(edge) != 2:
            raise ValueError(f"an edge must be a pair (parent, child), got {edge!r:.80}")
        try:
            _add_edge(graph, *edge)
        except TypeError:
            raise ValueError(f"names of nodes must be hashable, got the edge {edge!r:.80}") from None
    if not graph:
        raise ValueError("a taxonomy needs at least one edge")
    return graph


def _plain(name: Any) -> Any:
    """A name that a model file can hold: numbers and strings of NumPy as Python's."""
    return name.item() if isinstance(name, np.generic) else name


def _add_edge(graph: Graph, parent: Any, child: Any) -> None:
    parent, child = _plain(parent), _plain(child)
    graph.setdefault(parent, {})
    parents = graph.setdefault(child, {})
    if parent in parents:
        raise ValueError(f"the edge from {parent!r} to {child!r} is repeated")
    parents[parent] = None


def _some(names: list[Any], limit: int = 5) -> str:
    """A few names for a message."""
    shown = ", ".join(repr(name) for name in names[:limit])
    return f"{shown} and {len(names) - limit} more" if len(names) > limit else shown
