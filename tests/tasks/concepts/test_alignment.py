"""Labels of bags put into order by words alone, against the expectations written out and all orders tried."""

from collections import defaultdict
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structsvm.datasets import make_concept_world
from structsvm.tasks.concepts.alignment import BALANCINGS, LATE, ROUNDS, SMALLEST, aligned

EMPTY = 0


def plain_table(words, targets, offsets, ordered, weight):
    """t(word | label), pair by pair."""
    t = defaultdict(lambda: 1.0)
    for _ in range(ROUNDS):
        expected = defaultdict(float)
        for s, (a, b) in enumerate(pairwise(offsets)):
            n = b - a
            share = [
                [float(i == j) if ordered[s] else t[words[a + i], targets[a + j]] for j in range(n)] for i in range(n)
            ]
            for _ in range(0 if ordered[s] else BALANCINGS):
                sums = [sum(row[j] for row in share) for j in range(n)]
                share = [[row[j] / sums[j] for j in range(n)] for row in share]
                share = [[value / sum(row) for value in row] for row in share]
            for i in range(n):
                for j in range(n):
                    expected[words[a + i], targets[a + j]] += weight[s] * share[i][j]
        sums = defaultdict(float)
        for (_, label), value in expected.items():
            sums[label] += value
        t = {pair: max(value / max(sums[pair[1]], SMALLEST), SMALLEST) for pair, value in expected.items()}
    return t


@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_best_of_all_orders(seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 5, 6)
    offsets = np.cumsum([0, *lengths])
    words = rng.integers(0, 5, offsets[-1]).astype(np.int32)
    targets = rng.integers(0, 4, offsets[-1]).astype(np.int32)
    ordered, weight = (rng.random(6) < 0.3).astype(np.uint8), rng.integers(0, 3, 6).astype(float)
    found = aligned(words, targets, offsets, ordered, weight, EMPTY)
    t = plain_table(words.tolist(), targets.tolist(), offsets.tolist(), ordered, weight)

    def worth(of, labels):
        return sum(np.log(t[w, k]) - LATE * i * (k != EMPTY) for i, (w, k) in enumerate(zip(of, labels, strict=True)))

    for s, (a, b) in enumerate(pairwise(offsets)):
        of, labels = words[a:b].tolist(), found[a:b].tolist()
        if ordered[s]:
            assert labels == targets[a:b].tolist()
            continue
        assert sorted(labels) == sorted(targets[a:b].tolist())
        best = max(worth(of, order) for order in permutations(labels))
        assert worth(of, labels) == pytest.approx(best, rel=1e-6, abs=1e-6)


def test_of_words_that_always_come_together_the_first_has_the_label():
    words, offsets = np.array([1, 2] * 3, dtype=np.int32), np.array([0, 2, 4, 6])
    bags = np.array([EMPTY, 7, 7, EMPTY, EMPTY, 7], dtype=np.int32)
    found = aligned(words, bags, offsets, np.zeros(3, np.uint8), np.ones(3), EMPTY)
    assert found.tolist() == [7, EMPTY] * 3


def test_a_simulated_house():
    """Words alone order the labels of nearly all sentences: not of those where one pronoun stands for two things."""
    sentences, concepts, _ = make_concept_world(1000, random_state=1)
    words = {word: k for k, word in enumerate(sorted({word for s in sentences for word in s}))}
    labels = {label: k for k, label in enumerate(sorted({label for s in concepts for label in s}))}
    offsets = np.cumsum([0, *map(len, sentences)])
    x = np.array([words[word] for s in sentences for word in s], dtype=np.int32)
    y = np.array([labels[label] for s in concepts for label in s], dtype=np.int32)
    rng = np.random.default_rng(0)
    bags = np.concatenate([rng.permutation(y[a:b]) for a, b in pairwise(offsets)])
    found = aligned(x, bags, offsets, np.zeros(1000, np.uint8), np.ones(1000), labels["-"])
    wrong = [s for s, (a, b) in enumerate(pairwise(offsets)) if (found[a:b] != y[a:b]).any()]
    assert len(wrong) < 30
    # Labels that some sentences have in order count as well.
    ordered = np.arange(1000) % 2 == 0
    mixed = np.where(np.repeat(ordered, np.diff(offsets)), y, bags)
    found = aligned(x, mixed, offsets, ordered.astype(np.uint8), np.ones(1000), labels["-"])
    assert sum((found[a:b] != y[a:b]).any() for a, b in pairwise(offsets)) < len(wrong)
