"""How work without the GIL is interrupted, and shared among threads (see pool.h).

Ctrl-C interrupts a thread of its own, a job's flag one of a pool.

Kernels count what they do (`poll`). A thread looks up only when it has done enough: then one at work on a `Job` reads
the job's flag, without the GIL, and any other lets Python handle its signals. Flag and count belong to the job and to
the thread: nothing that is stopped here stops any work elsewhere.
"""

import os

from cpython.exc cimport PyErr_CheckSignals
from libc.string cimport memset

from structsvm._typedefs cimport int64_t

cdef extern from *:
    """
    typedef struct stop_flag {
        int set;
        const struct stop_flag *above;  /* of the job that started this one, or NULL */
        void *owner;                    /* the Job, which `run` keeps alive */
    } stop_flag;

    static _Thread_local int64_t stop_done;         /* work since the last look */
    static int64_t stop_looks;                      /* of all threads */
    static _Thread_local const stop_flag *stop_job; /* what the thread is at work on, or NULL */

    static int stop_is_set(const stop_flag *flag) {
        for (; flag != NULL; flag = flag->above)
            if (__atomic_load_n(&flag->set, __ATOMIC_RELAXED)) return 1;
        return 0;
    }
    static int64_t stop_count_look(void) { return __atomic_add_fetch(&stop_looks, 1, __ATOMIC_RELAXED); }
    static void stop_set(stop_flag *flag) { __atomic_store_n(&flag->set, 1, __ATOMIC_RELAXED); }
    """
    ctypedef struct stop_flag:
        int set
        const stop_flag* above
        void* owner
    int64_t stop_done
    int64_t stop_looks
    int64_t stop_count_look() noexcept nogil
    const stop_flag* stop_job
    bint stop_is_set(const stop_flag* flag) noexcept nogil
    void stop_set(stop_flag* flag) noexcept nogil

cdef int64_t INTERVAL = 1 << 23     # work between two looks: some milliseconds
cdef int64_t interval = INTERVAL
cdef object watcher = None
cdef int64_t n_shared = 0


cdef int poll(int64_t work) except -1 nogil:
    global stop_done
    stop_done += work
    if stop_done < interval:
        return 0
    return look()


cdef int look() except -1 nogil:
    global stop_done
    stop_done = 0
    stop_count_look()
    if stop_job == NULL:
        with gil:
            PyErr_CheckSignals()
            if watcher is not None:
                watcher()
    elif stop_is_set(stop_job):
        with gil:
            raise KeyboardInterrupt("the job was stopped")
    return 0


def looks():
    """How often threads have looked up so far."""
    return stop_looks


def shared():
    """How many tasks have been offered to more threads than the caller's so far."""
    return n_shared


def look_every(work=None, watch=None):
    """For tests: how much work, in units of `poll`, lies between two looks of any thread; None: the default.

    `watch` is called at each look outside of jobs, as the handler of a signal that comes just then.
    """
    global interval, watcher
    interval, watcher = INTERVAL if work is None else work, watch


cdef class Job:
    """Calls that are stopped together; those of a job that one of them starts, too.

    Attributes
    ----------
    stopped : bool
        Whether this job, or one that it is part of, was stopped.
    """

    cdef stop_flag flag
    cdef object above       # the owner of `flag.above`

    def __cinit__(self):
        self.flag.set, self.flag.above, self.flag.owner = 0, stop_job, <void*>self
        if stop_job != NULL:
            self.above = <object>stop_job.owner

    def run(self, function, *arguments):
        """Return ``function(*arguments)``; KeyboardInterrupt at its next look once the job is stopped."""
        global stop_job
        cdef const stop_flag* before = stop_job
        stop_job = &self.flag
        try:
            return function(*arguments)
        finally:
            stop_job = before

    def stop(self):
        """End the calls that are at work, soon."""
        stop_set(&self.flag)

    @property
    def stopped(self):
        return stop_is_set(&self.flag)

    def __reduce__(self):
        raise TypeError("a Job belongs to the threads at work on it")


cdef extern from *:
    """
    /* For Cython, which raises the exception that is set. */
    static int stop_raised(void) { return -1; }
    """
    int stop_raised() except -1

cdef extern from "pool.h":
    ctypedef struct pool_task:
        pool_body body
        void* context
        void* flag
        void* errors
        int64_t n_parts
        int n_threads
    ctypedef void* PyThread_type_lock
    ctypedef struct pool_bed:
        PyThread_type_lock lock
    int WAIT_LOCK
    PyThread_type_lock PyThread_allocate_lock()
    int PyThread_acquire_lock(PyThread_type_lock lock, int wait)
    int pool_forks
    int pool_watch_forks()
    bint pool_ready()
    int pool_count(int more)
    int pool_work(void* task, int slot) except -1 nogil
    int pool_work_quietly "pool_work" (void* task, int slot) noexcept nogil
    void pool_offer(pool_task* t)
    pool_task* pool_join(pool_bed* bed, int* slot) nogil
    void pool_leave(pool_task* t) nogil
    bint pool_ended(pool_task* t) nogil

cdef extern from "pythread.h":
    unsigned long PyThread_start_new_thread(void (*function)(void*) noexcept, void* argument)
    unsigned long PYTHREAD_INVALID_THREAD_ID

# Nanoseconds of work that it takes to wake another thread for.
cdef enum:
    LEAST_WORK = 10000


if pool_watch_forks():
    raise MemoryError

# Helpers stay until the process ends: more of them than this wait for processors.
cdef int MOST_HELPERS = max(8, 4 * (os.cpu_count() or 1))


cdef int threads_for(int n_threads, int64_t n_parts, int64_t work) noexcept nogil:
    return <int> max(1, min(n_threads, n_parts, work // LEAST_WORK))


cdef int each_part(pool_body body, void* context, int64_t n_parts, int n_threads) except -1:
    global n_shared
    cdef pool_task t
    cdef int64_t part
    cdef int forks = pool_forks
    cdef bint ended = False, is_forked = False
    if n_threads < 2 or n_parts < 2:
        with nogil:
            for part in range(n_parts):
                body(context, 0, part)
        return 0
    n_shared += 1
    cdef Job job = Job()
    errors = []
    memset(&t, 0, sizeof(t))
    t.body, t.context, t.flag, t.errors = body, context, &job.flag, <void*> errors
    t.n_parts, t.n_threads = n_parts, <int> min(n_threads, n_parts)
    if not pool_ready():
        raise MemoryError
    start(t.n_threads - 1)
    pool_offer(&t)
    while not ended:
        try:
            with nogil:
                pool_work(&t, 0)
                is_forked = pool_forks != forks     # by a signal's handler: the helpers are not here
                ended = is_forked or pool_ended(&t)
                if not ended:
                    look()
        except BaseException as error:      # also of a look, at which helpers may still be at work
            errors.insert(0, error)
            stop_set(&job.flag)
    if errors:
        raise errors[0]
    if is_forked:
        raise RuntimeError("a signal's handler forked the process while threads were at work, which the child lacks")
    return 0


cdef void start(int wanted) noexcept:
    """Start helpers until there are as many. Where no more can be started, there are fewer.

    By C, as libraries that replace Python's threads by others of their own would start none.
    """
    wanted = min(wanted, MOST_HELPERS)
    while pool_count(0) < wanted:
        pool_count(1)
        if PyThread_start_new_thread(help_out, NULL) == PYTHREAD_INVALID_THREAD_ID:
            pool_count(-1)
            break


cdef void help_out(void* nothing) noexcept with gil:
    """Take part in tasks until the process ends. Python's state of the thread, which has its errors, stays as long."""
    global stop_job
    cdef pool_bed bed
    cdef pool_task* t
    cdef int slot
    bed.lock = PyThread_allocate_lock()
    if bed.lock == NULL:        # no memory
        pool_count(-1)
        return
    PyThread_acquire_lock(bed.lock, WAIT_LOCK)
    with nogil:
        while True:
            t = pool_join(&bed, &slot)
            stop_job = <const stop_flag*> t.flag
            if pool_work_quietly(t, slot) < 0:
                with gil:
                    keep_error(t)
            stop_job = NULL
            pool_leave(t)


cdef void keep_error(pool_task* t) noexcept:
    """Leave the exception that is set to the caller."""
    try:
        stop_raised()
    except BaseException as error:
        (<list> t.errors).append(error)


cdef struct ranges:
    void* function
    void* bounds
    void* results


def each_range(function, bounds, int n_threads):
    """Return a list of ``function(a, b)``, for the ranges between n + 1 bounds, by so many threads."""
    cdef ranges r
    results = [None] * (len(bounds) - 1)
    r.function, r.bounds, r.results = <void*> function, <void*> bounds, <void*> results
    each_part(of_range, &r, len(results), n_threads)
    return results


cdef int of_range(void* context, int slot, int64_t part) except -1 nogil:
    with gil:
        bounds = <list> (<ranges*> context).bounds
        found = (<object> (<ranges*> context).function)(bounds[part], bounds[part + 1])
        (<list> (<ranges*> context).results)[part] = found
    return 0
