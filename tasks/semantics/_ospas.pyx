"""OSPAS, the Online Semantic Parser for Ambiguous Supervision (Bordes 2010, algorithm 24): words labelled from bags.

A sentence's words are labelled one by one, each with the label of its highest score. A label that is in the word's
bag leaves the bag, and the word is done; any other is a violation, and a step of algorithm 23 follows, on the set of
labels that the bag still holds. Training ends a sentence when every word that is left has been tried in vain.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint64_t

import numpy as np

from structsvm._random cimport Random, random_below, random_seed
from structsvm._typedefs cimport array_data

cdef extern from "bags.h" nogil:
    ctypedef struct bags_item:
        double score
        int32_t label
    void bags_scores(const double* w, int64_t K, const int32_t* index, const double* value, int64_t n, double* out)
    double bags_corner(const double* score, int64_t K, const int32_t* bag, int64_t m, bags_item* items,
                       int32_t* count, int64_t* pairs)

cdef enum Strategy:
    RANDOM          # any word that was not tried since the last success
    LEFT_RIGHT      # the next one to the right of the last, and round again
    ORDER_FREE      # the one whose best label has the highest score, the leftmost of several

STRATEGIES = {"random": RANDOM, "left_right": LEFT_RIGHT, "order_free": ORDER_FREE}

cdef Py_ssize_t LOOK = 64       # sentences between two looks at signals


cdef class Ospas:
    """Weights of labels for features, and the online algorithm that trains them.

    Parameters
    ----------
    n_features, n_labels : int
        Both may grow later (`resize`).
    C : float
        Upper bound of a step.
    strategy : {"random", "left_right", "order_free"}
        Which word is tried next.
    average : bool
        Keep the average of the weights over all words tried.
    seed : int
    """

    cdef double[:, ::1] w           # (n_features, n_labels)
    cdef double[:, ::1] u           # as w: the updates, each times the visits before it; empty without average
    cdef readonly Py_ssize_t n_features
    cdef readonly Py_ssize_t K
    cdef readonly int64_t n_visits  # words tried
    cdef readonly int64_t n_updates
    cdef double C
    cdef Strategy strategy
    cdef bint average
    cdef Random random
    # scratch
    cdef double[::1] score
    cdef int32_t[::1] count
    cdef int32_t[::1] candidates
    cdef object memory
    cdef bags_item* items
    cdef int64_t[::1] left          # words of the sentence that have no label yet
    cdef int32_t[::1] bag           # what each bag still holds of each of its labels

    def __init__(self, Py_ssize_t n_features, Py_ssize_t n_labels, *, double C=0.1, strategy="random",
                 bint average=False, uint64_t seed=0):
        self.C = C
        self.strategy = STRATEGIES[strategy]
        self.average = average
        self.w = self.u = np.zeros((0, 0))
        random_seed(&self.random, seed)
        self.resize(n_features, n_labels)

    def resize(self, Py_ssize_t n_features, Py_ssize_t n_labels):
        """Make room for new features and labels, which have weight 0."""
        if n_features < self.n_features or n_labels < self.K:
            raise ValueError(f"{n_features} features and {n_labels} labels are fewer than there were")
        if n_features == self.n_features and n_labels == self.K:
            return
        self.w = enlarged(self.w, n_features, n_labels)
        if self.average:
            self.u = enlarged(self.u, n_features, n_labels)
        self.n_features, self.K = n_features, n_labels
        self.score = np.empty(n_labels)
        self.count = np.empty(n_labels, dtype=np.int32)
        self.candidates = np.empty(n_labels, dtype=np.int32)
        self.memory = np.empty(n_labels * sizeof(bags_item), dtype=np.uint8)
        self.items = <bags_item*>array_data(self.memory)

    @property
    def weights(self):
        """Array (n_features, n_labels): the weights, or their average."""
        if not self.average or self.n_visits == 0:
            return np.array(self.w)
        return np.asarray(self.w) - np.asarray(self.u) / self.n_visits

    def scores(self, tokens):
        """Array (n_tokens, n_labels) of the labels' scores for each word."""
        return word_scores(tokens, self.weights if self.average else self.w)

    # ---- training -------------------------------------------------------------------------------

    def learn(self, tokens, const int64_t[::1] bag_of, const int64_t[::1] bag_indptr, const int32_t[::1] bag_labels,
              const int32_t[::1] bag_counts):
        """One pass over sentences in their order.

        Parameters
        ----------
        tokens : Tokens
            The words of the sentences.
        bag_of : array of shape (n_tokens,)
            The bag of each word; words of different sentences share none.
        bag_indptr : array of shape (n_bags + 1,)
        bag_labels, bag_counts : arrays of shape (n_entries,)
            Labels of each bag, ascending, and how many of each it holds.

        Returns
        -------
        labels : ndarray of shape (n_tokens,), int32
            The label that each word took from its bag, -1 for a word that found none.
        """
        cdef Rows rows = Rows(tokens)
        cdef const int64_t[::1] offsets = tokens.offsets
        cdef Py_ssize_t s, n_sentences = offsets.shape[0] - 1
        cdef int32_t[::1] labels = np.full(max(rows.n, 1), -1, dtype=np.int32)
        self.left = np.empty(max(int(np.diff(tokens.offsets).max(initial=0)), 1), dtype=np.int64)
        self.bag = np.array(bag_counts)
        if rows.n_features > self.n_features:
            raise ValueError(f"the tokens have {rows.n_features} features, the weights {self.n_features}")
        with nogil:
            for s in range(n_sentences):
                self.sentence(rows, offsets[s], offsets[s + 1], bag_of, bag_indptr, bag_labels, labels)
                if s % LOOK == 0:
                    with gil:
                        PyErr_CheckSignals()
        return np.asarray(labels)[:rows.n]

    cdef int sentence(self, Rows rows, Py_ssize_t begin, Py_ssize_t end, const int64_t[::1] bag_of,
                      const int64_t[::1] bag_indptr, const int32_t[::1] bag_labels,
                      int32_t[::1] labels) except -1 nogil:
        """Words left[0 .. n_left - 1] have no label; the first n_fresh of them were not tried since the last success.

        Left-right keeps the words in order and turns the list, so that the one to try next is always the first.
        """
        cdef Py_ssize_t n_left = end - begin, n_fresh = n_left, at, t, y
        for at in range(n_left):
            self.left[at] = begin + at
        while n_fresh > 0:
            at = self.choose(rows, n_fresh)
            t = self.left[at]
            y = self.best(rows, t)
            self.n_visits += 1
            if self.take(y, bag_indptr[bag_of[t]], bag_indptr[bag_of[t] + 1], bag_labels):
                labels[t] = <int32_t>y
                n_left -= 1
                self.drop(at, n_left)
                n_fresh = n_left
            else:
                self.step(rows, t, bag_indptr[bag_of[t]], bag_indptr[bag_of[t] + 1], bag_labels)
                n_fresh -= 1
                self.set_aside(at, n_fresh, n_left)
        return 0

    cdef Py_ssize_t choose(self, Rows rows, Py_ssize_t n_fresh) noexcept nogil:
        """Which of left[0 .. n_fresh - 1] to try."""
        cdef Py_ssize_t at, choice = 0
        cdef double value, highest = -INFINITY
        if self.strategy == RANDOM:
            return random_below(&self.random, n_fresh)
        if self.strategy == ORDER_FREE:
            for at in range(n_fresh):
                value = self.score[self.best(rows, self.left[at])]
                if value > highest or (value == highest and self.left[at] < self.left[choice]):
                    highest = value
                    choice = at
        return choice

    cdef void drop(self, Py_ssize_t at, Py_ssize_t n_left) noexcept nogil:
        """Word `at` is done; n_left words stay."""
        cdef Py_ssize_t k
        if self.strategy == LEFT_RIGHT:
            for k in range(at, n_left):
                self.left[k] = self.left[k + 1]
        else:
            self.left[at] = self.left[n_left]

    cdef void set_aside(self, Py_ssize_t at, Py_ssize_t n_fresh, Py_ssize_t n_left) noexcept nogil:
        """Word `at` has failed: behind the fresh ones with it."""
        cdef int64_t t = self.left[at]
        cdef Py_ssize_t k
        if self.strategy == LEFT_RIGHT:
            for k in range(n_left - 1):
                self.left[k] = self.left[k + 1]
            self.left[n_left - 1] = t
        else:
            self.left[at] = self.left[n_fresh]
            self.left[n_fresh] = t

    cdef Py_ssize_t best(self, Rows rows, Py_ssize_t t) noexcept nogil:
        """The label of the highest score, the first of several; fills `score`."""
        cdef Py_ssize_t k, y = 0
        bags_scores(&self.w[0, 0], self.K, rows.indices + rows.indptr[t], rows.values + rows.indptr[t],
                    rows.indptr[t + 1] - rows.indptr[t], &self.score[0])
        for k in range(1, self.K):
            if self.score[k] > self.score[y]:
                y = k
        return y

    cdef bint take(self, Py_ssize_t y, Py_ssize_t begin, Py_ssize_t end, const int32_t[::1] labels) noexcept nogil:
        """Lines 8 and 11: whether the bag holds y; then one of it leaves."""
        cdef Py_ssize_t e
        for e in range(begin, end):
            if labels[e] == y:
                if self.bag[e] == 0:
                    return False
                self.bag[e] -= 1
                return True
        return False

    cdef int step(self, Rows rows, Py_ssize_t t, Py_ssize_t begin, Py_ssize_t end,
                  const int32_t[::1] labels) except -1 nogil:
        """Algorithm 23 on the scores at hand; a bag without labels, or with all of them, says nothing."""
        cdef Py_ssize_t e, k, m = 0
        cdef int64_t pairs = 0
        cdef double loss, scale, norm = 0.0, square = 0.0, alpha, amount
        for e in range(begin, end):
            if self.bag[e] > 0:
                self.candidates[m] = labels[e]
                m += 1
        if m == 0 or m == self.K:
            return 0
        scale = 1.0 / (<double>m * (self.K - m))
        loss = scale * bags_corner(&self.score[0], self.K, &self.candidates[0], m, self.items, &self.count[0], &pairs)
        if loss != loss:
            with gil:
                raise ValueError("the scores of a word overflow; scale the features down")
        # |psi|^2 = scale^2 |x|^2 sum_k count_k^2
        for e in range(rows.indptr[t], rows.indptr[t + 1]):
            norm += rows.values[e] * rows.values[e]
        for k in range(self.K):
            square += <double>self.count[k] * self.count[k]
        if pairs == 0 or norm == 0.0:
            return 0
        alpha = min(self.C, loss / (scale * scale * norm * square))
        for e in range(rows.indptr[t], rows.indptr[t + 1]):
            amount = alpha * scale * rows.values[e]
            for k in range(self.K):
                self.w[rows.indices[e], k] += amount * self.count[k]
            if self.average:
                amount *= self.n_visits - 1
                for k in range(self.K):
                    self.u[rows.indices[e], k] += amount * self.count[k]
        self.n_updates += 1
        return 0

    # ---- going on -------------------------------------------------------------------------------

    def __reduce__(self):
        strategy = {code: name for name, code in STRATEGIES.items()}[self.strategy]
        options = {"C": self.C, "strategy": strategy, "average": self.average}
        return rebuild, (self.n_features, self.K, options, self.get_state())

    def get_state(self):
        """The state as a dict of arrays, enough to go on bit for bit (see `set_state`)."""
        cdef uint64_t[::1] words = np.empty(4, dtype=np.uint64)
        cdef int k
        for k in range(4):
            words[k] = self.random.s[k]
        state = {
            "weights": np.array(self.w),
            "random": np.asarray(words),
            "counters": np.array([self.n_visits, self.n_updates], dtype=np.int64),
        }
        if self.average:
            state["average_sum"] = np.array(self.u)
        return state

    def set_state(self, state):
        """Take over a dict of `get_state`; ValueError if it does not fit these features and labels."""
        cdef int k
        wanted = {"weights": (np.float64, (self.n_features, self.K)), "random": (np.uint64, (4,)),
                  "counters": (np.int64, (2,))}
        if self.average:
            wanted["average_sum"] = wanted["weights"]
        for name, (dtype, shape) in wanted.items():
            array = np.asarray(state.get(name))
            if array.dtype != dtype or array.shape != shape or not np.isfinite(array).all():
                raise ValueError(f"array {name!r} of the training state must be finite, {np.dtype(dtype)} and {shape}")
        words, counters = state["random"], state["counters"]
        if counters.min() < 0 or not words.any():
            raise ValueError("the counters or the random generator of the training state are not sound")
        self.w = np.array(state["weights"])
        if self.average:
            self.u = np.array(state["average_sum"])
        self.n_visits, self.n_updates = (int(c) for c in counters)
        for k in range(4):
            self.random.s[k] = words[k]


cdef class Rows:
    """The arrays of tokens, in C."""

    cdef object kept
    cdef const int64_t* indptr
    cdef const int32_t* indices
    cdef const double* values
    cdef Py_ssize_t n
    cdef Py_ssize_t n_features

    def __init__(self, tokens):
        values = np.ones(len(tokens.indices)) if tokens.values is None else tokens.values.astype(np.float64)
        self.kept = tokens, values
        self.n, self.n_features = tokens.n_tokens, tokens.n_features
        self.indptr = <const int64_t*>array_data(tokens.indptr)
        self.indices = <const int32_t*>array_data(tokens.indices)
        self.values = <const double*>array_data(values)


def rebuild(n_features, n_labels, options, state):
    """The inverse of `Ospas.__reduce__`."""
    learner = Ospas(n_features, n_labels, **options)
    learner.set_state(state)
    return learner


def enlarged(table, n_rows, n_columns):
    larger = np.zeros((n_rows, n_columns))
    old = np.asarray(table)
    larger[:old.shape[0], :old.shape[1]] = old
    return larger


def word_scores(tokens, const double[:, ::1] weights):
    """Array (n_tokens, n_labels) of the labels' scores for each word."""
    cdef Rows rows = Rows(tokens)
    cdef Py_ssize_t t, K = weights.shape[1]
    cdef double[:, ::1] out = np.empty((rows.n, K))
    if rows.n_features > weights.shape[0]:
        raise ValueError(f"the tokens have {rows.n_features} features, the weights {weights.shape[0]}")
    cdef const double* base = &weights[0, 0] if weights.shape[0] > 0 else NULL   # no features: no row is read
    with nogil:
        for t in range(rows.n):
            bags_scores(base, K, rows.indices + rows.indptr[t], rows.values + rows.indptr[t],
                        rows.indptr[t + 1] - rows.indptr[t], &out[t, 0])
    return np.asarray(out)
