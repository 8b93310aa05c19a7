"""Answers in part: whole sentences against the least certain half of their words."""

from __future__ import annotations

import numpy as np

from common.report import Table, notes
from learning.data import asked, size_of, tasks

SEEDS, ANSWERS, EVERY = 5, 200, 100
COLUMNS = {
    "task": ("task", ""),
    "answer": ("answers", ""),
    "labels": ("labels", ".0f"),
    "score": ("score", ".2f"),
    "error": ("error", ".2f"),
}


def whole(estimator, x, y):
    """All labels."""
    return y, size_of(y)


def doubtful(estimator, x, y):
    """The labels of the half of the words that the model is least sure of; all before there is a model."""
    if not estimator.__sklearn_is_fitted__():
        return whole(estimator, x, y)
    sure = estimator.predict_marginals([x])[0].max(axis=1)
    chosen = {*np.argsort(sure, kind="stable")[: -(-len(y) // 2)].tolist()}
    return [label if t in chosen else None for t, label in enumerate(y)], len(chosen)


def run(options):
    text = f"means of {SEEDS} seeds with the standard errors of scores; sentences by the smallest margin"
    made = Table("Scores after whole answers, and after answers in part", COLUMNS, notes=notes(text))
    yield made
    n_answers, every, n_seeds = (20, 10, 2) if options.quick else (ANSWERS, EVERY, SEEDS)
    for task in tasks(options, {"Spanish entities, F1", "addresses, accuracy of words"}):
        for name, answer in (("whole", whole), ("least certain half", doubtful)):
            curves = [[*asked(task, seed, range(every, n_answers + 1, every), answer)] for seed in range(n_seeds)]
            for points in zip(*curves, strict=True):
                labels, scores = np.array(points).T
                error = scores.std(ddof=1) / np.sqrt(n_seeds)
                made.rows.append(
                    {"task": task.name, "answer": name, "labels": labels.mean(), "score": scores.mean(), "error": error}
                )
            yield made
