#include "labels.h"

KERNELS(labels) = {
    .fill = rows_fill, .spread = labels_spread, .spread_again = labels_spread_again, .note = labels_note,
    .spread_noted = labels_spread_noted, .dot = labels_dot, .add_rows = labels_add_rows, .accumulate = labels_accumulate,
};
