/* Max-plus dynamic programmes over the alignments of two strings (Smith-Waterman, Needleman-Wunsch, Gotoh).
 *
 * x_1 .. x_m and z_1 .. z_n. A cell (i, j) has three states, by the operation that leads to it: PAIR (x_i with z_j),
 * SKIP_X (x_i against a gap) and SKIP_Z (z_j against a gap). With S the score of a pair, o and e those of the first
 * and of each further letter of a gap,
 *     P(i, j) = S(i, j) + H(i-1, j-1),                                  H = max(P, X, Z, floor)
 *     X(i, j) = max(P(i-1, j) + o(x_i), X(i-1, j) + e(x_i))
 *     Z(i, j) = max(P(i, j-1) + o(z_j), X(i, j-1) + o(z_j), Z(i, j-1) + e(z_j)).
 * With sites, a letter against a gap also scores by where the gap is in the other string: X(i, j) adds a_j to o(x_i) and
 * b_j to e(x_i), for the place between z_j and z_{j+1}, and Z(i, j) what those of place i of x say.
 * Where gaps in both strings meet, x's letters come first: otherwise one alignment would be counted as many, the
 * orders of its gaps. Alignments begin and end
 *     global       at (0, 0) and at (m, n);
 *     semi-global  at any cell of the first row or column, and at any of the last;
 *     local        anywhere, with a pair; the empty alignment scores 0 (floor = 0).
 * How they begin and how they end are set apart: the part of an alignment before a known pair begins as the mode says
 * and ends at (m, n), the part behind one begins at (0, 0).
 * The cells of an anti-diagonal d = i + j do not depend on each other: its loop over i is whole vectors. Only three
 * diagonals are at hand at a time; every `block`-th is kept, and the way back computes the cells that can lie on the
 * path from there once more (a triangle a block). So memory grows with the 3/2th power of the length, and no
 * direction is ever written down: the way back compares the same sums again.
 *
 * Counting: with layers > 1, layer h holds the best alignments with exactly h hits, a hit being a pair of x's letter
 * core_x[k] with one of z at most `window` from core_z[k]. With `bonus`, each hit adds it to the score instead. Either
 * changes what a hit's pair takes from H(i-1, j-1), which nothing else reads.
 */
#ifndef STRUCTSVM_ALIGN_H
#define STRUCTSVM_ALIGN_H

#include "rows.h"
#include "sets.h"
#include "stop.h"

enum { ALIGN_MARGIN = 8 };  /* cells of a diagonal that are none: beside it, and to the end of a vector */
enum { ALIGN_GLOBAL, ALIGN_SEMIGLOBAL, ALIGN_LOCAL };
enum { ALIGN_PAIR, ALIGN_SKIP_X, ALIGN_SKIP_Z, ALIGN_START };
enum { ALIGN_SAME, ALIGN_BY_LETTER, ALIGN_AT_SITES };   /* scores of letters against gaps */

typedef struct {
    double score;
    int64_t i, j, state;
    int64_t at;             /* detours: operations of the script before it */
} align_end;

typedef struct {
    int64_t m, n, begin, end;   /* how alignments begin and end: ALIGN_GLOBAL, ... */
    int64_t low, high;      /* the band: low <= j - i <= high */
    int64_t layers;
    int64_t block, width;   /* diagonals in a block; cells kept of each, with one to spare on both sides */
    const double *pair;     /* pair[x[i] + z[j]] */
    const int32_t *x, *z;   /* x[0..m], z backwards: z_j at n - j; ALIGN_MARGIN more of any letters */
    const double *open_x, *extend_x, *open_z, *extend_z;    /* in the same order */
    /* Scores of letters of z at the places i = 0..m of x, and of those of x at places j of z, at n - j; NULL: none. */
    const double *open_at_x, *extend_at_x, *open_at_z, *extend_at_z;
    int64_t same_gaps;      /* whether they are the same for all letters, and there are no sites */
    const int32_t *core_x, *core_z;
    int64_t n_core, window;
    double bonus;
    align_end barred;       /* an end that does not count (state < 0: none) */
    double *rows;           /* three diagonals of m + ALIGN_MARGIN cells */
    double *kept;           /* two diagonals a block of `width` cells; NULL: only the score is wanted */
    double *triangle;       /* block + 2 diagonals of block + ALIGN_MARGIN cells */
} align_task;

/* Defined in align_sums.h, align_posteriors.h and align_striped.h. */
struct align_sum;
struct align_sums;
struct align_mass;
struct align_pair_mass;
struct striped_task;

typedef struct {
    int (*forward)(const align_task *s, align_end *ends);
    int (*walk)(const align_task *s, align_end *end, int64_t layer, const uint8_t *script, uint8_t *path, int64_t *at,
                align_end *detour);
    int (*table)(const align_task *s, double *table);
    int (*is_hit)(const align_task *s, int64_t i, int64_t j);
    int (*log_sum)(const align_task *s, double beta, struct align_sums *rows, struct align_sum *found);
    int (*expected)(const align_task *s, double least, struct align_mass *rows, struct align_pair_mass *kept,
                    align_end *end, uint8_t *path, int64_t *at);
    void (*profile)(struct striped_task *s, const int32_t *x, const double *pair, int64_t side, int64_t off);
    int (*striped)(const struct striped_task *s, const int32_t *z, int64_t n, double *score);
} align_kernels;

KERNELS_OF(align);

/* Pointers to a diagonal's cells, by i; those of layer h are `stride` further each. H comes behind the states. */
typedef struct {
    double *v[4];
    int64_t stride;
} align_row;

#define ALIGN_H 3

/* Whole vectors of cells, in registers of the instruction set: the compiler splits larger ones badly. */
#ifdef __AVX2__
#define ALIGN_LANES 4
#else
#define ALIGN_LANES 2
#endif
typedef double align_v __attribute__((vector_size(8 * ALIGN_LANES), aligned(8), may_alias));

ROWS_INLINE const align_v *align_in(const double *cell) { return (const align_v *)cell; }
ROWS_INLINE align_v *align_out(double *cell) { return (align_v *)cell; }
ROWS_INLINE align_v align_all(double x) {
    align_v r;
    for (int l = 0; l < ALIGN_LANES; l++) r[l] = x;
    return r;
}
#ifdef __AVX2__
ROWS_INLINE align_v align_each_max(align_v a, align_v b) { return maxima_of_4d(a, b); }
#else
ROWS_INLINE align_v align_each_max(align_v a, align_v b) { return maxima_of_2d(a, b); }
#endif

ROWS_INLINE double align_max(double a, double b) { return a > b ? a : b; }
ROWS_INLINE int64_t align_least(int64_t a, int64_t b) { return a < b ? a : b; }
ROWS_INLINE int64_t align_most(int64_t a, int64_t b) { return a > b ? a : b; }

/* The cells of diagonal d inside the band: i from `first` to `last`. */
ROWS_INLINE int64_t align_first(const align_task *s, int64_t d) {
    int64_t edge = d - s->high;
    return align_most(align_most(0, d - s->n), edge > 0 ? (edge + 1) / 2 : 0);
}
ROWS_INLINE int64_t align_last(const align_task *s, int64_t d) {
    int64_t edge = d - s->low;
    return align_least(align_least(s->m, d), edge < 0 ? -1 : edge / 2);
}

ROWS_INLINE align_row align_at(const align_task *s, double *memory, int64_t cells, int64_t shift) {
    align_row row = {.stride = 4 * cells};
    for (int k = 0; k < 4; k++) row.v[k] = memory + k * cells + shift;
    return row;
}

/* The first core pair k with core_x + core_z >= sum. */
ROWS_INLINE int64_t align_core(const align_task *s, int64_t sum) {
    int64_t a = 0, b = s->n_core;
    while (a < b) {
        int64_t k = (a + b) / 2;
        if (s->core_x[k] + s->core_z[k] < sum) a = k + 1; else b = k;
    }
    return a;
}

ROWS_INLINE int align_is_hit(const align_task *s, int64_t i, int64_t j) {
    for (int64_t k = align_core(s, i + j - s->window); k < s->n_core && s->core_x[k] <= i; k++)
        if (s->core_x[k] == i) return s->core_z[k] - j <= s->window && j - s->core_z[k] <= s->window;
    return 0;
}

/* Scores that the pairs of diagonal d that are hits take from two diagonals before. */
ROWS_INLINE void align_hits(const align_task *s, int64_t d, int64_t a, int64_t b, const align_row *two) {
    for (int64_t k = align_core(s, d - s->window); k < s->n_core && s->core_x[k] + s->core_z[k] <= d + s->window; k++) {
        int64_t i = s->core_x[k];
        if (i < a || i > b || i >= d) continue;
        double *h = two->v[ALIGN_H] + i - 1;
        *h += s->bonus;
        for (int64_t l = s->layers - 1; l > 0; l--) h[l * two->stride] = h[(l - 1) * two->stride];
        if (s->layers > 1) *h = -INFINITY;
    }
}

/* One layer's cells a..b of a diagonal, neither in the first row nor in the first column, in whole vectors: up to
 * ALIGN_LANES - 1 cells behind b are written as well, and nothing reads them. `gaps` says what a letter against a gap
 * costs: the same for all letters, so that the loop need not read what each costs, by the letter, or also by the site;
 * `local`, that the floor counts. Both are literals in every call. */
ROWS_INLINE void align_cells_as(
        int64_t a, int64_t b, const double *pair, const int32_t *x, const int32_t *z,
        const double *const *gap, const double *P1, const double *X1, const double *Z1, const double *H2, double floor,
        double *P, double *X, double *Z, double *H, const int gaps, const int local) {
    if (a > b) return;
    align_v open = align_all(gap[0][a]), extend = align_all(gap[1][a]), least = align_all(floor);
    align_v open_x = open, extend_x = extend, open_z = open, extend_z = extend;
    for (int64_t i = a; i <= b; i += ALIGN_LANES) {
        align_v s;
        for (int l = 0; l < ALIGN_LANES; l++) s[l] = pair[x[i + l] + z[i + l]];
        align_v p = s + *align_in(H2 + i - 1);
        if (gaps != ALIGN_SAME) {
            open_x = *align_in(gap[0] + i), extend_x = *align_in(gap[1] + i);
            open_z = *align_in(gap[2] + i), extend_z = *align_in(gap[3] + i);
        }
        if (gaps == ALIGN_AT_SITES) {
            open_x += *align_in(gap[4] + i), extend_x += *align_in(gap[5] + i);
            open_z += *align_in(gap[6] + i), extend_z += *align_in(gap[7] + i);
        }
        align_v u = align_each_max(*align_in(P1 + i - 1) + open_x, *align_in(X1 + i - 1) + extend_x);
        align_v v = align_each_max(*align_in(P1 + i), *align_in(X1 + i)) + open_z;
        v = align_each_max(v, *align_in(Z1 + i) + extend_z);
        align_v h = align_each_max(align_each_max(p, u), v);
        *align_out(P + i) = p;
        *align_out(X + i) = u;
        *align_out(Z + i) = v;
        *align_out(H + i) = local ? align_each_max(h, least) : h;
    }
}

#define ALIGN_CELLS(NAME, GAPS, LOCAL) \
    static __attribute__((noinline)) void NAME( \
            int64_t a, int64_t b, const double *pair, const int32_t *x, const int32_t *z, const double *const *gap, \
            const double *P1, const double *X1, const double *Z1, const double *H2, double floor, \
            double *P, double *X, double *Z, double *H) { \
        align_cells_as(a, b, pair, x, z, gap, P1, X1, Z1, H2, floor, P, X, Z, H, GAPS, LOCAL); \
    }
ALIGN_CELLS(align_cells, ALIGN_BY_LETTER, 0)
ALIGN_CELLS(align_cells_local, ALIGN_BY_LETTER, 1)
ALIGN_CELLS(align_cells_same, ALIGN_SAME, 0)
ALIGN_CELLS(align_cells_same_local, ALIGN_SAME, 1)
ALIGN_CELLS(align_cells_sites, ALIGN_AT_SITES, 0)
ALIGN_CELLS(align_cells_sites_local, ALIGN_AT_SITES, 1)
#undef ALIGN_CELLS

/* Scores of x_i as the first and as a further letter of a gap behind z_j, and of z_j in one behind x_i. */
ROWS_INLINE double align_open_x(const align_task *s, int64_t i, int64_t j) {
    return s->open_at_z == NULL ? s->open_x[i] : s->open_x[i] + s->open_at_z[s->n - j];
}
ROWS_INLINE double align_extend_x(const align_task *s, int64_t i, int64_t j) {
    return s->extend_at_z == NULL ? s->extend_x[i] : s->extend_x[i] + s->extend_at_z[s->n - j];
}
ROWS_INLINE double align_open_z(const align_task *s, int64_t i, int64_t j) {
    return s->open_at_x == NULL ? s->open_z[s->n - j] : s->open_z[s->n - j] + s->open_at_x[i];
}
ROWS_INLINE double align_extend_z(const align_task *s, int64_t i, int64_t j) {
    return s->extend_at_x == NULL ? s->extend_z[s->n - j] : s->extend_z[s->n - j] + s->extend_at_x[i];
}

/* Diagonal d from the two before it, for i in a..b; cells beside them are set to -inf. */
ROWS_INLINE void align_step(const align_task *s, int64_t d, int64_t a, int64_t b, const align_row *two,
                            const align_row *one, const align_row *out) {
    typedef void (*fill)(int64_t, int64_t, const double *, const int32_t *, const int32_t *, const double *const *,
                         const double *, const double *, const double *, const double *, double, double *, double *,
                         double *, double *);
    static const fill fills[3][2] = {{align_cells_same, align_cells_same_local},
                                     {align_cells, align_cells_local},
                                     {align_cells_sites, align_cells_sites_local}};
    int local = s->begin == ALIGN_LOCAL, sites = s->open_at_z != NULL;
    int64_t behind = s->n - d;
    const double *gap[8] = {s->open_x, s->extend_x, s->open_z + behind, s->extend_z + behind};
    if (sites) {
        gap[4] = s->open_at_z + behind, gap[5] = s->extend_at_z + behind;
        gap[6] = s->open_at_x, gap[7] = s->extend_at_x;
    }
    fill cells = fills[sites ? ALIGN_AT_SITES : s->same_gaps ? ALIGN_SAME : ALIGN_BY_LETTER][local];
    if (s->n_core > 0) align_hits(s, d, a, b, two);
    for (int64_t h = 0; h < s->layers; h++) {
        int64_t from = h * one->stride, to = h * out->stride;
        const double *P1 = one->v[ALIGN_PAIR] + from, *X1 = one->v[ALIGN_SKIP_X] + from;
        const double *Z1 = one->v[ALIGN_SKIP_Z] + from;
        double *P = out->v[ALIGN_PAIR] + to, *X = out->v[ALIGN_SKIP_X] + to, *Z = out->v[ALIGN_SKIP_Z] + to;
        double *H = out->v[ALIGN_H] + to, floor = local && h == 0 ? 0.0 : -INFINITY;
        double start = !local && h == 0 && (d == 0 || s->begin == ALIGN_SEMIGLOBAL) ? 0.0 : -INFINITY;
        cells(align_most(a, 1), align_least(b, d - 1), s->pair, s->x, s->z + behind, gap, P1, X1, Z1,
              two->v[ALIGN_H] + from, floor, P, X, Z, H);
        if (a == 0) {   /* (0, d) */
            P[0] = start;
            X[0] = Z[0] = -INFINITY;
            if (d > 0 && !local)
                Z[0] = align_max(align_max(P1[0], X1[0]) + align_open_z(s, 0, d), Z1[0] + align_extend_z(s, 0, d));
            H[0] = align_max(align_max(P[0], Z[0]), floor);
        }
        if (b == d && d > 0) {  /* (d, 0) */
            P[d] = start;
            X[d] = Z[d] = -INFINITY;
            if (!local) X[d] = align_max(P1[d - 1] + align_open_x(s, d, 0), X1[d - 1] + align_extend_x(s, d, 0));
            H[d] = align_max(align_max(P[d], X[d]), floor);
        }
        P[a - 1] = X[a - 1] = Z[a - 1] = H[a - 1] = -INFINITY;
        P[b + 1] = X[b + 1] = Z[b + 1] = H[b + 1] = -INFINITY;
    }
}

/* Whether a value of P[a..b] is at least `least`. */
static __attribute__((noinline)) int align_reaches(int64_t a, int64_t b, const double *P, double least) {
    int64_t i = a;
    align_v high = align_all(-INFINITY);
    for (; i + ALIGN_LANES - 1 <= b; i += ALIGN_LANES) high = align_each_max(high, *align_in(P + i));
    double top = -INFINITY;
    for (int l = 0; l < ALIGN_LANES; l++) top = align_max(top, high[l]);
    for (; i <= b; i++) top = align_max(top, P[i]);
    return top >= least;
}

/* The pairs of diagonal d as ends of a local alignment; of several of the highest score the one of least i, then j. */
ROWS_INLINE void align_offer_pairs(const align_task *s, const align_row *row, int64_t d, int64_t a, int64_t b,
                                   align_end *ends) {
    for (int64_t h = 0; h < s->layers; h++) {
        const double *P = row->v[ALIGN_PAIR] + h * row->stride;
        if (!align_reaches(a, b, P, ends[h].score)) continue;
        for (int64_t i = a; i <= b; i++) {
            int barred = s->barred.state == ALIGN_PAIR && i == s->barred.i && d - i == s->barred.j;
            int equal = P[i] == ends[h].score && ends[h].state == ALIGN_PAIR && i < ends[h].i;
            if ((P[i] > ends[h].score || equal) && !barred) ends[h] = (align_end){P[i], i, d - i, ALIGN_PAIR, 0};
        }
    }
}

ROWS_INLINE void align_offer(const align_task *s, const align_row *row, int64_t i, int64_t j, align_end *ends) {
    for (int64_t h = 0; h < s->layers; h++)
        for (int64_t k = 0; k < 3; k++) {
            double score = row->v[k][h * row->stride + i];
            int barred = i == s->barred.i && j == s->barred.j && k == s->barred.state;
            if (score > ends[h].score && !barred) ends[h] = (align_end){score, i, j, k, 0};
        }
}

/* Scores and ends of the best alignment of each layer; -inf where there is none. */
static int align_forward(const align_task *s, align_end *ends) {
    int64_t cells = s->m + ALIGN_MARGIN, count = s->m + s->n + 1, room = 5 * s->layers * s->width, work = 0;
    align_row row[3];
    for (int r = 0; r < 3; r++) row[r] = align_at(s, s->rows + r * 4 * s->layers * cells, cells, 2);
    for (int64_t k = 0; k < 12 * s->layers * cells; k++) s->rows[k] = -INFINITY;
    for (int64_t h = 0; h < s->layers; h++) ends[h] = (align_end){-INFINITY, 0, 0, ALIGN_START, 0};
    if (s->end == ALIGN_LOCAL) ends[0].score = 0.0;
    else if (s->begin == ALIGN_LOCAL) ends[0] = (align_end){0.0, s->m, s->n, ALIGN_START, 0};
    for (int64_t d = 0; d < count; d++) {
        const align_row *two = &row[(d + 1) % 3], *one = &row[(d + 2) % 3], *now = &row[d % 3];
        int64_t a = align_first(s, d), b = align_last(s, d);
        if (s->kept != NULL && d > 0 && d % s->block == 0) {
            /* The states of diagonal d - 1 and H of both before d: what diagonal d and all after it are made of. */
            int64_t from = align_first(s, align_most(d - 2, 0)) - 1, size = align_last(s, d - 1) + 2 - from;
            double *to = s->kept + (d / s->block - 1) * room;
            for (int64_t h = 0; h < s->layers; h++) {
                for (int k = 0; k < 4; k++, to += s->width)
                    memcpy(to, one->v[k] + h * one->stride + from, size * sizeof(double));
                memcpy(to, two->v[ALIGN_H] + h * two->stride + from, size * sizeof(double));
                to += s->width;
            }
        }
        align_step(s, d, a, b, two, one, now);
        if (s->end == ALIGN_LOCAL) {
            align_offer_pairs(s, now, d, align_most(a, 1), align_least(b, d - 1), ends);
        } else if (s->end == ALIGN_SEMIGLOBAL) {
            if (d >= s->n && a == d - s->n) align_offer(s, now, a, s->n, ends);
            if (d >= s->m && b == s->m && d < count - 1) align_offer(s, now, s->m, d - s->m, ends);
        } else if (d == count - 1) {
            align_offer(s, now, s->m, s->n, ends);
        }
        if (stop_count(&work, s->layers * (b - a + ALIGN_MARGIN)) < 0) return -1;
    }
    return stop_poll(work);
}

/* The values of all cells: table[k][i][j] for state k, -inf where none is. */
static int align_table(const align_task *s, double *table) {
    int64_t cells = s->m + ALIGN_MARGIN, size = (s->m + 1) * (s->n + 1), work = 0;
    align_row row[3];
    for (int64_t k = 0; k < 3 * size; k += s->n + 1) {
        for (int64_t j = 0; j <= s->n; j++) table[k + j] = -INFINITY;
        if (stop_count(&work, s->n + 1) < 0) return -1;
    }
    for (int r = 0; r < 3; r++) row[r] = align_at(s, s->rows + r * 4 * cells, cells, 2);
    for (int64_t k = 0; k < 12 * cells; k++) s->rows[k] = -INFINITY;
    for (int64_t d = 0; d <= s->m + s->n; d++) {
        int64_t a = align_first(s, d), b = align_last(s, d);
        align_step(s, d, a, b, &row[(d + 1) % 3], &row[(d + 2) % 3], &row[d % 3]);
        for (int k = 0; k < 3; k++)
            for (int64_t i = a; i <= b; i++) table[k * size + i * (s->n + 1) + d - i] = row[d % 3].v[k][i];
        if (stop_count(&work, 16 * (b - a + 1)) < 0) return -1;     /* each cell in a line of the cache of its own */
    }
    return stop_poll(work);
}

/* The diagonals from the start of the block of cell (i, j) to that of the cell itself, as far as they matter to it,
 * into `triangle`: diagonal start + r - 2 is row r. Returns the rows' common layout in `base`. */
static int align_block(const align_task *s, int64_t i, int64_t j, align_row *base, int64_t *start) {
    int64_t work = 0, d = i + j, first = d - d % s->block, side = s->block + ALIGN_MARGIN, room = 5 * s->layers * s->width;
    int64_t shift = 2 - (i - s->block), row = 4 * s->layers * side;
    *base = align_at(s, s->triangle, side, shift);
    *start = first;
    for (int64_t k = 0; k < 2 * row; k++) s->triangle[k] = -INFINITY;
    if (first > 0) {
        int64_t from = align_first(s, align_most(first - 2, 0)) - 1, upto = align_last(s, first - 1) + 1;
        int64_t low = align_most(from, i - s->block - 1), high = align_least(upto, i);
        const double *kept = s->kept + (first / s->block - 1) * room - from;
        for (int64_t h = 0; h < s->layers; h++)
            for (int k = 0; k < 5; k++, kept += s->width)
                if (high >= low)
                    memcpy(base->v[k == 4 ? ALIGN_H : k] + h * base->stride + (k == 4 ? 0 : row) + low, kept + low,
                           (high - low + 1) * sizeof(double));
    }
    align_row two = *base, one = two, out;
    for (int k = 0; k < 4; k++) one.v[k] += row;
    for (int64_t t = first; t <= d; t++, two = one, one = out) {
        out = one;
        for (int k = 0; k < 4; k++) out.v[k] += row;
        int64_t a = align_most(align_first(s, t), i - (d - t)), b = align_least(align_last(s, t), i);
        align_step(s, t, a, b, &two, &one, &out);
        if (stop_count(&work, s->layers * (b - a + ALIGN_MARGIN)) < 0) return -1;
    }
    return stop_poll(work);
}

/* From an end back to the start. Operations are written into path from path[*at - 1] downwards, in the three codes;
 * *at and the end become those of the start. With `script`, which holds the operations of another alignment with this
 * end up to *at, that one is followed, and `detour` becomes the best place to leave it for good (going backwards):
 * the score of the best alignment that shares the operations from detour.at on, and then is in another state. */
static int align_walk(const align_task *s, align_end *end, int64_t layer, const uint8_t *script, uint8_t *path,
                      int64_t *at, align_end *detour) {
    double cost[3] = {-INFINITY, -INFINITY, -INFINITY}, floor = -INFINITY, suffix = 0.0;
    int64_t i = end->i, j = end->j, done = end->state == ALIGN_START;
    if (!done) cost[end->state] = 0.0;
    if (detour != NULL) *detour = (align_end){-INFINITY, 0, 0, ALIGN_START, 0};
    while (!done) {
        align_row base;
        int64_t start, row = 4 * s->layers * (s->block + ALIGN_MARGIN);
        if (align_block(s, i, j, &base, &start) < 0) return -1;
        while (!done && i + j >= start) {
            double value[4];
            int64_t state = ALIGN_PAIR, place = (i + j - start + 2) * row + layer * base.stride + i;
            for (int k = 0; k < 3; k++) value[k] = base.v[k][place] + cost[k];
            value[ALIGN_START] = floor;
            if (script != NULL) {
                int border = s->begin != ALIGN_LOCAL && (i == 0 || j == 0);
                state = *at > 0 ? script[*at - 1] : border ? ALIGN_PAIR : ALIGN_START;
                for (int k = 0; k < 4; k++)
                    if (k != state && value[k] + suffix > detour->score)
                        *detour = (align_end){value[k] + suffix, i, j, k, *at};
            } else {
                if (value[ALIGN_SKIP_X] > value[state]) state = ALIGN_SKIP_X;
                if (value[ALIGN_SKIP_Z] > value[state]) state = ALIGN_SKIP_Z;
                if (floor >= value[state]) state = ALIGN_START;
            }
            /* The borders stop whatever scores that overflowed may claim. */
            if (state == ALIGN_START || (i == 0 && state != ALIGN_SKIP_Z) || (j == 0 && state != ALIGN_SKIP_X)) {
                done = 1;
                break;
            }
            path[--*at] = (uint8_t)state;
            suffix += cost[state];
            floor = -INFINITY;
            if (state == ALIGN_PAIR) {
                suffix += s->pair[s->x[i] + s->z[s->n - j]];
                if (layer > 0 && align_is_hit(s, i, j)) layer--;
                cost[0] = cost[1] = cost[2] = 0.0;
                if (s->begin == ALIGN_LOCAL && layer == 0) floor = 0.0;
                i--, j--;
            } else if (state == ALIGN_SKIP_X) {
                cost[ALIGN_PAIR] = align_open_x(s, i, j);
                cost[ALIGN_SKIP_X] = align_extend_x(s, i, j);
                cost[ALIGN_SKIP_Z] = -INFINITY;
                i--;
            } else {
                cost[ALIGN_PAIR] = cost[ALIGN_SKIP_X] = align_open_z(s, i, j);
                cost[ALIGN_SKIP_Z] = align_extend_z(s, i, j);
                j--;
            }
        }
    }
    end->i = i;
    end->j = j;
    end->state = ALIGN_START;
    return 0;
}

#endif
