"""Initial completions of labels that no node of any graph is known to have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

if TYPE_CHECKING:
    from structsvm.arrays import Integers


def clustered(
    ends: Integers, features: NDArray[np.float64], label_ids: NDArray[np.int32], sets: NDArray[np.bool_]
) -> NDArray[np.int32]:
    """Label ids (see `encode_labels`) with a guess for nodes that have such labels.

    Weights that treat these labels alike would complete them alike, and learn them so. The guess are clusters of what
    is known around nodes: of their edges, by side and by the label of the other end, the sum of features.
    """
    found, K = label_ids.copy(), sets.shape[1]
    used = np.bincount(label_ids[label_ids >= 0], minlength=K) > 0
    for s in 1 + np.flatnonzero(~(sets[1:] & used).any(axis=1)):
        nodes, labels = np.flatnonzero(label_ids == -1 - s), np.flatnonzero(sets[s])
        place = np.full(len(label_ids), -1)
        place[nodes] = np.arange(len(nodes))
        around = np.zeros((len(nodes), 2, K, features.shape[1]))
        for side in (0, 1):
            here, there = place[ends[:, side]], label_ids[ends[:, 1 - side]]
            e = np.flatnonzero((here >= 0) & (there >= 0))
            np.add.at(around[:, side], (here[e], there[e]), features[e])
        found[nodes] = labels[clusters(around.reshape(len(nodes), -1), len(labels))]
    return found


def clusters(rows: NDArray[np.float64], k: int) -> NDArray[np.intp]:
    """k clusters of rows by Lloyd's rounds, from rows each of which is the farthest from those before."""
    centres = rows[:1]
    while len(centres) < min(k, len(rows)):
        centres = np.vstack([centres, rows[cdist(rows, centres).min(axis=1).argmax()]])
    for _ in range(20):
        own = cdist(rows, centres).argmin(axis=1)
        centres = np.array([rows[own == j].mean(axis=0) if (own == j).any() else c for j, c in enumerate(centres)])
    return own
