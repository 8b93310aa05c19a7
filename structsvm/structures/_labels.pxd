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
    cdef const int64_t* pair_indptr         # of the tokens' bigrams; NULL: there are none
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
