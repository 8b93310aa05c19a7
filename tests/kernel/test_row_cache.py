"""Rows of the kernel matrix over a fixed set of members."""

import numpy as np
import pytest

from structsvm.kernel._kernels import Gram, Kernel, Rows
from structsvm.kernel._row_cache import RowCache

X = np.random.default_rng(0).normal(size=(50, 3))


def cache_of(members, n_rows):
    cache = RowCache(Gram(Kernel("rbf", gamma=0.5), Rows(X)), n_rows * len(X) * 4 / 2**20)
    cache.restart(members)
    return cache


@pytest.mark.parametrize("n_rows", [1, 5, 20, 50])
def test_rows_are_those_of_the_matrix_whatever_was_dropped(n_rows):
    rng = np.random.default_rng(1)
    members = rng.permutation(50)
    cache = cache_of(members, n_rows)
    K = cache.gram.block(members, members)
    for _ in range(50):
        wanted = rng.choice(50, rng.integers(0, 30))  # some twice
        np.testing.assert_array_equal(cache.rows(wanted), K[wanted])
    assert cache.capacity == n_rows


def test_each_row_is_computed_once_while_there_is_room():
    cache = cache_of(np.arange(40), 40)
    before = cache.gram.n_values
    for first in (0, 5, 0, 10):
        cache.rows(np.arange(first, first + 20))
    assert cache.gram.n_values - before == 30 * 40
    assert (cache.n_asked, cache.n_missed) == (80, 30)


def test_members_are_asked_for_by_slot():
    with pytest.raises(IndexError, match="from 0 to 39"):
        cache_of(np.arange(10, 50), 40).rows([40])
