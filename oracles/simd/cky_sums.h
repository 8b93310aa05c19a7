/* Sums over all trees of a sentence, and what is expected under p(tree) ~ exp(score): inside and outside.
 *
 * The chart of maxima (cky_inside.h) tells what there is and how large it is about. Beside its rows stand
 *
 *     sum      log of the sum of exp(score) over all derivations of a symbol over (i, j)
 *     chance   the probability that a tree has that symbol over (i, j), its expected number
 *
 * Inside, sums are collected as exp(score - maximum of the cell), so that nothing overflows unless more than e^700
 * derivations are as good as the best one (the sum is infinite then). Outside, the chance of a parent is shared among
 * its ways by their shares of its sum, from large spans to small ones: no logarithm, and no scale. Both are loops over
 * contiguous ends per rule and left child, as for the maxima.
 *
 * Outside, from (i, k) on, the row of sums of a node is that of its base before its own score e, for smaller ends to ask;
 * infinite where there is none, which nothing is a share of.
 *
 * Under a mask the maxima stay those over all derivations, which are above all sums: what is e^-708 of one counts as 0.
 */
#ifndef STRUCTSVM_CKY_SUMS_H
#define STRUCTSVM_CKY_SUMS_H

#include "cky.h"
#include "maxima.h"

typedef struct cky_sums {
    size_t room_sum, room_chance, room_base, room_link, room_seen;
    double *sum, *chance;       /* rows, as h->value */
    double *base;               /* as h->base */
    double *link;               /* (n_chains) scratch */
    double *seen;               /* as h->worth: expected numbers of nodes that see a word */
    double *spans;              /* (n, n + 1, n_categories), the caller's: expected numbers of nodes above the tags; or NULL */
    int has_tags;               /* whether a node right above a terminal is a tag, which `spans` leaves out */
} cky_sums;

static void cky_sums_free(cky_sums *f) {
    cky_delete(f->sum); cky_delete(f->chance); cky_delete(f->base); cky_delete(f->link); cky_delete(f->seen);
}

static double cky_sums_bytes(const cky_chart *h) {
    return 2.0 * (double)sizeof(cky_block) * (double)h->row[h->n] + 4.0 * (double)h->n * (double)(h->n + 1) * (double)h->n_nodes;
}

static int cky_sums_prepare(cky_sums *f, const cky_chart *h) {
    if (cky_bytes(h) + cky_sums_bytes(h) > (double)h->max_bytes) return CKY_CAP;
    size_t rows = sizeof(cky_block) * (size_t)h->row[h->n];
    if (cky_room(&f->sum, &f->room_sum, rows) < 0 || cky_room(&f->chance, &f->room_chance, rows) < 0 ||
        cky_room(&f->base, &f->room_base, 4 * (size_t)h->n * (h->n + 1) * h->n_nodes) < 0 ||
        cky_room(&f->link, &f->room_link, 8 * ((size_t)h->n_chains + 1)) < 0 ||
        cky_room(&f->seen, &f->room_seen, h->g->n_vectors > 0 ? 8 * (size_t)cky_worth(h, CKY_VECTORS, 0) : 0) < 0)
        return CKY_NO_MEMORY;
    return CKY_OK;
}

/* ---- the features that trees of a sentence can have ------------------------------------------ */

static inline int64_t cky_new_feature(int64_t feature, int32_t *mark, int32_t stamp, int32_t *out, int64_t size) {
    if (feature < 0 || mark[feature] == stamp) return size;
    mark[feature] = stamp;
    if (out != NULL) out[size] = (int32_t)feature;
    return size + 1;
}

/* List them, each once, in an order that depends on the sentence alone; returns how many there are. `mark` (by feature)
 * holds no `stamp` before. */
static int64_t cky_support(const cky_chart *h, int32_t *mark, int32_t stamp, int32_t *out) {
    const cky_grammar *g = h->g;
    int64_t size = 0;
#define NEW(feature) size = cky_new_feature(feature, mark, stamp, out, size)
    for (int64_t s = 0; s < h->n_nodes; s++) NEW(g->start_feature[h->symbol[s]]);
    for (int64_t r = 0; r < h->n_rules; r++) NEW(g->rule_feature[h->rule[r]]);
    for (int64_t r = 0; r < h->n_chains; r++) NEW(g->chain_feature[h->chain[r]]);
    for (int64_t t = 0; t < h->n; t++)
        for (int64_t k = g->lexical_ptr[h->words[t]]; k < g->lexical_ptr[h->words[t] + 1]; k++) NEW(g->lexical_feature[k]);
    /* All nodes of the sentence have a weight in a row, or none has. */
#define ROW(expression)                                                                            \
    {                                                                                              \
        int64_t row = (expression);                                                                \
        if (h->n_nodes > 0 && mark[row + g->category[h->symbol[0]]] != stamp)                      \
            for (int64_t s = 0; s < h->n_nodes; s++) NEW((int32_t)row + g->category[h->symbol[s]]); \
    }
    for (int64_t i = 0; i < h->n; i++)
        for (int64_t j = i + 1; j <= h->n; j++)
            for (int64_t t = 0; t < g->n_spans; t++) ROW(cky_span_row(g, h->keys, t, i, j))
    for (int64_t k = 1; k < h->n; k++)
        for (int64_t t = 0; t < g->n_splits; t++) ROW(cky_split_row(g, h->keys, t, k))
    for (int64_t r = 0; r < g->n_number_rows; r++) ROW(g->number_rows + g->n_categories * r)
#undef ROW
    for (int64_t k = 1; k < h->n; k++)
        for (int64_t t = 0; t < g->n_rule_splits + g->n_rests; t++) {
            int32_t row = (int32_t)cky_rule_row(g, h->keys, t, k);
            for (int64_t p = 0; p < h->n_pairs; p++) NEW(row + g->rule_pair[h->rule[h->pair_rule[p]]]);
        }
#undef NEW
    return size;
}

/* Find the symbols and rules of a sentence, without room for a chart. */
static void cky_look(cky_chart *h, const int32_t *words, const uint32_t *keys, int64_t n, const double *w) {
    h->words = words;
    h->keys = keys;
    h->n = n;
    h->w = w;
    cky_restrict(h);
    cky_select(h);
}

/* ---- the loops that take the time, compiled once per instruction set --------------------------- */

static inline __attribute__((always_inline)) cky_block cky_all(double x) { return (cky_block){x, x, x, x}; }

/* exp of each; 0 below -708, infinite above 709. With k = round(x / log 2), exp(x) = 2^k exp(x - k log 2). */
static inline __attribute__((always_inline)) cky_block cky_exp(cky_block x) {
    const cky_block magic = cky_all(6755399441055744.0);   /* 1.5 * 2^52: its sum with a double is rounded */
    const cky_block least = cky_all(-708.0), most = cky_all(709.0);
    cky_block z = maxima_of_4d(x, least);
    z = -maxima_of_4d(-z, -most);
    cky_block k = z * cky_all(1.4426950408889634) + magic;
    cky_bits scale = (cky_bits)k << 52;
    k -= magic;
    cky_block r = z - k * cky_all(6.93145751953125e-1) - k * cky_all(1.42860682030941723212e-6);
    cky_block p = cky_all(1.0 / 479001600.0);
    static const double inverse[] = {1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0, 1.0 / 40320.0, 1.0 / 5040.0,
                                     1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0};
    for (int t = 0; t < 12; t++) p = p * r + cky_all(inverse[t]);
    cky_bits over = (cky_bits)(x > most);
    cky_bits bits = ((cky_bits)p + scale) & (cky_bits)(x >= least);
    return (cky_block)((bits & ~over) | ((cky_bits)cky_all(INFINITY) & over));
}

/* The least maximum that is taken off: where a cell has none, neither has any way to it, and exp is 0. */
static inline __attribute__((always_inline)) cky_block cky_floor(cky_block x) { return maxima_of_4d(x, cky_all(-1e300)); }

static inline double cky_log_add(double a, double b) {
    double top = a > b ? a : b, other = a > b ? b : a;
    return other == -INFINITY ? top : top + log1p(exp(other - top));
}

/* Rows (i, .) before anything is collected: 0, and log 0 where no span ends. */
static void cky_sums_clear(const cky_chart *h, cky_sums *f, int64_t i) {
    for (int64_t s = 0; s < h->m; s++) {
        double *row = f->sum + cky_at(h, i, s, 0);
        for (int64_t j = (int64_t)CKY_BLOCK * h->lo[i * h->m + s]; j < (int64_t)CKY_BLOCK * (h->hi[i * h->m + s] + 1); j++)
            row[j] = j > i && j <= h->n ? 0.0 : -INFINITY;
    }
}

/* From what was collected to sums over (i, k): nodes with their e and their chains; terminals. */
static void cky_sums_close(cky_chart *h, cky_sums *f, int64_t i, int64_t k) {
    const cky_grammar *g = h->g;
    const uint8_t *allowed = cky_allowed(h, i, k);
    double *base = f->base + cky_span(i, k) * h->n_nodes, *v = h->v, *c = h->c;
    const double *e = cky_own(h, i, k);
    for (int64_t s = 0; s < h->m; s++) {
        double x = -INFINITY;
        if (cky_has(h, i, s, k)) {
            int64_t at = cky_at(h, i, s, k);
            if (f->sum[at] > 0.0) x = h->value[at] + log(f->sum[at]);
            f->sum[at] = s < h->n_nodes || cky_may_others(allowed) ? x : -INFINITY;
        }
        if (s < h->n_nodes) base[s] = x;
    }
    if (k == i + 1) {
        int64_t t = h->words[i];
        f->sum[cky_at(h, i, h->local[g->n_nodes + t], k)] = cky_may_others(allowed) ? 0.0 : -INFINITY;
        for (int64_t r = g->lexical_ptr[t]; r < g->lexical_ptr[t + 1]; r++) {
            int64_t A = h->local[g->lexical_node[r]];
            base[A] = cky_log_add(base[A], cky_weight(h->w, g->lexical_feature[r]));
        }
    }
    for (int64_t s = 0; s < cky_n_nodes(h, i, k); s++) {
        base[s] += e[s];
        v[s] = cky_may_node(h, allowed, s) ? base[s] : -INFINITY;
    }
    for (int64_t r = 0; r < cky_n_chains(h, i, k); r++) {
        int64_t top = h->chain_top[r];
        double below = h->chain_below[r] < 0 ? base[h->chain_bottom[r]] : c[h->chain_below[r]];
        c[r] = below + h->chain_weight[r] + e[top];
        if (cky_may_chain(h, allowed, r)) v[top] = cky_log_add(v[top], c[r]);
    }
    for (int64_t s = 0; s < cky_n_nodes(h, i, k); s++)
        if (v[s] > -INFINITY || (allowed != NULL && cky_has(h, i, s, k))) f->sum[cky_at(h, i, s, k)] = v[s];
}

/* Collect, for the left children over (i, k), all that they begin; returns how many edges there are. */
static int64_t cky_sums_extend(const cky_chart *h, cky_sums *f, int64_t i, int64_t k) {
    int64_t count = 0;
    for (int64_t q = 0; q < h->n_left; q++) {
        if (!cky_has(h, i, h->left[q], k)) continue;
        double x = f->sum[cky_at(h, i, h->left[q], k)];
        if (x == -INFINITY) continue;
        for (int64_t r = h->left_ptr[q]; r < h->left_ptr[q + 1]; r++) {
            int64_t A = h->rule_parent[r], C = h->rule_right[r];
            const cky_block *from = (const cky_block *)(f->sum + cky_at(h, k, C, 0));
            const cky_block *top = (const cky_block *)(h->value + cky_at(h, i, A, 0));
            cky_block *to = (cky_block *)(f->sum + cky_at(h, i, A, 0));
            double weight = x + h->rule_weight[r] + cky_rule_split(h, A, h->rule[r], i, k);
            for (int32_t b = h->lo[k * h->m + C]; b <= h->hi[k * h->m + C]; b++)
                to[b] += cky_exp(from[b] + weight - cky_floor(top[b]));
        }
        count += h->left_ptr[q + 1] - h->left_ptr[q];
    }
    return count;
}

/* Fill the sums of a chart that is filled; `log_sum` becomes the log of the sum over all trees, -inf if there is none. */
static int cky_sums_inside(cky_chart *h, cky_sums *f, double *log_sum) {
    int64_t n = h->n, work = 0;
    for (int64_t i = n - 1; i >= 0; i--) {
        cky_sums_clear(h, f, i);
        for (int64_t k = i + 1; k <= n; k++) {
            int64_t edges = 0;
            cky_sums_close(h, f, i, k);
            if (k < n) edges = cky_sums_extend(h, f, i, k) + h->n_left;
            if (stop_count(&work, 20 * (h->m + h->n_chains) + 8 * edges * ((n - k) / CKY_BLOCK + 1)) < 0) return -1;
        }
    }
    *log_sum = -INFINITY;
    for (int64_t s = 0; s < h->n_nodes; s++)
        if (cky_may_start(h, s)) *log_sum = cky_log_add(*log_sum, f->sum[cky_at(h, 0, s, n)] + cky_start(h, s));
    return stop_poll(work);
}

static __attribute__((noinline)) void cky_expected_rule(const cky_chart *h, int64_t A, int64_t rule, int64_t i, int64_t k, double chance, double *psi) {
    const cky_grammar *g = h->g;
    for (int64_t t = 0; t < g->n_rule_splits + (A < h->n_nodes ? 0 : g->n_rests); t++)
        psi[cky_rule_row(g, h->keys, t, t < g->n_rule_splits ? k : i) + g->rule_pair[rule]] += chance;
}

/* The reverse of cky_sums_extend: what parents give their left children over (i, k) and the right ones from k on. */
static int64_t cky_sums_give(const cky_chart *h, cky_sums *f, int64_t i, int64_t k, double *psi) {
    const cky_grammar *g = h->g;
    int64_t count = 0;
    for (int64_t q = 0; q < h->n_left; q++) {
        if (!cky_has(h, i, h->left[q], k)) continue;
        int64_t at = cky_at(h, i, h->left[q], k);
        double x = f->sum[at], total = 0.0;
        if (x == -INFINITY) continue;
        for (int64_t r = h->left_ptr[q]; r < h->left_ptr[q + 1]; r++) {
            int64_t A = h->rule_parent[r], C = h->rule_right[r], feature = g->rule_feature[h->rule[r]];
            const cky_block *from = (const cky_block *)(f->sum + cky_at(h, k, C, 0));
            cky_block *right = (cky_block *)(f->chance + cky_at(h, k, C, 0));
            const cky_block *top = (const cky_block *)(f->sum + cky_at(h, i, A, 0));
            const cky_block *chance = (const cky_block *)(f->chance + cky_at(h, i, A, 0));
            double weight = x + h->rule_weight[r] + cky_rule_split(h, A, h->rule[r], i, k), part;
            cky_block parts = cky_all(0.0);
            for (int32_t b = h->lo[k * h->m + C]; b <= h->hi[k * h->m + C]; b++) {
                cky_block way = chance[b] * cky_exp(from[b] + weight - cky_floor(top[b]));
                right[b] += way;
                parts += way;
            }
            count += 1;
            part = parts[0] + parts[1] + parts[2] + parts[3];
            if (part == 0.0) continue;
            total += part;
            if (feature >= 0) psi[feature] += part;
            cky_expected_rule(h, A, h->rule[r], i, k, part, psi);
            if (A < h->n_nodes)
                for (int64_t t = 0; t < g->n_splits; t++)
                    psi[cky_split_row(g, h->keys, t, k) + g->category[h->symbol[A]]] += part;
            if (A < h->n_nodes && g->n_vectors > 0)
                f->seen[cky_worth(h, CKY_SPLIT_WORD, k) + g->category[h->symbol[A]]] += part;
        }
        f->chance[at] += total;
    }
    return count;
}

static __attribute__((noinline)) void cky_expected_span(const cky_chart *h, cky_sums *f, int64_t s, int64_t i, int64_t k, double chance, double *psi) {
    const cky_grammar *g = h->g;
    if (g->n_vectors > 0) {
        f->seen[cky_worth(h, CKY_FIRST_WORD, i) + g->category[h->symbol[s]]] += chance;
        f->seen[cky_worth(h, CKY_LAST_WORD, k - 1) + g->category[h->symbol[s]]] += chance;
    }
    for (int64_t t = 0; t < g->n_spans; t++) psi[cky_span_row(g, h->keys, t, i, k) + g->category[h->symbol[s]]] += chance;
}

static inline void cky_count_span(const cky_chart *h, cky_sums *f, int64_t s, int64_t i, int64_t k, double chance) {
    const cky_grammar *g = h->g;
    if (f->spans != NULL) f->spans[(i * (h->n + 1) + k) * g->n_categories + g->category[h->symbol[s]]] += chance;
}

/* The reverse of cky_sums_close: from the chances of nodes over (i, k) to those of their chains and bases. */
static void cky_sums_open(cky_chart *h, cky_sums *f, int64_t i, int64_t k, double *psi) {
    const cky_grammar *g = h->g;
    const uint8_t *allowed = cky_allowed(h, i, k);
    const double *base = f->base + cky_span(i, k) * h->n_nodes, *e = cky_own(h, i, k);
    double *below = h->v, *c = h->c, *link = f->link;   /* below: the chances of bases */
    for (int64_t s = 0; s < h->n_nodes; s++) {
        below[s] = 0.0;
        if (base[s] == -INFINITY || !cky_may_node(h, allowed, s)) continue;
        int64_t at = cky_at(h, i, s, k);
        below[s] = f->chance[at] * exp(base[s] - f->sum[at]);
    }
    for (int64_t r = 0; r < cky_n_chains(h, i, k); r++) {
        int64_t top = h->chain_top[r];
        c[r] = (h->chain_below[r] < 0 ? base[h->chain_bottom[r]] : c[h->chain_below[r]]) + h->chain_weight[r] + e[top];
        link[r] = 0.0;
        if (c[r] == -INFINITY || !cky_may_chain(h, allowed, r)) continue;
        int64_t at = cky_at(h, i, top, k);
        link[r] = f->chance[at] * exp(c[r] - f->sum[at]);
    }
    /* A chain stands after the one below its top. */
    for (int64_t r = cky_n_chains(h, i, k) - 1; r >= 0; r--) {
        int64_t feature = g->chain_feature[h->chain[r]];
        if (link[r] == 0.0) continue;
        if (feature >= 0) psi[feature] += link[r];
        cky_expected_span(h, f, h->chain_top[r], i, k, link[r], psi);
        cky_count_span(h, f, h->chain_top[r], i, k, link[r]);
        if (h->chain_below[r] < 0) below[h->chain_bottom[r]] += link[r];
        else link[h->chain_below[r]] += link[r];
    }
    for (int64_t s = 0; s < h->n_nodes; s++) {
        if (!cky_has(h, i, s, k)) continue;
        int64_t at = cky_at(h, i, s, k);
        f->sum[at] = base[s] > -INFINITY ? base[s] - e[s] : INFINITY;
        f->chance[at] = below[s];
        if (below[s] > 0.0) cky_expected_span(h, f, s, i, k, below[s], psi);
        if (k > i + 1 || !f->has_tags) cky_count_span(h, f, s, i, k, below[s]);
    }
    if (h->mask != NULL)
        for (int64_t s = h->n_nodes; s < h->m; s++)
            if (cky_has(h, i, s, k) && f->sum[cky_at(h, i, s, k)] == -INFINITY) f->sum[cky_at(h, i, s, k)] = INFINITY;
    if (k > i + 1) return;
    for (int64_t r = g->lexical_ptr[h->words[i]]; r < g->lexical_ptr[h->words[i] + 1]; r++) {
        int64_t A = h->local[g->lexical_node[r]], feature = g->lexical_feature[r];
        if (feature >= 0 && below[A] > 0.0) psi[feature] += below[A] * exp(h->w[feature] - f->sum[cky_at(h, i, A, k)]);
    }
}

/* Add the expected features to psi (n_features), after cky_sums_inside. */
static int cky_sums_outside(cky_chart *h, cky_sums *f, double log_sum, double *psi) {
    int64_t n = h->n, work = 0;
    memset(f->chance, 0, sizeof(cky_block) * (size_t)h->row[n]);
    if (h->g->n_vectors > 0) memset(f->seen, 0, 8 * (size_t)cky_worth(h, CKY_VECTORS, 0));
    for (int64_t s = 0; s < h->n_nodes; s++) {
        if (!cky_may_start(h, s)) continue;
        int64_t at = cky_at(h, 0, s, n), feature = h->g->start_feature[h->symbol[s]];
        f->chance[at] = exp(f->sum[at] + cky_start(h, s) - log_sum);
        if (feature >= 0) psi[feature] += f->chance[at];
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = n; k > i; k--) {
            int64_t edges = k < n ? cky_sums_give(h, f, i, k, psi) + h->n_left : 0;
            cky_sums_open(h, f, i, k, psi);
            if (stop_count(&work, 20 * (h->m + h->n_chains) + 10 * edges * ((n - k) / CKY_BLOCK + 1)) < 0) return -1;
        }
    cky_multiply_back(h, f->seen, psi);
    return stop_poll(work);
}

#endif
