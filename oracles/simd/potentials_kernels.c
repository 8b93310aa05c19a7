#include "potentials.h"

/* With AVX-512 floats alone are in wider vectors, which doubles gain nothing from: these are those of AVX2. */
#if defined(__AVX512F__)
KERNELS(potentials) = {
    .lanes = PART, .beside = sums_beside, .sums = {sums_float}, .best = {best_float}, .within = numbers_within,
    .labels = labels_within, .add = numbers_add, .total = numbers_total
};
#elif PARTS_OLD
KERNELS(potentials) = {
    .lanes = 1, .sums = {sums_float, sums_double}, .best = {best_float, best_double}, .within = numbers_within,
    .labels = labels_within, .add = numbers_add, .total = numbers_total
};
#else
KERNELS(potentials) = {
    .lanes = PART, .beside = sums_beside, .sums = {sums_float, sums_double}, .best = {best_float, best_double},
    .within = numbers_within, .labels = labels_within, .add = numbers_add, .total = numbers_total
};
#endif
