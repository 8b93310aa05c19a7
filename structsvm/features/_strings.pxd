# Shared by the encoders of users' data: a hash, buffers that grow, interned strings.

from cpython.unicode cimport PyUnicode_1BYTE_DATA, PyUnicode_GET_LENGTH
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport realloc

cdef extern from "Python.h":
    bint is_compact_ascii "PyUnicode_IS_COMPACT_ASCII"(object s)

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    static inline uint64_t ssvm_mix(uint64_t a, uint64_t b) {
        unsigned __int128 r = (unsigned __int128)a * b;
        return (uint64_t)r ^ (uint64_t)(r >> 64);
    }

    /* 64-bit hash of a byte string; the same on every run and little-endian machine. */
    static inline uint64_t ssvm_hash(const void *string, size_t n) {
        const unsigned char *p = (const unsigned char *)string;
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
    static const char ssvm_nothing[1] = {0};

    /* Hash of a string by its bytes (FNV-1a): of "ab" it is the one of "b" after the one of "a". */
    #define SSVM_SPELLED 0xCBF29CE484222325ull
    static inline uint64_t ssvm_spell(uint64_t h, const char *string, size_t n) {
        for (; n; n--) h = (h ^ (unsigned char)*string++) * 0x100000001B3ull;
        return h;
    }
    static inline uint64_t ssvm_stir(uint64_t h) { return ssvm_mix(h ^ 0x8EBC6AF09C88C6E3ull, 0x589965CC75374CC3ull); }
    #if defined(__GNUC__)
    #define ssvm_prefetch(address) __builtin_prefetch(address)
    #else
    #define ssvm_prefetch(address) ((void)(address))
    #endif
    """
    uint64_t hash_bytes "ssvm_hash"(const void *string, size_t n) noexcept nogil
    uint64_t spell "ssvm_spell"(uint64_t h, const char *string, size_t n) noexcept nogil
    uint64_t stir "ssvm_stir"(uint64_t h) noexcept nogil
    void prefetch "ssvm_prefetch"(const void *address) noexcept nogil
    const uint64_t SPELLED "SSVM_SPELLED"
    const char *NOTHING "ssvm_nothing"

cdef enum:
    SIGNALS = 1 << 16           # tokens or lines between two looks at Ctrl-C


cdef inline int reserve(void **buffer, int64_t *capacity, int64_t wanted, size_t size) noexcept nogil:
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


cdef inline const char *pointer(const uint8_t[::1] data) noexcept:
    """Where the bytes start; never NULL."""
    return <const char *>&data[0] if data.shape[0] else NOTHING


# offsets[0] == 0 <= offsets[1] <= ... == total, or ValueError.
cdef int check_offsets(const int64_t[::1] offsets, int64_t total, str name) except -1

# A numpy array with a copy of n items of `size` bytes.
cdef object copied(const void *source, int64_t n, object dtype, size_t size)

# The UTF-8 of a str (or of an instance of a subclass).
cdef bytes utf8(object s)

# The UTF-8 of an exact str in ASCII, or NULL for any other one.
cdef inline const char *ascii_of(object s, int64_t *size) noexcept:
    if not is_compact_ascii(s):
        return NULL
    size[0] = PyUnicode_GET_LENGTH(s)
    return <const char *>PyUnicode_1BYTE_DATA(s)


cdef struct Slot:
    uint32_t tag        # high half of the hash
    int32_t id          # id + 1; 0: free


cdef class Interner:
    cdef char *arena
    cdef int64_t arena_capacity
    cdef int64_t *starts            # string i is arena[starts[i]:starts[i + 1]]
    cdef int64_t starts_capacity
    cdef Slot *slots
    cdef uint64_t mask
    cdef readonly int64_t n

    cdef int32_t find(self, const char *s, int64_t size, uint64_t h) noexcept nogil
    cdef int32_t add(self, const char *s, int64_t size, uint64_t h) noexcept nogil
    cdef int rehash(self) noexcept nogil
    cdef int32_t id_of(self, object item, bint grow) except -2
    cdef _ids(self, strings, bint grow)


cdef struct NameSlot:
    uint32_t tag        # high half of the hash
    int32_t id          # id + 1; 0: free
    int64_t start       # in the arena, of a uint32_t with the size and of the name


cdef struct Asked:
    const char *head    # a name in two parts
    const char *rest
    int64_t n_head, n_rest
    uint64_t h          # the hash of both


cdef class NameTable:
    cdef char *arena
    cdef NameSlot *slots
    cdef uint64_t mask
    cdef readonly int64_t n

    cdef int put(self, list names) except -1
    cdef void expect(self, uint64_t h) noexcept nogil
    cdef void find_all(self, const Asked *asked, int64_t n, int32_t *ids) noexcept nogil
    cdef int32_t find(self, const Asked *asked) noexcept nogil
