/* Labels words by an exported model:
 *     cc -std=c99 -O2 -ffp-contract=off tag.c structsvm_runtime.c -lm -o tag && ./tag model.bin San Diego is warm */
#include "structsvm_runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    FILE *file = argc > 1 ? fopen(argv[1], "rb") : NULL;
    if (file == NULL) {
        fprintf(stderr, "usage: tag MODEL WORD...\n");
        return 2;
    }
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file), n = (size_t)argc - 2;
    rewind(file);
    void *bytes = malloc(size);
    structsvm *tagger;
    if (bytes == NULL || fread(bytes, 1, size, file) != size || structsvm_open(bytes, size, &tagger) != STRUCTSVM_OK) {
        fprintf(stderr, "%s: not a sound model\n", argv[1]);
        return 1;
    }
    fclose(file);
    structsvm_text *words = malloc((n + 1) * sizeof *words);
    uint32_t *labels = malloc((n + 1) * sizeof *labels);
    for (size_t t = 0; words != NULL && t < n; t++)
        words[t] = (structsvm_text){argv[t + 2], (uint32_t)strlen(argv[t + 2]), 1};
    if (words == NULL || labels == NULL || structsvm_predict(tagger, words, NULL, (uint32_t)n, labels) != STRUCTSVM_OK)
        return 1;
    for (size_t t = 0; t < n; t++) printf("%s\t%s\n", argv[t + 2], tagger->labels[labels[t]].data);
    structsvm_close(tagger);
    free(words);
    free(labels);
    free(bytes);
    return 0;
}
