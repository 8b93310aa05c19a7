/* The runtime of models that structsvm exported: what all structures share. Its five functions are described in
 * structsvm_runtime.h.
 *
 * A model's bytes, all numbers little-endian:
 *
 *     8 bytes   "\x89SVMRUN\n"
 *     uint32    version, 6; 5 has no `required`
 *     uint32    crc32 of all that follows
 *     uint64    size in bytes, of all
 *     arrays    each: uint32 kind of its items, uint32 0, uint64 number of items, the items, zeros up to a multiple of 8
 *
 * The arrays follow one another in the order in which `read_model` takes them. Sums are in float32 and in the order of
 * the package's kernels, so scores are the same, bit for bit: compile with -ffp-contract=off.
 */
#include "structsvm_runtime.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "models are little-endian, and are used where they are: this machine is not"
#endif

enum {
    U8 = 1, U16 = 2, U32 = 4, F32 = 20, F64 = 24,   /* kinds of items; the last four bits are their size */
    MOST_LABELS = 1 << 16, MOST_BYTES = 1 << 24, MOST_REQUIRED = 256
};

/* Floats that are added at once: LANES are whole ones. Functions that read models are not inlined. */
#if defined(__GNUC__)
typedef float floats __attribute__((vector_size(16), aligned(4), may_alias));
#define COLD __attribute__((noinline))
#else
typedef float floats;
#define COLD
#endif

#define MOST_ROOM ((uint64_t)1 << 31)
#define NONE UINT32_MAX

/* Values: one of these; integers are times a power of 2, their unit. */
typedef struct { const float *floats; const int8_t *bytes; const int16_t *shorts; } values;

/* Numbers of 1, 2 or 4 bytes; kind 0: there are none. */
typedef struct { const void *data; uint32_t kind; } indices;

/* Where a row's weights begin, how many there are, and their unit. */
typedef struct { uint32_t start, size; float unit; } extent;

/* Rows of weights, one per feature: sparse ones; of `full_size` weights or more dense ones, of `stride` floats each. */
typedef struct {
    uint32_t K, full_size, stride;
    extent *extents;                    /* (rows); a dense row starts at that one of `full`; NULL: all rows are there */
    indices columns;
    values v;
    const float *full;
    float *made;                        /* the same, if it is allocated */
} weights;

/* Properties of letters: (n_pages), and of these (pages met, 128) kinds; of each kind flags, and what lower case adds. */
typedef struct {
    uint32_t n_pages;
    const uint16_t *pages;
    const uint8_t *kinds;
    const uint32_t *properties; const int32_t *lower;
} alphabet;

typedef struct { void *data; uint64_t size; } room;

/* ---- rooms ------------------------------------------------------------------------------------------------------ */
static int grow(room *r, uint64_t size) {
    if (size <= r->size && r->data != NULL) return STRUCTSVM_OK;
    if (size > MOST_ROOM) return STRUCTSVM_SIZE;
    void *data = malloc(size > 0 ? (size_t)size : 1);
    if (data == NULL) return STRUCTSVM_MEMORY;
    free(r->data);
    r->data = data;
    r->size = size;
    return STRUCTSVM_OK;
}

/* Return an error to the caller. */
#define TRY(call) do { int failed_ = (call); if (failed_ < 0) return failed_; } while (0)
#define GROW(r, size) TRY(grow(&(r), (size)))

/* ---- reading ---------------------------------------------------------------------------------------------------- */
typedef struct { const uint8_t *bytes; uint64_t size, at; int failed, is_full; uint32_t version; } reader; /* no memory is left */

/* 256 numbers for each k: what a byte does to a checksum k bytes later. */
static void crc_tables(uint32_t *table) {
    for (uint32_t i = 0; i < 256; i++) table[i] = i;
    for (uint32_t i = 0; i < 8 * 256; i++) table[i / 8] = table[i / 8] >> 1 ^ (table[i / 8] & 1 ? 0xEDB88320u : 0);
    for (uint32_t i = 256; i < 8 * 256; i++) table[i] = table[i - 256] >> 8 ^ table[table[i - 256] & 255];
}
static uint32_t crc32_of(const uint32_t *table, const uint8_t *bytes, uint64_t n) {
    uint32_t crc = NONE;
    for (uint64_t x; n >= 8; n -= 8, bytes += 8) {
        memcpy(&x, bytes, 8);
        x ^= crc, crc = 0;
        for (uint32_t k = 0; k < 8; k++) crc ^= table[256 * (7 - k) + (x >> 8 * k & 255)];
    }
    for (; n > 0; n--) crc = crc >> 8 ^ table[(crc ^ *bytes++) & 255];
    return ~crc;
}
static void need(reader *r, int holds) { r->failed |= !holds; }
/* The next array, of `wanted` items or, if that is NULL, of any number, which goes to *n. NULL for none: see `failed`. */
COLD static const void *take(reader *r, uint32_t kind, const uint64_t *wanted, uint64_t *n) {
    const uint32_t *head = (const void *)(r->bytes + r->at);
    uint64_t left = r->size - r->at, count = 0, size = 0;
    need(r, left >= 16 && head[0] == kind && head[1] == 0);
    if (!r->failed) count = head[2] | (uint64_t)head[3] << 32, left -= 16;
    need(r, count <= left / (kind & 15) && (wanted == NULL || count == *wanted));
    if (!r->failed) size = (count * (kind & 15) + 7) / 8 * 8;
    need(r, size <= left);
    if (n != NULL) *n = r->failed ? 0 : count;
    if (r->failed) return NULL;
    r->at += 16 + size;
    return head + 4;
}
COLD static const void *take_n(reader *r, uint32_t kind, uint64_t n) { return take(r, kind, &n, NULL); }
/* The checks of arrays fail for one that is not there, NULL. Whether n numbers rise from 0 to the last: */
COLD static int rises(const uint32_t *x, uint64_t n, uint64_t last) {
    if (x == NULL || n == 0 || x[0] != 0 || x[n - 1] != last) return 0;
    for (uint64_t i = 1; i < n; i++)
        if (x[i] < x[i - 1]) return 0;
    return 1;
}

/* Whether n numbers of 32 bits, with their signs, are from `least` on and below `limit`. */
COLD static int within(const void *numbers, uint64_t n, int64_t least, int64_t limit) {
    const int32_t *x = numbers;
    for (uint64_t i = 0; x != NULL && i < n; i++)
        if (x[i] < least || x[i] >= limit) return 0;
    return x != NULL;
}

/* Whether numbers are finite, or -inf where `excluded` is set. */
COLD static int are_scores(const float *x, uint64_t n, int excluded) {
    for (uint64_t i = 0; x != NULL && i < n; i++)
        if (!(x[i] >= -3.402823466e38f && x[i] <= 3.402823466e38f) && !(excluded && x[i] == -INFINITY)) return 0;
    return x != NULL;
}
static void read_values(reader *r, values *v, uint64_t n, uint32_t form) {
    if (form == 2) v->bytes = take_n(r, U8, n);
    else if (form == 3) v->shorts = take_n(r, U16, n);
    else v->floats = take_n(r, F32, n), need(r, are_scores(v->floats, n, 0));
}
static uint32_t index_at(const indices *x, uint64_t i) {
    if (x->kind == U8) return ((const uint8_t *)x->data)[i];
    return x->kind == U16 ? ((const uint16_t *)x->data)[i] : ((const uint32_t *)x->data)[i];
}

/* The next array, of numbers below `limit`: how many. */
COLD static uint64_t take_indices(reader *r, indices *x, uint64_t limit) {
    uint64_t n;
    if (r->size - r->at >= 16) memcpy(&x->kind, r->bytes + r->at, sizeof x->kind);
    need(r, x->kind == U8 || x->kind == U16 || x->kind == U32);
    x->data = r->failed ? NULL : take(r, x->kind, NULL, &n);
    for (uint64_t i = 0; !r->failed && i < n; i++) need(r, index_at(x, i) < limit);
    return r->failed ? 0 : n;
}
static float value_at(const values *v, uint64_t at, float unit) {
    return v->floats != NULL ? v->floats[at] : (float)(v->bytes != NULL ? v->bytes[at] : v->shorts[at]) * unit;
}

/* Zeros: n of `size` bytes; NULL and a failed reader where there is no room. */
COLD static void *zeros(reader *r, uint64_t n, size_t size) {
    void *data = n > MOST_ROOM / size ? NULL : calloc((size_t)n + 1, size);
    need(r, !(r->is_full |= data == NULL));
    return data;
}

/* Forms: 0 dense; 1, 2, 3 sparse rows of float32, int8 or int16. With a `stride` those of the first n_dense that are full
 * to a third are made dense: they are added up several at once. */
static void read_weights(reader *r, weights *w, uint64_t n, uint64_t n_dense, uint32_t K, uint32_t form, uint32_t stride) {
    w->K = K, w->stride = stride, w->full_size = stride > 0 ? (stride + 2) / 3 : NONE;
    need(r, form <= 3);
    if (form == 0) {
        w->full = take_n(r, F32, n * K), w->stride = K, w->full_size = 0;
        need(r, are_scores(w->full, n * K, 0));
        return;
    }
    /* A row's head: the number of its weights in some bits, and above them the exponent, less `base`, of 2, its unit. */
    indices heads = {NULL, 0};
    uint64_t total = 0, many = 0;
    const uint32_t *layout = take_n(r, U32, 2);
    need(r, take_indices(r, &heads, 1 << 16) == n && heads.kind != U32);
    uint64_t n_entries = take_indices(r, &w->columns, K);
    read_values(r, &w->v, n_entries, form);
    need(r, !r->failed && layout[0] <= (heads.kind == U8 ? 8 : 16) && within(layout + 1, 1, -149, 112) && n_entries < NONE);
    if (!r->failed) w->extents = zeros(r, n, sizeof *w->extents);
    for (uint64_t i = 0; !r->failed && i < n; i++) {
        uint32_t head = index_at(&heads, i), size = head & ((1u << layout[0]) - 1);
        int exponent = (int32_t)layout[1] + (int32_t)(head >> layout[0]);
        need(r, exponent <= 111);       /* 2^15 times 2^111 is finite */
        uint64_t bits = (uint64_t)(1023 + (r->failed ? 0 : exponent)) << 52;    /* 2^exponent */
        double unit;
        memcpy(&unit, &bits, sizeof unit);
        w->extents[i] = (extent){(uint32_t)total, size, (float)unit};
        total += size, many += i < n_dense && size >= w->full_size;
    }
    need(r, total == n_entries);
    if (!r->failed) w->full = w->made = zeros(r, many * stride, sizeof *w->made);
    for (uint64_t i = many = 0; !r->failed && i < n_dense; i++) {
        extent *p = w->extents + i;
        if (p->size < w->full_size) continue;
        float *row = w->made + many * stride;
        for (uint32_t k = 0; k < p->size; k++) row[index_at(&w->columns, p->start + k)] = value_at(&w->v, p->start + k, p->unit);
        p->start = (uint32_t)many++;
    }
}
static extent extent_of(const weights *w, uint32_t row) {
    return w->extents != NULL ? w->extents[row] : (extent){row, w->K, 1.0f};
}
static void release_weights(weights *w) { free(w->extents), free(w->made); }
/* Decode UTF-8 as Python's surrogatepass does: the number of letters, or STRUCTSVM_UTF8. `out` may be NULL. */
static int64_t decoded(const void *bytes, uint32_t size, uint32_t *out) {
    const uint8_t *s = bytes;
    int64_t n = 0;
    for (uint32_t i = 0; i < size; n++) {
        uint32_t c = s[i], more = c < 0x80 ? 0 : c < 0xC2 ? 4 : c < 0xE0 ? 1 : c < 0xF0 ? 2 : c < 0xF5 ? 3 : 4;
        if (more == 4 || more >= size - i) return STRUCTSVM_UTF8;
        if (more > 0) c &= 0x3Fu >> more;
        for (uint32_t k = 1; k <= more; k++) {
            if ((s[i + k] & 0xC0) != 0x80) return STRUCTSVM_UTF8;
            c = c << 6 | (s[i + k] & 0x3F);
        }
        if ((more == 2 && c < 0x800) || (more == 3 && (c < 0x10000 || c > 0x10FFFF))) return STRUCTSVM_UTF8;
        if (out != NULL) out[n] = c;
        i += more + 1;
    }
    return n;
}
/* The next texts, in UTF-8 and each with a zero behind it: how many. */
static uint32_t read_texts(reader *r, const structsvm_text **to) {
    uint64_t n, n_bytes;
    const uint32_t *starts = take(r, U32, NULL, &n);
    const char *bytes = take(r, U8, NULL, &n_bytes);
    need(r, rises(starts, n, n_bytes) && n <= INT32_MAX);
    structsvm_text *texts = r->failed ? NULL : zeros(r, n, sizeof *texts);
    *to = texts;
    for (uint64_t i = 0; !r->failed && i + 1 < n; i++) {
        texts[i] = (structsvm_text){bytes + starts[i], starts[i + 1] - starts[i] - 1, 1.0f};
        need(r, texts[i].size < NONE && texts[i].data[texts[i].size] == 0 && decoded(bytes + starts[i], texts[i].size, NULL) >= 0);
    }
    return r->failed ? 0 : (uint32_t)n - 1;
}
static int read_labels(reader *r, structsvm *tagger, uint32_t K) {
    tagger->n_labels = read_texts(r, &tagger->labels);
    return r->failed || tagger->n_labels != K ? STRUCTSVM_FILE : STRUCTSVM_OK;
}
static void read_alphabet(reader *r, alphabet *a) {
    uint64_t n, n_kinds, n_properties;
    a->pages = take(r, U16, NULL, &n);
    a->kinds = take(r, U8, NULL, &n_kinds);
    a->properties = take(r, U32, NULL, &n_properties);
    a->lower = take_n(r, U32, n_properties);
    need(r, n <= 8704 && n_kinds <= 1 << 21 && n_kinds % 128 == 0 && n_properties >= 1 && n_properties <= 1 << 16);
    if (r->failed) return;
    a->n_pages = (uint32_t)n;
    for (uint64_t i = 0; i < n; i++) need(r, a->pages[i] < n_kinds / 128);
    for (uint64_t i = 0; i < n_kinds; i++) need(r, a->kinds[i] < n_properties);
    need(r, within(a->lower, n_properties, -0x110000, 0x110000));
}

/* Behind this part: what a model has, how it is made and read, and how what it has allocated is released. */
typedef struct structsvm_own model;
static int read_model(reader *r, structsvm *tagger);
static void release(model *m);

int structsvm_open(const void *bytes, size_t size, structsvm **tagger) {
    static const uint8_t magic[8] = {0x89, 'S', 'V', 'M', 'R', 'U', 'N', '\n'};
    reader r = {bytes, size, 24, 0, 0, 0};
    uint32_t head[4], table[8 * 256];
    *tagger = NULL;
    if (bytes == NULL || size < 24 || ((uintptr_t)bytes & 7) != 0 || memcmp(bytes, magic, 8) != 0) return STRUCTSVM_FILE;
    memcpy(head, r.bytes + 8, 16);
    crc_tables(table);
    if (head[0] != 5 && head[0] != 6) return head[0] < 1 << 16 ? STRUCTSVM_VERSION : STRUCTSVM_FILE; /* or the other order of bytes */
    if ((head[2] | (uint64_t)head[3] << 32) != size) return STRUCTSVM_FILE;
    if (crc32_of(table, r.bytes + 16, size - 16) != head[1]) return STRUCTSVM_FILE;
    structsvm *made = calloc(1, sizeof(structsvm));
    if (made == NULL) return STRUCTSVM_MEMORY;
    r.version = head[0];
    int failed = read_model(&r, made);
    if (r.is_full) failed = STRUCTSVM_MEMORY;
    if (failed < 0) structsvm_close(made);
    else *tagger = made;
    return failed < 0 ? failed : STRUCTSVM_OK;
}

void structsvm_close(structsvm *tagger) {
    if (tagger == NULL) return;
    if (tagger->own != NULL) release(tagger->own);
    free(tagger->own);
    free((void *)tagger->labels), free((void *)tagger->required);
    free(tagger);
}

/* ---- letters ---------------------------------------------------------------------------------------------------- */
/* Properties of letters, as Python has them. */
enum {
    DIGIT = 1, DECIMAL = 2, ALPHA = 4, ALNUM = 8, UPPER = 16, LOWER = 32, TITLE = 64, CASED = 128, IGNORABLE = 256,
    /* The canonical decomposition begins with a letter, begins with a vowel, has a vowel behind its first. */
    BASE_ALPHA = 512, BASE_VOWEL = 1024, MORE_VOWELS = 2048,
    DOTTED = 4096,  /* its lower case is "i" and U+0307 */
    SPACE = 8192,
    COMBINING = 16384   /* it belongs to the letter before it */
};
#define SIGMA 0x3A3

static uint32_t encoded(uint32_t c, uint8_t *to) {
    uint32_t more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    for (uint32_t k = more; k > 0; k--, c >>= 6) to[k] = (uint8_t)(0x80 | (c & 63));
    to[0] = (uint8_t)(more == 0 ? c : 0xFF00u >> (more + 1) | c);
    return more + 1;
}
static uint32_t kind_of(const alphabet *a, uint32_t c) {
    return c >> 7 < a->n_pages ? a->kinds[(uint32_t)a->pages[c >> 7] * 128 + (c & 127)] : 0;
}
static uint32_t properties_of(const alphabet *a, uint32_t c) { return a->properties[kind_of(a, c)]; }
/* Whether the capital sigma at i of n letters stands at the end of a word. */
static int is_final(const alphabet *a, const uint32_t *x, int64_t n, int64_t i) {
    int64_t j = i - 1;
    while (j >= 0 && properties_of(a, x[j]) & IGNORABLE) j--;
    if (j < 0 || !(properties_of(a, x[j]) & CASED)) return 0;
    for (j = i + 1; j < n && properties_of(a, x[j]) & IGNORABLE; j++) {}
    return j == n || !(properties_of(a, x[j]) & CASED);
}

/* The lower case of n letters, at most 2 n: their number. */
static int64_t lowered(const alphabet *a, const uint32_t *x, int64_t n, uint32_t *out) {
    int64_t made = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t kind = kind_of(a, x[i]), c = x[i] + (uint32_t)a->lower[kind];
        if (x[i] == SIGMA) c = is_final(a, x, n, i) ? 0x3C2 : 0x3C3;
        else if (a->properties[kind] & DOTTED) out[made++] = 'i', c = 0x307;
        out[made++] = c <= 0x10FFFF ? c : x[i];
    }
    return made;
}
