"""Dependency trees by enumeration: all trees of n words, and joint features by hashing written out once more."""

from itertools import product

import numpy as np

MASK = 0xFFFFFFFF


def all_heads(n, projective):
    """Heads of every tree of n words with one word below the root."""
    found = []
    for heads in product(range(n + 1), repeat=n):
        if heads.count(0) == 1 and all(reaches_root(heads, m) for m in range(1, n + 1)):
            arcs = [(min(h, m), max(h, m)) for m, h in enumerate(heads, 1)]
            if not projective or not any(a < c < b < d for a, b in arcs for c, d in arcs):
                found.append(heads)
    return found


def reaches_root(heads, m):
    for _ in heads:
        m = heads[m - 1] if m else 0
    return m == 0


def mix(key, code):
    key = (key ^ code) * 0x9E3779B1 & MASK
    key ^= key >> 15
    key = key * 0x85EBCA77 & MASK
    return key ^ (key >> 13)


class ReferenceArcs:
    """Features of labelled arcs under templates, given as text; codes are an array (n_words, n_codes).

    `vectors` are columns after the others, with so many numbers each, as bits.
    """

    def __init__(self, columns, arcs, labels, arc_bits, row_bits, stride, vectors):
        self.columns, self.arc_bits, self.row_bits, self.stride = columns, arc_bits, row_bits, stride
        self.places, first, n_rows, self.numbers = {}, len(columns), 2**row_bits, []
        for name, size in vectors.items():
            self.places[name] = slice(first, first + size)
            first += size
        for text in labels:
            seen = next((part for part in text.split() if part.partition(".")[2] in vectors), None)
            if seen is not None:
                self.numbers.append((seen, "dir" in text.split(), n_rows))
                n_rows += vectors[seen.partition(".")[2]] * (2 if "dir" in text.split() else 1)
        labels = [text for text in labels if not any(part.partition(".")[2] in vectors for part in text.split())]
        self.n_features = 2**arc_bits + n_rows * stride
        # In the order that hashing counts them in.
        arcs = sorted(arcs, key=lambda text: "b." in text)
        self.arcs = list(enumerate(arcs))
        kinds = [self.kind(text) for text in labels]
        ordered = [text for kind in range(3) for text, own in zip(labels, kinds) if own == kind]
        self.labels = list(enumerate(ordered, start=len(arcs)))

    def kind(self, text):
        sees_head, sees_below = "h" in {part[0] for part in text.split()}, "m" in {part[0] for part in text.split()}
        return 2 if (sees_head and sees_below) or "dist" in text.split() else 1 if sees_head else 0

    def code(self, x, i, column):
        if i == 0:
            return 1
        return int(x[i - 1][self.columns.index(column)]) if 0 < i <= len(x) else 0

    def key(self, x, h, m, t, text):
        parts, between = text.split(), None
        keys = {"h": mix(0x68656164, t + 1), "m": mix(0x62656C6F, t + 1)}
        for part in parts:
            if "." in part:
                where, column = part.split(".")
                if where == "b":
                    between = column
                else:
                    i = {"h": h, "m": m}[where[0]] + int(where[1:] or 0)
                    keys[where[0]] = mix(keys[where[0]], self.code(x, i, column))
        d = abs(h - m)
        distance = 14 if h == 0 else (d - 1 if d <= 5 else 5 if d <= 10 else 6) + (7 if h < m else 0)
        if t >= len(self.arcs) and self.kind(text) != 2:
            distance = 7 if h < m else 0
        seen = 4 + distance if "dist" in parts else 1 + distance // 7 if "dir" in parts else 0
        return (keys["h"] + keys["m"] + mix(0x64697374, seen)) & MASK, between

    def arc_feature(self, x, h, m, label):
        psi = np.zeros(self.n_features)
        for t, text in self.arcs:
            key, between = self.key(x, h, m, t, text)
            if between is None:
                psi[key >> (32 - self.arc_bits)] += 1.0
            elif h > 0:
                for code in {self.code(x, i, between) for i in range(min(h, m) + 1, max(h, m))}:
                    psi[mix(key, code) >> (32 - self.arc_bits)] += 1.0
        for t, text in self.labels:
            row = self.key(x, h, m, t, text)[0] >> (32 - self.row_bits)
            psi[2**self.arc_bits + row * self.stride + label] += 1.0
        for seen, directed, row in self.numbers:
            where, _, name = seen.partition(".")
            i = {"h": h, "m": m}[where[0]] + int(where[1:] or 0)
            if 0 < i <= len(x):
                values = x[i - 1, self.places[name]].copy().view(np.float32)
                row += len(values) if directed and h < m else 0
                psi[2**self.arc_bits + (row + np.arange(len(values))) * self.stride + label] += values
        return psi
