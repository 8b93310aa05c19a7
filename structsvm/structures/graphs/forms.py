"""Forms in which networkx and others write graphs: JSON by links, by neighbours or as a tree; GML and GraphML.

All become objects of lists of nodes and of edges, as `node_link_data` has them.
"""

from __future__ import annotations

import io
import re
from typing import Any

from structsvm.features.text.encodings import not_utf8
from structsvm.files.strict_json import parse_json

__all__: list[str] = []

# Declarations that XML may have in front, in which entities can be defined; GraphML needs none.
_DECLARATION = re.compile(r"<!(DOCTYPE|ENTITY)")
_GRAPH = re.compile(r"<(?:\w+:)?graph[\s>]")
# How a GML file begins: after comments with its graph, or with who made it.
_GML = re.compile(r"\s*(#[^\n]*\n\s*)*(graph\s*\[|(Creator|Version|comment)\s)", re.IGNORECASE)


def parsed_json(text: bytes, place: str) -> Any:
    """The value of JSON; ValueError, which begins with `place`."""
    try:
        return parse_json(text)
    except RecursionError:
        raise ValueError(f"{place}: nested too deeply") from None
    except UnicodeDecodeError:
        raise ValueError(f"{place}: {not_utf8(text)}") from None
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None


def is_graph(value: Any) -> bool:
    """Whether an object of JSON is a graph in one of networkx's forms."""
    return isinstance(value, dict) and (
        isinstance(value.get("nodes"), list) or ("children" in value and _is_tree(value))
    )


def _is_tree(value: Any) -> bool:
    """Whether an object of JSON is a node of networkx's `tree_data`, perhaps without children."""
    return isinstance(value, dict) and "id" in value and isinstance(value.get("children", []), list)


def by_links(value: dict[str, Any], place: str) -> dict[str, Any]:
    """A graph of JSON with its edges in a list: one of networkx's `adjacency_data` or `tree_data`, or as it is.

    Raises ValueError, which begins with `place`, for neighbours that are not objects, as many lists as nodes.
    """
    if "adjacency" in value:
        return value | {"edges": _of_neighbours(value, place)}
    return value if "nodes" in value else _of_tree(value, place)


def _of_neighbours(value: dict[str, Any], place: str) -> list[dict[str, Any]]:
    """The edges of lists of neighbours; an undirected one, which stands with both of its nodes, once."""
    nodes, lists = value["nodes"], value["adjacency"]
    if not isinstance(lists, list) or len(lists) != len(nodes) or not all(isinstance(some, list) for some in lists):
        raise ValueError(f'{place}: "adjacency" must be a list of neighbours for each of the {len(nodes)} nodes')
    edges, seen = [], set[Any]()
    for v, (node, neighbours) in enumerate(zip(nodes, lists, strict=True)):
        name = node.get("id", v) if isinstance(node, dict) else v
        for other in neighbours:
            if not isinstance(other, dict) or isinstance(other.get("id"), dict | list) or other.get("id") is None:
                raise ValueError(f'{place}: neighbours of node {v} must be objects with an "id", got {other!r:.60}')
            if value.get("directed", True) is False and (other["id"], name) in seen:
                continue
            seen.add((name, other["id"]))
            own = {key: item for key, item in other.items() if key not in ("id", "key")}
            edges.append({**own, "source": name, "target": other["id"]})
    return edges


def _of_tree(root: dict[str, Any], place: str) -> dict[str, Any]:
    """The nodes and edges, from parent to child, of objects within objects."""
    nodes, edges, due = [], [], [root]
    while due:
        node = due.pop()
        nodes.append({key: item for key, item in node.items() if key != "children"})
        for child in node.get("children", []):
            if not _is_tree(child) or "nodes" in child:
                raise ValueError(
                    f'{place}: children of {node["id"]!r:.60} must be objects with an "id", got {child!r:.60}'
                )
            edges.append({"source": node["id"], "target": child["id"]})
        due += reversed(node.get("children", []))
    return {"directed": True, "nodes": nodes, "edges": edges}


def is_gml(text: str) -> bool:
    """Whether text is GML, by how it begins."""
    return _GML.match(text) is not None


def parsed_gml(text: str, name: str, label: str = "id") -> Any:
    """The networkx graph of GML, nodes named by their `label`; ValueError, which begins with the file's name."""
    import networkx as nx

    try:
        return nx.parse_gml(text.splitlines(), label=label)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - what networkx raises
        raise ValueError(f"{name}: no GML: {type(error).__name__}: {error!s:.200}") from None


def parsed_graphml(text: str, name: str) -> Any:
    """The networkx graph of GraphML; ValueError, which begins with the file's name."""
    declared = _DECLARATION.search(text)
    if declared is not None:
        line = text.count("\n", 0, declared.start()) + 1
        raise ValueError(f"{name}:{line}: a {declared[0][2:]} declaration, which GraphML needs none of, is not read")
    if (n := len(_GRAPH.findall(text))) > 1:
        raise ValueError(f"{name}: has {n} graphs, and one per file is read: write them as lines of JSON")
    import networkx as nx

    try:
        return nx.read_graphml(io.BytesIO(text.encode("utf-8")))
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - what networkx and the parser of XML raise
        raise ValueError(f"{name}: no GraphML: {type(error).__name__}: {error!s:.200}") from None


def of_networkx(graph: Any, name: str) -> dict[str, Any]:
    """A networkx graph by its links; ValueError, which begins with `name`, for several edges between two nodes."""
    if graph.is_multigraph():
        raise ValueError(f"{name}: several edges join the same nodes")
    nodes = [{**own, "id": node} for node, own in graph.nodes(data=True)]
    edges = [{**own, "source": a, "target": b} for a, b, own in graph.edges(data=True)]
    return {"directed": graph.is_directed(), "nodes": nodes, "edges": edges}
