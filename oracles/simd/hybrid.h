/* The chart of hybrid trees: values and expected counts. Part of the kernels, compiled once per instruction set.
 *
 * The formulas are those of oracles/_hybrid.pyx. The cells of one length do not depend on each other: a row has those of
 * all beginnings i, in vectors of four. Row [length][i] of a quantity of the span [i, i + length); rows are N long, N > n + 3,
 * and 0 where the span would end behind the sentence: so are weights of words and ends behind it, which makes the
 * products of vectors that reach beyond the last span 0, too.
 */
#ifndef STRUCTSVM_HYBRID_H
#define STRUCTSVM_HYBRID_H

#include <stdint.h>
#include <string.h>

#include "maxima.h"
#include "sets.h"
#include "stop.h"

#define HYBRID_INLINE static inline __attribute__((always_inline))

typedef double hybrid_v __attribute__((vector_size(32), aligned(8), may_alias));

#define HYBRID_IN_ORDER 2

typedef struct {
    int64_t n, N, depth, n_nodes, n_slots, n_roots, n_stages;
    const int32_t *slot_ptr;    /* each node's slots */
    const int32_t *stage_ptr;   /* and its stages: sets of slots; of a list in order, how many of its first slots */
    const int32_t *lists;       /* HYBRID_IN_ORDER: words fill the slots of the node from left to right */
    const int32_t *fill_ptr;    /* the nodes that may fill each slot: */
    const int32_t *inner_end;   /* first those that have slots themselves, up to here */
    const int32_t *fill;
    const int32_t *root;
    /* Weights: [node][N] or [slot][N] by place; [node], [slot][2], [fill], [root]. Expected counts follow them. */
    double *word, *begin, *end, *slot_begin, *slot_end, *wordless, *empty, *order, *pair, *root_pair;
    /* Values: E[height][node], nothing[height][slot], base[stage], C[slot], F[stage], G, B, run[node], of rows; then
     * T[length][height][node], Ck[length][height][slot]. Derivatives of the total follow them. */
    double *E, *nothing, *base, *C, *F, *G, *B, *run, *T, *Ck;
    int64_t n_weights, n_values;
    double total;
} hybrid_chart;

typedef struct {
    int (*fill)(hybrid_chart *h, int best);
    int (*spread)(hybrid_chart *h);
} hybrid_kernels;

KERNELS_OF(hybrid);

#define HYBRID_AT(row) (*(hybrid_v *)(row))
#define HYBRID_READ(row) (*(const hybrid_v *)(row))

HYBRID_INLINE double hybrid_sum(hybrid_v a) { return (a[0] + a[1]) + (a[2] + a[3]); }

HYBRID_INLINE double hybrid_plus(double a, double b, const int best) { return best ? (a > b ? a : b) : a + b; }

HYBRID_INLINE hybrid_v hybrid_plus_v(hybrid_v a, hybrid_v b, const int best) {
    if (best) return maxima_of_4d(a, b);
    return a + b;
}

HYBRID_INLINE hybrid_v hybrid_all(double x) { return (hybrid_v){x, x, x, x}; }

/* The stage of a set of slots; of a list in order these are its first ones. */
HYBRID_INLINE int64_t hybrid_stage(const hybrid_chart *h, int64_t u, int64_t mask) {
    return h->stage_ptr[u] + (h->lists[u] == HYBRID_IN_ORDER ? __builtin_popcountll(mask) : mask);
}

/* The first slot that may be the last of a set, not empty, to be filled; of a list in order none else. */
HYBRID_INLINE int64_t hybrid_lowest(const hybrid_chart *h, int64_t u, int64_t mask) {
    return h->lists[u] == HYBRID_IN_ORDER ? 63 - __builtin_clzll(mask) : 0;
}

/* The set of slots after another one. */
HYBRID_INLINE int64_t hybrid_next(const hybrid_chart *h, int64_t u, int64_t mask) {
    return h->lists[u] == HYBRID_IN_ORDER ? 2 * mask + 1 : mask + 1;
}

/* A child at the end, after others: cells at.. of the length. */
HYBRID_INLINE hybrid_v hybrid_joined(const hybrid_chart *h, int64_t u, int64_t mask, int64_t length, int64_t at, const int best) {
    const int64_t N = h->N, P = (h->n + 1) * N, first = h->slot_ptr[u], arity = h->slot_ptr[u + 1] - first;
    hybrid_v x = hybrid_all(0.0);
    for (int64_t a = hybrid_lowest(h, u, mask); a < arity; a++) {
        const int64_t rest = mask & ~((int64_t)1 << a);
        if (rest == mask || rest == 0) continue;
        const double *F = h->F + hybrid_stage(h, u, rest) * P + at, *C = h->C + (first + a) * P + length * N + at;
        hybrid_v y = hybrid_all(0.0);
        for (int64_t d = 1; d < length; d++) y = hybrid_plus_v(y, HYBRID_READ(F + d * N) * HYBRID_READ(C - d * (N - 1)), best);
        x = hybrid_plus_v(x, y * h->order[2 * (first + a) + (rest >> a > 0)], best);
    }
    return x;
}

/* sum over k of pair[k] * row fill[k] of T, of nv vectors, a literal in every call. */
HYBRID_INLINE void hybrid_fillers(const double *pair, const int32_t *fill, int64_t count, const double *T, int64_t N,
                                  hybrid_v *out, const int nv, const int best) {
    hybrid_v a[4], b[4];
    for (int v = 0; v < nv; v++) a[v] = b[v] = hybrid_all(0.0);
    int64_t k = 0;
    for (; k + 2 <= count; k += 2) {
        const double *first = T + fill[k] * N, *second = T + fill[k + 1] * N;
        for (int v = 0; v < nv; v++) {
            a[v] = hybrid_plus_v(a[v], pair[k] * HYBRID_READ(first + 4 * v), best);
            b[v] = hybrid_plus_v(b[v], pair[k + 1] * HYBRID_READ(second + 4 * v), best);
        }
    }
    for (int v = 0; v < nv; v++) {
        if (k < count) a[v] = hybrid_plus_v(a[v], pair[k] * HYBRID_READ(T + fill[k] * N + 4 * v), best);
        out[v] = hybrid_plus_v(a[v], b[v], best);
    }
}

/* Row fill[k] of `to` += pair[k] * x, and count[k] += <x, row fill[k] of T>, of nv vectors, a literal in every call. */
HYBRID_INLINE void hybrid_spread_fillers(const double *pair, double *count, const int32_t *fill, int64_t n_fill, const double *T,
                                         double *to, int64_t N, const hybrid_v *x, const int nv) {
    for (int64_t k = 0; k < n_fill; k++) {
        const double *from = T + fill[k] * N;
        double *row = to + fill[k] * N;
        hybrid_v sum = hybrid_all(0.0);
        for (int v = 0; v < nv; v++) {
            sum += x[v] * HYBRID_READ(from + 4 * v);
            HYBRID_AT(row + 4 * v) += pair[k] * x[v];
        }
        count[k] += hybrid_sum(sum);
    }
}

/* Fill a slot over the spans of a length: strips of at most four vectors. */
HYBRID_INLINE void hybrid_fill_slot(const hybrid_chart *h, int64_t s, int64_t height, int64_t length, const int best) {
    const int64_t N = h->N, V = h->n_nodes, S = h->n_slots, H = h->depth + 1, nv = (h->n - length) / 4 + 1;
    const int64_t first = h->fill_ptr[s], count = (height ? h->inner_end[s] : h->fill_ptr[s + 1]) - first;
    const double *T = h->T + (length * H + height) * V * N;
    double *Ck = h->Ck + ((length * H + height) * S + s) * N, *C = h->C + (s * (h->n + 1) + length) * N;
    const double *begin = h->slot_begin + s * N, *end = h->slot_end + s * N + length;
    for (int64_t v = 0; v < nv; v += 4) {
        hybrid_v x[4];
        switch (nv - v) {
        case 1: hybrid_fillers(h->pair + first, h->fill + first, count, T + 4 * v, N, x, 1, best); break;
        case 2: hybrid_fillers(h->pair + first, h->fill + first, count, T + 4 * v, N, x, 2, best); break;
        case 3: hybrid_fillers(h->pair + first, h->fill + first, count, T + 4 * v, N, x, 3, best); break;
        default: hybrid_fillers(h->pair + first, h->fill + first, count, T + 4 * v, N, x, 4, best);
        }
        for (int64_t at = 4 * v, w = 0; w < 4 && v + w < nv; w++, at += 4) {
            x[w] *= HYBRID_READ(begin + at) * HYBRID_READ(end + at);
            HYBRID_AT(Ck + at) = x[w];
            HYBRID_AT(C + at) = hybrid_plus_v(HYBRID_READ(C + at), x[w], best);
        }
    }
}

/* Time of the stages of node u over all spans of a length, about: each slot may be the last of each. */
static inline int64_t hybrid_work(const hybrid_chart *h, int64_t u, int64_t length) {
    const int64_t arity = h->slot_ptr[u + 1] - h->slot_ptr[u];
    const int64_t joined = h->lists[u] == HYBRID_IN_ORDER ? arity : arity << arity;
    return (8 + 2 * (joined * length)) * ((h->n - length) / 4 + 1);
}

/* Set numbers to 0, which takes a while in memory that is new. */
static int hybrid_clear(double *x, int64_t n) {
    for (int64_t k = 0; k < n; k += STOP_PART) {
        const int64_t part = n - k < STOP_PART ? n - k : STOP_PART;
        memset(x + k, 0, part * sizeof(double));
        if (stop_poll(part) < 0) return -1;
    }
    return 0;
}

HYBRID_INLINE int hybrid_fill_length(const hybrid_chart *h, int64_t length, int64_t *work, const int best) {
    const int64_t N = h->N, V = h->n_nodes, S = h->n_slots, H = h->depth + 1, P = (h->n + 1) * N, row = length * N;
    const int64_t end_at = h->n - length + 1;
    double *T = h->T + length * H * V * N;
    for (int64_t u = 0; u < V; u++) {
        const int64_t full = (1 << (h->slot_ptr[u + 1] - h->slot_ptr[u])) - 1;
        double *F = h->F + hybrid_stage(h, u, full) * P + row, *G = h->G + u * P + row, *B = h->B + u * P + row;
        double *run = h->run + u * P + row;
        const double *word = h->word + u * N, *last = word + length - 1, all = h->base[hybrid_stage(h, u, full)];
        if (stop_count(work, hybrid_work(h, u, length)) < 0) return -1;
        for (int64_t at = 0; at < end_at; at += 4) {
            hybrid_v x = HYBRID_READ(last + at);
            if (length > 1) x *= HYBRID_READ(run + at - N);
            HYBRID_AT(run + at) = x;
            hybrid_v y = all * x;
            if (full > 0 && length > 1) {
                x = hybrid_joined(h, u, full, length, at, best);
                x = hybrid_plus_v(
                    x, HYBRID_READ(last + at) * hybrid_plus_v(HYBRID_READ(F + at - N), HYBRID_READ(G + at - N), best), best);
                HYBRID_AT(F + at) = x;
                x = hybrid_plus_v(
                    x, HYBRID_READ(word + at) * hybrid_plus_v(HYBRID_READ(B + at - N + 1), HYBRID_READ(G + at - N + 1), best), best);
                HYBRID_AT(B + at) = x;
                y = hybrid_plus_v(y, x, best);
            }
            HYBRID_AT(T + u * N + at) = y * HYBRID_READ(h->begin + u * N + at) * HYBRID_READ(h->end + u * N + at + length);
        }
    }
    for (int64_t k = 0; k < H; k++) {
        for (int64_t s = 0; s < S; s++) {
            if (stop_count(work, (h->fill_ptr[s + 1] - h->fill_ptr[s]) * (end_at / 4 + 1)) < 0) return -1;
            hybrid_fill_slot(h, s, k, length, best);
        }
        if (k + 1 == H) break;
        const double *Ck = h->Ck + (length * H + k) * S * N;
        for (int64_t u = 0; u < V; u++) {
            const int64_t first = h->slot_ptr[u], arity = h->slot_ptr[u + 1] - first, full = (1 << arity) - 1;
            const int64_t lowest = arity ? hybrid_lowest(h, u, full) : 0;
            for (int64_t at = 0; at < end_at; at += 4) {
                hybrid_v x = hybrid_all(0.0);
                for (int64_t a = lowest; a < arity; a++) {
                    const double base = h->base[hybrid_stage(h, u, full & ~(1 << a))];
                    x = hybrid_plus_v(x, base * HYBRID_READ(Ck + (first + a) * N + at), best);
                }
                HYBRID_AT(T + ((k + 1) * V + u) * N + at) =
                    x * h->wordless[u] * HYBRID_READ(h->begin + u * N + at) * HYBRID_READ(h->end + u * N + at + length);
            }
        }
    }
    for (int64_t u = 0; u < V; u++) {
        const int64_t first = h->slot_ptr[u], arity = h->slot_ptr[u + 1] - first, full = (1 << arity) - 1;
        const double *C = h->C + first * P + row, *last = h->word + u * N + length - 1;
        for (int64_t mask = 1; mask <= full; mask = hybrid_next(h, u, mask)) {
            const int64_t lowest = hybrid_lowest(h, u, mask);
            double *F = h->F + hybrid_stage(h, u, mask) * P + row;
            for (int64_t at = 0; at < end_at; at += 4) {
                hybrid_v x = hybrid_all(0.0);
                for (int64_t a = lowest; a < arity; a++) {
                    if (!(mask >> a & 1)) continue;
                    const double base = h->base[hybrid_stage(h, u, mask & ~(1 << a))];
                    x = hybrid_plus_v(x, base * HYBRID_READ(C + a * P + at), best);
                }
                if (mask == full) {
                    HYBRID_AT(h->G + u * P + row + at) = x;
                    continue;
                }
                if (length > 1) {
                    x = hybrid_plus_v(x, hybrid_joined(h, u, mask, length, at, best), best);
                    x = hybrid_plus_v(x, HYBRID_READ(last + at) * HYBRID_READ(F + at - N), best);
                }
                HYBRID_AT(F + at) = x;
            }
        }
    }
    return 0;
}

HYBRID_INLINE int hybrid_fill_all(hybrid_chart *h, const int best) {
    const int64_t V = h->n_nodes, S = h->n_slots, n = h->n, H = h->depth + 1;
    int64_t work = 0;
    if (hybrid_clear(h->E, h->T - h->E) < 0) return -1;
    for (int64_t k = 0; k < H; k++) {
        for (int64_t u = 0; u < V; u++) {
            double x = k || h->slot_ptr[u] == h->slot_ptr[u + 1] ? h->empty[u] : 0.0;
            for (int64_t s = h->slot_ptr[u]; s < h->slot_ptr[u + 1]; s++) x *= k ? h->nothing[(k - 1) * S + s] : 0.0;
            h->E[k * V + u] = x;
        }
        for (int64_t s = 0; s < S; s++) {
            double x = 0.0;
            for (int64_t f = h->fill_ptr[s]; f < h->fill_ptr[s + 1]; f++) x = hybrid_plus(x, h->pair[f] * h->E[k * V + h->fill[f]], best);
            h->nothing[k * S + s] = x;
        }
    }
    for (int64_t u = 0; u < V; u++) {
        const double *nothing = h->nothing + h->depth * S + h->slot_ptr[u];
        double *base = h->base + h->stage_ptr[u];
        base[0] = 1.0;
        for (int64_t k = 1; k < h->stage_ptr[u + 1] - h->stage_ptr[u]; k++) {
            const int64_t is_list = h->lists[u] == HYBRID_IN_ORDER;
            base[k] = is_list ? base[k - 1] * nothing[k - 1] : base[k & (k - 1)] * nothing[__builtin_ctzll(k)];
        }
    }
    for (int64_t length = 1; length <= n; length++) {
        if (hybrid_fill_length(h, length, &work, best) < 0) return -1;
    }
    h->total = 0.0;
    for (int64_t r = 0; n > 0 && r < h->n_roots; r++)
        for (int64_t k = 0; k < H; k++)
            h->total = hybrid_plus(h->total, h->root_pair[r] * h->T[((n * H + k) * V + h->root[r]) * h->N], best);
    return stop_poll(work);
}

/* All values, of sums or of maxima, and `total`, which is that of the root. */
static int hybrid_fill(hybrid_chart *h, int best) { return best ? hybrid_fill_all(h, 1) : hybrid_fill_all(h, 0); }

/* The derivatives that x, that of a stage, has for what `hybrid_joined` sums. */
HYBRID_INLINE void hybrid_unjoin(hybrid_chart *h, int64_t u, int64_t mask, int64_t length, int64_t at, hybrid_v x) {
    const int64_t N = h->N, P = (h->n + 1) * N, first = h->slot_ptr[u], arity = h->slot_ptr[u + 1] - first, D = h->n_values;
    for (int64_t a = hybrid_lowest(h, u, mask); a < arity; a++) {
        const int64_t rest = mask & ~((int64_t)1 << a), o = 2 * (first + a) + (rest >> a > 0);
        if (rest == mask || rest == 0) continue;
        double *F = h->F + hybrid_stage(h, u, rest) * P + at, *C = h->C + (first + a) * P + length * N + at;
        hybrid_v y = hybrid_all(0.0), z = x * h->order[o];
        for (int64_t d = 1; d < length; d++) {
            hybrid_v f = HYBRID_READ(F + d * N), c = HYBRID_READ(C - d * (N - 1));
            y += f * c;
            HYBRID_AT(F + D + d * N) += z * c;
            HYBRID_AT(C + D - d * (N - 1)) += z * f;
        }
        h->order[h->n_weights + o] += hybrid_sum(y * z);
    }
}

static void hybrid_spread_slot(hybrid_chart *h, int64_t s, int64_t height, int64_t length) {
    const int64_t N = h->N, V = h->n_nodes, S = h->n_slots, H = h->depth + 1, W = h->n_weights, D = h->n_values;
    const int64_t nv = (h->n - length) / 4 + 1;
    const int64_t first = h->fill_ptr[s], count = (height ? h->inner_end[s] : h->fill_ptr[s + 1]) - first;
    double *T = h->T + (length * H + height) * V * N, *Ck = h->Ck + ((length * H + height) * S + s) * N;
    double *begin = h->slot_begin + s * N, *end = h->slot_end + s * N + length;
    const double *pair = h->pair + first;
    const int32_t *fill = h->fill + first;
    for (int64_t v = 0; v < nv; v += 4) {
        hybrid_v x[4];
        for (int64_t at = 4 * v, w = 0; w < 4 && v + w < nv; w++, at += 4) {
            hybrid_v y = HYBRID_READ(Ck + D + at) * HYBRID_READ(Ck + at);
            HYBRID_AT(begin + W + at) += y;
            HYBRID_AT(end + W + at) += y;
            x[w] = HYBRID_READ(Ck + D + at) * HYBRID_READ(begin + at) * HYBRID_READ(end + at);
        }
        double *t = T + 4 * v;
        switch (nv - v) {
        case 1: hybrid_spread_fillers(pair, h->pair + W + first, fill, count, t, t + D, N, x, 1); break;
        case 2: hybrid_spread_fillers(pair, h->pair + W + first, fill, count, t, t + D, N, x, 2); break;
        case 3: hybrid_spread_fillers(pair, h->pair + W + first, fill, count, t, t + D, N, x, 3); break;
        default: hybrid_spread_fillers(pair, h->pair + W + first, fill, count, t, t + D, N, x, 4);
        }
    }
}

static int hybrid_spread_length(hybrid_chart *h, int64_t length, int64_t *work) {
    const int64_t N = h->N, V = h->n_nodes, S = h->n_slots, H = h->depth + 1, P = (h->n + 1) * N, row = length * N;
    const int64_t W = h->n_weights, D = h->n_values, end_at = h->n - length + 1;
    double *T = h->T + length * H * V * N;
    for (int64_t u = 0; u < V; u++) {
        const int64_t first = h->slot_ptr[u], arity = h->slot_ptr[u + 1] - first, full = (1 << arity) - 1;
        double *C = h->C + first * P + row, *last = h->word + u * N + length - 1;
        if (stop_count(work, 3 * hybrid_work(h, u, length)) < 0) return -1;
        for (int64_t mask = 1; mask <= full; mask = hybrid_next(h, u, mask)) {
            const int64_t lowest = hybrid_lowest(h, u, mask);
            double *F = h->F + hybrid_stage(h, u, mask) * P + row;
            for (int64_t at = 0; at < end_at; at += 4) {
                hybrid_v x = HYBRID_READ((mask == full ? h->G + u * P + row : F) + D + at);
                for (int64_t a = lowest; a < arity; a++) {
                    if (!(mask >> a & 1)) continue;
                    double *base = h->base + hybrid_stage(h, u, mask & ~(1 << a));
                    HYBRID_AT(C + D + a * P + at) += x * *base;
                    base[D] += hybrid_sum(x * HYBRID_READ(C + a * P + at));
                }
                if (length == 1 || mask == full) continue;
                hybrid_unjoin(h, u, mask, length, at, x);
                x *= HYBRID_READ(last + at);
                HYBRID_AT(last + W + at) += x * HYBRID_READ(F + at - N);
                HYBRID_AT(F + D + at - N) += x;
            }
        }
    }
    for (int64_t k = H - 1; k >= 0; k--) {
        double *Ck = h->Ck + (length * H + k) * S * N;
        for (int64_t s = 0; s < S; s++)
            for (int64_t at = 0; at < end_at; at += 4) HYBRID_AT(Ck + D + s * N + at) += HYBRID_READ(h->C + D + s * P + row + at);
        for (int64_t u = 0; k + 1 < H && u < V; u++) {
            const int64_t first = h->slot_ptr[u], arity = h->slot_ptr[u + 1] - first, full = (1 << arity) - 1;
            double *begin = h->begin + u * N, *end = h->end + u * N + length;
            const double *t = T + ((k + 1) * V + u) * N;
            if (arity == 0) continue;
            for (int64_t at = 0; at < end_at; at += 4) {
                hybrid_v x = HYBRID_READ(t + D + at), y = x * HYBRID_READ(t + at);
                h->wordless[W + u] += hybrid_sum(y);
                HYBRID_AT(begin + W + at) += y;
                HYBRID_AT(end + W + at) += y;
                x *= h->wordless[u] * HYBRID_READ(begin + at) * HYBRID_READ(end + at);
                for (int64_t a = hybrid_lowest(h, u, full); a < arity; a++) {
                    double *base = h->base + hybrid_stage(h, u, full & ~(1 << a));
                    HYBRID_AT(Ck + D + (first + a) * N + at) += x * *base;
                    base[D] += hybrid_sum(x * HYBRID_READ(Ck + (first + a) * N + at));
                }
            }
        }
        for (int64_t s = 0; s < S; s++) {
            if (stop_count(work, 3 * (h->fill_ptr[s + 1] - h->fill_ptr[s]) * (end_at / 4 + 1)) < 0) return -1;
            hybrid_spread_slot(h, s, k, length);
        }
    }
    for (int64_t u = 0; u < V; u++) {
        const int64_t full = (1 << (h->slot_ptr[u + 1] - h->slot_ptr[u])) - 1;
        double *F = h->F + hybrid_stage(h, u, full) * P + row, *G = h->G + u * P + row, *B = h->B + u * P + row;
        double *run = h->run + u * P + row, *word = h->word + u * N, *last = word + length - 1;
        double *begin = h->begin + u * N, *end = h->end + u * N + length, *all = h->base + hybrid_stage(h, u, full);
        for (int64_t at = 0; at < end_at; at += 4) {
            hybrid_v x = HYBRID_READ(T + D + u * N + at), y = x * HYBRID_READ(T + u * N + at), z;
            HYBRID_AT(begin + W + at) += y;
            HYBRID_AT(end + W + at) += y;
            x *= HYBRID_READ(begin + at) * HYBRID_READ(end + at);
            all[D] += hybrid_sum(x * HYBRID_READ(run + at));
            z = HYBRID_READ(run + D + at) + x * *all;
            HYBRID_AT(last + W + at) += z * HYBRID_READ(run + at);
            if (length == 1) continue;
            HYBRID_AT(run + D + at - N) += z * HYBRID_READ(last + at);
            if (full == 0) continue;
            x += HYBRID_READ(B + D + at);
            z = x * HYBRID_READ(word + at);
            HYBRID_AT(B + D + at - N + 1) += z;
            HYBRID_AT(G + D + at - N + 1) += z;
            HYBRID_AT(word + W + at) += z * (HYBRID_READ(B + at - N + 1) + HYBRID_READ(G + at - N + 1));
            x += HYBRID_READ(F + D + at);
            hybrid_unjoin(h, u, full, length, at, x);
            z = x * HYBRID_READ(last + at);
            HYBRID_AT(F + D + at - N) += z;
            HYBRID_AT(G + D + at - N) += z;
            HYBRID_AT(last + W + at) += z * (HYBRID_READ(F + at - N) + HYBRID_READ(G + at - N));
        }
    }
    return 0;
}

/* Behind the weights: the derivative of `total` with respect to the logarithm of each. */
static int hybrid_spread(hybrid_chart *h) {
    const int64_t V = h->n_nodes, S = h->n_slots, n = h->n, H = h->depth + 1, W = h->n_weights, D = h->n_values;
    int64_t work = 0;
    if (hybrid_clear(h->word + W, W) < 0 || hybrid_clear(h->E + D, D) < 0) return -1;
    for (int64_t r = 0; r < h->n_roots; r++)
        for (int64_t k = 0; k < H; k++) {
            double *t = h->T + ((n * H + k) * V + h->root[r]) * h->N;
            t[D] += h->root_pair[r];
            h->root_pair[W + r] += h->root_pair[r] * *t;
        }
    for (int64_t length = n; length > 0; length--) {
        if (hybrid_spread_length(h, length, &work) < 0) return -1;
    }
    for (int64_t u = 0; u < V; u++) {
        const double *base = h->base + h->stage_ptr[u];
        double *nothing = h->nothing + D + h->depth * S + h->slot_ptr[u];
        if (h->lists[u] == HYBRID_IN_ORDER) {
            for (int64_t k = 1; k < h->stage_ptr[u + 1] - h->stage_ptr[u]; k++) {
                double product = base[D + k];     /* the derivative for a, of the first k slots */
                for (int64_t a = k - 1; a >= 0; a--) {
                    nothing[a] += product * base[a];
                    product *= nothing[a - D];
                }
            }
            continue;
        }
        for (int64_t mask = 1; mask < h->stage_ptr[u + 1] - h->stage_ptr[u]; mask++)
            for (int64_t a = 0; mask >> a; a++)
                if (mask >> a & 1) nothing[a] += base[D + mask] * base[mask & ~((int64_t)1 << a)];
    }
    for (int64_t k = H - 1; k >= 0; k--) {
        for (int64_t s = 0; s < S; s++) {
            const double x = h->nothing[D + k * S + s];
            for (int64_t f = h->fill_ptr[s]; f < h->fill_ptr[s + 1]; f++) {
                h->pair[W + f] += x * h->E[k * V + h->fill[f]];
                h->E[D + k * V + h->fill[f]] += x * h->pair[f];
            }
        }
        for (int64_t u = 0; u < V; u++) {
            const double x = h->E[D + k * V + u] * h->E[k * V + u];
            if (x == 0.0) continue;
            h->empty[W + u] += x;
            for (int64_t s = h->slot_ptr[u]; s < h->slot_ptr[u + 1]; s++) h->nothing[D + (k - 1) * S + s] += x / h->nothing[(k - 1) * S + s];
        }
    }
    for (int64_t f = 0; f < h->fill_ptr[S]; f++) h->pair[W + f] *= h->pair[f];
    return stop_poll(work);
}

#endif
