"""Alignments of two strings: exact inference by dynamic programmes, and the margin problems over alignments.

The dynamic programmes are in align.h. Scores are computed from weights at the start of each call: a table of all
pairs of symbols, and two columns for the first and the further letters of a gap; with contexts, a table of all pairs
of letters of the two strings, and what a gap costs at each place of the other one. A cut is the sparse difference of
two histograms of operations, in the default encoding of `Problem`.
"""

from libc.math cimport INFINITY, exp, fabs, sqrt, trunc
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t
from libc.string cimport memcpy, memset

import numpy as np

from structsvm._problem cimport (
    PENALTY_HARD, RESCALE_MARGIN, RESCALE_NONE, Cut, Problem, Target, cut_terms,
)
from structsvm._arrays cimport array_data, ndarray
from structsvm.execution._processor cimport kernel_set
from structsvm.execution._stop cimport poll

from structsvm.adapter import offers_of
from structsvm.arrays import checksum
from structsvm.structures.alignments import FREE
from structsvm.protocol import UnsupportedFormulation

cdef extern from "align_sums.h" nogil:
    ctypedef struct align_sum:
        double log, mean
    ctypedef struct align_sums:
        pass

cdef extern from "align_posteriors.h" nogil:
    ctypedef struct align_mass:
        pass
    ctypedef struct align_pair_mass:
        pass

cdef extern from "align_striped.h" nogil:
    ctypedef struct striped_task:
        int64_t mode, m, open, extend, least
        int16_t* profile
        int16_t* columns

cdef extern from "align.h" nogil:
    enum:
        ALIGN_GLOBAL
        ALIGN_LOCAL
        ALIGN_MARGIN
        ALIGN_PAIR
        ALIGN_SKIP_X
        ALIGN_SKIP_Z
        ALIGN_START
    ctypedef struct align_end:
        double score
        int64_t i, j, state, at
    ctypedef struct align_task:
        int64_t m, n, begin, end, low, high, layers, block, width
        const double* pair
        const int32_t* x
        const int32_t* z
        const double* open_x
        const double* extend_x
        const double* open_z
        const double* extend_z
        const double* open_at_x
        const double* extend_at_x
        const double* open_at_z
        const double* extend_at_z
        int64_t same_gaps
        const int32_t* core_x
        const int32_t* core_z
        int64_t n_core, window
        double bonus
        align_end barred
        double* rows
        double* kept
        double* triangle
    ctypedef struct align_kernels:
        void (*profile)(striped_task* s, const int32_t* x, const double* pair, int64_t side,
                        int64_t off) noexcept nogil
        int (*striped)(const striped_task* s, const int32_t* z, int64_t n, double* score) except -1 nogil
        int (*log_sum)(const align_task* s, double beta, align_sums* rows, align_sum* found) except -1 nogil
        int (*expected)(const align_task* s, double least, align_mass* rows, align_pair_mass* kept, align_end* end,
                        uint8_t* path, int64_t* at) except -1 nogil
        int (*forward)(const align_task* s, align_end* ends) except -1 nogil
        int (*walk)(const align_task* s, align_end* end, int64_t layer, const uint8_t* script, uint8_t* path,
                    int64_t* at, align_end* detour) except -1 nogil
        int (*table)(const align_task* s, double* table) except -1 nogil
        int (*is_hit)(const align_task* s, int64_t i, int64_t j) noexcept nogil
    const align_kernels* align_kernels_of(int set, int (*poll)(int64_t work) except -1 nogil)

cdef const align_kernels* KERNELS = align_kernels_of(kernel_set(), poll)

cdef uint8_t IS_FREE = FREE

cdef str DISAGREES = "no alignment in the band agrees with what is known; widen it"

# Most working memory of one pair; beyond this it is refused.
MAX_BYTES = 2 << 30

# Pairs of letters less probable than this are left out where the expected number of right pairs is maximised.
cdef double LEAST_PROBABLE = 0.01

# Logarithms of factors of sums of alignments (align_posteriors.h) lie within this bound.
cdef double MOST_FACTOR = 340.0

# Scores in 16 bits (align_striped.h): values stay within these bounds; the cells of a column are filled up to whole
# vectors, of at most so many lanes; a profile has a column per symbol.
cdef int64_t MOST_SCORE = 32000, MOST_LANES = 16, MOST_PROFILED = 128

# Diagonals in a block, at least: shorter ones cost more in copies than they save.
cdef int64_t SHORTEST_BLOCK = 64


cdef class Aligner:
    """The exact aligner of pairs out of a set of strings.

    Parameters
    ----------
    structure : SmithWatermanOracle
    strings : Strings
    pairs : ndarray of shape (n, 2), int64
        Those that are going to be aligned: the working memory is made for the largest.
    layers : int or ndarray of shape (n,)
        Counts of hits that are told apart for each pair (see align.h); 1: none.
    traceback : bool
        Whether alignments are wanted, or only scores.
    """

    cdef readonly object structure, strings
    cdef readonly Py_ssize_t n_symbols, n_features
    cdef Py_ssize_t side                # side of the table of pairs: the last letter pairs with none
    cdef int64_t mode
    cdef const int32_t[::1] symbols
    cdef const int64_t[::1] offsets
    cdef const int32_t[:, ::1] pair_features
    cdef const int32_t[:, ::1] open_features
    cdef const int32_t[:, ::1] extend_features
    cdef int64_t[::1] band              # low, high; empty: all cells
    cdef align_task task
    cdef striped_task striped
    cdef int64_t least_pair, most_pair  # range of the scores of pairs and 0
    cdef readonly Py_ssize_t n_striped  # pairs that were scored in 16 bits
    cdef bint traceback
    cdef double[::1] pair
    cdef double[:, ::1] gaps            # first letter, further letters, by symbol
    cdef Py_ssize_t n_contexts
    cdef const int32_t[:, ::1] contexts         # their values at all letters of the strings
    cdef const int32_t[:, ::1] context_pairs    # features of pairs of values
    cdef const int32_t[:, ::1] context_gaps     # features of values beside a gap: first letter, further letters
    cdef double[:, ::1] of_pairs        # their weights
    cdef double[:, ::1] of_gaps
    cdef double[::1] cells              # scores of all pairs of letters; a row and a column more pair with none
    cdef double[:, ::1] sites           # first and further letters at the places of x, then at those of z backwards
    cdef double[:, ::1] costs           # the same of each letter of x, then of z backwards
    cdef int32_t[:, ::1] letters        # x, and z backwards
    cdef double[::1] factors            # exp(beta score) of all pairs of symbols
    cdef bint has_factors               # whether all of these are in bounds
    cdef double[::1] masses             # sums over alignments: two rows of cells, and all cells
    cdef double[::1] memory
    cdef uint8_t[::1] path              # the operations of an alignment, at its end
    cdef int64_t[:, ::1] parts          # between known pairs: the cell before and the cell at the end of each
    cdef int64_t n_parts
    cdef align_end[::1] ends

    def __init__(self, structure, strings, pairs, layers=1, traceback=True):
        structure.check_strings(strings)
        self.structure, self.strings = structure, strings
        self.symbols, self.offsets = strings.symbols, strings.offsets
        self.n_symbols, self.n_features = structure.n_symbols, structure.n_features
        self.pair_features = structure.pair_features
        self.open_features, self.extend_features = structure.open_features, structure.extend_features
        self.band = np.array(structure.band or (), dtype=np.int64)
        self.mode = ("global", "semi_global", "local").index(structure.mode)
        self.task.layers = 1
        self.task.barred.state = -1
        self.task.window = structure.window
        self.task.same_gaps = self.open_features.shape[1] == 1
        self.contexts = structure.context_values(strings)
        self.n_contexts = self.contexts.shape[0]
        self.context_pairs, self.context_gaps = structure.context_pairs, structure.context_gaps
        self.of_pairs, self.of_gaps = np.zeros(structure.context_pairs.shape), np.zeros(structure.context_gaps.shape)
        self.side = self.n_symbols + 1
        self.pair = np.full(self.side**2, -np.inf)
        self.factors, self.masses = np.empty(0), np.empty(0)
        self.gaps = np.empty((2, self.n_symbols))
        self.task.pair = &self.pair[0]
        pairs = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
        if len(pairs) and not 0 <= pairs.min() <= pairs.max() < len(strings):
            raise IndexError(f"pairs of strings lie in {pairs.min()}..{pairs.max()}, expected 0..{len(strings) - 1}")
        lengths = np.diff(strings.offsets)
        layers = np.broadcast_to(layers, len(pairs))
        # Each once; np.unique of rows compares structures, and turns a Ctrl-C in the middle of that into a TypeError.
        sizes = np.column_stack([lengths[pairs], layers])
        sizes = sizes[np.lexsort(sizes.T)]
        is_new = np.ones(len(sizes), dtype=bool)
        is_new[1:] = (sizes[1:] != sizes[:-1]).any(axis=1)
        self.reserve(sizes[is_new], traceback)

    cdef reserve(self, sizes, traceback):
        """Memory for pairs of these lengths and layers, allocated once."""
        cdef int64_t longest = max(int(sizes[:, :2].max(initial=1)), 1), most = 1, m, n, layers, size, cells = 1
        for m, n, layers in sizes.tolist():
            self.task.layers = layers
            size = self.layout(m, n, traceback)
            if self.n_contexts > 0:
                cells = max(cells, (m + 1) * (n + 1))
                if cells * 8 > MAX_BYTES:
                    raise UnsupportedFormulation(
                        f"contexts of strings of {m} and {n} letters take {cells * 8} bytes (more than {MAX_BYTES}); "
                        "align them without contexts")
            if size * 8 > MAX_BYTES:
                raise UnsupportedFormulation(
                    f"aligning strings of {m} and {n} letters takes {size * 8} bytes (more than {MAX_BYTES})"
                    + (f" where {layers} counts of reference pairs are told apart, as slack rescaling and quadratic "
                       "penalties do; use rescaling='margin' with penalty='linear'" if layers > 1 else "; give a band"))
            most = max(most, size)
        self.task.layers = 1
        self.task.kept = NULL
        self.traceback = traceback
        self.memory = np.empty(most)
        self.letters = np.zeros((2, longest + ALIGN_MARGIN), dtype=np.int32)
        self.costs = np.zeros((4, longest + ALIGN_MARGIN))
        self.cells = np.empty(cells)
        self.sites = np.zeros((4, longest + 1 + ALIGN_MARGIN if self.n_contexts > 0 else 0))
        self.path = np.empty(2 * longest, dtype=np.uint8)
        self.parts = np.empty((longest + 1, 4), dtype=np.int64)
        self.ends = np.empty(int(sizes[:, 2].max(initial=1)),
                             dtype=[("score", "f8")] + [(k, "i8") for k in ("i", "j", "state", "at")])

    cdef int64_t layout(self, int64_t m, int64_t n, bint traceback) noexcept nogil:
        """Set lengths, band and blocks of the task; returns the doubles that it needs."""
        cdef align_task* s = &self.task
        s.low, s.high = -m, n
        if self.band.shape[0] > 0:
            s.low = max(s.low, min(<int64_t>0, n - m) + self.band[0])
            s.high = min(s.high, max(<int64_t>0, n - m) + self.band[1])
        return self.blocks(m, n, traceback)

    cdef int64_t blocks(self, int64_t m, int64_t n, bint traceback) noexcept nogil:
        """Set lengths and blocks of the task in its band; returns the doubles that it and all parts of it need."""
        cdef align_task* s = &self.task
        cdef int64_t count = m + n + 1
        s.m, s.n = m, n
        s.low, s.high = max(s.low, -m), min(s.high, n)
        s.block = max(SHORTEST_BLOCK, <int64_t>(2.0 * sqrt(<double>count)))
        s.width = min(min(m, n), (s.high - s.low) // 2 + 1) + 6
        # A part, with shorter blocks, may have one more of them than the whole.
        cdef int64_t rows = 12 * s.layers * (m + ALIGN_MARGIN), kept = 5 * s.layers * s.width * (count // s.block + 1)
        return rows + (kept + self.triangle() if traceback else 0)

    cdef int64_t triangle(self) noexcept nogil:
        return 4 * self.task.layers * (self.task.block + 2) * (self.task.block + ALIGN_MARGIN)

    cdef void load(self, Py_ssize_t x, Py_ssize_t z) noexcept nogil:
        """Point the task at the strings of these numbers, without reference pairs."""
        cdef align_task* s = &self.task
        cdef const int32_t* a = &self.symbols[0] + self.offsets[x]
        cdef const int32_t* b = &self.symbols[0] + self.offsets[z]
        cdef int64_t m = self.offsets[x + 1] - self.offsets[x], n = self.offsets[z + 1] - self.offsets[z], i
        cdef double* memory = &self.memory[0]
        self.layout(m, n, self.traceback)
        for i in range(1, m + 1):
            self.letters[0, i] = a[i - 1] * <int32_t>self.side
            self.costs[0, i] = self.gaps[0, a[i - 1]]
            self.costs[1, i] = self.gaps[1, a[i - 1]]
        for i in range(n):
            self.letters[1, i] = b[n - 1 - i]
            self.costs[2, i] = self.gaps[0, b[n - 1 - i]]
            self.costs[3, i] = self.gaps[1, b[n - 1 - i]]
        if self.n_contexts > 0:
            self.load_contexts(self.offsets[x], m, self.offsets[z], n)
        else:
            s.pair = &self.pair[0]
        s.x, s.z = &self.letters[0, 0], &self.letters[1, 0]
        s.open_x, s.extend_x, s.open_z, s.extend_z = (
            &self.costs[0, 0], &self.costs[1, 0], &self.costs[2, 0], &self.costs[3, 0])
        s.begin = s.end = self.mode
        s.n_core = 0
        s.bonus = 0.0
        s.barred.state = -1
        s.rows = memory
        if self.traceback:
            s.triangle = memory + 12 * s.layers * (m + ALIGN_MARGIN)
            s.kept = s.triangle + self.triangle()

    cdef void load_contexts(self, int64_t x, int64_t m, int64_t z, int64_t n) noexcept nogil:
        """Score all pairs of letters, and gaps at all places, of the strings that begin at x and z; letters become rows
        and columns of that table."""
        cdef align_task* s = &self.task
        cdef int64_t i, j, t
        cdef double* row = &self.cells[0]
        cdef const double* scores
        cdef const double* values
        cdef const int32_t* others
        for i in range(m):
            scores = &self.pair[0] + self.symbols[x + i] * self.side
            for j in range(n):
                row[j] = scores[self.symbols[z + j]]
            for t in range(self.n_contexts):
                values, others = &self.of_pairs[self.contexts[t, x + i], 0], &self.contexts[t, z]
                for j in range(n):
                    row[j] += values[others[j]]
            row[n] = -INFINITY
            self.letters[0, i + 1] = <int32_t>(i * (n + 1))
            row += n + 1
        for j in range(n + 1):
            row[j] = -INFINITY
        for j in range(n):
            self.letters[1, n - 1 - j] = <int32_t>j
        for t in range(2):
            for i in range(m + 1):
                self.sites[t, i] = self.beside(t, x, i, m)
            for j in range(n + 1):
                self.sites[2 + t, n - j] = self.beside(t, z, j, n)
        s.pair = &self.cells[0]
        s.open_at_x, s.extend_at_x, s.open_at_z, s.extend_at_z = (
            &self.sites[0, 0], &self.sites[1, 0], &self.sites[2, 0], &self.sites[3, 0])

    cdef double beside(self, int64_t further, int64_t first, int64_t place, int64_t length) noexcept nogil:
        """Score of the first or a further letter of a gap by the contexts beside it: behind `place` letters of the
        string of that length that begins at `first`."""
        cdef double total = 0.0
        cdef int64_t t, k
        for t in range(self.n_contexts):
            for k in range(max(place - 1, <int64_t>0), min(place + 1, length)):
                total += self.of_gaps[further, self.contexts[t, first + k]]
        return total

    cdef double score_of(self, int64_t i, int64_t j, int64_t n) noexcept nogil:
        """The score of letter i of x with letter j of z, which has n, from 0: of the strings that are loaded."""
        return self.task.pair[self.letters[0, i + 1] + self.letters[1, n - 1 - j]]

    cdef void prepare(self, const double* w) noexcept nogil:
        """Scores of all operations from the weights."""
        cdef Py_ssize_t a, b, e
        cdef double total
        for a in range(self.n_symbols):
            for b in range(self.n_symbols):
                total = 0.0
                for e in range(self.pair_features.shape[1]):
                    total += w[self.pair_features[a * self.n_symbols + b, e]]
                self.pair[a * self.side + b] = total
        for a in range(self.n_symbols):
            self.gaps[0, a] = self.gaps[1, a] = 0.0
            for e in range(self.open_features.shape[1]):
                self.gaps[0, a] += w[self.open_features[a, e]]
                self.gaps[1, a] += w[self.extend_features[a, e]]
        for a in range(self.of_pairs.shape[0]):
            for b in range(self.of_pairs.shape[1]):
                self.of_pairs[a, b] = w[self.context_pairs[a, b]]
            for e in range(2):
                self.of_gaps[e, a] = w[self.context_gaps[e, a]]

    cdef double forward(self) except? -1.0 nogil:
        """The best score of all; `ends` holds that of each layer and where it is."""
        cdef Py_ssize_t h
        cdef double best = -INFINITY
        KERNELS.forward(&self.task, &self.ends[0])
        for h in range(self.task.layers):
            best = max(best, self.ends[h].score)
        return best

    cdef int64_t walk(self, align_end* end, int64_t layer, int64_t at) except -1 nogil:
        """Fill the path before position `at` by the way back from an end, which becomes the start."""
        KERNELS.walk(&self.task, end, layer, NULL, &self.path[0], &at, NULL)
        return at

    cdef reserve_masses(self, int64_t m, int64_t n):
        """Memory for the sums over all alignments of strings of m and n letters, unless that is too much."""
        cdef int64_t size = self.n_masses(m, n)
        if size * 8 <= MAX_BYTES and size > self.masses.shape[0]:
            self.masses = np.empty(size)
        if self.factors.shape[0] == 0:
            self.factors = np.zeros(self.side**2)

    cdef int64_t n_masses(self, int64_t m, int64_t n) noexcept nogil:
        return (2 * (n + 1) * <int64_t>sizeof(align_mass) + (m + 1) * (n + 1) * <int64_t>sizeof(align_pair_mass)) // 8

    cdef void prepare_factors(self, double beta) noexcept nogil:
        """Factors of pairs of symbols, after `prepare`."""
        cdef Py_ssize_t a, k
        cdef double score
        self.has_factors = True
        for k in range(self.factors.shape[0]):
            score = beta * self.pair[k]
            if fabs(score) > MOST_FACTOR and score != -INFINITY:
                self.has_factors = False
            self.factors[k] = exp(score)
        for k in range(2):
            for a in range(self.n_symbols):
                if fabs(beta * self.gaps[k, a]) > 0.5 * MOST_FACTOR:
                    self.has_factors = False

    cdef bint turn_to_factors(self, double beta) noexcept nogil:
        """Turn the scores of the strings that are loaded into factors; False, with scores as before or of no more use,
        if one is out of bounds."""
        cdef align_task* s = &self.task
        cdef int64_t k, e, cells = (s.m + 1) * (s.n + 1)
        cdef double score
        if not self.has_factors or self.n_masses(s.m, s.n) > self.masses.shape[0]:
            return False
        if self.n_contexts == 0:
            s.pair = &self.factors[0]
        else:
            for k in range(cells):
                score = beta * self.cells[k]
                if fabs(score) > MOST_FACTOR and score != -INFINITY:
                    return False
                self.cells[k] = exp(score)
            for e in range(4):
                for k in range((s.m if e < 2 else s.n) + 1):
                    score = beta * self.sites[e, k]
                    if fabs(score) > 0.5 * MOST_FACTOR:
                        return False
                    self.sites[e, k] = exp(score)
        for e in range(2):
            for k in range(1, s.m + 1):
                self.costs[e, k] = exp(beta * self.costs[e, k])
            for k in range(s.n):
                self.costs[2 + e, k] = exp(beta * self.costs[2 + e, k])
        return True

    cdef int64_t decode(self, Py_ssize_t x, Py_ssize_t z, double beta, align_end* start) except -1 nogil:
        """Fill the path with the best alignment of two strings, or with beta > 0 with the one of which most pairs are
        expected to be right under p ~ exp(beta score). Returns the position where the path begins, and sets the start.

        The best one also where no pair has a probability to speak of, and where sums would be out of bounds.
        """
        cdef int64_t at = 0
        cdef double score
        self.load(x, z)
        if beta > 0.0 and self.turn_to_factors(beta):
            at = self.task.m + self.task.n
            KERNELS.expected(&self.task, LEAST_PROBABLE, <align_mass*>&self.masses[0], <align_pair_mass*>(
                <align_mass*>&self.masses[0] + 2 * (self.task.n + 1)), start, &self.path[0], &at)
            if start.score > 0.0:
                return at
        if beta > 0.0:
            self.load(x, z)
        score = self.forward()
        start[0] = self.ends[0]
        at = self.walk(start, 0, self.task.m + self.task.n)
        start.score = score
        return at

    cdef int64_t count_hits(self, const align_end* start, int64_t at, int64_t stop) noexcept nogil:
        """The number of the task's core pairs among the operations at .. stop of the path."""
        cdef int64_t i = start.i, j = start.j, k, hits = 0
        for k in range(at, stop):
            i += self.path[k] != ALIGN_SKIP_Z
            j += self.path[k] != ALIGN_SKIP_X
            if self.path[k] == ALIGN_PAIR:
                hits += KERNELS.is_hit(&self.task, i, j)
        return hits

    cdef double tally(self, Py_ssize_t x, Py_ssize_t z, int64_t i, int64_t j, const uint8_t* operations, int64_t count,
                      double sign, double* sums) noexcept nogil:
        """Add the operations from cell (i, j) on to a histogram, with a sign; returns their score."""
        cdef const int32_t* a = &self.symbols[0] + self.offsets[x]
        cdef const int32_t* b = &self.symbols[0] + self.offsets[z]
        cdef const int32_t* features
        cdef Py_ssize_t e, width
        cdef int64_t k, before = ALIGN_START, symbol
        cdef double score = 0.0
        for k in range(count):
            if self.n_contexts > 0:
                score += self.tally_context(operations[k], operations[k] == before, x, z, i, j, sign, sums)
            if operations[k] == ALIGN_PAIR:
                symbol = a[i] * self.n_symbols + b[j]
                features = &self.pair_features[symbol, 0]
                width = self.pair_features.shape[1]
                score += self.pair[a[i] * self.side + b[j]]
                i += 1
                j += 1
            else:
                if operations[k] == ALIGN_SKIP_X:
                    symbol = a[i]
                    i += 1
                else:
                    symbol = b[j]
                    j += 1
                if operations[k] == before:
                    features = &self.extend_features[symbol, 0]
                    score += self.gaps[1, symbol]
                else:
                    features = &self.open_features[symbol, 0]
                    score += self.gaps[0, symbol]
                width = self.open_features.shape[1]
            for e in range(width):
                sums[features[e]] += sign
            before = operations[k]
        return score

    cdef double tally_context(self, int64_t operation, bint further, Py_ssize_t x, Py_ssize_t z, int64_t i, int64_t j,
                              double sign, double* sums) noexcept nogil:
        """Add what the contexts of an operation from cell (i, j) say to a histogram; returns what it scores."""
        cdef int64_t first, place, length, t, k
        cdef int32_t a, b
        cdef double score = 0.0
        if operation == ALIGN_PAIR:
            for t in range(self.n_contexts):
                a, b = self.contexts[t, self.offsets[x] + i], self.contexts[t, self.offsets[z] + j]
                sums[self.context_pairs[a, b]] += sign
                score += self.of_pairs[a, b]
            return score
        first, place = self.offsets[x], i
        length = self.offsets[x + 1] - first
        if operation == ALIGN_SKIP_X:
            first, place = self.offsets[z], j
            length = self.offsets[z + 1] - first
        for t in range(self.n_contexts):
            for k in range(max(place - 1, <int64_t>0), min(place + 1, length)):
                sums[self.context_gaps[further, self.contexts[t, first + k]]] += sign
        return self.beside(further, first, place, length)

    # ---- for Python ---------------------------------------------------------------------------------

    cdef int check(self, Py_ssize_t x, Py_ssize_t z) except -1:
        """Raise unless strings x and z exist and the working memory is large enough for them."""
        cdef int64_t m, n
        if not (0 <= x < len(self.strings) and 0 <= z < len(self.strings)):
            raise IndexError(f"strings {x} and {z} are out of range for {len(self.strings)}")
        m, n = self.offsets[x + 1] - self.offsets[x], self.offsets[z + 1] - self.offsets[z]
        if (max(m, n) + ALIGN_MARGIN > self.letters.shape[1]
                or self.layout(m, n, self.traceback) > self.memory.shape[0]
                or (self.n_contexts > 0 and (m + 1) * (n + 1) > self.cells.shape[0])):
            raise ValueError(f"strings {x} and {z} are larger than the pairs that this aligner was made for")
        return 0

    cdef begin(self, w, Py_ssize_t x, Py_ssize_t z):
        cdef ndarray weights = self.structure.check_weights(w)
        self.check(x, z)
        self.prepare(<const double*>array_data(weights))
        self.load(x, z)

    def hits(self, w, references, double beta=0.0):
        """How many assessed pairs of each reference the alignment of its strings has, int64 array; beta as for
        `align`."""
        cdef ndarray weights = self.structure.check_weights(w)
        cdef const int64_t[::1] x = references.x, z = references.z
        cdef const int32_t[::1] core_x, core_z
        cdef const int64_t[::1] bounds
        cdef int64_t[::1] out = np.zeros(len(references), dtype=np.int64)
        cdef align_task* s = &self.task
        cdef align_end end
        cdef int64_t at
        cdef Py_ssize_t k
        core_x, core_z, bounds = references.core()
        if core_x.shape[0] == 0:
            return np.asarray(out)
        for k in range(x.shape[0]):
            self.check(x[k], z[k])
            if beta > 0.0:
                self.reserve_masses(s.m, s.n)
        with nogil:
            self.prepare(<const double*>array_data(weights))
            self.prepare_factors(beta)
            for k in range(x.shape[0]):
                at = self.decode(x[k], z[k], beta, &end)
                s.core_x, s.core_z, s.n_core = &core_x[0] + bounds[k], &core_z[0] + bounds[k], bounds[k + 1] - bounds[k]
                out[k] = self.count_hits(&end, at, s.m + s.n)
        return np.asarray(out)

    cdef bint is_whole(self) noexcept nogil:
        """Whether all costs are integers, and gaps cost what align_striped.h requires."""
        cdef striped_task* s = &self.striped
        cdef double value, o = self.gaps[0, 0], e = self.gaps[1, 0]
        cdef Py_ssize_t a, b
        if self.band.shape[0] > 0 or not self.task.same_gaps or self.n_contexts > 0 or self.n_symbols > MOST_PROFILED:
            return False
        if not (-MOST_SCORE <= o <= e <= 0.0) or trunc(o) != o or trunc(e) != e:
            return False
        self.least_pair = self.most_pair = 0
        for a in range(self.n_symbols):
            for b in range(self.n_symbols):
                value = self.pair[a * self.side + b]
                if not fabs(value) <= MOST_SCORE or trunc(value) != value:
                    return False
                self.least_pair = min(self.least_pair, <int64_t>value)
                self.most_pair = max(self.most_pair, <int64_t>value)
        s.mode, s.open, s.extend = self.mode, <int64_t>o, <int64_t>e
        return True

    cdef bint fits(self, int64_t m, int64_t n) noexcept nogil:
        """Whether no sum leaves 16 bits. No H is less than that of two gaps, nor any X but by what gaps extend it."""
        cdef striped_task* s = &self.striped
        cdef int64_t rows = m + 2 * MOST_LANES
        s.least = self.least_pair + s.open
        if self.mode != ALIGN_LOCAL:
            s.least += 2 * s.open + s.extend * (rows + n)
        return self.most_pair * min(m, n) <= MOST_SCORE and s.least + s.open + s.extend * rows >= -MOST_SCORE

    def scores(self, w, const int64_t[:, ::1] pairs):
        """The score of the best alignment of each pair of strings, float64 array.

        Integer costs are summed in 16 bits where they fit, with a profile for each run of pairs with one x.
        """
        cdef ndarray weights = self.structure.check_weights(w)
        cdef double[::1] out = np.empty(pairs.shape[0])
        cdef int16_t[::1] lanes
        cdef int64_t longest = 0, before = -1, m, n
        cdef Py_ssize_t k, x, z
        cdef bint whole
        for k in range(pairs.shape[0]):
            self.check(pairs[k, 0], pairs[k, 1])
            longest = max(longest, self.task.m)
        self.prepare(<const double*>array_data(weights))
        longest += MOST_LANES
        whole = self.is_whole() and 2 * (self.n_symbols + 3) * longest <= MAX_BYTES
        lanes = np.empty((self.n_symbols + 3) * longest if whole else 1, dtype=np.int16)
        self.striped.columns, self.striped.profile = &lanes[0], &lanes[0] + (3 * longest if whole else 0)
        self.n_striped = 0
        with nogil:
            for k in range(pairs.shape[0]):
                x, z = pairs[k, 0], pairs[k, 1]
                m, n = self.offsets[x + 1] - self.offsets[x], self.offsets[z + 1] - self.offsets[z]
                if whole and self.fits(m, n):
                    if x != before:
                        self.striped.m, before = m, x
                        KERNELS.profile(&self.striped, &self.symbols[0] + self.offsets[x], &self.pair[0],
                                        self.side, self.least_pair)
                    KERNELS.striped(&self.striped, &self.symbols[0] + self.offsets[z], n, &out[k])
                    self.n_striped += 1
                else:
                    self.load(x, z)
                    out[k] = self.forward()
        return np.asarray(out)

    def align(self, w, Py_ssize_t x, Py_ssize_t z, double beta=0.0):
        """The best alignment of strings x and z: ``(x_start, z_start, codes of its operations, score)``.

        With beta > 0, the alignment whose expected number of right pairs is the greatest, if alignments have the
        probabilities p ~ exp(beta score); that number is its score. Pairs of letters with a probability below 0.01 are
        not in it. Where no pair has more, where a factor exp(beta score) is beyond 2^500, and where the sums over all
        alignments need more than 2 GiB, the best alignment is returned.
        """
        cdef align_end end
        cdef int64_t at
        self.begin(w, x, z)
        if not self.traceback:
            raise ValueError("this aligner was made for scores only (traceback=False)")
        if beta > 0.0:
            self.reserve_masses(self.task.m, self.task.n)
        with nogil:
            self.prepare_factors(beta)
            at = self.decode(x, z, beta, &end)
        return int(end.i), int(end.j), np.array(self.path[at:self.task.m + self.task.n]), float(end.score)

    def complete(self, w, Py_ssize_t x, Py_ssize_t z, const uint8_t[::1] known):
        """The best alignment of strings x and z that agrees with what is known of it.

        Parameters
        ----------
        known : uint8 array
            The operations of both strings, whole; those that need not be kept have FREE added.

        Returns
        -------
        x_start, z_start : int
        codes : uint8 array
            Of its operations; pairs that are not known ones have FREE added.

        Raises
        ------
        ValueError
            If what is known are not the operations of whole strings, or none in the band agrees with it.
        """
        self.begin(w, x, z)
        cdef align_end start
        cdef int64_t at
        self.check_known(x, z, known)
        if not self.traceback:
            raise ValueError("this aligner was made for scores only (traceback=False)")
        with nogil:
            at = self.agreeing(&known[0], known.shape[0], &start)
        if at < 0:
            raise ValueError(DISAGREES)
        return int(start.i), int(start.j), np.array(self.path[at:self.task.m + self.task.n])

    def check_known(self, Py_ssize_t x, Py_ssize_t z, known):
        """Raise ValueError unless known operations take strings x and z whole."""
        kinds = np.asarray(known) & (FREE - 1)
        m, n = len(self.strings[x]), len(self.strings[z])
        if (kinds != ALIGN_SKIP_Z).sum() != m or (kinds != ALIGN_SKIP_X).sum() != n:
            raise ValueError(f"the known part must take all {m} letters of x and {n} of z")

    cdef int64_t agreeing(self, const uint8_t* known, int64_t count, align_end* start) except? -1 nogil:
        """Fill the path with the best alignment that agrees with what is known, after `load`; -1: there is none.

        The last part first, as `walk` goes. Returns the position where the path begins, and sets the start.
        """
        cdef int64_t m = self.task.m, n = self.task.n, low = self.task.low, high = self.task.high, at = m + n
        cdef int64_t part = self.cut(known, count)
        while part >= 0:
            at = self.align_part(part, n, low, high, at, start)
            if at < 0:
                break
            part -= 1
            if part >= 0:
                at -= 1
                self.path[at] = ALIGN_PAIR
        self.task.m, self.task.n = m, n
        return at

    cdef int64_t cut(self, const uint8_t* known, int64_t count) noexcept nogil:
        """Known pairs cut the strings into parts that do not depend on each other: write to `parts` the cell before
        each and that at its end, mark letters known to be in no pair, and return the number of the last part."""
        cdef int64_t i = 0, j = 0, k, part = 0
        cdef int64_t none_x = self.n_symbols * self.side, none_z = self.n_symbols
        if self.n_contexts > 0:
            none_x, none_z = self.task.m * (self.task.n + 1), self.task.n
        self.parts[0, 0] = self.parts[0, 1] = 0
        for k in range(count):
            if known[k] == ALIGN_SKIP_X:
                self.letters[0, i + 1] = <int32_t>none_x
            elif known[k] == ALIGN_SKIP_Z:
                self.letters[1, self.task.n - 1 - j] = <int32_t>none_z
            elif known[k] == ALIGN_PAIR:
                self.parts[part, 2], self.parts[part, 3] = i, j
                part += 1
                self.parts[part, 0], self.parts[part, 1] = i + 1, j + 1
            i += (known[k] & 3) != ALIGN_SKIP_Z
            j += (known[k] & 3) != ALIGN_SKIP_X
        self.parts[part, 2], self.parts[part, 3] = i, j
        self.n_parts = part + 1
        return part

    cdef bint turn_to(self, int64_t part, int64_t n, int64_t low, int64_t high) noexcept nogil:
        """Make a part the task, in the band low .. high of the whole; returns whether there is anything in it."""
        cdef align_task* s = &self.task
        cdef int64_t i = self.parts[part, 0], j = self.parts[part, 1]
        cdef int64_t x_stop = self.parts[part, 2], z_stop = self.parts[part, 3]
        s.low, s.high = low - j + i, high - j + i
        self.blocks(x_stop - i, z_stop - j, self.traceback)
        s.begin = self.mode if part == 0 else ALIGN_GLOBAL
        s.end = self.mode if part + 1 == self.n_parts else ALIGN_GLOBAL
        s.x, s.z = &self.letters[0, i], &self.letters[1, n - z_stop]
        s.open_x, s.extend_x = &self.costs[0, i], &self.costs[1, i]
        s.open_z, s.extend_z = &self.costs[2, n - z_stop], &self.costs[3, n - z_stop]
        if self.n_contexts > 0:
            s.open_at_x, s.extend_at_x = &self.sites[0, i], &self.sites[1, i]
            s.open_at_z, s.extend_at_z = &self.sites[2, n - z_stop], &self.sites[3, n - z_stop]
        return x_stop > i or z_stop > j

    cdef int64_t align_part(self, int64_t part, int64_t n, int64_t low, int64_t high, int64_t at,
                            align_end* start) except? -1 nogil:
        """Fill the path before position `at` with the best alignment of a part.

        Returns the new position, -1 where the band has none, and sets the start.
        """
        cdef int64_t first, k
        start.i = start.j = 0
        if not self.turn_to(part, n, low, high):
            return at
        if self.forward() == -INFINITY:
            return -1
        start[0] = self.ends[0]
        first = self.walk(start, 0, at)
        for k in range(first, at):
            if self.path[k] == ALIGN_PAIR:
                self.path[k] = ALIGN_PAIR | IS_FREE
        return first

    def table(self, w, Py_ssize_t x, Py_ssize_t z):
        """The scores of all cells' states, and those of the operations.

        Returns
        -------
        table : ndarray of shape (3, m + 1, n + 1)
            -inf where no alignment leads.
        pair : ndarray of shape (m, n)
            What a letter of x paired with one of z scores.
        gap_x, gap_z : ndarrays of shape (2, m, n + 1) and (2, m + 1, n)
            What the first and the further letters of a gap score, at each place of the other string.
        """
        self.begin(w, x, z)
        cdef int64_t m = self.task.m, n = self.task.n
        if (32 if self.n_contexts == 0 else 64) * (m + 1) * (n + 1) > MAX_BYTES:
            raise ValueError(f"a table of all cells of strings of {m} and {n} letters takes more than {MAX_BYTES} "
                             "bytes; only the best alignment can be had")
        cdef double[:, :, ::1] table = np.empty((3, m + 1, n + 1))
        with nogil:
            KERNELS.table(&self.task, &table[0, 0, 0])
        a, b = self.strings[x], self.strings[z]
        gaps, at_x, at_z = np.asarray(self.gaps), 0.0, 0.0
        if self.n_contexts > 0:
            pair = np.array(self.cells[:(m + 1) * (n + 1)]).reshape(m + 1, -1)[:m, :n]
            sites = np.asarray(self.sites)
            at_x, at_z = sites[:2, :m + 1, np.newaxis], sites[2:, np.newaxis, n::-1]
        else:
            pair = np.asarray(self.pair).reshape(self.side, -1)[np.ix_(a, b)]
        gap_x = np.broadcast_to(gaps[:, a, np.newaxis] + at_z, (2, m, n + 1))
        gap_z = np.broadcast_to(gaps[:, np.newaxis, b] + at_x, (2, m + 1, n))
        return np.asarray(table), pair, gap_x, gap_z

    def log_sum(self, w, Py_ssize_t x, Py_ssize_t z, double beta=1.0, const uint8_t[::1] known=None):
        """The log of the sum of exp(beta score) over alignments of strings x and z, and its derivative by beta.

        The latter is the mean score under p(y) ~ exp(beta score). -inf and 0 where the band has no alignment. `known`:
        over those alone that agree with it, see `complete`.
        """
        self.begin(w, x, z)
        cdef double[::1] rows = np.empty(2 * (self.task.n + 1) * (sizeof(align_sums) // sizeof(double)))
        cdef align_sums* room = <align_sums*>&rows[0]
        cdef align_sum found, total
        cdef int64_t m = self.task.m, n = self.task.n, low = self.task.low, high = self.task.high, part
        cdef double score
        if known is None:
            with nogil:
                KERNELS.log_sum(&self.task, beta, room, &found)
            return found.log, found.mean
        self.check_known(x, z, known)
        total.log = total.mean = 0.0
        with nogil:
            self.cut(&known[0], known.shape[0])
            for part in range(self.n_parts):
                if self.turn_to(part, n, low, high):
                    KERNELS.log_sum(&self.task, beta, room, &found)
                    total.log += found.log
                    total.mean += found.mean
                if part + 1 < self.n_parts:
                    score = self.score_of(self.parts[part, 2], self.parts[part, 3], n)
                    total.log += beta * score
                    total.mean += score
            self.task.m, self.task.n = m, n
        return total.log, total.mean

    def histogram(self, Py_ssize_t x, Py_ssize_t z, Py_ssize_t i, Py_ssize_t j, const uint8_t[::1] codes):
        """The joint feature of an alignment, dense float64."""
        cdef double[::1] sums = np.zeros(self.n_features)
        steps = np.asarray(codes)
        m, n = i + int((steps != ALIGN_SKIP_Z).sum()), j + int((steps != ALIGN_SKIP_X).sum())
        if not (0 <= i and m <= len(self.strings[x]) and 0 <= j and n <= len(self.strings[z])):
            raise ValueError(f"the alignment takes letters {i}..{m} and {j}..{n} of strings of {len(self.strings[x])} "
                             f"and {len(self.strings[z])}")
        self.prepare(&sums[0])
        if codes.shape[0] > 0:
            self.tally(x, z, i, j, &codes[0], codes.shape[0], 1.0, &sums[0])
        return np.asarray(sums)


cdef class ReferenceProblem(Problem):
    """Pairs of strings with their reference alignments; what both margin problems share.

    Parameters
    ----------
    structure : SmithWatermanOracle
    references : References
    """

    cdef readonly object structure, references
    cdef readonly Aligner aligner
    cdef Aligner completer                  # aligner of the pairs; None where all is known
    cdef const int64_t[::1] x
    cdef const int64_t[::1] z
    cdef const int64_t[::1] x_start
    cdef const int64_t[::1] z_start
    cdef const int64_t[::1] at_first        # where each alignment's operations begin; known in part: with room for any
    cdef int64_t[::1] count                 # their number
    cdef const uint8_t[::1] codes
    cdef const uint8_t[::1] assessed
    cdef const int64_t[::1] known_bounds    # first known cells of each alignment; none if it is known whole
    cdef const uint8_t[::1] known
    cdef int32_t[::1] target                # the words of c_complete
    cdef double[::1] sums                   # zero but between an example's tallies
    cdef double[::1] words                  # words of a cut: values, then indices

    def __init__(self, structure, references, aligner, rescaling, penalty):
        super().__init__(len(references), structure.n_features, rescaling=rescaling, penalty=penalty)
        self.structure, self.references, self.aligner = structure, references, aligner
        self.x, self.z = references.x, references.z
        self.x_start, self.z_start = references.x_start, references.z_start
        self.count = np.diff(references.bounds)
        self.at_first, self.codes = references.bounds[:len(references)], references.codes
        self.assessed = references.assessed.view(np.uint8)
        self.completer = None
        known = [np.empty(0, np.uint8) if of_one is None else of_one for of_one in references.known]
        self.known_bounds = np.concatenate([[0], np.cumsum([len(of_one) for of_one in known])]).astype(np.int64)
        self.known = np.concatenate([np.empty(0, np.uint8), *known])
        self.target = np.empty(2 + int(np.diff(references.bounds).max(initial=0)), dtype=np.int32)
        if not references.is_whole:
            room = np.diff(references.strings.offsets)[references.pairs].sum(axis=1)
            self.at_first = np.cumsum(room) - room
            codes, assessed = np.zeros((2, int(room.sum())), dtype=np.uint8)
            codes[self.places()], assessed[self.places()] = references.codes, references.assessed
            self.codes, self.assessed = codes, assessed
            self.completer = Aligner(structure, references.strings, references.pairs)
            self.target = np.empty(2 + max(len(self.target), len(self.completer.path)), dtype=np.int32)
            for k, of_one in enumerate(references.known):
                if of_one is not None:
                    try:
                        self.completer.check_known(references.x[k], references.z[k], of_one)
                    except ValueError as error:
                        raise ValueError(f"example {k}: {error}") from None
        self.sums = np.zeros(self.n_features)
        self.words = np.empty(2 * self.n_features)

    @property
    def offers(self):
        return offers_of(self.references.has_unknown, False)

    cdef int c_complete(self, Py_ssize_t i, const void* w, Target* target) except -1 nogil:
        """Words: the start, and the operations as `Alignment.known` has them. One that pairs nothing is none."""
        cdef int64_t first = self.known_bounds[i], count = self.known_bounds[i + 1] - first, at, stop, k
        cdef bint has_pair = False
        cdef align_end start
        target.words = &self.target[0]
        if count > 0:
            self.completer.prepare(<const double*>w)
            self.completer.load(self.x[i], self.z[i])
            at = self.completer.agreeing(&self.known[first], count, &start)
            stop = self.completer.task.m + self.completer.task.n
            if at < 0:
                with gil:
                    raise ValueError(f"example {self.first + i}: {DISAGREES}")
            for k in range(at, stop):
                self.target[2 + k - at] = self.completer.path[k]
                has_pair |= (self.completer.path[k] & 3) == ALIGN_PAIR
            if has_pair:
                self.target[0], self.target[1] = <int32_t>start.i, <int32_t>start.j
                target.n_words = 2 + stop - at
                return 0
        first, count = self.at_first[i], self.count[i]
        if count == 0:
            with gil:
                weights = np.asarray(<const double[:self.completer.n_features]>w)
                words = self.structure.with_a_pair(self.completer, weights, self.x[i], self.z[i])
                target.n_words = len(words)
                for k in range(target.n_words):
                    self.target[k] = words[k]
            return 0
        self.target[0], self.target[1] = <int32_t>self.x_start[i], <int32_t>self.z_start[i]
        for k in range(count):
            self.target[2 + k] = self.codes[first + k]
            if self.codes[first + k] == ALIGN_PAIR and not self.assessed[first + k]:
                self.target[2 + k] += IS_FREE
        target.n_words = 2 + count
        return 0

    cdef int check_aligned(self, Py_ssize_t i) except -1 nogil:
        """Raise ValueError if example i has no alignment yet."""
        if self.count[i] == 0:
            with gil:
                raise ValueError(f"the alignment of example {self.first + i} is not known: train with LatentSVM")
        return 0

    cdef bint c_retarget(self, Py_ssize_t i, const Target* target, bint take) except -1 nogil:
        """Take a target. The assessed pairs are known, and the same in all alignments that agree."""
        cdef int64_t first = self.at_first[i], count = target.n_words - 2, k
        cdef uint8_t* codes = <uint8_t*>&self.codes[0] + first
        cdef uint8_t* assessed = <uint8_t*>&self.assessed[0] + first
        cdef bint differs = count != self.count[i] or (
            self.x_start[i] != target.words[0] or self.z_start[i] != target.words[1])
        for k in range(count):
            differs = differs or codes[k] != (target.words[2 + k] & ~IS_FREE)
            if take:
                codes[k] = <uint8_t>(target.words[2 + k] & ~IS_FREE)
                assessed[k] = target.words[2 + k] == ALIGN_PAIR
        if take:
            self.count[i] = count
            (<int64_t*>&self.x_start[i])[0], (<int64_t*>&self.z_start[i])[0] = target.words[0], target.words[1]
        return differs

    def places(self):
        """Where in `codes` and `assessed` the operations of all alignments stand."""
        counts = np.asarray(self.count)
        return np.arange(counts.sum()) + np.repeat(self.at_first - (np.cumsum(counts) - counts), counts)

    @property
    def targets(self):
        places, bounds = self.places(), np.cumsum(np.append(0, self.count))
        codes, assessed = np.asarray(self.codes)[places], np.asarray(self.assessed)[places]
        return self.references.with_codes(codes, assessed.view(bool), bounds).words

    def with_targets(self, targets):
        return self.rebuilt(self.structure, self.references.with_words(targets))

    cdef double tally_reference(self, Py_ssize_t i) noexcept nogil:
        """Begin the sums of example i; those of one that was interrupted are lost."""
        memset(&self.sums[0], 0, self.n_features * sizeof(double))
        return self.aligner.tally(self.x[i], self.z[i], self.x_start[i], self.z_start[i],
                                  &self.codes[0] + self.at_first[i], self.count[i], 1.0, &self.sums[0])

    cdef void finish(self, double loss, Cut* cut) noexcept nogil:
        """Move the sums into the words of a cut. Alignments of loss 0 other than the reference must not score more
        than it: their right-hand side is 0 in every formulation."""
        cdef Py_ssize_t k, n = 0, e = 0
        cdef int32_t* indices
        for k in range(self.n_features):
            n += self.sums[k] != 0.0
        # A constraint whose joint feature vanishes still exists: one explicit zero stands for it.
        indices = <int32_t*>(&self.words[0] + max(n, 1))
        self.words[0] = 0.0
        indices[0] = 0
        for k in range(self.n_features):
            if self.sums[k] != 0.0:
                self.words[e] = self.sums[k]
                indices[e] = <int32_t>k
                self.sums[k] = 0.0
                e += 1
        cut_terms(self.rescaling, self.penalty, loss, cut)
        if loss == 0.0:
            cut.b = 0.0
            cut.scale = 1.0
        cut.words = <int32_t*>&self.words[0]
        cut.n_words = 3 * max(n, 1)

    cdef void nothing(self, Cut* cut, double* violation) noexcept nogil:
        """The zero constraint: the reference itself."""
        memset(&self.sums[0], 0, self.n_features * sizeof(double))
        cut.words = <int32_t*>&self.words[0]
        cut.n_words = 0
        cut.alpha = cut.drift = cut.b = violation[0] = 0.0
        cut.idle = 0
        cut.scale = 1.0

    cdef double c_cost(self, Py_ssize_t i) noexcept nogil:
        cdef const int64_t* offsets = &self.aligner.offsets[0]
        return <double>((offsets[self.x[i] + 1] - offsets[self.x[i]]) * (offsets[self.z[i] + 1] - offsets[self.z[i]]))

    def fingerprint(self):
        return checksum(self.references.arrays())


cdef class AlignmentProblem(ReferenceProblem):
    """Learning from alignments: the reference against all other alignments of its two strings."""

    cdef bint zero_one, counting
    cdef const int32_t[::1] core_x
    cdef const int32_t[::1] core_z
    cdef const int64_t[::1] core_bounds
    cdef align_end start                # the alignment found last
    cdef int64_t at                     # its operations are aligner.path[at:stop]
    cdef int64_t stop

    def __init__(self, structure, references, *, rescaling="margin", penalty="linear"):
        self.zero_one = structure.loss_name == "zero_one"
        self.counting = not self.zero_one and rescaling is not None and (rescaling != "margin" or penalty != "linear")
        core_x, core_z, bounds = references.core()
        self.core_x, self.core_z, self.core_bounds = core_x, core_z, bounds
        layers = np.diff(bounds) + 1 if self.counting else 1
        super().__init__(structure, references, Aligner(structure, references.strings, references.pairs, layers),
                         rescaling, penalty)

    def fingerprint(self):
        return checksum([np.array([super().fingerprint(), self.zero_one])])

    def structure_fingerprint(self):
        return checksum([np.array([self.zero_one])])

    cdef int c_separate(self, Py_ssize_t i, const void* w, Cut* cut, double* violation) except -1 nogil:
        cdef align_task* s = &self.aligner.task
        cdef double loss = 1.0, gold, score
        cdef bint found = False
        cdef int64_t layer = 0, first = self.core_bounds[i], R = self.core_bounds[i + 1] - first
        self.check_aligned(i)
        self.aligner.prepare(<const double*>w)
        if self.counting:
            s.layers = R + 1
        self.aligner.load(self.x[i], self.z[i])
        self.stop = s.m + s.n
        gold = self.tally_reference(i)
        if self.zero_one:
            found = self.best_other(i)
        elif self.rescaling == RESCALE_NONE:
            self.aligner.forward()
            self.follow(0)
            found = not self.is_reference(i) or self.best_other(i)
        else:
            s.core_x, s.core_z, s.n_core = &self.core_x[0] + first, &self.core_z[0] + first, R
            if not self.counting:
                s.bonus = -1.0 / <double>R
            self.aligner.forward()
            if self.counting:
                layer = self.trade(R, gold)
            if layer >= 0:
                self.follow(layer)
                loss = self.q_loss(R)
                found = not self.is_reference(i)
        if found:
            score = self.aligner.tally(self.x[i], self.z[i], self.start.i, self.start.j,
                                       &self.aligner.path[0] + self.at, self.stop - self.at, -1.0, &self.sums[0])
            self.finish(loss, cut)
            violation[0] = cut.b - cut.scale * (gold - score)
            found = score >= gold if self.rescaling == RESCALE_NONE else (
                violation[0] >= 0.0 or violation[0] != violation[0] or self.penalty == PENALTY_HARD)
        if not found:
            self.nothing(cut, violation)
            self.copy_reference(i)
        return 0

    cdef int follow(self, int64_t layer) except -1 nogil:
        """The best alignment of a layer, after `forward`."""
        self.start = self.aligner.ends[layer]
        self.at = self.aligner.walk(&self.start, layer, self.stop)
        return 0

    cdef bint is_reference(self, Py_ssize_t i) noexcept nogil:
        """Whether the path is that of the reference."""
        cdef int64_t first = self.at_first[i], count = self.count[i], k
        if self.stop - self.at != count or self.start.i != self.x_start[i] or self.start.j != self.z_start[i]:
            return False
        for k in range(count):
            if self.aligner.path[self.at + k] != self.codes[first + k]:
                return False
        return True

    cdef void copy_reference(self, Py_ssize_t i) noexcept nogil:
        cdef int64_t first = self.at_first[i], count = self.count[i]
        self.at = self.stop - count
        memcpy(&self.aligner.path[0] + self.at, &self.codes[0] + first, count)
        self.start.i, self.start.j = self.x_start[i], self.z_start[i]

    cdef double q_loss(self, int64_t R) noexcept nogil:
        """The share of the reference pairs that the path misses."""
        return <double>(R - self.aligner.count_hits(&self.start, self.at, self.stop)) / <double>R

    cdef int64_t trade(self, int64_t R, double gold) noexcept nogil:
        """The number of hits h whose best alignment has the most violated constraint; -1 where none is violated."""
        cdef int64_t h, top = -1
        cdef double value, high = 0.0
        cdef Cut terms
        if self.penalty == PENALTY_HARD:
            high = -INFINITY
        for h in range(R):
            if self.aligner.ends[h].score == -INFINITY:
                continue
            cut_terms(self.rescaling, self.penalty, <double>(R - h) / <double>R, &terms)
            value = terms.b - terms.scale * (gold - self.aligner.ends[h].score)
            if value > high:
                high = value
                top = h
        # With slack rescaling the constraint of an alignment without loss is multiplied by 0.
        if self.rescaling == RESCALE_MARGIN and self.aligner.ends[R].score - gold > high:
            top = R
        return top

    cdef bint best_other(self, Py_ssize_t i) except -1 nogil:
        """The best alignment that is not the reference: one with another end, or one that leaves the reference on
        the way back, after a suffix that both have. Returns whether there is one."""
        cdef align_task* s = &self.aligner.task
        cdef int64_t first = self.at_first[i], count = self.count[i], at = count, k
        cdef align_end end, detour, gold_end
        gold_end.i, gold_end.j = self.x_start[i], self.z_start[i]
        for k in range(first, first + count):
            gold_end.i += self.codes[k] != ALIGN_SKIP_Z
            gold_end.j += self.codes[k] != ALIGN_SKIP_X
        gold_end.state = self.codes[first + count - 1] if count > 0 else ALIGN_PAIR
        s.barred = gold_end
        self.aligner.forward()
        s.barred.state = -1
        end = self.aligner.ends[0]
        KERNELS.walk(s, &gold_end, 0, &self.codes[0] + first, &self.aligner.path[0], &at, &detour)
        if end.score == -INFINITY and detour.score == -INFINITY:
            return False
        self.at = self.stop
        if detour.score > end.score:
            end = detour
            self.at = self.stop - (count - detour.at)
            memcpy(&self.aligner.path[0] + self.at, &self.codes[0] + first + detour.at, count - detour.at)
        self.at = self.aligner.walk(&end, 0, self.at)
        self.start = end
        return True

    def examples(self, Py_ssize_t start, Py_ssize_t stop):
        return self.structure, self.references[start:stop]

    def most_violated(self, Py_ssize_t i, w):
        """The alignment behind ``separate(i, w)``: ``(x_start, z_start, codes of its operations)``."""
        cdef Cut cut
        cdef double violation
        cdef ndarray weights = self._check_weights(w)
        self.c_separate(i, array_data(weights), &cut, &violation)
        return int(self.start.i), int(self.start.j), np.array(self.aligner.path[self.at:self.stop])


cdef class DecoyProblem(ReferenceProblem):
    """Learning from homologues and decoys (section 5.4 of the paper): an example's outputs are its homologue, with the
    reference alignment, and its decoys, the best alignment of each; the loss is 0 or 1."""

    cdef const int64_t[::1] decoys
    cdef const int64_t[::1] decoy_bounds
    cdef Aligner scorer                 # without the memory for the way back

    def __init__(self, structure, references, *, rescaling="margin", penalty="linear"):
        self.decoys, self.decoy_bounds = references.decoys, references.decoy_bounds
        pairs = references.decoy_pairs()
        super().__init__(structure, references, Aligner(structure, references.strings, pairs), rescaling, penalty)
        self.scorer = Aligner(structure, references.strings, pairs, 1, False)

    cdef int c_separate(self, Py_ssize_t i, const void* w, Cut* cut, double* violation) except -1 nogil:
        cdef align_end end
        cdef int64_t k, top = self.decoy_bounds[i], at, stop
        cdef double gold, score, high = -INFINITY
        self.check_aligned(i)
        self.aligner.prepare(<const double*>w)
        self.scorer.prepare(<const double*>w)
        for k in range(self.decoy_bounds[i], self.decoy_bounds[i + 1]):
            self.scorer.load(self.x[i], self.decoys[k])
            score = self.scorer.forward()
            if score > high:
                high = score
                top = k
        gold = self.tally_reference(i)
        self.aligner.load(self.x[i], self.decoys[top])
        self.aligner.forward()
        end = self.aligner.ends[0]
        stop = self.aligner.task.m + self.aligner.task.n
        at = self.aligner.walk(&end, 0, stop)
        score = self.aligner.tally(self.x[i], self.decoys[top], end.i, end.j, &self.aligner.path[0] + at, stop - at,
                                   -1.0, &self.sums[0])
        self.finish(1.0, cut)
        violation[0] = cut.b - (gold - score)
        if score < gold if self.rescaling == RESCALE_NONE else (violation[0] < 0.0 and self.penalty != PENALTY_HARD):
            self.nothing(cut, violation)
        return 0

    cdef double c_cost(self, Py_ssize_t i) noexcept nogil:
        cdef const int64_t* offsets = &self.aligner.offsets[0]
        cdef int64_t k, total = 0
        for k in range(self.decoy_bounds[i], self.decoy_bounds[i + 1]):
            total += offsets[self.decoys[k] + 1] - offsets[self.decoys[k]]
        return <double>(total * (offsets[self.x[i] + 1] - offsets[self.x[i]]))

    def examples(self, Py_ssize_t start, Py_ssize_t stop):
        return self.structure, self.references[start:stop]
