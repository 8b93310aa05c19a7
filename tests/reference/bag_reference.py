"""Losses over bags, written out; of the mean pairwise hinge all corners and all pairs, and an independent solver."""

from itertools import product

import numpy as np
from scipy.optimize import minimize


def loss_of(scores, bag):
    """Equation (6.5): the mean over pairs."""
    outside = [z for z in range(len(scores)) if z not in bag]
    if not outside:
        return 0.0
    return float(np.mean([max(0.0, 1.0 - scores[y] + scores[z]) for y in bag for z in outside]))


def corners(x, bag, n_labels):
    """Equation (6.7): (b, psi) of every corner c in {0, 1}^(|Y| |not Y|); psi feature by feature."""
    pairs = [(y, z) for y in sorted(bag) for z in range(n_labels) if z not in bag]
    for c in product([0, 1], repeat=len(pairs)):
        psi = np.zeros((len(x), n_labels))
        for on, (y, z) in zip(c, pairs, strict=True):
            psi[:, y] += on * x / len(pairs)
            psi[:, z] -= on * x / len(pairs)
        yield sum(c) / max(len(pairs), 1), psi.ravel()


def primal(w, X, bags, n_labels, C):
    scores = X @ w.reshape(X.shape[1], n_labels)
    return 0.5 * w @ w + sum(c * loss_of(s, bag) for c, s, bag in zip(C, scores, bags, strict=True))


def solve(X, bags, n_labels, C):
    """The optimum of (6.5), through the dual with one multiplier a pair in [0, C / pairs] (L-BFGS-B)."""
    psi, upper = [], []
    for x, bag, c in zip(X, bags, C, strict=True):
        outside = [z for z in range(n_labels) if z not in bag]
        for y in sorted(bag):
            for z in outside:
                row = np.zeros((len(x), n_labels))
                row[:, y] += x
                row[:, z] -= x
                psi.append(row.ravel())
                upper.append(c / (len(bag) * len(outside)))
    psi = np.array(psi)

    def negative_dual(alpha):
        w = alpha @ psi
        return 0.5 * w @ w - alpha.sum(), psi @ w - 1.0

    options = {"maxiter": 20_000, "maxfun": 50_000, "ftol": 1e-16, "gtol": 1e-10}
    found = minimize(negative_dual, np.zeros(len(psi)), jac=True, bounds=[(0.0, u) for u in upper], options=options)
    return -found.fun, found.x @ psi


def other_loss_of(loss, scores, weights, target=None):
    """The losses "mean", "max" and "log" of a bag, a dict from labels to weights; with a target q their bound there."""
    if len(weights) == len(scores) and len(set(weights.values())) == 1:
        return 0.0
    bag, total = sorted(weights), sum(weights.values())
    prior = {y: weights[y] / max(weights.values()) for y in bag}
    q = target or {y: weights[y] / total for y in bag}
    mean = sum(q[y] * scores[y] for y in bag)
    if loss == "log":
        partition = np.log(np.sum(np.exp(scores)))
        if target is None:
            return float(partition - np.log(sum(prior[y] * np.exp(scores[y]) for y in bag)))
        return float(partition - mean + sum(q[y] * np.log(q[y] / prior[y]) for y in bag if q[y] > 0.0))
    inside = max(scores[y] for y in bag) if loss == "max" and target is None else mean
    outside = sum(max(0.0, 1.0 + scores[z]) for z in range(len(scores)) if z not in weights)
    return max(0.0, 1.0 - inside) + outside
