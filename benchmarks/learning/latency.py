"""From an answer to the next question: milliseconds of one core, and sequences that were read."""

from __future__ import annotations

import time

import numpy as np

from common.report import Table, notes
from structsvm.datasets import make_sequences
from structsvm.tasks import Pool, SequenceLabeler

SIZES, FIRST, ANSWERS, TARGET = (1_000, 10_000, 100_000), 100, 100, 100.0
COLUMNS = {
    "templates": ("templates", ""),
    "pool": ("pool", "d"),
    "first": ("encoding and first question, s", ".2f"),
    "teach": ("teach, ms", ".1f"),
    "query": ("query, ms", ".1f"),
    "median": ("both, ms", ".1f"),
    "worst": ("99 % within, ms", ".1f"),
    "read": ("read", ".0f"),
}


def run(options):
    made = Table(
        "Milliseconds from an answer to the next question",
        COLUMNS,
        notes=notes(
            f"""
            simulated sentences of 24 words on average, 11 labels, after a fit on {FIRST}; CPU time of one thread;
            medians of {ANSWERS} answers; read: sentences that were decoded anew for a question

            target: at most {TARGET:.0f} ms with a pool of 10,000
            """
        ),
    )
    yield made
    for templates in ("rich", "records"):
        for n in (200, 400) if options.quick else SIZES:
            made.rows.append(row(templates, n, 10 if options.quick else ANSWERS))
            yield made


def row(templates, n, n_answers):
    X, y = make_sequences(FIRST + n, random_state=0)
    estimator = SequenceLabeler(C=0.1, loss="hamming", templates=templates, random_state=0).fit(X[:FIRST], y[:FIRST])
    X, y = X[FIRST:], y[FIRST:]
    start = time.process_time()
    pool = Pool(estimator, X)
    (i,) = estimator.query(pool)
    first, times, read = time.process_time() - start, [], []
    for _ in range(n_answers):
        pool.discard(i)
        before, start = pool.n_read, time.process_time()
        estimator.teach(X[i], y[i])
        middle = time.process_time()
        (i,) = estimator.query(pool)
        times.append((1e3 * (middle - start), 1e3 * (time.process_time() - middle)))
        read.append(pool.n_read - before)
    teach, query = np.array(times).T
    return {
        "templates": templates,
        "pool": n,
        "first": first,
        "teach": np.median(teach),
        "query": np.median(query),
        "median": np.median(teach + query),
        "worst": np.quantile(teach + query, 0.99),
        "read": np.mean(read),
    }
