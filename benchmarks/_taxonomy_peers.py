"""Other classifiers on the same matrices: accuracy, tree loss, CPU time to train and to predict."""

from __future__ import annotations

import importlib.util
import warnings

import numpy as np
from _measure import Clock
from _report import Table, notes
from _taxonomy_data import FEATURES, FETCH, halves, splits
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from structsvm.metrics import hierarchical_scores, path_loss, tree_loss
from structsvm.tasks import TaxonomyClassifier

GRID = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
FEW = 2000
SEED = 0
DRAWS = 1000
COLUMNS = {
    "method": ("method", ""),
    "C": ("C", "g"),
    "accuracy": ("acc %", ".2f"),
    "accuracy_spread": ("±", ".2f"),
    "tree_loss": ("Δ-loss", ".4f"),
    "tree_spread": ("±", ".4f"),
    "path_loss": ("path", ".3f"),
    "hf1": ("hF1 %", ".2f"),
    "train": ("train CPU s", ".2f"),
    "predict": ("predict CPU s", ".3f"),
}
NOTES = f"""
trained on the published training and development parts, tested on the test part; ±: standard deviation over {DRAWS}
draws of test documents with replacement; CPU seconds of the best of some runs, on one core
{FEATURES}
C: the one of {", ".join(map(str, GRID))} with the least Δ-loss on a third of the training documents, for each method
(logistic regression and Crammer and Singer's machine: on {FEW} documents of them at most)

tax Δ: TaxonomyClassifier as it comes; flt 0/1: attributes="flat", loss="zero_one"; tax Δ, RBF: kernel="rbf", for
features that are not words; scikit-learn's classifiers with their defaults, but for at most 1000 passes of Crammer and
Singer's machine; HiClass's over LinearSVC, which compare nodes by margins
"""


def run(options):
    """One table a set."""
    for name in FETCH:
        train, test = splits(name)
        if options.quick:
            rng = np.random.default_rng(SEED)
            train, test = (
                train.take(rng.permutation(len(train.y))[:1000]),
                test.take(rng.permutation(len(test.y))[:500]),
            )
        yield table(name, train, test, repeat=1 if options.quick else options.repeat)


def table(name, train, test, *, repeat):
    made = Table(f"Classifiers on {name}", COLUMNS, notes=notes(NOTES))
    if importlib.util.find_spec("hiclass") is None:
        made.notes.append("HiClass was not installed.")
    X, X_test = train.features(test)
    for method, make in methods(train.taxonomy, is_dense=isinstance(X, np.ndarray)).items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            C = chosen(make, train, few=method in ("Crammer-Singer", "logistic regression"))
            fits = []
            for _ in range(1 if method in ("Crammer-Singer", "logistic regression") else repeat):
                model = make(C)
                with Clock() as clock:
                    model.fit(X, train.y)
                fits.append(clock.cpu)
        with Clock() as clock:
            predicted = model.predict(X_test)
        made.rows.append({"method": method, "C": C, "train": min(fits), "predict": clock.cpu} | scores(test, predicted))
    return made


def methods(taxonomy, *, is_dense):
    """Name -> function from C to a classifier."""
    made = {
        "tax Δ": lambda C: TaxonomyClassifier(taxonomy, C=C, random_state=SEED),
        "flt Δ": lambda C: TaxonomyClassifier(taxonomy, C=C, attributes="flat", random_state=SEED),
        "flt 0/1": lambda C: TaxonomyClassifier(taxonomy, C=C, attributes="flat", loss="zero_one", random_state=SEED),
        "LinearSVC": lambda C: LinearSVC(C=C, random_state=SEED),
        "Crammer-Singer": lambda C: LinearSVC(C=C, multi_class="crammer_singer", max_iter=1000, random_state=SEED),
        "logistic regression": lambda C: LogisticRegression(C=C),
    }
    if is_dense:
        made["tax Δ, RBF"] = lambda C: TaxonomyClassifier(taxonomy, C=C, kernel="rbf", random_state=SEED)
    if importlib.util.find_spec("hiclass") is not None:
        made |= hiclass_methods(taxonomy)
    return made


def hiclass_methods(taxonomy):
    """HiClass's three local classifiers over LinearSVC, which take and give label paths."""
    import hiclass

    class MarginSVC(LinearSVC):
        """With what HiClass compares nodes by: margins, as numbers between 0 and 1."""

        def predict_proba(self, X):
            shares = expit(self.decision_function(X))
            return np.column_stack([1.0 - shares, shares]) if shares.ndim == 1 else shares

    class ByPaths:
        def __init__(self, kind, C):
            self.model = kind(local_classifier=MarginSVC(C=C, random_state=SEED))

        def fit(self, X, y):
            self.model.fit(X, np.array([taxonomy.path(label) for label in y]))

        def predict(self, X):
            return np.array([path[-1] for path in self.model.predict(X)])

    kinds = {
        "HiClass, per node": hiclass.LocalClassifierPerNode,
        "HiClass, per parent": hiclass.LocalClassifierPerParentNode,
        "HiClass, per level": hiclass.LocalClassifierPerLevel,
    }
    return {name: (lambda C, kind=kind: ByPaths(kind, C)) for name, kind in kinds.items()}


def chosen(make, train, *, few):
    """The C with the least tree loss on a third of the training documents."""
    rng = np.random.default_rng(SEED)
    if few and len(train.y) > FEW:
        train = train.take(rng.permutation(len(train.y))[:FEW])
    inner, tried = (train.take(places) for places in halves(train.y, rng))
    X_inner, X_tried = inner.features(tried)
    losses = []
    for C in GRID:
        model = make(C)
        model.fit(X_inner, inner.y)
        losses.append(tree_loss(tried.y, model.predict(X_tried), train.taxonomy))
    return GRID[int(np.argmin(losses))]


def scores(test, predicted):
    """Scores with their spreads."""
    right = 100.0 * (predicted == test.y)
    pairs, pair = np.unique(np.stack([test.y, predicted]), axis=1, return_inverse=True)
    losses = np.array([test.taxonomy.loss("tree", *p) for p in pairs.T])[pair.ravel()]
    draws = np.random.default_rng(SEED).integers(0, len(test.y), (DRAWS, len(test.y)))
    return {
        "accuracy": right.mean(),
        "accuracy_spread": right[draws].mean(axis=1).std(),
        "tree_loss": losses.mean(),
        "tree_spread": losses[draws].mean(axis=1).std(),
        "path_loss": path_loss(test.y, predicted, test.taxonomy),
        "hf1": 100.0 * hierarchical_scores(test.y, predicted, test.taxonomy).f1,
    }
