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
from structsvm import LaRank
from structsvm.metrics import tree_loss
from structsvm.tasks import TaxonomyClassifier
from taxonomy.data import halves, splits

GRID = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)
SIZES = {"CLINC150": (100, 384), "Amazon": (100,), "ImCLEF07A": (80,)}
UNITS = "ImCLEF07A"  # whose columns are shown in other units too
MOST = 3000  # documents to train on
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
rows: the leading columns of a singular value decomposition of the training documents' tf-idf, as float32, for texts;
ImCLEF07A's own 80, each with mean 0 and variance 1; divided by the root of their mean squared length; published
parts, of the training ones {MOST} documents at most, tested on the test part; ±: standard error; CPU seconds of the
best of some runs, on one core, one thread

C: the one of {", ".join(map(str, GRID))} with the best accuracy on a third of the training documents, for each method;
tax Δ: TaxonomyClassifier as it comes; flt: the same without a taxonomy; squares: squared slacks, 20 passes; log:
loss="log"; scikit-learn's classifiers with their defaults, but for at most 100 iterations of logistic regression

products: NumPy's, float32, in the same process: of prediction all test rows with the weights of all nodes, which is one
product; of training as many rows as the training looked at (`result_.n_argmax`), in blocks of 128, and one by one, as
weights that change from row to row ask for
"""
UNITS_COLUMNS = {
    "columns": ("columns", ""),
    "method": ("method", ""),
    "as_is": ("as they are, acc %", ".2f"),
    "C": ("C", "g"),
    "scaled": ("divided by their root mean squares", ".2f"),
    "C_scaled": ("C", "g"),
}
UNITS_NOTES = f"""
the columns of {UNITS} as above, C chosen in the same way; "in other units": times factors from 1/30 to 30, evenly in
the logarithm; flt: 20 passes
"""


def run(options):
    for name, sizes in SIZES.items():
        train, test = splits(name)
        places = np.random.default_rng(SEED).permutation(len(train.y))[: 400 if options.quick else MOST]
        train = train.take(places)
        for size in sizes[:1] if options.quick else sizes:
            X, X_test = embedded(train, test, size)
            yield table(f"{name}, {size} dense columns", X, X_test, train, test, options)
            if name == UNITS:
                yield units(X, X_test, train.y, test.y)


def embedded(train, test, size):
    """Rows of numbers for documents."""
    X, X_test = train.features(test)
    if not isinstance(X, np.ndarray):
        svd = TruncatedSVD(size, random_state=SEED)
        X, X_test = svd.fit_transform(X), svd.transform(X_test)
    return of_mean_length_1(X, X_test)


def of_mean_length_1(X, X_test):
    length = np.sqrt(np.square(X).sum(axis=1).mean())
    return (X / length).astype(np.float32), (X_test / length).astype(np.float32)


def units(X, X_test, y, y_test):
    """Cost of columns in other units."""
    made = Table("Columns in other units", UNITS_COLUMNS, notes=notes(UNITS_NOTES))
    factors = 30.0 ** np.random.default_rng(SEED).uniform(-1.0, 1.0, X.shape[1])
    makers = {
        "flt": lambda C: TaxonomyClassifier(C=C, max_iter=20, random_state=SEED),
        "flt, squares": squares(None),
        "logistic regression": logistic,
    }
    for columns, factor in (("as above", 1.0), ("in other units", factors)):
        roots = np.sqrt(np.square(X * factor).mean(axis=0))
        for method, make in makers.items():
            row = {"columns": columns, "method": method}
            for key, C_key, scale in (("as_is", "C", factor), ("scaled", "C_scaled", factor / roots)):
                A, A_test = of_mean_length_1(X * scale, X_test * scale)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    row[C_key] = chosen(make, A, y)
                    row[key] = 100.0 * make(row[C_key]).fit(A, y).score(A_test, y_test)
            made.rows.append(row)
    return made


def squares(taxonomy):
    def make(C):
        solver = LaRank(C=C, penalty="quadratic", max_iter=20, random_state=SEED)
        return TaxonomyClassifier(taxonomy, solver=solver)

    return make


def logistic(C):
    return LogisticRegression(C=C, max_iter=100)


def methods(taxonomy):
    """Name -> function from C to a classifier."""
    return {
        "tax Δ": lambda C: TaxonomyClassifier(taxonomy, C=C, random_state=SEED),
        "flt": lambda C: TaxonomyClassifier(C=C, random_state=SEED),
        "flt, squares": squares(None),
        "flt, log": lambda C: TaxonomyClassifier(loss="log", C=C, random_state=SEED),
        "LinearSVC": lambda C: LinearSVC(C=C, random_state=SEED),
        "logistic regression": logistic,
    }


def table(title, X, X_test, train, test, options):
    made = Table(title, COLUMNS, notes=notes(NOTES))
    for method, make in methods(train.taxonomy).items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            times = options.repeat if method[:3] in ("tax", "flt") else 1
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
            verdict(f"{what} of {row['method']} within {most:g} times its products{how}", f"{ratio:.1f}", ratio <= most)
            for row in rows
            if "products" in row
            for what, most, how, ratio in (
                ("training", TRAINING, ", row by row", row["train"] / row["rows"]),
                ("training", TRAINING, ", in blocks", row["train"] / row["products"]),
                ("prediction", PREDICTION, "", row["predict"] / row["product"]),
            )
        ),
    ]
