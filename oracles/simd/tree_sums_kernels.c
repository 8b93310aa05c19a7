#include "tree_sums.h"

KERNELS(tree_sums) = {.lanes = PART, .sums = trees_sums, .beside = trees_beside, .alone = trees_alone, .table = trees_table};
