"""The base of all training states. A state implements the steps that make sense for it, and declares them."""

import numpy as np

from structsvm._typedefs cimport int64_t, uint64_t


cdef class State:
    """A point of training, explicit weights or a kernel expansion, and the steps of which schedules consist.

    Attributes
    ----------
    steps : frozenset of str
        Names of the steps that the state has; a schedule checks that those it needs are among them.
    n_samples : int
        Examples that a pass visits.
    groups : ndarray of int64 or None
        Offsets of runs of examples that are visited together.
    visited : ndarray of int64 or None
        The groups that are visited, ascending; None: all. Without `groups` an example is one.
    sections : ndarray of int64 or None
        Bounds of runs of examples: a pass goes from one to the next, through each in random order.
    dual : float
        Current value of the dual objective; 0 where there is none.
    cost : float
        Work so far by a deterministic model, about a nanosecond per unit.
    n_argmax, n_visits : int
    """

    steps = frozenset()

    def random_words(self):
        """The random generator, as 4 uint64 words."""
        return np.array([self.random.s[k] for k in range(4)], dtype=np.uint64)

    def set_random(self, const uint64_t[::1] words):
        """Restore the random generator from `random_words`."""
        cdef int k
        for k in range(4):
            self.random.s[k] = words[k]

    cdef int expect(self, const int64_t* order, Py_ssize_t n) except -1:
        return 0

    cdef int enter_section(self, Py_ssize_t a, Py_ssize_t b) except -1:
        return 0

    cdef int subgradient_step(self, Py_ssize_t i) except -1 nogil:
        return self.abstract()

    cdef int process_new(self, Py_ssize_t i) except -1 nogil:
        return self.abstract()

    cdef int process_old(self) except -1 nogil:
        return self.abstract()

    cdef int optimize(self, int n) except -1 nogil:
        return self.abstract()

    cdef int solve_example(self, Py_ssize_t i) except -1 nogil:
        return self.abstract()

    cdef int solve_old(self) except -1 nogil:
        return self.abstract()

    cdef double corner_step(self, Py_ssize_t i) except -1 nogil:
        return self.abstract()

    cdef bint known_corner_step(self, Py_ssize_t i, double enough) except -1 nogil:
        return self.abstract()

    cdef int abstract(self) except -1 nogil:
        with gil:
            raise NotImplementedError(f"{type(self).__name__} declares a step that it does not implement")
