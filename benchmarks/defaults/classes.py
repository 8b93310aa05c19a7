"""Kernel machines: PairwiseClassifier() and LaRankClassifier() beside SVC."""

from __future__ import annotations

from sklearn.svm import SVC

from defaults.methods import ACCURACY, Method, Trained, compared
from structsvm.datasets import fetch_letter, fetch_mnist, fetch_usps
from structsvm.tasks import LaRankClassifier, PairwiseClassifier

CACHE = 1000  # MB, for both
GRID = [{"C": C, "gamma": gamma} for C in (1.0, 10.0, 100.0) for gamma in (0.25, 1.0, 4.0)]
SETS = {"LETTER": (fetch_letter, 5000), "USPS": (fetch_usps, None), "MNIST": (fetch_mnist, 6000)}
ABOUT = f"""
RBF kernels, a cache of {CACHE} MB, the whole test part. gamma is in units of scikit-learn's "scale"; SVC's grid: C 1,
10, 100 and gamma 0.25, 1, 4

structsvm: PairwiseClassifier, by a comparison on training parts alone: trained on 4000 of 5000 examples of each, tested
on the others, it has 93.70 on LETTER, 98.50 on USPS and 96.00 on MNIST, LaRankClassifier 92.50, 98.60 and 95.60
"""


def run(options):
    for name, (fetch, first) in SETS.items():
        if options.only in name:
            data = fetch()
            n = 500 if options.quick else first
            train, test = (data.X_train[:n], data.y_train[:n]), (data.X_test, data.y_test)
            title = f"{name}{'' if first is None else f', the first {first} examples'}: accuracy"
            yield from compared(title, METHODS, train, test, ACCURACY, ABOUT, options)


def pairwise(X, y, setting):
    return ours(PairwiseClassifier(cache_size=CACHE, **setting), X, y)


def larank(X, y, setting):
    return ours(LaRankClassifier(cache_size=CACHE, random_state=0, **setting), X, y)


def ours(machine, X, y):
    machine.fit(X, y)
    gamma = machine.gamma_ * X.shape[1] * X.var()
    chosen = {"C": machine.C_, "gamma": float(gamma), "passes": machine.n_iter_}
    return Trained(machine.predict, chosen, {"C": machine.C_, "gamma": machine.gamma_})


def svc(X, y, setting):
    gamma = setting["gamma"] / (X.shape[1] * X.var())
    return Trained(SVC(C=setting["C"], gamma=gamma, cache_size=CACHE).fit(X, y).predict)


METHODS = [
    Method("structsvm", pairwise),
    Method("structsvm, LaRankClassifier", larank),
    Method("SVC", svc, GRID, "scikit-learn"),
]
