/* Steps of stochastic gradient descent on dense weights with a diagonal rescaling B, whole rows at a time.
 *
 * descent.c is compiled once per instruction set, as products.c is; `descent_of` returns one.
 */
#ifndef STRUCTSVM_DESCENT_H
#define STRUCTSVM_DESCENT_H

#include <stdint.h>

typedef struct {
    const char *name;
    /* <x, w>. */
    double (*dot_float)(const float *x, const float *w, int64_t d);
    double (*dot_double)(const double *x, const double *w, int64_t d);
    /* w += step B x. */
    void (*move_float)(float *w, const float *B, const float *x, int64_t d, double step);
    void (*move_double)(double *w, const double *B, const double *x, int64_t d, double step);
    /* The same for sums in double. */
    void (*add_float)(double *u, const float *B, const float *x, int64_t d, double step);
    void (*add_double)(double *u, const double *B, const double *x, int64_t d, double step);
    /* w /= 1 + amount B; with u (or NULL) += when times the change of w. */
    void (*decay_float)(float *w, const float *B, double *u, int64_t d, double amount, double when);
    void (*decay_double)(double *w, const double *B, double *u, int64_t d, double amount, double when);
    /* h += rate (lambda + curvature x^2 - h); B = scale / h, from least to most. */
    void (*curve_float)(float *h, float *B, const float *x, int64_t d, double lambda, double curvature, double rate,
                        double scale, double least, double most);
    void (*curve_double)(double *h, double *B, const double *x, int64_t d, double lambda, double curvature,
                         double rate, double scale, double least, double most);
} descent;

/* The functions of a set: 0 baseline, 1 avx2, 2 avx512. */
const descent *descent_of(int set);

#endif
