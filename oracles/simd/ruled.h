/* The programmes of chain.h over pairs of a label and a state of an automaton: labellings of a regular language alone.
 *
 * A node is a label c of a token and the state q of the automaton behind it, for order 2 also the label g of the token
 * before: a place of a block of N floats. Nodes that share what they lead to are a group, ascending: those of a state, for
 * order 2 of a state and its label. So the scores of a step are those of a chain without rules, a row of labels at a time,
 *     r[h][c] = max_{n in h} V[t-1][n] + A[row(n)][c],    V[t][m] = E[t][c] + max_{h: next(h, c) = m} r[h][c],
 * and the other recursions likewise. Each labelling of the language has one path of nodes: moments of labels and of
 * transitions are sums over nodes, and the k best paths are the k best labellings.
 */
#ifndef STRUCTSVM_RULED_H
#define STRUCTSVM_RULED_H

#include "chain_expect.h"

typedef chain_kernels ruled_kernels;
KERNELS_OF(ruled);

/* Label of node n before the present one, for order 2; K before the first token. */
ROWS_INLINE int64_t ruled_earlier(const chain_scores *s, int64_t n) { return s->rules->rows[n] % s->P; }

ROWS_INLINE const float *ruled_row(const chain_scores *s, int64_t t, int64_t n) {
    return s->A + t * s->each + s->rules->rows[n] * s->stride;
}

/* For size: what is around the loops of these is as fast. */
#define RULED_COLD static __attribute__((noinline, cold))

ROWS_INLINE int64_t ruled_work(const chain_scores *s) {
    return s->rules->N * s->stride / LANES + s->rules->H * s->K + s->rules->N;
}

ROWS_INLINE void ruled_none(const chain_scores *s, float *V) {
    for (int64_t n = 0; n < s->rules->N; n++) V[n] = -INFINITY;
}

static void ruled_first(const chain_scores *s, const float *E, const float *loss, float *V) {
    ruled_none(s, V);
    for (int64_t c = 0; c < s->K; c++)
        if (s->rules->first[c] >= 0) V[s->rules->first[c]] = E[c] + s->start[c] + (loss == NULL ? 0.0f : loss[c]);
}

static __attribute__((noinline)) void ruled_step(const chain_scores *s, int64_t t, const float *before, const float *E,
                                                 const float *loss, float *V) {
    const chain_rules *r = s->rules;
    ruled_none(s, V);
    for (int64_t h = 0; h < r->H; h++) {
        const int32_t *next = r->next + h * s->K;
        for (int64_t j = 0; j < s->stride; j += LANES) {
            float best[LANES];
            rows_v m = rows_all(-INFINITY);
            for (int64_t n = r->groups[h]; n < r->groups[h + 1]; n++)
                m = rows_max(before[n] + *(const rows_v *)(ruled_row(s, t, n) + j), m);
            memcpy(best, &m, sizeof best);
            for (int64_t c = j; c < j + LANES && c < s->K; c++)
                if (next[c] >= 0 && best[c - j] > V[next[c]]) V[next[c]] = best[c - j];
        }
    }
    for (int64_t n = 0; n < r->N; n++) {
        int64_t c = r->labels[n];
        if (loss != NULL) V[n] += loss[c];
        V[n] += E[c];
    }
}

/* The node through which node m of token t got its maximum; where several did, the one that a chain without rules would
 * choose. Scores that overflowed to NaN must not lead out of the table. */
RULED_COLD int64_t ruled_back(const chain_scores *s, int64_t t, const float *before, int64_t m, float *best) {
    const chain_rules *r = s->rules;
    int64_t c = r->labels[m], at = r->origins[m] < r->origins[m + 1] ? r->groups[r->origin[r->origins[m]]] : m;
    *best = -INFINITY;
    for (int64_t k = r->origins[m]; k < r->origins[m + 1]; k++)
        for (int64_t n = r->groups[r->origin[k]]; n < r->groups[r->origin[k] + 1]; n++) {
            float x = before[n] + ruled_row(s, t, n)[c];
            if (x > *best || (x == *best && x > -INFINITY && r->rows[n] < r->rows[at])) *best = x, at = n;
        }
    return at;
}

RULED_COLD float ruled_last(const chain_scores *s, const float *V, int64_t *at) {
    float best = -INFINITY;
    int64_t least = 0;
    *at = 0;
    for (int64_t n = 0; n < s->rules->N; n++) {
        float x = V[n] + s->end[s->rules->labels[n]];
        int64_t place = s->rules->labels[n] + (s->G == 1 ? 0 : ruled_earlier(s, n) * s->K);
        if (s->rules->ends[n] && (x > best || (x == best && x > -INFINITY && place < least))) {
            best = x;
            least = place;
            *at = n;
        }
    }
    return best;
}

static int ruled_best(chain_scores *s, const float *E, const int32_t *gold, int64_t T, float *V, float *sums,
                      int32_t *path, float *score) {
    int64_t N = s->rules->N, work = 0, n;
    float ignored;
    (void)sums;
    for (int64_t t = 0; t < T; t++) {
        const float *loss = gold == NULL ? NULL : s->loss + gold[t] * s->stride;
        if (t == 0) ruled_first(s, E, loss, V);
        else ruled_step(s, t, V + (t - 1) * N, E + t * s->stride, loss, V + t * N);
        if (stop_count(&work, ruled_work(s)) < 0) return -1;
    }
    *score = ruled_last(s, V + (T - 1) * N, &n);
    for (int64_t t = T - 1; t >= 0; t--) {
        path[t] = s->rules->labels[n];
        if (t > 0) n = ruled_back(s, t, V + (t - 1) * N, n, &ignored);
    }
    return stop_poll(work);
}

/* As chain_count. */
RULED_COLD int ruled_count(const chain_scores *s, const float *E, const int32_t *gold, int64_t T, int64_t cap, float *V,
                           float *best) {
    int64_t N = s->rules->N, layer = (cap + 1) * N, work = 0, most = 0, at;
    for (int64_t t = 0; t < T; t++) {
        float *now = V + t * layer;
        int64_t unit = s->units[gold[t]];
        most += unit;
        for (int64_t d = 0; d <= cap; d++) {
            if (d > most || (t == 0 && d > 0)) ruled_none(s, now + d * N);
            else if (t == 0) ruled_first(s, E, NULL, now);
            else ruled_step(s, t, now - layer + d * N, E + t * s->stride, NULL, now + d * N);
            if (stop_count(&work, ruled_work(s)) < 0) return -1;
        }
        for (int64_t d = cap; d >= 0; d--)
            for (int64_t n = 0; n < N; n++) {
                float *v = now + d * N + n, less = d >= unit ? v[-unit * N] : -INFINITY;
                if (s->rules->labels[n] != gold[t]) *v = d == cap && *v > less ? *v : less;
            }
    }
    for (int64_t d = 0; d <= cap; d++) best[d] = ruled_last(s, V + (T - 1) * layer + d * N, &at);
    return stop_poll(work);
}

RULED_COLD void ruled_count_path(const chain_scores *s, const int32_t *gold, int64_t T, int64_t cap, int64_t d,
                                 const float *V, float *sums, int32_t *path) {
    int64_t N = s->rules->N, layer = (cap + 1) * N, n;
    float score, other;
    (void)sums;
    ruled_last(s, V + (T - 1) * layer + d * N, &n);
    for (int64_t t = T - 1; t >= 0; t--) {
        path[t] = s->rules->labels[n];
        if (t == 0) break;
        const float *before = V + (t - 1) * layer;
        int64_t unit = s->units[gold[t]], wrong = d >= unit && path[t] != gold[t] ? unit : 0;
        int64_t from = ruled_back(s, t, before + (d - wrong) * N, n, &score);
        if (wrong && d == cap) {
            int64_t same = ruled_back(s, t, before + d * N, n, &other);
            if (other > score) from = same, wrong = 0;
        }
        d -= wrong;
        n = from;
    }
}

/* As chain_kbest; `heads` has room for N numbers. */
RULED_COLD int64_t ruled_kbest(const chain_scores *s, const float *E, int64_t T, int64_t k, float *score, int64_t *back,
                               int64_t *heads, int32_t *paths, float *totals) {
    const chain_rules *r = s->rules;
    int64_t N = r->N, work = 0, found = 0;
    for (int64_t j = 0; j < T * N * k; j++) score[j] = -INFINITY;
    for (int64_t c = 0; c < s->K; c++)
        if (r->first[c] >= 0) score[r->first[c] * k] = E[c] + s->start[c];
    for (int64_t t = 1; t < T; t++) {
        const float *before = score + (t - 1) * N * k;
        for (int64_t m = 0; m < N; m++) {
            int64_t c = r->labels[m];
            float *out = score + (t * N + m) * k;
            for (int64_t e = r->origins[m]; e < r->origins[m + 1]; e++)
                for (int64_t n = r->groups[r->origin[e]]; n < r->groups[r->origin[e] + 1]; n++) heads[n] = 0;
            for (int64_t rank = 0; rank < k; rank++) {
                float best = -INFINITY;
                int64_t top = -1;
                for (int64_t e = r->origins[m]; e < r->origins[m + 1]; e++)
                    for (int64_t n = r->groups[r->origin[e]]; n < r->groups[r->origin[e] + 1]; n++) {
                        if (heads[n] == k) continue;
                        float x = before[n * k + heads[n]] + ruled_row(s, t, n)[c];
                        if (x > best) best = x, top = n;
                    }
                if (top < 0) break;
                out[rank] = best + E[t * s->stride + c];
                back[(t * N + m) * k + rank] = top * k + heads[top]++;
            }
            if (stop_count(&work, k * s->K) < 0) return -1;
        }
    }
    const float *last = score + (T - 1) * N * k;
    memset(heads, 0, N * sizeof(int64_t));
    for (; found < k; found++) {
        float best = -INFINITY;
        int64_t top = -1;
        for (int64_t n = 0; n < N; n++) {
            if (heads[n] == k || !r->ends[n]) continue;
            float x = last[n * k + heads[n]] + s->end[r->labels[n]];
            if (x > best) best = x, top = n;
        }
        if (top < 0) break;
        int64_t rank = heads[top]++, n = top;
        totals[found] = best;
        for (int64_t t = T - 1; t >= 0; t--) {
            paths[found * T + t] = r->labels[n];
            if (t == 0) break;
            int64_t b = back[(t * N + n) * k + rank];
            rank = b % k;
            n = b / k;
        }
        if (stop_count(&work, N + T) < 0) return -1;
    }
    return stop_poll(work) < 0 ? -1 : found;
}

/* As chain_max_marginals. */
RULED_COLD int ruled_max_marginals(const chain_scores *s, const float *E, int64_t T, const float *V, float *B,
                                   float *out) {
    const chain_rules *r = s->rules;
    int64_t N = r->N, work = 0;
    float *now = B, *next = B + N;
    for (int64_t n = 0; n < N; n++) now[n] = r->ends[n] ? s->end[r->labels[n]] : -INFINITY;
    for (int64_t t = T - 1;; t--) {
        float *best = out + t * s->stride;
        for (int64_t c = 0; c < s->stride; c++) best[c] = -INFINITY;
        for (int64_t n = 0; n < N; n++) {
            float x = V[t * N + n] + now[n];
            if (x > best[r->labels[n]]) best[r->labels[n]] = x;
        }
        if (t == 0) break;
        float *swap = next;
        next = now;
        now = swap;
        for (int64_t h = 0; h < r->H; h++)
            for (int64_t n = r->groups[h]; n < r->groups[h + 1]; n++) {
                const float *A = ruled_row(s, t, n);
                now[n] = -INFINITY;
                for (int64_t c = 0; c < s->K; c++) {
                    int32_t m = r->next[h * s->K + c];
                    if (m < 0) continue;
                    float x = A[c] + E[t * s->stride + c] + next[m];
                    if (x > now[n]) now[n] = x;
                }
            }
        if (stop_count(&work, N * s->K) < 0) return -1;
    }
    return stop_poll(work);
}

/* R of token t from alpha of the one before; several groups that lead to a node are added one after the other. */
static __attribute__((noinline)) void ruled_logsums(const chain_scores *s, int64_t t, const float *alpha, float *R) {
    const chain_rules *r = s->rules;
    ruled_none(s, R);
    for (int64_t h = 0; h < r->H; h++) {
        int64_t first = r->groups[h], last = r->groups[h + 1];
        for (int64_t j = 0; j < s->stride; j += PART) {
            float part[PART];
            rows_part m = part_all(ROWS_LOWEST), sum = part_all(0.0f);
            for (int64_t n = first; n < last; n++)
                m = rows_part_max(alpha[n] + *(const rows_part *)(ruled_row(s, t, n) + j), m);
            for (int64_t n = first; n < last; n++)
                if (alpha[n] > -INFINITY) sum += part_exp(alpha[n] + *(const rows_part *)(ruled_row(s, t, n) + j) - m);
            m += part_log(sum);
            memcpy(part, &m, sizeof part);
            for (int64_t c = j; c < j + PART && c < s->K; c++) {
                int32_t node = r->next[h * s->K + c];
                float x = part[c - j], y;
                if (node < 0 || x == -INFINITY) continue;
                y = R[node];
                R[node] = y == -INFINITY ? x : x > y ? x + log1pf(expf(y - x)) : y + log1pf(expf(x - y));
            }
        }
    }
}

/* alpha = R + E - top; returns top. */
RULED_COLD float ruled_alpha(const chain_scores *s, const float *R, const float *E, float *alpha) {
    const chain_rules *r = s->rules;
    float top = -INFINITY;
    for (int64_t n = 0; n < r->N; n++) {
        alpha[n] = R[n] + E[r->labels[n]];
        top = alpha[n] > top ? alpha[n] : top;
    }
    for (int64_t n = 0; n < r->N; n++) alpha[n] -= top;
    return top;
}

/* As chain_backward. `row` is room for two rows. */
static __attribute__((noinline)) double ruled_backward(const chain_scores *s, int64_t t, const float *alpha,
                                                       const float *R, const float *now, float *before, float *sums,
                                                       float *row) {
    const chain_rules *r = s->rules;
    int64_t stride = s->stride;
    float *least = row, *p = row + stride;
    double entropy = 0.0, all = 0.0;
    for (int64_t h = 0; h < r->H; h++) {
        for (int64_t c = 0; c < stride; c++) {
            int32_t m = c < s->K ? r->next[h * s->K + c] : -1;
            p[c] = m < 0 ? 0.0f : now[m];
            least[c] = m < 0 || R[m] == -INFINITY ? 0.0f : R[m];
        }
        for (int64_t n = r->groups[h]; n < r->groups[h + 1]; n++) {
            before[n] = 0.0f;
            if (alpha[n] == -INFINITY) continue;
            const float *A = ruled_row(s, t, n);
            float *out = sums + (s->G == 1 ? r->labels[n] : ruled_earlier(s, n) * s->K + r->labels[n]) * stride;
            rows_part total = part_all(0.0f), bits = total;
            for (int64_t c = 0; c < stride; c += PART) {
                rows_part y = alpha[n] + *(const rows_part *)(A + c) - *(const rows_part *)(least + c);
                rows_part_bits there = (rows_part_bits)(*(const rows_part *)(p + c) > part_all(0.0f));
                y = (rows_part)((rows_part_bits)y & there);
                rows_part x = *(const rows_part *)(p + c) * part_exp(y);
                *(rows_part *)(out + c) += x;
                total += x;
                bits -= x * rows_part_max(y, part_all(ROWS_LOWEST));
            }
            for (int l = 0; l < PART; l++) {
                before[n] += total[l];
                entropy += bits[l];
            }
            all += before[n];
        }
    }
    for (int64_t n = 0; n < r->N; n++) before[n] *= (float)(1.0 / all);
    return entropy;
}

/* Node of a labelling after that of the token before; -1 where the labelling leaves the language. */
ROWS_INLINE int64_t ruled_node(const chain_scores *s, int64_t t, int64_t before, int64_t label) {
    if (t == 0) return s->rules->first[label];
    return before < 0 ? -1 : s->rules->next[s->rules->group[before] * s->K + label];
}

/* The moments of token t, and what its edge from the token before adds to `part`, of nodes with probabilities p. */
RULED_COLD void ruled_fold(const chain_scores *s, int64_t t, const float *p, const int32_t *gold, float *row,
                           float *pairs) {
    const chain_rules *r = s->rules;
    memset(row, 0, s->stride * sizeof(float));
    for (int64_t n = 0; n < r->N; n++) {
        row[r->labels[n]] += p[n];
        if (s->G > 1 && t > 0 && ruled_earlier(s, n) < s->K)
            pairs[ruled_earlier(s, n) * s->stride + r->labels[n]] += p[n];
    }
    if (gold != NULL) row[gold[t]] -= 1.0f;
}

/* As chain_expect; `work` has four blocks, the rows of transitions, and two rows. */
RULED_COLD int ruled_expect(const chain_scores *s, const float *E, const int32_t *gold, int64_t T, float *R, float *tops,
                            float *work, float *moments, int64_t n_edges, int has_end, double *out) {
    const chain_rules *r = s->rules;
    int64_t stride = s->stride, N = r->N, K = s->K, done = 0, at = -1;
    float *alpha = work, *later = work + N, *now = work + 2 * N, *before = work + 3 * N;
    float *part = work + 4 * N, *room = part + n_edges * stride;
    double log_sum = 0.0, loss = 0.0, entropy = 0.0, sum = 0.0;
    ruled_none(s, R);
    for (int64_t c = 0; c < K; c++)
        if (r->first[c] >= 0) R[r->first[c]] = s->start[c];
    for (int64_t t = 0; t < T; t++) {
        if (t > 0) ruled_logsums(s, t, alpha, R + t * N);
        if (gold != NULL) {
            int64_t node = ruled_node(s, t, at, gold[t]);
            float term = node < 0 ? NAN : t == 0 ? 0.0f : R[t * N + node] - alpha[at] - ruled_row(s, t, at)[gold[t]];
            loss += term > 0.0f ? term : term != term ? NAN : 0.0f;
            at = node;
        }
        tops[t] = ruled_alpha(s, R + t * N, E + t * stride, t == T - 1 ? later : alpha);
        log_sum += tops[t];
        if (stop_count(&done, 4 * ruled_work(s)) < 0) return -1;
    }
    float best = -INFINITY;
    for (int64_t n = 0; n < N; n++) {
        later[n] = r->ends[n] ? later[n] + s->end[r->labels[n]] : -INFINITY;
        best = later[n] > best ? later[n] : best;
    }
    for (int64_t n = 0; n < N; n++) sum += now[n] = expf(later[n] - best);
    double last = best + log(sum);
    out[0] = log_sum + last;
    if (gold != NULL) {
        double term = at < 0 ? NAN : last - later[at];
        loss += term > 0.0 ? term : term != term ? NAN : 0.0;
    }
    out[1] = loss;
    if (moments == NULL || !isfinite(out[0])) return stop_poll(done);
    for (int64_t n = 0; n < N; n++) {
        now[n] /= (float)sum;
        if (now[n] > 0.0f) entropy += now[n] * (last - later[n]);
    }
    float *edges = moments + T * stride, *pairs = s->each > 0 ? edges + n_edges * stride : NULL;
    memset(edges, 0, (n_edges + (pairs == NULL ? 0 : T * K)) * stride * sizeof(float));
    if (has_end)
        for (int64_t n = 0; n < N; n++) edges[(K + 1) * stride + r->labels[n]] += now[n];
    memset(part, 0, n_edges * stride * sizeof(float));
    for (int64_t t = T - 1;; t--) {
        float *pair = pairs == NULL || t == 0 ? NULL : pairs + t * K * stride;
        ruled_fold(s, t, now, gold, moments + t * stride, pair == NULL ? part : pair);
        if (t == 0) break;
        ruled_alpha(s, R + (t - 1) * N, E + (t - 1) * stride, alpha);
        entropy += ruled_backward(s, t, alpha, R + t * N, now, before,
                                  s->G > 1 ? part + (K + 2) * stride : pair == NULL ? part : pair, room);
        for (int64_t q = 0; pair != NULL && q < K * stride; q++) part[q] += pair[q];
        if (gold != NULL && pair != NULL) pair[gold[t - 1] * stride + gold[t]] -= 1.0f;
        if (gold != NULL) {
            part[gold[t - 1] * stride + gold[t]] -= 1.0f;
            if (s->G > 1) part[(K + 2 + (t > 1 ? gold[t - 2] : K) * K + gold[t - 1]) * stride + gold[t]] -= 1.0f;
        }
        if (t % CHAIN_PART == 0 || t == 1) {
            for (int64_t q = 0; q < n_edges * stride; q++) edges[q] += part[q];
            memset(part, 0, n_edges * stride * sizeof(float));
        }
        float *swap = before;
        before = now;
        now = swap;
        if (stop_count(&done, 4 * ruled_work(s)) < 0) return -1;
    }
    for (int64_t n = 0; n < N; n++) edges[K * stride + r->labels[n]] += now[n];
    if (gold != NULL) {
        edges[K * stride + gold[0]] -= 1.0f;
        if (has_end) edges[(K + 1) * stride + gold[T - 1]] -= 1.0f;
    }
    out[2] = entropy;
    return stop_poll(done);
}

#endif
