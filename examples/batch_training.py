"""
How do I train in parallel, to a proved optimum?
================================================

Batch training to a certified optimum.

Cutting planes in parallel, with a checkpoint, beside LaRank.

The oracle is slow on purpose, as one that calls another program would be. All its calls of a round are made at the same
weights, so threads share them, and the model is the same bit for bit however many there are.

Run it: python examples/batch_training.py
"""

import tempfile
import time
from pathlib import Path

import numpy as np

import structsvm
from structsvm.plotting import HistoryDisplay


class Signs(structsvm.Oracle):
    """Flat classes whose scores take a while."""

    n_features = 3 * 5

    def joint_feature(self, x, y):
        return np.arange(5 * y, 5 * y + 5), x

    def loss(self, y_true, y):
        return float(y_true != y)

    def argmax(self, x, w, y_true=None, rescaling=None):
        time.sleep(0.0005)
        wrong = 0.0 if y_true is None else 1.0 * (np.arange(3) != y_true)
        return int(np.argmax(w.reshape(3, 5) @ x + wrong))


def main():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    y = np.argmax(X @ rng.normal(size=(5, 3)) + rng.normal(scale=0.5, size=(200, 3)), axis=1)
    weights, results = [], {}
    with tempfile.TemporaryDirectory() as folder:
        for solver in [
            structsvm.LaRank(C=0.1, tol=1e-3, random_state=0),
            structsvm.CuttingPlane(C=0.1, tol=1e-3, random_state=0),
            structsvm.CuttingPlane(C=0.1, tol=1e-3, n_jobs=2, checkpoint=Path(folder) / "run.ckpt", random_state=0),
            structsvm.CuttingPlane(C=0.1, form="one_slack", tol=1e-3, n_jobs=2, random_state=0),
            structsvm.FrankWolfe(C=0.1, tol=1e-2, n_jobs=2, random_state=0),
        ]:
            model = structsvm.StructuredSVM(Signs(), solver).fit(X, y)
            weights.append(model.coef_)
            results[f"{len(results) + 1}: {type(solver).__name__}"] = model.result_
            print(f"{type(solver).__name__:12}  {model.result_.certificate()}")
    print(f"one thread and two: {'the same' if np.array_equal(weights[1], weights[2]) else 'ANOTHER'} model")
    HistoryDisplay.from_results(results, x="n_argmax")


if __name__ == "__main__":
    main()
