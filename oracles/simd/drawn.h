/* A draw in proportion to weights, by a uniform number. */
#ifndef STRUCTSVM_DRAWN_H
#define STRUCTSVM_DRAWN_H

#include <stdint.h>

/* The first place where the sum of weights exceeds u of their total. */
static inline int64_t drawn_place(const double *weights, int64_t n, double u) {
    double below = 0.0;
    int64_t last = 0;
    for (int64_t k = 0; k < n; k++) below += weights[k];
    below *= u;
    for (int64_t k = 0; k < n; k++) {
        if (!(weights[k] > 0.0)) continue;
        last = k;
        if ((below -= weights[k]) < 0.0) break;
    }
    return last;
}

#endif
