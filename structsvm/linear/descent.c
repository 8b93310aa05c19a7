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

/* Steps are bound by memory: vectors of more than 32 bytes make them no faster. FEW numbers are a short vector. */
#define STEP_BYTES (VECTOR_BYTES < 32 ? VECTOR_BYTES : 32)
#define FEW 4

#define real float
#define whole int32_t
#define LANES (VECTOR_BYTES / 4)
#define STEP (STEP_BYTES / 4)
#define TYPED(name) name##_float
#include "descent_rows.h"
#undef real
#undef whole
#undef LANES
#undef STEP
#undef TYPED

#define real double
#define whole int64_t
#define LANES (VECTOR_BYTES / 8)
#define STEP (STEP_BYTES / 8)
#define TYPED(name) name##_double
#include "descent_rows.h"
#undef real
#undef whole
#undef LANES
#undef STEP
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

const descent *descent_of(int set) {
#ifdef DESCENT_HAVE_x86
    if (set > 0) return set > 1 ? &descent_avx512 : &descent_avx2;
#endif
    return &descent_baseline;
}
#endif
