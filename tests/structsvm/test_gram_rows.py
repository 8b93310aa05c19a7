import numpy as np
import pytest

from structsvm._kernels import Gram, Kernel, Rows
from structsvm.gram_rows import GramRows

X = np.random.default_rng(0).normal(size=(20, 3))


def rows_of(order, n_rows):
    return GramRows(Gram(Kernel("rbf", gamma=0.5), Rows(X)), order, (n_rows + 0.5) * 4 * len(order) / 2**20)


@pytest.mark.parametrize("n_rows", [5, 8, 20])
def test_rows_are_those_of_the_matrix_whatever_was_dropped(n_rows):
    rng = np.random.default_rng(1)
    order = rng.permutation(20)[:15]
    rows = rows_of(order, n_rows)
    assert rows.capacity == min(n_rows, 15)
    K = rows.gram.block(order, order)
    for _ in range(50):
        wanted = np.sort(rng.choice(15, rng.integers(0, 6), replace=False))
        np.testing.assert_array_equal(rows.table[rows.fetch(wanted)], K[wanted])


def test_each_row_is_computed_once_while_there_is_room():
    rows = rows_of(np.arange(20), 20)
    for first in (0, 5, 0, 10):
        rows.fetch(np.arange(first, first + 10))
    assert rows.gram.n_values == 20 * 20
    assert (rows.n_asked, rows.n_found) == (40, 20)


def test_the_longest_unused_go_first():
    rows = rows_of(np.arange(20), 4)
    for wanted in ([0, 1], [2, 3], [0, 1], [4]):
        rows.fetch(np.array(wanted))
    before = rows.gram.n_values
    rows.fetch(np.array([0, 1, 4]))
    assert rows.gram.n_values == before
    rows.fetch(np.array([2]))
    assert rows.gram.n_values == before + 20


def test_a_table_that_holds_no_row():
    with pytest.raises(ValueError, match=r"cache_size=1e-05 MB is smaller than one row of 20 kernel values"):
        GramRows(Gram(Kernel("linear"), Rows(X)), np.arange(20), 1e-5)
