"""Ten digits together, one against the rest: table 4.1 of the thesis."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.svm import SVC

from binary.data import COLUMNS, QUICK, measured, mnist
from common.report import Table, notes
from structsvm.datasets import fetch_mnist
from structsvm.tasks import KernelPerceptronClassifier, LaSVMClassifier

N_DIGITS, N_TRAIN, TEST = 10, 3000, slice(None, None, 4)
# Machine -> how it is made from C and gamma, the thesis's error in %, and its time as a share of LIBSVM's.
MACHINES = {
    "SVC": (lambda params: SVC(cache_size=200, **params), 1.36, 1.0),
    "LaSVM x1": (lambda params: LaSVMClassifier(random_state=0, **params), 1.42, 4950 / 17400),
    "LaSVM x2": (lambda params: LaSVMClassifier(max_iter=2, random_state=0, **params), 1.36, 12210 / 17400),
    "averaged perceptron x1": (
        lambda params: KernelPerceptronClassifier(gamma=params["gamma"], max_iter=1, random_state=0),
        None,
        None,
    ),
}


def run(options):
    tasks = [mnist(digit, n=QUICK if options.quick else N_TRAIN) for digit in range(N_DIGITS)]
    tasks = [replace(task, X_test=task.X_test[TEST], y_test=task.y_test[TEST]) for task in tasks]
    true, rows = fetch_mnist().y_test[TEST], []
    for name, (make, of, share) in MACHINES.items():
        scores, found = zip(*(measured(make(task.params), task) for task in tasks), strict=True)
        row = {key: sum(one[key] for one in found) for key in ("n_support", "cpu")}
        row |= {"machine": name, "error": 100.0 * float(np.mean(np.argmax(scores, axis=0) != true))}
        rows.append(row | {"of": of, "of_share": share})
        rows[-1]["share"] = row["cpu"] / rows[0]["cpu"]
    columns = {key: COLUMNS[key] for key in ("machine", "error", "n_support", "cpu")}
    columns |= {"share": ("of SVC's", ".2f"), "of": ("thesis, error %", ".2f"), "of_share": ("of LIBSVM's time", ".2f")}
    yield Table("Ten digits together, one against the rest (thesis, table 4.1)", columns, rows, ABOUT)


ABOUT = notes(f"""The digit whose machine has the largest score; {N_TRAIN} training examples of 60,000, every fourth
test example; C and gamma of table 4.2. Support vectors and CPU seconds are sums over the ten machines. The thesis takes
all examples.""")
