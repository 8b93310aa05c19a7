"""How work without the GIL is interrupted: Ctrl-C in a thread of its own, a job's flag in a thread of a pool.

Kernels count what they do (`poll`). A thread looks up only when it has done enough: then one at work on a `Job` reads
the job's flag, without the GIL, and any other lets Python handle its signals. Flag and count belong to the job and to
the thread: nothing that is stopped here stops any work elsewhere.
"""

from cpython.exc cimport PyErr_CheckSignals

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
