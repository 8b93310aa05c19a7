"""A handler that programs of XLA call: it calls a function of Python with arrays in the program's own memory.

JAX's callback wraps and copies each array first, which takes longer than a small batch. A program names its function by
a text, from which any process makes it: what is compiled may be stored, and nothing is kept for programs that are gone.
"""

import gc
import sys
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

    static unsigned long foreign_stopped;   /* the main thread while an exception is to be raised there, or 0 */
    static int foreign_is_stopped(void) {
        unsigned long stopped = __atomic_load_n(&foreign_stopped, __ATOMIC_ACQUIRE);
        return stopped != 0 && stopped == PyThread_get_thread_ident();
    }
    static void foreign_stop(unsigned long thread) { __atomic_store_n(&foreign_stopped, thread, __ATOMIC_RELEASE); }
    """
    int foreign_raised() except -1      # raises the exception that is set; in XLA's own threads it may be gone
    void* foreign_get(void** place) noexcept nogil
    void foreign_set(void** place, void* value) noexcept nogil
    bint foreign_is_stopped() noexcept nogil
    void foreign_stop(unsigned long thread) noexcept nogil

cdef extern from "Python.h":
    object PyMemoryView_FromMemory(char* memory, Py_ssize_t size, int flags)
    int PyBUF_READ, PyBUF_WRITE
    Py_ssize_t Py_REFCNT(object)
    int Py_AddPendingCall(int (*function)(void*) except -1, void* argument) noexcept

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
cdef tuple stopped = None   # an exception to raise, and the frame that called the program and where
cdef int n_nan, n_late      # calls that got nan since, and attempts to raise it that came too early


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
        with gil:
            return pass_over(call)
    quick = foreign_get(&quick_one)
    if is_quick and quick != NULL:
        found = (<Quick> quick).compute(&call.arguments, &call.results)
    if found > 0:
        return NULL
    with gil:
        return run(call, &name, found < 0)


cdef void* run(const xla_call* call, const xla_text* name, bint is_raised) noexcept:
    try:
        message = call_function(call, name, is_raised)
        return NULL if message is None else xla_failed(call, message)
    except BaseException:   # NULL would say that the results are there
        return xla_failed(call, b"a loss failed, and so did the message of its error")


cdef object call_function(const xla_call* call, const xla_text* name, bint is_raised):
    """Call a function of Python, unless an exception is set; returns the message of an error as bytes, or None."""
    cdef list views = []
    try:
        message = attempt(call, name, is_raised, views)
    except Exception:
        raise
    except BaseException as error:
        message = stop(call, error)
    if not are_free(views):
        gc.collect()    # arrays in circles of references
        if not are_free(views) and message is None:
            message = b"a loss kept its arrays, whose memory is XLA's"
    return message


cdef object attempt(const xla_call* call, const xla_text* name, bint is_raised, list views):
    """Write what a function returns; returns the message of an error, or None."""
    try:
        if is_raised:
            foreign_raised()
        function = make_function(name.start[:name.size].decode("utf-8"))
        write(function(arrays_in(&call.arguments, PyBUF_READ, views)), arrays_in(&call.results, PyBUF_WRITE, views))
    except Exception as error:
        return message_of(error)
    return None


cdef object message_of(error):
    import traceback
    return "".join(traceback.format_exception(error)).encode("utf-8", "replace")


cdef object stop(const xla_call* call, error):
    """Have what is no Exception, such as KeyboardInterrupt, raised where the main thread called the program.

    A program makes an error of its own of a failure, which `except KeyboardInterrupt` lets pass: its losses become nan
    instead, which only the program sees. Returns the message of an error in other threads, or None.
    """
    global stopped, n_nan, n_late
    if threading.get_ident() != threading.main_thread().ident:
        return message_of(error)
    frame = sys._getframe()
    error.__traceback__ = error.__context__ = error.__cause__ = None    # they refer to arrays
    stopped, n_nan, n_late = (error, frame, frame.f_lasti), 0, 0
    if Py_AddPendingCall(raise_stopped, NULL) < 0:
        return message_of(error)
    foreign_stop(threading.get_ident())
    fill(call)
    return None


cdef object fill(const xla_call* call):
    for result in arrays_in(&call.results, PyBUF_WRITE, []):
        result.fill(np.nan if result.dtype.kind == "f" else 0)


cdef void* pass_over(const xla_call* call) noexcept:
    """Answer a later call of a program that is to end, which fails if it goes on and on."""
    global n_nan
    n_nan += 1
    try:
        if n_nan < 1000:
            fill(call)
            return NULL
    except BaseException:
        pass
    return xla_failed(call, b"interrupted in an earlier call")


cdef int raise_stopped(void* nothing) except -1:
    """Raise what stopped a program, but later if the program is still at work: this is a callback of its own then."""
    global stopped, n_late
    error, frame, place = stopped
    now = sys._getframe()
    if now is not frame and frame.f_lasti == place:
        n_late += 1
        if n_late % 32 == 1:    # Python asks so often, or more often, each time
            while now is not None and now is not frame:
                now = now.f_back
        if now is not None and Py_AddPendingCall(raise_stopped, NULL) == 0:
            return 0
    stopped = None
    foreign_stop(0)
    raise error


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
