#include "hybrid.h"

KERNELS(hybrid) = {.fill = hybrid_fill, .spread = hybrid_spread};
