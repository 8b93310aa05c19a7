"""The explicit-w dual state, and the steps of every schedule.

The dual point is a sparse alpha >= 0 over cuts, grouped by example; w = sum alpha psi is kept up to
date. For example i with box B_i and ridge r_i (linear penalty: C_i and 0; quadratic: infinity and
1 / C_i; hard margin: infinity and 0) the dual objective is

    sum_c alpha_c b_c - 1/2 |sum_c alpha_c psi_c|^2 - 1/2 sum_i r_i t_i^2,   t_i = sum_{c of i} alpha_c <= B_i.

Every step moves mass between two cuts of one example, or between a cut and the zero constraint (the
true output, written ORIGIN below, whose coefficient beta = t_i may grow up to B_i). The slope of cut c
is d_c = b_c - <w, psi_c>, that of ORIGIN r_i t_i; moving lambda from o to c gains

    lambda (d_c - d_o) - lambda^2 / 2 |psi_c - psi_o|^2   (+ r_i in the curvature if ORIGIN takes part).

This is SmoStep (thesis, algorithm 17) in the coordinates of DESIGN section 1. Where weights must be >= 0, w = sum alpha
psi + mu, and each step on alpha is followed by one on mu: see `structsvm.dual._weights`.
"""

from libc.math cimport INFINITY, isfinite
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy

import numpy as np

from structsvm._arrays cimport array_data, ndarray
from structsvm._prefetch cimport in_large_pages, prefetch
from structsvm._problem cimport PENALTY_HARD, PENALTY_LINEAR, PENALTY_QUADRATIC, Cut, Problem, Target
from structsvm._random cimport Random, random_below
from structsvm._typedefs cimport float64_t, int32_t, int64_t, uint64_t
from structsvm.dual._weights cimport (
    AVERAGE_NONE, WeightState, add_products, overflow, sum_of_lanes, sum_of_products,
)
from structsvm.execution._stop cimport look, poll

from structsvm.dual._rounds import violations
from structsvm.dual._weights import copied, half_norm, put, zeros

cdef Py_ssize_t WINDOW = 1 << 22    # weights that `settle` sums at a time
cdef Py_ssize_t ORIGIN = -1
cdef Py_ssize_t NOTHING = -2

cdef enum:
    MOST_PICKS = 10     # old examples that `optimize` draws at once

# Right-hand sides and coefficients of constraints: from there on weights in float32 would overflow.
cdef double LARGEST = 1e30

# Inner products of constraints that a training state may ask for, beside a thousand for each of them.
cdef int64_t MANY_PRODUCTS = 10**7


cdef inline bint same(const Cut* a, const Cut* b) noexcept nogil:
    return (a.n_words == b.n_words and a.b == b.b and a.scale == b.scale
            and memcmp(a.words, b.words, a.n_words * sizeof(int32_t)) == 0)


cdef int store_words(Cut* cut, const int32_t* words) except -1 nogil:
    """Copy the words of a constraint, a few into the cut itself."""
    cut.words = &cut.own[0] if cut.n_words <= 2 else <int32_t*>malloc(cut.n_words * sizeof(int32_t))
    if cut.words == NULL:
        no_memory()
    memcpy(cut.words, words, cut.n_words * sizeof(int32_t))
    return 0


cdef inline void free_words(Cut* cut) noexcept nogil:
    if cut.n_words > 2:
        free(cut.words)


cdef inline void moved(Cut* cut) noexcept nogil:
    """A cut has been copied to where it is now."""
    if cut.n_words <= 2:
        cut.words = &cut.own[0]


cdef int no_memory() except -1 nogil:
    with gil:
        raise MemoryError("no memory for another constraint")


cdef int unbounded(Py_ssize_t i) except -1 nogil:
    with gil:
        raise ValueError(
            f"the dual is unbounded: example {i} has a constraint with a zero joint feature, "
            "so no weights can satisfy it; use penalty='linear' or 'quadratic'")


cdef class DualState(WeightState):
    """A feasible point of the dual, its weights, and the steps on it.

    Parameters
    ----------
    problem : Problem
        The bound problem.
    C : ndarray of shape (n_samples,), float64
        Weight of each example's slack, finite and >= 0. An example of weight 0 takes no part.
    seed, averaging : see `WeightState`.
    base : ndarray of shape (n_features,), float64, optional
        Weights w0 to start from. The objective is then 1/2 |w - w0|^2 + sum_i C_i xi_i.
    on : ndarray of shape (n_features,), problem.weight_dtype, optional
        Weights that belong to others, too: the state steps on these, whatever its alphas, until `settle`.
    """

    steps = frozenset({"process_new", "process_old", "optimize", "solve_example", "solve_old", "corner_step",
                       "known_corner_step"})
    has_multipliers = True

    def __cinit__(self, Problem problem not None, *args, **kwargs):
        self.sets = <WorkingSet*>calloc(max(problem.n_samples, 1), sizeof(WorkingSet))
        if self.sets == NULL:
            raise MemoryError()
        in_large_pages(self.sets, problem.n_samples * sizeof(WorkingSet))
        self.n_sets = problem.n_samples

    def __dealloc__(self):
        # The garbage collector may have taken the problem away already.
        self.clear()
        free(self.sets)
        free(self.slope)
        free(<void*>self.completion.words)

    def __init__(self, Problem problem not None, const float64_t[::1] C, *, uint64_t seed=0, averaging=None, base=None,
                 int64_t patience=0, on=None):
        super().__init__(problem, seed=seed, averaging=averaging, base=base, on=on)
        cdef Py_ssize_t i, n = problem.n_samples
        self.patience = patience
        weight = np.array(C)
        if n != self.n_sets or C.shape[0] != n:
            raise ValueError(f"C has {C.shape[0]} entries for {n} examples")
        if not (np.isfinite(weight).all() and (weight >= 0.0).all()):
            raise ValueError("C must be finite and not negative")
        self.base = None if base is None else np.array(base, dtype=np.float64)
        self.weight = weight
        for i in range(n):
            self.set_bound(i)
        self.support = np.empty(n, dtype=np.int64)
        self.position = np.full(n, -1, dtype=np.int64)
        self.recompleted = np.empty(0, dtype=np.uint8)
        # Below this slope the weights' own rounding decides: leave the direction alone.
        self.tau = 1e-6 if problem.weight_dtype == np.float32 else 1e-12

    @property
    def kind(self):
        return "one_slack" if self.patience > 0 else "dual"

    # ---- the steps of the schedules -------------------------------------------------------------

    cdef int process_new(self, Py_ssize_t i) except -1 nogil:
        """Algorithm 18: a fresh example; mass from the true output to the most violating one."""
        if self.sets[i].n > 0:
            return 0
        return self.process(i)

    cdef int process_old(self) except -1 nogil:
        """Algorithm 19: a random support pattern; the steepest direction over all its outputs."""
        if self.n_near == 0:
            return 0
        return self.process(self.support[random_below(&self.random, self.n_near)])

    cdef int optimize(self, int n) except -1 nogil:
        """Algorithm 20, n times: a random support pattern; the steepest direction inside its working set.

        Up to MOST_PICKS patterns are drawn at once, so that their working sets, which lie anywhere in memory, are
        fetched while others are worked on. One that has lost its last cut meanwhile is passed over.
        """
        cdef Py_ssize_t picks[MOST_PICKS]
        cdef Py_ssize_t i, to, origin
        cdef int k, m, stage
        cdef double high, low
        while n > 0 and self.n_near > 0:
            m = min(n, MOST_PICKS)
            n -= m
            for k in range(m):
                picks[k] = self.support[random_below(&self.random, self.n_near)]
            for stage in range(STAGES):
                for k in range(m):
                    self.fetch(picks[k], stage)
            for k in range(m):
                i = picks[k]
                self.slopes(i, False)
                to = self.highest(i, &high)
                origin = self.lowest(i, &low)
                if to != origin and high - low > self.tau:
                    self.pair_step(i, to, origin, high - low)
        return 0

    cdef int solve_old(self) except -1 nogil:
        """A random support pattern; all useful pair steps of its working set, without decoding.

        What the next ones look at is fetched meanwhile, another stage of each.
        """
        cdef Py_ssize_t i
        cdef Random random
        cdef int stage
        if self.n_near == 0:
            return 0
        i = self.support[random_below(&self.random, self.n_near)]
        random = self.random
        for stage in range(STAGES - 1, -1, -1):
            self.fetch(self.support[random_below(&random, self.n_near)], stage)
        return self.optimize_set(i)

    cdef int optimize_set(self, Py_ssize_t i) except -1 nogil:
        """All useful pair steps of example i's working set, without decoding."""
        if self.sets[i].n == 0:
            return 0
        self.slopes(i, False)
        return self.solve_set(i)

    cdef int solve_example(self, Py_ssize_t i) except -1 nogil:
        """One loss-augmented decode; then SMO over the working set with its scores."""
        cdef Cut cut
        cdef double violation, high
        self.decode(i, &cut, &violation)
        self.slopes(i, True)
        self.highest(i, &high)
        if cut.n_words > 0 and violation - high > self.tau and self.find(i, &cut) == NOTHING:
            self.insert(i, &cut)
            self.slope[self.sets[i].n - 1] = violation
        self.solve_set(i)
        return 0

    cdef void set_bound(self, Py_ssize_t i) noexcept nogil:
        """Set the bound of the working set of example i from its weight."""
        cdef double C = self.weight[i]
        if C > 0.0 and self.problem.penalty == PENALTY_QUADRATIC:
            C = -1.0 / C
        elif C > 0.0 and self.problem.penalty == PENALTY_HARD:
            C = INFINITY
        self.sets[i].bound = C

    cdef void fetch_old(self, int stage, int n) noexcept nogil:
        """Fetch into the caches what the steps on the next n old examples look at, unless the number of patterns
        changes."""
        cdef Random random = self.random
        cdef int _
        if self.n_near > 0:
            for _ in range(n):
                self.fetch(self.support[random_below(&random, self.n_near)], stage)

    cdef void fetch(self, Py_ssize_t i, int stage) noexcept nogil:
        """Fetch what a step on example i looks at, in STAGES stages: each finds the addresses that the next needs.

        The last three fetch what adds its cuts to the weights.
        """
        cdef WorkingSet* s = &self.sets[i]
        cdef Py_ssize_t k
        if stage == 0:
            prefetch(s)
            self.problem.c_prefetch(i, 0)
        elif stage == 1:
            prefetch(s.cuts)
            prefetch(&s.cuts[1])
            prefetch(gram_of(s))
            self.problem.c_prefetch(i, 1)
        elif stage == 2:
            for k in range(s.n):
                prefetch(s.cuts[k].words)
        else:
            for k in range(s.n):
                self.problem.c_prefetch_add(i, &s.cuts[k], self.w, stage - 3)

    cdef double corner_step(self, Py_ssize_t i) except -1 nogil:
        """Frank-Wolfe: decode, and move example i's alpha towards the corner of its simplex where the dual rises most.

        Returns what the example had added to the duality gap.
        """
        cdef Cut cut
        cdef Py_ssize_t corner
        cdef double violation, high, gap
        self.decode(i, &cut, &violation)
        if box_of(&self.sets[i]) == 0.0:
            return 0.0
        self.slopes(i, True)
        corner = self.highest(i, &high)
        if cut.n_words > 0 and violation - high > self.tau and self.find(i, &cut) == NOTHING:
            corner = self.insert(i, &cut)
            self.slope[corner] = violation
        gap = max(self.restricted_gap(i), 0.0)
        self.step_towards(i, corner, gap)
        return gap

    cdef bint known_corner_step(self, Py_ssize_t i, double enough) except -1 nogil:
        """The same over the cuts of the working set, without decoding. Returns False, and does nothing, if the example
        adds no more than `enough` to the gap."""
        cdef Py_ssize_t corner
        cdef double high, gap
        if self.sets[i].n == 0:
            return False
        self.slopes(i, False)
        corner = self.highest(i, &high)
        gap = self.restricted_gap(i)
        if gap <= enough or gap <= self.tau * box_of(&self.sets[i]):
            return False
        self.step_towards(i, corner, gap)
        return True

    cdef int process(self, Py_ssize_t i) except -1 nogil:
        cdef Cut cut
        cdef Py_ssize_t to, origin
        cdef double violation, high, low
        # One ProcessOld and a batch of Optimize come next.
        self.fetch_old(0, 1 + MOST_PICKS)
        self.decode(i, &cut, &violation)
        self.fetch_old(1, 1 + MOST_PICKS)
        self.slopes(i, True)
        self.fetch_old(2, 1 + MOST_PICKS)
        origin = self.lowest(i, &low)
        to = self.highest(i, &high)
        if cut.n_words > 0 and violation - high > self.tau and self.find(i, &cut) == NOTHING:
            if violation - low <= self.tau:
                return 0
            to = self.insert(i, &cut)
            high = violation
        if to == origin or high - low <= self.tau:
            return 0
        return self.pair_step(i, to, origin, high - low)

    cdef int decode(self, Py_ssize_t i, Cut* cut, double* violation) except -1 nogil:
        """Visit example i: its most violated constraint, and by how much."""
        if self.recompleted.shape[0] > 0:
            self.complete(i)
        self.n_argmax += 1
        self.problem.c_separate(i, self.w, cut, violation)
        if violation[0] != violation[0]:
            return overflow(self.problem.first + i)
        self.n_visits += 1
        self.cost += self.problem.c_cost(i)
        return 0

    # ---- completions in the step ------------------------------------------------------------------

    def complete_in_steps(self, bint on):
        """Whether from now on each decode completes its example under the current weights first; see `complete`."""
        groups = np.arange(self.n_samples + 1) if self.groups is None else self.groups
        ends = np.full(self.n_samples, -1, dtype=np.int64)
        ends[groups[:len(groups) - 1]] = groups[1:]
        self.group_end, self.recompleted = ends, np.zeros(self.n_samples if on else 0, dtype=np.uint8)

    @property
    def changed(self):
        """Bool array (n_samples,): the examples whose true output a step has changed; empty if steps complete none."""
        return np.asarray(self.recompleted).view(bool)

    cdef int complete(self, Py_ssize_t i) except -1 nogil:
        """Make the best output of example i that agrees with what is known its true one.

        A constraint is Psi(x_i, c) - Psi(x_i, y). Where c changes, those of the example, and of the others of its
        group, are none of the problem any more: their alphas go back to 0, by which the dual falls.
        """
        cdef Target target
        cdef void* block
        cdef Py_ssize_t j
        if self.group_end[i] < 0 or box_of(&self.sets[i]) == 0.0:
            return 0
        self.problem.c_complete(i, self.w, &target)
        if target.n_words > self.completion_capacity:
            block = realloc(<void*>self.completion.words, 2 * target.n_words * sizeof(int32_t))
            if block == NULL:
                no_memory()
            self.completion.words = <const int32_t*>block
            self.completion_capacity = 2 * target.n_words
        self.completion.n_words = target.n_words
        memcpy(<void*>self.completion.words, target.words, target.n_words * sizeof(int32_t))
        if not self.problem.c_retarget(i, &self.completion, False):
            return 0
        for j in range(i, self.group_end[i]):
            self.drop(j)
            self.recompleted[j] = True
        self.problem.c_retarget(i, &self.completion, True)
        return 0

    cdef int drop(self, Py_ssize_t i) except -1 nogil:
        """Move all mass of example i to its true output.

        With its slopes d and v = sum_k alpha_k psi_k the dual falls by sum_k alpha_k d_k + |v|^2 / 2 - r t^2 / 2.
        """
        cdef WorkingSet* s = &self.sets[i]
        cdef Py_ssize_t k, m
        cdef double alpha
        if s.n == 0:
            return 0
        self.slopes(i, False)
        self.dual += 0.5 * ridge_of(s) * s.total * s.total
        for k in range(s.n):
            alpha = s.cuts[k].alpha
            self.dual -= alpha * self.slope[k] + 0.5 * alpha * alpha * gram_at(s, k, k)
            for m in range(k):
                self.dual -= alpha * s.cuts[m].alpha * gram_at(s, k, m)
        for k in range(s.n - 1, -1, -1):
            self.update(i, &s.cuts[k], -s.cuts[k].alpha)
            self.remove(i, k)
        self.project()
        return 0

    # ---- working sets ---------------------------------------------------------------------------

    cdef Py_ssize_t find(self, Py_ssize_t i, const Cut* cut) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(self.sets[i].n):
            if same(&self.sets[i].cuts[k], cut):
                return k
        return NOTHING

    cdef Py_ssize_t insert(self, Py_ssize_t i, const Cut* cut) except -1 nogil:
        """Copy a cut with alpha = 0 to the end of example i's working set; return its place."""
        cdef WorkingSet* s = &self.sets[i]
        cdef Py_ssize_t c, k = s.n, capacity
        cdef Cut* new
        cdef void* block
        if s.n == s.capacity:
            capacity = 2 * s.capacity if s.capacity > 0 else 2
            block = malloc(capacity * sizeof(Cut) + capacity * (capacity + 1) // 2 * sizeof(double))
            if block == NULL:
                no_memory()
            if k > 0:
                memcpy(block, s.cuts, k * sizeof(Cut))
                memcpy(<Cut*>block + capacity, gram_of(s), k * (k + 1) // 2 * sizeof(double))
            free(s.cuts)
            s.cuts, s.capacity = <Cut*>block, <int32_t>capacity
            for c in range(k):
                moved(&s.cuts[c])
        self.make_room(k + 1)
        new = &s.cuts[k]
        new[0] = cut[0]
        new.alpha = new.drift = 0.0
        new.idle = 0
        store_words(new, cut.words)
        self.problem.c_inners(i, s.cuts, k + 1, new, gram_of(s) + k * (k + 1) // 2)
        if k == 0:
            self.set_place(i, self.n_patterns)
            self.n_patterns += 1
            self.bring_near(i)
        s.n += 1
        self.n_cuts += 1
        return k

    cdef int make_room(self, Py_ssize_t n) except -1 nogil:
        """Let the scratch memory hold the slopes of n cuts, and the multipliers that solve_set starts from."""
        cdef void* block
        if n <= self.slope_capacity:
            return 0
        block = realloc(self.slope, 4 * n * sizeof(double))
        if block == NULL:
            no_memory()
        self.slope = <double*>block
        self.slope_capacity = 2 * n
        return 0

    cdef int remove(self, Py_ssize_t i, Py_ssize_t k) except -1 nogil:
        """Drop cut k; the last cut takes its place. The slopes are those of the set before."""
        cdef WorkingSet* s = &self.sets[i]
        cdef Py_ssize_t last = s.n - 1, c
        cdef Py_ssize_t hole
        cdef double* gram = gram_of(s)
        if s.cuts[k].drift != 0.0:
            self.problem.c_add(i, &s.cuts[k], s.cuts[k].drift, self.u)
        free_words(&s.cuts[k])
        if k != last:
            for c in range(k):
                gram[k * (k + 1) // 2 + c] = gram[last * (last + 1) // 2 + c]
            for c in range(k + 1, last):
                gram[c * (c + 1) // 2 + k] = gram[last * (last + 1) // 2 + c]
            gram[k * (k + 1) // 2 + k] = gram[last * (last + 1) // 2 + last]
            s.cuts[k] = s.cuts[last]
            moved(&s.cuts[k])
        s.n -= 1
        self.n_cuts -= 1
        if s.n == 0:
            s.total = 0.0
            hole = self.position[i]
            self.n_patterns -= 1
            if hole < self.n_near:      # the last near one takes the place, the last of all that one's
                self.n_near -= 1
                self.set_place(self.support[self.n_near], hole)
                hole = self.n_near
            if hole < self.n_patterns:
                self.set_place(self.support[self.n_patterns], hole)
            self.position[i] = -1
        return 0

    cdef void set_place(self, Py_ssize_t i, Py_ssize_t place) noexcept nogil:
        self.support[place] = i
        self.position[i] = place

    cdef void bring_near(self, Py_ssize_t i) noexcept nogil:
        """Let support pattern i, which is none of the near ones yet, be one."""
        cdef Py_ssize_t place = self.position[i]
        if place != self.n_near:
            self.set_place(self.support[self.n_near], place)
            self.set_place(i, self.n_near)
        self.n_near += 1

    cdef int enter_section(self, Py_ssize_t a, Py_ssize_t b) except -1:
        cdef Py_ssize_t i
        WeightState.enter_section(self, a, b)
        self.n_near = 0
        for i in range(a, b):
            if self.position[i] >= 0:
                self.bring_near(i)
        return 0

    cdef int slopes(self, Py_ssize_t i, bint fresh) except -1 nogil:
        """slope[k] = b_k - <w, psi_k> for every cut of example i."""
        cdef WorkingSet* s = &self.sets[i]
        cdef Py_ssize_t k
        if s.n == 0:
            return 0
        self.problem.c_dots(i, s.cuts, s.n, self.w, fresh, self.slope)
        for k in range(s.n):
            self.slope[k] = s.cuts[k].b - self.slope[k]
            self.cost += <double>s.cuts[k].n_words
        return 0

    # ---- directions and moves -------------------------------------------------------------------

    cdef Py_ssize_t highest(self, Py_ssize_t i, double* slope) noexcept nogil:
        """Where mass should go: the cut of highest slope, or ORIGIN."""
        cdef WorkingSet* s = &self.sets[i]
        cdef Py_ssize_t k, best = ORIGIN
        slope[0] = ridge_of(s) * s.total
        for k in range(s.n):
            if self.slope[k] > slope[0]:
                slope[0] = self.slope[k]
                best = k
        return best

    cdef Py_ssize_t lowest(self, Py_ssize_t i, double* slope) noexcept nogil:
        """Where mass should come from: the cut of lowest slope with alpha > 0, or ORIGIN with room."""
        cdef WorkingSet* s = &self.sets[i]
        cdef Py_ssize_t k, best = NOTHING
        slope[0] = INFINITY
        if s.total < box_of(s):
            slope[0] = ridge_of(s) * s.total
            best = ORIGIN
        for k in range(s.n):
            if s.cuts[k].alpha > 0.0 and self.slope[k] < slope[0]:
                slope[0] = self.slope[k]
                best = k
        return best

    cdef double move(self, Py_ssize_t i, Py_ssize_t to, Py_ssize_t origin, double slope) noexcept nogil:
        """Shift the best amount of mass from `origin` to `to` (algorithm 17); return the amount.

        Infinity, and nothing is shifted, where the dual has no bound in that direction.
        """
        cdef WorkingSet* s = &self.sets[i]
        cdef double curvature, rounding, amount, room
        curvature = gram_at(s, to, to) + gram_at(s, origin, origin)
        rounding = 1e-14 * curvature
        curvature -= 2.0 * gram_at(s, to, origin)
        if to == ORIGIN or origin == ORIGIN:
            curvature += ridge_of(s)
        room = s.cuts[origin].alpha if origin != ORIGIN else box_of(s) - s.total
        # Two cuts with the same psi, but for rounding: all the mass goes to the better one.
        amount = slope / curvature if curvature > rounding else room
        if amount >= room:
            amount = room
        if not isfinite(amount):
            return INFINITY
        if origin != ORIGIN:
            s.cuts[origin].alpha = s.cuts[origin].alpha - amount if amount < room else 0.0
        else:
            s.total = s.total + amount if amount < room else box_of(s)
        if to != ORIGIN:
            s.cuts[to].alpha += amount
        else:
            s.total -= amount
        self.dual += amount * (slope - 0.5 * amount * curvature)
        return amount

    cdef int pair_step(self, Py_ssize_t i, Py_ssize_t to, Py_ssize_t origin, double slope) except -1 nogil:
        """One move, carried out on w at once; cuts that vanish are removed."""
        cdef WorkingSet* s = &self.sets[i]
        cdef double amount = self.move(i, to, origin, slope)
        if amount == INFINITY:
            if s.cuts[to].alpha == 0.0:
                self.remove(i, to)
            return unbounded(i)
        if to != ORIGIN:
            self.update(i, &s.cuts[to], amount)
        if origin != ORIGIN:
            self.update(i, &s.cuts[origin], -amount)
            if s.cuts[origin].alpha == 0.0:
                self.remove(i, origin)
        self.project()
        return 0

    cdef int solve_set(self, Py_ssize_t i) except -1 nogil:
        """SMO over one working set, given its slopes: the most violating pair, until none is left.

        The moves go to w in the end, one update per cut: the Gram matrix keeps the slopes meanwhile.
        """
        cdef WorkingSet* s = &self.sets[i]
        cdef Py_ssize_t k, to, origin
        cdef int _, n_steps = 20 + 10 * s.n
        cdef double high, low, amount = 0.0, change
        cdef double* before = self.slope + self.slope_capacity
        if s.n == 0:
            return 0
        for k in range(s.n):
            before[k] = s.cuts[k].alpha
        for _ in range(n_steps):
            to = self.highest(i, &high)
            origin = self.lowest(i, &low)
            if to == origin or high - low <= self.tau:
                break
            amount = self.move(i, to, origin, high - low)
            if amount == INFINITY:
                break
            for k in range(s.n):
                self.slope[k] -= amount * (gram_at(s, to, k) - gram_at(s, origin, k))
        for k in range(s.n - 1, -1, -1):
            change = s.cuts[k].alpha - before[k]
            if change != 0.0:
                self.update(i, &s.cuts[k], change)
            if s.cuts[k].alpha > 0.0:
                s.cuts[k].idle = 0
            elif s.cuts[k].idle == self.patience:
                self.remove(i, k)
            else:
                s.cuts[k].idle += 1
        self.project()
        if amount == INFINITY:
            return unbounded(i)
        return 0

    cdef int step_towards(self, Py_ssize_t i, Py_ssize_t corner, double gap) except -1 nogil:
        """Frank-Wolfe with line search towards a corner of example i's simplex: C times a cut of its set, or ORIGIN.

        With gap g = C xi - sum_k alpha_k d_k (the example's part of the duality gap) and D = C psi - sum_k alpha_k
        psi_k a step of some length gains length g - length^2 |D|^2 / 2.
        """
        cdef WorkingSet* s = &self.sets[i]
        cdef double C = box_of(s), curvature = 0.0, length = 1.0, row, change
        cdef Py_ssize_t k, m
        # |D|^2 from the Gram matrix; only the corner itself may have alpha = 0.
        for k in range(s.n):
            row = 0.0
            for m in range(s.n):
                row += gram_at(s, k, m) * (s.cuts[m].alpha - (C if m == corner else 0.0))
            curvature += row * (s.cuts[k].alpha - (C if k == corner else 0.0))
        if gap < curvature:
            length = gap / curvature
        self.dual += length * (gap - 0.5 * length * curvature)
        s.total = C if length == 1.0 and corner >= 0 else s.total + length * ((C if corner >= 0 else 0.0) - s.total)
        for k in range(s.n - 1, -1, -1):
            change = length * ((C if k == corner else 0.0) - s.cuts[k].alpha)
            if change != 0.0:
                self.update(i, &s.cuts[k], change)
            s.cuts[k].alpha = s.cuts[k].alpha + change if length < 1.0 or k == corner else 0.0
            # A corner that all steps led away from keeps a remainder, which is rounding: back to 0 with it.
            if s.cuts[k].alpha < 1e-12 * C:
                if s.cuts[k].alpha != 0.0:
                    self.update(i, &s.cuts[k], -s.cuts[k].alpha)
                    s.total -= s.cuts[k].alpha
                self.remove(i, k)
        self.project()
        return 0

    cdef int offer(self, Py_ssize_t i, const Cut* cut, double epsilon) except -1 nogil:
        """Algorithm 1 of SVMstruct, lines 7 to 9: a cut that is violated by more than the slack and epsilon joins
        its working set, and the dual is optimised over that set. Returns whether it did."""
        cdef double high, violation
        self.slopes(i, False)
        self.highest(i, &high)
        self.problem.c_dots(i, cut, 1, self.w, False, &violation)
        violation = cut.b - violation
        if violation - high <= max(epsilon, self.tau) or self.find(i, cut) != NOTHING:
            return 0
        self.insert(i, cut)
        self.slope[self.sets[i].n - 1] = violation
        self.solve_set(i)
        return 1

    cdef double restricted_gap(self, Py_ssize_t i) noexcept nogil:
        """Gap of the dual over the working set of example i alone, given its slopes d.

        With |w|^2 = sum alpha <w, psi>, primal minus dual is a sum over examples of, for xi = max(0, max_k d_k),
            linear       C xi - sum_k alpha_k d_k,
            quadratic    xi^2 / (2 r) + r t^2 / 2 - sum_k alpha_k d_k.
        For a hard margin, where no bound exists, xi + sum_k alpha_k (xi - d_k): 0 at the optimum alone.
        """
        cdef WorkingSet* s = &self.sets[i]
        cdef double slack = 0.0, used = 0.0
        cdef Py_ssize_t k
        for k in range(s.n):
            slack = max(slack, self.slope[k])
            used += s.cuts[k].alpha * self.slope[k]
        if ridge_of(s) > 0.0:
            return 0.5 * slack * slack / ridge_of(s) + 0.5 * ridge_of(s) * s.total * s.total - used
        if box_of(s) < INFINITY:
            return box_of(s) * slack - used
        return slack * (1.0 + s.total) - used

    # ---- the running average ----------------------------------------------------------------

    cdef int update(self, Py_ssize_t i, Cut* cut, double coef) except -1 nogil:
        """As in `WeightState`, but the average is kept in numbers, one per cut: they reach the sum of vectors
        when the cut is removed or the average is asked for."""
        self.problem.c_add(i, cut, coef, self.w)
        self.n_updates += 1
        if self.averaging != AVERAGE_NONE:
            cut.drift += coef * self.tick()
        return 0

    cdef int flush(self) except -1:
        cdef Py_ssize_t i, k
        if self.averaging == AVERAGE_NONE:
            return 0
        self.problem.sections.enter()
        with nogil:
            for i in range(self.n_sets):
                for k in range(self.sets[i].n):
                    if self.sets[i].cuts[k].drift != 0.0:
                        self.problem.c_add(i, &self.sets[i].cuts[k], self.sets[i].cuts[k].drift, self.u)
                        self.sets[i].cuts[k].drift = 0.0
                        poll(<int64_t>self.problem.c_cost(i))
                self.problem.sections.visited(i)
        return 0

    def restart_average(self):
        cdef Py_ssize_t i, k
        if self.average is None:
            super().restart_average()
        else:
            self.average, self.average_sum = None, zeros(len(self.weights), self.weights.dtype)
            self.u, self.average_from = array_data(self.average_sum), self.n_visits
        with nogil:
            for i in range(self.n_sets):
                for k in range(self.sets[i].n):
                    self.sets[i].cuts[k].drift = 0.0

    def averaged(self):
        if self.average is not None:
            return self.average
        self.flush()
        return super().averaged()

    def end_average(self):
        """Let the average take the place of its sum: no step may follow before `restart_average`."""
        if self.average_sum is not None and self.average is None and self.n_visits > self.average_from:
            self.flush()
            try:
                self.average = self.average_to(self.average_sum, <double>(self.n_visits - self.average_from))
            except BaseException:       # Ctrl-C: half of the sum is none
                self.average_sum[:] = 0.0
                self.average_from = self.n_visits
                raise

    # ---- exact values ---------------------------------------------------------------------------

    def settle(self):
        """Recompute w and the dual objective from alpha in float64, and put the state in order.

        Every pass ends with this: rounding does not pile up, and a state that was saved and loaded
        goes on exactly as one that was not.

        Returns
        -------
        dual : float
            The dual objective at alpha (and at the constant ``base``, if there is one).
        """
        cdef Py_ssize_t i, k, n_patterns = 0, unit = self.problem.window_unit, n = self.problem.n_features, size = n
        cdef Py_ssize_t low = 0
        cdef double linear, ridge, origin
        cdef double[9] squares = [0.0] * 9
        cdef const float64_t[::1] base = self.base
        cdef float64_t[::1] exact
        for i in range(self.problem.n_samples):     # before anything that Ctrl-C may leave half done
            self.position[i] = -1
            if self.sets[i].n > 0:
                self.position[i] = n_patterns
                self.support[n_patterns] = i
                n_patterns += 1
        self.n_near = n_patterns
        summed, self.summed = self.summed, None
        if unit > 0 and summed is None and self.base is None and self.n_signs == 0:
            size = min(size, WINDOW // unit * unit)
        sums = None if summed else np.zeros(size)
        while True:
            sums, linear, ridge = summed or self.sums(0, self.n_samples, sums, low)
            exact = sums
            for k in range(self.n_signs):
                origin = 0.0 if base is None else base[self.signs[k]]
                self.mu[k] = max(-(exact[self.signs[k]] + origin), 0.0)
                exact[self.signs[k]] = max(exact[self.signs[k]], 0.0 - origin)
            with nogil:
                add_products(exact, exact, squares)
            if low + size >= n:
                break
            self.weights[low:low + size] = sums
            sums.fill(0.0)
            low += size
        self.n_projected = self.n_updates
        dual = linear - 0.5 * sum_of_lanes(squares) - 0.5 * ridge
        if self.base is not None:
            dual -= sum_of_products(self.base, exact)
            put(sums, sums, self.base)
        self.weights[low:] = sums[:n - low]     # at once: Ctrl-C leaves no half of them, or of a window
        self.dual = dual
        return self.dual

    def scale(self, double factor):
        """Multiply alphas and C; the weights, which belong to others, stay, and are lent to the problem again."""
        cdef Py_ssize_t i, k
        self.problem.lend(self.weights)
        for i in range(self.n_sets):
            self.weight[i] *= factor
            self.set_bound(i)
            for k in range(self.sets[i].n):
                self.sets[i].cuts[k].alpha *= factor
            self.add_up(i)

    def add_sums(self, sums):
        """Add sum alpha psi of all examples to a float64 array; return their ``(sum alpha b, sum r t^2)``."""
        _, linear, ridge = self.sums(0, self.n_samples, sums, 0)
        return linear, ridge

    cdef void add_up(self, Py_ssize_t i) noexcept nogil:
        """The sum of an example's alphas, whose rounding must not reopen a box that is full."""
        cdef WorkingSet* s = &self.sets[i]
        cdef Py_ssize_t k
        s.total = 0.0
        for k in range(s.n):
            s.total += s.cuts[k].alpha
        if s.total > box_of(s) * (1.0 - 1e-12):
            s.total = box_of(s)

    cdef tuple sums(self, Py_ssize_t start, Py_ssize_t stop, float64_t[::1] exact, Py_ssize_t low):
        """Add sum alpha psi of examples start .. stop - 1 to `exact`, and return it with sum alpha b and sum r t^2.

        If `exact` is a window of w, it begins at `low`.
        """
        cdef Py_ssize_t i, k
        cdef WorkingSet* s
        cdef double linear = 0.0, ridge = 0.0
        self.problem.sections.enter()
        with nogil:
            for i in range(start, stop):
                s = &self.sets[i]
                self.problem.sections.visited(i)
                if s.n == 0:
                    continue
                self.add_up(i)
                for k in range(s.n):
                    linear += s.cuts[k].alpha * s.cuts[k].b
                    self.problem.c_accumulate_window(
                        i, &s.cuts[k], s.cuts[k].alpha, &exact[0], low, low + exact.shape[0])
                ridge += ridge_of(s) * s.total * s.total
                poll(<int64_t>self.problem.c_cost(i))
        return np.asarray(exact), linear, ridge

    def known_violations(self, w):
        """How much the most violated of each example's kept constraints is at `w`, or 0: array (n_samples,)."""
        cdef ndarray weights = self.problem._check_weights(w)
        cdef float64_t[::1] worst = np.zeros(self.problem.n_samples)
        cdef Py_ssize_t i, k
        cdef WorkingSet* s
        self.problem.lend(weights)
        self.problem.sections.enter()
        for i in range(self.problem.n_samples):
            s = &self.sets[i]
            if s.n > 0:
                self.make_room(s.n)
                self.problem.c_dots(i, s.cuts, s.n, array_data(weights), False, self.slope)
                for k in range(s.n):
                    worst[i] = max(worst[i], s.cuts[k].b - self.slope[k])
                poll(<int64_t>self.problem.c_cost(i))
            self.problem.sections.visited(i)
        return np.asarray(worst)

    def primal(self, w=None, violation=None):
        """Return the primal objective at `w` (default: the state's weights).

        `violation` is what `violations` returns for these weights. By default it is asked for here, and its
        ``n_samples`` arg max calls are counted in `n_argmax`.

        With a hard margin only feasible weights have a finite value, and those of a solver never quite are:
        there it is the value at w / m, which predicts the same, where m > 0 is the least margin. Infinite
        if an example is on the wrong side.
        """
        weights = self.weights if w is None else w
        norm = self.half_norm(weights)
        if violation is None:
            violation = violations(self.problem, weights)
            self.n_argmax += self.problem.n_samples
        slack = np.where(np.asarray(self.weight) > 0.0, np.maximum(violation, 0.0), 0.0)
        if self.problem.penalty == PENALTY_HARD:
            worst = slack.max(initial=0.0)
            if worst == 0.0:
                return norm
            # Around other weights than 0, scaling would not keep the objective's centre.
            if worst >= 1.0 or self.base is not None:
                return np.inf
            return norm / (1.0 - worst) ** 2
        if self.problem.penalty == PENALTY_QUADRATIC:
            slack = 0.5 * slack * slack
        return norm + float(np.multiply(self.weight, slack).sum())

    def half_norm(self, w):
        """1/2 |w - base|^2 (no base: 0), in float64."""
        return half_norm(self.problem._check_weights(w), self.base)

    def _vectors(self):
        return {}  # w follows from alpha, bit for bit after `settle`; the average begins anew with a pass

    def _set_vectors(self, state, adapt):
        pass

    def get_state(self):
        cdef Py_ssize_t i, k, c = 0, at = 0
        cdef WorkingSet* s
        state = super().get_state()
        cdef int64_t[::1] example = np.empty(self.n_cuts, dtype=np.int64)
        cdef int64_t[::1] bounds = np.zeros(self.n_cuts + 1, dtype=np.int64)
        cdef float64_t[:, ::1] numbers = np.empty((self.n_cuts, 3))
        cdef int64_t[::1] idle = np.empty(self.n_cuts, dtype=np.int64)
        cdef int32_t[::1] words
        with nogil:
            for i in range(self.n_sets):
                s = &self.sets[i]
                for k in range(s.n):
                    example[c] = i
                    bounds[c + 1] = bounds[c] + s.cuts[k].n_words
                    numbers[c, 0], numbers[c, 1], numbers[c, 2] = s.cuts[k].alpha, s.cuts[k].b, s.cuts[k].scale
                    idle[c] = s.cuts[k].idle
                    c += 1
        words = np.empty(bounds[self.n_cuts], dtype=np.int32)
        with nogil:
            for i in range(self.n_sets):
                s = &self.sets[i]
                for k in range(s.n):
                    memcpy(&words[0] + at, s.cuts[k].words, s.cuts[k].n_words * sizeof(int32_t))
                    at += s.cuts[k].n_words
        state.update(
            cut_example=np.asarray(example), cut_bounds=np.asarray(bounds),
            cut_numbers=np.asarray(numbers), cut_words=np.asarray(words),
            cost=np.array([self.cost]),
        )
        if self.patience > 0:
            state["cut_idle"] = np.asarray(idle)
        if self.base is not None:
            state["base"] = copied(self.base)
        return state

    def without(self, others):
        """`get_state` for a problem in which some examples (a mask) have other true outputs: none of their constraints.

        A constraint of one_slack is a sum over all examples: none is left.
        """
        state = self.get_state()
        kept = ~np.asarray(others)[state["cut_example"]] if self.patience == 0 else np.zeros(self.n_cuts, dtype=bool)
        sizes = np.diff(state["cut_bounds"])
        state["cut_words"] = state["cut_words"][np.repeat(kept, sizes)]
        state["cut_bounds"] = np.concatenate([[0], np.cumsum(sizes[kept])]).astype(np.int64)
        return state | {name: state[name][kept] for name in ("cut_example", "cut_numbers", "cut_idle") if name in state}

    def set_state(self, state, *, adapt=False):
        """As in `WeightState`. Equal constraints of one example become one, of all their alphas."""
        cdef const int64_t[::1] example = state["cut_example"], bounds = state["cut_bounds"]
        cdef const float64_t[:, ::1] numbers = state["cut_numbers"]
        cdef Py_ssize_t c, n_cuts = example.shape[0], i, k
        cdef const int64_t[::1] idle = state["cut_idle"] if self.patience > 0 else np.zeros(n_cuts, dtype=np.int64)
        cdef int32_t[::1] words = state["cut_words"].copy()
        cdef Cut cut
        cdef int32_t nothing = 0
        cdef int32_t* first = &words[0] if words.shape[0] > 0 else &nothing
        cdef float64_t[::1] total = np.zeros(self.problem.n_samples)
        cdef double alpha
        cdef int64_t[::1] count = np.zeros(self.problem.n_samples, dtype=np.int64)
        cdef int64_t products = 0
        # Everything is checked before anything is restored.
        for c in range(n_cuts):
            i = example[c]
            cut.alpha, cut.b, cut.scale = numbers[c, 0], numbers[c, 1], numbers[c, 2]
            cut.n_words = bounds[c + 1] - bounds[c]
            cut.words = first + bounds[c]
            total[i] += cut.alpha
            count[i] += 1
            products += count[i]
            if cut.n_words == 0 or not self.problem.c_valid(i, &cut):
                raise ValueError(f"array 'cut_words' of the training state: cut {c} is none of example {i}")
            if not ((cut.alpha > 0.0 or self.patience > 0) and cut.scale > 0.0 and cut.b < LARGEST
                    and min(cut.alpha, box_of(&self.sets[i])) * cut.scale < LARGEST):
                raise ValueError(f"array 'cut_numbers' of the training state: cut {c} has alpha {cut.alpha:g}, "
                                 f"b {cut.b:g} and scale {cut.scale:g}")
            if idle[c] > self.patience:
                raise ValueError(f"array 'cut_idle' of the training state: cut {c} has been idle {idle[c]} times")
            if not (adapt or total[i] <= box_of(&self.sets[i]) * (1.0 + 1e-9)):
                raise ValueError(f"array 'cut_numbers' of the training state: the alphas of example {i} exceed its box "
                                 f"of {box_of(&self.sets[i]):g}")
            look()
        if products > MANY_PRODUCTS + 1000 * n_cuts:
            raise ValueError(f"the training state has {max(count)} constraints for one example: more than fit in "
                             "memory")
        super().set_state(state, adapt=adapt)
        self.base = state["base"].copy() if "base" in state else None
        self.cost = state["cost"][0]
        self.clear()
        try:
            with nogil:
                for c in range(n_cuts):
                    i = example[c]
                    alpha = numbers[c, 0]
                    if total[i] > box_of(&self.sets[i]) * (1.0 + 1e-9):
                        alpha *= box_of(&self.sets[i]) / total[i]
                    if alpha == 0.0 and (self.patience == 0 or box_of(&self.sets[i]) == 0.0):
                        continue
                    cut.b, cut.scale = numbers[c, 1], numbers[c, 2]
                    cut.n_words = bounds[c + 1] - bounds[c]
                    cut.words = first + bounds[c]
                    k = self.find(i, &cut)
                    if k == NOTHING:
                        k = self.insert(i, &cut)
                    self.sets[i].cuts[k].alpha += alpha
                    self.sets[i].cuts[k].idle = idle[c]
                    poll(<int64_t>self.problem.c_cost(i))
            self.put_in_order()
        except BaseException:   # Ctrl-C, or no memory: none is left rather than some
            self.clear()
            self.put_in_order()
            raise

    def reweigh(self, const float64_t[::1] C not None):
        """Go on with larger weights of linear slacks: alpha, w and the dual stay as they are. False for others.

        The state must be settled, as after a pass.
        """
        cdef Py_ssize_t i
        weight = np.array(C)
        if (self.problem.penalty != PENALTY_LINEAR or self.patience > 0 or self.is_lent or self.recompleted.shape[0] > 0
                or not (weight >= np.asarray(self.weight)).all()):
            return False
        self.problem.lend(self.weights)
        self.weight = weight
        for i in range(self.n_sets):
            self.set_bound(i)
            self.add_up(i)
        if self.average is not None:
            self.restart_average()
        self.average_from = self.n_visits
        return True

    cdef int put_in_order(self) except -1:
        """`settle`, but for weights that belong to others."""
        cdef Py_ssize_t i
        if not self.is_lent:
            self.settle()
            return 0
        for i in range(self.n_sets):
            self.add_up(i)
        return 0

    cdef void clear(self) noexcept nogil:
        cdef Py_ssize_t i, k
        for i in range(self.n_sets):
            for k in range(self.sets[i].n):
                free_words(&self.sets[i].cuts[k])
            free(self.sets[i].cuts)
            self.sets[i].n = self.sets[i].capacity = 0
            self.sets[i].total = 0.0
            self.sets[i].cuts = NULL
        self.n_cuts = self.n_patterns = self.n_near = 0

    def constraints(self):
        """Return ``(examples, b, rows)``: the kept constraints <w, psi> >= b, psi as rows of (indices, values)."""
        cdef Py_ssize_t i, k
        cdef float64_t[::1] psi = np.zeros(self.problem.n_features)
        examples, b, rows = [], [], []
        for i in range(self.problem.n_samples):
            for k in range(self.sets[i].n):
                self.problem.c_accumulate(i, &self.sets[i].cuts[k], 1.0, &psi[0])
                indices = np.flatnonzero(psi)
                rows.append((indices, np.asarray(psi)[indices]))
                np.asarray(psi)[indices] = 0.0
                examples.append(i)
                b.append(self.sets[i].cuts[k].b)
        return np.array(examples, dtype=np.int64), np.array(b), rows

    def alphas(self):
        """Return ``(examples, alpha)``: the multipliers of all constraints, by example."""
        state = self.get_state()
        return state["cut_example"], state["cut_numbers"][:, 0].copy()
