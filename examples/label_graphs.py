"""
Do its neighbours say something about a pixel?
==============================================

Labels of graphs.

Label the nodes of graphs: grids of pixels with and without edges, and one graph of which few labels are known.

Run it: python examples/label_graphs.py [TRAIN TEST]; files of graphs as JSON or GraphML, without files on drawn grids.
"""

import sys

import numpy as np

from structsvm.datasets import make_noisy_grids
from structsvm.metrics import graph_scores
from structsvm.structures.graphs.files import read_graphs
from structsvm.tasks import GraphLabeler


def data():
    """Graphs and the labels of their nodes: to train, and to test on."""
    if len(sys.argv) == 3:
        return [read_graphs(path)[:2] for path in sys.argv[1:]]
    return [make_noisy_grids(12, size=16, random_state=seed) for seed in range(2)]


def main():
    (X, y), (X_test, y_test) = data()
    for interactions in ("none", "potts", "full"):
        model = GraphLabeler(interactions=interactions, random_state=0).fit(X, y)
        print(f"{interactions}: {graph_scores(y_test, model.predict(X_test)).report()}")
        print(model.result_.certificate())
    grids, labels = make_noisy_grids(1, size=24, noise=1.0, random_state=0)
    known = np.where(np.random.default_rng(0).random(labels[0].shape) < 0.3, labels[0], -1)
    model = GraphLabeler(unknown=-1, random_state=0).fit(grids, [known])
    hidden = known < 0
    found = model.predict(grids, known=[known])[0]
    print(f"of {hidden.sum()} cells whose label is not known {np.mean((found == labels[0])[hidden]):.1%} are right")
    draw({"seen": grids[0][..., 0], "known": known, "found": found, "true": labels[0]})


def draw(grids):
    """Grids side by side."""
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(1, len(grids), figsize=(2.5 * len(grids), 2.7), layout="constrained")
    for ax, (title, grid) in zip(axes, grids.items(), strict=True):
        ax.imshow(grid)
        ax.set(title=title, xticks=[], yticks=[])


if __name__ == "__main__":
    main()
