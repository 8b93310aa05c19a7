"""Graphs by their definitions: joint features, all labellings, the linear programme over the local polytope."""

from itertools import product

import numpy as np
from scipy.optimize import linprog


def random_graph(rng, n, density, n_node_features, n_edge_features):
    """A random forest, or with a density > 0 that share of all pairs: (rows, edges, features of edges >= 0)."""
    if density:
        edges = [(a, b) for a in range(n) for b in range(a) if rng.random() < density]
    else:
        edges = [(int(rng.integers(0, b)), b) for b in range(1, n) if rng.random() < 0.9]
        places = rng.permutation(n)
        edges = [(places[a], places[b]) for a, b in edges]
    edges = [pair if rng.random() < 0.5 else pair[::-1] for pair in edges]
    rows = rng.normal(size=(n, n_node_features)).round(2)
    return rows, np.array(edges, dtype=int).reshape(-1, 2), rng.random((len(edges), n_edge_features)).round(2)


def pair_of(a, b, K, interactions):
    """Number of a pair of labels among the weights of an edge feature; None: it has none."""
    if interactions == "none" or (a != b and interactions in ("potts", "associative")):
        return None
    if interactions == "symmetric":
        return [(k, l) for k in range(K) for l in range(k, K)].index((min(a, b), max(a, b)))
    return {"potts": 0, "associative": a, "full": a * K + b}[interactions]


def n_pairs(K, interactions):
    return {"none": 0, "potts": 1, "associative": K, "symmetric": K * (K + 1) // 2, "full": K * K}[interactions]


def joint_feature(x, y, K, interactions):
    rows, edges, features = x
    W = np.zeros((rows.shape[1], K))
    V = np.zeros((features.shape[1], n_pairs(K, interactions)))
    for row, label in zip(rows, y, strict=True):
        W[:, label] += row
    for (a, b), z in zip(edges, features, strict=True):
        pair = pair_of(y[a], y[b], K, interactions)
        if pair is not None:
            V[:, pair] += z
    return np.concatenate([W.ravel(), V.ravel()])


def labellings(x, K):
    return [np.array(y, dtype=np.int32) for y in product(range(K), repeat=len(x[0]))]


def scores(x, w, K, interactions):
    """Unary scores (n, K) and those of pairs (n_edges, K, K)."""
    rows, edges, features = x
    W = w[: rows.shape[1] * K].reshape(-1, K)
    V = w[rows.shape[1] * K :].reshape(features.shape[1], -1)
    pairs = np.zeros((len(edges), K, K))
    for a, b in product(range(K), repeat=2):
        pair = pair_of(a, b, K, interactions)
        if pair is not None:
            pairs[:, a, b] = features @ V[:, pair]
    return rows @ W, pairs


def relaxation(unary, edges, pairs, sums=()):
    """The value of the linear programme over the local marginal polytope, by HiGHS; with sums of nodes that are 1."""
    (n, K), m = unary.shape, len(edges)
    node = lambda v, k: v * K + k  # noqa: E731
    pair = lambda e, k, l: n * K + (e * K + k) * K + l  # noqa: E731
    rows, right = [], []
    for v in range(n):
        rows.append({node(v, k): 1.0 for k in range(K)})
        right.append(1.0)
    for e, (a, b) in enumerate(edges):
        for k in range(K):
            rows.append({**{pair(e, k, l): 1.0 for l in range(K)}, node(a, k): -1.0})
            rows.append({**{pair(e, l, k): 1.0 for l in range(K)}, node(b, k): -1.0})
            right += [0.0, 0.0]
    rows += sums
    right += [1.0] * len(sums)
    A = np.zeros((len(rows), n * K + m * K * K))
    for r, row in enumerate(rows):
        A[r, list(row)] = list(row.values())
    found = linprog(-np.concatenate([unary.ravel(), pairs.ravel()]), A_eq=A, b_eq=right, bounds=(0, 1), method="highs")
    assert found.success
    return -found.fun
