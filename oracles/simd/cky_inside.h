/* Filling a CKY chart: the loops that take the time. Part of the kernels, compiled once per instruction set. */
#ifndef STRUCTSVM_CKY_INSIDE_H
#define STRUCTSVM_CKY_INSIDE_H

#include "cky.h"
#include "maxima.h"

static const cky_block cky_none = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};

/* Rows (i, .) before anything stands in them. */
static void cky_clear(cky_chart *h, int64_t i) {
    int32_t last = (int32_t)(h->n / CKY_BLOCK), first = (int32_t)cky_first_block(i);
    for (int64_t b = h->row[i]; b < h->row[i + 1]; b++) ((cky_block *)h->value)[b] = cky_none;
    for (int64_t s = i * h->m; s < (i + 1) * h->m; s++) h->lo[s] = first, h->hi[s] = last;
    for (int64_t q = 0; q < 3 * h->n_left; q++) h->edge_ptr[3 * i * h->n_left + q] = -1;
    memset(h->has_pairs, 0, h->n_left);
}

static inline int cky_is_empty(const cky_block *x) {
    return !cky_any((cky_bits)(*x > cky_none));
}

/* Note which of their blocks hold anything; under a mask all may, for sums are taken before it forbids. */
static void cky_trim(cky_chart *h, int64_t i) {
    if (h->mask != NULL) return;
    for (int64_t s = 0; s < h->m; s++) {
        const cky_block *row = (const cky_block *)(h->value + cky_at(h, i, s, 0));
        int32_t lo = h->lo[i * h->m + s], hi = s < h->n_wide_nodes || s >= h->n_outer ? h->hi[i * h->m + s] : lo;
        while (lo <= hi && cky_is_empty(row + lo)) lo++;
        while (hi > lo && cky_is_empty(row + hi)) hi--;
        h->lo[i * h->m + s] = lo <= hi ? lo : INT_MAX;
        h->hi[i * h->m + s] = lo <= hi ? hi : -1;
    }
}

/* List the edges of left child q that ends at k: its rules and pairs whose right child begins there. */
static void cky_list(cky_chart *h, int64_t k, int64_t q) {
    int64_t *ptr = h->edge_ptr + 3 * (k * h->n_left + q);
    const int64_t width = cky_width(h, k);
    const int32_t *lo = h->lo + k * h->m, *hi = h->hi + k * h->m;
    cky_edge *edge = h->edge + h->n_edges;
    cky_rule_sums(h, CKY_OF_SPLITS, k, h->left[q]);
    for (int64_t of_pairs = 0; of_pairs < 2; of_pairs++) {
        ptr[of_pairs] = edge - h->edge;
        for (int64_t p = h->pair_ptr[q]; p < h->pair_ptr[q + 1]; p++) {
            int32_t C = h->pair_right[p], row = (int32_t)(h->row[k] + C * width);
            if (lo[C] > hi[C]) continue;
            double part = cky_rule_part(h, CKY_OF_SPLITS, k, h->rule[h->pair_rule[p]]);
            if (of_pairs && h->pair_inner[p] < h->pair_rule[p + 1]) *edge++ = (cky_edge){row, (int32_t)p, part};
            for (int64_t r = h->pair_rule[p]; !of_pairs && r < h->pair_inner[p]; r++)
                *edge++ = (cky_edge){row, h->rule_parent[r], h->rule_weight[r] + (cky_split(h, h->rule_parent[r], k) + part)};
        }
    }
    ptr[2] = h->n_edges = edge - h->edge;
}

/* The final values over (i, k): nodes with their e, their chains; terminals. */
static void cky_close(cky_chart *h, int64_t i, int64_t k) {
    const cky_grammar *g = h->g;
    const uint8_t *allowed = cky_allowed(h, i, k);
    double *base = cky_base(h, i, k), *v = h->v, *c = h->c, *value = h->value + cky_at(h, i, 0, k);
    const double *e = cky_own(h, i, k);
    const int64_t n_nodes = cky_n_nodes(h, i, k), stride = CKY_BLOCK * cky_width(h, i);
    for (int64_t s = 0; s < n_nodes; s++) base[s] = value[s * stride];
    for (int64_t s = n_nodes; s < h->n_nodes; s++) base[s] = -INFINITY;
    if (k == i + 1) {
        int64_t t = h->words[i], T = h->local[g->n_nodes + t];
        h->value[cky_at(h, i, T, k)] = cky_may_others(allowed) ? 0.0 : -INFINITY;
        for (int64_t r = g->lexical_ptr[t]; r < g->lexical_ptr[t + 1]; r++) {
            double x = cky_weight(h->w, g->lexical_feature[r]);
            int64_t A = h->local[g->lexical_node[r]];
            if (x > base[A]) base[A] = x;
        }
    }
    cky_nodes(h, i, k);
    for (int64_t s = 0; s < n_nodes; s++) {
        base[s] += e[s];
        v[s] = cky_may_node(h, allowed, s) ? base[s] : -INFINITY;
    }
    const int32_t *tops = h->chain_top, *shorter = h->chain_below, *bottoms = h->chain_bottom;
    const double *weights = h->chain_weight;
    for (int64_t r = 0, n_chains = cky_n_chains(h, i, k); r < n_chains; r++) {
        int64_t top = tops[r];
        double x = *(shorter[r] < 0 ? base + bottoms[r] : c + shorter[r]) + weights[r] + e[top];
        c[r] = x;
        if (cky_may_chain(h, allowed, r)) v[top] = x > v[top] ? x : v[top];
    }
    for (int64_t s = 0; s < n_nodes; s++) value[s * stride] = v[s];
}

/* Put the row of each edge into another, x being the left child's value: to = max(to, from + x + weight). */
static inline __attribute__((always_inline)) void cky_merge_blocks(const cky_chart *h, const cky_edge *edge, const cky_edge *end, double x,
                                                                   cky_block *rows, int64_t stride, int64_t width) {
    for (; edge < end; edge++) {
        const cky_block *from = (const cky_block *)h->value + edge->row;
        cky_block *to = rows + edge->to * stride;
        double weight = x + edge->weight;
        for (int64_t b = 0; b < width; b++) to[b] = maxima_of_4d(from[b] + weight, to[b]);
    }
}

/* `cky_merge_blocks`, whose loops over few blocks are unrolled. */
static void cky_merge(const cky_chart *h, const cky_edge *edge, const cky_edge *end, double x, cky_block *rows, int64_t stride,
                      int64_t width) {
    switch (width) {
    case 1: cky_merge_blocks(h, edge, end, x, rows, stride, 1); break;
    case 2: cky_merge_blocks(h, edge, end, x, rows, stride, 2); break;
    case 3: cky_merge_blocks(h, edge, end, x, rows, stride, 3); break;
    case 4: cky_merge_blocks(h, edge, end, x, rows, stride, 4); break;
    default: cky_merge_blocks(h, edge, end, x, rows, stride, width);
    }
}

/* Put the left children over (i, k) beside all that begins at k; returns how many edges there are. */
static int64_t cky_extend(cky_chart *h, int64_t i, int64_t k) {
    int64_t count = 0, stride = cky_width(h, i), width = cky_width(h, k), skipped = cky_first_block(k) - cky_first_block(i);
    cky_block *rows = (cky_block *)h->value + h->row[i];
    const double *value = h->value + cky_at(h, i, 0, k);
    const int64_t n_left = k - i > 1 ? h->n_wide_left : h->n_left;
    for (int64_t q = 0; q < n_left; q++) {
        double x = value[CKY_BLOCK * stride * h->left[q]];
        if (x == -INFINITY) continue;
        const int64_t *ptr = h->edge_ptr + 3 * (k * h->n_left + q);
        if (ptr[0] < 0) cky_list(h, k, q);
        if (!h->has_pairs[q])
            for (int64_t b = h->pair_ptr[q] * stride; b < h->pair_ptr[q + 1] * stride; b++) h->pair[b] = cky_none;
        h->has_pairs[q] = 1;
        cky_merge(h, h->edge + ptr[0], h->edge + ptr[1], x, rows + skipped, stride, width);
        cky_merge(h, h->edge + ptr[1], h->edge + ptr[2], x, h->pair + skipped, stride, width);
        count += ptr[2] - ptr[0];
    }
    return count;
}

/* The intermediates over (i, .), from its pairs; returns how many rules there are. */
static int64_t cky_intermediates(cky_chart *h, int64_t i) {
    int64_t count = 0, stride = cky_width(h, i);
    cky_block *rows = (cky_block *)h->value + h->row[i];
    for (int64_t q = 0; q < h->n_left; q++) {
        if (!h->has_pairs[q]) continue;
        cky_rule_sums(h, CKY_OF_RESTS, i, h->left[q]);
        for (int64_t p = h->pair_ptr[q]; p < h->pair_ptr[q + 1]; p++) {
            const cky_block *from = h->pair + p * stride;
            for (int64_t r = h->pair_inner[p]; r < h->pair_rule[p + 1]; r++) {
                cky_block *to = rows + h->rule_parent[r] * stride;
                double weight = h->rule_weight[r] + cky_rule_part(h, CKY_OF_RESTS, i, h->rule[r]);
                for (int64_t b = 0; b < stride; b++) to[b] = maxima_of_4d(from[b] + weight, to[b]);
            }
        }
        count += h->left_ptr[q + 1] - h->left_ptr[q];
    }
    for (int64_t k = i + 1; h->mask != NULL && k <= h->n; k++)
        for (int64_t s = h->n_nodes; s < h->m && !cky_may_others(cky_allowed(h, i, k)); s++)
            h->value[cky_at(h, i, s, k)] = -INFINITY;
    return count;
}

/* Fill the chart that has been prepared. */
static int cky_inside(cky_chart *h) {
    int64_t n = h->n, work = 0;
    if (h->g->n_keys > 0) cky_parts(h);
    for (int64_t i = n - 1; i >= 0; i--) {
        cky_clear(h, i);
        for (int64_t k = i + 1; k <= n; k++) {
            int64_t edges = 0;
            cky_close(h, i, k);
            if (k < n && h->g->n_spans > 0) cky_ask_lengths(h, i, k + 1);
            if (k < n) edges = cky_extend(h, i, k) + h->n_left;
            if (stop_count(&work, h->n_nodes + h->n_chains + 2 * edges * ((n - k) / CKY_BLOCK + 1)) < 0) return -1;
        }
        if (stop_count(&work, 2 * cky_intermediates(h, i) * cky_width(h, i)) < 0) return -1;
        cky_trim(h, i);
    }
    return stop_poll(work);
}

#endif
