/* The chain on scores that were computed elsewhere: log partition, marginals, best labelling, in float and in double.
 *
 * chain_expect.h takes an exponential per pair of labels, in logs, and is made for weights that training may drive
 * anywhere. Here probabilities are scaled per token, and exponentials are per token and label:
 *     R[t][q] = sum_a alpha[t-1][a] exp(A[a][q] - max A),    alpha[t][q] = R[t][q] exp(E[t][q] - max E[t]) / sum,
 * and backwards, with w[q] = p[t][q] / R[t][q],
 *     p[t-1][a] = alpha[t-1][a] sum_q exp(A[a][q] - max A) w[q],
 *     P(a, q at t) = alpha[t-1][a] exp(A[a][q] - max A) w[q].
 * Scores allow it if no transition is further than SCALED_RANGE below the greatest: a state whose alpha is lost to
 * underflow then has no say in what follows either, since the futures of two states differ by no more than that range.
 * Where transitions are masked (-inf), futures may differ by more, and each state that can be reached must have an alpha
 * of at least SCALED_LEAST. Otherwise the recursion of chain_expect.h is done in double.
 *
 * Indices a and q are of states, S of them. In a chain of order 1 these are the K labels. In one of order 2 a state is a
 * pair of labels, S = K K, and only K states come after each: with G = S / K, after state a = x G + g come the states
 * g K + q, by A[a][q], and token t of T is the pair of labels t and t + 1. Masks are taken for granted there, as what may
 * follow differs from state to state.
 */
#ifndef STRUCTSVM_POTENTIALS_H
#define STRUCTSVM_POTENTIALS_H

#include <math.h>
#include <string.h>

#include "exponentials.h"
#include "sets.h"

/* Scores of a batch entry, floats or doubles: emissions of T tokens; transitions into token t at A + (t - 1) each; start
 * and end of S states. `apart`: whether pairs are wanted of each step. Room: `rows` for 2 T S numbers, `tables` for
 * 3 S K + 5 S, `logs` for 2 T S + 3 S doubles or NULL, `sums` for S K doubles. */
typedef struct {
    int64_t T, S, K, each, apart;
    const void *E, *A, *start, *end;
    void *rows, *tables;
    double *logs, *sums;
} potentials;

/* One function for floats, one for doubles. `sums` writes log Z (-inf if no labelling is allowed: nothing else is written
 * then) and, unless `nodes` is NULL, the probabilities of states and of pairs of states: each step's with `apart` (always
 * where each > 0), or the sum of all steps'. It returns 0, 1 if logs are needed and there is no room for them, or -1 (see
 * sets.h). `best` writes the states of the best labelling; it returns 0, 1 if none is allowed, or -1. It leaves in `rows`
 * the best scores of what ends in each state of a token, less the greatest of them, which `logs` gets unless it is NULL,
 * and then those of what comes before each state. */
typedef struct {
    int lanes;   /* entries that `beside` computes side by side, see chain_lanes.h; 1 where it is not there */
    int (*sums[2])(const potentials *s, double *log_z, void *nodes, void *pairs);
    int (*best[2])(const potentials *s, int32_t *states);
    int (*beside)(const potentials *s, double *log_z, float *const *nodes, float *const *pairs, double *totals);
    int (*within)(const void *numbers, int is_double, int64_t n, double most);
    int (*labels)(const int32_t *y, int64_t n, int32_t last);
    void (*add)(const float *rows, int64_t n_rows, int64_t step, int64_t n, double *totals);
    void (*total)(const double *rows, int64_t n_rows, int64_t step, int64_t n, float *out);
} potentials_kernels;

KERNELS_OF(potentials);

#define AFTER(a, G) ((G) > 1 ? (a) % (G) : 0)   /* the group of K states that may follow state a */

/* Tokens whose pairs are summed apart, as long float sums would stand still; and tokens whose pairs are added at once. */
enum { POTENTIALS_PART = 256, HELD = 4 };

static void exponentials_float(const float *x, float top, int64_t n, float *out) {
    for (int64_t j = 0; j < n; j += PART) {
        int64_t m = n - j < PART ? n - j : PART;
        rows_part part = part_all(-INFINITY);
        memcpy(&part, x + j, m * sizeof(float));
        part = part_exp(part - top);
        memcpy(out + j, &part, m * sizeof(float));
    }
}

#define REAL float
#define NAMED(name) name##_float
#define SCALED_RANGE 40.0f
#define SCALED_LEAST 1e-20f
#include "chain_scaled.h"
#include "chain_lanes.h"
#undef REAL
#undef NAMED
#undef SCALED_RANGE
#undef SCALED_LEAST

#define REAL double
#define NAMED(name) name##_double
#define SCALED_RANGE 300.0
#define SCALED_LEAST 1e-150
#include "chain_scaled.h"

/* Whether all of n doubles or floats are less than `most`, and more than it with the other sign. */
static __attribute__((noinline, cold)) int numbers_within(const void *numbers, int is_double, int64_t n, double most) {
    const float *x = numbers, high = (float)most;
    const rows_part_bits size = (rows_part_bits){0} + 0x7fffffff, limit = (rows_part_bits)part_all(high);
    rows_part_bits good = ~(rows_part_bits){0};   /* sizes are in the order of their bits, nan behind all of them */
    int64_t j = 0;
    if (is_double) {
        const double *wide = numbers;
        while (j < n && wide[j] < most && wide[j] > -most) j++;
        return j == n;
    }
    for (; j + PART <= n; j += PART)
        good &= ((rows_part_bits)*(const rows_part *)(x + j) & size) - limit;
    for (int l = 0; l < PART; l++)
        if (good[l] >= 0) return 0;
    while (j < n && x[j] < high && x[j] > -high) j++;
    return j == n;
}

/* Whether all of n numbers are labels, from 0 to `last`: one that is not, or `last` less it, has its first bit set. */
static int labels_within(const int32_t *y, int64_t n, int32_t last) {
    uint32_t bad = 0;
    for (int64_t j = 0; j < n; j++) bad |= (uint32_t)y[j] | ((uint32_t)last - (uint32_t)y[j]);
    return !(bad >> 31);
}

/* Add rows of n numbers, `step` apart, to totals. */
static SMALL void numbers_add(const float *rows, int64_t n_rows, int64_t step, int64_t n, double *restrict totals) {
    for (; n_rows > 0; n_rows--, rows += step) {
        int64_t j = 0;
        for (; j + PART <= n; j += PART) {
            lanes_double sum;
            memcpy(&sum, totals + j, sizeof sum);
            sum += __builtin_convertvector(*(const rows_part *)(rows + j), lanes_double);
            memcpy(totals + j, &sum, sizeof sum);
        }
        for (; j < n; j++) totals[j] += rows[j];
    }
}

/* The sums of rows of n numbers, `step` apart, as floats. */
static SMALL void numbers_total(const double *rows, int64_t n_rows, int64_t step, int64_t n, float *restrict out) {
    int64_t j = 0;
    for (; j + PART <= n; j += PART) {
        lanes_double sum = {0}, row;
        for (int64_t k = 0; k < n_rows; k++) {
            memcpy(&row, rows + k * step + j, sizeof row);
            sum += row;
        }
        rows_part narrow = __builtin_convertvector(sum, rows_part);
        memcpy(out + j, &narrow, sizeof narrow);
    }
    for (; j < n; j++) {
        double sum = 0;
        for (int64_t k = 0; k < n_rows; k++) sum += rows[k * step + j];
        out[j] = (float)sum;
    }
}

#endif
