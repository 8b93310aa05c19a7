/* Sums of weight rows, in the compiler's vector extensions.
 *
 * Scores of K labels live in rows of `stride` floats, K rounded up to a multiple of 8 (LANES), so that
 * a row is whole vectors and never needs a tail. Plain C loops over rows do not vectorise well (the
 * compiler cannot know that rows do not overlap the accumulators); vector types do, on every target:
 * where registers are 128 bits wide the compiler splits each operation in two. The files that use
 * this header are compiled once per instruction set (see sets.h).
 */
#ifndef STRUCTSVM_ROWS_H
#define STRUCTSVM_ROWS_H

#include "parts.h"

#define LANES 8

/* Lowest finite score: it stands for -inf where -inf would be subtracted from -inf, or multiplied by 0. */
#define ROWS_LOWEST -FLT_MAX
#define ROWS_AHEAD 16384    /* bytes of weights that are asked for before they are needed */

typedef float rows_v __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t rows_i __attribute__((vector_size(32)));

enum { PARTS = LANES / PART };

/* Into the second level of the cache: the rows of a token with hundreds of labels fill the first. */
ROWS_INLINE void rows_prefetch(const float *row, int64_t stride) {
    for (int64_t c = 0; c < stride; c += 16) __builtin_prefetch(row + c, 0, 2);
}

ROWS_INLINE rows_v rows_of(const rows_part *parts) {
    rows_v all;
    memcpy(&all, parts, sizeof all);
    return all;
}

ROWS_INLINE rows_v rows_all(float x) {
    rows_part parts[PARTS];
    EACH_PART
    for (int k = 0; k < PARTS; k++) parts[k] = part_all(x);
    return rows_of(parts);
}

ROWS_INLINE rows_v rows_max(rows_v a, rows_v b) { return maxima_of_8f(a, b); }

ROWS_INLINE float rows_total(rows_v a) {
    return ((a[0] + a[1]) + (a[2] + a[3])) + ((a[4] + a[5]) + (a[6] + a[7]));
}

/* The greatest lane. */
ROWS_INLINE float rows_top(rows_v a) {
    float top = a[0];
    for (int l = 1; l < LANES; l++) top = a[l] > top ? a[l] : top;
    return top;
}

/* Lanes of a comparison that are true: a bit each. */
ROWS_INLINE unsigned rows_bits(rows_i m) {
#if defined(__AVX__)
    return (unsigned)_mm256_movemask_ps((__m256)m);
#elif defined(__SSE2__)
    __m128 half[2];
    memcpy(half, &m, sizeof half);
    return (unsigned)(_mm_movemask_ps(half[0]) | _mm_movemask_ps(half[1]) << 4);
#else
    unsigned bits = 0;
    for (int l = 0; l < LANES; l++) bits |= (m[l] != 0) << l;
    return bits;
#endif
}

/* The greatest of sign * row. */
static __attribute__((noinline)) float rows_greatest(const float *row, int64_t stride, float sign) {
    rows_v m0 = rows_all(-INFINITY), m1 = m0, by = rows_all(sign);
    for (int64_t c = 0; c < stride; c += 2 * LANES) {
        m0 = rows_max(by * *(const rows_v *)(row + c), m0);
        m1 = rows_max(by * *(const rows_v *)(row + (c + LANES < stride ? c + LANES : c)), m1);
    }
    return rows_top(rows_max(m0, m1));
}

/* out = init + sum_e value_e * W[index_e], for `nv` vectors beginning at column `c`; nv is a literal
 * in every call, so that the accumulators stay in registers. values == NULL: all ones. */
ROWS_INLINE void rows_sum_part(const float *W, int64_t stride, const int32_t *index, const float *values,
                               int64_t n, const float *init, float *out, int64_t c, const int nv) {
    rows_part a[4 * PARTS];
    EACH_PART
    for (int k = 0; k < nv * PARTS; k++) a[k] = *(const rows_part *)(init + c + k * PART);
    if (values == NULL) {
        for (int64_t e = 0; e < n; e++) {
            const float *row = W + (int64_t)index[e] * stride + c;
            EACH_PART
            for (int k = 0; k < nv * PARTS; k++) a[k] += *(const rows_part *)(row + k * PART);
        }
    } else {
        for (int64_t e = 0; e < n; e++) {
            const float *row = W + (int64_t)index[e] * stride + c;
            EACH_PART
            for (int k = 0; k < nv * PARTS; k++) a[k] += values[e] * *(const rows_part *)(row + k * PART);
        }
    }
    EACH_PART
    for (int k = 0; k < nv * PARTS; k++) *(rows_part *)(out + c + k * PART) = a[k];
}

/* The whole row, in strips of at most four vectors. */
ROWS_INLINE void rows_sum(const float *W, int64_t stride, const int32_t *index, const float *values,
                          int64_t n, const float *init, float *out) {
    int64_t c = 0;
    for (; c + 4 * LANES <= stride; c += 4 * LANES) rows_sum_part(W, stride, index, values, n, init, out, c, 4);
    switch ((stride - c) / LANES) {
    case 3: rows_sum_part(W, stride, index, values, n, init, out, c, 3); break;
    case 2: rows_sum_part(W, stride, index, values, n, init, out, c, 2); break;
    case 1: rows_sum_part(W, stride, index, values, n, init, out, c, 1); break;
    }
}

/* Whether a token's ascending indices are 0 .. n - 1: a row of numbers without zeros. */
ROWS_INLINE int rows_is_whole(const int32_t *index, int64_t n) { return n > 0 && index[0] == 0 && index[n - 1] == n - 1; }

/* rows_sum of ROWS_MANY tokens with n whole rows of values each, one after the other: the weights are read once. */
enum { ROWS_MANY = 4 };

ROWS_INLINE void rows_sum_many_part(const float *W, int64_t stride, const float *values, int64_t n, const float *init,
                                    int64_t init_step, float *out, int64_t c, const int nv) {
    rows_part a[ROWS_MANY][3 * PARTS];
    for (int t = 0; t < ROWS_MANY; t++)
        for (int k = 0; k < nv * PARTS; k++) a[t][k] = *(const rows_part *)(init + t * init_step + c + k * PART);
    for (int64_t e = 0; e < n; e++) {
        const float *row = W + e * stride + c;
        rows_part w[3 * PARTS];
        for (int k = 0; k < nv * PARTS; k++) w[k] = *(const rows_part *)(row + k * PART);
        for (int t = 0; t < ROWS_MANY; t++)
            for (int k = 0; k < nv * PARTS; k++) a[t][k] += values[t * n + e] * w[k];
    }
    for (int t = 0; t < ROWS_MANY; t++)
        for (int k = 0; k < nv * PARTS; k++) *(rows_part *)(out + t * stride + c + k * PART) = a[t][k];
}

static __attribute__((noinline)) void rows_sum_many(const float *W, int64_t stride, const float *values, int64_t n,
                                                    const float *init, int64_t init_step, float *out) {
    int64_t c = 0;
    for (; c + 3 * LANES <= stride; c += 3 * LANES) rows_sum_many_part(W, stride, values, n, init, init_step, out, c, 3);
    if (stride - c == 2 * LANES) rows_sum_many_part(W, stride, values, n, init, init_step, out, c, 2);
    if (stride - c == LANES) rows_sum_many_part(W, stride, values, n, init, init_step, out, c, 1);
}

/* Whether the next ROWS_MANY tokens are rows of numbers, of the same length and without zeros. */
ROWS_INLINE int rows_are_whole(const int64_t *indptr, const int32_t *indices) {
    int64_t n = indptr[1] - indptr[0];
    for (int t = 0; t < ROWS_MANY; t++)
        if (indptr[t + 1] - indptr[t] != n || !rows_is_whole(indices + indptr[t], n)) return 0;
    return 1;
}

/* E[t] = init[t] + the token's weight rows; init_step 0 uses the same init for every token. Rows lie anywhere in memory:
 * those of the next token, and of ROWS_AHEAD bytes at least, are asked for before they are needed. */
static void rows_fill(const float *W, int64_t stride, const int64_t *indptr, const int32_t *indices, const float *values,
                      int64_t T, const float *init, int64_t init_step, float *E) {
    int64_t ahead = ROWS_AHEAD / (stride * (int64_t)sizeof(float)), asked = indptr[T > 0];
    for (int64_t t = 0; t < T; t++) {
        int64_t a = indptr[t], b = indptr[t + 1];
        if (values != NULL && t + ROWS_MANY <= T && rows_are_whole(indptr + t, indices)) {
            rows_sum_many(W, stride, values + a, b - a, init + t * init_step, init_step, E + t * stride);
            t += ROWS_MANY - 1;
            asked = indptr[t + 1];
            continue;
        }
        int64_t next = indptr[t + 1 < T ? t + 2 : T], until = b + ahead < next ? next : b + ahead;
        for (; asked < until && asked < indptr[T]; asked++) rows_prefetch(W + indices[asked] * stride, stride);
        rows_sum(W, stride, indices + a, values == NULL ? NULL : values + a, b - a,
                 init + t * init_step, E + t * stride);
    }
}

/* a[j] + b[j] of the vector that begins at j; b may be NULL. */
ROWS_INLINE rows_v rows_two(const float *a, const float *b, int64_t j) {
    rows_v v = *(const rows_v *)(a + j);
    if (b != NULL) v += *(const rows_v *)(b + j);
    return v;
}

/* The greatest a[j] + b[j] of n floats in each lane; b may be NULL. What is not a number is passed over. */
ROWS_INLINE rows_v rows_tops(const float *a, const float *b, int64_t n) {
    rows_part m[PARTS];
    EACH_PART
    for (int k = 0; k < PARTS; k++) m[k] = part_all(-INFINITY);
    for (int64_t j = 0; j < n; j += LANES) {
        EACH_PART
        for (int k = 0; k < PARTS; k++) {
            rows_part x = *(const rows_part *)(a + j + k * PART);
            if (b != NULL) x += *(const rows_part *)(b + j + k * PART);
            m[k] = rows_part_max(x, m[k]);
        }
    }
    return rows_of(m);
}

/* Smallest index of the greatest of n floats a[j] + b[j] (b may be NULL); its value goes to *best. What is not a number is
 * passed over. No branch depends on the numbers. */
ROWS_INLINE int64_t rows_argmax(const float *a, const float *b, int64_t stride, float *best) {
    rows_v top = rows_tops(a, b, stride);
    int64_t at = 0;
#ifdef __AVX__
    top = rows_max(ROWS_PICK(rows_i, top, top, 4, 5, 6, 7, 0, 1, 2, 3), top);
    top = rows_max(ROWS_PICK(rows_i, top, top, 2, 3, 0, 1, 6, 7, 4, 5), top);
    top = rows_max(ROWS_PICK(rows_i, top, top, 1, 0, 3, 2, 5, 4, 7, 6), top);
#else
    top = rows_all(rows_top(top));
#endif
    for (int64_t j = stride - LANES; j >= 0; j -= LANES) {
        int64_t first = __builtin_ctz(rows_bits(rows_two(a, b, j) == top) | 1 << LANES);
        at = first < LANES ? j + first : at;
    }
    *best = top[0];
    return at;
}

/* out[c][a] = A[a][c] for n rows a, the rest 0: a block at a time, in three perfect shuffles. */
static __attribute__((noinline)) void rows_transpose(const float *A, int64_t n, int64_t stride, float *out) {
    for (int64_t a = 0; a < stride; a += LANES)
        for (int64_t c = 0; c < stride; c += LANES) {
            rows_v x[LANES], y[LANES];
            for (int l = 0; l < LANES; l++) x[l] = a + l < n ? *(const rows_v *)(A + (a + l) * stride + c) : rows_all(0.0f);
            for (int round = 0; round < 3; round++) {
                for (int l = 0; l < LANES / 2; l++) {
                    y[2 * l] = ROWS_PICK(rows_i, x[l], x[l + LANES / 2], 0, 8, 1, 9, 2, 10, 3, 11);
                    y[2 * l + 1] = ROWS_PICK(rows_i, x[l], x[l + LANES / 2], 4, 12, 5, 13, 6, 14, 7, 15);
                }
                memcpy(x, y, sizeof x);
            }
            for (int l = 0; l < LANES; l++) *(rows_v *)(out + (c + l) * stride + a) = x[l];
        }
}

/* How many numbers two lists without repetitions share: every one against every one, eight at a time,
 * which for lists of some twenty is faster than a merge with its unpredictable steps. */
ROWS_INLINE int64_t rows_common(const int32_t *a, int64_t na, const int32_t *b, int64_t nb) {
    typedef int32_t loaded __attribute__((vector_size(32), aligned(4), may_alias));
    rows_i found = {0, 0, 0, 0, 0, 0, 0, 0};
    int64_t wholes_a = na - na % LANES, wholes_b = nb - nb % LANES, common = 0;
    for (int64_t j = 0; j < wholes_b; j += LANES) {
        rows_i v = *(const loaded *)(b + j);
        for (int64_t i = 0; i < na; i++) found -= v == (rows_i){0, 0, 0, 0, 0, 0, 0, 0} + a[i];
    }
    for (int64_t j = wholes_b; j < nb; j++) {
        for (int64_t i = 0; i < wholes_a; i += LANES)
            found -= *(const loaded *)(a + i) == (rows_i){0, 0, 0, 0, 0, 0, 0, 0} + b[j];
        for (int64_t i = wholes_a; i < na; i++) common += a[i] == b[j];
    }
    for (int l = 0; l < LANES; l++) common += found[l];
    return common;
}

/* <a, b> of n floats. */
ROWS_INLINE double rows_dot(const float *a, const float *b, int64_t n) {
    typedef float four __attribute__((vector_size(16), aligned(4), may_alias));
    typedef double wide __attribute__((vector_size(32)));   /* no wider than registers: those sums stay in memory */
    wide sum[2] = {{0.0}};
    double total = 0.0;
    int64_t c = 0;
    for (; c + LANES <= n; c += LANES)
        for (int k = 0; k < 2; k++)
            sum[k] += __builtin_convertvector(*(const four *)(a + c + 4 * k), wide)
                * __builtin_convertvector(*(const four *)(b + c + 4 * k), wide);
    for (int l = 0; l < LANES; l++) total += sum[l / 4][l % 4];
    for (; c < n; c++) total += (double)a[c] * b[c];
    return total;
}

/* <x, x'> of two sparse tokens with ascending indices; short ones of ones by counting, else by a merge. */
static double rows_token_dot(const int32_t *ia, const float *va, int64_t na,
                             const int32_t *ib, const float *vb, int64_t nb) {
    double total = 0.0;
    int64_t p = 0, q = 0;
    if (va == NULL && na * nb <= 4096) return (double)rows_common(ia, na, ib, nb);
    if (va != NULL && na == nb && rows_is_whole(ia, na) && rows_is_whole(ib, nb)) return rows_dot(va, vb, na);
    while (p < na && q < nb) {
        if (ia[p] == ib[q]) {
            total += va == NULL ? 1.0 : (double)va[p] * vb[q];
            p++;
            q++;
        } else if (ia[p] < ib[q]) {
            p++;
        } else {
            q++;
        }
    }
    return total;
}

#endif
