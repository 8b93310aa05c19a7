/* How sure chains of order 1 are of the labellings of a pool, from scores of its tokens: margins, and doubts.
 *
 * Margins, in float. With max-marginals mu_t(k), the score of the best labelling that has label k at token t, the best one
 * has max_k mu_t(k) at every t, and the second best is the best of all that differ from it at some t: the greatest of the
 * second largest mu_t(k). Forwards a_t(k) = e_t(k) + max_j (a_t-1(j) + d(j, k)), backwards
 * b_t(j) = max_k (d(j, k) + e_t+1(k) + b_t+1(k)), and mu = a + b. Each row of a and b has its maximum subtracted, so that
 * floats do: max_k mu_t(k) - mu_t(second k) stays as it is, and the margin is the least of all t.
 *
 * Decoders sum whole labellings in float. With V_t = a_t and nothing subtracted, and u = 2^-24, their rounding is at most
 * u sum_t (|V_t - e_t| + |V_t|) for each labelling; the one of the rows above is found likewise.
 *
 * Doubts, in double, from the sums of potentials.h: with M = exp(d - max d) and E_t = exp(e_t - max e_t),
 *     R_t(q) = sum_a alpha_t-1(a) M(a, q),    alpha_t(q) = R_t(q) E_t(q) / sum_t,    w_t(q) = p_t(q) / R_t(q),
 *     p_t-1(a) = alpha_t-1(a) sum_q M(a, q) w_t(q),    P(a, q at t) = alpha_t-1(a) M(a, q) w_t(q).
 * Nothing is subtracted from sums of scores: the entropy is that of the scores below the greatest ones,
 *     H = sum_t (log sum_t + sum_q p_t(q) (max e_t - e_t(q))) + sum_t sum_{a, q} P(a, q at t) (max d - d(a, q)).
 * A chunk's probability is a product along its tokens (tasks/sequence/likely.py), from P(q | a) = P(a, q) / p(a).
 *
 * Scores of tokens follow the weights: s' = s + x change, once per feature that has changed. Each such sum is wrong by at
 * most u (2 |x change| + |s'|): rounding of the change, of the product and of the sum. With z, the sum of all |x change| of
 * a token so far, |s'| <= z, and the error grows by u (2 |x change| + z).
 *
 * Where more may be lost to underflow than DOUBTS_LEAST, or scores of moves are further apart than DOUBTS_RANGE, there is
 * no value: it is not a number.
 */
#ifndef STRUCTSVM_DOUBTS_H
#define STRUCTSVM_DOUBTS_H

#include "exponentials.h"
#include "sets.h"

#define DOUBTS_RANGE 300.0
#define DOUBTS_LEAST 1e-150
#define DOUBTS_UNIT 6e-8    /* u, and a little more for products of roundings */

/* The value of a sequence: 1 - P(best labelling); the entropy; the expected number of wrong labels of the best labelling,
 * or of one whose labels have max-marginals within `near` of it; the greatest probability that a chunk of it, or of one of
 * these, is wrong, of a labelling without chunks that a label is. */
enum { DOUBTS_NONE, DOUBTS_CONFIDENCE, DOUBTS_ENTROPY, DOUBTS_RISK, DOUBTS_SPAN };

/* Scores of K labels in rows of `stride`: of all tokens; of moves, from row to column; of beginnings and ends. Token t has
 * the entries pair_starts[t] to pair_starts[t + 1] of moves of its own, tables of K rows (-1: none), times their values;
 * pair_starts is NULL without any, pair_values where all are 1. `heat` is 1 / temperature. Label k belongs to chunks of
 * kind[k], -1 for none, with the labels members[member_starts[kind]] ...; a chunk goes on after it, with it. */
typedef struct {
    int64_t K, stride;
    const float *scores, *moves, *begin, *end;
    const int64_t *pair_starts, *pair_tables;
    const float *pair_values, *pair_moves;
    double heat;
    const int64_t *kind, *members, *member_starts;
    const uint8_t *goes_on_after, *goes_on_with;
} doubts_chain;

/* Moves to tokens with the same pairs as `token`, the one that they were first summed for (-1: none yet): K rows of `stride`
 * each, also turned; and, once there are sums, M, turned, and the turned M (max d - d), K rows of W = K rounded up to 4. */
typedef struct {
    int64_t token;
    const float *d;
    float *own, *turned_d;
    double *M, *turned, *costs, top;
    int has_sums, is_sound;
} doubts_moves;

/* Room for sequences of up to T tokens: floats mu (T, stride) and three rows; doubles alphas, R (then w) and p (T, W), logs
 * and tops (T), four rows of W. The moves of tokens without pairs, and some of those with pairs, by their hash. */
typedef struct {
    float *mu, *rows;
    double *alphas, *R, *p, *logs, *tops, *room;
    doubts_moves shared, *special;
    int64_t n_special, work;
    int is_stopped;
} doubts_room;

typedef struct {
    void (*prepare)(const doubts_chain *c, doubts_room *r);
    int (*of)(const doubts_chain *c, doubts_room *r, int64_t first, int64_t T, int what, double *near, double *margin,
              double *value);
    int (*add)(float *scores, float *sizes, int64_t n_tokens, int64_t stride, const int64_t *starts, const int64_t *tokens,
               const float *values, const int64_t *features, int64_t n, const float *changes, int64_t *at);
} doubts_kernels;

KERNELS_OF(doubts);

typedef double doubts_part __attribute__((vector_size(8 * DOUBLES), aligned(8), may_alias));
enum { DOUBTS_TERMS = 9, DOUBTS_BLOCK = 2048, DOUBTS_CHUNKS = 64 };

/* Count work; once it is to stop, so is all that follows: loops end, and `doubts_of` says so. */
static int doubts_stops(doubts_room *r, int64_t more) {
    if (!r->is_stopped && stop_count(&r->work, more) < 0) r->is_stopped = 1;
    return r->is_stopped;
}

static int64_t doubts_wide(int64_t K) { return (K + 3) / 4 * 4; }

/* turned[q][a] = d[a][q], -inf beyond. */
static void doubts_turn(const float *d, int64_t K, int64_t stride, float *turned) {
    for (int64_t q = 0; q < K; q++)
        for (int64_t a = 0; a < stride; a++) turned[q * stride + a] = a < K ? d[a * stride + q] : -INFINITY;
}

static void doubts_sum_moves(const doubts_chain *c, doubts_room *r, doubts_moves *moves, int64_t token) {
    int64_t n = c->K * c->stride;
    float *own = moves->own;
    memcpy(own, c->moves, n * sizeof(float));
    for (int64_t p = c->pair_starts[token]; p < c->pair_starts[token + 1]; p++) {
        if (c->pair_tables[p] < 0) continue;
        const float x = c->pair_values == NULL ? 1.0f : c->pair_values[p], *block = c->pair_moves + c->pair_tables[p] * n;
        for (int64_t i = 0; i < n; i++) own[i] += x * block[i];
    }
    moves->token = token;
    moves->has_sums = 0;
    doubts_turn(own, c->K, c->stride, moves->turned_d);
    doubts_stops(r, (c->pair_starts[token + 1] - c->pair_starts[token]) * n / 8 + n);
}

static int doubts_alike(const doubts_chain *c, int64_t one, int64_t other) {
    int64_t a = c->pair_starts[one], b = c->pair_starts[other], n = c->pair_starts[one + 1] - a;
    if (n != c->pair_starts[other + 1] - b) return 0;
    for (int64_t i = 0; i < n; i++) {
        if (c->pair_tables[a + i] != c->pair_tables[b + i]) return 0;
        if (c->pair_values != NULL && c->pair_values[a + i] != c->pair_values[b + i]) return 0;
    }
    return 1;
}

/* The moves to a token, valid until the next call. */
static doubts_moves *doubts_to(const doubts_chain *c, doubts_room *r, int64_t token) {
    if (c->pair_starts == NULL || c->pair_starts[token] == c->pair_starts[token + 1]) return &r->shared;
    uint64_t hash = 0;
    for (int64_t p = c->pair_starts[token]; p < c->pair_starts[token + 1]; p++)
        hash = (hash + (uint64_t)c->pair_tables[p]) * UINT64_C(0x9e3779b97f4a7c15), hash ^= hash >> 32;
    doubts_moves *found = r->special + hash % (uint64_t)r->n_special;
    if (found->token < 0 || !doubts_alike(c, found->token, token)) doubts_sum_moves(c, r, found, token);
    return found;
}

/* ---- margins ---- */

/* out = plus + max_j (x[j] + d[j]) */
static void doubts_longest(const float *x, const float *d, const float *plus, int64_t K, int64_t stride, float *out) {
    for (int64_t q = 0; q < K; q += PART) {
        rows_part top = part_all(-INFINITY);
        for (int64_t j = 0; j < K; j++) top = rows_part_max(top, x[j] + *(const rows_part *)(d + j * stride + q));
        *(rows_part *)(out + q) = top + (plus == NULL ? part_all(0.0f) : *(const rows_part *)(plus + q));
    }
}

/* The greatest size of the numbers of a row, minus infinity left out; infinity if a score has overflowed. */
static float doubts_widest(const float *row, int64_t stride) {
    rows_part most = {0}, lowest = part_all(-INFINITY), widest = part_all(FLT_MAX);
    rows_part_bits is_bad = {0};
    float top = 0.0f;
    for (int64_t q = 0; q < stride; q += PART) {
        rows_part x = *(const rows_part *)(row + q);
        rows_part_bits is_low = (rows_part_bits)(x == lowest);
        x = (rows_part)((rows_part_bits)x & ~is_low & 0x7fffffff);
        is_bad |= ~(rows_part_bits)(x <= widest);
        most = rows_part_max(x, most);
    }
    for (int i = 0; i < PART; i++) {
        if (is_bad[i]) return INFINITY;
        top = most[i] > top ? most[i] : top;
    }
    return top;
}

/* Subtract the maximum from a row; returns it. Rows whose maximum is not finite stay as they are. */
static float doubts_lower(float *row, int64_t stride) {
    rows_part most = part_all(-INFINITY);
    float top = -INFINITY;
    for (int64_t q = 0; q < stride; q += PART) most = rows_part_max(*(const rows_part *)(row + q), most);
    for (int i = 0; i < PART; i++) top = most[i] > top ? most[i] : top;
    if (!(fabsf(top) <= FLT_MAX)) return top;
    for (int64_t q = 0; q < stride; q += PART) *(rows_part *)(row + q) -= part_all(top);
    return top;
}

/* Forwards: mu has a. The result is 0 where no labelling is allowed; `sizes` has the rounding of scores of labellings in
 * units of u, the decoder's and that of a, infinity where scores have overflowed. */
static int doubts_ahead(const doubts_chain *c, doubts_room *r, int64_t first, int64_t T, double *sizes) {
    int64_t K = c->K, S = c->stride;
    double total = 0.0;
    *sizes = doubts_widest(c->end, S);
    for (int64_t t = 0; t < T && !doubts_stops(r, K * S / 8 + S); t++) {
        const float *e = c->scores + (first + t) * S;
        float *row = r->mu + t * S;
        if (t == 0)
            for (int64_t k = 0; k < S; k++) row[k] = e[k] + c->begin[k];
        else
            doubts_longest(row - S, doubts_to(c, r, first + t)->d, e, K, S, row);
        double own = doubts_widest(e, S), top = doubts_lower(row, S), low = doubts_widest(row, S);
        if (own <= FLT_MAX && top == -INFINITY) return 0;
        total += top;
        *sizes += 2.0 * fabs(total) + 2.0 * fabs(top) + 6.0 * low + 3.0 * own;
        if (!(*sizes <= FLT_MAX)) *sizes = INFINITY;
    }
    *sizes += fabs(total);
    return 1;
}

/* The margin, not a number where scores have overflowed, and `sizes` as in `doubts_ahead`, with the rounding of b; mu has
 * the max-marginals then. */
static double doubts_margin(const doubts_chain *c, doubts_room *r, int64_t first, int64_t T, double *sizes) {
    int64_t K = c->K, S = c->stride;
    float *b = r->rows, *behind = b + S, *last = behind + S, margin = INFINITY;
    if (!doubts_ahead(c, r, first, T, sizes)) return -INFINITY;
    if (r->is_stopped || *sizes == INFINITY) return NAN;
    memcpy(b, c->end, S * sizeof(float));
    for (int64_t t = T - 1; t >= 0 && !doubts_stops(r, K * S / 8 + S); t--) {
        const float *e = c->scores + (first + t) * S;
        float *row = r->mu + t * S, top = -INFINITY, next = -INFINITY;
        for (int64_t k = 0; k < K; k++) {
            float x = row[k] += b[k], low = x < top ? x : top;
            top = x > top ? x : top;
            next = low > next ? low : next;
        }
        if (top == -INFINITY) return -INFINITY;
        margin = top - next < margin ? top - next : margin;
        *sizes += 4.0 * doubts_widest(b, S);
        if (t == 0) break;
        for (int64_t k = 0; k < K; k++) behind[k] = e[k] + b[k];
        doubts_longest(behind, doubts_to(c, r, first + t)->turned_d, NULL, K, S, last);
        *sizes += fabsf(doubts_lower(last, S));
        float *swap = b;
        b = last;
        last = swap;
    }
    return margin;
}

static int64_t doubts_best(const float *row, int64_t K) {
    int64_t best = 0;
    for (int64_t k = 1; k < K; k++) best = row[k] > row[best] ? k : best;
    return best;
}

/* ---- sums ---- */

/* out = sum_j x[j] rows[j] */
static void doubts_times(const double *x, const double *rows, int64_t K, int64_t W, double *out) {
    for (int64_t q = 0; q < W; q += DOUBLES) {
        doubts_part sum = {0};
        for (int64_t j = 0; j < K; j++) sum += x[j] * *(const doubts_part *)(rows + j * W + q);
        *(doubts_part *)(out + q) = sum;
    }
}

static void doubts_sum(const doubts_chain *c, doubts_moves *moves) {
    int64_t K = c->K, W = doubts_wide(K);
    const float *d = moves->d;
    double top = -INFINITY, low = INFINITY;
    for (int64_t a = 0; a < K; a++)
        for (int64_t q = 0; q < W; q++) {
            double x = q < K ? c->heat * d[a * c->stride + q] : -INFINITY;
            moves->M[a * W + q] = x;
            top = x > top ? x : top;
            low = x > -INFINITY && x < low ? x : low;
        }
    moves->top = top;
    moves->is_sound = top > -INFINITY && top - low <= DOUBTS_RANGE;
    moves->has_sums = 1;
    doubles_exponentials(moves->M, top, K * W, moves->M, DOUBTS_TERMS);
    for (int64_t q = 0; q < K; q++)
        for (int64_t a = 0; a < W; a++) {
            double x = a < K ? moves->M[a * W + q] : 0.0;
            moves->turned[q * W + a] = x;
            moves->costs[q * W + a] = x > 0.0 ? x * (top - c->heat * d[a * c->stride + q]) : 0.0;
        }
}

/* The moves to a token, with what sums need. */
static const doubts_moves *doubts_at(const doubts_chain *c, doubts_room *r, int64_t token) {
    doubts_moves *moves = doubts_to(c, r, token);
    if (!moves->has_sums) {
        doubts_sum(c, moves);
        doubts_stops(r, 8 * c->K * doubts_wide(c->K));
    }
    return moves;
}

/* The scores of a token over the temperature, with those of the beginning and the end; returns the greatest. */
static double doubts_scores(const doubts_chain *c, int64_t first, int64_t t, int64_t T, double *row) {
    const float *e = c->scores + (first + t) * c->stride;
    double top = -INFINITY;
    for (int64_t q = 0; q < doubts_wide(c->K); q++) {
        float x = e[q] + (t == 0 ? c->begin[q] : 0.0f) + (t == T - 1 ? c->end[q] : 0.0f);
        row[q] = q < c->K ? c->heat * x : -INFINITY;
        top = row[q] > top ? row[q] : top;
    }
    return top;
}

/* Forwards; 0 where there are no sums. */
static int doubts_forward(const doubts_chain *c, doubts_room *r, int64_t first, int64_t T) {
    int64_t K = c->K, W = doubts_wide(K);
    double *row = r->room, *e = row + W;
    for (int64_t t = 0; t < T; t++) {
        if (doubts_stops(r, K * W / 4 + 4 * W)) return 0;
        double *now = r->alphas + t * W, *R = r->R + t * W, sum = 0.0, least = 1.0;
        if (t == 0)
            for (int64_t q = 0; q < W; q++) R[q] = 1.0;
        else {
            const doubts_moves *moves = doubts_at(c, r, first + t);
            if (!moves->is_sound) return 0;
            doubts_times(now - W, moves->M, K, W, R);
        }
        r->tops[t] = doubts_scores(c, first, t, T, row);
        if (r->tops[t] == -INFINITY) return 0;
        doubles_exponentials(row, r->tops[t], W, e, DOUBTS_TERMS);
        for (int64_t q = 0; q < W; q++) sum += now[q] = R[q] * e[q];
        if (!(sum >= DOUBTS_LEAST)) return 0;
        double by = 1.0 / sum;
        for (int64_t q = 0; q < W; q++) {
            now[q] *= by;
            least = R[q] > 0.0 && row[q] > -INFINITY && now[q] < least ? now[q] : least;
        }
        if (least < DOUBTS_LEAST) return 0;
        r->logs[t] = log(sum);
    }
    return 1;
}

/* Backwards: p, and w in the place of R. */
static void doubts_backward(const doubts_chain *c, doubts_room *r, int64_t first, int64_t T) {
    int64_t K = c->K, W = doubts_wide(K);
    memcpy(r->p + (T - 1) * W, r->alphas + (T - 1) * W, W * sizeof(double));
    for (int64_t t = T - 1; t > 0 && !doubts_stops(r, K * W / 4 + 2 * W); t--) {
        double *p = r->p + t * W, *before = p - W, *w = r->R + t * W, sum = 0.0;
        const double *alpha = r->alphas + (t - 1) * W;
        for (int64_t q = 0; q < W; q++) w[q] = p[q] > 0.0 ? p[q] / w[q] : 0.0;
        doubts_times(w, doubts_at(c, r, first + t)->turned, K, W, before);
        for (int64_t a = 0; a < W; a++) sum += before[a] *= alpha[a];
        for (int64_t a = 0; a < W; a++) before[a] /= sum;
    }
}

/* ---- values ---- */

static double doubts_entropy(const doubts_chain *c, doubts_room *r, int64_t first, int64_t T) {
    int64_t K = c->K, W = doubts_wide(K);
    double *row = r->room, sum = 0.0;
    for (int64_t t = 0; t < T && !doubts_stops(r, K * W / 4 + 2 * W); t++) {
        const double *p = r->p + t * W, *alpha = r->alphas + (t - 1) * W;
        doubts_scores(c, first, t, T, row);
        sum += r->logs[t];
        for (int64_t q = 0; q < K; q++) sum += p[q] > 0.0 ? p[q] * (r->tops[t] - row[q]) : 0.0;
        if (t == 0) continue;
        doubts_times(r->R + t * W, doubts_at(c, r, first + t)->costs, K, W, row);
        for (int64_t a = 0; a < K; a++) sum += alpha[a] * row[a];
    }
    return sum > 0.0 ? sum : 0.0;
}

static double doubts_confidence(const doubts_chain *c, doubts_room *r, int64_t first, int64_t T) {
    double *row = r->room, sum = 0.0;
    for (int64_t t = 0, before = 0; t < T && !doubts_stops(r, 2 * c->K); t++) {
        int64_t label = doubts_best(r->mu + t * c->stride, c->K);
        doubts_scores(c, first, t, T, row);
        sum += row[label] - r->tops[t] - r->logs[t];
        if (t > 0) {
            const doubts_moves *moves = doubts_at(c, r, first + t);
            sum += c->heat * moves->d[before * c->stride + label] - moves->top;
        }
        before = label;
    }
    return sum < 0.0 ? -expm1(sum) : 0.0;
}

/* The probability that a label is wrong. */
static double doubts_wrong(const double *p, int64_t K, int64_t label) {
    double sum = 0.0;
    for (int64_t q = 0; q < K; q++) sum += q == label ? 0.0 : p[q];
    return sum;
}

static double doubts_risk(const doubts_chain *c, doubts_room *r, int64_t T, double near) {
    int64_t K = c->K, W = doubts_wide(K);
    double sum = 0.0;
    for (int64_t t = 0; t < T && !doubts_stops(r, 4 * K); t++) {
        const float *mu = r->mu + t * c->stride;
        int64_t best = doubts_best(mu, K), label = best;
        for (int64_t q = 0; q < K; q++)
            if (mu[q] >= mu[best] - near && r->p[t * W + q] < r->p[t * W + label]) label = q;
        sum += doubts_wrong(r->p + t * W, K, label);
    }
    return sum;
}

/* The probability that a chunk goes on to the next token with label b, after label a of token t. */
static double doubts_on(const doubts_room *r, const doubts_moves *moves, int64_t W, int64_t t, int64_t a, int64_t b) {
    double p = r->p[t * W + a];
    return p > 0.0 ? r->alphas[t * W + a] * moves->M[a * W + b] * r->R[(t + 1) * W + b] / p : 0.0;
}

/* The probability of a chunk, of tokens `start` to `stop`. */
static double doubts_chunk(const doubts_chain *c, doubts_room *r, int64_t first, int64_t T, int64_t start, int64_t stop,
                           int64_t kind) {
    const int64_t *own = c->members + c->member_starts[kind], n = c->member_starts[kind + 1] - c->member_starts[kind];
    int64_t W = doubts_wide(c->K);
    double *run = r->room, *next = run + W, total = 0.0;
    const doubts_moves *moves = start > 0 ? doubts_at(c, r, first + start) : NULL;
    for (int64_t i = 0; i < n; i++) {
        run[i] = r->p[start * W + own[i]];
        for (int64_t j = 0; j < n && start > 0 && c->goes_on_with[own[i]]; j++)
            if (c->goes_on_after[own[j]])
                run[i] -= r->p[(start - 1) * W + own[j]] * doubts_on(r, moves, W, start - 1, own[j], own[i]);
    }
    for (int64_t t = start; t <= stop && t < T - 1 && !doubts_stops(r, 4 * n * n); t++) {
        moves = doubts_at(c, r, first + t + 1);
        for (int64_t i = 0; i < n; i++) next[i] = 0.0;
        for (int64_t j = 0; j < n; j++)
            for (int64_t i = 0; i < n && c->goes_on_after[own[j]]; i++)
                if (c->goes_on_with[own[i]]) next[i] += run[j] * doubts_on(r, moves, W, t, own[j], own[i]);
        if (t < stop)
            for (int64_t i = 0; i < n; i++) run[i] = next[i];
        else
            for (int64_t i = 0; i < n; i++) total -= next[i];
    }
    for (int64_t i = 0; i < n; i++) total += run[i];
    return total;
}

static double doubts_span(const doubts_chain *c, doubts_room *r, int64_t first, int64_t T) {
    int64_t K = c->K, W = doubts_wide(K), S = c->stride, start = -1, found = 0;
    double worst = 0.0, of_labels = 0.0;
    for (int64_t t = 0; t < T && !doubts_stops(r, 4 * K); t++) {
        int64_t label = doubts_best(r->mu + t * S, K), kind = c->kind[label];
        double wrong = doubts_wrong(r->p + t * W, K, label);
        of_labels = wrong > of_labels ? wrong : of_labels;
        if (kind < 0) continue;
        start = start < 0 ? t : start;
        if (t < T - 1) {
            int64_t next = doubts_best(r->mu + (t + 1) * S, K);
            if (c->kind[next] == kind && c->goes_on_after[label] && c->goes_on_with[next]) continue;
        }
        wrong = 1.0 - doubts_chunk(c, r, first, T, start, t, kind);
        worst = wrong > worst ? wrong : worst;
        found = 1;
        start = -1;
    }
    return found ? worst : of_labels;
}

static int doubts_joins(const doubts_chain *c, int64_t a, int64_t b) {
    return c->kind[a] >= 0 && c->kind[a] == c->kind[b] && c->goes_on_after[a] && c->goes_on_with[b];
}

/* Labels of token t that labellings near the best one may have, a byte each; returns whether one is outside of chunks. */
static int doubts_may_have(const doubts_chain *c, const doubts_room *r, int64_t t, double near, uint8_t *may) {
    const float *mu = r->mu + t * c->stride;
    const double least = mu[doubts_best(mu, c->K)] - near;
    int is_outside = 0;
    for (int64_t q = 0; q < c->K; q++) {
        may[q] = mu[q] >= least;
        is_outside |= may[q] && c->kind[q] < 0;
    }
    return is_outside;
}

/* Labels of a kind that a chunk may begin with, after one of `before` (NULL: at the first token); returns their number. */
static int64_t doubts_begin(const doubts_chain *c, const uint8_t *before, const uint8_t *may, int64_t kind, uint8_t *open) {
    int64_t n = 0;
    for (int64_t b = 0; b < c->K; b++) {
        open[b] = before == NULL && may[b] && c->kind[b] == kind;
        for (int64_t a = 0; a < c->K && before != NULL && may[b] && c->kind[b] == kind && !open[b]; a++)
            open[b] = before[a] && !doubts_joins(c, a, b);
        n += open[b];
    }
    return n;
}

/* The labels that a chunk with one of `open` goes on with, in place; returns whether it may also end before one of `may`. */
static int doubts_go_on(const doubts_chain *c, const uint8_t *may, uint8_t *open, uint8_t *after) {
    int may_end = 0;
    memset(after, 0, c->K);
    for (int64_t a = 0; a < c->K; a++)
        for (int64_t b = 0; b < c->K && open[a]; b++) {
            if (may[b] && doubts_joins(c, a, b)) after[b] = 1;
            else may_end |= may[b];
        }
    memcpy(open, after, c->K);
    return may_end;
}

/* As `doubts_span`, of all labellings that have labels near the best one; 1, which is never too small, where these have more
 * than `left` chunks. */
static double doubts_spans(const doubts_chain *c, doubts_room *r, int64_t first, int64_t T, double near, int64_t left) {
    int64_t K = c->K, W = doubts_wide(K);
    uint8_t *before = (uint8_t *)(r->room + 2 * W), *may = before + W, *open = may + W, *next = open + W, *after = next + W;
    double worst = 0.0, of_labels = 0.0;
    int is_outside = 1;
    for (int64_t t = 0; t < T && !doubts_stops(r, 4 * K); t++) {
        is_outside &= doubts_may_have(c, r, t, near, may);
        for (int64_t q = 0; q < K && is_outside; q++) {
            double wrong = may[q] && c->kind[q] < 0 ? doubts_wrong(r->p + t * W, K, q) : 0.0;
            of_labels = wrong > of_labels ? wrong : of_labels;
        }
        for (int64_t q = 0; q < K; q++) {
            if (c->kind[q] < 0 || c->members[c->member_starts[c->kind[q]]] != q) continue; /* the first of each kind */
            int64_t n_open = doubts_begin(c, t > 0 ? before : NULL, may, c->kind[q], open);
            for (int64_t stop = t; stop < T && n_open > 0 && !doubts_stops(r, 4 * K); stop++) {
                int may_end = stop == T - 1;
                if (!may_end) {
                    doubts_may_have(c, r, stop + 1, near, next);
                    may_end = doubts_go_on(c, next, open, after);
                    n_open = memchr(open, 1, K) != NULL;
                }
                if (!may_end) continue;
                if (--left < 0) return 1.0;
                double wrong = 1.0 - doubts_chunk(c, r, first, T, t, stop, c->kind[q]);
                worst = wrong > worst ? wrong : worst;
            }
        }
        memcpy(before, may, K);
    }
    return is_outside && of_labels > worst ? of_labels : worst;
}

/* Write the margin and the value; `near`, how far apart the rounding of scores may put two labellings that are equal, has
 * the rounding of their sums added. */
static int doubts_of(const doubts_chain *c, doubts_room *r, int64_t first, int64_t T, int what, double *near,
                     double *margin, double *value) {
    double sizes;
    *margin = doubts_margin(c, r, first, T, &sizes);
    *near += 2.0 * DOUBTS_UNIT * sizes;
    if (r->is_stopped) return -1;
    if (what == DOUBTS_NONE) return 0;
    *value = NAN;
    if (!(*margin > -INFINITY) || !doubts_forward(c, r, first, T)) return r->is_stopped ? -1 : 0;
    if (what != DOUBTS_CONFIDENCE) doubts_backward(c, r, first, T);
    if (r->is_stopped) return -1;
    if (what == DOUBTS_CONFIDENCE) *value = doubts_confidence(c, r, first, T);
    if (what == DOUBTS_ENTROPY) *value = doubts_entropy(c, r, first, T);
    if (what == DOUBTS_RISK) *value = doubts_risk(c, r, T, *near);
    if (what == DOUBTS_SPAN)
        *value = *margin > *near ? doubts_span(c, r, first, T) : doubts_spans(c, r, first, T, *near, DOUBTS_CHUNKS + 4 * T);
    return r->is_stopped ? -1 : 0;
}

static void doubts_prepare(const doubts_chain *c, doubts_room *r) {
    r->work = 0;
    r->is_stopped = 0;
    r->shared.d = c->moves;
    r->shared.has_sums = 0;
    doubts_turn(c->moves, c->K, c->stride, r->shared.turned_d);
    for (int64_t i = 0; i < r->n_special; i++) r->special[i].token = -1, r->special[i].d = r->special[i].own;
}

/* ---- changes of scores ---- */

/* scores[token] += value change, for the entries p .. of a feature whose tokens come before `end`; returns the next one.
 * `top` is the greatest size of the change. */
static int64_t doubts_add_until(float *scores, float *sizes, int64_t stride, const int64_t *tokens, const float *values,
                                int64_t p, int64_t stop, int64_t end, const float *change, float top) {
    for (; p < stop && tokens[p] < end; p++) {
        float *row = scores + tokens[p] * stride, x = values == NULL ? 1.0f : values[p];
        for (int64_t q = 0; q < stride; q += PART) *(rows_part *)(row + q) += x * *(const rows_part *)(change + q);
        float *size = sizes + 2 * tokens[p], own = fabsf(x) * top;
        size[0] += own;
        size[1] += size[0] + 2.0f * own;
    }
    return p;
}

/* scores[token] += value changes[i], for the tokens that have feature i: block after block, each of which stays in the
 * cache. Features with fewer tokens than there are blocks, of which there may be many, at once. `sizes` has z of each token
 * and its error in units of u, brought up to date; `at` has room for 2 n numbers. */
static int doubts_add(float *scores, float *sizes, int64_t n_tokens, int64_t stride, const int64_t *starts,
                      const int64_t *tokens, const float *values, const int64_t *features, int64_t n, const float *changes,
                      int64_t *at) {
    int64_t done = 0, n_often = 0, *often = at + n;
    for (int64_t i = 0; i < n; i++) {
        int64_t p = starts[features[i]], stop = starts[features[i] + 1];
        if (stop - p > n_tokens / DOUBTS_BLOCK) {
            at[n_often] = p;
            often[n_often++] = i;
            continue;
        }
        doubts_add_until(scores, sizes, stride, tokens, values, p, stop, n_tokens, changes + i * stride,
                         doubts_widest(changes + i * stride, stride));
        if (stop_count(&done, 1 + (stop - p) * stride / 4) < 0) return -1;
    }
    for (int64_t end = DOUBTS_BLOCK; end < n_tokens + DOUBTS_BLOCK && n_often > 0; end += DOUBTS_BLOCK)
        for (int64_t j = 0; j < n_often; j++) {
            int64_t i = often[j], p = at[j], stop = starts[features[i] + 1];
            at[j] = doubts_add_until(scores, sizes, stride, tokens, values, p, stop, end, changes + i * stride,
                                     doubts_widest(changes + i * stride, stride));
            if (stop_count(&done, 1 + (at[j] - p) * stride / 4) < 0) return -1;
        }
    return 0;
}

#endif
