/* Filling a CKY chart: the loops that take the time. Part of the kernels, compiled once per instruction set. */
#ifndef STRUCTSVM_CKY_INSIDE_H
#define STRUCTSVM_CKY_INSIDE_H

#include "cky.h"
#include "maxima.h"

/* Make a row hold blocks from .. to, -inf where it held nothing. */
static inline __attribute__((always_inline)) void cky_widen(cky_block *row, int32_t *lo, int32_t *hi, int32_t from, int32_t to) {
    const cky_block none = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
    if (*lo > *hi) *lo = from, *hi = from - 1;
    for (; *lo > from; *lo -= 1) row[*lo - 1] = none;
    for (; *hi < to; *hi += 1) row[*hi + 1] = none;
}

/* row (i, A) = max(row (i, A), row (k, C) + x) for an edge, x being its weight and the left child's value. */
static inline __attribute__((always_inline)) void cky_merge(cky_chart *h, int64_t i, const cky_edge *edge, double x) {
    const cky_block *from = (const cky_block *)(h->value + edge->row);
    cky_block *to = (cky_block *)(h->value + cky_at(h, i, edge->parent, 0));
    int32_t *lo = h->lo + i * h->m + edge->parent, *hi = h->hi + i * h->m + edge->parent;
    if (*lo > *hi) {
        for (int32_t b = edge->lo; b <= edge->hi; b++) to[b] = from[b] + x;
        *lo = edge->lo, *hi = edge->hi;
        return;
    }
    cky_widen(to, lo, hi, edge->lo, edge->hi);
    for (int32_t b = edge->lo; b <= edge->hi; b++) {
        to[b] = maxima_of_4d(from[b] + x, to[b]);
    }
}

/* List the edges of left child q that ends at k: its rules whose right child begins there. */
static void cky_list(cky_chart *h, int64_t k, int64_t q) {
    int64_t *ptr = h->edge_ptr + 2 * (k * h->n_left + q);
    ptr[0] = h->n_edges;
    for (int64_t r = h->left_ptr[q]; r < h->left_ptr[q + 1]; r++) {
        int32_t C = h->rule_right[r], A = h->rule_parent[r], lo = h->lo[k * h->m + C], hi = h->hi[k * h->m + C];
        if (lo > hi) continue;
        h->edge[h->n_edges++] = (cky_edge){cky_at(h, k, C, 0), lo, hi, A, h->rule_weight[r] + cky_split(h, A, k)};
    }
    ptr[1] = h->n_edges;
}

/* The final values over (i, k): nodes with their e, their chains; terminals. */
static void cky_close(cky_chart *h, int64_t i, int64_t k) {
    const cky_grammar *g = h->g;
    const uint8_t *allowed = cky_allowed(h, i, k);
    double *base = cky_base(h, i, k), *v = h->v, *c = h->c;
    int32_t *lo = h->lo + i * h->m, *hi = h->hi + i * h->m, block = (int32_t)(k / CKY_BLOCK);
    for (int64_t s = 0; s < h->n_nodes; s++) base[s] = cky_value(h, i, s, k);
    if (!cky_may_others(allowed))
        for (int64_t s = h->n_nodes; s < h->m; s++)
            if (cky_has(h, i, s, k)) h->value[cky_at(h, i, s, k)] = -INFINITY;
    if (k == i + 1) {
        int64_t t = h->words[i], T = h->local[g->n_nodes + t];
        cky_widen((cky_block *)(h->value + cky_at(h, i, T, 0)), lo + T, hi + T, block, block);
        h->value[cky_at(h, i, T, k)] = cky_may_others(allowed) ? 0.0 : -INFINITY;
        for (int64_t r = g->lexical_ptr[t]; r < g->lexical_ptr[t + 1]; r++) {
            double x = cky_weight(h->w, g->lexical_feature[r]);
            int64_t A = h->local[g->lexical_node[r]];
            if (x > base[A]) base[A] = x;
        }
    }
    cky_nodes(h, i, k, h->e);
    for (int64_t s = 0; s < h->n_nodes; s++) {
        base[s] += h->e[s];
        v[s] = cky_may_node(h, allowed, s) ? base[s] : -INFINITY;
    }
    for (int64_t r = 0; r < h->n_chains; r++) {
        int64_t top = h->chain_top[r];
        double below = h->chain_below[r] < 0 ? base[h->chain_bottom[r]] : c[h->chain_below[r]];
        c[r] = below + h->chain_weight[r] + h->e[top];
        if (c[r] > v[top] && cky_may_chain(h, allowed, r)) v[top] = c[r];
    }
    for (int64_t s = 0; s < h->n_nodes; s++) {
        if (v[s] == -INFINITY && (allowed == NULL || !cky_has(h, i, s, k))) continue;
        cky_widen((cky_block *)(h->value + cky_at(h, i, s, 0)), lo + s, hi + s, block, block);
        h->value[cky_at(h, i, s, k)] = v[s];
    }
}

/* Put the left children over (i, k) beside all that begins at k; returns how many edges there are. */
static int64_t cky_extend(cky_chart *h, int64_t i, int64_t k) {
    int64_t count = 0;
    for (int64_t q = 0; q < h->n_left; q++) {
        double x = cky_value(h, i, h->left[q], k);
        if (x == -INFINITY) continue;
        const int64_t *ptr = h->edge_ptr + 2 * (k * h->n_left + q);
        if (ptr[0] < 0) cky_list(h, k, q);
        for (int64_t r = ptr[0]; r < ptr[1]; r++) cky_merge(h, i, h->edge + r, x + h->edge[r].weight);
        count += ptr[1] - ptr[0];
    }
    return count;
}

/* Fill the chart that has been prepared. */
static int cky_inside(cky_chart *h) {
    int64_t n = h->n, m = h->m, work = 0;
    for (int64_t i = n - 1; i >= 0; i--) {
        for (int64_t s = 0; s < m; s++) h->lo[i * m + s] = INT_MAX, h->hi[i * m + s] = -1;
        for (int64_t q = 0; q < 2 * h->n_left; q++) h->edge_ptr[2 * i * h->n_left + q] = -1;
        for (int64_t k = i + 1; k <= n; k++) {
            int64_t edges = 0;
            cky_close(h, i, k);
            if (k < n) edges = cky_extend(h, i, k) + h->n_left;
            if (stop_count(&work, h->n_nodes + h->n_chains + 2 * edges * ((n - k) / CKY_BLOCK + 1)) < 0) return -1;
        }
    }
    return stop_poll(work);
}

#endif
