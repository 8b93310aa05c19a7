/* Inner products between rows, in blocks, and the kernel functions that are worth vectors.
 *
 * Each value is summed in one way only, whatever block it is part of: k(x, z) has the same bits in a row of its own,
 * in a large block, and as k(z, x). So a row that a cache has dropped comes back as it was, which a BLAS does not
 * promise (its order of summation depends on shapes and threads).
 *
 * products.c is compiled once per instruction set, as oracles/simd/chain_kernels.c is; `products_of` returns one.
 */
#ifndef STRUCTSVM_PRODUCTS_H
#define STRUCTSVM_PRODUCTS_H

#include <stdint.h>

/* Rows that a scattered block of sparse rows is wide (see `sparse_float`). */
#define PRODUCTS_LANES 16

typedef struct {
    const char *name;
    /* out[p * stride + q] = <A[ia[p]], B[ib[q]]>, rows of d numbers one after the other in A and B. */
    void (*dense_float)(const float *A, const int64_t *ia, int64_t n, const float *B, const int64_t *ib, int64_t m,
                        int64_t d, float *out, int64_t stride);
    void (*dense_double)(const double *A, const int64_t *ia, int64_t n, const double *B, const int64_t *ib, int64_t m,
                         int64_t d, double *out, int64_t stride);
    /* out[lane * stride + q] = <a_lane, B[ib[q]]> for the CSR rows of B, indices ascending. The rows a_lane are
     * given scattered: feature f of all PRODUCTS_LANES of them at a[f * PRODUCTS_LANES]. Only the first n lanes are
     * written. */
    void (*sparse_float)(const float *a, int64_t n, const int64_t *indptr, const int32_t *indices,
                         const float *values, const int64_t *ib, int64_t m, float *out, int64_t stride);
    void (*sparse_double)(const double *a, int64_t n, const int64_t *indptr, const int32_t *indices,
                          const double *values, const int64_t *ib, int64_t m, double *out, int64_t stride);
    /* out[k] = exp(-gamma |a - b_k|^2), given <a, b_k>, |a|^2 = norm and |b_k|^2 = norms[k]; correct to two units in
     * the last place of the exponent's own rounding, and 0 below exp(-87). */
    void (*radial_float)(const float *dots, const float *norms, float norm, float gamma, int64_t n, float *out);
    void (*radial_double)(const double *dots, const double *norms, double norm, double gamma, int64_t n, float *out);
    /* sum over e of beta[e] row[slot[e]]; and g[e] -= step row[slot[e]]. */
    double (*gather)(const float *row, const int32_t *slot, const double *beta, int64_t n);
    void (*scatter)(const float *row, const int32_t *slot, double *g, int64_t n, double step);
    /* The same over all slots in order: sum over s of beta[s] row[s]; and g[s] -= step row[s]. */
    double (*weigh)(const float *row, const double *beta, int64_t n);
    void (*shift)(const float *row, double *g, int64_t n, double step);
} products;

/* The functions of a set: 0 baseline, 1 avx2, 2 avx512. */
const products *products_of(int set);

#endif
