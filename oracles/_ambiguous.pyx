"""Examples with bags of candidate labels: the constraint of the maximising corner, and the scores of labels.

A cut's words are pairs (label, count), labels ascending, counts as in bags.h and none of them 0: the counts of labels
in the bag are positive, the others negative, and they sum to 0. With m labels in the bag and r outside,
dPsi = sum count_label Phi(x, label), and the cut's scale is 1 / (m r).

A problem of `DenseRows` keeps its weights as `by_attributes` of `structsvm.features.dense` lays them out, a row of
features per label; all others have a row of labels per feature.
"""

from libc.stdint cimport int32_t, int64_t

import numpy as np

from structsvm._problem cimport Cut, Problem
from structsvm._arrays cimport array_data
from structsvm.execution._processor cimport kernel_set
from structsvm.execution._stop cimport poll

from structsvm.checksum import checksum
from structsvm.features.dense import DenseRows, by_attributes, by_features, padded

cdef extern from "bags.h" nogil:
    ctypedef struct bags_item:
        double score
        int32_t label
    void bags_scores(const double* w, int64_t K, const int32_t* index, const double* value, int64_t n, double* out)
    double bags_corner(const double* score, int64_t K, const int32_t* bag, int64_t m, bags_item* items,
                       int32_t* count, int64_t* pairs)

cdef extern from "kernels.h" nogil:
    ctypedef struct kernels:
        void (*dense_products_d)(const double* W, int64_t width, const double* x, int64_t n, double* out) noexcept nogil
        double (*dense_dot_d)(const double* w, const double* x, int64_t width) noexcept nogil
        void (*dense_add_d)(double* w, const double* x, double amount, int64_t width) noexcept nogil
    const kernels* kernels_of(int set, int (*poll)(int64_t work) except -1 nogil)

cdef const kernels* KERNELS = kernels_of(kernel_set(), poll)


def decision_scores(rows, Py_ssize_t n_labels, const double[::1] w):
    """Array (n_rows, n_labels) of ``<w, Phi(x, k)>``."""
    cdef const int64_t* indptr = <const int64_t*>array_data(rows.indptr)
    cdef const int32_t* indices = <const int32_t*>array_data(rows.indices)
    cdef const double* values = <const double*>array_data(rows.values)
    cdef Py_ssize_t i, n = len(rows)
    cdef double[:, ::1] out = np.empty((n, n_labels))
    if w.shape[0] != rows.n_features * n_labels:
        raise ValueError(f"w has {w.shape[0]} weights, expected {rows.n_features} x {n_labels}")
    if w.shape[0] == 0:
        return np.zeros((n, n_labels))
    with nogil:
        for i in range(n):
            poll((indptr[i + 1] - indptr[i] + 1) * n_labels // 4)
            bags_scores(&w[0], n_labels, indices + indptr[i], values + indptr[i], indptr[i + 1] - indptr[i], &out[i, 0])
    return np.asarray(out)


cdef class AmbiguousProblem(Problem):
    """Rows with their bags of labels."""

    cdef readonly object oracle
    cdef readonly object rows
    cdef readonly object bags
    cdef Py_ssize_t K
    cdef const int64_t* indptr      # NULL: dense rows
    cdef const int32_t* indices
    cdef const double* values
    cdef object table               # of dense rows: (n_samples, width)
    cdef Py_ssize_t width
    cdef const int64_t* bag_indptr
    cdef const int32_t* bag_labels
    cdef double[::1] score          # (K,) and padding, of the row `at_hand`
    cdef Py_ssize_t at_hand         # or -1
    cdef int32_t[::1] count         # (K,)
    cdef int32_t[::1] words         # (2 K,)
    cdef object memory              # room for K items
    cdef bags_item* items

    def __init__(self, oracle, rows, bags, *, rescaling="margin", penalty="linear"):
        self.K = oracle.n_labels
        is_dense = isinstance(rows, DenseRows)
        n_features = padded(self.K) * padded(rows.n_features) if is_dense else oracle.n_features
        super().__init__(len(rows), n_features, rescaling=rescaling, penalty=penalty)
        self.oracle, self.rows, self.bags = oracle, rows, bags
        if is_dense:
            self.table, self.width = rows.padded(), padded(rows.n_features)
            self.values = <const double*>array_data(self.table)
        else:
            self.indptr = <const int64_t*>array_data(rows.indptr)
            self.indices = <const int32_t*>array_data(rows.indices)
            self.values = <const double*>array_data(rows.values)
        self.bag_indptr = <const int64_t*>array_data(bags[0])
        self.bag_labels = <const int32_t*>array_data(bags[1])
        self.score = np.empty(padded(self.K))
        self.count = np.empty(self.K, dtype=np.int32)
        self.words = np.empty(2 * self.K, dtype=np.int32)
        self.memory = np.empty(self.K * sizeof(bags_item), dtype=np.uint8)
        self.items = <bags_item*>array_data(self.memory)
        self.at_hand = -1

    def examples(self, Py_ssize_t start, Py_ssize_t stop):
        indptr, labels = self.bags
        bags = indptr[start:stop + 1] - indptr[start], labels[indptr[start]:indptr[stop]]
        return self.oracle, self.rows[start:stop], bags

    def to_oracle(self, w):
        """Weights of this problem as its oracle has them."""
        if self.indptr != NULL:
            return w
        return by_features(w, self.rows.n_features, self.K, self.K)

    def from_oracle(self, w):
        """The inverse."""
        return w if self.indptr != NULL else by_attributes(w, self.rows.n_features, self.K)

    def fingerprint(self):
        return checksum([*self.oracle.rows(self.rows).arrays, *self.bags])

    cdef Py_ssize_t size_of_bag(self, Py_ssize_t i) noexcept nogil:
        return self.bag_indptr[i + 1] - self.bag_indptr[i]

    cdef Py_ssize_t entries(self, Py_ssize_t i) noexcept nogil:
        return self.width if self.indptr == NULL else self.indptr[i + 1] - self.indptr[i]

    cdef void fill(self, Py_ssize_t i, const double* w) noexcept nogil:
        self.at_hand = i
        if self.indptr == NULL:
            KERNELS.dense_products_d(w, self.width, self.values + i * self.width, self.score.shape[0], &self.score[0])
            return
        bags_scores(w, self.K, self.indices + self.indptr[i], self.values + self.indptr[i],
                    self.indptr[i + 1] - self.indptr[i], &self.score[0])

    cdef void fill_some(self, Py_ssize_t i, const Cut* cuts, Py_ssize_t n, const double* w) noexcept nogil:
        """The scores of a dense row for the labels of some cuts alone, where they are few."""
        cdef Py_ssize_t c, e, total = 0
        cdef int32_t k
        for c in range(n):
            total += cuts[c].n_words // 2
        if self.indptr != NULL or total > self.K:
            self.fill(i, w)
            return
        self.at_hand = -1
        for c in range(n):
            for e in range(0, cuts[c].n_words, 2):
                k = cuts[c].words[e]
                self.score[k] = KERNELS.dense_dot_d(w + k * self.width, self.values + i * self.width, self.width)

    cdef int c_separate(self, Py_ssize_t i, const void* w, Cut* cut, double* violation) except -1 nogil:
        """Algorithm 23, line 2: the corner that attains the loss L_w(x, Y)."""
        cdef Py_ssize_t m = self.size_of_bag(i), k, n = 0
        cdef int64_t pairs = 0
        cdef double loss = 0.0
        poll((self.entries(i) + 16) * self.K // 4)
        self.fill(i, <const double*>w)
        if m < self.K:      # a bag of all labels says nothing
            loss = bags_corner(&self.score[0], self.K, self.bag_labels + self.bag_indptr[i], m, self.items,
                               &self.count[0], &pairs)
        cut.alpha = cut.drift = cut.b = 0.0
        cut.idle = 0
        cut.scale = 1.0
        cut.words = &self.words[0]
        if pairs > 0:
            for k in range(self.K):
                if self.count[k] != 0:
                    self.words[n] = <int32_t>k
                    self.words[n + 1] = self.count[k]
                    n += 2
            cut.scale = 1.0 / (<double>m * (self.K - m))
            cut.b = cut.scale * pairs
        cut.n_words = n
        violation[0] = cut.scale * loss
        return 0

    cdef int c_dots(self, Py_ssize_t i, const Cut* cuts, Py_ssize_t n, const void* w, bint fresh,
                    double* out) except -1 nogil:
        cdef Py_ssize_t c, e
        cdef double total
        if not (fresh and self.at_hand == i):
            self.fill_some(i, cuts, n, <const double*>w)
        for c in range(n):
            total = 0.0
            for e in range(0, cuts[c].n_words, 2):
                total += cuts[c].words[e + 1] * self.score[cuts[c].words[e]]
            out[c] = cuts[c].scale * total
        return 0

    cdef void add_to(self, Py_ssize_t i, const Cut* cut, double coef, double* w) noexcept nogil:
        cdef Py_ssize_t e, k
        cdef double* row
        cdef double amount
        if self.indptr == NULL:
            for k in range(0, cut.n_words, 2):
                amount = coef * cut.scale * cut.words[k + 1]
                KERNELS.dense_add_d(w + cut.words[k] * self.width, self.values + i * self.width, amount, self.width)
            return
        for e in range(self.indptr[i], self.indptr[i + 1]):
            row = w + self.indices[e] * self.K
            amount = coef * cut.scale * self.values[e]
            for k in range(0, cut.n_words, 2):
                row[cut.words[k]] += amount * cut.words[k + 1]

    cdef int c_add(self, Py_ssize_t i, const Cut* cut, double coef, void* w) except -1 nogil:
        self.add_to(i, cut, coef, <double*>w)
        return 0

    cdef int c_accumulate(self, Py_ssize_t i, const Cut* cut, double coef, double* w) except -1 nogil:
        self.add_to(i, cut, coef, w)
        return 0

    cdef double c_inner(self, Py_ssize_t i, const Cut* a, const Cut* b) except? -1 nogil:
        """|x|^2 / (m r)^2 sum_k count_k count'_k: the blocks of different labels are orthogonal."""
        cdef Py_ssize_t e, p = 0, q = 0
        cdef double norm = 0.0, total = 0.0
        cdef Py_ssize_t start = i * self.width if self.indptr == NULL else self.indptr[i]
        for e in range(start, start + self.entries(i)):
            norm += self.values[e] * self.values[e]
        while p < a.n_words and q < b.n_words:
            if a.words[p] == b.words[q]:
                total += <double>a.words[p + 1] * b.words[q + 1]
                p += 2
                q += 2
            elif a.words[p] < b.words[q]:
                p += 2
            else:
                q += 2
        return a.scale * b.scale * norm * total

    cdef bint c_valid(self, Py_ssize_t i, const Cut* cut) noexcept nogil:
        cdef Py_ssize_t e, m = self.size_of_bag(i), at = self.bag_indptr[i], end = self.bag_indptr[i + 1]
        cdef int32_t label, count, last = -1
        cdef int64_t total = 0
        if cut.n_words % 2 != 0 or cut.n_words == 0:
            return False
        for e in range(0, cut.n_words, 2):
            label, count = cut.words[e], cut.words[e + 1]
            if label <= last or label >= self.K:
                return False
            last = label
            while at < end and self.bag_labels[at] < label:
                at += 1
            if at < end and self.bag_labels[at] == label:
                if not 0 < count <= self.K - m:
                    return False
            elif not -m <= count < 0:
                return False
            total += count
        return total == 0

    cdef double c_cost(self, Py_ssize_t i) noexcept nogil:
        return <double>(self.entries(i) * self.K)
