/* The sum of exp(beta score) over all alignments of two strings: the recurrences of align.h with sums for maxima.
 *
 * Each cell's state holds the logarithm of the sum over all ways into it, and the mean score of those ways under
 * p ~ exp(beta score), which is the derivative of that logarithm by beta. Where gaps in both strings meet, x's letters
 * come first, so every alignment is counted once; those that begin and end at the same cell of the border are empty.
 */
#ifndef STRUCTSVM_ALIGN_SUMS_H
#define STRUCTSVM_ALIGN_SUMS_H

#include <math.h>

#include "align.h"

typedef struct align_sum { double log, mean; } align_sum;
typedef struct align_sums { align_sum of[3]; } align_sums;      /* by state */

static align_sum align_total(const align_sum *ways, int count) {
    double top = -INFINITY, total = 0.0, mean = 0.0;
    for (int k = 0; k < count; k++) top = ways[k].log > top ? ways[k].log : top;
    if (top == -INFINITY) return (align_sum){-INFINITY, 0.0};
    for (int k = 0; k < count; k++) {
        if (ways[k].log == -INFINITY) continue;
        double share = ways[k].log == top ? 1.0 : exp(ways[k].log - top);
        total += share;
        mean += share * ways[k].mean;
    }
    return (align_sum){top + log(total), mean / total};
}

static inline align_sum align_further(align_sum way, double beta, double score) {
    return (align_sum){way.log + beta * score, way.mean + score};
}

/* Whether an alignment may end in this state of cell (i, j). */
static inline int align_may_end(const align_task *s, int64_t i, int64_t j, int state) {
    if (s->end == ALIGN_LOCAL) return state == ALIGN_PAIR;
    return s->end == ALIGN_GLOBAL ? i == s->m && j == s->n : i == s->m || j == s->n;
}

/* `rows`: room for two rows of n + 1 cells. `found`: the sum over all alignments; of those that begin anywhere one is
 * empty. */
static int align_log_sum(const align_task *s, double beta, align_sums *rows, align_sum *found) {
    const align_sum none = {-INFINITY, 0.0}, start = {0.0, 0.0};
    int64_t work = 0;
    *found = s->begin == ALIGN_LOCAL ? start : none;
    for (int64_t i = 0; i <= s->m; i++) {
        align_sums *here = rows + (i & 1) * (s->n + 1), *above = rows + (~i & 1) * (s->n + 1);
        for (int64_t j = 0; j <= s->n; j++) {
            align_sum *cell = here[j].of;
            for (int state = 0; state < 3; state++) cell[state] = none;
            if (j - i < s->low || j - i > s->high) continue;
            if (i == 0 || j == 0) {
                if (s->begin == ALIGN_SEMIGLOBAL || (s->begin == ALIGN_GLOBAL && i == j)) cell[ALIGN_PAIR] = start;
            } else {
                const align_sum *before = above[j - 1].of;
                align_sum ways[4] = {before[0], before[1], before[2], start};
                cell[ALIGN_PAIR] = align_further(align_total(ways, s->begin == ALIGN_LOCAL ? 4 : 3), beta,
                                              s->pair[s->x[i] + s->z[s->n - j]]);
            }
            if (i > 0) {
                const align_sum *before = above[j].of;
                align_sum ways[2] = {align_further(before[ALIGN_PAIR], beta, align_open_x(s, i, j)),
                                     align_further(before[ALIGN_SKIP_X], beta, align_extend_x(s, i, j))};
                cell[ALIGN_SKIP_X] = align_total(ways, 2);
            }
            if (j > 0) {
                const align_sum *before = here[j - 1].of;
                align_sum ways[3] = {align_further(before[ALIGN_PAIR], beta, align_open_z(s, i, j)),
                                     align_further(before[ALIGN_SKIP_X], beta, align_open_z(s, i, j)),
                                     align_further(before[ALIGN_SKIP_Z], beta, align_extend_z(s, i, j))};
                cell[ALIGN_SKIP_Z] = align_total(ways, 3);
            }
            for (int state = 0; state < 3; state++)
                if (cell[state].log > -INFINITY && align_may_end(s, i, j, state)) {
                    align_sum ways[2] = {*found, cell[state]};
                    *found = align_total(ways, 2);
                }
            if (stop_count(&work, 200) < 0) return -1;
        }
    }
    return stop_poll(work);
}

#endif
