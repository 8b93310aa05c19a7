"""The C contract between solvers and oracles: a bound problem and its cuts.

A *problem* is an oracle together with its training examples. A *cut* is one constraint
``<w, psi> >= b - xi_i`` of one example, with ``psi = scale * dPsi``. How dPsi is written into the
words of a cut is the problem's own affair: solvers store the words, compare them, and hand them back.
"""

from structsvm._typedefs cimport float32_t, float64_t, int32_t, int64_t


cdef enum Rescaling:
    RESCALE_NONE    # plain argmax_y <w, Psi(x, y)>, for perceptrons
    RESCALE_MARGIN
    RESCALE_SLACK


cdef enum Penalty:
    PENALTY_LINEAR
    PENALTY_QUADRATIC
    PENALTY_HARD


cdef struct Cut:
    double alpha        # the multiplier; 0 outside a dual state
    double drift        # a dual state's share of the running average that is not yet in its sum
    int64_t idle        # times in a row that a dual state found alpha = 0 (see DualState.patience)
    double b            # right-hand side
    double scale        # psi = scale * dPsi
    int64_t n_words     # 0: the zero constraint (the true output itself)
    int32_t* words      # dPsi in the problem's own encoding, canonical: equal words, equal dPsi
    int32_t own[2]      # where a dual state stores words so few


cdef struct Target:         # a true output, or the completion of one that is known in part
    int64_t n_words
    const int32_t* words    # in the problem's own encoding: equal words, equal outputs


# Right-hand side and scale of the constraint of an output with loss `loss` > 0 (DESIGN, table of
# formulations): hard margin (1, 1); linear (D, 1) or (D, D); quadratic (sqrt D, 1) or (sqrt D, sqrt D).
cdef void cut_terms(Rescaling rescaling, Penalty penalty, double loss, Cut* cut) noexcept nogil


cdef class BoundProblem:
    cdef readonly Py_ssize_t n_samples
    cdef readonly Py_ssize_t n_features     # length of w, padding included
    cdef readonly object inference          # "exact", "relaxed" or "approximate"
    cdef readonly bint has_primal           # it is not "approximate"
    cdef readonly object nonnegative        # None, or ascending int64 indices of the weights that must be >= 0


cdef class Problem(BoundProblem):
    cdef readonly object weight_dtype       # dtype of w; float64 unless a subclass says otherwise
    cdef readonly Py_ssize_t first          # number of example 0 in the whole problem, of which this may be a shard
    cdef readonly object groups             # None, or int64 offsets of runs of examples to visit together
    cdef readonly object sections           # None, or int64 bounds of runs of examples, one visited after the other
    cdef const int64_t[::1] section_bounds
    cdef Py_ssize_t section                 # the one that was looked at last, if it has not been left; or -1
    cdef object leave                       # called with the bounds of a section that nobody looks at for a while
    cdef readonly object enter              # None, or called without arguments before one is looked at
    cdef bint single                        # w is float32
    cdef Py_ssize_t window_unit             # see c_accumulate_window
    cdef Rescaling rescaling
    cdef Penalty penalty

    # Fill `cut` with the most violated constraint of example i under w, and `violation` with
    # b - <w, psi>. Where the true output itself is the maximiser: n_words = 0, b = violation = 0. Under
    # RESCALE_NONE (perceptrons) plain inference: any output of the highest score, the true one or another that ties
    # with it. Only the latter makes a perceptron move, so one that always prefers the true output never leaves w = 0.
    # The words belong to the problem and live until its next call.
    # Inference that may take some milliseconds calls `poll` of structsvm.execution._stop; the other verbs, which change
    # what a solver holds, do not.
    cdef int c_separate(self, Py_ssize_t i, const void* w, Cut* cut, double* violation) except -1 nogil

    # out[k] = <w, psi_k> for n cuts of example i. `fresh`: w has not changed since separate(i, w).
    cdef int c_dots(self, Py_ssize_t i, const Cut* cuts, Py_ssize_t n, const void* w, bint fresh,
                    double* out) except -1 nogil

    # w += coef * psi, in w's own type, and in float64 for exact sums.
    cdef int c_add(self, Py_ssize_t i, const Cut* cut, double coef, void* w) except -1 nogil
    cdef int c_accumulate(self, Py_ssize_t i, const Cut* cut, double coef, float64_t* w) except -1 nogil

    # w += sum_k alpha_k psi_k of n cuts of example i, in any order; as `c_add` of each by default.
    cdef int c_add_cuts(self, Py_ssize_t i, const Cut* cuts, Py_ssize_t n, void* w) except -1 nogil

    # As c_accumulate, for numbers low .. high - 1 of w alone, which begin at `w`: multiples of `window_unit`. By
    # default it is 0, and the numbers are all.
    cdef int c_accumulate_window(self, Py_ssize_t i, const Cut* cut, double coef, float64_t* w, Py_ssize_t low,
                                 Py_ssize_t high) except -1 nogil

    # <psi, psi'> of two cuts of example i.
    cdef double c_inner(self, Py_ssize_t i, const Cut* a, const Cut* b) except? -1 nogil

    # out[k] = <psi_k, psi> for n cuts of example i and one more. The order of two cuts makes no difference.
    cdef int c_inners(self, Py_ssize_t i, const Cut* cuts, Py_ssize_t n, const Cut* cut, double* out) except -1 nogil

    # Whether the words are a cut of example i that the other verbs can take (they check nothing).
    cdef bint c_valid(self, Py_ssize_t i, const Cut* cut) noexcept nogil

    # A hint that example i will be looked at soon: fetch into the caches what stands about it in memory; with
    # stage 1, what the numbers fetched at stage 0 point to. May do nothing.
    cdef void c_prefetch(self, Py_ssize_t i, int stage) noexcept nogil

    # The same for `c_add` of a cut of example i to w, in stages 0 to 2, of which the last fetches weights; beside
    # `c_prefetch`.
    cdef void c_prefetch_add(self, Py_ssize_t i, const Cut* cut, const void* w, int stage) noexcept nogil

    # What separate(i) costs, in units of one weight read: the clock of the adaptive schedule.
    cdef double c_cost(self, Py_ssize_t i) noexcept nogil

    # ---- of problems that offer "expectations": the log loss ----
    #
    # Under the distribution p(y) ~ exp <w, Psi(x_i, y)> over all outputs an example has *moments* m, of which
    #     E_p[Psi(x_i, y)] - Psi(x_i, y_i) = F_i(m)
    # is a linear function: `c_moments(i)` numbers in the problem's own encoding, such as the probabilities of labels at
    # tokens less the true labels. Those of the true output are all 0; a mixture of distributions has the mixture of
    # their moments. Solvers store them, mix them, and hand them back. By default they are F_i(m) itself, n_features
    # numbers: then `c_expect` is all that a subclass has to write.
    cdef Py_ssize_t c_moments(self, Py_ssize_t i) noexcept nogil

    # Fill m with the moments of example i under w, `loss` with log Z - <w, Psi(x_i, y_i)> >= 0 and `entropy` with that
    # of p; if m is NULL, the loss alone. Polls as `c_separate` does. Of scores that overflow the loss is no number.
    cdef int c_expect(self, Py_ssize_t i, const void* w, float32_t* m, double* loss, double* entropy) except -1 nogil

    # <w, F_i(m)>, called right after c_expect(i, w).
    cdef double c_moments_dot(self, Py_ssize_t i, const float32_t* m, const void* w) except? -1 nogil

    # |F_i(m)|^2
    cdef double c_moments_square(self, Py_ssize_t i, const float32_t* m) except? -1 nogil

    # w += coef * F_i(m), in w's own type, and in float64 for exact sums. `again`: m are those of the last call of
    # c_moments_square(i, m).
    cdef int c_moments_add(self, Py_ssize_t i, const float32_t* m, double coef, bint again, void* w) except -1 nogil
    cdef int c_moments_accumulate(self, Py_ssize_t i, const float32_t* m, double coef, float64_t* w) except -1 nogil

    # ---- of problems that offer "completions": true outputs that are known in part ----

    # Fill `target` with the best output under w of those that agree with what is known of the true one of example i.
    # The words belong to the problem and live until its next call. Polls as `c_separate` does. In Python,
    # `with_targets` makes the problem whose true outputs they are; until then an example that is not wholly known has
    # none, and the problem offers nothing but completions.
    cdef int c_complete(self, Py_ssize_t i, const void* w, Target* target) except -1 nogil

    # Whether `target`, a copy of what the last c_complete(i) wrote, is another output than the true one of example i.
    # With `take` it becomes the true one, of a problem that `with_targets` has made: then constraints of example i that
    # were found before are none any more, `targets` has it, shards have not. Of examples that belong together the first
    # one speaks for all.
    cdef bint c_retarget(self, Py_ssize_t i, const Target* target, bint take) except -1 nogil

    # Example i has been looked at in a sweep over all of them, or over a part of each section: a section is left after
    # its last example, or when another one begins.
    cdef int swept(self, Py_ssize_t i) except -1 nogil
    cdef int leave_section(self) except -1 nogil

    # Called before a sweep, and before a section is visited.
    cdef int enter_section(self) except -1
