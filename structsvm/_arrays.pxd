"""Places of numpy arrays; apart, so that an oracle of another project compiles without numpy's headers."""

# The part of numpy's C interface that is needed; `cimport numpy` declares a hundred times as much, in each module anew.
cdef extern from "numpy/ndarraytypes.h" nogil:
    ctypedef class numpy.ndarray [object PyArrayObject, check_size ignore]:
        pass
    void* array_data "PyArray_DATA"(ndarray array)
    Py_ssize_t* array_shape "PyArray_DIMS"(ndarray array)

# Scratch, whose bytes are undefined, as an object that holds it: a call of numpy takes five times the code and time.
cdef extern from "Python.h" nogil:
    void* scratch_data "PyBytes_AS_STRING"(object room)
cdef extern from "Python.h":
    object scratch "PyBytes_FromStringAndSize"(const char* none, Py_ssize_t size)
