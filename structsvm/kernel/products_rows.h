/* Products of rows of one type: `real`, with VECTOR numbers in a `vector`, in tiles of TILE_ROWS x TILE_COLUMNS. */

typedef real TYPED(vector) __attribute__((vector_size(VECTOR * sizeof(real)), aligned(sizeof(real)), may_alias));
typedef real TYPED(quarter) __attribute__((vector_size(16)));

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

/* Rows long enough to be read in vectors. */
static void TYPED(long_rows)(const real *A, const int64_t *ia, int64_t n, const real *B, const int64_t *ib, int64_t m,
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

/* Short rows: VECTOR columns are turned round, and their products with a row are one vector. */
static void TYPED(short_rows)(const real *A, const int64_t *ia, int64_t n, const real *B, const int64_t *ib, int64_t m,
                              int64_t d, real *out, int64_t stride) {
    real turned[SHORT][VECTOR];
    for (int64_t q = 0; q < m; q += VECTOR) {
        int64_t columns = m - q < VECTOR ? m - q : VECTOR;
        for (int64_t c = 0; c < VECTOR; c++)
            for (int64_t k = 0; k < d; k++) turned[k][c] = c < columns ? B[ib[q + c] * d + k] : 0;
        for (int64_t p = 0; p < n; p += SHORT_ROWS) {
            TYPED(vector) sum[SHORT_ROWS];
            const real *a[SHORT_ROWS];
            for (int r = 0; r < SHORT_ROWS; r++) {
                sum[r] = (TYPED(vector)){0};
                a[r] = A + ia[p + r < n ? p + r : n - 1] * d;
            }
            for (int64_t k = 0; k < d; k++) {
                TYPED(vector) right = *(const TYPED(vector) *)turned[k];
                for (int r = 0; r < SHORT_ROWS; r++) sum[r] += a[r][k] * right;
            }
            for (int r = 0; r < SHORT_ROWS && p + r < n; r++) {
                real *place = out + (p + r) * stride + q;
                if (columns == VECTOR)
                    *(TYPED(vector) *)place = sum[r];
                else
                    memcpy(place, &sum[r], columns * sizeof(real));
            }
        }
    }
}

static void TYPED(dense)(const real *A, const int64_t *ia, int64_t n, const real *B, const int64_t *ib, int64_t m,
                         int64_t d, real *out, int64_t stride) {
    if (d <= SHORT)
        TYPED(short_rows)(A, ia, n, B, ib, m, d, out, stride);
    else
        TYPED(long_rows)(A, ia, n, B, ib, m, d, out, stride);
}

static void TYPED(sparse)(const real *a, int64_t n, const int64_t *indptr, const int32_t *indices, const real *values,
                          const int64_t *ib, int64_t m, real *out, int64_t stride) {
    enum { PARTS = PRODUCTS_LANES / VECTOR };   /* vectors of the set: of wider ones compilers keep sums in memory */
    for (int64_t q = 0; q < m; q++) {
        TYPED(vector) sum[PARTS] = {{0}};
        for (int64_t e = indptr[ib[q]]; e < indptr[ib[q] + 1]; e++) {
            const TYPED(vector) *row = (const TYPED(vector) *)(a + (int64_t)indices[e] * PRODUCTS_LANES);
            for (int k = 0; k < PARTS; k++) sum[k] += row[k] * values[e];
        }
        for (int64_t lane = 0; lane < n; lane++) out[lane * stride + q] = sum[lane / VECTOR][lane % VECTOR];
    }
}

/* out[k] = exp(-gamma |a - b_k|^2), given <a, b_k>, |a|^2 and |b_k|^2. */
static void TYPED(radial)(const real *dots, const real *norms, real norm, real gamma, int64_t n, float *out) {
    typedef float narrowed __attribute__((vector_size(VECTOR * 4), aligned(4), may_alias));
    int64_t k = 0;
    for (; k + VECTOR <= n; k += VECTOR) {
        TYPED(vector) distance = norm + *(const TYPED(vector) *)(norms + k) - 2 * *(const TYPED(vector) *)(dots + k);
        *(narrowed *)(out + k) = __builtin_convertvector(-gamma * TYPED(greater)(distance, (TYPED(vector)){0}), narrowed);
    }
    for (; k < n; k++) {
        real distance = norm + norms[k] - 2 * dots[k];
        out[k] = (float)(-gamma * (distance > 0 ? distance : 0));
    }
    exponential(out, n);
}
