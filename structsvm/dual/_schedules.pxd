"""Schedules: walks over the examples of a state. Machines with steps of their own have schedules of their own."""

from structsvm._typedefs cimport int64_t
from structsvm.dual._state cimport State


cdef class Schedule:
    cdef State state
    cdef int64_t[::1] order         # examples in the order of this pass
    cdef readonly Py_ssize_t next   # how many of them have been visited
    cdef int64_t[::1] groups
    cdef object mine                # the groups that are visited
    cdef int64_t[::1] sections      # bounds of the sections of examples
    cdef int64_t[::1] bounds        # how many of the groups lie before each
    cdef int64_t[::1] ends          # and how many examples
    cdef Py_ssize_t section, until  # sections entered; how many are visited when the present one ends
    cdef Py_ssize_t block           # calls of visit between two looks at the time

    # 1: call again with the same example; 0: done with it.
    cdef int visit(self, Py_ssize_t i) except -1 nogil
