#include "structsvm_core.h"

#include "structsvm_names.h"

enum {
    LANES = 8,
    LONG = 256,                             /* tokens from which on scores of the k best are summed in float64 */
    MOST_ITEMS = 1024, MOST_MARGIN = 200,
    KEPT = 1 << 22                          /* bytes of tables of tokens that are kept for the way back */
};

/* Numbers of pairs of codes. The two are one number of so many bits, the second below the first, which is permuted: its
 * first bits are the pair's bucket, and the rest is stored. */
typedef struct { uint32_t second_bits, bits, rest_bits, n; indices buckets, rests; } joint;

typedef struct {
    uint32_t arity, n, n_words, is_run; /* features; words of `known`; whether features follow one another */
    const uint32_t *known, *before;     /* for arity 1: a bit per code, and bits before each word */
    indices ids;                        /* (n), or the first of a run */
    joint *joints;                      /* (arity - 1): of the first two codes, of their number and the third, ... */
} space;

/* Templates: of tokens, or of pairs of labels. */
typedef struct {
    uint32_t n_sources, left, right, n_templates, n_spaces, of_pairs;
    const uint32_t *sources;            /* (n_sources, 2): function, column; columns from n_columns on are places' */
    const int32_t *outside;             /* (n_sources, left + right): codes of places outside a sequence */
    const uint32_t *starts, *of;        /* (n_templates + 1), (n_templates): items and space of each */
    const int32_t *items;               /* (items, 2): source, offset */
    strings *vocabularies;              /* (n_sources) */
    space *spaces;
    joint *joints;                      /* all spaces' */
} templates;

/* (G, P, stride), (stride), (stride): as in the package's chain.h. */
typedef struct { const float *A, *start, *end; } scores;

typedef struct {
    uint32_t N, H;                      /* nodes of an automaton: as in the package's ruled.h */
    const int32_t *labels, *rows, *group, *ends, *groups, *next, *first, *origins, *origin;
} automaton;

struct structsvm_own {
    uint32_t K, stride, order, G, P, n_features, n_pairs, n_columns;
    float temperature;                  /* 0: no probabilities */
    scores plain, scaled;
    automaton rules;                    /* N = 0: none */
    weights W;                          /* a row per feature of tokens, then K rows per feature of pairs */
    strings names;                      /* attributes' */
    indices name_ids;                   /* (names) */
    const uint32_t *paired;             /* (n_pairs), ascending */
    uint32_t n_places;
    const uint32_t *places;             /* (n_places, 2): function, column */
    alphabet abc;
    templates sets[2];
    float *tables;                      /* behind plain and scaled */
    room E, V, R, codes, ids, keys, pair_starts, pair_ids, pair_values, table, letters, text, marks, place_codes, back;
    room heads, held, made;             /* these grow */
    int keeps;                          /* whether there is a table for each token */
};

static uint32_t bits_of(uint32_t x) {
    uint32_t n = 0;
    for (; x != 0; x &= x - 1) n++;
    return n;
}

static void read_joint(reader *r, joint *s) {
    const uint32_t *head = take_n(r, U32, 3);
    uint64_t n = take_indices(r, &s->rests, (uint64_t)NONE + 1), last_bucket = take_buckets(r, &s->buckets, n);
    need(r, !r->failed && n <= INT32_MAX && head[0] < 32 && head[1] < 63 && head[2] <= head[1] && head[2] <= 32
                && last_bucket + 1 == (uint64_t)1 << (head[1] - head[2]));
    if (!r->failed) s->second_bits = head[0], s->bits = head[1], s->rest_bits = head[2], s->n = (uint32_t)n;
}

static void read_space(reader *r, space *s, uint32_t n_features) {
    uint64_t n_ids = take_indices(r, &s->ids, n_features), n_words = 0, n = s->arity == 0 ? n_ids : 0;
    if (s->arity == 1) {
        s->known = take(r, U32, NULL, &n_words);
        s->before = take_n(r, U32, n_words);
        need(r, n_words <= INT32_MAX / 32);
        for (uint64_t i = 0; !r->failed && i < n_words; n += bits_of(s->known[i++])) need(r, s->before[i] == n);
    }
    for (uint32_t k = 1; k < s->arity && !r->failed; k++) read_joint(r, s->joints + k - 1), n = s->joints[k - 1].n;
    if (r->failed) return;
    need(r, n <= INT32_MAX && (n_ids == n || (n_ids == 1 && index_at(&s->ids, 0) + n <= n_features)));
    s->n = (uint32_t)n, s->n_words = (uint32_t)n_words, s->is_run = n_ids != n;
}

static int read_templates(reader *r, templates *s, const model *m, uint32_t n_features) {
    const uint32_t *head = take_n(r, U32, 6);
    if (r->failed) return STRUCTSVM_FILE;
    s->n_sources = head[0], s->left = head[1], s->right = head[2];
    s->n_templates = head[3], s->n_spaces = head[4], s->of_pairs = head[5];
    need(r, s->n_sources <= MOST_ITEMS * 16 && s->n_templates <= MOST_ITEMS && s->n_spaces <= s->n_templates
                && s->left <= MOST_MARGIN && s->right <= MOST_MARGIN && s->of_pairs <= 1);
    if (r->failed) return STRUCTSVM_FILE;
    uint64_t margin = s->left + s->right, n_items;
    s->sources = take_n(r, U32, 2 * (uint64_t)s->n_sources);
    s->outside = take_n(r, U32, s->n_sources * margin);
    s->starts = take_n(r, U32, (uint64_t)s->n_templates + 1);
    s->of = take_n(r, U32, s->n_templates);
    s->items = take(r, U32, NULL, &n_items);
    const uint32_t *arities = take_n(r, U32, s->n_spaces);
    need(r, !r->failed && n_items % 2 == 0 && rises(s->starts, (uint64_t)s->n_templates + 1, n_items / 2)
                && within(s->of, s->n_templates, 0, s->n_spaces));
    if (r->failed) return STRUCTSVM_FILE;
    for (uint32_t i = 0; i < s->n_sources; i++)
        need(r, s->sources[2 * i] < 64 && s->sources[2 * i + 1] < m->n_columns + m->n_places
                    && (s->sources[2 * i] == 0 || s->sources[2 * i + 1] < m->n_columns));
    for (uint64_t i = 0; i < n_items / 2; i++)
        need(r, s->items[2 * i] >= 0 && s->items[2 * i] < (int32_t)s->n_sources
                    && s->items[2 * i + 1] >= -(int32_t)s->left && s->items[2 * i + 1] <= (int32_t)s->right);
    for (uint32_t k = 0; !r->failed && k < s->n_templates; k++)
        need(r, s->starts[k + 1] - s->starts[k] == arities[s->of[k]]);
    uint64_t n_joints = 1;
    for (uint32_t i = 0; i < s->n_spaces; i++) n_joints += arities[i];
    need(r, n_joints <= r->size / 16);      /* each has arrays of its own */
    if (r->failed) return STRUCTSVM_FILE;
    s->vocabularies = calloc((size_t)s->n_sources + 1, sizeof(strings));
    s->spaces = calloc((size_t)s->n_spaces + 1, sizeof(space));
    joint *joints = s->joints = calloc((size_t)n_joints, sizeof(joint));
    if (s->vocabularies == NULL || s->spaces == NULL || s->joints == NULL) return STRUCTSVM_MEMORY;
    for (uint32_t i = 0; i < s->n_sources && !r->failed; i++) {
        read_strings(r, s->vocabularies + i);
        need(r, s->vocabularies[i].n < INT32_MAX - MOST_MARGIN * 2
                    && (r->failed || within(s->outside + i * margin, margin, -1, (int64_t)s->vocabularies[i].n + margin)));
    }
    for (uint32_t i = 0; i < s->n_spaces && !r->failed; joints += arities[i++]) {
        s->spaces[i].arity = arities[i], s->spaces[i].joints = joints;
        read_space(r, s->spaces + i, n_features);
    }
    return r->failed ? STRUCTSVM_FILE : STRUCTSVM_OK;
}

static void read_columns(reader *r, model *m) {
    m->places = take_n(r, U32, 2 * (uint64_t)m->n_places);
    for (uint32_t i = 0; !r->failed && i < m->n_places; i++)
        need(r, m->places[2 * i] < 9 && m->places[2 * i + 1] < m->n_columns);
    read_alphabet(r, &m->abc);
}

static void read_rules(reader *r, model *m) {
    automaton *a = &m->rules;
    const uint32_t *head = take_n(r, U32, 2);
    if (r->failed) return;
    uint64_t N = head[0], H = head[1], K = m->K, n_origins;
    uint64_t n_rows = (m->order == 2 ? K : 1) * m->P;    /* as tokens behind the first have them */
    need(r, N > 0 && N < INT32_MAX / 2 && H > 0 && H <= N);
    a->N = head[0], a->H = head[1];
    a->labels = take_n(r, U32, N);
    a->rows = take_n(r, U32, N);
    a->group = take_n(r, U32, N);
    a->ends = take_n(r, U32, N);
    a->groups = take_n(r, U32, H + 1);
    a->next = take_n(r, U32, H * K);
    a->first = take_n(r, U32, K);
    a->origins = take_n(r, U32, N + 1);
    a->origin = take(r, U32, NULL, &n_origins);
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

static int read_model(reader *r, structsvm *tagger) {
    /* Kind of model, labels, order, columns, features of tokens and of pairs, how tokens are read, form of weights,
     * whether there are rules, functions of places, whether there are scaled scores. */
    const uint32_t *head = take_n(r, U32, 11);
    const float *temperature = take_n(r, F32, 1);
    if (r->failed || head[0] != 1) return STRUCTSVM_FILE;
    model *m = tagger->own = calloc(1, sizeof(model));
    if (m == NULL) return STRUCTSVM_MEMORY;
    m->K = head[1], m->order = head[2], m->n_columns = head[3], m->n_features = head[4], m->n_pairs = head[5];
    m->n_places = head[9], m->temperature = *temperature;
    need(r, m->K >= 1 && m->K <= MOST_LABELS && (m->order == 1 || m->order == 2) && head[6] <= 1
                && head[8] <= 1 && head[10] <= 1 && m->n_places <= 1024 && m->n_columns <= 65536
                && (head[6] == 0) == (m->n_columns > 0) && m->n_features < INT32_MAX && m->n_pairs < INT32_MAX
                && m->temperature >= 0.0f && m->temperature <= 3.402823466e38f);
    if (r->failed) return STRUCTSVM_FILE;
    m->stride = (m->K + LANES - 1) / LANES * LANES;
    m->G = m->order == 1 ? 1 : m->K + 1;
    m->P = m->order == 1 ? m->K : m->K + 1;
    uint64_t n_rows = m->n_features + (uint64_t)m->n_pairs * m->K, size = ((uint64_t)m->G * m->P + 2) * m->stride;
    /* No more is allocated than some times what the file has: rows of K floats become rows of `stride`. */
    if (n_rows > INT32_MAX || size / LANES > r->size) return STRUCTSVM_FILE;
    tagger->n_columns = m->n_columns;
    TRY(read_labels(r, tagger, m->K));
    m->tables = calloc((size_t)(size * (1 + head[10])), sizeof(float));
    if (m->tables == NULL) return STRUCTSVM_MEMORY;
    float *behind = read_scores(r, m, &m->plain, m->tables);
    m->scaled = m->plain;
    if (head[10] && !r->failed) read_scores(r, m, &m->scaled, behind);
    if (head[8] && !r->failed) read_rules(r, m);
    if (!r->failed) read_weights(r, &m->W, n_rows, m->K, head[7]);
    if (r->failed) return STRUCTSVM_FILE;
    if (head[6] == 1) {
        read_strings(r, &m->names);
        need(r, take_indices(r, &m->name_ids, m->n_features) == m->names.n);
        m->paired = take_n(r, U32, m->n_pairs);
        need(r, !r->failed && within(m->paired, m->n_pairs, 0, m->n_features));
        for (uint32_t i = 1; !r->failed && i < m->n_pairs; i++) need(r, m->paired[i - 1] < m->paired[i]);
    } else {
        read_columns(r, m);
        for (int i = 0; i < 2 && !r->failed; i++) TRY(read_templates(r, m->sets + i, m, i == 0 ? m->n_features : m->n_pairs));
    }
    return r->failed || r->at != r->size ? STRUCTSVM_FILE : STRUCTSVM_OK;
}

static void release(model *m) {
    room *rooms[] = {&m->E, &m->V, &m->R, &m->codes, &m->ids, &m->keys, &m->pair_starts, &m->pair_ids,
                     &m->pair_values, &m->table, &m->letters, &m->text, &m->marks, &m->place_codes, &m->back,
                     &m->heads, &m->held, &m->made};
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) free(rooms[i]->data);
    for (int i = 0; i < 2; i++) free(m->sets[i].vocabularies), free(m->sets[i].spaces), free(m->sets[i].joints);
    free(m->tables);
}

/* ---- functions of words ----------------------------------------------------------------------------------------- */
typedef struct { const uint8_t *data; uint32_t size; } slice;      /* NULL: no feature */

static const slice none = {NULL, 0};
static slice text_of(const char *text) { return (slice){(const uint8_t *)text, (uint32_t)strlen(text)}; }

/* Letters written in UTF-8 to `to`. */
static slice written(const uint32_t *x, int64_t n, uint8_t *to) {
    slice s = {to, 0};
    for (int64_t i = 0; i < n; i++) s.size += encoded(x[i], to + s.size);
    return s;
}

/* A token of a column, and what functions need of it. */
typedef struct {
    slice text;
    const uint32_t *letters;
    int64_t n, opening, closing;    /* letters; marks before the first that is none, marks at the end */
} word;

static int is_of(const model *m, uint32_t letter, uint32_t flags) { return (properties_of(&m->abc, letter) & flags) != 0; }

/* Combining characters belong to the one before them. */
static void set_marks(const model *m, word *w) {
    w->opening = w->closing = 0;
    for (int64_t i = w->n; i-- > 0;) {
        if (is_of(m, w->letters[i], COMBINING)) continue;
        if (is_of(m, w->letters[i], ALNUM)) break;
        w->closing = w->n - i;
    }
    if (w->closing == w->n || is_of(m, w->letters[0], COMBINING)) return;
    while (!is_of(m, w->letters[w->opening], ALNUM)) w->opening++;
}

/* The bytes of letters first .. last - 1. */
static slice part_of(const word *w, int64_t first, int64_t last) {
    uint32_t a = 0, b;
    uint8_t ignored[4];
    for (int64_t i = 0; i < first; i++) a += encoded(w->letters[i], ignored);
    b = a;
    for (int64_t i = first; i < last; i++) b += encoded(w->letters[i], ignored);
    return (slice){w->text.data + a, b - a};
}

/* The word without marks at its ends, a word of marks alone as it is, in lower case: letters at `out`. */
static int64_t bare(const model *m, const word *w, uint32_t *out) {
    int64_t first = w->opening, last = w->n - w->closing;
    if (last <= first) first = 0, last = w->n;
    return lowered(&m->abc, w->letters + first, last - first, out);
}

static slice pattern_of(const model *m, const word *w, uint32_t *spare, uint8_t *to) {
    int64_t n = bare(m, w, spare);
    for (int64_t i = 0; i < n; i++)
        if (properties_of(&m->abc, spare[i]) & DECIMAL) spare[i] = '0';
    return written(spare, n, to);
}

static slice vowels_of(const model *m, const word *w, uint32_t *spare) {
    int64_t n = bare(m, w, spare);
    if (n == 0 || !(properties_of(&m->abc, spare[0]) & BASE_ALPHA)) return none;
    uint32_t found = properties_of(&m->abc, spare[0]) & MORE_VOWELS;
    for (int64_t i = 1; i < n; i++) found |= properties_of(&m->abc, spare[i]) & (BASE_VOWEL | MORE_VOWELS);
    return text_of(found ? "some" : "none");
}

/* Kinds of letters, each run of one kind as one, without combining ones; `counted`: with the length of runs from 2 on. */
static slice shape_of(const model *m, const word *w, int counted, uint8_t *to) {
    slice s = {to, 0};
    for (int64_t i = 0; i < w->n;) {
        uint32_t kind = 0;
        int64_t run = 0;
        for (; i < w->n; i++) {
            uint32_t c = w->letters[i], p = properties_of(&m->abc, c);
            uint32_t its = p & DIGIT ? 'd' : !(p & ALPHA) ? c : p & (UPPER | TITLE) ? 'X' : 'x';
            if (p & COMBINING) continue;
            if (run > 0 && its != kind) break;
            kind = its;
            run++;
        }
        if (run > 0) s.size += encoded(kind, to + s.size);
        if (counted && run > 1) to[s.size++] = (uint8_t)('0' + (run < 6 ? run : 6));
    }
    return s;
}

static slice digits_of(const model *m, const word *w) {
    int some = 0, all = w->n > 0;
    for (int64_t i = 0; i < w->n; i++) {
        uint32_t p = properties_of(&m->abc, w->letters[i]);
        some |= (p & DECIMAL) != 0;
        all &= (p & DIGIT) != 0;
    }
    return all ? text_of("all") : some ? text_of("some") : none;
}

static slice capitals_of(const model *m, const word *w, uint32_t *spare) {
    int64_t n = lowered(&m->abc, w->letters, w->n, spare);
    if (n == w->n && memcmp(spare, w->letters, (size_t)n * sizeof *spare) == 0) return none;
    int upper = 0, other = 0;
    for (int64_t i = 0; i < w->n; i++) {
        uint32_t p = properties_of(&m->abc, w->letters[i]);
        upper |= (p & UPPER) != 0;
        other |= (p & (LOWER | TITLE)) != 0;
    }
    if (upper && !other && w->n > 1) return text_of("all");
    return text_of(properties_of(&m->abc, w->letters[0]) & UPPER ? "first" : "inside");
}

enum {
    F_X, F_LOWER, F_SHAPE, F_PREFIX1, F_SUFFIX1 = F_PREFIX1 + 6, F_DIGIT = F_SUFFIX1 + 6, F_CAPITAL, F_HYPHEN, F_FORM,
    F_LENGTH, F_OPENING, F_CLOSING, F_PATTERN, F_VOWELS, F_ASCII_LOWER
};

/* A function of a word, written to `to` where it is no part of it; `spare` is room for twice its letters. */
static slice value_of(const model *m, uint32_t function, const word *w, uint32_t *spare, uint8_t *to) {
    static const char *const lengths[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10+"};
    int64_t k = (int64_t)function - (function >= F_SUFFIX1 ? F_SUFFIX1 : F_PREFIX1) + 1;
    if (function >= F_PREFIX1 && function < F_DIGIT)
        return w->n < k ? none : function >= F_SUFFIX1 ? part_of(w, w->n - k, w->n) : part_of(w, 0, k);
    switch (function) {
    case F_LOWER: return written(spare, lowered(&m->abc, w->letters, w->n, spare), to);
    case F_SHAPE: return shape_of(m, w, 0, to);
    case F_DIGIT: return digits_of(m, w);
    case F_CAPITAL: return capitals_of(m, w, spare);
    case F_HYPHEN: return memchr(w->text.data, '-', w->text.size) == NULL ? none : text_of("some");
    case F_FORM: return shape_of(m, w, 1, to);
    case F_LENGTH: return text_of(lengths[w->n < 10 ? w->n : 10]);
    case F_OPENING: return w->opening == 0 ? none : part_of(w, 0, w->opening);
    case F_CLOSING: return w->closing == 0 ? none : part_of(w, w->n - w->closing, w->n);
    case F_PATTERN: return pattern_of(m, w, spare, to);
    case F_VOWELS: return vowels_of(m, w, spare);
    case F_ASCII_LOWER:
        for (uint32_t i = 0; i < w->text.size; i++)
            to[i] = (uint8_t)(w->text.data[i] >= 'A' && w->text.data[i] <= 'Z' ? w->text.data[i] + 32 : w->text.data[i]);
        return (slice){to, w->text.size};
    default: return w->text;
    }
}

/* ---- places ----------------------------------------------------------------------------------------------------- */
typedef struct {
    slice closing, pattern;     /* NULL: no marks */
    uint32_t hash, first;       /* the pattern's hash; the first token with it */
    int is_number, is_again;
} place_of_token;

typedef struct { slice text; char own[8]; } place_value;

enum { P_START, P_END, P_TENTH, P_SIZE, P_NUMBERS, P_FIELDS, P_AGAIN, P_BEFORE, P_BEHIND };

/* Decode the text of a token; letters at m->letters, then room for twice as many. */
static int read_word(model *m, const structsvm_text *text, word *w) {
    w->text.data = (const uint8_t *)(text->size == 0 ? "" : text->data);
    w->text.size = text->size;
    GROW(m->letters, 3 * ((uint64_t)text->size + 1) * sizeof(uint32_t));
    w->letters = m->letters.data;
    w->n = decoded(w->text.data, w->text.size, m->letters.data);
    return w->n < 0 ? STRUCTSVM_UTF8 : (set_marks(m, w), STRUCTSVM_OK);
}

/* Bytes that a function writes of a text: a byte becomes a letter of at most four, or the two of a dotted i. */
static uint64_t most_written(uint64_t size) { return 4 * size + 8; }

/* The marks and patterns of a column's tokens; first tokens with each pattern by a table of hashes. */
static int read_places(model *m, const structsvm_text *texts, uint32_t column, uint32_t n) {
    uint64_t bytes = 0, mask = 15;
    for (uint32_t t = 0; t < n; t++) bytes += most_written(texts[(uint64_t)t * m->n_columns + column].size);
    while (mask < 2 * (uint64_t)n) mask = 2 * mask + 1;
    GROW(m->marks, (uint64_t)n * sizeof(place_of_token));
    GROW(m->text, bytes + 1);
    GROW(m->heads, (mask + 1) * sizeof(uint32_t));
    place_of_token *places = m->marks.data;
    uint32_t *table = m->heads.data;
    uint8_t *to = m->text.data;
    memset(table, 0xFF, (size_t)(mask + 1) * sizeof *table);
    for (uint32_t t = 0; t < n; t++) {
        word w;
        TRY(read_word(m, texts + (uint64_t)t * m->n_columns + column, &w));
        place_of_token *p = places + t;
        memset(p, 0, sizeof *p);
        if (w.closing > 0) p->closing = part_of(&w, w.n - w.closing, w.n);
        p->pattern = pattern_of(m, &w, (uint32_t *)m->letters.data + w.n, to);
        if (p->pattern.size == 0) p->pattern = text_of("none");
        else to += p->pattern.size;
        for (int64_t i = 0; i < w.n; i++) p->is_number |= (properties_of(&m->abc, w.letters[i]) & DECIMAL) != 0;
        p->hash = hash_of(p->pattern.data, p->pattern.size);
        uint64_t at = p->hash & mask;
        for (slice o; table[at] != NONE; at = (at + 1) & mask)
            if ((o = places[table[at]].pattern).size == p->pattern.size && !memcmp(o.data, p->pattern.data, o.size)) break;
        if (table[at] == NONE) table[at] = t;
        p->first = table[at];
        if (p->first != t) places[p->first].is_again = p->is_again = 1;
    }
    return STRUCTSVM_OK;
}

/* Write a count behind `at` others; returns where it ends. */
static uint32_t set_count(place_value *v, uint32_t at, uint32_t count, uint32_t most) {
    v->own[at] = (char)('0' + (count < most ? count : most)), v->own[at + 1] = count < most ? 0 : '+', v->own[at + 2] = 0;
    v->text = text_of(v->own);
    return v->text.size;
}

static int is_field(const place_of_token *p) {
    return p->closing.data != NULL && !(p->closing.size == 1 && p->closing.data[0] == '.');
}

/* The values of a function of places at n tokens. */
static void place_values(uint32_t function, const place_of_token *p, uint32_t n, place_value *out) {
    static const uint32_t sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 25, 32, 40, 50, 65};
    static const char names[][3] = {"1", "2", "3", "4", "5", "6", "7", "8", "10", "12", "15", "20", "25", "32", "40", "50",
                                    "65"};
    uint32_t before = 0, all = 0, size = 0, end, of_numbers = function == P_NUMBERS;
    slice last = text_of("none");
    for (uint32_t t = 0; t < n; t++) all += (uint32_t)(of_numbers ? p[t].is_number : is_field(p + t));
    while (size < 16 && sizes[size + 1] <= n) size++;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t t = function == P_BEHIND ? n - 1 - i : i, own = (uint32_t)(of_numbers ? p[t].is_number : is_field(p + t));
        place_value *v = out + t;
        switch (function) {
        case P_START: set_count(v, 0, t, 8); break;
        case P_END: set_count(v, 0, n - 1 - t, 8); break;
        case P_TENTH: set_count(v, 0, (uint32_t)(10 * (uint64_t)t / n), 10); break;
        case P_SIZE: v->text = text_of(names[size]); break;
        case P_NUMBERS: case P_FIELDS:
            end = set_count(v, 0, before, of_numbers ? 2 : 4);
            v->own[end] = '-';
            set_count(v, end + 1, all - before - (of_numbers ? own : 0), of_numbers ? 2 : 4);
            before += own;
            break;
        case P_AGAIN: v->text = text_of(!p[t].is_again ? "once" : p[t].first == t ? "first" : "again"); break;
        default:    /* marks before; or from the end, marks behind and its own */
            if (function == P_BEFORE) v->text = last;
            if (p[t].closing.data != NULL) last = p[t].closing;
            if (function != P_BEFORE) v->text = last;
        }
    }
}

static int read_all_places(model *m, const structsvm_text *texts, uint32_t n) {
    GROW(m->place_codes, (uint64_t)m->n_places * n * sizeof(place_value));
    for (uint32_t k = 0; k < m->n_places; k++) {
        uint32_t column = m->places[2 * k + 1];
        if (k == 0 || column != m->places[2 * k - 1]) TRY(read_places(m, texts, column, n));
        place_values(m->places[2 * k], m->marks.data, n, (place_value *)m->place_codes.data + (uint64_t)k * n);
    }
    return STRUCTSVM_OK;
}

/* ---- features of templates -------------------------------------------------------------------------------------- */
/* The codes of each source at each token and outside: rows of left + n + right. */
static int read_codes(model *m, const templates *s, const structsvm_text *texts, uint32_t n) {
    uint64_t margin = s->left + s->right, width = n + margin;
    GROW(m->codes, (uint64_t)s->n_sources * width * sizeof(int32_t));
    int32_t *codes = m->codes.data;
    for (uint32_t i = 0; i < s->n_sources; i++) {
        const int32_t *outside = s->outside + i * margin;
        int32_t *row = codes + i * width;
        for (uint32_t d = 0; d < s->left; d++) row[s->left - 1 - d] = outside[d];
        for (uint32_t d = 0; d < s->right; d++) row[s->left + n + d] = outside[s->left + d];
    }
    /* Sources of a column stand together: each text is decoded once for all of them. */
    for (uint32_t i = 0; i < s->n_sources;) {
        uint32_t end = i, column = s->sources[2 * i + 1];
        while (end < s->n_sources && s->sources[2 * end + 1] == column) end++;
        for (uint32_t t = 0; t < n; t++) {
            word w;
            memset(&w, 0, sizeof w);
            if (column < m->n_columns) {
                const structsvm_text *text = texts + (uint64_t)t * m->n_columns + column;
                TRY(read_word(m, text, &w));
                GROW(m->keys, most_written(text->size));
            } else {
                w.text = ((place_value *)m->place_codes.data)[(uint64_t)(column - m->n_columns) * n + t].text;
            }
            uint32_t *spare = column < m->n_columns ? (uint32_t *)m->letters.data + w.n : NULL;
            for (uint32_t k = i; k < end; k++) {
                slice value = value_of(m, s->sources[2 * k], &w, spare, m->keys.data);
                uint32_t id = value.data == NULL ? NONE : string_in(s->vocabularies + k, value.data, value.size);
                codes[k * width + s->left + t] = id == NONE ? -1 : (int32_t)(id + margin);
            }
        }
        i = end;
    }
    return STRUCTSVM_OK;
}

static uint32_t one_of(const space *s, uint32_t code) {
    uint32_t bits = code / 32 < s->n_words ? s->known[code / 32] : 0, bit = (uint32_t)1 << code % 32;
    return bits & bit ? s->before[code / 32] + bits_of(bits & (bit - 1)) : NONE;
}

/* The number of a pair, or NONE. */
static uint32_t joined(const joint *s, uint32_t first, uint32_t second) {
    uint64_t mask = ((uint64_t)1 << s->bits) - 1, x = ((uint64_t)first << s->second_bits | second) * 0x9E3779B97F4A7C15u & mask;
    x = (x ^ x >> (s->bits + 1) / 2) * 0xBF58476D1CE4E5B9u & mask;
    uint32_t b = (uint32_t)(x >> s->rest_bits), rest = (uint32_t)(x & (((uint64_t)1 << s->rest_bits) - 1));
    for (uint32_t i = index_at(&s->buckets, b), end = index_at(&s->buckets, b + 1); i < end; i++)
        if (index_at(&s->rests, i) == rest) return i;
    return NONE;
}

/* The feature of a space whose codes are at places items[..], at token t: its number, or NONE. */
static uint32_t feature_at(const space *s, const int32_t *items, const int32_t *codes, uint64_t width, uint64_t t) {
    uint32_t found = 0;
    for (uint32_t k = 0; k < s->arity && found != NONE; k++) {
        int32_t code = codes[(uint64_t)items[2 * k] * width + t + (uint64_t)(int64_t)items[2 * k + 1]];
        if (code < 0) return NONE;
        found = k == 0 ? (uint32_t)code : joined(s->joints + k - 1, found, (uint32_t)code);
    }
    if (s->arity == 1) found = one_of(s, found);
    return found >= s->n ? NONE : s->is_run ? index_at(&s->ids, 0) + found : index_at(&s->ids, found);
}

/* ---- the lattice ------------------------------------------------------------------------------------------------ */
static float *row_of(const model *m, uint64_t t) { return (float *)m->E.data + t * m->stride; }
/* Sort keys, each a feature and, in the lower half, the text with its value (NULL: values are 1), and add up the values of
 * features that come again: how many are left, at ids and values. */
static uint32_t merged(uint64_t *keys, uint32_t n, const structsvm_text *texts, uint32_t *ids, float *values) {
    uint32_t left = 0;
    sort(keys, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t id = (uint32_t)(keys[i] >> 32);
        float value = texts == NULL ? 1.0f : texts[(uint32_t)keys[i]].value;
        if (left > 0 && ids[left - 1] == id) values[left - 1] += value;
        else ids[left] = id, values[left++] = value;
    }
    return left;
}

/* Room for features of pairs, `most` of all n tokens. */
static int grow_pairs(model *m, uint32_t n, uint64_t most) {
    GROW(m->pair_starts, ((uint64_t)n + 1) * sizeof(uint32_t));
    GROW(m->pair_ids, (most + 1) * sizeof(uint32_t));
    GROW(m->pair_values, (most + 1) * sizeof(float));
    *(uint32_t *)m->pair_starts.data = 0;
    return STRUCTSVM_OK;
}

static int from_columns(model *m, const structsvm_text *texts, uint32_t n, float divisor) {
    for (uint64_t i = 0; i < (uint64_t)n * m->n_columns; i++) {
        if (texts[i].size > MOST_BYTES) return STRUCTSVM_INPUT;
        if (decoded((const uint8_t *)texts[i].data, texts[i].size, NULL) < 0) return STRUCTSVM_UTF8;
    }
    TRY(read_all_places(m, texts, n));
    for (int which = 0; which < (m->n_pairs > 0 ? 2 : 1); which++) {
        const templates *s = m->sets + which;
        uint64_t width = (uint64_t)n + s->left + s->right, total = 0;
        TRY(read_codes(m, s, texts, n));
        if (which == 1) TRY(grow_pairs(m, n, (uint64_t)n * s->n_templates));
        GROW(m->ids, ((uint64_t)s->n_templates + 1) * 2 * sizeof(uint32_t));
        GROW(m->keys, ((uint64_t)s->n_templates + 1) * sizeof(uint64_t));
        uint32_t *ids = m->ids.data;
        float *values = (float *)(ids + s->n_templates + 1);
        uint64_t *keys = m->keys.data;
        for (uint32_t t = 0; t < n; t++) {
            uint32_t found = 0;
            for (uint32_t k = 0; k < s->n_templates && !(s->of_pairs && t == 0); k++) {
                uint32_t id = feature_at(s->spaces + s->of[k], s->items + 2 * (uint64_t)s->starts[k], m->codes.data, width,
                                         (uint64_t)s->left + t);
                if (id != NONE) keys[found++] = (uint64_t)id << 32;
            }
            found = merged(keys, found, NULL, ids, values);
            if (which == 0) {
                for (uint32_t e = 0; e < found; e++) add_row(&m->W, ids[e], values[e], divisor, row_of(m, t));
                continue;
            }
            memcpy((uint32_t *)m->pair_ids.data + total, ids, found * sizeof *ids);
            memcpy((float *)m->pair_values.data + total, values, found * sizeof *values);
            total += found;
            ((uint32_t *)m->pair_starts.data)[t + 1] = (uint32_t)total;
        }
    }
    return STRUCTSVM_OK;
}

/* The place of a feature among those of pairs, or NONE. */
static uint32_t pair_of(const model *m, uint32_t id) {
    uint32_t low = 0, high = m->n_pairs;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (m->paired[middle] < id) low = middle + 1;
        else high = middle;
    }
    return low < m->n_pairs && m->paired[low] == id ? low : NONE;
}

static int from_attributes(model *m, const structsvm_text *texts, const uint32_t *starts, uint32_t n, float divisor) {
    uint64_t most = 0, total = 0;
    if (starts == NULL) return STRUCTSVM_INPUT;
    for (uint32_t t = 0; t < n; t++) {
        if (starts[t + 1] < starts[t]) return STRUCTSVM_INPUT;
        if (starts[t + 1] - starts[t] > most) most = starts[t + 1] - starts[t];
    }
    GROW(m->keys, (most + 1) * sizeof(uint64_t));
    GROW(m->ids, (most + 1) * 2 * sizeof(uint32_t));
    TRY(grow_pairs(m, n, (uint64_t)starts[n] - starts[0]));
    uint64_t *keys = m->keys.data;
    uint32_t *ids = m->ids.data;
    float *values = (float *)(ids + most + 1);
    for (uint32_t t = 0; t < n; t++) {
        uint32_t found = 0;
        for (uint32_t e = starts[t]; e < starts[t + 1]; e++) {
            const structsvm_text *text = texts + e;
            if (text->size > MOST_BYTES || !(text->value >= -3.402823466e38f && text->value <= 3.402823466e38f))
                return STRUCTSVM_INPUT;
            if (decoded((const uint8_t *)text->data, text->size, NULL) < 0) return STRUCTSVM_UTF8;
            uint32_t name = string_in(&m->names, (const uint8_t *)(text->size == 0 ? "" : text->data), text->size);
            if (name != NONE && text->value != 0.0f) keys[found++] = (uint64_t)index_at(&m->name_ids, name) << 32 | e;
        }
        found = merged(keys, found, texts, ids, values);
        for (uint32_t e = 0; e < found; e++) {
            uint32_t pair = pair_of(m, ids[e]);
            add_row(&m->W, ids[e], values[e], divisor, row_of(m, t));
            if (pair == NONE) continue;
            ((uint32_t *)m->pair_ids.data)[total] = pair;
            ((float *)m->pair_values.data)[total++] = values[e];
        }
        ((uint32_t *)m->pair_starts.data)[t + 1] = (uint32_t)total;
    }
    return STRUCTSVM_OK;
}

/* E[t][c]: the scores of labels at tokens, -inf beyond the last. */
static int fill(model *m, const structsvm_text *texts, const uint32_t *starts, uint32_t n, float divisor) {
    GROW(m->E, (uint64_t)n * m->stride * sizeof(float));
    for (uint32_t t = 0; t < n; t++)
        for (uint32_t c = 0; c < m->stride; c++) row_of(m, t)[c] = c < m->K ? 0.0f : -INFINITY;
    if (m->n_pairs > 0) {
        uint64_t size = (uint64_t)m->G * m->P * m->stride * sizeof(float);
        m->keeps = n * size <= KEPT;
        GROW(m->table, (m->keeps ? n : 1) * size + (uint64_t)m->K * m->stride * sizeof(float));
        GROW(m->made, n);
        memset(m->made.data, 0, n);
    }
    return m->n_columns > 0 ? from_columns(m, texts, n, divisor) : from_attributes(m, texts, starts, n, divisor);
}

/* The table of transition scores into token t > 0: that of all tokens, or with its own features of pairs. */
static const float *table_at(model *m, const scores *s, uint32_t t, float divisor) {
    const uint32_t *starts = m->pair_starts.data, *ids = m->pair_ids.data;
    uint64_t size = (uint64_t)m->G * m->P * m->stride, stride = m->stride;
    if (m->n_pairs == 0 || starts[t] == starts[t + 1]) return s->A;
    float *table = (float *)m->table.data + m->K * stride + (m->keeps ? t * size : 0);
    float *rows = m->order == 1 ? table : m->table.data;
    uint8_t *made = (uint8_t *)m->made.data + t;
    if (*made && m->keeps) return table;
    *made = 1;
    if (m->order == 1) memcpy(table, s->A, size * sizeof(float));
    else memset(rows, 0, m->K * stride * sizeof(float));
    for (uint32_t e = starts[t]; e < starts[t + 1]; e++)
        add_rows(&m->W, m->n_features + ids[e] * m->K, m->K, ((float *)m->pair_values.data)[e], divisor, rows, stride);
    if (m->order == 2)
        for (uint64_t q = 0; q < (uint64_t)m->K * m->P; q++)
            for (uint64_t c = 0; c < stride; c++)
                table[q * stride + c] = s->A[q * stride + c] + rows[q / m->P * stride + c];
    return table;
}

/* ---- the best labels: as in the package's chain.h ----------------------------------------------------------------- */
static uint64_t block_of(const model *m) { return m->rules.N > 0 ? m->rules.N : (uint64_t)m->G * m->stride; }

static uint64_t label_of(const model *m, uint64_t state) {
    return m->rules.N > 0 ? (uint64_t)m->rules.labels[state] : state % m->stride;
}

/* The state of a first label, or -1; whether a state may be the last one. */
static int64_t first_of(const model *m, uint64_t c) {
    return m->rules.N > 0 ? m->rules.first[c] : (int64_t)((m->G - 1) * (uint64_t)m->stride + c);
}

static int may_end(const model *m, uint64_t state) {
    return m->rules.N > 0 ? m->rules.ends[state] != 0 : state % m->stride < m->K;
}

/* The states that tokens behind the first may have: there are none behind it without a label before. */
static uint64_t targets_of(const model *m) {
    return m->rules.N == 0 && m->G > 1 ? (uint64_t)m->K * m->stride : block_of(m);
}

/* Where the state stands from which label a leads to group g. */
static uint64_t from_of(const model *m, uint64_t g, uint64_t a) { return m->G == 1 ? a : a * m->stride + g; }

/* The best scores of states at a token, `now`, which are all -inf, from those of the token before. */
static void chain_step(const model *m, const float *A, const float *E, const float *before, float *now) {
    uint64_t stride = m->stride, P = m->P;
    for (uint64_t g = 0; g < (m->G == 1 ? 1 : m->K); g++) {
        float *out = now + g * stride;
        for (uint64_t a = 0; a < P; a++) {
            const float *row = A + (g * P + a) * stride;
            float x = before[from_of(m, g, a)];
            for (uint64_t c = 0; c < stride; c++) out[c] = x + row[c] > out[c] ? x + row[c] : out[c];
        }
        for (uint64_t c = 0; c < stride; c++) out[c] += E[c];
    }
}

/* ---- under an automaton: as in the package's ruled.h --------------------------------------------------------------- */
static const float *ruled_row(const model *m, const float *A, uint64_t node) {
    return A + (uint64_t)m->rules.rows[node] * m->stride;
}

static void ruled_step(const model *m, const float *A, const float *E, const float *before, float *now) {
    const automaton *r = &m->rules;
    uint64_t K = m->K;
    for (uint64_t h = 0; h < r->H; h++)
        for (int32_t node = r->groups[h]; node < r->groups[h + 1]; node++) {
            const float *row = ruled_row(m, A, (uint64_t)node);
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
        if (first_of(m, c) >= 0) V[first_of(m, c)] = row_of(m, 0)[c] + s->start[c];
    for (uint32_t t = 1; t < n; t++, V += block)
        (m->rules.N > 0 ? ruled_step : chain_step)(m, table_at(m, s, t, 1.0f), row_of(m, t), V, V + block);
}

/* ---- ways back -------------------------------------------------------------------------------------------------- */
/* The states before state j and the scores of the transitions from them: how many. */
static uint64_t gathered(const model *m, const float *A, uint64_t j, uint32_t *from, float *steps) {
    const automaton *r = &m->rules;
    uint64_t g = j / m->stride, c = label_of(m, j), found = 0;
    for (uint64_t a = 0; r->N == 0 && a < m->P; a++, found++)
        from[a] = (uint32_t)from_of(m, g, a), steps[a] = A[(g * m->P + a) * m->stride + c];
    for (int32_t e = r->N == 0 ? 0 : r->origins[j]; r->N > 0 && e < r->origins[j + 1]; e++)
        for (int32_t n = r->groups[r->origin[e]]; n < r->groups[r->origin[e] + 1]; n++, found++)
            from[found] = (uint32_t)n, steps[found] = ruled_row(m, A, (uint64_t)n)[c];
    return found;
}

/* The state before state j on the best way to it. */
static uint64_t before_of(const model *m, const float *A, const float *before, uint64_t j) {
    const int32_t *rows = m->rules.N > 0 ? m->rules.rows : NULL;
    uint32_t *from = m->heads.data;
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
    GROW(m->heads, 2 * block_of(m) * sizeof(uint32_t));
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
    double total = (double)(s->start[y[0]] + row_of(m, 0)[y[0]]);
    for (uint32_t t = 1; t < n; t++) {
        uint64_t row = y[t - 1];
        if (m->G > 1) row = row * m->P + (t > 1 ? y[t - 2] : m->K);
        total += (double)(table_at(m, s, t, 1.0f)[row * m->stride + y[t]] + row_of(m, t)[y[t]]);
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
    GROW(m->heads, 3 * states * sizeof(uint32_t));
    float *score = m->V.data;
    uint32_t *back = m->back.data, *heads = m->heads.data;
    memset(heads, 0, (size_t)states * sizeof *heads);
    for (uint64_t j = 0; j < size * k; j++) score[j] = -INFINITY;
    for (uint64_t c = 0; c < m->K; c++)
        if (first_of(m, c) >= 0) score[(uint64_t)first_of(m, c) * k] = row_of(m, 0)[c] + s->start[c];
    for (uint32_t t = 1; t < n_tokens; t++) {
        lists l = {score + (t - 1) * states * k, heads, k};
        const float *A = table_at(m, s, t, 1.0f), *E = row_of(m, t);
        float *now = score + t * states * k;
        for (uint64_t j = 0; j < targets_of(m); j++)
            if (label_of(m, j) < m->K) kbest_at(m, A, &l, E, j, now, back + t * states * k);
    }
    lists l = {score + (n_tokens - 1) * states * k, heads, k};
    uint32_t found = 0;
    memset(heads, 0, (size_t)states * sizeof *heads);
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
/* Nodes before and behind are visited by the edges between them: calls `visit` for each edge into token t. */
typedef struct {
    const model *m;
    const float *A, *E;
    const double *before, *later;   /* log-sums of token t - 1 and, going back, of token t before its own scores */
    const double *now;              /* probabilities at token t */
    double *out;                    /* forwards: maxima or sums per state of t; backwards: probabilities at t - 1 */
    const double *tops;
    int pass;                       /* 0: maxima; 1: sums; 2: backwards */
} edges;

static void visit(const edges *e, uint64_t from, uint64_t to, double transition) {
    double x = e->before[from] + transition;
    if (x == -INFINITY) return;
    if (e->pass == 0) e->out[to] = x > e->out[to] ? x : e->out[to];
    else if (e->pass == 1) e->out[to] += exp(x - e->tops[to]);
    else if (e->now[to] > 0.0) e->out[from] += e->now[to] * exp(x - e->later[to]);
}

static void visit_all(const edges *e) {
    uint32_t *from = e->m->heads.data;
    float *steps = (float *)(from + block_of(e->m));
    for (uint64_t j = 0; j < targets_of(e->m); j++) {
        uint64_t n = label_of(e->m, j) < e->m->K ? gathered(e->m, e->A, j, from, steps) : 0;
        for (uint64_t i = 0; i < n; i++) visit(e, from[i], j, steps[i]);
    }
}

/* Divide by the sum; 0 if that is none. */
static int normalise(double *p, uint64_t n) {
    double sum = 0.0;
    for (uint64_t j = 0; j < n; j++) sum += p[j];
    if (!(sum > 0.0 && sum <= 1.7976931348623157e308)) return 0;
    for (uint64_t j = 0; j < n; j++) p[j] /= sum;
    return 1;
}

/* alpha = R + E - its greatest; 0 if all are -inf, or not numbers. */
static int alpha_of(const model *m, const double *R, uint32_t t, double *alpha) {
    uint64_t states = block_of(m);
    double top = -INFINITY;
    for (uint64_t j = 0; j < states; j++) {
        alpha[j] = label_of(m, j) < m->K ? R[j] + row_of(m, t)[label_of(m, j)] : -INFINITY;
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
    GROW(m->R, (n_tokens + 4) * states * sizeof(double));
    GROW(m->heads, 2 * states * sizeof(uint32_t));
    double *R = m->R.data, *alpha = R + n_tokens * states, *now = alpha + states, *before = now + states;
    double *tops = before + states;
    for (uint64_t j = 0; j < states; j++) R[j] = -INFINITY;
    for (uint64_t c = 0; c < K; c++)
        if (first_of(m, c) >= 0) R[first_of(m, c)] = s->start[c];
    for (uint32_t t = 1; t < n_tokens; t++) {
        double *out = R + t * states;
        if (!alpha_of(m, out - states, t - 1, alpha)) return STRUCTSVM_NOTHING;
        edges e = {m, table_at(m, s, t, m->temperature), row_of(m, t), alpha, NULL, NULL, tops, tops, 0};
        for (uint64_t j = 0; j < states; j++) tops[j] = -INFINITY, out[j] = 0.0;
        visit_all(&e);
        e.out = out, e.pass = 1;
        visit_all(&e);
        for (uint64_t j = 0; j < states; j++) out[j] = tops[j] == -INFINITY ? -INFINITY : tops[j] + log(out[j]);
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
        if (!normalise(now, states)) return STRUCTSVM_NOTHING;
        float *row = probabilities + t * K;
        for (uint64_t c = 0; c < K; c++) row[c] = 0.0f;
        for (uint64_t j = 0; j < states; j++)
            if (label_of(m, j) < K) row[label_of(m, j)] += (float)now[j];
        if (t == 0) return STRUCTSVM_OK;
        if (!alpha_of(m, R + (t - 1) * states, t - 1, alpha)) return STRUCTSVM_NOTHING;
        edges e = {m, table_at(m, s, t, m->temperature), NULL, alpha, R + t * states, now, before, NULL, 2};
        for (uint64_t j = 0; j < states; j++) before[j] = 0.0;
        visit_all(&e);
        memcpy(now, before, states * sizeof *now);
    }
}
