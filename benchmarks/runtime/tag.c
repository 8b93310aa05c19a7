/* Labels the sentences of a file, a line per token with its columns between tabs, an empty one behind each sentence:
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

/* The number of columns of the first token. */
static size_t columns(const char *line) {
    size_t n = 1;
    while (*line == '\n') line++;
    for (; *line != 0 && *line != '\n'; line++) n += *line == '\t';
    return n;
}

int main(int argc, char **argv) {
    static uint32_t ends[1 << 20];
    size_t size, n = 0, n_sentences = 0, n_columns;
    if (argc != 3) return 2;
    char *words = contents(argv[2], &size);
    structsvm_text *texts = malloc((size + 1) * sizeof *texts);
    uint32_t *labels = malloc((size + 1) * sizeof *labels);
    if (texts == NULL || labels == NULL) return 2;
    n_columns = columns(words);
    for (char *line = words, *end; *line != 0; line = end + 1) {
        if ((end = strchr(line, '\n')) == NULL) return 2;
        if (end == line) {
            ends[n_sentences++] = (uint32_t)(n / n_columns);
            continue;
        }
        for (char *cell = line; cell <= end;) {
            size_t length = strcspn(cell, "\t\n");
            texts[n++] = (structsvm_text){cell, (uint32_t)length, 1};
            cell += length + 1;
        }
    }
    double before = megabytes(), begin = seconds(CLOCK_PROCESS_CPUTIME_ID);
    structsvm *tagger;
    size_t bytes;
    const char *model = contents(argv[1], &bytes);
    if (structsvm_open(model, bytes, &tagger) != STRUCTSVM_OK || tagger->n_columns != n_columns) return 1;
    double load = seconds(CLOCK_PROCESS_CPUTIME_ID) - begin, best = 1e9, all = 0.0;
    for (int run = -1; run < MOST_RUNS && (run < FEWEST_RUNS || all < LEAST); run++) {
        double start = seconds(run < 0 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC);
        for (size_t s = 0, at = 0; s < (run < 0 ? n_sentences > 0 : n_sentences); at = ends[s++])
            if (structsvm_predict(tagger, texts + at * n_columns, NULL, ends[s] - (uint32_t)at, labels + at) < 0) return 1;
        double taken = seconds(run < 0 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC) - start;
        if (run < 0) load += taken;
        else best = taken < best ? taken : best, all += taken;
        if (run < 0) printf("{\"load\": %.4f, \"resident\": %.3f, ", 1e3 * load, megabytes() - before);
    }
    printf("\"speed\": %.1f, \"labels\": [", (double)(n / n_columns) / best);
    for (size_t t = 0; t < n / n_columns; t++) printf("%s\"%s\"", t ? ", " : "", tagger->labels[labels[t]].data);
    puts("]}");
    structsvm_close(tagger);
    return 0;
}
