"""The three sets of documents as matrices, the same for all methods."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from structsvm.datasets import fetch_amazon_reviews, fetch_clinc150, fetch_imclef07a
from structsvm.structures.taxonomy import Taxonomy

FETCH = {"Amazon": fetch_amazon_reviews, "CLINC150": fetch_clinc150, "ImCLEF07A": fetch_imclef07a}
FEATURES = """
features: words of at least two letters, (1 + ln tf) idf, rows of length 1, for texts; the 80 bins, each with mean 0
and variance 1, for ImCLEF07A; their counts and scales are those of the documents trained on
"""


@dataclass(frozen=True)
class Documents:
    """Raw documents, their labels, and the taxonomy."""

    raw: object
    y: np.ndarray
    taxonomy: Taxonomy

    def take(self, places):
        raw = [self.raw[i] for i in places] if isinstance(self.raw, list) else self.raw[places]
        return Documents(raw, self.y[places], self.taxonomy)

    def features(self, *others):
        """The matrices of these documents and of others, in the same features."""
        if isinstance(self.raw, list):
            vectorizer = TfidfVectorizer(sublinear_tf=True, dtype=np.float32)
            matrices = [vectorizer.fit_transform(self.raw), *(vectorizer.transform(o.raw) for o in others)]
            for matrix in matrices:
                matrix.indices, matrix.indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
            return matrices
        mean, scale = self.raw.mean(axis=0), self.raw.std(axis=0)
        return [(o.raw - mean) / np.where(scale > 0.0, scale, 1.0) for o in (self, *others)]


def splits(name):
    """The published parts: train with the development part, test."""
    data = FETCH[name]()
    if data.X_valid is None:
        train = Documents(data.X_train, data.y_train, data.taxonomy)
    else:
        train = Documents(data.X_train + data.X_valid, np.concatenate([data.y_train, data.y_valid]), data.taxonomy)
    return train, Documents(data.X_test, data.y_test, data.taxonomy)


def everything(name):
    """All documents of a set."""
    train, test = splits(name)
    both = train.raw + test.raw if isinstance(train.raw, list) else np.concatenate([train.raw, test.raw])
    return Documents(both, np.concatenate([train.y, test.y]), train.taxonomy)


def halves(y, rng, share=1 / 3):
    """Indices for training and validation: about a share of each class for validation, at least one for training."""
    order = rng.permutation(len(y))
    rank = np.empty(len(y), dtype=np.int64)
    for label in np.unique(y):
        of_label = order[y[order] == label]
        rank[of_label] = np.arange(len(of_label)) >= max(round(len(of_label) * (1 - share)), 1)
    return np.flatnonzero(rank == 0), np.flatnonzero(rank == 1)
