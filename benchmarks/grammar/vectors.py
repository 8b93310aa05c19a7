"""Word vectors as clusters, in span features: vectors of the words that stand around a word in plain text."""

from __future__ import annotations

import warnings
from collections import Counter

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.linalg import svds

from common.measure import Clock
from common.report import Table, notes
from grammar.choices import LONGEST, counts, f1
from grammar.data import treebank
from structsvm.datasets import fetch_ud_english_ewt
from structsvm.features.word_codes import VectorClusters
from structsvm.tasks import GrammarParser

SIZES, CONTEXTS, DIMENSIONS = (200, 800), 1500, 50
COLUMNS = {
    "terminals": ("from", ""),
    "trees": ("trees", "d"),
    "plain": ("F1 %", ".2f"),
    "clusters": ("F1 %, clusters", ".2f"),
    "more": ("more", "+.2f"),
    "error": ("standard error", ".2f"),
    "cpu": ("training, CPU s", ".1f"),
}


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


def run(options):
    trees, _ = treebank(LONGEST, options.quick)
    n = len(trees) // 5
    train, test = trees[:-n], trees[-n:]
    texts = [[word.form.lower() for word in tree.words] for tree in fetch_ud_english_ewt().train]
    texts += [[word.lower() for word in tree.leaves()] for tree in train]
    clusters = VectorClusters(vectors_of(texts))
    table = Table(f"Clusters of word vectors, {n} trees to judge by", COLUMNS, notes=notes(NOTES))
    draws = np.random.default_rng(0).integers(0, n, size=(1000, n))
    for terminals in ("words", "both"):
        for size in SIZES:
            some, found, seconds = train[:: max(len(train) // size, 1)][:size], [], []
            for features in (None, clusters):
                with warnings.catch_warnings(), Clock() as clock:
                    warnings.simplefilter("ignore")  # gaps of few passes, sentences without a parse
                    parser = GrammarParser(C=0.3, terminals=terminals, features=features, random_state=0).fit(some)
                    found.append(counts(test, parser))
                seconds.append(clock.cpu)
            row = {"terminals": terminals, "trees": len(some), "plain": f1(found[0]), "clusters": f1(found[1])}
            error = (f1(found[1][draws]) - f1(found[0][draws])).std()
            table.rows.append(row | {"more": f1(found[1]) - f1(found[0]), "error": error, "cpu": seconds[1]})
            yield table


NOTES = f"""
Sentences up to {LONGEST} words of wsj_0001-0159: trees at equal distances in the first four fifths, judged on the last
fifth; C = 0.3. Vectors of {DIMENSIONS} numbers from the words of these four fifths and of UD English EWT's training
part, without their trees; 16, 64 and 256 clusters. CPU seconds are of training with clusters, and judging.
"""
