"""Labels of nodes: exact, relaxed and approximate inference on graphs and grids, beside machines that see no edges."""

from __future__ import annotations

import os
import time
import warnings

import numpy as np
from scipy.ndimage import uniform_filter
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from common.report import Table, notes
from structsvm import CuttingPlane, LaRank
from structsvm.datasets import fetch_ocr_letters
from structsvm.features.dense import DenseRows
from structsvm.oracles.graph import GraphOracle
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.structures.graphs.data import Graphs

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
    solver = CuttingPlane(C=C, tol=0.01, max_iter=passes, random_state=0)
    return solver.solve(oracle.bind(graphs, labels))


def accuracy(oracle, run, graphs, labels):
    return 100.0 * (oracle.decoder(graphs).decode(run.weights) == labels).mean()


def measured(data, name, oracle, train, test, grid_of_C, passes):
    """C by the last quarter of the training graphs; then trained on all of them."""
    graphs, labels = train
    cut = 3 * len(graphs) // 4
    first = graphs[:cut], labels[: graphs.node_bounds[cut]]
    last = graphs[cut:], labels[graphs.node_bounds[cut] :]
    C = max(grid_of_C, key=lambda C: accuracy(oracle, trained(oracle, *first, C, passes), *last))
    begin = time.process_time()
    run = trained(oracle, graphs, labels, C, passes)
    cpu, result = time.process_time() - begin, run.result()
    return {
        "data": data,
        "method": name,
        "C": C,
        "primal": result.primal,
        "dual": result.dual,
        "gap": 100.0 * result.gap / result.primal,
        "calls": result.n_argmax,
        "cpu": cpu,
        "call": 1000.0 * cpu / result.n_argmax,
        "accuracy": accuracy(oracle, run, *test),
    }


def machines(data, train, test):
    """What sees no edges; C of the linear ones by the last quarter of the training graphs, too."""
    graphs, labels = train
    cut = graphs.node_bounds[3 * len(graphs) // 4]
    X, X_test = graphs.nodes.values, test[0].nodes.values
    step = max(len(X) // 100_000, 1)
    for name, options in (
        ("LogisticRegression", [LogisticRegression(C=C, max_iter=200) for C in (0.01, 1.0, 100.0)]),
        ("LinearSVC", [LinearSVC(C=C, dual=False) for C in (0.01, 1.0)]),
        ("RandomForest", [RandomForestClassifier(100, min_samples_leaf=5, random_state=0)]),
    ):
        options = [make_pipeline(StandardScaler(), machine) for machine in options]
        begin = time.process_time()
        if len(options) > 1:
            options.sort(key=lambda machine: machine.fit(X[:cut:step], labels[:cut:step]).score(X[cut:], labels[cut:]))
        begin = time.process_time()
        machine = options[-1].fit(X[::step], labels[::step])
        cpu = time.process_time() - begin
        yield {
            "data": data,
            "method": name,
            "C": machine[-1].get_params().get("C", np.nan),
            **dict.fromkeys(("primal", "dual", "gap", "call"), np.nan),
            "calls": 0,
            "cpu": cpu,
            "accuracy": 100.0 * machine.score(X_test, test[1]),
        }


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


def run(options):
    warnings.simplefilter("ignore", ConvergenceWarning)
    yield letters(options.quick)
    table = Table("Labels of nodes", COLUMNS, notes=notes(__doc__.split("\n")[0] + NOTES))
    passes = 10 if options.quick else 40
    several = {"method": "junction"}, {"method": "relaxed"}, {"method": "expansion"}
    train, test = strips()
    for settings in ({"interactions": "none"}, *({"interactions": "full"} | one for one in several)):
        oracle = GraphOracle(4, 4, 1, **settings)
        name = settings.get("method", "no edges").replace("junction", "junction trees").replace("expansion", METHODS_OF)
        table.rows.append(measured("strips of 4 labels", name, oracle, train, test, (0.01, 0.1, 1.0), passes))
        yield table
    table.rows += machines("strips of 4 labels", train, test)
    for data, load in (("superpixels", superpixels), ("64 x 64 pixels", pixels)):
        train, test = load()
        if options.quick:
            some = train[0][:20]
            train = some, train[1][: some.n_nodes]
        for name, settings in METHODS.items():
            oracle = GraphOracle(2, train[0].nodes.n_features, train[0].edge_features.shape[1], **settings)
            grid_of_C = (1e-3, 1e-2, 1e-1) if data == "superpixels" else (1e-3, 1e-2)
            table.rows.append(measured(data, name, oracle, train, test, grid_of_C, passes))
            yield table
        table.rows += machines(data, train, test)
        yield table


NOTES = """

CuttingPlane to a gap of 1 % or 40 passes; C chosen by the nodes of the last quarter of the training graphs. All
methods have the same features of nodes and edges, and "potts" weights but for the strips, whose pairs of labels have
one each. Primal and dual are those of the problem with the inference that is named: a relaxation's lie above the
exact ones, of expansion moves there is no primal. Machines without edges see the same features of nodes,
standardised; of pixels every eighth.
"""
METHODS_OF = "expansion moves"
