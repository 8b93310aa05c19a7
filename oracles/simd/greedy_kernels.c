#include "greedy.h"

KERNELS(greedy) = {.score = greedy_score, .decode = greedy_decode};
