"""Work on arrays in the memory of a program of XLA: see _foreign.pyx."""

from libc.stdint cimport int64_t

cdef extern from "xla.h" nogil:
    int XLA_INT32, XLA_INT64, XLA_FLOAT, XLA_DOUBLE
    ctypedef struct xla_array:
        int type
        void* data
        int64_t n_axes
        int64_t* shape
    ctypedef struct xla_arrays:
        int64_t n
        void** items


cdef class Quick:
    """Computes the results of most calls of a function, without the GIL, to the same bits."""

    # Returns 1; 0 to have the function called, which computes them anew; or -1, and an exception is set.
    cdef int compute(self, const xla_arrays* arguments, const xla_arrays* results) noexcept nogil


cdef inline const xla_array* array_of(const xla_arrays* arrays, int64_t k) noexcept nogil:
    return <const xla_array*> arrays.items[k]


# The memory of an array of a call.
cdef inline void* data_of(const xla_arrays* arrays, int64_t k) noexcept nogil:
    return array_of(arrays, k).data
