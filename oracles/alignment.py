"""Strings, alignments, and reference alignments in the arrays that the compiled aligner reads."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

# Codes of the operations b"M", b"X", b"Z", as in align.h.
PAIR, SKIP_X, SKIP_Z = range(3)

_CODES = np.full(256, 255, dtype=np.uint8)
_CODES[list(b"MmXZ")] = [PAIR, PAIR, SKIP_X, SKIP_Z]


class Alignment(NamedTuple):
    """An alignment of two strings x and z, from letter x_start of x and z_start of z on.

    Attributes
    ----------
    x_start, z_start : int
        0 in global alignments.
    operations : bytes
        ``M`` a pair of letters, ``X`` a letter of x against a gap, ``Z`` a letter of z against a gap. In a reference
        alignment ``m`` is a pair that losses do not assess. Between two pairs, X comes before Z.
    """

    x_start: int
    z_start: int
    operations: bytes

    @property
    def codes(self):
        """The operations as an array of PAIR, SKIP_X and SKIP_Z; ValueError for other bytes."""
        codes = _CODES[np.frombuffer(self.operations, dtype=np.uint8)]
        if (codes == 255).any():
            raise ValueError(f"operations must be of M, m, X and Z, got {self.operations!r:.80}")
        return codes

    @property
    def assessed(self):
        """Which operations are pairs that losses assess: a bool array."""
        return np.frombuffer(self.operations, dtype=np.uint8) == ord("M")

    @property
    def pairs(self):
        """The pairs (letter of x, letter of z), counted from 0: int64 array (n_pairs, 2)."""
        return _cells(self)[self.codes == PAIR] - 1

    @property
    def stop(self):
        """The letters of x and of z behind the last aligned one."""
        codes = self.codes
        return self.x_start + int((codes != SKIP_Z).sum()), self.z_start + int((codes != SKIP_X).sum())

    @classmethod
    def from_codes(cls, x_start, z_start, codes):
        return cls(int(x_start), int(z_start), np.frombuffer(b"MXZ", dtype=np.uint8)[codes].tobytes())


def _cells(alignment):
    """The cells (i, j) that the operations lead to."""
    codes = alignment.codes
    steps = np.column_stack([codes != SKIP_Z, codes != SKIP_X])
    return np.cumsum(steps, axis=0) + np.array([alignment.x_start, alignment.z_start])


class Strings:
    """Strings of symbols, one after the other.

    Attributes
    ----------
    symbols : ndarray of int32
    offsets : ndarray of shape (n_strings + 1,), int64
    """

    def __init__(self, symbols, offsets):
        self.symbols, self.offsets = symbols, offsets

    @classmethod
    def of(cls, arrays):
        """From a list of integer arrays."""
        offsets = np.concatenate([[0], np.cumsum([len(a) for a in arrays])]).astype(np.int64)
        symbols = np.concatenate([np.asarray(a) for a in arrays]) if len(arrays) else np.empty(0, dtype=np.int32)
        return cls(np.ascontiguousarray(symbols, dtype=np.int32), offsets)

    def __len__(self):
        return len(self.offsets) - 1

    def __getitem__(self, k):
        return self.symbols[self.offsets[k] : self.offsets[k + 1]]


class References:
    """Pairs of strings with their reference alignments, and the decoys of each.

    Attributes
    ----------
    strings : Strings
    x, z : ndarrays of shape (n,), int64
        Numbers of the strings.
    x_start, z_start : ndarrays of shape (n,), int64
    codes : ndarray of uint8
        The operations of all alignments.
    assessed : ndarray of bool
        Which of them are pairs that losses assess.
    bounds : ndarray of shape (n + 1,), int64
        Where each alignment's operations begin.
    decoys, decoy_bounds : ndarrays of int64
        Numbers of the decoys, and where those of each example begin.
    """

    def __init__(self, strings, x, z, x_start, z_start, codes, assessed, bounds, decoys, decoy_bounds):
        self.strings = strings
        self.x, self.z, self.x_start, self.z_start = x, z, x_start, z_start
        self.codes, self.assessed, self.bounds = codes, assessed, bounds
        self.decoys, self.decoy_bounds = decoys, decoy_bounds

    @classmethod
    def of(cls, strings, pairs, alignments, decoys=None):
        """From pairs of string numbers, an `Alignment` of each, and a list of decoys' numbers of each (or None)."""
        if len(pairs) != len(alignments):
            raise ValueError(f"there are {len(pairs)} pairs of strings and {len(alignments)} alignments")
        pairs = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
        decoys = [()] * len(pairs) if decoys is None else decoys
        if len(decoys) != len(pairs):
            raise ValueError(f"there are {len(pairs)} pairs of strings and {len(decoys)} lists of decoys")
        return cls(
            strings,
            pairs[:, 0].copy(),
            pairs[:, 1].copy(),
            np.array([a.x_start for a in alignments], dtype=np.int64),
            np.array([a.z_start for a in alignments], dtype=np.int64),
            np.concatenate([np.empty(0, np.uint8), *(a.codes for a in alignments)]),
            np.concatenate([np.empty(0, bool), *(a.assessed for a in alignments)]),
            np.concatenate([[0], np.cumsum([len(a.operations) for a in alignments])]).astype(np.int64),
            np.concatenate([np.empty(0, np.int64), *(np.asarray(d, dtype=np.int64) for d in decoys)]),
            np.concatenate([[0], np.cumsum([len(d) for d in decoys])]).astype(np.int64),
        )

    def __len__(self):
        return len(self.x)

    def __getitem__(self, part):
        start, stop, _ = part.indices(len(self))
        a, b = self.bounds[start], self.bounds[stop]
        c, d = self.decoy_bounds[start], self.decoy_bounds[stop]
        return References(
            self.strings,
            self.x[start:stop],
            self.z[start:stop],
            self.x_start[start:stop],
            self.z_start[start:stop],
            self.codes[a:b],
            self.assessed[a:b],
            self.bounds[start : stop + 1] - a,
            self.decoys[c:d],
            self.decoy_bounds[start : stop + 1] - c,
        )

    def alignment(self, k):
        """The reference alignment of example k."""
        a, b = self.bounds[k], self.bounds[k + 1]
        operations = np.frombuffer(b"MXZ", dtype=np.uint8)[self.codes[a:b]]
        operations = np.where((operations == ord("M")) & ~self.assessed[a:b], np.uint8(ord("m")), operations)
        return Alignment(int(self.x_start[k]), int(self.z_start[k]), operations.tobytes())

    def core(self):
        """The assessed pairs, counted from 1: ``(letters of x, letters of z, where each example's begin)``."""
        bounds = np.concatenate([[0], np.cumsum(self.assessed)])[self.bounds].astype(np.int64)
        found = [_cells(self.alignment(k))[self.assessed[a:b]] for k, (a, b) in enumerate(pairwise(self.bounds))]
        cells = np.concatenate([np.empty((0, 2), np.int64), *found]).astype(np.int32)
        return np.ascontiguousarray(cells[:, 0]), np.ascontiguousarray(cells[:, 1]), bounds

    def check_assessed(self):
        """Raise ValueError if losses assess no pair of an example."""
        assessed = np.concatenate([[0], np.cumsum(self.assessed)])[self.bounds]
        bare = np.flatnonzero(np.diff(assessed) == 0)
        if len(bare):
            raise ValueError(f"example {bare[0]}: its reference alignment has no pair that the loss assesses")

    def decoy_pairs(self):
        """Pairs of each x and its decoys, as string numbers (n_decoys, 2)."""
        return np.column_stack([np.repeat(self.x, np.diff(self.decoy_bounds)), self.decoys])

    def arrays(self):
        """All that tells these examples from others."""
        return [
            self.strings.symbols,
            self.strings.offsets,
            *(self.x, self.z, self.x_start, self.z_start, self.codes, self.assessed, self.bounds),
            *(self.decoys, self.decoy_bounds),
        ]
