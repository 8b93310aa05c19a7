/* Sums over alignments, and the way back along one of them; included by alignments.h once per semiring. */

static double NAMED(lead)(const alignment *s, int64_t way, int64_t i, int64_t j) {
    if (!alignment_way(s, way, i > 1 && j > 1)) return ZERO;
    return TIMES(s->lead_x[way * s->step_x + i - 1], s->lead_z[way * s->step_z + j - 1]);
}

/* Alignments whose last pair is that of cell (i, j), and which end in this way. */
static double NAMED(last)(const alignment *s, int64_t way, int64_t i, int64_t j) {
    if (!alignment_way(s, way, i < s->n && j < s->m)) return ZERO;
    return TIMES(s->P[i * (s->m + 1) + j], TIMES(s->trail_x[way * s->step_x + i], s->trail_z[way * s->step_z + j]));
}

/* The cells of row i; those of row and column 0 are ZERO. */
static void NAMED(row)(const alignment *s, int64_t i) {
    int64_t w = s->m + 1;
    double *P = s->P + i * w, *X = s->X + i * w, *Z = s->Z + i * w, *before = P - w, *before_x = X - w, *before_z = Z - w;
    P[0] = X[0] = Z[0] = ZERO;
    for (int64_t j = 1; j <= s->m; j++) {
        double lead = ZERO;
        for (int64_t way = 0; way < s->n_ways; way++) lead = PLUS(lead, NAMED(lead)(s, way, i, j));
        lead = PLUS(PLUS(lead, before[j - 1]), PLUS(before_x[j - 1], before_z[j - 1]));
        P[j] = TIMES(s->pairs[(i - 1) * s->m + j - 1], lead);
        X[j] = PLUS(TIMES(before[j], s->open_x[i - 1]), TIMES(before_x[j], s->extend_x[i - 1]));
        Z[j] = PLUS(TIMES(PLUS(P[j - 1], X[j - 1]), s->open_z[j - 1]), TIMES(Z[j - 1], s->extend_z[j - 1]));
    }
}

/* Row i, from row 0 on; returns the sum over the alignments whose last pair is in it or, by `total`, before it. */
static double NAMED(fill)(const alignment *s, int64_t i, double total) {
    if (i > 0) NAMED(row)(s, i);
    for (int64_t j = 0; j <= s->m && i == 0; j++) s->P[j] = s->X[j] = s->Z[j] = ZERO;
    for (int64_t way = 0; way < s->n_ways && i > 0; way++)
        for (int64_t j = 1; j <= s->m; j++) total = PLUS(total, NAMED(last)(s, way, i, j));
    return total;
}

/* Ways and cells of the last pair, then the alignment without pairs: `terms` has room for n_ways n m + 1. Diagonal by
 * diagonal, since of several best alignments that with the first of its last pairs in this order is chosen. */
static int64_t NAMED(end)(const alignment *s, double u, double *terms, int64_t *way, int64_t *i, int64_t *j) {
    int64_t n_terms = 0, chosen;
    for (*way = 0; *way < s->n_ways; ++*way)
        for (int64_t d = 2; d <= s->n + s->m; d++)
            for (*i = d > s->m ? d - s->m : 1; *i <= s->n && *i < d; ++*i)
                terms[n_terms++] = NAMED(last)(s, *way, *i, d - *i);
    terms[n_terms] = s->alone;
    chosen = NAMED(pick)(terms, n_terms + 1, u);
    if (chosen == n_terms) return 0;
    *way = chosen / (s->n * s->m);
    chosen -= *way * s->n * s->m;
    for (int64_t d = 2;; d++) {
        int64_t first = d > s->m ? d - s->m : 1, stop = s->n + 1 < d ? s->n + 1 : d;
        if (chosen < stop - first) {
            *i = first + chosen;
            *j = d - *i;
            return 1;
        }
        chosen -= stop - first;
    }
}

/* Write the partners of x's letters along one alignment, with `gap` and gap + 1 for those that have none: n numbers.
 * `u` has n + m + 1 uniform numbers. */
static void NAMED(trace)(const alignment *s, const double *u, double *terms, int32_t gap, int32_t *y) {
    int64_t way, i, j, w = s->m + 1, n_ways = s->n_ways, state = 0;
    if (!NAMED(end)(s, *u++, terms, &way, &i, &j)) {
        for (i = 0; i < s->n; i++) y[i] = gap + !s->pays[0][0];
        return;
    }
    for (int64_t k = i; k < s->n; k++) y[k] = gap + !s->pays[way][0];
    for (;;) {
        const double *P = s->P + i * w + j, *X = s->X + i * w + j, *Z = s->Z + i * w + j;
        if (state == 0) {
            for (way = 0; way < n_ways; way++) terms[way] = NAMED(lead)(s, way, i, j);
            terms[way] = P[-w - 1];
            terms[way + 1] = X[-w - 1];
            terms[way + 2] = Z[-w - 1];
            state = NAMED(pick)(terms, n_ways + 3, *u++) - n_ways;
            y[--i] = (int32_t)--j;
            if (state < 0) break;
        } else if (state == 1) {
            terms[0] = TIMES(P[-w], s->open_x[i - 1]);
            terms[1] = TIMES(X[-w], s->extend_x[i - 1]);
            state = NAMED(pick)(terms, 2, *u++);
            y[--i] = gap;
        } else {
            terms[0] = TIMES(P[-1], s->open_z[j - 1]);
            terms[1] = TIMES(X[-1], s->open_z[j - 1]);
            terms[2] = TIMES(Z[-1], s->extend_z[j - 1]);
            state = NAMED(pick)(terms, 3, *u++);
            j--;
        }
    }
    for (int64_t k = 0; k < i; k++) y[k] = gap + !s->pays[state + n_ways][0];
}
