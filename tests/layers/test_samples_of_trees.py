"""Samples of dependency trees: each tree as often as its probability says, however scores are spread."""

from itertools import product

import numpy as np
import pytest

from structsvm.layers import Arborescence, Projective
from structsvm.oracles.dependency._dependency import TreeFinder


def is_tree(heads, projective, several):
    n = len(heads)
    for word in range(1, n + 1):
        at, steps = word, 0
        while at and steps <= n:
            at, steps = heads[at - 1], steps + 1
        if at:
            return False
    arcs = [tuple(sorted(arc)) for arc in enumerate(heads, start=1)]
    crosses = any(a < c < b < d for a, b in arcs for c, d in arcs)
    return (several or heads.count(0) == 1) and not (projective and crosses)


def probabilities(arcs, projective, several):
    """The probability of each tree, by enumeration."""
    n = len(arcs) - 1
    trees = [heads for heads in product(range(n + 1), repeat=n) if is_tree(list(heads), projective, several)]
    scores = np.array([sum(arcs[head, word] for word, head in enumerate(tree, start=1)) for tree in trees])
    weights = np.exp(scores - scores.max())
    return dict(zip(trees, weights / weights.sum(), strict=True))


def check_frequencies(found, expected):
    n = len(found)
    seen, counts = np.unique(found, axis=0, return_counts=True)
    counted = dict(zip(map(tuple, seen.tolist()), counts.tolist(), strict=True))
    assert counted.keys() <= expected.keys()
    for tree, p in expected.items():
        assert abs(counted.get(tree, 0) - n * p) <= 5 * np.sqrt(n * p * (1 - p)) + 1


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("kind", [Projective, Arborescence])
@pytest.mark.parametrize("n", [1, 2, 4])
@pytest.mark.parametrize("spread", [0.0, 2.0])
def test_trees_come_as_often_as_they_are_probable(kind, several, n, spread):
    arcs = spread * np.random.default_rng(n).normal(size=(1, n + 1, n + 1))
    if n > 2:
        arcs[0, 1, 2] = -np.inf
    found = kind(several_roots=several).sample(arcs, n_samples=20_000, seed=0)[0]
    check_frequencies(found, probabilities(arcs[0], kind is Projective, several))


@pytest.mark.parametrize("kind", [Projective, Arborescence])
def test_long_sentences_and_labels(kind):
    rng = np.random.default_rng(0)
    arcs = rng.normal(size=(2, 26, 26, 3))
    found = kind(n_threads=2).sample(arcs, n_samples=3000, seed=1, lengths=[25, 17])
    for y, size, chances in zip(found, [25, 17], kind().marginals(arcs, lengths=[25, 17])[0], strict=True):
        counts = np.zeros(arcs.shape[1:])
        words = np.broadcast_to(np.arange(1, size + 1), (3000, size))
        np.add.at(counts, (y[:, :size, 0], words, y[:, :size, 1]), 1)
        assert (np.abs(counts - 3000 * chances) <= 5 * np.sqrt(3000 * chances * (1 - chances)) + 1).all()
        assert (y[:, size:] == -1).all()
        assert all(is_tree(heads, kind is Projective, several=False) for heads in y[:50, :size, 0].tolist())


@pytest.mark.parametrize("height", [20.0, 45.0])
@pytest.mark.parametrize("cycle", [(1, 2), (2, 3)])
def test_cycles_beside_which_nothing_else_is_seen(cycle, height):
    arcs = np.random.default_rng(0).normal(size=(1, 4, 4))
    arcs[0, cycle, cycle[::-1]] += height
    found = Arborescence().sample(arcs, n_samples=4000, seed=0)[0]
    check_frequencies(found, probabilities(arcs[0], projective=False, several=False))
    table, uniforms = arcs[0] - np.diag([np.inf] * 4), np.random.default_rng(0).random((50, 6))
    drawn = TreeFinder(False, 3).samples(table, uniforms)
    assert (drawn is None) == (cycle == (2, 3) and height == 45.0)  # then word by word
