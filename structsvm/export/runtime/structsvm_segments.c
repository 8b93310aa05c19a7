#include "structsvm_core.h"
#include "structsvm_names.h"
#include "structsvm_tokens.h"

/* Chains of segments: typed ones of a first, inner and a last token or a single one, and tokens of no type. Segments have
 * scores of their length and phrases beside their tokens'. The arithmetic is that of the package's _semi_markov.pyx, which
 * says what R, V, G and S are. Labels are tags here; callers see what `shown` makes of them. */
enum { FIRST, INSIDE, LAST, SINGLE, LOWERED = 0, SHAPED, MOST_LENGTH = (1 << 15) - 1, MOST_KINDS = 8 };

/* Names of tokens, made of a column, or of the attribute with a beginning; the known runs of 2, 3, ... of them. */
typedef struct { uint32_t column, made, size; const uint8_t *begin; strings names; joint *joints; } kind;

struct structsvm_own {
    tokens in;                          /* behind the rows of tokens' features is one per phrase, by type */
    uint32_t K, n_shown, n_kinds;
    int64_t stride, n_types, M, N, H, n_begins, n_heads, n_open, n_last, n_singles;
    float temperature;                  /* 0: no probabilities */
    const float *A[2], *g[2];           /* (K + 1, K), first labels last; (M + 1, n_types); those of probabilities second */
    const uint32_t *shown;              /* (K) */
    const int32_t *tags;                /* (n_types, 4) */
    int32_t *type_of, *part_of, *begins;    /* (K), (K); labels that segments begin with */
    /* Nodes: as in the package's SegmentNodes. */
    const int32_t *label_of, *is_final, *groups, *next, *first, *singles, *heads_of, *heads, *closed, *opened, *opens_of, *on;
    const int32_t *out, *lasts_of, *last, *last_at;
    kind kinds[MOST_KINDS];
    joint *joints;
    double *R, *V, *G, *tops, *totals;
    int32_t *from_node, *from_length, *from_start, *from_head, *path;
    room chart, ways, S, runs, lattice, parts, shares;
};

/* ---- reading ---------------------------------------------------------------------------------------------------- */
/* The type and part of each label, and those that segments begin with. */
static int read_tags(reader *r, model *m) {
    m->shown = take_n(r, U32, m->K), m->tags = take_n(r, U32, (uint64_t)(4 * m->n_types));
    need(r, within(m->shown, m->K, 0, m->n_shown) && within(m->tags, (uint64_t)(4 * m->n_types), 0, m->K));
    if (r->failed) return STRUCTSVM_FILE;
    if ((m->type_of = calloc(3 * (size_t)m->K, sizeof(int32_t))) == NULL) return STRUCTSVM_MEMORY;
    m->part_of = m->type_of + m->K, m->begins = m->part_of + m->K;
    for (uint32_t y = 0; y < m->K; y++) m->type_of[y] = -1, m->part_of[y] = SINGLE;
    for (int32_t k = 0, y; k < 4 * m->n_types; k++)
        y = m->tags[k], need(r, m->type_of[y] < 0), m->type_of[y] = k / 4, m->part_of[y] = k % 4;
    for (uint32_t y = 0; y < m->K; y++)
        if (m->part_of[y] == FIRST || m->part_of[y] == SINGLE) m->begins[m->n_begins++] = (int32_t)y;
    return r->failed ? STRUCTSVM_FILE : STRUCTSVM_OK;
}

/* Whether n nodes have labels of some parts of segments, and of type c or, if that is -1, of any; -1 may be no node. */
static int are_nodes(const model *m, const int32_t *nodes, int64_t n, int32_t parts, int32_t c) {
    for (int64_t i = 0; i < n; i++) {
        int32_t label = nodes[i] < 0 || nodes[i] >= m->N ? -1 : m->label_of[nodes[i]];
        if (nodes[i] == -1 && c == -1) continue;
        if (label < 0 || !(parts >> m->part_of[label] & 1) || (c >= 0 && m->type_of[label] != c)) return 0;
    }
    return 1;
}

/* Whether n places are -1, or those of type c of some that types divide. */
static int are_of_type(const int32_t *places, int64_t n, const int32_t *bounds, int64_t c) {
    for (int64_t i = 0; i < n; i++)
        if (places[i] != -1 && (places[i] < bounds[c] || places[i] >= bounds[c + 1])) return 0;
    return 1;
}

static void read_nodes(reader *r, model *m) {
    const int64_t sizes[] = {m->N, m->N, 2 * m->H, m->H * m->n_begins, m->n_begins, m->n_singles, m->n_types + 1, m->n_heads,
                             m->n_heads * (m->M + 1), m->n_heads, m->n_types + 1, m->n_open, m->n_open, m->n_types + 1,
                             m->n_last, m->N};
    const uint32_t n = (uint32_t)m->n_types + 1;
    const int32_t **arrays[] = {&m->label_of, &m->is_final, &m->groups, &m->next, &m->first, &m->singles, &m->heads_of,
                                &m->heads, &m->closed, &m->opened, &m->opens_of, &m->on, &m->out, &m->lasts_of, &m->last,
                                &m->last_at};
    for (int k = 0; k < 16; k++) *arrays[k] = take_n(r, U32, (uint64_t)sizes[k]);
    need(r, !r->failed && within(m->label_of, m->N, 0, m->K) && within(m->groups, 2 * m->H, 0, m->N + 1)
                && within(m->last_at, m->N, -1, m->n_last) && rises((const void *)m->heads_of, n, m->n_heads)
                && rises((const void *)m->opens_of, n, m->n_open) && rises((const void *)m->lasts_of, n, m->n_last));
    if (r->failed) return;
    need(r, are_nodes(m, m->first, m->n_begins, 1 << FIRST | 1 << SINGLE, -1)
                && are_nodes(m, m->next, m->H * m->n_begins, 1 << FIRST | 1 << SINGLE, -1));
    for (int64_t k = 0; k < m->n_singles; k++) need(r, m->singles[k] >= 0 && are_nodes(m, m->singles + k, 1, 1 << SINGLE, -1));
    for (int64_t i = 1; i < 2 * m->H; i++) need(r, m->groups[i - 1] <= m->groups[i]);
    for (int32_t c = 0; c < m->n_types; c++) {
        int64_t low = m->heads_of[c], size = m->heads_of[c + 1] - low, o = m->opens_of[c], z = m->lasts_of[c];
        need(r, are_nodes(m, m->heads + low, size, 1 << FIRST, c)
                    && are_nodes(m, m->last + z, m->lasts_of[c + 1] - z, 1 << LAST, c)
                    && are_of_type(m->closed + low * (m->M + 1), size * (m->M + 1), m->lasts_of, c)
                    && are_of_type(m->opened + low, size, m->opens_of, c)
                    && are_of_type(m->on + o, m->opens_of[c + 1] - o, m->opens_of, c)
                    && are_of_type(m->out + o, m->opens_of[c + 1] - o, m->lasts_of, c));
    }
    for (int64_t j = 0; j < m->N; j++) need(r, m->last_at[j] < 0 || m->last[m->last_at[j]] == j);
    for (int64_t z = 0; !r->failed && z < m->n_last; z++) need(r, m->last_at[m->last[z]] == z);
}

/* Names of tokens and their runs, whose rows follow those of tokens' features; how many there are. */
static int read_kinds(reader *r, model *m) {
    uint64_t n_joints = (uint64_t)m->n_kinds * ((uint64_t)m->M - 1), n_begin;
    if (r->failed || n_joints > r->size / 16) return STRUCTSVM_FILE;
    if ((m->joints = calloc((size_t)n_joints + 1, sizeof(joint))) == NULL) return STRUCTSVM_MEMORY;
    for (uint32_t k = 0; k < m->n_kinds && !r->failed; k++) {
        kind *own = m->kinds + k;
        const uint32_t *head = take_n(r, U32, 2);
        own->begin = take(r, U8, NULL, &n_begin);
        need(r, !r->failed && head[1] <= 2 && (m->in.n_columns > 0 ? head[0] < m->in.n_columns : n_begin - 1 < MOST_BYTES));
        if (r->failed) break;
        own->column = head[0], own->made = head[1], own->size = (uint32_t)n_begin, own->joints = m->joints + k * (m->M - 1);
        read_strings(r, &own->names);
        for (int64_t i = 0; i < m->M - 1 && !r->failed; i++) read_joint(r, own->joints + i);
    }
    return STRUCTSVM_OK;
}

static int read_model(reader *r, structsvm *tagger) {
    /* Kind of model, labels, those shown, columns, features, form of weights, functions of places, whether there are
     * scaled scores, types, length, kinds of names, phrases; nodes: all, groups, heads, open, last, single ones. */
    const uint32_t *head = take_n(r, U32, 18);
    const float *temperature = take_n(r, F32, 1);
    if (r->failed || head[0] != 4) return STRUCTSVM_FILE;
    model *m = tagger->own = calloc(1, sizeof(model));
    if (m == NULL) return STRUCTSVM_MEMORY;
    tokens *in = &m->in;
    in->K = m->K = head[1], m->n_shown = head[2], in->n_columns = head[3], in->n_features = head[4];
    in->n_places = head[6], m->n_types = head[8], m->M = head[9], m->n_kinds = head[10], m->N = head[12], m->H = head[13];
    m->n_heads = head[14], m->n_open = head[15], m->n_last = head[16], m->n_singles = head[17], m->temperature = *temperature;
    need(r, are_sound(in) && m->n_shown >= 1 && m->n_shown <= m->K && head[7] <= 1 && 4 * m->n_types <= m->K && m->M >= 2
                && m->M <= MOST_LENGTH && m->n_kinds <= MOST_KINDS && head[11] < INT32_MAX && m->N < INT32_MAX
                && m->temperature >= 0.0f && m->temperature <= 3.402823466e38f);
    for (int k = 13; k < 18; k++) need(r, head[k] <= head[12]);
    if (r->failed) return STRUCTSVM_FILE;
    in->stride = (m->K + LANES - 1) / LANES * LANES, m->stride = in->stride;
    TRY(read_labels(r, tagger, m->n_shown));
    TRY(read_tags(r, m));
    for (uint32_t i = 0; i <= head[7]; i++) {
        uint64_t sizes[] = {((uint64_t)m->K + 1) * m->K, (uint64_t)((m->M + 1) * m->n_types)};
        m->A[i] = m->A[1] = take_n(r, F32, sizes[0]), m->g[i] = m->g[1] = take_n(r, F32, sizes[1]);
        need(r, !r->failed && are_scores(m->A[i], sizes[0], 0) && are_scores(m->g[i], sizes[1], 0));
    }
    if (!r->failed) read_nodes(r, m);
    uint64_t n_rows = (uint64_t)in->n_features + head[11];
    if (!r->failed) read_weights(r, &in->W, n_rows, n_rows, m->K, head[5], in->stride);
    if (r->failed) return STRUCTSVM_FILE;
    TRY(read_tokens(r, tagger, in));
    if (in->n_columns == 0) read_alphabet(r, &in->abc);
    TRY(read_kinds(r, m));
    uint64_t n_phrases = 0;
    for (int64_t i = 0; !r->failed && i < m->n_kinds * (m->M - 1); i++) n_phrases += m->joints[i].n;
    return r->failed || r->at != r->size || n_phrases != head[11] ? STRUCTSVM_FILE : STRUCTSVM_OK;
}

static void release(model *m) {
    room *rooms[] = {&m->chart, &m->ways, &m->S, &m->runs, &m->lattice, &m->parts, &m->shares};
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) free(rooms[i]->data);
    release_tokens(&m->in);
    free(m->type_of), free(m->joints);
}

/* ---- phrases ---------------------------------------------------------------------------------------------------- */
/* Kinds of letters, each run of one kind as one. */
static slice runs_of(const tokens *in, const word *w, uint8_t *to) {
    slice s = {to, 0};
    for (int64_t i = 0, before = -1; i < w->n; i++) {
        uint32_t c = w->letters[i], has = properties_of(&in->abc, c);
        uint32_t own = has & UPPER ? 'X' : has & LOWER ? 'x' : has & DIGIT ? 'd' : c;
        if (own != before) s.size += encoded(own, to + s.size);
        before = own;
    }
    return s;
}

/* The number of token t's name, or NONE: of a column, or of what is behind an attribute's beginning, which ends in the mark
 * of lists or of dicts. Of several in a list it is the least; a feature of dicts has one text. */
static int read_name(model *m, const kind *k, const structsvm_text *texts, const uint32_t *starts, uint32_t t, uint32_t *to) {
    tokens *in = &m->in;
    structsvm_text text = {NULL, 0, 1.0f};
    word w;
    for (uint32_t e = in->n_columns > 0 ? 1 : starts[t]; in->n_columns == 0 && e < starts[t + 1]; e++) {
        if (texts[e].size & STRUCTSVM_NO_TEXT || texts[e].size < k->size) continue;
        char mark = texts[e].data[k->size - 1];
        if ((mark != '=' && mark != ':') || memcmp(texts[e].data, k->begin, k->size - 1) != 0) continue;
        if (mark != (char)k->begin[k->size - 1] || (mark == ':' && text.data != NULL)) return STRUCTSVM_INPUT;
        structsvm_text own = {texts[e].data + k->size, texts[e].size - k->size, 1.0f};
        int order = text.data == NULL ? -1 : memcmp(own.data, text.data, own.size < text.size ? own.size : text.size);
        if (order < 0 || (order == 0 && own.size < text.size)) text = own;
    }
    if (in->n_columns > 0) text = texts[(uint64_t)t * in->n_columns + k->column];
    else if (text.data == NULL) return *to = NONE, STRUCTSVM_OK;
    TRY(read_word(in, slice_of(&text), &w));
    GROW(in->keys, most_written(text.size));
    slice name = w.text;
    uint32_t *spare = (uint32_t *)in->letters.data + w.n;
    if (k->made == LOWERED) name = written(spare, lowered(&in->abc, w.letters, w.n, spare), in->keys.data);
    if (k->made == SHAPED) name = runs_of(in, &w, in->keys.data);
    return *to = string_in(&k->names, name.data, name.size), STRUCTSVM_OK;
}

/* Room for sequences of n tokens. */
static int grow_chart(model *m, uint64_t n) {
    uint64_t N = (uint64_t)m->N, open = (uint64_t)m->n_open, last = (uint64_t)m->n_last;
    GROW(m->chart, (n * (2 * N + open) + 2 * (last + open)) * sizeof(double));
    GROW(m->ways, n * (N + last + 2 * open + 1) * sizeof(int32_t));
    m->R = m->chart.data, m->V = m->R + n * N, m->G = m->V + n * N, m->tops = m->G + n * open;
    m->totals = m->tops + last + open, m->from_node = m->ways.data, m->from_length = m->from_node + n * N;
    m->from_start = m->from_length + n * last, m->from_head = m->from_start + n * open, m->path = m->from_head + n * open;
    return STRUCTSVM_OK;
}

/* The scores of segments that end at token t, (M + 1, stride) by length and type. */
static float *ends_at(const model *m, int64_t t) { return (float *)m->S.data + t * (m->M + 1) * m->stride; }

/* Fill E and S, and make room. A run of names is one that ended at the token before, and one name more. */
static int fill(model *m, const structsvm_text *texts, const uint32_t *starts, uint32_t n, int which) {
    float divisor = which ? m->temperature : 1.0f;
    const float *g = m->g[which];
    TRY(fill_tokens(&m->in, texts, starts, n, divisor));
    uint64_t n_runs = (uint64_t)m->M * m->n_kinds;
    GROW(m->S, n * (uint64_t)((m->M + 1) * m->stride) * sizeof(float));
    GROW(m->runs, 2 * n_runs * sizeof(uint32_t));
    uint32_t *before = m->runs.data, *now = before + n_runs;
    memset(before, 0xFF, 2 * n_runs * sizeof(uint32_t));
    for (uint32_t t = 0; t < n; t++) {
        uint32_t row = m->in.n_features, *spare = before;
        float *S = ends_at(m, t);
        for (int64_t l = 0; l <= m->M; l++)
            for (int64_t c = 0; c < m->stride; c++) S[l * m->stride + c] = c < m->n_types ? g[l * m->n_types + c] : 0.0f;
        for (uint32_t k = 0; k < m->n_kinds; k++) TRY(read_name(m, m->kinds + k, texts, starts, t, now + k));
        for (int64_t i = 0; i < (m->M - 1) * m->n_kinds; row += m->kinds[i % m->n_kinds].joints[i / m->n_kinds].n, i++) {
            const joint *known = m->kinds[i % m->n_kinds].joints + i / m->n_kinds;
            uint32_t first = before[i], last = now[i % m->n_kinds];
            uint32_t found = now[i + m->n_kinds] = first == NONE || last == NONE ? NONE : joined(known, first, last);
            if (found != NONE) add_row(&m->in.W, row + found, 1.0f, divisor, S + (i / m->n_kinds + 1) * m->stride);
        }
        before = now, now = spare;
    }
    return grow_chart(m, n);
}

/* ---- the best labels, and sums over all of them ------------------------------------------------------------------- */
static void join(double *total, double *top, double x) {
    if (x > *top) *total = (*top > -INFINITY ? *total * exp(*top - x) : 0.0) + 1.0, *top = x;
    else if (x > -INFINITY) *total += exp(x - *top);
}

static double closed_sum(double total, double top, int is_max) { return is_max || total == 0.0 ? top : top + log(total); }
/* R of token t, from V of the one before. */
static void enter(model *m, const float *A, int64_t t, int is_max) {
    double *R = m->R + t * m->N, *before = m->V + (t - 1) * m->N;
    for (int64_t k = 0; t == 0 && k < m->n_begins; k++)
        if (m->first[k] >= 0) R[m->first[k]] = A[(uint64_t)m->K * m->K + (uint64_t)m->begins[k]];
    for (int64_t i = 0; t > 0 && i < m->H * m->n_begins; i++) {
        int64_t h = i / m->n_begins, k = i % m->n_begins, node = m->next[i], best = 0;
        double top = -INFINITY, total = 0.0;
        for (int64_t j = m->groups[2 * h]; node >= 0 && j < m->groups[2 * h + 1]; j++) {
            double x = before[j] + (double)A[(uint64_t)m->label_of[j] * m->K + (uint64_t)m->begins[k]];
            if (!is_max) join(&total, &top, x);
            else if (x > top) top = x, best = j;
        }
        if (!(top > -INFINITY)) continue;
        top = closed_sum(total, top, is_max);
        if (!is_max && R[node] > -INFINITY) R[node] = fmax(R[node], top) + log1p(exp(-fabs(R[node] - top)));
        else if (top > R[node]) R[node] = top, m->from_node[t * m->N + node] = (int32_t)best;
    }
}

/* A way to place z, of last nodes and behind these of open ones; whether it is the best so far. */
static int add_way(model *m, int64_t z, double x, int is_max) {
    if (!is_max) join(m->totals + z, m->tops + z, x);
    return is_max && x > m->tops[z] ? m->tops[z] = x, 1 : 0;
}

/* V of the last nodes of type c, and G of its open ones, at token t. */
static void of_type(model *m, const float *A, const float *E, int64_t c, int64_t t, int is_max) {
    const int32_t *tags = m->tags + 4 * c;
    int64_t F = tags[FIRST], I = tags[INSIDE], L = tags[LAST], K = m->K, s = m->stride, M = m->M, n = m->n_open, z, j;
    int64_t low = m->heads_of[c], high = m->heads_of[c + 1], open = m->opens_of[c], end = m->opens_of[c + 1];
    double inside = A[I * K + I], last = (double)A[I * K + L] + E[t * s + L], run = 0.0, base;
    const float *S = ends_at(m, t) + c;
    const double *before = m->G + (t - 1) * n;
    for (z = 0; z < m->n_last + n; z++) m->tops[z] = -INFINITY, m->totals[z] = 0.0;
    /* `run`: scores of the tokens between the first and the last, and of the steps between these. */
    for (int64_t l = 2; l <= M && l <= t + 1; l++) {
        j = t - l + 1;
        if (l > 2) run += E[(j + 1) * s + I] + (l > 3 ? inside : 0.0);
        base = l == 2 ? (double)A[F * K + L] + E[t * s + L] : (double)A[F * K + I] + run + last;
        for (int64_t k = low; k < high; k++) {
            double x = base + (m->R[j * m->N + m->heads[k]] + E[j * s + F] + S[(l - 1) * s]);
            if ((z = m->closed[k * (M + 1) + l]) >= 0 && add_way(m, z, x, is_max))
                m->from_length[t * m->n_last + z] = (int32_t)l, m->from_node[t * m->N + m->last[z]] = m->heads[k];
        }
    }
    for (int64_t k = open; t > 0 && k < end; k++)
        if ((z = m->out[k]) >= 0 && add_way(m, z, before[k] + last + S[M * s], is_max))
            m->from_length[t * m->n_last + z] = (int32_t)M + 1, m->from_node[t * m->N + m->last[z]] = (int32_t)k;
    for (z = m->lasts_of[c]; z < m->lasts_of[c + 1]; z++)
        m->V[t * m->N + m->last[z]] = closed_sum(m->totals[z], m->tops[z], is_max);
    /* Open segments: those that are M tokens long now, then those that were open before. */
    j = t - M + 1;
    for (int64_t k = low; j >= 0 && k < high; k++) {
        double x = m->R[j * m->N + m->heads[k]] + E[j * s + F] + (double)A[F * K + I] + E[t * s + I];
        if ((z = m->opened[k]) >= 0 && add_way(m, m->n_last + z, x + (run + (M > 2 ? inside : 0.0)), is_max))
            m->from_start[t * n + z] = (int32_t)j, m->from_head[t * n + z] = m->heads[k];
    }
    for (int64_t k = open; t > 0 && k < end; k++)
        if ((z = m->on[k]) >= 0 && add_way(m, m->n_last + z, before[k] + inside + E[t * s + I], is_max))
            m->from_start[t * n + z] = m->from_start[(t - 1) * n + k], m->from_head[t * n + z] = m->from_head[(t - 1) * n + k];
    for (z = open; z < end; z++) m->G[t * n + z] = closed_sum(m->totals[m->n_last + z], m->tops[m->n_last + z], is_max);
}

/* Fill R, V and G from a lattice E: the score of the best labelling, or the logarithm of the sum over all. */
static double forwards(model *m, const float *A, const float *E, int64_t n, int is_max) {
    double top = -INFINITY, total = 0.0;
    for (int64_t i = 0; i < n * (2 * m->N + m->n_open); i++) m->R[i] = -INFINITY;
    for (int64_t t = 0; t < n; t++) {
        enter(m, A, t, is_max);
        for (int64_t k = 0; k < m->n_singles; k++) {
            int32_t node = m->singles[k], a = m->label_of[node];
            double x = m->R[t * m->N + node] + E[t * m->stride + a];
            m->V[t * m->N + node] = m->type_of[a] >= 0 ? x + ends_at(m, t)[m->type_of[a]] : x;
        }
        for (int64_t c = 0; c < m->n_types; c++) of_type(m, A, E, c, t, is_max);
    }
    for (int64_t j = 0; j < m->N; j++) {
        double x = m->is_final[j] ? m->V[(n - 1) * m->N + j] : -INFINITY;
        if (!is_max) join(&total, &top, x);
        else if (x > top) top = x;
    }
    return closed_sum(total, top, is_max);
}

/* The best labels by a lattice, into m->path; their score, -inf if there are none. */
static double best_labels(model *m, const float *E, int64_t n) {
    double score = forwards(m, m->A[0], E, n, 1);
    int64_t node = -1, t = n - 1, s;
    if (!(score > -INFINITY && score < INFINITY)) return -INFINITY;
    for (int64_t j = m->N - 1; j >= 0; j--)
        if (m->is_final[j] && m->V[t * m->N + j] == score) node = j;
    for (;; t = s - 1) {
        s = t, m->path[t] = m->label_of[node];
        if (m->last_at[node] >= 0) {
            const int32_t *tags = m->tags + 4 * m->type_of[m->path[t]];
            int64_t length = m->from_length[t * m->n_last + m->last_at[node]];
            node = m->from_node[t * m->N + node], s = t - length + 1;
            if (length > m->M) s = m->from_start[(t - 1) * m->n_open + node], node = m->from_head[(t - 1) * m->n_open + node];
            for (int64_t i = s + 1; i < t; i++) m->path[i] = tags[INSIDE];
            m->path[s] = tags[FIRST];
        }
        if (s == 0) return score;
        node = m->from_node[s * m->N + node];
    }
}

int structsvm_predict(structsvm *tagger, const structsvm_text *texts, const uint32_t *starts, uint32_t n_tokens,
                      uint32_t *labels) {
    model *m = tagger->own;
    if (n_tokens == 0) return STRUCTSVM_OK;
    TRY(fill(m, texts, starts, n_tokens, 0));
    if (best_labels(m, m->in.E.data, n_tokens) == -INFINITY) return STRUCTSVM_NOTHING;
    for (uint32_t t = 0; t < n_tokens; t++) labels[t] = m->shown[m->path[t]];
    return STRUCTSVM_OK;
}

/* ---- the k best ------------------------------------------------------------------------------------------------- */
/* A set of labellings by its best one: labels before `fixed` are its, and the one there is none that are refused. */
typedef struct { double score; uint32_t fixed, is_taken; } part;

/* Labellings other than the best one of a set agree with it up to some token, and not there: each token has a set. */
int structsvm_kbest(structsvm *tagger, const structsvm_text *texts, const uint32_t *starts, uint32_t n_tokens, uint32_t k,
                    uint32_t *labels, double *totals) {
    model *m = tagger->own;
    uint64_t n = n_tokens, K = m->K, size = n * (uint64_t)m->stride, most = 1 + (uint64_t)k * n, n_parts = 0;
    if (k == 0 || n == 0) return k == 0 ? STRUCTSVM_INPUT : (totals[0] = 0.0, 1);
    if (k > INT32_MAX || most > MOST_ROOM / (sizeof(part) + n * sizeof(int32_t) + K)) return STRUCTSVM_SIZE;
    TRY(fill(m, texts, starts, n_tokens, 0));
    GROW(m->lattice, size * sizeof(float));
    GROW(m->parts, most * (sizeof(part) + n * sizeof(int32_t) + K));
    part *parts = m->parts.data;
    int32_t *paths = (int32_t *)(parts + most);
    uint8_t *refused = (uint8_t *)(paths + most * n);
    float *E = m->lattice.data, *sound = m->in.E.data;
    uint32_t found = 0;
    for (uint64_t own = NONE; found < k; found++) {
        for (uint64_t t = own == NONE ? n - 1 : parts[own].fixed; t < n; t++) {
            uint8_t *marked = refused + n_parts * K;
            memcpy(E, sound, size * sizeof(float));
            memset(marked, 0, K);
            if (own != NONE && t == parts[own].fixed) memcpy(marked, refused + own * K, K);
            if (own != NONE) marked[paths[own * n + t]] = 1;
            for (uint64_t i = 0; i < (t + 1) * K; i++)
                if (i < t * K ? own != NONE && i % K != (uint64_t)paths[own * n + i / K] : marked[i % K])
                    E[i / K * (uint64_t)m->stride + i % K] = -INFINITY;
            double score = best_labels(m, E, (int64_t)n);
            if (score == -INFINITY) continue;
            parts[n_parts] = (part){score, own == NONE ? 0 : (uint32_t)t, 0};
            memcpy(paths + n_parts++ * n, m->path, n * sizeof *paths);
        }
        own = NONE;
        for (uint64_t i = 0; i < n_parts; i++)
            if (!parts[i].is_taken && (own == NONE || parts[i].score > parts[own].score)) own = i;
        if (own == NONE) break;
        parts[own].is_taken = 1, totals[found] = parts[own].score;
        for (uint64_t t = 0; t < n; t++) labels[found * n + t] = m->shown[paths[own * n + t]];
    }
    return found == 0 ? STRUCTSVM_NOTHING : (int)found;
}

/* ---- probabilities ---------------------------------------------------------------------------------------------- */
/* Hand the share of a probability back that one of the terms of a sum has; returns it. */
static double share(double whole, double term, double sum, double *to) {
    double p = whole > 0.0 ? whole * exp(term - sum) : 0.0;
    return *to += p, p;
}

static void count(const model *m, float *rows, int64_t t, int64_t label, double p) {
    rows[t * m->n_shown + m->shown[label]] += (float)p;
}

/* Shares of type c at token t: r, v and q are those of R, V and G. */
static void share_type(model *m, const float *A, const float *E, int64_t c, int64_t t, double *r, double *v, double *q,
                       float *rows) {
    const int32_t *tags = m->tags + 4 * c;
    int64_t F = tags[FIRST], I = tags[INSIDE], L = tags[LAST], K = m->K, s = m->stride, N = m->N, n = m->n_open, z;
    double inside = A[I * K + I], last = (double)A[I * K + L] + E[t * s + L], run = 0.0, p;
    const float *S = ends_at(m, t) + c;
    for (int64_t k = m->opens_of[c]; t > 0 && k < m->opens_of[c + 1]; k++) {
        double x = m->G[(t - 1) * n + k], *to = q + (t - 1) * n + k;
        if (m->out[k] >= 0)
            z = t * N + m->last[m->out[k]], count(m, rows, t, L, share(v[z], x + last + S[m->M * s], m->V[z], to));
        if (m->on[k] >= 0) z = t * n + m->on[k], count(m, rows, t, I, share(q[z], x + inside + E[t * s + I], m->G[z], to));
    }
    for (int64_t l = 2; l <= m->M && l <= t + 1; l++) {
        int64_t j = t - l + 1;
        if (l > 2) run += E[(j + 1) * s + I] + (l > 3 ? inside : 0.0);
        double x = l == 2 ? (double)A[F * K + L] + E[t * s + L] : (double)A[F * K + I] + run + last;
        for (int64_t k = m->heads_of[c]; k < m->heads_of[c + 1]; k++) {
            int64_t f = j * N + m->heads[k];
            double begun = m->R[f] + E[j * s + F];
            if ((z = m->closed[k * (m->M + 1) + l]) >= 0) {
                z = t * N + m->last[z];
                p = share(v[z], x + begun + S[(l - 1) * s], m->V[z], r + f);
                for (int64_t u = j; u <= t && p > 0.0; u++) count(m, rows, u, u == j ? F : u < t ? I : L, p);
            }
            if (l < m->M || (z = m->opened[k]) < 0) continue;
            double y = begun + A[F * K + I] + E[t * s + I] + run + (l > 2 ? inside : 0.0);
            p = share(q[t * n + z], y, m->G[t * n + z], r + f);
            for (int64_t u = j; u <= t && p > 0.0; u++) count(m, rows, u, u == j ? F : I, p);
        }
    }
}

int structsvm_probability(structsvm *tagger, const structsvm_text *texts, const uint32_t *starts, uint32_t n_tokens,
                          float *probabilities) {
    model *m = tagger->own;
    int64_t n = n_tokens, N = m->N;
    const float *A = m->A[1], *E;
    if (m->temperature == 0.0f || n == 0) return m->temperature == 0.0f ? STRUCTSVM_MARGINS : STRUCTSVM_OK;
    TRY(fill(m, texts, starts, n_tokens, 1));
    GROW(m->shares, n_tokens * (2 * (uint64_t)N + (uint64_t)m->n_open) * sizeof(double));
    double *r = m->shares.data, *v = r + n * N, *q = v + n * N, log_sum = forwards(m, A, E = m->in.E.data, n, 0);
    if (!(log_sum > -INFINITY && log_sum < INFINITY)) return STRUCTSVM_NOTHING;
    for (int64_t i = 0; i < n * (2 * N + m->n_open); i++) r[i] = 0.0;
    for (int64_t i = 0; i < n * m->n_shown; i++) probabilities[i] = 0.0f;
    for (int64_t j = 0; j < N; j++) v[(n - 1) * N + j] = m->is_final[j] ? exp(m->V[(n - 1) * N + j] - log_sum) : 0.0;
    for (int64_t t = n - 1; t >= 0; t--) {
        for (int64_t c = 0; c < m->n_types; c++) share_type(m, A, E, c, t, r, v, q, probabilities);
        for (int64_t k = 0, z; k < m->n_singles; k++)
            z = t * N + m->singles[k], r[z] += v[z], count(m, probabilities, t, m->label_of[m->singles[k]], v[z]);
        for (int64_t i = 0; t > 0 && i < m->H * m->n_begins; i++) {
            int64_t h = i / m->n_begins, label = m->begins[i % m->n_begins], z = t * N + m->next[i];
            for (int64_t j = m->groups[2 * h]; m->next[i] >= 0 && r[z] > 0.0 && j < m->groups[2 * h + 1]; j++) {
                double x = m->V[(t - 1) * N + j] + A[(uint64_t)m->label_of[j] * m->K + (uint64_t)label];
                share(r[z], x, m->R[z], v + (t - 1) * N + j);
            }
        }
    }
    return STRUCTSVM_OK;
}
