/* Labels the sentences of a file, a line per token with its columns or attributes between tabs, an empty one behind each:
 *     tag MODEL FILE
 * Prints JSON: CPU milliseconds to open the model and label the first sentence, megabytes, tokens per second, labels. */
#define _POSIX_C_SOURCE 199309L
#include "structsvm_runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* As repeat_for of measure.py. */
enum { FEWEST_RUNS = 3, MOST_RUNS = 200 };

#define LEAST 1.5   /* seconds of all runs */

static char *contents(const char *name, size_t *size) {
    FILE *file = fopen(name, "rb");
    if (file == NULL) exit(2);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(*size + 1);
    if (bytes == NULL || fread(bytes, 1, *size, file) != *size) exit(2);
    fclose(file);
    bytes[*size] = 0;
    return bytes;
}

static double seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Resident memory now, as Linux tells it; 0 elsewhere. */
static double megabytes(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file != NULL && fscanf(file, "%*s %ld", &pages) != 1) pages = 0;
    if (file != NULL) fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1e6;
}

/* The best labels of the tokens from `first` on, whose texts begin at `starts`. */
static int label(structsvm *tagger, const structsvm_text *texts, const uint32_t *starts, uint32_t first, uint32_t end,
                 uint32_t *labels) {
    int has_columns = tagger->n_columns > 0;
    if (has_columns && starts[end] - starts[first] != (end - first) * tagger->n_columns) return STRUCTSVM_INPUT;
    return structsvm_predict(tagger, has_columns ? texts + starts[first] : texts, has_columns ? NULL : starts + first,
                             end - first, labels + first);
}

int main(int argc, char **argv) {
    static uint32_t ends[1 << 20];
    size_t size, n = 0, n_sentences = 0;
    uint32_t n_tokens = 0;
    if (argc != 3) return 2;
    char *words = contents(argv[2], &size);
    structsvm_text *texts = malloc((size + 1) * sizeof *texts);
    uint32_t *labels = malloc((size + 1) * sizeof *labels);
    uint32_t *starts = calloc(size + 2, sizeof *starts);
    if (texts == NULL || labels == NULL || starts == NULL) return 2;
    for (char *line = words, *end; *line != 0; line = end + 1) {
        if ((end = strchr(line, '\n')) == NULL) return 2;
        if (end == line) {
            ends[n_sentences++] = n_tokens;
            continue;
        }
        for (char *cell = line; cell <= end;) {
            size_t length = strcspn(cell, "\t\n");
            texts[n++] = (structsvm_text){cell, (uint32_t)length, 1};
            cell += length + 1;
        }
        starts[++n_tokens] = (uint32_t)n;
    }
    double before = megabytes(), begin = seconds(CLOCK_PROCESS_CPUTIME_ID);
    structsvm *tagger;
    size_t bytes;
    const char *model = contents(argv[1], &bytes);
    if (structsvm_open(model, bytes, &tagger) != STRUCTSVM_OK) return 1;
    double load = seconds(CLOCK_PROCESS_CPUTIME_ID) - begin, best = 1e9, all = 0.0;
    for (int run = -1; run < MOST_RUNS && (run < FEWEST_RUNS || all < LEAST); run++) {
        double start = seconds(run < 0 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC);
        uint32_t at = 0;
        for (size_t s = 0; s < (run < 0 ? n_sentences > 0 : n_sentences); at = ends[s++])
            if (label(tagger, texts, starts, at, ends[s], labels) < 0) return 1;
        double taken = seconds(run < 0 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC) - start;
        if (run < 0) load += taken;
        else best = taken < best ? taken : best, all += taken;
        if (run < 0) printf("{\"load\": %.4f, \"resident\": %.3f, ", 1e3 * load, megabytes() - before);
    }
    printf("\"speed\": %.1f, \"labels\": [", (double)n_tokens / best);
    for (uint32_t t = 0; t < n_tokens; t++) printf("%s\"%s\"", t ? ", " : "", tagger->labels[labels[t]].data);
    puts("]}");
    structsvm_close(tagger);
    return 0;
}
