"""Outputs of trained estimators on examples that they have not seen: a pool, of which splits are drawn."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from structsvm.datasets import (
    fetch_addresses,
    fetch_clinc150,
    fetch_conll2002,
    fetch_multilabel_yeast,
    fetch_ocr_letters,
)
from structsvm.risk.outputs import confidence, right_of
from structsvm.risk.strangeness import SUBTREES, units_of, values_at
from structsvm.tasks import MultilabelClassifier, SequenceLabeler, TaxonomyClassifier

SEED = 0


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
        """Per output, its strangest true label, and the strangeness of all labels of its units."""
        units = SUBTREES if isinstance(self.estimator, TaxonomyClassifier) else units_of(self.estimator)
        every = units.strange(self.estimator, self.X)
        true = units.true(self.estimator, self.X, self.y)
        worst = [values_at(*pair).max(initial=-np.inf) for pair in zip(every, true, strict=True)]
        return np.array(worst), every, units.many


def shuffled(X, y):
    """Lists of inputs and outputs in a random order."""
    order = np.random.default_rng(SEED).permutation(len(X))
    return [X[i] for i in order], [y[i] for i in order]


def pools(options):
    """The pools, one after another: of each data set a part is trained on, and the rest kept."""
    quick = options.quick
    labeler = {"loss": "log", "C": 0.1 if quick else "auto", "random_state": SEED}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = fetch_conll2002()
        n, m = (200, 600) if quick else (2000, None)
        X, y = [*data.X_valid, *data.X_test][:m], [*data.y_valid, *data.y_test][:m]
        yield Pool("entities (Spanish)", SequenceLabeler(**labeler).fit(data.X_train[:n], data.y_train[:n]), X, y)
        data = fetch_addresses()
        X, y = shuffled([*data.X_train, *data.X_test], [*data.y_train, *data.y_test])
        n = len(X) // 3
        found = SequenceLabeler(templates="records", **labeler).fit(X[:n], y[:n])
        yield Pool("addresses", found, X[n:][:m], y[n:][:m])
        data = fetch_ocr_letters()
        X, y = shuffled(data.X, data.y)
        n = 200 if quick else 687
        yield Pool("letters (OCR)", SequenceLabeler(**labeler).fit(X[:n], y[:n]), X[n:][:m], y[n:][:m])
        data = fetch_clinc150()
        part = np.random.default_rng(SEED).permutation(len(data.X_train))[: 600 if quick else 3000]
        taxonomy = TaxonomyClassifier(
            taxonomy=data.taxonomy, vectorizer=TfidfVectorizer(), C=1.0 if quick else "auto", random_state=SEED
        ).fit([data.X_train[i] for i in part], data.y_train[part])
        later = np.random.default_rng(SEED).permutation(len(data.X_test))[:m]
        yield Pool("taxonomy (CLINC150)", taxonomy, [data.X_test[i] for i in later], data.y_test[later])
        data = fetch_multilabel_yeast()
        n = 200 if quick else 750
        found = MultilabelClassifier(probability=True, C=1.0 if quick else "auto", random_state=SEED)
        X, y = np.vstack([data.X_train, data.X_test]), np.vstack([data.y_train, data.y_test])
        yield Pool("sets of labels (yeast)", found.fit(X[:n], y[:n]), X[n:][:m], y[n:][:m])
