"""The C contract between solvers and oracles: a bound problem and its cuts.

A *problem* is an oracle together with its training examples. A *cut* is one constraint
``<w, psi> >= b - xi_i`` of one example, with ``psi = scale * dPsi``. How dPsi is written into the
words of a cut is the problem's own affair: solvers store the words, compare them, and hand them back.

The verbs of `Problem` stand in three blocks: what a compiled oracle must write; what it writes to be trained on more
than a margin; what it may write for speed, or for an encoding of its own. Of each verb: what holds before, and after.
"""

from cython cimport final
from libc.stdint cimport uint8_t

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


# Scratch arrays behind pointers: `take` returns n zeros of a type, which live as long as the object.
@final
cdef class Memory:
    cdef list arrays
    cdef void* take(self, int64_t n, kind) except NULL
    cdef double* float64s(self, int64_t n) except NULL
    cdef int32_t* int32s(self, int64_t n) except NULL
    cdef uint8_t* uint8s(self, int64_t n) except NULL


@final
cdef class Sections:
    # Runs of examples, one visited after the other: `Problem.in_sections` makes them. By default one, of all examples.
    cdef readonly object bounds             # None: one section of all; or int64, from 0 to n_samples
    cdef const int64_t[::1] ends            # the same; or empty
    cdef Py_ssize_t current                 # the one that was looked at last, if it has not been left; or -1
    cdef object on_leave
    cdef object on_enter

    cdef Sections part(self, Py_ssize_t start, Py_ssize_t stop)

    # Before a sweep over examples, and before a section is visited: sections may be checked.
    cpdef int enter(self) except -1

    # Example i has been looked at in a sweep over all of them, or over a part of each section: a section is left after
    # its last example, or when another one begins.
    cdef int visited(self, Py_ssize_t i) except -1 nogil
    cdef int leave_current(self) except -1 nogil

    # Nobody looks at examples start .. stop - 1 for a while: their memory may be released.
    cdef int leave(self, Py_ssize_t start, Py_ssize_t stop) except -1


cdef class BoundProblem:
    cdef readonly Py_ssize_t n_samples
    cdef readonly Py_ssize_t n_features     # length of w, padding included
    cdef readonly object inference          # "exact", "relaxed" or "approximate"
    cdef readonly bint has_primal           # it is not "approximate"
    cdef readonly object nonnegative        # None, or ascending int64 indices of the weights that must be >= 0


# In each verb 0 <= i < n_samples, and w are n_features weights of `weight_dtype`, an array that `lend` has seen. A verb
# changes nothing but its outputs and scratch memory of the problem (`c_retarget` more, with `take`). What returns `int`
# returns 0, or -1 with an exception set: then the outputs are undefined, and the next call works as on a fresh problem.
# No two threads use one problem: each has a shard.
cdef class Problem(BoundProblem):
    cdef readonly object weight_dtype       # dtype of w; float64 unless a subclass says otherwise
    cdef readonly Py_ssize_t first          # number of example 0 in the whole problem, of which this may be a shard
    cdef readonly object groups             # None, or int64 offsets of runs of examples to visit together
    cdef readonly Sections sections
    cdef bint single                        # w is float32
    cdef Py_ssize_t window_unit             # see c_accumulate_window
    cdef Rescaling rescaling
    cdef Penalty penalty

    # ==== must ====

    # Before: nothing more; w may hold any numbers, also such whose scores overflow.
    # After: `cut` is the most violated constraint of example i under w (of a search, the one found), `violation` is
    # b - <w, psi>, NaN if a score is none. Where the true output itself is the maximiser: n_words = 0, b = violation =
    # 0. Under RESCALE_NONE (perceptrons) plain inference: any output of the highest score, the true one or another that
    # ties with it. Only the latter makes a perceptron move, so one that always prefers the true output never leaves
    # w = 0. The words belong to the problem and live until its next call. `alpha`, `drift`, `idle` are 0 (`cut_terms`).
    # Inference that may take some milliseconds calls `poll` of structsvm.execution._stop; the verbs which change what a
    # solver holds do not.
    cdef int c_separate(self, Py_ssize_t i, const void* w, Cut* cut, double* violation) except -1 nogil

    # ==== for more than a margin ====
    #
    # "expectations", for the log loss: under the distribution p(y) ~ exp <w, Psi(x_i, y)> over all outputs an example
    # has *moments* m, of which
    #     E_p[Psi(x_i, y)] - Psi(x_i, y_i) = F_i(m)
    # is a linear function: numbers in the problem's own encoding, such as the probabilities of labels at tokens less
    # the true labels. Those of the true output are all 0; a mixture of distributions has the mixture of their moments.
    # Solvers store them, mix them, and hand them back. By default they are F_i(m) itself, n_features numbers: then
    # `c_expect` is all that a subclass has to write.
    #
    # "completions", for true outputs that are known in part: `c_complete`, `c_retarget`, and in Python `targets` and
    # `with_targets`, which makes the problem whose true outputs the completions are. Until then an example that is not
    # wholly known has none, and the problem offers nothing but completions.

    # Before: offers "expectations". m: room for c_moments(i) numbers, or NULL.
    # After: m are the moments of example i under w, `loss` is log Z - <w, Psi(x_i, y_i)> >= 0, `entropy` that of p; if
    # m is NULL, the loss alone. Of scores that overflow the loss is no number. Polls as `c_separate` does.
    cdef int c_expect(self, Py_ssize_t i, const void* w, float32_t* m, double* loss, double* entropy) except -1 nogil

    # Before: nothing more. After: returns how many moments example i has, 1 or more, always the same. By default
    # n_features.
    cdef Py_ssize_t c_moments(self, Py_ssize_t i) noexcept nogil

    # Before: the last call was c_expect(i, w) with the same w; m are any moments of example i. After: <w, F_i(m)>.
    cdef double c_moments_dot(self, Py_ssize_t i, const float32_t* m, const void* w) except? -1 nogil

    # Before: m are moments of example i, or their difference from others. After: |F_i(m)|^2.
    cdef double c_moments_square(self, Py_ssize_t i, const float32_t* m) except? -1 nogil

    # Before: m as above; `again`: those of the last call, c_moments_square(i, m).
    # After: w += coef * F_i(m), in w's own type.
    cdef int c_moments_add(self, Py_ssize_t i, const float32_t* m, double coef, bint again, void* w) except -1 nogil

    # Before: m as above. After: w += coef * F_i(m), in float64 for exact sums.
    cdef int c_moments_accumulate(self, Py_ssize_t i, const float32_t* m, double coef, float64_t* w) except -1 nogil

    # Before: offers "completions", or made by `with_targets`.
    # After: `target` is the best output under w of those that agree with what is known of the true one of example i.
    # The words belong to the problem and live until its next call. Polls as `c_separate` does.
    cdef int c_complete(self, Py_ssize_t i, const void* w, Target* target) except -1 nogil

    # Before: made by `with_targets`; `target` is a copy of what the last c_complete(i) wrote.
    # After: returns whether it is another output than the true one of example i. With `take` it is the true one:
    # constraints of example i that were found before are none any more, `targets` has it, shards have not. Of examples
    # that belong together the first one speaks for all.
    cdef bint c_retarget(self, Py_ssize_t i, const Target* target, bint take) except -1 nogil

    # ==== for speed, with a default ====
    #
    # The defaults are for cuts written as a sparse vector (see _problem.pyx). A problem whose words are something else
    # overrides the first five; the others may do as the defaults do, in less time. Cuts are those that `c_separate`
    # wrote for example i, or that are `c_valid`; alpha, b and words of such a cut may be copies.

    # Before: `fresh`: w has not changed since c_separate(i, w), the last call.
    # After: out[k] = <w, psi_k> of n cuts of example i.
    cdef int c_dots(self, Py_ssize_t i, const Cut* cuts, Py_ssize_t n, const void* w, bint fresh,
                    double* out) except -1 nogil

    # Before: a cut of example i. After: w += coef * psi, in w's own type.
    cdef int c_add(self, Py_ssize_t i, const Cut* cut, double coef, void* w) except -1 nogil

    # Before: a cut of example i. After: w += coef * psi, in float64 for exact sums.
    cdef int c_accumulate(self, Py_ssize_t i, const Cut* cut, double coef, float64_t* w) except -1 nogil

    # Before: two cuts of example i. After: <psi, psi'>.
    cdef double c_inner(self, Py_ssize_t i, const Cut* a, const Cut* b) except? -1 nogil

    # Before: any words, which need not be aligned, from a file say. After: returns whether they are a cut of example i
    # that the other verbs can take, for they check nothing.
    cdef bint c_valid(self, Py_ssize_t i, const Cut* cut) noexcept nogil

    # Before: n cuts of example i. After: w += sum_k alpha_k psi_k, in any order. By default `c_add` of each.
    cdef int c_add_cuts(self, Py_ssize_t i, const Cut* cuts, Py_ssize_t n, void* w) except -1 nogil

    # Before: low and high are multiples of `window_unit`; w begins at number `low` of the weights. Where `window_unit`
    # is 0, as by default, low = 0 and high = n_features.
    # After: as c_accumulate, for numbers low .. high - 1 alone.
    cdef int c_accumulate_window(self, Py_ssize_t i, const Cut* cut, double coef, float64_t* w, Py_ssize_t low,
                                 Py_ssize_t high) except -1 nogil

    # Before: n cuts of example i and one more. After: out[k] = <psi_k, psi>, the same bits whichever of the two is
    # `cut`. By default `c_inner` of each.
    cdef int c_inners(self, Py_ssize_t i, const Cut* cuts, Py_ssize_t n, const Cut* cut, double* out) except -1 nogil

    # Before: example i will be looked at soon; stage 0 has been called before stage 1.
    # After: nothing has changed; what stands about it in memory is asked for, with stage 1 what the numbers asked for
    # at stage 0 point to. By default nothing.
    cdef void c_prefetch(self, Py_ssize_t i, int stage) noexcept nogil

    # Before: the cut of example i will be added to w soon; stages 0 to 2 in this order, beside `c_prefetch`.
    # After: as for `c_prefetch`; the last stage asks for weights. By default nothing.
    cdef void c_prefetch_add(self, Py_ssize_t i, const Cut* cut, const void* w, int stage) noexcept nogil

    # Before: nothing more. After: returns what c_separate(i) costs, in units of one weight read: the clock of the
    # adaptive schedule, and of polls. By default n_features.
    cdef double c_cost(self, Py_ssize_t i) noexcept nogil
