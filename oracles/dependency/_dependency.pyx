"""Dependency trees: scores of arcs, the best tree and sums over all trees, and the margin problem over whole trees.

The weights, float32: 2**arc_bits numbers of arc templates, then 2**row_bits rows of labels, `stride` long, and those of
the numbers of vectors (see arcs.h).
An output is heads and labels of the words, (n, 2). A cut is what differs from the true one, as words (m, head, label),
m ascending from 1. Features are found anew from the codes whenever a cut is looked at, which costs less
than to look it up in memory.
"""

from libc.math cimport INFINITY, NAN, exp, isfinite, log, log1p
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memset

import numpy as np

from structsvm._problem cimport (
    PENALTY_LINEAR, RESCALE_NONE, RESCALE_SLACK, Cut, Memory, Problem, Target, cut_terms,
)
from structsvm._arrays cimport array_data, ndarray
from structsvm.execution._processor cimport kernel_set
from structsvm.execution._stop cimport poll

from structsvm.adapter import offers_of
from structsvm.arrays import checksum

cdef extern from "dependency.h" nogil:
    enum: ARCS_DISTANCES, ARCS_MOST_BETWEEN
    ctypedef struct arcs_vector:
        int32_t size
    ctypedef struct arcs_model:
        int64_t n_columns, n_arc, n_below, n_above, n_joint, width, arc_bits, row_bits, n_labels, stride, root_label
        const int32_t* head_ptr
        const int32_t* head_parts
        const int32_t* below_ptr
        const int32_t* below_parts
        const int32_t* distance
        const int32_t* between
        const uint32_t* distance_keys
        int64_t n_vectors
        const arcs_vector* vector
    ctypedef struct arcs_sentence:
        int64_t n
        const int32_t* codes
        int32_t* columns
        uint32_t* head_keys
        uint32_t* below_keys
        float* below_rows
        float* above_rows
        float* row
        float* scores
    enum: PAIRS_CHOICES, PAIRS_SIDES, PAIRS_ROLES, PAIRS_MEMO
    ctypedef struct pairs_part:
        pass
    ctypedef struct pairs_memo:
        pass
    ctypedef struct pairs_choice:
        int32_t head, label
        float score
    ctypedef struct pairs_search:
        int64_t n, width
        const int32_t* ptr
        const int32_t* seen
        const int32_t* sees
        uint32_t* label_keys
        uint32_t* side_keys
        uint32_t* none_keys
        uint32_t* word_keys
        int64_t bits
        float* arc
        float* around
        uint64_t* keys
        pairs_memo* memo
        pairs_part* parts
        uint32_t* base
        int32_t* others
    int64_t arcs_column_size(int64_t n)
    int64_t eisner_size(int64_t n)
    int64_t eisner_sums_size(int64_t n)
    int64_t arborescence_size(int64_t n)
    int64_t arborescence_sums_size(int64_t n)
    int64_t arborescence_samples_size(int64_t n)
    uint32_t arcs_mix(uint32_t key, uint32_t code)
    ctypedef struct dependency_kernels:
        void (*arcs_look)(const arcs_model* a, arcs_sentence* s) noexcept nogil
        int (*arcs_fill)(const arcs_model* a, const float* W, arcs_sentence* s, const int32_t* heads,
                         const int32_t* labels) except -1 nogil
        int32_t (*arcs_label)(const arcs_model* a, const float* W, const arcs_sentence* s, int64_t h, int64_t m,
                              const int32_t* heads, const int32_t* labels) noexcept nogil
        int64_t (*arcs_features)(const arcs_model* a, const arcs_sentence* s, int64_t h, int64_t m, int32_t* at,
                                 int32_t* rows, float* numbers) noexcept nogil
        void (*pairs_begin)(const arcs_model* a, pairs_search* p) noexcept nogil
        void (*pairs_look)(const arcs_model* a, arcs_sentence* s, pairs_search* p) noexcept nogil
        void (*pairs_choose)(const arcs_model* a, const float* W, const arcs_sentence* s, const int32_t* heads,
                             const int32_t* labels, const int32_t* found, float gap, pairs_choice* choices,
                             int32_t* n_choices) noexcept nogil
        int (*pairs_climb)(const arcs_model* a, const float* W, int64_t n, pairs_search* p, int projective,
                           const pairs_choice* choices, const int32_t* n_choices, const int32_t* heads,
                           const int32_t* labels, int32_t* found) except -1 nogil
        void (*pairs_differences)(const arcs_model* a, int64_t n, const pairs_search* p, const int32_t* heads,
                                  const int32_t* labels, const int32_t* words, int64_t n_words, int32_t* plus,
                                  int64_t* n_plus, int32_t* minus, int64_t* n_minus,
                                  int64_t* crossings) noexcept nogil
        int64_t (*pairs_crossing)(int64_t n, const int32_t* heads) noexcept nogil
        int (*eisner_best)(int64_t n, const float* scores, float* memory, int32_t* stack, int32_t* heads,
                           float* best) except -1 nogil
        int (*eisner_sums)(int64_t n, const double* scores, double* memory, double* log_sum,
                           double* arcs) except -1 nogil
        int (*arborescence_best)(int64_t n, const float* scores, void* memory, int32_t* heads,
                                 float* best) except -1 nogil
        int (*arborescence_sums)(int64_t n, const double* scores, double* memory, double* log_sum,
                                 double* arcs) except -1 nogil
        int (*eisner_samples)(int64_t n, const double* scores, double* memory, int32_t* stack, int64_t n_samples,
                              const double* uniforms, int32_t* heads) except -1 nogil
        int (*arborescence_samples)(int64_t n, const double* scores, double* memory, int64_t n_samples,
                                    const double* uniforms, int32_t* heads) except -1 nogil
    const dependency_kernels* dependency_kernels_of(int set, int (*poll)(int64_t work) except -1 nogil)

cdef const dependency_kernels* KERNELS = dependency_kernels_of(kernel_set(), poll)

cdef fused real:
    float
    double

cdef fused number:
    float
    double


cdef uint32_t[:, ::1] distance_keys(const int32_t[::1] distance):
    """Keys of each class of distances, for templates that see none (0), the direction (1), or the distance (2)."""
    cdef Py_ssize_t k, t, seen, n = distance.shape[0]
    cdef uint32_t[:, ::1] keys = np.empty((ARCS_DISTANCES, n), dtype=np.uint32)
    for k in range(ARCS_DISTANCES):
        for t in range(n):
            seen = 0 if distance[t] == 0 else 1 + k // 7 if distance[t] == 1 else 4 + k
            keys[k, t] = arcs_mix(0x64697374, <uint32_t>seen)
    return keys


# A labelled arc of a word among candidates.
ARC = np.dtype([("head", np.int32), ("label", np.int32), ("score", np.float32)])
CANDIDATES = PAIRS_CHOICES


cdef inline int64_t finding(Py_ssize_t n) noexcept nogil:
    """Work of finding the features of n arcs of a sentence of n words, what is between among them."""
    return n * (300 + 2 * n)


cdef inline double sum_at(const float* w, const int32_t* at, Py_ssize_t n) noexcept nogil:
    """The sum of some weights, in four sums that do not wait for each other."""
    cdef double[4] sums = [0.0, 0.0, 0.0, 0.0]
    cdef Py_ssize_t k, lane, wholes = n - n % 4
    for k in range(0, wholes, 4):
        for lane in range(4):
            sums[lane] += w[at[k + lane]]
    for k in range(wholes, n):
        sums[0] += w[at[k]]
    return (sums[0] + sums[1]) + (sums[2] + sums[3])


cdef int overflow(Py_ssize_t i) except -1 nogil:
    with gil:
        raise ValueError(f"sentence {i}: no tree has a finite score; the model's weights overflow")


cdef class TreeFinder:
    """The best tree over a table of arc scores, and sums over all trees; with memory for one thread.

    Parameters
    ----------
    projective : bool
    longest : int
        Words of the longest sentence.
    """

    cdef readonly bint projective
    cdef readonly Py_ssize_t longest
    cdef float[::1] chart
    cdef char[::1] graph
    cdef int32_t[::1] stack
    cdef double[::1] sums

    def __init__(self, projective, Py_ssize_t longest):
        self.projective, self.longest = projective, longest
        self.chart = np.empty(eisner_size(longest) if projective else 0, dtype=np.float32)
        # Doubles stand first in it.
        self.graph = np.empty(0 if projective else arborescence_size(longest) // 8 + 1).view(np.int8)
        self.stack = np.empty(6 * longest + 12, dtype=np.int32)
        self.sums = np.empty(0)

    cdef bint best(self, int64_t n, const float* scores, int32_t* heads, float* score) except -1 nogil:
        """Whether there is a tree of a score that is not -inf: its heads, and its score."""
        if self.projective:
            return KERNELS.eisner_best(n, scores, &self.chart[0], &self.stack[0], heads, score) == 0
        return KERNELS.arborescence_best(n, scores, &self.graph[0], heads, score) == 0

    cdef double sum_up(self, int64_t n, const double* scores, double* arcs) except? -1.0 nogil:
        """log sum of the exponentials of all trees' scores; `arcs` get their probabilities."""
        cdef double log_sum
        self.make_room()
        if self.projective:
            KERNELS.eisner_sums(n, scores, &self.sums[0], &log_sum, arcs)
        else:
            KERNELS.arborescence_sums(n, scores, &self.sums[0], &log_sum, arcs)
        return log_sum

    cdef int make_room(self) except -1 nogil:
        if self.sums.shape[0] == 0:
            with gil:
                self.sums = np.empty(
                    eisner_sums_size(self.longest) if self.projective
                    else max(arborescence_sums_size(self.longest), arborescence_samples_size(self.longest)))
        return 0

    def tree(self, const float[:, ::1] scores):
        """The heads of the best tree and its score, or None; `scores` has a row per head, 0 the root."""
        cdef Py_ssize_t n = self._check(scores)
        cdef int32_t[::1] heads = np.empty(n, dtype=np.int32)
        cdef float score
        cdef bint found
        with nogil:
            found = self.best(n, &scores[0, 0], &heads[0], &score)
        return (np.asarray(heads), float(score)) if found else None

    def trees(self, const float[:, ::1] tables, const int64_t[::1] sizes, int32_t[:, ::1] heads):
        """Write the heads of the best trees of some sentences, -1 where there is none.

        The table of a sentence of n words is (n + 1)^2 numbers, the first of a row; n is 0 where there is none.
        """
        cdef Py_ssize_t b
        cdef float score
        if len(tables) != len(sizes) or len(heads) != len(sizes) or not all(
            0 <= n <= self.longest and n <= heads.shape[1] and (n + 1) ** 2 <= tables.shape[1] for n in set(sizes)
        ):
            raise ValueError("tables, sizes and heads do not fit")
        with nogil:
            for b in range(sizes.shape[0]):
                if sizes[b] and not self.best(sizes[b], &tables[b, 0], &heads[b, 0], &score):
                    heads[b, :] = -1

    def log_sum(self, const double[:, ::1] scores):
        """The log of the sum over all trees of exp(score), and the probabilities of arcs; (-inf, zeros) of none."""
        cdef Py_ssize_t n = self._check(scores)
        cdef double[:, ::1] arcs = np.zeros((n + 1, n + 1))
        cdef double total
        with nogil:
            total = self.sum_up(n, &scores[0, 0], &arcs[0, 0])
        return total, np.asarray(arcs)

    def samples(self, const double[:, ::1] scores, const double[:, ::1] uniforms):
        """The heads (R, n) of independent trees, by numbers (R, 2 n) from 0 to 1; None where rounding spoils them."""
        cdef Py_ssize_t n = self._check(scores)
        cdef int32_t[:, ::1] heads = np.empty((uniforms.shape[0], n), dtype=np.int32)
        cdef int status = 0
        with nogil:
            self.make_room()
            if uniforms.shape[0] == 0:
                status = 0
            elif self.projective:
                status = KERNELS.eisner_samples(n, &scores[0, 0], &self.sums[0], &self.stack[0], uniforms.shape[0],
                                                &uniforms[0, 0], &heads[0, 0])
            else:
                status = KERNELS.arborescence_samples(n, &scores[0, 0], &self.sums[0], uniforms.shape[0],
                                                      &uniforms[0, 0], &heads[0, 0])
        return np.asarray(heads) if status == 0 else None

    def _check(self, scores):
        n = scores.shape[0] - 1
        if not 1 <= n <= self.longest or scores.shape[1] != n + 1:
            raise ValueError(f"scores have shape {scores.shape}, expected (n + 1, n + 1) with 1 <= n <= {self.longest}")
        return n


cdef class ArcDecoder:
    """Sentences under an oracle's templates: scores of arcs and trees; with memory for the longest, for one thread."""

    cdef readonly object oracle
    cdef readonly TreeFinder finder
    cdef TreeFinder anyhow      # for trees whose arcs may cross, once a projective decoder has needed it
    cdef object kept                # the owner of the addresses in `model`
    cdef arcs_model model
    cdef arcs_sentence s
    cdef int32_t[:, ::1] columns
    cdef uint32_t[:, :, ::1] word_keys
    cdef float[:, :, :, ::1] word_rows
    cdef uint32_t[:, ::1] distance_keys
    cdef float[::1] row
    cdef float[::1] scores
    cdef int32_t[::1] at
    cdef int32_t[::1] rows
    cdef float[::1] numbers
    cdef Py_ssize_t n_hashed, n_rows        # rows of label templates; and of vectors' numbers, at the end

    def __init__(self, oracle, Py_ssize_t longest):
        cdef arcs_model* a = &self.model
        templates = oracle.templates
        self.oracle, self.finder = oracle, TreeFinder(oracle.projective, longest)
        self.kept = kept = templates.arrays
        a.n_columns, a.n_labels, a.stride = templates.n_codes, oracle.n_labels, oracle.stride
        a.n_arc, a.n_below, a.n_above, a.n_joint = templates.sizes
        a.width = templates.width
        a.arc_bits, a.row_bits = oracle.arc_bits, oracle.row_bits
        a.root_label = -1 if oracle.root_label is None else oracle.root_label
        a.head_ptr = <const int32_t*>array_data(kept["head_ptr"])
        a.head_parts = <const int32_t*>array_data(kept["head_parts"])
        a.below_ptr = <const int32_t*>array_data(kept["below_ptr"])
        a.below_parts = <const int32_t*>array_data(kept["below_parts"])
        a.distance = <const int32_t*>array_data(kept["distance"])
        a.between = <const int32_t*>array_data(kept["between"])
        self.distance_keys = distance_keys(kept["distance"])
        a.distance_keys = &self.distance_keys[0, 0]
        self.n_hashed = self.n_rows = a.n_below + a.n_above + a.n_joint
        if "vectors" in kept:
            a.n_vectors, a.vector = len(kept["vectors"]), <const arcs_vector*>array_data(kept["vectors"])
            self.n_rows += kept["vectors"][:, 3].sum()
        self.columns = np.empty((a.n_columns, arcs_column_size(longest)), dtype=np.int32)
        self.word_keys = np.empty((2, longest + 1, a.width), dtype=np.uint32)
        self.word_rows = np.empty((2, longest + 1, 2, a.stride), dtype=np.float32)
        self.row = np.empty(a.stride, dtype=np.float32)
        self.scores = np.full((longest + 1) ** 2, -np.inf, dtype=np.float32)
        self.at = np.empty(a.n_arc + 8 * ARCS_MOST_BETWEEN, dtype=np.int32)
        self.rows = np.empty(self.n_rows + 1, dtype=np.int32)
        self.numbers = np.empty(self.n_rows - self.n_hashed + 1, dtype=np.float32)
        self.s.columns = &self.columns[0, 0]
        self.s.head_keys, self.s.below_keys = &self.word_keys[0, 0, 0], &self.word_keys[1, 0, 0]
        self.s.above_rows, self.s.below_rows = &self.word_rows[0, 0, 0, 0], &self.word_rows[1, 0, 0, 0]
        self.s.row, self.s.scores = &self.row[0], &self.scores[0]

    cdef void look(self, const int32_t* codes, Py_ssize_t n) noexcept nogil:
        self.s.codes = codes
        self.s.n = n
        KERNELS.arcs_look(&self.model, &self.s)

    cdef bint best(self, const float* w, const int32_t* heads, const int32_t* labels, int32_t* found,
                   float* score) except -1 nogil:
        """The best tree of the current sentence, into `found` (n heads, n labels); with `heads` loss added.

        False where weights that overflow leave no tree.
        """
        cdef Py_ssize_t m, n = self.s.n
        KERNELS.arcs_fill(&self.model, w, &self.s, heads, labels)
        if not self.finder.best(n, self.s.scores, found, score):
            return False
        for m in range(1, n + 1):
            found[n + m - 1] = KERNELS.arcs_label(&self.model, w, &self.s, found[m - 1], m, heads, labels)
            if found[n + m - 1] >= self.model.n_labels:
                return False
        return True

    cdef int complete(self, const float* w, const int32_t* heads, const int32_t* labels,
                      int32_t* found) except -1 nogil:
        """The best tree that agrees with what is known, -1 being unknown; -2 where there is none.

        Where none of them is projective, one whose arcs cross, like a true tree that is known whole.
        """
        cdef Py_ssize_t m, h, n = self.s.n, c
        cdef float* scores = self.s.scores
        cdef float score, top
        KERNELS.arcs_fill(&self.model, w, &self.s, NULL, NULL)
        for m in range(1, n + 1):
            for h in range(n + 1):
                if h == m:
                    continue
                if heads[m - 1] >= 0 and h != heads[m - 1]:
                    scores[h * (n + 1) + m] = -INFINITY
                elif labels[m - 1] >= 0:
                    c = KERNELS.arcs_label(&self.model, w, &self.s, h, m, NULL, NULL)
                    top = self.row[c]
                    scores[h * (n + 1) + m] += self.row[labels[m - 1]] - top
        if not self.finder.best(n, scores, found, &score) and not self.best_crossing(n, scores, found, &score):
            return -2
        for m in range(1, n + 1):
            found[n + m - 1] = labels[m - 1]
            if labels[m - 1] < 0:
                found[n + m - 1] = KERNELS.arcs_label(&self.model, w, &self.s, found[m - 1], m, NULL, NULL)
                if found[n + m - 1] >= self.model.n_labels:
                    return -2
        return 0

    cdef bint best_crossing(self, Py_ssize_t n, const float* scores, int32_t* found, float* score) except -1 nogil:
        """`TreeFinder.best` for a projective decoder, among all trees."""
        if not self.finder.projective:
            return False
        if self.anyhow is None:
            with gil:
                self.anyhow = TreeFinder(False, self.finder.longest)
        return self.anyhow.best(n, scores, found, score)

    cdef int label_table(self, const float* w, float* out) except -1 nogil:
        """Scores of all labels of all arcs of the current sentence: [((h n) + m - 1) n_labels + label]."""
        cdef Py_ssize_t h, m, label, n = self.s.n, L = self.model.n_labels
        cdef int32_t c
        cdef float more
        KERNELS.arcs_fill(&self.model, w, &self.s, NULL, NULL)
        for h in range(n + 1):
            for m in range(1, n + 1):
                if h == m:
                    for label in range(L):
                        out[(h * n + m - 1) * L + label] = -INFINITY
                    continue
                c = KERNELS.arcs_label(&self.model, w, &self.s, h, m, NULL, NULL)
                more = self.s.scores[h * (n + 1) + m] - self.row[c]
                for label in range(L):
                    out[(h * n + m - 1) * L + label] = self.row[label] + more
            poll(n * L)
        return 0

    cdef double sums(self, const float* table, double* arc_scores, double* arcs, double* chances) except? -1.0 nogil:
        """log Z; the probabilities of arcs, and those of labelled ones laid out as `label_table`."""
        cdef Py_ssize_t h, m, label, n = self.s.n, L = self.model.n_labels
        cdef const float* row
        cdef double top, total, log_sum
        for h in range(n + 1):
            for m in range(1, n + 1):
                row = table + (h * n + m - 1) * L
                top = -INFINITY
                total = 0.0
                for label in range(L):
                    top = max(top, <double>row[label])
                if top > -INFINITY:
                    for label in range(L):
                        total += exp(row[label] - top)
                    top += log(total)
                arc_scores[h * (n + 1) + m] = top
            arc_scores[h * (n + 1)] = -INFINITY
            poll(8 * n * L)
        log_sum = self.finder.sum_up(n, arc_scores, arcs)
        if chances == NULL or not log_sum > -INFINITY:
            return log_sum
        for h in range(n + 1):
            for m in range(1, n + 1):
                row = table + (h * n + m - 1) * L
                for label in range(L):
                    chances[(h * n + m - 1) * L + label] = 0.0
                    if h != m and arc_scores[h * (n + 1) + m] > -INFINITY:
                        top = exp(row[label] - arc_scores[h * (n + 1) + m])
                        chances[(h * n + m - 1) * L + label] = arcs[h * (n + 1) + m] * top
            poll(8 * n * L)
        return log_sum

    cdef Py_ssize_t features(self, Py_ssize_t h, Py_ssize_t m) noexcept nogil:
        return KERNELS.arcs_features(&self.model, &self.s, h, m, &self.at[0], &self.rows[0], &self.numbers[0])

    cdef void spread(self, Py_ssize_t h, Py_ssize_t m, const number* amounts, double coef, real* out) noexcept nogil:
        """out += coef * sum_l amounts_l phi(h, m, label)"""
        cdef Py_ssize_t k, label, n, L = self.model.n_labels
        cdef double total = 0.0, value
        cdef bint is_there = False
        cdef real* row
        for label in range(L):
            total += amounts[label]
            is_there = is_there or amounts[label] != 0.0
        if not is_there:
            return
        n = self.features(h, m)
        for k in range(n):
            out[self.at[k]] += <real>(coef * total)
        for k in range(self.n_rows):
            row = out + (<int64_t>1 << self.model.arc_bits) + <int64_t>self.rows[k] * self.model.stride
            value = coef if k < self.n_hashed else coef * self.numbers[k - self.n_hashed]
            for label in range(L):
                row[label] += <real>(value * amounts[label])

    # ---- for Python --------------------------------------------------------------------------------

    def parse(self, const int32_t[:, ::1] codes, const int64_t[::1] offsets, const float[::1] w):
        """The best trees of sentences as ``(outputs (N, 2) int32, scores)``: heads and labels of all their words.

        Raises ValueError if no tree of a sentence has a finite score.
        """
        cdef Py_ssize_t i, m, n, first
        cdef int32_t[:, ::1] out = np.zeros((codes.shape[0], 2), dtype=np.int32)
        cdef float[::1] scores = np.zeros(offsets.shape[0] - 1, dtype=np.float32)
        cdef int32_t[::1] found = np.empty(2 * self.finder.longest, dtype=np.int32)
        with nogil:
            for i in range(offsets.shape[0] - 1):
                first, n = offsets[i], offsets[i + 1] - offsets[i]
                if n == 0:
                    continue
                self.look(&codes[first, 0], n)
                if not self.best(&w[0], NULL, NULL, &found[0], &scores[i]):
                    overflow(i)
                for m in range(n):
                    out[first + m, 0] = found[m]
                    out[first + m, 1] = found[n + m]
        return np.asarray(out), np.asarray(scores)

    def candidates(self, const int32_t[:, ::1] codes, const int64_t[::1] offsets, const float[::1] w, float gap,
                   outputs=None):
        """The best trees of sentences, and of each word the labelled arcs that score best: `TreeCandidates`' arrays.

        With the true `outputs`, their arcs are among them.
        """
        cdef Py_ssize_t i, first, n, m, N = codes.shape[0]
        cdef int32_t[:, ::1] trees = np.empty((2, N), dtype=np.int32)
        cdef int32_t[:, ::1] true = np.empty((2, 0), dtype=np.int32)
        cdef int32_t[::1] counts = np.zeros(N, dtype=np.int32)
        cdef int32_t[::1] found = np.empty(2 * self.finder.longest, dtype=np.int32)
        cdef bint told = outputs is not None
        cdef float score
        arcs = np.zeros((N, PAIRS_CHOICES), dtype=ARC)
        cdef pairs_choice* at = <pairs_choice*>array_data(arcs)
        if told:
            true = np.ascontiguousarray(outputs.T)
        with nogil:
            for i in range(offsets.shape[0] - 1):
                first, n = offsets[i], offsets[i + 1] - offsets[i]
                if n == 0:
                    continue
                self.look(&codes[first, 0], n)
                if not self.best(&w[0], NULL, NULL, &found[0], &score):
                    overflow(i)
                KERNELS.pairs_choose(&self.model, &w[0], &self.s, &true[0, first] if told else NULL,
                                     &true[1, first] if told else NULL, &found[0], gap, at + first * PAIRS_CHOICES,
                                     &counts[first])
                for m in range(n):
                    trees[0, first + m] = found[m]
                    trees[1, first + m] = found[n + m]
        return np.asarray(trees), arcs, np.asarray(counts)

    def table(self, const int32_t[:, ::1] codes, const float[::1] w):
        """Scores of labelled arcs: float32 array (n + 1, n, n_labels), by head, word and label; -inf: no arc."""
        cdef Py_ssize_t n = codes.shape[0]
        cdef float[:, :, ::1] out = np.empty((n + 1, n, self.model.n_labels), dtype=np.float32)
        with nogil:
            self.look(&codes[0, 0], n)
            self.label_table(&w[0], &out[0, 0, 0])
        return np.asarray(out)

    def chances(self, const float[:, :, ::1] table):
        """``(log_sum, probabilities)`` over all trees of a table of scores: of labelled arcs, laid out as the table."""
        cdef Py_ssize_t n = table.shape[1]
        cdef double[:, ::1] scores = np.empty((n + 1, n + 1)), arcs = np.empty((n + 1, n + 1))
        cdef double[:, :, ::1] out = np.zeros((n + 1, n, table.shape[2]))
        cdef double log_sum
        with nogil:
            self.s.n = n
            log_sum = self.sums(&table[0, 0, 0], &scores[0, 0], &arcs[0, 0], &out[0, 0, 0])
        return log_sum, np.asarray(out)

    def feature_sum(self, const int32_t[:, ::1] codes, const double[:, :, ::1] amounts):
        """The sum of the features of labelled arcs times `amounts`, laid out as `table`."""
        cdef Py_ssize_t h, m, n = codes.shape[0]
        cdef double[::1] out = np.zeros(self.oracle.n_features)
        self.look(&codes[0, 0], n)
        for h in range(n + 1):
            for m in range(1, n + 1):
                if h != m:
                    self.spread(h, m, &amounts[h, m - 1, 0], 1.0, &out[0])
            poll(finding(n))
        return np.asarray(out)


cdef class PairDecoder:
    """Trees under an oracle's templates of two arcs: their features, and the search; with memory for one thread."""

    cdef readonly object oracle
    cdef readonly Py_ssize_t longest
    cdef readonly bint projective
    cdef readonly Py_ssize_t most       # at most so many features of a tree, per word
    cdef arcs_model model
    cdef arcs_sentence s
    cdef pairs_search search
    cdef object kept                    # the owners of the addresses

    def __init__(self, oracle, Py_ssize_t longest):
        cdef pairs_search* p = &self.search
        arrays = oracle.templates.arrays
        cdef Memory memory = Memory()
        self.oracle, self.longest, self.projective = oracle, longest, oracle.projective
        self.kept = arrays, memory
        self.model.n_columns, self.model.n_labels = oracle.templates.n_codes, oracle.n_labels
        p.n, p.width = oracle.templates.size, arrays["sees"].size
        self.most = 3 * p.n + 1
        p.ptr = <const int32_t*>array_data(arrays["words_ptr"])
        p.seen = <const int32_t*>array_data(arrays["words_parts"])
        p.sees = <const int32_t*>array_data(arrays["sees"])
        p.label_keys = <uint32_t*>memory.take(PAIRS_ROLES * (oracle.n_labels + 1) * p.width, np.uint32)
        p.side_keys = <uint32_t*>memory.take(PAIRS_SIDES * p.width, np.uint32)
        p.none_keys = <uint32_t*>memory.take(PAIRS_ROLES * p.width, np.uint32)
        p.word_keys = <uint32_t*>memory.take(PAIRS_ROLES * (longest + 2) * p.width, np.uint32)
        self.s.columns = memory.int32s(self.model.n_columns * arcs_column_size(longest))
        p.bits = oracle.bits
        p.arc = <float*>memory.take(longest + 1, np.float32)
        p.around = <float*>memory.take(2 * longest + 2, np.float32)
        p.keys = <uint64_t*>memory.take(2 * longest + 2, np.uint64)
        p.memo = <pairs_memo*>memory.uint8s(PAIRS_MEMO * sizeof(pairs_memo))
        p.parts = <pairs_part*>memory.uint8s((2 * longest + 4) * sizeof(pairs_part))
        p.base = <uint32_t*>memory.take(p.width, np.uint32)
        p.others = memory.int32s(2 * longest)
        KERNELS.pairs_begin(&self.model, p)

    cdef void look(self, const int32_t* codes, Py_ssize_t n) noexcept nogil:
        self.s.codes = codes
        self.s.n = n
        KERNELS.pairs_look(&self.model, &self.s, &self.search)

    def parse(self, const int32_t[:, ::1] codes, const int64_t[::1] offsets, candidates, const float[::1] w):
        """The trees that the search finds, int32 (N, 2)."""
        cdef Py_ssize_t i, m, first, n
        cdef int32_t[:, ::1] trees = candidates.trees
        cdef const int32_t[::1] counts = candidates.counts
        cdef const pairs_choice* arcs = <const pairs_choice*>array_data(candidates.arcs)
        cdef int32_t[:, ::1] out = np.empty((codes.shape[0], 2), dtype=np.int32)
        cdef int32_t[::1] found = np.empty(2 * self.longest, dtype=np.int32)
        with nogil:
            for i in range(offsets.shape[0] - 1):
                first, n = offsets[i], offsets[i + 1] - offsets[i]
                if n == 0:
                    continue
                self.look(&codes[first, 0], n)
                for m in range(n):
                    found[m], found[n + m] = trees[0, first + m], trees[1, first + m]
                KERNELS.pairs_climb(&self.model, &w[0], n, &self.search, self.projective, arcs + first * PAIRS_CHOICES,
                                    &counts[first], NULL, NULL, &found[0])
                for m in range(n):
                    out[first + m, 0], out[first + m, 1] = found[m], found[n + m]
        return np.asarray(out)

    def features(self, const int32_t[:, ::1] codes, const int32_t[:, ::1] tree):
        """Feature indices of a tree, int32 (n, 2), some more than once; and how many pairs of arcs cross."""
        cdef Py_ssize_t n = codes.shape[0]
        cdef int32_t[::1] at = np.empty(n * self.most, dtype=np.int32)
        cdef int32_t[:, ::1] arcs = np.ascontiguousarray(np.asarray(tree).T)
        cdef int64_t count = 0, none = 0, crossings = 0
        self.look(&codes[0, 0], n)
        KERNELS.pairs_differences(&self.model, n, &self.search, &arcs[0, 0], &arcs[1, 0], NULL, 0, &at[0], &count,
                                  &at[0], &none, &crossings)
        return np.asarray(at)[:count], crossings


cdef class ArcsProblem(Problem):
    """Sentences with their true trees: arithmetic on cuts, whose dPsi is features of one tree less those of another.

    `differ` lists them: those `plus` of the true tree, those `minus` of the cut's, and those that are no counts, with
    their values, `numbers`.
    """

    cdef readonly object oracle
    cdef readonly object codes_array
    cdef readonly object offsets_array
    cdef readonly object outputs_array
    cdef readonly object told       # arrays: the outputs as they are known, and what else examples are told apart by
    cdef Py_ssize_t n_labels
    cdef Py_ssize_t at_hand         # the sentence that the decoder looks at, or -1
    cdef const int32_t[:, ::1] codes
    cdef const int64_t[::1] offsets
    cdef int32_t[::1] heads
    cdef int32_t[::1] labels
    cdef int32_t[::1] found
    cdef int32_t[::1] words
    cdef int32_t[::1] plus
    cdef int32_t[::1] minus
    cdef int64_t n_plus
    cdef int64_t n_minus
    cdef int32_t[::1] number_at
    cdef double[::1] numbers
    cdef int64_t n_numbers
    # Counts of features by index, in open addressing; `used` lists the slots that are taken.
    cdef int32_t[::1] slot_index
    cdef double[::1] slot_count
    cdef int32_t[::1] used
    cdef Py_ssize_t n_used
    cdef int shift

    def __init__(self, oracle, codes, offsets, outputs, *, rescaling="margin", penalty="linear"):
        super().__init__(len(offsets) - 1, oracle.n_features, rescaling=rescaling, penalty=penalty,
                         weight_dtype=np.float32, inference=oracle.inference)
        cdef Py_ssize_t longest = self.longest_of(offsets)
        self.oracle, self.codes_array, self.offsets_array, self.outputs_array = oracle, codes, offsets, outputs
        self.n_labels = oracle.n_labels
        self.at_hand, self.codes, self.offsets = -1, codes, offsets
        self.heads, self.labels = np.array(outputs[:, 0]), np.array(outputs[:, 1])
        self.found = np.empty(2 * longest, dtype=np.int32)
        self.words = np.empty(3 * longest, dtype=np.int32)

    def examples(self, Py_ssize_t start, Py_ssize_t stop):
        offsets = self.offsets_array[start:stop + 1]
        words = slice(int(offsets[0]), int(offsets[stop - start]))
        return (self.oracle, self.codes_array[words], offsets - offsets[0], self.outputs_array[words],
                self._rest(words))

    def fingerprint(self):
        return checksum([self.codes_array, self.offsets_array, *self.told, *self.oracle.identity])

    @staticmethod
    def longest_of(offsets):
        return int(np.diff(offsets).max(initial=1))

    cdef int make_lists(self, Py_ssize_t most) except -1:
        """Memory for `most` features of a tree."""
        bits = max(int(2 * most).bit_length() + 1, 8)
        self.plus, self.minus = np.empty(most, dtype=np.int32), np.empty(most, dtype=np.int32)
        self.shift = 32 - bits
        self.slot_index = np.full(1 << bits, -1, dtype=np.int32)
        self.slot_count = np.zeros(1 << bits)
        self.used = np.empty(2 * most + 2, dtype=np.int32)
        self.number_at, self.numbers = np.empty(2 * most + 2, dtype=np.int32), np.empty(2 * most + 2)
        return 0

    cdef void differ(self, Py_ssize_t i, const Cut* cut) noexcept nogil:
        pass

    cdef Py_ssize_t list_words(self, Py_ssize_t i) noexcept nogil:
        """The words of sentence i whose arcs in `found` are not the true ones, into `words`; their number."""
        cdef Py_ssize_t first = self.offsets[i], n = self.offsets[i + 1] - first, m, size = 0
        for m in range(n):
            if self.found[m] != self.heads[first + m] or self.found[n + m] != self.labels[first + m]:
                self.words[3 * size] = <int32_t>(m + 1)
                self.words[3 * size + 1] = self.found[m]
                self.words[3 * size + 2] = self.found[n + m]
                size += 1
        return size

    cdef int cut_found(self, Py_ssize_t i, const void* w, Cut* cut, double* violation) except -1 nogil:
        """The constraint of the tree in `found`; the zero one where the true tree is better.

        It may be: one that crosses where none may, or one that a search has missed.
        """
        cdef Py_ssize_t size = self.list_words(i)
        cdef double score
        if size == 0:
            return 0
        cut.n_words = 3 * size
        cut_terms(self.rescaling, self.penalty, <double>size, cut)
        self.c_dots(i, cut, 1, w, True, &score)
        violation[0] = cut.b - score
        if (0.0 if self.rescaling == RESCALE_NONE else cut.b) < score:
            cut.n_words = 0
            cut.b = violation[0] = 0.0
        return 0

    cdef void new_cut(self, Cut* cut) noexcept nogil:
        cut.words = &self.words[0]
        cut.alpha = cut.drift = cut.b = 0.0
        cut.idle = cut.n_words = 0
        cut.scale = 1.0

    cdef inline void add_count(self, int32_t index, double count) noexcept nogil:
        cdef Py_ssize_t slot = (<uint32_t>index * <uint32_t>0x9E3779B1u) >> self.shift
        cdef Py_ssize_t last = self.slot_index.shape[0] - 1
        while self.slot_index[slot] != index:
            if self.slot_index[slot] < 0:
                self.slot_index[slot] = index
                self.used[self.n_used] = <int32_t>slot
                self.n_used += 1
                break
            slot = (slot + 1) & last
        self.slot_count[slot] += count

    cdef inline double count_of(self, int32_t index) noexcept nogil:
        cdef Py_ssize_t slot = (<uint32_t>index * <uint32_t>0x9E3779B1u) >> self.shift
        cdef Py_ssize_t last = self.slot_index.shape[0] - 1
        while self.slot_index[slot] >= 0:
            if self.slot_index[slot] == index:
                return self.slot_count[slot]
            slot = (slot + 1) & last
        return 0.0

    cdef void clear(self) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(self.n_used):
            self.slot_index[self.used[k]] = -1
            self.slot_count[self.used[k]] = 0.0
        self.n_used = 0

    cdef void gather(self, Py_ssize_t i, const Cut* cut) noexcept nogil:
        """dPsi into the table of slots."""
        cdef Py_ssize_t k
        self.clear()
        self.differ(i, cut)
        for k in range(self.n_plus):
            self.add_count(self.plus[k], 1.0)
        for k in range(self.n_minus):
            self.add_count(self.minus[k], -1.0)
        for k in range(self.n_numbers):
            self.add_count(self.number_at[k], self.numbers[k])

    cdef int c_dots(self, Py_ssize_t i, const Cut* cuts, Py_ssize_t n, const void* w, bint fresh,
                    double* out) except -1 nogil:
        cdef const float* weights = <const float*>w
        cdef Py_ssize_t c, k
        for c in range(n):
            self.differ(i, &cuts[c])
            out[c] = sum_at(weights, &self.plus[0], self.n_plus) - sum_at(weights, &self.minus[0], self.n_minus)
            for k in range(self.n_numbers):
                out[c] += self.numbers[k] * weights[self.number_at[k]]
            out[c] *= cuts[c].scale
        return 0

    cdef void add_cut(self, Py_ssize_t i, const Cut* cut, double coef, real* w) noexcept nogil:
        cdef real amount = <real>(coef * cut.scale)
        cdef Py_ssize_t k
        self.differ(i, cut)
        for k in range(self.n_numbers):
            w[self.number_at[k]] += <real>(amount * self.numbers[k])
        for k in range(self.n_plus):
            w[self.plus[k]] += amount
        for k in range(self.n_minus):
            w[self.minus[k]] -= amount

    cdef int c_add(self, Py_ssize_t i, const Cut* cut, double coef, void* w) except -1 nogil:
        self.add_cut(i, cut, coef, <float*>w)
        return 0

    cdef int c_accumulate(self, Py_ssize_t i, const Cut* cut, double coef, double* w) except -1 nogil:
        self.add_cut(i, cut, coef, w)
        return 0

    cdef double inner_with(self, Py_ssize_t i, const Cut* cut) noexcept nogil:
        """<dPsi in the table of slots, dPsi of a cut>. Counts are whole."""
        cdef double total = 0.0
        cdef Py_ssize_t k
        self.differ(i, cut)
        for k in range(self.n_plus):
            total += self.count_of(self.plus[k])
        for k in range(self.n_minus):
            total -= self.count_of(self.minus[k])
        for k in range(self.n_numbers):
            total += self.count_of(self.number_at[k]) * self.numbers[k]
        return total

    cdef double c_inner(self, Py_ssize_t i, const Cut* a, const Cut* b) except? -1 nogil:
        self.gather(i, a)
        return a.scale * b.scale * self.inner_with(i, b)

    cdef int c_inners(self, Py_ssize_t i, const Cut* cuts, Py_ssize_t n, const Cut* cut, double* out) except -1 nogil:
        cdef Py_ssize_t k
        self.gather(i, cut)
        for k in range(n):
            out[k] = cuts[k].scale * cut.scale * self.inner_with(i, &cuts[k])
        return 0

    cdef bint c_valid(self, Py_ssize_t i, const Cut* cut) noexcept nogil:
        cdef Py_ssize_t first = self.offsets[i], n = self.offsets[i + 1] - first, k
        cdef int32_t m, h, label, before = 0
        if cut.n_words % 3 != 0 or cut.n_words > 3 * n:
            return False
        for k in range(cut.n_words // 3):
            m, h, label = cut.words[3 * k], cut.words[3 * k + 1], cut.words[3 * k + 2]
            if not (before < m <= n and 0 <= h <= n and h != m and 0 <= label < self.n_labels):
                return False
            if h == self.heads[first + m - 1] and label == self.labels[first + m - 1]:
                return False
            before = m
        return True

    def most_violated(self, Py_ssize_t i, w):
        """The output behind ``separate(i, w)``: int32 array (n, 2)."""
        cdef Cut cut
        cdef double violation
        cdef Py_ssize_t k
        cdef ndarray weights = self._check_weights(w)
        self.c_separate(i, array_data(weights), &cut, &violation)
        found = self.outputs_array[self.offsets_array[i]:self.offsets_array[i + 1]].copy()
        for k in range(cut.n_words // 3):
            found[cut.words[3 * k] - 1] = cut.words[3 * k + 1], cut.words[3 * k + 2]
        return found


cdef class DependencyProblem(ArcsProblem):
    """Sentences with their true trees.

    Parameters
    ----------
    oracle : DependencyOracle
    codes : int32 array (n_words, n_columns)
    offsets : int64 array (n_sentences + 1,)
    outputs : int32 array (n_words, 2)
        Heads and labels; with `known`, -1 where they have yet to be found.
    known : int32 array (n_words, 2), optional
        What is known of them, -1: unknown. None: all.
    """

    cdef object known_array
    cdef ArcDecoder decoder
    cdef int32_t[::1] known_heads
    cdef int32_t[::1] known_labels
    # Scratch of expectations.
    cdef float[::1] table
    cdef double[::1] arc_scores
    cdef double[::1] arcs
    cdef double[::1] chances
    cdef double[::1] dense
    cdef bint is_left               # whether something stands in `dense`, which Ctrl-C has left

    def __init__(self, oracle, codes, offsets, outputs, known=None, *, rescaling="margin", penalty="linear"):
        super().__init__(oracle, codes, offsets, outputs, rescaling=rescaling, penalty=penalty)
        cdef Py_ssize_t longest = self.longest_of(offsets)
        self.known_array, self.decoder = known, oracle.decoder(longest)
        told = outputs if known is None else known
        self.told = [told]
        self.known_heads, self.known_labels = np.array(told[:, 0]), np.array(told[:, 1])
        self.make_lists(longest * (self.decoder.at.shape[0] + self.decoder.rows.shape[0]))
        self.dense = np.empty(0)

    @property
    def offers(self):
        is_open = self.outputs_array.min(initial=0) < 0
        return offers_of(is_open, not is_open)

    cdef inline const int32_t* look(self, Py_ssize_t i) noexcept nogil:
        if self.at_hand != i:
            self.decoder.look(&self.codes[self.offsets[i], 0], self.offsets[i + 1] - self.offsets[i])
            self.at_hand = i
        return &self.heads[self.offsets[i]]

    # ---- the most violated tree --------------------------------------------------------------------

    cdef int c_separate(self, Py_ssize_t i, const void* w, Cut* cut, double* violation) except -1 nogil:
        cdef const int32_t* heads = self.look(i)
        cdef const int32_t* labels = &self.labels[self.offsets[i]]
        cdef bint plain = self.rescaling == RESCALE_NONE, found
        cdef float top
        self.new_cut(cut)
        violation[0] = 0.0
        self.need_tree(i)
        if self.rescaling == RESCALE_SLACK or (not plain and self.penalty != PENALTY_LINEAR):
            found = self.by_losses(i, <const float*>w)
        else:
            found = self.decoder.best(<const float*>w, NULL if plain else heads, NULL if plain else labels,
                                      &self.found[0], &top)
        if not found:
            violation[0] = NAN      # the caller reports it
            return 0
        return self.cut_found(i, w, cut, violation)

    cdef bint by_losses(self, Py_ssize_t i, const float* w) except -1 with gil:
        """Find the most violated tree where no sum over arcs tells it; whether there is one of a finite score."""
        if self.dense.shape[0] == 0:
            self.reserve()
        self.decoder.label_table(w, &self.table[0])
        return self.oracle.by_losses(self, i, self.table, self.found)

    cdef int need_tree(self, Py_ssize_t i) except -1 nogil:
        """ValueError for a sentence whose true tree has yet to be completed."""
        cdef Py_ssize_t m
        for m in range(self.offsets[i], self.offsets[i + 1]):
            if self.heads[m] < 0 or self.labels[m] < 0:
                with gil:
                    raise ValueError(f"the tree of sentence {self.first + i} is known in part: train with LatentSVM")
        return 0

    cdef void differ(self, Py_ssize_t i, const Cut* cut) noexcept nogil:
        cdef const int32_t* heads = self.look(i)
        cdef const int32_t* labels = &self.labels[self.offsets[i]]
        cdef const int32_t* word
        cdef Py_ssize_t k
        cdef bint same
        self.n_plus = self.n_minus = self.n_numbers = 0
        for k in range(cut.n_words // 3):
            word = cut.words + 3 * k
            same = word[1] == heads[word[0] - 1]
            self.n_plus = self.list_arc(heads[word[0] - 1], word[0], labels[word[0] - 1], same, 1.0,
                                        &self.plus[0], self.n_plus)
            self.n_minus = self.list_arc(word[1], word[0], word[2], same, -1.0, &self.minus[0], self.n_minus)

    cdef int64_t list_arc(self, Py_ssize_t h, Py_ssize_t m, Py_ssize_t label, bint labels_only, double sign,
                          int32_t* out, int64_t end) noexcept nogil:
        """List an arc's features after others in `out`, and its numbers times `sign`; the end of the list."""
        cdef Py_ssize_t k, n = self.decoder.features(h, m)
        cdef int64_t base = (<int64_t>1 << self.decoder.model.arc_bits) + label
        if not labels_only:
            for k in range(n):
                out[end] = self.decoder.at[k]
                end += 1
        for k in range(self.decoder.n_hashed):
            out[end] = <int32_t>(base + <int64_t>self.decoder.rows[k] * self.decoder.model.stride)
            end += 1
        for k in range(self.decoder.n_hashed, self.decoder.n_rows):
            self.number_at[self.n_numbers] = <int32_t>(base + self.decoder.rows[k] * self.decoder.model.stride)
            self.numbers[self.n_numbers] = sign * self.decoder.numbers[k - self.decoder.n_hashed]
            self.n_numbers += 1
        return end

    cdef double c_cost(self, Py_ssize_t i) noexcept nogil:
        cdef double n = <double>(self.offsets[i + 1] - self.offsets[i])
        return n * n * (self.decoder.model.width + 0.1 * n)

    # ---- completions -------------------------------------------------------------------------------

    cdef int c_complete(self, Py_ssize_t i, const void* w, Target* target) except -1 nogil:
        cdef Py_ssize_t first = self.offsets[i], m, n
        cdef int status
        self.look(i)
        n = self.decoder.s.n
        status = self.decoder.complete(<const float*>w, &self.known_heads[first], &self.known_labels[first],
                                       &self.found[0])
        if status == -2:
            with gil:
                raise ValueError(f"sentence {self.first + i}: no tree agrees with what is known of its own")
        for m in range(n):
            self.words[2 * m] = self.found[m]
            self.words[2 * m + 1] = self.found[n + m]
        target.words = &self.words[0]
        target.n_words = 2 * n
        return 0

    cdef bint c_retarget(self, Py_ssize_t i, const Target* target, bint take) except -1 nogil:
        cdef Py_ssize_t first = self.offsets[i], m
        cdef bint differs = False
        for m in range(target.n_words // 2):
            differs |= self.heads[first + m] != target.words[2 * m] or self.labels[first + m] != target.words[2 * m + 1]
            if take:
                self.heads[first + m], self.labels[first + m] = target.words[2 * m], target.words[2 * m + 1]
        return differs

    @property
    def targets(self):
        return 2 * self.offsets_array, np.column_stack([self.heads, self.labels]).ravel()

    def with_targets(self, targets):
        outputs = np.ascontiguousarray(targets[1], dtype=np.int32).reshape(-1, 2)
        return self.rebuilt(self.oracle, self.codes_array, self.offsets_array, outputs, self.known_array)

    # ---- expectations: moments are the probabilities of labelled arcs less the true ones -------------
    # A true tree with crossing arcs is none of those that a projective parser sums over: it is one more of them.

    cdef int reserve(self) except -1:
        cdef Py_ssize_t n = self.decoder.finder.longest, L = self.decoder.model.n_labels
        self.table = np.empty((n + 1) * n * L, dtype=np.float32)
        self.arc_scores, self.arcs = np.empty((n + 1) ** 2), np.empty((n + 1) ** 2)
        self.chances = np.empty((n + 1) * n * L)
        self.dense = np.zeros(self.n_features)
        return 0

    cdef Py_ssize_t c_moments(self, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t n = self.offsets[i + 1] - self.offsets[i]
        return (n + 1) * n * self.decoder.model.n_labels

    cdef int c_expect(self, Py_ssize_t i, const void* w, float* m, double* loss, double* entropy) except -1 nogil:
        cdef const int32_t* heads = self.look(i)
        cdef const int32_t* labels = &self.labels[self.offsets[i]]
        cdef Py_ssize_t h, k, n = self.decoder.s.n, L = self.decoder.model.n_labels
        cdef double log_sum, score = 0.0, mean = 0.0, share = 1.0
        self.need_tree(i)
        if self.dense.shape[0] == 0:
            with gil:
                self.reserve()
        self.decoder.label_table(<const float*>w, &self.table[0])
        log_sum = self.decoder.sums(&self.table[0], &self.arc_scores[0], &self.arcs[0],
                                    NULL if m == NULL else &self.chances[0])
        for k in range(n):
            score += self.table[(heads[k] * n + k) * L + labels[k]]
        if self.decoder.finder.projective and KERNELS.pairs_crossing(n, heads):
            share = 1.0 / (1.0 + exp(score - log_sum))
            log_sum = max(log_sum, score) + log1p(exp(-abs(log_sum - score)))
            mean = (1.0 - share) * score
        loss[0] = max(log_sum - score, 0.0) if isfinite(log_sum) and isfinite(score) else NAN
        if m == NULL or loss[0] != loss[0]:
            return 0
        for h in range(n + 1):
            for k in range(h * n * L, (h + 1) * n * L):
                m[k] = <float>(share * self.chances[k])
                if self.chances[k] > 0.0:
                    mean += share * self.chances[k] * self.table[k]
            poll(2 * n * L)
        for k in range(n):
            m[(heads[k] * n + k) * L + labels[k]] -= share
        entropy[0] = max(log_sum - mean, 0.0)
        return 0

    cdef double c_moments_dot(self, Py_ssize_t i, const float* m, const void* w) except? -1 nogil:
        cdef Py_ssize_t h, k, each = (self.offsets[i + 1] - self.offsets[i]) * self.decoder.model.n_labels
        cdef double total = 0.0
        for h in range(self.offsets[i + 1] - self.offsets[i] + 1):
            for k in range(h * each, (h + 1) * each):       # the table that c_expect has filled
                if m[k] != 0.0:
                    total += <double>m[k] * self.table[k]
            poll(2 * each)
        return total

    cdef int spread(self, Py_ssize_t i, const float* m, double coef, real* out) except -1 nogil:
        """out += coef * sum of the features times the moments; Ctrl-C may leave a part of it."""
        cdef Py_ssize_t h, k, n, L = self.decoder.model.n_labels
        self.look(i)
        n = self.decoder.s.n
        for h in range(n + 1):
            for k in range(n):
                if h != k + 1:
                    self.decoder.spread(h, k + 1, m + (h * n + k) * L, coef, out)
            poll(finding(n))
        return 0

    cdef double c_moments_square(self, Py_ssize_t i, const float* m) except? -1 nogil:
        """By the sums of rows and numbers that the moments touch, which are set to 0 again."""
        cdef Py_ssize_t h, k, j, label, n, count, L = self.decoder.model.n_labels
        cdef double total = 0.0
        cdef double* row
        if self.dense.shape[0] == 0:
            with gil:
                self.reserve()
        if self.is_left:
            memset(&self.dense[0], 0, self.dense.shape[0] * sizeof(double))
        self.is_left = True
        self.spread(i, m, 1.0, &self.dense[0])
        n = self.decoder.s.n
        for h in range(n + 1):
            for k in range(n):
                if h == k + 1:
                    continue
                count = self.decoder.features(h, k + 1)
                for j in range(count):
                    total += self.dense[self.decoder.at[j]] ** 2
                    self.dense[self.decoder.at[j]] = 0.0
                for j in range(self.decoder.n_rows):
                    row = &self.dense[(<int64_t>1 << self.decoder.model.arc_bits)
                                      + <int64_t>self.decoder.rows[j] * self.decoder.model.stride]
                    for label in range(L):
                        total += row[label] * row[label]
                        row[label] = 0.0
            poll(finding(n))
        self.is_left = False
        return total

    cdef int c_moments_add(self, Py_ssize_t i, const float* m, double coef, bint again, void* w) except -1 nogil:
        self.spread(i, m, coef, <float*>w)
        return 0

    cdef int c_moments_accumulate(self, Py_ssize_t i, const float* m, double coef, double* w) except -1 nogil:
        self.spread(i, m, coef, w)
        return 0

    # ---- what it is --------------------------------------------------------------------------------

    def structure_fingerprint(self):
        return checksum([np.array([self.oracle.projective])])

    def _rest(self, words):
        return None if self.known_array is None else self.known_array[words]


cdef class PairProblem(ArcsProblem):
    """Sentences with their true trees, candidates of their arcs, and the trees that the search begins with.

    Parameters
    ----------
    oracle : PairOracle
    codes : int32 array (n_words, n_columns)
    offsets : int64 array (n_sentences + 1,)
    outputs : int32 array (n_words, 2)
    candidates : TreeCandidates
        The true arcs are among them.
    """

    cdef readonly object candidates
    cdef PairDecoder decoder
    cdef const int32_t[:, ::1] trees
    cdef const int32_t[::1] counts
    cdef const pairs_choice* arcs

    def __init__(self, oracle, codes, offsets, outputs, candidates, *, rescaling="margin", penalty="linear"):
        super().__init__(oracle, codes, offsets, outputs, rescaling=rescaling, penalty=penalty)
        cdef Py_ssize_t longest = self.longest_of(offsets)
        self.candidates, self.decoder = candidates, oracle.decoder(longest)
        self.told = [outputs, candidates.trees, candidates.arcs.view(np.int32), candidates.counts]
        self.trees, self.counts = candidates.trees, candidates.counts
        self.arcs = <const pairs_choice*>array_data(candidates.arcs)
        self.make_lists(longest * self.decoder.most)
        self.n_numbers = 2
        self.number_at[0], self.number_at[1] = <int32_t>(self.n_features - 2), <int32_t>(self.n_features - 1)

    cdef inline Py_ssize_t look(self, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t first = self.offsets[i]
        if self.at_hand != i:
            self.decoder.look(&self.codes[first, 0], self.offsets[i + 1] - first)
            self.at_hand = i
        return first

    cdef int c_separate(self, Py_ssize_t i, const void* w, Cut* cut, double* violation) except -1 nogil:
        cdef Py_ssize_t first = self.look(i), n = self.offsets[i + 1] - first, m
        cdef bint plain = self.rescaling == RESCALE_NONE
        self.new_cut(cut)
        violation[0] = 0.0
        for m in range(n):
            self.found[m], self.found[n + m] = self.trees[0, first + m], self.trees[1, first + m]
        KERNELS.pairs_climb(&self.decoder.model, <const float*>w, n, &self.decoder.search, self.decoder.projective,
                            self.arcs + first * PAIRS_CHOICES, &self.counts[first],
                            NULL if plain else &self.heads[first], NULL if plain else &self.labels[first],
                            &self.found[0])
        return self.cut_found(i, w, cut, violation)

    cdef float score_of(self, Py_ssize_t word, int32_t head, int32_t label) noexcept nogil:
        cdef const pairs_choice* arc = self.arcs + word * PAIRS_CHOICES
        cdef Py_ssize_t k
        for k in range(self.counts[word]):
            if arc[k].head == head and arc[k].label == label:
                return arc[k].score
        return 0.0

    cdef void differ(self, Py_ssize_t i, const Cut* cut) noexcept nogil:
        cdef Py_ssize_t first = self.look(i), k, m
        cdef const int32_t* word
        cdef int64_t crossings
        self.numbers[0] = 0.0
        self.n_plus = self.n_minus = 0
        for k in range(cut.n_words // 3):
            word = cut.words + 3 * k
            m = first + word[0] - 1
            self.numbers[0] += self.score_of(m, self.heads[m], self.labels[m])
            self.numbers[0] -= self.score_of(m, word[1], word[2])
        KERNELS.pairs_differences(&self.decoder.model, self.offsets[i + 1] - first, &self.decoder.search,
                                  &self.heads[first], &self.labels[first], cut.words, cut.n_words // 3, &self.plus[0],
                                  &self.n_plus, &self.minus[0], &self.n_minus, &crossings)
        self.numbers[1] = <double>crossings

    cdef double c_cost(self, Py_ssize_t i) noexcept nogil:
        return 1000.0 * <double>(self.offsets[i + 1] - self.offsets[i])

    def _rest(self, words):
        return self.candidates.some(words)
