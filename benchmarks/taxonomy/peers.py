"""Other classifiers on the same matrices: accuracy, tree loss, CPU time to train and to predict."""

from __future__ import annotations

import importlib.util
import warnings

import numpy as np
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from common.measure import Clock
from common.report import Table, notes, verdict
from structsvm.metrics import hierarchical_scores, path_loss, tree_loss
from structsvm.tasks import TaxonomyClassifier
from taxonomy.data import FEATURES, FETCH, halves, splits

GRID = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
FEW = 2000
FASTER = 5.0  # than HiClass
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
(logistic regression, in HiClass too, and Crammer and Singer's machine: on {FEW} documents of them at most)

tax Δ: TaxonomyClassifier as it comes; flt 0/1: attributes="flat", loss="zero_one"; tax Δ, RBF: kernel="rbf", for
features that are not words; scikit-learn's classifiers with their defaults, but for at most 1000 passes of Crammer and
Singer's machine; HiClass's over logistic regression, as they come, and over LinearSVC, which compare nodes by margins
"""


def run(options):
    """Yield one table per set."""
    for name in FETCH:
        train, test = splits(name)
        if options.quick:
            rng = np.random.default_rng(SEED)
            train, test = (
                train.take(rng.permutation(len(train.y))[:300]),
                test.take(rng.permutation(len(test.y))[:300]),
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
            is_slow = method == "Crammer-Singer" or "logistic" in method
            C = chosen(make, train, few=is_slow)
            fits = []
            for _ in range(1 if is_slow else repeat):
                model = make(C)
                with Clock() as clock:
                    model.fit(X, train.y)
                fits.append(clock.cpu)
        with Clock() as clock:
            predicted = model.predict(X_test)
        made.rows.append({"method": method, "C": C, "train": min(fits), "predict": clock.cpu} | scores(test, predicted))
    made.notes += targets(made.rows)
    return made


def targets(rows):
    """Verdicts on the targets, for the better of our two with the taxonomy's loss and attributes."""
    ours = min((row for row in rows if row["method"].startswith("tax")), key=lambda row: row["tree_loss"])
    others = [row for row in rows if not row["method"].startswith(("tax", "flt"))]
    least, most = min(row["tree_loss"] for row in others), max(row["accuracy"] for row in others)
    ratios = {row["method"]: row["train"] / ours["train"] for row in others if "HiClass" in row["method"]}
    name = ours["method"]
    return [
        verdict("lowest Δ-loss", f"{name} {ours['tree_loss']:.4f}, the others {least:.4f}", ours["tree_loss"] < least),
        verdict(
            "accuracy not below the best's by more than its spread",
            f"{name} {ours['accuracy']:.2f}, the others {most:.2f}",
            ours["accuracy"] >= most - ours["accuracy_spread"],
        ),
        *(
            verdict(f"{FASTER:g} times as fast as {method}", f"{ratio:.1f}", ratio >= FASTER)
            for method, ratio in ratios.items()
        ),
    ]


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
    """HiClass's three local classifiers, over logistic regression (the default) and LinearSVC, by label paths."""
    import hiclass

    class MarginSVC(LinearSVC):
        """With the score by which HiClass compares nodes: margins, mapped to [0, 1]."""

        def predict_proba(self, X):
            shares = expit(self.decision_function(X))
            return np.column_stack([1.0 - shares, shares]) if shares.ndim == 1 else shares

    class ByPaths:
        def __init__(self, kind, local_classifier):
            self.model = kind(local_classifier=local_classifier)

        def fit(self, X, y):
            self.model.fit(X, np.array([taxonomy.path(label) for label in y]))

        def predict(self, X):
            return np.array([path[-1] for path in self.model.predict(X)])

    kinds = {
        "HiClass, per node": hiclass.LocalClassifierPerNode,
        "HiClass, per parent": hiclass.LocalClassifierPerParentNode,
        "HiClass, per level": hiclass.LocalClassifierPerLevel,
    }
    local = {"logistic": lambda C: LogisticRegression(C=C), "LinearSVC": lambda C: MarginSVC(C=C, random_state=SEED)}
    return {
        f"{name}, {classifier}": (lambda C, kind=kind, make=make: ByPaths(kind, make(C)))
        for classifier, make in local.items()
        for name, kind in kinds.items()
    }


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
