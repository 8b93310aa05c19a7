"""Groups of rows that are labelled or ranked as one: the most violated output of a loss of the whole group.

An example is a group of n rows with grades; with binary grades P of the rows are relevant ("positive"), N are not. An
output costs D, and asks for <w, dPsi> >= D - xi, where dPsi = sum_i c_i x_i is a sum over the group's rows. With scores
s_i = <w, x_i>, positives p_1 >= ... >= p_P and negatives q_1 >= ... >= q_N, a cut maximises D - sum_i c_i s_i over

    error       sets of wrong rows            D = wrong / n                      c_i = +-1/n of wrong rows
    f1          sets of rows found            D = 1 - 2a / (P + a + b)           c_i = 1/n of positives that are not
    top         sets of k rows found          D = 1 - a / k                            found, -1/n of negatives found
    pairs       swapped pairs of M            D = swapped / M                    c_i = (worse rows above it - better
    map         rankings                      D = 1 - average precision                rows below it) / M, M = P N
    ndcg        rankings                      D = 1 - sum_i g_i d(place_i)       c_i = mean of d where it belongs
                                                                                       - d(place_i)

where a positives and b negatives are found, M counts the pairs of different grades, and g_i are gains over those of the
ideal ranking, d discounts. In all of them rows of a grade are found, or ranked, in the order of their scores (ndcg: of
scores less gains), so that sorting is most of the work. Plain inference, for perceptrons, leaves D out.

A cut is a sparse vector as the base class has it, over the group's own columns, zeros among them.
"""

from libc.math cimport isfinite
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport qsort
from libc.string cimport memset

import numpy as np

from structsvm._problem cimport RESCALE_NONE, RESCALE_SLACK, Cut, Problem
from structsvm._arrays cimport array_data
from structsvm.execution._processor cimport kernel_set
from structsvm.execution._stop cimport poll

from structsvm.arrays import checksum
from structsvm.features.dense import DenseRows, padded

cdef extern from "dense.h" nogil:
    ctypedef struct dense_double_kernels:
        void (*products)(const double* W, int64_t width, const double* x, int64_t n, double* out) noexcept nogil
        void (*add)(double* w, const double* x, double amount, int64_t width) noexcept nogil
    const dense_double_kernels* dense_double_kernels_of(int set, int (*poll)(int64_t work) except -1 nogil)

cdef const dense_double_kernels* KERNELS = dense_double_kernels_of(kernel_set(), poll)

cdef enum GroupLoss:
    ERROR
    F1
    TOP
    PAIRS
    MAP
    NDCG

GROUP_LOSSES = {"error": ERROR, "f1": F1, "prec_at_k": TOP, "prbep": TOP, "pairs": PAIRS, "roc_area": PAIRS,
                "map": MAP, "ndcg": NDCG}

cdef int64_t PART = 1 << 14     # rows or numbers between two polls

ctypedef struct Item:
    double key
    int32_t row         # row in the group


cdef int sort(Item* items, Item* other, int64_t n) except -1 nogil:
    """Descending; rows of equal keys keep their order. `other` has room for n, too."""
    cdef int64_t width = 1, start, middle, end, i, j, at
    cdef Item* source = items
    cdef Item* target = other
    while width < n:
        start = 0
        while start < n:
            middle, end = min(start + width, n), min(start + 2 * width, n)
            i, j = start, middle
            for at in range(start, end):
                if i < middle and (j >= end or source[i].key >= source[j].key):
                    target[at] = source[i]
                    i += 1
                else:
                    target[at] = source[j]
                    j += 1
                if at & (PART - 1) == 0:
                    poll(4 * PART)
            start = end
        source, target = target, source
        width *= 2
    if source != items:
        for at in range(n):
            items[at] = source[at]
    return 0


cdef int ascending(const void* a, const void* b) noexcept nogil:
    cdef int32_t x = (<const int32_t*>a)[0], y = (<const int32_t*>b)[0]
    return (x > y) - (x < y)


cdef class GroupProblem(Problem):
    """Rows in groups, with their grades.

    Parameters
    ----------
    oracle : RankingOracle
    data : Groups
    grades : float64 array of shape (n_rows,)
    """

    cdef readonly object oracle, data, grades
    cdef GroupLoss loss
    cdef const int64_t[::1] bounds      # first rows of the groups
    # Rows: CSR, or a table of whole vectors
    cdef const int64_t* indptr          # NULL: a table
    cdef const int32_t* indices
    cdef const double* values
    cdef object table
    cdef Py_ssize_t width
    cdef double[::1] padded_weights     # (width,)
    cdef int64_t[::1] column_bounds     # first columns of each group's rows, ascending
    cdef int32_t[::1] columns
    # The loss's tables of the grades, see `RankingOracle.about`
    cdef const double[::1] gain
    cdef const int32_t[::1] order
    cdef const int64_t[::1] n_negative, n_found
    cdef const double[::1] norm
    cdef const double[::1] truth
    cdef const double[::1] table_of
    # Scratch memory for the largest group
    cdef double[::1] score, coefficient, vector
    cdef double[::1] sums    # "map": the scores of positives, added up
    cdef double[::1] packed             # values and columns of a cut
    cdef object memory
    cdef Item* items
    cdef Item* others
    cdef int64_t[::1] tree              # counts by grade, as Fenwick sums them
    cdef int32_t[::1] above             # "map": positives above each negative

    def __init__(self, oracle, data, grades, *, rescaling="margin", penalty="linear"):
        rows, bounds = data.rows, data.bounds
        super().__init__(len(data), rows.n_features, rescaling=rescaling, penalty=penalty)
        self.oracle, self.data, self.grades = oracle, data, grades
        self.loss = GROUP_LOSSES[oracle.loss_name]
        self.bounds = bounds
        sizes = np.diff(bounds)
        cdef int64_t largest = sizes.max(initial=1)
        if isinstance(rows, DenseRows):
            self.width = padded(rows.n_features)
            table = np.zeros((len(rows) + 3, self.width))   # products are of four rows at a time
            table[:len(rows), :rows.values.shape[1]] = rows.values
            table[:len(rows), rows.values.shape[1]:rows.n_features] = 1.0
            self.table, self.values = table, <const double*>array_data(table)
            self.padded_weights = np.zeros(self.width)
        else:
            self.indptr = <const int64_t*>array_data(rows.indptr)
            self.indices = <const int32_t*>array_data(rows.indices)
            self.values = <const double*>array_data(rows.values)
        self.vector = np.zeros(padded(rows.n_features))
        self.find_columns()
        self.packed = np.empty(int(np.diff(self.column_bounds).max(initial=0)) * 3 // 2 + 1)
        about = oracle.about(grades, bounds)
        self.gain, self.order, self.n_negative, self.n_found, self.norm, self.truth, self.table_of = about
        self.score, self.coefficient = np.zeros(largest + 3), np.zeros(largest)
        self.memory = np.empty(2 * largest * sizeof(Item), dtype=np.uint8)
        self.items = <Item*>array_data(self.memory)
        self.others = self.items + largest
        self.sums = np.zeros(largest + 1)
        self.tree = np.zeros(largest + 1, dtype=np.int64)
        self.above = np.zeros(largest, dtype=np.int32)

    def find_columns(self):
        """Set the columns of each group; one without any has the first, as a cut without words says nothing."""
        cdef Py_ssize_t i, n = self.n_samples, d = self.n_features
        cdef int64_t e, at = 0
        cdef char[::1] there = np.zeros(d, dtype=np.int8)
        cdef int32_t[::1] found
        self.column_bounds = np.zeros(n + 1, dtype=np.int64)
        if self.indptr == NULL:
            self.columns = np.arange(d, dtype=np.int32)
            self.column_bounds[1:] = d
            return
        found = np.empty(self.indptr[self.bounds[n]] + n, dtype=np.int32)
        with nogil:
            for i in range(n):
                poll(4 * (self.indptr[self.bounds[i + 1]] - self.indptr[self.bounds[i]]))
                for e in range(self.indptr[self.bounds[i]], self.indptr[self.bounds[i + 1]]):
                    if not there[self.indices[e]]:
                        there[self.indices[e]] = 1
                        found[at] = self.indices[e]
                        at += 1
                if at == self.column_bounds[i]:
                    found[at] = 0
                    at += 1
                for e in range(self.column_bounds[i], at):
                    there[found[e]] = 0
                qsort(&found[self.column_bounds[i]], at - self.column_bounds[i], sizeof(int32_t), ascending)
                self.column_bounds[i + 1] = at
        self.columns = np.array(found[:at])

    def examples(self, Py_ssize_t start, Py_ssize_t stop):
        return self.oracle, self.data[start:stop], self.grades[self.bounds[start]:self.bounds[stop]]

    def fingerprint(self):
        about = np.array([<int>self.loss, self.oracle.k or 0, self.n_features])
        return checksum([*self.data.arrays, self.grades, about])

    def structure_fingerprint(self):
        return <int>self.loss

    cdef Py_ssize_t n_columns(self, Py_ssize_t i) noexcept nogil:
        return self.n_features if self.indptr == NULL else self.column_bounds[i + 1] - self.column_bounds[i]

    cdef const int32_t* columns_of(self, Py_ssize_t i) noexcept nogil:
        return &self.columns[0] if self.indptr == NULL else &self.columns[self.column_bounds[i]]

    cdef int64_t n_entries(self, Py_ssize_t i) noexcept nogil:
        cdef int64_t start = self.bounds[i], end = self.bounds[i + 1]
        return (end - start) * self.width // 4 if self.indptr == NULL else self.indptr[end] - self.indptr[start]

    cdef double c_cost(self, Py_ssize_t i) noexcept nogil:
        return 2.0 * self.n_entries(i) + 8.0 * (self.bounds[i + 1] - self.bounds[i])

    # ---- rows -----------------------------------------------------------------------------------------

    cdef int fill(self, Py_ssize_t i, const double* w) except -1 nogil:
        """The scores of a group's rows."""
        cdef int64_t r = self.bounds[i], end = self.bounds[i + 1], first = r, step, e
        cdef double total
        if self.indptr == NULL:
            for e in range(self.n_features):
                self.padded_weights[e] = w[e]
            step = 4 + 4 * (PART // self.width)
            while r < end:
                KERNELS.products(self.values + r * self.width, self.width, &self.padded_weights[0],
                                 min(step, end - r), &self.score[r - first])
                r += step
                poll(step * self.width // 4)
            return 0
        for r in range(first, end):
            total = 0.0
            for e in range(self.indptr[r], self.indptr[r + 1]):
                total += self.values[e] * w[self.indices[e]]
            self.score[r - first] = total
            if r & 255 == 0:
                poll(256 + 128 * (self.indptr[r + 1] - self.indptr[r]))
        return 0

    cdef int sum_rows(self, Py_ssize_t i, Cut* cut) except -1 nogil:
        """Write sum_r coefficient_r x_r into a cut."""
        cdef int64_t first = self.bounds[i], end = self.bounds[i + 1], r, e
        cdef Py_ssize_t c, m = self.n_columns(i)
        cdef const int32_t* columns = self.columns_of(i)
        cdef int32_t* after = <int32_t*>(&self.packed[0] + m)
        cdef double amount
        for c in range(m):      # Ctrl-C may have left a sum there
            self.vector[columns[c]] = 0.0
        for r in range(first, end):
            amount = self.coefficient[r - first]
            if r & 255 == 0:
                poll(256 + 64 * self.width if self.indptr == NULL else 128 * (self.indptr[r + 1] - self.indptr[r]))
            if amount == 0.0:
                continue
            if self.indptr == NULL:
                KERNELS.add(&self.vector[0], self.values + r * self.width, amount, self.width)
            else:
                for e in range(self.indptr[r], self.indptr[r + 1]):
                    self.vector[self.indices[e]] += amount * self.values[e]
        for c in range(m):
            self.packed[c] = self.vector[columns[c]]
            after[c] = columns[c]
        cut.n_words = 3 * m
        return 0

    # ---- cuts -----------------------------------------------------------------------------------------

    cdef int c_separate(self, Py_ssize_t i, const void* w, Cut* cut, double* violation) except -1 nogil:
        cdef Py_ssize_t r, n = self.bounds[i + 1] - self.bounds[i]
        cdef double loss = 0.0, margin = 0.0, finite = 0.0
        cdef bint differs = False
        cut.alpha = cut.drift = cut.b = violation[0] = 0.0
        cut.idle = cut.n_words = 0
        cut.scale = 1.0
        cut.words = <int32_t*>&self.packed[0]
        if self.norm[i] == 0.0:
            return 0
        self.fill(i, <const double*>w)
        for r in range(n):
            finite += 0.0 * self.score[r]
        if not isfinite(finite):        # the solver says it
            violation[0] = finite
            return 0
        self.violator(i, n, &loss)
        for r in range(n):
            margin += self.coefficient[r] * self.score[r]
            differs |= self.coefficient[r] != 0.0
        if self.rescaling == RESCALE_NONE:
            if not differs or margin > 0.0:
                return 0
        else:
            if self.rescaling == RESCALE_SLACK:
                cut.scale = loss
            if not loss - cut.scale * margin > 0.0:
                return 0
        cut.b = loss
        violation[0] = loss - cut.scale * margin
        self.sum_rows(i, cut)
        return 0

    cdef int violator(self, Py_ssize_t i, Py_ssize_t n, double* loss) except -1 nogil:
        """Set the coefficients of the most violated output of group i, and its loss."""
        cdef const int32_t* order = &self.order[self.bounds[i]]
        cdef Py_ssize_t t, N = self.n_negative[i]
        cdef double scale = 0.0 if self.rescaling == RESCALE_NONE else 1.0
        if self.loss == ERROR:
            self.find_errors(i, n, scale, loss)
            return 0
        for t in range(n):
            self.items[t].row = order[t]
            self.items[t].key = self.score[order[t]]
            if self.loss == NDCG:
                self.items[t].key -= scale * self.gain[self.bounds[i] + order[t]]
        if self.loss == PAIRS or self.loss == NDCG:
            sort(self.items, self.others, n)
        else:
            sort(self.items, self.others, N)
            sort(self.items + N, self.others, n - N)
        if self.loss == F1:
            self.find_f1(i, n - N, N, scale, loss)
        elif self.loss == TOP:
            self.find_top(i, n - N, N, scale, loss)
        elif self.loss == PAIRS:
            self.find_pairs(i, n, scale, loss)
        elif self.loss == MAP:
            self.find_map(i, n - N, N, scale, loss)
        else:
            self.find_ndcg(i, n, loss)
        poll(16 * n)
        return 0

    cdef void find_errors(self, Py_ssize_t i, Py_ssize_t n, double scale, double* loss) noexcept nogil:
        """Rows whose margin is missed: each adds (1 - y s) / n."""
        cdef Py_ssize_t r
        cdef double y
        for r in range(n):
            y = 1.0 if self.gain[self.bounds[i] + r] > 0.0 else -1.0
            self.coefficient[r] = y * self.norm[i] if y * self.score[r] <= scale else 0.0
            if self.coefficient[r] != 0.0:
                loss[0] += self.norm[i]

    cdef void set_found(self, Py_ssize_t i, Py_ssize_t a, Py_ssize_t b, Py_ssize_t P, Py_ssize_t N) noexcept nogil:
        """Coefficients of the output that finds the first a positives and b negatives, by their scores."""
        cdef Py_ssize_t t
        for t in range(N):
            self.coefficient[self.items[t].row] = -self.norm[i] if t < b else 0.0
        for t in range(P):
            self.coefficient[self.items[N + t].row] = self.norm[i] if t >= a else 0.0

    cdef void find_f1(self, Py_ssize_t i, Py_ssize_t P, Py_ssize_t N, double scale, double* loss) noexcept nogil:
        """Find, among all (a, b), the maximiser of

            1 - 2a / (P + a + b) - 1/n sum_{t > a} p_t + 1/n sum_{t <= b} q_t.

        Its increment from b - 1 to b at a given a,

            2a / ((P + a + b) (P + a + b - 1)) + q_b / n,

        falls with b: the best b is where it becomes negative. And it rises with a: with m = P + b > P >= a + 1 is

            (a + 1) (m + a - 1) - a (m + a + 1) = m - 1 - a >= 0.

        So the best b never falls as a grows, and one pass over both finds the maximum.
        """
        cdef Py_ssize_t a, b = 0, best_a = 0, best_b = 0
        cdef double norm = self.norm[i], value, sums = 0.0, best = 0.0, m
        cdef Item* q = self.items
        cdef Item* p = self.items + N
        for a in range(P):
            sums -= norm * p[a].key
        for a in range(P + 1):
            while b < N:
                m = <double>P + a + b
                if scale * 2.0 * a / (m * (m + 1.0)) + norm * q[b].key < 0.0:
                    break
                sums += norm * q[b].key
                b += 1
            value = sums - scale * 2.0 * a / (<double>P + a + b)
            if a == 0 or value > best:
                best, best_a, best_b = value, a, b
            if a < P:
                sums += norm * p[a].key
        loss[0] = 1.0 - 2.0 * best_a / (<double>P + best_a + best_b)
        self.set_found(i, best_a, best_b, P, N)

    cdef void find_top(self, Py_ssize_t i, Py_ssize_t P, Py_ssize_t N, double scale, double* loss) noexcept nogil:
        """Find, among all a, the maximiser of the rescaled 1 - a / k, with b = k - a."""
        cdef Py_ssize_t k = self.n_found[i], a, first = max(k - N, 0), last = min(k, P), best_a = first
        cdef double norm = self.norm[i], margin = 0.0, part, value, best = 0.0
        cdef Item* q = self.items
        cdef Item* p = self.items + N
        for a in range(first, P):
            margin += norm * p[a].key
        for a in range(k - first):
            margin -= norm * q[a].key
        for a in range(first, last + 1):
            part = 1.0 - <double>a / k
            value = part * (1.0 - margin) if self.rescaling == RESCALE_SLACK else scale * part - margin
            if a == first or value > best:
                best, best_a = value, a
            if a < last:
                margin += norm * (q[k - a - 1].key - p[a].key)
        loss[0] = 1.0 - <double>best_a / k
        self.set_found(i, best_a, k - best_a, P, N)

    cdef void count(self, Py_ssize_t grade, Py_ssize_t n) noexcept nogil:
        """One more row of a grade in the tree."""
        grade += 1
        while grade <= n:
            self.tree[grade] += 1
            grade += grade & -grade

    cdef int64_t counted(self, Py_ssize_t grade) noexcept nogil:
        """The rows of lower grades in the tree."""
        cdef int64_t total = 0
        while grade > 0:
            total += self.tree[grade]
            grade -= grade & -grade
        return total

    cdef int find_pairs(self, Py_ssize_t i, Py_ssize_t n, double scale, double* loss) except -1 nogil:
        """Pairs whose margin is missed: a better row r and a worse one z with s_z >= s_r - 1.

        Down the scores, what has passed s_r - 1 are candidates for z; up again, what has passed s_z for r. Both passes
        compare the same two numbers.
        """
        cdef const double* grade = &self.gain[self.bounds[i]]
        cdef Item* items = self.items
        cdef Py_ssize_t t, at = 0, G = <Py_ssize_t>grade[self.order[self.bounds[i + 1] - 1]] + 1
        cdef int64_t lower, n_swapped = 0
        memset(&self.tree[0], 0, (G + 1) * sizeof(int64_t))
        for t in range(n):
            while at < n and items[at].key >= items[t].key - scale:
                self.count(<Py_ssize_t>grade[items[at].row], G)
                at += 1
            lower = self.counted(<Py_ssize_t>grade[items[t].row])
            n_swapped += lower
            self.coefficient[items[t].row] = lower
            if t & (PART - 1) == 0:
                poll(16 * PART)
        memset(&self.tree[0], 0, (G + 1) * sizeof(int64_t))
        at = n - 1
        for t in range(n - 1, -1, -1):
            while at >= 0 and items[t].key >= items[at].key - scale:
                self.count(<Py_ssize_t>grade[items[at].row], G)
                at -= 1
            # All that have passed, less those of this grade or a lower one
            lower = self.counted(<Py_ssize_t>grade[items[t].row] + 1)
            self.coefficient[items[t].row] -= (n - 1 - at) - lower
            if t & (PART - 1) == 0:
                poll(16 * PART)
        for t in range(n):
            self.coefficient[t] *= self.norm[i]
        loss[0] = n_swapped * self.norm[i]
        return 0

    cdef int find_map(self, Py_ssize_t i, Py_ssize_t P, Py_ssize_t N, double scale, double* loss) except -1 nogil:
        """Yue and others 2007, algorithm 2: each negative's best place does not depend on the others'.

        With the j-th negative below r positives the sums of loss and -<w, dPsi> differ from those below all P by

            V_j(r) = sum_{t > r} [ t / (P (t + j) (t + j - 1)) - (p_t - q_j) / M ].

        The terms fall with j, so the best r never falls as j grows: halving the negatives, and the range of r with
        them, needs O((N + P) log N) values. With H the harmonic numbers the first part of a sum is
        [j (H_{P+j} - H_{r+j}) - (j - 1) (H_{P+j-1} - H_{r+j-1})] / P.
        """
        cdef Py_ssize_t t, j
        cdef double precision = 0.0
        cdef Item* p = self.items + N
        cdef double* sums = &self.sums[0]
        sums[0] = 0.0
        for t in range(P):
            sums[t + 1] = sums[t] + p[t].key
        self.place_negatives(0, N, 0, P, P, scale, self.norm[i])
        j = 0
        for t in range(P):      # negatives above the t-th positive
            while j < N and self.above[j] <= t:
                j += 1
            precision += (t + 1.0) / (t + 1.0 + j)
            self.coefficient[p[t].row] = self.norm[i] * j
        for j in range(N):
            self.coefficient[self.items[j].row] = -self.norm[i] * (P - self.above[j])
        loss[0] = 1.0 - precision / P
        return 0

    cdef int place_negatives(self, Py_ssize_t start, Py_ssize_t end, Py_ssize_t low, Py_ssize_t high, Py_ssize_t P,
                             double scale, double norm) except -1 nogil:
        """Set `above` of negatives start .. end - 1, from low to high."""
        cdef const double* H = &self.table_of[0]
        cdef const double* sums = &self.sums[0]
        cdef Py_ssize_t mid = (start + end) // 2, j = mid + 1, r, best_r = high
        cdef double q, value, best = 0.0
        if start >= end:
            return 0
        q = self.items[mid].key
        for r in range(low, high + 1):
            value = scale / P * (j * (H[P + j] - H[r + j]) - (j - 1) * (H[P + j - 1] - H[r + j - 1]))
            value -= norm * (sums[P] - sums[r] - (P - r) * q)
            if r == low or value > best:
                best, best_r = value, r
        poll(8 * (high - low + 4))
        self.above[mid] = <int32_t>best_r
        self.place_negatives(start, mid, low, best_r, P, scale, norm)
        return self.place_negatives(mid + 1, end, best_r, high, P, scale, norm)

    cdef void find_ndcg(self, Py_ssize_t i, Py_ssize_t n, double* loss) noexcept nogil:
        """Places in the order of s - g, which pairs the greatest with the greatest discounts."""
        cdef int64_t first = self.bounds[i]
        cdef Py_ssize_t t
        cdef int32_t r
        loss[0] = 1.0
        for t in range(n):
            r = self.items[t].row
            loss[0] -= self.gain[first + r] * self.table_of[t]
            self.coefficient[r] = self.truth[first + r] - self.table_of[t]
        if loss[0] < 1e-12:
            loss[0] = 0.0

    # ---- cuts of one group, which have the same columns -------------------------------------------------

    cdef double c_inner(self, Py_ssize_t i, const Cut* a, const Cut* b) except? -1 nogil:
        cdef const double* x = <const double*>a.words
        cdef const double* y = <const double*>b.words
        cdef double total = 0.0
        cdef Py_ssize_t c
        for c in range(a.n_words // 3):
            total += x[c] * y[c]
        return a.scale * b.scale * total

    cdef bint c_valid(self, Py_ssize_t i, const Cut* cut) noexcept nogil:
        cdef Py_ssize_t c, m = self.n_columns(i)
        cdef const int32_t* columns = self.columns_of(i)
        if cut.n_words != 3 * m or not Problem.c_valid(self, i, cut):
            return False
        for c in range(m):
            if cut.words[2 * m + c] != columns[c]:
                return False
        return True
