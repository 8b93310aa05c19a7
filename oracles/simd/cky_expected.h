/* The brackets with the most correct ones in expectation (Goodman 1996).
 *
 * Of all ways that the outside pass of cky_fronts.h leaves above theta, sums are taken under p(tree) ~ exp(score). In
 * units of the best derivation of an item, which the chart has,
 *
 *     sum(item)    =  sum over its ways of  share,     share  =  exp(best with this way - best) sum(left) sum(right)
 *     chance(way)  =  chance(item) share / sum(item)
 *
 * so that nothing overflows, and only what is left of the chart is looked at. A label over a span has the sum p of its
 * nodes' chances, and is worth p - cost; the brackets that do not cross and have the largest sum of positive worths
 * maximise F1, about, where cost is half of it. Rules are not looked at any more.
 */
#ifndef STRUCTSVM_CKY_EXPECTED_H
#define STRUCTSVM_CKY_EXPECTED_H

#include "cky_fronts.h"

/* A way of the item at work: its best score less the item's best, and the items below. */
static inline int cky_share(cky_fronts *f, const cky_chart *h, cky_visit *visit, double x, int64_t left, int64_t right, cky_entry way) {
    int32_t at;
    way.left = (int32_t)left;
    way.right = (int32_t)right;
    way.x = exp(x < 0.0 ? x : 0.0) * (left < 0 ? 1.0 : f->visit[left].sum) * (right < 0 ? 1.0 : f->visit[right].sum);
    visit->sum += way.x;
    return cky_push(f, h, &way, &at);
}

/* The ways of the q-th item, all those below it being done; of a final node, its base and its chains. */
static int cky_shares(cky_chart *h, cky_fronts *f, int64_t q) {
    const cky_grammar *g = h->g;
    cky_visit *visit = f->visit + q;
    int64_t i = visit->i, j = visit->j, s = visit->s, first = visit->first, end = visit->end, begin = f->size, status = CKY_OK;
    const double *base = cky_base(h, i, j), *own = cky_own(h, i, j);
    double best = visit->is_base ? base[s] : cky_value(h, i, s, j);
    cky_entry way = {0.0, 0, 0, -1, -1, -1, -1, -1, 0};
    if (stop_count(&f->work, h->n_chains) < 0) return CKY_STOPPED;
    if (visit->is_base && (q + 1 == f->n_visits || visit[1].i != i || visit[1].j != j)) {
        for (int64_t k = 0; k < h->n_nodes; k++) h->v[k] = -1.0;
    }
    if (visit->is_base) h->v[s] = (double)q;        /* the bases over a span, which come before its final nodes */
    else f->front[2 * cky_at(h, i, s, j)] = (int32_t)q;
    if (!visit->is_base && s < h->n_nodes) {
        if (h->v[s] >= 0.0) status = cky_share(f, h, visit, base[s] - best, (int64_t)h->v[s], -1, way);
        for (int64_t k = h->chain_first[s], end = cky_n_chains(h, i, j); k >= 0 && k < end && status == CKY_OK; k = h->chain_next[k]) {
            int64_t below = (int64_t)h->v[h->chain_bottom[k]];
            if (below < 0) continue;
            way.chain = h->chain[k];
            status = cky_share(f, h, visit, base[h->chain_bottom[k]] + cky_chain(h, i, j, k) - best, below, -1, way);
        }
    } else if (j - i == 1) {
        for (int64_t r = g->lexical_ptr[h->words[i]]; r < g->lexical_ptr[h->words[i] + 1]; r++)
            if (g->lexical_node[r] == h->symbol[s]) way.rule = (int32_t)r;
        status = cky_share(f, h, visit, 0.0, -1, -1, way);
    }
    for (int64_t e = first; e < end && status == CKY_OK; e++) {
        const cky_way *rule = h->way + f->kept[e].way;
        int64_t split = f->kept[e].split, left = cky_at(h, i, rule->left, split), right = cky_at(h, split, rule->right, j);
        double x = rule->weight + cky_rule_split(h, s, rule->rule, i, split) + h->value[left] + h->value[right] + (visit->is_base ? own[s] : 0.0);
        way.rule = rule->rule;
        way.split = (int32_t)split;
        status = cky_share(f, h, visit, x - best, f->front[2 * left], f->front[2 * right], way);
    }
    visit = f->visit + q;
    visit->first = begin;
    visit->end = f->size;
    return (int)status;
}

/* Where the probability of a category over the span of an item stands: beside the first node that has it. */
static SMALL double *cky_chance(const cky_chart *h, const cky_fronts *f, const cky_visit *v, int64_t node) {
    return f->out_base + cky_span(v->i, v->j) * h->n_nodes + (int64_t)h->sum[h->g->category[node]];
}

/* The chances of all labels, into f->out_base; `best` is the best score. Where that is infinite there are none. */
static SMALL int cky_chances(cky_chart *h, cky_fronts *f, double best) {
    double total = 0.0;
    int64_t roots = 0;
    for (int64_t q = f->n_visits - 1; q >= 0; q--) {
        int status = cky_shares(h, f, q);
        if (status < 0) return status;
    }
    for (int64_t s = h->n_nodes - 1; s >= 0; s--) h->sum[h->g->category[h->symbol[s]]] = (double)s;
    memset(f->out_base, 0, 8 * (size_t)(cky_span(0, h->n + 1) * h->n_nodes));
    for (; roots < f->n_visits && f->visit[roots].j == h->n && !f->visit[roots].is_base && f->visit[roots].s < h->n_nodes; roots++) {
        cky_visit *v = f->visit + roots;
        total += v->chance = v->sum * exp(h->value[cky_at(h, 0, v->s, h->n)] + cky_start(h, v->s) - best);
    }
    if (!(total > 0.0 && total < INFINITY)) f->n_visits = 0;
    for (int64_t q = 0; q < f->n_visits; q++) {
        cky_visit *v = f->visit + q;
        if (q < roots) v->chance /= total;
        if (v->is_base) *cky_chance(h, f, v, h->symbol[v->s]) += v->chance;
        for (int64_t e = v->first; e < v->end; e++) {
            const cky_entry *way = f->pool + e;
            double chance = v->chance * way->x / v->sum;
            for (int32_t link = way->chain; link >= 0; link = h->g->chain_below[link])
                *cky_chance(h, f, v, h->g->chain_top[link]) += chance;
            if (way->left >= 0) f->visit[way->left].chance += chance;
            if (way->right >= 0) f->visit[way->right].chance += chance;
        }
    }
    return CKY_OK;
}

/* Raise the likeliest root over cost. Of what may stand right above a word, the likeliest: over cost, if it is likelier
 * than nothing (a tag is); the chances of the others there are taken back. */
static SMALL void cky_decide(cky_chart *h, cky_fronts *f, double cost) {
    const double least = cost * (1.0 + 1e-9) + 1e-300;
    cky_visit *root = f->visit, *end = f->visit + f->n_visits;
    for (cky_visit *v = f->visit; v < end && !v->is_base && v->j - v->i == h->n; v++)
        if (v->s < h->n_nodes && v->chance > root->chance) root = v;
    for (cky_visit *v = f->visit; v < end; v++) {
        cky_visit *first = v, *above = NULL;
        double alone = 0.0;
        if (v->j - v->i > 1) continue;
        for (; v < end && v->i == first->i && v->j == first->j; v++) {
            if (v->is_base && (above == NULL || v->chance > above->chance)) above = v;
            if (v->s >= h->n_nodes) alone = v->chance;
        }
        for (cky_visit *u = first; u < v; u++)
            if (u->is_base && u != above) *cky_chance(h, f, u, h->symbol[u->s]) -= u->chance;
        if (above != NULL && above->chance > alone) {
            double *p = cky_chance(h, f, above, h->symbol[above->s]);
            if (*p < least) *p = least;
        }
        v--;
    }
    double *p = cky_chance(h, f, root, h->symbol[root->s]);
    if (*p < least) *p = least;
}

/* After the outside pass: push an entry of (category, begin, end) as (rule, split, left) for each bracket; returns where
 * they begin in the pool. */
static SMALL int64_t cky_brackets(cky_chart *h, cky_fronts *f, double best, double cost, cky_item *stack) {
    int64_t n = h->n, top = 0, begin;
    int status = cky_chances(h, f, best);
    double *worth = f->out;             /* by span; where it is split best is in f->head */
    if (status < 0 || f->n_visits == 0) return status < 0 ? status : f->size;
    cky_decide(h, f, cost);
    begin = f->size;
    for (int64_t j = 1; j <= n; j++)
        for (int64_t i = j - 1; i >= 0; i--) {
            const double *p = f->out_base + cky_span(i, j) * h->n_nodes;
            double own = 0.0, inner = j - i > 1 ? -INFINITY : 0.0;
            for (int64_t s = 0; s < h->n_nodes; s++) own += p[s] > cost ? p[s] - cost : 0.0;
            for (int64_t k = i + 1; k < j; k++) {
                double x = worth[cky_span(i, k)] + worth[cky_span(k, j)];
                if (x > inner) inner = x, f->head[cky_span(i, j)] = (int32_t)k;
            }
            worth[cky_span(i, j)] = own + inner;
            if (stop_count(&f->work, j - i + h->n_nodes) < 0) return CKY_STOPPED;
        }
    for (stack[top++] = (cky_item){0, 0, (int32_t)n}; top > 0;) {
        int32_t i = stack[--top].i, j = stack[top].j, k = f->head[cky_span(i, j)], at;
        const double *p = f->out_base + cky_span(i, j) * h->n_nodes;
        for (int64_t s = 0; s < h->n_nodes; s++) {
            if (!(p[s] > cost)) continue;
            cky_entry bracket = {p[s], 0, 0, -1, h->g->category[h->symbol[s]], i, j, -1, 0};
            if ((status = cky_push(f, h, &bracket, &at)) < 0) return status;
        }
        if (j - i == 1) continue;
        stack[top++] = (cky_item){0, k, j};
        stack[top++] = (cky_item){0, i, k};
    }
    return begin;
}

#endif
