"""
Do some labels go together?
===========================

Sets of labels.

Labels per row, alone and with weights of pairs; a picture of which labels go together.

Run it: python examples/label_sets.py [PICTURE]; on yeast's genes where STRUCTSVM_DATA has them, else on drawn rows.
"""

import os
import sys

import numpy as np

from structsvm.datasets import fetch_multilabel_yeast
from structsvm.tasks import MultilabelClassifier


def data():
    """Rows and indicators: to train, and to test on."""
    if "STRUCTSVM_DATA" in os.environ:
        yeast = fetch_multilabel_yeast()
        return yeast.X_train, yeast.y_train, yeast.X_test, yeast.y_test
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 8))
    y = (X @ rng.normal(size=(8, 6)) + rng.normal(size=(600, 6)) > 0.5).astype(int)
    y[:, 4], y[:, 5] = y[:, 0] & y[:, 1], y[:, 2] & ~y[:, 3]
    return X[:400], y[:400], X[400:], y[400:]


def main():
    X, y, X_test, y_test = data()
    for interactions in ("none", "tree", "full"):
        model = MultilabelClassifier(interactions=interactions, random_state=0).fit(X, y)
        wrong = np.mean(model.predict(X_test) != y_test)
        print(f"pairs: {interactions:4}  wrong labels {wrong:.3f}, whole sets {model.score(X_test, y_test):.3f}")
    print(model.result_.certificate())
    draw(model)


def draw(model):
    """The weights of pairs."""
    import matplotlib.pyplot as plt

    table = np.zeros((len(model.classes_),) * 2)
    table[tuple(model.edges_.T)] = table[tuple(model.edges_.T[::-1])] = model.interactions_
    size = np.abs(table).max()
    figure, axes = plt.subplots(layout="constrained")
    figure.colorbar(axes.imshow(table, cmap="RdBu", vmin=-size, vmax=size), label="weight of a pair")
    axes.set(xlabel="label", ylabel="label", title="Labels that go together, beyond what the rows say")
    if len(sys.argv) > 1:
        figure.savefig(sys.argv[1])


if __name__ == "__main__":
    main()
