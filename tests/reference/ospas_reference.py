"""Algorithm 24 written out, on dictionaries; for the two strategies that need no random numbers."""

from collections import Counter

import numpy as np


class PlainOspas:
    def __init__(self, n_features, n_labels, C, strategy):
        self.w = np.zeros((n_features, n_labels))
        self.C, self.strategy = C, strategy
        self.history = []  # the weights after each word that was tried

    def scores(self, x):
        """x w, summed feature by feature: the last bit of a product by BLAS depends on the machine, and ties on it."""
        return sum((x[f] * self.w[f] for f in np.flatnonzero(x)), start=np.zeros(self.w.shape[1]))

    def step(self, x, bag):
        """Algorithm 23 by its definition."""
        n_labels = self.w.shape[1]
        outside = [z for z in range(n_labels) if z not in bag]
        if not bag or not outside:
            return
        scores = self.scores(x)
        psi, loss = np.zeros_like(self.w), 0.0
        for y in bag:
            for z in outside:
                if 1.0 - scores[y] + scores[z] > 0.0:
                    loss += 1.0 - scores[y] + scores[z]
                    psi[:, y] += x
                    psi[:, z] -= x
        psi /= len(bag) * len(outside)
        loss /= len(bag) * len(outside)
        if psi.any():
            self.w = self.w + max(0.0, min(self.C, loss / np.sum(psi * psi))) * psi

    def best(self, scores, bag):
        """The best label; of several one that the bag does not hold; else those other than 0 in turn."""
        tied = [y for y in range(len(scores)) if scores[y] == scores.max()]
        wrong = [y for y in tied if bag[y] == 0]
        right = [y for y in tied if y > 0] or tied
        return wrong[0] if wrong else right[len(self.history) % len(right)]

    def sentence(self, X, bag_of, bags):
        bags = [Counter(bag) for bag in bags]
        labels = [-1] * len(X)
        turn, failed = list(range(len(X))), set()
        while len(failed) < len(turn):
            fresh = [t for t in turn if t not in failed]
            if self.strategy == "order_free":
                t = max(sorted(fresh), key=lambda t: self.scores(X[t]).max())
            else:
                t = fresh[0]
            bag = bags[bag_of[t]]
            y = self.best(self.scores(X[t]), bag)
            if bag[y] > 0:
                bag[y] -= 1
                labels[t] = y
                at = turn.index(t)
                turn = turn[at + 1 :] + turn[:at]  # left-right goes on to the right of it
                failed = set()
            else:
                self.step(X[t], {label for label, count in bag.items() if count > 0})
                failed.add(t)
                if self.strategy == "left_right":
                    turn = turn[1:] + turn[:1]
            self.history.append(self.w)
        return labels
