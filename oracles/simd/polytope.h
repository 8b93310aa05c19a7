/* Labellings of graphs by cuts: two labels, moves between labellings of more, and the local marginal polytope. */
#ifndef STRUCTSVM_POLYTOPE_H
#define STRUCTSVM_POLYTOPE_H

#include "junction.h"
#include "maxflow.h"

enum { CUT_HALF = 2 };

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

/* Project a vector on the simplex (Michelot 1986). */
static void project(double *x, int64_t n) {
    double sum = 0.0, shift;
    int64_t active = n;
    for (int64_t k = 0; k < n; k++) sum += x[k];
    shift = (sum - 1.0) / n;
    for (;;) {
        int64_t left = 0;
        sum = 0.0;
        for (int64_t k = 0; k < n; k++)
            if (x[k] > shift) { sum += x[k]; left++; }
        if (left == 0 || left >= active) break;
        active = left;
        shift = (sum - 1.0) / left;
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
    double *rest;                       /* (4 K) */
    int32_t *degree;                    /* (n) */
} polytope;

static double polytope_bound(const graph_scores *g, polytope *q, const double *lambda) {
    const int64_t K = g->K;
    double total = 0.0;
    memcpy(q->sums, g->unary, g->n * K * sizeof(double));
    for (int64_t e = 0; e < g->n_edges; e++) {
        const double *la = lambda + 2 * K * e, *lb = la + K;
        double *ua = q->sums + g->edges[2 * e] * K, *ub = q->sums + g->edges[2 * e + 1] * K, top = -INFINITY;
        for (int64_t k = 0; k < K; k++) { ua[k] -= la[k]; ub[k] -= lb[k]; }
        for (int64_t k = 0; k < K; k++)
            for (int64_t l = 0; l < K; l++) {
                const double t = graph_pair(g, e, k, l) + la[k] + lb[l];
                if (t > top) top = t;
            }
        total += top;
    }
    for (int64_t v = 0; v < g->n; v++) {
        double top = q->sums[v * K];
        for (int64_t k = 1; k < K; k++) if (q->sums[v * K + k] > top) top = q->sums[v * K + k];
        total += top;
    }
    return total;
}

/* Rounds m to the pairs' polytopes of mu, and returns the value. */
static double polytope_value(const graph_scores *g, polytope *q, const double *mu, double *m) {
    const int64_t K = g->K;
    double total = 0.0;
    for (int64_t i = 0; i < g->n * K; i++) total += mu[i] > 0.0 ? mu[i] * g->unary[i] : 0.0;
    for (int64_t e = 0; e < g->n_edges; e++) {
        round_pair(m + e * K * K, mu + g->edges[2 * e] * K, mu + g->edges[2 * e + 1] * K, K, q->rest);
        for (int64_t k = 0; k < K; k++)
            for (int64_t l = 0; l < K; l++) total += m[(e * K + k) * K + l] * graph_pair(g, e, k, l);
    }
    return total;
}

/* Blocks of multipliers by which the bound falls: every edge takes from its nodes what they have, edge by edge, and gives
 * back half of the maximum to either (max-product linear programming; Globerson and Jaakkola 2007). */
static void polytope_descend(const graph_scores *g, polytope *q, double *lambda) {
    const int64_t K = g->K;
    double *ra = q->rest, *rb = q->rest + K, *ma = q->rest + 2 * K, *mb = q->rest + 3 * K;
    memcpy(q->sums, g->unary, g->n * K * sizeof(double));
    for (int64_t e = 0; e < g->n_edges; e++)
        for (int64_t k = 0; k < K; k++) {
            q->sums[g->edges[2 * e] * K + k] -= lambda[2 * K * e + k];
            q->sums[g->edges[2 * e + 1] * K + k] -= lambda[2 * K * e + K + k];
        }
    for (int64_t e = 0; e < g->n_edges; e++) {
        double *la = lambda + 2 * K * e, *lb = la + K;
        double *ua = q->sums + g->edges[2 * e] * K, *ub = q->sums + g->edges[2 * e + 1] * K;
        for (int64_t k = 0; k < K; k++) {
            ra[k] = ua[k] + la[k];
            rb[k] = ub[k] + lb[k];
            ma[k] = mb[k] = -INFINITY;
        }
        for (int64_t k = 0; k < K; k++)
            for (int64_t l = 0; l < K; l++) {
                const double t = graph_pair(g, e, k, l) + ra[k] + rb[l];
                if (t > ma[k]) ma[k] = t;
                if (t > mb[l]) mb[l] = t;
            }
        for (int64_t k = 0; k < K; k++) {
            ua[k] = 0.5 * ma[k];
            ub[k] = 0.5 * mb[k];
            la[k] = ra[k] - ua[k];
            lb[k] = rb[k] - ub[k];
        }
    }
}

/* Fills mu and m with a point of the polytope, `bound` with a bound of all its values and `value` with its own. Within
 * `tol` of the scale of the scores the two agree, unless `n_steps` were not enough. `labels` are a labelling, whose value
 * is the first to compare with. */
static int polytope_solve(const graph_scores *g, polytope *q, int32_t *labels, double tol, int64_t n_steps,
                          double *value, double *bound) {
    const int64_t n = g->n, E = g->n_edges, K = g->K, size = K * K;
    double largest = 0.0, lowest, best, scale = 1.0;
    memset(q->lambda, 0, 2 * E * K * sizeof(double));
    memset(q->degree, 0, n * sizeof(int32_t));
    for (int64_t e = 0; e < 2 * E; e++) q->degree[g->edges[e]]++;
    best = graph_value(g, labels);
    scale += fabs(best);
    lowest = polytope_bound(g, q, q->lambda);
    for (int64_t pass = 0; pass < 50 && lowest > best + tol * scale; pass++) {
        polytope_descend(g, q, q->lambda);
        const double now = polytope_bound(g, q, q->lambda);
        const int slow = lowest - now < 1e-3 * (lowest - best);
        if (now < lowest) lowest = now;
        if (g->poll(8 * (E * size + n * K)) < 0) return -1;
        /* Labels by what is left at the nodes. */
        for (int64_t v = 0; v < n; v++) {
            int32_t x = 0;
            for (int64_t k = 1; k < K; k++) if (q->sums[v * K + k] > q->sums[v * K + x]) x = (int32_t)k;
            q->degree[v] = x;
        }
        const double found = graph_value(g, q->degree);
        if (found > best) {
            best = found;
            memcpy(labels, q->degree, n * sizeof(int32_t));
        }
        if (slow) break;
    }
    memset(q->mu, 0, n * K * sizeof(double));
    memset(q->m, 0, E * size * sizeof(double));
    for (int64_t v = 0; v < n; v++) q->mu[v * K + labels[v]] = 1.0;
    for (int64_t e = 0; e < E; e++) q->m[e * size + labels[g->edges[2 * e]] * K + labels[g->edges[2 * e + 1]]] = 1.0;
    *value = best;
    *bound = lowest;
    if (lowest <= best + tol * scale) return 0;

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
        memcpy(q->sums, g->unary, n * K * sizeof(double));
        for (int64_t e = 0; e < E; e++)
            for (int64_t k = 0; k < K; k++) {
                q->sums[g->edges[2 * e] * K + k] -= q->lambda[2 * K * e + k];
                q->sums[g->edges[2 * e + 1] * K + k] -= q->lambda[2 * K * e + K + k];
            }
        for (int64_t v = 0; v < n; v++) {
            const double tau = weight / (q->degree[v] > 0 ? q->degree[v] : 1);
            double *x = mu + v * K, *s = q->sums + v * K;
            for (int64_t k = 0; k < K; k++) {
                const double old = x[k];
                x[k] += tau * s[k];
                s[k] = -old;
            }
            project(x, K);
            for (int64_t k = 0; k < K; k++) {
                s[k] += 2.0 * x[k];
                keep_mu[v * K + k] += x[k];
            }
        }
        for (int64_t e = 0; e < E; e++) {
            double *x = m + e * size, *la = q->lambda + 2 * K * e, *lb = la + K;
            const double *sa = q->sums + g->edges[2 * e] * K, *sb = q->sums + g->edges[2 * e + 1] * K;
            double *ra = q->rest, *rb = q->rest + K;
            const double tau = 0.5 * weight;
            for (int64_t k = 0; k < K; k++) ra[k] = rb[k] = 0.0;
            for (int64_t k = 0; k < K; k++)
                for (int64_t l = 0; l < K; l++) {
                    ra[k] -= x[k * K + l];
                    rb[l] -= x[k * K + l];
                    x[k * K + l] += tau * (graph_pair(g, e, k, l) + la[k] + lb[l]);
                }
            project(x, size);
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
    return 0;
}

#endif
