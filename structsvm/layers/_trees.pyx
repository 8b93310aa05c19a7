"""Dependency trees of a batch: the loops over its entries, around the kernels of tree_sums.h, and checks of heads."""

from libc.stdint cimport int32_t, int64_t

import numpy as np

from structsvm._arrays cimport array_data
from structsvm.execution._processor cimport kernel_set
from structsvm.execution._stop cimport poll

cdef extern from "tree_sums.h" nogil:
    enum: TREES_IN_LOGS
    ctypedef struct trees:
        int64_t n, m
        int is_double, projective, several
        const void* scores
        double* memory
    ctypedef struct tree_sums_kernels:
        int (*sums)(const trees* s, double* log_z, void* arcs) except -1 nogil
    int64_t trees_size(int64_t n)
    const tree_sums_kernels* tree_sums_kernels_of(int set, int (*poll)(int64_t work) except -1 nogil)

cdef const tree_sums_kernels* KERNELS = tree_sums_kernels_of(kernel_set(), poll)


def tree_sums(arcs, lengths, Py_ssize_t first, Py_ssize_t last, bint projective, bint several, log_z, chances):
    """Write log partitions of entries first .. last - 1 and, unless `chances` is None, the probabilities of arcs.

    Returns the entries that only logs will do for. Probabilities beyond a length keep their values.

    Parameters
    ----------
    arcs : float32 or float64 array (B, n + 1, n + 1)
    lengths : int64 array (B,)
    log_z : float64 array (B,)
    chances : array like `arcs`, or None
    """
    cdef const int64_t* sizes = <const int64_t*> array_data(lengths)
    cdef double* values = <double*> array_data(log_z)
    cdef const char* scores = <const char*> array_data(arcs)
    cdef char* to = NULL if chances is None else <char*> array_data(chances)
    cdef Py_ssize_t b, m = arcs.shape[1], step = m * m * arcs.itemsize
    cdef trees s
    cdef int status
    memory = np.empty(trees_size(max(lengths[first:last], default=0)))
    s.m, s.is_double, s.projective, s.several = m, arcs.itemsize == 8, projective, several
    s.memory = <double*> array_data(memory)
    in_logs = []
    for b in range(first, last):
        s.n, s.scores = sizes[b], scores + b * step
        values[b] = 0.0
        if s.n == 0:
            continue
        with nogil:
            status = KERNELS.sums(&s, values + b, NULL if to == NULL else to + b * step)
        if status == TREES_IN_LOGS:
            in_logs.append(b)
    return in_logs


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
    found = np.zeros(n, np.int32)
    cdef int32_t* fault = <int32_t*> array_data(found)
    for b in range(n):
        with nogil:
            fault[b] = fault_of(head + b * width, sizes[b], several, projective)
    return found


cdef int fault_of(const int32_t* head, int64_t n, bint several, bint projective) except -1 nogil:
    """The fault of the heads of words 1 .. n."""
    cdef int64_t word, at, steps, roots = 0, work = 0
    for word in range(n):
        if head[word] < 0:
            return 0
    for word in range(1, n + 1):
        at, steps = word, 0
        while at and steps <= n:
            at, steps = head[at - 1], steps + 1
        if at:
            return 1
        roots += head[word - 1] == 0
        work += steps
        if work > 50_000:
            poll(work)
            work = 0
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
