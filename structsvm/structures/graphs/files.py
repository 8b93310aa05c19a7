"""Files of graphs: JSON, one graph a line or a list of them, and GraphML and GML.

A graph is an object with lists of nodes and of edges, as networkx's `node_link_data` has them::

    {"nodes": [{"features": [0.5, 1.0], "label": "sky"}, {"features": [0.1, 2.0], "label": "sea"}],
     "edges": [[0, 1], [1, 2, [0.3]], {"source": 0, "target": 2, "features": [0.1]}]}

Features of a node are numbers, names, or an object of both; without "features" they are what the node has beside "id"
and "label". Edges name nodes by "id", or by their place where nodes have none. A label that is null or missing is not
known. Objects of networkx's `adjacency_data` and `tree_data` are read as well. A GraphML or GML file is one graph: the
features are the attributes but "label", and edges have their "weight". Labels of GML are names if no two are equal.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from structsvm.features.inputs.places import PlacedList
from structsvm.features.sources import load_bytes
from structsvm.features.text.encodings import not_utf8
from structsvm.files.new_file import new_file
from structsvm.structures.graphs.edges import warn_of_unread
from structsvm.structures.graphs.forms import (
    by_links,
    is_gml,
    is_graph,
    of_networkx,
    parsed_gml,
    parsed_graphml,
    parsed_json,
)

__all__ = ["GraphLines", "read_graphs", "write_graphs"]

# An attribute of nodes, and their entries that are no features by themselves.
LABEL = "label"
OF_NODES = ("id", "features")

LARGEST = float(np.finfo(np.float64).max)


class GraphLines(NamedTuple):
    """The contents of a file, graph by graph.

    Attributes
    ----------
    X : PlacedList of (nodes, edges, edge_features)
        As `GraphLabeler` takes them; edge_features may be None.
    y : list of list
        Labels of nodes, None where they are not known.
    ids : list of (list or None)
        Names of nodes; None: they have none.
    places : list of str
        The names of the graphs in messages: "train.jsonl, line 3".
    is_directed : bool
        False where the file says of all its graphs that they are not.

    Examples
    --------
    >>> from structsvm.structures.graphs.files import read_graphs
    >>> nodes = '[{"id": "a", "label": "R", "red": 1}, {"id": "b", "blue": 1}]'
    >>> lines = read_graphs(['{"nodes": ' + nodes + ', "edges": [["a", "b"]]}'])
    >>> lines.ids, lines.y
    ([['a', 'b']], [['R', None]])
    """

    X: PlacedList
    y: list[list[Any]]
    ids: list[list[Any] | None]
    places: list[str]
    is_directed: bool


def read_graphs(source: str | os.PathLike[str] | BinaryIO | Iterable[str], *, label: str = LABEL) -> GraphLines:
    """Read graphs with features of nodes and edges; compressed files are read as they are.

    Parameters
    ----------
    source : path, file or iterable of lines
    label : str, default="label"
        The entry or attribute of nodes that is their label.

    Returns
    -------
    GraphLines

    Raises
    ------
    ValueError
        For what is no graph; names file, line or graph, and node or edge.

    Examples
    --------
    >>> from structsvm.structures.graphs.files import read_graphs
    >>> (nodes, edges, _), = read_graphs(['{"nodes": [{"red": 1}, {"blue": 1}], "edges": [[0, 1]]}']).X
    >>> nodes, edges.tolist()
    ([{'red': 1}, {'blue': 1}], [[0, 1]])
    """
    if isinstance(source, dict) or hasattr(source, "adj"):
        raise TypeError(
            f"source must be a path, a file or lines, got a {type(source).__name__}: GraphLabeler takes networkx's "
            "graphs as they are, and [json.dumps(graph)] is the line of an object"
        )
    content, name, _ = load_bytes(source)
    if content[:1000].lstrip()[:1] in (b"{", b"[", b""):
        found = _documents(content, name)
    else:
        found = [(name, _marked_up(content, name))]
    lines = GraphLines(
        PlacedList([], []), [], [], [], any(value.get("directed", True) is not False for _, value in found)
    )
    warn_of_unread(edge for _, value in found if isinstance(_edges_of(value), list) for edge in _edges_of(value))
    for place, value in found:
        x, y, ids = _graph(value, place, label)
        lines.X.append(x)
        lines.y.append(y)
        lines.ids.append(ids)
        lines.places.append(place)
    lines.X.places[:] = lines.places
    if not lines.X:
        raise ValueError(f"{name}: contains no graphs")
    return lines


def _documents(content: bytes, name: str) -> list[tuple[str, Any]]:
    """The objects of JSON: of a list, of lines, or a single one over several lines; with their places."""
    start = content.lstrip()[:1]
    lines = [(k, line) for k, line in enumerate(content.splitlines(), start=1) if line.strip()]
    if start == b"{" and (len(lines) == 1 or _is_whole(lines[0][1])):
        return [(f"{name}, line {k}", _object(line, f"{name}, line {k}")) for k, line in lines]
    if not start:
        return []
    value = parsed_json(content, name)
    if isinstance(value, list):
        places = [f"{name}, graph {i}" for i in range(len(value))]
        return [(place, _as_object(graph, place)) for place, graph in zip(places, value, strict=True)]
    return [(name, _as_object(value, name))]


def _is_whole(line: bytes) -> bool:
    """Whether a line closes what it opens; what it holds is looked at later."""
    return line.rstrip().endswith(b"}") or line.count(b"{") == line.count(b"}")


def _object(line: bytes, place: str) -> Any:
    return _as_object(parsed_json(line, place), place)


def _as_object(value: Any, place: str) -> dict[str, Any]:
    if not is_graph(value):
        raise ValueError(f'{place}: not an object with a list of "nodes"')
    return by_links(value, place)


def _graph(value: dict[str, Any], place: str, label: str) -> tuple[Any, list[Any], list[Any] | None]:
    """``(x, y, ids)`` of an object."""
    nodes, edges = value["nodes"], _edges_of(value)
    if not isinstance(edges, list):
        raise ValueError(f'{place}: "edges" must be a list')
    if "edges" in value and value.get("links"):
        raise ValueError(f'{place}: has "edges" and "links"; one of them is wanted')
    labels, ids, rows = [], [], []
    for v, node in enumerate(nodes):
        if not isinstance(node, dict):
            raise ValueError(f"{place}: node {v} must be an object, got {node!r:.60}")
        own = node.get(label)
        if isinstance(own, (dict, list, float)):
            raise ValueError(
                f"{place}: node {v} has the label {own!r:.60}; strings, integers and true or false are wanted"
            )
        labels.append(own)
        ids.append(node.get("id"))
        others = {key: item for key, item in node.items() if key != label and key not in OF_NODES}
        rows.append(node.get("features", others))
    named = any(name is not None for name in ids)
    index = _index(ids, place) if named else None
    pairs, features = _edges(edges, index, len(nodes), place)
    return (_rows(rows, place), pairs, features), labels, ids if named else None


def _edges_of(value: dict[str, Any]) -> Any:
    return value.get("edges", value.get("links", []))


def is_finite(value: Any) -> bool:
    """Whether a value of JSON is a number that a float holds."""
    return type(value) in (int, float, bool) and abs(value) <= LARGEST


def _index(ids: list[Any], place: str) -> dict[Any, int]:
    """The places of nodes by their names."""
    index: dict[Any, int] = {}
    for v, name in enumerate(ids):
        if isinstance(name, (dict, list)) or name is None:
            raise ValueError(f'{place}: node {v} has no "id" that is a string or a number, and others have')
        if index.setdefault(name, v) != v:
            raise ValueError(f"{place}: nodes {index[name]} and {v} have the id {name!r:.60}")
    return index


def _rows(rows: list[Any], place: str) -> Any:
    """Features of nodes: an array of numbers, or a list of objects and lists of names."""
    if rows and isinstance(rows[0], list) and not any(isinstance(item, str) for item in rows[0]):
        width = len(rows[0])
        for v, row in enumerate(rows):
            if not isinstance(row, list) or len(row) != width:
                raise ValueError(f"{place}: node {v} must have {width} features, as node 0 has, got {row!r:.60}")
            for item in row:
                if not is_finite(item):
                    raise ValueError(f"{place}: node {v} has the feature {item!r:.60}; finite numbers are wanted")
        return np.array(rows, dtype=np.float64).reshape(len(rows), width)
    for v, row in enumerate(rows):
        if not isinstance(row, dict) and not (isinstance(row, list) and all(isinstance(item, str) for item in row)):
            raise ValueError(
                f"{place}: the features of node {v} must be numbers, names or an object, as those of node 0, got "
                f"{row!r:.60}"
            )
    return rows


def _edges(edges: list[Any], index: Any, n_nodes: int, place: str) -> tuple[Any, Any]:
    """Pairs of nodes, and an array of their features or None."""
    pairs = np.zeros((len(edges), 2), dtype=np.int64)
    features: list[Any] = []
    for e, edge in enumerate(edges):
        if isinstance(edge, dict):
            ends = [edge.get("source"), edge.get("target")]
            own = edge.get("features", edge.get("weight"))
        elif isinstance(edge, list) and len(edge) in (2, 3):
            ends, own = edge[:2], edge[2] if len(edge) == 3 else None
        else:
            raise ValueError(
                f"{place}: edge {e} must be [node, node], [node, node, features] or an object, got {edge!r:.60}"
            )
        for k, end in enumerate(ends):
            if index is None:
                v = end if type(end) is int and 0 <= end < n_nodes else None
            else:
                v = None if isinstance(end, (dict, list)) else index.get(end)
            if v is None:
                raise ValueError(
                    f"{place}: edge {e} joins {ends[0]!r:.60} and {ends[1]!r:.60}, and there is no such node"
                    f"{_hint(end, index, n_nodes)}"
                )
            pairs[e, k] = v
        own = [own] if isinstance(own, (int, float)) else own
        if own is not None and not (isinstance(own, list) and all(is_finite(z) for z in own)):
            raise ValueError(f"{place}: edge {e} has the features {own!r:.60}; finite numbers are wanted")
        if features and np.shape(own or ()) != np.shape(features[0] or ()):
            raise ValueError(f"{place}: edge {e} must have as many features as edge 0 has, got {own!r:.60}")
        features.append(own)
    if not features or features[0] is None:
        return pairs, None
    return pairs, np.array(features, dtype=np.float64).reshape(len(edges), -1)


def _hint(end: Any, index: Any, n_nodes: int) -> str:
    """The remedy for an edge that names no node."""
    if index is None:
        return f': nodes without an "id" are 0 to {n_nodes - 1}'
    other = int(end) if isinstance(end, str) and end.isdecimal() else str(end)
    is_other = not isinstance(end, (dict, list)) and other in index
    return f': the "id" of nodes is {other!r}, of another type' if is_other else ""


def _marked_up(content: bytes, name: str) -> dict[str, Any]:
    """A file of GraphML or GML as an object."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{name}:{line}: {not_utf8(content)}") from None
    if text.lstrip().startswith("<"):
        return of_networkx(parsed_graphml(text, name), name)
    if is_gml(text):
        return _gml(text, name)
    raise ValueError(f"{name}: begins with {text.strip()!r:.40}; graphs are JSON, GML or GraphML")


def _gml(text: str, name: str) -> dict[str, Any]:
    """A GML file as an object. Its labels are names of nodes if no two are equal, as in files that networkx writes."""
    graph = of_networkx(parsed_gml(text, name), name)
    labels = [node.get(LABEL) for node in graph["nodes"]]
    if None not in labels and len(set(labels)) == len(labels) > 1:
        number = {node["id"]: node.pop(LABEL) for node in graph["nodes"]}
        graph["nodes"] = [{**node, "id": number[node["id"]]} for node in graph["nodes"]]
        graph["edges"] = [
            {**edge, "source": number[edge["source"]], "target": number[edge["target"]]} for edge in graph["edges"]
        ]
    return graph


def write_graphs(
    path: str | os.PathLike[str], X: Iterable[tuple[Any, ...]], y: Iterable[Iterable[Any]] | None = None
) -> None:
    """Write graphs ``(nodes, edges)`` or ``(nodes, edges, edge_features)``, and labels of nodes, as JSON lines.

    Parameters
    ----------
    path : path
        The file appears when it is whole.
    X : graphs
        Nodes are a 2-D array, or a list of dicts or of lists of names.
    y : labels per graph, optional

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from structsvm.structures.graphs.files import write_graphs
    >>> path = pathlib.Path(tempfile.mkdtemp(), "graphs.jsonl")
    >>> write_graphs(path, [([[1.0], [0.5]], [(0, 1)])], [["R", "B"]])
    >>> print(path.read_text(), end="")
    {"nodes": [{"features": [1.0], "label": "R"}, {"features": [0.5], "label": "B"}], "edges": [[0, 1]]}
    """
    with new_file(path, "w", encoding="utf-8") as file:
        labels = iter(()) if y is None else iter(y)
        for x in X:
            rows = np.asarray(x[0]).tolist() if hasattr(x[0], "dtype") else list(x[0])
            nodes: list[dict[str, Any]] = [{"features": row} for row in rows]
            if y is not None:
                for node, label in zip(nodes, next(labels), strict=True):
                    node[LABEL] = label.item() if isinstance(label, np.generic) else label
            pairs: list[Any] = np.asarray(x[1]).tolist()
            if len(x) == 3 and x[2] is not None:
                pairs = [[*pair, own] for pair, own in zip(pairs, np.asarray(x[2]).tolist(), strict=True)]
            json.dump({"nodes": nodes, "edges": pairs}, file)
            file.write("\n")
