/* The steps for weights of one type: `real`, with LANES numbers in a vector. */

typedef real TYPED(vector) __attribute__((vector_size(LANES * sizeof(real)), aligned(sizeof(real)), may_alias));

static double TYPED(dot)(const real *x, const real *w, int64_t d) {
    TYPED(vector) sum[4] = {{0}, {0}, {0}, {0}};    /* sums that do not wait for each other */
    int64_t k = 0;
    for (; k + 4 * LANES <= d; k += 4 * LANES)
        for (int part = 0; part < 4; part++)
            sum[part] += *(const TYPED(vector) *)(x + k + part * LANES) * *(const TYPED(vector) *)(w + k + part * LANES);
    for (; k + LANES <= d; k += LANES) sum[0] += *(const TYPED(vector) *)(x + k) * *(const TYPED(vector) *)(w + k);
    sum[0] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    double total = 0.0;
    for (int lane = 0; lane < LANES; lane++) total += sum[0][lane];
    for (; k < d; k++) total += x[k] * w[k];
    return total;
}

static void TYPED(move)(real *restrict w, const real *restrict B, const real *restrict x, int64_t d, double step) {
    real length = (real)step;
    for (int64_t k = 0; k < d; k++) w[k] += length * B[k] * x[k];
}

static void TYPED(add)(double *restrict u, const real *restrict B, const real *restrict x, int64_t d, double step) {
    for (int64_t k = 0; k < d; k++) u[k] += step * B[k] * x[k];
}

static void TYPED(decay)(real *restrict w, const real *restrict B, double *restrict u, int64_t d, double amount,
                         double when) {
    real length = (real)amount;
    if (u != NULL)
        for (int64_t k = 0; k < d; k++) u[k] += when * ((double)w[k] / (1.0 + amount * B[k]) - w[k]);
    for (int64_t k = 0; k < d; k++) w[k] /= 1 + length * B[k];
}

static void TYPED(curve)(real *restrict h, real *restrict B, const real *restrict x, int64_t d, double lambda,
                         double curvature, double rate, double scale, double least, double most) {
    real part = (real)rate, ridge = (real)lambda, bend = (real)curvature;
    real size = (real)scale, low = (real)least, high = (real)most;
    for (int64_t k = 0; k < d; k++) {
        h[k] += part * (ridge + bend * x[k] * x[k] - h[k]);
        real value = size / h[k];
        value = value < high ? value : high;
        B[k] = value > low ? value : low;
    }
}
