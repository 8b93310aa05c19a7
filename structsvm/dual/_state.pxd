"""What a schedule drives: the point that training has reached, and the steps that move it."""

from structsvm._random cimport Random
from structsvm._typedefs cimport int64_t


cdef class State:
    cdef readonly Py_ssize_t n_samples
    cdef readonly object groups             # None, or int64 offsets of runs of examples to visit together
    cdef readonly double dual               # current value of the dual objective, if there is one
    cdef readonly double cost               # work so far, in numbers read: the clock of the adaptive schedule
    cdef readonly int64_t n_argmax
    cdef readonly int64_t n_visits          # examples visited
    cdef Random random

    # A pass begins, which will visit examples in this order; the array outlives the pass.
    cdef int expect(self, const int64_t* order, Py_ssize_t n) except -1
    cdef int perceptron_step(self, Py_ssize_t i, double step) except -1 nogil
    cdef int process_new(self, Py_ssize_t i) except -1 nogil
    cdef int process_old(self) except -1 nogil
    cdef int optimize(self, int n) except -1 nogil
    cdef int decode_once(self, Py_ssize_t i) except -1 nogil
    cdef int reprocess(self) except -1 nogil
    cdef int process_any(self, Py_ssize_t i) except -1 nogil
    cdef int sweep(self) except -1 nogil
    cdef int missing(self) except -1 nogil
