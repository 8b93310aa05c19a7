"""The Huller: the nearest points of two convex hulls (thesis, section 4.1).

    X_c = sum_i alpha_i Phi(x_i) over class c, alpha_i >= 0, sum_i alpha_i = 1;   min |X_P - X_N|^2

An update moves X_c towards or away from one Phi(x_k), X' = (1 - lambda) X + lambda Phi(x_k), to the lambda that brings
it nearest to the other point without leaving the hull (equations 4.6 to 4.8), and keeps |X_P|^2, |X_N|^2 and <X_P, X_N>
by recursion (4.9, 4.10). The machine is f(x) = <X_P - X_N, Phi(x)> + (|X_N|^2 - |X_P|^2) / 2, times 2 / |X_P - X_N|^2:
then f is 1 and -1 at the two points, as hard-margin machines have it.

The coefficients of a class are a common factor times what is stored, so that (1 - lambda) costs one product.
"""

import numpy as np

from structsvm._random cimport random_below, random_seed
from structsvm._typedefs cimport int64_t, uint64_t
from structsvm.dual._state cimport State
from structsvm.kernel._kernels cimport Gram, chosen_products, products
from structsvm.kernel._row_cache cimport RowCache


# Examples whose average the point of a class begins with.
cdef Py_ssize_t SEEDS = 5

# A squared distance below this share of the squared norms is none.
cdef double FLAT = 1e-12

# A common factor below this is multiplied into the coefficients.
cdef double TINY = 1e-100


cdef class HullerState(State):
    """Two points in the hulls of their classes, and the updates that bring them together.

    Parameters
    ----------
    gram : Gram
    y : ndarray of shape (n_samples,), int32
        Classes: 0 is N, 1 is P.
    C : ndarray of shape (n_samples,), float64
        Examples of 0 take no part; there is no other weight with a hard margin.
    cache_size, first, seed : see `KernelDual`

    Attributes
    ----------
    drift : float
        How far the recursive norms have been found from the exact ones, as a share of the longest member's; the most so
        far.
    """

    kind = "huller"
    steps = frozenset({"process_new", "process_old"})

    cdef readonly RowCache cache
    cdef readonly double drift
    cdef const products* fast
    cdef Py_ssize_t[::1] y
    cdef double[::1] box
    cdef double[:, ::1] part            # by class and slot: alpha = factor[c] part[c, slot], 0 for the other class
    cdef double[2] factor
    cdef double[2] square               # |X_c|^2
    cdef double cross                   # <X_N, X_P>
    cdef Py_ssize_t[2] n_of             # members of each class
    cdef Py_ssize_t[2] n_seeds          # examples that each class has begun with

    def __init__(self, Gram gram not None, y, C, *, double cache_size=200.0, Py_ssize_t first=0, uint64_t seed=0):
        n = gram.n_rows
        self.n_samples = n
        self.groups = None if first == 0 else np.arange(first, n + 1, dtype=np.int64)
        self.y, self.box = np.array(y, dtype=np.intp), np.array(C, dtype=np.float64)
        if self.y.shape[0] != n or self.box.shape[0] != n:
            raise ValueError(f"y has {self.y.shape[0]} and C {self.box.shape[0]} entries for {n} examples")
        if n and not 0 <= np.min(self.y) <= np.max(self.y) <= 1:
            raise ValueError("y must hold classes 0 and 1")
        self.cache = RowCache(gram, cache_size)
        self.part = np.zeros((2, n))
        self.factor[0] = self.factor[1] = 1.0
        self.fast = chosen_products()
        random_seed(&self.random, seed)

    # ---- the updates ----------------------------------------------------------------------------

    cdef int expect(self, const int64_t* order, Py_ssize_t n) except -1:
        cdef Py_ssize_t c
        for c in range(2):
            # Later passes have no seeds, were there fewer in the first: they could move the points apart.
            if self.n_visits > 0 and self.n_of[c] > 0:
                self.n_seeds[c] = SEEDS
        self.cache.expect(order, n)
        return 0

    cdef int process_new(self, Py_ssize_t i) except -1 nogil:
        """HullerUpdate (algorithm 9) of a fresh example, which becomes a member if lambda > 0."""
        cdef Py_ssize_t b, c = self.y[i]
        cdef double own, other, size, length
        cdef const float* row
        if self.cache.slot[i] >= 0 or self.box[i] == 0.0:
            return 0
        b = self.cache.find_fresh(i)
        row, size = self.cache.fresh_row(b), self.cache.fresh_diagonal(b)
        own, other = self.product(row, c), self.product(row, 1 - c)
        self.n_argmax += 1
        self.n_visits += 1
        self.cost += self.cache.n_members * (2.0 + self.cache.gram.cost)
        if self.n_seeds[c] < SEEDS:
            length = 1.0 / (self.n_seeds[c] + 1)
            self.n_seeds[c] += 1
        else:
            length = min(1.0, self.unbounded(c, own, other, size))
        if length <= 0.0:
            return 0
        self.cache.enter(b)
        self.n_of[c] += 1
        self.part[c, self.cache.n_members - 1] = self.part[1 - c, self.cache.n_members - 1] = 0.0
        return self.update(self.cache.n_members - 1, c, length, own, other, size)

    cdef int process_old(self) except -1 nogil:
        """HullerUpdate of a random member, which leaves if lambda is as low as can be."""
        cdef Py_ssize_t slot, c
        cdef double own, other, size, length, alpha, lowest
        cdef const float* row
        if self.n_of[0] == 0 or self.n_of[1] == 0:
            return 0
        slot = random_below(&self.random, self.cache.n_members)
        c = self.y[self.cache.member[slot]]
        alpha = self.factor[c] * self.part[c, slot]
        if self.n_of[c] == 1 or alpha >= 1.0:
            return 0
        row, size = self.cache.row(slot), self.cache.diagonal[slot]
        own, other = self.product(row, c), self.product(row, 1 - c)
        self.cost += 2.0 * self.cache.n_members
        lowest = -alpha / (1.0 - alpha)
        length = min(1.0, max(lowest, self.unbounded(c, own, other, size)))
        self.update(slot, c, length, own, other, size)
        if length == lowest:
            self.remove(slot)
        return 0

    cdef double product(self, const float* row, Py_ssize_t c) noexcept nogil:
        """<x, X_c>, given the row of x."""
        if self.cache.n_members == 0:
            return 0.0
        return self.factor[c] * self.fast.weigh(row, &self.part[c, 0], self.cache.n_members)

    cdef double unbounded(self, Py_ssize_t c, double own, double other, double size) noexcept nogil:
        """lambda_u = (|X|^2 - <X', X> - <x, X> + <X', x>) / |X - x|^2, X' the other point (4.6, 4.7); 0 where X = x."""
        cdef double distance = self.square[c] + size - 2.0 * own
        if self.n_of[1 - c] == 0 or distance <= FLAT * (self.square[c] + size):
            return 0.0
        return (self.square[c] - self.cross - own + other) / distance

    cdef int update(self, Py_ssize_t slot, Py_ssize_t c, double length, double own, double other,
                    double size) except -1 nogil:
        """X_c <- (1 - length) X_c + length x of a member, with <x, X_c>, <x, X_other> and |x|^2."""
        cdef Py_ssize_t s
        cdef double rest = 1.0 - length
        self.square[c] = rest * rest * self.square[c] + 2.0 * length * rest * own + length * length * size
        self.cross = rest * self.cross + length * other
        if length == 1.0:
            for s in range(self.cache.n_members):
                self.part[c, s] = 0.0
            self.part[c, slot], self.factor[c] = 1.0, 1.0
            for s in range(self.cache.n_members - 1, -1, -1):
                if self.y[self.cache.member[s]] == c and self.part[c, s] == 0.0:
                    self.remove(s)
            return 0
        self.factor[c] *= rest
        if self.factor[c] < TINY:
            for s in range(self.cache.n_members):
                self.part[c, s] *= self.factor[c]
            self.factor[c] = 1.0
        self.part[c, slot] = max(0.0, self.part[c, slot] + length / self.factor[c])
        return 0

    cdef int remove(self, Py_ssize_t slot) except -1 nogil:
        """A member leaves; the one in the last slot moves into its slot."""
        cdef Py_ssize_t last = self.cache.n_members - 1
        self.n_of[self.y[self.cache.member[slot]]] -= 1
        self.cache.leave(slot)
        self.part[0, slot], self.part[1, slot] = self.part[0, last], self.part[1, last]
        return 0

    # ---- exact values, other points -------------------------------------------------------------

    def settle(self):
        """Recompute the norms from the coefficients, which are brought to sums of 1; returns their drift."""
        cdef Py_ssize_t s, c, n = self.cache.n_members
        cdef double[2] square
        cdef double cross = 0.0, alpha, total, largest = self.largest()
        square[0] = square[1] = 0.0
        for c in range(2):
            if self.n_of[c] > 0:
                total = float(np.sum(self.part[c, :n]))
                if self.factor[c] == 1.0 and abs(total - 1.0) < FLAT:
                    continue    # settled again, a point stays as it is
                for s in range(n):
                    self.part[c, s] /= total
                self.factor[c] = 1.0
        for s in range(n):
            c = self.y[self.cache.member[s]]
            row = self.cache.row(s)
            alpha = self.part[c, s]
            square[c] += alpha * self.product(row, c)
            if c == 0:
                cross += alpha * self.product(row, 1)
        total = max(abs(square[0] - self.square[0]), abs(square[1] - self.square[1]), abs(cross - self.cross))
        self.square[0], self.square[1], self.cross = square[0], square[1], cross
        found = total / largest if largest > 0.0 else 0.0
        self.drift = max(self.drift, found)
        return found

    cdef double largest(self):
        """|x|^2 of the longest member."""
        return float(np.max(self.cache.diagonal[:self.cache.n_members], initial=0.0))

    @property
    def distance(self):
        """|X_P - X_N|^2 as a share of the longest member's |x|^2; infinite before both classes are known."""
        largest = self.largest()
        if self.n_of[0] == 0 or self.n_of[1] == 0 or largest == 0.0:
            return np.inf
        return (self.square[0] + self.square[1] - 2.0 * self.cross) / largest

    @property
    def norms(self):
        """``(|X_P|^2, |X_N|^2, <X_P, X_N>)``, as the recursion has them."""
        return self.square[1], self.square[0], self.cross

    @property
    def scale(self):
        """2 / |X_P - X_N|^2; 1 where the two points are one."""
        distance = self.square[0] + self.square[1] - 2.0 * self.cross
        return 2.0 / distance if distance > FLAT * (self.square[0] + self.square[1]) else 1.0

    @property
    def bias(self):
        """b of the machine; 0 before both classes are known."""
        return self.scale * 0.5 * (self.square[0] - self.square[1]) if self.n_of[0] and self.n_of[1] else 0.0

    @property
    def n_vectors(self):
        return self.cache.n_members

    def coefficients(self):
        """``(members, slots, labels, beta)`` as of `KernelDual.coefficients`, of the second class."""
        n = self.cache.n_members
        alpha = self.factor[1] * np.array(self.part[1, :n]) - self.factor[0] * np.array(self.part[0, :n])
        return self.cache.members, np.arange(n, dtype=np.int64), np.ones(n, dtype=np.int32), self.scale * alpha

    def restart(self, members, slots, labels, beta):
        """Go to other points: arrays as `coefficients` returns them."""
        n = len(members)
        alpha = np.zeros(n)
        alpha[slots] = beta
        side = np.asarray(self.y)[members]
        if not np.isfinite(alpha).all() or ((2 * side - 1) * alpha < 0.0).any():
            raise ValueError("the coefficients of the support vectors are not feasible")
        for c in range(2):
            if (side == c).any() and not np.abs(alpha[side == c]).sum() > 0.0:
                raise ValueError("the coefficients of a class add up to 0")
        self.lay_out(np.asarray(members), np.abs(alpha))
        for c in range(2):
            self.n_seeds[c] = SEEDS if self.n_of[c] > 0 else 0
        self.settle()
        self.drift = 0.0

    def lay_out(self, members, weights):
        """Let these examples be the members, with the coefficients `weights`."""
        cdef Py_ssize_t c
        side = np.asarray(self.y)[members]
        part = np.zeros((2, self.n_samples))
        self.cache.restart(members)
        for c in range(2):
            part[c, :len(members)] = np.where(side == c, weights, 0.0)
            self.n_of[c] = np.count_nonzero(side == c)
            self.factor[c] = 1.0
        self.part = part

    def get_state(self):
        """Return the state as a dict of arrays; training that resumes from it gives bit-identical results."""
        n = self.cache.n_members
        counters = [self.n_argmax, self.n_visits, self.n_seeds[0], self.n_seeds[1], *self.cache.get_counters()]
        return {
            "random": self.random_words(), "counters": np.array(counters, dtype=np.int64),
            "cost": np.array([self.cost]), "support": self.cache.members,
            "part": np.asarray(self.part)[:, :n].sum(axis=0),
            "numbers": np.array([self.factor[0], self.factor[1], self.square[0], self.square[1], self.cross,
                                 self.drift]),
        }

    def set_state(self, state, *, adapt=False):
        """Restore the arrays returned by `get_state`; see `WeightState.set_state`. Members of weight 0 go."""
        cdef Py_ssize_t c
        members, part = state["support"], state["part"]
        counters, numbers = state["counters"].tolist(), state["numbers"].tolist()
        if max(counters[2:4]) > SEEDS:
            raise ValueError(f"array 'counters' of the training state has more than {SEEDS} seeds of a class")
        side, used = np.asarray(self.y)[members], np.asarray(self.box)[members] > 0.0
        totals = np.bincount(side, part, minlength=2) * numbers[:2]
        if (np.abs(totals - 1.0) > 1e-6)[np.unique(side)].any() or not (adapt or used.all()):
            raise ValueError("array 'part' of the training state holds no points of the classes' convex hulls")
        if min(numbers[:2]) <= 0.0 or numbers[5] < 0.0:
            raise ValueError("array 'numbers' of the training state has a factor or a drift below 0")
        for c in range(2):  # a class whose point has lost all its weight begins anew
            if not (part[used & (side == c)] > 0.0).any():
                used &= side != c
                counters[2 + c] = 0
        self.lay_out(members[used], part[used])
        self.factor[0], self.factor[1], self.square[0], self.square[1], self.cross, self.drift = numbers
        self.n_seeds[0], self.n_seeds[1] = counters[2:4]
        self.set_random(state["random"])
        self.n_argmax, self.n_visits, self.cost = counters[0], counters[1], state["cost"][0]
        self.cache.set_counters(counters[4:])
        if not used.all():
            self.settle()
            self.drift = numbers[5]
