/* Expected pairs and letters of alignments; included by alignments.h for both semirings of sums.
 *
 * A flow of 1 goes back from the sum over all alignments through the terms of each sum, by their shares of it.
 */

/* The flow out of a cell's pair. */
static void NAMED(flow_of_pair)(const alignment *s, alignment_flow *f, int64_t i, int64_t j) {
    int64_t w = s->m + 1, at = i * w + j, from = at - w - 1;
    if (!(f->P[at] > 0.0)) return;
    double per = TIMES(PER(f->P[at], s->P[at]), s->pairs[(i - 1) * s->m + j - 1]);
    for (int64_t way = 0; way < s->n_ways; way++) {
        double part = SHARE(per, NAMED(lead)(s, way, i, j));
        f->lead_x[way * s->step_x + i - 1] += part;
        f->lead_z[way * s->step_z + j - 1] += part;
    }
    f->P[from] += SHARE(per, s->P[from]);
    f->X[from] += SHARE(per, s->X[from]);
    f->Z[from] += SHARE(per, s->Z[from]);
}

/* The flow out of a cell's gaps. */
static void NAMED(flow_of_gaps)(const alignment *s, alignment_flow *f, int64_t i, int64_t j) {
    int64_t w = s->m + 1, at = i * w + j;
    if (f->X[at] > 0.0) {
        double per = PER(f->X[at], s->X[at]), opens = SHARE(per, TIMES(s->P[at - w], s->open_x[i - 1]));
        double extends = SHARE(per, TIMES(s->X[at - w], s->extend_x[i - 1]));
        f->P[at - w] += opens;
        f->X[at - w] += extends;
        f->open_x[i - 1] += opens;
        f->extend_x[i - 1] += extends;
    }
    if (f->Z[at] > 0.0) {
        double per = PER(f->Z[at], s->Z[at]), of_pair = SHARE(per, TIMES(s->P[at - 1], s->open_z[j - 1]));
        double of_x = SHARE(per, TIMES(s->X[at - 1], s->open_z[j - 1]));
        double extends = SHARE(per, TIMES(s->Z[at - 1], s->extend_z[j - 1]));
        f->P[at - 1] += of_pair;
        f->X[at - 1] += of_x;
        f->Z[at - 1] += extends;
        f->open_z[j - 1] += of_pair + of_x;
        f->extend_z[j - 1] += extends;
    }
}

/* Row i, from the last one to 0; tables and arrays of `f` are 0 before. */
static void NAMED(flow)(const alignment *s, int64_t i, double total, alignment_flow *f) {
    double per = PER(1.0, total);
    f->alone = SHARE(per, s->alone);
    for (int64_t j = i > 0 ? s->m : 0; j > 0; j--) {
        for (int64_t way = 0; way < s->n_ways; way++) {
            double part = SHARE(per, NAMED(last)(s, way, i, j));
            f->P[i * (s->m + 1) + j] += part;
            f->trail_x[way * s->step_x + i] += part;
            f->trail_z[way * s->step_z + j] += part;
        }
        NAMED(flow_of_gaps)(s, f, i, j);
        NAMED(flow_of_pair)(s, f, i, j);
    }
}
