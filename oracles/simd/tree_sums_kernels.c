#include "tree_sums.h"

/* With AVX-512 floats alone are in wider vectors: doubles are those of AVX2. */
#if defined(__AVX512F__)
KERNELS(tree_sums) = {.lanes = PART, .beside = trees_beside, .alone = trees_alone};
#elif PARTS_OLD
KERNELS(tree_sums) = {.lanes = 1, .sums = trees_sums, .table = trees_table};
#else
KERNELS(tree_sums) = {.lanes = PART, .sums = trees_sums, .beside = trees_beside, .table = trees_table};
#endif
