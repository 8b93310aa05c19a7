#include "kernels.h"

#define JOIN(a, b) a##b
#define NAMED(set) JOIN(kernels_, set)
#define TEXT(x) #x
#define QUOTED(x) TEXT(x)

/* KERNELS is the name of the instruction set this file is being compiled for. */
const kernels NAMED(KERNELS) = {
    QUOTED(KERNELS), chain_fill, chain_best, chain_count, chain_count_path, chain_kbest, chain_max_marginals,
    chain_expect, chain_spread, chain_dot, chain_add_rows,
    chain_add_rows_exactly,
    greedy_score, greedy_decode, rows_token_dot, align_forward, align_walk, align_table, align_is_hit, cky_inside,
    dense_products, dense_dot, dense_add, dense_accumulate, dense_products_d, dense_dot_d, dense_add_d, dense_positions,
    dense_violator, dense_exponentials, dense_tops,
};

#ifdef KERNELS_CHOOSE
int (*stop_poll)(int64_t work);

#ifdef KERNELS_HAVE_avx2
extern const kernels kernels_avx2;
#endif

const kernels *kernels_of(int set, int (*poll)(int64_t work)) {
    stop_poll = poll;
#ifdef KERNELS_HAVE_avx2
    if (set > 0) return &kernels_avx2;
#endif
    return &kernels_baseline;
}
#endif
