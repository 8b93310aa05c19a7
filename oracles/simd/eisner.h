/* The best projective tree with one word below the root: Eisner's chart (1996), in O(n^3), and sums over all such trees.
 *
 * Of words i .. j, i the head:  open_right(i, j) = s(i, j) + middle(i, j),  closed_right(i, j) = max_k open_right(i, k) +
 * closed_right(k, j); the same to the left; middle(i, j) = max_k closed_right(i, k) + closed_left(k + 1, j). In the end
 * max_r s(0, r) + closed_left(1, r) + closed_right(r, n).
 *
 * Each table is kept by rows in which k runs, so that a maximum is one over contiguous numbers. What is not computed yet
 * is -inf, and a vector may read on into it; rows are padded for that.
 */
#ifndef STRUCTSVM_EISNER_H
#define STRUCTSVM_EISNER_H

#include "exponentials.h"
#include "stop.h"

enum { EISNER_OK = 0, EISNER_NO_TREE = 1, EISNER_TABLES = 6 };

ROWS_INLINE int64_t eisner_stride(int64_t n) { return (n + 1 + 2 * LANES) / LANES * LANES; }

/* Floats of the chart of n words. */
ROWS_INLINE int64_t eisner_size(int64_t n) { return EISNER_TABLES * (n + 1) * eisner_stride(n); }

typedef struct {
    int64_t n, stride;
    const float *scores;        /* [h (n + 1) + m] */
    float *right, *right_by_end, *left, *left_by_end; /* closed: [i stride + k], of which k is the other end */
    float *open_right, *open_left; /* open_right by its start, open_left by its end, its head */
} eisner_chart;

ROWS_INLINE float eisner_max(const float *a, const float *b, int64_t n) { return rows_top(rows_tops(a, b, n)); }

ROWS_INLINE int64_t eisner_argmax(const float *a, const float *b, int64_t n) {
    int64_t best = 0;
    for (int64_t k = 1; k < n; k++)
        if (a[k] + b[k] > a[best] + b[best]) best = k;
    return best;
}

ROWS_INLINE eisner_chart eisner_tables(int64_t n, const float *scores, float *memory) {
    eisner_chart c = {.n = n, .stride = eisner_stride(n), .scores = scores};
    int64_t size = (n + 1) * c.stride;
    c.right = memory;
    c.right_by_end = memory + size;
    c.left = memory + 2 * size;
    c.left_by_end = memory + 3 * size;
    c.open_right = memory + 4 * size;
    c.open_left = memory + 5 * size;
    return c;
}

static void eisner_unfold(const eisner_chart *c, int64_t root, int32_t *stack, int32_t *heads) {
    /* Items (i, j, kind): 0 closed right, 1 closed left, 2 open right, 3 open left. */
    int64_t size = 0, S = c->stride;
#define EISNER_PUSH(a, b, kind) (stack[3 * size] = (int32_t)(a), stack[3 * size + 1] = (int32_t)(b), stack[3 * size + 2] = (kind), size++)
    heads[root - 1] = 0;
    EISNER_PUSH(1, root, 1);
    EISNER_PUSH(root, c->n, 0);
    while (size > 0) {
        size--;
        int64_t i = stack[3 * size], j = stack[3 * size + 1], k;
        if (i == j) continue;
        switch (stack[3 * size + 2]) {
        case 0:
            k = i + 1 + eisner_argmax(c->open_right + i * S + i + 1, c->right_by_end + j * S + i + 1, j - i);
            EISNER_PUSH(i, k, 2);
            EISNER_PUSH(k, j, 0);
            break;
        case 1:
            k = i + eisner_argmax(c->left + i * S + i, c->open_left + j * S + i, j - i);
            EISNER_PUSH(i, k, 1);
            EISNER_PUSH(k, j, 3);
            break;
        default:
            if (stack[3 * size + 2] == 2) heads[j - 1] = (int32_t)i;
            else heads[i - 1] = (int32_t)j;
            k = i + eisner_argmax(c->right + i * S + i, c->left_by_end + j * S + i + 1, j - i);
            EISNER_PUSH(i, k, 0);
            EISNER_PUSH(k + 1, j, 1);
        }
    }
#undef EISNER_PUSH
}

/* The heads of words 1 .. n; `memory` has room for eisner_size(n), `stack` for 3 (2 n + 2). Returns EISNER_OK,
 * EISNER_NO_TREE if all trees score -inf, or -1 once `stop_poll` has. */
static int eisner_best(int64_t n, const float *scores, float *memory, int32_t *stack, int32_t *heads, float *best) {
    eisner_chart c = eisner_tables(n, scores, memory);
    int64_t S = c.stride, work = 0, root = 0;
    for (int64_t i = 0; i < EISNER_TABLES * (n + 1); i++) {
        for (int64_t k = 0; k < S; k++) memory[i * S + k] = -INFINITY;
        if (stop_count(&work, S) < 0) return -1;
    }
    for (int64_t i = 1; i <= n; i++) c.right[i * S + i] = c.right_by_end[i * S + i] = c.left[i * S + i] = c.left_by_end[i * S + i] = 0.0f;
    for (int64_t width = 1; width < n; width++) {
        for (int64_t i = 1, j = i + width; j <= n; i++, j++) {
            float middle = eisner_max(c.right + i * S + i, c.left_by_end + j * S + i + 1, width);
            c.open_right[i * S + j] = middle + scores[i * (n + 1) + j];
            c.open_left[j * S + i] = middle + scores[j * (n + 1) + i];
            float right = eisner_max(c.open_right + i * S + i + 1, c.right_by_end + j * S + i + 1, width);
            float left = eisner_max(c.left + i * S + i, c.open_left + j * S + i, width);
            c.right[i * S + j] = c.right_by_end[j * S + i] = right;
            c.left[i * S + j] = c.left_by_end[j * S + i] = left;
        }
        if (stop_count(&work, (n - width) * (width / 2 + 20)) < 0) return -1;
    }
    *best = -INFINITY;
    for (int64_t r = 1; r <= n; r++) {
        float total = scores[r] + c.left[S + r] + c.right[r * S + n];
        if (total > *best) {
            *best = total;
            root = r;
        }
    }
    if (root == 0) return EISNER_NO_TREE;
    eisner_unfold(&c, root, stack, heads);
    return EISNER_OK;
}

/* ---- sums ---- */

typedef struct {
    int64_t n, stride;
    double *right, *right_by_end, *left, *left_by_end, *open_right, *open_left; /* as those of eisner_chart */
    double *middle;             /* by its start */
} eisner_inside;

enum { EISNER_LOGS = 7, EISNER_SHARES = 6 };

/* Doubles that `eisner_sums` and `eisner_samples` need. */
ROWS_INLINE int64_t eisner_sums_size(int64_t n) { return (EISNER_LOGS + EISNER_SHARES) * (n + 1) * eisner_stride(n); }

static eisner_inside eisner_inside_tables(int64_t n, double *memory) {
    int64_t size = (n + 1) * eisner_stride(n);
    return (eisner_inside){n, eisner_stride(n), memory, memory + size, memory + 2 * size, memory + 3 * size, memory + 4 * size,
                           memory + 5 * size, memory + 6 * size};
}

ROWS_INLINE doubles eisner_two(const double *a, const double *b) {
    doubles x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x + y;
}

/* max_k a_k + b_k, and unless it is -inf the sum of exp(a_k + b_k) over its own; a vector may read on into -inf. */
static double eisner_top(const double *a, const double *b, int64_t n, double *total) {
    doubles m = (doubles){0} - INFINITY, sum = {0};
    double top = -INFINITY;
    *total = 0.0;
    for (int64_t k = 0; k < n; k += DOUBLES) m = doubles_max(eisner_two(a + k, b + k), m);
    for (int l = 0; l < DOUBLES; l++) top = fmax(top, m[l]);
    if (!(top > -INFINITY)) return top;
    for (int64_t k = 0; k < n; k += DOUBLES) sum += doubles_exp(eisner_two(a + k, b + k) - top, 13);
    for (int l = 0; l < DOUBLES; l++) *total += sum[l];
    return top;
}

/* log sum_k exp(a_k + b_k). */
static double eisner_log_sum(const double *a, const double *b, int64_t n) {
    double total, top = eisner_top(a, b, n, &total);
    return top > -INFINITY ? top + log(total) : top;
}

#define EISNER_EXACT 1e6    /* logs of sums that are greater lose digits of shares, and from 1e16 on all that is beside the top */

/* Spread the gradient of a sum's value over its terms: each gets `gradient` times its share. */
static void eisner_share(const double *a, double *da, const double *b, double *db, int64_t n, double value, double gradient) {
    double total;
    if (gradient == 0.0) return;
    if (fabs(value) > EISNER_EXACT) {
        value = eisner_top(a, b, n, &total);
        gradient /= total;
    }
    for (int64_t k = 0; k < n; k += DOUBLES) {
        doubles part = gradient * doubles_exp(eisner_two(a + k, b + k) - value, 13), to;
        for (int64_t l = n - k; l < DOUBLES; l++) part[l] = 0.0;
        memcpy(&to, da + k, sizeof to);
        to += part;
        memcpy(da + k, &to, sizeof to);
        memcpy(&to, db + k, sizeof to);
        to += part;
        memcpy(db + k, &to, sizeof to);
    }
}

/* The inside sums of all items, and the log sum over all trees of exp(score). Returns 0, or -1 once `stop_poll` has. */
static int eisner_fill(const eisner_inside *c, const double *scores, double *log_sum) {
    int64_t n = c->n, N = n + 1, S = c->stride, work = 0;
    for (int64_t i = 0; i < EISNER_LOGS * N; i++) {
        for (int64_t k = 0; k < S; k++) c->right[i * S + k] = -INFINITY;
        if (stop_count(&work, S) < 0) return -1;
    }
    for (int64_t i = 1; i <= n; i++)
        c->right[i * S + i] = c->right_by_end[i * S + i] = c->left[i * S + i] = c->left_by_end[i * S + i] = 0.0;
    for (int64_t width = 1; width < n; width++) {
        for (int64_t i = 1, j = i + width; j <= n; i++, j++) {
            double middle = eisner_log_sum(c->right + i * S + i, c->left_by_end + j * S + i + 1, width);
            c->middle[i * S + j] = middle;
            c->open_right[i * S + j] = middle + scores[i * N + j];
            c->open_left[j * S + i] = middle + scores[j * N + i];
            double right = eisner_log_sum(c->open_right + i * S + i + 1, c->right_by_end + j * S + i + 1, width);
            double left = eisner_log_sum(c->left + i * S + i, c->open_left + j * S + i, width);
            c->right[i * S + j] = c->right_by_end[j * S + i] = right;
            c->left[i * S + j] = c->left_by_end[j * S + i] = left;
        }
        if (stop_count(&work, (n - width) * width * 20) < 0) return -1;
    }
    double top = -INFINITY, total = 0.0;
    for (int64_t r = 1; r <= n; r++) top = fmax(top, scores[r] + c->left[S + r] + c->right[r * S + n]);
    *log_sum = top;
    if (!(top > -INFINITY)) return 0;
    for (int64_t r = 1; r <= n; r++) total += exp(scores[r] + c->left[S + r] + c->right[r * S + n] - top);
    *log_sum = top + log(total);
    return 0;
}

/* log sum over all trees of exp(score), and the probability of each arc: the gradient, by going back through the inside
 * sums. Returns 0, or -1 once `stop_poll` has; log_sum is -inf where there is no tree. */
static int eisner_sums(int64_t n, const double *scores, double *memory, double *log_sum, double *arcs) {
    eisner_inside c = eisner_inside_tables(n, memory);
    int64_t N = n + 1, S = c.stride, size = N * S, work = 0;
    double *d_right = memory + EISNER_LOGS * size, *d_right_by_end = d_right + size, *d_left = d_right_by_end + size;
    double *d_left_by_end = d_left + size, *d_open_right = d_left_by_end + size, *d_open_left = d_open_right + size;
    if (eisner_fill(&c, scores, log_sum) < 0) return -1;
    memset(arcs, 0, N * N * sizeof(double));
    if (!(*log_sum > -INFINITY)) return 0;
    memset(d_right, 0, EISNER_SHARES * size * sizeof(double));
    double top = *log_sum, total = 0.0;
    if (fabs(top) > EISNER_EXACT) {
        top = -INFINITY;
        for (int64_t r = 1; r <= n; r++) top = fmax(top, scores[r] + c.left[S + r] + c.right[r * S + n]);
        for (int64_t r = 1; r <= n; r++) total += exp(scores[r] + c.left[S + r] + c.right[r * S + n] - top);
    }
    for (int64_t r = 1; r <= n; r++) {
        arcs[r] = exp(scores[r] + c.left[S + r] + c.right[r * S + n] - top);
        if (total > 0) arcs[r] /= total;
        d_left[S + r] += arcs[r];
        d_right[r * S + n] += arcs[r];
    }
    for (int64_t width = n - 1; width > 0; width--) {
        for (int64_t i = 1, j = i + width; j <= n; i++, j++) {
            int64_t from = i * S + j, to = j * S + i;
            eisner_share(c.open_right + i * S + i + 1, d_open_right + i * S + i + 1, c.right_by_end + to + 1,
                         d_right_by_end + to + 1, width, c.right[from], d_right[from] + d_right_by_end[to]);
            eisner_share(c.left + i * S + i, d_left + i * S + i, c.open_left + to, d_open_left + to, width, c.left[from],
                         d_left[from] + d_left_by_end[to]);
            arcs[i * N + j] = d_open_right[from];
            arcs[j * N + i] = d_open_left[to];
            eisner_share(c.right + i * S + i, d_right + i * S + i, c.left_by_end + to + 1, d_left_by_end + to + 1, width,
                         c.middle[from], d_open_right[from] + d_open_left[to]);
        }
        if (stop_count(&work, (n - width) * width * 20) < 0) return -1;
    }
    return 0;
}

/* ---- samples ---- */

/* An index k, with probability exp(a_k + b_k - value), by a number from 0 to 1. */
static int64_t eisner_draw(const double *a, const double *b, int64_t n, double value, double uniform) {
    double below = 0.0, total = 0.0;
    int64_t last = 0;
    if (fabs(value) > EISNER_EXACT) {
        value = -INFINITY;
        for (int64_t k = 0; k < n; k++) value = fmax(value, a[k] + b[k]);
        for (int64_t k = 0; k < n; k++) total += exp(a[k] + b[k] - value);
        uniform *= total;
    }
    for (int64_t k = 0; k < n; k++) {
        double part = exp(a[k] + b[k] - value);
        if (part > 0.0) last = k;
        below += part;
        if (part > 0.0 && uniform < below) return k;
    }
    return last;                /* rounding has left it */
}

/* Heads of words 1 .. n in some independent trees, by 2 n numbers from 0 to 1 for each: what each item consists of is drawn
 * in proportion to its inside sums. `stack` has room for 3 (2 n + 2). Returns 0, 1 if there is no tree, or -1. */
static int eisner_samples(int64_t n, const double *scores, double *memory, int32_t *stack, int64_t n_samples,
                          const double *uniforms, int32_t *heads) {
    eisner_inside c = eisner_inside_tables(n, memory);
    int64_t S = c.stride, work = 0;
    double log_sum, *roots = memory + EISNER_LOGS * (n + 1) * S;
    if (eisner_fill(&c, scores, &log_sum) < 0) return -1;
    if (!(log_sum > -INFINITY)) return 1;
    for (int64_t r = 1; r <= n; r++) roots[r - 1] = scores[r] + c.left[S + r];
    for (int64_t r = 1; r <= n; r++) roots[n + r - 1] = c.right[r * S + n];
    for (; n_samples > 0; n_samples--, heads += n, uniforms += 2 * n) {
        const double *u = uniforms;
        int64_t size = 2, root = 1 + eisner_draw(roots, roots + n, n, log_sum, *u++);
        heads[root - 1] = 0;
        int32_t items[] = {1, (int32_t)root, 1, (int32_t)root, (int32_t)n, 0};  /* (i, j, kind), as in eisner_unfold */
        memcpy(stack, items, sizeof items);
        while (size > 0) {
            size--;
            int64_t i = stack[3 * size], j = stack[3 * size + 1], k;
            int kind = stack[3 * size + 2];
            if (i == j) continue;
            if (kind == 0) {
                k = i + 1 + eisner_draw(c.open_right + i * S + i + 1, c.right_by_end + j * S + i + 1, j - i, c.right[i * S + j], *u++);
                int32_t parts[] = {(int32_t)i, (int32_t)k, 2, (int32_t)k, (int32_t)j, 0};
                memcpy(stack + 3 * size, parts, sizeof parts);
            } else if (kind == 1) {
                k = i + eisner_draw(c.left + i * S + i, c.open_left + j * S + i, j - i, c.left[i * S + j], *u++);
                int32_t parts[] = {(int32_t)i, (int32_t)k, 1, (int32_t)k, (int32_t)j, 3};
                memcpy(stack + 3 * size, parts, sizeof parts);
            } else {
                if (kind == 2) heads[j - 1] = (int32_t)i;
                else heads[i - 1] = (int32_t)j;
                k = i + eisner_draw(c.right + i * S + i, c.left_by_end + j * S + i + 1, j - i, c.middle[i * S + j], *u++);
                int32_t parts[] = {(int32_t)i, (int32_t)k, 0, (int32_t)(k + 1), (int32_t)j, 1};
                memcpy(stack + 3 * size, parts, sizeof parts);
            }
            size += 2;
        }
        if (stop_count(&work, 40 * n * n) < 0) return -1;
    }
    return 0;
}

#endif
