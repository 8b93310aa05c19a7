"""Chains of a batch: the loops over its entries, around the kernels of potentials.h.

Each entry is computed by itself, so that the bits do not depend on how the batch is split among threads.
"""

from libc.stdint cimport int32_t, int64_t

import numpy as np

from structsvm._arrays cimport array_data
from structsvm.execution._processor cimport kernel_set
from structsvm.execution._stop cimport poll

cdef extern from "potentials.h" nogil:
    ctypedef struct potentials:
        int64_t T, S, K, each
        const void* E
        const void* A
        const void* start
        const void* end
        void* rows
        void* tables
        double* logs
        double* sums
    ctypedef struct potentials_kernels:
        int (*sums[2])(const potentials* s, double* log_z, void* nodes, void* pairs) except -1 nogil
        int (*best[2])(const potentials* s, int32_t* back, int32_t* states) except -1 nogil
    const potentials_kernels* potentials_kernels_of(int set, int (*poll)(int64_t work) except -1 nogil)

cdef const potentials_kernels* KERNELS = potentials_kernels_of(kernel_set(), poll)


cdef class Batch:
    """Scores of a batch in arrays of one type: emissions (B, T, S), transitions (1 or B, 1 or T - 1, S, K).

    S states, K of which may follow each (see potentials.h). `start` and `end` are arrays (1, S), `lengths` an array
    (B,). Scratch is allocated by each call.
    """

    cdef potentials scores
    cdef object arrays, dtype
    cdef int is_double
    cdef const char* emissions
    cdef const char* transitions
    cdef const int64_t* lengths
    cdef Py_ssize_t size, per_entry, width

    def __init__(self, emissions, transitions, start, end, lengths):
        self.arrays = emissions, transitions, start, end, lengths
        self.emissions, self.transitions = <const char*> array_data(emissions), <const char*> array_data(transitions)
        self.dtype, self.lengths = emissions.dtype, <const int64_t*> array_data(lengths)
        self.size = emissions.itemsize
        self.is_double = self.size == 8
        self.scores.S, self.scores.K = transitions.shape[2], transitions.shape[3]
        self.width = emissions.shape[1] * self.scores.S
        self.scores.each = 0
        if transitions.shape[1] != 1:
            self.scores.each = self.scores.S * self.scores.K
        self.per_entry = transitions[0].size if transitions.shape[0] > 1 else 0
        self.scores.start = array_data(start)
        self.scores.end = array_data(end)

    cdef potentials entry(self, Py_ssize_t b) noexcept nogil:
        cdef potentials s = self.scores
        s.T = self.lengths[b]
        s.E = self.emissions + b * self.width * self.size
        s.A = self.transitions + b * self.per_entry * self.size
        return s

    cdef Py_ssize_t longest(self, Py_ssize_t first, Py_ssize_t last):
        cdef Py_ssize_t b
        cdef int64_t longest = 0
        for b in range(first, last):
            longest = max(longest, self.lengths[b])
        return longest

    def sums(self, Py_ssize_t first, Py_ssize_t last, log_z, nodes, pairs):
        """Write log partitions of entries first .. last - 1 and, unless `nodes` is None, their marginals.

        Marginals beyond a length, and of an entry without any labelling, keep their values.
        """
        cdef Py_ssize_t b, S = self.scores.S, K = self.scores.K, longest = self.longest(first, last)
        cdef Py_ssize_t step = 0 if nodes is None else pairs[0].size
        rows, tables = np.empty(2 * longest * S, self.dtype), np.empty(3 * S * K + 5 * S, self.dtype)
        totals = np.empty(S * K)
        cdef void* row = array_data(rows)
        cdef void* table = array_data(tables)
        cdef double* total = <double*> array_data(totals)
        cdef double* logs = NULL
        cdef double* values = <double*> array_data(log_z)
        cdef char* node = NULL if nodes is None else <char*> array_data(nodes)
        cdef char* pair = NULL if nodes is None else <char*> array_data(pairs)
        cdef potentials s
        b = first
        with nogil:
            while b < last:
                s = self.entry(b)
                s.rows, s.tables, s.sums, s.logs = row, table, total, logs
                if s.T == 0:
                    values[b] = 0.0
                elif KERNELS.sums[self.is_double](
                        &s, values + b, NULL if node == NULL else node + b * self.width * self.size,
                        NULL if pair == NULL else pair + b * step * self.size):
                    with gil:
                        scratch = np.empty(2 * longest * S + 2 * S)
                        logs = <double*> array_data(scratch)
                    continue
                b += 1

    def best(self, Py_ssize_t first, Py_ssize_t last, states):
        """Write the states of the best labellings; returns the first entry that has none, or -1."""
        cdef Py_ssize_t b, empty = -1, S = self.scores.S, longest = self.longest(first, last)
        rows, tables = np.empty(2 * S, self.dtype), np.empty(S, self.dtype)
        back = np.empty(longest * S, np.int32)
        cdef int32_t* before = <int32_t*> array_data(back)
        cdef int32_t* out = <int32_t*> array_data(states)
        cdef void* row = array_data(rows)
        cdef void* table = array_data(tables)
        cdef Py_ssize_t step = states.shape[1]
        cdef potentials s
        with nogil:
            for b in range(first, last):
                s = self.entry(b)
                s.rows, s.tables = row, table
                if s.T and KERNELS.best[self.is_double](&s, before, out + b * step):
                    empty = b
                    break
        return empty
