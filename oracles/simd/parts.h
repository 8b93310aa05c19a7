/* Vectors of floats that fill a register of the instruction set.
 */
#ifndef STRUCTSVM_PARTS_H
#define STRUCTSVM_PARTS_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "maxima.h"

#define ROWS_INLINE static inline __attribute__((always_inline))

#if defined(__clang__) || __GNUC__ >= 12
#define ROWS_PICK(type, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define ROWS_PICK(type, a, b, ...) __builtin_shuffle(a, b, (type){__VA_ARGS__})
#endif

/* Processors of before 2013 do with less code, some of which would be for them alone. */
#if defined(__SSE2__) && !defined(__AVX__)
#define PARTS_OLD 1
#else
#define PARTS_OLD 0
#endif

/* GCC keeps sums of vectors that are wider than registers in memory. */
#if defined(__AVX512F__)
enum { PART = 16 };
#define rows_part_max maxima_of_16f
#elif defined(__AVX__)
enum { PART = 8 };
#define rows_part_max maxima_of_8f
#else
enum { PART = 4 };
#define rows_part_max maxima_of_4f
#endif
typedef float rows_part __attribute__((vector_size(4 * PART), aligned(4), may_alias));
typedef int32_t rows_part_bits __attribute__((vector_size(4 * PART)));

/* Before a loop over the parts of some vectors, so that these stay in registers. */
#if defined(__GNUC__) && !defined(__clang__)
#define EACH_PART _Pragma("GCC unroll 12")
#else
#define EACH_PART
#endif

/* Before a loop that is not to be unrolled, for less code. */
#if defined(__GNUC__) && !defined(__clang__)
#define ONE_BY_ONE _Pragma("GCC unroll 1")
#else
#define ONE_BY_ONE
#endif

ROWS_INLINE rows_part part_all(float x) { return x - (rows_part){0}; }

/* f of all lanes, in each lane. */
#if defined(__AVX512F__)
#define PART_TURNED(x, l) \
    ROWS_PICK(rows_part_bits, x, x, l, l + 1, l + 2, l + 3, l + 4, l + 5, l + 6, l + 7, l + 8, l + 9, l + 10, l + 11, l + 12, \
              l + 13, l + 14, l + 15)
#define PART_REDUCED(x, f) \
    (x = f(x, PART_TURNED(x, 8)), x = f(x, PART_TURNED(x, 4)), x = f(x, PART_TURNED(x, 2)), f(x, PART_TURNED(x, 1)))
#elif defined(__AVX__)
#define PART_TURNED(x, l) ROWS_PICK(rows_part_bits, x, x, l, l + 1, l + 2, l + 3, l + 4, l + 5, l + 6, l + 7)
#define PART_REDUCED(x, f) (x = f(x, PART_TURNED(x, 4)), x = f(x, PART_TURNED(x, 2)), f(x, PART_TURNED(x, 1)))
#else
#define PART_TURNED(x, l) ROWS_PICK(rows_part_bits, x, x, l, l + 1, l + 2, l + 3)
#define PART_REDUCED(x, f) (x = f(x, PART_TURNED(x, 2)), f(x, PART_TURNED(x, 1)))
#endif

ROWS_INLINE rows_part part_sum(rows_part a, rows_part b) { return a + b; }

/* ---- kernels with an entry of a batch in each lane ---- */

typedef double lanes_double __attribute__((vector_size(8 * PART)));

ROWS_INLINE rows_part lanes_only(rows_part_bits m, rows_part x) { return (rows_part)((rows_part_bits)x & m); }

ROWS_INLINE rows_part lanes_where(rows_part_bits m, rows_part a, rows_part b) {
    return (rows_part)(((rows_part_bits)a & m) | ((rows_part_bits)b & ~m));
}

/* The lanes that are not 0, a bit each. */
ROWS_INLINE unsigned lanes_set(rows_part_bits m) {
    unsigned bits = 0;
    for (int l = 0; l < PART; l++) bits |= (unsigned)(m[l] != 0) << l;
    return bits;
}

#endif
