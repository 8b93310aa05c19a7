# A template feature is a tuple of codes (c_1, ..., c_a), 0 <= c_k < N_k. As long as
# prod N_k < 2**63 the mixed-radix number ((c_1 N_2 + c_2) N_3 + ...) *is* the tuple, so
# a table keyed by it needs no tuple comparison. Longer tuples are folded: a first table
# gives the leading codes a dense id, which then is the first digit of the next number.
# Small products index an array directly, without hashing.
#
# Codes of a column: 0 .. left-1 stand for _B-1 .. _B-left (before the sequence),
# left .. left+right-1 for _B+1 .. _B+right, and left + right + id for the string id.
# A code of -1 is an absent or unknown string: its features do not exist.
"""Tables of template features, for :mod:`structsvm.features.templates` and ``template_features`` beside it."""

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport INT32_MAX, INT64_MAX, int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc

cimport cython

import numpy as np

from structsvm._prefetch cimport prefetch
from structsvm.features._strings cimport SIGNALS, check_offsets, copied, reserve
from structsvm.features._tokens cimport largest, merge_token

cdef enum:
    BLOCK = 256                 # tokens that one inner loop handles
    DIRECT_LIMIT = 1 << 20      # largest array that is indexed without hashing


def pad_column(const int32_t[:] ids, const int32_t[::1] codes, const int64_t[::1] offsets,
               int left, int right):
    """Codes of one column, every sequence between its `left` and `right` boundary codes.

    Token t of sequence s is at ``t + s * (left + right) + left``, so that a template
    reads at any offset from there without a test for the ends.
    """
    cdef int64_t n = ids.shape[0], n_sequences = offsets.shape[0] - 1, s, t, k = 0
    cdef int64_t n_codes = codes.shape[0]
    cdef int64_t bad = -1
    cdef int d
    check_offsets(offsets, n, "offsets")
    out = np.empty(n + n_sequences * (left + right), dtype=np.int32)
    cdef int32_t[::1] padded = out
    with nogil:
        for s in range(n_sequences):
            for d in range(left):
                padded[k] = left - 1 - d
                k += 1
            for t in range(offsets[s], offsets[s + 1]):
                if ids[t] < 0 or ids[t] >= n_codes:
                    bad = t
                    break
                padded[k] = codes[ids[t]]
                k += 1
            if bad >= 0:
                break
            for d in range(right):
                padded[k] = left + d
                k += 1
    if bad >= 0:
        raise ValueError(f"token {bad} of a column has an id outside its vocabulary")
    return out


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
    # Of every feature met while growing: occurrences, first token, tuple.
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

    cdef int enter(self, const int32_t *codes, int64_t token) noexcept nogil:
        """Note a feature that was given the id n. 0, or -1 without memory."""
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
            self.codes[n * self.arity + k] = codes[k]
        self.n = n + 1
        return 0

    def expand(self, list columns, list rows, const int64_t[::1] offsets, int left, int right,
               int32_t[::1] out, bint grow, int64_t before=0):
        """Feature ids of one template at every token.

        Parameters
        ----------
        columns : list of int32 arrays
            The padded column of each item.
        rows : list of int
            The offset of each item, -left <= row <= right.
        offsets : int64 (n_sequences + 1,)
        out : int32 (n_tokens,)
            Written: the id, or -1 for no feature.
        grow : bool
            Give new tuples the next ids, and count.
        before : int
            Tokens of earlier pieces of the same columns.
        """
        cdef int64_t n_sequences = offsets.shape[0] - 1, n = out.shape[0]
        cdef int64_t padded_size = n + n_sequences * (left + right)
        cdef const int32_t **sources = <const int32_t **>calloc(self.arity + 1, sizeof(int32_t *))
        cdef int32_t *tuple_ = <int32_t *>calloc(self.arity + 1, sizeof(int32_t))
        cdef int64_t s, t, first, last
        cdef const int32_t[::1] column
        cdef int k, row, status = 0
        try:
            if sources == NULL or tuple_ == NULL:
                raise MemoryError
            check_offsets(offsets, n, "offsets")
            if len(columns) != self.arity or len(rows) != self.arity:
                raise ValueError("a template needs one column and one row an item")
            for k in range(self.arity):
                column = columns[k]
                row = rows[k]
                if column.shape[0] != padded_size or not -left <= row <= right:
                    raise ValueError("columns must be padded for the rows")
                # Codes index direct tables, so they must be below their size.
                if n and largest(&column[0], padded_size) >= <int64_t>self.sizes[k]:
                    raise ValueError("a column has a code outside the table")
                sources[k] = &column[0] + left + row if n else NULL
            with nogil:
                for s in range(n_sequences):
                    first = offsets[s]
                    last = offsets[s + 1]
                    t = first
                    while t < last and status == 0:
                        status = self.expand_block(
                            sources, s * (left + right) + t, t + before, min(last - t, <int64_t>BLOCK),
                            &out[t], grow, tuple_)
                        t += BLOCK
                    if status != 0:
                        break
            if status == -1:
                raise MemoryError
            if status == -2:
                raise OverflowError("more than 2**31 - 1 features")
        finally:
            free(sources)
            free(tuple_)

    cdef int expand_block(self, const int32_t **sources, int64_t place, int64_t token, int64_t n,
                          int32_t *out, bint grow, int32_t *tuple_) noexcept nogil:
        """expand() for n <= BLOCK tokens of a sequence. 0, -1 no memory, -2 too many."""
        cdef int64_t keys[BLOCK]        # -1: no feature
        cdef const int32_t *source
        cdef Stage *stage = self.stages
        cdef int64_t i, id_, new_id
        cdef int64_t size
        cdef int k, m
        for i in range(n):
            keys[i] = 0
        for m in range(self.n_stages):
            stage = self.stages + m
            for k in range(stage.first, stage.last):
                source = sources[k] + place
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
                out[i] = -1
                continue
            new_id = self.n if grow else -1
            id_ = self.locate(stage, keys[i], new_id)
            if id_ == -2:
                return -1
            out[i] = <int32_t>id_
            if grow:
                if id_ == new_id:
                    if new_id >= INT32_MAX - 1:
                        return -2
                    for k in range(self.arity):
                        tuple_[k] = sources[k][place + i]
                    if self.enter(tuple_, token + i) < 0:
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


def gather_templates(list locals_, list maps, int64_t n_tokens):
    """CSR arrays (indptr, indices, values or None) of one id a template and token.

    Parameters
    ----------
    locals_ : list of int32 (n_tokens,) arrays
        Ids of each template's feature in its own space; -1: none.
    maps : list of int32 arrays or None
        From there to features; -1: dropped. None: locals_ are the features.
    """
    cdef int n_templates = len(locals_), k
    cdef bint with_values = False
    cdef const int32_t[::1] view
    cdef const int32_t **sources = <const int32_t **>calloc(n_templates + 1, sizeof(int32_t *))
    cdef const int32_t **targets = <const int32_t **>calloc(n_templates + 1, sizeof(int32_t *))
    cdef int32_t *block = <int32_t *>malloc((BLOCK * n_templates + 1) * sizeof(int32_t))
    cdef int64_t[::1] ptr
    cdef int32_t[::1] ind
    cdef float[::1] val
    cdef int64_t total, begin
    indptr = np.zeros(n_tokens + 1, dtype=np.int64)
    indices = np.empty(n_tokens * n_templates + 1, dtype=np.int32)
    values = None
    keep = []           # keeps the buffers behind the pointers alive
    ptr = indptr
    ind = indices
    try:
        if sources == NULL or targets == NULL or block == NULL:
            raise MemoryError
        for k in range(n_templates):
            view = locals_[k]
            if view.shape[0] != n_tokens:
                raise ValueError("one id a token")
            sources[k] = &view[0] if n_tokens else NULL
            keep.append(view)
            if maps[k] is not None:
                view = maps[k]
                if n_tokens and largest(sources[k], n_tokens) >= view.shape[0]:
                    raise ValueError("a map is too short")
                targets[k] = &view[0] if view.shape[0] else sources[k]
                keep.append(view)
        while True:
            total = 0
            begin = 0
            while begin < n_tokens and total >= 0:
                with nogil:
                    total = _gather(sources, targets, n_templates, begin,
                                    min(begin + SIGNALS, n_tokens), total, block, &ptr[0], &ind[0],
                                    &val[0] if with_values else NULL)
                PyErr_CheckSignals()
                begin += SIGNALS
            if total != -2:
                break
            with_values = True
            values = np.empty(indices.shape[0], dtype=np.float32)
            val = values
        if total < 0:
            raise MemoryError
    finally:
        free(sources)
        free(targets)
        free(block)
    view = None
    ind = None
    val = None
    indices.resize(total, refcheck=False)
    if with_values:
        values.resize(total, refcheck=False)
    return indptr, indices, values


cdef int64_t _gather(const int32_t **sources, const int32_t **targets, int n_templates,
                     int64_t begin, int64_t end, int64_t total, int32_t *block, int64_t *indptr,
                     int32_t *indices, float *values) noexcept nogil:
    """Tokens begin .. end - 1, after `total` entries: the entries then, or an error < 0."""
    cdef int64_t n, i, m, made
    cdef int k
    cdef int32_t x
    cdef const int32_t *source
    cdef const int32_t *target
    while begin < end:
        n = min(<int64_t>BLOCK, end - begin)
        for k in range(n_templates):
            source = sources[k] + begin
            target = targets[k]
            if target == NULL:
                for i in range(n):
                    block[i * n_templates + k] = source[i]
            else:
                for i in range(n):
                    block[i * n_templates + k] = target[source[i]] if source[i] >= 0 else -1
        for i in range(n):
            m = total
            for k in range(n_templates):    # without a branch: -1 is overwritten
                x = block[i * n_templates + k]
                indices[m] = x
                m += x >= 0
            if values != NULL:
                for k in range(m - total):
                    values[total + k] = 1.0
            made = merge_token(indices + total, values + total if values != NULL else NULL, m - total)
            if made < 0:
                return made
            total += made
            indptr[begin + i + 1] = total
        begin += n
    return total
