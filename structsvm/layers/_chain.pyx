"""Chains of a batch: the loops over its entries, around the kernels of potentials.h.

Entries that share their transitions are computed side by side, in groups of nearly equal lengths. The groups depend on
the batch alone, so that the bits do not depend on how it is split among threads.
"""

from cython cimport floating
from libc.math cimport INFINITY, exp
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

import numpy as np

from structsvm._arrays cimport array_data
from structsvm.execution._processor cimport kernel_set
from structsvm.execution._stop cimport poll

cdef extern from "potentials.h" nogil:
    ctypedef struct potentials:
        int64_t T, S, K, each, apart
        const void* E
        const void* A
        const void* start
        const void* end
        void* rows
        void* tables
        double* logs
        double* sums
    ctypedef struct potentials_kernels:
        int lanes
        int (*sums[2])(const potentials* s, double* log_z, void* nodes, void* pairs) except -1 nogil
        int (*best[2])(const potentials* s, int32_t* states) except -1 nogil
        int (*beside)(const potentials* s, double* log_z, float** nodes, float** pairs) except -1 nogil
        int (*within)(const void* numbers, int is_double, int64_t n, double most) noexcept nogil
    const potentials_kernels* potentials_kernels_of(int set, int (*poll)(int64_t work) except -1 nogil)

cdef const potentials_kernels* KERNELS = potentials_kernels_of(kernel_set(), poll)


# Groups with fewer entries are computed one by one, which is then as fast.
cdef enum:
    MOST_LANES = 16
    LEAST_BESIDE = 3


cdef class _Room:
    """Scratch of some groups, and where their results go."""

    cdef object arrays
    cdef void* rows
    cdef void* tables
    cdef double* totals
    cdef double* logs
    cdef double* values
    cdef char* nodes
    cdef char* pairs
    cdef Py_ssize_t longest, step

    def __cinit__(self, Batch batch, Py_ssize_t longest):
        cdef Py_ssize_t S = batch.scores.S, K = batch.scores.K, wide = (K + 3) // 4 * 4, lanes = batch.together
        self.longest = longest
        rows = np.empty(max(2 * longest * S, (2 * longest + 3) * wide * lanes), batch.dtype)
        tables = np.empty(max(3 * S * K + 5 * S, 2 * wide * wide), batch.dtype)
        totals = np.empty(S * K)
        self.arrays = [rows, tables, totals]
        self.rows, self.tables, self.totals = array_data(rows), array_data(tables), <double*> array_data(totals)

    cdef int add_logs(self, Py_ssize_t S) except -1:
        logs = np.empty(2 * self.longest * S + 2 * S)
        self.arrays.append(logs)
        self.logs = <double*> array_data(logs)
        return 0


cdef class Batch:
    """Scores of a batch in arrays of one type: emissions (B, T, S), transitions (1 or B, 1 or T - 1, S, K).

    S states, K of which may follow each (see potentials.h). `start` and `end` are arrays (1, S), `lengths` an array
    (B,). Scratch is allocated by each call. Pairs of states are those of each step where steps have transitions of
    their own, or with `apart`; otherwise their sum.
    """

    cdef potentials scores
    cdef object arrays, dtype
    cdef int is_double
    cdef const char* emissions
    cdef const char* transitions
    cdef const int64_t* lengths
    cdef Py_ssize_t size, per_entry, width, n, together
    cdef int64_t* order

    def __init__(self, emissions, transitions, start, end, lengths, bint apart=False):
        self.arrays = emissions, transitions, start, end, lengths
        self.emissions, self.transitions = <const char*> array_data(emissions), <const char*> array_data(transitions)
        self.dtype, self.lengths = emissions.dtype, <const int64_t*> array_data(lengths)
        self.size = emissions.itemsize
        self.is_double = self.size == 8
        self.scores.S, self.scores.K = transitions.shape[2], transitions.shape[3]
        self.width = emissions.shape[1] * self.scores.S
        self.scores.each = 0
        if transitions.shape[1] != 1:
            self.scores.each = self.scores.S * self.scores.K
        self.scores.apart = apart or self.scores.each > 0
        self.per_entry = transitions[0].size if transitions.shape[0] > 1 else 0
        self.n, self.together = len(lengths), 1
        if not (self.is_double or self.scores.apart or self.per_entry) and self.scores.S == self.scores.K:
            self.together = KERNELS.lanes
        cdef Py_ssize_t b, ascents = 0
        for b in range(1, self.n):
            ascents += self.lengths[b] > self.lengths[b - 1]
        order = np.argsort(-lengths, kind="stable") if ascents else np.arange(self.n)
        self.arrays += (order,)
        self.order = <int64_t*> array_data(order)
        self.scores.start = array_data(start)
        self.scores.end = array_data(end)

    @property
    def n_groups(self):
        """Groups of entries that are computed side by side."""
        return (self.n + self.together - 1) // self.together

    cdef potentials entry(self, Py_ssize_t b) noexcept nogil:
        cdef potentials s = self.scores
        s.T = self.lengths[b]
        s.E = self.emissions + b * self.width * self.size
        s.A = self.transitions + b * self.per_entry * self.size
        return s

    cdef Py_ssize_t longest(self, Py_ssize_t first, Py_ssize_t last):
        """The most tokens of an entry of some groups."""
        cdef Py_ssize_t place
        cdef int64_t longest = 0
        for place in range(first * self.together, min(last * self.together, self.n)):
            longest = max(longest, self.lengths[self.order[place]])
        return longest

    def sums(self, Py_ssize_t first, Py_ssize_t last, log_z, nodes, pairs):
        """Write log partitions of groups first .. last - 1 and, unless `nodes` is None, their entries' marginals.

        Marginals beyond a length are 0; those of an entry without any labelling are of no use.
        """
        cdef _Room room = _Room(self, self.longest(first, last))
        cdef Py_ssize_t group, place, stop, b
        cdef int lane, alone
        room.values = <double*> array_data(log_z)
        if nodes is not None:
            room.nodes, room.pairs = <char*> array_data(nodes), <char*> array_data(pairs)
            room.step = pairs[0].size
        with nogil:
            for group in range(first, last):
                place, stop = group * self.together, min((group + 1) * self.together, self.n)
                if room.nodes != NULL:
                    self.clear(room, place, stop)
                alone = (1 << (stop - place)) - 1
                if stop - place >= LEAST_BESIDE:
                    alone &= self.beside(room, place, stop)
                for lane in range(stop - place):
                    if alone >> lane & 1:
                        b = self.order[place + lane]
                        self.by_itself(room, b)

    cdef void clear(self, _Room room, Py_ssize_t place, Py_ssize_t stop) noexcept nogil:
        """Write zeros behind the last tokens of a group's entries."""
        cdef Py_ssize_t b, used, tokens
        for place in range(place, stop):
            b = self.order[place]
            tokens = self.lengths[b]
            used = tokens * self.scores.S
            memset(room.nodes + (b * self.width + used) * self.size, 0, (self.width - used) * self.size)
            used = room.step if tokens else 0
            if self.scores.apart:
                used = max(tokens - 1, 0) * self.scores.S * self.scores.K
            memset(room.pairs + (b * room.step + used) * self.size, 0, (room.step - used) * self.size)

    cdef int beside(self, _Room room, Py_ssize_t place, Py_ssize_t stop) except -1 nogil:
        """The sums of a group; returns the lanes that are yet to be computed, a bit each."""
        cdef potentials s[MOST_LANES]
        cdef double values[MOST_LANES]
        cdef float* nodes[MOST_LANES]
        cdef float* pairs[MOST_LANES]
        cdef Py_ssize_t b
        cdef int lane, alone
        for lane in range(self.together):
            b = self.order[min(place + lane, stop - 1)]
            s[lane] = self.entry(b)
            s[lane].rows, s[lane].tables = room.rows, room.tables
            if place + lane >= stop:
                s[lane].T = 0
            if room.nodes != NULL:
                nodes[lane] = <float*> (room.nodes + b * self.width * self.size)
                pairs[lane] = <float*> (room.pairs + b * room.step * self.size)
        alone = KERNELS.beside(s, values, NULL if room.nodes == NULL else nodes, pairs)
        for lane in range(stop - place):
            room.values[self.order[place + lane]] = values[lane]
        return alone

    cdef int by_itself(self, _Room room, Py_ssize_t b) except -1 nogil:
        """The sums of an entry, in logs where there is no other way."""
        cdef potentials s = self.entry(b)
        cdef void* nodes = NULL if room.nodes == NULL else room.nodes + b * self.width * self.size
        cdef void* pairs = NULL if room.nodes == NULL else room.pairs + b * room.step * self.size
        s.rows, s.tables, s.sums, s.logs = room.rows, room.tables, room.totals, room.logs
        if s.T == 0:
            room.values[b] = 0.0
        elif KERNELS.sums[self.is_double](&s, room.values + b, nodes, pairs):
            with gil:
                room.add_logs(self.scores.S)
            s.logs = room.logs
            KERNELS.sums[self.is_double](&s, room.values + b, nodes, pairs)
        return 0

    def best(self, Py_ssize_t first, Py_ssize_t last, states):
        """Write the states of the best labellings; returns the first entry that has none, or -1."""
        cdef Py_ssize_t b, empty = -1, S = self.scores.S, longest = max(self.arrays[4][first:last], default=0)
        rows, tables = np.empty(2 * longest * S, self.dtype), np.empty(S, self.dtype)
        cdef int32_t* out = <int32_t*> array_data(states)
        cdef void* row = array_data(rows)
        cdef void* table = array_data(tables)
        cdef Py_ssize_t step = states.shape[1]
        cdef potentials s
        with nogil:
            for b in range(first, last):
                s = self.entry(b)
                s.rows, s.tables = row, table
                if s.T and KERNELS.best[self.is_double](&s, out + b * step):
                    empty = b
                    break
        return empty

    def draws(self, Py_ssize_t first, Py_ssize_t last, generators, states):
        """Write states of independent labellings of some entries; returns the first one that has none, or -1.

        Forwards once as for the log partition, then backwards for each sample, by one uniform number a token.

        Parameters
        ----------
        generators : list of numpy.random.Generator, one per entry of the batch
        states : int32 array (B, n_samples, T)
        """
        cdef Py_ssize_t b, k, n_samples = states.shape[1], longest = states.shape[2]
        cdef _Room room = _Room(self, max(self.arrays[4][first:last], default=0))
        cdef int32_t* states_of = <int32_t*> array_data(states)
        cdef int32_t* out
        cdef const double* uniform
        cdef double log_z
        cdef potentials s
        weights = np.empty(self.scores.S)
        cdef double* weight = <double*> array_data(weights)
        for b in range(first, last):
            s = self.entry(b)
            uniforms, out = generators[b].random((s.T, n_samples)), states_of + b * n_samples * longest
            if s.T == 0:
                continue
            s.rows, s.tables, s.sums, s.logs = room.rows, room.tables, room.totals, NULL
            with nogil:
                if KERNELS.sums[self.is_double](&s, &log_z, NULL, NULL):
                    with gil:
                        room.add_logs(s.S)
                    s.logs = room.logs
                    KERNELS.sums[self.is_double](&s, &log_z, NULL, NULL)
            if log_z == -INFINITY:
                return b
            uniform = <const double*> array_data(uniforms)
            with nogil:
                for k in range(n_samples):
                    if self.is_double:
                        draw(&s, <const double*> s.rows, uniform + k, n_samples, weight, out)
                    else:
                        draw(&s, <const float*> s.rows, uniform + k, n_samples, weight, out)
                    out += longest
                    poll(s.T * (10 + s.S))
        return -1

    def less_known(self, y, values, nodes, pairs):
        """Write scores of labellings of all entries, and take their indicators off marginals, of a chain of order 1."""
        cdef Py_ssize_t b, longest = y.shape[1], step = pairs.size // max(self.n, 1)
        cdef const int32_t* labels = <const int32_t*> array_data(y)
        cdef double* out = <double*> array_data(values)
        cdef char* node = <char*> array_data(nodes)
        cdef char* pair = <char*> array_data(pairs)
        cdef potentials s
        with nogil:
            for b in range(self.n):
                s = self.entry(b)
                if self.is_double:
                    out[b] = less_labels[double](&s, labels + b * longest, (<double*> node) + b * self.width,
                                                 (<double*> pair) + b * step)
                else:
                    out[b] = less_labels[float](&s, labels + b * longest, (<float*> node) + b * self.width,
                                                (<float*> pair) + b * step)


cdef void draw(
    const potentials* s, const floating* alphas, const double* uniforms, Py_ssize_t step, double* weights, int32_t* path
) noexcept nogil:
    """Draw a path of states backwards: a comes before state g K + q by alpha[a] exp(A[a][q]), for a = x G + g."""
    cdef int64_t t, x, S = s.S, K = s.K, G = S // K, g, state
    cdef const floating* R = alphas + s.T * S
    cdef const floating* turned = <const floating*> s.tables + S * K    # as `table_of` of chain_scaled.h leaves it
    cdef double all = 0.0
    for x in range(S):
        weights[x] = exp(s.logs[(s.T - 1) * S + x]) if s.logs != NULL else alphas[(s.T - 1) * S + x]
        all += weights[x]
    state = place_of(weights, NULL, S, 1, uniforms[(s.T - 1) * step] * all)
    path[s.T - 1] = <int32_t> state
    for t in range(s.T - 2, -1, -1):
        g = state // K
        if s.logs == NULL and s.each == 0:
            all = R[(t + 1) * S + state]
            x = place_of(alphas + t * S + g, turned + state * K, K, G, uniforms[t * step] * all)
        else:
            all = weigh_before(s, alphas, t, g, state % K, weights)
            x = place_of(weights, NULL, K, 1, uniforms[t * step] * all)
        state = x * G + g
        path[t] = <int32_t> state


cdef int64_t place_of(
    const floating* weights, const floating* factors, int64_t n, int64_t step, double below
) noexcept nogil:
    """The first place at which the sum of weights, `step` apart, times factors exceeds `below`."""
    cdef int64_t x, last = 0
    cdef double weight
    for x in range(n):
        weight = weights[x * step]
        if factors != NULL:
            weight *= factors[x]
        if weight > 0.0:
            last, below = x, below - weight
            if below < 0.0:
                break
    return last


cdef double weigh_before(
    const potentials* s, const floating* alphas, int64_t t, int64_t g, int64_t q, double* weights
) noexcept nogil:
    """Weights of the K states of token t that may come before state g K + q, and their sum."""
    cdef int64_t x, at, K = s.K, G = s.S // K
    cdef const floating* A = <const floating*> s.A + t * s.each + q
    cdef double top = -INFINITY, all = 0.0, score
    for x in range(K):
        at = t * s.S + x * G + g
        score = A[(x * G + g) * K]
        if s.logs != NULL:
            score += s.logs[at]
        elif not alphas[at] > 0:
            score = -INFINITY
        weights[x], top = score, max(top, score)
    for x in range(K):
        weights[x] = exp(weights[x] - top)
        if s.logs == NULL:
            weights[x] *= alphas[t * s.S + x * G + g]
        all += weights[x]
    return all


cdef double less_labels(const potentials* s, const int32_t* y, floating* nodes, floating* pairs) noexcept nogil:
    """The score of a labelling; 1 is taken off the numbers of its labels and pairs."""
    cdef int64_t t, pair, K = s.K
    cdef const floating* E = <const floating*> s.E
    cdef const floating* A = <const floating*> s.A
    cdef double value = 0.0
    if s.T == 0:
        return value
    value += (<const floating*> s.start)[y[0]] + (<const floating*> s.end)[y[s.T - 1]]
    for t in range(s.T):
        value += E[t * K + y[t]]
        nodes[t * K + y[t]] -= 1
        if t > 0:
            pair = y[t - 1] * K + y[t]
            value += A[(t - 1) * s.each + pair]
            pairs[(0 if s.each == 0 else t - 1) * K * K + pair] -= 1
    return value


def within(array, double most):
    """Whether all numbers of a contiguous array, float32 or float64, are between -most and most."""
    cdef const void* numbers = array_data(array)
    cdef int64_t n = array.size
    cdef bint is_double = array.itemsize == 8, found
    with nogil:
        found = KERNELS.within(numbers, is_double, n, most)
    return found
