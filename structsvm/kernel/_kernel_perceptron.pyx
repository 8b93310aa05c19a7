"""The multiclass kernel perceptron, plain and averaged (thesis, algorithm 2; Freund and Schapire 1998)."""

import numpy as np

from structsvm._random cimport random_seed
from structsvm._typedefs cimport int32_t, int64_t, uint64_t
from structsvm.dual._state cimport State
from structsvm.kernel._expansion cimport ClassVectors, Expansion
from structsvm.kernel._kernels cimport Gram
from structsvm.kernel._row_cache cimport RowCache

from structsvm.dual._weights import checked_counters, checked_random
from structsvm.kernel._expansion import check_vectors, checked_vectors


cdef class KernelPerceptronState(State):
    """An expansion that grows by an example whenever it is predicted wrongly.

    The size of an update is the weight of the example. With t visits before it, one of size d adds t d to a second
    number u of its vector, and after T visits the average of the expansions after each of them has the coefficients
    beta - u / T.

    Parameters
    ----------
    gram, y, n_labels, cache_size, seed : see `KernelDual`
    weight : ndarray of shape (n_samples,), optional
        Length of each example's steps; None: 1.
    """

    kind = "kernel_perceptron"
    steps = frozenset({"subgradient_step"})

    cdef readonly RowCache cache
    cdef readonly Expansion vectors     # with u in the place of derivatives
    cdef readonly Py_ssize_t n_labels
    cdef int32_t[::1] y
    cdef double[::1] weight
    cdef double[::1] score

    def __init__(self, Gram gram not None, y, Py_ssize_t n_labels, weight=None, *, double cache_size=200.0,
                 uint64_t seed=0):
        self.n_samples, self.n_labels = gram.n_rows, n_labels
        self.y = np.array(y, dtype=np.int32)
        self.weight = np.ones(gram.n_rows) if weight is None else np.array(weight, dtype=np.float64)
        if self.weight.shape[0] != gram.n_rows:
            raise ValueError(f"weight has {self.weight.shape[0]} entries for {gram.n_rows} examples")
        self.cache = RowCache(gram, cache_size)
        self.vectors = Expansion(n_labels, gram.n_rows)
        self.score = np.empty(n_labels)
        random_seed(&self.random, seed)

    cdef int expect(self, const int64_t* order, Py_ssize_t n) except -1:
        self.cache.expect(order, n)
        return 0

    cdef int subgradient_step(self, Py_ssize_t i) except -1 nogil:
        """Predict; on a mistake move the example's weight from the predicted label to the true one.

        Ties are mistakes.
        """
        cdef Py_ssize_t slot = self.cache.slot[i], label, b = -1
        cdef int32_t true = self.y[i], best = -1
        if slot < 0:
            b = self.cache.find_fresh(i)
        self.vectors.sums(self.cache.fresh_row(b) if slot < 0 else self.cache.row(slot), &self.score[0])
        self.n_argmax += 1
        self.n_visits += 1
        for label in range(self.n_labels):
            if label != true and (best < 0 or self.score[label] > self.score[best]):
                best = <int32_t>label
        if best < 0 or self.score[best] < self.score[true] or self.weight[i] == 0.0:
            return 0
        if slot < 0:
            slot = self.cache.n_members
            self.cache.enter(b)
        self.change(slot, true, self.weight[i])
        return self.change(slot, best, -self.weight[i])

    cdef int change(self, Py_ssize_t slot, int32_t label, double step) except -1 nogil:
        cdef int32_t place = self.vectors.find(slot, label)
        cdef ClassVectors* c = &self.vectors.classes[label]
        if place < 0:
            place = self.vectors.add(slot, label, 0.0)
        c.beta[place] += step
        c.g[place] += step * (self.n_visits - 1)
        return 0

    def settle(self):
        """Put the vectors of each class in the order of their slots, as `set_state` does."""
        self.lay_out(*self.vectors.listed())

    def restart(self, members, slots, labels, beta):
        """Go on from an expansion: arrays as `coefficients` returns them."""
        slots, labels = np.ascontiguousarray(slots, dtype=np.int64), np.ascontiguousarray(labels, dtype=np.int32)
        check_vectors(members, slots, labels, self.n_samples, self.n_labels)
        self.cache.restart(members)
        self.lay_out(slots, labels, beta, np.zeros_like(beta))

    def lay_out(self, slots, labels, beta, u):
        self.vectors = Expansion(self.n_labels, self.n_samples)
        self.vectors.fill(slots, labels, beta, u)

    def get_state(self):
        """Return the state as a dict of arrays; training that resumes from it gives bit-identical results."""
        slots, labels, beta, u = self.vectors.listed()
        return {
            "random": self.random_words(),
            "counters": np.array([self.n_argmax, self.n_visits, *self.cache.get_counters()], dtype=np.int64),
            "support": self.cache.members, "vector_slot": slots, "vector_label": labels,
            "vector_numbers": np.stack([beta, u]),
        }

    def set_state(self, state, *, adapt=False):
        """Restore the arrays returned by `get_state`; see `WeightState.set_state`."""
        words, counters = checked_random(state), checked_counters(state, 5)
        members, *vectors = checked_vectors(state, self.n_samples, self.n_labels)
        self.cache.restart(members)
        self.lay_out(*vectors)
        self.set_random(words)
        self.n_argmax, self.n_visits = counters[:2]
        self.cache.set_counters(counters[2:])

    @property
    def n_vectors(self):
        return self.vectors.n_vectors

    def coefficients(self, average=False):
        """``(members, slots, labels, beta)`` as of `KernelDual.coefficients`, of the last expansion or the average."""
        slots, labels, beta, u = self.vectors.listed()
        return self.cache.members, slots, labels, beta - u / self.n_visits if average and self.n_visits else beta
