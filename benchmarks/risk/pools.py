"""Outputs of trained estimators on examples that they have not seen: a pool, of which splits are drawn."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from structsvm.datasets import (
    fetch_addresses,
    fetch_clinc150,
    fetch_conll2002,
    fetch_multilabel_yeast,
    fetch_ocr_letters,
    fetch_robocup,
    fetch_treebank_sample,
)
from structsvm.risk.best_outputs import ranked, strangeness_of_truth
from structsvm.risk.outputs import confidence, right_of
from structsvm.risk.strangeness import SUBTREES, units_of, values_at
from structsvm.tasks import GrammarParser, MultilabelClassifier, SemanticParser, SequenceLabeler, TaxonomyClassifier

SEED = 0
LONGEST, C_OF_TREES, K_BEST = 15, 0.1, 20


@dataclass
class Pool:
    """An estimator, with examples that it has not seen.

    Attributes
    ----------
    name : str
    estimator
    X, y : their inputs and outputs
    sure, wrong : ndarray
        How sure it is of each output, and whether this is wrong.
    """

    name: str
    estimator: Any
    X: Any
    y: Any

    def __post_init__(self):
        predicted = self.estimator.predict(self.X)
        self.sure = confidence(self.estimator, self.X, predicted)
        self.wrong = 1.0 - right_of(self.estimator)(self.estimator, self.X, self.y, predicted)

    def __len__(self):
        return len(self.sure)

    def strangeness(self):
        """Per output, its strangest true label, and the strangeness of all labels of its units.

        Trees and meanings have no units with labels: the labels are the k best outputs.
        """
        if isinstance(self.estimator, (GrammarParser, SemanticParser)):
            best = ranked(self.estimator, self.X, K_BEST)
            every = [np.array([[strange for _, strange in own]]).reshape(1, -1) for own in best]
            return strangeness_of_truth(self.estimator, self.X, self.y, K_BEST), every, False
        units = SUBTREES if isinstance(self.estimator, TaxonomyClassifier) else units_of(self.estimator)
        every = units.strange(self.estimator, self.X)
        true = units.true(self.estimator, self.X, self.y)
        worst = [values_at(*pair).max(initial=-np.inf) for pair in zip(every, true, strict=True)]
        return np.array(worst), every, units.many


def shuffled(X, y):
    """Lists of inputs and outputs in a random order."""
    order = np.random.default_rng(SEED).permutation(len(X))
    return [X[i] for i in order], [y[i] for i in order]


def entities(quick):
    """Names in Spanish news: trained on a part of the training data, the pool validation and test data."""
    data, n = fetch_conll2002(), 200 if quick else 2000
    labeler = SequenceLabeler(**labeler_of(quick)).fit(data.X_train[:n], data.y_train[:n])
    return labeler, [*data.X_valid, *data.X_test], [*data.y_valid, *data.y_test]


def addresses(quick):
    """Fields of addresses, as users of a parser have labelled them."""
    data = fetch_addresses()
    X, y = shuffled([*data.X_train, *data.X_test], [*data.y_train, *data.y_test])
    n = len(X) // 3
    return SequenceLabeler(templates="records", **labeler_of(quick)).fit(X[:n], y[:n]), X[n:], y[n:]


def letters(quick):
    """Handwritten words."""
    data, n = fetch_ocr_letters(), 200 if quick else 687
    X, y = shuffled(data.X, data.y)
    return SequenceLabeler(**labeler_of(quick)).fit(X[:n], y[:n]), X[n:], y[n:]


def questions(quick):
    """Questions by intent, in a taxonomy."""
    data, rng = fetch_clinc150(), np.random.default_rng(SEED)
    part = rng.permutation(len(data.X_train))[: 600 if quick else 3000]
    found = TaxonomyClassifier(
        taxonomy=data.taxonomy, vectorizer=TfidfVectorizer(), C=1.0 if quick else "auto", random_state=SEED
    ).fit([data.X_train[i] for i in part], data.y_train[part])
    later = rng.permutation(len(data.X_test))
    return found, [data.X_test[i] for i in later], data.y_test[later]


def trees(quick):
    """Sentences of at most `LONGEST` words of a treebank."""
    data, n = fetch_treebank_sample(), 100 if quick else 300
    short = [tree for tree in [*data.train, *data.test] if len(tree.leaves()) <= LONGEST]
    every = shuffled(short, short)[0]
    parser = GrammarParser(loss="log", C=C_OF_TREES, random_state=SEED).fit(every[:n])
    return parser, [tree.tokens() for tree in every[n:]], every[n:]


def meanings(quick):
    """Comments on games of robots, with the one meaning of each."""
    data = fetch_robocup()
    games = data.games.values()
    X, y = shuffled(
        [text for game in games for text in game.gold_sentences], [bag for game in games for bag in game.gold_meanings]
    )
    n = 200 if quick else 400
    return SemanticParser(grammar=data.grammar, random_state=SEED).fit(X[:n], y[:n]), X[n:], y[n:]


def genes(quick):
    """Sets of functions of genes."""
    data, n = fetch_multilabel_yeast(), 200 if quick else 750
    X, y = np.vstack([data.X_train, data.X_test]), np.vstack([data.y_train, data.y_test])
    found = MultilabelClassifier(probability=True, C=1.0 if quick else "auto", random_state=SEED)
    return found.fit(X[:n], y[:n]), X[n:], y[n:]


def labeler_of(quick):
    """Parameters of taggers."""
    return {"loss": "log", "C": 0.1 if quick else "auto", "random_state": SEED}


POOLS = {
    "entities (Spanish)": entities,
    "addresses": addresses,
    "letters (OCR)": letters,
    "taxonomy (CLINC150)": questions,
    "treebank (WSJ)": trees,
    "meanings (RoboCup)": meanings,
    "sets of labels (yeast)": genes,
}


@cache
def pool_of(name, quick):
    """A pool, which is made once: splits of it are drawn by all parts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator, X, y = POOLS[name](quick)
        most = 600 if quick else None
        return Pool(name, estimator, X[:most], y[:most])


def pools(options):
    """The pools, one after another: of each data set a part is trained on, and the rest kept."""
    return (pool_of(name, options.quick) for name in POOLS)
