"""Greedy label sequences: the decoder, and the per-token margin problem (5.12) of the thesis.

A cut of a token is the one word (label): dPsi = x (e_gold - e_label), where x holds the token's features
and the true labels before it.
"""

from libc.stdint cimport int32_t, int64_t

import numpy as np

cimport numpy as cnp

from structsvm._problem cimport PENALTY_HARD, RESCALE_NONE, Cut, Problem, cut_terms

cnp.import_array()

cdef extern from "kernels.h" nogil:
    ctypedef struct kernels:
        void (*greedy_score)(const float* W, int64_t stride, int64_t K, int64_t order, int64_t first,
                             const int32_t* index, const float* values, int64_t n, const int32_t* labels,
                             int64_t t, const float* init, int32_t* rows, float* out) noexcept nogil
        int64_t (*greedy_decode)(const float* W, int64_t stride, int64_t K, int64_t order, int64_t first,
                                 const int64_t* indptr, const int32_t* indices, const float* values, int64_t T,
                                 const float* init, int64_t init_step, const float* mask, int32_t* rows,
                                 float* out, float* scores, int32_t* labels) noexcept nogil
    const kernels* kernels_best()

cdef const kernels* KERNELS = kernels_best()

cdef fused real:
    float
    double


cdef class GreedyDecoder:
    """Decoder for a set of sequences: tokens, structure, and the buffers of one thread."""

    cdef readonly Py_ssize_t K, stride, order, n_emission, n_rows
    cdef readonly object tokens, structure
    cdef const int64_t[::1] offsets
    cdef const int64_t* indptr
    cdef const int32_t* indices
    cdef const float* values
    cdef object keep
    cdef float[::1] row
    cdef float[::1] mask
    cdef float[::1] score
    cdef int32_t[::1] rows

    def __init__(self, structure, tokens):
        self.structure, self.tokens = structure, tokens
        self.K, self.order, self.stride = structure.n_labels, structure.order, structure.stride
        self.n_emission, self.n_rows = structure.n_token_features, structure.n_rows
        structure.check_tokens(tokens)
        self.offsets = tokens.offsets
        self.keep = (tokens.indptr, tokens.indices, tokens.values)
        self.indptr = <const int64_t*>cnp.PyArray_DATA(tokens.indptr)
        self.indices = <const int32_t*>cnp.PyArray_DATA(tokens.indices)
        self.values = NULL if tokens.values is None else <const float*>cnp.PyArray_DATA(tokens.values)
        self.row = structure.padding_row
        self.mask = structure.mask_rows
        self.score = np.empty(self.stride, dtype=np.float32)
        self.rows = np.empty(max(self.order, 1), dtype=np.int32)

    def decode(self, w, Py_ssize_t start=0, stop=None, allowed=None, scores=None):
        """Labels of sequences start .. stop - 1, as one int32 array of all their tokens.

        `allowed` is None or a list with one boolean array (length, n_labels), or None, per sequence;
        `scores`, if given, is a float32 array (tokens decoded, stride) that receives every label's score.
        """
        cdef Py_ssize_t i, t, n = self.offsets.shape[0] - 1, end = n if stop is None else stop
        cdef Py_ssize_t failed = -1, token = -1
        cdef cnp.ndarray weights = self.structure.check_weights(w)
        cdef const float* pointer = <const float*>cnp.PyArray_DATA(weights)
        cdef const float* mask = &self.mask[0] if self.mask.shape[0] > 0 else NULL
        cdef const float[:, ::1] init
        cdef float[:, ::1] out_scores = scores
        if not 0 <= start <= end <= n:
            raise IndexError(f"sequences {start}:{end} are out of range for {n}")
        if scores is not None and np.shape(scores) != (self.offsets[end] - self.offsets[start], self.stride):
            raise ValueError(f"scores has shape {np.shape(scores)}, expected "
                             f"{(self.offsets[end] - self.offsets[start], self.stride)}")
        cdef int32_t[::1] out = np.empty(self.offsets[end] - self.offsets[start], dtype=np.int32)
        if allowed is None:
            with nogil:
                for i in range(start, end):
                    t = self.offsets[i] - self.offsets[start]
                    token = self.sequence(i, pointer, mask, &self.row[0], 0,
                                          NULL if out_scores is None else &out_scores[t, 0], &out[t])
                    if token >= 0:
                        failed = i
                        break
        else:
            for i in range(start, end):
                t = self.offsets[i] - self.offsets[start]
                if allowed[i - start] is None:
                    init = np.asarray(self.row)[None, :]
                else:
                    init = self.structure.allowed_rows(
                        allowed[i - start], self.offsets[i + 1] - self.offsets[i], i)
                token = self.sequence(i, pointer, mask, &init[0, 0], self.stride if init.shape[0] > 1 else 0,
                                      NULL if out_scores is None else &out_scores[t, 0], &out[t])
                if token >= 0:
                    failed = i
                    break
        if failed >= 0:
            raise ValueError(f"sequence {failed}: at token {token} no label is left that the masks allow")
        return np.asarray(out)

    cdef Py_ssize_t sequence(self, Py_ssize_t i, const float* w, const float* mask, const float* init,
                             Py_ssize_t init_step, float* scores, int32_t* out) noexcept nogil:
        cdef Py_ssize_t t = self.offsets[i]
        return KERNELS.greedy_decode(
            w, self.stride, self.K, self.order, self.n_emission, self.indptr + t, self.indices, self.values,
            self.offsets[i + 1] - t, init, init_step, mask, &self.rows[0], &self.score[0], scores, out)


cdef class GreedyProblem(Problem):
    """Tokens with their true labels and true histories, one example each, grouped by sequence."""

    cdef readonly GreedyDecoder chain
    cdef readonly object labels
    cdef const int32_t[::1] gold
    cdef const double[::1] costs
    cdef int32_t[::1] place         # token -> its position in its sequence
    cdef int32_t word[1]
    cdef Py_ssize_t at_hand         # the token whose scores stand in chain.score, or -1

    def __init__(self, structure, tokens, labels, *, rescaling="margin", penalty="linear"):
        self.chain = GreedyDecoder(structure, tokens)
        super().__init__(tokens.n_tokens, structure.n_features, rescaling=rescaling, penalty=penalty,
                         weight_dtype=np.float32, groups=np.ascontiguousarray(tokens.offsets, dtype=np.int64))
        self.labels = self.gold = structure.check_labels(tokens, labels)
        self.costs = np.ones(structure.n_labels) if structure.label_costs is None else structure.label_costs
        offsets = np.asarray(tokens.offsets)
        starts = np.repeat(offsets[:len(tokens)], np.diff(offsets))
        self.place = (np.arange(tokens.n_tokens) - starts).astype(np.int32)
        self.at_hand = -1

    cdef void fill(self, Py_ssize_t i, const float* w) noexcept nogil:
        cdef Py_ssize_t a = self.chain.indptr[i]
        KERNELS.greedy_score(
            w, self.chain.stride, self.chain.K, self.chain.order, self.chain.n_emission,
            self.chain.indices + a, NULL if self.chain.values == NULL else self.chain.values + a,
            self.chain.indptr[i + 1] - a, &self.gold[i] - self.place[i], self.place[i],
            &self.chain.row[0], &self.chain.rows[0], &self.chain.score[0])
        self.at_hand = i

    cdef int c_separate(self, Py_ssize_t i, const void* w, Cut* cut, double* violation) except -1 nogil:
        """The best wrong label y; margin rescaling maximises D + s_y, slack rescaling D (1 + s_y - s_gold)."""
        cdef Py_ssize_t gold = self.gold[i], y, best = -1
        cdef const float* score = &self.chain.score[0]
        self.fill(i, <const float*>w)
        for y in range(self.chain.K):
            if y != gold and (best < 0 or score[y] > score[best]):
                best = y
        cut.n_words = 0
        cut.words = self.word
        cut.alpha = cut.b = violation[0] = 0.0
        cut.scale = 1.0
        if best < 0:
            return 0
        if self.rescaling == RESCALE_NONE and (
                score[best] < score[gold] or (score[best] == score[gold] and gold < best)):
            return 0
        cut_terms(self.rescaling, self.penalty, self.costs[gold], cut)
        violation[0] = cut.b - cut.scale * (<double>score[gold] - score[best])
        if violation[0] <= 0.0 and self.penalty != PENALTY_HARD and self.rescaling != RESCALE_NONE:
            violation[0] = cut.b = 0.0
            return 0
        self.word[0] = <int32_t>best
        cut.n_words = 1
        return 0

    cdef int c_dots(self, Py_ssize_t i, const Cut* cuts, Py_ssize_t n, const void* w, bint fresh,
                    double* out) except -1 nogil:
        cdef Py_ssize_t k, gold = self.gold[i]
        if not (fresh and self.at_hand == i):
            self.fill(i, <const float*>w)
        for k in range(n):
            out[k] = cuts[k].scale * (<double>self.chain.score[gold] - self.chain.score[cuts[k].words[0]])
        return 0

    cdef void add_to(self, Py_ssize_t i, const Cut* cut, double coef, real* w) noexcept nogil:
        cdef Py_ssize_t e, s, t = self.place[i], K = self.chain.K, stride = self.chain.stride, before
        cdef Py_ssize_t gold = self.gold[i], y = cut.words[0]
        cdef real amount = <real>(coef * cut.scale), x = amount
        if cut.n_words == 0:
            return
        for e in range(self.chain.indptr[i], self.chain.indptr[i + 1]):
            if self.chain.values != NULL:
                x = amount * self.chain.values[e]
            w[self.chain.indices[e] * stride + gold] += x
            w[self.chain.indices[e] * stride + y] -= x
        w += self.chain.n_emission * stride
        for s in range(1, self.chain.order + 1):
            before = self.gold[i - s] if t >= s else K
            w[((s - 1) * (K + 1) + before) * stride + gold] += amount
            w[((s - 1) * (K + 1) + before) * stride + y] -= amount

    cdef int c_add(self, Py_ssize_t i, const Cut* cut, double coef, void* w) except -1 nogil:
        self.add_to(i, cut, coef, <float*>w)
        return 0

    cdef int c_accumulate(self, Py_ssize_t i, const Cut* cut, double coef, double* w) except -1 nogil:
        self.add_to(i, cut, coef, w)
        return 0

    cdef double c_inner(self, Py_ssize_t i, const Cut* a, const Cut* b) except? -1 nogil:
        """|x|^2 <e_gold - e_a, e_gold - e_b>: the label part is 2 for equal labels, else 1."""
        cdef Py_ssize_t e
        cdef double norm = <double>self.chain.order
        if self.chain.values == NULL:
            norm += self.chain.indptr[i + 1] - self.chain.indptr[i]
        else:
            for e in range(self.chain.indptr[i], self.chain.indptr[i + 1]):
                norm += <double>self.chain.values[e] * self.chain.values[e]
        return a.scale * b.scale * norm * (2.0 if a.words[0] == b.words[0] else 1.0)

    cdef bint c_valid(self, Py_ssize_t i, const Cut* cut) noexcept nogil:
        return cut.n_words == 1 and 0 <= cut.words[0] < self.chain.K and cut.words[0] != self.gold[i]

    cdef double c_cost(self, Py_ssize_t i) noexcept nogil:
        return 2.0
