"""Simulated taxonomies of 100 to 10,000 classes: time and memory."""

from __future__ import annotations

import json
import sys

import numpy as np

from common.measure import Clock, peak, run_module
from common.report import Table, notes

SIZES, QUICK_SIZES = (100, 300, 1000, 3000, 10_000), (100, 300)
PER_CLASS, N_WORDS, N_TEST = 5, 100_000, 2000
COLUMNS = {
    "n_classes": ("classes", "d"),
    "n_documents": ("documents", "d"),
    "n_features": ("features", "d"),
    "n_pairs": ("features x nodes, 1e6", ".1f"),
    "n_weights": ("weights, 1e6", ".1f"),
    "n_full": ("full rows", "d"),
    "train": ("train CPU s", ".2f"),
    "predict": ("predict CPU ms a document", ".3f"),
    "before": ("peak MB before", ".0f"),
    "peak": ("peak MB", ".0f"),
    "accuracy": ("acc %", ".2f"),
    "tree_loss": ("Δ-loss", ".3f"),
}
NOTES = f"""
make_taxonomy with {PER_CLASS} documents a class of 40 words on average, out of {N_WORDS}; tested on {N_TEST} others;
(1 + ln tf) idf; TaxonomyClassifier as it comes (C = 1, LaRank, 4 passes), one core, a process for each row

peak: largest resident set of the process; before: what it was when training began, documents and all modules included

full rows: features that have a weight for every node; all others have weights for the nodes below which they occur
in training (max_weights = 2**25)
"""


def run(options):
    made = Table("100 to 10,000 classes", COLUMNS, notes=notes(NOTES))
    for size in QUICK_SIZES if options.quick else SIZES:
        made.rows.append(run_module(__name__, size))
    yield made


def measure(n_classes):
    """Train and predict; returns the row."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    from structsvm.datasets import make_taxonomy
    from structsvm.metrics import tree_loss
    from structsvm.tasks import TaxonomyClassifier

    language = {"n_leaves": n_classes, "n_words": N_WORDS, "mean_length": 40.0}
    texts, y, taxonomy = make_taxonomy(PER_CLASS * n_classes, **language, random_state=0)
    # The first documents have one leaf each, in order; the last ones have random leaves.
    test_texts, y_test, _ = make_taxonomy(n_classes + N_TEST, **language, random_state=1)
    vectorizer = TfidfVectorizer(sublinear_tf=True, dtype=np.float32)
    X, X_test = vectorizer.fit_transform(texts), vectorizer.transform(test_texts[-N_TEST:])
    y_test = y_test[-N_TEST:]
    before = peak()
    with Clock() as train:
        model = TaxonomyClassifier(taxonomy, random_state=0).fit(X, y)
    highest = peak()
    with Clock() as predict:
        predicted = model.predict(X_test)
    oracle = model.model_.oracle
    return {
        "n_classes": n_classes,
        "n_documents": X.shape[0],
        "n_features": X.shape[1],
        "n_pairs": X.shape[1] * (len(taxonomy) - 1) / 1e6,
        "n_weights": oracle.n_features / 1e6,
        "n_full": oracle.n_full,
        "train": train.cpu,
        "predict": 1e3 * predict.cpu / N_TEST,
        "before": before,
        "peak": highest,
        "accuracy": 100.0 * float(np.mean(predicted == y_test)),
        "tree_loss": tree_loss(y_test, predicted, taxonomy),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measure(int(sys.argv[1]))))
