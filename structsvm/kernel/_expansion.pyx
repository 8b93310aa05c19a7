"""The support vectors of a kernel expansion, in two orders at once.

By class, because scores and the updates of derivatives go through all vectors of a class: their coefficients lie one
after the other. By pattern, because a step looks at all vectors of one pattern: a short list of where they are.
"""

from libc.stdlib cimport calloc, free, realloc

import numpy as np

from structsvm._typedefs cimport int32_t, int64_t
from structsvm.kernel._kernels cimport chosen_products


cdef int grow(void** block, Py_ssize_t size) except -1 nogil:
    cdef void* larger = realloc(block[0], size)
    if larger == NULL:
        with gil:
            raise MemoryError("no memory for another support vector")
    block[0] = larger
    return 0


cdef class Expansion:
    """Coefficients beta of pairs of a pattern (by slot) and a label.

    Parameters
    ----------
    n_labels : int
    n_slots : int
        Patterns there can be at most.
    """

    def __cinit__(self, Py_ssize_t n_labels, Py_ssize_t n_slots):
        self.n_labels, self.n_slots = n_labels, n_slots
        self.classes = <ClassVectors*>calloc(max(n_labels, 1), sizeof(ClassVectors))
        self.patterns = <PatternVectors*>calloc(max(n_slots, 1), sizeof(PatternVectors))
        if self.classes == NULL or self.patterns == NULL:
            raise MemoryError()
        self.fast = chosen_products()

    def __dealloc__(self):
        cdef Py_ssize_t k
        if self.classes != NULL and self.patterns != NULL:
            for k in range(self.n_labels):
                free(self.classes[k].slot)
                free(self.classes[k].beta)
                free(self.classes[k].g)
            for k in range(self.n_slots):
                free(self.patterns[k].label)
                free(self.patterns[k].place)
        free(self.classes)
        free(self.patterns)

    cdef void sums(self, const float* row, double* out) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(self.n_labels):
            out[k] = self.fast.gather(row, self.classes[k].slot, self.classes[k].beta, self.classes[k].n)

    cdef int32_t find(self, Py_ssize_t slot, int32_t label) noexcept nogil:
        cdef PatternVectors* p = &self.patterns[slot]
        cdef Py_ssize_t k
        for k in range(p.n):
            if p.label[k] == label:
                return p.place[k]
        return -1

    cdef int32_t add(self, Py_ssize_t slot, int32_t label, double g) except -1 nogil:
        cdef ClassVectors* c = &self.classes[label]
        cdef PatternVectors* p = &self.patterns[slot]
        cdef int32_t capacity
        if c.n == c.capacity:
            capacity = c.capacity + c.capacity // 2 + 4
            grow(<void**>&c.slot, capacity * sizeof(int32_t))
            grow(<void**>&c.beta, capacity * sizeof(double))
            grow(<void**>&c.g, capacity * sizeof(double))
            c.capacity = capacity
        if p.n == p.capacity:
            capacity = p.capacity + p.capacity // 2 + 2
            grow(<void**>&p.label, capacity * sizeof(int32_t))
            grow(<void**>&p.place, capacity * sizeof(int32_t))
            p.capacity = capacity
        c.slot[c.n], c.beta[c.n], c.g[c.n] = <int32_t>slot, 0.0, g
        p.label[p.n], p.place[p.n] = label, c.n
        c.n += 1
        p.n += 1
        self.n_vectors += 1
        return c.n - 1

    cdef void remove(self, Py_ssize_t slot, int32_t label) noexcept nogil:
        cdef ClassVectors* c = &self.classes[label]
        cdef PatternVectors* p = &self.patterns[slot]
        cdef PatternVectors* other
        cdef Py_ssize_t k
        cdef int32_t place, last = c.n - 1
        for k in range(p.n):
            if p.label[k] == label:
                break
        place = p.place[k]
        p.n -= 1
        p.label[k], p.place[k] = p.label[p.n], p.place[p.n]
        if place != last:
            other = &self.patterns[c.slot[last]]
            for k in range(other.n):
                if other.label[k] == label:
                    other.place[k] = place
            c.slot[place], c.beta[place], c.g[place] = c.slot[last], c.beta[last], c.g[last]
        c.n = last
        self.n_vectors -= 1

    cdef void move(self, Py_ssize_t old, Py_ssize_t new) noexcept nogil:
        cdef Py_ssize_t k
        cdef PatternVectors* p = &self.patterns[old]
        self.patterns[old], self.patterns[new] = self.patterns[new], self.patterns[old]
        p = &self.patterns[new]
        for k in range(p.n):
            self.classes[p.label[k]].slot[p.place[k]] = <int32_t>new

    def listed(self):
        """All vectors as arrays: slots (int64), labels (int32), beta and g (float64), by slot."""
        cdef Py_ssize_t slot, k, at = 0
        cdef PatternVectors* p
        cdef ClassVectors* c
        cdef int64_t[::1] slots = np.empty(self.n_vectors, dtype=np.int64)
        cdef int32_t[::1] labels = np.empty(self.n_vectors, dtype=np.int32)
        cdef double[::1] beta = np.empty(self.n_vectors), g = np.empty(self.n_vectors)
        for slot in range(self.n_slots):
            p = &self.patterns[slot]
            for k in range(p.n):
                c = &self.classes[p.label[k]]
                slots[at], labels[at] = slot, p.label[k]
                beta[at], g[at] = c.beta[p.place[k]], c.g[p.place[k]]
                at += 1
        return np.asarray(slots), np.asarray(labels), np.asarray(beta), np.asarray(g)

    def fill(self, const int64_t[::1] slots, const int32_t[::1] labels, const double[::1] beta, const double[::1] g):
        """Add vectors in this order, as `listed` returns them; slots and labels must be in range."""
        cdef Py_ssize_t e
        for e in range(slots.shape[0]):
            self.classes[labels[e]].beta[self.add(slots[e], labels[e], g[e])] = beta[e]


def check_members(members, n_samples):
    """Raise ValueError unless these are examples, none of them twice."""
    if len(members) and not 0 <= np.min(members) <= np.max(members) < n_samples:
        raise ValueError(f"array 'support' must hold examples from 0 to {n_samples - 1}")
    if np.bincount(members, minlength=1).max() > 1:
        raise ValueError("array 'support' has an example twice")


def check_vectors(members, slots, labels, n_samples, n_labels):
    """Raise ValueError unless these are vectors of an expansion, at least one per support pattern."""
    check_members(members, n_samples)
    if len(slots) != len(labels) or not np.array_equal(np.unique(slots), np.arange(len(members))):
        raise ValueError(f"array 'vector_slot' must hold every slot from 0 to {len(members) - 1}")
    if len(labels) and not 0 <= np.min(labels) <= np.max(labels) < n_labels:
        raise ValueError(f"array 'vector_label' must hold labels from 0 to {n_labels - 1}")
    if len(np.unique(slots * n_labels + labels)) != len(slots):
        raise ValueError("array 'vector_label' has a label of a support pattern twice")
