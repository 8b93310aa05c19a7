"""Dense rows: embeddings of documents, against linear classifiers and against the matrix products they need."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from common.measure import repeat
from common.report import Table, notes, verdict
from structsvm.metrics import tree_loss
from structsvm.tasks import TaxonomyClassifier
from taxonomy.data import FETCH, halves, splits

GRID = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
SIZES = (100, 384)
SEED = 0
TRAINING, PREDICTION = 4.0, 2.0  # times the products
COLUMNS = {
    "method": ("method", ""),
    "C": ("C", "g"),
    "accuracy": ("acc %", ".2f"),
    "spread": ("±", ".2f"),
    "tree_loss": ("Δ-loss", ".4f"),
    "train": ("train CPU s", ".3f"),
    "products": ("its products, in blocks", ".3f"),
    "rows": ("row by row", ".3f"),
    "predict": ("predict CPU ms", ".2f"),
    "product": ("its product", ".2f"),
}
NOTES = f"""
rows: the leading columns of a singular value decomposition of the training documents' tf-idf, {SIZES} of them, as
float32, for texts; ImCLEF07A's own 80 columns and as many as its decomposition has; published parts, tested on the test
part; ±: standard error; CPU seconds of the best of some runs, on one core, one thread

C: the one of {", ".join(map(str, GRID))} with the best accuracy on a third of the training documents, for each method;
tax Δ: TaxonomyClassifier as it comes; flt: the same without a taxonomy; 30 passes: max_iter=30; scikit-learn's
classifiers with their defaults, but for at most 2000 iterations

products: NumPy's, float32, in the same process: of prediction all test rows with the weights of all nodes, which is one
product; of training as many rows as the training looked at (`result_.n_argmax`), in blocks of 128, and one by one, as
weights that change from row to row ask for
"""


def run(options):
    for name in FETCH:
        train, test = splits(name)
        if options.quick:
            places = np.random.default_rng(SEED).permutation(len(train.y))[:1500]
            train = train.take(places)
        for size in SIZES[:1] if options.quick else SIZES:
            X, X_test = embedded(train, test, size)
            if X is not None:
                yield table(f"{name}, {X.shape[1]} dense columns", X, X_test, train, test, options)


def embedded(train, test, size):
    """Rows of numbers for documents; (None, None) if these have no such number of columns."""
    X, X_test = train.features(test)
    if isinstance(X, np.ndarray):
        return (X.astype(np.float32), X_test.astype(np.float32)) if size == SIZES[0] else (None, None)
    svd = TruncatedSVD(size, random_state=SEED)
    return svd.fit_transform(X).astype(np.float32), svd.transform(X_test).astype(np.float32)


def methods(taxonomy):
    """Name -> function from C to a classifier."""
    return {
        "tax Δ": lambda C: TaxonomyClassifier(taxonomy, C=C, random_state=SEED),
        "tax Δ, 30 passes": lambda C: TaxonomyClassifier(taxonomy, C=C, max_iter=30, random_state=SEED),
        "flt": lambda C: TaxonomyClassifier(C=C, random_state=SEED),
        "flt, 30 passes": lambda C: TaxonomyClassifier(C=C, max_iter=30, random_state=SEED),
        "LinearSVC": lambda C: LinearSVC(C=C, max_iter=2000, random_state=SEED),
        "logistic regression": lambda C: LogisticRegression(C=C, max_iter=2000),
    }


def table(title, X, X_test, train, test, options):
    made = Table(title, COLUMNS, notes=notes(NOTES))
    for method, make in methods(train.taxonomy).items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            times = 1 if "logistic" in method else options.repeat
            made.rows.append({"method": method} | measured(make, X, X_test, train, test, times))
    made.notes += targets(made.rows)
    return made


def measured(make, X, X_test, train, test, times):
    C = chosen(make, X, train.y)
    model, fits = repeat(lambda: make(C).fit(X, train.y), times)
    predicted, predictions = repeat(lambda: model.predict(X_test), 5)
    right = predicted == test.y
    W = np.ascontiguousarray(model.coef_.T, dtype=np.float32)
    found = {
        "C": C,
        "accuracy": 100.0 * right.mean(),
        "spread": 100.0 * right.std() / len(right) ** 0.5,
        "tree_loss": tree_loss(test.y, predicted, test.taxonomy),
        "train": fits.cpu,
        "predict": 1e3 * predictions.cpu,
        "product": 1e3 * repeat(lambda: X_test @ W, 9)[1].cpu,
    }
    if hasattr(model, "result_"):
        found["products"] = of_training(X, W, model.result_.n_argmax, 128, times)
        # So many products of single rows take long enough to be measured on a tenth.
        found["rows"] = 10.0 * of_training(X, W, model.result_.n_argmax // 10, 1, times)
    return found


def chosen(make, X, y):
    """The C of the best accuracy on a third of the training documents."""
    inner, tried = halves(y, np.random.default_rng(SEED))
    return max(GRID, key=lambda C: np.mean(make(C).fit(X[inner], y[inner]).predict(X[tried]) == y[tried]))


def of_training(X, W, n_rows, size, times):
    """CPU seconds of the products of so many rows with the weights, in blocks of a size."""

    def products():
        done = 0
        while done < n_rows:
            start = done % len(X)
            done += len(X[start : start + size] @ W)

    return repeat(products, times)[1].cpu


def targets(rows):
    ours = max((row for row in rows if row["method"][:3] in ("tax", "flt")), key=lambda row: row["accuracy"])
    best = max((row for row in rows if row["method"][:3] not in ("tax", "flt")), key=lambda row: row["accuracy"])
    return [
        verdict(
            "accuracy not below the best's by more than its standard error",
            f"{ours['method']} {ours['accuracy']:.2f}, {best['method']} {best['accuracy']:.2f}",
            ours["accuracy"] >= best["accuracy"] - best["spread"],
        ),
        *(
            verdict(f"{what} of {row['method']} within {most:g} times its products", f"{ratio:.1f}", ratio <= most)
            for row in rows
            if "products" in row
            for what, most, ratio in (
                ("training", TRAINING, row["train"] / row["products"]),
                ("prediction", PREDICTION, row["predict"] / row["product"]),
            )
        ),
    ]
