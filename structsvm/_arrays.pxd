"""Addresses and shapes of numpy arrays; apart, so that an oracle of another project compiles without numpy's headers."""

# The part of numpy's C interface that is needed; `cimport numpy` declares a hundred times as much, in each module anew.
cdef extern from "numpy/ndarraytypes.h" nogil:
    ctypedef class numpy.ndarray [object PyArrayObject, check_size ignore]:
        pass
    void* array_data "PyArray_DATA"(ndarray array)
    Py_ssize_t* array_shape "PyArray_DIMS"(ndarray array)
