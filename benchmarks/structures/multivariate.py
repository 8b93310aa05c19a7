"""F1, break-even point and ROC area at few positives: losses of whole samples beside machines of rows."""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array, csr_matrix
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import f1_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.svm import LinearSVC

from common.measure import run_command
from common.report import Table, notes
from structsvm.datasets import fetch_20newsgroups, fetch_adult, fetch_w8a
from structsvm.features.sparse import as_rows
from structsvm.metrics import break_even_point
from structsvm.oracles.ranking import Groups, RankingOracle
from structsvm.tasks import MultivariateClassifier
from structsvm.tasks.common.intercept import with_intercept

TIMED, BESIDE, SMALL = "Time against the number of rows", "Beside SVMperf, C = 0.1", "Losses of whole samples"
LOSSES = ("f1", "prbep", "roc_area", "error")
GRID = tuple(10.0**k for k in range(-3, 2))
COLUMNS = {
    "data": ("data", ""),
    "machine": ("machine", ""),
    "bound": ("hinge", ""),
    "C": ("C", ".3g"),
    "f1": ("F1 %", ".2f"),
    "best_f1": ("F1 %, best training threshold", ".2f"),
    "prbep": ("break-even point %", ".2f"),
    "area": ("ROC area %", ".2f"),
    "cpu": ("CPU s with the choice", ".1f"),
}
PEER = {
    "data": ("data", ""),
    "loss": ("loss", ""),
    "ours": ("objective", ".2f"),
    "theirs": ("of SVMperf's weights", ".2f"),
    "cosine": ("cosine of the weights", ".4f"),
    "area": ("ROC area %", ".2f"),
    "their_area": ("SVMperf's", ".2f"),
    "cpu": ("CPU s", ".2f"),
    "their_cpu": ("SVMperf's", ".2f"),
}
NUMBERS = {"f1": 1, "error": 2, "prbep": 3, "roc_area": 10}  # numbers of losses in SVMperf
TIMES = {
    "loss": ("loss", ""),
    "n": ("rows", ","),
    "cpu": ("CPU s", ".2f"),
    "rounds": ("rounds", "d"),
    "round": ("microseconds a row and round", ".2f"),
}


def thinned(X, y, share, seed=0):
    """All negatives, and so many positives that they have this share; None: as it is."""
    if share is None:
        return X, y
    positive, negative = np.flatnonzero(y), np.flatnonzero(~y)
    n = min(round(len(negative) * share / (1.0 - share)), len(positive))
    kept = np.random.default_rng(seed).choice(positive, n, replace=False)
    rows = np.sort(np.concatenate([negative, kept]))
    return X[rows], y[rows]


def small_sets():
    adult = fetch_adult()
    files = [f"{os.environ['STRUCTSVM_DATA']}/linear_rcv1_small/rcv1_small.{part}.svm.gz" for part in ("train", "test")]
    rcv1 = [load_svmlight_file(file, n_features=47152) for file in files]
    return {
        "RCV1, 1000 documents": (*rcv1[0], *rcv1[1], (0.05, 0.1, None)),
        "Adult": (adult.X_train, adult.y_train, adult.X_test, adult.y_test, (0.01, 0.05, 0.1)),
    }


def large_sets():
    w8a, news = fetch_w8a(), fetch_20newsgroups()
    weights = TfidfTransformer(sublinear_tf=True).fit(csr_matrix(news.X_train))
    texts = [weights.transform(csr_matrix(X)) for X in (news.X_train, news.X_test)]
    labels = [1.0 * (y == "sci.space") for y in (news.y_train, news.y_test)]
    return {
        "w8a": (w8a.X_train, w8a.y_train, w8a.X_test, w8a.y_test, (0.01, None)),
        "sci.space of 20 newsgroups": (texts[0], labels[0], texts[1], labels[1], (0.01,)),
    }


def data_sets(found, quick):
    for name, (X, y, X_test, y_test, shares) in list(found.items())[1 if quick else 0 :]:
        if quick:
            some = slice(None, None, len(y) // 400)
            X, y, shares = X[some], y[some], (None,)
        for share in shares:
            train, test = (
                thinned(csr_matrix(rows, dtype=float), labels > 0, share) for rows, labels in ((X, y), (X_test, y_test))
            )
            for rows, _ in (train, test):  # LinearSVC takes no others
                rows.indices, rows.indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
            label = f"{name}, {100 * train[1].mean():.1f} % positive"
            yield label, *train, *test


def measured(label, machine, C, scores, training, y, y_test, cpu):
    """A row: as it predicts, and at the threshold of best F1 on the training rows."""
    order = np.argsort(-training)
    found = np.cumsum(y[order])
    best = training[order][(2.0 * found / (np.arange(1, len(y) + 1) + y.sum())).argmax()]
    return {
        "data": label,
        "machine": machine,
        "C": C,
        "f1": 100.0 * f1_score(y_test, scores > 0.0),
        "best_f1": 100.0 * f1_score(y_test, scores >= best),
        "prbep": 100.0 * break_even_point(y_test, scores),
        "area": 100.0 * roc_auc_score(y_test, scores),
        "cpu": cpu,
    }


def machines_of_rows(label, X, y, X_test, y_test):
    """LinearSVC; C and class weights by F1 at the best threshold, in three folds of the training rows."""
    begin, found = time.process_time(), []
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    for weight in (None, "balanced"):
        for C in GRID:
            machine = LinearSVC(C=C, class_weight=weight, dual=False)
            scores = cross_val_predict(machine, X, y, cv=folds, method="decision_function")
            order = np.argsort(-scores)
            value = 2.0 * np.cumsum(y[order]) / (np.arange(1, len(y) + 1) + y.sum())
            found.append((value.max(), -C, str(weight), machine))
    _, C, weight, machine = max(found, key=lambda row: row[:3])
    machine.fit(X, y)
    cpu = time.process_time() - begin
    scores, training = machine.decision_function(X_test), machine.decision_function(X)
    name = "LinearSVC" + (", balanced" if weight == "balanced" else "")
    return measured(label, name, -C, scores, training, y, y_test, cpu)


def svmperf(X, y, loss, C):
    """``(weights, bias, CPU seconds)`` of SVMperf's one-slack algorithm in the dual, at its own accuracy."""
    learn = Path(os.environ["SVM_PERF"]) / "svm_perf_learn"
    with tempfile.TemporaryDirectory() as folder:
        train, model = Path(folder) / "train.svm", Path(folder) / "model"
        dump_svmlight_file(X, np.where(y, 1, -1), str(train), zero_based=False)
        about = ["-w", 3, "-l", NUMBERS[loss], "-c", C * len(y) / 100.0]
        cpu = run_command([learn, *about, train, model]).cpu
        lines = model.read_text().splitlines()
    weights = np.zeros(X.shape[1])
    for item in lines[11].partition("#")[0].split()[1:]:
        column, value = item.split(":")
        if int(column) <= len(weights):
            weights[int(column) - 1] = float(value)
    return weights, -float(lines[10].split()[0]), cpu


def beside_svmperf(options):
    """The same objective at the same C; ours to a gap of 0.1 %."""
    table = Table(BESIDE, PEER, notes=notes(PEER_NOTES))
    for label, X, y, X_test, y_test in data_sets(small_sets(), options.quick):
        for loss in LOSSES:
            begin = time.process_time()
            model = MultivariateClassifier(loss, C=0.1, tol=1e-3, random_state=0).fit(X, y)
            cpu = time.process_time() - begin
            weights, bias, their_cpu = svmperf(X, y, loss, 0.1)
            rows = with_intercept(as_rows(X, X.shape[1])) if loss in ("f1", "error") else as_rows(X, X.shape[1])
            own = np.append(weights, bias) if loss in ("f1", "error") else weights
            problem = RankingOracle(len(own), loss).bind(Groups(rows, np.array([0, len(y)])), 1.0 * y)
            b, psi = problem.separate(0, own)
            primal = 0.5 * own @ own + 0.1 * len(y) * max(b - psi @ own, 0.0)
            row = {"data": label, "loss": loss, "ours": model.result_.primal, "theirs": primal}
            row["cosine"] = weights @ model.coef_[0] / np.linalg.norm(weights) / np.linalg.norm(model.coef_)
            row["area"] = 100.0 * roc_auc_score(y_test, model.decision_function(X_test))
            row["their_area"] = 100.0 * roc_auc_score(y_test, X_test @ weights)
            table.rows.append(row | {"cpu": cpu, "their_cpu": their_cpu})
        yield table


PEER_NOTES = """
SVMperf 3.00 (Joachims 2005, 2006; its licence is for research only), -w 3, its own stopping rule (-e 0.1: of a loss
from 0 to 100, which is coarse for "error" at few positives); its C is n / 100 times ours. CPU seconds of its process
are with reading the file.
"""


def run(options):
    warnings.simplefilter("ignore", ConvergenceWarning)
    if options.part == "multivariate-large":
        yield from beside_rows("Losses of larger samples", large_sets(), options)
        return
    if options.only in TIMED:
        yield from times(options)
    if options.only in BESIDE and "SVM_PERF" in os.environ:
        yield from beside_svmperf(options)
    if options.only in SMALL:
        yield from beside_rows(SMALL, small_sets(), options)


def beside_rows(title, found, options):
    table = Table(title, COLUMNS, notes=notes(__doc__.split("\n")[0] + NOTES))
    for label, X, y, X_test, y_test in data_sets(found, options.quick):
        for loss in LOSSES:
            begin = time.process_time()
            model = MultivariateClassifier(loss, random_state=0).fit(X, y)
            cpu = time.process_time() - begin
            scores, training = model.decision_function(X_test), model.decision_function(X)
            row = measured(label, loss, model.C_, scores, training, y, y_test, cpu)
            table.rows.append(row | {"bound": model.validation_.get("loss", loss)})
        table.rows.append(machines_of_rows(label, X, y, X_test, y_test))
        yield table


NOTES = """

MultivariateClassifier as it comes, C chosen on held-out training rows by what the loss is of. LinearSVC: C from
0.001 to 10 and class weights chosen in three folds of the training rows by F1 at the best threshold. Test parts are
thinned as the training parts are.
"""


def times(options):
    """One training at a given C, rows of 20 numbers that are not zero among 1000."""
    table = Table(TIMED, TIMES, notes=notes("C = 10^4 / (number of rows), tol = 0.01."))
    rng = np.random.default_rng(0)
    for n in (10_000, 30_000) if options.quick else (10_000, 100_000, 1_000_000):
        indices = rng.integers(0, 1000, (n, 20)).astype(np.int32)
        X = csr_array((np.ones(20 * n), indices.ravel(), np.arange(0, 20 * n + 1, 20)), shape=(n, 1000))
        X.sum_duplicates()
        score = X @ rng.normal(size=1000) + 4.0 * rng.normal(size=n)
        y = score > np.quantile(score, 0.9)
        for loss in ("f1", "roc_area"):
            begin = time.process_time()
            model = MultivariateClassifier(loss, C=1e4 / n, tol=0.01, random_state=0).fit(X, y)
            cpu, rounds = time.process_time() - begin, model.n_iter_
            table.rows.append({"loss": loss, "n": n, "cpu": cpu, "rounds": rounds, "round": 1e6 * cpu / n / rounds})
        yield table
