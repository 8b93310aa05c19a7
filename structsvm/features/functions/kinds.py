"""Kinds of words, learnt from the labels of training: ``%kind[0,0]``.

Words of one kind most often have the same label in training. They share features, so that a neighbour that was met once
or twice tells as much as one that was met often. A word of a training sequence has the kind that the *other* sequences
give it: its own label would give it away, and so would a copy of its sequence. A word that stands in no other sequence
has none, as unseen words have none in prediction, and training learns what to do with such words.

Later training knows by a code of each sequence which ones the kinds were learnt from. Words of these have the kinds
that the other sequences of the later data give them, and words of new sequences those that were learnt.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

import numpy as np

from structsvm.features.ranges import take_ranges

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from structsvm.arrays import Integers

CHUNK = 2**18  # pairs of a sequence's pattern and a label whose counts are held at once


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
    patterns: Integers, n_patterns: int, sequences: Integers, label_ids: Integers, counted: NDArray[np.bool_]
) -> Kinds:
    """Kinds by the labels of tokens that count.

    Parameters
    ----------
    patterns : int array of shape (n_tokens,)
        Ids of patterns, each below `n_patterns`.
    sequences : int array of shape (n_tokens,)
        The number of each token's sequence, see `equal_sequences`.
    label_ids : int array of shape (n_tokens,)
    counted : bool array of shape (n_tokens,)
    """
    n_labels = int(label_ids[counted].max(initial=0)) + 1
    patterns, sequences = patterns.astype(np.int64), sequences.astype(np.int64)
    pairs, counts = np.unique(patterns[counted] * n_labels + label_ids[counted], return_counts=True)
    starts = np.searchsorted(pairs, np.arange(n_patterns + 1) * n_labels)
    of_patterns = _most_frequent(pairs // n_labels, pairs % n_labels, counts, n_patterns)
    groups, group_of = np.unique(sequences * n_patterns + patterns, return_inverse=True)
    own, its = np.unique(group_of[counted] * n_labels + label_ids[counted], return_counts=True)
    of_groups = np.empty(len(groups), dtype=np.int64)
    pattern_of = groups % n_patterns
    ends = np.cumsum(np.diff(starts)[pattern_of])
    first = 0
    while first < len(groups):
        held = ends[first - 1] if first else 0
        last = max(int(np.searchsorted(ends, held + CHUNK, side="right")), first + 1)
        offsets, places = take_ranges(starts, pattern_of[first:last])
        group, label = np.repeat(np.arange(first, last), np.diff(offsets)), pairs[places] % n_labels
        others = counts[places].copy()
        a, b = np.searchsorted(own, [first * n_labels, last * n_labels])
        others[np.searchsorted(group * n_labels + label, own[a:b])] -= its[a:b]
        of_groups[first:last] = _most_frequent(group - first, label, others, last - first)
        first = last
    return Kinds(of_groups[group_of], of_patterns, np.bincount(patterns[counted], minlength=n_patterns))


def _most_frequent(rows: Integers, labels: Integers, counts: Integers, n: int) -> Integers:
    """The label of each row that has the highest count, of several the first; -1 where none has a count above 0.

    Rows ascend, and so do the labels of a row.
    """
    met = counts > 0
    order = np.lexsort((labels[met], -counts[met], rows[met]))
    found, places = np.unique(rows[met][order], return_index=True)
    kinds = np.full(n, -1, dtype=np.int64)
    kinds[found] = labels[met][order][places]
    return kinds


def codes_of_sequences(hashes: NDArray[np.uint64], offsets: NDArray[np.int64]) -> NDArray[np.uint32]:
    """A code of each sequence, by hashes of its words, array of shape (n_tokens, n)."""
    ends = offsets.tolist()
    codes = [crc32(hashes[a:b].astype("<u8", order="C").tobytes()) for a, b in pairwise(ends)]
    return np.array(codes, dtype=np.uint32)


def equal_sequences(ids: Integers, offsets: NDArray[np.int64]) -> Integers:
    """The number of each token's sequence; sequences with equal rows of `ids` have one number.

    Parameters
    ----------
    ids : int array of shape (n_tokens, n)
    offsets : int64 array of shape (n_sequences + 1,)
    """
    met: dict[bytes, int] = {}
    ends = offsets.tolist()
    numbers = [met.setdefault(ids[a:b].tobytes(), len(met)) for a, b in pairwise(ends)]
    return np.repeat(np.array(numbers, dtype=np.int64), np.diff(offsets))


def neighbours(values: Integers, offsets: NDArray[np.int64], row: int) -> Integers:
    """The value so many tokens away in the same sequence, or -1."""
    n = len(values)
    places = np.arange(n) + row
    sequences = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    inside = (places >= offsets[sequences]) & (places < offsets[sequences + 1])
    return np.where(inside, values[np.clip(places, 0, max(n - 1, 0))], -1)
