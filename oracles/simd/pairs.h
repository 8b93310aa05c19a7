/* Scores of pairs of arcs, and a search for the best tree under them and the scores of arcs.
 *
 *     score(y) = sum of the scores of the labelled arcs (arcs.h) + sum over both sides d of words h of F(h, d),
 *     F(h, d) = sum over neighbours s, m below h on that side: S(h, s, m) + sum over words m there: G(head of h, h, m)
 *
 * Either neighbour may be missing: s before the word nearest to h, m after the farthest one. S and G are sums over templates
 * of a number each, among those of the arc templates: its index has the leading bits of a sum of hashes, of what the template
 * sees of each of the three words, of their labels, and of the sides they are on.
 *
 * The search (Zhang, Lei, Barzilay and Jaakkola 2014) climbs from the best tree of the arcs alone: it gives a word
 * another head, or label, of those that score best, or two words where one alone would close a cycle or leave no root, for
 * as long as the score rises. A move changes the F of a few sides, mostly to what another move has had computed. So
 * values of F are kept under a key of all that F(h, d) depends on, h and d, the head and label of h, and the words there with
 * theirs: a sum of a random number for each (Zobrist 1970), which a move changes by its own. Side 2 h is the left one of word
 * h, 2 h + 1 the right one.
 */
#ifndef STRUCTSVM_PAIRS_H
#define STRUCTSVM_PAIRS_H

#include "arcs.h"

enum { PAIRS_ROLES = 5, PAIRS_ROWS = 2 * PAIRS_ROLES + 1, PAIRS_SHARED = 5, PAIRS_SIDES = 4, PAIRS_SEE_SIDES = 1 << PAIRS_ROLES };
enum { PAIRS_HEADS = 8, PAIRS_LABELS = 4, PAIRS_CHOICES = 26, PAIRS_SWEEPS = 16, PAIRS_MEMO = 1 << 12 };

#define PAIRS_SEED(role) (0x70616972u + ((uint32_t)(role) << 24))

/* A template's view of up to five words: the head g of h, h, its words t, s, m side by side, m the farthest from h. */
typedef struct {
    int32_t side, word[PAIRS_ROLES], label[PAIRS_ROLES];
} pairs_part;

typedef struct {
    int32_t head, label;
    float score;                  /* the arc's score */
} pairs_choice;

typedef struct {
    uint64_t key;
    float value;
} pairs_memo;

typedef struct {
    int64_t n, width;             /* the number of templates, and that as a multiple of LANES */
    const int32_t *ptr, *seen;    /* (PAIRS_ROLES width + 1,): what they see of the words, pairs (offset, column) */
    const int32_t *sees;          /* (width,): bit r: the label of word r; PAIRS_SEE_SIDES */
    uint32_t *label_keys;         /* (PAIRS_ROLES, n_labels + 1, width): hashes of labels; the last one: none */
    uint32_t *side_keys;          /* (PAIRS_SIDES, width) */
    uint32_t *none_keys;          /* (PAIRS_ROLES, width): hashes of no word */
    uint32_t *word_keys;          /* (PAIRS_ROLES, n + 2, width): hashes of the sentence's words; the last one: none */
    int64_t bits;                 /* bits of the number of weights */
    float *arc, *around;          /* (n + 1,): of words, the scores of their arcs; (2 n + 2,): F of sides */
    uint64_t *keys, n_climbs;     /* (2 n + 2,): of what F depends on */
    pairs_memo *memo;             /* (PAIRS_MEMO,) */
    pairs_part *parts;            /* (2 n + 4,) */
    uint32_t *base;               /* (width,) */
    int32_t *others;              /* (2 n,): heads and labels of another tree */
    const int32_t *heads, *labels; /* the true tree, or NULL */
    float weight, crossing;       /* factors: scores of arcs, a pair of arcs that cross */
} pairs_search;

/* The hashes of labels, sides and no word: to be called once. */
static void pairs_begin(const arcs_model *a, pairs_search *p) {
    for (int64_t t = 0; t < p->width; t++) {
        for (uint32_t side = 0; side < PAIRS_SIDES; side++)
            p->side_keys[side * p->width + t] = arcs_mix(0x73696465u, p->sees[t] & PAIRS_SEE_SIDES ? side + 1 : 0);
        for (int64_t r = 0; r < PAIRS_ROLES; r++) {
            uint32_t *none = p->none_keys + r * p->width + t;
            *none = arcs_mix(PAIRS_SEED(r), (uint32_t)t + 1);
            for (int32_t k = p->ptr[r * p->width + t]; k < p->ptr[r * p->width + t + 1]; k++) *none = arcs_mix(*none, ARCS_OUTSIDE);
            for (int64_t l = 0; l <= a->n_labels; l++)
                p->label_keys[(r * (a->n_labels + 1) + l) * p->width + t] =
                    arcs_mix(0x6c616265u + ((uint32_t)r << 24), p->sees[t] >> r & 1 ? (uint32_t)l + 1 : 0);
        }
    }
}

/* The hashes of the sentence's words: to be called once a sentence, before anything else. */
static void pairs_look(const arcs_model *a, arcs_sentence *s, pairs_search *p) {
    arcs_columns(a, s);
    for (int64_t r = 0; r < PAIRS_ROLES; r++) {
        uint32_t *keys = p->word_keys + r * (s->n + 2) * p->width;
        const int32_t *ptr = p->ptr + r * p->width;
        for (int64_t t = 0; t < p->n; t++) {
            arcs_keys(s, ptr, p->seen, t, PAIRS_SEED(r), keys + t, p->width);
            keys[(s->n + 1) * p->width + t] = p->none_keys[r * p->width + t];
        }
    }
}

/* The pairs of arcs whose scores F of a side sums, into `out`, with room for n + 1; their number. */
static int64_t pairs_around(const arcs_model *a, int64_t n, const int32_t *heads, const int32_t *labels, int64_t side, pairs_part *out) {
    int64_t h = side / 2, right = side % 2, step = right ? 1 : -1, t = n + 1, s = n + 1;
    pairs_part *end = out;
    if (h == 0) return 0;
    int64_t g = heads[h - 1];
    for (int64_t m = h + step;; m += step) {
        int64_t at = m < 1 || m > n ? n + 1 : m;
        if (at <= n && heads[m - 1] != h) continue;
        const int64_t words[PAIRS_ROLES] = {g, h, t, s, at};
        end->side = (int32_t)(right + 2 * (g < h));
        for (int r = 0; r < PAIRS_ROLES; r++) {
            end->word[r] = (int32_t)words[r];
            end->label[r] = r == 0 || words[r] > n ? (int32_t)a->n_labels : labels[words[r] - 1];
        }
        end++;
        if (at > n) return end - out;
        t = s;
        s = m;
    }
}

/* The hashes whose sum is the key of a part's features: first those that the parts on one side of h share. */
ROWS_INLINE void pairs_rows(const arcs_model *a, int64_t n, const pairs_search *p, const pairs_part *part, const uint32_t **rows) {
    rows[0] = p->side_keys + part->side * p->width;
    for (int64_t r = 0; r < PAIRS_ROLES; r++) {
        rows[1 + 2 * r] = p->word_keys + (r * (n + 2) + part->word[r]) * p->width;
        rows[2 + 2 * r] = p->label_keys + (r * (a->n_labels + 1) + part->label[r]) * p->width;
    }
}

/* The indices of a part's features; their number. */
static int64_t pairs_features(const arcs_model *a, int64_t n, const pairs_search *p, const pairs_part *part, int32_t *at) {
    const uint32_t *rows[PAIRS_ROWS];
    pairs_rows(a, n, p, part, rows);
    for (int64_t t = 0; t < p->n; t++) {
        uint32_t key = 0;
        for (int r = 0; r < PAIRS_ROWS; r++) key += rows[r][t];
        at[t] = (int32_t)(key >> (32 - p->bits));
    }
    return p->n;
}

/* The number of arcs that the arc of word m crosses. */
static int pairs_crossings(int64_t n, const int32_t *heads, int64_t m) {
    int32_t h = heads[m - 1], lo = h < m ? h : (int32_t)m, hi = h < m ? (int32_t)m : h, count = 0;
    for (int32_t k = 1; k <= n; k++) {      /* without branches: whole vectors of words */
        int32_t g = heads[k - 1];
        count += ((k > lo) & (k < hi) & ((g < lo) | (g > hi))) | (((k < lo) | (k > hi)) & (g > lo) & (g < hi));
    }
    return count;
}

/* The number of pairs of arcs that cross. */
static int64_t pairs_crossing(int64_t n, const int32_t *heads) {
    int64_t count = 0;
    for (int64_t m = 1; m <= n; m++) count += pairs_crossings(n, heads, m);
    return count / 2;
}

/* The features of pairs of arcs that one of two trees has and not the other: plus[n_plus], minus[n_minus], counted on from what
 * stands there. `words` are the words of `cut` triples (word, head, label) in which the other tree differs; NULL: the
 * features of one tree. */
static void pairs_differences(const arcs_model *a, int64_t n, const pairs_search *p, const int32_t *heads, const int32_t *labels,
                              const int32_t *words, int64_t n_words, int32_t *plus, int64_t *n_plus, int32_t *minus,
                              int64_t *n_minus, int64_t *crossings) {
    pairs_part *parts = p->parts, *more = parts + n + 2;
    int32_t *others = p->others;
    memcpy(others, heads, n * sizeof(int32_t));
    memcpy(others + n, labels, n * sizeof(int32_t));
    for (int64_t i = 0; i < n_words; i++) {
        others[words[3 * i] - 1] = words[3 * i + 1];
        others[n + words[3 * i] - 1] = words[3 * i + 2];
    }
    *crossings = pairs_crossing(n, heads) - (words == NULL ? 0 : pairs_crossing(n, others));
    for (int64_t h = 1; h <= n; h++) {
        int touched = words == NULL;
        for (int64_t i = 0; i < n_words && !touched; i++)
            touched = h == words[3 * i] || h == words[3 * i + 1] || h == heads[words[3 * i] - 1];
        if (!touched) continue;
        for (int64_t side = 2 * h; side < 2 * h + 2; side++) {
            int64_t count = pairs_around(a, n, heads, labels, side, parts), n_more = 0;
            if (words != NULL) n_more = pairs_around(a, n, others, others + n, side, more);
            for (int64_t i = 0; i < count; i++) {
                int64_t j = 0;
                while (j < n_more && memcmp(parts + i, more + j, sizeof(pairs_part)) != 0) j++;
                if (j == n_more) *n_plus += pairs_features(a, n, p, parts + i, plus + *n_plus);
                else more[j] = more[--n_more];
            }
            for (int64_t j = 0; j < n_more; j++) *n_minus += pairs_features(a, n, p, more + j, minus + *n_minus);
        }
    }
}

/* The score of a part; `base` is the sum of those of its rows that the parts on one side of a head share. */
ROWS_INLINE float pairs_score(const float *W, const pairs_search *p, const uint32_t *base, const uint32_t **rows) {
    int shift = (int)(32 - p->bits);
    int64_t t = 0;
    float total = 0.0f;
#ifdef __AVX2__
    __m256 sum = _mm256_setzero_ps();
    __m128i count = _mm_cvtsi32_si128(shift);
    for (; t + LANES <= p->n; t += LANES) {
        __m256i key = _mm256_loadu_si256((const __m256i *)(base + t));
        for (int r = PAIRS_SHARED; r < PAIRS_ROWS; r++) key = _mm256_add_epi32(key, _mm256_loadu_si256((const __m256i *)(rows[r] + t)));
        sum = _mm256_add_ps(sum, _mm256_i32gather_ps(W, _mm256_srl_epi32(key, count), 4));
    }
    rows_v lanes = (rows_v)sum;
    for (int l = 0; l < LANES; l++) total += lanes[l];
#endif
    for (; t < p->n; t++) {
        uint32_t key = base[t];
        for (int r = PAIRS_SHARED; r < PAIRS_ROWS; r++) key += rows[r][t];
        total += W[key >> shift];
    }
    return total;
}

/* F of a side */
static float pairs_sum(const arcs_model *a, const float *W, const pairs_search *p, int64_t n, const int32_t *heads,
                       const int32_t *labels, int64_t side) {
    const uint32_t *rows[PAIRS_ROWS];
    float total = 0.0f;
    int64_t count = pairs_around(a, n, heads, labels, side, p->parts);
    for (int64_t i = 0; i < count; i++) {
        pairs_rows(a, n, p, p->parts + i, rows);
        if (i == 0)
            for (int64_t t = 0; t < p->n; t++) {
                p->base[t] = 0;
                for (int r = 0; r < PAIRS_SHARED; r++) p->base[t] += rows[r][t];
            }
        total += pairs_score(W, p, p->base, rows);
    }
    return total;
}

/* F of a side of the tree that the keys stand for, which is `found`. */
static float pairs_known(const arcs_model *a, const float *W, const pairs_search *p, int64_t n, const int32_t *found, int64_t side) {
    pairs_memo *memo = p->memo + (p->keys[side] & (PAIRS_MEMO - 1));
    if (memo->key != p->keys[side]) *memo = (pairs_memo){p->keys[side], pairs_sum(a, W, p, n, found, found + n, side)};
    return memo->value;
}

ROWS_INLINE uint64_t pairs_random(uint64_t m, uint64_t head, uint64_t label) {
    uint64_t x = (m << 48) + (head << 24) + label;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/* The side of its head that word m is on. */
ROWS_INLINE int64_t pairs_side(int64_t m, int64_t head) { return 2 * head + (head < m); }

/* Add an arc to the keys of the sides that it touches (sign 1), or take it away (-1). */
ROWS_INLINE void pairs_join(pairs_search *p, int64_t m, int64_t head, int64_t label, uint64_t sign) {
    uint64_t own = sign * pairs_random(m, head + 2, label);
    p->keys[pairs_side(m, head)] += sign * pairs_random(m, 1, label);
    p->keys[2 * m] += own;
    p->keys[2 * m + 1] += own;
}

/* Give word m another head and label. */
static void pairs_set(pairs_search *p, int64_t n, int32_t *found, int64_t m, int32_t head, int32_t label) {
    pairs_join(p, m, found[m - 1], found[n + m - 1], -1);
    pairs_join(p, m, found[m - 1] = head, found[n + m - 1] = label, 1);
}

/* The best labelled heads of each word by their arcs (after arcs_fill without a loss), those of the tree `found` among them, and
 * those of the true tree, if it is given. */
static void pairs_choose(const arcs_model *a, const float *W, const arcs_sentence *s, const int32_t *heads, const int32_t *labels,
                         const int32_t *found, float gap, pairs_choice *choices, int32_t *n_choices) {
    const float *R = W + ((int64_t)1 << a->arc_bits);
    int64_t n = s->n;
    for (int64_t m = 1; m <= n; m++) {
        int32_t best[PAIRS_HEADS + 2], kept[2][2] = {{found[m - 1], found[n + m - 1]}, {-1, -1}};
        int64_t n_best = 0, many = 0;
        pairs_choice *out = choices + (m - 1) * PAIRS_CHOICES;
        if (heads != NULL) kept[1][0] = heads[m - 1], kept[1][1] = labels[m - 1];
        for (int64_t h = 0; h <= n; h++) {
            float score = s->scores[h * (n + 1) + m];
            if (h == m || !(score > -INFINITY)) continue;
            int64_t at = n_best < PAIRS_HEADS ? n_best : PAIRS_HEADS - 1;
            if (at < n_best && !(score > s->scores[best[at] * (n + 1) + m])) continue;
            for (; at > 0 && score > s->scores[best[at - 1] * (n + 1) + m]; at--) best[at] = best[at - 1];
            best[at] = (int32_t)h;
            if (n_best < PAIRS_HEADS) n_best++;
        }
        float least = s->scores[best[0] * (n + 1) + m] - gap;
        for (int i = 0; i < 2; i++) {
            int is_there = kept[i][0] < 0;
            for (int64_t j = 0; j < n_best; j++) is_there |= best[j] == kept[i][0];
            if (!is_there) best[n_best++] = kept[i][0];
        }
        for (int64_t i = 0; i < n_best; i++) {
            int64_t h = best[i];
            float score = s->scores[h * (n + 1) + m], top = arcs_row_top((arcs_label_scores(a, R, s, h, m), s->row), a->stride);
            for (int j = 0; j < 2; j++)
                if (kept[j][0] == h && s->row[kept[j][1]] > -INFINITY) {
                    out[many++] = (pairs_choice){(int32_t)h, kept[j][1], score + (s->row[kept[j][1]] - top)};
                    s->row[kept[j][1]] = -INFINITY;
                }
            for (int64_t j = 0; j < PAIRS_LABELS && many < PAIRS_CHOICES - 2; j++) {
                float value;
                int32_t l = (int32_t)rows_argmax(s->row, NULL, a->stride, &value);
                if (l >= a->n_labels || !(score + (value - top) >= least)) break;
                out[many++] = (pairs_choice){(int32_t)h, l, score + (value - top)};
                s->row[l] = -INFINITY;
            }
        }
        n_choices[m - 1] = (int32_t)many;
    }
}

/* Whether k stands below m, or is m. */
ROWS_INLINE int pairs_below(const int32_t *heads, int64_t k, int64_t m) {
    while (k != m && k > 0) k = heads[k - 1];
    return k == m;
}

/* Twice the number of pairs that cross of which one arc is that of a word of a move. */
static int pairs_touched(int64_t n, int32_t *heads, int64_t n_words, const int32_t *words) {
    int count = 2 * pairs_crossings(n, heads, words[0]);
    if (n_words == 2) {
        int32_t h = heads[words[0] - 1];
        heads[words[0] - 1] = words[0];     /* an arc that crosses nothing */
        count += 2 * pairs_crossings(n, heads, words[1]);
        heads[words[0] - 1] = h;
    }
    return count;
}

/* Words that change, at most two, and what they change to. */
typedef struct {
    int64_t n;
    int32_t word[2];
    const pairs_choice *to[2];
    float gain;
} pairs_move;

ROWS_INLINE float pairs_arc(const pairs_search *p, int64_t m, const pairs_choice *c) {
    int is_true = p->heads == NULL || (p->heads[m - 1] == c->head && p->labels[m - 1] == c->label);
    return p->weight * c->score + (is_true ? 0.0f : 1.0f);
}

/* Gain of a move, or -inf if arcs would cross that may not; with `stay` the move is made. An arc counts `weight` times its
 * score, and 1 more if it is none of the true ones, where those are given. */
static float pairs_try(const arcs_model *a, const float *W, pairs_search *p, int64_t n, int projective, const pairs_move *move,
                       int stay, int32_t *found) {
    int64_t touched[8];
    int32_t old[2][2];
    int64_t many = 0;
    int crossings = pairs_touched(n, found, move->n, move->word);
    float gain = 0.0f, sums[8];
    for (int64_t i = 0; i < move->n; i++) {
        int64_t m = move->word[i];
        const int64_t around[4] = {2 * m, 2 * m + 1, pairs_side(m, found[m - 1]), pairs_side(m, move->to[i]->head)};
        for (int64_t j = 0; j < 4; j++) {
            int64_t k = 0;
            while (k < many && touched[k] != around[j]) k++;
            if (k == many) touched[many++] = around[j];
        }
        gain += pairs_arc(p, m, move->to[i]) - p->arc[m];
        old[i][0] = found[m - 1];
        old[i][1] = found[n + m - 1];
    }
    for (int64_t i = 0; i < move->n; i++) pairs_set(p, n, found, move->word[i], move->to[i]->head, move->to[i]->label);
    crossings = pairs_touched(n, found, move->n, move->word) - crossings;
    gain = projective && crossings > 0 ? -INFINITY : gain + 0.5f * (float)crossings * p->crossing;
    for (int64_t k = 0; k < many && gain > -INFINITY; k++) {
        sums[k] = pairs_known(a, W, p, n, found, touched[k]);
        gain += sums[k] - p->around[touched[k]];
    }
    if (stay) {
        for (int64_t k = 0; k < many; k++) p->around[touched[k]] = sums[k];
        for (int64_t i = 0; i < move->n; i++) p->arc[move->word[i]] = pairs_arc(p, move->word[i], move->to[i]);
    } else for (int64_t i = 0; i < move->n; i++) pairs_set(p, n, found, move->word[i], old[i][0], old[i][1]);
    return gain;
}

static void pairs_better(const arcs_model *a, const float *W, pairs_search *p, int64_t n, int projective, pairs_move *move,
                              pairs_move *best, int32_t *found) {
    move->gain = pairs_try(a, W, p, n, projective, move, 0, found);
    if (move->gain > best->gain) *best = *move;
}

/* Climb from `found`, n heads and n labels that are among the choices. With `heads` and `labels` each arc but the true
 * ones scores 1 more. Returns -1 once `stop_poll` has. */
static int pairs_climb(const arcs_model *a, const float *W, int64_t n, pairs_search *p, int projective, const pairs_choice *choices,
                       const int32_t *n_choices, const int32_t *heads, const int32_t *labels, int32_t *found) {
    int64_t work = 0, still = 0;
    p->weight = W[(int64_t)1 << p->bits];
    p->crossing = W[((int64_t)1 << p->bits) + 1];
    p->heads = heads;
    p->labels = labels;
    for (int64_t m = 1; m <= n; m++)
        for (int64_t c = 0; c < n_choices[m - 1]; c++) {
            const pairs_choice *choice = choices + (m - 1) * PAIRS_CHOICES + c;
            if (choice->head == found[m - 1] && choice->label == found[n + m - 1]) p->arc[m] = pairs_arc(p, m, choice);
        }
    p->n_climbs++;      /* gives other keys to all that was kept under other weights */
    for (int64_t side = 0; side < 2 * n + 2; side++) p->keys[side] = pairs_random(side, 0, p->n_climbs);
    for (int64_t m = 1; m <= n; m++) pairs_join(p, m, found[m - 1], found[n + m - 1], 1);
    for (int64_t side = 0; side < 2 * n + 2; side++) p->around[side] = pairs_known(a, W, p, n, found, side);
    for (int64_t visit = 0; visit < PAIRS_SWEEPS * n && still < n; visit++, still++) {
        int64_t m = 1 + visit % n;
        const pairs_choice *own = choices + (m - 1) * PAIRS_CHOICES;
        pairs_move best = {0, {0, 0}, {NULL, NULL}, 1e-4f};
        int is_root = found[m - 1] == 0;
        for (int64_t c = 0; c < n_choices[m - 1]; c++) {
            pairs_move move = {1, {(int32_t)m, 0}, {own + c, NULL}, 0.0f};
            int64_t h = own[c].head;
            if (h == found[m - 1] ? own[c].label != found[n + m - 1] : h > 0 && !pairs_below(found, h, m)) {
                pairs_better(a, W, p, n, projective, &move, &best, found);
                continue;
            }
            if (h == found[m - 1] || h == 0) continue;
            move.n = 2;     /* a word between h and m, or h, takes a head outside: the root if m leaves it */
            for (int64_t k = h; k != m; k = found[k - 1]) {
                const pairs_choice *others = choices + (k - 1) * PAIRS_CHOICES;
                move.word[1] = (int32_t)k;
                for (int64_t d = 0; d < n_choices[k - 1]; d++) {
                    move.to[1] = others + d;
                    if (is_root ? others[d].head == 0 : others[d].head > 0 && !pairs_below(found, others[d].head, m))
                        pairs_better(a, W, p, n, projective, &move, &best, found);
                }
            }
        }
        if (stop_count(&work, 1000 * n_choices[m - 1]) < 0) return -1;
        if (best.n > 0) {
            pairs_try(a, W, p, n, projective, &best, 1, found);
            still = -1;
        }
    }
    return 0;
}

#endif
