/* The best tree of any shape with one word below the root: Chu and Liu, Edmonds, on a dense graph in O(n^2), and sums over
 * all such trees by Kirchhoff's theorem (Koo, Globerson, Carreras and Collins 2007).
 *
 * From each word the best arcs into it are followed up until they reach the root, or a cycle: the cycle becomes one node,
 * whose arcs from outside cost what they give up inside. Each contraction of c nodes takes O(c n) and leaves c - 1 fewer.
 * One word below the root: arcs from the root cost so much that a tree has no more of them than it must.
 */
#ifndef STRUCTSVM_ARBORESCENCE_H
#define STRUCTSVM_ARBORESCENCE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "stop.h"

enum { ARBORESCENCE_OK = 0, ARBORESCENCE_NO_TREE = 1 };

/* Bytes that `arborescence_best` needs for n words. */
static inline int64_t arborescence_size(int64_t n) {
    return (n + 1) * (n + 1) * (int64_t)(sizeof(double) + 2 * sizeof(int32_t)) + (n + 1) * (int64_t)(2 * sizeof(double) + 10 * sizeof(int32_t));
}

/* The heads of words 1 .. n. Returns ARBORESCENCE_OK, ARBORESCENCE_NO_TREE if all trees with one word below the root score
 * -inf, or -1 once `stop_poll` has. */
static int arborescence_best(int64_t n, const float *scores, void *memory, int32_t *heads, float *best) {
    int64_t N = n + 1, work = 0, n_ids = N, n_path = 0;
    double *into = memory;                  /* [v N + u]: the arc u -> v, less what it gives up */
    double *given = into + N * N;           /* by slot: the score of the arc that was chosen into it */
    int32_t *from = (int32_t *)(given + N), *to = from + N * N; /* the words of that arc */
    int32_t *id = to + N * N, *state = id + N, *path = state + N, *parent = path + N; /* parent, source, target: by id */
    int32_t *source = parent + 2 * N, *target = source + 2 * N;
    double low = INFINITY, high = -INFINITY;
    for (int64_t v = 1; v <= n; v++) {
        if (stop_count(&work, 4 * n) < 0) return -1;
        for (int64_t u = 0; u <= n; u++) {
            double s = u == v ? -INFINITY : scores[u * N + v];
            into[v * N + u] = s;
            from[v * N + u] = (int32_t)u;
            to[v * N + u] = (int32_t)v;
            if (s > -INFINITY) {
                low = fmin(low, s);
                high = fmax(high, s);
            }
        }
    }
    double price = 1.0 + (double)N * (high - low);
    for (int64_t v = 1; v <= n; v++) into[v * N] -= price;
    for (int64_t v = 0; v < 2 * N; v++) parent[v] = -1;
    for (int64_t v = 0; v <= n; v++) {
        id[v] = (int32_t)v;
        state[v] = 0;                       /* 1: on the path; 2: leads to the root; 3: in another node */
    }
    state[0] = 2;
    for (int64_t start = 1; start <= n; start++) {
        int64_t at = start;
        while (state[at] == 0) {
            double *row = into + at * N;
            int64_t up = -1;
            for (int64_t u = 0; u <= n; u++)
                if (state[u] != 3 && u != at && (up < 0 || row[u] > row[up])) up = u;
            if (up < 0 || !(row[up] > -INFINITY)) return ARBORESCENCE_NO_TREE;
            given[at] = row[up];
            source[id[at]] = from[at * N + up];
            target[id[at]] = to[at * N + up];
            state[at] = 1;
            path[n_path++] = (int32_t)at;
            if (stop_count(&work, n) < 0) return -1;
            if (state[up] != 1) {
                at = up;                    /* either the path goes on, or it has reached the root */
                continue;
            }
            /* A cycle from `up` to `at`: contracted into the slot `up`. */
            int64_t first = n_path - 1;
            while (path[first] != up) first--;
            int32_t node = (int32_t)n_ids++;
            for (int64_t k = first; k < n_path; k++) {
                parent[id[path[k]]] = node;
                state[path[k]] = 3;
            }
            for (int64_t u = 0; u <= n; u++) {
                if (state[u] == 3) continue;
                int64_t in = path[first], out = path[first];
                for (int64_t k = first; k < n_path; k++) {
                    int64_t v = path[k];
                    if (into[v * N + u] - given[v] > into[in * N + u] - given[in]) in = v;
                    if (u > 0 && into[u * N + v] > into[u * N + out]) out = v;
                }
                double score = into[in * N + u] - given[in];
                int32_t score_from = from[in * N + u], score_to = to[in * N + u];
                into[up * N + u] = score;
                from[up * N + u] = score_from;
                to[up * N + u] = score_to;
                if (u == 0) continue;
                into[u * N + up] = into[u * N + out];
                from[u * N + up] = from[u * N + out];
                to[u * N + up] = to[u * N + out];
            }
            if (stop_count(&work, 2 * n * (n_path - first)) < 0) return -1;
            n_path = first;
            id[up] = node;
            state[up] = 0;
            at = up;
        }
        while (n_path > 0) state[path[--n_path]] = 2;
    }
    /* A node's arc replaces, at the member that it enters, the arc within the cycle; from the last node to the first. */
    for (int64_t k = n_ids - 1; k > n; k--) {
        int32_t member = target[k];
        while (parent[member] != k) member = parent[member];
        source[member] = source[k];
        target[member] = target[k];
    }
    int64_t n_roots = 0;
    double total = 0.0;
    for (int64_t v = 1; v <= n; v++) {
        heads[v - 1] = source[v];
        n_roots += source[v] == 0;
        total += scores[source[v] * N + v];
    }
    *best = (float)total;
    return n_roots == 1 ? ARBORESCENCE_OK : ARBORESCENCE_NO_TREE;
}

/* ---- sums ---- */

/* Doubles that `arborescence_sums` needs. */
static inline int64_t arborescence_sums_size(int64_t n) { return 2 * n * n + 4 * n; }

/* Let two words change places. */
static void arborescence_swap(int64_t n, double *A, double *R, double *word, int64_t i, int64_t k) {
    double held;
    if (i == k) return;
    for (int64_t j = 0; j < n; j++) held = A[i * n + j], A[i * n + j] = A[k * n + j], A[k * n + j] = held;
    for (int64_t j = 0; j < n; j++) held = A[j * n + i], A[j * n + i] = A[j * n + k], A[j * n + k] = held;
    held = R[i], R[i] = R[k], R[k] = held;
    held = word[i], word[i] = word[k], word[k] = held;
}

/* log sum over all trees of exp(score), and the probability of each arc, by elimination without subtraction (Grassmann,
 * Taksar and Heyman 1985), which the matrix-tree theorem for Markov chains allows: the sum over the trees with root r is
 * proportional to how often a chain that steps from word to head is at r. With A[i, j] the weight of word i's head j, and
 * R[i] that of the root, word k is taken out of those that are left:
 *
 *     sum(A, R) = s_k sum(A', R'),   s_k = sum_j A[k, j],   A'[i, j] = A[i, j] + A[i, k] A[k, j] / s_k   (R' likewise)
 *
 * up to the last word, whose sum is R. The word of the largest s_k goes next, so that A[i, k] / s_k <= 1. Probabilities
 * are usages of arcs: backwards, an arc's usage is shared between its own weight and the way by k,
 *
 *     u[i, k] = sum_j via[i, j],   u[k, j] = sum_i via[i, j] + A[k, j] / s_k (1 - sum_ij via[i, j]).
 *
 * Where weights are restored by subtraction, what is lost is no more than a rounding of a probability. Each word's
 * weights are divided by the greatest. Returns 0, or -1 once `stop_poll` has; log_sum is -inf where there is no tree. */
static int arborescence_sums(int64_t n, const double *scores, double *memory, double *log_sum, double *arcs) {
    int64_t N = n + 1, work = 0;
    double *A = memory, *use = A + n * n, *R = use + n * n, *root_use = R + n, *leaves = root_use + n, *word = leaves + n;
    *log_sum = 0.0;
    for (int64_t m = 1; m <= n; m++) {
        double most = -INFINITY;
        for (int64_t h = 0; h <= n; h++)
            if (h != m) most = fmax(most, scores[h * N + m]);
        if (!(most > -INFINITY)) {
            *log_sum = -INFINITY;
            return 0;
        }
        *log_sum += most;
        for (int64_t h = 1; h <= n; h++) A[(m - 1) * n + h - 1] = h == m ? 0.0 : exp(scores[h * N + m] - most);
        R[m - 1] = exp(scores[m] - most);
        word[m - 1] = (double)m;
        if (stop_count(&work, 20 * n) < 0) return -1;
    }
    for (int64_t r = n; r > 1; r--) {
        double most = 0.0;
        int64_t pick = 0, k = r - 1;
        double *out = A + k * n;
        for (int64_t a = 0; a < r; a++) {
            double sum = 0.0;
            for (int64_t b = 0; b < r; b++) sum += A[a * n + b];
            if (sum > most) most = sum, pick = a;
        }
        if (!(most > 0.0)) {
            *log_sum = -INFINITY;
            return 0;
        }
        arborescence_swap(n, A, R, word, pick, k);
        leaves[k] = most;
        *log_sum += log(most);
        for (int64_t a = 0; a < k; a++) {
            double *row = A + a * n, x = row[k] / most;
            if (x == 0.0) continue;
            for (int64_t b = 0; b < k; b++) row[b] += x * out[b];
            row[a] = 0.0;
            R[a] += x * R[k];
        }
        if (stop_count(&work, 2 * r * r) < 0) return -1;
    }
    *log_sum += log(R[0]);
    if (!(*log_sum > -INFINITY)) return 0;
    memset(use, 0, n * n * sizeof(double));
    root_use[0] = 1.0;
    for (int64_t k = 1; k < n; k++) {
        double all = 0.0, root = 0.0, *out = A + k * n, *its = use + k * n;
        for (int64_t a = 0; a < k; a++) {
            double *row = A + a * n, *own = use + a * n, x = row[k] / leaves[k], via = 0.0, share;
            if (x == 0.0) continue;
            for (int64_t b = 0; b < k; b++) {
                double more = x * out[b], part = more / row[b];
                part = own[b] * (part < 1.0 ? part : 1.0);  /* an arc that is never used has a share of 0, or 0 / 0 */
                own[b] -= part;
                its[b] += part;
                via += part;
                more = row[b] - more;
                row[b] = more > 0.0 ? more : 0.0;
            }
            share = x * R[k] / R[a];
            share = root_use[a] * (share < 1.0 ? share : 1.0);
            root_use[a] -= share;
            root += share;
            R[a] = fmax(R[a] - x * R[k], 0.0);
            own[k] = via + share;
            all += via + share;
        }
        root_use[k] = root;
        for (int64_t b = 0; b < k; b++) its[b] = fmax(its[b] + out[b] / leaves[k] * (1.0 - all), 0.0);
        if (stop_count(&work, 8 * k * k) < 0) return -1;
    }
    for (int64_t m = 0; m < N; m++) arcs[m * N] = arcs[m * N + m] = 0.0;
    for (int64_t a = 0; a < n; a++) {
        int64_t m = (int64_t)word[a];
        arcs[m] = root_use[a];
        for (int64_t b = 0; b < n; b++)
            if (a != b) arcs[(int64_t)word[b] * N + m] = use[a * n + b];
    }
    return 0;
}

/* ---- samples ---- */

/* Doubles that `arborescence_samples` needs. */
static inline int64_t arborescence_samples_size(int64_t n) { return 3 * n * n + 2 * n + 1; }

/* Probabilities of less are taken for 0, as those of heads that would close a cycle are but for rounding; and how far
 * their sum may be from 1 before rounding is held to have spoilt them. */
#define ARBORESCENCE_NOTHING 1e-12
#define ARBORESCENCE_SOUND 1e-6

/* B = L^-1 by Gauss and Jordan; L is lost. 0, or 1 where there is no inverse. */
static int arborescence_inverse(int64_t n, double *L, double *B) {
    memset(B, 0, n * n * sizeof(double));
    for (int64_t i = 0; i < n; i++) B[i * n + i] = 1.0;
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++)
            if (fabs(L[i * n + k]) > fabs(L[pivot * n + k])) pivot = i;
        double x = L[pivot * n + k];
        if (!(fabs(x) > 0.0)) return 1;
        for (int64_t j = 0; j < n; j++) {
            double held = L[k * n + j];
            L[k * n + j] = L[pivot * n + j] / x, L[pivot * n + j] = pivot == k ? L[k * n + j] : held;
            held = B[k * n + j];
            B[k * n + j] = B[pivot * n + j] / x, B[pivot * n + j] = pivot == k ? B[k * n + j] : held;
        }
        for (int64_t i = 0; i < n; i++) {
            double by = L[i * n + k];
            if (i == k || by == 0.0) continue;
            for (int64_t j = k; j < n; j++) L[i * n + j] -= by * L[k * n + j];
            for (int64_t j = 0; j < n; j++) B[i * n + j] -= by * B[k * n + j];
        }
    }
    return 0;
}

/* Whether heads lead from each of n words to the root, by one word below it. */
static int arborescence_is_tree(int64_t n, const int32_t *heads) {
    int64_t roots = 0;
    for (int64_t m = 1; m <= n; m++) {
        int64_t at = m, steps = 0;
        roots += heads[m - 1] == 0;
        while (at != 0 && steps++ <= n) at = heads[at - 1];
        if (at != 0) return 0;
    }
    return roots == 1;
}

/* The heads of a tree: of one word after the other, given those before. With B the inverse of the matrix of Koo et al.,
 * whose column m is the sum over heads h of w_hm c_hm, the probability of a head is w_hm (B c_hm)_m; that this column is
 * replaced by the chosen one changes B by a matrix of rank 1 (Colbourn, Myrvold and Neufeld 1996). */
static int arborescence_sample(int64_t n, const double *w, double *B, double *p, const double *uniforms, int32_t *heads) {
    for (int64_t m = 0; m < n; m++) {
        const double *row = B + m * n, *own = w + m * (n + 1);
        double diagonal = m > 0 ? row[m] : 0.0, total = 0.0, below = 0.0;
        int64_t head = -1;
        for (int64_t h = 0; h <= n; h++) {
            double x = h == 0 ? row[0] : diagonal - (h > 1 ? row[h - 1] : 0.0);
            p[h] = own[h] * x < ARBORESCENCE_NOTHING ? 0.0 : own[h] * x;
            total += p[h];
        }
        if (!(fabs(total - 1.0) < ARBORESCENCE_SOUND)) return 2;
        for (int64_t h = 0; h <= n && (head < 0 || below <= uniforms[m] * total); h++) {
            if (p[h] > 0.0) head = h;
            below += p[h];
        }
        heads[m] = (int32_t)head;
        double by = own[head] / p[head];
        for (int64_t i = m + 1; i < n; i++) {
            double *other = B + i * n, v = head == 0 ? other[0] : (m > 0 ? other[m] : 0.0) - (head > 1 ? other[head - 1] : 0.0);
            v *= by;
            for (int64_t j = 0; j < n; j++) other[j] -= v * row[j];
        }
    }
    return arborescence_is_tree(n, heads) ? 0 : 2;
}

/* Heads of words 1 .. n in some independent trees, by 2 n numbers from 0 to 1 for each. Returns 0; 1 if there is no tree; 2
 * where rounding spoils them; or -1 once `stop_poll` has. */
static int arborescence_samples(int64_t n, const double *scores, double *memory, int64_t n_samples, const double *uniforms,
                                int32_t *heads) {
    int64_t N = n + 1, work = 0;
    double *w = memory, *inverse = w + n * N, *L = inverse + n * n, *p = L + n * n;   /* w[m][h] of word m + 1 */
    memset(L, 0, n * n * sizeof(double));
    for (int64_t m = 0; m < n; m++) {
        double most = -INFINITY, *own = w + m * N;
        for (int64_t h = 0; h <= n; h++)
            if (h != m + 1) most = fmax(most, scores[h * N + m + 1]);
        if (!(most > -INFINITY)) return 1;
        for (int64_t h = 0; h <= n; h++) own[h] = h == m + 1 ? 0.0 : exp(scores[h * N + m + 1] - most);
        L[m] = own[0];
        for (int64_t h = 1; h <= n; h++) {
            if (m > 0) L[m * n + m] += own[h];
            if (h > 1) L[(h - 1) * n + m] -= own[h];
        }
        if (stop_count(&work, 20 * n) < 0) return -1;
    }
    if (arborescence_inverse(n, L, inverse)) return 2;
    for (; n_samples > 0; n_samples--, heads += n, uniforms += 2 * n) {
        memcpy(L, inverse, n * n * sizeof(double));
        int status = arborescence_sample(n, w, L, p, uniforms, heads);
        if (status) return status;
        if (stop_count(&work, n * n * n / 4 + 10 * n * n) < 0) return -1;
    }
    return 0;
}

#endif
