"""Online L-BFGS (Schraudolph, Yu and Günter 2007) on the squared hinge, over batches in numpy: a peer of SGD-QN."""

from __future__ import annotations

from collections import deque

import numpy as np

MEMORY, BATCH, SHARE = 10, 100, 0.1
GAINS = (1.0, 0.3, 0.1, 0.03)
DECAY = 100.0  # batches after which the gain has halved


class OnlineLBFGS:
    """Minimises ``alpha / 2 |w|^2 + 1/n sum max(0, 1 - y f)^2 / 2``, |w|^2 with the bias; the first gain is the one of
    `GAINS` that does best on a tenth of the examples.
    """

    def __init__(self, alpha, max_iter, seed=0):
        self.alpha, self.max_iter, self.seed = alpha, max_iter, seed

    def fit(self, X, y):
        X, y = np.asarray(X), np.asarray(y, dtype=X.dtype)
        some = np.random.default_rng(self.seed).permutation(len(y))[: max(int(SHARE * len(y)), BATCH)]
        costs = [self.cost(self.descend(X[some], y[some], gain, 1), X[some], y[some]) for gain in GAINS]
        w = self.descend(X, y, GAINS[int(np.argmin(costs))], self.max_iter)
        self.coef_, self.intercept_ = w[None, :-1], w[-1:]
        return self

    def cost(self, w, X, y):
        cost = 0.5 * self.alpha * float(w @ w) + 0.5 * float(np.mean(self.slack(w, X, y) ** 2))
        return cost if np.isfinite(cost) else np.inf

    @staticmethod
    def slack(w, X, y):
        return np.maximum(0.0, 1.0 - y * (X @ w[:-1] + w[-1]))

    def gradient(self, w, X, y):
        pull = -self.slack(w, X, y) * y / len(y)
        return self.alpha * w + np.append(X.T @ pull, pull.sum())

    def descend(self, X, y, gain, passes):
        rng, w = np.random.default_rng(self.seed), np.zeros(X.shape[1] + 1, dtype=X.dtype)
        pairs: deque = deque(maxlen=MEMORY)
        t = 0
        with np.errstate(over="ignore", invalid="ignore"):
            for _ in range(passes):
                for rows in np.array_split(rng.permutation(len(y)), max(len(y) // BATCH, 1)):
                    batch, signs = X[rows], y[rows]
                    g = self.gradient(w, batch, signs)
                    step = (-gain * DECAY / (DECAY + t)) * direction(g, pairs)
                    w = w + step
                    # The same batch at both ends, so that the curvature is that of one function.
                    change = self.gradient(w, batch, signs) - g
                    if step @ change > 0.0:
                        pairs.append((step, change))
                    t += 1
        return w


def direction(g, pairs):
    """H g by the two loops of L-BFGS, H0 the mean of the pairs' s'y / y'y."""
    if not pairs:
        return 1e-3 * g
    p, amounts = g.copy(), []
    for s, y in reversed(pairs):
        amounts.append(s @ p / (s @ y))
        p -= amounts[-1] * y
    p *= np.mean([s @ y / (y @ y) for s, y in pairs])
    for (s, y), amount in zip(pairs, reversed(amounts), strict=True):
        p += (amount - y @ p / (s @ y)) * s
    return p
