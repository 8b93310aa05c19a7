/* Alignments of two strings of n and m letters (see structsvm/layers/alignment.py), by the states that lead to a cell:
 *     P(i, j) = pairs(i, j) * (lead(i, j) + P + X + Z at (i - 1, j - 1)),
 *     X(i, j) = P(i - 1, j) * open_x(i) + X(i - 1, j) * extend_x(i),
 *     Z(i, j) = (P + X at (i, j - 1)) * open_z(j) + Z(i, j - 1) * extend_z(j),
 * lead and trail being those of the letters before the first pair and behind the last one, in up to three ways. The loops
 * of alignments_of.h are included once per semiring. Sums are of exponentials as they are, where no sum can leave the
 * range of double (ALIGNMENT_RANGE bounds the logs of all of them), else of logs.
 */
#ifndef STRUCTSVM_ALIGNMENTS_H
#define STRUCTSVM_ALIGNMENTS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "drawn.h"
#include "exponentials.h"

#define ALIGNMENT_RANGE 690.0

/* Weights of letters and pairs; a way's lead and trail stand `step_x` and `step_z` apart. `pays` tells whether letters of
 * x, and of z, beyond the outer pairs are in a gap in this way. With several ways, one in which any of them pay holds for
 * inner cells alone, and the other one for those at a border. Tables of (n + 1) (m + 1) numbers. */
typedef struct {
    int64_t n, m, n_ways, step_x, step_z;
    int pays[3][2];
    const double *pairs, *open_x, *extend_x, *open_z, *extend_z, *lead_x, *lead_z, *trail_x, *trail_z;
    double alone;
    double *P, *X, *Z;
} alignment;

/* Flows of 1 over all alignments: of cells, in tables like theirs, and of letters, in arrays like their weights. */
typedef struct {
    double *P, *X, *Z, *open_x, *extend_x, *open_z, *extend_z, *lead_x, *lead_z, *trail_x, *trail_z, alone;
    double top, sum; /* all ends: the greatest, and the sum by it; both are made by `ends` */
} alignment_flow;

static inline int alignment_way(const alignment *s, int64_t way, int is_inner) {
    return s->n_ways == 1 || is_inner == (s->pays[way][0] || s->pays[way][1]);
}

static inline double alignment_log_sum(double a, double b) {
    double top = a > b ? a : b, low = a > b ? b : a;
    return low == -INFINITY ? top : top + log1p(exp(low - top));
}

static int64_t alignment_pick_sum(double *terms, int64_t n, double u) { return drawn_place(terms, n, u); }

static int64_t alignment_pick_log(double *terms, int64_t n, double u) {
    double top = -INFINITY;
    for (int64_t k = 0; k < n; k++) top = terms[k] > top ? terms[k] : top;
    for (int64_t k = 0; k < n; k++) terms[k] = exp(terms[k] - top);
    return drawn_place(terms, n, u);
}

static int64_t alignment_pick_max(double *terms, int64_t n, double u) {
    int64_t best = 0;
    (void)u;
    for (int64_t k = 1; k < n; k++) best = terms[k] > terms[best] ? k : best;
    return best;
}

/* Terms of a sum become their shares of a flow. Those of logs are taken from the terms alone: their sum is rounded, by
 * much more than 1 where scores are large, so that exp(term - sum) is no share. */
static void alignment_shares_sum(double *terms, int64_t n, double flow) {
    double sum = 0.0;
    for (int64_t k = 0; k < n; k++) sum += terms[k];
    for (int64_t k = 0; k < n; k++) terms[k] = sum > 0.0 ? flow * (terms[k] / sum) : 0.0;
}

static void alignment_shares_log(double *terms, int64_t n, double flow) {
    double top = -INFINITY;
    for (int64_t k = 0; k < n; k++) top = terms[k] > top ? terms[k] : top;
    for (int64_t k = 0; k < n; k++) terms[k] = terms[k] == -INFINITY ? 0.0 : exp(terms[k] - top);
    alignment_shares_sum(terms, n, flow);
}

static void alignment_add_end_sum(alignment_flow *f, double term) { f->sum += term; }

static void alignment_add_end_log(alignment_flow *f, double term) {
    if (term > f->top) {
        f->sum = f->sum * exp(f->top - term) + 1.0;
        f->top = term;
    } else if (term > -INFINITY) {
        f->sum += exp(term - f->top);
    }
}

static double alignment_end_share_sum(const alignment_flow *f, double term) { return term / f->sum; }
static double alignment_end_share_log(const alignment_flow *f, double term) { return exp(term - f->top) / f->sum; }

#define NAMED(name) alignment_##name##_sum
#define ZERO 0.0
#define PLUS(a, b) ((a) + (b))
#define TIMES(a, b) ((a) * (b))
#include "alignments_of.h"
#include "alignments_flow.h"
#undef NAMED
#undef ZERO
#undef PLUS
#undef TIMES

#define NAMED(name) alignment_##name##_log
#define ZERO (-INFINITY)
#define PLUS(a, b) alignment_log_sum(a, b)
#define TIMES(a, b) ((a) + (b))
#include "alignments_of.h"
#include "alignments_flow.h"
#undef NAMED
#undef PLUS

#define NAMED(name) alignment_##name##_max
#define PLUS(a, b) fmax(a, b)
#include "alignments_of.h"
#undef NAMED
#undef ZERO
#undef PLUS
#undef TIMES

#endif
