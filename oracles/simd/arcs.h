/* Scores of labelled arcs of a sentence: hashed features of the head h, the word m below it, and what is between.
 *
 *     score(h, m, l) = sum_t A[at(t, h, m)] + sum_r R[row(r, h, m)][l]
 *
 * with a number per feature of the arc templates t, and a row of labels per feature of the label templates r. A feature's
 * key is the sum of three 32-bit hashes, of what the template sees about h, about m, and of the distance; its leading
 * bits are the index. So scoring an arc is two additions, a shift and a load per template. Label templates that see h
 * alone, or m alone, are summed once per word; only those that see both ("joint") are once per arc.
 *
 * Word 0 is the root. Code 0 of a column stands for what is outside of the sentence, 1 for the root.
 */
#ifndef STRUCTSVM_ARCS_H
#define STRUCTSVM_ARCS_H

#include "rows.h"
#include "stop.h"

enum { ARCS_OUTSIDE = 0, ARCS_ROOT = 1, ARCS_DISTANCES = 15, ARCS_MOST_BETWEEN = 32 };
enum { ARCS_REACH = 9 }; /* words beside a word that a template may see */
enum { ARCS_PLAIN = 0, ARCS_DIRECTION = 1, ARCS_DISTANCE = 2 };

/* A label template of vectors: whose, of h (1) or m (0), and the offset from it; where the numbers stand among the codes, and
 * how many; whether each direction has rows of its own, and the first of them after the hashed ones. */
typedef struct {
    int32_t above, offset, column, size, directed, row;
} arcs_vector;
typedef float arcs_number __attribute__((may_alias));

/* Templates: arc templates first, then label templates in the order: of m alone, of h alone, joint. */
typedef struct {
    int64_t n_columns, n_arc, n_below, n_above, n_joint; /* numbers of templates */
    int64_t width;                                       /* width of all of them, a multiple of LANES */
    int64_t arc_bits, row_bits;
    int64_t n_labels, stride;
    int64_t root_label;             /* the label of arcs from the root and of no others, or -1 */
    const int32_t *head_ptr, *head_parts; /* each template's view of h: pairs (offset, column) */
    const int32_t *below_ptr, *below_parts;
    const int32_t *distance;        /* ARCS_PLAIN, _DIRECTION or _DISTANCE */
    const int32_t *between;         /* for arc templates: the column of which each value between counts, or -1 */
    const uint32_t *distance_keys;  /* (ARCS_DISTANCES, width) */
    int64_t n_vectors;
    const arcs_vector *vector;
} arcs_model;

/* A sentence and its scores; room for the longest one. */
typedef struct {
    int64_t n;                      /* words */
    const int32_t *codes;           /* (n, n_columns) */
    int32_t *columns;               /* (n_columns, arcs_column_size(n)): the same by columns, with what is outside */
    uint32_t *head_keys, *below_keys; /* (n + 1, width) */
    float *below_rows, *above_rows; /* (n + 1, 2, stride): label scores of words alone, below a head to the left or right */
    float *row;                     /* (stride,) */
    float *scores;                  /* (n + 1, n + 1): [h (n + 1) + m], of the best label */
} arcs_sentence;

typedef uint32_t arcs_v __attribute__((vector_size(32), aligned(4), may_alias));

ROWS_INLINE uint32_t arcs_mix(uint32_t key, uint32_t code) {
    key = (key ^ code) * 0x9E3779B1u;
    key ^= key >> 15;
    key *= 0x85EBCA77u;
    return key ^ (key >> 13);
}

ROWS_INLINE int32_t arcs_code(const arcs_model *a, const arcs_sentence *s, int64_t i, int64_t column) {
    if (i == 0) return ARCS_ROOT;
    return i < 0 || i > s->n ? ARCS_OUTSIDE : s->codes[(i - 1) * a->n_columns + column];
}

/* Codes of a column from word -ARCS_REACH on: whole vectors of words, and what templates see beside them. */
ROWS_INLINE int64_t arcs_column_size(int64_t n) { return n + 1 + 2 * ARCS_REACH + LANES; }

static void arcs_columns(const arcs_model *a, arcs_sentence *s) {
    int64_t size = arcs_column_size(s->n);
    for (int64_t c = 0; c < a->n_columns; c++)
        for (int64_t k = 0; k < size; k++) s->columns[c * size + k] = arcs_code(a, s, k - ARCS_REACH, c);
}

/* The keys of all words of what template t sees of one: out[i step], i from 0 to n. */
ROWS_INLINE void arcs_keys(const arcs_sentence *s, const int32_t *ptr, const int32_t *parts, int64_t t, uint32_t seed,
                           uint32_t *out, int64_t step) {
    uint32_t begin = arcs_mix(seed, (uint32_t)t + 1);
    for (int64_t i = 0; i <= s->n; i += LANES) {
        arcs_v key = (arcs_v){0} + begin;
        for (int32_t k = ptr[t]; k < ptr[t + 1]; k++) {
            const int32_t *column = s->columns + parts[2 * k + 1] * arcs_column_size(s->n);
            key = (key ^ *(const arcs_v *)(column + ARCS_REACH + i + parts[2 * k])) * 0x9E3779B1u;
            key ^= key >> 15;
            key *= 0x85EBCA77u;
            key ^= key >> 13;
        }
        for (int64_t l = 0; l < LANES && i + l <= s->n; l++) out[(i + l) * step] = key[l];
    }
}

/* The keys of the sentence's words: to be called once a sentence, before anything else. */
static void arcs_look(const arcs_model *a, arcs_sentence *s) {
    arcs_columns(a, s);
    for (int64_t t = 0; t < a->width; t++) {
        arcs_keys(s, a->head_ptr, a->head_parts, t, 0x68656164u, s->head_keys + t, a->width);
        arcs_keys(s, a->below_ptr, a->below_parts, t, 0x62656c6fu, s->below_keys + t, a->width);
    }
}

/* Class of an arc by direction and distance: 1, 2, 3, 4, 5, 6 to 10, more; left, right; from the root. */
ROWS_INLINE int64_t arcs_distance(int64_t h, int64_t m) {
    if (h == 0) return ARCS_DISTANCES - 1;
    int64_t d = h < m ? m - h : h - m;
    return (d <= 5 ? d - 1 : d <= 10 ? 5 : 6) + (h < m ? 7 : 0);
}

/* The direction of a class: 0 left, 1 right, 2 from the root. */
ROWS_INLINE int64_t arcs_direction(int64_t distance) { return distance / 7; }

ROWS_INLINE float arcs_sum(const float *W, const uint32_t *h, const uint32_t *m, const uint32_t *d, int64_t n, int shift) {
    float total = 0.0f;
    int64_t t = 0;
#ifdef __AVX2__
    __m256 sum = _mm256_setzero_ps();
    __m128i count = _mm_cvtsi32_si128(shift);
    for (; t + LANES <= n; t += LANES) {
        __m256i key = _mm256_add_epi32(_mm256_loadu_si256((const __m256i *)(h + t)), _mm256_loadu_si256((const __m256i *)(m + t)));
        key = _mm256_srl_epi32(_mm256_add_epi32(key, _mm256_loadu_si256((const __m256i *)(d + t))), count);
        sum = _mm256_add_ps(sum, _mm256_i32gather_ps(W, key, 4));
    }
    rows_v lanes = (rows_v)sum;
    for (int l = 0; l < LANES; l++) total += lanes[l];
#endif
    for (; t < n; t++) total += W[(h[t] + m[t] + d[t]) >> shift];
    return total;
}

/* Distinct codes between two words, as they are met: `found` has `n` of them, and one more may come. */
ROWS_INLINE int64_t arcs_meet(int32_t *found, int64_t n, int32_t code) {
    for (int64_t k = 0; k < n; k++)
        if (found[k] == code) return n;
    if (n < ARCS_MOST_BETWEEN) found[n++] = code;
    return n;
}

ROWS_INLINE float arcs_sum_between(const arcs_model *a, const float *W, const uint32_t *h, const uint32_t *m,
                                   const uint32_t *d, int64_t t, const int32_t *found, int64_t n, int shift) {
    float total = 0.0f;
    uint32_t key = h[t] + m[t] + d[t];
    for (int64_t k = 0; k < n; k++) total += W[arcs_mix(key, (uint32_t)found[k]) >> shift];
    return total;
}

/* The numbers that a template sees at word i; NULL: zeros. */
ROWS_INLINE const arcs_number *arcs_numbers(const arcs_model *a, const arcs_sentence *s, const arcs_vector *v, int64_t i) {
    i += v->offset;
    return i < 1 || i > s->n ? NULL : (const arcs_number *)(s->codes + (i - 1) * a->n_columns + v->column);
}

ROWS_INLINE int64_t arcs_number_row(const arcs_model *a, const arcs_vector *v, int64_t direction) {
    return ((int64_t)1 << a->row_bits) + v->row + v->directed * direction * v->size;
}

/* Add to the label scores of word i alone, both directions, its numbers times their rows. */
static void arcs_add_vectors(const arcs_model *a, const float *R, const arcs_sentence *s, int above, int64_t i, float *out) {
    for (const arcs_vector *v = a->vector; v < a->vector + a->n_vectors; v++) {
        const arcs_number *x = arcs_numbers(a, s, v, i);
        for (int64_t direction = 0; direction < 2 && x != NULL && v->above == above; direction++) {
            const float *row = R + arcs_number_row(a, v, direction) * a->stride;
            for (int64_t d = 0; d < v->size; d++, row += a->stride)
                for (int64_t c = 0; c < a->stride; c += LANES)
                    *(rows_v *)(out + direction * a->stride + c) += rows_all(x[d]) * *(const rows_v *)(row + c);
        }
    }
}

/* The rows of a word's own label templates, both directions: those first .. first + n - 1, which see one side only. */
static void arcs_word_rows(const arcs_model *a, const float *R, const uint32_t *keys, const uint32_t *others,
                           int64_t first, int64_t n, float *out) {
    int shift = (int)(32 - a->row_bits);
    int32_t index[LANES];
    memset(out, 0, 2 * a->stride * sizeof(float));
    for (int64_t direction = 0; direction < 2; direction++) {
        const uint32_t *d = a->distance_keys + direction * 7 * a->width;
        float *row = out + direction * a->stride;
        for (int64_t t = first; t < first + n; t += LANES) {
            int64_t many = first + n - t < LANES ? first + n - t : LANES;
            for (int64_t k = 0; k < many; k++) index[k] = (int32_t)((keys[t + k] + others[t + k] + d[t + k]) >> shift);
            rows_sum(R, a->stride, index, NULL, many, row, row);
        }
    }
}

/* Scores of all labels of an arc, but for its arc templates, into s->row. */
ROWS_INLINE void arcs_label_scores(const arcs_model *a, const float *R, const arcs_sentence *s, int64_t h, int64_t m) {
    const uint32_t *hk = s->head_keys + h * a->width, *mk = s->below_keys + m * a->width;
    const uint32_t *d = a->distance_keys + arcs_distance(h, m) * a->width;
    const float *above = s->above_rows + (2 * h + (h < m)) * a->stride, *below = s->below_rows + (2 * m + (h < m)) * a->stride;
    int64_t first = a->n_arc + a->n_below + a->n_above;
    int shift = (int)(32 - a->row_bits);
    int32_t index[2 * LANES];
    int64_t many = a->n_joint < 2 * LANES ? a->n_joint : 2 * LANES;
    for (int64_t c = 0; c < a->stride; c += LANES) *(rows_v *)(s->row + c) = *(const rows_v *)(above + c) + *(const rows_v *)(below + c);
    for (int64_t k = 0; k < many; k++) index[k] = (int32_t)((hk[first + k] + mk[first + k] + d[first + k]) >> shift);
    rows_sum(R, a->stride, index, NULL, many, s->row, s->row);
}

ROWS_INLINE float arcs_row_top(const float *row, int64_t stride) {
    return rows_top(rows_tops(row, NULL, stride));
}

/* The label scores of words alone. Labels that may not stand have -inf there:
 * padding, and the root's label or all others. */
static void arcs_begin(const arcs_model *a, const float *R, arcs_sentence *s) {
    for (int64_t i = 0; i <= s->n; i++) {
        const uint32_t *hk = s->head_keys + i * a->width, *mk = s->below_keys + i * a->width;
        float *above = s->above_rows + 2 * i * a->stride;
        /* A template that sees nothing of one side has the same key of it in each word. */
        arcs_word_rows(a, R, mk, hk, a->n_arc, a->n_below, s->below_rows + 2 * i * a->stride);
        arcs_word_rows(a, R, hk, mk, a->n_arc + a->n_below, a->n_above, above);
        arcs_add_vectors(a, R, s, 0, i, s->below_rows + 2 * i * a->stride);
        arcs_add_vectors(a, R, s, 1, i, above);
        for (int64_t direction = 0; direction < 2; direction++)
            for (int64_t l = 0; l < a->stride; l++)
                if (l >= a->n_labels || (a->root_label >= 0 && (l == a->root_label) != (i == 0)))
                    above[direction * a->stride + l] = -INFINITY;
    }
}

/* Let the weights of an arc come near, but for those of what is between. */
ROWS_INLINE void arcs_fetch(const arcs_model *a, const float *W, const float *R, const arcs_sentence *s, int64_t h, int64_t m,
                            int64_t n_plain) {
    const uint32_t *hk = s->head_keys + h * a->width, *mk = s->below_keys + m * a->width;
    const uint32_t *d = a->distance_keys + arcs_distance(h, m) * a->width;
    int64_t first = a->n_arc + a->n_below + a->n_above;
    int arc_shift = (int)(32 - a->arc_bits), row_shift = (int)(32 - a->row_bits);
    for (int64_t t = 0; t < n_plain; t++) __builtin_prefetch(W + ((hk[t] + mk[t] + d[t]) >> arc_shift));
    for (int64_t t = first; t < first + a->n_joint; t++)
        rows_prefetch(R + (int64_t)((hk[t] + mk[t] + d[t]) >> row_shift) * a->stride, a->stride);
}

/* Fill s->scores with the score of the best label of each arc. With `heads` and `labels` (of words 1 .. n at 0 .. n - 1)
 * each arc but the true ones with their true labels scores 1 more. Returns -1 once `stop_poll` has. */
static int arcs_fill(const arcs_model *a, const float *W, arcs_sentence *s, const int32_t *heads, const int32_t *labels) {
    const float *R = W + ((int64_t)1 << a->arc_bits);
    int64_t n = s->n, work = 0;
    int shift = (int)(32 - a->arc_bits);
    int32_t between[8][ARCS_MOST_BETWEEN];
    arcs_begin(a, R, s);
    if (stop_count(&work, n * a->width * 8) < 0) return -1;
    for (int64_t i = 0; i < n; i++) {
        int64_t n_plain = a->n_arc, n_between[8] = {0};
        while (n_plain > 0 && a->between[n_plain - 1] >= 0) n_plain--;
        for (int64_t j = i + 1; j <= n; j++) {
            for (int64_t t = n_plain; t < a->n_arc && j > i + 1 && i > 0; t++)
                n_between[t - n_plain] = arcs_meet(between[t - n_plain], n_between[t - n_plain], arcs_code(a, s, j - 1, a->between[t]));
            for (int side = 0; j < n && side < (i > 0 ? 2 : 1); side++)
                arcs_fetch(a, W, R, s, side ? j + 1 : i, side ? i : j + 1, n_plain);
            for (int side = 0; side < (i > 0 ? 2 : 1); side++) {
                int64_t h = side ? j : i, m = side ? i : j;
                const uint32_t *hk = s->head_keys + h * a->width, *mk = s->below_keys + m * a->width;
                const uint32_t *d = a->distance_keys + arcs_distance(h, m) * a->width;
                float score = arcs_sum(W, hk, mk, d, n_plain, shift);
                for (int64_t t = n_plain; t < a->n_arc; t++)
                    score += arcs_sum_between(a, W, hk, mk, d, t, between[t - n_plain], n_between[t - n_plain], shift);
                arcs_label_scores(a, R, s, h, m);
                if (heads != NULL && heads[m - 1] == h) s->row[labels[m - 1]] -= 1.0f;
                score += arcs_row_top(s->row, a->stride);
                s->scores[h * (n + 1) + m] = heads != NULL ? score + 1.0f : score;
            }
        }
        if (stop_count(&work, (n - i) * 2 * (a->n_arc + (a->n_joint + 2) * a->stride / LANES)) < 0) return -1;
    }
    return 0;
}

/* The best label of an arc of the sentence that was filled last. */
static int32_t arcs_label(const arcs_model *a, const float *W, const arcs_sentence *s, int64_t h, int64_t m,
                               const int32_t *heads, const int32_t *labels) {
    float best;
    arcs_label_scores(a, W + ((int64_t)1 << a->arc_bits), s, h, m);
    if (heads != NULL && heads[m - 1] == h) s->row[labels[m - 1]] -= 1.0f;
    return (int32_t)rows_argmax(s->row, NULL, a->stride, &best);
}

/* The indices of an arc's features: those of its arc templates, whose number is returned, and the rows of its label
 * templates, those of vectors last, with their numbers. Room for n_arc + 8 ARCS_MOST_BETWEEN, and for the rows. */
static int64_t arcs_features(const arcs_model *a, const arcs_sentence *s, int64_t h, int64_t m, int32_t *at, int32_t *rows,
                             float *numbers) {
    const uint32_t *hk = s->head_keys + h * a->width, *mk = s->below_keys + m * a->width;
    int64_t direction = arcs_distance(h, m), n = 0, n_rows = a->n_below + a->n_above + a->n_joint, lo = h < m ? h : m, hi = h < m ? m : h;
    const uint32_t *d = a->distance_keys + direction * a->width;
    const uint32_t *side = a->distance_keys + (h < m) * 7 * a->width;
    int shift = (int)(32 - a->arc_bits);
    for (; n < a->n_arc && a->between[n] < 0; n++) at[n] = (int32_t)((hk[n] + mk[n] + d[n]) >> shift);
    for (int64_t t = n; t < a->n_arc; t++) {    /* they stand last */
        uint32_t key = hk[t] + mk[t] + d[t];
        int32_t found[ARCS_MOST_BETWEEN];
        int64_t n_found = 0;
        for (int64_t j = lo + 1; j < hi && lo > 0; j++) n_found = arcs_meet(found, n_found, arcs_code(a, s, j, a->between[t]));
        for (int64_t k = 0; k < n_found; k++) at[n++] = (int32_t)(arcs_mix(key, (uint32_t)found[k]) >> shift);
    }
    shift = (int)(32 - a->row_bits);
    for (int64_t r = 0; r < n_rows; r++) {
        int64_t t = a->n_arc + r;
        rows[r] = (int32_t)((hk[t] + mk[t] + (r < a->n_below + a->n_above ? side : d)[t]) >> shift);
    }
    rows += n_rows;
    for (const arcs_vector *v = a->vector; v < a->vector + a->n_vectors; v++) {
        const arcs_number *x = arcs_numbers(a, s, v, v->above ? h : m);
        for (int64_t k = 0; k < v->size; k++) {
            *rows++ = (int32_t)(arcs_number_row(a, v, h < m) + k);
            *numbers++ = x == NULL ? 0.0f : x[k];
        }
    }
    return n;
}

#endif
