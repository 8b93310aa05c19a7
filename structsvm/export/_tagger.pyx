"""Chain over given weights in float64: labels, scores, probabilities and marginals of one sequence.

First the score lattice is filled, then a dynamic programme runs over it. Sums are in logarithms, with one exponential
and one logarithm per token and label:

    out_j = max(a) + max(w) + log sum_i exp(a_i - max(a)) exp(w_ij - max(w))

where exp(w_ij - max(w)) is computed once, when the tagger is made. Tokens that have weights of label pairs, and
transitions that differ by more than RANGE, whose exponentials would vanish, take one exponential per pair.
"""

from libc.math cimport exp, isfinite, log, INFINITY
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

cimport cython

import numpy as np

from structsvm._arrays cimport array_data, ndarray

from structsvm.export.paths import best_paths, path_score
from structsvm.export.rows import finite, rows_below, rows_of, text_of

cdef enum:
    MAX_DEPTH = 64              # nesting of feature dicts
    MANY_NAMES = 4096           # names without attributes below that are remembered
    RANGE = 600                 # widest span of tabulated transitions: exp(-600) is a normal number


@cython.final
cdef class Lattice:
    """Scores of one sequence under a tagger's weights, which its methods take in the place of the sequence."""
    cdef object tagger
    cdef readonly Py_ssize_t n  # tokens
    cdef Py_ssize_t k           # labels
    cdef double *state          # (n, k)
    cdef double *work           # (n + 4, k), scratch
    cdef double **own           # n pointers to (k, k): transitions into the token; NULL: the tagger's

    def __cinit__(self, tagger, Py_ssize_t n, Py_ssize_t k):
        self.tagger, self.n, self.k = tagger, n, k
        self.state = <double *>calloc((2 * n + 4) * k, sizeof(double))
        self.own = <double **>calloc(max(n, 1), sizeof(double *))
        if self.state == NULL or self.own == NULL:
            raise MemoryError
        self.work = self.state + n * k

    def __dealloc__(self):
        cdef Py_ssize_t t
        free(self.state)
        if self.own != NULL:
            for t in range(self.n):
                free(self.own[t])
            free(self.own)

    @property
    def states(self):
        """Scores of the labels of each token: array (n, K)."""
        return copied(self.state, self.n, self.k)

    def into(self, Py_ssize_t t):
        """Scores of label pairs into token t: array (K, K); None: the tagger's transitions."""
        if not 0 <= t < self.n:
            raise IndexError(f"t must be between 0 and {self.n - 1}, got {t}")
        return None if self.own[t] == NULL else copied(self.own[t], self.k, self.k)


cdef ndarray copied(const double *source, Py_ssize_t n, Py_ssize_t k):
    cdef ndarray array = np.empty((n, k))
    memcpy(array_data(array), source, n * k * sizeof(double))
    return array


@cython.final
cdef class Names:
    """Rows of the attributes whose names begin with a prefix, by the rest of the name.

    Those below a name, for texts and nested features, are found once, among the sorted names.
    """
    cdef dict rows      # rest of the name -> row
    cdef dict children  # name -> Names
    cdef list ordered   # the rests of names, sorted; None before they are needed

    def __cinit__(self, dict rows):
        self.rows, self.children = rows, {}

    cdef Names below(self, str name):
        """The names that begin with ``name:``."""
        found = self.children.get(name)
        if found is not None:
            return <Names>found
        if self.ordered is None:
            self.ordered = sorted(self.rows)
        cdef Names names = Names(rows_below(self.ordered, self.rows, name))
        # Names that no attribute has may be without end.
        if names.rows or len(self.children) < MANY_NAMES:
            self.children[name] = names
        return names


cdef double largest(const double *a, Py_ssize_t n) noexcept nogil:
    cdef double most = -INFINITY
    cdef Py_ssize_t i
    for i in range(n):
        if a[i] > most:
            most = a[i]
    return most


@cython.final
cdef class Tagger:
    """Chain over given weights.

    Parameters
    ----------
    labels : sequence of str, K of them
        Among equal scores the label that stands first wins.
    attributes : mapping of str to int
        Row of each name, 0 .. len(attributes) - 1.
    starts, targets, weights : arrays
        Row r has the labels ``targets[starts[r]:starts[r + 1]]`` with the weights at the same places.
    transitions : array (K, K), from row to column
    start, end : arrays (K,), optional
        Scores of the first and the last label.
    pair_starts, pair_targets, pair_weights : arrays, optional
        Rows of label pairs ``i * K + j`` from the label i of the token before to the token's label j.

    Tokens are iterables of attribute names, or mappings: numbers and bools are values of the attribute ``name``, texts
    the attribute ``name:text``, lists, sets and mappings attributes below ``name:``. Bytes are texts in UTF-8. Names
    without a row count nothing. All methods take a sequence of tokens, or its `lattice`.
    """
    cdef list _labels
    cdef Names names
    cdef dict numbers           # label -> index
    cdef Py_ssize_t k
    cdef const int64_t *starts
    cdef const int64_t *pair_starts     # NULL: there are no pairs
    cdef const int32_t *targets
    cdef const int32_t *pair_targets
    cdef const double *weights
    cdef const double *pair_weights
    cdef const double *transitions
    cdef const double *table            # exp(transitions - top)
    cdef const double *start
    cdef const double *end
    cdef double top                     # the largest transition
    cdef bint tabulated
    cdef tuple arguments, arrays        # as given; behind the pointers

    def __init__(self, labels, attributes, starts, targets, weights, transitions, *, start=None, end=None,
                 pair_starts=None, pair_targets=None, pair_weights=None):
        self._labels, names = list(labels), dict(attributes)
        self.names = Names(names)
        k, n = len(self._labels), len(names)
        self.numbers = {label: y for y, label in enumerate(self._labels)}
        if k == 0 or len(self.numbers) != k:
            raise ValueError("labels must be at least one, each once")
        if not all(0 <= row < n for row in names.values()):
            raise ValueError(f"attributes must have rows between 0 and {n - 1}")
        rows = rows_of(starts, targets, weights, n, k, "")
        pairs = () if pair_starts is None else rows_of(pair_starts, pair_targets, pair_weights, n, k * k, "pair_")
        dense = []
        for name, array, shape in (("transitions", transitions, (k, k)), ("start", start, (k,)), ("end", end, (k,))):
            array = finite(np.ascontiguousarray(np.zeros(shape) if array is None else array, np.float64), name)
            if array.shape != shape:
                raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
            dense.append(array)
        self.k, self.top = k, dense[0].max()
        self.tabulated = self.top - dense[0].min() <= RANGE
        dense.append(np.exp(np.maximum(dense[0] - self.top, -RANGE)))
        self.arrays = (*dense, *rows, *pairs)
        self.transitions, self.start = <const double *>address(dense[0]), <const double *>address(dense[1])
        self.end, self.table = <const double *>address(dense[2]), <const double *>address(dense[3])
        self.starts, self.targets = <const int64_t *>address(rows[0]), <const int32_t *>address(rows[1])
        self.weights, self.pair_starts = <const double *>address(rows[2]), NULL
        if pairs:
            self.pair_starts, self.pair_targets = <const int64_t *>address(pairs[0]), <const int32_t *>address(pairs[1])
            self.pair_weights = <const double *>address(pairs[2])
        self.arguments = (self._labels, names, starts, targets, weights, transitions, start, end, pair_starts,
                          pair_targets, pair_weights)

    def __reduce__(self):
        return rebuilt, self.arguments

    @property
    def labels(self):
        """Labels in their order: list of str."""
        return list(self._labels)

    # ---- the lattice ----------------------------------------------------------------------------

    cpdef Lattice lattice(self, sequence):
        """Scores of a sequence, for several methods: `Lattice`."""
        cdef list tokens
        cdef Lattice lattice
        cdef Py_ssize_t n, t, y
        if isinstance(sequence, Lattice):
            lattice = sequence
            if lattice.tagger is not self:
                raise ValueError("the lattice is another tagger's")
            return lattice
        tokens = list(sequence)
        n = len(tokens)
        lattice = Lattice(self, n, self.k)
        for t in range(n):
            self.read(lattice, t, tokens[t], self.names, 0)
        for y in range(self.k if n else 0):
            lattice.state[y] += self.start[y]
            lattice.state[(n - 1) * self.k + y] += self.end[y]
        return lattice

    cdef int read(self, Lattice lattice, Py_ssize_t t, token, Names names, int depth) except -1:
        """Add the weights of a token's attributes, in their order."""
        if depth > MAX_DEPTH:
            raise ValueError(f"token {t}: features are nested deeper than {MAX_DEPTH} levels")
        if isinstance(token, (str, bytes)):
            raise TypeError(f"token {t} is the text {token!r}; wanted a list of attributes or a dict of features")
        if isinstance(token, dict):
            for name, value in (<dict>token).items():
                self.read_feature(lattice, t, name, value, names, depth)
        elif hasattr(token, "items"):
            for name, value in token.items():
                self.read_feature(lattice, t, name, value, names, depth)
        else:
            for name in token:
                self.add(lattice, t, names.rows.get(name if isinstance(name, str) else text_of(t, name)), 1.0)
        return 0

    cdef int read_feature(self, Lattice lattice, Py_ssize_t t, name, given, Names names, int depth) except -1:
        if not isinstance(name, str):
            name = text_of(t, name)
        # The usual kinds first: each other test costs as much as a look-up.
        if isinstance(given, str):
            return self.add(lattice, t, names.below(name).rows.get(given), 1.0)
        if given is True or given is False:
            return self.add(lattice, t, names.rows.get(name), 1.0) if given is True else 0
        if isinstance(given, dict):
            return self.read(lattice, t, given, names.below(name), depth + 1)
        if not isinstance(given, (float, int)):
            if isinstance(given, bytes):
                return self.add(lattice, t, names.below(name).rows.get(text_of(t, given)), 1.0)
            if isinstance(given, (list, tuple, set, frozenset)) or hasattr(given, "items"):
                return self.read(lattice, t, given, names.below(name), depth + 1)
        return self.add(lattice, t, names.rows.get(name), number_of(t, name, given))

    cdef int add(self, Lattice lattice, Py_ssize_t t, found, double value) except -1:
        """Add the weights of a row; None: of no row."""
        cdef Py_ssize_t row, at
        cdef double *scores
        if found is None:
            return 0
        row, scores = found, lattice.state + t * self.k
        for at in range(self.starts[row], self.starts[row + 1]):
            scores[self.targets[at]] += self.weights[at] * value
        if t and self.pair_starts != NULL and self.pair_starts[row] < self.pair_starts[row + 1]:
            if lattice.own[t] == NULL:
                lattice.own[t] = <double *>malloc(self.k * self.k * sizeof(double))
                if lattice.own[t] == NULL:
                    raise MemoryError
                memcpy(lattice.own[t], self.transitions, self.k * self.k * sizeof(double))
            for at in range(self.pair_starts[row], self.pair_starts[row + 1]):
                lattice.own[t][self.pair_targets[at]] += self.pair_weights[at] * value
        return 0

    cdef const double *into(self, Lattice lattice, Py_ssize_t t) noexcept:
        return lattice.own[t] if lattice.own[t] != NULL else self.transitions

    # ---- the best labels ------------------------------------------------------------------------

    def tag(self, sequence):
        """Labels with the highest score: list of str, one per token."""
        cdef Lattice lattice = self.lattice(sequence)
        cdef Py_ssize_t k = self.k, n = lattice.n, t, y
        cdef int32_t *back
        if n == 0:
            return []
        back = <int32_t *>calloc(n * k, sizeof(int32_t))
        if back == NULL:
            raise MemoryError
        y = self.best(lattice, back)
        labels = [None] * n
        for t in range(n - 1, -1, -1):
            labels[t] = self._labels[y]
            y = back[t * k + y]
        free(back)
        return labels

    cdef Py_ssize_t best(self, Lattice lattice, int32_t *back) noexcept:
        """The last label of the best path, by the labels before each: best_j = max_i (best_i + w_ij) + state_j."""
        cdef Py_ssize_t k = self.k, t, i, j, last = 0
        cdef double *before = lattice.work
        cdef double *after = lattice.work + k
        cdef const double *w
        cdef const double *state = lattice.state
        memcpy(before, state, k * sizeof(double))
        for t in range(1, lattice.n):
            w, state, back = self.into(lattice, t), state + k, back + k
            for j in range(k):
                after[j] = before[0] + w[j]
            for i in range(1, k):
                w += k
                for j in range(k):
                    if before[i] + w[j] > after[j]:
                        after[j], back[j] = before[i] + w[j], <int32_t>i
            for j in range(k):
                after[j] += state[j]
            before, after = after, before
        for j in range(1, k):
            if before[j] > before[last]:
                last = j
        return last

    # ---- sums -----------------------------------------------------------------------------------

    cdef int step(self, Lattice lattice, Py_ssize_t t, const double *a, double *shifted, double *out,
                  bint forwards) except -1:
        """out_j = log sum_i exp(a_i + w_ij), w the scores of pairs into token t; or with w_ji where not `forwards`."""
        cdef Py_ssize_t k = self.k, i, j, row = k if forwards else 1, column = 1 if forwards else k
        cdef const double *w = self.table
        cdef double most = largest(a, k), peak, sum
        if self.tabulated and lattice.own[t] == NULL:
            for i in range(k):
                shifted[i] = exp(a[i] - most)
            for j in range(k):
                sum = 0
                for i in range(k):
                    sum += shifted[i] * w[i * row + j * column]
                out[j] = most + self.top + log(sum)
            return 0
        w = self.into(lattice, t)
        for j in range(k):
            peak, sum = -INFINITY, 0
            for i in range(k):
                peak = max(peak, a[i] + w[i * row + j * column])
            for i in range(k):
                sum += exp(a[i] + w[i * row + j * column] - peak)
            out[j] = peak + log(sum)
        return 0

    cdef double forward(self, Lattice lattice) except? -1:
        """alpha_tj = log sum over labels before t of exp(score up to and with label j at t). The log partition."""
        cdef Py_ssize_t k = self.k, n = lattice.n, t, y
        cdef double *alpha = lattice.work
        cdef double *shifted = alpha + n * k
        cdef double most, sum = 0
        memcpy(alpha, lattice.state, k * sizeof(double))
        for t in range(1, n):
            self.step(lattice, t, alpha, shifted, alpha + k, True)
            alpha += k
            for y in range(k):
                alpha[y] += lattice.state[t * k + y]
        most = largest(alpha, k)
        for y in range(k):
            sum += exp(alpha[y] - most)
        return most + log(sum)

    def log_partition(self, sequence):
        """log sum over all labellings of exp(score); 0 for no tokens."""
        cdef Lattice lattice = self.lattice(sequence)
        return self.forward(lattice) if lattice.n else 0.0

    def marginals(self, sequence):
        """Probability of each label at each token: array (n_tokens, K)."""
        cdef Lattice lattice = self.lattice(sequence)
        cdef Py_ssize_t k = self.k, n = lattice.n, t, y
        cdef double log_z
        cdef double *alpha = lattice.work
        cdef double *beta = alpha + n * k + k
        cdef double *after = beta + k
        if n == 0:
            return np.empty((0, k))
        log_z = self.forward(lattice)
        # beta_i = log sum_j exp(w_ij + after_j), where after_j is the score of label j at t + 1 and all that follows.
        for y in range(k):
            beta[y] = 0
        for t in range(n - 1, -1, -1):
            if t + 1 < n:
                for y in range(k):
                    after[y] = lattice.state[(t + 1) * k + y] + beta[y]
                self.step(lattice, t + 1, after, beta - k, beta, False)
            for y in range(k):
                alpha[t * k + y] = exp(alpha[t * k + y] + beta[y] - log_z)
        return copied(alpha, n, k)

    # ---- given and further labels, in Python -----------------------------------------------------

    def _pairs(self, Lattice lattice):
        return [lattice.into(t) for t in range(lattice.n)], self.arrays[0]

    def score(self, sequence, labels):
        """Sum of the weights of `labels`."""
        cdef Lattice lattice = self.lattice(sequence)
        return path_score(lattice.states, *self._pairs(lattice), self.numbers, labels)

    def probability(self, sequence, labels):
        """exp(score of `labels` - log_partition)."""
        cdef Lattice lattice = self.lattice(sequence)
        return exp(self.score(lattice, labels) - self.log_partition(lattice))

    def kbest(self, sequence, k):
        """The `k` best labellings, best first: list of (score, labels); fewer where there are no more."""
        cdef Lattice lattice = self.lattice(sequence)
        return best_paths(lattice.states, *self._pairs(lattice), self._labels, k)


cdef double number_of(Py_ssize_t t, name, given) except? -1:
    cdef double value
    try:
        value = given
    except TypeError:
        raise TypeError(f"token {t}: feature {name!r} must be a number, text, list or dict, got {given!r}") from None
    if not isfinite(value):
        raise ValueError(f"token {t}: feature {name!r} must be finite, got {given!r}")
    return value


cdef const void *address(ndarray array):
    return array_data(array)


def rebuilt(labels, attributes, starts, targets, weights, transitions, start, end, pair_starts, pair_targets,
            pair_weights):
    return Tagger(labels, attributes, starts, targets, weights, transitions, start=start, end=end,
                  pair_starts=pair_starts, pair_targets=pair_targets, pair_weights=pair_weights)
