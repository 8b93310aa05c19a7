/* Pairwise scores on a graph, and sums and maxima over all labellings by eliminating nodes one by one.
 *
 * Nodes are named by their places p in the order of elimination; structsvm/structures/graphs/elimination.py says what a
 * junction tree consists of. With separator s_0 < s_1 < ... of p, the table of p's clique is
 *
 *     T[x_p + K x_{s_0} + K^2 x_{s_1} + ...] = unary of p + scores of the edges from p to its separator + messages to p,
 *
 * and the message that p sends to s_0 the maximum, or log-sum, of T over x_p. So x_{s_0} runs fastest in the message, as
 * it does in the table of s_0, its own node there.
 */
#ifndef STRUCTSVM_JUNCTION_H
#define STRUCTSVM_JUNCTION_H

#include <math.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    int64_t n, n_edges, K, n_pairs;
    int64_t step;               /* between the scores of two edges: n_pairs, or 0 where all have the same */
    const int32_t *edges;       /* (n_edges, 2) */
    const int32_t *pair;        /* (K, K) which score a pair of labels has, or -1: 0 */
    const double *theta;        /* the scores of edges */
    const double *unary;        /* (n, K) */
    int (*poll)(int64_t work);
} graph_scores;

static inline double graph_pair(const graph_scores *g, int64_t e, int64_t a, int64_t b) {
    const int32_t p = g->pair[a * g->K + b];
    return p < 0 ? 0.0 : g->theta[e * g->step + p];
}

static double graph_value(const graph_scores *g, const int32_t *labels) {
    double total = 0.0;
    for (int64_t v = 0; v < g->n; v++) total += g->unary[v * g->K + labels[v]];
    for (int64_t e = 0; e < g->n_edges; e++)
        total += graph_pair(g, e, labels[g->edges[2 * e]], labels[g->edges[2 * e + 1]]);
    return total;
}

typedef struct {
    const int32_t *order;       /* (n) */
    const int64_t *bounds;      /* (n + 1) */
    const int32_t *separators, *edges, *slots;
    int64_t *offsets;           /* (n + 1) where the message of each place begins */
    int32_t *child, *sibling;   /* (n) who sends to a place: a list, or -1 */
    double *inner;              /* (n, K) unary scores and messages of one label */
    double *messages;
    double *table;              /* the largest one */
    double *pairs;              /* (K, K) */
    double *weights;            /* for sums: like `messages`; probabilities of separators */
    int32_t *back;              /* for maxima: like `messages` */
} junction_tree;

static void junction_start(const graph_scores *g, junction_tree *t) {
    const int64_t K = g->K;
    t->offsets[0] = 0;
    for (int64_t p = 0; p < g->n; p++) {
        int64_t size = 1;
        for (int64_t j = t->bounds[p]; j < t->bounds[p + 1]; j++) size *= K;
        t->offsets[p + 1] = t->offsets[p] + size;
        t->child[p] = -1;
        memcpy(t->inner + p * K, g->unary + t->order[p] * K, K * sizeof(double));
    }
}

/* Where the messages of child c lie in tables of its receiver p: its steps by the digits of p's separator. */
static inline void junction_steps(const junction_tree *t, int64_t c, int64_t K, int64_t d, int64_t *steps) {
    int64_t power = K;
    for (int64_t q = 0; q < d; q++) steps[q] = 0;
    for (int64_t j = t->bounds[c] + 1; j < t->bounds[c + 1]; j++, power *= K) steps[t->slots[j] - 1] = power;
}

static inline int64_t junction_next(int64_t *digits, const int64_t *steps, int64_t d, int64_t K, int64_t at) {
    for (int64_t q = 0; q < d; q++) {
        if (++digits[q] < K) return at + steps[q];
        digits[q] = 0;
        at -= (K - 1) * steps[q];
    }
    return at;
}

/* The table of p; returns how many rows of K numbers it has. */
static int64_t junction_fill(const graph_scores *g, junction_tree *t, int64_t p) {
    const int64_t K = g->K, d = t->bounds[p + 1] - t->bounds[p];
    int64_t size = K, digits[64], steps[64];
    double *T = t->table, *S = t->pairs;
    memcpy(T, t->inner + p * K, K * sizeof(double));
    for (int64_t j = 0; j < d; j++, size *= K) {
        const int32_t e = t->edges[t->bounds[p] + j];
        if (e == 0) {
            for (int64_t x = 1; x < K; x++) memcpy(T + x * size, T, size * sizeof(double));
            continue;
        }
        for (int64_t x = 0; x < K; x++)
            for (int64_t k = 0; k < K; k++) S[x * K + k] = e > 0 ? graph_pair(g, e - 1, k, x) : graph_pair(g, -e - 1, x, k);
        for (int64_t x = K - 1; x >= 0; x--)
            for (int64_t r = 0; r < size; r += K)
                for (int64_t k = 0; k < K; k++) T[x * size + r + k] = T[r + k] + S[x * K + k];
    }
    const int64_t rows = size / K;
    for (int32_t c = t->child[p]; c >= 0; c = t->sibling[c]) {
        if (t->bounds[c + 1] - t->bounds[c] < 2) continue;
        const double *M = t->messages + t->offsets[c];
        int64_t at = 0;
        junction_steps(t, c, K, d, steps);
        memset(digits, 0, sizeof(digits));
        for (int64_t r = 0; r < rows; r++) {
            for (int64_t k = 0; k < K; k++) T[r * K + k] += M[at + k];
            at = junction_next(digits, steps, d, K, at);
        }
    }
    return rows;
}

/* Hand the message of p on. */
static inline void junction_send(const graph_scores *g, junction_tree *t, int64_t p, double *total) {
    const int64_t K = g->K, d = t->bounds[p + 1] - t->bounds[p];
    const double *M = t->messages + t->offsets[p];
    if (d == 0) {
        *total += M[0];
        return;
    }
    const int64_t to = t->separators[t->bounds[p]];
    if (d == 1)
        for (int64_t k = 0; k < K; k++) t->inner[to * K + k] += M[k];
    t->sibling[p] = t->child[to];
    t->child[to] = (int32_t)p;
}

/* The labelling of the highest score; of several the one of lower labels. */
static int junction_best(const graph_scores *g, junction_tree *t, int32_t *labels, double *value) {
    const int64_t K = g->K;
    int64_t work = 0;
    junction_start(g, t);
    *value = 0.0;
    for (int64_t p = 0; p < g->n; p++) {
        const int64_t rows = junction_fill(g, t, p);
        double *M = t->messages + t->offsets[p];
        int32_t *back = t->back + t->offsets[p];
        for (int64_t r = 0; r < rows; r++) {
            const double *T = t->table + r * K;
            double best = T[0];
            int32_t x = 0;
            for (int64_t k = 1; k < K; k++)
                if (T[k] > best) { best = T[k]; x = (int32_t)k; }
            M[r] = best;
            back[r] = x;
        }
        junction_send(g, t, p, value);
        work += 16 + 3 * rows * K;
        if (work > 1 << 16) {
            if (g->poll(work) < 0) return -1;
            work = 0;
        }
    }
    for (int64_t p = g->n - 1; p >= 0; p--) {
        int64_t at = 0, power = 1;
        for (int64_t j = t->bounds[p]; j < t->bounds[p + 1]; j++, power *= K)
            at += power * labels[t->order[t->separators[j]]];
        labels[t->order[p]] = t->back[t->offsets[p] + at];
    }
    return 0;
}

/* log sum over all labellings of exp score; with `nodes` (n, K) their marginals, and with `counts` (n_features, n_pairs)
 * the expectation of the edges' features (n_edges, n_features) by pairs, which is added to it. */
static int junction_sums(const graph_scores *g, junction_tree *t, const double *features, int64_t n_features,
                         double *log_sum, double *nodes, double *counts) {
    const int64_t K = g->K;
    int64_t work = 0, digits[64], steps[64];
    junction_start(g, t);
    *log_sum = 0.0;
    for (int64_t p = 0; p < g->n; p++) {
        const int64_t rows = junction_fill(g, t, p);
        double *M = t->messages + t->offsets[p];
        for (int64_t r = 0; r < rows; r++) {
            const double *T = t->table + r * K;
            double top = T[0], sum = 0.0;
            for (int64_t k = 1; k < K; k++) if (T[k] > top) top = T[k];
            for (int64_t k = 0; top > -INFINITY && k < K; k++) sum += exp(T[k] - top);
            M[r] = top > -INFINITY ? top + log(sum) : top;
        }
        junction_send(g, t, p, log_sum);
        work += 16 + 20 * rows * K;
        if (work > 1 << 16) {
            if (g->poll(work) < 0) return -1;
            work = 0;
        }
    }
    if (nodes == NULL) return 0;
    memset(t->weights, 0, t->offsets[g->n] * sizeof(double));
    for (int64_t p = g->n - 1; p >= 0; p--) {
        const int64_t rows = junction_fill(g, t, p), d = t->bounds[p + 1] - t->bounds[p];
        const double *M = t->messages + t->offsets[p];
        double *R = t->weights + t->offsets[p], *Q = t->table, *marginal = nodes + t->order[p] * K;
        if (d == 0) R[0] = 1.0;
        memset(marginal, 0, K * sizeof(double));
        for (int64_t r = 0; r < rows; r++)
            for (int64_t k = 0; k < K; k++) {
                Q[r * K + k] = R[r] > 0.0 ? R[r] * exp(Q[r * K + k] - M[r]) : 0.0;
                marginal[k] += Q[r * K + k];
            }
        for (int32_t c = t->child[p]; c >= 0; c = t->sibling[c]) {
            double *to = t->weights + t->offsets[c];
            if (t->bounds[c + 1] - t->bounds[c] < 2) {
                memcpy(to, marginal, K * sizeof(double));
                continue;
            }
            int64_t at = 0;
            junction_steps(t, c, K, d, steps);
            memset(digits, 0, sizeof(digits));
            for (int64_t r = 0; r < rows; r++) {
                for (int64_t k = 0; k < K; k++) to[at + k] += Q[r * K + k];
                at = junction_next(digits, steps, d, K, at);
            }
        }
        int64_t size = K;
        for (int64_t j = 0; counts != NULL && j < d; j++, size *= K) {
            const int32_t e = t->edges[t->bounds[p] + j];
            if (e == 0) continue;
            double *S = t->pairs;
            memset(S, 0, K * K * sizeof(double));
            for (int64_t r = 0; r < rows; r++) {
                const int64_t x = r / (size / K) % K;
                for (int64_t k = 0; k < K; k++) S[x * K + k] += Q[r * K + k];
            }
            const double *z = features + (e > 0 ? e - 1 : -e - 1) * n_features;
            for (int64_t x = 0; x < K; x++)
                for (int64_t k = 0; k < K; k++) {
                    const int32_t pair = e > 0 ? g->pair[k * K + x] : g->pair[x * K + k];
                    for (int64_t f = 0; pair >= 0 && f < n_features; f++)
                        counts[f * g->n_pairs + pair] += z[f] * S[x * K + k];
                }
        }
        work += 16 + 20 * rows * K;
        if (work > 1 << 16) {
            if (g->poll(work) < 0) return -1;
            work = 0;
        }
    }
    return 0;
}

#endif
