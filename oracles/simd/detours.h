/* The k best outputs after the best one (Lawler). Each is another one, its parent, up to a choice that it makes in another
 * way; what is chosen after that is the best. Choices have an order, and an output makes its first detour from its parent
 * after its parent's: so each has one parent, and is found once.
 */
#ifndef STRUCTSVM_DETOURS_H
#define STRUCTSVM_DETOURS_H

#include <math.h>
#include <stdint.h>

/* The score less the best output's, the parent, and the choice, as the structure has it. */
typedef struct {
    double score;
    int32_t parent, at[5];
} detour;

/* Put a detour among the best `most`, in order; returns how many there are. */
static int detours_add(detour *found, int known, int most, detour other) {
    if (other.score == -INFINITY || most == 0 || (known == most && !(other.score > found[most - 1].score))) return known;
    int place = known < most ? known++ : most - 1;
    for (; place > 0 && found[place - 1].score < other.score; place--) found[place] = found[place - 1];
    found[place] = other;
    return known;
}

/* Take the best one out; returns how many are left. */
static int detours_take(detour *found, int known, detour *best) {
    *best = found[0];
    for (int j = 1; j < known; j++) found[j - 1] = found[j];
    return known - 1;
}

#endif
