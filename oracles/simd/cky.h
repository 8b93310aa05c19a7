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
 * Values stand in rows (i, s) over the end j. Begins are taken from right to left, ends k from left to right: once
 * final(B, i, k) is known, it is put beside all right children that begin at k,
 *
 *     row (i, A)  =  max(row (i, A),  row (k, C) + w + final(B, i, k))        for all ends j > k at once,
 *
 * a loop over contiguous numbers for each rule A -> B C of a node A, whose splits may be worth something. Intermediates
 * are right children only, their weights are the same for all k, and rules share pairs of children: the maxima
 *
 *     pair (B, C)  =  max over k of  final(B, i, k) + row (k, C)
 *
 * are taken first, and rules see them once per row; a pair of one rule has no need of that. Left children without a value
 * cost nothing, right ones that never begin at k are left out of the edges of (k, B), which are listed when they are first
 * asked for.
 *
 * Rows are made of whole blocks of CKY_BLOCK ends, and each row knows which of its blocks hold anything; what has no
 * value is -inf. A chart holds only the symbols that the words of its sentence can derive, numbered anew
 * (`local`).
 *
 * Of a tree that is known in part, `mask` says what may stand over each span: anything, or what a row of `allowed` lists.
 * A binary tree over the words that has no span across a bracket has the bracket's own, so what is forbidden is enough:
 * spans across a bracket; intermediates over its own span; nodes between it and its children.
 */
#ifndef STRUCTSVM_CKY_H
#define STRUCTSVM_CKY_H

#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "maxima.h"
#include "sets.h"
#include "stop.h"

enum { CKY_OK = 0, CKY_NO_MEMORY = -1, CKY_CAP = -2, CKY_STOPPED = -3 };   /* the last: see stop.h */

enum { CKY_BLOCK = 4 };
typedef double cky_block __attribute__((vector_size(8 * CKY_BLOCK), may_alias));
typedef int64_t cky_bits __attribute__((vector_size(8 * CKY_BLOCK), may_alias));
typedef double cky_loose __attribute__((vector_size(8 * CKY_BLOCK), may_alias, aligned(8)));    /* anywhere in memory */

/* A template of vectors, see structsvm/structures/spans.py: which word it sees (0: the first one, 1: the last, 2: that after
 * the split) and the offset from it, where its numbers stand among the keys, how many, and their first row of weights. */
typedef struct {
    int32_t word, offset, column, size, row;
} cky_vector;
typedef float cky_number __attribute__((may_alias));

typedef struct {
    int64_t n_symbols, n_nodes, n_terminals, n_rules, n_chains, n_categories;
    int64_t n_wide_categories;  /* categories that may stand over several words: the first of them */
    const uint8_t *is_wide;     /* (n_nodes) whether it may stand over several words */
    /* span features, see structsvm/structures/spans.py: templates of spans and of splits, a row of weights by category
     * for each of their values */
    int64_t span_features, n_spans, n_splits;       /* where their weights begin; numbers of templates */
    /* templates by rule have a weight for each pair of children (of a category of parents); see CKY_OF_SPLITS */
    int64_t n_pairs, rule_rows, n_rule_splits, n_rests, n_keys;
    const int32_t *first_row, *shift;               /* by template */
    const uint32_t *length_key;                     /* (9, n_spans) */
    const int32_t *group, *group_ptr;               /* templates of spans by what they depend on, see CKY_BEGIN */
    const int32_t *category;    /* (n_nodes) what losses compare and span features see */
    const uint8_t *counted;     /* (n_nodes) whether losses look at it */
    const int32_t *start_feature;   /* (n_nodes); -1: weight 0, -2: no start symbol */
    const int32_t *pair_left, *pair_right;                  /* pairs of children, by left child, then by right child */
    const int32_t *left_ptr;                                /* (n_symbols + 1) pairs of a left child */
    const int32_t *right_ptr, *right_pair;                  /* pairs of a right child */
    const int32_t *rule_ptr;                                /* rules of a pair */
    const int32_t *rule_pair, *rule_parent, *rule_feature;  /* (n_rules); feature -1: weight 0 */
    const int32_t *lexical_ptr;                             /* (n_terminals + 1) */
    const int32_t *lexical_node, *lexical_feature;
    const int32_t *up_ptr, *up_node;                        /* parents of a node by one unary rule */
    const int32_t *chain_below;     /* (n_chains) the chain without its top rule, -1 if it is one rule long */
    const int32_t *chain_top, *chain_bottom, *chain_feature;
    int64_t n_vectors, n_number_rows, number_rows;          /* templates of vectors; rows by category, where they begin */
    const cky_vector *vector;
} cky_grammar;

/* A rule A -> B C of a left child that ends at k, or a pair: row (k, C), where it begins in blocks, and the row that it is
 * put into. */
typedef struct {
    int32_t row, to;
    double weight;
} cky_edge;

/* A rule of a parent, its children as local symbols. */
typedef struct {
    int32_t left, right, rule;
    double weight;
} cky_way;

typedef struct {
    const cky_grammar *g;
    const double *w;
    int64_t max_bytes;
    /* the sentence, and its gold nodes as categories by span (gold_ptr NULL: none) */
    int64_t n;
    const int32_t *words;           /* terminal numbers */
    const uint32_t *keys;           /* (n + 1, n_keys) what templates see at each position */
    const int32_t *gold_ptr, *gold_category;
    double a, mu;
    const int32_t *mask;            /* by span a row of `allowed`, -1: anything; NULL: anything over any span */
    const uint8_t *allowed;         /* a row: one byte for terminals and intermediates, n_nodes, n_chains */
    /* the restricted grammar */
    int64_t m, n_nodes, n_left, n_rules, n_node_rules, n_chains, n_outer;    /* n_outer: symbols but intermediates, the first */
    int64_t n_wide_nodes, n_wide;   /* nodes and chains that may stand over several words: the first of them */
    int32_t *local, *symbol;        /* number in the chart or -1; the inverse */
    int32_t *left;                  /* (n_left) the symbols that are left children, ascending: wide nodes come first */
    int64_t n_wide_left;
    int32_t *left_ptr, *rule_right, *rule_parent, *rule;    /* by left child */
    double *rule_weight;
    int64_t n_pairs;
    int32_t *pair_ptr, *pair_right; /* pairs of children by left child */
    int32_t *pair_rule, *pair_inner;/* where the rules of a pair begin, and among them those that see its maxima */
    int32_t *way_ptr;               /* (m + 1) by parent */
    cky_way *way;
    int32_t *chain, *chain_below, *chain_top, *chain_bottom;
    int32_t *chain_first, *chain_next;  /* the first chain of a top and the one after a chain, -1: none; wide ones are first */
    double *chain_weight;
    /* the chart */
    size_t room_value, room_base, room_own, room_part, room_worth, room_part_class, room_rule_part, room_most, room_lo, room_row, room_edge, room_edge_ptr, room_pair;
    double *value, *base, *own;     /* own: what a node over a span is worth by itself, e */
    double *part;                   /* (5, n, n_categories) parts of nodes' values, see CKY_BEGIN; of splits */
    double *worth;                  /* (CKY_VECTORS, n, n_categories) what vectors are worth to a node, by the word that is seen */
    double *rule_part;              /* (2, n, n_pairs) parts of rules, see CKY_OF_SPLITS; where their left child has a value */
    double *most;                   /* (n) the largest part of a rule at each split */
    int32_t *part_class;            /* (2, n) the class of lengths that parts by length are of */
    int32_t *lo, *hi;               /* (n, m) blocks of row (i, s) */
    int64_t *row;                   /* (n + 1) where the rows (i, .) begin, in blocks */
    cky_edge *edge;
    int64_t *edge_ptr;              /* (n, n_left, 3) first edges of (k, B), of nodes and of pairs, and end; -1: not listed yet */
    cky_block *pair;                /* (n_pairs, width) the pairs of the row at work */
    uint8_t *has_pairs;             /* (n_left) whether it has those of a left child */
    int64_t n_edges;
    double *v, *c, *sum;            /* scratch: of nodes, chains, categories */
} cky_chart;

struct cky_sums; /* defined in cky_sums.h */

typedef struct {
    int (*inside)(cky_chart *h);
    int (*sums_inside)(cky_chart *h, struct cky_sums *f, double *log_sum);
    int (*sums_outside)(cky_chart *h, struct cky_sums *f, double log_sum, double *psi);
} cky_kernels;

KERNELS_OF(cky);

static inline int64_t cky_span(int64_t i, int64_t j) { return j * (j - 1) / 2 + i; }

/* How many of the nodes and of the chains may stand over (i, j): those with binary rules at their bottom, over one word all. */
static inline int64_t cky_n_nodes(const cky_chart *h, int64_t i, int64_t j) { return j - i > 1 ? h->n_wide_nodes : h->n_nodes; }
static inline int64_t cky_n_categories(const cky_grammar *g, int64_t i, int64_t j) {
    return j - i > 1 ? g->n_wide_categories : g->n_categories;
}
static inline int64_t cky_n_chains(const cky_chart *h, int64_t i, int64_t j) { return j - i > 1 ? h->n_wide : h->n_chains; }

static inline int cky_any(cky_bits x) { return (x[0] | x[1] | x[2] | x[3]) != 0; }

static inline int64_t cky_first_block(int64_t i) { return (i + 1) / CKY_BLOCK; }
static inline int64_t cky_width(const cky_chart *h, int64_t i) { return h->n / CKY_BLOCK - cky_first_block(i) + 1; }

/* Where the value of local symbol s over (i, j) stands, if its row has that block. */
static inline int64_t cky_at(const cky_chart *h, int64_t i, int64_t s, int64_t j) {
    return CKY_BLOCK * (h->row[i] + s * cky_width(h, i) - cky_first_block(i)) + j;
}

/* final(s, i, j), -inf if there is none. */
static inline double cky_value(const cky_chart *h, int64_t i, int64_t s, int64_t j) {
    int64_t block = j / CKY_BLOCK, at = i * h->m + s;
    return h->lo[at] <= block && block <= h->hi[at] ? h->value[cky_at(h, i, s, j)] : -INFINITY;
}

/* Whether row (i, s) has a place for end k. */
static inline int cky_has(const cky_chart *h, int64_t i, int64_t s, int64_t k) {
    int64_t at = i * h->m + s;
    return h->lo[at] <= k / CKY_BLOCK && k / CKY_BLOCK <= h->hi[at];
}

/* Mask of what may stand over (i, j); NULL: anything. */
static inline const uint8_t *cky_allowed(const cky_chart *h, int64_t i, int64_t j) {
    int32_t row = h->mask == NULL ? -1 : h->mask[cky_span(i, j)];
    return row < 0 ? NULL : h->allowed + row * (1 + h->g->n_nodes + h->g->n_chains);
}

/* Whether that holds for terminals and intermediates, for a node without a chain, for one with a chain (local numbers). */
static inline int cky_may_others(const uint8_t *allowed) { return allowed == NULL || allowed[0]; }
static inline int cky_may_node(const cky_chart *h, const uint8_t *allowed, int64_t s) {
    return allowed == NULL || allowed[1 + h->symbol[s]];
}
static inline int cky_may_chain(const cky_chart *h, const uint8_t *allowed, int64_t r) {
    return allowed == NULL || allowed[1 + h->g->n_nodes + h->chain[r]];
}

static inline double *cky_base(const cky_chart *h, int64_t i, int64_t j) {
    return h->base + cky_span(i, j) * h->n_nodes;
}
static inline double *cky_own(const cky_chart *h, int64_t i, int64_t j) { return h->own + cky_span(i, j) * h->n_nodes; }

static inline double cky_weight(const double *w, int32_t feature) { return feature < 0 ? 0.0 : w[feature]; }

/* ---- span features -------------------------------------------------------------------------- */

static inline const uint32_t *cky_keys(const cky_grammar *g, const uint32_t *keys, int64_t at) {
    return keys + at * g->n_keys;
}

/* Classes of lengths: 1, 2, 3, 4, 5-6, 7-9, 10-14, 15-19, 20 and more. */
static inline int64_t cky_length(int64_t n) {
    return n < 5 ? n - 1 : n < 7 ? 4 : n < 10 ? 5 : n < 15 ? 6 : n < 20 ? 7 : 8;
}

/* Where the weights of a template's row begin. */
static inline int64_t cky_row(const cky_grammar *g, int64_t t, uint32_t key) {
    return g->span_features + g->n_categories * (g->first_row[t] + (int64_t)(key >> g->shift[t]));
}
static inline int64_t cky_span_row(const cky_grammar *g, const uint32_t *keys, int64_t t, int64_t i, int64_t j) {
    uint32_t key = cky_keys(g, keys, i)[t] + cky_keys(g, keys, j)[g->n_spans + t];
    return cky_row(g, t, key + g->length_key[cky_length(j - i) * g->n_spans + t]);
}
static inline int64_t cky_split_row(const cky_grammar *g, const uint32_t *keys, int64_t t, int64_t k) {
    return cky_row(g, g->n_spans + t, cky_keys(g, keys, k)[2 * g->n_spans + t]);
}

static inline int64_t cky_rule_row(const cky_grammar *g, const uint32_t *keys, int64_t t, int64_t k) {
    t += g->n_spans + g->n_splits;
    return g->rule_rows + g->n_pairs * (int64_t)(cky_keys(g, keys, k)[g->n_spans + t] >> g->shift[t]);
}

/* The part of a span that a template depends on: most see but one end, and are summed up once per word (and class of
 * lengths). Parts of splits stand after those. */
enum { CKY_BEGIN, CKY_END, CKY_BEGIN_LENGTH, CKY_END_LENGTH, CKY_BOTH, CKY_SPLITS = CKY_BOTH, CKY_MOST_TEMPLATES = 256 };

static inline double *cky_part(const cky_chart *h, int64_t group, int64_t at) {
    return h->part + (group * h->n + at) * h->g->n_categories;
}

/* The words that templates of vectors see. */
enum { CKY_FIRST_WORD, CKY_LAST_WORD, CKY_SPLIT_WORD, CKY_VECTORS };

/* Where a table such as h->worth has word k, seen as `word`. */
static inline int64_t cky_worth(const cky_chart *h, int64_t word, int64_t k) { return (word * h->n + k) * h->g->n_categories; }

/* Numbers that a template sees at word k; NULL: zeros, beyond the sentence. */
static inline const cky_number *cky_numbers(const cky_chart *h, const cky_vector *v, int64_t k) {
    k += v->offset;
    return k < 0 || k >= h->n ? NULL : (const cky_number *)(cky_keys(h->g, h->keys, k) + v->column);
}

/* Fill h->worth: the products of numbers and their rows of weights. */
static void cky_multiply(cky_chart *h) {
    const cky_grammar *g = h->g;
    memset(h->worth, 0, 8 * (size_t)cky_worth(h, CKY_VECTORS, 0));
    for (const cky_vector *v = g->vector; v < g->vector + g->n_vectors; v++)
        for (int64_t k = 0; k < h->n; k++) {
            const cky_number *x = cky_numbers(h, v, k);
            const double *row = h->w + g->number_rows + v->row * g->n_categories;
            double *to = h->worth + cky_worth(h, v->word, k);
            for (int64_t d = 0; x != NULL && d < v->size; d++, row += g->n_categories)
                for (int64_t c = 0; c < g->n_categories; c++) to[c] += x[d] * row[c];
        }
}

/* The reverse: psi += numbers, each so many times as `seen`, a table such as h->worth, has its word. */
static void cky_multiply_back(const cky_chart *h, const double *seen, double *psi) {
    const cky_grammar *g = h->g;
    for (const cky_vector *v = g->vector; v < g->vector + g->n_vectors; v++)
        for (int64_t k = 0; k < h->n; k++) {
            const cky_number *x = cky_numbers(h, v, k);
            double *row = psi + g->number_rows + v->row * g->n_categories;
            const double *from = seen + cky_worth(h, v->word, k);
            for (int64_t c = 0; x != NULL && c < g->n_categories; c++)
                for (int64_t d = 0; from[c] != 0.0 && d < v->size; d++) row[d * g->n_categories + c] += x[d] * from[c];
        }
}

/* Templates by rule see a rule's split, or where the rest begins that a rule of an intermediate is over. */
enum { CKY_OF_SPLITS, CKY_OF_RESTS };

static inline int64_t cky_rule_begin(const cky_grammar *g, int of) { return of == CKY_OF_SPLITS ? 0 : g->n_rule_splits; }
static inline int64_t cky_rule_end(const cky_grammar *g, int of) { return g->n_rule_splits + (of == CKY_OF_SPLITS ? 0 : g->n_rests); }

static inline double cky_rule_part(const cky_chart *h, int of, int64_t at, int64_t rule) {
    const cky_grammar *g = h->g;
    return g->n_rule_splits + g->n_rests == 0 ? 0.0 : h->rule_part[(of * h->n + at) * g->n_pairs + g->rule_pair[rule]];
}

/* Where the block for numbers c, c + 1, ... of n stands: the last may overlap the one before. */
static inline int64_t cky_block_at(int64_t c, int64_t n) { return c + CKY_BLOCK <= n ? c : n - CKY_BLOCK; }

/* to = the sum of rows, of all categories or rules. */
static inline void cky_add(double *to, const double *const *rows, int64_t count, int64_t n) {
    for (int64_t c = 0; c < n && n >= CKY_BLOCK; c += CKY_BLOCK) {
        int64_t at = cky_block_at(c, n);
        cky_loose sum = {0.0, 0.0, 0.0, 0.0};
        for (int64_t r = 0; r < count; r++) sum += *(const cky_loose *)(rows[r] + at);
        *(cky_loose *)(to + at) = sum;
    }
    for (int64_t c = 0; c < n && n < CKY_BLOCK; c++) {
        to[c] = 0.0;
        for (int64_t r = 0; r < count; r++) to[c] += rows[r][c];
    }
}

/* The largest of n numbers and one more. */
static inline double cky_largest(const double *x, int64_t n, double one) {
    cky_block all = {one, one, one, one};
    for (int64_t c = 0; c < n && n >= CKY_BLOCK; c += CKY_BLOCK)
        all = maxima_of_4d(*(const cky_loose *)(x + cky_block_at(c, n)), all);
    for (int64_t c = 0; c < CKY_BLOCK; c++) one = all[c] > one ? all[c] : one;
    for (int64_t c = 0; c < n && n < CKY_BLOCK; c++) one = x[c] > one ? x[c] : one;
    return one;
}

/* List the weights of a group's templates for (i, j) after `count` others; returns how many there are then. */
static inline int64_t cky_list_rows(const cky_chart *h, int64_t group, int64_t i, int64_t j, const double **rows, int64_t count) {
    const cky_grammar *g = h->g;
    for (int64_t q = g->group_ptr[group]; q < g->group_ptr[group + 1]; q++)
        rows[count++] = h->w + cky_span_row(g, h->keys, g->group[q], i, j);
    return count;
}

/* Ask for the rows that the parts by length of (i, j) will be sums of. */
static void cky_ask_lengths(const cky_chart *h, int64_t i, int64_t j) {
    const int64_t n = cky_n_categories(h->g, i, j), words[] = {i, j - 1};
    const double *rows[CKY_MOST_TEMPLATES];
    for (int64_t end = 0; end < 2; end++) {
        if (h->part_class[end * h->n + words[end]] == cky_length(j - i)) continue;
        int64_t count = cky_list_rows(h, CKY_BEGIN_LENGTH + end, i, j, rows, 0);
        for (int64_t r = 0; r < count; r++)
            for (int64_t c = 0; c < n; c += 8) __builtin_prefetch(rows[r] + c);
    }
}

/* The part of (i, j) that depends on its length and the word `at`, its first or last one. */
static const double *cky_length_part(const cky_chart *h, int64_t group, int64_t at, int64_t i, int64_t j) {
    int32_t *held = h->part_class + (group - CKY_BEGIN_LENGTH) * h->n + at, is = (int32_t)cky_length(j - i);
    double *part = cky_part(h, group, at);
    const double *rows[CKY_MOST_TEMPLATES];
    if (*held != is) {
        cky_add(part, rows, cky_list_rows(h, group, i, j, rows, 0), cky_n_categories(h->g, i, j));
        *held = is;
    }
    return part;
}

/* The parts that each word has: as the first of a span, as the last, after a split. */
static void cky_parts(cky_chart *h) {
    const cky_grammar *g = h->g;
    const double *rows[CKY_MOST_TEMPLATES];
    for (int64_t k = 0; k < h->n; k++) {
        cky_add(cky_part(h, CKY_BEGIN, k), rows, cky_list_rows(h, CKY_BEGIN, k, k + 1, rows, 0), g->n_categories);
        cky_add(cky_part(h, CKY_END, k), rows, cky_list_rows(h, CKY_END, k, k + 1, rows, 0), g->n_categories);
        h->part_class[k] = h->part_class[h->n + k] = -1;
        for (int64_t t = 0; t < g->n_splits; t++) rows[t] = h->w + cky_split_row(g, h->keys, t, k);
        cky_add(cky_part(h, CKY_SPLITS, k), rows, g->n_splits, g->n_categories);
    }
    if (g->n_vectors == 0) return;
    static const int64_t parts[CKY_VECTORS] = {CKY_BEGIN, CKY_END, CKY_SPLITS};
    for (int64_t word = 0; word < CKY_VECTORS; word++) {
        double *part = cky_part(h, parts[word], 0);
        const double *worth = h->worth + cky_worth(h, word, 0);
        for (int64_t c = 0; c < h->n * g->n_categories; c++) part[c] += worth[c];
    }
}

/* Add up what all rules of a left child (local) see at a position: their pairs are neighbours. */
static void cky_rule_sums(const cky_chart *h, int of, int64_t at, int64_t left) {
    const cky_grammar *g = h->g;
    if (g->n_rule_splits + g->n_rests == 0) return;     /* and there is no h->rule_part */
    const double *rows[CKY_MOST_TEMPLATES];
    int64_t count = 0, first = g->left_ptr[h->symbol[left]], n = g->left_ptr[h->symbol[left] + 1] - first;
    double *sums = h->rule_part + (of * h->n + at) * g->n_pairs + first;
    for (int64_t t = cky_rule_begin(g, of); t < cky_rule_end(g, of); t++) rows[count++] = h->w + cky_rule_row(g, h->keys, t, at) + first;
    cky_add(sums, rows, count, n);
    if (of == CKY_OF_SPLITS) h->most[at] = cky_largest(sums, n, h->most[at]);
}

/* Scores of the nodes that may stand over (i, j), each by itself. */
static void cky_nodes(const cky_chart *h, int64_t i, int64_t j) {
    const cky_grammar *g = h->g;
    double *e = cky_own(h, i, j);
    const int64_t n_nodes = cky_n_nodes(h, i, j);
    const double *rows[CKY_BOTH + CKY_MOST_TEMPLATES];
    int64_t count = 0;
    if (g->n_spans + g->n_vectors > 0) {
        rows[count++] = cky_part(h, CKY_BEGIN, i);
        rows[count++] = cky_part(h, CKY_END, j - 1);
        rows[count++] = cky_length_part(h, CKY_BEGIN_LENGTH, i, i, j);
        rows[count++] = cky_length_part(h, CKY_END_LENGTH, j - 1, i, j);
        count = cky_list_rows(h, CKY_BOTH, i, j, rows, count);
    }
    cky_add(h->sum, rows, count, cky_n_categories(g, i, j));
    for (int64_t s = 0; s < n_nodes; s++) {
        int64_t node = h->symbol[s];
        e[s] = h->sum[g->category[node]] + (g->counted[node] ? h->mu : 0.0);
    }
    if (h->gold_ptr == NULL || h->a == 0.0) return;
    for (int64_t k = h->gold_ptr[cky_span(i, j)]; k < h->gold_ptr[cky_span(i, j) + 1]; k++)
        for (int64_t s = 0; s < n_nodes; s++) {
            int64_t node = h->symbol[s];
            if (g->counted[node] && g->category[node] == h->gold_category[k]) e[s] += h->a;
        }
}

/* ---- memory --------------------------------------------------------------------------------- */

/* `need` bytes at a multiple of 64, by what every C library has: the address that malloc returned stands before them. */
static void *cky_new(size_t need) {
    char *all = malloc(need + 64);
    if (all == NULL) return NULL;
    void **at = (void **)(((uintptr_t)all + 64) & ~(uintptr_t)63);
    at[-1] = all;
    return at;
}

static void cky_delete(void *at) { if (at != NULL) free(((void **)at)[-1]); }

static void cky_free(cky_chart *h) {
    void *all[] = {h->local, h->symbol, h->left, h->left_ptr, h->rule_right, h->rule_parent, h->rule,
                   h->rule_weight, h->pair_ptr, h->pair_right, h->pair_rule, h->pair_inner, h->pair, h->has_pairs, h->way_ptr, h->way,
                   h->chain, h->chain_below, h->chain_top, h->chain_bottom, h->chain_first, h->chain_next, h->chain_weight,
                   h->value, h->base, h->own, h->part, h->worth, h->part_class, h->rule_part, h->most, h->lo, h->row, h->edge, h->edge_ptr, h->v, h->c, h->sum};
    for (size_t k = 0; k < sizeof(all) / sizeof(*all); k++) cky_delete(all[k]);
}

/* Set up the part that depends on the grammar alone. */
static int cky_init(cky_chart *h, const cky_grammar *g, int64_t max_bytes) {
    memset(h, 0, sizeof(*h));
    h->g = g;
    h->max_bytes = max_bytes;
    int ok = 1;
#define NEW(field, count) ok &= (h->field = cky_new(((count) + 1) * sizeof(*h->field))) != NULL
    NEW(local, g->n_symbols); NEW(symbol, g->n_symbols);
    NEW(left, g->n_symbols); NEW(left_ptr, g->n_symbols + 1);
    NEW(rule_right, g->n_rules); NEW(rule_parent, g->n_rules); NEW(rule, g->n_rules);
    NEW(rule_weight, g->n_rules); NEW(has_pairs, g->n_symbols);
    NEW(pair_ptr, g->n_symbols + 1); NEW(pair_right, g->n_rules); NEW(pair_rule, g->n_rules + 1); NEW(pair_inner, g->n_rules);
    NEW(way_ptr, g->n_symbols + 1); NEW(way, g->n_rules);
    NEW(chain, g->n_chains); NEW(chain_below, g->n_chains); NEW(chain_top, g->n_chains);
    NEW(chain_bottom, g->n_chains); NEW(chain_first, g->n_nodes); NEW(chain_next, g->n_chains);
    NEW(chain_weight, g->n_chains);
    NEW(v, g->n_nodes); NEW(c, g->n_chains); NEW(sum, g->n_categories);
#undef NEW
    for (int64_t s = 0; ok && s < g->n_symbols; s++) h->local[s] = -1;
    return ok ? CKY_OK : CKY_NO_MEMORY;
}

/* Room for `need` bytes at *p, contents lost. */
static int cky_room(void *p, size_t *room, size_t need) {
    void **at = p;
    if (need <= *room) return CKY_OK;
    cky_delete(*at);
    need = (need / 64 + 1) * 64;
    *at = cky_new(need);
    *room = *at == NULL ? 0 : need;
    return *at == NULL ? CKY_NO_MEMORY : CKY_OK;
}

/* The most edges that may be listed: a terminal ends at k only if it is the word before. */
static int64_t cky_most_edges(const cky_chart *h) {
    int64_t most = (h->n - 1) * h->n_node_rules;
    for (int64_t q = 0; q < h->n_left; q++) {
        int64_t word = h->symbol[h->left[q]] - h->g->n_nodes;
        for (int64_t k = 1; word >= 0 && k < h->n; k++)
            if (h->words[k - 1] == word) most += h->left_ptr[q + 1] - h->left_ptr[q];
    }
    return most;
}

static int64_t cky_rule_parts(const cky_chart *h) { return h->g->n_rule_splits + h->g->n_rests > 0 ? 2 * h->n * h->g->n_pairs : 0; }

/* Bytes of the chart of the sentence that has been restricted to; h->row is there. */
static double cky_bytes(const cky_chart *h) {
    return (double)sizeof(cky_block) * (double)h->row[h->n] + 8.0 * (double)h->n * (double)(h->n + 1) * (double)h->n_nodes
         + (double)sizeof(cky_edge) * (double)cky_most_edges(h)
         + 8.0 * (double)h->n * (double)h->m + 24.0 * (double)h->n * (double)h->n_left
         + (double)sizeof(cky_block) * (double)h->n_pairs * (double)cky_width(h, 0) + 8.0 * (double)cky_rule_parts(h);
}

/* ---- the sentence --------------------------------------------------------------------------- */

static void cky_alive(cky_chart *h, int64_t s, int64_t *size) {
    if (h->local[s] >= 0) return;
    h->local[s] = 0;
    h->symbol[(*size)++] = (int32_t)s;
}

/* Find the symbols that the words can derive: h->symbol, h->m of them, and h->local. Nodes come first (the wide ones before the
 * others), then terminals: each ascending. */
static void cky_restrict(cky_chart *h) {
    const cky_grammar *g = h->g;
    int64_t size = 0, m = 0;
    for (int64_t s = 0; s < h->m; s++) h->local[h->symbol[s]] = -1;     /* the sentence before */
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
    for (int64_t narrow = 0; narrow < 2; narrow++) {
        for (int64_t s = 0; s < g->n_nodes; s++)
            if (g->is_wide[s] != narrow && h->local[s] >= 0) h->symbol[m++] = (int32_t)s;
        if (!narrow) h->n_wide_nodes = m;
    }
    h->n_nodes = m;
    for (int64_t t = 0; t < h->n; t++) {
        int64_t s = g->n_nodes + h->words[t], at = m;
        if (h->local[s] > 0) continue;      /* a word that was there before */
        h->local[s] = 1;
        for (; at > h->n_nodes && h->symbol[at - 1] > s; at--) h->symbol[at] = h->symbol[at - 1];
        h->symbol[at] = (int32_t)s;
        m++;
    }
    h->n_outer = m;
    for (int64_t s = g->n_nodes + g->n_terminals; s < g->n_symbols; s++)
        if (h->local[s] >= 0) h->symbol[m++] = (int32_t)s;
    for (int64_t s = 0; s < m; s++) h->local[h->symbol[s]] = (int32_t)s;
    h->m = m;
}

/* The rules by parent, those of a parent by the symbol of the left child: of equal scores the first wins. */
static void cky_by_parent(cky_chart *h) {
    memset(h->way_ptr, 0, (h->m + 1) * sizeof(int32_t));
    for (int64_t r = 0; r < h->n_rules; r++) h->way_ptr[h->rule_parent[r] + 1]++;
    for (int64_t s = 0; s < h->m; s++) h->way_ptr[s + 1] += h->way_ptr[s];
    for (int64_t wide = 0, narrow = h->n_wide_left; wide < h->n_wide_left || narrow < h->n_left;) {
        int64_t q = narrow == h->n_left || (wide < h->n_wide_left && h->symbol[h->left[wide]] < h->symbol[h->left[narrow]])
                  ? wide++ : narrow++;
        for (int64_t r = h->left_ptr[q]; r < h->left_ptr[q + 1]; r++)
            h->way[h->way_ptr[h->rule_parent[r]]++] = (cky_way){h->left[q], h->rule_right[r], h->rule[r], h->rule_weight[r]};
    }
    /* Each pointer stands where the next parent's began. */
    memmove(h->way_ptr + 1, h->way_ptr, h->m * sizeof(int32_t));
    h->way_ptr[0] = 0;
}

/* Rules and chains between the symbols that are left, with their weights. */
static void cky_select(cky_chart *h) {
    const cky_grammar *g = h->g;
    int64_t rules = 0;
    h->n_left = h->n_wide_left = h->n_chains = h->n_node_rules = h->n_pairs = 0;
    for (int64_t s = 0; s < h->m; s++) {
        int64_t symbol = h->symbol[s], before = rules, pairs = h->n_pairs;
        for (int64_t p = g->left_ptr[symbol]; p < g->left_ptr[symbol + 1]; p++) {
            int32_t right = h->local[g->pair_right[p]];
            if (right < 0) continue;
            h->pair_right[h->n_pairs] = right;
            h->pair_rule[h->n_pairs] = h->pair_inner[h->n_pairs] = (int32_t)rules;
            int is_only = g->n_rests == 0 && g->rule_ptr[p + 1] == g->rule_ptr[p] + 1;
            for (int64_t r = g->rule_ptr[p]; r < g->rule_ptr[p + 1]; r++) {
                if (g->rule_parent[r] < g->n_nodes || is_only) h->pair_inner[h->n_pairs]++;
                h->rule_right[rules] = right;
                h->rule_parent[rules] = h->local[g->rule_parent[r]];
                h->rule[rules] = (int32_t)r;
                h->rule_weight[rules++] = cky_weight(h->w, g->rule_feature[r]);
            }
            h->n_pairs++;
        }
        if (rules == before) continue;
        h->left[h->n_left] = (int32_t)s;
        h->pair_ptr[h->n_left] = (int32_t)pairs;
        h->left_ptr[h->n_left++] = (int32_t)before;
        if (s < h->n_wide_nodes) h->n_wide_left = h->n_left;
        if (s < h->n_nodes) h->n_node_rules += rules - before;
    }
    h->left_ptr[h->n_left] = (int32_t)rules;
    h->pair_ptr[h->n_left] = (int32_t)h->n_pairs;
    h->pair_rule[h->n_pairs] = (int32_t)rules;
    h->n_rules = rules;
    cky_by_parent(h);
    /* A chain whose bottom is there is there whole. chain_below is renumbered through c, as scratch. */
    for (int64_t narrow = 0; narrow < 2; narrow++) {
        for (int64_t k = 0; k < g->n_chains; k++) {
            int64_t bottom = h->local[g->chain_bottom[k]];
            if (bottom < 0 || (h->way_ptr[bottom] == h->way_ptr[bottom + 1]) != narrow) continue;
            int64_t at = h->n_chains++;
            h->c[k] = (double)at;
            h->chain[at] = (int32_t)k;
            h->chain_below[at] = g->chain_below[k] < 0 ? -1 : (int32_t)h->c[g->chain_below[k]];
            h->chain_top[at] = h->local[g->chain_top[k]];
            h->chain_bottom[at] = (int32_t)bottom;
            h->chain_weight[at] = cky_weight(h->w, g->chain_feature[k]);
        }
        if (!narrow) h->n_wide = h->n_chains;
    }
    for (int64_t s = 0; s < h->n_nodes; s++) h->chain_first[s] = -1;
    for (int64_t k = h->n_chains - 1; k >= 0; k--) {
        int32_t *first = h->chain_first + h->chain_top[k];
        h->chain_next[k] = *first;
        *first = (int32_t)k;
    }
}

/* Make the chart ready for a sentence: which symbols, which rules, and room. */
static int cky_prepare(cky_chart *h, const int32_t *words, const uint32_t *keys, int64_t n, const double *w) {
    h->words = words;
    h->keys = keys;
    h->n = n;
    h->w = w;
    h->gold_ptr = NULL;
    h->mask = NULL;
    h->a = h->mu = 0.0;
    h->n_edges = 0;
    cky_restrict(h);
    cky_select(h);
    const cky_grammar *g = h->g;
    if (cky_room(&h->row, &h->room_row, 8 * (size_t)(n + 1)) < 0) return CKY_NO_MEMORY;
    h->row[0] = 0;
    for (int64_t i = 0; i < n; i++) h->row[i + 1] = h->row[i] + h->m * cky_width(h, i);
    if (cky_bytes(h) > (double)h->max_bytes || h->row[n] > INT_MAX) return CKY_CAP;
    if (cky_room(&h->value, &h->room_value, sizeof(cky_block) * (size_t)h->row[n]) < 0 ||
        cky_room(&h->base, &h->room_base, 4 * (size_t)n * (n + 1) * h->n_nodes) < 0 ||
        cky_room(&h->own, &h->room_own, 4 * (size_t)n * (n + 1) * h->n_nodes) < 0 ||
        cky_room(&h->lo, &h->room_lo, 8 * (size_t)n * h->m) < 0 ||
        cky_room(&h->edge, &h->room_edge, sizeof(cky_edge) * (size_t)cky_most_edges(h)) < 0 ||
        cky_room(&h->edge_ptr, &h->room_edge_ptr, 24 * (size_t)n * h->n_left) < 0 ||
        cky_room(&h->most, &h->room_most, 8 * (size_t)n) < 0 ||
        cky_room(&h->pair, &h->room_pair, sizeof(cky_block) * (size_t)(h->n_pairs * cky_width(h, 0))) < 0)
        return CKY_NO_MEMORY;
    h->hi = h->lo + n * h->m;
    for (int64_t k = 0; k < n; k++) h->most[k] = cky_rule_parts(h) > 0 ? -INFINITY : 0.0;
    if (g->n_keys > 0) {
        if (cky_room(&h->rule_part, &h->room_rule_part, 8 * (size_t)cky_rule_parts(h)) < 0 ||
            cky_room(&h->part, &h->room_part, 8 * (size_t)(CKY_SPLITS + 1) * n * g->n_categories) < 0 ||
            cky_room(&h->worth, &h->room_worth, g->n_vectors > 0 ? 8 * (size_t)(CKY_VECTORS * n * g->n_categories) : 0) < 0 ||
            cky_room(&h->part_class, &h->room_part_class, 8 * (size_t)n) < 0)
            return CKY_NO_MEMORY;
        if (g->n_vectors > 0) cky_multiply(h);
    }
    return CKY_OK;
}

/* Whether s (local) may be the root, and what that is worth by itself. */
static inline int cky_may_start(const cky_chart *h, int64_t s) {
    return h->g->start_feature[h->symbol[s]] >= -1 && cky_value(h, 0, s, h->n) > -INFINITY;
}
static inline double cky_start(const cky_chart *h, int64_t s) {
    return cky_weight(h->w, h->g->start_feature[h->symbol[s]]);
}

/* The score of split k under parent s (local), whatever the rule. */
static inline double cky_split(const cky_chart *h, int64_t s, int64_t k) {
    return h->g->n_splits + h->g->n_vectors == 0 || s >= h->n_nodes ? 0.0 : cky_part(h, CKY_SPLITS, k)[h->g->category[h->symbol[s]]];
}

/* Score of a rule of parent s over (i, .) for where the words after i stand; and at split k. */
static inline double cky_rest(const cky_chart *h, int64_t s, int64_t rule, int64_t i) {
    return s < h->n_nodes ? 0.0 : cky_rule_part(h, CKY_OF_RESTS, i, rule);
}
static double cky_rule_split(const cky_chart *h, int64_t s, int64_t rule, int64_t i, int64_t k) {
    return cky_split(h, s, k) + cky_rest(h, s, rule, i) + cky_rule_part(h, CKY_OF_SPLITS, k, rule);
}

/* ---- ways to begin ---------------------------------------------------------------------------
 *
 * The ways in which base symbol s (local) over (i, j) may begin with a binary rule whose two children have values:
 *
 *     cky_ways way;
 *     for (cky_begin(&way, h, s, i, j); cky_next(&way, h);) ... way.rule, way.split, way.x ...
 */
typedef struct {
    int64_t s, i, j, q, end, last;
    int64_t rule, B, C, split;      /* children are local symbols */
    double left, right, x;          /* x = w + final(B, i, k) + final(C, k, j) + what the split is worth */
    /* by split, a bound on x less final(B, i, k) and what does not depend on it, and what x has to be above; NULL: anything */
    const double *reach;
    double least, needed;           /* needed: least less what does not depend on the split */
} cky_ways;

/* Whether any of a block of splits reaches what is needed. */
static inline int cky_reaches(const double *left, const double *reach, double needed) {
    const cky_block least = {needed, needed, needed, needed};
    return cky_any((cky_bits)(*(const cky_block *)left + *(const cky_block *)reach > least));
}

static inline void cky_begin(cky_ways *way, const cky_chart *h, int64_t s, int64_t i, int64_t j) {
    *way = (cky_ways){.s = s, .i = i, .j = j, .q = h->way_ptr[s] - 1, .end = h->way_ptr[s + 1]};
}

static inline int cky_next(cky_ways *way, const cky_chart *h) {
    for (;;) {
        const double *left = h->value + cky_at(h, way->i, way->B, 0);
        while (++way->split < way->last) {
            if (way->reach != NULL && way->split % CKY_BLOCK == 0 && !cky_reaches(left + way->split, way->reach + way->split, way->needed)) {
                way->split += CKY_BLOCK - 1;
                continue;
            }
            way->left = left[way->split];
            if (way->left == -INFINITY) continue;
            if (way->reach != NULL && !(way->left + way->reach[way->split] > way->needed)) continue;
            way->right = cky_value(h, way->split, way->C, way->j);
            if (way->right == -INFINITY) continue;
            way->x = h->way[way->q].weight + way->left + way->right + cky_rule_split(h, way->s, way->rule, way->i, way->split);
            return 1;
        }
        if (++way->q >= way->end) return 0;
        const cky_way *rule = h->way + way->q;
        int64_t at = way->i * h->m + rule->left;
        int64_t end = (int64_t)CKY_BLOCK * (h->hi[at] + 1);
        way->rule = rule->rule;
        way->needed = way->least - rule->weight - cky_rest(h, way->s, way->rule, way->i);
        way->B = rule->left;
        way->C = rule->right;
        way->split = (int64_t)CKY_BLOCK * h->lo[at] - 1;     /* ends up to i have no value */
        way->last = end < way->j ? end : way->j;
    }
}

#endif
