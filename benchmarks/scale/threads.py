"""Two threads that train one model, beside one: time, dual objective and score after as many passes, on five tasks."""

from __future__ import annotations

import math
import time
import zlib

import numpy as np

from common.report import Table, notes, verdict
from sequence.scaling import gain
from structsvm import FrankWolfe, LaRank, Perceptron
from structsvm.datasets import fetch_amazon_reviews, fetch_conll2000, fetch_prefab, fetch_treebank_sample
from structsvm.features.columns import read_columns
from structsvm.metrics import chunk_f1
from structsvm.tasks import (
    GrammarParser,
    SequenceAligner,
    SequenceLabeler,
    TaxonomyClassifier,
    TokenFeatures,
    TreebankGrammar,
)
from taxonomy.data import Documents

RATIO_WANTED, DUAL_WANTED = 1.7, 1e-3
PASSES = (4, 15)
COLUMNS = {
    "task": ("", ""),
    "passes": ("passes", ".0f"),
    "one": ("1 thread: s", ".2f"),
    "two": ("2 threads: s", ".2f"),
    "ratio": ("speed-up", ".2f"),
    "cpu_ratio": ("x CPU s", ".2f"),
    "dual": ("dual", ".5g"),
    "spread": ("spread", ".1e"),
    "behind": ("2 threads: less", ".1e"),
    "gap": ("gap %", ".1f"),
    "gap_two": ("2 threads", ".1f"),
    "score": ("score %", ".2f"),
    "score_two": ("2 threads", ".2f"),
}


def run(options):
    """Yield the one table, again with each task."""
    rows = []
    machine = gain(zlib.crc32, [bytes(100_000_000)] * 2, options.repeat)
    for case in cases(options.quick):
        rows += [measure(case, passes, options.repeat) for passes in PASSES]
        yield table(rows, machine)


class Case:
    """A task with its data: estimators with a solver, their scores."""

    def __init__(self, name, kind, parameters, solver, train, test, score):
        self.name, self.kind, self.parameters, self.solver = name, kind, parameters, solver
        self.train, self.test, self.score = train, test, score

    def fit(self, passes, n_jobs, seed=0):
        solver = self.solver(max_iter=passes, random_state=seed, n_jobs=n_jobs, deterministic=n_jobs == 1)
        before = time.process_time()
        model = self.kind(solver=solver, **self.parameters).fit(*self.train)
        return model, time.process_time() - before


def cases(quick):
    """Yield the cases one by one: they are large."""
    n = 300 if quick else None
    data = fetch_conll2000()
    columns, test = read_columns(data.train_path), read_columns(data.test_path)
    for name, parameters, solver in (
        ("chunking, exact", {}, lambda **p: LaRank(C=0.1, tol=None, **p)),
        ("chunking, exact, FrankWolfe", {}, lambda **p: FrankWolfe(C=0.1, tol=None, **p)),
        ("chunking, exact, Perceptron", {}, Perceptron),
        ("chunking, greedy", {"inference": "greedy"}, lambda **p: LaRank(C=0.1, tol=None, **p)),
    ):
        parameters = {"templates": "crf++", "features": TokenFeatures(min_count=3), "probability": False} | parameters
        X, y = columns.drop_last()[:n], columns.select([-1])[:n]
        yield Case(
            name, SequenceLabeler, parameters, solver, (X, y), (test.drop_last(), data.y_test),
            lambda model, X, y: chunk_f1(y, model.predict(X)),
        )  # fmt: skip
    data = fetch_amazon_reviews()
    parts = ((data.X_train[:n], data.y_train[:n]), (data.X_test, data.y_test))
    documents, others = (Documents(X, y, data.taxonomy) for X, y in parts)
    X, X_test = documents.features(others)
    yield Case(
        "Amazon, tf-idf", TaxonomyClassifier, {"taxonomy": data.taxonomy}, lambda **p: LaRank(C=3.0, tol=None, **p),
        (X, data.y_train[:n]), (X_test, data.y_test), lambda model, X, y: model.score(X, y),
    )  # fmt: skip
    trees = fetch_treebank_sample()
    short = [[tree for tree in part if len(tree.leaves()) <= 20] for part in (trees.train, trees.test)]
    yield Case(
        "treebank up to 20 words", GrammarParser, {"grammar": TreebankGrammar(h=1), "probability": False},
        lambda **p: LaRank(C=0.1, tol=None, **p), (short[0][:n],), (short[1],), lambda model, trees: model.score(trees),
    )  # fmt: skip
    pairs, size = fetch_prefab(), 20 if quick else 200
    yield Case(
        "PREFAB, 200 pairs", SequenceAligner, {}, lambda **p: LaRank(C=0.001, tol=None, **p),
        (pairs.X_train[:size], pairs.y_train[:size]), (pairs.X_test, pairs.y_test),
        lambda model, X, y: model.score(X, y),
    )  # fmt: skip


def measure(case, passes, times):
    """One thread and two by turns, with as many seeds."""
    found = {1: [], 2: []}
    for seed in range(times):
        for n_jobs, runs in found.items():
            model, cpu = case.fit(passes, n_jobs, seed)
            result = model.result_
            runs.append((result.seconds, cpu, result.dual, result.relative_gap, case.score(model, *case.test)))
    (one, cpu, _, _, _), (two, cpu_two, _, _, _) = (np.min(runs, axis=0) for runs in found.values())
    (_, _, dual, gap, score), (_, _, dual_two, gap_two, score_two) = (np.mean(runs, axis=0) for runs in found.values())
    return {
        "task": case.name,
        "passes": passes,
        "one": one,
        "two": two,
        "ratio": one / two,
        "cpu_ratio": cpu_two / cpu,
        "dual": dual,
        "spread": np.std([run[2] for run in found[1]]) / dual,
        "behind": 1.0 - dual_two / dual,
        "gap": 100.0 * gap,
        "gap_two": 100.0 * gap_two,
        "score": 100.0 * score,
        "score_two": 100.0 * score_two,
    }


def table(rows, machine):
    text = f"""
    LaRank, unless another solver is named, with n_jobs=1, and with n_jobs=2 and deterministic=False: wall time that
    training takes with its certificate, best of some runs by turns, each with a seed of its own; CPU: of the whole fit,
    with encoding

    dual, gap, score: means over the seeds; spread: standard deviation of one thread's dual objectives, relative; less:
    by how much two threads' mean stays below one's after as many passes (negative: above), relative; gap: primal minus
    dual, relative, of the model that is returned; a perceptron has none of them

    a second thread brought {machine:.2f} to checksums of two buffers just then
    """
    least = min(rows, key=lambda row: row["ratio"])
    worst = max((row for row in rows if not math.isnan(row["behind"])), key=lambda row: row["behind"])
    targets = [
        verdict(
            f"two threads at least {RATIO_WANTED} times as fast as one",
            f"{least['ratio']:.2f} at least ({least['task']}, {least['passes']} passes)",
            least["ratio"] >= RATIO_WANTED,
        ),
        verdict(
            f"a dual within {DUAL_WANTED:.0e} of one thread's after as many passes",
            f"{worst['behind']:.1e} at most ({worst['task']}, {worst['passes']} passes)",
            worst["behind"] <= DUAL_WANTED,
        ),
    ]
    return Table("Threads that train one model", COLUMNS, rows, notes(text) + targets)
