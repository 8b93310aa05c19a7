/* Labellings of graphs by cuts: two labels, moves between labellings of more, and the local marginal polytope. */
#ifndef STRUCTSVM_POLYTOPE_H
#define STRUCTSVM_POLYTOPE_H

#include "junction.h"
#include "maxflow.h"

enum { CUT_HALF = 2, SWEEPS = 200, STEPS = 5000, FEW_STEPS = 200 };

/* Minimise sum_v cost_v x_v + sum_e couple_e |x_a - x_b| / 2 over x in {0, 1}: nodes on the sink's side are 1. With a
 * coupling < 0 over {0, 1/2, 1} (CUT_HALF), which is the linear relaxation (Boros and Hammer 2002, roof duality; Rother
 * and others 2007): each node v stands beside a node n + v that has the other label, and x_a != x_b is x_a = x_b'. What is
 * 0 or 1 there is so in a best labelling. Returns 1 if it is of the second kind. */
static int cut_solve(flow_graph *f, int64_t n, const int32_t *edges, int64_t n_edges, const double *cost,
                     const double *couple, uint8_t *x, int (*poll)(int64_t)) {
    int doubled = 0;
    for (int64_t e = 0; e < n_edges; e++) doubled |= couple[e] < 0.0;
    flow_clear(f, doubled ? 2 * n : n);
    for (int64_t v = 0; v < n; v++) {
        f->terminal[v] = cost[v];
        if (doubled) f->terminal[n + v] = -cost[v];
    }
    for (int64_t e = 0; e < n_edges; e++) {
        const int64_t a = edges[2 * e], b = edges[2 * e + 1];
        if (couple[e] > 0.0) {
            flow_join(f, a, b, 0.5 * couple[e]);
            if (doubled) flow_join(f, n + a, n + b, 0.5 * couple[e]);
        } else if (couple[e] < 0.0) {
            flow_join(f, a, n + b, -0.5 * couple[e]);
            flow_join(f, n + a, b, -0.5 * couple[e]);
        }
    }
    if (flow_push(f, poll) < 0) return -1;
    for (int64_t v = 0; v < n; v++) {
        const int at = f->tree[v];
        if (!doubled) x[v] = at == FLOW_SINK;
        else if (at == FLOW_SINK && f->tree[n + v] == FLOW_SOURCE) x[v] = 1;
        else if (at == FLOW_SOURCE && f->tree[n + v] == FLOW_SINK) x[v] = 0;
        else x[v] = CUT_HALF;
    }
    return doubled;
}

/* Decide, one by one, the nodes that are CUT_HALF, by their costs and the neighbours that are decided. The two residuals of
 * an arc and its reverse still add up to the coupling. */
static void cut_round(const flow_graph *f, int64_t n, const double *cost, uint8_t *x) {
    for (int64_t v = 0; v < n; v++) {
        double one = cost[v];
        if (x[v] != CUT_HALF) continue;
        for (int32_t a = f->first[v]; a >= 0; a = f->next[a]) {
            const int64_t u = f->head[a];
            const int other = x[u < n ? u : u - n];
            const double half = 0.5 * (f->residual[a] + f->residual[a ^ 1]);
            if (other != CUT_HALF) one += (other == 1) == (u < n) ? -half : half;
        }
        x[v] = one < 0.0;
    }
}

/* The costs of giving nodes (x = 1) the label alpha instead of y, or 0 without y: of an edge with t00, t01, t10, t11,
 *
 *     - score = const - (t10 - t00) x_a - (t11 - t10) x_b + s (1 - x_a) x_b,    s = t00 + t11 - t01 - t10,
 *
 * and (1 - x_a) x_b = |x_a - x_b| / 2 + (x_b - x_a) / 2. */
static void cut_potentials(const graph_scores *g, const int32_t *y, int32_t alpha, double *cost, double *couple) {
    const int64_t K = g->K;
    for (int64_t v = 0; v < g->n; v++)
        cost[v] = g->unary[v * K + (y ? y[v] : 0)] - g->unary[v * K + alpha];
    for (int64_t e = 0; e < g->n_edges; e++) {
        const int64_t a = g->edges[2 * e], b = g->edges[2 * e + 1];
        const int32_t ya = y ? y[a] : 0, yb = y ? y[b] : 0;
        const double t00 = graph_pair(g, e, ya, yb), t01 = graph_pair(g, e, ya, alpha);
        const double t10 = graph_pair(g, e, alpha, yb), t11 = graph_pair(g, e, alpha, alpha);
        const double s = t00 + t11 - t01 - t10;
        couple[e] = s;
        cost[a] -= t10 - t00 + 0.5 * s;
        cost[b] -= t11 - t10 - 0.5 * s;
    }
}

/* Moves that give some nodes the label alpha, for each alpha in turn, until none is better: from `labels` on. Where a
 * move is not submodular, nodes on which the relaxation is not decided keep their labels, which is never worse. Returns
 * negative when it was stopped. */
static int expansion_moves(const graph_scores *g, flow_graph *f, double *cost, double *couple, uint8_t *x,
                           int32_t *labels, int32_t *other, double *value) {
    int64_t since = 0;
    double sum = graph_value(g, labels);
    for (int64_t move = 0; since < g->K && move < 200 * g->K; move++) {
        const int32_t alpha = (int32_t)(move % g->K);
        cut_potentials(g, labels, alpha, cost, couple);
        if (cut_solve(f, g->n, g->edges, g->n_edges, cost, couple, x, g->poll) < 0) return -1;
        for (int64_t v = 0; v < g->n; v++)
            other[v] = x[v] == 1 ? alpha : labels[v];
        const double found = graph_value(g, other);
        since++;
        if (found > sum + 1e-12 * fabs(sum)) {
            sum = found;
            memcpy(labels, other, g->n * sizeof(int32_t));
            since = 1;
        }
    }
    *value = sum;
    return 0;
}

/* Project a vector on the simplex (Michelot 1986): among the entries that may stay above 0, those closer to the largest
 * than 1. `list` has room for n numbers. */
static void project(double *x, int64_t n, double *list) {
    double sum = 0.0, shift, top = x[0];
    int64_t active = 0;
    for (int64_t k = 1; k < n; k++) top = x[k] > top ? x[k] : top;
    for (int64_t k = 0; k < n; k++) if (x[k] > top - 1.0) { list[active++] = x[k]; sum += x[k]; }
    for (;;) {
        int64_t left = 0;
        shift = (sum - 1.0) / active;
        sum = 0.0;
        for (int64_t k = 0; k < active; k++) if (list[k] > shift) { sum += list[k]; list[left++] = list[k]; }
        if (left == 0 || left == active) break;
        active = left;
    }
    for (int64_t k = 0; k < n; k++) x[k] = x[k] > shift ? x[k] - shift : 0.0;
}

/* Marginals of a pair with the row sums a and the column sums b, close to m >= 0 (Altschuler and others 2017): rows, then
 * columns are scaled down, and what is missing is added as a product. */
static void round_pair(double *m, const double *a, const double *b, int64_t K, double *rest) {
    double missing = 0.0;
    for (int64_t k = 0; k < K; k++) {
        double sum = 0.0;
        for (int64_t l = 0; l < K; l++) sum += m[k * K + l];
        if (sum > a[k]) for (int64_t l = 0; l < K; l++) m[k * K + l] *= a[k] / sum;
    }
    for (int64_t l = 0; l < K; l++) {
        double sum = 0.0;
        for (int64_t k = 0; k < K; k++) sum += m[k * K + l];
        if (sum > b[l]) {
            for (int64_t k = 0; k < K; k++) m[k * K + l] *= b[l] / sum;
            sum = b[l];
        }
        rest[K + l] = b[l] - sum;
    }
    for (int64_t k = 0; k < K; k++) {
        double sum = 0.0;
        for (int64_t l = 0; l < K; l++) sum += m[k * K + l];
        rest[k] = a[k] > sum ? a[k] - sum : 0.0;
        missing += rest[k];
    }
    if (missing > 0.0)
        for (int64_t k = 0; k < K; k++)
            for (int64_t l = 0; l < K; l++) m[k * K + l] += rest[k] * rest[K + l] / missing;
}

/* The linear programme over the local polytope of K labels,
 *
 *     max <unary, mu> + <theta, m>,  mu_v and m_e in simplices,  sum_l m_e(k, l) = mu_a(k),  sum_k m_e(k, l) = mu_b(l),
 *
 * by primal-dual steps (Chambolle and Pock 2011) with restarts at the average. Any multipliers lambda of the equations
 * bound its value by
 *
 *     sum_v max_k [unary_v - sum_{e at v} lambda_e](k) + sum_e max_{k, l} [theta_e(k, l) + lambda_ea(k) + lambda_eb(l)].
 */
typedef struct {
    double *mu, *mu_old, *mu_sum;       /* (n, K) */
    double *m, *m_old, *m_sum;          /* (n_edges, K, K) */
    double *lambda, *lambda_sum;        /* (n_edges, 2, K) */
    double *sums;                       /* (n, K) */
    double *rest;                       /* (4 K + K^2) */
    double *tables;                     /* (n_edges, 2, K, K) scores of pairs, and transposed; or of one edge for all */
    int64_t table_step;                 /* between the tables of two edges, or 0 */
    int32_t *degree;                    /* (n) */
    int32_t *first, *incident;          /* (n + 1), (2 n_edges): the ends of edges, 2 e or 2 e + 1, at each node */
} polytope;

/* Tables, and the ends of edges by node. */
static void polytope_start(const graph_scores *g, polytope *q) {
    const int64_t K = g->K, n_tables = g->step ? g->n_edges : 1;
    q->table_step = g->step ? 2 * K * K : 0;
    for (int64_t e = 0; e < n_tables; e++) {
        double *t = q->tables + e * q->table_step;
        for (int64_t k = 0; k < K; k++)
            for (int64_t l = 0; l < K; l++) t[k * K + l] = t[K * K + l * K + k] = graph_pair(g, e, k, l);
    }
    memset(q->first, 0, (g->n + 1) * sizeof(int32_t));
    for (int64_t i = 0; i < 2 * g->n_edges; i++) q->first[g->edges[i]]++;
    for (int64_t v = 0; v < g->n; v++) q->first[v + 1] += q->first[v];
    for (int64_t i = 2 * g->n_edges - 1; i >= 0; i--) q->incident[--q->first[g->edges[i]]] = (int32_t)i;
}

/* Best score of each label at one end of an edge with those at the other, whose multipliers are lambda. */
static void polytope_message(const double *table, const double *lambda, int64_t K, double *message) {
    for (int64_t l = 0; l < K; l++) message[l] = table[l] + lambda[0];
    for (int64_t k = 1; k < K; k++) {
        const double *t = table + k * K, own = lambda[k];
        for (int64_t l = 0; l < K; l++) {
            const double s = t[l] + own;
            message[l] = s > message[l] ? s : message[l];
        }
    }
}

/* unary - sum lambda. */
static void polytope_sums(const graph_scores *g, polytope *q, const double *lambda) {
    const int64_t K = g->K;
    memcpy(q->sums, g->unary, g->n * K * sizeof(double));
    for (int64_t i = 0; i < 2 * g->n_edges; i++)
        for (int64_t k = 0; k < K; k++) q->sums[g->edges[i] * K + k] -= lambda[i * K + k];
}

static double polytope_tops(const double *sums, int64_t n, int64_t K) {
    double total = 0.0;
    for (int64_t v = 0; v < n; v++) {
        double top = sums[v * K];
        for (int64_t k = 1; k < K; k++) if (sums[v * K + k] > top) top = sums[v * K + k];
        total += top;
    }
    return total;
}

static double polytope_bound(const graph_scores *g, polytope *q, const double *lambda) {
    const int64_t K = g->K;
    double total = 0.0;
    for (int64_t e = 0; e < g->n_edges; e++) {
        double top = -INFINITY;
        polytope_message(q->tables + e * q->table_step, lambda + 2 * K * e, K, q->rest);
        for (int64_t l = 0; l < K; l++) {
            const double t = q->rest[l] + lambda[2 * K * e + K + l];
            if (t > top) top = t;
        }
        total += top;
    }
    polytope_sums(g, q, lambda);
    return total + polytope_tops(q->sums, g->n, K);
}

/* Rounds m to the pairs' polytopes of mu, and returns the value. */
static double polytope_value(const graph_scores *g, polytope *q, const double *mu, double *m) {
    const int64_t K = g->K;
    double total = 0.0;
    for (int64_t i = 0; i < g->n * K; i++) total += mu[i] > 0.0 ? mu[i] * g->unary[i] : 0.0;
    for (int64_t e = 0; e < g->n_edges; e++) {
        round_pair(m + e * K * K, mu + g->edges[2 * e] * K, mu + g->edges[2 * e + 1] * K, K, q->rest);
        for (int64_t i = 0; i < K * K; i++) total += m[e * K * K + i] * q->tables[e * q->table_step + i];
    }
    return total;
}

/* Sequential messages, by which the bound falls (TRW-S; Kolmogorov 2006, 2015): node by node in the order of their numbers,
 * or backwards, each takes what its edges from nodes before it have, and shares what it has with those that come. Where
 * all nodes have been seen, edges have a maximum of 0, and the bound is what is left at nodes: returned. `labels` are the
 * best ones at each node beside those of the nodes before it. */
static double polytope_sweep(const graph_scores *g, polytope *q, double *lambda, int backwards, int32_t *labels) {
    const int64_t K = g->K, n = g->n;
    double *message = q->rest, *score = q->rest + K, total = 0.0;
    for (int64_t at = 0; at < n; at++) {
        const int64_t v = backwards ? n - 1 - at : at;
        double *own = q->sums + v * K, top;
        int64_t before = 0, after = 0;
        for (int64_t k = 0; k < K; k++) score[k] = 0.0;
        for (int32_t i = q->first[v]; i < q->first[v + 1]; i++) {
            const int64_t end = q->incident[i], u = g->edges[end ^ 1];
            double *here = lambda + end * K;
            const double *table = q->tables + (end >> 1) * q->table_step + (end & 1 ? 0 : K * K);
            if ((u < v) == backwards) { after++; continue; }
            before++;
            polytope_message(table, lambda + (end ^ 1) * K, K, message);
            table += labels[u] * K;
            for (int64_t k = 0; k < K; k++) {
                own[k] += here[k] + message[k];
                here[k] = -message[k];
                score[k] += table[k] - message[k];
            }
        }
        labels[v] = 0;
        top = own[0];
        for (int64_t k = 1; k < K; k++) {
            if (own[k] + score[k] > own[labels[v]] + score[labels[v]]) labels[v] = (int32_t)k;
            if (own[k] > top) top = own[k];
        }
        const double share = after ? 1.0 / (after > before ? after : before) : 0.0;
        total += top * (1.0 - after * share);
        if (!after) continue;
        for (int32_t i = q->first[v]; i < q->first[v + 1]; i++) {
            const int64_t end = q->incident[i];
            if ((g->edges[end ^ 1] < v) != backwards) continue;
            for (int64_t k = 0; k < K; k++) lambda[end * K + k] += share * own[k];
        }
        for (int64_t k = 0; k < K; k++) own[k] -= after * share * own[k];
    }
    return total;
}

/* The primal-dual steps that a graph gets: 0 where sweeps have to do, since so many would take too long. */
static int64_t polytope_steps(int64_t n, int64_t n_edges, int64_t K) {
    const int64_t steps = 1000000 / (n * K + n_edges * K * K + 1);
    return steps < FEW_STEPS ? 0 : steps < STEPS ? steps : STEPS;
}

/* Finds `labels`, or fills mu and m with a point of the polytope that is better and returns 1; `value` is what was found
 * has, `bound` what no point exceeds. The two are within `tol` of the scale of the scores unless sweeps and steps were not
 * enough. `labels` are at first a labelling to compare with. */
static int polytope_solve(const graph_scores *g, polytope *q, int32_t *labels, double tol, double *value, double *bound) {
    const int64_t n = g->n, E = g->n_edges, K = g->K, size = K * K, n_steps = polytope_steps(n, E, K);
    double largest = 0.0, lowest, best, scale = 1.0;
    polytope_start(g, q);
    memset(q->lambda, 0, 2 * E * K * sizeof(double));
    memcpy(q->sums, g->unary, n * K * sizeof(double));
    best = graph_value(g, labels);
    scale += fabs(best);
    lowest = INFINITY;
    for (int64_t sweep = 0, slow = 0; sweep < SWEEPS && slow < 6 && lowest > best + tol * scale; sweep++) {
        const double now = polytope_sweep(g, q, q->lambda, sweep & 1, q->degree);
        slow = lowest - now < 0.01 * (lowest - best) ? slow + 1 : 0;
        if (now < lowest) lowest = now;
        const double found = graph_value(g, q->degree);
        if (found > best) {
            best = found;
            memcpy(labels, q->degree, n * sizeof(int32_t));
        }
        if (g->poll(4 * (E * size + n * K)) < 0) return -1;
    }
    *value = best;
    *bound = lowest;
    if (!n_steps || lowest <= best + tol * scale) return 0;
    memset(q->mu, 0, n * K * sizeof(double));
    memset(q->m, 0, E * size * sizeof(double));
    for (int64_t v = 0; v < n; v++) q->mu[v * K + labels[v]] = 1.0;
    for (int64_t e = 0; e < E; e++) q->m[e * size + labels[g->edges[2 * e]] * K + labels[g->edges[2 * e + 1]]] = 1.0;

    /* Diagonal steps (Pock and Chambolle 2011): a multiplier's equation has the coefficients 1 of K pairs and -1 of a
     * label, a label those of its degree, a pair two. `weight` trades primal steps for dual ones: of 1 to 100 times the
     * inverse of the largest score, 10 to 30 take the fewest steps on grids. */
    memset(q->degree, 0, n * sizeof(int32_t));
    for (int64_t e = 0; e < 2 * E; e++) q->degree[g->edges[e]]++;
    for (int64_t i = 0; i < n * K; i++) if (fabs(g->unary[i]) > largest) largest = fabs(g->unary[i]);
    for (int64_t e = 0; e < E; e++)
        for (int64_t i = 0; i < g->n_pairs; i++)
            if (fabs(g->theta[e * g->step + i]) > largest) largest = fabs(g->theta[e * g->step + i]);
    if (!(largest > 0.0)) largest = 1.0;
    const double weight = 15.0 / largest, sigma = 1.0 / (K + 1.0) / weight;
    double *keep_mu = q->mu_sum, *keep_m = q->m_sum;
    memcpy(q->mu_old, q->mu, n * K * sizeof(double));
    memcpy(q->m_old, q->m, E * size * sizeof(double));
    memset(keep_mu, 0, n * K * sizeof(double));
    memset(keep_m, 0, E * size * sizeof(double));
    memset(q->lambda_sum, 0, 2 * E * K * sizeof(double));
    double *mu = q->mu_old, *m = q->m_old;
    int64_t since = 0, length = 20;
    for (int64_t step = 0; step < n_steps; step++) {
        /* Primal: mu += tau (unary - sum lambda), m += tau (theta + lambda_a + lambda_b); the extrapolated point
         * 2 new - old enters the equations. */
        polytope_sums(g, q, q->lambda);
        for (int64_t v = 0; v < n; v++) {
            const double tau = weight / (q->degree[v] > 0 ? q->degree[v] : 1);
            double *x = mu + v * K, *s = q->sums + v * K;
            for (int64_t k = 0; k < K; k++) {
                const double old = x[k];
                x[k] += tau * s[k];
                s[k] = -old;
            }
            project(x, K, q->rest + 4 * K);
            for (int64_t k = 0; k < K; k++) {
                s[k] += 2.0 * x[k];
                keep_mu[v * K + k] += x[k];
            }
        }
        for (int64_t e = 0; e < E; e++) {
            double *x = m + e * size, *la = q->lambda + 2 * K * e, *lb = la + K;
            const double *sa = q->sums + g->edges[2 * e] * K, *sb = q->sums + g->edges[2 * e + 1] * K;
            double *ra = q->rest, *rb = q->rest + K;
            const double tau = 0.5 * weight, *t = q->tables + e * q->table_step;
            for (int64_t k = 0; k < K; k++) ra[k] = rb[k] = 0.0;
            for (int64_t k = 0; k < K; k++)
                for (int64_t l = 0; l < K; l++) {
                    ra[k] -= x[k * K + l];
                    rb[l] -= x[k * K + l];
                    x[k * K + l] += tau * (t[k * K + l] + la[k] + lb[l]);
                }
            project(x, size, q->rest + 4 * K);
            for (int64_t k = 0; k < K; k++)
                for (int64_t l = 0; l < K; l++) {
                    ra[k] += 2.0 * x[k * K + l];
                    rb[l] += 2.0 * x[k * K + l];
                    keep_m[e * size + k * K + l] += x[k * K + l];
                }
            for (int64_t k = 0; k < K; k++) {
                la[k] -= sigma * (ra[k] - sa[k]);
                lb[k] -= sigma * (rb[k] - sb[k]);
                q->lambda_sum[2 * K * e + k] += la[k];
                q->lambda_sum[2 * K * e + K + k] += lb[k];
            }
        }
        since++;
        if (g->poll(12 * (E * size + n * K)) < 0) return -1;
        if (since < length && step + 1 < n_steps) continue;
        /* The average: judged, and where to go on. */
        for (int64_t i = 0; i < n * K; i++) mu[i] = keep_mu[i] / since;
        for (int64_t i = 0; i < E * size; i++) m[i] = keep_m[i] / since;
        for (int64_t i = 0; i < 2 * E * K; i++) q->lambda[i] = q->lambda_sum[i] / since;
        const double now = polytope_bound(g, q, q->lambda);
        if (now < lowest) lowest = now;
        for (int64_t v = 0; v < n; v++) {   /* rounding: sums of averages are 1 but for it */
            double sum = 0.0;
            for (int64_t k = 0; k < K; k++) sum += mu[v * K + k];
            for (int64_t k = 0; k < K; k++) mu[v * K + k] /= sum;
        }
        memcpy(keep_m, m, E * size * sizeof(double));
        const double found = polytope_value(g, q, mu, keep_m);
        if (found > *value) {
            *value = found;
            memcpy(q->mu, mu, n * K * sizeof(double));
            memcpy(q->m, keep_m, E * size * sizeof(double));
        }
        *bound = lowest;
        if (lowest <= *value + tol * scale) break;
        memset(keep_mu, 0, n * K * sizeof(double));
        memset(keep_m, 0, E * size * sizeof(double));
        memset(q->lambda_sum, 0, 2 * E * K * sizeof(double));
        since = 0;
        length += length / 4;
    }
    return *value > best;
}

#endif
