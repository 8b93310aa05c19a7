"""The state of every decoder of label sequences, and code of the problems over whole sequences.

The tokens stay where they are (numpy arrays that `tokens` keeps alive); a decoder adds the buffers of one
thread. Several threads take several decoders over the same tokens.

A cut of a whole sequence is written as the positions at which its labelling differs from the true one: words
(t, label), t ascending. w is rows of `stride` float32, labels along a row: one per feature of tokens, `n_edges` more,
and those of conjoined attributes.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcmp, memcpy, memset

import numpy as np

from structsvm._arrays cimport array_data, ndarray
from structsvm._problem cimport RESCALE_NONE, Cut, Problem, Target, cut_terms
from structsvm.execution._processor cimport kernel_set
from structsvm.execution._stop cimport poll

from structsvm.adapter import offers_of
from structsvm.features._tokens import steps
from structsvm.structures.languages.automaton import NoLabelling

cdef extern from "labels.h" nogil:
    ctypedef struct labels_kernels:
        void (*fill)(const float* W, int64_t stride, const int64_t* indptr, const int32_t* indices,
                     const float* values, int64_t T, const float* init, int64_t init_step, float* E) noexcept nogil
        int64_t (*spread)(const int64_t* indptr, const int32_t* indices, const float* values, int64_t T,
                          int64_t stride, const float* moments, int32_t* slot, int32_t* list, int32_t* places,
                          float* rows) noexcept nogil
        void (*spread_again)(const int64_t* indptr, const int32_t* places, const float* values, int64_t T,
                             int64_t stride, const float* moments, int64_t n, float* rows) noexcept nogil
        void (*note)(const int64_t* indptr, int64_t T, int64_t n, int32_t* places, int32_t* scratch) noexcept nogil
        void (*spread_noted)(const int32_t* noted, int64_t n, int64_t n_entries, int64_t stride, const float* moments,
                             float* rows) noexcept nogil
        double (*dot)(const float* a, const float* b, int64_t n) noexcept nogil
        void (*add_rows)(float* W, int64_t stride, const int32_t* list, int64_t n, const float* rows,
                         float coef) noexcept nogil
        void (*accumulate)(double* W, int64_t stride, const int64_t* indptr, const int32_t* indices,
                           const float* values, int64_t T, const float* moments, double coef) noexcept nogil
    int LABELS_SHORT
    const labels_kernels* labels_kernels_of(int set, int (*poll)(int64_t work) except -1 nogil)

cdef const labels_kernels* KERNELS = labels_kernels_of(kernel_set(), poll)

cdef Py_ssize_t TOKENS = 256    # whose rows are summed between two polls
cdef Py_ssize_t MOST_PLACES = 1 << 26   # entries of tokens whose rows are noted: half a gigabyte


cdef class LabelDecoder:
    """Base of the decoders; `structure` is the oracle's `LabelChain`."""

    def __init__(self, structure, tokens):
        structure.check_tokens(tokens)
        self.structure, self.tokens = structure, tokens
        self.K, self.stride, self.order = structure.n_labels, structure.stride, structure.order
        self.n_emission = structure.n_token_features
        self.offsets = tokens.offsets
        self.indptr = <const int64_t*>array_data(tokens.indptr)
        self.indices = <const int32_t*>array_data(tokens.indices)
        self.values = NULL if tokens.values is None else <const float*>array_data(tokens.values)
        self.n_bigrams, self.first_bigram = structure.n_bigrams, structure.first_bigram_row
        self.pair_indptr, self.pair_indices, self.pair_values = NULL, NULL, NULL
        if self.n_bigrams:
            self.pair_indptr = <const int64_t*>array_data(tokens.bigrams.indptr)
            self.pair_indices = <const int32_t*>array_data(tokens.bigrams.indices)
            if tokens.bigrams.values is not None:
                self.pair_values = <const float*>array_data(tokens.bigrams.values)
        self.row, self.mask = structure.fixed_rows

    cdef int prepare(self, const float* w) except -1 nogil:
        return 0

    cdef Py_ssize_t label(self, Py_ssize_t i, const float* w, const float* init, Py_ssize_t init_step,
                          int32_t* out) except -2 nogil:
        return 0

    cdef Py_ssize_t length(self, Py_ssize_t i) except -1:
        if not 0 <= i < self.offsets.shape[0] - 1:
            raise IndexError(f"sequence {i} is out of range for {self.offsets.shape[0] - 1}")
        return self.offsets[i + 1] - self.offsets[i]

    def decode(self, w, Py_ssize_t start=0, stop=None, allowed=None, scores=None):
        """Label sequences start .. stop - 1.

        Parameters
        ----------
        w : ndarray of shape (n_features,), float32
        start, stop : int
        allowed : list, optional
            For each of these sequences None, or a boolean array (length, n_labels) of allowed labels.
        scores : ndarray of shape (n_tokens, stride), float32, optional
            Of all tokens, to which those of their features are added; -inf in the padding. Not with `allowed`.

        Returns
        -------
        labels : ndarray of int32
            Those of all their tokens, one sequence after the other.

        Raises
        ------
        ValueError
            If the masks leave a sequence without labelling, or scores overflow.
        """
        cdef Py_ssize_t n = self.offsets.shape[0] - 1, end = n if stop is None else stop, i = start, token = -1
        cdef ndarray weights = self.structure.check_weights(w)
        cdef const float* pointer = <const float*>array_data(weights)
        cdef const float[:, ::1] init
        cdef Py_ssize_t init_step = 0
        cdef const float* rows = &self.row[0]
        if not 0 <= start <= end <= n:
            raise IndexError(f"sequences {start}:{end} are out of range for {n}")
        cdef ndarray labels = np.empty(self.offsets[end] - self.offsets[start], dtype=np.int32)
        cdef int32_t* out = <int32_t*>array_data(labels)
        if scores is not None and len(scores):
            if allowed is not None or scores.shape != (self.offsets[n], self.stride):
                raise ValueError(f"scores have shape {scores.shape}, expected {(self.offsets[n], self.stride)} without "
                                 "masks")
            init, init_step = scores, self.stride
            rows = &init[0, 0]
        with nogil:
            self.prepare(pointer)
        if allowed is None:
            with nogil:
                while i < end and token < 0:
                    token = self.label(i, pointer, rows + init_step * self.offsets[i], init_step,
                                       out + self.offsets[i] - self.offsets[start])
                    i += 1
                    poll((self.offsets[i] - self.offsets[i - 1]) * self.stride)
        while i < end and token < 0:
            if allowed[i - start] is None:
                init, init_step = np.asarray(self.row)[None, :], 0
            else:
                init, init_step = self.structure.allowed_rows(allowed[i - start], self.length(i), i), self.stride
            with nogil:
                token = self.label(i, pointer, &init[0, 0], init_step, out + self.offsets[i] - self.offsets[start])
            i += 1
        if token >= 0:
            raise NoLabelling(f"the masks leave no labelling from token {token} on, or its scores overflow", i - 1)
        return labels


cdef class LabelLattice(LabelDecoder):
    """Base of the exact decoders: a lattice, and sums over all labellings."""

    def __init__(self, structure, tokens):
        super().__init__(structure, tokens)
        self.longest = max(steps(tokens.offsets)[1], 1)
        self.n_edges = self.first_bigram - self.n_emission
        self.E = np.empty(self.longest * self.stride, dtype=np.float32)
        self.path = np.empty(self.longest, dtype=np.int32)
        self.at_hand = -1

    cdef int fill(self, Py_ssize_t i, const float* w, const float* init, Py_ssize_t init_step) except -1 nogil:
        cdef Py_ssize_t first = self.offsets[i], T = self.offsets[i + 1] - first, t = 0, size
        self.at_hand = -1
        while t < T:
            size = min(TOKENS, T - t)
            KERNELS.fill(w, self.stride, self.indptr + first + t, self.indices, self.values, size,
                         init + t * init_step, init_step, &self.E[t * self.stride])
            t += size
            if t < T:
                poll((self.indptr[first + t] - self.indptr[first + t - size] + size) * self.stride // 8)
        if init_step == 0:
            self.at_hand = i
        return 0

    cdef void fill_token(self, Py_ssize_t i, Py_ssize_t t, const float* w) noexcept nogil:
        KERNELS.fill(w, self.stride, self.indptr + self.offsets[i] + t, self.indices, self.values, 1,
                     &self.row[0], 0, &self.E[t * self.stride])

    cdef double best(self, Py_ssize_t i, const float* E, int32_t* path) except? -1.0 nogil:
        return -INFINITY

    cdef Py_ssize_t label(self, Py_ssize_t i, const float* w, const float* init, Py_ssize_t init_step,
                          int32_t* out) except -2 nogil:
        self.fill(i, w, init, init_step)
        return -1 if self.best(i, &self.E[0], out) > -INFINITY else 0

    cdef Conjoined conjoined(self, Py_ssize_t i) noexcept nogil:
        cdef Conjoined none
        memset(&none, 0, sizeof(Conjoined))
        return none

    cdef Py_ssize_t n_moment_rows(self, Py_ssize_t i) noexcept nogil:
        cdef Conjoined more = self.conjoined(i)
        return self.offsets[i + 1] - self.offsets[i] + self.n_edges + more.n * (more.size // self.stride)

    cdef int sum_up(self, Py_ssize_t i, const float* E, const int32_t* gold, float* moments,
                    double* out) except -1 nogil:
        return 0

    def expect(self, w, Py_ssize_t i, allowed=None):
        """Sums over all labellings of sequence i, with probabilities proportional to the exponentials of their scores.

        Returns
        -------
        log_sum : float
            Of the exponentials; -inf where `allowed` leaves no labelling.
        labels : ndarray of shape (length, K), float64
            The probability of each label at each token.
        others : ndarray of shape (n_rows, stride), float64
            The expected counts of the edges' weights, in their rows; then the rows of conjoined attributes: of bigrams
            K rows a token of the probabilities of label pairs, by the label before (0 at the first token), and of
            phrases one each, of the probabilities of types.
        """
        cdef ndarray weights = self.structure.check_weights(w)
        cdef Py_ssize_t T = self.length(i)
        cdef float[:, ::1] moments = np.zeros((self.n_moment_rows(i), self.stride), dtype=np.float32)
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

    def log_sum(self, w, Py_ssize_t i, allowed=None):
        """The log-sum of `expect`, without the rounding of scaled products: that of one labelling is its score."""
        return self.expect(w, i, allowed)[0]


cdef class LabelProblem(Problem):
    """Base of the problems over sequences with their true labellings.

    Parameters
    ----------
    chain : LabelLattice
    labels : array-like of shape (n_tokens,), int
        The labels of all tokens; with `known`, their completion, or None.
    known : KnownLabels, optional
        What is known of them. None: all.
    """

    def __init__(self, LabelLattice chain, labels, known=None, *, rescaling="margin", penalty="linear"):
        self.chain = chain
        structure, tokens = chain.structure, chain.tokens
        super().__init__(len(tokens), structure.n_features, rescaling=rescaling, penalty=penalty,
                         weight_dtype=np.float32)
        self.known = known
        self.is_open, self.agreeing = np.zeros(0, dtype=np.uint8), np.zeros(0, dtype=np.float32)
        if known is not None:
            self.is_weighted = known.sets.dtype != bool
            structure.check_known(tokens, known, self.rescaling == RESCALE_NONE)
            self.allowed = structure.allowed_of(known.weights).ravel()
            if labels is None:
                self.is_open = known.is_open(tokens.offsets).view(np.uint8)
        if labels is not None:
            labels = structure.check_labels(tokens, labels)
            structure.check_allowed(tokens.offsets, labels)
        self.labels = labels
        self.gold = known.which if labels is None else labels
        self.which = self.judge = labels if known is None else known.which
        self.loss_rows = structure.loss_rows if known is None else structure.losses_of(known.table)
        self.lattice = np.empty(chain.longest * chain.stride, dtype=np.float32)
        self.words = np.empty(2 * chain.longest, dtype=np.int32)
        self.slot = self.pair_slot = self.places = self.distinct = self.n_distinct = np.empty(0, dtype=np.int32)

    def examples(self, Py_ssize_t start, Py_ssize_t stop):
        cdef Py_ssize_t a = self.chain.offsets[start], b = self.chain.offsets[stop]
        labels = None if self.labels is None else self.labels[a:b]
        known = None if self.known is None else self.known._replace(which=self.known.which[a:b])
        return self.chain.structure, self.chain.tokens[start:stop], labels, known

    # ---- completions --------------------------------------------------------------------------------

    @property
    def offers(self):
        return offers_of(np.any(self.is_open))

    @property
    def possible(self):
        return self.chain.structure.possible(self.chain.tokens, np.asarray(self.gold))

    cdef bint has_open(self, Py_ssize_t i) noexcept nogil:
        """Whether sequence i is known in part, and not completed."""
        return self.is_open.shape[0] > 0 and self.is_open[i]

    cdef void add_rows(self, Py_ssize_t i, const float* rows, const int32_t* row_of) noexcept nogil:
        """Fill `lattice`: that of sequence i, to which rows are added."""
        cdef Py_ssize_t first = self.chain.offsets[i], stride = self.chain.stride, t, j
        cdef const float* row
        for t in range(self.chain.offsets[i + 1] - first):
            row = rows + row_of[first + t] * stride
            for j in range(stride):
                self.lattice[t * stride + j] = self.chain.E[t * stride + j] + row[j]

    cdef int c_complete(self, Py_ssize_t i, const void* w, Target* target) except -1 nogil:
        cdef Py_ssize_t first = self.chain.offsets[i], T = self.chain.offsets[i + 1] - first, t
        target.words = &self.which[first]
        target.n_words = T
        for t in range(T):
            if self.which[first + t] >= self.chain.K:
                break
        else:
            return 0
        self.chain.prepare(<const float*>w)
        self.chain.fill(i, <const float*>w, &self.chain.row[0], 0)
        self.add_rows(i, &self.allowed[0], &self.which[0])
        if not self.chain.best(i, &self.lattice[0], &self.chain.path[0]) > -INFINITY:
            with gil:
                raise ValueError(f"sequence {self.first + i}: the scores of what agrees with what is known overflow")
        target.words = &self.chain.path[0]
        return 0

    cdef bint c_retarget(self, Py_ssize_t i, const Target* target, bint take) except -1 nogil:
        cdef int32_t* gold = <int32_t*>&self.gold[self.chain.offsets[i]]
        cdef bint differs = memcmp(gold, target.words, target.n_words * sizeof(int32_t)) != 0
        if take:
            memcpy(gold, target.words, target.n_words * sizeof(int32_t))
        return differs

    @property
    def targets(self):
        return np.asarray(self.chain.offsets), np.asarray(self.gold)

    def with_targets(self, targets):
        return self.rebuilt(self.chain.structure, self.chain.tokens, targets[1], self.known)

    @property
    def incomplete(self):
        """The same problem before it was completed: its log losses are those of what is known."""
        return self if self.known is None or self.labels is None else self.with_targets((None, None))

    # ---- the most violated labelling ------------------------------------------------------------

    cdef int worst(self, Py_ssize_t i) except -1 nogil:
        return 0

    cdef int c_separate(self, Py_ssize_t i, const void* weights, Cut* cut, double* violation) except -1 nogil:
        cdef const float* w = <const float*>weights
        cdef Py_ssize_t first = self.chain.offsets[i], T = self.chain.offsets[i + 1] - first, t, n = 0
        cdef const int32_t* gold = &self.gold[first]
        cdef const int32_t* judge = &self.judge[first]
        cdef double loss = 0.0, score
        if self.has_open(i):
            with gil:
                raise ValueError(f"the labels of sequence {self.first + i} are known in part: train with LatentSVM")
        self.chain.prepare(w)
        self.chain.fill(i, w, &self.chain.row[0], 0)
        self.worst(i)
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

    def most_violated(self, Py_ssize_t i, w):
        """The labelling behind ``separate(i, w)``, as int32 array."""
        cdef Cut cut
        cdef double violation
        cdef ndarray weights = self._check_weights(w)
        cdef Py_ssize_t T = self.chain.length(i)
        self.c_separate(i, array_data(weights), &cut, &violation)
        return np.asarray(self.chain.path)[:T].copy()

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

    # ---- expectations ---------------------------------------------------------------------------
    # Moments are those of all labellings (see `LabelLattice.n_moment_rows`) less the true ones; of a sequence known in
    # part less those of the labellings that agree, which are summed over as well.

    cdef Py_ssize_t c_moments(self, Py_ssize_t i) noexcept nogil:
        return self.chain.n_moment_rows(i) * self.chain.stride

    cdef int c_expect(self, Py_ssize_t i, const void* weights, float* m, double* loss, double* entropy) except -1 nogil:
        cdef const float* w = <const float*>weights
        cdef double out[3]
        cdef double agreeing[3]
        cdef Py_ssize_t k, n
        out[2] = agreeing[2] = 0.0
        self.chain.prepare(w)
        self.chain.fill(i, w, &self.chain.row[0], 0)
        if not self.has_open(i):
            self.chain.sum_up(i, &self.chain.E[0], &self.gold[self.chain.offsets[i]], m, out)
            loss[0], entropy[0] = out[1], out[2]
            return 0
        self.chain.sum_up(i, &self.chain.E[0], NULL, m, out)
        n = self.c_moments(i)
        if self.agreeing.shape[0] < n:
            with gil:
                self.agreeing = np.empty(n, dtype=np.float32)
        self.add_rows(i, &self.allowed[0], &self.which[0])
        self.chain.sum_up(i, &self.lattice[0], NULL, NULL if m == NULL else &self.agreeing[0], agreeing)
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
        cdef Py_ssize_t stride = self.chain.stride, T = self.chain.offsets[i + 1] - self.chain.offsets[i], t, k
        cdef Conjoined more = self.chain.conjoined(i)
        cdef const float* edge_weights = <const float*>weights + self.chain.n_emission * stride
        cdef const float* pair_weights = <const float*>weights + self.chain.first_bigram * stride
        cdef const float* edges = m + T * stride
        cdef const float* pairs = edges + self.chain.n_edges * stride
        cdef double x = 1.0, total = KERNELS.dot(&self.chain.E[0], m, T * stride) + KERNELS.dot(
            edge_weights, edges, self.chain.n_edges * stride)
        for t in range(more.n):
            for k in range(more.indptr[t], more.indptr[t + 1]):
                if more.values != NULL:
                    x = more.values[k]
                total += x * KERNELS.dot(pair_weights + more.indices[k] * more.size, pairs + t * more.size, more.size)
        return total

    cdef int make_room(self, Py_ssize_t pair_size) except -1:
        """The scratch of `spread_moments`; `pair_size`: of a conjoined attribute."""
        tokens = self.chain.tokens
        longest = np.diff(tokens.indptr[tokens.offsets]).max(initial=1)
        most = min(self.chain.n_emission, longest)
        self.features = np.empty(most, dtype=np.int32)
        self.rows = np.empty(most * self.chain.stride, dtype=np.float32)
        if self.chain.n_bigrams > 0:
            most = min(self.chain.n_bigrams, np.diff(tokens.bigrams.indptr[tokens.offsets]).max(initial=1))
            self.pair_slot = np.full(self.chain.n_bigrams, -1, dtype=np.int32)
            self.pair_features = np.empty(most, dtype=np.int32)
            self.pair_rows = np.empty(most * pair_size, dtype=np.float32)
        size = tokens.n_entries
        if size <= MOST_PLACES and self.sections.bounds is None:
            self.places, self.distinct = np.empty(size + 1, dtype=np.int32), np.empty(size + 1, dtype=np.int32)
            self.n_distinct = np.full(self.n_samples, -1, dtype=np.int32)
            self.scratch = np.empty(longest, dtype=np.int32)
        self.slot = np.full(self.chain.n_emission, -1, dtype=np.int32)
        return 0

    cdef bint is_short(self, Py_ssize_t T, Py_ssize_t n_rows) noexcept nogil:
        """Whether entries of T tokens, with so many rows, are noted as `spread_noted` takes them."""
        return self.chain.values == NULL and T <= LABELS_SHORT and n_rows <= LABELS_SHORT

    cdef int spread_moments(self, Py_ssize_t i, const float* m) except -1 nogil:
        """The emission part of F_i(m) as rows of distinct features, and that of conjoined attributes."""
        cdef Py_ssize_t first = self.chain.offsets[i], T = self.chain.offsets[i + 1] - first, stride = self.chain.stride
        cdef const int64_t* indptr = self.chain.indptr + first
        cdef Conjoined more = self.chain.conjoined(i)
        cdef int32_t* places = NULL
        cdef int32_t* features
        if self.slot.shape[0] == 0:
            with gil:
                self.make_room(more.size)
        features = &self.features[0]
        if self.places.shape[0] > 0:
            places = &self.places[0]
            features = &self.distinct[indptr[0]]
        self.row_features = features
        if places != NULL and self.n_distinct[i] >= 0:
            self.n_spread = self.n_distinct[i]
            if self.is_short(T, self.n_spread):
                KERNELS.spread_noted(places + indptr[0], self.n_spread, indptr[T] - indptr[0], stride, m, &self.rows[0])
            else:
                KERNELS.spread_again(indptr, places, self.chain.values, T, stride, m, self.n_spread, &self.rows[0])
        else:
            self.n_spread = KERNELS.spread(
                indptr, self.chain.indices, self.chain.values, T, stride, m, &self.slot[0], features, places,
                &self.rows[0])
            if places != NULL:
                self.n_distinct[i] = <int32_t>self.n_spread
                if self.is_short(T, self.n_spread):
                    KERNELS.note(indptr, T, self.n_spread, places, &self.scratch[0])
        if self.chain.n_bigrams > 0:
            self.n_pairs_spread = KERNELS.spread(
                more.indptr, more.indices, more.values, more.n, more.size, m + (T + self.chain.n_edges) * stride,
                &self.pair_slot[0], &self.pair_features[0], NULL, &self.pair_rows[0])
        return 0

    cdef double c_moments_square(self, Py_ssize_t i, const float* m) except? -1 nogil:
        cdef Py_ssize_t stride = self.chain.stride
        cdef const float* edges = m + (self.chain.offsets[i + 1] - self.chain.offsets[i]) * stride
        cdef double total
        self.spread_moments(i, m)
        total = KERNELS.dot(&self.rows[0], &self.rows[0], self.n_spread * stride) + KERNELS.dot(
            edges, edges, self.chain.n_edges * stride)
        if self.chain.n_bigrams > 0:
            total += KERNELS.dot(&self.pair_rows[0], &self.pair_rows[0],
                                 self.n_pairs_spread * self.chain.conjoined(i).size)
        return total

    cdef int c_moments_add(self, Py_ssize_t i, const float* m, double coef, bint again, void* weights) except -1 nogil:
        cdef Py_ssize_t stride = self.chain.stride
        cdef const float* edges = m + (self.chain.offsets[i + 1] - self.chain.offsets[i]) * stride
        cdef float* w = <float*>weights
        if not again:
            self.spread_moments(i, m)
        KERNELS.add_rows(w, stride, self.row_features, self.n_spread, &self.rows[0], <float>coef)
        KERNELS.add_rows(w + self.chain.n_emission * stride, stride, NULL, self.chain.n_edges, edges, <float>coef)
        if self.chain.n_bigrams > 0:
            KERNELS.add_rows(w + self.chain.first_bigram * stride, self.chain.conjoined(i).size,
                             &self.pair_features[0], self.n_pairs_spread, &self.pair_rows[0], <float>coef)
        return 0

    cdef int c_moments_accumulate(self, Py_ssize_t i, const float* m, double coef, double* w) except -1 nogil:
        cdef Py_ssize_t stride = self.chain.stride, first = self.chain.offsets[i]
        cdef Py_ssize_t T = self.chain.offsets[i + 1] - first
        cdef Conjoined more = self.chain.conjoined(i)
        cdef const float* edges = m + T * stride
        KERNELS.accumulate(w, stride, self.chain.indptr + first, self.chain.indices, self.chain.values, T, m, coef)
        KERNELS.accumulate(w + self.chain.n_emission * stride, stride, NULL, NULL, NULL, self.chain.n_edges, edges,
                           coef)
        if self.chain.n_bigrams > 0:
            KERNELS.accumulate(w + self.chain.first_bigram * stride, more.size, more.indptr, more.indices, more.values,
                               more.n, edges + self.chain.n_edges * stride, coef)
        return 0
