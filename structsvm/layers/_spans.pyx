"""Segments and trees of a batch: the loops over its entries, around the kernels of spans.h.

Each entry is computed by itself, so that the bits do not depend on how the batch is split among threads.
"""

from cython cimport floating
from libc.math cimport INFINITY, exp
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy, memset


from structsvm._arrays cimport array_data, array_shape, scratch, scratch_data
from structsvm.execution._processor cimport kernel_set
from structsvm.execution._stop cimport each_part, poll, threads_for
from structsvm.layers._detours cimport detour, detours_add, detours_take

cdef extern from "spans.h" nogil:
    ctypedef struct segments:
        int64_t T, L, K
        int is_double
        const void* scores
        const double* A
        const double* start
        const double* end
        double* tables
        double* rows
        double* terms
    ctypedef struct brackets:
        int64_t n, m, K, S
        int is_double
        const void* scores
        const double* rules
        double* chart
        double* tables
        void* terms
        int32_t* labels
    ctypedef struct spans_kernels:
        int (*segment_sums)(const segments* s, double* log_z, void* parts, double* pairs) except -1 nogil
        int (*segment_best)(const segments* s, double* value, int32_t* y) except -1 nogil
        int (*bracket_sums)(const brackets* s, double* log_z, void* parts, double* rules) except -1 nogil
        int (*bracket_best)(const brackets* s, double* value, int32_t* y) except -1 nogil
        int (*bracketing_draw)(const brackets* s, const double* u, int64_t step, int32_t* y) except -1 nogil
        bint (*bracketing_copy)(const int32_t* y, int64_t n, int64_t m, int32_t K, int32_t* out) noexcept nogil
    const spans_kernels* spans_kernels_of(int set, int (*poll)(int64_t work) except -1 nogil)

cdef extern from "drawn.h" nogil:
    int64_t drawn_place(const double* weights, int64_t n, double u)

cdef const spans_kernels* KERNELS = spans_kernels_of(kernel_set(), poll)


# The sums of a batch: where they go, true outputs whose indicators are taken off, and each thread's Entries.
cdef struct entries_task:
    void** threads
    double* values
    char* parts
    char* counts
    double* first
    double* last
    const int32_t* y
    double* known
    uint8_t* wide


cdef int sums_of_entry(void* task, int slot, int64_t b) except -1 nogil:
    cdef const entries_task* t = <const entries_task*> task
    return (<Entries> t.threads[slot]).sum_entry(t, b)


cdef class Entries:
    """A batch of scores (B, ..., K), floats or doubles, with arrays of doubles that it shares: one entry each, or B."""

    cdef object scores, shared, sizes, kept, held
    cdef const int64_t* lengths
    cdef const char* scored
    cdef const double* common[3]
    cdef Py_ssize_t n, size, step, tokens
    cdef Py_ssize_t steps[3]
    cdef int is_double, n_shared
    cdef entries_task task

    def __init__(self, scores, shared, lengths):
        cdef int k
        cdef Py_ssize_t* shape = array_shape(scores)
        self.scores, self.shared, self.sizes, self.size = scores, shared, lengths, scores.itemsize
        self.lengths, self.scored = <const int64_t*> array_data(lengths), <const char*> array_data(scores)
        self.n, self.tokens, self.is_double, self.n_shared = shape[0], shape[1], self.size == 8, len(shared)
        self.size *= shape[1] * shape[2] * shape[3]
        for k in range(self.n_shared):
            array = shared[k]
            self.common[k], self.steps[k] = <const double*> array_data(array), 0
            if array_shape(array)[0] > 1:
                self.steps[k] = array.size // array_shape(array)[0]

    cdef Py_ssize_t longest(self, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
        cdef Py_ssize_t b, most = 0
        for b in range(first, last):
            most = max(most, self.lengths[b])
        return most

    cdef int room(self, Py_ssize_t longest, bint for_parts) except -1:
        """Make scratch for entries that are no longer than this."""

    cdef int64_t work(self, int64_t n) noexcept nogil:
        """About as many nanoseconds the sums of an entry take."""

    cdef int run(self, Py_ssize_t b, double* value, void* parts, double* counts, int32_t* y) except -1 nogil:
        """The sums of an entry, or where y is given the best output."""

    cdef void finish(self, const entries_task* t, Py_ssize_t b) noexcept nogil:
        """Take an entry's truth off its sums, and add up the expected ends."""

    cdef bint clears(self, Py_ssize_t b) noexcept nogil:
        """Whether not all parts of an entry are written."""

    cdef int sum_entry(self, const entries_task* t, Py_ssize_t b) except -1 nogil:
        cdef char* to = NULL if t.parts == NULL else t.parts + b * self.size
        cdef double* counts = NULL if t.parts == NULL else <double*> t.counts + b * self.step
        t.values[b] = 0.0
        if to != NULL and self.clears(b):
            memset(to, 0, self.size)
        if self.lengths[b] > 0:
            t.wide[b] = self.run(b, t.values + b, to, counts, NULL)
        if to != NULL and not t.wide[b]:
            self.finish(t, b)
        poll(100 + self.work(self.lengths[b]))      # kernels count nothing of short entries
        return 0

    def sums(self, int n_threads, log_z, parts, counts, ends=None, y=None, known=None):
        """Write log partitions and, unless `parts` is None, expected parts; returns the entries that need logs.

        These are to be written by the caller, who calls `finish_wide` then. Those of an entry without any output are of
        no use. With true outputs, all of which is known, their scores are written, and their indicators taken off.

        Parameters
        ----------
        log_z, known : float64 arrays (B,)
        parts : array like the scores, or None
        counts : float64 array (B, ...), of transitions or rules
        ends : tuple of two float64 arrays (B, K), optional
            The labels of first and last segments.
        y : int32 array, optional
            Labels (B, T) of segments, or places (B, 2 n) that `known_trees` writes.
        """
        cdef Py_ssize_t b, slot, longest = self.longest(0, self.n)
        cdef int64_t work = 0
        cdef entries_task* t = &self.task
        cdef Entries other = self
        for b in range(self.n):
            work += self.work(self.lengths[b])
        n_threads = threads_for(n_threads, self.n, work)
        wide, threads, places = bytearray(self.n), [], scratch(NULL, n_threads * sizeof(void*))
        memset(t, 0, sizeof(entries_task))
        t.threads, t.wide, t.values = <void**> scratch_data(places), wide, <double*> array_data(log_z)
        if parts is not None:
            t.parts, t.counts = <char*> array_data(parts), <char*> array_data(counts)
            self.step = counts.size // max(self.n, 1)
        if ends is not None:
            t.first, t.last = <double*> array_data(ends[0]), <double*> array_data(ends[1])
        if y is not None:
            t.y, t.known = <const int32_t*> array_data(y), <double*> array_data(known)
        for slot in range(n_threads):
            if slot:
                other = type(self)(self.scores, self.shared, self.sizes)
            other.step = self.step
            other.room(longest, t.parts != NULL)
            threads.append(other)
            t.threads[slot] = <void*> other
        each_part(sums_of_entry, t, self.n, n_threads)
        self.kept = log_z, parts, counts, ends, y, known
        return [b for b in range(self.n) if wide[b]] if 1 in wide else []

    def finish_wide(self, wide):
        """Take the indicators off the sums of these entries, which have been written."""
        for b in wide:
            self.finish(&self.task, b)

    def best(self, Py_ssize_t first, Py_ssize_t last, values, y):
        """Write the best outputs and their scores, -inf where there is none."""
        cdef Py_ssize_t b, step = y.size // max(self.n, 1)
        cdef double* scores = <double*> array_data(values)
        cdef int32_t* to = <int32_t*> array_data(y)
        self.room(self.longest(first, last), False)
        with nogil:
            for b in range(first, last):
                scores[b] = 0.0
                if self.lengths[b] > 0:
                    self.run(b, scores + b, NULL, NULL, to + b * step)
                poll(100 + self.work(self.lengths[b]))

    def kbest(self, int k, y, values):
        """Write the k best outputs and their scores, as many as there are (see detours.h).

        Parameters
        ----------
        y : int32 array (B, k, ...), all -1
        values : float64 array (B, k), all -inf
        """
        cdef Py_ssize_t b, step = y.size // max(k * self.n, 1)
        cdef double* value = <double*> array_data(values)
        cdef int32_t* to = <int32_t*> array_data(y)
        self.room(self.longest(0, self.n), False)
        room = scratch(NULL, k * sizeof(detour))
        cdef detour* found = <detour*> scratch_data(room)
        with nogil:
            for b in range(self.n):
                if self.lengths[b] == 0:
                    value[b * k] = 0.0
                elif not self.run(b, value + b * k, NULL, NULL, to + b * k * step):
                    self.search(k, found, to + b * k * step, step, value + b * k)

    cdef int search(self, int k, detour* found, int32_t* y, Py_ssize_t step, double* values) except -1 nogil:
        """Write the k best outputs of the entry whose best output was the last, which is there."""
        cdef int j, known = 0
        cdef detour own
        memset(&own, 0, sizeof(own))
        own.at[0] = -1          # nothing was chosen in another way: all choices come after
        for j in range(k):
            if j:
                if known == 0:
                    break
                known = detours_take(found, known, &own)
                memcpy(y + j * step, y + own.parent * step, step * sizeof(int32_t))
                values[j] = values[0] + own.score
                self.change(&own, y + j * step)
            own.parent = j
            known = self.add_detours(own, y + j * step, found, known, k - j - 1)
            poll(step + 100)
        return 0

    cdef void change(self, const detour* own, int32_t* y) noexcept nogil:
        """Make a choice in another way, and what comes after it in the best one."""

    cdef int add_detours(self, detour own, const int32_t* y, detour* found, int known, int most) noexcept nogil:
        """Add the outputs that make a choice after an output's own in another way; returns how many there are."""

    def draws(self, Py_ssize_t first, Py_ssize_t last, generators, log_z, y):
        """Write log partitions and independent outputs; returns the entries that need logs, which have neither.

        Trees are drawn without rules.

        Parameters
        ----------
        generators : list of numpy.random.Generator, one per entry of the batch
        log_z : float64 array (B,)
        y : int32 array (B, n_samples, ...)
        """
        cdef Py_ssize_t b, j, n_samples = array_shape(y)[1], size = y.size // max(n_samples * self.n, 1)
        cdef double* values = <double*> array_data(log_z)
        cdef const double* uniform
        cdef int32_t* to
        cdef int32_t* first_of = <int32_t*> array_data(y)
        self.room(self.longest(first, last), False)
        wide = []
        for b in range(first, last):
            values[b] = 0.0
            if self.lengths[b] > 0 and self.run(b, values + b, NULL, NULL, NULL):
                wide.append(b)
            elif self.lengths[b] > 0 and values[b] > -INFINITY:
                uniforms, to = generators[b].random((3 * self.lengths[b], n_samples)), first_of + b * n_samples * size
                uniform = <const double*> array_data(uniforms)
                with nogil:
                    for j in range(n_samples):
                        self.draw(uniform + j, n_samples, to + j * size)
        return wide

    cdef int draw(self, const double* uniforms, int64_t step, int32_t* y) except -1 nogil:
        """Write an output of the entry whose sums were the last, by 3 n uniform numbers, `step` apart."""


cdef class Segments(Entries):
    """Scores (B, T, L, K) of segments; transitions (., K, K), start and end (., K)."""

    cdef segments s

    cdef int room(self, Py_ssize_t longest, bint for_parts) except -1:
        cdef segments* s = &self.s
        s.L, s.K, s.is_double = array_shape(self.scores)[2], array_shape(self.scores)[3], self.is_double
        cdef Py_ssize_t n_tables = s.K * s.K + 2 * s.L * s.K + 2 * s.K, n_rows = (longest + 1) * (3 * s.K + 2)
        self.held = scratch(NULL, 8 * (n_tables + n_rows + (longest * s.L * s.K if for_parts else 0)))
        s.tables = <double*> scratch_data(self.held)
        s.rows, s.terms = s.tables + n_tables, s.tables + n_tables + n_rows
        return 0

    cdef int64_t work(self, int64_t n) noexcept nogil:
        return 10 * n * self.size // (4 + 4 * self.is_double) // max(self.tokens, 1)

    cdef void enter(self, Py_ssize_t b) noexcept nogil:
        cdef segments* s = &self.s
        s.T, s.scores = self.lengths[b], self.scored + b * self.size
        s.A, s.start = self.common[0] + b * self.steps[0], self.common[1] + b * self.steps[1]
        s.end = self.common[2] + b * self.steps[2]

    cdef int run(self, Py_ssize_t b, double* value, void* parts, double* counts, int32_t* y) except -1 nogil:
        self.enter(b)
        if y != NULL:
            return KERNELS.segment_best(&self.s, value, y)
        return KERNELS.segment_sums(&self.s, value, parts, counts)

    cdef bint clears(self, Py_ssize_t b) noexcept nogil:
        return True

    cdef void finish(self, const entries_task* t, Py_ssize_t b) noexcept nogil:
        cdef segments* s = &self.s
        cdef Py_ssize_t K = s.K
        cdef double* steps = <double*> t.counts + b * self.step
        cdef char* parts = t.parts + b * self.size
        self.enter(b)
        if t.y != NULL:
            if self.is_double:
                t.known[b] = less_segments(s, t.y + b * self.tokens, <double*> parts, steps)
            else:
                t.known[b] = less_segments(s, t.y + b * self.tokens, <float*> parts, steps)
        if self.is_double:
            add_ends(s, <const double*> parts, t.first + b * K, t.last + b * K)
        else:
            add_ends(s, <const float*> parts, t.first + b * K, t.last + b * K)

    # Choices, from the end on: of a segment's label by its end, at = end, 0, label; then of its
    # length, at = end, 1, length less 1.

    cdef void change(self, const detour* own, int32_t* y) noexcept nogil:
        cdef segments* s = &self.s
        cdef const double* V = s.rows
        cdef const double* R = V + (s.T + 1) * s.K
        cdef int64_t t = own.at[0], k = own.at[2] if own.at[1] == 0 else y[t - 1] % s.K, more, a, j
        cdef int64_t given = own.at[2] if own.at[1] else -1
        while t:
            more = given if given >= 0 else 0
            while given < 0 and R[(t - 1 - more) * s.K + k] + score_of(s, t - 1 - more, more, k) != V[t * s.K + k]:
                more += 1
            for j in range(t - 1 - more, t):
                y[j] = <int32_t> (k if j == t - 1 - more else s.K + k)
            t, given, a = t - 1 - more, -1, 0
            while t and V[t * s.K + a] + s.A[a * s.K + k] != R[t * s.K + k]:
                a += 1
            k = a

    cdef int add_detours(self, detour own, const int32_t* y, detour* found, int known, int most) noexcept nogil:
        cdef segments* s = &self.s
        cdef const double* V = s.rows
        cdef const double* R = V + (s.T + 1) * s.K
        cdef int64_t t = s.T, after = -1, k, first, x, begin = own.at[0] if own.at[0] >= 0 else s.T
        cdef int kind = own.at[1] + 1 if own.at[0] >= 0 else 0
        cdef double less = own.score, top
        while t:
            k, first = y[t - 1] % s.K, t - 1
            while y[first] >= s.K:
                first -= 1
            own.at[0], own.at[1] = <int32_t> t, 0
            top = V[t * s.K + k] if after < 0 else R[t * s.K + after]
            for x in range(s.K if t < begin or t == begin and kind == 0 else 0):
                if x != k:
                    own.at[2] = <int32_t> x
                    own.score = less + (V[t * s.K + x] + (0.0 if after < 0 else s.A[x * s.K + after]) - top)
                    known = detours_add(found, known, most, own)
            own.at[1] = 1
            for x in range(min(s.L, t) if t < begin or t == begin and kind <= 1 else 0):
                if t - 1 - x != first:
                    own.at[2] = <int32_t> x
                    own.score = less + (R[(t - 1 - x) * s.K + k] + score_of(s, t - 1 - x, x, k) - V[t * s.K + k])
                    known = detours_add(found, known, most, own)
            t, after = first, k
        return known

    def reached(self, scores):
        """Write the best scores of what comes before a segment with a label at a token, -inf without an output.

        Parameters
        ----------
        scores : float64 array (B, T + 1, K), all -inf
        """
        cdef Py_ssize_t b, longest = array_shape(scores)[1]
        cdef int32_t* path
        cdef double* to = <double*> array_data(scores)
        cdef double value
        self.room(longest - 1, False)
        y = scratch(NULL, 4 * longest)
        path = <int32_t*> scratch_data(y)
        with nogil:
            for b in range(self.n):
                if self.lengths[b] and not self.run(b, &value, NULL, NULL, path):
                    memcpy(to + b * longest * self.s.K, self.s.rows + (self.s.T + 1) * self.s.K,
                           (self.s.T + 1) * self.s.K * sizeof(double))

    cdef int draw(self, const double* uniforms, int64_t step, int32_t* y) except -1 nogil:
        poll(self.s.T * (self.s.L + self.s.K) * 4)
        draw_segments(&self.s, uniforms, step, y)
        return 0


cdef double less_segments(const segments* s, const int32_t* y, floating* parts, double* steps) noexcept nogil:
    """The score of a segmentation; 1 is taken off the numbers of its segments and transitions."""
    cdef int64_t t = 0, last, k, before = -1
    cdef double value = 0.0
    while t < s.T:
        k, last = y[t], t
        while last + 1 < s.T and y[last + 1] >= s.K:
            last += 1
        value += score_of(s, t, last - t, k)
        parts[(t * s.L + last - t) * s.K + k] -= 1
        if before >= 0:
            value += s.A[before * s.K + k]
            steps[before * s.K + k] -= 1
        before, t = k, last + 1
    return value


def known_segments(y, lengths, int32_t K, int64_t L, checked):
    """Copy labels with -1 beyond the lengths; returns whether they are segments of up to L tokens.

    Parameters
    ----------
    y, checked : int32 arrays (B, T)
    lengths : int64 array (B,)
    """
    cdef const int32_t* label = <const int32_t*> array_data(y)
    cdef const int64_t* sizes = <const int64_t*> array_data(lengths)
    cdef int32_t* out = <int32_t*> array_data(checked)
    cdef Py_ssize_t b, t, n = array_shape(y)[0], width = array_shape(y)[1]
    cdef int64_t own = 0
    for b in range(n):
        for t in range(width):
            out[t] = label[t] if t < sizes[b] else -1
            if t >= sizes[b]:
                continue
            own = own + 1 if label[t] >= K else 1
            if not 0 <= label[t] < 2 * K or own > L or own > 1 and (t == 0 or label[t] % K != label[t - 1] % K):
                return False
        label, out = label + width, out + width
    return True


cdef void add_ends(const segments* s, const floating* parts, double* first, double* last) noexcept nogil:
    """Add up what is expected of the first and the last segments, whose sums are 0."""
    cdef int64_t more, k
    for more in range(min(s.L, s.T)):
        for k in range(s.K):
            first[k] += parts[more * s.K + k]
            last[k] += parts[((s.T - 1 - more) * s.L + more) * s.K + k]


cdef void draw_segments(const segments* s, const double* uniforms, int64_t step, int32_t* y) noexcept nogil:
    """Draw segments from the last one on, by the v and R of segments.h that sums leave behind."""
    cdef int64_t t = s.T, k = -1, j, start, most, n = (s.T + 1) * s.K
    cdef const double* R = s.rows + n
    cdef const double* scale = s.rows + 3 * n
    cdef double* weights = s.tables + s.K * s.K     # sums left room there
    cdef double top
    while t > 0:
        for j in range(s.K):
            weights[j] = s.rows[t * s.K + j] * (1.0 if k < 0 else s.tables[j * s.K + k])
        k, top = drawn_place(weights, s.K, uniforms[2 * (t - 1) * step]), -INFINITY
        most = min(t, s.L)
        for j in range(most):
            weights[j] = score_of(s, t - 1 - j, j, k) + scale[t - 1 - j]
            top = max(top, weights[j])
        for j in range(most):
            weights[j] = R[(t - 1 - j) * s.K + k] * exp(weights[j] - top)
        start = t - 1 - drawn_place(weights, most, uniforms[(2 * t - 1) * step])
        for j in range(start, t):
            y[j] = <int32_t> (k if j == start else s.K + k)
        t = start


cdef double score_of(const segments* s, int64_t t, int64_t l, int64_t k) noexcept nogil:
    """The score of a segment of l + 1 tokens from token t on, with start and end."""
    cdef int64_t at = (t * s.L + l) * s.K + k
    cdef double score = (<const double*> s.scores)[at] if s.is_double else (<const float*> s.scores)[at]
    if t == 0:
        score += s.start[k]
    if t + l + 1 == s.T:
        score += s.end[k]
    return score


cdef class Brackets(Entries):
    """Scores (B, n, n, K) of spans; rules (., K, K, K), or nothing."""

    cdef brackets s

    cdef int room(self, Py_ssize_t n, bint for_parts) except -1:
        cdef brackets* s = &self.s
        cdef Py_ssize_t S, n_chart, n_tables, n_terms
        s.m, s.K, s.is_double = self.tokens, array_shape(self.scores)[3], self.is_double
        s.S = S = s.K if self.n_shared else 1
        n_chart = n * n * (3 * S + 3) + 48 * n + 8
        n_tables = 2 * S * S * S + 4 * S * S + 2 * n + 3 * s.K + 8
        n_terms = (0 if self.n_shared else (n if for_parts else 1) * n * s.K) + 16
        self.held = scratch(NULL, 8 * (n_chart + n_tables + n_terms) + 4 * (n * n + 3 * n))
        s.chart = <double*> scratch_data(self.held)
        s.tables, s.terms = s.chart + n_chart, s.chart + n_chart + n_tables
        s.labels = <int32_t*> (s.chart + n_chart + n_tables + n_terms)
        return 0

    cdef int64_t work(self, int64_t n) noexcept nogil:
        cdef int64_t labels = self.size // (4 + 4 * self.is_double) // max(self.tokens * self.tokens, 1)
        return n * n * (labels + n // 8 * (labels * labels if self.n_shared else 1)) // 2

    cdef int run(self, Py_ssize_t b, double* value, void* parts, double* counts, int32_t* y) except -1 nogil:
        cdef brackets* s = &self.s
        s.n, s.scores, s.rules = self.lengths[b], self.scored + b * self.size, NULL
        if self.n_shared:
            s.rules = self.common[0] + b * self.steps[0]
        if y != NULL:
            return KERNELS.bracket_best(s, value, y)
        return KERNELS.bracket_sums(s, value, parts, counts)

    cdef bint clears(self, Py_ssize_t b) noexcept nogil:
        return self.n_shared or self.lengths[b] == 0

    cdef void finish(self, const entries_task* t, Py_ssize_t b) noexcept nogil:
        cdef const char* scores = self.scored + b * self.size
        cdef char* parts = t.parts + b * self.size
        cdef const int32_t* places = t.y + b * 2 * self.tokens
        if t.y == NULL:
            return
        if self.is_double:
            t.known[b] = less_spans(places, 2 * self.lengths[b] - 1, <const double*> scores, <double*> parts)
        else:
            t.known[b] = less_spans(places, 2 * self.lengths[b] - 1, <const float*> scores, <float*> parts)

    # Choices, of each span before those of its parts, from left to right: of the label, where it is free, at = first
    # word, last word, 0, label; then of the first part's end and the parts' labels, at = first word, last word, 1, end,
    # labels.

    cdef double below(self, int64_t a, int64_t i, int64_t j, int64_t m, int64_t p) noexcept nogil:
        """The best score below a span with label a, cut behind word m, whose parts have the labels p."""
        cdef brackets* s = &self.s
        cdef double value = s.chart[(i * s.n + m) * s.S + p // s.S] + s.chart[((m + 1) * s.n + j) * s.S + p % s.S]
        return value if s.rules == NULL else value + s.rules[a * s.S * s.S + p]

    cdef void change(self, const detour* own, int32_t* y) noexcept nogil:
        cdef brackets* s = &self.s
        cdef int64_t i = own.at[0], j = own.at[1], a = y[i * s.m + j], m, p, cut, pair, held = 0
        cdef int32_t* stack = s.labels + s.n * s.n
        cdef bint is_given = own.at[2] == 1
        if own.at[2] == 0:
            a = own.at[3]
            y[i * s.m + j] = <int32_t> a
            if s.rules == NULL:
                return
        for m in range(i, j + 1):       # nothing stands there any more
            for p in range(m, j + 1):
                y[m * s.m + p] = -1
        while True:
            y[i * s.m + j] = <int32_t> a
            if i < j:
                cut, pair = own.at[3], own.at[4]
                if not is_given:
                    cut, pair = i, 0
                    for m in range(i, j):
                        for p in range(s.S * s.S):
                            if self.below(a, i, j, m, p) > self.below(a, i, j, cut, pair):
                                cut, pair = m, p
                is_given = False
                stack[held], stack[held + 1], stack[held + 2] = <int32_t> (cut + 1), <int32_t> j, <int32_t> (pair % s.S)
                j, a, held = cut, pair // s.S, held + 3
            elif held:
                held -= 3
                i, j, a = stack[held], stack[held + 1], stack[held + 2]
            else:
                return
            if s.rules == NULL:
                a = s.labels[i * s.n + j]

    cdef int add_detours(self, detour own, const int32_t* y, detour* found, int known, int most) noexcept nogil:
        cdef brackets* s = &self.s
        cdef int64_t i = 0, j = s.n - 1, m, p, a, cut, pair, held = 0, begin = own.at[0], end = own.at[1]
        cdef int32_t* stack = s.labels + s.n * s.n
        cdef int kind = own.at[2]
        cdef bint after = begin < 0
        cdef double less = own.score, top
        while True:
            a = y[i * s.m + j]
            own.at[0], own.at[1], own.at[2] = <int32_t> i, <int32_t> j, 0
            if after and (s.rules == NULL or j - i == s.n - 1):
                for p in range(s.K):
                    if p != a:
                        own.at[3] = <int32_t> p
                        own.score = less + (self.labelled(i, j, p) - self.labelled(i, j, a))
                        known = detours_add(found, known, most, own)
            after = after or (i == begin and j == end and kind == 0)
            if i < j:
                cut = j - 1
                while y[i * s.m + cut] < 0:
                    cut -= 1
                pair = 0 if s.rules == NULL else y[i * s.m + cut] * s.S + y[(cut + 1) * s.m + j]
                own.at[2], top = 1, self.below(a, i, j, cut, pair)
                for m in range(i, j if after else i):
                    for p in range(s.S * s.S):
                        if m != cut or p != pair:
                            own.at[3], own.at[4] = <int32_t> m, <int32_t> p
                            own.score = less + (self.below(a, i, j, m, p) - top)
                            known = detours_add(found, known, most, own)
                after = after or (i == begin and j == end)
                stack[held], held, j = <int32_t> j, held + 1, cut
            elif held:
                held -= 1
                i, j = j + 1, stack[held]
            else:
                return known

    cdef double labelled(self, int64_t i, int64_t j, int64_t label) noexcept nogil:
        """The score of a free label: of a span, or with rules of the best tree below it."""
        if self.s.rules != NULL:
            return self.s.chart[(i * self.s.n + j) * self.s.S + label]
        return self.label(i, j, label)

    cdef double label(self, int64_t i, int64_t j, int64_t label) noexcept nogil:
        cdef brackets* s = &self.s
        cdef int64_t at = (i * s.m + j) * s.K + label
        return (<const double*> s.scores)[at] if s.is_double else (<const float*> s.scores)[at]

    def through(self, scores):
        """Write the best scores of trees that have each span with each label, -inf where there is none.

        Parameters
        ----------
        scores : float64 array (B, n, n, K), all -inf
        """
        cdef Py_ssize_t b
        cdef int32_t* path
        cdef double* to = <double*> array_data(scores)
        cdef double value
        self.room(self.longest(0, self.n), False)
        y = scratch(NULL, 4 * self.tokens * self.tokens)
        path = <int32_t*> scratch_data(y)
        with nogil:
            for b in range(self.n):
                if self.lengths[b] and not self.run(b, &value, NULL, NULL, path):
                    self.go_through(to + b * self.s.m * self.s.m * self.s.K)

    cdef int go_through(self, double* scores) except -1 nogil:
        """With V the best scores of the trees of spans; what is around them, from the widest to the words."""
        cdef brackets* s = &self.s
        cdef int64_t n = s.n, S = s.S, i, j, width, k
        cdef double* V = s.chart
        cdef double* around = V + n * n * S
        cdef double best
        for k in range(n * n * S):
            around[k] = -INFINITY
        for k in range(S):
            around[(n - 1) * S + k] = 0.0
        for width in range(n - 1, -1, -1):
            for i in range(n - width):
                j = i + width
                for k in range(s.K):
                    best = V[(i * n + j) * S + (k if S > 1 else 0)] + around[(i * n + j) * S + (k if S > 1 else 0)]
                    if S == 1 and best > -INFINITY and s.rules == NULL:
                        best += self.label(i, j, k) - self.label(i, j, s.labels[i * n + j])
                    scores[(i * s.m + j) * s.K + k] = best
                self.pass_down(V, around, i, j)
            poll((n - width) * (width * S * S + S * S * S) * 2)
        return 0

    cdef void pass_down(self, const double* V, double* around, int64_t i, int64_t j) noexcept nogil:
        """Raise what is around the parts of a span to what they have below it."""
        cdef brackets* s = &self.s
        cdef int64_t n = s.n, S = s.S, m, a, b, p, left, right
        cdef double* above = s.tables           # best scores around two labels
        cdef double own
        for p in range(S * S):
            above[p] = -INFINITY
        for a in range(S):
            own = around[(i * n + j) * S + a] + self.label(i, j, a if s.rules != NULL else s.labels[i * n + j])
            for p in range(S * S):
                above[p] = max(above[p], own if s.rules == NULL else own + s.rules[a * S * S + p])
        for m in range(i, j):
            for b in range(S):
                left = (i * n + m) * S + b
                for a in range(S):
                    right, own = ((m + 1) * n + j) * S + a, above[b * S + a]
                    around[left] = max(around[left], own + V[right])
                    around[right] = max(around[right], own + V[left])

    cdef int draw(self, const double* uniforms, int64_t step, int32_t* y) except -1 nogil:
        poll(10 * self.s.n * (self.s.n + self.s.K))
        return KERNELS.bracketing_draw(&self.s, uniforms, step, y)


cdef double less_spans(const int32_t* places, int64_t n, const floating* scores, floating* parts) noexcept nogil:
    """The sum of the scores at some places; 1 is taken off the probabilities there."""
    cdef int64_t k
    cdef double value = 0.0
    for k in range(n):
        value += scores[places[k]]
        parts[places[k]] -= 1
    return value


cdef struct trees_task:
    const int32_t* y
    const int64_t* lengths
    int32_t* checked
    int32_t* places
    Py_ssize_t width
    int32_t n_labels
    bint unknown


def known_trees(y, lengths, int32_t n_labels, checked, places, int n_threads):
    """Copy labels of spans with -1 beyond the lengths; returns whether all are those of whole trees.

    Parameters
    ----------
    y : int32 array (B, n, n)
    lengths : int64 array (B,)
    checked : int32 array (B, n, n)
    places : int32 array (B, 2 n)
        Where the scores of the labels stand, in an array (n, n, K) of an entry.
    """
    cdef trees_task t
    cdef Py_ssize_t n = array_shape(y)[0]
    t.y, t.lengths, t.width = <const int32_t*> array_data(y), <const int64_t*> array_data(lengths), array_shape(y)[1]
    t.checked, t.places, t.n_labels = <int32_t*> array_data(checked), <int32_t*> array_data(places), n_labels
    t.unknown = n_labels * t.width * t.width > 2147483647
    if not t.unknown:
        each_part(copy_tree, &t, n, threads_for(n_threads, n, n * t.width * t.width // 2))
    return not t.unknown


cdef int copy_tree(void* task, int slot, int64_t b) except -1 nogil:
    cdef trees_task* t = <trees_task*> task
    cdef Py_ssize_t at = b * t.width * t.width
    poll(2 * t.width * t.width)
    if not (
        KERNELS.bracketing_copy(t.y + at, t.lengths[b], t.width, t.n_labels, t.checked + at)
        and is_tree(t.checked + at, t.lengths[b], t.width, t.n_labels, t.places + 2 * b * t.width)
    ):
        t.unknown = True
    return 0


cdef bint is_tree(const int32_t* y, int64_t n, int64_t width, int32_t K, int32_t* places) noexcept nogil:
    """Whether 2 n - 1 labels are those of a binary tree: the longest span that begins another one leaves a span.

    From left to right; a part yet to come begins with the next word, and its last word waits at the end of `places`.
    """
    cdef int64_t i = 0, j = n - 1, m, found = 0, waiting = 2 * width
    if n == 0:
        return True
    while y[i * width + j] >= 0:
        places[found] = <int32_t> (i * width + j) * K + y[i * width + j]
        found += 1
        if i == j and waiting == 2 * width:
            return True
        if i == j:
            i, j, waiting = j + 1, places[waiting], waiting + 1
            continue
        m = j - 1
        while m >= i and y[i * width + m] < 0:
            m -= 1
        if m < i:
            return False
        waiting -= 1
        places[waiting], j = <int32_t> j, m
    return False
