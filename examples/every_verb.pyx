# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Flat classes, compiled, with every verb of the C contract: see docs/oracles/c-contract.md.

x is in R^d, y one of K classes; Psi(x, y) is x in block y of w, the loss 0 or 1. The problem's encodings are its own:

- a cut is two words, the true class and a wrong one: dPsi is x in the block of the one and -x in that of the other;
- the moments of an example are K numbers, the probabilities of its classes less 1 at the true one;
- a true output is one word. What is known of it are the classes that it may be, of which -1 is the completion to come.

Build it: cythonize -i examples/every_verb.pyx
"""

from libc.math cimport exp, log
from libc.stdint cimport uint8_t

from structsvm._prefetch cimport prefetch
from structsvm._problem cimport RESCALE_NONE, Cut, Problem, Target, cut_terms
from structsvm._typedefs cimport float32_t, float64_t, int32_t
from structsvm.execution._stop cimport poll

import numpy as np

import structsvm
from structsvm.arrays import checksum


cdef class ClassProblem(Problem):
    """Rows X with the classes y; `may` (n_samples, K) marks those that each may have, None: y is known."""

    cdef const float64_t[:, ::1] X
    cdef int32_t[::1] y             # -1: not completed yet
    cdef const uint8_t[:, ::1] may
    cdef float64_t[::1] squares     # |x|^2
    cdef float64_t[::1] scores      # scratch, like the rest
    cdef int32_t[2] found
    cdef int32_t[1] completion
    cdef object completed           # y, as an array

    def __init__(self, X, y, may, *, rescaling="margin", penalty="linear"):
        X = np.ascontiguousarray(X, dtype=np.float64)
        super().__init__(X.shape[0], may.shape[1] * X.shape[1], rescaling=rescaling, penalty=penalty)
        self.X, self.may = X, np.ascontiguousarray(may, dtype=np.uint8)
        self.y = self.completed = np.array(y, dtype=np.int32)
        self.squares, self.scores = np.square(X).sum(axis=1), np.empty(may.shape[1])
        self.window_unit = X.shape[1]

    @property
    def offers(self):
        if (np.asarray(self.completed) < 0).any():
            return frozenset({"completions"})
        return frozenset({"constraints", "expectations", "completions"})

    def examples(self, Py_ssize_t start, Py_ssize_t stop):
        return np.asarray(self.X)[start:stop], self.completed[start:stop], np.asarray(self.may)[start:stop]

    def fingerprint(self):
        return checksum([np.asarray(self.X), np.asarray(self.may)])

    cdef const float64_t* row(self, Py_ssize_t i) noexcept nogil:
        return &self.X[i, 0]

    cdef double score(self, Py_ssize_t i, Py_ssize_t k, const float64_t* w) noexcept nogil:
        cdef Py_ssize_t j, d = self.X.shape[1]
        cdef double total = 0.0
        for j in range(d):
            total += w[k * d + j] * self.X[i, j]
        return total

    cdef void add(self, Py_ssize_t i, Py_ssize_t k, double coef, float64_t* w) noexcept nogil:
        cdef Py_ssize_t j, d = self.X.shape[1]
        for j in range(d):
            w[k * d + j] += coef * self.X[i, j]

    # ---- must ----

    cdef int c_separate(self, Py_ssize_t i, const void* w, Cut* cut, double* violation) except -1 nogil:
        cdef Py_ssize_t k, wrong = -1, true = self.y[i]
        poll(self.n_features)
        for k in range(self.may.shape[1]):
            self.scores[k] = self.score(i, k, <const float64_t*>w)
            if k != true and (wrong < 0 or self.scores[k] > self.scores[wrong]):
                wrong = k
        cut_terms(self.rescaling, self.penalty, 1.0, cut)
        violation[0] = cut.b - cut.scale * (self.scores[true] - self.scores[wrong])
        cut.words, cut.n_words = self.found, 2
        self.found[0], self.found[1] = <int32_t>true, <int32_t>wrong
        if violation[0] <= 0.0 or (self.rescaling == RESCALE_NONE and self.scores[true] > self.scores[wrong]):
            cut.b = violation[0] = 0.0
            cut.n_words = 0
        return 0

    # ---- for more than a margin ----

    cdef int c_expect(self, Py_ssize_t i, const void* w, float32_t* m, double* loss, double* entropy) except -1 nogil:
        cdef Py_ssize_t k, K = self.may.shape[1], true = self.y[i]
        cdef double top, total = 0.0, mean = 0.0
        poll(self.n_features)
        for k in range(K):
            self.scores[k] = self.score(i, k, <const float64_t*>w)
        top = self.scores[0]
        for k in range(1, K):
            top = max(top, self.scores[k])
        for k in range(K):
            total += exp(self.scores[k] - top)
            mean += exp(self.scores[k] - top) * (self.scores[k] - top)
        loss[0] = log(total) - (self.scores[true] - top)
        if m == NULL:
            return 0
        entropy[0] = log(total) - mean / total
        for k in range(K):
            m[k] = <float32_t>(exp(self.scores[k] - top) / total) - (k == true)
        return 0

    cdef Py_ssize_t c_moments(self, Py_ssize_t i) noexcept nogil:
        return self.may.shape[1]

    cdef double c_moments_dot(self, Py_ssize_t i, const float32_t* m, const void* w) except? -1 nogil:
        cdef Py_ssize_t k
        cdef double total = 0.0
        for k in range(self.may.shape[1]):
            total += m[k] * self.scores[k]      # as c_expect has left them
        return total

    cdef double c_moments_square(self, Py_ssize_t i, const float32_t* m) except? -1 nogil:
        cdef Py_ssize_t k
        cdef double total = 0.0
        for k in range(self.may.shape[1]):
            total += <double>m[k] * m[k]
        return self.squares[i] * total

    cdef int c_moments_add(self, Py_ssize_t i, const float32_t* m, double coef, bint again, void* w) except -1 nogil:
        return self.c_moments_accumulate(i, m, coef, <float64_t*>w)

    cdef int c_moments_accumulate(self, Py_ssize_t i, const float32_t* m, double coef, float64_t* w) except -1 nogil:
        cdef Py_ssize_t k
        for k in range(self.may.shape[1]):
            self.add(i, k, coef * m[k], w)
        return 0

    cdef int c_complete(self, Py_ssize_t i, const void* w, Target* target) except -1 nogil:
        cdef Py_ssize_t k, best = -1
        cdef double score, top = 0.0
        poll(self.n_features)
        for k in range(self.may.shape[1]):
            if self.may[i, k]:
                score = self.score(i, k, <const float64_t*>w)
                if best < 0 or score > top:
                    best, top = k, score
        self.completion[0] = <int32_t>best
        target.words, target.n_words = self.completion, 1
        return 0

    cdef bint c_retarget(self, Py_ssize_t i, const Target* target, bint take) except -1 nogil:
        cdef bint differs = self.y[i] != target.words[0]
        if take:
            self.y[i] = target.words[0]
        return differs

    @property
    def targets(self):
        return np.arange(self.n_samples + 1), self.completed

    def with_targets(self, targets):
        return self.rebuilt(self.X, targets[1], self.may)

    # ---- for speed, and for two words in place of a sparse vector ----

    cdef int c_dots(self, Py_ssize_t i, const Cut* cuts, Py_ssize_t n, const void* w, bint fresh,
                    double* out) except -1 nogil:
        cdef Py_ssize_t k
        if not fresh:
            for k in range(self.may.shape[1]):
                self.scores[k] = self.score(i, k, <const float64_t*>w)
        for k in range(n):
            out[k] = cuts[k].scale * (self.scores[cuts[k].words[0]] - self.scores[cuts[k].words[1]])
        return 0

    cdef int c_add(self, Py_ssize_t i, const Cut* cut, double coef, void* w) except -1 nogil:
        return self.c_accumulate(i, cut, coef, <float64_t*>w)

    cdef int c_accumulate(self, Py_ssize_t i, const Cut* cut, double coef, float64_t* w) except -1 nogil:
        return self.c_accumulate_window(i, cut, coef, w, 0, self.n_features)

    cdef double c_inner(self, Py_ssize_t i, const Cut* a, const Cut* b) except? -1 nogil:
        cdef int same = (a.words[0] == b.words[0]) + (a.words[1] == b.words[1])
        cdef int opposite = (a.words[0] == b.words[1]) + (a.words[1] == b.words[0])
        return a.scale * b.scale * self.squares[i] * (same - opposite)

    cdef bint c_valid(self, Py_ssize_t i, const Cut* cut) noexcept nogil:
        cdef Py_ssize_t K = self.may.shape[1]
        return (cut.n_words == 2 and 0 <= cut.words[0] < K and 0 <= cut.words[1] < K
                and cut.words[0] != cut.words[1])

    cdef int c_add_cuts(self, Py_ssize_t i, const Cut* cuts, Py_ssize_t n, void* w) except -1 nogil:
        cdef Py_ssize_t k
        for k in range(self.may.shape[1]):
            self.scores[k] = 0.0
        for k in range(n):
            self.scores[cuts[k].words[0]] += cuts[k].alpha * cuts[k].scale
            self.scores[cuts[k].words[1]] -= cuts[k].alpha * cuts[k].scale
        for k in range(self.may.shape[1]):
            if self.scores[k] != 0.0:
                self.add(i, k, self.scores[k], <float64_t*>w)
        return 0

    cdef int c_accumulate_window(self, Py_ssize_t i, const Cut* cut, double coef, float64_t* w, Py_ssize_t low,
                                 Py_ssize_t high) except -1 nogil:
        cdef Py_ssize_t first = low // self.X.shape[1], end = high // self.X.shape[1]
        if first <= cut.words[0] < end:
            self.add(i, cut.words[0] - first, coef * cut.scale, w)
        if first <= cut.words[1] < end:
            self.add(i, cut.words[1] - first, -coef * cut.scale, w)
        return 0

    cdef int c_inners(self, Py_ssize_t i, const Cut* cuts, Py_ssize_t n, const Cut* cut, double* out) except -1 nogil:
        cdef Py_ssize_t k
        for k in range(n):
            out[k] = self.c_inner(i, &cuts[k], cut)
        return 0

    cdef void c_prefetch(self, Py_ssize_t i, int stage) noexcept nogil:
        if stage == 0:
            prefetch(self.row(i))

    cdef void c_prefetch_add(self, Py_ssize_t i, const Cut* cut, const void* w, int stage) noexcept nogil:
        if stage == 2:
            prefetch(<const float64_t*>w + cut.words[0] * self.X.shape[1])
            prefetch(<const float64_t*>w + cut.words[1] * self.X.shape[1])

    cdef double c_cost(self, Py_ssize_t i) noexcept nogil:
        return <double>self.n_features


class Classes(structsvm.Oracle):
    """Classes 0 .. K - 1 of rows; a y in the training data is a class, or a set of those that it may be."""

    rescalings = ("margin", "slack")
    penalties = ("linear", "quadratic", None)

    def __init__(self, n_classes, n_inputs):
        self.n_classes, self.n_features = n_classes, n_classes * n_inputs

    def bind(self, X, Y, *, rescaling="margin", penalty="linear"):
        self.check_formulation(rescaling, penalty)
        may = np.zeros((len(Y), self.n_classes), dtype=np.uint8)
        for row, y in zip(may, Y):
            row[list(y) if isinstance(y, set) else [y]] = 1
        y = np.where(may.sum(axis=1) == 1, may.argmax(axis=1), -1)
        return ClassProblem(X, y, may, rescaling=rescaling, penalty=penalty)

    def joint_feature(self, x, y):
        return np.arange(y * len(x), (y + 1) * len(x)), x

    def loss(self, y_true, y):
        return float(y_true != y)

    def argmax(self, x, w, y_true=None, rescaling=None):
        scores = w.reshape(self.n_classes, -1) @ x
        if y_true is not None:
            loss = 1.0 * (np.arange(self.n_classes) != y_true)
            scores = loss + scores if rescaling == "margin" else loss * (1.0 + scores - scores[y_true])
        return int(scores.argmax())

    def complete(self, x, known, w):
        return max(known, key=lambda y: w.reshape(self.n_classes, -1)[y] @ x) if isinstance(known, set) else known

    def expect(self, x, w):
        scores = w.reshape(self.n_classes, -1) @ x
        log_sum = np.logaddexp.reduce(scores)
        return log_sum, np.outer(np.exp(scores - log_sum), x).ravel()
