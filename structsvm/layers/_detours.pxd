"""Outputs that are yet to be the next best: see detours.h."""

from libc.stdint cimport int32_t

cdef extern from "detours.h" nogil:
    ctypedef struct detour:
        double score
        int32_t parent
        int32_t at[5]
    int detours_add(detour* found, int known, int most, detour other)
    int detours_take(detour* found, int known, detour* best)
