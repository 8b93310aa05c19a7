"""The base of all training states. A state implements the steps that make sense for it."""

import numpy as np

from structsvm._typedefs cimport int64_t, uint64_t


cdef class State:
    """A point of training, explicit weights or a kernel expansion, and the steps that schedules are made of.

    Attributes
    ----------
    n_samples : int
        Examples that a pass visits.
    groups : ndarray of int64 or None
        Offsets of runs of examples that are visited together.
    dual : float
        Current value of the dual objective; 0 where there is none.
    cost : float
        Work so far by a deterministic model, about a nanosecond a unit.
    n_argmax, n_visits : int
    """

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

    cdef int perceptron_step(self, Py_ssize_t i, double step) except -1 nogil:
        return self.missing()

    cdef int process_new(self, Py_ssize_t i) except -1 nogil:
        return self.missing()

    cdef int process_old(self) except -1 nogil:
        return self.missing()

    cdef int optimize(self, int n) except -1 nogil:
        return self.missing()

    cdef int decode_once(self, Py_ssize_t i) except -1 nogil:
        return self.missing()

    cdef int reprocess(self) except -1 nogil:
        return self.missing()

    cdef int process_any(self, Py_ssize_t i) except -1 nogil:
        return self.missing()

    cdef int sweep(self) except -1 nogil:
        return self.missing()

    cdef int missing(self) except -1 nogil:
        with gil:
            raise NotImplementedError(f"{type(self).__name__} has no such step")
