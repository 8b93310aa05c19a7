"""The multiclass kernel perceptron, plain, averaged and on a budget (thesis, algorithms 2 and 4; Freund and Schapire
1998; Crammer, Kandola and Singer 2004).
"""

from libc.math cimport INFINITY

import numpy as np

from structsvm._random cimport random_seed
from structsvm._typedefs cimport int32_t, int64_t, uint64_t
from structsvm.dual._state cimport State
from structsvm.kernel._expansion cimport ClassVectors, Expansion, PatternVectors
from structsvm.kernel._kernels cimport Gram
from structsvm.kernel._row_cache cimport RowCache

from structsvm.kernel._expansion import check_vectors


cdef class KernelPerceptronState(State):
    """An expansion that grows by an example whenever its class is not ahead of all others by more than a margin.

    The size of an update is the weight of the example. With t visits before it, one of size d adds t d to a second
    number u of its vector, and after T visits the average of the expansions after each of them has the coefficients
    beta - u / T.

    On a budget, whenever there is one support pattern too many, the one leaves whose class would be farthest ahead
    without it. For that the scores of all of them are kept up to date.

    Parameters
    ----------
    gram, y, n_labels, cache_size, seed : see `KernelDual`
    weight : ndarray of shape (n_samples,), optional
        Length of each example's steps; None: 1.
    margin : float
    budget : int
        Most support patterns; 0: any number.
    """

    kind = "kernel_perceptron"
    steps = frozenset({"subgradient_step"})

    cdef readonly RowCache cache
    cdef readonly Expansion vectors     # with u in the place of derivatives
    cdef readonly Py_ssize_t n_labels
    cdef int32_t[::1] y
    cdef double[::1] weight
    cdef double[::1] score
    cdef double margin
    cdef Py_ssize_t budget
    cdef readonly double[:, ::1] own     # (budget + 1, n_labels): on a budget, the scores of the patterns by slot

    def __init__(self, Gram gram not None, y, Py_ssize_t n_labels, weight=None, *, double margin=0.0,
                 Py_ssize_t budget=0, double cache_size=200.0, uint64_t seed=0):
        self.n_samples, self.n_labels = gram.n_rows, n_labels
        self.y = np.array(y, dtype=np.int32)
        self.weight = np.ones(gram.n_rows) if weight is None else np.array(weight, dtype=np.float64)
        if self.weight.shape[0] != gram.n_rows:
            raise ValueError(f"weight has {self.weight.shape[0]} entries for {gram.n_rows} examples")
        self.cache = RowCache(gram, cache_size)
        self.vectors = Expansion(n_labels, gram.n_rows)
        self.score = np.empty(n_labels)
        self.margin, self.budget = margin, budget
        self.own = np.zeros((min(budget, gram.n_rows) + 1, n_labels))
        random_seed(&self.random, seed)

    cdef int expect(self, const int64_t* order, Py_ssize_t n) except -1:
        self.cache.expect(order, n)
        return 0

    cdef int subgradient_step(self, Py_ssize_t i) except -1 nogil:
        """Predict; within the margin move the example's weight from the best other label to the true one.

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
        if best < 0 or self.score[true] - self.score[best] > self.margin or self.weight[i] == 0.0:
            return 0
        if slot < 0:
            slot = self.cache.n_members
            self.cache.enter(b)
            if self.budget > 0:
                for label in range(self.n_labels):
                    self.own[slot, label] = self.score[label]
        self.change(slot, true, self.weight[i])
        self.change(slot, best, -self.weight[i])
        return self.shrink()

    cdef int change(self, Py_ssize_t slot, int32_t label, double step) except -1 nogil:
        cdef int32_t place = self.vectors.find(slot, label)
        cdef ClassVectors* c = &self.vectors.classes[label]
        if place < 0:
            place = self.vectors.add(slot, label, 0.0)
        c.beta[place] += step
        c.g[place] += step * (self.n_visits - 1)
        return self.spread(slot, label, step) if self.budget > 0 else 0

    cdef int spread(self, Py_ssize_t slot, int32_t label, double step) except -1 nogil:
        """Bring the patterns' scores of a label up to date with a change of one coefficient."""
        cdef Py_ssize_t s
        cdef const float* row = self.cache.row(slot)
        for s in range(self.cache.n_members):
            self.own[s, label] += step * row[s]
        return 0

    cdef int shrink(self) except -1 nogil:
        """Remove patterns until the budget is kept."""
        cdef Py_ssize_t slot, last
        cdef PatternVectors* p
        cdef int32_t label
        while 0 < self.budget < self.cache.n_members:
            slot = self.spare()
            p = &self.vectors.patterns[slot]
            while p.n > 0:
                label = p.label[p.n - 1]
                self.spread(slot, label, -self.vectors.classes[label].beta[p.place[p.n - 1]])
                self.vectors.remove(slot, label)
            self.cache.leave(slot)
            last = self.cache.n_members
            if slot != last:
                self.vectors.move(last, slot)
                for label in range(self.n_labels):
                    self.own[slot, label] = self.own[last, label]
        return 0

    cdef Py_ssize_t spare(self) noexcept nogil:
        """The pattern whose class is farthest ahead of all others without its own vectors."""
        cdef Py_ssize_t s, k, label, found = 0
        cdef PatternVectors* p
        cdef int32_t true
        cdef double rival, farthest = -INFINITY
        for s in range(self.cache.n_members):
            true = self.y[self.cache.member[s]]
            p = &self.vectors.patterns[s]
            for label in range(self.n_labels):
                self.score[label] = self.own[s, label]
            for k in range(p.n):
                self.score[p.label[k]] -= self.vectors.classes[p.label[k]].beta[p.place[k]] * self.cache.diagonal[s]
            rival = -INFINITY
            for label in range(self.n_labels):
                if label != true and self.score[label] > rival:
                    rival = self.score[label]
            if self.score[true] - rival > farthest:
                found, farthest = s, self.score[true] - rival
        return found

    def settle(self):
        """Put the vectors of each class in the order of their slots, as `set_state` does."""
        self.lay_out(*self.vectors.listed())

    def restart(self, members, slots, labels, beta, u=None):
        """Go on from an expansion: arrays as `coefficients` returns them, and what the average takes off beta."""
        slots, labels = np.ascontiguousarray(slots, dtype=np.int64), np.ascontiguousarray(labels, dtype=np.int32)
        check_vectors(members, slots, labels, self.n_samples, self.n_labels)
        self.cache.restart(members)
        self.lay_out(slots, labels, beta, np.zeros_like(beta) if u is None else u)

    def lay_out(self, slots, labels, beta, u):
        cdef Py_ssize_t s
        self.vectors = Expansion(self.n_labels, self.n_samples)
        self.vectors.fill(slots, labels, beta, u)
        if self.budget > 0:
            self.own = np.zeros((max(self.cache.n_members, min(self.budget, self.n_samples)) + 1, self.n_labels))
            for s in range(self.cache.n_members):
                self.vectors.sums(self.cache.row(s), &self.own[s, 0])
            self.shrink()

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
        counters = state["counters"]
        self.restart(state["support"], state["vector_slot"], state["vector_label"], *state["vector_numbers"])
        self.set_random(state["random"])
        self.n_argmax, self.n_visits = counters[:2]
        self.cache.set_counters(counters[2:])

    @property
    def n_vectors(self):
        return self.vectors.n_vectors

    def coefficients(self, average=False):
        """``(members, slots, labels, beta)`` as of `KernelDual.coefficients`, of the last expansion or the average."""
        slots, labels, beta, u = self.vectors.listed()
        return self.cache.members, slots, labels, beta - u / self.n_visits if average and self.n_visits else beta
