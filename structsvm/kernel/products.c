#include "products.h"

#include <string.h>

#include "maxima.h"

/* The widest vectors of the instruction set, in bytes, and tiles that fill its registers. */
#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#define TILE_ROWS 4
#define TILE_COLUMNS 6
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#define TILE_ROWS 3
#define TILE_COLUMNS 4
#else
#define VECTOR_BYTES 16
#define TILE_ROWS 3
#define TILE_COLUMNS 3
#endif

/* Rows of so many numbers are short, and so many of them are multiplied at a time. */
#define SHORT 64
#define SHORT_ROWS 8

/* exp(x) for x <= 0: 2^k exp(r), k = round(x / ln 2), |r| <= ln 2 / 2; exp(r) by its Taylor polynomial of degree 7. */
typedef float floats __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
typedef int32_t ints __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));

static inline floats exponential_of(floats x) {
    const floats magic = (floats){0} + 12582912.0f;    /* 1.5 * 2^23: adding it rounds to an integer */
    ints low = x < (floats){0} - 87.0f;
    floats bounded = (floats)((ints)x & ~low);
    floats shifted = bounded * 1.44269504f + magic;
    floats k = shifted - magic;
    floats r = bounded - k * 0.693359375f;
    r = r + k * 2.12194440e-4f;
    floats y = r * (1.0f / 5040.0f) + (1.0f / 720.0f);
    y = y * r + (1.0f / 120.0f);
    y = y * r + (1.0f / 24.0f);
    y = y * r + (1.0f / 6.0f);
    y = y * r + 0.5f;
    y = y * r + 1.0f;
    y = y * r + 1.0f;
    ints exponent = ((ints)shifted - (ints)magic) << 23;
    return (floats)(((ints)y + exponent) & ~low);
}

static void exponential(float *x, int64_t n) {
    const int64_t width = VECTOR_BYTES / 4;
    int64_t k = 0;
    for (; k + width <= n; k += width) *(floats *)(x + k) = exponential_of(*(floats *)(x + k));
    if (k < n) {
        floats rest = {0};
        memcpy(&rest, x + k, (n - k) * sizeof(float));
        rest = exponential_of(rest);
        memcpy(x + k, &rest, (n - k) * sizeof(float));
    }
}

/* Numbers of both types, as many as there are doubles in a vector. */
enum { WIDE = VECTOR_BYTES / 8 };
typedef double wide __attribute__((vector_size(VECTOR_BYTES), aligned(8), may_alias));
typedef float narrow __attribute__((vector_size(VECTOR_BYTES / 2), aligned(4), may_alias));

static inline wide widened(const float *x) { return __builtin_convertvector(*(const narrow *)x, wide); }

#if VECTOR_BYTES == 64
#define greater_float maxima_of_16f
#define greater_double maxima_of_8d
#elif VECTOR_BYTES == 32
#define greater_float maxima_of_8f
#define greater_double maxima_of_4d
#else
#define greater_float maxima_of_4f
#define greater_double maxima_of_2d
#endif

#define real float
#define VECTOR (VECTOR_BYTES / 4)
#define TYPED(name) name##_float
#include "products_rows.h"
#undef real
#undef VECTOR
#undef TYPED

#define real double
#define VECTOR (VECTOR_BYTES / 8)
#define TYPED(name) name##_double
#include "products_rows.h"
#undef real
#undef VECTOR
#undef TYPED

static double gather(const float *row, const int32_t *slot, const double *beta, int64_t n) {
    typedef double four __attribute__((vector_size(32), aligned(8), may_alias));
    four sum = {0.0, 0.0, 0.0, 0.0};    /* sums that do not wait for each other */
    int64_t e = 0;
    for (; e + 4 <= n; e += 4)
        sum += *(const four *)(beta + e) * (four){row[slot[e]], row[slot[e + 1]], row[slot[e + 2]], row[slot[e + 3]]};
    for (; e < n; e++) sum[0] += beta[e] * row[slot[e]];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

static void scatter(const float *row, const int32_t *slot, double *g, int64_t n, double step) {
    for (int64_t e = 0; e < n; e++) g[e] -= step * row[slot[e]];
}

static double weigh(const float *row, const double *beta, int64_t n) {
    wide sums[16 / WIDE] = {{0.0}};
    double sum[16];
    int64_t s = 0;
    for (; s + 16 <= n; s += 16)
        for (int k = 0; k < 16 / WIDE; k++)
            sums[k] += *(const wide *)(beta + s + k * WIDE) * widened(row + s + k * WIDE);
    memcpy(sum, sums, sizeof sum);
    for (; s < n; s++) sum[0] += beta[s] * row[s];
    for (int half = 8; half > 0; half /= 2)
        for (int k = 0; k < half; k++) sum[k] += sum[k + half];
    return sum[0];
}

static void shift(const float *row, double *g, int64_t n, double step) {
    int64_t s = 0;
    for (; s + WIDE <= n; s += WIDE) *(wide *)(g + s) -= step * widened(row + s);
    for (; s < n; s++) g[s] -= step * row[s];
}

#define JOIN(a, b) a##b
#define NAMED(set) JOIN(products_, set)
#define TEXT(x) #x
#define QUOTED(x) TEXT(x)

/* PRODUCTS is the name of the instruction set this file is being compiled for. */
const products NAMED(PRODUCTS) = {
    QUOTED(PRODUCTS), dense_float, dense_double, sparse_float, sparse_double,
    radial_float, radial_double, gather, scatter, weigh, shift,
};

#ifdef PRODUCTS_CHOOSE
#ifdef PRODUCTS_HAVE_x86
extern const products products_avx2, products_avx512;
#endif

const products *products_of(int set) {
#ifdef PRODUCTS_HAVE_x86
    if (set > 0) return set > 1 ? &products_avx512 : &products_avx2;
#endif
    return &products_baseline;
}
#endif
