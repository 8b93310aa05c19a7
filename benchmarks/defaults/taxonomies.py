"""Taxonomies: TaxonomyClassifier() beside flat linear classifiers and HiClass, on texts and on dense columns."""

from __future__ import annotations

import importlib.util
import warnings

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from defaults.methods import ACCURACY, Method, Trained, compared
from structsvm.tasks import TaxonomyClassifier
from taxonomy.data import FEATURES, splits
from taxonomy.peers import hiclass_methods

GRID = [{"C": C} for C in (0.01, 0.1, 1.0, 10.0, 100.0)]
DENSE = GRID[:-1] + [{"C": C, "scaled": True} for C in (0.001, 0.01, 0.1, 1.0)]
PASSES = 200
SETS = [
    ("ImCLEF07A", "80 bins as they are"), ("ImCLEF07A", "80 bins"), ("CLINC150", "words"), ("CLINC150", 100),
    ("Amazon", "words"), ("Amazon", 100), ("CLINC150", 384), ("Amazon", 384),
]  # fmt: skip
ABOUT = f"""
{FEATURES}
as they are: without that; dense columns: the first components of those features (TruncatedSVD), float32

LinearSVC and LogisticRegression (at most {PASSES} iterations): over the leaves, C 0.01 to 100, on dense columns to
10 and after StandardScaler ("scaled") 0.001 to 1. HiClass: a classifier per parent node or per level, C 0.01 to 100
"""


def run(options):
    for name, kind in SETS[1:4] if options.quick else SETS:
        title = f"{name}, {kind if isinstance(kind, str) else f'{kind} dense columns'}: accuracy"
        if options.only not in title:
            continue
        train, test = splits(name)
        if options.quick:
            train, test = train.take(np.arange(0, len(train.y), 10)), test.take(np.arange(0, len(test.y), 5))
        X, X_test = matrices(train, test, kind)
        made = methods(train.taxonomy, is_dense=isinstance(X, np.ndarray))
        yield from compared(title, made, (X, train.y), (X_test, test.y), ACCURACY, ABOUT + absent(), options)


def matrices(train, test, kind):
    if kind == "80 bins as they are":
        return train.raw.astype(np.float32), test.raw.astype(np.float32)
    X, X_test = train.features(test)
    if isinstance(kind, str):
        return X, X_test
    projection = TruncatedSVD(kind, random_state=0).fit(X)
    return projection.transform(X).astype(np.float32), projection.transform(X_test).astype(np.float32)


def methods(taxonomy, *, is_dense):
    grid = DENSE if is_dense else GRID
    local = ["per parent, logistic"] if is_dense else ["per parent, LinearSVC", "per level, LinearSVC"]
    makers = {} if absent() else hiclass_methods(taxonomy)
    return [
        Method("structsvm", lambda X, y, setting: ours(taxonomy, X, y, setting), takes_jobs=True),
        Method("structsvm, loss=\"log\"", lambda X, y, setting: ours(taxonomy, X, y, {"loss": "log"} | setting)),
        Method(
            "LogisticRegression",
            lambda X, y, s: flat(LogisticRegression(C=s["C"], max_iter=PASSES), X, y, s),
            grid,
            "scikit-learn",
        ),
        Method("LinearSVC", lambda X, y, s: flat(LinearSVC(C=s["C"], random_state=0), X, y, s), grid, "scikit-learn"),
        *(
            Method(name, lambda X, y, s, make=make: flat(make(s["C"]), X, y, s), GRID, "hiclass")
            for name, make in makers.items()
            if name.removeprefix("HiClass, ") in local
        ),
    ]  # fmt: skip


def ours(taxonomy, X, y, setting):
    """Chosen, and once more without the choice: a training per loss."""
    if "again" in setting:
        trained = [TaxonomyClassifier(taxonomy, random_state=0, **one).fit(X, y) for one in setting["again"]]
        return Trained(trained[0].predict)
    classifier = TaxonomyClassifier(taxonomy, random_state=0, **setting).fit(X, y)
    losses = {loss: row[0] for loss, row in classifier.validation_.get("losses", {}).items()}
    chosen = {loss: f"C {C:g} passes {classifier.results_[loss].n_iter}" for loss, C in losses.items()}
    again = [{"loss": loss, "C": C} for loss, C in losses.items()]
    if not losses:
        chosen = {"C": float(classifier.C_), "passes": classifier.n_iter_}
        again = [setting | {"C": classifier.C_}]
    return Trained(classifier.predict, chosen, {"again": again})


def flat(classifier, X, y, setting):
    model = make_pipeline(StandardScaler(), classifier) if setting.get("scaled") else classifier
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    return Trained(model.predict)


def absent():
    return "" if importlib.util.find_spec("hiclass") else "\nHiClass was not installed\n"
