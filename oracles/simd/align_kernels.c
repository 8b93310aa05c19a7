#include "align_posteriors.h"
#include "align_striped.h"
#include "align_sums.h"

KERNELS(align) = {
    .forward = align_forward, .walk = align_walk, .table = align_table, .is_hit = align_is_hit,
    .log_sum = align_log_sum, .expected = align_expected, .profile = align_profile, .striped = align_striped,
};
