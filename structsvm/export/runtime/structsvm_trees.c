#include "structsvm_core.h"

/* Dependency trees. Hashed features of words give a score per labelled arc; the best tree over these is projective, or of
 * any shape; a second stage then climbs from it by the scores of pairs of arcs. The arithmetic is that of the package's
 * arcs.h, eisner.h, arborescence.h and pairs.h, of which it keeps the names; word 0 is the root. */
enum {
    FORM, LEMMA, UPOS, XPOS, FEATS, PREFIX, SUFFIX, SHAPE, N_CODES, N_GIVEN = PREFIX,  /* columns of a word; those given */
    N_PREFIX = 4, N_SUFFIX = 3, N_SHAPE = 6,        /* letters */
    OUTSIDE = 0, ROOT = 1, DISTANCES = 15, MOST_BETWEEN = 32, MOST_TEMPLATES_BETWEEN = 8, REACH = 9, LANES = 8,
    ROLES = 5, SIDES = 1 << ROLES, HEADS = 8, LABELS = 4, CHOICES = 26, SWEEPS = 16, MEMO = 1 << 12,
    MORE = 2, FEWEST_RANKED = 16,                   /* trees that the second stage ranks: so many times k, and the least */
    MOST_WORDS = 1 << 14, MOST_TEMPLATES = 1 << 12, CHUNK = 8192, BLOCK = 256
};
#define CHANCE -13.815510557964274                  /* log of what is no chance */
#if defined(__GNUC__)
#define NEAR(address) __builtin_prefetch(address)   /* have memory bring it near */
#else
#define NEAR(address) ((void)(address))
#endif

typedef struct { uint32_t shift; float *all; } numbers;     /* hashed ones: a key's is at the key >> shift */
/* Words of a pair of arcs, side by side: the head g of h, h, its words t, s, m. An arc of a word. A change of two words. */
typedef struct { int32_t side, word[ROLES], label[ROLES]; } part;
typedef struct { int32_t head, label; float score; } choice;
typedef struct { int64_t n; int32_t word[2]; const choice *to[2]; float gain; } move;
typedef struct { uint64_t key; float value; } memo;
/* A set of trees by its best one: words below `settled` have its arcs, and word `settled` none of those that are refused. */
typedef struct { double score; uint32_t settled, refused, is_taken; } tree_set;
typedef struct { uint32_t before; int32_t head, label; } refusal;

struct structsvm_own {
    uint32_t K, stride, is_projective, is_coarse, absent, most_words, n_arc, n_below, n_above, n_joint, n_all, n_plain;
    uint32_t root, row_shift;
    double temperature, gap, scale, arc_unit, rest[N_GIVEN];
    alphabet abc;
    uint32_t crc[8 * 256], *distance_keys, *masks;      /* (DISTANCES, n_all); (ROLES, n_pairs), of labels that are seen */
    const int32_t *distance, *between, *head_ptr, *head_parts, *below_ptr, *below_parts;
    numbers A;
    weights R;
    uint32_t n_pairs, pairs_project;                /* the second stage's; 0: there is none */
    const int32_t *pair_ptr, *pair_parts;
    const uint32_t *sees;                           /* bit r: the label of word r; SIDES */
    numbers P;
    float weight, crossing;                         /* factors: scores of arcs, a pair of arcs that cross */
    float *arc, *around;                            /* (n + 1), of words the scores of their arcs; (2 n + 2), F of sides */
    uint64_t *keys, n_climbs, width;                /* (2 n + 2), of what F depends on */
    memo *memo;
    part *parts;                                    /* (n + 2) */
    extent *spans;                                  /* found last */
    uint32_t *word_keys, *pair_keys, *side_keys;    /* (ROLES, n + 2, n_pairs); (n_pairs), (n_pairs): shared on a side */
    uint32_t n;                                     /* words of the sentence */
    int32_t *columns;                               /* (N_CODES, width): codes from word -REACH on */
    uint32_t *head_keys, *below_keys, *arc_keys;    /* (n + 1, n_all), (n + 1, n_all), (4, n_arc) */
    float *above_rows, *below_rows, *row, *zeros;   /* (n + 1, 2, stride), by whether the head stands before the word */
    float *arcs;                                    /* (n + 1, n + 1): [h (n + 1) + m], of the best label */
    int32_t *stack, *found;                         /* (6 n + 12); (2 n), heads and labels */
    room letters, bytes, words, rows, table, chart, graph, search, choices, ranked, sets, refusals, outputs, sums, tables;
};

/* ---- reading ---------------------------------------------------------------------------------------------------- */
static uint32_t mix(uint32_t key, uint32_t code) {
    key = (key ^ code) * 0x9E3779B1u;
    key = (key ^ key >> 15) * 0x85EBCA77u;
    return key ^ key >> 13;
}

/* 2^bits numbers: all, or with a bit for each those that are not 0. */
static void read_numbers(reader *r, numbers *x, uint32_t bits) {
    values v = {NULL, NULL, NULL};
    float unit = 1.0f;
    uint64_t at = 0, n_words, size = (uint64_t)1 << bits, n_blocks = (size + BLOCK - 1) / BLOCK;
    const uint32_t *head = take_n(r, U32, 2);       /* the form of values, and their number */
    if (r->failed) return;
    x->shift = 32 - bits;
    need(r, head[0] >= 1 && head[0] <= 3);
    read_values(r, &v, head[1], head[0]);
    const int8_t *exponents = take_n(r, U8, head[0] == 1 ? 0 : n_blocks);
    const uint32_t *known = take(r, U32, NULL, &n_words);
    need(r, n_words == 0 ? head[1] == size : n_words == (size + 31) / 32);
    if (!r->failed) x->all = zeros(r, size, sizeof *x->all);
    for (uint64_t i = 0; !r->failed && i < size; i++) {
        if (head[0] > 1 && i % BLOCK == 0) need(r, exponents[i / BLOCK] <= 111), unit = ldexpf(1.0f, exponents[i / BLOCK]);
        if (n_words > 0 && !(known[i / 32] >> i % 32 & 1)) continue;
        x->all[i] = at < head[1] ? value_at(&v, at, unit) : 0.0f, at++;
    }
    need(r, at == head[1]);
}

/* The numbers of n keys, in the order of the package's kernels: in lanes up to `whole`. */
static float sum_of(const numbers *x, const uint32_t *keys, uint32_t n, uint32_t whole) {
    const float *all = x->all;
    float sums[LANES] = {0.0f}, total = 0.0f;
    uint32_t shift = x->shift, t = 0;
    for (; t < whole; t += LANES)
        for (uint32_t l = 0; l < LANES; l++) sums[l] += all[keys[t + l] >> shift];
    for (int l = 0; l < LANES; l++) total += sums[l];
    for (; t < n; t++) total += all[keys[t] >> shift];
    return total;
}

/* The words that n templates see: pairs of an offset and a column, and where each template's begin. */
static void read_parts(reader *r, uint64_t n, const int32_t **ptr, const int32_t **parts) {
    uint64_t n_parts;
    *ptr = take_n(r, U32, n + 1);
    *parts = take(r, U32, NULL, &n_parts);
    need(r, n_parts % 2 == 0 && rises((const uint32_t *)*ptr, n + 1, n_parts / 2));
    for (uint64_t i = 0; !r->failed && i < n_parts; i += 2)
        need(r, within(*parts + i, 1, -REACH, REACH + 1) && within(*parts + i + 1, 1, 0, N_CODES));
}
static void read_arcs(reader *r, model *m, uint32_t arc_bits, uint32_t row_bits, uint32_t form) {
    m->distance = take_n(r, U32, m->n_all);
    m->between = take_n(r, U32, m->n_arc);
    read_parts(r, m->n_all, &m->head_ptr, &m->head_parts);
    read_parts(r, m->n_all, &m->below_ptr, &m->below_parts);
    need(r, within(m->distance, m->n_all, 0, 3) && within(m->between, m->n_arc, -1, N_CODES));
    for (m->n_plain = m->n_arc; !r->failed && m->n_plain > 0 && m->between[m->n_plain - 1] >= 0;) m->n_plain--;
    need(r, m->n_arc - m->n_plain <= MOST_TEMPLATES_BETWEEN && within(m->between, m->n_plain, -1, 0));
    read_numbers(r, &m->A, arc_bits);
    read_weights(r, &m->R, (uint64_t)1 << row_bits, (uint64_t)1 << row_bits, m->K, form, m->stride);
}
static void read_pairs(reader *r, model *m, uint32_t bits) {
    m->sees = take_n(r, U32, m->n_pairs);
    read_parts(r, (uint64_t)ROLES * m->n_pairs, &m->pair_ptr, &m->pair_parts);
    read_numbers(r, &m->P, bits);
    const float *last = take_n(r, F32, 2);
    need(r, within(m->sees, m->n_pairs, 0, 2 * SIDES) && are_scores(last, 2, 0));
    if (!r->failed) m->weight = last[0], m->crossing = last[1];
}
static int read_model(reader *r, structsvm *tagger) {
    /* Kind of model, labels, columns, whether no arcs cross, whether UPOS replaces XPOS, columns that training had not,
     * most words, numbers of templates: of arcs, of labels (of the word, of its head, of both), bits of arcs and of
     * rows, form of rows, label of the root and 1 (0: any), templates of pairs, whether none of its arcs cross, bits. */
    static const uint32_t least[] = {3, 1, N_GIVEN, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0};
    static const uint32_t most[] = {3, MOST_LABELS, N_GIVEN, 1, 1, (1 << N_GIVEN) - 1, MOST_WORDS, MOST_TEMPLATES,
                                    MOST_TEMPLATES, MOST_TEMPLATES, MOST_TEMPLATES, 28, 28, NONE, MOST_LABELS,
                                    MOST_TEMPLATES, 2 * 28 + 1};
    const uint32_t *head = take_n(r, U32, 17);
    const double *reals = take_n(r, F64, 4 + N_GIVEN);
    if (r->failed || head[0] != 3) return STRUCTSVM_FILE;
    model *m = tagger->own = calloc(1, sizeof(model));
    if (m == NULL) return STRUCTSVM_MEMORY;
    m->K = head[1], m->stride = (m->K + LANES - 1) / LANES * LANES, m->is_projective = head[3], m->is_coarse = head[4];
    m->n_arc = head[7], m->n_below = head[8], m->n_above = head[9], m->n_joint = head[10], m->root = head[14] - 1;
    m->absent = head[5], m->most_words = head[6], m->n_pairs = head[15], m->pairs_project = head[16] & 1;
    tagger->n_columns = N_GIVEN, tagger->has_trees = 1;
    for (int k = 0; k < 17; k++) need(r, head[k] >= least[k] && head[k] <= most[k]);
    need(r, (m->root == NONE || m->root < m->K) && (m->n_pairs == 0 || head[16] >> 1 >= 1));
    for (int k = 0; k < 4; k++) need(r, (k == 3 || reals[k] >= 0.0) && fabs(reals[k]) <= 1.7976931348623157e308);
    for (int k = 0; k < N_GIVEN; k++) need(r, reals[4 + k] <= 0.0);
    if (r->failed) return STRUCTSVM_FILE;
    m->temperature = reals[0], m->gap = reals[1], m->scale = reals[2], m->arc_unit = reals[3];
    m->row_shift = 32 - head[12];
    memcpy(m->rest, reals + 4, sizeof m->rest);
    m->n_all = m->n_arc + m->n_below + m->n_above + m->n_joint;
    TRY(read_labels(r, tagger, m->K));
    read_alphabet(r, &m->abc);
    read_arcs(r, m, head[11], head[12], head[13]);
    if (m->n_pairs > 0) read_pairs(r, m, head[16] >> 1);
    if (r->failed || r->at != r->size) return STRUCTSVM_FILE;
    crc_tables(m->crc);
    GROW(m->tables, m->n_all * sizeof(extent) + (DISTANCES * (uint64_t)m->n_all + ROLES * (uint64_t)m->n_pairs) * sizeof(uint32_t));
    m->spans = m->tables.data, m->distance_keys = (uint32_t *)(m->spans + m->n_all);
    m->masks = m->distance_keys + DISTANCES * (uint64_t)m->n_all;
    for (uint32_t k = 0; k < DISTANCES * m->n_all; k++) {
        const uint32_t its = k / m->n_all, seen[] = {0, 1 + its / 7, 4 + its};
        m->distance_keys[k] = mix(0x64697374u, seen[m->distance[k % m->n_all]]);
    }
    for (uint32_t k = 0; k < ROLES * m->n_pairs; k++) m->masks[k] = 0u - (m->sees[k % m->n_pairs] >> k / m->n_pairs & 1);
    return (m->memo = calloc(MEMO, sizeof(memo))) == NULL ? STRUCTSVM_MEMORY : STRUCTSVM_OK;
}
static void release(model *m) {
    room *rooms[] = {&m->letters, &m->bytes, &m->words, &m->rows, &m->table, &m->chart, &m->graph,
                     &m->search, &m->choices, &m->ranked, &m->sets, &m->refusals, &m->outputs, &m->sums, &m->tables};
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) free(rooms[i]->data);
    release_weights(&m->R), free(m->A.all), free(m->P.all), free(m->memo);
}

/* ---- words ------------------------------------------------------------------------------------------------------ */
/* The code of a string, from 2 up. */
static int32_t code_of(const model *m, const uint8_t *bytes, uint32_t size) {
    return (int32_t)(crc32_of(m->crc, bytes, size) & 0x3FFFFFFF) + 2;
}
static int32_t code_of_letters(model *m, const uint32_t *x, int64_t n) {
    uint8_t *to = m->bytes.data;
    uint32_t size = 0;
    for (int64_t i = 0; i < n; i++) size += encoded(x[i], to + size);
    return code_of(m, to, size);
}

/* Kinds of letters, runs of one kind as one, without combining ones. */
static int32_t shape_of(model *m, const uint32_t *x, int64_t n) {
    uint32_t kinds[N_SHAPE];
    int size = 0;
    for (int64_t i = 0; i < n && size < N_SHAPE; i++) {
        uint32_t has = properties_of(&m->abc, x[i]);
        uint32_t kind = has & UPPER ? 'X' : has & ALPHA ? 'x' : has & DIGIT ? 'd' : x[i];
        if (has & COMBINING) continue;
        if (size == 0 || kinds[size - 1] != kind) kinds[size++] = kind;
    }
    return code_of_letters(m, kinds, size);
}

/* Codes of a word's columns, of which some may be "_". */
static int read_word(model *m, const structsvm_text *texts, int32_t *codes) {
    for (int c = 0; c < N_GIVEN; c++) {
        if (texts[c].size > MOST_BYTES) return STRUCTSVM_INPUT;
        if (decoded(texts[c].data, texts[c].size, NULL) < 0) return STRUCTSVM_UTF8;
        codes[c] = code_of(m, (const uint8_t *)texts[c].data, texts[c].size);
    }
    if (texts[FORM].size == 0) return STRUCTSVM_INPUT;
    GROW(m->letters, 3 * (uint64_t)texts[FORM].size * sizeof(uint32_t));
    GROW(m->bytes, 8 * (uint64_t)texts[FORM].size + 4 * N_SHAPE);
    uint32_t *x = m->letters.data;
    int64_t n = decoded(texts[FORM].data, texts[FORM].size, x);
    uint32_t *lower = x + n;
    codes[SHAPE] = shape_of(m, x, n);
    n = lowered(&m->abc, x, n, lower);
    codes[FORM] = code_of_letters(m, lower, n);
    codes[PREFIX] = code_of_letters(m, lower, n < N_PREFIX ? n : N_PREFIX);
    codes[SUFFIX] = n < N_SUFFIX ? codes[FORM] : code_of_letters(m, lower + n - N_SUFFIX, N_SUFFIX);
    if (texts[LEMMA].size == 1 && texts[LEMMA].data[0] == '_') codes[LEMMA] = codes[FORM];
    if (texts[XPOS].size == 1 && texts[XPOS].data[0] == '_') codes[XPOS] = codes[UPOS];
    return STRUCTSVM_OK;
}

/* The code that stands in for a column that is not there. */
static int32_t stand_in(const model *m, const int32_t *codes, int column) {
    return column == LEMMA ? codes[FORM] : column == XPOS ? codes[UPOS] : code_of(m, (const uint8_t *)"_", 1);
}

/* The codes of a sentence, as training had them; an error for one without a column that a template needs. */
static int read_words(model *m, const structsvm_text *texts, uint32_t n) {
    uint32_t given[N_GIVEN] = {0};
    if (n > m->most_words) return STRUCTSVM_SIZE;
    m->width = (uint64_t)n + 2 + 3 * REACH + LANES;
    GROW(m->words, (N_CODES * m->width + 2 * ((uint64_t)n + 1) * m->n_all + 4 * (uint64_t)m->n_arc) * sizeof(uint32_t));
    m->n = n, m->columns = m->words.data, m->head_keys = (uint32_t *)(m->columns + N_CODES * m->width);
    m->below_keys = m->head_keys + ((uint64_t)n + 1) * m->n_all, m->arc_keys = m->below_keys + ((uint64_t)n + 1) * m->n_all;
    memset(m->columns, OUTSIDE, N_CODES * m->width * sizeof(int32_t));
    for (int c = 0; c < N_CODES; c++) m->columns[c * m->width + REACH] = ROOT;
    for (uint32_t i = 0; i < n; i++) {
        int32_t codes[N_CODES];
        TRY(read_word(m, texts + (uint64_t)i * N_GIVEN, codes));
        for (int c = 0; c < N_GIVEN; c++) given[c] += codes[c] != stand_in(m, codes, c);
        for (int c = 0; c < N_GIVEN; c++)
            if (m->absent >> c & 1) codes[c] = stand_in(m, codes, c);
        if (m->is_coarse) codes[XPOS] = codes[UPOS];
        for (int c = 0; c < N_CODES; c++) m->columns[c * m->width + REACH + 1 + i] = codes[c];
    }
    for (int c = 0; c < N_GIVEN; c++)
        if (n > 0 && given[c] == 0 && m->rest[c] * n < CHANCE) return STRUCTSVM_INPUT;
    return STRUCTSVM_OK;
}

/* The codes of a column from word i on. */
static const int32_t *codes_at(const model *m, int32_t column, int64_t i) {
    return m->columns + (uint64_t)column * m->width + (uint64_t)(REACH + i);
}

/* The keys of what a template sees of n words from one on, `step` from one to the next. */
static void keys_of(const model *m, uint32_t key, const int32_t *parts, const int32_t *ptr, uint64_t first, uint64_t n,
                    uint32_t *to, uint64_t step) {
    for (uint64_t i = 0; i < n; i += LANES) {
        uint32_t keys[LANES];
        for (int l = 0; l < LANES; l++) keys[l] = key;
        for (int32_t k = ptr[0]; k < ptr[1]; k++) {
            const int32_t *codes = codes_at(m, parts[2 * k + 1], (int64_t)(first + i) + parts[2 * k]);
            for (int l = 0; l < LANES; l++) keys[l] = mix(keys[l], (uint32_t)codes[l]);
        }
        for (uint64_t l = 0; l < LANES && i + l < n; l++) to[(i + l) * step] = keys[l];
    }
}

/* ---- arcs ------------------------------------------------------------------------------------------------------- */
static uint32_t distance_of(int64_t h, int64_t m) {
    int64_t d = h < m ? m - h : h - m;
    return h == 0 ? DISTANCES - 1 : (uint32_t)((d <= 5 ? d - 1 : d <= 10 ? 5 : 6) + (h < m ? 7 : 0));
}

/* Find the rows of n label templates of word d below word h. */
static void find_rows(const model *m, uint32_t first, uint32_t n, int64_t h, int64_t d, uint32_t distance) {
    const uint32_t *above = m->head_keys + h * m->n_all + first, *below = m->below_keys + d * m->n_all + first;
    const uint32_t *between = m->distance_keys + distance * m->n_all + first;
    const weights *w = &m->R;
    for (uint32_t k = 0; k < n; k++) {
        extent p = m->spans[k] = extent_of(w, (above[k] + below[k] + between[k]) >> m->row_shift);
        if (p.size >= w->full_size) NEAR(w->full + (uint64_t)p.start * w->stride);
        else NEAR((const uint8_t *)w->columns.data + (uint64_t)p.start * w->columns.kind);
        if (w->v.bytes != NULL) NEAR(w->v.bytes + p.start);
        if (w->v.floats != NULL) NEAR(w->v.floats + p.start);
    }
}

/* row += the n rows that were found. */
static void add_found(const model *m, uint32_t n, float *restrict row) {
    const weights *w = &m->R;
    const uint8_t *columns = w->columns.kind == U8 ? w->columns.data : NULL;
    const float *floats = columns != NULL ? w->v.floats : NULL;
    for (const extent *s = m->spans; s < m->spans + n; s++) {
        const float *full = s->size >= w->full_size ? w->full + (uint64_t)s->start * w->stride : NULL;
        uint32_t e = s->start, end = full != NULL ? e : e + s->size;
        for (uint32_t c = 0; full != NULL && c < w->stride; c++) row[c] += full[c];
        for (; floats != NULL && e < end; e++) row[columns[e]] += floats[e];
        for (; e < end; e++) row[index_at(&w->columns, e)] += value_at(&w->v, e, s->unit);
    }
}

static int look(model *m) {
    uint64_t n = m->n, K = m->K, stride = m->stride;
    GROW(m->rows, ((n + 1) * 4 + 2) * stride * sizeof(float));
    GROW(m->table, (n + 1) * (n + 1) * sizeof(float) + (8 * n + 12) * sizeof(int32_t));
    m->above_rows = m->rows.data, m->below_rows = m->above_rows + (n + 1) * 2 * stride;
    m->row = m->below_rows + (n + 1) * 2 * stride, m->zeros = m->row + stride;
    m->arcs = m->table.data, m->stack = (int32_t *)(m->arcs + (n + 1) * (n + 1)), m->found = m->stack + 6 * n + 12;
    for (uint32_t t = 0; t < m->n_all; t++) {
        keys_of(m, mix(0x68656164u, t + 1), m->head_parts, m->head_ptr + t, 0, n + 1, m->head_keys + t, m->n_all);
        keys_of(m, mix(0x62656c6fu, t + 1), m->below_parts, m->below_ptr + t, 0, n + 1, m->below_keys + t, m->n_all);
    }
    memset(m->above_rows, 0, ((n + 1) * 4 + 2) * stride * sizeof(float));
    for (uint64_t i = 0; i <= n; i++)
        for (uint32_t side = 0; side < 2; side++) {
            /* A template that sees nothing of one word has the same key of it everywhere. */
            float *above = m->above_rows + (2 * i + side) * stride;
            find_rows(m, m->n_arc, m->n_below, (int64_t)i, (int64_t)i, 7 * side);
            add_found(m, m->n_below, m->below_rows + (2 * i + side) * stride);
            find_rows(m, m->n_arc + m->n_below, m->n_above, (int64_t)i, (int64_t)i, 7 * side);
            add_found(m, m->n_above, above);
            for (uint32_t y = 0; y < stride; y++)
                if (y >= K || (m->root != NONE && (y == m->root) != (i == 0))) above[y] = -INFINITY;
        }
    return STRUCTSVM_OK;
}

/* The greatest a[k] + b[k] of n. */
static float greatest(const float *a, const float *b, int64_t n) {
    float tops[LANES], top = -INFINITY;
    int64_t k = 0;
    for (int l = 0; l < LANES; l++) tops[l] = -INFINITY;
    for (; k + LANES <= n; k += LANES)
        for (int l = 0; l < LANES; l++) tops[l] = a[k + l] + b[k + l] > tops[l] ? a[k + l] + b[k + l] : tops[l];
    for (int l = 0; l < LANES; l++) top = tops[l] > top ? tops[l] : top;
    for (; k < n; k++) top = a[k] + b[k] > top ? a[k] + b[k] : top;
    return top;
}

static int32_t best_of(const float *row, uint32_t n) {
    uint32_t best = 0;
    for (uint32_t y = 1; y < n; y++) best = row[y] > row[best] ? y : best;
    return (int32_t)best;
}

/* Scores of all labels of an arc whose joint rows were found, but for its arc templates, into m->row; returns the greatest. */
static float found_scores(const model *m, int64_t h, int64_t d) {
    const float *above = m->above_rows + (2 * h + (h < d)) * m->stride, *below = m->below_rows + (2 * d + (h < d)) * m->stride;
    for (uint32_t y = 0; y < m->stride; y++) m->row[y] = above[y] + below[y];
    add_found(m, m->n_joint, m->row);
    return greatest(m->row, m->zeros, m->stride);
}

static float label_scores(const model *m, int64_t h, int64_t d) {
    find_rows(m, m->n_all - m->n_joint, m->n_joint, h, d, distance_of(h, d));
    return found_scores(m, h, d);
}

static uint32_t meet(int32_t *found, uint32_t n, int32_t code) {
    for (uint32_t k = 0; k < n; k++)
        if (found[k] == code) return n;
    if (n < MOST_BETWEEN) found[n++] = code;
    return n;
}

/* The keys of an arc's templates; memory brings near what its score begins with. */
static void approach(const model *m, int64_t h, int64_t d, uint32_t *restrict keys) {
    const uint32_t *above = m->head_keys + h * m->n_all, *below = m->below_keys + d * m->n_all;
    const uint32_t *between = m->distance_keys + distance_of(h, d) * m->n_all;
    for (uint32_t t = 0; t < m->n_arc; t++) keys[t] = above[t] + below[t] + between[t];
    for (uint32_t t = 0; t < m->n_plain; t++) NEAR(m->A.all + (keys[t] >> m->A.shift));
    for (uint32_t t = m->n_all - m->n_joint; t < m->n_all && m->R.extents != NULL; t++)
        NEAR(m->R.extents + ((above[t] + below[t] + between[t]) >> m->row_shift));
}

static void fill_arc(const model *m, int64_t h, int64_t d, const uint32_t *keys, int32_t between[][MOST_BETWEEN],
                     const uint32_t *n_between) {
    uint32_t n_plain = m->n_plain, own[MOST_BETWEEN];
    find_rows(m, m->n_all - m->n_joint, m->n_joint, h, d, distance_of(h, d));
    float score = sum_of(&m->A, keys, n_plain, n_plain / LANES * LANES);
    for (uint32_t b = 0; b < m->n_arc - n_plain; b++) {
        for (uint32_t k = 0; k < n_between[b]; k++) own[k] = mix(keys[n_plain + b], (uint32_t)between[b][k]);
        score += sum_of(&m->A, own, n_between[b], 0);
    }
    m->arcs[h * ((int64_t)m->n + 1) + d] = score + found_scores(m, h, d);
}

/* Fill m->arcs for a sentence. */
static int fill(model *m, const structsvm_text *texts, uint32_t n_words) {
    int64_t n = n_words;
    int32_t between[MOST_TEMPLATES_BETWEEN][MOST_BETWEEN];
    TRY(read_words(m, texts, n_words));
    TRY(look(m));
    for (int64_t k = 0; k < (n + 1) * (n + 1); k++) m->arcs[k] = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        uint32_t n_between[MOST_TEMPLATES_BETWEEN] = {0};
        for (int64_t j = i + 1; j <= n; j++) {
            for (uint32_t b = 0; b < m->n_arc - m->n_plain && j > i + 1 && i > 0; b++)
                n_between[b] = meet(between[b], n_between[b], *codes_at(m, m->between[m->n_plain + b], j - 1));
            for (int side = 0; side < (i > 0 ? 2 : 1); side++) {
                uint32_t *keys = m->arc_keys + 2 * side * m->n_arc, own = j % 2 * m->n_arc, next = m->n_arc - own;
                if (j == i + 1) approach(m, side ? j : i, side ? i : j, keys + own);
                if (j < n) approach(m, side ? j + 1 : i, side ? i : j + 1, keys + next);
                fill_arc(m, side ? j : i, side ? i : j, keys + own, between, n_between);
            }
        }
    }
    return STRUCTSVM_OK;
}

/* ---- projective trees ------------------------------------------------------------------------------------------- */
/* Closed items by either end, and open ones: [i (n + 1) + k] of which k is the other end. */
typedef struct { float *right, *right_by_end, *left, *left_by_end, *open_right, *open_left; } chart;

static void eisner_unfold(const model *m, const chart *c, int32_t root, int32_t *heads) {
    /* Items (i, j, kind): 0 closed right, 1 closed left, 2 open right, 3 open left. */
    int32_t *stack = m->stack, size = 2, items[] = {1, root, 1, root, (int32_t)m->n, 0};
    int64_t S = (int64_t)m->n + 1;
    heads[root - 1] = 0;
    memcpy(stack, items, sizeof items);
    while (size > 0) {
        int32_t i = stack[3 * --size], j = stack[3 * size + 1], kind = stack[3 * size + 2];
        const float *a = kind == 0 ? c->open_right + i * S + i + 1 : (kind == 1 ? c->left : c->right) + i * S + i;
        const float *ends = kind == 0 ? c->right_by_end : c->left_by_end;
        const float *b = kind == 1 ? c->open_left + j * S + i : ends + j * S + i + 1;
        if (i == j) continue;
        if (kind > 1) heads[(kind == 2 ? j : i) - 1] = kind == 2 ? i : j;
        float top = greatest(a, b, j - i);
        int32_t at = 0, k = i + (kind == 0);
        while (at < j - i - 1 && a[at] + b[at] != top) at++, k++;
        int32_t two[] = {i, k, kind == 0 ? 2 : kind == 1 ? 1 : 0, k + (kind > 1), j, kind == 0 ? 0 : kind == 1 ? 3 : 1};
        memcpy(stack + 3 * size, two, sizeof two);
        size += 2;
    }
}

/* The heads of the best tree over scores of arcs, and its score; STRUCTSVM_NOTHING if there is none. */
static int eisner_best(model *m, const float *scores, int32_t *heads, float *best) {
    int64_t n = m->n, S = n + 1;
    uint64_t size = (uint64_t)S * (uint64_t)S;
    GROW(m->chart, 6 * size * sizeof(float));
    float *memory = m->chart.data;
    chart c = {memory, memory + size, memory + 2 * size, memory + 3 * size, memory + 4 * size, memory + 5 * size};
    int32_t root = 0;
    for (uint64_t k = 0; k < 6 * size; k++) memory[k] = -INFINITY;
    for (int64_t i = 1; i <= n; i++)
        c.right[i * S + i] = c.right_by_end[i * S + i] = c.left[i * S + i] = c.left_by_end[i * S + i] = 0.0f;
    for (int64_t width = 1; width < n; width++)
        for (int64_t i = 1, j = i + width; j <= n; i++, j++) {
            float middle = greatest(c.right + i * S + i, c.left_by_end + j * S + i + 1, width);
            c.open_right[i * S + j] = middle + scores[i * S + j];
            c.open_left[j * S + i] = middle + scores[j * S + i];
            float right = greatest(c.open_right + i * S + i + 1, c.right_by_end + j * S + i + 1, width);
            float left = greatest(c.left + i * S + i, c.open_left + j * S + i, width);
            c.right[i * S + j] = c.right_by_end[j * S + i] = right;
            c.left[i * S + j] = c.left_by_end[j * S + i] = left;
        }
    *best = -INFINITY;
    for (int64_t r = 1; r <= n; r++) {
        float total = scores[r] + c.left[S + r] + c.right[r * S + n];
        if (total > *best) *best = total, root = (int32_t)r;
    }
    if (root == 0) return STRUCTSVM_NOTHING;
    eisner_unfold(m, &c, root, heads);
    return STRUCTSVM_OK;
}

/* ---- trees whose arcs may cross --------------------------------------------------------------------------------- */
typedef struct {
    int64_t N;
    double *into, *given;           /* [v N + u]: the arc u -> v, less what it gives up; by slot: that chosen into it */
    /* Words of arcs; by slot: node, state (1: on the path, 2: leads to the root, 3: in another node), path; by node. */
    int32_t *from, *to, *id, *state, *path, *parent, *source, *target;
} graph;

static int graph_of(model *m, const float *scores, graph *g) {
    uint64_t size = (uint64_t)m->n + 1;
    GROW(m->graph, (size * size + size) * sizeof(double) + (2 * size * size + 9 * size) * sizeof(int32_t));
    int64_t N = g->N = (int64_t)size;
    double low = INFINITY, high = -INFINITY;
    g->into = m->graph.data, g->given = g->into + N * N, g->from = (int32_t *)(g->given + N);
    g->to = g->from + N * N, g->id = g->to + N * N, g->state = g->id + N, g->path = g->state + N;
    g->parent = g->path + N, g->source = g->parent + 2 * N, g->target = g->source + 2 * N;
    for (int64_t v = 1; v < N; v++)
        for (int64_t u = 0; u < N; u++) {
            double s = g->into[v * N + u] = u == v ? -INFINITY : scores[u * N + v];
            g->from[v * N + u] = (int32_t)u, g->to[v * N + u] = (int32_t)v;
            if (s > -INFINITY) low = fmin(low, s), high = fmax(high, s);
        }
    /* Arcs from the root cost so much that a tree has no more of them than it must. */
    for (int64_t v = 1; v < N; v++) g->into[v * N] -= fma((double)N, high - low, 1.0);
    for (int64_t v = 0; v < 2 * N; v++) g->parent[v] = -1;
    for (int64_t v = 0; v < N; v++) g->id[v] = (int32_t)v, g->state[v] = v == 0 ? 2 : 0;
    return STRUCTSVM_OK;
}

/* Contract the cycle of the path's words from place `first` on into its first slot, as a node. */
static void contract(graph *g, int64_t first, int64_t n_path, int32_t node) {
    int64_t N = g->N, up = g->path[first];
    for (int64_t k = first; k < n_path; k++) g->parent[g->id[g->path[k]]] = node, g->state[g->path[k]] = 3;
    for (int64_t u = 0; u < N; u++) {
        if (g->state[u] == 3) continue;
        int64_t in = up, out = up;
        for (int64_t k = first; k < n_path; k++) {
            int64_t v = g->path[k];
            if (g->into[v * N + u] - g->given[v] > g->into[in * N + u] - g->given[in]) in = v;
            if (u > 0 && g->into[u * N + v] > g->into[u * N + out]) out = v;
        }
        int64_t at = in * N + u, by = u * N + out, to = up * N + u;
        g->into[to] = g->into[at] - g->given[in], g->from[to] = g->from[at], g->to[to] = g->to[at];
        to = u * N + up;
        if (u > 0) g->into[to] = g->into[by], g->from[to] = g->from[by], g->to[to] = g->to[by];
    }
    g->id[up] = node, g->state[up] = 0;
}

/* As eisner_best, of trees of any shape with one word below the root. */
static int arborescence_best(model *m, const float *scores, int32_t *heads, float *best) {
    graph g;
    TRY(graph_of(m, scores, &g));
    int64_t N = g.N, n_ids = N, n_path = 0, n_roots = 0;
    for (int64_t start = 1; start < N; start++) {
        int64_t at = start;
        while (g.state[at] == 0) {
            double *row = g.into + at * N;
            int64_t up = -1, first = n_path;
            for (int64_t u = 0; u < N; u++)
                if (g.state[u] != 3 && u != at && (up < 0 || row[u] > row[up])) up = u;
            if (up < 0 || !(row[up] > -INFINITY)) return STRUCTSVM_NOTHING;
            g.given[at] = row[up], g.source[g.id[at]] = g.from[at * N + up], g.target[g.id[at]] = g.to[at * N + up];
            g.state[at] = 1, g.path[n_path++] = (int32_t)at, at = up;
            if (g.state[up] != 1) continue;     /* either the path goes on, or it has reached the root */
            while (g.path[first] != up) first--;
            contract(&g, first, n_path, (int32_t)n_ids++);
            n_path = first;
        }
        while (n_path > 0) g.state[g.path[--n_path]] = 2;
    }
    /* A node's arc replaces, at the member that it enters, the arc within the cycle; from the last node to the first. */
    for (int64_t k = n_ids - 1; k >= N; k--) {
        int32_t member = g.target[k];
        while (g.parent[member] != k) member = g.parent[member];
        g.source[member] = g.source[k], g.target[member] = g.target[k];
    }
    double total = 0.0;
    for (int64_t v = 1; v < N; v++) {
        heads[v - 1] = g.source[v], n_roots += g.source[v] == 0;
        total += scores[g.source[v] * N + v];
    }
    *best = (float)total;
    return n_roots == 1 ? STRUCTSVM_OK : STRUCTSVM_NOTHING;
}

static int best_heads(model *m, const float *scores, int32_t *heads, float *best) {
    return m->is_projective ? eisner_best(m, scores, heads, best) : arborescence_best(m, scores, heads, best);
}

/* ---- pairs of arcs ---------------------------------------------------------------------------------------------- */
static int look_at_pairs(model *m) {
    uint64_t n = m->n, width = ((uint64_t)ROLES * (n + 2) + 2) * m->n_pairs;
    uint64_t numbers_of_4_bytes = 3 * n + 3 + width;
    GROW(m->search, (2 * n + 2) * sizeof(uint64_t) + (n + 2) * sizeof(part) + numbers_of_4_bytes * sizeof(uint32_t));
    m->keys = m->search.data, m->arc = (float *)(m->keys + 2 * n + 2), m->around = m->arc + n + 1;
    m->parts = (part *)(m->around + 2 * n + 2), m->pair_keys = (uint32_t *)(m->parts + n + 2);
    m->side_keys = m->pair_keys + m->n_pairs, m->word_keys = m->side_keys + m->n_pairs;
    for (uint32_t k = 0; k < ROLES * m->n_pairs; k++) {
        uint32_t r = k / m->n_pairs, t = k % m->n_pairs, begin = mix(0x70616972u + (r << 24), t + 1);
        uint32_t *to = m->word_keys + r * (n + 2) * m->n_pairs + t;
        keys_of(m, begin, m->pair_parts, m->pair_ptr + k, 0, n + 1, to, m->n_pairs);
        keys_of(m, begin, m->pair_parts, m->pair_ptr + k, n + 1 + REACH, 1, to + (n + 1) * m->n_pairs, 1);  /* no word */
    }
    return STRUCTSVM_OK;
}

/* The pairs of arcs on a side of a word, 2 h the left one and 2 h + 1 the right one, into m->parts; their number. */
static int64_t pairs_around(const model *m, const int32_t *tree, int64_t side) {
    int64_t n = m->n, h = side / 2, right = side % 2, step = right ? 1 : -1, t = n + 1, s = n + 1;
    part *end = m->parts;
    if (h == 0) return 0;
    int64_t g = tree[h - 1];
    for (int64_t d = h + step;; d += step) {
        int64_t at = d < 1 || d > n ? n + 1 : d;
        if (at <= n && tree[d - 1] != h) continue;
        const int64_t words[ROLES] = {g, h, t, s, at};
        end->side = (int32_t)(right + 2 * (g < h));
        for (int r = 0; r < ROLES; r++) {
            end->word[r] = (int32_t)words[r];
            end->label[r] = r == 0 || words[r] > n ? (int32_t)m->K : tree[n + words[r] - 1];
        }
        end++;
        if (at > n) return end - m->parts;
        t = s, s = d;
    }
}

/* The keys of part i on a side under all templates, into m->pair_keys. All parts there have the first two words. */
static void look_at_part(const model *m, int64_t i) {
    const part *p = m->parts + i;
    const uint32_t *sees = m->sees, *w[ROLES], *mask[ROLES];
    uint32_t n = m->n_pairs, *restrict shared = m->side_keys, *restrict keys = m->pair_keys, label[ROLES], rest = 0;
    uint32_t unseen = mix(0x73696465u, 0), side = mix(0x73696465u, (uint32_t)p->side + 1) - unseen;
    for (uint32_t r = 0; r < ROLES; r++) {
        uint32_t none = mix(0x6c616265u + (r << 24), 0);
        w[r] = m->word_keys + (r * ((uint64_t)m->n + 2) + (uint32_t)p->word[r]) * n, mask[r] = m->masks + r * n;
        label[r] = mix(0x6c616265u + (r << 24), (uint32_t)p->label[r] + 1) - none, rest += none;
    }
    for (uint32_t t = 0; i == 0 && t < n; t++)
        shared[t] = unseen + rest + (side & (0u - (sees[t] >> ROLES))) + w[0][t] + (label[0] & mask[0][t]) + w[1][t]
                  + (label[1] & mask[1][t]);
    for (uint32_t t = 0; t < n; t++)
        keys[t] = shared[t] + w[2][t] + (label[2] & mask[2][t]) + w[3][t] + (label[3] & mask[3][t]) + w[4][t]
                + (label[4] & mask[4][t]);
}

/* F of a side: the scores of its pairs of arcs. */
static float pairs_sum(const model *m, const int32_t *tree, int64_t side) {
    float total = 0.0f;
    int64_t count = pairs_around(m, tree, side);
    for (int64_t i = 0; i < count; i++) {
        look_at_part(m, i);
        total += sum_of(&m->P, m->pair_keys, m->n_pairs, m->n_pairs / LANES * LANES);
    }
    return total;
}

/* The number of arcs that the arc of word d crosses. */
static int32_t crossings_of(int64_t n, const int32_t *heads, int64_t d) {
    int32_t h = heads[d - 1], lo = h < d ? h : (int32_t)d, hi = h < d ? (int32_t)d : h, count = 0;
    for (int32_t k = 1; k <= n; k++) {
        int32_t g = heads[k - 1];
        count += ((k > lo) & (k < hi) & ((g < lo) | (g > hi))) | (((k < lo) | (k > hi)) & (g > lo) & (g < hi));
    }
    return count;
}

/* F of a side of the tree in m->found, which the keys stand for. */
static float pairs_known(const model *m, int64_t side) {
    memo *kept = m->memo + (m->keys[side] & (MEMO - 1));
    if (kept->key != m->keys[side]) kept->value = pairs_sum(m, m->found, side), kept->key = m->keys[side];
    return kept->value;
}

static uint64_t pairs_random(uint64_t d, uint64_t head, uint64_t label) {
    uint64_t x = (d << 48) + (head << 24) + label;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

static int64_t side_of(int64_t d, int64_t head) { return 2 * head + (head < d); }
/* Add an arc to the keys of the sides that it touches (sign 1), or take it away (-1). */
static void pairs_join(const model *m, int64_t d, int64_t head, int64_t label, uint64_t sign) {
    uint64_t own = sign * pairs_random((uint64_t)d, (uint64_t)head + 2, (uint64_t)label);
    m->keys[side_of(d, head)] += sign * pairs_random((uint64_t)d, 1, (uint64_t)label);
    m->keys[2 * d] += own, m->keys[2 * d + 1] += own;
}

static void pairs_set(const model *m, int64_t d, int32_t head, int32_t label) {
    int32_t *heads = m->found, *labels = m->found + m->n;
    pairs_join(m, d, heads[d - 1], labels[d - 1], (uint64_t)-1);
    pairs_join(m, d, heads[d - 1] = head, labels[d - 1] = label, 1);
}

/* The heads of word d that score best, its head in m->found among them; their number. */
static int64_t best_heads_of(const model *m, int64_t d, int32_t *best) {
    int64_t n = m->n, n_best = 0, is_there = 0;
    for (int64_t h = 0; h <= n; h++) {
        float score = m->arcs[h * (n + 1) + d];
        if (h == d || !(score > -INFINITY)) continue;
        int64_t at = n_best < HEADS ? n_best : HEADS - 1;
        if (at < n_best && !(score > m->arcs[best[at] * (n + 1) + d])) continue;
        for (; at > 0 && score > m->arcs[best[at - 1] * (n + 1) + d]; at--) best[at] = best[at - 1];
        best[at] = (int32_t)h;
        if (n_best < HEADS) n_best++;
    }
    for (int64_t j = 0; j < n_best; j++) is_there |= best[j] == m->found[d - 1];
    if (!is_there) best[n_best++] = m->found[d - 1];
    return n_best;
}

/* The labelled heads of each word that score best, those in m->found among them, whose scores go to m->arc. */
static void pairs_choose(const model *m, choice *choices, int32_t *n_choices) {
    int64_t n = m->n;
    float factor = (float)m->scale;
    for (int64_t d = 1; d <= n; d++) {
        int32_t best[HEADS + 1], many = 0, own = m->found[d - 1], label = m->found[n + d - 1];
        int64_t n_best = best_heads_of(m, d, best);
        choice *out = choices + (d - 1) * CHOICES;
        float least = m->arcs[best[0] * (n + 1) + d] - (float)m->gap;
        m->arc[d] = 0.0f;
        for (int64_t i = 0; i < n_best; i++) {
            int64_t h = best[i];
            float score = m->arcs[h * (n + 1) + d], top = label_scores(m, h, d);
            if (h == own && m->row[label] > -INFINITY) {
                out[many] = (choice){own, label, (score + (m->row[label] - top)) * factor};
                m->arc[d] = m->weight * out[many++].score;
                m->row[label] = -INFINITY;
            }
            for (int64_t j = 0; j < LABELS && many < CHOICES - 2; j++) {
                int32_t y = best_of(m->row, m->K);
                float own_score = score + (m->row[y] - top);
                if (!(own_score >= least)) break;
                out[many++] = (choice){(int32_t)h, y, own_score * factor};
                m->row[y] = -INFINITY;
            }
        }
        n_choices[d - 1] = many;
    }
}

static int is_below(const int32_t *heads, int64_t k, int64_t d) {
    while (k != d && k > 0) k = heads[k - 1];
    return k == d;
}

/* The number of pairs that cross of which one arc is that of a word of a move. */
static int pairs_touched(int64_t n, int32_t *heads, const move *one) {
    int count = crossings_of(n, heads, one->word[0]);
    int32_t *first = heads + one->word[0] - 1, h = *first;
    *first = one->word[0];      /* an arc that crosses nothing */
    if (one->n == 2) count += crossings_of(n, heads, one->word[1]);
    *first = h;
    return count;
}

/* Gain of a move, or -inf if arcs would cross that may not; with `stay` the move is made. */
static float pairs_try(model *m, const move *one, int stay) {
    int64_t touched[8], many = 0, n = m->n;
    int32_t old[2][2] = {{0, 0}, {0, 0}};
    int crossings = pairs_touched(n, m->found, one);
    float gain = 0.0f, sums[8] = {0.0f};
    for (int64_t i = 0; i < one->n; i++) {
        int64_t d = one->word[i];
        const int64_t around[4] = {2 * d, 2 * d + 1, side_of(d, m->found[d - 1]), side_of(d, one->to[i]->head)};
        for (int64_t j = 0; j < 4; j++) {
            int64_t k = 0;
            while (k < many && touched[k] != around[j]) k++;
            if (k == many) touched[many++] = around[j];
        }
        gain += m->weight * one->to[i]->score - m->arc[d];
        old[i][0] = m->found[d - 1], old[i][1] = m->found[n + d - 1];
    }
    for (int64_t i = 0; i < one->n; i++) pairs_set(m, one->word[i], one->to[i]->head, one->to[i]->label);
    crossings = pairs_touched(n, m->found, one) - crossings;
    gain = m->pairs_project && crossings > 0 ? -INFINITY : fmaf((float)crossings, m->crossing, gain);
    for (int64_t k = 0; k < many && gain > -INFINITY; k++) {
        sums[k] = pairs_known(m, touched[k]);
        gain += sums[k] - m->around[touched[k]];
    }
    for (int64_t k = 0; stay && k < many; k++) m->around[touched[k]] = sums[k];
    for (int64_t i = 0; i < one->n; i++)
        if (stay) m->arc[one->word[i]] = m->weight * one->to[i]->score;
        else pairs_set(m, one->word[i], old[i][0], old[i][1]);
    return gain;
}

static void pairs_better(model *m, move *one, move *best) {
    if ((one->gain = pairs_try(m, one, 0)) > best->gain) *best = *one;
}

/* The best move of word d: another head or label; and of a word above a new head below d another head, where that alone
 * would close a cycle. */
static void best_move(model *m, int64_t d, const choice *choices, const int32_t *n_choices, move *best) {
    const choice *own = choices + (d - 1) * CHOICES;
    int32_t *found = m->found;
    int is_root = found[d - 1] == 0;
    for (int32_t c = 0; c < n_choices[d - 1]; c++) {
        move one = {1, {(int32_t)d, 0}, {own + c, NULL}, 0.0f};
        int64_t h = own[c].head;
        int is_cycle = h > 0 && is_below(found, h, d);
        if (h == found[d - 1] ? own[c].label != found[m->n + d - 1] : h > 0 && !is_cycle) pairs_better(m, &one, best);
        one.n = 2;
        for (int64_t k = is_cycle ? h : d; k != d; k = found[k - 1]) {
            const choice *others = choices + (k - 1) * CHOICES;
            one.word[1] = (int32_t)k;
            for (int32_t e = 0; e < n_choices[k - 1]; e++) {
                one.to[1] = others + e;
                if (is_root ? others[e].head == 0 : others[e].head > 0 && !is_below(found, others[e].head, d))
                    pairs_better(m, &one, best);
            }
        }
    }
}

/* Climb from the tree in m->found, after `fill`. */
static int climb(model *m) {
    int64_t n = m->n;
    GROW(m->choices, (uint64_t)n * (CHOICES * sizeof(choice) + sizeof(int32_t)));
    choice *choices = m->choices.data;
    int32_t *n_choices = (int32_t *)(choices + n * CHOICES);
    TRY(look_at_pairs(m));
    pairs_choose(m, choices, n_choices), m->n_climbs++;
    for (int64_t side = 0; side < 2 * n + 2; side++) m->keys[side] = pairs_random((uint64_t)side, 0, m->n_climbs);
    for (int64_t d = 1; d <= n; d++) pairs_join(m, d, m->found[d - 1], m->found[n + d - 1], 1);
    for (int64_t side = 0; side < 2 * n + 2; side++) m->around[side] = pairs_known(m, side);
    for (int64_t visit = 0, still = 0; visit < SWEEPS * n && still < n; visit++, still++) {
        move best = {0, {0, 0}, {NULL, NULL}, 1e-4f};
        best_move(m, 1 + visit % n, choices, n_choices, &best);
        if (best.n == 0) continue;
        pairs_try(m, &best, 1);
        still = -1;
    }
    return STRUCTSVM_OK;
}

/* The tree of a sentence, into m->found. */
static int parse(model *m, const structsvm_text *texts, uint32_t n) {
    float score;
    TRY(fill(m, texts, n));
    if (n == 0) return STRUCTSVM_OK;
    TRY(best_heads(m, m->arcs, m->found, &score));
    for (uint32_t d = 1; d <= n; d++) {
        label_scores(m, m->found[d - 1], d);
        m->found[n + d - 1] = best_of(m->row, m->K);
    }
    return m->n_pairs == 0 ? STRUCTSVM_OK : climb(m);
}

static void write_tree(uint32_t n, const int32_t *tree, uint32_t *labels) {
    for (uint32_t d = 0; d < n; d++) labels[2 * d] = (uint32_t)tree[d], labels[2 * d + 1] = (uint32_t)tree[n + d];
}

int structsvm_predict(structsvm *tagger, const structsvm_text *texts, const uint32_t *starts, uint32_t n_tokens,
                      uint32_t *labels) {
    model *m = tagger->own;
    (void)starts;
    TRY(parse(m, texts, n_tokens));
    write_tree(n_tokens, m->found, labels);
    return STRUCTSVM_OK;
}

/* ---- the k best ------------------------------------------------------------------------------------------------- */
/* As NumPy adds up. */
static double pairwise(const double *x, uint64_t n) {
    double r[8] = {0.0}, sum;
    uint64_t i = 0, half = n / 2 - n / 2 % 8;
    if (n > 128) return pairwise(x, half) + pairwise(x + half, n - half);
    for (; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; k++) r[k] += x[i + (uint64_t)k];
    sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
    for (; i < n; i++) sum += x[i];
    return sum;
}

/* Numbers that are added up in parts, as they come. */
typedef struct { double *x, total; uint64_t n; } adder;

static void add(adder *a, double x) {
    a->x[a->n++] = x;
    if (a->n == CHUNK) a->total += pairwise(a->x, CHUNK), a->n = 0;
}

static double sum(const adder *a) { return a->n > 0 ? a->total + pairwise(a->x, a->n) : a->total; }
/* Tables of a search for the k best trees: scores of labelled arcs [(h n + d - 1) K + y], the best of each arc
 * [h (n + 1) + d] with its label, and both as a set of trees has them. */
typedef struct {
    float *table, *best, *arcs;
    int32_t *labels, *now;
    double *terms;
    uint32_t n_sets, n_refusals;
} ranking;

/* Scores of all labelled arcs, after `fill`, and room for `most` best trees. */
static int begin_ranking(model *m, ranking *k, uint64_t most) {
    uint64_t n = m->n, N = n + 1, K = m->K, n_sets = 1 + (most - 1) * n;
    GROW(m->outputs, n_sets * 2 * n * sizeof(int32_t));
    GROW(m->sets, n_sets * sizeof(tree_set));
    GROW(m->refusals, n_sets * sizeof(refusal));
    GROW(m->ranked, CHUNK * sizeof(double) + (N * n * K + 4 * N * N) * sizeof(float));
    k->terms = m->ranked.data, k->table = (float *)(k->terms + CHUNK), k->best = k->table + N * n * K;
    k->arcs = k->best + N * N, k->labels = (int32_t *)(k->arcs + N * N), k->now = k->labels + N * N;
    k->n_sets = k->n_refusals = 0;
    for (uint64_t at = 0; at < N * N; at++) k->best[at] = -INFINITY, k->labels[at] = 0;
    for (uint64_t h = 0; h <= n; h++)
        for (uint64_t d = 1; d <= n; d++) {
            float *row = k->table + (h * n + d - 1) * K;
            float more = h == d ? -INFINITY : m->arcs[h * N + d] - label_scores(m, (int64_t)h, (int64_t)d);
            for (uint64_t y = 0; y < K; y++) row[y] = m->row[y] + more;
            int32_t top = k->labels[h * N + d] = best_of(row, m->K);
            k->best[h * N + d] = row[top];
        }
    return STRUCTSVM_OK;
}

static int32_t *tree_of(const model *m, uint32_t set) { return (int32_t *)m->outputs.data + (uint64_t)set * 2 * m->n; }
static double arcs_of(const model *m, const ranking *k, const int32_t *tree) {
    adder a = {k->terms, 0.0, 0};
    for (uint64_t d = 0; d < m->n; d++)
        add(&a, k->table[((uint64_t)tree[d] * m->n + d) * m->K + (uint64_t)tree[m->n + d]]);
    return sum(&a);
}

/* Keep the set of trees that k->arcs and k->now stand for, by its best tree; one without trees is none. */
static int push(model *m, ranking *k, uint32_t settled, uint32_t refused) {
    uint64_t n = m->n, N = n + 1;
    float score;
    int32_t *tree = tree_of(m, k->n_sets);
    int failed = best_heads(m, k->arcs, tree, &score);
    if (failed == STRUCTSVM_NOTHING || (failed == STRUCTSVM_OK && !are_scores(&score, 1, 0))) return STRUCTSVM_OK;
    if (failed < 0) return failed;
    for (uint64_t d = 1; d <= n; d++) tree[n + d - 1] = k->now[(uint64_t)tree[d - 1] * N + d];
    ((tree_set *)m->sets.data)[k->n_sets++] = (tree_set){arcs_of(m, k, tree), settled, refused, 0};
    return STRUCTSVM_OK;
}

/* The best label of the arc from word h to word d that is not refused. */
static void relabel(const model *m, ranking *k, uint32_t refused, int64_t h, int64_t d) {
    const refusal *refusals = m->refusals.data;
    const float *row = k->table + (h * m->n + d - 1) * m->K;
    int64_t N = (int64_t)m->n + 1, best = 0;
    float top = -INFINITY;
    for (int64_t y = 0; y < m->K; y++) {
        int is_free = 1;
        for (uint32_t r = refused; r != NONE && is_free; r = refusals[r].before)
            is_free = refusals[r].head != h || refusals[r].label != y;
        if (is_free && row[y] > top) top = row[y], best = y;
    }
    k->arcs[h * N + d] = top;
    k->now[h * N + d] = (int32_t)best;
}

/* Split a set of trees without its best one: in part d the words before d have its arcs, and word d another one. NONE:
 * the set of all trees. */
static int split(model *m, ranking *k, uint32_t set) {
    int64_t n = m->n, N = n + 1;
    memcpy(k->arcs, k->best, (uint64_t)(N * N) * sizeof(float));
    memcpy(k->now, k->labels, (uint64_t)(N * N) * sizeof(int32_t));
    if (set == NONE) return push(m, k, 0, NONE);
    tree_set own = ((tree_set *)m->sets.data)[set];
    for (int64_t d = 1; d <= n; d++) {
        int32_t head = tree_of(m, set)[d - 1], label = tree_of(m, set)[n + d - 1];
        if (d > own.settled) {
            refusal *refusals = m->refusals.data;
            refusals[k->n_refusals] = (refusal){d == own.settled + 1 ? own.refused : NONE, head, label};
            for (uint32_t r = k->n_refusals; r != NONE; r = refusals[r].before)
                relabel(m, k, k->n_refusals, refusals[r].head, d);
            TRY(push(m, k, (uint32_t)d - 1, k->n_refusals++));
        }
        for (int64_t h = 0; h <= n; h++) k->arcs[h * N + d] = -INFINITY, k->now[h * N + d] = k->labels[h * N + d];
        k->arcs[head * N + d] = k->table[(head * n + d - 1) * m->K + label];
        k->now[head * N + d] = label;
    }
    return STRUCTSVM_OK;
}

/* From a set of trees to that of the next best tree by arcs alone, or NONE. */
static int next_tree(model *m, ranking *k, uint32_t *set) {
    tree_set *sets = m->sets.data;
    TRY(split(m, k, *set));
    *set = NONE;
    for (uint32_t s = 0; s < k->n_sets; s++)
        if (!sets[s].is_taken && (*set == NONE || sets[s].score > sets[*set].score)) *set = s;
    if (*set != NONE) sets[*set].is_taken = 1;
    return STRUCTSVM_OK;
}

/* The score of a tree by both stages. */
static double whole_score(const model *m, const ranking *k, const int32_t *tree, double arcs) {
    adder a = {k->terms, 0.0, 0};
    int32_t crossings = 0;
    for (int64_t side = 2; side < 2 * (int64_t)m->n + 2; side++) {
        int64_t count = pairs_around(m, tree, side);
        for (int64_t i = 0; i < count; i++) {
            look_at_part(m, i);
            for (uint32_t t = 0; t < m->n_pairs; t++) add(&a, m->P.all[m->pair_keys[t] >> m->P.shift]);
        }
    }
    for (int64_t d = 1; d <= m->n; d++) crossings += crossings_of(m->n, tree, d);
    double pairs = sum(&a) + (float)(crossings / 2) * m->crossing;
    return m->arc_unit * arcs + pairs;
}

/* Put a tree among the best k, n of them so far, by its score: behind those of the same. Their number. */
static uint32_t place(const model *m, uint32_t k, uint32_t n, const int32_t *tree, double score, uint32_t *labels,
                      double *scores) {
    uint64_t size = 2 * (uint64_t)m->n;
    uint32_t at = n;
    while (at > 0 && scores[at - 1] < score) at--;
    if (at == k) return n;
    uint32_t moved = (n < k ? n : k - 1) - at;
    memmove(scores + at + 1, scores + at, moved * sizeof(double));
    memmove(labels + (at + 1) * size, labels + at * size, moved * size * sizeof(uint32_t));
    scores[at] = score;
    write_tree(m->n, tree, labels + at * size);
    return n < k ? n + 1 : n;
}

/* With two stages: the trees that arcs rank best, and the predicted one, by their whole scores. */
int structsvm_kbest(structsvm *tagger, const structsvm_text *texts, const uint32_t *starts, uint32_t n_tokens, uint32_t k,
                    uint32_t *labels, double *scores) {
    model *m = tagger->own;
    ranking r;
    uint32_t n = 0, set = NONE;
    (void)starts;
    if (k == 0) return STRUCTSVM_INPUT;
    if (k > INT32_MAX) return STRUCTSVM_SIZE;
    TRY(parse(m, texts, n_tokens));
    if (n_tokens == 0) return 0;
    uint64_t want = m->n_pairs == 0 ? k : MORE * (uint64_t)k > FEWEST_RANKED ? MORE * (uint64_t)k : FEWEST_RANKED;
    TRY(begin_ranking(m, &r, want));
    double own = m->n_pairs == 0 ? 0.0 : whole_score(m, &r, m->found, arcs_of(m, &r, m->found));
    if (m->n_pairs > 0) n = place(m, k, 0, m->found, own, labels, scores);
    for (uint64_t i = 0; i < want; i++) {
        TRY(next_tree(m, &r, &set));
        if (set == NONE) break;
        const int32_t *tree = tree_of(m, set);
        double score = ((tree_set *)m->sets.data)[set].score;
        if (m->n_pairs == 0) scores[n] = score, write_tree(m->n, tree, labels + (uint64_t)n++ * 2 * m->n);
        else if (memcmp(tree, m->found, 2 * (uint64_t)m->n * sizeof *tree) != 0)
            n = place(m, k, n, tree, whole_score(m, &r, tree, score), labels, scores);
    }
    return (int)n;
}

/* ---- probabilities ---------------------------------------------------------------------------------------------- */
static double log_sum(const double *a, const double *b, int64_t n) {
    double top = -INFINITY, total = 0.0;
    for (int64_t k = 0; k < n; k++) top = fmax(top, a[k] + b[k]);
    for (int64_t k = 0; k < n && top > -INFINITY; k++) total += exp(a[k] + b[k] - top);
    return top > -INFINITY ? top + log(total) : top;
}

/* Spread the gradient of a sum's value over its terms, whose gradients stand G behind them. */
static void share(double *a, double *b, int64_t n, int64_t G, double value, double gradient) {
    for (int64_t k = 0; k < n && gradient > 0.0; k++) {
        double own = gradient * exp(a[k] + b[k] - value);
        a[G + k] += own;
        b[G + k] += own;
    }
}

/* Probabilities of arcs in projective trees, by sums of items as in `chart`; STRUCTSVM_NOTHING if there is no tree. */
static int eisner_sums(int64_t n, const double *scores, double *memory, double *arcs) {
    int64_t S = n + 1, size = S * S, G = 6 * size;
    double *right = memory, *right_by_end = right + size, *left = right + 2 * size, *left_by_end = right + 3 * size;
    double *open_right = right + 4 * size, *open_left = right + 5 * size, *middle = right + 12 * size;
    double total = 0.0, top = -INFINITY;
    for (int64_t k = 0; k < 2 * G; k++) memory[k] = k < G ? -INFINITY : 0.0;
    for (int64_t at = S + 1; at < size; at += S + 1) right[at] = right_by_end[at] = left[at] = left_by_end[at] = 0.0;
    for (int64_t width = 1; width < n; width++)
        for (int64_t i = 1, j = i + width; j <= n; i++, j++) {
            int64_t from = i * S + j, to = j * S + i, own = i * S + i;
            middle[from] = log_sum(right + own, left_by_end + to + 1, width);
            open_right[from] = middle[from] + scores[from];
            open_left[to] = middle[from] + scores[to];
            right[from] = right_by_end[to] = log_sum(open_right + own + 1, right_by_end + to + 1, width);
            left[from] = left_by_end[to] = log_sum(left + own, open_left + to, width);
        }
    for (int64_t r = 1; r <= n; r++) top = fmax(top, scores[r] + left[S + r] + right[r * S + n]);
    if (!(top > -INFINITY && top < INFINITY)) return STRUCTSVM_NOTHING;
    for (int64_t r = 1; r <= n; r++) total += arcs[r] = exp(scores[r] + left[S + r] + right[r * S + n] - top);
    for (int64_t r = 1; r <= n; r++) {
        arcs[r] /= total;
        left[G + S + r] += arcs[r], right[G + r * S + n] += arcs[r];
    }
    for (int64_t width = n - 1; width > 0; width--)
        for (int64_t i = 1, j = i + width; j <= n; i++, j++) {
            int64_t from = i * S + j, to = j * S + i, own = i * S + i;
            double of_right = right[G + from] + right_by_end[G + to], of_left = left[G + from] + left_by_end[G + to];
            share(open_right + own + 1, right_by_end + to + 1, width, G, right[from], of_right);
            share(left + own, open_left + to, width, G, left[from], of_left);
            arcs[from] = open_right[G + from], arcs[to] = open_left[G + to];
            share(right + own, left_by_end + to + 1, width, G, middle[from], arcs[from] + arcs[to]);
        }
    return STRUCTSVM_OK;
}

/* As eisner_sums, of trees of any shape: words are taken out one by one, the largest sum s_k = sum_j A[k, j] first,
 *     A'[i, j] = A[i, j] + A[i, k] A[k, j] / s_k,
 * where A[i, j] is the weight of word i's head j, and s_k leaves out the root, j = 0 (Grassmann, Taksar and Heyman 1985).
 * On the way back an arc's usage is shared between its own weight and the way by k. The word at place k is order[k]. */
static int arborescence_sums(int64_t n, const double *scores, double *memory, double *arcs) {
    int64_t N = n + 1;
    double *A = memory, *use = A + N * N, *sums = use + N * N;
    int32_t *order = (int32_t *)(sums + N);
    memset(use, 0, (uint64_t)(N * N) * sizeof(double));
    order[0] = 0;
    for (int64_t d = 1; d <= n; d++) {
        double most = -INFINITY;
        for (int64_t h = 0; h <= n; h++)
            if (h != d) most = fmax(most, scores[h * N + d]);
        if (!(most > -INFINITY && most < INFINITY)) return STRUCTSVM_NOTHING;
        for (int64_t h = 0; h <= n; h++) A[d * N + h] = h == d ? 0.0 : exp(scores[h * N + d] - most);
        order[d] = (int32_t)d;
    }
    for (int64_t k = n; k > 1; k--) {
        int64_t pick = 0;
        sums[k] = 0.0;
        for (int64_t i = 1; i <= k; i++) {
            double total = 0.0;
            for (int64_t j = 1; j <= k; j++) total += A[order[i] * N + order[j]];
            if (total > sums[k]) sums[k] = total, pick = i;
        }
        if (pick == 0) return STRUCTSVM_NOTHING;
        int32_t out = order[pick];
        order[pick] = order[k], order[k] = out;
        for (int64_t i = 1; i < k; i++) {
            double *row = A + order[i] * N, x = row[out] / sums[k];
            for (int64_t j = 0; j < k && x > 0.0; j++) row[order[j]] += x * A[out * N + order[j]];
            row[order[i]] = 0.0;
        }
    }
    if (!(A[order[1] * N] > 0.0)) return STRUCTSVM_NOTHING;
    use[order[1] * N] = 1.0;
    for (int64_t k = 2; k <= n; k++) {
        double *its = A + order[k] * N, *its_use = use + order[k] * N, all = 0.0;
        for (int64_t i = 1; i < k; i++) {
            double *row = A + order[i] * N, *row_use = use + order[i] * N, x = row[order[k]] / sums[k], via = 0.0;
            for (int64_t j = 0; j < k && x > 0.0; j++) {
                int64_t b = order[j];
                double more = x * its[b], ratio = more / row[b];
                /* The ratio of an arc that is never used may be 0 / 0. */
                double part = row_use[b] * (ratio < 1.0 ? ratio : 1.0);
                row_use[b] -= part;
                its_use[b] += part;
                via += part;
                row[b] = row[b] > more ? row[b] - more : 0.0;
            }
            row_use[order[k]] = via;
            all += via;
        }
        for (int64_t j = 1; j < k; j++)
            its_use[order[j]] = fmax(its_use[order[j]] + its[order[j]] / sums[k] * (1.0 - all), 0.0);
    }
    for (int64_t d = 1; d <= n; d++)
        for (int64_t h = 0; h <= n; h++) arcs[h * N + d] = use[d * N + h];
    return STRUCTSVM_OK;
}

int structsvm_probability(structsvm *tagger, const structsvm_text *texts, const uint32_t *starts, uint32_t n_tokens,
                          float *probabilities) {
    model *m = tagger->own;
    uint64_t n = n_tokens, N = n + 1;
    (void)starts;
    if (m->temperature == 0.0) return STRUCTSVM_MARGINS;
    TRY(fill(m, texts, n_tokens));
    if (n == 0) return STRUCTSVM_OK;
    GROW(m->sums, 15 * N * N * sizeof(double));
    double *scores = m->sums.data, *arcs = scores + N * N, *memory = arcs + N * N;
    for (uint64_t at = 0; at < N * N; at++) scores[at] = -INFINITY, arcs[at] = 0.0;
    for (uint64_t h = 0; h < N; h++)
        for (uint64_t d = 1; d < N; d++) {
            if (h == d || !(m->arcs[h * N + d] > -INFINITY)) continue;
            double top = label_scores(m, (int64_t)h, (int64_t)d), total = 0.0;
            for (uint32_t y = 0; y < m->K; y++) total += exp((m->row[y] - top) / m->temperature);
            scores[h * N + d] = m->arcs[h * N + d] / m->temperature + log(total);
        }
    TRY((m->is_projective ? eisner_sums : arborescence_sums)((int64_t)n, scores, memory, arcs));
    for (uint64_t d = 1; d < N; d++)
        for (uint64_t h = 0; h < N; h++) probabilities[(d - 1) * N + h] = (float)arcs[h * N + d];
    return STRUCTSVM_OK;
}
