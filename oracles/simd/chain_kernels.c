#include "ruled.h"

KERNELS(chain) = {
    .tables = chain_tables, .best = chain_best, .count = chain_count, .count_path = chain_count_path,
    .kbest = chain_kbest, .max_marginals = chain_max_marginals, .expect = chain_expect, .token_dot = rows_token_dot,
};

KERNELS(ruled) = {
    .tables = chain_tables, .best = ruled_best, .count = ruled_count, .count_path = ruled_count_path,
    .kbest = ruled_kbest, .max_marginals = ruled_max_marginals, .expect = ruled_expect, .token_dot = rows_token_dot,
};
