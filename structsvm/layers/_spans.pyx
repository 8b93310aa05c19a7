"""Segments and trees of a batch: the loops over its entries, around the kernels of spans.h.

Each entry is computed by itself, so that the bits do not depend on how the batch is split among threads.
"""

from cython cimport floating
from libc.math cimport INFINITY, exp
from libc.stdint cimport int32_t, int64_t

import numpy as np

from structsvm._arrays cimport array_data
from structsvm.execution._processor cimport kernel_set
from structsvm.execution._stop cimport poll

cdef extern from "spans.h" nogil:
    ctypedef struct segments:
        int64_t T, L, K
        int is_double
        const void* scores
        const double* A
        const double* start
        const double* end
        double* tables
        double* rows
        double* terms
    ctypedef struct brackets:
        int64_t n, m, K, S
        int is_double
        const void* scores
        const double* rules
        double* chart
        double* tables
        void* terms
        int32_t* labels
    ctypedef struct spans_kernels:
        int (*segment_sums)(const segments* s, double* log_z, void* parts, double* pairs) except -1 nogil
        int (*segment_best)(const segments* s, double* value, int32_t* y) except -1 nogil
        int (*bracket_sums)(const brackets* s, double* log_z, void* parts, double* rules) except -1 nogil
        int (*bracket_best)(const brackets* s, double* value, int32_t* y) except -1 nogil
        int (*bracketing_draw)(const brackets* s, const double* u, int64_t step, int32_t* y) except -1 nogil
        bint (*bracketing_copy)(const int32_t* y, int64_t n, int64_t m, int32_t K, int32_t* out) noexcept nogil
    const spans_kernels* spans_kernels_of(int set, int (*poll)(int64_t work) except -1 nogil)

cdef extern from "drawn.h" nogil:
    int64_t drawn_place(const double* weights, int64_t n, double u)

cdef const spans_kernels* KERNELS = spans_kernels_of(kernel_set(), poll)


cdef void* of_entry(array, Py_ssize_t b):
    """An entry of a batch, or what all entries share."""
    cdef Py_ssize_t size = array.nbytes // len(array), at = b if len(array) > 1 else 0
    return <char*> array_data(array) + at * size


cdef class Entries:
    """A batch of scores (B, ..., K), floats or doubles, with arrays of doubles that it shares: one entry each, or B."""

    cdef object scores, shared, sizes
    cdef const int64_t* lengths
    cdef int is_double

    def __init__(self, scores, shared, lengths):
        self.scores, self.shared, self.sizes, self.is_double = scores, shared, lengths, scores.itemsize == 8
        self.lengths = <const int64_t*> array_data(lengths)

    cdef object room(self, Py_ssize_t longest, bint for_parts):
        """Scratch for entries that are no longer than this."""

    cdef int run(self, Py_ssize_t b, double* value, void* parts, double* counts, int32_t* y) except -1:
        """The sums of an entry, or where y is given the best output."""

    def sums(self, Py_ssize_t first, Py_ssize_t last, log_z, parts, counts):
        """Write log partitions and, unless `parts` is None, expected parts; returns the entries that need logs.

        Expected parts beyond a length, and of an entry without any output, keep their values.
        """
        cdef Py_ssize_t b
        cdef double* values = <double*> array_data(log_z)
        cdef void* to = NULL
        cdef double* also = NULL
        _room, wide = self.room(max(self.sizes[first:last], default=0), parts is not None), []
        for b in range(first, last):
            values[b] = 0.0
            if parts is not None:
                to = of_entry(parts, b)
                also = <double*> of_entry(counts, b)
            if self.lengths[b] > 0 and self.run(b, values + b, to, also, NULL):
                wide.append(b)
        return wide

    def best(self, Py_ssize_t first, Py_ssize_t last, values, y):
        """Write the best outputs and their scores, -inf where there is none."""
        cdef Py_ssize_t b
        cdef double* scores = <double*> array_data(values)
        _room = self.room(max(self.sizes[first:last], default=0), False)
        for b in range(first, last):
            scores[b] = 0.0
            if self.lengths[b] > 0:
                self.run(b, scores + b, NULL, NULL, <int32_t*> of_entry(y, b))

    def draws(self, Py_ssize_t first, Py_ssize_t last, generators, log_z, y):
        """Write log partitions and independent outputs; returns the entries that need logs, which have neither.

        Trees are drawn without rules.

        Parameters
        ----------
        generators : list of numpy.random.Generator, one per entry of the batch
        log_z : float64 array (B,)
        y : int32 array (B, n_samples, ...)
        """
        cdef Py_ssize_t b, j, n_samples = y.shape[1], size = int(np.prod(y.shape[2:]))
        cdef double* values = <double*> array_data(log_z)
        cdef const double* uniform
        cdef int32_t* to
        cdef int32_t* first_of = <int32_t*> array_data(y)
        _room, wide = self.room(max(self.sizes[first:last], default=0), False), []
        for b in range(first, last):
            values[b] = 0.0
            if self.lengths[b] > 0 and self.run(b, values + b, NULL, NULL, NULL):
                wide.append(b)
            elif self.lengths[b] > 0 and values[b] > -INFINITY:
                uniforms, to = generators[b].random((3 * self.lengths[b], n_samples)), first_of + b * n_samples * size
                uniform = <const double*> array_data(uniforms)
                with nogil:
                    for j in range(n_samples):
                        self.draw(uniform + j, n_samples, to + j * size)
        return wide

    cdef int draw(self, const double* uniforms, int64_t step, int32_t* y) except -1 nogil:
        """Write an output of the entry whose sums were the last, by 3 n uniform numbers, `step` apart."""


cdef class Segments(Entries):
    """Scores (B, T, L, K) of segments; transitions (., K, K), start and end (., K)."""

    cdef segments s

    cdef object room(self, Py_ssize_t longest, bint for_parts):
        self.s.L, self.s.K, self.s.is_double = self.scores.shape[2], self.scores.shape[3], self.is_double
        cdef Py_ssize_t L = self.s.L, K = self.s.K
        tables = np.empty(K * K + 2 * L * K + 2 * K)
        rows = np.empty((longest + 1) * (3 * K + 2))
        terms = np.empty(longest * L * K if for_parts else 0)
        self.s.tables, self.s.rows = <double*> array_data(tables), <double*> array_data(rows)
        self.s.terms = <double*> array_data(terms)
        return tables, rows, terms

    cdef int run(self, Py_ssize_t b, double* value, void* parts, double* counts, int32_t* y) except -1:
        cdef segments* s = &self.s
        cdef int status
        s.T, s.scores = self.lengths[b], of_entry(self.scores, b)
        s.A = <double*> of_entry(self.shared[0], b)
        s.start, s.end = <double*> of_entry(self.shared[1], b), <double*> of_entry(self.shared[2], b)
        with nogil:
            if y != NULL:
                status = KERNELS.segment_best(s, value, y)
            else:
                status = KERNELS.segment_sums(s, value, parts, counts)
        return status

    cdef int draw(self, const double* uniforms, int64_t step, int32_t* y) except -1 nogil:
        poll(self.s.T * (self.s.L + self.s.K) * 4)
        draw_segments(&self.s, uniforms, step, y)
        return 0


cdef void draw_segments(const segments* s, const double* uniforms, int64_t step, int32_t* y) noexcept nogil:
    """Draw segments from the last one on, by the v and R of segments.h that sums leave behind."""
    cdef int64_t t = s.T, k = -1, j, start, most, n = (s.T + 1) * s.K
    cdef const double* R = s.rows + n
    cdef const double* scale = s.rows + 3 * n
    cdef double* weights = s.tables + s.K * s.K     # sums left room there
    cdef double top
    while t > 0:
        for j in range(s.K):
            weights[j] = s.rows[t * s.K + j] * (1.0 if k < 0 else s.tables[j * s.K + k])
        k, top = drawn_place(weights, s.K, uniforms[2 * (t - 1) * step]), -INFINITY
        most = min(t, s.L)
        for j in range(most):
            weights[j] = score_of(s, t - 1 - j, j, k) + scale[t - 1 - j]
            top = max(top, weights[j])
        for j in range(most):
            weights[j] = R[(t - 1 - j) * s.K + k] * exp(weights[j] - top)
        start = t - 1 - drawn_place(weights, most, uniforms[(2 * t - 1) * step])
        for j in range(start, t):
            y[j] = <int32_t> (k if j == start else s.K + k)
        t = start


cdef double score_of(const segments* s, int64_t t, int64_t l, int64_t k) noexcept nogil:
    """The score of a segment of l + 1 tokens from token t on, with start and end."""
    cdef int64_t at = (t * s.L + l) * s.K + k
    cdef double score = (<const double*> s.scores)[at] if s.is_double else (<const float*> s.scores)[at]
    if t == 0:
        score += s.start[k]
    if t + l + 1 == s.T:
        score += s.end[k]
    return score


cdef class Brackets(Entries):
    """Scores (B, n, n, K) of spans; rules (., K, K, K), or nothing."""

    cdef brackets s

    cdef object room(self, Py_ssize_t longest, bint for_parts):
        self.s.m, self.s.K, self.s.is_double = self.scores.shape[1], self.scores.shape[3], self.is_double
        self.s.S = self.s.K if self.shared else 1
        cdef Py_ssize_t n = longest, S = self.s.S
        chart = np.empty(n * n * (3 * S + 3) + 48 * n + 8)
        tables = np.empty(2 * S * S * S + 4 * S * S + 2 * n + 3 * self.s.K + 8)
        labels = np.empty(n * n + 3 * n, np.int32)
        terms = np.empty(0 if self.shared else (n if for_parts else 1) * n * self.s.K + 16, self.scores.dtype)
        self.s.chart, self.s.tables = <double*> array_data(chart), <double*> array_data(tables)
        self.s.labels, self.s.terms = <int32_t*> array_data(labels), array_data(terms)
        return chart, tables, labels, terms

    cdef int run(self, Py_ssize_t b, double* value, void* parts, double* counts, int32_t* y) except -1:
        cdef brackets* s = &self.s
        cdef int status
        s.n, s.scores = self.lengths[b], of_entry(self.scores, b)
        s.rules = <double*> of_entry(self.shared[0], b) if self.shared else NULL
        with nogil:
            if y != NULL:
                status = KERNELS.bracket_best(s, value, y)
            else:
                status = KERNELS.bracket_sums(s, value, parts, counts)
        return status

    cdef int draw(self, const double* uniforms, int64_t step, int32_t* y) except -1 nogil:
        poll(10 * self.s.n * (self.s.n + self.s.K))
        return KERNELS.bracketing_draw(&self.s, uniforms, step, y)


def known_trees(y, lengths, int32_t n_labels, checked):
    """Copy labels of spans with -1 beyond the lengths; returns whether all are those of whole trees.

    Parameters
    ----------
    y : int32 array (B, n, n)
    lengths : int64 array (B,)
    checked : int32 array (B, n, n)
    """
    cdef const int32_t* label = <const int32_t*> array_data(y)
    cdef const int64_t* sizes = <const int64_t*> array_data(lengths)
    cdef int32_t* out = <int32_t*> array_data(checked)
    cdef Py_ssize_t b, n = len(y), width = y.shape[1]
    room = np.empty(4 * width + 2, np.int32)
    cdef int32_t* stack = <int32_t*> array_data(room)
    cdef bint known = True
    with nogil:
        for b in range(n):
            known = KERNELS.bracketing_copy(label, sizes[b], width, n_labels, out)
            if not known or not is_tree(out, sizes[b], width, stack):
                known = False
                break
            poll(2 * width * width)
            label, out = label + width * width, out + width * width
    return known


cdef bint is_tree(const int32_t* y, int64_t n, int64_t width, int32_t* stack) noexcept nogil:
    """Whether 2 n - 1 labels are those of a binary tree: the longest span that begins another one leaves a span."""
    cdef int64_t i, j, m, held = 0
    if n == 0:
        return True
    stack[0], stack[1], held = 0, <int32_t> (n - 1), 2
    while held:
        i, j, held = stack[held - 2], stack[held - 1], held - 2
        if y[i * width + j] < 0:
            return False
        if i == j:
            continue
        m = j - 1
        while m >= i and y[i * width + m] < 0:
            m -= 1
        if m < i:
            return False
        stack[held], stack[held + 1] = <int32_t> i, <int32_t> m
        stack[held + 2], stack[held + 3], held = <int32_t> (m + 1), <int32_t> j, held + 4
    return True


def less_trees(y, lengths, spans, chances, values):
    """Write the scores of trees without rules, and take their indicators off probabilities of spans.

    Returns whether all are whole trees; nothing is written otherwise.

    Parameters
    ----------
    y : int32 array (B, n, n)
    lengths : int64 array (B,)
    spans, chances : float32 or float64 arrays (B, n, n, K)
    values : float64 array (B,)
    """
    cdef const int32_t* label = <const int32_t*> array_data(y)
    cdef const int64_t* sizes = <const int64_t*> array_data(lengths)
    cdef double* out = <double*> array_data(values)
    cdef const void* scores = array_data(spans)
    cdef void* taken = array_data(chances)
    cdef Py_ssize_t b, i, j, at, n = len(y), width = y.shape[1], K = spans.shape[3], found = 0, wanted = 0
    cdef bint is_double = spans.itemsize == 8
    places = np.empty(2 * width * n, np.int64)
    cdef int64_t* place = <int64_t*> array_data(places)
    with nogil:
        for b in range(n):
            wanted += max(2 * sizes[b] - 1, 0)
            for i in range(sizes[b]):
                at = (b * width + i) * width
                for j in range(at + i, at + sizes[b]):
                    if label[j] >= 0 and found < wanted:
                        place[found] = j
                        found += 1
            poll(width * width)
        for b in range(n if found == wanted else 0):
            out[b] = 0.0
        for i in range(found if found == wanted else 0):
            b, at = place[i] // (width * width), place[i] * K + label[place[i]]
            if is_double:
                out[b] += less(<const double*> scores + at, <double*> taken + at)
            else:
                out[b] += less(<const float*> scores + at, <float*> taken + at)
    return found == wanted


cdef double less(const floating* score, floating* chance) noexcept nogil:
    """A score; 1 is taken off the probability."""
    chance[0] -= 1
    return score[0]
