"""Kernel functions of rows: linear, polynomial, RBF, sigmoid, precomputed, and any Python callable.

There is one way to compute kernel values: a block k(rows, rows), as float32. Inner products are summed in the type of
the data (float32 or float64), the function is applied to them, and the result is rounded once. A value has the same
bits in whatever block it is computed (products.h), unless a callable says otherwise.
"""

from libc.math cimport isfinite, tanh
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

import numpy as np

from structsvm._arrays cimport array_data, ndarray
from structsvm.execution._processor cimport kernel_set
from structsvm.execution._stop cimport poll
from structsvm._typedefs cimport int32_t, int64_t

KERNELS = {
    "linear": KERNEL_LINEAR,
    "poly": KERNEL_POLY,
    "rbf": KERNEL_RBF,
    "sigmoid": KERNEL_SIGMOID,
    "precomputed": KERNEL_PRECOMPUTED,
}

# Dense rows that are multiplied at a time; and products, of rows or of lanes, between two polls.
cdef Py_ssize_t STRIP = 64
cdef double PART = 1 << 24

ctypedef fused real:
    float
    double


cdef inline double power(double x, int n) noexcept nogil:
    cdef double result = 1.0
    while n > 0:
        if n & 1:
            result *= x
        x *= x
        n >>= 1
    return result


cdef void fill_lane(Rows a, int64_t i, const real* values, real* lane) noexcept nogil:
    """Write a sparse row into one lane of a block of rows that is zero there."""
    cdef int64_t e
    for e in range(a.indptr[i], a.indptr[i + 1]):
        lane[<int64_t>a.indices[e] * PRODUCTS_LANES] = values[e]


cdef void clear_lane(Rows a, int64_t i, real* lane) noexcept nogil:
    """Make that lane zero again."""
    cdef int64_t e
    for e in range(a.indptr[i], a.indptr[i + 1]):
        lane[<int64_t>a.indices[e] * PRODUCTS_LANES] = 0.0


cdef int no_memory() except -1 nogil:
    with gil:
        raise MemoryError("no memory for a block of kernel values")


cdef int check_finite(const int64_t* ia, Py_ssize_t n, const int64_t* ib, Py_ssize_t m, const float* out,
                      Py_ssize_t stride) except -1 nogil:
    """Raise ValueError for the first value of a block that is not a finite number."""
    cdef Py_ssize_t p, q
    for p in range(n):
        for q in range(m):
            if not isfinite(out[p * stride + q]):
                with gil:
                    raise ValueError(
                        f"the kernel of rows {ia[p]} and {ib[q]} is {out[p * stride + q]}: no finite float32; "
                        "scale the features (or the kernel) down")
    return 0


def row_indices(indices, n):
    """Indices of rows as int64 array; IndexError unless they are in 0 .. n - 1."""
    indices = np.ascontiguousarray(indices, dtype=np.int64)
    if indices.size and not 0 <= indices.min() <= indices.max() < n:
        raise IndexError(f"row indices must be from 0 to {n - 1}, got {indices.min()} to {indices.max()}")
    return indices


cdef class Rows:
    """Examples as rows of numbers.

    Parameters
    ----------
    data : ndarray or scipy CSR matrix of shape (n_rows, n_features), float32 or float64
        A C-contiguous array and a CSR matrix in canonical form (indices ascending, none twice) are used where they
        are; others are copied, int64 indices too.

    Raises
    ------
    TypeError, ValueError
        For matrices of another kind or type, and for CSR matrices that are not sound.
    """

    def __init__(self, data):
        self.is_sparse = hasattr(data, "indptr")
        self.is_single = data.dtype == np.float32
        if data.ndim != 2 or (not self.is_single and data.dtype != np.float64):
            raise TypeError(f"rows must be a matrix of float32 or float64, got {data.dtype} and {data.ndim} dimensions")
        self.n_rows, self.n_features = data.shape
        if self.is_sparse:
            data = self._take_csr(data)
        else:
            data = np.ascontiguousarray(data)
            self.values = array_data(data)
        self.data = data

    def _take_csr(self, data):
        cdef ndarray indptr, indices, values
        if data.format != "csr":
            raise TypeError(f"sparse rows must be CSR, got {data.format}")
        if self.n_features > np.iinfo(np.int32).max:
            raise ValueError(f"{self.n_features} features: more than 2**31 - 1")
        indptr = np.ascontiguousarray(data.indptr, dtype=np.int64)
        if (indptr.shape[0] != self.n_rows + 1 or indptr[0] != 0 or (np.diff(indptr) < 0).any()
                or indptr[self.n_rows] > min(len(data.indices), len(data.data))):
            raise ValueError("indptr of a sparse matrix must begin with 0, rise, and stay in range")
        columns = data.indices[:indptr[self.n_rows]]
        if len(columns) and (columns.min() < 0 or columns.max() >= self.n_features):
            raise ValueError(f"a sparse matrix has indices out of range for {self.n_features} features")
        if not data.has_canonical_format:
            data = data.copy()
            data.sum_duplicates()
            indptr = np.ascontiguousarray(data.indptr, dtype=np.int64)
        indices = np.ascontiguousarray(data.indices, dtype=np.int32)
        values = np.ascontiguousarray(data.data)
        self.indptr = <const int64_t*>array_data(indptr)
        self.indices = <const int32_t*>array_data(indices)
        self.values = array_data(values)
        self.parts = (indptr, indices, values)
        return data

    def square_norms(self):
        """|x|^2 of each row, summed as inner products are: array (n_rows,), kept for the next call."""
        cdef Kernel linear
        cdef ndarray norms
        cdef int64_t i
        cdef Py_ssize_t size = sizeof(float) if self.is_single else sizeof(double)
        if self.norms is None:
            linear = Kernel("linear")
            dtype = np.float32 if self.is_single else np.float64
            norms = np.empty(self.n_rows, dtype=dtype)
            for i in range(self.n_rows):
                linear.products(self, &i, 1, self, &i, 1, <char*>array_data(norms) + i * size, 1)
            if not np.isfinite(norms).all():
                raise ValueError(f"the squares of row {np.argmin(np.isfinite(norms))} add up to more than "
                                 f"{dtype.__name__} can hold; scale the features down")
            self.norms, self.norm = norms, array_data(norms)
        return self.norms


cdef const products* chosen_products() noexcept:
    """Products of the instruction set in use: linked into this module alone."""
    return products_of(kernel_set())


cdef class Kernel:
    """A kernel function.

    Parameters
    ----------
    name : {"linear", "poly", "rbf", "sigmoid", "precomputed"} or callable
        ``<x, z>``, ``(gamma <x, z> + coef0)^degree``, ``exp(-gamma |x - z|^2)``, ``tanh(gamma <x, z> + coef0)``; for
        "precomputed" the rows are those of the kernel matrix itself. A callable takes two matrices of rows, of shapes
        (n, d) and (m, d), and returns their kernel values, an array of shape (n, m).
    gamma, degree, coef0
        As above.
    """

    def __init__(self, name, *, double gamma=1.0, int degree=3, double coef0=0.0):
        self.name = name
        self.function = KERNEL_CALLABLE if callable(name) else KERNELS[name]
        self.gamma, self.degree, self.coef0 = gamma, degree, coef0
        self.fast = chosen_products()

    def __dealloc__(self):
        free(self.scratch)
        free(self.spread)

    def __reduce__(self):
        return rebuild, (self.name, self.gamma, self.degree, self.coef0)

    def block(self, Rows a not None, ia, Rows b not None, ib):
        """Kernel values of chosen rows. Threads may ask for several blocks at once.

        Parameters
        ----------
        a, b : Rows
            Of one type and width. "precomputed" looks at `a` alone: `ib` are its columns.
        ia, ib : array-like of int
            Indices of rows.

        Returns
        -------
        ndarray of shape (len(ia), len(ib)), float32
        """
        cdef const int64_t[::1] p = row_indices(ia, a.n_rows)
        cdef const int64_t[::1] q = row_indices(ib, a.n_features if self.function == KERNEL_PRECOMPUTED else b.n_rows)
        cdef ndarray out = np.empty((p.shape[0], q.shape[0]), dtype=np.float32)
        cdef Kernel own = rebuild(self.name, self.gamma, self.degree, self.coef0)   # with scratch memory of its own
        self.check(a, b)
        if out.size:
            with nogil:
                own.c_block(a, &p[0], p.shape[0], b, &q[0], q.shape[0], <float*>array_data(out), q.shape[0])
        return out

    cdef int check(self, Rows a, Rows b) except -1:
        """Whether blocks of these rows can be computed; ask once, before the blocks."""
        if self.function == KERNEL_PRECOMPUTED:
            if a.is_sparse:
                raise TypeError("a precomputed kernel must be a dense matrix")
        elif a.n_features != b.n_features:
            raise ValueError(f"rows of {a.n_features} features and rows of {b.n_features} features have no kernel")
        elif a.is_sparse != b.is_sparse or a.is_single != b.is_single:
            raise TypeError("both sides of a kernel must be rows of the same kind, dense or CSR, and of the same type")
        if self.function == KERNEL_RBF:
            a.square_norms()
            b.square_norms()
        return 0

    cdef int c_block(self, Rows a, const int64_t* ia, Py_ssize_t n, Rows b, const int64_t* ib, Py_ssize_t m,
                     float* out, Py_ssize_t stride) except -1 nogil:
        cdef Py_ssize_t p, q, first = 0, width = STRIP, size = sizeof(float) if a.is_single else sizeof(double)
        cdef char* dots
        if n == 0 or m == 0:
            return 0
        if self.function == KERNEL_CALLABLE:
            with gil:
                self._call(a, ia, n, b, ib, m, out, stride)
            return 0
        if self.function == KERNEL_PRECOMPUTED:
            for p in range(n):
                poll(2 * m)
                for q in range(m):
                    if a.is_single:
                        out[p * stride + q] = (<const float*>a.values)[ia[p] * a.n_features + ib[q]]
                    else:
                        out[p * stride + q] = <float>(<const double*>a.values)[ia[p] * a.n_features + ib[q]]
            return check_finite(ia, n, ib, m, out, stride)
        if a.is_sparse:
            width = PRODUCTS_LANES
        # The norms of the columns; and the products, where they cannot be written to `out` at once.
        self.reserve(size * m + (0 if a.is_single else size * m * min(n, width)))
        if self.function == KERNEL_RBF:
            for q in range(m):
                if a.is_single:
                    (<float*>self.scratch)[q] = (<const float*>b.norm)[ib[q]]
                else:
                    (<double*>self.scratch)[q] = (<const double*>b.norm)[ib[q]]
        while first < n:
            width = min(width, n - first)
            if a.is_single:
                self.products(a, ia + first, width, b, ib, m, out + first * stride, stride)
            else:
                dots = self.scratch + size * m
                self.products(a, ia + first, width, b, ib, m, dots, m)
            for p in range(width):
                if a.is_single:
                    self.apply(a, ia[first + p], out + (first + p) * stride, m, out + (first + p) * stride)
                else:
                    self.apply(a, ia[first + p], dots + size * p * m, m, out + (first + p) * stride)
                poll(m if self.function == KERNEL_RBF else 16 * m)
            first += width
        return 0 if self.function == KERNEL_RBF else check_finite(ia, n, ib, m, out, stride)

    cdef int products(self, Rows a, const int64_t* ia, Py_ssize_t n, Rows b, const int64_t* ib, Py_ssize_t m,
                      void* out, Py_ssize_t stride) except -1 nogil:
        """Inner products in the type of the rows; of sparse rows at most PRODUCTS_LANES."""
        cdef Py_ssize_t q = 0, part, size = sizeof(float) if a.is_single else sizeof(double)
        cdef double each = <double>n * a.n_features
        if a.is_sparse:
            each = PRODUCTS_LANES * (1.0 + <double>b.indptr[b.n_rows] / max(b.n_rows, 1))
            self.begin_spread(a, ia, n)
        part = <Py_ssize_t>max(64.0, PART / (1.0 + each))
        try:
            while q < m:
                part = min(part, m - q)
                self.some_products(a, ia, n, b, ib + q, part, <char*>out + size * q, stride)
                q += part
                poll(<int64_t>(0.125 * each * part) + part)
        finally:
            if a.is_sparse:
                self.end_spread(a, ia, n)
        return 0
    cdef void some_products(self, Rows a, const int64_t* ia, Py_ssize_t n, Rows b, const int64_t* ib, Py_ssize_t m,
                            void* out, Py_ssize_t stride) noexcept nogil:
        """`products` without a poll; sparse rows are spread."""
        if a.is_sparse and a.is_single:
            self.fast.sparse_float(<const float*>self.spread, n, b.indptr, b.indices, <const float*>b.values, ib, m,
                                   <float*>out, stride)
        elif a.is_sparse:
            self.fast.sparse_double(<const double*>self.spread, n, b.indptr, b.indices, <const double*>b.values, ib, m,
                                    <double*>out, stride)
        elif a.is_single:
            self.fast.dense_float(<const float*>a.values, ia, n, <const float*>b.values, ib, m, a.n_features,
                                  <float*>out, stride)
        else:
            self.fast.dense_double(<const double*>a.values, ia, n, <const double*>b.values, ib, m, a.n_features,
                                   <double*>out, stride)

    cdef int begin_spread(self, Rows a, const int64_t* ia, Py_ssize_t n) except -1 nogil:
        """Write sparse rows side by side."""
        cdef Py_ssize_t p
        if self.spread_width < a.n_features:
            free(self.spread)
            self.spread_width = 0
            self.spread = <char*>calloc(a.n_features * PRODUCTS_LANES, sizeof(double))
            if self.spread == NULL:
                return no_memory()
            self.spread_width = a.n_features
        for p in range(n):
            if a.is_single:
                fill_lane(a, ia[p], <const float*>a.values, <float*>self.spread + p)
            else:
                fill_lane(a, ia[p], <const double*>a.values, <double*>self.spread + p)
        return 0

    cdef void end_spread(self, Rows a, const int64_t* ia, Py_ssize_t n) noexcept nogil:
        cdef Py_ssize_t p
        for p in range(n):
            if a.is_single:
                clear_lane(a, ia[p], <float*>self.spread + p)
            else:
                clear_lane(a, ia[p], <double*>self.spread + p)

    cdef void apply(self, Rows a, int64_t i, const void* dots, Py_ssize_t m, float* out) noexcept nogil:
        """The kernel function of one row's inner products."""
        cdef Py_ssize_t q
        cdef double x
        if self.function == KERNEL_RBF:
            if a.is_single:
                self.fast.radial_float(<const float*>dots, <const float*>self.scratch, (<const float*>a.norm)[i],
                                       <float>self.gamma, m, out)
            else:
                self.fast.radial_double(<const double*>dots, <const double*>self.scratch, (<const double*>a.norm)[i],
                                        self.gamma, m, out)
            return
        for q in range(m):
            x = (<const float*>dots)[q] if a.is_single else (<const double*>dots)[q]
            if self.function == KERNEL_POLY:
                x = power(self.gamma * x + self.coef0, self.degree)
            elif self.function == KERNEL_SIGMOID:
                x = tanh(self.gamma * x + self.coef0)
            out[q] = <float>x

    cdef int reserve(self, Py_ssize_t size) except -1 nogil:
        if size > self.scratch_size:
            free(self.scratch)
            self.scratch_size = 0
            self.scratch = <char*>malloc(size)
            if self.scratch == NULL:
                return no_memory()
            self.scratch_size = size
        return 0

    cdef int _call(self, Rows a, const int64_t* ia, Py_ssize_t n, Rows b, const int64_t* ib, Py_ssize_t m,
                   float* out, Py_ssize_t stride) except -1:
        """Ask the user's function for a block, and check what it returns."""
        cdef Py_ssize_t p
        cdef ndarray values
        X = a.data[np.array(<int64_t[:n]>(<int64_t*>ia))]
        Y = b.data[np.array(<int64_t[:m]>(<int64_t*>ib))]
        found = self.name(X, Y)
        given = np.asarray(found.toarray() if hasattr(found, "toarray") else found)
        if given.shape != (n, m) or given.dtype.kind not in "fiub":
            raise ValueError(
                f"the kernel function must return an array of real numbers of shape ({n}, {m}) for matrices of shapes "
                f"{X.shape} and {Y.shape}, got shape {given.shape} and dtype {given.dtype}")
        with np.errstate(over="ignore"):
            values = np.ascontiguousarray(given, dtype=np.float32)
        for p in range(n):
            memcpy(out + p * stride, <float*>array_data(values) + p * m, m * sizeof(float))
        return check_finite(ia, n, ib, m, out, stride)


def rebuild(name, gamma, degree, coef0):
    """The inverse of `Kernel.__reduce__`."""
    return Kernel(name, gamma=gamma, degree=degree, coef0=coef0)


cdef class Gram:
    """The kernel matrix of training examples, computed on demand and counted.

    Parameters
    ----------
    kernel : Kernel
    rows : Rows
        For a precomputed kernel the square kernel matrix itself.

    Attributes
    ----------
    n_values : int
        Kernel values computed so far.
    """

    def __init__(self, Kernel kernel not None, Rows rows not None):
        kernel.check(rows, rows)
        if kernel.function == KERNEL_PRECOMPUTED and rows.n_rows != rows.n_features:
            raise ValueError(f"a precomputed kernel must be a square matrix, got shape {rows.data.shape}")
        self.kernel, self.rows, self.n_rows = kernel, rows, rows.n_rows
        # Vectors make about so many products in the time of one update of a stored gradient.
        work = rows.data.nnz / max(rows.n_rows, 1) / 4 if rows.is_sparse else rows.n_features / 64
        self.cost = 1.0 if kernel.function == KERNEL_PRECOMPUTED else 1.0 + work

    def block(self, ia, ib):
        """Kernel values of chosen examples: float32 array (len(ia), len(ib))."""
        self.n_values += len(ia) * len(ib)
        return self.kernel.block(self.rows, ia, self.rows, ib)

    cdef int c_block(self, const int64_t* ia, Py_ssize_t n, const int64_t* ib, Py_ssize_t m, float* out,
                     Py_ssize_t stride) except -1 nogil:
        """As `Kernel.c_block`, both sides training examples."""
        self.n_values += n * m
        return self.kernel.c_block(self.rows, ia, n, self.rows, ib, m, out, stride)
