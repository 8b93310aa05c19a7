/* The sums of `trees_crossing` in tree_sums.h for one entry in floats, as tree_lanes.h has them for several: vectors are of
 * neighbouring columns; narrower ones than those of AVX-512 gain less over doubles than their code is worth. Rows and columns
 * are words, 0 the root; rows are `stride` apart.
 *
 * The sum of the next word's column is formed while the rows above it are changed. y takes the place of X[k][i], i < k. The
 * derivatives G stand twice, as G[head][word] and turned, T[word][head], so that both sums over them are of whole rows.
 */
#ifndef STRUCTSVM_TREE_ALONE_H
#define STRUCTSVM_TREE_ALONE_H

static inline int64_t alone_stride(int64_t words) { return (words + PART) / PART * PART; }

/* Floats of memory for an entry of n words, in vectors of so many. */
static inline int64_t trees_alone_size(int lanes, int64_t n) { return (4 * (n + 2) + 2) * ((n + 1 + lanes) / lanes * lanes); }

ROWS_INLINE rows_part alone_at(const float *x) { return *(const rows_part *)x; }

/* The lanes of columns first <= c < end, of a vector from column i on. */
ROWS_INLINE rows_part_bits alone_columns(int64_t i, int64_t first, int64_t end) {
    rows_part_bits columns;
    for (int l = 0; l < PART; l++) columns[l] = l;
    return (columns >= (int32_t)(first - i)) & (columns < (int32_t)(end - i));
}

/* Weights of arcs in X and W. Returns the sum of the best scores into each word, -inf if one has no head. */
static double alone_weights(const trees *s, int64_t N, int64_t S, float *X, float *W, float *top) {
    const int64_t more = s->several;
    double best = 0.0;
    for (int64_t k = 0; k < (N + 1) * S; k += PART) *(rows_part *)((k < N * S ? X : top - N * S) + k) = part_all(-INFINITY);
    if (more) X[1] = 0.0f;
    for (int64_t h = more; h < N; h++) {
        memcpy(X + h * S + 1 + more, (const float *)s->scores + (h - more) * s->m + 1, s->n * sizeof(float));
        if (h > 0) X[h * S + h] = -INFINITY;
    }
    for (int64_t i = 0; i < S; i += PART) {
        rows_part tops = part_all(-INFINITY);
        for (int64_t h = 0; h < N; h++) tops = rows_part_max(alone_at(X + h * S + i), tops);
        *(rows_part *)(top + i) = tops;
        for (int64_t h = 0; h < N; h++)
            *(rows_part *)(X + h * S + i) = *(rows_part *)(W + h * S + i) = part_exp(alone_at(X + h * S + i) - tops);
    }
    for (int64_t d = 1; d < N; d++) best += top[d];
    return best;
}

ROWS_INLINE rows_part alone_add(float *row, float by, rows_part y) {
    const rows_part to = *(rows_part *)row + y * by;
    return *(rows_part *)row = to;
}

/* Take out word k, whose heads' weights add up to `sum`; returns that of the next one, in two turns, for their latency. */
ROWS_INLINE float alone_take(float *X, int64_t S, int64_t k, float sum) {
    const rows_part inverse = part_all(1.0f / sum);
    const float *by = X + k;
    rows_part next = part_all(0.0f), other = next, y;
    int64_t i = 0, j = 1;
    for (; i + PART < k; i += PART) {
        y = *(rows_part *)(X + k * S + i) *= inverse;
        for (j = 0; j < k; j++) alone_add(X + j * S + i, by[j * S], y);
    }
    const rows_part own = alone_at(X + k * S + i), all = own * inverse;
    const rows_part_bits before = alone_columns(i, 0, k);
    *(rows_part *)(X + k * S + i) = lanes_where(before, all, own);
    y = lanes_only(before, all);
    alone_add(X + i, by[0], y);
    for (j = 1; j + 1 < k - 1; j += 2) {
        next += alone_add(X + j * S + i, by[j * S], y);
        other += alone_add(X + (j + 1) * S + i, by[(j + 1) * S], y);
    }
    if (j < k - 1) {
        next += alone_add(X + j * S + i, by[j * S], y);
        j++;
    }
    if (j < k) alone_add(X + j * S + i, by[j * S], y);
    return (next + other)[(k - 1) % PART];
}

/* Write the derivatives of the row and the column of word k. */
ROWS_INLINE void alone_give(const float *X, float *G, float *T, int64_t S, int64_t k, float sum) {
    rows_part rest = part_all(0.0f);
    int64_t i = 0;
    for (; i < k; i += PART) {
        rows_part g[2] = {part_all(0.0f), part_all(0.0f)}, d[2] = {g[0], g[0]};
        int64_t j = 0;
        for (; j + 1 < k; j += 2) {
            EACH_PART
            for (int r = 0; r < 2; r++) {
                g[r] += alone_at(G + (j + r) * S + i) * X[(j + r) * S + k];
                d[r] += alone_at(T + (j + r) * S + i) * X[k * S + j + r];
            }
        }
        if (j < k) {
            g[0] += alone_at(G + j * S + i) * X[j * S + k];
            d[0] += alone_at(T + j * S + i) * X[k * S + j];
        }
        g[0] += g[1];
        rest += g[0] * alone_at(X + k * S + i);
        *(rows_part *)(G + k * S + i) = g[0] * (1.0f / sum);
        *(rows_part *)(T + k * S + i) = d[0] + d[1];
    }
    for (; i < S; i += PART) *(rows_part *)(G + k * S + i) = *(rows_part *)(T + k * S + i) = part_all(0.0f);
    rest = (part_all(1.0f) - PART_REDUCED(rest, part_sum)) * (1.0f / sum);
    for (i = 0; i < k; i += PART) *(rows_part *)(T + k * S + i) += lanes_only(alone_columns(i, 1, k), rest);
    for (int64_t j = 0; j < k; j++) {
        G[j * S + k] = T[k * S + j];
        T[j * S + k] = G[k * S + j];
    }
}

/* Log partition and, unless `arcs` is NULL, probabilities of arcs. TREES_IN_LOGS where floats do not do, or -1. */
static int trees_alone(const trees *s, double *log_z, float *arcs) {
    int64_t words = s->n + s->several, N = words + 1, S = alone_stride(words), work = 0;
    float *X = (float *)s->memory, *W = X + N * S, *G = W + N * S, *T = G + N * S, *top = T + N * S, *sums = top + S;
    float deep = 1.0f, sum = 0.0f;
    double product = 1.0;
    *log_z = alone_weights(s, N, S, X, W, top);
    if (!(*log_z > -INFINITY)) return TREES_OK;
    for (int64_t j = 1; j < words; j++) sum += X[j * S + words];
    for (int64_t k = words; k > 0; k--) {
        if (k == 1) sum = X[1];
        deep *= sum < 1.0f ? sum : 1.0f;
        if (!(sum <= LANES_GREATEST && deep >= LANES_DEEPEST)) return TREES_IN_LOGS;
        sums[k] = sum;
        product *= sum;
        if (k % LANES_LOGS == 1) *log_z += log(product), product = 1.0;
        if (k > 1) sum = alone_take(X, S, k, sum);
        if (stop_count(&work, k * k / PART + 8 * k) < 0) return -1;
    }
    if (arcs == NULL) return TREES_OK;
    memset(G, 0, 2 * S * sizeof(float));
    memset(T, 0, 2 * S * sizeof(float));
    G[1] = T[S] = 1.0f / X[1];
    for (int64_t k = 2; k <= words; k++) {
        alone_give(X, G, T, S, k, sums[k]);
        if (stop_count(&work, 2 * k * k / PART + 8 * k) < 0) return -1;
    }
    rows_part all = part_all(0.0f);
    for (int64_t h = s->several; h < N; h++) {
        for (int64_t i = 0; i < S; i += PART) {
            const rows_part p = alone_at(G + h * S + i) * alone_at(W + h * S + i);
            all += p;
            *(rows_part *)(G + h * S + i) = rows_part_max(p, part_all(0.0f));
        }
        memcpy(arcs + (h - s->several) * s->m, G + h * S + s->several, (s->n + 1) * sizeof(float));
    }
    return PART_REDUCED(all, part_sum)[0] < INFINITY ? TREES_OK : TREES_IN_LOGS;
}

#endif
