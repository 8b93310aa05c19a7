/* Exponentials and logarithms of some floats, after Cephes (expf, logf), and exponentials of some doubles, by the series:
 * within 2 units of the last place, and without branches. Compilers vectorise neither, and a call of the C library takes
 * as long as these of eight.
 */
#ifndef STRUCTSVM_EXPONENTIALS_H
#define STRUCTSVM_EXPONENTIALS_H

#include "parts.h"

#define LEAST_EXPONENT -87.0f   /* exp of less is 0 */

/* exp(x) for x <= 88; 0 for -inf. With k = round(x / log 2), exp(x) = 2^k exp(x - k log 2). */
ROWS_INLINE rows_part part_exp(rows_part x) {
    const rows_part magic = part_all(12582912.0f);     /* 1.5 * 2^23: its sum with a float is rounded to an integer */
    rows_part z = rows_part_max(x, part_all(LEAST_EXPONENT));
    rows_part k = z * part_all(1.44269504088896341f) + magic;
    rows_part_bits scale = (rows_part_bits)k << 23;
    k -= magic;
    rows_part r = z - k * part_all(0.693359375f) + k * part_all(2.12194440e-4f);
    rows_part p = part_all(1.9875691500e-4f);
    p = p * r + part_all(1.3981999507e-3f);
    p = p * r + part_all(8.3334519073e-3f);
    p = p * r + part_all(4.1665795894e-2f);
    p = p * r + part_all(1.6666665459e-1f);
    p = p * r + part_all(5.0000001201e-1f);
    p = p * (r * r) + (r + part_all(1.0f));
    return (rows_part)(((rows_part_bits)p + scale) & (rows_part_bits)(x >= part_all(LEAST_EXPONENT)));
}

/* log(x) for normal x > 0; -inf for 0. With x = 2^k m, sqrt(1/2) <= m < sqrt(2), log x = k log 2 + log m. */
ROWS_INLINE rows_part part_log(rows_part x) {
    rows_part_bits bits = (rows_part_bits)x;
    rows_part_bits half = (bits & 0x007fffff) | 0x3f000000;
    rows_part_bits small = (rows_part_bits)((rows_part)half < part_all(0.707106781186547524f));
    rows_part k = __builtin_convertvector((bits >> 23) - 126 + small, rows_part);
    rows_part m = (rows_part)half + (rows_part)(half & small) - part_all(1.0f), z = m * m;
    rows_part p = part_all(7.0376836292e-2f);
    p = p * m - part_all(1.1514610310e-1f);
    p = p * m + part_all(1.1676998740e-1f);
    p = p * m - part_all(1.2420140846e-1f);
    p = p * m + part_all(1.4249322787e-1f);
    p = p * m - part_all(1.6668057665e-1f);
    p = p * m + part_all(2.0000714765e-1f);
    p = p * m - part_all(2.4999993993e-1f);
    p = p * m + part_all(3.3333331174e-1f);
    p = p * m * z - k * part_all(2.12194440e-4f) - z * part_all(0.5f) + m + k * part_all(0.693359375f);
    rows_part_bits zero = (rows_part_bits)(x == part_all(0.0f));
    return (rows_part)(((rows_part_bits)p & ~zero) | ((rows_part_bits)part_all(-INFINITY) & zero));
}

#ifdef __AVX__
enum { DOUBLES = 4 };
#define doubles_max maxima_of_4d
typedef maxima_4d doubles;
typedef maxima_4d_mask doubles_bits;
#else
enum { DOUBLES = 2 };
#define doubles_max maxima_of_2d
typedef maxima_2d doubles;
typedef maxima_2d_mask doubles_bits;
#endif

/* exp(x) of doubles for x <= 700, 0 for less than -708, by a series of so many terms after the first. |r| is at most
 * log(2) / 2: terms after the 13th are less than 4e-18, those after the 8th less than 3e-10. */
ROWS_INLINE doubles doubles_exp(doubles x, int terms) {
    const doubles none = {0}, magic = none + 6755399441055744.0, least = none - 708.0;   /* 1.5 * 2^52 */
    static const double inverse[] = {1.0, 1.0, 0.5, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320,
                                     1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
    doubles z = doubles_max(x, least), k = z * 1.44269504088896341 + magic;
    doubles_bits scale = (doubles_bits)k << 52;
    k -= magic;
    doubles r = (z - k * 6.93147180369123816490e-1) - k * 1.90821492927058770002e-10, p = none + inverse[terms];
    for (int j = terms - 1; j >= 0; j--) p = p * r + inverse[j];
    return (doubles)(((doubles_bits)p + scale) & (doubles_bits)(x >= least));
}

/* out = exp(x - top) */
ROWS_INLINE void doubles_exponentials(const double *x, double top, int64_t n, double *out, int terms) {
    int64_t j = 0;
    for (; j + DOUBLES <= n; j += DOUBLES) {
        doubles part;
        memcpy(&part, x + j, sizeof part);
        part = doubles_exp(part - top, terms);
        memcpy(out + j, &part, sizeof part);
    }
    if (j == n) return;
    doubles part = (doubles){0} - INFINITY;
    for (int64_t k = j; k < n; k++) part[k - j] = x[k];
    part = doubles_exp(part - top, terms);
    for (int64_t k = j; k < n; k++) out[k] = part[k - j];
}

static void exponentials_double(const double *x, double top, int64_t n, double *out) {
    doubles_exponentials(x, top, n, out, 13);
}

#endif
