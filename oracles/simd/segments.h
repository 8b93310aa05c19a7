/* Segments (see spans.h). With R[t][k] over what comes before a segment that begins at token t with label k, and
 * V[t][a] over what ends before token t with a segment of label a,
 *     V[t][k] = (+)_l R[t-l][k] + scores[t-l][l][k],    R[t][k] = (+)_a V[t][a] + A[a][k],    R[0][k] = 0,
 * where start and end are added to the scores of the first and the last segment. Sums hold exp(V[t]) = v[t] exp(top), v[t]
 * summing to 1. Backwards, with B[t][a] over what comes after token t - 1, where a segment of label a ended,
 *     B[t][a] = sum_k A[a][k] W[t][k],    W[t][k] = sum_l scores[t][l][k] B[t+l][k],
 *     P(t, l, k) = R[t][k] scores[t][l][k] B[t+l][k],    P(a, k at t) = V[t][a] A[a][k] W[t][k],
 * in the same scales.
 */
#ifndef STRUCTSVM_SEGMENTS_H
#define STRUCTSVM_SEGMENTS_H

#include "spans.h"

/* Scores of the segments of l + 1 tokens from token t on, with start and end. */
SPANS_CALLED void segments_row(const segments *s, int64_t t, int64_t l, double *restrict row) {
    spans_load(s->scores, s->is_double, (t * s->L + l) * s->K, s->K, row);
    if (t == 0)
        for (int64_t k = 0; k < s->K; k++) row[k] += s->start[k];
    if (t + l + 1 == s->T)
        for (int64_t k = 0; k < s->K; k++) row[k] += s->end[k];
}

/* Whether a label that can be reached is lost at token t: that of a segment before it (v), or of one from it on (R). */
SPANS_RARE int segments_lost(const segments *s, int64_t t, const double *R, const double *rows, const double *v) {
    for (int64_t k = 0; k < s->K; k++) {
        for (int64_t l = 0; l < s->L && l < t && v[k] < SPANS_LEAST; l++)
            if (R[(t - 1 - l) * s->K + k] > 0 && rows[l * s->K + k] > -INFINITY) return 1;
        for (int64_t a = 0; a < s->K && R[t * s->K + k] < SPANS_LEAST; a++)
            if (v[a] > 0 && s->A[a * s->K + k] > -INFINITY) return 1;
    }
    return 0;
}

/* v and R of all tokens, the logs of R's scales, the sums by which v was divided, and exponentials of all scores. */
static int segments_forward(const segments *s, double *v, double *R, double *scale, double *total, double *terms,
                            double *log_z) {
    int64_t T = s->T, L = s->L, K = s->K, done = 0;
    double *table = s->tables, *rows = table + K * K, *e = rows + L * K, shift;
    int masked;
    spans_table(s->A, K * K, table, &shift, &masked);
    for (int64_t k = 0; k < K; k++) R[k] = 1;
    scale[0] = 0;
    *log_z = -INFINITY;
    for (int64_t t = 1; t <= T; t++) {
        double *now = v + t * K, *r = R + t * K, sum = 0;
        int64_t m = t < L ? t : L;
        memset(now, 0, K * sizeof(double));
        memset(r, 0, K * sizeof(double));
        for (int64_t l = 0; l < m; l++) {
            segments_row(s, t - 1 - l, l, rows + l * K);
            for (int64_t k = 0; k < K; k++) rows[l * K + k] += scale[t - 1 - l];
        }
        double top = spans_top(rows, m * K);
        scale[t] = total[t] = -INFINITY;
        if (top > -INFINITY) {
            spans_exponentials(rows, top, m * K, s->is_double, e);
            for (int64_t l = 0; l < m; l++) {
                const double *before = R + (t - 1 - l) * K;
                for (int64_t k = 0; k < K; k++) now[k] += before[k] * e[l * K + k];
                if (terms != NULL) memcpy(terms + ((t - 1 - l) * L + l) * K, e + l * K, K * sizeof(double));
            }
            for (int64_t k = 0; k < K; k++) sum += now[k];
            if (!(sum >= SPANS_LEAST)) return 1;
            for (int64_t k = 0; k < K; k++) now[k] /= sum;
            for (int64_t a = 0; a < K; a++) spans_add(now[a], table + a * K, K, r);
            if (masked && t < T && segments_lost(s, t, R, rows, now)) return 1;
            total[t] = sum;
            scale[t] = top + log(sum) + shift;
            if (t == T) *log_z = top + log(sum);
        }
        if (stop_count(&done, 2 * m * K + K * K / 2) < 0) return -1;
    }
    return 0;
}

/* Probabilities of segments and of pairs of labels. 1 where numbers grow too great. */
static int segments_backward(const segments *s, const double *v, const double *R, const double *total, double *W,
                             void *parts, double *pairs) {
    int64_t T = s->T, L = s->L, K = s->K, done = 0;
    double *table = s->tables, *B = table + K * K + 2 * L * K, *p = B + K;
    memset(W, 0, (T + 1) * K * sizeof(double));
    memset(pairs, 0, K * K * sizeof(double));
    for (int64_t t = T; t > 0; t--) {
        const double *w = W + t * K;
        if (total[t] == -INFINITY) continue;
        for (int64_t a = 0; a < K; a++) {
            double sum = t == T;
            for (int64_t k = 0; k < K && t < T; k++) sum += table[a * K + k] * w[k];
            if (t < T) spans_add(v[t * K + a], w, K, pairs + a * K);
            B[a] = sum / total[t];
            if (!(B[a] <= 1e290)) return 1;
        }
        for (int64_t l = 0; l < L && l < t; l++) {
            int64_t from = t - 1 - l;
            const double *e = s->terms + (from * L + l) * K;
            for (int64_t k = 0; k < K; k++) {
                p[k] = e[k] * B[k];
                W[from * K + k] += p[k];
                p[k] *= R[from * K + k];
            }
            spans_store(p, s->is_double, (from * L + l) * K, K, parts);
        }
        if (stop_count(&done, 2 * L * K + K * K) < 0) return -1;
    }
    for (int64_t j = 0; j < K * K; j++) pairs[j] *= table[j];
    return 0;
}

static int segment_sums(const segments *s, double *log_z, void *parts, double *pairs) {
    int64_t n = (s->T + 1) * s->K;
    double *v = s->rows, *R = v + n, *W = R + n, *scale = W + n, *total = scale + s->T + 1;
    int status = segments_forward(s, v, R, scale, total, parts == NULL ? NULL : s->terms, log_z);
    if (status != 0 || parts == NULL || *log_z == -INFINITY) return status;
    return segments_backward(s, v, R, total, W, parts, pairs);
}

/* The best segments, from the last one on; of several the shortest, and of these the one with the least label. */
SPANS_RARE void segments_trace(const segments *s, const double *V, const double *R, int32_t *y) {
    int64_t K = s->K, k = 0;
    double *row = s->tables;
    for (int64_t q = 1; q < K; q++) k = V[s->T * K + q] > V[s->T * K + k] ? q : k;
    for (int64_t t = s->T, from; t > 0; t = from) {
        for (int64_t l = 0; l < s->L && l < t; l++) {
            from = t - 1 - l;
            segments_row(s, from, l, row);
            if (R[from * K + k] + row[k] == V[t * K + k]) break;
        }
        for (int64_t j = from; j < t; j++) y[j] = (int32_t)(j == from ? k : K + k);
        for (int64_t a = 0, to = k; a < K && from > 0; a++)
            if (V[from * K + a] + s->A[a * K + to] == R[from * K + to]) {
                k = a;
                break;
            }
    }
}

/* y has label k at the first token of a segment, and K + k at its others. */
static int segment_best(const segments *s, double *value, int32_t *y) {
    int64_t T = s->T, L = s->L, K = s->K, done = 0;
    double *V = s->rows, *R = V + (T + 1) * K, *row = s->tables;
    memset(R, 0, K * sizeof(double));
    for (int64_t t = 1; t <= T; t++) {
        double *now = V + t * K, *r = R + t * K;
        for (int64_t k = 0; k < K; k++) now[k] = r[k] = -INFINITY;
        for (int64_t l = 0; l < L && l < t; l++) {
            const double *before = R + (t - 1 - l) * K;
            segments_row(s, t - 1 - l, l, row);
            for (int64_t k = 0; k < K; k++) {
                double x = before[k] + row[k];
                now[k] = x > now[k] ? x : now[k];
            }
        }
        for (int64_t a = 0; a < K; a++)
            for (int64_t k = 0; k < K; k++) {
                double x = now[a] + s->A[a * K + k];
                r[k] = x > r[k] ? x : r[k];
            }
        if (stop_count(&done, L * K + K * K / 2) < 0) return -1;
    }
    *value = spans_top(V + T * K, K);
    if (*value == -INFINITY) return 1;
    segments_trace(s, V, R, y);
    return 0;
}

#endif
