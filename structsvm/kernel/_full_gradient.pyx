"""The dual of multiclass kernel machines with its whole gradient, row by row (Crammer and Singer 2001).

For k(x, x') delta(y, y') and zero-one loss. With all derivatives g_i(y) at hand, the dual restricted to the
coefficients of one example is solved exactly: with k = k(x_i, x_i) and v = beta_i + g_i / k it is the projection of v,

    beta_i^y = min(C_i delta(y, y_i), v_y - theta),   sum_y beta_i^y = 0.

With d_y = k (v_y - C_i delta(y, y_i)) that is sum_y max(0, theta - d_y) = k C_i, for another theta: the mean
(k C_i + sum of d_y) / |A| over the set A of the d_y below it, which is found from all of them by leaving out, again
and again, those that are not below.
"""

from libc.math cimport INFINITY

import numpy as np

from structsvm._random cimport random_seed
from structsvm._typedefs cimport int32_t, int64_t, uint64_t
from structsvm.dual._state cimport State
from structsvm.kernel._kernels cimport Gram
from structsvm.kernel._row_cache cimport RowCache


# Rows of the kernel matrix at a time, where the whole gradient is computed anew.
ROWS = 1024


cdef class FullGradient(State):
    """A feasible point of the dual and all of its derivatives.

    Parameters
    ----------
    gram, y, C, n_labels, cache_size, seed : see `KernelDual`
        The cache holds rows of n_samples values.

    Attributes
    ----------
    tau : float
        Examples whose largest violation, max g - min g over where there is room, is less are left alone.
    """

    kind = "full_gradient"
    steps = frozenset({"solve_example"})

    cdef readonly RowCache cache
    cdef readonly Py_ssize_t n_labels
    cdef readonly int64_t n_vectors
    cdef public double tau
    cdef int32_t[::1] y
    cdef double[::1] box
    cdef double[:, ::1] beta        # (n_labels, n_samples)
    cdef double[:, ::1] g
    cdef double[::1] target         # scratch, by label
    cdef const int64_t* order       # the order of the pass
    cdef Py_ssize_t n_order
    cdef Py_ssize_t at              # how much of it has been seen

    def __init__(self, Gram gram not None, y, C, Py_ssize_t n_labels, *, double cache_size=200.0, uint64_t seed=0):
        n = gram.n_rows
        self.n_samples, self.n_labels = n, n_labels
        self.y, self.box = np.array(y, dtype=np.int32), np.array(C, dtype=np.float64)
        self.cache = RowCache(gram, cache_size)
        self.cache.restart(np.arange(n))
        self.beta = np.zeros((n_labels, n))
        self.g = self.gradient_of(np.asarray(self.beta))
        self.target = np.empty(n_labels)
        random_seed(&self.random, seed)

    cdef int expect(self, const int64_t* order, Py_ssize_t n) except -1:
        self.order, self.n_order, self.at = order, n, 0
        return 0

    cdef int solve_example(self, Py_ssize_t i) except -1 nogil:
        """Solve the dual restricted to example i, if it is violated enough."""
        cdef Py_ssize_t label, j
        cdef const float* row
        cdef double* g
        cdef double step
        self.n_visits += 1
        self.at += 1
        if self.violation(i) <= self.tau:
            return 0
        if self.cache.place[i] < 0:
            self.look_ahead(i)
        row = self.cache.row(i)
        self.project(i)
        for label in range(self.n_labels):
            step = self.target[label] - self.beta[label, i]
            if step == 0.0:
                continue
            self.dual += step * (self.g[label, i] - 0.5 * step * self.cache.diagonal[i])
            self.n_vectors += (self.target[label] != 0.0) - (self.beta[label, i] != 0.0)
            self.beta[label, i] = self.target[label]
            g = &self.g[label, 0]
            for j in range(self.n_samples):
                g[j] -= step * row[j]
        return 0

    cdef int look_ahead(self, Py_ssize_t i) except -1 nogil:
        """Have the rows of the next examples that are violated too, from one product."""
        cdef int64_t slots[16]
        cdef Py_ssize_t n = 1, k
        slots[0] = i
        for k in range(self.at, self.n_order):
            if n == 16:
                break
            if self.cache.place[self.order[k]] < 0 and self.violation(self.order[k]) > self.tau:
                slots[n] = self.order[k]
                n += 1
        return self.cache.fetch(slots, n)

    cdef double violation(self, Py_ssize_t i) noexcept nogil:
        """max { g(y) : beta^y < C delta(y, y_i) } - min g; 0 for an example of weight 0."""
        cdef Py_ssize_t label
        cdef double high = -INFINITY, low = INFINITY
        if self.box[i] == 0.0:
            return 0.0
        for label in range(self.n_labels):
            low = min(low, self.g[label, i])
            if self.g[label, i] > high and self.beta[label, i] < (self.box[i] if label == self.y[i] else 0.0):
                high = self.g[label, i]
        return high - low

    cdef void project(self, Py_ssize_t i) noexcept nogil:
        """target = the optimum of the dual restricted to beta_i."""
        cdef Py_ssize_t label, m, before = self.n_labels + 1, worst = 0
        cdef double k = self.cache.diagonal[i], theta = INFINITY, total, bound
        if k <= 0.0:
            # A linear function, or a convex one: its maximum is at a corner, C from the worst label to the true one.
            for label in range(self.n_labels):
                self.target[label] = 0.0
                if self.g[label, i] < self.g[worst, i]:
                    worst = label
            self.target[worst] -= self.box[i]
            self.target[self.y[i]] += self.box[i]
            return
        for label in range(self.n_labels):
            bound = self.box[i] if label == self.y[i] else 0.0
            self.target[label] = k * (self.beta[label, i] - bound) + self.g[label, i]
        while True:
            total, m = k * self.box[i], 0
            for label in range(self.n_labels):
                if self.target[label] < theta:
                    total += self.target[label]
                    m += 1
            if m >= before or m == 0:   # by rounding one may come back, or none be left
                break
            before, theta = m, total / m
        for label in range(self.n_labels):
            bound = self.box[i] if label == self.y[i] else 0.0
            self.target[label] = bound + min(0.0, (self.target[label] - theta) / k)

    def worst(self):
        """The largest violation of any example."""
        cdef Py_ssize_t i
        cdef double worst = 0.0
        for i in range(self.n_samples):
            worst = max(worst, self.violation(i))
        return worst

    def settle(self):
        """Recompute the dual objective from coefficients and derivatives, 1/2 sum beta (g + delta), and return it."""
        beta, g = np.asarray(self.beta), np.asarray(self.g)
        true = beta[np.asarray(self.y), np.arange(self.n_samples)]
        self.dual = 0.5 * float((beta * g).sum() + true.sum())
        return self.dual

    def certify(self):
        """``(primal, dual, 1/2 |w|^2)`` from the gradient: no kernel value is computed."""
        g, at = np.asarray(self.g), np.arange(self.n_samples)
        y, box = np.asarray(self.y), np.asarray(self.box)
        linear = float(np.asarray(self.beta)[y, at].sum())
        norm = linear - self.settle()
        # Margins 1 + S(y) - S(y_i) of all labels are g(y_i) - g(y).
        return float(box @ np.maximum(g[y, at] - g.min(axis=0), 0.0)) + norm, self.dual, norm

    def gradient_of(self, beta):
        """delta(y, y_i) - sum_j beta_j^y k(x_j, x_i), array (n_labels, n_samples)."""
        g = np.zeros_like(beta)
        g[np.asarray(self.y), np.arange(self.n_samples)] = 1.0
        support = np.flatnonzero(beta.any(axis=0))
        for first in range(0, len(support), ROWS):
            part = support[first:first + ROWS]
            g -= beta[:, part] @ self.cache.rows(part).astype(np.float64)
        return g

    def get_state(self):
        """Return the state as a dict of arrays; training that resumes from it gives bit-identical results."""
        return {
            "random": self.random_words(),
            "counters": np.array([self.n_argmax, self.n_visits, *self.cache.get_counters()], dtype=np.int64),
            "beta": np.array(self.beta), "gradient": np.array(self.g),
        }

    def set_state(self, state, *, adapt=False):
        """Restore the arrays returned by `get_state`; see `WeightState.set_state`."""
        beta, g, counters = state["beta"].copy(), state["gradient"].copy(), state["counters"]
        box, own = np.asarray(self.box), (np.asarray(self.y), np.arange(self.n_samples))
        total = beta[own]
        too_large = total > box * (1.0 + 1e-9)
        if adapt:
            share = np.divide(box, total, out=np.zeros_like(box), where=too_large & (box > 0.0))
            too_large |= (box == 0.0) & beta.any(axis=0)    # if only by the rounding of a sum that is 0
            beta[:, too_large] *= share[too_large]
        others = beta.copy()
        others[own] = 0.0
        if (too_large.any() and not adapt) or (others > 0.0).any() or (np.abs(beta.sum(axis=0)) > 1e-6 * box).any():
            raise ValueError("array 'beta' of the training state is not feasible")
        self.beta, self.g = beta, self.gradient_of(beta) if too_large.any() else g
        self.n_vectors = np.count_nonzero(beta)
        self.set_random(state["random"])
        self.n_argmax, self.n_visits = counters[:2]
        self.cache.set_counters(counters[2:])
        self.settle()

    def coefficients(self):
        """As `KernelDual.coefficients`."""
        beta, g = np.asarray(self.beta).T, np.asarray(self.g).T
        members = np.flatnonzero(beta.any(axis=1))
        slots, labels = np.nonzero(beta[members])
        at = members[slots], labels
        return members, slots, labels.astype(np.int32), beta[at], g[at]
