"""Sets of classes and recall of sets of labels, beside MAPIE on the same estimator and the same splits."""

from __future__ import annotations

import warnings

import numpy as np
from mapie.classification import SplitConformalClassifier
from mapie.risk_control import MultiLabelClassificationController
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from common.report import Table, notes
from risk.pools import SEED
from structsvm.datasets import fetch_multilabel_yeast
from structsvm.risk import ConformalSets, LossController
from structsvm.tasks import MultilabelClassifier

SPLITS, QUICK, ALPHA = 200, 10, 0.1
COLUMNS = {
    "data": ("data", ""),
    "way": ("by", ""),
    "kept": ("promise: at least 90 %; found %", ".2f"),
    "size": ("labels of a set", ".2f"),
}
ABOUT = """
Half of the examples that the estimator has not seen are held out, the other half is what comes later; means over all
splits. Classes: the true one is in the set. Sets of labels: recall, by conformal risk control. MAPIE has its own
defaults (the score "lac"; thresholds 0.01 apart).
"""


def run(options):
    made = Table("Beside MAPIE", COLUMNS, notes=notes(ABOUT))
    n_splits = QUICK if options.quick else SPLITS
    X, y = load_digits(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LogisticRegression(C=1e-4, max_iter=200).fit(X[:300], y[:300])
        for name, way in {"ConformalSets": our_sets, "MAPIE": their_sets}.items():
            made.rows.append({"data": "digits", "way": name} | mean_of(way, model, X[300:], y[300:], n_splits))
            yield made
        data = fetch_multilabel_yeast()
        X, y = np.vstack([data.X_train, data.X_test]), np.vstack([data.y_train, data.y_test])
        model = MultilabelClassifier(probability=True, C=1.0, random_state=SEED).fit(X[:750], y[:750])
        for name, way in {"LossController": our_recall, "MAPIE": their_recall}.items():
            made.rows.append({"data": "yeast", "way": name} | mean_of(way, model, X[750:], y[750:], n_splits))
            yield made


def mean_of(way, model, X, y, n_splits):
    """Means over splits of what a way keeps, and of its sizes."""
    rng, found = np.random.default_rng(SEED), []
    for _ in range(n_splits):
        order = rng.permutation(len(X))
        held, later = order[: len(X) // 2], order[len(X) // 2 :]
        found.append(way(model, X[held], y[held], X[later], y[later]))
    kept, size = np.mean(found, axis=0)
    return {"kept": 100.0 * kept, "size": size}


def our_sets(model, X, y, later, truth):
    masks = ConformalSets(model, alpha=ALPHA).calibrate(X, y).predict_masks(later)
    return masks[np.arange(len(truth)), truth].mean(), masks.sum(axis=1).mean()


def their_sets(model, X, y, later, truth):
    masks = SplitConformalClassifier(model, confidence_level=1.0 - ALPHA).conformalize(X, y).predict_set(later)[1]
    masks = masks[:, :, 0]
    return masks[np.arange(len(truth)), truth].mean(), masks.sum(axis=1).mean()


def our_recall(model, X, y, later, truth):
    found = LossController(model, loss="missed", alpha=ALPHA).calibrate(X, y)
    sets = np.zeros(truth.shape, dtype=bool)
    for row, own in zip(sets, found.predict(later), strict=True):
        row[own] = True
    return recall(sets, truth), sets.sum(axis=1).mean()


def their_recall(model, X, y, later, truth):
    found = MultiLabelClassificationController(model.predict_proba, risk="recall", target_level=1.0 - ALPHA)
    sets = found.calibrate(X, y).predict(later).reshape(truth.shape)
    return recall(sets, truth), sets.sum(axis=1).mean()


def recall(sets, truth):
    """The mean share of the true labels that are in the sets."""
    return ((sets & (truth > 0)).sum(axis=1) / np.maximum((truth > 0).sum(axis=1), 1)).mean()
