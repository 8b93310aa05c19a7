/* The steps for weights of one type: `real`, with LANES numbers in a vector. */

typedef real TYPED(vector) __attribute__((vector_size(LANES * sizeof(real)), aligned(sizeof(real)), may_alias));
typedef real TYPED(step) __attribute__((vector_size(STEP * sizeof(real)), aligned(sizeof(real)), may_alias));
typedef whole TYPED(step_mask) __attribute__((vector_size(STEP * sizeof(real))));
typedef double TYPED(step_wide) __attribute__((vector_size(STEP * 8), aligned(8), may_alias));

/* Some more numbers of a row: short vectors for what whole ones leave over, and single numbers for what these do. */
typedef real TYPED(few) __attribute__((vector_size(FEW * sizeof(real)), aligned(sizeof(real)), may_alias));
typedef whole TYPED(few_mask) __attribute__((vector_size(FEW * sizeof(real))));
typedef double TYPED(few_wide) __attribute__((vector_size(FEW * 8), aligned(8), may_alias));
typedef real TYPED(one);
typedef double TYPED(one_wide);

static inline TYPED(step_wide) TYPED(widen_step)(TYPED(step) x) { return __builtin_convertvector(x, TYPED(step_wide)); }
static inline TYPED(few_wide) TYPED(widen_few)(TYPED(few) x) { return __builtin_convertvector(x, TYPED(few_wide)); }
static inline double TYPED(widen_one)(real x) { return x; }

static inline TYPED(step) TYPED(bound_step)(TYPED(step) x, real low, real high) {
    TYPED(step_mask) m = x < high;
    x = (TYPED(step))(((TYPED(step_mask))x & m) | ((TYPED(step_mask))((TYPED(step)){0} + high) & ~m));
    m = x > low;
    return (TYPED(step))(((TYPED(step_mask))x & m) | ((TYPED(step_mask))((TYPED(step)){0} + low) & ~m));
}
static inline TYPED(few) TYPED(bound_few)(TYPED(few) x, real low, real high) {
    TYPED(few_mask) m = x < high;
    x = (TYPED(few))(((TYPED(few_mask))x & m) | ((TYPED(few_mask))((TYPED(few)){0} + high) & ~m));
    m = x > low;
    return (TYPED(few))(((TYPED(few_mask))x & m) | ((TYPED(few_mask))((TYPED(few)){0} + low) & ~m));
}
static inline real TYPED(bound_one)(real x, real low, real high) {
    x = x < high ? x : high;
    return x > low ? x : low;
}

/* Do something with all of d numbers. It is written for some of them at k, HOW many: step, few or one. */
#define EACH(WHAT) \
    do { \
        int64_t k = 0; \
        for (; k + STEP <= d; k += STEP) { WHAT(step, TYPED(step), TYPED(step_wide)) } \
        for (; k + FEW <= d; k += FEW) { WHAT(few, TYPED(few), TYPED(few_wide)) } \
        for (; k < d; k++) { WHAT(one, TYPED(one), TYPED(one_wide)) } \
    } while (0)
#define AT(type, p) (*(type *)(p))
#define SOME(type, p) (*(const type *)(p))

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
#define MOVE(HOW, type, wide) AT(type, w + k) += length * SOME(type, B + k) * SOME(type, x + k);
    EACH(MOVE);
#undef MOVE
}

static void TYPED(add)(double *restrict u, const real *restrict B, const real *restrict x, int64_t d, double step) {
#define ADD(HOW, type, wide) \
    AT(wide, u + k) += step * TYPED(widen_##HOW)(SOME(type, B + k)) * TYPED(widen_##HOW)(SOME(type, x + k));
    EACH(ADD);
#undef ADD
}

static void TYPED(decay)(real *restrict w, const real *restrict B, double *restrict u, int64_t d, double amount,
                         double when) {
    real length = (real)amount;
#define ADD(HOW, type, wide) \
    wide old = TYPED(widen_##HOW)(SOME(type, w + k)); \
    AT(wide, u + k) += when * (old / (1.0 + amount * TYPED(widen_##HOW)(SOME(type, B + k))) - old);
    if (u != NULL) EACH(ADD);
#undef ADD
#define DECAY(HOW, type, wide) AT(type, w + k) /= 1 + length * SOME(type, B + k);
    EACH(DECAY);
#undef DECAY
}

static void TYPED(curve)(real *restrict h, real *restrict B, const real *restrict x, int64_t d, double lambda,
                         double curvature, double rate, double scale, double least, double most) {
    real part = (real)rate, ridge = (real)lambda, bend = (real)curvature;
    real size = (real)scale, low = (real)least, high = (real)most;
#define CURVE(HOW, type, wide) \
    type number = SOME(type, x + k), now = SOME(type, h + k); \
    AT(type, h + k) = now += part * (ridge + bend * number * number - now); \
    AT(type, B + k) = TYPED(bound_##HOW)(size / now, low, high);
    EACH(CURVE);
#undef CURVE
}

#undef EACH
#undef AT
#undef SOME
