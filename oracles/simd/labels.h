/* Rows of label weights, which all decoders of label sequences share: the lattice, and the moments of the log loss. */
#ifndef STRUCTSVM_LABELS_H
#define STRUCTSVM_LABELS_H

#include "rows.h"
#include "sets.h"

typedef struct {
    void (*fill)(const float *W, int64_t stride, const int64_t *indptr, const int32_t *indices, const float *values,
                 int64_t T, const float *init, int64_t init_step, float *E);
    int64_t (*spread)(const int64_t *indptr, const int32_t *indices, const float *values, int64_t T, int64_t stride,
                      const float *moments, int32_t *slot, int32_t *list, float *rows);
    double (*dot)(const float *a, const float *b, int64_t n);
    void (*add_rows)(float *W, int64_t stride, const int32_t *list, int64_t n, const float *rows, float coef);
    void (*add_rows_exactly)(double *W, int64_t stride, const int32_t *list, int64_t n, const float *rows, double coef);
} labels_kernels;

KERNELS_OF(labels);

/* sum_t x_t m_t over the tokens' features: rows[k] is the sum of the feature list[k]; returns how many there are. slot
 * holds a number for each feature, -1 between two calls, and the numbers of the features of this list after one. */
static int64_t labels_spread(const int64_t *indptr, const int32_t *indices, const float *values, int64_t T,
                             int64_t stride, const float *moments, int32_t *slot, int32_t *list, float *rows) {
    int64_t n = 0;
    for (int64_t t = 0; t < T; t++) {
        const float *m = moments + t * stride;
        for (int64_t e = indptr[t]; e < indptr[t + 1]; e++) {
            float *row;
            if (slot[indices[e]] < 0) {
                slot[indices[e]] = (int32_t)n;
                list[n] = indices[e];
                row = rows + n++ * stride;
                memset(row, 0, stride * sizeof(float));
            } else {
                row = rows + slot[indices[e]] * stride;
            }
            rows_v x = rows_all(values == NULL ? 1.0f : values[e]);
            for (int64_t c = 0; c < stride; c += LANES) *(rows_v *)(row + c) += x * *(const rows_v *)(m + c);
        }
    }
    for (int64_t k = 0; k < n; k++) slot[list[k]] = -1;
    return n;
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
        if (list != NULL && k + 8 < n) rows_prefetch(W + list[k + 8] * stride, stride);
        for (int64_t c = 0; c < stride; c += LANES) *(rows_v *)(row + c) += x * *(const rows_v *)(rows + k * stride + c);
    }
}

/* The same in double. */
static void labels_add_rows_exactly(double *W, int64_t stride, const int32_t *list, int64_t n, const float *rows,
                                    double coef) {
    typedef double wide __attribute__((vector_size(64), aligned(8), may_alias));
    for (int64_t k = 0; k < n; k++) {
        double *row = W + (list == NULL ? k : list[k]) * stride;
        if (list != NULL && k + 8 < n) rows_prefetch((const float *)(W + list[k + 8] * stride), 2 * stride);
        for (int64_t c = 0; c < stride; c += LANES)
            *(wide *)(row + c) += coef * __builtin_convertvector(*(const rows_v *)(rows + k * stride + c), wide);
    }
}

#endif
