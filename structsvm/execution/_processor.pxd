"""The instruction set of the kernels: 0 baseline, 1 avx2, 2 avx512."""

cdef int kernel_set() noexcept nogil
