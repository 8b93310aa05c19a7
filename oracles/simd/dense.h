/* Dense rows: products with weights that lie attribute by attribute, rank-one updates of them, the scores of many
 * documents side by side; and the best of many outputs.
 *
 * A row of weights, like a row of numbers, is `width` long: whole vectors, the padding 0. So a product reads the weights
 * once and in their order, and an update touches the rows of a few attributes instead of a number in every feature's.
 */
#ifndef STRUCTSVM_DENSE_H
#define STRUCTSVM_DENSE_H

#include "exponentials.h"
#include "rows.h"
#include "sets.h"

typedef double dense_d __attribute__((vector_size(32), aligned(8), may_alias));
typedef float dense_4f __attribute__((vector_size(16), aligned(4), may_alias));
typedef int64_t dense_4i __attribute__((vector_size(32)));

/* Rows of floats, and the scores of documents. */
typedef struct {
    void (*fill)(const float *W, int64_t stride, const int64_t *indptr, const int32_t *indices, const float *values,
                 int64_t T, const float *init, int64_t init_step, float *E);
    void (*products)(const float *W, int64_t width, const float *x, int64_t n, float *out);
    double (*dot)(const float *w, const float *x, int64_t width);
    void (*add)(float *w, const float *x, float amount, int64_t width);
    void (*accumulate)(double *w, const float *x, double amount, int64_t width);
    void (*positions)(const float *U, const float *bias, const int32_t *base, const int32_t *first,
                      const int32_t *attribute, const float *value, int64_t n_positions, float *S);
    int64_t (*violator)(const double *scores, const float *losses, int64_t n, double true_score);
    double (*exponentials)(float *s, int64_t n, double *top, double *mean);
    void (*tops)(const float *S, const int32_t *position, const float *scale, int64_t n_outputs, int32_t *out);
} dense_kernels;

KERNELS_OF(dense);

/* Rows of doubles. */
typedef struct {
    void (*products)(const double *W, int64_t width, const double *x, int64_t n, double *out);
    double (*dot)(const double *w, const double *x, int64_t width);
    void (*add)(double *w, const double *x, double amount, int64_t width);
    double (*exponentials)(float *s, int64_t n, double *top, double *mean);
} dense_double_kernels;

KERNELS_OF(dense_double);

/* The sums of the lanes of 4 vectors, each as two halves: lane k and lane 4 + k belong to vector k. */
ROWS_INLINE rows_v dense_halves(rows_v a, rows_v b, rows_v c, rows_v d) {
    rows_v ab = ROWS_PICK(rows_i, a, b, 0, 8, 2, 10, 4, 12, 6, 14) + ROWS_PICK(rows_i, a, b, 1, 9, 3, 11, 5, 13, 7, 15);
    rows_v cd = ROWS_PICK(rows_i, c, d, 0, 8, 2, 10, 4, 12, 6, 14) + ROWS_PICK(rows_i, c, d, 1, 9, 3, 11, 5, 13, 7, 15);
    return ROWS_PICK(rows_i, ab, cd, 0, 1, 8, 9, 4, 5, 12, 13) + ROWS_PICK(rows_i, ab, cd, 2, 3, 10, 11, 6, 7, 14, 15);
}

/* out[k] = <row k of W, x>, k < n, a multiple of 8. */
static void dense_products(const float *W, int64_t width, const float *x, int64_t n, float *out) {
    for (int64_t k = 0; k < n; k += 8, W += 8 * width) {
        rows_v a[8] = {rows_all(0.0f), rows_all(0.0f), rows_all(0.0f), rows_all(0.0f),
                       rows_all(0.0f), rows_all(0.0f), rows_all(0.0f), rows_all(0.0f)};
        for (int64_t f = 0; f < width; f += LANES) {
            const rows_v v = *(const rows_v *)(x + f);
            for (int r = 0; r < 8; r++) a[r] += v * *(const rows_v *)(W + r * width + f);
        }
        rows_v low = dense_halves(a[0], a[1], a[2], a[3]), high = dense_halves(a[4], a[5], a[6], a[7]);
        *(rows_v *)(out + k) = ROWS_PICK(rows_i, low, high, 0, 1, 2, 3, 8, 9, 10, 11)
                             + ROWS_PICK(rows_i, low, high, 4, 5, 6, 7, 12, 13, 14, 15);
    }
}

static double dense_dot(const float *w, const float *x, int64_t width) {
    rows_v a = rows_all(0.0f), b = a;
    double total = 0.0;
    int64_t f = 0;
    for (; f + 2 * LANES <= width; f += 2 * LANES) {
        a += *(const rows_v *)(x + f) * *(const rows_v *)(w + f);
        b += *(const rows_v *)(x + f + LANES) * *(const rows_v *)(w + f + LANES);
    }
    if (f < width) a += *(const rows_v *)(x + f) * *(const rows_v *)(w + f);
    a += b;
    for (int l = 0; l < LANES; l++) total += a[l];
    return total;
}

/* w += amount x. */
static void dense_add(float *w, const float *x, float amount, int64_t width) {
    for (int64_t f = 0; f < width; f += LANES) *(rows_v *)(w + f) += amount * *(const rows_v *)(x + f);
}

static void dense_accumulate(double *w, const float *x, double amount, int64_t width) {
    for (int64_t f = 0; f < width; f += 4)
        *(dense_d *)(w + f) += amount * __builtin_convertvector(*(const dense_4f *)(x + f), dense_d);
}

/* The same in double precision; n is a multiple of 4, width of 8. */
static void dense_products_d(const double *W, int64_t width, const double *x, int64_t n, double *out) {
    for (int64_t k = 0; k < n; k += 4, W += 4 * width) {
        dense_d a[4] = {{0.0}, {0.0}, {0.0}, {0.0}}, b[4] = {{0.0}, {0.0}, {0.0}, {0.0}};
        for (int64_t f = 0; f < width; f += 8) {
            const dense_d v = *(const dense_d *)(x + f), u = *(const dense_d *)(x + f + 4);
            for (int r = 0; r < 4; r++) {
                a[r] += v * *(const dense_d *)(W + r * width + f);
                b[r] += u * *(const dense_d *)(W + r * width + f + 4);
            }
        }
        for (int r = 0; r < 4; r++) a[r] += b[r];
        dense_d low = ROWS_PICK(dense_4i, a[0], a[1], 0, 4, 2, 6) + ROWS_PICK(dense_4i, a[0], a[1], 1, 5, 3, 7);
        dense_d high = ROWS_PICK(dense_4i, a[2], a[3], 0, 4, 2, 6) + ROWS_PICK(dense_4i, a[2], a[3], 1, 5, 3, 7);
        *(dense_d *)(out + k) = ROWS_PICK(dense_4i, low, high, 0, 1, 4, 5) + ROWS_PICK(dense_4i, low, high, 2, 3, 6, 7);
    }
}

static double dense_dot_d(const double *w, const double *x, int64_t width) {
    dense_d a = {0.0}, b = {0.0};
    for (int64_t f = 0; f < width; f += 8) {
        a += *(const dense_d *)(x + f) * *(const dense_d *)(w + f);
        b += *(const dense_d *)(x + f + 4) * *(const dense_d *)(w + f + 4);
    }
    a += b;
    return (a[0] + a[1]) + (a[2] + a[3]);
}

static void dense_add_d(double *w, const double *x, double amount, int64_t width) {
    for (int64_t f = 0; f < width; f += 4) *(dense_d *)(w + f) += amount * *(const dense_d *)(x + f);
}

/* Documents side by side: row z + 1 of S holds the scores of position z for DENSE_TILE of them, row 0 is 0, and row a of
 * U their products with attribute a, to which bias[a] is added. See the programme at the head of _taxonomy.pyx. */
enum { DENSE_TILE = 256 };

static void dense_positions(const float *U, const float *bias, const int32_t *base, const int32_t *first,
                            const int32_t *attribute, const float *value, int64_t n_positions, float *S) {
    memset(S, 0, DENSE_TILE * sizeof(float));
    for (int64_t z = 0; z < n_positions; z++) {
        const float *from = S + base[z] * (int64_t)DENSE_TILE;
        float *to = S + (z + 1) * DENSE_TILE;
        for (int64_t e = first[z]; e < first[z + 1]; e++, from = to) {
            const float *u = U + attribute[e] * (int64_t)DENSE_TILE;
            const rows_v b = rows_all(bias[attribute[e]]), v = rows_all(value == NULL ? 1.0f : value[e]);
            for (int64_t i = 0; i < DENSE_TILE; i += LANES)
                *(rows_v *)(to + i) = *(const rows_v *)(from + i) + v * (*(const rows_v *)(u + i) + b);
        }
        if (from != to) memcpy(to, from, DENSE_TILE * sizeof(float));
    }
}

/* The most violated output of one document under margin rescaling: the smallest k of the greatest
 * losses[k] - (true_score - scores[k]) above 0; -1 if there is none, -2 if one is not a number. */
static int64_t dense_violator(const double *scores, const float *losses, int64_t n, double true_score) {
    dense_d high = {0.0, 0.0, 0.0, 0.0};
    dense_4i top = {-1, -1, -1, -1}, here = {0, 1, 2, 3}, odd = {0, 0, 0, 0};
    int64_t k = 0, best = -1;
    for (; k + 4 <= n; k += 4, here += 4) {
        const dense_d loss = __builtin_convertvector(*(const dense_4f *)(losses + k), dense_d);
        const dense_d value = loss - (true_score - *(const dense_d *)(scores + k));
        const dense_4i better = value > high;
        odd |= value != value;
        high = (dense_d)(((dense_4i)value & better) | ((dense_4i)high & ~better));
        top = (here & better) | (top & ~better);
    }
    double most = 0.0;
    for (int l = 0; l < 4; l++) {
        if (odd[l]) return -2;
        if (top[l] >= 0 && (high[l] > most || (high[l] == most && top[l] < best))) {
            most = high[l];
            best = top[l];
        }
    }
    for (; k < n; k++) {
        const double value = losses[k] - (true_score - scores[k]);
        if (value != value) return -2;
        if (value > most) {
            most = value;
            best = k;
        }
    }
    return best;
}

/* p = exp(s - top) in the place of n scores, whole vectors whose padding is -inf; `top` is the greatest, `mean` the sum of
 * p (s - top). Returns the sum of p. Scores that are not finite give sums that are not numbers. */
static double dense_exponentials(float *s, int64_t n, double *top, double *mean) {
    const float greatest = rows_top(rows_tops(s, NULL, n));
    double total = 0.0, weighted = 0.0;
    for (int64_t k = 0; k < n; k += PART) {
        const rows_part x = rows_part_max(*(const rows_part *)(s + k) - greatest, part_all(2 * LEAST_EXPONENT));
        const rows_part p = part_exp(x);
        for (int l = 0; l < PART; l++) {
            total += p[l];
            weighted += (double)p[l] * x[l];
        }
        *(rows_part *)(s + k) = p;
    }
    *top = greatest;
    *mean = weighted;
    return total;
}

/* The output of the highest score of each document; of several the first. */
static void dense_tops(const float *S, const int32_t *position, const float *scale, int64_t n_outputs, int32_t *out) {
    for (int64_t i = 0; i < DENSE_TILE; i += 4) {
        dense_d high = (dense_d){0.0, 0.0, 0.0, 0.0} - INFINITY;
        dense_4i top = {0, 0, 0, 0};
        for (int64_t k = 0; k < n_outputs; k++) {
            const int64_t z = position[k];
            const dense_4f s = *(const dense_4f *)(S + (z + 1) * DENSE_TILE + i);
            const dense_d score = (double)scale[z] * __builtin_convertvector(s, dense_d);
            const dense_4i better = score > high;
            high = (dense_d)(((dense_4i)score & better) | ((dense_4i)high & ~better));
            top = (((dense_4i){0, 0, 0, 0} + k) & better) | (top & ~better);
        }
        for (int l = 0; l < 4; l++) out[i + l] = (int32_t)top[l];
    }
}

#endif
