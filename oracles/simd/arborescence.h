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
static inline int64_t arborescence_sums_size(int64_t n) { return 2 * n * n + n; }

/* log sum over all trees of exp(score), and the probability of each arc. Row and column k of the Laplacian are word k + 1,
 * the first row holds the scores of the root; each column is divided by the exponential of its greatest score. Returns 0,
 * or -1 once `stop_poll` has; log_sum is -inf where there is no tree. */
static int arborescence_sums(int64_t n, const double *scores, double *memory, double *log_sum, double *arcs) {
    int64_t N = n + 1, work = 0;
    double *L = memory, *inverse = L + n * n, *top = inverse + n * n;
    *log_sum = 0.0;
    for (int64_t m = 1; m <= n; m++) {
        double most = -INFINITY, diagonal = 0.0;
        for (int64_t h = 0; h <= n; h++)
            if (h != m) most = fmax(most, scores[h * N + m]);
        if (!(most > -INFINITY)) {
            *log_sum = -INFINITY;
            return 0;
        }
        top[m - 1] = most;
        *log_sum += most;
        for (int64_t h = 1; h <= n; h++) {
            double a = h == m ? 0.0 : exp(scores[h * N + m] - most);
            L[(h - 1) * n + m - 1] = -a;
            diagonal += a;
        }
        L[(m - 1) * n + m - 1] = diagonal;
        L[m - 1] = exp(scores[m] - most);
        if (stop_count(&work, 20 * n) < 0) return -1;
    }
    /* Gauss and Jordan, with the greatest pivot of each column. */
    for (int64_t k = 0; k < n; k++) {
        memset(inverse + k * n, 0, n * sizeof(double));
        inverse[k * n + k] = 1.0;
        if (stop_count(&work, n) < 0) return -1;
    }
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++)
            if (fabs(L[i * n + k]) > fabs(L[pivot * n + k])) pivot = i;
        if (L[pivot * n + k] == 0.0) {
            *log_sum = -INFINITY;
            return 0;
        }
        for (int64_t j = 0; j < n && pivot != k; j++) {
            double a = L[k * n + j], b = inverse[k * n + j];
            L[k * n + j] = L[pivot * n + j];
            inverse[k * n + j] = inverse[pivot * n + j];
            L[pivot * n + j] = a;
            inverse[pivot * n + j] = b;
        }
        double factor = 1.0 / L[k * n + k];
        *log_sum += log(fabs(L[k * n + k]));
        for (int64_t j = 0; j < n; j++) {
            L[k * n + j] *= factor;
            inverse[k * n + j] *= factor;
        }
        for (int64_t i = 0; i < n; i++) {
            double a = L[i * n + k];
            if (i == k || a == 0.0) continue;
            for (int64_t j = 0; j < n; j++) {
                L[i * n + j] -= a * L[k * n + j];
                inverse[i * n + j] -= a * inverse[k * n + j];
            }
            if (stop_count(&work, 2 * n) < 0) return -1;
        }
    }
    for (int64_t k = 0; k < N; k++) arcs[k * N] = arcs[k * N + k] = 0.0;
    for (int64_t m = 1; m <= n; m++) {
        arcs[m] = exp(scores[m] - top[m - 1]) * inverse[(m - 1) * n];
        for (int64_t h = 1; h <= n; h++) {
            if (h == m) continue;
            double a = exp(scores[h * N + m] - top[m - 1]), p = 0.0;
            if (m > 1) p += a * inverse[(m - 1) * n + m - 1];
            if (h > 1) p -= a * inverse[(m - 1) * n + h - 1];
            arcs[h * N + m] = p;
        }
        if (stop_count(&work, 20 * n) < 0) return -1;
    }
    return 0;
}

#endif
