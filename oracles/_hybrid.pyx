"""Hybrid trees: one chart over the words of a sentence for the units of a forest of meanings.

Everything is a product of exponentials of scores, so that sums and their derivatives are multiplications and additions;
the best derivation takes maxima in place of the sums. Each word is covered exactly once: the largest score that a unit
has for a word is taken out of all of them and put back into the logarithm, which keeps the numbers in range.

Of node u over the words [i, j), with the slots s of its arguments:

    word(u, t)        weight of t as a word of u's own;  run(u, i, j) = prod of word(u, t) over [i, j)
    nothing(s)        sum over the nodes c that may fill s of pair(s, c) * empty(c): s without words
    base(u, S)        prod of nothing(s) over s in S
    C(s, i, j)        sum over c of pair(s, c) * (I_0 + ... + I_K)(c, i, j), times the weights of the span's ends
    F(u, S, i, j)     the slots S are filled, the first of those with words begins at i; the last item is a word of u or
                      a child:  sum_s base(u, S - s) C(s, i, j) + sum_{s, k} F(u, S - s, i, k) C(s, k, j) order(s)
                      + F(u, S, i, j - 1) word(u, j - 1)
    G(u, i, j)        all slots are filled, one of them by the span, the others by nothing; no word of u's own
    B(u, i, j)        F(u, all, i, j), or word(u, i) (B + G)(u, i + 1, j);   F(u, all) has no first term and takes
                      word(u, j - 1) (F + G)(u, all, i, j - 1) for its last
    I_0(u, i, j)      (B(u, i, j) + base(u, all) run(u, i, j)), times the weights of the span's ends
    I_{k+1}(u, i, j)  wordless(u) G_k(u, i, j), G_k being G with children of I_k: k + 1 units without words, one above
                      the other; at most K of them

Each derivation is counted once: words to the right of a unit's children come before those to the left.

The arguments of a list stand in any order. Where each slot of it may take the same, its slots are filled from left to
right: S is {0, ..., k}, s is k, and the first slots are those without words.
"""

from libc.math cimport INFINITY, exp, isfinite, log, sqrt
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free as release, malloc
from libc.string cimport memset

from enum import IntEnum

import numpy as np

from structsvm._arrays cimport array_data, ndarray
from structsvm.execution._processor cimport kernel_set
from structsvm.execution._stop cimport poll

cdef extern from "hybrid.h" nogil:
    ctypedef struct hybrid_chart:
        int64_t n, N, depth, n_nodes, n_slots, n_roots, n_stages
        const int32_t* slot_ptr
        const int32_t* stage_ptr
        const int32_t* lists
        const int32_t* fill_ptr
        const int32_t* inner_end
        const int32_t* fill
        const int32_t* root
        double* word
        double* begin
        double* end
        double* slot_begin
        double* slot_end
        double* wordless
        double* empty
        double* order
        double* pair
        double* root_pair
        double* E
        double* nothing
        double* base
        double* C
        double* F
        double* G
        double* B
        double* run
        double* T
        double* Ck
        int64_t n_weights, n_values
        double total
    ctypedef struct hybrid_kernels:
        int (*fill)(hybrid_chart* h, int best) except -1 nogil
        int (*spread)(hybrid_chart* h) except -1 nogil
    const hybrid_kernels* hybrid_kernels_of(int set, int (*poll)(int64_t work) except -1 nogil)

cdef const hybrid_kernels* KERNELS = hybrid_kernels_of(kernel_set(), poll)

cdef enum:      # arguments of a node that are filled in any order; of any node
    MOST_SLOTS = 8
    MOST_IN_ORDER = 30

MOST_IN_ANY_ORDER, MOST_ARGUMENTS = int(MOST_SLOTS), int(MOST_IN_ORDER)

cdef enum:      # kinds of items
    ROOT
    NODE
    SLOT
    STAGE
    LEFT
    BARE
    NOTHING

cdef enum:      # orders of the arguments of a node
    PLAIN
    ANY_ORDER
    IN_ORDER

Order = IntEnum("Order", "PLAIN ANY_ORDER IN_ORDER", start=0, module=__name__)
Kind = IntEnum("Kind", "ROOT NODE SLOT STAGE LEFT BARE NOTHING", start=0, module=__name__)

# Numbers of a chart and its derivatives: 4 GB.
cdef Py_ssize_t MOST_NUMBERS = 1 << 29

# A word is worth at least exp of this to a node, relative to the node that it is worth most to.
cdef double LEAST_SCORE = -600.0


cdef class Forest:
    """Nodes that may cover words, and which of them may fill which slot.

    Parameters
    ----------
    units, kinds : arrays of int32, shape (n_nodes,)
        Of each node the unit, for the features of its words, and the kind, for all others; names of one kind share
        what is not about their own words. A kind that is not the unit itself has features of words, too.
    slots : list of lists of (slot, list of (node, pair))
        Per node and argument: the slot's number (its features), and the nodes that may fill it, each with the index of
        the feature of the pair, -1 for none.
    roots : list of (node, pair)
    spans : dict, optional
        From nodes without slots to ``(i, j)``: the words that they must cover, and no others.
    priors : array of float64, optional
        Added to the scores of the roots, by default 0.
    lists : array of int32, optional
        Per node `PLAIN` (0), or for a list of arguments, whose order has no features: `ANY_ORDER` (1), or `IN_ORDER`
        (2) if its slots are filled from left to right, those without words first; then it may have more of them.
    """

    cdef readonly object units, kinds, slot_ptr, slots, fill_ptr, fill, pairs, roots, root_pairs, spans
    cdef readonly object stage_ptr, inner_end, priors, lists, ordered
    cdef readonly Py_ssize_t n_nodes, n_slots

    def __init__(self, object units, object kinds, object slots, object roots, object spans=None,
                 object priors=None, object lists=None):
        cdef object filling = [of_slot for of_node in slots for of_slot in of_node]
        cdef object fill = rows_of([pair for _, nodes in filling for pair in nodes]), whole = rows_of(roots)
        self.take((units, kinds, np.cumsum([0, *map(len, slots)]), [slot for slot, _ in filling],
                   np.cumsum([0, *[len(nodes) for _, nodes in filling]]), fill[:, 0], fill[:, 1],
                   whole[:, 0], whole[:, 1], [(spans or {}).get(u, (-1, -1)) for u in range(len(units))],
                   np.zeros(len(roots)) if priors is None else priors,
                   np.zeros(len(units)) if lists is None else lists))

    cdef int take(self, object arrays) except -1:
        """Set the arrays; those that may fill a slot are put in order, first the nodes that have slots."""
        (self.units, self.kinds, self.slot_ptr, self.slots, self.fill_ptr, self.fill, self.pairs, self.roots,
         self.root_pairs, self.spans) = [np.ascontiguousarray(array, dtype=np.int32) for array in arrays[:10]]
        self.priors = np.ascontiguousarray(arrays[10], dtype=np.float64)
        self.lists = np.ascontiguousarray(arrays[11], dtype=np.int32)
        self.n_nodes, self.n_slots = len(self.units), len(self.slots)
        arity = np.diff(self.slot_ptr)
        most = np.where(self.lists == IN_ORDER, MOST_IN_ORDER, MOST_SLOTS)
        if (arity > most).any():
            raise ValueError(f"a unit has {arity.max()} arguments, more than {most[arity > most].max()}")
        self.ordered = np.repeat((self.lists == PLAIN).astype(np.int32), arity)
        stages = np.where(self.lists == IN_ORDER, arity + 1, np.left_shift(1, arity))
        self.stage_ptr = np.cumsum([0, *stages], dtype=np.int32)
        slot_of = np.repeat(np.arange(self.n_slots), np.diff(self.fill_ptr))
        is_inner = arity[self.fill] > 0
        order = np.lexsort((~is_inner, slot_of))
        self.fill, self.pairs = self.fill[order], self.pairs[order]
        inner = np.bincount(slot_of[is_inner], minlength=self.n_slots)
        self.inner_end = (self.fill_ptr[:self.n_slots] + inner).astype(np.int32)
        return 0

    @staticmethod
    def of_arrays(*arrays):
        """The inverse of `arrays`."""
        cdef Forest self = Forest.__new__(Forest)
        self.take(arrays)
        return self

    @property
    def arrays(self):
        """Twelve arrays that make the forest."""
        return (self.units, self.kinds, self.slot_ptr, self.slots, self.fill_ptr, self.fill, self.pairs, self.roots,
                self.root_pairs, self.spans, self.priors, self.lists)

    def __reduce__(self):
        return forest_of, self.arrays


def forest_of(*arrays):
    """The forest of `Forest.arrays`; for pickle, which finds functions of modules alone."""
    return Forest.of_arrays(*arrays)


def rows_of(pairs):
    return np.array(pairs, dtype=np.int32).reshape(-1, 2)


cdef class Layout:
    """Where the features of units and slots stand in the weights: dense blocks, and one of the names' own words.

    Names of a kind share its row in all blocks; a name has features of its own for the words that may say it alone.

    Parameters
    ----------
    rows : array of int32, shape (n_units,)
        Per unit or kind its row in the blocks, or -1 - k for the k-th name.
    n_slots : int
    n_attributes, n_present, n_borders : int
        Attributes of words, those of them that a word may have first, and those of the places between words.
    inside : bool, default=False
        Whether units have features of all words of their spans, and of their number.
    columns : pair of arrays of int32, optional
        ``(ptr, attributes)``: the attributes that each name has features of, ascending; by default all.
    """

    cdef readonly object rows, name_ptr, name_columns
    cdef readonly Py_ssize_t n_rows, n_slots, n_attributes, n_present, n_borders, n_pairs, n_inside, n_features
    cdef readonly Py_ssize_t word, begin, end, slot_begin, slot_end, wordless, empty, order, pair, present, inside
    cdef readonly Py_ssize_t name

    def __init__(self, object rows, Py_ssize_t n_slots, Py_ssize_t n_attributes, Py_ssize_t n_present,
                 Py_ssize_t n_borders, bint inside=False, object columns=None):
        self.rows = np.ascontiguousarray(rows, dtype=np.int32)
        cdef Py_ssize_t n_names = np.count_nonzero(self.rows < 0)
        if columns is None:
            columns = n_attributes * np.arange(n_names + 1), np.tile(np.arange(n_attributes), n_names)
        self.name_ptr, self.name_columns = [np.ascontiguousarray(part, dtype=np.int32) for part in columns]
        self.n_rows, self.n_slots = len(self.rows) - n_names, n_slots
        self.n_attributes, self.n_present = n_attributes, n_present
        self.n_borders, self.n_pairs = n_borders, (n_slots + 1) * self.n_rows
        self.word = 0
        self.begin = self.n_rows * n_attributes
        self.end = self.begin + self.n_rows * n_borders
        self.slot_begin = self.end + self.n_rows * n_borders
        self.slot_end = self.slot_begin + n_slots * n_borders
        self.wordless = self.slot_end + n_slots * n_borders
        self.empty = self.wordless + self.n_rows
        self.order = self.empty + self.n_rows
        self.pair = self.order + 2 * n_slots
        self.present = self.pair + self.n_pairs
        self.inside = self.present + self.n_rows * n_present
        self.n_inside = n_present + 1 if inside else 0
        self.name = self.inside + self.n_rows * self.n_inside
        self.n_features = self.name + len(self.name_columns)

    def __reduce__(self):
        return Layout, (self.rows, self.n_slots, self.n_attributes, self.n_present, self.n_borders,
                        self.n_inside > 0, (self.name_ptr, self.name_columns))


cdef struct Blocks:     # a Layout
    int64_t n_attributes, n_present, n_borders, n_inside
    int64_t word, begin, end, slot_begin, slot_end, wordless, empty, order, pair, present, inside, name
    const int32_t* rows
    const int32_t* name_ptr
    const int32_t* name_columns


cdef class Chart:
    """Charts of sentences, one at a time; `depth` is K, the most units without words one above the other."""

    cdef readonly Layout layout
    cdef Blocks blocks
    cdef hybrid_chart h
    cdef object held                    # arrays that pointers point to
    cdef double* memory
    cdef Py_ssize_t room
    # Units and kinds of nodes, numbers of slots, features of the pairs of fillers.
    cdef const int32_t* unit
    cdef const int32_t* kind
    cdef const int32_t* slot
    cdef const int32_t* pair
    cdef const int32_t* root_pair
    cdef const int32_t* span
    # Per slot, 1 if its place behind another one has a feature of its own.
    cdef const int32_t* ordered
    cdef const double* prior
    # Losses of fillers, of roots, and of words [node][n], or all NULL.
    cdef const double* fill_loss
    cdef const double* root_loss
    cdef const double* word_loss
    cdef const int32_t* word_ptr
    cdef const int32_t* word_attribute
    cdef const int32_t* border_ptr
    cdef const int32_t* border_attribute
    cdef double shift

    def __cinit__(self, Layout layout, Py_ssize_t depth=4):
        self.layout, self.h.depth = layout, depth
        self.memory, self.room = NULL, 0
        self.blocks.n_attributes, self.blocks.n_present = layout.n_attributes, layout.n_present
        self.blocks.n_borders, self.blocks.present = layout.n_borders, layout.present
        self.blocks.word, self.blocks.begin, self.blocks.end = layout.word, layout.begin, layout.end
        self.blocks.slot_begin, self.blocks.slot_end = layout.slot_begin, layout.slot_end
        self.blocks.wordless, self.blocks.empty = layout.wordless, layout.empty
        self.blocks.order, self.blocks.pair = layout.order, layout.pair
        self.blocks.n_inside, self.blocks.inside, self.blocks.name = layout.n_inside, layout.inside, layout.name
        cdef ndarray rows = layout.rows, name_ptr = layout.name_ptr, name_columns = layout.name_columns
        self.blocks.rows = <const int32_t*> array_data(rows)
        self.blocks.name_ptr = <const int32_t*> array_data(name_ptr)
        self.blocks.name_columns = <const int32_t*> array_data(name_columns)

    def __dealloc__(self):
        release(self.memory)

    def __reduce__(self):
        return Chart, (self.layout, self.depth)

    @property
    def depth(self):
        return self.h.depth

    cdef int bind(self, object sentence, Forest forest, object losses) except -1:
        """Set sizes and pointers; `sentence` is four int32 arrays: attributes of words, attributes of borders."""
        cdef ndarray word_ptr, word_attribute, border_ptr, border_attribute, of_fill, of_root, of_word
        cdef hybrid_chart* h = &self.h
        word_ptr, word_attribute, border_ptr, border_attribute = sentence
        self.held = sentence, forest, losses
        self.fill_loss = self.root_loss = self.word_loss = NULL
        if losses is not None:
            of_fill, of_root, of_word = losses
            self.fill_loss = <const double*> array_data(of_fill)
            self.root_loss = <const double*> array_data(of_root)
            self.word_loss = <const double*> array_data(of_word)
        self.word_ptr = <const int32_t*> array_data(word_ptr)
        self.word_attribute = <const int32_t*> array_data(word_attribute)
        self.border_ptr = <const int32_t*> array_data(border_ptr)
        self.border_attribute = <const int32_t*> array_data(border_attribute)
        self.unit = <const int32_t*> array_data(forest.units)
        self.kind = <const int32_t*> array_data(forest.kinds)
        self.slot = <const int32_t*> array_data(forest.slots)
        self.pair = <const int32_t*> array_data(forest.pairs)
        self.root_pair = <const int32_t*> array_data(forest.root_pairs)
        self.span = <const int32_t*> array_data(forest.spans)
        self.ordered = <const int32_t*> array_data(forest.ordered)
        self.prior = <const double*> array_data(forest.priors)
        h.n = len(sentence[0]) - 1
        h.N = (h.n + 7) & ~3
        h.n_nodes, h.n_slots, h.n_roots = forest.n_nodes, forest.n_slots, len(forest.roots)
        h.slot_ptr = <const int32_t*> array_data(forest.slot_ptr)
        h.stage_ptr = <const int32_t*> array_data(forest.stage_ptr)
        h.fill_ptr = <const int32_t*> array_data(forest.fill_ptr)
        h.inner_end = <const int32_t*> array_data(forest.inner_end)
        h.lists = <const int32_t*> array_data(forest.lists)
        h.fill = <const int32_t*> array_data(forest.fill)
        h.root = <const int32_t*> array_data(forest.roots)
        h.n_stages = h.stage_ptr[h.n_nodes]
        self.reserve()
        return 0

    cdef int reserve(self) except -1:
        cdef hybrid_chart* h = &self.h
        cdef Py_ssize_t V = h.n_nodes, S = h.n_slots, H = h.depth + 1, N = h.N, P = (h.n + 1) * N, k, need
        cdef double** place[20]
        cdef Py_ssize_t size[20]
        place[:] = [
            &h.word, &h.begin, &h.end, &h.slot_begin, &h.slot_end, &h.wordless, &h.empty, &h.order, &h.pair,
            &h.root_pair, &h.E, &h.nothing, &h.base, &h.C, &h.F, &h.G, &h.B, &h.run, &h.T, &h.Ck]
        size[:] = [
            V * N, V * N, V * N, S * N, S * N, V, V, 2 * S, h.fill_ptr[S], h.n_roots,
            H * V, H * S, h.n_stages, S * P, h.n_stages * P, V * P, V * P, V * P, P * H * V, P * H * S]
        h.n_weights = h.n_values = 0
        for k in range(20):
            if k < 10:
                h.n_weights += size[k]
            else:
                h.n_values += size[k]
        need = 2 * (h.n_weights + h.n_values)
        if need > MOST_NUMBERS:
            raise ValueError(f"a sentence of {h.n} words, of {V} units, needs a chart of {8e-9 * need:.1f} GB, "
                             f"more than {8e-9 * MOST_NUMBERS:.1f}")
        if need > self.room:
            release(self.memory)
            self.room = 0
            self.memory = <double*> malloc(need * sizeof(double))
            if self.memory == NULL:
                raise MemoryError(f"a chart of {h.n} words needs {8e-9 * need:.1f} GB")
            self.room = need
        need = 0
        for k in range(20):
            if k == 10:
                need = 2 * h.n_weights
            place[k][0] = self.memory + need
            need += size[k]
        return 0

    # ---- weights --------------------------------------------------------------------------------

    cdef int look_up(self, const double* w) except -1 nogil:
        """Exponentials of the scores of nodes and slots."""
        cdef hybrid_chart* h = &self.h
        cdef Blocks lay = self.blocks
        cdef Py_ssize_t n = h.n, N = h.N, u, t, s, k, row
        cdef const double* inside
        cdef double top
        memset(h.word, 0, h.n_weights * sizeof(double))
        for u in range(h.n_nodes):
            row = lay.rows[self.kind[u]]
            for t in range(n):
                h.word[u * N + t] = summed(w + lay.word + row * lay.n_attributes, self.word_attribute,
                                           self.word_ptr[t], self.word_ptr[t + 1])
                if self.kind[u] != self.unit[u]:
                    h.word[u * N + t] += self.of_name(w, -1 - lay.rows[self.unit[u]], t)
                if self.word_loss != NULL:
                    h.word[u * N + t] += self.word_loss[u * n + t]
            self.look_at_ends(w + lay.begin + row * lay.n_borders, h.begin + u * N)
            top = 0.0
            for t in range(n):
                k = self.first_attribute(t)
                if k >= 0:
                    top += w[lay.present + row * lay.n_present + k]
            top = exp(top)
            for t in range(n + 1):
                h.begin[u * N + t] *= top
            self.look_at_ends(w + lay.end + row * lay.n_borders, h.end + u * N)
            if lay.n_inside > 0:    # a sum over [i, j) is that of all words before j less that before i
                inside = w + lay.inside + row * lay.n_inside
                top = 0.0
                for t in range(n + 1):
                    h.begin[u * N + t] *= exp(-top)
                    h.end[u * N + t] *= exp(top)
                    k = self.first_attribute(t) if t < n else -1
                    top += inside[lay.n_present] + (inside[k] if k >= 0 else 0.0)
            h.wordless[u] = exp(w[lay.wordless + row])
            h.empty[u] = exp(w[lay.empty + row])
            if self.span[2 * u] >= 0:
                h.empty[u] = 0.0
                for t in range(n + 1):
                    if t != self.span[2 * u]:
                        h.begin[u * N + t] = 0.0
                    if t != self.span[2 * u + 1]:
                        h.end[u * N + t] = 0.0
            poll(60 * n)
        self.shift = 0.0
        for t in range(n):
            top = -INFINITY
            for u in range(h.n_nodes):
                top = max(top, h.word[u * N + t])
            for u in range(h.n_nodes):
                h.word[u * N + t] = exp(max(h.word[u * N + t] - top, LEAST_SCORE))
            self.shift += top
        for s in range(h.n_slots):
            self.look_at_ends(w + lay.slot_begin + self.slot[s] * lay.n_borders, h.slot_begin + s * N)
            self.look_at_ends(w + lay.slot_end + self.slot[s] * lay.n_borders, h.slot_end + s * N)
            h.order[2 * s] = exp(w[lay.order + 2 * self.slot[s]])
            h.order[2 * s + 1] = exp(w[lay.order + 2 * self.slot[s] + self.ordered[s]])
            for k in range(h.fill_ptr[s], h.fill_ptr[s + 1]):
                top = w[lay.pair + self.pair[k]] if self.pair[k] >= 0 else 0.0
                h.pair[k] = exp(top + (self.fill_loss[k] if self.fill_loss != NULL else 0.0))
            poll(40 * n + 10 * (h.fill_ptr[s + 1] - h.fill_ptr[s]))
        for k in range(h.n_roots):
            top = self.prior[k] + (self.root_loss[k] if self.root_loss != NULL else 0.0)
            h.root_pair[k] = exp(top + (w[lay.pair + self.root_pair[k]] if self.root_pair[k] >= 0 else 0.0))
        return 0

    cdef inline Py_ssize_t own_feature(self, Py_ssize_t name, int32_t attribute) noexcept nogil:
        """The feature of a name and an attribute, -1 for none."""
        cdef const int32_t* columns = self.blocks.name_columns
        cdef Py_ssize_t low = self.blocks.name_ptr[name], high = self.blocks.name_ptr[name + 1], middle
        while low < high:
            middle = (low + high) >> 1
            if columns[middle] < attribute:
                low = middle + 1
            else:
                high = middle
        if low < self.blocks.name_ptr[name + 1] and columns[low] == attribute:
            return self.blocks.name + low
        return -1

    cdef double of_name(self, const double* w, Py_ssize_t name, Py_ssize_t t) noexcept nogil:
        """Weight of word t as one of a name, beside those of its kind."""
        cdef double x = 0.0
        cdef Py_ssize_t k, feature
        for k in range(self.word_ptr[t], self.word_ptr[t + 1]):
            feature = self.own_feature(name, self.word_attribute[k])
            if feature >= 0:
                x += w[feature]
        return x

    cdef inline Py_ssize_t first_attribute(self, Py_ssize_t t) noexcept nogil:
        """The attribute of a single word, -1 for none."""
        cdef Py_ssize_t k = self.word_ptr[t]
        if k == self.word_ptr[t + 1] or self.word_attribute[k] >= self.blocks.n_present:
            return -1
        return self.word_attribute[k]

    cdef inline void look_at_ends(self, const double* w, double* out) noexcept nogil:
        cdef Py_ssize_t t
        for t in range(self.h.n + 1):
            out[t] = exp(summed(w, self.border_attribute, self.border_ptr[t], self.border_ptr[t + 1]))

    cdef int scatter(self, double coef, double* gradient, int32_t* touched, int64_t* n_touched,
                     unsigned char* mark) except -1 nogil:
        """gradient += coef * expectation of the joint feature; the features that it has go to `touched` once."""
        cdef hybrid_chart* h = &self.h
        cdef Blocks lay = self.blocks
        cdef Py_ssize_t n = h.n, N = h.N, W = h.n_weights, u, t, s, k, row, feature
        cdef double c = coef / h.total, total
        for u in range(h.n_nodes):
            row = lay.rows[self.kind[u]]
            for t in range(n):
                spread_to(c * h.word[W + u * N + t], lay.word + row * lay.n_attributes, self.word_attribute,
                          self.word_ptr[t], self.word_ptr[t + 1], gradient, touched, n_touched, mark)
                for k in range(self.word_ptr[t], self.word_ptr[t + 1] if self.kind[u] != self.unit[u] else 0):
                    feature = self.own_feature(-1 - lay.rows[self.unit[u]], self.word_attribute[k])
                    if feature >= 0:
                        add_to(c * h.word[W + u * N + t], feature, gradient, touched, n_touched, mark)
            self.scatter_ends(c, h.begin + W + u * N, lay.begin + row * lay.n_borders, gradient, touched,
                              n_touched, mark)
            total = 0.0
            for t in range(n):
                total += h.begin[W + u * N + t]
            for t in range(n):
                k = self.first_attribute(t)
                if k >= 0:
                    add_to(c * total, lay.present + row * lay.n_present + k, gradient, touched, n_touched,
                           mark)
            self.scatter_ends(c, h.end + W + u * N, lay.end + row * lay.n_borders, gradient, touched,
                              n_touched, mark)
            if lay.n_inside > 0:
                total = 0.0         # spans that cover the word
                for t in range(n):
                    total += h.begin[W + u * N + t] - h.end[W + u * N + t]
                    k = self.first_attribute(t)
                    if k >= 0:
                        add_to(c * total, lay.inside + row * lay.n_inside + k, gradient, touched, n_touched,
                               mark)
                    add_to(c * total, lay.inside + row * lay.n_inside + lay.n_present, gradient, touched,
                           n_touched, mark)
            add_to(c * h.wordless[W + u], lay.wordless + row, gradient, touched, n_touched, mark)
            add_to(c * h.empty[W + u], lay.empty + row, gradient, touched, n_touched, mark)
            poll(60 * n)
        for s in range(h.n_slots):
            self.scatter_ends(c, h.slot_begin + W + s * N, lay.slot_begin + self.slot[s] * lay.n_borders, gradient,
                              touched, n_touched, mark)
            self.scatter_ends(c, h.slot_end + W + s * N, lay.slot_end + self.slot[s] * lay.n_borders, gradient,
                              touched, n_touched, mark)
            for k in range(2):
                add_to(c * h.order[W + 2 * s + k], lay.order + 2 * self.slot[s] + k * self.ordered[s], gradient,
                       touched, n_touched, mark)
            for k in range(h.fill_ptr[s], h.fill_ptr[s + 1]):
                if self.pair[k] >= 0:
                    add_to(c * h.pair[W + k], lay.pair + self.pair[k], gradient, touched, n_touched, mark)
            poll(40 * n + 10 * (h.fill_ptr[s + 1] - h.fill_ptr[s]))
        for k in range(h.n_roots):
            if self.root_pair[k] >= 0:
                add_to(c * h.root_pair[W + k], lay.pair + self.root_pair[k], gradient, touched, n_touched, mark)
        return 0

    cdef inline void scatter_ends(self, double c, const double* count, Py_ssize_t first, double* gradient,
                                  int32_t* touched, int64_t* n_touched, unsigned char* mark) noexcept nogil:
        cdef Py_ssize_t t
        for t in range(self.h.n + 1):
            spread_to(c * count[t], first, self.border_attribute, self.border_ptr[t], self.border_ptr[t + 1],
                      gradient, touched, n_touched, mark)

    # ---- verbs ----------------------------------------------------------------------------------

    def log_sum(self, object sentence, Forest forest, const double[::1] w, *, bint best=False, object losses=None):
        """The log of the sum over all derivations of exp of their score; with `best`, the highest score.

        `losses` are added to the scores: float64 arrays of what fills slots (as `forest.fill`), of roots, and of the
        words of each node, shape (n_nodes, n).
        """
        self.bind(sentence, forest, losses)
        with nogil:
            self.look_up(&w[0])
            KERNELS.fill(&self.h, best)
        return self.log_total()

    cdef double log_total(self):
        return self.shift + log(self.h.total) if self.h.total > 0.0 and isfinite(self.h.total) else -INFINITY

    def expect(self, object sentence, Forest forest, const double[::1] w):
        """``(log_sum, expectation)``: the expectation of the joint feature, None where there is no derivation."""
        value = self.log_sum(sentence, forest, w)
        if value == -INFINITY:
            return value, None
        expectation = np.zeros(self.layout.n_features)
        cdef double[::1] out = expectation
        with nogil:
            KERNELS.spread(&self.h)
            self.scatter(1.0, &out[0], NULL, NULL, NULL)
        return value, expectation

    def learn(self, object sentence, Forest known, Forest free, Learner learner, double rate, double weight=1.0,
              double doubt=0.0):
        """One step of AdaGrad on weight * log(p(known) + doubt), log p(known) = log_sum(known) - log_sum(free).

        Returns log p(known): minus infinity, and no step, where `known` has no derivation.
        """
        cdef double first, second
        learner.drop()      # scratch that Ctrl-C has left
        first = self.log_sum(sentence, known, learner.weights)
        if first == -INFINITY:
            return first
        cdef double[::1] gradient = learner.gradient
        cdef int32_t[::1] touched = learner.touched
        cdef unsigned char[::1] mark = learner.mark
        with nogil:
            KERNELS.spread(&self.h)
            self.scatter(weight, &gradient[0], &touched[0], &learner.n_touched, &mark[0])
        second = self.log_sum(sentence, free, learner.weights)
        if second == -INFINITY:
            learner.drop()
            return second
        with nogil:
            KERNELS.spread(&self.h)
            self.scatter(-weight, &gradient[0], &touched[0], &learner.n_touched, &mark[0])
        first = min(first - second, 0.0)
        learner.step(rate, 1.0 if doubt == 0.0 else exp(first) / (exp(first) + doubt))
        return first

    # ---- derivations ----------------------------------------------------------------------------

    def edges(self, int kind, Py_ssize_t u, Py_ssize_t x, Py_ssize_t i, Py_ssize_t j, double least=0.0):
        """The ways to make an item of the last chart filled: a list of ``(value, items, words)``.

        Values are those of the whole item made so; `words` are the places of own words of the node. Kinds of items:
        ROOT; NODE (node u, x units without words on top); SLOT (slot u over [i, j), x: any number of them, -1, or
        exactly x; those worth more than `least` times the best); STAGE (the slots x of node u); LEFT (B of node u);
        BARE (G of node u); NOTHING (slot u, height x).
        """
        cdef hybrid_chart* h = &self.h
        cdef Py_ssize_t V = h.n_nodes, S = h.n_slots, n = h.n, N = h.N, H = h.depth + 1, P = (n + 1) * N
        cdef Py_ssize_t length = j - i, at = length * N + i, k, q, a, b, first, arity, full, rest, low, high
        cdef double value, ends, top, least_value = 0.0
        cdef list out = []
        if kind == ROOT:
            for k in range(h.n_roots):
                for q in range(H):
                    value = h.root_pair[k] * h.T[((n * H + q) * V + h.root[k]) * N]
                    if value > 0.0:
                        out.append((value, ((NODE, h.root[k], q, 0, n),), ()))
            return out
        if kind == SLOT:
            ends = h.slot_begin[u * N + i] * h.slot_end[u * N + j]
            low = max(x, 0)
            high = H if x < 0 else x + 1
            for q in range(low, high):
                least_value = max(least_value, least * h.Ck[((length * H + q) * S + u) * N + i])
            for k in range(h.fill_ptr[u], h.fill_ptr[u + 1]):
                for q in range(low, high):
                    value = ends * h.pair[k] * h.T[((length * H + q) * V + h.fill[k]) * N + i]
                    if value > least_value:
                        out.append((value, ((NODE, h.fill[k], q, i, j),), ()))
            return out
        if kind == NOTHING:
            for k in range(h.fill_ptr[u], h.fill_ptr[u + 1]):
                b = h.fill[k]
                value = h.pair[k] * h.E[x * V + b]
                if value > 0.0:
                    items = tuple([(NOTHING, s, x - 1, 0, 0) for s in range(h.slot_ptr[b], h.slot_ptr[b + 1])])
                    out.append((value, items, (-1 - b,)))
            return out
        first, arity = h.slot_ptr[u], h.slot_ptr[u + 1] - h.slot_ptr[u]
        full = (1 << arity) - 1
        cdef double* base = h.base + h.stage_ptr[u]
        cdef double* F = h.F + h.stage_ptr[u] * P
        cdef double* G = h.G + u * P
        cdef double* B = h.B + u * P
        if kind == NODE:
            ends = h.begin[u * N + i] * h.end[u * N + j]
            if x == 0:
                value = ends * base[self.stage(u, full)] * h.run[u * P + at]
                if value > 0.0:
                    out.append((value, self.nothings(u, full), tuple(range(i, j))))
                if arity > 0 and B[at] > 0.0:
                    out.append((ends * B[at], ((LEFT, u, 0, i, j),), ()))
            else:
                for a in range(self.lowest(u, full), arity):
                    rest = full & ~(1 << a)
                    value = (h.wordless[u] * ends * base[self.stage(u, rest)]
                             * h.Ck[((length * H + x - 1) * S + first + a) * N + i])
                    if value > 0.0:
                        out.append((value, ((SLOT, first + a, x - 1, i, j), *self.nothings(u, rest)), ()))
        elif kind == LEFT:
            value = F[self.stage(u, full) * P + at]
            if value > 0.0:
                out.append((value, ((STAGE, u, full, i, j),), ()))
            if length > 1:
                value = h.word[u * N + i]
                if value * B[at - N + 1] > 0.0:
                    out.append((value * B[at - N + 1], ((LEFT, u, 0, i + 1, j),), (i,)))
                if value * G[at - N + 1] > 0.0:
                    out.append((value * G[at - N + 1], ((BARE, u, 0, i + 1, j),), (i,)))
        elif kind == BARE or x < full:
            for a in range(self.lowest(u, full if kind == BARE else x), arity):
                rest = (full if kind == BARE else x) & ~(1 << a)
                value = base[self.stage(u, rest)] * h.C[(first + a) * P + at]
                if value > 0.0 and (kind == BARE or x >> a & 1):
                    out.append((value, ((SLOT, first + a, -1, i, j), *self.nothings(u, rest)), ()))
        if kind == STAGE:
            for a in range(self.lowest(u, x), arity):
                rest = x & ~(1 << a)
                if rest == x or rest == 0:
                    continue
                for k in range(i + 1, j):
                    value = (F[self.stage(u, rest) * P + (k - i) * N + i] * h.C[(first + a) * P + (j - k) * N + k]
                             * h.order[2 * (first + a) + (rest >> a > 0)])
                    if value > 0.0:
                        out.append((value, ((STAGE, u, rest, i, k), (SLOT, first + a, -1, k, j)), ()))
            if length > 1:
                value = h.word[u * N + j - 1]
                top = value * F[self.stage(u, x) * P + at - N]
                if top > 0.0:
                    out.append((top, ((STAGE, u, x, i, j - 1),), (j - 1,)))
                if x == full and value * G[at - N] > 0.0:
                    out.append((value * G[at - N], ((BARE, u, 0, i, j - 1),), (j - 1,)))
        return out

    cdef Py_ssize_t stage(self, Py_ssize_t u, Py_ssize_t mask):
        """The stage of a set of slots, among those of its node: of a list in order, how many of its first slots."""
        if self.h.lists[u] != IN_ORDER:
            return mask
        return (<object> mask).bit_length()

    cdef Py_ssize_t lowest(self, Py_ssize_t u, Py_ssize_t mask):
        """The first slot that may be the last of a set to be filled."""
        return self.stage(u, mask) - 1 if self.h.lists[u] == IN_ORDER else 0

    cdef tuple nothings(self, Py_ssize_t u, Py_ssize_t mask):
        cdef Py_ssize_t a, first = self.h.slot_ptr[u]
        return tuple([(NOTHING, first + a, self.h.depth, 0, 0)
                      for a in range(self.h.slot_ptr[u + 1] - first) if mask >> a & 1])


cdef class Learner:
    """Weights under AdaGrad with an L2 penalty, and the average of all iterates, weighted by their numbers.

    Parameters
    ----------
    weights : array of float64
    penalty : float
        Of each step: ``penalty / 2 |w - w0|^2`` over the features that it touches, w0 being the weights at the start.
    paces : array of float64
        Of each feature: a factor on the length of its steps.
    """

    cdef readonly object weights, gradient, touched, mark, squares, sum, start, paces
    cdef double penalty
    cdef int64_t n_touched
    cdef public int64_t n_steps

    def __init__(self, object weights, double penalty, object paces):
        n = len(weights)
        self.weights, self.start, self.penalty, self.paces = weights, weights.copy(), penalty, paces
        self.gradient, self.squares, self.sum = np.zeros(n), np.zeros(n), np.zeros(n)
        self.touched, self.mark = np.empty(n, dtype=np.int32), np.zeros(n, dtype=np.uint8)
        self.n_touched = self.n_steps = 0

    def __reduce__(self):
        learnt = self.weights, self.start, self.squares, self.sum
        return restored_learner, (*learnt, self.penalty, self.paces, self.n_steps)

    cdef void drop(self):
        cdef double[::1] g = self.gradient
        cdef int32_t[::1] touched = self.touched
        cdef unsigned char[::1] mark = self.mark
        cdef int64_t k
        for k in range(self.n_touched):
            g[touched[k]] = 0.0
            mark[touched[k]] = 0
        self.n_touched = 0

    def move(self, const int64_t[::1] features, const double[::1] values, double rate):
        """One step with a gradient that is given, at distinct features."""
        cdef double[::1] gradient = self.gradient
        cdef int32_t[::1] touched = self.touched
        cdef unsigned char[::1] mark = self.mark
        cdef Py_ssize_t k
        self.drop()
        for k in range(features.shape[0]):
            add_to(values[k], features[k], &gradient[0], &touched[0], &self.n_touched, &mark[0])
        self.step(rate, 1.0)

    cdef void step(self, double rate, double factor):
        cdef double[::1] w = self.weights, g = self.gradient, s = self.squares, total = self.sum, start = self.start
        cdef const double[::1] pace = self.paces
        cdef int32_t[::1] touched = self.touched
        cdef int64_t k, f
        # The t-th iterate counts t times: a step misses in those before it.
        cdef double d, earlier = self.n_steps * (self.n_steps + 1) / 2.0
        for k in range(self.n_touched):
            f = touched[k]
            d = factor * g[f] - self.penalty * (w[f] - start[f])
            s[f] += d * d
            if s[f] > 0.0:
                d *= rate * pace[f] / (1e-3 + sqrt(s[f]))
                w[f] += d
                total[f] += earlier * d
        self.n_steps += 1
        self.drop()

    @property
    def average(self):
        """The mean of the weights after each step t, times t."""
        return self.weights - self.sum / max(self.n_steps * (self.n_steps + 1) / 2.0, 1.0)


def restored_learner(weights, start, squares, total, penalty, paces, n_steps):
    """The learner that was pickled."""
    cdef Learner self = Learner(weights, penalty, paces)
    self.start, self.squares, self.sum, self.n_steps = start, squares, total, n_steps
    return self


cdef inline double summed(const double* w, const int32_t* attributes, Py_ssize_t a, Py_ssize_t b) noexcept nogil:
    cdef double x = 0.0
    cdef Py_ssize_t k
    for k in range(a, b):
        x += w[attributes[k]]
    return x


cdef inline void add_to(double x, Py_ssize_t feature, double* gradient, int32_t* touched, int64_t* n_touched,
                        unsigned char* mark) noexcept nogil:
    if x == 0.0:
        return
    gradient[feature] += x
    if mark != NULL and not mark[feature]:
        mark[feature] = 1
        touched[n_touched[0]] = <int32_t> feature
        n_touched[0] += 1


cdef inline void spread_to(double x, Py_ssize_t first, const int32_t* attributes, Py_ssize_t a, Py_ssize_t b,
                           double* gradient, int32_t* touched, int64_t* n_touched,
                           unsigned char* mark) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(a, b):
        add_to(x, first + attributes[k], gradient, touched, n_touched, mark)
