"""Strategies compared: scores after as many labels."""

from __future__ import annotations

import numpy as np

from common.report import Table, notes
from learning.data import asked, tasks

SEEDS, ANSWERS, EVERY = 5, 200, 100
WAYS = {
    "random": {"strategy": "random"},
    "margin": {"strategy": "margin"},
    "confidence": {"strategy": "confidence"},
    "entropy": {"strategy": "entropy"},
    "span": {"strategy": "span"},
    "risk": {"strategy": "risk"},
    "entropy per word": {"strategy": "entropy", "cost": 1.0},
    "margin, ten at a time": {"strategy": "margin", "portion": 10},
    "margin, ten unlike ones": {"strategy": "margin", "portion": 10, "diversity": 0.3},
}
COLUMNS = {
    "task": ("task", ""),
    "way": ("asked by", ""),
    "answers": ("answers", "d"),
    "labels": ("labels", ".0f"),
    "score": ("score", ".2f"),
    "error": ("error", ".2f"),
}


def run(options):
    text = f"means of {SEEDS} seeds with the standard errors of scores; the same pools and test sets as for the order"
    made = Table("Scores after the answers that strategies ask for", COLUMNS, notes=notes(text))
    yield made
    names = {"Spanish entities, F1", "addresses, accuracy of words"}
    n_answers, every, n_seeds = (20, 10, 2) if options.quick else (ANSWERS, EVERY, SEEDS)
    for task in tasks(options, names):
        for way, query in WAYS.items():
            curves = [[*asked(task, seed, range(every, n_answers + 1, every), **query)] for seed in range(n_seeds)]
            for step, points in enumerate(zip(*curves, strict=True), start=1):
                labels, scores = np.array(points).T
                made.rows.append(
                    {
                        "task": task.name,
                        "way": way,
                        "answers": step * every,
                        "labels": labels.mean(),
                        "score": scores.mean(),
                        "error": scores.std(ddof=1) / np.sqrt(n_seeds),
                    }
                )
            yield made
