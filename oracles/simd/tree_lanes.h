/* The sums of `trees_crossing` in tree_sums.h for some entries side by side, a lane each, in floats. What one entry needs of
 * another is nothing, so that its bits do not depend on its neighbours.
 *
 * X[j S + i] is a vector of the weights of the arcs from head j, 0 the root, to word i + 1 in the tables of all lanes. Words
 * beyond a lane's length have one head, the first word, by a weight of 1: they change neither a sum nor a probability.
 *
 * Some words are taken out at a time, so that the rest is read and written once for all of them; with y[i] = X[k][i] / s_k,
 * which takes the place of X[k][i],
 *     X'[j][i] = X[j][i] + sum_k X[j][k] y_k[i],
 * where columns and rows k are those that are left without the words that went before. Backwards the derivatives G take the
 * place of X, two words at a time: only column k and row k of X are needed for those of word k, which replace them. The
 * order of words is that of the sentence, as nothing is subtracted from a sum. In each place, terms are added in the order of
 * the words, however many of these are taken at a time: a longer neighbour changes no bit.
 *
 * Less than 1e-38 is lost of a weight in each place, and of the sum at most n^2 times as much over the product of all
 * s_k < 1 and the last sum: LANES_DEEPEST keeps it below 1e-10.
 */
#ifndef STRUCTSVM_TREE_LANES_H
#define STRUCTSVM_TREE_LANES_H

#include "squares.h"

enum { LANES_LONGEST = 160, LANES_LOGS = 8 };   /* words that two tables are in the cache for; sums between two logarithms */
enum { TAKEN = 4 };                                     /* words that are taken out at once */
enum { LANES_ROWS = PART == 16 ? 4 : 2 };               /* rows at a time that there are registers for */
#define LANES_DEEPEST 1e-24f
#define LANES_GREATEST 1e25f

ROWS_INLINE rows_part lanes_least(rows_part a, rows_part b) { return -rows_part_max(-a, -b); }

/* Vectors of a row: an odd number, so that the places of a column fall into all sets of the cache. */
static inline int64_t lanes_stride(int64_t n) { return (n + 1) | 1; }

/* Floats of memory for entries of up to n words, in so many lanes. */
static inline int64_t trees_beside_size(int lanes, int64_t n) {
    return lanes * (2 * (n + 3) * lanes_stride(n + 1) + 4 * (n + 3));
}

/* ---- between tables of lanes and arrays of scores: squares of so many words and lanes ---- */

/* Scores of the arcs from a head to words 1 .. n of the group, of the words that each lane has. */
ROWS_INLINE void lanes_read(const trees *s, int64_t head, int64_t n, rows_part *row) {
    for (int64_t d = 0; d < n; d += SQUARE)
        for (int first = 0; first < PART; first += SQUARE) {
            lanes_square square[SQUARE];
            for (int l = 0; l < SQUARE; l++) {
                const trees *own = s + first + l;
                int64_t many = head > own->n ? 0 : own->n - d < SQUARE ? own->n - d : SQUARE;
                const float *from = (const float *)own->scores + head * own->m + 1 + d;
                square[l] = (lanes_square){0};
                if (many == SQUARE) memcpy(&square[l], from, sizeof square[l]);
                else if (many > 0) memcpy(&square[l], from, many * sizeof(float));
            }
            lanes_turn(square);
            for (int j = 0; j < SQUARE && d + j < n; j++) memcpy((float *)(row + d + j) + first, &square[j], sizeof square[j]);
        }
}

/* Write the probabilities of the arcs from a head to the words that each lane has, and a 0 for the root. */
ROWS_INLINE void lanes_write(const trees *s, int64_t head, int64_t n, const rows_part *row, float *const *arcs) {
    for (int l = 0; l < PART; l++)
        if (s[l].n > 0 && head <= s[l].n) arcs[l][head * s[l].m] = 0.0f;
    for (int64_t d = 0; d < n; d += SQUARE)
        for (int first = 0; first < PART; first += SQUARE) {
            lanes_square square[SQUARE];
            for (int j = 0; j < SQUARE; j++)
                if (d + j < n) memcpy(&square[j], (const float *)(row + d + j) + first, sizeof square[j]);
                else square[j] = (lanes_square){0};
            lanes_turn(square);
            for (int l = 0; l < SQUARE; l++) {
                const trees *own = s + first + l;
                int64_t many = head > own->n ? 0 : own->n - d < SQUARE ? own->n - d : SQUARE;
                if (many <= 0) continue;
                float *to = arcs[first + l] + head * own->m + 1 + d;
                if (many == SQUARE) memcpy(to, &square[l], sizeof square[l]);
                else memcpy(to, &square[l], many * sizeof(float));
            }
        }
}

/* ---- weights ---- */

/* Weights of arcs between N nodes, in X and in W. `top` has room for 2 N vectors; `best` is the sum of the best scores into
 * each word. Returns the lanes that have a word without a head. */
static rows_part_bits lanes_weights(const trees *s, int64_t n, int64_t S, rows_part *X, rows_part *W, rows_part *top,
                                    lanes_double *best) {
    int64_t more = s->several, N = n + more + 1;
    rows_part_bits *has = (rows_part_bits *)(top + N), none = {0}, failed = none;
    for (int64_t d = 0; d < N - 1; d++) {
        top[d] = part_all(-INFINITY);
        for (int l = 0; l < PART; l++) has[d][l] = d < s[l].n + more ? -1 : 0;
    }
    if (more) {
        for (int64_t d = 0; d < N - 1; d++) X[d] = part_all(-INFINITY);
        X[0] = top[0] = part_all(0.0f);
    }
    for (int64_t h = more; h < N; h++) {
        rows_part *row = X + h * S;
        const rows_part_bits here = h > 0 ? has[h - 1] : ~none;
        lanes_read(s, h - more, n, row + more);
        if (more) row[0] = part_all(-INFINITY);
        if (h > 0) row[h - 1] = part_all(-INFINITY);
        for (int64_t d = more; d < N - 1; d++) {
            row[d] = lanes_where(here & has[d], row[d], part_all(-INFINITY));
            top[d] = rows_part_max(row[d], top[d]);
        }
    }
    for (int64_t d = 0; d < N - 1; d++) {
        failed |= has[d] & ~(rows_part_bits)(top[d] > part_all(-INFINITY));
        top[d] = lanes_only(has[d], top[d]);
        *best += __builtin_convertvector(top[d], lanes_double);
    }
    for (int64_t h = 0; h < N; h++)
        for (int64_t d = 0; d < N - 1; d++) X[h * S + d] = W[h * S + d] = part_exp(X[h * S + d] - top[d]);
    for (int64_t d = 0; d < N - 1; d++) X[(d > 0) * S + d] += lanes_only(~has[d], part_all(1.0f));
    return failed;
}

/* ---- elimination ---- */

/* Rows j .. j + rows - 1 of `width` columns without the words of the next `many` columns. */
ROWS_INLINE void lanes_take_rows(rows_part *X, int64_t S, int64_t width, int64_t j, const int rows, const int many) {
    rows_part *row = X + j * S, x[LANES_ROWS][TAKEN];
    const rows_part *y = X + (width + 1) * S;
    for (int r = 0; r < rows; r++)
        for (int a = 0; a < many; a++) x[r][a] = row[r * S + width + a];
    for (int64_t i = 0; i < width; i++) {
        rows_part by[TAKEN];
        EACH_PART
        for (int a = 0; a < many; a++) by[a] = y[a * S + i];
        EACH_PART
        for (int r = 0; r < rows; r++) {
            rows_part to = row[r * S + i];
            EACH_PART
            for (int a = many - 1; a >= 0; a--) to += x[r][a] * by[a];
            row[r * S + i] = to;
        }
    }
    for (int r = 0; r < rows; r++)
        if (j + r > 0) row[r * S + j + r - 1] = part_all(0.0f);
}

/* s_k of word k, whose heads are words before it; its row becomes y. */
ROWS_INLINE rows_part lanes_divide(rows_part *X, int64_t S, int64_t k) {
    rows_part sum = part_all(0.0f), *y = X + k * S;
    for (int64_t j = 1; j < k; j++) sum += X[j * S + k - 1];
    const rows_part inverse = part_all(1.0f) / sum;
    for (int64_t i = 0; i < k - 1; i++) y[i] *= inverse;
    return sum;
}

/* Take out words k, k - 1, ..., `many` of them, and write their sums. The rows and columns of those that are next are kept
 * up to date, the rest is changed at the end. */
ROWS_INLINE void lanes_take(rows_part *X, int64_t S, int64_t k, rows_part *sums, const int many) {
    int64_t width = k - many, j = 0;
    for (int64_t word = k; word > width; word--) {
        const rows_part *y = X + word * S;
        sums[word] = lanes_divide(X, S, word);
        for (int64_t next = word - 1; next > width; next--) {
            rows_part *row = X + next * S;
            const rows_part x = row[word - 1], by = y[next - 1];
            for (int64_t i = 0; i < word - 1; i++) row[i] += x * y[i];
            row[next - 1] = part_all(0.0f);
            for (int64_t h = 0; h <= width; h++) X[h * S + next - 1] += X[h * S + word - 1] * by;
        }
    }
    for (; j + LANES_ROWS <= width + 1; j += LANES_ROWS) lanes_take_rows(X, S, width, j, LANES_ROWS, many);
    for (; j < width + 1; j++) lanes_take_rows(X, S, width, j, 1, many);
}

/* ---- derivatives ---- */

/* Add what rows j .. j + rows - 1 of `width` columns give: to the derivatives of the next columns, whose X is replaced by
 * their first terms, and to g. The X of the last of them is kept. */
ROWS_INLINE void lanes_give_rows(rows_part *X, int64_t S, int64_t width, rows_part *const *g, rows_part *kept, int64_t j,
                                 const int rows, const int many) {
    rows_part *row = X + j * S, x[LANES_ROWS][2], sum[LANES_ROWS][2];
    const rows_part *y[2];
    for (int r = 0; r < rows; r++)
        for (int a = 0; a < many; a++) x[r][a] = row[r * S + width + a], sum[r][a] = part_all(0.0f);
    for (int a = 0; a < many; a++) y[a] = X + (width + 1 + a) * S;
    for (int64_t i = 0; i < width; i++) {
        const rows_part first = y[0][i], second = y[many - 1][i];
        rows_part to = g[0][i], other = g[many - 1][i];
        EACH_PART
        for (int r = 0; r < rows; r++) {
            const rows_part part = row[r * S + i];
            sum[r][0] += part * first;
            to += x[r][0] * part;
            if (many > 1) {
                sum[r][1] += part * second;
                other += x[r][1] * part;
            }
        }
        if (many > 1) g[1][i] = other;
        g[0][i] = to;
    }
    for (int r = 0; r < rows; r++) {
        if (many > 1) kept[j + r] = x[r][1];
        for (int a = 0; a < many; a++) row[r * S + width + a] = sum[r][a];
    }
}

/* The derivatives of word k's column, whose first terms are there, and of its row. */
ROWS_INLINE void lanes_finish(rows_part *X, int64_t S, int64_t k, const rows_part *g, rows_part sum) {
    rows_part rest = part_all(1.0f), *y = X + k * S;
    const rows_part inverse = part_all(1.0f) / sum;
    for (int64_t i = 0; i < k - 1; i++) {
        rest -= g[i] * y[i];
        y[i] = g[i] * inverse;
    }
    rest *= inverse;
    for (int64_t j = 1; j < k; j++) X[j * S + k - 1] += rest;
}

/* The derivatives of the rows and columns of word k, and of the next one if `many` is 2; two rows g, and one that is kept. */
ROWS_INLINE void lanes_give(rows_part *X, int64_t S, int64_t k, const rows_part *sums, rows_part *const *g, rows_part *kept,
                            const int many) {
    int64_t width = k - 1, j = 0;
    for (int64_t i = 0; i < width; i++) g[0][i] = g[1][i] = part_all(0.0f);
    for (; j + LANES_ROWS <= k; j += LANES_ROWS) lanes_give_rows(X, S, width, g, kept, j, LANES_ROWS, many);
    for (; j < k; j++) lanes_give_rows(X, S, width, g, kept, j, 1, many);
    lanes_finish(X, S, k, g[0], sums[k]);
    if (many == 1) return;
    const rows_part *next = X + (k + 1) * S;
    rows_part *own = X + k * S, *column = X + k - 1, x = own[k], sum = part_all(0.0f), to = sum;
    for (int64_t h = 0; h < k; h++) {
        to += kept[h] * column[h * S];
        column[h * S + 1] += column[h * S] * next[k - 1];
    }
    for (int64_t i = 0; i < width; i++) {
        sum += own[i] * next[i];
        g[1][i] += x * own[i];
    }
    own[k] = sum;
    g[1][k - 1] = to;
    lanes_finish(X, S, k + 1, g[1], sums[k + 1]);
}

/* ---- all ---- */

/* Log partitions, and the lanes that floats do not do for: a sum that is not a number is not good either. */
static rows_part_bits lanes_log_sums(const trees *s, int64_t words, rows_part *X, const rows_part *sums, lanes_double total,
                                     double *log_z) {
    rows_part deep = part_all(1.0f);
    rows_part_bits good = (rows_part_bits)(deep == deep);
    lanes_double product = total - total + 1.0;
    for (int64_t k = words; k > 0; k--) {
        const rows_part sum = k > 1 ? sums[k] : X[0];
        deep *= lanes_least(sum, part_all(1.0f));
        good &= (rows_part_bits)(sum <= part_all(LANES_GREATEST));
        product *= __builtin_convertvector(sum, lanes_double);
        if (k % LANES_LOGS == 1)
            for (int l = 0; l < PART; l++) {
                total[l] += log(product[l]);
                product[l] = 1.0;
            }
    }
    for (int l = 0; l < PART; l++) log_z[l] = s[l].n > 0 ? total[l] : 0.0;
    return ~(good & (rows_part_bits)(deep >= part_all(LANES_DEEPEST)));
}

/* Log partitions and, unless `arcs` is NULL, probabilities of arcs of PART entries, some of which may have no words. Returns
 * the lanes that are yet to be computed by themselves, a bit each, or -1. */
static int trees_beside(const trees *s, double *log_z, float *const *arcs) {
    int64_t n = 0, work = 0, k;
    for (int l = 0; l < PART; l++) n = s[l].n > n ? s[l].n : n;
    if (n == 0) {
        for (int l = 0; l < PART; l++) log_z[l] = 0.0;
        return 0;
    }
    int64_t words = n + s->several, N = words + 1, S = lanes_stride(words);
    rows_part *X = (rows_part *)s->memory, *W = X + N * S, *sums = W + N * S, *top = sums + N, *g[2] = {top, top + N}, *kept = top + 2 * N;
    lanes_double best = {0};
    rows_part_bits failed = lanes_weights(s, n, S, X, W, top, &best);
    for (k = words; k > TAKEN; k -= TAKEN) {
        lanes_take(X, S, k, sums, TAKEN);
        if (stop_count(&work, 2 * k * k + 32 * k) < 0) return -1;
    }
    for (; k > 1; k--) lanes_take(X, S, k, sums, 1);
    failed |= lanes_log_sums(s, words, X, sums, best, log_z);
    if (arcs == NULL) return (int)lanes_set(failed);
    X[0] = part_all(1.0f) / X[0];
    for (k = 2; k < words; k += 2) {
        lanes_give(X, S, k, sums, g, kept, 2);
        if (stop_count(&work, 4 * k * k + 16 * k) < 0) return -1;
    }
    if (k == words) lanes_give(X, S, k, sums, g, kept, 1);
    rows_part all = part_all(0.0f);
    for (int64_t h = s->several; h < N; h++) {
        rows_part *row = W + h * S;
        for (int64_t d = s->several; d < words; d++) {
            const rows_part p = X[h * S + d] * row[d];
            all += p;
            row[d] = rows_part_max(p, part_all(0.0f));
        }
        lanes_write(s, h - s->several, n, row + s->several, arcs);
    }
    return (int)lanes_set(failed | ~(rows_part_bits)(all < part_all(INFINITY)));
}

#endif
