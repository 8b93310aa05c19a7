#include "descent.h"

#include <stddef.h>

/* The widest vectors of the instruction set, in bytes. */
#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif

#define real float
#define LANES (VECTOR_BYTES / 4)
#define TYPED(name) name##_float
#include "descent_rows.h"
#undef real
#undef LANES
#undef TYPED

#define real double
#define LANES (VECTOR_BYTES / 8)
#define TYPED(name) name##_double
#include "descent_rows.h"
#undef real
#undef LANES
#undef TYPED

#define JOIN(a, b) a##b
#define NAMED(set) JOIN(descent_, set)
#define TEXT(x) #x
#define QUOTED(x) TEXT(x)

/* DESCENT is the name of the instruction set this file is being compiled for. */
const descent NAMED(DESCENT) = {
    QUOTED(DESCENT), dot_float, dot_double, move_float, move_double, add_float, add_double,
    decay_float, decay_double, curve_float, curve_double,
};

#ifdef DESCENT_CHOOSE
#ifdef DESCENT_HAVE_x86
extern const descent descent_avx2, descent_avx512;
#endif

const descent *descent_best(void) {
#ifdef DESCENT_HAVE_x86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f")) return &descent_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &descent_avx2;
#endif
    return &descent_baseline;
}
#endif
