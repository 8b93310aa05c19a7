"""Margins and doubts of the sequences of a pool, and changes of their scores: loops around oracles/simd/doubts.h."""

from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport free, malloc

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
        int (*add)(float* scores, float* sizes, int64_t n_tokens, int64_t stride, const int64_t* starts,
                   const int64_t* tokens, const float* values, const int64_t* features, int64_t n,
                   const float* changes, int64_t* at) except -1 nogil
    const doubts_kernels* doubts_kernels_of(int set, int (*poll)(int64_t work) except -1 nogil)

cdef const doubts_kernels* KERNELS = doubts_kernels_of(kernel_set(), poll)

# The values, by strategy; margins alone.
KINDS = {"margin": 0, "confidence": 1, "entropy": 2, "risk": 3, "span": 4}

# Bytes of the moves that are kept of tokens with pairs: as many as stay in a cache.
cdef enum:
    MOST_SPECIAL = 1 << 21


cdef int same(str name, int64_t found, int64_t wanted) except -1:
    """Raise ValueError for an array of another length than wanted."""
    if found != wanted:
        raise ValueError(f"{name}: {found} numbers where {wanted} are wanted")
    return 0


def add_rows(float[:, ::1] scores, float[:, ::1] sizes, const int64_t[::1] starts, const int64_t[::1] tokens,
             const float[::1] values, const int64_t[::1] features, const float[:, ::1] changes):
    """Add to the scores of tokens what the weights of some of their features have changed by.

    Parameters
    ----------
    scores : float32 array of shape (n_tokens, stride)
        Changed in place.
    sizes : float32 array of shape (n_tokens, 2)
        Per token the sizes of all that was added to its scores, and their error in units of 2^-24: added to.
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
    same("sizes", sizes.shape[0] * sizes.shape[1], 2 * n_tokens)
    same("changes", changes.shape[0], n)
    same("rows of changes", changes.shape[1], stride)
    if values is not None:
        same("values", len(values), len(tokens))
    if n == 0 or len(tokens) == 0:
        return
    cdef const float* x = NULL if values is None else &values[0]
    cdef int64_t* at = <int64_t*>malloc((2 * n + 1) * sizeof(int64_t))
    if at == NULL:
        raise MemoryError("scores of a pool")
    try:
        with nogil:
            KERNELS.add(&scores[0, 0], &sizes[0, 0], n_tokens, stride, &starts[0], &tokens[0], x, &features[0], n,
                        &changes[0, 0], at)
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


def doubts(const float[:, ::1] emissions, const int64_t[::1] offsets, const float[:, ::1] moves, const float[::1] begin,
           const float[::1] end, double[::1] out, double[::1] values, str strategy, double heat, double[::1] near,
           tuple chunks, tuple pairs=None):
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
    cdef const int64_t[::1] kind = chunks[0], members = chunks[1], member_starts = chunks[2]
    cdef const uint8_t[::1] after = chunks[3], within = chunks[4]
    cdef const int64_t[::1] pair_starts, pair_tables
    cdef const float[::1] pair_values
    cdef const float[:, :, ::1] pair_moves
    cdef doubts_chain c
    cdef doubts_room room
    same("offsets", len(offsets), n + 1)
    same("emissions", emissions.shape[0], offsets[n])
    for name, found, wanted in (
        ("rows of emissions", emissions.shape[1], S), ("begin", len(begin), S), ("end", len(end), S),
        ("values", len(values), n), ("near", len(near), n),
        ("kinds", len(kind), K), ("goes on after", len(after), K), ("goes on with", len(within), K),
    ):
        same(name, found, wanted)
    c.K, c.stride, c.heat = K, S, heat
    c.scores, c.moves, c.begin, c.end = &emissions[0, 0], &moves[0, 0], &begin[0], &end[0]
    c.kind, c.member_starts = &kind[0], &member_starts[0]
    c.members = &members[0] if len(members) else NULL
    c.goes_on_after, c.goes_on_with = &after[0], &within[0]
    c.pair_starts = c.pair_tables = NULL
    c.pair_values = c.pair_moves = NULL
    if pairs is not None:
        pair_starts, pair_tables, pair_values, pair_moves = pairs
        same("indptr of pairs", len(pair_starts), emissions.shape[0] + 1)
        same("tables of pairs", len(pair_tables), pair_starts[emissions.shape[0]])
        same("rows of moves of pairs", pair_moves.shape[1] * pair_moves.shape[2], K * S)
        c.pair_starts, c.pair_moves = &pair_starts[0], &pair_moves[0, 0, 0]
        c.pair_tables = &pair_tables[0] if len(pair_tables) else NULL
        if pair_values is not None:
            same("values of pairs", len(pair_values), len(pair_tables))
            c.pair_values = &pair_values[0] if len(pair_values) else NULL
    for i in range(n):
        T = max(T, offsets[i + 1] - offsets[i])
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
                KERNELS.of(&c, &room, offsets[i], offsets[i + 1] - offsets[i], what, &near[i], &out[i], &values[i])
    finally:
        free(start)
