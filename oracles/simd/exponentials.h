/* Exponentials and logarithms of eight floats, after Cephes (expf, logf): within 2 units of the last place, and without
 * branches. Compilers vectorise neither, and a call of the C library takes as long as eight of these.
 */
#ifndef STRUCTSVM_EXPONENTIALS_H
#define STRUCTSVM_EXPONENTIALS_H

#include "rows.h"

#define LEAST_EXPONENT -87.0f   /* exp of less is 0 */

/* exp(x) for x <= 88; 0 for -inf. With k = round(x / log 2), exp(x) = 2^k exp(x - k log 2). */
ROWS_INLINE rows_v rows_exp(rows_v x) {
    const rows_v magic = rows_all(12582912.0f);     /* 1.5 * 2^23: its sum with a float is rounded to an integer */
    rows_v z = rows_max(x, rows_all(LEAST_EXPONENT));
    rows_v k = z * rows_all(1.44269504088896341f) + magic;
    rows_i scale = (rows_i)k << 23;
    k -= magic;
    rows_v r = z - k * rows_all(0.693359375f) + k * rows_all(2.12194440e-4f);
    rows_v p = rows_all(1.9875691500e-4f);
    p = p * r + rows_all(1.3981999507e-3f);
    p = p * r + rows_all(8.3334519073e-3f);
    p = p * r + rows_all(4.1665795894e-2f);
    p = p * r + rows_all(1.6666665459e-1f);
    p = p * r + rows_all(5.0000001201e-1f);
    p = p * (r * r) + (r + rows_all(1.0f));
    return (rows_v)(((rows_i)p + scale) & (rows_i)(x >= rows_all(LEAST_EXPONENT)));
}

/* log(x) for normal x > 0; -inf for 0. With x = 2^k m, sqrt(1/2) <= m < sqrt(2), log x = k log 2 + log m. */
ROWS_INLINE rows_v rows_log(rows_v x) {
    rows_i bits = (rows_i)x;
    rows_i half = (bits & 0x007fffff) | 0x3f000000;
    rows_i small = (rows_i)((rows_v)half < rows_all(0.707106781186547524f));
    rows_v k = __builtin_convertvector((bits >> 23) - 126 + small, rows_v);
    rows_v m = (rows_v)half + (rows_v)(half & small) - rows_all(1.0f), z = m * m;
    rows_v p = rows_all(7.0376836292e-2f);
    p = p * m - rows_all(1.1514610310e-1f);
    p = p * m + rows_all(1.1676998740e-1f);
    p = p * m - rows_all(1.2420140846e-1f);
    p = p * m + rows_all(1.4249322787e-1f);
    p = p * m - rows_all(1.6668057665e-1f);
    p = p * m + rows_all(2.0000714765e-1f);
    p = p * m - rows_all(2.4999993993e-1f);
    p = p * m + rows_all(3.3333331174e-1f);
    p = p * m * z - k * rows_all(2.12194440e-4f) - z * rows_all(0.5f) + m + k * rows_all(0.693359375f);
    rows_i zero = (rows_i)(x == rows_all(0.0f));
    return (rows_v)(((rows_i)p & ~zero) | ((rows_i)rows_all(-INFINITY) & zero));
}

#endif
