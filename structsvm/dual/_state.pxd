"""The state that a schedule drives: the point that training has reached, and the steps that move it."""

from structsvm._random cimport Random
from structsvm._typedefs cimport int64_t


cdef class State:
    cdef readonly Py_ssize_t n_samples
    cdef readonly object groups             # None, or int64 offsets of runs of examples to visit together
    cdef readonly object visited            # None: all; or the groups that are visited, ascending
    cdef readonly object sections           # None, or int64 bounds of runs of examples, one visited after the other
    cdef readonly double dual               # current value of the dual objective, if there is one
    cdef readonly double cost               # work so far, in numbers read: the clock of the adaptive schedule
    cdef readonly int64_t n_argmax
    cdef readonly int64_t n_visits          # examples visited
    cdef Random random

    # A pass begins, which will visit examples in this order; the array outlives the pass.
    cdef int expect(self, const int64_t* order, Py_ssize_t n) except -1

    # From now on examples a .. b - 1, a section, are visited, and old ones are taken from among them.
    cdef int enter_section(self, Py_ssize_t a, Py_ssize_t b) except -1
    # A step against a subgradient of one example's loss, of the length that the state chooses: SGD's, the perceptron's.
    cdef int subgradient_step(self, Py_ssize_t i) except -1 nogil
    # LaRank's and LaSVM's: one direction of a fresh example, of an old one; n times, one without decoding.
    cdef int process_new(self, Py_ssize_t i) except -1 nogil
    cdef int process_old(self) except -1 nogil
    cdef int optimize(self, int n) except -1 nogil
    # Maximise the dual over one example's coefficients, decoding once; over those that an old one has, without.
    cdef int solve_example(self, Py_ssize_t i) except -1 nogil
    cdef int solve_old(self) except -1 nogil
    # Frank-Wolfe's: decode, step towards the best corner, return what the example had added to the gap. A step
    # towards the best of the corners that are known; none, and false, if the example adds no more than `enough`.
    cdef double corner_step(self, Py_ssize_t i) except -1 nogil
    cdef bint known_corner_step(self, Py_ssize_t i, double enough) except -1 nogil

    cdef int abstract(self) except -1 nogil
