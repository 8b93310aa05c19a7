"""Margins and doubts of the sequences of a pool, and changes of their scores: loops around oracles/simd/doubts.h."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc

from structsvm._arrays cimport array_data
from structsvm.execution._processor cimport kernel_set
from structsvm.execution._stop cimport poll

cdef extern from "doubts.h" nogil:
    ctypedef struct doubts_chain:
        int64_t K, stride
        const float* scores
        const float* moves
        const float* begin
        const float* end
        const int64_t* pair_starts
        const int64_t* pair_tables
        const float* pair_values
        const float* pair_moves
        double heat
        const int64_t* kind
        const int64_t* members
        const int64_t* member_starts
        const uint8_t* goes_on_after
        const uint8_t* goes_on_with
    ctypedef struct doubts_moves:
        float* own
        float* turned_d
        double* M
        double* turned
        double* costs
    ctypedef struct doubts_room:
        float* mu
        float* rows
        double* alphas
        double* R
        double* p
        double* logs
        double* tops
        double* room
        doubts_moves shared
        doubts_moves* special
        int64_t n_special
    ctypedef struct doubts_kernels:
        void (*prepare)(const doubts_chain* c, doubts_room* r) noexcept nogil
        int (*of)(const doubts_chain* c, doubts_room* r, int64_t first, int64_t T, int what, double* near,
                  double* margin, double* value) except -1 nogil
        int (*add)(float* scores, int32_t* n_sums, int64_t n_tokens, int64_t stride, const int64_t* starts,
                   const int64_t* tokens, const float* values, const int64_t* features, int64_t n,
                   const float* changes, int64_t* at) except -1 nogil
    const doubts_kernels* doubts_kernels_of(int set, int (*poll)(int64_t work) except -1 nogil)

cdef const doubts_kernels* KERNELS = doubts_kernels_of(kernel_set(), poll)

# The values, by strategy; margins alone.
KINDS = {"margin": 0, "confidence": 1, "entropy": 2, "risk": 3, "span": 4}


# Bytes of the moves that are kept of tokens with pairs: as many as stay in a cache.
cdef enum:
    MOST_SPECIAL = 1 << 21


def add_rows(scores, n_sums, starts, tokens, values, features, changes):
    """Add to the scores of tokens what the weights of some of their features have changed by.

    Parameters
    ----------
    scores : float32 array of shape (n_tokens, stride)
        Changed in place.
    n_sums : int32 array of shape (n_tokens,)
        How often the scores of a token were added to: counted on.
    starts : int64 array of shape (n_features + 1,)
        Feature f has the entries ``starts[f]:starts[f + 1]``.
    tokens : int64 array of shape (n_entries,)
        Rising for each feature.
    values : float32 array of shape (n_entries,), or None
        None: all are 1.
    features : int64 array of shape (n,)
    changes : float32 array of shape (n, stride)
    """
    cdef int64_t n = len(features), n_tokens = scores.shape[0], stride = scores.shape[1]
    cdef float* e = <float*>array_data(scores)
    cdef int32_t* sums = <int32_t*>array_data(n_sums)
    cdef const int64_t* first = <const int64_t*>array_data(starts)
    cdef const int64_t* token = <const int64_t*>array_data(tokens)
    cdef const int64_t* f = <const int64_t*>array_data(features)
    cdef const float* x = NULL if values is None else <const float*>array_data(values)
    cdef const float* d = <const float*>array_data(changes)
    cdef int64_t* at = <int64_t*>malloc((2 * n + 1) * sizeof(int64_t))
    if at == NULL:
        raise MemoryError("scores of a pool")
    try:
        with nogil:
            KERNELS.add(e, sums, n_tokens, stride, first, token, x, f, n, d, at)
    finally:
        free(at)


cdef double* deal(char** place, int64_t n) noexcept:
    """The next n doubles of a piece of memory."""
    cdef double* found = <double*>place[0]
    place[0] += n * sizeof(double)
    return found


cdef void deal_moves(doubts_moves* moves, char** place, int64_t K, int64_t W, int64_t S) noexcept:
    moves.M, moves.turned, moves.costs = deal(place, K * W), deal(place, K * W), deal(place, K * W)
    moves.own, moves.turned_d = <float*>place[0], <float*>place[0] + K * S
    place[0] += 2 * K * S * sizeof(float)


def doubts(emissions, offsets, moves, begin, end, out, values, strategy, heat, near, chunks, pairs=None):
    """Write the margins of sequences to `out`, and the values of a strategy.

    Margins are minus infinity where no labelling is allowed, and not a number where scores have overflowed; values are
    not a number there, and where scores are too far apart for sums.

    Parameters
    ----------
    emissions : float32 array of shape (n_tokens, stride)
    offsets : int64 array of shape (n_sequences + 1,)
        Rising: no sequence is empty.
    moves : float32 array of shape (n_labels, stride)
        From row to column; minus infinity in the columns from n_labels on.
    begin, end : float32 arrays of shape (stride,)
    out, values : float64 arrays of shape (n_sequences,)
    strategy : str
        Of `KINDS`; "margin": no values.
    heat : float
        1 / temperature.
    near : float64 array of shape (n_sequences,)
        How far the rounding of scores of tokens may put two labellings apart that are equal; the rounding of their
        sums, the decoder's as well, is added in place. Labellings as near as that may be the best one, for "risk".
    chunks : tuple of arrays
        The kind of each label, int64 (n_labels,), -1 for labels outside; the labels by kind, int64, and where each
        kind's begin, int64 (n_kinds + 1,); whether chunks go on after a label, and with it, uint8 (n_labels,) each.
    pairs : tuple of arrays, optional
        Of bigrams: int64 indptr (n_tokens + 1,), int64 blocks (n_entries,), -1 for one without weights, float32 values
        (n_entries,) or None, float32 table (n_blocks, n_labels, stride).
    """
    cdef int64_t n = len(out), K = moves.shape[0], S = moves.shape[1], W = (K + 3) // 4 * 4, i, T = 1, size
    cdef int what = KINDS[strategy]
    cdef const int64_t* ends = <const int64_t*>array_data(offsets)
    cdef double* margin = <double*>array_data(out)
    cdef double* value = <double*>array_data(values)
    cdef double* tolerance = <double*>array_data(near)
    cdef doubts_chain c
    cdef doubts_room room
    c.K, c.stride, c.heat = K, S, heat
    c.scores, c.moves = <const float*>array_data(emissions), <const float*>array_data(moves)
    c.begin, c.end = <const float*>array_data(begin), <const float*>array_data(end)
    c.kind, c.members = <const int64_t*>array_data(chunks[0]), <const int64_t*>array_data(chunks[1])
    c.member_starts = <const int64_t*>array_data(chunks[2])
    c.goes_on_after = <const uint8_t*>array_data(chunks[3])
    c.goes_on_with = <const uint8_t*>array_data(chunks[4])
    c.pair_starts = c.pair_tables = NULL
    c.pair_values = c.pair_moves = NULL
    if pairs is not None:
        c.pair_starts, c.pair_tables = <const int64_t*>array_data(pairs[0]), <const int64_t*>array_data(pairs[1])
        c.pair_values = NULL if pairs[2] is None else <const float*>array_data(pairs[2])
        c.pair_moves = <const float*>array_data(pairs[3])
    for i in range(n):
        T = max(T, ends[i + 1] - ends[i])
    # Bytes of moves, of W doubles and S floats a row, in the order in which they are dealt out.
    cdef int64_t of_moves = K * (3 * W * sizeof(double) + 2 * S * sizeof(float)), n_special = 0
    if pairs is not None:
        n_special = max(MOST_SPECIAL // (of_moves + 1), 4)
    size = ((3 * T + 4) * W + 2 * T) * sizeof(double) + (T + 3) * S * sizeof(float)
    size += (n_special + 1) * (of_moves + sizeof(doubts_moves))
    cdef char* place = <char*>malloc(size)
    cdef char* start = place
    if place == NULL:
        raise MemoryError("margins of a pool")
    room.alphas, room.R, room.p = deal(&place, T * W), deal(&place, T * W), deal(&place, T * W)
    room.logs, room.tops, room.room = deal(&place, T), deal(&place, T), deal(&place, 4 * W)
    room.special, room.n_special = <doubts_moves*>place, n_special
    place += n_special * sizeof(doubts_moves)
    for i in range(n_special):
        deal_moves(&room.special[i], &place, K, W, S)
    deal_moves(&room.shared, &place, K, W, S)
    room.mu, room.rows = <float*>place, <float*>place + T * S
    try:
        with nogil:
            KERNELS.prepare(&c, &room)
            for i in range(n):
                KERNELS.of(&c, &room, ends[i], ends[i + 1] - ends[i], what, tolerance + i, margin + i, value + i)
    finally:
        free(start)
