"""Rows of the kernel matrix over all training examples, of which the last used ones are kept."""

from __future__ import annotations

import numpy as np


class GramRows:
    """Whole rows of a kernel matrix, in a table of bounded size.

    Parameters
    ----------
    gram : Gram
    order : ndarray of shape (n_samples,), int64
        The examples in the order in which rows and columns are numbered here; some may be left out.
    cache_size : float
        Size of the table in MB (2**20 bytes).

    Attributes
    ----------
    capacity : int
        Rows that the table holds.
    n_asked, n_found : int
        Rows asked for so far, and of these the ones that were in the table.

    Raises
    ------
    ValueError
        If not one row fits.
    """

    def __init__(self, gram, order, cache_size):
        n = len(order)
        self.gram, self.order = gram, order
        self.capacity = min(int(cache_size * 2**20 / (4 * n)), n)
        if self.capacity == 0:
            raise ValueError(
                f"cache_size={cache_size} MB is smaller than one row of {n} kernel values, {4 * n / 2**20:.3g} MB"
            )
        self.table = np.empty((self.capacity, n), dtype=np.float32)
        self.owner = np.full(self.capacity, -1)
        self.slot = np.full(n, -1)
        self.last_use = np.zeros(self.capacity, dtype=np.int64)
        self.clock = self.n_asked = self.n_found = 0

    def fetch(self, numbers):
        """Return the places in `table` of rows, at most `capacity` of them, each asked for once."""
        self.clock += 1
        missing = numbers[self.slot[numbers] < 0]
        self.n_asked += len(numbers)
        self.n_found += len(numbers) - len(missing)
        found = self.slot[numbers]
        self.last_use[found[found >= 0]] = self.clock
        # The longest unused; those that were asked for just now are the last of all.
        places = np.argsort(self.last_use, kind="stable")[: len(missing)]
        dropped = self.owner[places]
        self.slot[dropped[dropped >= 0]] = -1
        self.owner[places] = -1
        self.table[places] = self.gram.block(self.order[missing], self.order)
        self.owner[places], self.slot[missing], self.last_use[places] = missing, places, self.clock
        return self.slot[numbers]
