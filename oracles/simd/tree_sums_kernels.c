#include "tree_sums.h"

/* With AVX-512 floats alone are in wider vectors: doubles are those of AVX2. */
#ifdef __AVX512F__
KERNELS(tree_sums) = {.lanes = PART, .beside = trees_beside, .alone = trees_alone};
#else
KERNELS(tree_sums) = {.lanes = PART, .sums = trees_sums, .beside = trees_beside, .table = trees_table};
#endif
