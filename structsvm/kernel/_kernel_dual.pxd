from structsvm._typedefs cimport int32_t, int64_t
from structsvm.dual._state cimport State
from structsvm.kernel._expansion cimport Expansion
from structsvm.kernel._row_cache cimport RowCache


cdef class KernelDual(State):
    cdef readonly RowCache cache
    cdef readonly Expansion vectors
    cdef readonly Py_ssize_t n_labels
    cdef public double tau
    cdef readonly int64_t n_optimize
    cdef int32_t[::1] y                     # true labels
    cdef double[::1] box                    # C of each example
    cdef double[:, ::1] loss                # (n_labels, n_labels), or None: zero-one
    cdef int64_t[::1] mix_start             # <L(y), L(y')> by rows, labels ascending
    cdef int32_t[::1] mix_label
    cdef double[::1] mix_value
    # Scratch for one pattern, by label. beta, change and factor are 0 between two steps.
    cdef double[::1] sums                   # sum_j beta_j^y k(x_j, x)
    cdef double[::1] score                  # S(x, y)
    cdef double[::1] slope                  # g(y)
    cdef double[::1] beta
    cdef double[::1] change                 # the step of beta
    cdef double[::1] factor                 # M change
    cdef int32_t[::1] touched               # labels whose beta has changed
    cdef Py_ssize_t n_touched
    cdef int32_t[::1] affected              # labels with a factor
    cdef int32_t[::1] all_labels

    cdef bint by_gain                       # select support patterns as GaLa does
    cdef int64_t selected                   # the example that it has selected, or -1
    cdef int32_t[2] pair                    # and the two labels

    cdef int process_any(self, Py_ssize_t i) except -1 nogil
    cdef int sweep(self) except -1 nogil
    cdef int process_fresh(self, Py_ssize_t i, int n_steps) except -1 nogil
    cdef int process(self, Py_ssize_t slot, int n_steps) except -1 nogil
    cdef int optimize_patterns(self, int n, int n_steps) except -1 nogil
    cdef Py_ssize_t pick(self) noexcept nogil
    cdef double margin(self, int32_t true, int32_t label) noexcept nogil
    cdef double room(self, Py_ssize_t i, int32_t label, double beta) noexcept nogil
    cdef double mix(self, int32_t a, int32_t b) noexcept nogil
    cdef void scores(self, const float* row) noexcept nogil
    cdef void slopes(self, Py_ssize_t i, const float* row) noexcept nogil
    cdef void look_up(self, Py_ssize_t slot) noexcept nogil
    cdef bint moves(self, Py_ssize_t slot) noexcept nogil
    cdef Py_ssize_t solve(self, Py_ssize_t i, double k, const int32_t* labels, Py_ssize_t n,
                          int n_steps) noexcept nogil
    cdef void touch(self, int32_t label, double amount, double k) noexcept nogil
    cdef int commit(self, Py_ssize_t slot) except -1 nogil
    cdef void select(self, int32_t plus, int32_t minus) noexcept nogil
    cdef double gain(self, Py_ssize_t slot, int32_t a, int32_t at_a, int32_t b, int32_t at_b,
                     bint* removes) noexcept nogil
    cdef int account_block(self, const int64_t* block, Py_ssize_t n, float* rows,
                           double[:, ::1] parts) except -1 nogil
    cdef void account(self, int64_t i, const float* row, double* values) noexcept nogil
