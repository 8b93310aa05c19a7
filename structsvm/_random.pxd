"""A small random generator that runs without the GIL and whose whole state is four words.

xoshiro256** (Blackman and Vigna 2018), seeded through splitmix64.
"""

from structsvm._typedefs cimport int64_t, uint64_t


cdef struct Random:
    uint64_t s[4]


cdef inline uint64_t random_rotl(uint64_t x, int k) noexcept nogil:
    return (x << k) | (x >> (64 - k))


cdef inline void random_seed(Random* r, uint64_t seed) noexcept nogil:
    cdef uint64_t z
    cdef int k
    for k in range(4):
        seed += <uint64_t>0x9E3779B97F4A7C15
        z = seed
        z = (z ^ (z >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
        z = (z ^ (z >> 27)) * <uint64_t>0x94D049BB133111EB
        r.s[k] = z ^ (z >> 31)


cdef inline uint64_t random_next(Random* r) noexcept nogil:
    cdef uint64_t result = random_rotl(r.s[1] * 5, 7) * 9
    cdef uint64_t t = r.s[1] << 17
    r.s[2] ^= r.s[0]
    r.s[3] ^= r.s[1]
    r.s[1] ^= r.s[2]
    r.s[0] ^= r.s[3]
    r.s[2] ^= t
    r.s[3] = random_rotl(r.s[3], 45)
    return result


cdef inline double random_unit(Random* r) noexcept nogil:
    """Uniform in [0, 1)."""
    return (random_next(r) >> 11) * (1.0 / 9007199254740992.0)


cdef inline int64_t random_below(Random* r, int64_t n) noexcept nogil:
    """Uniform in 0 .. n - 1, for n < 2**53."""
    return <int64_t>(random_unit(r) * n)


cdef inline void random_shuffle(Random* r, int64_t* items, int64_t n) noexcept nogil:
    cdef int64_t k, other
    for k in range(n - 1, 0, -1):
        other = random_below(r, k + 1)
        items[k], items[other] = items[other], items[k]
