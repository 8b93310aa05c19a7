"""Label chains: exact inference by the Viterbi algorithm, and the margin problem over whole sequences.

The joint feature of a labelling (thesis, equation 5.9 and section 5.3.2) counts, for every label, the
features of the tokens that carry it, the transitions between neighbouring labels, the first and the
last label, and for order 2 the triples of labels. As an array, w is rows of `stride` float32, labels
along a row (padded to whole vectors; the padding stays zero):

    rows 0 .. F-1                emission, one row per feature
    rows F .. F+K-1              transition, one row per label that comes before
    rows F+K, F+K+1              first label, last label
    (order 2) then (K+1) K rows  triples: row a K + b for labels a, b before (a = K: none)
    then K rows a bigram         attributes of a token that are conjoined with its label and the one before, by that

A cut is written as the positions at which its labelling differs from the true one: words (t, label),
t ascending.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcmp, memcpy

import numpy as np

from structsvm._problem cimport (
    PENALTY_HARD, PENALTY_LINEAR, RESCALE_NONE, RESCALE_SLACK, Cut, Problem, Target, cut_terms,
)
from structsvm._arrays cimport array_data, ndarray
from structsvm.execution._processor cimport kernel_set
from structsvm.execution._stop cimport poll
from structsvm.structures._labels cimport LabelDecoder

from structsvm.checksum import checksum
from structsvm.features._tokens import steps
from structsvm.protocol import UnsupportedFormulation

cdef extern from "kernels.h" nogil:
    ctypedef struct chain_scores:
        int64_t K, stride, G, P, step, shift, each
        const float* A
        const float* start
        const float* end
        const float* loss
    ctypedef struct kernels:
        const char* name
        void (*fill)(const float* W, int64_t stride, const int64_t* indptr, const int32_t* indices,
                     const float* values, int64_t T, const float* init, int64_t init_step, float* E) noexcept nogil
        int (*tables)(const chain_scores* s, const float* A, const float* W, const int64_t* indptr,
                      const int32_t* indices, const float* values, int64_t T, float* rows,
                      float* tables) except -1 nogil
        int (*best)(const chain_scores* s, const float* E, const int32_t* gold, int64_t T, float* V,
                    float* sums, int32_t* path, float* score) except -1 nogil
        int (*count)(const chain_scores* s, const float* E, const int32_t* gold, int64_t T, int64_t cap,
                     float* V, float* best) except -1 nogil
        void (*count_path)(const chain_scores* s, const int32_t* gold, int64_t T, int64_t cap, int64_t d,
                           const float* V, float* sums, int32_t* path) noexcept nogil
        int64_t (*kbest)(const chain_scores* s, const float* E, int64_t T, int64_t k, float* score,
                         int64_t* back, int64_t* heads, int32_t* paths, float* totals) except -1 nogil
        int (*max_marginals)(const chain_scores* s, const float* E, int64_t T, const float* V, float* B,
                             float* out) except -1 nogil
        int (*expect)(const chain_scores* s, const float* E, const int32_t* gold, int64_t T, float* R, float* tops,
                      float* work, float* moments, int64_t n_edges, int has_end, double* out) except -1 nogil
        int64_t (*spread)(const int64_t* indptr, const int32_t* indices, const float* values, int64_t T,
                          int64_t stride, const float* moments, int32_t* slot, int32_t* list,
                          float* rows) noexcept nogil
        double (*dot)(const float* a, const float* b, int64_t n) noexcept nogil
        void (*add_rows)(float* W, int64_t stride, const int32_t* list, int64_t n, const float* rows,
                         float coef) noexcept nogil
        void (*add_rows_exactly)(double* W, int64_t stride, const int32_t* list, int64_t n, const float* rows,
                                 double coef) noexcept nogil
        double (*token_dot)(const int32_t* ia, const float* va, int64_t na,
                            const int32_t* ib, const float* vb, int64_t nb) noexcept nogil
    const kernels* kernels_of(int set, int (*poll)(int64_t work) except -1 nogil)

cdef const kernels* KERNELS = kernels_of(kernel_set(), poll)

# The chart of the counting programme is T^2 K / 2 numbers, the tables of a sequence whose attributes are conjoined with
# pairs of labels T K^2 (order 2: T K^3); beyond this they are refused.
MAX_CHART_BYTES = 2 << 30

cdef Py_ssize_t TOKENS = 256        # whose rows are summed between two polls

cdef Py_ssize_t MANY_PAIRS = 4096   # of differing tokens: from here on c_inner goes by features

cdef fused real:
    float
    double


cdef class Chain(LabelDecoder):
    """The exact decoder of a set of sequences."""

    cdef Py_ssize_t longest
    cdef bint has_end                   # without, w's row for the last label is not looked at
    cdef chain_scores scores
    cdef float[::1] tables              # transition scores with the mask added (or for order 2)
    cdef const float* A                 # transition scores that all tokens have
    cdef const float* pairs             # weights of bigrams
    cdef float[::1] own                 # tables of tokens that have bigrams, and K rows; or empty
    cdef float[::1] E
    cdef float[::1] V
    cdef float[::1] sums
    cdef int32_t[::1] path
    cdef Py_ssize_t n_edges             # rows of transition weights
    cdef float[::1] tops                # what `expect` needs beside V; empty before the first call
    cdef float[::1] work

    def __init__(self, structure, tokens):
        super().__init__(structure, tokens)
        cdef Py_ssize_t G = 1 if self.order == 1 else self.K + 1, P = self.K if self.order == 1 else self.K + 1
        self.has_end = structure.end
        self.longest = steps(tokens.offsets)[1]
        self.scores.K, self.scores.stride, self.scores.G, self.scores.P = self.K, self.stride, G, P
        self.scores.step = 1 if self.order == 1 else self.stride
        self.scores.shift = 0 if self.order == 1 else 1
        self.tables = np.empty((G * P + 2) * self.stride if self.order == 2 or self.mask.shape[0] else 0,
                               dtype=np.float32)
        self.E = np.empty(max(self.longest, 1) * self.stride, dtype=np.float32)
        self.V = np.empty(max(self.longest, 1) * G * self.stride, dtype=np.float32)
        self.sums = np.empty(P + 8, dtype=np.float32)
        self.path = np.empty(max(self.longest, 1), dtype=np.int32)
        self.n_edges = structure.first_bigram_row - structure.n_token_features
        self.scores.each = 0
        if self.n_bigrams:
            self.scores.each = self.K * self.stride * (1 if self.order == 1 else P)
            size = (self.longest * int(self.scores.each) + self.K * self.stride) * 4
            if size > MAX_CHART_BYTES:
                raise ValueError(
                    f"a sequence of {self.longest} tokens with bigrams needs tables of {size} bytes, more than "
                    f"{MAX_CHART_BYTES}: divide it, or use inference='greedy'")
            self.own = np.empty(size // 4, dtype=np.float32)
        self.tops = self.work = np.empty(0, dtype=np.float32)

    cdef int prepare(self, const float* w) except -1 nogil:
        """Point the scores at w's transition rows; with a mask, or for order 2, at combined tables."""
        cdef Py_ssize_t K = self.K, stride = self.stride, a, b, j, G = self.scores.G, P = self.scores.P
        cdef const float* first = w + self.n_emission * stride
        cdef const float* triple = first + (K + 2) * stride
        cdef float* out
        self.pairs = w + self.first_bigram * stride
        if self.tables.shape[0] == 0:
            self.A = first
            self.scores.start = first + K * stride
            self.scores.end = first + (K + 1) * stride if self.has_end else &self.row[0]
            self.scores.A = self.A if self.scores.each == 0 else &self.own[0]
            return 0
        out = &self.tables[0]
        if self.order == 1:
            memcpy(out, first, K * stride * sizeof(float))
        else:
            # A[b][a] = transition b -> . plus triple (a, b, .); the group K has no successor states.
            for b in range(K):
                for a in range(P):
                    for j in range(stride):
                        out[(b * P + a) * stride + j] = first[b * stride + j] + triple[(a * K + b) * stride + j]
        memcpy(out + G * P * stride, first + K * stride, stride * sizeof(float))
        memcpy(out + (G * P + 1) * stride, first + (K + 1) * stride if self.has_end else &self.row[0],
               stride * sizeof(float))
        if self.mask.shape[0] > 0:
            for b in range(K):
                for a in range(1 if self.order == 1 else P):
                    for j in range(stride):
                        out[(b * (1 if self.order == 1 else P) + a) * stride + j] += self.mask[b * stride + j]
            for j in range(2 * stride):
                out[G * P * stride + j] += self.mask[K * stride + j]
        self.A = out
        self.scores.A = self.A if self.scores.each == 0 else &self.own[0]
        self.scores.start = out + G * P * stride
        self.scores.end = self.scores.start + stride
        return 0

    cdef int fill(self, Py_ssize_t i, const float* w, const float* init, Py_ssize_t init_step) except -1 nogil:
        """The lattice of sequence i, and its tables; `init` as for `label`."""
        cdef Py_ssize_t first = self.offsets[i], T = self.offsets[i + 1] - first, t = 0, size
        while t < T:
            size = min(TOKENS, T - t)
            KERNELS.fill(w, self.stride, self.indptr + first + t, self.indices, self.values, size,
                         init + t * init_step, init_step, &self.E[t * self.stride])
            t += size
            if t < T:
                poll((self.indptr[first + t] - self.indptr[first + t - size] + size) * self.stride // 8)
        if self.scores.each > 0:
            KERNELS.tables(&self.scores, self.A, self.pairs, self.pair_indptr + first, self.pair_indices,
                           self.pair_values, T, &self.own[self.own.shape[0] - self.K * self.stride], &self.own[0])
        return 0

    cdef inline void fill_token(self, Py_ssize_t i, Py_ssize_t t, const float* w) noexcept nogil:
        KERNELS.fill(w, self.stride, self.indptr + self.offsets[i] + t, self.indices, self.values, 1,
                     &self.row[0], 0, &self.E[t * self.stride])

    cdef Py_ssize_t label(self, Py_ssize_t i, const float* w, const float* init, Py_ssize_t init_step,
                          int32_t* out) except -2 nogil:
        self.fill(i, w, init, init_step)
        return -1 if self.best(i, NULL, out) > -INFINITY else 0

    cdef float best(self, Py_ssize_t i, const int32_t* gold, int32_t* path) except? -1.0 nogil:
        """The best labelling (with `gold`: loss added) and its score; the lattice is filled."""
        cdef float score
        KERNELS.best(&self.scores, &self.E[0], gold, self.offsets[i + 1] - self.offsets[i], &self.V[0], &self.sums[0],
                     path, &score)
        return score

    cdef Py_ssize_t n_moment_rows(self, Py_ssize_t T) noexcept nogil:
        """Rows of the moments of T tokens (see chain_expect.h)."""
        return T + self.n_edges + (T * self.K if self.scores.each > 0 else 0)

    cdef int sum_up(self, Py_ssize_t i, const float* E, const int32_t* gold, float* moments,
                    double* out) except -1 nogil:
        """Expectations over all labellings (see chain_expect.h) of a lattice E."""
        if self.tops.shape[0] == 0:
            with gil:
                self.tops = np.empty(max(self.longest, 1), dtype=np.float32)
                self.work = np.empty((4 * self.scores.G + self.n_edges) * self.stride, dtype=np.float32)
        return KERNELS.expect(&self.scores, E, gold, self.offsets[i + 1] - self.offsets[i], &self.V[0],
                              &self.tops[0], &self.work[0], moments, self.n_edges, self.has_end, out)

    def expect(self, w, Py_ssize_t i, allowed=None):
        """Sums over all labellings of sequence i, with probabilities proportional to the exponentials of their scores.

        Returns
        -------
        log_sum : float
            Of the exponentials; -inf where `allowed` leaves no labelling.
        labels : ndarray of shape (length, K), float64
            The probability of each label at each token.
        transitions : ndarray of shape (n_rows, stride), float64
            The expected counts of the transition weights, in their rows; and with bigrams, K rows a token of the
            probabilities of label pairs, by the label before (0 at the first token).
        """
        cdef ndarray weights = self.structure.check_weights(w)
        cdef Py_ssize_t T = self.length(i)
        cdef float[:, ::1] moments = np.zeros((self.n_moment_rows(T), self.stride), dtype=np.float32)
        cdef const float[:, ::1] rows
        cdef double out[3]
        rows = np.asarray(self.row)[None, :] if allowed is None else self.structure.allowed_rows(allowed, T, i)
        with nogil:
            self.prepare(<const float*>array_data(weights))
            self.fill(i, <const float*>array_data(weights), &rows[0, 0], 0 if allowed is None else self.stride)
            self.sum_up(i, &self.E[0], NULL, &moments[0, 0], out)
        if out[0] != out[0]:
            out[0] = -INFINITY
        sums = np.asarray(moments).astype(np.float64)
        return out[0], sums[:T, :self.K], sums[T:]

    def kbest(self, w, Py_ssize_t i, Py_ssize_t k, allowed=None):
        """The k best labellings of sequence i, as ``(paths (m, length) int32, scores (m,) float64)``, m <= k."""
        cdef ndarray weights = self.structure.check_weights(w)
        cdef Py_ssize_t T = self.length(i), n
        cdef Py_ssize_t states = self.scores.G * self.stride
        cdef const float[:, ::1] rows
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        if k > MAX_CHART_BYTES // (12 * T * states):
            raise ValueError(f"the {k} best labellings of sequence {i} ({T} tokens) need a chart of "
                             f"{12 * int(T) * states * k} bytes, more than {MAX_CHART_BYTES}")
        cdef float[::1] score = np.empty(T * states * k, dtype=np.float32)
        cdef int64_t[::1] back = np.empty(T * states * k, dtype=np.int64)
        cdef int64_t[::1] heads = np.empty(states, dtype=np.int64)
        cdef int32_t[:, ::1] paths = np.empty((k, T), dtype=np.int32)
        cdef float[::1] totals = np.empty(k, dtype=np.float32)
        rows = np.asarray(self.row)[None, :] if allowed is None else self.structure.allowed_rows(allowed, T, i)
        with nogil:
            self.prepare(<const float*>array_data(weights))
            self.fill(i, <const float*>array_data(weights), &rows[0, 0], 0 if allowed is None else self.stride)
            n = KERNELS.kbest(&self.scores, &self.E[0], T, k, &score[0], &back[0], &heads[0], &paths[0, 0], &totals[0])
        return np.asarray(paths)[:n].copy(), np.asarray(totals)[:n].astype(np.float64)

    def max_marginals(self, w, Py_ssize_t i):
        """Array (length, K): the score of the best labelling of sequence i with label c at token t."""
        cdef ndarray weights = self.structure.check_weights(w)
        cdef Py_ssize_t T = self.length(i)
        cdef float[::1] B = np.empty(2 * self.scores.G * self.stride, dtype=np.float32)
        cdef float[:, ::1] out = np.empty((T, self.stride), dtype=np.float32)
        with nogil:
            self.prepare(<const float*>array_data(weights))
            self.fill(i, <const float*>array_data(weights), &self.row[0], 0)
            self.best(i, NULL, &self.path[0])
            KERNELS.max_marginals(&self.scores, &self.E[0], T, &self.V[0], &B[0], &out[0, 0])
        return np.asarray(out)[:, :self.K].astype(np.float64)


def local_indices(bigrams):
    """The bigrams' indices among the distinct ones of their sequence, int32, and the most that a sequence has."""
    n = np.int64(max(bigrams.n_features, 1))
    of = np.repeat(np.arange(len(bigrams)), np.diff(bigrams.indptr[bigrams.offsets]))
    keys, places = np.unique(of * n + bigrams.indices, return_inverse=True)
    starts = np.searchsorted(keys, np.arange(len(bigrams) + 1) * n)
    return (places - starts[of]).astype(np.int32), int(np.diff(starts).max(initial=0))


cdef class ChainProblem(Problem):
    """Sequences with their true labellings: the margin problem (5.11) of the thesis.

    Parameters
    ----------
    structure : ViterbiOracle
    tokens : Tokens
    labels : array-like of shape (n_tokens,), int
        The labels of all tokens; with `known`, their completion, or None.
    known : KnownLabels, optional
        What is known of them. None: all.
    """

    cdef readonly Chain chain
    cdef const int32_t[::1] gold
    cdef readonly object labels         # None: yet to be completed
    cdef readonly object known
    cdef const int32_t[::1] which       # what is known of each token; the label where `known` is None
    cdef const int32_t[::1] judge       # of each token the row of the losses of its labels
    cdef const uint8_t[::1] is_open     # sequences that are known in part and not completed; or empty
    cdef float[::1] allowed             # rows of 0 and -inf, or of logarithms of weights, by `which`
    cdef bint is_weighted
    cdef float[::1] masked              # a lattice in which only what agrees may stand
    cdef float[::1] agreeing            # the moments of what agrees; made when first asked for
    cdef float[::1] loss_rows
    cdef bint zero_one, counting
    cdef float[::1] chart
    cdef float[::1] best
    cdef int32_t[::1] words
    cdef int64_t[::1] plus
    cdef int64_t[::1] minus
    cdef int32_t[::1] at            # with each place the token whose bigrams go with it, or 0
    cdef double[::1] edge_sum
    cdef int32_t[::1] local         # the bigrams' indices among the distinct ones of their sequence
    cdef double[::1] pair_sum       # zeros between two uses
    cdef double[::1] feature_sum    # zeros between two uses; made when a long sequence first asks for it
    cdef Py_ssize_t at_hand         # the sequence whose whole lattice stands in chain.E, or -1
    cdef int64_t[::1] filled        # otherwise: the rows filled by call number `serial` of c_dots
    cdef int64_t serial
    cdef int32_t[::1] slot          # what `spread` needs: see chain_expect.h; empty before the first call
    cdef int32_t[::1] features
    cdef float[::1] rows
    cdef Py_ssize_t n_spread
    cdef int32_t[::1] pair_slot     # the same for bigrams
    cdef int32_t[::1] pair_features
    cdef float[::1] pair_rows
    cdef Py_ssize_t n_pairs_spread

    def __init__(self, structure, tokens, labels, known=None, *, rescaling="margin", penalty="linear"):
        self.chain = Chain(structure, tokens)
        super().__init__(len(tokens), structure.n_features, rescaling=rescaling, penalty=penalty,
                         weight_dtype=np.float32)
        cdef Py_ssize_t longest = self.chain.longest
        self.zero_one = structure.loss_name == "zero_one"
        self.counting = self.rescaling != RESCALE_NONE and (
            self.zero_one or self.rescaling == RESCALE_SLACK or self.penalty != PENALTY_LINEAR)
        self.known = known
        self.is_open, self.agreeing = np.zeros(0, dtype=np.uint8), np.zeros(0, dtype=np.float32)
        if known is not None:
            self.is_weighted = known.sets.dtype != bool
            structure.check_known(tokens, known, self.rescaling == RESCALE_NONE)
            self.allowed = structure.allowed_of(known.weights).ravel()
            self.masked = np.empty(max(longest, 1) * self.chain.stride, dtype=np.float32)
            if labels is None:
                self.is_open = known.is_open(tokens.offsets).view(np.uint8)
        if labels is not None:
            labels = structure.check_labels(tokens, labels)
            structure.check_allowed(tokens.offsets, labels)
        self.labels = labels
        self.gold = known.which if labels is None else labels
        self.which = labels if known is None else known.which
        # Only with these constraints wrong labels are added up, each by itself.
        judged = known is not None and not self.counting
        self.judge = self.which if judged else self.gold
        self.loss_rows = structure.losses_of(known.table) if judged else structure.loss_rows
        self.chain.scores.loss = &self.loss_rows[0]
        if self.counting:
            cap = 1 if self.zero_one else longest
            size = longest * (cap + 1) * self.chain.scores.G * self.chain.stride
            if size * 4 > MAX_CHART_BYTES:
                raise UnsupportedFormulation(
                    f"a sequence of {longest} tokens needs a chart of {4 * size} bytes to count errors "
                    f"(more than {MAX_CHART_BYTES}); use rescaling='margin' with penalty='linear'")
            self.chart = np.empty(size, dtype=np.float32)
            self.best = np.empty(cap + 1, dtype=np.float32)
        self.words = np.empty(2 * max(longest, 1), dtype=np.int32)
        edges = (self.chain.order + 1) * longest + 2 + longest * (self.chain.order - 1)
        self.plus = np.empty(2 * edges, dtype=np.int64)
        self.minus = np.empty(2 * edges, dtype=np.int64)
        self.at = np.empty(2 * edges, dtype=np.int32)
        self.feature_sum = np.zeros(0)
        self.edge_sum = np.zeros(self.chain.n_edges * structure.stride)
        if self.chain.n_bigrams:
            local, most = local_indices(tokens.bigrams)
            self.local = np.append(local, np.int32(0))  # so that &local[0] exists
            self.pair_sum = np.zeros(max(most, 1) * self.chain.K * self.chain.stride)
        self.at_hand = -1
        self.filled = np.zeros(max(longest, 1), dtype=np.int64)
        self.slot = self.pair_slot = np.empty(0, dtype=np.int32)

    # ---- completions --------------------------------------------------------------------------------

    @property
    def offers(self):
        offered = {"expectations", "completions"}
        if np.any(self.is_open):
            return frozenset(offered | {"marginals"})
        return frozenset(offered | {"constraints"})

    cdef bint has_open(self, Py_ssize_t i) noexcept nogil:
        """Whether sequence i is known in part, and not completed."""
        return self.is_open.shape[0] > 0 and self.is_open[i]

    cdef int mask(self, Py_ssize_t i) noexcept nogil:
        """From the lattice of sequence i the one in which only what agrees may stand."""
        cdef Py_ssize_t first = self.chain.offsets[i], T = self.chain.offsets[i + 1] - first, stride = self.chain.stride
        cdef Py_ssize_t t, j
        cdef const float* row
        for t in range(T):
            row = &self.allowed[self.which[first + t] * stride]
            for j in range(stride):
                self.masked[t * stride + j] = self.chain.E[t * stride + j] + row[j]
        return 0

    cdef int c_complete(self, Py_ssize_t i, const void* w, Target* target) except -1 nogil:
        cdef Py_ssize_t first = self.chain.offsets[i], T = self.chain.offsets[i + 1] - first, t
        cdef float score
        target.words = &self.which[first]
        target.n_words = T
        for t in range(T):
            if self.which[first + t] >= self.chain.K:
                break
        else:
            return 0
        self.at_hand = -1
        self.chain.prepare(<const float*>w)
        self.chain.fill(i, <const float*>w, &self.chain.row[0], 0)
        self.mask(i)
        KERNELS.best(&self.chain.scores, &self.masked[0], NULL, T, &self.chain.V[0], &self.chain.sums[0],
                     &self.chain.path[0], &score)
        if not score > -INFINITY:
            self.overflow(i)
        target.words = &self.chain.path[0]
        return 0

    cdef bint c_retarget(self, Py_ssize_t i, const Target* target, bint take) except -1 nogil:
        cdef int32_t* gold = <int32_t*>&self.gold[self.chain.offsets[i]]
        cdef bint differs = memcmp(gold, target.words, target.n_words * sizeof(int32_t)) != 0
        if take:
            memcpy(gold, target.words, target.n_words * sizeof(int32_t))
        return differs

    cdef int unknown(self, Py_ssize_t i) except -1 nogil:
        with gil:
            raise ValueError(f"the labels of sequence {self.first + i} are known in part: train with LatentSVM")

    cdef int overflow(self, Py_ssize_t i) except -1 nogil:
        with gil:
            raise ValueError(f"sequence {self.first + i}: the scores of what agrees with what is known overflow")

    @property
    def targets(self):
        return np.asarray(self.chain.offsets), np.asarray(self.gold)

    def with_targets(self, targets):
        cdef Problem problem = ChainProblem(self.chain.structure, self.chain.tokens, targets[1], self.known,
                                            **self.formulation)
        problem.first = self.first
        return problem

    @property
    def incomplete(self):
        """The same problem before it was completed: its log losses are those of what is known."""
        if self.known is None or self.labels is None:
            return self
        cdef Problem problem = ChainProblem(self.chain.structure, self.chain.tokens, None, self.known,
                                            **self.formulation)
        problem.first = self.first
        return problem

    # ---- the most violated labelling ------------------------------------------------------------

    cdef int c_separate(self, Py_ssize_t i, const void* weights, Cut* cut, double* violation) except -1 nogil:
        cdef const float* w = <const float*>weights
        cdef Py_ssize_t first = self.chain.offsets[i], T = self.chain.offsets[i + 1] - first, t, n = 0
        cdef const int32_t* gold = &self.gold[first]
        cdef const int32_t* judge = &self.judge[first]
        cdef double loss = 0.0, score
        self.at_hand = -1
        if self.has_open(i):
            self.unknown(i)
        self.chain.prepare(w)
        self.chain.fill(i, w, &self.chain.row[0], 0)
        self.at_hand = i
        if self.counting:
            self.count_best(i, gold, T)
        else:
            self.chain.best(i, NULL if self.rescaling == RESCALE_NONE else judge, &self.chain.path[0])
        for t in range(T):
            if self.chain.path[t] != gold[t]:
                self.words[2 * n] = <int32_t>t
                self.words[2 * n + 1] = self.chain.path[t]
                loss += self.loss_rows[judge[t] * self.chain.stride + self.chain.path[t]]
                n += 1
        cut.words = &self.words[0]
        cut.n_words = 2 * n
        cut.alpha = cut.b = violation[0] = 0.0
        cut.scale = 1.0
        if n == 0:
            return 0
        cut_terms(self.rescaling, self.penalty, 1.0 if self.zero_one else loss, cut)
        self.c_dots(i, cut, 1, weights, True, &score)
        violation[0] = cut.b - score
        return 0

    cdef int count_best(self, Py_ssize_t i, const int32_t* gold, Py_ssize_t T) except -1 nogil:
        """Trade the number of errors d off against the best score with d errors: the path of the best H(d)."""
        cdef Py_ssize_t cap = 1 if self.zero_one else T, d, top = 0
        cdef double true_score = 0.0, h, high = 0.0
        cdef Cut terms
        KERNELS.count(&self.chain.scores, &self.chain.E[0], gold, T, cap, &self.chart[0], &self.best[0])
        true_score = self.best[0]
        if self.penalty == PENALTY_HARD:
            high = -INFINITY
        for d in range(1, cap + 1):
            if self.best[d] == -INFINITY:
                continue
            cut_terms(self.rescaling, self.penalty, <double>d, &terms)
            h = terms.b - terms.scale * (true_score - self.best[d])
            if h > high:
                high = h
                top = d
        KERNELS.count_path(&self.chain.scores, gold, T, cap, top, &self.chart[0], &self.chain.sums[0],
                           &self.chain.path[0])
        return 0

    # ---- arithmetic on cuts ---------------------------------------------------------------------

    cdef int32_t label_at(self, Py_ssize_t t, const int32_t* words, Py_ssize_t k, const int32_t* gold) noexcept nogil:
        """Label at t of the labelling behind `words`, where k is the last difference at or before t."""
        while k >= 0 and words[2 * k] > t:
            k -= 1
        return words[2 * k + 1] if k >= 0 and words[2 * k] == t else gold[t]

    cdef Py_ssize_t edges(self, Py_ssize_t i, const Cut* cut, int64_t* plus, int64_t* minus) noexcept nogil:
        """Places of the transition weights (from row n_emission on) that dPsi adds and takes away, and `at`."""
        cdef Py_ssize_t first = self.chain.offsets[i], T = self.chain.offsets[i + 1] - first, K = self.chain.K
        cdef Py_ssize_t m = cut.n_words // 2, k, t, stop, done = -1, n = 0, stride = self.chain.stride
        cdef const int32_t* gold = &self.gold[first]
        cdef const int32_t* words = cut.words
        cdef Py_ssize_t g0, g1, g2, y0, y1, y2
        for k in range(m):
            stop = min(<Py_ssize_t>words[2 * k] + self.chain.order, T - 1)
            if k + 1 < m and words[2 * k + 2] <= stop:
                stop = words[2 * k + 2] - 1
            for t in range(max(<Py_ssize_t>words[2 * k], done + 1), stop + 1):
                done = t
                g0 = gold[t]
                y0 = self.label_at(t, words, k, gold)
                g1 = gold[t - 1] if t > 0 else K
                y1 = self.label_at(t - 1, words, k, gold) if t > 0 else K
                if g0 != y0 or g1 != y1:
                    plus[n] = g1 * stride + g0
                    minus[n] = y1 * stride + y0
                    self.at[n] = <int32_t>t
                    n += 1
                if self.chain.order == 2 and t > 0:
                    g2 = gold[t - 2] if t > 1 else K
                    y2 = self.label_at(t - 2, words, k, gold) if t > 1 else K
                    plus[n] = (K + 2 + g2 * K + g1) * stride + g0
                    minus[n] = (K + 2 + y2 * K + y1) * stride + y0
                    self.at[n] = 0
                    n += 1
        if self.chain.has_end and m > 0 and words[2 * m - 2] == T - 1:
            plus[n] = (K + 1) * stride + gold[T - 1]
            minus[n] = (K + 1) * stride + words[2 * m - 1]
            self.at[n] = 0
            n += 1
        return n

    # The place of a pair of labels is also its place in the K rows of each bigram. `indices` are those of bigrams, `w`
    # has their weights alone.

    cdef double pairs_dot(self, Py_ssize_t i, Py_ssize_t n, const int32_t* indices, const real* w) noexcept nogil:
        """<w, the bigrams of dPsi>, for the n places that `edges` found."""
        cdef Py_ssize_t first = self.chain.offsets[i], block = self.chain.K * self.chain.stride, e, k
        cdef const int64_t* indptr = self.chain.pair_indptr + first
        cdef const real* rows
        cdef double x = 1.0, total = 0.0
        for e in range(n):
            if self.at[e] > 0:
                for k in range(indptr[self.at[e]], indptr[self.at[e] + 1]):
                    rows = w + indices[k] * block
                    if self.chain.pair_values != NULL:
                        x = self.chain.pair_values[k]
                    total += x * (<double>rows[self.plus[e]] - rows[self.minus[e]])
        return total

    cdef void add_pairs(self, Py_ssize_t i, Py_ssize_t n, const int32_t* indices, real amount, real* w) noexcept nogil:
        """w += amount * the bigrams of dPsi; with amount 0, set to 0 what that would change."""
        cdef Py_ssize_t first = self.chain.offsets[i], block = self.chain.K * self.chain.stride, e, k
        cdef const int64_t* indptr = self.chain.pair_indptr + first
        cdef real* rows
        cdef real x = amount
        for e in range(n):
            if self.at[e] > 0:
                for k in range(indptr[self.at[e]], indptr[self.at[e] + 1]):
                    rows = w + indices[k] * block
                    if amount == 0.0:
                        rows[self.plus[e]] = rows[self.minus[e]] = 0.0
                        continue
                    if self.chain.pair_values != NULL:
                        x = amount * self.chain.pair_values[k]
                    rows[self.plus[e]] += x
                    rows[self.minus[e]] -= x

    cdef int c_dots(self, Py_ssize_t i, const Cut* cuts, Py_ssize_t n, const void* weights, bint fresh,
                    double* out) except -1 nogil:
        """Scores of cuts from the lattice: the one at hand, or rows of it filled as they are needed.

        Cuts of one example differ from the truth at much the same tokens: each row is summed once.
        """
        cdef const float* w = <const float*>weights
        cdef const float* edge = w + self.chain.n_emission * self.chain.stride
        cdef const float* row
        cdef Py_ssize_t first = self.chain.offsets[i], stride = self.chain.stride, k, p, e, t, count
        cdef double total
        if not (fresh and self.at_hand == i):
            self.at_hand = -1
            self.serial += 1
        for k in range(n):
            total = 0.0
            for p in range(cuts[k].n_words // 2):
                t = cuts[k].words[2 * p]
                row = &self.chain.E[t * stride]
                if self.at_hand < 0 and self.filled[t] != self.serial:
                    self.filled[t] = self.serial
                    self.chain.fill_token(i, t, w)
                total += <double>row[self.gold[first + t]] - row[cuts[k].words[2 * p + 1]]
            count = self.edges(i, &cuts[k], &self.plus[0], &self.minus[0])
            for e in range(count):
                total += <double>edge[self.plus[e]] - edge[self.minus[e]]
            if self.chain.n_bigrams > 0:
                total += self.pairs_dot(i, count, self.chain.pair_indices, w + self.chain.first_bigram * stride)
            out[k] = cuts[k].scale * total
        return 0

    cdef void add_to(self, Py_ssize_t i, const Cut* cut, double coef, real* w) noexcept nogil:
        cdef Py_ssize_t first = self.chain.offsets[i], stride = self.chain.stride, p, e, t, y, g, count
        cdef real* row
        cdef real amount = <real>(coef * cut.scale), x = amount
        for p in range(cut.n_words // 2):
            t = first + cut.words[2 * p]
            y = cut.words[2 * p + 1]
            g = self.gold[t]
            for e in range(self.chain.indptr[t], self.chain.indptr[t + 1]):
                row = w + self.chain.indices[e] * stride
                if self.chain.values != NULL:
                    x = amount * self.chain.values[e]
                row[g] += x
                row[y] -= x
        row = w + self.chain.n_emission * stride
        count = self.edges(i, cut, &self.plus[0], &self.minus[0])
        for e in range(count):
            row[self.plus[e]] += amount
            row[self.minus[e]] -= amount
        if self.chain.n_bigrams > 0:
            self.add_pairs(i, count, self.chain.pair_indices, amount, w + self.chain.first_bigram * stride)

    cdef int c_add(self, Py_ssize_t i, const Cut* cut, double coef, void* w) except -1 nogil:
        self.add_to(i, cut, coef, <float*>w)
        return 0

    cdef int c_accumulate(self, Py_ssize_t i, const Cut* cut, double coef, double* w) except -1 nogil:
        self.add_to(i, cut, coef, w)
        return 0

    cdef double token_dot(self, Py_ssize_t t, Py_ssize_t u) noexcept nogil:
        cdef const int64_t* ptr = self.chain.indptr
        cdef const int32_t* indices = self.chain.indices
        cdef const float* values = self.chain.values
        if t == u and values == NULL:
            return <double>(ptr[t + 1] - ptr[t])
        return KERNELS.token_dot(
            indices + ptr[t], NULL if values == NULL else values + ptr[t], ptr[t + 1] - ptr[t],
            indices + ptr[u], NULL if values == NULL else values + ptr[u], ptr[u + 1] - ptr[u])

    cdef double c_inner(self, Py_ssize_t i, const Cut* a, const Cut* b) except? -1 nogil:
        """Sum over differing tokens t of a, u of b of <x_t, x_u> <e_g(t) - e_y(t), e_g(u) - e_y(u)>, and the edges'.

        For a cut with itself the pairs t < u count twice. Where the pairs are many times the tokens, a's
        joint feature is spread out over an array instead: a sequence of 100,000 tokens has 10^10 of them.
        """
        cdef Py_ssize_t first = self.chain.offsets[i], p, q, e, t, u, gt, gu, yt, yu, n
        cdef int signs, times
        cdef double total = 0.0
        cdef int64_t* plus = &self.plus[0]
        cdef int64_t* minus = &self.minus[0]
        cdef Py_ssize_t n_pairs = (a.n_words // 2) * (b.n_words // 2)
        cdef bint spread = n_pairs > MANY_PAIRS
        if spread:
            total = self.inner_by_features(i, a, b)
        for p in range(0 if spread else a.n_words // 2):
            t = first + a.words[2 * p]
            yt = a.words[2 * p + 1]
            gt = self.gold[t]
            for q in range(p if a == b else 0, b.n_words // 2):
                u = first + b.words[2 * q]
                yu = b.words[2 * q + 1]
                gu = self.gold[u]
                signs = (gt == gu) - (gt == yu) - (yt == gu) + (yt == yu)
                times = 2 if a == b and q > p else 1
                if signs != 0:
                    total += times * signs * self.token_dot(t, u)
        n = self.edges(i, a, plus, minus)
        for e in range(n):
            self.edge_sum[plus[e]] += 1.0
            self.edge_sum[minus[e]] -= 1.0
        if self.chain.n_bigrams > 0:
            self.add_pairs(i, n, &self.local[0], 1.0, &self.pair_sum[0])
        n = self.edges(i, b, plus, minus)
        for e in range(n):
            total += self.edge_sum[plus[e]] - self.edge_sum[minus[e]]
        if self.chain.n_bigrams > 0:
            total += self.pairs_dot(i, n, &self.local[0], &self.pair_sum[0])
        n = self.edges(i, a, plus, minus)
        for e in range(n):
            self.edge_sum[plus[e]] = self.edge_sum[minus[e]] = 0.0
        if self.chain.n_bigrams > 0:
            self.add_pairs(i, n, &self.local[0], 0.0, &self.pair_sum[0])
        return a.scale * b.scale * total

    cdef double inner_by_features(self, Py_ssize_t i, const Cut* a, const Cut* b) except? -1 nogil:
        """The emission part of `c_inner` in time linear in the tokens' entries."""
        cdef Py_ssize_t stride = self.chain.stride
        cdef double total = 0.0
        if self.feature_sum.shape[0] == 0:
            with gil:
                # Zero pages cost no memory until they are written to.
                self.feature_sum = np.zeros(self.chain.n_emission * stride)
        cdef double* sums = &self.feature_sum[0]
        self.spread(i, a, 1.0, sums)
        total = self.spread(i, b, 0.0, sums)
        self.spread(i, a, -1.0, sums)
        return total

    cdef double spread(self, Py_ssize_t i, const Cut* cut, double sign, double* sums) noexcept nogil:
        """Add the cut's emission part, with a sign; or, with sign 0, return its inner product with `sums`.

        Sign -1 after 1 leaves zeros: each entry is set to 0, not subtracted.
        """
        cdef Py_ssize_t first = self.chain.offsets[i], stride = self.chain.stride, p, e, t, y, g
        cdef double x = 1.0, total = 0.0
        cdef double* row
        for p in range(cut.n_words // 2):
            t = first + cut.words[2 * p]
            y = cut.words[2 * p + 1]
            g = self.gold[t]
            for e in range(self.chain.indptr[t], self.chain.indptr[t + 1]):
                row = sums + self.chain.indices[e] * stride
                if self.chain.values != NULL:
                    x = self.chain.values[e]
                if sign > 0.0:
                    row[g] += x
                    row[y] -= x
                elif sign < 0.0:
                    row[g] = row[y] = 0.0
                else:
                    total += x * (row[g] - row[y])
        return total

    # ---- expectations ---------------------------------------------------------------------------
    # Moments are T rows of label probabilities, the expected counts of the transition weights, and with bigrams the
    # probabilities of the label pairs at each token, less the true ones.
    # Of a sequence known in part: less those of the labellings that agree, which are summed over as well.

    cdef Py_ssize_t c_moments(self, Py_ssize_t i) noexcept nogil:
        return self.chain.n_moment_rows(self.chain.offsets[i + 1] - self.chain.offsets[i]) * self.chain.stride

    cdef inline const float* pair_moments(self, Py_ssize_t i, const float* m) noexcept nogil:
        return m + (self.chain.offsets[i + 1] - self.chain.offsets[i] + self.chain.n_edges) * self.chain.stride

    cdef int c_expect(self, Py_ssize_t i, const void* weights, float* m, double* loss, double* entropy) except -1 nogil:
        cdef const float* w = <const float*>weights
        cdef double out[3]
        cdef double agreeing[3]
        cdef Py_ssize_t k, n
        out[2] = agreeing[2] = 0.0
        self.at_hand = -1
        self.chain.prepare(w)
        self.chain.fill(i, w, &self.chain.row[0], 0)
        self.at_hand = i
        if not self.has_open(i):
            self.chain.sum_up(i, &self.chain.E[0], &self.gold[self.chain.offsets[i]], m, out)
            loss[0], entropy[0] = out[1], out[2]
            return 0
        self.chain.sum_up(i, &self.chain.E[0], NULL, m, out)
        n = self.c_moments(i)
        if self.agreeing.shape[0] < n:
            with gil:
                self.agreeing = np.empty(self.chain.n_moment_rows(self.chain.longest) * self.chain.stride,
                                         dtype=np.float32)
        self.mask(i)
        self.chain.sum_up(i, &self.masked[0], NULL, NULL if m == NULL else &self.agreeing[0], agreeing)
        loss[0], entropy[0] = out[0] - agreeing[0], out[2] - agreeing[2]
        if loss[0] < 0.0:
            loss[0] = 0.0
        if m != NULL:
            if self.is_weighted:
                entropy[0] -= self.mean_weight(i)
            for k in range(n):
                m[k] -= self.agreeing[k]
        return 0

    cdef double mean_weight(self, Py_ssize_t i) noexcept nogil:
        """The expectation, under what agrees, of the logarithm of its weight: a constant part of its log-sum."""
        cdef Py_ssize_t first = self.chain.offsets[i], T = self.chain.offsets[i + 1] - first, stride = self.chain.stride
        cdef Py_ssize_t t, c
        cdef const float* row
        cdef double total = 0.0
        for t in range(T):
            row = &self.allowed[self.which[first + t] * stride]
            for c in range(self.chain.K):
                if self.agreeing[t * stride + c] > 0.0:
                    total += <double>self.agreeing[t * stride + c] * row[c]
        return total

    cdef double c_moments_dot(self, Py_ssize_t i, const float* m, const void* weights) except? -1 nogil:
        cdef Py_ssize_t stride = self.chain.stride, first = self.chain.offsets[i], T = self.chain.offsets[i + 1] - first
        cdef Py_ssize_t block = self.chain.K * stride, t, k
        cdef const float* pairs = self.pair_moments(i, m)
        cdef double x = 1.0, total = KERNELS.dot(&self.chain.E[0], m, T * stride) + KERNELS.dot(
            <const float*>weights + self.chain.n_emission * stride, m + T * stride, self.chain.n_edges * stride)
        for t in range(1, T if self.chain.n_bigrams > 0 else 1):
            for k in range(self.chain.pair_indptr[first + t], self.chain.pair_indptr[first + t + 1]):
                if self.chain.pair_values != NULL:
                    x = self.chain.pair_values[k]
                total += x * KERNELS.dot(
                    self.chain.pairs + self.chain.pair_indices[k] * block, pairs + t * block, block)
        return total

    cdef int spread_moments(self, Py_ssize_t i, const float* m) except -1 nogil:
        """The emission part of F_i(m) as rows of distinct features, and that of bigrams as K rows each."""
        cdef Py_ssize_t first = self.chain.offsets[i], T = self.chain.offsets[i + 1] - first, stride = self.chain.stride
        cdef Py_ssize_t most
        if self.slot.shape[0] == 0:
            with gil:
                most = min(self.chain.n_emission, np.diff(self.chain.tokens.indptr[self.chain.offsets]).max(initial=1))
                self.slot = np.full(self.chain.n_emission, -1, dtype=np.int32)
                self.features = np.empty(most, dtype=np.int32)
                self.rows = np.empty(most * stride, dtype=np.float32)
                most = max(self.pair_sum.shape[0] // (self.chain.K * stride), 1) if self.chain.n_bigrams else 0
                self.pair_slot = np.full(self.chain.n_bigrams, -1, dtype=np.int32)
                self.pair_features = np.empty(most, dtype=np.int32)
                self.pair_rows = np.empty(most * self.chain.K * stride, dtype=np.float32)
        self.n_spread = KERNELS.spread(
            self.chain.indptr + first, self.chain.indices, self.chain.values, T, stride, m, &self.slot[0],
            &self.features[0], &self.rows[0])
        if self.chain.n_bigrams > 0:
            self.n_pairs_spread = KERNELS.spread(
                self.chain.pair_indptr + first, self.chain.pair_indices, self.chain.pair_values, T,
                self.chain.K * stride, self.pair_moments(i, m), &self.pair_slot[0], &self.pair_features[0],
                &self.pair_rows[0])
        return 0

    cdef double c_moments_square(self, Py_ssize_t i, const float* m) except? -1 nogil:
        cdef Py_ssize_t stride = self.chain.stride
        cdef const float* edges = m + (self.chain.offsets[i + 1] - self.chain.offsets[i]) * stride
        cdef double total
        self.spread_moments(i, m)
        total = KERNELS.dot(&self.rows[0], &self.rows[0], self.n_spread * stride) + KERNELS.dot(
            edges, edges, self.chain.n_edges * stride)
        if self.chain.n_bigrams > 0:
            total += KERNELS.dot(&self.pair_rows[0], &self.pair_rows[0], self.n_pairs_spread * self.chain.K * stride)
        return total

    cdef int c_moments_add(self, Py_ssize_t i, const float* m, double coef, bint again, void* weights) except -1 nogil:
        cdef Py_ssize_t stride = self.chain.stride
        cdef const float* edges = m + (self.chain.offsets[i + 1] - self.chain.offsets[i]) * stride
        cdef float* w = <float*>weights
        if not again:
            self.spread_moments(i, m)
        KERNELS.add_rows(w, stride, &self.features[0], self.n_spread, &self.rows[0], <float>coef)
        KERNELS.add_rows(w + self.chain.n_emission * stride, stride, NULL, self.chain.n_edges, edges, <float>coef)
        if self.chain.n_bigrams > 0:
            KERNELS.add_rows(w + self.chain.first_bigram * stride, self.chain.K * stride, &self.pair_features[0],
                             self.n_pairs_spread, &self.pair_rows[0], <float>coef)
        return 0

    cdef int c_moments_accumulate(self, Py_ssize_t i, const float* m, double coef, double* w) except -1 nogil:
        cdef Py_ssize_t stride = self.chain.stride
        cdef const float* edges = m + (self.chain.offsets[i + 1] - self.chain.offsets[i]) * stride
        self.spread_moments(i, m)
        KERNELS.add_rows_exactly(w, stride, &self.features[0], self.n_spread, &self.rows[0], coef)
        KERNELS.add_rows_exactly(w + self.chain.n_emission * stride, stride, NULL, self.chain.n_edges, edges, coef)
        if self.chain.n_bigrams > 0:
            KERNELS.add_rows_exactly(w + self.chain.first_bigram * stride, self.chain.K * stride,
                                     &self.pair_features[0], self.n_pairs_spread, &self.pair_rows[0], coef)
        return 0

    cdef bint c_valid(self, Py_ssize_t i, const Cut* cut) noexcept nogil:
        cdef Py_ssize_t first = self.chain.offsets[i], T = self.chain.offsets[i + 1] - first, p, t
        if cut.n_words % 2 != 0 or cut.n_words > 2 * T or self.has_open(i):
            return False
        for p in range(cut.n_words // 2):
            t = cut.words[2 * p]
            if not (0 <= t < T and 0 <= cut.words[2 * p + 1] < self.chain.K):
                return False
            if cut.words[2 * p + 1] == self.gold[first + t] or (p > 0 and t <= cut.words[2 * p - 2]):
                return False
        return True

    cdef double c_cost(self, Py_ssize_t i) noexcept nogil:
        # Measured: a token's decode costs about five times a differing token's score.
        return 10.0 * (self.chain.offsets[i + 1] - self.chain.offsets[i])

    def fingerprint(self):
        sets = [] if self.known is None else [self.known.sets]
        of_tokens = self.chain.tokens.fingerprint(np.asarray(self.which))
        return checksum([np.array([of_tokens, self.zero_one]), self.chain.structure.loss_rows, *sets])

    def structure_fingerprint(self):
        return checksum([np.array([self.zero_one]), self.chain.structure.loss_rows])

    def examples(self, Py_ssize_t start, Py_ssize_t stop):
        cdef Py_ssize_t a = self.chain.offsets[start], b = self.chain.offsets[stop]
        labels = None if self.labels is None else self.labels[a:b]
        known = None if self.known is None else self.known._replace(which=self.known.which[a:b])
        return self.chain.structure, self.chain.tokens[start:stop], labels, known

    def most_violated(self, Py_ssize_t i, w):
        """The labelling behind ``separate(i, w)``, as int32 array."""
        cdef Cut cut
        cdef double violation
        cdef ndarray weights = self._check_weights(w)
        cdef Py_ssize_t T = self.chain.length(i)
        self.c_separate(i, array_data(weights), &cut, &violation)
        return np.asarray(self.chain.path)[:T].copy()
