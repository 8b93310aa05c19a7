"""Structures whose outputs give each place a value (a word its head, a label yes or no), by masks of these values.

The k best, max-marginals and samples need no recursion of their own then: Lawler's parts of what is left, the best
output with each value, and the value of each place given those before it. They are for looking at single entries.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structsvm.layers.structure import Generators, Labels, Parts, Scores, Structure, Values, drawn, possible
from structsvm.oracles.enumeration.labellings import Allowed, best_labellings
from structsvm.parameters import checked_k


class Places(Structure):
    """Outputs (B, n) of values 0 .. m - 1, where -1 is the last value or a place beyond the length."""

    @abstractmethod
    def shape(self, scores: Scores) -> tuple[int, int]:
        """Numbers of places n and of their values m."""

    @abstractmethod
    def limit(self, scores: Scores, allowed: Allowed) -> Scores:
        """Mask values that are not allowed, by an array (B, n, m)."""

    @abstractmethod
    def find(self, scores: Scores) -> tuple[Labels, Values]:
        """The best outputs and their scores, -inf where there is none."""

    def sizes(self, scores: Scores) -> NDArray[np.int64]:
        """The number of places of each entry."""
        return scores.lengths

    def best(self, scores: Scores) -> Labels:
        outputs, values = self.find(scores)
        possible(values)
        return self.shown(outputs, scores)

    def restrict(self, scores: Scores, y: Labels) -> Scores:
        return self._known(scores, y)

    def shown(self, values: Labels, scores: Scores) -> Labels:
        """Outputs by the values of their places, on the last axis: the values themselves."""
        return values

    def _known(self, scores: Scores, y: Labels) -> Scores:
        """Mask all other values of places whose value is not -1."""
        values = np.arange(self.shape(scores)[1])
        return self.limit(scores, (y[..., None] < 0) | (y[..., None] == values))

    def kbest(self, *parts: object, k: int, lengths: ArrayLike | None = None) -> tuple[Labels, Values]:
        k, scores = checked_k(k), self.check(parts, lengths)
        n, m = self.shape(scores)
        outputs = np.full((len(scores.lengths), k, n), -1, np.int32)
        values = np.full(outputs.shape[:2], -np.inf)
        for entry, size in enumerate(self.sizes(scores).tolist()):
            one, allowed = scores.take([entry]), np.ones((1, n, m), bool)

            def best(part: Allowed, one: Scores = one, allowed: Allowed = allowed) -> tuple[float, Labels]:
                allowed[0, : len(part)] = part
                found, score = self.find(self.limit(one, allowed))
                return float(score[0]), found[0, : len(part)]

            for j, (output, value) in enumerate(best_labellings(best, np.ones((size, m), bool), k)):
                outputs[entry, j, :size], values[entry, j] = output, value
        return self.shown(outputs, scores), values

    @abstractmethod
    def value_counts(self, scores: Scores, counts: Parts) -> Values:
        """Counts (B, n, m) of values, from those of the parts."""

    @abstractmethod
    def first_part(self, table: Values, scores: Scores) -> Values:
        """A table (B, n, m) of values in the shape of the first part."""

    def max_marginals(self, *parts: object, lengths: ArrayLike | None = None) -> Values:
        scores = self.check(parts, lengths)
        n, m = self.shape(scores)
        table = np.full((len(scores.lengths), n, m), -np.inf)
        for entry, size in enumerate(self.sizes(scores).tolist()):
            several = scores.take([entry] * m)
            for place in range(size):
                allowed = np.ones((m, n, m), bool)
                allowed[:, place] = np.eye(m, dtype=bool)
                table[entry, place] = self.find(self.limit(several, allowed))[1]
        return self.first_part(table, scores)

    def samples(self, scores: Scores, n_samples: int, generators: Generators) -> Labels:
        self.sums(scores)  # refuses entries without outputs
        return self.shown(self.sampled_values(scores, n_samples, generators), scores)

    def sampled_values(self, scores: Scores, n_samples: int, generators: Generators) -> Labels:
        """Values (B, n_samples, n) of independent outputs: one place after the other, given those before."""
        outputs = np.full((len(scores.lengths), n_samples, self.shape(scores)[0]), -1, np.int32)
        for entry, size in enumerate(self.sizes(scores).tolist()):
            uniforms = generators[entry].random((size, n_samples))
            y = outputs[entry]
            for place in range(size):
                prefixes, prefix = np.unique(y, axis=0, return_inverse=True)  # -1 from here on, unknown
                known = self._known(scores.take([entry] * len(prefixes)), cast(Labels, prefixes))
                chances = self.value_counts(known, self.sums(known)[1])[:, place]
                y[:, place] = drawn(chances[prefix.ravel()], uniforms[place])
        return outputs
