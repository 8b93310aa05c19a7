from libc.stdint cimport uint8_t

from structsvm._problem cimport Problem
from structsvm._typedefs cimport int32_t, int64_t


cdef class LabelDecoder:
    cdef readonly Py_ssize_t K              # labels
    cdef readonly Py_ssize_t stride         # floats in a row of weights or scores
    cdef readonly Py_ssize_t order          # labels before a token that its score sees
    cdef readonly Py_ssize_t n_emission     # features of a token: the first rows of the weights
    cdef readonly object structure
    cdef readonly object tokens
    cdef const int64_t[::1] offsets
    cdef const int64_t* indptr
    cdef const int32_t* indices
    cdef const float* values                # NULL: all ones
    cdef readonly Py_ssize_t n_bigrams      # attributes that are conjoined with pairs of labels
    cdef readonly Py_ssize_t first_bigram   # the first row of their weights, K rows each, by the label before
    cdef const int64_t* pair_indptr         # bigrams of the tokens; NULL: there are none
    cdef const int32_t* pair_indices
    cdef const float* pair_values           # NULL: all ones
    cdef const float[::1] row               # 0, and -inf in the padding: where every label may stand
    cdef const float[::1] mask              # rows of 0 and -inf: by the label before, first, last; or empty

    # Look at new weights, before any sequence is labelled with them.
    cdef int prepare(self, const float* w) except -1 nogil

    # Label sequence i into `out`. `init` has a row of 0 and -inf for each token, or one for all of them
    # (init_step 0). Returns the first token at which no label may stand (-1: none).
    cdef Py_ssize_t label(self, Py_ssize_t i, const float* w, const float* init, Py_ssize_t init_step,
                          int32_t* out) except -2 nogil

    cdef Py_ssize_t length(self, Py_ssize_t i) except -1


# The attributes of a sequence whose weights stand behind those of labels and edges, in runs: those of a run share
# `size` moments, and each has `size` weights.
cdef struct Conjoined:
    Py_ssize_t n
    Py_ssize_t size
    const int64_t* indptr
    const int32_t* indices
    const float* values             # NULL: all ones


cdef class LabelLattice(LabelDecoder):
    cdef readonly Py_ssize_t longest
    cdef readonly Py_ssize_t n_edges    # rows of weights between those of tokens and those of conjoined attributes
    cdef float[::1] E                   # the lattice: the scores of the labels at the tokens of a sequence
    cdef Py_ssize_t at_hand             # the sequence whose lattice, without masks, is in E; or -1
    cdef int32_t[::1] path

    # Fill the lattice of sequence i; `init` as for `label`.
    cdef int fill(self, Py_ssize_t i, const float* w, const float* init, Py_ssize_t init_step) except -1 nogil
    cdef void fill_token(self, Py_ssize_t i, Py_ssize_t t, const float* w) noexcept nogil

    # The best labelling of sequence i by a lattice E, and its score; -inf where there is none.
    cdef double best(self, Py_ssize_t i, const float* E, int32_t* path) except? -1.0 nogil

    cdef Conjoined conjoined(self, Py_ssize_t i) noexcept nogil

    # The moments of sequence i: rows of the probabilities of its labels, of the expected counts of edges, and of what
    # goes with its conjoined attributes.
    cdef Py_ssize_t n_moment_rows(self, Py_ssize_t i) noexcept nogil

    # Sums over all labellings by a lattice E; moments, which may be NULL, less those of `gold`, if that is not NULL.
    # `out`: the log-sum, the loss of `gold`, the entropy.
    cdef int sum_up(self, Py_ssize_t i, const float* E, const int32_t* gold, float* moments,
                    double* out) except -1 nogil


cdef class LabelProblem(Problem):
    cdef readonly LabelLattice chain
    cdef readonly object labels         # None: yet to be completed
    cdef readonly object known
    cdef const int32_t[::1] gold
    cdef const int32_t[::1] which       # label of each token; where `known` is given, its label or set
    cdef const int32_t[::1] judge       # row of the losses of each token's labels
    cdef const uint8_t[::1] is_open     # sequences that are known in part and not completed; or empty
    cdef float[::1] loss_rows
    cdef bint zero_one                  # the loss is 1 of whatever is wrong
    cdef float[::1] allowed             # rows of 0 and -inf, or of logarithms of weights, by `which`
    cdef bint is_weighted
    cdef float[::1] lattice             # with losses added, or in which only what agrees may stand
    cdef float[::1] agreeing            # the moments of what agrees; made when first asked for
    cdef int32_t[::1] words
    cdef int32_t[::1] slot              # scratch of `spread_moments`; empty before the first call
    cdef int32_t[::1] features
    cdef float[::1] rows
    cdef Py_ssize_t n_spread
    cdef const int32_t* row_features    # the features of the rows
    cdef int32_t[::1] places            # the rows of the tokens' entries, once their sequence was spread; or empty
    cdef int32_t[::1] scratch
    cdef int32_t[::1] distinct          # the features of the rows of each sequence, where its entries stand
    cdef int32_t[::1] n_distinct        # their number; -1: the sequence was not spread yet
    cdef int32_t[::1] pair_slot         # the same for conjoined attributes
    cdef int32_t[::1] pair_features
    cdef float[::1] pair_rows
    cdef Py_ssize_t n_pairs_spread

    # Write the most violated labelling of sequence i to the path of the chain, whose lattice is filled.
    cdef int worst(self, Py_ssize_t i) except -1 nogil

    cdef bint has_open(self, Py_ssize_t i) noexcept nogil
    cdef void add_rows(self, Py_ssize_t i, const float* rows, const int32_t* row_of) noexcept nogil
    cdef double mean_weight(self, Py_ssize_t i) noexcept nogil
    cdef int make_room(self, Py_ssize_t pair_size) except -1
    cdef bint is_short(self, Py_ssize_t T, Py_ssize_t n_rows) noexcept nogil
    cdef int spread_moments(self, Py_ssize_t i, const float* m) except -1 nogil
