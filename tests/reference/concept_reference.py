"""Equations (C.3) to (C.7) of the thesis written out: worth of labellings, greedy search, what a step raises."""

from collections import Counter

import numpy as np


class PlainNetwork:
    """Layers as `Network` has them, without what rounds them up to whole vectors, in float64."""

    def __init__(self, layers, d, hidden, strategy):
        self.layers = {name: np.array(layer, dtype=np.float64) for name, layer in layers.items()}
        self.d, self.hidden, self.strategy = d, hidden, strategy
        self.v = len(layers["g_words"]) // 2

    def worth(self, x, y, world):
        """Equation (C.4); x are rows of words, y label ids or None, world the rows of names of each label."""
        of, total = {name: layer[..., : self.hidden] for name, layer in self.layers.items()}, 0.0
        words, names = self.layers["words"][:, : self.d], self.layers["names"][:, : self.d]
        concept = [names[rows].ravel() for rows in world]
        for i, label in enumerate(y):
            if label is None:
                continue
            g = of["g_bias"].copy()
            for k in range(-self.v, self.v + 1):
                p = i + k
                inside = 0 <= p < len(x)
                g += words[x[p] if inside else 1] @ of["g_words"][k + self.v]
                if inside and k != 0 and y[p] is not None and self.strategy != "independent":
                    g += concept[y[p]] @ of["g_names"][k + self.v]
            total += g @ (np.append(concept[label], 1.0) @ of["h"])
        return total

    def open_words(self, y):
        left = [i for i, label in enumerate(y) if label is None]
        return left if self.strategy == "order_free" else left[:1]

    def best(self, x, y, world, allowed=None):
        """Equation (C.3): the best ``(word, label)``."""
        found = [
            (self.worth(x, [*y[:i], k, *y[i + 1 :]], world), i, k)
            for i in self.open_words(y)
            for k in (range(len(world)) if allowed is None else allowed)
            if world[k][0] >= 0
        ]
        return max(found)[1:]

    def search(self, x, world, allowed=None):
        """Return ``(labels, order)``."""
        y, order = [None] * len(x), [0] * len(x)
        for t in range(len(x)):
            i, k = self.best(x, y, world, allowed)
            y[i], order[i] = k, t
        return y, order

    def completed(self, x, world, bag):
        """The labels of a bag in the order of a search among them, if it gives each as often as the bag has it."""
        found = self.search(x, world, set(bag))[0]
        return found if Counter(found) == Counter(bag) else list(bag)

    def first_error(self, x, world, wanted):
        """Return ``(y, good, bad)``: the labels before the first wrong one, the right pairs of a word and a label that
        a step raises, and the wrong pair; None if there is none."""
        y = [None] * len(x)
        for _ in range(len(x)):
            i, k = self.best(x, y, world)
            if wanted[i] != k:
                return y, [(j, wanted[j]) for j in self.open_words(y)], (i, k)
            y[i] = k
        return None

    def gained(self, x, world, error):
        """The objective of a step: the mean worth of the right pairs, less that of the wrong one."""
        y, good, bad = error

        def with_label(i, k):
            return self.worth(x, [*y[:i], k, *y[i + 1 :]], world)

        return np.mean([with_label(*pair) for pair in good]) - with_label(*bad)
