/* The loops of potentials.h for numbers of type REAL, included once per type. */

/* The scores of token t's states, with those of the first and the last. */
static void NAMED(token_scores)(const potentials *s, int64_t t, REAL *restrict row) {
    const REAL *E = s->E, *start = s->start, *end = s->end;
    memcpy(row, E + t * s->S, s->S * sizeof(REAL));
    if (t == 0)
        for (int64_t q = 0; q < s->S; q++) row[q] += start[q];
    if (t == s->T - 1)
        for (int64_t q = 0; q < s->S; q++) row[q] += end[q];
}

static REAL NAMED(greatest)(const REAL *x, int64_t n) {
    REAL tops[16], top = -INFINITY;
    int64_t j = 0;
    for (int k = 0; k < 16; k++) tops[k] = top;
    for (; j + 16 <= n; j += 16)
        for (int k = 0; k < 16; k++) tops[k] = x[j + k] > tops[k] ? x[j + k] : tops[k];
    for (; j < n; j++) top = x[j] > top ? x[j] : top;
    for (int k = 0; k < 16 && n >= 16; k++) top = tops[k] > top ? tops[k] : top;
    return top;
}

/* out += by * x */
static inline void NAMED(add_row)(REAL by, const REAL *restrict x, int64_t n, REAL *restrict out) {
    for (int64_t j = 0; j < n; j++) out[j] += by * x[j];
}

/* out += sum_i by[i] * x[i], rows `stride` apart: four at a time, so that `out` is loaded and stored once for them. */
static void NAMED(add_rows)(const REAL *by, const REAL *restrict x, int64_t stride, int64_t n_rows, int64_t n,
                            REAL *restrict out) {
    int64_t i = 0;
    for (; i + 4 <= n_rows; i += 4, x += 4 * stride) {
        const REAL a = by[i], b = by[i + 1], c = by[i + 2], d = by[i + 3], *y = x + stride, *z = y + stride, *u = z + stride;
        for (int64_t j = 0; j < n; j++) out[j] += a * x[j] + b * y[j] + (c * z[j] + d * u[j]);
    }
    for (; i < n_rows; i++, x += stride) NAMED(add_row)(by[i], x, n, out);
}

/* exp(A - max A), and turned[q][x] for the states x G + g before state q = (g, .); false where the range of what is not
 * masked is too great for it. */
static int NAMED(table_of)(const REAL *A, int64_t S, int64_t K, REAL *restrict table, REAL *restrict turned, REAL *top) {
    REAL low = INFINITY;
    *top = NAMED(greatest)(A, S * K);
    for (int64_t j = 0; j < S * K; j++) low = A[j] < low && A[j] > -INFINITY ? A[j] : low;
    if (!(*top - low <= SCALED_RANGE)) return 0;
    NAMED(exponentials)(A, *top, S * K, table);
    for (int64_t x = 0, G = S / K; x < K; x++)
        for (int64_t q = 0; q < S; q++) turned[q * K + x] = table[(x * G + q / K) * K + q % K];
    return 1;
}

/* Whether an alpha that can be reached is so small that, behind a mask, more than it would be lost. */
static int NAMED(lost)(const REAL *alpha, const REAL *R, const REAL *scores, int64_t S) {
    for (int64_t q = 0; q < S; q++)
        if (alpha[q] < SCALED_LEAST && R[q] > 0 && scores[q] > -INFINITY) return 1;
    return 0;
}

/* Forwards: alpha and R of all tokens. 0, or 1 where the scores do not allow it, or -1. */
static int NAMED(scaled_forward)(const potentials *s, REAL *alphas, REAL *R, REAL *table, REAL *turned, REAL *row,
                                 double *log_z) {
    const REAL *A = s->A;
    int64_t S = s->S, K = s->K, G = S / K, T = s->T, done = 0;
    REAL *e = row + S, shift = 0;
    int masked = s->each > 0 || G > 1;   /* tables of their own are taken for masked; states' futures differ by more */
    for (int64_t j = 0; j < S * K && T > 1 && !masked; j++) masked = A[j] == -INFINITY;
    *log_z = 0.0;
    for (int64_t t = 0; t < T; t++) {
        REAL *now = alphas + t * S, *before = now - S, *r = R + t * S, sum = 0;
        for (int64_t q = 0; q < S; q++) r[q] = t == 0 ? 1 : 0;
        if (t == 1 || (t > 0 && s->each > 0))
            if (!NAMED(table_of)(A + (t - 1) * s->each, S, K, table, turned, &shift)) return 1;
        if (t > 0 && G == 1) NAMED(add_rows)(before, table, K, S, K, r);
        for (int64_t a = 0; a < S && t > 0 && G > 1; a++)
            if (before[a] != 0) NAMED(add_row)(before[a], table + a * K, K, r + AFTER(a, G) * K);
        NAMED(token_scores)(s, t, row);
        REAL top = NAMED(greatest)(row, S);
        if (top == -INFINITY) return 1;
        NAMED(exponentials)(row, top, S, e);
        for (int64_t q = 0; q < S; q++) sum += now[q] = r[q] * e[q];
        if (!(sum >= SCALED_LEAST)) return 1;
        for (int64_t q = 0; q < S; q++) now[q] /= sum;
        if (masked && t < T - 1 && NAMED(lost)(now, r, row, S)) return 1;
        *log_z += log(sum) + top + shift;
        if (stop_count(&done, S * K / 4 + 2 * S) < 0) return -1;
    }
    return 0;
}

/* Backwards: the probabilities of states and pairs. */
static int NAMED(scaled_backward)(const potentials *s, const REAL *alphas, const REAL *R, REAL *table, REAL *turned,
                                  REAL *row, REAL *nodes, REAL *pairs) {
    int64_t S = s->S, K = s->K, G = S / K, T = s->T, done = 0, held = 0;
    REAL *part = table + 2 * S * K, *weights = row + S, shift;   /* w of up to HELD tokens */
    memset(s->sums, 0, S * K * sizeof(double));
    memset(part, 0, S * K * sizeof(REAL));
    memcpy(nodes + (T - 1) * S, alphas + (T - 1) * S, S * sizeof(REAL));
    for (int64_t t = T - 1; t > 0; t--) {
        const REAL *alpha = alphas + (t - 1) * S, *now = nodes + t * S;
        REAL *before = nodes + (t - 1) * S, *w = weights + held * S, sum = 0;
        if (s->each > 0) NAMED(table_of)((const REAL *)s->A + (t - 1) * s->each, S, K, table, turned, &shift);
        memset(row, 0, S * sizeof(REAL));
        for (int64_t q = 0; q < S; q++) {
            w[q] = now[q] > 0 ? now[q] / R[t * S + q] : 0;
            if (G > 1 && w[q] != 0) NAMED(add_row)(w[q], turned + q * K, K, row + q / K * K);
        }
        if (G == 1) NAMED(add_rows)(w, turned, K, S, K, row);
        for (int64_t a = 0; a < S; a++) {   /* row[g][x] */
            before[a] = alpha[a] * row[G > 1 ? a % G * K + a / G : a];
            sum += before[a];
        }
        for (int64_t a = 0; a < S; a++) before[a] /= sum;
        if (s->apart) {
            REAL *pair = pairs + (t - 1) * S * K;
            for (int64_t a = 0; a < S; a++) {
                const REAL *after = w + AFTER(a, G) * K;
                for (int64_t q = 0; q < K; q++) pair[a * K + q] = alpha[a] * table[a * K + q] * after[q];
            }
        } else {
            int is_last = t % POTENTIALS_PART == 0 || t == 1;
            if (++held == HELD || is_last) {
                for (int64_t a = 0; a < S; a++) {
                    REAL by[HELD];   /* the first of them is of the last token */
                    for (int64_t k = 0; k < held; k++) by[k] = alpha[(held - 1 - k) * S + a];
                    NAMED(add_rows)(by, weights + AFTER(a, G) * K, S, held, K, part + a * K);
                }
                held = 0;
            }
            if (is_last) {
                for (int64_t j = 0; j < S * K; j++) s->sums[j] += part[j];
                memset(part, 0, S * K * sizeof(REAL));
            }
        }
        if (stop_count(&done, S * K / 2 + 2 * S) < 0) return -1;
    }
    if (!s->apart)
        for (int64_t j = 0; j < S * K; j++) pairs[j] = T > 1 ? s->sums[j] * table[j] : 0;
    return 0;
}

/* log sum_x exp(alpha[x G + g] + A[x G + g][q]): over the states before state (g, q). */
static double NAMED(log_sum)(const double *alpha, const REAL *A, int64_t S, int64_t K, int64_t state) {
    int64_t G = S / K, g = state / K, q = state % K;
    double top = -INFINITY, sum = 0.0;
    for (int64_t a = g; a < S; a += G) {
        double y = alpha[a] + A[a * K + q];
        top = y > top ? y : top;
    }
    if (top == -INFINITY) return top;
    for (int64_t a = g; a < S; a += G) sum += exp(alpha[a] + A[a * K + q] - top);
    return top + log(sum);
}

/* Pairs of a step from the probabilities of states after it, in logs: before each state, shares of what leads to it, which
 * add up to 1 beside scores that no log-sum has all digits of. `shares` has room for K numbers. */
static void NAMED(pairs_of_logs)(const potentials *s, const REAL *A, const double *alpha, const double *now, double *shares,
                                 REAL *pair, double *before) {
    int64_t S = s->S, K = s->K, G = S / K;
    memset(before, 0, S * sizeof(double));
    if (pair != NULL) memset(pair, 0, S * K * sizeof(REAL));
    for (int64_t state = 0; state < S; state++) {
        int64_t q = state % K, g = state / K;
        double top = -INFINITY, all = 0.0;
        if (!(now[state] > 0.0)) continue;
        for (int64_t x = 0; x < K; x++) {
            shares[x] = alpha[x * G + g] + A[(x * G + g) * K + q];
            top = shares[x] > top ? shares[x] : top;
        }
        for (int64_t x = 0; x < K; x++) all += shares[x] = exp(shares[x] - top);
        for (int64_t x = 0; x < K; x++) {
            int64_t a = x * G + g;
            double p = now[state] * (shares[x] / all);
            before[a] += p;
            if (pair != NULL) pair[a * K + q] = p;
            else s->sums[a * K + q] += p;
        }
    }
}

/* Both passes in logs and in double, less the greatest alpha of each token. */
static int NAMED(log_sums)(const potentials *s, REAL *row, double *log_z, REAL *nodes, REAL *pairs) {
    int64_t S = s->S, K = s->K, T = s->T, done = 0;
    double *alphas = s->logs, *R = s->logs + T * S, *now = R + T * S, *before = now + S, *shares = before + S;
    *log_z = 0.0;
    for (int64_t t = 0; t < T; t++) {
        double top = -INFINITY;
        NAMED(token_scores)(s, t, row);
        for (int64_t q = 0; q < S; q++) {
            R[t * S + q] = t == 0 ? 0.0 : NAMED(log_sum)(alphas + (t - 1) * S, (const REAL *)s->A + (t - 1) * s->each, S, K, q);
            alphas[t * S + q] = R[t * S + q] + row[q];
            top = alphas[t * S + q] > top ? alphas[t * S + q] : top;
        }
        *log_z += top;
        if (top == -INFINITY) return 0;
        for (int64_t q = 0; q < S; q++) alphas[t * S + q] -= top;
        if (stop_count(&done, 8 * S * K) < 0) return -1;
    }
    double sum = 0.0;
    for (int64_t q = 0; q < S; q++) sum += now[q] = exp(alphas[(T - 1) * S + q]);
    *log_z += log(sum);
    if (nodes == NULL) return 0;
    for (int64_t q = 0; q < S; q++) nodes[(T - 1) * S + q] = now[q] /= sum;
    memset(s->sums, 0, S * K * sizeof(double));
    for (int64_t t = T - 1; t > 0; t--) {
        const REAL *A = (const REAL *)s->A + (t - 1) * s->each;
        REAL *pair = s->apart ? pairs + (t - 1) * S * K : NULL;
        double all = 0.0;
        NAMED(pairs_of_logs)(s, A, alphas + (t - 1) * S, now, shares, pair, before);
        for (int64_t a = 0; a < S; a++) all += before[a];
        for (int64_t a = 0; a < S; a++) nodes[(t - 1) * S + a] = before[a] /= all;
        double *swap = before;
        before = now;
        now = swap;
        if (stop_count(&done, 8 * S * K) < 0) return -1;
    }
    if (!s->apart)
        for (int64_t j = 0; j < S * K; j++) pairs[j] = s->sums[j];
    return 0;
}

static int NAMED(sums)(const potentials *s, double *log_z, void *nodes, void *pairs) {
    int64_t S = s->S, K = s->K;
    REAL *alphas = s->rows, *R = alphas + s->T * S, *table = s->tables, *turned = table + S * K, *row = table + 3 * S * K;
    int status = NAMED(scaled_forward)(s, alphas, R, table, turned, row, log_z);
    if (status < 0) return -1;
    if (status > 0) return s->logs == NULL ? 1 : NAMED(log_sums)(s, row, log_z, nodes, pairs);
    if (nodes == NULL) return 0;
    return NAMED(scaled_backward)(s, alphas, R, table, turned, row, nodes, pairs);
}

/* best[q] = max(best[q], value + A[q]); four states at once. */
static inline void NAMED(raise_to)(REAL value, const REAL *restrict A, int64_t n, REAL *restrict best) {
    for (int64_t q = 0; q < n; q++) {
        REAL x = value + A[q];
        best[q] = x > best[q] ? x : best[q];
    }
}

static void NAMED(raise_to_four)(const REAL *value, const REAL *restrict A, int64_t n, REAL *restrict best) {
    const REAL v0 = value[0], v1 = value[1], v2 = value[2], v3 = value[3], *B = A + n, *C = B + n, *D = C + n;
    for (int64_t q = 0; q < n; q++) {
        REAL x0 = v0 + A[q], x1 = v1 + B[q], x2 = v2 + C[q], x3 = v3 + D[q], top = best[q];
        x0 = x1 > x0 ? x1 : x0;
        x2 = x3 > x2 ? x3 : x2;
        x0 = x2 > x0 ? x2 : x0;
        best[q] = x0 > top ? x0 : top;
    }
}

/* The least state before `state` of token t by which it is reached at its best. */
static int32_t NAMED(before)(const potentials *s, const REAL *values, const REAL *reached, int64_t t, int32_t state) {
    int64_t S = s->S, K = s->K, G = S / K, a = state / K, q = state % K;
    const REAL *A = (const REAL *)s->A + (t - 1) * s->each, top = reached[t * S + state];
    if (G == 1) a = 0;
    while (a + G < S && values[(t - 1) * S + a] + A[a * K + q] != top) a += G;
    return (int32_t)a;
}

/* The best path; of several the one whose last differing state is the least. Scores are less the token's best. What each
 * state is reached by at its best is looked up for those of the path alone. */
static int NAMED(best)(const potentials *s, int32_t *states) {
    int64_t S = s->S, K = s->K, G = S / K, T = s->T, done = 0;
    REAL *values = s->rows, *reached = values + T * S, *row = s->tables;
    for (int64_t t = 0; t < T; t++) {
        REAL *now = values + t * S, *value = now - S, *next = reached + t * S;
        const REAL *A = (const REAL *)s->A + (t - 1) * s->each;
        int64_t a = t > 0 ? 0 : S;
        NAMED(token_scores)(s, t, row);
        for (int64_t q = 0; q < S; q++) next[q] = t == 0 ? 0 : -INFINITY;
        for (; a + 4 <= S && G == 1; a += 4) NAMED(raise_to_four)(value + a, A + a * K, K, next);
        for (; a < S; a++) NAMED(raise_to)(value[a], A + a * K, K, next + AFTER(a, G) * K);
        for (int64_t q = 0; q < S; q++) now[q] = next[q] + row[q];
        REAL top = NAMED(greatest)(now, S);
        if (top == -INFINITY) return 1;
        for (int64_t q = 0; q < S; q++) now[q] -= top;
        if (s->logs != NULL) s->logs[t] = top;
        if (stop_count(&done, S * K / 4 + 2 * S) < 0) return -1;
    }
    const REAL *value = values + (T - 1) * S;
    int32_t state = 0;
    for (int64_t q = 1; q < S; q++)
        if (value[q] > value[state]) state = (int32_t)q;
    for (int64_t t = T - 1; t >= 0; t--) {
        states[t] = state;
        if (t > 0) state = NAMED(before)(s, values, reached, t, state);
    }
    return 0;
}
