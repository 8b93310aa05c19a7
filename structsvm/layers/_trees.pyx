"""Dependency trees of a batch: the loops over its entries, around the kernels of tree_sums.h, and checks of heads.

Entries in float32 whose arcs may cross are computed side by side, in groups of nearly equal lengths. The groups depend
on the batch alone, so that the bits do not depend on how it is split among threads.
"""

from cython cimport floating
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uintptr_t
from libc.string cimport memset

import numpy as np

from structsvm._arrays cimport array_data, array_shape, scratch, scratch_data
from structsvm.execution._processor cimport kernel_set
from structsvm.execution._stop cimport each_part, poll, threads_for
from structsvm.layers._chain cimport scores_allowed, scores_within

cdef extern from "tree_sums.h" nogil:
    enum: TREES_OK, TREES_IN_LOGS, LANES_LONGEST
    ctypedef struct trees:
        int64_t n, m
        int is_double, projective, several
        const void* scores
        double* memory
    ctypedef struct tree_sums_kernels:
        int lanes
        int (*sums)(const trees* s, double* log_z, void* arcs) except -1 nogil
        int (*beside)(const trees* s, double* log_z, float** arcs) except -1 nogil
        int (*alone)(const trees* s, double* log_z, float* arcs) except -1 nogil
        int (*table)(const trees* s, float* table) noexcept nogil
    int64_t trees_size(int64_t n)
    int64_t trees_beside_size(int lanes, int64_t n)
    int64_t trees_alone_size(int lanes, int64_t n)
    const tree_sums_kernels* tree_sums_kernels_of(int set, int (*poll)(int64_t work) except -1 nogil)

# For floats, and for doubles, whose vectors are no wider in the third set than in the second.
cdef const tree_sums_kernels* KERNELS = tree_sums_kernels_of(kernel_set(), poll)
cdef const tree_sums_kernels* OF_DOUBLES = tree_sums_kernels_of(min(kernel_set(), 1), poll)

# Groups with fewer entries are computed one by one, which is then as fast. Vectors are whole lines of the cache.
cdef enum:
    MOST_LANES = 16
    LEAST_BESIDE = 3
    LINE = 64


# Status flags per entry: its sums need logs; or its group has no sums, as scores are out of bounds.
cdef enum:
    IN_LOGS = 1
    BEYOND = 2


# The sums of a batch: where they go, trees whose indicators are taken off, and scratch of each thread.
cdef struct trees_task:
    void* batch
    double* values
    char* chances
    const int32_t* heads
    double* known
    uint8_t* said
    bint looks
    char* room
    Py_ssize_t size


cdef int sums_of_group(void* task, int slot, int64_t group) except -1 nogil:
    cdef const trees_task* t = <const trees_task*> task
    return (<Batch> t.batch).sum_group(t, t.room + slot * t.size, group)


cdef class Batch:
    """Scores of a batch, float32 or float64 arrays (B, n + 1, n + 1) of arcs, and its lengths, int64 (B,)."""

    cdef trees scores
    cdef object arrays
    cdef const char* arcs
    cdef const int64_t* lengths
    cdef int64_t* order
    cdef Py_ssize_t n, step, together

    def __init__(self, arcs, lengths, bint projective, bint several):
        cdef Py_ssize_t b, ascents = 0, m = array_shape(arcs)[1], size = arcs.itemsize
        self.arcs, self.lengths = <const char*> array_data(arcs), <const int64_t*> array_data(lengths)
        self.n, self.step = array_shape(lengths)[0], m * m * size
        for b in range(1, self.n):
            ascents += self.lengths[b] > self.lengths[b - 1]
        order = np.argsort(-lengths, kind="stable") if ascents else None
        self.arrays = arcs, lengths, order
        self.order = NULL if order is None else <int64_t*> array_data(order)
        self.scores.m, self.scores.is_double = m, size == 8
        self.scores.projective, self.scores.several = projective, several
        self.together = 1 if projective or self.scores.is_double else KERNELS.lanes

    cdef Py_ssize_t at(self, Py_ssize_t place) noexcept nogil:
        """The entry at a place in the order of lengths."""
        return place if self.order == NULL else self.order[place]

    def sums(self, int n_threads, log_z, chances, heads=None, known=None, bint looks=False):
        """Write log partitions and, unless `chances` is None, the probabilities of arcs.

        With heads, which `are_trees`, the scores of these trees are written, and their indicators taken off the
        probabilities. Returns the entries that only logs will do for, with probabilities of 0; or None where it `looks`
        for scores out of bounds and finds some.

        Parameters
        ----------
        log_z, known : float64 arrays (B,)
        chances : array like the arcs, or None
        heads : int32 array (B, n), which may have anything beyond the lengths
        """
        cdef Py_ssize_t b, n_groups = (self.n + self.together - 1) // self.together
        cdef Py_ssize_t longest = self.lengths[self.at(0)] if self.n else 0
        cdef int64_t work = self.n * (200 + longest * longest * longest // (4 if self.scores.projective else 40))
        cdef uint8_t* flag
        cdef trees_task t
        t.batch, t.values = <void*> self, <double*> array_data(log_z)
        n_threads = threads_for(n_threads, n_groups, work)
        t.chances, t.heads = NULL if chances is None else <char*> array_data(chances), NULL
        if heads is not None:
            t.heads, t.known = <const int32_t*> array_data(heads), <double*> array_data(known)
        t.size = self.room_of(longest)
        room, flags = scratch(NULL, n_threads * t.size + LINE), bytearray(self.n)
        t.room = <char*> ((<uintptr_t> scratch_data(room) + LINE - 1) // LINE * LINE)
        t.said, t.looks = flags, looks
        flag = t.said
        each_part(sums_of_group, &t, n_groups, n_threads)
        if BEYOND in flags:
            return None
        return [b for b in range(self.n) if flag[b]] if IN_LOGS in flags else []

    cdef Py_ssize_t room_of(self, int64_t longest):
        """Bytes of scratch of a thread, whole lines of the cache."""
        cdef int64_t n = min(longest, LANES_LONGEST), wide = 0
        if self.together > 1:
            wide = trees_alone_size(KERNELS.lanes, n)
            if self.n >= LEAST_BESIDE:
                wide = max(wide, trees_beside_size(KERNELS.lanes, n))
        return max(8 * trees_size(longest), 4 * wide) // LINE * LINE + LINE

    cdef int sum_group(self, const trees_task* t, char* room, Py_ssize_t group) except -1 nogil:
        cdef Py_ssize_t b, p, place = group * self.together, stop = min(place + self.together, self.n)
        cdef int lane, alone = (1 << (stop - place)) - 1
        cdef bint narrow, is_wide = stop - place >= LEAST_BESIDE
        cdef trees scores = self.scores
        scores.memory = <double*> room
        if t.looks and not self.are_within(place, stop):
            t.said[self.at(place)] = BEYOND
            return 0
        for p in range(place, stop):
            b = self.at(p)
            if t.chances != NULL and (self.lengths[b] < scores.m - 1 or self.lengths[b] == 0):
                memset(t.chances + b * self.step, 0, self.step)
        if is_wide and self.lengths[self.at(place)] <= LANES_LONGEST:
            alone &= self.beside(&scores, place, stop, t.values, t.chances)
        for lane in range(<int> (stop - place)):
            b = self.at(place + lane)
            narrow = KERNELS.alone != NULL and self.together > 1 and not is_wide and self.lengths[b] <= LANES_LONGEST
            if alone >> lane & 1:
                t.said[b] = self.by_itself(&scores, b, narrow, t.values, t.chances) == TREES_IN_LOGS
            if t.heads != NULL:
                self.less_heads(t, b)
            poll(100 + self.lengths[b] * self.lengths[b])       # kernels count nothing of short sentences
        return 0

    cdef bint are_within(self, Py_ssize_t place, Py_ssize_t stop) noexcept nogil:
        """Whether the scores of a group's arcs are masks or in bounds."""
        cdef int64_t m = self.scores.m, n, head
        cdef Py_ssize_t b, size = 8 if self.scores.is_double else 4
        cdef const char* row
        for place in range(place, stop):
            b = self.at(place)
            n, row = self.lengths[b], self.arcs + b * self.step
            if scores_within(row, self.scores.is_double, m * m):
                continue
            for head in range(n + 1):       # columns 1 .. n but for the diagonal
                if not (
                    scores_allowed(row + size, self.scores.is_double, head - 1)
                    and scores_allowed(row + (head + 1) * size, self.scores.is_double, n - head)
                ):
                    return False
                row += m * size
        return True

    def are_trees(self, heads):
        """Whether heads, int32 (B, n) with anything beyond the lengths, are known and trees of the structure."""
        cdef const int32_t* head = <const int32_t*> array_data(heads)
        cdef Py_ssize_t b, word
        cdef bint bad = False
        room = scratch(NULL, self.scores.m * sizeof(int32_t))
        cdef int32_t* start = <int32_t*> scratch_data(room)
        with nogil:
            for b in range(self.n):
                for word in range(self.lengths[b]):
                    bad |= <uint32_t> head[word] > <uint32_t> self.lengths[b]
                if bad or fault_of(head, self.lengths[b], self.scores.several, self.scores.projective, start):
                    bad = True
                    break
                head += self.scores.m - 1
        return not bad

    cdef void less_heads(self, const trees_task* t, Py_ssize_t b) noexcept nogil:
        """Write the score of a tree, and take its indicators off."""
        cdef const int32_t* head = t.heads + b * (self.scores.m - 1)
        cdef const void* arcs = self.arcs + b * self.step
        cdef void* chances = t.chances + b * self.step
        if self.scores.is_double:
            t.known[b] = less_head(head, self.lengths[b], self.scores.m, <const double*> arcs, <double*> chances)
        else:
            t.known[b] = less_head(head, self.lengths[b], self.scores.m, <const float*> arcs, <float*> chances)

    def tables(self, Py_ssize_t first, Py_ssize_t last):
        """Tables of scores that `TreeFinder.trees` reads, and numbers of words, 0 if there is no tree, of some entries.

        Returns
        -------
        tables : float32 array (last - first, ...)
        sizes : int64 array (last - first,)
        """
        cdef Py_ssize_t b, longest = max(self.arrays[1][first:last], default=0), more = self.scores.several
        room, sizes = scratch(NULL, 8 * trees_size(longest)), np.zeros(last - first, np.int64)
        tables = np.empty((last - first, (longest + more + 1) ** 2), np.float32)
        cdef float* table = <float*> array_data(tables)
        cdef int64_t* size = <int64_t*> array_data(sizes)
        cdef trees s = self.scores
        s.memory = <double*> scratch_data(room)
        with nogil:
            for b in range(first, last):
                s.n, s.scores = self.lengths[b], self.arcs + b * self.step
                if s.n and OF_DOUBLES.table(&s, table + (b - first) * (longest + more + 1) ** 2) == TREES_OK:
                    size[b - first] = s.n + more
                poll(s.n * s.n)
        return tables, sizes

    cdef int beside(
        self, const trees* scores, Py_ssize_t place, Py_ssize_t stop, double* values, char* to
    ) except -1 nogil:
        """The sums of a group; returns the lanes that are yet to be computed, a bit each."""
        cdef trees s[MOST_LANES]
        cdef double log_z[MOST_LANES]
        cdef float* arcs[MOST_LANES]
        cdef Py_ssize_t b
        cdef int lane, alone
        for lane in range(self.together):
            b = self.at(min(place + lane, stop - 1))
            s[lane] = scores[0]
            s[lane].n, s[lane].scores = self.lengths[b], self.arcs + b * self.step
            if place + lane >= stop:
                s[lane].n = 0
            arcs[lane] = NULL if to == NULL else <float*> (to + b * self.step)
        alone = KERNELS.beside(s, log_z, NULL if to == NULL else arcs)
        for lane in range(stop - place):
            values[self.at(place + lane)] = log_z[lane]
        return alone

    cdef int by_itself(
        self, const trees* scores, Py_ssize_t b, bint narrow, double* values, char* to
    ) except -1 nogil:
        """The sums of an entry, in narrow numbers if these do; TREES_IN_LOGS where there is another way only."""
        cdef trees s = scores[0]
        cdef int status = TREES_IN_LOGS
        s.n, s.scores = self.lengths[b], self.arcs + b * self.step
        values[b] = 0.0
        if to != NULL and not (narrow and s.n == s.m - 1):      # all is written then
            memset(to + b * self.step, 0, self.step)
        if s.n == 0:
            return 0
        if narrow:
            status = KERNELS.alone(&s, values + b, NULL if to == NULL else <float*> (to + b * self.step))
            if status == TREES_IN_LOGS and to != NULL:
                memset(to + b * self.step, 0, self.step)
        if status == TREES_IN_LOGS:
            status = OF_DOUBLES.sums(&s, values + b, NULL if to == NULL else to + b * self.step)
        if to != NULL and status == TREES_IN_LOGS:
            memset(to + b * self.step, 0, self.step)
        return status


# Faults of heads, as `faults` numbers them.
CYCLE, ROOTS, CROSSING = 1, 2, 3


def faults(heads, lengths, bint several, bint projective):
    """The fault of each entry's heads, 0 where they are a tree of the structure, or not all known: int32 array (B,).

    Parameters
    ----------
    heads : int32 array (B, n), from 0 to the length, or -1 where unknown
    lengths : int64 array (B,)
    """
    cdef const int32_t* head = <const int32_t*> array_data(heads)
    cdef const int64_t* sizes = <const int64_t*> array_data(lengths)
    cdef Py_ssize_t b, n = len(heads), width = heads.shape[1]
    found, room = np.zeros(n, np.int32), np.empty(width + 1, np.int32)
    cdef int32_t* fault = <int32_t*> array_data(found)
    cdef int32_t* start = <int32_t*> array_data(room)
    for b in range(n):
        with nogil:
            fault[b] = fault_of(head + b * width, sizes[b], several, projective, start)
    return found


cdef int fault_of(const int32_t* head, int64_t n, bint several, bint projective, int32_t* start) except -1 nogil:
    """The fault of the heads of words 1 .. n; `start` has room for n + 1 words."""
    cdef int64_t word, at, roots = 0
    for word in range(n):
        if head[word] < 0:
            return 0
        roots += head[word] == 0
        start[word + 1] = 0
    for word in range(1, n + 1):
        at = word
        while at and start[at] == 0:        # up to the root, or to where another word came along
            start[at] = word
            at = head[at - 1]
        if at and start[at] == word:
            return 1
    if roots > 1 and not several:
        return 2
    if projective:
        for word in range(1, n + 1):
            if crosses(head, n, word):
                return 3
            poll(n)
    return 0


cdef bint crosses(const int32_t* head, int64_t n, int64_t word) noexcept nogil:
    """Whether the arc into a word encloses one end alone of another arc."""
    cdef int64_t low = min(head[word - 1], word), high = max(head[word - 1], word), other
    for other in range(low + 1, high):      # a word within, whose head is not
        if head[other - 1] < low or head[other - 1] > high:
            return True
    return False


cdef double less_head(
    const int32_t* head, int64_t n, int64_t m, const floating* scores, floating* taken
) noexcept nogil:
    """The score of a tree; 1 is taken off the probabilities of its arcs."""
    cdef int64_t word, at
    cdef double value = 0.0
    for word in range(n):
        at = head[word] * m + word + 1
        value += scores[at]
        taken[at] -= 1
    return value
