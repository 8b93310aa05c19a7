"""
How do I teach it a structure of my own?
========================================

A structure of your own: matchings.

Two sets of things are to be matched one to one, as words of a sentence with those of its translation, or
people with tasks. What is known is a vector of features for every pair. The best matching is found by the
Hungarian algorithm of scipy; the oracle below tells structsvm how to learn the features' weights.

Run it: python examples/new_oracle.py
"""

import numpy as np
from scipy.optimize import linear_sum_assignment

import structsvm
from structsvm.testing import check_oracle


class MatchingOracle(structsvm.Oracle):
    """x: array (n, n, n_features) of pair features; y: array (n,), y[i] is the partner of i."""

    def __init__(self, n_features):
        self.n_features = n_features

    def joint_feature(self, x, y):
        """Add up the features of the pairs."""
        return x[np.arange(len(y)), y].sum(axis=0)

    def loss(self, y_true, y):
        """Count the wrong pairs."""
        return float(np.sum(y_true != y))

    def argmax(self, x, w, y_true=None, rescaling=None):
        """Return the best matching; in training, every wrong pair counts one more (margin rescaling)."""
        scores = x @ w
        if y_true is not None:
            scores = scores + 1.0
            scores[np.arange(len(y_true)), y_true] -= 1.0
        return linear_sum_assignment(scores, maximize=True)[1]


def make_matchings(n_samples, rng, n_features=8):
    """Points and their noisy copies in another order; a pair's features are its squared distances.

    Only the first three coordinates are copied: the others are noise, and should get no weight.
    """
    X, Y = [], []
    for _ in range(n_samples):
        n = int(rng.integers(4, 9))
        points, y = rng.normal(size=(n, n_features)), rng.permutation(n)
        copies = rng.normal(size=(n, n_features))
        copies[y, :3] = points[:, :3] + rng.normal(scale=0.4, size=(n, 3))
        X.append(-((points[:, None] - copies[None]) ** 2))
        Y.append(y)
    return X, Y


def main():
    """Check the oracle, train it, and compare with equal weights for all features."""
    rng = np.random.default_rng(0)
    X, Y = make_matchings(200, rng)
    X_test, Y_test = make_matchings(200, rng)
    oracle = MatchingOracle(n_features=8)
    check_oracle(oracle, X, Y)

    model = structsvm.StructuredSVM(oracle=oracle, solver=structsvm.LaRank(C=0.1, tol=0.01, random_state=0))
    model.fit(X, Y)
    print(model.result_.certificate())
    print("weights:", np.round(model.coef_, 2))

    equal = [oracle.argmax(x, np.ones(8)) for x in X_test]
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(5, 3), layout="constrained")
    ax.bar(range(1, 9), model.coef_)
    ax.set(xlabel="coordinate (the first three are copied)", ylabel="weight")
    for name, Z in (("equal weights", equal), ("learnt weights", model.predict(X_test))):
        right = np.mean(np.concatenate([y == z for y, z in zip(Y_test, Z, strict=True)]))
        print(f"pairs matched rightly with {name}: {100.0 * right:.1f} %")


if __name__ == "__main__":
    main()
