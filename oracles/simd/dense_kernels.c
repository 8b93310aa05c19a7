#include "dense.h"

KERNELS(dense) = {
    .fill = rows_fill, .products = dense_products, .dot = dense_dot, .add = dense_add, .accumulate = dense_accumulate,
    .positions = dense_positions, .violator = dense_violator, .exponentials = dense_exponentials, .tops = dense_tops,
};
