/* The loops of potentials.h for numbers of type REAL, included once per type. */

/* The scores of token t, with those of the first and the last label. */
static void NAMED(token_scores)(const potentials *s, int64_t t, REAL *restrict row) {
    const REAL *E = s->E, *start = s->start, *end = s->end;
    memcpy(row, E + t * s->K, s->K * sizeof(REAL));
    if (t == 0)
        for (int64_t q = 0; q < s->K; q++) row[q] += start[q];
    if (t == s->T - 1)
        for (int64_t q = 0; q < s->K; q++) row[q] += end[q];
}

static REAL NAMED(greatest)(const REAL *x, int64_t n) {
    REAL top = -INFINITY;
    for (int64_t j = 0; j < n; j++) top = x[j] > top ? x[j] : top;
    return top;
}

/* out += by * x */
static inline void NAMED(add_row)(REAL by, const REAL *restrict x, int64_t n, REAL *restrict out) {
    for (int64_t j = 0; j < n; j++) out[j] += by * x[j];
}

/* exp(A - max A), and its transpose; false where the range of what is not masked is too great for it. */
static int NAMED(table_of)(const REAL *A, int64_t K, REAL *restrict table, REAL *restrict turned, REAL *top) {
    REAL low = INFINITY;
    *top = NAMED(greatest)(A, K * K);
    for (int64_t j = 0; j < K * K; j++) low = A[j] < low && A[j] > -INFINITY ? A[j] : low;
    if (!(*top - low <= SCALED_RANGE)) return 0;
    NAMED(exponentials)(A, *top, K * K, table);
    for (int64_t a = 0; a < K; a++)
        for (int64_t q = 0; q < K; q++) turned[q * K + a] = table[a * K + q];
    return 1;
}

/* Whether an alpha that can be reached is so small that, behind a mask, more than it would be lost. */
static int NAMED(lost)(const REAL *alpha, const REAL *R, const REAL *scores, int64_t K) {
    for (int64_t q = 0; q < K; q++)
        if (alpha[q] < SCALED_LEAST && R[q] > 0 && scores[q] > -INFINITY) return 1;
    return 0;
}

/* Forwards: alpha and R of all tokens. 0, or 1 where the scores do not allow it, or -1. */
static int NAMED(scaled_forward)(const potentials *s, REAL *alphas, REAL *R, REAL *table, REAL *turned, REAL *row,
                                 double *log_z) {
    const REAL *A = s->A;
    int64_t K = s->K, T = s->T, done = 0;
    REAL *e = row + K, shift = 0;
    int masked = s->each > 0;   /* tables of their own are taken for masked */
    for (int64_t j = 0; j < K * K && T > 1 && !masked; j++) masked = A[j] == -INFINITY;
    *log_z = 0.0;
    for (int64_t t = 0; t < T; t++) {
        REAL *now = alphas + t * K, *before = now - K, *r = R + t * K, sum = 0;
        for (int64_t q = 0; q < K; q++) r[q] = t == 0 ? 1 : 0;
        if (t == 1 || (t > 0 && s->each > 0))
            if (!NAMED(table_of)(A + (t - 1) * s->each, K, table, turned, &shift)) return 1;
        for (int64_t a = 0; a < K && t > 0; a++)
            if (before[a] != 0) NAMED(add_row)(before[a], table + a * K, K, r);
        NAMED(token_scores)(s, t, row);
        REAL top = NAMED(greatest)(row, K);
        if (top == -INFINITY) return 1;
        NAMED(exponentials)(row, top, K, e);
        for (int64_t q = 0; q < K; q++) sum += now[q] = r[q] * e[q];
        if (!(sum >= SCALED_LEAST)) return 1;
        for (int64_t q = 0; q < K; q++) now[q] /= sum;
        if (masked && t < T - 1 && NAMED(lost)(now, r, row, K)) return 1;
        *log_z += log(sum) + top + shift;
        if (stop_count(&done, K * K / 4 + 2 * K) < 0) return -1;
    }
    return 0;
}

/* Backwards: the probabilities of labels and pairs. */
static int NAMED(scaled_backward)(const potentials *s, const REAL *alphas, const REAL *R, REAL *table, REAL *turned,
                                  REAL *row, REAL *nodes, REAL *pairs) {
    int64_t K = s->K, T = s->T, done = 0;
    REAL *w = row + K, *part = table + 2 * K * K, shift;
    memset(s->sums, 0, K * K * sizeof(double));
    memset(part, 0, K * K * sizeof(REAL));
    memcpy(nodes + (T - 1) * K, alphas + (T - 1) * K, K * sizeof(REAL));
    for (int64_t t = T - 1; t > 0; t--) {
        const REAL *alpha = alphas + (t - 1) * K, *now = nodes + t * K;
        REAL *before = nodes + (t - 1) * K, sum = 0;
        if (s->each > 0) NAMED(table_of)((const REAL *)s->A + (t - 1) * s->each, K, table, turned, &shift);
        memset(row, 0, K * sizeof(REAL));
        for (int64_t q = 0; q < K; q++) {
            w[q] = now[q] > 0 ? now[q] / R[t * K + q] : 0;
            if (w[q] != 0) NAMED(add_row)(w[q], turned + q * K, K, row);
        }
        for (int64_t a = 0; a < K; a++) {
            before[a] = alpha[a] * row[a];
            sum += before[a];
        }
        for (int64_t a = 0; a < K; a++) before[a] /= sum;
        if (s->each > 0) {
            REAL *pair = pairs + (t - 1) * K * K;
            for (int64_t a = 0; a < K; a++)
                for (int64_t q = 0; q < K; q++) pair[a * K + q] = alpha[a] * table[a * K + q] * w[q];
        } else {
            for (int64_t a = 0; a < K; a++)
                if (alpha[a] != 0) NAMED(add_row)(alpha[a], w, K, part + a * K);
            if (t % POTENTIALS_PART == 0 || t == 1) {
                for (int64_t j = 0; j < K * K; j++) s->sums[j] += part[j];
                memset(part, 0, K * K * sizeof(REAL));
            }
        }
        if (stop_count(&done, K * K / 2 + 2 * K) < 0) return -1;
    }
    if (s->each == 0)
        for (int64_t j = 0; j < K * K; j++) pairs[j] = T > 1 ? s->sums[j] * table[j] : 0;
    return 0;
}

/* out = log sum_a exp(x[a] + A[a][q]) for column q of A, with strides. */
static double NAMED(log_sum)(const double *x, const REAL *A, int64_t K, int64_t step) {
    double top = -INFINITY, sum = 0.0;
    for (int64_t a = 0; a < K; a++) {
        double y = x[a] + A[a * step];
        top = y > top ? y : top;
    }
    if (top == -INFINITY) return top;
    for (int64_t a = 0; a < K; a++) sum += exp(x[a] + A[a * step] - top);
    return top + log(sum);
}

/* Both passes in logs and in double, less the greatest alpha of each token. */
static int NAMED(log_sums)(const potentials *s, REAL *row, double *log_z, REAL *nodes, REAL *pairs) {
    int64_t K = s->K, T = s->T, done = 0;
    double *alphas = s->logs, *R = s->logs + T * K, *now = R + T * K, *before = now + K;
    *log_z = 0.0;
    for (int64_t t = 0; t < T; t++) {
        double top = -INFINITY;
        NAMED(token_scores)(s, t, row);
        for (int64_t q = 0; q < K; q++) {
            R[t * K + q] = t == 0 ? 0.0 : NAMED(log_sum)(alphas + (t - 1) * K, (const REAL *)s->A + (t - 1) * s->each + q, K, K);
            alphas[t * K + q] = R[t * K + q] + row[q];
            top = alphas[t * K + q] > top ? alphas[t * K + q] : top;
        }
        *log_z += top;
        if (top == -INFINITY) return 0;
        for (int64_t q = 0; q < K; q++) alphas[t * K + q] -= top;
        if (stop_count(&done, 8 * K * K) < 0) return -1;
    }
    double sum = 0.0;
    for (int64_t q = 0; q < K; q++) sum += now[q] = exp(alphas[(T - 1) * K + q]);
    *log_z += log(sum);
    if (nodes == NULL) return 0;
    for (int64_t q = 0; q < K; q++) nodes[(T - 1) * K + q] = now[q] /= sum;
    memset(s->sums, 0, K * K * sizeof(double));
    for (int64_t t = T - 1; t > 0; t--) {
        const REAL *A = (const REAL *)s->A + (t - 1) * s->each;
        REAL *pair = s->each > 0 ? pairs + (t - 1) * K * K : NULL;
        double all = 0.0;
        for (int64_t a = 0; a < K; a++) {
            before[a] = 0.0;
            for (int64_t q = 0; q < K; q++) {
                double p = now[q] > 0.0 ? now[q] * exp(alphas[(t - 1) * K + a] + A[a * K + q] - R[t * K + q]) : 0.0;
                before[a] += p;
                if (pair != NULL) pair[a * K + q] = p;
                else s->sums[a * K + q] += p;
            }
            all += before[a];
        }
        for (int64_t a = 0; a < K; a++) nodes[(t - 1) * K + a] = before[a] /= all;
        double *swap = before;
        before = now;
        now = swap;
        if (stop_count(&done, 8 * K * K) < 0) return -1;
    }
    if (s->each == 0)
        for (int64_t j = 0; j < K * K; j++) pairs[j] = s->sums[j];
    return 0;
}

static int NAMED(sums)(const potentials *s, double *log_z, void *nodes, void *pairs) {
    int64_t K = s->K;
    REAL *alphas = s->rows, *R = alphas + s->T * K, *table = s->tables, *turned = table + K * K, *row = table + 3 * K * K;
    int status = NAMED(scaled_forward)(s, alphas, R, table, turned, row, log_z);
    if (status < 0) return -1;
    if (status > 0) return s->logs == NULL ? 1 : NAMED(log_sums)(s, row, log_z, nodes, pairs);
    if (nodes == NULL) return 0;
    return NAMED(scaled_backward)(s, alphas, R, table, turned, row, nodes, pairs);
}

/* The best labelling; of several the one whose last differing label is the least. Scores are less the token's best. */
static int NAMED(best)(const potentials *s, int32_t *back, int32_t *labels) {
    int64_t K = s->K, T = s->T, done = 0;
    REAL *value = s->rows, *next = value + K, *row = s->tables;
    for (int64_t t = 0; t < T; t++) {
        int32_t *from = back + t * K;
        NAMED(token_scores)(s, t, row);
        for (int64_t q = 0; q < K; q++) {
            next[q] = t == 0 ? 0 : -INFINITY;
            from[q] = 0;
        }
        for (int64_t a = 0; a < K && t > 0; a++) {
            const REAL *A = (const REAL *)s->A + (t - 1) * s->each + a * K;
            for (int64_t q = 0; q < K; q++) {
                REAL x = value[a] + A[q];
                from[q] = x > next[q] ? (int32_t)a : from[q];
                next[q] = x > next[q] ? x : next[q];
            }
        }
        for (int64_t q = 0; q < K; q++) next[q] += row[q];
        REAL top = NAMED(greatest)(next, K);
        if (top == -INFINITY) return 1;
        for (int64_t q = 0; q < K; q++) value[q] = next[q] - top;
        if (stop_count(&done, K * K / 2 + 2 * K) < 0) return -1;
    }
    int32_t label = 0;
    for (int64_t q = 1; q < K; q++)
        if (value[q] > value[label]) label = (int32_t)q;
    for (int64_t t = T - 1; t >= 0; t--) {
        labels[t] = label;
        label = back[t * K + label];
    }
    return 0;
}
