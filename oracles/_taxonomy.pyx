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

A cut is written as the number of its output.
"""

from libc.math cimport INFINITY, sqrt
from libc.stdint cimport int32_t, int64_t

import numpy as np

from structsvm._problem cimport (
    PENALTY_HARD, PENALTY_LINEAR, RESCALE_NONE, RESCALE_SLACK, Cut, Problem, cut_terms,
)
from structsvm._arrays cimport array_data, ndarray
from structsvm.execution._processor cimport kernel_set
from structsvm.execution._stop cimport poll
from structsvm.structures._lattice cimport LOSS_ZERO_ONE, Lattice, NodeLoss

from structsvm.checksum import checksum
from structsvm.structures._lattice import NODE_LOSSES

cdef extern from "kernels.h" nogil:
    ctypedef struct kernels:
        void (*fill)(const float* W, int64_t stride, const int64_t* indptr, const int32_t* indices,
                     const float* values, int64_t T, const float* init, int64_t init_step, float* E) noexcept nogil
    const kernels* kernels_of(int set, int (*poll)(int64_t work) except -1 nogil)

cdef const kernels* KERNELS = kernels_of(kernel_set(), poll)

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

    def __init__(self, base, first, attribute, value, scale, position, Py_ssize_t n_attributes):
        self.arrays = (base, first, attribute, value, scale, position)
        self.base, self.first, self.attribute, self.value, self.scale, self.position = self.arrays
        self.n_attributes, self.n_positions, self.n_outputs = n_attributes, len(base), len(position)

    def __reduce__(self):
        return OutputAttributes, (*self.arrays, self.n_attributes)

    cdef void scores(self, const float* u, float* s) noexcept nogil:
        """s[z + 1] of all positions, before the scale."""
        cdef Py_ssize_t z, e
        cdef float total
        s[0] = 0.0
        for z in range(self.n_positions):
            total = s[self.base[z]]
            for e in range(self.first[z], self.first[z + 1]):
                total += u[self.attribute[e]] if self.value.shape[0] == 0 else self.value[e] * u[self.attribute[e]]
            s[z + 1] = total

    cdef inline double score(self, Py_ssize_t k, const float* s) noexcept nogil:
        cdef Py_ssize_t z = self.position[k]
        return <double>self.scale[z] * s[z + 1]

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


cdef class TaxonomyDecoder:
    """Scores of documents, and the best output of each. One thread's object."""

    cdef readonly object structure
    cdef readonly object documents
    cdef OutputAttributes attributes
    cdef readonly Py_ssize_t n_samples
    cdef Py_ssize_t stride, n_full
    cdef const int64_t* indptr
    cdef const int32_t* indices
    cdef const float* values            # NULL: all ones
    cdef int64_t[::1] split             # where each document's entries with listed attributes begin
    cdef const int64_t[::1] lists       # places in w of each listed row's weights
    cdef const int32_t[::1] listed      # their attributes, from the first listed row's on
    cdef float[::1] zeros
    cdef float[::1] u
    cdef float[::1] s

    def __init__(self, structure, documents):
        structure.check_documents(documents)
        self.structure, self.documents = structure, documents
        self.attributes = structure.attributes
        self.n_samples, self.stride, self.n_full = len(documents), structure.stride, structure.n_full
        self.indptr = <const int64_t*>array_data(documents.indptr)
        self.indices = <const int32_t*>array_data(documents.indices)
        self.values = NULL if documents.values is None else <const float*>array_data(documents.values)
        self.lists, self.listed = structure.list_places, structure.listed
        before = np.concatenate([[0], np.cumsum(documents.indices < self.n_full)])
        self.split = documents.indptr[:self.n_samples] + np.diff(before[documents.indptr])
        self.zeros = np.zeros(self.stride, dtype=np.float32)
        self.u = np.empty(self.stride, dtype=np.float32)
        self.s = np.empty(self.attributes.n_positions + 1, dtype=np.float32)

    cdef inline double x(self, Py_ssize_t e) noexcept nogil:
        return 1.0 if self.values == NULL else self.values[e]

    cdef int64_t work(self, Py_ssize_t i) noexcept nogil:
        """What the scores of document i take, in the units of `poll`."""
        return (self.indptr[i + 1] - self.indptr[i]) * self.stride // 8 + 4 * self.attributes.n_positions

    cdef void fill(self, Py_ssize_t i, const float* w) noexcept nogil:
        """s of document i."""
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
        """u[a] of document i alone."""
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
        """Sum of the squares of those of document i's listed features that have a weight for attribute a."""
        cdef Py_ssize_t e
        cdef double total = 0.0
        for e in range(self.split[i], self.indptr[i + 1]):
            if self.find(self.indices[e] - self.n_full, a) >= 0:
                total += self.x(e) * self.x(e)
        return total

    cdef void add(self, Py_ssize_t i, int32_t a, double amount, real* w) noexcept nogil:
        """w += amount x_i (x) e_a."""
        cdef Py_ssize_t e
        cdef int64_t p
        for e in range(self.indptr[i], self.split[i]):
            w[self.indices[e] * self.stride + a] += <real>(amount * self.x(e))
        for e in range(self.split[i], self.indptr[i + 1]):
            p = self.find(self.indices[e] - self.n_full, a)
            if p >= 0:
                w[p] += <real>(amount * self.x(e))

    def parts(self, Py_ssize_t size):
        """Decoders of the documents in blocks of `size`."""
        return [TaxonomyDecoder(self.structure, self.documents[start:start + size])
                for start in range(0, self.n_samples, size)]

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


cdef class TaxonomyProblem(Problem):
    """Documents with their true outputs."""

    cdef readonly TaxonomyDecoder decoder
    cdef OutputAttributes attributes
    cdef readonly object labels
    cdef const int32_t[::1] gold
    cdef Lattice lattice                # of this thread
    cdef bint from_matrix
    cdef NodeLoss node_loss
    cdef const int32_t[::1] node        # of each output
    cdef const float[:, ::1] matrix     # loss of true and predicted output, where that is how it is given
    cdef float[::1] node_losses
    cdef double[::1] squares            # of each document's entries with full rows
    cdef double[::1] sums               # scratch over attributes: zero between two uses, like `there`
    cdef char[::1] there
    cdef int32_t[::1] touched
    cdef int32_t[:, ::1] difference     # attributes in which two outputs differ, for two cuts at a time
    cdef double[:, ::1] amounts         # and by how much
    cdef int32_t word                   # of the cut that was found last
    cdef Py_ssize_t at_hand             # the document whose scores stand in decoder.s, or -1
    cdef double[::1] known              # u[a] where call number `serial` of c_dots has summed it
    cdef int64_t[::1] known_in
    cdef int64_t serial

    def __init__(self, structure, documents, labels, *, rescaling="margin", penalty="linear"):
        self.decoder = TaxonomyDecoder(structure, documents)
        self.attributes = structure.attributes
        super().__init__(len(documents), structure.n_features, rescaling=rescaling, penalty=penalty,
                         weight_dtype=np.float32)
        cdef Py_ssize_t i, e, size = max(structure.attributes.n_attributes, 1)
        self.labels = self.gold = structure.check_labels(documents, labels)
        self.from_matrix = structure.loss_matrix is not None
        self.matrix = np.empty((0, 0), dtype=np.float32) if structure.loss_matrix is None else structure.loss_matrix
        self.node_loss = NODE_LOSSES[structure.loss_name] if structure.loss_matrix is None else LOSS_ZERO_ONE
        self.node = structure.outputs
        lattice = structure.taxonomy.lattice
        self.lattice = Lattice(lattice.indptr, lattice.parents, lattice.height)
        self.node_losses = np.empty(len(lattice.height), dtype=np.float32)
        self.squares = np.zeros(self.n_samples)
        for i in range(self.n_samples):
            for e in range(self.decoder.indptr[i], self.decoder.split[i]):
                self.squares[i] += self.decoder.x(e) * self.decoder.x(e)
        self.sums = np.zeros(size)
        self.there = np.zeros(size, dtype=np.int8)
        self.touched = np.empty(size, dtype=np.int32)
        self.difference = np.empty((2, size), dtype=np.int32)
        self.amounts = np.empty((2, size))
        self.at_hand = -1
        self.known = np.empty(size)
        self.known_in = np.zeros(size, dtype=np.int64)

    # ---- the most violated output ----------------------------------------------------------------

    cdef inline double loss(self, Py_ssize_t g, Py_ssize_t k) noexcept nogil:
        return self.matrix[g, k] if self.from_matrix else self.node_losses[self.node[k]]

    cdef int c_separate(self, Py_ssize_t i, const void* w, Cut* cut, double* violation) except -1 nogil:
        """b_y - scale_y (s_g - s_y) for every output y; without rescaling, s_y - s_g."""
        cdef const float* s = &self.decoder.s[0]
        cdef Py_ssize_t g = self.gold[i], k, top = -1
        cdef double true_score, b, value, high = 0.0
        poll(self.decoder.work(i))
        self.decoder.fill(i, <const float*>w)
        self.at_hand = i
        if not self.from_matrix:
            self.lattice.fill(self.node_loss, self.node[g], &self.node_losses[0])
        if self.penalty == PENALTY_HARD or self.rescaling == RESCALE_NONE:
            high = -INFINITY
        true_score = self.attributes.score(g, s)
        cut.n_words = 0
        cut.alpha = cut.b = violation[0] = 0.0
        cut.scale = 1.0
        for k in range(self.attributes.n_outputs):
            if k == g:
                continue
            b = 0.0
            if self.rescaling != RESCALE_NONE:
                b = 1.0 if self.penalty == PENALTY_HARD else self.loss(g, k)
                if self.penalty != PENALTY_LINEAR:
                    b = sqrt(b)
            value = true_score - self.attributes.score(k, s)
            value = b - (b * value if self.rescaling == RESCALE_SLACK else value)
            if value != value:          # scores that overflow: the solver says it
                violation[0] = value
                return 0
            if value > high:
                high = value
                top = k
        if top < 0 or (self.rescaling == RESCALE_NONE and high < 0.0):
            return 0
        self.word = <int32_t>top
        cut.words = &self.word
        cut.n_words = 1
        cut_terms(self.rescaling, self.penalty, self.loss(g, top), cut)
        violation[0] = cut.b - cut.scale * (true_score - self.attributes.score(top, s))
        return 0

    # ---- arithmetic on cuts ----------------------------------------------------------------------

    cdef Py_ssize_t differ(self, Py_ssize_t i, const Cut* cut, int which) noexcept nogil:
        """L(true) - L(y), its attributes to difference[which] and amounts[which]; returns how many there are."""
        cdef Py_ssize_t t, n = 0, found = 0
        cdef int32_t y, a
        if cut.n_words == 0:
            return 0
        y = cut.words[0]
        n = self.attributes.add(self.gold[i], 1.0, &self.sums[0], &self.there[0], &self.touched[0], n)
        n = self.attributes.add(y, -1.0, &self.sums[0], &self.there[0], &self.touched[0], n)
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
        """From the scores at hand, or from those of the attributes in which the outputs differ, each summed once."""
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
                if self.known_in[a] != self.serial:
                    self.known_in[a] = self.serial
                    self.known[a] = self.decoder.score_of_attribute(i, a, <const float*>w)
                total += self.amounts[0, t] * self.known[a]
            out[k] = cuts[k].scale * total
        return 0

    cdef void add_to(self, Py_ssize_t i, const Cut* cut, double coef, real* w) noexcept nogil:
        cdef Py_ssize_t t, size = self.differ(i, cut, 0)
        for t in range(size):
            self.decoder.add(i, self.difference[0, t], coef * cut.scale * self.amounts[0, t], w)

    cdef int c_add(self, Py_ssize_t i, const Cut* cut, double coef, void* w) except -1 nogil:
        self.add_to(i, cut, coef, <float*>w)
        return 0

    cdef int c_accumulate(self, Py_ssize_t i, const Cut* cut, double coef, double* w) except -1 nogil:
        self.add_to(i, cut, coef, w)
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
                total += self.sums[c] * self.amounts[1, t] * (self.squares[i] + self.decoder.mass(i, c))
        for t in range(size_a):
            self.sums[self.difference[0, t]] = 0.0
        return a.scale * b.scale * total

    cdef bint c_valid(self, Py_ssize_t i, const Cut* cut) noexcept nogil:
        return (cut.n_words == 1 and 0 <= cut.words[0] < self.attributes.n_outputs
                and cut.words[0] != self.gold[i])

    cdef double c_cost(self, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t entries = self.decoder.indptr[i + 1] - self.decoder.indptr[i]
        # Whole vectors of a row, and the pass down.
        return (0.125 * entries + 1.0) * self.decoder.stride

    def fingerprint(self):
        losses = np.array([<int>self.node_loss, self.decoder.documents.fingerprint(self.labels)])
        return checksum([losses, self.matrix, *self.attributes.arrays])

    def structure_fingerprint(self):
        return checksum([np.array([<int>self.node_loss]), self.matrix, *self.attributes.arrays])

    def examples(self, Py_ssize_t start, Py_ssize_t stop):
        return self.decoder.structure, self.decoder.documents[start:stop], self.labels[start:stop]

    def most_violated(self, Py_ssize_t i, w):
        """The output behind ``separate(i, w)``."""
        cdef Cut cut
        cdef double violation
        cdef ndarray weights = self._check_weights(w)
        if not 0 <= i < self.n_samples:
            raise IndexError(f"example {i} is out of range for {self.n_samples} examples")
        self.c_separate(i, array_data(weights), &cut, &violation)
        return int(cut.words[0] if cut.n_words > 0 else self.gold[i])
