/* Tables of strings, sorting, sums of weights times values: for structures with names of features. */
enum { STRINGS = 8, LANES = 8, WIDE = sizeof(floats) / sizeof(float) };     /* strings from one stored start to the next */

/* Strings in the order of their hashes, each one of a few beginnings and what follows. */
typedef struct {
    uint32_t n, mask;
    indices sizes, buckets, begins;     /* (n) of what follows, (mask + 2) where a hash begins, (n) */
    const uint32_t *block_starts, *begin_starts;
    const uint8_t *bytes, *begin_bytes;
} strings;

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

/* a * b + c, rounded once. The product is exact in float64; a sum that is not is rounded to odd, so that rounding it
 * again gives what rounding the exact sum would. */
static float fused_by_doubles(float a, float b, float c) {
    double p = (double)a * b, z = c, s = p + z, t = s - p, error = (p - (s - t)) + (z - t);
    uint64_t bits;
    memcpy(&bits, &s, sizeof bits);
    bits -= (uint64_t)((error < 0.0) & (s > 0.0)) | (uint64_t)((error > 0.0) & (s < 0.0));
    bits |= (uint64_t)((error < 0.0) | (error > 0.0));
    memcpy(&s, &bits, sizeof bits);
    return (float)s;
}

/* The same: by one instruction, or by a library that is exact for the smallest numbers too and has it where machines do. */
#if defined(FP_FAST_FMAF) || defined(__GLIBC__)
#define HAS_FUSED 1
#else
#define HAS_FUSED 0
#endif
static float fused(float a, float b, float c) { return HAS_FUSED ? fmaf(a, b, c) : fused_by_doubles(a, b, c); }

static void add_full(const float *given, uint32_t n, float value, float divisor, float *to) {
    uint32_t c = 0, whole = value == 1.0f && divisor == 1.0f ? n / LANES * LANES : 0;
    for (; c < whole; c += 2 * WIDE) {
        floats a = *(const floats *)(given + c), b = *(const floats *)(given + c + WIDE);
        *(floats *)(to + c) += a, *(floats *)(to + c + WIDE) += b;
    }
    for (; c < n; c++) to[c] = value == 1.0f ? to[c] + given[c] / divisor : fused(value, given[c] / divisor, to[c]);
}

/* to += value * the weights of a row, divided by the temperature; without a product for 1. */
static void add_row(const weights *w, uint32_t row, float value, float divisor, float *to) {
    int is_plain = value == 1.0f && divisor == 1.0f;
    const uint8_t *columns = is_plain && w->columns.kind == U8 ? w->columns.data : NULL;
    const uint32_t *wide = is_plain && w->columns.kind == U32 ? w->columns.data : NULL;
    const int8_t *bytes = columns != NULL ? w->v.bytes : NULL;
    extent p = extent_of(w, row);
    uint32_t e = p.start, end = e + p.size;
    if (p.size >= w->full_size) add_full(w->full + (uint64_t)e * w->stride, w->stride, value, divisor, to), e = end;
    for (; bytes != NULL && e < end; e++) to[columns[e]] += (float)bytes[e] * p.unit;
    for (; columns != NULL && e < end; e++) to[columns[e]] += value_at(&w->v, e, p.unit);
    for (; wide != NULL && e < end; e++) to[wide[e]] += value_at(&w->v, e, p.unit);
    for (; e < end; e++) {
        float x = value_at(&w->v, e, p.unit), *sum = to + index_at(&w->columns, e);
        *sum = value == 1.0f ? *sum + x / divisor : fused(value, x / divisor, *sum);
    }
}
