from structsvm._problem cimport Cut, Problem
from structsvm._typedefs cimport int64_t
from structsvm.dual._state cimport State


cdef enum Averaging:
    AVERAGE_NONE
    AVERAGE_UNIFORM     # the weights after every visit count the same
    AVERAGE_LINEAR      # the weights after visit t count t times


# The sum of a[k] b[k] in one fixed order: a BLAS may use threads, and then the last bits depend on their number.
cdef void add_products(const double[::1] a, const double[::1] b, double* lanes) noexcept nogil
cdef double sum_of_lanes(const double* lanes) noexcept nogil
cdef double sum_of_products(const double[::1] a, const double[::1] b) noexcept

# Raise the error of example i whose scores are not numbers.
cdef int overflow(Py_ssize_t i) except -1 nogil


cdef class WeightState(State):
    cdef readonly Problem problem
    cdef readonly object weights            # ndarray (n_features,) of problem.weight_dtype
    cdef readonly bint is_lent              # whether they belong to others, too
    cdef readonly object average_sum        # the same shape, or None
    cdef readonly int64_t n_updates
    cdef void* w
    cdef void* u
    cdef Averaging averaging
    cdef int64_t average_from               # visits before the average begins
    cdef const int64_t[::1] signs           # features whose weights must be >= 0
    cdef Py_ssize_t n_signs
    cdef double[::1] mu                     # (n_signs,) what a dual state adds to these weights; else 0
    cdef bint has_mu
    cdef bint counts_mu                     # whether dual and average follow; of threads, one's do
    cdef Py_ssize_t entered[2]              # the section that is visited; both 0 before the first
    cdef int64_t n_projected                # updates before the last projection

    cdef int update(self, Py_ssize_t i, Cut* cut, double coef) except -1 nogil
    cdef double tick(self) noexcept nogil
    cdef average_to(self, average, double t)
    cdef void project(self) noexcept nogil
