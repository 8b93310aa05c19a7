"""The compiled loops: which step comes next.

A schedule walks over the examples in passes, each pass in a fresh random order, and can be left and
taken up again between any two examples. It never looks at a clock, except where a user asks for it.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.time cimport CLOCKS_PER_SEC, clock

import time

import numpy as np

cimport numpy as cnp

from structsvm._dual cimport DualState, WeightState
from structsvm._random cimport random_below, random_unit
from structsvm._typedefs cimport int64_t

cnp.import_array()

cdef Py_ssize_t BLOCK = 64      # examples between two looks at signals and at the time


cdef class Schedule:
    """Passes over the examples in random order; `visit` is what a subclass does with one example.

    Examples that belong together (the problem's ``groups``: the tokens of a sentence) stay together
    and in order; the groups are shuffled.
    """

    cdef WeightState state
    cdef int64_t[::1] order         # examples in the order of this pass
    cdef readonly Py_ssize_t next   # how many of them have been visited
    cdef int64_t[::1] groups
    cdef int64_t[::1] shuffled      # the groups' order; each pass shuffles the one before

    def __init__(self, WeightState state):
        n = state.problem.n_samples
        groups = state.problem.groups
        self.state = state
        self.groups = np.arange(n + 1, dtype=np.int64) if groups is None else groups
        self.shuffled = np.arange(self.groups.shape[0] - 1, dtype=np.int64)
        self.order = np.empty(n, dtype=np.int64)
        self.next = n

    cdef int visit(self, Py_ssize_t i) except -1 nogil:
        return 0

    cdef int after_pass(self) except -1:
        return 0

    def start_pass(self):
        """Shuffle; the pass begins with the next `run`."""
        cdef Py_ssize_t g, k, at = 0
        cdef int64_t i
        for g in range(self.shuffled.shape[0]):
            self.shuffled[g] = g
        for g in range(self.shuffled.shape[0] - 1, 0, -1):
            k = random_below(&self.state.random, g + 1)
            self.shuffled[g], self.shuffled[k] = self.shuffled[k], self.shuffled[g]
        for g in range(self.shuffled.shape[0]):
            for i in range(self.groups[self.shuffled[g]], self.groups[self.shuffled[g] + 1]):
                self.order[at] = i
                at += 1
        self.next = 0

    def run(self, double seconds):
        """Visit examples for about `seconds`; return whether the pass is complete.

        An exception (from a user's oracle, or Ctrl-C) leaves a whole state behind: the example at
        which it came counts as not visited.
        """
        cdef Py_ssize_t n = self.order.shape[0], stop
        deadline = time.monotonic() + seconds
        while self.next < n:
            stop = min(n, self.next + BLOCK)
            with nogil:
                while self.next < stop:
                    self.visit(self.order[self.next])
                    self.next += 1
            PyErr_CheckSignals()
            if self.next < n and time.monotonic() >= deadline:
                return False
        self.after_pass()
        return True

    @property
    def n_samples(self):
        return self.order.shape[0]


cdef class PerceptronSchedule(Schedule):
    """Algorithm 6 of the thesis."""

    cdef double step

    def __init__(self, WeightState state, double step=1.0):
        super().__init__(state)
        self.step = step

    cdef int visit(self, Py_ssize_t i) except -1 nogil:
        return self.state.perceptron_step(i, self.step)


cdef class FixedSchedule(Schedule):
    """Algorithm 21: ProcessNew, then n_reprocess times (1 ProcessOld + 10 Optimize)."""

    cdef DualState dual
    cdef int n_reprocess

    def __init__(self, DualState state, int n_reprocess):
        super().__init__(state)
        self.dual = state
        self.n_reprocess = n_reprocess

    cdef int visit(self, Py_ssize_t i) except -1 nogil:
        cdef int r, k
        self.dual.process_new(i)
        for r in range(self.n_reprocess):
            self.dual.process_old()
            for k in range(10):
                self.dual.optimize()
        return 0


cdef class AdaptiveSchedule(Schedule):
    """Algorithm 22: operations drawn with odds proportional to their recent gain per second.

    Ten Optimize count as one operation. Unless `use_clock`, a second is 1e9 units of the state's
    cost model, so that equal seeds give equal models.
    """

    cdef DualState dual
    cdef double floor
    cdef double rates[3]
    cdef bint use_clock

    def __init__(self, DualState state, *, double floor=0.05, bint use_clock=False):
        super().__init__(state)
        self.dual = state
        self.floor = floor
        self.use_clock = use_clock
        self.rates[0] = self.rates[1] = self.rates[2] = 1.0

    cdef double now(self) noexcept nogil:
        return clock() / <double>CLOCKS_PER_SEC if self.use_clock else 1e-9 * self.dual.cost

    cdef int visit(self, Py_ssize_t i) except -1 nogil:
        cdef int s = 0, k
        cdef double pick, dual, begin
        while True:
            pick = random_unit(&self.dual.random) * (self.rates[0] + self.rates[1] + self.rates[2])
            dual = self.dual.dual
            begin = self.now()
            if pick < self.rates[0]:
                s = 0
                self.dual.process_new(i)
            elif pick < self.rates[0] + self.rates[1]:
                s = 1
                self.dual.process_old()
            else:
                s = 2
                for k in range(10):
                    self.dual.optimize()
            self.rates[s] = max(
                0.05 * (self.dual.dual - dual) / max(self.now() - begin, 1e-9) + 0.95 * self.rates[s],
                self.floor)
            if s == 0:
                return 0


cdef class DecodeOnceSchedule(Schedule):
    """Decode an example once, solve its working set; then n_reprocess working sets of old examples.

    The old ones are taken in turn from the support patterns and solved without decoding.
    """

    cdef DualState dual
    cdef double n_reprocess
    cdef double due
    cdef Py_ssize_t turn

    def __init__(self, DualState state, double n_reprocess):
        super().__init__(state)
        self.dual = state
        self.n_reprocess = n_reprocess

    cdef int visit(self, Py_ssize_t i) except -1 nogil:
        self.dual.decode_once(i)
        self.due += self.n_reprocess
        while self.due >= 1.0:
            self.due -= 1.0
            if self.dual.n_patterns > 0:
                self.dual.optimize_set(self.dual.support[random_below(&self.dual.random, self.dual.n_patterns)])
        return 0
