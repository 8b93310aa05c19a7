"""The Huller and the averaged perceptron beside LIBSVM: figure 4.3 of the thesis, and its table 4.1."""

from __future__ import annotations

import numpy as np
from sklearn.svm import SVC

from binary.data import COLUMNS, QUICK, first, measured, mnist
from common.report import Table, notes
from structsvm.datasets import fetch_mnist
from structsvm.tasks import HullerClassifier, KernelPerceptronClassifier, LaSVMClassifier

N_DIGITS = 10
PAPER = {"SVC": 1.36, "LaSVM x1": 1.42, "LaSVM x2": 1.36}


def run(options):
    scores, digits = {}, []
    for digit in range(2 if options.quick else N_DIGITS):
        task = first(mnist(digit), QUICK if options.quick else 10**9)
        gamma, rows = task.params["gamma"], []
        for name, model in {
            "SVC": SVC(cache_size=200, **task.params),
            "LaSVM x1": LaSVMClassifier(random_state=0, **task.params),
            "LaSVM x2": LaSVMClassifier(max_iter=2, random_state=0, **task.params),
            "Huller x1": HullerClassifier(gamma=gamma, max_iter=1, random_state=0),
            "Huller x2": HullerClassifier(gamma=gamma, max_iter=2, random_state=0),
            "averaged perceptron x1": KernelPerceptronClassifier(gamma=gamma, max_iter=1, random_state=0),
            "averaged perceptron x10": KernelPerceptronClassifier(gamma=gamma, max_iter=10, random_state=0),
        }.items():
            found, row = measured(model, task)
            rows.append(row | {"machine": name})
            scores.setdefault(name, []).append(found)
        digits.append(rows)
        yield Table(f"The Huller: {task.name} (thesis, figure 4.3)", COLUMNS, rows, ABOUT)
    yield together(scores, digits, fetch_mnist().y_test)


def together(scores, digits, true):
    """One against the rest: the digit whose machine has the largest score."""
    rows = []
    for k, (name, found) in enumerate(scores.items()):
        wrong = 100.0 * float(np.mean(np.argmax(found, axis=0) != true))
        row = {"machine": name, "error": wrong, "paper": PAPER.get(name)}
        rows.append(row | {key: sum(digit[k][key] for digit in digits) for key in ("n_support", "cpu")})
    columns = {key: COLUMNS[key] for key in ("machine", "error", "n_support", "cpu")}
    columns["paper"] = ("thesis, all of MNIST, error %", ".2f")
    return Table("Ten digits together, one against the rest (thesis, table 4.1)", columns, rows, ABOUT)


ABOUT = notes("""A digit against the rest, 10,000 training examples of 60,000, RBF kernel with gamma = 0.005; C = 1000
for SVC and LaSVM. The perceptron is ours, of two classes (thesis, algorithm 2, averaged).""")
