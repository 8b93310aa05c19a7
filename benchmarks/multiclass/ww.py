"""The machine of Weston and Watkins: certificates, errors beside Crammer and Singer's, and time to a duality gap."""

from __future__ import annotations

import time
import warnings

import numpy as np
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.svm import SVC, LinearSVC

from common.measure import Clock
from common.report import Table, notes
from structsvm import ConvergenceWarning
from structsvm.datasets import fetch_letter
from structsvm.kernel._kernels import Gram, Kernel, Rows
from structsvm.kernel.problem import KernelProblem
from structsvm.progress import Monitor
from structsvm.result import relative_gap
from structsvm.solvers import WestonWatkins
from structsvm.tasks import CrammerSingerClassifier, WestonWatkinsClassifier

GAPS = (1e-1, 1e-2, 1e-3, 1e-4)
LIMIT, QUICK_LIMIT = 30.0, 2.0  # CPU seconds after which a run is given up
N_LETTERS, QUICK_LETTERS = 4000, 500
SPLITS, QUICK_SPLITS = 5, 1
C_GRID = (0.1, 1.0, 10.0, 100.0)
TIMED_C = 10.0
CACHE = 400.0  # MB

CERTIFICATES = {
    "data": ("data", ""),
    "n": ("n", ".0f"),
    "n_classes": ("classes", ".0f"),
    "solver": ("solver", ""),
    "primal": ("primal", ".5f"),
    "dual": ("dual", ".5f"),
    "gap": ("gap", ".2e"),
    "relative": ("relative", ".1e"),
    "n_support": ("alpha > 0", ".0f"),
    "rounds": ("rounds", ".0f"),
    "cpu": ("CPU s", ".3f"),
}
TIMES = {
    "data": ("data", ""),
    "solver": ("solver", ""),
    **{f"cpu {gap:g}": (f"CPU s, gap {gap:g}", ".3f") for gap in GAPS},
    "smallest": ("smallest gap seen", ".1e"),
}
ERRORS = {
    "data": ("data", ""),
    "splits": ("splits", ".0f"),
    "Weston-Watkins, rbf": ("WW, rbf", ".2f"),
    "Crammer-Singer, rbf": ("CS, rbf", ".2f"),
    "SVC, rbf": ("SVC one-vs-one, rbf", ".2f"),
    "Weston-Watkins, linear": ("WW, linear", ".2f"),
    "Crammer-Singer, linear": ("CS, linear", ".2f"),
}


def standard(load):
    X, y = load(return_X_y=True)
    scale = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(scale > 0.0, scale, 1.0), y


def letters(n):
    data = fetch_letter()
    return 2.0 * data.X_train[:n].astype(np.float64) / 15.0 - 1.0, data.y_train[:n]


def data_sets(quick):
    yield "iris", *standard(load_iris)
    yield "wine", *standard(load_wine)
    yield "digits", *standard(load_digits)
    yield "letter", *letters(QUICK_LETTERS if quick else N_LETTERS)


class FirstBelow(Monitor):
    """CPU seconds at which the relative gap was first at most each of GAPS; stops after `limit`."""

    def __init__(self, limit):
        self.limit, self.begin = limit, time.process_time()
        self.times, self.smallest = {}, np.inf

    def end_pass(self, run):
        now = time.process_time() - self.begin
        gap = relative_gap(run.primal, run.dual)
        self.smallest = min(self.smallest, gap)
        for wanted in GAPS:
            if gap <= wanted:
                self.times.setdefault(f"cpu {wanted:g}", now)
        return now > self.limit


def train(X, y, method, monitor):
    """A run on all examples, to the smallest of GAPS or until the monitor stops it."""
    classes, label_ids = np.unique(y, return_inverse=True)
    gram = Gram(Kernel("rbf", gamma=1.0 / (X.shape[1] * X.var())), Rows(X))
    solver = WestonWatkins(TIMED_C, method=method, tol=GAPS[-1], max_iter=10**6, cache_size=CACHE)
    return solver.solve(KernelProblem(gram, label_ids, len(classes)), monitor=monitor)


def run(options):
    sets = list(data_sets(options.quick))
    limit = QUICK_LIMIT if options.quick else LIMIT
    certificates, times = [], []
    for name, X, y in sets:
        for solver in ("cycles", "frank_wolfe"):
            with Clock() as clock:
                monitor = FirstBelow(limit)
                result = train(X, y, solver, monitor).result()
            certificates.append(
                {
                    "data": name,
                    "n": len(y),
                    "n_classes": len(np.unique(y)),
                    "solver": solver,
                    "primal": result.primal,
                    "dual": result.dual,
                    "gap": result.gap,
                    "relative": result.relative_gap,
                    "n_support": result.n_support,
                    "rounds": result.n_iter,
                    "cpu": clock.cpu,
                }
            )
            times.append({"data": name, "solver": solver, "smallest": monitor.smallest} | monitor.times)
    about = f"C = {TIMED_C:g}, RBF kernel with gamma = 'scale', features standardised (letter: 2 x / 15 - 1)"
    yield Table(
        "Weston-Watkins: certificates",
        CERTIFICATES,
        certificates,
        notes(f"""{about}. Primal at the biases that are optimal for w; both objectives recomputed from the
        coefficients at the end.

        Stopped at a relative gap of {GAPS[-1]:g}, or after {limit:g} CPU seconds."""),
    )
    yield Table(
        "Weston-Watkins: CPU seconds to a relative duality gap",
        TIMES,
        times,
        notes(f"""{about}. Empty where the gap was not reached in {limit:g} CPU seconds. Looked at after each round: of
        Frank-Wolfe's, 20 steps on all examples; of cycle steps, one working set of up to 1024."""),
    )
    rows = [errors(name, X, y, options.quick) for name, X, y in sets]
    yield Table(
        "Weston-Watkins: test error in %",
        ERRORS,
        rows,
        notes(f"""A third of the examples held out; C from {C_GRID} by cross-validation in three folds; gamma = 'scale'.
        CS, rbf: CrammerSingerClassifier, without biases; CS, linear: scikit-learn's
        LinearSVC(multi_class="crammer_singer"), which penalises its biases. WW has biases and no penalty on them."""),
    )


def errors(name, X, y, quick):
    """Test errors of one data set, the mean over some splits."""
    n_splits = 1 if name == "letter" else QUICK_SPLITS if quick else SPLITS
    found = {
        "Weston-Watkins, rbf": WestonWatkinsClassifier(tol=1e-2),
        "Crammer-Singer, rbf": CrammerSingerClassifier(tol=1e-2),
        "SVC, rbf": SVC(),
        "Weston-Watkins, linear": WestonWatkinsClassifier(kernel="linear", tol=1e-2),
        "Crammer-Singer, linear": LinearSVC(multi_class="crammer_singer", random_state=0),
    }
    row = {"data": name, "splits": n_splits} | dict.fromkeys(found, 0.0)
    for seed in range(n_splits):
        X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=seed)
        for method, estimator in found.items():
            with warnings.catch_warnings():
                for kind in (ConvergenceWarning, UserWarning, FutureWarning):
                    warnings.simplefilter("ignore", kind)
                search = GridSearchCV(estimator, {"C": C_GRID}, cv=3).fit(X_train, y_train)
            row[method] += 100.0 * (1.0 - search.score(X_test, y_test)) / n_splits
    return row
