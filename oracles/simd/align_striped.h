/* Scores of a string x against many strings z, where all costs are integers and no sum leaves 16 bits (Farrar 2007).
 *
 * With one cost o for the first and one e for each further letter of a gap, o <= e <= 0, gaps gain nothing by being
 * split, nor by either order of two that meet, and the recurrences of align.h become Gotoh's:
 *     H(i, j) = max(H(i-1, j-1) + S(i, j), X(i, j), Z(i, j), floor)
 *     X(i, j) = max(H(i-1, j) + o, X(i-1, j) + e),    Z(i, j) = max(H(i, j-1) + o, Z(i, j-1) + e).
 * A column j is `count` vectors: lane l of vector s is cell i = l count + s + 1. So X goes from one vector to the next,
 * and from a lane to the next behind the last vector only. The first run through a column takes X to be `least` where it
 * comes from another lane; then cells are raised by what does, until X + e <= H + o in a whole vector: further down
 * that X is no more than the gap opened at H, which is known already. (Z need not hear of it: gaps that meet may as well
 * come in the other order.) The profile has, per symbol of z, the scores of all cells of a column.
 */
#ifndef STRUCTSVM_ALIGN_STRIPED_H
#define STRUCTSVM_ALIGN_STRIPED_H

#include "align.h"

#ifdef __AVX2__
enum { STRIPED_LANES = 16 };
#define STRIPED_MAX maxima_of_16s
#define STRIPED_NEXT 16, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14
#else
enum { STRIPED_LANES = 8 };
#define STRIPED_MAX maxima_of_8s
#define STRIPED_NEXT 8, 0, 1, 2, 3, 4, 5, 6
#endif

typedef int16_t striped_v __attribute__((vector_size(2 * STRIPED_LANES), aligned(2), may_alias));
typedef int16_t striped_i __attribute__((vector_size(2 * STRIPED_LANES)));

typedef struct striped_task {
    int64_t mode, m, count, open, extend;
    int64_t least;          /* no value of H, X or Z that matters is less */
    int16_t *profile;       /* by symbol, `count` vectors */
    int16_t *columns;       /* H of this column and of the one before, Z */
} striped_task;

ROWS_INLINE striped_i striped_all(int64_t x) {
    striped_i r;
    for (int l = 0; l < STRIPED_LANES; l++) r[l] = (int16_t)x;
    return r;
}

/* To the next lane; the first takes that of `first`. */
ROWS_INLINE striped_i striped_next(striped_i a, int64_t first) {
    return ROWS_PICK(striped_i, a, striped_all(first), STRIPED_NEXT);
}

ROWS_INLINE int striped_any(striped_i a) {
#if defined(__AVX2__)
    return _mm256_movemask_epi8((__m256i)a);
#elif defined(__SSE2__)
    return _mm_movemask_epi8((__m128i)a);
#else
    int64_t half[2];
    memcpy(half, &a, sizeof half);
    return (half[0] | half[1]) != 0;
#endif
}

/* Where cell i + 1 of a column is. */
ROWS_INLINE int64_t striped_at(int64_t count, int64_t i) { return i % count * STRIPED_LANES + i / count; }

/* H of the border, k letters from its corner. */
ROWS_INLINE int64_t striped_border(const striped_task *s, int64_t k) {
    return s->mode != ALIGN_GLOBAL || k == 0 ? 0 : s->open + (k - 1) * s->extend;
}

/* Set up for a string x; a pair of symbols a and b scores pair[a side + b]. Cells behind the last letter pair with a score
 * of `off` <= 0. */
static void align_profile(striped_task *s, const int32_t *x, const double *pair, int64_t side, int64_t off) {
    s->count = (s->m + STRIPED_LANES - 1) / STRIPED_LANES;
    int16_t *to = s->profile;
    for (int64_t b = 0; b < side - 1; b++)
        for (int64_t v = 0; v < s->count; v++)
            for (int64_t i = v; i < s->count * STRIPED_LANES; i += s->count)
                *to++ = (int16_t)(i < s->m ? (int64_t)pair[x[i] * side + b] : off);
}

/* The score of the best alignment with z_1 .. z_n. */
static int align_striped(const striped_task *s, const int32_t *z, int64_t n, double *score) {
    const int64_t count = s->count, last = striped_at(count, s->m - 1);
    const striped_i open = striped_all(s->open), extend = striped_all(s->extend);
    const striped_i floor = striped_all(s->mode == ALIGN_LOCAL ? 0 : s->least);
    striped_v *H = (striped_v *)s->columns, *before = H + count, *Z = before + count;
    striped_i top = floor;
    int64_t best = s->mode == ALIGN_GLOBAL ? s->least : 0, work = 0;
    for (int64_t i = 0; i < count * STRIPED_LANES; i++) {
        int64_t at = striped_at(count, i);
        ((int16_t *)H)[at] = (int16_t)striped_border(s, i + 1);
        ((int16_t *)Z)[at] = (int16_t)(striped_border(s, i + 1) + s->open);
    }
    for (int64_t j = 1; j <= n; j++) {
        striped_v *swap = before;
        before = H;
        H = swap;
        const striped_v *pair = (const striped_v *)s->profile + z[j - 1] * count;
        striped_i X = striped_all(s->least), h = striped_next(before[count - 1], striped_border(s, j - 1));
        X[0] = (int16_t)(striped_border(s, j) + s->open);
        for (int64_t v = 0; v < count; v++) {
            striped_i z_gap = Z[v];
            h = STRIPED_MAX(STRIPED_MAX(h + pair[v], X), STRIPED_MAX(z_gap, floor));
            H[v] = h;
            top = STRIPED_MAX(top, h);
            h += open;
            Z[v] = STRIPED_MAX(h, z_gap + extend);
            X = STRIPED_MAX(h, X + extend);
            h = before[v];
        }
        for (int round = 0; round < STRIPED_LANES; round++) {
            X = striped_next(X, s->least);
            for (int64_t v = 0; v < count; v++) {
                striped_i old = H[v], on = X + extend;
                if (!striped_any(on > old + open)) goto settled;
                H[v] = STRIPED_MAX(old, X);
                X = on;
            }
        }
    settled:
        if (s->mode == ALIGN_SEMIGLOBAL || j == n) best = align_most(best, ((const int16_t *)H)[last]);
        if (stop_count(&work, count * STRIPED_LANES) < 0) return -1;
    }
    if (s->mode == ALIGN_LOCAL) *before = top;
    if (s->mode != ALIGN_GLOBAL) {
        /* The last column, or what is highest of all in each lane. */
        const int16_t *cells = (const int16_t *)(s->mode == ALIGN_LOCAL ? before : H);
        int64_t most = s->mode == ALIGN_LOCAL ? STRIPED_LANES : s->m, step = s->mode == ALIGN_LOCAL ? 1 : count;
        for (int64_t i = 0; i < most; i++) best = align_most(best, cells[striped_at(step, i)]);
    }
    *score = (double)best;
    return stop_poll(work);
}

#endif
