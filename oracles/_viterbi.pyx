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

Cuts, completions and moments are those of all label sequences (`structsvm/structures/_labels.pyx`).
"""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy

import numpy as np

from structsvm._prefetch cimport prefetch
from structsvm._problem cimport (
    PENALTY_HARD, PENALTY_LINEAR, RESCALE_NONE, RESCALE_SLACK, Cut, cut_terms,
)
from structsvm._arrays cimport array_data, ndarray
from structsvm.execution._processor cimport kernel_set
from structsvm.execution._stop cimport poll
from structsvm.structures._labels cimport Conjoined, LabelLattice, LabelProblem

from structsvm._problem import rebuild
from structsvm.arrays import checksum
from structsvm.protocol import UnsupportedFormulation
from structsvm.structures.languages.automaton import TooLarge

cdef extern from "chain.h" nogil:
    ctypedef struct chain_rules:
        int64_t N, H
        const int32_t* labels
        const int32_t* rows
        const int32_t* group
        const int32_t* groups
        const int32_t* next
        const int32_t* first
        const int32_t* ends
        const int32_t* origins
        const int32_t* origin
    ctypedef struct chain_scores:
        int64_t K, stride, G, P, step, shift, each
        const float* A
        const float* start
        const float* end
        const float* loss
        const int32_t* units
        float* tops
        float* turned
        int32_t has_tables
        float* quick
        const chain_rules* rules
    ctypedef struct chain_kernels:
        int (*tables)(const chain_scores* s, const float* A, const float* W, const int64_t* indptr,
                      const int32_t* indices, const float* values, int64_t T, float* rows,
                      float* tables) except -1 nogil
        int (*best)(chain_scores* s, const float* E, const int32_t* gold, int64_t T, float* V,
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
        double (*token_dot)(const int32_t* ia, const float* va, int64_t na,
                            const int32_t* ib, const float* vb, int64_t nb) noexcept nogil
    const chain_kernels* chain_kernels_of(int set, int (*poll)(int64_t work) except -1 nogil)

cdef extern from "ruled.h" nogil:
    const chain_kernels* ruled_kernels_of(int set, int (*poll)(int64_t work) except -1 nogil)

cdef const chain_kernels* KERNELS = chain_kernels_of(kernel_set(), poll)
cdef const chain_kernels* RULED = ruled_kernels_of(kernel_set(), poll)

# The longest rows of labels whose sums are scaled: 4 tables of so many rows take 16 MB.
cdef Py_ssize_t MOST_SCALED = 1024

# The chart of the counting programme is T^2 K / 2 numbers, the tables of a sequence whose attributes are conjoined with
# pairs of labels T K^2 (order 2: T K^3); beyond this they are refused.
MAX_CHART_BYTES = 2 << 30
MOST_BYTES = 1 << 28    # in all charts of problems under different rules

cdef float[::1] NOTHING = np.empty(0, dtype=np.float32)

cdef Py_ssize_t MANY_LABELS = 48    # from here on decoding leaves out labels that cannot matter
cdef Py_ssize_t MANY_PAIRS = 4096   # from so many differing tokens on, c_inner goes by features

cdef fused real:
    float
    double


cdef class Chain(LabelLattice):
    """The exact decoder of a set of sequences."""

    cdef bint has_end                   # without, w's row for the last label is not looked at
    cdef chain_scores scores
    cdef bint by_logs           # whether sums are taken by logarithms, even where products would do
    cdef chain_rules rules              # nodes of the language of labels, if there is one
    cdef object nodes
    cdef const chain_kernels* kernels
    cdef Py_ssize_t block               # floats of the states of a token
    cdef float[::1] tables              # transition scores with the mask added (or for order 2)
    cdef const float* A                 # transition scores that all tokens have
    cdef const float* pairs             # weights of bigrams
    cdef float[::1] own                 # tables of tokens that have bigrams, and K rows; or empty
    cdef float[::1] V
    cdef float[::1] sums                # scratch, and room for the scores' tables
    cdef float[::1] tops                # scratch of `expect` beside V; empty before the first call
    cdef float[::1] work
    cdef float[::1] factors             # room for sums without logarithms, or empty

    def __init__(self, structure, tokens):
        super().__init__(structure, tokens)
        cdef Py_ssize_t G = 1 if self.order == 1 else self.K + 1, P = self.K if self.order == 1 else self.K + 1
        self.has_end = structure.end
        self.scores.K, self.scores.stride, self.scores.G, self.scores.P = self.K, self.stride, G, P
        self.scores.step = 1 if self.order == 1 else self.stride
        self.scores.shift = 0 if self.order == 1 else 1
        self.tables = self.tops = self.work = self.factors = NOTHING
        self.scores.quick = NULL
        if self.order == 2 or self.mask.shape[0] > 0:
            self.tables = np.empty((G * P + 2) * self.stride, dtype=np.float32)
        self.kernels, self.block = KERNELS, G * self.stride
        self.scores.rules, self.nodes = NULL, structure.nodes
        if self.nodes is not None:
            structure.check_lengths(tokens.offsets)
            self.follow(self.nodes)
        self.V = np.empty(self.longest * self.block, dtype=np.float32)
        has_many = self.K >= MANY_LABELS
        room = self.stride + self.longest if has_many else self.stride * self.stride
        self.sums = np.empty(P + 8 + room, dtype=np.float32)
        self.scores.tops = self.scores.turned = NULL
        if self.order == 1 and not self.n_bigrams:
            if has_many:
                self.scores.tops = &self.sums[P + 8]
            else:
                self.scores.turned = &self.sums[P + 8]
        self.scores.each = 0
        if self.n_bigrams:
            self.scores.each = self.K * self.stride * (1 if self.order == 1 else P)
            size = (self.longest * int(self.scores.each) + self.K * self.stride) * 4
            if size > MAX_CHART_BYTES:
                raise ValueError(
                    f"a sequence of {self.longest} tokens with bigrams needs tables of {size} bytes, more than "
                    f"{MAX_CHART_BYTES}: divide it, or use inference='greedy'")
            self.own = np.empty(size // 4, dtype=np.float32)

    cdef int follow(self, nodes) except -1:
        """Keep to the language of `nodes` (see `structsvm.structures.languages.nodes`)."""
        self.rules.N, self.rules.H = len(nodes.labels), len(nodes.following)
        self.rules.labels = <const int32_t*>array_data(nodes.labels)
        self.rules.rows = <const int32_t*>array_data(nodes.rows)
        self.rules.group = <const int32_t*>array_data(nodes.group)
        self.rules.ends = <const int32_t*>array_data(nodes.ends)
        self.rules.groups = <const int32_t*>array_data(nodes.groups)
        self.rules.next = <const int32_t*>array_data(nodes.following)
        self.rules.first = <const int32_t*>array_data(nodes.first)
        self.rules.origins = <const int32_t*>array_data(nodes.origins)
        self.rules.origin = <const int32_t*>array_data(nodes.origin)
        self.scores.rules = &self.rules
        self.kernels, self.block = RULED, self.rules.N
        if self.longest * self.block * 4 > MAX_CHART_BYTES:
            raise ValueError(
                f"a sequence of {self.longest} tokens needs a chart of {4 * self.longest * self.block} bytes for the "
                f"{self.block} pairs of labels and states of its constraints, more than {MAX_CHART_BYTES}: divide it")
        return 0

    cdef int prepare(self, const float* w) except -1 nogil:
        """Point the scores at w's transition rows; with a mask, or for order 2, at combined tables."""
        cdef Py_ssize_t K = self.K, stride = self.stride, a, b, j, G = self.scores.G, P = self.scores.P
        cdef const float* first = w + self.n_emission * stride
        cdef const float* triple = first + (K + 2) * stride
        cdef float* out
        self.pairs = w + self.first_bigram * stride
        self.scores.has_tables = 0
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
        """The lattice of sequence i, and its tables."""
        cdef Py_ssize_t first = self.offsets[i]
        LabelLattice.fill(self, i, w, init, init_step)
        if self.scores.each > 0:
            self.kernels.tables(&self.scores, self.A, self.pairs, self.pair_indptr + first, self.pair_indices,
                                self.pair_values, self.offsets[i + 1] - first,
                                &self.own[self.own.shape[0] - self.K * self.stride], &self.own[0])
        return 0

    cdef double best(self, Py_ssize_t i, const float* E, int32_t* path) except? -1.0 nogil:
        return self.best_against(i, E, NULL, path)

    cdef double best_against(self, Py_ssize_t i, const float* E, const int32_t* gold, int32_t* path) except? -1.0 nogil:
        """`best`, with the losses of what is not `gold` added."""
        cdef float score
        self.kernels.best(&self.scores, E, gold, self.offsets[i + 1] - self.offsets[i], &self.V[0], &self.sums[0], path,
                          &score)
        return score

    cdef Conjoined conjoined(self, Py_ssize_t i) noexcept nogil:
        """The bigrams, a run per token: K rows of weights each, by the label before."""
        cdef Conjoined bigrams
        cdef Py_ssize_t first = self.offsets[i]
        if self.n_bigrams == 0:
            return LabelLattice.conjoined(self, i)
        bigrams.n = self.offsets[i + 1] - first
        bigrams.size = self.K * self.stride
        bigrams.indptr = self.pair_indptr + first
        bigrams.indices = self.pair_indices
        bigrams.values = self.pair_values
        return bigrams

    cdef int sum_up(self, Py_ssize_t i, const float* E, const int32_t* gold, float* moments,
                    double* out) except -1 nogil:
        """See chain_expect.h and chain_quick.h."""
        if self.tops.shape[0] == 0:
            with gil:
                self.tops = np.empty(self.longest, dtype=np.float32)
                self.work = np.empty(4 * self.block + (self.n_edges + 2) * self.stride, dtype=np.float32)
                if self.order == 1 and self.scores.each == 0 and self.nodes is None and self.stride <= MOST_SCALED:
                    self.factors = np.empty(4 * self.stride * self.stride, dtype=np.float32)
                    self.scores.quick = &self.factors[0]
        cdef chain_scores scores = self.scores
        if self.by_logs:
            scores.quick = NULL
        return self.kernels.expect(&scores, E, gold, self.offsets[i + 1] - self.offsets[i], &self.V[0],
                                   &self.tops[0], &self.work[0], moments, self.n_edges, self.has_end, out)

    def expect(self, w, Py_ssize_t i, allowed=None):
        # The score of a single labelling, which is asked for where k best ones are long, takes no exponentials.
        self.by_logs = allowed is not None and np.count_nonzero(allowed) == self.length(i)
        try:
            return super().expect(w, i, allowed)
        finally:
            self.by_logs = False

    def kbest(self, w, Py_ssize_t i, Py_ssize_t k, allowed=None):
        """The k best labellings of sequence i, as ``(paths (m, length) int32, scores (m,) float64)``, m <= k."""
        cdef ndarray weights = self.structure.check_weights(w)
        cdef Py_ssize_t T = self.length(i), n
        cdef Py_ssize_t states = self.block
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
            n = self.kernels.kbest(&self.scores, &self.E[0], T, k, &score[0], &back[0], &heads[0], &paths[0, 0],
                                   &totals[0])
        return np.asarray(paths)[:n].copy(), np.asarray(totals)[:n].astype(np.float64)

    def max_marginals(self, w, Py_ssize_t i):
        """Array (length, K): the score of the best labelling of sequence i with label c at token t."""
        cdef ndarray weights = self.structure.check_weights(w)
        cdef Py_ssize_t T = self.length(i)
        cdef float[::1] B = np.empty(2 * self.block, dtype=np.float32)
        cdef float[:, ::1] out = np.empty((T, self.stride), dtype=np.float32)
        with nogil:
            self.prepare(<const float*>array_data(weights))
            self.fill(i, <const float*>array_data(weights), &self.row[0], 0)
            self.best(i, &self.E[0], &self.path[0])
            self.kernels.max_marginals(&self.scores, &self.E[0], T, &self.V[0], &B[0], &out[0, 0])
        return np.asarray(out)[:, :self.K].astype(np.float64)


def local_indices(bigrams):
    """The bigrams' indices among the distinct ones of their sequence, int32, and the most that a sequence has."""
    n = np.int64(max(bigrams.n_features, 1))
    of = np.repeat(np.arange(len(bigrams)), np.diff(bigrams.indptr[bigrams.offsets]))
    keys, places = np.unique(of * n + bigrams.indices, return_inverse=True)
    starts = np.searchsorted(keys, np.arange(len(bigrams) + 1) * n)
    return (places - starts[of]).astype(np.int32), int(np.diff(starts).max(initial=0))


cdef class ChainProblem(LabelProblem):
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

    cdef Chain decoder              # the chain
    cdef bint counting
    cdef const int32_t[::1] units   # loss of an error by the true label, in units of `unit`
    cdef double unit
    cdef float[::1] chart
    cdef float[::1] best
    cdef int64_t[::1] plus
    cdef int64_t[::1] minus
    cdef int32_t[::1] at            # with each place the token whose bigrams go with it, or 0
    cdef double[::1] edge_sum
    cdef int32_t[::1] local         # the bigrams' indices among the distinct ones of their sequence
    cdef double[::1] pair_sum       # zeros between two uses
    cdef double[::1] feature_sum    # a row per feature of one cut, zeros between two uses; made when first asked for
    cdef int32_t[::1] spread_over   # features of `spread`
    cdef int32_t[::1] place         # a feature's row, or -1
    cdef Py_ssize_t n_places
    cdef int64_t[::1] filled        # where no lattice is at hand: the rows filled by call number `serial` of c_dots
    cdef int64_t serial

    def __init__(self, structure, tokens, labels, known=None, *, rescaling="margin", penalty="linear"):
        self.decoder = Chain(structure, tokens)
        super().__init__(self.decoder, labels, known, rescaling=rescaling, penalty=penalty)
        cdef Py_ssize_t longest = self.chain.longest
        self.window_unit = 0 if self.chain.n_bigrams else self.chain.stride
        self.zero_one = structure.loss_name == "zero_one"
        self.counting = self.rescaling != RESCALE_NONE and (
            self.zero_one or self.rescaling == RESCALE_SLACK or self.penalty != PENALTY_LINEAR)
        if self.counting:
            # Only without it wrong labels are added up, each by itself.
            self.judge, self.loss_rows = self.gold, structure.loss_rows
        self.decoder.scores.loss = &self.loss_rows[0]
        if self.counting:
            self.unit, self.units = (1.0, np.ones(self.chain.K, np.int32)) if self.zero_one else structure.cost_units
            self.decoder.scores.units = &self.units[0]
            cap = 1 if self.zero_one else longest * int(np.max(self.units))
            size = longest * (cap + 1) * self.decoder.block
            if size * 4 > MAX_CHART_BYTES:
                raise UnsupportedFormulation(
                    f"a sequence of {longest} tokens needs a chart of {4 * size} bytes to count errors "
                    f"(more than {MAX_CHART_BYTES}); use rescaling='margin' with penalty='linear'")
            self.chart = np.empty(size, dtype=np.float32)
            self.best = np.empty(cap + 1, dtype=np.float32)
        edges = (self.chain.order + 1) * longest + 2 + longest * (self.chain.order - 1)
        self.plus = np.empty(2 * edges, dtype=np.int64)
        self.minus = np.empty(2 * edges, dtype=np.int64)
        self.at = np.empty(2 * edges, dtype=np.int32)
        self.place = np.empty(0, dtype=np.int32)
        self.edge_sum = np.zeros(self.chain.n_edges * structure.stride)
        if self.chain.n_bigrams:
            local, most = local_indices(tokens.bigrams)
            self.local = np.append(local, np.int32(0))  # so that &local[0] exists
            self.pair_sum = np.zeros(max(most, 1) * self.chain.K * self.chain.stride)
        self.filled = np.zeros(longest, dtype=np.int64)

    cdef Py_ssize_t chart_bytes(self):
        """Bytes of what grows with the longest sequence and the labels."""
        cdef Py_ssize_t counted = self.chart.shape[0] if self.counting else 0
        return sizeof(float) * (self.decoder.V.shape[0] + counted + self.lattice.shape[0])

    # ---- the most violated labelling ------------------------------------------------------------

    cdef int worst(self, Py_ssize_t i) except -1 nogil:
        cdef Py_ssize_t first = self.chain.offsets[i]
        if self.counting:
            return self.count_best(i, &self.gold[first], self.chain.offsets[i + 1] - first)
        self.decoder.best_against(i, &self.chain.E[0], NULL if self.rescaling == RESCALE_NONE else &self.judge[first],
                                  &self.chain.path[0])
        return 0

    cdef int count_best(self, Py_ssize_t i, const int32_t* gold, Py_ssize_t T) except -1 nogil:
        """Trade the loss of d units off against the best score with that loss: the path of the best H(d)."""
        cdef Py_ssize_t cap = 1 if self.zero_one else 0, d, t, top = 0
        cdef double true_score = 0.0, h, high = 0.0
        cdef Cut terms
        if not self.zero_one:
            for t in range(T):
                cap += self.units[gold[t]]
        self.decoder.kernels.count(&self.decoder.scores, &self.chain.E[0], gold, T, cap, &self.chart[0], &self.best[0])
        true_score = self.best[0]
        if self.penalty == PENALTY_HARD:
            high = -INFINITY
        for d in range(1, cap + 1):
            if self.best[d] == -INFINITY:
                continue
            cut_terms(self.rescaling, self.penalty, self.unit * d, &terms)
            h = terms.b - terms.scale * (true_score - self.best[d])
            if h > high:
                high = h
                top = d
        self.decoder.kernels.count_path(&self.decoder.scores, gold, T, cap, top, &self.chart[0], &self.decoder.sums[0],
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
        if self.decoder.has_end and m > 0 and words[2 * m - 2] == T - 1:
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
        if not (fresh and self.chain.at_hand == i):
            self.chain.at_hand = -1
            self.serial += 1
        for k in range(n):
            total = 0.0
            for p in range(cuts[k].n_words // 2):
                t = cuts[k].words[2 * p]
                row = &self.chain.E[t * stride]
                if self.chain.at_hand < 0 and self.filled[t] != self.serial:
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

    cdef void add_to(self, Py_ssize_t i, const Cut* cut, double coef, real* w, Py_ssize_t low,
                     Py_ssize_t high) noexcept nogil:
        cdef Py_ssize_t first = self.chain.offsets[i], stride = self.chain.stride, p, e, t, y, g, count, at
        cdef real amount = <real>(coef * cut.scale), x = amount
        for p in range(cut.n_words // 2):
            t = first + cut.words[2 * p]
            y = cut.words[2 * p + 1]
            g = self.gold[t]
            for e in range(self.chain.indptr[t], self.chain.indptr[t + 1]):
                at = self.chain.indices[e] * stride - low
                if real is double and not 0 <= at < high - low:
                    continue
                if self.chain.values != NULL:
                    x = amount * self.chain.values[e]
                w[at + g] += x
                w[at + y] -= x
        count = self.edges(i, cut, &self.plus[0], &self.minus[0])
        for e in range(2 * count):
            at = self.chain.n_emission * stride - low + (self.minus[e // 2] if e % 2 else self.plus[e // 2])
            if real is float or 0 <= at < high - low:
                w[at] += -amount if e % 2 else amount
        if self.chain.n_bigrams > 0:
            self.add_pairs(i, count, self.chain.pair_indices, amount, w + self.chain.first_bigram * stride)

    cdef void c_prefetch_add(self, Py_ssize_t i, const Cut* cut, const void* w, int stage) noexcept nogil:
        cdef Py_ssize_t p, e, t
        cdef const float* row
        for p in range(cut.n_words // 2):
            t = self.chain.offsets[i] + cut.words[2 * p]
            if stage == 0:
                prefetch(&self.chain.indptr[t])
                prefetch(&self.gold[t])
            elif stage == 1:
                for e in range(self.chain.indptr[t], self.chain.indptr[t + 1] + 15, 16):
                    prefetch(self.chain.indices + e)
                    if self.chain.values != NULL:
                        prefetch(self.chain.values + e)
            else:
                for e in range(self.chain.indptr[t], self.chain.indptr[t + 1]):
                    row = <const float*>w + self.chain.indices[e] * self.chain.stride
                    prefetch(row + self.gold[t])
                    prefetch(row + cut.words[2 * p + 1])

    cdef int c_add(self, Py_ssize_t i, const Cut* cut, double coef, void* w) except -1 nogil:
        self.add_to(i, cut, coef, <float*>w, 0, self.n_features)
        return 0

    cdef int c_accumulate(self, Py_ssize_t i, const Cut* cut, double coef, double* w) except -1 nogil:
        self.add_to(i, cut, coef, w, 0, self.n_features)
        return 0

    cdef int c_accumulate_window(self, Py_ssize_t i, const Cut* cut, double coef, double* w, Py_ssize_t low,
                                 Py_ssize_t high) except -1 nogil:
        self.add_to(i, cut, coef, w, low, high)
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
        cdef Py_ssize_t stride = self.chain.stride, k
        cdef double total = 0.0
        if self.place.shape[0] == 0:
            with gil:
                tokens = self.chain.tokens
                most = min(self.chain.n_emission, np.diff(tokens.indptr[tokens.offsets]).max())
                self.spread_over = np.empty(most, dtype=np.int32)
                # Zero pages cost no memory until they are written to.
                self.feature_sum = np.zeros(most * stride)
                self.place = np.full(self.chain.n_emission, -1, dtype=np.int32)
        self.n_places = 0
        self.spread(i, a, 1.0)
        total = self.spread(i, b, 0.0)
        self.spread(i, a, -1.0)
        for k in range(self.n_places):
            self.place[self.spread_over[k]] = -1
        return total

    cdef double spread(self, Py_ssize_t i, const Cut* cut, double sign) noexcept nogil:
        """Add the cut's emission part, with a sign; or, with sign 0, return its inner product with what is there.

        Sign -1 after 1 leaves zeros: each entry is set to 0, not subtracted.
        """
        cdef Py_ssize_t first = self.chain.offsets[i], stride = self.chain.stride, p, e, t, y, g, k
        cdef double x = 1.0, total = 0.0
        cdef double* row
        for p in range(cut.n_words // 2):
            t = first + cut.words[2 * p]
            y = cut.words[2 * p + 1]
            g = self.gold[t]
            for e in range(self.chain.indptr[t], self.chain.indptr[t + 1]):
                k = self.place[self.chain.indices[e]]
                if k < 0:
                    if sign == 0.0:
                        continue
                    k = self.place[self.chain.indices[e]] = <int32_t>self.n_places
                    self.spread_over[k] = self.chain.indices[e]
                    self.n_places += 1
                row = &self.feature_sum[k * stride]
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

    cdef double c_cost(self, Py_ssize_t i) noexcept nogil:
        # Measured: a token's decode costs about five times a differing token's score.
        return 10.0 * (self.chain.offsets[i + 1] - self.chain.offsets[i])

    def fingerprint(self):
        sets = [] if self.known is None else [self.known.sets]
        of_tokens = self.chain.tokens.fingerprint(np.asarray(self.which))
        return checksum([np.array([of_tokens, self.zero_one]), self.chain.structure.loss_rows, *sets])

    def structure_fingerprint(self):
        return checksum([np.array([self.zero_one]), self.chain.structure.loss_rows])


cdef class LazyProblem(ChainProblem):
    """Sequences under more rules than one automaton can hold: margins alone, of labels that are all known.

    The most violated labelling is found without the rules. Those that it breaks are added, as one automaton, and it is
    found anew, until it breaks none: it is then the most violated one of a larger set, belongs to the smaller one, and
    so is the most violated one that the rules allow.

    Where those that are broken in turn are too many, the labelling keeps to the first rules alone, as many as one
    automaton holds. If it breaks another one, the sequence is `relaxed`: from then on its labellings keep to the first
    rules alone. Its cuts, those from before included, are among these, so that the dual stays below the primal; both
    are those of the relaxed problem, and `inference` says so. Shards share the marks, other processes send them back
    (`notes`), and a cut from a file sets that of its sequence (`c_valid`).
    """

    cdef const void* weights
    cdef const int32_t[:, ::1] following    # the tables of the rules, one after the other
    cdef const uint8_t[::1] accepting
    cdef const int64_t[::1] starts
    cdef uint8_t[::1] marks                 # the sequences that are relaxed
    cdef dict problems                      # by rules, those asked for last at the end
    cdef Py_ssize_t room                    # bytes that the charts of others may take

    def __init__(self, structure, tokens, labels, known=None, marks=None, *, rescaling="margin", penalty="linear"):
        super().__init__(structure, tokens, labels, known, rescaling=rescaling, penalty=penalty)
        rules = structure.rules
        self.following = np.ascontiguousarray(np.concatenate([rule.following for rule in rules]), dtype=np.int32)
        self.accepting = np.concatenate([rule.accepting for rule in rules]).astype(np.uint8)
        self.starts = np.cumsum([0, *(rule.n_states for rule in rules)])
        marks = np.zeros(self.n_samples, dtype=np.uint8) if marks is None else marks
        self.marks = np.require(marks, requirements="W")    # joblib maps arrays for its processes to read
        self.problems, self.room = {}, MOST_BYTES

    def examples(self, Py_ssize_t start, Py_ssize_t stop):
        return *ChainProblem.examples(self, start, stop), np.asarray(self.marks)[start:stop]

    @property
    def inference(self):
        return "relaxed" if np.any(self.marks) else "exact"

    @property
    def relaxed(self):
        """The sequences of which margins are those of a larger set of labellings: bool array (n_samples,)."""
        return np.asarray(self.marks, dtype=bool)

    @property
    def notes(self):
        found = np.flatnonzero(self.marks)
        return found if len(found) else None

    def note(self, Py_ssize_t start, notes):
        np.asarray(self.marks)[start + notes] = True

    cdef int c_separate(self, Py_ssize_t i, const void* weights, Cut* cut, double* violation) except -1 nogil:
        self.weights = weights
        return ChainProblem.c_separate(self, i, weights, cut, violation)

    cdef int worst(self, Py_ssize_t i) except -1 nogil:
        cdef Py_ssize_t k
        ChainProblem.worst(self, i)
        for k in range(self.starts.shape[0] - 1):
            if self.breaks(i, k):
                with gil:
                    self.obey(i)
                break
        return 0

    cdef bint c_valid(self, Py_ssize_t i, const Cut* cut) noexcept nogil:
        cdef Py_ssize_t first = self.chain.offsets[i], T = self.chain.offsets[i + 1] - first, k
        if not ChainProblem.c_valid(self, i, cut):
            return False
        memcpy(&self.chain.path[0], &self.gold[first], T * sizeof(int32_t))
        for k in range(cut.n_words // 2):
            self.chain.path[cut.words[2 * k]] = cut.words[2 * k + 1]
        for k in range(self.starts.shape[0] - 1):
            if self.breaks(i, k):
                self.marks[i] = True
        return True

    cdef bint breaks(self, Py_ssize_t i, Py_ssize_t k) noexcept nogil:
        """Whether the labelling that was found breaks rule k."""
        cdef Py_ssize_t T = self.chain.offsets[i + 1] - self.chain.offsets[i], t
        cdef int64_t first = self.starts[k], state = 0
        for t in range(T):
            state = self.following[first + state, self.chain.path[t]]
            if state < 0:
                return True
        return not self.accepting[first + state]

    cdef frozenset broken(self, Py_ssize_t i):
        """The rules that the labelling breaks, of those that sequence i keeps."""
        cdef Py_ssize_t k, n = self.chain.structure.n_joint_rules if self.marks[i] else self.starts.shape[0] - 1
        return frozenset([k for k in range(n) if self.breaks(i, k)])

    cdef int obey(self, Py_ssize_t i) except -1:
        """Find the labelling under the rules that it breaks, until it breaks none."""
        rules = frozenset()
        while broken := self.broken(i):
            if broken <= rules:     # a labelling under them breaks none
                raise ValueError(f"example {self.first + i}: its scores overflow; scale the features down")
            rules |= broken
            try:
                self.find(i, self.under(rules))
            except TooLarge:
                self.find(i, self.under(frozenset(range(self.chain.structure.n_joint_rules))))
                self.marks[i] = bool(self.broken(i))
                return 0
        return 0

    cdef int find(self, Py_ssize_t i, ChainProblem other) except -1:
        """The most violated labelling of another problem, in place of that which was found."""
        cdef Cut cut
        cdef double violation
        other.c_separate(i, self.weights, &cut, &violation)
        memcpy(&self.chain.path[0], &other.chain.path[0], other.chain.length(i) * sizeof(int32_t))
        return 0

    cdef ChainProblem under(self, rules):
        """The problem under some rules; those asked for long ago make room for new ones. Raises TooLarge."""
        cdef ChainProblem found = self.problems.pop(rules, None)
        if found is None:
            oracle = self.chain.structure.under(rules)
            found = rebuild(ChainProblem, (oracle, self.chain.tokens, self.labels, None), self.formulation, self.first)
            self.room -= found.chart_bytes()
            while self.room < 0 and self.problems:
                self.room += (<ChainProblem>self.problems.pop(next(iter(self.problems)))).chart_bytes()
        self.problems[rules] = found
        return found

    cdef int c_expect(self, Py_ssize_t i, const void* weights, float* m, double* loss, double* entropy) except -1 nogil:
        with gil:
            self.chain.structure.refuse_sums()
        return -1
