/* Binary trees over labelled spans (see spans.h). With I[i][j][a] over the trees of words i .. j whose root is labelled a,
 *     I[i][j][a] = scores[i][j][a] + (+)_bc (rules[a][b][c] + (+)_m I[i][m][b] + I[m+1][j][c]),
 * pairs (b, c) of labels first, so that a span costs n S S + S S S; without rules, S = 1 and a span has its best label,
 * and sums are those of bracketings.h. Sums hold exp(I[i][j]) = v exp(scale), v summing to 1, and take an exponential per span and m. Backwards, O is
 * the derivative of log Z by v, and v O the probability.
 */
#ifndef STRUCTSVM_BRACKETS_H
#define STRUCTSVM_BRACKETS_H

#include "bracketings.h"

/* Room of sums: of all spans, and of one. */
typedef struct {
    double *v, *O, *D, *scale, *turned_scale;                     /* D: derivative of v, unscaled, by the sum over pairs */
    double *table, *turned, *pairs, *Q, *QT, *seen, *x, *f, *row, *out, *w;
    double shift;
    int masked;
} brackets_room;

SPANS_RARE void brackets_begin(const brackets *s, brackets_room *h) {
    int64_t n = s->n, S = s->S, all = n * n * S;
    h->v = s->chart, h->O = h->v + all, h->D = h->O + all, h->scale = h->D + all;
    h->turned_scale = h->scale + n * n;
    h->table = s->tables, h->turned = h->table + S * S * S, h->pairs = h->turned + S * S * S, h->Q = h->pairs + S * S;
    h->QT = h->Q + S * S, h->seen = h->QT + S * S, h->x = h->seen + S * S, h->f = h->x + n;
    h->row = h->f + n, h->out = h->row + s->K, h->w = h->out + s->K;
    spans_table(s->rules, S * S * S, h->table, &h->shift, &h->masked);
    for (int64_t a = 0; a < S; a++)
        for (int64_t p = 0; p < S * S; p++) h->turned[p * S + a] = h->table[a * S * S + p];
}

/* f[m - i] = exp(the scales of (i, m) and (m + 1, j) - their greatest), which is returned. */
SPANS_CALLED double brackets_splits(const brackets *s, const brackets_room *h, int64_t i, int64_t j) {
    for (int64_t m = i; m < j; m++) h->x[m - i] = h->scale[i * s->n + m] + h->turned_scale[j * s->n + m + 1];
    double top = spans_top(h->x, j - i);
    if (top > -INFINITY) spans_exponentials(h->x, top, j - i, s->is_double, h->f);
    return top;
}

/* pairs[b][c] = sum_m f[m] v[i][m][b] v[m+1][j][c] */
SPANS_CALLED void brackets_pairs(const brackets *s, const brackets_room *h, int64_t i, int64_t j) {
    int64_t n = s->n, S = s->S;
    memset(h->pairs, 0, S * S * sizeof(double));
    for (int64_t m = i; m < j; m++) {
        const double *left = h->v + (i * n + m) * S, *right = h->v + ((m + 1) * n + j) * S;
        for (int64_t b = 0; b < S; b++)
            if (left[b] != 0) spans_add(h->f[m - i] * left[b], right, S, h->pairs + b * S);
    }
}

/* Whether a label of (i, j) that can be reached is lost. */
SPANS_RARE int brackets_lost(const brackets *s, const brackets_room *h, int64_t i, int64_t j, const double *v, double sum) {
    int64_t n = s->n, S = s->S, small = 0;
    uint8_t *seen = (uint8_t *)h->seen;
    for (int64_t a = 0; a < S; a++) small |= h->row[a] > -INFINITY && v[a] < SPANS_LEAST * (1 + sum);
    if (!small || i == j) return small && i == j;
    memset(seen, 0, S * S);
    for (int64_t m = i; m < j; m++) {
        const double *left = h->v + (i * n + m) * S, *right = h->v + ((m + 1) * n + j) * S;
        for (int64_t b = 0; b < S; b++)
            for (int64_t c = 0; c < S && left[b] > 0; c++) seen[b * S + c] |= right[c] > 0;
    }
    for (int64_t p = 0; p < S * S; p++)
        for (int64_t a = 0; a < S && seen[p]; a++)
            if (s->rules[a * S * S + p] > -INFINITY && h->row[a] > -INFINITY && v[a] < SPANS_LEAST * (1 + sum)) return 1;
    return 0;
}

/* v of span (i, j) with its scale. 1 if a label is lost. */
static int brackets_span(const brackets *s, const brackets_room *h, int64_t i, int64_t j) {
    int64_t n = s->n, S = s->S, K = s->K, at = i * n + j, place = (i * s->m + j) * K;
    double *v = h->v + at * S, *D = h->D + at * S, top = 0.0, sum = 0.0;
    for (int64_t a = 0; a < S; a++) h->out[a] = i == j, v[a] = D[a] = 0.0;
    h->scale[at] = h->turned_scale[j * n + i] = -INFINITY;
    if (i < j) {
        top = brackets_splits(s, h, i, j);
        if (top == -INFINITY) return 0;
        brackets_pairs(s, h, i, j);
        for (int64_t p = 0; p < S * S; p++)
            if (h->pairs[p] != 0) spans_add(h->pairs[p], h->turned + p * S, S, h->out);
        top += h->shift;
    }
    spans_load(s->scores, s->is_double, place, K, h->row);
    double best = spans_top(h->row, K);
    if (best == -INFINITY) return 0;
    spans_exponentials(h->row, best, K, s->is_double, h->w);
    for (int64_t a = 0; a < S; a++) sum += v[a] = h->out[a] * h->w[a];
    if (h->masked && brackets_lost(s, h, i, j, v, sum)) return 1;
    if (sum == 0.0) return 0;
    for (int64_t a = 0; a < S; a++) v[a] /= sum, D[a] = h->w[a] / sum;
    h->scale[at] = h->turned_scale[j * n + i] = top + best + log(sum);
    return 0;
}

/* The derivatives by what stands below span (i, j), and the expected rules over it. 1 where numbers grow too great. */
static int brackets_below(const brackets *s, const brackets_room *h, int64_t i, int64_t j, double *rules) {
    int64_t n = s->n, S = s->S, at = i * n + j;
    for (int64_t a = 0; a < S; a++) {
        h->w[a] = h->O[at * S + a] * h->D[at * S + a];
        if (!(h->w[a] <= 1e290)) return 1;
    }
    brackets_splits(s, h, i, j);
    memset(h->Q, 0, S * S * sizeof(double));
    brackets_pairs(s, h, i, j);
    for (int64_t a = 0; a < S; a++) {
        if (h->w[a] == 0) continue;
        spans_add(h->w[a], h->table + a * S * S, S * S, h->Q);
        spans_add(h->w[a], h->pairs, S * S, rules + a * S * S);
    }
    for (int64_t b = 0; b < S; b++)
        for (int64_t c = 0; c < S; c++) h->QT[c * S + b] = h->Q[b * S + c];
    for (int64_t m = i; m < j; m++) {
        int64_t l = (i * n + m) * S, r = ((m + 1) * n + j) * S;
        for (int64_t b = 0; b < S; b++) {
            if (h->v[l + b] != 0) spans_add(h->f[m - i] * h->v[l + b], h->Q + b * S, S, h->O + r);
            if (h->v[r + b] != 0) spans_add(h->f[m - i] * h->v[r + b], h->QT + b * S, S, h->O + l);
        }
    }
    return 0;
}

/* Probabilities of the labels of span (i, j). */
static void brackets_part(const brackets *s, const brackets_room *h, int64_t i, int64_t j, void *parts) {
    int64_t S = s->S, at = (i * s->n + j) * S;
    for (int64_t k = 0; k < S; k++) h->row[k] = h->v[at + k] * h->O[at + k];
    spans_store(h->row, s->is_double, (i * s->m + j) * S, S, parts);
}

static int bracket_sums(const brackets *s, double *log_z, void *parts, double *rules) {
    int64_t n = s->n, S = s->S, done = 0;
    brackets_room h;
    if (s->rules == NULL) return bracketing_sums(s, log_z, parts);
    brackets_begin(s, &h);
    for (int64_t width = 0; width < n; width++)
        for (int64_t i = 0; i + width < n; i++) {
            if (brackets_span(s, &h, i, i + width)) return 1;
            if (stop_count(&done, width * (8 + S * S / 2) + S * S * S / 2 + s->K) < 0) return -1;
        }
    *log_z = h.scale[n - 1];
    if (parts == NULL || *log_z == -INFINITY) return 0;
    memset(h.O, 0, n * n * S * sizeof(double));
    memset(rules, 0, S * S * S * sizeof(double));
    for (int64_t a = 0; a < S; a++) h.O[(n - 1) * S + a] = 1.0;
    for (int64_t width = n - 1; width >= 0; width--)
        for (int64_t i = 0; i + width < n; i++) {
            if (width > 0 && h.scale[i * n + i + width] > -INFINITY && brackets_below(s, &h, i, i + width, rules)) return 1;
            brackets_part(s, &h, i, i + width, parts);
            if (stop_count(&done, width * (8 + S * S) + S * S * S + s->K) < 0) return -1;
        }
    for (int64_t j = 0; j < S * S * S; j++) rules[j] *= h.table[j];
    return 0;
}

/* The best score of each pair of labels below span (i, j), over the splits. */
static void brackets_best_pairs(const brackets *s, const double *V, int64_t i, int64_t j, double *pairs) {
    int64_t n = s->n, S = s->S;
    for (int64_t p = 0; p < S * S; p++) pairs[p] = -INFINITY;
    for (int64_t m = i; m < j; m++) {
        const double *left = V + (i * n + m) * S, *right = V + ((m + 1) * n + j) * S;
        for (int64_t b = 0; b < S; b++)
            for (int64_t c = 0; c < S; c++) {
                double x = left[b] + right[c];
                pairs[b * S + c] = x > pairs[b * S + c] ? x : pairs[b * S + c];
            }
    }
}

/* The best tree, from the root on; of several the one with the first labels below and the first end of the left one. */
SPANS_RARE void brackets_trace(const brackets *s, const double *V, int32_t *y) {
    int64_t n = s->n, S = s->S;
    int32_t *stack = s->labels + n * n, *top = stack;
    int64_t root = 0;
    for (int64_t a = 1; a < S; a++) root = V[(n - 1) * S + a] > V[(n - 1) * S + root] ? a : root;
    *top++ = 0, *top++ = (int32_t)(n - 1), *top++ = (int32_t)root;
    while (top > stack) {
        int64_t a = *--top, j = *--top, i = *--top, split = i, pair = 0;
        double best = -INFINITY;
        y[i * s->m + j] = s->rules == NULL ? s->labels[i * n + j] : (int32_t)a;
        for (int64_t p = 0; p < S * S && i < j; p++)
            for (int64_t m = i; m < j; m++) {
                double x = V[(i * n + m) * S + p / S] + V[((m + 1) * n + j) * S + p % S];
                if (s->rules != NULL) x += s->rules[a * S * S + p];
                if (x > best) best = x, split = m, pair = p;
            }
        if (i == j) continue;
        *top++ = (int32_t)(split + 1), *top++ = (int32_t)j, *top++ = (int32_t)(pair % S);
        *top++ = (int32_t)i, *top++ = (int32_t)split, *top++ = (int32_t)(pair / S);
    }
}

/* y has the label of each span of the tree at (i, j); other places keep their values. */
static int bracket_best(const brackets *s, double *value, int32_t *y) {
    int64_t n = s->n, S = s->S, K = s->K, done = 0;
    double *V = s->chart, *turned = s->tables, *pairs = turned + S * S * S, *row = pairs + S * S;
    for (int64_t a = 0; a < S && s->rules != NULL; a++)
        for (int64_t p = 0; p < S * S; p++) turned[p * S + a] = s->rules[a * S * S + p];
    for (int64_t width = 0; width < n; width++)
        for (int64_t i = 0; i + width < n; i++) {
            int64_t j = i + width, label = 0;
            double *now = V + (i * n + j) * S;
            for (int64_t a = 0; a < S; a++) now[a] = i == j ? 0.0 : -INFINITY;
            brackets_best_pairs(s, V, i, j, pairs);
            for (int64_t p = 0; p < S * S && i < j; p++)
                for (int64_t a = 0; a < S; a++) {
                    double x = s->rules == NULL ? pairs[p] : pairs[p] + turned[p * S + a];
                    now[a] = x > now[a] ? x : now[a];
                }
            spans_load(s->scores, s->is_double, (i * s->m + j) * K, K, row);
            for (int64_t k = 1; k < K; k++) label = row[k] > row[label] ? k : label;
            if (s->rules == NULL) s->labels[i * n + j] = (int32_t)label, now[0] += row[label];
            else for (int64_t a = 0; a < S; a++) now[a] += row[a];
            if (stop_count(&done, width * (1 + S * S / 2) + S * S * S / 2 + K) < 0) return -1;
        }
    *value = spans_top(V + (n - 1) * S, S);
    if (*value == -INFINITY) return 1;
    brackets_trace(s, V, y);
    return 0;
}

#endif
