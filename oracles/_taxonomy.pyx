"""Classes in a taxonomy: scores of all of them in one pass down the lattice, and the margin problem.

The joint feature (Tsochantaridis and others 2004, section 5.2) is Psi(x, y) = Phi(x) (x) L(y), all products of an
input feature and an attribute of the output. As an array, w is rows of float32, one an input feature:

    rows 0 .. n_full - 1         a weight for every attribute, padded to whole vectors (the padding stays zero)
    the rows after those         weights for a list of attributes, ascending; all others are absent, that is, zero

With u = the sum of x's rows, <w, Psi(x, y)> = <u, L(y)>. Attributes are a *programme* over positions (nodes, or
outputs), each after its base: with s[0] = 0,

    s[z + 1] = s[base[z]] + sum_e value[e] u[attribute[e]],   e in first[z] .. first[z + 1] - 1.

For ancestor indicators the base is a parent and the one attribute is the node's own; a node of several parents adds
those ancestors that its base does not have.

A cut is written as the index of its output.
"""

from libc.math cimport INFINITY, exp, log, sqrt
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy, memset

import numpy as np

from structsvm._problem cimport (
    PENALTY_HARD, PENALTY_LINEAR, RESCALE_MARGIN, RESCALE_NONE, RESCALE_SLACK, Cut, Problem, Target, cut_terms,
)
from structsvm._arrays cimport array_data, ndarray
from structsvm._prefetch cimport prefetch
from structsvm.execution._processor cimport kernel_set
from structsvm.execution._stop cimport poll
from structsvm.structures._lattice cimport LOSS_ZERO_ONE, Lattice, NodeLoss

from structsvm.adapter import offers_of
from structsvm.arrays import checksum
from structsvm.features.dense import DenseRows, by_attributes, by_features, padded, sum_of_products
from structsvm.structures._lattice import NODE_LOSSES

cdef extern from "dense.h" nogil:
    enum: DENSE_TILE
    ctypedef struct dense_kernels:
        void (*fill)(const float* W, int64_t stride, const int64_t* indptr, const int32_t* indices,
                     const float* values, int64_t T, const float* init, int64_t init_step, float* E) noexcept nogil
        void (*products)(const float* W, int64_t width, const float* x, int64_t n, float* out) noexcept nogil
        double (*dot)(const float* w, const float* x, int64_t width) noexcept nogil
        void (*add)(float* w, const float* x, float amount, int64_t width) noexcept nogil
        void (*accumulate)(double* w, const float* x, double amount, int64_t width) noexcept nogil
        void (*positions)(const float* U, const float* bias, const int32_t* base, const int32_t* first,
                          const int32_t* attribute, const float* value, int64_t n_positions,
                          float* S) noexcept nogil
        int64_t (*violator)(const double* scores, const float* losses, int64_t n,
                            double true_score) noexcept nogil
        double (*exponentials)(float* s, int64_t n, double* top, double* mean) noexcept nogil
        void (*tops)(const float* S, const int32_t* position, const float* scale, int64_t n_outputs,
                     int32_t* out) noexcept nogil
    const dense_kernels* dense_kernels_of(int set, int (*poll)(int64_t work) except -1 nogil)

cdef const dense_kernels* KERNELS = dense_kernels_of(kernel_set(), poll)

# Up to so many outputs, the losses of each pair are stored.
cdef Py_ssize_t TABLED = 2048

cdef fused real:
    float
    double


cdef class OutputAttributes:
    """The attribute vectors L(y) of all outputs, as a programme (see the module's head).

    Parameters
    ----------
    base : int32 array of shape (n_positions,)
        0, or one more than a smaller position.
    first : int32 array of shape (n_positions + 1,)
    attribute : int32 array
    value : float32 array, or empty
        Empty: all ones.
    scale : float32 array of shape (n_positions,)
        Factor on the whole vector of each position.
    position : int32 array of shape (n_outputs,)
    n_attributes : int
    """

    cdef readonly tuple arrays
    cdef readonly Py_ssize_t n_attributes, n_positions, n_outputs
    cdef const int32_t[::1] base
    cdef const int32_t[::1] first
    cdef const int32_t[::1] attribute
    cdef const float[::1] value
    cdef const float[::1] scale
    cdef const int32_t[::1] position
    # Positions without attributes, before all others; -1 unless those are an attribute each, in this order.
    cdef Py_ssize_t bare
    cdef const int32_t[::1] only        # the attribute of each output whose vector is 1 there and 0 elsewhere, else -1

    def __init__(self, base, first, attribute, value, scale, position, Py_ssize_t n_attributes):
        self.arrays = (base, first, attribute, value, scale, position)
        self.base, self.first, self.attribute, self.value, self.scale, self.position = self.arrays
        self.n_attributes, self.n_positions, self.n_outputs = n_attributes, len(base), len(position)
        count = np.diff(first)
        bare = int(np.flatnonzero(np.append(count, 1))[0])
        is_flat = (not len(value) and np.array_equal(count[bare:], np.ones(len(base) - bare))
                   and np.array_equal(attribute, np.arange(n_attributes)) and (base <= bare).all())
        self.bare = bare if is_flat else -1
        single = (count == 1) & (base <= bare) & (scale == 1.0) & (not len(value))
        self.only = np.where(single, np.append(attribute, -1)[first[:-1]], -1)[position].astype(np.int32)

    def __reduce__(self):
        return OutputAttributes, (*self.arrays, self.n_attributes)

    cdef void scores(self, const float* u, float* s) noexcept nogil:
        """s[z + 1] of all positions, before the scale."""
        cdef const int32_t* base = &self.base[0]
        cdef const int32_t* first = &self.first[0]
        cdef const int32_t* attribute = NULL if self.attribute.shape[0] == 0 else &self.attribute[0]
        cdef const float* value = NULL if self.value.shape[0] == 0 else &self.value[0]
        cdef Py_ssize_t z, e
        cdef float total
        if self.bare >= 0:
            memset(s, 0, (self.bare + 1) * sizeof(float))
            memcpy(s + self.bare + 1, u, (self.n_positions - self.bare) * sizeof(float))
            return
        s[0] = 0.0
        for z in range(self.n_positions):
            total = s[base[z]]
            for e in range(first[z], first[z + 1]):
                total += u[attribute[e]] if value == NULL else value[e] * u[attribute[e]]
            s[z + 1] = total

    cdef inline double score(self, Py_ssize_t k, const float* s) noexcept nogil:
        cdef Py_ssize_t z = self.position[k]
        return <double>self.scale[z] * s[z + 1]

    cdef void of_outputs(self, const float* s, double* out) noexcept nogil:
        """The scores of all outputs."""
        cdef const int32_t* position = &self.position[0]
        cdef const float* scale = &self.scale[0]
        cdef Py_ssize_t k, n = self.n_outputs
        for k in range(n):
            out[k] = <double>scale[position[k]] * s[position[k] + 1]

    cdef void expectation(self, const float* p, double scale, double* of_positions, float* v) noexcept nogil:
        """v += scale sum_k p_k L(k), from the last position up; `of_positions` (one more) is 0 before and after."""
        cdef Py_ssize_t z, e, k
        cdef double amount
        for k in range(self.n_outputs):
            of_positions[self.position[k] + 1] += scale * p[k] * self.scale[self.position[k]]
        if self.bare >= 0:
            for z in range(self.bare, self.n_positions):
                v[z - self.bare] += <float>of_positions[z + 1]
            memset(of_positions, 0, (self.n_positions + 1) * sizeof(double))
            return
        for z in range(self.n_positions, 0, -1):
            amount = of_positions[z]
            of_positions[z] = 0.0
            of_positions[self.base[z - 1]] += amount
            for e in range(self.first[z - 1], self.first[z]):
                v[self.attribute[e]] += <float>(amount if self.value.shape[0] == 0 else amount * self.value[e])
        of_positions[0] = 0.0

    cdef Py_ssize_t add(self, Py_ssize_t k, double sign, double* sums, char* there, int32_t* touched,
                        Py_ssize_t n) noexcept nogil:
        """sums += sign L(k); attributes that were not there yet join the n in `touched`. Returns how many it has."""
        cdef Py_ssize_t z = self.position[k], e
        cdef double amount = sign * self.scale[z]
        cdef int32_t a
        z += 1
        while z > 0:
            for e in range(self.first[z - 1], self.first[z]):
                a = self.attribute[e]
                if not there[a]:
                    there[a] = 1
                    touched[n] = a
                    n += 1
                sums[a] += amount if self.value.shape[0] == 0 else amount * self.value[e]
            z = self.base[z - 1]
        return n

    def vector(self, Py_ssize_t k):
        """L(k) as float64 array (n_attributes,)."""
        cdef Py_ssize_t size = max(self.n_attributes, 1)
        cdef double[::1] sums = np.zeros(size)
        cdef char[::1] there = np.zeros(size, dtype=np.int8)
        cdef int32_t[::1] touched = np.empty(size, dtype=np.int32)
        if not 0 <= k < self.n_outputs:
            raise IndexError(f"output {k} is out of range for {self.n_outputs}")
        self.add(k, 1.0, &sums[0], &there[0], &touched[0], 0)
        return np.asarray(sums)[:self.n_attributes]


cdef class DocumentScorer:
    """Scores of documents under weights, and how these change. One thread's object.

    A subclass knows how documents and weights lie in memory.
    """

    cdef readonly object structure
    cdef readonly object documents
    cdef readonly Py_ssize_t n_samples
    cdef OutputAttributes attributes
    cdef float[::1] u
    cdef float[::1] s

    def __init__(self, structure, documents):
        structure.check_documents(documents)
        self.structure, self.documents, self.n_samples = structure, documents, len(documents)
        self.attributes = structure.attributes
        self.u = np.empty(padded(self.attributes.n_attributes), dtype=np.float32)
        self.s = np.empty(self.attributes.n_positions + 1, dtype=np.float32)

    cdef int64_t work(self, Py_ssize_t i) noexcept nogil:
        """Time of the scores of document i, in the units of `poll`."""
        return 0

    cdef double cost(self, Py_ssize_t i) noexcept nogil:
        """The same, in those of `c_cost`."""
        return 0.0

    cdef void fill(self, Py_ssize_t i, const float* w) noexcept nogil:
        """s of document i."""

    cdef void fetch(self, Py_ssize_t i) noexcept nogil:
        """Fetch document i into the caches."""

    cdef double score_of_attribute(self, Py_ssize_t i, int32_t a, const float* w) noexcept nogil:
        """u[a] of document i alone."""
        return 0.0

    cdef double mass(self, Py_ssize_t i, int32_t a) noexcept nogil:
        """Sum of the squares of those of document i's features that have a weight for attribute a."""
        return 0.0

    # Arguments: numbers m[t] of n attributes a[t], all others 0.

    cdef void add(self, Py_ssize_t i, const int32_t* a, const double* m, Py_ssize_t n, float* w) noexcept nogil:
        """w += x_i (x) m."""

    cdef void accumulate(self, Py_ssize_t i, const int32_t* a, const double* m, Py_ssize_t n,
                         double* w) noexcept nogil:
        """The same in double precision."""

    # Arguments: a number m[a] per attribute, with the padding of u.

    cdef double square(self, Py_ssize_t i, const float* m) noexcept nogil:
        """|x_i (x) m|^2 over the weights that there are."""
        return 0.0

    cdef void add_all(self, Py_ssize_t i, const float* m, double amount, float* w) noexcept nogil:
        """w += amount x_i (x) m."""

    cdef void accumulate_all(self, Py_ssize_t i, const float* m, double amount, double* w) noexcept nogil:
        """The same in double precision."""


cdef class TaxonomyDecoder(DocumentScorer):
    """Scores of documents, and the best output of each. One thread's object."""

    cdef Py_ssize_t stride, n_full
    cdef const int64_t* indptr
    cdef const int32_t* indices
    cdef const float* values            # NULL: all ones
    cdef const int64_t[::1] split             # where each document's entries with listed attributes begin
    cdef const int64_t[::1] lists       # places in w of each listed row's weights
    cdef const int32_t[::1] listed      # their attributes, from the first listed row's on
    cdef float[::1] zeros
    cdef double[::1] squares            # sum over each document's entries with full rows

    def __init__(self, structure, documents):
        super().__init__(structure, documents)
        cdef Py_ssize_t i = 0, e, _
        self.stride, self.n_full = structure.stride, structure.n_full
        self.indptr = <const int64_t*>array_data(documents.indptr)
        self.indices = <const int32_t*>array_data(documents.indices)
        self.values = NULL if documents.values is None else <const float*>array_data(documents.values)
        self.lists, self.listed = structure.list_places, structure.listed
        self.split = documents.indptr[1:]
        if self.n_full < documents.n_features:
            before = np.concatenate([[0], np.cumsum(documents.indices < self.n_full)])
            self.split = documents.indptr[:self.n_samples] + np.diff(before[documents.indptr])
        self.zeros = np.zeros(self.stride, dtype=np.float32)
        self.squares = np.zeros(self.n_samples)
        for part in documents.parts():
            for _ in range(len(part)):
                for e in range(self.indptr[i], self.split[i]):
                    self.squares[i] += self.x(e) * self.x(e)
                i += 1

    cdef inline double x(self, Py_ssize_t e) noexcept nogil:
        return 1.0 if self.values == NULL else self.values[e]

    cdef int64_t work(self, Py_ssize_t i) noexcept nogil:
        return (self.indptr[i + 1] - self.indptr[i]) * self.stride // 8 + 4 * self.attributes.n_positions

    cdef double cost(self, Py_ssize_t i) noexcept nogil:
        # Whole vectors of a row, and the pass down.
        return (0.125 * (self.indptr[i + 1] - self.indptr[i]) + 1.0) * self.stride

    cdef void fill(self, Py_ssize_t i, const float* w) noexcept nogil:
        cdef int64_t[2] bounds
        cdef Py_ssize_t e, r
        cdef int64_t p
        cdef float x
        bounds[0], bounds[1] = self.indptr[i], self.split[i]
        KERNELS.fill(w, self.stride, bounds, self.indices, self.values, 1, &self.zeros[0], 0, &self.u[0])
        for e in range(self.split[i], self.indptr[i + 1]):
            r = self.indices[e] - self.n_full
            x = <float>self.x(e)
            for p in range(self.lists[r], self.lists[r + 1]):
                self.u[self.listed[p - self.lists[0]]] += x * w[p]
        self.attributes.scores(&self.u[0], &self.s[0])

    cdef Py_ssize_t best(self) noexcept nogil:
        """The output of the highest score; of several the first."""
        cdef Py_ssize_t k, top = 0
        cdef double score, high = -INFINITY
        for k in range(self.attributes.n_outputs):
            score = self.attributes.score(k, &self.s[0])
            if score > high:
                high = score
                top = k
        return top

    cdef int64_t find(self, Py_ssize_t r, int32_t a) noexcept nogil:
        """Place in w of attribute a's weight in listed row r, or -1."""
        cdef int64_t low = self.lists[r] - self.lists[0], high = self.lists[r + 1] - self.lists[0], end = high, mid
        while low < high:
            mid = (low + high) // 2
            if self.listed[mid] < a:
                low = mid + 1
            else:
                high = mid
        return low + self.lists[0] if low < end and self.listed[low] == a else -1

    cdef double score_of_attribute(self, Py_ssize_t i, int32_t a, const float* w) noexcept nogil:
        cdef Py_ssize_t e
        cdef int64_t p
        cdef double total = 0.0
        for e in range(self.indptr[i], self.split[i]):
            total += self.x(e) * w[self.indices[e] * self.stride + a]
        for e in range(self.split[i], self.indptr[i + 1]):
            p = self.find(self.indices[e] - self.n_full, a)
            if p >= 0:
                total += self.x(e) * w[p]
        return total

    cdef double mass(self, Py_ssize_t i, int32_t a) noexcept nogil:
        cdef Py_ssize_t e
        cdef double total = 0.0
        for e in range(self.split[i], self.indptr[i + 1]):
            if self.find(self.indices[e] - self.n_full, a) >= 0:
                total += self.x(e) * self.x(e)
        return self.squares[i] + total

    cdef void add_to(self, Py_ssize_t i, const int32_t* a, const double* m, Py_ssize_t n, real* w) noexcept nogil:
        """Row by row, whose attributes lie on few lines of the cache."""
        cdef Py_ssize_t e, t
        cdef int64_t p
        cdef real* row
        cdef double x
        for e in range(self.indptr[i], self.split[i]):
            row = w + self.indices[e] * self.stride
            x = self.x(e)
            for t in range(n):
                row[a[t]] += <real>(m[t] * x)
        for e in range(self.split[i], self.indptr[i + 1]):
            for t in range(n):
                p = self.find(self.indices[e] - self.n_full, a[t])
                if p >= 0:
                    w[p] += <real>(m[t] * self.x(e))

    cdef void add(self, Py_ssize_t i, const int32_t* a, const double* m, Py_ssize_t n, float* w) noexcept nogil:
        self.add_to(i, a, m, n, w)

    cdef void accumulate(self, Py_ssize_t i, const int32_t* a, const double* m, Py_ssize_t n,
                         double* w) noexcept nogil:
        self.add_to(i, a, m, n, w)

    cdef double square(self, Py_ssize_t i, const float* m) noexcept nogil:
        cdef double total = self.squares[i] * KERNELS.dot(m, m, self.stride)
        cdef Py_ssize_t e, r
        cdef int64_t p
        for e in range(self.split[i], self.indptr[i + 1]):
            r = self.indices[e] - self.n_full
            for p in range(self.lists[r] - self.lists[0], self.lists[r + 1] - self.lists[0]):
                total += self.x(e) * self.x(e) * m[self.listed[p]] * m[self.listed[p]]
        return total

    cdef void add_listed(self, Py_ssize_t i, const float* m, double amount, real* w) noexcept nogil:
        cdef Py_ssize_t e, r
        cdef int64_t p
        for e in range(self.split[i], self.indptr[i + 1]):
            r = self.indices[e] - self.n_full
            for p in range(self.lists[r], self.lists[r + 1]):
                w[p] += <real>(amount * self.x(e) * m[self.listed[p - self.lists[0]]])

    cdef void add_all(self, Py_ssize_t i, const float* m, double amount, float* w) noexcept nogil:
        cdef Py_ssize_t e
        for e in range(self.indptr[i], self.split[i]):
            KERNELS.add(w + self.indices[e] * self.stride, m, <float>(amount * self.x(e)), self.stride)
        self.add_listed(i, m, amount, w)

    cdef void accumulate_all(self, Py_ssize_t i, const float* m, double amount, double* w) noexcept nogil:
        cdef Py_ssize_t e
        for e in range(self.indptr[i], self.split[i]):
            KERNELS.accumulate(w + self.indices[e] * self.stride, m, amount * self.x(e), self.stride)
        self.add_listed(i, m, amount, w)

    def decode(self, w):
        """The best output of every document: int32 array (n_samples,)."""
        cdef ndarray weights = self.structure.check_weights(w)
        cdef const float* pointer = <const float*>array_data(weights)
        cdef int32_t[::1] out = np.empty(self.n_samples, dtype=np.int32)
        cdef Py_ssize_t i
        with nogil:
            for i in range(self.n_samples):
                poll(self.work(i))
                self.fill(i, pointer)
                out[i] = <int32_t>self.best()
        return np.asarray(out)

    def scores(self, w):
        """The score of every position for every document: float64 array (n_samples, n_positions)."""
        cdef ndarray weights = self.structure.check_weights(w)
        cdef const float* pointer = <const float*>array_data(weights)
        cdef double[:, ::1] out = np.empty((self.n_samples, self.attributes.n_positions))
        cdef Py_ssize_t i, z
        with nogil:
            for i in range(self.n_samples):
                poll(self.work(i))
                self.fill(i, pointer)
                for z in range(self.attributes.n_positions):
                    out[i, z] = <double>self.attributes.scale[z] * self.s[z + 1]
        return np.asarray(out)


cdef class DenseDecoder:
    """Scores of `DenseRows`, a tile of documents at a time by one matrix product, and the best output of each."""

    cdef readonly object structure
    cdef readonly object documents
    cdef OutputAttributes attributes

    def __init__(self, structure, documents):
        structure.check_documents(documents)
        self.structure, self.documents, self.attributes = structure, documents, structure.attributes

    def tiles(self, w):
        """For each `DENSE_TILE` documents, those, and the scores of positions before their scale, from row 1 on."""
        table = self.structure.check_weights(w).reshape(-1, self.structure.stride)[:, :self.attributes.n_attributes]
        values, n_attributes = self.documents.values, self.attributes.n_attributes
        d = values.shape[1]
        bias = np.array(table[d] if self.documents.has_intercept else np.zeros(n_attributes), dtype=np.float32)
        products = np.zeros((n_attributes, DENSE_TILE), dtype=np.float32)
        scores = np.empty((self.attributes.n_positions + 1, DENSE_TILE), dtype=np.float32)
        for start in range(0, len(values), DENSE_TILE):
            X = values[start:start + DENSE_TILE]
            n = len(X)
            if n % 8 != 0:      # a product with one vector, and other sums, are left to the library otherwise
                X = np.concatenate([X, np.zeros((-n % 8, d), dtype=np.float32)])
            np.matmul(table[:d].T, X.T, out=products[:, :len(X)])
            self.add_up(products, bias, scores, d)
            yield slice(start, start + n), scores

    def add_up(self, const float[:, ::1] u, const float[::1] bias, float[:, ::1] s, Py_ssize_t d):
        """Fill s, the scores of positions, from the products u of `DENSE_TILE` documents with attributes."""
        cdef OutputAttributes programme = self.attributes
        cdef const float* value = NULL if programme.value.shape[0] == 0 else &programme.value[0]
        cdef const int32_t* attribute = NULL if programme.attribute.shape[0] == 0 else &programme.attribute[0]
        cdef const float* products = NULL if u.shape[0] == 0 else &u[0, 0]
        cdef const float* biases = NULL if bias.shape[0] == 0 else &bias[0]
        with nogil:
            poll(DENSE_TILE * (programme.n_attributes * d // 16 + programme.n_positions))
            KERNELS.positions(products, biases, &programme.base[0], &programme.first[0],
                              attribute, value, programme.n_positions, &s[0, 0])

    def decode(self, w):
        """The best output of every document: int32 array (n_samples,)."""
        cdef OutputAttributes programme = self.attributes
        cdef const float[:, ::1] s
        cdef int32_t[::1] tops = np.empty(DENSE_TILE, dtype=np.int32)
        out = np.empty(len(self.documents), dtype=np.int32)
        for part, s in self.tiles(w):
            with nogil:
                KERNELS.tops(&s[0, 0], &programme.position[0], &programme.scale[0], programme.n_outputs,
                             &tops[0])
            out[part] = tops[:part.stop - part.start]
        return out

    def scores(self, w):
        """The score of every position for every document: float64 array (n_samples, n_positions)."""
        scale = self.attributes.arrays[4].astype(np.float64)
        out = np.empty((len(self.documents), self.attributes.n_positions))
        for part, s in self.tiles(w):
            np.multiply(s[1:, :part.stop - part.start].T, scale, out=out[part])
        return out


cdef class DenseScorer(DocumentScorer):
    """Scores of `DenseRows` under weights that lie attribute by attribute."""

    cdef const float[:, ::1] rows
    cdef double[::1] squares
    cdef Py_ssize_t width

    def __init__(self, structure, documents):
        super().__init__(structure, documents)
        rows = documents.padded()
        self.rows, self.width = rows, rows.shape[1]
        self.squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)

    cdef int64_t work(self, Py_ssize_t i) noexcept nogil:
        return self.u.shape[0] * self.width // 16 + 4 * self.attributes.n_positions

    cdef double cost(self, Py_ssize_t i) noexcept nogil:
        return (0.0625 * self.width + 1.0) * self.u.shape[0]

    cdef void fill(self, Py_ssize_t i, const float* w) noexcept nogil:
        KERNELS.products(w, self.width, &self.rows[i, 0], self.u.shape[0], &self.u[0])
        self.attributes.scores(&self.u[0], &self.s[0])

    cdef void fetch(self, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t f
        for f in range(0, self.width, 16):
            prefetch(&self.rows[i, f])

    cdef double score_of_attribute(self, Py_ssize_t i, int32_t a, const float* w) noexcept nogil:
        return KERNELS.dot(w + a * self.width, &self.rows[i, 0], self.width)

    cdef double mass(self, Py_ssize_t i, int32_t a) noexcept nogil:
        return self.squares[i]

    cdef void add(self, Py_ssize_t i, const int32_t* a, const double* m, Py_ssize_t n, float* w) noexcept nogil:
        cdef Py_ssize_t t
        for t in range(n):
            KERNELS.add(w + a[t] * self.width, &self.rows[i, 0], <float>m[t], self.width)

    cdef void accumulate(self, Py_ssize_t i, const int32_t* a, const double* m, Py_ssize_t n,
                         double* w) noexcept nogil:
        cdef Py_ssize_t t
        for t in range(n):
            KERNELS.accumulate(w + a[t] * self.width, &self.rows[i, 0], m[t], self.width)

    cdef double square(self, Py_ssize_t i, const float* m) noexcept nogil:
        return self.squares[i] * KERNELS.dot(m, m, self.u.shape[0])

    cdef void add_all(self, Py_ssize_t i, const float* m, double amount, float* w) noexcept nogil:
        cdef int32_t a
        for a in range(<int32_t>self.attributes.n_attributes):
            if m[a] != 0.0:
                KERNELS.add(w + a * self.width, &self.rows[i, 0], <float>(amount * m[a]), self.width)

    cdef void accumulate_all(self, Py_ssize_t i, const float* m, double amount, double* w) noexcept nogil:
        cdef int32_t a
        for a in range(<int32_t>self.attributes.n_attributes):
            if m[a] != 0.0:
                KERNELS.accumulate(w + a * self.width, &self.rows[i, 0], amount * m[a], self.width)


cdef class TaxonomyProblem(Problem):
    """Documents with their true outputs.

    Parameters
    ----------
    structure : TaxonomyOracle
    documents : Tokens or DenseRows
    labels : array-like of shape (n_samples,), int
        The outputs; with `known`, -1 where there is none yet.
    known : Candidates, optional
        What is known of them. None: all.
    """

    cdef readonly DocumentScorer decoder
    cdef OutputAttributes attributes
    cdef readonly object labels
    cdef readonly object known
    cdef const int32_t[::1] gold        # the true outputs, -1: completions yet to be found
    cdef const int32_t[::1] which       # the set of each document's candidates; empty where all is known
    cdef const int64_t[::1] bounds      # first outputs of the sets
    cdef const int32_t[::1] candidates
    cdef const double[::1] log_weights      # log weights of candidates
    cdef Lattice lattice                # this thread's lattice
    cdef bint from_matrix
    cdef NodeLoss node_loss
    cdef const int32_t[::1] node        # node of each output
    cdef const float[:, ::1] matrix     # loss of true and predicted output, where that is how it is given
    cdef float[::1] node_losses
    cdef float[:, ::1] table            # losses of outputs by the true one, where there is room for all, once computed
    cdef char[::1] is_tabled
    cdef double[::1] scores             # scores of the outputs, in c_separate
    cdef float[::1] chances             # shares of the outputs, in c_expect, and their padding
    cdef double[::1] of_positions       # scratch: zero between two uses
    cdef double[::1] sums               # scratch over attributes: zero between two uses, like `there`
    cdef char[::1] there
    cdef int32_t[::1] touched
    cdef int32_t[:, ::1] difference     # attributes in which two outputs differ, for two cuts at a time
    cdef double[:, ::1] amounts         # and by how much
    cdef int32_t word                   # the cut that was found last
    cdef Py_ssize_t at_hand             # the document whose scores stand in decoder.s, or -1
    cdef double[::1] summed             # u[a] where call number `serial` of c_dots has summed it
    cdef int64_t[::1] summed_in
    cdef int64_t serial

    def __init__(self, structure, documents, labels, known=None, *, rescaling="margin", penalty="linear"):
        is_dense = isinstance(documents, DenseRows)
        self.decoder = (DenseScorer if is_dense else TaxonomyDecoder)(structure, documents)
        self.attributes = structure.attributes
        n_features = structure.n_features
        if is_dense:
            n_features = padded(self.attributes.n_attributes) * padded(documents.n_features)
        super().__init__(len(documents), n_features, rescaling=rescaling, penalty=penalty,
                         weight_dtype=np.float32)
        cdef Py_ssize_t size = max(structure.attributes.n_attributes, 1)
        self.labels = self.gold = structure.check_labels(documents, labels, least=0 if known is None else -1)
        self.known = known
        if known is not None:
            structure.check_candidates(documents, known)
            self.which, self.bounds, self.candidates = known[:3]
            self.log_weights = np.zeros(len(known.outputs)) if known.weights is None else np.log(known.weights)
        self.from_matrix = structure.loss_matrix is not None
        self.matrix = np.empty((0, 0), dtype=np.float32) if structure.loss_matrix is None else structure.loss_matrix
        self.node_loss = NODE_LOSSES[structure.loss_name] if structure.loss_matrix is None else LOSS_ZERO_ONE
        self.node = structure.outputs
        lattice = structure.taxonomy.lattice
        self.lattice = Lattice(lattice.indptr, lattice.parents, lattice.height)
        self.node_losses = np.empty(len(lattice.height), dtype=np.float32)
        n_outputs = structure.attributes.n_outputs
        self.table = np.empty((n_outputs if n_outputs <= TABLED else 1, n_outputs), dtype=np.float32)
        self.is_tabled = np.zeros(n_outputs, dtype=np.int8)
        self.scores = np.empty(n_outputs)
        self.chances = np.empty(padded(n_outputs), dtype=np.float32)
        self.of_positions = np.zeros(self.attributes.n_positions + 1)
        self.sums = np.zeros(size)
        self.there = np.zeros(size, dtype=np.int8)
        self.touched = np.empty(size, dtype=np.int32)
        self.difference = np.empty((2, size), dtype=np.int32)
        self.amounts = np.empty((2, size))
        self.at_hand = -1
        self.summed = np.empty(size)
        self.summed_in = np.zeros(size, dtype=np.int64)

    # ---- completions -------------------------------------------------------------------------------

    @property
    def offers(self):
        return offers_of(self.labels.min(initial=0) < 0)

    cdef int c_complete(self, Py_ssize_t i, const void* w, Target* target) except -1 nogil:
        cdef int64_t k, top
        cdef double score, high
        target.words = &self.word
        target.n_words = 1
        self.word = self.gold[i]
        if self.known is None:
            return 0
        top = self.bounds[self.which[i]]
        if self.bounds[self.which[i] + 1] - top > 1:
            poll(self.decoder.work(i))
            self.decoder.fill(i, <const float*>w)
            self.at_hand = i
            high = self.attributes.score(self.candidates[top], &self.decoder.s[0])
            for k in range(top + 1, self.bounds[self.which[i] + 1]):
                score = self.attributes.score(self.candidates[k], &self.decoder.s[0])
                if score > high:
                    high = score
                    top = k
        self.word = self.candidates[top]
        return 0

    cdef bint c_retarget(self, Py_ssize_t i, const Target* target, bint take) except -1 nogil:
        cdef bint differs = self.gold[i] != target.words[0]
        if take:
            (<int32_t*>&self.gold[i])[0] = target.words[0]
        return differs

    @property
    def targets(self):
        return np.arange(self.n_samples + 1), self.labels

    def with_targets(self, targets):
        return self.rebuilt(self.decoder.structure, self.decoder.documents, targets[1], self.known)

    cdef int unknown(self, Py_ssize_t i) except -1 nogil:
        with gil:
            raise ValueError(f"the output of document {self.first + i} is known in part: train with LatentSVM")

    # ---- the most violated output ----------------------------------------------------------------

    cdef const float* losses(self, Py_ssize_t g) noexcept nogil:
        """Losses of all outputs where g is the true one."""
        cdef Py_ssize_t k, row = g if self.table.shape[0] > 1 else 0
        if self.from_matrix:
            return &self.matrix[g, 0]
        if not self.is_tabled[g]:
            self.lattice.fill(self.node_loss, self.node[g], &self.node_losses[0])
            for k in range(self.attributes.n_outputs):
                self.table[row, k] = self.node_losses[self.node[k]]
            self.is_tabled[g] = self.table.shape[0] > 1
        return &self.table[row, 0]

    cdef int c_separate(self, Py_ssize_t i, const void* w, Cut* cut, double* violation) except -1 nogil:
        """b_y - scale_y (s_g - s_y) for every output y; without rescaling, s_y - s_g."""
        cdef Py_ssize_t g = self.gold[i], top = -2
        cdef const float* losses
        cdef double true_score
        if g < 0:
            self.unknown(i)
        losses = self.losses(g)
        poll(self.decoder.work(i))
        self.decoder.fill(i, <const float*>w)
        self.at_hand = i
        self.attributes.of_outputs(&self.decoder.s[0], &self.scores[0])
        true_score = self.scores[g]
        cut.n_words = 0
        cut.alpha = cut.b = violation[0] = 0.0
        cut.scale = 1.0
        if self.rescaling == RESCALE_MARGIN and self.penalty == PENALTY_LINEAR:
            top = KERNELS.violator(&self.scores[0], losses, self.attributes.n_outputs, true_score)
        if top == -2:
            top = self.violator(g, losses, violation)
        if top < 0:
            return 0
        self.word = <int32_t>top
        cut.words = &self.word
        cut.n_words = 1
        cut_terms(self.rescaling, self.penalty, losses[top], cut)
        violation[0] = cut.b - cut.scale * (true_score - self.scores[top])
        return 0

    cdef Py_ssize_t violator(self, Py_ssize_t g, const float* losses, double* violation) noexcept nogil:
        """The most violated output, in any formulation; -1 if there is none, or a violation that is not a number."""
        cdef Py_ssize_t k, top = -1
        cdef double true_score = self.scores[g], b, value, high = 0.0
        if self.penalty == PENALTY_HARD or self.rescaling == RESCALE_NONE:
            high = -INFINITY
        for k in range(self.attributes.n_outputs):
            if k == g:
                continue
            b = 0.0
            if self.rescaling != RESCALE_NONE:
                b = 1.0 if self.penalty == PENALTY_HARD else losses[k]
                if self.penalty != PENALTY_LINEAR:
                    b = sqrt(b)
            value = true_score - self.scores[k]
            value = b - (b * value if self.rescaling == RESCALE_SLACK else value)
            if value != value:          # scores that overflow: the solver says it
                violation[0] = value
                return -1
            if value > high:
                high = value
                top = k
        return -1 if self.rescaling == RESCALE_NONE and high < 0.0 else top

    # ---- the distribution over outputs ------------------------------------------------------------

    # Moments: sum_k p_k L(k) - L(true), a number per attribute, and the padding. Of an output known in part: less
    # sum_k q_k L(k) over the candidates, q_k ~ v_k exp s_k with their weights v, whose log-sum is the loss's; and the
    # entropy of q is less sum_k q_k log v_k.

    cdef Py_ssize_t c_moments(self, Py_ssize_t i) noexcept nogil:
        return self.decoder.u.shape[0]

    cdef int c_expect(self, Py_ssize_t i, const void* w, float* m, double* loss, double* entropy) except -1 nogil:
        cdef Py_ssize_t k, e, g = self.gold[i], n = self.attributes.n_outputs, first = 0, end = 0
        cdef double top, mean, total, high, inside = 1.0, mean_inside = 0.0
        poll(self.decoder.work(i) + 2 * n)
        self.decoder.fill(i, <const float*>w)
        self.at_hand = i
        self.attributes.of_outputs(&self.decoder.s[0], &self.scores[0])
        for k in range(n):
            self.chances[k] = <float>self.scores[k]
        for k in range(n, self.chances.shape[0]):
            self.chances[k] = -INFINITY
        total = KERNELS.exponentials(&self.chances[0], self.chances.shape[0], &top, &mean)
        if g >= 0:
            high = self.scores[g]
        else:
            first, end, high = self.bounds[self.which[i]], self.bounds[self.which[i] + 1], -INFINITY
            inside = 0.0
            for e in range(first, end):
                high = max(high, self.scores[self.candidates[e]] + self.log_weights[e])
            for e in range(first, end):
                k = self.candidates[e]
                mean_inside += exp(self.scores[k] + self.log_weights[e] - high) * (self.scores[k] - high)
                inside += exp(self.scores[k] + self.log_weights[e] - high)
        loss[0] = top + log(total) - high - log(inside)
        entropy[0] = log(total) - mean / total - log(inside) + mean_inside / inside
        if g >= 0:
            loss[0], entropy[0] = max(loss[0], 0.0), max(entropy[0], 0.0)
        if m != NULL:
            memset(m, 0, self.decoder.u.shape[0] * sizeof(float))
            if g >= 0:
                k = self.attributes.position[g]
                self.of_positions[k + 1] = -<double>self.attributes.scale[k]
            for e in range(first, end):
                k = self.attributes.position[self.candidates[e]]
                self.of_positions[k + 1] -= (exp(self.scores[self.candidates[e]] + self.log_weights[e] - high) / inside
                                             * self.attributes.scale[k])
            self.attributes.expectation(&self.chances[0], 1.0 / total, &self.of_positions[0], m)
        return 0

    cdef double c_moments_dot(self, Py_ssize_t i, const float* m, const void* w) except? -1 nogil:
        cdef Py_ssize_t a
        cdef double total = 0.0
        for a in range(self.attributes.n_attributes):
            total += <double>m[a] * self.decoder.u[a]
        return total

    cdef double c_moments_square(self, Py_ssize_t i, const float* m) except? -1 nogil:
        return self.decoder.square(i, m)

    cdef int c_moments_add(self, Py_ssize_t i, const float* m, double coef, bint again, void* w) except -1 nogil:
        self.decoder.add_all(i, m, coef, <float*>w)
        return 0

    cdef int c_moments_accumulate(self, Py_ssize_t i, const float* m, double coef, double* w) except -1 nogil:
        self.decoder.accumulate_all(i, m, coef, w)
        return 0

    def sum_of_moments(self, coefs, offsets, moments):
        if not isinstance(self.decoder, DenseScorer):
            return super().sum_of_moments(coefs, offsets, moments)
        cdef DenseScorer decoder = self.decoder
        return sum_of_products(coefs, np.reshape(moments, (self.n_samples, -1)), np.asarray(decoder.rows)).ravel()

    # ---- arithmetic on cuts ----------------------------------------------------------------------

    cdef Py_ssize_t scaled(self, Py_ssize_t i, const Cut* cut, double coef) noexcept nogil:
        """The first of `differ`, times coef and the cut's scale."""
        cdef Py_ssize_t t, size = self.differ(i, cut, 0)
        for t in range(size):
            self.amounts[0, t] *= coef * cut.scale
        return size

    cdef Py_ssize_t differ(self, Py_ssize_t i, const Cut* cut, int which) noexcept nogil:
        """L(true) - L(y), its attributes to difference[which] and amounts[which]; returns how many there are."""
        cdef Py_ssize_t n = 0
        cdef int32_t y, a, b
        if cut.n_words == 0:
            return 0
        y = cut.words[0]
        a, b = self.attributes.only[self.gold[i]], self.attributes.only[y]
        if a >= 0 and b >= 0 and a != b:
            self.difference[which, 0], self.difference[which, 1] = a, b
            self.amounts[which, 0], self.amounts[which, 1] = 1.0, -1.0
            return 2
        n = self.attributes.add(self.gold[i], 1.0, &self.sums[0], &self.there[0], &self.touched[0], n)
        n = self.attributes.add(y, -1.0, &self.sums[0], &self.there[0], &self.touched[0], n)
        return self.drain(n, which)

    cdef Py_ssize_t drain(self, Py_ssize_t n, int which) noexcept nogil:
        """Move sums of the n touched attributes that are not 0 to difference[which] and amounts[which]; zero them."""
        cdef Py_ssize_t t, found = 0
        cdef int32_t a
        for t in range(n):
            a = self.touched[t]
            if self.sums[a] != 0.0:
                self.difference[which, found] = a
                self.amounts[which, found] = self.sums[a]
                found += 1
            self.sums[a] = 0.0
            self.there[a] = 0
        return found

    cdef int c_dots(self, Py_ssize_t i, const Cut* cuts, Py_ssize_t n, const void* w, bint fresh,
                    double* out) except -1 nogil:
        """From the current scores, or from those of the attributes in which the outputs differ, each summed once."""
        cdef const float* s = &self.decoder.s[0]
        cdef Py_ssize_t k, t, size
        cdef int32_t a
        cdef double total
        if fresh and self.at_hand == i:
            for k in range(n):
                total = self.attributes.score(self.gold[i], s) - self.attributes.score(cuts[k].words[0], s)
                out[k] = cuts[k].scale * total
            return 0
        self.serial += 1
        for k in range(n):
            size = self.differ(i, &cuts[k], 0)
            total = 0.0
            for t in range(size):
                a = self.difference[0, t]
                if self.summed_in[a] != self.serial:
                    self.summed_in[a] = self.serial
                    self.summed[a] = self.decoder.score_of_attribute(i, a, <const float*>w)
                total += self.amounts[0, t] * self.summed[a]
            out[k] = cuts[k].scale * total
        return 0

    cdef int c_add(self, Py_ssize_t i, const Cut* cut, double coef, void* w) except -1 nogil:
        cdef Py_ssize_t n = self.scaled(i, cut, coef)
        self.decoder.add(i, &self.difference[0, 0], &self.amounts[0, 0], n, <float*>w)
        return 0

    cdef int c_add_cuts(self, Py_ssize_t i, const Cut* cuts, Py_ssize_t n, void* w) except -1 nogil:
        """An attribute in which several outputs differ is added once."""
        cdef Py_ssize_t k, m = 0
        cdef double amount
        for k in range(n):
            amount = cuts[k].alpha * cuts[k].scale
            m = self.attributes.add(self.gold[i], amount, &self.sums[0], &self.there[0], &self.touched[0], m)
            m = self.attributes.add(cuts[k].words[0], -amount, &self.sums[0], &self.there[0], &self.touched[0], m)
        m = self.drain(m, 0)
        self.decoder.add(i, &self.difference[0, 0], &self.amounts[0, 0], m, <float*>w)
        return 0

    cdef int c_accumulate(self, Py_ssize_t i, const Cut* cut, double coef, double* w) except -1 nogil:
        cdef Py_ssize_t n = self.scaled(i, cut, coef)
        self.decoder.accumulate(i, &self.difference[0, 0], &self.amounts[0, 0], n, w)
        return 0

    cdef double c_inner(self, Py_ssize_t i, const Cut* a, const Cut* b) except? -1 nogil:
        """Sum over attributes of dL dL' times the squares of x's features that have a weight for the attribute."""
        cdef Py_ssize_t t, size_a = self.differ(i, a, 0), size_b = self.differ(i, b, 1)
        cdef double total = 0.0
        cdef int32_t c
        for t in range(size_a):
            self.sums[self.difference[0, t]] = self.amounts[0, t]
        for t in range(size_b):
            c = self.difference[1, t]
            if self.sums[c] != 0.0:
                total += self.sums[c] * self.amounts[1, t] * self.decoder.mass(i, c)
        for t in range(size_a):
            self.sums[self.difference[0, t]] = 0.0
        return a.scale * b.scale * total

    cdef bint c_valid(self, Py_ssize_t i, const Cut* cut) noexcept nogil:
        return (cut.n_words == 1 and 0 <= cut.words[0] < self.attributes.n_outputs
                and cut.words[0] != self.gold[i] and self.gold[i] >= 0)

    cdef void c_prefetch(self, Py_ssize_t i, int stage) noexcept nogil:
        if stage == 0:
            self.decoder.fetch(i)

    cdef double c_cost(self, Py_ssize_t i) noexcept nogil:
        return self.decoder.cost(i)

    def fingerprint(self):
        labels, sets = self.labels, ()
        if self.known is not None:
            labels, sets = self.known.which, [array for array in self.known[1:] if array is not None]
        losses = np.array([<int>self.node_loss, self.decoder.documents.fingerprint(labels)])
        return checksum([losses, self.matrix, *self.attributes.arrays, *sets])

    def structure_fingerprint(self):
        return checksum([np.array([<int>self.node_loss]), self.matrix, *self.attributes.arrays])

    def to_oracle(self, w):
        """Weights of this problem as its oracle has them."""
        structure = self.decoder.structure
        if not isinstance(self.decoder, DenseScorer):
            return w
        return by_features(w, structure.n_input_features, self.attributes.n_attributes, structure.stride)

    def from_oracle(self, w):
        """The inverse."""
        if not isinstance(self.decoder, DenseScorer):
            return w
        return by_attributes(w, self.decoder.structure.n_input_features, self.attributes.n_attributes)

    def examples(self, Py_ssize_t start, Py_ssize_t stop):
        return self._arguments(self.decoder.documents[start:stop], slice(start, stop))

    def examples_at(self, chosen):
        return self._arguments(self.decoder.documents.take(chosen), chosen)

    def _arguments(self, documents, rows):
        known = None if self.known is None else self.known.rows(rows)
        return self.decoder.structure, documents, self.labels[rows], known

    def most_violated(self, Py_ssize_t i, w):
        """The output behind ``separate(i, w)``."""
        cdef Cut cut
        cdef double violation
        cdef ndarray weights = self._check_weights(w)
        if not 0 <= i < self.n_samples:
            raise IndexError(f"example {i} is out of range for {self.n_samples} examples")
        self.c_separate(i, array_data(weights), &cut, &violation)
        return int(cut.words[0] if cut.n_words > 0 else self.gold[i])
