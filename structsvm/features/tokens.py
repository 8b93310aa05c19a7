"""Encoded tokens: the output of a :class:`~structsvm.features.encoder.FeatureEncoder` and input of oracles."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structsvm.checksum import checksum
from structsvm.features.ranges import take_ranges

MAX_FEATURES = 2**31 - 1


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """Sequences of sparse tokens, in one CSR layout.

    Attributes
    ----------
    offsets : int64 array of shape (n_sequences + 1,)
        Sequence s is tokens ``offsets[s]:offsets[s + 1]``.
    indptr : int64 array of shape (n_tokens + 1,)
        Token t has entries ``indptr[t]:indptr[t + 1]``.
    indices : int32 array of shape (n_entries,)
        Feature indices, strictly ascending within a token.
    values : float32 array of shape (n_entries,), or None
        None: all ones.
    n_features : int
    """

    offsets: NDArray[np.int64]
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[np.float32] | None
    n_features: int

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_tokens(self) -> int:
        return len(self.indptr) - 1

    @property
    def n_entries(self) -> int:
        return len(self.indices)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of tokens of each sequence."""
        return np.diff(self.offsets)

    def __getitem__(self, sequences: slice) -> Tokens:
        """Some sequences, ``tokens[10:20]``; a slice of step 1 copies no entries."""
        if not isinstance(sequences, slice):
            raise TypeError("tokens are sliced by sequences, tokens[i:j]; see take()")
        i, j, step = sequences.indices(len(self))
        if step != 1:
            return self.take(np.arange(i, j, step))
        j = max(i, j)
        a, b = self.offsets[i], self.offsets[j]
        first, last = self.indptr[a], self.indptr[b]
        return Tokens(
            self.offsets[i : j + 1] - a,
            self.indptr[a : b + 1] - first,
            self.indices[first:last],
            None if self.values is None else self.values[first:last],
            self.n_features,
        )

    def without_empty(self) -> Tokens:
        """The sequences that have tokens; nothing is copied but offsets."""
        return replace(self, offsets=self.offsets[np.append(True, self.lengths > 0)])

    def fingerprint(self, labels: NDArray[np.int32]) -> int:
        """A checksum of the entries, and of the labels of all tokens."""
        arrays = (labels, self.offsets, self.indices, self.values)
        return checksum(array for array in arrays if array is not None)

    def take(self, sequences: Any) -> Tokens:
        """The sequences of an array of indices or a boolean mask, in that order."""
        offsets, rows = take_ranges(self.offsets, sequences)
        indptr, entries = take_ranges(self.indptr, rows)
        return Tokens(
            offsets,
            indptr,
            self.indices[entries],
            None if self.values is None else self.values[entries],
            self.n_features,
        )
