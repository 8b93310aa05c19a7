"""The treebanks, and how a parser is scored."""

from __future__ import annotations

import numpy as np

from common.measure import Clock
from structsvm.datasets import fetch_ud_dutch, fetch_ud_english_ewt
from structsvm.metrics import dependency_scores

TREEBANKS = {"UD English EWT": fetch_ud_english_ewt, "UD Dutch": fetch_ud_dutch}
COLUMNS = {
    "parser": ("parser", ""),
    "sentences": ("sentences", "d"),
    "cpu": ("training, CPU s", ".1f"),
    "uas": ("UAS %", ".2f"),
    "las": ("LAS %", ".2f"),
    "clas": ("CLAS %", ".2f"),
    "rate": ("sentences/s", ".0f"),
}


def some(trees, n, seed=0):
    """n of the trees, drawn; all of them if there are no more."""
    if n >= len(trees):
        return list(trees)
    return [trees[i] for i in np.random.default_rng(seed).permutation(len(trees))[:n]]


def measured(name, train, test, fit):
    """A row: ``fit(train)`` returns what predicts a list of arcs per tree."""
    with Clock() as training:
        predict = fit(train)
    with Clock() as parsing:
        arcs = predict(test)
    scores = dependency_scores(test, arcs)
    return {
        "parser": name,
        "sentences": len(train),
        "cpu": training.cpu,
        "uas": 100 * scores.uas,
        "las": 100 * scores.las,
        "clas": 100 * scores.clas,
        "rate": len(test) / parsing.cpu,
    }
