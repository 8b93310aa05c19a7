/* Filling a CKY chart: the loops that take the time. Part of the kernels, compiled once per instruction set. */
#ifndef STRUCTSVM_CKY_INSIDE_H
#define STRUCTSVM_CKY_INSIDE_H

#include "cky.h"

typedef double cky_v __attribute__((vector_size(32), aligned(8), may_alias));

/* max_k l[k] + r[k] (+ t[k], if `splits`), k = lo .. hi. */
static inline __attribute__((always_inline)) double cky_max_plus(const double *l, const double *r, const double *t,
                                                                 int64_t lo, int64_t hi, const int splits) {
    double best = -INFINITY;
    int64_t k = lo;
    if (hi - lo >= 7) {
        cky_v m = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
        for (; k + 3 <= hi; k += 4) {
            cky_v x = *(const cky_v *)(l + k) + *(const cky_v *)(r + k);
            if (splits) x += *(const cky_v *)(t + k);
            for (int q = 0; q < 4; q++) m[q] = x[q] > m[q] ? x[q] : m[q];
        }
        for (int q = 0; q < 4; q++) best = m[q] > best ? m[q] : best;
    }
    for (; k <= hi; k++) {
        double x = l[k] + r[k];
        if (splits) x += t[k];
        best = x > best ? x : best;
    }
    return best;
}

/* v[A] = max over binary rules A -> B C and splits. */
static void cky_binary(const cky_chart *h, int64_t i, int64_t j, double *v) {
    const int32_t *first = h->right_lo + j * h->m, *last = h->right_hi + j * h->m;
    const int has_splits = h->g->span_features >= 0;
    for (int64_t q = 0; q < h->n_groups; q++) {
        int64_t row = h->row[h->group_left[q]];
        int32_t a = h->left_lo[i * h->n_left + row], b = h->left_hi[i * h->n_left + row];
        if (a > b) continue;
        const double *l = cky_left(h, i, row);
        for (int64_t p = h->group_ptr[q]; p < h->group_ptr[q + 1]; p++) {
            int32_t C = h->pair_right[p];
            int32_t lo = first[C] > a ? first[C] : a, hi = last[C] < b ? last[C] : b;
            if (lo > hi) continue;
            const double *r = cky_right(h, j, C);
            double shared = cky_max_plus(l, r, NULL, lo, hi, 0);
            for (int64_t u = h->rule_ptr[p]; u < h->rule_ptr[p + 1]; u++) {
                int64_t A = h->rule_parent[u];
                const double *t = has_splits ? cky_splits(h, A) : NULL;
                double x = (t == NULL ? shared : cky_max_plus(l, r, t, lo, hi, 1)) + h->rule_weight[u];
                if (x > v[A]) v[A] = x;
            }
        }
    }
}

/* v[A] of one word: terminals themselves, and lexical rules. */
static void cky_word(const cky_chart *h, int64_t i, double *v) {
    const cky_grammar *g = h->g;
    int64_t t = h->words[i];
    v[h->local[g->n_nodes + t]] = 0.0;
    for (int64_t k = g->lexical_ptr[t]; k < g->lexical_ptr[t + 1]; k++) {
        double x = cky_weight(h->w, g->lexical_feature[k]);
        int64_t A = h->local[g->lexical_node[k]];
        if (x > v[A]) v[A] = x;
    }
}

/* Note a final value. What lies between it and the values that a row held before has none. */
static inline void cky_note(double *row, int32_t *lo, int32_t *hi, int64_t k, double x) {
    if (*lo > *hi) {
        *lo = *hi = (int32_t)k;
    } else {
        for (int64_t gap = *hi + 1; gap < k; gap++) row[gap] = -INFINITY;
        for (int64_t gap = k + 1; gap < *lo; gap++) row[gap] = -INFINITY;
        if (k > *hi) *hi = (int32_t)k;
        if (k < *lo) *lo = (int32_t)k;
    }
    row[k] = x;
}

/* The chart of the sentence that has been prepared: ends from left to right, begins from right to left. */
static void cky_inside(cky_chart *h) {
    int64_t n = h->n, m = h->m;
    double *v = h->v, *c = h->c;
    for (int64_t k = 0; k < (n + 1) * h->n_left; k++) h->left_lo[k] = INT_MAX, h->left_hi[k] = -1;
    for (int64_t k = 0; k < (n + 1) * m; k++) h->right_lo[k] = INT_MAX, h->right_hi[k] = -1;
    for (int64_t j = 1; j <= n; j++) {
        for (int64_t i = j - 1; i >= 0; i--) {
            double *base = cky_base(h, i, j);
            for (int64_t s = 0; s < m; s++) v[s] = -INFINITY;
            if (j - i == 1) cky_word(h, i, v);
            else cky_binary(h, i, j, v);
            cky_nodes(h, i, j, h->e);
            for (int64_t s = 0; s < h->n_nodes; s++) base[s] = v[s] += h->e[s];
            for (int64_t k = 0; k < h->n_chains; k++) {
                int64_t top = h->chain_top[k];
                double below = h->chain_below[k] < 0 ? base[h->chain_bottom[k]] : c[h->chain_below[k]];
                c[k] = below + h->chain_weight[k] + h->e[top];
                if (c[k] > v[top]) v[top] = c[k];
            }
            for (int64_t s = 0; s < m; s++) {
                if (v[s] == -INFINITY) continue;
                int64_t row = h->row[s];
                cky_note(cky_right(h, j, s), &h->right_lo[j * m + s], &h->right_hi[j * m + s], i, v[s]);
                if (row >= 0)
                    cky_note(cky_left(h, i, row), &h->left_lo[i * h->n_left + row],
                             &h->left_hi[i * h->n_left + row], j, v[s]);
            }
        }
    }
}

#endif
