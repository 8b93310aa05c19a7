#include "stop.h"

int (*stop_poll)(int64_t work);
