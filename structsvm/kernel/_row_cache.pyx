"""A bounded cache of rows of the kernel matrix, and the blocks in which new examples are visited.

Members have the slots 0 .. n_members - 1, without gaps: a member that leaves gives its slot to the last one. A row in
the cache is complete. When an example becomes a member its own row is known, and column s of every row that is kept is
written from it (kernels are symmetric); so a row is computed again only after it had to make room for another, the
least recently used one.

Fresh examples, in the order in which they are expected, come in blocks: one matrix product gives their rows, another
their values with one another, from which the rows of those still to come are completed when one becomes a member. A
member that has left by the time it is expected is in no block, and has its row computed alone.
"""

from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memmove

import numpy as np

from structsvm._prefetch cimport prefetch
from structsvm._arrays cimport array_data, ndarray
from structsvm._typedefs cimport int64_t
from structsvm.kernel._kernels cimport Gram

from structsvm.kernel._kernels import row_indices

# Fresh examples in a block, and rows that one product computes again.
cdef Py_ssize_t BLOCK = 64
cdef Py_ssize_t AT_ONCE = 16


cdef int no_memory() except -1 nogil:
    with gil:
        raise MemoryError("no memory for a block of rows of the kernel matrix")


cdef class RowCache:
    """Rows of the kernel matrix over its members.

    Parameters
    ----------
    gram : Gram
    cache_size : float
        Memory for rows, in units of 2**20 bytes. The values of one row must fit, if all examples become members.
    """

    def __init__(self, Gram gram not None, double cache_size):
        n = gram.n_rows
        self.gram = gram
        self.size = <Py_ssize_t>min(cache_size * 2.0**20 / sizeof(float), <double>n * n)
        if self.size < n:
            raise ValueError(
                f"cache_size={cache_size:g} MB is less than one row of the kernel matrix of {n} examples, which takes "
                f"{n * sizeof(float) / 2.0**20:.3g} MB")
        # Pages of it that no row has reached yet take no memory; and numpy asks for large ones.
        self.memory = np.empty(self.size, dtype=np.float32)
        self.buffer = <float*>array_data(self.memory)
        self.member, self.slot = np.empty(n, dtype=np.int64), np.full(n, -1, dtype=np.int64)
        self.diagonal = np.empty(n, dtype=np.float32)
        self.place, self.holder = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
        self.used, self.free = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
        self.widen(min(n, 64))

    def __dealloc__(self):
        free(self.ahead)

    @property
    def hit_rate(self):
        """Share of the requested rows that did not have to be recomputed; 1 if none was requested.

        Rows computed ahead and never requested count against it, down to 0.
        """
        return max(0.0, 1.0 - <double>self.n_missed / self.n_asked) if self.n_asked else 1.0

    def get_counters(self):
        """Kernel values computed, rows requested, and rows recomputed, so far."""
        return [self.gram.n_values, self.n_asked, self.n_missed]

    def set_counters(self, counters):
        """Restore the counters returned by `get_counters`."""
        self.gram.n_values, self.n_asked, self.n_missed = counters

    @property
    def capacity(self):
        """Rows of the present length that there is room for."""
        return self.n_places

    @property
    def members(self):
        """The examples that are members, by slot."""
        return np.array(self.member[:self.n_members])

    # ---- rows of members ------------------------------------------------------------------------

    cdef const float* row(self, Py_ssize_t slot) except NULL nogil:
        cdef int64_t one = slot
        self.n_asked += 1
        if self.place[slot] < 0:
            self.fetch(&one, 1)
        self.now += 1
        self.used[self.place[slot]] = self.now
        return self.buffer + self.place[slot] * self.width

    cdef int fetch(self, const int64_t* slots, Py_ssize_t n) except -1 nogil:
        cdef int64_t missing[16]
        cdef int64_t examples[16]
        cdef Py_ssize_t k, p, m = 0
        cdef float* rows
        for k in range(n):
            if self.place[slots[k]] >= 0:
                for p in range(0, self.n_members, 16):
                    prefetch(self.buffer + self.place[slots[k]] * self.width + p)
            elif m < min(AT_ONCE, self.n_places):
                for p in range(m):
                    if missing[p] == slots[k]:
                        break
                else:
                    missing[m] = slots[k]
                    examples[m] = self.member[slots[k]]
                    m += 1
        if m == 0:
            return 0
        rows = <float*>malloc(m * self.n_members * sizeof(float))
        if rows == NULL:
            return no_memory()
        try:
            self.gram.c_block(examples, m, &self.member[0], self.n_members, rows, self.n_members)
            for k in range(m):
                p = self.take_place()
                self.hold(p, missing[k])
                memcpy(self.buffer + p * self.width, rows + k * self.n_members, self.n_members * sizeof(float))
        finally:
            free(rows)
        self.n_missed += m
        return 0

    def rows(self, slots):
        """Rows of members, in the requested order: float32 array (len(slots), n_members)."""
        cdef const int64_t[::1] wanted = row_indices(slots, self.n_members)
        cdef Py_ssize_t k, n = wanted.shape[0]
        cdef ndarray out = np.empty((n, self.n_members), dtype=np.float32)
        for k in range(n):
            if self.place[wanted[k]] < 0:
                self.fetch(&wanted[k], min(n - k, AT_ONCE))
            memcpy(<float*>array_data(out) + k * self.n_members, self.row(wanted[k]),
                   self.n_members * sizeof(float))
        return out

    cdef void hold(self, Py_ssize_t p, Py_ssize_t slot) noexcept nogil:
        self.now += 1
        self.used[p] = self.now
        self.holder[p] = slot
        self.place[slot] = p

    cdef Py_ssize_t take_place(self) noexcept nogil:
        """A place for another row: a free one, or that of the least recently used row."""
        cdef Py_ssize_t p, oldest = 0
        if self.n_free > 0:
            self.n_free -= 1
            return self.free[self.n_free]
        if self.n_taken < self.n_places:
            self.n_taken += 1
            return self.n_taken - 1
        for p in range(1, self.n_places):
            if self.used[p] < self.used[oldest]:
                oldest = p
        self.place[self.holder[oldest]] = -1
        return oldest

    cdef void widen(self, Py_ssize_t width) noexcept nogil:
        """Make the rows longer. Those that do not fit any more are dropped; the others move apart, the last first."""
        cdef Py_ssize_t p, n_places = min(self.size // width, self.member.shape[0])
        for p in range(n_places, self.n_taken):
            if self.holder[p] >= 0:
                self.place[self.holder[p]] = -1
        self.n_taken = min(self.n_taken, n_places)
        self.n_free = 0
        for p in range(self.n_taken - 1, -1, -1):
            if self.holder[p] >= 0:
                memmove(self.buffer + p * width, self.buffer + p * self.width, self.width * sizeof(float))
            else:
                self.free[self.n_free] = p
                self.n_free += 1
        self.width, self.n_places = width, n_places

    def restart(self, members):
        """Make these examples the members, in slots of this order; nothing but their diagonal is computed."""
        cdef const int64_t[::1] examples = row_indices(members, self.gram.n_rows)
        cdef Py_ssize_t s
        cdef float value
        if np.bincount(examples, minlength=1).max() > 1:
            raise ValueError("an example can be a member only once")
        self.n_taken = self.n_free = self.n_fresh = self.n_passed = 0
        self.slot[:] = -1
        self.place[:] = -1
        self.n_members = examples.shape[0]
        for s in range(self.n_members):
            self.member[s] = examples[s]
            self.slot[examples[s]] = s
            self.gram.c_block(&examples[s], 1, &examples[s], 1, &value, 1)
            self.diagonal[s] = value
        if self.n_members > self.width:
            self.widen(self.n_members)

    # ---- fresh examples, and those that come and go ---------------------------------------------

    cdef void expect(self, const int64_t* order, Py_ssize_t n) noexcept nogil:
        self.order, self.n_order = order, n
        self.at = self.n_fresh = self.n_passed = 0

    cdef Py_ssize_t find_fresh(self, Py_ssize_t i) except -1 nogil:
        while self.at < self.n_order and self.order[self.at] != i:
            self.at += 1
        while self.n_passed < self.n_fresh and self.fresh_at[self.n_passed] < self.at:
            self.n_passed += 1
        if self.n_passed == self.n_fresh:
            self.take_block()
        if self.n_passed < self.n_fresh and self.fresh[self.n_passed] == i:
            return self.n_passed
        # It was a member when the block was taken, or is not in the order.
        self.take_one(i)
        return self.n_fresh

    cdef int take_block(self) except -1 nogil:
        """From here on in the order, the next examples that are no members."""
        cdef Py_ssize_t p, n = 0, stride, size
        self.n_fresh = self.n_passed = 0
        for p in range(self.at, self.n_order):
            if n == BLOCK:
                break
            self.fresh[n], self.fresh_at[n] = self.order[p], p
            n += self.slot[self.order[p]] < 0
        # Members that leave and come back included, there are never more than now and these.
        stride = self.n_members + n + 1
        size = (n + 1) * stride + (n + 1) * (n + 1)
        if size > self.ahead_size:
            free(self.ahead)
            self.ahead_size = 0
            self.ahead = <float*>malloc(size * sizeof(float))
            if self.ahead == NULL:
                return no_memory()
            self.ahead_size = size
        self.within = self.ahead + (n + 1) * stride
        self.ahead_stride = stride
        self.gram.c_block(self.fresh, n, &self.member[0], self.n_members, self.ahead, stride)
        self.gram.c_block(self.fresh, n, self.fresh, n, self.within, n + 1)
        self.n_fresh = n
        self.n_blocks += 1
        return 0

    cdef int take_one(self, int64_t i) except -1 nogil:
        """The values of one example, in the row and the column behind those of the block."""
        cdef Py_ssize_t n = self.n_fresh
        self.fresh[n] = i
        self.gram.c_block(&i, 1, &self.member[0], self.n_members, self.ahead + n * self.ahead_stride, self.n_members)
        self.gram.c_block(self.fresh, n + 1, &i, 1, self.within + n, n + 1)
        self.n_alone += 1
        return 0

    cdef const float* fresh_row(self, Py_ssize_t b) noexcept nogil:
        return self.ahead + b * self.ahead_stride

    cdef double fresh_diagonal(self, Py_ssize_t b) noexcept nogil:
        return self.within[b * (self.n_fresh + 1) + b]

    cdef int enter(self, Py_ssize_t b) except -1 nogil:
        cdef Py_ssize_t p, other, s = self.n_members, n = self.member.shape[0]
        cdef float* own = self.ahead + b * self.ahead_stride
        if s == self.width:
            self.widen(min(n, s + s // 2))
        for p in range(self.n_taken):
            if self.holder[p] >= 0:
                self.buffer[p * self.width + s] = own[self.holder[p]]
        for other in range(self.n_fresh):
            self.ahead[other * self.ahead_stride + s] = self.within[other * (self.n_fresh + 1) + b]
        own[s] = self.fresh_diagonal(b)
        self.member[s] = self.fresh[b]
        self.slot[self.fresh[b]] = s
        self.diagonal[s] = own[s]
        self.n_members += 1
        p = self.take_place()
        self.hold(p, s)
        memcpy(self.buffer + p * self.width, own, self.n_members * sizeof(float))
        return 0

    cdef int leave(self, Py_ssize_t slot) except -1 nogil:
        cdef Py_ssize_t p, b, last = self.n_members - 1
        for p in range(self.n_taken):
            self.buffer[p * self.width + slot] = self.buffer[p * self.width + last]
        for b in range(self.n_fresh):
            self.ahead[b * self.ahead_stride + slot] = self.ahead[b * self.ahead_stride + last]
        if self.place[slot] >= 0:
            self.holder[self.place[slot]] = -1
            self.free[self.n_free] = self.place[slot]
            self.n_free += 1
        self.slot[self.member[slot]] = -1
        self.n_members = last
        if slot != last:
            self.member[slot] = self.member[last]
            self.diagonal[slot] = self.diagonal[last]
            self.slot[self.member[slot]] = slot
            self.place[slot] = self.place[last]
            if self.place[slot] >= 0:
                self.holder[self.place[slot]] = slot
        return 0
