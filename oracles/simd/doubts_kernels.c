#include "doubts.h"

KERNELS(doubts) = {.prepare = doubts_prepare, .of = doubts_of, .add = doubts_add};
