# Strings are interned once, to dense int32 ids; everything after works on integers.
"""Byte strings and their numbers."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_AsEncodedString
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy

cimport cython

import numpy as np

from structsvm._arrays cimport array_data, ndarray


@cython.final
cdef class Interner:
    """Byte strings to dense ids 0, 1, ... in order of arrival."""
    def __cinit__(self):
        if (reserve(<void **>&self.arena, &self.arena_capacity, 64, 1) < 0
                or reserve(<void **>&self.starts, &self.starts_capacity, 64, sizeof(int64_t)) < 0):
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
        return interner_of, self.to_arrays()

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
        if (reserve(<void **>&self.arena, &self.arena_capacity, end + size, 1) < 0
                or reserve(<void **>&self.starts, &self.starts_capacity, self.n + 2, sizeof(int64_t)) < 0):
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
            h = hash_bytes(self.arena + self.starts[i], self.starts[i + 1] - self.starts[i])
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
        cdef Py_ssize_t k
        out = np.empty(len(items), dtype=np.int32)
        cdef int32_t[::1] ids = out
        for k in range(len(items)):
            ids[k] = -1 if items[k] is None else self.id_of(items[k], grow)
        return out

    cdef int32_t id_of(self, object item, bint grow) except -2:
        """The id of a str or bytes, -1 if it is unknown and `grow` is false."""
        cdef int64_t size
        cdef const char *s
        cdef uint64_t h
        cdef int32_t i
        s = ascii_of(item, &size) if isinstance(item, str) else NULL
        if s == NULL:
            if isinstance(item, str):
                item = utf8(item)
            elif not isinstance(item, bytes):
                raise TypeError(f"wanted str, bytes or None, got {type(item).__name__}")
            size = PyBytes_GET_SIZE(item)
            s = PyBytes_AS_STRING(item)
        h = hash_bytes(s, size)
        i = self.find(s, size, h)
        if i < 0 and grow:
            i = self.add(s, size, h)
            if i < 0:
                raise MemoryError if i == -1 else OverflowError("more than 2**31 - 2 strings")
        return i

    def lookup_arrays(self, const uint8_t[::1] data, const int64_t[::1] starts):
        """Ids of the strings ``data[starts[i]:starts[i + 1]]``; unknown ones give -1."""
        check_offsets(starts, data.shape[0], "starts")
        cdef int64_t k, n = starts.shape[0] - 1, size
        cdef const char *base = pointer(data)
        cdef const char *s
        out = np.empty(n, dtype=np.int32)
        cdef int32_t[::1] ids = out
        with nogil:
            for k in range(n):
                size = starts[k + 1] - starts[k]
                s = base + starts[k]
                ids[k] = self.find(s, size, hash_bytes(s, size))
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
        check_offsets(starts, data.shape[0], "starts")
        cdef Interner self = Interner()
        cdef int64_t k, size
        cdef const char *base = pointer(data)
        cdef const char *s
        cdef uint64_t h
        cdef int32_t i
        for k in range(starts.shape[0] - 1):
            size = starts[k + 1] - starts[k]
            s = base + starts[k]
            h = hash_bytes(s, size)
            if self.find(s, size, h) >= 0:
                raise ValueError(f"string {k} of a vocabulary is a repetition")
            i = self.add(s, size, h)
            if i < 0:
                raise MemoryError if i == -1 else OverflowError("more than 2**31 - 2 strings")
        return self


@cython.final
cdef class NameTable:
    """Names and their numbers, found by the beginning and the rest of a name, which need not be joined.

    A look-up reads one slot and the name, where a dict of strings reads five places of memory. Of several names asked
    together the slots, then the names, are fetched side by side.

    Parameters
    ----------
    names : list of str
        Each once; their places are their numbers.
    """

    def __init__(self, list names):
        if self.slots != NULL:
            raise TypeError("a table of names is filled once")
        self.put(names)

    def __dealloc__(self):
        free(self.arena)
        free(self.slots)

    def __reduce__(self):
        raise TypeError("a table of names is made anew from its names")

    def __len__(self):
        return self.n

    cdef int put(self, list names) except -1:
        cdef int64_t n = len(names), i, capacity = 0, start = 0
        cdef uint64_t n_slots = 64, h, k
        cdef uint32_t size
        cdef const char *s
        cdef bytes coded
        while n_slots < 2 * <uint64_t>n:
            n_slots *= 2
        if n >= INT32_MAX:
            raise OverflowError("more than 2**31 - 2 names")
        self.slots = <NameSlot *>calloc(n_slots, sizeof(NameSlot))
        if self.slots == NULL:
            raise MemoryError
        self.mask = n_slots - 1
        for i in range(n):
            coded = utf8(names[i])
            if PyBytes_GET_SIZE(coded) > INT32_MAX:
                raise OverflowError("a name of more than 2**31 - 1 bytes")
            s, size = PyBytes_AS_STRING(coded), <uint32_t>PyBytes_GET_SIZE(coded)
            if reserve(<void **>&self.arena, &capacity, start + sizeof(size) + size, 1) < 0:
                raise MemoryError
            memcpy(self.arena + start, &size, sizeof(size))
            memcpy(self.arena + start + sizeof(size), s, size)
            h = stir(spell(SPELLED, s, size))
            k = h & self.mask
            while self.slots[k].id != 0:
                k = (k + 1) & self.mask
            self.slots[k] = NameSlot(<uint32_t>(h >> 32), <int32_t>(i + 1), start)
            start += sizeof(size) + size
            self.n = i + 1
        return 0

    cdef void expect(self, uint64_t h) noexcept nogil:
        """Begin to fetch the slot of a name that will be asked for."""
        prefetch(&self.slots[stir(h) & self.mask])

    cdef void find_all(self, const Asked *asked, int64_t n, int32_t *ids) noexcept nogil:
        """The numbers of names, or -1 for unknown ones."""
        cdef int64_t i
        cdef const NameSlot *slot
        for i in range(n):
            slot = &self.slots[stir(asked[i].h) & self.mask]
            if slot.id != 0:
                prefetch(self.arena + slot.start)
        for i in range(n):
            ids[i] = self.find(&asked[i])

    cdef int32_t find(self, const Asked *asked) noexcept nogil:
        """The number of a name, or -1."""
        cdef uint64_t h = stir(asked.h), k = h & self.mask
        cdef uint32_t tag = <uint32_t>(h >> 32), size
        cdef const char *name
        while self.slots[k].id != 0:
            if self.slots[k].tag == tag:
                name = self.arena + self.slots[k].start
                memcpy(&size, name, sizeof(size))
                name += sizeof(size)
                if (size == asked.n_head + asked.n_rest and memcmp(name + asked.n_head, asked.rest, asked.n_rest) == 0
                        and memcmp(name, asked.head, asked.n_head) == 0):
                    return self.slots[k].id - 1
            k = (k + 1) & self.mask
        return -1


cdef bytes utf8(object s):
    # Lone surrogates can be keys of a dict, so they must survive a round trip.
    return PyUnicode_AsEncodedString(s, "utf-8", "surrogatepass")


def interner_of(data, starts):
    """The interner that `to_arrays` has described; for pickle, which finds functions of modules alone."""
    return Interner.from_arrays(data, starts)


def hash_strings(const uint8_t[::1] data, const int64_t[::1] starts):
    """64-bit hashes of the strings ``data[starts[i]:starts[i + 1]]``."""
    check_offsets(starts, data.shape[0], "starts")
    cdef int64_t k
    cdef const char *base = pointer(data)
    out = np.empty(starts.shape[0] - 1, dtype=np.uint64)
    cdef uint64_t[::1] h = out
    for k in range(h.shape[0]):
        h[k] = hash_bytes(base + starts[k], starts[k + 1] - starts[k])
    return out


def take_strings(const uint8_t[::1] data, const int64_t[::1] starts, const int64_t[::1] ids):
    """Some of the strings ``data[starts[i]:starts[i + 1]]`` as (data uint8, starts int64)."""
    cdef int64_t k, i, n = ids.shape[0], size, total = data.shape[0]
    cdef ndarray taken = np.zeros(n + 1, dtype=np.int64)
    cdef int64_t *to = <int64_t *>array_data(taken)
    for k in range(n):
        i = ids[k]
        if not 0 <= i < starts.shape[0] - 1:
            raise IndexError(f"string {i} is out of bounds for {starts.shape[0] - 1}")
        if not 0 <= starts[i] <= starts[i + 1] <= total:
            raise ValueError(f"string {i} has no place in its text")
        to[k + 1] = to[k] + starts[i + 1] - starts[i]
    cdef ndarray text = np.empty(to[n], dtype=np.uint8)
    cdef char *out = <char *>array_data(text)
    with nogil:
        for k in range(n):
            size = to[k + 1] - to[k]
            if size:
                memcpy(out + to[k], &data[starts[ids[k]]], size)
    return text, taken


cdef int check_offsets(const int64_t[::1] offsets, int64_t total, str name) except -1:
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


cdef object copied(const void *source, int64_t n, dtype, size_t size):
    cdef ndarray out = np.empty(n, dtype=dtype)
    if n:
        memcpy(array_data(out), source, n * size)
    return out
