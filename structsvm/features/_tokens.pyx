"""Sparse tokens in canonical order, for :mod:`structsvm.features.attributes` and :mod:`structsvm.features.matrices`."""

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport isfinite
from libc.stdint cimport INT32_MAX, INT64_MAX, int32_t, int64_t, uint64_t
from libc.stdlib cimport free, malloc, qsort

import numpy as np

from structsvm._arrays cimport array_data, ndarray
from structsvm.features._strings cimport SIGNALS, copied, reserve


cdef int _compare_ids(const void *a, const void *b) noexcept nogil:
    cdef int32_t x = (<const int32_t *>a)[0], y = (<const int32_t *>b)[0]
    return (x > y) - (x < y)


cdef struct Pair:
    int32_t id
    float value


cdef int64_t merge_token(int32_t *ids, float *values, int64_t n, bint once) noexcept nogil:
    """Sort one token's entries by id and add up repetitions, or count them `once`, in place.

    `values` NULL: all ones. Returns the entries left, -1 without memory, or -2 if a
    repetition needs values.
    """
    cdef int64_t i, j, m
    cdef int32_t x
    cdef float v
    cdef Pair *pairs
    cdef bint ascending = True
    for i in range(1, n):
        if ids[i - 1] >= ids[i]:
            ascending = False
            break
    if ascending:
        return n
    if n <= 48:
        for i in range(i, n):
            x = ids[i]
            j = i
            if values == NULL:
                while j > 0 and ids[j - 1] > x:
                    ids[j] = ids[j - 1]
                    j -= 1
            else:
                v = values[i]
                while j > 0 and ids[j - 1] > x:
                    ids[j] = ids[j - 1]
                    values[j] = values[j - 1]
                    j -= 1
                values[j] = v
            ids[j] = x
    elif values == NULL:
        qsort(ids, n, sizeof(int32_t), _compare_ids)
    else:
        pairs = <Pair *>malloc(n * sizeof(Pair))
        if pairs == NULL:
            return -1
        for i in range(n):
            pairs[i].id = ids[i]
            pairs[i].value = values[i]
        qsort(pairs, n, sizeof(Pair), _compare_ids)
        for i in range(n):
            ids[i] = pairs[i].id
            values[i] = pairs[i].value
        free(pairs)
    m = 0
    for i in range(1, n):
        if ids[i] != ids[m]:
            m += 1
            ids[m] = ids[i]
            if values != NULL:
                values[m] = values[i]
        elif once:
            continue
        elif values == NULL:
            return -2
        else:
            values[m] += values[i]
    return m + 1


cdef class TokenBuffer:
    """Tokens gathered one after the other, as (id, value) entries in any order."""

    def __cinit__(self, *args, **kwargs):
        if (reserve(<void **>&self.indptr, &self.indptr_capacity, 64, sizeof(int64_t)) < 0
                or reserve(<void **>&self.offsets, &self.offsets_capacity, 64, sizeof(int64_t)) < 0):
            raise MemoryError
        self.indptr[0] = 0
        self.offsets[0] = 0

    def __dealloc__(self):
        free(self.ids)
        free(self.values)
        free(self.indptr)
        free(self.offsets)

    def __reduce__(self):
        raise TypeError("a token buffer lives during one encoding only")

    cdef int need_values(self) noexcept nogil:
        cdef int64_t k
        if reserve(<void **>&self.values, &self.values_capacity, self.ids_capacity, sizeof(float)) < 0:
            return -1
        for k in range(self.n_entries):
            self.values[k] = 1.0
        return 0

    cdef int push(self, int32_t id_, float value) noexcept nogil:
        if self.n_entries == self.ids_capacity:
            if reserve(<void **>&self.ids, &self.ids_capacity, self.n_entries + 1, sizeof(int32_t)) < 0:
                return -1
            if self.values != NULL and reserve(<void **>&self.values, &self.values_capacity,
                                               self.ids_capacity, sizeof(float)) < 0:
                return -1
        if self.values == NULL and value != 1.0 and self.need_values() < 0:
            return -1
        self.ids[self.n_entries] = id_
        if self.values != NULL:
            self.values[self.n_entries] = value
        self.n_entries += 1
        return 0

    cdef int end_token(self) noexcept nogil:
        self.n_tokens += 1
        if reserve(<void **>&self.indptr, &self.indptr_capacity, self.n_tokens + 1, sizeof(int64_t)) < 0:
            return -1
        self.indptr[self.n_tokens] = self.n_entries
        return 0

    cdef int end_sequence(self) except -1:
        self.n_sequences += 1
        if reserve(<void **>&self.offsets, &self.offsets_capacity, self.n_sequences + 1,
                   sizeof(int64_t)) < 0:
            raise MemoryError
        self.offsets[self.n_sequences] = self.n_tokens
        PyErr_CheckSignals()
        return 0

    def add_dense(self, const float[:, ::1] x):
        """Add a sequence of rows; zeros are left out."""
        cdef int64_t t, j, bad_token = -1, bad_feature = -1
        cdef int status = 0
        if x.shape[1] > INT32_MAX:
            raise OverflowError("more than 2**31 - 1 features")
        with nogil:
            for t in range(x.shape[0]):
                for j in range(x.shape[1]):
                    if x[t, j] != 0.0:
                        if not isfinite(x[t, j]):
                            bad_token = t
                            bad_feature = j
                            break
                        status |= self.push(<int32_t>j, x[t, j])
                if bad_token >= 0:
                    break
                status |= self.end_token()
                if status < 0:
                    break
        if bad_token >= 0:
            raise not_finite(self.n_sequences, bad_token, str(bad_feature),
                             x[bad_token, bad_feature])
        if status < 0:
            raise MemoryError
        self.end_sequence()

    def add_csr(self, const int64_t[::1] indptr, const int64_t[::1] indices,
                const float[::1] values, int64_t n_columns, int64_t begin, int64_t end):
        """Add rows begin:end of a CSR matrix as a sequence; zeros are left out."""
        cdef int64_t t, k, bad_token = -1, bad = -1
        cdef int status = 0
        if n_columns > INT32_MAX:
            raise OverflowError("more than 2**31 - 1 features")
        if indices.shape[0] != values.shape[0] or not 0 <= begin <= end < indptr.shape[0]:
            raise ValueError("a sparse matrix has arrays that do not fit together")
        for t in range(begin, end):
            if indptr[t] < 0 or indptr[t + 1] < indptr[t] or indptr[t + 1] > indices.shape[0]:
                raise ValueError("indptr of a sparse matrix must rise and stay in range")
        with nogil:
            for t in range(begin, end):
                for k in range(indptr[t], indptr[t + 1]):
                    if indices[k] < 0 or indices[k] >= n_columns or not isfinite(values[k]):
                        bad_token = t - begin
                        bad = k
                        break
                    if values[k] != 0.0:
                        status |= self.push(<int32_t>indices[k], values[k])
                if bad >= 0:
                    break
                status |= self.end_token()
                if status < 0:
                    break
        if bad >= 0:
            if 0 <= indices[bad] < n_columns:
                raise not_finite(self.n_sequences, bad_token, str(indices[bad]), values[bad])
            raise ValueError(f"sequence {self.n_sequences}, token {bad_token}: column "
                             f"{indices[bad]} of a matrix with {n_columns} columns")
        if status < 0:
            raise MemoryError
        self.end_sequence()

    def finish(self, remap=None):
        """(offsets, indptr, indices, values or None), ids mapped by `remap` if given."""
        cdef const int32_t[::1] map_
        cdef const int32_t *target = NULL
        cdef int64_t n = self.n_entries, total = 0, begin = 0
        cdef bint with_values = self.values != NULL
        cdef ndarray indptr = np.zeros(self.n_tokens + 1, dtype=np.int64)
        cdef ndarray indices = np.empty(n, dtype=np.int32)
        cdef ndarray values = np.empty(n, dtype=np.float32) if with_values else None
        cdef int64_t *ptr = <int64_t *>array_data(indptr)
        cdef int32_t *ind = <int32_t *>array_data(indices)
        cdef float *val = <float *>array_data(values) if with_values else NULL
        offsets = copied(self.offsets, self.n_sequences + 1, np.int64, sizeof(int64_t))
        if remap is not None:
            map_ = remap
            if n and largest(self.ids, n) >= map_.shape[0]:
                raise ValueError("the map is too short")
            target = &map_[0] if map_.shape[0] else NULL
        while begin < self.n_tokens and total >= 0:
            with nogil:
                total = self.canonical(target, begin, min(begin + SIGNALS, self.n_tokens), total, ptr, ind, val)
            PyErr_CheckSignals()
            begin += SIGNALS
        if total == -2:
            if self.need_values() < 0:
                raise MemoryError
            return self.finish(remap)
        if total < 0:
            raise MemoryError
        if total < n:
            indices.resize(total, refcheck=False)
            if with_values:
                values.resize(total, refcheck=False)
        return offsets, indptr, indices, values

    cdef int64_t canonical(self, const int32_t *target, int64_t begin, int64_t end, int64_t total,
                           int64_t *indptr, int32_t *indices, float *values) noexcept nogil:
        """Tokens begin .. end - 1, after `total` entries: the entries then, or an error < 0."""
        cdef int64_t t, k, m, made
        cdef int32_t x
        for t in range(begin, end):
            m = total
            for k in range(self.indptr[t], self.indptr[t + 1]):
                x = self.ids[k] if target == NULL else target[self.ids[k]]
                if x < 0:
                    continue
                indices[m] = x
                if values != NULL:
                    values[m] = self.values[k]
                m += 1
            made = merge_token(indices + total, values + total if values != NULL else NULL, m - total, False)
            if made < 0:
                return made
            total += made
            indptr[t + 1] = total
        return total


cdef object not_finite(int64_t sequence, int64_t token, name, value):
    return ValueError(f"sequence {sequence}, token {token}: feature {name!r} has the value "
                      f"{value}; values must be finite float32 numbers, not NaN or inf")


cdef int64_t largest(const int32_t *x, int64_t n) noexcept nogil:
    cdef int32_t best = -1
    cdef int64_t k
    for k in range(n):
        best = x[k] if x[k] > best else best
    return best


def steps(const int64_t[::1] ends):
    """``(least, most, zeros)`` of the steps from each end to the next: the least, the greatest, and how many are 0.

    A step down is -1. Without steps all three are 0.
    """
    cdef int64_t k, step, n = ends.shape[0] - 1, least = INT64_MAX, most = -1, zeros = 0
    if n < 1:
        return 0, 0, 0
    with nogil:
        for k in range(n):
            step = -1 if ends[k + 1] < ends[k] else <int64_t>(<uint64_t>ends[k + 1] - <uint64_t>ends[k])
            least = min(least, step)
            most = max(most, step)
            zeros += step == 0
    return least, most, zeros


def are_within(const int32_t[::1] ids, int64_t n):
    """Whether all of ids lie in 0 .. n - 1."""
    cdef int64_t k
    cdef bint outside = False
    with nogil:
        for k in range(ids.shape[0]):
            outside |= ids[k] < 0 or ids[k] >= n
    return not outside


cdef inline int64_t place_of(const int64_t *keys, int64_t n, int64_t key) noexcept nogil:
    """The place of a key among n ascending ones; -1: it is none of them."""
    cdef int64_t low = 0, high = n, middle
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low if low < n and keys[low] == key else -1


def known_runs(const int64_t[::1] offsets, list names, list sizes, list keys):
    """Known runs of names that end at each token, of one kind of names after the other.

    A run of m + 1 names has a number: the place of its key among those of its length and kind. The key is the number
    of the run of the first m names, times the number of names, plus the last name.

    Parameters
    ----------
    offsets : int64 array of shape (n_sequences + 1,)
    names : list of int64 arrays of shape (n_tokens,)
        By kind, the name of each token; -1: none.
    sizes : list of int
        By kind, the number of names.
    keys : list of lists of int64 arrays
        By kind, the known keys of 2, 3, ... names, ascending.

    Returns
    -------
    indptr : int64 array of shape (n_tokens + 1,)
    ids : int32 array
        Of the runs at each token, ascending: numbers, behind those of shorter runs, then of kinds before.
    """
    cdef int64_t n_tokens = offsets[offsets.shape[0] - 1], n_kinds = len(names), t, s = 0, k, m, first = 0, number, last
    cdef int64_t n_lengths = len(keys[0]) if n_kinds else 0
    cdef const int64_t[::1] own
    cdef list held = []
    # Known keys of each kind and length; the number of the run that ends at the token before, and at this one.
    tables = np.zeros((5, n_lengths, max(n_kinds, 1)), dtype=np.int64)
    cdef int64_t[:, ::1] pointer = tables[0], size = tables[1], begin = tables[2], before = tables[3], now = tables[4]
    cdef int64_t[::1] of_kind = np.zeros(max(n_kinds, 1), dtype=np.int64), at = of_kind.copy()
    cdef ndarray indptr = np.zeros(n_tokens + 1, dtype=np.int64)
    cdef ndarray ids = np.empty(n_tokens * n_kinds * n_lengths, dtype=np.int32)
    cdef int64_t *ends = <int64_t *>array_data(indptr)
    cdef int32_t *found = <int32_t *>array_data(ids)
    cdef int64_t n = 0
    for k in range(n_kinds):
        own = names[k]
        if own.shape[0] != n_tokens or len(keys[k]) != n_lengths:
            raise ValueError(f"kind {k} has {own.shape[0]} names and {len(keys[k])} lengths")
        held.append(own)
        of_kind[k], at[k] = sizes[k], <int64_t>(&own[0] if n_tokens else NULL)
    for m in range(n_lengths):
        for k in range(n_kinds):
            own = keys[k][m]
            held.append(own)
            pointer[m, k], size[m, k], begin[m, k] = <int64_t>(&own[0] if own.shape[0] else NULL), own.shape[0], first
            first += own.shape[0]
    with nogil:
        for t in range(n_tokens):
            while offsets[s] < t:
                s += 1
            for m in range(n_lengths):
                for k in range(n_kinds):
                    last = (<const int64_t *>at[k])[t]
                    number = -1
                    if offsets[s] > t and last >= 0:
                        number = before[m - 1, k] if m else (<const int64_t *>at[k])[t - 1]
                    if number >= 0:
                        number = place_of(<const int64_t *>pointer[m, k], size[m, k], number * of_kind[k] + last)
                    now[m, k] = number
                    if number >= 0:
                        found[n] = <int32_t>(begin[m, k] + number)
                        n += 1
            before[:, :] = now
            ends[t + 1] = n
    return indptr, ids[:n].copy()


cdef const float[::1] NO_VALUES = np.zeros(1, dtype=np.float32)


def are_entries(offsets, indptr, indices, values, int64_t n_features):
    """Whether arrays are entries of sequences, none empty: aligned, of the types, ascending from 0, indices in range.

    Decoders do not look at this again. False does not say what is wrong.
    """
    cdef const int64_t[::1] ends, starts
    cdef const int32_t[::1] ids
    cdef const float[::1] numbers
    cdef int64_t k, n, n_tokens, n_entries
    cdef bint is_wrong
    try:
        ends, starts, ids = offsets, indptr, indices
        numbers = NO_VALUES
        if values is not None:
            numbers = values
    except (TypeError, ValueError, BufferError):
        return False
    n, n_tokens, n_entries = ends.shape[0] - 1, starts.shape[0] - 1, ids.shape[0]
    if n < 0 or n_tokens < 0 or (values is not None and numbers.shape[0] != n_entries):
        return False
    if (<size_t>&ends[0] | <size_t>&starts[0]) % sizeof(int64_t) != 0:
        return False
    if n_entries > 0 and (<size_t>&ids[0] | <size_t>&numbers[0]) % sizeof(int32_t) != 0:
        return False
    if ends[0] != 0 or ends[n] != n_tokens or starts[0] != 0 or starts[n_tokens] != n_entries:
        return False
    is_wrong = False
    with nogil:
        for k in range(n):
            is_wrong |= ends[k + 1] <= ends[k]
        for k in range(n_tokens):
            is_wrong |= starts[k + 1] < starts[k]
        for k in range(n_entries):
            is_wrong |= ids[k] < 0 or ids[k] >= n_features
    return not is_wrong


def distinct(ids):
    """The distinct ones of a vector of int32 numbers, ascending int64, and the place of each there, int32."""
    cdef const int32_t[:] number = ids
    cdef const int64_t[::1] order = ids.argsort()
    cdef Py_ssize_t n = number.shape[0], k, m = -1
    cdef int64_t[::1] found = np.empty(n, dtype=np.int64)
    cdef int32_t[::1] places = np.empty(n, dtype=np.int32)
    for k in range(n):
        if m < 0 or number[order[k]] != found[m]:
            m += 1
            found[m] = number[order[k]]
        places[order[k]] = <int32_t>m
    return np.asarray(found)[:m + 1], np.asarray(places)


def descending_order(const int64_t[::1] counts, firsts=None):
    """Permutation that sorts by falling count, then rising first token, then position.

    Two stable counting sorts, in time linear in the features, tokens and largest count.
    """
    cdef int64_t n = counts.shape[0], k, top = 0
    order = np.arange(n, dtype=np.int64)
    if n == 0:
        return order
    if firsts is not None:
        order = _counting_sort(firsts, order)
    for k in range(n):
        top = counts[k] if counts[k] > top else top
    return _counting_sort(top - np.asarray(counts), order)


cdef _counting_sort(const int64_t[::1] keys, const int64_t[::1] order):
    """`order`, stably sorted by keys[order], all >= 0."""
    cdef int64_t n = order.shape[0], k, top = 0
    for k in range(n):
        if keys[k] < 0:
            raise ValueError("keys must not be negative")
        top = keys[k] if keys[k] > top else top
    if top > 64 * n + (1 << 24):
        return np.asarray(order)[np.argsort(np.asarray(keys)[order], kind="stable")]
    places = np.zeros(top + 2, dtype=np.int64)
    out = np.empty(n, dtype=np.int64)
    cdef int64_t[::1] place = places
    cdef int64_t[::1] o = out
    with nogil:
        for k in range(n):
            place[keys[k] + 1] += 1
        for k in range(top + 1):
            place[k + 1] += place[k]
        for k in range(n):
            o[place[keys[order[k]]]] = order[k]
            place[keys[order[k]]] += 1
    return out
