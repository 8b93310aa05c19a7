"""One classifier in a process of its own: ``python -m multiclass.peer JSON``; prints JSON.

JSON: ``program``, the set's ``name``, the number of training examples ``n``, the random ``seed``, and whether it is a
trial (``quick``).
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import numpy as np
from scipy.sparse import csr_matrix

from common.measure import Clock, peak
from multiclass.data import CACHE, error, load
from structsvm.tasks import LaRankClassifier


def main():
    task = json.loads(sys.argv[1])
    data = load(task["name"], task["quick"])
    data = data if task["n"] is None else data.part(task["n"])
    if task["program"] == "ThunderSVM" and hasattr(data.X, "indptr"):  # it knows the older type only
        data = replace(data, X=csr_matrix(data.X), X_test=csr_matrix(data.X_test))
    model = classifier(task["program"], data.setting, task["seed"])
    before = peak()
    with Clock() as fit:
        model.fit(data.X, data.y)
    after = peak()
    with Clock() as predict:
        found = error(model.predict(data.X_test), data.y_test)
    kernels = getattr(model, "n_kernel_", None)
    answer = {
        "error": found,
        "fit": fit.cpu,
        "predict": predict.cpu,
        "memory": after - before,
        "data_size": size(data.X) / 1e6,
        "patterns": len(model.support_),
        "kernels": None if kernels is None else kernels / 1e6,
    }
    if kernels is not None and data.setting.gamma is not None:
        answer["floor"] = floor(data.X, model.support_, kernels)
    json.dump(answer, sys.stdout)


def size(X):
    return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if hasattr(X, "indptr") else X.nbytes


def classifier(program, setting, seed):
    kernel = {"kernel": "linear"} if setting.gamma is None else {"kernel": "rbf", "gamma": setting.gamma}
    common = {"C": setting.C, "cache_size": CACHE} | kernel
    if program == "LaRank x1, 100":
        return LaRankClassifier(max_iter=1, schedule=(1, 100), random_state=seed, **common)
    if program == "LaRank x1":
        return LaRankClassifier(max_iter=1, random_state=seed, **common)
    if program == "LaRank":
        return LaRankClassifier(random_state=seed, **common)
    if program == "ThunderSVM":
        from thundersvm import SVC

        return SVC(C=setting.C, n_jobs=1, **kernel)
    from sklearn.svm import SVC

    return SVC(**common)


def floor(X, support, kernels):
    """CPU seconds of numpy's float32 products for as many kernel values, 64 rows by all support patterns each."""
    rows, members = X[:64], X[support]
    times = max(1, int(2e7 / (len(rows) * len(members))))
    best = np.inf
    for _ in range(3):
        with Clock() as clock:
            for _ in range(times):
                rows @ members.T
        best = min(best, clock.cpu / times)
    return best * kernels / (len(rows) * len(members))


if __name__ == "__main__":
    main()
