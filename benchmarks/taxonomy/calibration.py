"""Probabilities: how well they are calibrated, beside scikit-learn's, and what they cost."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from common.measure import Clock, repeat
from common.report import Table, notes, verdict
from structsvm.metrics import calibration_scores
from structsvm.tasks import LaRankClassifier, TaxonomyClassifier
from structsvm.tasks.taxonomy.model import TaxonomyModel
from taxonomy.data import FEATURES, halves, splits

GRID = (1.0, 10.0, 100.0)
MOST = 3000  # documents to train on
SETS = ("CLINC150", "ImCLEF07A")
SEED = 0
BINS = 15
COLUMNS = {
    "method": ("method", ""),
    "C": ("C", "g"),
    "accuracy": ("acc %", ".2f"),
    "log_loss": ("log loss", ".4f"),
    "error": ("calibration error %", ".2f"),
    "confidence": ("mean confidence %", ".2f"),
    "train": ("train CPU s", ".2f"),
    "share": ("of it for probabilities %", ".0f"),
}
NOTES = f"""
trained on the published training and development parts, {MOST} documents of them at most, tested on the test part;
without Amazon, many of whose classes have fewer documents than there are folds

{FEATURES}

C: the one of {", ".join(map(str, GRID))} with the least log loss on a third of the training documents

tax Δ: TaxonomyClassifier as it comes; flt: the same without a taxonomy; log: loss="log", whose scores are log-odds

calibration error: documents by their highest probability in {BINS} bins of equal size, the mean distance of its mean
and the accuracy (expected calibration error); calibrated LinearSVC: CalibratedClassifierCV, 5 folds, one sigmoid per
class or one temperature, in one model (ensemble=False)
"""


def run(options):
    for name in SETS[:1] if options.quick else SETS:
        train, test = splits(name)
        places = np.random.default_rng(SEED).permutation(len(train.y))[: 1500 if options.quick else MOST]
        train = train.take(places)
        made = Table(f"Probabilities on {name}", COLUMNS, notes=notes(NOTES))
        X, X_test = train.features(test)
        for method, make in methods(train.taxonomy, is_dense=isinstance(X, np.ndarray)).items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", (ConvergenceWarning, FutureWarning, UserWarning))
                made.rows.append({"method": method} | measured(make, train, test, X, X_test, options))
        made.notes += targets(made.rows)
        yield made


def methods(taxonomy, *, is_dense):
    def calibrated(C, method):
        return CalibratedClassifierCV(LinearSVC(C=C, random_state=SEED), method=method, ensemble=False)

    made = {
        "tax Δ": lambda C: TaxonomyClassifier(taxonomy, C=C, random_state=SEED),
        "flt": lambda C: TaxonomyClassifier(C=C, random_state=SEED),
        "flt, log": lambda C: TaxonomyClassifier(loss="log", C=C, random_state=SEED),
        "LinearSVC, sigmoids": lambda C: calibrated(C, "sigmoid"),
        "LinearSVC, temperature": lambda C: calibrated(C, "temperature"),
        "logistic regression": lambda C: LogisticRegression(C=C, max_iter=100),
    }
    if is_dense:
        made["LaRank, RBF"] = lambda C: LaRankClassifier(C=C, probability=True, random_state=SEED)
    return made


def measured(make, train, test, X, X_test, options):
    C = chosen(make, train)
    with Clock() as clock:
        model = make(C).fit(X, train.y)
    p = model.predict_proba(X_test)
    right = model.classes_[p.argmax(axis=1)] == test.y
    found = {
        "C": C,
        "accuracy": 100.0 * right.mean(),
        "log_loss": loss_of(test.y, p, model.classes_),
        "error": 100.0 * calibration_scores(p.max(axis=1), right, n_bins=BINS).error,
        "confidence": 100.0 * p.max(axis=1).mean(),
        "train": clock.cpu,
    }
    if isinstance(model, TaxonomyClassifier) and model.loss != "log":
        with_it = repeat(lambda: make(C).fit(X, train.y), options.repeat)[1].cpu
        TaxonomyModel.calibrates = False
        without = repeat(lambda: make(C).fit(X, train.y), options.repeat)[1].cpu
        TaxonomyModel.calibrates = True
        found |= {"train": with_it, "share": 100.0 * (1.0 - without / with_it)}
    return found


def chosen(make, train):
    """The C with the least log loss on a third of the training documents."""
    inner, tried = (train.take(places) for places in halves(train.y, np.random.default_rng(SEED)))
    X_inner, X_tried = inner.features(tried)

    def loss(C):
        model = make(C).fit(X_inner, inner.y)
        return loss_of(tried.y, model.predict_proba(X_tried), model.classes_)

    return min(GRID, key=loss)


def loss_of(y, p, classes):
    """The log loss; a label that was not seen in training counts as one of probability 1e-6."""
    known = np.isin(y, classes)
    places = np.searchsorted(classes, np.where(known, y, classes[0]))
    found = np.where(known, p[np.arange(len(y)), places], 0.0)
    return float(-np.log(np.maximum(found, 1e-6)).mean())


def targets(rows):
    ours = min((row for row in rows if row["method"][:3] in ("tax", "flt")), key=lambda row: row["log_loss"])
    peer = min((row for row in rows if row["method"].startswith("LinearSVC")), key=lambda row: row["log_loss"])
    return [
        verdict(
            f"{what} no higher than that of calibrated LinearSVC",
            f"{ours['method']} {ours[key]:.4g}, {peer['method']} {peer[key]:.4g}",
            ours[key] <= peer[key],
        )
        for what, key in (("log loss", "log_loss"), ("calibration error", "error"))
    ]
