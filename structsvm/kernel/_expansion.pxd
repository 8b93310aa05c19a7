"""A kernel expansion S(x, y) = sum_i beta_i^y k(x_i, x): its support vectors, by class and by pattern."""

from structsvm._typedefs cimport int32_t, int64_t
from structsvm.kernel._kernels cimport products


cdef struct ClassVectors:
    int32_t n
    int32_t capacity
    int32_t* slot       # the pattern
    double* beta
    double* g           # the stored derivative; what it is derived from, is the state's affair


cdef struct PatternVectors:
    int32_t n
    int32_t capacity
    int32_t* label
    int32_t* place      # in the class's arrays


cdef class Expansion:
    cdef readonly Py_ssize_t n_labels
    cdef readonly int64_t n_vectors
    cdef Py_ssize_t n_slots             # most patterns there can be
    cdef ClassVectors* classes
    cdef PatternVectors* patterns
    cdef const products* fast

    # out[y] = sum_i beta_i^y row[slot of i]
    cdef void sums(self, const float* row, double* out) noexcept nogil
    # Where the pattern's vector of this label is in its class's arrays, or -1.
    cdef int32_t find(self, Py_ssize_t slot, int32_t label) noexcept nogil
    # Add a vector with beta = 0; returns its place.
    cdef int32_t add(self, Py_ssize_t slot, int32_t label, double g) except -1 nogil
    cdef void remove(self, Py_ssize_t slot, int32_t label) noexcept nogil
    # The pattern in slot `old` moves to slot `new`, which has no vectors.
    cdef void move(self, Py_ssize_t old, Py_ssize_t new) noexcept nogil
