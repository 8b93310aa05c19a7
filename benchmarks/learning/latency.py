"""From an answer to the next question: milliseconds of one core, and sequences that were decoded."""

from __future__ import annotations

import time

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from common.report import Table, notes
from learning.data import drawn
from structsvm.datasets import fetch_clinc150, make_sequences
from structsvm.tasks import Pool, SequenceLabeler, TaxonomyClassifier

SIZES, OF_STRATEGIES, FIRST, ANSWERS, TARGET = (1_000, 10_000, 100_000), 10_000, 100, 100, 100.0
TEMPLATES, STRATEGIES = ("rich", "records"), ("confidence", "entropy", "span", "risk")
FIRST_OF_DOCUMENTS, OF_DOCUMENTS = 300, ("margin", "confidence", "entropy", "risk")
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
            bounds did not exclude them, mean per question; documents: CLINC150, TF-IDF, 150 classes, after a fit on
            {FIRST_OF_DOCUMENTS}

            target: at most {TARGET:.0f} ms with a pool of 10,000
            """
        ),
    )
    yield made
    n_answers = 10 if options.quick else ANSWERS
    of_strategies = 200 if options.quick else OF_STRATEGIES
    for templates in TEMPLATES:
        for n in (200, 400) if options.quick else SIZES:
            made.rows.append(row(templates, "margin", n_answers, *labeler(templates, "hamming", n)))
            yield made
        for strategy in STRATEGIES:
            made.rows.append(row(templates, strategy, n_answers, *labeler(templates, "log", of_strategies)))
            yield made
    for strategy in OF_DOCUMENTS:
        made.rows.append(row("documents", strategy, n_answers, *classifier(of_strategies)))
        yield made


def labeler(templates, loss, n):
    """A labeler after its first fit, and a pool with its answers."""
    X, y = make_sequences(FIRST + n, random_state=0)
    estimator = SequenceLabeler(C=0.1, loss=loss, templates=templates, random_state=0).fit(X[:FIRST], y[:FIRST])
    return estimator, X[FIRST:], y[FIRST:]


def classifier(n):
    """As `labeler`, of documents: all are read again after each answer."""
    data = fetch_clinc150()
    X, y = drawn(data.X_train, data.y_train.tolist(), FIRST_OF_DOCUMENTS + n)
    X = TfidfVectorizer(sublinear_tf=True, dtype=np.float32).fit_transform(X)
    first, pool = slice(FIRST_OF_DOCUMENTS), slice(FIRST_OF_DOCUMENTS, None)
    estimator = TaxonomyClassifier(data.taxonomy, C=10.0, loss="log", random_state=0).fit(X[first], y[first])
    return estimator, X[pool], y[pool]


def row(templates, strategy, n_answers, estimator, X, y):
    n = len(y)
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
