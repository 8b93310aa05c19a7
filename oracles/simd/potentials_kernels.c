#include "potentials.h"

KERNELS(potentials) = {
    .lanes = PART, .beside = sums_beside, .sums = {sums_float, sums_double}, .best = {best_float, best_double},
    .within = numbers_within
};
