"""Hints about memory: fetch what stands at an address into the caches; keep a large block in large pages."""

cdef extern from *:
    """
    #include <stdint.h>
    #include <stddef.h>
    #ifdef __linux__
    #include <sys/mman.h>
    #endif

    #define structsvm_prefetch(p) __builtin_prefetch(p)

    /* Steps on random examples find addresses in large pages without a walk through tables of small ones. To be called
       before the block is written to. */
    static inline void structsvm_in_large_pages(void *start, size_t size) {
    #ifdef MADV_HUGEPAGE
        const uintptr_t page = 1 << 21;
        uintptr_t first = ((uintptr_t)start + page - 1) / page * page, last = ((uintptr_t)start + size) / page * page;
        if (last > first) madvise((void *)first, last - first, MADV_HUGEPAGE);
    #endif
    }
    """
    void prefetch "structsvm_prefetch" (const void* p) noexcept nogil
    void in_large_pages "structsvm_in_large_pages" (void* start, size_t size) noexcept nogil
