/* The greater of each two lanes; the second where neither is (equal, or not a number). Written out, because compilers
 * see a maximum in some loops and not in others: one instruction a register on x86, compare and select elsewhere.
 *
 * maxima_of_8f is for vectors of 8 floats, maxima_of_4d for those of 4 doubles, and so on: whatever fits a register of
 * the instruction set, and 32 bytes always.
 */
#ifndef STRUCTSVM_MAXIMA_H
#define STRUCTSVM_MAXIMA_H

#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <immintrin.h>
#endif

#define MAXIMA_TYPES(LANES, f, real, whole) \
    typedef real maxima_##LANES##f __attribute__((vector_size(LANES * sizeof(real)))); \
    typedef whole maxima_##LANES##f##_mask __attribute__((vector_size(LANES * sizeof(real))));
MAXIMA_TYPES(4, f, float, int32_t)
MAXIMA_TYPES(8, f, float, int32_t)
MAXIMA_TYPES(16, f, float, int32_t)
MAXIMA_TYPES(2, d, double, int64_t)
MAXIMA_TYPES(4, d, double, int64_t)
MAXIMA_TYPES(8, d, double, int64_t)
MAXIMA_TYPES(8, s, int16_t, int16_t)
MAXIMA_TYPES(16, s, int16_t, int16_t)
#undef MAXIMA_TYPES

#define MAXIMA(LANES, ...) \
    static inline __attribute__((always_inline)) maxima_##LANES maxima_of_##LANES(maxima_##LANES a, maxima_##LANES b) { \
        __VA_ARGS__ \
    }
#define MAXIMA_ONE(LANES, REGISTER, INSTRUCTION) \
    MAXIMA(LANES, return (maxima_##LANES)INSTRUCTION((REGISTER)a, (REGISTER)b);)
#define MAXIMA_TWO(LANES, REGISTER, INSTRUCTION) \
    MAXIMA(LANES, \
        REGISTER x[2], y[2]; \
        memcpy(x, &a, sizeof x); \
        memcpy(y, &b, sizeof y); \
        for (int half = 0; half < 2; half++) x[half] = INSTRUCTION(x[half], y[half]); \
        memcpy(&a, x, sizeof x); \
        return a;)
#define MAXIMA_SELECT(LANES) \
    MAXIMA(LANES, \
        maxima_##LANES##_mask m = a > b; \
        return (maxima_##LANES)(((maxima_##LANES##_mask)a & m) | ((maxima_##LANES##_mask)b & ~m));)

#ifdef __AVX512F__
MAXIMA_ONE(16f, __m512, _mm512_max_ps)
MAXIMA_ONE(8d, __m512d, _mm512_max_pd)
#endif
#if defined(__AVX__)
MAXIMA_ONE(8f, __m256, _mm256_max_ps)
MAXIMA_ONE(4d, __m256d, _mm256_max_pd)
#elif defined(__SSE2__)
MAXIMA_TWO(8f, __m128, _mm_max_ps)
MAXIMA_TWO(4d, __m128d, _mm_max_pd)
#else
MAXIMA_SELECT(8f)
MAXIMA_SELECT(4d)
#endif
#ifdef __AVX2__
MAXIMA_ONE(16s, __m256i, _mm256_max_epi16)
#endif
#ifdef __SSE2__
MAXIMA_ONE(8s, __m128i, _mm_max_epi16)
MAXIMA_ONE(4f, __m128, _mm_max_ps)
MAXIMA_ONE(2d, __m128d, _mm_max_pd)
#else
MAXIMA_SELECT(8s)
MAXIMA_SELECT(4f)
MAXIMA_SELECT(2d)
#endif

#undef MAXIMA
#undef MAXIMA_ONE
#undef MAXIMA_TWO
#undef MAXIMA_SELECT

#endif
