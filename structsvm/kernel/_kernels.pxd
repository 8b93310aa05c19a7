"""Kernel functions of rows, in blocks: what every kernel machine computes its values with."""

from structsvm._typedefs cimport int32_t, int64_t


cdef extern from "products.h" nogil:
    int PRODUCTS_LANES
    ctypedef struct products:
        const char* name
        void (*dense_float)(const float* A, const int64_t* ia, int64_t n, const float* B, const int64_t* ib,
                            int64_t m, int64_t d, float* out, int64_t stride) noexcept nogil
        void (*dense_double)(const double* A, const int64_t* ia, int64_t n, const double* B, const int64_t* ib,
                             int64_t m, int64_t d, double* out, int64_t stride) noexcept nogil
        void (*sparse_float)(const float* a, int64_t n, const int64_t* indptr, const int32_t* indices,
                             const float* values, const int64_t* ib, int64_t m, float* out,
                             int64_t stride) noexcept nogil
        void (*sparse_double)(const double* a, int64_t n, const int64_t* indptr, const int32_t* indices,
                              const double* values, const int64_t* ib, int64_t m, double* out,
                              int64_t stride) noexcept nogil
        void (*radial_float)(const float* dots, const float* norms, float norm, float gamma, int64_t n,
                             float* out) noexcept nogil
        void (*radial_double)(const double* dots, const double* norms, double norm, double gamma, int64_t n,
                              float* out) noexcept nogil
        double (*gather)(const float* row, const int32_t* slot, const double* beta, int64_t n) noexcept nogil
        void (*scatter)(const float* row, const int32_t* slot, double* g, int64_t n, double step) noexcept nogil
        double (*weigh)(const float* row, const double* beta, int64_t n) noexcept nogil
        void (*shift)(const float* row, double* g, int64_t n, double step) noexcept nogil
    const products* products_of(int set)


cdef const products* chosen_products() noexcept


cdef enum KernelFunction:
    KERNEL_LINEAR
    KERNEL_POLY
    KERNEL_RBF
    KERNEL_SIGMOID
    KERNEL_PRECOMPUTED
    KERNEL_CALLABLE


cdef class Rows:
    cdef readonly object data           # the array or CSR matrix
    cdef readonly Py_ssize_t n_rows
    cdef readonly Py_ssize_t n_features
    cdef readonly bint is_sparse
    cdef readonly bint is_single        # float32
    cdef object norms                   # |x|^2 of the rows, once asked for
    cdef object parts                   # the arrays that the pointers below point into
    cdef const void* values
    cdef const int64_t* indptr
    cdef const int32_t* indices
    cdef const void* norm


cdef class Kernel:
    cdef readonly object name           # a name of KERNELS, or a callable
    cdef readonly double gamma
    cdef readonly int degree
    cdef readonly double coef0
    cdef KernelFunction function
    cdef const products* fast
    cdef char* scratch
    cdef Py_ssize_t scratch_size
    cdef char* spread                   # sparse rows side by side, zero between two calls
    cdef Py_ssize_t spread_width

    cdef int check(self, Rows a, Rows b) except -1
    cdef int c_block(self, Rows a, const int64_t* ia, Py_ssize_t n, Rows b, const int64_t* ib, Py_ssize_t m,
                     float* out, Py_ssize_t stride) except -1 nogil
    cdef int products(self, Rows a, const int64_t* ia, Py_ssize_t n, Rows b, const int64_t* ib, Py_ssize_t m,
                      void* out, Py_ssize_t stride) except -1 nogil
    cdef void some_products(self, Rows a, const int64_t* ia, Py_ssize_t n, Rows b, const int64_t* ib, Py_ssize_t m,
                            void* out, Py_ssize_t stride) noexcept nogil
    cdef int begin_spread(self, Rows a, const int64_t* ia, Py_ssize_t n) except -1 nogil
    cdef void end_spread(self, Rows a, const int64_t* ia, Py_ssize_t n) noexcept nogil
    cdef void apply(self, Rows a, int64_t i, const void* dots, Py_ssize_t m, float* out) noexcept nogil
    cdef int reserve(self, Py_ssize_t size) except -1 nogil
    cdef int _call(self, Rows a, const int64_t* ia, Py_ssize_t n, Rows b, const int64_t* ib, Py_ssize_t m,
                   float* out, Py_ssize_t stride) except -1


cdef class Gram:
    cdef readonly Kernel kernel
    cdef readonly Rows rows
    cdef readonly Py_ssize_t n_rows
    cdef public int64_t n_values
    cdef readonly double cost           # cost of a value, in updates of a stored gradient

    cdef int c_block(self, const int64_t* ia, Py_ssize_t n, const int64_t* ib, Py_ssize_t m, float* out,
                     Py_ssize_t stride) except -1 nogil
