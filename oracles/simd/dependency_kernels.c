#include "dependency.h"

KERNELS(dependency) = {
    .arcs_look = arcs_look, .arcs_fill = arcs_fill, .arcs_label = arcs_label, .arcs_features = arcs_features,
    .pairs_begin = pairs_begin, .pairs_look = pairs_look, .pairs_choose = pairs_choose, .pairs_climb = pairs_climb,
    .pairs_differences = pairs_differences, .pairs_crossing = pairs_crossing, .eisner_best = eisner_best,
    .eisner_sums = eisner_sums, .arborescence_best = arborescence_best, .arborescence_sums = arborescence_sums,
    .eisner_samples = eisner_samples, .arborescence_samples = arborescence_samples,
};
