"""Bounds of scores, for other modules of this room."""

from libc.stdint cimport int64_t

# Whether n scores, floats or doubles, are in bounds: no mask, none that is no number, none that is too great.
cdef bint scores_within(const void* scores, bint is_double, int64_t n) noexcept nogil
