/* How the kernels, which are plain C, are interrupted: `stop_poll` is `poll` of structsvm/execution/_stop.pxd, set by the
 * module that the kernels are linked into. A kernel that may run for longer than some milliseconds counts its work, and
 * returns as soon as a count is negative: a Python exception is set then. What is left of the count in the end may be
 * forgotten where the loop over examples polls, too. */
#ifndef STRUCTSVM_STOP_H
#define STRUCTSVM_STOP_H

#include <stdint.h>

enum { STOP_PART = 1 << 16 };   /* units of work, about a nanosecond each, between two polls */

extern __attribute__((visibility("hidden"))) int (*stop_poll)(int64_t work);

static inline __attribute__((always_inline)) int stop_count(int64_t *work, int64_t more) {
    *work += more;
    if (__builtin_expect(*work < STOP_PART, 1)) return 0;
    more = *work;
    *work = 0;
    return stop_poll(more);
}

#endif
