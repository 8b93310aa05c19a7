#include "structsvm_core.h"
#include "structsvm_names.h"
#include "structsvm_tokens.h"

/* Tokens from which on scores of the k best are summed in float64; bytes of tables of tokens kept for the way back. */
enum { LONG = 256, KEPT = 1 << 22 };

/* (G, P, stride), (stride), (stride): as in the package's chain.h. */
typedef struct { const float *A, *start, *end; } scores;

typedef struct {
    uint32_t N, H;                      /* nodes of an automaton: as in the package's ruled.h */
    const int32_t *labels, *rows, *group, *ends, *groups, *next, *first, *origins, *origin;
} automaton;

struct structsvm_own {
    tokens in;                          /* behind the rows of tokens' features are K rows per feature of pairs */
    uint32_t K, stride, order, G, P;
    float temperature;                  /* 0: no probabilities */
    scores plain, scaled;
    automaton rules;                    /* N = 0: none */
    float *tables;                      /* behind plain and scaled */
    weights pairs;                      /* a row per feature of pairs: those of labels side by side, of `stride` each */
    room V, R, table, back, held, made; /* these grow */
    int keeps;                          /* whether there is a table for each token */
};

static void read_rules(reader *r, model *m) {
    automaton *a = &m->rules;
    const uint32_t *head = take_n(r, U32, 2);
    if (r->failed) return;
    uint64_t N = head[0], H = head[1], K = m->K, n_origins, n_rows = (m->order == 2 ? K : 1) * m->P; /* a later token's */
    need(r, N > 0 && N < INT32_MAX / 2 && H > 0 && H <= N);
    a->N = head[0], a->H = head[1];
    a->labels = take_n(r, U32, N), a->rows = take_n(r, U32, N), a->group = take_n(r, U32, N);
    a->ends = take_n(r, U32, N), a->groups = take_n(r, U32, H + 1), a->next = take_n(r, U32, H * K);
    a->first = take_n(r, U32, K), a->origins = take_n(r, U32, N + 1), a->origin = take(r, U32, NULL, &n_origins);
    need(r, !r->failed && within(a->labels, N, 0, K) && within(a->rows, N, 0, n_rows) && within(a->group, N, 0, H)
                && within(a->next, H * K, -1, N) && within(a->first, K, -1, N) && within(a->origin, n_origins, 0, H)
                && rises((const uint32_t *)a->groups, H + 1, N) && rises((const uint32_t *)a->origins, N + 1, n_origins));
    for (uint64_t h = 0; !r->failed && h < H; h++) {
        need(r, a->groups[h] < a->groups[h + 1]);
        for (int32_t n = a->groups[h]; n < a->groups[h + 1]; n++) need(r, a->group[n] == (int32_t)h);
    }
    for (uint64_t j = 0; !r->failed && j < N; j++)
        for (int32_t e = a->origins[j] + 1; e < a->origins[j + 1]; e++) need(r, a->origin[e] > a->origin[e - 1]);
}

/* A, start and end in rows of `stride`; returns what is behind them. */
static float *read_scores(reader *r, const model *m, scores *s, float *to) {
    uint64_t n = (uint64_t)m->G * m->P + 2, K = m->K;
    const float *given = take_n(r, F32, n * K);
    need(r, !r->failed && are_scores(given, n * K, 1));
    if (r->failed) return to;
    for (uint64_t i = 0; i < n; i++) memcpy(to + i * m->stride, given + i * K, K * sizeof(float));
    s->A = to, s->start = to + (n - 2) * m->stride, s->end = to + (n - 1) * m->stride;
    return to + n * m->stride;
}

/* The rows of features of pairs, made of the K rows of each behind those of tokens. */
static void read_pairs(reader *r, model *m) {
    weights *w = &m->in.W;
    weights *p = &m->pairs;
    uint64_t first = m->in.n_features, n = (uint64_t)m->in.n_pairs * m->K, block = (uint64_t)m->K * m->stride;
    uint64_t total = 0, many = 0, e = 0;
    need(r, n == 0 || block < INT32_MAX);
    if (!r->failed) p->extents = zeros(r, m->in.n_pairs, sizeof *p->extents);
    for (uint64_t i = 0; !r->failed && i < n; i++) p->extents[i / m->K].size += extent_of(w, (uint32_t)(first + i)).size;
    p->stride = (uint32_t)block, p->full_size = p->stride / 3 + 1;
    for (uint32_t i = 0; !r->failed && i < m->in.n_pairs; i++) {
        uint32_t size = p->extents[i].size, is_full = size >= p->full_size;
        p->extents[i] = (extent){(uint32_t)(is_full ? many : total), size, 1.0f};
        many += is_full, total += is_full ? 0 : size;
    }
    uint32_t *columns = r->failed ? NULL : zeros(r, total, 2 * sizeof *columns);
    float *floats = r->failed ? NULL : (float *)(columns + total);
    p->columns = (indices){columns, U32}, p->v.floats = floats;
    p->full = p->made = r->failed ? NULL : zeros(r, many * block, sizeof *p->made);
    for (uint64_t i = 0; !r->failed && i < n; i++) {
        extent own = p->extents[i / m->K], q = extent_of(w, (uint32_t)(first + i));
        uint64_t row = i % m->K * m->stride;
        for (uint32_t k = 0; k < q.size; k++) {
            uint64_t at = row + (w->extents == NULL ? k : index_at(&w->columns, q.start + k));
            float x = w->extents == NULL ? w->full[(uint64_t)q.start * m->K + k] : value_at(&w->v, q.start + k, q.unit);
            if (own.size >= p->full_size) p->made[own.start * block + at] = x;
            else columns[e] = (uint32_t)at, floats[e++] = x;
        }
    }
    extent *kept = w->extents == NULL ? NULL : realloc(w->extents, (size_t)(first + 1) * sizeof *kept);
    if (kept != NULL) w->extents = kept;
}

static int read_model(reader *r, structsvm *tagger) {
    /* Kind of model, labels, order, columns, features of tokens and of pairs, how tokens are read, form of weights,
     * whether there are rules, functions of places, whether there are scaled scores. */
    const uint32_t *head = take_n(r, U32, 11);
    const float *temperature = take_n(r, F32, 1);
    if (r->failed || head[0] != 1) return STRUCTSVM_FILE;
    model *m = tagger->own = calloc(1, sizeof(model));
    if (m == NULL) return STRUCTSVM_MEMORY;
    tokens *in = &m->in;
    in->K = m->K = head[1], m->order = head[2], in->n_columns = head[3], in->n_features = head[4], in->n_pairs = head[5];
    in->n_places = head[9], m->temperature = *temperature;
    need(r, are_sound(in) && (m->order == 1 || m->order == 2) && head[6] == (in->n_columns == 0) && head[8] <= 1
                && head[10] <= 1 && m->temperature >= 0.0f && m->temperature <= 3.402823466e38f);
    if (r->failed) return STRUCTSVM_FILE;
    in->stride = m->stride = (m->K + LANES - 1) / LANES * LANES;
    m->G = m->order == 1 ? 1 : m->K + 1;
    m->P = m->order == 1 ? m->K : m->K + 1;
    uint64_t n_rows = in->n_features + (uint64_t)in->n_pairs * m->K, size = ((uint64_t)m->G * m->P + 2) * m->stride;
    /* No more is allocated than some times what the file has: rows of K floats become rows of `stride`. */
    if (n_rows > INT32_MAX || size / LANES > r->size) return STRUCTSVM_FILE;
    TRY(read_labels(r, tagger, m->K));
    m->tables = calloc((size_t)(size * (1 + head[10])), sizeof(float));
    if (m->tables == NULL) return STRUCTSVM_MEMORY;
    float *behind = read_scores(r, m, &m->plain, m->tables);
    m->scaled = m->plain;
    if (head[10] && !r->failed) read_scores(r, m, &m->scaled, behind);
    if (head[8] && !r->failed) read_rules(r, m);
    if (!r->failed) read_weights(r, &in->W, n_rows, in->n_features, m->K, head[7], m->stride);
    read_pairs(r, m);
    if (r->failed) return STRUCTSVM_FILE;
    TRY(read_tokens(r, tagger, in));
    return r->failed || r->at != r->size ? STRUCTSVM_FILE : STRUCTSVM_OK;
}

static void release(model *m) {
    room *rooms[] = {&m->V, &m->R, &m->table, &m->back, &m->held, &m->made};
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) free(rooms[i]->data);
    release_tokens(&m->in);
    release_weights(&m->pairs), free((void *)m->pairs.columns.data), free(m->tables);
}
static float *row_at(const model *m, uint64_t t) { return row_of(&m->in, t); }
static int fill(model *m, const structsvm_text *texts, const uint32_t *starts, uint32_t n, float divisor) {
    if (m->in.n_pairs > 0) {
        uint64_t size = (uint64_t)m->G * m->P * m->stride * sizeof(float);
        m->keeps = n * size <= KEPT;
        GROW(m->table, (m->keeps ? n : 1) * size + (uint64_t)m->K * m->stride * sizeof(float));
        GROW(m->made, n);
        memset(m->made.data, 0, n);
    }
    return fill_tokens(&m->in, texts, starts, n, divisor);
}
/* The table of transition scores into token t > 0: that of all tokens, or with its own features of pairs. */
static const float *table_at(model *m, const scores *s, uint32_t t, float divisor) {
    const uint32_t *starts = m->in.pair_starts.data, *ids = m->in.pair_ids.data;
    uint64_t size = (uint64_t)m->G * m->P * m->stride, stride = m->stride;
    if (m->in.n_pairs == 0 || starts[t] == starts[t + 1]) return s->A;
    float *table = (float *)m->table.data + m->K * stride + (m->keeps ? t * size : 0);
    float *rows = m->order == 1 ? table : m->table.data;
    uint8_t *made = (uint8_t *)m->made.data + t;
    if (*made && m->keeps) return table;
    *made = 1;
    if (m->order == 1) memcpy(table, s->A, size * sizeof(float));
    else memset(rows, 0, m->K * stride * sizeof(float));
    for (uint32_t e = starts[t]; e < starts[t + 1]; e++) add_row(&m->pairs, ids[e], ((float *)m->in.pair_values.data)[e], divisor, rows);
    if (m->order == 2)
        for (uint64_t q = 0; q < (uint64_t)m->K * m->P; q++)
            for (uint64_t c = 0; c < stride; c++)
                table[q * stride + c] = s->A[q * stride + c] + rows[q / m->P * stride + c];
    return table;
}

/* ---- the best labels: as in the package's chain.h ----------------------------------------------------------------- */
static uint64_t block_of(const model *m) { return m->rules.N > 0 ? m->rules.N : (uint64_t)m->G * m->stride; }
static uint64_t label_of(const model *m, uint64_t state) {
    return m->rules.N > 0 ? (uint64_t)m->rules.labels[state] : (uint32_t)state % m->stride;
}
/* The state of a first label, or -1; whether a state may be the last one. */
static int64_t first_of(const model *m, uint64_t c) {
    return m->rules.N > 0 ? m->rules.first[c] : (int64_t)((m->G - 1) * (uint64_t)m->stride + c);
}
static int may_end(const model *m, uint64_t state) {
    return m->rules.N > 0 ? m->rules.ends[state] != 0 : label_of(m, state) < m->K;
}
/* The states that tokens behind the first may have: there are none behind it without a label before. */
static uint64_t targets_of(const model *m) {
    return m->rules.N == 0 && m->G > 1 ? (uint64_t)m->K * m->stride : block_of(m);
}
/* Where the state stands from which label a leads to group g. */
static uint64_t from_of(const model *m, uint64_t g, uint64_t a) { return m->G == 1 ? a : a * m->stride + g; }
/* a > b ? a : b, of each. */
static floats greater(floats a, floats b) {
#if defined(__wasm_simd128__)
    return __builtin_wasm_pmax_f32x4(b, a);
#elif defined(__SSE__)
    return __builtin_ia32_maxps(a, b);
#elif defined(__GNUC__)
    typedef int32_t masks __attribute__((vector_size(16), aligned(4), may_alias));
    return (floats)(((a > b) & (masks)a) | (~(masks)(a > b) & (masks)b));
#else
    return a > b ? a : b;
#endif
}

/* The best scores of states at a token from those of the token before. */
static void chain_step(const model *m, const float *A, const float *E, const float *before, float *now) {
    uint64_t stride = m->stride, P = m->P;
    for (uint64_t g = 0; g < (m->G == 1 ? 1 : m->K); g++, A += P * stride, now += stride)
        for (uint64_t c = 0; c < stride; c += 2 * WIDE) {
            floats one = *(floats *)(now + c), two = one;      /* -inf */
            for (uint64_t a = 0; a < P; a++) {
                const float *row = A + a * stride + c, x = before[from_of(m, g, a)];
                one = greater(x + *(const floats *)row, one), two = greater(x + *(const floats *)(row + WIDE), two);
            }
            one += *(const floats *)(E + c), two += *(const floats *)(E + c + WIDE);
            *(floats *)(now + c) = one, *(floats *)(now + c + WIDE) = two;
        }
}

/* ---- under an automaton: as in the package's ruled.h --------------------------------------------------------------- */
static void ruled_step(const model *m, const float *A, const float *E, const float *before, float *now) {
    const automaton *r = &m->rules;
    uint64_t K = m->K;
    for (uint64_t h = 0; h < r->H; h++)
        for (int32_t node = r->groups[h]; node < r->groups[h + 1]; node++) {
            const float *row = A + (uint64_t)r->rows[node] * m->stride;
            const int32_t *next = r->next + h * K;
            if (before[node] == -INFINITY) continue;
            for (uint64_t c = 0; c < K; c++)
                if (next[c] >= 0 && before[node] + row[c] > now[next[c]]) now[next[c]] = before[node] + row[c];
        }
    for (uint64_t j = 0; j < r->N; j++) now[j] += E[r->labels[j]];
}

static void forward(model *m, const scores *s, uint32_t n, float *V) {
    uint64_t block = block_of(m);
    for (uint64_t j = 0; j < block * n; j++) V[j] = -INFINITY;
    for (uint64_t c = 0; c < m->K; c++)
        if (first_of(m, c) >= 0) V[first_of(m, c)] = row_at(m, 0)[c] + s->start[c];
    for (uint32_t t = 1; t < n; t++, V += block)
        (m->rules.N > 0 ? ruled_step : chain_step)(m, table_at(m, s, t, 1.0f), row_at(m, t), V, V + block);
}

/* ---- ways back -------------------------------------------------------------------------------------------------- */
/* The states before state j and the scores of the transitions from them: how many. */
static uint64_t gathered(const model *m, const float *A, uint64_t j, uint32_t *from, float *steps) {
    const automaton *r = &m->rules;
    uint64_t g = (uint32_t)j / m->stride, c = label_of(m, j), found = 0;
    for (uint64_t a = 0; r->N == 0 && a < m->P; a++, found++)
        from[a] = (uint32_t)from_of(m, g, a), steps[a] = A[(g * m->P + a) * m->stride + c];
    for (int32_t e = r->N == 0 ? 0 : r->origins[j]; r->N > 0 && e < r->origins[j + 1]; e++)
        for (int32_t n = r->groups[r->origin[e]]; n < r->groups[r->origin[e] + 1]; n++, found++)
            from[found] = (uint32_t)n, steps[found] = A[(uint64_t)r->rows[n] * m->stride + c];
    return found;
}

/* The state before state j on the best way to it. */
static uint64_t before_of(const model *m, const float *A, const float *before, uint64_t j) {
    const int32_t *rows = m->rules.N > 0 ? m->rules.rows : NULL;
    uint32_t *from = m->in.heads.data;
    float *steps = (float *)(from + block_of(m)), best = -INFINITY;
    uint64_t n = gathered(m, A, j, from, steps), found = n > 0 ? from[0] : j;
    for (uint64_t i = 0; i < n; i++) {
        float x = before[from[i]] + steps[i];
        if (x > best || (rows != NULL && x == best && x > -INFINITY && rows[from[i]] < rows[found]))
            best = x, found = from[i];
    }
    return found;
}

/* Among equal scores those win that the package's decoders prefer. */
static int best_labels(model *m, uint32_t n, uint32_t *labels) {
    const automaton *r = &m->rules;
    const float *V = m->V.data, *last = V + (n - 1) * block_of(m);
    float best = -INFINITY;
    uint64_t at = 0, least = 0;
    for (uint64_t j = 0; j < block_of(m); j++) {
        if (!may_end(m, j)) continue;
        float x = last[j] + m->plain.end[label_of(m, j)];
        uint64_t place = r->N == 0 ? j : label_of(m, j) + (m->G == 1 ? 0 : (uint64_t)r->rows[j] % m->P * m->K);
        if (x > best || (x == best && x > -INFINITY && place < least)) best = x, least = place, at = j;
    }
    if (!(best > -INFINITY)) return STRUCTSVM_NOTHING;
    for (uint32_t t = n - 1;; t--) {
        labels[t] = (uint32_t)label_of(m, at);
        if (t == 0) return STRUCTSVM_OK;
        at = before_of(m, table_at(m, &m->plain, t, 1.0f), V + (t - 1) * block_of(m), at);
    }
}

int structsvm_predict(structsvm *tagger, const structsvm_text *texts, const uint32_t *starts, uint32_t n_tokens,
                      uint32_t *labels) {
    model *m = tagger->own;
    if (n_tokens == 0) return STRUCTSVM_OK;
    TRY(fill(m, texts, starts, n_tokens, 1.0f));
    GROW(m->V, (uint64_t)n_tokens * block_of(m) * sizeof(float));
    GROW(m->in.heads, 2 * block_of(m) * sizeof(uint32_t));
    forward(m, &m->plain, n_tokens, m->V.data);
    return best_labels(m, n_tokens, labels);
}

/* ---- the k best ------------------------------------------------------------------------------------------------- */
/* Scores of the k best ways to each state, and how many of these are taken. */
typedef struct { const float *before; uint32_t *heads, k; } lists;

/* The k best ways to state j of a token: for each rank the best next way of a state before. */
static void kbest_at(const model *m, const float *A, const lists *l, const float *E, uint64_t j, float *score,
                     uint32_t *back) {
    uint64_t states = block_of(m), k = l->k;
    uint32_t *from = l->heads + states;
    float *steps = (float *)(from + states);
    uint64_t n = gathered(m, A, j, from, steps);
    for (uint64_t i = 0; i < n; i++) l->heads[from[i]] = 0;
    for (uint64_t rank = 0; rank < k; rank++) {
        float best = -INFINITY;
        uint64_t top = NONE;
        for (uint64_t i = 0; i < n; i++) {
            if (l->heads[from[i]] == k) continue;
            float x = l->before[from[i] * k + l->heads[from[i]]] + steps[i];
            if (x > best) best = x, top = from[i];
        }
        if (top == NONE) return;
        score[j * k + rank] = best + E[label_of(m, j)];
        back[j * k + rank] = (uint32_t)(top * k + l->heads[top]++);
    }
}

/* The labels of the way that ends in a state at a rank. */
static void follow(const model *m, const uint32_t *back, uint32_t n, uint64_t k, uint64_t state, uint64_t rank,
                   uint32_t *labels) {
    for (uint32_t t = n - 1;; t--) {
        labels[t] = (uint32_t)label_of(m, state);
        if (t == 0) return;
        uint64_t b = back[(t * block_of(m) + state) * k + rank];
        state = b / k, rank = b % k;
    }
}
/* The score of a labelling in float64, a float32 sum per token. */
static double long_score(model *m, const uint32_t *y, uint32_t n) {
    const scores *s = &m->plain;
    double total = (double)(s->start[y[0]] + row_at(m, 0)[y[0]]);
    for (uint32_t t = 1; t < n; t++) {
        uint64_t row = y[t - 1];
        if (m->G > 1) row = row * m->P + (t > 1 ? y[t - 2] : m->K);
        total += (double)(table_at(m, s, t, 1.0f)[row * m->stride + y[t]] + row_at(m, t)[y[t]]);
    }
    return total + (double)s->end[y[n - 1]];
}
/* Sort labellings by falling scores, stably. */
static int ordered(model *m, uint32_t n, uint32_t found, uint32_t *labels, double *totals) {
    GROW(m->held, (uint64_t)n * sizeof(uint32_t));
    for (uint32_t i = 1; i < found; i++) {
        double x = totals[i];
        uint32_t j = i;
        memcpy(m->held.data, labels + (uint64_t)i * n, n * sizeof *labels);
        for (; j > 0 && totals[j - 1] < x; j--) {
            totals[j] = totals[j - 1];
            memcpy(labels + (uint64_t)j * n, labels + (uint64_t)(j - 1) * n, n * sizeof *labels);
        }
        totals[j] = x;
        memcpy(labels + (uint64_t)j * n, m->held.data, n * sizeof *labels);
    }
    return STRUCTSVM_OK;
}

int structsvm_kbest(structsvm *tagger, const structsvm_text *texts, const uint32_t *starts, uint32_t n_tokens, uint32_t k,
                    uint32_t *labels, double *totals) {
    model *m = tagger->own;
    const scores *s = &m->plain;
    if (k == 0) return STRUCTSVM_INPUT;
    if (n_tokens == 0) return totals[0] = 0.0, 1;
    uint64_t states = block_of(m), size = states * n_tokens;
    if (size > MOST_ROOM / 4 / k) return STRUCTSVM_SIZE;
    TRY(fill(m, texts, starts, n_tokens, 1.0f));
    GROW(m->V, size * k * sizeof(float));
    GROW(m->back, size * k * sizeof(uint32_t));
    GROW(m->in.heads, 3 * states * sizeof(uint32_t));
    float *score = m->V.data;
    uint32_t *back = m->back.data, *heads = m->in.heads.data;
    memset(heads, 0, (size_t)states * sizeof *heads);
    for (uint64_t j = 0; j < size * k; j++) score[j] = -INFINITY;
    for (uint64_t c = 0; c < m->K; c++)
        if (first_of(m, c) >= 0) score[(uint64_t)first_of(m, c) * k] = row_at(m, 0)[c] + s->start[c];
    for (uint32_t t = 1; t < n_tokens; t++) {
        lists l = {score + (t - 1) * states * k, heads, k};
        const float *A = table_at(m, s, t, 1.0f), *E = row_at(m, t);
        float *now = score + t * states * k;
        for (uint64_t j = 0; j < targets_of(m); j++)
            if (label_of(m, j) < m->K) kbest_at(m, A, &l, E, j, now, back + t * states * k);
    }
    lists l = {score + (n_tokens - 1) * states * k, heads, k};
    memset(heads, 0, (size_t)states * sizeof *heads);
    uint32_t found = 0;
    for (; found < k; found++) {
        float best = -INFINITY;
        uint64_t top = NONE;
        for (uint64_t q = 0; q < states; q++) {
            if (heads[q] == k || !may_end(m, q)) continue;
            float x = l.before[q * k + heads[q]] + s->end[label_of(m, q)];
            if (x > best) best = x, top = q;
        }
        if (top == NONE) break;
        totals[found] = best;
        follow(m, back, n_tokens, k, top, heads[top]++, labels + (uint64_t)found * n_tokens);
    }
    if (found == 0) return STRUCTSVM_NOTHING;
    if (n_tokens > LONG) {
        for (uint32_t i = 0; i < found; i++) totals[i] = long_score(m, labels + (uint64_t)i * n_tokens, n_tokens);
        TRY(ordered(m, n_tokens, found, labels, totals));
    }
    return (int)found;
}

/* ---- probabilities ---------------------------------------------------------------------------------------------- */
/* alpha = R + E - its greatest; 0 if all are -inf, or not numbers. */
static int alpha_of(const model *m, const double *R, uint32_t t, double *alpha) {
    uint64_t states = block_of(m);
    double top = -INFINITY;
    for (uint64_t j = 0; j < states; j++) {
        alpha[j] = label_of(m, j) < m->K ? R[j] + row_at(m, t)[label_of(m, j)] : -INFINITY;
        top = alpha[j] > top ? alpha[j] : top;
    }
    for (uint64_t j = 0; j < states; j++) alpha[j] -= top;
    return top > -INFINITY && top < INFINITY;
}

/* R[t][q] = log of the sum of exp(score) of all labellings before t that lead to state q; then, from the end, the
 * probabilities of the states. */
int structsvm_probability(structsvm *tagger, const structsvm_text *texts, const uint32_t *starts, uint32_t n_tokens,
                          float *probabilities) {
    model *m = tagger->own;
    const scores *s = &m->scaled;
    if (m->temperature == 0.0f) return STRUCTSVM_MARGINS;
    if (n_tokens == 0) return STRUCTSVM_OK;
    TRY(fill(m, texts, starts, n_tokens, m->temperature));
    uint64_t states = block_of(m), K = m->K;
    GROW(m->R, (n_tokens + 3) * states * sizeof(double));
    GROW(m->in.heads, 2 * states * sizeof(uint32_t));
    double *R = m->R.data, *alpha = R + n_tokens * states, *now = alpha + states, *before = now + states;
    uint32_t *from = m->in.heads.data;
    float *steps = (float *)(from + states);
    for (uint64_t j = 0; j < states; j++) R[j] = -INFINITY;
    for (uint64_t c = 0; c < K; c++)
        if (first_of(m, c) >= 0) R[first_of(m, c)] = s->start[c];
    for (uint32_t t = 1; t < n_tokens; t++) {
        double *out = R + t * states;
        if (!alpha_of(m, out - states, t - 1, alpha)) return STRUCTSVM_NOTHING;
        const float *A = table_at(m, s, t, m->temperature);
        for (uint64_t j = 0; j < states; j++) {
            uint64_t found = j < targets_of(m) && label_of(m, j) < K ? gathered(m, A, j, from, steps) : 0;
            double top = -INFINITY, sum = 0.0, x;
            for (uint64_t i = 0; i < found; i++) top = (x = alpha[from[i]] + steps[i]) > top ? x : top;
            for (uint64_t i = 0; top > -INFINITY && i < found; i++) sum += exp(alpha[from[i]] + steps[i] - top);
            out[j] = top > -INFINITY ? top + log(sum) : -INFINITY;
        }
    }
    if (!alpha_of(m, R + (n_tokens - 1) * states, n_tokens - 1, alpha)) return STRUCTSVM_NOTHING;
    double top = -INFINITY;
    for (uint64_t j = 0; j < states; j++) {
        now[j] = may_end(m, j) ? alpha[j] + s->end[label_of(m, j)] : -INFINITY;
        top = now[j] > top ? now[j] : top;
    }
    if (!(top > -INFINITY)) return STRUCTSVM_NOTHING;
    for (uint64_t j = 0; j < states; j++) now[j] = exp(now[j] - top);
    for (uint32_t t = n_tokens - 1;; t--) {
        double sum = 0.0;
        for (uint64_t j = 0; j < states; j++) sum += now[j];
        if (!(sum > 0.0 && sum <= 1.7976931348623157e308)) return STRUCTSVM_NOTHING;
        for (uint64_t j = 0; j < states; j++) now[j] /= sum, before[j] = 0.0;
        float *row = probabilities + t * K;
        for (uint64_t c = 0; c < K; c++) row[c] = 0.0f;
        for (uint64_t j = 0; j < states; j++)
            if (label_of(m, j) < K) row[label_of(m, j)] += (float)now[j];
        if (t == 0) return STRUCTSVM_OK;
        if (!alpha_of(m, R + (t - 1) * states, t - 1, alpha)) return STRUCTSVM_NOTHING;
        const float *A = table_at(m, s, t, m->temperature);
        for (uint64_t j = 0; j < targets_of(m); j++) {
            uint64_t found = label_of(m, j) < K && now[j] > 0.0 ? gathered(m, A, j, from, steps) : 0;
            for (uint64_t i = 0; i < found; i++) before[from[i]] += now[j] * exp(alpha[from[i]] + steps[i] - R[t * states + j]);
        }
        memcpy(now, before, states * sizeof *now);
    }
}
