"""Tasks that are learnt by answers: pools, test sets, estimators, scores; and the simulated user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from structsvm.datasets import (
    fetch_clinc150,
    fetch_conll2002,
    fetch_treebank_tags,
    fetch_ud_english_ewt,
    make_addresses,
)
from structsvm.metrics import chunk_scores, dependency_scores
from structsvm.tasks import DependencyParser, Pool, SequenceLabeler, TaxonomyClassifier

POOL, TEST, QUICK = 1000, 500, 60
TREES = 200  # a fit on trees takes longest
FIRST = 10  # answers before the first question, of inputs at random


@dataclass(frozen=True)
class Task:
    """A pool with its answers, a test set, an estimator and its score."""

    name: str
    X: Any
    y: list
    X_test: Any
    y_test: list
    estimator: Callable[[int], Any]
    score: Callable[[Any, list], float]


def f1(true, found):
    return 100.0 * chunk_scores(true, found).f1


def accuracy(true, found):
    pairs = [pair for y, p in zip(true, found, strict=True) for pair in zip(y, p, strict=True)]
    return 100.0 * float(np.mean([a == b for a, b in pairs]))


def right(true, found):
    return 100.0 * float(np.mean([a == b for a, b in zip(true, found, strict=True)]))


def attachment(true, found):
    return 100.0 * dependency_scores(true, found).uas


def labeler(seed):
    return SequenceLabeler(C=1.0, loss="log", random_state=seed)


def records(seed):
    return SequenceLabeler(C=1.0, loss="log", templates="records", random_state=seed)


def drawn(X, y, n, seed=0):
    """n of the examples, drawn."""
    order = np.random.default_rng(seed).permutation(len(y))[:n]
    return [X[i] for i in order], [y[i] for i in order]


def tasks(options, names=None, pool=POOL):
    """The tasks, by the options of a part."""
    n_pool, n_test = (QUICK, QUICK) if options.quick else (pool, TEST)
    for name, make in TASKS.items():
        if names is None or name in names:
            yield make(name, n_pool, n_test)


def entities(name, n_pool, n_test):
    data = fetch_conll2002()
    parts = *drawn(data.X_train, data.y_train, n_pool), *drawn(data.X_test, data.y_test, n_test)
    return Task(name, *parts, labeler, f1)


def tags(name, n_pool, n_test):
    data = fetch_treebank_tags()
    parts = *drawn(data.X_train, data.y_train, n_pool), *drawn(data.X_test, data.y_test, n_test)
    return Task(name, *parts, labeler, accuracy)


def addresses(name, n_pool, n_test):
    parts = *make_addresses(n_pool, random_state=0), *make_addresses(n_test, random_state=1)
    return Task(name, *parts, records, accuracy)


def intents(name, n_pool, n_test):
    data = fetch_clinc150()
    X, y = drawn(data.X_train, data.y_train.tolist(), n_pool)
    X_test, y_test = drawn(data.X_test, data.y_test.tolist(), n_test)
    vectorizer = TfidfVectorizer(sublinear_tf=True, dtype=np.float32).fit(X)

    def classifier(seed):
        return TaxonomyClassifier(data.taxonomy, C=10.0, loss="log", random_state=seed)

    return Task(name, vectorizer.transform(X), y, vectorizer.transform(X_test), y_test, classifier, right)


def trees(name, n_pool, n_test):
    data = fetch_ud_english_ewt()
    chosen = [tree for tree in data.train if len(tree.arcs) <= 25]
    X, _ = drawn(chosen, chosen, min(n_pool, TREES))
    X_test, _ = drawn(data.test, data.test, n_test)

    def parser(seed):
        return DependencyParser(C=1.0, loss="log", random_state=seed)

    return Task(name, X, [tree.arcs for tree in X], X_test, [tree.arcs for tree in X_test], parser, attachment)


TASKS = {
    "Spanish entities, F1": entities,
    "treebank tags, accuracy": tags,
    "addresses, accuracy of words": addresses,
    "intents (CLINC150), accuracy": intents,
    "dependency trees, UAS": trees,
}


def size_of(answer):
    """Labels that whoever answers has to give."""
    return 1 if isinstance(answer, str) else len(answer)


def growing(n, rate=1.25):
    """Numbers of answers up to n, each a quarter more: fits on all of them cost as much as a few of the last one."""
    counts, k = [], FIRST
    while k < n:
        counts.append(k)
        k = max(k + 1, int(k * rate))
    return [*counts, n]


def asked(task, seed, counts, answer=None, consolidates=True, portion=1, **query):
    """Yield ``(n_labels, score)`` after so many answers, rising numbers, which `query` asks for, some at a time.

    The model is consolidated for each score, as a user would who looks at it, and goes on from there.
    """
    estimator = task.estimator(seed)
    pool = Pool(estimator, task.X)
    n_labels = n = 0
    waiting = []
    for count in counts:
        while n < count:
            if not waiting:
                k, options = (portion, query) if n >= FIRST else (1, {"strategy": "random"})
                waiting = estimator.query(pool, k, random_state=seed + n, **options).tolist()
                pool.discard(waiting)
            i = waiting.pop(0)
            known, size = (task.y[i], size_of(task.y[i])) if answer is None else answer(estimator, task.X[i], task.y[i])
            estimator.teach(task.X[i], known)
            n, n_labels = n + 1, n_labels + size
        if consolidates:
            estimator.consolidate()
        yield n_labels, task.score(task.y_test, [*estimator.predict(task.X_test)])
