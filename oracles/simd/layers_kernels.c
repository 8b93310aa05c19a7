#include "layers.h"

KERNELS(layers) = {.add = layer_add, .back = layer_back, .move = layer_move};
