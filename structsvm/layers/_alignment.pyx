"""Alignments of a batch: the loops over its entries, around the recursions of alignments.h.

Each entry is computed by itself, so that the bits do not depend on how the batch is split among threads.
"""

from libc.math cimport INFINITY, exp, fabs, isinf, log
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

import numpy as np

from structsvm._arrays cimport array_data
from structsvm.execution._stop cimport poll

cdef extern from "alignments.h" nogil:
    const double ALIGNMENT_RANGE
    ctypedef struct alignment:
        int64_t n, m, n_ways, step_x, step_z
        int pays[3][2]
        const double* pairs
        const double* open_x
        const double* extend_x
        const double* open_z
        const double* extend_z
        const double* lead_x
        const double* lead_z
        const double* trail_x
        const double* trail_z
        double alone
        double* P
        double* X
        double* Z
    ctypedef struct alignment_flow:
        double* P
        double* X
        double* Z
        double* open_x
        double* extend_x
        double* open_z
        double* extend_z
        double* lead_x
        double* lead_z
        double* trail_x
        double* trail_z
        double alone
    double alignment_fill_sum(const alignment* s, int64_t i, double total)
    double alignment_fill_log(const alignment* s, int64_t i, double total)
    double alignment_fill_max(const alignment* s, int64_t i, double total)
    void alignment_ends_sum(const alignment* s, int64_t i, alignment_flow* f)
    void alignment_flow_sum(const alignment* s, int64_t i, alignment_flow* f)
    void alignment_ends_log(const alignment* s, int64_t i, alignment_flow* f)
    void alignment_flow_log(const alignment* s, int64_t i, alignment_flow* f)
    void alignment_trace_sum(const alignment* s, const double* u, double* terms, int32_t gap, int32_t* y)
    void alignment_trace_log(const alignment* s, const double* u, double* terms, int32_t gap, int32_t* y)
    void alignment_trace_max(const alignment* s, const double* u, double* terms, int32_t gap, int32_t* y)

# About as many nanoseconds a cell takes, and work that is done between two looks for a signal.
cdef enum:
    WORK_OF_SUM = 10
    WORK_OF_LOG = 200
    MOST_WORK = 50000

# Arrays of letters: those that open and extend gaps, of x and of z, then leads and trails of x and of z.
cdef enum:
    LETTERS = 8


cdef class Batch:
    """Scores of a batch: pairs (B, n, m), float32 or float64, and float64 arrays that all have an entry for each.

    Parameters
    ----------
    letters : list of arrays
        (B, n) twice and (B, m) twice, of letters in gaps, then leads and trails (B, n_ways, n + 1), (B, n_ways, m + 1).
    alone : array (B,)
    ways : tuple of pairs of bool
        Whether letters of x and of z pay beyond the outer pairs.
    lengths : int64 array (B, 2)
    ranges : array (B,)
        No score of an alignment, nor of a part of it, is further from 0 without its pairs.
    """

    cdef object arrays, sizes
    cdef const char* pairs
    cdef const double* letters[LETTERS]
    cdef const double* alone
    cdef const double* ranges
    cdef const int64_t* lengths
    cdef int64_t n_ways, rows, columns
    cdef int is_double
    cdef int pays[3][2]

    def __init__(self, pairs, letters, alone, ways, lengths, ranges):
        self.arrays, self.sizes = (pairs, letters, alone, lengths, ranges), lengths
        self.pairs, self.alone = <const char*> array_data(pairs), <const double*> array_data(alone)
        self.lengths, self.ranges = <const int64_t*> array_data(lengths), <const double*> array_data(ranges)
        self.rows, self.columns, self.is_double = pairs.shape[1], pairs.shape[2], pairs.itemsize == 8
        for k in range(LETTERS):
            self.letters[k] = <const double*> array_data(letters[k])
        self.n_ways = len(ways)
        for k, (pays_x, pays_z) in enumerate(ways):
            self.pays[k][0], self.pays[k][1] = pays_x, pays_z

    cdef Py_ssize_t size_of(self, int k) noexcept nogil:
        """Numbers of an entry in an array of letters."""
        cdef Py_ssize_t own = self.rows if k < 2 or 4 <= k < 6 else self.columns
        return own if k < 4 else self.n_ways * (own + 1)

    def sums(self, Py_ssize_t first, Py_ssize_t last, totals, flows):
        """Write log partitions and, unless `flows` is None, expected pairs, letters, leads, trails and those alone.

        Parameters
        ----------
        totals : float64 array (B,)
        flows : list of float64 arrays like pairs, letters and alone, all of them 0; or None
        """
        cdef _Room room = _Room(self, first, last, flows is not None)
        cdef double* out = <double*> array_data(totals)
        cdef double* to[LETTERS + 2]
        cdef Py_ssize_t b
        cdef int k
        for k in range(LETTERS + 2):
            to[k] = NULL if flows is None else <double*> array_data(flows[k])
        with nogil:
            for b in range(first, last):
                room.enter(b)
                out[b] = room.fill()
                if to[0] != NULL and out[b] > -INFINITY:
                    room.flow(b, to)

    def best(self, Py_ssize_t first, Py_ssize_t last, totals, y):
        """Write the best alignments and their scores, which are -inf where there is none."""
        cdef _Room room = _Room(self, first, last, False)
        cdef double* out = <double*> array_data(totals)
        cdef int32_t* to = <int32_t*> array_data(y)
        cdef Py_ssize_t b
        with nogil:
            for b in range(first, last):
                room.enter_scores(b)
                out[b] = room.fill_best()
                if out[b] > -INFINITY:
                    alignment_trace_max(&room.s, room.uniforms, room.terms, <int32_t> self.columns, to + b * self.rows)
                room.count(room.s.n * room.s.m)

    def draws(self, Py_ssize_t first, Py_ssize_t last, generators, y):
        """Write independent alignments; returns the first entry that has none, or -1.

        Parameters
        ----------
        generators : list of numpy.random.Generator, one per entry of the batch
        y : int32 array (B, n_samples, n)
        """
        cdef _Room room = _Room(self, first, last, False)
        cdef int32_t* to
        cdef const double* uniform
        cdef Py_ssize_t b, k, n_samples = y.shape[1]
        cdef int64_t step
        for b in range(first, last):
            step = self.lengths[2 * b] + self.lengths[2 * b + 1] + 1
            uniforms = generators[b].random((n_samples, step))
            uniform, to = <const double*> array_data(uniforms), (<int32_t*> array_data(y)) + b * n_samples * self.rows
            with nogil:
                room.enter(b)
                if room.fill() == -INFINITY:
                    with gil:
                        return b
                for k in range(n_samples):
                    room.trace(uniform + k * step, to + k * self.rows)
        return -1


cdef class _Room:
    """Scratch for some entries of a batch, and the entry at work."""

    cdef Batch batch
    cdef object arrays
    cdef alignment s
    cdef double* weights[LETTERS + 1]
    cdef double* tables
    cdef double* terms
    cdef const double* uniforms
    cdef double total
    cdef int64_t done
    cdef bint in_logs

    def __cinit__(self, Batch batch, Py_ssize_t first, Py_ssize_t last, bint for_flow):
        cdef int k
        cdef Py_ssize_t cells
        n, m = (max(batch.sizes[first:last, side], default=0) for side in (0, 1))
        cells = (n + 1) * (m + 1)
        self.batch, self.arrays = batch, []
        self.s.n_ways, self.s.pays = batch.n_ways, batch.pays
        self.s.step_x, self.s.step_z = batch.rows + 1, batch.columns + 1
        for k in range(LETTERS):
            self.weights[k] = self.more(batch.size_of(k))
        self.weights[LETTERS], self.terms = self.more(n * m), self.more(batch.n_ways * n * m + 8)
        self.tables, self.uniforms = self.more((6 if for_flow else 3) * cells), self.more(n + m + 1)

    cdef double* more(self, Py_ssize_t size) except NULL:
        array = np.zeros(max(size, 1))
        self.arrays.append(array)
        return <double*> array_data(array)

    cdef void enter_scores(self, Py_ssize_t b) noexcept nogil:
        """Take the scores of an entry, as they are."""
        cdef alignment* s = &self.s
        cdef const double** letters = self.batch.letters
        cdef int64_t i, j, m = self.batch.lengths[2 * b + 1], at, cells
        s.n, s.m, s.pairs = self.batch.lengths[2 * b], m, self.weights[LETTERS]
        for i in range(s.n):
            at = (b * self.batch.rows + i) * self.batch.columns
            for j in range(m):
                if self.batch.is_double:
                    self.weights[LETTERS][i * m + j] = (<const double*> self.batch.pairs)[at + j]
                else:
                    self.weights[LETTERS][i * m + j] = (<const float*> self.batch.pairs)[at + j]
        s.open_x, s.extend_x = letters[0] + b * self.batch.size_of(0), letters[1] + b * self.batch.size_of(1)
        s.open_z, s.extend_z = letters[2] + b * self.batch.size_of(2), letters[3] + b * self.batch.size_of(3)
        s.lead_x, s.trail_x = letters[4] + b * self.batch.size_of(4), letters[5] + b * self.batch.size_of(5)
        s.lead_z, s.trail_z = letters[6] + b * self.batch.size_of(6), letters[7] + b * self.batch.size_of(7)
        s.alone, cells = self.batch.alone[b], (s.n + 1) * (m + 1)
        s.P, s.X, s.Z = self.tables, self.tables + cells, self.tables + 2 * cells

    cdef void enter(self, Py_ssize_t b) noexcept nogil:
        """Take the scores of an entry: as exponentials, where all sums are sure to be within the range of double."""
        cdef alignment* s = &self.s
        cdef int64_t i, j, k
        cdef double most, reach = self.batch.ranges[b]
        cdef double* pair = self.weights[LETTERS]
        self.enter_scores(b)
        for i in range(s.n):
            most = 0.0
            for j in range(s.m):
                if not isinf(pair[i * s.m + j]):
                    most = max(most, fabs(pair[i * s.m + j]))
            reach += most
        # No cell is reached by more ways than there are words of n + m letters from four.
        self.in_logs = not reach + (s.n + s.m) * log(4.0) < ALIGNMENT_RANGE
        if self.in_logs:
            return
        for k in range(s.n * s.m):
            pair[k] = exp(pair[k])
        for k in range(LETTERS):
            for i in range(self.batch.size_of(<int> k)):
                self.weights[k][i] = exp(self.batch.letters[k][b * self.batch.size_of(<int> k) + i])
        s.open_x, s.extend_x, s.open_z, s.extend_z = self.weights[0], self.weights[1], self.weights[2], self.weights[3]
        s.lead_x, s.trail_x, s.lead_z, s.trail_z = self.weights[4], self.weights[5], self.weights[6], self.weights[7]
        s.alone = exp(s.alone)

    cdef double fill(self) except? -1 nogil:
        """The log of the sum over all alignments."""
        cdef int64_t i
        self.total = self.s.alone
        for i in range(self.s.n + 1):
            if self.in_logs:
                self.total = alignment_fill_log(&self.s, i, self.total)
            else:
                self.total = alignment_fill_sum(&self.s, i, self.total)
            self.count(self.s.m)
        return self.total if self.in_logs else log(self.total)

    cdef double fill_best(self) except? -1 nogil:
        """The score of the best alignment."""
        cdef int64_t i
        self.total = self.s.alone
        for i in range(self.s.n + 1):
            self.total = alignment_fill_max(&self.s, i, self.total)
            self.count(self.s.m)
        return self.total

    cdef int count(self, int64_t cells) except -1 nogil:
        """Add to the work since the last look for a signal."""
        self.done += (WORK_OF_LOG if self.in_logs else WORK_OF_SUM) * cells
        if self.done > MOST_WORK:
            poll(self.done)
            self.done = 0
        return 0

    cdef int flow(self, Py_ssize_t b, double** to) except -1 nogil:
        """Write what is expected of an entry: pairs, letters, leads and trails, and of no pair."""
        cdef alignment* s = &self.s
        cdef alignment_flow f
        cdef int64_t i, j, w = s.m + 1, cells = (s.n + 1) * w
        f.P = self.tables + 3 * cells
        f.X, f.Z = f.P + cells, f.P + 2 * cells
        memset(f.P, 0, 3 * cells * sizeof(double))
        f.open_x, f.extend_x = to[1] + b * self.batch.size_of(0), to[2] + b * self.batch.size_of(1)
        f.open_z, f.extend_z = to[3] + b * self.batch.size_of(2), to[4] + b * self.batch.size_of(3)
        f.lead_x, f.trail_x = to[5] + b * self.batch.size_of(4), to[6] + b * self.batch.size_of(5)
        f.lead_z, f.trail_z = to[7] + b * self.batch.size_of(6), to[8] + b * self.batch.size_of(7)
        for i in range(s.n + 1):
            if self.in_logs:
                alignment_ends_log(s, i, &f)
            else:
                alignment_ends_sum(s, i, &f)
            self.count(s.m)
        for i in range(s.n, -1, -1):
            if self.in_logs:
                alignment_flow_log(s, i, &f)
            else:
                alignment_flow_sum(s, i, &f)
            self.count(2 * s.m)
        to[LETTERS + 1][b] = f.alone
        for i in range(s.n):
            for j in range(s.m):
                to[0][(b * self.batch.rows + i) * self.batch.columns + j] = f.P[(i + 1) * w + j + 1]
        return 0

    cdef int trace(self, const double* uniforms, int32_t* y) except -1 nogil:
        """Write an alignment of the entry, drawn by uniform numbers."""
        if self.in_logs:
            alignment_trace_log(&self.s, uniforms, self.terms, <int32_t> self.batch.columns, y)
        else:
            alignment_trace_sum(&self.s, uniforms, self.terms, <int32_t> self.batch.columns, y)
        self.count(self.s.n * self.s.m)
        return 0


def known_alignments(y, lengths, int64_t m, bint outer_pay, bint outer_free, checked):
    """Copy partners with -1 beyond the lengths; returns whether all are known, and alignments of the mode.

    Parameters
    ----------
    y, checked : int32 arrays (B, n)
    lengths : int64 array (B, 2)
    outer_pay, outer_free : bool
        Whether letters beyond the outer pairs may be in a gap, and whether they may be outside; where both may be, they
        are outside if no letter of the other string stands there.
    """
    cdef const int32_t* letters = <const int32_t*> array_data(y)
    cdef const int64_t* sizes = <const int64_t*> array_data(lengths)
    cdef int32_t* out = <int32_t*> array_data(checked)
    cdef Py_ssize_t b, i, n = len(y), width = y.shape[1]
    for b in range(n):
        for i in range(width):
            out[i] = letters[i] if i < sizes[2 * b] else -1
        if not is_alignment(out, sizes[2 * b], sizes[2 * b + 1], m, outer_pay, outer_free):
            return False
        letters, out = letters + width, out + width
    return True


cdef bint is_alignment(
    const int32_t* y, int64_t n, int64_t width, int64_t m, bint outer_pay, bint outer_free
) noexcept nogil:
    cdef int64_t i, before = -1, first = -1, last = n
    for i in range(n):
        if 0 <= y[i] < m:
            if y[i] <= before or y[i] >= width:
                return False
            before, last, first = y[i], i, i if first < 0 else first
        elif not m <= y[i] <= m + 1:
            return False
    if first < 0:
        return is_end(y, n, m, True, outer_pay, outer_free)
    for i in range(first, last):
        if y[i] > m:
            return False
    return (
        is_end(y, first, m, y[first] == 0, outer_pay, outer_free)
        and is_end(y + last + 1, n - 1 - last, m, y[last] == width - 1, outer_pay, outer_free)
    )


cdef bint is_end(
    const int32_t* y, int64_t n, int64_t m, bint alone, bint outer_pay, bint outer_free
) noexcept nogil:
    """Whether letters beyond the outer pairs, `alone` if none of the other string stand there, are of the mode."""
    cdef int64_t i
    for i in range(n):
        if y[i] != y[0]:
            return False
    if n == 0:
        return True
    return outer_pay and not (outer_free and alone) if y[0] == m else outer_free
