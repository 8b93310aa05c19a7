/* Rows of label weights, which all decoders of label sequences share: the lattice, and the moments of the log loss. */
#ifndef STRUCTSVM_LABELS_H
#define STRUCTSVM_LABELS_H

#include "rows.h"
#include "sets.h"

typedef struct {
    void (*fill)(const float *W, int64_t stride, const int64_t *indptr, const int32_t *indices, const float *values,
                 int64_t T, const float *init, int64_t init_step, float *E);
    int64_t (*spread)(const int64_t *indptr, const int32_t *indices, const float *values, int64_t T, int64_t stride,
                      const float *moments, int32_t *slot, int32_t *list, int32_t *places, float *rows);
    void (*spread_again)(const int64_t *indptr, const int32_t *places, const float *values, int64_t T, int64_t stride,
                         const float *moments, int64_t n, float *rows);
    void (*note)(const int64_t *indptr, int64_t T, int64_t n, int32_t *places, int32_t *scratch);
    void (*spread_noted)(const int32_t *noted, int64_t n, int64_t n_entries, int64_t stride, const float *moments,
                         float *rows);
    double (*dot)(const float *a, const float *b, int64_t n);
    void (*add_rows)(float *W, int64_t stride, const int32_t *list, int64_t n, const float *rows, float coef);
    void (*accumulate)(double *W, int64_t stride, const int64_t *indptr, const int32_t *indices, const float *values,
                       int64_t T, const float *moments, double coef);
} labels_kernels;

KERNELS_OF(labels);

enum {
    LABELS_AHEAD = 16,          /* features whose slots, and rows whose weights, are asked for before they are needed */
    LABELS_SHORT = 1 << 16      /* numbers that half of an int32 holds */
};

/* sum_t x_t m_t over the tokens' features: rows[k] is the sum of the feature list[k]; returns how many there are. slot
 * holds -1 for each feature; places, unless it is NULL, will hold the row of each entry. */
static int64_t labels_spread(const int64_t *indptr, const int32_t *indices, const float *values, int64_t T,
                             int64_t stride, const float *moments, int32_t *slot, int32_t *list, int32_t *places,
                             float *rows) {
    int64_t n = 0;
    for (int64_t t = 0; t < T; t++) {
        const float *m = moments + t * stride;
        for (int64_t e = indptr[t]; e < indptr[t + 1]; e++) {
            if (e + LABELS_AHEAD < indptr[T]) __builtin_prefetch(slot + indices[e + LABELS_AHEAD], 1, 3);
            rows_v x = rows_all(values == NULL ? 1.0f : values[e]);
            int32_t k = slot[indices[e]];
            if (places != NULL) places[e] = k < 0 ? (int32_t)n : k;
            if (k < 0) {
                float *row = rows + n * stride;
                slot[indices[e]] = (int32_t)n;
                list[n++] = indices[e];
                for (int64_t c = 0; c < stride; c += LANES) *(rows_v *)(row + c) = x * *(const rows_v *)(m + c);
            } else {
                float *row = rows + k * stride;
                for (int64_t c = 0; c < stride; c += LANES) *(rows_v *)(row + c) += x * *(const rows_v *)(m + c);
            }
        }
    }
    for (int64_t k = 0; k < n; k++) slot[list[k]] = -1;
    return n;
}

/* labels_spread, once it is known which of n rows each entry has. */
static void labels_spread_again(const int64_t *indptr, const int32_t *places, const float *values, int64_t T,
                                int64_t stride, const float *moments, int64_t n, float *rows) {
    memset(rows, 0, n * stride * sizeof(float));
    for (int64_t t = 0; t < T; t++) {
        const float *m = moments + t * stride;
        for (int64_t e = indptr[t]; e < indptr[t + 1]; e++) {
            float *row = rows + places[e] * stride;
            rows_v x = rows_all(values == NULL ? 1.0f : values[e]);
            for (int64_t c = 0; c < stride; c += LANES) *(rows_v *)(row + c) += x * *(const rows_v *)(m + c);
        }
    }
}

/* places, the row of each entry, become what labels_spread_noted takes where all values are 1 and tokens and rows no more
 * than LABELS_SHORT: the token of the first entry of each of n rows, then token and row of each other entry, in order.
 * scratch has room for all entries. */
static void labels_note(const int64_t *indptr, int64_t T, int64_t n, int32_t *places, int32_t *scratch) {
    int64_t first = 0, other = n;
    for (int64_t t = 0; t < T; t++)
        for (int64_t e = indptr[t]; e < indptr[t + 1]; e++) {
            if (places[e] == first)
                scratch[first++] = (int32_t)t;
            else
                scratch[other++] = (int32_t)((uint32_t)t << 16 | (uint32_t)places[e]);
        }
    memcpy(places + indptr[0], scratch, (indptr[T] - indptr[0]) * sizeof(int32_t));
}

/* labels_spread of noted entries: the first of a row is copied, the others are added. */
ROWS_INLINE void labels_spread_strips(const int32_t *noted, int64_t n, int64_t n_entries, int64_t stride,
                                      const float *moments, float *rows) {
    for (int64_t k = 0; k < n; k++)
        for (int64_t c = 0; c < stride; c += LANES)
            *(rows_v *)(rows + k * stride + c) = *(const rows_v *)(moments + noted[k] * stride + c);
    for (int64_t e = n; e < n_entries; e++) {
        float *row = rows + ((uint32_t)noted[e] & (LABELS_SHORT - 1)) * stride;
        const float *m = moments + ((uint32_t)noted[e] >> 16) * stride;
        for (int64_t c = 0; c < stride; c += LANES) *(rows_v *)(row + c) += *(const rows_v *)(m + c);
    }
}

static void labels_spread_noted(const int32_t *noted, int64_t n, int64_t n_entries, int64_t stride, const float *moments,
                                float *rows) {
    if (stride == 2 * LANES)    /* up to 16 labels, most often */
        labels_spread_strips(noted, n, n_entries, 2 * LANES, moments, rows);
    else
        labels_spread_strips(noted, n, n_entries, stride, moments, rows);
}

/* <a, b> of n floats, n a multiple of 8; -inf in a counts as a large number, for b is 0 there. */
static double labels_dot(const float *a, const float *b, int64_t n) {
    double total = 0.0;
    for (int64_t c = 0; c < n;) {
        rows_v sum = rows_all(0.0f);
        for (int64_t end = c + 8 * LANES < n ? c + 8 * LANES : n; c < end; c += LANES)
            sum += rows_max(*(const rows_v *)(a + c), rows_all(ROWS_LOWEST)) * *(const rows_v *)(b + c);
        total += rows_total(sum);
    }
    return total;
}

/* W[list[k]] += coef * rows[k]; without a list, W[k]. */
static void labels_add_rows(float *W, int64_t stride, const int32_t *list, int64_t n, const float *rows, float coef) {
    rows_v x = rows_all(coef);
    for (int64_t k = 0; k < n; k++) {
        float *row = W + (list == NULL ? k : list[k]) * stride;
        if (list != NULL && k + LABELS_AHEAD < n) rows_prefetch(W + list[k + LABELS_AHEAD] * stride, stride);
        for (int64_t c = 0; c < stride; c += LANES) *(rows_v *)(row + c) += x * *(const rows_v *)(rows + k * stride + c);
    }
}

/* W += coef sum_t x_t m_t, a row per feature of the tokens; without indptr a token's only feature is its number. */
static void labels_accumulate(double *W, int64_t stride, const int64_t *indptr, const int32_t *indices,
                              const float *values, int64_t T, const float *moments, double coef) {
    typedef float four __attribute__((vector_size(16), aligned(4), may_alias));
    typedef double wide __attribute__((vector_size(32), aligned(8), may_alias));
    for (int64_t t = 0; t < T; t++) {
        const float *m = moments + t * stride;
        int64_t stop = indptr == NULL ? t + 1 : indptr[t + 1];
        for (int64_t e = indptr == NULL ? t : indptr[t]; e < stop; e++) {
            double *row = W + (indptr == NULL ? e : indices[e]) * stride, x = values == NULL ? coef : coef * values[e];
            if (indptr != NULL && e + LABELS_AHEAD < indptr[T])
                rows_prefetch((const float *)(W + indices[e + LABELS_AHEAD] * stride), 2 * stride);
            for (int64_t c = 0; c < stride; c += 4)
                *(wide *)(row + c) += x * __builtin_convertvector(*(const four *)(m + c), wide);
        }
    }
}

#endif
