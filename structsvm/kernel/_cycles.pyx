"""Steps along cycles of classes: a solver for the dual of Weston and Watkins on examples whose kernel is known.

In LaRank's coordinates, beta_ki = -alpha_ik for k != y_i and beta_{y_i i} = sum_k alpha_ik, the dual is

    max sum_i beta_{y_i i} - 1/2 sum_k beta_k' K beta_k,   -C_i <= beta_ki <= 0 (k != y_i),
    sum_k beta_ki = 0 for each example,   sum_i beta_ki = const for each class.

An *arc* (i, u -> v) adds t to beta_ui and takes t from beta_vi, where one of u, v is y_i. For u = y_i it raises
alpha_iv, which has room for C_i - alpha_iv and the slope g_iv = 1 - F_{y_i i} + F_vi; for v = y_i it lowers alpha_iu,
with room alpha_iu and slope -g_iu. Both kinds of constraints hold along a *cycle* of arcs w_1 -> w_2 -> ... -> w_1,
and every feasible direction is a sum of such cycles (a flow that conserves). The dual gains along one

    t sum_arcs slope - t^2 / 2 sum_w |phi(p_w) - phi(q_w)|^2,   p_w, q_w: the examples whose arcs enter and leave w,

and only the scores of its classes change: F_w += t (K_q - K_p).

Two classes are nearly always enough, and a step is then SMO's: of the pair u, v whose steepest arcs have the greatest
sum of slopes, the steeper arc, and the partner with the greatest gain (second order; Fan, Chen and Lin 2005). When no
pair has a sum above eps, a search for longest paths over the classes either finds a longer cycle with more than eps / 2
an arc, or potentials b with slope <= b_u - b_v + eps / 2 for all arcs: the optimality conditions for biases b, but for
eps / 2.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY, fmax, fmin

import numpy as np

from cython cimport final

from structsvm._typedefs cimport int64_t

cdef int64_t LOOK = 4096            # steps between two looks at signals
cdef double ROUNDING = 1e-9         # a mean slope is greater than another if it is by this share
cdef double FLAT = 1e-12            # the least curvature: below it a kernel is not positive, or two inputs are equal


cdef struct Extreme:
    double slope
    Py_ssize_t at       # an example, or a class


cdef struct Arc:
    Py_ssize_t example, tail, head


cdef class Arcs:
    """The arcs between the classes, and the steepest cycles of them.

    Parameters
    ----------
    start : ndarray of shape (n_classes + 1,), int64
        Where the examples of each class begin.
    C : ndarray of shape (n,), float64
    beta, F : ndarray of shape (n_classes, n), float64
        The dual point and the scores.
    """

    cdef const int64_t[::1] start
    cdef const double[::1] C
    cdef double[:, ::1] beta, F
    cdef Py_ssize_t n_classes
    cdef Extreme[:, ::1] up         # (Q, Q) [c, k]: the steepest g_ik among examples of class c with room to rise
    cdef Extreme[:, ::1] down       # (Q, Q) the least g_ik among those with room to fall
    cdef Extreme[::1] partner       # (Q,) of each class: the other one of its best pair, and their slopes
    cdef Arc[::1] cycle
    cdef double[::1] length         # (Q,) of the longest paths
    cdef int64_t[::1] before        # (Q,) the class before this one on its path, or -1
    cdef int64_t[::1] walk          # (Q,) the walk back that has come through this class, or -1

    def __init__(self, const int64_t[::1] start, const double[::1] C, double[:, ::1] beta, double[:, ::1] F):
        cdef Py_ssize_t Q = start.shape[0] - 1, n = C.shape[0], c, k
        self.n_classes = Q
        if start[0] != 0 or start[Q] != n or (np.diff(start) < 0).any():
            raise ValueError("start must rise from 0 to the number of examples")
        if (beta.shape[0], beta.shape[1]) != (Q, n) or (F.shape[0], F.shape[1]) != (Q, n):
            raise ValueError(f"beta and F must be of shape ({Q}, {n})")
        self.start, self.C, self.beta, self.F = start, C, beta, F
        extreme = [("slope", np.float64), ("at", np.intp)]
        self.up, self.down = np.empty((Q, Q), dtype=extreme), np.empty((Q, Q), dtype=extreme)
        self.partner = np.empty(Q, dtype=extreme)
        self.cycle = np.empty(Q, dtype=[("example", np.intp), ("tail", np.intp), ("head", np.intp)])
        self.length = np.empty(Q)
        self.before, self.walk = np.empty(Q, dtype=np.int64), np.empty(Q, dtype=np.int64)
        with nogil:
            for c in range(self.n_classes):
                for k in range(self.n_classes):
                    if c != k:
                        self.look(c, k)
            for c in range(self.n_classes):
                self.pair(c)

    def steepest_cycle(self):
        """Return the examples on the cycle whose arcs have the greatest mean slope, and twice that (a pair's sum).

        No examples if no cycle goes up: the dual point is optimal.
        """
        cdef Py_ssize_t n = self.find(0.0), a
        cdef double mean, most = 0.0
        examples = []
        while n > 0:
            mean = sum([self.slope(self.cycle[a].tail, self.cycle[a].head) for a in range(n)]) / n
            if mean <= most:
                break
            examples = [self.cycle[a].example for a in range(n)]
            most = mean * (1.0 + ROUNDING)
            n = self.long_cycle(most)
        return np.array(examples, dtype=np.int64), 2.0 * most

    # ---- arcs -----------------------------------------------------------------------------------

    cdef inline double slope(self, Py_ssize_t u, Py_ssize_t v) noexcept nogil:
        """Slope of the steepest arc u -> v."""
        return fmax(self.up[u, v].slope, -self.down[v, u].slope)

    cdef double steepest_arc(self) noexcept nogil:
        """The slope of the steepest arc of all."""
        cdef Py_ssize_t u, v
        cdef double most = -INFINITY
        for u in range(self.n_classes):
            for v in range(self.n_classes):
                if u != v:
                    most = fmax(most, self.slope(u, v))
        return most

    cdef inline Arc steepest(self, Py_ssize_t u, Py_ssize_t v) noexcept nogil:
        cdef Arc arc
        arc.tail, arc.head = u, v
        arc.example = self.up[u, v].at if self.up[u, v].slope >= -self.down[v, u].slope \
            else self.down[v, u].at
        return arc

    cdef inline bint rises(self, Arc arc) noexcept nogil:
        """Whether the tail is the example's own class, so that alpha rises."""
        return self.start[arc.tail] <= arc.example < self.start[arc.tail + 1]

    cdef inline double room(self, Arc arc) noexcept nogil:
        if self.rises(arc):
            return self.C[arc.example] + self.beta[arc.head, arc.example]
        return -self.beta[arc.tail, arc.example]

    cdef void look(self, Py_ssize_t c, Py_ssize_t k) noexcept nogil:
        """Find the extreme arcs between class c, of its own examples, and class k."""
        cdef Py_ssize_t i
        cdef double g, alpha
        cdef Extreme high, low
        high.slope, low.slope = -INFINITY, INFINITY
        high.at = low.at = -1
        for i in range(self.start[c], self.start[c + 1]):
            g = 1.0 - self.F[c, i] + self.F[k, i]
            alpha = -self.beta[k, i]
            if alpha < self.C[i] and g > high.slope:
                high.slope, high.at = g, i
            if alpha > 0.0 and g < low.slope:
                low.slope, low.at = g, i
        self.up[c, k] = high
        self.down[c, k] = low

    cdef void look_at(self, Py_ssize_t w) noexcept nogil:
        """Look at all arcs from and to class w, whose scores have changed."""
        cdef Py_ssize_t c
        for c in range(self.n_classes):
            if c != w:
                self.look(c, w)
                self.look(w, c)
        self.pair(w)
        for c in range(self.n_classes):
            if self.partner[c].at == w:
                self.pair(c)
            elif c != w and self.slope(c, w) + self.slope(w, c) > self.partner[c].slope:
                self.partner[c].slope, self.partner[c].at = self.slope(c, w) + self.slope(w, c), w

    cdef void pair(self, Py_ssize_t u) noexcept nogil:
        """Find the class that makes the best pair with u."""
        cdef Py_ssize_t v
        cdef double total
        self.partner[u].slope, self.partner[u].at = -INFINITY, -1
        for v in range(self.n_classes):
            if v != u:
                total = self.slope(u, v) + self.slope(v, u)
                if total > self.partner[u].slope:
                    self.partner[u].slope, self.partner[u].at = total, v

    # ---- cycles ---------------------------------------------------------------------------------

    cdef Py_ssize_t find(self, double eps) noexcept nogil:
        """Put a cycle of more than eps / 2 an arc into `cycle` and return its length, or 0 if there is none."""
        cdef Py_ssize_t u, a = -1, b
        cdef double most = eps
        for u in range(self.n_classes):
            if self.partner[u].slope > most:
                most, a = self.partner[u].slope, u
        if a < 0:
            return self.long_cycle(0.5 * eps)
        b = self.partner[a].at
        if self.slope(b, a) > self.slope(a, b):
            a, b = b, a
        self.cycle[0], self.cycle[1] = self.steepest(a, b), self.steepest(b, a)
        return 2

    cdef Py_ssize_t long_cycle(self, double least) noexcept nogil:
        """Put a cycle with more than `least` an arc into `cycle` and return its length, or 0 if there is none.

        Longest paths from anywhere, for arcs of length slope - least (Bellman and Ford). While they grow, each class
        remembers where its path came from; if going back leads in a circle, that circle has a positive length.
        """
        cdef Py_ssize_t Q = self.n_classes, u, v, w, n, _
        cdef double through
        cdef bint grown
        for v in range(Q):
            self.length[v] = 0.0
            self.before[v] = -1
        for _ in range(Q):
            grown = False
            for u in range(Q):
                for v in range(Q):
                    through = self.length[u] + self.slope(u, v) - least
                    if u != v and through > self.length[v]:
                        self.length[v] = through
                        self.before[v] = u
                        grown = True
            w = self.circle() if grown else -1
            if w >= 0:
                v, n = w, 0
                while n == 0 or v != w:
                    self.cycle[n] = self.steepest(self.before[v], v)
                    v = self.before[v]
                    n += 1
                return n
            if not grown:
                break
        return 0

    cdef Py_ssize_t circle(self) noexcept nogil:
        """A class from which `before` leads back to itself, or -1."""
        cdef Py_ssize_t v, w
        for v in range(self.n_classes):
            self.walk[v] = -1
        for v in range(self.n_classes):
            w = v
            while w >= 0 and self.walk[w] < 0:
                self.walk[w] = v
                w = self.before[w]
            if w >= 0 and self.walk[w] == v:
                return w
        return -1


@final
cdef class CycleSteps(Arcs):
    """The dual on n examples, which stand class by class.

    Parameters
    ----------
    start, C, beta, F : see `Arcs`
        beta and F are changed in place.
    K : ndarray of shape (n, n), float64
        Kernel values.
    """

    cdef const double[:, ::1] K

    def __init__(self, const int64_t[::1] start, const double[::1] C, double[:, ::1] beta, double[:, ::1] F,
                 const double[:, ::1] K):
        super().__init__(start, C, beta, F)
        if (K.shape[0], K.shape[1]) != (C.shape[0], C.shape[0]):
            raise ValueError(f"K must be of shape ({C.shape[0]}, {C.shape[0]})")
        self.K = K

    def run(self, double eps, Py_ssize_t max_steps):
        """Step until no cycle has more than eps / 2 an arc, or `max_steps` times; returns the number of steps.

        `eps` is approached by halves: pairs alone would zigzag in a valley that a longer cycle leads out of.
        """
        cdef Py_ssize_t done = 0, n
        cdef double level = self.steepest_arc()
        with nogil:
            while done < max_steps:
                n = self.find(fmax(level, eps))
                if n == 0 and level > eps:
                    level *= 0.5
                    continue
                if n == 0:
                    break
                if n == 2:
                    self.choose_partner(eps)
                self.step(n)
                done += 1
                if done % LOOK == 0:
                    with gil:
                        PyErr_CheckSignals()
        return done

    cdef inline double distance(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        return self.K[i, i] + self.K[j, j] - 2.0 * self.K[i, j]

    cdef void choose_partner(self, double eps) noexcept nogil:
        """To the first arc of a pair, a -> b, find the arc b -> a with the greatest gain."""
        cdef Py_ssize_t i = self.cycle[0].example, a = self.cycle[0].tail, b = self.cycle[0].head, j
        cdef double slope = self.slope(a, b), gain, best = -INFINITY
        for j in range(self.start[b], self.start[b + 1]):
            if -self.beta[a, j] < self.C[j]:
                gain = self.gain(slope + 1.0 - self.F[b, j] + self.F[a, j], eps, i, j)
                if gain > best:
                    best, self.cycle[1].example = gain, j
        for j in range(self.start[a], self.start[a + 1]):
            if self.beta[b, j] < 0.0:
                gain = self.gain(slope - 1.0 + self.F[a, j] - self.F[b, j], eps, i, j)
                if gain > best:
                    best, self.cycle[1].example = gain, j

    cdef inline double gain(self, double slope, double eps, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        return slope * slope / fmax(self.distance(i, j), FLAT) if slope > eps else -INFINITY

    cdef void step(self, Py_ssize_t n) noexcept nogil:
        """Go along the n arcs of `cycle`, each of which begins where the next one ends, to the greatest dual."""
        cdef Py_ssize_t a, w, j, p, q
        cdef double slope = 0.0, curvature = 0.0, t = INFINITY, room
        cdef Arc arc
        for a in range(n):
            arc = self.cycle[a]
            slope += (1.0 if self.rises(arc) else -1.0) - self.F[arc.tail, arc.example] + self.F[arc.head, arc.example]
            curvature += self.distance(arc.example, self.cycle[(a + 1) % n].example)
            t = fmin(t, self.room(arc))
        t = fmin(t, slope / fmax(curvature, FLAT))
        for a in range(n):
            arc = self.cycle[a]
            room = self.room(arc)
            self.beta[arc.tail, arc.example] += t
            self.beta[arc.head, arc.example] -= t
            if t == room:   # to the last bit
                if self.rises(arc):
                    self.beta[arc.head, arc.example] = -self.C[arc.example]
                else:
                    self.beta[arc.tail, arc.example] = 0.0
        for a in range(n):
            w = self.cycle[a].tail
            q, p = self.cycle[a].example, self.cycle[(a + 1) % n].example
            for j in range(self.F.shape[1]):
                self.F[w, j] += t * (self.K[q, j] - self.K[p, j])
        for a in range(n):
            self.look_at(self.cycle[a].tail)
