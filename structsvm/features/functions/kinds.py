"""Kinds of words, learnt from the labels of training: ``%kind[0,0]``.

Words of one kind most often have the same label in training. They share features, so that a neighbour that was met once
or twice tells as much as one that was met often. A word of a training sequence has the kind that the *other* sequences
give it: its own label would give it away. A word that stands in no other sequence has none, as unseen words have none
in prediction, and training learns what to do with such words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from structsvm.arrays import Integers

CHUNK = 4096  # pairs of a sequence and a pattern whose counts are held at once


class Kinds(NamedTuple):
    """Kinds of a column's patterns.

    Attributes
    ----------
    of_tokens : int64 array of shape (n_tokens,)
        The kind of each token's pattern in the other sequences that count; -1: there is none.
    of_patterns : int64 array of shape (n_patterns,)
        The kind of each pattern in all sequences that count, or -1.
    counts : int64 array of shape (n_patterns,)
        Tokens that count.
    """

    of_tokens: Integers
    of_patterns: Integers
    counts: Integers


def kinds_of(
    patterns: Integers, n_patterns: int, offsets: NDArray[np.int64], label_ids: Integers, counted: NDArray[np.bool_]
) -> Kinds:
    """Kinds by the labels of tokens that count.

    Parameters
    ----------
    patterns : int array of shape (n_tokens,)
        Ids of patterns, each below `n_patterns`.
    offsets : int64 array of shape (n_sequences + 1,)
    label_ids : int array of shape (n_tokens,)
    counted : bool array of shape (n_tokens,)
    """
    n_labels = int(label_ids[counted].max(initial=0)) + 1
    counts = np.zeros((n_patterns, n_labels), dtype=np.int32)
    np.add.at(counts, (patterns[counted], label_ids[counted]), 1)
    sequences = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    met, group_of = np.unique(sequences * n_patterns + patterns, return_inverse=True)
    order = np.argsort(group_of, kind="stable")
    ends = np.cumsum(np.bincount(group_of, minlength=len(met)))
    of_groups = np.empty(len(met), dtype=np.int64)
    for first in range(0, len(met), CHUNK):
        last = min(first + CHUNK, len(met))
        own = order[ends[first - 1] if first else 0 : ends[last - 1]]
        own = own[counted[own]]
        others = counts[met[first:last] % n_patterns]
        np.subtract.at(others, (group_of[own] - first, label_ids[own]), 1)
        of_groups[first:last] = kinds_of_counts(others)
    return Kinds(of_groups[group_of], kinds_of_counts(counts), counts.sum(axis=1, dtype=np.int64))


def kinds_of_counts(counts: NDArray[np.int32]) -> Integers:
    """The most frequent label of each row of counts, of several the first; -1 where all are 0."""
    return np.where(counts.any(axis=1), counts.argmax(axis=1), -1)


def neighbours(values: Integers, offsets: NDArray[np.int64], row: int) -> Integers:
    """The value so many tokens away in the same sequence, or -1."""
    n = len(values)
    places = np.arange(n) + row
    sequences = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    inside = (places >= offsets[sequences]) & (places < offsets[sequences + 1])
    return np.where(inside, values[np.clip(places, 0, max(n - 1, 0))], -1)
