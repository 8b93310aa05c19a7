/* Tokens of sequences, by templates or attributes, as scores of labels: what structures of sequences share. */
enum { MOST_ITEMS = 1024, MOST_MARGIN = 200, SHORT = 24, REMEMBERED = 1 << 19 };

/* Numbers of pairs of codes. The two are one number of so many bits, the second below the first, which is permuted: its
 * first bits are the pair's bucket, and the rest is stored. */
typedef struct { uint32_t second_bits, bits, rest_bits, n; indices buckets, rests; } joint;

typedef struct {
    uint32_t arity, n, n_words, is_run; /* features; words of `known`; whether features follow one another */
    const uint32_t *known, *before;     /* for arity 1: a bit per code, and bits before each word */
    indices ids;                        /* (n), or the first of a run */
    joint *joints;                      /* (arity - 1): of the first two codes, of their number and the third, ... */
} space;

/* A word, or a value of a place, of SHORT bytes at most, and its codes in the sources of its column. */
typedef struct { uint32_t owner, size; uint8_t text[SHORT]; int32_t codes[]; } remembered;  /* 1 + the first; 0: none */

/* Templates: of tokens, or of pairs of labels. Words met last are remembered by their hashes, in REMEMBERED bytes. */
typedef struct {
    uint32_t n_sources, left, right, n_templates, n_spaces, of_pairs;
    const uint32_t *sources;            /* (n_sources, 2): function, column; columns from n_columns on are places' */
    const int32_t *outside;             /* (n_sources, left + right): codes of places outside a sequence */
    const uint32_t *starts, *of;        /* (n_templates + 1), (n_templates): items and space of each */
    const int32_t *items;               /* (items, 2): source, offset */
    strings *vocabularies;              /* (n_sources) */
    space *spaces;
    joint *joints;                      /* all spaces' */
    uint8_t *words;                     /* (n_words + 1, word_size); the last one for those that are too long */
    uint32_t n_words, word_size;
} templates;

/* The features of tokens, and where their scores go. */
typedef struct {
    uint32_t K, stride, n_features, n_pairs, n_columns;
    const structsvm *tagger;
    weights W;                          /* a row per feature of tokens, then what a structure has */
    strings names;                      /* attributes' */
    indices name_ids;                   /* (names) */
    const uint32_t *paired;             /* (n_pairs), ascending: features that pairs of labels have, too */
    uint32_t n_places;
    const uint32_t *places;             /* (n_places, 2): function, column */
    alphabet abc;
    templates sets[2];
    room E, codes, ids, keys, pair_starts, pair_ids, pair_values, letters, text, marks, place_codes, heads;
} tokens;

static uint32_t bits_of(uint32_t x) {
    x -= x >> 1 & 0x55555555u;
    x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
    return ((x + (x >> 4)) & 0x0F0F0F0Fu) * 0x01010101u >> 24;
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
static int read_templates(reader *r, templates *s, const tokens *m, uint32_t n_features) {
    const uint32_t *head = take_n(r, U32, 6);
    if (r->failed) return STRUCTSVM_FILE;
    memcpy(s, head, 6 * sizeof *head);  /* the first members */
    need(r, s->n_sources <= MOST_ITEMS * 16 && s->n_templates <= MOST_ITEMS && s->n_spaces <= s->n_templates
                && s->left <= MOST_MARGIN && s->right <= MOST_MARGIN && s->of_pairs <= 1);
    if (r->failed) return STRUCTSVM_FILE;
    uint64_t margin = s->left + s->right, n_items;
    s->sources = take_n(r, U32, 2 * (uint64_t)s->n_sources), s->outside = take_n(r, U32, s->n_sources * margin);
    s->starts = take_n(r, U32, (uint64_t)s->n_templates + 1), s->of = take_n(r, U32, s->n_templates);
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
    s->vocabularies = zeros(r, s->n_sources, sizeof(strings)), s->spaces = zeros(r, s->n_spaces, sizeof(space));
    s->word_size = (uint32_t)(sizeof(remembered) + s->n_sources * sizeof(int32_t));
    for (s->n_words = 1; 2 * s->n_words * s->word_size <= REMEMBERED;) s->n_words *= 2;
    s->words = zeros(r, s->n_sources > 0 ? s->n_words + 1 : 0, s->word_size);
    joint *joints = s->joints = zeros(r, n_joints, sizeof(joint));
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
static int are_sound(const tokens *m) {
    return m->K >= 1 && m->K <= MOST_LABELS && m->n_places <= 1024 && m->n_columns <= 65536 && m->n_features < INT32_MAX
           && m->n_pairs < INT32_MAX;
}

/* Names of attributes with their features; or columns under templates, of pairs of labels in the second set. */
static int read_tokens(reader *r, structsvm *tagger, tokens *m) {
    m->tagger = tagger, tagger->n_columns = m->n_columns;
    if (m->n_columns > 0) {
        m->places = take_n(r, U32, 2 * (uint64_t)m->n_places);
        for (uint32_t i = 0; !r->failed && i < m->n_places; i++)
            need(r, m->places[2 * i] < 9 && m->places[2 * i + 1] < m->n_columns);
        read_alphabet(r, &m->abc);
        for (int i = 0; i < 2 && !r->failed; i++) TRY(read_templates(r, m->sets + i, m, i == 0 ? m->n_features : m->n_pairs));
        return STRUCTSVM_OK;
    }
    read_strings(r, &m->names);
    need(r, take_indices(r, &m->name_ids, m->n_features) == m->names.n);
    m->paired = take_n(r, U32, m->n_pairs);
    need(r, !r->failed && within(m->paired, m->n_pairs, 0, m->n_features));
    for (uint32_t i = 1; !r->failed && i < m->n_pairs; i++) need(r, m->paired[i - 1] < m->paired[i]);
    if (r->version < 6 || r->failed) return STRUCTSVM_OK;
    tagger->n_required = read_texts(r, &tagger->required);
    const structsvm_text *x = tagger->required;
    need(r, tagger->n_required <= MOST_REQUIRED);
    for (uint32_t i = 1; i < tagger->n_required; i++, x++)   /* shorter ones first, one behind the other */
        need(r, x->size + (memcmp(x->data, x[1].data, x[1].size) >= 0) <= x[1].size);
    return STRUCTSVM_OK;
}
static void release_tokens(tokens *m) {
    room *rooms[] = {&m->E, &m->codes, &m->ids, &m->keys, &m->pair_starts, &m->pair_ids, &m->pair_values, &m->letters,
                     &m->text, &m->marks, &m->place_codes, &m->heads};
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) free(rooms[i]->data);
    for (templates *s = m->sets; s < m->sets + 2; s++) free(s->vocabularies), free(s->spaces), free(s->joints), free(s->words);
    release_weights(&m->W);
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

static int is_of(const tokens *m, uint32_t letter, uint32_t flags) { return (properties_of(&m->abc, letter) & flags) != 0; }
/* Combining characters belong to the one before them. */
static void set_marks(const tokens *m, word *w) {
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
    uint32_t sizes[] = {0, 0};
    uint8_t ignored[4];
    for (int64_t i = 0; i < last; i++) sizes[i >= first] += encoded(w->letters[i], ignored);
    return (slice){w->text.data + sizes[0], sizes[1]};
}
/* The word without marks at its ends, a word of marks alone as it is, in lower case: letters at `out`. */
static int64_t bare(const tokens *m, const word *w, uint32_t *out) {
    int64_t first = w->opening, last = w->n - w->closing;
    if (last <= first) first = 0, last = w->n;
    return lowered(&m->abc, w->letters + first, last - first, out);
}
static slice pattern_of(const tokens *m, const word *w, uint32_t *spare, uint8_t *to) {
    int64_t n = bare(m, w, spare);
    for (int64_t i = 0; i < n; i++)
        if (properties_of(&m->abc, spare[i]) & DECIMAL) spare[i] = '0';
    return written(spare, n, to);
}
static slice vowels_of(const tokens *m, const word *w, uint32_t *spare) {
    int64_t n = bare(m, w, spare);
    if (n == 0 || !(properties_of(&m->abc, spare[0]) & BASE_ALPHA)) return none;
    uint32_t found = properties_of(&m->abc, spare[0]) & MORE_VOWELS;
    for (int64_t i = 1; i < n; i++) found |= properties_of(&m->abc, spare[i]) & (BASE_VOWEL | MORE_VOWELS);
    return text_of(found ? "some" : "none");
}
/* Kinds of letters, each run of one kind as one, without combining ones; `counted`: with the length of runs from 2 on. */
static slice shape_of(const tokens *m, const word *w, int counted, uint8_t *to) {
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
static slice digits_of(const tokens *m, const word *w) {
    int some = 0, all = w->n > 0;
    for (int64_t i = 0; i < w->n; i++)
        some |= is_of(m, w->letters[i], DECIMAL), all &= is_of(m, w->letters[i], DIGIT);
    return all ? text_of("all") : some ? text_of("some") : none;
}
static slice capitals_of(const tokens *m, const word *w, uint32_t *spare) {
    int64_t n = lowered(&m->abc, w->letters, w->n, spare);
    if (n == w->n && memcmp(spare, w->letters, (size_t)n * sizeof *spare) == 0) return none;
    int upper = 0, other = 0;
    for (int64_t i = 0; i < w->n; i++)
        upper |= is_of(m, w->letters[i], UPPER), other |= is_of(m, w->letters[i], LOWER | TITLE);
    if (upper && !other && w->n > 1) return text_of("all");
    return text_of(properties_of(&m->abc, w->letters[0]) & UPPER ? "first" : "inside");
}

enum {
    F_X, F_LOWER, F_SHAPE, F_PREFIX1, F_SUFFIX1 = F_PREFIX1 + 6, F_DIGIT = F_SUFFIX1 + 6, F_CAPITAL, F_HYPHEN, F_FORM,
    F_LENGTH, F_OPENING, F_CLOSING, F_PATTERN, F_VOWELS, F_ASCII_LOWER
};

/* A function of a word, written to `to` where it is no part of it; `spare` is room for twice its letters. */
static slice value_of(const tokens *m, uint32_t function, const word *w, uint32_t *spare, uint8_t *to) {
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

static slice slice_of(const structsvm_text *t) { return (slice){(const uint8_t *)(t->size == 0 ? "" : t->data), t->size}; }
/* Decode the text of a token; letters at m->letters, then room for twice as many. */
static int read_word(tokens *m, slice text, word *w) {
    GROW(m->letters, 3 * ((uint64_t)text.size + 1) * sizeof(uint32_t));
    w->text = text, w->letters = m->letters.data;
    w->n = decoded(text.data, text.size, m->letters.data);
    return w->n < 0 ? STRUCTSVM_UTF8 : (set_marks(m, w), STRUCTSVM_OK);
}
/* Bytes that a function writes of a text: a byte becomes a letter of at most four, or the two of a dotted i. */
static uint64_t most_written(uint64_t size) { return 4 * size + 8; }
/* The marks and patterns of a column's tokens; first tokens with each pattern by a table of hashes. */
static int read_places(tokens *m, const structsvm_text *texts, uint32_t column, uint32_t n) {
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
        TRY(read_word(m, slice_of(texts + (uint64_t)t * m->n_columns + column), &w));
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
    static const uint8_t sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 25, 32, 40, 50, 65};
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
        case P_SIZE:
            if ((end = sizes[size] > 9)) v->own[0] = (char)('0' + sizes[size] / 10);
            v->own[end] = (char)('0' + sizes[size] % 10), v->own[end + 1] = 0, v->text = text_of(v->own);
            break;
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
static int read_all_places(tokens *m, const structsvm_text *texts, uint32_t n) {
    GROW(m->place_codes, (uint64_t)m->n_places * n * sizeof(place_value));
    for (uint32_t k = 0; k < m->n_places; k++) {
        uint32_t column = m->places[2 * k + 1];
        if (k == 0 || column != m->places[2 * k - 1]) TRY(read_places(m, texts, column, n));
        place_values(m->places[2 * k], m->marks.data, n, (place_value *)m->place_codes.data + (uint64_t)k * n);
    }
    return STRUCTSVM_OK;
}

/* ---- features of templates -------------------------------------------------------------------------------------- */
/* The codes of a text in sources i .. end - 1, of one column. */
static int read_sources(tokens *m, const templates *s, uint32_t i, uint32_t end, slice text, remembered *to) {
    int is_word = s->sources[2 * i + 1] < m->n_columns;
    word w = {text, NULL, 0, 0, 0};
    to->owner = 0;  /* until all of it is there */
    if (is_word) TRY(read_word(m, text, &w));
    GROW(m->keys, most_written(text.size));
    for (uint32_t k = i; k < end; k++) {
        slice value = value_of(m, s->sources[2 * k], &w, is_word ? (uint32_t *)m->letters.data + w.n : NULL, m->keys.data);
        uint32_t id = value.data == NULL ? NONE : string_in(s->vocabularies + k, value.data, value.size);
        to->codes[k - i] = id == NONE ? -1 : (int32_t)(id + s->left + s->right);
    }
    if (text.size > SHORT) return STRUCTSVM_OK;
    memcpy(to->text, text.data, text.size);
    return to->owner = i + 1, to->size = text.size, STRUCTSVM_OK;
}

/* The codes of each source at each token and outside: rows of left + n + right. */
static int read_codes(tokens *m, const templates *s, const structsvm_text *texts, uint32_t n) {
    uint64_t margin = s->left + s->right, width = n + margin;
    GROW(m->codes, (uint64_t)s->n_sources * width * sizeof(int32_t));
    int32_t *codes = m->codes.data;
    for (uint32_t i = 0; i < s->n_sources; i++) {
        const int32_t *outside = s->outside + i * margin;
        int32_t *row = codes + i * width;
        for (uint32_t d = 0; d < s->left; d++) row[s->left - 1 - d] = outside[d];
        for (uint32_t d = 0; d < s->right; d++) row[s->left + n + d] = outside[s->left + d];
    }
    for (uint32_t i = 0, end = 0, column; i < s->n_sources; i = end) {
        for (column = s->sources[2 * i + 1]; end < s->n_sources && s->sources[2 * end + 1] == column;) end++;
        for (uint32_t t = 0; t < n; t++) {
            slice text = column < m->n_columns
                             ? slice_of(texts + (uint64_t)t * m->n_columns + column)
                             : ((place_value *)m->place_codes.data)[(column - m->n_columns) * (uint64_t)n + t].text;
            uint32_t at = text.size > SHORT ? s->n_words : (hash_of(text.data, text.size) + i) & (s->n_words - 1);
            remembered *w = (void *)(s->words + (uint64_t)at * s->word_size);
            if (w->owner != i + 1 || w->size != text.size || memcmp(w->text, text.data, text.size) != 0)
                TRY(read_sources(m, s, i, end, text, w));
            for (uint32_t k = i; k < end; k++) codes[k * width + s->left + t] = w->codes[k - i];
        }
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
static float *row_of(const tokens *m, uint64_t t) { return (float *)m->E.data + t * m->stride; }
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
static int grow_pairs(tokens *m, uint32_t n, uint64_t most) {
    GROW(m->pair_starts, ((uint64_t)n + 1) * sizeof(uint32_t));
    GROW(m->pair_ids, (most + 1) * sizeof(uint32_t));
    GROW(m->pair_values, (most + 1) * sizeof(float));
    *(uint32_t *)m->pair_starts.data = 0;
    return STRUCTSVM_OK;
}
static int from_columns(tokens *m, const structsvm_text *texts, uint32_t n, float divisor) {
    for (uint64_t i = 0; i < (uint64_t)n * m->n_columns; i++) {
        if (texts[i].size > MOST_BYTES) return STRUCTSVM_INPUT;
        if (decoded(texts[i].data, texts[i].size, NULL) < 0) return STRUCTSVM_UTF8;
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
            if (which == 1) ids = (uint32_t *)m->pair_ids.data + total, values = (float *)m->pair_values.data + total;
            found = merged(keys, found, NULL, ids, values);
            for (uint32_t e = 0; which == 0 && e < found; e++) add_row(&m->W, ids[e], values[e], divisor, row_of(m, t));
            if (which == 1) ((uint32_t *)m->pair_starts.data)[t + 1] = (uint32_t)(total += found);
        }
    }
    return STRUCTSVM_OK;
}
/* The place of a feature among those of pairs, or NONE. */
static uint32_t pair_of(const tokens *m, uint32_t id) {
    uint32_t low = 0, high = m->n_pairs;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (m->paired[middle] < id) low = middle + 1;
        else high = middle;
    }
    return low < m->n_pairs && m->paired[low] == id ? low : NONE;
}
/* Whether a token has a column of attributes: "w:a" is of "w:" and of "w", and so are "w" and "w[0]" of "w". */
static int has_column(const structsvm_text *texts, uint32_t n, const structsvm_text *column) {
    uint32_t size = column->size, is_text = size > 0 && (column->data[size - 1] == ':' || column->data[size - 1] == '=');
    for (uint32_t e = 0, own; e < n; e++) {
        if ((own = texts[e].size & ~STRUCTSVM_NO_TEXT) < size || (size && memcmp(texts[e].data, column->data, size))) continue;
        if (is_text || own == size || texts[e].data[size] == ':' || texts[e].data[size] == '[') return 1;
    }
    return 0;
}
/* Whether each column that all tokens of training had is in one of those that are looked at: as in the package. */
static int has_required(const tokens *m, const structsvm_text *texts, const uint32_t *starts, uint64_t n) {
    for (uint64_t k = 0, t; k < m->tagger->n_required; k++) {
        const structsvm_text *column = m->tagger->required + k;
        for (t = 0; t < n && !has_column(texts + starts[t], starts[t + 1] - starts[t], column);) t += (n + 999) / 1000;
        if (t >= n) return 0;
    }
    return 1;
}
static int from_attributes(tokens *m, const structsvm_text *texts, const uint32_t *starts, uint32_t n, float divisor) {
    uint64_t most = 0, total = 0;
    if (starts == NULL) return STRUCTSVM_INPUT;
    for (uint32_t t = 0; t < n; t++) {
        if (starts[t + 1] < starts[t]) return STRUCTSVM_INPUT;
        if (starts[t + 1] - starts[t] > most) most = starts[t + 1] - starts[t];
    }
    if (!has_required(m, texts, starts, n)) return STRUCTSVM_COLUMNS;
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
            uint32_t size = text->size & ~STRUCTSVM_NO_TEXT;
            if (size > MOST_BYTES || !are_scores(&text->value, 1, 0)) return STRUCTSVM_INPUT;
            if (decoded(text->data, size, NULL) < 0) return STRUCTSVM_UTF8;
            uint32_t name = string_in(&m->names, (const uint8_t *)(size == 0 ? "" : text->data), size);
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
static int fill_tokens(tokens *m, const structsvm_text *texts, const uint32_t *starts, uint32_t n, float divisor) {
    GROW(m->E, (uint64_t)n * m->stride * sizeof(float));
    for (uint32_t t = 0; t < n; t++)
        for (uint32_t c = 0; c < m->stride; c++) row_of(m, t)[c] = c < m->K ? 0.0f : -INFINITY;
    return m->n_columns > 0 ? from_columns(m, texts, n, divisor) : from_attributes(m, texts, starts, n, divisor);
}
