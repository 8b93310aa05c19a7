/* Mutants of exported models, read and used by the runtime in this process: for sanitizers, which end it at a fault.
 *
 *     runtime_mutants SEED COUNT MODEL...
 *
 * COUNT mutants of each model, which differ from it in items, counts or kinds of arrays, cuts and swaps; most with the
 * checksum that they should have. What is opened labels sequences. Prints how many were opened, and what became of them.
 * A COUNT of 0 reads each model as it is, with its checksum, for sequences of long words in capitals.
 */
#include <stdint.h>
/* Most of a mutant's time goes to its checksum, which reads the bytes given alone. */
#define FAST __attribute__((no_sanitize("address", "undefined")))
FAST static void crc_tables(uint32_t *table);
FAST static uint32_t crc32_of(const uint32_t *table, const uint8_t *bytes, uint64_t n);
#include SOURCE     /* the structure's, whose checksum serves here too */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ARRAYS = 4096, MOST_TOKENS = 9, K_BEST = 3, MOST_NUMBERS = 4096 };

static uint64_t state;

static uint64_t drawn(uint64_t n) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return n == 0 ? 0 : (state * 0x2545F4914F6CDD1Dull >> 11) % n;
}

static size_t arrays_of(const uint8_t *bytes, size_t size, size_t *at) {
    size_t n = 0, place = 24;
    while (place + 16 <= size && n < MOST_ARRAYS) {
        uint32_t kind;
        uint64_t count;
        memcpy(&kind, bytes + place, 4);
        memcpy(&count, bytes + place + 8, 8);
        at[n++] = place;
        place += 16 + (count * (kind & 15) + 7) / 8 * 8;
    }
    return n;
}

/* One more fault; `sound` says where arrays and their items are. */
static void mutate(uint8_t *bytes, const uint8_t *sound, size_t *size, const size_t *at, size_t n_arrays) {
    static const uint32_t special[] = {0, 1, 2, 7, 8, 255, 256, 65535, 65536, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF,
                                       0x7F800000, 0xFF800000, 0x7FC00000, 0x7F7FFFFF};
    /* Half of the faults are in the first arrays, which say how large all others are. */
    size_t place = at[drawn(2) ? drawn(n_arrays < 6 ? n_arrays : 6) : drawn(n_arrays)];
    uint32_t kind, item;
    uint64_t count;
    memcpy(&kind, sound + place, 4);
    memcpy(&count, sound + place + 8, 8);
    size_t width = kind & 15, where = place + 16 + drawn(count) * width;
    switch (drawn(8)) {
    case 0: /* the count */
        count = drawn(2) ? count + drawn(5) - 2 : drawn(2) ? special[drawn(16)] : (uint64_t)special[drawn(16)] << 32 | 1;
        memcpy(bytes + place + 8, &count, 8);
        break;
    case 1: /* the kind */
        kind = drawn(24);
        memcpy(bytes + place, &kind, 4);
        break;
    case 2: /* a cut */
        *size = drawn(8) && *size > 32 ? 32 + drawn(*size - 32) / 8 * 8 : *size;
        break;
    case 3: /* a byte */
        bytes[24 + drawn(*size - 24)] = (uint8_t)drawn(256);
        break;
    case 4: /* an item of another place of the array */
        if (count > 0) memmove(bytes + where, bytes + place + 16 + drawn(count) * width, width);
        break;
    default: /* an item */
        if (count == 0) break;
        memset(&item, 0, sizeof item);
        memcpy(&item, bytes + where, width < 4 ? width : 4);
        item = drawn(2) ? special[drawn(16)] : drawn(2) ? item + 1 : item - 1;
        memcpy(bytes + where, &item, width < 4 ? width : 4);
    }
}

static const char *const words[] = {"w1", "DT", "Main", "St.,", "60611-12", "\xCE\xA3\xCE\x91\xCE\xA3", "\xC4\xB0x", "",
                                    "--", "w=w2", "bias", "w:w3", "nested:length:2", "\xF0\x9D\x90\x80", "a\xFF", "XXaa11"};

static char capitals[301];

/* A label, or of trees a head and a label, is none that there is not. */
static void check(const structsvm *tagger, const uint32_t *labels, uint32_t t, uint32_t n) {
    uint32_t head = tagger->has_trees ? labels[2 * t] : 0, label = tagger->has_trees ? labels[2 * t + 1] : labels[t];
    if (head > n || (tagger->has_trees && head == t % n + 1) || label >= tagger->n_labels) abort();
}

static long use(structsvm *tagger, int as_it_is) {
    static structsvm_text texts[MOST_TOKENS * 5];
    static float rows[1 << 20];
    static double numbers[MOST_NUMBERS];
    uint32_t starts[MOST_TOKENS + 1], labels[2 * MOST_TOKENS * K_BEST];
    uint32_t n = 1 + (uint32_t)drawn(drawn(4) ? 3 : MOST_TOKENS);   /* most are short: these take the least time */
    double scores[K_BEST];
    long good = 0;
    if (tagger->n_columns > 4 + tagger->has_trees || tagger->n_numbers > MOST_NUMBERS) return 0;
    for (int i = 0; i < MOST_TOKENS * 5; i++) {
        const char *word = as_it_is ? capitals : words[drawn(60) == 0 ? 14 : drawn(14)];
        texts[i].data = word;
        texts[i].size = (uint32_t)strlen(word) + (tagger->n_columns == 0 && drawn(6) == 0 ? STRUCTSVM_NO_TEXT : 0);
        texts[i].value = drawn(4) ? 1.0f : 0.5f;
    }
    for (uint32_t k = 0; k < tagger->n_numbers; k++) numbers[k] = drawn(3) ? (double)drawn(2000) / 100.0 - 10.0 : 0.0;
    for (int i = 0; tagger->n_numbers > 0 && i < MOST_TOKENS * 5; i++) {
        texts[i].data = (const char *)numbers;
        texts[i].size = (uint32_t)sizeof(double) * tagger->n_numbers - (drawn(60) == 0);
    }
    for (uint32_t t = 0; t <= n; t++) starts[t] = 4 * t - (uint32_t)(t > 0 ? drawn(4) : 0);
    /* Without the columns of training nothing is labelled. */
    for (uint32_t k = 0; !as_it_is && drawn(8) && k < tagger->n_required && k < starts[1]; k++) texts[k] = tagger->required[k];
    int failed = structsvm_predict(tagger, texts, starts, n, labels);
    for (uint32_t t = 0; failed == STRUCTSVM_OK && t < n; t++) check(tagger, labels, t, n);
    good += failed == STRUCTSVM_OK;
    int found = structsvm_kbest(tagger, texts, starts, n, K_BEST, labels, scores);
    for (uint32_t t = 0; found > 0 && t < n * (uint32_t)found; t++) check(tagger, labels, t, n);
    if (found > K_BEST) abort();
    if (tagger->has_trees || (uint64_t)n * tagger->n_labels <= 1 << 20) good += structsvm_probability(tagger, texts, starts, n, rows) == 0;
    return good;
}

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    long count = atol(argv[2]), opened = 0, refused = 0, used = 0;
    static uint32_t table[8 * 256];
    crc_tables(table);
    state = (uint64_t)atol(argv[1]) * 0x9E3779B97F4A7C15ull + 88172645463325252ull;
    memset(capitals, 'A', sizeof capitals - 1);
    for (int f = 3; f < argc; f++) {
        FILE *file = fopen(argv[f], "rb");
        if (file == NULL) return 2;
        fseek(file, 0, SEEK_END);
        size_t size = (size_t)ftell(file), at[MOST_ARRAYS];
        rewind(file);
        uint8_t *sound = malloc(size), *bytes = malloc(size + 8), *exact;
        if (sound == NULL || bytes == NULL || fread(sound, 1, size, file) != size) return 2;
        fclose(file);
        size_t n_arrays = arrays_of(sound, size, at);
        for (long k = 0; k < (count > 0 ? count : 1); k++) {
            size_t now = size;
            structsvm *tagger;
            memcpy(bytes, sound, size);
            memset(bytes + size, 0, 8);
            for (uint64_t m = count > 0 ? 1 + drawn(3) : 0; m > 0; m--) mutate(bytes, sound, &now, at, n_arrays);
            if (count > 0 && drawn(40) == 0) now = size + 8;
            if (count == 0 || drawn(50) != 0) {
                uint64_t stated = now;
                memcpy(bytes + 16, &stated, 8);
                uint32_t crc = crc32_of(table, bytes + 16, now - 16);
                memcpy(bytes + 12, &crc, 4);
            }
            exact = malloc(now);    /* so that a sanitizer sees each byte that is read behind the last */
            if (exact == NULL) return 2;
            memcpy(exact, bytes, now);
            int status = structsvm_open(exact, now, &tagger);
            if (status == STRUCTSVM_OK) {
                opened++;
                used += use(tagger, count == 0);
                structsvm_close(tagger);
            } else {
                refused++;
                if (tagger != NULL) abort();
            }
            free(exact);
        }
        free(bytes);
        free(sound);
    }
    printf("%ld mutants: %ld opened, %ld labelled or gave probabilities, %ld refused\n", opened + refused, opened, used, refused);
    return 0;
}
