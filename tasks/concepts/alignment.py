"""Words and labels of a bag that belong together, before anything was learnt: from how often they come together.

The constraints (C.7) of Bordes (2010) want the labels of a bag only to be given, no matter to which words. A network
whose windows have all words of a sentence satisfies them with any order of the labels, so that right bags do not make
right labels. What tells them apart is which words a label comes with in other sentences: labels generate words as in
the first model of Brown et al. (1993), with probabilities t(word | label) that are found by expectation and
maximisation. Here each label of a bag has one word: what is expected of a sentence is a doubly stochastic matrix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

if TYPE_CHECKING:
    from structsvm.arrays import Integers, Weights

ROUNDS, BALANCINGS = 20, 6
# Least t(word | label), and what a label but the empty one loses per word before its own: of words that always come
# together the first has it.
SMALLEST, LATE = 1e-12, 1e-3


def aligned(
    words: NDArray[np.int32],
    targets: NDArray[np.int32],
    offsets: NDArray[np.int64],
    ordered: Integers,
    weight: Weights,
    empty: int,
) -> NDArray[np.int32]:
    """Return `targets` with the labels of each bag in the order of the words that they most probably belong to.

    Parameters
    ----------
    words, targets, offsets, ordered
        See `Scenes`; sentences whose labels have an order count with it.
    weight : float64 array of shape (n_sentences,)
    empty : int
        The label of words that refer to nothing.
    """
    if ordered.all():
        return targets
    n_labels, lengths, found = 1 + int(targets.max()), np.diff(offsets), targets.copy()
    # Sentences of one length are one array: pairs[k] of (sentence, word, label) in the k-th length.
    groups = [np.flatnonzero((lengths == n) & (ordered == 0)) for n in np.unique(lengths)]
    groups = [group for group in groups if len(group)]
    spans = [offsets[group][:, None] + np.arange(lengths[group[0]]) for group in groups]
    keys = [words[span][:, :, None].astype(np.int64) * n_labels + targets[span][:, None, :] for span in spans]
    known = np.repeat(ordered, lengths) == 1
    sure = words[known].astype(np.int64) * n_labels + targets[known]
    distinct = np.unique(np.concatenate([sure, *(np.unique(key) for key in keys)]))
    pairs = [np.searchsorted(distinct, key).astype(np.int32) for key in keys]
    label = distinct % n_labels
    counted = np.zeros(len(distinct))
    np.add.at(counted, np.searchsorted(distinct, sure), np.repeat(weight, lengths)[known])
    t = np.ones(len(distinct))
    for _ in range(ROUNDS):
        expected = counted.copy()
        for group, pair in zip(groups, pairs, strict=True):
            share = balanced(t[pair]) * weight[group][:, None, None]
            expected += np.bincount(pair.ravel(), share.ravel(), len(distinct))
        t = np.maximum(expected / np.maximum(np.bincount(label, expected), SMALLEST)[label], SMALLEST)
    for span, pair in zip(spans, pairs, strict=True):
        labels = targets[span]
        late = LATE * np.arange(span.shape[1])[:, None] * (labels != empty)[:, None, :]
        for k, value in enumerate(np.log(t[pair]) - late):
            found[span[k]] = labels[k, linear_sum_assignment(value, maximize=True)[1]]
    return found


def balanced(share: NDArray[np.float64]) -> NDArray[np.float64]:
    """Positive matrices scaled until rows sum to 1, and columns nearly."""
    for _ in range(BALANCINGS):
        share /= share.sum(axis=1, keepdims=True)
        share /= share.sum(axis=2, keepdims=True)
    return share
