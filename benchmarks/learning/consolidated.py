"""Answers one by one, consolidated, and a fit on everything: held-out scores."""

from __future__ import annotations

from dataclasses import replace

from common.report import Table, notes, verdict
from learning.data import drawn, tasks
from structsvm.datasets import fetch_ud_english_ewt
from structsvm.tasks import DependencyParser

ANSWERS = (100, 500, 2000)
TARGET = "consolidated within a standard error of a fit on everything"
COLUMNS = {
    "task": ("task", ""),
    "answers": ("answers", "d"),
    "taught": ("one by one", ".2f"),
    "loaded": ("copy, consolidated", ".2f"),
    "consolidated": ("consolidated", ".2f"),
    "fitted": ("fit on everything", ".2f"),
    "error": ("standard error", ".2f"),
    "apart": ("consolidated less fit, standard errors", "+.2f"),
    "apart_loaded": ("copy less fit, standard errors", "+.2f"),
}


def run(options):
    made = Table(
        "Scores after answers one by one, after consolidate, and of a fit on everything",
        COLUMNS,
        notes=notes(
            """
            in random order, after a fit on the first 20; the copy has the weights of that fit alone, and the answers;
            a parser's copy has no room for new labels of arcs

            standard error: of the fit's score, as if it were a share of independent outputs
            """
        ),
    )
    yield made
    sizes = (30, 40) if options.quick else ANSWERS
    for task in tasks(options, pool=max(sizes)):
        own = with_trees(task, max(sizes)) if isinstance(task.estimator(0), DependencyParser) else task
        for n in sizes:
            made.rows.append(row(own, n))
            yield made
    made.notes += verdicts(made.rows)
    yield made


def with_trees(task, n):
    """The task with a pool of n trees; other parts have fewer, since a fit on them takes longest."""
    train = [tree for tree in fetch_ud_english_ewt().train if len(tree.arcs) <= 25]
    X, _ = drawn(train, train, n)
    return replace(task, X=X, y=[tree.arcs for tree in X])


def verdicts(rows):
    """The target, and how often the copies meet it, as notes."""
    n_met = sum(abs(row["apart"]) <= 1.0 for row in rows)
    copies = [row["apart_loaded"] for row in rows if row["apart_loaded"] == row["apart_loaded"]]
    n_copies = sum(abs(apart) <= 1.0 for apart in copies)
    said = verdict(TARGET, f"{n_met} of {len(rows)} rows", n_met == len(rows))
    return [said, f"copies, for which nothing is promised, within it: {n_copies} of {len(copies)}"]


def row(task, n):
    def score(model):
        return task.score(task.y_test, [*model.predict(task.X_test)])

    first = task.estimator(0).fit(task.X[:20], task.y[:20])
    other = task.estimator(0).fit(task.X[:20], task.y[:20])
    other.__setstate__(other.__getstate__() | {"_given": None})
    grows = not isinstance(other, DependencyParser)
    for i in range(20, n):
        first.teach(task.X[i], task.y[i])
        if grows:
            other.teach(task.X[i], task.y[i])
    taught = score(first)
    fitted = score(task.estimator(0).fit(task.X[:n], task.y[:n]))
    share = fitted / 100.0
    error = max(100.0 * (share * (1.0 - share) / len(task.y_test)) ** 0.5, 0.01)
    loaded = score(other.consolidate()) if grows else float("nan")
    consolidated = score(first.consolidate())
    return {
        "task": task.name,
        "answers": n,
        "taught": taught,
        "loaded": loaded,
        "consolidated": consolidated,
        "fitted": fitted,
        "error": error,
        "apart": (consolidated - fitted) / error,
        "apart_loaded": (loaded - fitted) / error,
    }
