"""The compiled part of SVMstruct, with a slack per example and with one for all.

With one per example constraints join their working sets, and the dual is optimised over all of them. With one slack for
all examples (Joachims, Finley and Yu 2009) there is the problem that the dual state then solves, and the constraints
that the oracle last found for each example, whose sums are its constraints.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.string cimport memcpy

import numpy as np

from structsvm._arrays cimport array_data, ndarray
from structsvm._problem cimport Cut, Problem
from structsvm._random cimport random_shuffle
from structsvm._typedefs cimport float64_t, int32_t, int64_t
from structsvm.dual._dual cimport STAGES, DualState


cdef int64_t LOOK = 32      # examples between two looks at signals

cdef enum:
    AHEAD = 2       # examples between two stages of fetching what a step looks at


cdef class WorkingSets:
    """Algorithm 1 of SVMstruct on a dual state: constraints join, and the dual is optimised over all of them."""

    cdef DualState state
    cdef float64_t[::1] last       # (n,) what each example was seen to add to the gap over the working sets
    cdef int32_t[::1] rest      # (n,) sweeps that an example was last left out for
    cdef int32_t[::1] due       # (n,) sweeps that it still is
    cdef int64_t[::1] order     # examples, in the order in which they are visited

    def __init__(self, DualState state not None):
        n = state.problem.n_samples
        self.state = state
        self.last = np.zeros(n)
        self.rest = np.zeros(n, dtype=np.int32)
        self.due = np.zeros(n, dtype=np.int32)
        self.order = np.arange(n, dtype=np.int64)

    def join(self, Py_ssize_t start, const float64_t[:, ::1] terms, const int64_t[::1] bounds,
             const int32_t[::1] words, double epsilon):
        """Offer the constraints of `collect` (lines 7 to 9; each is optimised over its own working set at once).

        One joins if it is violated by more than the example's slack and epsilon. Returns how many did.
        """
        cdef Py_ssize_t p, k, i, n = 0, joined = 0
        cdef Cut cut
        cdef float64_t[::1] aligned     # words may begin with float64 numbers
        cut.alpha = cut.drift = 0.0
        cut.idle = 0
        aligned = np.empty(int(np.diff(bounds).max(initial=0)) // 2 + 1)
        cut.words = <int32_t*>&aligned[0]
        with nogil:
            for k in range(terms.shape[0]):
                if bounds[k + 1] > bounds[k]:
                    self.order[n] = start + k
                    n += 1
            for p in range(n):
                self.fetch(p, n)
                i = self.order[p]
                k = i - start
                cut.b = terms[k, 0]
                cut.scale = terms[k, 1]
                cut.n_words = bounds[k + 1] - bounds[k]
                memcpy(cut.words, &words[bounds[k]], cut.n_words * sizeof(int32_t))
                if not self.state.problem.c_valid(i, &cut):
                    with gil:
                        raise ValueError(f"a constraint of example {i} came back damaged")
                joined += self.state.offer(i, &cut, epsilon)
                if p % LOOK == 0:
                    with gil:
                        PyErr_CheckSignals()
        return joined

    def optimize(self, double enough, Py_ssize_t max_sweeps):
        """Line 10: SMO over all working sets, until the gap of the dual restricted to them is `enough`.

        Sweeps in random order (in a fixed one, SMO is several times slower). An example that adds little to the
        gap is left out for 1, 3, then 7 sweeps (shrinking); a sweep over all of them has the last word.

        Returns the restricted gap, as it was seen in the last sweep.
        """
        cdef double gap = enough
        cdef bint whole = True
        cdef Py_ssize_t _
        self.rest[:] = 0
        for _ in range(max_sweeps):
            gap = self.sweep(enough, whole)
            if gap > enough:
                whole = False
            elif whole:
                break
            else:
                whole = True
        return gap

    cdef double sweep(self, double enough, bint whole) except? -1:
        cdef DualState state = self.state
        cdef Py_ssize_t p, i, n = 0
        cdef double gap, total = 0.0, little = 0.1 * enough / max(state.n_patterns, 1)
        for p in range(self.order.shape[0]):
            self.order[p] = p
        random_shuffle(&state.random, &self.order[0], self.order.shape[0])
        with nogil:
            for p in range(self.order.shape[0]):
                i = self.order[p]
                if state.sets[i].n == 0:
                    continue
                if self.due[i] > 0 and not whole:
                    self.due[i] -= 1
                    total += self.last[i]
                else:
                    self.order[n] = i
                    n += 1
            for p in range(n):
                self.fetch(p, n)
                i = self.order[p]
                state.slopes(i, False)
                gap = state.restricted_gap(i)
                self.last[i] = gap
                total += gap
                if gap > little:
                    self.rest[i] = 0
                    state.solve_set(i)
                else:
                    self.rest[i] = min(2 * self.rest[i] + 1, 7)
                self.due[i] = self.rest[i]
                if p % LOOK == 0:
                    with gil:
                        PyErr_CheckSignals()
        return total

    cdef void fetch(self, Py_ssize_t p, Py_ssize_t n) noexcept nogil:
        """Fetch ahead for those that come after the p-th of the n examples that are visited in `order`."""
        cdef int stage
        cdef Py_ssize_t later
        for stage in range(STAGES):
            later = p + (STAGES - stage) * AHEAD
            if later < n:
                self.state.fetch(self.order[later], stage)


cdef class OneSlackProblem(Problem):
    """All examples of a problem as one.

    With a linear penalty, sum_i C_i xi_i is a single slack, and its constraints are

        <w, sum_i C_i psi_i> >= sum_i C_i b_i - xi,

    one for each choice of a constraint (or none) of every example. The dual state of one example with C = 1 solves
    it; a cut is such a sum, as a sparse vector.
    """

    cdef float64_t[::1] dense       # (n_features,) zero between two calls

    def __init__(self, Problem problem not None):
        super().__init__(1, problem.n_features, weight_dtype=problem.weight_dtype, inference=problem.inference,
                         nonnegative=problem.nonnegative, **problem.formulation)
        self.dense = np.zeros(problem.n_features)

    cdef int c_inners(self, Py_ssize_t i, const Cut* cuts, Py_ssize_t n, const Cut* cut, double* out) except -1 nogil:
        """Through a dense vector: the sums are long, and merging them takes several times as long."""
        cdef Py_ssize_t k, e, size
        cdef const float64_t* values
        cdef const int32_t* indices
        self.c_accumulate(i, cut, 1.0, &self.dense[0])
        for k in range(n):
            size = cuts[k].n_words // 3
            values = <const float64_t*>cuts[k].words
            indices = cuts[k].words + 2 * size
            out[k] = 0.0
            for e in range(size):
                out[k] += values[e] * self.dense[indices[e]]
            out[k] *= cuts[k].scale
        size = cut.n_words // 3
        indices = cut.words + 2 * size
        for e in range(size):
            self.dense[indices[e]] = 0.0
        return 0


cdef class ConstraintCache:
    """The constraints of the last rounds; the sum of each example's most violated one is a constraint.

    With C_i > 0 and any choice of a constraint k(i), or none, of every example,

        <w, sum_i C_i psi_{i k(i)}> >= sum_i C_i b_{i k(i)} - xi,    xi = sum_i C_i xi_i.

    Right after the oracle's answers at w have been put in, their own sum is the most violated of these at w;
    later, at other weights, the best choice is a constraint that costs no call of the oracle.

    Parameters
    ----------
    problem : Problem
    C : ndarray of shape (n_samples,), float64
    n_rounds : int
        Rounds that are kept.
    """

    cdef Problem problem
    cdef const double[::1] C
    cdef Py_ssize_t n_rounds
    cdef float64_t[:, :, ::1] terms     # (rounds, n, 2): right-hand side and scale
    cdef int64_t[:, ::1] bounds         # (rounds, n + 1): where each constraint's words begin; none: no constraint
    cdef int32_t[::1] words
    cdef float64_t[::1] total           # (n_features,) zero between two calls

    def __init__(self, Problem problem not None, const double[::1] C, Py_ssize_t n_rounds):
        self.problem, self.C, self.n_rounds = problem, C, n_rounds
        self.total = np.zeros(problem.n_features)
        self.clear()

    def clear(self):
        n = self.problem.n_samples
        self.terms = np.empty((0, n, 2))
        self.bounds = np.empty((0, n + 1), dtype=np.int64)
        self.words = np.empty(0, dtype=np.int32)

    def put(self, answers):
        """Take the outcomes of `structsvm.dual._rounds.collect` over all examples in order; the oldest round goes."""
        drop = 1 if self.terms.shape[0] == self.n_rounds else 0
        begin = self.bounds[1, 0] if drop and self.n_rounds > 1 else self.words.shape[0] if drop else 0
        old = np.asarray(self.bounds)[drop:] - begin
        sizes = np.concatenate([np.diff(bounds) for _, _, bounds, _ in answers])
        new = (self.words.shape[0] - begin) + np.concatenate([[0], np.cumsum(sizes)])
        self.words = np.concatenate([np.asarray(self.words)[begin:], *(words for *_, words in answers)])
        self.bounds = np.concatenate([old, new[np.newaxis].astype(np.int64)])
        terms = np.concatenate([terms for _, terms, _, _ in answers])
        self.terms = np.concatenate([np.asarray(self.terms)[drop:], terms[np.newaxis]])

    def most_violated(self, weights):
        """The sum of each example's most violated constraint in the cache, as one answer of `collect`.

        Returns
        -------
        terms : ndarray of shape (1, 2), float64
        bounds : ndarray of shape (2,), int64
        words : ndarray of int32
            psi in the base class's encoding, see `Problem`.
        """
        cdef ndarray array = self.problem._check_weights(weights)
        cdef const void* w = array_data(array)
        cdef Py_ssize_t i, r, best
        cdef double b = 0.0, violation, highest
        cdef Cut cut
        cdef int64_t longest = np.diff(self.bounds, axis=1).max(initial=0)
        cdef float64_t[::1] aligned = np.empty(longest // 2 + 1)    # words may begin with float64 numbers
        self.problem.lend(array)
        cut.alpha = cut.drift = 0.0
        cut.idle = 0
        cut.words = <int32_t*>&aligned[0]
        try:
            with nogil:
                for i in range(self.problem.n_samples):
                    if i % LOOK == 0:
                        with gil:
                            PyErr_CheckSignals()
                    if self.C[i] == 0.0:
                        continue
                    best, highest = -1, 0.0
                    for r in range(self.terms.shape[0]):
                        if self.bounds[r, i + 1] > self.bounds[r, i]:
                            self.load(r, i, &cut)
                            self.problem.c_dots(i, &cut, 1, w, False, &violation)
                            violation = cut.b - violation
                            if violation > highest:
                                best, highest = r, violation
                    if best >= 0:
                        self.load(best, i, &cut)
                        self.problem.c_accumulate(i, &cut, self.C[i], &self.total[0])
                        b += self.C[i] * cut.b
            return np.array([[b, 1.0]]), *self.encoded()
        except BaseException:
            self.total[:] = 0.0
            raise

    cdef void load(self, Py_ssize_t r, Py_ssize_t i, Cut* cut) noexcept nogil:
        cut.b = self.terms[r, i, 0]
        cut.scale = self.terms[r, i, 1]
        cut.n_words = self.bounds[r, i + 1] - self.bounds[r, i]
        memcpy(cut.words, &self.words[self.bounds[r, i]], cut.n_words * sizeof(int32_t))

    cdef encoded(self):
        """Bounds and words of `total`, which is zero again afterwards."""
        cdef Py_ssize_t f, e = 0, size = 0, n = self.total.shape[0]
        cdef int32_t[::1] words
        cdef int32_t* out
        for f in range(n):
            size += self.total[f] != 0.0
        words = np.zeros(3 * max(size, 1), dtype=np.int32)      # nothing at all: an explicit zero
        out = &words[0]
        for f in range(n):
            if self.total[f] != 0.0:
                (<float64_t*>out)[e] = self.total[f]
                out[2 * size + e] = f
                self.total[f] = 0.0
                e += 1
        return np.array([0, words.shape[0]]), np.asarray(words)

    def get_state(self):
        """The cache as arrays."""
        return {"cache_terms": np.array(self.terms), "cache_bounds": np.array(self.bounds),
                "cache_words": np.array(self.words)}

    def set_state(self, arrays):
        """Restore the arrays returned by `get_state`. Raises ValueError if they belong to another problem."""
        cdef Py_ssize_t r, i, n = self.problem.n_samples
        cdef Cut cut
        terms, bounds, words = arrays["cache_terms"], arrays["cache_bounds"], arrays["cache_words"]
        if len(terms) > self.n_rounds:
            raise ValueError(f"array 'cache_terms' of the training state has {len(terms)} rounds, expected up to "
                             f"{self.n_rounds} rounds")
        if (np.diff(bounds.ravel(), prepend=0) < 0).any() or (bounds > len(words)).any():
            raise ValueError("array 'cache_bounds' of the training state does not fit 'cache_words'")
        cdef float64_t[::1] aligned = np.empty(int(np.diff(bounds, axis=1).max(initial=0)) // 2 + 1)
        before = self.get_state()
        self.terms, self.bounds, self.words = terms.copy(), bounds.copy(), words.copy()
        cut.words = <int32_t*>&aligned[0]
        for r in range(self.terms.shape[0]):
            for i in range(n):
                if self.bounds[r, i + 1] > self.bounds[r, i]:
                    self.load(r, i, &cut)
                    if not (self.problem.c_valid(i, &cut) and cut.b >= 0.0 and cut.scale > 0.0):
                        self.terms, self.bounds = before["cache_terms"], before["cache_bounds"]
                        self.words = before["cache_words"]
                        raise ValueError(f"array 'cache_words' of the training state: a constraint does not fit "
                                         f"example {i}")
