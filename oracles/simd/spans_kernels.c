#include "brackets.h"
#include "segments.h"

KERNELS(spans) = {
    .segment_sums = segment_sums, .segment_best = segment_best, .bracket_sums = bracket_sums, .bracket_best = bracket_best,
    .bracketing_draw = bracketing_draw, .bracketing_copy = bracketing_copy,
};
