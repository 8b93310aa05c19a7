/* Tables of strings, and sorting: what structures with names of features share, behind structsvm_core.h. */
typedef struct {
    uint32_t n, mask;
    const uint32_t *starts, *buckets;   /* (n + 1), (mask + 2): where the strings of a hash begin */
    const uint8_t *bytes;
} strings;

static void read_strings(reader *r, strings *s) {
    uint64_t n, n_buckets, n_bytes;
    s->starts = take(r, U32, NULL, &n);
    s->buckets = take(r, U32, NULL, &n_buckets);
    s->bytes = take(r, U8, NULL, &n_bytes);
    need(r, n > 0 && n <= INT32_MAX && n_buckets >= 2 && n_buckets <= INT32_MAX);
    if (r->failed) return;
    s->n = (uint32_t)n - 1;
    s->mask = (uint32_t)n_buckets - 2;
    need(r, (s->mask & (s->mask + 1)) == 0 && rises(s->starts, n, n_bytes) && rises(s->buckets, n_buckets, s->n));
}

static uint32_t hash_of(const uint8_t *bytes, uint32_t size) {
    uint32_t h = 2166136261u;
    for (uint32_t i = 0; i < size; i++) h = (h ^ bytes[i]) * 16777619u;
    return h ^ h >> 15;
}

/* The index of a string, or NONE. */
static uint32_t string_in(const strings *s, const uint8_t *bytes, uint32_t size) {
    uint32_t b = hash_of(bytes, size) & s->mask;
    for (uint32_t i = s->buckets[b]; i < s->buckets[b + 1]; i++)
        if (s->starts[i + 1] - s->starts[i] == size && memcmp(s->bytes + s->starts[i], bytes, size) == 0) return i;
    return NONE;
}

/* ---- sorting ---------------------------------------------------------------------------------------------------- */
/* Put a number into a heap of n, from item i down. */
static void sift(uint64_t *x, uint64_t i, uint64_t n, uint64_t number) {
    for (uint64_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && x[child + 1] > x[child]) child++;
        if (number >= x[child]) break;
        x[i] = x[child];
    }
    x[i] = number;
}

static void sort(uint64_t *x, uint64_t n) {
    for (uint64_t i = n / 2; i-- > 0;) sift(x, i, n, x[i]);
    for (uint64_t end = n; end-- > 1;) {
        uint64_t last = x[end];
        x[end] = x[0];
        sift(x, 0, end, last);
    }
}
