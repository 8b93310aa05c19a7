"""The Huller and the averaged perceptron beside LIBSVM: figure 4.3 of the thesis."""

from __future__ import annotations

from sklearn.svm import SVC

from binary.data import COLUMNS, measured, mnist, trial
from common.report import Table, notes
from structsvm.tasks import HullerClassifier, KernelPerceptronClassifier, LaSVMClassifier

N_DIGITS = 10


def run(options):
    for digit in range(1 if options.quick else N_DIGITS):
        task = trial(mnist(digit)) if options.quick else mnist(digit)
        gamma, rows = task.params["gamma"], []
        for name, model in {
            "SVC": SVC(cache_size=200, **task.params),
            "LaSVM x1": LaSVMClassifier(random_state=0, **task.params),
            "Huller x1": HullerClassifier(gamma=gamma, max_iter=1, random_state=0),
            "Huller x2": HullerClassifier(gamma=gamma, max_iter=2, random_state=0),
            "averaged perceptron x1": KernelPerceptronClassifier(gamma=gamma, max_iter=1, random_state=0),
            "averaged perceptron x10": KernelPerceptronClassifier(gamma=gamma, max_iter=10, random_state=0),
        }.items():
            rows.append(measured(model, task)[1] | {"machine": name})
        yield Table(f"The Huller: {task.name} (thesis, figure 4.3)", COLUMNS, rows, ABOUT)


ABOUT = notes("""A digit against the rest, 10,000 training examples of 60,000, RBF kernel with gamma = 0.005; C = 1000
for SVC and LaSVM. The perceptron is ours, of two classes (thesis, algorithm 2, averaged).""")
