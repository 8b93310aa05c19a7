"""Files of graphs: JSON in its forms, GraphML, and what is refused."""

import gzip
import io
import json

import networkx as nx
import numpy as np
import pytest

from structsvm.structures.graphs.files import read_graphs, write_graphs

NODES = [{"features": [0.5, 1.0], "label": "sky"}, {"features": [0.1, 2.0], "label": "sea"}, {"features": [1, 3]}]
EDGES = [[0, 1, [0.3]], {"source": 2, "target": 1, "features": [0.1]}]
GRAPH = {"nodes": NODES, "edges": EDGES}


def lines(*graphs):
    return [json.dumps(graph) for graph in graphs]


def test_forms_of_json(tmp_path):
    (tmp_path / "g.json.gz").write_bytes(gzip.compress(json.dumps([GRAPH, GRAPH], indent=1).encode()))
    listed, lined = read_graphs(tmp_path / "g.json.gz"), read_graphs(lines(GRAPH, GRAPH))
    one = read_graphs(io.BytesIO(b"\xef\xbb\xbf" + json.dumps(GRAPH, indent=2).encode()))
    for found in (listed, lined, one):
        for (nodes, edges, marks), labels, ids in zip(found.X, found.y, found.ids, strict=True):
            np.testing.assert_array_equal(nodes, [[0.5, 1.0], [0.1, 2.0], [1.0, 3.0]])
            np.testing.assert_array_equal(edges, [[0, 1], [2, 1]])
            np.testing.assert_array_equal(marks, [[0.3], [0.1]])
            assert labels == ["sky", "sea", None] and ids is None
        assert found.is_directed
    assert (len(listed.X), len(lined.X), len(one.X)) == (2, 2, 1)
    assert lined.places == ["<lines>, line 1", "<lines>, line 2"] and listed.places[1].endswith("g.json.gz, graph 1")


def test_what_networkx_writes(tmp_path):
    graph = nx.Graph()
    graph.add_node("a", x=1.5, colour="red", label="up")
    graph.add_node("b", x=2.5, colour="blue")
    graph.add_edge("a", "b", weight=2.0)
    nx.write_graphml(graph, tmp_path / "g.graphml")
    for found in (read_graphs(lines(nx.node_link_data(graph))), read_graphs(tmp_path / "g.graphml")):
        nodes, edges, marks = found.X[0]
        assert nodes == [{"x": 1.5, "colour": "red"}, {"x": 2.5, "colour": "blue"}]
        assert edges.tolist() == [[0, 1]] and marks.tolist() == [[2.0]]
        assert (found.y, found.ids, found.is_directed) == ([["up", None]], [["a", "b"]], False)
    assert read_graphs(tmp_path / "g.graphml", label="colour").y == [["red", "blue"]]
    nx.write_graphml(nx.DiGraph([(0, 1)]), tmp_path / "d.graphml")
    assert read_graphs(tmp_path / "d.graphml").is_directed


@pytest.mark.parametrize("is_directed", [True, False])
def test_forms_of_networkx(is_directed, tmp_path):
    graph = nx.DiGraph() if is_directed else nx.Graph()
    for name, value, x in (("a", "P", 1.0), ("b", "Q", 2.0), ("c", "P", 0.5)):
        graph.add_node(name, value=value, x=x)
    graph.add_edge("a", "b", weight=2.0)
    graph.add_edge("b", "c", weight=1.0)
    nx.write_gml(graph, tmp_path / "g.gml")
    forms = [lines(nx.node_link_data(graph)), lines(nx.adjacency_data(graph)), tmp_path / "g.gml"]
    for found in (read_graphs(form, label="value") for form in forms):
        nodes, edges, marks = found.X[0]
        assert nodes == [{"x": 1.0}, {"x": 2.0}, {"x": 0.5}] and found.ids == [["a", "b", "c"]]
        assert edges.tolist() == [[0, 1], [1, 2]] and marks.tolist() == [[2.0], [1.0]]
        assert found.y == [["P", "Q", "P"]] and found.is_directed == is_directed


def test_a_tree_of_networkx():
    tree = {"id": "s", "label": "u", "children": [{"id": "a", "x": 1, "children": [{"id": "b"}]}, {"id": "c"}]}
    found = read_graphs([json.dumps(tree)])
    assert found.ids == [["s", "a", "b", "c"]] and found.y == [["u", None, None, None]]
    assert found.X[0][1].tolist() == [[0, 1], [0, 3], [1, 2]] and found.X[0][0] == [{}, {"x": 1}, {}, {}]


def test_labels_of_gml_are_names_if_they_differ():
    node = 'node [ id {} label "{}" ]'.format
    text = f"graph [ {node(1, 'A')} {node(2, 'B')} {node(3, 'A')} edge [ source 1 target 3 ] ]".replace(
        " node", "\nnode"
    )
    found = read_graphs(["# made by hand", *text.replace("[", "[\n").replace("]", "\n]").split("\n")])
    assert found.y == [["A", "B", "A"]] and found.ids == [[1, 2, 3]] and found.X[0][1].tolist() == [[0, 2]]


def test_write(tmp_path):
    X = [(np.eye(2), [(0, 1)], np.array([[0.5]])), ([["a"], ["b", "c"]], np.zeros((0, 2), int))]
    write_graphs(tmp_path / "g", X, [np.array([1, 0]), ["u", None]])
    found = read_graphs(tmp_path / "g")
    assert found.y == [[1, 0], ["u", None]] and found.X[1][0] == [["a"], ["b", "c"]] and found.X[1][2] is None
    np.testing.assert_array_equal(found.X[0][2], [[0.5]])
    write_graphs(tmp_path / "g", X)
    assert read_graphs(tmp_path / "g").y == [[None, None]] * 2


def node(**own):
    return [{"nodes": [{"features": [1.0, 2.0]}, own], "edges": []}]


def edge(*own, ids=False):
    nodes = [{"id": k, "features": [1.0]} if ids else {"features": [1.0]} for k in "abc"]
    return [{"nodes": nodes, "edges": list(own)}]


@pytest.mark.parametrize(
    ("graphs", "message"),
    {
        "no graph": ([{}], 'line 1: not an object with a list of "nodes"'),
        "second line": ([GRAPH, 3], 'line 2: not an object with a list of "nodes"'),
        "edges": ([{"nodes": [], "edges": 3}], 'line 1: "edges" must be a list'),
        "no node": ([{"nodes": [3]}], "line 1: node 0 must be an object, got 3"),
        "label": (node(features=[1.0, 2.0], label=[1]), r"line 1: node 1 has the label \[1\]"),
        "float label": (node(features=[1.0, 2.0], label=0.5), "line 1: node 1 has the label 0.5"),
        "ragged": (node(features=[1.0]), r"line 1: node 1 must have 2 features, as node 0 has, got \[1.0\]"),
        "other kind": (node(features={"a": 1}), "line 1: node 1 must have 2 features"),
        "text": (node(features=[1.0, "x"]), "line 1: node 1 has the feature 'x'"),
        "huge": (node(features=[1.0, 10**400]), "line 1: node 1 has the feature 1000"),
        "number": ([{"nodes": [{"features": 3}]}], "line 1: the features of node 0 must be"),
        "no such node": (edge([0, 1], [0, 3]), "line 1: edge 1 joins 0 and 3, and there is no such node"),
        "negative": (edge([0, -1]), "line 1: edge 0 joins 0 and -1"),
        "no such id": (edge(["a", "z"], ids=True), "line 1: edge 0 joins 'a' and 'z'"),
        "place for id": (edge([0, 1], ids=True), "line 1: edge 0 joins 0 and 1"),
        "no edge": (edge([0]), r"line 1: edge 0 must be \[node, node\]"),
        "edge features": (edge([0, 1, ["x"]]), r"line 1: edge 0 has the features \['x'\]"),
        "other edge features": (edge([0, 1, [1.0]], [1, 2]), "line 1: edge 1 must have as many features as edge 0"),
        "more edge features": (edge([0, 1, [1.0]], [1, 2, [1.0, 2.0]]), "line 1: edge 1 must have as many"),
        "same id": ([{"nodes": [{"id": "a"}, {"id": "a"}]}], "line 1: nodes 0 and 1 have the id 'a'"),
        "no id": ([{"nodes": [{"id": "a"}, {}]}], 'line 1: node 1 has no "id"'),
    }.values(),
    ids=str,
)  # fmt: skip
def test_what_is_no_graph(graphs, message):
    with pytest.raises(ValueError, match=message):
        read_graphs(lines(*graphs))


@pytest.mark.parametrize(
    ("text", "message"),
    {
        "nothing": (b"", "contains no graphs"),
        "blank": (b" \n\n", "contains no graphs"),
        "empty list": (b"[]", "contains no graphs"),
        "NaN": (b'{"nodes": [{"features": [NaN]}], "edges": []}', "line 1: NaN is not JSON"),
        "cut off": (b'{"nodes": [{"features": [1]}', "Expecting"),
        "deep": (b"[" * 100_000, "nested too deeply"),
        "bytes": (b"\xff\xfe", "g"),
        "no XML": (b"<graphml", "no GraphML"),
        "no GML": (b"graph [\n node", "no GML"),
        "text": (b"a b\n", "begins with 'a b'; graphs are JSON, GML or GraphML"),
        "other XML": (b"<a></a>", "no GraphML"),
        "bytes of XML": (b"<graphml>\n\xff</graphml>", ":2: bytes that are not UTF-8"),
        "entities": (
            b'<?xml version="1.0"?>\n<!DOCTYPE a [<!ENTITY x "' + b"y" * 99 + b'">]>\n<graphml>&x;</graphml>',
            ":2: a DOCTYPE declaration",
        ),
    }.values(),
    ids=str,
)  # fmt: skip
def test_damaged_files(tmp_path, text, message):
    (tmp_path / "g").write_bytes(text)
    with pytest.raises(ValueError, match=message):
        read_graphs(tmp_path / "g")


def test_a_multigraph_is_refused(tmp_path):
    nx.write_graphml(nx.MultiGraph([(0, 1), (0, 1)]), tmp_path / "g")
    with pytest.raises(ValueError, match="several edges join the same nodes"):
        read_graphs(tmp_path / "g")
