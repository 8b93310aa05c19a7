"""Chains of a batch: the loops over its entries, around the kernels of potentials.h.

Entries that share their transitions are computed side by side, in groups of nearly equal lengths. The groups depend on
the batch alone, so that the bits do not depend on how it is split among threads.
"""

from cython cimport floating
from libc.math cimport INFINITY, exp, fabs
from libc.stdint cimport int32_t, int64_t, uint8_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

import numpy as np

from structsvm._arrays cimport array_data, array_shape, ndarray, scratch, scratch_data
from structsvm.execution._foreign cimport (
    XLA_DOUBLE, XLA_FLOAT, XLA_INT32, XLA_INT64, Quick, array_of, data_of, xla_array, xla_arrays
)
from structsvm.execution._processor cimport kernel_set
from structsvm.execution._stop cimport each_part, poll, threads_for
from structsvm.layers._detours cimport detour, detours_add, detours_take

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
        int (*beside)(const potentials* s, double* log_z, float** nodes, float** pairs, double* totals) except -1 nogil
        int (*within)(const void* numbers, int is_double, int64_t n, double most) noexcept nogil
        int (*labels)(const int32_t* y, int64_t n, int32_t last) noexcept nogil
        void (*add)(const float* rows, int64_t n_rows, int64_t step, int64_t n, double* totals) noexcept nogil
        void (*total)(const double* rows, int64_t n_rows, int64_t step, int64_t n, float* out) noexcept nogil
    const potentials_kernels* potentials_kernels_of(int set, int (*poll)(int64_t work) except -1 nogil)

cdef extern from "numpy/ndarraytypes.h" nogil:
    int NPY_FLOAT, NPY_DOUBLE
    bint PyArray_ISCARRAY_RO(ndarray array)
    int PyArray_TYPE(ndarray array)
    int PyArray_NDIM(ndarray array)

cdef extern from "float.h":
    const double FLT_MAX

# For floats, and for doubles, which the third set has not: they gain nothing from it.
cdef const potentials_kernels* KERNELS = potentials_kernels_of(kernel_set(), poll)
cdef const potentials_kernels* OF_DOUBLES = potentials_kernels_of(min(kernel_set(), 1), poll)


# Scores, float32 or float64, are less, so that their sums, which are of float64, and the differences of two do not
# overflow.
cdef double MOST_FLOAT = FLT_MAX / 8, MOST_DOUBLE = 1e300
GREATEST = MOST_FLOAT, MOST_DOUBLE


cdef bint scores_within(const void* scores, bint is_double, int64_t n) noexcept nogil:
    return KERNELS.within(scores, is_double, n, MOST_DOUBLE if is_double else MOST_FLOAT)


cdef bint scores_allowed(const void* scores, bint is_double, int64_t n) noexcept nogil:
    if is_double:
        return are_allowed(<const double*> scores, n, MOST_DOUBLE)
    return are_allowed(<const float*> scores, n, MOST_FLOAT)


cdef bint are_allowed(const floating* scores, int64_t n, double most) noexcept nogil:
    cdef int64_t j
    for j in range(n):
        if not (scores[j] < most and (scores[j] > -most or scores[j] == -INFINITY)):
            return False
    return True


# Groups with fewer entries are computed one by one, which is then as fast.
cdef enum:
    MOST_LANES = 16
    LEAST_BESIDE = 3


# Scratch of earlier calls, the last of which is taken first: the system takes as long to give pages anew as some
# batches take to be computed.
cdef enum:
    MOST_SPARE = 2
    SMALLEST_SPARE = 1 << 16
    LARGEST_SPARE = 1 << 24
    LINE = 64       # bytes that processors pass on at once; vectors within one are loaded sooner

cdef list SPARE = []


cdef object spare_scratch(Py_ssize_t size):
    while size >= SMALLEST_SPARE and SPARE:
        try:
            room = SPARE.pop()
        except IndexError:      # by another thread, where Python has no lock for all of them
            break
        if len(<bytes> room) >= size:
            return room
    return scratch(NULL, size)


cdef int keep_scratch(object room) except -1:
    if SMALLEST_SPARE <= len(<bytes> room) <= LARGEST_SPARE and len(SPARE) < MOST_SPARE:
        SPARE.append(room)
    return 0


cdef Py_ssize_t whole_lines(Py_ssize_t size) noexcept nogil:
    return (size + LINE - 1) // LINE * LINE


cdef char* next_line(void* place) noexcept nogil:
    return <char*> ((<uintptr_t> place + LINE - 1) // LINE * LINE)


cdef char* first_line(object room):
    """Where the first whole line of scratch begins."""
    return next_line(scratch_data(room))


# Scratch of a thread; `logs` is NULL until logs are needed.
cdef struct chain_room:
    double* totals
    double* logs
    void* rows
    void* tables
    void* pairs


# The sums of a batch: where they go, labellings whose indicators are taken off, each thread's scratch, and a list for
# what is added to it. `totals` has sums over each group's entries, of pairs and of first and last tokens, or is NULL.
# `beyond` is for groups with numbers out of bounds, which are left out, or NULL: none is.
cdef struct chains_task:
    void* batch
    chain_room* rooms
    void* more
    double* totals
    double* values
    char* nodes
    char* pairs
    char* first
    char* last
    const int32_t* labels
    double* known
    uint8_t* beyond
    Py_ssize_t step, longest


cdef int sums_of_group(void* task, int slot, int64_t group) except -1 nogil:
    cdef const chains_task* t = <const chains_task*> task
    return (<Batch> t.batch).sum_group(t, t.rooms + slot, group)


cdef class Batch:
    """Scores of a batch in arrays of one type: emissions (B, T, S), transitions (1 or B, 1 or T - 1, S, K).

    S states, K of which may follow each (see potentials.h). `start` and `end` are arrays (1, S), `lengths` an array
    (B,). Scratch is allocated by each call. Pairs of states are those of each step where steps have transitions of
    their own, or with `apart`; otherwise their sum.
    """

    cdef potentials scores
    cdef const potentials_kernels* kernels
    cdef object arrays, dtype
    cdef int is_double
    cdef const char* emissions
    cdef const char* transitions
    cdef const int64_t* lengths
    cdef Py_ssize_t size, per_entry, width, n, together
    cdef int64_t* order

    def __init__(self, emissions, transitions, start, end, lengths, bint apart=False):
        cdef Py_ssize_t* steps = array_shape(transitions)
        cdef Py_ssize_t b, ascents = 0
        self.emissions, self.transitions = <const char*> array_data(emissions), <const char*> array_data(transitions)
        self.dtype, self.lengths = emissions.dtype, <const int64_t*> array_data(lengths)
        self.size, self.n, self.together = emissions.itemsize, array_shape(lengths)[0], 1
        self.is_double = self.size == 8
        self.kernels = OF_DOUBLES if self.is_double else KERNELS
        self.scores.S, self.scores.K = steps[2], steps[3]
        self.width = array_shape(emissions)[1] * self.scores.S
        self.scores.each = self.scores.S * self.scores.K if steps[1] != 1 else 0
        self.per_entry = steps[1] * steps[2] * steps[3] if steps[0] > 1 else 0
        self.scores.apart = apart or self.scores.each > 0
        if not (self.is_double or self.scores.apart or self.per_entry) and self.scores.S == self.scores.K:
            self.together = KERNELS.lanes
        for b in range(1, self.n):
            ascents += self.lengths[b] > self.lengths[b - 1]
        order = np.argsort(-lengths, kind="stable") if ascents else None
        self.arrays = emissions, transitions, start, end, lengths, order
        self.order = NULL if order is None else <int64_t*> array_data(order)
        self.scores.start = array_data(start)
        self.scores.end = array_data(end)

    cdef Py_ssize_t at(self, Py_ssize_t place) noexcept nogil:
        """The entry at a place in the order of lengths."""
        return place if self.order == NULL else self.order[place]

    cdef potentials entry(self, Py_ssize_t b) noexcept nogil:
        cdef potentials s = self.scores
        s.T = self.lengths[b]
        s.E = self.emissions + b * self.width * self.size
        s.A = self.transitions + b * self.per_entry * self.size
        return s

    cdef Py_ssize_t divide(self, char* held, Py_ssize_t longest, chain_room* room) noexcept nogil:
        """Divide a thread's scratch for entries of so many tokens, from a whole line on; returns its bytes.

        It has doubles of all pairs, two rows of all tokens, of one entry or of those side by side, tables, and pairs.
        """
        cdef Py_ssize_t S = self.scores.S, K = self.scores.K, wide = (K + 3) // 4 * 4
        cdef Py_ssize_t rows = whole_lines(8 * S * K)
        cdef Py_ssize_t tables = rows + whole_lines(
            max(2 * longest * S, (2 * longest + 3) * wide * self.together) * self.size
        )
        cdef Py_ssize_t pairs = tables + whole_lines(max(3 * S * K + 5 * S, 2 * wide * wide) * self.size)
        if room != NULL:
            room.totals, room.logs, room.rows = <double*> held, NULL, held + rows
            room.tables, room.pairs = held + tables, held + pairs
        return pairs + whole_lines(S * K * self.size)

    cdef int add_logs(self, list more, Py_ssize_t longest, chain_room* room) except -1:
        """Add scratch for sums of logs, which `more` holds."""
        if room.logs == NULL:
            logs = scratch(NULL, 8 * (2 * longest + 3) * self.scores.S)
            more.append(logs)
            room.logs = <double*> scratch_data(logs)
        return 0

    @property
    def adds(self):
        """Whether `sums` can add up pairs and edges of all entries, as those side by side are."""
        return self.together > 1 and self.n >= LEAST_BESIDE

    def sums(
        self, int n_threads, log_z, nodes, pairs, edges=None, y=None, known=None, bint added=False, bint looks=False
    ):
        """Write log partitions and, unless `nodes` is None, marginals, which are of no use without any labelling.

        Returns False, and has not written all, if it `looks` for emissions out of bounds and finds some.

        With y, labellings of a chain of order 1, all of which are known within the lengths, their scores are written,
        and their indicators taken off the marginals. Marginals beyond a length are 0.

        Parameters
        ----------
        log_z, known : float64 arrays (B,)
        nodes, pairs : arrays like emissions and transitions, of all entries, or None
        edges : tuple of two arrays (B, S), optional
            They get the marginals of the first and the last token of each entry that has some.
        y : int32 array (B, T)
        added : bool
            Whether pairs (S, K) and both edges (S,) get the sums over all entries; only where `adds`.
        """
        cdef chains_task t
        cdef Py_ssize_t longest = self.lengths[self.at(0)] if self.n else 0, slot, size
        cdef int64_t n_groups = (self.n + self.together - 1) // self.together, S = self.scores.S, K = self.scores.K
        cdef int64_t work = self.work_of(self.n * longest)
        memset(&t, 0, sizeof(t))
        t.batch, t.values = <void*> self, <double*> array_data(log_z)
        if nodes is not None:
            t.nodes, t.pairs = <char*> array_data(nodes), <char*> array_data(pairs)
            t.step = pairs.size // max(self.n, 1)
        if edges is not None:
            t.first, t.last = <char*> array_data(edges[0]), <char*> array_data(edges[1])
        if y is not None:
            t.labels, t.known = <const int32_t*> array_data(y), <double*> array_data(known)
        n_threads, size, more = threads_for(n_threads, n_groups, work), self.divide(NULL, longest, NULL), []
        held, places = spare_scratch(n_threads * size + LINE), scratch(NULL, n_threads * sizeof(chain_room))
        t.rooms, t.more, t.longest = <chain_room*> scratch_data(places), <void*> more, longest
        for slot in range(n_threads):
            self.divide(first_line(held) + slot * size, longest, t.rooms + slot)
        totals = spare_scratch(8 * n_groups * S * (K + 2)) if added else b""
        if added:
            t.totals = <double*> scratch_data(totals)
        beyond = bytearray(n_groups if looks else 0)
        if looks:
            t.beyond = beyond
        each_part(sums_of_group, &t, n_groups, n_threads)
        if added:
            self.add_groups(&t, n_groups)
        keep_scratch(totals)
        keep_scratch(held)      # taken first: a thread gets what it had, which is in the cache of its processor
        return 1 not in beyond

    cdef void add_groups(self, const chains_task* t, int64_t n_groups) noexcept nogil:
        cdef int64_t S = self.scores.S, n = S * self.scores.K, step = n + 2 * S
        KERNELS.total(t.totals, n_groups, step, n, <float*> t.pairs)
        KERNELS.total(t.totals + n, n_groups, step, S, <float*> t.first)
        KERNELS.total(t.totals + n + S, n_groups, step, S, <float*> t.last)

    cdef int sum_group(self, const chains_task* t, chain_room* room, Py_ssize_t group) except -1 nogil:
        cdef Py_ssize_t place = group * self.together, stop = min(place + self.together, self.n), b
        cdef Py_ssize_t n_totals = self.scores.S * (self.scores.K + 2), tokens = 0
        cdef int lane, alone = (1 << (stop - place)) - 1
        cdef double* totals = NULL
        if t.totals != NULL:
            totals = t.totals + group * n_totals
            memset(totals, 0, n_totals * sizeof(double))
        if t.beyond != NULL and not self.are_within(place, stop):
            t.beyond[group] = True
            return 0
        if t.nodes != NULL:
            self.clear(t, place, stop)
        if stop - place >= LEAST_BESIDE:
            alone &= self.beside(t, room, place, stop, totals)
        for lane in range(<int> (stop - place)):
            b = self.at(place + lane)
            if alone >> lane & 1:
                self.by_itself(t, room, b, totals)
            if t.labels != NULL:
                self.less_known(t, b, totals)
            if t.first != NULL and self.lengths[b]:
                self.copy_edges(t, b, totals)
            tokens += self.lengths[b]
        poll(self.work_of(tokens))      # kernels count nothing of short sequences
        return 0

    cdef int64_t work_of(self, int64_t tokens) noexcept nogil:
        """Nanoseconds or so that so many tokens take."""
        return tokens * (10 + self.scores.S * (self.scores.K + 20) // 24)

    cdef bint are_within(self, Py_ssize_t place, Py_ssize_t stop) noexcept nogil:
        """Whether the emissions of a group are masks or in bounds."""
        cdef Py_ssize_t b, n
        cdef const char* scores
        for place in range(place, stop):
            b = self.at(place)
            scores, n = self.emissions + b * self.width * self.size, self.lengths[b] * self.scores.S
            if not (scores_within(scores, self.is_double, n) or scores_allowed(scores, self.is_double, n)):
                return False
        return True

    cdef void copy_edges(self, const chains_task* t, Py_ssize_t b, double* totals) noexcept nogil:
        cdef Py_ssize_t row = self.scores.S * self.size, q, S = self.scores.S
        cdef const char* nodes = t.nodes + b * self.width * self.size
        cdef const char* last = nodes + (self.lengths[b] - 1) * row
        if totals == NULL:
            memcpy(t.first + b * row, nodes, row)
            memcpy(t.last + b * row, last, row)
            return
        totals += S * self.scores.K
        for q in range(S):
            totals[q] += (<const float*> nodes)[q]
            totals[S + q] += (<const float*> last)[q]

    cdef void clear(self, const chains_task* t, Py_ssize_t place, Py_ssize_t stop) noexcept nogil:
        """Write zeros behind the last tokens of a group's entries."""
        cdef Py_ssize_t b, used, tokens
        for place in range(place, stop):
            b = self.at(place)
            tokens = self.lengths[b]
            used = tokens * self.scores.S
            memset(t.nodes + (b * self.width + used) * self.size, 0, (self.width - used) * self.size)
            if t.totals != NULL:
                continue
            used = t.step if tokens else 0
            if self.scores.apart:
                used = max(tokens - 1, 0) * self.scores.S * self.scores.K
            memset(t.pairs + (b * t.step + used) * self.size, 0, (t.step - used) * self.size)

    cdef int beside(
        self, const chains_task* t, chain_room* room, Py_ssize_t place, Py_ssize_t stop, double* totals
    ) except -1 nogil:
        """The sums of a group; returns the lanes that are yet to be computed, a bit each."""
        cdef potentials s[MOST_LANES]
        cdef double values[MOST_LANES]
        cdef float* nodes[MOST_LANES]
        cdef float* pairs[MOST_LANES]
        cdef Py_ssize_t b
        cdef int lane, alone
        for lane in range(self.together):
            b = self.at(min(place + lane, stop - 1))
            s[lane] = self.entry(b)
            s[lane].rows, s[lane].tables = room.rows, room.tables
            if place + lane >= stop:
                s[lane].T = 0
            if t.nodes != NULL:
                nodes[lane] = <float*> (t.nodes + b * self.width * self.size)
                pairs[lane] = <float*> (t.pairs + b * t.step * self.size) if totals == NULL else NULL
        alone = KERNELS.beside(s, values, NULL if t.nodes == NULL else nodes, pairs, totals)
        for lane in range(<int> (stop - place)):
            t.values[self.at(place + lane)] = values[lane]
        return alone

    cdef int by_itself(self, const chains_task* t, chain_room* room, Py_ssize_t b, double* totals) except -1 nogil:
        """The sums of an entry, in logs where there is no other way."""
        cdef potentials s = self.entry(b)
        cdef void* nodes = NULL if t.nodes == NULL else t.nodes + b * self.width * self.size
        cdef void* pairs = NULL if t.nodes == NULL else t.pairs + b * t.step * self.size
        cdef int64_t j
        if totals != NULL:
            pairs = room.pairs
        s.rows, s.tables, s.sums, s.logs = room.rows, room.tables, room.totals, room.logs
        if s.T == 0:
            t.values[b] = 0.0
        elif self.kernels.sums[self.is_double](&s, t.values + b, nodes, pairs):
            with gil:
                self.add_logs(<list> t.more, t.longest, room)
            s.logs = room.logs
            self.kernels.sums[self.is_double](&s, t.values + b, nodes, pairs)
        if totals != NULL and s.T > 1 and t.values[b] > -INFINITY:
            for j in range(s.S * s.K):
                totals[j] += (<const float*> pairs)[j]
        return 0

    cdef void less_known(self, const chains_task* t, Py_ssize_t b, double* totals) noexcept nogil:
        """Write the score of a labelling, and take its indicators off."""
        cdef potentials s = self.entry(b)
        cdef const int32_t* y = t.labels + b * (self.width // self.scores.S)
        cdef void* nodes = t.nodes + b * self.width * self.size
        cdef void* pairs = t.pairs + b * t.step * self.size
        if totals != NULL:
            t.known[b] = less_labels(&s, y, <float*> nodes, totals)
        elif self.is_double:
            t.known[b] = less_labels(&s, y, <double*> nodes, <double*> pairs)
        else:
            t.known[b] = less_labels(&s, y, <float*> nodes, <float*> pairs)

    def best(self, Py_ssize_t first, Py_ssize_t last, states):
        """Write the states of the best labellings; returns the first entry that has none, or -1."""
        cdef Py_ssize_t b, empty = -1, step = array_shape(states)[1]
        cdef int32_t* out = <int32_t*> array_data(states)
        room = scratch(NULL, (2 * step + 1) * self.scores.S * self.size)
        cdef char* rows = <char*> scratch_data(room)
        cdef potentials s
        with nogil:
            for b in range(first, last):
                s = self.entry(b)
                s.rows, s.tables, s.logs = rows, rows + 2 * step * s.S * self.size, NULL
                if s.T and self.kernels.best[self.is_double](&s, out + b * step):
                    empty = b
                    break
                poll(self.work_of(s.T))
        return empty

    def reached(self, scores):
        """Write the best scores of what ends in each state of each token, -inf where there is no labelling: doubles.

        Parameters
        ----------
        scores : float64 array (B, T, S), all -inf
        """
        cdef Py_ssize_t b, t, q, S = self.scores.S, longest = array_shape(scores)[1]
        room = scratch(NULL, 8 * ((2 * longest + 1) * S + longest) + 4 * longest)
        cdef double* rows = <double*> scratch_data(room)
        cdef double* to = <double*> array_data(scores)
        cdef double total
        cdef potentials s
        for b in range(self.n):
            s, total = self.entry(b), 0.0
            s.rows, s.tables, s.logs = rows, rows + 2 * longest * S, rows + (2 * longest + 1) * S
            with nogil:
                poll(self.work_of(s.T))
                if s.T == 0 or OF_DOUBLES.best[1](&s, <int32_t*> (s.logs + longest)):
                    continue
                for t in range(s.T):
                    total += s.logs[t]
                    for q in range(t * S, t * S + S):
                        to[b * longest * S + q] = rows[q] + total

    def kbest(self, int k, paths, values):
        """Write the k best paths of states and their scores, as many as there are, of doubles (see detours.h).

        Parameters
        ----------
        paths : int32 array (B, k, T)
        values : float64 array (B, k), all -inf
        """
        cdef Py_ssize_t b, S = self.scores.S, longest = array_shape(paths)[2]
        cdef int32_t* path = <int32_t*> array_data(paths)
        cdef double* value = <double*> array_data(values)
        cdef potentials s
        room = scratch(NULL, 8 * (2 * longest + 1) * S + k * sizeof(detour))
        cdef double* rows = <double*> scratch_data(room)
        cdef detour* found = <detour*> (rows + (2 * longest + 1) * S)
        with nogil:
            for b in range(self.n):
                s = self.entry(b)
                s.rows, s.tables, s.logs = rows, rows + 2 * longest * S, NULL
                if s.T == 0:
                    value[b * k] = 0.0
                elif not OF_DOUBLES.best[1](&s, path + b * k * longest):
                    search_paths(&s, k, found, path + b * k * longest, longest, value + b * k)

    def draws(self, Py_ssize_t first, Py_ssize_t last, generators, states):
        """Write states of independent labellings of some entries; returns the first one that has none, or -1.

        Forwards once as for the log partition, then backwards for each sample, by one uniform number a token.

        Parameters
        ----------
        generators : list of numpy.random.Generator, one per entry of the batch
        states : int32 array (B, n_samples, T)
        """
        cdef Py_ssize_t b, k, n_samples = array_shape(states)[1], longest = array_shape(states)[2]
        cdef chain_room room
        cdef int32_t* states_of = <int32_t*> array_data(states)
        cdef int32_t* out
        cdef const double* uniform
        cdef double log_z
        cdef potentials s
        weights, more = scratch(NULL, 8 * self.scores.S), []
        held = spare_scratch(self.divide(NULL, longest, NULL) + LINE)
        cdef double* weight = <double*> scratch_data(weights)
        self.divide(first_line(held), longest, &room)
        for b in range(first, last):
            s = self.entry(b)
            uniforms, out = generators[b].random((s.T, n_samples)), states_of + b * n_samples * longest
            if s.T == 0:
                continue
            s.rows, s.tables, s.sums, s.logs = room.rows, room.tables, room.totals, NULL
            with nogil:
                if self.kernels.sums[self.is_double](&s, &log_z, NULL, NULL):
                    with gil:
                        self.add_logs(more, longest, &room)
                    s.logs = room.logs
                    self.kernels.sums[self.is_double](&s, &log_z, NULL, NULL)
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
        keep_scratch(held)
        return -1


cdef extern from *:
    """
    static int chain_take(int *taken) { return !__atomic_exchange_n(taken, 1, __ATOMIC_ACQUIRE); }
    static void chain_leave(int *taken) { __atomic_store_n(taken, 0, __ATOMIC_RELEASE); }
    """
    bint chain_take(int* taken) noexcept nogil
    void chain_leave(int* taken) noexcept nogil

# To leave an exception set, for who called.
ctypedef int (*quiet_body)(void* task, int slot, int64_t part) noexcept nogil


cdef bint has_shape(const xla_array* array, int type, int64_t n_axes, int64_t n, int64_t m) noexcept nogil:
    """Whether an array of a call has this type and these first two axes, the second of which may be missing."""
    return array.type == type and array.n_axes == n_axes and array.shape[0] == n and (n_axes < 2 or array.shape[1] == m)


cdef class LogLoss(Quick):
    """Log losses of chains of order 1, and each entry's gradients, as `log_loss` computes them with `per_entry`.

    It leaves errors, unknown labels, huge scores and other forms of parts to the caller of `compute`, and every call
    while another thread is at work.
    """

    cdef Batch batch
    cdef chains_task task
    cdef chain_room room
    cdef int taken, n_edges, length_bytes
    cdef Py_ssize_t longest, n_groups
    cdef void* held         # scratch
    cdef size_t size
    cdef int64_t* sizes
    cdef int64_t* order
    cdef int64_t* starts
    cdef double* log_z
    cdef char* zeros
    cdef char* spare

    def __cinit__(self):
        edge = np.zeros((1, 1))
        self.batch = Batch(np.zeros((0, 0, 1)), np.zeros((1, 1, 1, 1)), edge, edge, np.zeros(0, np.int64))
        memset(&self.task, 0, sizeof(self.task))
        memset(&self.room, 0, sizeof(self.room))
        self.task.batch, self.task.rooms = <void*> self.batch, &self.room

    def __dealloc__(self):
        free(self.held)

    cdef int compute(self, const xla_arrays* arguments, const xla_arrays* results) noexcept nogil:
        cdef int found = 0
        if chain_take(&self.taken):
            if self.fits(arguments, results) and self.divide():
                found = self.sums(arguments, results)
            if self.size > LARGEST_SPARE:
                free(self.held)
                self.held, self.size = NULL, 0
            chain_leave(&self.taken)
        return found

    cdef bint fits(self, const xla_arrays* arguments, const xla_arrays* results) noexcept nogil:
        """Take the shapes of a call's arrays; False if they are not the shapes of parts, labels and lengths."""
        cdef const xla_array* emissions
        cdef int64_t n, longest, K, k = 2, j
        cdef int type
        if arguments.n < 3:
            return False
        emissions = array_of(arguments, 0)
        type = emissions.type
        if (type != XLA_FLOAT and type != XLA_DOUBLE) or emissions.n_axes != 3:
            return False
        n, longest, K = emissions.shape[0], emissions.shape[1], emissions.shape[2]
        if n == 0 or longest == 0 or K == 0 or not has_shape(array_of(arguments, 1), type, 2, K, K):
            return False
        while k < 4 and k < arguments.n and has_shape(array_of(arguments, k), type, 1, K, 0):
            k += 1
        if k == arguments.n or not has_shape(array_of(arguments, k), XLA_INT32, 2, n, longest) or results.n != k + 1:
            return False
        self.length_bytes = 0
        if arguments.n > k + 1:
            self.length_bytes = 4 if has_shape(array_of(arguments, k + 1), XLA_INT32, 1, n, 0) else 8
            if self.length_bytes == 8 and not has_shape(array_of(arguments, k + 1), XLA_INT64, 1, n, 0):
                return False
        if arguments.n > k + 2:
            return False
        for j in range(k + 1):
            if array_of(results, j).type != type:
                return False
        self.n_edges, self.longest = <int> (k - 2), longest
        self.set_batch(type == XLA_DOUBLE, n, K)
        return True

    cdef void set_batch(self, bint is_double, int64_t n, int64_t K) noexcept nogil:
        self.batch.is_double, self.batch.size = is_double, 8 if is_double else 4
        self.batch.kernels = OF_DOUBLES if is_double else KERNELS
        self.batch.together = 1 if is_double else KERNELS.lanes
        self.batch.n, self.batch.width, self.batch.scores.S, self.batch.scores.K = n, self.longest * K, K, K
        self.n_groups = (n + self.batch.together - 1) // self.batch.together
        self.task.longest, self.task.step = self.longest, K * K

    cdef bint divide(self) noexcept nogil:
        """Divide the scratch; False if there is no memory."""
        cdef Py_ssize_t n = self.batch.n, K = self.batch.scores.K, edge = whole_lines(K * self.batch.size)
        cdef Py_ssize_t numbers = 8 * (4 * n + self.longest + 2), edges = n * K * self.batch.size
        cdef Py_ssize_t logs = whole_lines(8 * (2 * self.longest + 3) * K)
        cdef Py_ssize_t own = numbers + edge + edges + self.n_groups + LINE
        cdef size_t size = own + logs + self.batch.divide(NULL, self.longest, NULL)
        cdef char* place
        if size > self.size:
            free(self.held)
            self.held = malloc(size)
            self.size = size if self.held != NULL else 0
        if self.size == 0:
            return False
        self.sizes = <int64_t*> self.held
        self.order, self.starts = self.sizes + n, self.sizes + 4 * n
        self.log_z, self.task.known = <double*> (self.sizes + 2 * n), <double*> (self.sizes + 3 * n)
        self.zeros = <char*> self.held + numbers
        self.spare = self.zeros + edge
        self.task.values, self.task.beyond = self.log_z, <uint8_t*> (self.spare + edges)
        place = next_line(<char*> self.task.beyond + self.n_groups)
        self.batch.divide(place + logs, self.longest, &self.room)
        self.room.logs, self.batch.lengths = <double*> place, self.sizes
        memset(self.zeros, 0, edge)
        self.batch.scores.start = self.batch.scores.end = self.zeros
        return True

    cdef int sums(self, const xla_arrays* arguments, const xla_arrays* results) noexcept nogil:
        cdef chains_task* t = &self.task
        cdef Py_ssize_t n = self.batch.n, K = self.batch.scores.K, b, edges = n * K * self.batch.size
        cdef int64_t group
        if not self.point(arguments):
            return 0
        t.nodes, t.pairs = <char*> data_of(results, 1), <char*> data_of(results, 2)
        t.first = t.last = NULL
        if self.n_edges:
            t.first = <char*> data_of(results, 3)
            t.last = <char*> data_of(results, 4) if self.n_edges > 1 else self.spare
            memset(t.first, 0, edges)
            memset(t.last, 0, edges)
        memset(t.beyond, 0, self.n_groups)
        for group in range(self.n_groups):
            if (<quiet_body> sums_of_group)(t, 0, group) < 0:
                return -1
            if t.beyond[group]:
                return 0
        for b in range(n):
            if self.log_z[b] == -INFINITY or not fabs(t.known[b]) <= HUGE:
                return 0
            self.log_z[b] -= t.known[b]
            if self.log_z[b] < 0:
                self.log_z[b] = 0.0
        if self.batch.is_double:
            memcpy(data_of(results, 0), self.log_z, n * sizeof(double))
        else:
            for b in range(n):
                (<float*> data_of(results, 0))[b] = <float> self.log_z[b]
        return 1

    cdef bint point(self, const xla_arrays* arguments) noexcept nogil:
        """Look at the arguments of a call, whose emissions are yet to be checked."""
        cdef Py_ssize_t K = self.batch.scores.K, k, b
        cdef int n_parts = 2 + self.n_edges
        for k in range(1, n_parts):
            if not scores_within(data_of(arguments, k), self.batch.is_double, K * K if k == 1 else K):
                return False
        if not self.read_lengths(data_of(arguments, n_parts + 1) if self.length_bytes else NULL):
            return False
        self.task.labels = <const int32_t*> data_of(arguments, n_parts)
        for b in range(self.batch.n):
            if not KERNELS.labels(self.task.labels + b * self.longest, self.sizes[b], <int32_t> (K - 1)):
                return False
        self.batch.emissions = <const char*> data_of(arguments, 0)
        self.batch.transitions = <const char*> data_of(arguments, 1)
        if n_parts > 2:
            self.batch.scores.start = data_of(arguments, 2)
        if n_parts > 3:
            self.batch.scores.end = data_of(arguments, 3)
        return True

    cdef bint read_lengths(self, const void* lengths) noexcept nogil:
        """Take lengths, NULL for whole entries; sort entries as `Batch` does: the longest first, others in order."""
        cdef Py_ssize_t b, T = self.longest, ascents = 0
        cdef int64_t length
        for b in range(self.batch.n):
            length = T
            if lengths != NULL:
                length = (<const int32_t*> lengths)[b] if self.length_bytes == 4 else (<const int64_t*> lengths)[b]
            if not 0 <= length <= T:
                return False
            self.sizes[b] = length
            ascents += b > 0 and length > self.sizes[b - 1]
        self.batch.order = self.order if ascents else NULL
        if ascents:
            memset(self.starts, 0, (T + 2) * sizeof(int64_t))
            for b in range(self.batch.n):
                self.starts[T - self.sizes[b] + 1] += 1
            for b in range(T):
                self.starts[b + 1] += self.starts[b]
            for b in range(self.batch.n):
                self.order[self.starts[T - self.sizes[b]]] = b
                self.starts[T - self.sizes[b]] += 1
        return True


cdef int search_paths(
    const potentials* s, int k, detour* found, int32_t* paths, int64_t step, double* values
) except -1 nogil:
    """Write the k best paths, the first of which is there; choices are of the states, from the last token on."""
    cdef const double* reached = <const double*> s.rows + s.T * s.S
    cdef int j, known = 0
    cdef int64_t t, state
    cdef detour own
    cdef int32_t* path = paths
    own.score, own.at[0] = 0.0, <int32_t> s.T
    values[0] = score_of(s, path)
    for j in range(k):
        if j:
            if known == 0:
                break
            known, path = detours_take(found, known, &own), paths + j * step
            state, values[j] = own.at[1], values[0] + own.score
            for t in range(own.at[0] + 1, s.T):
                path[t] = paths[own.parent * step + t]
            for t in range(own.at[0], -1, -1):
                path[t] = <int32_t> state
                if t:
                    state = place_before(s, reached, t, state)
        own.parent = j
        for t in range(own.at[0] - 1, -1, -1):
            known = add_detours(s, reached, path, t, own, found, known, k - j - 1)
        poll(s.T * (s.K + 4))
    return 0


cdef int add_detours(
    const potentials* s, const double* reached, const int32_t* path, int64_t t, detour own, detour* found, int known,
    int most
) noexcept nogil:
    """Add the paths that first differ from one at token t; returns how many there are."""
    cdef int64_t after = path[t + 1] if t + 1 < s.T else 0, a = 0, step = 1
    cdef const double* value = <const double*> s.rows + t * s.S
    cdef const double* A = <const double*> s.A + t * s.each + after % s.K
    cdef double less = own.score, top = value[path[t]]
    if t + 1 < s.T:
        a, step, top = after // s.K, s.S // s.K, reached[(t + 1) * s.S + after]
    own.at[0] = <int32_t> t
    while a < s.S:
        if a != path[t]:
            own.at[1] = <int32_t> a
            own.score = less + ((value[a] + A[a * s.K] if t + 1 < s.T else value[a]) - top)
            known = detours_add(found, known, most, own)
        a += step
    return known


cdef int64_t place_before(const potentials* s, const double* reached, int64_t t, int64_t state) noexcept nogil:
    """The least state before a token's state by which it is reached at its best."""
    cdef int64_t a = state // s.K, G = s.S // s.K
    cdef const double* value = <const double*> s.rows + (t - 1) * s.S
    cdef const double* A = <const double*> s.A + (t - 1) * s.each + state % s.K
    while a + G < s.S and value[a] + A[a * s.K] != reached[t * s.S + state]:
        a += G
    return a


cdef double score_of(const potentials* s, const int32_t* path) noexcept nogil:
    cdef int64_t t
    cdef const double* A = <const double*> s.A
    cdef double value = (<const double*> s.start)[path[0]] + (<const double*> s.end)[path[s.T - 1]]
    for t in range(s.T):
        value += (<const double*> s.E)[t * s.S + path[t]]
        if t:
            value += A[(t - 1) * s.each + path[t - 1] * s.K + path[t] % s.K]
    return value


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


ctypedef fused counts:
    float
    double


cdef double less_labels(const potentials* s, const int32_t* y, floating* nodes, counts* pairs) noexcept nogil:
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
            pairs[(t - 1 if s.apart else 0) * K * K + pair] -= 1
    return value


cdef double HUGE = 1e7


def is_plain(ndarray array not None):
    """Whether an array is contiguous, aligned, of the machine's byte order, and of float32 or float64."""
    return PyArray_ISCARRAY_RO(array) and PyArray_TYPE(array) in (NPY_FLOAT, NPY_DOUBLE)


def are_chains(parts):
    """Return whether the parts are plain arrays of a chain of order 1 with shared transitions, start and end, all but
    the emissions in bounds.
    """
    cdef Py_ssize_t k, K, n = len(parts)
    cdef Py_ssize_t* shape
    if not 2 <= n <= 4 or not are_alike(parts) or PyArray_NDIM(parts[0]) != 3:
        return False
    K = array_shape(parts[0])[2]
    for k in range(1, n):
        shape = array_shape(parts[k])
        if PyArray_NDIM(parts[k]) != (2 if k == 1 else 1) or shape[0] != K or (k == 1 and shape[1] != K):
            return False
        if not within(parts[k], MOST_FLOAT if PyArray_TYPE(parts[k]) == NPY_FLOAT else MOST_DOUBLE):
            return False
    return K > 0


def are_alike(parts):
    """Whether parts are plain arrays (see `is_plain`) of one type, float32 or float64."""
    cdef int kind = -1
    for part in parts:
        if type(part) is not ndarray or not PyArray_ISCARRAY_RO(part):
            return False
        if kind < 0:
            kind = PyArray_TYPE(part)
        if PyArray_TYPE(part) != kind:
            return False
    return kind == NPY_FLOAT or kind == NPY_DOUBLE


def are_huge(values):
    """Whether differences of float64 numbers (B,) are rounded by more than some 1e-9."""
    cdef Py_ssize_t b
    cdef const double* value = <const double*> array_data(values)
    for b in range(len(values)):
        if fabs(value[b]) > HUGE:
            return True
    return False


def above(values, others):
    """The differences of float64 arrays (B,), 0 where they are less."""
    cdef Py_ssize_t b, n = len(values)
    found = np.empty(n)
    cdef const double* value = <const double*> array_data(values)
    cdef const double* other = <const double*> array_data(others)
    cdef double* to = <double*> array_data(found)
    for b in range(n):
        to[b] = value[b] - other[b]
        if to[b] < 0:
            to[b] = 0.0
    return found


def first_masked(values):
    """The place of the first -inf in a float64 array (B,), or -1."""
    cdef Py_ssize_t b, n = array_shape(values)[0]
    cdef const double* value = <const double*> array_data(values)
    for b in range(n):
        if value[b] == -INFINITY:
            return b
    return -1


def are_labels(ndarray y not None, lengths, int32_t n_labels):
    """Whether all numbers within the lengths are labels.

    Parameters
    ----------
    y : int32 array (B, T)
    lengths : int64 array (B,)
    """
    cdef const int32_t* label = <const int32_t*> array_data(y)
    cdef const int64_t* sizes = <const int64_t*> array_data(lengths)
    cdef Py_ssize_t b, n = array_shape(y)[0], width = array_shape(y)[1]
    for b in range(n):
        if not KERNELS.labels(label + b * width, sizes[b], n_labels - 1):
            return False
    return True


# Numbers that a thread looks at, or adds up, at once.
cdef enum:
    NUMBERS = 1 << 14
    ADDED = 512


cdef struct numbers_task:
    const char* numbers
    char* to
    int64_t n, n_rows
    int size
    double most
    bint failed


def within(ndarray array not None, double most, int n_threads=1):
    """Whether an array, float32 or float64, is contiguous and has all numbers between -most and most."""
    cdef numbers_task t
    if not PyArray_ISCARRAY_RO(array):
        return False
    t.numbers, t.n, t.size, t.most, t.failed = <const char*> array_data(array), array.size, array.itemsize, most, False
    each_part(look_at, &t, (t.n + NUMBERS - 1) // NUMBERS, threads_for(n_threads, t.n, t.n * t.size // 16))
    return not t.failed


cdef int look_at(void* task, int slot, int64_t part) except -1 nogil:
    cdef numbers_task* t = <numbers_task*> task
    cdef int64_t first = part * NUMBERS
    if not KERNELS.within(t.numbers + first * t.size, t.size == 8, min(t.n - first, NUMBERS), t.most):
        t.failed = True
    return 0


def sum_rows(array, int n_threads=1):
    """The sums over the first axis of a contiguous array, float32 or float64, added up in order and in double."""
    cdef numbers_task t
    found = np.zeros(array.shape[1:], array.dtype)
    t.numbers, t.to, t.size = <const char*> array_data(array), <char*> array_data(found), array.itemsize
    t.n, t.n_rows = found.size, len(array)
    each_part(add_up, &t, (t.n + ADDED - 1) // ADDED, threads_for(n_threads, t.n, array.size // 2))
    return found


cdef int add_up(void* task, int slot, int64_t part) except -1 nogil:
    cdef const numbers_task* t = <const numbers_task*> task
    cdef int64_t first = part * ADDED, n = min(t.n - first, ADDED), j, k
    cdef double totals[ADDED]
    memset(totals, 0, n * sizeof(double))
    if t.size == 8:
        for k in range(t.n_rows):
            for j in range(n):
                totals[j] += (<const double*> t.numbers)[k * t.n + first + j]
        memcpy(t.to + first * t.size, totals, n * t.size)
    else:
        KERNELS.add(<const float*> t.numbers + first, t.n_rows, t.n, n, totals)
        for j in range(n):
            (<float*> t.to)[first + j] = <float> totals[j]
    return 0
