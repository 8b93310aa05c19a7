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
"""

from libc.math cimport INFINITY, exp, isfinite, log
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free as release, malloc
from libc.string cimport memset

import numpy as np

from structsvm._arrays cimport array_data, ndarray
from structsvm.execution._stop cimport poll

cdef enum:
    MOST_SLOTS = 8

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
    """

    cdef readonly object units, kinds, slot_ptr, slots, fill_ptr, fill, pairs, roots, root_pairs
    cdef readonly Py_ssize_t n_nodes, n_slots, most

    def __init__(self, object units, object kinds, object slots, object roots):
        cdef object filling = [of_slot for of_node in slots for of_slot in of_node]
        self.units, self.kinds = np.array(units, dtype=np.int32), np.array(kinds, dtype=np.int32)
        self.slot_ptr = np.cumsum([0, *map(len, slots)], dtype=np.int32)
        self.slots = np.array([slot for slot, _ in filling], dtype=np.int32)
        self.fill_ptr = np.cumsum([0, *[len(nodes) for _, nodes in filling]], dtype=np.int32)
        flat = np.array([pair for _, nodes in filling for pair in nodes], dtype=np.int32).reshape(-1, 2)
        self.fill, self.pairs = np.ascontiguousarray(flat[:, 0]), np.ascontiguousarray(flat[:, 1])
        flat = np.array(roots, dtype=np.int32).reshape(-1, 2)
        self.roots, self.root_pairs = np.ascontiguousarray(flat[:, 0]), np.ascontiguousarray(flat[:, 1])
        self.n_nodes, self.n_slots = len(self.units), len(self.slots)
        self.most = max(map(len, slots), default=0)
        if self.most > MOST_SLOTS:
            raise ValueError(f"a unit has {self.most} arguments, more than {MOST_SLOTS}")


cdef class Layout:
    """Where the features of units and slots stand in the weights: dense blocks, one after the other.

    Parameters
    ----------
    n_units, n_slots : int
    n_attributes, n_borders : int
        Attributes of words and of the places between words.
    n_pairs : int
    """

    cdef readonly Py_ssize_t n_units, n_slots, n_attributes, n_borders, n_pairs, n_features
    cdef readonly Py_ssize_t word, begin, end, slot_begin, slot_end, wordless, empty, order, pair

    def __init__(self, Py_ssize_t n_units, Py_ssize_t n_slots, Py_ssize_t n_attributes, Py_ssize_t n_borders,
                 Py_ssize_t n_pairs):
        self.n_units, self.n_slots = n_units, n_slots
        self.n_attributes, self.n_borders, self.n_pairs = n_attributes, n_borders, n_pairs
        self.word = 0
        self.begin = n_units * n_attributes
        self.end = self.begin + n_units * n_borders
        self.slot_begin = self.end + n_units * n_borders
        self.slot_end = self.slot_begin + n_slots * n_borders
        self.wordless = self.slot_end + n_slots * n_borders
        self.empty = self.wordless + n_units
        self.order = self.empty + n_units
        self.pair = self.order + 2 * n_slots
        self.n_features = self.pair + n_pairs


cdef struct Blocks:     # a Layout
    int64_t n_attributes, n_borders, word, begin, end, slot_begin, slot_end, wordless, empty, order, pair


cdef struct Net:        # a Forest's arrays
    int64_t n_nodes, n_slots, n_roots
    const int32_t* unit
    const int32_t* kind
    const int32_t* slot_ptr
    const int32_t* slot
    const int32_t* fill_ptr
    const int32_t* fill
    const int32_t* pair
    const int32_t* root
    const int32_t* root_pair


cdef class Chart:
    """Charts of sentences, one at a time; `depth` is K, the most units without words one above the other."""

    cdef readonly Layout layout
    cdef readonly Py_ssize_t depth
    cdef Net net
    cdef Blocks blocks
    cdef Py_ssize_t n, stride, n_stages
    cdef int64_t joins                  # pairs of a stage and the argument that was filled last
    cdef object held                    # arrays that pointers point to
    cdef double* memory
    cdef Py_ssize_t room
    cdef const int32_t* word_ptr
    cdef const int32_t* word_attribute
    cdef const int32_t* border_ptr
    cdef const int32_t* border_attribute
    # Weights: [node][t], [node][i], [node][j], [slot][i], [slot][j], [node], [node], [slot][2], [fill], [root]
    cdef double* word
    cdef double* begin
    cdef double* end
    cdef double* slot_begin
    cdef double* slot_end
    cdef double* wordless
    cdef double* empty
    cdef double* order
    cdef double* pair
    cdef double* root_pair
    # Values, each followed by its derivatives: E[h][node], nothing[h][slot], base[stage],
    # T[span][k][node], Ck[span][k][slot], C[span][slot], F[stage][span], G, B, run[node][span]
    cdef double* E
    cdef double* nothing
    cdef double* base
    cdef double* T
    cdef double* Ck
    cdef double* C
    cdef double* F
    cdef double* G
    cdef double* B
    cdef double* run
    cdef Py_ssize_t n_weights, n_values
    cdef double shift, total
    cdef object stage_array
    cdef const int32_t* stage_ptr       # of each node: its first stage, 2**arity of them

    def __cinit__(self, Layout layout, Py_ssize_t depth=4):
        self.layout, self.depth = layout, depth
        self.memory, self.room = NULL, 0
        self.blocks.n_attributes, self.blocks.n_borders = layout.n_attributes, layout.n_borders
        self.blocks.word, self.blocks.begin, self.blocks.end = layout.word, layout.begin, layout.end
        self.blocks.slot_begin, self.blocks.slot_end = layout.slot_begin, layout.slot_end
        self.blocks.wordless, self.blocks.empty = layout.wordless, layout.empty
        self.blocks.order, self.blocks.pair = layout.order, layout.pair

    def __dealloc__(self):
        release(self.memory)

    cdef int bind(self, object sentence, Forest forest) except -1:
        """Set sizes and pointers; `sentence` is four int32 arrays: attributes of words, attributes of borders."""
        cdef ndarray word_ptr, word_attribute, border_ptr, border_attribute
        word_ptr, word_attribute, border_ptr, border_attribute = sentence
        self.held = sentence, forest
        self.n = len(sentence[0]) - 1
        self.stride = self.n + 1
        self.word_ptr = <const int32_t*> array_data(word_ptr)
        self.word_attribute = <const int32_t*> array_data(word_attribute)
        self.border_ptr = <const int32_t*> array_data(border_ptr)
        self.border_attribute = <const int32_t*> array_data(border_attribute)
        self.net.n_nodes, self.net.n_slots, self.net.n_roots = forest.n_nodes, forest.n_slots, len(forest.roots)
        self.net.unit = <const int32_t*> array_data(forest.units)
        self.net.kind = <const int32_t*> array_data(forest.kinds)
        self.net.slot_ptr = <const int32_t*> array_data(forest.slot_ptr)
        self.net.slot = <const int32_t*> array_data(forest.slots)
        self.net.fill_ptr = <const int32_t*> array_data(forest.fill_ptr)
        self.net.fill = <const int32_t*> array_data(forest.fill)
        self.net.pair = <const int32_t*> array_data(forest.pairs)
        self.net.root = <const int32_t*> array_data(forest.roots)
        self.net.root_pair = <const int32_t*> array_data(forest.root_pairs)
        arity = np.diff(forest.slot_ptr)
        self.stage_array = np.cumsum([0, *(1 << arity)], dtype=np.int32)
        self.joins = int((arity << arity).sum())
        self.n_stages = self.stage_array[forest.n_nodes]
        self.stage_ptr = <const int32_t*> array_data(self.stage_array)
        self.reserve()
        return 0

    cdef int reserve(self) except -1:
        cdef Py_ssize_t V = self.net.n_nodes, S = self.net.n_slots, n = self.n, P = self.stride * self.stride
        cdef Py_ssize_t H = self.depth + 1, k, need
        cdef Py_ssize_t[10] sizes
        self.n_weights = V * n + 2 * V * (n + 1) + 2 * S * (n + 1) + 2 * V + 2 * S + len_of(self.net) + self.net.n_roots
        sizes[:] = [H * V, H * S, self.n_stages, P * H * V, P * H * S, P * S, P * self.n_stages, P * V, P * V, P * V]
        self.n_values = 0
        for k in range(10):
            self.n_values += sizes[k]
        need = 2 * (self.n_weights + self.n_values)
        if need > MOST_NUMBERS:
            raise ValueError(f"a sentence of {n} words, of {V} units, needs a chart of {8e-9 * need:.1f} GB, more than "
                             f"{8e-9 * MOST_NUMBERS:.1f}")
        if need > self.room:
            release(self.memory)
            self.room = 0
            self.memory = <double*> malloc(need * sizeof(double))
            if self.memory == NULL:
                raise MemoryError(f"a chart of {n} words needs {8e-9 * need:.1f} GB")
            self.room = need
        self.word = self.memory
        self.begin = self.word + V * n
        self.end = self.begin + V * (n + 1)
        self.slot_begin = self.end + V * (n + 1)
        self.slot_end = self.slot_begin + S * (n + 1)
        self.wordless = self.slot_end + S * (n + 1)
        self.empty = self.wordless + V
        self.order = self.empty + V
        self.pair = self.order + 2 * S
        self.root_pair = self.pair + len_of(self.net)
        self.E = self.memory + 2 * self.n_weights
        self.nothing = self.E + sizes[0]
        self.base = self.nothing + sizes[1]
        self.T = self.base + sizes[2]
        self.Ck = self.T + sizes[3]
        self.C = self.Ck + sizes[4]
        self.F = self.C + sizes[5]
        self.G = self.F + sizes[6]
        self.B = self.G + sizes[7]
        self.run = self.B + sizes[8]
        return 0

    # ---- weights --------------------------------------------------------------------------------

    cdef int look_up(self, const double* w) except -1 nogil:
        """Exponentials of the scores of nodes and slots."""
        cdef Net* f = &self.net
        cdef Blocks lay = self.blocks
        cdef Py_ssize_t n = self.n, u, t, s, k
        cdef double top
        for u in range(f.n_nodes):
            for t in range(n):
                self.word[u * n + t] = summed(w + lay.word + f.unit[u] * lay.n_attributes, self.word_attribute,
                                              self.word_ptr[t], self.word_ptr[t + 1])
                if f.kind[u] != f.unit[u]:
                    self.word[u * n + t] += summed(w + lay.word + f.kind[u] * lay.n_attributes, self.word_attribute,
                                                   self.word_ptr[t], self.word_ptr[t + 1])
            for t in range(n + 1):
                self.begin[u * (n + 1) + t] = exp(summed(w + lay.begin + f.kind[u] * lay.n_borders,
                                                         self.border_attribute, self.border_ptr[t],
                                                         self.border_ptr[t + 1]))
                self.end[u * (n + 1) + t] = exp(summed(w + lay.end + f.kind[u] * lay.n_borders, self.border_attribute,
                                                       self.border_ptr[t], self.border_ptr[t + 1]))
            self.wordless[u] = exp(w[lay.wordless + f.kind[u]])
            self.empty[u] = exp(w[lay.empty + f.kind[u]])
            poll(60 * n)
        self.shift = 0.0
        for t in range(n):
            top = -INFINITY
            for u in range(f.n_nodes):
                top = max(top, self.word[u * n + t])
            for u in range(f.n_nodes):
                self.word[u * n + t] = exp(max(self.word[u * n + t] - top, LEAST_SCORE))
            self.shift += top
        for s in range(f.n_slots):
            for t in range(n + 1):
                self.slot_begin[s * (n + 1) + t] = exp(summed(w + lay.slot_begin + f.slot[s] * lay.n_borders,
                                                              self.border_attribute, self.border_ptr[t],
                                                              self.border_ptr[t + 1]))
                self.slot_end[s * (n + 1) + t] = exp(summed(w + lay.slot_end + f.slot[s] * lay.n_borders,
                                                            self.border_attribute, self.border_ptr[t],
                                                            self.border_ptr[t + 1]))
            self.order[2 * s] = exp(w[lay.order + 2 * f.slot[s]])
            self.order[2 * s + 1] = exp(w[lay.order + 2 * f.slot[s] + 1])
            for k in range(f.fill_ptr[s], f.fill_ptr[s + 1]):
                self.pair[k] = exp(w[lay.pair + f.pair[k]]) if f.pair[k] >= 0 else 1.0
            poll(40 * n + 10 * (f.fill_ptr[s + 1] - f.fill_ptr[s]))
        for k in range(f.n_roots):
            self.root_pair[k] = exp(w[lay.pair + f.root_pair[k]]) if f.root_pair[k] >= 0 else 1.0
        return 0

    # ---- values ---------------------------------------------------------------------------------

    cdef int fill(self, bint best) except -1 nogil:
        """All values, of sums or of maxima, and `total`, which is that of the root."""
        cdef Net* f = &self.net
        cdef Py_ssize_t V = f.n_nodes, S = f.n_slots, n = self.n, H = self.depth + 1, h, u, s, k, i, length
        cdef double x
        clear(self.E, self.n_values)
        for h in range(H):
            for u in range(V):
                x = self.empty[u]
                if f.slot_ptr[u] < f.slot_ptr[u + 1] and h == 0:
                    x = 0.0
                for s in range(f.slot_ptr[u], f.slot_ptr[u + 1]):
                    x *= self.nothing[(h - 1) * S + s] if h > 0 else 0.0
                self.E[h * V + u] = x
            for s in range(S):
                x = 0.0
                for k in range(f.fill_ptr[s], f.fill_ptr[s + 1]):
                    x = plus(x, self.pair[k] * self.E[h * V + f.fill[k]], best)
                self.nothing[h * S + s] = x
        for u in range(V):
            self.fill_base(u)
        for length in range(1, n + 1):
            for i in range(n - length + 1):
                poll(2 * (len_of(f[0]) + V * 4) * H + self.joins * length)
                if best:
                    self.fill_span(i, i + length, True)
                else:
                    self.fill_span(i, i + length, False)
        self.total = 0.0
        if n > 0:
            for k in range(f.n_roots):
                for h in range(H):
                    x = self.root_pair[k] * self.T[(n * H + h) * V + f.root[k]]
                    self.total = plus(self.total, x, best)
        return 0

    cdef inline void fill_base(self, Py_ssize_t u) noexcept nogil:
        cdef Py_ssize_t first = self.net.slot_ptr[u], arity = self.net.slot_ptr[u + 1] - first, mask, a
        cdef double* base = self.base + self.stage_ptr[u]
        cdef const double* nothing = self.nothing + self.depth * self.net.n_slots + first
        base[0] = 1.0
        for mask in range(1, 1 << arity):
            a = lowest(mask)
            base[mask] = base[mask & (mask - 1)] * nothing[a]

    cdef inline void fill_span(self, Py_ssize_t i, Py_ssize_t j, bint best) noexcept nogil:
        cdef Net* f = &self.net
        cdef Py_ssize_t V = f.n_nodes, S = f.n_slots, n = self.n, N = self.stride, H = self.depth + 1
        cdef Py_ssize_t P = N * N, at = i * N + j, u, s, k, h, a, arity, full, mask, first
        cdef double x, y
        cdef double* T = self.T + at * H * V
        cdef double* Ck = self.Ck + at * H * S
        cdef double* C = self.C + at * S
        cdef double* F
        cdef double* base
        for u in range(V):
            first, arity = f.slot_ptr[u], f.slot_ptr[u + 1] - f.slot_ptr[u]
            full = (1 << arity) - 1
            F, base = self.F + self.stage_ptr[u] * P, self.base + self.stage_ptr[u]
            x = self.word[u * n + j - 1]
            self.run[u * P + at] = x if j == i + 1 else x * self.run[u * P + at - 1]
            y = base[full] * self.run[u * P + at]
            if arity > 0:
                x = 0.0
                if j > i + 1:
                    x = self.joined(u, full, i, j, best)
                    x = plus(x, self.word[u * n + j - 1] * plus(F[full * P + at - 1], self.G[u * P + at - 1], best),
                             best)
                F[full * P + at] = x
                if j > i + 1:
                    x = plus(x, self.word[u * n + i] * plus(self.B[u * P + at + N], self.G[u * P + at + N], best), best)
                self.B[u * P + at] = x
                y = plus(y, x, best)
            T[u] = y * self.begin[u * N + i] * self.end[u * N + j]
        for h in range(H):
            for s in range(S):
                x = 0.0
                for k in range(f.fill_ptr[s], f.fill_ptr[s + 1]):
                    x = plus(x, self.pair[k] * T[h * V + f.fill[k]], best)
                x *= self.slot_begin[s * N + i] * self.slot_end[s * N + j]
                Ck[h * S + s] = x
                C[s] = plus(C[s], x, best)
            if h + 1 < H:
                for u in range(V):
                    x = 0.0
                    first, arity = f.slot_ptr[u], f.slot_ptr[u + 1] - f.slot_ptr[u]
                    full, base = (1 << arity) - 1, self.base + self.stage_ptr[u]
                    for a in range(arity):
                        x = plus(x, base[full & ~(1 << a)] * Ck[h * S + first + a], best)
                    T[(h + 1) * V + u] = x * self.wordless[u] * self.begin[u * N + i] * self.end[u * N + j]
        for u in range(V):
            first, arity = f.slot_ptr[u], f.slot_ptr[u + 1] - f.slot_ptr[u]
            if arity == 0:
                continue
            full, base, F = (1 << arity) - 1, self.base + self.stage_ptr[u], self.F + self.stage_ptr[u] * P
            x = 0.0
            for a in range(arity):
                x = plus(x, base[full & ~(1 << a)] * C[first + a], best)
            self.G[u * P + at] = x
            for mask in range(1, full):
                x = 0.0
                for a in range(arity):
                    if mask >> a & 1:
                        x = plus(x, base[mask & ~(1 << a)] * C[first + a], best)
                if j > i + 1:
                    x = plus(x, self.joined(u, mask, i, j, best), best)
                    x = plus(x, self.word[u * n + j - 1] * F[mask * P + at - 1], best)
                F[mask * P + at] = x

    cdef inline double joined(self, Py_ssize_t u, Py_ssize_t mask, Py_ssize_t i, Py_ssize_t j,
                              bint best) noexcept nogil:
        """A child at the end, after others."""
        cdef Py_ssize_t N = self.stride, P = N * N, first = self.net.slot_ptr[u], S = self.net.n_slots, a, k, rest
        cdef double x = 0.0, y
        cdef const double* F
        for a in range(self.net.slot_ptr[u + 1] - first):
            rest = mask & ~(1 << a)
            if rest == mask or rest == 0:
                continue
            F = self.F + (self.stage_ptr[u] + rest) * P + i * N
            y = 0.0
            for k in range(i + 1, j):
                y = plus(y, F[k] * self.C[(k * N + j) * S + first + a], best)
            x = plus(x, y * self.order[2 * (first + a) + (rest >> a > 0)], best)
        return x

    # ---- derivatives ----------------------------------------------------------------------------

    cdef int spread(self) except -1 nogil:
        """Derivatives of `total` with respect to all weights; they follow the weights in memory."""
        cdef Net* f = &self.net
        cdef Py_ssize_t V = f.n_nodes, S = f.n_slots, n = self.n, H = self.depth + 1, h, u, s, k, length, i, a, mask
        cdef Py_ssize_t first, arity, W = self.n_weights, D = self.n_values, top = n * H * V
        cdef double x
        cdef double* base
        clear(self.word + W, W)
        clear(self.E + D, D)
        for k in range(f.n_roots):
            for h in range(H):
                (self.T + D)[top + h * V + f.root[k]] += self.root_pair[k]
                (self.root_pair + W)[k] += self.T[top + h * V + f.root[k]]
        for length in range(n, 0, -1):
            for i in range(n - length + 1):
                poll(6 * (len_of(f[0]) + V * 4) * H + 3 * self.joins * length)
                self.spread_span(i, i + length)
        for u in range(V):
            first, arity, base = f.slot_ptr[u], f.slot_ptr[u + 1] - f.slot_ptr[u], self.base + self.stage_ptr[u]
            for mask in range(1, 1 << arity):
                x = (base + D)[mask]
                if x != 0.0:
                    for a in range(arity):
                        if mask >> a & 1:
                            (self.nothing + D)[self.depth * S + first + a] += x * base[mask & ~(1 << a)]
        for h in range(H - 1, -1, -1):
            for s in range(S):
                x = (self.nothing + D)[h * S + s]
                if x == 0.0:
                    continue
                for k in range(f.fill_ptr[s], f.fill_ptr[s + 1]):
                    (self.pair + W)[k] += x * self.E[h * V + f.fill[k]]
                    (self.E + D)[h * V + f.fill[k]] += x * self.pair[k]
            for u in range(V):
                x = (self.E + D)[h * V + u]
                if x == 0.0 or self.E[h * V + u] == 0.0:
                    continue
                (self.empty + W)[u] += x * self.E[h * V + u] / self.empty[u]
                for s in range(f.slot_ptr[u], f.slot_ptr[u + 1]):
                    (self.nothing + D)[(h - 1) * S + s] += x * self.E[h * V + u] / self.nothing[(h - 1) * S + s]
        return 0

    cdef void spread_span(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        cdef Net* f = &self.net
        cdef Py_ssize_t V = f.n_nodes, S = f.n_slots, n = self.n, N = self.stride, H = self.depth + 1
        cdef Py_ssize_t W = self.n_weights, D = self.n_values
        cdef Py_ssize_t P = N * N, at = i * N + j, u, s, k, h, a, arity, full, mask, first
        cdef double x, y, z
        cdef double* T = self.T + at * H * V
        cdef double* Ck = self.Ck + at * H * S
        cdef double* C = self.C + at * S
        cdef double* F
        cdef double* base
        for u in range(V):
            first, arity = f.slot_ptr[u], f.slot_ptr[u + 1] - f.slot_ptr[u]
            if arity == 0:
                continue
            full, base, F = (1 << arity) - 1, self.base + self.stage_ptr[u], self.F + self.stage_ptr[u] * P
            for mask in range(1, full):
                x = (F + D)[mask * P + at]
                if x == 0.0:
                    continue
                for a in range(arity):
                    if mask >> a & 1:
                        (C + D)[first + a] += x * base[mask & ~(1 << a)]
                        (base + D)[mask & ~(1 << a)] += x * C[first + a]
                if j > i + 1:
                    self.unjoin(u, mask, i, j, x)
                    (self.word + W)[u * n + j - 1] += x * F[mask * P + at - 1]
                    (F + D)[mask * P + at - 1] += x * self.word[u * n + j - 1]
            x = (self.G + D)[u * P + at]
            if x != 0.0:
                for a in range(arity):
                    (C + D)[first + a] += x * base[full & ~(1 << a)]
                    (base + D)[full & ~(1 << a)] += x * C[first + a]
        for h in range(H - 1, -1, -1):
            for s in range(S):
                (Ck + D)[h * S + s] += (C + D)[s]
            if h + 1 < H:
                for u in range(V):
                    x = (T + D)[(h + 1) * V + u]
                    y = T[(h + 1) * V + u]
                    if x == 0.0 or y == 0.0:
                        continue
                    (self.wordless + W)[u] += x * y / self.wordless[u]
                    (self.begin + W)[u * N + i] += x * y / self.begin[u * N + i]
                    (self.end + W)[u * N + j] += x * y / self.end[u * N + j]
                    x *= self.wordless[u] * self.begin[u * N + i] * self.end[u * N + j]
                    first, arity = f.slot_ptr[u], f.slot_ptr[u + 1] - f.slot_ptr[u]
                    full, base = (1 << arity) - 1, self.base + self.stage_ptr[u]
                    for a in range(arity):
                        (Ck + D)[h * S + first + a] += x * base[full & ~(1 << a)]
                        (base + D)[full & ~(1 << a)] += x * Ck[h * S + first + a]
            for s in range(S):
                x, y = (Ck + D)[h * S + s], Ck[h * S + s]
                if x == 0.0 or y == 0.0:
                    continue
                (self.slot_begin + W)[s * N + i] += x * y / self.slot_begin[s * N + i]
                (self.slot_end + W)[s * N + j] += x * y / self.slot_end[s * N + j]
                x *= self.slot_begin[s * N + i] * self.slot_end[s * N + j]
                for k in range(f.fill_ptr[s], f.fill_ptr[s + 1]):
                    (self.pair + W)[k] += x * T[h * V + f.fill[k]]
                    (T + D)[h * V + f.fill[k]] += x * self.pair[k]
        for u in range(V):
            first, arity = f.slot_ptr[u], f.slot_ptr[u + 1] - f.slot_ptr[u]
            full, base, F = (1 << arity) - 1, self.base + self.stage_ptr[u], self.F + self.stage_ptr[u] * P
            x, y = (T + D)[u], T[u]
            if x != 0.0:
                if y != 0.0:
                    (self.begin + W)[u * N + i] += x * y / self.begin[u * N + i]
                    (self.end + W)[u * N + j] += x * y / self.end[u * N + j]
                x *= self.begin[u * N + i] * self.end[u * N + j]
                (base + D)[full] += x * self.run[u * P + at]
                (self.run + D)[u * P + at] += x * base[full]
            z = (self.run + D)[u * P + at]
            if z != 0.0:
                if j > i + 1:
                    (self.word + W)[u * n + j - 1] += z * self.run[u * P + at - 1]
                    (self.run + D)[u * P + at - 1] += z * self.word[u * n + j - 1]
                else:
                    (self.word + W)[u * n + i] += z
            if arity == 0:
                continue
            x += (self.B + D)[u * P + at]
            if x != 0.0 and j > i + 1:
                (self.B + D)[u * P + at + N] += x * self.word[u * n + i]
                (self.G + D)[u * P + at + N] += x * self.word[u * n + i]
                (self.word + W)[u * n + i] += x * (self.B[u * P + at + N] + self.G[u * P + at + N])
            x += (F + D)[full * P + at]
            if x != 0.0 and j > i + 1:
                self.unjoin(u, full, i, j, x)
                (F + D)[full * P + at - 1] += x * self.word[u * n + j - 1]
                (self.G + D)[u * P + at - 1] += x * self.word[u * n + j - 1]
                (self.word + W)[u * n + j - 1] += x * (F[full * P + at - 1] + self.G[u * P + at - 1])

    cdef inline void unjoin(self, Py_ssize_t u, Py_ssize_t mask, Py_ssize_t i, Py_ssize_t j, double x) noexcept nogil:
        cdef Py_ssize_t N = self.stride, P = N * N, first = self.net.slot_ptr[u], S = self.net.n_slots, a, k, rest
        cdef Py_ssize_t D = self.n_values, o
        cdef double y, order
        cdef double* F
        cdef double* C
        for a in range(self.net.slot_ptr[u + 1] - first):
            rest = mask & ~(1 << a)
            if rest == mask or rest == 0:
                continue
            F = self.F + (self.stage_ptr[u] + rest) * P + i * N
            o = 2 * (first + a) + (rest >> a > 0)
            order, y = x * self.order[o], 0.0
            for k in range(i + 1, j):
                C = self.C + (k * N + j) * S + first + a
                y += F[k] * C[0]
                (F + D)[k] += order * C[0]
                (C + D)[0] += order * F[k]
            (self.order + self.n_weights)[o] += x * y

    cdef int scatter(self, double coef, double* gradient, int32_t* touched, int64_t* n_touched,
                     unsigned char* mark) except -1 nogil:
        """gradient += coef * expectation of the joint feature; the features that it has go to `touched` once."""
        cdef Net* f = &self.net
        cdef Blocks lay = self.blocks
        cdef Py_ssize_t n = self.n, N = n + 1, u, t, s, k, o, W = self.n_weights
        cdef double c = coef / self.total
        for u in range(f.n_nodes):
            for t in range(n):
                spread_to(c * self.word[u * n + t] * (self.word + W)[u * n + t],
                          lay.word + f.unit[u] * lay.n_attributes, self.word_attribute, self.word_ptr[t],
                          self.word_ptr[t + 1], gradient, touched, n_touched, mark)
                if f.kind[u] != f.unit[u]:
                    spread_to(c * self.word[u * n + t] * (self.word + W)[u * n + t],
                              lay.word + f.kind[u] * lay.n_attributes, self.word_attribute, self.word_ptr[t],
                              self.word_ptr[t + 1], gradient, touched, n_touched, mark)
            for t in range(N):
                spread_to(c * self.begin[u * N + t] * (self.begin + W)[u * N + t],
                          lay.begin + f.kind[u] * lay.n_borders, self.border_attribute, self.border_ptr[t],
                          self.border_ptr[t + 1], gradient, touched, n_touched, mark)
                spread_to(c * self.end[u * N + t] * (self.end + W)[u * N + t],
                          lay.end + f.kind[u] * lay.n_borders, self.border_attribute, self.border_ptr[t],
                          self.border_ptr[t + 1], gradient, touched, n_touched, mark)
            add_to(c * self.wordless[u] * (self.wordless + W)[u], lay.wordless + f.kind[u], gradient, touched,
                   n_touched, mark)
            add_to(c * self.empty[u] * (self.empty + W)[u], lay.empty + f.kind[u], gradient, touched, n_touched, mark)
            poll(60 * n)
        for s in range(f.n_slots):
            for t in range(N):
                spread_to(c * self.slot_begin[s * N + t] * (self.slot_begin + W)[s * N + t],
                          lay.slot_begin + f.slot[s] * lay.n_borders, self.border_attribute, self.border_ptr[t],
                          self.border_ptr[t + 1], gradient, touched, n_touched, mark)
                spread_to(c * self.slot_end[s * N + t] * (self.slot_end + W)[s * N + t],
                          lay.slot_end + f.slot[s] * lay.n_borders, self.border_attribute, self.border_ptr[t],
                          self.border_ptr[t + 1], gradient, touched, n_touched, mark)
            for o in range(2):
                add_to(c * self.order[2 * s + o] * (self.order + W)[2 * s + o], lay.order + 2 * f.slot[s] + o,
                       gradient, touched, n_touched, mark)
            for k in range(f.fill_ptr[s], f.fill_ptr[s + 1]):
                if f.pair[k] >= 0:
                    add_to(c * self.pair[k] * (self.pair + W)[k], lay.pair + f.pair[k], gradient, touched, n_touched,
                           mark)
            poll(40 * n + 10 * (f.fill_ptr[s + 1] - f.fill_ptr[s]))
        for k in range(f.n_roots):
            if f.root_pair[k] >= 0:
                add_to(c * self.root_pair[k] * (self.root_pair + W)[k], lay.pair + f.root_pair[k], gradient, touched,
                       n_touched, mark)
        return 0

    # ---- verbs ----------------------------------------------------------------------------------

    def log_sum(self, object sentence, Forest forest, const double[::1] w, *, bint best=False):
        """The log of the sum over all derivations of exp of their score; with `best`, the highest score."""
        self.bind(sentence, forest)
        with nogil:
            self.look_up(&w[0])
            self.fill(best)
        return self.log_total()

    cdef double log_total(self):
        return self.shift + log(self.total) if self.total > 0.0 and isfinite(self.total) else -INFINITY

    def expect(self, object sentence, Forest forest, const double[::1] w):
        """``(log_sum, expectation)``: the expectation of the joint feature, None where there is no derivation."""
        value = self.log_sum(sentence, forest, w)
        if value == -INFINITY:
            return value, None
        expectation = np.zeros(self.layout.n_features)
        cdef double[::1] out = expectation
        with nogil:
            self.spread()
            self.scatter(1.0, &out[0], NULL, NULL, NULL)
        return value, expectation

    def learn(self, object sentence, Forest known, Forest free, Learner learner, double rate, double weight=1.0):
        """One step of AdaGrad on weight * log p(known), log p(known) = log_sum(known) - log_sum(free); returns that.

        Minus infinity, and no step, where `known` has no derivation.
        """
        cdef double first, second
        learner.drop()      # what Ctrl-C has left
        first = self.log_sum(sentence, known, learner.weights)
        if first == -INFINITY:
            return first
        cdef double[::1] gradient = learner.gradient
        cdef int32_t[::1] touched = learner.touched
        cdef unsigned char[::1] mark = learner.mark
        with nogil:
            self.spread()
            self.scatter(weight, &gradient[0], &touched[0], &learner.n_touched, &mark[0])
        second = self.log_sum(sentence, free, learner.weights)
        if second == -INFINITY:
            learner.drop()
            return second
        with nogil:
            self.spread()
            self.scatter(-weight, &gradient[0], &touched[0], &learner.n_touched, &mark[0])
        learner.step(rate)
        return min(first - second, 0.0)

    # ---- derivations ----------------------------------------------------------------------------

    def edges(self, int kind, Py_ssize_t u, Py_ssize_t x, Py_ssize_t i, Py_ssize_t j):
        """The ways to make an item of the last chart filled: a list of ``(value, items, words)``.

        Values are those of the whole item made so; `words` are the places of own words of the node. Kinds of items:
        ROOT; NODE (node u, x units without words on top); SLOT (slot u over [i, j), x: any number of them, -1, or
        exactly x); STAGE (the slots x of node u); LEFT (B of node u); BARE (G of node u); NOTHING (slot u, height x).
        """
        cdef Net* f = &self.net
        cdef Py_ssize_t V = f.n_nodes, S = f.n_slots, n = self.n, N = self.stride, H = self.depth + 1, P = N * N
        cdef Py_ssize_t at = i * N + j, k, h, a, b, first, arity, full, rest, low, high
        cdef double value, ends
        cdef list out = []
        if kind == ROOT:
            for k in range(f.n_roots):
                for h in range(H):
                    value = self.root_pair[k] * self.T[(n * H + h) * V + f.root[k]]
                    if value > 0.0:
                        out.append((value, ((NODE, f.root[k], h, 0, n),), ()))
            return out
        if kind == SLOT:
            ends = self.slot_begin[u * N + i] * self.slot_end[u * N + j]
            low = max(x, 0)
            high = H if x < 0 else x + 1
            for k in range(f.fill_ptr[u], f.fill_ptr[u + 1]):
                for h in range(low, high):
                    value = ends * self.pair[k] * self.T[(at * H + h) * V + f.fill[k]]
                    if value > 0.0:
                        out.append((value, ((NODE, f.fill[k], h, i, j),), ()))
            return out
        if kind == NOTHING:
            for k in range(f.fill_ptr[u], f.fill_ptr[u + 1]):
                b = f.fill[k]
                value = self.pair[k] * self.E[x * V + b]
                if value > 0.0:
                    items = tuple([(NOTHING, s, x - 1, 0, 0) for s in range(f.slot_ptr[b], f.slot_ptr[b + 1])])
                    out.append((value, items, (-1 - b,)))
            return out
        first, arity = f.slot_ptr[u], f.slot_ptr[u + 1] - f.slot_ptr[u]
        full = (1 << arity) - 1
        cdef double* base = self.base + self.stage_ptr[u]
        cdef double* F = self.F + self.stage_ptr[u] * P
        if kind == NODE:
            ends = self.begin[u * N + i] * self.end[u * N + j]
            if x == 0:
                value = ends * base[full] * self.run[u * P + at]
                if value > 0.0:
                    out.append((value, self.nothings(u, full), tuple(range(i, j))))
                if arity > 0 and self.B[u * P + at] > 0.0:
                    out.append((ends * self.B[u * P + at], ((LEFT, u, 0, i, j),), ()))
            else:
                for a in range(arity):
                    rest = full & ~(1 << a)
                    value = self.wordless[u] * ends * base[rest] * self.Ck[(at * H + x - 1) * S + first + a]
                    if value > 0.0:
                        out.append((value, ((SLOT, first + a, x - 1, i, j), *self.nothings(u, rest)), ()))
        elif kind == LEFT:
            if F[full * P + at] > 0.0:
                out.append((F[full * P + at], ((STAGE, u, full, i, j),), ()))
            if j > i + 1:
                value = self.word[u * n + i]
                if value * self.B[u * P + at + N] > 0.0:
                    out.append((value * self.B[u * P + at + N], ((LEFT, u, 0, i + 1, j),), (i,)))
                if value * self.G[u * P + at + N] > 0.0:
                    out.append((value * self.G[u * P + at + N], ((BARE, u, 0, i + 1, j),), (i,)))
        elif kind == BARE or x < full:
            for a in range(arity):
                rest = (full if kind == BARE else x) & ~(1 << a)
                value = base[rest] * self.C[at * S + first + a]
                if value > 0.0 and (kind == BARE or x >> a & 1):
                    out.append((value, ((SLOT, first + a, -1, i, j), *self.nothings(u, rest)), ()))
        if kind == STAGE:
            for a in range(arity):
                rest = x & ~(1 << a)
                if rest == x or rest == 0:
                    continue
                for k in range(i + 1, j):
                    value = (F[rest * P + i * N + k] * self.C[(k * N + j) * S + first + a]
                             * self.order[2 * (first + a) + (rest >> a > 0)])
                    if value > 0.0:
                        out.append((value, ((STAGE, u, rest, i, k), (SLOT, first + a, -1, k, j)), ()))
            if j > i + 1:
                value = self.word[u * n + j - 1]
                if value * F[x * P + at - 1] > 0.0:
                    out.append((value * F[x * P + at - 1], ((STAGE, u, x, i, j - 1),), (j - 1,)))
                if x == full and value * self.G[u * P + at - 1] > 0.0:
                    out.append((value * self.G[u * P + at - 1], ((BARE, u, 0, i, j - 1),), (j - 1,)))
        return out

    cdef tuple nothings(self, Py_ssize_t u, Py_ssize_t mask):
        cdef Py_ssize_t a, first = self.net.slot_ptr[u]
        return tuple([(NOTHING, first + a, self.depth, 0, 0)
                      for a in range(self.net.slot_ptr[u + 1] - first) if mask >> a & 1])


cpdef enum Kind:
    ROOT
    NODE
    SLOT
    STAGE
    LEFT
    BARE
    NOTHING


cdef class Learner:
    """Weights under AdaGrad with an L2 penalty and the average of all iterates.

    Parameters
    ----------
    weights : array of float64
    penalty : float
        Of each step: ``penalty / 2 |w - w0|^2`` over the features that it touches, w0 being the weights at the start.
    """

    cdef readonly object weights, gradient, touched, mark, squares, sum, start
    cdef double penalty
    cdef int64_t n_touched
    cdef public int64_t n_steps

    def __init__(self, object weights, double penalty):
        n = len(weights)
        self.weights, self.start, self.penalty = weights, weights.copy(), penalty
        self.gradient, self.squares, self.sum = np.zeros(n), np.zeros(n), np.zeros(n)
        self.touched, self.mark = np.empty(n, dtype=np.int32), np.zeros(n, dtype=np.uint8)
        self.n_touched = self.n_steps = 0

    cdef void drop(self):
        cdef double[::1] g = self.gradient
        cdef int32_t[::1] touched = self.touched
        cdef unsigned char[::1] mark = self.mark
        cdef int64_t k
        for k in range(self.n_touched):
            g[touched[k]] = 0.0
            mark[touched[k]] = 0
        self.n_touched = 0

    cdef void step(self, double rate):
        cdef double[::1] w = self.weights, g = self.gradient, s = self.squares, total = self.sum, start = self.start
        cdef int32_t[::1] touched = self.touched
        cdef int64_t k, f
        cdef double d
        for k in range(self.n_touched):
            f = touched[k]
            d = g[f] - self.penalty * (w[f] - start[f])
            s[f] += d * d
            if s[f] > 0.0:
                d *= rate / (1e-3 + s[f] ** 0.5)
                w[f] += d
                total[f] += self.n_steps * d
        self.n_steps += 1
        self.drop()

    def restart_average(self):
        """Forget the iterates so far."""
        self.sum[:] = 0.0
        self.n_steps = 0

    @property
    def average(self):
        """The mean of the weights after each step."""
        return self.weights - self.sum / max(self.n_steps, 1)


cdef int clear(double* x, Py_ssize_t n) except -1 nogil:
    """Set numbers to 0, which takes a while in memory that is new."""
    cdef Py_ssize_t k
    for k in range(0, n, 65536):
        memset(x + k, 0, min(65536, n - k) * sizeof(double))
        poll(65536)
    return 0


cdef inline double plus(double x, double y, bint best) noexcept nogil:
    if best:
        return x if x > y else y
    return x + y


cdef inline int64_t len_of(Net f) noexcept nogil:
    return f.fill_ptr[f.n_slots]


cdef inline Py_ssize_t lowest(Py_ssize_t mask) noexcept nogil:
    cdef Py_ssize_t a = 0
    while not mask >> a & 1:
        a += 1
    return a


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
