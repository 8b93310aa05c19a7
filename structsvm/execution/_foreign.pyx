"""A handler that programs of XLA call: it calls a function of Python with arrays in the program's own memory.

JAX's callback wraps and copies each array first, which takes longer than a small batch. A program names its function by
a text, from which any process makes it: what is compiled may be stored, and nothing is kept for programs that are gone.
"""

import gc
import threading

import numpy as np

from cpython.pycapsule cimport PyCapsule_New
from libc.stdint cimport int64_t

cdef extern from "xla.h" nogil:
    int XLA_OLDEST, XLA_NEWEST
    ctypedef struct xla_text:
        const char* start
        size_t size
    ctypedef struct xla_call:
        xla_arrays arguments
        xla_arrays results
    bint xla_answered(const xla_call* call, int minor)
    bint xla_is_known(const xla_call* call, xla_text* function, int64_t* quick)
    void* xla_failed(const xla_call* call, const char* message)

cdef extern from *:
    """
    static int foreign_raised(void) { return PyErr_Occurred() ? -1 : 0; }
    static void *foreign_get(void **place) { return __atomic_load_n(place, __ATOMIC_ACQUIRE); }
    static void foreign_set(void **place, void *value) { __atomic_store_n(place, value, __ATOMIC_RELEASE); }

    static unsigned long foreign_stopped;   /* the main thread while KeyboardInterrupt is to be raised there, or 0 */
    static int foreign_is_stopped(void) {
        unsigned long stopped = __atomic_load_n(&foreign_stopped, __ATOMIC_ACQUIRE);
        return stopped != 0 && stopped == PyThread_get_thread_ident();
    }
    static int foreign_interrupt(void *nothing) {
        __atomic_store_n(&foreign_stopped, 0, __ATOMIC_RELEASE);
        PyErr_SetNone(PyExc_KeyboardInterrupt);
        return -1;
    }
    static int foreign_stop(void) {
        if (Py_AddPendingCall(foreign_interrupt, NULL) < 0) return -1;
        __atomic_store_n(&foreign_stopped, PyThread_get_thread_ident(), __ATOMIC_RELEASE);
        return 0;
    }
    """
    int foreign_raised() except -1      # raises the exception that is set; in XLA's own threads it may be gone
    void* foreign_get(void** place) noexcept nogil
    void foreign_set(void** place, void* value) noexcept nogil
    bint foreign_is_stopped() noexcept nogil
    int foreign_stop() noexcept         # raises KeyboardInterrupt once this thread, the main one, is in Python again

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

cdef object make_function = None
cdef void* quick_one = NULL
cdef list KEPT = []     # objects whose addresses threads may have read


cdef class Quick:
    cdef int compute(self, const xla_arrays* arguments, const xla_arrays* results) noexcept nogil:
        return 0


def serve(make, Quick quick=None):
    """Have `make` return the function of a text; what programs call takes a list of arrays, which it does not keep.

    It returns arrays. `quick` is asked first where a program says so. Returns the `make` that served before.
    """
    global make_function
    before, make_function = make_function, make
    if quick is not None:
        KEPT.append(quick)
        foreign_set(&quick_one, <void*> quick)
    return before


def handler(int version):
    """The handler as a capsule that JAX registers; it says that it was written for a minor version of the interface."""
    return PyCapsule_New(<void*> (handle_1 if version == 1 else handle_2 if version == 2 else handle_3), NULL, NULL)


cdef void* handle_1(const xla_call* call) noexcept nogil:
    return NULL if xla_answered(call, 1) else handle(call)


cdef void* handle_2(const xla_call* call) noexcept nogil:
    return NULL if xla_answered(call, 2) else handle(call)


cdef void* handle_3(const xla_call* call) noexcept nogil:
    return NULL if xla_answered(call, 3) else handle(call)


cdef void* handle(const xla_call* call) noexcept nogil:
    """Compute the results of a call; returns NULL, or an error of XLA's."""
    cdef xla_text name
    cdef int64_t is_quick = 0
    cdef int found = 0
    cdef void* quick
    if not xla_is_known(call, &name, &is_quick):
        return xla_failed(call, "XLA called structsvm by a version of its interface that structsvm does not know")
    if foreign_is_stopped():
        return xla_failed(call, "KeyboardInterrupt, in an earlier call of the same program")
    quick = foreign_get(&quick_one)
    if is_quick and quick != NULL:
        found = (<Quick> quick).compute(&call.arguments, &call.results)
    if found > 0:
        return NULL
    with gil:
        return run(call, &name, found < 0)


cdef void* run(const xla_call* call, const xla_text* name, bint is_raised) noexcept:
    cdef void* failed = NULL
    cdef bint is_stopped = False
    try:
        message = call_function(call, name, is_raised, &is_stopped)
        if message is not None:
            failed = xla_failed(call, message)
    except BaseException:   # NULL would say that the results are there
        failed = xla_failed(call, b"a loss failed, and so did the message of its error")
    if is_stopped and foreign_stop() < 0 and failed == NULL:
        failed = xla_failed(call, b"KeyboardInterrupt")
    return failed


cdef object call_function(const xla_call* call, const xla_text* name, bint is_raised, bint* is_stopped):
    """Call a function of Python, unless an exception is set; returns the message of an error as bytes, or None.

    A program makes an error of its own of KeyboardInterrupt. In the main thread, where signals are handled, the call is
    made again, so that the program ends soon, and what called it is interrupted.
    """
    cdef list views = []
    message = None
    error = attempt(call, name, is_raised, views)
    if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
        is_stopped[0] = True
        error = attempt(call, name, False, views)
    if error is not None:
        import traceback
        message = "".join(traceback.format_exception(error)).encode("utf-8", "replace")
        error = None
    if not are_free(views):
        gc.collect()    # arrays in circles of references
        if not are_free(views) and message is None:
            message = b"a loss kept its arrays, whose memory is XLA's"
    return message


cdef object attempt(const xla_call* call, const xla_text* name, bint is_raised, list views):
    """Write what a function returns, unless an exception is set; returns the error, or None."""
    try:
        if is_raised:
            foreign_raised()
        function = make_function(name.start[:name.size].decode("utf-8"))
        write(function(arrays_in(&call.arguments, PyBUF_READ, views)), arrays_in(&call.results, PyBUF_WRITE, views))
    except BaseException as error:
        return error
    return None


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
