"""Rankings of queries: Ranker's losses beside LightGBM's lambdarank."""

from __future__ import annotations

import time

import numpy as np

from common.report import Table, notes
from structsvm.datasets import fetch_rank_lightgbm
from structsvm.metrics import ranking_scores
from structsvm.tasks import Ranker

COLUMNS = {
    "machine": ("machine", ""),
    "setting": ("chosen", ""),
    **{f"ndcg{k}": (f"NDCG@{k} %", ".2f") for k in (1, 3, 5)},
    "ndcg": ("NDCG %", ".2f"),
    "map": ("MAP %", ".2f"),
    "pairs": ("ordered pairs %", ".2f"),
    "cpu": ("CPU s with the choice", ".2f"),
}
FOLDS = 3


def queries():
    """(X, grades, qid) of the training and of the test part."""
    data = fetch_rank_lightgbm()
    return (data.X_train, data.y_train, data.qid_train), (data.X_test, data.y_test, data.qid_test)


def scored(machine, setting, y, scores, qid, cpu):
    found = ranking_scores(y, scores, qid=qid)
    values = {f"ndcg{k}": value for k, value in found.ndcg_at.items()}
    values |= {"ndcg": found.ndcg, "map": found.map, "pairs": found.pairs}
    return {"machine": machine, "setting": setting, **{name: 100.0 * v for name, v in values.items()}, "cpu": cpu}


def lambdarank(train, test):
    """Rounds, leaves and rate by NDCG in folds of the training queries."""
    import lightgbm

    (X, y, qid), (X_test, y_test, qid_test) = train, test
    fold, begin, found = qid % FOLDS, time.process_time(), []

    def made(rows, leaves, rate, n):
        machine = lightgbm.LGBMRanker(
            num_leaves=leaves, learning_rate=rate, n_estimators=n, random_state=0, n_jobs=1, verbose=-1
        )
        return machine.fit(X[rows], y[rows], group=np.unique(qid[rows], return_counts=True)[1])

    for leaves in (7, 15, 31):
        for rate in (0.05, 0.1):
            for n in (50, 100, 200):
                scores = np.empty(len(y))
                for k in range(FOLDS):
                    scores[fold == k] = made(fold != k, leaves, rate, n).predict(X[fold == k])
                found.append((ranking_scores(y, scores, qid=qid).ndcg, leaves, rate, n))
    _, *best = max(found)
    machine = made(np.ones(len(y), dtype=bool), *best)
    setting = "{} leaves, rate {}, {} rounds".format(*best)
    return scored(
        "LightGBM lambdarank", setting, y_test, machine.predict(X_test), qid_test, time.process_time() - begin
    )


def run(options):
    table = Table("LightGBM's example: 201 queries of training, 50 of test", COLUMNS, notes=notes(NOTES))
    train, test = queries()
    for loss, k in (("ndcg", None), ("ndcg", 5), ("pairs", None), ("map", None)):
        begin = time.process_time()
        model = Ranker(loss, k=k, random_state=0).fit(train[0], train[1], qid=train[2])
        cpu, name = time.process_time() - begin, f"Ranker, {loss}" + (f", k={k}" if k else "")
        table.rows.append(scored(name, f"C = {model.C_:g}", test[1], model.predict(test[0]), test[2], cpu))
    yield table
    try:
        table.rows.append(lambdarank(train, test))
    except ImportError:
        table.notes.append("LightGBM was not installed")
    yield table


NOTES = """
Ranker as it comes, C chosen on held-out training queries by what the loss is of. LightGBM, one thread: leaves (7, 15,
31), rate (0.05, 0.1) and rounds (50, 100, 200) chosen in three folds of the training queries by NDCG.

50 test queries: differences of some points are noise.
"""
