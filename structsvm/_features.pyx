# User data to encoded token features: strings, column files, template tables, buffers.
#
# Strings are interned once, to dense int32 ids; everything after works on integers.
#
# A template feature is a tuple of codes (c_1, ..., c_a), 0 <= c_k < N_k. As long as
# prod N_k < 2**63 the mixed-radix number ((c_1 N_2 + c_2) N_3 + ...) *is* the tuple, so
# a table keyed by it needs no tuple comparison. Longer tuples are folded: a first table
# gives the leading codes a dense id, which then is the first digit of the next number.
# Small products index an array directly, without hashing.
#
# Codes of a column: 0 .. left-1 stand for _B-1 .. _B-left (before the sequence),
# left .. left+right-1 for _B+1 .. _B+right, and left + right + id for the string id.
# A code of -1 is an absent or unknown string: its features do not exist.
"""Compiled parts of :mod:`structsvm.columns` and :mod:`structsvm.features`."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItemWithError, PyDict_Next, PyDict_SetItem
from cpython.exc cimport PyErr_CheckSignals
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from cpython.unicode cimport PyUnicode_CheckExact, PyUnicode_Concat
from libc.math cimport isfinite
from libc.stdint cimport INT32_MAX, INT64_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, qsort, realloc
from libc.string cimport memcmp, memcpy

cimport cython

import numpy as np

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    static inline uint64_t ssvm_mix(uint64_t a, uint64_t b) {
        unsigned __int128 r = (unsigned __int128)a * b;
        return (uint64_t)r ^ (uint64_t)(r >> 64);
    }

    /* 64-bit hash of a byte string; the same on every run and little-endian machine. */
    static inline uint64_t ssvm_hash(const unsigned char *p, size_t n) {
        uint64_t h = 0x9E3779B97F4A7C15ull ^ (uint64_t)n, x;
        for (; n >= 8; p += 8, n -= 8) {
            memcpy(&x, p, 8);
            h = ssvm_mix(h ^ x, 0xA0761D6478BD642Full) + x;
        }
        x = 0;
        memcpy(&x, p, n);
        h = ssvm_mix(h ^ x, 0xE7037ED1A0B428DBull) + x;
        return ssvm_mix(h ^ 0x8EBC6AF09C88C6E3ull, 0x589965CC75374CC3ull);
    }

    /* Strict UTF-8 (no surrogates, no overlong forms), as CPython decodes it. */
    static int ssvm_valid_utf8(const unsigned char *p, size_t n) {
        const unsigned char *end = p + n;
        while (p < end) {
            unsigned c = *p++, lo = 0x80, hi = 0xBF;
            int more;
            if (c < 0x80) continue;
            if (c >= 0xC2 && c <= 0xDF) more = 1;
            else if (c >= 0xE0 && c <= 0xEF) {
                more = 2;
                if (c == 0xE0) lo = 0xA0;
                if (c == 0xED) hi = 0x9F;
            } else if (c >= 0xF0 && c <= 0xF4) {
                more = 3;
                if (c == 0xF0) lo = 0x90;
                if (c == 0xF4) hi = 0x8F;
            } else return 0;
            if (end - p < more || *p < lo || *p > hi) return 0;
            for (p++; --more; p++) if ((*p & 0xC0) != 0x80) return 0;
        }
        return 1;
    }
    #define ssvm_prefetch(p) __builtin_prefetch(p)
    static const char ssvm_nothing[1] = {0};
    """
    uint64_t ssvm_mix(uint64_t a, uint64_t b) noexcept nogil
    uint64_t ssvm_hash(const unsigned char *p, size_t n) noexcept nogil
    int ssvm_valid_utf8(const unsigned char *p, size_t n) noexcept nogil
    void ssvm_prefetch(const void *p) noexcept nogil
    const char *ssvm_nothing

cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object s, Py_ssize_t *size) except NULL
    double PyLong_AsDouble(object x) except? -1.0
    long PyLong_AsLong(PyObject *x) except? -1
    bint PyLong_Check(object x)

cdef enum:
    BLOCK = 256                 # tokens that one inner loop handles
    SIGNALS = 1 << 16           # tokens or lines between two looks at Ctrl-C
    DIRECT_LIMIT = 1 << 20      # largest array that is indexed without hashing
    MAX_DEPTH = 64              # nesting of feature dicts

cdef inline int _reserve(void **buffer, int64_t *capacity, int64_t wanted, size_t size) noexcept nogil:
    """Grow `buffer` to hold `wanted` items of `size` bytes. 0, or -1 without memory."""
    cdef int64_t n = capacity[0] + (capacity[0] >> 1) + 64
    cdef void *grown
    if wanted <= capacity[0]:
        return 0
    if n < wanted:
        n = wanted
    grown = realloc(buffer[0], <size_t>n * size)
    if grown == NULL:
        return -1
    buffer[0] = grown
    capacity[0] = n
    return 0


# ---------------------------------------------------------------- interned strings

cdef struct Slot:
    uint32_t tag        # high half of the hash
    int32_t id          # id + 1; 0: free


@cython.final
cdef class Interner:
    """Byte strings to dense ids 0, 1, ... in order of arrival."""
    cdef char *arena
    cdef int64_t arena_capacity
    cdef int64_t *starts            # string i is arena[starts[i]:starts[i + 1]]
    cdef int64_t starts_capacity
    cdef Slot *slots
    cdef uint64_t mask
    cdef readonly int64_t n

    def __cinit__(self):
        if (_reserve(<void **>&self.arena, &self.arena_capacity, 64, 1) < 0
                or _reserve(<void **>&self.starts, &self.starts_capacity, 64, sizeof(int64_t)) < 0):
            raise MemoryError
        self.slots = <Slot *>calloc(64, sizeof(Slot))
        if self.slots == NULL:
            raise MemoryError
        self.mask = 63
        self.starts[0] = 0

    def __dealloc__(self):
        free(self.arena)
        free(self.starts)
        free(self.slots)

    def __len__(self):
        return self.n

    def __reduce__(self):
        return Interner.from_arrays, self.to_arrays()

    cdef int32_t find(self, const char *s, int64_t size, uint64_t h) noexcept nogil:
        """The id of a string, or -1."""
        cdef uint64_t k = h & self.mask
        cdef uint32_t tag = <uint32_t>(h >> 32)
        cdef int32_t i
        cdef int64_t start
        while self.slots[k].id != 0:
            if self.slots[k].tag == tag:
                i = self.slots[k].id - 1
                start = self.starts[i]
                if self.starts[i + 1] - start == size and memcmp(self.arena + start, s, size) == 0:
                    return i
            k = (k + 1) & self.mask
        return -1

    cdef int32_t add(self, const char *s, int64_t size, uint64_t h) noexcept nogil:
        """Append a string known to be new. Its id, -1 without memory, -2 when full."""
        cdef uint64_t k
        cdef int64_t end = self.starts[self.n]
        if self.n >= INT32_MAX - 1:
            return -2
        if 2 * <uint64_t>self.n >= self.mask and self.rehash() < 0:
            return -1
        if (_reserve(<void **>&self.arena, &self.arena_capacity, end + size, 1) < 0
                or _reserve(<void **>&self.starts, &self.starts_capacity, self.n + 2, sizeof(int64_t)) < 0):
            return -1
        memcpy(self.arena + end, s, size)
        self.starts[self.n + 1] = end + size
        k = h & self.mask
        while self.slots[k].id != 0:
            k = (k + 1) & self.mask
        self.slots[k].tag = <uint32_t>(h >> 32)
        self.n += 1
        self.slots[k].id = <int32_t>self.n
        return <int32_t>(self.n - 1)

    cdef int rehash(self) noexcept nogil:
        cdef uint64_t mask = 2 * self.mask + 1, h, k
        cdef Slot *slots = <Slot *>calloc(mask + 1, sizeof(Slot))
        cdef int64_t i
        if slots == NULL:
            return -1
        for i in range(self.n):
            h = ssvm_hash(<const unsigned char *>self.arena + self.starts[i],
                          self.starts[i + 1] - self.starts[i])
            k = h & mask
            while slots[k].id != 0:
                k = (k + 1) & mask
            slots[k].tag = <uint32_t>(h >> 32)
            slots[k].id = <int32_t>(i + 1)
        free(self.slots)
        self.slots = slots
        self.mask = mask
        return 0

    def intern(self, strings):
        """Ids of an iterable of str, bytes or None (-1), as int32; new strings are added."""
        return self._ids(strings, True)

    def lookup(self, strings):
        """Ids of an iterable of str, bytes or None; unknown strings and None give -1."""
        return self._ids(strings, False)

    cdef _ids(self, strings, bint grow):
        cdef list items = list(strings)
        cdef Py_ssize_t k, size
        cdef const char *s
        cdef uint64_t h
        cdef int32_t i
        cdef object item
        out = np.empty(len(items), dtype=np.int32)
        cdef int32_t[::1] ids = out
        for k in range(len(items)):
            item = items[k]
            if item is None:
                ids[k] = -1
                continue
            if isinstance(item, str):
                item = _utf8(item)
            size = PyBytes_GET_SIZE(item)
            s = PyBytes_AS_STRING(item)
            h = ssvm_hash(<const unsigned char *>s, size)
            i = self.find(s, size, h)
            if i < 0 and grow:
                i = self.add(s, size, h)
                if i < 0:
                    raise MemoryError if i == -1 else OverflowError("more than 2**31 - 2 strings")
            ids[k] = i
        return out

    def lookup_arrays(self, const uint8_t[::1] data, const int64_t[::1] starts):
        """Ids of the strings ``data[starts[i]:starts[i + 1]]``; unknown ones give -1."""
        _check_offsets(starts, data.shape[0], "starts")
        cdef int64_t k, n = starts.shape[0] - 1, size
        cdef const char *base = _pointer(data)
        cdef const char *s
        out = np.empty(n, dtype=np.int32)
        cdef int32_t[::1] ids = out
        with nogil:
            for k in range(n):
                size = starts[k + 1] - starts[k]
                s = base + starts[k]
                ids[k] = self.find(s, size, ssvm_hash(<const unsigned char *>s, size))
        return out

    def to_arrays(self):
        """The strings as (data uint8, starts int64)."""
        data = np.empty(self.starts[self.n], dtype=np.uint8)
        starts = np.empty(self.n + 1, dtype=np.int64)
        cdef uint8_t[::1] d = data
        cdef int64_t[::1] t = starts
        if data.size:
            memcpy(&d[0], self.arena, data.size)
        memcpy(&t[0], self.starts, (self.n + 1) * sizeof(int64_t))
        return data, starts

    @staticmethod
    def from_arrays(const uint8_t[::1] data, const int64_t[::1] starts):
        """Build from (data, starts). A repeated string is a ValueError."""
        _check_offsets(starts, data.shape[0], "starts")
        cdef Interner self = Interner()
        cdef int64_t k, size
        cdef const char *base = _pointer(data)
        cdef const char *s
        cdef uint64_t h
        cdef int32_t i
        for k in range(starts.shape[0] - 1):
            size = starts[k + 1] - starts[k]
            s = base + starts[k]
            h = ssvm_hash(<const unsigned char *>s, size)
            if self.find(s, size, h) >= 0:
                raise ValueError(f"string {k} of a vocabulary is a repetition")
            i = self.add(s, size, h)
            if i < 0:
                raise MemoryError if i == -1 else OverflowError("more than 2**31 - 2 strings")
        return self


cdef const char *_pointer(const uint8_t[::1] data) noexcept:
    """Where the bytes start; never NULL."""
    return <const char *>&data[0] if data.shape[0] else ssvm_nothing


cdef bytes _utf8(str s):
    # Lone surrogates can be keys of a dict, so they must survive a round trip.
    return s.encode("utf-8", "surrogatepass")


def hash_strings(const uint8_t[::1] data, const int64_t[::1] starts):
    """64-bit hashes of the strings ``data[starts[i]:starts[i + 1]]``."""
    _check_offsets(starts, data.shape[0], "starts")
    cdef int64_t k
    cdef const unsigned char *base = <const unsigned char *>_pointer(data)
    out = np.empty(starts.shape[0] - 1, dtype=np.uint64)
    cdef uint64_t[::1] h = out
    for k in range(h.shape[0]):
        h[k] = ssvm_hash(base + starts[k], starts[k + 1] - starts[k])
    return out


cdef int _check_offsets(const int64_t[::1] offsets, int64_t total, str name) except -1:
    """offsets[0] == 0 <= offsets[1] <= ... == total, or ValueError."""
    cdef int64_t k, n = offsets.shape[0]
    cdef bint ok = n >= 1 and offsets[0] == 0 and offsets[n - 1] == total
    if ok:
        for k in range(n - 1):
            if offsets[k + 1] < offsets[k]:
                ok = False
                break
    if not ok:
        raise ValueError(f"{name} must rise from 0 to {total}")
    return 0


# ---------------------------------------------------------------- column files

class RaggedLineError(Exception):
    """args: line number, columns wanted, columns found."""


class BadUTF8Error(Exception):
    """args: line number."""


def parse_columns(const uint8_t[::1] data):
    """Parse a column file.

    Columns are separated by runs of spaces and tabs; lines end in LF or CRLF; blank
    lines end a sequence.

    Returns
    -------
    offsets : int64 (n_sequences + 1,)
    ids : int32 (n_tokens, n_columns)
    interners : list of Interner, one a column

    Raises
    ------
    RaggedLineError, BadUTF8Error
        With the line number.
    """
    cdef int64_t size = data.shape[0], line = 0, wanted = 0, found = 0
    cdef const char *p = _pointer(data)
    cdef const char *end = p + size
    cdef const char *s
    cdef const char *q
    cdef int64_t *offsets = NULL
    cdef int32_t *ids = NULL
    cdef int64_t offsets_capacity = 0, ids_capacity = 0
    cdef int64_t n_sequences = 0, n_tokens = 0, n_ids = 0
    cdef PyObject **columns = NULL
    cdef int64_t columns_capacity = 0
    cdef bint in_sequence = False
    cdef uint64_t h
    cdef int32_t i
    cdef int status = 0     # 0 fine, 1 ragged, 2 utf-8, 3 memory, 4 too many strings
    cdef list interners = []
    try:
        if _reserve(<void **>&offsets, &offsets_capacity, 64, sizeof(int64_t)) < 0:
            raise MemoryError
        offsets[0] = 0
        # The width of the first line with anything on it is the width of the file.
        q = p
        while q < end and (q[0] == c" " or q[0] == c"\t" or q[0] == c"\r" or q[0] == c"\n"):
            q += 1
        while q < end and q[0] != c"\n":
            while q < end and (q[0] == c" " or q[0] == c"\t"):
                q += 1
            s = q
            q = _field_end(q, end)
            wanted += q > s
            if q < end and q[0] == c"\r":
                q += 1
        for _ in range(wanted):
            interners.append(Interner())
        if _reserve(<void **>&columns, &columns_capacity, wanted, sizeof(PyObject *)) < 0:
            raise MemoryError
        for found in range(wanted):
            columns[found] = <PyObject *>interners[found]
        with nogil:
            while p < end and status == 0:
                line += 1
                if line % SIGNALS == 0:
                    with gil:
                        PyErr_CheckSignals()
                found = 0
                if _reserve(<void **>&ids, &ids_capacity, n_ids + wanted, sizeof(int32_t)) < 0:
                    status = 3
                    break
                while p < end and p[0] != c"\n":
                    if p[0] == c" " or p[0] == c"\t" or (
                            p[0] == c"\r" and (p + 1 == end or p[1] == c"\n")):
                        p += 1
                        continue
                    s = p
                    p = _field_end(p, end)
                    if found < wanted:
                        h = ssvm_hash(<const unsigned char *>s, p - s)
                        i = (<Interner>columns[found]).find(s, p - s, h)
                        if i < 0:
                            if not ssvm_valid_utf8(<const unsigned char *>s, p - s):
                                status = 2
                                break
                            i = (<Interner>columns[found]).add(s, p - s, h)
                            if i < 0:
                                status = 3 if i == -1 else 4
                                break
                        ids[n_ids + found] = i
                    found += 1
                p += 1
                if status != 0:
                    break
                if found == wanted:
                    n_ids += wanted
                    n_tokens += 1
                    in_sequence = True
                elif found != 0:
                    status = 1
                if in_sequence and (found == 0 or p >= end):
                    in_sequence = False
                    n_sequences += 1
                    if _reserve(<void **>&offsets, &offsets_capacity, n_sequences + 1, sizeof(int64_t)) < 0:
                        status = 3
                        break
                    offsets[n_sequences] = n_tokens
        if status == 1:
            raise RaggedLineError(line, wanted, found)
        if status == 2:
            raise BadUTF8Error(line)
        if status == 3:
            raise MemoryError
        if status == 4:
            raise OverflowError("more than 2**31 - 2 different strings in a column")
        if wanted == 0:
            return np.zeros(1, dtype=np.int64), np.zeros((0, 0), dtype=np.int32), []
        out_offsets = _copy(offsets, n_sequences + 1, np.int64, sizeof(int64_t))
        out_ids = _copy(ids, n_ids, np.int32, sizeof(int32_t)).reshape(n_tokens, wanted)
        return out_offsets, out_ids, interners
    finally:
        free(offsets)
        free(ids)
        free(columns)


cdef inline const char *_field_end(const char *p, const char *end) noexcept nogil:
    """First separator at or after p; a CR counts as one only at the end of a line."""
    while p < end and p[0] != c" " and p[0] != c"\t" and p[0] != c"\n":
        if p[0] == c"\r" and (p + 1 == end or p[1] == c"\n"):
            break
        p += 1
    return p


cdef _copy(const void *source, int64_t n, dtype, size_t size):
    out = np.empty(n, dtype=dtype)
    cdef size_t address = out.ctypes.data
    if n:
        memcpy(<void *>address, source, n * size)
    return out


# ---------------------------------------------------------------- template tables

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
    _check_offsets(offsets, n, "offsets")
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
        if (_reserve(<void **>&self.counts, &self.counts_capacity, n + 1, sizeof(int64_t)) < 0
                or _reserve(<void **>&self.firsts, &self.firsts_capacity, n + 1, sizeof(int64_t)) < 0
                or _reserve(<void **>&self.codes, &self.codes_capacity, (n + 1) * self.arity,
                            sizeof(int32_t)) < 0):
            return -1
        self.counts[n] = 0
        self.firsts[n] = token
        for k in range(self.arity):
            self.codes[n * self.arity + k] = codes[k]
        self.n = n + 1
        return 0

    def expand(self, list columns, list rows, const int64_t[::1] offsets, int left, int right,
               int32_t[::1] out, bint grow):
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
            _check_offsets(offsets, n, "offsets")
            if len(columns) != self.arity or len(rows) != self.arity:
                raise ValueError("a template needs one column and one row an item")
            for k in range(self.arity):
                column = columns[k]
                row = rows[k]
                if column.shape[0] != padded_size or not -left <= row <= right:
                    raise ValueError("columns must be padded for the rows")
                # Codes index direct tables, so they must be below their size.
                if n and _max(&column[0], padded_size) >= <int64_t>self.sizes[k]:
                    raise ValueError("a column has a code outside the table")
                sources[k] = &column[0] + left + row if n else NULL
            with nogil:
                for s in range(n_sequences):
                    first = offsets[s]
                    last = offsets[s + 1]
                    t = first
                    while t < last and status == 0:
                        status = self.expand_block(
                            sources, s * (left + right) + t, t, min(last - t, <int64_t>BLOCK),
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
                    ssvm_prefetch(stage.entries + (_spread(keys[i]) & stage.mask))
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
            _copy(self.counts, self.n, np.int64, sizeof(int64_t)),
            _copy(self.firsts, self.n, np.int64, sizeof(int64_t)),
            _copy(self.codes, self.n * self.arity, np.int32, sizeof(int32_t)).reshape(
                self.n, self.arity),
        )


cdef inline uint64_t _spread(uint64_t key) noexcept nogil:
    key *= <uint64_t>0x9E3779B97F4A7C15
    return key ^ (key >> 32)


cdef int64_t _max(const int32_t *x, int64_t n) noexcept nogil:
    cdef int32_t best = -1
    cdef int64_t k
    for k in range(n):
        best = x[k] if x[k] > best else best
    return best


def descending_order(const int64_t[::1] counts, firsts=None):
    """Permutation that sorts by falling count, then rising first token, then position.

    Two stable counting sorts, in time linear in the features, tokens and largest count.
    """
    cdef int64_t n = counts.shape[0], k, top = 0
    order = np.arange(n, dtype=np.int64)
    if n == 0:
        return order
    if firsts is not None:
        order = _counting_sort(firsts, order)
    for k in range(n):
        top = counts[k] if counts[k] > top else top
    return _counting_sort(top - np.asarray(counts), order)


cdef _counting_sort(const int64_t[::1] keys, const int64_t[::1] order):
    """`order`, stably sorted by keys[order], all >= 0."""
    cdef int64_t n = order.shape[0], k, top = 0
    for k in range(n):
        if keys[k] < 0:
            raise ValueError("keys must not be negative")
        top = keys[k] if keys[k] > top else top
    if top > 64 * n + (1 << 24):
        return np.asarray(order)[np.argsort(np.asarray(keys)[order], kind="stable")]
    places = np.zeros(top + 2, dtype=np.int64)
    out = np.empty(n, dtype=np.int64)
    cdef int64_t[::1] place = places
    cdef int64_t[::1] o = out
    with nogil:
        for k in range(n):
            place[keys[k] + 1] += 1
        for k in range(top + 1):
            place[k + 1] += place[k]
        for k in range(n):
            o[place[keys[order[k]]]] = order[k]
            place[keys[order[k]]] += 1
    return out


# ---------------------------------------------------------------- canonical tokens

cdef int _compare_ids(const void *a, const void *b) noexcept nogil:
    cdef int32_t x = (<const int32_t *>a)[0], y = (<const int32_t *>b)[0]
    return (x > y) - (x < y)


cdef struct Pair:
    int32_t id
    float value


cdef int64_t _merge_token(int32_t *ids, float *values, int64_t n) noexcept nogil:
    """Sort one token's entries by id and add up repetitions, in place.

    `values` NULL: all ones. Returns the entries left, -1 without memory, or -2 if a
    repetition needs values.
    """
    cdef int64_t i, j, m
    cdef int32_t x
    cdef float v
    cdef Pair *pairs
    cdef bint ascending = True
    for i in range(1, n):
        if ids[i - 1] >= ids[i]:
            ascending = False
            break
    if ascending:
        return n
    if n <= 48:
        for i in range(i, n):
            x = ids[i]
            j = i
            if values == NULL:
                while j > 0 and ids[j - 1] > x:
                    ids[j] = ids[j - 1]
                    j -= 1
            else:
                v = values[i]
                while j > 0 and ids[j - 1] > x:
                    ids[j] = ids[j - 1]
                    values[j] = values[j - 1]
                    j -= 1
                values[j] = v
            ids[j] = x
    elif values == NULL:
        qsort(ids, n, sizeof(int32_t), _compare_ids)
    else:
        pairs = <Pair *>malloc(n * sizeof(Pair))
        if pairs == NULL:
            return -1
        for i in range(n):
            pairs[i].id = ids[i]
            pairs[i].value = values[i]
        qsort(pairs, n, sizeof(Pair), _compare_ids)
        for i in range(n):
            ids[i] = pairs[i].id
            values[i] = pairs[i].value
        free(pairs)
    m = 0
    for i in range(1, n):
        if ids[i] != ids[m]:
            m += 1
            ids[m] = ids[i]
            if values != NULL:
                values[m] = values[i]
        elif values == NULL:
            return -2
        else:
            values[m] += values[i]
    return m + 1


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
    # A token's entries are sorted by insertion, which is quick when they nearly are.
    # Templates of frequent features give low numbers: take them first.
    order = sorted(range(n_templates), key=lambda j: _typical(locals_[j], maps[j]))
    locals_ = [locals_[j] for j in order]
    maps = [maps[j] for j in order]
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
                if n_tokens and _max(sources[k], n_tokens) >= view.shape[0]:
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


def _typical(ids, map_):
    """The mean feature number of a template at the first tokens; order only, never results."""
    ids = ids[:2048]
    if map_ is not None:
        ids = map_[ids[ids >= 0]]
    ids = ids[ids >= 0]
    return ids.mean() if ids.size else 0.0


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
            made = _merge_token(indices + total, values + total if values != NULL else NULL, m - total)
            if made < 0:
                return made
            total += made
            indptr[begin + i + 1] = total
        begin += n
    return total


# ---------------------------------------------------------------- token buffers

cdef class TokenBuffer:
    """Tokens gathered one after the other, as (id, value) entries in any order.

    `limit` is the number of features known beforehand, or -1 when ids are made here.
    """
    cdef int32_t *ids
    cdef float *values              # NULL: all ones so far
    cdef int64_t *indptr
    cdef int64_t *offsets
    cdef int64_t ids_capacity, values_capacity, indptr_capacity, offsets_capacity
    cdef int64_t n_entries
    cdef readonly int64_t n_tokens, n_sequences

    def __cinit__(self, *args, **kwargs):
        if (_reserve(<void **>&self.indptr, &self.indptr_capacity, 64, sizeof(int64_t)) < 0
                or _reserve(<void **>&self.offsets, &self.offsets_capacity, 64, sizeof(int64_t)) < 0):
            raise MemoryError
        self.indptr[0] = 0
        self.offsets[0] = 0

    def __dealloc__(self):
        free(self.ids)
        free(self.values)
        free(self.indptr)
        free(self.offsets)

    def __reduce__(self):
        raise TypeError("a token buffer lives during one encoding only")

    cdef int need_values(self) noexcept nogil:
        cdef int64_t k
        if _reserve(<void **>&self.values, &self.values_capacity,
                    self.ids_capacity, sizeof(float)) < 0:
            return -1
        for k in range(self.n_entries):
            self.values[k] = 1.0
        return 0

    cdef inline int push(self, int32_t id_, float value) noexcept nogil:
        if self.n_entries == self.ids_capacity:
            if _reserve(<void **>&self.ids, &self.ids_capacity, self.n_entries + 1, sizeof(int32_t)) < 0:
                return -1
            if self.values != NULL and _reserve(<void **>&self.values, &self.values_capacity,
                                                self.ids_capacity, sizeof(float)) < 0:
                return -1
        if self.values == NULL and value != 1.0 and self.need_values() < 0:
            return -1
        self.ids[self.n_entries] = id_
        if self.values != NULL:
            self.values[self.n_entries] = value
        self.n_entries += 1
        return 0

    cdef int end_token(self) noexcept nogil:
        self.n_tokens += 1
        if _reserve(<void **>&self.indptr, &self.indptr_capacity, self.n_tokens + 1, sizeof(int64_t)) < 0:
            return -1
        self.indptr[self.n_tokens] = self.n_entries
        return 0

    cdef int end_sequence(self) except -1:
        self.n_sequences += 1
        if _reserve(<void **>&self.offsets, &self.offsets_capacity, self.n_sequences + 1,
                    sizeof(int64_t)) < 0:
            raise MemoryError
        self.offsets[self.n_sequences] = self.n_tokens
        PyErr_CheckSignals()
        return 0

    def add_dense(self, const float[:, ::1] x):
        """Add a sequence of rows; zeros are left out."""
        cdef int64_t t, j, bad_token = -1, bad_feature = -1
        cdef int status = 0
        if x.shape[1] > INT32_MAX:
            raise OverflowError("more than 2**31 - 1 features")
        with nogil:
            for t in range(x.shape[0]):
                for j in range(x.shape[1]):
                    if x[t, j] != 0.0:
                        if not isfinite(x[t, j]):
                            bad_token = t
                            bad_feature = j
                            break
                        status |= self.push(<int32_t>j, x[t, j])
                if bad_token >= 0:
                    break
                status |= self.end_token()
                if status < 0:
                    break
        if bad_token >= 0:
            raise _not_finite(self.n_sequences, bad_token, str(bad_feature),
                              x[bad_token, bad_feature])
        if status < 0:
            raise MemoryError
        self.end_sequence()

    def add_csr(self, const int64_t[::1] indptr, const int64_t[::1] indices,
                const float[::1] values, int64_t n_columns, int64_t begin, int64_t end):
        """Add rows begin:end of a CSR matrix as a sequence; zeros are left out."""
        cdef int64_t t, k, bad_token = -1, bad = -1
        cdef int status = 0
        if n_columns > INT32_MAX:
            raise OverflowError("more than 2**31 - 1 features")
        if indices.shape[0] != values.shape[0] or not 0 <= begin <= end < indptr.shape[0]:
            raise ValueError("a sparse matrix has arrays that do not fit together")
        for t in range(begin, end):
            if indptr[t] < 0 or indptr[t + 1] < indptr[t] or indptr[t + 1] > indices.shape[0]:
                raise ValueError("indptr of a sparse matrix must rise and stay in range")
        with nogil:
            for t in range(begin, end):
                for k in range(indptr[t], indptr[t + 1]):
                    if indices[k] < 0 or indices[k] >= n_columns or not isfinite(values[k]):
                        bad_token = t - begin
                        bad = k
                        break
                    if values[k] != 0.0:
                        status |= self.push(<int32_t>indices[k], values[k])
                if bad >= 0:
                    break
                status |= self.end_token()
                if status < 0:
                    break
        if bad >= 0:
            if 0 <= indices[bad] < n_columns:
                raise _not_finite(self.n_sequences, bad_token, str(indices[bad]), values[bad])
            raise ValueError(f"sequence {self.n_sequences}, token {bad_token}: column "
                             f"{indices[bad]} of a matrix with {n_columns} columns")
        if status < 0:
            raise MemoryError
        self.end_sequence()

    def finish(self, remap=None):
        """(offsets, indptr, indices, values or None), ids mapped by `remap` if given."""
        cdef const int32_t[::1] map_
        cdef const int32_t *target = NULL
        cdef int64_t n = self.n_entries, total = 0, begin = 0
        cdef bint with_values = self.values != NULL
        cdef int64_t[::1] ptr
        cdef int32_t[::1] ind
        cdef float[::1] val
        offsets = _copy(self.offsets, self.n_sequences + 1, np.int64, sizeof(int64_t))
        indptr = np.zeros(self.n_tokens + 1, dtype=np.int64)
        indices = np.empty(n + 1, dtype=np.int32)
        values = np.empty(n + 1, dtype=np.float32) if with_values else None
        ptr = indptr
        ind = indices
        if with_values:
            val = values
        if remap is not None:
            map_ = remap
            if n and _max(self.ids, n) >= map_.shape[0]:
                raise ValueError("the map is too short")
            target = &map_[0] if map_.shape[0] else NULL
        while begin < self.n_tokens and total >= 0:
            with nogil:
                total = self.canonical(target, begin, min(begin + SIGNALS, self.n_tokens), total,
                                       &ptr[0], &ind[0], &val[0] if with_values else NULL)
            PyErr_CheckSignals()
            begin += SIGNALS
        if total == -2:
            if self.need_values() < 0:
                raise MemoryError
            return self.finish(remap)
        if total < 0:
            raise MemoryError
        ind = None
        val = None
        indices.resize(total, refcheck=False)
        if with_values:
            values.resize(total, refcheck=False)
        return offsets, indptr, indices, values

    cdef int64_t canonical(self, const int32_t *target, int64_t begin, int64_t end, int64_t total,
                           int64_t *indptr, int32_t *indices, float *values) noexcept nogil:
        """Tokens begin .. end - 1, after `total` entries: the entries then, or an error < 0."""
        cdef int64_t t, k, m, made
        cdef int32_t x
        for t in range(begin, end):
            m = total
            for k in range(self.indptr[t], self.indptr[t + 1]):
                x = self.ids[k] if target == NULL else target[self.ids[k]]
                if x < 0:
                    continue
                indices[m] = x
                if values != NULL:
                    values[m] = self.values[k]
                m += 1
            made = _merge_token(indices + total, values + total if values != NULL else NULL, m - total)
            if made < 0:
                return made
            total += made
            indptr[t + 1] = total
        return total


cdef _not_finite(int64_t sequence, int64_t token, name, value):
    return ValueError(f"sequence {sequence}, token {token}: feature {name!r} has the value "
                      f"{value}; values must be finite float32 numbers, not NaN or inf")


@cython.final
cdef class AttributeBuffer(TokenBuffer):
    """Tokens given as dicts of features or collections of attribute strings.

    Parameters
    ----------
    names : dict of str to int
        The vocabulary; grows with ``grow=True``.
    pairs : dict of str to dict of str to int
        Cache: the id of "key:value", so that the name is built once only.
    grow : bool
    hash_bits : int
        0: vocabulary. k: 2**k buckets.
    """
    cdef dict names, pairs
    cdef bint grow
    cdef int hash_bits
    cdef int64_t *counts
    cdef int64_t counts_capacity
    cdef int64_t token              # within the sequence, for messages

    def __init__(self, dict names, dict pairs, bint grow, int hash_bits=0):
        if not 0 <= hash_bits <= 30:
            raise ValueError("hash_bits must be between 1 and 30")
        self.names = names
        self.pairs = pairs
        self.grow = grow
        self.hash_bits = hash_bits

    def __dealloc__(self):
        free(self.counts)

    def counted(self):
        """Occurrences of each feature while growing, int64."""
        return _copy(self.counts, len(self.names), np.int64, sizeof(int64_t))

    cdef where(self):
        return f"sequence {self.n_sequences}, token {self.token}"

    cdef int64_t find(self, str name) except -2:
        """The id of a feature; -1 unknown. Names new to a growing vocabulary are added."""
        cdef PyObject *hit
        cdef int64_t n
        cdef Py_ssize_t size
        cdef bytes coded
        if self.hash_bits:
            coded = _utf8(name)
            size = PyBytes_GET_SIZE(coded)
            return <int64_t>(ssvm_hash(<const unsigned char *>PyBytes_AS_STRING(coded), size)
                             >> (64 - self.hash_bits))
        hit = PyDict_GetItemWithError(self.names, name)
        if hit != NULL:
            return PyLong_AsLong(hit)
        if not self.grow:
            return -1
        n = len(self.names)
        if n >= INT32_MAX - 1:
            raise OverflowError("more than 2**31 - 1 features")
        if _reserve(<void **>&self.counts, &self.counts_capacity, n + 1, sizeof(int64_t)) < 0:
            raise MemoryError
        self.counts[n] = 0
        self.names[name] = n
        return n

    cdef inline int record(self, int64_t id_, float value) except -1:
        if id_ >= 0:
            if self.grow and not self.hash_bits:
                self.counts[id_] += 1
            if self.push(<int32_t>id_, value) < 0:
                raise MemoryError
        return 0

    cdef int add_name(self, object name) except -1:
        """An attribute string, without a prefix."""
        cdef PyObject *hit
        if PyUnicode_CheckExact(name) and not self.hash_bits:
            hit = PyDict_GetItemWithError(self.names, name)
            if hit != NULL:
                return self.record(PyLong_AsLong(hit), 1.0)
        return self.record(self.find(self.text(name)), 1.0)

    cdef int add_pair(self, object key, object value) except -1:
        """The feature "key:value" of two exact strings."""
        cdef PyObject *inner
        cdef PyObject *hit
        cdef int64_t id_
        cdef dict values
        if self.hash_bits:
            return self.record(self.find(self.join(key, value)), 1.0)
        inner = PyDict_GetItemWithError(self.pairs, key)
        if inner != NULL:
            hit = PyDict_GetItemWithError(<object>inner, value)
            if hit != NULL:
                return self.record(PyLong_AsLong(hit), 1.0)
        id_ = self.find(self.join(key, value))
        if id_ >= 0:
            values = self.pairs.setdefault(key, {})
            PyDict_SetItem(values, value, id_)
            self.record(id_, 1.0)
        return 0

    cdef str join(self, object prefix, object rest):
        return PyUnicode_Concat(PyUnicode_Concat(prefix, ":"), rest)

    cdef str text(self, object name):
        """A name as an exact str. bytes are UTF-8, as in python-crfsuite."""
        if PyUnicode_CheckExact(name):
            return name
        if isinstance(name, str):
            return str.__str__(name)
        if isinstance(name, bytes):
            try:
                return (<bytes>name).decode("utf-8")
            except UnicodeDecodeError:
                raise ValueError(f"{self.where()}: feature {name!r} is not UTF-8") from None
        raise TypeError(f"{self.where()}: names of features must be strings, got "
                        f"{name!r} of type {type(name).__name__}")

    cdef float number(self, object name, object value) except? -1.0:
        """A numeric value as a finite float32."""
        cdef double x
        cdef float narrow
        try:
            if PyFloat_CheckExact(value):
                x = PyFloat_AS_DOUBLE(value)
            elif PyLong_Check(value):
                x = PyLong_AsDouble(value)
            elif getattr(value, "shape", ()) != ():
                raise TypeError
            else:
                x = float(value)
        except TypeError:
            raise TypeError(
                f"{self.where()}: feature {name!r} has a value of type {type(value).__name__}; "
                "wanted a string, a number, or a dict, list or set of them") from None
        except OverflowError:
            raise _not_finite(self.n_sequences, self.token, name, "too large") from None
        narrow = <float>x
        if not isfinite(narrow):
            raise _not_finite(self.n_sequences, self.token, name, x)
        return narrow

    cdef int add_item(self, object prefix, object key, object value, int depth) except -1:
        """One key and value of a dict; prefix None at the top."""
        cdef float number
        if not PyUnicode_CheckExact(key):
            key = self.text(key)
        if prefix is not None:
            key = self.join(prefix, key)
        if PyUnicode_CheckExact(value):
            return self.add_pair(key, value)
        if PyFloat_CheckExact(value) or PyLong_Check(value):
            number = self.number(key, value)
        elif isinstance(value, (str, bytes)):
            return self.add_pair(key, self.text(value))
        elif isinstance(value, (dict, list, tuple, set, frozenset)):
            return self.add_nested(key, value, depth + 1)
        else:
            number = self.number(key, value)
        if number != 0.0:
            self.record(self.find(key), number)
        return 0

    cdef int add_nested(self, object prefix, object value, int depth) except -1:
        if depth > MAX_DEPTH:
            raise ValueError(f"{self.where()}: feature dicts are nested more than {MAX_DEPTH} deep")
        if isinstance(value, dict):
            for key, inner in (<dict>value).items():
                self.add_item(prefix, key, inner, depth)
        else:
            for key in value:
                self.add_pair(prefix, self.text(key))
        return 0

    cdef int add_token(self, object token) except -1:
        cdef Py_ssize_t k = 0
        cdef PyObject *key
        cdef PyObject *value
        if isinstance(token, dict):
            if type(token) is dict:
                while PyDict_Next(token, &k, &key, &value):
                    self.add_item(None, <object>key, <object>value, 0)
            else:
                for name, inner in token.items():
                    self.add_item(None, name, inner, 0)
        elif type(token) is list:
            while k < PyList_GET_SIZE(token):
                self.add_name(<object>PyList_GET_ITEM(token, k))
                k += 1
        elif type(token) is tuple:
            for k in range(PyTuple_GET_SIZE(token)):
                self.add_name(<object>PyTuple_GET_ITEM(token, k))
        elif isinstance(token, (list, tuple, set, frozenset)):
            for name in token:
                self.add_name(name)
        elif hasattr(token, "items") and hasattr(token, "keys"):
            for name, inner in token.items():
                self.add_item(None, name, inner, 0)
        else:
            raise TypeError(
                f"{self.where()}: a token must be a dict of features or a list of attribute "
                f"strings, got {token!r:.40} of type {type(token).__name__}")
        return 0

    def add(self, sequence):
        """Add one sequence of tokens."""
        cdef int64_t before = self.n_tokens
        if isinstance(sequence, (str, bytes, dict)) or not hasattr(sequence, "__iter__"):
            raise TypeError(f"sequence {self.n_sequences} must be a list of tokens, got "
                            f"{type(sequence).__name__}")
        self.token = 0
        for token in sequence:
            self.add_token(token)
            if self.end_token() < 0:
                raise MemoryError
            self.token += 1
            if self.token & 4095 == 0:
                PyErr_CheckSignals()
        if self.n_tokens == before:
            raise ValueError(f"sequence {self.n_sequences} is empty")
        self.end_sequence()
