"""Chain over given weights in float64: labels, scores, probabilities and marginals of one sequence.

First the score lattice is filled, then a dynamic programme runs over it. Sums are in logarithms, with one exponential
and one logarithm per token and label:

    out_j = max(a) + max(w) + log sum_i exp(a_i - max(a)) exp(w_ij - max(w))

where exp(w_ij - max(w)) is computed once, when the tagger is made. Tokens that have weights of label pairs, and
transitions that differ by more than RANGE, whose exponentials would vanish, take one exponential per pair.
"""

from libc.math cimport exp, isfinite, log, INFINITY
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

cimport cython

import numpy as np

from structsvm.export.rows import finite, rows_of

cdef enum:
    MAX_DEPTH = 64              # nesting of feature dicts
    RANGE = 600                 # widest span of tabulated transitions: exp(-600) is a normal number


@cython.final
cdef class Lattice:
    """Scores of one sequence; for tokens that have weights of pairs, their own transitions."""
    cdef double *state          # (n, K)
    cdef double **own           # n pointers to (K, K): transitions into the token; NULL: the tagger's
    cdef Py_ssize_t n

    def __cinit__(self, Py_ssize_t n, Py_ssize_t k):
        self.n = n
        self.state = <double *>malloc(max(n * k, 1) * sizeof(double))
        self.own = <double **>malloc(max(n, 1) * sizeof(double *))
        if self.own != NULL:
            memset(self.own, 0, max(n, 1) * sizeof(double *))
        if self.state == NULL or self.own == NULL:
            raise MemoryError
        memset(self.state, 0, n * k * sizeof(double))

    def __dealloc__(self):
        cdef Py_ssize_t t
        free(self.state)
        if self.own != NULL:
            for t in range(self.n):
                free(self.own[t])
            free(self.own)


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
    the attribute ``name:text``, lists, sets and mappings attributes below ``name:``. Names without a row count nothing.
    """
    cdef list _labels
    cdef dict names, numbers
    cdef const int64_t[::1] starts, pair_starts
    cdef const int32_t[::1] targets, pair_targets
    cdef const double[::1] weights, pair_weights, start, end
    cdef const double[:, ::1] transitions, table
    cdef double top             # the largest transition
    cdef bint tabulated, has_pairs
    cdef tuple arguments

    def __init__(self, labels, attributes, starts, targets, weights, transitions, *, start=None, end=None,
                 pair_starts=None, pair_targets=None, pair_weights=None):
        cdef Py_ssize_t k, n
        self._labels = list(labels)
        self.names = dict(attributes)
        k, n = len(self._labels), len(self.names)
        self.numbers = {label: y for y, label in enumerate(self._labels)}
        if k == 0 or len(self.numbers) != k:
            raise ValueError("labels must be at least one, each once")
        if not all(0 <= row < n for row in self.names.values()):
            raise ValueError(f"attributes must have rows between 0 and {n - 1}")
        self.starts, self.targets, self.weights = rows_of(starts, targets, weights, n, k, "")
        self.has_pairs = pair_starts is not None
        if self.has_pairs:
            self.pair_starts, self.pair_targets, self.pair_weights = rows_of(
                pair_starts, pair_targets, pair_weights, n, k * k, "pair_")
        given = []
        for name, array, shape in (("transitions", transitions, (k, k)), ("start", start, (k,)), ("end", end, (k,))):
            array = finite(np.ascontiguousarray(np.zeros(shape) if array is None else array, np.float64), name)
            if array.shape != shape:
                raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
            given.append(array)
        self.transitions, self.start, self.end = given
        self.top = given[0].max()
        self.tabulated = self.top - given[0].min() <= RANGE
        self.table = np.exp(np.maximum(given[0] - self.top, -RANGE))
        self.arguments = (self._labels, self.names, starts, targets, weights, transitions, start, end, pair_starts,
                          pair_targets, pair_weights)

    def __reduce__(self):
        return rebuilt, self.arguments

    @property
    def labels(self):
        """Labels in their order: list of str."""
        return list(self._labels)

    cdef Lattice fill(self, sequence):
        cdef list tokens = list(sequence)
        cdef Py_ssize_t k = len(self._labels), n = len(tokens), t, y
        cdef Lattice lattice = Lattice(n, k)
        for t in range(n):
            self.read(lattice, t, tokens[t], None, 0)
        for y in range(k if n else 0):
            lattice.state[y] += self.start[y]
            lattice.state[(n - 1) * k + y] += self.end[y]
        return lattice

    cdef int read(self, Lattice lattice, Py_ssize_t t, token, str prefix, int depth) except -1:
        """Add the weights of a token's attributes, in their order."""
        cdef double value
        if depth > MAX_DEPTH:
            raise ValueError(f"token {t}: features are nested deeper than {MAX_DEPTH} levels")
        if isinstance(token, str):
            raise TypeError(f"token {t} is the text {token!r}; wanted a list of attributes or a dict of features")
        if not hasattr(token, "items"):
            for name in token:
                if not isinstance(name, str):
                    raise TypeError(f"token {t}: attributes must be str, got {name!r}")
                self.add(lattice, t, name if prefix is None else prefix + name, 1.0)
            return 0
        for name, given in token.items():
            if not isinstance(name, str):
                raise TypeError(f"token {t}: names of features must be str, got {name!r}")
            if prefix is not None:
                name = prefix + name
            if isinstance(given, str):
                self.add(lattice, t, f"{name}:{given}", 1.0)
            elif isinstance(given, (list, tuple, set, frozenset)) or hasattr(given, "items"):
                self.read(lattice, t, given, f"{name}:", depth + 1)
            else:
                try:
                    value = given
                except TypeError:
                    raise TypeError(f"token {t}: feature {name!r} must be a number, text, list or dict, "
                                    f"got {given!r}") from None
                if not isfinite(value):
                    raise ValueError(f"token {t}: feature {name!r} must be finite, got {given!r}")
                self.add(lattice, t, name, value)
        return 0

    cdef int add(self, Lattice lattice, Py_ssize_t t, name, double value) except -1:
        cdef object found = self.names.get(name)
        cdef Py_ssize_t k = len(self._labels), row, at
        cdef double *scores = lattice.state + t * k
        if found is None:
            return 0
        row = found
        for at in range(self.starts[row], self.starts[row + 1]):
            scores[self.targets[at]] += self.weights[at] * value
        if t and self.has_pairs and self.pair_starts[row] < self.pair_starts[row + 1]:
            if lattice.own[t] == NULL:
                lattice.own[t] = <double *>malloc(k * k * sizeof(double))
                if lattice.own[t] == NULL:
                    raise MemoryError
                memcpy(lattice.own[t], &self.transitions[0, 0], k * k * sizeof(double))
            for at in range(self.pair_starts[row], self.pair_starts[row + 1]):
                lattice.own[t][self.pair_targets[at]] += self.pair_weights[at] * value
        return 0

    cdef const double *into(self, Lattice lattice, Py_ssize_t t) noexcept:
        return lattice.own[t] if lattice.own[t] != NULL else &self.transitions[0, 0]

    cdef double total(self, const double *a, const double *shifted, double most, Lattice lattice, Py_ssize_t t,
                      Py_ssize_t y, bint forwards) noexcept:
        """log sum_i exp(a_i + w_iy), or with w_yi where not `forwards`; shifted_i = exp(a_i - most)."""
        cdef Py_ssize_t k = len(self._labels), i
        cdef Py_ssize_t first = y if forwards else y * k, step = k if forwards else 1
        cdef const double *w
        cdef double peak = -INFINITY, sum = 0
        if self.tabulated and lattice.own[t] == NULL:
            w = &self.table[0, 0] + first
            for i in range(k):
                sum += shifted[i] * w[i * step]
            return most + self.top + log(sum)
        w = self.into(lattice, t) + first
        for i in range(k):
            peak = max(peak, a[i] + w[i * step])
        for i in range(k):
            sum += exp(a[i] + w[i * step] - peak)
        return peak + log(sum)

    cdef double forward(self, Lattice lattice, double[:, ::1] alpha):
        """alpha[t, j] = log sum over labels before t of exp(score up to and with label j at t). The log partition."""
        cdef Py_ssize_t k = len(self._labels), t, y
        cdef double[::1] shifted = np.empty(k)
        cdef double most, sum = 0
        for y in range(k):
            alpha[0, y] = lattice.state[y]
        for t in range(1, lattice.n):
            most = largest(&alpha[t - 1, 0], k)
            for y in range(k):
                shifted[y] = exp(alpha[t - 1, y] - most)
            for y in range(k):
                alpha[t, y] = lattice.state[t * k + y] + self.total(
                    &alpha[t - 1, 0], &shifted[0], most, lattice, t, y, True)
        most = largest(&alpha[lattice.n - 1, 0], k)
        for y in range(k):
            sum += exp(alpha[lattice.n - 1, y] - most)
        return most + log(sum)

    cdef double path_score(self, Lattice lattice, labels):
        cdef Py_ssize_t k = len(self._labels), t, y, before = 0
        cdef double sum = 0
        if len(labels) != lattice.n:
            raise ValueError(f"labels must be as many as tokens, {lattice.n}, got {len(labels)}")
        for t in range(lattice.n):
            try:
                y = self.numbers[labels[t]]
            except KeyError:
                raise ValueError(f"labels[{t}] is {labels[t]!r}, which the model does not have") from None
            sum += lattice.state[t * k + y]
            if t:
                sum += self.into(lattice, t)[before * k + y]
            before = y
        return sum

    def tag(self, sequence):
        """Labels with the highest score: list of str, one per token."""
        cdef Lattice lattice = self.fill(sequence)
        cdef Py_ssize_t k = len(self._labels), t, i, j, argmax
        cdef double score, most
        cdef const double *w
        cdef double[:, ::1] best
        cdef int32_t[:, ::1] back
        if lattice.n == 0:
            return []
        best = np.empty((lattice.n, k))
        back = np.zeros((lattice.n, k), np.int32)
        for j in range(k):
            best[0, j] = lattice.state[j]
        for t in range(1, lattice.n):
            w = self.into(lattice, t)
            for j in range(k):
                most, argmax = -INFINITY, 0
                for i in range(k):
                    score = best[t - 1, i] + w[i * k + j]
                    if score > most:
                        most, argmax = score, i
                best[t, j] = most + lattice.state[t * k + j]
                back[t, j] = argmax
        most, argmax = -INFINITY, 0
        for j in range(k):
            if best[lattice.n - 1, j] > most:
                most, argmax = best[lattice.n - 1, j], j
        labels = [None] * lattice.n
        for t in range(lattice.n - 1, -1, -1):
            labels[t] = self._labels[argmax]
            argmax = back[t, argmax]
        return labels

    def score(self, sequence, labels):
        """Sum of the weights of `labels`."""
        return self.path_score(self.fill(sequence), labels)

    def log_partition(self, sequence):
        """log sum over all labellings of exp(score); 0 for no tokens."""
        cdef Lattice lattice = self.fill(sequence)
        return self.forward(lattice, np.empty((lattice.n, len(self._labels)))) if lattice.n else 0.0

    def probability(self, sequence, labels):
        """exp(score of `labels` - log_partition)."""
        cdef Lattice lattice = self.fill(sequence)
        cdef double score = self.path_score(lattice, labels)
        if lattice.n == 0:
            return 1.0
        return exp(score - self.forward(lattice, np.empty((lattice.n, len(self._labels)))))

    def marginals(self, sequence):
        """Probability of each label at each token: array (n_tokens, K)."""
        cdef Lattice lattice = self.fill(sequence)
        cdef Py_ssize_t k = len(self._labels), n = lattice.n, t, y
        cdef double log_z, most
        cdef double[:, ::1] alpha = np.empty((n, k))
        cdef double[::1] beta = np.zeros(k), after = np.empty(k), shifted = np.empty(k)
        if n == 0:
            return np.asarray(alpha)
        log_z = self.forward(lattice, alpha)
        # beta_i = log sum_j exp(w_ij + after_j), where after_j is the score of label j at t + 1 and all that follows.
        for t in range(n - 1, -1, -1):
            if t + 1 < n:
                for y in range(k):
                    after[y] = lattice.state[(t + 1) * k + y] + beta[y]
                most = largest(&after[0], k)
                for y in range(k):
                    shifted[y] = exp(after[y] - most)
                for y in range(k):
                    beta[y] = self.total(&after[0], &shifted[0], most, lattice, t + 1, y, False)
            for y in range(k):
                alpha[t, y] = exp(alpha[t, y] + beta[y] - log_z)
        return np.asarray(alpha)

    def kbest(self, sequence, k):
        """The `k` best labellings, best first: list of (score, labels); fewer where there are no more."""
        cdef Lattice lattice = self.fill(sequence)
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        if lattice.n == 0:
            return [(0.0, [])]
        n_labels = len(self._labels)
        column = [[(lattice.state[y], -1, 0)] for y in range(n_labels)]
        columns = [column]
        for t in range(1, lattice.n):
            previous, column = column, []
            for y in range(n_labels):
                ways = [
                    (best[0] + self.into(lattice, t)[<Py_ssize_t>(i * n_labels + y)] + lattice.state[t * n_labels + y],
                     i, rank)
                    for i, ranked in enumerate(previous) for rank, best in enumerate(ranked)
                ]
                ways.sort(key=negative_score)
                column.append(ways[:k])
            columns.append(column)
        ends = [(best[0], y, rank) for y, ranked in enumerate(column) for rank, best in enumerate(ranked)]
        ends.sort(key=negative_score)
        return [(score, self.followed(columns, y, rank)) for score, y, rank in ends[:k]]

    cdef list followed(self, list columns, y, rank):
        labels = []
        for column in reversed(columns):
            labels.append(self._labels[y])
            _, y, rank = column[y][rank]
        labels.reverse()
        return labels


def negative_score(way):
    return -way[0]


def rebuilt(labels, attributes, starts, targets, weights, transitions, start, end, pair_starts, pair_targets,
            pair_weights):
    return Tagger(labels, attributes, starts, targets, weights, transitions, start=start, end=end,
                  pair_starts=pair_starts, pair_targets=pair_targets, pair_weights=pair_weights)
