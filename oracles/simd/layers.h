/* Products of a small dense layer, in the compiler's vector extensions.
 *
 * A layer of m inputs and n outputs is m rows of `stride` floats, n rounded up to a multiple of 8, the rest 0: whole
 * vectors, and no tail.
 */
#ifndef STRUCTSVM_LAYERS_H
#define STRUCTSVM_LAYERS_H

#include "rows.h"
#include "sets.h"

typedef struct {
    void (*add)(const float *W, int64_t stride, const float *x, int64_t m, float *out);
    void (*back)(const float *W, int64_t stride, const float *y, int64_t m, float *out);
    void (*move)(float *W, int64_t stride, const float *x, int64_t m, const float *y, float step);
} layers_kernels;

KERNELS_OF(layers);

/* out += sum_a x_a W_a, four rows at a time. */
static void layer_add(const float *W, int64_t stride, const float *x, int64_t m, float *out) {
    int64_t a = 0;
    for (; a + 4 <= m; a += 4) {
        const float *row = W + a * stride;
        const rows_v x0 = rows_all(x[a]), x1 = rows_all(x[a + 1]), x2 = rows_all(x[a + 2]), x3 = rows_all(x[a + 3]);
        for (int64_t c = 0; c < stride; c += LANES)
            *(rows_v *)(out + c) += (x0 * *(const rows_v *)(row + c) + x1 * *(const rows_v *)(row + stride + c))
                                  + (x2 * *(const rows_v *)(row + 2 * stride + c) + x3 * *(const rows_v *)(row + 3 * stride + c));
    }
    for (; a < m; a++)
        for (int64_t c = 0; c < stride; c += LANES)
            *(rows_v *)(out + c) += rows_all(x[a]) * *(const rows_v *)(W + a * stride + c);
}

ROWS_INLINE float layer_sum(rows_v a) { return ((a[0] + a[4]) + (a[1] + a[5])) + ((a[2] + a[6]) + (a[3] + a[7])); }

/* out_a += <W_a, y>, four rows at a time. */
static void layer_back(const float *W, int64_t stride, const float *y, int64_t m, float *out) {
    int64_t a = 0;
    for (; a + 4 <= m; a += 4) {
        const float *row = W + a * stride;
        rows_v s0 = rows_all(0.0f), s1 = s0, s2 = s0, s3 = s0;
        for (int64_t c = 0; c < stride; c += LANES) {
            const rows_v v = *(const rows_v *)(y + c);
            s0 += v * *(const rows_v *)(row + c);
            s1 += v * *(const rows_v *)(row + stride + c);
            s2 += v * *(const rows_v *)(row + 2 * stride + c);
            s3 += v * *(const rows_v *)(row + 3 * stride + c);
        }
        out[a] += layer_sum(s0);
        out[a + 1] += layer_sum(s1);
        out[a + 2] += layer_sum(s2);
        out[a + 3] += layer_sum(s3);
    }
    for (; a < m; a++) {
        rows_v s = rows_all(0.0f);
        for (int64_t c = 0; c < stride; c += LANES) s += *(const rows_v *)(y + c) * *(const rows_v *)(W + a * stride + c);
        out[a] += layer_sum(s);
    }
}

/* W_a += step x_a y */
static void layer_move(float *W, int64_t stride, const float *x, int64_t m, const float *y, float step) {
    for (int64_t a = 0; a < m; a++) {
        const rows_v by = rows_all(step * x[a]);
        for (int64_t c = 0; c < stride; c += LANES) *(rows_v *)(W + a * stride + c) += by * *(const rows_v *)(y + c);
    }
}

#endif
