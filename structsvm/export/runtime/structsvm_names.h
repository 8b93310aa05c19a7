/* Tables of strings, and sorting: what structures with names of features share, behind structsvm_core.h. */
enum { STRINGS = 8 };                   /* strings of which the start of the first is stored */

/* Numbers of 1, 2 or 4 bytes; kind 0: there are none. */
typedef struct { const void *data; uint32_t kind; } indices;

/* Strings in the order of their hashes, each one of a few beginnings and what follows. */
typedef struct {
    uint32_t n, mask;
    indices sizes, buckets, begins;     /* (n) of what follows, (mask + 2) where a hash begins, (n) */
    const uint32_t *block_starts, *begin_starts;
    const uint8_t *bytes, *begin_bytes;
} strings;

static uint32_t index_at(const indices *x, uint64_t i) {
    if (x->kind == U8) return ((const uint8_t *)x->data)[i];
    return x->kind == U16 ? ((const uint16_t *)x->data)[i] : ((const uint32_t *)x->data)[i];
}

/* The next array, of numbers below `limit`: how many. */
static uint64_t take_indices(reader *r, indices *x, uint64_t limit) {
    uint64_t n;
    if (r->size - r->at >= 16) memcpy(&x->kind, r->bytes + r->at, sizeof x->kind);
    need(r, x->kind == U8 || x->kind == U16 || x->kind == U32);
    x->data = r->failed ? NULL : take(r, x->kind, NULL, &n);
    for (uint64_t i = 0; !r->failed && i < n; i++) need(r, index_at(x, i) < limit);
    return r->failed ? 0 : n;
}

/* Where items begin, n in all, by the last bits of their hashes: the mask of these bits. */
static uint32_t take_buckets(reader *r, indices *x, uint64_t n) {
    uint64_t n_buckets = take_indices(r, x, n + 1);
    need(r, n_buckets >= 2 && n_buckets <= INT32_MAX && ((n_buckets - 2) & (n_buckets - 1)) == 0);
    need(r, !r->failed && index_at(x, 0) == 0 && index_at(x, n_buckets - 1) == n);
    for (uint64_t i = 1; !r->failed && i < n_buckets; i++) need(r, index_at(x, i - 1) <= index_at(x, i));
    return (uint32_t)n_buckets - 2;
}

static void read_strings(reader *r, strings *s) {
    uint64_t n = take_indices(r, &s->sizes, NONE), n_bytes, n_begins, of_begins, total = 0;
    need(r, n <= INT32_MAX);
    s->n = (uint32_t)n;
    s->block_starts = take_n(r, U32, (n + STRINGS - 1) / STRINGS);
    s->mask = take_buckets(r, &s->buckets, n);
    s->bytes = take(r, U8, NULL, &n_bytes);
    s->begin_starts = take(r, U32, NULL, &n_begins);
    s->begin_bytes = take(r, U8, NULL, &of_begins);
    need(r, !r->failed && n_begins >= 2 && rises(s->begin_starts, n_begins, of_begins));
    if (n_begins > 2) need(r, take_indices(r, &s->begins, n_begins - 1) == n);
    for (uint64_t i = 0; !r->failed && i < n; total += index_at(&s->sizes, i++))
        need(r, i % STRINGS != 0 || s->block_starts[i / STRINGS] == total);
    need(r, total == n_bytes);
}

static uint32_t hash_of(const uint8_t *bytes, uint32_t size) {
    uint32_t h = 2166136261u;
    for (uint32_t i = 0; i < size; i++) h = (h ^ bytes[i]) * 16777619u;
    return h ^ h >> 15;
}

/* The index of a string, or NONE. */
static uint32_t string_in(const strings *s, const uint8_t *bytes, uint32_t size) {
    uint32_t b = hash_of(bytes, size) & s->mask, i = index_at(&s->buckets, b), end = index_at(&s->buckets, b + 1);
    if (i == end) return NONE;
    const uint8_t *own = s->bytes + s->block_starts[i / STRINGS];
    for (uint32_t k = i / STRINGS * STRINGS; k < i; k++) own += index_at(&s->sizes, k);
    for (uint32_t n; i < end; i++, own += n) {
        uint32_t begin = s->begins.kind == 0 ? 0 : index_at(&s->begins, i), first = s->begin_starts[begin];
        uint32_t more = s->begin_starts[begin + 1] - first;
        n = index_at(&s->sizes, i);
        if (size - more == n && size >= more && memcmp(s->begin_bytes + first, bytes, more) == 0
            && memcmp(own, bytes + more, n) == 0) return i;
    }
    return NONE;
}

/* ---- sorting ---------------------------------------------------------------------------------------------------- */
/* Insert each number among those at a distance from it; distances fall to 1. Fastest for the few keys of a token. */
static void sort(uint64_t *x, uint64_t n) {
    uint64_t gap = 1;
    while (gap < n / 3) gap = 3 * gap + 1;
    for (; gap > 0; gap /= 3)
        for (uint64_t i = gap, j; i < n; i++) {
            uint64_t number = x[i];
            for (j = i; j >= gap && x[j - gap] > number; j -= gap) x[j] = x[j - gap];
            x[j] = number;
        }
}
