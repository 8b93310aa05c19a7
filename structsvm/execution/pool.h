/* Threads for the parts of a batch, which stay for the next one: to start a thread takes longer than a small batch.
 *
 * The parts of a task are taken one after the other, by the thread that asks for them and by helpers as soon as these are
 * awake: a helper that comes late costs nothing. No result may depend on which thread computes it. A helper looks out for
 * the next task before it sleeps, since batches follow one another, and to be woken takes as long as a part.
 */
#ifndef STRUCTSVM_POOL_H
#define STRUCTSVM_POOL_H

#include <stdint.h>
#include <string.h>
#include <time.h>

#include <pythread.h>
#ifndef _WIN32
#include <pthread.h>
#endif

/* So many nanoseconds a thread looks out, before it sleeps; microseconds between two looks for a signal; and bytes that
 * processors pass on at once. */
enum { POOL_SPIN = 50000, POOL_SLEEP = 20000, POOL_LINE = 64 };

typedef struct pool_task {
    int (*body)(void *context, int slot, int64_t part);
    void *context, *flag, *errors;
    int64_t n_parts, next;
    int n_threads, offered;         /* the caller and helpers, at most; whether they may come */
    int wanted, slots, at_work;     /* helpers that may still come, that came, and that have not left */
    PyThread_type_lock sleeper;     /* released for the caller when the last helper leaves; NULL while it is awake */
    struct pool_task *after;
} pool_task;

typedef struct pool_bed {           /* a helper that sleeps until its lock is released */
    PyThread_type_lock lock;
    struct pool_bed *after;
} pool_bed;

typedef struct pool_state {
    PyThread_type_lock lock;        /* held for all that follows, and for the numbers of each task's helpers */
    pool_task *tasks;
    pool_bed *asleep;
    int awake, helpers;             /* helpers that look out; all */
    int forks;                      /* as many as there had been when the lock was made */
    char before[POOL_LINE];         /* apart: helpers look at `wanted` while others write the rest */
    int wanted;                     /* helpers by all tasks */
    char behind[POOL_LINE];
} pool_state;

static pool_state pool;
static int pool_forks;              /* processes that led to this one; to ask for its number takes longer */

static void pool_forked(void) { pool_forks++; }

/* Have forks counted, those by C too, of which Python knows nothing. Returns 0, or an error's number. */
static int pool_watch_forks(void) {
#ifdef _WIN32
    return 0;
#else
    return pthread_atfork(NULL, NULL, pool_forked);
#endif
}

/* A process that was forked off has none of the helpers, and of the locks it knows nothing. */
static int pool_ready(void) {
    if (pool.lock == NULL || pool.forks != pool_forks) {
        memset(&pool, 0, sizeof pool);
        pool.lock = PyThread_allocate_lock();
        pool.forks = pool_forks;
    }
    return pool.lock != NULL;
}

static inline void pool_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

static int64_t pool_now(void) {
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Whether a number is 0 (or is not) before the thread should sleep. */
static int pool_soon(const int *number, int is_zero) {
    int64_t began = pool_now(), waited = 0;
    for (int turn = 1; waited >= 0 && waited < POOL_SPIN; turn++) {
        if ((__atomic_load_n(number, __ATOMIC_ACQUIRE) == 0) == is_zero) return 1;
        pool_pause();
        if (turn % 32 == 0) waited = pool_now() - began;
    }
    return 0;
}

/* Take the lock, which is held for some ten nanoseconds: to sleep for it would take a thousand times as long. */
static void pool_hold(void) {
    for (int turn = 0; turn < 200; turn++) {
        if (PyThread_acquire_lock(pool.lock, NOWAIT_LOCK)) return;
        pool_pause();
    }
    PyThread_acquire_lock(pool.lock, WAIT_LOCK);
}

/* Take parts until there are no more, or one fails: -1 then, and an exception is set. */
static int pool_work(void *task, int slot) {
    pool_task *t = task;
    int64_t part;
    while ((part = __atomic_fetch_add(&t->next, 1, __ATOMIC_RELAXED)) < t->n_parts)
        if (t->body(t->context, slot, part) < 0) {
            __atomic_store_n(&t->next, t->n_parts, __ATOMIC_RELAXED);
            return -1;
        }
    return 0;
}

static void pool_offer(pool_task *t) {
    pool_hold();
    t->after = pool.tasks;
    t->offered = 1;
    pool.tasks = t;
    t->wanted = t->n_threads - 1;
    for (int k = pool.awake; k < t->wanted && pool.asleep != NULL; k++) {
        pool_bed *bed = pool.asleep;
        pool.asleep = bed->after;
        pool.awake++;
        PyThread_release_lock(bed->lock);
    }
    PyThread_release_lock(pool.lock);
    __atomic_add_fetch(&pool.wanted, t->n_threads - 1, __ATOMIC_RELEASE);   /* now: who sees it takes the lock */
}

/* The next task for a helper, and the number of its thread among the task's. */
static pool_task *pool_join(pool_bed *bed, int *slot) {
    for (;;) {
        int soon = pool_soon(&pool.wanted, 0);
        pool_hold();
        pool_task *t = pool.tasks;
        while (t != NULL && t->wanted == 0) t = t->after;
        if (t != NULL) {
            t->wanted--;
            __atomic_sub_fetch(&pool.wanted, 1, __ATOMIC_RELEASE);
            __atomic_add_fetch(&t->at_work, 1, __ATOMIC_RELEASE);
            *slot = ++t->slots;
        }
        if (t != NULL || !soon) pool.awake--;
        if (t == NULL && !soon) {
            bed->after = pool.asleep;
            pool.asleep = bed;
        }
        PyThread_release_lock(pool.lock);
        if (t != NULL) return t;
        if (!soon) PyThread_acquire_lock(bed->lock, WAIT_LOCK);
    }
}

static void pool_leave(pool_task *t) {
    pool_hold();
    pool.awake++;
    if (__atomic_sub_fetch(&t->at_work, 1, __ATOMIC_RELEASE) == 0 && t->sleeper != NULL) PyThread_release_lock(t->sleeper);
    PyThread_release_lock(pool.lock);
}

static void pool_withdraw(pool_task *t) {
    pool_task **place = &pool.tasks;
    pool_hold();
    while (*place != t) place = &(*place)->after;
    *place = t->after;
    t->offered = 0;
    __atomic_sub_fetch(&pool.wanted, t->wanted, __ATOMIC_RELEASE);
    t->wanted = 0;
    PyThread_release_lock(pool.lock);
}

/* Whether all helpers have left, after a short while at most; no more come. */
static int pool_ended(pool_task *t) {
    if (t->offered) pool_withdraw(t);
    if (!pool_soon(&t->at_work, 1)) {
        PyThread_type_lock own = t->sleeper != NULL ? t->sleeper : PyThread_allocate_lock();
        if (own != NULL && t->sleeper == NULL) PyThread_acquire_lock(own, WAIT_LOCK);
        pool_hold();
        t->sleeper = own;
        int sleeps = own != NULL && t->at_work > 0;
        PyThread_release_lock(pool.lock);
        if (sleeps) PyThread_acquire_lock_timed(own, POOL_SLEEP, 0);
    }
    pool_hold();    /* the last helper may not have let go of it yet */
    int ended = t->at_work == 0;
    PyThread_release_lock(pool.lock);
    if (ended && t->sleeper != NULL) PyThread_free_lock(t->sleeper);
    return ended;
}

/* Add to the helpers; returns their number. */
static int pool_count(int more) {
    pool_hold();
    pool.awake += more;
    int helpers = pool.helpers += more;
    PyThread_release_lock(pool.lock);
    return helpers;
}

#endif
