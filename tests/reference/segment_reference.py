"""Chains of segments by enumeration: all segmentations, and their scores from their definition."""

from itertools import product

import numpy as np

from structsvm.features.tokens import Tokens
from structsvm.oracles.semi_markov import SemiMarkovOracle


def segmentations(T, n_types, n_plain):
    """All chains of segments over T tokens, each a list of (start, stop, type); a type from n_types on has length 1."""
    if T == 0:
        return [[]]
    found = []
    for length in range(1, T + 1):
        kinds = range(n_types + (n_plain if length == 1 else 0))
        for before, kind in product(segmentations(T - length, n_types, n_plain), kinds):
            found.append([*before, (T - length, T, kind)])
    return found


def n_segmentations(T, n_types, n_plain):
    """Their number: a_t = n_plain a_(t-1) + n_types (a_0 + ... + a_(t-1))."""
    counts = [1]
    for _ in range(T):
        counts.append(n_plain * counts[-1] + n_types * sum(counts))
    return counts[T]


def labels_of(segments, tags, plain):
    """The labelling of a segmentation."""
    labels = []
    for start, stop, kind in segments:
        if kind >= len(tags):
            labels.append(plain[kind - len(tags)])
        else:
            first, inside, last, single = tags[kind]
            n = stop - start
            labels += [single] if n == 1 else [first, *[inside] * (n - 2), last]
    return np.array(labels, dtype=np.int32)


def joint_feature(oracle, tokens, segments, plain):
    """The joint feature of a segmentation of one sequence, by the documented layout."""
    psi = np.zeros((oracle.n_rows, oracle.stride))
    y = labels_of(segments, oracle.tags, plain)
    first = oracle.n_token_features
    values = np.ones(len(tokens.indices)) if tokens.values is None else tokens.values
    for t, label in enumerate(y):
        for e in range(tokens.indptr[t], tokens.indptr[t + 1]):
            psi[tokens.indices[e], label] += values[e]
        psi[first + (y[t - 1] if t else oracle.n_labels), label] += 1
    for start, stop, kind in segments:
        n = stop - start
        if kind < len(oracle.tags):
            psi[first + oracle.n_labels + 2 + min(n, oracle.max_length + 1) - 1, kind] += 1
            for k in tokens.bigrams.indices[tokens.bigrams.indptr[stop - 1] : tokens.bigrams.indptr[stop]]:
                if n <= oracle.max_length and oracle.phrase_starts[n - 1] <= k < oracle.phrase_starts[n]:
                    psi[oracle.first_bigram_row + k, kind] += 1
    return psi.ravel()


def random_case(rng, lengths, n_types, n_plain, max_length, *, n_features=3, costs=False):
    """``(oracle, tokens, plain)``: an oracle with phrases, sequences for it, and the labels that are of no type."""
    n_plain = max(n_plain, 1 - n_types)
    K = 4 * n_types + n_plain
    order = rng.permutation(K)
    tags, plain = order[: 4 * n_types].reshape(n_types, 4), order[4 * n_types :]
    starts = np.concatenate([[0], np.cumsum(rng.integers(0, 4, max_length))])
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    n = int(offsets[-1])
    place = np.arange(n) - np.repeat(offsets[:-1], lengths)

    def entries(n_columns, may, values):
        has = may & (rng.random((n, n_columns)) < 0.5)
        found = np.nonzero(has)[1].astype(np.int32)
        indptr = np.concatenate([[0], np.cumsum(has.sum(axis=1))]).astype(np.int64)
        return indptr, found, rng.normal(size=len(found)).astype(np.float32) if values else None

    # A phrase is no longer than what stands before its end.
    longest = np.searchsorted(starts, np.arange(starts[-1]), side="right")
    phrases = Tokens(offsets, *entries(int(starts[-1]), longest[None, :] <= place[:, None] + 1, False), int(starts[-1]))
    tokens = Tokens(offsets, *entries(n_features, True, rng.random() < 0.5), n_features, phrases)
    label_costs = rng.uniform(0.5, 2.0, K).astype(np.float32) if costs else None
    oracle = SemiMarkovOracle(K, n_features, tags, max_length=max_length, phrase_starts=starts, label_costs=label_costs)
    return oracle, tokens, plain
