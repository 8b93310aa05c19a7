/* Expected pairs and letters of alignments; included by alignments.h for both semirings of sums.
 *
 * A flow of 1 goes back from the sum over all alignments through the terms of each sum, by their shares of it.
 */

/* The flow out of a cell's pair. */
static void NAMED(flow_of_pair)(const alignment *s, alignment_flow *f, int64_t i, int64_t j) {
    int64_t w = s->m + 1, at = i * w + j, from = at - w - 1, n_ways = s->n_ways;
    double terms[6];
    if (!(f->P[at] > 0.0)) return;
    for (int64_t way = 0; way < n_ways; way++) terms[way] = NAMED(lead)(s, way, i, j);
    terms[n_ways] = s->P[from];
    terms[n_ways + 1] = s->X[from];
    terms[n_ways + 2] = s->Z[from];
    NAMED(shares)(terms, n_ways + 3, f->P[at]);
    for (int64_t way = 0; way < n_ways; way++) {
        f->lead_x[way * s->step_x + i - 1] += terms[way];
        f->lead_z[way * s->step_z + j - 1] += terms[way];
    }
    f->P[from] += terms[n_ways];
    f->X[from] += terms[n_ways + 1];
    f->Z[from] += terms[n_ways + 2];
}

/* The flow out of a cell's gaps. */
static void NAMED(flow_of_gaps)(const alignment *s, alignment_flow *f, int64_t i, int64_t j) {
    int64_t w = s->m + 1, at = i * w + j;
    double open_x = s->open_x[i - 1], open_z = s->open_z[j - 1];
    if (f->X[at] > 0.0) {
        double terms[2] = {TIMES(s->P[at - w], open_x), TIMES(s->X[at - w], s->extend_x[i - 1])};
        NAMED(shares)(terms, 2, f->X[at]);
        f->P[at - w] += terms[0];
        f->X[at - w] += terms[1];
        f->open_x[i - 1] += terms[0];
        f->extend_x[i - 1] += terms[1];
    }
    if (f->Z[at] > 0.0) {
        double terms[3] = {TIMES(s->P[at - 1], open_z), TIMES(s->X[at - 1], open_z),
                           TIMES(s->Z[at - 1], s->extend_z[j - 1])};
        NAMED(shares)(terms, 3, f->Z[at]);
        f->P[at - 1] += terms[0];
        f->X[at - 1] += terms[1];
        f->Z[at - 1] += terms[2];
        f->open_z[j - 1] += terms[0] + terms[1];
        f->extend_z[j - 1] += terms[2];
    }
}

/* The ends in row i, from row 0 on, before any flow. */
static void NAMED(ends)(const alignment *s, int64_t i, alignment_flow *f) {
    if (i == 0) {
        f->top = -INFINITY;
        f->sum = 0.0;
        NAMED(add_end)(f, s->alone);
        return;
    }
    for (int64_t way = 0; way < s->n_ways; way++)
        for (int64_t j = 1; j <= s->m; j++) NAMED(add_end)(f, NAMED(last)(s, way, i, j));
}

/* Row i, from the last one to 0, after `ends`; tables and arrays of `f` are 0 before. */
static void NAMED(flow)(const alignment *s, int64_t i, alignment_flow *f) {
    f->alone = NAMED(end_share)(f, s->alone);
    for (int64_t j = i > 0 ? s->m : 0; j > 0; j--) {
        for (int64_t way = 0; way < s->n_ways; way++) {
            double part = NAMED(end_share)(f, NAMED(last)(s, way, i, j));
            f->P[i * (s->m + 1) + j] += part;
            f->trail_x[way * s->step_x + i] += part;
            f->trail_z[way * s->step_z + j] += part;
        }
        NAMED(flow_of_gaps)(s, f, i, j);
        NAMED(flow_of_pair)(s, f, i, j);
    }
}
