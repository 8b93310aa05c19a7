from libc.math cimport INFINITY
from libc.stdint cimport uint8_t

from structsvm._problem cimport Cut, Problem, Target
from structsvm._typedefs cimport float64_t, int32_t, int64_t
from structsvm.dual._weights cimport WeightState


cdef struct WorkingSet:     # half a cache line: steps on old examples find theirs anywhere in memory
    int32_t n
    int32_t capacity
    double total        # sum of alpha; LaRank's beta of the true output
    Cut* cuts           # so many as `capacity` says; behind them is `gram_of`
    double bound        # bound of `total`; if negative there is none, but a ridge of -bound


cdef enum:
    STAGES = 6          # stages of `DualState.fetch`


cdef inline double* gram_of(const WorkingSet* s) noexcept nogil:
    """A packed lower triangle: <psi_r, psi_c> stands at r (r + 1) / 2 + c, for c <= r."""
    return <double*>(s.cuts + s.capacity)


cdef inline double gram_at(const WorkingSet* s, Py_ssize_t r, Py_ssize_t c) noexcept nogil:
    if r < 0 or c < 0:
        return 0.0
    return gram_of(s)[r * (r + 1) // 2 + c] if c <= r else gram_of(s)[c * (c + 1) // 2 + r]


cdef inline double box_of(const WorkingSet* s) noexcept nogil:
    """The upper bound of the sum of alpha."""
    return s.bound if s.bound >= 0.0 else INFINITY


cdef inline double ridge_of(const WorkingSet* s) noexcept nogil:
    """The curvature added along that sum."""
    return -s.bound if s.bound < 0.0 else 0.0


cdef class DualState(WeightState):
    cdef readonly int64_t n_cuts            # constraints with alpha > 0
    cdef readonly int64_t n_patterns        # examples with at least one of them
    cdef int64_t n_near                     # the first so many of `support` are of the section that is visited
    cdef readonly double tau                # a direction with less slope is left alone
    cdef readonly int64_t patience          # solutions of its working set that a cut of alpha = 0 stays for
    cdef object base                        # None, or float64 weights that training started from
    cdef object average                     # in the place of its sum, after `end_average`; else None
    cdef object summed                      # the result of `sums`, if threads have summed; else None
    cdef double[::1] weight                 # (n,) C of each example
    cdef int64_t[::1] support               # (n_patterns used) examples with cuts, in any order
    cdef int64_t[::1] position              # (n,) index into support, or -1
    cdef WorkingSet* sets
    cdef Py_ssize_t n_sets
    cdef double* slope                      # scratch: b - <w, psi> of one working set's cuts
    cdef Py_ssize_t slope_capacity
    cdef uint8_t[::1] recompleted           # (n,) examples whose completion a step has changed; empty: steps find none
    cdef int64_t[::1] group_end             # (n,) of the first example of a group, of others -1
    cdef Target completion                  # words of this state's own
    cdef int64_t completion_capacity

    cdef void set_bound(self, Py_ssize_t i) noexcept nogil
    cdef int complete(self, Py_ssize_t i) except -1 nogil
    cdef int drop(self, Py_ssize_t i) except -1 nogil
    cdef int process(self, Py_ssize_t i) except -1 nogil
    cdef int decode(self, Py_ssize_t i, Cut* cut, double* violation) except -1 nogil
    cdef void fetch_old(self, int stage, int n) noexcept nogil
    cdef void fetch(self, Py_ssize_t i, int stage) noexcept nogil
    cdef int optimize_set(self, Py_ssize_t i) except -1 nogil

    cdef Py_ssize_t find(self, Py_ssize_t i, const Cut* cut) noexcept nogil
    cdef Py_ssize_t insert(self, Py_ssize_t i, const Cut* cut) except -1 nogil
    cdef void set_place(self, Py_ssize_t i, Py_ssize_t place) noexcept nogil
    cdef void bring_near(self, Py_ssize_t i) noexcept nogil
    cdef int make_room(self, Py_ssize_t n) except -1 nogil
    cdef int remove(self, Py_ssize_t i, Py_ssize_t k) except -1 nogil
    cdef int flush(self) except -1
    cdef tuple sums(self, Py_ssize_t start, Py_ssize_t stop, float64_t[::1] exact, Py_ssize_t low)
    cdef int slopes(self, Py_ssize_t i, bint fresh) except -1 nogil
    cdef Py_ssize_t lowest(self, Py_ssize_t i, double* slope) noexcept nogil
    cdef Py_ssize_t highest(self, Py_ssize_t i, double* slope) noexcept nogil
    cdef double move(self, Py_ssize_t i, Py_ssize_t to, Py_ssize_t origin, double slope) noexcept nogil
    cdef int pair_step(self, Py_ssize_t i, Py_ssize_t to, Py_ssize_t origin, double slope) except -1 nogil
    cdef int solve_set(self, Py_ssize_t i) except -1 nogil
    cdef int step_towards(self, Py_ssize_t i, Py_ssize_t corner, double gap) except -1 nogil
    cdef int offer(self, Py_ssize_t i, const Cut* cut, double epsilon) except -1 nogil
    cdef double restricted_gap(self, Py_ssize_t i) noexcept nogil
    cdef int put_in_order(self) except -1
    cdef void add_up(self, Py_ssize_t i) noexcept nogil
    cdef void clear(self) noexcept nogil
