"""What training takes for the labels of nodes whose labels nobody knows in any graph, to begin with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

ROUNDS = 20


def clustered(
    ends: NDArray[np.int64], features: NDArray[np.float64], label_ids: NDArray[np.int32], sets: NDArray[np.bool_]
) -> NDArray[np.int32]:
    """Label ids with a guess for the nodes none of whose labels any node is known to have.

    Weights that treat these labels alike would complete them alike, and learn them so. The guess is a clustering by
    k-means of what is known around a node: of its edges, ``sum_e z_e`` by the label of the other end, and of the edge's
    first node, its second.

    Parameters
    ----------
    ends : int64 array of shape (n_edges, 2)
        Edges by the numbers of nodes among those of all graphs.
    features : float64 array of shape (n_edges, n_edge_features)
    label_ids, sets : see `structsvm.tasks.graph.labels.encode_labels`
    """
    used = np.bincount(label_ids[label_ids >= 0], minlength=sets.shape[1]) > 0
    found, n, K = label_ids.copy(), len(label_ids), sets.shape[1]
    for s in 1 + np.flatnonzero(~(sets[1:] & used).any(axis=1)):
        nodes, labels = np.flatnonzero(label_ids == -1 - s), np.flatnonzero(sets[s])
        place = np.full(n, -1)
        place[nodes] = np.arange(len(nodes))
        around = np.zeros((len(nodes), 2, K, features.shape[1]))
        for side in (0, 1):
            here, there = place[ends[:, side]], label_ids[ends[:, 1 - side]]
            e = np.flatnonzero((here >= 0) & (there >= 0))
            np.add.at(around[:, side], (here[e], there[e]), features[e])
        found[nodes] = labels[clusters(around.reshape(len(nodes), -1), len(labels))]
    return found


def clusters(rows: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """k clusters of rows by Lloyd's rounds, from rows each of which is the farthest from those before."""
    centres = rows[:1]
    while len(centres) < min(k, len(rows)):
        centres = np.vstack([centres, rows[cdist(rows, centres).min(axis=1).argmax()]])
    for _ in range(ROUNDS):
        own = cdist(rows, centres).argmin(axis=1)
        centres = np.array([rows[own == j].mean(axis=0) if (own == j).any() else c for j, c in enumerate(centres)])
    return own
