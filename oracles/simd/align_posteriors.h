/* Probabilities of the pairs of two strings, and the alignment with the greatest expected number of right pairs.
 *
 * The recurrences of align.h with sums for maxima and products for sums: the task holds exp(beta score) in place of
 * scores. With F(i, j) the sum over all ways into a cell by a pair, and B(i, j) that over all ways from there to an end,
 * F B / Z is the probability that x_i and z_j are paired (Durbin and others 1998, section 4.4; Miyazawa 1995).
 *
 * Sums of a cell are numbers times a power of 2^512, its level, so that none overflows and none is lost beside others
 * of its cell. No factor may lie outside of 2^-500 .. 2^500.
 */
#ifndef STRUCTSVM_ALIGN_POSTERIORS_H
#define STRUCTSVM_ALIGN_POSTERIORS_H

#include <math.h>

#include "align.h"
#include "align_sums.h"

typedef struct align_mass { double of[3]; int64_t level; } align_mass;      /* by state */
typedef struct align_pair_mass { double pair; int64_t level; } align_pair_mass;

/* The factor on numbers of a level at another one that is not lower. */
static inline double align_lowered(int64_t level, int64_t top) {
    return level == top ? 1.0 : level == top - 1 ? 0x1p-512 : 0.0;
}

static inline double align_whole(const align_mass *cell) { return cell->of[0] + cell->of[1] + cell->of[2]; }

/* Empty cells must not set the level of others. */
static inline void align_raise(int64_t *top, const align_mass *cell) {
    if (align_whole(cell) > 0.0 && cell->level > *top) *top = cell->level;
}

static inline void align_levelled(align_mass *cell) {
    double most = align_max(align_max(cell->of[0], cell->of[1]), cell->of[2]);
    if (most > 0x1p256 || (most < 0x1p-256 && most > 0.0)) {
        double factor = most > 1.0 ? 0x1p-512 : 0x1p512;
        for (int state = 0; state < 3; state++) cell->of[state] *= factor;
        cell->level += most > 1.0 ? 1 : -1;
    }
}

static void align_add(align_mass *total, const align_mass *cell, double value) {
    int64_t top = total->level;
    if (value <= 0.0) return;
    if (total->of[0] == 0.0 || cell->level > top) top = cell->level;
    total->of[0] = total->of[0] * align_lowered(total->level, top) + value * align_lowered(cell->level, top);
    total->level = top;
    align_levelled(total);
}

static inline int align_in_band(const align_task *s, int64_t i, int64_t j) {
    return 0 <= i && i <= s->m && 0 <= j && j <= s->n && s->low <= j - i && j - i <= s->high;
}

static inline int align_may_begin(const align_task *s, int64_t i, int64_t j) {
    if (s->begin == ALIGN_GLOBAL) return i == 0 && j == 0;
    return s->begin == ALIGN_LOCAL || i == 0 || j == 0;
}

/* Factors of letters against gaps, as align_open_x and its kin. */
static inline double align_factor(const double *letter, const double *sites, int64_t i, int64_t at) {
    return sites == NULL ? letter[i] : letter[i] * sites[at];
}
static inline double align_open_x_factor(const align_task *s, int64_t i, int64_t j) {
    return align_factor(s->open_x, s->open_at_z, i, s->n - j);
}
static inline double align_extend_x_factor(const align_task *s, int64_t i, int64_t j) {
    return align_factor(s->extend_x, s->extend_at_z, i, s->n - j);
}
static inline double align_open_z_factor(const align_task *s, int64_t i, int64_t j) {
    return align_factor(s->open_z, s->open_at_x, s->n - j, i);
}
static inline double align_extend_z_factor(const align_task *s, int64_t i, int64_t j) {
    return align_factor(s->extend_z, s->extend_at_x, s->n - j, i);
}

/* All ways into the cells, by row; `kept`: those by a pair. Returns the sum over all alignments. */
static int align_ways_in(const align_task *s, align_mass *rows, align_pair_mass *kept, align_mass *total) {
    const align_mass none = {{0.0, 0.0, 0.0}, 0}, start = {{1.0, 0.0, 0.0}, 0};
    const int local = s->begin == ALIGN_LOCAL;
    int64_t work = 0;
    *total = local ? start : none;      /* the empty alignment */
    for (int64_t i = 0; i <= s->m; i++) {
        align_mass *here = rows + (i & 1) * (s->n + 1), *above = rows + (~i & 1) * (s->n + 1);
        for (int64_t j = 0; j <= s->n; j++) {
            align_mass found = none;
            const align_mass *before = i > 0 && j > 0 ? above + j - 1 : &none;
            const align_mass *over = i > 0 ? above + j : &none, *left = j > 0 ? here + j - 1 : &none;
            if (align_in_band(s, i, j)) {
                int begins = local ? i > 0 && j > 0 : align_may_begin(s, i, j);
                int64_t top = begins ? 0 : INT64_MIN / 2;   /* no cell has a level below that */
                align_raise(&top, before);
                align_raise(&top, over);
                align_raise(&top, left);
                found.level = top;
                double first = begins ? align_lowered(0, top) : 0.0;
                if (i > 0 && j > 0) {
                    double ways = align_whole(before) * align_lowered(before->level, top);
                    found.of[ALIGN_PAIR] = (ways + (local ? first : 0.0)) * s->pair[s->x[i] + s->z[s->n - j]];
                }
                if (!local) found.of[ALIGN_PAIR] += first;
                if (i > 0)
                    found.of[ALIGN_SKIP_X] = align_lowered(over->level, top)
                        * (over->of[ALIGN_PAIR] * align_open_x_factor(s, i, j)
                           + over->of[ALIGN_SKIP_X] * align_extend_x_factor(s, i, j));
                if (j > 0)
                    found.of[ALIGN_SKIP_Z] = align_lowered(left->level, top)
                        * ((left->of[ALIGN_PAIR] + left->of[ALIGN_SKIP_X]) * align_open_z_factor(s, i, j)
                           + left->of[ALIGN_SKIP_Z] * align_extend_z_factor(s, i, j));
                if (align_whole(&found) == 0.0) found = none;
                align_levelled(&found);
                for (int state = 0; state < 3; state++)
                    if (align_may_end(s, i, j, state)) align_add(total, &found, found.of[state]);
            }
            here[j] = found;
            kept[i * (s->n + 1) + j] = (align_pair_mass){found.of[ALIGN_PAIR], found.level};
            if (stop_count(&work, 20) < 0) return -1;
        }
    }
    return stop_poll(work);
}

/* All ways from the cells to an end, by row from the last one; the probabilities of pairs replace the sums in `kept`. */
static int align_ways_out(const align_task *s, align_mass *rows, align_pair_mass *kept, const align_mass *total) {
    const align_mass none = {{0.0, 0.0, 0.0}, 0};
    int64_t work = 0;
    for (int64_t i = s->m; i >= 0; i--) {
        align_mass *here = rows + (i & 1) * (s->n + 1), *below = rows + (~i & 1) * (s->n + 1);
        for (int64_t j = s->n; j >= 0; j--) {
            align_mass found = none;
            const align_mass *pair = i < s->m && j < s->n ? below + j + 1 : &none;
            const align_mass *x = i < s->m ? below + j : &none, *z = j < s->n ? here + j + 1 : &none;
            align_pair_mass *cell = kept + i * (s->n + 1) + j;
            if (align_in_band(s, i, j)) {
                int ends = align_may_end(s, i, j, ALIGN_PAIR);
                int64_t top = ends ? 0 : INT64_MIN / 2;
                align_raise(&top, pair);
                align_raise(&top, x);
                align_raise(&top, z);
                found.level = top;
                double last = ends ? align_lowered(0, top) : 0.0, behind_gap = s->end == ALIGN_LOCAL ? 0.0 : last;
                double paired = pair->of[ALIGN_PAIR] * align_lowered(pair->level, top);
                double skip_x = x->of[ALIGN_SKIP_X] * align_lowered(x->level, top);
                double skip_z = z->of[ALIGN_SKIP_Z] * align_lowered(z->level, top), open_z = 0.0, extend_z = 0.0;
                if (i < s->m && j < s->n) paired *= s->pair[s->x[i + 1] + s->z[s->n - j - 1]];
                if (j < s->n) {
                    open_z = skip_z * align_open_z_factor(s, i, j + 1);
                    extend_z = skip_z * align_extend_z_factor(s, i, j + 1);
                }
                found.of[ALIGN_PAIR] = paired + last + open_z;
                found.of[ALIGN_SKIP_X] = paired + behind_gap + open_z;
                found.of[ALIGN_SKIP_Z] = paired + behind_gap + extend_z;
                if (i < s->m) {
                    found.of[ALIGN_PAIR] += skip_x * align_open_x_factor(s, i + 1, j);
                    found.of[ALIGN_SKIP_X] += skip_x * align_extend_x_factor(s, i + 1, j);
                }
                if (align_whole(&found) == 0.0) found = none;
                align_levelled(&found);
            }
            here[j] = found;
            if (i == 0 || j == 0 || cell->pair == 0.0 || found.of[ALIGN_PAIR] == 0.0) {
                cell->pair = 0.0;
            } else {
                int64_t level = cell->level + found.level - total->level;
                double share = cell->pair / total->of[0] * found.of[ALIGN_PAIR];
                cell->pair = level < -3 ? 0.0 : ldexp(share, (int)(512 * level));
            }
            if (stop_count(&work, 20) < 0) return -1;
        }
    }
    return stop_poll(work);
}

/* The alignment whose pairs have the greatest sum of probabilities, of pairs with at least `least`. Gaps cost nothing.
 *
 * Per cell the best sums A of alignments whose last operation is none of z's letters against a gap, and B of the others:
 *     A(i, j) = max(max(A, B)(i-1, j-1) + p(i, j), A(i-1, j)),     B(i, j) = max(A, B)(i, j-1).
 * `sums` has room for two rows of 2 (n + 1); what each comes from is written to the levels of `kept`. `path` is filled
 * to the position `at`, and end set to the start; `end->score` is the sum, 0 without any pair. */
enum { ALIGN_FROM_START, ALIGN_FROM_A, ALIGN_FROM_B, ALIGN_FROM_X, ALIGN_Z_FROM_B };

static int align_most_expected(const align_task *s, double least, double *sums, align_pair_mass *kept, align_end *end,
                               uint8_t *path, int64_t *at) {
    int64_t work = 0, i, j, in_b;
    *end = (align_end){0.0, 0, 0, ALIGN_START, 0};
    for (i = 0; i <= s->m; i++) {
        double *here = sums + (i & 1) * 2 * (s->n + 1), *above = sums + (~i & 1) * 2 * (s->n + 1);
        for (j = 0; j <= s->n; j++) {
            align_pair_mass *cell = kept + i * (s->n + 1) + j;
            double a = -INFINITY, b = -INFINITY;
            int64_t from_a = ALIGN_FROM_START, from_b = 0;
            if (align_in_band(s, i, j)) {
                if (align_may_begin(s, i, j)) a = 0.0;
                if (i > 0 && above[2 * j] > a) a = above[2 * j], from_a = ALIGN_FROM_X;
                if (i > 0 && j > 0 && cell->pair >= least) {
                    const double *before = above + 2 * (j - 1);
                    int is_b = before[1] > before[0];
                    double sum = before[is_b] + cell->pair;
                    if (sum > a) a = sum, from_a = is_b ? ALIGN_FROM_B : ALIGN_FROM_A;
                }
                if (j > 0) {
                    const double *before = here + 2 * (j - 1);
                    int is_b = before[1] > before[0];
                    b = before[is_b];
                    from_b = is_b ? ALIGN_Z_FROM_B : 0;
                }
                for (int state = 0; state < 2; state++) {
                    double sum = state ? b : a;
                    if (sum > end->score && align_may_end(s, i, j, ALIGN_PAIR))
                        *end = (align_end){sum, i, j, state, 0};
                }
            }
            here[2 * j] = a;
            here[2 * j + 1] = b;
            cell->level = from_a | from_b;
            if (stop_count(&work, 4) < 0) return -1;
        }
    }
    for (i = end->i, j = end->j, in_b = end->state == 1; end->score > 0.0;) {
        int64_t from = kept[i * (s->n + 1) + j].level, from_a = from & 3;
        if (in_b) {
            path[--*at] = ALIGN_SKIP_Z;
            in_b = (from & ALIGN_Z_FROM_B) != 0;
            j--;
        } else if (from_a == ALIGN_FROM_START) {
            break;
        } else if (from_a == ALIGN_FROM_X) {
            path[--*at] = ALIGN_SKIP_X;
            i--;
        } else {
            path[--*at] = ALIGN_PAIR;
            in_b = from_a == ALIGN_FROM_B;
            i--, j--;
        }
    }
    if (end->score > 0.0) end->i = i, end->j = j;
    return stop_poll(work);
}

/* `rows`: room for two rows of n + 1 cells; `kept`: for (m + 1) (n + 1). Without any alignment in the band, and where no
 * pair has `least`, the end's score is 0. */
static int align_expected(const align_task *s, double least, align_mass *rows, align_pair_mass *kept, align_end *end,
                          uint8_t *path, int64_t *at) {
    align_mass total;
    if (align_ways_in(s, rows, kept, &total) < 0) return -1;
    if (total.of[0] > 0.0 && align_ways_out(s, rows, kept, &total) < 0) return -1;
    if (total.of[0] > 0.0) return align_most_expected(s, least, (double *)rows, kept, end, path, at);
    *end = (align_end){0.0, 0, 0, ALIGN_START, 0};
    return 0;
}

#endif
