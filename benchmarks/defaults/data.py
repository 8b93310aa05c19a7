"""The data of all tasks, in training and test parts, with the estimators that learn them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from structsvm import datasets, tasks
from structsvm.metrics import bracket_scores, chunk_f1, q_score, token_accuracy

MARGIN = {"loss": "hamming"}  # where two losses are added, each has a C of its own


@dataclass
class Case:
    """An estimator, its data, and how predictions for the test part are scored."""

    kind: type
    X: Any
    y: Any
    X_test: Any
    y_test: Any
    score: Callable[[Any, Any], float]
    metric: str
    params: dict[str, Any] = field(default_factory=dict)

    def fit(self, C, rows=None, **params):
        X, y = (self.X, self.y) if rows is None else (part(self.X, rows), part(self.y, rows))
        return self.kind(C=C, random_state=0, **self.params | params).fit(X, y)

    def score_on(self, model, rows=None):
        """The score of predictions for the test part, or for some of the training part."""
        X, y = (self.X_test, self.y_test) if rows is None else (part(self.X, rows), part(self.y, rows))
        return self.score(y, model.predict(X))


def part(data, rows):
    return [data[i] for i in rows] if isinstance(data, list) else data[rows]


def before_path(values):
    """Half a decade below a path's first C; a prior's, which leaves it as it is and is judged first, aside."""
    return 0.34 * 0.34 * values[1]


def accuracy(y, predicted):
    return float(np.mean(np.asarray(y) == np.asarray(predicted)))


def in_bags(y, predicted):
    """The accuracy; where y are bags, how often a label is in its bag."""
    return float(np.mean([label in np.atleast_1d(bag) for bag, label in zip(y, predicted, strict=True)]))


def columns(fetch, n, attributes, metric=("F1", chunk_f1)):
    """Sentences, every token with such attributes of its columns."""
    data = fetch()
    X, X_test = ([attributes(sentence) for sentence in part] for part in (data.X_train[:n], data.X_test))
    return Case(tasks.SequenceLabeler, X, data.y_train[:n], X_test, data.y_test, metric[1], metric[0], MARGIN)


def tutorial(sentence):
    """The dicts of sklearn-crfsuite's tutorial on the Spanish entities."""
    tokens = []
    for i, (word, tag) in enumerate(sentence):
        token = {
            "bias": 1.0,
            "word.lower()": word.lower(),
            "word[-3:]": word[-3:],
            "word[-2:]": word[-2:],
            "word.isupper()": word.isupper(),
            "word.istitle()": word.istitle(),
            "word.isdigit()": word.isdigit(),
            "postag": tag,
            "postag[:2]": tag[:2],
        }
        for name, j in (("-1", i - 1), ("+1", i + 1)):
            if 0 <= j < len(sentence):
                near, tag_near = sentence[j]
                token |= {
                    f"{name}:word.lower()": near.lower(),
                    f"{name}:word.istitle()": near.istitle(),
                    f"{name}:word.isupper()": near.isupper(),
                    f"{name}:postag": tag_near,
                    f"{name}:postag[:2]": tag_near[:2],
                }
        if i == 0:
            token["BOS"] = True
        if i == len(sentence) - 1:
            token["EOS"] = True
        tokens.append(token)
    return tokens


def words(sentence):
    """Attributes of words alone."""
    padded = ["", "", *(token[0] for token in sentence), "", ""]
    return [
        [
            *(f"{d}:{padded[i + d]}" for d in (-2, -1, 0, 1, 2)),
            *(f"suffix:{padded[i][-n:]}" for n in (1, 2, 3)),
            *(f"prefix:{padded[i][:n]}" for n in (1, 2, 3)),
            f"shape:{padded[i].istitle()}{padded[i].isupper()}{any(map(str.isdigit, padded[i]))}{'-' in padded[i]}",
        ]
        for i in range(2, len(padded) - 2)
    ]


def words_and_tags(sentence):
    """Attributes of words and part-of-speech tags."""
    tags = ["", "", *(token[1] for token in sentence), "", ""]
    return [
        [
            *token,
            *(f"t{d}:{tags[i + d]}" for d in (-2, -1, 0, 1, 2)),
            f"tt:{tags[i - 1]}|{tags[i]}",
            f"uu:{tags[i]}|{tags[i + 1]}",
        ]
        for i, token in enumerate(words(sentence), start=2)
    ]


def ocr(n):
    data = datasets.fetch_ocr_letters()
    train, test = (np.flatnonzero(where) for where in (data.folds == 0, data.folds == 1))
    (X, y), (X_test, y_test) = (([data.X[i] for i in rows], [data.y[i] for i in rows]) for rows in (train[:n], test))
    return Case(tasks.SequenceLabeler, X, y, X_test, y_test, token_accuracy, "accuracy", MARGIN)


def taxonomy(fetch, n, n_columns=None):
    """Documents as tf-idf rows, or as a few columns of their singular value decomposition; bins as they are."""
    data = fetch()
    chosen = np.random.default_rng(0).permutation(len(data.y_train))[:n]
    y, X_test, y_test = data.y_train[chosen], data.X_test, data.y_test
    if isinstance(data.X_train, list):
        vectorizer = TfidfVectorizer(sublinear_tf=True, dtype=np.float32)
        X = vectorizer.fit_transform([data.X_train[i] for i in chosen])
        X_test = vectorizer.transform(X_test)
    else:
        X = data.X_train[chosen]
    if n_columns is not None:
        svd = TruncatedSVD(n_columns, random_state=0).fit(X)
        X, X_test = svd.transform(X), svd.transform(X_test)
    return Case(tasks.TaxonomyClassifier, X, y, X_test, y_test, accuracy, "accuracy", {"taxonomy": data.taxonomy})


def bags(fetch):
    data = fetch()
    order = np.random.default_rng(0).permutation(len(data.X))
    test, train = order[: len(order) // 3], order[len(order) // 3 :]
    y = [data.candidates[i] for i in train]
    return Case(tasks.AmbiguousClassifier, data.X[train], y, data.X[test], data.y[test], in_bags, "accuracy")


def alignments(fetch, n, **params):
    data = fetch()
    step = max(1, len(data.X_train) // n)
    X, y = data.X_train[::step], data.y_train[::step]
    return Case(tasks.SequenceAligner, X, y, data.X_test[:100], data.y_test[:100], q_score, "Q", params)


def trees(n, length):
    data = datasets.fetch_treebank_sample()
    train, test = ([t for t in part if len(t.leaves()) <= length] for part in (data.train, data.test))
    X, X_test = ([tree.tokens() for tree in trees] for trees in (train[:n], test))
    return Case(tasks.GrammarParser, X, train[:n], X_test, test, lambda a, b: bracket_scores(a, b).f1, "F1")


def rows(fetch, kind, n, only=None, **params):
    data = fetch()
    if only is not None:
        (X, y), (X_test, y_test) = (
            (X[np.isin(y, only)], y[np.isin(y, only)])
            for X, y in ((data.X_train, data.y_train), (data.X_test, data.y_test))
        )
    else:
        X, y, X_test, y_test = data.X_train, data.y_train, data.X_test, data.y_test
    return Case(kind, X[:n], y[:n], X_test[:2000], y_test[:2000], accuracy, "accuracy", params)


TAGS = ("accuracy", token_accuracy)
SCALE = {"gamma": "scale"}
# Costs to start from, as published: what is chosen beside C is another table's subject.
AS_PUBLISHED = {"mode": "semi_global", "prior": ("BLOSUM62", -11.0, -1.0)}
CASES = {
    "Spanish entities, dicts, 300 sentences": lambda: columns(datasets.fetch_conll2002, 300, tutorial),
    "Spanish entities, dicts, 1000 sentences": lambda: columns(datasets.fetch_conll2002, 1000, tutorial),
    "CoNLL-2000, 500 sentences": lambda: columns(datasets.fetch_conll2000, 500, words_and_tags),
    "treebank tags, 1000 sentences": lambda: columns(datasets.fetch_treebank_tags, 1000, words, TAGS),
    "OCR, one fold": lambda: ocr(None),
    "CLINC150, tf-idf": lambda: taxonomy(datasets.fetch_clinc150, 3000),
    "CLINC150, 100 columns": lambda: taxonomy(datasets.fetch_clinc150, 3000, 100),
    "Amazon, 100 columns": lambda: taxonomy(datasets.fetch_amazon_reviews, 2000, 100),
    "ImCLEF07A, 80 bins as they are": lambda: taxonomy(datasets.fetch_imclef07a, 3000),
    "Lost, candidates": lambda: bags(datasets.fetch_lost),
    "MSRCv2, candidates": lambda: bags(datasets.fetch_msrcv2),
    "PREFAB, 120 pairs": lambda: alignments(datasets.fetch_prefab, 120, mode="semi_global", prior=None),
    "OXBench, 120 pairs, BLOSUM62 as prior": lambda: alignments(datasets.fetch_oxbench, 120, **AS_PUBLISHED),
    "treebank, 500 trees of 15 words": lambda: trees(500, 15),
    "letter, LaRankClassifier, 1500": lambda: rows(datasets.fetch_letter, tasks.LaRankClassifier, 1500, **SCALE),
    "USPS, LaRankClassifier, 1000": lambda: rows(datasets.fetch_usps, tasks.LaRankClassifier, 1000, **SCALE),
    "USPS, CrammerSingerClassifier, 500": lambda: rows(
        datasets.fetch_usps, tasks.CrammerSingerClassifier, 500, **SCALE
    ),
    "USPS, 3 and 8, LaSVMClassifier, 500": lambda: rows(
        datasets.fetch_usps, tasks.LaSVMClassifier, 500, (3, 8), **SCALE
    ),
}
