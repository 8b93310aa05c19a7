/* Sums over binary trees without rules (see spans.h), whose spans' labels do not depend on one another. With e the sum over
 * the labels of a span, of exp(score - what is greatest), P[w][i] over the trees of the words i .. i + w, and one e for each
 * node but the words, which are 1,
 *     P[w][i] = e[w][i] sum_m P[m][i] P[w-1-m][i+m+1].
 * Backwards, with G the derivatives of log Z by P, and q = G e,
 *     G[w][i] = sum_m q[w+1+m][i] P[m][i+w+1] + q[w+1+m][i-m-1] P[m][i-m-1],
 * and the probability of a span is G P. A tree of w + 1 words has w nodes, so that all of a row's numbers can be scaled by a
 * power of the same number: e is shrunk or raised when a row leaves the range. Numbers that may matter are between
 * TREES_LEAST and its inverse, so that no product is lost; otherwise the same is summed in logs, I = log P, with an exponential
 * per term. There a score may be so great that I has no place for the log of a sum: I has two parts, the second one what
 * the sum in the first has lost, and shares of a span are divided by their own sum. Rows are of spans of one width, and
 * vectors of neighbours; what stands behind a row's end is 0, and in logs -inf. Numbers before the first row are 0, too.
 */
#ifndef STRUCTSVM_BRACKETINGS_H
#define STRUCTSVM_BRACKETINGS_H

#include <float.h>

#include "drawn.h"
#include "spans.h"

#define BRACKETINGS_LEAST 1e-150
#define BRACKETINGS_CALM 1e-30     /* rows whose greatest number is less, or more than its inverse, are scaled */

/* Rows of numbers, `stride` apart: P, or I; e, or the greatest term of a span; q, or probabilities; sums over labels by
 * their greatest score, and at last probabilities over them, or the second part of I; for logs the second part of the greatest
 * term, and the sums of all terms' exponentials over its own. `terms` are the exponentials of all scores. */
typedef struct {
    int64_t stride;
    double *P, *e, *q, *sums, *rests, *wholes;
    void *terms;
} bracketings;

enum { BRACKETINGS_FRONT = 8 };    /* numbers before the first row; the first of them is 1 if there are logs */

static bracketings bracketings_of(const brackets *s) {
    int64_t stride = s->n + 8, size = s->n * stride;
    double *P = s->chart + BRACKETINGS_FRONT;
    return (bracketings){stride, P, P + size, P + 2 * size, P + 3 * size, P + 4 * size, P + 5 * size, s->terms};
}

ROWS_INLINE doubles doubles_at(const double *x) {
    doubles part;
    memcpy(&part, x, sizeof part);
    return part;
}

ROWS_INLINE void doubles_put(double *x, doubles part) { memcpy(x, &part, sizeof part); }

/* ---- sums over the labels of spans: floats in floats, a vector of them at a time ---- */

#define BRACKETINGS_NEAR 1e-6f      /* sums over labels that are less, after a row's greatest score, are taken by themselves */

/* A vector of scores of which `many` are there; -inf behind them. */
ROWS_INLINE rows_part bracketings_scores(const float *x, int64_t many) {
    rows_part part = part_all(-INFINITY);
    if (many >= PART) return *(const rows_part *)x;
    for (int64_t k = 0; k < many; k++) part[k] = x[k];
    return part;
}

/* to = exp(x - max x). What is written behind the end is written again, or not read. Returns max x. */
static float bracketings_exponentials(const float *x, int64_t n, float *to) {
    rows_part tops = part_all(-INFINITY);
    for (int64_t k = 0; k < n; k += PART) tops = rows_part_max(bracketings_scores(x + k, n - k), tops);
    tops = PART_REDUCED(tops, rows_part_max);
    for (int64_t k = 0; k < n; k += PART) *(rows_part *)(to + k) = part_exp(bracketings_scores(x + k, n - k) - tops);
    return tops[0];
}

/* The sum of n numbers; `last` has the lanes of the last vector that count. */
ROWS_INLINE float bracketings_sum(const float *x, int64_t n, rows_part_bits last) {
    rows_part sum = part_all(0.0f);
    for (; n > PART; n -= PART, x += PART) sum += *(const rows_part *)x;
    sum += lanes_only(last, *(const rows_part *)x);
    return PART_REDUCED(sum, part_sum)[0];
}

/* Write terms, from `place` on, exp(score - greatest) of the spans from word i on, their sums, and the greatest score: the
 * row's, where floats are exact enough for it. */
static void bracketings_narrow(const brackets *s, const bracketings *h, int64_t i, int64_t place) {
    const int64_t K = s->K, n = s->n - i;
    const float *x = (const float *)s->scores + (i * s->m + i) * K;
    float *to = (float *)h->terms + place, top = bracketings_exponentials(x, n * K, to);
    int few = 0;
    rows_part_bits last;
    for (int l = 0; l < PART; l++) last[l] = l <= (K - 1) % PART ? -1 : 0;
    s->tables[3 * K + i] = top;
    for (int64_t w = 0; w < n; w++) {
        float sum = bracketings_sum(to + w * K, K, last);
        h->e[w * h->stride + i] = top;
        h->sums[w * h->stride + i] = sum;
        few |= !(sum >= BRACKETINGS_NEAR);
    }
    for (int64_t w = 0; w < n && few; w++) {
        if (h->sums[w * h->stride + i] >= BRACKETINGS_NEAR) continue;
        float own[PART];
        memcpy(own, to + (w + 1) * K, sizeof own);     /* the next span's, for what is written behind the end */
        h->e[w * h->stride + i] = bracketings_exponentials(x + w * K, K, to + w * K);
        memcpy(to + (w + 1) * K, own, sizeof own);
        h->sums[w * h->stride + i] = bracketings_sum(to + w * K, K, last);
    }
}

SPANS_RARE void bracketings_wide(const brackets *s, const bracketings *h, int64_t i, int64_t place) {
    s->tables[3 * s->K + i] = -INFINITY;    /* no span has this one: each has its own */
    for (int64_t w = 0, K = s->K; i + w < s->n; w++) {
        const double *x = (const double *)s->scores + (i * s->m + i + w) * K;
        double *to = (double *)h->terms + place + w * K, top = spans_top(x, K);
        if (top > -INFINITY) spans_exponentials(x, top, K, 1, to);
        h->e[w * h->stride + i] = top;
        h->sums[w * h->stride + i] = top > -INFINITY ? spans_sum(to, K) : 0.0;
    }
}

/* Write the probabilities of a row of spans, from those over the sums of their labels, and zeros elsewhere. */
static void bracketings_part(const brackets *s, const bracketings *h, int64_t i, void *parts) {
    int64_t K = s->K, n = s->n, size = s->is_double ? sizeof(double) : sizeof(float), from = i * s->m * K;
    memset((char *)parts + from * size, 0, (i < n ? i : s->m) * K * size);
    for (int64_t w = 0; i + w < n; w++) {
        double by = h->sums[w * h->stride + i];
        int64_t at = from + (i + w) * K, term = (i * n + i + w) * K, left = (s->m - i - w) * K, k = 0;
        if (s->is_double) {
            for (; k < K; k++) ((double *)parts)[at + k] = by > 0 ? by * ((const double *)h->terms)[term + k] : 0.0;
            continue;
        }
        for (; k < K && left - k >= PART; k += PART)
            *(rows_part *)((float *)parts + at + k) = *(const rows_part *)((const float *)h->terms + term + k) * (float)by;
        for (; k < K; k++) ((float *)parts)[at + k] = (float)by * ((const float *)h->terms)[term + k];
    }
    if (i < n) memset((char *)parts + (from + n * K) * size, 0, (s->m - n) * K * size);
}

/* ---- products ---- */

enum { HAS_PRODUCTS = !PARTS_OLD };    /* or logs alone */

/* Whether all numbers of a row that are not 0 are in the range; the greatest. */
SPANS_RARE int bracketings_fit(const double *row, int64_t n, double *greatest) {
    const doubles none = {0}, least = none + BRACKETINGS_LEAST;
    doubles low = least, high = none;
    for (int64_t i = 0; i < n; i += DOUBLES) {
        const doubles x = doubles_at(row + i);
        const doubles_bits zero = (doubles_bits)(x <= none);
        high = doubles_max(x, high);
        low = -doubles_max(-(doubles)(((doubles_bits)x & ~zero) | ((doubles_bits)least & zero)), -low);
    }
    *greatest = spans_top((const double *)&high, DOUBLES);
    for (int l = 0; l < DOUBLES; l++)
        if (!(low[l] >= BRACKETINGS_LEAST)) return 0;
    return *greatest <= 1 / BRACKETINGS_LEAST;
}

/* exp(x - shift) of what is not greater than shift, and 1 of what is. */
SPANS_RARE doubles bracketings_weight(doubles x, double shift) { return doubles_exp(-doubles_max(shift - x, (doubles){0}), 13); }

/* The greatest score of all spans, which `shift` gets, is 1 in e: its rows have the greatest scores of spans. Most of these
 * are those of the spans from the same word on, `tops`, whose exponentials `factors` get. 0 where a number is out of range. */
static int bracketings_weights(const brackets *s, const bracketings *h, double *shift) {
    const double *tops = s->tables + 3 * s->K;
    double *factors = s->tables + 3 * s->K + s->n;
    doubles_bits bad = {0};
    *shift = -INFINITY;
    for (int64_t w = 1; w < s->n; w++) {
        double top = spans_top(h->e + w * h->stride, s->n - w);
        *shift = top > *shift ? top : *shift;
    }
    if (*shift == -INFINITY) *shift = 0.0;
    for (int64_t i = 0; i < s->n - 1; i += DOUBLES) doubles_put(factors + i, bracketings_weight(doubles_at(tops + i), *shift));
    for (int64_t w = 1; w < s->n; w++)
        for (int64_t i = 0; i < s->n - w; i += DOUBLES) {
            double *row = h->e + w * h->stride + i;
            const doubles top = doubles_at(row), sums = doubles_at(h->sums + w * h->stride + i);
            const doubles_bits there = (doubles_bits)(sums > (doubles){0});
            const doubles_bits own = (doubles_bits)(top != doubles_at(tops + i)) & there;
            doubles by = doubles_at(factors + i);
            int64_t any = 0;
            for (int l = 0; l < DOUBLES; l++) any |= own[l];
            if (any) by = bracketings_weight(top, *shift);
            bad |= (doubles_bits)(top < (doubles){0} + (*shift - 300.0)) & there;
            doubles_put(row, (doubles)((doubles_bits)(by * sums) & there));
        }
    for (int l = 0; l < DOUBLES; l++)
        if (bad[l]) return 0;
    return 1;
}

/* All P, and the log of the scale of a node; 0 where a number is out of range. */
static int bracketings_inside(const brackets *s, const bracketings *h, double *shift) {
    int64_t n = s->n, stride = h->stride, done = 0;
    double greatest;
    if (!bracketings_weights(s, h, shift)) return 0;
    for (int64_t i = 0; i < n; i++) h->P[i] = h->e[i] > -INFINITY;
    for (int64_t w = 1; w < n; w++) {
        double *row = h->P + w * stride;
        for (int64_t i = 0; i < n - w; i += DOUBLES) {
            const double *left = h->P + i, *right = h->P + (w - 1) * stride + i + 1;
            doubles sum = {0}, other = sum;   /* in two turns, for their latency */
            int64_t m = w - 1;
            for (; m > 0; m -= 2) {     /* the row that was written last comes last */
                sum += doubles_at(left + m * stride) * doubles_at(right - m * (stride - 1));
                other += doubles_at(left + (m - 1) * stride) * doubles_at(right - (m - 1) * (stride - 1));
            }
            if (m == 0) sum += doubles_at(left) * doubles_at(right);
            doubles_put(row + i, doubles_at(h->e + w * stride + i) * (sum + other));
        }
        if (!bracketings_fit(row, n - w, &greatest)) return 0;
        if (greatest > 0 && (greatest < BRACKETINGS_CALM || greatest > 1 / BRACKETINGS_CALM)) {
            double by = log(greatest) / (double)w;
            *shift += by;
            for (int64_t v = 1; v < n; v++) {
                double of_e = exp(-by), of_P = exp(-by * (double)v);
                for (int64_t i = 0; i < n - v; i++) h->e[v * stride + i] *= of_e;
                for (int64_t i = 0; i < n - v && v <= w; i++) h->P[v * stride + i] *= of_P;
                if (!bracketings_fit(h->P + v * stride, n - v, &greatest)) return 0;
                if (!bracketings_fit(h->e + v * stride, n - v, &greatest)) return 0;
            }
        }
        if (stop_count(&done, (n - w) * (w / 2 + 4)) < 0) return -1;
    }
    return 1;
}

/* Probabilities of spans, over the sums of their labels. */
static int bracketings_outside(const brackets *s, const bracketings *h) {
    int64_t n = s->n, stride = h->stride, done = 0;
    for (int64_t w = n - 1; w >= 0; w--) {
        for (int64_t i = 0; i < n - w; i += DOUBLES) {
            const double *q = h->q + (w + 1) * stride + i, *P = h->P + i;
            doubles G = {0}, other = G;
            for (int64_t m = n - 2 - w; m >= 0; m--) {     /* the row that was written last comes last */
                G += doubles_at(q + m * stride) * doubles_at(P + w + 1 + m * stride);
                other += doubles_at(q - 1 + m * (stride - 1)) * doubles_at(P - 1 + m * (stride - 1));
            }
            G += other;
            if (w == n - 1) G[0] = 1.0 / h->P[w * stride];
            const doubles own = doubles_at(h->P + w * stride + i);
            const doubles_bits there = (doubles_bits)(own > (doubles){0});
            doubles_put(h->q + w * stride + i, (doubles)((doubles_bits)(G * doubles_at(h->e + w * stride + i)) & there));
            doubles_put(h->sums + w * stride + i,
                        (doubles)((doubles_bits)(G * own / doubles_at(h->sums + w * stride + i)) & there));
        }
        if (stop_count(&done, (n - w) * (n - w) + n) < 0) return -1;
    }
    return 0;
}

/* Copy labels of spans, with -1 behind a sentence; returns whether they are 2 n - 1. */
static int bracketing_copy(const int32_t *y, int64_t n, int64_t m, int32_t K, int32_t *out) {
    rows_part_bits faults = {0}, found = faults;
    int64_t total = 0;
    memset(out, -1, m * m * sizeof(int32_t));
    for (int64_t i = 0; i < n; i++, y += m, out += m) {
        int64_t j = 0;
        memcpy(out, y, n * sizeof(int32_t));
        for (; j + PART <= n; j += PART) {
            const rows_part_bits label = (rows_part_bits)*(const rows_part *)(const void *)(y + j);
            faults |= (label < -1) | (label >= K);
            found -= label >= 0;
        }
        for (; j < n; j++) {
            if (y[j] < -1 || y[j] >= K) return 0;
            total += y[j] >= 0;
        }
    }
    for (int l = 0; l < PART; l++) {
        if (faults[l]) return 0;
        total += found[l];
    }
    return total == (n > 0 ? 2 * n - 1 : 0);
}

/* ---- logs ---- */

/* The rounding error of a sum of two numbers (Knuth), 0 where the sum is -inf. */
ROWS_INLINE doubles bracketings_lost(doubles a, doubles b, doubles sum) {
    const doubles part = sum - a, lost = (a - (sum - part)) + (b - part);
    return (doubles)((doubles_bits)lost & (doubles_bits)(sum > (doubles){0} - INFINITY));
}

/* The logs less `top` of the trees below spans of w + 1 words, from word i on, whose left part has m + 1 words. */
ROWS_INLINE doubles bracketings_term(const bracketings *h, int64_t w, int64_t m, int64_t i, doubles top) {
    const int64_t left = m * h->stride + i, right = (w - 1 - m) * h->stride + i + m + 1;
    const doubles a = doubles_at(h->P + left), b = doubles_at(h->P + right), sum = a + b;
    return (sum - top) + (bracketings_lost(a, b, sum) + doubles_at(h->sums + left) + doubles_at(h->sums + right));
}

/* The greatest terms of the spans of w + 1 words, and the sums over them. */
ROWS_INLINE void bracketings_logs(const bracketings *h, int64_t n, int64_t w) {
    for (int64_t i = 0; i < n - w; i += DOUBLES) {
        doubles top = (doubles){0} - DBL_MAX, rest = top, sum = {0};
        for (int64_t m = 0; m < w; m++) top = doubles_max(bracketings_term(h, w, m, i, (doubles){0}), top);
        for (int64_t m = 0; m < w; m++) rest = doubles_max(bracketings_term(h, w, m, i, top), rest);
        for (int64_t m = 0; m < w; m++) sum += doubles_exp(bracketings_term(h, w, m, i, top) - rest, 13);
        doubles_put(h->e + w * h->stride + i, top);
        doubles_put(h->rests + w * h->stride + i, rest);
        doubles_put(h->wholes + w * h->stride + i, sum);
    }
}

/* Share out the probabilities of the spans of w + 1 words. */
ROWS_INLINE void bracketings_shares(const bracketings *h, int64_t n, int64_t w) {
    for (int64_t i = 0; i < n - w; i += DOUBLES) {
        const int64_t at = w * h->stride + i;
        const doubles top = doubles_at(h->e + at), rest = doubles_at(h->rests + at), sum = doubles_at(h->wholes + at);
        const doubles_bits there = (doubles_bits)(sum > (doubles){0});
        const doubles own = (doubles)((doubles_bits)(doubles_at(h->q + at) / sum) & there);
        for (int64_t m = 0; m < w; m++) {
            double *left = h->q + m * h->stride + i, *right = h->q + (w - 1 - m) * h->stride + i + m + 1;
            const doubles share = own * doubles_exp(bracketings_term(h, w, m, i, top) - rest, 13);
            doubles_put(left, doubles_at(left) + share);
            doubles_put(right, doubles_at(right) + share);
        }
    }
}

/* The greatest score of the labels of a span, and the log of the sum over them less it; `parts` gets their probabilities. */
SPANS_RARE double bracketings_labels(const brackets *s, int64_t i, int64_t j, void *parts, double *rest) {
    int64_t K = s->K, place = (i * s->m + j) * K;
    double *row = s->tables, *e = row + K, top, sum;
    spans_load(s->scores, s->is_double, place, K, row);
    top = spans_top(row, K);
    *rest = 0.0;
    if (top == -INFINITY) return top;
    spans_exponentials(row, top, K, s->is_double, e);
    sum = spans_sum(e, K);
    for (int64_t k = 0; k < K && parts != NULL; k++) e[k] /= sum;
    if (parts != NULL) spans_store(e, s->is_double, place, K, parts);
    *rest = log(sum);
    return top;
}

SPANS_RARE int bracketings_in_logs(const brackets *s, double *log_z, void *parts) {
    int64_t n = s->n, K = s->K, done = 0;
    const bracketings h = bracketings_of(s);
    int64_t stride = h.stride, size = n * stride;
    double *I = h.P, *p = h.q, *row = s->tables, rest;
    s->chart[0] = 1.0;
    for (int64_t j = 0; j < size; j++) I[j] = -INFINITY;
    memset(p, 0, 2 * size * sizeof(double));    /* and the second parts of I */
    if (parts != NULL) memset(parts, 0, s->m * s->m * K * (s->is_double ? sizeof(double) : sizeof(float)));
    for (int64_t w = 0; w < n; w++) {
        bracketings_logs(&h, n, w);
        for (int64_t i = 0; i < n - w; i++) {
            const int64_t at = w * stride + i;
            const double top = bracketings_labels(s, i, i + w, parts, &rest), sum = h.wholes[at];
            I[at] = w == 0 ? top : sum > 0 ? top + h.e[at] : -INFINITY;
            if (w > 0 && I[at] > -INFINITY)
                rest += log(sum) + h.rests[at] + bracketings_lost((doubles){top}, (doubles){h.e[at]}, (doubles){I[at]})[0];
            if (I[at] > -INFINITY) h.sums[at] = rest;
        }
        if (stop_count(&done, (n - w) * (2 * w + 2 * K + 8)) < 0) return -1;
    }
    *log_z = I[(n - 1) * stride] + h.sums[(n - 1) * stride];
    if (parts == NULL || *log_z == -INFINITY) return 0;
    p[(n - 1) * stride] = 1.0;
    for (int64_t w = n - 1; w >= 0; w--) {
        bracketings_shares(&h, n, w);
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

static int bracketing_sums(const brackets *s, double *log_z, void *parts) {
    const bracketings h = bracketings_of(s);
    int64_t n = s->n, done = 0;
    double shift;
    if (!HAS_PRODUCTS) return bracketings_in_logs(s, log_z, parts);
    memset(s->chart, 0, (BRACKETINGS_FRONT + n * h.stride) * sizeof(double));
    if (parts != NULL) memset(h.q, 0, n * h.stride * sizeof(double));
    for (int64_t w = 0; w < n; w++) doubles_put(h.sums + w * h.stride + n - w, (doubles){0});
    for (int64_t i = 0; i < n; i++) {
        const int64_t place = parts == NULL ? 0 : (i * n + i) * s->K;
        if (s->is_double) bracketings_wide(s, &h, i, place);
        else bracketings_narrow(s, &h, i, place);
        if (stop_count(&done, (n - i) * (s->K + 8)) < 0) return -1;
    }
    int status = bracketings_inside(s, &h, &shift);
    if (status < 0) return -1;
    if (status == 0) return bracketings_in_logs(s, log_z, parts);
    *log_z = log(h.P[(n - 1) * h.stride]) + (double)(n - 1) * shift;
    for (int64_t i = 0; i < n && *log_z > -INFINITY; i++) *log_z += h.e[i] + log(h.sums[i]);
    if (parts == NULL || *log_z == -INFINITY) return 0;
    if (bracketings_outside(s, &h) < 0) return -1;
    for (int64_t i = 0; i < s->m; i++) {
        bracketings_part(s, &h, i, parts);
        if (stop_count(&done, s->m * s->K / 8 + 8) < 0) return -1;
    }
    return 0;
}

/* Draw a tree from the root down, by what sums leave behind and 3 n uniform numbers, `step` apart. */
SPANS_RARE int bracketing_draw(const brackets *s, const double *u, int64_t step, int32_t *y) {
    const bracketings h = bracketings_of(s);
    int64_t n = s->n, stride = h.stride, held = 0, done = 0;
    const int in_logs = s->chart[0] > 0;
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
        for (m = 0; m < w; m++) {
            double left = h.P[m * stride + i], right = h.P[(w - 1 - m) * stride + i + m + 1];
            row[m] = left * right;
            if (!in_logs) continue;
            const doubles term = bracketings_term(&h, w, m, i, (doubles){0} + h.e[w * stride + i]);
            row[m] = exp(term[0] - h.rests[w * stride + i]);
        }
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
