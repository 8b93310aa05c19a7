/* Max-plus dynamic programmes over a label chain of order 1 or 2.
 *
 * T tokens, K labels in rows of `stride` floats; columns beyond K hold -inf in the lattice. E[t] is the
 * lattice: emission scores, -inf where a label may not stand. L[g] is the row of losses against the
 * true label g: without a true labelling `gold` is NULL and no loss is added, so that training and
 * prediction are one code.
 *
 * A state is (g, c): the label c of this token, and for order 2 the label g of the token before, where
 * the label K means "before the first token". A block of states has G rows of `stride` floats: G = 1
 * for order 1, G = K + 1 for order 2. The states that lead to (g, c) are
 *     order 1: (0, a),  score A[a][c];           order 2: (a, g),  score A[g][a][c],
 * for P labels a (P = K, or K + 1). With `step` and `shift` the same loop serves both orders.
 *
 * Where attributes are conjoined with pairs of labels, each token has a table A of its own, `each` floats after that of the
 * token before (chain_tables); otherwise `each` is 0. Of the first token's table nothing is read.
 */
#ifndef STRUCTSVM_CHAIN_H
#define STRUCTSVM_CHAIN_H

#include "rows.h"
#include "sets.h"
#include "stop.h"

#define CHAIN_SHORT 3   /* tokens for which tables made of A do not pay */

/* Nodes of a label and a state of an automaton, in groups; see ruled.h. */
typedef struct {
    int64_t N, H;
    const int32_t *labels;  /* (N) */
    const int32_t *rows;    /* (N): the row of A of the labels behind it */
    const int32_t *group;   /* (N) */
    const int32_t *groups;  /* (H + 1): where the nodes of each begin */
    const int32_t *next;    /* (H, K): the node of a label behind a group, or -1 */
    const int32_t *first;   /* (K): the node of a first label, or -1 */
    const int32_t *ends;    /* (N): whether a sequence may end there */
    const int32_t *origins; /* (N + 1): where the groups that lead to each node begin, in: */
    const int32_t *origin;
} chain_rules;

typedef struct {
    int64_t K, stride, G, P;
    int64_t step, shift;    /* predecessor a of group g stands at a * step + g * shift */
    int64_t each;
    const float *A;         /* (G, P, stride) transition scores, the mask added */
    const float *start;     /* (stride) */
    const float *end;       /* (stride) */
    const float *loss;      /* (K, stride): true label, label */
    const int32_t *units;   /* (K): what chain_count counts for an error, by the true label */
    float *tops;            /* room for (stride) and a number per token, to leave out labels in chain_best; or NULL */
    float *turned;          /* room for (stride, stride), A transposed for the way back of chain_best; or NULL */
    int32_t has_tables;     /* whether these are A's */
    float *quick;           /* room for 4 (stride, stride), for sums without logarithms (chain_quick.h); or NULL */
    const chain_rules *rules;   /* or NULL */
} chain_scores;

typedef struct {
    int (*tables)(const chain_scores *s, const float *A, const float *W, const int64_t *indptr, const int32_t *indices,
                  const float *values, int64_t T, float *rows, float *tables);
    int (*best)(chain_scores *s, const float *E, const int32_t *gold, int64_t T, float *V, float *sums, int32_t *path,
                float *score);
    int (*count)(const chain_scores *s, const float *E, const int32_t *gold, int64_t T, int64_t cap, float *V,
                 float *best);
    void (*count_path)(const chain_scores *s, const int32_t *gold, int64_t T, int64_t cap, int64_t d, const float *V,
                       float *sums, int32_t *path);
    int64_t (*kbest)(const chain_scores *s, const float *E, int64_t T, int64_t k, float *score, int64_t *back,
                     int64_t *heads, int32_t *paths, float *totals);
    int (*max_marginals)(const chain_scores *s, const float *E, int64_t T, const float *V, float *B, float *out);
    int (*expect)(const chain_scores *s, const float *E, const int32_t *gold, int64_t T, float *R, float *tops,
                  float *work, float *moments, int64_t n_edges, int has_end, double *out);
    double (*token_dot)(const int32_t *ia, const float *va, int64_t na, const int32_t *ib, const float *vb, int64_t nb);
} chain_kernels;

KERNELS_OF(chain);

/* Tables of tokens 1 .. T - 1: the scores A that all tokens have, and the weights W of their attributes, K rows each, by
 * the label before. `rows` is room for K rows. */
static int chain_tables(const chain_scores *s, const float *A, const float *W, const int64_t *indptr, const int32_t *indices,
                        const float *values, int64_t T, float *rows, float *tables) {
    int64_t K = s->K, P = s->P, stride = s->stride, block = K * stride, work = 0;
    for (int64_t t = 1; t < T; t++) {
        int64_t a = indptr[t], n = indptr[t + 1] - a;
        float *table = tables + t * s->each;
        if (t + 1 < T)
            for (int64_t e = a + n; e < indptr[t + 2]; e++) rows_prefetch(W + indices[e] * block, block);
        if (s->G > 1) memset(rows, 0, block * sizeof(float));
        rows_sum(W, block, indices + a, values == NULL ? NULL : values + a, n, s->G > 1 ? rows : A, s->G > 1 ? rows : table);
        if (s->G > 1)
            for (int64_t g = 0; g < K; g++)
                for (int64_t q = g * P; q < (g + 1) * P; q++)
                    for (int64_t c = 0; c < stride; c += LANES)
                        *(rows_v *)(table + q * stride + c) = *(const rows_v *)(A + q * stride + c)
                                                            + *(const rows_v *)(rows + g * stride + c);
        if (stop_count(&work, (n * block + s->each) / LANES) < 0) return -1;
    }
    return stop_poll(work);
}

/* out[c] = extra[c] + extra2[c] + max_a before[a] + A[a][c], for nv vectors (extra2 may be NULL). */
ROWS_INLINE void chain_max_part(const float *before, int64_t step, const float *A, int64_t P, int64_t stride,
                                const float *extra, const float *extra2, float *out, const int nv) {
    rows_part m[3 * PARTS];
    EACH_PART
    for (int k = 0; k < nv * PARTS; k++) m[k] = part_all(-INFINITY);
    for (int64_t a = 0; a < P; a++) {
        const float *row = A + a * stride;
        EACH_PART
        for (int k = 0; k < nv * PARTS; k++)
            m[k] = rows_part_max(before[a * step] + *(const rows_part *)(row + k * PART), m[k]);
    }
    EACH_PART
    for (int k = 0; k < nv * PARTS; k++) {
        if (extra2 != NULL) m[k] += *(const rows_part *)(extra2 + k * PART);
        *(rows_part *)(out + k * PART) = m[k] + *(const rows_part *)(extra + k * PART);
    }
}

ROWS_INLINE void chain_max(const float *before, int64_t step, const float *A, int64_t P, int64_t stride,
                           const float *extra, const float *extra2, float *out) {
#define MAX_OF(NV) \
    chain_max_part(before, step, A + c, P, stride, extra + c, extra2 == NULL ? NULL : extra2 + c, out + c, NV)
    int64_t c = 0;
    for (; c + 3 * LANES <= stride; c += 3 * LANES) MAX_OF(3);
    if (stride - c == 2 * LANES) MAX_OF(2);
    if (stride - c == LANES) MAX_OF(1);
#undef MAX_OF
}

ROWS_INLINE void chain_first(const chain_scores *s, const float *E, const float *loss, float *V) {
    int64_t stride = s->stride, last = (s->G - 1) * stride;
    for (int64_t j = 0; j < last; j++) V[j] = -INFINITY;
    for (int64_t j = 0; j < stride; j++) V[last + j] = E[j] + s->start[j] + (loss == NULL ? 0.0f : loss[j]);
}

/* On to token t: V = block of scores of the best labellings that end in each state. */
ROWS_INLINE void chain_step(const chain_scores *s, int64_t t, const float *before, const float *E, const float *loss,
                            float *V) {
    int64_t stride = s->stride, groups = s->G == 1 ? 1 : s->K;
    const float *A = s->A + t * s->each;
    for (int64_t g = 0; g < groups; g++)
        chain_max(before + g * s->shift, s->step, A + g * s->P * stride, s->P, stride, E, loss, V + g * stride);
    if (s->G > 1)
        for (int64_t j = 0; j < stride; j++) V[groups * stride + j] = -INFINITY;
}

/* The predecessor a through which state (g, c) of token t got its maximum: the smallest where several did. */
ROWS_INLINE int64_t chain_back(const chain_scores *s, int64_t t, const float *before, int64_t g, int64_t c, float *best,
                               float *sums) {
    const float *b = before + g * s->shift, *A = s->A + t * s->each + g * s->P * s->stride + c;
    int64_t n = (s->P + LANES - 1) / LANES * LANES, a = 0;
    if (s->turned != NULL && s->has_tables) {
        a = rows_argmax(before, s->turned + c * s->stride, s->stride, best);
    } else {
        for (; a < s->P; a++) sums[a] = b[a * s->step] + A[a * s->stride];
        for (; a < n; a++) sums[a] = -INFINITY;
        a = rows_argmax(sums, NULL, n, best);
    }
    return a < s->P ? a : s->P - 1;     /* scores that overflowed to NaN must not lead out of the table */
}

/* From state (g, c) of token t to its predecessor. Only at token 0 the group is K; scores that overflowed
 * could claim otherwise, and K is not a label. */
ROWS_INLINE void chain_move(const chain_scores *s, int64_t t, int64_t a, int64_t *g, int64_t *c) {
    if (s->G == 1) {
        *c = a;
    } else {
        *c = *g;
        *g = t == 1 ? s->K : a < s->K ? a : s->K - 1;
    }
}

/* Best last state of a block: its group and label, the score with the end row. */
ROWS_INLINE float chain_last(const chain_scores *s, const float *V, int64_t T, int64_t *g, int64_t *c) {
    float best = -INFINITY, x;
    *g = T == 1 ? s->G - 1 : 0;
    *c = 0;
    for (int64_t k = 0; k < s->G; k++) {
        int64_t at = rows_argmax(V + k * s->stride, s->end, s->stride, &x);
        if (x > best) best = x, *g = k, *c = at < s->K ? at : s->K - 1;
    }
    return best;
}

/* Labels of the token before that cannot matter (order 1, one table for all tokens). With a' the best label before, each
 * label c has at least before[a'] + A[a'][c]; so a is left out where
 *     before[a] + max_c A[a][c] < before[a'] + min_c A[a'][c].
 * Rounding is monotonic: the maxima, and the first label that reaches them, are those of all labels, bit for bit.
 *
 * This is the list of the others, ascending, and their number; beyond `most` it ends. "cold" here is for size: it is as
 * fast. */
static __attribute__((noinline, cold)) int64_t chain_left(const chain_scores *s, const float *before, float least,
                                                          int64_t most, int32_t *left) {
    int64_t n = 0;
    for (int64_t a = 0; a < s->P && n <= most; a += LANES) {
        unsigned out = rows_bits(*(const rows_v *)(before + a) + *(const rows_v *)(s->tops + a) < rows_all(least));
        for (int l = 0; out != (1 << LANES) - 1 && l < LANES && a + l < s->P; l++) {
            left[n] = (int32_t)(a + l);
            n += !(out >> l & 1);
        }
    }
    return n;
}

/* V of token t, if few labels of the token before matter; at least `least` are its maxima without E and losses. */
static __attribute__((noinline, cold)) int chain_few(const chain_scores *s, const float *before, const float *E,
                                                     const float *loss, float *V, float *least, int32_t *left) {
    int64_t stride = s->stride, n, a = 0;
    float top = rows_greatest(before, stride, 1.0f);
    while (a + LANES < stride && !rows_bits(*(const rows_v *)(before + a) == rows_all(top))) a += LANES;
    while (a + 1 < s->P && before[a] != top) a++;
    *least = top - rows_greatest(s->A + a * stride, stride, -1.0f);
    n = chain_left(s, before, *least, s->P / 2, left);
    if (2 * n > s->P) return 0;
    for (int64_t c = 0; c < stride; c += 3 * LANES) {
        if (c > stride - 3 * LANES) c = stride - 3 * LANES;     /* some twice */
        rows_part m[3 * PARTS];
        EACH_PART
        for (int v = 0; v < 3 * PARTS; v++) m[v] = part_all(-INFINITY);
        for (int64_t k = 0; k < n; k++) {
            const float *row = s->A + left[k] * stride + c;
            EACH_PART
            for (int v = 0; v < 3 * PARTS; v++)
                m[v] = rows_part_max(before[left[k]] + *(const rows_part *)(row + v * PART), m[v]);
        }
        EACH_PART
        for (int v = 0; v < 3 * PARTS; v++) {
            if (loss != NULL) m[v] += *(const rows_part *)(loss + c + v * PART);
            *(rows_part *)(V + c + v * PART) = m[v] + *(const rows_part *)(E + c + v * PART);
        }
    }
    return 1;
}

/* chain_back, without looking at the labels that are left out. */
static __attribute__((noinline, cold)) int64_t chain_back_few(const chain_scores *s, const float *before, float least,
                                                              int64_t c, int32_t *left) {
    int64_t n = chain_left(s, before, least, s->P, left), a = 0;
    float best = -INFINITY;
    for (int64_t k = 0; k < n; k++) {
        float x = before[left[k]] + s->A[left[k] * s->stride + c];
        if (x > best) best = x, a = left[k];
    }
    return a;
}

/* Time of a step, in the units of stop.h: a vector of sums for each group and label before. */
ROWS_INLINE int64_t chain_work(const chain_scores *s) { return s->G * s->P * s->stride / LANES; }

/* Tokens t .. end - 1 of the best labellings. */
static __attribute__((noinline)) void chain_forward(const chain_scores *s, const float *E, const int32_t *gold,
                                                    int64_t t, int64_t end, float *V, float *least, float *sums) {
    int64_t stride = s->stride, block = s->G * stride;
    for (; t < end; t++) {
        const float *loss = gold == NULL ? NULL : s->loss + gold[t] * stride;
        if (least != NULL && chain_few(s, V + (t - 1) * block, E + t * stride, loss, V + t * block, least + t,
                                       (int32_t *)sums)) continue;
        chain_step(s, t, V + (t - 1) * block, E + t * stride, loss, V + t * block);
    }
}

/* The best labelling (with `gold`: loss added), into path, and its score. V holds T blocks: maxima only; the way back
 * finds each argument again, which is cheaper than writing T * K of them down. */
static int chain_best(chain_scores *s, const float *E, const int32_t *gold, int64_t T, float *V, float *sums,
                      int32_t *path, float *score) {
    int64_t stride = s->stride, block = s->G * stride, each = chain_work(s), part = STOP_PART / each + 1, g, c;
    int64_t t = 1;
    if (!s->has_tables && T > CHAIN_SHORT) {
        for (int64_t a = 0; s->tops != NULL && a < s->P; a++) s->tops[a] = rows_greatest(s->A + a * stride, stride, 1.0f);
        if (s->turned != NULL) rows_transpose(s->A, s->P, stride, s->turned);
        s->has_tables = 1;
    }
    float ignored, *least = s->tops != NULL && s->has_tables ? s->tops + stride : NULL;
    chain_first(s, E, gold == NULL ? NULL : s->loss + gold[0] * stride, V);
    for (; t + part < T; t += part) {
        chain_forward(s, E, gold, t, t + part, V, least, sums);
        if (stop_poll(part * each) < 0) return -1;
    }
    chain_forward(s, E, gold, t, T, V, least, sums);
    *score = chain_last(s, V + (T - 1) * block, T, &g, &c);
    for (t = T - 1; t >= 0; t--) {
        path[t] = (int32_t)c;
        if (t == 0) break;
        int64_t a = least != NULL ? chain_back_few(s, V + (t - 1) * block, least[t], c, (int32_t *)sums)
                                  : chain_back(s, t, V + (t - 1) * block, g, c, &ignored, sums);
        chain_move(s, t, a, &g, &c);
    }
    return 0;
}

/* The programme with a count of errors: V[t][d] is the block of the best labellings of tokens 0..t whose labels
 * other than gold come to d units (at least d, for d = cap). Any function of the count can then be
 * traded off against the score. best[d] is the best whole labelling's score, -inf where there is none.
 *     V[t][d][c] = E[t][c] + max_a (V[t-1][d - units[gold] [c != gold]][a] + A[a][c])
 * V has T * (cap + 1) blocks. With a cap below the units of all tokens each unit must be 1. */
static int chain_count(const chain_scores *s, const float *E, const int32_t *gold, int64_t T, int64_t cap, float *V,
                       float *best) {
    int64_t stride = s->stride, block = s->G * stride, layer = (cap + 1) * block, each = chain_work(s), work = 0, most = 0, g, c;
    for (int64_t t = 0; t < T; t++) {
        float *now = V + t * layer;
        int64_t unit = s->units[gold[t]];
        most += unit;
        for (int64_t d = 0; d <= cap; d++) {
            float *v = now + d * block;
            if (d > most) {
                for (int64_t j = 0; j < block; j++) v[j] = -INFINITY;
            } else if (t > 0) {
                chain_step(s, t, now - layer + d * block, E + t * stride, NULL, v);
            } else if (d == 0) {
                chain_first(s, E, NULL, v);
            } else {
                for (int64_t j = 0; j < block; j++) v[j] = -INFINITY;
            }
        }
        /* v[d] holds the maxima that keep the count d; labels other than gold come from count d - unit. */
        for (int64_t d = cap; d >= 0; d--)
            for (int64_t k = 0; k < s->G; k++) {
                float *v = now + d * block + k * stride, keep = v[gold[t]];
                for (int64_t j = 0; j < stride; j += LANES) {
                    rows_v less = d >= unit ? *(const rows_v *)(v - unit * block + j) : rows_all(-INFINITY);
                    *(rows_v *)(v + j) = d == cap ? rows_max(*(const rows_v *)(v + j), less) : less;
                }
                v[gold[t]] = keep;
            }
        if (stop_count(&work, ((cap < most ? cap : most) + 1) * (each + block)) < 0) return -1;
    }
    for (int64_t d = 0; d <= cap; d++) best[d] = chain_last(s, V + (T - 1) * layer + d * block, T, &g, &c);
    return 0;
}

/* The labelling behind best[d] of chain_count. */
static void chain_count_path(const chain_scores *s, const int32_t *gold, int64_t T, int64_t cap,
                                         int64_t d, const float *V, float *sums, int32_t *path) {
    int64_t block = s->G * s->stride, layer = (cap + 1) * block, g, c, a, b;
    float score, other;
    chain_last(s, V + (T - 1) * layer + d * block, T, &g, &c);
    for (int64_t t = T - 1; t >= 0; t--) {
        path[t] = (int32_t)c;
        if (t == 0) break;
        const float *before = V + (t - 1) * layer;
        int64_t unit = s->units[gold[t]], wrong = d >= unit && c != gold[t] ? unit : 0;  /* fewer: scores overflowed */
        a = chain_back(s, t, before + (d - wrong) * block, g, c, &score, sums);
        if (wrong && d == cap) {
            b = chain_back(s, t, before + d * block, g, c, &other, sums);
            if (other > score) a = b, wrong = 0;
        }
        d -= wrong;
        chain_move(s, t, a, &g, &c);
    }
}

/* The k best labellings, best first; returns how many there are (fewer where the chain has fewer), or -1.
 * score and back have T * G * stride * k entries; back is (predecessor label) * k + (rank there).
 * Lists of a state's k best are merged from its P predecessors' lists, each already sorted; `heads` has room for one
 * number per state, which is at least P. */
static int64_t chain_kbest(const chain_scores *s, const float *E, int64_t T, int64_t k, float *score,
                           int64_t *back, int64_t *heads, int32_t *paths, float *totals) {
    int64_t stride = s->stride, states = s->G * stride, work = 0;
    for (int64_t j = 0; j < states * k; j++) score[j] = -INFINITY;
    for (int64_t c = 0; c < s->K; c++) score[((s->G - 1) * stride + c) * k] = E[c] + s->start[c];
    for (int64_t t = 1; t < T; t++) {
        const float *before = score + (t - 1) * states * k, *A = s->A + t * s->each;
        for (int64_t j = t * states * k; j < (t + 1) * states * k; j++) score[j] = -INFINITY;
        if (stop_count(&work, states * k) < 0) return -1;
        for (int64_t g = 0; g < (s->G == 1 ? 1 : s->K); g++)
            for (int64_t c = 0; c < s->K; c++) {
                float *out = score + (t * states + g * stride + c) * k;
                int64_t *from = back + (t * states + g * stride + c) * k;
                memset(heads, 0, s->P * sizeof(int64_t));
                for (int64_t r = 0; r < k; r++) {
                    float best = -INFINITY;
                    int64_t top = -1;
                    for (int64_t a = 0; a < s->P; a++) {
                        if (heads[a] == k) continue;
                        float x = before[(a * s->step + g * s->shift) * k + heads[a]] + A[(g * s->P + a) * stride + c];
                        if (x > best) best = x, top = a;
                    }
                    if (top < 0) break;
                    out[r] = best + E[t * stride + c];
                    from[r] = top * k + heads[top]++;
                }
                if (stop_count(&work, k * s->P) < 0) return -1;
            }
    }
    const float *last = score + (T - 1) * states * k;
    int64_t *taken = heads, n = 0;
    memset(taken, 0, states * sizeof(int64_t));
    for (; n < k; n++) {
        float best = -INFINITY;
        int64_t top = -1;
        for (int64_t q = 0; q < states; q++) {
            if (taken[q] == k || q % stride >= s->K) continue;
            float x = last[q * k + taken[q]] + s->end[q % stride];
            if (x > best) best = x, top = q;
        }
        if (top < 0) break;
        int64_t rank = taken[top]++, g = top / stride, c = top % stride;
        totals[n] = best;
        for (int64_t t = T - 1; t >= 0; t--) {
            paths[n * T + t] = (int32_t)c;
            if (t == 0) break;
            int64_t b = back[(t * states + g * stride + c) * k + rank];
            rank = b % k;
            c = s->G == 1 ? b / k : g;
            g = s->G == 1 ? 0 : b / k;
        }
        if (stop_count(&work, states + T) < 0) return -1;
    }
    return stop_poll(work) < 0 ? -1 : n;
}

/* out[t][c] = score of the best labelling with label c at token t (max-marginals): the forward maxima V
 * (from chain_best without gold) plus the backward ones B, of which two blocks are kept. */
static int chain_max_marginals(const chain_scores *s, const float *E, int64_t T, const float *V, float *B, float *out) {
    int64_t stride = s->stride, block = s->G * stride, work = 0;
    float *now = B, *next = B + block;
    for (int64_t q = 0; q < block; q++) now[q] = s->end[q % stride];
    for (int64_t t = T - 1; t >= 0; t--) {
        for (int64_t c = 0; c < stride; c += LANES) {
            rows_v best = rows_all(-INFINITY);
            for (int64_t q = c; q < block; q += stride)
                best = rows_max(*(const rows_v *)(V + t * block + q) + *(const rows_v *)(now + q), best);
            *(rows_v *)(out + t * stride + c) = best;
        }
        if (t == 0) break;
        float *swap = next;
        next = now;
        now = swap;
        const float *A = s->A + t * s->each;
        for (int64_t q = 0; q < block; q++) now[q] = -INFINITY;
        for (int64_t g = 0; g < (s->G == 1 ? 1 : s->K); g++)
            for (int64_t a = 0; a < s->P; a++) {
                rows_v best = rows_all(-INFINITY);  /* the lattice has -inf beyond K */
                for (int64_t c = 0; c < stride; c += LANES)
                    best = rows_max(*(const rows_v *)(A + (g * s->P + a) * stride + c)
                                    + *(const rows_v *)(E + t * stride + c) + *(const rows_v *)(next + g * stride + c), best);
                now[a * s->step + g * s->shift] = rows_top(best);
            }
        if (stop_count(&work, s->G * s->P * stride) < 0) return -1;
    }
    return stop_poll(work);
}

#endif
