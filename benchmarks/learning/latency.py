"""From an answer to the next question: milliseconds of one core, and sequences that were decoded."""

from __future__ import annotations

import time

import numpy as np

from common.report import Table, notes
from structsvm.datasets import make_sequences
from structsvm.tasks import Pool, SequenceLabeler

SIZES, OF_STRATEGIES, FIRST, ANSWERS, TARGET = (1_000, 10_000, 100_000), 10_000, 100, 100, 100.0
TEMPLATES, STRATEGIES = ("rich", "records"), ("confidence", "entropy", "span", "risk")
COLUMNS = {
    "templates": ("templates", ""),
    "strategy": ("asked by", ""),
    "pool": ("pool", "d"),
    "first": ("encoding and first question, s", ".2f"),
    "teach": ("teach, ms", ".1f"),
    "query": ("query, ms", ".1f"),
    "median": ("both, ms", ".1f"),
    "worst": ("99 % within, ms", ".1f"),
    "read": ("decoded", ".0f"),
    "share": ("decoded, %", ".2f"),
}


def run(options):
    made = Table(
        "Milliseconds from an answer to the next question",
        COLUMNS,
        notes=notes(
            f"""
            simulated sentences of 24 words on average, 11 labels, after a fit on {FIRST}, by the log loss where
            probabilities are asked for; CPU time of one thread; medians of {ANSWERS} answers; decoded: sentences whose
            bounds did not exclude them, mean per question

            target: at most {TARGET:.0f} ms with a pool of 10,000
            """
        ),
    )
    yield made
    n_answers = 10 if options.quick else ANSWERS
    for templates in TEMPLATES:
        for n in (200, 400) if options.quick else SIZES:
            made.rows.append(row(templates, "margin", n, n_answers))
            yield made
        for strategy in STRATEGIES:
            made.rows.append(row(templates, strategy, 200 if options.quick else OF_STRATEGIES, n_answers))
            yield made


def row(templates, strategy, n, n_answers):
    X, y = make_sequences(FIRST + n, random_state=0)
    loss = "hamming" if strategy == "margin" else "log"
    estimator = SequenceLabeler(C=0.1, loss=loss, templates=templates, random_state=0).fit(X[:FIRST], y[:FIRST])
    X, y = X[FIRST:], y[FIRST:]
    start = time.process_time()
    pool = Pool(estimator, X)
    (i,) = estimator.query(pool, strategy=strategy)
    first, times, read = time.process_time() - start, [], []
    for _ in range(n_answers):
        pool.discard(i)
        before, start = pool.n_read, time.process_time()
        estimator.teach(X[i], y[i])
        middle = time.process_time()
        (i,) = estimator.query(pool, strategy=strategy)
        times.append((1e3 * (middle - start), 1e3 * (time.process_time() - middle)))
        read.append(pool.n_read - before)
    teach, query = np.array(times).T
    return {
        "templates": templates,
        "strategy": strategy,
        "pool": n,
        "first": first,
        "teach": np.median(teach),
        "query": np.median(query),
        "median": np.median(teach + query),
        "worst": np.quantile(teach + query, 0.99),
        "read": np.mean(read),
        "share": 100.0 * np.mean(read) / n,
    }
