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
