"""Alignments of a batch: the loops over its entries, around the recursions of alignments.h.

Each entry is computed by itself, so that the bits do not depend on how the batch is split among threads.
"""

from cython cimport floating
from libc.math cimport INFINITY, exp, fabs, isinf, log
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset

from structsvm._arrays cimport array_data, scratch, scratch_data
from structsvm.execution._stop cimport each_part, poll, threads_for

cdef extern from "alignments.h" nogil:
    const double ALIGNMENT_RANGE
    void exponentials_double(const double* x, double top, int64_t n, double* out)
    ctypedef struct alignment:
        int64_t n, m, n_ways, step_x, step_z
        int pays[3][2]
        const double* pairs
        const double* open_x
        const double* extend_x
        const double* open_z
        const double* extend_z
        const double* lead_x
        const double* lead_z
        const double* trail_x
        const double* trail_z
        double alone
        double* P
        double* X
        double* Z
    ctypedef struct alignment_flow:
        double* P
        double* X
        double* Z
        double* open_x
        double* extend_x
        double* open_z
        double* extend_z
        double* lead_x
        double* lead_z
        double* trail_x
        double* trail_z
        double alone
    double alignment_fill_sum(const alignment* s, int64_t i, double total)
    double alignment_fill_log(const alignment* s, int64_t i, double total)
    double alignment_fill_max(const alignment* s, int64_t i, double total)
    void alignment_ends_sum(const alignment* s, int64_t i, alignment_flow* f)
    void alignment_flow_sum(const alignment* s, int64_t i, alignment_flow* f)
    void alignment_ends_log(const alignment* s, int64_t i, alignment_flow* f)
    void alignment_flow_log(const alignment* s, int64_t i, alignment_flow* f)
    void alignment_trace_sum(const alignment* s, const double* u, double* terms, int32_t gap, int32_t* y)
    void alignment_trace_log(const alignment* s, const double* u, double* terms, int32_t gap, int32_t* y)
    void alignment_trace_max(const alignment* s, const double* u, double* terms, int32_t gap, int32_t* y)

# About as many nanoseconds a cell takes, and work that is done between two looks for a signal.
cdef enum:
    WORK_OF_SUM = 10
    WORK_OF_LOG = 200
    MOST_WORK = 50000

# Parts after the pairs: letters that open and extend gaps, of x and of z, those of x in a gap, and those outside.
# Arrays of an entry: of the first four, outer letters of x and of z, then leads and trails of x and of z.
cdef enum:
    PARTS = 6
    OUTSIDE = 4
    ENDS = 6
    LETTERS = 10


# The sums of a batch: where they go, alignments whose indicators are taken off, and each thread's _Room.
cdef struct alignments_task:
    void** rooms
    double* values
    char* to[PARTS + 1]
    const int32_t* partners
    double* known


cdef int sums_of_entry(void* task, int slot, int64_t b) except -1 nogil:
    cdef const alignments_task* t = <const alignments_task*> task
    return (<_Room> t.rooms[slot]).sum_entry(t, b)


cdef class Batch:
    """Scores of a batch, float32 or float64: pairs (B, n, m), and parts (1 or B, 1 or letters) in the order of `PARTS`.

    Parameters
    ----------
    ways : tuple of pairs of bool
        Whether letters of x and of z pay beyond the outer pairs.
    lengths : int64 array (B, 2)
    """

    cdef object arrays, sizes
    cdef const char* pairs
    cdef const char* parts[PARTS]
    cdef Py_ssize_t widths[PARTS]
    cdef Py_ssize_t per_entry[PARTS]
    cdef const int64_t* lengths
    cdef int64_t n_ways, rows, columns
    cdef int is_double
    cdef int pays[3][2]

    def __init__(self, pairs, parts, ways, lengths):
        self.arrays, self.sizes = (pairs, parts, lengths), lengths
        self.pairs, self.lengths = <const char*> array_data(pairs), <const int64_t*> array_data(lengths)
        self.rows, self.columns, self.is_double = pairs.shape[1], pairs.shape[2], pairs.itemsize == 8
        for k, part in enumerate(parts):
            self.parts[k], self.widths[k] = <const char*> array_data(part), part.shape[1]
            self.per_entry[k] = part.shape[1] if len(part) > 1 else 0
        self.n_ways = len(ways)
        for k, (pays_x, pays_z) in enumerate(ways):
            self.pays[k][0], self.pays[k][1] = pays_x, pays_z

    cdef double pair(self, Py_ssize_t b, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        """The score of a pair."""
        cdef Py_ssize_t at = (b * self.rows + i) * self.columns + j
        return (<const double*> self.pairs)[at] if self.is_double else (<const float*> self.pairs)[at]

    cdef double letter(self, int k, Py_ssize_t b, Py_ssize_t i) noexcept nogil:
        """The score of a letter by a part."""
        cdef Py_ssize_t at = b * self.per_entry[k] + (i if self.widths[k] > 1 else 0)
        return (<const double*> self.parts[k])[at] if self.is_double else (<const float*> self.parts[k])[at]

    def sums(self, int n_threads, totals, expected, y=None, known=None):
        """Write log partitions and, unless `expected` is None, expected pairs and letters.

        With y, alignments all of which are known, their scores are written, and their indicators taken off.

        Parameters
        ----------
        totals, known : float64 arrays (B,)
        expected : list of arrays like the pairs and the parts, of all entries, which are 0; or None
        y : int32 array (B, n)
        """
        cdef alignments_task t
        cdef Py_ssize_t n = len(self.sizes), slot
        cdef int k
        memset(&t, 0, sizeof(t))
        t.values = <double*> array_data(totals)
        for k in range(PARTS + 1 if expected is not None else 0):
            t.to[k] = <char*> array_data(expected[k])
        if y is not None:
            t.partners, t.known = <const int32_t*> array_data(y), <double*> array_data(known)
        n_threads = threads_for(n_threads, n, n * self.rows * self.columns * WORK_OF_SUM)
        rooms, places = [], scratch(NULL, n_threads * sizeof(void*))
        t.rooms = <void**> scratch_data(places)
        for slot in range(n_threads):
            room = _Room(self, 0, n, expected is not None)
            rooms.append(room)
            t.rooms[slot] = <void*> room
        each_part(sums_of_entry, &t, n, n_threads)

    def best(self, Py_ssize_t first, Py_ssize_t last, totals, y):
        """Write the best alignments and their scores, which are -inf where there is none."""
        cdef _Room room = _Room(self, first, last, False)
        cdef double* out = <double*> array_data(totals)
        cdef int32_t* to = <int32_t*> array_data(y)
        cdef Py_ssize_t b
        with nogil:
            for b in range(first, last):
                room.enter_scores(b)
                out[b] = room.fill_best()
                if out[b] > -INFINITY:
                    alignment_trace_max(&room.s, room.uniforms, room.terms, <int32_t> self.columns, to + b * self.rows)
                room.count(room.s.n * room.s.m)

    def draws(self, Py_ssize_t first, Py_ssize_t last, generators, y):
        """Write independent alignments; returns the first entry that has none, or -1.

        Parameters
        ----------
        generators : list of numpy.random.Generator, one per entry of the batch
        y : int32 array (B, n_samples, n)
        """
        cdef _Room room = _Room(self, first, last, False)
        cdef int32_t* to
        cdef const double* uniform
        cdef Py_ssize_t b, k, n_samples = y.shape[1]
        cdef int64_t step
        for b in range(first, last):
            step = self.lengths[2 * b] + self.lengths[2 * b + 1] + 1
            uniforms = generators[b].random((n_samples, step))
            uniform, to = <const double*> array_data(uniforms), (<int32_t*> array_data(y)) + b * n_samples * self.rows
            with nogil:
                room.enter(b)
                if room.fill() == -INFINITY:
                    with gil:
                        return b
                for k in range(n_samples):
                    room.trace(uniform + k * step, to + k * self.rows)
        return -1


cdef class _Room:
    """Scratch for some entries of a batch, and the entry at work."""

    cdef Batch batch
    cdef object held
    cdef alignment s
    cdef double* letters[LETTERS]
    cdef double* flows[LETTERS]
    cdef double* pairs
    cdef double* tables
    cdef double* terms
    cdef const double* uniforms
    cdef double reach
    cdef double total
    cdef int64_t done, n_letters
    cdef bint in_logs

    def __cinit__(self, Batch batch, Py_ssize_t first, Py_ssize_t last, bint for_flow):
        cdef int k, side
        cdef Py_ssize_t cells, n_tables, n, m
        cdef double* at
        n, m = (max(batch.sizes[first:last, side], default=0) for side in (0, 1))
        cells, self.batch = (n + 1) * (m + 1), batch
        self.s.n_ways, self.s.pays, self.s.step_x, self.s.step_z = batch.n_ways, batch.pays, n + 1, m + 1
        self.n_letters = (3 + 2 * batch.n_ways) * (n + m + 2)
        n_tables = (6 if for_flow else 3) * cells
        self.held = scratch(NULL, 8 * (2 * self.n_letters + (1 + batch.n_ways) * n * m + 8 + n_tables + n + m + 1))
        at = <double*> scratch_data(self.held)
        for k in range(LETTERS):
            side = k % 2 if OUTSIDE <= k < ENDS else k // 2 % 2 if k < OUTSIDE else (k - ENDS) // 2
            self.letters[k], self.flows[k] = at, at + self.n_letters
            at += (m + 1 if side else n + 1) * (batch.n_ways if k >= ENDS else 1)
        self.pairs = at + self.n_letters
        self.terms = self.pairs + n * m
        self.tables = self.terms + batch.n_ways * n * m + 8
        self.uniforms = self.tables + n_tables
        memset(<void*> self.uniforms, 0, (n + m + 1) * sizeof(double))

    cdef int sum_entry(self, const alignments_task* t, Py_ssize_t b) except -1 nogil:
        self.enter(b)
        t.values[b] = self.fill()
        if t.to[0] == NULL or t.values[b] == -INFINITY:
            return 0
        self.flow()
        if t.partners != NULL:
            t.known[b] = self.less_alignment(b, t.partners + b * self.batch.rows)
        if self.batch.is_double:
            write_expected(self, b, t, <double*> t.to[0])
        else:
            write_expected(self, b, t, <float*> t.to[0])
        return 0

    cdef void enter_scores(self, Py_ssize_t b) noexcept nogil:
        """Take the scores of an entry, as they are."""
        cdef alignment* s = &self.s
        cdef double** own = self.letters
        cdef int64_t i, j, cells
        cdef int k
        s.n, s.m, s.pairs = self.batch.lengths[2 * b], self.batch.lengths[2 * b + 1], self.pairs
        for i in range(s.n):
            for j in range(s.m):
                self.pairs[i * s.m + j] = self.batch.pair(b, i, j)
            for k in range(2):
                own[k][i] = self.batch.letter(k, b, i) + self.batch.letter(4, b, i)
            own[OUTSIDE][i] = self.batch.letter(5, b, i)
        for j in range(s.m):
            for k in range(2, 4):
                own[k][j] = self.batch.letter(k, b, j)
            own[OUTSIDE + 1][j] = 0.0
        self.reach = self.enter_ends(0, s.n) + self.enter_ends(1, s.m)
        s.open_x, s.extend_x, s.open_z, s.extend_z = own[0], own[1], own[2], own[3]
        s.lead_x, s.trail_x, s.lead_z, s.trail_z = own[ENDS], own[ENDS + 1], own[ENDS + 2], own[ENDS + 3]
        s.alone, cells = s.lead_x[s.n] + s.lead_z[s.m], (s.n + 1) * (s.m + 1)
        s.P, s.X, s.Z = self.tables, self.tables + cells, self.tables + 2 * cells

    cdef double enter_ends(self, int side, int64_t n) noexcept nogil:
        """Scores of a string's first letters, by their number, and of those from one on; returns a bound of all."""
        cdef const double* opens = self.letters[2 * side]
        cdef const double* extends = self.letters[2 * side + 1]
        cdef const double* outside = self.letters[OUTSIDE + side]
        cdef const double* more
        cdef double* lead
        cdef double* trail
        cdef int64_t i, way, step = self.s.step_z if side else self.s.step_x
        cdef double most, reach = 0.0, behind
        for i in range(n):
            most = max(0.0 if isinf(opens[i]) else fabs(opens[i]), 0.0 if isinf(extends[i]) else fabs(extends[i]))
            reach += max(most, 0.0 if isinf(outside[i]) else fabs(outside[i]))
        for way in range(self.s.n_ways):
            more = extends if self.s.pays[way][side] else outside
            lead = self.letters[ENDS + 2 * side] + way * step
            trail = self.letters[ENDS + 2 * side + 1] + way * step
            lead[0] = trail[n] = behind = 0.0
            for i in range(n):
                lead[i + 1] = lead[i] + (opens[0] if self.s.pays[way][side] and i == 0 else more[i])
            for i in range(n - 1, -1, -1):
                trail[i] = behind + (opens[i] if self.s.pays[way][side] else more[i])
                behind += more[i]
        return reach

    cdef void enter(self, Py_ssize_t b) noexcept nogil:
        """Take the scores of an entry: as exponentials, where all sums are sure to be within the range of double."""
        cdef alignment* s = &self.s
        cdef int64_t i, j, n, way
        cdef int k
        cdef double most
        self.enter_scores(b)
        for i in range(s.n):
            most = 0.0
            for j in range(s.m):
                if not isinf(self.pairs[i * s.m + j]):
                    most = max(most, fabs(self.pairs[i * s.m + j]))
            self.reach += most
        # No cell is reached by more ways than there are words of n + m letters from four.
        self.in_logs = not self.reach + (s.n + s.m) * log(4.0) < ALIGNMENT_RANGE
        if self.in_logs:
            return
        exponentials_double(self.pairs, 0.0, s.n * s.m, self.pairs)
        for k in range(OUTSIDE):
            exponentials_double(self.letters[k], 0.0, s.m if k > 1 else s.n, self.letters[k])
        for k in range(ENDS, LETTERS):
            n = s.m if k > ENDS + 1 else s.n
            for way in range(s.n_ways):
                i = way * (s.step_z if k > ENDS + 1 else s.step_x)
                exponentials_double(self.letters[k] + i, 0.0, n + 1, self.letters[k] + i)
        s.alone = exp(s.alone)

    cdef double fill(self) except? -1 nogil:
        """The log of the sum over all alignments."""
        cdef int64_t i
        self.total = self.s.alone
        for i in range(self.s.n + 1):
            if self.in_logs:
                self.total = alignment_fill_log(&self.s, i, self.total)
            else:
                self.total = alignment_fill_sum(&self.s, i, self.total)
            self.count(self.s.m)
        return self.total if self.in_logs else log(self.total)

    cdef double fill_best(self) except? -1 nogil:
        """The score of the best alignment."""
        cdef int64_t i
        self.total = self.s.alone
        for i in range(self.s.n + 1):
            self.total = alignment_fill_max(&self.s, i, self.total)
            self.count(self.s.m)
        return self.total

    cdef int count(self, int64_t cells) except -1 nogil:
        """Add to the work since the last look for a signal."""
        self.done += (WORK_OF_LOG if self.in_logs else WORK_OF_SUM) * cells
        if self.done > MOST_WORK:
            poll(self.done)
            self.done = 0
        return 0

    cdef int flow(self) except -1 nogil:
        """Leave what is expected of an entry: of pairs in a table, and of letters, also of outer ones."""
        cdef alignment* s = &self.s
        cdef alignment_flow f
        cdef int64_t i, cells = (s.n + 1) * (s.m + 1)
        f.P = self.tables + 3 * cells
        f.X, f.Z, f.alone = f.P + cells, f.P + 2 * cells, 0.0
        memset(f.P, 0, 3 * cells * sizeof(double))
        memset(self.flows[0], 0, self.n_letters * sizeof(double))
        f.open_x, f.extend_x, f.open_z, f.extend_z = self.flows[0], self.flows[1], self.flows[2], self.flows[3]
        f.lead_x, f.trail_x, f.lead_z, f.trail_z = (
            self.flows[ENDS], self.flows[ENDS + 1], self.flows[ENDS + 2], self.flows[ENDS + 3]
        )
        for i in range(s.n + 1):
            if self.in_logs:
                alignment_ends_log(s, i, &f)
            else:
                alignment_ends_sum(s, i, &f)
            self.count(s.m)
        for i in range(s.n, -1, -1):
            if self.in_logs:
                alignment_flow_log(s, i, &f)
            else:
                alignment_flow_sum(s, i, &f)
            self.count(2 * s.m)
        f.lead_x[s.n] += f.alone
        f.lead_z[s.m] += f.alone
        self.add_ends(0, s.n)
        self.add_ends(1, s.m)
        return 0

    cdef void add_ends(self, int side, int64_t n) noexcept nogil:
        """Add what is expected of a string's outer letters."""
        cdef double* opens = self.flows[2 * side]
        cdef double* extends = self.flows[2 * side + 1]
        cdef double* outside = self.flows[OUTSIDE + side]
        cdef const double* lead
        cdef const double* trail
        cdef int64_t i, way, step = self.s.step_z if side else self.s.step_x
        cdef double after, before
        for way in range(self.s.n_ways):
            lead = self.flows[ENDS + 2 * side] + way * step
            trail = self.flows[ENDS + 2 * side + 1] + way * step
            after = before = 0.0
            for i in range(n - 1, -1, -1):      # leads of more letters than i
                after += lead[i + 1]
                if not self.s.pays[way][side]:
                    outside[i] += after
                elif i:
                    extends[i] += after
                else:
                    opens[0] += after
            for i in range(n):                  # trails from a letter before i on
                if self.s.pays[way][side]:
                    opens[i] += trail[i]
                    extends[i] += before
                before += trail[i]
                if not self.s.pays[way][side]:
                    outside[i] += before

    cdef double less_alignment(self, Py_ssize_t b, const int32_t* y) noexcept nogil:
        """The score of an alignment; 1 is taken off what is expected of its pairs and letters."""
        cdef int64_t n = self.s.n, m = self.s.m, gap = self.batch.columns, i, j, first = -1, last = -1, at = 0
        cdef double* pairs = self.tables + 3 * (n + 1) * (m + 1)
        cdef double value = 0.0
        cdef bint several = self.s.n_ways > 1, before = False
        cdef bint front = self.s.pays[0][1], back = self.s.pays[0][1], free
        for i in range(n):
            if y[i] < gap:
                value += self.batch.pair(b, i, y[i])
                pairs[(i + 1) * (m + 1) + y[i] + 1] -= 1.0
                first, last = y[i] if first < 0 else first, y[i]
            elif y[i] == gap:
                value += self.take_letter(before, b, i) + self.batch.letter(4, b, i)
            else:
                value += self.batch.letter(5, b, i)
                self.flows[OUTSIDE][i] -= 1.0
            before = y[i] == gap
        if several:
            front, back = first >= 0 and y[0] > gap, first >= 0 and y[n - 1] > gap
        before = False
        for j in range(m):
            while at < n and (y[at] >= gap or y[at] < j):
                at += 1
            free = (not front) if first < 0 else (j < first and not front) or (j > last and not back)
            if free or (at < n and y[at] == j):
                before = False
                continue
            value += self.take_letter(2 + before, b, j)
            before = True
        return value

    cdef double take_letter(self, int k, Py_ssize_t b, int64_t i) noexcept nogil:
        self.flows[k][i] -= 1.0
        return self.batch.letter(k, b, i)

    cdef int trace(self, const double* uniforms, int32_t* y) except -1 nogil:
        """Write an alignment of the entry, drawn by uniform numbers."""
        if self.in_logs:
            alignment_trace_log(&self.s, uniforms, self.terms, <int32_t> self.batch.columns, y)
        else:
            alignment_trace_sum(&self.s, uniforms, self.terms, <int32_t> self.batch.columns, y)
        self.count(self.s.n * self.s.m)
        return 0


cdef void write_expected(_Room room, Py_ssize_t b, const alignments_task* t, floating* to) noexcept nogil:
    """Write what is expected of an entry: of all letters together where they share a score."""
    cdef int64_t n = room.s.n, m = room.s.m, columns = room.batch.columns, width, i, j
    cdef const double* pairs = room.tables + 3 * (n + 1) * (m + 1)
    cdef double total, one
    cdef int k
    to += b * room.batch.rows * columns
    for i in range(n):
        for j in range(m):
            to[i * columns + j] = <floating> pairs[(i + 1) * (m + 1) + j + 1]
    for k in range(PARTS):
        width, total = room.batch.widths[k], 0.0
        to = <floating*> t.to[k + 1] + b * width
        for i in range(m if 2 <= k < 4 else n):
            if k < 4:
                one = room.flows[k][i]
            else:
                one = room.flows[0][i] + room.flows[1][i] if k == 4 else room.flows[OUTSIDE][i]
            total += one
            if width > 1:
                to[i] = <floating> one
        if width == 1:
            to[0] = <floating> total


def known_alignments(y, lengths, int64_t m, bint outer_pay, bint outer_free, checked):
    """Copy partners with -1 beyond the lengths; returns whether all are known, and alignments of the mode.

    Parameters
    ----------
    y, checked : int32 arrays (B, n)
    lengths : int64 array (B, 2)
    outer_pay, outer_free : bool
        Whether letters beyond the outer pairs may be in a gap, and whether they may be outside; where both may be, they
        are outside if no letter of the other string stands there.
    """
    cdef const int32_t* letters = <const int32_t*> array_data(y)
    cdef const int64_t* sizes = <const int64_t*> array_data(lengths)
    cdef int32_t* out = <int32_t*> array_data(checked)
    cdef Py_ssize_t b, i, n = len(y), width = y.shape[1]
    for b in range(n):
        for i in range(width):
            out[i] = letters[i] if i < sizes[2 * b] else -1
        if not is_alignment(out, sizes[2 * b], sizes[2 * b + 1], m, outer_pay, outer_free):
            return False
        letters, out = letters + width, out + width
    return True


cdef bint is_alignment(
    const int32_t* y, int64_t n, int64_t width, int64_t m, bint outer_pay, bint outer_free
) noexcept nogil:
    cdef int64_t i, before = -1, first = -1, last = n
    for i in range(n):
        if 0 <= y[i] < m:
            if y[i] <= before or y[i] >= width:
                return False
            before, last, first = y[i], i, i if first < 0 else first
        elif not m <= y[i] <= m + 1:
            return False
    if first < 0:
        return is_end(y, n, m, True, outer_pay, outer_free)
    for i in range(first, last):
        if y[i] > m:
            return False
    return (
        is_end(y, first, m, y[first] == 0, outer_pay, outer_free)
        and is_end(y + last + 1, n - 1 - last, m, y[last] == width - 1, outer_pay, outer_free)
    )


cdef bint is_end(
    const int32_t* y, int64_t n, int64_t m, bint alone, bint outer_pay, bint outer_free
) noexcept nogil:
    """Whether letters beyond the outer pairs, `alone` if none of the other string stand there, are of the mode."""
    cdef int64_t i
    for i in range(n):
        if y[i] != y[0]:
            return False
    if n == 0:
        return True
    return outer_pay and not (outer_free and alone) if y[0] == m else outer_free
