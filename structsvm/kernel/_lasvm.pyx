"""LaSVM: the dual of a binary kernel machine with a bias, and the steps on it (thesis, section 4.2).

    max  D(alpha) = sum_i alpha_i y_i - 1/2 sum_ij alpha_i alpha_j k(x_i, x_j)
    s.t. sum_i alpha_i = 0,  A_i <= alpha_i <= B_i,  A_i = min(0, C_i y_i),  B_i = max(0, C_i y_i)

Its derivatives g_i = y_i - sum_j alpha_j k(x_i, x_j) are stored for the members S of the row cache: the support
vectors, and examples with alpha = 0 that may become some. A direction search moves lambda from alpha_j to alpha_i and
gains

    lambda (g_i - g_j) - lambda^2 / 2 (k(x_i, x_i) + k(x_j, x_j) - 2 k(x_i, x_j)),

for a pair with alpha_i < B_i, alpha_j > A_j and g_i - g_j > tau. At the optimum there is none, and f(x) = sum_j alpha_j
k(x_j, x) + b with b between the extreme derivatives.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY, fabs
from libc.stdlib cimport free, malloc

import numpy as np

from structsvm._random cimport random_below, random_seed
from structsvm._typedefs cimport int32_t, int64_t, uint64_t
from structsvm.dual._schedules cimport Schedule
from structsvm.dual._state cimport State
from structsvm.kernel._kernels cimport Gram, chosen_products
from structsvm.kernel._row_cache cimport RowCache

from structsvm.kernel._expansion import check_members

SELECTIONS = {
    "random": SELECT_RANDOM,
    "gradient": SELECT_GRADIENT,
    "active": SELECT_ACTIVE,
    "autoactive": SELECT_AUTOACTIVE,
}

# Candidates of a selection (algorithm 14); of "autoactive" at most, and how many of them near the boundary are enough.
cdef Py_ssize_t SAMPLED = 50
cdef Py_ssize_t MOST_SAMPLED = 100
cdef Py_ssize_t ENOUGH_NEAR = 5
cdef Py_ssize_t SAMPLED_AT_ONCE = 10

# Examples of a class that S begins with as long as it knows no other class.
cdef Py_ssize_t SEEDS = 5

# Steps of the finishing step between two looks at what may be left out of it.
cdef Py_ssize_t SHRINK_EVERY = 1000

# A direction is flat below this share of the largest curvature there can be.
cdef double FLAT = 1e-12

# The least sum that is divided by.
TINY = np.finfo(np.float64).tiny

# Rows of a pass over all examples at a time.
cdef Py_ssize_t BLOCK = 64


cdef class LaSVMState(State):
    """A feasible point of the dual, its stored derivatives, and the steps on it.

    Parameters
    ----------
    gram : Gram
    y : ndarray of shape (n_samples,), int32
        Classes: 0 is y = -1, 1 is y = 1.
    C : ndarray of shape (n_samples,), float64
        Weight of each example's slack, finite and >= 0. An example of weight 0 takes no part.
    tau : float
        Pairs whose derivatives differ by less are left alone.
    selection : {"random", "gradient", "active", "autoactive"}
        Which example comes next (section 4.3.1).
    cache_size, first, seed : see `KernelDual`

    Attributes
    ----------
    bias, delta : float
        b and the uncertainty about it (equation 4.11), as of the last Reprocess.
    """

    kind = "lasvm"
    steps = frozenset({"process_new", "process_old"})

    def __init__(self, Gram gram not None, y, C, *, double tau=1e-3, selection="random", double cache_size=200.0,
                 Py_ssize_t first=0, uint64_t seed=0):
        n = gram.n_rows
        self.n_samples = n
        self.groups = None if first == 0 else np.arange(first, n + 1, dtype=np.int64)
        self.sign = 2.0 * np.asarray(y, dtype=np.float64) - 1.0
        self.box = np.array(C, dtype=np.float64)
        if self.sign.shape[0] != n or self.box.shape[0] != n:
            raise ValueError(f"y has {self.sign.shape[0]} and C {self.box.shape[0]} entries for {n} examples")
        if not (np.abs(self.sign) == 1.0).all():
            raise ValueError("y must hold classes 0 and 1")
        if not (np.isfinite(self.box).all() and (np.asarray(self.box) >= 0.0).all()):
            raise ValueError("C must be finite and not negative")
        self.cache = RowCache(gram, cache_size)
        self.alpha, self.g, self.low, self.high = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
        self.active = np.empty(n, dtype=np.int32)
        self.alpha_then, self.g_then = np.empty(n), np.empty(n)
        self.tau, self.selection = tau, SELECTIONS[selection]
        self.top = self.bottom = -1
        self.bias, self.delta = 0.0, 2.0    # with alpha = 0 the derivatives are 1 and -1
        self.fast = chosen_products()
        random_seed(&self.random, seed)

    # ---- Process and Reprocess ------------------------------------------------------------------

    cdef int expect(self, const int64_t* order, Py_ssize_t n) except -1:
        self.cache.expect(order, n if self.selection == SELECT_RANDOM else 0)
        return 0

    cdef int process_new(self, Py_ssize_t i) except -1 nogil:
        """Process (algorithm 11): a fresh example becomes a member if it violates the margin with one of them.

        Where no derivative of a member with A < alpha < B settles b, it also does if it narrows the range of b: two
        examples that violate the margin with each other only would never meet (case c of section 4.2.3).
        """
        cdef Py_ssize_t b
        cdef double g, gap = -INFINITY
        if self.cache.slot[i] >= 0 or self.box[i] == 0.0:
            return 0
        b = self.cache.find_fresh(i)
        g = self.sign[i] - self.fast.weigh(self.cache.fresh_row(b), &self.alpha[0], self.cache.n_members)
        self.n_argmax += 1
        self.n_visits += 1
        self.cost += self.cache.n_members * (1.0 + self.cache.gram.cost)
        self.extremes()
        if self.sign[i] > 0.0 and self.bottom >= 0:
            gap = g - self.g[self.bottom]
        elif self.sign[i] < 0.0 and self.top >= 0:
            gap = self.g[self.top] - g
        if gap > self.tau:
            self.enter(i, b, g)
            if self.sign[i] > 0.0:
                return self.step(self.cache.n_members - 1, self.bottom)
            return self.step(self.top, self.cache.n_members - 1)
        if gap == -INFINITY:
            if self.n_of[self.sign[i] > 0.0] < SEEDS:
                self.enter(i, b, g)
        elif self.top >= 0 and self.sign[i] > 0.0 and g > self.g[self.top] + self.tau:
            self.enter(i, b, g)
        elif self.bottom >= 0 and self.sign[i] < 0.0 and g < self.g[self.bottom] - self.tau:
            self.enter(i, b, g)
        return 0

    cdef int process_old(self) except -1 nogil:
        """Reprocess (algorithm 12): the most violating pair; then members go that will hardly be support vectors.

        Returns 1 if there was such a pair.
        """
        cdef Py_ssize_t s
        cdef double largest, smallest
        cdef int64_t top, bottom
        cdef int moved = 0
        self.extremes()
        if self.top < 0 or self.bottom < 0:
            return 0
        if self.g[self.top] - self.g[self.bottom] > self.tau:
            self.step(self.top, self.bottom)
            self.extremes()
            moved = 1
        largest, smallest = self.g[self.top], self.g[self.bottom]
        self.bias, self.delta = 0.5 * (largest + smallest), largest - smallest
        top, bottom = self.cache.member[self.top], self.cache.member[self.bottom]
        for s in range(self.cache.n_members - 1, -1, -1):
            if (self.alpha[s] == 0.0 and (self.g[s] >= largest if self.low[s] < 0.0 else self.g[s] <= smallest)
                    and self.cache.member[s] != top and self.cache.member[s] != bottom):
                self.remove(s)
        return moved

    cdef int enter(self, Py_ssize_t i, Py_ssize_t b, double g) except -1 nogil:
        """The b-th fresh example, number i, becomes a member with alpha = 0."""
        cdef Py_ssize_t s = self.cache.n_members
        self.cache.enter(b)
        self.alpha[s], self.g[s] = 0.0, g
        self.low[s], self.high[s] = min(0.0, self.box[i] * self.sign[i]), max(0.0, self.box[i] * self.sign[i])
        self.n_of[self.sign[i] > 0.0] += 1
        return 0

    cdef int remove(self, Py_ssize_t slot) except -1 nogil:
        """A member with alpha = 0 leaves; the one in the last slot moves into its slot."""
        cdef Py_ssize_t last = self.cache.n_members - 1
        self.n_of[self.sign[self.cache.member[slot]] > 0.0] -= 1
        self.cache.leave(slot)
        self.alpha[slot], self.g[slot] = self.alpha[last], self.g[last]
        self.low[slot], self.high[slot] = self.low[last], self.high[last]
        return 0

    cdef void extremes(self) noexcept nogil:
        """top = arg max g_s with alpha_s < B_s; bottom = arg min g_s with alpha_s > A_s."""
        cdef Py_ssize_t s
        cdef double largest = -INFINITY, smallest = INFINITY, g
        self.top = self.bottom = -1
        for s in range(self.cache.n_members):
            g = self.g[s]
            if g > largest and self.alpha[s] < self.high[s]:
                largest, self.top = g, s
            if g < smallest and self.alpha[s] > self.low[s]:
                smallest, self.bottom = g, s

    cdef double length(self, Py_ssize_t i, Py_ssize_t j, double k) noexcept nogil:
        """lambda = min((g_i - g_j) / (k_ii + k_jj - 2 k_ij), B_i - alpha_i, alpha_j - A_j)."""
        cdef double room = min(self.high[i] - self.alpha[i], self.alpha[j] - self.low[j]), slope = self.g[i] - self.g[j]
        cdef double span = <double>self.cache.diagonal[i] + self.cache.diagonal[j], curvature = span - 2.0 * k
        if curvature <= FLAT * fabs(span) or curvature * room <= slope:
            return room
        return slope / curvature

    cdef void move(self, Py_ssize_t i, Py_ssize_t j, double length, double k) noexcept nogil:
        """Move `length` from alpha_j to alpha_i; the derivatives are left to the caller."""
        cdef double curvature = <double>self.cache.diagonal[i] + self.cache.diagonal[j] - 2.0 * k
        self.dual += length * (self.g[i] - self.g[j] - 0.5 * length * curvature)
        self.alpha[i] = self.high[i] if length == self.high[i] - self.alpha[i] else self.alpha[i] + length
        self.alpha[j] = self.low[j] if length == self.alpha[j] - self.low[j] else self.alpha[j] - length
        self.n_steps += 1

    cdef int step(self, Py_ssize_t i, Py_ssize_t j) except -1 nogil:
        """A direction search, over all members. One row at a time: the cache may hold no more."""
        cdef Py_ssize_t n = self.cache.n_members
        cdef const float* row = self.cache.row(i)
        cdef double k = row[j], length = self.length(i, j, k)
        self.move(i, j, length, k)
        self.fast.shift(row, &self.g[0], n, length)
        self.fast.shift(self.cache.row(j), &self.g[0], n, -length)
        self.cost += 2.0 * n
        return 0

    # ---- selection ------------------------------------------------------------------------------

    cdef Py_ssize_t select(self, int64_t* order, Py_ssize_t n) except -1 nogil:
        """Draw candidates from `order`, to its front; return the place of the best of them (algorithm 14).

        "gradient" takes the smallest y f(x), "active" and "autoactive" the smallest |f(x)|; "autoactive" draws until
        ENOUGH_NEAR candidates have |f(x)| < 1 + delta / 2.
        """
        cdef bint is_auto = self.selection == SELECT_AUTOACTIVE
        cdef Py_ssize_t most = min(MOST_SAMPLED if is_auto else SAMPLED, n), at_once, first = 0, near = 0
        cdef Py_ssize_t k, b, other, chosen = 0
        cdef int64_t i
        cdef double value, best = INFINITY
        if self.selection == SELECT_RANDOM or n == 1:
            return 0
        while first < most and near < ENOUGH_NEAR:
            at_once = min(SAMPLED_AT_ONCE if is_auto else SAMPLED, most - first)
            for k in range(first, first + at_once):
                other = k + random_below(&self.random, n - k)
                order[k], order[other] = order[other], order[k]
            self.cache.expect(order + first, at_once)
            self.cache.take_block()
            self.cost += self.cache.n_fresh * self.cache.n_members * (1.0 + self.cache.gram.cost)
            for b in range(self.cache.n_fresh):
                i = self.cache.fresh[b]
                if self.box[i] == 0.0:
                    continue
                value = self.bias + self.fast.weigh(self.cache.fresh_row(b), &self.alpha[0], self.cache.n_members)
                near += is_auto and fabs(value) < 1.0 + 0.5 * self.delta
                value = value * self.sign[i] if self.selection == SELECT_GRADIENT else fabs(value)
                if value < best:
                    best, chosen = value, first + self.cache.fresh_at[b]
            first += at_once
        self.cache.expect(NULL, 0)      # Process has the row of the chosen one computed again
        return chosen

    def query(self, int64_t[::1] pool):
        """The place in `pool`, an array of examples that is reordered, of the one to ask about next."""
        cdef Py_ssize_t n = pool.shape[0]
        if self.selection == SELECT_RANDOM:
            return random_below(&self.random, n)
        return self.select(&pool[0], n)

    def teach(self, Py_ssize_t i, int label, double C):
        """The label of an example, 0 or 1, and its weight; then Process and Reprocess."""
        self.sign[i], self.box[i] = 2.0 * label - 1.0, C
        with nogil:
            self.process_new(i)
            self.process_old()

    # ---- the finishing step ---------------------------------------------------------------------

    def finish(self, int64_t max_steps=10_000_000, *, bint leave=True):
        """Solve the dual over the members up to `tau` (algorithm 13, step 4), with shrinking.

        The pairs are those of Fan, Chen and Lin (2005): of the i with the largest derivative, the j that gains most.
        Members at a bound that no pair would move are left out until the others are solved (section 4.2.4). In the
        end members with alpha = 0 leave, but for those whose derivatives bound b.

        Parameters
        ----------
        max_steps : int
            Direction searches at most.
        leave : bool
            Whether members leave.

        Returns
        -------
        bool
            Whether there is no violating pair left.
        """
        cdef int64_t last = self.n_steps + max_steps
        cdef bint solved = False
        cdef Py_ssize_t s
        cdef int64_t top, bottom
        self.alpha_then[:] = self.alpha
        self.g_then[:] = self.g
        self.restore()
        try:
            while self.n_steps < last:
                with nogil:
                    solved = self.work(min(SHRINK_EVERY, last - self.n_steps))
                    if not solved:
                        self.shrink()
                    elif self.n_active < self.cache.n_members:
                        self.restore()
                        solved = False
                PyErr_CheckSignals()
                if solved:
                    break
        finally:
            self.restore()
            self.settle()
        if leave and self.top >= 0 and self.bottom >= 0:
            top, bottom = self.cache.member[self.top], self.cache.member[self.bottom]
            for s in range(self.cache.n_members - 1, -1, -1):
                if self.alpha[s] == 0.0 and self.cache.member[s] != top and self.cache.member[s] != bottom:
                    self.remove(s)
            self.extremes()
        return bool(solved)

    cdef bint work(self, Py_ssize_t n) except -1 nogil:
        """Up to n direction searches among the active members; whether there is no violating pair left."""
        cdef Py_ssize_t _, k, s, i, j
        cdef double largest, smallest, slope, curvature, gain, best, diagonal, length
        cdef const float* row
        for _ in range(n):
            i, largest = -1, -INFINITY
            for k in range(self.n_active):
                s = self.active[k]
                if self.g[s] > largest and self.alpha[s] < self.high[s]:
                    largest, i = self.g[s], s
            if i < 0:
                return True
            # The gain of an unbounded step, (g_i - g_j)^2 / (2 curvature), decides.
            row, diagonal = self.cache.row(i), self.cache.diagonal[i]
            j, smallest, best = -1, INFINITY, -1.0
            for k in range(self.n_active):
                s = self.active[k]
                if self.alpha[s] > self.low[s] and self.g[s] < largest:
                    smallest = min(smallest, self.g[s])
                    slope, curvature = largest - self.g[s], diagonal + self.cache.diagonal[s] - 2.0 * row[s]
                    gain = slope * slope / max(curvature, FLAT)
                    if gain > best:
                        best, j = gain, s
            if largest - smallest <= self.tau or j < 0:
                return True
            length = self.length(i, j, row[j])
            self.move(i, j, length, row[j])
            if self.n_active == self.cache.n_members:
                self.fast.shift(row, &self.g[0], self.n_active, length)
                self.fast.shift(self.cache.row(j), &self.g[0], self.n_active, -length)
            else:
                for k in range(self.n_active):
                    self.g[self.active[k]] -= length * row[self.active[k]]
                row = self.cache.row(j)
                for k in range(self.n_active):
                    self.g[self.active[k]] += length * row[self.active[k]]
        return False

    cdef void shrink(self) noexcept nogil:
        """Leave out members at a bound that are in no violating pair: they could only move the other way."""
        cdef Py_ssize_t k, s, n = 0
        cdef double largest = -INFINITY, smallest = INFINITY
        for k in range(self.n_active):
            s = self.active[k]
            if self.alpha[s] < self.high[s]:
                largest = max(largest, self.g[s])
            if self.alpha[s] > self.low[s]:
                smallest = min(smallest, self.g[s])
        for k in range(self.n_active):
            s = self.active[k]
            if not ((self.alpha[s] == self.high[s] and self.g[s] > largest)
                    or (self.alpha[s] == self.low[s] and self.g[s] < smallest)):
                self.active[n] = <int32_t>s
                n += 1
        self.n_active = n

    cdef int restore(self) except -1 nogil:
        """Let all members take part, with their derivatives: those of then, less what alpha has changed since."""
        cdef Py_ssize_t s, n = self.cache.n_members
        if self.n_active < n:
            for s in range(n):
                if self.alpha[s] != self.alpha_then[s]:
                    self.fast.shift(self.cache.row(s), &self.g_then[0], n, self.alpha[s] - self.alpha_then[s])
            for s in range(self.n_active):
                self.g_then[self.active[s]] = self.g[self.active[s]]
            self.g[:] = self.g_then
        self.alpha_then[:] = self.alpha
        self.g_then[:] = self.g
        for s in range(n):
            self.active[s] = <int32_t>s
        self.n_active = n
        return 0

    # ---- exact values, other points -------------------------------------------------------------

    def settle(self):
        """Recompute the dual objective, 1/2 sum alpha (y + g), with b and delta; return it."""
        cdef Py_ssize_t s
        cdef double total = 0.0
        for s in range(self.cache.n_members):
            total += self.alpha[s] * (self.sign[self.cache.member[s]] + self.g[s])
        self.dual = 0.5 * total
        self.extremes()
        if self.top >= 0 and self.bottom >= 0:
            self.bias = 0.5 * (self.g[self.top] + self.g[self.bottom])
            self.delta = self.g[self.top] - self.g[self.bottom]
        elif self.top >= 0 or self.bottom >= 0:     # one class alone: b is its y
            self.bias = self.g[max(self.top, self.bottom)]
        return self.dual

    def certify(self):
        """One exact pass over all examples, in blocks; the members' scores are y - g.

        Returns
        -------
        primal, dual : float
            ``1/2 |w|^2 + sum_i C_i max(0, 1 - y_i f(x_i))`` and D, at the present point.
        norm : float
            1/2 |w|^2.
        """
        cdef Py_ssize_t i, s, b, n = 0, m = self.cache.n_members, last = self.n_samples
        cdef int64_t block[64]
        cdef double slack = 0.0, norm = 0.0
        cdef float* rows = <float*>malloc(max(BLOCK * m, 1) * sizeof(float))
        if rows == NULL:
            raise MemoryError("no memory for a block of rows of the kernel matrix")
        self.settle()
        try:
            for i in range(last):
                s = self.cache.slot[i]
                if s >= 0:
                    slack += self.box[i] * max(0.0, 1.0 - self.sign[i] * (self.sign[i] - self.g[s] + self.bias))
                    norm += 0.5 * self.alpha[s] * (self.sign[i] - self.g[s])
                elif self.box[i] > 0.0:
                    block[n] = i
                    n += 1
                if n == BLOCK or (i == last - 1 and n > 0):
                    if m > 0:
                        with nogil:
                            self.cache.gram.c_block(block, n, &self.cache.member[0], m, rows, m)
                    for b in range(n):
                        slack += self.box[block[b]] * max(0.0, 1.0 - self.sign[block[b]] * (
                            self.bias + self.fast.weigh(rows + b * m, &self.alpha[0], m)))
                    n = 0
                    PyErr_CheckSignals()
        finally:
            free(rows)
        self.n_argmax += last
        return slack + norm, self.dual, norm

    @property
    def n_vectors(self):
        """Support vectors: members with alpha != 0."""
        return int(np.count_nonzero(self.alpha[:self.cache.n_members]))

    def coefficients(self):
        """``(members, slots, labels, beta, g)`` as of `KernelDual.coefficients`: alpha as coefficients of label 1."""
        n = self.cache.n_members
        return (self.cache.members, np.arange(n, dtype=np.int64), np.ones(n, dtype=np.int32),
                np.array(self.alpha[:n]), np.array(self.g[:n]))

    def restart(self, members, slots, labels, beta):
        """Go to another point: arrays as `coefficients` returns them, but for the derivatives."""
        alpha = np.zeros(len(members))
        alpha[slots] = beta
        self.lay_out(np.asarray(members), alpha)
        self.settle()

    def lay_out(self, members, alpha, g=None):
        """Let these examples be the members, with their derivatives; without `g` they are computed."""
        cdef Py_ssize_t s, i, n = len(members)
        check_members(members, self.n_samples)
        low, high = self.bounds(members)
        scale = max(1.0, high.max(initial=0.0), -low.min(initial=0.0))
        if not (np.isfinite(alpha).all() and abs(alpha.sum()) <= 1e-9 * scale * max(n, 1)
                and (low * (1.0 + 1e-9) <= alpha).all() and (alpha <= high * (1.0 + 1e-9)).all()):
            raise ValueError("the coefficients of the support vectors, 'alpha', are not feasible")
        self.cache.restart(members)
        self.n_of[0] = self.n_of[1] = 0
        for s in range(n):
            i = self.cache.member[s]
            self.low[s], self.high[s] = low[s], high[s]
            self.alpha[s] = min(max(alpha[s], self.low[s]), self.high[s])
            self.n_of[self.sign[i] > 0.0] += 1
        for s in range(n):
            self.g[s] = g[s] if g is not None else (
                self.sign[self.cache.member[s]] - self.fast.weigh(self.cache.row(s), &self.alpha[0], n))

    def bounds(self, members):
        """A and B of examples."""
        bound = np.asarray(self.box)[members] * np.asarray(self.sign)[members]
        return np.minimum(0.0, bound), np.maximum(0.0, bound)

    def into_box(self, members, alpha):
        """The coefficients cut to the box; then those of the heavier class are scaled down, so that the sum is 0."""
        low, high = self.bounds(members)
        alpha = np.clip(alpha, low, high)
        positive, negative = alpha[alpha > 0.0].sum(), -alpha[alpha < 0.0].sum()
        least = min(positive, negative)
        alpha[alpha > 0.0] *= least / max(positive, TINY)
        alpha[alpha < 0.0] *= least / max(negative, TINY)
        kept = low < high
        return members[kept], alpha[kept]

    def get_state(self):
        """Return the state as a dict of arrays; training that resumes from it gives bit-identical results."""
        n = self.cache.n_members
        counters = [self.n_argmax, self.n_visits, self.n_steps, *self.cache.get_counters()]
        return {
            "random": self.random_words(), "counters": np.array(counters, dtype=np.int64),
            "cost": np.array([self.cost]), "support": self.cache.members, "alpha": np.array(self.alpha[:n]),
            "gradient": np.array(self.g[:n]), "numbers": np.array([self.tau, self.bias, self.delta]),
        }

    def set_state(self, state, *, adapt=False):
        """Restore the arrays returned by `get_state`; see `WeightState.set_state`. The finer tau holds."""
        members, alpha, g = state["support"], state["alpha"], state["gradient"]
        counters, (tau, bias, delta) = state["counters"], state["numbers"].tolist()
        if tau <= 0.0:
            raise ValueError(f"array 'numbers' of the training state has tau={tau:g}, which must be positive")
        if adapt:
            low, high = self.bounds(members)
            if not ((low < high).all() and (low <= alpha).all() and (alpha <= high).all()):
                (members, alpha), g = self.into_box(members, alpha), None
        self.lay_out(members, alpha, g)
        self.set_random(state["random"])
        self.n_argmax, self.n_visits, self.n_steps = counters[:3]
        self.cache.set_counters(counters[3:])
        self.cost, self.bias, self.delta = state["cost"][0], bias, delta
        self.tau = min(self.tau, tau)
        self.settle()


cdef class OnlineSchedule(Schedule):
    """Algorithms 13 and 14: Process an example that the state selects, then Reprocess.

    Reprocess is called `n_reprocess` times on average, and with `delta_max` at least once and then until delta <=
    `delta_max` (section 4.2.5). A pass ends after `max_visits` examples.
    """

    cdef LaSVMState machine
    cdef double n_reprocess, delta_max, due
    cdef Py_ssize_t max_visits
    cdef bint begun

    def __init__(self, LaSVMState state not None, *, double n_reprocess=1.0, double delta_max=np.inf, max_visits=None):
        super().__init__(state)
        self.machine = state
        self.n_reprocess, self.delta_max = n_reprocess, delta_max
        self.max_visits = self.order.shape[0] if max_visits is None else max_visits

    def get_state(self):
        return np.array([self.due])

    def set_state(self, numbers):
        due = self._carried(numbers, 1)[0]
        if due >= 1.0 and self.delta_max == INFINITY:  # no visit leaves a whole step
            raise ValueError(f"the schedule of the training state has {due:.3g} steps still to do")
        self.due = due

    cdef int visit(self, Py_ssize_t i) except -1 nogil:
        cdef Py_ssize_t chosen, n = self.order.shape[0]
        cdef bint moved = True
        if not self.begun:
            chosen = self.next + self.machine.select(&self.order[self.next], n - self.next)
            self.order[self.next], self.order[chosen] = self.order[chosen], self.order[self.next]
            self.machine.process_new(self.order[self.next])
            self.begun = True
            # delta is that of the last Reprocess.
            self.due += max(self.n_reprocess, 1.0) if self.delta_max < INFINITY else self.n_reprocess
        else:
            moved = self.machine.process_old()
            self.due = max(self.due - 1.0, 0.0)
        if self.due >= 1.0 or (moved and self.machine.delta > self.delta_max):
            return 1
        self.begun = False
        if self.next + 1 >= self.max_visits:
            self.next = n - 1
        return 0
