/* Sums and expectations over all labellings of a chain; states, blocks and scores are those of chain.h.
 *
 * Forwards, the log of the sum over the labellings of tokens 0..t that end in state q, less what all states of the token
 * have in common: R before the token's own scores are added, alpha after that,
 *     R[t][q] = log sum_a exp(alpha[t-1][a] + A[a][q]),    alpha[t][q] = R[t][q] + E[t][q] - top[t],
 * where top[t] makes the greatest alpha 0; log Z is the sum of all top[t] and of the last log-sum. Backwards,
 * probabilities: before state q of token t came state a with
 *     P(a | q) = exp(alpha[t-1][a] + A[a][q] - R[t][q]),   p[t-1][a] = sum_q p[t][q] P(a | q).
 * So nothing cancels and nothing that matters underflows, however long the chain and however great the weights: a state
 * is lost only when its probability, given all that comes after, is below exp(-87). Entropy and the loss of a labelling
 * are sums of terms >= 0:
 *     H = H(p[T-1]) + sum_t sum_q p[t][q] H(P(. | q)),    -log p(y) = -log p[T-1][y] - sum_t log P(y[t-1] | y[t]).
 */
#ifndef STRUCTSVM_CHAIN_EXPECT_H
#define STRUCTSVM_CHAIN_EXPECT_H

#include "chain_quick.h"

/* out[c] = log sum_a exp(before[a] + A[a][c]), for nv vectors; the greatest term is taken out of the sum. */
ROWS_INLINE void chain_logsum_part(const float *before, int64_t step, const float *A, int64_t P, int64_t stride,
                                   float *out, const int nv) {
    rows_part m[3 * PARTS], sum[3 * PARTS];
    EACH_PART
    for (int k = 0; k < nv * PARTS; k++) {
        m[k] = part_all(ROWS_LOWEST);
        sum[k] = part_all(0.0f);
    }
    for (int64_t a = 0; a < P; a++) {
        const float *row = A + a * stride;
        EACH_PART
        for (int k = 0; k < nv * PARTS; k++)
            m[k] = rows_part_max(before[a * step] + *(const rows_part *)(row + k * PART), m[k]);
    }
    for (int64_t a = 0; a < P; a++) {
        const float *row = A + a * stride;
        EACH_PART
        for (int k = 0; k < nv * PARTS; k++)
            sum[k] += part_exp(before[a * step] + *(const rows_part *)(row + k * PART) - m[k]);
    }
    EACH_PART
    for (int k = 0; k < nv * PARTS; k++) *(rows_part *)(out + k * PART) = m[k] + part_log(sum[k]);
}

/* R of token t from alpha of the one before. */
static __attribute__((noinline)) void chain_logsums(const chain_scores *s, int64_t t, const float *alpha, float *R) {
    int64_t stride = s->stride, groups = s->G == 1 ? 1 : s->K;
    for (int64_t g = 0; g < groups; g++) {
        const float *before = alpha + g * s->shift, *A = s->A + t * s->each + g * s->P * stride;
        float *out = R + g * stride;
        int64_t c = 0;
        for (; c + 3 * LANES <= stride; c += 3 * LANES) chain_logsum_part(before, s->step, A + c, s->P, stride, out + c, 3);
        if (stride - c == 2 * LANES) chain_logsum_part(before, s->step, A + c, s->P, stride, out + c, 2);
        if (stride - c == LANES) chain_logsum_part(before, s->step, A + c, s->P, stride, out + c, 1);
    }
    if (s->G > 1)
        for (int64_t j = 0; j < stride; j++) R[groups * stride + j] = -INFINITY;
}

/* alpha = R + E - top; returns top. Where no state can be reached it is not finite. */
ROWS_INLINE float chain_alpha(const chain_scores *s, const float *R, const float *E, float *alpha) {
    int64_t stride = s->stride;
    rows_v best = rows_all(-INFINITY);
    for (int64_t g = 0; g < s->G; g++)
        for (int64_t c = 0; c < stride; c += LANES) {
            rows_v x = *(const rows_v *)(R + g * stride + c) + *(const rows_v *)(E + c);
            *(rows_v *)(alpha + g * stride + c) = x;
            best = rows_max(x, best);
        }
    float top = rows_top(best);
    for (int64_t q = 0; q < s->G * stride; q += LANES) *(rows_v *)(alpha + q) -= rows_all(top);
    return top;
}

/* Work of a token in the units of stop.h: some ten instructions for each vector of exponentials. */
ROWS_INLINE int64_t chain_expect_work(const chain_scores *s) { return 4 * chain_work(s) + s->stride; }

/* The probabilities of the states of token t - 1 from those of token t: `before` from `now`, with alpha of the one and R
 * of the other. Adds the pairs (order 1) or triples (order 2) to `sums`, whose row a K + g is that of the labels a, g
 * before; returns the entropy of the states before, given those now. */
static __attribute__((noinline)) double chain_backward(const chain_scores *s, int64_t t, const float *alpha,
                                                       const float *R, const float *now, float *before, float *sums) {
    int64_t stride = s->stride, block = s->G * stride, groups = s->G == 1 ? 1 : s->K;
    double entropy = 0.0, all = 0.0;
    for (int64_t q = 0; q < block; q++) before[q] = 0.0f;
    for (int64_t g = 0; g < groups; g++)
        for (int64_t a = 0; a < s->P; a++) {
            int64_t from = a * s->step + g * s->shift;
            if (alpha[from] == -INFINITY) continue;
            const float *A = s->A + t * s->each + (g * s->P + a) * stride;
            float *out = sums + (s->G == 1 ? a : a * s->K + g) * stride;
            rows_part total[PARTS], bits[PARTS];
            EACH_PART
            for (int k = 0; k < PARTS; k++) total[k] = bits[k] = part_all(0.0f);
            for (int64_t j = 0; j < stride; j += LANES) {
                EACH_PART
                for (int k = 0; k < PARTS; k++) {
                    int64_t c = j + k * PART;
                    rows_part r = rows_part_max(*(const rows_part *)(R + g * stride + c), part_all(ROWS_LOWEST));
                    rows_part y = alpha[from] + *(const rows_part *)(A + c) - r;
                    rows_part p = *(const rows_part *)(now + g * stride + c) * part_exp(y);
                    *(rows_part *)(out + c) += p;
                    total[k] += p;
                    bits[k] -= p * rows_part_max(y, part_all(ROWS_LOWEST));
                }
            }
            all += before[from] = rows_total(rows_of(total));
            entropy += rows_total(rows_of(bits));
        }
    /* They add up to 1 but for rounding, which 100,000 tokens would pile up. */
    for (int64_t q = 0; q < block; q += LANES) *(rows_v *)(before + q) *= rows_all((float)(1.0 / all));
    return entropy;
}

/* Expectations over all labellings.
 *
 *   R        T blocks; V of chain_best has their size
 *   tops     T numbers
 *   work     4 blocks, then the rows of the transition weights (w from the row of transitions on)
 *   gold     a labelling, which is subtracted from all moments, or NULL
 *   moments  T rows of label probabilities; the expected counts of the transition weights, in their rows; and where
 *            tokens have tables of their own, K rows each of the probabilities of label pairs, by the label before (0 at
 *            the first token); NULL if log Z and loss are all that is wanted
 *   n_edges  rows of transition weights
 *   has_end  whether the last label has a weight
 *   out      log Z, the loss -log p(gold), the entropy; log Z is not finite where no labelling is allowed
 */
static int chain_expect(const chain_scores *s, const float *E, const int32_t *gold, int64_t T, float *R, float *tops,
                        float *work, float *moments, int64_t n_edges, int has_end, double *out) {
    int64_t stride = s->stride, block = s->G * stride, each = chain_expect_work(s), done = 0, K = s->K;
    float *alpha = work, *later = work + block, *now = work + 2 * block, *before = work + 3 * block;
    float *part = work + 4 * block;
    int status = s->quick == NULL ? 1 : chain_quick(s, E, gold, T, R, work, moments, n_edges, has_end, out);
    if (status <= 0) return status;
    double log_sum = 0.0, loss = 0.0, entropy = 0.0;
    for (int64_t j = 0; j < block - stride; j++) R[j] = -INFINITY;
    memcpy(R + block - stride, s->start, stride * sizeof(float));
    for (int64_t t = 0; t < T; t++) {
        if (t > 0) chain_logsums(s, t, alpha, R + t * block);
        if (t > 0 && gold != NULL) {
            int64_t g = s->G == 1 ? 0 : gold[t - 1], a = s->G == 1 ? gold[t - 1] : t > 1 ? gold[t - 2] : K;
            float term = R[t * block + g * stride + gold[t]] - alpha[a * s->step + g * s->shift]
                - s->A[t * s->each + (g * s->P + a) * stride + gold[t]];
            loss += term > 0.0f ? term : term != term ? NAN : 0.0f;
        }
        tops[t] = chain_alpha(s, R + t * block, E + t * stride, t == T - 1 ? later : alpha);
        log_sum += tops[t];
        if (t == T - 1) break;
        if (stop_count(&done, each) < 0) return -1;
    }
    /* The last block: p = exp(alpha + end - log sum). */
    double sum = 0.0;
    float best = -INFINITY;
    for (int64_t q = 0; q < block; q++) {
        later[q] += s->end[q % stride];
        best = later[q] > best ? later[q] : best;
    }
    for (int64_t q = 0; q < block; q += PART) *(rows_part *)(now + q) = part_exp(*(rows_part *)(later + q) - best);
    for (int64_t q = 0; q < block; q += LANES) sum += rows_total(*(rows_v *)(now + q));
    double last = best + log(sum);
    out[0] = log_sum + last;
    if (gold != NULL) {
        int64_t g = s->G == 1 ? 0 : T > 1 ? gold[T - 2] : K;
        double term = last - later[g * stride + gold[T - 1]];
        loss += term > 0.0 ? term : term != term ? NAN : 0.0;
    }
    out[1] = loss;
    if (moments == NULL || !isfinite(out[0])) return stop_poll(done);
    for (int64_t q = 0; q < block; q++) {
        now[q] /= (float)sum;
        if (now[q] > 0.0f) entropy += now[q] * (last - later[q]);
    }
    float *edges = moments + T * stride, *pairs = s->each > 0 ? edges + n_edges * stride : NULL;
    memset(edges, 0, (n_edges + (pairs == NULL ? 0 : T * K)) * stride * sizeof(float));
    if (has_end)
        for (int64_t q = 0; q < block; q++) edges[(K + 1) * stride + q % stride] += now[q];
    memset(part, 0, n_edges * stride * sizeof(float));
    for (int64_t t = T - 1;; t--) {
        float *row = moments + t * stride;
        memcpy(row, now, stride * sizeof(float));
        for (int64_t q = stride; q < block; q += LANES) *(rows_v *)(row + q % stride) += *(const rows_v *)(now + q);
        if (gold != NULL) row[gold[t]] -= 1.0f;
        if (t == 0) break;
        chain_alpha(s, R + (t - 1) * block, E + (t - 1) * stride, alpha);
        float *pair = pairs == NULL ? NULL : pairs + t * K * stride;
        entropy += chain_backward(s, t, alpha, R + t * block, now, before,
                                  s->G > 1 ? part + (K + 2) * stride : pair == NULL ? part : pair);
        if (s->G > 1 && pair != NULL) memcpy(pair, now, K * stride * sizeof(float));
        if (s->G > 1 || pair != NULL)
            for (int64_t q = 0; q < K * stride; q += LANES)
                *(rows_v *)(part + q) += *(const rows_v *)((s->G > 1 ? now : pair) + q);
        if (gold != NULL && pair != NULL) pair[gold[t - 1] * stride + gold[t]] -= 1.0f;
        if (gold != NULL) {
            part[gold[t - 1] * stride + gold[t]] -= 1.0f;
            if (s->G > 1) part[(K + 2 + (t > 1 ? gold[t - 2] : K) * K + gold[t - 1]) * stride + gold[t]] -= 1.0f;
        }
        if (t % CHAIN_PART == 0 || t == 1) {
            for (int64_t q = 0; q < n_edges * stride; q += LANES) *(rows_v *)(edges + q) += *(const rows_v *)(part + q);
            memset(part, 0, n_edges * stride * sizeof(float));
        }
        float *swap = before;
        before = now;
        now = swap;
        if (stop_count(&done, each) < 0) return -1;
    }
    for (int64_t q = 0; q < block; q += LANES) *(rows_v *)(edges + K * stride + q % stride) += *(const rows_v *)(now + q);
    if (gold != NULL) {
        edges[K * stride + gold[0]] -= 1.0f;
        if (has_end) edges[(K + 1) * stride + gold[T - 1]] -= 1.0f;
    }
    out[2] = entropy;
    return stop_poll(done);
}

#endif
