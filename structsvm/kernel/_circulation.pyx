"""The linear programme of Frank-Wolfe on the dual of Weston and Watkins: a flow between the classes, and the biases.

Examples stand class by class: those of class c are start[c] .. start[c + 1] - 1. A point of the dual is alpha_ik in
[0, C_i] for k != y_i; with scores F_ki = <h_k, phi(x_i)> (no bias), its slope is g_ik = 1 - F_{y_i i} + F_ki. Think of
alpha_ik as a flow from class y_i to class k along an arc of capacity C_i. The equality constraints say what leaves each
class in all, s_k (nothing, for the whole problem; for a working set what it has now). The linear programme

    max_gamma sum_ik g_ik gamma_ik,   0 <= gamma_ik <= C_i,   sum_{y_i = k} sum_l gamma_il - sum_i gamma_ik = s_k

is thus a flow of greatest reward, and its dual is over potentials of the classes, the biases:

    min_b sum_ik C_i (g_ik - (b_{y_i} - b_k))_+ + sum_k s_k b_k.

With s = 0 that is the sum of the slacks as a function of the biases: the biases that are best for given h come from
here, and

    max_gamma <g, gamma - alpha> = (1/2 |h|^2 + C sum of slacks at the best biases) - (sum alpha - 1/2 |h|^2),

because <g, alpha> = sum alpha - |h|^2: the gap of Frank-Wolfe is the duality gap.

Method (primal-dual). At potentials b, arcs of positive reduced slope d_ik = g_ik - (b_{y_i} - b_k) are full, arcs of
negative are empty, and those of zero are free. If the free arcs can carry what the classes lack (a greatest flow on as
many nodes as classes), flow and potentials satisfy complementary slackness: both are optimal. If not, let R be the
classes that the lacking ones still reach, the cut that stops them. Lowering b on R by t changes the dual objective at
the rate

    (free capacity that leaves R) - (what R lacks) < 0,

and by more for every arc that becomes free on the way: an empty one that leaves R, a full one that enters it. It is
lowered to the minimum of this convex function of t, which is at a weighted order statistic of the |d|. The objective
falls at each turn, so cuts and potentials do not come back, and there are finitely many.

They may be many: where slopes differ by little, one cut after the other moves by as little, while all of them together
have far to go. So "zero" is first anything up to the largest slope, then less, level by level. A turn at level e lowers
the objective by e times what R lacks at least, because after a move by e the free arcs that leave R are full indeed,
and those that enter it empty. Where it does not fall, rounding parts what is equal, and more has to count as zero.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY, fabs, fmax, fmin

import numpy as np

from structsvm._typedefs cimport int64_t

# Reduced slopes up to this, relative to the largest score, are zero in the end; and so are flows, relative to all
# capacities. From one level to the next the slopes that count as zero shrink by a factor.
cdef double ROUNDING = 1e-12
cdef double FINER = 8.0


cdef struct Breakpoint:
    double at
    double weight


cdef double first_rise(Breakpoint* points, Py_ssize_t n, double slope) noexcept nogil:
    """The smallest `at` up to which the weights make up for a negative `slope`; quickselect."""
    cdef Py_ssize_t low = 0, high = n, left, right, k
    cdef double pivot, weight
    cdef Breakpoint swap
    while True:
        # Three parts around the pivot: low .. left - 1 below it, left .. right - 1 equal, right .. high - 1 above.
        pivot = points[low + (high - low) // 2].at
        left, right, k, weight = low, high, low, 0.0
        while k < right:
            if points[k].at < pivot:
                weight += points[k].weight
                swap = points[k]
                points[k] = points[left]
                points[left] = swap
                left += 1
                k += 1
            elif points[k].at > pivot:
                right -= 1
                swap = points[k]
                points[k] = points[right]
                points[right] = swap
            else:
                k += 1
        if slope + weight >= 0.0 and left > low:
            high = left
            continue
        slope += weight
        for k in range(left, right):
            slope += points[k].weight
        if slope >= 0.0 or right == high:
            return pivot
        low = right


cdef class Circulation:
    """The linear programme for given classes and capacities, solved again and again for changing scores.

    Parameters
    ----------
    start : ndarray of shape (n_classes + 1,), int64
        Where the examples of each class begin.
    C : ndarray of shape (n_samples,), float64
        Capacities, > 0.
    supply : ndarray of shape (n_classes,), float64
        s: what leaves each class. Some flow must have this; zeros always do.

    Attributes
    ----------
    biases : ndarray of shape (n_classes,)
        Optimal potentials after `solve`; the next call starts from them.
    """

    cdef readonly object biases
    cdef const int64_t[::1] start
    cdef const double[::1] C
    cdef const double[::1] supply
    cdef Py_ssize_t n_classes, n_samples
    cdef double total, rounding
    cdef double[::1] b
    cdef double[:, ::1] free        # (Q, Q) capacity of the free arcs between two classes
    cdef double[:, ::1] flow        # (Q, Q) what they carry
    cdef double[::1] lack           # (Q,) what a class still has to send along them
    cdef int64_t[::1] parent, queue
    cdef Breakpoint[::1] points

    def __init__(self, const int64_t[::1] start, const double[::1] C, const double[::1] supply):
        cdef Py_ssize_t Q = start.shape[0] - 1, n = C.shape[0]
        self.n_classes, self.n_samples = Q, n
        if start[0] != 0 or start[Q] != n or (np.diff(start) < 0).any() or supply.shape[0] != Q:
            raise ValueError("start must rise from 0 to the number of capacities, and supply have one entry per class")
        self.start, self.C, self.supply = start, C, supply
        self.total = np.sum(C) * (Q - 1)
        self.biases = np.zeros(Q)
        self.b = self.biases
        self.free, self.flow = np.empty((Q, Q)), np.empty((Q, Q))
        self.lack = np.empty(Q)
        self.parent, self.queue = np.empty(Q, dtype=np.int64), np.empty(Q, dtype=np.int64)
        self.points = np.empty(max(n * (Q - 1), 1), dtype=[("at", np.float64), ("weight", np.float64)])

    def solve(self, const double[:, ::1] F, double[:, ::1] beta=None):
        """Find the optimal potentials, and the flow in LaRank's coordinates.

        Parameters
        ----------
        F : ndarray of shape (n_classes, n_samples)
            Scores.
        beta : ndarray of shape (n_classes, n_samples), optional
            Receives the flow, a corner of the programme: -gamma_ik, and sum_k gamma_ik at y_i.

        Returns
        -------
        float
            The optimum without the supply's part: sum_ik C_i (g_ik - (b_{y_i} - b_k))_+.
        """
        if F.shape[0] != self.n_classes or F.shape[1] != self.n_samples:
            raise ValueError("F must be of shape (n_classes, n_samples)")
        cdef double largest = max(np.max(F, initial=0.0), -np.min(F, initial=0.0))
        cdef double least = ROUNDING * (1.0 + largest), objective, before = INFINITY
        cdef bint sent
        self.rounding = 1.0 + 2.0 * largest + np.ptp(self.biases)
        while True:
            PyErr_CheckSignals()
            with nogil:
                objective = self.sort_arcs(F)
                sent = self.send()
                if sent and self.rounding <= least:
                    break
                if not sent and objective < before:
                    before = objective
                    self.lower(F)
                    continue
                before = INFINITY
                if self.rounding <= least:
                    least *= 2.0
                    self.rounding = least
                else:
                    self.rounding = fmax(self.rounding / FINER, least)
        if beta is not None:
            self.write(F, beta)
        return self.slacks(F)

    cdef inline double reduced(self, const double[:, ::1] F, Py_ssize_t c, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        return 1.0 - F[c, i] + F[k, i] - (self.b[c] - self.b[k])

    cdef double sort_arcs(self, const double[:, ::1] F) noexcept nogil:
        """Find what the full arcs leave for the free ones to do, and the capacity of these; return the dual."""
        cdef Py_ssize_t c, k, i
        cdef double d, full, free, objective = 0.0
        self.lack[:] = self.supply
        for c in range(self.n_classes):
            objective += self.supply[c] * self.b[c]
            for k in range(self.n_classes):
                full = free = 0.0
                if k != c:
                    for i in range(self.start[c], self.start[c + 1]):
                        d = self.reduced(F, c, k, i)
                        objective += self.C[i] * fmax(d, 0.0)
                        if d > self.rounding:
                            full += self.C[i]
                        elif d >= -self.rounding:
                            free += self.C[i]
                self.free[c, k] = free
                self.lack[c] -= full
                self.lack[k] += full
        return objective

    cdef bint send(self) noexcept nogil:
        """A greatest flow along free arcs from classes that lack outflow to those that have too much.

        Shortest augmenting paths (Edmonds and Karp 1972). Returns whether nothing is lacking. If something is, the
        cut R is left in `parent`: the classes whose entry is not -1.
        """
        cdef Py_ssize_t Q = self.n_classes, c, k, head, tail, end
        cdef double amount, little = ROUNDING * self.total
        cdef bint lacking
        self.flow[:, :] = 0.0
        while True:
            lacking = False
            head = tail = 0
            end = -1
            for c in range(Q):
                self.parent[c] = -1
                if self.lack[c] > little:
                    lacking = True
                    self.parent[c] = c
                    self.queue[tail] = c
                    tail += 1
            if not lacking:
                return True
            while head < tail and end < 0:
                c = self.queue[head]
                head += 1
                for k in range(Q):
                    if self.parent[k] >= 0 or self.free[c, k] - self.flow[c, k] + self.flow[k, c] <= 0.0:
                        continue
                    self.parent[k] = c
                    self.queue[tail] = k
                    tail += 1
                    if self.lack[k] < 0.0:
                        end = k
                        break
            if end < 0:
                return False
            amount = -self.lack[end]
            k = end
            while self.parent[k] != k:
                c = self.parent[k]
                amount = fmin(amount, self.free[c, k] - self.flow[c, k] + self.flow[k, c])
                k = c
            amount = fmin(amount, self.lack[k])
            self.lack[k] -= amount
            self.lack[end] += amount
            k = end
            while self.parent[k] != k:
                c = self.parent[k]
                self.push(c, k, amount)
                k = c

    cdef inline void push(self, Py_ssize_t c, Py_ssize_t k, double amount) noexcept nogil:
        """Send `amount` from c to k: first by taking back what goes from k to c."""
        cdef double back = fmin(amount, self.flow[k, c])
        self.flow[k, c] -= back
        if amount == back:
            return
        amount -= back
        # To the last bit full, where it is full: the search above counts on it.
        self.flow[c, k] = self.free[c, k] if amount >= self.free[c, k] - self.flow[c, k] else self.flow[c, k] + amount

    cdef int lower(self, const double[:, ::1] F) except -1 nogil:
        """Lower the potentials of R to the minimum along that line.

        Free arcs that leave R are full of flow, so what R still lacks is the whole rate.
        """
        cdef Py_ssize_t c, k, i, n = 0
        cdef double d, t, slope = 0.0
        cdef bint leaves
        for c in range(self.n_classes):
            if self.parent[c] >= 0:
                slope -= self.lack[c]
            for k in range(self.n_classes):
                if (self.parent[c] >= 0) == (self.parent[k] >= 0):
                    continue
                leaves = self.parent[c] >= 0
                for i in range(self.start[c], self.start[c + 1]):
                    d = self.reduced(F, c, k, i)
                    if (leaves and d < -self.rounding) or (not leaves and d > self.rounding):
                        self.points[n].at = fabs(d)
                        self.points[n].weight = self.C[i]
                        n += 1
        if n == 0:
            with gil:
                raise ValueError("no flow has the supply that was asked for")
        t = first_rise(&self.points[0], n, slope)
        for c in range(self.n_classes):
            if self.parent[c] >= 0:
                self.b[c] -= t
        return 0

    cdef void write(self, const double[:, ::1] F, double[:, ::1] beta) noexcept nogil:
        cdef Py_ssize_t c, k, i
        cdef double d, gamma, rest
        beta[:, :] = 0.0
        for c in range(self.n_classes):
            for k in range(self.n_classes):
                if k == c:
                    continue
                rest = self.flow[c, k]
                for i in range(self.start[c], self.start[c + 1]):
                    d = self.reduced(F, c, k, i)
                    if d > self.rounding:
                        gamma = self.C[i]
                    elif d >= -self.rounding:
                        gamma = fmin(rest, self.C[i])
                        rest -= gamma
                    else:
                        continue
                    beta[k, i] -= gamma
                    beta[c, i] += gamma

    cdef double slacks(self, const double[:, ::1] F) noexcept nogil:
        cdef Py_ssize_t c, k, i
        cdef double total = 0.0
        for c in range(self.n_classes):
            for k in range(self.n_classes):
                if k != c:
                    for i in range(self.start[c], self.start[c + 1]):
                        total += self.C[i] * fmax(self.reduced(F, c, k, i), 0.0)
        return total

    def centre(self, const double[:, ::1] F):
        """After `solve`: of all optimal potentials the middle, with sum zero.

        By complementary slackness potentials are optimal if and only if b_c - b_k <= g_ik wherever gamma_ik > 0 and
        b_c - b_k >= g_ik wherever gamma_ik < C_i: bounds r_ck on the differences, from what they are now. Let D be
        the lengths of shortest paths for r. Each of D's columns, and each of its rows with the sign changed, is an
        optimal potential that goes as far as one can; their mean, 1/(2 Q) sum_k (D_ck - D_kc), is optimal too. For
        two classes it is the middle of the interval.
        """
        cdef Py_ssize_t Q = self.n_classes, c, k, i, via
        cdef double d
        cdef double[:, ::1] r = np.full((Q, Q), INFINITY)
        with nogil:
            for c in range(Q):
                r[c, c] = 0.0
                for k in range(Q):
                    if k == c:
                        continue
                    for i in range(self.start[c], self.start[c + 1]):
                        d = self.reduced(F, c, k, i)
                        if d > self.rounding:
                            r[c, k] = fmin(r[c, k], d)
                        elif d < -self.rounding:
                            r[k, c] = fmin(r[k, c], -d)
                    if self.flow[c, k] > 0.0:
                        r[c, k] = 0.0
                    if self.flow[c, k] < self.free[c, k]:
                        r[k, c] = 0.0
            for via in range(Q):
                for c in range(Q):
                    for k in range(Q):
                        r[c, k] = fmin(r[c, k], r[c, via] + r[via, k])
        D = np.asarray(r)
        middle = self.biases + (D - D.T).sum(axis=1) / (2 * Q)
        self.biases[:] = middle - middle.mean()
