/* The best projective tree with one word below the root: Eisner's chart (1996), in O(n^3), and sums over all such trees.
 *
 * Of words i .. j, i the head:  open_right(i, j) = s(i, j) + middle(i, j),  closed_right(i, j) = max_k open_right(i, k) +
 * closed_right(k, j); the same to the left; middle(i, j) = max_k closed_right(i, k) + closed_left(k + 1, j). In the end
 * max_r s(0, r) + closed_left(1, r) + closed_right(r, n).
 *
 * Each table is kept by rows in which k runs, so that a maximum is one over contiguous numbers. What is not computed yet
 * is -inf, and a vector may read on into it; rows are padded for that.
 */
#ifndef STRUCTSVM_EISNER_H
#define STRUCTSVM_EISNER_H

#include "rows.h"
#include "stop.h"

enum { EISNER_OK = 0, EISNER_NO_TREE = 1, EISNER_TABLES = 6 };

ROWS_INLINE int64_t eisner_stride(int64_t n) { return (n + 1 + 2 * LANES) / LANES * LANES; }

/* Floats of the chart of n words. */
ROWS_INLINE int64_t eisner_size(int64_t n) { return EISNER_TABLES * (n + 1) * eisner_stride(n); }

typedef struct {
    int64_t n, stride;
    const float *scores;        /* [h (n + 1) + m] */
    float *right, *right_by_end, *left, *left_by_end; /* closed: [i stride + k], of which k is the other end */
    float *open_right, *open_left; /* open_right by its start, open_left by its end, its head */
} eisner_chart;

ROWS_INLINE float eisner_max(const float *a, const float *b, int64_t n) { return rows_top(rows_tops(a, b, n)); }

ROWS_INLINE int64_t eisner_argmax(const float *a, const float *b, int64_t n) {
    int64_t best = 0;
    for (int64_t k = 1; k < n; k++)
        if (a[k] + b[k] > a[best] + b[best]) best = k;
    return best;
}

ROWS_INLINE eisner_chart eisner_tables(int64_t n, const float *scores, float *memory) {
    eisner_chart c = {.n = n, .stride = eisner_stride(n), .scores = scores};
    int64_t size = (n + 1) * c.stride;
    c.right = memory;
    c.right_by_end = memory + size;
    c.left = memory + 2 * size;
    c.left_by_end = memory + 3 * size;
    c.open_right = memory + 4 * size;
    c.open_left = memory + 5 * size;
    return c;
}

static void eisner_unfold(const eisner_chart *c, int64_t root, int32_t *stack, int32_t *heads) {
    /* Items (i, j, kind): 0 closed right, 1 closed left, 2 open right, 3 open left. */
    int64_t size = 0, S = c->stride;
#define EISNER_PUSH(a, b, kind) (stack[3 * size] = (int32_t)(a), stack[3 * size + 1] = (int32_t)(b), stack[3 * size + 2] = (kind), size++)
    heads[root - 1] = 0;
    EISNER_PUSH(1, root, 1);
    EISNER_PUSH(root, c->n, 0);
    while (size > 0) {
        size--;
        int64_t i = stack[3 * size], j = stack[3 * size + 1], k;
        if (i == j) continue;
        switch (stack[3 * size + 2]) {
        case 0:
            k = i + 1 + eisner_argmax(c->open_right + i * S + i + 1, c->right_by_end + j * S + i + 1, j - i);
            EISNER_PUSH(i, k, 2);
            EISNER_PUSH(k, j, 0);
            break;
        case 1:
            k = i + eisner_argmax(c->left + i * S + i, c->open_left + j * S + i, j - i);
            EISNER_PUSH(i, k, 1);
            EISNER_PUSH(k, j, 3);
            break;
        default:
            if (stack[3 * size + 2] == 2) heads[j - 1] = (int32_t)i;
            else heads[i - 1] = (int32_t)j;
            k = i + eisner_argmax(c->right + i * S + i, c->left_by_end + j * S + i + 1, j - i);
            EISNER_PUSH(i, k, 0);
            EISNER_PUSH(k + 1, j, 1);
        }
    }
#undef EISNER_PUSH
}

/* The heads of words 1 .. n; `memory` has room for eisner_size(n), `stack` for 3 (2 n + 2). Returns EISNER_OK,
 * EISNER_NO_TREE if all trees score -inf, or -1 once `stop_poll` has. */
static int eisner_best(int64_t n, const float *scores, float *memory, int32_t *stack, int32_t *heads, float *best) {
    eisner_chart c = eisner_tables(n, scores, memory);
    int64_t S = c.stride, work = 0, root = 0;
    for (int64_t i = 0; i < EISNER_TABLES * (n + 1); i++) {
        for (int64_t k = 0; k < S; k++) memory[i * S + k] = -INFINITY;
        if (stop_count(&work, S) < 0) return -1;
    }
    for (int64_t i = 1; i <= n; i++) c.right[i * S + i] = c.right_by_end[i * S + i] = c.left[i * S + i] = c.left_by_end[i * S + i] = 0.0f;
    for (int64_t width = 1; width < n; width++) {
        for (int64_t i = 1, j = i + width; j <= n; i++, j++) {
            float middle = eisner_max(c.right + i * S + i, c.left_by_end + j * S + i + 1, width);
            c.open_right[i * S + j] = middle + scores[i * (n + 1) + j];
            c.open_left[j * S + i] = middle + scores[j * (n + 1) + i];
            float right = eisner_max(c.open_right + i * S + i + 1, c.right_by_end + j * S + i + 1, width);
            float left = eisner_max(c.left + i * S + i, c.open_left + j * S + i, width);
            c.right[i * S + j] = c.right_by_end[j * S + i] = right;
            c.left[i * S + j] = c.left_by_end[j * S + i] = left;
        }
        if (stop_count(&work, (n - width) * (width / 2 + 20)) < 0) return -1;
    }
    *best = -INFINITY;
    for (int64_t r = 1; r <= n; r++) {
        float total = scores[r] + c.left[S + r] + c.right[r * S + n];
        if (total > *best) {
            *best = total;
            root = r;
        }
    }
    if (root == 0) return EISNER_NO_TREE;
    eisner_unfold(&c, root, stack, heads);
    return EISNER_OK;
}

/* ---- sums ---- */

/* log sum_k exp(a_k + b_k), steps apart; -inf of nothing. */
static double eisner_log_sum(const double *a, int64_t step_a, const double *b, int64_t step_b, int64_t n) {
    double top = -INFINITY, total = 0.0;
    for (int64_t k = 0; k < n; k++) top = fmax(top, a[k * step_a] + b[k * step_b]);
    if (!(top > -INFINITY)) return top;
    for (int64_t k = 0; k < n; k++) total += exp(a[k * step_a] + b[k * step_b] - top);
    return top + log(total);
}

/* Spread the gradient of a sum's value over its terms: each gets `gradient` times its share. */
static void eisner_share(const double *a, double *da, int64_t step_a, const double *b, double *db, int64_t step_b, int64_t n,
                         double value, double gradient) {
    if (gradient == 0.0) return;
    for (int64_t k = 0; k < n; k++) {
        double part = gradient * exp(a[k * step_a] + b[k * step_b] - value);
        da[k * step_a] += part;
        db[k * step_b] += part;
    }
}

/* Doubles that `eisner_sums` needs. */
ROWS_INLINE int64_t eisner_sums_size(int64_t n) { return 10 * (n + 1) * (n + 1); }

/* log sum over all trees of exp(score), and the probability of each arc: the gradient, by going back through the inside
 * sums. (An item is at [i (n + 1) + j].) Returns 0, or -1 once `stop_poll` has; log_sum is -inf where there is no tree. */
static int eisner_sums(int64_t n, const double *scores, double *memory, double *log_sum, double *arcs) {
    int64_t N = n + 1, size = N * N, work = 0;
    double *right = memory, *left = right + size, *open_right = left + size, *open_left = open_right + size, *middle = open_left + size;
    double *d_right = middle + size, *d_left = d_right + size, *d_open_right = d_left + size, *d_open_left = d_open_right + size;
    double *d_middle = d_open_left + size;
    for (int64_t i = 0; i < 10 * N; i++) {
        for (int64_t k = 0; k < N; k++) memory[i * N + k] = i < 5 * N ? -INFINITY : 0.0;
        if (stop_count(&work, N) < 0) return -1;
    }
    for (int64_t k = 0; k < size; k++) arcs[k] = 0.0;
    for (int64_t i = 1; i <= n; i++) right[i * N + i] = left[i * N + i] = 0.0;
    for (int64_t width = 1; width < n; width++) {
        for (int64_t i = 1, j = i + width; j <= n; i++, j++) {
            middle[i * N + j] = eisner_log_sum(right + i * N + i, 1, left + (i + 1) * N + j, N, width);
            open_right[i * N + j] = middle[i * N + j] + scores[i * N + j];
            open_left[i * N + j] = middle[i * N + j] + scores[j * N + i];
            right[i * N + j] = eisner_log_sum(open_right + i * N + i + 1, 1, right + (i + 1) * N + j, N, width);
            left[i * N + j] = eisner_log_sum(left + i * N + i, 1, open_left + i * N + j, N, width);
        }
        if (stop_count(&work, (n - width) * width * 60) < 0) return -1;
    }
    double top = -INFINITY, total = 0.0;
    for (int64_t r = 1; r <= n; r++) top = fmax(top, scores[r] + left[N + r] + right[r * N + n]);
    *log_sum = top;
    if (!(top > -INFINITY)) return 0;
    for (int64_t r = 1; r <= n; r++) total += exp(scores[r] + left[N + r] + right[r * N + n] - top);
    *log_sum = top + log(total);
    for (int64_t r = 1; r <= n; r++) {
        arcs[r] = exp(scores[r] + left[N + r] + right[r * N + n] - *log_sum);
        d_left[N + r] += arcs[r];
        d_right[r * N + n] += arcs[r];
    }
    for (int64_t width = n - 1; width > 0; width--) {
        for (int64_t i = 1, j = i + width; j <= n; i++, j++) {
            int64_t at = i * N + j;
            eisner_share(open_right + i * N + i + 1, d_open_right + i * N + i + 1, 1, right + (i + 1) * N + j,
                         d_right + (i + 1) * N + j, N, width, right[at], d_right[at]);
            eisner_share(left + i * N + i, d_left + i * N + i, 1, open_left + at, d_open_left + at, N, width, left[at], d_left[at]);
            arcs[i * N + j] = d_open_right[at];
            arcs[j * N + i] = d_open_left[at];
            d_middle[at] = d_open_right[at] + d_open_left[at];
            eisner_share(right + i * N + i, d_right + i * N + i, 1, left + (i + 1) * N + j, d_left + (i + 1) * N + j, N, width,
                         middle[at], d_middle[at]);
        }
        if (stop_count(&work, (n - width) * width * 60) < 0) return -1;
    }
    return 0;
}

#endif
