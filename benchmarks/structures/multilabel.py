"""Label sets: weights of pairs beside chains and machines per label; Yeast has 1500 genes to train on, 917 to test."""

from __future__ import annotations

import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain
from sklearn.svm import LinearSVC

from common.report import Table, notes
from structsvm.datasets import fetch_multilabel_yeast, make_label_sets
from structsvm.tasks import MultilabelClassifier

GRID = tuple(10.0**k for k in range(-2, 3))
COLUMNS = {
    "machine": ("machine", ""),
    "chosen": ("chosen by", ""),
    "inference": ("inference", ""),
    "C": ("C", ".3g"),
    "hamming": ("Hamming loss %", ".2f"),
    "subset": ("whole sets %", ".2f"),
    "f1": ("F1 of sets %", ".2f"),
    "gap": ("gap %", ".2f"),
    "cpu": ("CPU s with the choice", ".1f"),
}
NOTES = """

F1 is the mean over examples. MultilabelClassifier as it comes, C chosen on held-out training rows by what the loss is
of (1 for the log loss with all pairs, which sums over 2^14 sets a row). Peers: C from 0.01 to 100 in three folds of the
training rows, by the loss that they are listed with; a chain is in the order of the labels.
"""


def scores(found, y):
    total = found.sum(axis=1) + y.sum(axis=1)
    f1 = np.where(total > 0, 2.0 * (found & y).sum(axis=1) / np.maximum(total, 1), 1.0)
    return {
        "hamming": 100.0 * np.mean(found != y),
        "subset": 100.0 * np.mean((found == y).all(axis=1)),
        "f1": 100.0 * f1.mean(),
    }


def peers():
    yield "OneVsRest, LogisticRegression", lambda C: OneVsRestClassifier(LogisticRegression(C=C, max_iter=2000))
    yield "OneVsRest, LinearSVC", lambda C: OneVsRestClassifier(LinearSVC(C=C, dual=False))
    yield "ClassifierChain, LogisticRegression", lambda C: ClassifierChain(LogisticRegression(C=C, max_iter=2000))
    yield "ClassifierChain, LinearSVC", lambda C: ClassifierChain(LinearSVC(C=C, dual=False))


def ours(X, y, X_test, y_test, losses):
    for interactions in ("none", "tree", "full"):
        for loss in losses:
            begin = time.process_time()
            C = 1.0 if (loss, interactions) == ("log", "full") else "auto"
            model = MultilabelClassifier(loss, interactions=interactions, C=C, random_state=0).fit(X, y)
            cpu = time.process_time() - begin
            row = {"machine": f"MultilabelClassifier, {interactions}", "chosen": loss, "C": model.C_, "cpu": cpu}
            row["inference"], gap = model.result_.inference, 100.0 * model.result_.relative_gap
            yield row | scores(model.predict(X_test), y_test) | {"gap": gap}


def theirs(X, y, X_test, y_test, quick):
    folds = KFold(3, shuffle=True, random_state=0)
    for name, make in peers():
        begin, found = time.process_time(), []
        for C in GRID[2:3] if quick else GRID:
            held = cross_val_predict(make(C), X, y, cv=folds).astype(np.int64)
            found.append((C, scores(held, y)))
        choosing = time.process_time() - begin
        for loss, sign in (("hamming", 1.0), ("subset", -1.0), ("f1", -1.0)):
            begin = time.process_time()
            C = min(found, key=lambda row: sign * row[1][loss])[0]
            answers = make(C).fit(X, y).predict(X_test).astype(np.int64)
            row = {"machine": name, "chosen": loss, "C": C, "cpu": choosing + time.process_time() - begin}
            yield row | scores(answers, y_test) | {"gap": np.nan}


def run(options):
    warnings.simplefilter("ignore", ConvergenceWarning)
    simulated = [make_label_sets(n, 20, 30, strength=2.0, random_state=seed) for seed, n in enumerate((600, 400))]
    data = fetch_multilabel_yeast()
    yeast = data.X_train.astype(float), data.y_train, data.X_test.astype(float), data.y_test
    for title, arrays, losses in (
        ("Simulated: 30 labels", (*simulated[0], *simulated[1]), ["hamming"]),
        ("Yeast", yeast, ["hamming", "subset", "f1", "log"]),
    ):
        if options.quick:
            arrays, losses = [part[:700] for part in arrays], losses[:1]
        table = Table(title, COLUMNS, notes=notes(__doc__.split("\n")[0] + NOTES))
        table.rows += [*ours(*arrays, losses), *theirs(*arrays, options.quick)]
        yield table
