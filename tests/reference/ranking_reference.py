"""All outputs of a group of rows, by loss: the constraints of labellings, pairs and rankings written out."""

from itertools import combinations, permutations, product

import numpy as np


def average_precision(relevant):
    """Average precision of rows in the order of their ranking."""
    places = np.flatnonzero(relevant)
    return np.mean([(relevant[: p + 1] > 0).mean() for p in places])


def discounts(n, k=None):
    """By place."""
    table = 1.0 / np.log2(np.arange(2, n + 2))
    table[n if k is None else k :] = 0.0
    return table


def f1_loss(y, found):
    return 1.0 - 2.0 * (y & found).sum() / (y.sum() + found.sum())


def labellings(X, y, losses):
    """(loss, difference of joint features) of found rows."""
    return [(loss, (y.astype(float) - found) @ X / len(X)) for found, loss in losses]


def pairs_of(grades):
    return [(r, z) for r, z in product(range(len(grades)), repeat=2) if grades[r] > grades[z]]


def swaps(X, pairs, is_swapped):
    """The mean of x_r - x_z over the pairs, of those that are swapped alone."""
    return sum((X[r] - X[z] for (r, z), swapped in zip(pairs, is_swapped, strict=True) if swapped), 0.0 * X[0]) / len(
        pairs
    )


def outputs(X, grades, loss, k=None):
    """(D, dPsi) of all outputs, the true one among them if it is one; none where the grades say nothing."""
    n, y = len(X), np.asarray(grades) > 0
    subsets = [np.array(s, dtype=bool) for s in product((0, 1), repeat=n)]
    if loss == "error":
        return labellings(X, y, [(s, (s != y).mean()) for s in subsets])
    if loss in ("pairs", "roc_area"):
        pairs = pairs_of(grades)
        return [(np.mean(s), swaps(X, pairs, s)) for s in product((0, 1), repeat=len(pairs)) if pairs]
    if loss == "ndcg":
        gains, d, found = 2.0 ** np.asarray(grades) - 1.0, discounts(n, k), []
        order = np.argsort(-gains, kind="stable")
        truth = np.array([d[gains[order] == gain].mean() for gain in gains])
        ideal = gains @ truth
        for ranking in permutations(range(n)) if ideal > 0.0 else ():
            own = np.empty(n)
            own[list(ranking)] = d
            found.append((1.0 - gains @ own / ideal, (truth - own) @ X))
        return found
    if y.all() or not y.any():
        return []
    if loss == "f1":
        return labellings(X, y, [(s, f1_loss(y, s)) for s in subsets])
    if loss in ("prec_at_k", "prbep"):
        k = k if loss == "prec_at_k" else y.sum()
        chosen = [np.isin(np.arange(n), s) for s in combinations(range(n), k)]
        return labellings(X, y, [(s, 1.0 - (y & s).sum() / k) for s in chosen])
    pairs, found = pairs_of(y), []
    for ranking in map(np.array, permutations(range(n))):
        place = np.argsort(ranking)
        psi = swaps(X, pairs, [place[r] > place[z] for r, z in pairs])
        found.append((1.0 - average_precision(y[ranking]), psi))
    return found
