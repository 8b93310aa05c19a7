/* The compiled kernels of label chains, alignments, the parser's chart and dense rows, one set per instruction set.
 *
 * kernels.c is compiled several times, each time under another name (KERNELS), and `kernels_of` returns the one that
 * structsvm/execution/_processor.pyx chose. Where there is no faster set, the baseline serves; for avx512 that of avx2 does: rows
 * of labels are few vectors long.
 *
 * Kernels that return an int, or int64_t, return a negative number once `stop_poll` has (see stop.h).
 */
#ifndef STRUCTSVM_KERNELS_H
#define STRUCTSVM_KERNELS_H

#include "align.h"
#include "align_striped.h"
#include "align_sums.h"
#include "arborescence.h"
#include "arcs.h"
#include "chain_expect.h"
#include "cky_inside.h"
#include "cky_sums.h"
#include "dense.h"
#include "eisner.h"
#include "greedy.h"
#include "hybrid.h"
#include "layers.h"
#include "pairs.h"
#include "stop.h"

typedef struct {
    const char *name;
    void (*fill)(const float *W, int64_t stride, const int64_t *indptr, const int32_t *indices,
                 const float *values, int64_t T, const float *init, int64_t init_step, float *E);
    int (*tables)(const chain_scores *s, const float *A, const float *W, const int64_t *indptr, const int32_t *indices,
                  const float *values, int64_t T, float *rows, float *tables);
    int (*best)(chain_scores *s, const float *E, const int32_t *gold, int64_t T, float *V,
                float *sums, int32_t *path, float *score);
    int (*count)(const chain_scores *s, const float *E, const int32_t *gold, int64_t T, int64_t cap,
                 float *V, float *best);
    void (*count_path)(const chain_scores *s, const int32_t *gold, int64_t T, int64_t cap, int64_t d,
                       const float *V, float *sums, int32_t *path);
    int64_t (*kbest)(const chain_scores *s, const float *E, int64_t T, int64_t k, float *score,
                     int64_t *back, int64_t *heads, int32_t *paths, float *totals);
    int (*max_marginals)(const chain_scores *s, const float *E, int64_t T, const float *V, float *B, float *out);
    int (*expect)(const chain_scores *s, const float *E, const int32_t *gold, int64_t T, float *R, float *tops,
                  float *work, float *moments, int64_t n_edges, int has_end, double *out);
    int64_t (*spread)(const int64_t *indptr, const int32_t *indices, const float *values, int64_t T, int64_t stride,
                      const float *moments, int32_t *slot, int32_t *list, float *rows);
    double (*dot)(const float *a, const float *b, int64_t n);
    void (*add_rows)(float *W, int64_t stride, const int32_t *list, int64_t n, const float *rows, float coef);
    void (*add_rows_exactly)(double *W, int64_t stride, const int32_t *list, int64_t n, const float *rows, double coef);
    void (*greedy_score)(const float *W, int64_t stride, int64_t K, int64_t order, int64_t first,
                         const int32_t *index, const float *values, int64_t n, const int32_t *labels,
                         int64_t t, const float *init, int64_t first_pair, const int32_t *pair_index,
                         const float *pair_values, int64_t n_pairs, int32_t *rows, float *out);
    int64_t (*greedy_decode)(const float *W, int64_t stride, int64_t K, int64_t order, int64_t first,
                             const int64_t *indptr, const int32_t *indices, const float *values, int64_t T,
                             const float *init, int64_t init_step, const float *mask, int64_t first_pair,
                             const int64_t *pair_indptr, const int32_t *pair_indices, const float *pair_values,
                             int32_t *rows, float *out, float *scores, int32_t *labels);
    double (*token_dot)(const int32_t *ia, const float *va, int64_t na,
                        const int32_t *ib, const float *vb, int64_t nb);
    int (*align_forward)(const align_task *s, align_end *ends);
    int (*align_walk)(const align_task *s, align_end *end, int64_t layer, const uint8_t *script, uint8_t *path,
                      int64_t *at, align_end *detour);
    int (*align_table)(const align_task *s, double *table);
    int (*align_log_sum)(const align_task *s, double beta, align_sums *rows, align_sum *found);
    void (*align_profile)(striped_task *s, const int32_t *x, const double *pair, int64_t side, int64_t off);
    int (*align_striped)(const striped_task *s, const int32_t *z, int64_t n, double *score);
    int (*align_is_hit)(const align_task *s, int64_t i, int64_t j);
    int (*inside)(cky_chart *h);
    int (*sums_inside)(cky_chart *h, cky_sums *f, double *log_sum);
    int (*sums_outside)(cky_chart *h, cky_sums *f, double log_sum, double *psi);
    void (*dense_products)(const float *W, int64_t width, const float *x, int64_t n, float *out);
    double (*dense_dot)(const float *w, const float *x, int64_t width);
    void (*dense_add)(float *w, const float *x, float amount, int64_t width);
    void (*dense_accumulate)(double *w, const float *x, double amount, int64_t width);
    void (*dense_products_d)(const double *W, int64_t width, const double *x, int64_t n, double *out);
    double (*dense_dot_d)(const double *w, const double *x, int64_t width);
    void (*dense_add_d)(double *w, const double *x, double amount, int64_t width);
    void (*dense_positions)(const float *U, const float *bias, const int32_t *base, const int32_t *first,
                            const int32_t *attribute, const float *value, int64_t n_positions, float *S);
    int64_t (*dense_violator)(const double *scores, const float *losses, int64_t n, double true_score);
    double (*dense_exponentials)(float *s, int64_t n, double *top, double *mean);
    void (*dense_tops)(const float *S, const int32_t *position, const float *scale, int64_t n_outputs, int32_t *out);
    void (*arcs_look)(const arcs_model *a, arcs_sentence *s);
    int (*arcs_fill)(const arcs_model *a, const float *W, arcs_sentence *s, const int32_t *heads, const int32_t *labels);
    int32_t (*arcs_label)(const arcs_model *a, const float *W, const arcs_sentence *s, int64_t h, int64_t m,
                          const int32_t *heads, const int32_t *labels);
    int64_t (*arcs_features)(const arcs_model *a, const arcs_sentence *s, int64_t h, int64_t m, int32_t *at, int32_t *rows,
                             float *numbers);
    void (*pairs_begin)(const arcs_model *a, pairs_search *p);
    void (*pairs_look)(const arcs_model *a, arcs_sentence *s, pairs_search *p);
    void (*pairs_choose)(const arcs_model *a, const float *W, const arcs_sentence *s, const int32_t *heads, const int32_t *labels,
                         const int32_t *found, float gap, pairs_choice *choices, int32_t *n_choices);
    int (*pairs_climb)(const arcs_model *a, const float *W, int64_t n, pairs_search *p, int projective, const pairs_choice *choices,
                       const int32_t *n_choices, const int32_t *heads, const int32_t *labels, int32_t *found);
    void (*pairs_differences)(const arcs_model *a, int64_t n, const pairs_search *p, const int32_t *heads, const int32_t *labels,
                              const int32_t *words, int64_t n_words, int32_t *plus, int64_t *n_plus, int32_t *minus, int64_t *n_minus,
                              int64_t *crossings);
    int64_t (*pairs_crossing)(int64_t n, const int32_t *heads);
    int (*eisner_best)(int64_t n, const float *scores, float *memory, int32_t *stack, int32_t *heads, float *best);
    int (*eisner_sums)(int64_t n, const double *scores, double *memory, double *log_sum, double *arcs);
    int (*arborescence_best)(int64_t n, const float *scores, void *memory, int32_t *heads, float *best);
    int (*arborescence_sums)(int64_t n, const double *scores, double *memory, double *log_sum, double *arcs);
    int (*hybrid_fill)(hybrid_chart *h, int best);
    int (*hybrid_spread)(hybrid_chart *h);
    void (*layer_add)(const float *W, int64_t stride, const float *x, int64_t m, float *out);
    void (*layer_back)(const float *W, int64_t stride, const float *y, int64_t m, float *out);
    void (*layer_move)(float *W, int64_t stride, const float *x, int64_t m, const float *y, float step);
} kernels;

/* The kernels of a set (0 baseline, 1 avx2, 2 avx512), which will call `poll`. */
const kernels *kernels_of(int set, int (*poll)(int64_t work));

#endif
