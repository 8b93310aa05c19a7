#include "tree_sums.h"

KERNELS(tree_sums) = {.sums = trees_sums};
