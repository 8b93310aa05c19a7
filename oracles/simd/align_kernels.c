#include "align_striped.h"
#include "align_sums.h"

KERNELS(align) = {
    .forward = align_forward, .walk = align_walk, .table = align_table, .is_hit = align_is_hit,
    .log_sum = align_log_sum, .profile = align_profile, .striped = align_striped,
};
