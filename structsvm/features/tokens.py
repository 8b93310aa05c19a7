"""Encoded tokens: the output of a :class:`~structsvm.features.encoder.FeatureEncoder` and input of oracles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from structsvm.arrays import checksum
from structsvm.features._tokens import distinct, steps
from structsvm.features.ranges import take_ranges, taken

if TYPE_CHECKING:
    from structsvm.arrays import AnyArray

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
    bigrams : Tokens or None
        The attributes of the same tokens that are conjoined with pairs of labels, that of the token before and its own;
        None: there are none. A sequence's first token has no label before it, and so no such attributes.
    """

    offsets: NDArray[np.int64]
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[np.float32] | None
    n_features: int
    bigrams: Tokens | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_tokens(self) -> int:
        return len(self.indptr) - 1

    @property
    def n_entries(self) -> int:
        return len(self.indices)

    @property
    def n_bigrams(self) -> int:
        return 0 if self.bigrams is None else self.bigrams.n_features

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
            None if self.bigrams is None else self.bigrams[i:j],
        )

    def parts(self) -> Iterator[Tokens]:
        """The sequences in parts that memory holds: here, all of them."""
        yield self

    def with_offsets(self, offsets: NDArray[np.int64]) -> Tokens:
        """The same tokens in other sequences; nothing is copied."""
        bigrams = None if self.bigrams is None else self.bigrams.with_offsets(offsets)
        return replace(self, offsets=offsets, bigrams=bigrams)

    def without_empty(self) -> Tokens:
        """The sequences that have tokens; nothing is copied but offsets."""
        if not steps(self.offsets)[2]:
            return self
        return self.with_offsets(self.offsets[np.append(True, self.lengths > 0)])

    def conjoined(self, index_of: NDArray[np.int32], n_features: int) -> Tokens:
        """Some features of all tokens but the first of each sequence, for `bigrams`.

        Parameters
        ----------
        index_of : int32 array
            The index that each feature gets, ascending; -1: none.
        n_features : int
        """
        kept = index_of[self.indices] >= 0
        kept[take_ranges(self.indptr, self.offsets[:-1][self.lengths > 0])[1]] = False
        return Tokens(
            self.offsets,
            np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)[self.indptr],
            index_of[self.indices[kept]],
            None if self.values is None else self.values[kept],
            n_features,
        )

    def widened(self, added: NDArray[np.int32], n_features: int) -> Tokens:
        """The tokens with more features of value 1 behind their own.

        Parameters
        ----------
        added : int32 array of shape (n_tokens, n)
            Features of each token, ascending and above all of its own; -1: none.
        n_features : int
            All features, those of `added` among them.
        """
        is_new = added >= 0
        counts = np.stack([np.diff(self.indptr), is_new.sum(axis=1)], axis=1)
        are_new = np.repeat(np.tile([False, True], self.n_tokens), counts.ravel())
        indices = np.empty(len(are_new), dtype=np.int32)
        indices[are_new], indices[~are_new] = added[is_new], self.indices
        values = None
        if self.values is not None:
            values = np.ones(len(are_new), dtype=np.float32)
            values[~are_new] = self.values
        indptr = np.append(0, np.cumsum(counts.sum(axis=1)))
        return replace(self, indptr=indptr, indices=indices, values=values, n_features=n_features)

    def fingerprint(self, labels: NDArray[np.int32]) -> int:
        """A checksum of the entries, and of the labels of all tokens."""
        arrays: list[AnyArray | None] = [labels, self.offsets, self.indices, self.values]
        if self.bigrams is not None:
            arrays += [self.bigrams.indptr, self.bigrams.indices, self.bigrams.values]
        return checksum(array for array in arrays if array is not None)

    def take(self, sequences: Any) -> Tokens:
        """The sequences of an array of indices or a boolean mask, in that order."""
        offsets, rows = take_ranges(self.offsets, sequences)
        indptr, entries = take_ranges(self.indptr, rows)
        return Tokens(
            offsets,
            indptr,
            taken(self.indices, entries),
            None if self.values is None else taken(self.values, entries),
            self.n_features,
            None if self.bigrams is None else self.bigrams.take(sequences),
        )

    @classmethod
    def joined(cls, parts: Sequence[Tokens]) -> Tokens:
        """All sequences of one or more parts that have the same features."""
        sizes = {(part.n_features, part.n_bigrams) for part in parts}
        if len(sizes) > 1:
            raise ValueError(f"sequences of different features: {sorted(sizes)} (n_features, n_bigrams)")

        def ends(arrays: list[NDArray[np.int64]]) -> NDArray[np.int64]:
            starts = np.cumsum([0, *(array[-1] for array in arrays[:-1])])
            return np.concatenate([[0], *(array[1:] + start for array, start in zip(arrays, starts, strict=True))])

        values = [np.ones(part.n_entries, np.float32) if part.values is None else part.values for part in parts]
        bigrams = [part.bigrams for part in parts if part.bigrams is not None]
        return cls(
            ends([part.offsets for part in parts]),
            ends([part.indptr for part in parts]),
            np.concatenate([part.indices for part in parts]),
            None if all(part.values is None for part in parts) else np.concatenate(values),
            parts[0].n_features,
            cls.joined(bigrams) if bigrams else None,
        )


def narrowed(rows: Any) -> tuple[Any, NDArray[np.int64]]:
    """The same tokens or rows with only the features that they have (one, if they have none), renumbered; and which
    of all these are. Bigrams of tokens stay as they are.
    """
    features, indices = distinct(rows.indices)
    kept = features if len(features) else np.zeros(1, dtype=np.int64)
    return replace(rows, indices=indices, n_features=len(kept)), kept
