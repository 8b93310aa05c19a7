/* Labels of sequences or of texts, or dependency trees, by a model that structsvm exported: five functions in C99, without
 * dependencies.
 *
 *     structsvm *tagger;
 *     if (structsvm_open(bytes, size, &tagger) != STRUCTSVM_OK) ...
 *     structsvm_text texts[] = {{"San", 3, 1}, {"Diego", 5, 1}};
 *     uint32_t labels[2];
 *     structsvm_predict(tagger, texts, NULL, 2, labels);
 *     puts(tagger->labels[labels[0]].data);
 *     structsvm_close(tagger);
 *
 * The source beside this header is of one structure, the model's. Of texts each is labelled by itself: they are what is
 * called tokens below, a column each. A row of numbers is a text, too: its `data` are n_numbers of type double, at any
 * address, and its size is in bytes as well.
 *
 * A word of a dependency tree has five columns: form, lemma, UPOS, XPOS and features, as CoNLL-U has them, "_" for what is
 * not there. In the place of a label it has two numbers: its head (0: the root, k: the k-th word), and its label.
 *
 * The bytes of a model are used where they are: mapped, read, or an array of the program. They must begin at a multiple
 * of 8, and stay until the last tagger over them is closed. Nothing writes to them, so threads and processes share them.
 * Opening copies rows at least a third full, those of pairs of labels, and all arc numbers of a parser, into arrays of the
 * tagger, and makes a table of 12 bytes per row of sparse weights. What templates make of the last words is remembered, in
 * half a megabyte for those of tokens, and as much for those of pairs of labels.
 * A tagger is for one thread at a time; each thread opens its own over the same bytes. A call allocates only where its
 * sequence needs more memory than all before.
 */
#ifndef STRUCTSVM_RUNTIME_H
#define STRUCTSVM_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    STRUCTSVM_OK = 0,
    STRUCTSVM_FILE = -1,        /* not a complete, sound model, or not at a multiple of 8 */
    STRUCTSVM_MEMORY = -2,      /* no memory; the tagger stays as it was */
    STRUCTSVM_INPUT = -3,       /* a text longer than 2^24 bytes, starts that fall, a value that is not finite, a row of
                                 * another size, k = 0, k best labels of several texts, a word without a form, a sentence
                                 * without a column of training, several texts ("w:a", "w:b") of a segment's token, or
                                 * one with the mark of dicts ("w:a") where the model has that of lists ("w=a"), or v.v. */
    STRUCTSVM_UTF8 = -4,        /* a text that is not UTF-8 */
    STRUCTSVM_NOTHING = -5,     /* constraints leave no labelling of this length, or scores overflow */
    STRUCTSVM_SIZE = -6,        /* a sequence or text, or k, that would need more than 2^31 bytes; a sentence of more words
                                 * than the parser takes */
    STRUCTSVM_MARGINS = -7,     /* probabilities of a model whose scores are margins */
    STRUCTSVM_VERSION = -8,     /* a model that another version of structsvm exported */
    STRUCTSVM_COLUMNS = -9      /* no token has a column of attributes that is `required` */
};

/* Models of segments take an attribute "w:a", of lists "w=a", for the text "a" of the feature w, which phrases are made of.
 * Add this to the size of one that is not: of a list or dict below w, of a number, of a name such as "w:length". */
#define STRUCTSVM_NO_TEXT 0x80000000u

/* A text in UTF-8, not necessarily with a zero behind it, and its value if it is an attribute. */
typedef struct {
    const char *data;
    uint32_t size;      /* bytes */
    float value;        /* 1 for attributes without a number; ignored for columns */
} structsvm_text;

typedef struct structsvm {
    uint32_t n_labels;
    uint32_t n_columns;             /* texts of each token; 0: tokens have attributes, as many as each has */
    const structsvm_text *labels;   /* n_labels of them, each with a zero behind it; read only */
    struct structsvm_own *own;
    uint32_t n_numbers;             /* how many numbers each row has, of models of rows, else 0 */
    uint32_t has_trees;             /* 1 of parsers, else 0 */
    /* Columns that all tokens of training had: "w:" or "w=" of attributes "w:a" or "w=a", "w" of a feature w that is no
     * text, which is the attribute "w" of value 0 where it is an empty list or dict. One token of a sequence at least must
     * have each; of more than 1,000 not all are looked at. */
    uint32_t n_required;
    const structsvm_text *required;
} structsvm;

/* Check `size` bytes of a model, in a pass over them, and make a tagger. STRUCTSVM_OK, _FILE (also for a model of another
 * structure than the source) or _MEMORY. */
int structsvm_open(const void *bytes, size_t size, structsvm **tagger);

/* The best labels of a sequence, or the best label of each text.
 *
 *   texts    of columns, n_columns for each token, one token after the other; of attributes, those of all tokens
 *   starts   of attributes, n_tokens + 1 numbers: token t has texts starts[t] .. starts[t + 1] - 1; of columns NULL
 *   labels   room for n_tokens numbers below n_labels
 *
 * Returns STRUCTSVM_OK or an error, after which `labels` is undefined. */
int structsvm_predict(structsvm *tagger, const structsvm_text *texts, const uint32_t *starts, uint32_t n_tokens,
                      uint32_t *labels);

/* The k best labellings, best first, and their scores: room for k * n_tokens labels and k scores. Returns how many there
 * are (fewer than k where the sequence has fewer), or an error. Of a text, n_tokens = 1: its k best labels. */
int structsvm_kbest(structsvm *tagger, const structsvm_text *texts, const uint32_t *starts, uint32_t n_tokens,
                    uint32_t k, uint32_t *labels, double *scores);

/* The probability of each label at each token: room for n_tokens * n_labels numbers, a row per token. Of a sentence that of
 * each head, the root first: room for n_tokens * (n_tokens + 1). Returns STRUCTSVM_OK or an error. */
int structsvm_probability(structsvm *tagger, const structsvm_text *texts, const uint32_t *starts, uint32_t n_tokens,
                          float *probabilities);

/* Release a tagger, which may be NULL. */
void structsvm_close(structsvm *tagger);

#ifdef __cplusplus
}
#endif

#endif
