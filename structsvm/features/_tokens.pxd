from libc.stdint cimport int32_t, int64_t


# Sort one token's entries by id and add up repetitions, in place. `values` NULL: all ones. Returns
# the entries left, -1 without memory, or -2 if a repetition needs values.
cdef int64_t merge_token(int32_t *ids, float *values, int64_t n, bint once) noexcept nogil

# The largest of n numbers, or -1.
cdef int64_t largest(const int32_t *x, int64_t n) noexcept nogil

cdef object not_finite(int64_t sequence, int64_t token, object name, object value)


cdef class TokenBuffer:
    cdef int32_t *ids
    cdef float *values              # NULL: all ones so far
    cdef int64_t *indptr
    cdef int64_t *offsets
    cdef int64_t ids_capacity, values_capacity, indptr_capacity, offsets_capacity
    cdef int64_t n_entries
    cdef readonly int64_t n_tokens, n_sequences

    cdef int need_values(self) noexcept nogil
    cdef int push(self, int32_t id_, float value) noexcept nogil
    cdef int end_token(self) noexcept nogil
    cdef int end_sequence(self) except -1
    cdef int64_t canonical(self, const int32_t *target, int64_t begin, int64_t end, int64_t total,
                           int64_t *indptr, int32_t *indices, float *values) noexcept nogil
