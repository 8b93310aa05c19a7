"""All alignments of two short strings, written out; their histograms of operations and losses by the definitions."""

from functools import cache
from itertools import product

import numpy as np


@cache
def lattice_paths(m, n):
    """All sequences of M, X and Z that take m letters of x and n of z: as many as the Delannoy number."""
    if m == 0 and n == 0:
        return ("",)
    found = []
    for operation, a, b in (("M", 1, 1), ("X", 1, 0), ("Z", 0, 1)):
        if a <= m and b <= n:
            found += [path + operation for path in lattice_paths(m - a, n - b)]
    return tuple(found)


@cache
def delannoy(m, n):
    return 1 if m == 0 or n == 0 else delannoy(m - 1, n) + delannoy(m, n - 1) + delannoy(m - 1, n - 1)


class ReferenceAligner:
    """The definitions, for strings of (letter, class, ...) tuples."""

    def __init__(self, sizes, mode, gaps, symmetric, letter_gaps, band, loss, window, contexts=()):
        self.sizes, self.mode, self.gaps, self.symmetric = sizes, mode, gaps, symmetric
        self.band, self.loss_name, self.window = band, loss, window
        self.number = {}
        for track, size in enumerate(sizes):
            for a, b in product(range(size), repeat=2):
                if not symmetric or a <= b:
                    self._name("pair", track, a, b)
        steps = ("open", "extend") if gaps == "affine" else ("open",)
        for step in steps:
            self._name(step)
        for track, size in enumerate(sizes):
            if track > 0 or letter_gaps:
                for step, a in product(steps, range(size)):
                    self._name(step, track, a)
        self.letter_gaps, self.contexts = letter_gaps, contexts
        for k, context in enumerate(contexts):
            for a, b in product(range(context.size), repeat=2):
                if not symmetric or a <= b:
                    self._name("context", k, a, b)
            for step, a in product(steps, range(context.size)):
                self._name(step, "context", k, a)

    def context(self, k, string, i):
        """The value of context k at letter i: the number of limits that are below the mean around it."""
        context = self.contexts[k]
        around = [i + offset for offset in context.offsets if 0 <= i + offset < len(string)]
        if not around:
            return context.size // 2
        scale = np.reshape(context.scale, self.sizes)
        mean = np.mean([scale[tuple(string[at])] for at in around])
        return sum(limit < mean for limit in context.limits)

    def _name(self, *feature):
        self.number[feature] = len(self.number)

    @property
    def n_features(self):
        return len(self.number)

    def alignments(self, m, n):
        """All (x_start, z_start, operations)."""
        found = []
        for i, j in product(range(m + 1), range(n + 1)):
            for k, l in product(range(i, m + 1), range(j, n + 1)):
                if self.mode == "global" and (i, j, k, l) != (0, 0, m, n):
                    continue
                if self.mode == "semi_global" and ((i > 0 and j > 0) or (k < m and l < n)):
                    continue
                for path in lattice_paths(k - i, l - j):
                    if "ZX" in path:
                        continue
                    if self.mode == "local" and path and not (path[0] == "M" == path[-1]):
                        continue
                    if self.mode == "local" and not path and (i, j) != (0, 0):
                        continue
                    if self.in_band(i, j, path, m, n):
                        found.append((i, j, path))
        return found

    def in_band(self, i, j, path, m, n):
        if self.band is None or (self.mode == "local" and not path):
            return True
        low, high = min(0, n - m) - self.band[0], max(0, n - m) + self.band[1]
        offsets = [j - i]
        for operation in path:
            offsets.append(offsets[-1] + {"M": 0, "X": -1, "Z": 1}[operation])
        return low <= min(offsets) and max(offsets) <= high

    def histogram(self, x, z, alignment):
        i, j, path = alignment
        psi = np.zeros(self.n_features)
        before = ""
        for operation in path:
            if operation == "M":
                for track, (a, b) in enumerate(zip(x[i], z[j], strict=True)):
                    psi[self.number["pair", track, *(sorted((a, b)) if self.symmetric else (a, b))]] += 1.0
                for k in range(len(self.contexts)):
                    a, b = self.context(k, x, i), self.context(k, z, j)
                    psi[self.number["context", k, *(sorted((a, b)) if self.symmetric else (a, b))]] += 1.0
            else:
                step = "extend" if operation == before and self.gaps == "affine" else "open"
                psi[self.number[(step,)]] += 1.0
                for track, a in enumerate(x[i] if operation == "X" else z[j]):
                    if track > 0 or self.letter_gaps:
                        psi[self.number[step, track, a]] += 1.0
                other, place = (z, j) if operation == "X" else (x, i)
                for k, at in product(range(len(self.contexts)), (place - 1, place)):
                    if 0 <= at < len(other):
                        psi[self.number[step, "context", k, self.context(k, other, at)]] += 1.0
            i += operation != "Z"
            j += operation != "X"
            before = operation
        return psi

    def loss(self, gold, assessed, alignment):
        """`assessed` tells which operations of gold are pairs that count."""
        if self.loss_name == "zero_one":
            return float(gold != alignment)
        found = dict(pairs(alignment))
        wanted = [pair for pair, counts in zip(pairs(gold), assessed, strict=True) if counts]
        hits = sum(i in found and abs(found[i] - j) <= self.window for i, j in wanted)
        return (len(wanted) - hits) / len(wanted)


def pairs(alignment):
    i, j, path = alignment
    found = []
    for operation in path:
        if operation == "M":
            found.append((i, j))
        i += operation != "Z"
        j += operation != "X"
    return found


def best_by_hits(pair, open_x, extend_x, open_z, extend_z, mode, band, hit, n_layers):
    """The best score with each number of hits, cell by cell; ``hit`` (m, n) marks the pairs that count. What gaps score
    is given per letter and place of the other string: (m, n + 1) and (m + 1, n)."""
    m, n = pair.shape
    low, high = (-m, n) if band is None else (min(0, n - m) + band[0], max(0, n - m) + band[1])
    nothing = np.full(n_layers, -np.inf)
    zero = nothing.copy()
    zero[0] = 0.0
    P, X, Z = ({} for _ in range(3))
    for i, j in product(range(m + 1), range(n + 1)):
        if not low <= j - i <= high:
            continue
        p = x = z = nothing
        if mode != "local" and ((i, j) == (0, 0) or (mode == "semi_global" and min(i, j) == 0)):
            p = zero
        if i and j and (i - 1, j - 1) in P:
            p = np.maximum.reduce(
                [P[i - 1, j - 1], X[i - 1, j - 1], Z[i - 1, j - 1], zero if mode == "local" else nothing]
            )
            p = p + pair[i - 1, j - 1]
            if hit[i - 1, j - 1]:
                p = np.concatenate([[-np.inf], p[:-1]])
        if i and (i - 1, j) in P:
            x = np.maximum(P[i - 1, j] + open_x[i - 1, j], X[i - 1, j] + extend_x[i - 1, j])
        if j and (i, j - 1) in P:
            z = np.maximum(np.maximum(P[i, j - 1], X[i, j - 1]) + open_z[i, j - 1], Z[i, j - 1] + extend_z[i, j - 1])
        P[i, j], X[i, j], Z[i, j] = p, x, z
    if mode == "local":
        return np.maximum.reduce([zero, *(v for (i, j), v in P.items() if i and j)])
    ends = [(i, j) for i, j in P if (i, j) == (m, n) or (mode == "semi_global" and (i == m or j == n))]
    return np.maximum.reduce([V[end] for V in (P, X, Z) for end in ends])
