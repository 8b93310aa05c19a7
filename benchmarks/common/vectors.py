"""Vectors of words that stand in plain text, and what parsers see of them."""

from __future__ import annotations

from collections import Counter

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.linalg import svds

from structsvm.features.word_codes import VectorClusters, WordVectors

CONTEXTS, DIMENSIONS = 1500, 50


def vectors_of(sentences):
    """Singular vectors of positive pointwise mutual information with frequent words, two to each side."""
    frequencies = Counter(word for sentence in sentences for word in sentence)
    known = {word: k for k, word in enumerate(word for word, n in frequencies.items() if n >= 3)}
    context = {word: k for k, (word, _) in enumerate(frequencies.most_common(CONTEXTS))}
    pairs = Counter(
        (known[word], place * CONTEXTS + context[sentence[i + offset]])
        for sentence in sentences
        for i, word in enumerate(sentence)
        for place, offset in enumerate((-2, -1, 1, 2))
        if word in known and 0 <= i + offset < len(sentence) and sentence[i + offset] in context
    )
    rows, columns = np.array(list(pairs)).T
    n = np.array(list(pairs.values()), dtype=np.float64)
    information = np.log(n * n.sum() / (np.bincount(rows, n)[rows] * np.bincount(columns, n)[columns]))
    table = coo_array((np.maximum(information, 0.0), (rows, columns)), shape=(len(known), 4 * CONTEXTS))
    left, values, _ = svds(table.tocsr(), k=DIMENSIONS, rng=np.random.default_rng(0))
    return dict(zip(known, left * np.sqrt(values), strict=True))


def features_of(sentences):
    """Features that parsers may see of words, by name: nothing, clusters of their vectors, the vectors, both."""
    vectors = vectors_of(sentences)
    clusters, numbers = VectorClusters(vectors), WordVectors(vectors)

    def both(words):
        return [(*found, vector) for found, vector in zip(clusters(words), numbers(words), strict=True)]

    return {"none": None, "clusters": clusters, "vectors": numbers, "clusters and vectors": both}
