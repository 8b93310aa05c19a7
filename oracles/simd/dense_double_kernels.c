#include "dense.h"

KERNELS(dense_double) = {
    .products = dense_products_d, .dot = dense_dot_d, .add = dense_add_d, .exponentials = dense_exponentials,
};
