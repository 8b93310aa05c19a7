"""The compiled loops: which step comes next.

A schedule walks over the examples in passes, each pass in a fresh random order, and can be left and
taken up again between any two examples. What it computes never depends on a clock.
"""

import time
from itertools import pairwise

import numpy as np

from structsvm._random cimport random_shuffle, random_unit
from structsvm._typedefs cimport int64_t
from structsvm.dual._state cimport State
from structsvm.execution._stop cimport look

from structsvm.dual.itinerary import drawn_by_gap, itinerary

# Work between two looks at signals and at the time, in seconds.
cdef double LOOK_SECONDS = 0.01
cdef Py_ssize_t LONGEST_BLOCK = 64      # pieces of it: the first long one may follow many short ones


# Least share of the odds for each operation of the adaptive schedule.
cdef double ETA = 1e-3


# The greatest factor of `n_old` of SolveSchedule.
cdef Py_ssize_t LARGEST_FACTOR = 50


cdef class Schedule:
    """Passes over the examples in random order; `visit` is what a subclass does with one example.

    A visit may take many calls, each a bounded piece of work: `visit` returns 1 to be called again with
    the same example, 0 when done with it.

    Examples that belong together (the state's ``groups``: the tokens of a sentence) stay together
    and in order; the groups are shuffled. Where there are ``sections``, these are visited one after the other, and
    shuffled each by itself.

    Parameters
    ----------
    state : State
    steps : iterable of str
        Names of the steps of the state that a subclass calls. Raises TypeError if the state lacks one.
    """

    def __init__(self, State state not None, steps=()):
        missing = sorted(set(steps) - state.steps)
        if missing:
            raise TypeError(f"{type(self).__name__} needs a state with {', '.join(missing)}; "
                            f"{type(state).__name__} has {', '.join(sorted(state.steps)) or 'no steps'}")
        self.state = state
        self.groups, self.mine, self.sections, self.bounds, self.ends, n = itinerary(
            state.n_samples, state.groups, state.visited, state.sections)
        self.order = np.empty(n, dtype=np.int64)
        self.next = n
        self.block = 1

    cdef int visit(self, Py_ssize_t i) except -1 nogil:
        return 0

    def get_state(self):
        """Return what the schedule carries from pass to pass, as a float64 array."""
        return np.empty(0)

    def set_state(self, numbers):
        """Restore the array returned by `get_state`. Raises ValueError if it belongs to another schedule."""
        self._carried(numbers, 0)

    def _carried(self, numbers, size):
        if len(numbers) != size:
            raise ValueError(f"the schedule of the training state must be {size} numbers, as {type(self).__name__} "
                             f"writes them, got {len(numbers)}")
        return numbers

    def start_pass(self, Py_ssize_t n_before=0):
        """Shuffle; the pass begins with the next `run`. `n_before` passes have been done."""
        cdef Py_ssize_t g, s, at = 0
        cdef int64_t i
        cdef int64_t[::1] shuffled = np.array(self.mine)    # the groups' order in this pass
        for s in range(self.bounds.shape[0] - 1):
            random_shuffle(&self.state.random, &shuffled[self.bounds[s]], self.bounds[s + 1] - self.bounds[s])
        for g in range(shuffled.shape[0]):
            for i in range(self.groups[shuffled[g]], self.groups[shuffled[g] + 1]):
                self.order[at] = i
                at += 1
        self.next = self.until = 0
        self.section = 0
        if at > 0:
            self.state.expect(&self.order[0], at)

    def run(self, double seconds):
        """Visit examples for about `seconds`; return whether the pass is complete.

        An exception (from a user's oracle, or Ctrl-C) leaves a whole state behind: the example at
        which it came counts as not visited.
        """
        cdef Py_ssize_t n = self.order.shape[0], _
        cdef double now = time.monotonic(), deadline = now + seconds, before, share
        while self.next < n:
            while self.next == self.until:
                self.section += 1
                self.until = self.ends[self.section]
                if self.state.sections is not None:
                    self.state.enter_section(self.sections[self.section - 1], self.sections[self.section])
            with nogil:
                for _ in range(self.block):
                    if self.visit(self.order[self.next]) == 0:
                        self.next += 1
                        if self.next == self.until:
                            break
            look()
            before = now
            now = time.monotonic()
            # The next block should take LOOK_SECONDS; its size has no influence on what is computed.
            share = LOOK_SECONDS / max(now - before, 1e-9)
            self.block = <Py_ssize_t>min(max(1.0, self.block * share), 2.0 * self.block, <double>LONGEST_BLOCK)
            if self.next < n and now >= deadline:
                return False
        return True

    @property
    def n_samples(self):
        return self.order.shape[0]


cdef class SubgradientSchedule(Schedule):
    """One step per example against a subgradient of its loss: stochastic gradient descent, perceptrons."""

    def __init__(self, State state):
        super().__init__(state, {"subgradient_step"})

    cdef int visit(self, Py_ssize_t i) except -1 nogil:
        return self.state.subgradient_step(i)


cdef class FixedSchedule(Schedule):
    """Algorithm 21: ProcessNew, then `n_old` ProcessOld and `n_optimize` Optimize, one by ten as long as they last.

    Both are averages per example; fractions are kept until they make a whole step.
    """

    cdef double n_old, n_optimize
    cdef double old_due, optimize_due
    cdef bint begun

    def __init__(self, State state, double n_old, double n_optimize):
        steps = {"process_new": 1.0, "process_old": n_old, "optimize": n_optimize}
        super().__init__(state, [name for name, n in steps.items() if n > 0.0])
        self.n_old, self.n_optimize = n_old, n_optimize

    def get_state(self):
        return np.array([self.old_due, self.optimize_due])

    def set_state(self, numbers):
        old, optimize = self._carried(numbers, 2)
        if old >= 1.0 or optimize >= 1.0:  # no visit leaves a whole step
            raise ValueError(f"the schedule of the training state has {max(old, optimize):.3g} steps still to do")
        self.old_due, self.optimize_due = old, optimize

    cdef int visit(self, Py_ssize_t i) except -1 nogil:
        cdef int n
        if not self.begun:
            self.state.process_new(i)
            self.begun = True
            self.old_due += self.n_old
            self.optimize_due += self.n_optimize
        else:
            if self.old_due >= 1.0:
                self.state.process_old()
                self.old_due -= 1.0
            if self.optimize_due >= 1.0:
                n = <int>min(10.0, self.optimize_due)
                self.state.optimize(n)
                self.optimize_due -= n
        if self.old_due >= 1.0 or self.optimize_due >= 1.0:
            return 1
        self.begun = False
        return 0


cdef class AdaptiveSchedule(Schedule):
    """Algorithm 22: operations drawn with odds proportional to their recent gain per second.

    No operation's odds fall below ETA of the whole: theorem 9 asks for such a bound, and without it a pass
    over a dual without a maximum (a hard margin that cannot be had) would never end.

    Ten Optimize count as one operation. A second is 1e9 units of the state's cost model, so that equal seeds give
    equal models.
    """

    cdef double floor
    cdef double rates[3]

    def __init__(self, State state, *, double floor=0.05):
        super().__init__(state, {"process_new", "process_old", "optimize"})
        self.floor = floor
        self.rates[0] = self.rates[1] = self.rates[2] = 1.0

    def get_state(self):
        return np.array([self.rates[0], self.rates[1], self.rates[2]])

    def set_state(self, numbers):
        self.rates[0], self.rates[1], self.rates[2] = self._carried(numbers, 3)

    cdef int visit(self, Py_ssize_t i) except -1 nogil:
        """One operation; the visit ends with the ProcessNew, or with another in place of one that finds i not new."""
        cdef int s = 0
        cdef double least = ETA * (self.rates[0] + self.rates[1] + self.rates[2])
        cdef double new = max(self.rates[0], least), old = max(self.rates[1], least), rest = max(self.rates[2], least)
        cdef double pick = random_unit(&self.state.random) * (new + old + rest)
        cdef double dual = self.state.dual, cost = self.state.cost
        cdef bint ends = pick < new
        if ends:
            self.state.process_new(i)
            if self.state.cost == cost:
                pick = new + random_unit(&self.state.random) * (old + rest)
        if pick >= new + old:
            s = 2
            self.state.optimize(10)
        elif pick >= new:
            s = 1
            self.state.process_old()
        self.rates[s] = max(
            0.05 * (self.state.dual - dual) / max(1e-9 * self.state.cost - 1e-9 * cost, 1e-9) + 0.95 * self.rates[s],
            self.floor)
        return 0 if ends else 1


cdef class SolveSchedule(Schedule):
    """Maximise the dual over each example's coefficients, decoding once; then over those of `n_old` old examples.

    The old ones are support patterns chosen at random, and solved without decoding. `n_old` is an average per example.
    Late passes decode little that is new, and what is left of the gap lies between the working sets: with
    `usual_passes` > 0, there are `n_old` more of them after every so many passes.
    """

    cdef double n_old, n_now
    cdef Py_ssize_t usual_passes
    cdef double due         # old examples still to be solved; a fraction is left to the next visit
    cdef bint decoded

    def __init__(self, State state, double n_old, *, Py_ssize_t usual_passes=0):
        super().__init__(state, {"solve_example", "solve_old"} if n_old > 0.0 else {"solve_example"})
        self.n_old = self.n_now = n_old
        self.usual_passes = usual_passes

    def start_pass(self, Py_ssize_t n_before=0):
        super().start_pass(n_before)
        self.plan(n_before)

    cdef void plan(self, Py_ssize_t n_before) noexcept nogil:
        """How many old examples a visit solves, after `n_before` passes."""
        if self.usual_passes > 0:
            self.n_now = self.n_old * min(1 + n_before // self.usual_passes, LARGEST_FACTOR)

    def get_state(self):
        return np.array([self.due])

    def set_state(self, numbers):
        due = self._carried(numbers, 1)[0]
        if due > self.n_old + 1.0:  # no visit leaves more
            raise ValueError(f"the schedule of the training state has {due:.3g} working sets still to solve")
        self.due = due

    cdef int visit(self, Py_ssize_t i) except -1 nogil:
        if not self.decoded:
            self.state.solve_example(i)
            self.decoded = True
            self.due += self.n_now
        else:
            self.state.solve_old()
            self.due -= 1.0
        if self.due >= 1.0:
            return 1
        self.decoded = False
        return 0


cdef class FrankWolfeSchedule(Schedule):
    """Block-coordinate Frank-Wolfe (Lacoste-Julien and others 2013, algorithm 4) on the dual.

    After the step to a decoded corner come up to `n_cached` steps to the best known one, without decoding, as long as
    they promise a good part of what the decoded one did (Osokin and others 2016, the cache).
    With `gap_sampling` a pass draws examples with odds proportional to their last known part of the gap (there,
    section 3.1); none falls below a tenth of the mean, because what is known grows stale.
    Steps towards one corner shrink all others alike, and zigzag between the best few. After `usual_passes` > 0 passes
    those of `SolveSchedule`, with two old examples, take their place: they are corrective, over all known corners.
    """

    cdef int n_cached
    cdef bint gap_sampling, late
    cdef SolveSchedule corrective   # for late passes; None: there are none
    cdef double[::1] gaps       # each example's part of the gap, as last seen

    def __init__(self, State state, *, int n_cached=0, bint gap_sampling=False, Py_ssize_t usual_passes=0):
        super().__init__(state, {"corner_step", "known_corner_step"} if n_cached > 0 else {"corner_step"})
        self.n_cached = n_cached
        self.gap_sampling = gap_sampling
        self.corrective = SolveSchedule(state, 2, usual_passes=usual_passes) if usual_passes > 0 else None
        self.gaps = np.zeros(state.n_samples)

    def get_state(self):
        return np.array(self.gaps)

    def set_state(self, numbers):
        self.gaps = self._carried(numbers, self.gaps.shape[0]).copy()

    def start_pass(self, Py_ssize_t n_before=0):
        super().start_pass(n_before)
        self.late = self.corrective is not None and n_before >= self.corrective.usual_passes
        if self.late:
            self.corrective.plan(n_before)
        if self.late or not self.gap_sampling:
            return
        spans = [np.asarray(self.order)[a:b] for a, b in pairwise(self.ends) if a < b]
        self.order = np.concatenate([drawn_by_gap(of_one, np.asarray(self.gaps), self._units) for of_one in spans])

    def _units(self, Py_ssize_t n):
        cdef Py_ssize_t k
        cdef double[::1] units = np.empty(n)
        for k in range(n):
            units[k] = random_unit(&self.state.random)
        return np.asarray(units)

    cdef int visit(self, Py_ssize_t i) except -1 nogil:
        cdef double gap
        cdef int _
        if self.late:
            return self.corrective.visit(i)
        gap = self.state.corner_step(i)
        self.gaps[i] = gap
        for _ in range(self.n_cached):
            if not self.state.known_corner_step(i, 0.1 * gap):
                break
        return 0
