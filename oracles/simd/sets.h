/* Sets of kernels, one per instruction set.
 *
 * A structure's header declares the type NAME_kernels, a struct of pointers to functions, and by KERNELS_OF(NAME); the
 * function that chooses. NAME_kernels.c, which fills the struct, is compiled once per set, named KERNEL_SET:
 *
 *     KERNELS(NAME) = {.best = NAME_best, ...};
 *
 * The file of the baseline also defines the choice. Where there is no faster set, the baseline serves; for avx512 that of
 * avx2 does, as rows of labels are few vectors long, but where KERNELS_HAVE_avx512 is defined.
 *
 * Kernels that return an int, or int64_t, return a negative number once `stop_poll` has (see stop.h).
 */
#ifndef STRUCTSVM_SETS_H
#define STRUCTSVM_SETS_H

#include "stop.h"

/* For functions that leave the inner loops to others. */
#define SMALL __attribute__((noinline, optimize("Os")))

/* The kernels of a set (0 baseline, 1 avx2, 2 avx512), which will call `poll`. */
#define KERNELS_OF(name) const name##_kernels *name##_kernels_of(int set, int (*poll)(int64_t work))

#if defined(KERNELS_HAVE_avx512)
#define KERNELS_BEST(name, set) \
    ((set) > 1 ? &name##_kernels_avx512 : (set) > 0 ? &name##_kernels_avx2 : &name##_kernels_baseline)
#elif defined(KERNELS_HAVE_avx2)
#define KERNELS_BEST(name, set) ((set) > 0 ? &name##_kernels_avx2 : &name##_kernels_baseline)
#else
#define KERNELS_BEST(name, set) (&name##_kernels_baseline)
#endif

#define KERNELS_JOIN(name, set) name##_kernels_##set
#define KERNELS_NAMED(name, set) KERNELS_JOIN(name, set)
#define KERNELS_FILL(name) const name##_kernels KERNELS_NAMED(name, KERNEL_SET)
#define KERNELS_CHOICE(name) \
    extern const name##_kernels name##_kernels_baseline, name##_kernels_avx2, name##_kernels_avx512; \
    KERNELS_OF(name) { \
        stop_poll = poll; \
        return KERNELS_BEST(name, set); \
    }

#ifdef KERNELS_CHOOSE
#define KERNELS(name) KERNELS_CHOICE(name) KERNELS_FILL(name)
#else
#define KERNELS(name) KERNELS_FILL(name)
#endif

#endif
