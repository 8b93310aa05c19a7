"""Examples with bags of candidate labels: the constraint of the maximising corner, and the scores of labels.

Cuts of the mean pairwise hinge: pairs (label, count), labels ascending, counts as in bags.h and none of them 0: the
counts of labels in the bag are positive, the others negative, and they sum to 0. With m labels in the bag and r
outside, dPsi = sum count_label Phi(x, label), and the cut's scale is 1 / (m r).

With shares q of the candidates, which sum to 1, and s_y = <w, Phi(x, y)>, the other losses are

    mean, max    [1 - sum_y q_y s_y]_+ + sum_{z not in Y} [1 + s_z]_+
    log          log sum_k exp s_k - log sum_{y in Y} prior_y exp s_y

"mean" has its q from the weights of the candidates; with "max" all of q is on one candidate, the completion of an
example whose bag says in part which label is right. Cuts of hinges: whether the first one is active, 0 or 1, then the
labels z whose hinges are, ascending; they do not hold q. Moments of "log", which completes by the distribution over the
candidates: m_k, the probability of each label less its share q_k ~ prior_k exp s_k.

A problem of `DenseRows` keeps its weights as `by_attributes` of `structsvm.features.dense` lays them out, a row of
features per label; all others have a row of labels per feature.
"""

from libc.math cimport INFINITY, exp, log
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

import numpy as np

from structsvm._problem cimport Cut, Problem, Target
from structsvm._arrays cimport array_data
from structsvm.execution._processor cimport kernel_set
from structsvm.execution._stop cimport poll

from structsvm.arrays import checksum
from structsvm.features.dense import DenseRows, by_attributes, by_features, padded, sum_of_products

cdef extern from "bags.h" nogil:
    ctypedef struct bags_item:
        double score
        int32_t label
    void bags_scores(const double* w, int64_t K, const int32_t* index, const double* value, int64_t n, double* out)
    void bags_add(double* w, int64_t K, const int32_t* index, const double* value, int64_t n, const double* amounts)
    double bags_corner(const double* score, int64_t K, const int32_t* bag, int64_t m, bags_item* items,
                       int32_t* count, int64_t* pairs)

cdef extern from "dense.h" nogil:
    ctypedef struct dense_double_kernels:
        void (*products)(const double* W, int64_t width, const double* x, int64_t n, double* out) noexcept nogil
        double (*dot)(const double* w, const double* x, int64_t width) noexcept nogil
        void (*add)(double* w, const double* x, double amount, int64_t width) noexcept nogil
        double (*exponentials)(float* s, int64_t n, double* top, double* mean) noexcept nogil
    const dense_double_kernels* dense_double_kernels_of(int set, int (*poll)(int64_t work) except -1 nogil)

cdef const dense_double_kernels* KERNELS = dense_double_kernels_of(kernel_set(), poll)

cdef enum BagLoss:
    PAIRWISE
    MEAN
    MAX
    LOG

BAG_LOSSES = {"pairwise": PAIRWISE, "mean": MEAN, "max": MAX, "log": LOG}


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
    cdef readonly object prior      # weights of the candidates, the greatest of each bag 1
    cdef readonly object labels     # completions for "max", -1 before; None for other losses
    cdef int32_t* label             # address of `labels`
    cdef object shares              # q, an entry per candidate
    cdef BagLoss loss
    cdef Py_ssize_t K
    cdef const int64_t* indptr      # NULL: dense rows
    cdef const int32_t* indices
    cdef const double* values
    cdef object table               # dense rows: (n_samples, width)
    cdef Py_ssize_t width
    cdef const int64_t* bag_indptr
    cdef const int32_t* bag_labels
    cdef const double* weight       # weights of `prior`
    cdef double* q                  # scratch of `shares`
    cdef double[::1] score          # (K,) and padding, of the row `at_hand`
    cdef Py_ssize_t at_hand         # or -1
    cdef int32_t[::1] count         # (K,)
    cdef int32_t[::1] words         # (2 K,)
    cdef double[::1] amount         # (K,): of labels, in `add_to` and `spread`
    cdef float[::1] chances         # (K,) and padding, in `c_expect`
    cdef int32_t word               # the word of `c_complete`
    cdef object memory              # room for K items
    cdef bags_item* items

    def __init__(self, oracle, rows, bags, prior=None, labels=None, *, rescaling="margin", penalty="linear"):
        self.K = oracle.n_labels
        self.loss = BAG_LOSSES[oracle.bag_loss]
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
        self.prior = np.ones(len(bags[1])) if prior is None else prior
        sizes = np.diff(bags[0])
        if self.loss == MAX:
            if labels is None:
                labels = np.where(sizes == 1, bags[1][bags[0][:-1]], np.int32(-1)) if len(rows) else np.empty(0)
            self.labels = np.ascontiguousarray(labels, dtype=np.int32)
            self.label = <int32_t*>array_data(self.labels)
            self.shares = 1.0 * (bags[1] == np.repeat(self.labels, sizes))
        else:
            total = np.add.reduceat(self.prior, bags[0][:-1]) if len(rows) else sizes
            self.shares = self.prior / np.repeat(total, sizes)
        self.weight = <const double*>array_data(self.prior)
        self.q = <double*>array_data(self.shares)
        self.score = np.empty(padded(self.K))
        self.count = np.empty(self.K, dtype=np.int32)
        self.words = np.empty(2 * self.K, dtype=np.int32)
        self.amount = np.empty(self.K)
        self.chances = np.empty(padded(self.K), dtype=np.float32)
        self.memory = np.empty(self.K * sizeof(bags_item), dtype=np.uint8)
        self.items = <bags_item*>array_data(self.memory)
        self.at_hand = -1

    @property
    def offers(self):
        is_open = np.diff(self.bags[0]).max(initial=1) > 1
        if self.loss == LOG:
            return frozenset({"expectations", "marginals"} if is_open else {"expectations"})
        if self.loss != MAX:
            return frozenset({"constraints"})
        if self.labels.min(initial=0) < 0:
            return frozenset({"completions", "expectations", "marginals"})
        return frozenset({"completions", "constraints"})

    def examples(self, Py_ssize_t start, Py_ssize_t stop):
        indptr, labels = self.bags
        entries = slice(indptr[start], indptr[stop])
        bags = indptr[start:stop + 1] - indptr[start], labels[entries]
        completed = None if self.labels is None else self.labels[start:stop]
        return self.oracle, self.rows[start:stop], bags, self.prior[entries], completed

    def to_oracle(self, w):
        """Weights of this problem as its oracle has them."""
        if self.indptr != NULL:
            return w
        return by_features(w, self.rows.n_features, self.K, self.K)

    def from_oracle(self, w):
        """The inverse."""
        return w if self.indptr != NULL else by_attributes(w, self.rows.n_features, self.K)

    def fingerprint(self):
        own = [] if self.loss == PAIRWISE else [self.prior]
        if self.loss in (MAX, LOG):
            own.append(np.ones(1))
        return checksum([*self.oracle.rows(self.rows).arrays, *self.bags, *own])

    def structure_fingerprint(self):
        return <int>self.loss

    cdef Py_ssize_t size_of_bag(self, Py_ssize_t i) noexcept nogil:
        return self.bag_indptr[i + 1] - self.bag_indptr[i]

    cdef Py_ssize_t entries(self, Py_ssize_t i) noexcept nogil:
        return self.width if self.indptr == NULL else self.indptr[i + 1] - self.indptr[i]

    cdef bint says_nothing(self, Py_ssize_t i) noexcept nogil:
        """Whether all labels are candidates, of equal weights."""
        cdef Py_ssize_t e
        if self.size_of_bag(i) < self.K:
            return False
        for e in range(self.bag_indptr[i], self.bag_indptr[i + 1]):
            if self.weight[e] != 1.0:
                return False
        return True

    cdef bint is_open(self, Py_ssize_t i) noexcept nogil:
        """Whether "max" has yet to complete example i."""
        cdef Py_ssize_t e
        for e in range(self.bag_indptr[i], self.bag_indptr[i + 1]):
            if self.q[e] > 0.0:
                return False
        return True

    cdef double square(self, Py_ssize_t i) noexcept nogil:
        """|x|^2"""
        cdef double total = 0.0
        cdef Py_ssize_t e, start = i * self.width if self.indptr == NULL else self.indptr[i]
        for e in range(start, start + self.entries(i)):
            total += self.values[e] * self.values[e]
        return total

    cdef double shared_score(self, Py_ssize_t i) noexcept nogil:
        """sum_y q_y s_y, of the current row."""
        cdef double total = 0.0
        cdef Py_ssize_t e
        for e in range(self.bag_indptr[i], self.bag_indptr[i + 1]):
            total += self.q[e] * self.score[self.bag_labels[e]]
        return total

    cdef void add_amounts(self, Py_ssize_t i, double* w) noexcept nogil:
        """w += sum_k amount_k Phi(x, k)"""
        cdef Py_ssize_t k, start
        if self.indptr != NULL:
            start = self.indptr[i]
            bags_add(w, self.K, self.indices + start, self.values + start, self.entries(i), &self.amount[0])
            return
        for k in range(self.K):
            if self.amount[k] != 0.0:
                KERNELS.add(w + k * self.width, self.values + i * self.width, self.amount[k], self.width)

    cdef void fill(self, Py_ssize_t i, const double* w) noexcept nogil:
        self.at_hand = i
        if self.indptr == NULL:
            KERNELS.products(w, self.width, self.values + i * self.width, self.score.shape[0], &self.score[0])
            return
        bags_scores(w, self.K, self.indices + self.indptr[i], self.values + self.indptr[i],
                    self.indptr[i + 1] - self.indptr[i], &self.score[0])

    cdef void fill_some(self, Py_ssize_t i, const Cut* cuts, Py_ssize_t n, const double* w) noexcept nogil:
        """The scores of a dense row for the labels of some cuts alone, where they are few."""
        cdef Py_ssize_t c, e, total = 0
        cdef int32_t k
        for c in range(n):
            total += cuts[c].n_words // 2
        if self.indptr != NULL or total > self.K or self.loss != PAIRWISE:
            self.fill(i, w)
            return
        self.at_hand = -1
        for c in range(n):
            for e in range(0, cuts[c].n_words, 2):
                k = cuts[c].words[e]
                self.score[k] = KERNELS.dot(w + k * self.width, self.values + i * self.width, self.width)

    cdef int c_separate(self, Py_ssize_t i, const void* w, Cut* cut, double* violation) except -1 nogil:
        """Algorithm 23, line 2: the corner that attains the loss L_w(x, Y)."""
        cdef Py_ssize_t m = self.size_of_bag(i), k, n = 0
        cdef int64_t pairs = 0
        cdef double loss = 0.0
        if self.loss == MAX and self.is_open(i):
            with gil:
                raise ValueError(f"the label of example {self.first + i} is known in part: train with LatentSVM")
        poll((self.entries(i) + 16) * self.K // 4)
        self.fill(i, <const double*>w)
        if self.loss != PAIRWISE:
            self.separate_hinges(i, cut, violation)
            return 0
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

    cdef void separate_hinges(self, Py_ssize_t i, Cut* cut, double* violation) noexcept nogil:
        """The active hinges of "mean" and "max", from the current scores."""
        cdef Py_ssize_t k, n = 1, at = self.bag_indptr[i], end = self.bag_indptr[i + 1]
        cdef double margin = 1.0 - self.shared_score(i), loss = 0.0, finite = 0.0
        cut.alpha = cut.drift = cut.b = 0.0
        cut.idle = 0
        cut.scale = 1.0
        cut.words = &self.words[0]
        cut.n_words = 0
        violation[0] = 0.0
        if self.says_nothing(i):
            return
        self.words[0] = margin > 0.0
        if margin > 0.0:
            loss = margin
        for k in range(self.K):
            finite += 0.0 * self.score[k]
            if at < end and self.bag_labels[at] == k:
                at += 1
            elif self.score[k] > -1.0:
                self.words[n] = <int32_t>k
                n += 1
                loss += 1.0 + self.score[k]
        violation[0] = loss + finite
        cut.b = n - 1 + self.words[0]
        if cut.b > 0.0:
            cut.n_words = n

    cdef int c_dots(self, Py_ssize_t i, const Cut* cuts, Py_ssize_t n, const void* w, bint fresh,
                    double* out) except -1 nogil:
        cdef Py_ssize_t c, e
        cdef double total, of_shares
        if not (fresh and self.at_hand == i):
            self.fill_some(i, cuts, n, <const double*>w)
        if self.loss != PAIRWISE:
            of_shares = self.shared_score(i)
            for c in range(n):
                total = of_shares if cuts[c].words[0] else 0.0
                for e in range(1, cuts[c].n_words):
                    total -= self.score[cuts[c].words[e]]
                out[c] = total
            return 0
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
        if self.loss != PAIRWISE:
            memset(&self.amount[0], 0, self.K * sizeof(double))
            if cut.n_words > 0 and cut.words[0]:
                for e in range(self.bag_indptr[i], self.bag_indptr[i + 1]):
                    self.amount[self.bag_labels[e]] = coef * self.q[e]
            for k in range(1, cut.n_words):
                self.amount[cut.words[k]] = -coef
            self.add_amounts(i, w)
            return
        if self.indptr == NULL:
            for k in range(0, cut.n_words, 2):
                amount = coef * cut.scale * cut.words[k + 1]
                KERNELS.add(w + cut.words[k] * self.width, self.values + i * self.width, amount, self.width)
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
        """The blocks of different labels are orthogonal: |x|^2 / (m r)^2 sum_k count_k count'_k; of hinges |x|^2 times
        |q|^2, if both have the first, and the number of the others that they share."""
        cdef Py_ssize_t e, step = 2, p = 0, q = 0
        cdef double total = 0.0
        if self.loss != PAIRWISE:
            step = p = q = 1
            if a.words[0] and b.words[0]:
                for e in range(self.bag_indptr[i], self.bag_indptr[i + 1]):
                    total += self.q[e] * self.q[e]
        while p < a.n_words and q < b.n_words:
            if a.words[p] == b.words[q]:
                total += <double>a.words[p + 1] * b.words[q + 1] if step == 2 else 1.0
                p += step
                q += step
            elif a.words[p] < b.words[q]:
                p += step
            else:
                q += step
        return a.scale * b.scale * self.square(i) * total

    cdef bint c_valid(self, Py_ssize_t i, const Cut* cut) noexcept nogil:
        cdef Py_ssize_t e, m = self.size_of_bag(i), at = self.bag_indptr[i], end = self.bag_indptr[i + 1]
        cdef int32_t label, count, last = -1
        cdef int64_t total = 0
        if cut.n_words == 0:
            return False
        if self.loss != PAIRWISE:
            if not 0 <= cut.words[0] <= 1 or cut.n_words - 1 + cut.words[0] == 0:
                return False
            for e in range(1, cut.n_words):
                label = cut.words[e]
                if label <= last or label >= self.K:
                    return False
                last = label
                while at < end and self.bag_labels[at] < label:
                    at += 1
                if at < end and self.bag_labels[at] == label:
                    return False
            return True
        if cut.n_words % 2 != 0:
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

    def sum_of_moments(self, coefs, offsets, moments):
        if self.indptr != NULL:
            return super().sum_of_moments(coefs, offsets, moments)
        total = np.zeros((padded(self.K), self.width))
        total[:self.K] = sum_of_products(coefs, np.reshape(moments, (self.n_samples, self.K)), self.table)
        return total.ravel()

    # ---- completions ------------------------------------------------------------------------------

    cdef int c_complete(self, Py_ssize_t i, const void* w, Target* target) except -1 nogil:
        """The candidate of the highest score, the first of several."""
        cdef Py_ssize_t e, best = self.bag_indptr[i]
        target.words = &self.word
        target.n_words = 1
        if self.size_of_bag(i) > 1 and not self.says_nothing(i):
            poll((self.entries(i) + 16) * self.K // 4)
            self.fill(i, <const double*>w)
            for e in range(best + 1, self.bag_indptr[i + 1]):
                if self.score[self.bag_labels[e]] > self.score[self.bag_labels[best]]:
                    best = e
        self.word = self.bag_labels[best]
        return 0

    cdef bint c_retarget(self, Py_ssize_t i, const Target* target, bint take) except -1 nogil:
        cdef Py_ssize_t e
        cdef bint differs = self.label[i] != target.words[0]
        if take:
            self.label[i] = target.words[0]
            for e in range(self.bag_indptr[i], self.bag_indptr[i + 1]):
                self.q[e] = self.bag_labels[e] == target.words[0]
        return differs

    @property
    def targets(self):
        return np.arange(self.n_samples + 1), self.labels

    def with_targets(self, targets):
        return self.rebuilt(self.oracle, self.rows, self.bags, self.prior, targets[1])

    # ---- expectations -------------------------------------------------------------------------------

    cdef Py_ssize_t c_moments(self, Py_ssize_t i) noexcept nogil:
        return self.K

    cdef int c_expect(self, Py_ssize_t i, const void* w, float* m, double* loss, double* entropy) except -1 nogil:
        """With z_y = s_y + log prior_y of the candidates: q ~ exp z, and its entropy is less sum_y q_y log prior_y.

        So loss = <w, F(m)> + entropy, as that of a label that is known has it.
        """
        cdef Py_ssize_t k, e, first = self.bag_indptr[i], end = self.bag_indptr[i + 1]
        cdef double top, mean, total, z, high = -INFINITY, inside = 0.0, mean_inside = 0.0
        poll((self.entries(i) + 32) * self.K // 4)
        self.fill(i, <const double*>w)
        loss[0] = entropy[0] = 0.0
        if m != NULL:
            memset(m, 0, self.K * sizeof(float))
        if self.says_nothing(i):
            return 0
        for k in range(self.K):
            self.chances[k] = <float>self.score[k]
        for k in range(self.K, self.chances.shape[0]):
            self.chances[k] = -INFINITY
        total = KERNELS.exponentials(&self.chances[0], self.chances.shape[0], &top, &mean)
        for e in range(first, end):
            high = max(high, self.score[self.bag_labels[e]] + log(self.weight[e]))
        for e in range(first, end):
            z = self.score[self.bag_labels[e]] + log(self.weight[e]) - high
            self.amount[self.bag_labels[e]] = exp(z)
            inside += self.amount[self.bag_labels[e]]
            mean_inside += self.amount[self.bag_labels[e]] * (self.score[self.bag_labels[e]] - high)
        loss[0] = top + log(total) - high - log(inside)
        entropy[0] = log(total) - mean / total - log(inside) + mean_inside / inside
        if end - first == 1:
            loss[0], entropy[0] = max(loss[0], 0.0), max(entropy[0], 0.0)
        if m != NULL:
            for k in range(self.K):
                m[k] = <float>(self.chances[k] / total)
            for e in range(first, end):
                m[self.bag_labels[e]] -= <float>(self.amount[self.bag_labels[e]] / inside)
        return 0

    cdef double spread(self, const float* m, double coef) noexcept nogil:
        """amount = coef m; returns its square."""
        cdef Py_ssize_t k
        cdef double total = 0.0
        for k in range(self.K):
            self.amount[k] = coef * m[k]
            total += self.amount[k] * self.amount[k]
        return total

    cdef double c_moments_dot(self, Py_ssize_t i, const float* m, const void* w) except? -1 nogil:
        cdef Py_ssize_t k
        cdef double total = 0.0
        for k in range(self.K):
            total += m[k] * self.score[k]
        return total

    cdef double c_moments_square(self, Py_ssize_t i, const float* m) except? -1 nogil:
        return self.spread(m, 1.0) * self.square(i)

    cdef int c_moments_add(self, Py_ssize_t i, const float* m, double coef, bint again, void* w) except -1 nogil:
        self.spread(m, coef)
        self.add_amounts(i, <double*>w)
        return 0

    cdef int c_moments_accumulate(self, Py_ssize_t i, const float* m, double coef, double* w) except -1 nogil:
        self.spread(m, coef)
        self.add_amounts(i, w)
        return 0
