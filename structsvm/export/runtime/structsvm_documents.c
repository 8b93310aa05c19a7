#include "structsvm_core.h"

#include "structsvm_names.h"

/* Documents: texts or rows of numbers, which are labelled each by itself. A text's terms are counted and weighed, as by
 * scikit-learn's CountVectorizer and TfidfVectorizer; its rows of weights are added up to a score per attribute, and
 * these to a score per label, as in the package's _taxonomy.pyx. Wide models have a score per label at once, in float64,
 * as in _ambiguous.pyx. */
enum {
    WORDS, SHORT_WORDS, BLANKS, LETTERS, LETTERS_IN_WORDS,  /* units of terms: words of two letters or more, of one, ... */
    NUMBERS,                                                /* no terms: rows of float64 */
    IS_BINARY = 1, IS_NARROW = 2, IS_WIDE = 4,              /* counts are 0 and 1; values are float32; sums are float64 */
    MOST_NGRAM = 1000, WIDE_WEIGHTS = 7                     /* a form of weights beside those of `weights` */
};

struct structsvm_own {
    uint32_t K, reading, is_lower, least, most, n_features, has_intercept, n_attributes, n_positions, n_full, flags, norm;
    double temperature;                 /* 0: no probabilities */
    alphabet abc;
    strings terms, stops;
    uint32_t longest;                   /* bytes of a term */
    const uint32_t *ids;                /* (terms): the feature of each */
    uint32_t n_logs;
    const double *logs, *idf;           /* 1 + log(count) of 1, 2, ...; (n_features); NULL: neither */
    const float *low, *high, *scale;    /* (n_features): limits of values, and their units; NULL: none */
    const uint32_t *rows;               /* (n_features + has_intercept): row of weights, or NONE; NULL: their numbers */
    weights W;                          /* rows from n_full on are added without a fused product */
    /* The score of position z is that of base[z], 0 for 0, else of position base[z] - 1, and its own attributes'. */
    const uint32_t *base, *first, *attribute, *position;
    const float *value, *factor;        /* factors of attributes, NULL: 1; of positions */
    /* Wide: limits of values, NULL: none; what is subtracted from them, and then their factors, or if that is NULL their
     * divisors, NULL: none; weights (n_features + has_intercept, K), NULL: those of W. */
    const double *floor, *ceiling, *centre, *unit, *wide;
    room letters, bytes, units, keys, entries, sums, scores;
    uint64_t n_keys;
};

typedef struct {
    uint32_t id;
    double value;
} entry;

/* ---- reading ---------------------------------------------------------------------------------------------------- */
/* An array of n items, or none: NULL. */
static const void *take_some(reader *r, uint32_t kind, uint64_t n) {
    uint64_t found;
    const void *items = take(r, kind, NULL, &found);
    need(r, found == 0 || found == n);
    return found == 0 ? NULL : items;
}

static int are_finite(const double *x, uint64_t n) {
    for (uint64_t i = 0; i < n; i++)
        if (!(x[i] >= -1.7976931348623157e308 && x[i] <= 1.7976931348623157e308)) return 0;
    return 1;
}

static void read_terms(reader *r, model *m) {
    read_alphabet(r, &m->abc);
    if (!r->failed) read_strings(r, &m->terms);
    if (!r->failed) read_strings(r, &m->stops);
    if (r->failed) return;
    uint64_t n_logs, n = m->n_features;
    m->ids = take_n(r, U32, n);
    m->logs = take(r, F64, NULL, &n_logs);
    m->idf = take_some(r, F64, n);
    need(r, !r->failed && m->terms.n == n && within(m->ids, n, 0, (int64_t)n) && n_logs <= 1 << 20
                && are_finite(m->logs, n_logs) && (m->idf == NULL || are_finite(m->idf, n)));
    m->n_logs = (uint32_t)n_logs;
    for (uint64_t i = 0; !r->failed && i < n; i++) {
        uint32_t size = index_at(&m->terms.sizes, i);
        if (size > m->longest) m->longest = size;
    }
}

static void read_columns(reader *r, model *m, uint64_t n_rows) {
    uint64_t n = m->n_features, all = n + m->has_intercept;
    m->low = take_some(r, F32, n);
    m->high = take_some(r, F32, n);
    m->scale = take_some(r, F32, n);
    m->rows = take_some(r, U32, all);
    need(r, (m->low == NULL) == (m->high == NULL) && (m->rows != NULL || n_rows == all));
    for (uint64_t i = 0; !r->failed && m->low != NULL && i < n; i++) need(r, m->low[i] <= m->high[i]);
    for (uint64_t i = 0; !r->failed && m->scale != NULL && i < n; i++) need(r, m->scale[i] > 0.0f);
    for (uint64_t i = 0; !r->failed && m->rows != NULL && i < all; i++) need(r, m->rows[i] < n_rows || m->rows[i] == NONE);
}

static void read_wide(reader *r, model *m, uint32_t form) {
    uint64_t n = m->n_features, all = (n + m->has_intercept) * m->K;
    m->floor = take_some(r, F64, n);
    m->ceiling = take_some(r, F64, n);
    m->centre = take_some(r, F64, n);
    m->unit = take_some(r, F64, n);
    need(r, (m->floor == NULL) == (m->ceiling == NULL) && (m->centre == NULL || m->unit != NULL));
    for (uint64_t i = 0; !r->failed && m->floor != NULL && i < n; i++) need(r, m->floor[i] <= m->ceiling[i]);
    need(r, r->failed || m->centre == NULL || are_finite(m->centre, n));
    for (uint64_t i = 0; !r->failed && m->unit != NULL && i < n; i++) need(r, m->unit[i] > 0.0);
    if (r->failed) return;
    if (form != WIDE_WEIGHTS) {
        read_weights(r, &m->W, n + m->has_intercept, 0, m->K, form, 0);
        return;
    }
    m->wide = take_n(r, F64, all);
    need(r, r->failed || are_finite(m->wide, all));
}

static void read_positions(reader *r, model *m) {
    uint64_t Z = m->n_positions, n;
    m->base = take_n(r, U32, Z);
    m->first = take_n(r, U32, Z + 1);
    m->attribute = take(r, U32, NULL, &n);
    m->value = take_some(r, F32, n);
    m->factor = take_n(r, F32, Z);
    m->position = take_n(r, U32, m->K);
    need(r, !r->failed && rises(m->first, Z + 1, n) && within(m->attribute, n, 0, m->n_attributes)
                && within(m->position, m->K, 0, (int64_t)Z) && are_scores(m->factor, Z, 0)
                && (m->value == NULL || are_scores(m->value, n, 0)));
    for (uint64_t z = 0; !r->failed && z < Z; z++) need(r, m->base[z] <= z);
}

static int read_model(reader *r, structsvm *tagger) {
    /* Kind of model, labels, columns, units of terms, whether to lower case, least and most units of a term, terms,
     * whether there is an intercept, form of weights, attributes, positions, rows of weights, those in full, flags, norm. */
    const uint32_t *head = take_n(r, U32, 16);
    const double *temperature = take_n(r, F64, 1);
    if (r->failed || head[0] != 2) return STRUCTSVM_FILE;
    model *m = tagger->own = calloc(1, sizeof(model));
    if (m == NULL) return STRUCTSVM_MEMORY;
    m->K = head[1], m->reading = head[3], m->is_lower = head[4], m->least = head[5], m->most = head[6];
    m->n_features = head[7], m->has_intercept = head[8], m->n_attributes = head[10], m->n_positions = head[11];
    m->n_full = head[13], m->flags = head[14], m->norm = head[15], m->temperature = *temperature;
    tagger->n_columns = head[2];
    need(r, m->K >= 1 && m->K <= MOST_LABELS && head[2] == 1 && m->reading <= NUMBERS && m->is_lower <= 1
                && m->least >= 1 && m->least <= m->most && m->most <= MOST_NGRAM && m->n_features < INT32_MAX
                && m->has_intercept <= 1 && m->n_attributes >= 1 && m->n_attributes <= MOST_LABELS
                && m->n_positions >= 1 && m->n_positions < INT32_MAX && head[12] < INT32_MAX && m->flags <= 7
                && (m->reading != NUMBERS || (m->flags & IS_WIDE && m->n_features >= 1))
                && m->norm <= 2 && m->temperature >= 0.0 && m->temperature <= 1.7976931348623157e308);
    if (r->failed) return STRUCTSVM_FILE;
    TRY(read_labels(r, tagger, m->K));
    if (m->reading == NUMBERS) tagger->n_numbers = m->n_features;
    else read_terms(r, m);
    if (m->flags & IS_WIDE) {
        if (!r->failed) read_wide(r, m, head[9]);
        return r->failed || r->at != r->size ? STRUCTSVM_FILE : STRUCTSVM_OK;
    }
    if (!r->failed) read_columns(r, m, head[12]);
    if (!r->failed) read_weights(r, &m->W, head[12], 0, m->n_attributes, head[9], 0);
    if (!r->failed) read_positions(r, m);
    return r->failed || r->at != r->size ? STRUCTSVM_FILE : STRUCTSVM_OK;
}

static void release(model *m) {
    room *rooms[] = {&m->letters, &m->bytes, &m->units, &m->keys, &m->entries, &m->sums, &m->scores};
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) free(rooms[i]->data);
    release_weights(&m->W);
}

/* ---- terms ------------------------------------------------------------------------------------------------------ */
/* Keep a number behind n others. */
static int keep(room *r, uint64_t *n, uint64_t number) {
    if ((*n + 1) * sizeof number > r->size) {
        uint64_t size = r->size == 0 ? 1024 : 2 * r->size;
        void *data = size > MOST_ROOM ? NULL : realloc(r->data, (size_t)size);
        if (data == NULL) return size > MOST_ROOM ? STRUCTSVM_SIZE : STRUCTSVM_MEMORY;
        r->data = data, r->size = size;
    }
    ((uint64_t *)r->data)[(*n)++] = number;
    return STRUCTSVM_OK;
}

/* Keep the features of the terms of n units, each a pair of places in the bytes, that have `size` units. */
static int keep_terms(model *m, const uint32_t *units, uint64_t n, uint64_t size) {
    const uint8_t *bytes = m->bytes.data;
    for (uint64_t i = 0; i + size <= n; i++) {
        uint32_t first = units[2 * i], length = units[2 * (i + size) - 1] - first;
        uint32_t term = length > m->longest ? NONE : string_in(&m->terms, bytes + first, length);
        TRY(term == NONE ? 0 : keep(&m->keys, &m->n_keys, m->ids[term]));
    }
    return STRUCTSVM_OK;
}

/* As keep_terms, of all sizes. `is_padded`: units are a word's, which is a term once if it is no longer than that. */
static int keep_ngrams(model *m, const uint32_t *units, uint64_t n, int is_padded) {
    for (uint64_t size = m->least; size <= m->most && (is_padded || size <= n); size++) {
        TRY(keep_terms(m, units, n, size < n ? size : n));
        if (size >= n) break;
    }
    return STRUCTSVM_OK;
}

static int is_space(const model *m, uint32_t c) { return (properties_of(&m->abc, c) & SPACE) != 0; }

/* Words, by single blanks: in Python's patterns a letter of a word is a letter, a number or "_". */
static int keep_words(model *m, const uint32_t *x, uint64_t n) {
    uint8_t *to = m->bytes.data;
    uint32_t *units = m->units.data, size = 0;
    uint64_t found = 0, length;
    for (uint64_t i = 0; i < n; i += length + (length == 0)) {
        for (length = 0; i + length < n; length++) {
            uint32_t c = x[i + length];
            if (m->reading == BLANKS ? is_space(m, c) : c != '_' && !(properties_of(&m->abc, c) & ALNUM)) break;
        }
        if (length < (m->reading == WORDS ? 2u : 1u)) continue;
        units[2 * found] = size;
        for (uint64_t k = 0; k < length; k++) size += encoded(x[i + k], to + size);
        units[2 * found + 1] = size;
        if (string_in(&m->stops, to + units[2 * found], size - units[2 * found]) != NONE) size = units[2 * found];
        else found++, to[size++] = ' ';
    }
    return keep_ngrams(m, units, found, 0);
}

/* Letters, of several blanks one after the other a single one. */
static int keep_letters(model *m, const uint32_t *x, uint64_t n) {
    uint32_t *units = m->units.data, size = 0;
    uint64_t found = 0;
    for (uint64_t i = 0, length; i < n; i += length) {
        for (length = 0; i + length < n && is_space(m, x[i + length]);) length++;
        units[2 * found] = size;
        size += encoded(length > 1 ? ' ' : x[i], (uint8_t *)m->bytes.data + size);
        units[2 * found++ + 1] = size;
        length += length == 0;
    }
    return keep_ngrams(m, units, found, 0);
}

/* Letters of words, each between two blanks. */
static int keep_letters_of_words(model *m, const uint32_t *x, uint64_t n) {
    uint8_t *to = m->bytes.data;
    uint32_t *units = m->units.data;
    for (uint64_t i = 0, length; i < n; i += length) {
        for (length = 0; i + length < n && !is_space(m, x[i + length]);) length++;
        uint32_t size = 0;
        for (uint64_t k = 0; length > 0 && k < length + 2; k++) {
            units[2 * k] = size;
            size += encoded(k == 0 || k == length + 1 ? ' ' : x[i + k - 1], to + size);
            units[2 * k + 1] = size;
        }
        TRY(length == 0 ? STRUCTSVM_OK : keep_ngrams(m, units, length + 2, 1));
        length += length == 0;
    }
    return STRUCTSVM_OK;
}

static int read_text(model *m, const structsvm_text *text) {
    const uint8_t *bytes = (const uint8_t *)(text->size == 0 ? "" : text->data);
    if (text->size > MOST_BYTES) return STRUCTSVM_INPUT;
    GROW(m->letters, 3 * ((uint64_t)text->size + 1) * sizeof(uint32_t));
    uint32_t *x = m->letters.data;
    int64_t given = decoded(bytes, text->size, x), n = given;
    if (given < 0) return STRUCTSVM_UTF8;
    if (m->is_lower) n = lowered(&m->abc, x, given, x + given), x += given;
    GROW(m->bytes, 5 * (uint64_t)n + 8);
    GROW(m->units, 2 * ((uint64_t)n + 2) * sizeof(uint32_t));
    m->n_keys = 0;
    if (m->reading == LETTERS) return keep_letters(m, x, (uint64_t)n);
    return m->reading < LETTERS ? keep_words(m, x, (uint64_t)n) : keep_letters_of_words(m, x, (uint64_t)n);
}

/* ---- values ----------------------------------------------------------------------------------------------------- */
static double rounded(const model *m, double x) { return m->flags & IS_NARROW ? (double)(float)x : x; }

/* The value of a count, as Python has it: logarithms of small ones are in the model. */
static double value_of(const model *m, uint32_t id, uint64_t count) {
    double x = m->flags & IS_BINARY ? 1.0 : (double)count;
    if (m->n_logs > 0) x = x <= m->n_logs ? m->logs[(uint32_t)x - 1] : rounded(m, rounded(m, log(x)) + 1.0);
    return m->idf == NULL ? x : rounded(m, x * m->idf[id]);
}

/* Divide values by their norm. */
static void normalise(const model *m, entry *entries, uint64_t n) {
    double sum = 0.0;
    for (uint64_t i = 0; i < n; i++)
        sum += m->norm == 1 ? fabs(entries[i].value) : rounded(m, entries[i].value * entries[i].value);
    if (m->norm == 2) sum = sqrt(sum);
    for (uint64_t i = 0; sum > 0.0 && i < n; i++) entries[i].value = rounded(m, entries[i].value / sum);
}

/* The number that a value is for the weights. */
static float number_of(const model *m, const entry *e) {
    float x = (float)e->value;
    if (m->low != NULL) {
        x = x < m->low[e->id] ? m->low[e->id] : x;
        x = x > m->high[e->id] ? m->high[e->id] : x;
    }
    return m->scale == NULL ? x : x / m->scale[e->id];
}

/* Values of the features that were kept: how many. */
static int64_t count(model *m) {
    uint64_t *keys = m->keys.data, n = 0;
    GROW(m->entries, (m->n_keys + 1) * sizeof(entry));
    entry *entries = m->entries.data;
    sort(keys, m->n_keys);
    for (uint64_t i = 0, end; i < m->n_keys; i = end) {
        for (end = i; end < m->n_keys && keys[end] == keys[i];) end++;
        entries[n].id = (uint32_t)keys[i];
        entries[n++].value = value_of(m, (uint32_t)keys[i], end - i);
    }
    if (m->norm > 0) normalise(m, entries, n);
    return (int64_t)n;
}

/* A value of a wide model. */
static double scaled(const model *m, uint32_t id, double x) {
    if (m->floor != NULL) {
        x = x < m->floor[id] ? m->floor[id] : x;
        x = x > m->ceiling[id] ? m->ceiling[id] : x;
    }
    if (m->centre != NULL) return (x - m->centre[id]) * m->unit[id];
    return m->unit == NULL ? x : x / m->unit[id];
}

/* Values of a row of numbers: how many. */
static int64_t read_numbers(model *m, const structsvm_text *row) {
    if (row->size != (uint64_t)m->n_features * sizeof(double)) return STRUCTSVM_INPUT;
    GROW(m->entries, (uint64_t)m->n_features * sizeof(entry));
    entry *entries = m->entries.data;
    for (uint32_t i = 0; i < m->n_features; i++) {
        memcpy(&entries[i].value, row->data + (uint64_t)i * sizeof(double), sizeof(double));
        if (!are_finite(&entries[i].value, 1)) return STRUCTSVM_INPUT;
        entries[i].id = i;
    }
    return m->n_features;
}

/* ---- scores ----------------------------------------------------------------------------------------------------- */
/* scores += x times a row of weights. */
static void add_wide(const model *m, uint32_t row, double x, double *scores, float *spare) {
    if (m->wide != NULL) {
        const double *its = m->wide + (uint64_t)row * m->K;
        for (uint32_t y = 0; y < m->K; y++) scores[y] += x * its[y];
        return;
    }
    memset(spare, 0, m->K * sizeof *spare);
    add_row(&m->W, row, 1.0f, 1.0f, spare);
    for (uint32_t y = 0; y < m->K; y++) scores[y] += x * spare[y];
}

/* Scores of the labels of n values, by a wide model. */
static int score_wide(model *m, uint64_t n, double *scores) {
    const entry *entries = m->entries.data;
    GROW(m->sums, m->K * sizeof(float));
    for (uint32_t y = 0; y < m->K; y++) scores[y] = 0.0;
    for (uint64_t i = 0; i < n; i++)
        add_wide(m, entries[i].id, scaled(m, entries[i].id, entries[i].value), scores, m->sums.data);
    if (m->has_intercept) add_wide(m, m->n_features, 1.0, scores, m->sums.data);
    return are_finite(scores, m->K) ? STRUCTSVM_OK : STRUCTSVM_NOTHING;
}

/* sums += x times a row of weights. */
static void add_feature(const model *m, uint32_t row, float x, float *sums, float *spare) {
    if (row < m->n_full) {
        add_row(&m->W, row, x, 1.0f, sums);
        return;
    }
    memset(spare, 0, m->n_attributes * sizeof *spare);
    add_row(&m->W, row, 1.0f, 1.0f, spare);
    for (uint32_t a = 0; a < m->n_attributes; a++) sums[a] += x * spare[a];
}

/* Scores of the labels of a document. */
static int score(model *m, const structsvm_text *text, double *scores) {
    int failed = m->reading == NUMBERS ? STRUCTSVM_OK : read_text(m, text);
    int64_t n = failed < 0 ? failed : m->reading == NUMBERS ? read_numbers(m, text) : count(m);
    if (n < 0) return (int)n;
    if (m->flags & IS_WIDE) return score_wide(m, (uint64_t)n, scores);
    GROW(m->sums, (2 * (uint64_t)m->n_attributes + m->n_positions + 1) * sizeof(float));
    GROW(m->keys, ((uint64_t)n + 1) * sizeof(uint64_t));
    float *sums = m->sums.data, *spare = sums + m->n_attributes, *s = spare + m->n_attributes;
    uint64_t *keys = m->keys.data, kept = 0;
    const entry *entries = m->entries.data;
    for (uint64_t i = 0; i < (uint64_t)n + m->has_intercept; i++) {
        uint32_t id = i < (uint64_t)n ? entries[i].id : m->n_features, row = m->rows == NULL ? id : m->rows[id];
        if (row != NONE) keys[kept++] = (uint64_t)row << 32 | i;
    }
    if (m->rows != NULL) sort(keys, kept);
    memset(sums, 0, m->n_attributes * sizeof *sums);
    for (uint64_t k = 0; k < kept; k++) {
        uint32_t i = (uint32_t)keys[k];
        add_feature(m, (uint32_t)(keys[k] >> 32), i < (uint64_t)n ? number_of(m, entries + i) : 1.0f, sums, spare);
    }
    s[0] = 0.0f;
    for (uint32_t z = 0; z < m->n_positions; z++) {
        float total = s[m->base[z]];
        for (uint32_t e = m->first[z]; e < m->first[z + 1]; e++)
            total += m->value == NULL ? sums[m->attribute[e]] : m->value[e] * sums[m->attribute[e]];
        s[z + 1] = total;
    }
    for (uint32_t y = 0; y < m->K; y++) scores[y] = (double)m->factor[m->position[y]] * s[m->position[y] + 1];
    return STRUCTSVM_OK;
}

int structsvm_predict(structsvm *tagger, const structsvm_text *texts, const uint32_t *starts, uint32_t n_tokens,
                      uint32_t *labels) {
    model *m = tagger->own;
    (void)starts;
    GROW(m->scores, m->K * sizeof(double));
    double *scores = m->scores.data;
    for (uint32_t t = 0; t < n_tokens; t++) {
        int failed = score(m, texts + t, scores);
        double best = -INFINITY;
        if (failed < 0) return failed;
        labels[t] = 0;
        for (uint32_t y = 0; y < m->K; y++)
            if (scores[y] > best) best = scores[y], labels[t] = y;
    }
    return STRUCTSVM_OK;
}

/* Whether label a stands before label b. */
static int is_better(const double *scores, uint32_t a, uint32_t b) {
    return scores[a] > scores[b] || (!(scores[a] < scores[b]) && a < b);
}

/* Put a label into a heap of n, the worst first, from item i down. */
static void sink(const double *scores, uint32_t *heap, uint32_t i, uint32_t n, uint32_t label) {
    for (uint32_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && is_better(scores, heap[child], heap[child + 1])) child++;
        if (!is_better(scores, label, heap[child])) break;
        heap[i] = heap[child];
    }
    heap[i] = label;
}

int structsvm_kbest(structsvm *tagger, const structsvm_text *texts, const uint32_t *starts, uint32_t n_tokens, uint32_t k,
                    uint32_t *labels, double *best) {
    model *m = tagger->own;
    (void)starts;
    if (k == 0 || n_tokens != 1) return STRUCTSVM_INPUT;
    GROW(m->scores, m->K * sizeof(double));
    double *scores = m->scores.data;
    TRY(score(m, texts, scores));
    uint32_t n = k < m->K ? k : m->K;
    for (uint32_t y = 0; y < n; y++) labels[y] = y;
    for (uint32_t i = n / 2; i-- > 0;) sink(scores, labels, i, n, labels[i]);
    for (uint32_t y = n; y < m->K; y++)
        if (is_better(scores, y, labels[0])) sink(scores, labels, 0, n, y);
    for (uint32_t end = n; end-- > 1;) {
        uint32_t last = labels[end];
        labels[end] = labels[0];
        sink(scores, labels, 0, end, last);
    }
    for (uint32_t i = 0; i < n; i++) best[i] = scores[labels[i]];
    return (int)n;
}

int structsvm_probability(structsvm *tagger, const structsvm_text *texts, const uint32_t *starts, uint32_t n_tokens,
                          float *probabilities) {
    model *m = tagger->own;
    (void)starts;
    if (m->temperature == 0.0) return STRUCTSVM_MARGINS;
    GROW(m->scores, m->K * sizeof(double));
    double *scores = m->scores.data;
    for (uint32_t t = 0; t < n_tokens; t++) {
        double top = -INFINITY, sum = 0.0;
        TRY(score(m, texts + t, scores));
        for (uint32_t y = 0; y < m->K; y++) top = scores[y] > top ? scores[y] : top;
        for (uint32_t y = 0; y < m->K; y++) sum += scores[y] = exp((scores[y] - top) / m->temperature);
        if (!(sum > 0.0 && sum <= 1.7976931348623157e308)) return STRUCTSVM_NOTHING;
        for (uint32_t y = 0; y < m->K; y++) probabilities[(uint64_t)t * m->K + y] = (float)(scores[y] / sum);
    }
    return STRUCTSVM_OK;
}
