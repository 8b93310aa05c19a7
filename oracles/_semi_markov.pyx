"""Segments of label sequences: exact inference in semi-Markov chains, and the problem over whole sequences.

The labels of a type of segment X are its tags: first F, inside I, last L, single S (B-X, I-X, E-X, S-X). All other
labels stand for segments of one token, of no type. A labelling is a chain of segments, and its joint feature counts
what a chain's does (see `_viterbi.pyx`), and for each segment of a type its length and its phrases. w is rows of
`stride` float32:

    rows 0 .. F-1           emission, labels along a row
    rows F .. F+K-1         transition, one row per label that comes before
    rows F+K, F+K+1         first label; last label, which stays zero
    then M + 1 rows         length 1 .. M, and longer, types along a row
    then a row a phrase     types along a row

A phrase that ends at a token has a length, and is one of the segment of that length which ends there. Phrases ascend by
length.

With R[t][c] over what comes before a segment that begins at token t with label c, V[t][a] over what comes up to one
that ends there with a, and G[t][X] over what comes up to one of X that is not ended, of M tokens so far or more,

    R[t][c] = (+)_a V[t-1][a] + A[a][c]
    V[t][L] = (+)_m R[t-m+1][F] + inner(t, m) + g(t, m, X)  (+)  G[t-1][X] + A[I][L] + E[t][L] + g(M + 1, X)
    G[t][X] = G[t-1][X] + A[I][I] + E[t][I]  (+)  R[t-M+1][F] + inner of M tokens, none of them the last

where (+) is the maximum, or the logarithm of the sum of exponentials: T M types + T K^2 steps, whatever the lengths.

Labels stand at nodes, pairs of a label and the state of the smallest automaton of what is allowed behind it
(`structsvm/structures/languages/segments.py`): of all chains of segments, one per label; under a language, more. A
segment's states are settled by its first node, its type and its length, so that R, V and G are those of nodes, and a
segment's scores are added up once for all nodes that it may begin at.

Cuts, completions and moments are those of all label sequences (`structsvm/structures/_labels.pyx`).
"""

from libc.math cimport INFINITY, exp, fabs, isfinite, log, log1p
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy, memset

import numpy as np

from structsvm._problem cimport RESCALE_NONE, Cut
from structsvm._arrays cimport array_data, ndarray
from structsvm.execution._stop cimport poll
from structsvm.structures._labels cimport Conjoined, LabelLattice, LabelProblem

from structsvm.arrays import checksum
from structsvm.features._tokens import steps

MAX_CHART_BYTES = 2 << 30

cdef double NEGLIGIBLE = -40.0  # logarithm of a share that makes no difference to a sum of doubles
cdef double WIDE = 200.0        # from transitions this great on, exponentials are not multiplied

cdef enum:
    FIRST
    INSIDE
    LAST
    SINGLE

cdef fused real:
    float
    double


cdef inline void join(double* total, double* top, double x) noexcept nogil:
    """Add exp(x) to a sum that is held as total * exp(top)."""
    if x > top[0]:
        total[0] = (total[0] * exp(top[0] - x) if top[0] > x + NEGLIGIBLE else 0.0) + 1.0
        top[0] = x
    elif x > top[0] + NEGLIGIBLE:
        total[0] += exp(x - top[0])


def tables_of(tags, Py_ssize_t n_labels):
    """Tables of labels for decoders: the labels of types, type and part of each label, and those at begins and ends."""
    labels = np.ascontiguousarray(tags, dtype=np.int32)
    type_of, part_of = np.full(n_labels, -1, dtype=np.int32), np.full(n_labels, SINGLE, dtype=np.int32)
    for kind, own in enumerate(labels):
        type_of[own], part_of[own] = kind, range(4)
    begins = np.flatnonzero((part_of == FIRST) | (part_of == SINGLE)).astype(np.int32)
    ends = np.flatnonzero((part_of == LAST) | (part_of == SINGLE)).astype(np.int32)
    return labels, type_of, part_of, begins, ends


cdef class SegmentChain(LabelLattice):
    """The exact decoder of a set of sequences."""

    cdef Py_ssize_t n_types, M, N, H, n_open, n_last
    cdef const int32_t[:, ::1] tags     # labels of each type
    cdef const int32_t[::1] type_of     # type of each label, or -1
    cdef const int32_t[::1] tag_of      # part of each label in a segment
    cdef const int32_t[::1] begins      # labels that a segment may begin with, and end with
    cdef const int32_t[::1] ends
    cdef object nodes                   # SegmentNodes, whose arrays follow
    cdef const int32_t[::1] label_of    # label of each node
    cdef const int32_t[::1] end_at      # its place among `ends`, or -1
    cdef const int32_t[::1] is_final    # whether a sequence may end there
    cdef const int32_t[:, ::1] groups   # first node, and the one behind the last, of those that lead to the same nodes
    cdef const int32_t[:, ::1] next     # the node of each begin behind a group, or -1
    cdef const int32_t[::1] first       # the node of each begin at the first token, or -1
    cdef const int32_t[::1] singles     # nodes of segments of one token
    cdef const int32_t[::1] heads_of    # the first nodes of segments of type c are heads[heads_of[c]:heads_of[c + 1]]
    cdef const int32_t[::1] heads
    cdef const int32_t[:, ::1] closed   # by head and length the last node, as a place among `last`, or -1
    cdef const int32_t[::1] opened      # by head the inner node after M tokens, as a place among the open ones, or -1
    cdef const int32_t[::1] opens_of    # likewise the open nodes
    cdef const int32_t[::1] on          # the open node after another inner token, or -1
    cdef const int32_t[::1] out         # the place among `last` of the last token after it, or -1
    cdef const int32_t[::1] lasts_of    # likewise the last nodes of segments of several tokens
    cdef const int32_t[::1] last
    cdef const int32_t[::1] last_at     # place of a node among them, or -1
    cdef const int64_t[::1] lengths     # the phrases of length m are lengths[m - 1] .. lengths[m] - 1
    cdef const float* A                 # transitions; then first labels
    cdef const float* g                 # weights of lengths
    cdef const float* phrases
    cdef double[::1] R
    cdef double[::1] V
    cdef double[::1] G                  # open nodes
    cdef int32_t[::1] from_node         # way to R's best; of last nodes the head, or the open node
    cdef int32_t[::1] from_length       # way to V's best
    cdef int32_t[::1] from_start        # way to G's best: where it began
    cdef int32_t[::1] from_head         # and at which node
    cdef float[::1] S                   # scores of the segments that end at a token, by length and type
    cdef double[::1] p                  # probabilities of R, V and G
    cdef double[::1] marginals          # probabilities of the labels of each token
    cdef double[::1] edges              # expected counts
    cdef double[::1] C                  # transitions from `ends` to `begins`, a row per end
    cdef double[::1] exp_C              # their exponentials
    cdef double[::1] counts             # their expected counts
    cdef double[::1] column             # a number per begin
    cdef int32_t[::1] best_of           # and a node
    cdef double[::1] tops               # sums under way, of the last nodes and of the open ones
    cdef double[::1] totals
    cdef bint wide                      # whether some are so great that their exponentials say nothing
    cdef int64_t[::1] one_each          # 0, 1, 2, ...: runs of one phrase
    cdef object weights                 # the weights in `lattice`

    def __init__(self, structure, tokens):
        super().__init__(structure, tokens)
        cdef Py_ssize_t longest = self.longest
        self.n_types, self.M = len(structure.tags), structure.max_length
        self.tags, self.type_of, self.tag_of, self.begins, self.ends = structure.tables
        structure.check_lengths(tokens.offsets)
        self.follow(structure.segment_tables)
        self.lengths = structure.phrase_starts
        self.S = np.empty((self.M + 1) * self.stride, dtype=np.float32)
        self.R, self.V = np.empty(longest * self.N), np.empty(longest * self.N)
        self.G = np.empty(longest * max(self.n_open, 1))
        self.from_node = self.from_length = self.from_start = self.from_head = np.empty(0, dtype=np.int32)
        self.p = self.marginals = self.edges = self.exp_C = self.counts = np.empty(0)
        self.C, self.column = np.empty(len(self.ends) * len(self.begins)), np.empty(len(self.begins))
        self.best_of = np.empty(len(self.begins), dtype=np.int32)
        self.tops, self.totals = np.empty(self.n_last + self.n_open + 1), np.empty(self.n_last + self.n_open + 1)
        phrases = steps(tokens.bigrams.indptr[tokens.offsets])[1] if self.n_bigrams else 0
        self.one_each = np.arange(phrases + 1)

    cdef int follow(self, nodes) except -1:
        """Keep to the nodes of a language (`SegmentNodes`)."""
        self.nodes = nodes
        self.label_of, self.end_at, self.is_final, self.groups, self.next, self.first, self.singles = nodes[:7]
        self.heads_of, self.heads, self.closed, self.opened, self.opens_of, self.on, self.out = nodes[7:14]
        self.lasts_of, self.last, self.last_at = nodes[14:]
        self.N, self.H = len(nodes.labels), len(nodes.groups)
        self.n_open, self.n_last = len(nodes.on), len(nodes.last)
        return self.check_chart(20 * self.N + 16 * self.n_open + 4 * self.n_last)

    cdef int check_chart(self, int64_t size) except -1:
        """Raise ValueError where so many bytes a token are too many."""
        total = self.longest * int(size)
        if total > MAX_CHART_BYTES:
            raise ValueError(
                f"a sequence of {self.longest} tokens needs a chart of {total} bytes for the {self.N} pairs of labels "
                f"and states of its segments, more than {MAX_CHART_BYTES}: divide it")
        return 0

    cdef int prepare(self, const float* w) except -1 nogil:
        cdef Py_ssize_t j, k, n = self.begins.shape[0]
        self.A = w + self.n_emission * self.stride
        self.g = self.A + (self.K + 2) * self.stride
        self.phrases = w + self.first_bigram * self.stride
        for j in range(self.ends.shape[0]):
            for k in range(n):
                self.C[j * n + k] = self.A[self.ends[j] * self.stride + self.begins[k]]
        return 0

    cdef void exponentials(self) noexcept nogil:
        cdef Py_ssize_t e
        self.wide = False
        for e in range(self.C.shape[0]):
            self.wide |= not -WIDE < self.C[e] < WIDE
            self.exp_C[e] = exp(self.C[e])
            self.counts[e] = 0.0

    cdef double top_of(self, Py_ssize_t t, Py_ssize_t h) noexcept nogil:
        """The greatest V of token t in group h."""
        cdef Py_ssize_t m
        cdef double top = -INFINITY
        for m in range(self.groups[h, 0], self.groups[h, 1]):
            if self.V[t * self.N + m] > top:
                top = self.V[t * self.N + m]
        return top

    cdef int enter(self, Py_ssize_t t, bint is_max) except -1 nogil:
        """R of token t, from V of the one before."""
        cdef Py_ssize_t n = self.begins.shape[0], h, k
        cdef double* R = &self.R[t * self.N]
        cdef double* column = &self.column[0]
        cdef int32_t node
        for k in range(self.N):
            R[k] = -INFINITY
        if t == 0:
            for k in range(n):
                if self.first[k] >= 0:
                    R[self.first[k]] = self.A[self.K * self.stride + self.begins[k]]
            return 0
        for h in range(self.H):
            if is_max:
                self.best_behind(t, h, column)
            else:
                self.sums_behind(t, h, column)
            for k in range(n):
                node = self.next[h, k]
                if node < 0:
                    continue
                if (column[k] > R[node]) if is_max else R[node] == -INFINITY:
                    R[node] = column[k]
                    if is_max:
                        self.from_node[t * self.N + node] = self.best_of[k]
                elif not is_max and column[k] > -INFINITY:
                    R[node] = max(R[node], column[k]) + log1p(exp(-fabs(R[node] - column[k])))
            poll(self.work_behind(h, is_max))
        return 0

    cdef int64_t work_behind(self, Py_ssize_t h, bint is_max) noexcept nogil:
        """Steps from the nodes of group h to all begins, in units of `poll`; exponentials count more."""
        cdef int64_t work = (self.groups[h, 1] - self.groups[h, 0] + 2) * self.begins.shape[0]
        return work if is_max or not self.wide else 8 * work

    cdef int64_t work_at(self, Py_ssize_t t) noexcept nogil:
        """All else at a token: tables that are cleared or copied, segments that end there and open ones."""
        return self.N + (self.M + 1) * self.stride // 8 + self.n_open + self.heads.shape[0] * min(self.M, t + 1) // 2

    cdef void best_behind(self, Py_ssize_t t, Py_ssize_t h, double* column) noexcept nogil:
        """The maxima of V of group h, at the token before t, and a transition to each begin."""
        cdef Py_ssize_t n = self.begins.shape[0], m, k
        cdef const double* before = &self.V[(t - 1) * self.N]
        cdef const double* row
        cdef int32_t* best_of = &self.best_of[0]
        cdef double x
        for k in range(n):
            column[k] = -INFINITY
        for m in range(self.groups[h, 0], self.groups[h, 1]):
            x, row = before[m], &self.C[self.end_at[m] * n]
            for k in range(n):
                if x + row[k] > column[k]:
                    column[k] = x + row[k]
                    best_of[k] = <int32_t>m

    cdef void sums_behind(self, Py_ssize_t t, Py_ssize_t h, double* column) noexcept nogil:
        """The same with sums."""
        cdef Py_ssize_t n = self.begins.shape[0], m, k
        cdef const double* before = &self.V[(t - 1) * self.N]
        cdef const double* row
        cdef double top, total, x
        if self.wide:
            for k in range(n):
                top, total = -INFINITY, 0.0
                for m in range(self.groups[h, 0], self.groups[h, 1]):
                    join(&total, &top, before[m] + self.C[self.end_at[m] * n + k])
                column[k] = top if total == 0.0 else top + log(total)
            return
        for k in range(n):
            column[k] = 0.0
        top = self.top_of(t - 1, h)
        for m in range(self.groups[h, 0], self.groups[h, 1] if isfinite(top) else 0):
            x, row = exp(before[m] - top), &self.exp_C[self.end_at[m] * n]
            for k in range(n):
                column[k] += x * row[k]
        for k in range(n):
            column[k] = top + log(column[k]) if column[k] > 0.0 else top

    cdef void leave(self, Py_ssize_t t, Py_ssize_t h, double* r, double* v) noexcept nogil:
        """The probabilities v of V of group h at token t - 1, from r of R of token t; adds to counts of transitions."""
        cdef Py_ssize_t n = self.begins.shape[0], m, k
        cdef const double* before = &self.V[(t - 1) * self.N]
        cdef const double* R = &self.R[t * self.N]
        cdef const double* row
        cdef const int32_t* next = &self.next[h, 0]
        cdef double* column = &self.column[0]
        cdef double* counts
        cdef double top = self.top_of(t - 1, h), x, y, total
        for k in range(n):
            column[k] = r[next[k]] if next[k] >= 0 else 0.0
            if not self.wide and column[k] > 0.0:
                column[k] *= exp(top - R[next[k]])
        for m in range(self.groups[h, 0], self.groups[h, 1]):
            x, total, counts = before[m], 0.0, &self.counts[self.end_at[m] * n]
            if self.wide:
                row = &self.C[self.end_at[m] * n]
                for k in range(n):
                    if column[k] > 0.0 and x + row[k] - R[next[k]] > NEGLIGIBLE:
                        y = column[k] * exp(x + row[k] - R[next[k]])
                        counts[k] += y
                        total += y
            elif x > -INFINITY:
                row, x = &self.exp_C[self.end_at[m] * n], exp(x - top)
                for k in range(n):
                    y = x * row[k] * column[k]
                    counts[k] += y
                    total += y
            v[m] = total

    cdef void segments(self, Py_ssize_t i, Py_ssize_t t) noexcept nogil:
        """S: g(t, m, X) of the segments of sequence i that end at t."""
        cdef Py_ssize_t stride = self.stride, c, at = self.offsets[i] + t, e, m = 1
        cdef const float* row
        cdef float* out
        memcpy(&self.S[0], self.g, (self.M + 1) * stride * sizeof(float))
        if self.n_bigrams == 0:
            return
        for e in range(self.pair_indptr[at], self.pair_indptr[at + 1]):
            while self.pair_indices[e] >= self.lengths[m]:
                m += 1
            row = self.phrases + self.pair_indices[e] * stride
            out = &self.S[(m - 1) * stride]
            for c in range(self.n_types):
                out[c] += row[c]

    cdef double best(self, Py_ssize_t i, const float* E, int32_t* path) except? -1.0 nogil:
        cdef Py_ssize_t N = self.N, t = self.offsets[i + 1] - self.offsets[i] - 1, c, n, s, k, m
        cdef double score
        if self.from_node.shape[0] == 0:
            with gil:
                self.from_node = np.empty(self.longest * N, dtype=np.int32)
                self.from_length = np.empty(self.longest * max(self.n_last, 1), dtype=np.int32)
                self.from_start = np.empty(self.longest * max(self.n_open, 1), dtype=np.int32)
                self.from_head = np.empty(self.longest * max(self.n_open, 1), dtype=np.int32)
        score = self.forwards(i, E, True)
        if not isfinite(score):
            return -INFINITY
        n = -1
        for k in range(N):
            if self.is_final[k] and (n < 0 or self.V[t * N + k] > self.V[t * N + n]):
                n = k
        while True:
            s, path[t] = t, self.label_of[n]
            if self.last_at[n] >= 0:
                c, m = self.type_of[path[t]], self.from_length[t * self.n_last + self.last_at[n]]
                n = self.from_node[t * N + n]
                s = t - m + 1
                if m > self.M:
                    k = (t - 1) * self.n_open + n
                    s, n = self.from_start[k], self.from_head[k]
                for k in range(s + 1, t):
                    path[k] = self.tags[c, INSIDE]
                path[s] = self.tags[c, FIRST]
            if s == 0:
                return score
            n = self.from_node[s * N + n]
            t = s - 1

    cdef double forwards(self, Py_ssize_t i, const float* E, bint is_max) except? -1.0 nogil:
        """Fill R, V and G from a lattice E; the score of all. With `is_max`, and where the best come from."""
        cdef Py_ssize_t N = self.N, T = self.offsets[i + 1] - self.offsets[i], t, c, k
        cdef int32_t a
        cdef double top = -INFINITY, total = 0.0, x
        cdef double* V = &self.V[0]
        for t in range(T):
            self.enter(t, is_max)
            self.segments(i, t)
            for k in range(self.singles.shape[0]):
                a = self.label_of[self.singles[k]]
                x = self.R[t * N + self.singles[k]] + E[t * self.stride + a]
                if self.type_of[a] >= 0:
                    x += self.S[self.type_of[a]]
                V[t * N + self.singles[k]] = x
            for c in range(self.n_types):
                if is_max and self.is_single(c):
                    self.best_of_type(c, t, E)
                else:
                    self.of_type(c, t, E, is_max)
            poll(self.work_at(t))
        for k in range(N):
            if self.is_final[k]:
                x = V[(T - 1) * N + k]
                if not is_max:
                    join(&total, &top, x)
                elif x > top or x != x:
                    top = x
        return top if is_max or total == 0.0 else top + log(total)

    cdef void of_type(self, Py_ssize_t c, Py_ssize_t t, const float* E, bint is_max) noexcept nogil:
        """V of the last nodes of type c, and G of its open ones, at token t."""
        cdef Py_ssize_t N = self.N, stride = self.stride, M = self.M, m, j, k, z
        cdef int32_t F, I, L
        F, I, L = self.tags[c, FIRST], self.tags[c, INSIDE], self.tags[c, LAST]
        cdef const float* A = self.A
        cdef double inside = A[I * stride + I], last = <double>A[I * stride + L] + E[t * stride + L], base, x, run = 0.0
        cdef double* tops = &self.tops[0]
        cdef double* totals = &self.totals[0]
        cdef double* now = &self.G[t * self.n_open]
        cdef const double* before = &self.G[(t - 1) * self.n_open] if t > 0 else NULL
        cdef const double* R
        # The compiler would read these anew after each number that is written.
        cdef Py_ssize_t low = self.heads_of[c], high = self.heads_of[c + 1], first = self.lasts_of[c]
        cdef const int32_t* heads = &self.heads[0] if low < high else NULL
        cdef const int32_t* closed
        cdef const int32_t* lasts = &self.last[0] if self.n_last > 0 else NULL
        cdef const float* S = &self.S[c]
        cdef int32_t* from_length = &self.from_length[t * self.n_last] if is_max else NULL
        cdef int32_t* from_node = &self.from_node[t * N] if is_max else NULL
        for z in range(first, self.lasts_of[c + 1]):
            tops[z], totals[z] = -INFINITY, 0.0
        # `run`: scores of the tokens between the first and the last, and of the steps between these.
        for m in range(2, min(M, t + 1) + 1):
            j = t - m + 1
            if m == 2:
                base = <double>A[F * stride + L] + E[t * stride + L]
            else:
                run += E[(j + 1) * stride + I] + (inside if m > 3 else 0.0)
                base = <double>A[F * stride + I] + run + last
            R = &self.R[j * N]
            closed = &self.closed[0, m] if low < high else NULL
            for k in range(low, high):
                z = closed[k * (M + 1)]
                if z < 0:
                    continue
                x = base + (R[heads[k]] + E[j * stride + F] + S[(m - 1) * stride])
                if not is_max:
                    join(&totals[z], &tops[z], x)
                elif x > tops[z]:
                    tops[z], from_length[z], from_node[lasts[z]] = x, <int32_t>m, heads[k]
        for k in range(self.opens_of[c], self.opens_of[c + 1] if t > 0 else 0):
            z = self.out[k]
            if z < 0:
                continue
            x = before[k] + last + self.S[M * stride + c]
            if not is_max:
                join(&totals[z], &tops[z], x)
            elif x > tops[z]:
                tops[z], from_length[z], from_node[lasts[z]] = x, <int32_t>(M + 1), <int32_t>k
        for z in range(first, self.lasts_of[c + 1]):
            self.V[t * N + lasts[z]] = tops[z] if is_max or totals[z] == 0.0 else tops[z] + log(totals[z])
        # Open segments: those that are M tokens long now, then those that were open before.
        tops, totals = tops + self.n_last, totals + self.n_last
        for z in range(self.opens_of[c], self.opens_of[c + 1]):
            tops[z], totals[z] = -INFINITY, 0.0
        j = t - M + 1
        for k in range(low, high if j >= 0 else low):
            z = self.opened[k]
            if z < 0:
                continue
            x = self.R[j * N + heads[k]] + E[j * stride + F] + <double>A[F * stride + I] + E[t * stride + I]
            x += run + (inside if M > 2 else 0.0)
            self.open_by(t, z, x, j, heads[k], is_max)
        for k in range(self.opens_of[c], self.opens_of[c + 1] if t > 0 else 0):
            z = self.on[k]
            if z >= 0:
                x = before[k] + inside + E[t * stride + I]
                m = (t - 1) * self.n_open + k
                self.open_by(t, z, x, self.from_start[m] if is_max else 0, self.from_head[m] if is_max else 0, is_max)
        for z in range(self.opens_of[c], self.opens_of[c + 1]):
            now[z] = tops[z] if is_max or totals[z] == 0.0 else tops[z] + log(totals[z])

    cdef bint is_single(self, Py_ssize_t c) noexcept nogil:
        """Whether type c has one node of each kind, as without a language."""
        return (self.heads_of[c + 1] == self.heads_of[c] + 1 and self.lasts_of[c + 1] == self.lasts_of[c] + 1
                and self.opens_of[c + 1] == self.opens_of[c] + 1)

    cdef void best_of_type(self, Py_ssize_t c, Py_ssize_t t, const float* E) noexcept nogil:
        """The same as `of_type`, for maxima and a type with one node of each kind: no sum under way is in an array."""
        cdef Py_ssize_t k = self.heads_of[c], z = self.lasts_of[c], o = self.opens_of[c], n = self.n_open
        cdef Py_ssize_t N = self.N, stride = self.stride, m, longest = min(self.M, t + 1)
        cdef int32_t F, I, head = self.heads[k], node = head, length = 0
        I, F = self.tags[c, INSIDE], self.tags[c, FIRST]
        cdef const float* A = self.A + self.tags[c, LAST]
        cdef double inside = self.A[I * stride + I], begin = self.A[F * stride + I], now = E[t * stride + I]
        cdef double ending = E[t * stride + self.tags[c, LAST]], last = A[I * stride] + ending, base
        cdef double top = -INFINITY, run = 0.0, x
        cdef const double* R = &self.R[t * N + head]
        cdef const float* own = E + t * stride + F
        cdef const float* S = &self.S[c]
        cdef const int32_t* closed = &self.closed[k, 0]
        base = A[F * stride] + ending
        for m in range(2, longest + 1):
            if m > 2:
                run += own[I - F] + (inside if m > 3 else 0.0)
                base = begin + run + last
            R, own, S = R - N, own - stride, S + stride
            x = base + (R[0] + own[0] + S[0])
            if x > top and closed[m] >= 0:
                top, length = x, <int32_t>m
        if t > 0 and self.out[o] >= 0:
            x = self.G[(t - 1) * n + o] + last + self.S[self.M * stride + c]
            if x > top:
                top, length, node = x, <int32_t>(self.M + 1), <int32_t>o
        self.V[t * N + self.last[z]] = top
        if length > 0:
            self.from_length[t * self.n_last + z], self.from_node[t * N + self.last[z]] = length, node
        # The open segment: one that is M tokens long now, or that was open before.
        top, m = -INFINITY, -1
        if longest == self.M and self.opened[k] >= 0:
            x = R[0] + own[0] + begin + now
            x += run + (inside if longest > 2 else 0.0)
            if x > top:
                top, m, node = x, t - longest + 1, head
        if t > 0 and self.on[o] >= 0:
            x = self.G[(t - 1) * n + o] + inside + now
            if x > top:
                top, m, node = x, self.from_start[(t - 1) * n + o], self.from_head[(t - 1) * n + o]
        self.G[t * n + o] = top
        if m >= 0:
            self.from_start[t * n + o], self.from_head[t * n + o] = <int32_t>m, node

    cdef inline void open_by(self, Py_ssize_t t, Py_ssize_t z, double x, Py_ssize_t start, int32_t head,
                             bint is_max) noexcept nogil:
        """Add a way to the open node z at token t."""
        cdef double* top = &self.tops[self.n_last + z]
        if not is_max:
            join(&self.totals[self.n_last + z], top, x)
        elif x > top[0]:
            top[0] = x
            self.from_start[t * self.n_open + z] = <int32_t>start
            self.from_head[t * self.n_open + z] = head

    cdef Conjoined conjoined(self, Py_ssize_t i) noexcept nogil:
        """The phrases, each a run of its own: one row of weights, by the type of the segment."""
        cdef Conjoined phrases
        cdef Py_ssize_t start
        if self.n_bigrams == 0:
            return LabelLattice.conjoined(self, i)
        start = self.pair_indptr[self.offsets[i]]
        phrases.n = self.pair_indptr[self.offsets[i + 1]] - start
        phrases.size = self.stride
        phrases.indptr = &self.one_each[0]
        phrases.indices = self.pair_indices + start
        phrases.values = NULL
        return phrases

    cdef int sum_up(self, Py_ssize_t i, const float* E, const int32_t* gold, float* moments,
                    double* out) except -1 nogil:
        cdef double loss
        if self.p.shape[0] == 0:
            with gil:
                self.check_chart(36 * self.N + 24 * self.n_open + 4 * self.n_last + 8 * self.stride)
                self.p = np.empty(self.longest * (2 * self.N + self.n_open))
                self.marginals = np.empty(self.longest * self.stride)
                self.edges = np.empty(self.n_edges * self.stride)
                self.exp_C, self.counts = np.empty(self.C.shape[0]), np.empty(self.C.shape[0])
        self.exponentials()
        poll(16 * self.C.shape[0])
        out[0] = self.forwards(i, E, False)
        out[1] = out[2] = 0.0
        if gold != NULL:
            loss = out[0] - self.score(i, E, gold, NULL, 0.0)
            out[1] = loss if loss > 0.0 or loss != loss else 0.0
        if moments == NULL or not isfinite(out[0]):
            return 0
        out[2] = out[0] - self.backwards(i, E, out[0], moments)
        if out[2] < 0.0:
            out[2] = 0.0
        if gold != NULL:
            self.score(i, E, gold, moments, -1.0)
        return 0

    cdef double score(self, Py_ssize_t i, const float* E, const int32_t* labels, float* moments,
                      float amount) noexcept nogil:
        """The score of a labelling; with moments, these get an amount for each part of it instead."""
        cdef Py_ssize_t T = self.offsets[i + 1] - self.offsets[i], stride = self.stride, t, start = 0, m, place, e
        cdef Py_ssize_t edge
        cdef double total = 0.0
        cdef int32_t c
        for t in range(T):
            edge = (labels[t - 1] if t > 0 else self.K) * stride + labels[t]
            if moments != NULL:
                moments[t * stride + labels[t]] += amount
                moments[T * stride + edge] += amount
            else:
                total += <double>E[t * stride + labels[t]] + self.A[edge]
            if self.tag_of[labels[t]] == FIRST or self.tag_of[labels[t]] == SINGLE:
                start = t
            c = self.type_of[labels[t]]
            if c >= 0 and self.tag_of[labels[t]] >= LAST:
                m = min(t - start + 1, self.M + 1)
                place = (self.K + 1 + m) * stride + c
                if moments != NULL:
                    moments[T * stride + place] += amount
                else:
                    total += self.A[place]
                for e in range(self.phrase_begin(i, t, m), self.phrase_end(i, t, m)):
                    if moments != NULL:
                        moments[(T + self.n_edges + e - self.pair_indptr[self.offsets[i]]) * stride + c] += amount
                    else:
                        total += self.phrases[self.pair_indices[e] * stride + c]
        return total

    cdef Py_ssize_t phrase_begin(self, Py_ssize_t i, Py_ssize_t t, Py_ssize_t m) noexcept nogil:
        """The first entry of the phrases of length m that end at token t; none are longer than M."""
        if self.n_bigrams == 0 or m > self.M:
            return 0
        cdef Py_ssize_t e = self.pair_indptr[self.offsets[i] + t], stop = self.pair_indptr[self.offsets[i] + t + 1]
        while e < stop and self.pair_indices[e] < self.lengths[m - 1]:
            e += 1
        return e

    cdef Py_ssize_t phrase_end(self, Py_ssize_t i, Py_ssize_t t, Py_ssize_t m) noexcept nogil:
        if self.n_bigrams == 0 or m > self.M:
            return 0
        return self.phrase_begin(i, t, m + 1) if m < self.M else self.pair_indptr[self.offsets[i] + t + 1]

    cdef double backwards(self, Py_ssize_t i, const float* E, double log_sum, float* moments) except? -1.0 nogil:
        """Fill the moments after `forwards`; returns the expectation of the score.

        Probabilities are handed back: what V, R and G are sums of, gets its share of theirs.
        """
        cdef Py_ssize_t N = self.N, K = self.K, stride = self.stride, M = self.M, n = self.n_open, t, m, c, j, k, u, z
        cdef Py_ssize_t T = self.offsets[i + 1] - self.offsets[i], first = 0, e, rows = self.n_moment_rows(i)
        cdef int32_t a, F, I, L, f
        cdef const float* A = self.A
        cdef double* R = &self.R[0]
        cdef double* V = &self.V[0]
        cdef double* G = &self.G[0]
        cdef double* r = &self.p[0]
        cdef double* v = r + T * N
        cdef double* q = v + T * N
        cdef double* edges = &self.edges[0]
        # A token may be inside of many segments of little probability each: a sum of floats would lose them.
        cdef double* marginals = &self.marginals[0]
        cdef float* phrases = moments + (T + self.n_edges) * stride
        cdef double mean = 0.0, x, y, p, run, last, inside
        cdef int64_t done           # tokens of the segments that end at t
        memset(r, 0, T * (2 * N + n) * sizeof(double))
        memset(edges, 0, self.n_edges * stride * sizeof(double))
        memset(marginals, 0, T * stride * sizeof(double))
        memset(moments, 0, rows * stride * sizeof(float))
        if self.n_bigrams > 0:
            first = self.pair_indptr[self.offsets[i]]
        for k in range(N):
            if self.is_final[k]:
                v[(T - 1) * N + k] = exp(V[(T - 1) * N + k] - log_sum)
        for t in range(T - 1, -1, -1):
            self.segments(i, t)
            done = 0
            for c in range(self.n_types):
                F, I, L = self.tags[c, FIRST], self.tags[c, INSIDE], self.tags[c, LAST]
                inside, last = A[I * stride + I], <double>A[I * stride + L] + E[t * stride + L]
                run = 0.0
                for k in range(self.opens_of[c], self.opens_of[c + 1] if t > 0 else 0):
                    if self.out[k] < 0 or not v[t * N + self.last[self.out[k]]] > 0.0:
                        continue
                    z = t * N + self.last[self.out[k]]
                    x = G[(t - 1) * n + k] + last + self.S[M * stride + c] - V[z]
                    if x > NEGLIGIBLE:
                        p = v[z] * exp(x)
                        q[(t - 1) * n + k] += p
                        edges[I * stride + L] += p
                        edges[(K + 2 + M) * stride + c] += p
                        marginals[t * stride + L] += p
                        mean += p * (last + self.S[M * stride + c])
                # The segments that end here, and with m = M the first part of one that is not ended.
                for m in range(2, min(M, t + 1) + 1):
                    j = t - m + 1
                    if m > 2:
                        run += E[(j + 1) * stride + I] + (inside if m > 3 else 0.0)
                        x = <double>A[F * stride + I] + run + last
                    else:
                        x = <double>A[F * stride + L] + E[t * stride + L]
                    x += <double>E[j * stride + F] + self.S[(m - 1) * stride + c]
                    for k in range(self.heads_of[c], self.heads_of[c + 1]):
                        if self.closed[k, m] < 0 or not v[t * N + self.last[self.closed[k, m]]] > 0.0:
                            continue
                        z, f = t * N + self.last[self.closed[k, m]], self.heads[k]
                        y = x + R[j * N + f] - V[z]
                        if not y > NEGLIGIBLE:
                            continue
                        p = v[z] * exp(y)
                        mean += p * x
                        r[j * N + f] += p
                        marginals[j * stride + F] += p
                        done += m
                        for u in range(j + 1, t):
                            marginals[u * stride + I] += p
                        marginals[t * stride + L] += p
                        edges[F * stride + (L if m == 2 else I)] += p
                        if m > 2:
                            edges[I * stride + I] += (m - 3) * p
                            edges[I * stride + L] += p
                        edges[(K + 1 + m) * stride + c] += p
                        for e in range(self.phrase_begin(i, t, m), self.phrase_end(i, t, m)):
                            phrases[(e - first) * stride + c] += <float>p
                for k in range(self.opens_of[c], self.opens_of[c + 1] if t > 0 else 0):
                    z = self.on[k]
                    if z < 0 or not q[t * n + z] > 0.0:
                        continue
                    y = G[(t - 1) * n + k] + inside + E[t * stride + I] - G[t * n + z]
                    if y > NEGLIGIBLE:
                        p = q[t * n + z] * exp(y)
                        mean += p * (inside + E[t * stride + I])
                        q[(t - 1) * n + k] += p
                        marginals[t * stride + I] += p
                        edges[I * stride + I] += p
                j = t - M + 1
                for k in range(self.heads_of[c], self.heads_of[c + 1] if j >= 0 else 0):
                    z, f = self.opened[k], self.heads[k]
                    if z < 0 or not q[t * n + z] > 0.0:
                        continue
                    x = <double>E[j * stride + F] + A[F * stride + I] + E[t * stride + I]
                    x += run + (inside if M > 2 else 0.0)
                    y = R[j * N + f] + x - G[t * n + z]
                    if y > NEGLIGIBLE:
                        p = q[t * n + z] * exp(y)
                        mean += p * x
                        r[j * N + f] += p
                        marginals[j * stride + F] += p
                        done += M
                        for u in range(j + 1, t + 1):
                            marginals[u * stride + I] += p
                        edges[F * stride + I] += p
                        edges[I * stride + I] += (M - 2) * p
            for k in range(self.singles.shape[0]):
                z = t * N + self.singles[k]
                p, a = v[z], self.label_of[self.singles[k]]
                if p > 0.0:
                    r[z] += p
                    marginals[t * stride + a] += p
                    mean += p * E[t * stride + a]
                    c = self.type_of[a]
                    if c >= 0:
                        mean += p * self.S[c]
                        edges[(K + 2) * stride + c] += p
                        for e in range(self.phrase_begin(i, t, 1), self.phrase_end(i, t, 1)):
                            phrases[(e - first) * stride + c] += <float>p
            for k in range(self.H if t > 0 else 0):
                self.leave(t, k, r + t * N, v + (t - 1) * N)
                poll(2 * self.work_behind(k, False))
            poll(2 * self.work_at(t) + done)
        for k in range(self.begins.shape[0]):
            p = r[self.first[k]] if self.first[k] >= 0 else 0.0
            edges[K * stride + self.begins[k]] = p
            for j in range(self.ends.shape[0]):
                edges[self.ends[j] * stride + self.begins[k]] = self.counts[j * self.begins.shape[0] + k]
                mean += self.counts[j * self.begins.shape[0] + k] * self.C[j * self.begins.shape[0] + k]
            mean += p * A[K * stride + self.begins[k]]
        for e in range(T * stride):
            moments[e] = <float>marginals[e]
        for e in range(self.n_edges * stride):
            moments[T * stride + e] = <float>edges[e]
        return mean

    # ---- for Python -------------------------------------------------------------------------------

    def lattice(self, w, Py_ssize_t i):
        """The scores of the labels of sequence i, (length, stride); `best_by` has the other weights from here."""
        cdef ndarray weights = self.structure.check_weights(w)
        cdef Py_ssize_t T = self.length(i)
        self.weights = weights
        with nogil:
            self.prepare(<const float*>array_data(weights))
            self.fill(i, <const float*>array_data(weights), &self.row[0], 0)
        return np.asarray(self.E)[:T * self.stride].reshape(T, self.stride).copy()

    def best_by(self, Py_ssize_t i, const float[:, ::1] lattice):
        """``(score, labels)`` of the best labelling of sequence i by a lattice; -inf where there is none."""
        cdef Py_ssize_t T = self.length(i)
        if self.weights is None or lattice.shape[0] != T or lattice.shape[1] != self.stride:
            raise ValueError(f"sequence {i}: not a lattice of {T} tokens")
        score = self.best(i, &lattice[0, 0], &self.path[0])
        return score, np.asarray(self.path)[:T].copy()


cdef class SegmentProblem(LabelProblem):
    """Sequences with their true segments.

    Parameters
    ----------
    structure : SemiMarkovOracle
    tokens : Tokens
    labels : array-like of shape (n_tokens,), int
        The labels of all tokens; with `known`, their completion, or None.
    known : KnownLabels, optional
        What is known of them. None: all.
    """

    cdef SegmentChain segments          # the chain
    cdef int32_t[::1] other             # the labelling of a cut
    cdef int64_t[::1] places            # entries of dPsi, and their values
    cdef double[::1] amounts
    cdef int32_t[::1] row_at            # row in `sums` of each row of w, or -1
    cdef int64_t[::1] used              # the rows in `sums`, which is made of zeros between two uses
    cdef double[::1] sums

    def __init__(self, structure, tokens, labels, known=None, *, rescaling="margin", penalty="linear"):
        self.segments = SegmentChain(structure, tokens)
        super().__init__(self.segments, labels, known, rescaling=rescaling, penalty=penalty)
        cdef Py_ssize_t longest = self.chain.longest
        self.other = np.empty(longest, dtype=np.int32)
        entries = int(np.diff(tokens.indptr[tokens.offsets]).max(initial=0))
        most = 2 * (entries + self.segments.one_each.shape[0] + 2 * longest)
        self.places, self.amounts, self.used = np.empty(most, np.int64), np.empty(most), np.empty(most, np.int64)
        self.row_at = np.empty(0, dtype=np.int32)

    cdef int worst(self, Py_ssize_t i) except -1 nogil:
        cdef const float* E = &self.chain.E[0]
        if self.rescaling != RESCALE_NONE:
            self.add_rows(i, &self.loss_rows[0], &self.judge[0])
            E = &self.lattice[0]
        if not self.chain.best(i, E, &self.chain.path[0]) > -INFINITY:
            with gil:
                raise ValueError(f"sequence {self.first + i}: its scores overflow")
        return 0

    # ---- arithmetic on cuts ---------------------------------------------------------------------

    cdef Py_ssize_t segment(self, Py_ssize_t i, Py_ssize_t start, Py_ssize_t t, int32_t label, double sign,
                            Py_ssize_t n) noexcept nogil:
        """Append the features of the segment start .. t whose last label is given."""
        cdef Py_ssize_t stride = self.chain.stride, m = min(t - start + 1, self.segments.M + 1), e
        cdef Py_ssize_t c = self.segments.type_of[label]
        if c < 0:
            return n
        self.places[n] = (self.chain.n_emission + self.chain.K + 1 + m) * stride + c
        self.amounts[n] = sign
        n += 1
        for e in range(self.segments.phrase_begin(i, t, m), self.segments.phrase_end(i, t, m)):
            self.places[n] = (self.chain.first_bigram + self.chain.pair_indices[e]) * stride + c
            self.amounts[n] = sign
            n += 1
        return n

    cdef Py_ssize_t expand(self, Py_ssize_t i, const Cut* cut) noexcept nogil:
        """The entries of dPsi: their places in w and their values; returns how many there are.

        Near the differences alone: before and after, segments of both labellings begin and end together.
        """
        cdef Py_ssize_t first = self.chain.offsets[i], T = self.chain.offsets[i + 1] - first, stride = self.chain.stride
        cdef Py_ssize_t n = 0, k, e, t, low, high, g_start, y_start, g_edge, y_edge
        cdef const int32_t* gold = &self.gold[first]
        cdef int32_t* y = &self.other[0]
        cdef int32_t a, b
        cdef double x = 1.0
        cdef bint g_ends, y_ends
        if cut.n_words == 0:
            return 0
        memcpy(y, gold, T * sizeof(int32_t))
        for k in range(cut.n_words // 2):
            t, b = cut.words[2 * k], cut.words[2 * k + 1]
            a, y[t] = gold[t], b
            for e in range(self.chain.indptr[first + t], self.chain.indptr[first + t + 1]):
                if self.chain.values != NULL:
                    x = self.chain.values[e]
                self.places[n] = self.chain.indices[e] * stride + a
                self.amounts[n] = x
                self.places[n + 1] = self.chain.indices[e] * stride + b
                self.amounts[n + 1] = -x
                n += 2
        low, high = cut.words[0], cut.words[cut.n_words - 2]
        while low > 0 and not (self.is_begin(gold[low]) and self.is_begin(y[low])):
            low -= 1
        while high < T - 1 and not (self.is_end(gold[high]) and self.is_end(y[high])):
            high += 1
        g_start = y_start = low
        for t in range(low, min(high + 1, T - 1) + 1):
            g_edge = (gold[t - 1] if t > 0 else self.chain.K) * stride + gold[t]
            y_edge = (y[t - 1] if t > 0 else self.chain.K) * stride + y[t]
            if g_edge != y_edge:
                self.places[n], self.amounts[n] = self.chain.n_emission * stride + g_edge, 1.0
                self.places[n + 1], self.amounts[n + 1] = self.chain.n_emission * stride + y_edge, -1.0
                n += 2
            if t > high:
                break
            if self.is_begin(gold[t]):
                g_start = t
            if self.is_begin(y[t]):
                y_start = t
            g_ends, y_ends = self.is_end(gold[t]), self.is_end(y[t])
            if g_ends and y_ends and g_start == y_start and (
                    self.segments.type_of[gold[t]] == self.segments.type_of[y[t]]):
                continue
            if g_ends:
                n = self.segment(i, g_start, t, gold[t], 1.0, n)
            if y_ends:
                n = self.segment(i, y_start, t, y[t], -1.0, n)
        return n

    cdef bint is_begin(self, int32_t label) noexcept nogil:
        return self.segments.tag_of[label] == FIRST or self.segments.tag_of[label] == SINGLE

    cdef bint is_end(self, int32_t label) noexcept nogil:
        return self.segments.tag_of[label] >= LAST

    cdef int c_dots(self, Py_ssize_t i, const Cut* cuts, Py_ssize_t n, const void* weights, bint fresh,
                    double* out) except -1 nogil:
        cdef const float* w = <const float*>weights
        cdef Py_ssize_t k, e, size
        cdef double total
        for k in range(n):
            size = self.expand(i, &cuts[k])
            total = 0.0
            for e in range(size):
                total += self.amounts[e] * w[self.places[e]]
            out[k] = cuts[k].scale * total
        return 0

    cdef void add_to(self, Py_ssize_t i, const Cut* cut, double coef, real* w) noexcept nogil:
        cdef Py_ssize_t e, size = self.expand(i, cut)
        coef *= cut.scale
        for e in range(size):
            w[self.places[e]] += <real>(coef * self.amounts[e])

    cdef int c_add(self, Py_ssize_t i, const Cut* cut, double coef, void* w) except -1 nogil:
        self.add_to(i, cut, coef, <float*>w)
        return 0

    cdef int c_accumulate(self, Py_ssize_t i, const Cut* cut, double coef, double* w) except -1 nogil:
        self.add_to(i, cut, coef, w)
        return 0

    cdef double c_inner(self, Py_ssize_t i, const Cut* a, const Cut* b) except? -1 nogil:
        """One of them is added up in rows of its own, those of w that it has."""
        cdef Py_ssize_t stride = self.chain.stride, e, k, size = self.expand(i, a), n = 0, row
        cdef double total = 0.0
        if self.row_at.shape[0] == 0:
            with gil:
                self.row_at = np.full(self.chain.structure.n_rows, -1, dtype=np.int32)
                self.sums = np.zeros(self.used.shape[0] * stride)
        for e in range(size):
            row = self.places[e] // stride
            if self.row_at[row] < 0:
                self.row_at[row] = <int32_t>n
                self.used[n] = row
                n += 1
            self.sums[self.row_at[row] * stride + self.places[e] % stride] += self.amounts[e]
        if a != b:
            size = self.expand(i, b)
        for e in range(size):
            row = self.places[e] // stride
            if self.row_at[row] >= 0:
                total += self.amounts[e] * self.sums[self.row_at[row] * stride + self.places[e] % stride]
        for k in range(n):
            self.row_at[self.used[k]] = -1
        memset(&self.sums[0], 0, n * stride * sizeof(double))
        return a.scale * b.scale * total

    cdef bint c_valid(self, Py_ssize_t i, const Cut* cut) noexcept nogil:
        """Differences in order, that make another chain of segments."""
        cdef Py_ssize_t first = self.chain.offsets[i], T = self.chain.offsets[i + 1] - first, p, t
        cdef int32_t* y = &self.other[0]
        if not LabelProblem.c_valid(self, i, cut):
            return False
        memcpy(y, &self.gold[first], T * sizeof(int32_t))
        for p in range(cut.n_words // 2):
            y[cut.words[2 * p]] = cut.words[2 * p + 1]
        for t in range(T):
            # Within a segment its type goes on; between two, nothing is open.
            if t > 0 and not self.is_end(y[t - 1]):
                if self.is_begin(y[t]) or self.segments.type_of[y[t]] != self.segments.type_of[y[t - 1]]:
                    return False
            elif not self.is_begin(y[t]):
                return False
        return self.is_end(y[T - 1])

    cdef double c_cost(self, Py_ssize_t i) noexcept nogil:
        return 20.0 * (self.chain.offsets[i + 1] - self.chain.offsets[i])

    def fingerprint(self):
        structure = self.chain.structure
        sets = [] if self.known is None else [self.known.sets]
        of_tokens = self.chain.tokens.fingerprint(np.asarray(self.which))
        language = structure.language
        tables = [] if language is None else [language.following, language.accepting]
        return checksum([np.array([of_tokens, self.segments.M]), structure.tags, structure.phrase_starts,
                         structure.loss_rows, *sets, *tables])

    def structure_fingerprint(self):
        return checksum([self.chain.structure.loss_rows])
