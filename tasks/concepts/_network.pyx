"""The network that labels words with concepts of a world, its search, and its training (Bordes 2010, section C.4).

A labelling y of a sentence x in a world u is worth the sum over the words i that have a label of

    <g_i, h(y_i)>,    g_i = Wg (D(x_{i-v}) .. D(x_{i+v}), C(y_{i-v}) .. C(y_{i+v})) + bg,    h(c) = Wh C(c) + bh,

equation (C.4): D and C are tables of vectors of words and of names, C(c) those of a concept's name and of what each
relation of the world says of it, side by side (C.5); words without a label, and i itself, add nothing to g. Labels are
given one by one, each time the one that raises the worth most (C.3). To label i with c raises it by

    <g_i, h(c)> + sum_l <Wg[i - l] C(c), h(y_l)> = <Wh' g_i + r_i, C(c)> + <g_i, bh>,    r_i = sum_l Wg[i - l]' h(y_l),

where l are the words labelled so far that have i in their windows, and Wg[k] is the part of Wg for the label at
distance k. So g, Wh' g and r are kept up to date, and all concepts are scored by products with the table of names.

Training: once the best label is a wrong one, all right labels of words that it competed with should be worth more
(C.6); a step against the sum of these differences follows, and the sentence ends there (early update). Sentences may
come with their labels in any order (section C.7): then the right labels are those of a search among the labels of the
bag alone, where it gives each of them as often as the bag has it, and else those of words by themselves (`aligned`).
"""

from libc.math cimport INFINITY, isfinite
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

import numpy as np

from structsvm._arrays cimport array_data
from structsvm._random cimport random_seed
from structsvm.dual._state cimport State
from structsvm.execution._processor cimport kernel_set
from structsvm.execution._stop cimport poll

from structsvm.dual._weights import fitting

cdef extern from "layers.h" nogil:
    ctypedef struct layers_kernels:
        void (*add)(const float* W, int64_t stride, const float* x, int64_t m, float* out) noexcept nogil
        void (*back)(const float* W, int64_t stride, const float* y, int64_t m, float* out) noexcept nogil
        void (*move)(float* W, int64_t stride, const float* x, int64_t m, const float* y,
                     float step) noexcept nogil
    const layers_kernels* layers_kernels_of(int set, int (*poll)(int64_t work) except -1 nogil)

cdef const layers_kernels* KERNELS = layers_kernels_of(kernel_set(), poll)

cdef enum Strategy:
    ORDER_FREE      # the word whose best label is worth most
    LEFT_RIGHT      # the next word
    INDEPENDENT     # each word by itself: no labels in windows

STRATEGIES = {"order_free": ORDER_FREE, "left_right": LEFT_RIGHT, "independent": INDEPENDENT}

# Rows of the table of words that belong to none: what is not known, whose vector is 0, and what lies beyond a sentence.
UNKNOWN, BEYOND = 0, 1
# The row of the table of names for what a relation does not say.
NOTHING = 0


def rounded(n):
    """A number of floats, rounded up to whole vectors."""
    return (n + 7) // 8 * 8


cdef class Scenes:
    """Sentences in their worlds, with their labels if these are known.

    Parameters
    ----------
    words : int32 array of shape (n_words,)
        Rows of the table of words.
    offsets : int64 array of shape (n_sentences + 1,)
        Sentence s is words ``offsets[s]:offsets[s + 1]``.
    worlds : int32 array of shape (n_worlds, n_labels, 1 + n_relations)
        Rows of the table of names: of each label, and of what each relation says of it; a label that the world does not
        have begins with -1.
    world_of : int64 array of shape (n_sentences,)
    targets : int32 array of shape (n_words,), optional
        Label ids.
    ordered : uint8 array of shape (n_sentences,), optional
        Whether a sentence's labels are known to be those of its words in their order; else they are a bag, in an order
        that the network may change.
    """

    cdef readonly Py_ssize_t n_sentences
    cdef readonly Py_ssize_t longest
    cdef const int32_t[::1] words
    cdef const int64_t[::1] offsets
    cdef const int32_t[:, :, ::1] worlds
    cdef const int64_t[::1] world_of
    cdef const int32_t[::1] targets
    cdef const uint8_t[::1] ordered
    cdef readonly list arrays           # arrays that distinguish these sentences from others

    def __init__(self, words, offsets, worlds, world_of, targets=None, ordered=None):
        self.arrays = [a for a in (words, offsets, worlds, world_of, targets, ordered) if a is not None]
        self.words, self.offsets, self.worlds, self.world_of = words, offsets, worlds, world_of
        self.targets, self.ordered = targets, ordered
        self.n_sentences = len(offsets) - 1
        self.longest = int(np.diff(offsets).max(initial=0))


cdef class Network:
    """The tables and layers, and a search for the labels of one sentence at a time.

    Parameters
    ----------
    layers : dict of float32 arrays, in whole vectors
        ``words`` (n_words, d'), ``names`` (n_names, d'), ``g_words`` (w, d, N'), ``g_names`` (w, m d, N'),
        ``g_bias`` (N',), ``h`` (m d + 1, N'), for windows of w words, vectors of d numbers, N hidden ones, and m - 1
        relations; the last row of h is its bias, and d' and N' are d and N, rounded up. Read, and written by training.
    dimension : int
        d.
    strategy : {"order_free", "left_right", "independent"}
    """

    cdef object layers, memory
    cdef Strategy strategy
    cdef Py_ssize_t d, D, S, v, m, e, n_names
    cdef float* words
    cdef float* names
    cdef float* g_words
    cdef float* g_names
    cdef float* g_bias
    cdef float* h_layer
    # the sentence at hand
    cdef Scenes scenes
    cdef Py_ssize_t T, K, most
    cdef const int32_t* x
    cdef const int32_t* world
    cdef float* g           # (T, S)
    cdef float* q           # (T, e + 1): h' g
    cdef float* r           # (T, e + 1): what labelled words add to it; the last is 0
    cdef float* proj        # (T, m, n_names): products of q + r with the names, by what these stand for
    cdef float* part        # (D,)
    cdef float* value       # (T,): of the best label
    cdef int32_t[::1] best      # (T,)
    cdef int32_t[::1] label     # (T,), -1: none
    # the concepts of its labels, at most 2 T + 1
    cdef Py_ssize_t n_slots
    cdef int32_t[::1] slot      # (K,), -1: none
    cdef int32_t[::1] held      # (2 T + 1,): the label of each slot
    cdef float* full        # (2 T + 1, e + 1): C(c), 1
    cdef float* h           # (2 T + 1, S)
    cdef float* d_full
    cdef float* d_h
    cdef float* d_g         # (T, S)
    cdef float* total       # (T, e): sum of coef C(c)
    cdef float* d_word      # (T + 2 v, D)
    cdef const int32_t* bag     # (T,): the only labels to give; NULL: any
    cdef int32_t[::1] found     # (T,): those of the bag in the network's order
    cdef int32_t[::1] left      # (T,): those of the bag that were not yet found, -1 for others
    cdef double[::1] coef       # pairs of a word and a label, with their coefficients in the step
    cdef int32_t[::1] pair_word
    cdef int32_t[::1] pair_label

    def __init__(self, layers, Py_ssize_t dimension, *, strategy="order_free"):
        self.layers, self.d, self.strategy = layers, dimension, STRATEGIES[strategy]
        self.D, self.S = layers["names"].shape[1], layers["h"].shape[1]
        self.v, self.e = layers["g_words"].shape[0] // 2, layers["h"].shape[0] - 1
        self.m, self.n_names = self.e // dimension, len(layers["names"])
        self.words, self.names = <float*>array_data(layers["words"]), <float*>array_data(layers["names"])
        self.g_words, self.g_names = <float*>array_data(layers["g_words"]), <float*>array_data(layers["g_names"])
        self.g_bias, self.h_layer = <float*>array_data(layers["g_bias"]), <float*>array_data(layers["h"])

    cdef int enter(self, Scenes scenes) except -1:
        """Make room for the longest of sentences."""
        cdef float* at
        cdef Py_ssize_t T = max(scenes.longest, 1), slots = 2 * T + 1
        sizes = (T * self.S, T * (self.e + 1), T * (self.e + 1), T * self.m * self.n_names, self.D, T,
                 slots * (self.e + 1), slots * self.S, slots * (self.e + 1), slots * self.S, T * self.S, T * self.e,
                 (T + 2 * self.v) * self.D)
        self.memory = np.zeros(sum(sizes), dtype=np.float32)
        at = <float*>array_data(self.memory)
        self.g = at
        self.q = self.g + <Py_ssize_t>sizes[0]
        self.r = self.q + <Py_ssize_t>sizes[1]
        self.proj = self.r + <Py_ssize_t>sizes[2]
        self.part = self.proj + <Py_ssize_t>sizes[3]
        self.value = self.part + <Py_ssize_t>sizes[4]
        self.full = self.value + <Py_ssize_t>sizes[5]
        self.h = self.full + <Py_ssize_t>sizes[6]
        self.d_full = self.h + <Py_ssize_t>sizes[7]
        self.d_h = self.d_full + <Py_ssize_t>sizes[8]
        self.d_g = self.d_h + <Py_ssize_t>sizes[9]
        self.total = self.d_g + <Py_ssize_t>sizes[10]
        self.d_word = self.total + <Py_ssize_t>sizes[11]
        self.scenes, self.K, self.n_slots = scenes, scenes.worlds.shape[1], 0
        self.best, self.label, self.found, self.left = (np.empty(T, dtype=np.int32) for _ in range(4))
        self.slot, self.held = np.full(self.K, -1, dtype=np.int32), np.empty(slots, dtype=np.int32)
        self.coef = np.empty(T + 1)
        self.pair_word, self.pair_label = (np.empty(T + 1, dtype=np.int32) for _ in range(2))
        return 0

    def find(self, Scenes scenes not None):
        """Return ``(labels, order)``: int32 arrays (n_words,), the label id of each word, and when it was given."""
        cdef Py_ssize_t s
        cdef int32_t[::1] labels, order
        found = np.zeros((2, len(scenes.words) + 1), dtype=np.int32)    # the last sentence may be empty
        labels, order = found
        self.enter(scenes)
        with nogil:
            for s in range(scenes.n_sentences):
                self.search(s, NULL, 0.0, &labels[scenes.offsets[s]], &order[scenes.offsets[s]])
        return found[0, :len(scenes.words)], found[1, :len(scenes.words)]

    # ---- search ---------------------------------------------------------------------------------

    cdef int search(self, Py_ssize_t s, const int32_t* wanted, double step, int32_t* labels,
                    int32_t* order) except -1 nogil:
        """Label sentence s; where labels are wanted, learn from the first wrong one and end there.

        Returns the number of labels given, or minus it, less 1, where a step was taken.
        """
        cdef Py_ssize_t t, j, i, n_wrong = 0
        self.begin(s)
        for t in range(self.T):
            j = t
            if self.strategy == ORDER_FREE:
                j = -1
                for i in range(self.T):
                    if self.label[i] < 0 and (j < 0 or self.value[i] > self.value[j]):
                        j = i
            if not isfinite(self.value[j]):
                with gil:
                    raise ValueError("the network has overflowed: set a smaller learning_rate")
            if wanted != NULL and wanted[j] != self.best[j]:
                self.learn(wanted, j, step)
                n_wrong += 1
                if self.strategy != INDEPENDENT:
                    return -<int>(t + 2)
            if labels != NULL:
                labels[j] = self.best[j]
            if order != NULL:
                order[j] = <int32_t>t
            self.put(j, self.best[j])
        return -<int>(self.T + 1) if n_wrong > 0 else <int>self.T

    cdef int begin(self, Py_ssize_t s) except -1 nogil:
        """Fill g and what follows from it for a sentence without labels."""
        cdef Py_ssize_t i, k, first = self.scenes.offsets[s]
        self.T = self.scenes.offsets[s + 1] - first
        self.x = &self.scenes.words[first] if self.T > 0 else NULL
        self.world = &self.scenes.worlds[self.scenes.world_of[s], 0, 0]
        self.leave()
        for i in range(self.T):
            self.label[i] = -1
            memcpy(self.g + i * self.S, self.g_bias, self.S * sizeof(float))
            memset(self.r + i * (self.e + 1), 0, (self.e + 1) * sizeof(float))
            for k in range(2 * self.v + 1):
                KERNELS.add(self.g_words + k * self.d * self.S, self.S, self.word(i + k - self.v), self.d,
                            self.g + i * self.S)
            self.rate(i)
        poll(self.T * ((2 * self.v + 1) * self.d * self.S + self.T * 3 * self.e * self.S) // 8)
        return 0

    cdef float* word(self, Py_ssize_t p) noexcept nogil:
        return self.words + (<Py_ssize_t>self.x[p] if 0 <= p < self.T else <Py_ssize_t>1) * self.D

    cdef void rate(self, Py_ssize_t i) noexcept nogil:
        """The worth of all labels for word i, and the best of those that it may be given."""
        cdef Py_ssize_t b, k, t
        cdef float* q = self.q + i * (self.e + 1)
        cdef float* r = self.r + i * (self.e + 1)
        cdef float* proj = self.proj + i * self.m * self.n_names
        cdef float value, highest = -INFINITY
        memset(q, 0, (self.e + 1) * sizeof(float))
        KERNELS.back(self.h_layer, self.S, self.g + i * self.S, self.e + 1, q)
        memset(proj, 0, self.m * self.n_names * sizeof(float))
        memset(self.part, 0, self.D * sizeof(float))
        for b in range(self.m):
            for k in range(self.d):
                self.part[k] = q[b * self.d + k] + r[b * self.d + k]
            KERNELS.back(self.names, self.D, self.part, self.n_names, proj + b * self.n_names)
        self.best[i] = 0
        for t in range(self.K if self.bag == NULL else self.T):
            k = t if self.bag == NULL else self.bag[t]
            if self.world[k * self.m] >= 0:
                value = self.worth(i, k)
                if value > highest or not isfinite(value):
                    highest = value
                    self.best[i] = <int32_t>k
                    if not isfinite(value):
                        break
        self.value[i] = highest

    cdef inline float worth(self, Py_ssize_t i, Py_ssize_t k) noexcept nogil:
        cdef Py_ssize_t b
        cdef const float* proj = self.proj + i * self.m * self.n_names
        cdef const int32_t* names = self.world + k * self.m
        cdef float value = self.q[i * (self.e + 1) + self.e]
        for b in range(self.m):
            value += proj[b * self.n_names + names[b]]
        return value

    cdef Py_ssize_t stand(self, Py_ssize_t k) noexcept nogil:
        """The slot of label k, whose C(k) and h(k) are at hand from then on."""
        cdef Py_ssize_t b, s = self.slot[k]
        cdef float* full
        if s >= 0:
            return s
        s = self.n_slots
        self.n_slots += 1
        self.slot[k], self.held[s] = <int32_t>s, <int32_t>k
        full = self.full + s * (self.e + 1)
        for b in range(self.m):
            memcpy(full + b * self.d, self.names + self.world[k * self.m + b] * self.D, self.d * sizeof(float))
        full[self.e] = 1.0
        memset(self.h + s * self.S, 0, self.S * sizeof(float))
        KERNELS.add(self.h_layer, self.S, full, self.e + 1, self.h + s * self.S)
        return s

    cdef void put(self, Py_ssize_t j, Py_ssize_t k) noexcept nogil:
        """Give word j label k, and tell the words around it."""
        cdef Py_ssize_t i, s
        self.label[j] = <int32_t>k
        if self.strategy == INDEPENDENT:
            return
        s = self.stand(k)
        for i in range(max(0, j - self.v), min(self.T, j + self.v + 1)):
            if self.label[i] < 0:
                KERNELS.add(self.g_names + (j - i + self.v) * self.e * self.S, self.S,
                            self.full + s * (self.e + 1), self.e, self.g + i * self.S)
                KERNELS.back(self.g_names + (i - j + self.v) * self.e * self.S, self.S, self.h + s * self.S,
                             self.e, self.r + i * (self.e + 1))
                self.rate(i)

    cdef void leave(self) noexcept nogil:
        """Forget the sentence before."""
        cdef Py_ssize_t s
        for s in range(self.n_slots):
            self.slot[self.held[s]] = -1
        self.n_slots = 0

    # ---- learning -------------------------------------------------------------------------------

    cdef const int32_t* complete(self, Py_ssize_t s) except NULL nogil:
        """The right labels of sentence s; of a bag those that the network gives, confined to it, if these are the bag.
        """
        cdef Py_ssize_t i, t
        cdef const int32_t* targets = &self.scenes.targets[0] + self.scenes.offsets[s]
        if self.scenes.ordered[s]:
            return targets
        self.bag = targets
        try:
            self.search(s, NULL, 0.0, &self.found[0], NULL)
        finally:
            self.bag = NULL
        memcpy(&self.left[0], targets, self.T * sizeof(int32_t))
        for i in range(self.T):
            for t in range(self.T):
                if self.left[t] == self.found[i]:
                    self.left[t] = -1
                    break
            else:
                return targets
        return &self.found[0]

    cdef int learn(self, const int32_t* wanted, Py_ssize_t j, double step) except -1 nogil:
        """A step by which the right labels of all words that competed gain on the best one of word j."""
        cdef Py_ssize_t n = 0, i, z, first = 0, last = self.T
        if self.strategy != ORDER_FREE:
            first, last = j, j + 1
        for i in range(first, last):
            if self.label[i] < 0:
                self.pair_word[n], self.pair_label[n] = <int32_t>i, wanted[i]
                n += 1
        for z in range(n):
            self.coef[z] = 1.0 / n
        self.pair_word[n], self.pair_label[n], self.coef[n] = <int32_t>j, self.best[j], -1.0
        self.step(n + 1, <float>step)
        return 0

    cdef void step(self, Py_ssize_t n, float step) noexcept nogil:
        """Move along the gradient of the sum over pairs of coef times the worth of their label for their word."""
        cdef Py_ssize_t z, i, k, s, a, b, p, o, S = self.S, e = self.e, v = self.v, T = self.T, wide = e + 1
        cdef float c
        cdef float* row
        for z in range(n):
            self.stand(self.pair_label[z])
        memset(self.d_g, 0, T * S * sizeof(float))
        memset(self.total, 0, T * e * sizeof(float))
        memset(self.d_word, 0, (T + 2 * v) * self.D * sizeof(float))
        memset(self.d_full, 0, self.n_slots * wide * sizeof(float))
        memset(self.d_h, 0, self.n_slots * S * sizeof(float))
        for z in range(n):
            i, s, c = self.pair_word[z], self.slot[self.pair_label[z]], <float>self.coef[z]
            KERNELS.move(self.d_g + i * S, S, &c, 1, self.h + s * S, 1.0)
            KERNELS.move(self.d_h + s * S, S, &c, 1, self.g + i * S, 1.0)
            for a in range(e):
                self.total[i * e + a] += c * self.full[s * wide + a]
                self.d_full[s * wide + a] += c * self.r[i * wide + a]
        # First all that reads the layers, then what moves them.
        for i in range(T):
            if not self.is_touched(i, n):
                continue
            for k in range(2 * v + 1):
                KERNELS.back(self.g_words + k * self.d * S, S, self.d_g + i * S, self.d,
                             self.d_word + (i + k) * self.D)
            if self.strategy != INDEPENDENT:
                for o in range(max(0, i - v), min(T, i + v + 1)):
                    if self.label[o] >= 0:
                        s = self.slot[self.label[o]]
                        KERNELS.back(self.g_names + (o - i + v) * e * S, S, self.d_g + i * S, e,
                                     self.d_full + s * wide)
                        KERNELS.add(self.g_names + (i - o + v) * e * S, S, self.total + i * e, e,
                                    self.d_h + s * S)
        for s in range(self.n_slots):
            KERNELS.back(self.h_layer, S, self.d_h + s * S, e, self.d_full + s * wide)
        for i in range(T):
            if not self.is_touched(i, n):
                continue
            c = 1.0
            KERNELS.move(self.g_bias, S, &c, 1, self.d_g + i * S, step)
            for k in range(2 * v + 1):
                KERNELS.move(self.g_words + k * self.d * S, S, self.word(i + k - v), self.d, self.d_g + i * S,
                             step)
            if self.strategy != INDEPENDENT:
                for o in range(max(0, i - v), min(T, i + v + 1)):
                    if self.label[o] >= 0:
                        s = self.slot[self.label[o]]
                        KERNELS.move(self.g_names + (o - i + v) * e * S, S, self.full + s * wide, e,
                                     self.d_g + i * S, step)
                        KERNELS.move(self.g_names + (i - o + v) * e * S, S, self.total + i * e, e,
                                     self.h + s * S, step)
        for s in range(self.n_slots):
            KERNELS.move(self.h_layer, S, self.full + s * wide, wide, self.d_h + s * S, step)
        for p in range(-v, T + v):
            row = self.word(p)
            if row != self.words:  # the rows of unknown words stay 0
                for a in range(self.d):
                    row[a] += step * self.d_word[(p + v) * self.D + a]
        for s in range(self.n_slots):
            for b in range(self.m):
                row = self.names + self.world[self.held[s] * self.m + b] * self.D
                for a in range(self.d):
                    row[a] += step * self.d_full[s * wide + b * self.d + a]

    cdef bint is_touched(self, Py_ssize_t i, Py_ssize_t n) noexcept nogil:
        cdef Py_ssize_t z
        for z in range(n):
            if self.pair_word[z] == i:
                return True
        return False


cdef class ConceptState(State):
    """A network in training.

    Parameters
    ----------
    problem : ConceptProblem
    layers : dict of float32 arrays
        See `Network`; they are copied.
    weight : float64 array of shape (n_sentences,)
        Factor on each sentence's step.
    dimension, strategy : see `Network`
    learning_rate : float
    seed : int
    """

    kind = "concepts"
    steps = frozenset({"subgradient_step"})

    cdef readonly object layers
    cdef readonly Network network
    cdef readonly int64_t n_updates
    cdef const double[::1] weight
    cdef double rate

    def __init__(self, scenes, layers, const double[::1] weight, *, Py_ssize_t dimension, strategy,
                 double learning_rate, uint64_t seed=0):
        self.n_samples, self.weight, self.rate = scenes.n_sentences, weight, learning_rate
        self.layers = {name: np.array(array) for name, array in layers.items()}
        self.network = Network(self.layers, dimension, strategy=strategy)
        self.network.enter(scenes)
        random_seed(&self.random, seed)

    cdef int subgradient_step(self, Py_ssize_t i) except -1 nogil:
        """Label sentence i, and learn from the first wrong label."""
        cdef int n
        cdef const int32_t* wanted
        if self.weight[i] > 0.0:
            wanted = self.network.complete(i)
            n = self.network.search(i, wanted, self.rate * self.weight[i], NULL, NULL)
            self.n_updates += n < 0
            self.n_argmax += n if n >= 0 else -n - 1
        self.n_visits += 1
        return 0

    def visit(self, Py_ssize_t i):
        """`subgradient_step`, for tests."""
        if not 0 <= i < self.n_samples:
            raise IndexError(f"no sentence {i}")
        self.subgradient_step(i)

    # ---- stored state ---------------------------------------------------------------------------

    def get_state(self):
        """Return the state as a dict of arrays (see `set_state`)."""
        return {f"layers.{name}": layer.copy() for name, layer in self.layers.items()} | {
            "random": self.random_words(),
            "counters": np.array([self.n_argmax, self.n_visits, self.n_updates], dtype=np.int64),
        }

    def set_state(self, state, *, adapt=False):
        """Restore the arrays returned by `get_state`; `adapt` makes no difference.

        Resuming from it gives bit-identical results. Raises ValueError if they do not fit; the state is unchanged then.
        """
        found = {name: fitting(state, f"layers.{name}", layer) for name, layer in self.layers.items()}
        for name, layer in found.items():
            self.layers[name][:] = layer
        self.restart(state)

    def restart(self, state):
        """Restore the random generator and the counters."""
        self.set_random(state["random"])
        self.n_argmax, self.n_visits, self.n_updates = state["counters"]
