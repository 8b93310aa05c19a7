"""Partial labels: the mean pairwise hinge beside the convex loss of Cour and others, and one label against the rest."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from common.measure import Clock
from common.report import Table, notes
from structsvm.datasets import fetch_lost, fetch_msrcv2
from structsvm.tasks import AmbiguousClassifier

GRID = [(C, intercept) for C in (1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0) for intercept in (True, False)]
COLUMNS = {
    "method": ("method", ""),
    "chosen": ("C by cross-validation, * with intercept", ""),
    "accuracy": ("accuracy %", ".1f"),
    "sd": ("sd of folds", ".1f"),
    "ambiguous": ("in candidates %", ".1f"),
    "best": ("best on the test folds", ".1f"),
    "cpu": ("CPU s, final fit", ".2f"),
}


class Clpl:
    """Convex loss for partial labels: psi(mean of s_y over the bag) + sum over the others of psi(-s_z).

    psi is the squared hinge; L-BFGS of scipy.
    """

    def __init__(self, C, n_labels, intercept):
        self.C, self.n_labels, self.intercept = C, n_labels, intercept

    def rows(self, X):
        return np.c_[X, np.ones(len(X))] if self.intercept else X

    def inside(self, S, scores):
        """The margin of each row, to be compared with 1, and its derivatives with respect to the scores."""
        share = S / S.sum(axis=1, keepdims=True)
        return (share * scores).sum(axis=1, keepdims=True), share

    def fit(self, X, bags):
        S = np.zeros((len(X), self.n_labels))
        for row, bag in zip(S, bags, strict=True):
            row[list(bag)] = 1.0
        X = self.rows(X)

        def objective(w):
            scores = X @ w.reshape(X.shape[1], -1)
            value, derivative = self.inside(S, scores)
            low, high = np.maximum(0.0, 1.0 - value), np.maximum(0.0, 1.0 + scores) * (1.0 - S)
            slope = self.C * 2.0 * (high - low * derivative)
            return 0.5 * w @ w + self.C * ((low**2).sum() + (high**2).sum()), (X.T @ slope).ravel() + w

        start = np.zeros(X.shape[1] * self.n_labels)
        self.W = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 1000}).x
        return self

    def predict(self, X):
        return (self.rows(X) @ self.W.reshape(-1, self.n_labels)).argmax(axis=1)


class OneVersusRest(Clpl):
    """Naive: every candidate counts as right, one problem per label."""

    def inside(self, S, scores):
        return np.where(S > 0.0, scores, 1.0), S


METHODS = {
    "mean pairwise hinge, optimum": lambda C, K, intercept: AmbiguousClassifier(
        C=C, tol=0.01, max_iter=100, fit_intercept=intercept, random_state=0
    ),
    "mean pairwise hinge, one online pass": lambda C, K, intercept: AmbiguousClassifier(
        C=C, solver="passive_aggressive", fit_intercept=intercept, random_state=0
    ),
    "CLPL (Cour and others)": Clpl,
    "one label against the rest": OneVersusRest,
}


def run(options):
    for fetch in (fetch_lost, fetch_msrcv2):
        yield compared(fetch(), fetch.__name__.removeprefix("fetch_"), options)


def compared(data, name, options):
    made = Table(
        f"Partial labels: {name} ({len(data.X)} rows, {data.n_labels} labels, {mean_size(data):.2f} candidates a row)",
        COLUMNS,
        notes=notes(
            """
            five folds as the data have them, features standardised on the training folds; C from 0.0001 to 10, and
            whether there is an intercept, by the share of predictions among the candidates on a fifth of the training
            rows, so that no true label is used

            best on the test folds: the accuracy of the best single C and intercept, which nobody knows beforehand

            wrong candidates at random (the assumption of theorem 12) is not what these data have: names of one scene,
            objects of one image come together
            """
        ),
    )
    for method, make in METHODS.items():
        folds = [of_fold(data, fold, make, options) for fold in range(1 if options.quick else 5)]
        values = np.array([values for values, _, _ in folds])
        on_test = np.mean([accuracies for _, _, accuracies in folds], axis=0)
        made.rows.append(
            {
                "method": method,
                "chosen": ", ".join(f"{C:g}{'*' if intercept else ''}" for _, (C, intercept), _ in folds),
                "best": 100 * on_test.max(),
                "accuracy": values[:, 0].mean(),
                "sd": values[:, 0].std(),
                "ambiguous": values[:, 1].mean(),
                "cpu": values[:, 2].mean(),
            }
        )
    return made


def mean_size(data):
    return np.mean([len(candidates) for candidates in data.candidates])


def of_fold(data, fold, make, options):
    test = data.folds == fold
    scale = np.maximum(data.X[~test].std(axis=0), 1e-12)
    X = (data.X - data.X[~test].mean(axis=0)) / scale
    train = np.flatnonzero(~test)
    held = train[np.arange(len(train)) % 5 == 0]
    rest = np.setdiff1d(train, held)

    def bags(rows):
        return [data.candidates[i] for i in rows]

    def inside(model, rows):
        return np.mean([y in bag for y, bag in zip(model.predict(X[rows]), bags(rows), strict=True)])

    def fitted(setting, rows):
        C, intercept = setting
        return make(C, data.n_labels, intercept).fit(X[rows], bags(rows))

    grid = GRID[2:4] if options.quick else GRID
    chosen = max(grid, key=lambda setting: inside(fitted(setting, rest), held))
    with Clock() as clock:
        model = fitted(chosen, train)
    rows = np.flatnonzero(test)

    def accuracy(model):
        return np.mean(model.predict(X[rows]) == data.y[rows])

    on_test = [accuracy(fitted(setting, train)) for setting in grid]
    return [100.0 * accuracy(model), 100.0 * inside(model, rows), clock.cpu], chosen, on_test
