/* Greedy inference over a label sequence: each label chosen given the `order` labels before it. */
#ifndef STRUCTSVM_GREEDY_H
#define STRUCTSVM_GREEDY_H

#include "rows.h"
#include "sets.h"
#include "stop.h"

typedef struct {
    void (*score)(const float *W, int64_t stride, int64_t K, int64_t order, int64_t first, const int32_t *index,
                  const float *values, int64_t n, const int32_t *labels, int64_t t, const float *init,
                  int64_t first_pair, const int32_t *pair_index, const float *pair_values, int64_t n_pairs,
                  int32_t *rows, float *out);
    int64_t (*decode)(const float *W, int64_t stride, int64_t K, int64_t order, int64_t first, const int64_t *indptr,
                      const int32_t *indices, const float *values, int64_t T, const float *init, int64_t init_step,
                      const float *mask, int64_t first_pair, const int64_t *pair_indptr, const int32_t *pair_indices,
                      const float *pair_values, int32_t *rows, float *out, float *scores, int32_t *labels);
} greedy_kernels;

KERNELS_OF(greedy);

/* The rows of the labels before token t: lag s stands at (s - 1) (K + 1) + label, label K before the start. */
ROWS_INLINE void greedy_history(const int32_t *labels, int64_t t, int64_t order, int64_t K, int64_t first, int32_t *rows) {
    for (int64_t s = 1; s <= order; s++)
        rows[s - 1] = (int32_t)(first + (s - 1) * (K + 1) + (t >= s ? labels[t - s] : K));
}

/* out = init + the token's rows + the history's rows + those of its `n_pairs` bigrams, of which each has K from the row
 * `first_pair` on, by the label before. `labels` are those of the sequence, of which only the ones before t are read;
 * `rows` is room for `order` indices, and for `n_pairs`. */
static void greedy_score(const float *W, int64_t stride, int64_t K, int64_t order, int64_t first,
                         const int32_t *index, const float *values, int64_t n, const int32_t *labels,
                         int64_t t, const float *init, int64_t first_pair, const int32_t *pair_index,
                         const float *pair_values, int64_t n_pairs, int32_t *rows, float *out) {
    greedy_history(labels, t, order, K, first, rows);
    rows_sum(W, stride, index, values, n, init, out);
    rows_sum(W, stride, rows, NULL, order, out, out);
    if (t == 0 || n_pairs == 0) return;
    for (int64_t k = 0; k < n_pairs; k++) rows[k] = (int32_t)(first_pair + pair_index[k] * K + labels[t - 1]);
    rows_sum(W, stride, rows, pair_values, n_pairs, out, out);
}

/* Label one sequence left to right on its own predictions. init + t * init_step is token t's row of 0 and
 * -inf; mask (or NULL) has a row per label before, then one for the first token, one for the last; pair_indptr is NULL
 * where there are no bigrams.
 * Returns the first token at which no label may stand, -1 (none), or -2 (see stop.h). */
static int64_t greedy_decode(const float *W, int64_t stride, int64_t K, int64_t order, int64_t first,
                             const int64_t *indptr, const int32_t *indices, const float *values, int64_t T,
                             const float *init, int64_t init_step, const float *mask, int64_t first_pair,
                             const int64_t *pair_indptr, const int32_t *pair_indices, const float *pair_values,
                             int32_t *rows, float *out, float *scores, int32_t *labels) {
    int64_t work = 0;
    for (int64_t t = 0; t < T; t++) {
        float best;
        int64_t a = indptr[t], b = pair_indptr == NULL ? 0 : pair_indptr[t];
        int64_t n_pairs = pair_indptr == NULL ? 0 : pair_indptr[t + 1] - b;
        greedy_score(W, stride, K, order, first, indices + a, values == NULL ? NULL : values + a,
                     indptr[t + 1] - a, labels, t, init + t * init_step, first_pair,
                     pair_indices == NULL ? NULL : pair_indices + b, pair_values == NULL ? NULL : pair_values + b, n_pairs,
                     rows, out);
        if (mask != NULL) {
            const float *m = mask + (t > 0 ? labels[t - 1] : K) * stride, *l = mask + (K + 1) * stride;
            for (int64_t j = 0; j < stride; j += LANES)
                *(rows_v *)(out + j) += *(const rows_v *)(m + j)
                                      + (t == T - 1 ? *(const rows_v *)(l + j) : rows_all(0.0f));
        }
        if (scores != NULL) memcpy(scores + t * stride, out, stride * sizeof(float));
        int64_t c = rows_argmax(out, NULL, stride, &best);
        labels[t] = (int32_t)(c < K ? c : K - 1);
        if (!(best > -INFINITY)) return t;
        if (stop_count(&work, (indptr[t + 1] - a + order + n_pairs + 4) * stride / LANES + 16) < 0) return -2;
    }
    return -1;
}

#endif
