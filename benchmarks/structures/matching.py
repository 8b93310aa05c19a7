"""Word alignment by matchings beside unlearnt heuristics, and the share of time in scipy's solver."""

from __future__ import annotations

import time
from unittest import mock

import numpy as np
from sklearn.model_selection import GridSearchCV

from common.measure import BENCHMARKS
from common.report import Table, notes
from structsvm import LaRank, StructuredSVM
from structsvm.datasets import make_word_alignments
from structsvm.metrics import matching_scores
from structsvm.oracles import assignment
from structsvm.oracles.assignment import AssignmentOracle

COLUMNS = {
    "corpus": ("corpus", ""),
    "machine": ("machine", ""),
    "setting": ("chosen", ""),
    "precision": ("precision %", ".2f"),
    "recall": ("recall %", ".2f"),
    "f1": ("F1 %", ".2f"),
    "rate": ("alignment error rate %", ".2f"),
    "exact": ("whole sentences %", ".2f"),
    "cpu": ("CPU s with the choice", ".1f"),
}
TIMES = {
    "n": ("nodes on each side", "d"),
    "ask": ("microseconds a constraint", ".0f"),
    "solver": ("in linear_sum_assignment %", ".0f"),
    "cpu": ("CPU s a pass of 100 examples", ".3f"),
}
GRID = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
THRESHOLDS = np.linspace(0.0, 0.5, 26)


def example():
    """The module examples/align_words.py."""
    found = {"__name__": "align_words"}
    exec((BENCHMARKS.parent / "examples" / "align_words.py").read_text(), found)
    return found


def scored(corpus, machine, setting, y, found, cpu):
    scores = matching_scores(y, found)
    names = ("precision", "recall", "f1", "rate", "exact")
    row = {name: 100.0 * value for name, value in zip(names, scores, strict=True)}
    return {"corpus": corpus, "machine": machine, "setting": setting, **row, "cpu": cpu}


def best_each(dice, threshold):
    """For each word the one of the highest coefficient, above a threshold."""
    best = dice.argmax(axis=1)
    return np.where(dice[np.arange(len(dice)), best] > threshold, best, -1)


def matched(capacity):
    """The best matching of coefficients above a threshold."""
    oracle = AssignmentOracle(1, capacity=capacity)
    return lambda dice, threshold: oracle.argmax(dice[:, :, None], np.array([1.0, threshold]))


def alignments(options):
    table = Table("Word alignment, 150 sentences of training", COLUMNS, notes=notes(NOTES))
    words = example()
    n_test, n_unaligned = (100, 500) if options.quick else (1000, 5000)
    for corpus, params in (
        ("one to one", {}),
        ("much reordered", {"reorder": 4.0}),
        ("up to two to one", {"max_fertility": 2}),
    ):
        capacity = params.get("max_fertility", 1)
        (train, y), (test, y_test), (unaligned, _) = (
            make_word_alignments(n, random_state=seed, **params) for seed, n in enumerate((150, n_test, n_unaligned))
        )
        pairs = words["WordPairs"]([*unaligned, *train])
        X, X_test = ([pairs(*sentence) for sentence in part] for part in (train, test))
        for machine, rule in (("best Dice of each word", best_each), ("matching by Dice", matched(capacity))):
            begin = time.process_time()
            threshold = max(
                THRESHOLDS, key=lambda t, rule=rule: matching_scores(y, [rule(x[:, :, 0], t) for x in X]).f1
            )
            cpu = time.process_time() - begin
            found = [rule(x[:, :, 0], threshold) for x in X_test]
            table.rows.append(scored(corpus, machine, f"above {threshold:.2f}", y_test, found, cpu))
        for machine, room in (("learnt, each word by itself", None), ("learnt matching", capacity)):
            begin = time.process_time()
            model = StructuredSVM(
                AssignmentOracle(len(pairs.names), capacity=room), LaRank(tol=0.01, max_iter=200, random_state=0)
            )
            search = GridSearchCV(model, {"solver__C": GRID}, cv=3).fit(X, y)
            cpu = time.process_time() - begin
            setting = f"C = {search.best_params_['solver__C']:g}"
            table.rows.append(scored(corpus, machine, setting, y_test, search.predict(X_test), cpu))
        yield table


def times(options):
    """Constraints of random pairs of 10 features."""
    table = Table("Time of the oracle", TIMES, notes=notes("Arrays of 10 features, nodes that may stay unmatched."))
    rng, inner = np.random.default_rng(0), assignment.linear_sum_assignment
    for n in (5, 10, 20, 50, 100, 200)[: 3 if options.quick else None]:
        oracle, n_examples = AssignmentOracle(10), max(20, min(100, 2000 // n))
        X = [rng.normal(size=(n, n, 10)) for _ in range(n_examples)]
        Y = [rng.permutation(n) for _ in X]
        problem, w = oracle.bind(X, Y), rng.normal(size=11)
        spent = [0.0]

        def clocked(*args, spent=spent, **kw):
            begin = time.process_time()
            try:
                return inner(*args, **kw)
            finally:
                spent[0] += time.process_time() - begin

        best, share = np.inf, 0.0
        with mock.patch.object(assignment, "linear_sum_assignment", clocked):
            for _ in range(options.repeat):
                spent[0], begin = 0.0, time.process_time()
                for i in range(n_examples):
                    problem.separate(i, w)
                cpu = time.process_time() - begin
                if cpu < best:
                    best, share = cpu, spent[0] / cpu
        row = {"n": n, "ask": 1e6 * best / n_examples, "solver": 100.0 * share, "cpu": 100.0 * best / n_examples}
        table.rows.append(row)
    yield table


def run(options):
    yield from times(options)
    yield from alignments(options)


NOTES = """
make_word_alignments: 150 aligned sentences to learn from, 1000 to test on, and 5000 without alignment for Dice's
coefficients. Features as in examples/align_words.py. Thresholds chosen on the training sentences by F1; C by the mean
loss in three folds of them.
"""
