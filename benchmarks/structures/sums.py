"""The log loss of every structure with sums: the gap that the certificate prints, beside the true one."""

from __future__ import annotations

from unittest import mock

import numpy as np
from scipy.optimize import minimize

from common.report import Table, notes
from structsvm.datasets import make_dependency_trees, make_orderings, make_sequences, make_treebank
from structsvm.solvers import ConditionalLikelihood
from structsvm.tasks import (
    AmbiguousClassifier,
    ArcFeatures,
    DependencyParser,
    GrammarParser,
    GraphLabeler,
    ItemOrderer,
    SequenceLabeler,
    TaxonomyClassifier,
)

COLUMNS = {
    "structure": ("structure", ""),
    "C": ("C", ".3g"),
    "primal": ("primal", ".6g"),
    "optimum": ("optimum", ".6g"),
    "gap": ("gap printed %", ".3f"),
    "true": ("true gap %", ".3f"),
    "passes": ("passes", "d"),
    "rounds": ("rounds and passes", ".1f"),
}
VALUES = ("auto", 0.01, 1.0, 100.0)
TIGHT = {"ftol": 1e-14, "gtol": 1e-10, "maxiter": 2000, "maxfun": 4000}
NOTES = """
    true gap: (primal - optimum) / primal, with the optimum of scipy's L-BFGS-B on the sums of `expect` in float64,
    which begins at the weights returned; of outputs known in part ("half known") the nearest minimum, as the objective
    is not convex, while the gap printed is that of the convex problem with what agrees as it is at the end

    C = "auto" has a row with the value that was chosen, the first of each structure; no other parameter is set

    rounds and passes: expectations computed, by the number of examples
"""


def run(options):
    """Yield the table, again after each structure."""
    table = Table("The log loss as it comes: printed and true gaps", COLUMNS, notes=notes(NOTES))
    for name, (make, X, y) in cases(20 if options.quick else 100).items():
        for C in VALUES:
            table.rows.append({"structure": name} | measured(make, X, y, C))
        yield table


def cases(n):
    """Simulated examples of each structure: name -> (estimator of C, X, y)."""
    rng = np.random.default_rng(0)
    words, tags = make_sequences(n, n_labels=5, n_words=200, random_state=0)
    classes = rng.integers(6, size=4 * n)
    rows = rng.normal(size=(4 * n, 20)) + rng.normal(size=(6, 20))[classes]
    tokens, labels = (
        [rows[8 * k : 8 * k + 8] for k in range(n // 2)],
        [classes[8 * k : 8 * k + 8] for k in range(n // 2)],
    )
    graphs = [(x, [(i, i + 1) for i in range(7)] + [(0, 7)]) for x in tokens]
    sentences = make_dependency_trees(n, max_length=12, crossing=0.0, random_state=0)
    arcs = [tree.arcs for tree in sentences]
    items, orders = make_orderings(n, 3, 2, max_items=6, random_state=0)
    features = ArcFeatures(arc_bits=12)

    def half(y):
        return [None if rng.random() < 0.5 else label for label in y]

    def with_others(y):
        return [{int(label), *rng.integers(6, size=2).tolist()} for label in y]

    def of(kind, **params):
        return lambda C: kind(C=C, loss="log", random_state=0, **params)

    bags = with_others(classes)
    arcs_known_half = [[(None if rng.random() < 0.5 else head, label) for head, label in tree] for tree in arcs]
    return {
        "chains of words": (of(SequenceLabeler), words, tags),
        "chains of words, half known": (of(SequenceLabeler), words, [half(y) for y in tags]),
        "chains of dense rows": (of(SequenceLabeler), tokens, labels),
        "chains of dense rows, half known": (of(SequenceLabeler), tokens, [half(y) for y in labels]),
        "classes": (of(TaxonomyClassifier), rows, classes),
        "classes, half known": (of(AmbiguousClassifier), rows, bags),
        "graphs": (of(GraphLabeler), graphs, labels),
        "graphs, half known": (of(GraphLabeler), graphs, [half(y) for y in labels]),
        "trees": (of(GrammarParser), make_treebank(n, max_length=12, random_state=0), None),
        "projective dependencies": (of(DependencyParser, projective=True, features=features), sentences, arcs),
        "projective dependencies, half known": (
            of(DependencyParser, projective=True, features=features),
            sentences,
            arcs_known_half,
        ),
        "dependencies": (of(DependencyParser, projective=False, features=features), sentences, arcs),
        "orders": (of(ItemOrderer), items, orders),
        "orders, half known": (of(ItemOrderer), items, [[(y[0], y[-1])] for y in orders]),
    }


def measured(make, X, y, C):
    """Train as it comes; the row of what is printed and what is true."""
    runs, finish = [], ConditionalLikelihood.finish

    def kept(solver, run, monitor):
        runs.append(run)
        finish(solver, run, monitor)

    with mock.patch.object(ConditionalLikelihood, "finish", kept):
        model = make(C).fit(X, y)
    run, result = runs[-1], model.result_
    optimum = least(run)
    return {
        "C": model.C_,
        "primal": result.primal,
        "optimum": optimum,
        "gap": 100.0 * result.relative_gap,
        "true": 100.0 * (result.primal - optimum) / result.primal,
        "passes": result.n_iter,
        "rounds": result.n_argmax / run.problem.n_samples,
    }


def least(run):
    """The objective at the minimum that an independent solver finds from the weights of a run."""
    problem, base = run.problem, run.state.base
    base = np.zeros(problem.n_features) if base is None else base

    def objective(w):
        value, gradient = 0.5 * (w - base) @ (w - base), w - base
        weights = w.astype(problem.weight_dtype)
        for i, C in enumerate(run.C):
            loss, _, own = problem.expect(i, weights)
            value += C * loss
            gradient = gradient + C * own
        return value, gradient

    start = run.weights.astype(np.float64)
    return minimize(objective, start, jac=True, method="L-BFGS-B", options=TIGHT).fun
