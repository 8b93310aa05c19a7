/* Max-plus CKY over a binarised weighted grammar: the chart of one sentence.
 *
 * Symbols are numbered: first the nodes of trees (labels), then terminals, then the intermediates that binarising a
 * rule leaves behind. Over words i .. j-1 a symbol s has two values: its *base* is that of the best derivation that
 * begins with a binary rule, a lexical one or a terminal itself; its *final* value may have a chain of unary rules on
 * top. Chains are listed once and for all (no symbol twice in one), so there are no cycles to fall into:
 *
 *     base(A, i, j)  = e(A, i, j) + max over rules A -> B C and i < k < j of  w + final(B, i, k) + final(C, k, j)
 *     final(A, i, j) = max(base(A, i, j), max over chains A => B of  base(B, i, j) + sum of w and e along the chain)
 *
 * e is what a node is worth by itself: features of its span, and what a loss-augmented problem adds to counted nodes
 * (`mu` each, and `a` to those of the gold tree). Without a gold tree both are 0: training and prediction are one code.
 *
 * The inner maximum runs over contiguous numbers. Values of left children stand in rows (i, B) over their end k, those
 * of right children in rows (j, C) over their begin k; each row knows between which k it holds anything. Rules are
 * grouped by their children, so that rules with the same two share the maximum.
 *
 * A chart holds only the symbols that the words of its sentence can derive, numbered anew (`local`).
 */
#ifndef STRUCTSVM_CKY_H
#define STRUCTSVM_CKY_H

#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CKY_OK = 0, CKY_NO_MEMORY = -1, CKY_CAP = -2 };

/* Span features of a node A over words i .. j-1, a table (category, terminal) each; `length` has its own width. */
enum { CKY_FIRST, CKY_LAST, CKY_BEFORE, CKY_AFTER, CKY_SPLIT, CKY_TABLES };
enum { CKY_LENGTHS = 9 };

typedef struct {
    int64_t n_symbols, n_nodes, n_terminals, n_pairs, n_rules, n_chains, n_categories;
    int64_t span_features;      /* where their weights begin, or -1 */
    const int32_t *category;    /* (n_nodes) what losses compare and span features see */
    const uint8_t *counted;     /* (n_nodes) whether losses look at it */
    const uint8_t *start;       /* (n_nodes) */
    const int32_t *pair_left, *pair_right;                  /* (n_pairs) by left child, then by right child */
    const int32_t *left_ptr;                                /* (n_symbols + 1) pairs of a left child */
    const int32_t *right_ptr, *right_pair;                  /* pairs of a right child */
    const int32_t *rule_ptr;                                /* (n_pairs + 1) rules of a pair */
    const int32_t *rule_pair, *rule_parent, *rule_feature;  /* (n_rules); feature -1: weight 0 */
    const int32_t *parent_ptr, *parent_rule;                /* rules of a parent */
    const int32_t *lexical_ptr;                             /* (n_terminals + 1) */
    const int32_t *lexical_node, *lexical_feature;
    const int32_t *up_ptr, *up_node;                        /* parents of a node by one unary rule */
    const int32_t *chain_below;     /* (n_chains) the chain without its top rule, -1 if it is one rule long */
    const int32_t *chain_top, *chain_bottom, *chain_feature;
} cky_grammar;

typedef struct {
    const cky_grammar *g;
    const double *w;
    int64_t max_bytes;
    /* the sentence, and its gold nodes as categories by span (gold_ptr NULL: none) */
    int64_t n;
    const int32_t *words;           /* terminal numbers */
    const int32_t *gold_ptr, *gold_category;
    double a, mu;
    /* the restricted grammar */
    int64_t m, n_nodes, n_left, n_groups, n_pairs, n_chains;
    int32_t *local, *symbol;        /* number in the chart or -1; the inverse */
    int32_t *row;                   /* (m) row among left children, or -1 */
    int32_t *group_left, *group_ptr, *pair_right, *rule_ptr, *rule_parent;
    double *rule_weight;
    int32_t *chain, *chain_below, *chain_top, *chain_bottom;
    double *chain_weight;
    /* the chart */
    size_t room_left, room_right, room_base, room_split, room_left_lo, room_right_lo;
    double *left, *right, *base, *split;
    int32_t *left_lo, *left_hi;     /* (n, n_left) */
    int32_t *right_lo, *right_hi;   /* (n + 1, m) */
    double *v, *e, *c;              /* scratch: of symbols, nodes, chains */
} cky_chart;

static inline int64_t cky_span(int64_t i, int64_t j) { return j * (j - 1) / 2 + i; }

/* Rows: (i, B) holds ends k = i+1 .. n; (j, C) begins k = 0 .. j-1. Indexed by k itself. */
static inline double *cky_left(const cky_chart *h, int64_t i, int64_t row) {
    return h->left + h->n_left * (i * h->n - i * (i - 1) / 2) + row * (h->n - i) - (i + 1);
}
static inline int64_t cky_right_at(const cky_chart *h, int64_t j, int64_t s) {
    return h->m * (j * (j - 1) / 2) + s * j;
}
static inline double *cky_right(const cky_chart *h, int64_t j, int64_t s) { return h->right + cky_right_at(h, j, s); }
static inline double *cky_base(const cky_chart *h, int64_t i, int64_t j) {
    return h->base + cky_span(i, j) * h->n_nodes;
}

/* The splits k at which pair (B, C) may stand over (i, j): lo .. hi, empty if lo > hi. `row` is B's. */
static inline void cky_range(const cky_chart *h, int64_t i, int64_t j, int64_t row, int64_t C, int64_t *lo, int64_t *hi) {
    int32_t a = h->left_lo[i * h->n_left + row], b = h->right_lo[j * h->m + C];
    int32_t c = h->left_hi[i * h->n_left + row], d = h->right_hi[j * h->m + C];
    *lo = a > b ? a : b;
    *hi = c < d ? c : d;
    if (*lo <= i) *lo = i + 1;      /* rows are longer than this span once the chart is full */
    if (*hi >= j) *hi = j - 1;
}

static inline double cky_weight(const double *w, int32_t feature) { return feature < 0 ? 0.0 : w[feature]; }

/* ---- span features -------------------------------------------------------------------------- */

static inline int64_t cky_table(const cky_grammar *g, int table, int64_t category, int64_t terminal) {
    return g->span_features + (table * g->n_categories + category) * (g->n_terminals + 1) + terminal;
}

/* Lengths 1, 2, 3, 4, 5-6, 7-9, 10-14, 15-19, 20 and more. */
static inline int64_t cky_length_feature(const cky_grammar *g, int64_t category, int64_t length) {
    int64_t bin = length < 5 ? length - 1 : length < 7 ? 4 : length < 10 ? 5 : length < 15 ? 6 : length < 20 ? 7 : 8;
    return cky_table(g, CKY_TABLES, 0, 0) + category * CKY_LENGTHS + bin;
}

/* The span features of a node over (i, j), five of them; the number n_terminals stands for "no word there". */
static inline void cky_span_features(const cky_grammar *g, const int32_t *words, int64_t n, int64_t category,
                                     int64_t i, int64_t j, int64_t *out) {
    out[0] = cky_table(g, CKY_FIRST, category, words[i]);
    out[1] = cky_table(g, CKY_LAST, category, words[j - 1]);
    out[2] = cky_table(g, CKY_BEFORE, category, i > 0 ? words[i - 1] : g->n_terminals);
    out[3] = cky_table(g, CKY_AFTER, category, j < n ? words[j] : g->n_terminals);
    out[4] = cky_length_feature(g, category, j - i);
}

/* e: what each node is worth by itself over (i, j). */
static void cky_nodes(const cky_chart *h, int64_t i, int64_t j, double *e) {
    const cky_grammar *g = h->g;
    for (int64_t s = 0; s < h->n_nodes; s++) {
        int64_t node = h->symbol[s], f[5];
        e[s] = g->counted[node] ? h->mu : 0.0;
        if (g->span_features < 0) continue;
        cky_span_features(g, h->words, h->n, g->category[node], i, j, f);
        e[s] += h->w[f[0]] + h->w[f[1]] + h->w[f[2]] + h->w[f[3]] + h->w[f[4]];
    }
    if (h->gold_ptr == NULL || h->a == 0.0) return;
    for (int64_t k = h->gold_ptr[cky_span(i, j)]; k < h->gold_ptr[cky_span(i, j) + 1]; k++)
        for (int64_t s = 0; s < h->n_nodes; s++) {
            int64_t node = h->symbol[s];
            if (g->counted[node] && g->category[node] == h->gold_category[k]) e[s] += h->a;
        }
}

/* ---- memory --------------------------------------------------------------------------------- */

static void cky_free(cky_chart *h) {
    void *all[] = {h->local, h->symbol, h->row, h->group_left, h->group_ptr, h->pair_right, h->rule_ptr,
                   h->rule_parent, h->rule_weight, h->chain, h->chain_below, h->chain_top, h->chain_bottom,
                   h->chain_weight, h->left, h->right, h->base, h->split, h->left_lo, h->right_lo, h->v, h->e, h->c};
    for (size_t k = 0; k < sizeof(all) / sizeof(*all); k++) free(all[k]);
}

/* What depends on the grammar alone. */
static int cky_init(cky_chart *h, const cky_grammar *g, int64_t max_bytes) {
    memset(h, 0, sizeof(*h));
    h->g = g;
    h->max_bytes = max_bytes;
    int ok = 1;
#define NEW(field, count) ok &= (h->field = malloc(((count) + 1) * sizeof(*h->field))) != NULL
    NEW(local, g->n_symbols); NEW(symbol, g->n_symbols); NEW(row, g->n_symbols);
    NEW(group_left, g->n_symbols); NEW(group_ptr, g->n_symbols + 1);
    NEW(pair_right, g->n_pairs); NEW(rule_ptr, g->n_pairs + 1);
    NEW(rule_parent, g->n_rules); NEW(rule_weight, g->n_rules);
    NEW(chain, g->n_chains); NEW(chain_below, g->n_chains); NEW(chain_top, g->n_chains);
    NEW(chain_bottom, g->n_chains); NEW(chain_weight, g->n_chains);
    NEW(v, g->n_symbols); NEW(e, g->n_nodes); NEW(c, g->n_chains);
#undef NEW
    return ok ? CKY_OK : CKY_NO_MEMORY;
}

/* Room for `need` bytes at *p, contents lost. */
static int cky_room(void *p, size_t *room, size_t need) {
    void **at = p;
    if (need <= *room) return CKY_OK;
    free(*at);
    *at = malloc(need);
    *room = *at == NULL ? 0 : need;
    return *at == NULL ? CKY_NO_MEMORY : CKY_OK;
}

/* Bytes of the chart of the sentence that has been restricted to. */
static double cky_bytes(const cky_chart *h) {
    double spans = 0.5 * (double)h->n * (double)(h->n + 1);
    return 8.0 * spans * (double)(h->n_left + h->m + h->n_nodes) + 8.0 * (double)(h->n + 1) * (double)(h->n_left + h->m);
}

/* ---- the sentence --------------------------------------------------------------------------- */

static void cky_alive(cky_chart *h, int64_t s, int64_t *size) {
    if (h->local[s] >= 0) return;
    h->local[s] = 0;
    h->symbol[(*size)++] = (int32_t)s;
}

/* Which symbols the words can derive: h->symbol in ascending order, h->m of them, and h->local. */
static void cky_restrict(cky_chart *h) {
    const cky_grammar *g = h->g;
    int64_t size = 0, m = 0;
    for (int64_t s = 0; s < g->n_symbols; s++) h->local[s] = -1;
    for (int64_t t = 0; t < h->n; t++) cky_alive(h, g->n_nodes + h->words[t], &size);
    for (int64_t next = 0; next < size; next++) {
        int64_t s = h->symbol[next], t = s - g->n_nodes;
        if (t < 0)
            for (int64_t k = g->up_ptr[s]; k < g->up_ptr[s + 1]; k++) cky_alive(h, g->up_node[k], &size);
        else if (t < g->n_terminals)
            for (int64_t k = g->lexical_ptr[t]; k < g->lexical_ptr[t + 1]; k++) cky_alive(h, g->lexical_node[k], &size);
        for (int64_t p = g->left_ptr[s]; p < g->left_ptr[s + 1]; p++)
            if (h->local[g->pair_right[p]] >= 0)
                for (int64_t r = g->rule_ptr[p]; r < g->rule_ptr[p + 1]; r++) cky_alive(h, g->rule_parent[r], &size);
        for (int64_t k = g->right_ptr[s]; k < g->right_ptr[s + 1]; k++) {
            int64_t p = g->right_pair[k];
            if (h->local[g->pair_left[p]] >= 0)
                for (int64_t r = g->rule_ptr[p]; r < g->rule_ptr[p + 1]; r++) cky_alive(h, g->rule_parent[r], &size);
        }
    }
    for (int64_t s = 0; s < g->n_symbols; s++)
        if (h->local[s] >= 0) {
            h->symbol[m] = (int32_t)s;
            h->local[s] = (int32_t)m++;
            if (s < g->n_nodes) h->n_nodes = m;
        }
    h->m = m;
}

/* Rules and chains between the symbols that are left, with their weights. */
static void cky_select(cky_chart *h) {
    const cky_grammar *g = h->g;
    int64_t pairs = 0, rules = 0;
    h->n_groups = h->n_left = h->n_chains = 0;
    for (int64_t s = 0; s < h->m; s++) {
        int64_t left = h->symbol[s], before = pairs;
        h->row[s] = -1;
        for (int64_t p = g->left_ptr[left]; p < g->left_ptr[left + 1]; p++) {
            int32_t right = h->local[g->pair_right[p]];
            if (right < 0) continue;
            h->pair_right[pairs] = right;
            h->rule_ptr[pairs++] = (int32_t)rules;
            for (int64_t r = g->rule_ptr[p]; r < g->rule_ptr[p + 1]; r++) {
                h->rule_parent[rules] = h->local[g->rule_parent[r]];
                h->rule_weight[rules++] = cky_weight(h->w, g->rule_feature[r]);
            }
        }
        if (pairs == before) continue;
        h->row[s] = (int32_t)h->n_left++;
        h->group_left[h->n_groups] = (int32_t)s;
        h->group_ptr[h->n_groups++] = (int32_t)before;
    }
    h->group_ptr[h->n_groups] = (int32_t)pairs;
    h->rule_ptr[pairs] = (int32_t)rules;
    h->n_pairs = pairs;
    /* A chain whose bottom is there is there whole. chain_below is renumbered through c, as scratch. */
    for (int64_t k = 0; k < g->n_chains; k++) {
        h->c[k] = -1.0;
        if (h->local[g->chain_bottom[k]] < 0) continue;
        int64_t at = h->n_chains++;
        h->c[k] = (double)at;
        h->chain[at] = (int32_t)k;
        h->chain_below[at] = g->chain_below[k] < 0 ? -1 : (int32_t)h->c[g->chain_below[k]];
        h->chain_top[at] = h->local[g->chain_top[k]];
        h->chain_bottom[at] = h->local[g->chain_bottom[k]];
        h->chain_weight[at] = cky_weight(h->w, g->chain_feature[k]);
    }
}

/* Make the chart ready for a sentence: which symbols, which rules, and room. */
static int cky_prepare(cky_chart *h, const int32_t *words, int64_t n, const double *w) {
    h->words = words;
    h->n = n;
    h->w = w;
    h->gold_ptr = NULL;
    h->a = h->mu = 0.0;
    h->n_nodes = 0;
    cky_restrict(h);
    cky_select(h);
    if (cky_bytes(h) > (double)h->max_bytes) return CKY_CAP;
    size_t spans = (size_t)n * (n + 1) / 2;
    const cky_grammar *g = h->g;
    if (cky_room(&h->left, &h->room_left, 8 * spans * h->n_left + 8) < 0 ||
        cky_room(&h->right, &h->room_right, 8 * spans * h->m + 8) < 0 ||
        cky_room(&h->base, &h->room_base, 8 * spans * h->n_nodes + 8) < 0 ||
        cky_room(&h->left_lo, &h->room_left_lo, 8 * (size_t)(n + 1) * h->n_left + 8) < 0 ||
        cky_room(&h->right_lo, &h->room_right_lo, 8 * (size_t)(n + 1) * h->m + 8) < 0)
        return CKY_NO_MEMORY;
    h->left_hi = h->left_lo + (n + 1) * h->n_left;
    h->right_hi = h->right_lo + (n + 1) * h->m;
    if (g->span_features >= 0) {
        if (cky_room(&h->split, &h->room_split, 8 * (size_t)g->n_categories * n) < 0) return CKY_NO_MEMORY;
        for (int64_t category = 0; category < g->n_categories; category++)
            for (int64_t k = 0; k < n; k++)
                h->split[category * n + k] = w[cky_table(g, CKY_SPLIT, category, words[k])];
    }
    return CKY_OK;
}

/* The scores of splits k under parent s (local), or NULL where it has none. */
static inline const double *cky_splits(const cky_chart *h, int64_t s) {
    return h->g->span_features < 0 || s >= h->n_nodes ? NULL : h->split + h->g->category[h->symbol[s]] * h->n;
}

#endif
