"""Bounds of scores, for other modules of this room."""

from libc.stdint cimport int64_t

# Whether all n scores are finite and below the bound in size.
cdef bint scores_within(const void* scores, bint is_double, int64_t n) noexcept nogil

# Whether all n scores are that, or masks (-inf): one by one.
cdef bint scores_allowed(const void* scores, bint is_double, int64_t n) noexcept nogil
