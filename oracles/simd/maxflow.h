/* Minimum cuts by augmenting paths from two search trees (Boykov and Kolmogorov 2004), in double precision.
 *
 * One tree grows from the source, one from the sink; where they touch, a path is augmented by its least residual, which
 * is 0 exactly afterwards. Nodes that this cuts off look for another parent in their tree, or leave it. A node's way to its
 * root is trusted where it was seen since the last augmentation (`stamp`), and then `distance` arcs long.
 */
#ifndef STRUCTSVM_MAXFLOW_H
#define STRUCTSVM_MAXFLOW_H

#include <stdint.h>
#include <string.h>

enum { FLOW_FREE, FLOW_SOURCE, FLOW_SINK };
enum { FLOW_ROOT = -1, FLOW_NONE = -2 };   /* instead of the arc to a parent */
enum { FLOW_FAR = 1 << 30 };

typedef struct {
    int64_t n, n_arcs;
    int32_t *first;         /* (n) first arc out of a node, or -1 */
    int32_t *next;          /* (n_arcs) */
    int32_t *head;          /* (n_arcs); arc a ^ 1 is a turned round */
    double *residual;       /* (n_arcs) */
    double *terminal;       /* (n) residual from the source, or minus that to the sink */
    int32_t *parent;        /* (n) arc from a node to its parent */
    int32_t *stamp, *distance;
    int32_t *queue;         /* (n) nodes whose arcs are to be looked at, a ring */
    int32_t *orphans;       /* (n) */
    uint8_t *tree, *queued, *orphaned;
    int64_t queue_at, n_queue, orphan_at, n_orphans, time;
} flow_graph;

static void flow_clear(flow_graph *f, int64_t n) {
    f->n = n;
    f->n_arcs = 0;
    for (int64_t v = 0; v < n; v++) f->first[v] = -1;
    memset(f->terminal, 0, n * sizeof(double));
}

/* Arcs a -> b and b -> a, each of this capacity. */
static inline void flow_join(flow_graph *f, int64_t a, int64_t b, double capacity) {
    const int64_t e = f->n_arcs;
    f->n_arcs += 2;
    f->head[e] = (int32_t)b;
    f->head[e + 1] = (int32_t)a;
    f->residual[e] = f->residual[e + 1] = capacity;
    f->next[e] = f->first[a];
    f->next[e + 1] = f->first[b];
    f->first[a] = (int32_t)e;
    f->first[b] = (int32_t)(e + 1);
}

static inline void flow_activate(flow_graph *f, int64_t v) {
    if (f->queued[v]) return;
    f->queued[v] = 1;
    int64_t at = f->queue_at + f->n_queue++;
    f->queue[at < f->n ? at : at - f->n] = (int32_t)v;
}

static inline void flow_orphan(flow_graph *f, int64_t v) {
    f->parent[v] = FLOW_NONE;
    if (f->orphaned[v]) return;
    f->orphaned[v] = 1;
    int64_t at = f->orphan_at + f->n_orphans++;
    f->orphans[at < f->n ? at : at - f->n] = (int32_t)v;
}

/* Augment the path through arc e, from the source's tree to the sink's. */
static int64_t flow_augment(flow_graph *f, int32_t e) {
    double least = f->residual[e];
    int64_t v, length = 1;
    for (v = f->head[e ^ 1]; f->parent[v] != FLOW_ROOT; v = f->head[f->parent[v]], length++)
        if (f->residual[f->parent[v] ^ 1] < least) least = f->residual[f->parent[v] ^ 1];
    if (f->terminal[v] < least) least = f->terminal[v];
    for (v = f->head[e]; f->parent[v] != FLOW_ROOT; v = f->head[f->parent[v]], length++)
        if (f->residual[f->parent[v]] < least) least = f->residual[f->parent[v]];
    if (-f->terminal[v] < least) least = -f->terminal[v];

    f->residual[e] -= least;
    f->residual[e ^ 1] += least;
    for (v = f->head[e ^ 1]; f->parent[v] != FLOW_ROOT;) {
        const int32_t a = f->parent[v];
        f->residual[a] += least;
        f->residual[a ^ 1] -= least;
        if (f->residual[a ^ 1] <= 0.0) flow_orphan(f, v);
        v = f->head[a];
    }
    f->terminal[v] -= least;
    if (f->terminal[v] <= 0.0) flow_orphan(f, v);
    for (v = f->head[e]; f->parent[v] != FLOW_ROOT;) {
        const int32_t a = f->parent[v];
        f->residual[a] -= least;
        f->residual[a ^ 1] += least;
        if (f->residual[a] <= 0.0) flow_orphan(f, v);
        v = f->head[a];
    }
    f->terminal[v] += least;
    if (f->terminal[v] >= 0.0) flow_orphan(f, v);
    return length;
}

/* The length of a node's way to its root, or FLOW_FAR if that is cut off. */
static int32_t flow_origin(flow_graph *f, int64_t v, int64_t *work) {
    int32_t length = 0;
    int64_t u = v;
    for (;;) {
        (*work)++;
        if (f->stamp[u] == f->time) { length += f->distance[u]; break; }
        const int32_t a = f->parent[u];
        if (a == FLOW_NONE) return FLOW_FAR;
        length++;
        if (a == FLOW_ROOT) { f->stamp[u] = (int32_t)f->time; f->distance[u] = 1; break; }
        u = f->head[a];
    }
    int32_t d = length;
    for (u = v; f->stamp[u] != f->time; u = f->head[f->parent[u]]) {
        f->stamp[u] = (int32_t)f->time;
        f->distance[u] = d--;
    }
    return length;
}

static int64_t flow_adopt(flow_graph *f) {
    int64_t work = 0;
    while (f->n_orphans > 0) {
        const int64_t v = f->orphans[f->orphan_at];
        if (++f->orphan_at == f->n) f->orphan_at = 0;
        f->n_orphans--;
        f->orphaned[v] = 0;
        const int turn = f->tree[v] == FLOW_SOURCE;   /* flow comes in along a ^ 1, or leaves along a */
        int32_t best = FLOW_NONE, shortest = FLOW_FAR;
        for (int32_t a = f->first[v]; a >= 0; a = f->next[a]) {
            const int64_t u = f->head[a];
            work++;
            if (f->tree[u] != f->tree[v] || !(f->residual[a ^ turn] > 0.0)) continue;
            const int32_t d = flow_origin(f, u, &work);
            if (d < shortest) { shortest = d; best = a; }
        }
        f->parent[v] = best;
        if (best != FLOW_NONE) {
            f->stamp[v] = (int32_t)f->time;
            f->distance[v] = shortest + 1;
            continue;
        }
        for (int32_t a = f->first[v]; a >= 0; a = f->next[a]) {
            const int64_t u = f->head[a];
            work++;
            if (f->tree[u] != f->tree[v]) continue;
            if (f->residual[a ^ turn] > 0.0) flow_activate(f, u);
            if (f->parent[u] >= 0 && f->head[f->parent[u]] == v) flow_orphan(f, u);
        }
        f->tree[v] = FLOW_FREE;
    }
    return work;
}

/* Push as much as there is room for: then `tree` tells the nodes that the source still reaches, those that still reach
 * the sink, and the free ones, which may stand on either side of a minimum cut. */
static int flow_push(flow_graph *f, int (*poll)(int64_t)) {
    const int64_t n = f->n;
    int64_t work = 0;
    f->queue_at = f->n_queue = f->orphan_at = f->n_orphans = 0;
    f->time = 1;
    for (int64_t v = 0; v < n; v++) {
        f->queued[v] = f->orphaned[v] = 0;
        f->stamp[v] = 0;
        f->distance[v] = 1;
        f->tree[v] = f->terminal[v] > 0.0 ? FLOW_SOURCE : f->terminal[v] < 0.0 ? FLOW_SINK : FLOW_FREE;
        f->parent[v] = f->tree[v] == FLOW_FREE ? FLOW_NONE : FLOW_ROOT;
        if (f->tree[v] != FLOW_FREE) flow_activate(f, v);
    }
    while (f->n_queue > 0) {
        const int64_t v = f->queue[f->queue_at];
        int32_t found = -1;
        work += 8;
        if (f->tree[v] != FLOW_FREE) {
            const int turn = f->tree[v] == FLOW_SINK;
            for (int32_t a = f->first[v]; a >= 0; a = f->next[a]) {
                work++;
                if (!(f->residual[a ^ turn] > 0.0)) continue;
                const int64_t u = f->head[a];
                if (f->tree[u] == FLOW_FREE) {
                    f->tree[u] = f->tree[v];
                    f->parent[u] = a ^ 1;
                    f->stamp[u] = f->stamp[v];
                    f->distance[u] = f->distance[v] + 1;
                    flow_activate(f, u);
                } else if (f->tree[u] != f->tree[v]) {
                    found = a ^ turn;
                    break;
                } else if (f->stamp[u] <= f->stamp[v] && f->distance[u] > f->distance[v]) {
                    f->parent[u] = a ^ 1;   /* a shorter way */
                    f->stamp[u] = f->stamp[v];
                    f->distance[u] = f->distance[v] + 1;
                }
            }
        }
        if (found < 0) {
            if (++f->queue_at == n) f->queue_at = 0;
            f->n_queue--;
            f->queued[v] = 0;
        } else {    /* the node stays in front: it may touch the other tree elsewhere */
            f->time++;
            work += 8 * flow_augment(f, found);
            work += 4 * flow_adopt(f);
        }
        if (work > 1 << 16) {
            if (poll(work) < 0) return -1;
            work = 0;
        }
    }
    return 0;
}

#endif
