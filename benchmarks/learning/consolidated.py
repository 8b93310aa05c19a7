"""Answers one by one, consolidated, and a fit on everything: held-out scores."""

from __future__ import annotations

from common.report import Table, notes
from learning.data import tasks
from structsvm.tasks import DependencyParser

ANSWERS = (100, 500, 2000)
COLUMNS = {
    "task": ("task", ""),
    "answers": ("answers", "d"),
    "taught": ("one by one", ".2f"),
    "loaded": ("copy, consolidated", ".2f"),
    "consolidated": ("consolidated", ".2f"),
    "fitted": ("fit on everything", ".2f"),
    "error": ("standard error", ".2f"),
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
        for n in sizes:
            if n <= len(task.y):
                made.rows.append(row(task, n))
                yield made


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
    return {
        "task": task.name,
        "answers": n,
        "taught": taught,
        "loaded": score(other.consolidate()) if grows else float("nan"),
        "consolidated": score(first.consolidate()),
        "fitted": fitted,
        "error": 100.0 * (share * (1.0 - share) / len(task.y_test)) ** 0.5,
    }
