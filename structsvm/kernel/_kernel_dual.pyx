"""The dual state of kernel machines: LaRank's coefficients beta, and the steps on them (Bordes and others 2007).

With k(x, x') <L(y), L(y')> = <Phi(x, y), Phi(x', y')>, M = L L', a loss Delta and box C_i the dual is

    max  - sum_iy Delta(y_i, y) beta_i^y - 1/2 sum_ijyz beta_i^y beta_j^z k(x_i, x_j) M(y, z)
    s.t. sum_y beta_i^y = 0,  beta_i^y <= C_i delta(y, y_i),

its derivatives are g_i(y) = - Delta(y_i, y) - S(x_i, y), S(x, y) = sum_jz M(y, z) beta_j^z k(x_j, x). (Problem (7) of
the paper is that for Delta = 1 - delta and M = 1; its g is larger by 1 for all labels, and only differences matter.)

Derivatives are stored for support vectors only, pairs with beta != 0; the others are computed where a step asks for all
labels of a pattern. A step moves lambda from label z to label y of one pattern, and gains

    lambda (g(y) - g(z)) - lambda^2 / 2 k(x, x) (M(y, y) + M(z, z) - 2 M(y, z)).

The kernel values come from a `RowCache` of the support patterns, the coefficients are an `Expansion` over its slots.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY
from libc.stdlib cimport free, malloc

import numpy as np

from structsvm._random cimport random_below, random_seed
from structsvm._typedefs cimport int32_t, int64_t, uint64_t
from structsvm.dual._schedules cimport Schedule
from structsvm.dual._state cimport State
from structsvm.kernel._expansion cimport ClassVectors, Expansion, PatternVectors
from structsvm.kernel._kernels cimport Gram
from structsvm.kernel._row_cache cimport RowCache

from structsvm.kernel._expansion import check_vectors

# Examples that a certificate takes at a time.
cdef Py_ssize_t BLOCK = 64

# Steps on one pattern, where all are wanted that it asks for.
cdef int MANY = 30

# A true label's coefficient so near to C, as a share of it, is at its bound.
cdef double KAPPA = 1e-12

# Candidates that GaLa looks at in each of the two classes of a step: D = 10 in all.
cdef int HITS = 5

# With gain-sensitive selection, one in so many patterns is picked at random all the same.
cdef int RANDOM_PICKS = 10


cdef class KernelDual(State):
    """A feasible point of the kernel dual, its stored derivatives, and the steps on it.

    Parameters
    ----------
    gram : Gram
        The kernel of the training examples.
    y : ndarray of shape (n_samples,), int32
        True labels, 0 .. n_labels - 1.
    C : ndarray of shape (n_samples,), float64
        Weight of each example's slack, finite and >= 0. An example of weight 0 takes no part.
    n_labels : int
    cache_size : float
        Memory for rows of the kernel matrix, in units of 2**20 bytes. It has no influence on the steps.
    selection : {"random", "gain"}
        How a support pattern is selected: at random, or as GaLa does (Tuma and Igel 2011, algorithm 2).
    loss : ndarray of shape (n_labels, n_labels), float64, optional
        Delta(y_i, y), 0 on the diagonal; None: zero-one.
    similarity : scipy CSR matrix of shape (n_labels, n_labels), optional
        M = L L' of the output attributes, positive semidefinite; None: the identity.
    first : int
        Examples before this one are not visited by passes: support patterns to begin with (see `restart`).
    seed : int
        Seed of the state's own random generator.

    Attributes
    ----------
    tau : float
        A pair with less slope is left alone (section 3.4 of the paper).
    n_optimize : int
        Optimize of this run.
    """

    kind = "kernel_dual"
    steps = frozenset({"process_new", "process_old", "optimize", "solve_example", "solve_old"})

    def __init__(self, Gram gram not None, y, C, Py_ssize_t n_labels, *, double cache_size=200.0, selection="random",
                 loss=None, similarity=None, Py_ssize_t first=0, uint64_t seed=0):
        n = gram.n_rows
        self.n_samples, self.n_labels = n, n_labels
        self.groups = None if first == 0 else np.arange(first, n + 1, dtype=np.int64)
        self.y = np.array(y, dtype=np.int32)
        self.box = np.array(C, dtype=np.float64)
        if self.y.shape[0] != n or self.box.shape[0] != n:
            raise ValueError(f"y has {self.y.shape[0]} and C {self.box.shape[0]} entries for {n} examples")
        if n and not 0 <= np.min(self.y) <= np.max(self.y) < n_labels:
            raise ValueError(f"y must hold labels from 0 to {n_labels - 1}")
        if not (np.isfinite(self.box).all() and (np.asarray(self.box) >= 0.0).all()):
            raise ValueError("C must be finite and not negative")
        self.loss = None if loss is None else np.array(loss, dtype=np.float64)
        if similarity is None:
            self.mix_start = np.arange(n_labels + 1, dtype=np.int64)
            self.mix_label = np.arange(n_labels, dtype=np.int32)
            self.mix_value = np.ones(n_labels)
        else:
            self.mix_start = similarity.indptr.astype(np.int64)
            self.mix_label = similarity.indices.astype(np.int32)
            self.mix_value = similarity.data.astype(np.float64)
        self.cache = RowCache(gram, cache_size)
        self.vectors = Expansion(n_labels, n)
        self.score, self.sums, self.slope = np.empty(n_labels), np.empty(n_labels), np.empty(n_labels)
        self.beta, self.change, self.factor = np.zeros(n_labels), np.zeros(n_labels), np.zeros(n_labels)
        self.all_labels = np.arange(n_labels, dtype=np.int32)
        self.touched = np.empty(2 * MANY, dtype=np.int32)
        self.affected = np.empty(2 * MANY * max(np.diff(self.mix_start), default=0), dtype=np.int32)
        self.by_gain = selection == "gain"
        self.selected = -1
        self.tau = 0.0
        random_seed(&self.random, seed)

    # ---- the steps of the schedules -------------------------------------------------------------

    cdef int expect(self, const int64_t* order, Py_ssize_t n) except -1:
        self.cache.expect(order, n)
        return 0

    cdef int process_new(self, Py_ssize_t i) except -1 nogil:
        """Algorithm 2: a fresh example; the steepest pair over all labels, which begins at the true one."""
        return 0 if self.cache.slot[i] >= 0 else self.process_fresh(i, 1)

    cdef int process_old(self) except -1 nogil:
        """Algorithm 3: a support pattern; the steepest pair over all labels."""
        return 0 if self.cache.n_members == 0 else self.process(self.pick(), 1)

    cdef int process_any(self, Py_ssize_t i) except -1 nogil:
        """An example, fresh or not; the steepest pair over all labels."""
        return self.process(self.cache.slot[i], 1) if self.cache.slot[i] >= 0 else self.process_fresh(i, 1)

    cdef int solve_example(self, Py_ssize_t i) except -1 nogil:
        """Process an example, then all pairs over all labels with its scores."""
        return self.process(self.cache.slot[i], MANY) if self.cache.slot[i] >= 0 else self.process_fresh(i, MANY)

    cdef int optimize(self, int n) except -1 nogil:
        """Algorithm 4, n times: a support pattern; the steepest pair over its support vectors."""
        return self.optimize_patterns(n, 1)

    cdef int solve_old(self) except -1 nogil:
        """A support pattern; all pairs over its support vectors."""
        return self.optimize_patterns(1, MANY)

    cdef int sweep(self) except -1 nogil:
        """Each support pattern in turn; all pairs over its support vectors."""
        cdef Py_ssize_t slot = 0, n_members
        cdef PatternVectors* p
        while slot < self.cache.n_members:
            self.cost += 10.0
            n_members = self.cache.n_members
            if self.moves(slot):
                p = &self.vectors.patterns[slot]
                self.look_up(slot)
                self.solve(self.cache.member[slot], self.cache.diagonal[slot], p.label, p.n, MANY)
                self.commit(slot)
            if self.cache.n_members == n_members:   # otherwise another pattern has this slot now
                slot += 1
        return 0

    cdef int process_fresh(self, Py_ssize_t i, int n_steps) except -1 nogil:
        cdef Py_ssize_t b
        if self.box[i] == 0.0:
            return 0
        b = self.cache.find_fresh(i)
        self.cost += self.cache.n_members * self.cache.gram.cost
        self.slopes(i, self.cache.fresh_row(b))
        if self.solve(i, self.cache.fresh_diagonal(b), &self.all_labels[0], self.n_labels, n_steps) == 0:
            return 0
        self.cache.enter(b)
        self.cost += self.cache.n_members
        return self.commit(self.cache.n_members - 1)

    cdef int process(self, Py_ssize_t slot, int n_steps) except -1 nogil:
        cdef Py_ssize_t i = self.cache.member[slot]
        self.slopes(i, self.cache.row(slot))
        self.look_up(slot)
        self.solve(i, self.cache.diagonal[slot], &self.all_labels[0], self.n_labels, n_steps)
        return self.commit(slot)

    cdef int optimize_patterns(self, int n, int n_steps) except -1 nogil:
        """Up to ten patterns are drawn at once, so that the rows of those that will move are fetched while others
        are worked on: computed in one product, or read from memory. One that has vanished meanwhile is passed over.
        """
        cdef int64_t picks[10]
        cdef int64_t slots[10]
        cdef Py_ssize_t slot, n_labels
        cdef const int32_t* labels
        cdef int k, m, moving
        cdef int64_t selected
        while n > 0 and self.cache.n_members > 0:
            selected = self.selected
            m = 1 if self.by_gain else min(n, 10)
            n -= m
            self.n_optimize += m
            moving = 0
            for k in range(m):
                slot = self.pick()
                picks[k] = self.cache.member[slot]
                if self.moves(slot):
                    slots[moving] = slot
                    moving += 1
            self.cache.fetch(slots, moving)
            for k in range(m):
                slot = self.cache.slot[picks[k]]
                self.cost += 10.0
                if slot < 0 or not self.moves(slot):
                    continue
                self.look_up(slot)
                labels, n_labels = self.vectors.patterns[slot].label, self.vectors.patterns[slot].n
                if (picks[k] == selected and self.vectors.find(slot, self.pair[0]) >= 0
                        and self.vectors.find(slot, self.pair[1]) >= 0):
                    labels, n_labels = self.pair, 2
                self.solve(picks[k], self.cache.diagonal[slot], labels, n_labels, n_steps)
                self.commit(slot)
        return 0

    # ---- patterns and directions ----------------------------------------------------------------

    cdef Py_ssize_t pick(self) noexcept nogil:
        """The slot of the support pattern to look at: the selected one, but for one in RANDOM_PICKS times.

        Candidates have labels in common with the last step. Patterns that never do would never be visited again,
        and a run would stall short of the optimum as long as some candidate gains a little.
        """
        cdef int64_t i = self.selected
        self.selected = -1
        if i >= 0 and self.cache.slot[i] >= 0 and random_below(&self.random, RANDOM_PICKS) > 0:
            return self.cache.slot[i]
        return random_below(&self.random, self.cache.n_members)

    cdef double margin(self, int32_t true, int32_t label) noexcept nogil:
        """Delta(y_i, y)."""
        if self.loss is None:
            return 0.0 if true == label else 1.0
        return self.loss[true, label]

    cdef double room(self, Py_ssize_t i, int32_t label, double beta) noexcept nogil:
        """How far a coefficient may rise; 0 where the true label's is as good as C."""
        if label != self.y[i]:
            return -beta
        return self.box[i] - beta if beta < self.box[i] * (1.0 - KAPPA) else 0.0

    cdef double mix(self, int32_t a, int32_t b) noexcept nogil:
        """M(a, b)."""
        cdef int64_t e
        for e in range(self.mix_start[a], self.mix_start[a + 1]):
            if self.mix_label[e] == b:
                return self.mix_value[e]
        return 0.0

    cdef void scores(self, const float* row) noexcept nogil:
        """score[y] = S(x, y), given the row of x."""
        cdef Py_ssize_t label
        cdef int64_t e
        self.vectors.sums(row, &self.sums[0])
        for label in range(self.n_labels):
            self.score[label] = 0.0
            for e in range(self.mix_start[label], self.mix_start[label + 1]):
                self.score[label] += self.mix_value[e] * self.sums[self.mix_label[e]]

    cdef void slopes(self, Py_ssize_t i, const float* row) noexcept nogil:
        """slope[y] = g_i(y) for all labels: an arg max calculation of the paper."""
        cdef Py_ssize_t label
        self.n_argmax += 1
        self.n_visits += 1
        self.scores(row)
        self.cost += self.vectors.n_vectors + self.n_labels
        for label in range(self.n_labels):
            self.slope[label] = -self.margin(self.y[i], <int32_t>label) - self.score[label]

    cdef void look_up(self, Py_ssize_t slot) noexcept nogil:
        """slope[y] and beta[y] of a pattern's support vectors."""
        cdef PatternVectors* p = &self.vectors.patterns[slot]
        cdef Py_ssize_t k
        for k in range(p.n):
            self.slope[p.label[k]] = self.vectors.classes[p.label[k]].g[p.place[k]]
            self.beta[p.label[k]] = self.vectors.classes[p.label[k]].beta[p.place[k]]

    cdef bint moves(self, Py_ssize_t slot) noexcept nogil:
        """Whether there is a step to make over a pattern's support vectors."""
        cdef PatternVectors* p = &self.vectors.patterns[slot]
        cdef ClassVectors* c
        cdef Py_ssize_t k
        cdef double high = -INFINITY, low = INFINITY, g
        for k in range(p.n):
            c = &self.vectors.classes[p.label[k]]
            g = c.g[p.place[k]]
            low = min(low, g)
            if g > high and self.room(self.cache.member[slot], p.label[k], c.beta[p.place[k]]) > 0.0:
                high = g
        return high - low > self.tau

    # ---- moves ----------------------------------------------------------------------------------

    cdef Py_ssize_t solve(self, Py_ssize_t i, double k, const int32_t* labels, Py_ssize_t n,
                          int n_steps) noexcept nogil:
        """Algorithm 1 over some labels of one pattern, up to n_steps times: the steepest pair, as far as it gains or
        as there is room.

        Given slope[y] and beta[y] (0 if there is no vector), which follow, and k = k(x_i, x_i). What has changed is
        noted for `commit`; returns how many labels that are.
        """
        cdef Py_ssize_t e
        cdef int _
        cdef int32_t plus, minus
        cdef double high, low, g, bound, amount, curvature
        self.n_touched = 0
        for _ in range(n_steps):
            plus, minus, high, low = -1, -1, -INFINITY, INFINITY
            for e in range(n):
                g = self.slope[labels[e]]
                if g < low:
                    low, minus = g, labels[e]
                if g > high and self.room(i, labels[e], self.beta[labels[e]]) > 0.0:
                    high, plus = g, labels[e]
            if plus < 0 or high - low <= self.tau:
                break
            bound = self.box[i] if plus == self.y[i] else 0.0
            amount = bound - self.beta[plus]
            curvature = k * (self.mix(plus, plus) + self.mix(minus, minus) - 2.0 * self.mix(plus, minus))
            if curvature * amount > high - low:
                amount = (high - low) / curvature
                self.beta[plus] += amount
            else:
                self.beta[plus] = bound
            self.beta[minus] -= amount
            self.dual += amount * (high - low - 0.5 * amount * curvature)
            self.touch(plus, amount, k)
            self.touch(minus, -amount, k)
        return self.n_touched

    cdef void touch(self, int32_t label, double amount, double k) noexcept nogil:
        """beta(label) has risen by `amount`."""
        cdef int64_t e
        cdef Py_ssize_t t
        for t in range(self.n_touched):
            if self.touched[t] == label:
                break
        else:
            self.touched[self.n_touched] = label
            self.n_touched += 1
        self.change[label] += amount
        for e in range(self.mix_start[label], self.mix_start[label + 1]):
            self.slope[self.mix_label[e]] -= amount * k * self.mix_value[e]

    cdef int commit(self, Py_ssize_t slot) except -1 nogil:
        """Carry out what `solve` has noted: coefficients, stored derivatives

            g_j(z) -= k(x_i, x_j) sum_y M(z, y) change(y),

        and vectors that have come or vanished, with the last of them the pattern.
        """
        cdef PatternVectors* p = &self.vectors.patterns[slot]
        cdef ClassVectors* c
        cdef const float* row
        cdef Py_ssize_t t, n_affected = 0
        cdef int64_t e
        cdef int32_t label, place, true = self.y[self.cache.member[slot]]
        if self.n_touched > 0:
            row = self.cache.row(slot)
        for t in range(self.n_touched):
            label = self.touched[t]
            if self.change[label] == 0.0:
                continue
            for e in range(self.mix_start[label], self.mix_start[label + 1]):
                if self.factor[self.mix_label[e]] == 0.0:
                    self.affected[n_affected] = self.mix_label[e]
                    n_affected += 1
                self.factor[self.mix_label[e]] += self.change[label] * self.mix_value[e]
            self.change[label] = 0.0
            if self.vectors.find(slot, label) < 0:
                self.vectors.add(slot, label, 0.0)
        for t in range(n_affected):
            label = self.affected[t]
            c = &self.vectors.classes[label]
            if self.factor[label] != 0.0:
                self.vectors.fast.scatter(row, c.slot, c.g, c.n, self.factor[label])
                self.factor[label] = 0.0
                self.cost += c.n
        for t in range(self.n_touched):
            label = self.touched[t]
            place = self.vectors.find(slot, label)
            if place >= 0 and self.beta[label] == 0.0 and label != true:
                self.vectors.remove(slot, label)
            elif place >= 0:
                self.vectors.classes[label].beta[place] = self.beta[label]
                self.vectors.classes[label].g[place] = self.slope[label]
            self.beta[label] = 0.0
        for t in range(p.n):
            self.beta[p.label[t]] = 0.0
        if p.n == 1:
            self.vectors.remove(slot, true)
            self.cost += self.cache.n_members
            self.cache.leave(slot)
            if slot != self.cache.n_members:
                self.vectors.move(self.cache.n_members, slot)
        if self.by_gain and self.n_touched > 1:
            self.select(self.touched[0], self.touched[1])
        return 0

    # ---- GaLa -----------------------------------------------------------------------------------

    cdef void select(self, int32_t plus, int32_t minus) noexcept nogil:
        """Algorithm 2 of GaLa: the pattern on which a step between one of the labels just moved and a random third
        one gains most, of a few that have both; before all others those whose step removes a vector."""
        cdef int32_t third, label, at, at_third
        cdef int64_t e, start
        cdef int side, hits
        cdef Py_ssize_t slot
        cdef ClassVectors* c
        cdef double gain, best = 0.0
        cdef bint removes, best_removes = False
        self.selected = -1
        if self.n_labels < 3:
            return
        third = <int32_t>random_below(&self.random, self.n_labels - 2)
        if third >= min(plus, minus):
            third += 1
        if third >= max(plus, minus):
            third += 1
        if self.vectors.classes[third].n == 0:
            return
        for side in range(2):
            label = plus if side == 0 else minus
            c = &self.vectors.classes[label]
            hits = 0
            start = random_below(&self.random, c.n)
            for e in range(c.n):
                at = <int32_t>((start + e) % c.n)
                slot = c.slot[at]
                self.cost += 1.0
                at_third = self.vectors.find(slot, third)
                if at_third < 0:
                    continue
                gain = self.gain(slot, label, at, third, at_third, &removes)
                if gain > 0.0 and (removes > best_removes or (removes == best_removes and gain > best)):
                    best, best_removes = gain, removes
                    self.selected = self.cache.member[slot]
                    self.pair[0], self.pair[1] = label, third
                hits += 1
                if hits == HITS:
                    break

    cdef double gain(self, Py_ssize_t slot, int32_t a, int32_t at_a, int32_t b, int32_t at_b,
                     bint* removes) noexcept nogil:
        """Gain of the step between two vectors of a pattern, and whether one of them vanishes by it."""
        cdef ClassVectors* plus = &self.vectors.classes[a]
        cdef double slope = plus.g[at_a] - self.vectors.classes[b].g[at_b], room, curvature, amount
        if slope < 0.0:
            return self.gain(slot, b, at_b, a, at_a, removes)
        room = self.room(self.cache.member[slot], a, plus.beta[at_a])
        curvature = self.cache.diagonal[slot] * (self.mix(a, a) + self.mix(b, b) - 2.0 * self.mix(a, b))
        amount = slope / curvature if curvature * room > slope else room
        removes[0] = amount == room and a != self.y[self.cache.member[slot]]
        return amount * (slope - 0.5 * amount * curvature) if slope > self.tau else 0.0

    # ---- exact values, saving -------------------------------------------------------------------

    def settle(self):
        """Recompute the dual objective from coefficients and derivatives, 1/2 sum beta (g - Delta), and return it.

        Every pass ends with this, which puts the vectors of each class in the order of their slots: a state that was
        saved and loaded trains on exactly as one that was not.
        """
        cdef Py_ssize_t label
        cdef int32_t e
        cdef ClassVectors* c
        cdef double total = 0.0
        self.lay_out(*self.vectors.listed())
        for label in range(self.n_labels):
            c = &self.vectors.classes[label]
            for e in range(c.n):
                total += c.beta[e] * (c.g[e] - self.margin(self.y[self.cache.member[c.slot[e]]], <int32_t>label))
        self.dual = 0.5 * total
        return self.dual

    def certify(self):
        """One exact pass over all examples, in blocks.

        Returns
        -------
        primal, dual : float
            Objectives at the present point, from scores computed anew.
        norm : float
            1/2 |w|^2.
        """
        cdef Py_ssize_t i, n = 0, last = self.n_samples
        cdef int64_t block[64]
        cdef double[:, ::1] parts = np.zeros((last, 3))     # summed in one order, whatever rows the cache holds
        cdef float* rows = NULL
        rows = <float*>malloc(max(BLOCK * self.cache.n_members, 1) * sizeof(float))
        if rows == NULL:
            raise MemoryError("no memory for a block of rows of the kernel matrix")
        try:
            with nogil:
                for i in range(last):
                    if self.cache.slot[i] >= 0 and self.cache.place[self.cache.slot[i]] >= 0:
                        self.account(i, self.cache.row(self.cache.slot[i]), &parts[i, 0])
                    else:
                        block[n] = i
                        n += 1
                    if n == BLOCK or (i == last - 1 and n > 0):
                        self.account_block(block, n, rows, parts)
                        n = 0
        finally:
            free(rows)
        self.n_argmax += last
        slacks, linear, norm = np.sum(parts, axis=0).tolist()
        self.dual = linear - norm
        return slacks + norm, self.dual, norm

    cdef int account_block(self, const int64_t* block, Py_ssize_t n, float* rows,
                           double[:, ::1] parts) except -1 nogil:
        cdef Py_ssize_t b, m = self.cache.n_members
        if m > 0:
            self.cache.gram.c_block(block, n, &self.cache.member[0], m, rows, m)
        for b in range(n):
            self.account(block[b], rows + b * m, &parts[block[b], 0])
        with gil:
            PyErr_CheckSignals()
        return 0

    cdef void account(self, int64_t i, const float* row, double* values) noexcept nogil:
        """Add example i's terms of sum C xi, - sum Delta beta and 1/2 |w|^2 to `values`."""
        cdef Py_ssize_t label, k, slot = self.cache.slot[i]
        cdef PatternVectors* p
        cdef int32_t true = self.y[i]
        cdef double slack = 0.0, beta
        self.scores(row)
        for label in range(self.n_labels):
            slack = max(slack, self.margin(true, <int32_t>label) + self.score[label] - self.score[true])
        values[0] = self.box[i] * slack
        if slot >= 0:
            p = &self.vectors.patterns[slot]
            for k in range(p.n):
                beta = self.vectors.classes[p.label[k]].beta[p.place[k]]
                values[1] -= beta * self.margin(true, p.label[k])
                values[2] += 0.5 * beta * self.score[p.label[k]]

    def coefficients(self):
        """The support vectors.

        Returns
        -------
        members : ndarray of int64
            The support patterns: examples, by slot.
        slots, labels, beta, g : ndarray of shape (n_vectors,)
            The support vectors, by slot; ties by when they came.
        """
        return (self.cache.members, *self.vectors.listed())

    @property
    def n_vectors(self):
        return self.vectors.n_vectors

    def restart(self, members, slots, labels, beta, g=None):
        """Go to another point: arrays as `coefficients` returns them; without `g` the derivatives are computed."""
        cdef Py_ssize_t e, k
        cdef PatternVectors* p
        slots, labels = np.ascontiguousarray(slots, dtype=np.int64), np.ascontiguousarray(labels, dtype=np.int32)
        beta = np.ascontiguousarray(beta, dtype=np.float64)
        self.check_point(np.asarray(members), slots, labels, beta)
        self.cache.restart(members)
        self.lay_out(slots, labels, beta, np.zeros_like(beta) if g is None else np.ascontiguousarray(g))
        self.selected = -1
        if g is None:
            for e in range(self.cache.n_members):
                self.scores(self.cache.row(e))
                p = &self.vectors.patterns[e]
                for k in range(p.n):
                    self.vectors.classes[p.label[k]].g[p.place[k]] = (
                        -self.margin(self.y[self.cache.member[e]], p.label[k]) - self.score[p.label[k]])
        self.settle()

    def lay_out(self, slots, labels, beta, g):
        """Let the expansion be of these vectors, in this order."""
        self.vectors = Expansion(self.n_labels, self.n_samples)
        self.vectors.fill(slots, labels, beta, g)

    def check_point(self, members, slots, labels, beta):
        """Raise ValueError unless these arrays are a feasible point."""
        check_vectors(members, slots, labels, self.n_samples, self.n_labels)
        n, y, box = len(members), np.asarray(self.y), np.asarray(self.box)
        if len(beta) != len(slots):
            raise ValueError(f"{len(beta)} coefficients for {len(slots)} support vectors")
        bound = box[members][slots]
        sums = np.bincount(slots, beta, minlength=n)
        true = labels == y[members][slots]
        if not (np.isfinite(beta).all() and (beta <= np.where(true, bound * (1.0 + 1e-9), 0.0)).all()
                and (np.abs(sums) <= 1e-9 * box[members]).all() and np.bincount(slots, true, minlength=n).all()):
            raise ValueError("the coefficients of the support vectors, 'vector_numbers', are not feasible")

    def into_box(self, members, slots, labels, beta):
        """The vectors with the coefficients of each pattern scaled down into its box; patterns of weight 0 go."""
        true = labels == np.asarray(self.y)[members][slots]
        total, box = np.zeros(len(members)), np.asarray(self.box)[members]
        total[slots[true]] = beta[true]
        share = np.where(total > box * (1.0 + 1e-9), box / np.where(total > 0.0, total, 1.0), 1.0)
        kept = (share > 0.0) & (box > 0.0)
        vectors = kept[slots]
        slot = np.cumsum(kept) - 1
        return members[kept], slot[slots[vectors]], labels[vectors], (beta * share[slots])[vectors]

    def get_state(self):
        """Return the state as a dict of arrays; training that resumes from it gives bit-identical results."""
        members, slots, labels, beta, g = self.coefficients()
        counters = [self.n_argmax, self.n_visits, *self.cache.get_counters(), self.selected, self.pair[0], self.pair[1]]
        return {
            "random": self.random_words(), "counters": np.array(counters, dtype=np.int64),
            "cost": np.array([self.cost]), "dual": np.array([self.dual]), "support": members, "vector_slot": slots,
            "vector_label": labels, "vector_numbers": np.stack([beta, g]),
        }

    def set_state(self, state, *, adapt=False):
        """Restore the arrays returned by `get_state`; see `WeightState.set_state`."""
        counters = state["counters"]
        if (np.delete(counters, 5) < 0).any() or counters[5] >= self.n_samples or counters[6:].max() >= self.n_labels:
            raise ValueError("array 'counters' of the training state holds a count or a selection out of range")
        members, slots, labels = state["support"], state["vector_slot"], state["vector_label"]
        beta, g = state["vector_numbers"]
        if adapt:
            before = beta
            members, slots, labels, beta = self.into_box(members, slots, labels, beta)
            if not np.array_equal(beta, before):
                g = None
        # After a certificate it is that of the scores computed there.
        self.restart(members, slots, labels, beta, g)
        if g is not None:
            self.dual = state["dual"][0]
        self.set_random(state["random"])
        self.cost = state["cost"][0]
        self.n_argmax, self.n_visits = counters[0], counters[1]
        self.cache.set_counters(counters[2:5])
        self.selected, self.pair[0], self.pair[1] = counters[5], counters[6], counters[7]


cdef class WorkingSetSchedule(Schedule):
    """SVMstruct (Tsochantaridis and others 2004, algorithm 1): after each new constraint the whole working set.

    Much slower than the schedules of `KernelLaRank`; `benchmarks/multiclass` compares them.
    """

    cdef KernelDual machine
    cdef bint decoded

    def __init__(self, KernelDual state not None):
        super().__init__(state)
        self.machine = state

    cdef int visit(self, Py_ssize_t i) except -1 nogil:
        cdef double dual = self.machine.dual
        if self.decoded:
            self.machine.sweep()
        else:
            self.machine.process_any(i)
        self.decoded = self.machine.dual > dual
        return self.decoded
