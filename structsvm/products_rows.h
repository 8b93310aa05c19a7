/* Products of rows of one type: `real`, with VECTOR numbers in a `vector`, in tiles of TILE_ROWS x TILE_COLUMNS. */

typedef real TYPED(vector) __attribute__((vector_size(VECTOR * sizeof(real)), aligned(sizeof(real)), may_alias));
typedef real TYPED(quarter) __attribute__((vector_size(16)));
typedef real TYPED(lanes) __attribute__((vector_size(PRODUCTS_LANES * sizeof(real)), aligned(sizeof(real)), may_alias));

/* The sum of a vector's numbers, halves first. */
static inline __attribute__((always_inline)) real TYPED(total)(TYPED(vector) x) {
    TYPED(quarter) part[VECTOR_BYTES / 16];
    memcpy(part, &x, sizeof x);
    for (int half = VECTOR_BYTES / 32; half > 0; half /= 2)
        for (int k = 0; k < half; k++) part[k] += part[k + half];
    real sum = part[0][0];
    for (int k = 1; k < 16 / (int)sizeof(real); k++) sum += part[0][k];
    return sum;
}

/* rows x columns inner products: one vector of partial sums each, added up in the end. */
static inline __attribute__((always_inline)) void TYPED(tile)(
    int rows, int columns, const real *const *a, const real *const *b, int64_t d, real *out, int64_t stride) {
    TYPED(vector) sum[TILE_ROWS][TILE_COLUMNS], left[TILE_ROWS];
    int64_t k = 0;
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) sum[r][c] = (TYPED(vector)){0};
    for (; k + VECTOR <= d; k += VECTOR) {
        for (int r = 0; r < rows; r++) left[r] = *(const TYPED(vector) *)(a[r] + k);
        for (int c = 0; c < columns; c++) {
            TYPED(vector) right = *(const TYPED(vector) *)(b[c] + k);
            for (int r = 0; r < rows; r++) sum[r][c] += left[r] * right;
        }
    }
    if (k < d) {
        for (int r = 0; r < rows; r++) {
            left[r] = (TYPED(vector)){0};
            memcpy(&left[r], a[r] + k, (d - k) * sizeof(real));
        }
        for (int c = 0; c < columns; c++) {
            TYPED(vector) right = {0};
            memcpy(&right, b[c] + k, (d - k) * sizeof(real));
            for (int r = 0; r < rows; r++) sum[r][c] += left[r] * right;
        }
    }
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) out[r * stride + c] = TYPED(total)(sum[r][c]);
}

static void TYPED(dense)(const real *A, const int64_t *ia, int64_t n, const real *B, const int64_t *ib, int64_t m,
                         int64_t d, real *out, int64_t stride) {
    /* So many rows at once as stay in the second-level cache while the columns go by. */
    int64_t part = (1 << 17) / ((d + 1) * (int64_t)sizeof(real)) + 1;
    part = (part + TILE_ROWS - 1) / TILE_ROWS * TILE_ROWS;
    for (int64_t first = 0; first < n; first += part) {
        int64_t last = first + part < n ? first + part : n, q = 0;
        for (; q < m; q += TILE_COLUMNS) {
            const real *a[TILE_ROWS], *b[TILE_COLUMNS];
            int64_t columns = m - q < TILE_COLUMNS ? m - q : TILE_COLUMNS, p = first;
            for (int c = 0; c < columns; c++) b[c] = B + ib[q + c] * d;
            for (; p < last; p += TILE_ROWS) {
                int64_t rows = last - p < TILE_ROWS ? last - p : TILE_ROWS;
                real *corner = out + p * stride + q;
                for (int r = 0; r < rows; r++) a[r] = A + ia[p + r] * d;
                if (rows == TILE_ROWS && columns == TILE_COLUMNS)
                    TYPED(tile)(TILE_ROWS, TILE_COLUMNS, a, b, d, corner, stride);
                else if (columns == TILE_COLUMNS)
                    for (int r = 0; r < rows; r++)
                        TYPED(tile)(1, TILE_COLUMNS, a + r, b, d, corner + r * stride, stride);
                else
                    for (int r = 0; r < rows; r++)
                        for (int c = 0; c < columns; c++)
                            TYPED(tile)(1, 1, a + r, b + c, d, corner + r * stride + c, stride);
            }
        }
    }
}

static void TYPED(sparse)(const real *a, int64_t n, const int64_t *indptr, const int32_t *indices, const real *values,
                          const int64_t *ib, int64_t m, real *out, int64_t stride) {
    for (int64_t q = 0; q < m; q++) {
        TYPED(lanes) sum = {0};
        for (int64_t e = indptr[ib[q]]; e < indptr[ib[q] + 1]; e++)
            sum += *(const TYPED(lanes) *)(a + (int64_t)indices[e] * PRODUCTS_LANES) * values[e];
        for (int64_t lane = 0; lane < n; lane++) out[lane * stride + q] = sum[lane];
    }
}

/* out[k] = exp(-gamma |a - b_k|^2), given <a, b_k>, |a|^2 and |b_k|^2. */
static void TYPED(radial)(const real *dots, const real *norms, real norm, real gamma, int64_t n, float *out) {
    for (int64_t k = 0; k < n; k++) {
        real distance = norm + norms[k] - 2 * dots[k];
        out[k] = (float)(-gamma * (distance > 0 ? distance : 0));
    }
    exponential(out, n);
}
