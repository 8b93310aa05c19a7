/* Dependency trees: scores of arcs and of pairs of arcs, and the trees that are the best under them. */
#ifndef STRUCTSVM_DEPENDENCY_H
#define STRUCTSVM_DEPENDENCY_H

#include "arborescence.h"
#include "arcs.h"
#include "eisner.h"
#include "pairs.h"
#include "sets.h"

typedef struct {
    void (*arcs_look)(const arcs_model *a, arcs_sentence *s);
    int (*arcs_fill)(const arcs_model *a, const float *W, arcs_sentence *s, const int32_t *heads,
                     const int32_t *labels);
    int32_t (*arcs_label)(const arcs_model *a, const float *W, const arcs_sentence *s, int64_t h, int64_t m,
                          const int32_t *heads, const int32_t *labels);
    int64_t (*arcs_features)(const arcs_model *a, const arcs_sentence *s, int64_t h, int64_t m, int32_t *at,
                             int32_t *rows, float *numbers);
    void (*pairs_begin)(const arcs_model *a, pairs_search *p);
    void (*pairs_look)(const arcs_model *a, arcs_sentence *s, pairs_search *p);
    void (*pairs_choose)(const arcs_model *a, const float *W, const arcs_sentence *s, const int32_t *heads,
                         const int32_t *labels, const int32_t *found, float gap, pairs_choice *choices,
                         int32_t *n_choices);
    int (*pairs_climb)(const arcs_model *a, const float *W, int64_t n, pairs_search *p, int projective,
                       const pairs_choice *choices, const int32_t *n_choices, const int32_t *heads,
                       const int32_t *labels, int32_t *found);
    void (*pairs_differences)(const arcs_model *a, int64_t n, const pairs_search *p, const int32_t *heads,
                              const int32_t *labels, const int32_t *words, int64_t n_words, int32_t *plus,
                              int64_t *n_plus, int32_t *minus, int64_t *n_minus, int64_t *crossings);
    int64_t (*pairs_crossing)(int64_t n, const int32_t *heads);
    int (*eisner_best)(int64_t n, const float *scores, float *memory, int32_t *stack, int32_t *heads, float *best);
    int (*eisner_sums)(int64_t n, const double *scores, double *memory, double *log_sum, double *arcs);
    int (*eisner_samples)(int64_t n, const double *scores, double *memory, int32_t *stack, int64_t n_samples,
                          const double *uniforms, int32_t *heads);
    int (*arborescence_best)(int64_t n, const float *scores, void *memory, int32_t *heads, float *best);
    int (*arborescence_sums)(int64_t n, const double *scores, double *memory, double *log_sum, double *arcs);
    int (*arborescence_samples)(int64_t n, const double *scores, double *memory, int64_t n_samples,
                                const double *uniforms, int32_t *heads);
} dependency_kernels;

KERNELS_OF(dependency);

#endif
