"""Active against random order: the share of the labels that is needed for 95 % of the full score."""

from __future__ import annotations

import numpy as np

from common.report import Table, notes
from learning.data import asked, growing, size_of, tasks

SEEDS, SHARE = 5, 0.95
COLUMNS = {
    "task": ("task", ""),
    "full": ("full score", ".2f"),
    "random": ("labels %, random", ".1f"),
    "active": ("labels %, active", ".1f"),
    "random_error": ("error, random", ".1f"),
    "active_error": ("error, active", ".1f"),
}


def run(options):
    made = Table(
        "Labels needed for 95 % of the score with all labels of the pool",
        COLUMNS,
        notes=notes(
            f"""
            active: the smallest margin of the two best outputs; means of {SEEDS} seeds with their standard errors

            measured after numbers of answers that grow by a quarter, with a fit on all answers each time

            100 %: not reached before the pool was used up
            """
        ),
    )
    yield made
    for task in tasks(options):
        made.rows.append(row(task, 2 if options.quick else SEEDS))
        yield made


def row(task, n_seeds):
    full = task.score(task.y_test, [*task.estimator(0).fit(task.X, task.y).predict(task.X_test)])
    found = {"task": task.name, "full": full}
    for name, strategy in (("random", "random"), ("active", "margin")):
        shares = [needed(task, seed, full, strategy=strategy) for seed in range(n_seeds)]
        found[name] = float(np.mean(shares))
        found[f"{name}_error"] = float(np.std(shares, ddof=1) / np.sqrt(n_seeds))
    return found


def needed(task, seed, full, **query):
    """The share of labels in percent at which the score reaches its share of the full one."""
    total = sum(map(size_of, task.y))
    for n_labels, score in asked(task, seed, growing(len(task.y)), **query):
        if score >= SHARE * full:
            return 100.0 * n_labels / total
    return 100.0
