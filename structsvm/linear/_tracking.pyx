"""Tracking the optimum of a stream by averaged dual coordinate ascent, linear kernel (thesis, section 4.4).

After t examples the machine is that of

    P_t(w) = 1/2 |w|^2 + C sum_{i <= t} max(0, 1 - y_i <w, x_i>),  D_t(alpha) = sum alpha_i - 1/2 |w(alpha)|^2,

w(alpha) = sum_i alpha_i y_i x_i, 0 <= alpha_i <= C. A coordinate ascent moves alpha_i by

    a = max(-alpha_i, min(C - alpha_i, g_i / |x_i|^2)),  g_i = 1 - y_i <w, x_i>,

and gains a (g_i - a |x_i|^2 / 2). For each example, Process moves its own coefficient (algorithm 16, not 15), then come
K ascents on random examples so far; the classifier is the mean of w over the K points.
"""

from cpython.exc cimport PyErr_CheckSignals

import numpy as np

from structsvm._random cimport Random, random_below, random_seed
from structsvm._typedefs cimport int64_t, uint64_t

from structsvm.dual._weights import checked_array, checked_random


cdef class Tracker:
    """The dual point of all examples so far, and the averaged classifier after the last of them.

    Parameters
    ----------
    n_features : int
    C : float
    n_reprocess : int
        K.
    process : bool
        Algorithm 16, or 15.
    seed : int

    Attributes
    ----------
    dual : float
        D_t at the last point.
    gained : float
        What Process steps have gained in all: delta_T of theorem 7.
    n_steps : int
        Coordinate ascents.
    """

    cdef readonly Py_ssize_t n_features
    cdef public double C
    cdef public int n_reprocess
    cdef public bint process
    cdef readonly double dual
    cdef readonly double gained
    cdef readonly int64_t n_steps
    cdef readonly Py_ssize_t n_seen
    cdef Random random
    cdef double[:, ::1] X               # rows y_i x_i; n_seen used
    cdef double[::1] square             # |x_i|^2
    cdef double[::1] alpha
    cdef double[::1] box                # C of each example
    cdef double[::1] w
    cdef double[::1] mean

    def __init__(self, Py_ssize_t n_features, double C, *, int n_reprocess=1, bint process=True, uint64_t seed=0):
        self.n_features, self.C, self.n_reprocess, self.process = n_features, C, n_reprocess, process
        self.w, self.mean = np.zeros(n_features), np.zeros(n_features)
        self.reserve(64)
        random_seed(&self.random, seed)

    cdef reserve(self, Py_ssize_t n):
        """Room for n examples."""
        X, numbers = np.empty((n, self.n_features)), np.empty((3, n))
        if self.n_seen > 0:
            X[:self.n_seen] = self.X[:self.n_seen]
            numbers[0, :self.n_seen] = self.square[:self.n_seen]
            numbers[1, :self.n_seen] = self.alpha[:self.n_seen]
            numbers[2, :self.n_seen] = self.box[:self.n_seen]
        self.X, self.square, self.alpha, self.box = X, numbers[0], numbers[1], numbers[2]

    def extend(self, const double[:, ::1] X, const double[::1] sign, const double[::1] weight):
        """See examples, one after the other.

        Parameters
        ----------
        X : ndarray of shape (n, n_features)
        sign : ndarray of shape (n,)
            1 or -1.
        weight : ndarray of shape (n,)
            Factor on C.
        """
        cdef Py_ssize_t i, k, t
        if X.shape[1] != self.n_features or sign.shape[0] != X.shape[0] or weight.shape[0] != X.shape[0]:
            raise ValueError(f"examples of shape ({X.shape[0]}, {X.shape[1]}) do not fit {self.n_features} features")
        while self.n_seen + X.shape[0] > self.X.shape[0]:
            self.reserve(2 * self.X.shape[0])
        for i in range(X.shape[0]):
            with nogil:
                t = self.n_seen
                self.square[t], self.alpha[t], self.box[t] = 0.0, 0.0, weight[i] * self.C
                for k in range(self.n_features):
                    self.X[t, k] = sign[i] * X[i, k]
                    self.square[t] += X[i, k] * X[i, k]
                self.n_seen = t + 1
                if self.process:
                    self.gained += self.ascend(t)
                self.reprocess()
            if i % 256 == 0:
                PyErr_CheckSignals()

    cdef void reprocess(self) noexcept nogil:
        """K ascents, and the mean of w after them: mean <- (k - 1) / k mean + w / k."""
        cdef Py_ssize_t k, f
        for k in range(1, self.n_reprocess + 1):
            self.ascend(random_below(&self.random, self.n_seen))
            for f in range(self.n_features):
                self.mean[f] = self.w[f] if k == 1 else self.mean[f] + (self.w[f] - self.mean[f]) / k

    cdef double ascend(self, Py_ssize_t i) noexcept nogil:
        """One coordinate ascent (4.17); returns what it gains."""
        cdef Py_ssize_t f
        cdef double slope = 1.0, step, gain
        self.n_steps += 1
        for f in range(self.n_features):
            slope -= self.w[f] * self.X[i, f]
        step = self.box[i] - self.alpha[i]
        if self.square[i] * step > slope:
            step = slope / self.square[i]
        step = max(-self.alpha[i], step)
        for f in range(self.n_features):
            self.w[f] += step * self.X[i, f]
        self.alpha[i] = min(max(self.alpha[i] + step, 0.0), self.box[i])
        gain = step * (slope - 0.5 * step * self.square[i])
        self.dual += gain
        return gain

    def get_state(self):
        """Return the state as a dict of arrays; a stream that resumes from it gives bit-identical results."""
        cdef Py_ssize_t n = self.n_seen
        return {
            "examples": np.array(self.X[:n]),
            "numbers": np.stack([self.square[:n], self.alpha[:n], self.box[:n]]),
            "weights": np.stack([self.w, self.mean]),
            "random": np.array([self.random.s[k] for k in range(4)], dtype=np.uint64),
            "steps": np.array([self.n_steps]), "gains": np.array([self.dual, self.gained]),
        }

    def set_state(self, state):
        """Restore the arrays returned by `get_state`. Raises ValueError if they belong to other features."""
        cdef int k
        numbers = checked_array(state, "numbers", np.float64, (3, None))
        cdef Py_ssize_t n = numbers.shape[1]
        X = checked_array(state, "examples", np.float64, (n, self.n_features))
        words = checked_random(state)
        if not ((0.0 <= numbers[0]).all() and (0.0 <= numbers[1]).all() and (numbers[1] <= numbers[2]).all()):
            raise ValueError("array 'numbers' of the training state has squares below 0, or alphas outside their box")
        weights = checked_array(state, "weights", np.float64, (2, self.n_features))
        steps = checked_array(state, "steps", np.int64, (1,))[0]
        if steps < 0:
            raise ValueError(f"array 'steps' of the training state is {steps}, and must be >= 0")
        self.dual, self.gained = checked_array(state, "gains", np.float64, (2,))
        self.n_steps = steps
        self.n_seen = 0
        self.reserve(max(n, 64))
        np.asarray(self.X)[:n] = X
        np.asarray(self.square)[:n], np.asarray(self.alpha)[:n], np.asarray(self.box)[:n] = numbers
        self.w, self.mean = np.array(weights)
        for k in range(4):
            self.random.s[k] = words[k]
        self.n_seen = n

    def __reduce__(self):
        return Tracker, (self.n_features, self.C), {
            "n_reprocess": self.n_reprocess, "process": self.process, "state": self.get_state()}

    def __setstate__(self, kept):
        self.n_reprocess, self.process = kept["n_reprocess"], kept["process"]
        self.set_state(kept["state"])

    @property
    def coef(self):
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
