/* Sums over binary trees without rules (see spans.h), whose spans' labels do not depend on one another. With c over the
 * labels of a span, and I[w][i] over the trees of the words i .. i + w,
 *     I[w][i] = c + U[w][i],    U[w][i] = log sum_m exp(I[m][i] + I[w-1-m][i+m+1]).
 * Backwards, probabilities p of spans are shared out,
 *     p[w][i] exp(I[m][i] + I[w-1-m][i+m+1] - U[w][i])  to [m][i] and to [w-1-m][i+m+1],
 * by logs that are never above 0, so that nothing overflows. Rows are of spans of one width, and vectors of neighbours; what
 * stands behind a row's end is -inf.
 */
#ifndef STRUCTSVM_BRACKETINGS_H
#define STRUCTSVM_BRACKETINGS_H

#include <float.h>

#include "drawn.h"
#include "spans.h"

ROWS_INLINE doubles bracketings_of(const double *x) {
    doubles part;
    memcpy(&part, x, sizeof part);
    return part;
}

/* U of the spans of w + 1 words. */
ROWS_INLINE void bracketings_inside(int64_t n, int64_t stride, int64_t w, const double *I, double *U, int terms) {
    for (int64_t i = 0; i < n - w; i += DOUBLES) {
        doubles top = (doubles){0} - DBL_MAX, sum = {0};
        for (int64_t m = 0; m < w; m++)
            top = doubles_max(bracketings_of(I + m * stride + i) + bracketings_of(I + (w - 1 - m) * stride + i + m + 1), top);
        for (int64_t m = 0; m < w; m++)
            sum += doubles_exp(bracketings_of(I + m * stride + i) + bracketings_of(I + (w - 1 - m) * stride + i + m + 1) - top,
                               terms);
        for (int k = 0; k < DOUBLES && i + k < n - w; k++) U[i + k] = sum[k] > 0 ? top[k] + log(sum[k]) : -INFINITY;
    }
}

/* Share out the probabilities of the spans of w + 1 words. */
ROWS_INLINE void bracketings_outside(int64_t n, int64_t stride, int64_t w, const double *I, const double *U, double *p,
                                     int terms) {
    for (int64_t i = 0; i < n - w; i += DOUBLES) {
        doubles whole = doubles_max(bracketings_of(U + i), (doubles){0} - DBL_MAX), own = bracketings_of(p + w * stride + i);
        for (int64_t m = 0; m < w; m++) {
            int64_t left = m * stride + i, right = (w - 1 - m) * stride + i + m + 1;
            doubles share = own * doubles_exp(bracketings_of(I + left) + bracketings_of(I + right) - whole, terms), to;
            to = bracketings_of(p + left) + share;
            memcpy(p + left, &to, sizeof to);
            to = bracketings_of(p + right) + share;
            memcpy(p + right, &to, sizeof to);
        }
    }
}

/* The log of the sum over the labels of a span, whose probabilities `parts` gets. */
static double bracketings_labels(const brackets *s, int64_t i, int64_t j, void *parts) {
    int64_t K = s->K, place = (i * s->m + j) * K;
    double *row = s->tables, *e = row + K, top, sum;
    spans_load(s->scores, s->is_double, place, K, row);
    top = spans_top(row, K);
    if (top == -INFINITY) return top;
    spans_exponentials(row, top, K, s->is_double, e);
    sum = spans_sum(e, K);
    for (int64_t k = 0; k < K && parts != NULL; k++) e[k] /= sum;
    if (parts != NULL) spans_store(e, s->is_double, place, K, parts);
    return top + log(sum);
}

static int bracketing_sums(const brackets *s, double *log_z, void *parts) {
    int64_t n = s->n, K = s->K, stride = n + DOUBLES, size = n * stride, done = 0;
    double *I = s->chart, *U = I + size, *p = U + size, *row = s->tables;
    for (int64_t j = 0; j < 2 * size; j++) I[j] = -INFINITY;
    memset(p, 0, size * sizeof(double));
    for (int64_t w = 0; w < n; w++) {
        double *whole = U + w * stride;
        if (s->is_double) bracketings_inside(n, stride, w, I, whole, 13);
        else bracketings_inside(n, stride, w, I, whole, 8);
        for (int64_t i = 0; i < n - w; i++)
            I[w * stride + i] = bracketings_labels(s, i, i + w, parts) + (w > 0 ? whole[i] : 0.0);
        if (stop_count(&done, (n - w) * (2 * w + 2 * K + 8)) < 0) return -1;
    }
    *log_z = I[(n - 1) * stride];
    if (parts == NULL || *log_z == -INFINITY) return 0;
    p[(n - 1) * stride] = 1.0;
    for (int64_t w = n - 1; w >= 0; w--) {
        if (s->is_double) bracketings_outside(n, stride, w, I, U + w * stride, p, 13);
        else bracketings_outside(n, stride, w, I, U + w * stride, p, 8);
        for (int64_t i = 0; i < n - w; i++) {
            int64_t place = (i * s->m + i + w) * K;
            spans_load(parts, s->is_double, place, K, row);
            for (int64_t k = 0; k < K; k++) row[k] *= p[w * stride + i];
            spans_store(row, s->is_double, place, K, parts);
        }
        if (stop_count(&done, (n - w) * (2 * w + K)) < 0) return -1;
    }
    return 0;
}

/* Draw a tree from the root down, by the I and U that sums leave behind and 3 n uniform numbers, `step` apart. */
static int bracketing_draw(const brackets *s, const double *u, int64_t step, int32_t *y) {
    int64_t n = s->n, stride = n + DOUBLES, held = 0, done = 0;
    const double *I = s->chart, *U = I + n * stride;
    double *row = s->tables;
    int32_t *stack = s->labels;   /* first words, and widths less 1, of spans that are yet to be drawn */
    stack[held++] = 0;
    stack[held++] = (int32_t)(n - 1);
    while (held > 0) {
        int64_t w = stack[--held], i = stack[--held], m;
        spans_load(s->scores, s->is_double, (i * s->m + i + w) * s->K, s->K, row);
        double top = spans_top(row, s->K);
        for (int64_t k = 0; k < s->K; k++) row[k] = exp(row[k] - top);
        y[i * s->m + i + w] = (int32_t)drawn_place(row, s->K, *u);
        u += step;
        if (stop_count(&done, 10 * (s->K + w)) < 0) return -1;
        if (w == 0) continue;
        for (m = 0; m < w; m++) row[m] = exp(I[m * stride + i] + I[(w - 1 - m) * stride + i + m + 1] - U[w * stride + i]);
        m = drawn_place(row, w, *u);
        u += step;
        stack[held++] = (int32_t)(i + m + 1);
        stack[held++] = (int32_t)(w - 1 - m);
        stack[held++] = (int32_t)i;
        stack[held++] = (int32_t)m;
    }
    return 0;
}

#endif
