"""Margins of chains of order 1, from scores of tokens: the best labelling's score less the second best's.

With max-marginals ``mu_t(k)``, the score of the best labelling that has label k at token t, the best one has
``max_k mu_t(k)`` at every t, and the second best is the best of all that differ from it at some t: the greatest of the
second largest mu_t(k). Forwards ``a_t(k) = e_t(k) + max_j (a_t-1(j) + d(j, k))``, backwards
``b_t(j) = max_k (d(j, k) + e_t+1(k) + b_t+1(k))``, and ``mu = a + b``.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from structsvm._arrays cimport array_data
from structsvm.execution._stop cimport poll


cdef extern from *:
    """
    #if defined(__GNUC__) && !defined(__clang__)
    #pragma GCC optimize("O3")
    #endif
    """


cdef struct Pairs:
    const int64_t* indptr       # by token; NULL: there are none
    const int64_t* rows         # blocks of `table`, -1 for one without weights
    const float* values         # NULL: all 1
    const float* table          # blocks of K rows


cdef const float* moves_of(Pairs* pairs, const float* moves, int64_t t, int64_t K, int64_t S,
                           float* own) noexcept nogil:
    """The scores of moves to a token: those of all, and of its own pairs."""
    cdef int64_t p, i
    cdef float x
    cdef const float* block
    if pairs.indptr == NULL or pairs.indptr[t] == pairs.indptr[t + 1]:
        return moves
    memcpy(own, moves, K * S * sizeof(float))
    for p in range(pairs.indptr[t], pairs.indptr[t + 1]):
        if pairs.rows[p] < 0:
            continue
        x = 1.0 if pairs.values == NULL else pairs.values[p]
        block = pairs.table + pairs.rows[p] * K * S
        for i in range(K * S):
            own[i] += x * block[i]
    return own


cdef double margin_of(const float* e, int64_t T, int64_t first, int64_t K, int64_t S, const float* moves,
                      const float* begin, const float* end, Pairs* pairs, float* a, float* b, float* c,
                      float* own) noexcept nogil:
    """The margin of a sequence of T tokens, of which `first` is the first; buffers of T, 1 and 1 rows, and K rows."""
    cdef int64_t t, j, k
    cdef float x, top, next_one
    cdef double best = -INFINITY, second = -INFINITY
    cdef const float* d
    cdef float* row
    for k in range(S):
        a[k] = e[k] + begin[k]
        b[k] = end[k]
    for t in range(1, T):
        d = moves_of(pairs, moves, first + t, K, S, own)
        row = a + t * S
        for k in range(S):
            row[k] = -INFINITY
        for j in range(K):
            x = row[j - S]
            for k in range(S):
                row[k] = x + d[j * S + k] if x + d[j * S + k] > row[k] else row[k]
        for k in range(S):
            row[k] += e[t * S + k]
    for t in range(T - 1, -1, -1):
        row = a + t * S
        top = next_one = -INFINITY
        for k in range(K):
            x = row[k] + b[k]
            if x > top:
                next_one, top = top, x
            elif x > next_one:
                next_one = x
        best = max(best, top)
        second = max(second, next_one)
        if t == 0:
            break
        d = moves_of(pairs, moves, first + t, K, S, own)
        for k in range(S):
            c[k] = e[t * S + k] + b[k]
        for j in range(K):
            x = -INFINITY
            for k in range(K):
                x = d[j * S + k] + c[k] if d[j * S + k] + c[k] > x else x
            b[j] = x
    if best == -INFINITY:
        return -INFINITY
    return best - second


def add_rows(scores, starts, tokens, values, features, changes):
    """Add to the scores of tokens what the weights of some of their features have changed by.

    Parameters
    ----------
    scores : float32 array of shape (n_tokens, stride)
        Changed in place.
    starts : int64 array of shape (n_features + 1,)
        Feature f has the entries ``starts[f]:starts[f + 1]``.
    tokens : int64 array of shape (n_entries,)
    values : float32 array of shape (n_entries,), or None
        None: all are 1.
    features : int64 array of shape (n,)
    changes : float32 array of shape (n, stride)
    """
    cdef int64_t n = len(features), S = scores.shape[1], i, p, k
    cdef float* e = <float*>array_data(scores)
    cdef const int64_t* first = <const int64_t*>array_data(starts)
    cdef const int64_t* token = <const int64_t*>array_data(tokens)
    cdef const int64_t* f = <const int64_t*>array_data(features)
    cdef const float* x = NULL if values is None else <const float*>array_data(values)
    cdef const float* d = <const float*>array_data(changes)
    cdef float value
    with nogil:
        for i in range(n):
            for p in range(first[f[i]], first[f[i] + 1]):
                value = 1.0 if x == NULL else x[p]
                for k in range(S):
                    e[token[p] * S + k] += value * d[i * S + k]
            poll((first[f[i] + 1] - first[f[i]]) * S)


def margins(emissions, offsets, moves, begin, end, out, pairs=None):
    """Write the margins of sequences to `out`; minus infinity where no labelling is allowed.

    Parameters
    ----------
    emissions : float32 array of shape (n_tokens, stride)
    offsets : int64 array of shape (n_sequences + 1,)
        Rising: no sequence is empty.
    moves : float32 array of shape (n_labels, stride)
        From row to column; minus infinity in the columns from n_labels on.
    begin, end : float32 arrays of shape (stride,)
    out : float64 array of shape (n_sequences,)
    pairs : tuple of arrays, optional
        Of bigrams: int64 indptr (n_tokens + 1,), int64 blocks (n_entries,), float32 values (n_entries,) or None,
        float32 table (n_blocks, n_labels, stride).
    """
    cdef int64_t n = len(out), K = moves.shape[0], S = moves.shape[1], i, longest = 1
    cdef const float* e = <const float*>array_data(emissions)
    cdef const int64_t* ends = <const int64_t*>array_data(offsets)
    cdef const float* d = <const float*>array_data(moves)
    cdef const float* first = <const float*>array_data(begin)
    cdef const float* last = <const float*>array_data(end)
    cdef double* found = <double*>array_data(out)
    cdef Pairs of_pairs
    cdef float* room
    of_pairs.indptr = of_pairs.rows = NULL
    of_pairs.values = of_pairs.table = NULL
    if pairs is not None:
        of_pairs.indptr = <const int64_t*>array_data(pairs[0])
        of_pairs.rows = <const int64_t*>array_data(pairs[1])
        of_pairs.values = NULL if pairs[2] is None else <const float*>array_data(pairs[2])
        of_pairs.table = <const float*>array_data(pairs[3])
    for i in range(n):
        longest = max(longest, ends[i + 1] - ends[i])
    room = <float*>malloc((longest + 2 + K) * S * sizeof(float))
    if room == NULL:
        raise MemoryError("margins of a pool")
    try:
        with nogil:
            for i in range(n):
                found[i] = margin_of(e + ends[i] * S, ends[i + 1] - ends[i], ends[i], K, S, d, first, last, &of_pairs,
                                     room + (2 + K) * S, room, room + S, room + 2 * S)
                poll((ends[i + 1] - ends[i]) * K * S)
    finally:
        free(room)
