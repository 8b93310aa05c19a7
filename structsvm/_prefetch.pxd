"""A hint to fetch what stands at an address into the caches."""

cdef extern from *:
    """
    #define structsvm_prefetch(p) __builtin_prefetch(p)
    """
    void prefetch "structsvm_prefetch" (const void* p) noexcept nogil
