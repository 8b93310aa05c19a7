#include "chain_expect.h"

KERNELS(chain) = {
    .tables = chain_tables, .best = chain_best, .count = chain_count, .count_path = chain_count_path,
    .kbest = chain_kbest, .max_marginals = chain_max_marginals, .expect = chain_expect, .token_dot = rows_token_dot,
};
