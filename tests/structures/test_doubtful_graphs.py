"""Files of graphs that were once read without a word: a part left out, or read as something else."""

import io
import json

import networkx as nx
import pytest

from structsvm import AdviceWarning
from structsvm.structures.graphs.files import read_graphs
from structsvm.tasks import GraphLabeler

NODES = [{"id": "a", "x": 1.0, "label": "P"}, {"id": "b", "x": 2.0, "label": "Q"}]
GRAPH = {"nodes": NODES, "edges": [["a", "b"]]}


def read(value):
    return read_graphs(io.StringIO(value if isinstance(value, str) else json.dumps(value)))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (NODES, r'graph 0: not an object with a list of "nodes"'),  # a list of nodes, and no trees of one node
        ({"nodes": NODES, "edges": [], "links": [{"source": "a", "target": "b"}]}, 'has "edges" and "links"'),
        (
            {"nodes": [{"id": 0, "x": 1}], "edges": [["0", "0"]]},
            r'no such node: the "id" of nodes is 0, of another type',
        ),
        ({"nodes": [{"id": "0", "x": 1}], "edges": [[0, 0]]}, r"""the "id" of nodes is '0', of another type"""),
        ({"nodes": [{"x": 1}, {"x": 2}], "edges": [[1, 2]]}, r'nodes without an "id" are 0 to 1'),
        ({"nodes": [{"features": None}], "edges": []}, "the features of node 0 must be numbers, names or an object"),
    ],
    ids=["nodes", "edges twice", "text of a number", "number of a text", "from 1", "no features"],
)
def test_what_is_no_graph(value, message):
    with pytest.raises(ValueError, match=message):
        read(value)


@pytest.mark.parametrize("source", [GRAPH, nx.path_graph(3)], ids=["object", "networkx"])
def test_graphs_in_place_of_a_file(source):
    with pytest.raises(TypeError, match="GraphLabeler takes networkx's graphs as they are"):
        read_graphs(source)


def test_trees_still_are_graphs():
    tree = nx.tree_data(nx.DiGraph([("a", "b"), ("a", "c")]), "a")
    assert read(tree).X[0][1].tolist() == [[0, 1], [0, 2]]


def test_graphml_of_two_graphs():
    text = "\n".join(nx.generate_graphml(nx.path_graph(2)))
    more = '<graph edgedefault="undirected"><node id="z"/></graph></graphml>'
    with pytest.raises(ValueError, match="has 2 graphs, and one per file is read"):
        read(text.replace("</graphml>", more))


def test_attributes_of_edges_that_are_not_read():
    edge = {"source": "a", "target": "b", "distance": 2.0, "kind": "bond", "key": 0}
    with pytest.warns(AdviceWarning, match="edges have 'distance', 'kind', which is not read: 'weight'"):
        found = read({"nodes": NODES, "links": [edge]})
    assert found.X[0][2] is None
    graph = nx.Graph()
    graph.add_nodes_from((node["id"], {"x": node["x"], "label": node["label"]}) for node in NODES)
    graph.add_edge("a", "b", distance=2.0)
    with pytest.warns(AdviceWarning, match="edges have 'distance', which is not read"):
        GraphLabeler(C=0.1, max_iter=2).fit([graph] * 3, "label")
    graph.remove_edge("a", "b")
    graph.add_edge("a", "b", weight=2.0)
    GraphLabeler(C=0.1, max_iter=2).fit([graph] * 3, "label")  # warnings are errors


def test_errors_of_training_name_the_line():
    found = read(f"{json.dumps(GRAPH)}\n\n{json.dumps(GRAPH).replace('2.0', 'null')}\n")
    with pytest.raises(TypeError, match=r"^<lines>, line 3: graph 1, node 1: feature 'x'"):
        GraphLabeler().fit(found.X, found.y)
    found = read(f"{json.dumps(GRAPH)}\n\n{json.dumps(GRAPH).replace('2.0', '1e999')}\n")
    with pytest.raises(ValueError, match=r"^<lines>, line 3: graph 1, node 1: feature 'x' has the value inf"):
        GraphLabeler().fit(found.X, found.y)


def test_no_label_at_all_says_where_labels_are_looked_for():
    found = read(json.dumps(GRAPH).replace("label", "class"))
    with pytest.raises(ValueError, match="no label of any node; label= of read_graphs and --label"):
        GraphLabeler().fit(found.X, found.y)
