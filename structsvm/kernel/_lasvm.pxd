from structsvm._typedefs cimport int32_t, int64_t
from structsvm.dual._state cimport State
from structsvm.kernel._kernels cimport products
from structsvm.kernel._row_cache cimport RowCache


cdef enum Selection:
    SELECT_RANDOM
    SELECT_GRADIENT
    SELECT_ACTIVE
    SELECT_AUTOACTIVE


cdef class LaSVMState(State):
    cdef readonly RowCache cache
    cdef public double tau
    cdef readonly double bias               # b of equation (4.11)
    cdef readonly double delta              # the most violating pair's difference of derivatives
    cdef readonly int64_t n_steps           # direction searches
    cdef const products* fast
    cdef Selection selection
    cdef double[::1] sign                   # y of each example, 1 or -1
    cdef double[::1] box                    # C of each example
    # By slot, n_members used.
    cdef double[::1] alpha
    cdef double[::1] low                    # A <= alpha <= B
    cdef double[::1] high
    cdef double[::1] g
    cdef Py_ssize_t[2] n_of                 # members of the negative and of the positive class
    cdef Py_ssize_t top                     # the slots of the extreme derivatives, or -1: largest with alpha < B,
    cdef Py_ssize_t bottom                  # smallest with alpha > A
    # The finishing step: slots that take part; alpha and g when all of them last did.
    cdef int32_t[::1] active
    cdef Py_ssize_t n_active
    cdef double[::1] alpha_then
    cdef double[::1] g_then

    # The place, among examples yet to come, of the one to process next.
    cdef Py_ssize_t select(self, int64_t* order, Py_ssize_t n) except -1 nogil
    cdef int enter(self, Py_ssize_t i, Py_ssize_t b, double g) except -1 nogil
    cdef int remove(self, Py_ssize_t slot) except -1 nogil
    cdef void extremes(self) noexcept nogil
    cdef int step(self, Py_ssize_t i, Py_ssize_t j) except -1 nogil
    cdef double length(self, Py_ssize_t i, Py_ssize_t j, double k) noexcept nogil
    cdef void move(self, Py_ssize_t i, Py_ssize_t j, double length, double k) noexcept nogil
    cdef bint work(self, Py_ssize_t n) except -1 nogil
    cdef void shrink(self) noexcept nogil
    cdef int restore(self) except -1 nogil
