"""The compiled part of SVMstruct: constraints join their working sets, and the dual is optimised over all of them."""

from cpython.exc cimport PyErr_CheckSignals
from libc.string cimport memcpy

import numpy as np

from structsvm._problem cimport Cut
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
