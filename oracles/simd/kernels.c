#include "kernels.h"

#define JOIN(a, b) a##b
#define NAMED(set) JOIN(kernels_, set)
#define TEXT(x) #x
#define QUOTED(x) TEXT(x)

/* KERNELS is the name of the instruction set this file is being compiled for, KERNELS_FOR_... the structure: a module is
 * linked with the kernels that it calls, and the others are NULL. */
const kernels NAMED(KERNELS) = {
    .name = QUOTED(KERNELS),
#if defined(KERNELS_FOR_labels) || defined(KERNELS_FOR_rows)
    .fill = chain_fill,
#endif
#ifdef KERNELS_FOR_chain
    .tables = chain_tables, .best = chain_best, .count = chain_count, .count_path = chain_count_path, .kbest = chain_kbest,
    .max_marginals = chain_max_marginals, .expect = chain_expect, .token_dot = rows_token_dot,
#endif
#ifdef KERNELS_FOR_labels
    .spread = chain_spread, .dot = chain_dot, .add_rows = chain_add_rows, .add_rows_exactly = chain_add_rows_exactly,
#endif
#ifdef KERNELS_FOR_greedy
    .greedy_score = greedy_score, .greedy_decode = greedy_decode,
#endif
#ifdef KERNELS_FOR_align
    .align_forward = align_forward, .align_walk = align_walk, .align_table = align_table, .align_is_hit = align_is_hit,
    .align_log_sum = align_log_sum, .align_profile = align_profile, .align_striped = align_striped,
#endif
#ifdef KERNELS_FOR_cky
    .inside = cky_inside, .sums_inside = cky_sums_inside, .sums_outside = cky_sums_outside,
#endif
#ifdef KERNELS_FOR_arcs
    .arcs_look = arcs_look, .arcs_fill = arcs_fill, .arcs_label = arcs_label, .arcs_features = arcs_features,
    .pairs_begin = pairs_begin, .pairs_look = pairs_look, .pairs_choose = pairs_choose, .pairs_climb = pairs_climb, .pairs_differences = pairs_differences, .pairs_crossing = pairs_crossing,
    .eisner_best = eisner_best, .eisner_sums = eisner_sums, .arborescence_best = arborescence_best, .arborescence_sums = arborescence_sums,
#endif
#ifdef KERNELS_FOR_hybrid
    .hybrid_fill = hybrid_fill, .hybrid_spread = hybrid_spread,
#endif
#ifdef KERNELS_FOR_layers
    .layer_add = layer_add, .layer_back = layer_back, .layer_move = layer_move,
#endif
#ifdef KERNELS_FOR_rows
    .dense_products = dense_products, .dense_dot = dense_dot, .dense_add = dense_add,
    .dense_accumulate = dense_accumulate, .dense_positions = dense_positions, .dense_violator = dense_violator,
    .dense_exponentials = dense_exponentials, .dense_tops = dense_tops,
#endif
#ifdef KERNELS_FOR_bags
    .dense_products_d = dense_products_d, .dense_dot_d = dense_dot_d, .dense_add_d = dense_add_d,
    .dense_exponentials = dense_exponentials,
#endif
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
