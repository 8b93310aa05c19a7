"""Tracking the optimum of a stream by averaged dual coordinate ascent, linear kernel (thesis, section 4.4).

After t examples the machine is that of

    P_t(w) = 1/2 |w|^2 + sum_{i <= t} C_i max(0, 1 - y_i <w, x_i>),  D_t(alpha) = sum alpha_i - 1/2 |w(alpha)|^2,

w(alpha) = sum_i alpha_i y_i x_i, 0 <= alpha_i <= C_i. A coordinate ascent moves alpha_i by

    a = max(-alpha_i, min(C_i - alpha_i, g_i / |x_i|^2)),  g_i = 1 - y_i <w, x_i>,

and gains a (g_i - a |x_i|^2 / 2). For each example, Process moves its own coefficient (algorithm 16, not 15), then come
K ascents on random examples so far; the classifier is the mean of w over the K points.
"""

from libc.math cimport isfinite

import numpy as np

from structsvm._random cimport random_below, random_seed
from structsvm._typedefs cimport uint64_t
from structsvm.dual._state cimport State


cdef class TrackingState(State):
    """The dual point of the examples seen so far, and the mean of w since the last of them was seen.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features), float64
    y : ndarray of shape (n_samples,)
        1 for the examples of the second label, 0 for those of the first.
    C : ndarray of shape (n_samples,)
        Weight of each example's slack.
    first : int
        Examples seen before, which passes do not visit; their coefficients come with `set_state`. The others are
        visited in their order.
    process : bool
        Algorithm 16, or 15.
    seed : int

    Attributes
    ----------
    n_seen : int
    gained : float
        What Process steps have gained in all: delta_T of theorem 7.
    """

    kind = "tracking"
    steps = frozenset({"process_new", "process_old"})

    cdef readonly Py_ssize_t n_seen
    cdef readonly double gained
    cdef bint process
    cdef int n_points               # over which the mean is taken
    cdef const double[:, ::1] X
    cdef double[::1] sign
    cdef double[::1] box
    cdef double[::1] square         # |x_i|^2
    cdef double[::1] alpha
    cdef double[::1] w
    cdef double[::1] mean

    def __init__(self, const double[:, ::1] X, y, C, *, Py_ssize_t first=0, bint process=True, uint64_t seed=0):
        cdef Py_ssize_t n = X.shape[0], d = X.shape[1], i
        self.X, self.n_samples, self.groups, self.process = X, n, np.array([first, n]), process
        self.sign, self.box = np.where(np.asarray(y) == 1, 1.0, -1.0), np.array(C, dtype=np.float64)
        if not 0 <= first <= n or self.sign.shape[0] != n or self.box.shape[0] != n:
            raise ValueError(f"{self.sign.shape[0]} labels, {self.box.shape[0]} weights and {first} examples seen "
                             f"before do not fit {n} examples")
        self.square, self.alpha, self.w, self.mean = np.zeros(n), np.zeros(n), np.zeros(d), np.zeros(d)
        for i in range(first, n):
            self.square[i] = dot(&X[i, 0], &X[i, 0], d) if d > 0 else 0.0
            if not isfinite(self.square[i]):
                raise ValueError("the squares of X overflow; scale the features down")
        random_seed(&self.random, seed)

    cdef int process_new(self, Py_ssize_t i) except -1 nogil:
        """See an example; by algorithm 16, ascend on its coefficient."""
        self.n_seen, self.n_points = max(self.n_seen, i + 1), 0
        self.n_visits += 1
        if self.process:
            self.gained += self.ascend(i)
        return 0

    cdef int process_old(self) except -1 nogil:
        """Ascend on a random example; mean <- (k - 1) / k mean + w / k."""
        cdef Py_ssize_t f
        if self.n_seen == 0:
            return 0
        self.ascend(random_below(&self.random, self.n_seen))
        self.n_points += 1
        for f in range(self.w.shape[0]):
            self.mean[f] = self.w[f] if self.n_points == 1 else \
                self.mean[f] + (self.w[f] - self.mean[f]) / self.n_points
        return 0

    cdef double ascend(self, Py_ssize_t i) noexcept nogil:
        """One coordinate ascent (4.17); returns what it gains."""
        cdef Py_ssize_t f
        cdef double slope = 1.0, step, gain
        self.n_argmax += 1
        for f in range(self.w.shape[0]):
            slope -= self.sign[i] * self.w[f] * self.X[i, f]
        step = self.box[i] - self.alpha[i]
        if self.square[i] * step > slope:
            step = slope / self.square[i]
        step = max(-self.alpha[i], step)
        for f in range(self.w.shape[0]):
            self.w[f] += self.sign[i] * step * self.X[i, f]
        self.alpha[i] = min(max(self.alpha[i] + step, 0.0), self.box[i])
        gain = step * (slope - 0.5 * step * self.square[i])
        self.dual += gain
        return gain

    def settle(self):
        """The dual objective."""
        return self.dual

    def primal(self):
        """P_t at the mean."""
        cdef Py_ssize_t i, d = self.w.shape[0]
        cdef double total = 0.0
        with nogil:
            if d > 0:
                total = 0.5 * dot(&self.mean[0], &self.mean[0], d)
            for i in range(self.n_seen):
                total += self.box[i] * max(0.0, 1.0 - (self.sign[i] * dot(&self.mean[0], &self.X[i, 0], d)
                                                       if d > 0 else 0.0))
        return total

    def get_state(self):
        """Return the state as a dict of arrays; training that resumes from it gives bit-identical results."""
        cdef Py_ssize_t n = self.n_seen
        return {
            "numbers": np.stack([self.square[:n], self.alpha[:n], self.box[:n]]),
            "weights": np.stack([self.w, self.mean]),
            "random": self.random_words(),
            "steps": np.array([self.n_argmax, self.n_visits]), "gains": np.array([self.dual, self.gained]),
        }

    def set_state(self, state, *, adapt=False):
        """Restore the arrays returned by `get_state`; see `WeightState.set_state`."""
        numbers = state["numbers"]
        n = numbers.shape[1]
        if n > self.n_samples:
            raise ValueError(f"array 'numbers' of the training state is of {n} examples, more than {self.n_samples}")
        square, alpha, box = numbers
        if (alpha > box).any():
            raise ValueError("array 'numbers' of the training state has alphas outside their box")
        fitting = np.minimum(alpha, self.box[:n])
        if not (adapt or (fitting == alpha).all()):
            raise ValueError("array 'numbers' of the training state has alphas above this C")
        np.asarray(self.square)[:n], np.asarray(self.alpha)[:n] = square, fitting
        self.w, self.mean = state["weights"].copy()
        self.dual, self.gained = state["gains"]
        if (fitting != alpha).any():
            self.w = (fitting * self.sign[:n]) @ np.asarray(self.X)[:n]
            self.dual = fitting.sum() - 0.5 * dot(&self.w[0], &self.w[0], self.w.shape[0])
        self.set_random(state["random"])
        self.n_seen, (self.n_argmax, self.n_visits) = n, state["steps"]

    @property
    def weights(self):
        """The averaged classifier: array (n_features,)."""
        return np.array(self.mean)

    @property
    def last(self):
        """w at the last dual point."""
        return np.array(self.w)

    @property
    def dual_coef(self):
        """alpha: array (n_seen,)."""
        return np.array(self.alpha[:self.n_seen])


cdef double dot(const double* a, const double* b, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t k
    cdef double total = 0.0
    for k in range(n):
        total += a[k] * b[k]
    return total
