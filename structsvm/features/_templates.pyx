# A template feature is a tuple of codes (c_1, ..., c_a), 0 <= c_k < N_k. As long as
# prod N_k < 2**63 the mixed-radix number ((c_1 N_2 + c_2) N_3 + ...) *is* the tuple, so
# a table keyed by it needs no tuple comparison. Longer tuples are folded: a first table
# gives the leading codes a dense id, which then is the first digit of the next number.
# Small products index an array directly, without hashing.
#
# The code of a string of a column is left + right + id; 0 .. left-1 stand for _B-1 .. _B-left (before the sequence),
# left .. left+right-1 for _B+1 .. _B+right, unless the places outside are strings like others. Where names are hashed,
# codes are hashes of strings. A code of -1 is an absent or unknown string: its features do not exist.
"""Templates at tokens, for :mod:`structsvm.features.template_features`."""

from cpython.exc cimport PyErr_CheckSignals
from cpython.object cimport PyObject
from libc.stdint cimport INT32_MAX, INT64_MAX, int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc

cimport cython

import numpy as np

from structsvm._arrays cimport array_data, ndarray
from structsvm._prefetch cimport prefetch
from structsvm.features._strings cimport SIGNALS, check_offsets, copied, reserve
from structsvm.features._tokens cimport merge_token

cdef enum:
    BLOCK = 128                 # tokens that one inner loop handles
    DIRECT_LIMIT = 1 << 20      # largest array that is indexed without hashing


cdef struct Entry:
    uint64_t key
    int64_t id          # id + 1; 0: free

cdef struct Stage:
    int first, last     # items first .. last - 1 of the tuple
    int32_t *direct     # id + 1 by key, or NULL
    Entry *entries      # open addressing, or NULL
    uint64_t mask
    int64_t n


@cython.final
cdef class TemplateTable:
    """The feature space of templates that differ in their offsets only.

    Parameters
    ----------
    sizes : list of int
        The number of codes N_k of each item of the tuple.
    direct_limit : int
        Largest array to index without hashing (of int32; at most 2**20).
    """
    cdef int arity, n_stages
    cdef uint64_t *sizes
    cdef Stage *stages
    cdef readonly int64_t n
    # Occurrences, first token and tuple of every feature met while growing.
    cdef int64_t *counts
    cdef int64_t *firsts
    cdef int32_t *codes
    cdef int64_t counts_capacity, firsts_capacity, codes_capacity
    cdef uint64_t direct_limit

    def __cinit__(self, list sizes, int64_t direct_limit=DIRECT_LIMIT):
        cdef int k
        self.arity = len(sizes)
        self.direct_limit = max(0, min(direct_limit, <int64_t>DIRECT_LIMIT))
        self.sizes = <uint64_t *>calloc(self.arity + 1, sizeof(uint64_t))
        self.stages = <Stage *>calloc(self.arity + 1, sizeof(Stage))
        if self.sizes == NULL or self.stages == NULL:
            raise MemoryError
        for k in range(self.arity):
            if not 0 <= sizes[k] <= INT32_MAX:
                raise OverflowError("a column has more than 2**31 - 1 different strings")
            self.sizes[k] = max(<int64_t>sizes[k], 1)
        self.make_stages()

    cdef int make_stages(self) except -1:
        cdef uint64_t room = 1          # the product of the sizes so far
        cdef uint64_t limit = <uint64_t>INT64_MAX
        cdef int k
        cdef Stage *stage = self.stages
        self.n_stages = 1
        stage.first = 0
        for k in range(self.arity):
            if room > limit // self.sizes[k]:
                stage.last = k
                self.open_stage(stage, room)
                stage += 1
                self.n_stages += 1
                stage.first = k
                room = INT32_MAX        # dense ids of the stage before
            room *= self.sizes[k]
        stage.last = self.arity
        self.open_stage(stage, room)
        return 0

    cdef int open_stage(self, Stage *stage, uint64_t room) except -1:
        if room <= self.direct_limit:
            stage.direct = <int32_t *>calloc(room, sizeof(int32_t))
        else:
            stage.mask = 255
            stage.entries = <Entry *>calloc(256, sizeof(Entry))
        if stage.direct == NULL and stage.entries == NULL:
            raise MemoryError
        return 0

    def __dealloc__(self):
        cdef int k
        if self.stages != NULL:
            for k in range(self.n_stages):
                free(self.stages[k].direct)
                free(self.stages[k].entries)
        free(self.stages)
        free(self.sizes)
        free(self.counts)
        free(self.firsts)
        free(self.codes)

    def __reduce__(self):
        raise TypeError("a TemplateTable is rebuilt from an encoder's arrays, not pickled")

    cdef int rehash(self, Stage *stage) noexcept nogil:
        cdef uint64_t mask = 4 * stage.mask + 3, j, k
        cdef Entry *entries = <Entry *>calloc(mask + 1, sizeof(Entry))
        if entries == NULL:
            return -1
        for j in range(stage.mask + 1):
            if stage.entries[j].id != 0:
                k = _spread(stage.entries[j].key) & mask
                while entries[k].id != 0:
                    k = (k + 1) & mask
                entries[k] = stage.entries[j]
        free(stage.entries)
        stage.entries = entries
        stage.mask = mask
        return 0

    cdef int64_t locate(self, Stage *stage, uint64_t key, int64_t new_id) noexcept nogil:
        """The id of a key. A new key gets new_id, if that is >= 0. -1 unknown, -2 memory."""
        cdef uint64_t k
        if stage.direct != NULL:
            if stage.direct[key] == 0 and new_id >= 0:
                stage.direct[key] = <int32_t>(new_id + 1)
                stage.n += 1
            return stage.direct[key] - 1
        k = _spread(key) & stage.mask
        while stage.entries[k].id != 0:
            if stage.entries[k].key == key:
                return stage.entries[k].id - 1
            k = (k + 1) & stage.mask
        if new_id < 0:
            return -1
        if 2 * <uint64_t>stage.n >= stage.mask:
            if self.rehash(stage) < 0:
                return -2
            k = _spread(key) & stage.mask
            while stage.entries[k].id != 0:
                k = (k + 1) & stage.mask
        stage.entries[k].key = key
        stage.entries[k].id = new_id + 1
        stage.n += 1
        return new_id

    cdef int enter(self, const int64_t **sources, int64_t i, int64_t token) noexcept nogil:
        """Note a feature, token i of the sources, that was given the id n. 0, or -1 without memory."""
        cdef int64_t n = self.n
        cdef int k
        if (reserve(<void **>&self.counts, &self.counts_capacity, n + 1, sizeof(int64_t)) < 0
                or reserve(<void **>&self.firsts, &self.firsts_capacity, n + 1, sizeof(int64_t)) < 0
                or reserve(<void **>&self.codes, &self.codes_capacity, (n + 1) * self.arity,
                           sizeof(int32_t)) < 0):
            return -1
        self.counts[n] = 0
        self.firsts[n] = token
        for k in range(self.arity):
            self.codes[n * self.arity + k] = <int32_t>sources[k][i]
        self.n = n + 1
        return 0

    cdef int find(self, const int64_t **sources, int64_t n, int64_t token, int32_t *out, int64_t stride,
                  bint grow) noexcept nogil:
        """The features of n <= BLOCK tokens, to every stride-th item of out. 0, -1 no memory, -2 too many."""
        cdef int64_t keys[BLOCK]        # -1: no feature
        cdef const int64_t *source
        cdef Stage *stage = self.stages
        cdef int64_t i, id_, new_id
        cdef int64_t size
        cdef int k, m
        for i in range(n):
            keys[i] = 0
        for m in range(self.n_stages):
            stage = self.stages + m
            for k in range(stage.first, stage.last):
                source = sources[k]
                size = <int64_t>self.sizes[k]
                for i in range(n):
                    keys[i] = -1 if (source[i] | keys[i]) < 0 else keys[i] * size + source[i]
            if stage.entries != NULL:
                for i in range(n):
                    prefetch(stage.entries + (_spread(keys[i]) & stage.mask))
            if m + 1 < self.n_stages:
                for i in range(n):
                    if keys[i] >= 0:
                        if stage.n >= INT32_MAX - 1:
                            return -2
                        keys[i] = self.locate(stage, keys[i], stage.n if grow else -1)
                        if keys[i] == -2:
                            return -1
        for i in range(n):
            if keys[i] < 0:
                out[i * stride] = -1
                continue
            new_id = self.n if grow else -1
            id_ = self.locate(stage, keys[i], new_id)
            if id_ == -2:
                return -1
            out[i * stride] = <int32_t>id_
            if grow:
                if id_ == new_id:
                    if new_id >= INT32_MAX - 1:
                        return -2
                    if self.enter(sources, i, token + i) < 0:
                        return -1
                self.counts[id_] += 1
                # Another template of this space may have met it at a later token.
                if token + i < self.firsts[id_]:
                    self.firsts[id_] = token + i
        return 0

    def insert(self, const int32_t[:, ::1] codes, const int32_t[::1] ids):
        """Give tuple codes[j] the id ids[j]. A code out of range or a repetition is an error."""
        cdef int64_t j, key, id_
        cdef int k, m
        cdef Stage *stage
        if codes.shape[1] != self.arity or codes.shape[0] != ids.shape[0]:
            raise ValueError("a feature has the wrong number of codes")
        for j in range(codes.shape[0]):
            key = 0
            for m in range(self.n_stages):
                stage = self.stages + m
                for k in range(stage.first, stage.last):
                    if codes[j, k] < 0 or codes[j, k] >= <int64_t>self.sizes[k]:
                        raise ValueError("a feature has a code outside its vocabulary")
                    key = key * <int64_t>self.sizes[k] + codes[j, k]
                if m + 1 == self.n_stages:
                    if ids[j] < 0 or self.locate(stage, key, -1) >= 0:
                        raise ValueError("a feature is there twice")
                    id_ = self.locate(stage, key, ids[j])
                else:
                    key = id_ = self.locate(stage, key, stage.n)
                if id_ == -2:
                    raise MemoryError

    def statistics(self):
        """(counts int64, firsts int64, codes int32 (n, arity)) of the features met."""
        return (
            copied(self.counts, self.n, np.int64, sizeof(int64_t)),
            copied(self.firsts, self.n, np.int64, sizeof(int64_t)),
            copied(self.codes, self.n * self.arity, np.int32, sizeof(int32_t)).reshape(
                self.n, self.arity),
        )


cdef inline uint64_t _spread(uint64_t key) noexcept nogil:
    key *= <uint64_t>0x9E3779B97F4A7C15
    return key ^ (key >> 32)


cdef struct Column:
    const int32_t *rows         # by string, the row of its codes
    int64_t n_strings
    const int64_t *codes
    int64_t width
    const char *ids             # bytes of each token's text, so many apart
    int64_t step


@cython.final
cdef class TemplateReader:
    """Finds the features of all templates of a layout at tokens.

    Parameters
    ----------
    tables : list of TemplateTable
        Those of the templates. None: features are hashed to `bits` bits.
    seeds : uint64 (n_templates,)
        Where features are hashed: the hash that a template's begins with.
    starts : int32 (n_templates + 1,)
        Template k has items ``starts[k]:starts[k + 1]``.
    items : int32 (n_items, 2)
        The source and the offset, -left <= offset <= right, of each.
    sources : int32 (n_sources, 2)
        The column of each, and which of that column's codes.
    boundaries : int64 (n_sources, left + right)
        The codes outside a sequence of each source, those before it first.
    of_bigrams : bool
        Whether first tokens of sequences have no features.
    """
    cdef list tables
    cdef int left, right, bits
    cdef bint of_bigrams
    cdef Py_ssize_t n_templates, n_items, n_sources
    cdef tuple arrays                   # whose these are
    cdef const uint64_t *seeds
    cdef const int32_t *starts
    cdef const int32_t *items
    cdef const int32_t *sources
    cdef const int64_t *boundaries

    def __cinit__(self, list tables, ndarray seeds, ndarray starts, ndarray items, ndarray sources, ndarray boundaries,
                  int left, bint of_bigrams, int bits):
        self.tables, self.arrays = tables, (seeds, starts, items, sources, boundaries)
        self.n_templates, self.n_items, self.n_sources = len(seeds), len(items), len(sources)
        self.seeds, self.starts = <const uint64_t *>array_data(seeds), <const int32_t *>array_data(starts)
        self.items, self.sources = <const int32_t *>array_data(items), <const int32_t *>array_data(sources)
        self.boundaries = <const int64_t *>array_data(boundaries)
        self.left, self.right = left, boundaries.shape[1] - left
        self.of_bigrams, self.bits = of_bigrams, bits

    def __reduce__(self):
        raise TypeError("a TemplateReader is rebuilt from its layout, not pickled")

    def read(self, ndarray ids, const int64_t[::1] offsets, list codes, bint grow=False, int64_t before=0):
        """The feature of each template at each token, -1 for none: int32 (n_tokens * n_templates,).

        Parameters
        ----------
        ids : int32 (n_tokens, n_columns)
        offsets : int64 (n_sequences + 1,)
        codes : list of (int, int32 (n_strings,), int64 (n_rows, n_sources))
            Of each column that has sources: its number, the row of each string, and codes by row; these are below the
            sizes of the tables.
        grow : bool
            Give new tuples the next ids, and count.
        before : int
            Tokens of earlier pieces of the same columns.
        """
        cdef int64_t n = len(ids), n_sequences = offsets.shape[0] - 1, s, t, looked = 0
        cdef Py_ssize_t n_templates = self.n_templates, j, n_columns = ids.shape[1]
        cdef int status = 0
        cdef ndarray rows, its
        cdef Column *columns = <Column *>calloc(n_columns + 1, sizeof(Column))
        # The row of each token in each column, and its codes in each source.
        cdef int64_t size = BLOCK + self.left + self.right
        cdef int64_t *room = <int64_t *>malloc((self.n_sources + 1) * size * sizeof(int64_t))
        cdef const int64_t **places = <const int64_t **>calloc(self.n_items + 1, sizeof(int64_t *))
        cdef PyObject **tables = <PyObject **>calloc(n_templates + 1, sizeof(PyObject *))
        cdef ndarray out = np.empty(n * n_templates, dtype=np.int32)
        cdef int32_t *found = <int32_t *>array_data(out)
        try:
            if columns == NULL or room == NULL or places == NULL or tables == NULL:
                raise MemoryError
            check_offsets(offsets, n, "offsets")
            for j, rows, its in codes:
                columns[j].rows, columns[j].n_strings = <const int32_t *>array_data(rows), len(rows)
                columns[j].codes, columns[j].width = <const int64_t *>array_data(its), its.shape[1]
            for j in range(n_columns):
                columns[j].ids = <const char *>array_data(ids) + j * <Py_ssize_t>ids.strides[1]
                columns[j].step = ids.strides[0]
            for j in range(len(self.tables)):
                tables[j] = <PyObject *>self.tables[j]
            with nogil:
                for s in range(n_sequences if n_templates else 0):
                    t = offsets[s]
                    if self.of_bigrams and t < offsets[s + 1]:
                        for j in range(n_templates):
                            found[t * n_templates + j] = -1
                        t += 1
                    while t < offsets[s + 1] and status == 0:
                        status = self.read_block(columns, offsets[s], offsets[s + 1], t, room, places,
                                                 tables, &found[t * n_templates], grow, t + before)
                        t += BLOCK
                    if status != 0:
                        break
                    if t - looked > SIGNALS:
                        looked = t
                        with gil:
                            PyErr_CheckSignals()
            if status == -1:
                raise MemoryError
            if status == -2:
                raise OverflowError("more than 2**31 - 1 features")
            if status == -3:
                raise ValueError(f"a column of sequence {s} has an id outside its vocabulary")
        finally:
            free(columns)
            free(room)
            free(places)
            free(tables)
        return out

    cdef int read_block(self, const Column *columns, int64_t first, int64_t last, int64_t t, int64_t *room,
                        const int64_t **places, PyObject **tables, int32_t *out, bint grow,
                        int64_t number) noexcept nogil:
        """Up to BLOCK tokens from t on of the sequence first .. last - 1. 0, -1 memory, -2 many, -3 a bad id."""
        cdef int64_t n = min(<int64_t>BLOCK, last - t), size = n + self.left + self.right, i, p, k
        cdef int64_t n_templates = self.n_templates, column = -1, x, j
        cdef int64_t *rows = room       # row of a token outside the sequence: -1 - its code
        cdef int64_t *to = room
        cdef const int64_t *source
        cdef const int64_t *outside
        cdef int status
        cdef uint64_t h
        for k in range(self.n_sources):
            j = self.sources[2 * k]
            if j != column:
                column = j
                for i in range(size):
                    p = t + i - self.left
                    if p < first:
                        rows[i] = p - first
                    elif p >= last:
                        rows[i] = last - p - 1 - self.left
                    else:
                        x = (<const int32_t *>(columns[j].ids + p * columns[j].step))[0]
                        if x < 0 or x >= columns[j].n_strings:
                            return -3
                        rows[i] = columns[j].rows[x] * columns[j].width
            to += size
            source = columns[j].codes + self.sources[2 * k + 1]
            outside = self.boundaries + k * (self.left + self.right)
            for i in range(size):
                to[i] = source[rows[i]] if rows[i] >= 0 else outside[-1 - rows[i]]
        for k in range(self.n_items):
            places[k] = room + (self.items[2 * k] + 1) * size + self.left + self.items[2 * k + 1]
        for k in range(n_templates):
            if self.bits == 0:
                status = (<TemplateTable>tables[k]).find(
                    places + self.starts[k], n, number, out + k, n_templates, grow)
                if status != 0:
                    return status
                continue
            for i in range(n):
                h = self.seeds[k]
                x = 0
                for j in range(self.starts[k], self.starts[k + 1]):
                    x |= places[j][i] == -1
                    h ^= <uint64_t>places[j][i]
                    h *= <uint64_t>0x9E3779B97F4A7C15
                    h ^= h >> 29
                out[i * n_templates + k] = -1 if x else <int32_t>(h >> (64 - self.bits))
        return 0


def merge_templates(ndarray found, int64_t n_tokens, ndarray order, list maps=None, *, bint once=False):
    """CSR arrays (indptr, indices, values or None) of what `TemplateReader.read` returned, which is overwritten.

    Parameters
    ----------
    found : int32 (n_tokens * n_templates,)
    order : int32 (n_templates,)
        In which a token's features are taken: sorting them is quick when they nearly are.
    maps : list of int32 arrays, optional
        By template, from what was found to features; -1: dropped.
    once : bool
        Whether a feature of several templates counts once, not as often as they find it.
    """
    cdef Py_ssize_t n_templates = len(order), k
    cdef int64_t t = 0, end
    cdef ndarray made = None, indptr = np.zeros(n_tokens + 1, dtype=np.int64)
    cdef int64_t *ptr = <int64_t *>array_data(indptr)
    cdef float *values = NULL
    cdef bint has_maps = maps is not None
    cdef const int32_t **targets = <const int32_t **>calloc(n_templates + 1, sizeof(int32_t *))
    cdef int32_t *row = <int32_t *>malloc((n_templates + 1) * sizeof(int32_t))
    try:
        if targets == NULL or row == NULL:
            raise MemoryError
        if len(found) != n_tokens * n_templates:
            raise ValueError("one feature a token and template")
        for k in range(n_templates if maps is not None else 0):
            targets[k] = <const int32_t *>array_data(<ndarray?>maps[k])
        while t < n_tokens and n_templates:
            end = min(t + SIGNALS, n_tokens)
            with nogil:
                t = _merge(<int32_t *>array_data(found), <const int32_t *>array_data(order), n_templates,
                           targets if has_maps else NULL, t, end, once, row, ptr, values)
            if t < 0:
                raise MemoryError
            if t < end:
                made = np.ones(len(found), dtype=np.float32)
                values = <float *>array_data(made)
            PyErr_CheckSignals()
    finally:
        free(targets)
        free(row)
    found.resize(ptr[n_tokens], refcheck=False)
    if made is not None:
        made.resize(ptr[n_tokens], refcheck=False)
    return indptr, found, made


cdef int64_t _merge(int32_t *found, const int32_t *order, int64_t n, const int32_t **targets, int64_t t, int64_t end,
                    bint once, int32_t *row, int64_t *indptr, float *values) noexcept nogil:
    """Merge tokens t .. end - 1, in place. Where it ends: before a token that needs values, or -1 without memory."""
    cdef int64_t total = indptr[t], m, k, made
    cdef int32_t x
    while t < end:
        for k in range(n):
            row[k] = found[t * n + order[k]]
        m = total
        for k in range(n):      # without a branch: -1 is overwritten
            x = row[k]
            if targets != NULL and x >= 0:
                x = targets[order[k]][x]
            found[m] = x
            m += x >= 0
        if values != NULL:
            for k in range(total, m):
                values[k] = 1.0
        made = merge_token(found + total, values + total if values != NULL else NULL, m - total, once)
        if made == -2:
            for k in range(n):
                found[t * n + order[k]] = row[k]
            return t
        if made < 0:
            return -1
        total += made
        t += 1
        indptr[t] = total
    return t
