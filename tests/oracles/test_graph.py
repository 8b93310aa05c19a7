"""Graphs: every method against enumeration, relaxations against HiGHS, chains against the Viterbi oracle."""

import pickle
import re
from dataclasses import replace

import graph_reference as reference
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from structsvm import CuttingPlane, LaRank, LatentSVM, Perceptron
from structsvm.dual._rounds import violations
from structsvm.execution._stop import look_every
from structsvm.features.dense import DenseRows
from structsvm.oracles.graph import GraphOracle, Marginals, as_graphs
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.structures.graphs.data import Graphs
from structsvm.structures.graphs.elimination import eliminate, is_forest

INTERACTIONS = ("potts", "associative", "symmetric", "full")
SEED = st.integers(0, 10**6)


def draw(seed, K, interactions, method, n=5, *, ties=False, density=0.6, **options):
    """An oracle, a graph, weights that it may see, and a labelling."""
    rng = np.random.default_rng(seed)
    oracle = GraphOracle(K, 2, 2, interactions=interactions, method=method, **options)
    x = reference.random_graph(rng, n, density, 2, 2)
    w = rng.integers(-1, 2, oracle.n_features).astype(float) if ties else rng.normal(size=oracle.n_features)
    if oracle.nonnegative is not None:
        w[oracle.nonnegative] = np.abs(w[oracle.nonnegative])
    return oracle, x, w, rng.integers(0, K, n)


def values_of(oracle, x, w):
    """All labellings and their scores."""
    found = reference.labellings(x, oracle.n_labels)
    return found, np.array([reference.joint_feature(x, y, oracle.n_labels, oracle.interactions) @ w for y in found])


def worst(oracle, x, w, y):
    """The greatest margin violation of all labellings."""
    labellings, scores = values_of(oracle, x, w)
    true = reference.joint_feature(x, y, oracle.n_labels, oracle.interactions) @ w
    return max((z != y).sum() + score - true for z, score in zip(labellings, scores, strict=True))


@settings(max_examples=60)
@given(
    seed=SEED,
    K=st.integers(1, 3),
    n=st.integers(0, 5),
    interactions=st.sampled_from(("none", *INTERACTIONS)),
    ties=st.booleans(),
)
def test_junction_trees(seed, K, n, interactions, ties):
    oracle, x, w, y = draw(seed, K, interactions, "junction", n, ties=ties)
    _, scores = values_of(oracle, x, w)
    decoder = oracle.decoder([x])
    assert decoder.values([decoder.decode(w)], w)[0] == pytest.approx(scores.max(), abs=1e-9)
    assert violations(oracle.bind([x], [y]), w)[0] == pytest.approx(worst(oracle, x, w, y), abs=1e-9)
    log_sums, marginals = decoder.marginals(w, scale=0.5)
    p = np.exp(0.5 * scores - log_sums[0])
    assert p.sum() == pytest.approx(1.0)
    labels = np.array(reference.labellings(x, K)).reshape(len(scores), n)
    expected = np.array([[p[labels[:, v] == k].sum() for k in range(K)] for v in range(n)]).reshape(n, K)
    np.testing.assert_allclose(marginals, expected, atol=1e-9)


@settings(max_examples=60)
@given(seed=SEED, n=st.integers(1, 6), interactions=st.sampled_from(("potts", "associative")), ties=st.booleans())
def test_cuts(seed, n, interactions, ties):
    oracle, x, w, y = draw(seed, 2, interactions, "cut", n, ties=ties)
    problem = oracle.bind([x], [y])
    assert problem.methods == ["cut"] and problem.inference == "exact"
    np.testing.assert_array_equal(problem.nonnegative, oracle.nonnegative)
    assert violations(problem, w)[0] == pytest.approx(worst(oracle, x, w, y), abs=1e-9)
    decoder = oracle.decoder([x])
    assert decoder.values([decoder.decode(w)], w)[0] == pytest.approx(values_of(oracle, x, w)[1].max(), abs=1e-9)


def test_large_cuts_are_those_of_junction_trees():
    """A grid whose flow takes many augmentations and adoptions, by both methods."""
    rng = np.random.default_rng(0)
    edges = grid(60, 5)
    for scale in (0.3, 1.0, 3.0):
        x = rng.normal(size=(300, 2)), edges, rng.random((len(edges), 2))
        w = np.array([1.0, -1.0, -0.5, 0.7, scale, 0.5 * scale])
        found = []
        for method in ("cut", "junction", "relaxed"):
            decoder = GraphOracle(2, 2, 2, method=method).decoder([x])
            labels = decoder.decode(w)
            found.append(decoder.values([labels], w)[0])
            assert 0 < labels.sum() < 300
        assert found == pytest.approx([found[0]] * 3)


def grid(m, n):
    at = np.arange(m * n).reshape(m, n)
    pairs = (at[:, :-1], at[:, 1:]), (at[:-1], at[1:])
    return np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in pairs])


@settings(max_examples=50)
@given(seed=SEED, K=st.integers(2, 3), n=st.integers(1, 6), interactions=st.sampled_from(INTERACTIONS))
def test_relaxations(seed, K, n, interactions):
    """The bound is the linear programme's value; marginals are in the polytope, and have the value that a cut has."""
    oracle, x, w, y = draw(seed, K, interactions, "relaxed", n)
    unary, pairs = reference.scores(x, 2.0 * w, K, interactions)
    value = reference.relaxation(unary, x[1], pairs)
    tolerance = {"abs": 1e-9} if K == 2 else {"abs": 4e-5 * (1.0 + abs(value))}
    marginals, bounds = oracle.decoder([x]).relaxed(2.0 * w)
    assert bounds[0] == pytest.approx(value, **tolerance) and bounds[0] >= value - 1e-9 * (1.0 + abs(value))
    np.testing.assert_allclose(marginals.sum(axis=1), 1.0)
    problem = oracle.bind([x], [y])
    assert problem.inference == "relaxed"
    losses = unary / 2.0 + (np.arange(K) != y[:, None])
    true = reference.joint_feature(x, y, K, interactions) @ w
    expected = reference.relaxation(losses, x[1], pairs / 2.0) - true
    found = violations(problem, w)[0]
    tolerance = {"abs": 1e-8} if K == 2 else {"abs": 4e-5 * (1.0 + abs(expected + true))}
    assert found == pytest.approx(expected, **tolerance) and found >= expected - 1e-8
    b, psi = problem.separate(0, w)
    assert b - psi @ w == pytest.approx(expected, **tolerance)
    output = oracle.argmax(x, w, y, "margin")
    if isinstance(output, Marginals):
        nodes, pairs = output
        for side in (0, 1):
            np.testing.assert_allclose(pairs.sum(axis=2 - side), nodes[x[1][:, side]], atol=1e-9)
        assert pairs.min(initial=0.0) >= 0.0
    assert oracle.loss(y, output) == pytest.approx(b)
    feature = oracle.joint_feature(x, y) - oracle.joint_feature(x, output)
    np.testing.assert_allclose(feature, psi, atol=1e-9)


def test_relaxations_are_not_below_the_best():
    """Whether they end with a labelling or not; neither is the cut that comes with the bound."""
    n_above = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        x, y = reference.random_graph(rng, 9, 0.7, 2, 1), rng.integers(0, 3, 9)
        w = np.concatenate([0.3 * rng.normal(size=6), rng.normal(size=9)])
        relaxed, exact = (
            GraphOracle(3, 2, 1, interactions="full", method=method).bind([x], [y])
            for method in ("relaxed", "junction")
        )
        bound, best = violations(relaxed, w)[0], violations(exact, w)[0]
        b, psi = relaxed.separate(0, w)
        assert bound >= best - 1e-9 and bound >= b - psi @ w - 1e-9
        assert b - psi @ w == pytest.approx(bound, rel=1e-3)
        n_above += bound > best + 1e-3
    assert n_above


def test_messages_on_large_graphs():
    """Graphs that are too large for primal-dual steps: a bound, and a labelling that is most often the best one."""
    edges, K = grid(20, 4), 6
    n_met = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x, w = (rng.normal(size=(80, 1)), edges, np.ones((len(edges), 1))), rng.normal(size=K + K * K)
        w[K:] *= (0.25, 1.0)[seed % 2]
        relaxed, exact = (
            GraphOracle(K, 1, interactions="full", method=method).decoder([x]) for method in ("relaxed", "junction")
        )
        best = exact.values([exact.decode(w)], w)[0]
        marginals, bounds = relaxed.relaxed(w)
        found = relaxed.values([marginals.argmax(axis=1)], w)[0]
        whole = relaxed.values([relaxed.decode(w)], w)[0]
        assert set(np.unique(marginals)) == {0.0, 1.0}
        assert found <= whole + 1e-9 <= best + 2e-9 and best <= bounds[0] + 1e-9
        assert bounds[0] == pytest.approx(best, rel=1e-4) and found == pytest.approx(best, rel=0.02)
        n_met += whole == pytest.approx(best, rel=1e-9)
    assert n_met >= 3


def test_a_cycle_that_cannot_agree():
    """Three nodes that want to differ: the relaxation is half each, labellings have one pair alike."""
    x = np.ones((3, 1)), np.array([[0, 1], [1, 2], [0, 2]]), np.ones((3, 1))
    w = np.array([0.0, 0.0, -1.0])
    oracle = GraphOracle(2, 1, method="relaxed")
    decoder = oracle.decoder([x])
    marginals, bounds = decoder.relaxed(w)
    np.testing.assert_array_equal(marginals, np.full((3, 2), 0.5))
    assert bounds[0] == 0.0
    assert decoder.values([decoder.decode(w)], w)[0] == -1.0
    assert isinstance(oracle.argmax(x, w), Marginals)


@settings(max_examples=40)
@given(seed=SEED, K=st.integers(2, 3), n=st.integers(1, 6), interactions=st.sampled_from(INTERACTIONS))
def test_expansion_moves(seed, K, n, interactions):
    """Not above the best; where moves are submodular no move is better than what they end with."""
    oracle, x, w, y = draw(seed, K, interactions, "expansion", n)
    if interactions in ("potts", "associative"):
        w[oracle.first_edge_weight :] = np.abs(w[oracle.first_edge_weight :])
    labellings, scores = values_of(oracle, x, w)
    decoder = oracle.decoder([x])
    labels = decoder.decode(w)
    found = decoder.values([labels], w)[0]
    assert found <= scores.max() + 1e-9
    assert found >= decoder.values([decoder.scores(w).argmax(axis=1)], w)[0] - 1e-9
    if interactions in ("potts", "associative"):
        for z, score in zip(labellings, scores, strict=True):
            if len(set(z[z != labels].tolist())) == 1:
                assert score <= found + 1e-9
    problem = oracle.bind([x], [y])
    assert problem.inference == "approximate" and not problem.has_primal
    assert -1e-12 <= violations(problem, w)[0] <= worst(oracle, x, w, y) + 1e-9


@settings(max_examples=30)
@given(seed=SEED, K=st.integers(2, 3), method=st.sampled_from(("junction", "cut", "relaxed", "expansion")))
def test_labels_that_are_allowed(seed, K, method):
    oracle, x, w, _ = draw(seed, 2 if method == "cut" else K, "potts", method)
    allowed = np.random.default_rng(seed).random((5, oracle.n_labels)) < 0.5
    allowed[np.arange(5), np.arange(5) % oracle.n_labels] = True
    labels = oracle.complete(x, allowed, w)
    assert allowed[np.arange(5), labels].all()
    if method in ("junction", "cut"):
        labellings, scores = values_of(oracle, x, w)
        agree = [allowed[np.arange(5), z].all() for z in labellings]
        assert oracle.decoder([x]).values([labels], w)[0] == pytest.approx(scores[agree].max())


def test_chains_have_the_optimum_of_viterbi():
    """The same joint feature, but that the weights of first labels are those of a feature of first nodes."""
    rng = np.random.default_rng(0)
    K, F = 3, 4
    X = [rng.normal(size=(n, F)).astype(np.float32) for n in (5, 1, 4, 6, 3)]
    Y = [rng.integers(0, K, len(x)).astype(np.int32) for x in X]
    graphs = []
    for x in X:
        rows = np.column_stack([x, np.arange(len(x)) == 0])
        graphs.append((rows, np.column_stack([np.arange(len(x) - 1), np.arange(1, len(x))])))
    solver = LaRank(C=0.3, tol=1e-5, max_iter=2000, random_state=0)
    chain = solver.solve(ViterbiOracle(K, F).bind(X, Y))
    graph = solver.solve(GraphOracle(K, F + 1, interactions="full").bind(graphs, Y))
    assert graph.dual == pytest.approx(chain.dual, rel=1e-4)
    assert graph.primal == pytest.approx(chain.primal, rel=1e-4)


# ---- training ----------------------------------------------------------------------------------------


def images(n=4, m=6, seed=0):
    """Noisy grids of two halves, edges with a contrast."""
    rng, edges = np.random.default_rng(seed), grid(m, m)
    X, Y = [], []
    for _ in range(n):
        y = (np.arange(m * m) % m >= rng.integers(1, m)).astype(np.int32)
        seen = y + rng.normal(size=m * m)
        z = np.column_stack([np.ones(len(edges)), np.exp(-np.abs(seen[edges[:, 0]] - seen[edges[:, 1]]))])
        X.append((np.column_stack([seen, np.ones(m * m)]), edges, z))
        Y.append(y)
    return X, Y


def test_training_by_all_methods():
    """Relaxed objectives lie above exact ones, which cuts and junction trees share; the approximate dual below."""
    X, Y = images()
    solver = CuttingPlane(C=0.1, tol=1e-4, max_iter=500, random_state=0)
    run = {}
    for method, sign in (("cut", True), ("junction", True), ("relaxed", True), ("expansion", True), ("relaxed", False)):
        oracle = GraphOracle(2, 2, 2, method=method, nonnegative=sign, max_table=2**8)
        run[method, sign] = solver.solve(oracle.bind(X, Y))
        assert (run[method, sign].weights[4:] >= 0.0).all() or not sign
    exact = run["cut", True].result()
    assert exact.inference == "exact" and exact.status == "converged"
    assert run["junction", True].primal == pytest.approx(exact.primal, rel=2e-4)
    assert run["relaxed", True].primal == pytest.approx(exact.primal, rel=2e-4)  # submodular: no relaxation is loose
    assert run["relaxed", False].dual <= exact.primal * (1.0 + 1e-6)  # free signs
    approximate = run["expansion", True].result()
    assert np.isnan(approximate.primal) and approximate.dual <= exact.primal * (1.0 + 1e-6)


def test_relaxed_training_is_above_exact_training():
    """Finley and Joachims 2008: the larger set of outputs has the larger objective; both certificates hold."""
    rng, ring = np.random.default_rng(3), np.array([[0, 1], [1, 2], [0, 2]])
    X = [(rng.normal(size=(3, 1)), ring, np.ones((3, 1))) for _ in range(8)]
    Y = [rng.permutation(3) for _ in X]
    found = {}
    for method in ("junction", "relaxed"):
        problem = GraphOracle(3, 1, interactions="full", method=method).bind(X, Y)
        found[method] = LaRank(C=5.0, tol=2e-3, max_iter=500, random_state=0).solve(problem).result()
        assert found[method].dual <= found[method].primal
        assert found[method].inference == problem.inference
        assert found[method].status == "converged"
    assert found["relaxed"].primal >= found["junction"].dual
    assert found["relaxed"].dual > found["junction"].primal * 1.001


def test_what_is_not_known_is_completed():
    """Nodes that are not known get the best labels beside those that are; those are right, by the help of edges."""
    X, Y = images(12, 5)
    rng = np.random.default_rng(0)
    partial = [np.where(rng.random(len(y)) < 0.3, -1, y) for y in Y]
    known, truth = np.concatenate(partial), np.concatenate(Y)
    is_open = known < 0
    for method in ("cut", "relaxed", "junction"):
        oracle = GraphOracle(2, 2, 2, method=method)
        problem = oracle.bind(X, partial)
        with pytest.raises(ValueError, match="graph 0 are known in part: train with LatentSVM"):
            problem.separate(0, np.zeros(problem.n_features))
        run = LatentSVM(LaRank(C=0.1, max_iter=20, random_state=0), rounds=6).solve(problem)
        completed, decoder = run.problem.targets[1], oracle.decoder(X)
        np.testing.assert_array_equal(completed[~is_open], known[~is_open])
        np.testing.assert_array_equal(completed, decoder.decode(run.weights, problem.allowed))
        assert (completed == truth)[is_open].mean() > 0.95
        assert (decoder.scores(run.weights).argmax(axis=1) == truth)[is_open].mean() < 0.75


def test_costs_of_nodes_and_labels():
    oracle, x, w, y = draw(3, 3, "full", "junction", label_costs=[1.0, 2.5, 0.5])
    costs = np.array([1.0, 2.5, 0.5])[y] * np.array([1.0, 0.0, 2.0, 3.0, 0.25])
    graphs = as_graphs([x], 2, 2)
    weighted = Graphs(
        graphs.nodes,
        graphs.node_bounds,
        graphs.edges,
        graphs.edge_bounds,
        graphs.edge_features,
        np.array([1.0, 0.0, 2.0, 3.0, 0.25]),
    )
    labellings, scores = values_of(oracle, x, w)
    true = oracle.joint_feature(x, y) @ w
    expected = max(costs[z != y].sum() + score - true for z, score in zip(labellings, scores, strict=True))
    assert violations(oracle.bind(weighted, y.astype(np.int32)), w)[0] == pytest.approx(expected)


def test_parts_and_rows():
    """Shards and copies of every method; dense rows with an intercept, dense and sparse ones agree."""
    rng = np.random.default_rng(0)
    X = [reference.random_graph(rng, n, 0.7, 3, 2) for n in (4, 0, 1, 5)]
    Y = [rng.integers(0, 3, len(x[0])) for x in X]
    for method in ("auto", "relaxed", "expansion"):
        oracle = GraphOracle(3, 3, 2, interactions="full", method=method)
        w = rng.normal(size=oracle.n_features)
        dense, sparse = oracle.bind(X, Y), oracle.bind([(sp.csr_array(x[0]), *x[1:]) for x in X], Y)
        graphs = as_graphs(X, 3, 2)
        rows = np.concatenate([x[0] for x in X])
        flat = Graphs(
            DenseRows(rows.astype(np.float32)),
            *(getattr(graphs, name) for name in ("node_bounds", "edges", "edge_bounds", "edge_features")),
        )
        expected = violations(dense, w)
        assert isinstance(dense.graphs.nodes, DenseRows) and not isinstance(sparse.graphs.nodes, DenseRows)
        np.testing.assert_allclose(violations(sparse, w), expected, atol=1e-9)
        np.testing.assert_allclose(violations(oracle.bind(flat, np.concatenate(Y)), w), expected, rtol=1e-5, atol=1e-5)
        part = pickle.loads(pickle.dumps(dense.shard(2, 4)))
        np.testing.assert_array_equal(violations(part, w), expected[2:])
        some, nodes = dense.graphs.take([3, 0])
        np.testing.assert_allclose(violations(oracle.bind(some, np.concatenate(Y)[nodes]), w), expected[[3, 0]])
        decoder = oracle.decoder(graphs)
        labels = decoder.decode(w)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(decoder)).decode(w), labels)


def test_weights_of_nodes_are_sliced():
    graphs = replace(
        GraphOracle(2, 1).as_graphs([(np.ones((n, 1)), []) for n in (2, 3, 1)]), node_weights=np.arange(6.0)
    )
    assert graphs[1:3].node_weights.tolist() == [2.0, 3.0, 4.0, 5.0]
    assert graphs.take([2, 0])[0].node_weights.tolist() == [5.0, 0.0, 1.0]


def test_an_intercept_is_a_feature():
    rng = np.random.default_rng(0)
    rows, edges = rng.normal(size=(4, 2)), np.array([[0, 1], [2, 3]])
    with_ones = as_graphs([(np.column_stack([rows, np.ones(4)]), edges)], 3)
    implied = replace(with_ones, nodes=DenseRows(rows, True))
    oracle = GraphOracle(2, 3)
    w = rng.normal(size=oracle.n_features)
    y = np.array([0, 1, 1, 0], dtype=np.int32)
    (b, psi), (other, other_psi) = (oracle.bind(graphs, y).separate(0, w) for graphs in (with_ones, implied))
    assert b == other
    np.testing.assert_allclose(psi, other_psi)


# ---- which method ------------------------------------------------------------------------------------


def test_what_applies():
    path, ring, clique = (
        (np.zeros((8, 1)), np.array(e))
        for e in (
            [[k, k + 1] for k in range(7)],
            [[k, (k + 1) % 8] for k in range(8)],
            [[a, b] for a in range(8) for b in range(a)],
        )
    )
    X = [path, ring, clique]
    assert GraphOracle(3, 1).methods(X) == ["tree", "junction", "junction"]
    assert GraphOracle(3, 1, max_table=3**4).methods(X) == ["tree", "junction", "relaxed"]
    assert GraphOracle(3, 1, max_table=3).methods(X) == ["tree", "relaxed", "relaxed"]
    assert GraphOracle(2, 1, nonnegative=True).methods(X) == ["tree", "cut", "cut"]
    assert GraphOracle(2, 1, method="cut").methods(X) == ["cut"] * 3
    assert GraphOracle(3, 1, interactions="none", method="relaxed").methods(X) == ["tree"] * 3
    with pytest.raises(ValueError, match=r"graph 2 of 8 nodes and 28 edges has no junction tree .* max_table = 81 "):
        GraphOracle(3, 1, method="junction", max_table=3**4).methods(X)
    y = np.zeros(24, dtype=np.int32)
    assert GraphOracle(3, 1, max_table=3**4).bind(X, y).inference == "relaxed"
    assert "expectations" not in GraphOracle(3, 1, max_table=3**4).bind(X, y).offers
    assert "expectations" in GraphOracle(3, 1, loss="log").bind(X, y, rescaling=None).offers
    with pytest.raises(ValueError, match=r"graph 2 .* has no junction tree"):
        GraphOracle(3, 1, max_table=3**4).decoder(X).marginals(np.zeros(4))


@settings(max_examples=30)
@given(seed=SEED, n=st.integers(0, 9), density=st.sampled_from((0.0, 0.3, 0.7, 1.0)))
def test_elimination(seed, n, density):
    """Every edge lies in a clique, and what a clique sends lies in its receiver's."""
    _, edges, _ = reference.random_graph(np.random.default_rng(seed), n, density, 1, 1)
    edges = edges.astype(np.int32)
    tree = eliminate(n, edges, n)
    place = np.argsort(tree.order)
    assert sorted(tree.order) == list(range(n))
    separators = [tree.separators[a:b].tolist() for a, b in zip(tree.bounds, tree.bounds[1:], strict=False)]
    seen = set()
    for p, s in enumerate(separators):
        assert s == sorted(s) and (not s or s[0] > p)
        for j, q in enumerate(s):
            number = tree.edges[tree.bounds[p] + j]
            if number:
                ends = place[edges[abs(number) - 1]].tolist()
                assert ends == ([p, q] if number > 0 else [q, p])
                seen.add(abs(number) - 1)
            slot = tree.slots[tree.bounds[p] + j]
            assert [s[0], *separators[s[0]]][slot] == q
    assert seen == set(range(len(edges)))
    assert is_forest(n, edges) == (tree.width <= 1)
    assert eliminate(n, edges, tree.width - 1) is None or tree.width > 1 or n == 0
    if density == 1.0 and n:
        assert tree.width == n - 1


@settings(max_examples=30)
@given(seed=SEED, density=st.sampled_from((0.1, 0.2, 0.4)))
def test_the_order_of_elimination(seed, density):
    """The node that adds the fewest edges, of equal ones the first; none if all have more neighbours than may be."""
    n = 14
    _, edges, _ = reference.random_graph(np.random.default_rng(seed), n, density, 1, 1)
    left = {v: {int(a + b - v) for a, b in edges if v in (a, b)} for v in range(n)}
    order, width = [], 0
    while left:
        adds = {v: sum(b not in left[a] for a in near for b in near if a < b) for v, near in left.items()}
        v = min(left, key=lambda u: (adds[u] if len(left[u]) > 1 else len(left[u]) - 1, u))
        near = left.pop(v)
        for u in near:
            left[u] = (left[u] | near) - {u, v}
        order.append(v)
        width = max(width, len(near))
    edges = edges.astype(np.int32)
    assert eliminate(n, edges, n).order.tolist() == order
    assert width == 0 or eliminate(n, edges, width).width <= width


# ---- many nodes, Ctrl-C, bad input -----------------------------------------------------------------------


def test_one_large_graph():
    n = 120
    edges, rng = grid(n, n), np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=n * n), np.ones(n * n)])
    y = (np.arange(n * n) % n < n // 2).astype(np.int32)
    rows[:, 0] += 1.5 * y
    found = []
    for method in ("cut", "relaxed", "expansion"):
        oracle = GraphOracle(2, 2, method=method)
        problem = oracle.bind([(rows, edges)], [y])
        w = np.array([-1.0, 1.0, 0.7, -0.7, 0.8])
        decoder = oracle.decoder(problem.graphs)
        labels = decoder.decode(w)
        assert (labels == y).mean() > 0.95
        found.append((decoder.values([labels], w)[0], violations(problem, w)[0]))
    np.testing.assert_allclose(found, [found[0]] * 3)
    path = np.column_stack([np.arange(n * n - 1), np.arange(1, n * n)])
    assert GraphOracle(2, 2).methods([(rows, path)]) == ["tree"]


class Ring(Exception):
    pass


def alarm(at):
    """Raises at look number `at`."""
    looks = iter(range(1, 10**9))

    def ring():
        if next(looks) == at:
            raise Ring

    return ring


@pytest.fixture
def look_often():
    yield
    look_every()


@pytest.mark.parametrize(
    ("method", "K"), [("junction", 2), ("cut", 2), ("relaxed", 2), ("expansion", 3), ("relaxed", 3)]
)
def test_inference_is_interrupted(look_often, method, K):
    """Afterwards the problem finds what a fresh one does."""
    rng = np.random.default_rng(0)
    edges = grid(40, 4)
    x = rng.normal(size=(160, 2)), edges, np.ones((len(edges), 1))
    y = rng.integers(0, K, 160)
    oracle = GraphOracle(K, 2, 1, interactions="potts" if K == 2 else "full", method=method)
    w = np.abs(rng.normal(size=oracle.n_features))
    problem = oracle.bind([x], [y])
    expected = violations(oracle.bind([x], [y]), w)
    for at in (1, 80, 161, 163):
        look_every(1, alarm(at))
        try:
            violations(problem, w)
        except Ring:
            pass
        else:
            assert at > 161
        look_every()
        np.testing.assert_array_equal(violations(problem, w), expected)


def test_empty_graphs():
    oracle = GraphOracle(2, 1)
    x = np.zeros((0, 1)), np.zeros((0, 2), dtype=int)
    problem = oracle.bind([x, x], [np.zeros(0, int)] * 2)
    assert problem.methods == ["tree", "tree"] and violations(problem, np.ones(3)).tolist() == [0.0, 0.0]
    assert oracle.decoder([x]).decode(np.ones(3)).shape == (0,)
    assert oracle.decoder([]).decode(np.ones(3)).shape == (0,)
    assert oracle.expect(x, np.ones(3))[0] == 0.0
    run = Perceptron(max_iter=1).solve(oracle.bind([x], [np.zeros(0, int)], rescaling=None))
    assert not run.weights.any()


ROWS = np.zeros((3, 1))


@pytest.mark.parametrize(
    ("x", "said"),
    [
        ((ROWS, [[0, 1], [1, 1]]), "graph 1: edge 1 joins node 1 with itself"),
        ((ROWS, [[0, 1], [1, 2], [1, 0]]), "graph 1: edge 2 joins nodes 0 and 1, as edge 0 does"),
        ((ROWS, [[0, 3]]), "graph 1: edge 0 joins nodes 0 and 3, expected 0 .. 2"),
        ((ROWS, [[0, -1]]), "graph 1: edges join nodes -1 to 0"),
        ((ROWS, [[0.0, 1.0]]), "graph 1: edges must be pairs of node indices, got float64 (1, 2)"),
        ((ROWS, [0, 1]), "graph 1: edges must be pairs"),
        ((ROWS, [[0, 1]], [[np.nan]]), "graph 1: the features of edge 0 hold NaN or infinity"),
        ((ROWS, [[0, 1]], [[1.0], [2.0]]), "graph 1: 1 edges have features of shape (2, 1)"),
        ((ROWS, [[0, 1]], [[1.0, 2.0]]), "graph 1: edges have 2 features, those of graph 0 1"),
        ((np.zeros((3, 2)), [[0, 1]]), "graph 1: nodes have features of shape (3, 2), expected 1 columns"),
        ((np.full((3, 1), np.inf), [[0, 1]]), "NaN or infinity"),
        (ROWS, "graph 1: expected (rows, edges) or (rows, edges, edge_features), got ndarray"),
    ],
)
def test_graphs_that_are_none(x, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        GraphOracle(2, 1).bind([(ROWS, [[0, 1]]), x], [np.zeros(3, int)] * 2)


@pytest.mark.parametrize(
    ("Y", "said"),
    [
        ([[0, 1, 2], [0, 0, 0]], "graph 0: node 2 has the label 2, expected 0 .. 1, or -1: not known"),
        ([[0, 1, 1], [0, 0]], "graph 1 has 3 nodes, and labels of shape (2,)"),
        ([[0, 1, 1]], "X has 2 graphs, y has 1"),
        ([[0.0, 1.0, 1.0]] * 2, "labels are of type float64, expected integers"),
        (
            [[0, 1, 1], np.array([[True, True], [False, False], [True, False]])],
            "graph 1, node 1: no label may stand there",
        ),
    ],
)
def test_labels_that_are_none(Y, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        GraphOracle(2, 1).bind([(ROWS, [[0, 1]])] * 2, Y)


def test_weights_and_parameters_that_are_none():
    for options, said in (
        ({"n_labels": 0}, "'n_labels' parameter of GraphOracle must be an int in the range [1, 4096]"),
        ({"interactions": "ising"}, "'interactions' parameter of GraphOracle must be 'none' or 'potts'"),
        ({"method": "cut", "n_labels": 3}, "method='cut' needs two labels"),
        ({"method": "cut", "nonnegative": False}, "method='cut' needs two labels"),
        ({"interactions": "full", "nonnegative": True}, "nonnegative=True needs"),
        ({"label_costs": [1.0, 0.0]}, "'label_costs' parameter of GraphOracle must be 2 positive finite numbers"),
        ({"n_node_features": 2**30}, "more than 2**31"),
        ({"n_node_features": 2**31}, "'n_node_features' parameter of GraphOracle must be an int in the range [1, 2"),
    ):
        with pytest.raises(ValueError, match=re.escape(said)):
            GraphOracle(**{"n_labels": 2, "n_node_features": 1} | options)
    with pytest.raises(ValueError, match=r"Got n_labels=3, interactions='potts'$"):  # names what was given alone
        GraphOracle(3, 1, method="cut")
    cut = GraphOracle(2, 1, method="cut")
    with pytest.raises(ValueError, match="graph 0: edge 0 has a feature -1; with nonnegative weights"):
        cut.bind([(ROWS, [[0, 1]], [[-1.0]])], [[0, 1, 0]])
    ring = [(ROWS, [[0, 1], [1, 2], [0, 2]])]
    with pytest.raises(ValueError, match="weights of edges below 0"):
        cut.decoder(ring).decode([0.0, 0.0, -1.0])
    for w in ([0.0, np.nan, 1.0], [0.0, 1.0, np.inf]):
        with pytest.raises(ValueError, match="graph 0: the scores overflow, or w has values that are not finite"):
            GraphOracle(2, 1).decoder([(ROWS + 1.0, [[0, 1]])]).decode(w)
        with pytest.raises(ValueError, match="example 0: its scores overflow"):
            violations(GraphOracle(2, 1).bind([(ROWS + 1.0, [[0, 1]])], [[0, 1, 0]]), np.array(w))
    weighted = replace(as_graphs(ring, 1), node_weights=np.array([1.0, -1.0, 1.0]))
    with pytest.raises(ValueError, match="graph 0: the weight of node 1 must be finite and >= 0"):
        weighted.check()
