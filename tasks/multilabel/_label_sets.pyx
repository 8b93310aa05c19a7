"""Label sets: the best subset of L labels under scores of labels and of pairs of them.

A row x has the scores s = W^T x, an edge e = (a, b) between two labels the weight t_e, and a set y, as indicators,
scores

    <w, Psi(x, y)> = sum_j s_j y_j + sum_e t_e y_a y_b,     w = (W of shape (F, L), then t).

The set of the highest score, plus the loss in training, is found

    without edges   label by label; F1 over the numbers of labels that it finds rightly and wrongly, those of the
                    highest scores first;
    on a forest     by dynamic programming from the leaves; beside the labels' values it carries whether the set differs
                    from the true one, for the zero-one loss of whole sets;
    on any graph    by branch and bound over labels. With a set of labels U still open, o_k the score of k given those
                    chosen, no completion has more than sum_{k in U} max(0, o_k + 1/2 sum_{l in U} max(0, t_kl)), as
                    t y_k y_l <= 1/2 max(0, t) (y_k + y_l). A budget of nodes makes it a search.

A cut is the ascending list of the labels in which its set differs from the true one.
"""

from libc.math cimport INFINITY, fabs
from libc.stdint cimport int8_t, int32_t, int64_t
from libc.string cimport memcpy, memset

import numpy as np

from structsvm._problem cimport RESCALE_NONE, Cut, Problem, Target, cut_terms
from structsvm.execution._stop cimport poll

from structsvm.checksum import checksum
from structsvm.features.dense import DenseRows

cdef enum SetLoss:
    HAMMING
    SUBSET
    F1

cdef enum Structure:
    NONE
    FOREST
    GRAPH

SET_LOSSES = {"hamming": HAMMING, "subset": SUBSET, "f1": F1}
STRUCTURES = {"none": NONE, "forest": FOREST, "graph": GRAPH}


cdef class LabelSetProblem(Problem):
    """Rows and their label sets.

    Parameters
    ----------
    oracle : LabelSetOracle
    rows : DenseRows or SparseRows
    Y : int8 array of shape (n_samples, n_labels)
        1, 0, or -1 for a label that is not known.
    known : int8 array of the same shape, optional
        What is known of them, which Y completes.
    """

    cdef readonly object oracle, rows
    cdef object Y_array, known_array
    cdef int8_t[:, ::1] Y
    cdef const int8_t[:, ::1] known
    cdef const double[::1] values
    cdef const int64_t[::1] indptr          # empty: dense rows
    cdef const int32_t[::1] indices
    cdef Py_ssize_t L, F, E, width          # width: columns of dense rows
    cdef bint has_bias                      # of dense rows
    cdef SetLoss loss_kind
    cdef Structure structure
    cdef int64_t budget                     # of nodes; 0: none
    cdef const int32_t[:, ::1] edges        # (E, 2)
    cdef const int32_t[::1] order, parent, link     # of a forest: leaves first; parent and edge to it, or -1
    # scratch
    cdef Py_ssize_t at_hand
    cdef double[::1] s, amount
    cdef int8_t[::1] y, best_y, other, fixed
    cdef int32_t[::1] words, ranks, target_words
    cdef double[:, :, ::1] table            # (L, 2, 2): of a subtree, by its root's value and whether it differs
    cdef int8_t[:, :, :, ::1] choice        # (L, 2, 2, 3): by the parent's value and whether: own, and both whether
    cdef double[:, ::1] t, open, attract    # (L, L): pairs; by depth, scores of open labels, half of what attracts them
    cdef double best
    cdef int64_t nodes
    cdef bint must_differ
    cdef double[::1] prefix

    def __init__(self, oracle, rows, Y, known=None, *, rescaling="margin", penalty="linear"):
        cdef Py_ssize_t L = oracle.n_labels
        super().__init__(len(rows), oracle.n_features, rescaling=rescaling, penalty=penalty,
                         inference=oracle.inference, nonnegative=oracle.nonnegative)
        self.oracle, self.rows = oracle, rows
        self.Y_array, self.known_array = np.array(Y, dtype=np.int8, order="C"), known
        self.Y = self.Y_array
        self.known = self.Y_array if known is None else known
        self.L, self.F, self.E = L, rows.n_features, len(oracle.edges)
        if isinstance(rows, DenseRows):
            self.values = np.ascontiguousarray(rows.values, dtype=np.float64).ravel()
            self.width, self.has_bias = rows.values.shape[1], rows.has_intercept
            self.indptr, self.indices = np.empty(0, np.int64), np.empty(0, np.int32)
        else:
            self.values, self.indptr, self.indices = rows.values, rows.indptr, rows.indices
        self.loss_kind, self.structure = SET_LOSSES[oracle.loss_name], STRUCTURES[oracle.structure]
        self.budget = oracle.budget
        self.edges = oracle.edges
        self.order, self.parent, self.link = oracle.forest
        self.at_hand = -1
        self.s, self.amount, self.prefix = np.empty(L), np.empty(L), np.empty(L + 2)
        self.y, self.best_y, self.other = np.zeros(L, np.int8), np.zeros(L, np.int8), np.zeros(L, np.int8)
        self.fixed = np.full(L, -1, np.int8)
        self.words, self.ranks = np.empty(L, np.int32), np.empty(L, np.int32)
        self.target_words = np.empty(L, np.int32)
        is_forest, is_graph = self.structure == FOREST, self.structure == GRAPH
        self.table = np.empty((L if is_forest else 0, 2, 2))
        self.choice = np.zeros((L if is_forest else 0, 2, 2, 3), np.int8)
        size = L if is_graph else 0
        self.t, self.open, self.attract = np.zeros((size, size)), np.empty((size + 1, size)), np.empty((size + 1, size))

    @property
    def offers(self):
        return frozenset({"completions"} if (self.Y_array < 0).any() else {"constraints", "completions"})

    def examples(self, Py_ssize_t start, Py_ssize_t stop):
        known = None if self.known_array is None else self.known_array[start:stop]
        return self.oracle, self.rows[start:stop], self.Y_array[start:stop], known

    def fingerprint(self):
        return checksum([np.asarray(self.values), np.asarray(self.indptr), np.asarray(self.indices),
                         self.Y_array if self.known_array is None else self.known_array])

    # ---- scores -----------------------------------------------------------------------------------

    cdef Py_ssize_t entries(self, Py_ssize_t i) noexcept nogil:
        return self.width if self.indptr.shape[0] == 0 else self.indptr[i + 1] - self.indptr[i]

    cdef void fill(self, Py_ssize_t i, const double* w) noexcept nogil:
        """s = W^T x"""
        cdef Py_ssize_t e, j, start, L = self.L
        cdef double* s = &self.s[0]
        cdef double x
        cdef const double* row
        memset(s, 0, L * sizeof(double))
        self.at_hand = i
        if self.indptr.shape[0] == 0:
            for e in range(self.width):
                x = self.values[i * self.width + e]
                row = w + e * L
                for j in range(L):
                    s[j] += x * row[j]
            if self.has_bias:
                row = w + self.width * L
                for j in range(L):
                    s[j] += row[j]
            return
        start = self.indptr[i]
        for e in range(start, start + self.entries(i)):
            x = self.values[e]
            row = w + self.indices[e] * L
            for j in range(L):
                s[j] += x * row[j]

    cdef double square(self, Py_ssize_t i) noexcept nogil:
        """|x|^2"""
        cdef double total = 1.0 if self.has_bias else 0.0
        cdef Py_ssize_t e, start = i * self.width if self.indptr.shape[0] == 0 else self.indptr[i]
        for e in range(start, start + self.entries(i)):
            total += self.values[e] * self.values[e]
        return total

    # ---- inference: leaves the set in `best_y` ------------------------------------------------------

    cdef void decode(self, const int8_t* truth, bint augmented, const double* t) noexcept nogil:
        """The set that maximises score, and loss if `augmented`, of those that agree with `fixed`."""
        cdef Py_ssize_t j
        self.must_differ = augmented and self.loss_kind == SUBSET
        if augmented and self.loss_kind == HAMMING:
            for j in range(self.L):
                self.amount[j] = self.s[j] + (1.0 - 2.0 * truth[j])
        else:
            memcpy(&self.amount[0], &self.s[0], self.L * sizeof(double))
        if self.structure == FOREST:
            self.decode_forest(truth, t)
        elif self.structure == GRAPH:
            self.decode_graph(truth, augmented and self.loss_kind == F1, t)
        elif augmented and self.loss_kind == F1:
            self.decode_counts(truth)
        else:
            self.decode_alone(truth)

    cdef void decode_alone(self, const int8_t* truth) noexcept nogil:
        cdef Py_ssize_t j, nearest = 0
        cdef double margin, least = INFINITY
        cdef bint differs = False
        for j in range(self.L):
            self.best_y[j] = self.fixed[j] if self.fixed[j] >= 0 else self.amount[j] > 0.0
            differs |= self.best_y[j] != truth[j]
            margin = self.amount[j] if self.amount[j] >= 0.0 else -self.amount[j]
            if margin < least:
                least, nearest = margin, j
        if self.must_differ and not differs:
            self.best_y[nearest] = 1 - self.best_y[nearest]

    cdef void rank(self) noexcept nogil:
        """`ranks`: labels by descending amounts."""
        cdef Py_ssize_t j, k
        for j in range(self.L):
            k = j
            while k > 0 and self.amount[self.ranks[k - 1]] < self.amount[j]:
                self.ranks[k] = self.ranks[k - 1]
                k -= 1
            self.ranks[k] = <int32_t>j

    cdef void decode_counts(self, const int8_t* truth) noexcept nogil:
        """F1 = 2 a / (p + a + b) with the a best of the p true labels and the b best others."""
        cdef Py_ssize_t j, a, b, p = 0, n = 0, best_a = 0, best_b = 0
        cdef double value, high = -INFINITY
        cdef double* right = &self.prefix[0]
        cdef double* wrong
        self.rank()
        for j in range(self.L):
            p += truth[j]
        wrong = right + p + 1
        right[0] = wrong[0] = 0.0
        a = 0
        for j in range(self.L):
            if truth[self.ranks[j]]:
                right[a + 1] = right[a] + self.amount[self.ranks[j]]
                a += 1
            else:
                wrong[n + 1] = wrong[n] + self.amount[self.ranks[j]]
                n += 1
        for a in range(p + 1):
            for b in range(n + 1):
                value = right[a] + wrong[b] + f1_loss(a, b, p)
                if value > high:
                    high, best_a, best_b = value, a, b
        for j in range(self.L):
            if truth[self.ranks[j]]:
                self.best_y[self.ranks[j]] = best_a > 0
                best_a -= 1
            else:
                self.best_y[self.ranks[j]] = best_b > 0
                best_b -= 1

    cdef void decode_forest(self, const int8_t* truth, const double* t) noexcept nogil:
        """table[j, v, d]: the best of j's subtree with y_j = v, which differs from the truth (d = 1) or does not.

        Children come before their parents; one after the other they join their parent's table, which leaves in
        choice[j, v, d] what the child does where its parent has v, and what then both of them are. A root is a child of
        a node of value 0 that all roots share.
        """
        cdef Py_ssize_t k, j, p
        cdef int u, v, d, dc, merged
        cdef double value, own
        cdef double root[2]
        cdef double joined[2]
        cdef double best_child[2]
        cdef int arg_child[2]
        for j in range(self.L):
            for v in range(2):
                d = v != truth[j]
                own = self.amount[j] if v else 0.0
                if self.fixed[j] >= 0 and self.fixed[j] != v:
                    own = -INFINITY
                self.table[j, v, d] = own
                self.table[j, v, 1 - d] = -INFINITY
        root[0], root[1] = 0.0, -INFINITY
        for k in range(self.L):
            j, p = self.order[k], self.parent[self.order[k]]
            for v in range(2 if p >= 0 else 1):
                for dc in range(2):
                    best_child[dc], arg_child[dc] = -INFINITY, 0
                    for u in range(2):
                        value = self.table[j, u, dc]
                        if u and v:
                            value += t[self.link[j]]
                        if value > best_child[dc]:
                            best_child[dc], arg_child[dc] = value, u
                joined[0] = joined[1] = -INFINITY
                for d in range(2):
                    for dc in range(2):
                        value = (self.table[p, v, d] if p >= 0 else root[d]) + best_child[dc]
                        merged = d | dc
                        if value > joined[merged]:
                            joined[merged] = value
                            self.choice[j, v, merged, 0] = <int8_t>arg_child[dc]
                            self.choice[j, v, merged, 1] = <int8_t>d
                            self.choice[j, v, merged, 2] = <int8_t>dc
                for d in range(2):
                    if p >= 0:
                        self.table[p, v, d] = joined[d]
                    else:
                        root[d] = joined[d]
        d = 1 if self.must_differ or root[1] > root[0] else 0
        # Backwards: `other[j]` is whether what is left of j's subtree, and j, are to differ.
        for k in range(self.L - 1, -1, -1):
            j, p = self.order[k], self.parent[self.order[k]]
            v = self.best_y[p] if p >= 0 else 0
            merged = self.other[p] if p >= 0 else d
            self.best_y[j] = self.choice[j, v, merged, 0]
            self.other[j] = self.choice[j, v, merged, 2]
            if p >= 0:
                self.other[p] = self.choice[j, v, merged, 1]
            else:
                d = self.choice[j, v, merged, 1]

    cdef void decode_graph(self, const int8_t* truth, bint with_f1, const double* t) noexcept nogil:
        """Branch and bound; labels of large scores first."""
        cdef Py_ssize_t e, j, k, depth, L = self.L
        for e in range(self.E):
            self.t[self.edges[e, 0], self.edges[e, 1]] = self.t[self.edges[e, 1], self.edges[e, 0]] = t[e]
        for j in range(L):
            k = j
            while k > 0 and fabs(self.amount[self.ranks[k - 1]]) < fabs(self.amount[j]):
                self.ranks[k] = self.ranks[k - 1]
                k -= 1
            self.ranks[k] = <int32_t>j
        memcpy(&self.open[0, 0], &self.amount[0], L * sizeof(double))
        memset(&self.attract[L, 0], 0, L * sizeof(double))
        for depth in range(L - 1, -1, -1):      # attract[depth]: of the labels that are open there
            j = self.ranks[depth]
            for k in range(L):
                self.attract[depth, k] = self.attract[depth + 1, k] + 0.5 * max(self.t[j, k], 0.0)
        self.best, self.nodes = -INFINITY, 0
        self.branch(truth, with_f1, 0, 0.0, False, 0, 0)

    cdef void branch(self, const int8_t* truth, bint with_f1, Py_ssize_t depth, double score, bint differs,
                     Py_ssize_t right, Py_ssize_t wrong) noexcept nogil:
        cdef Py_ssize_t j, k, m, L = self.L, p = 0
        cdef double bound = score + (1.0 if with_f1 else 0.0)
        cdef int turn, v, first
        self.nodes += 1
        if depth == L:
            if self.must_differ and not differs:
                return
            if with_f1:
                for j in range(L):
                    p += truth[j]
                score += f1_loss(right, wrong, p)
            if score > self.best:
                self.best = score
                memcpy(&self.best_y[0], &self.y[0], L)
            return
        if self.best > -INFINITY:
            if self.budget > 0 and self.nodes > self.budget:
                return
            for m in range(depth, L):
                k = self.ranks[m]
                bound += max(0.0, self.open[depth, k] + self.attract[depth, k])
            if bound <= self.best:
                return
        j = self.ranks[depth]
        first = self.open[depth, j] + self.attract[depth + 1, j] > 0.0
        for turn in range(2):
            v = first if turn == 0 else 1 - first
            if self.fixed[j] >= 0 and self.fixed[j] != v:
                continue
            self.y[j] = <int8_t>v
            for m in range(depth + 1, L):
                k = self.ranks[m]
                self.open[depth + 1, k] = self.open[depth, k] + (self.t[j, k] if v else 0.0)
            self.branch(truth, with_f1, depth + 1, score + (self.open[depth, j] if v else 0.0),
                        differs | (v != truth[j]), right + (v & truth[j]), wrong + (v & (1 - truth[j])))

    cdef int count(self) except -1 nogil:
        """Poll for the work of `decode`, when nothing is half written."""
        return poll((self.nodes if self.structure == GRAPH else 32) * self.L)

    # ---- the verbs ----------------------------------------------------------------------------------

    cdef int c_separate(self, Py_ssize_t i, const void* w, Cut* cut, double* violation) except -1 nogil:
        cdef const int8_t* truth = &self.Y[i, 0]
        cdef Py_ssize_t j, n = 0
        cdef double score, finite = 0.0
        poll(<int64_t>self.c_cost(i))
        self.fill(i, <const double*>w)
        for j in range(self.L):
            finite += 0.0 * self.s[j]
            if truth[j] < 0:
                with gil:
                    raise ValueError(f"labels of example {self.first + i} are not known: train with LatentSVM")
        self.decode(truth, self.rescaling != RESCALE_NONE, <const double*>w + self.F * self.L)
        self.count()
        for j in range(self.L):
            if self.best_y[j] != truth[j]:
                self.words[n] = <int32_t>j
                n += 1
        cut.alpha = cut.drift = cut.b = violation[0] = 0.0
        cut.idle = 0
        cut.scale = 1.0
        cut.n_words = 0
        if finite != 0.0:       # not a number
            violation[0] = finite
            return 0
        if n == 0:
            return 0
        cut.words = &self.words[0]
        cut.n_words = n
        cut_terms(self.rescaling, self.penalty, self.loss_of(truth, &self.best_y[0]), cut)
        self.c_dots(i, cut, 1, w, True, &score)
        violation[0] = cut.b - score
        if violation[0] < 0.0 and self.rescaling != RESCALE_NONE:   # of "subset": the true set itself is the maximiser
            cut.n_words = 0
            cut.b = violation[0] = 0.0
        return 0

    cdef double loss_of(self, const int8_t* truth, const int8_t* y) noexcept nogil:
        cdef Py_ssize_t j, right = 0, wrong = 0, p = 0, differ = 0
        for j in range(self.L):
            differ += y[j] != truth[j]
            p += truth[j]
            right += y[j] & truth[j]
            wrong += y[j] & (1 - truth[j])
        if self.loss_kind == HAMMING:
            return <double>differ
        if self.loss_kind == SUBSET:
            return 1.0 if differ > 0 else 0.0
        return f1_loss(right, wrong, p)

    cdef void unpack(self, Py_ssize_t i, const Cut* cut, int8_t* y) noexcept nogil:
        """The set of a cut."""
        cdef Py_ssize_t k
        memcpy(y, &self.Y[i, 0], self.L)
        for k in range(cut.n_words):
            y[cut.words[k]] = 1 - y[cut.words[k]]

    cdef int c_dots(self, Py_ssize_t i, const Cut* cuts, Py_ssize_t n, const void* w, bint fresh,
                    double* out) except -1 nogil:
        cdef const double* t = <const double*>w + self.F * self.L
        cdef const int8_t* truth = &self.Y[i, 0]
        cdef Py_ssize_t c, k, e, a, b
        cdef double total
        if not (fresh and self.at_hand == i):
            self.fill(i, <const double*>w)
        for c in range(n):
            total = 0.0
            for k in range(cuts[c].n_words):
                total += self.s[cuts[c].words[k]] * (2 * truth[cuts[c].words[k]] - 1)
            if self.E > 0:
                self.unpack(i, &cuts[c], &self.y[0])
                for e in range(self.E):
                    a, b = self.edges[e, 0], self.edges[e, 1]
                    total += t[e] * (truth[a] * truth[b] - self.y[a] * self.y[b])
            out[c] = cuts[c].scale * total
        return 0

    cdef int c_add(self, Py_ssize_t i, const Cut* cut, double coef, void* w) except -1 nogil:
        return self.c_accumulate(i, cut, coef, <double*>w)

    cdef int c_accumulate(self, Py_ssize_t i, const Cut* cut, double coef, double* w) except -1 nogil:
        cdef const int8_t* truth = &self.Y[i, 0]
        cdef Py_ssize_t e, k, start, j, L = self.L, a, b
        cdef double x
        cdef double* amount = &self.amount[0]
        cdef double* row
        coef *= cut.scale
        memset(amount, 0, L * sizeof(double))
        for k in range(cut.n_words):
            amount[cut.words[k]] = coef * (2 * truth[cut.words[k]] - 1)
        if self.indptr.shape[0] == 0:
            for e in range(self.width):
                x = self.values[i * self.width + e]
                row = w + e * L
                for j in range(L):
                    row[j] += x * amount[j]
            if self.has_bias:
                row = w + self.width * L
                for j in range(L):
                    row[j] += amount[j]
        else:
            start = self.indptr[i]
            for e in range(start, start + self.entries(i)):
                x = self.values[e]
                row = w + self.indices[e] * L
                for k in range(cut.n_words):
                    row[cut.words[k]] += x * amount[cut.words[k]]
        if self.E > 0:
            self.unpack(i, cut, &self.y[0])
            for e in range(self.E):
                a, b = self.edges[e, 0], self.edges[e, 1]
                w[self.F * L + e] += coef * (truth[a] * truth[b] - self.y[a] * self.y[b])
        return 0

    cdef double c_inner(self, Py_ssize_t i, const Cut* a, const Cut* b) except? -1 nogil:
        """|x|^2 times the number of labels in which both differ, and what the edges of both have in common."""
        cdef const int8_t* truth = &self.Y[i, 0]
        cdef Py_ssize_t p = 0, q = 0, e, j, k
        cdef int64_t shared = 0, pairs = 0
        cdef int of_truth
        while p < a.n_words and q < b.n_words:
            if a.words[p] == b.words[q]:
                shared += 1
                p += 1
                q += 1
            elif a.words[p] < b.words[q]:
                p += 1
            else:
                q += 1
        if self.E > 0:
            self.unpack(i, a, &self.y[0])
            self.unpack(i, b, &self.other[0])
            for e in range(self.E):
                j, k = self.edges[e, 0], self.edges[e, 1]
                of_truth = truth[j] * truth[k]
                pairs += (of_truth - self.y[j] * self.y[k]) * (of_truth - self.other[j] * self.other[k])
        return a.scale * b.scale * (self.square(i) * shared + pairs)

    cdef bint c_valid(self, Py_ssize_t i, const Cut* cut) noexcept nogil:
        cdef Py_ssize_t k
        cdef int32_t label, last = -1
        for k in range(cut.n_words):
            memcpy(&label, cut.words + k, sizeof(int32_t))
            if not last < label < self.L:
                return False
            last = label
        return cut.n_words > 0

    cdef double c_cost(self, Py_ssize_t i) noexcept nogil:
        return <double>((self.entries(i) + 8) * self.L + self.E)

    # ---- label sets that are known in part ------------------------------------------------------------

    cdef int c_complete(self, Py_ssize_t i, const void* w, Target* target) except -1 nogil:
        cdef Py_ssize_t j
        poll(<int64_t>self.c_cost(i))
        self.fill(i, <const double*>w)
        memcpy(&self.fixed[0], &self.known[i, 0], self.L)
        self.decode(&self.known[i, 0], False, <const double*>w + self.F * self.L)
        memset(&self.fixed[0], -1, self.L)
        self.count()
        for j in range(self.L):
            self.target_words[j] = self.best_y[j]
        target.words = &self.target_words[0]
        target.n_words = self.L
        return 0

    cdef bint c_retarget(self, Py_ssize_t i, const Target* target, bint take) except -1 nogil:
        cdef Py_ssize_t j
        cdef bint differs = False
        for j in range(self.L):
            differs |= self.Y[i, j] != target.words[j]
            if take:
                self.Y[i, j] = <int8_t>target.words[j]
        return differs

    @property
    def targets(self):
        return np.arange(self.n_samples + 1, dtype=np.int64) * self.L, self.Y_array.astype(np.int32).ravel()

    def with_targets(self, targets):
        cdef Problem problem = LabelSetProblem(
            self.oracle, self.rows, np.reshape(targets[1], (self.n_samples, self.L)),
            self.Y_array.copy() if self.known_array is None else self.known_array, **self.formulation)
        problem.first = self.first
        return problem

    # ---- prediction -----------------------------------------------------------------------------------

    def answer(self, Py_ssize_t i, w):
        """The set that `separate` finds: int8 array (n_labels,)."""
        cdef const double[::1] weights = self._check_weights(w)
        cdef Cut cut
        cdef double violation
        self._check_example(i)
        self.c_separate(i, &weights[0], &cut, &violation)
        self.unpack(i, &cut, &self.y[0])
        return np.array(self.y)

    def decoded(self, w):
        """The set of the highest score of each row that agrees with the labels known: int8 array (n, n_labels)."""
        cdef const double[::1] weights = self._check_weights(w)
        cdef int8_t[:, ::1] found = np.empty((self.n_samples, self.L), np.int8)
        cdef Py_ssize_t i
        cdef Target target
        with nogil:
            for i in range(self.n_samples):
                self.c_complete(i, &weights[0], &target)
                memcpy(&found[i, 0], &self.best_y[0], self.L)
        return np.asarray(found)

    def margins(self, w):
        """The best score with each label less the best score without it: float64 array (n, n_labels)."""
        cdef const double[::1] weights = self._check_weights(w)
        cdef double[:, ::1] found = np.empty((self.n_samples, self.L))
        cdef Py_ssize_t i, j
        cdef int v
        cdef double sides[2]
        cdef const double* t = &weights[0] + self.F * self.L
        with nogil:
            for i in range(self.n_samples):
                poll(<int64_t>self.c_cost(i))
                self.fill(i, &weights[0])
                if self.structure == NONE:
                    memcpy(&found[i, 0], &self.s[0], self.L * sizeof(double))
                    continue
                for j in range(self.L):
                    for v in range(2):
                        self.fixed[j] = <int8_t>v
                        self.decode(&self.known[i, 0], False, t)
                        self.fixed[j] = -1
                        self.count()
                        sides[v] = self.score_of(&self.best_y[0], t)
                    found[i, j] = sides[1] - sides[0]
        return np.asarray(found)

    cdef double score_of(self, const int8_t* y, const double* t) noexcept nogil:
        cdef Py_ssize_t j, e
        cdef double total = 0.0
        for j in range(self.L):
            if y[j]:
                total += self.s[j]
        for e in range(self.E):
            if y[self.edges[e, 0]] and y[self.edges[e, 1]]:
                total += t[e]
        return total


cdef double f1_loss(Py_ssize_t right, Py_ssize_t wrong, Py_ssize_t n_true) noexcept nogil:
    """1 - F1; of two empty sets 0."""
    return 1.0 - 2.0 * right / (n_true + right + wrong) if n_true + right + wrong > 0 else 0.0
