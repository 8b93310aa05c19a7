"""Orderings by enumeration: all permutations, the sum over pairs of their features, and the losses pair by pair."""

from functools import cache
from itertools import combinations, permutations, product

import numpy as np


def permutations_of(n):
    return [np.array(y) for y in permutations(range(n))]


def joint_feature(rows, table, y):
    """The sum of x_i - x_j and of (P_ij - P_ji) / 2 over items i before j."""
    psi = np.zeros(rows.shape[1] + table.shape[2])
    for i, j in combinations(y, 2):
        psi += np.concatenate([rows[i] - rows[j], (table[i, j] - table[j, i]) / 2.0])
    return psi


def discordant(y_true, y):
    """Pairs of items that two orders have the other way round."""
    place, place_true = np.argsort(y), np.argsort(y_true)
    pairs = combinations(range(len(y)), 2)
    return sum((place[i] < place[j]) != (place_true[i] < place_true[j]) for i, j in pairs)


def loss(y_true, y, name="kendall"):
    wrong = discordant(y_true, y)
    return float(wrong > 0) if name == "zero_one" else wrong / max(len(y) * (len(y) - 1) / 2, 1)


def agrees(y, precedences):
    place = np.argsort(y)
    return all(place[i] < place[j] for i, j in precedences)


def best_score(A):
    """The score of the best order: of the items that are left, one comes last."""

    @cache
    def best(left):
        return max((best(left - {i}) + sum(A[j, i] for j in left - {i}) for i in left), default=0.0)

    return best(frozenset(range(len(A))))


def relaxed_value(A):
    """The greatest of the relaxation: over permutations, and over each item's own choice of those before it."""
    n = len(A)
    cost = np.array([[np.sort(np.delete(A[i], i))[:p].sum() for p in range(n)] for i in range(n)])
    return max(-sum(cost[i, p] for p, i in enumerate(y)) for y in permutations(range(n)))


def random_input(rng, n, d, p, *, sparse=0.0):
    """Rows and pair features, whole numbers among them: scores that tie."""
    rows = rng.normal(size=(n, d)).round(1) * (rng.random((n, d)) >= sparse)
    return rows, rng.integers(-2, 3, (n, n, p)).astype(float)


def is_transitive(before):
    n = len(before)
    return all(before[i, j] * before[j, k] <= before[i, k] for i, j, k in product(range(n), repeat=3) if i != k)
