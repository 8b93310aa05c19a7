/* The best score for every count: what exact inference under a loss that is no sum over nodes needs.
 *
 * F1 = 2 c / (g + p) depends on c, the nodes of a tree that the gold tree has too, and on p, all its nodes (n-ary rules
 * and unary chains leave p free, so the sentence does not settle it). The gold tree bounds c. The objective
 * f(c, p, S) = b(c, p) + scale(c, p) (S - S0) of a tree of score S never falls with S, never with p, never rises with
 * c. So of the derivations of an item only those are needed that no other one beats in all three: its *front*.
 *
 * Most items need none at all. With a threshold theta on the chart's own values (score + a c + mu p), below which no
 * derivation can be the answer, an outside pass finds the items and rules that can take part in one above it:
 *
 *     value of the best derivation with this part  =  what is inside of it + what is outside of it.
 *
 * The derivation that equals the gold tree's is not an answer; it is kept apart from the fronts until it has been
 * combined with something else.
 */
#ifndef STRUCTSVM_CKY_FRONTS_H
#define STRUCTSVM_CKY_FRONTS_H

#include "cky_trees.h"
#include "maxima.h"

typedef struct {
    double x;                   /* score + a c + mu p */
    int32_t c, p;
    int32_t chain, rule, split;
    int32_t left, right;        /* entries of the children */
    int32_t is_gold;
} cky_entry;

/* An item of the outside pass, base or final, and which of its ways can be part of a derivation above theta. */
typedef struct {
    int32_t i, j, s, is_base;
    int64_t first, end;
    double sum, chance;         /* see cky_expected.h */
} cky_visit;

typedef struct {
    int32_t way, split;
} cky_kept;

typedef struct {
    double theta;
    const cky_node *gold;       /* the gold derivation, and which of its nodes stands over a span (-1: none) */
    const int32_t *gold_node;
    /* outside values: final ones in the layout of the chart's values, base ones in that of its `base` */
    size_t room_out, room_base, room_head, room_link, room_front, room_top, room_reach;
    double *out, *out_base;
    double *top, *reach;        /* by span the best final value; by split of the item at work, see cky_ways */
    int32_t *head, *link;       /* by span, the symbols with an outside value: the first, and the one after each */
    int32_t *front;             /* final items: first entry and end, in the layout of the values, two each; until then */
    int32_t stamp;              /* where `end` is this, there is an outside value: it is negative, and of one sentence */
    /* the outside pass, for the fronts to go back over */
    size_t room_visit, room_kept;
    cky_visit *visit;
    cky_kept *kept;
    int64_t n_visits, n_kept;
    /* entries, and a scratch table of the best entry for each count */
    size_t room_pool, room_cells, room_touched;
    cky_entry *pool;
    int64_t size;
    int32_t *cells, *touched;
    double *tallest;            /* (n_p) scratch */
    size_t room_tallest;
    int64_t n_c, n_p, n_touched;
    int32_t gold_entry;
    int64_t work;
} cky_fronts;

static void cky_fronts_free(cky_fronts *f) {
    void *rooms[] = {f->out, f->out_base, f->top, f->reach, f->head, f->link, f->front, f->cells, f->touched, f->tallest};
    for (size_t k = 0; k < sizeof(rooms) / sizeof(*rooms); k++) cky_delete(rooms[k]);
    free(f->visit); free(f->kept); free(f->pool);
}

/* Bytes for each pair of counts (c, p): cells, touched, and the two numbers of an objective. */
enum { CKY_CELL_BYTES = 24 };

/* Bytes beside the chart, but for what grows. */
static double cky_fronts_bytes(const cky_chart *h, const cky_fronts *f) {
    double spans = 0.5 * (double)h->n * (double)(h->n + 1);
    return 20.0 * CKY_BLOCK * (double)h->row[h->n] + spans * (8.0 * (double)h->n_nodes + 12.0) + 8.0 * (double)h->n
         + (double)CKY_CELL_BYTES * (double)f->n_c * (double)f->n_p + 8.0 * (double)f->n_p;
}

/* Room for one more of what grows: *p holds `count` things of `size` bytes. */
static __attribute__((noinline)) int cky_grow(const cky_chart *h, const cky_fronts *f, void *p, size_t *room, int64_t count, size_t size) {
    void **at = p;
    if ((size_t)(count + 1) * size <= *room) return CKY_OK;
    size_t more = *room == 0 ? 4096 * size : 2 * *room;
    double grows = (double)(f->room_visit + f->room_kept + f->room_pool + more - *room);
    double bytes = cky_bytes(h) + cky_fronts_bytes(h, f) + grows;
    if (bytes > (double)h->max_bytes || count >= INT_MAX / 2) return CKY_CAP;
    void *grown = realloc(*at, more);
    if (grown == NULL) return CKY_NO_MEMORY;
    *at = grown;
    *room = more;
    return CKY_OK;
}

static __attribute__((noinline)) int cky_fronts_prepare(cky_fronts *f, const cky_chart *h, int64_t n_c, int64_t n_p) {
    size_t spans = (size_t)h->n * (h->n + 1) / 2;
    int64_t work = 0;
    f->n_c = n_c;
    f->n_p = n_p;
    f->size = f->n_touched = f->n_visits = f->n_kept = f->work = 0;
    f->gold_entry = -1;
    if (cky_bytes(h) + cky_fronts_bytes(h, f) > (double)h->max_bytes) return CKY_CAP;
    size_t values = CKY_BLOCK * (size_t)h->row[h->n];
    if (cky_room(&f->out, &f->room_out, 8 * values) < 0 ||
        cky_room(&f->link, &f->room_link, 4 * values) < 0 ||
        cky_room(&f->out_base, &f->room_base, 8 * spans * h->n_nodes) < 0 ||
        cky_room(&f->top, &f->room_top, 8 * spans) < 0 ||
        cky_room(&f->reach, &f->room_reach, 8 * ((size_t)h->n + CKY_BLOCK)) < 0 ||
        cky_room(&f->head, &f->room_head, 4 * spans) < 0 ||
        cky_room(&f->cells, &f->room_cells, 4 * (size_t)(n_c * n_p)) < 0 ||
        cky_room(&f->touched, &f->room_touched, 4 * (size_t)(n_c * n_p)) < 0 ||
        cky_room(&f->tallest, &f->room_tallest, 8 * (size_t)n_p) < 0)
        return CKY_NO_MEMORY;
    if (8 * values > f->room_front || f->stamp == INT32_MIN) {
        if (cky_room(&f->front, &f->room_front, 8 * values) < 0) return CKY_NO_MEMORY;
        memset(f->front, 0, f->room_front);
        f->stamp = 0;
    }
    f->stamp--;
    for (int64_t i = 0; i < h->n; i++) {
        const cky_block none = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
        cky_block *top = (cky_block *)f->reach;
        for (int64_t b = cky_first_block(i); b <= h->n / CKY_BLOCK; b++) top[b] = none;
        for (int64_t s = 0; s < h->m; s++) {
            const cky_block *value = (const cky_block *)(h->value + cky_at(h, i, s, 0));
            for (int64_t b = h->lo[i * h->m + s]; b <= h->hi[i * h->m + s]; b++) top[b] = maxima_of_4d(value[b], top[b]);
        }
        for (int64_t k = i + 1; k <= h->n; k++) f->top[cky_span(i, k)] = f->reach[k];
        if (stop_count(&work, CKY_BLOCK * (h->row[i + 1] - h->row[i])) < 0) return CKY_STOPPED;
    }
    for (size_t k = 0; k < spans; k++) f->head[k] = -1;
    for (int64_t k = 0; k < n_c * n_p; k++) f->cells[k] = -1;
    return CKY_OK;
}

/* ---- outside -------------------------------------------------------------------------------- */

/* Raise the outside value of final symbol s over (i, j), which has an inside value. */
static inline void cky_raise(const cky_chart *h, cky_fronts *f, int64_t i, int64_t s, int64_t j, double x) {
    int64_t at = cky_at(h, i, s, j);
    if (f->front[2 * at + 1] != f->stamp) {
        f->link[at] = f->head[cky_span(i, j)];
        f->head[cky_span(i, j)] = (int32_t)s;
        f->front[2 * at + 1] = f->stamp;
        f->out[at] = -INFINITY;
    }
    if (x > f->out[at]) f->out[at] = x;
}

/* Note an item, and go from it to the children of its ways: base symbol s over (i, j) with outside value o, its own
 * worth added. A final node (`is_chain`) has none. */
static int cky_visit_item(cky_chart *h, cky_fronts *f, int64_t s, int is_base, int is_chain, int64_t i, int64_t j, double o) {
    int64_t first = f->n_kept;
    cky_ways way;
    int status;
    if (!is_chain && j - i > 1) {
        cky_begin(&way, h, s, i, j);
        for (int64_t k = i + 1; k < j; k++) f->reach[k] = f->top[cky_span(k, j)] + cky_split(h, s, k) + h->most[k];
        way.reach = f->reach;
        way.least = f->theta - o;
        if (stop_count(&f->work, (j - i) * (h->way_ptr[s + 1] - h->way_ptr[s])) < 0) return CKY_STOPPED;
        while (cky_next(&way, h)) {
            double x = way.x + o;
            if (!(x > f->theta)) continue;
            cky_raise(h, f, i, way.B, way.split, x - way.left);
            cky_raise(h, f, way.split, way.C, j, x - way.right);
            if ((status = cky_grow(h, f, &f->kept, &f->room_kept, f->n_kept, sizeof(cky_kept))) < 0) return status;
            f->kept[f->n_kept++] = (cky_kept){(int32_t)way.q, (int32_t)way.split};
        }
    }
    if ((status = cky_grow(h, f, &f->visit, &f->room_visit, f->n_visits, sizeof(cky_visit))) < 0) return status;
    f->visit[f->n_visits++] = (cky_visit){(int32_t)i, (int32_t)j, (int32_t)s, is_base, first, f->n_kept, 0.0, 0.0};
    return CKY_OK;
}

/* The root's outside values: where the pass begins. */
static void cky_outside_root(cky_chart *h, cky_fronts *f) {
    for (int64_t s = 0; s < h->n_nodes; s++)
        if (cky_may_start(h, s)) cky_raise(h, f, 0, s, h->n, cky_start(h, s));
}

/* From what stands over (i, j) to what is below. Spans come after all those that they are part of; in the end the items
 * that take part in a derivation above theta have their outside values, all others -inf. */
static __attribute__((noinline)) int cky_outside(cky_chart *h, cky_fronts *f, int64_t i, int64_t j) {
    const double *base = cky_base(h, i, j), *e = cky_own(h, i, j);
    double *out_base = f->out_base + cky_span(i, j) * h->n_nodes;
    int64_t n_nodes = 0;
    int32_t s = f->head[cky_span(i, j)];
    int status;
    for (; s >= 0; s = f->link[cky_at(h, i, s, j)]) {
        double o = f->out[cky_at(h, i, s, j)];
        int is_chain = s < h->n_nodes;
        if ((status = cky_visit_item(h, f, s, 0, is_chain, i, j, o)) < 0) return status;
        if (!is_chain) continue;
        if (!n_nodes)
            for (; n_nodes < cky_n_nodes(h, i, j); n_nodes++) out_base[n_nodes] = -INFINITY;
        if (base[s] + o > f->theta && o > out_base[s]) out_base[s] = o;
        for (int64_t k = h->chain_first[s], end = cky_n_chains(h, i, j); k >= 0 && k < end; k = h->chain_next[k]) {
            int64_t bottom = h->chain_bottom[k];
            double x = o + cky_chain(h, i, j, k);
            if (base[bottom] + x > f->theta && x > out_base[bottom]) out_base[bottom] = x;
        }
    }
    if (!n_nodes) return CKY_OK;
    f->work += h->n_nodes + h->n_chains;
    for (int64_t s = 0; s < n_nodes; s++)
        if (out_base[s] > -INFINITY && (status = cky_visit_item(h, f, s, 1, 0, i, j, out_base[s] + e[s])) < 0)
            return status;
    return CKY_OK;
}

/* ---- fronts --------------------------------------------------------------------------------- */

static __attribute__((noinline)) int cky_push(cky_fronts *f, const cky_chart *h, const cky_entry *entry, int32_t *at) {
    int status = cky_grow(h, f, &f->pool, &f->room_pool, f->size, sizeof(cky_entry));
    if (status < 0) return status;
    *at = (int32_t)f->size;
    f->pool[f->size++] = *entry;
    return CKY_OK;
}

/* Offer an entry for the item at work: the best for each count stays. */
static int cky_offer(cky_fronts *f, const cky_chart *h, const cky_entry *entry) {
    if (entry->is_gold) return cky_push(f, h, entry, &f->gold_entry);
    int32_t *cell = f->cells + entry->c * f->n_p + entry->p;
    if (*cell >= 0) {
        if (entry->x > f->pool[*cell].x) f->pool[*cell] = *entry;
        return CKY_OK;
    }
    f->touched[f->n_touched++] = (int32_t)(cell - f->cells);
    return cky_push(f, h, entry, cell);
}

static int cky_by_number(const void *a, const void *b) { return *(const int32_t *)a - *(const int32_t *)b; }

/* End the item at work, whose entries begin at `first`: drop those that another one beats, and those under the
 * threshold with the item's outside value o. The gold derivation stays. Entries end up in first .. f->size - 1. */
static void cky_settle(cky_fronts *f, const cky_chart *h, int64_t first, double o) {
    int64_t size = first;
    cky_entry gold;
    int has_gold = f->gold_entry >= 0;
    if (has_gold) gold = f->pool[f->gold_entry];
    /* By c ascending, p descending within: tallest[p] is the best score so far with as many nodes or more. */
    qsort(f->touched, f->n_touched, sizeof(int32_t), cky_by_number);
    for (int64_t p = 0; p < f->n_p; p++) f->tallest[p] = -INFINITY;
    for (int64_t q = 0; q < f->n_touched;) {
        int64_t end = q, c = f->touched[q] / f->n_p;
        while (end < f->n_touched && f->touched[end] / f->n_p == c) end++;
        for (int64_t k = end - 1; k >= q; k--) {
            cky_entry *entry = f->pool + f->cells[f->touched[k]];
            double score = entry->x - h->a * entry->c - h->mu * entry->p;
            if (!(score > f->tallest[entry->p]) || !(entry->x + o > f->theta)) {
                entry->c = -1;
                continue;
            }
            for (int64_t p = entry->p; p >= 0 && f->tallest[p] < score; p--) f->tallest[p] = score;
        }
        q = end;
    }
    for (int64_t k = 0; k < f->n_touched; k++) f->cells[f->touched[k]] = -1;
    for (int64_t k = first; k < f->size; k++)
        if (!f->pool[k].is_gold && f->pool[k].c >= 0) f->pool[size++] = f->pool[k];
    if (has_gold) f->pool[size++] = gold;
    f->size = size;
    f->n_touched = 0;
    f->gold_entry = -1;
}

/* Entries of an item that begins with a rule, o its outside value. */
static int cky_front_rules(cky_chart *h, cky_fronts *f, const cky_visit *visit, double o) {
    const cky_grammar *g = h->g;
    int64_t i = visit->i, j = visit->j, s = visit->s, symbol = h->symbol[s], at = f->gold_node[cky_span(i, j)];
    const cky_node *gold = at < 0 || cky_bottom(g, f->gold + at) != symbol ? NULL : f->gold + at;
    int counted = s < h->n_nodes && g->counted[symbol], status;
    int32_t dc = counted && cky_is_gold(h, symbol, i, j), dp = counted;
    double e = s < h->n_nodes ? cky_own(h, i, j)[s] : 0.0;
    cky_entry x = {0.0, dc, dp, -1, -1, -1, -1, -1, 0};
    if (symbol >= g->n_nodes && symbol < g->n_nodes + g->n_terminals) {
        x.is_gold = gold != NULL;
        return cky_offer(f, h, &x);
    }
    if (j - i == 1) {
        int64_t t = h->words[i];
        for (int64_t k = g->lexical_ptr[t]; k < g->lexical_ptr[t + 1]; k++) {
            if (g->lexical_node[k] != symbol) continue;
            x.x = cky_weight(h->w, g->lexical_feature[k]) + e;
            x.rule = (int32_t)k;
            x.is_gold = gold != NULL && gold->rule == k;
            if ((status = cky_offer(f, h, &x)) < 0) return status;
        }
        return CKY_OK;
    }
    for (int64_t q = visit->first; q < visit->end; q++) {
        const cky_way *way = h->way + f->kept[q].way;
        int64_t split = f->kept[q].split;
        const int32_t *left = f->front + 2 * cky_at(h, i, way->left, split);
        const int32_t *right = f->front + 2 * cky_at(h, split, way->right, j);
        double own = way->weight + cky_rule_split(h, s, way->rule, i, split) + e;
        int may_be_gold = gold != NULL && gold->rule == way->rule && gold->split == split;
        x.rule = way->rule;
        x.split = (int32_t)split;
        for (x.left = left[0]; x.left < left[1]; x.left++) {
            if (stop_count(&f->work, 4 + 4 * (int64_t)(right[1] - right[0])) < 0) return CKY_STOPPED;
            for (x.right = right[0]; x.right < right[1]; x.right++) {
                const cky_entry *a = f->pool + x.left, *b = f->pool + x.right;
                x.x = a->x + b->x + own;
                x.c = a->c + b->c + dc;
                x.p = a->p + b->p + dp;
                x.is_gold = may_be_gold && a->is_gold && b->is_gold;
                if (!(x.x + o > f->theta) && !x.is_gold) continue;
                if ((status = cky_offer(f, h, &x)) < 0) return status;
            }
        }
    }
    return CKY_OK;
}

/* Take over entries first .. end - 1 of a base item with chain k (-1: none) on top. */
static int cky_front_chain(cky_chart *h, cky_fronts *f, int64_t k, int64_t i, int64_t j, int64_t first, int64_t end,
                           double o) {
    const cky_grammar *g = h->g;
    int64_t at = f->gold_node[cky_span(i, j)];
    double dx = k < 0 ? 0.0 : cky_chain(h, i, j, k);
    int32_t dc = 0, dp = 0, chain = k < 0 ? -1 : h->chain[k];
    int status;
    for (int32_t link = chain; link >= 0; link = g->chain_below[link]) {
        int64_t node = g->chain_top[link];
        dp += g->counted[node];
        dc += g->counted[node] && cky_is_gold(h, node, i, j);
    }
    for (int64_t q = first; q < end; q++) {
        cky_entry x = f->pool[q];
        x.x += dx;
        x.c += dc;
        x.p += dp;
        x.chain = chain;
        x.is_gold = x.is_gold && at >= 0 && f->gold[at].chain == chain;
        if (!(x.x + o > f->theta) && !x.is_gold) continue;
        if ((status = cky_offer(f, h, &x)) < 0) return status;
    }
    return CKY_OK;
}

/* The front of the q-th item of the outside pass: back over it from the end, children come before their parents. Fronts of
 * base nodes live while their span is at work. */
static int cky_front(cky_chart *h, cky_fronts *f, int32_t *base_front, int64_t q) {
    const cky_visit *visit = f->visit + q;
    int64_t i = visit->i, j = visit->j, s = visit->s, first = f->size;
    int64_t at = cky_at(h, i, s, j), status = CKY_OK;
    if (stop_count(&f->work, h->n_chains + f->n_p) < 0) return CKY_STOPPED;
    double o = visit->is_base ? f->out_base[cky_span(i, j) * h->n_nodes + s] : f->out[at];
    if (q + 1 == f->n_visits || visit[1].i != i || visit[1].j != j) {
        memset(base_front, 0, 2 * h->n_nodes * sizeof(int32_t));
    }
    if (visit->is_base || s >= h->n_nodes) {
        status = cky_front_rules(h, f, visit, o);
    } else {
        status = cky_front_chain(h, f, -1, i, j, base_front[2 * s], base_front[2 * s + 1], o);
        for (int64_t k = h->chain_first[s], end = cky_n_chains(h, i, j); k >= 0 && k < end && status == CKY_OK; k = h->chain_next[k]) {
            const int32_t *below = base_front + 2 * h->chain_bottom[k];
            status = cky_front_chain(h, f, k, i, j, below[0], below[1], o);
        }
    }
    if (status < 0) return (int)status;
    cky_settle(f, h, first, o);
    int32_t *front = visit->is_base ? base_front + 2 * s : f->front + 2 * at;
    front[0] = (int32_t)first;
    front[1] = (int32_t)f->size;
    return CKY_OK;
}

/* The derivation behind a final entry of root symbol s (local), as `cky_derive` writes it. */
static int64_t cky_unfold(const cky_chart *h, const cky_fronts *f, int64_t s, int32_t entry, cky_item *stack,
                          int32_t *entries, cky_node *d) {
    const cky_grammar *g = h->g;
    int64_t size = 0, top = 0;
    stack[0] = (cky_item){h->symbol[s], 0, (int32_t)h->n};
    entries[top++] = entry;
    while (top > 0) {
        cky_item item = stack[--top];
        const cky_entry *x = f->pool + entries[top];
        d[size++] = (cky_node){item.symbol, item.i, item.j, x->chain, x->rule, x->split};
        if (x->split < 0) continue;
        int64_t p = g->rule_pair[x->rule];
        stack[top] = (cky_item){g->pair_right[p], x->split, item.j};
        entries[top++] = x->right;
        stack[top] = (cky_item){g->pair_left[p], item.i, x->split};
        entries[top++] = x->left;
    }
    return size;
}

#endif
