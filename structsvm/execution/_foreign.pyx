"""A handler that programs of XLA call: it calls a function of Python with arrays in the program's own memory.

JAX's callback wraps and copies each array first, which takes longer than a small batch.
"""

import gc
import os

import numpy as np

from cpython.pycapsule cimport PyCapsule_New
from libc.stdint cimport int64_t

cdef extern from "xla.h" nogil:
    int XLA_OLDEST, XLA_NEWEST
    ctypedef struct xla_call:
        xla_arrays arguments
        xla_arrays results
    bint xla_answered(const xla_call* call, int minor)
    bint xla_is_known(const xla_call* call, int64_t* number)
    void* xla_failed(const xla_call* call, const char* message)

cdef extern from *:
    """
    static int foreign_raised(void) { return PyErr_Occurred() ? -1 : 0; }
    static void *foreign_get(void **place) { return __atomic_load_n(place, __ATOMIC_ACQUIRE); }
    static void foreign_set(void **place, void *value) { __atomic_store_n(place, value, __ATOMIC_RELEASE); }
    """
    int foreign_raised() except -1      # raises the exception that is set; in XLA's own threads it may be gone
    void* foreign_get(void** place) noexcept nogil
    void foreign_set(void** place, void* value) noexcept nogil

cdef extern from "Python.h":
    object PyMemoryView_FromMemory(char* memory, Py_ssize_t size, int flags)
    int PyBUF_READ, PyBUF_WRITE
    Py_ssize_t Py_REFCNT(object)

# XLA's numbers of NumPy's types.
TYPES = {
    number: np.dtype(name)
    for number, name in (
        (1, "?"), (2, "i1"), (3, "i2"), (4, "i4"), (5, "i8"), (6, "u1"), (7, "u2"), (8, "u4"), (9, "u8"), (10, "f2"),
        (11, "f4"), (12, "f8"),
    )
}
VERSIONS = tuple(range(XLA_OLDEST, XLA_NEWEST + 1))

# Functions by number. They stay, as nobody says when the last program that calls one is gone.
cdef dict FUNCTIONS = {}
cdef void* quick_ones = NULL
cdef int minor = XLA_OLDEST


cdef class Quick:
    cdef int compute(self, const xla_arrays* arguments, const xla_arrays* results) noexcept nogil:
        return 0


def number_of(function, Quick quick=None):
    """The number by which programs call a function of a list of arrays, which it does not keep; it returns arrays.

    `quick` is asked first. Another process refuses a stored program of this one: numbers differ by chance.
    """
    global quick_ones
    cdef int64_t number = int.from_bytes(os.urandom(7), "little")
    FUNCTIONS[number] = function, quick
    if quick is not None:
        quick.number, quick.after = number, foreign_get(&quick_ones)
        foreign_set(&quick_ones, <void*> quick)
    return number


def handler(int version):
    """The handler as a capsule that JAX registers; it says that it was written for a minor version of the interface."""
    global minor
    minor = version
    return PyCapsule_New(<void*> handle, NULL, NULL)


cdef void* handle(const xla_call* call) noexcept nogil:
    """Compute the results of a call; returns NULL, or an error of XLA's."""
    cdef int64_t number = 0
    cdef int found = 0
    cdef void* quick
    if xla_answered(call, minor):
        return NULL
    if not xla_is_known(call, &number):
        return xla_failed(call, "XLA called structsvm by a version of its interface that structsvm does not know")
    quick = foreign_get(&quick_ones)
    while quick != NULL and (<Quick> quick).number != number:
        quick = (<Quick> quick).after
    if quick != NULL:
        found = (<Quick> quick).compute(&call.arguments, &call.results)
    if found > 0:
        return NULL
    with gil:
        return run(call, number, found < 0)


cdef void* run(const xla_call* call, int64_t number, bint is_raised) noexcept:
    try:
        message = call_function(call, number, is_raised)
        return NULL if message is None else xla_failed(call, message)
    except BaseException:   # NULL would say that the results are there
        return xla_failed(call, b"a loss failed, and so did the message of its error")


cdef object call_function(const xla_call* call, int64_t number, bint is_raised):
    """Call a function of Python, unless an exception is set; returns the message of an error as bytes, or None."""
    cdef list views = []
    message = None
    try:
        if is_raised:
            foreign_raised()
        function, _ = FUNCTIONS.get(number, (None, None))
        if function is None:
            raise RuntimeError("the program was compiled by another process: structsvm cannot call its loss here")
        write(function(arrays_in(&call.arguments, PyBUF_READ, views)), arrays_in(&call.results, PyBUF_WRITE, views))
    except BaseException as error:
        import traceback
        message = "".join(traceback.format_exception(error)).encode("utf-8", "replace")
    if not are_free(views):
        gc.collect()    # arrays in circles of references
        if not are_free(views) and message is None:
            message = b"a loss kept its arrays, whose memory is XLA's"
    return message


cdef list arrays_in(const xla_arrays* given, int flags, list views):
    """The arrays of a call, without a copy; `views` gets what they are parts of."""
    cdef const xla_array* array
    cdef int64_t k, axis, size
    found = []
    for k in range(given.n):
        array = <const xla_array*> given.items[k]
        dtype, shape, size = TYPES[array.type], [], 1
        for axis in range(array.n_axes):
            shape.append(array.shape[axis])
            size *= array.shape[axis]
        if size == 0:
            found.append(np.empty(shape, dtype))
            continue
        memory = PyMemoryView_FromMemory(<char*> array.data, size * <int64_t> dtype.itemsize, flags)
        views.append(np.frombuffer(memory, dtype))
        found.append(views[len(views) - 1].reshape(shape))
    return found


cdef object write(values, list results):
    """Copy what a function returned to where the program wants it."""
    if len(values) != len(results):
        raise RuntimeError(f"a loss returned {len(values)} arrays instead of {len(results)}")
    for value, result in zip(values, results):
        if value.shape != result.shape or value.dtype != result.dtype:
            raise RuntimeError(
                f"a loss returned an array of {value.dtype} {value.shape} instead of {result.dtype} {result.shape}"
            )
        result[...] = value


cdef bint are_free(list views):
    """Whether nothing else refers to arrays, or to parts of them."""
    for view in views:
        if Py_REFCNT(view) > 2:
            return False
    return True
