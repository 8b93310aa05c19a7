"""Taxonomies against their definitions on random trees and DAGs."""

import json
import pickle
import re
from itertools import pairwise

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from taxonomy_reference import ReferenceTaxonomy, random_edges

import structsvm
from structsvm.structures.taxonomy import Taxonomy, as_taxonomy, read_taxonomy
from structsvm.tasks.common.labels import label_array

EDGES = [("all", "comp"), ("all", "rec"), ("comp", "mac"), ("comp", "pc"), ("rec", "autos")]


@st.composite
def edge_lists(draw, max_nodes=9):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return random_edges(rng, draw(st.integers(2, max_nodes)), tree=draw(st.booleans()))


# --- against the definitions ----------------------------------------------------------------------


@given(edge_lists())
def test_structure(edges):
    taxonomy, reference = Taxonomy(edges), ReferenceTaxonomy(edges)
    place = {z: k for k, z in enumerate(taxonomy.nodes)}
    assert set(taxonomy.nodes) == set(reference.graph) and len(taxonomy) == len(place)
    assert all(place[a] < place[b] for a, b in edges)
    assert taxonomy.root == taxonomy.nodes[0] == reference.root
    assert set(taxonomy.leaves) == reference.leaves
    assert sorted(taxonomy.edges) == sorted(edges)
    assert taxonomy.is_tree == nx.is_arborescence(reference.graph)
    for k, z in enumerate(taxonomy.nodes):
        assert taxonomy.height[k] == reference.height(z)
        assert taxonomy.depth[k] == reference.depth(z) == len(taxonomy.path(z))
        assert taxonomy.ancestors(z) == reference.above(z) - {reference.root}
        assert set(taxonomy.parents(z)) == set(reference.graph.predecessors(z))
        way = [reference.root, *taxonomy.path(z)]
        assert all(edge in edges for edge in pairwise(way)) and way[-1] == z


@pytest.mark.parametrize("kind", ["zero_one", "tree", "path"])
@given(edges=edge_lists())
def test_losses(kind, edges):
    taxonomy, reference = Taxonomy(edges), ReferenceTaxonomy(edges)
    table = np.array([[taxonomy.loss(kind, a, b) for b in taxonomy.nodes] for a in taxonomy.nodes])
    wanted = [[reference.loss(kind, a, b) for b in taxonomy.nodes] for a in taxonomy.nodes]
    np.testing.assert_array_equal(table, wanted)
    assert ((table > 0) == ~np.eye(len(table), dtype=bool)).all()
    np.testing.assert_array_equal(table, table.T)


@given(edge_lists())
def test_indicators_count_common_ancestors(edges):
    taxonomy, reference = Taxonomy(edges), ReferenceTaxonomy(edges)
    L, unit = (taxonomy.indicators(taxonomy.nodes, normalized=flag) for flag in (False, True))
    common = [[len(reference.above(a) & reference.above(b)) - 1 for b in taxonomy.nodes] for a in taxonomy.nodes]
    np.testing.assert_array_equal(L @ L.T, common)
    np.testing.assert_allclose(np.diag(unit @ unit.T)[1:], 1.0)
    for z, row in zip(taxonomy.nodes, unit, strict=True):
        wanted = reference.attributes(z, normalized=True)
        np.testing.assert_allclose(row, [wanted.get(a, 0.0) for a in taxonomy.nodes[1:]])


@given(edge_lists(), st.integers(0, 2**32 - 1))
def test_a_part_keeps_its_losses(edges, seed):
    taxonomy = Taxonomy(edges)
    rng = np.random.default_rng(seed)
    labels = [taxonomy.nodes[k] for k in rng.choice(len(taxonomy), rng.integers(1, len(taxonomy) + 1), replace=False)]
    part = taxonomy.restricted(labels)
    assert set(part.nodes) == {taxonomy.root}.union(*(taxonomy.ancestors(z) for z in labels))
    for kind in ("zero_one", "tree", "path"):
        for a in part.nodes:
            assert [part.loss(kind, a, b) for b in part.nodes] == [taxonomy.loss(kind, a, b) for b in part.nodes]


# --- forms ----------------------------------------------------------------------------------------


def test_all_forms_are_one():
    wanted = Taxonomy(EDGES)
    assert Taxonomy.from_networkx(nx.DiGraph(EDGES)) == wanted == as_taxonomy(EDGES) == as_taxonomy(wanted)
    assert as_taxonomy(wanted) is wanted
    names = ["mac", "all", "comp", "rec", "pc", "autos"]
    assert Taxonomy.from_parents([2, -1, 1, 1, 2, 3], names) == wanted
    paths = [["comp", "mac"], ["comp", "pc"], ["rec", "autos", ""], ["comp", "mac"]]
    assert Taxonomy.from_paths(paths, root="all") == wanted
    assert as_taxonomy(paths).root == "ROOT"
    edges = np.array(EDGES)
    isolated = nx.DiGraph()
    isolated.add_node(np.int64(3))
    isolated.add_edges_from(np.array([[3, 1], [3, 2]]))
    for form, kind in (
        (nx.DiGraph(edges.tolist()), str),
        (nx.DiGraph([*map(tuple, edges)]), str),
        (Taxonomy(map(tuple, edges)), str),
        (Taxonomy.from_parents([-1, 0], np.array(["a", "b"])), str),
        (isolated, int),
    ):
        assert {type(node) for node in as_taxonomy(form).nodes} == {kind}
    ragged = np.array([["comp", "mac"], ["comp", "pc"], ["rec", ""]], dtype=object)
    assert as_taxonomy(ragged) == as_taxonomy([["comp", "mac"], ["comp", "pc"], ["rec"]])
    assert as_taxonomy(np.array([2, -1, 1, 1])).edges == as_taxonomy([2, -1, 1, 1]).edges == [(1, 2), (1, 3), (2, 0)]
    assert as_taxonomy(nx.DiGraph(EDGES)) == wanted
    assert set(wanted.to_networkx().edges) == set(EDGES)
    assert pickle.loads(pickle.dumps(wanted)).loss("tree", "mac", "pc") == 1.0
    assert structsvm.Taxonomy is Taxonomy
    assert repr(wanted) == "Taxonomy(6 nodes, 3 leaves, height 2)"
    assert "mac" in wanted and "all" in wanted and "linux" not in wanted
    assert Taxonomy.flat(["a", "b"]).leaves == ["a", "b"]
    assert wanted != Taxonomy(EDGES[:-1]) and wanted != 3


def test_whole_paths_as_names():
    paths = [["comp", "other"], ["rec", "other"], np.array(["rec", "autos"])]
    with pytest.raises(ValueError, match="'other' stands below both 'comp' and 'rec'; give a separator"):
        Taxonomy.from_paths(paths)
    taxonomy = Taxonomy.from_paths(paths, separator="/")
    assert taxonomy.leaves == ["comp/other", "rec/other", "rec/autos"]
    assert taxonomy.path("rec/autos") == ["rec", "rec/autos"]


def test_long_and_wide():
    n = 20_000
    chain = Taxonomy.from_parents(np.arange(-1, n - 1))
    assert chain.height[0] == n - 1 and chain.loss("path", n - 1, 0) == n - 1 and chain.loss("tree", 1, n - 1) == n - 2
    star = Taxonomy.flat(range(n))
    assert star.loss("path", 0, n - 1) == 2.0 and star.loss("tree", 0, n - 1) == 1.0


def test_files(tmp_path):
    path = tmp_path / "edges.tsv"
    path.write_text("# child, parent\n\n" + "".join(f"{child}\t{parent}\r\n" for parent, child in EDGES))
    assert read_taxonomy(path) == Taxonomy(EDGES)
    for text, message in (
        ("a\tb\na b\n", "edges.tsv, line 2: expected child<TAB>parent, found 'a b'"),
        ("a\t\n", "edges.tsv, line 1: expected child<TAB>parent"),
        ("a\tb\nc\tb\na\tb\n", "edges.tsv, line 3: the edge from 'b' to 'a' is repeated"),
        ("a\tb\nb\ta\n", "edges.tsv: the taxonomy has a cycle"),
        ("# nothing\n", "edges.tsv: contains no edges"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=re.escape(message)):
            read_taxonomy(path)


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Taxonomy([]), "needs at least one edge"),
        (lambda: Taxonomy([("a", "b"), ("a", "b")]), "the edge from 'a' to 'b' is repeated"),
        (lambda: Taxonomy([("r", "a"), ("a", "b"), ("b", "c"), ("c", "a")]), r"a cycle: '\w' -> '\w' -> '\w' -> '\w'$"),
        (lambda: Taxonomy([("a", "a")]), "a cycle: 'a' -> 'a'"),
        (lambda: Taxonomy([("a", "b"), ("x", "y")]), "2 roots: 'a', 'x'; .* cannot be reached from 'a'"),
        (lambda: Taxonomy([(child, parent) for parent, child in EDGES]), "3 roots: .* from parent to child"),
        (lambda: Taxonomy([(f"r{k}", "a") for k in range(9)]), "9 roots: .* and 4 more"),
        (lambda: Taxonomy(["ab"]), r"must be a pair \(parent, child\), got 'ab'"),
        (lambda: Taxonomy([("a", ["b"])]), "must be hashable"),
        (lambda: Taxonomy.from_parents([1, 0]), "a cycle"),
        (lambda: Taxonomy.from_parents([-1, 2]), r"the parent of 1 is 2, expected -1 for the root or 0 \.\. 1"),
        (lambda: Taxonomy.from_parents([-1, -1]), "2 roots: 0, 1"),
        (lambda: Taxonomy.from_parents([0.5]), "must be a 1-D array of integers"),
        (lambda: Taxonomy.from_parents([-1, 0], ["a"]), "2 parents and 1 names"),
        (lambda: Taxonomy.from_parents([-1, 0], ["a", "a"]), "the name 'a' is repeated"),
        (lambda: Taxonomy.from_paths(["ab"]), "must be a list of levels, got 'ab'"),
        (lambda: Taxonomy.from_paths([["a", "", "b"]]), "an empty level before its end"),
        (lambda: Taxonomy.from_paths([["ROOT", "b"]]), "names the root, 'ROOT'"),
        (lambda: Taxonomy.from_paths([]), "there are no label paths"),
        (lambda: Taxonomy.from_networkx(nx.Graph(EDGES)), "must be directed"),
        (lambda: Taxonomy.from_networkx(nx.DiGraph()), "has no nodes"),
        (lambda: Taxonomy.from_networkx(nx.MultiDiGraph([("a", "b")] * 2)), "is repeated"),
        (lambda: as_taxonomy("abc"), "a taxonomy must be a Taxonomy, a networkx.DiGraph"),
        (lambda: as_taxonomy([["a"], ("a", "b")]), "a taxonomy must be a Taxonomy"),
        (lambda: Taxonomy(EDGES).number("linux"), "'linux' is no node of the taxonomy"),
        (lambda: Taxonomy(EDGES).path(["mac"]), r"\['mac'\] is no node"),
        (lambda: Taxonomy(EDGES).loss("hamming", "mac", "pc"), "must be one of 'zero_one', 'tree', 'path'"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_lattice_checks_the_node():
    with pytest.raises(IndexError, match="node 6 is out of range for 6 nodes"):
        Taxonomy(EDGES).lattice.losses("tree", 6)


def test_bytes_that_are_no_text_are_named(tmp_path):
    path = tmp_path / "t.txt"
    path.write_bytes(b"a\tr\nb\xff\tr\n")
    with pytest.raises(ValueError, match=r"t\.txt, line 2: bytes that are not UTF-8"):
        read_taxonomy(path)


def test_names_may_end_with_nul():
    """NumPy's strings would lose it."""
    assert label_array(["a", "a\0"]).tolist() == ["a", "a\0"]


# One taxonomy in the forms that others keep hierarchies in.
GRAPH = nx.DiGraph(EDGES)
FORMS = {
    "graph": GRAPH,
    "links": nx.node_link_data(GRAPH),
    "neighbours": nx.adjacency_data(GRAPH),
    "tree": nx.tree_data(GRAPH, "all"),
    "lists of edges": [list(edge) for edge in EDGES],
    "array of edges": np.array(EDGES),
    "pandas": pd.DataFrame(EDGES),
    "polars by name": pl.DataFrame({"child": [b for _, b in EDGES], "parent": [a for a, _ in EDGES]}),
    "children": {"all": ["comp", "rec"], "comp": ["mac", "pc"], "rec": ["autos"]},
    "sets": {"all": {"comp", "rec"}, "comp": {"mac", "pc"}, "rec": {"autos"}},
    "parents": {"all": None, "comp": "all", "rec": "all", "mac": "comp", "pc": "comp", "autos": "rec"},
    "nested": {"all": {"comp": {"mac": {}, "pc": None}, "rec": {"autos": []}}},
    "nested lists": {"all": {"comp": ["mac", "pc"], "rec": ["autos"]}},
    "names and dicts": {"all": [{"comp": ["mac", "pc"]}, {"rec": ["autos"]}]},
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_hierarchies(form, tmp_path):
    found = as_taxonomy(FORMS[form])
    assert found == Taxonomy(EDGES) and all(type(name) is str for name in found.nodes)
    if isinstance(FORMS[form], dict) and form != "sets":
        (tmp_path / "t.json").write_text(json.dumps(FORMS[form], indent=1))
        assert read_taxonomy(tmp_path / "t.json") == found


def test_files_that_networkx_writes(tmp_path):
    for name, write in (("t.gml", nx.write_gml), ("t.graphml", nx.write_graphml)):
        write(GRAPH, tmp_path / name)
        assert read_taxonomy(tmp_path / name) == Taxonomy(EDGES)
    (tmp_path / "t.gml").write_text(re.sub("label.*", "", (tmp_path / "t.gml").read_text()))
    assert read_taxonomy(tmp_path / "t.gml").leaves == ["3", "4", "5"]
    (tmp_path / "pairs").write_text(json.dumps(EDGES))
    assert read_taxonomy(tmp_path / "pairs") == Taxonomy(EDGES)
    (tmp_path / "lines").write_text("{mac}\tgraph [\n")
    assert read_taxonomy(tmp_path / "lines").leaves == ["{mac}"]


def test_tops_of_dicts_have_a_root():
    assert as_taxonomy({"comp": ["mac"], "rec": []}) == as_taxonomy([["comp", "mac"], ["rec"]])
    assert as_taxonomy({"a": {"x": {}}, "b": {}}).root == "ROOT"
    assert as_taxonomy({"r": ["a", "b"], "a": ["x"], "b": ["x"]}).parents("x") == ["a", "b"]  # no tree
    assert as_taxonomy(np.array([["a", "x"], ["b", np.nan]], dtype=object)).leaves == ["b", "x"]


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({}, "needs at least one edge, and the dict is empty"),
        ({"x": "a", "y": ["b"]}, r"a name for each node, got \['b'\] for 'y'"),
        ({"a": {"x": 3}}, "the children of 'x' must be a dict or a list, got 3"),
        ({"men": {"shoes": {}}, "women": {"shoes": {}}}, "'shoes' stands below both 'men' and 'women'"),
        (nx.node_link_data(nx.Graph(EDGES)), 'it says "directed": false'),
        ({"nodes": [{"id": 1}], "edges": [[0, 1]]}, 'objects with "source" and "target"'),
        ({"nodes": [{"id": 1}], "adjacency": []}, "a list of neighbours for each of the 1 nodes"),
        ({"nodes": [{"id": 1}], "adjacency": [[2]]}, 'neighbours of node 0 must be objects with an "id", got 2'),
        ({"id": "a", "children": ["b"]}, "children of 'a' must be objects with"),
        ([(b, a) for a, b in EDGES], "3 roots: .*edges go from parent to child"),
    ],
)
def test_hierarchies_that_are_none(form, message):
    with pytest.raises(ValueError, match=message):
        as_taxonomy(form)


def test_a_node_twice_in_an_object_of_json(tmp_path):
    (tmp_path / "t.json").write_text('{"B": "A", "C": "A", "B": "C"}')
    with pytest.raises(ValueError, match="the key 'B' stands twice in an object"):
        read_taxonomy(tmp_path / "t.json")
