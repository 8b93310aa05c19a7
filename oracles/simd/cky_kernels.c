#include "cky_inside.h"
#include "cky_sums.h"

KERNELS(cky) = {.inside = cky_inside, .sums_inside = cky_sums_inside, .sums_outside = cky_sums_outside};
