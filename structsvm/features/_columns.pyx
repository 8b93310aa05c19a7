"""The reader of column files, for :mod:`structsvm.features.columns`."""

from cpython.exc cimport PyErr_CheckSignals
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free

import numpy as np

from structsvm._arrays cimport array_data, ndarray
from structsvm.features._strings cimport SIGNALS, Interner, copied, hash_bytes, pointer, reserve

cdef extern from *:
    """
    /* Strict UTF-8 (no surrogates, no overlong forms), as CPython decodes it. */
    static int ssvm_valid_utf8(const void *string, size_t n) {
        const unsigned char *p = (const unsigned char *)string;
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
    """
    int valid_utf8 "ssvm_valid_utf8"(const void *string, size_t n) noexcept nogil


class RaggedLineError(Exception):
    """args: number of the line or row, columns wanted, columns found (-1: what is no row of strings)."""


class BadUTF8Error(Exception):
    """args: line number."""


def parse_columns(const uint8_t[::1] data, int64_t wanted=0):
    """Parse a column file.

    Columns are separated by runs of spaces and tabs; lines end in LF or CRLF; blank
    lines end a sequence. A file has `wanted` columns; 0: as many as its first line that is not blank.

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
    cdef int64_t size = data.shape[0], line = 0, found = 0
    cdef const char *p = pointer(data)
    cdef const char *end = p + size
    cdef const char *s
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
        if reserve(<void **>&offsets, &offsets_capacity, 64, sizeof(int64_t)) < 0:
            raise MemoryError
        offsets[0] = 0
        wanted = wanted or _width(p, end)
        for _ in range(wanted):
            interners.append(Interner())
        if reserve(<void **>&columns, &columns_capacity, wanted, sizeof(PyObject *)) < 0:
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
                if reserve(<void **>&ids, &ids_capacity, n_ids + wanted, sizeof(int32_t)) < 0:
                    status = 3
                    break
                while p < end and p[0] != c"\n":
                    s = p
                    p = _field_end(p, end)
                    if p == s:
                        p += 1
                        continue
                    if found < wanted:
                        h = hash_bytes(s, p - s)
                        i = (<Interner>columns[found]).find(s, p - s, h)
                        if i < 0:
                            if not valid_utf8(s, p - s):
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
                    if reserve(<void **>&offsets, &offsets_capacity, n_sequences + 1, sizeof(int64_t)) < 0:
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
        out_offsets = copied(offsets, n_sequences + 1, np.int64, sizeof(int64_t))
        out_ids = copied(ids, n_ids, np.int32, sizeof(int32_t)).reshape(n_tokens, wanted)
        return out_offsets, out_ids, interners
    finally:
        free(offsets)
        free(ids)
        free(columns)


def intern_rows(list rows):
    """The strings of rows, each a str or a sequence of str.

    Returns
    -------
    ids : int32 (n_rows, n_columns)
    interners : list of Interner, one a column

    Raises
    ------
    RaggedLineError
    """
    cdef Py_ssize_t n = len(rows), n_columns = 0, t, j
    cdef list interners = []
    cdef ndarray ids = np.empty((0, 0), dtype=np.int32)
    cdef int32_t *to = NULL
    cdef object row
    for t in range(n):
        row = rows[t]
        if isinstance(row, str):
            row = (row,)
        elif not isinstance(row, tuple):
            if not hasattr(row, "__len__"):
                raise RaggedLineError(t, n_columns, -1)
            row = tuple(row)
        if t == 0:
            n_columns = len(<tuple>row)
            interners = [Interner() for _ in range(n_columns)]
            ids = np.empty((n, n_columns), dtype=np.int32)
            to = <int32_t *>array_data(ids)
        if len(<tuple>row) != n_columns:
            raise RaggedLineError(t, n_columns, len(<tuple>row))
        for j in range(n_columns):
            if not isinstance((<tuple>row)[j], str):
                raise RaggedLineError(t, n_columns, -1)
            to[t * n_columns + j] = (<Interner>interners[j]).id_of((<tuple>row)[j], True)
    return ids, interners


def width(const uint8_t[::1] data):
    """The number of columns of a column file, 0 if it has no tokens."""
    cdef const char *p = pointer(data)
    return _width(p, p + data.shape[0])


cdef int64_t _width(const char *p, const char *end) noexcept nogil:
    """Columns of the first line with anything on it; they are those of the file."""
    cdef int64_t found = 0
    cdef const char *s
    while p < end and (found == 0 or p[0] != c"\n"):
        s = p
        p = _field_end(p, end)
        found += p > s
        if p == s:
            p += 1
    return found


cdef inline const char *_field_end(const char *p, const char *end) noexcept nogil:
    """First separator at or after p; a CR counts as one only at the end of a line."""
    while p < end and p[0] != c" " and p[0] != c"\t" and p[0] != c"\n":
        if p[0] == c"\r" and (p + 1 == end or p[1] == c"\n"):
            break
        p += 1
    return p


# ---- places of tokens in their sequences ---------------------------------------------------------


def places_of(const int64_t[::1] offsets, int64_t most, const int64_t[::1] sizes):
    """Places of tokens: int32 array (4, n_tokens).

    Rows: tokens before and behind it, at most `most`; the tenth of the sequence; how many of the ascending `sizes` the
    sequence's length reaches, less 1.
    """
    cdef int64_t s, t, n, k, first
    codes = np.empty((4, offsets[offsets.shape[0] - 1]), dtype=np.int32)
    cdef int32_t[:, ::1] found = codes
    with nogil:
        for s in range(offsets.shape[0] - 1):
            first, n, k = offsets[s], offsets[s + 1] - offsets[s], 0
            while k < sizes.shape[0] and sizes[k] <= n:
                k += 1
            for t in range(n):
                found[0, first + t] = <int32_t>min(t, most)
                found[1, first + t] = <int32_t>min(n - 1 - t, most)
                found[2, first + t] = <int32_t>(10 * t // n)
                found[3, first + t] = <int32_t>(k - 1)
    return codes


def counts_around(const int64_t[::1] offsets, const uint8_t[::1] counted):
    """How many tokens are counted before each one in its sequence, and behind it: int64 array (2, n_tokens)."""
    cdef int64_t s, t, n
    codes = np.empty((2, offsets[offsets.shape[0] - 1]), dtype=np.int64)
    cdef int64_t[:, ::1] found = codes
    if counted.shape[0] != found.shape[1]:
        raise ValueError(f"{counted.shape[0]} tokens, and offsets of {found.shape[1]}")
    with nogil:
        for s in range(offsets.shape[0] - 1):
            n = 0
            for t in range(offsets[s], offsets[s + 1]):
                found[0, t] = n
                n += counted[t] != 0
            for t in range(offsets[s], offsets[s + 1]):
                found[1, t] = n - found[0, t] - (counted[t] != 0)
    return codes


def marks_around(const int64_t[::1] offsets, const int64_t[::1] marks):
    """The last mark before each token in its sequence, and the next from it on: int64 array (2, n_tokens); 0: none."""
    cdef int64_t s, t, mark
    codes = np.empty((2, offsets[offsets.shape[0] - 1]), dtype=np.int64)
    cdef int64_t[:, ::1] found = codes
    if marks.shape[0] != found.shape[1]:
        raise ValueError(f"{marks.shape[0]} tokens, and offsets of {found.shape[1]}")
    with nogil:
        for s in range(offsets.shape[0] - 1):
            mark = 0
            for t in range(offsets[s], offsets[s + 1]):
                found[0, t] = mark
                mark = marks[t] if marks[t] > 0 else mark
            mark = 0
            for t in range(offsets[s + 1] - 1, offsets[s] - 1, -1):
                mark = marks[t] if marks[t] > 0 else mark
                found[1, t] = mark
    return codes


def recurring(const int64_t[::1] offsets, const int64_t[::1] kinds, int64_t n_kinds):
    """Whether a token's kind stands in its sequence once (0), or it is the first of them (1), or comes again (2)."""
    cdef int64_t s, t
    codes = np.empty(offsets[offsets.shape[0] - 1], dtype=np.int32)
    cdef int32_t[::1] found = codes
    cdef int32_t[::1] counts = np.zeros(n_kinds, dtype=np.int32)
    if kinds.shape[0] != found.shape[0]:
        raise ValueError(f"{kinds.shape[0]} tokens, and offsets of {found.shape[0]}")
    with nogil:
        for s in range(offsets.shape[0] - 1):
            for t in range(offsets[s], offsets[s + 1]):
                found[t] = 2 if counts[kinds[t]] else 0
                counts[kinds[t]] += 1
            for t in range(offsets[s], offsets[s + 1]):
                if found[t] == 0 and counts[kinds[t]] > 1:
                    found[t] = 1
            for t in range(offsets[s], offsets[s + 1]):
                counts[kinds[t]] = 0
    return codes
