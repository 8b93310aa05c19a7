/* The sums of chain_scaled.h for some entries side by side, a lane each: float scores of chains of order 1 that share
 * their transitions. What one entry needs of another is nothing, so that its bits do not depend on its neighbours.
 *
 * Rows of labels are vectors of one entry per lane, `width` of them, K rounded up to BLOCK; those beyond K stay 0. Those
 * of all tokens lie BLOCK labels at a time, token after token, as sums over tokens are of so many pairs at a time. A lane
 * whose entry is shorter waits: behind its last token its alphas and its w are 0.
 */
#ifndef STRUCTSVM_CHAIN_LANES_H
#define STRUCTSVM_CHAIN_LANES_H

#include "squares.h"

enum { BLOCK = 4, LOGS = 8 };   /* sums of so many tokens are multiplied before a logarithm is taken */
enum { TILE = 4096 };           /* vectors of alphas, and of w, that are in the second cache together */

/* Vectors of a row of K labels. */
ROWS_INLINE int64_t lanes_width(int64_t K) { return (K + BLOCK - 1) / BLOCK * BLOCK; }

/* Where label q of token t lies, of T tokens. */
ROWS_INLINE int64_t lanes_at(int64_t T, int64_t t, int64_t q) { return (q / BLOCK * T + t) * BLOCK + q % BLOCK; }

/* Where pair (x, y) lies in a table: 2 BLOCK columns at a time, so that a product reads it from one end to the other. */
ROWS_INLINE int64_t lanes_pair(int64_t K, int64_t width, int64_t x, int64_t y) {
    int64_t first = y / (2 * BLOCK) * (2 * BLOCK), many = width - first < 2 * BLOCK ? width - first : 2 * BLOCK;
    return first * K + x * many + y - first;
}

/* The lanes whose entries have more than t tokens. */
ROWS_INLINE rows_part_bits lanes_longer(const potentials *s, int64_t t) {
    rows_part_bits m;
    for (int l = 0; l < PART; l++) m[l] = s[l].T > t ? -1 : 0;
    return m;
}

/* out[j] = sum_x in[x] M[x][j] for `many` columns, in the order of x. */
ROWS_INLINE void lanes_columns(const float *restrict M, int64_t K, const rows_part *restrict in, rows_part *restrict out,
                               const int many) {
    rows_part sum[2 * BLOCK];
    EACH_PART
    for (int j = 0; j < many; j++) sum[j] = part_all(0.0f);
    for (int64_t x = 0; x < K; x++, M += many) {
        EACH_PART
        for (int j = 0; j < many; j++) sum[j] += in[x] * part_all(M[j]);
    }
    EACH_PART
    for (int j = 0; j < many; j++) out[j] = sum[j];
}

/* out = in M. */
static __attribute__((noinline)) void lanes_product(const float *restrict M, int64_t K, int64_t width,
                                                    const rows_part *restrict in, rows_part *restrict out) {
    int64_t y = 0;
    for (; y + 2 * BLOCK <= width; y += 2 * BLOCK) lanes_columns(M + y * K, K, in, out + y, 2 * BLOCK);
    if (y < width) lanes_columns(M + y * K, K, in, out + y, BLOCK);
}

/* row[q] = the numbers that the lanes have at q, of n. */
static __attribute__((noinline)) void lanes_from_rows(const float *const *from, int64_t n, rows_part *row) {
    int64_t q = 0;
    for (; q + SQUARE <= n; q += SQUARE) {
        ONE_BY_ONE
        for (int first = 0; first < PART; first += SQUARE) {
            lanes_square square[SQUARE];
            for (int l = 0; l < SQUARE; l++) memcpy(&square[l], from[first + l] + q, sizeof square[l]);
            lanes_turn(square);
            for (int j = 0; j < SQUARE; j++) memcpy((float *)(row + q + j) + first, &square[j], sizeof square[j]);
        }
    }
    for (; q < n; q++)
        for (int l = 0; l < PART; l++) row[q][l] = from[l][q];
}

static __attribute__((noinline)) void lanes_copy_rest(const float *from, int64_t n, float *to) {
    for (int64_t j = 0; j < n && j < SQUARE; j++) to[j] = from[j * PART];
}

/* The other way round, behind the first `at` numbers of the lanes that are `here`, a bit each. */
static __attribute__((noinline)) void lanes_to_rows(const rows_part *row, int64_t n, unsigned here, float *const *to,
                                                    int64_t at) {
    int64_t q = 0;
    for (; q + SQUARE <= n; q += SQUARE) {
        ONE_BY_ONE
        for (int first = 0; first < PART; first += SQUARE) {
            lanes_square square[SQUARE];
            for (int j = 0; j < SQUARE; j++) memcpy(&square[j], (const float *)(row + q + j) + first, sizeof square[j]);
            lanes_turn(square);
            ONE_BY_ONE
            for (int l = 0; l < SQUARE; l++)
                if (here >> (first + l) & 1) memcpy(to[first + l] + at + q, &square[l], sizeof square[l]);
        }
    }
    ONE_BY_ONE
    for (int l = 0; l < PART && q < n; l++)
        if (here >> l & 1) lanes_copy_rest((const float *)(row + q) + l, n - q, to[l] + at + q);
}

/* Scores of token t, with those of the first and the last; -inf beyond K. */
static void lanes_scores(const potentials *s, int64_t t, int64_t K, int64_t width, rows_part *row) {
    const float *at[PART], *start = s->start, *end = s->end;
    rows_part_bits last = lanes_longer(s, t) & ~lanes_longer(s, t + 1);
    const int ends = lanes_set(last) != 0;
    for (int l = 0; l < PART; l++) at[l] = (const float *)s[l].E + t * K;
    lanes_from_rows(at, K, row);
    for (int64_t q = 0; q < K && t == 0; q++) row[q] += part_all(start[q]);
    for (int64_t q = 0; q < K && ends; q++) row[q] += lanes_only(last, part_all(end[q]));
    for (int64_t q = K; q < width; q++) row[q] = part_all(-INFINITY);
}

/* Forwards. Returns the lanes whose scores do not allow it, a bit each, or -1. */
static int lanes_forward(const potentials *s, int64_t T, const float *table, double shift, int masked, rows_part *row,
                         rows_part *alphas, rows_part *R, double *log_z) {
    int64_t K = s->K, width = lanes_width(K), done = 0;
    rows_part *now = row + width, *r = now + width;
    lanes_double total = {0}, product = total + 1.0;
    rows_part_bits failed = {0};
    for (int64_t q = 0; q < width; q++) r[q] = part_all(1.0f);
    for (int64_t t = 0; t < T; t++) {
        rows_part top = part_all(-INFINITY), sum = part_all(0.0f);
        rows_part_bits here = lanes_longer(s, t), later = lanes_longer(s, t + 1);
        if (t > 0) lanes_product(table, K, width, now, r);
        lanes_scores(s, t, K, width, row);
        for (int64_t q = 0; q < K; q++) top = rows_part_max(row[q], top);
        for (int64_t q = 0; q < width; q++) sum += now[q] = r[q] * part_exp(row[q] - top);
        failed |= here & ~(rows_part_bits)(sum >= part_all(SCALED_LEAST));
        rows_part inverse = (rows_part)((rows_part_bits)(part_all(1.0f) / sum) & here);
        for (int64_t q = 0; q < width; q++) {
            now[q] = (rows_part)((rows_part_bits)(now[q] * inverse) & here);
            alphas[lanes_at(T, t, q)] = now[q];
            R[lanes_at(T, t, q)] = r[q];
        }
        for (int64_t q = 0; q < K && masked; q++)
            failed |= later & (rows_part_bits)(now[q] < part_all(SCALED_LEAST)) & (rows_part_bits)(r[q] > part_all(0.0f))
                & (rows_part_bits)(row[q] > part_all(-INFINITY));
        product *= __builtin_convertvector(lanes_where(here, sum, part_all(1.0f)), lanes_double);
        total += __builtin_convertvector(lanes_where(here, top, part_all(0.0f)), lanes_double);
        if (t % LOGS == LOGS - 1 || t == T - 1) {
            for (int l = 0; l < PART; l++) total[l] += log(product[l]);
            product = total - total + 1.0;
        }
        if (stop_count(&done, K * K + 4 * K) < 0) return -1;
    }
    for (int l = 0; l < PART; l++) log_z[l] = total[l] + (s[l].T > 1 ? shift * (double)(s[l].T - 1) : 0.0);
    return (int)lanes_set(failed);
}

/* Backwards: the probabilities of states; R becomes w. */
static int lanes_backward(const potentials *s, int64_t T, const float *turned, rows_part *row, const rows_part *alphas,
                          rows_part *R, float *const *nodes) {
    int64_t K = s->K, width = lanes_width(K), done = 0;
    rows_part *now = row + width, *w = now + width;
    for (int64_t t = T - 1;; t--) {
        rows_part_bits here = lanes_longer(s, t), last = here & ~lanes_longer(s, t + 1);
        rows_part sum = part_all(0.0f);
        for (int64_t q = 0; q < width; q++) now[q] = lanes_where(last, alphas[lanes_at(T, t, q)], now[q]);
        lanes_to_rows(now, K, lanes_set(here), nodes, t * K);
        if (t == 0) return 0;
        for (int64_t q = 0; q < width; q++) {
            rows_part_bits counts = here & (rows_part_bits)(now[q] > part_all(0.0f));
            w[q] = (rows_part)((rows_part_bits)(now[q] / R[lanes_at(T, t, q)]) & counts);
            R[lanes_at(T, t, q)] = w[q];
        }
        lanes_product(turned, K, width, w, now);
        for (int64_t q = 0; q < width; q++) sum += now[q] *= alphas[lanes_at(T, t - 1, q)];
        rows_part inverse = part_all(1.0f) / sum;
        for (int64_t q = 0; q < width; q++) now[q] *= inverse;
        if (stop_count(&done, K * K + 4 * K) < 0) return -1;
    }
}

/* Two rows and BLOCK columns of the sums over tokens `first` to stop - 1 of alpha[t - 1][a] w[t][q]. */
static __attribute__((noinline)) void lanes_pairs_block(const rows_part *alphas, const rows_part *w, int64_t first,
                                                        int64_t stop, rows_part found[2][BLOCK]) {
    rows_part sum[2][BLOCK];
    EACH_PART
    for (int j = 0; j < BLOCK; j++) sum[0][j] = sum[1][j] = part_all(0.0f);
    for (int64_t t = first; t < stop; t++) {
        const rows_part a0 = alphas[(t - 1) * BLOCK], a1 = alphas[(t - 1) * BLOCK + 1];
        EACH_PART
        for (int j = 0; j < BLOCK; j++) {
            sum[0][j] += a0 * w[t * BLOCK + j];
            sum[1][j] += a1 * w[t * BLOCK + j];
        }
    }
    EACH_PART
    for (int j = 0; j < BLOCK; j++) {
        found[0][j] = sum[0][j];
        found[1][j] = sum[1][j];
    }
}

/* The sums over tokens of each entry. */
static int lanes_pairs(const potentials *s, int64_t T, const float *table, const rows_part *alphas, const rows_part *w,
                       float *const *pairs) {
    int64_t K = s->K, width = lanes_width(K), done = 0;
    for (int64_t q = 0; q < K; q += BLOCK)
        for (int64_t a = 0; a < K; a += 2) {
            lanes_double total[2][BLOCK] = {{{0}}};
            for (int64_t first = 1; first < T; first += POTENTIALS_PART) {
                int64_t stop = first + POTENTIALS_PART < T ? first + POTENTIALS_PART : T;
                rows_part sum[2][BLOCK];
                lanes_pairs_block(alphas + lanes_at(T, 0, a), w + q * T, first, stop, sum);
                for (int k = 0; k < 2 * BLOCK; k++)
                    total[k / BLOCK][k % BLOCK] += __builtin_convertvector(sum[k / BLOCK][k % BLOCK], lanes_double);
            }
            for (int i = 0; i < 2 && a + i < K; i++)
                for (int j = 0; j < BLOCK && q + j < K; j++) {
                    ONE_BY_ONE
                    for (int l = 0; l < PART; l++)
                        if (s[l].T > 0)
                            pairs[l][(a + i) * K + q + j] = (float)total[i][j][l] * table[lanes_pair(K, width, a + i, q + j)];
                }
            if (stop_count(&done, T * 2) < 0) return -1;
        }
    return 0;
}

/* The sums over tokens and entries are added to `totals`. So many tokens at a time that what is read of them again and
 * again stays in the second cache, and 2 BLOCK rows of them in the first: 4 % faster for 100 labels. */
static SMALL int lanes_totals(const potentials *s, int64_t T, const float *table, const rows_part *alphas, const rows_part *w,
                              double *totals) {
    int64_t K = s->K, width = lanes_width(K), done = 0, tile = TILE / K;
    rows_part_bits there = lanes_longer(s, 0);
    tile = tile > POTENTIALS_PART ? POTENTIALS_PART : tile < 4 * BLOCK ? 4 * BLOCK : tile;
    for (int64_t first = 1; first < T; first += tile) {
        int64_t stop = first + tile < T ? first + tile : T;
        for (int64_t rows = 0; rows < K; rows += 2 * BLOCK)
            for (int64_t q = 0; q < K; q += BLOCK)
                for (int64_t a = rows; a < K && a < rows + 2 * BLOCK; a += 2) {
                    rows_part sum[2][BLOCK];
                    lanes_pairs_block(alphas + lanes_at(T, 0, a), w + q * T, first, stop, sum);
                    for (int i = 0; i < 2 && a + i < K; i++)
                        for (int j = 0; j < BLOCK && q + j < K; j++) {
                            rows_part all = lanes_only(there, sum[i][j]);
                            totals[(a + i) * K + q + j] +=
                                (double)PART_REDUCED(all, part_sum)[0] * table[lanes_pair(K, width, a + i, q + j)];
                        }
                    if (stop_count(&done, (stop - first) * 2) < 0) return -1;
                }
    }
    return 0;
}

/* exp(A - max A) and its transpose, by `lanes_pair`; false where scores do not allow it. `row` has room for K numbers. */
static SMALL int lanes_tables(const potentials *s, int64_t width, float *row, float *table, float *turned, float *top,
                              int *masked) {
    const float *A = s->A;
    int64_t K = s->K;
    float low = INFINITY;
    *top = greatest_float(A, K * K);
    for (int64_t j = 0; j < K * K; j++) {
        low = A[j] < low && A[j] > -INFINITY ? A[j] : low;
        *masked |= A[j] == -INFINITY;
    }
    if (!(*top - low <= SCALED_RANGE)) return 0;
    memset(table, 0, 2 * width * width * sizeof(float));
    for (int64_t a = 0; a < K; a++) {
        exponentials_float(A + a * K, *top, K, row);
        for (int64_t q = 0; q < K; q++) table[lanes_pair(K, width, a, q)] = turned[lanes_pair(K, width, q, a)] = row[q];
    }
    return 1;
}

/* Log partitions and, unless `nodes` is NULL, marginals of PART entries, some of which may have no tokens; those of pairs are
 * written for each entry, or added to `totals` unless it is NULL. Returns the lanes that are yet to be computed by themselves,
 * a bit each, or -1. */
static int sums_beside(const potentials *s, double *log_z, float *const *nodes, float *const *pairs, double *totals) {
    int64_t K = s->K, width = lanes_width(K), T = 0;
    float *table = s->tables, *turned = table + width * width, shift = 0.0f;
    int masked = 0, failed;
    potentials own[PART];
    memcpy(own, s, sizeof own);
    for (int l = 0; l < PART; l++) T = s[l].T > T ? s[l].T : T;
    rows_part *row = s->rows, *alphas = row + 3 * width, *R = alphas + T * width;   /* three rows of scratch */
    if (!lanes_tables(s, width, (float *)row, table, turned, &shift, &masked)) return (1 << PART) - 1;
    failed = lanes_forward(s, T, table, shift, masked, row, alphas, R, log_z);
    if (failed < 0 || nodes == NULL || T == 0) return failed;
    for (int l = 0; l < PART; l++)
        if (failed >> l & 1) own[l].T = 0;
    if (lanes_backward(own, T, turned, row, alphas, R, nodes) < 0) return -1;
    int status = totals != NULL ? lanes_totals(own, T, table, alphas, R, totals) : lanes_pairs(own, T, table, alphas, R, pairs);
    return status < 0 ? -1 : failed;
}

#endif
