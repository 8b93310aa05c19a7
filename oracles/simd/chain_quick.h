/* Sums and expectations over all labellings of a chain of order 1 by an exponential per token and label; states, rows and
 * what is written are those of chain_expect.h.
 *
 * Forwards, the shares alpha of the labels of each token, given all tokens up to it: with M[a][q] = exp(A[a][q] - max A),
 *     R[t][q] = sum_a alpha[t-1][a] M[a][q],    alpha[t][q] = R[t][q] exp(E[t][q] - max E[t]) / sum,
 * where log Z is the sum of the logarithms of these sums and of the maxima. Backwards, with v[q] = p[t][q] / R[t][q],
 *     P(a | q) = alpha[t-1][a] M[a][q] / R[t][q],    p[t-1][a] = alpha[t-1][a] sum_q M[a][q] v[q].
 * No transition may be further than CHAIN_RANGE below the greatest. Then R is at least exp(-CHAIN_RANGE), and the futures
 * of two labels differ by no more than that factor: a label whose share is lost to underflow, below exp(-87), has no
 * probability above exp(CHAIN_RANGE - 87) either. A masked transition is a factor of 0. Behind it futures differ by any
 * factor, so that no share of a label that can be reached may be below CHAIN_KEPT: then R is 0, or a normal number. Labels q
 * of a probability below CHAIN_TINY, less than what rounding takes from the others, are passed over on the way back. Where
 * weights are greater, where shares behind masks are less, and where the true labelling is next to impossible, logarithms
 * are taken (chain_expect.h). The entropy is, with x = E[t],
 *     H = sum_t (log sum + <p[t], max x - x>) + <pairs, max A - A>,
 * of which only the logarithms may be below 0. These are sums of doubles; what they cancel leaves the rounding of floats,
 * up to CHAIN_ROUNDING of a token and of each part. That is taken off, so that no dual bound is too good: what is returned
 * is at most H.
 */
#ifndef STRUCTSVM_CHAIN_QUICK_H
#define STRUCTSVM_CHAIN_QUICK_H

#include "chain.h"
#include "exponentials.h"

#define CHAIN_RANGE 40.0f
#define CHAIN_TINY 1e-9f
#define CHAIN_KEPT 1e-18f
#define CHAIN_LEAST 1e-30   /* P(a | q) of true labels */
#define CHAIN_ROUNDING (0.5 * FLT_EPSILON)

enum {
    CHAIN_PART = 256,   /* tokens whose transitions are summed apart: long float sums would stand still */
    CHAIN_QUICK_PART = 64,      /* the same here, where the entropy is a difference of them */
    CHAIN_LOGS = 8      /* tokens whose factors are multiplied before a logarithm is taken */
};

/* A product of many factors, as the sum of their logarithms. */
typedef struct {
    double product, sum;
    int n;
} chain_log;

ROWS_INLINE void chain_multiply(chain_log *log_of, double factor) {
    log_of->product *= factor;
    if (++log_of->n == CHAIN_LOGS) {
        log_of->sum += log(log_of->product);
        log_of->product = 1.0;
        log_of->n = 0;
    }
}

typedef double chain_wide __attribute__((vector_size(32)));
typedef float chain_four __attribute__((vector_size(16), aligned(4), may_alias));

/* The sum of the numbers at x, eight of them, is added to `sum` in double. */
ROWS_INLINE void chain_gather(chain_wide *sum, const rows_v *x) {
    const float *from = (const float *)x;
    *sum += __builtin_convertvector(*(const chain_four *)from, chain_wide);
    *sum += __builtin_convertvector(*(const chain_four *)(from + 4), chain_wide);
}

ROWS_INLINE double chain_total(const chain_wide *sum) { return ((*sum)[0] + (*sum)[1]) + ((*sum)[2] + (*sum)[3]); }

/* M, and its transpose behind `stride` rows; false where transitions do not allow it. */
static int chain_factors(const chain_scores *s, float *top, int *is_masked) {
    int64_t size = s->K * s->stride;
    float *M = s->quick, low = rows_greatest(s->A, size, -1.0f);
    *top = rows_greatest(s->A, size, 1.0f);
    *is_masked = low == INFINITY;
    if (*is_masked) {
        low = -INFINITY;
        for (int64_t j = 0; j < size; j++) low = -s->A[j] > low && s->A[j] > -INFINITY ? -s->A[j] : low;
    }
    if (!(*top + low <= CHAIN_RANGE)) return 0;
    for (int64_t j = 0; j < size; j += PART) *(rows_part *)(M + j) = part_exp(*(const rows_part *)(s->A + j) - *top);
    rows_transpose(M, s->K, s->stride, M + s->stride * s->stride);
    return 1;
}

/* out = in M, for nv vectors of its columns. */
ROWS_INLINE void chain_product_part(const float *in, const float *M, int64_t K, int64_t stride, float *out, const int nv) {
    rows_part sum[3 * PARTS];
    EACH_PART
    for (int k = 0; k < nv * PARTS; k++) sum[k] = part_all(0.0f);
    for (int64_t a = 0; a < K; a++) {
        const float *row = M + a * stride;
        EACH_PART
        for (int k = 0; k < nv * PARTS; k++) sum[k] += in[a] * *(const rows_part *)(row + k * PART);
    }
    EACH_PART
    for (int k = 0; k < nv * PARTS; k++) *(rows_part *)(out + k * PART) = sum[k];
}

static __attribute__((noinline)) void chain_product(const float *in, const float *M, int64_t K, int64_t stride, float *out) {
    int64_t c = 0;
    for (; c + 3 * LANES <= stride; c += 3 * LANES) chain_product_part(in, M + c, K, stride, out + c, 3);
    if (stride - c == 2 * LANES) chain_product_part(in, M + c, K, stride, out + c, 2);
    if (stride - c == LANES) chain_product_part(in, M + c, K, stride, out + c, 1);
}

/* x of token t from label c on: its scores E[t], with those of the first and the last label. */
ROWS_INLINE rows_v chain_score(const chain_scores *s, const float *E, int64_t t, int64_t T, int64_t c) {
    rows_v x = rows_two(E + t * s->stride, t == 0 ? s->start : NULL, c);
    if (t == T - 1) x += *(const rows_v *)(s->end + c);
    return x;
}

/* alpha = R exp(x - max x) / sum, for the scores x of token t; returns the sum, *top = max x. */
ROWS_INLINE double chain_share(const chain_scores *s, const float *E, int64_t t, int64_t T, const float *R, float *alpha,
                              float *top) {
    rows_v best = rows_all(-INFINITY);
    chain_wide total = {0.0};
    for (int64_t c = 0; c < s->stride; c += LANES) {
        rows_v x = chain_score(s, E, t, T, c);
        *(rows_v *)(alpha + c) = x;
        best = rows_max(x, best);
    }
    *top = rows_top(best);
    for (int64_t c = 0; c < s->stride; c += PART)
        *(rows_part *)(alpha + c) = *(const rows_part *)(R + c) * part_exp(*(const rows_part *)(alpha + c) - *top);
    for (int64_t c = 0; c < s->stride; c += LANES) chain_gather(&total, (const rows_v *)(alpha + c));
    double sum = chain_total(&total);
    for (int64_t c = 0; c < s->stride; c += LANES) *(rows_v *)(alpha + c) *= rows_all((float)(1.0 / sum));
    return sum;
}

/* Whether the share of a label that can be reached is too small to be kept behind a mask. */
static int chain_loses(const chain_scores *s, const float *E, int64_t t, int64_t T, const float *R, const float *alpha) {
    for (int64_t c = 0; c < s->stride; c += LANES)
        if (rows_bits((*(const rows_v *)(alpha + c) < rows_all(CHAIN_KEPT)) & (*(const rows_v *)(R + c) > rows_all(0.0f))
                      & (chain_score(s, E, t, T, c) > rows_all(-INFINITY))))
            return 1;
    return 0;
}

/* <p, max x - x> of token t, for x and the probabilities p of its labels. */
ROWS_INLINE double chain_below(const chain_scores *s, const float *E, const float *p, int64_t t, int64_t T) {
    rows_v best = rows_all(-INFINITY);
    chain_wide sum = {0.0};
    for (int64_t c = 0; c < s->stride; c += LANES) best = rows_max(chain_score(s, E, t, T, c), best);
    best = rows_all(rows_top(best));
    for (int64_t c = 0; c < s->stride; c += LANES) {
        rows_v part = *(const rows_v *)(p + c) * (best - rows_max(chain_score(s, E, t, T, c), rows_all(ROWS_LOWEST)));
        chain_gather(&sum, &part);
    }
    return chain_total(&sum);
}

/* The probabilities `before` of the labels of token t - 1 from those of token t; adds v alpha to the rows of `sums`, by the
 * label at t. */
static __attribute__((noinline)) void chain_quick_back(const float *turned, int64_t stride, const float *alpha, const float *R,
                                                       const float *now, float *before, float *sums) {
    for (int64_t c = 0; c < stride; c += LANES) *(rows_v *)(before + c) = rows_all(0.0f);
    for (int64_t j = 0; j < stride; j += LANES)
        for (unsigned left = rows_bits(*(const rows_v *)(now + j) > rows_all(CHAIN_TINY)); left; left &= left - 1) {
            int64_t q = j + __builtin_ctz(left);
            rows_v v = rows_all(now[q] / R[q]);
            for (int64_t c = 0; c < stride; c += LANES) {
                *(rows_v *)(before + c) += v * *(const rows_v *)(turned + q * stride + c);
                *(rows_v *)(sums + q * stride + c) += v * *(const rows_v *)(alpha + c);
            }
        }
    rows_v total = rows_all(0.0f);
    for (int64_t c = 0; c < stride; c += LANES) total += *(rows_v *)(before + c) *= *(const rows_v *)(alpha + c);
    rows_v scale = rows_all(1.0f / rows_total(total));
    for (int64_t c = 0; c < stride; c += LANES) *(rows_v *)(before + c) *= scale;
}

/* The pairs of some tokens, in `sums`, go to the rows of transitions, and `sums` to 0; returns <pairs, top - A>. */
static double chain_add_pairs(const chain_scores *s, float top, float *sums, float *edges) {
    int64_t size = s->K * s->stride;
    chain_wide below = {0.0};
    float *pairs = sums + s->stride * s->stride;
    rows_transpose(sums, s->K, s->stride, pairs);
    for (int64_t j = 0; j < size; j += LANES) {
        *(rows_v *)(pairs + j) *= *(const rows_v *)(s->quick + j);
        *(rows_v *)(edges + j) += *(const rows_v *)(pairs + j);
        rows_v below_top = rows_all(top) - rows_max(*(const rows_v *)(s->A + j), rows_all(top - 2.0f * CHAIN_RANGE));
        rows_v part = *(const rows_v *)(pairs + j) * below_top;
        chain_gather(&below, &part);
    }
    memset(sums, 0, size * sizeof(float));
    return chain_total(&below);
}

/* chain_expect by scaled sums; `work` has two rows, and the alphas of all tokens are in the rows of `moments` until the
 * way back. Returns 1 where logarithms must be taken. */
static int chain_quick(const chain_scores *s, const float *E, const int32_t *gold, int64_t T, float *R, float *work,
                       float *moments, int64_t n_edges, int has_end, double *out) {
    int64_t stride = s->stride, K = s->K, each = chain_work(s) + 4 * stride, done = 0;
    float *M = s->quick, *turned = M + stride * stride, *sums = turned + stride * stride, top, shift;
    float *now = work, *before = work + stride;
    chain_log z = {1.0, 0.0, 0}, p = {1.0, 0.0, 0};
    double best = 0.0, below = 0.0, labelled = 0.0, others = 0.0, logs, entropy;
    int is_masked;
    if (!chain_factors(s, &shift, &is_masked)) return 1;
    for (int64_t j = 0; j < stride; j++) R[j] = 1.0f;
    for (int64_t t = 0; t < T; t++) {
        float *alpha = moments == NULL ? work + t % 2 * stride : moments + t * stride, *r = R + t * stride;
        const float *last = moments == NULL ? work + (t + 1) % 2 * stride : alpha - stride;
        if (t > 0) chain_product(last, M, K, stride, r);
        if (t > 0 && gold != NULL) {
            float share = last[gold[t - 1]] * M[gold[t - 1] * stride + gold[t]] / r[gold[t]];
            if (!(share >= CHAIN_LEAST)) return 1;
            chain_multiply(&p, share < 1.0f ? share : 1.0f);
        }
        double sum = chain_share(s, E, t, T, r, alpha, &top);
        if (!(sum >= FLT_MIN) || (is_masked && t < T - 1 && chain_loses(s, E, t, T, r, alpha))) return 1;
        chain_multiply(&z, sum);
        best += (double)top + (t > 0 ? shift : 0.0f);
        if (stop_count(&done, each) < 0) return -1;
    }
    const float *end = moments == NULL ? work + (T - 1) % 2 * stride : moments + (T - 1) * stride;
    if (gold != NULL) {
        if (!(end[gold[T - 1]] >= CHAIN_LEAST)) return 1;
        chain_multiply(&p, end[gold[T - 1]] < 1.0f ? end[gold[T - 1]] : 1.0f);
    }
    logs = z.sum + log(z.product);
    out[0] = best + logs;
    out[1] = 0.0 - (p.sum + log(p.product));
    if (moments == NULL) return stop_poll(done);
    float *edges = moments + T * stride;
    memset(edges, 0, n_edges * stride * sizeof(float));
    memset(sums, 0, K * stride * sizeof(float));
    memcpy(now, end, stride * sizeof(float));
    if (has_end) memcpy(edges + (K + 1) * stride, now, stride * sizeof(float));
    for (int64_t t = T - 1;; t--) {
        float *row = moments + t * stride, *swap = before;
        memcpy(row, now, stride * sizeof(float));
        below += chain_below(s, E, now, t, T);
        if (gold != NULL) row[gold[t]] -= 1.0f;
        if (t == 0) break;
        chain_quick_back(turned, stride, row - stride, R + t * stride, now, before, sums);
        if (gold != NULL) {
            int64_t pair = gold[t - 1] * stride + gold[t];
            sums[gold[t] * stride + gold[t - 1]] -= 1.0f / M[pair];
            labelled += (double)shift - s->A[pair];
        }
        if (t % CHAIN_QUICK_PART == 0 || t == 1) others += chain_add_pairs(s, shift, sums, edges);
        before = now;
        now = swap;
        if (stop_count(&done, each) < 0) return -1;
    }
    memcpy(edges + K * stride, now, stride * sizeof(float));
    if (gold != NULL) {
        edges[K * stride + gold[0]] -= 1.0f;
        if (has_end) edges[(K + 1) * stride + gold[T - 1]] -= 1.0f;
    }
    below += labelled;  /* <pairs, top - A> are those of the true labelling and, of either sign, the others less those */
    entropy = logs + below + others - CHAIN_ROUNDING * (T + fabs(logs) + below + (others > 0.0 ? others : 0.0));
    out[2] = K > 1 && entropy > 0.0 ? entropy : 0.0;
    return stop_poll(done);
}

#endif
