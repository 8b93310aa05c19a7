/* Derivations out of a CKY chart: the best one, the best one but for it, their features and their counts.
 *
 * A derivation is a list of nodes in preorder. A node is a symbol over a span; `chain` is the unary chain on its top
 * (or -1), and what is below the chain begins with `rule` at `split`: a binary rule; for one word, a lexical rule and
 * split -1; for a terminal, rule -1. Equal derivations are equal lists.
 */
#ifndef STRUCTSVM_CKY_TREES_H
#define STRUCTSVM_CKY_TREES_H

#include "cky.h"

typedef struct {
    int32_t symbol, i, j, chain, rule, split;
} cky_node;

typedef struct {
    int32_t symbol, i, j;
} cky_item;

/* A decision that would have cost least to take otherwise: node `at`, its loss, and what to take there instead. */
typedef struct {
    double loss;
    int64_t at;
    int32_t chain, rule, split;
} cky_choice;

/* Nodes that a derivation of n words may have at most: n leaves of a binary tree. */
static inline int64_t cky_most_nodes(int64_t n) { return 2 * n; }

/* The symbol below the chain of a node. */
static inline int64_t cky_bottom(const cky_grammar *g, const cky_node *d) {
    return d->chain < 0 ? d->symbol : g->chain_bottom[d->chain];
}

static void cky_better(double x, int32_t rule, int32_t split, double *best, double *second, cky_node *d, cky_choice *other) {
    if (x > *best) {
        *second = *best;
        other->rule = d->rule;
        other->split = d->split;
        *best = x;
        d->rule = rule;
        d->split = split;
    } else if (x > *second) {
        *second = x;
        other->rule = rule;
        other->split = split;
    }
}

/* The best rule and split of base symbol s (local) over (i, j), and the best after them. */
static void cky_best_rule(const cky_chart *h, int64_t s, cky_node *d, cky_choice *other) {
    const cky_grammar *g = h->g;
    int64_t i = d->i, j = d->j, symbol = h->symbol[s];
    double best = -INFINITY, second = -INFINITY;
    d->rule = d->split = other->rule = other->split = -1;
    if (symbol >= g->n_nodes && symbol < g->n_nodes + g->n_terminals) {
        best = 0.0;
    } else if (j - i == 1) {
        int64_t t = h->words[i];
        for (int64_t k = g->lexical_ptr[t]; k < g->lexical_ptr[t + 1]; k++)
            if (g->lexical_node[k] == symbol)
                cky_better(cky_weight(h->w, g->lexical_feature[k]), (int32_t)k, -1, &best, &second, d, other);
    } else {
        cky_ways way;
        for (cky_begin(&way, h, s, i, j); cky_next(&way, h);)
            cky_better(way.x, (int32_t)way.rule, (int32_t)way.split, &best, &second, d, other);
    }
    other->loss = second == -INFINITY ? INFINITY : best - second;
}

/* Score that chain k over (i, j) adds to the base value of its bottom. */
static double cky_chain(const cky_chart *h, int64_t i, int64_t j, int64_t k) {
    const double *e = cky_own(h, i, j);
    double x = 0.0;
    for (; k >= 0; k = h->chain_below[k]) x += h->chain_weight[k] + e[h->chain_top[k]];
    return x;
}

/* The best chain on top of symbol s (local) over a span, -1 for none, and the best after it. */
static void cky_best_chain(const cky_chart *h, int64_t s, cky_node *d, cky_choice *other) {
    const uint8_t *allowed = cky_allowed(h, d->i, d->j);
    const double *base = cky_base(h, d->i, d->j);
    double best = -INFINITY, second = -INFINITY;
    d->chain = other->chain = -1;
    other->loss = INFINITY;
    if (s >= h->n_nodes) return;
    if (cky_may_node(h, allowed, s)) best = base[s];
    for (int64_t k = h->chain_first[s], end = cky_n_chains(h, d->i, d->j); k >= 0 && k < end; k = h->chain_next[k]) {
        double x = base[h->chain_bottom[k]] + cky_chain(h, d->i, d->j, k);
        if (x == -INFINITY || !cky_may_chain(h, allowed, k)) continue;
        if (x > best) {
            second = best;
            other->chain = d->chain;
            best = x;
            d->chain = h->chain[k];
        } else if (x > second) {
            second = x;
            other->chain = h->chain[k];
        }
    }
    if (second > -INFINITY) other->loss = best - second;
}

/* The start symbol (local) with the best value over the whole sentence, -1 if there is no derivation. */
static int64_t cky_root(const cky_chart *h, double *best, cky_choice *other) {
    int64_t root = -1;
    double second = -INFINITY;
    *best = -INFINITY;
    for (int64_t s = 0; s < h->n_nodes; s++) {
        if (!cky_may_start(h, s)) continue;
        double x = cky_value(h, 0, s, h->n) + cky_start(h, s);
        if (x > *best) {
            second = *best;
            other->chain = (int32_t)root;
            *best = x;
            root = s;
        } else if (x > second) {
            second = x;
            other->chain = (int32_t)s;
        }
    }
    other->at = -1;
    other->loss = second == -INFINITY ? INFINITY : *best - second;
    return root;
}

/* Write the best derivation with root s (local) into d and return its length. `forced` (or NULL) is a decision to take
 * on the way; `cheapest` (or NULL) becomes the decision that would have cost least otherwise, if that is less than what
 * it holds. A node's chain and its rule are two decisions: one of them is what it was. -1: see stop.h. */
static int64_t cky_derive(cky_chart *h, int64_t s, const cky_choice *forced, cky_choice *cheapest, cky_item *stack, cky_node *d) {
    const cky_grammar *g = h->g;
    int64_t size = 0, top = 0, work = 0;
    stack[top++] = (cky_item){h->symbol[s], 0, (int32_t)h->n};
    while (top > 0) {
        cky_item item = stack[--top];
        cky_node *node = d + size;
        cky_choice chain, rule;
        node->symbol = item.symbol, node->i = item.i, node->j = item.j;
        cky_best_chain(h, h->local[item.symbol], node, &chain);
        if (forced != NULL && forced->at == size) node->chain = forced->chain;
        int64_t s = h->local[cky_bottom(g, node)];
        cky_best_rule(h, s, node, &rule);
        if (stop_count(&work, h->n_nodes + h->n_chains + 2 * (item.j - item.i) * (h->way_ptr[s + 1] - h->way_ptr[s])) < 0)
            return -1;
        if (forced != NULL && forced->at == size && forced->rule >= 0) node->rule = forced->rule, node->split = forced->split;
        if (cheapest != NULL && chain.loss < cheapest->loss)
            *cheapest = (cky_choice){chain.loss, size, chain.chain, -1, -1};
        if (cheapest != NULL && rule.loss < cheapest->loss)
            *cheapest = (cky_choice){rule.loss, size, node->chain, rule.rule, rule.split};
        size++;
        if (node->split < 0) continue;
        int64_t p = g->rule_pair[node->rule];
        stack[top++] = (cky_item){g->pair_right[p], node->split, item.j};
        stack[top++] = (cky_item){g->pair_left[p], item.i, node->split};
    }
    return size;
}

/* ---- what a derivation is made of ----------------------------------------------------------- */

static __attribute__((noinline)) int64_t cky_node_features(const cky_grammar *g, const uint32_t *keys, const cky_node *d,
                                                           int64_t node, int64_t *out, int64_t count) {
    for (int64_t t = 0; t < g->n_spans; t++) out[count++] = cky_span_row(g, keys, t, d->i, d->j) + g->category[node];
    return count;
}

/* Add the features of a derivation to `out`, one entry an occurrence; returns how many there are. */
static int64_t cky_features(const cky_grammar *g, const uint32_t *keys, const cky_node *d, int64_t size, int64_t *out) {
    int64_t count = 0;
    if (g->start_feature[d[0].symbol] >= 0) out[count++] = g->start_feature[d[0].symbol];
#define SPAN(node) count = cky_node_features(g, keys, d + k, node, out, count);
    for (int64_t k = 0; k < size; k++) {
        int64_t bottom = cky_bottom(g, d + k);
        int32_t feature = -1;
        for (int32_t link = d[k].chain; link >= 0; link = g->chain_below[link]) {
            if (g->chain_feature[link] >= 0) out[count++] = g->chain_feature[link];
            SPAN(g->chain_top[link])
        }
        if (bottom < g->n_nodes) { SPAN(bottom) }
        if (d[k].rule < 0) continue;
        feature = d[k].split < 0 ? g->lexical_feature[d[k].rule] : g->rule_feature[d[k].rule];
        if (feature >= 0) out[count++] = feature;
        if (d[k].split < 0) continue;
        for (int64_t t = 0; t < g->n_rule_splits + (bottom < g->n_nodes ? 0 : g->n_rests); t++)
            out[count++] = cky_rule_row(g, keys, t, t < g->n_rule_splits ? d[k].split : d[k].i) + g->rule_pair[d[k].rule];
        if (bottom < g->n_nodes)
            for (int64_t t = 0; t < g->n_splits; t++)
                out[count++] = cky_split_row(g, keys, t, d[k].split) + g->category[bottom];
    }
#undef SPAN
    return count;
}

/* Score of a derivation from the vectors of the sentence's words. Where there is `seen`, a table such as h->worth,
 * each of its nodes counts `factor` there at the words that they are seen at. */
static double cky_see(const cky_chart *h, const cky_node *d, int64_t size, double factor, double *seen) {
    const cky_grammar *g = h->g;
    double total = 0.0;
    for (const cky_node *node = d; g->n_vectors > 0 && node < d + size; node++) {
        const int32_t words[CKY_VECTORS] = {node->i, node->j - 1, node->split};
        for (int32_t link = node->chain;; link = g->chain_below[link]) {
            int64_t label = link < 0 ? cky_bottom(g, node) : g->chain_top[link];
            for (int64_t word = 0; label < g->n_nodes && word < (link < 0 && node->split >= 0 ? 3 : 2); word++) {
                int64_t at = cky_worth(h, word, words[word]) + g->category[label];
                total += h->worth[at];
                if (seen != NULL) seen[at] += factor;
            }
            if (link < 0) break;
        }
    }
    return total;
}

/* Whether a node over (i, j) is one of the gold tree's. */
static inline int cky_is_gold(const cky_chart *h, int64_t node, int64_t i, int64_t j) {
    for (int64_t k = h->gold_ptr[cky_span(i, j)]; k < h->gold_ptr[cky_span(i, j) + 1]; k++)
        if (h->gold_category[k] == h->g->category[node]) return 1;
    return 0;
}

/* Counted nodes of a tree: *p of them, *c in the gold tree. */
static void cky_count(const cky_chart *h, const cky_node *d, int64_t size, int64_t *c, int64_t *p) {
    const cky_grammar *g = h->g;
    *c = *p = 0;
    for (int64_t k = 0; k < size; k++) {
        int64_t node = cky_bottom(g, d + k);
        int32_t link = d[k].chain;
        for (;;) {
            if (node < g->n_nodes && g->counted[node]) {
                *p += 1;
                *c += cky_is_gold(h, node, d[k].i, d[k].j);
            }
            if (link < 0) break;
            node = g->chain_top[link];
            link = g->chain_below[link];
        }
    }
}

#endif
