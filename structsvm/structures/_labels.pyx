"""What every decoder of label sequences holds, and the loop over sequences.

The tokens stay where they are (numpy arrays that `tokens` keeps alive); a decoder adds the buffers of one
thread. Several threads take several decoders over the same tokens.
"""

from libc.stdint cimport int32_t, int64_t

import numpy as np

from structsvm._arrays cimport array_data, ndarray
from structsvm.execution._stop cimport poll


cdef class LabelDecoder:
    """Base of the decoders; `structure` is the oracle's `LabelChain`."""

    def __init__(self, structure, tokens):
        structure.check_tokens(tokens)
        self.structure, self.tokens = structure, tokens
        self.K, self.stride, self.order = structure.n_labels, structure.stride, structure.order
        self.n_emission = structure.n_token_features
        self.offsets = tokens.offsets
        self.indptr = <const int64_t*>array_data(tokens.indptr)
        self.indices = <const int32_t*>array_data(tokens.indices)
        self.values = NULL if tokens.values is None else <const float*>array_data(tokens.values)
        self.n_bigrams, self.first_bigram = structure.n_bigrams, structure.first_bigram_row
        self.pair_indptr, self.pair_indices, self.pair_values = NULL, NULL, NULL
        if self.n_bigrams:
            self.pair_indptr = <const int64_t*>array_data(tokens.bigrams.indptr)
            self.pair_indices = <const int32_t*>array_data(tokens.bigrams.indices)
            if tokens.bigrams.values is not None:
                self.pair_values = <const float*>array_data(tokens.bigrams.values)
        self.row = structure.padding_row
        self.mask = structure.mask_rows

    cdef int prepare(self, const float* w) except -1 nogil:
        return 0

    cdef Py_ssize_t label(self, Py_ssize_t i, const float* w, const float* init, Py_ssize_t init_step,
                          int32_t* out) except -2 nogil:
        return 0

    cdef Py_ssize_t length(self, Py_ssize_t i) except -1:
        if not 0 <= i < self.offsets.shape[0] - 1:
            raise IndexError(f"sequence {i} is out of range for {self.offsets.shape[0] - 1}")
        return self.offsets[i + 1] - self.offsets[i]

    def decode(self, w, Py_ssize_t start=0, stop=None, allowed=None, scores=None):
        """Label sequences start .. stop - 1.

        Parameters
        ----------
        w : ndarray of shape (n_features,), float32
        start, stop : int
        allowed : list, optional
            For each of these sequences None, or a boolean array (length, n_labels) of labels that may stand.
        scores : ndarray of shape (n_tokens, stride), float32, optional
            Of all tokens, to which those of their features are added; -inf in the padding. Not with `allowed`.

        Returns
        -------
        labels : ndarray of int32
            Those of all their tokens, one sequence after the other.

        Raises
        ------
        ValueError
            If the masks leave a sequence without labelling, or scores overflow.
        """
        cdef Py_ssize_t n = self.offsets.shape[0] - 1, end = n if stop is None else stop, i = start, token = -1
        cdef ndarray weights = self.structure.check_weights(w)
        cdef const float* pointer = <const float*>array_data(weights)
        cdef const float[:, ::1] init
        cdef Py_ssize_t init_step = 0
        cdef const float* rows = &self.row[0]
        if not 0 <= start <= end <= n:
            raise IndexError(f"sequences {start}:{end} are out of range for {n}")
        cdef ndarray labels = np.empty(self.offsets[end] - self.offsets[start], dtype=np.int32)
        cdef int32_t* out = <int32_t*>array_data(labels)
        if scores is not None and len(scores):
            if allowed is not None or scores.shape != (self.offsets[n], self.stride):
                raise ValueError(f"scores have shape {scores.shape}, expected {(self.offsets[n], self.stride)} without "
                                 "masks")
            init, init_step = scores, self.stride
            rows = &init[0, 0]
        with nogil:
            self.prepare(pointer)
        if allowed is None:
            with nogil:
                while i < end and token < 0:
                    token = self.label(i, pointer, rows + init_step * self.offsets[i], init_step,
                                       out + self.offsets[i] - self.offsets[start])
                    i += 1
                    poll((self.offsets[i] - self.offsets[i - 1]) * self.stride)
        while i < end and token < 0:
            if allowed[i - start] is None:
                init, init_step = np.asarray(self.row)[None, :], 0
            else:
                init, init_step = self.structure.allowed_rows(allowed[i - start], self.length(i), i), self.stride
            with nogil:
                token = self.label(i, pointer, &init[0, 0], init_step, out + self.offsets[i] - self.offsets[start])
            i += 1
        if token >= 0:
            raise ValueError(f"sequence {i - 1}: the masks leave no labelling from token {token} on, or its scores "
                             "overflow")
        return labels
