"""Greedy label sequences: the decoder, and the per-token margin problem (5.12) of the thesis.

A cut of a token is the one word (label): dPsi = x (e_gold - e_label), where x holds the token's features,
the true labels before it, and its bigrams with the one just before.
"""

from libc.stdint cimport int32_t, int64_t

import numpy as np

from structsvm._prefetch cimport prefetch
from structsvm.execution._processor cimport kernel_set
from structsvm._problem cimport PENALTY_HARD, RESCALE_NONE, Cut, Problem, Target, cut_terms
from structsvm.execution._stop cimport poll
from structsvm.structures._labels cimport LabelDecoder

from structsvm.adapter import offers_of
from structsvm.arrays import checksum

cdef extern from "greedy.h" nogil:
    ctypedef struct greedy_kernels:
        void (*score)(const float* W, int64_t stride, int64_t K, int64_t order, int64_t first,
                      const int32_t* index, const float* values, int64_t n, const int32_t* labels,
                      int64_t t, const float* init, int64_t first_pair, const int32_t* pair_index,
                      const float* pair_values, int64_t n_pairs, int32_t* rows, float* out) noexcept nogil
        int64_t (*decode)(const float* W, int64_t stride, int64_t K, int64_t order, int64_t first,
                          const int64_t* indptr, const int32_t* indices, const float* values, int64_t T,
                          const float* init, int64_t init_step, const float* mask, int64_t first_pair,
                          const int64_t* pair_indptr, const int32_t* pair_indices, const float* pair_values,
                          int32_t* rows, float* out, float* scores, int32_t* labels) except -2 nogil
    const greedy_kernels* greedy_kernels_of(int set, int (*poll)(int64_t work) except -1 nogil)

cdef const greedy_kernels* KERNELS = greedy_kernels_of(kernel_set(), poll)

cdef fused real:
    float
    double


cdef double plus_square(double total, const float* values, int64_t begin, int64_t end) noexcept nogil:
    """total + |values[begin:end]|^2; NULL: all ones."""
    cdef int64_t e
    if values == NULL:
        return total + (end - begin)
    for e in range(begin, end):
        total += <double>values[e] * values[e]
    return total


cdef class GreedyDecoder(LabelDecoder):
    """The left-to-right decoder of a set of sequences."""

    cdef float[::1] score
    cdef int32_t[::1] rows
    cdef float[:, ::1] all_scores       # (n_tokens, stride), where `decision_scores` collects them, or None

    def __init__(self, structure, tokens):
        super().__init__(structure, tokens)
        self.score = np.empty(self.stride, dtype=np.float32)
        most = np.diff(tokens.bigrams.indptr).max(initial=0) if self.n_bigrams else 0
        self.rows = np.empty(max(self.order, most, 1), dtype=np.int32)
        self.all_scores = None      # a view that was never set is not None

    cdef Py_ssize_t label(self, Py_ssize_t i, const float* w, const float* init, Py_ssize_t init_step,
                          int32_t* out) except -2 nogil:
        cdef Py_ssize_t t = self.offsets[i]
        return KERNELS.decode(
            w, self.stride, self.K, self.order, self.n_emission, self.indptr + t, self.indices, self.values,
            self.offsets[i + 1] - t, init, init_step, &self.mask[0] if self.mask.shape[0] > 0 else NULL,
            self.first_bigram, NULL if self.pair_indptr == NULL else self.pair_indptr + t, self.pair_indices,
            self.pair_values, &self.rows[0], &self.score[0],
            NULL if self.all_scores is None else &self.all_scores[t, 0], out)

    def decision_scores(self, w):
        """Array (n_tokens, n_labels) of every label's score at the decision on each token, float64."""
        scores = np.empty((self.tokens.n_tokens, self.stride), dtype=np.float32)
        self.all_scores = scores
        try:
            self.decode(w)
        finally:
            self.all_scores = None
        return scores[:, :self.K].astype(np.float64)


cdef class GreedyProblem(Problem):
    """Tokens with their true labels and true histories, one example each, grouped by sequence.

    Parameters
    ----------
    structure : GreedyOracle
    tokens : Tokens
    labels : array-like of shape (n_tokens,), int
        The labels of all tokens; with `known`, their completion, or None.
    known : KnownLabels, optional
        What is known of them. None: all.
    """

    cdef readonly GreedyDecoder chain
    cdef readonly object labels         # None: yet to be completed
    cdef readonly object known
    cdef const int32_t[::1] gold
    cdef const int32_t[::1] which       # label of each token; where `known` is given, its label or set
    cdef const int32_t[::1] sequence    # the sequence of each token
    cdef float[:, ::1] allowed          # rows of 0 and -inf, by `which`
    cdef float[:, ::1] init             # initial scores of a sequence's tokens
    cdef int32_t[::1] path
    cdef Py_ssize_t completed           # the sequence whose completion stands in `path`, or -1
    cdef const double[::1] costs
    cdef int32_t[::1] place         # token -> its position in its sequence
    cdef int32_t word[1]
    cdef Py_ssize_t at_hand         # the token whose scores stand in chain.score, or -1

    def __init__(self, structure, tokens, labels, known=None, *, rescaling="margin", penalty="linear"):
        self.chain = GreedyDecoder(structure, tokens)
        super().__init__(tokens.n_tokens, structure.n_features, rescaling=rescaling, penalty=penalty,
                         weight_dtype=np.float32, groups=np.array(tokens.offsets, dtype=np.int64))
        self.known, self.completed = known, -1
        if known is not None:
            structure.check_known(tokens, known)
            longest = max(int(tokens.lengths.max(initial=0)), 1)
            self.allowed = structure.allowed_of(known.weights)
            self.init = np.empty((longest, structure.stride), dtype=np.float32)
            self.path = np.empty(longest, dtype=np.int32)
            self.sequence = np.repeat(np.arange(len(tokens), dtype=np.int32), tokens.lengths)
        self.labels = None if labels is None else structure.check_labels(tokens, labels)
        self.gold = known.which if labels is None else self.labels
        self.which = self.labels if known is None else known.which
        self.costs = np.ones(structure.n_labels) if structure.label_costs is None else structure.label_costs
        offsets = np.asarray(tokens.offsets)
        starts = np.repeat(offsets[:len(tokens)], np.diff(offsets))
        self.place = (np.arange(tokens.n_tokens) - starts).astype(np.int32)
        self.at_hand = -1

    def fingerprint(self):
        sets = [] if self.known is None else [self.known.sets]
        return checksum([np.array([self.chain.tokens.fingerprint(np.asarray(self.which))]), self.costs, *sets])

    def structure_fingerprint(self):
        return checksum([self.costs])

    def examples(self, Py_ssize_t start, Py_ssize_t stop):
        """Examples start .. stop - 1, whole sequences: `start` and `stop` are where sequences begin."""
        i, j = np.searchsorted(self.chain.offsets, [start, stop])
        labels = None if self.labels is None else self.labels[start:stop]
        known = None if self.known is None else self.known._replace(which=self.known.which[start:stop])
        return self.chain.structure, self.chain.tokens[i:j], labels, known

    # ---- completions ------------------------------------------------------------------------------

    @property
    def offers(self):
        return offers_of(self.labels is None, False)

    def lend(self, w):
        self.completed = -1

    cdef int c_complete(self, Py_ssize_t i, const void* w, Target* target) except -1 nogil:
        """The token's label as its sequence is completed from left to right.

        The sequence stays current until other weights are lent, or its first token is requested.
        """
        cdef Py_ssize_t s, first, t, j, token, end = i + 1
        self.word[0] = self.which[i]
        target.words = self.word
        target.n_words = 1
        if self.known is None:
            return 0
        s = self.sequence[i]
        first = self.chain.offsets[s]
        if i == first:
            self.completed = -1
            end = self.chain.offsets[s + 1]
        for t in range(i, end):
            if self.which[t] >= self.chain.K:
                break
        else:
            return 0
        if self.completed != s:
            for t in range(self.chain.offsets[s + 1] - first):
                for j in range(self.chain.stride):
                    self.init[t, j] = self.allowed[self.which[first + t], j]
            token = self.chain.label(s, <const float*>w, &self.init[0, 0], self.chain.stride, &self.path[0])
            if token >= 0:
                self.lost(s, token)
            self.completed = s
        self.word[0] = self.path[i - first]
        return 0

    cdef bint c_retarget(self, Py_ssize_t i, const Target* target, bint take) except -1 nogil:
        cdef int32_t* gold = <int32_t*>&self.gold[i]
        cdef Py_ssize_t t
        cdef bint differs = False
        if self.known is None or self.completed != self.sequence[i]:
            return False
        for t in range(self.chain.offsets[self.completed + 1] - i):
            differs |= gold[t] != self.path[t]
            if take:
                gold[t] = self.path[t]
        if take:
            self.at_hand = -1
        return differs

    cdef int lost(self, Py_ssize_t s, Py_ssize_t token) except -1 nogil:
        with gil:
            raise ValueError(f"the sequence that begins with token {self.first + self.chain.offsets[s]} of all: from "
                             f"left to right nothing agrees with the masks and with what is known of token {token}, or "
                             "scores overflow")

    @property
    def targets(self):
        return np.arange(self.n_samples + 1), np.asarray(self.gold)

    def with_targets(self, targets):
        return self.rebuilt(self.chain.structure, self.chain.tokens, targets[1], self.known)

    cdef int unknown(self, Py_ssize_t i) except -1 nogil:
        with gil:
            raise ValueError(f"the label of token {self.first + i} of all is not known: train with LatentSVM")

    # ---- constraints ------------------------------------------------------------------------------

    cdef void fill(self, Py_ssize_t i, const float* w) noexcept nogil:
        cdef Py_ssize_t a = self.chain.indptr[i], b = 0, n_pairs = 0
        if self.chain.n_bigrams > 0:
            b = self.chain.pair_indptr[i]
            n_pairs = self.chain.pair_indptr[i + 1] - b
        KERNELS.score(
            w, self.chain.stride, self.chain.K, self.chain.order, self.chain.n_emission,
            self.chain.indices + a, NULL if self.chain.values == NULL else self.chain.values + a,
            self.chain.indptr[i + 1] - a, &self.gold[i] - self.place[i], self.place[i],
            &self.chain.row[0], self.chain.first_bigram,
            NULL if self.chain.pair_indices == NULL else self.chain.pair_indices + b,
            NULL if self.chain.pair_values == NULL else self.chain.pair_values + b, n_pairs,
            &self.chain.rows[0], &self.chain.score[0])
        self.at_hand = i

    cdef void c_prefetch(self, Py_ssize_t i, int stage) noexcept nogil:
        cdef Py_ssize_t e, begin
        if stage == 0:
            prefetch(&self.chain.indptr[i])
            prefetch(&self.gold[i])
            prefetch(&self.place[i])
        else:
            # Each line that has entries, and no other: backwards from the last entry to the first.
            begin = self.chain.indptr[i]
            for e in range(self.chain.indptr[i + 1] - 1, begin - 16, -16):
                prefetch(self.chain.indices + max(e, begin))
                if self.chain.values != NULL:
                    prefetch(self.chain.values + max(e, begin))

    cdef int c_separate(self, Py_ssize_t i, const void* w, Cut* cut, double* violation) except -1 nogil:
        """The best wrong label y; margin rescaling maximises D + s_y, slack rescaling D (1 + s_y - s_gold)."""
        cdef Py_ssize_t gold = self.gold[i], y, best = -1
        cdef const float* score = &self.chain.score[0]
        if self.labels is None:
            self.unknown(i)
        self.fill(i, <const float*>w)
        for y in range(self.chain.K):
            if y != gold and (best < 0 or score[y] > score[best]):
                best = y
        cut.n_words = 0
        cut.words = self.word
        cut.alpha = cut.b = violation[0] = 0.0
        cut.scale = 1.0
        if best < 0:
            return 0
        if self.rescaling == RESCALE_NONE and (
                score[best] < score[gold] or (score[best] == score[gold] and gold < best)):
            return 0
        cut_terms(self.rescaling, self.penalty, self.costs[gold], cut)
        violation[0] = cut.b - cut.scale * (<double>score[gold] - score[best])
        if violation[0] <= 0.0 and self.penalty != PENALTY_HARD and self.rescaling != RESCALE_NONE:
            violation[0] = cut.b = 0.0
            return 0
        self.word[0] = <int32_t>best
        cut.n_words = 1
        return 0

    cdef int c_dots(self, Py_ssize_t i, const Cut* cuts, Py_ssize_t n, const void* w, bint fresh,
                    double* out) except -1 nogil:
        cdef Py_ssize_t k, gold = self.gold[i]
        if not (fresh and self.at_hand == i):
            self.fill(i, <const float*>w)
        for k in range(n):
            out[k] = cuts[k].scale * (<double>self.chain.score[gold] - self.chain.score[cuts[k].words[0]])
        return 0

    cdef void add_to(self, Py_ssize_t i, const Cut* cut, double coef, real* w) noexcept nogil:
        cdef Py_ssize_t e, s, t = self.place[i], K = self.chain.K, stride = self.chain.stride, before
        cdef Py_ssize_t gold = self.gold[i], y = cut.words[0]
        cdef real amount = <real>(coef * cut.scale), x = amount
        cdef real* rows
        if cut.n_words == 0:
            return
        for e in range(self.chain.indptr[i], self.chain.indptr[i + 1]):
            if self.chain.values != NULL:
                x = amount * self.chain.values[e]
            w[self.chain.indices[e] * stride + gold] += x
            w[self.chain.indices[e] * stride + y] -= x
        rows = w + self.chain.n_emission * stride
        for s in range(1, self.chain.order + 1):
            before = self.gold[i - s] if t >= s else K
            rows[((s - 1) * (K + 1) + before) * stride + gold] += amount
            rows[((s - 1) * (K + 1) + before) * stride + y] -= amount
        if self.chain.n_bigrams > 0 and t > 0:
            rows = w + (self.chain.first_bigram + self.gold[i - 1]) * stride
            x = amount
            for e in range(self.chain.pair_indptr[i], self.chain.pair_indptr[i + 1]):
                if self.chain.pair_values != NULL:
                    x = amount * self.chain.pair_values[e]
                rows[self.chain.pair_indices[e] * K * stride + gold] += x
                rows[self.chain.pair_indices[e] * K * stride + y] -= x

    cdef int c_add(self, Py_ssize_t i, const Cut* cut, double coef, void* w) except -1 nogil:
        self.add_to(i, cut, coef, <float*>w)
        return 0

    cdef int c_accumulate(self, Py_ssize_t i, const Cut* cut, double coef, double* w) except -1 nogil:
        self.add_to(i, cut, coef, w)
        return 0

    cdef double c_inner(self, Py_ssize_t i, const Cut* a, const Cut* b) except? -1 nogil:
        """|x|^2 <e_gold - e_a, e_gold - e_b>: the label part is 2 for equal labels, else 1."""
        cdef double norm = plus_square(
            self.chain.order, self.chain.values, self.chain.indptr[i], self.chain.indptr[i + 1])
        if self.chain.n_bigrams > 0 and self.place[i] > 0:
            norm = plus_square(norm, self.chain.pair_values, self.chain.pair_indptr[i], self.chain.pair_indptr[i + 1])
        return a.scale * b.scale * norm * (2.0 if a.words[0] == b.words[0] else 1.0)

    cdef bint c_valid(self, Py_ssize_t i, const Cut* cut) noexcept nogil:
        return (cut.n_words == 1 and 0 <= cut.words[0] < self.chain.K and cut.words[0] != self.gold[i]
                and self.labels is not None)

    cdef double c_cost(self, Py_ssize_t i) noexcept nogil:
        return 2.0
