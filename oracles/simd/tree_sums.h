/* Sums over dependency trees on scores that were computed elsewhere, of weights instead of logs: a log partition, and the
 * probabilities of arcs, which are its gradient by the scores.
 *
 * eisner.h adds up in logs, with an exponential per term, and arborescence.h seeks pivots, both for weights that training
 * may drive anywhere. Here the weight of an arc is exp(score - the best score into the same word), at most 1, and sums
 * are products and additions of doubles alone: nothing is subtracted from a sum, so that they are exact to a few units of
 * the last place while nothing underflows. Whether something might have is seen from the result, see the two bounds below;
 * the caller then turns to the other two.
 *
 * Where several words may stand below the root, these stand below a word that is added before the first.
 */
#ifndef STRUCTSVM_TREE_SUMS_H
#define STRUCTSVM_TREE_SUMS_H

#include "exponentials.h"
#include "sets.h"

/* Scores (m, m) of arcs, floats or doubles, by head and dependent, of which n + 1 rows and columns count; column 0 and the
 * diagonal do not. `memory` has room for trees_size(n) doubles. */
typedef struct {
    int64_t n, m;
    int is_double, projective, several;
    const void *scores;
    double *memory;
} trees;

enum { TREES_OK = 0, TREES_IN_LOGS = 1, TREES_NONE = 2, TREES_SQUARES = 7 };

/* `sums` writes the log partition, -inf where there is no tree, and unless `arcs` is NULL the probabilities of arcs, an
 * array of the scores' form: those of n + 1 rows and columns, but column 0 and the diagonal. TREES_OK; TREES_IN_LOGS where
 * only logs will do, and what was written is of no use; or -1 (see sets.h). `table` writes n + several + 1 rows of floats for
 * the search for the best tree; TREES_NONE if a word has no head. */
typedef struct {
    int lanes;   /* entries that `beside` computes side by side, see tree_lanes.h; 1 where it is not there */
    int (*sums)(const trees *s, double *log_z, void *arcs);
    int (*beside)(const trees *s, double *log_z, float *const *arcs);
    int (*alone)(const trees *s, double *log_z, float *arcs);   /* see tree_alone.h; with AVX-512 only, where the others are not */
    int (*table)(const trees *s, float *table);
} tree_sums_kernels;

KERNELS_OF(tree_sums);

/* Doubles of a row of n words, the word that may be added and the root; a vector may read on. */
static inline int64_t trees_stride(int64_t n) { return (n + 2 + 8) / 4 * 4; }

static inline int64_t trees_size(int64_t n) { return (TREES_SQUARES * (n + 2) + 4) * trees_stride(n); }

ROWS_INLINE doubles trees_at(const double *x) {
    doubles v;
    memcpy(&v, x, sizeof v);
    return v;
}

ROWS_INLINE void trees_put(double *x, doubles v) { memcpy(x, &v, sizeof v); }

ROWS_INLINE double trees_total(doubles v) {
    double total = v[0];
    for (int l = 1; l < DOUBLES; l++) total += v[l];
    return total;
}

/* Scores of the arcs from a head to words 1 .. n. */
ROWS_INLINE void trees_row(const trees *s, int64_t head, double *row) {
    const double *wide = (const double *)s->scores + head * s->m + 1;
    const float *narrow = (const float *)s->scores + head * s->m + 1;
    if (s->is_double) memcpy(row, wide, s->n * sizeof(double));
    else for (int64_t d = 0; d < s->n; d++) row[d] = narrow[d];
}

/* Scores X[h S + d] of arcs between N nodes, 0 the root, and the best into each word; their sum, -inf if a word has none. */
static double trees_scores(const trees *s, int64_t N, int64_t S, double *X, double *top) {
    int64_t more = s->several;
    double sum = 0.0;
    for (int64_t k = 0; k < N * S; k++) X[k] = -INFINITY;
    for (int64_t d = 0; d < S; d++) top[d] = -INFINITY;
    if (more) X[1] = top[1] = 0.0;
    for (int64_t h = more; h < N; h++) {
        double *row = X + h * S;
        trees_row(s, h - more, row + 1 + more);
        if (h > more) row[h] = -INFINITY;
        for (int64_t d = 1 + more; d < N; d += DOUBLES) trees_put(top + d, doubles_max(trees_at(row + d), trees_at(top + d)));
    }
    for (int64_t d = 1; d < N; d++) sum += top[d];
    return sum;
}

/* Weights in the place of scores. */
static double trees_weights(const trees *s, int64_t N, int64_t S, double *X, double *top) {
    double sum = trees_scores(s, N, S, X, top);
    if (!(sum > -INFINITY)) return sum;
    for (int64_t d = 0; d < S; d++) top[d] = d == 0 || d >= N ? 0.0 : top[d];
    for (int64_t k = 0; k < N * S; k += S)
        for (int64_t d = 0; d + DOUBLES <= S; d += DOUBLES)
            trees_put(X + k + d, doubles_exp(trees_at(X + k + d) - trees_at(top + d), 13));
    return sum;
}

/* Write the probability of an arc between two nodes. */
ROWS_INLINE void trees_write(const trees *s, void *arcs, int64_t h, int64_t d, double p) {
    int64_t at = (h - s->several) * s->m + d - s->several;
    if (s->is_double) ((double *)arcs)[at] = p;
    else ((float *)arcs)[at] = (float)p;
}

/* ---- projective trees ----
 *
 * Eisner's chart over words i < j, by sums of products (see eisner.h). Each square holds two triangles:
 *     P: items closed to the right, by start and by end;   Q: those closed to the left;   O: open ones, [head][dependent];
 *     middle = sum_{i <= k < j} P[i][k] Q[j][k + 1],       O[i][j] = X[i][j] middle,       O[j][i] = X[j][i] middle,
 *     P[i][j] = P[j][i] = sum_{i < k <= j} O[i][k] P[j][k],     Q[i][j] = Q[j][i] = sum_{i <= k < j} Q[i][k] O[j][k].
 * The row of i is 0 from j on until P[i][j] is known, so that a vector may read on; the terms of O[i][j] and O[j][i] are
 * added at the end, and the three sums run side by side.
 *
 * There are less than 7^n trees, and as many ways to complete an item. Those that an item stands for weigh less than
 * 1e-307 if it underflows: what is lost of the sum Z is less than 3 n^2 7^n 1e-307. With log Z above the bound, it is less
 * than 1e-28 Z, and 7^n / Z, the greatest derivative, is a double. */
static int trees_projective(const trees *s, double *log_z, void *arcs) {
    int64_t n = s->n + s->several, N = n + 1, S = trees_stride(s->n), size = N * S, work = 0;
    double *X = s->memory, *P = X + size, *Q = P + size, *O = Q + size, *dP = O + size, *dQ = dP + size, *dO = dQ + size;
    double Z = 0.0, best = trees_weights(s, N, S, X, P);
    *log_z = best;
    if (!(best > -INFINITY)) return TREES_OK;
    memset(P, 0, 3 * size * sizeof(double));
    for (int64_t i = 1; i <= n; i++) P[i * S + i] = Q[i * S + i] = 1.0;
    for (int64_t width = 1; width < n; width++) {
        for (int64_t i = 1, j = i + width; j <= n; i++, j++) {
            doubles middle = {0}, right = {0}, left = {0};
            const double *Pi = P + i * S + i, *Pj = P + j * S + i + 1, *Qi = Q + i * S + i, *Qj = Q + j * S + i + 1;
            const double *Oi = O + i * S + i + 1, *Oj = O + j * S + i;
            for (int64_t k = 0; k < width; k += DOUBLES) {
                middle += trees_at(Pi + k) * trees_at(Qj + k);
                right += trees_at(Oi + k) * trees_at(Pj + k);
                left += trees_at(Qi + k) * trees_at(Oj + k);
            }
            double both = trees_total(middle), to_right = both * X[i * S + j], to_left = both * X[j * S + i];
            O[i * S + j] = to_right;
            O[j * S + i] = to_left;
            P[i * S + j] = P[j * S + i] = to_right + trees_total(right);
            Q[i * S + j] = Q[j * S + i] = to_left + trees_total(left);
        }
        if (stop_count(&work, (n - width) * (width / 2 + 10)) < 0) return -1;
    }
    for (int64_t r = 1; r <= n; r++) Z += X[r] * Q[S + r] * P[r * S + n];
    double log_sum = log(Z);
    if (!(log_sum < INFINITY) || !(log_sum > -640.0 + (double)n * 1.9459101490553132 + 2.0 * log((double)n))) return TREES_IN_LOGS;
    *log_z = best + log_sum;
    if (arcs == NULL) return TREES_OK;
    memset(dP, 0, 3 * size * sizeof(double));
    for (int64_t r = 1; r <= n; r++) {
        double each = X[r] / Z;
        if (!s->several) trees_write(s, arcs, 0, r, each * Q[S + r] * P[r * S + n]);
        dQ[S + r] += each * P[r * S + n];
        dP[r * S + n] += each * Q[S + r];
    }
    /* The terms of O[i][j] and O[j][i] come first, as their derivatives are wanted at once; what the loop adds to these
     * two, and to P[j][j], Q[i][i], is not read again. */
    for (int64_t width = n - 1; width > 0; width--) {
        int64_t whole = width / DOUBLES * DOUBLES;
        doubles_bits rest;
        for (int l = 0; l < DOUBLES; l++) rest[l] = whole + l < width ? -1 : 0;
        for (int64_t i = 1, j = i + width; j <= n; i++, j++) {
            double gP = dP[i * S + j] + dP[j * S + i], gQ = dQ[i * S + j] + dQ[j * S + i];
            double to_right = dO[i * S + j] + gP, to_left = dO[j * S + i] + gQ;
            double both = to_right * X[i * S + j] + to_left * X[j * S + i];
            if (i > s->several) {
                trees_write(s, arcs, i, j, to_right * O[i * S + j]);
                trees_write(s, arcs, j, i, to_left * O[j * S + i]);
            } else {
                trees_write(s, arcs, i, j, to_right * O[i * S + j]);
            }
            const double *Pi = P + i * S + i, *Pj = P + j * S + i + 1, *Qi = Q + i * S + i, *Qj = Q + j * S + i + 1;
            const double *Oi = O + i * S + i + 1, *Oj = O + j * S + i;
            double *dPi = dP + i * S + i, *dPj = dP + j * S + i + 1, *dQi = dQ + i * S + i, *dQj = dQ + j * S + i + 1;
            double *dOi = dO + i * S + i + 1, *dOj = dO + j * S + i;
            doubles p = (doubles){0} + gP, q = (doubles){0} + gQ, m = (doubles){0} + both;
            for (int64_t k = 0; k < width; k += DOUBLES) {
                if (k == whole) {
                    p = (doubles)((doubles_bits)p & rest);
                    q = (doubles)((doubles_bits)q & rest);
                    m = (doubles)((doubles_bits)m & rest);
                }
                trees_put(dPi + k, trees_at(dPi + k) + m * trees_at(Qj + k));
                trees_put(dQj + k, trees_at(dQj + k) + m * trees_at(Pi + k));
                trees_put(dOi + k, trees_at(dOi + k) + p * trees_at(Pj + k));
                trees_put(dPj + k, trees_at(dPj + k) + p * trees_at(Oi + k));
                trees_put(dQi + k, trees_at(dQi + k) + q * trees_at(Oj + k));
                trees_put(dOj + k, trees_at(dOj + k) + q * trees_at(Qi + k));
            }
        }
        if (stop_count(&work, (n - width) * (width + 10)) < 0) return -1;
    }
    return TREES_OK;
}

/* ---- trees whose arcs may cross ----
 *
 * The elimination of arborescence.h, head by row: with s_k = sum_{j > 0} X[j][k] and y[i] = X[k][i] / s_k, taking word k
 * out of the words 1 .. k leaves
 *     X'[j][i] = X[j][i] + X[j][k] y[i],         sum(X) = s_k sum(X'),
 * for heads j < k, 0 the root, and words i < k. Backwards, with G the derivatives of the log of the sum, and G' those at X',
 *     g[i] = sum_j G'[j][i] X[j][k],     G[k][i] = g[i] / s_k,
 *     G[j][k] = sum_i G'[j][i] y[i] + (1 - sum_i g[i] y[i]) / s_k   (the second term not of the root).
 * Row and column k of X are not written again, so that nothing needs to be restored. The word that is left last has the
 * least weight of heads that are words. In each place less than 1e-307 is lost of a weight, and of the sum at most n^2
 * times as much over the product of all s_k < 1 and the last sum. */
enum { TREES_ROWS = 4 };        /* rows that are gone through at once, so that y and g are read once for all of them */

/* Rows j .. j + rows - 1 of X' from those of X. */
ROWS_INLINE void trees_take_rows(double *X, int64_t S, int64_t k, const double *y, int64_t j, const int rows) {
    double *row = X + j * S;
    doubles x[TREES_ROWS], to[TREES_ROWS];
    EACH_PART
    for (int r = 0; r < rows; r++) x[r] = (doubles){0} + row[r * S + k];
    for (int64_t i = 0; i < k; i += DOUBLES) {
        const doubles by = trees_at(y + i);
        EACH_PART
        for (int r = 0; r < rows; r++) to[r] = trees_at(row + r * S + i) + x[r] * by;
        EACH_PART
        for (int r = 0; r < rows; r++) trees_put(row + r * S + i, to[r]);
    }
    for (int r = 0; r < rows; r++) row[r * S + j + r] = 0.0;
}

static __attribute__((noinline)) void trees_take(double *X, int64_t S, int64_t k, const double *y) {
    int64_t j = 0;
    for (; j + TREES_ROWS <= k; j += TREES_ROWS) trees_take_rows(X, S, k, y, j, TREES_ROWS);
    for (; j < k; j++) trees_take_rows(X, S, k, y, j, 1);
}

/* The first terms of G[j][k] in rows j .. j + rows - 1, and what these rows add to g. */
ROWS_INLINE void trees_give_rows(const double *X, double *G, int64_t S, int64_t k, const double *y, double *g, int64_t j,
                                 const int rows) {
    double *row = G + j * S;
    doubles x[TREES_ROWS], sum[TREES_ROWS];
    EACH_PART
    for (int r = 0; r < rows; r++) x[r] = (doubles){0} + X[(j + r) * S + k], sum[r] = (doubles){0};
    for (int64_t i = 0; i < k; i += DOUBLES) {
        const doubles by = trees_at(y + i);
        doubles total = trees_at(g + i);
        EACH_PART
        for (int r = 0; r < rows; r++) {
            const doubles part = trees_at(row + r * S + i);
            sum[r] += part * by;
            total += x[r] * part;
        }
        trees_put(g + i, total);
    }
    EACH_PART
    for (int r = 0; r < rows; r++) row[r * S + k] = trees_total(sum[r]);
}

static __attribute__((noinline)) void trees_give(const double *X, double *G, int64_t S, int64_t k, const double *y, double *g) {
    int64_t j = 0;
    for (; j + TREES_ROWS <= k; j += TREES_ROWS) trees_give_rows(X, G, S, k, y, g, j, TREES_ROWS);
    for (; j < k; j++) trees_give_rows(X, G, S, k, y, g, j, 1);
}

static int trees_crossing(const trees *s, double *log_z, void *arcs) {
    int64_t n = s->n + s->several, N = n + 1, S = trees_stride(s->n), size = N * S, work = 0, last = 1;
    double *X = s->memory, *W = X + size, *G = W + size, *y = G + size, *g = y + S, *inverse = g + S;
    double best = trees_weights(s, N, S, X, y), log_sum = 0.0, depth = 0.0, least = INFINITY;
    *log_z = best;
    if (!(best > -INFINITY)) return TREES_OK;
    memset(g, 0, S * sizeof(double));
    for (int64_t h = 1; h < N; h++)
        for (int64_t d = 0; d < N; d++) g[d] += X[h * S + d];
    for (int64_t d = 1; d < N; d++)
        if (g[d] < least) least = g[d], last = d;
    if (last > 1) {
        for (int64_t d = 0; d < S; d++) {
            double held = X[S + d];
            X[S + d] = X[last * S + d];
            X[last * S + d] = held;
        }
        for (int64_t h = 0; h < N; h++) {
            double held = X[h * S + 1];
            X[h * S + 1] = X[h * S + last];
            X[h * S + last] = held;
        }
    }
    memcpy(W, X, size * sizeof(double));
    for (int64_t k = n; k > 1; k--) {
        double sum = 0.0;
        for (int64_t j = 1; j < k; j++) sum += X[j * S + k];
        if (!(sum > 0.0)) return TREES_IN_LOGS;
        inverse[k] = 1.0 / sum;
        log_sum += log(sum);
        depth += sum < 1.0 ? log(sum) : 0.0;
        for (int64_t i = 0; i < k; i++) y[i] = X[k * S + i] * inverse[k];
        for (int64_t i = k; i < k + DOUBLES; i++) y[i] = 0.0;
        trees_take(X, S, k, y);
        if (stop_count(&work, k * k / 4 + 8 * k) < 0) return -1;
    }
    log_sum += log(X[1]);
    depth += X[1] < 1.0 ? log(X[1]) : 0.0;
    if (!(depth > -600.0) || !(log_sum < INFINITY)) return TREES_IN_LOGS;
    *log_z = best + log_sum;
    if (arcs == NULL) return TREES_OK;
    memset(G, 0, size * sizeof(double));
    G[1] = 1.0 / X[1];
    for (int64_t k = 2; k <= n; k++) {
        double *its = G + k * S, rest = 1.0;
        for (int64_t i = 0; i < k; i++) y[i] = X[k * S + i] * inverse[k];
        for (int64_t i = k; i < k + DOUBLES; i++) y[i] = 0.0;
        memset(g, 0, S * sizeof(double));
        trees_give(X, G, S, k, y, g);
        for (int64_t i = 1; i < k; i++) rest -= g[i] * y[i];
        rest *= inverse[k];
        for (int64_t j = 1; j < k; j++) G[j * S + k] += rest;
        for (int64_t i = 1; i < k; i++) its[i] = g[i] * inverse[k];
        if (stop_count(&work, k * k / 3 + 8 * k) < 0) return -1;
    }
    double all = 0.0;
    for (int64_t h = s->several; h < N; h++) {
        int64_t own = h == 1 ? last : h == last ? 1 : h;
        for (int64_t d = 1 + s->several; d < N; d++) {
            int64_t at = own * S + (d == 1 ? last : d == last ? 1 : d);
            double p = fmax(W[at] * G[at], 0.0);
            all += W[at] * G[at];
            if (h != d) trees_write(s, arcs, h, d, p);
        }
    }
    return all < INFINITY ? TREES_OK : TREES_IN_LOGS;
}

/* Scores less the best into the same word, as floats in N rows of N: what the search for the best tree reads. Numbers so
 * great that floats could not be added up are made smaller together. */
static int trees_table(const trees *s, float *table) {
    int64_t N = s->n + s->several + 1, S = trees_stride(s->n);
    double *X = s->memory, *top = X + N * S, least = 0.0, by = 1.0;
    if (!(trees_scores(s, N, S, X, top) > -INFINITY)) return TREES_NONE;
    for (int64_t h = 0; h < N; h++)
        for (int64_t d = 1; d < N; d++) {
            double x = X[h * S + d] - top[d];
            X[h * S + d] = x;
            least = x > -INFINITY && x < least ? x : least;
        }
    if (least < -1e30) by = -1e30 / least;
    for (int64_t h = 0; h < N; h++) {
        table[h * N] = -INFINITY;
        for (int64_t d = 1; d < N; d++) table[h * N + d] = (float)(X[h * S + d] * by);
    }
    return TREES_OK;
}

static int trees_sums(const trees *s, double *log_z, void *arcs) {
    return s->projective ? trees_projective(s, log_z, arcs) : trees_crossing(s, log_z, arcs);
}

#include "tree_lanes.h"

#include "tree_alone.h"

#endif
