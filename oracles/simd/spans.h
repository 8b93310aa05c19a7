/* Segments of sequences and binary trees on scores that were computed elsewhere: log partition, marginals, best output.
 *
 * Potentials are floats or doubles, all else is double: what takes the time is an exponential per potential, or a chart
 * that fits the cache. Sums are of probabilities, scaled per place (segments.h) or, with rules, per span (brackets.h); where a
 * probability that may matter is lost to underflow, `sums` return 1, and the caller takes logs.
 */
#ifndef STRUCTSVM_SPANS_H
#define STRUCTSVM_SPANS_H

#include <math.h>
#include <string.h>

#include "exponentials.h"
#include "sets.h"

#define SPANS_RANGE 300.0   /* range of shared scores: unless masked, the futures of two labels differ by no more */
#define SPANS_LEAST 1e-150  /* behind a mask, probabilities that are less are lost */

/* T tokens, segments of at most L of them with K labels: scores (T, L, K) by the first token, the length less 1 and the
 * label; transitions A (K, K); start and end (K). Room: `tables` for K K + 2 L K + 2 K doubles, `rows` for
 * 3 (T + 1) K + 2 (T + 1), `terms` for T L K, of which log Z alone and the best need none. */
typedef struct {
    int64_t T, L, K;
    int is_double;
    const void *scores;
    const double *A, *start, *end;
    double *tables, *rows, *terms;
} segments;

/* A sentence of n words, of m in the array: scores (m, m, K) of the spans from word i to word j, with label k. Without
 * rules S = 1, a span's labels do not depend on those below it; with them S = K, and rules (K, K, K) score a label, the
 * left and the right one below. Room: `chart` for 3 n n S + 3 n n + 48 n + 8 doubles, `tables` for
 * 2 S S S + 4 S S + 2 n + 3 K + 8, `labels` for n n + 3 n, which sums do not need, and without rules `terms` for
 * n n K + 16 numbers of the scores' type, n K + 16 for log Z alone, which the best tree does not need. */
typedef struct {
    int64_t n, m, K, S;
    int is_double;
    const void *scores;
    const double *rules;
    double *chart, *tables;
    void *terms;
    int32_t *labels;
} brackets;

/* `sums` write log Z (-inf if there is no output: nothing else is written then) and, unless `parts` is NULL, the
 * probabilities of segments or spans, numbers of the scores' type, and the expected numbers of transitions or rules. They
 * return 0; 1 where logs are needed; or -1 (see sets.h). `best` writes an output and its score; it returns 0, 1 if there
 * is none, or -1. `bracketing_draw` writes a tree without rules after `sums` without parts; it returns 0 or -1. */
typedef struct {
    int (*segment_sums)(const segments *s, double *log_z, void *parts, double *pairs);
    int (*segment_best)(const segments *s, double *value, int32_t *y);
    int (*bracket_sums)(const brackets *s, double *log_z, void *parts, double *rules);
    int (*bracket_best)(const brackets *s, double *value, int32_t *y);
    int (*bracketing_draw)(const brackets *s, const double *u, int64_t step, int32_t *y);
    int (*bracketing_copy)(const int32_t *y, int64_t n, int64_t m, int32_t K, int32_t *out);   /* see bracketings.h */
} spans_kernels;

KERNELS_OF(spans);

#define SPANS_CALLED static __attribute__((noinline))          /* called in many places, for rows that are worth it */
#define SPANS_RARE static __attribute__((noinline, cold))      /* once per entry, or where something may be lost */

/* n numbers from `at` on, as doubles, and back. */
SPANS_CALLED void spans_load(const void *x, int is_double, int64_t at, int64_t n, double *restrict out) {
    if (is_double) {
        memcpy(out, (const double *)x + at, n * sizeof(double));
    } else {
        const float *from = (const float *)x + at;
        for (int64_t j = 0; j < n; j++) out[j] = from[j];
    }
}

SPANS_CALLED void spans_store(const double *restrict x, int is_double, int64_t at, int64_t n, void *out) {
    if (is_double) {
        memcpy((double *)out + at, x, n * sizeof(double));
    } else {
        float *to = (float *)out + at;
        for (int64_t j = 0; j < n; j++) to[j] = (float)x[j];
    }
}

/* out = exp(x - top), as exact as the scores are. */
SPANS_CALLED void spans_exponentials(const double *x, double top, int64_t n, int is_double, double *out) {
    if (is_double) doubles_exponentials(x, top, n, out, 13);
    else doubles_exponentials(x, top, n, out, 8);
}

SPANS_CALLED double spans_top(const double *x, int64_t n) {
    double top = -INFINITY;
    int64_t j = 0;
    if (n >= DOUBLES) {
        doubles tops = (doubles){0} - INFINITY, part;
        for (; j + DOUBLES <= n; j += DOUBLES) {
            memcpy(&part, x + j, sizeof part);
            tops = doubles_max(part, tops);
        }
        for (int k = 0; k < DOUBLES; k++) top = tops[k] > top ? tops[k] : top;
    }
    for (; j < n; j++) top = x[j] > top ? x[j] : top;
    return top;
}

SPANS_CALLED double spans_sum(const double *x, int64_t n) {
    doubles sums = {0}, part;
    double sum = 0.0;
    int64_t j = 0;
    for (; j + DOUBLES <= n; j += DOUBLES) {
        memcpy(&part, x + j, sizeof part);
        sums += part;
    }
    for (int k = 0; k < DOUBLES; k++) sum += sums[k];
    for (; j < n; j++) sum += x[j];
    return sum;
}

/* out += by * x */
static inline void spans_add(double by, const double *restrict x, int64_t n, double *restrict out) {
    for (int64_t j = 0; j < n; j++) out[j] += by * x[j];
}

/* exp(x - max x) of shared scores, and whether any is masked, or so low that it may be lost as if it were. */
SPANS_RARE void spans_table(const double *x, int64_t n, double *table, double *top, int *masked) {
    *top = spans_top(x, n);
    *masked = 0;
    for (int64_t j = 0; j < n; j++) *masked |= !(*top - x[j] <= SPANS_RANGE);
    if (*top > -INFINITY) spans_exponentials(x, *top, n, 1, table);
    else memset(table, 0, n * sizeof(double));
}

#endif
