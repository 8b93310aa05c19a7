/* The mean pairwise hinge over a bag of labels (Bordes 2010, section 6.1.2).
 *
 * Labels are 0 .. K - 1; a bag Y holds m of them and leaves out r = K - m. Under scores s the loss is
 *
 *     L = 1 / (m r) sum_{y in Y} sum_{z not in Y} [1 - s_y + s_z]_+
 *       = max_c 1 / (m r) sum_{y, z} c_yz (1 - s_y + s_z),        c in {0, 1}^(m r).
 *
 * The maximising corner has c_yz = 1 where s_z + 1 > s_y. All that the constraint needs of it are its sums
 *
 *     count_y = sum_z c_yz for y in Y,    count_z = - sum_y c_yz for z not in Y,
 *
 * for then psi = 1 / (m r) sum_k count_k Phi(x, k) and b = 1 / (m r) sum_{y in Y} count_y.
 */
#ifndef STRUCTSVM_BAGS_H
#define STRUCTSVM_BAGS_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct {
    double score;
    int32_t label;
} bags_item;

/* Weights lie feature by feature: w[f * K + k] is that of feature f for label k. */
static inline void bags_scores(const double *restrict w, int64_t K, const int32_t *index, const double *value,
                               int64_t n, double *restrict out) {
    typedef double lanes __attribute__((vector_size(32), aligned(8), may_alias));
    for (int64_t k = 0; k < K; k++) out[k] = 0.0;
    for (int64_t e = 0; e < n; e++) {
        const double *restrict row = w + index[e] * K;
        const double x = value[e];
        int64_t k = 0;
        for (; k + 4 <= K; k += 4) *(lanes *)(out + k) += x * *(const lanes *)(row + k);
        for (; k < K; k++) out[k] += x * row[k];
    }
}

/* w += sum_k amounts_k Phi(x, k) */
static inline void bags_add(double *restrict w, int64_t K, const int32_t *index, const double *value, int64_t n,
                            const double *restrict amounts) {
    typedef double lanes __attribute__((vector_size(32), aligned(8), may_alias));
    for (int64_t e = 0; e < n; e++) {
        double *restrict row = w + index[e] * K;
        const double x = value[e];
        int64_t k = 0;
        for (; k + 4 <= K; k += 4) *(lanes *)(row + k) += x * *(const lanes *)(amounts + k);
        for (; k < K; k++) row[k] += x * amounts[k];
    }
}

static inline int bags_compare(const void *a, const void *b) {
    const double x = ((const bags_item *)a)->score, y = ((const bags_item *)b)->score;
    return (x > y) - (x < y);
}

static inline void bags_sort(bags_item *items, int64_t n) {
    if (n > 24) {
        qsort(items, n, sizeof(bags_item), bags_compare);
        return;
    }
    for (int64_t k = 1; k < n; k++) {
        const bags_item item = items[k];
        int64_t at = k;
        for (; at > 0 && items[at - 1].score > item.score; at--) items[at] = items[at - 1];
        items[at] = item;
    }
}

/* The maximising corner. `bag` holds m distinct labels, ascending, 0 < m < K; `items` has room for K.
 * Fills count (K numbers) and `pairs` = sum_{y in Y} count_y; returns m r L, NaN if a score is not finite.
 *
 * With both sides in ascending order of their scores, the z that do not violate with y are those before a place
 * p(y) that only moves forward: count_y is what is left behind p(y), |count_z| the number of y before p passes z.
 */
static inline double bags_corner(const double *score, int64_t K, const int32_t *bag, int64_t m, bags_item *items,
                                 int32_t *count, int64_t *pairs) {
    bags_item *inside = items, *outside = items + m;
    int64_t next = 0, left = 0, p = 0;
    double total = 0.0, finite = 0.0, least = INFINITY;
    for (int64_t j = 0; j < m; j++)
        if (score[bag[j]] < least) least = score[bag[j]];
    for (int64_t k = 0; k < K; k++) {
        finite += 0.0 * score[k];
        count[k] = 0;
        if (next < m && bag[next] == k)
            inside[next++] = (bags_item){score[k], (int32_t)k};
        else if (score[k] + 1.0 > least)        /* the others violate with no label of the bag */
            outside[left++] = (bags_item){score[k], (int32_t)k};
    }
    *pairs = 0;
    if (finite != 0.0) return NAN;
    bags_sort(inside, m);
    bags_sort(outside, left);
    for (int64_t j = 0; j < m; j++) {
        for (; p < left && !(outside[p].score + 1.0 > inside[j].score); p++) {
            count[outside[p].label] = -(int32_t)j;
            total += j * outside[p].score;
        }
        count[inside[j].label] = (int32_t)(left - p);
        total += (left - p) * (1.0 - inside[j].score);
        *pairs += left - p;
    }
    for (; p < left; p++) {
        count[outside[p].label] = -(int32_t)m;
        total += m * outside[p].score;
    }
    return total;
}

#endif
