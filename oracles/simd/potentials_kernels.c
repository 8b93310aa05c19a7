#include "potentials.h"

KERNELS(potentials) = {.sums = {sums_float, sums_double}, .best = {best_float, best_double}};
