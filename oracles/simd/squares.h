/* Squares of floats that are transposed in registers, between arrays of entries and vectors of a lane each.
 */
#ifndef STRUCTSVM_SQUARES_H
#define STRUCTSVM_SQUARES_H

#include "parts.h"

enum { SQUARE = PART < 8 ? PART : 8 };
typedef float lanes_square __attribute__((vector_size(4 * SQUARE), aligned(4), may_alias));
typedef int32_t lanes_square_bits __attribute__((vector_size(4 * SQUARE)));

/* The transpose of a square. */
ROWS_INLINE void lanes_turn(lanes_square *r) {
    lanes_square t[SQUARE];
#ifdef __AVX__
    lanes_square u[SQUARE];
    for (int j = 0; j < SQUARE; j += 2) {
        t[j] = ROWS_PICK(lanes_square_bits, r[j], r[j + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        t[j + 1] = ROWS_PICK(lanes_square_bits, r[j], r[j + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    for (int j = 0; j < SQUARE; j += 4)
        for (int k = 0; k < 2; k++) {
            u[j + 2 * k] = ROWS_PICK(lanes_square_bits, t[j + k], t[j + k + 2], 0, 1, 8, 9, 4, 5, 12, 13);
            u[j + 2 * k + 1] = ROWS_PICK(lanes_square_bits, t[j + k], t[j + k + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        }
    for (int j = 0; j < SQUARE / 2; j++) {
        r[j] = ROWS_PICK(lanes_square_bits, u[j], u[j + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        r[j + 4] = ROWS_PICK(lanes_square_bits, u[j], u[j + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
#else
    for (int j = 0; j < SQUARE; j += 2) {
        t[j] = ROWS_PICK(lanes_square_bits, r[j], r[j + 1], 0, 4, 1, 5);
        t[j + 1] = ROWS_PICK(lanes_square_bits, r[j], r[j + 1], 2, 6, 3, 7);
    }
    for (int j = 0; j < 2; j++) {
        r[2 * j] = ROWS_PICK(lanes_square_bits, t[j], t[j + 2], 0, 1, 4, 5);
        r[2 * j + 1] = ROWS_PICK(lanes_square_bits, t[j], t[j + 2], 2, 3, 6, 7);
    }
#endif
}

#endif
