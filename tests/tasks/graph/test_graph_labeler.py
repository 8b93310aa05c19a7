"""GraphLabeler: forms of graphs and labels, what is learnt of them, and what is refused."""

import itertools

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csr_array

import structsvm
from structsvm._warnings import AdviceWarning
from structsvm.datasets import make_noisy_grids, make_snakes
from structsvm.oracles.graph import GraphOracle
from structsvm.solvers import LaRank
from structsvm.tasks import GraphLabeler, SequenceLabeler
from structsvm.tasks.graph import model as graph_model
from structsvm.tasks.graph.examples import fragments, global_edges
from structsvm.tasks.graph.inputs import grid_edges
from structsvm.tasks.graph.units import EdgeUnits

rng = np.random.default_rng(0)
PATH, RING = [(0, 1), (1, 2), (2, 3)], [(0, 1), (1, 2), (2, 0), (2, 3)]
ROWS = [rng.normal(size=(4, 3)) for _ in range(24)]
EDGES = [np.array((PATH, RING)[k % 2]) for k in range(24)]
MARKS = [rng.normal(size=(len(e), 2)) for e in EDGES]
X = list(zip(ROWS, EDGES, MARKS, strict=True))
Y = [np.where(rows[:, 0] > 0.0, "b", "a") for rows in ROWS]


def fit(X=X, y=Y, **params):
    return GraphLabeler(**{"C": 0.1, "max_iter": 5, "random_state": 0} | params).fit(X, y)


def weights(model):
    return model.model_.weights


# ---- forms --------------------------------------------------------------------------------------


def graphs_of_networkx(directed=True):
    found = []
    for k, (rows, edges, marks) in enumerate(X):
        graph = (nx.DiGraph if directed else nx.Graph)()
        for v, row in enumerate(rows):
            graph.add_node(f"n{v}", features=row, label=str(Y[k][v]))
        graph.add_edges_from((f"n{a}", f"n{b}", {"features": z}) for (a, b), z in zip(edges, marks, strict=True))
        found.append(graph)
    return found


def test_all_forms_of_graphs_are_the_same_problem():
    wanted = fit()
    sparse = fit([(csr_array(rows), edges, marks) for rows, edges, marks in X])
    listed = fit([(rows.tolist(), edges.tolist(), marks.tolist()) for rows, edges, marks in X])
    for model in (sparse, listed):
        np.testing.assert_array_equal(weights(model), weights(wanted))
    dicts = [([{f"f{j}": v for j, v in enumerate(row)} for row in rows], edges, marks) for rows, edges, marks in X]
    of_dicts = fit(dicts)
    assert of_dicts.feature_names_ == ["f0", "f1", "f2"] and wanted.feature_names_ == ["0", "1", "2"]
    np.testing.assert_allclose(of_dicts.coef_, wanted.coef_, atol=1e-6)
    named = graphs_of_networkx()
    # An edge of a DiGraph keeps its ends, and their order is that of the nodes.
    of_names = fit(named, "label")
    order = [np.lexsort((e[:, 1], e[:, 0])) for e in EDGES]
    again = fit([(rows, e[o], z[o]) for (rows, e, z), o in zip(X, order, strict=True)])
    np.testing.assert_array_equal(weights(of_names), weights(again))
    predicted, plain = of_names.predict(named), again.predict(X)
    assert [list(own.values()) for own in predicted] == [own.tolist() for own in plain]
    assert predicted[0].keys() == {"n0", "n1", "n2", "n3"}
    by_node = [{f"n{v}": label for v, label in enumerate(labels)} for labels in Y]
    np.testing.assert_array_equal(weights(fit(named, by_node)), weights(of_names))
    in_order = fit(named, Y).predict(named)
    assert all(isinstance(own, np.ndarray) for own in in_order)
    assert fit(graphs_of_networkx(False), "label").model_.oracle.interactions == "symmetric"
    assert of_names.model_.oracle.interactions == "full"


def test_one_graph_of_networkx():
    graph = nx.disjoint_union_all(graphs_of_networkx())
    model = fit(graph, "label")
    predicted = model.predict(graph)
    assert predicted.keys() == set(graph.nodes) and model.score(graph, "label") > 0.9
    assert model.predict_marginals(graph).shape == (96, 2) if model.temperature_ else True
    known = dict.fromkeys(range(4), "a")
    assert [model.predict(graph, known=known)[v] for v in range(4)] == ["a"] * 4


@pytest.mark.parametrize("neighbours", [4, 8])
def test_grids(neighbours):
    edges, directions = grid_edges(3, 4, neighbours)
    wanted = nx.grid_2d_graph(3, 4)
    if neighbours == 8:
        wanted.add_edges_from(
            ((r, c), (r + 1, c + d)) for r in range(2) for c in range(4) for d in (-1, 1) if 0 <= c + d < 4
        )
    found = {frozenset(divmod(v, 4) for v in pair) for pair in edges.tolist()}
    assert found == {frozenset(pair) for pair in wanted.edges} and len(edges) == len(found)
    steps = np.array([(b // 4 - a // 4, b % 4 - a % 4) for a, b in edges.tolist()])
    ways = np.array([(0, 1), (1, 0), (1, 1), (1, -1)])[: neighbours // 2]
    np.testing.assert_array_equal(steps, ways[directions.argmax(axis=1)])
    grids, labels = make_noisy_grids(4, size=6, random_state=0)
    model = GraphLabeler(C=0.1, max_iter=2, neighbours=neighbours, contrast=False, random_state=0).fit(grids, labels)
    cells, marks = grid_edges(6, 6, neighbours)
    plain = [(grid.reshape(36, -1), cells, marks) for grid in grids]
    again = fit(plain, [y.ravel() for y in labels], max_iter=2)
    np.testing.assert_array_equal(weights(model), weights(again))
    predicted = model.predict(grids)
    assert predicted[0].shape == (6, 6) and model.decision_function(grids)[0].shape == (6, 6, 2)
    np.testing.assert_array_equal(np.concatenate(predicted).ravel(), np.concatenate(again.predict(plain)))


def test_contrast_is_of_the_distance_between_cells():
    grids, labels = make_noisy_grids(3, size=5, random_state=0)
    model = GraphLabeler(C=0.1, max_iter=1, random_state=0).fit(grids, labels).model_
    graphs = model.encode(model.inputs(grids)[0])
    ends, rows = global_edges(graphs), graphs.nodes.values
    squares = ((rows[ends[:, 0]] - rows[ends[:, 1]]) ** 2).sum(axis=1)
    assert model.contrast == pytest.approx(squares.mean())
    contrast = np.exp(-squares / (2.0 * squares.mean()))
    u = (contrast - contrast.mean()) / (contrast.std() * np.sqrt(3.0))
    np.testing.assert_allclose(graphs.edge_features[:, -1], u, rtol=1e-9)


# ---- what is learnt -----------------------------------------------------------------------------


def test_weights_are_those_of_the_features_as_they_came():
    model = fit(class_weight={"a": 2.0}, interactions="full", max_iter=20)
    # The problem in units.
    rows, marks = np.concatenate(ROWS), np.concatenate(MARKS)
    graphs = model.model_.encode(model.model_.inputs(X)[0])
    own = np.column_stack([(rows - rows.mean(0)) / rows.std(0) / np.sqrt(3.0), np.ones(96)])
    np.testing.assert_allclose(graphs.nodes.values, own, atol=1e-6)
    between = np.column_stack([np.ones(len(marks)), (marks - marks.mean(0)) / marks.std(0) / np.sqrt(2.0)])
    np.testing.assert_allclose(graphs.edge_features, between, atol=1e-9)
    oracle = GraphOracle(2, 4, 3, interactions="full", label_costs=[2.0, 1.0])
    ids = (np.concatenate(Y) == "b").astype(np.int32)
    run = LaRank(C=0.1, max_iter=20, random_state=0).solve(oracle.bind(graphs, ids))
    np.testing.assert_array_equal(weights(model), run.weights)
    # Scores by hand, of features as they came.
    k = 5
    y = (model.predict(X)[k] == "b").astype(int)
    unary = ROWS[k] @ model.coef_ + model.intercept_
    tables = np.einsum("em,mab->eab", MARKS[k], model.edge_coef_) + model.edge_intercept_

    def score(labels):
        pairs = (tables[e, labels[a], labels[b]] for e, (a, b) in enumerate(EDGES[k]))
        return unary[np.arange(4), labels].sum() + sum(pairs)

    every = [np.array([n >> v & 1 for v in range(4)]) for n in range(16)]
    assert score(y) == pytest.approx(max(map(score, every)), abs=1e-5)
    costs = model.decision_function(X)[k]
    for v in range(4):
        for label in range(2):
            other = y.copy()
            other[v] = label
            assert costs[v, label] == pytest.approx(score(other) - score(y), abs=1e-5)


@pytest.mark.parametrize("both", [False, True])
def test_units_of_edges(both):
    z = rng.normal(size=(50, 3)) * [1.0, 1e3, 0.0] + [0.0, 5.0, 7.0]
    units = EdgeUnits.of(z, both)
    columns = units.applied(z)
    assert columns.shape == (50, units.n_columns) and np.isfinite(columns).all()
    tables = rng.normal(size=(units.n_columns, 2, 2))
    slopes, constant = units.undone(tables)
    np.testing.assert_allclose(
        np.tensordot(columns, tables, axes=(1, 0)),
        np.tensordot(z, slopes, axes=(1, 0)) + constant,
        rtol=1e-8,
        atol=1e-8,
    )
    if both:
        assert (columns >= 0.0).all() and (units.applied(10.0 * z) >= 0.0).all()


def test_cuts_keep_equal_labels_together():
    """The weights favour equal labels on every edge, whatever its features."""
    labels = [np.where(r[:, 0] > 0.0, "a", "b") for r in ROWS]
    model = fit(y=labels, method="cut")
    assert model.result_.inference == "exact" and model.model_.oracle.interactions == "potts"
    oracle = model.model_.oracle
    assert (weights(model)[oracle.nonnegative] >= 0.0).all()
    graphs = model.model_.encode(model.model_.inputs([(r, e, 100.0 * z) for r, e, z in X])[0])
    tables = oracle.split(weights(model))[1]
    assert (np.einsum("em,mk->ek", graphs.edge_features, tables[:, [0, 1], [0, 1]]) >= 0.0).all()


def test_edges_help():
    grids, labels = make_noisy_grids(20, size=12, random_state=0)
    test, truth = make_noisy_grids(10, size=12, random_state=1)
    alone = GraphLabeler(interactions="none", random_state=0).fit(grids, labels)
    model = GraphLabeler(random_state=0).fit(grids, labels)
    assert model.score(test, truth) > alone.score(test, truth) + 0.1
    assert model.validation_["metric"] == "accuracy" and model.validation_["n_held_out"] == 20
    assert model.C_ in model.validation_["C"]


def test_snakes_need_edges():
    snakes, labels = make_snakes(30, length=4, size=4, random_state=0)
    test, truth = make_snakes(20, length=4, size=4, random_state=1)
    full = GraphLabeler(C=1.0, max_iter=10, random_state=0).fit(snakes, labels).score(test, truth)
    alone = GraphLabeler(C=1.0, max_iter=10, interactions="none", random_state=0).fit(snakes, labels)
    assert full > 0.97 and full > alone.score(test, truth) + 0.05


def test_log_loss_and_probabilities():
    model = fit(loss="log")
    marginals = model.predict_marginals(X)
    assert model.temperature_ == 1.0 and all(np.allclose(p.sum(axis=1), 1.0) for p in marginals)
    unary = ROWS[1] @ model.coef_ + model.intercept_
    tables = np.einsum("em,mab->eab", MARKS[1], model.edge_coef_) + model.edge_intercept_
    every = [np.array([n >> v & 1 for v in range(4)]) for n in range(16)]
    p = np.exp([
        unary[np.arange(4), y].sum() + sum(tables[e, y[a], y[b]] for e, (a, b) in enumerate(EDGES[1])) for y in every
    ])  # fmt: skip
    wanted = sum(q * np.eye(2)[y] for q, y in zip(p / p.sum(), every, strict=True))
    np.testing.assert_allclose(marginals[1], wanted, atol=1e-5)
    margin = fit(probability=True)
    assert margin.temperature_ > 0.0 and np.allclose(margin.predict_marginals(X)[0].sum(axis=1), 1.0)
    by_hand = fit().calibrate(X, Y)
    assert by_hand.temperature_ > 0.0
    with pytest.raises(ValueError, match="predict_marginals needs probabilities"):
        fit().predict_marginals(X)
    grids, labels = make_noisy_grids(2, size=20, random_state=0)
    with pytest.raises(ValueError, match=r"graph 0 of 400 nodes .* no junction tree"):
        GraphLabeler(C=0.1, loss="log", max_table=64).fit(grids, labels)
    # A model trained on trees predicts on any graph.
    assert model.predict([(rng.normal(size=(400, 3)), *grid_edges(20, 20))])[0].shape == (400,)


@pytest.mark.parametrize("method", ["relaxed", "expansion", "cut"])
def test_temperatures_of_methods_without_sums(method):
    """They are fitted with junction trees, where graphs have such: before training it is said that one has none."""
    cycle = [(0, 1), (1, 2), (2, 3), (3, 0)]
    graphs, labels = [(rng.normal(size=(4, 2)), cycle) for _ in range(6)], [[0, 1, 0, 1]] * 6
    model = GraphLabeler(C=1.0, method=method, probability=True).fit(graphs, labels)
    assert model.temperature_ > 0.0 and np.allclose(model.predict_marginals(graphs)[0].sum(axis=1), 1.0)
    later = GraphLabeler(C=1.0, method=method).fit(graphs, labels).calibrate(graphs, labels)
    assert later.temperature_ > 0.0
    with pytest.raises(ValueError, match="calibrate needs labelled examples, and there are none"):
        later.calibrate([], [])
    grids, labels = make_noisy_grids(2, size=20, random_state=0)
    with pytest.raises(ValueError, match=r"probability=True: graph 0 of 400 nodes .* no sums over all labellings"):
        GraphLabeler(C=0.1, method=method, probability=True).fit(grids, labels)
    with pytest.raises(ValueError, match=r"graph 0 of 400 nodes .* no sums over all labellings"):
        GraphLabeler(C=0.1, method=method, max_iter=1).fit(grids, labels).calibrate(grids, labels)


def test_known_labels_are_completed_and_kept():
    """One large graph, of which a third of the labels are known: transductive."""
    grids, labels = make_noisy_grids(1, size=24, noise=1.0, random_state=0)
    known = np.where(rng.random((24, 24)) < 0.33, labels[0], -1)
    model = GraphLabeler(random_state=0, unknown=-1).fit(grids, [known])
    assert model.n_unknown_ == (known < 0).sum()
    assert model.validation_["n_held_out"] >= 20 and model.classes_.tolist() == [0, 1]
    hidden = known < 0
    assert (model.predict(grids)[0] == labels[0])[hidden].mean() > 0.85
    kept = model.predict(grids, known=[known])[0]
    np.testing.assert_array_equal(kept[~hidden], known[~hidden])
    assert (kept == labels[0])[hidden].mean() >= (model.predict(grids)[0] == labels[0])[hidden].mean() - 0.01
    assert model.score(grids, [known]) == pytest.approx((model.predict(grids)[0] == known)[~hidden].mean())


def test_fragments():
    """Every known node once, its edges to others of its part, no others."""
    graphs = fit().model_.encode(fit().model_.inputs(X)[0])
    ids = rng.integers(-1, 2, graphs.n_nodes).astype(np.int32)
    for n_parts in (1, 2):
        parts, labels, origin = fragments(graphs, ids, n_parts)
        parts.check()
        assert (labels >= 0).all() and len(labels) == (ids >= 0).sum() == parts.n_nodes
        assert np.bincount(origin, minlength=24).max() <= n_parts and len(origin) == len(parts)
        rows = {tuple(row): v for v, row in enumerate(graphs.nodes.values.tolist())}
        place = np.array([rows[tuple(row)] for row in parts.nodes.values.tolist()])
        np.testing.assert_array_equal(ids[place], labels)
        part_of = np.repeat(np.arange(len(parts)), np.diff(parts.node_bounds))
        np.testing.assert_array_equal(place // 4, origin[part_of])
        found = {tuple(pair) for pair in place[global_edges(parts)].tolist()}
        of = dict(zip(place.tolist(), part_of.tolist(), strict=True))
        wanted = {(a, b) for a, b in global_edges(graphs).tolist() if a in of and b in of and of[a] == of[b]}
        assert found == wanted


def test_threads_weights_and_files(tmp_path):
    model = fit()
    for n_jobs in (2, -1):
        again = model.set_params(n_jobs=n_jobs).predict(X)
        assert [y.tolist() for y in again] == [y.tolist() for y in fit().predict(X)]
    weight = np.ones(24)
    weight[12:] = 0.0
    np.testing.assert_allclose(
        weights(fit(max_iter=60, solver="cutting_plane", tol=1e-6, probability=False)),
        weights(fit(max_iter=60, solver="cutting_plane", tol=1e-6)), atol=0.0,
    )  # fmt: skip
    heavy = GraphLabeler(0.1, solver="cutting_plane", max_iter=500, tol=1e-7).fit(X, Y, sample_weight=weight)
    half = GraphLabeler(0.1, solver="cutting_plane", max_iter=500, tol=1e-7).fit(X[:12], Y[:12])
    assert heavy.result_.primal == pytest.approx(half.result_.primal, rel=0.2)
    grids, labels = make_noisy_grids(3, size=5, n_labels=3, random_state=0)
    for kept in (fit(method="cut"), GraphLabeler(C=0.1, neighbours=8).fit(grids, labels), fit(class_weight="balanced")):
        kept.save(tmp_path / "m")
        loaded, data = structsvm.load(tmp_path / "m"), grids if kept.neighbours == 8 else X
        for a, b in zip(kept.decision_function(data), loaded.decision_function(data), strict=True):
            np.testing.assert_array_equal(a, b)
    named = fit(graphs_of_networkx(), "label")
    named.save(tmp_path / "m")
    assert structsvm.load(tmp_path / "m").predict(graphs_of_networkx()) == named.predict(graphs_of_networkx())


def test_isolated_nodes_and_graphs_without_edges():
    lonely = [(rows, np.zeros((0, 2), dtype=int)) for rows in ROWS]
    model = fit(lonely)
    assert model.score(lonely, Y) > 0.85 and model.result_.inference == "exact"
    assert model.predict([]) == [] and model.predict([(np.zeros((0, 3)), [])])[0].shape == (0,)
    mixed = fit([(rows, [(0, 1)]) for rows in ROWS])
    assert mixed.predict([(ROWS[0][:1], [])])[0].shape == (1,)


def test_labels_of_any_kind():
    for names in ([0, 1], [1.5, 2.5], [(0, "x"), (1, "y")], [True, False], ["ä", "b\0"]):
        y = [[names[label == "b"] for label in labels] for labels in Y]
        model = fit(y=y)
        found = model.predict(X)
        assert {label for own in found for label in own.tolist()} <= set(names)
        assert model.score(X, y) > 0.85


# ---- refusals -----------------------------------------------------------------------------------

ONE, TWO = np.zeros((3, 2)), [["a", "b", "a"]]


@pytest.mark.parametrize(
    ("X", "y", "message"),
    {
        "self-loop": ([(ONE, [(0, 1), (2, 2)])], TWO, "graph 0: edge 1 joins node 2 with itself"),
        "twice": ([(ONE, [(0, 1), (1, 0)])], TWO, "graph 0: edge 1 joins nodes 0 and 1, as edge 0 does"),
        "out of range": ([(ONE, [(0, 3)])], TWO, r"graph 0: edge 0 joins nodes 0 and 3, expected 0 \.\. 2"),
        "negative": ([(ONE, [(0, 1), (0, -1)])], TWO, "graph 0: edge 1 joins nodes 0 and -1"),
        "no pairs": ([(ONE, [(0, 1, 2)])], TWO, "graph 0: its edges must be pairs"),
        "half pairs": ([(ONE, [(0, 1), (2,)])], TWO, "graph 0: its edges must be pairs"),
        "floats": ([(ONE, [(0.0, 1.0)])], TWO, "graph 0: its edges must be pairs"),
        "NaN": ([(np.array([[np.nan, 1.0]] * 3), [])], TWO, "graph 0, node 0"),
        "infinity": ([(np.diag([0.0, np.inf, 0.0]), [])], TWO, "graph 0, node 1"),
        "NaN on an edge": ([(ONE, [(0, 1)], [[np.nan]])], TWO, "graph 0: the features of edge 0 hold NaN"),
        "huge edge features": ([(ONE, [(0, 1)], [[1e200]])], TWO, "the squares of X overflow"),
        "ragged edges": ([(ONE, [(0, 1), (1, 2)], [[1.0], [1.0, 2.0]])], TWO, "features of its edges must be"),
        "few edge features": ([(ONE, [(0, 1), (1, 2)], [[1.0]])], TWO, "graph 0: 2 edges have features of shape"),
        "other edge features": (
            [(ONE, [(0, 1)], [[1.0]]), (ONE, [(0, 1)])], TWO * 2,
            "graph 1: its edges have 0 features, those of graph 0 have 1"
        ),
        "ragged nodes": ([([[1.0], [1.0, 2.0], [1.0]], [])], TWO, "the features of its nodes must be"),
        "other width": ([(ONE, []), (np.zeros((3, 1)), [])], TWO * 2, "graph 1 has 1 columns, expected 2"),
        "flat": ([(np.zeros(3), [])], TWO, "graph 0: the features of its nodes have 1 dim"),
        "empty": ([(ONE[:0], [])], [[]], "graph 0 (is empty|has no nodes)"),
        "none": ([], [], "X contains no graphs"),
        "one label": ([(ONE, [])], [["a"] * 3], "y has only one label: 'a'"),
        "no label": ([(ONE, [])], [[None] * 3], "no label of any node"),
        "few labels": ([(ONE, [])], [["a"]], "graph 0 has 3 nodes and 1 labels"),
        "few graphs": ([(ONE, [])], TWO * 2, "X has 1 graphs, y has 2"),
        "NaN label": ([(ONE, [])], [["a", float("nan"), "b"]], "graph 0, node 1: the label is NaN"),
        "no labels": ([(ONE, [])], None, "requires y"),
        "attribute": ([(ONE, [])], "label", "only networkx graphs have them"),
        "mixed": ([(ONE, []), np.zeros((2, 2, 2))], TWO * 2, "graph 1: some graphs are grids"),
        "grid labels": ([np.zeros((2, 2, 2))], [[[0, 1]]], r"graph 0 is a grid of shape \(2, 2\), its labels"),
        "no features": ([([{}, {}, {}], [(0, 1)])], TWO, "the nodes have no features at all"),
    }.values(),
    ids=str,
)  # fmt: skip
def test_what_is_no_graph(X, y, message):
    with pytest.raises(ValueError, match=message):
        GraphLabeler(C=0.1).fit(X, y)


def test_labels_of_pandas_that_are_missing():
    missing = pytest.importorskip("pandas").NA
    with pytest.raises(ValueError, match="graph 0, node 1: the label is <NA>; None: it is not known"):
        GraphLabeler(C=0.1).fit([(ONE, [])], [["a", missing, "b"]])


def test_what_is_of_another_type():
    for X, message in [
        ([ONE[0]], "graph 0 must be"),
        ([3], "graph 0 must be"),
        ((ONE, [(0, 1)]), "is a tuple"),
        ([(3, [])], "graph 0: its nodes must be"),
    ]:
        with pytest.raises(TypeError, match=message):
            GraphLabeler(C=0.1).fit(X, TWO)
    with pytest.raises(ValueError, match="GraphLabeler learns from examples, not from the text 'abc'"):
        GraphLabeler(C=0.1).fit("abc", TWO)
    with pytest.raises(TypeError, match=r"graph 0, node 0: .* is no label"):
        GraphLabeler(C=0.1).fit([(ONE, [])], [[[1], [2], [3]]])


def test_graphs_without_edges_say_nothing_of_features_of_edges():
    """First, among others, and alone; whatever shape their features have."""
    lone = [(rows[:1], [], None) for rows in ROWS[:2]] + [(ROWS[2][:1], [], np.zeros((0, 5)))]
    model = fit([*lone[:1], *X, *lone[1:]], [["a"], *Y, ["b"], ["a"]])
    assert model.edge_coef_.shape[0] == 2
    found = model.predict([*lone, X[0]])
    for alone, among in zip(lone, found, strict=False):
        assert model.predict([alone])[0].tolist() == among.tolist()
    assert fit(lone[1:], [["a"], ["b"]]).predict(lone[2:])[0].shape == (1,)


def test_refusals_of_networkx():
    graph = nx.MultiGraph([(0, 1), (0, 1)])
    with pytest.raises(ValueError, match="graph 0 may have several edges"):
        fit([graph], [["a", "b"]])
    graph = nx.path_graph(3)
    graph.nodes[0]["features"] = [1.0]
    with pytest.raises(ValueError, match="graph 0: node 1 has no attribute 'features'"):
        fit([graph], TWO)
    for v in graph:
        graph.nodes[v]["features"] = [1.0]
    graph.edges[0, 1]["weight"] = 2.0
    with pytest.raises(ValueError, match="edge between 1 and 2 has no attribute 'weight'"):
        fit([graph], TWO)
    graph.add_edge(2, 2)
    with pytest.raises(ValueError, match="graph 0: edge 2 joins node 2 with itself"):
        fit([graph], TWO)
    graph.remove_edge(2, 2)
    del graph.edges[0, 1]["weight"]
    for y, message in [([{9: "a"}], "has a label for 9"), ("none", "no node has the attribute")]:
        with pytest.raises(ValueError, match=message):
            fit([graph], y)


def test_refusals_of_a_model():
    model = fit()
    for other, message in [
        ([(ROWS[0], EDGES[0])], "edges have 0 features, the model was trained with 2"),
        ([(ROWS[0][:, :2], EDGES[0], MARKS[0])], "2 columns, expected 3"),
        ([np.zeros((2, 2, 3))], "graphs that are no grids"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.predict(other)
    with pytest.raises(ValueError, match=r"method|nonnegative|two labels|2 labels"):
        fit(y=[["a", "b", "c", "a"]] * 24, method="cut")
    with pytest.raises(ValueError, match="class_weight has no meaning with loss='log'"):
        fit(loss="log", class_weight="balanced")
    with pytest.raises(ValueError, match="another 'interactions'"):
        model.set_params(warm_start=True, interactions="potts").fit(X, Y)
    with pytest.warns(AdviceWarning, match="96 nodes have a label that training never saw"):
        assert model.score(X, [["zz"] * 4] * 24) == 0.0
    with pytest.raises(ValueError, match="y tells no label"):
        model.score(X, [[None] * 4] * 24)


def test_fractional_relaxations_are_told(monkeypatch):
    """A ring of three nodes, two labels and weights against equal ones: its relaxation has nothing but halves."""
    model = fit(
        [(rows[:3], [(0, 1), (1, 2), (2, 0)]) for rows in ROWS],
        [y[:3] for y in Y],
        method="relaxed",
        interactions="potts",
    )
    own = model.model_
    graphs = own.encode(own.inputs([(rows[:3], [(0, 1), (1, 2), (2, 0)]) for rows in ROWS])[0])
    before = own.fractional(graphs)
    own.weights = np.zeros_like(own.weights)
    own.weights[own.oracle.first_edge_weight] = -1.0
    assert before < 0.2 and own.fractional(graphs) == 1.0
    monkeypatch.setattr(graph_model, "MANY_FRACTIONAL", -1.0)
    with pytest.warns(AdviceWarning, match=r"no whole label for \d+% of the training nodes"):
        fit(method="relaxed")


@pytest.mark.parametrize("loss", ["hamming", "log"])
def test_the_k_best_are_those_of_the_enumeration(loss):
    """Labellings and scores in their order, and probabilities that add up to 1."""
    rng = np.random.default_rng(0)
    edges = np.array([(0, 1), (1, 2), (2, 0), (2, 3)])
    X = [(rng.normal(size=(4, 2)), edges) for _ in range(20)]
    y = [np.array(["low", "high"])[(rows[:, 0] > 0).astype(int)] for rows, _ in X]
    model = GraphLabeler(C=1.0, loss=loss, max_iter=5, random_state=0).fit(X, y)
    own = model.model_
    decoder = own.oracle.decoder(own.encode(own.inputs(X[:1])[0]))
    ways = [np.array(z, dtype=np.int32) for z in itertools.product((0, 1), repeat=4)]
    scores = np.array([decoder.values(z, own.weights)[0] for z in ways])
    order = np.argsort(-scores)
    for k in (1, 5, 40):
        found = model.predict_kbest(X[:1], k)[0]
        assert [score for _, score in found] == pytest.approx(scores[order[:k]].tolist())
        assert [z.tolist() for z, _ in found] == [[model.classes_[c] for c in ways[w]] for w in order[:k]]
    assert found[0][0].tolist() == model.predict(X[:1])[0].tolist() and len(found) == 16
    if loss == "log":
        chances = [p for _, p in model.predict_kbest(X[:1], 16, probabilities=True)[0]]
        assert sum(chances) == pytest.approx(1.0) and chances == sorted(chances, reverse=True)
    else:
        with pytest.raises(ValueError, match="probabilities=True needs probabilities"):
            model.predict_kbest(X[:1], 2, probabilities=True)
    grids = [rng.normal(size=(2, 2, 2)) for _ in range(4)]
    grid = GraphLabeler(C=1.0, max_iter=2, random_state=0).fit(grids, [(g[..., 0] > 0).astype(int) for g in grids])
    assert grid.predict_kbest(grids[:1], 2)[0][1][0].shape == (2, 2)


def test_the_k_best_need_exact_inference():
    X = [(np.eye(4), [(0, 1), (1, 2), (2, 0)])]
    model = GraphLabeler(C=1.0, method="relaxed", max_iter=2, random_state=0).fit(X, [[0, 1, 1, 0]])
    with pytest.raises(
        ValueError, match="graph 0: the k best labellings need exact inference, and its method is 'relaxed'"
    ):
        model.predict_kbest(X, 2)
    with pytest.raises(ValueError, match="k must be an integer of at least 1"):
        model.predict_kbest(X, 0)


@pytest.mark.parametrize("offset", [2e7, 1e8])
def test_columns_of_which_float32_keeps_too_few_digits_are_named(offset):
    rng = np.random.default_rng(0)
    rows = [rng.normal(size=(4, 2)) for _ in range(30)]
    y = [own[:, 0] > 0.0 for own in rows]
    X = [(own + np.array([0.0, offset]), [(0, 1), (1, 2)]) for own in rows]
    dicts = [([{"a": a, "b": b} for a, b in nodes.tolist()], edges) for nodes, edges in X]
    for data, name in ((X, "1"), (dicts, "b")):
        with pytest.warns(AdviceWarning, match=f"column '{name}' has values that differ by .*: float32"):
            GraphLabeler(C=1.0, random_state=0).fit(data, y)
    with pytest.warns(AdviceWarning, match="column '1' has values"):
        SequenceLabeler(C=1.0, random_state=0).fit([nodes for nodes, _ in X], y)
    with pytest.warns(AdviceWarning, match="column '0' has values that differ by .*, others likewise"):
        SequenceLabeler(C=1.0, random_state=0).fit([nodes + np.array([offset, 0.0]) for nodes, _ in X], y)
    SequenceLabeler(C=1.0, random_state=0).fit([np.sign(own) * 3e38 for own in rows], y)
    for shift in (1e4, 1.0):  # with digits enough; constant
        GraphLabeler(C=1.0, random_state=0).fit([(own * [1.0, shift != 1.0] + [0.0, shift], []) for own in rows], y)
