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
                    t y_k y_l <= 1/2 max(0, t) (y_k + y_l). A budget of nodes makes it a search;
    with many labels by roof duality: the best point of the linear relaxation has y_j in {0, 1/2, 1}, and is a minimum
                    cut. Training takes it as it is. Labels that are whole there are so in a best set: for prediction
                    the search is left with the others.

A cut is an ascending list of numbers: j for a label in which its set differs from the true one, L + j for one that
is 1/2, and 2 L + e for a pair of two such of value 1/2 (it is 0 otherwise, and y_a y_b where either label is whole).

Sums over all sets have the same three forms: a product over labels, messages of a forest, and the enumeration, less
what the bound above shows to be negligible.
"""

from libc.math cimport INFINITY, exp, fabs, isfinite, log, log1p
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t
from libc.string cimport memcpy, memset

import numpy as np

from structsvm._problem cimport RESCALE_NONE, Cut, Memory, Problem, Target, cut_terms
from structsvm._arrays cimport array_data, ndarray
from structsvm._typedefs cimport float32_t
from structsvm.execution._stop cimport poll
from structsvm.structures._cuts cimport CUT_HALF, cut_solve, flow_graph

from structsvm.adapter import offers_of
from structsvm.arrays import checksum
from structsvm.features.dense import DenseRows

cdef enum SetLoss:
    HAMMING         # and the log loss
    SUBSET
    F1

cdef enum Structure:
    NONE
    FOREST
    GRAPH

cdef enum Asked:     # questions about rows
    BEST
    MARGINS
    MARGINALS

SET_LOSSES = {"hamming": HAMMING, "subset": SUBSET, "f1": F1, "log": HAMMING}
STRUCTURES = {"none": NONE, "forest": FOREST, "graph": GRAPH}

cdef double LOG_2 = 0.6931471805599453
cdef double NEGLIGIBLE = -40.0      # logarithm of what a sum of sets leaves out, of 2^20 terms at most


cdef class LabelSetProblem(Problem):
    """Rows and their label sets.

    Parameters
    ----------
    oracle : LabelSetOracle
    rows : DenseRows or SparseRows
    Y : int8 array of shape (n_samples, n_labels)
        1, 0, or -1 for an unknown label.
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
    cdef bint has_bias                      # dense rows have a bias
    cdef SetLoss loss_kind
    cdef Structure structure
    cdef int64_t budget                     # most nodes; 0: no limit
    cdef bint has_tree, fractional          # the pairs are a forest; outputs of training may be fractional
    cdef const int32_t[:, ::1] edges        # (E, 2)
    cdef const int32_t[::1] order, parent, link     # a forest, leaves first; parent and edge to it, or -1
    # scratch
    cdef Memory memory
    cdef Py_ssize_t at_hand
    cdef double* s
    cdef double* amount
    cdef int8_t* y
    cdef int8_t* best_y
    cdef int8_t* other
    cdef int8_t* fixed
    cdef int32_t* words
    cdef int32_t* ranks
    cdef int32_t* target_words
    cdef double[:, :, ::1] table            # (L, 2, 2): of a subtree, by its root's value and whether it differs
    cdef int8_t[:, :, :, ::1] choice        # (L, 2, 2, 3): by the parent's value and whether: own, and both whether
    cdef double* t                          # (L, L): pairs
    cdef double* open                       # (L + 1, L): by depth, scores of open labels
    cdef double* attract                    # (L + 1, L): half of what attracts them
    cdef double best
    cdef int64_t nodes
    cdef bint must_differ
    cdef double* prefix
    # the relaxation: flows between two nodes a label, and its optimum (CUT_HALF: 1/2); NULL: there is none
    cdef flow_graph f
    cdef double* cost
    cdef uint8_t* x
    # sums: the share of sets with a label, with both labels of a pair; scratch of `sum_branch`
    cdef double* mean
    cdef double* pair_mean
    cdef double* share
    cdef double* joint

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
        cdef Memory memory = Memory()
        self.memory = memory
        self.s, self.amount = memory.float64s(L), memory.float64s(L)
        self.prefix, self.mean = memory.float64s(L + 2), memory.float64s(L)
        self.pair_mean = memory.float64s(self.E)
        self.y, self.best_y = <int8_t*>memory.take(L, np.int8), <int8_t*>memory.take(L, np.int8)
        self.other, self.fixed = <int8_t*>memory.take(L, np.int8), <int8_t*>memory.take(L, np.int8)
        self.fractional = self.inference == "relaxed"
        self.words = memory.int32s(L + (self.E if self.fractional else 0))
        self.ranks, self.target_words = memory.int32s(L), memory.int32s(L)
        self.has_tree = self.E > 0 and len(self.order) > 0
        self.table = np.empty((L if self.has_tree else 0, 2, 2))
        self.choice = np.zeros((L if self.has_tree else 0, 2, 2, 3), np.int8)
        size = L * (L + 1) if self.structure == GRAPH else 0
        self.t, self.open = memory.float64s(size), memory.float64s(size)
        self.attract = memory.float64s(size)
        if not self.budget:
            self.share, self.joint = memory.float64s(size), memory.float64s(size)
        elif not self.has_tree:
            self.make_flow(memory)

    cdef int make_flow(self, Memory memory) except -1:
        """Room for two nodes a label, and four arcs a pair."""
        cdef Py_ssize_t n = 2 * self.L, arcs = 4 * self.E
        cdef int32_t* whole = memory.int32s(6 * n + 2 * arcs)
        cdef uint8_t* flags = memory.uint8s(3 * n)
        self.f.first, self.f.parent, self.f.stamp = whole, whole + n, whole + 2 * n
        self.f.distance, self.f.queue, self.f.orphans = whole + 3 * n, whole + 4 * n, whole + 5 * n
        self.f.next, self.f.head = whole + 6 * n, whole + 6 * n + arcs
        self.f.terminal = memory.float64s(n + arcs)
        self.f.residual = self.f.terminal + n
        self.f.tree, self.f.queued, self.f.orphaned = flags, flags + n, flags + 2 * n
        self.cost, self.x = memory.float64s(self.L), memory.uint8s(self.L)
        return 0

    @property
    def offers(self):
        return offers_of((self.Y_array < 0).any(), self.oracle.has_expect)

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
        cdef double* s = self.s
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

    cdef int decode(self, const int8_t* truth, bint augmented, const double* t) except -1 nogil:
        """The set that maximises score, and loss if `augmented`, of those that agree with `fixed`, which it changes."""
        cdef Py_ssize_t j
        self.augment(truth, augmented)
        if self.has_tree and not (augmented and self.loss_kind == F1):
            self.decode_forest(truth, t)
        elif self.structure == GRAPH:
            if self.x != NULL and not (augmented and self.loss_kind != HAMMING):
                self.relax(t)
                for j in range(self.L):
                    if self.x[j] != CUT_HALF:
                        self.fixed[j] = <int8_t>self.x[j]
            self.decode_graph(truth, augmented and self.loss_kind == F1, t)
        elif augmented and self.loss_kind == F1:
            self.decode_counts(truth)
        else:
            self.decode_alone(truth)
        return poll((self.nodes if self.structure == GRAPH else 32) * self.L)

    cdef void augment(self, const int8_t* truth, bint augmented) noexcept nogil:
        """The amounts that labels add, and what the set must be for the rest of the loss."""
        cdef Py_ssize_t j
        self.must_differ = augmented and self.loss_kind == SUBSET
        if augmented and self.loss_kind == HAMMING:
            for j in range(self.L):
                self.amount[j] = self.s[j] + (1.0 - 2.0 * truth[j])
        else:
            memcpy(self.amount, self.s, self.L * sizeof(double))

    cdef int relax(self, const double* t) except -1 nogil:
        """x: the best point of the relaxation, of those that agree with `fixed`.

        With x_a x_b = (x_a + x_b - |x_a - x_b|) / 2 it minimises sum_j cost_j x_j + sum_e t_e |x_a - x_b| / 2.
        """
        cdef Py_ssize_t j, e
        cdef double far = 1.0
        for j in range(self.L):
            self.cost[j] = -self.amount[j]
            far += fabs(self.amount[j])
        for e in range(self.E):
            self.cost[self.edges[e, 0]] -= 0.5 * t[e]
            self.cost[self.edges[e, 1]] -= 0.5 * t[e]
            far += fabs(t[e])
        if not isfinite(far):
            with gil:
                raise ValueError(f"row {self.first + self.at_hand}: the scores overflow, or w has values that are not "
                                 "finite")
        for j in range(self.L):
            if self.fixed[j] >= 0:
                self.cost[j] = -2.0 * far if self.fixed[j] else 2.0 * far
        cut_solve(&self.f, self.L, &self.edges[0, 0], self.E, self.cost, t, self.x, poll)
        return 0

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
        cdef double* right = self.prefix
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
        """Branch and bound; labels that are fixed, and those of large scores, first."""
        cdef Py_ssize_t e, j, k, depth, L = self.L
        for e in range(self.E):
            self.t[self.edges[e, 0] * L + self.edges[e, 1]] = self.t[self.edges[e, 1] * L + self.edges[e, 0]] = t[e]
        for j in range(L):
            k = j
            while k > 0 and self.urgency(self.ranks[k - 1]) < self.urgency(j):
                self.ranks[k] = self.ranks[k - 1]
                k -= 1
            self.ranks[k] = <int32_t>j
        memcpy(self.open, self.amount, L * sizeof(double))
        memset(self.attract + L * L, 0, L * sizeof(double))
        for depth in range(L - 1, -1, -1):      # attract[depth]: of the labels that are open there
            j = self.ranks[depth]
            for k in range(L):
                self.attract[depth * L + k] = self.attract[(depth + 1) * L + k] + 0.5 * max(self.t[j * L + k], 0.0)
        self.best, self.nodes = -INFINITY, 0
        self.branch(truth, with_f1, 0, 0.0, False, 0, 0)

    cdef inline double urgency(self, Py_ssize_t j) noexcept nogil:
        return INFINITY if self.fixed[j] >= 0 else fabs(self.amount[j])

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
                memcpy(self.best_y, self.y, L)
            return
        if self.best > -INFINITY:
            if self.budget > 0 and self.nodes > self.budget:
                return
            for m in range(depth, L):
                k = self.ranks[m]
                bound += max(0.0, self.open[depth * L + k] + self.attract[depth * L + k])
            if bound <= self.best:
                return
        j = self.ranks[depth]
        first = self.open[depth * L + j] + self.attract[(depth + 1) * L + j] > 0.0
        for turn in range(2):
            v = first if turn == 0 else 1 - first
            if self.fixed[j] >= 0 and self.fixed[j] != v:
                continue
            self.y[j] = <int8_t>v
            for m in range(depth + 1, L):
                k = self.ranks[m]
                self.open[(depth + 1) * L + k] = self.open[depth * L + k] + (self.t[j * L + k] if v else 0.0)
            self.branch(truth, with_f1, depth + 1, score + (self.open[depth * L + j] if v else 0.0),
                        differs | (v != truth[j]), right + (v & truth[j]), wrong + (v & (1 - truth[j])))

    # ---- the verbs ----------------------------------------------------------------------------------

    cdef int c_separate(self, Py_ssize_t i, const void* w, Cut* cut, double* violation) except -1 nogil:
        cdef const int8_t* truth = &self.Y[i, 0]
        cdef const double* t = <const double*>w + self.F * self.L
        cdef bint augmented = self.rescaling != RESCALE_NONE
        cdef Py_ssize_t j, n = 0
        cdef double score, finite = 0.0, loss
        poll(<int64_t>self.c_cost(i))
        self.fill(i, <const double*>w)
        for j in range(self.L):
            finite += 0.0 * self.s[j]
            if truth[j] < 0:
                with gil:
                    raise ValueError(f"labels of example {self.first + i} are not known: train with LatentSVM")
        cut.alpha = cut.drift = cut.b = violation[0] = 0.0
        cut.idle = 0
        cut.scale = 1.0
        cut.n_words = 0
        if finite != 0.0:       # not a number
            violation[0] = finite
            return 0
        memset(self.fixed, -1, self.L)
        if self.fractional:
            self.augment(truth, augmented)
            self.relax(t)
            n = self.pack_halves(truth, t, &loss)
        else:
            self.decode(truth, augmented, t)
            for j in range(self.L):
                if self.best_y[j] != truth[j]:
                    self.words[n] = <int32_t>j
                    n += 1
            loss = self.loss_of(truth, self.best_y)
        if n == 0:
            return 0
        cut.words = self.words
        cut.n_words = n
        cut_terms(self.rescaling, self.penalty, loss, cut)
        self.c_dots(i, cut, 1, w, True, &score)
        violation[0] = cut.b - score
        if violation[0] < 0.0 and augmented:    # "subset": the true set itself is the maximiser
            cut.n_words = 0
            cut.b = violation[0] = 0.0
        return 0

    cdef Py_ssize_t pack_halves(self, const int8_t* truth, const double* t, double* loss) noexcept nogil:
        """The words of x, their number, and its loss. A pair of two halves is 1/2 where that is worth something."""
        cdef Py_ssize_t j, e, n = 0
        loss[0] = 0.0
        for j in range(self.L):
            if self.x[j] != CUT_HALF and self.x[j] != truth[j]:
                self.words[n] = <int32_t>j
                loss[0] += 1.0
                n += 1
        for j in range(self.L):
            if self.x[j] == CUT_HALF:
                self.words[n] = <int32_t>(self.L + j)
                loss[0] += 0.5
                n += 1
        for e in range(self.E):
            if t[e] > 0.0 and self.x[self.edges[e, 0]] == CUT_HALF and self.x[self.edges[e, 1]] == CUT_HALF:
                self.words[n] = <int32_t>(2 * self.L + e)
                n += 1
        return n

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

    cdef Py_ssize_t unpack(self, Py_ssize_t i, const Cut* cut, int8_t* y) noexcept nogil:
        """Twice the set of a cut; the place among its words from which on they are pairs."""
        cdef Py_ssize_t j, k
        for j in range(self.L):
            y[j] = 2 * self.Y[i, j]
        for k in range(cut.n_words):
            j = cut.words[k]
            if j >= 2 * self.L:
                return k
            if j < self.L:
                y[j] = 2 - y[j]
            else:
                y[j - self.L] = 1
        return cut.n_words

    cdef inline int pair_of(self, const Cut* cut, const int8_t* y, Py_ssize_t e, Py_ssize_t* at) noexcept nogil:
        """Twice the value of a pair; `at` runs along the words, with pairs requested in order."""
        if at[0] < cut.n_words and cut.words[at[0]] == 2 * self.L + e:
            at[0] += 1
            return 1
        return y[self.edges[e, 0]] * y[self.edges[e, 1]] // 2

    cdef inline int true_pair(self, const int8_t* truth, Py_ssize_t e) noexcept nogil:
        return truth[self.edges[e, 0]] * truth[self.edges[e, 1]]

    cdef inline double change(self, const int8_t* truth, int32_t word, Py_ssize_t* label) noexcept nogil:
        """The true value of the label of a word less that in the cut; of pairs 0."""
        label[0] = word % self.L
        if word >= 2 * self.L:
            return 0.0
        return (2 * truth[label[0]] - 1) * (1.0 if word < self.L else 0.5)

    cdef int c_dots(self, Py_ssize_t i, const Cut* cuts, Py_ssize_t n, const void* w, bint fresh,
                    double* out) except -1 nogil:
        cdef const double* t = <const double*>w + self.F * self.L
        cdef const int8_t* truth = &self.Y[i, 0]
        cdef Py_ssize_t c, k, e, at, j
        cdef double total, amount
        if not (fresh and self.at_hand == i):
            self.fill(i, <const double*>w)
        for c in range(n):
            total = 0.0
            for k in range(cuts[c].n_words):
                amount = self.change(truth, cuts[c].words[k], &j)
                total += self.s[j] * amount
            if self.E > 0:
                at = self.unpack(i, &cuts[c], self.y)
                for e in range(self.E):
                    total += t[e] * (self.true_pair(truth, e) - 0.5 * self.pair_of(&cuts[c], self.y, e, &at))
            out[c] = cuts[c].scale * total
        return 0

    cdef int c_add(self, Py_ssize_t i, const Cut* cut, double coef, void* w) except -1 nogil:
        return self.c_accumulate(i, cut, coef, <double*>w)

    cdef int c_accumulate(self, Py_ssize_t i, const Cut* cut, double coef, double* w) except -1 nogil:
        cdef const int8_t* truth = &self.Y[i, 0]
        cdef Py_ssize_t e, k, j, n = 0, at
        coef *= cut.scale
        memset(self.amount, 0, self.L * sizeof(double))
        for k in range(cut.n_words):
            if cut.words[k] < 2 * self.L:
                self.amount[cut.words[k] % self.L] = coef * self.change(truth, cut.words[k], &j)
                self.ranks[n] = <int32_t>j
                n += 1
        self.spread(i, n, w)
        if self.E > 0:
            at = self.unpack(i, cut, self.y)
            for e in range(self.E):
                w[self.F * self.L + e] += coef * (
                    self.true_pair(truth, e) - 0.5 * self.pair_of(cut, self.y, e, &at))
        return 0

    cdef void spread(self, Py_ssize_t i, Py_ssize_t n, double* w) noexcept nogil:
        """w += x_i amount^T, whose amounts are 0 but for the first n labels of `ranks`."""
        cdef Py_ssize_t e, k, j, start, L = self.L
        cdef double x
        cdef double* amount = self.amount
        cdef double* row
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
                for k in range(n):
                    row[self.ranks[k]] += x * amount[self.ranks[k]]

    cdef double c_inner(self, Py_ssize_t i, const Cut* a, const Cut* b) except? -1 nogil:
        """|x|^2 times what the changes of labels have in common, and what those of pairs have."""
        cdef const int8_t* truth = &self.Y[i, 0]
        cdef Py_ssize_t p = 0, q = 0, e, j
        cdef int64_t shared = 0, pairs = 0      # four times
        cdef int true_pair
        if self.E == 0:
            while p < a.n_words and q < b.n_words:
                if a.words[p] == b.words[q]:
                    shared += 4
                    p += 1
                    q += 1
                elif a.words[p] < b.words[q]:
                    p += 1
                else:
                    q += 1
        else:
            p, q = self.unpack(i, a, self.y), self.unpack(i, b, self.other)
            for j in range(self.L):
                shared += (2 * truth[j] - self.y[j]) * (2 * truth[j] - self.other[j])
            for e in range(self.E):
                true_pair = 2 * self.true_pair(truth, e)
                pairs += (true_pair - self.pair_of(a, self.y, e, &p)) * (
                    true_pair - self.pair_of(b, self.other, e, &q))
        return a.scale * b.scale * 0.25 * (self.square(i) * shared + pairs)

    cdef bint c_valid(self, Py_ssize_t i, const Cut* cut) noexcept nogil:
        cdef Py_ssize_t k, j
        cdef int32_t word, last = -1
        for j in range(self.L):
            self.y[j] = 0       # 1: half, 2: changed
        for k in range(cut.n_words):
            memcpy(&word, cut.words + k, sizeof(int32_t))
            if not last < word < (2 * self.L + self.E if self.fractional else self.L):
                return False
            last = word
            if word >= 2 * self.L:
                j = word - 2 * self.L
                if self.y[self.edges[j, 0]] != 1 or self.y[self.edges[j, 1]] != 1:
                    return False
            elif word >= self.L:
                if self.y[word - self.L] != 0:
                    return False
                self.y[word - self.L] = 1
            else:
                self.y[word] = 2
        return cut.n_words > 0

    cdef double c_cost(self, Py_ssize_t i) noexcept nogil:
        return <double>((self.entries(i) + 8) * self.L + self.E)

    # ---- label sets that are known in part ------------------------------------------------------------

    cdef int c_complete(self, Py_ssize_t i, const void* w, Target* target) except -1 nogil:
        cdef Py_ssize_t j
        poll(<int64_t>self.c_cost(i))
        self.fill(i, <const double*>w)
        memcpy(self.fixed, &self.known[i, 0], self.L)
        self.decode(&self.known[i, 0], False, <const double*>w + self.F * self.L)
        for j in range(self.L):
            self.target_words[j] = self.best_y[j]
        target.words = self.target_words
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
        return self.rebuilt(self.oracle, self.rows, np.reshape(targets[1], (self.n_samples, self.L)),
                            self.Y_array.copy() if self.known_array is None else self.known_array)

    # ---- sums over all sets ---------------------------------------------------------------------------

    cdef double sums(self, const double* t, bint pairs) except? -1 nogil:
        """The logarithm of the sum over all sets that agree with `fixed`; `mean`, and `pair_mean` on request."""
        cdef Py_ssize_t j, k, e
        cdef double total = 0.0, best
        cdef int32_t* place = self.words
        if self.structure == NONE:
            for j in range(self.L):
                if self.fixed[j] >= 0:
                    total += self.fixed[j] * self.s[j]
                    self.mean[j] = self.fixed[j]
                else:
                    total += max(self.s[j], 0.0) + log1p(exp(-fabs(self.s[j])))
                    self.mean[j] = 1.0 / (1.0 + exp(-self.s[j]))
            return total
        if self.has_tree:
            return self.sum_forest(t)
        self.augment(self.fixed, False)
        self.decode_graph(self.fixed, False, t)
        best = self.best
        memset(self.joint, 0, self.L * self.L * sizeof(double))
        total = self.sum_branch(0, -best, pairs)
        poll(self.nodes * self.L)
        for k in range(self.L):
            j = self.ranks[k]
            self.mean[j] = self.share[k] / total
            place[j] = k
        for e in range(self.E if pairs else 0):
            j, k = place[self.edges[e, 0]], place[self.edges[e, 1]]
            self.pair_mean[e] = (self.joint[j * self.L + k] + self.joint[k * self.L + j]) / total
        return best + log(total)

    cdef double sum_branch(self, Py_ssize_t depth, double score, bint pairs) noexcept nogil:
        """The sum over the labels that are open at this depth, in the order that `decode_graph` has left.

        share[depth, m]: the part of it that has the m-th label; joint[k, m]: of the whole sum, the k-th and the m-th.
        """
        cdef Py_ssize_t j = self.ranks[depth], k, m, L = self.L
        cdef double total = 0.0, part, bound = score
        cdef int v
        self.nodes += 1
        for m in range(depth, L):
            k = self.ranks[m]
            bound += LOG_2 + max(0.0, self.open[depth * L + k] + self.attract[depth * L + k])
            self.share[depth * L + m] = 0.0
        if bound < NEGLIGIBLE:
            return 0.0
        for v in range(2):
            if self.fixed[j] >= 0 and self.fixed[j] != v:
                continue
            for m in range(depth + 1, L):
                k = self.ranks[m]
                self.open[(depth + 1) * L + k] = self.open[depth * L + k] + (self.t[j * L + k] if v else 0.0)
            part = score + (self.open[depth * L + j] if v else 0.0)
            part = self.sum_branch(depth + 1, part, pairs) if depth + 1 < L else exp(part)
            total += part
            if v:
                self.share[depth * L + depth] = part
            for m in range(depth + 1, L):
                self.share[depth * L + m] += self.share[(depth + 1) * L + m]
                if v and pairs:
                    self.joint[depth * L + m] += self.share[(depth + 1) * L + m]
        return total

    cdef double sum_forest(self, const double* t) noexcept nogil:
        """table[j, v, 0]: log-sum over j's subtree with y_j = v; table[j, v, 1]: over j too, its parent having v."""
        cdef Py_ssize_t k, j, p
        cdef int v
        cdef double total = 0.0, low, high, above, on
        cdef double[2] sides
        for j in range(self.L):
            for v in range(2):
                self.table[j, v, 0] = -INFINITY if self.fixed[j] == 1 - v else v * self.s[j]
        for k in range(self.L):
            j, p = self.order[k], self.parent[self.order[k]]
            for v in range(2 if p >= 0 else 1):
                sides[0] = self.table[j, 0, 0]
                sides[1] = self.table[j, 1, 0] + (t[self.link[j]] if v else 0.0)
                low, high = min(sides[0], sides[1]), max(sides[0], sides[1])
                self.table[j, v, 1] = high + log1p(exp(low - high))
                if p >= 0:
                    self.table[p, v, 0] += self.table[j, v, 1]
                else:
                    total += self.table[j, v, 1]
        for k in range(self.L - 1, -1, -1):     # parents first
            j, p = self.order[k], self.parent[self.order[k]]
            self.mean[j] = 0.0
            for v in range(2 if p >= 0 else 1):
                above = 1.0 if p < 0 else self.mean[p] if v else 1.0 - self.mean[p]
                on = above * exp(self.table[j, 1, 0] + (t[self.link[j]] if v else 0.0) - self.table[j, v, 1])
                self.mean[j] += on
                if v:
                    self.pair_mean[self.link[j]] = on
        return total

    cdef int c_expect(self, Py_ssize_t i, const void* w, float32_t* m, double* loss, double* entropy) except -1 nogil:
        """The moments are those of labels, then of pairs, less those of what is known."""
        cdef const double* t = <const double*>w + self.F * self.L
        cdef double log_sum, level, finite = 0.0
        cdef Py_ssize_t k, turn
        poll(<int64_t>self.c_cost(i))
        self.fill(i, <const double*>w)
        loss[0] = entropy[0] = 0.0
        for k in range(self.L):
            finite += 0.0 * self.s[k]
        for k in range(self.E):
            finite += 0.0 * t[k]
        if finite != 0.0:
            loss[0] = finite
            return 0
        for turn in range(2):
            if turn:
                memcpy(self.fixed, &self.known[i, 0], self.L)
            else:
                memset(self.fixed, -1, self.L)
            log_sum = self.sums(t, m != NULL)
            loss[0] += -log_sum if turn else log_sum
            if m == NULL:
                continue
            level = 0.0
            for k in range(self.L):
                level += self.mean[k] * self.s[k]
                m[k] = <float32_t>self.mean[k] if turn == 0 else m[k] - <float32_t>self.mean[k]
            for k in range(self.E):
                level += self.pair_mean[k] * t[k]
                m[self.L + k] = (
                    <float32_t>self.pair_mean[k] if turn == 0 else m[self.L + k] - <float32_t>self.pair_mean[k])
            entropy[0] += level - log_sum if turn else log_sum - level
        loss[0] = max(loss[0], 0.0)
        return 0

    cdef Py_ssize_t c_moments(self, Py_ssize_t i) noexcept nogil:
        return self.L + self.E

    cdef double c_moments_dot(self, Py_ssize_t i, const float32_t* m, const void* w) except? -1 nogil:
        cdef const double* t = <const double*>w + self.F * self.L
        cdef double total = 0.0
        cdef Py_ssize_t k
        for k in range(self.L):
            total += m[k] * self.s[k]
        for k in range(self.E):
            total += m[self.L + k] * t[k]
        return total

    cdef double c_moments_square(self, Py_ssize_t i, const float32_t* m) except? -1 nogil:
        cdef double labels = 0.0, pairs = 0.0
        cdef Py_ssize_t k
        for k in range(self.L):
            labels += m[k] * <double>m[k]
        for k in range(self.L, self.L + self.E):
            pairs += m[k] * <double>m[k]
        return self.square(i) * labels + pairs

    cdef int c_moments_add(self, Py_ssize_t i, const float32_t* m, double coef, bint again, void* w) except -1 nogil:
        return self.c_moments_accumulate(i, m, coef, <double*>w)

    cdef int c_moments_accumulate(self, Py_ssize_t i, const float32_t* m, double coef, double* w) except -1 nogil:
        cdef Py_ssize_t k
        for k in range(self.L):
            self.amount[k] = coef * m[k]
            self.ranks[k] = <int32_t>k
        self.spread(i, self.L, w)
        for k in range(self.E):
            w[self.F * self.L + k] += coef * m[self.L + k]
        return 0

    def moments(self, Py_ssize_t i, w):
        """``(log_sum, labels, pairs)`` over the sets that agree with what is known: how often each of both is there."""
        cdef ndarray weights = self._check_weights(w), labels = np.empty(self.L), pairs = np.empty(self.E)
        cdef const double* at = <const double*>array_data(weights)
        cdef double log_sum
        self._check_example(i)
        self.fill(i, at)
        memcpy(self.fixed, &self.known[i, 0], self.L)
        log_sum = self.sums(at + self.F * self.L, True)
        memcpy(array_data(labels), self.mean, self.L * sizeof(double))
        memcpy(array_data(pairs), self.pair_mean, self.E * sizeof(double))
        return log_sum, labels, pairs

    def marginals(self, w):
        """The probability of each label, those that are known given: float64 array (n, n_labels)."""
        return self.every(w, MARGINALS)

    # ---- prediction -----------------------------------------------------------------------------------

    def answer(self, Py_ssize_t i, w):
        """The output of `separate`: labels (n_labels,) and pairs (n_edges,), float64."""
        cdef ndarray weights = self._check_weights(w), labels = np.empty(self.L), pairs = np.empty(self.E)
        cdef double* of_labels = <double*>array_data(labels)
        cdef double* of_pairs = <double*>array_data(pairs)
        cdef Cut cut
        cdef double violation
        cdef Py_ssize_t e, at
        self._check_example(i)
        self.c_separate(i, array_data(weights), &cut, &violation)
        at = self.unpack(i, &cut, self.y)
        for e in range(self.L):
            of_labels[e] = 0.5 * self.y[e]
        for e in range(self.E):
            of_pairs[e] = 0.5 * self.pair_of(&cut, self.y, e, &at)
        return labels, pairs

    def decoded(self, w):
        """The set of the highest score of each row that agrees with the labels known: int8 array (n, n_labels)."""
        return self.every(w, BEST).astype(np.int8)

    def margins(self, w):
        """The best score with each label less the best score without it: float64 array (n, n_labels)."""
        return self.every(w, MARGINS)

    cdef ndarray every(self, w, Asked asked):
        """The value asked of each row and label: float64 array (n, n_labels)."""
        cdef ndarray weights = self._check_weights(w), found = np.empty((self.n_samples, self.L))
        cdef const double* at = <const double*>array_data(weights)
        cdef const double* t = at + self.F * self.L
        cdef double* row = <double*>array_data(found)
        cdef Py_ssize_t i, j
        cdef int v
        cdef double[2] sides
        with nogil:
            for i in range(self.n_samples):
                poll(<int64_t>self.c_cost(i))
                self.fill(i, at)
                memcpy(self.fixed, &self.known[i, 0], self.L)
                if asked == MARGINALS:
                    self.sums(t, False)
                    memcpy(row, self.mean, self.L * sizeof(double))
                elif asked == BEST:
                    self.decode(&self.known[i, 0], False, t)
                    for j in range(self.L):
                        row[j] = self.best_y[j]
                elif self.structure == NONE:
                    memcpy(row, self.s, self.L * sizeof(double))
                else:
                    for j in range(self.L):
                        for v in range(2):
                            memset(self.fixed, -1, self.L)
                            self.fixed[j] = <int8_t>v
                            self.decode(&self.known[i, 0], False, t)
                            sides[v] = self.score_of(self.best_y, t)
                        row[j] = sides[1] - sides[0]
                row += self.L
        return found

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
